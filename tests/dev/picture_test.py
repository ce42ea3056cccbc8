#!/usr/bin/env python3
"""picture_test ROOT GLOVEBOX: README's pictures are what the program shows, and dev/picture refuses
what no reader should see. TAP."""
import os
import sys
import tempfile

import tap

ROOT, GLOVEBOX = map(os.path.abspath, sys.argv[1:3])
PICTURE = os.path.join(ROOT, "dev", "picture")
SHOWN = ["in /tmp/other-each-time", "> mend it", "┌─ bash ───────────", "│ make test", "│ 0.1 s",
         "└──────────────────", "done"]


def shows(folder, lines):
    """A program that shows LINES."""
    path = os.path.join(folder, "program")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
    os.chmod(path, 0o755)
    return path


def drawn(lines, again=None):
    """What dev/picture says of a program that shows LINES, or of its picture when it shows AGAIN."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "p.svg")
        done = tap.run([PICTURE, shows(folder, lines), path])
        if again is not None:
            assert done.returncode == 0, done
            done = tap.run([PICTURE, "--check", shows(folder, again), path])
    return done


def replaced(old, new):
    return [line.replace(old, new) for line in SHOWN]


@tap.case
def the_demo_is_as_it_is_drawn():
    done = tap.run([PICTURE, "--check", GLOVEBOX, os.path.join(ROOT, "docs", "demo.svg")])
    assert done.returncode == 0, done.stdout + done.stderr


@tap.case
def the_conversation_is_as_it_is_drawn():
    done = tap.run([PICTURE, "--check", GLOVEBOX, os.path.join(ROOT, "docs", "chat.svg"), "chat"])
    assert done.returncode == 0, done.stdout + done.stderr


@tap.case
def the_review_is_as_it_is_drawn():
    done = tap.run([PICTURE, "--check", GLOVEBOX, os.path.join(ROOT, "docs", "review.svg"), "review"])
    assert done.returncode == 0, done.stdout + done.stderr


@tap.case
def seconds_and_what_stands_before_the_prompt_may_differ():
    assert drawn(SHOWN, SHOWN).returncode == 0
    assert drawn(SHOWN, replaced("0.1 s", "12.3 s")).returncode == 0
    assert drawn(SHOWN, replaced("other-each-time", "another")).returncode == 0


@tap.case
def any_other_difference_is_refused():
    for again in (replaced("make test", "make tests"), SHOWN[:-1], SHOWN + ["more"],
                  replaced("done", "\x1b[32mdone\x1b[0m")):
        done = drawn(SHOWN, again)
        assert done.returncode == 1 and "make it anew" in done.stderr, (again, done)


@tap.case
def what_no_reader_should_see_is_refused():
    for lines, why in ((replaced("done", "word " * 17), "broken by the terminal"),
                       (replaced("make test", "make " * 5), "wider than its frame"),
                       (replaced("> mend it", "mend it"), "there is no prompt")):
        done = drawn(lines)
        assert done.returncode == 1 and why in done.stderr, (lines, done)


tap.play()
