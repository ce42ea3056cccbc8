#!/usr/bin/env python3
"""The words that dev/bare-machine takes; the machine itself takes root, a network and half an hour."""
import os
import sys

import tap

PROGRAM = os.path.join(sys.argv[1], "dev", "bare-machine")


@tap.case
def its_help_names_every_option():
    done = tap.run([PROGRAM, "--help"], stdin=-3)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    for word in ("--user", "--path", "--tmpdir", "--umask", "--lang", "--busy", "--work-tree", "--every",
                 "--suite", "--mirror", "--below", "--fresh", "-- COMMAND"):
        assert f"\n  {word}" in done.stdout, word


@tap.case
def a_word_that_it_does_not_know_is_named():
    tap.refused(PROGRAM, ["--usr"], "'--usr'", "--help")


@tap.case
def a_missing_value_is_told():
    tap.refused(PROGRAM, ["--umask"], "--umask needs a value")
    tap.refused(PROGRAM, ["--"], "a command must follow")


@tap.case
def values_that_no_machine_can_have_are_refused():
    tap.refused(PROGRAM, ["--user", "a b"], "--user", "'a b'")
    tap.refused(PROGRAM, ["--umask", "9"], "--umask", "'9'")
    tap.refused(PROGRAM, ["--busy", "-1"], "--busy", "'-1'")
    tap.refused(PROGRAM, ["--suite", "../x"], "--suite", "'../x'")
    tap.refused(PROGRAM, ["--tmpdir", "tmp"], "--tmpdir", "absolute")
    tap.refused(PROGRAM, ["--path", "a/../../b"], "--path", "'..'")


tap.play()
