#!/usr/bin/env python3
"""docs/clients.md shows each client's entry: the one that the program prints."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, sys.argv[1])
import tap  # pylint: disable=wrong-import-position

PROGRAM, DOCS = sys.argv[2:4]
SHOWN = "/usr/local/bin/glovebox"


def install(client, *more, home, answer=None):
    return subprocess.run([PROGRAM, "mcp", "--install", client, *more], input=answer or "",
                          env={"PATH": "/usr/bin:/bin", "HOME": home}, capture_output=True,
                          text=True, check=False)


def sections():
    """Each section's text by its heading."""
    with open(DOCS, encoding="utf-8") as file:
        parts = file.read().split("\n## ")
    return {part.split("\n")[0]: part for part in parts[1:]}


@tap.case
def the_page_shows_what_the_program_prints():
    with tempfile.TemporaryDirectory() as home:
        for heading, client in [("Claude Code", "claude"), ("Codex", "codex"),
                                ("Gemini CLI", "gemini"), ("opencode", "opencode"),
                                ("VS Code", "vscode"), ("Cursor", "cursor")]:
            done = install(client, home=home)
            assert done.returncode == 0, done.stderr
            shown = done.stdout.replace(os.path.realpath(PROGRAM), SHOWN)
            assert f"\n{shown}```\n" in sections()[heading], f"{client}:\n{shown}"
            path = done.stderr.split("for ")[1].split(";")[0].replace(home, "~")
            assert f"`{path}`" in sections()[heading], path


@tap.case
def what_was_written_is_read_back_and_nothing_else_has_changed():
    with tempfile.TemporaryDirectory() as home:
        path = os.path.join(home, ".claude.json")
        before = '{\n    "numStartups": 3,\n    "projects": {"/x": {"mcpServers": {}}}\n}\n'
        with open(path, "w", encoding="utf-8") as file:
            file.write(before)
        os.chmod(path, 0o640)
        done = install("claude", "--write", home=home, answer="y\n")
        assert done.returncode == 0, done.stderr
        assert "+    \"mcpServers\": {\n" in done.stdout, done.stdout
        with open(path, encoding="utf-8") as file:
            after = file.read()
        assert after.startswith(before[:before.rindex("\n}")]), after
        value = json.loads(after)
        assert value["mcpServers"]["glovebox"]["args"] == ["mcp"], after
        assert value["numStartups"] == 3
        assert os.stat(path).st_mode & 0o777 == 0o640
        assert os.listdir(home) == [".claude.json"], os.listdir(home)
        again = install("claude", "--write", home=home)
        assert again.returncode == 0 and "already" in again.stderr, again.stderr
        with open(path, encoding="utf-8") as file:
            assert file.read() == after


@tap.case
def a_link_stays_a_link_and_its_file_is_changed():
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(os.path.join(home, ".codex"))
        real = os.path.join(home, "dotfiles.toml")
        with open(real, "w", encoding="utf-8") as file:
            file.write("# mine\nmodel = \"x\"")
        os.symlink(real, os.path.join(home, ".codex", "config.toml"))
        done = install("codex", "--write", home=home, answer="yes\n")
        assert done.returncode == 0, done.stderr
        assert os.path.islink(os.path.join(home, ".codex", "config.toml"))
        with open(real, encoding="utf-8") as file:
            text = file.read()
        assert text.startswith("# mine\nmodel = \"x\"\n\n[mcp_servers.glovebox]\ncommand = \""), text


tap.play()
