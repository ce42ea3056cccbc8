"""
watched: what it costs commands that their changes can be undone, in a workspace whose folders are watched: the
same commands in two sessions of the MCP server, one of which has no home, where nothing can be kept.
"""
import os
import subprocess
import time

import mcp
import undo

FILES = 100_000     # of the repository
MODULES = 50_000    # files of node_modules, which the repository ignores
IN_MODULE = 10
SOURCES = 40        # files of C that `make` compiles
ROUNDS = 3  # some kernels take 0.3 ms to make a file
TIMES = 1.1
SETTLE_S = 1.0      # what a command leaves to be looked at is looked at

# In this order, and a session runs all of them before the other one does: title: command
WORK = {
    "git status": "git status --short",
    f"make, {SOURCES} files of C": "make -s",
    "make clean": "make -s clean",
    f"unpack {MODULES:,} ignored files": "tar -xf .git/modules.tar",
    f"rm -rf of {MODULES:,} ignored files": "rm -rf node_modules",
}


def tree(workspace):
    """A repository with sources for make, and an archive of modules, made once."""
    root = undo.tree(workspace, FILES)
    archive = os.path.join(root, ".git", "modules.tar")
    if os.path.exists(archive):
        return root
    for number in range(SOURCES):
        with open(os.path.join(root, f"s{number}.c"), "w", encoding="ascii") as file:
            file.write("#include <stdio.h>\n" + f"int s{number}(void) {{ return puts(\"{number}\"); }}\n")
    with open(os.path.join(root, "Makefile"), "w", encoding="ascii") as file:
        names = " ".join(f"s{number}.o" for number in range(SOURCES))
        file.write(f"all: {names}\nclean:\n\trm -f {names}\n")
    with open(os.path.join(root, ".gitignore"), "w", encoding="ascii") as file:
        file.write("node_modules/\n*.o\n")
    for first in range(0, MODULES, IN_MODULE):
        folder = os.path.join(root, "node_modules", f"m{first // IN_MODULE}")
        os.makedirs(folder)
        for number in range(IN_MODULE):
            with open(os.path.join(folder, f"f{number}.js"), "w", encoding="ascii") as file:
                file.write(f"module.exports = {first + number};\n")
    for argv in (["tar", "-cf", archive + ".new", "node_modules"], ["rm", "-rf", "node_modules"],
                 ["git", "add", "."],
                 ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "sources"]):
        subprocess.run(argv, cwd=root, check=True)
    os.rename(archive + ".new", archive)
    return root


def title(words, keeps):
    return f"{words}, {'undo' if keeps else 'no undo'}"


def run(talk, command):
    answer, _ = talk.ask("tools/call", {"name": "bash", "arguments": {"command": command}})
    if answer["result"].get("isError"):
        raise SystemExit(f"bench: {command} has failed: {answer['result']['content'][0]['text'][:300]}")


def play(build, running, rounds, workspace):
    """Rounds of microseconds; one more goes before them."""
    root = tree(workspace)
    server = mcp.Server("glovebox", [os.path.join(build, "glovebox"), "mcp", "-C", root], root)
    talks = {keeps: mcp.Conversation(server, workspace, has_home=keeps) for keeps in (False, True)}
    for number in range(rounds + 1):
        row = []
        for command in running:
            words, keeps = command.what
            run(talks[keeps], "true")
            time.sleep(SETTLE_S)
            began = time.perf_counter_ns()
            run(talks[keeps], WORK[words])
            row.append((time.perf_counter_ns() - began) // 1000)
        if number > 0:
            yield row
    for talk in talks.values():
        talk.end()


def watched_group(group, command, _build, _workspace):
    commands, targets = [], []
    for keeps in (False, True):
        for words in WORK:
            made = command(title(words, keeps), [])
            made.what = (words, keeps)
            commands.append(made)
    for words in WORK:
        targets.append((title(words, True), title(words, False), TIMES))
    return group("watched", f"Commands in a repository of {FILES:,} files, with and without undo, over MCP",
                 commands, targets, play=play, rounds=ROUNDS)


GROUPS = {"watched": watched_group}
