#!/usr/bin/env python3
"""How dev/check counts: what a test said, and how it ended, become passed, failed, skipped."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile

import tap

PATH = os.path.join(sys.argv[1], "dev", "check")
LOADER = importlib.machinery.SourceFileLoader("check", PATH)
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", LOADER))
LOADER.exec_module(check)


def counted(stdout, result="OK", code=0, stderr=""):
    """((passed, failed, skipped), what was printed) for one test of meson's log."""
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as temporary:
        check.LOGS = os.path.join(temporary, "log")
        checker = check.Checker(temporary)
        with contextlib.redirect_stdout(printed):
            checker.count_test("t", {"stdout": stdout, "stderr": stderr, "result": result,
                                     "returncode": code})
    return checker.tally.counts(), printed.getvalue()


@tap.case
def each_case_of_a_tap_text_counts():
    assert counted("1..2\nok 1 - a\nok 2 - b\n")[0] == (2, 0, 0)


@tap.case
def a_test_without_tap_is_one_case():
    assert counted("hello\n")[0] == (1, 0, 0)
    assert counted("", "FAIL", 1)[0] == (0, 1, 0)


@tap.case
def each_failed_case_counts():
    assert counted("1..3\nnot ok 1 - a\nok 2 - b\nnot ok 3 - c\n", "FAIL", 2)[0] == (1, 2, 0)


@tap.case
def a_failed_case_is_shown_with_its_remarks():
    _, printed = counted("not ok 1 - a\n# line 7\nok 2 - b\n# chatter\n", "FAIL", 1, "late")
    assert "line 7" in printed and "late" in printed and "chatter" not in printed, printed


@tap.case
def a_failed_case_fails_whatever_the_exit_status():
    assert counted("not ok 1 - a\n", "OK")[0] == (0, 1, 0)


@tap.case
def a_crash_after_good_cases_is_a_failure():
    assert counted("1..2\nok 1 - a\n", "FAIL", -11)[0] == (1, 1, 0)


@tap.case
def an_endless_test_is_a_failure():
    assert counted("ok 1 - a\n", "TIMEOUT", -9)[0] == (1, 1, 0)


@tap.case
def skipped_cases_are_counted_in_both_spellings():
    assert counted("ok 1 - a # SKIP no kernel\nnot ok 2 # SKIP b\n")[0] == (0, 0, 2)


@tap.case
def the_reason_of_a_skip_may_stand_in_the_line_before():
    with tempfile.TemporaryDirectory() as temporary:
        checker = check.Checker(temporary)
        checker.count_test("t", {"stdout": "# skip: no kernel\nnot ok 1 # SKIP a\n"
                                 "not ok 2 # SKIP b\n", "result": "OK"})
    assert checker.tally.reasons == ["t: no kernel", "t: b"], checker.tally.reasons


@tap.case
def a_skipped_test_is_counted():
    assert counted("", "SKIP", 77)[0] == (0, 0, 1)


@tap.case
def words_that_begin_like_a_case_are_none():
    assert counted("okay\nnot okay\n")[0] == (1, 0, 0)


@tap.case
def a_program_that_is_silent_where_words_are_expected_fails():
    with tempfile.TemporaryDirectory() as temporary:
        check.LOGS = os.path.join(temporary, "log")
        checker = check.Checker(temporary)
        with contextlib.redirect_stdout(io.StringIO()):
            assert not checker.tool("t", ["true"], expect="word")
            assert not checker.tool("t", ["sh", "-c", "echo word; exit 1"], expect="word")
            assert checker.tool("t", ["echo", "word"], expect="word")
        assert checker.tally.counts() == (1, 2, 0)


@tap.case
def what_clang_tidy_says_beside_other_steps_is_counted_at_its_own():
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        check.LOGS = os.path.join(temporary, "log")
        for name in ("src/good.c", "src/bad.c", "tests/bad.c", "clang-tidy-14"):
            os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
            with open(name, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\ncase $4 in *bad.c) echo $4:1:1: error: no; exit 1;; esac\n")
        os.chmod("clang-tidy-14", 0o755)
        before, os.environ["PATH"] = os.environ["PATH"], temporary + ":" + os.environ["PATH"]
        try:
            printed = io.StringIO()
            checker = check.Checker(tempfile.mkdtemp(dir=temporary))
            checker.environment["PATH"] = os.environ["PATH"]
            checker.tidy_begin("build")
            checker.tally.one("other", True)
            with contextlib.redirect_stdout(printed):
                checker.tidy()
        finally:
            os.environ["PATH"] = before
            os.chdir(here)
        assert checker.tally.counts() == (1, 1, 0), checker.tally.counts()
        assert printed.getvalue().count("src/bad.c:1:1: error: no") == 1, printed.getvalue()
        assert "tests" not in printed.getvalue()


@tap.case
def shell_scripts_are_known_by_their_first_line():
    with tempfile.TemporaryDirectory() as temporary:
        for first, shell in (("#!/bin/sh", True), ("#!/usr/bin/env bash", True),
                             ("#!/usr/bin/env python3", False), ("sh", False)):
            path = os.path.join(temporary, "script")
            with open(path, "w", encoding="utf-8") as file:
                file.write(first + "\n")
            assert check.is_shell(path) == shell, first


tap.play()
