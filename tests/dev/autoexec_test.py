#!/usr/bin/env python3
"""The names that other programs run by themselves: what the texts and the attacks say of the table in src/policy/autoexec.c."""
import os
import re
import sys

import tap

ROOT = sys.argv[1]
ROW = re.compile(r'^\t\{"([^"]+)", "([^"]+)", AUTOEXEC_(FILE|FOLDER|TREE), AUTOEXEC_(PROTECTED|REPORTED|READ)\},$', re.M)


def text(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def rows(*cares):
    """name -> program, of the rows with such a care; a folder's name ends with a slash."""
    found = ROW.findall(text("src", "policy", "autoexec.c"))
    assert len(found) > 100, len(found)
    return {name + ("" if kind == "FILE" else "/"): reader for name, reader, kind, what in found if what in cares}


def section(title):
    """The lines of docs/policy.md below the words TITLE, up to the next blank line behind its table."""
    _, found, rest = text("docs", "policy.md").partition(title)
    assert found, title
    return rest.split("\n\n", 2)[1]


@tap.case
def the_manual_has_every_protected_name_and_no_other():
    told = {}
    for line in section("**Of other agents.**").splitlines()[2:]:
        reader, names = [cell.strip() for cell in line.strip("|").split("|")]
        for name in re.findall(r"`([^`]+)`", names):
            told[name] = reader
    assert told == rows("PROTECTED"), (sorted(told.items()), sorted(rows("PROTECTED").items()))


@tap.case
def the_manual_has_every_reported_name_and_no_other():
    told = re.findall(r"`([^`]+)`", section("**Other files that run by themselves**"))
    assert len(told) == len(set(told)), "a name stands there twice"
    reported = rows("REPORTED", "READ")
    assert set(told) == set(reported), set(told) ^ set(reported)


@tap.case
def an_attack_that_is_shipped_makes_each_of_them():
    cases = text("tests", "cell", "protected.case").split("\n== ")
    case = next(case for case in cases if case.startswith("settings, hooks and plugins of other agents where"))
    assert "\nshipped\n" in case
    attack = next(line for line in case.splitlines() if line.startswith("attack "))
    words = re.split(r"[\s;]+", attack)
    for name in rows("PROTECTED"):
        assert any(word == name or name.endswith("/") and word.startswith(name) for word in words), name


tap.play()
