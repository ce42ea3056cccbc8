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
    listed = tap.run([PROGRAM, "tool", "list"]).stdout
    with open(os.path.join(SOURCE, "docs", "meson.build"), encoding="utf-8") as file:
        installed = re.findall(r"^  '(\w+)',$", file.read(), re.M)
    assert installed == names(), installed
    for name in names():
        assert re.search(rf"^{name}\b", listed, re.M), name
        page = tap.run([SCRIPT, PROGRAM, "--man", name])
        assert page.returncode == 0 and f".Nm {name}\n" in page.stdout, page.stderr
        if shutil.which("mandoc"):
            with tempfile.NamedTemporaryFile("w", suffix=".7") as file:
                file.write(page.stdout)
                file.flush()
                told = tap.run(["mandoc", "-T", "lint", "-W", "warning", file.name])
                assert told.returncode == 0, told.stdout


@tap.case
def what_is_no_tool_has_none():
    assert tap.run([SCRIPT, PROGRAM, "--man", "exec"]).returncode == 1


tap.play()
