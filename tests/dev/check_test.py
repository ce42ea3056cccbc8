#!/usr/bin/env python3
"""How dev/check counts: what a test said, and how it ended, become passed, failed, skipped."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import re
import shutil
import sys
import tempfile
import time

import tap

ROOT = sys.argv[1]
PATH = os.path.join(ROOT, "dev", "check")
LOADER = importlib.machinery.SourceFileLoader("check", PATH)
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", LOADER))
LOADER.exec_module(check)
suites = check.suites


@contextlib.contextmanager
def checker():
    """One that counts, with its logs in a folder that goes away."""
    with tempfile.TemporaryDirectory() as temporary:
        check.LOGS = os.path.join(temporary, "log")
        one = check.Checker(tempfile.mkdtemp(dir=temporary))
        one.step = "step"
        yield one


def registered(name, script, tap_protocol=True, seconds=60):
    return suites.Test({"name": name, "suite": ["glovebox:unit"], "cmd": ["sh", "-c", script], "env": {},
                        "timeout": seconds, "workdir": None, "is_parallel": True,
                        "protocol": "tap" if tap_protocol else "exitcode"},
                       "/")


def played(script, tap_protocol=True, seconds=60, only=""):
    """((passed, failed, skipped), what was printed, the Tally) for a test that is this script."""
    printed = io.StringIO()
    with checker() as one, contextlib.redirect_stdout(printed):
        one.test("gcc", [registered("t", script, tap_protocol, seconds)], only)
        passed, failed, skipped = one.tally.counts()
    # One more case says that nothing was left behind.
    return (passed - 1, failed, skipped), printed.getvalue(), one.tally


def said(text, code=0, **options):
    return played(f"cat <<'END'\n{text}END\nexit {code}\n", **options)


@tap.case
def each_case_of_a_tap_text_counts():
    assert said("1..2\nok 1 - a\nok 2 - b\n")[0] == (2, 0, 0)


@tap.case
def a_test_without_tap_is_one_case():
    assert said("hello\n", tap_protocol=False)[0] == (1, 0, 0)
    assert said("", 1, tap_protocol=False)[0] == (0, 1, 0)


@tap.case
def each_failed_case_counts_and_is_named_with_its_command():
    counts, _, tally = said("1..3\nnot ok 1 - it's a\nok 2 - b\nnot ok 3 - c: d\n", 2)
    assert counts == (1, 2, 0), counts
    assert tally.failures == [
        ("gcc t: it's a", """dev/check --only 't: it'"'"'s a'"""),
        ("gcc t: c: d", "dev/check --only 't: c: d'")], tally.failures


@tap.case
def a_failed_case_is_shown_at_once_and_with_its_remarks():
    printed = played("echo 1..2; echo not ok 1 - a; echo '# line 7'; echo ok 2 - b; echo '# chatter'; "
                     "echo late >&2; exit 1")[1]
    at_once, _, rest = printed.partition("--- failed: gcc t\n")
    assert at_once == "failed  gcc t: a\n", printed
    assert "line 7" in rest and "late" in rest and "chatter" not in rest, printed


@tap.case
def a_failed_case_fails_whatever_the_exit_status():
    assert said("1..1\nnot ok 1 - a\n")[0] == (0, 1, 0)


@tap.case
def a_crash_after_good_cases_is_a_failure():
    counts, printed, tally = played("echo 1..1; echo ok 1 - a; kill -SEGV $$")
    assert counts == (1, 1, 0) and "exit status is -11" in printed, printed
    assert tally.failures == [("gcc t", "dev/check --only t")], tally.failures


@tap.case
def cases_that_were_promised_and_never_came_are_a_failure():
    counts, printed, _ = said("1..3\nok 1 - a\n")
    assert counts == (1, 1, 0) and "promised 3 cases and said 1" in printed, printed
    assert said("ok 1 - a\n")[0] == (1, 1, 0)


@tap.case
def an_endless_test_is_a_failure_and_ends_with_what_it_started():
    suites.END_SECONDS = 0
    counts, printed, _ = played("echo 1..1; echo ok 1 - a; sleep 600 & wait", seconds=3)
    assert counts == (1, 1, 0) and "it was ended after 3 s" in printed, printed


@tap.case
def a_program_that_is_not_there_is_a_failure():
    test = registered("t", "")
    test.command = ["/nowhere/at/all"]
    with checker() as one, contextlib.redirect_stdout(io.StringIO()):
        one.test("gcc", [test])
        assert one.tally.counts() == (1, 1, 0), one.tally.counts()


@tap.case
def skipped_cases_are_counted_in_both_spellings():
    assert said("1..2\nok 1 - a # SKIP no kernel\nnot ok 2 # SKIP b\n")[0] == (0, 0, 2)


@tap.case
def the_reason_of_a_skip_may_stand_in_the_line_before():
    tally = said("1..2\n# skip: no kernel\nnot ok 1 # SKIP a\nnot ok 2 # SKIP b\n")[2]
    assert tally.reasons == ["gcc t: no kernel", "gcc t: b"], tally.reasons


@tap.case
def a_skipped_test_is_counted():
    assert said("", 77, tap_protocol=False)[0] == (0, 0, 1)
    assert said("1..0 # skip no root\n")[2].reasons == ["gcc t: no root"]


@tap.case
def several_groups_of_cmocka_have_their_plans():
    assert said("1..1\nok 1 - a\n1..2\nok 1 - b\nok 2 - c\n", tap_protocol=False)[0] == (3, 0, 0)


@tap.case
def words_that_begin_like_a_case_are_none():
    assert said("okay\nnot okay\n", tap_protocol=False)[0] == (1, 0, 0)


@tap.case
def a_runner_hears_which_cases_are_wanted():
    assert played('echo 1..1; test "$TAP_ONLY" = "a b" && echo ok 1 - a b', only="a b")[0] == (1, 0, 0)


def played_again(script, again_max, failing=1):
    """What a script says that fails its first FAILING times; $N is the number of the time."""
    printed = io.StringIO()
    with checker() as one, contextlib.redirect_stdout(printed):
        one.again_left = again_max
        with tempfile.TemporaryDirectory() as place:
            one.test("gcc", [registered("t", f"echo >>{place}/n; N=$(wc -l <{place}/n); F={failing}; {script}")])
        check.summary(one)
        return one.tally.counts(), printed.getvalue()


AGAIN = 'echo 1..1; [ $N -gt $F ] || printf "not "; echo "ok 1 - a b:$TAP_ONLY"; [ $N -gt $F ]'


@tap.case
def a_case_that_passes_by_itself_counts_and_is_told_as_unsteady():
    counts, printed = played_again(AGAIN, 3)
    assert counts == (2, 0, 0), counts
    assert "failed  gcc t: a b:\n" in printed and "--- failed: gcc t\n" in printed, printed
    assert ("\nunsteady gcc t: a b:\n         failed beside others, passed by itself: "
            "dev/check --only 't: a b:'\n") in printed and "\nfailed   gcc" not in printed, printed


@tap.case
def a_case_that_fails_by_itself_has_failed():
    counts, printed = played_again(AGAIN, 3, 2)
    assert counts == (1, 1, 0) and "\nfailed   gcc t: a b:\n" in printed, printed
    assert "unsteady" not in printed, printed
    # Nothing that plays no case, and no crash, is a pass.
    assert played_again("echo 1..1; [ $N -gt 1 ] && exit; echo not ok 1 - a", 3)[0] == (1, 1, 0)
    bad = "echo 1..1; [ $N -gt 1 ] && exec echo ok 1 - a; echo not ok 1 - a; "
    assert played_again(bad, 3)[0] == (2, 0, 0)
    assert played_again(bad + "kill -SEGV $$", 3)[0] == (1, 1, 0)
    assert played_again(bad + "echo SUMMARY: AddressSanitizer: leak >&2", 3)[0] == (1, 1, 0)


@tap.case
def where_more_cases_failed_than_chance_explains_none_is_played_again():
    many = 'echo 1..2; [ $N -gt 1 ] && { echo ok 1 - a; echo ok 2 - b; exit; }; echo not ok 1 - a; echo not ok 2 - b'
    assert played_again(many, 1)[0] == (1, 2, 0)
    assert played_again(AGAIN, 0)[0] == (1, 1, 0)


@tap.case
def what_the_time_of_the_check_does_not_reach_is_skipped_with_the_reason():
    with checker() as one, contextlib.redirect_stdout(io.StringIO()):
        one.until = time.monotonic() + 1.5
        # The first says a case, and would wait for ever; the second, which wants to be alone, never begins.
        alone = registered("next", "echo 1..1; echo ok")
        alone.beside_others = False
        script = "echo 1..3; echo ok 1 - a; trap 'echo not ok 2 - b; exit 1' TERM; sleep 600 & wait"
        one.test("gcc", [registered("long", script), alone])
        assert one.tally.counts() == (2, 0, 2), (one.tally.counts(), one.tally.reasons)
        assert [reason.split(":")[0] for reason in one.tally.reasons] == ["gcc long, from case 2", "gcc next"]
        assert all("CHECK_UNTIL" in reason for reason in one.tally.reasons)
        one.layers = lambda: one.count("layers", True)
        check.run(one, ["layers"])
        assert one.tally.counts() == (2, 0, 3), one.tally.counts()


@tap.case
def the_end_of_a_check_is_a_time_of_the_clock():
    for word, good in (("", True), (str(int(time.time()) + 100), True), ("soon", False), ("-5", False)):
        os.environ[check.UNTIL_VARIABLE] = word
        try:
            until = check.read_until()
        except SystemExit as said_why:
            assert not good and word in str(said_why), said_why
        else:
            assert good and (until is None if not word else 90 < until - time.monotonic() < 110), until
        finally:
            del os.environ[check.UNTIL_VARIABLE]


@tap.case
def files_that_a_test_leaves_are_a_failure():
    counts, printed, _ = played('echo 1..1; echo ok 1 - a; : >"$TMPDIR/left"')
    assert counts == (0, 1, 0), counts
    assert "left" in printed, printed


@tap.case
def a_silent_test_is_heard_of_while_it_runs():
    check.TICK_SECONDS, before = 0.1, check.TICK_SECONDS
    try:
        printed = played("echo 1..2; echo ok 1 - a; sleep 3; echo ok 2 - b")[1]
    finally:
        check.TICK_SECONDS = before
    assert re.search(r"^ *0:\d\d gcc 0 of 1 tests; now t 1/2 [1-9]\d* s; 0 passed, 0 failed$", printed, re.MULTILINE), printed


@tap.case
def conformance_is_skipped_with_the_reason_where_npm_has_no_registry():
    test = registered("c", "echo 1..1; echo ok 1 - a")
    test.suites = ["conformance"]
    for code, counts in ((0, (3, 0, 0)), (check.NO_REGISTRY, (1, 0, 1)), (1, (2, 1, 0))):
        with checker() as one, contextlib.redirect_stdout(io.StringIO()):
            one.fetching = one.pool.submit(lambda code=code: (code, "no name"))
            one.test("gcc", [test])
            assert one.tally.counts() == counts, (code, one.tally.counts())
    assert "registry" in str(one.tally.reasons) or code == 1


@tap.case
def a_program_of_the_check_hears_interrupts_even_where_the_check_was_started_in_the_background():
    with tempfile.TemporaryDirectory() as temporary:
        os.makedirs(os.path.join(temporary, "dev"))
        for name in ("check", "suites.py"):
            shutil.copy(os.path.join(ROOT, "dev", name), os.path.join(temporary, "dev"))
        with open(os.path.join(temporary, "dev", "check-layers"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n! grep SigIgn /proc/self/status | grep -q '[2-7a-f]$'\n")
        os.chmod(file.name, 0o755)
        done = tap.run(["sh", "-c", "trap '' INT QUIT; exec dev/check layers"], cwd=temporary)
    assert done.stdout.endswith("\n1 passed, 0 failed, 0 skipped\n"), done.stdout


@tap.case
def a_test_of_another_name_is_offered():
    with checker() as one:
        one.built["gcc"] = None
        one.build = lambda name, *_, **__: True
        suites.registered, before = lambda _: [registered("cell-files", "")], suites.registered
        try:
            one.only(["cell-file"])
        except SystemExit as end:
            assert "no test 'cell-file'; near: cell-files" in str(end), end
        else:
            raise AssertionError("it was played")
        finally:
            suites.registered = before


@tap.case
def a_program_that_is_silent_where_words_are_expected_fails():
    with checker() as one, contextlib.redirect_stdout(io.StringIO()):
        assert not one.tool("t", ["true"], expect="word")
        assert not one.tool("t", ["sh", "-c", "echo word; exit 1"], expect="word")
        assert one.tool("t", ["echo", "word"], expect="word")
        assert one.tally.counts() == (1, 2, 0)
        assert one.tally.failures == [("t", "dev/check step")] * 2, one.tally.failures


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
            one = check.Checker(tempfile.mkdtemp(dir=temporary))
            one.environment["PATH"] = os.environ["PATH"]
            one.tidy_begin("build")
            one.tally.one("other", True)
            with contextlib.redirect_stdout(printed):
                one.tidy()
        finally:
            os.environ["PATH"] = before
            os.chdir(here)
        assert one.tally.counts() == (1, 1, 0), one.tally.counts()
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
