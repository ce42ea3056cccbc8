#!/usr/bin/env python3
"""The words that dev/kernel takes; the machine itself takes root, an emulator and a kernel from the network."""
import os
import sys

import tap

PROGRAM = os.path.join(sys.argv[1], "dev", "kernel")


@tap.case
def its_help_names_every_option():
    done = tap.run([PROGRAM, "--help"], stdin=-3)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    for word in ("--release", "--user", "--minutes", "--kvm", "--below", "-- COMMAND"):
        assert f"\n  {word}" in done.stdout, word


@tap.case
def a_word_that_it_does_not_know_is_named():
    tap.refused(PROGRAM, ["--usr"], "'--usr'", "--help")


@tap.case
def a_missing_value_or_command_is_told():
    tap.refused(PROGRAM, ["--user"], "--user needs a value")
    tap.refused(PROGRAM, [], "a command must follow")
    tap.refused(PROGRAM, ["--"], "a command must follow")


@tap.case
def values_that_no_machine_can_have_are_refused():
    tap.refused(PROGRAM, ["--user", "a b", "--", "true"], "--user", "'a b'")
    tap.refused(PROGRAM, ["--release", "../x", "--", "true"], "--release", "'../x'")
    tap.refused(PROGRAM, ["--minutes", "0", "--", "true"], "--minutes", "'0'")


tap.play()
