#!/usr/bin/env python3
"""What is written about the tools is what their parameter rows say. usage: SOURCE GLOVEBOX"""
import os
import re
import shutil
import sys
import tempfile

import tap

SOURCE, PROGRAM = sys.argv[1:3]
SCRIPT = os.path.join(SOURCE, "dev", "tool-docs")
DOC = os.path.join(SOURCE, "docs", "tools.md")


def names():
    with open(DOC, encoding="utf-8") as file:
        return re.findall(r"^### (\S+)$", file.read(), re.M)


@tap.case
def the_reference_is_current():
    done = tap.run([SCRIPT, PROGRAM, "--check", DOC])
    assert done.returncode == 0, "dev/tool-docs GLOVEBOX --write docs/tools.md\n" + done.stdout


@tap.case
def a_reference_that_is_not_current_is_told_and_mended():
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "tools.md")
        shutil.copy(DOC, copy)
        with open(copy, encoding="utf-8") as file:
            text = file.read()
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text.replace("| `path` |", "| `pfad` |", 1))
        done = tap.run([SCRIPT, PROGRAM, "--check", copy])
        assert done.returncode == 1 and "-| `pfad` |" in done.stdout, done.stdout
        assert tap.run([SCRIPT, PROGRAM, "--write", copy]).returncode == 0
        with open(copy, encoding="utf-8") as file:
            assert file.read() == text


@tap.case
def every_tool_has_a_manual_page():
    # Some tools are only an agent's that names them.
    listed = "".join(tap.run([PROGRAM, "tool", "list", "--agent", agent]).stdout
                     for agent in ("default", "coder", "orchestrator"))
    with tempfile.TemporaryDirectory() as folder:
        # Others are there where there is a network.
        config = os.path.join(folder, "config.json")
        with open(os.open(config, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
            file.write('{"agents": {"default": {"network": ["example.com"]}}}')
        for more in ("--config", config), ("--mode", "plan"):
            listed += tap.run([PROGRAM, "tool", "list", *more]).stdout
        pages = os.path.join(folder, "man7")
        done = tap.run([SCRIPT, PROGRAM, "--manuals", pages])
        assert done.returncode == 0, done.stderr
        assert sorted(os.listdir(pages)) == sorted(f"glovebox-{name}.7" for name in names())
        for name in names():
            assert re.search(rf"^{name}\b", listed, re.M), name
            page = os.path.join(pages, f"glovebox-{name}.7")
            with open(page, encoding="utf-8") as file:
                assert f".Nm {name}\n" in file.read(), name
            if shutil.which("mandoc"):
                told = tap.run(["mandoc", "-T", "lint", "-W", "warning", page])
                assert told.returncode == 0, told.stdout


@tap.case
def pages_of_tools_that_are_gone_go():
    with tempfile.TemporaryDirectory() as folder:
        gone = os.path.join(folder, "man7", "glovebox-gone.7")
        os.mkdir(os.path.dirname(gone))
        with open(gone, "w", encoding="utf-8"):
            pass
        assert tap.run([SCRIPT, PROGRAM, "--manuals", os.path.dirname(gone)]).returncode == 0
        assert not os.path.exists(gone)


tap.play()
