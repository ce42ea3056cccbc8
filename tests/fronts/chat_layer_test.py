#!/usr/bin/env python3
"""A conversation behind a real terminal that works in a layer: shown, landed, gone on with."""
import fcntl
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
import terminal  # noqa: E402
from chat import Chat, EDITS, GLOVEBOX, QUESTION, made, told  # noqa: E402


def run_in_a_layer():
    return terminal.Terminal(GLOVEBOX, "run", "--review", "--model", "replay:r.json", "write",
                             files={"r.json": json.dumps(EDITS)}, environment={"PAGER": "cat"})


def is_asked(tty, times):
    tty.wait_until(lambda: tty.screen.text().count(QUESTION) == times, f"asked {times} times")


@tap.case
def a_run_in_a_layer_asks_at_its_end():
    with run_in_a_layer() as tty:
        is_asked(tty, 1)
        assert "1 file added (8 B)" in tty.screen.text() and not made(tty, "new.txt")
        tty.type(b"what\r")
        is_asked(tty, 2)
        tty.type(b"d\r")
        is_asked(tty, 3)
        assert "+two" in tty.screen.text()
        # A landing is asked for once more, with what it does.
        tty.type(b"land\r")
        tty.wait_until(lambda: "1 file added (8 B)? [y/N]" in tty.screen.text(), "asked")
        tty.type(b"n\r")
        is_asked(tty, 4)
        assert "Nothing was landed." in tty.screen.text() and not made(tty, "new.txt")
        tty.type(b"l\ry\r")
        assert tty.end() == 0, tty.screen.text()
        assert "Landed review" in tty.screen.text()
        assert made(tty, "new.txt") and tty.is_as_before()


@tap.case
def the_diff_at_the_question_hides_nothing():
    content = "echo a\x1b]0; touch A; : \x07\ntouch b #\recho nice\u200b\n"
    script = {"name": "hidden", "turns": [
        {"calls": [{"tool": "write_file", "arguments": {"path": "a.sh", "content": content}}]},
        {"text": "Done."}]}
    with terminal.Terminal(GLOVEBOX, "run", "--review", "--model", "replay:r.json", "write",
                           files={"r.json": json.dumps(script)}, environment={"PAGER": "cat"}) as tty:
        is_asked(tty, 1)
        tty.type(b"d\r")
        is_asked(tty, 2)
        shown = tty.screen.text().rpartition("+++ b/a.sh")[2]
        assert "\n+echo a\\x1B]0; touch A; : \\x07\n" in shown, shown
        assert "\n+touch b #\\x0Decho nice\\xE2\\x80\\x8B\n" in shown, shown
        tty.type(b"\r")
        assert tty.end() == 0, tty.screen.text()


@tap.case
def a_run_in_a_layer_is_dropped_or_left_for_later():
    for keys, told in ((b"x\ry\r", "Dropped review"), (b"\r", ""), (b"later\r", ""),
                       (b"\x04", ""), (b"\x03", "")):
        with run_in_a_layer() as tty:
            is_asked(tty, 1)
            tty.type(keys)
            assert tty.end() == (-signal.SIGINT if keys == b"\x03" else 0), tty.screen.text()
            assert told in tty.screen.text() and tty.screen.text().count(QUESTION) == 1
            assert not made(tty, "new.txt") and tty.is_as_before()
            listed = subprocess.run([GLOVEBOX, "review", "--list"], cwd=tty.work, text=True,
                                    env=tty.variables, capture_output=True, check=True).stdout
            assert (" dropped " if told else " open ") in listed, listed


@tap.case
def the_layer_of_a_conversation_is_shown_landed_and_gone_on_with():
    script = {"name": "layer", "turns": [
        *({"calls": [{"tool": "bash", "arguments": {"command": f"echo {n} >> a; echo {n} > f{n}"}}]}
          if n % 2 == 0 else {"text": f"Turn {n}."} for n in range(8)),
        {"text": "You said: ${prompt}.", "repeat": True}]}
    with Chat(script, options=("--review",)) as tty:
        tty.type(b"/review\r")
        tty.shows("holds nothing that your folder does not hold.")
        tty.prompt()
        tty.type(b"/review land\r")
        tty.shows("The layer holds no change.")
        tty.prompt()
        tty.type(b"go\r")
        tty.shows("Turn 1.")
        tty.prompt()
        tty.type(b"/review --stat\r")
        tty.shows("f0  +1 -0")
        tty.prompt()
        assert "Somebody works" not in tty.screen.text()
        tty.command("/review --diff f0", "+0")
        tty.type(b"/review --json\r")
        tty.shows("and not --json.")
        tty.prompt()
        assert not made(tty, "a") and not made(tty, "f0")
        tty.type(b"\x0c/review land f0\r")
        tty.shows("! to the model: The person has landed a part of the layer")
        tty.prompt()
        assert not made(tty, "a") and made(tty, "f0")
        tty.type(b"\x0c/review land\r")
        tty.shows("! to the model: The person has landed the layer:")
        tty.prompt()
        assert made(tty, "a")
        # What was landed is below the new layer: nobody has changed it since.
        tty.type(b"\x0cgo on\r")
        tty.shows("Turn 3.")
        tty.prompt()
        assert open(os.path.join(tty.work, "a"), encoding="ascii").read() == "0\n"
        tty.command("/review land", "! to the model: The person has landed the layer:")
        assert open(os.path.join(tty.work, "a"), encoding="ascii").read() == "0\n2\n"
        tty.type(b"\x0cgo on\r")
        tty.shows("Turn 5.")
        tty.prompt()
        tty.type(b"/review drop\r")
        tty.shows("Throw away all that is in the layer? [y]es, [n]o?")
        time.sleep(terminal.DEAF_S)
        tty.type(b"n")
        tty.prompt()
        tty.type(b"\x0c/review --stat\r")
        tty.shows("f4  +1 -0")
        tty.prompt()
        tty.type(b"/review drop\r")
        tty.shows("[n]o?")
        time.sleep(terminal.DEAF_S)
        tty.type(b"y")
        tty.shows("! to the model: The person has thrown away the layer:")
        tty.prompt()
        tty.type(b"\x0cgo on\r")
        tty.shows("Turn 7.")
        tty.prompt()
        assert not made(tty, "f4") and not made(tty, "f6")
        tty.type(b"/review dr\t")
        tty.wait_until(lambda: tty.row() == "> /review drop", "completed")
        tty.type(b"\x15\x04")
        is_asked(tty, 1)
        tty.type(b"l\ry\r")
        assert tty.end() == 0, tty.screen.text()
        assert open(os.path.join(tty.work, "a"), encoding="ascii").read() == "0\n2\n6\n"
        assert made(tty, "f6") and not made(tty, "f4") and tty.is_as_before()


@tap.case
def an_undo_takes_what_a_delegate_landed_out_of_the_layer():
    one = {"name": "one", "turns": [
        {"calls": [{"tool": "bash", "arguments": {"command": "echo one > one.txt; echo one >> own.txt"}}]},
        {"text": "One did."}]}
    script = {"name": "layer", "turns": [
        {"calls": [{"tool": "bash", "arguments": {"command": "echo own > own.txt"}}]},
        {"calls": [{"tool": "delegate_agent", "arguments": {"agent": "one", "task": "Task."}}]},
        {"text": "Landed."}, {"text": "You said: ${prompt}.", "repeat": True}]}
    with tempfile.TemporaryDirectory(prefix="chat-") as folder:
        replay = os.path.join(folder, "one.json")
        with open(replay, "w", encoding="utf-8") as file:
            json.dump(one, file)
        config = {"agents": {
            "one": {"tools": ["bash"], "write": ["."], "model": f"replay:{replay}"},
            "boss": {"tools": ["bash", "delegate_agent"], "write": ["."]}}}
        with Chat(script, config=config, options=("--agent", "boss", "--review")) as tty:
            tty.type(b"go\r")
            tty.shows("Landed.")
            tty.prompt()
            tty.type(b"\x0c/review --stat\r")
            tty.shows("own.txt  +2 -0")
            tty.prompt()
            assert "one.txt" in tty.latest("> /review") and "land ──" not in tty.screen.text()
            tty.type(b"/undo\r")
            tty.shows("! to the model: The person has undone a step of yours:")
            tty.prompt()
            tty.type(b"\x0c/review --stat\r")
            tty.shows("own.txt  +1 -0")
            tty.prompt()
            assert "one.txt" not in tty.latest("> /review") and not made(tty, "own.txt")
            tty.type(b"\x04")
            is_asked(tty, 1)
            tty.type(b"\r")
            assert tty.end() == 0, tty.screen.text()
            # What the delegate had written is a review by itself again.
            listed = subprocess.run([GLOVEBOX, "review", "--list", "--json"], cwd=tty.work, text=True, check=True,
                                    env=tty.variables, stdout=subprocess.PIPE).stdout
            rows = [json.loads(line) for line in listed.splitlines()]
            assert sorted(row["state"] for row in rows) == ["open", "open"], rows
            assert ["over" in row for row in rows].count(True) == 1, rows


@tap.case
def a_conflict_lands_nothing_and_the_conversation_goes_on_in_its_layer():
    script = {"name": "layer", "turns": [
        {"calls": [{"tool": "bash", "arguments": {"command": "echo ours > a; echo b > b"}}]},
        {"text": "Written."}, {"text": "You said: ${prompt}.", "repeat": True}]}
    with Chat(script, options=("--review",)) as tty:
        tty.type(b"go\r")
        tty.shows("Written.")
        tty.prompt()
        with open(os.path.join(tty.work, "a"), "w", encoding="ascii") as file:
            file.write("mine\n")
        tty.type(b"\x0c/review land\r")
        tty.shows("Nothing was landed.")
        tty.prompt()
        assert not made(tty, "b")
        tty.type(b"\x0c/review land --theirs a\r")
        tty.shows("! to the model: The person has landed the layer:")
        tty.prompt()
        assert open(os.path.join(tty.work, "a"), encoding="ascii").read() == "ours\n"
        tty.leave()


def writes_then_echoes(*commands):
    """A script: each command in a turn of its own, then what the model was told."""
    turns = []
    for number, command in enumerate(commands):
        turns += [{"calls": [{"tool": "bash", "arguments": {"command": command}}]},
                  {"text": f"Turn {number}."}]
    return {"name": "layer", "turns": [*turns, {"text": "You said: ${prompt}.", "repeat": True}]}


@tap.case
def a_full_layer_that_could_not_be_landed_is_gone_on_with():
    script = writes_then_echoes(
        "head -c 300000 /dev/urandom > big; echo ours > a; ls big", "echo x > more", "true")
    script["turns"][4:6] = [
        {"calls": [{"tool": "read_file", "arguments": {"path": "a"}}]}, {"text": "Turn 2."}]
    config = {"agents": {"full": {"tools": ["bash", "read_file"], "write": ["."],
                                  "limits": {"layer": "64K"}}}}
    with Chat(script, options=("--review", "--agent", "full"), config=config) as tty:
        tty.type(b"go\r")
        tty.shows("Turn 0.")
        tty.prompt()
        with open(os.path.join(tty.work, "a"), "w", encoding="ascii") as file:
            file.write("mine\n")
        tty.type(b"\x0c/review land\r")
        tty.shows("Nothing was landed.")
        tty.shows("! to the model: The person wanted to land the layer")
        tty.prompt()
        tty.type(b"\x0c/review --stat\r")
        tty.shows("big")
        tty.prompt()
        # No call writes into it meanwhile, and its files are still those of the agent.
        tty.type(b"\x0cgo on\r")
        tty.shows("Turn 1.")
        tty.prompt()
        assert "limits.layer" in tty.screen.text(), tty.screen.text()
        tty.type(b"\x0c/review land --theirs a\r")
        tty.shows("! to the model: The person has landed the layer:")
        tty.prompt()
        assert open(os.path.join(tty.work, "a"), encoding="ascii").read() == "ours\n"
        assert made(tty, "big") and not made(tty, "more")
        tty.leave()


def landed_count(tty):
    try:
        return len(os.listdir(os.path.join(tty.work, "d")))
    except FileNotFoundError:
        return 0


@tap.case
def a_landing_that_is_stopped_is_told_and_the_conversation_goes_on():
    script = writes_then_echoes("mkdir d; cd d; echo '*' > .gitignore; "
                                "python3 -c 'for i in range(8000): open(str(i), \"w\").write(\"x\")'")
    with Chat(script, options=("--review",)) as tty:
        tty.type(b"go\r")
        tty.shows("Turn 0.")
        tty.prompt()
        for key in (b"\x03", b"\x1b"):
            before = landed_count(tty)
            tty.type(b"\x0c/review land\r")
            tty.wait_until(lambda least=before: landed_count(tty) > least, "landing")
            tty.type(key)
            tty.shows("! to the model: The person wanted to land the layer")
            tty.prompt()
            # The terminal breaks the sentence where it likes.
            told = "".join(tty.screen.text().split())
            assert "Thelandingisnotfinished" in told and "takesbackwhatis." in told, told
            assert landed_count(tty) < 8001
        tty.type(b"\x0c/review land\r")
        tty.shows("! to the model: The person has landed the layer:")
        tty.prompt()
        assert landed_count(tty) == 8001
        tty.leave()


@tap.case
def a_layer_that_cannot_be_taken_again_is_named():
    with Chat(writes_then_echoes("echo ours > a"), options=("--review",)) as tty:
        tty.type(b"go\r")
        tty.shows("Turn 0.")
        tty.prompt()
        listed = subprocess.run([GLOVEBOX, "review", "--list", "--json"], cwd=tty.work, text=True,
                                env=tty.variables, capture_output=True, check=True).stdout
        identity = json.loads(listed.splitlines()[0])["id"]
        lock, = glob.glob(os.path.join(tty.variables["HOME"], ".local/state/glovebox/review/*",
                                       identity, "lock"))
        # Another process waits for the layer and has it as soon as the conversation gives it up.
        with open(lock, encoding="ascii") as held:
            waiter = threading.Thread(target=fcntl.flock, args=(held, fcntl.LOCK_EX), daemon=True)
            waiter.start()
            tty.type(b"\x0c/review land\r")
            tty.shows("! to the model: The person wanted to land the layer")
            tty.prompt()
            waiter.join()
            told = " ".join(tty.screen.text().split())
            assert "You cannot go on in it" in told, told
            assert f"glovebox review {identity}" in told, told
        tty.type(b"\x0c/review land\r")
        tty.shows("The layer holds no change.")
        tty.prompt()
        tty.leave()


@tap.case
def what_may_not_be_landed_is_told_with_the_part_that_is():
    script = writes_then_echoes(
        "mkdir -p d/sub/.git/objects d/sub/.git/refs; echo a > d/a; echo b > b; "
        "echo 'ref: refs/heads/main' > d/sub/.git/HEAD")
    with Chat(script, options=("--review",)) as tty:
        tty.type(b"go\r")
        tty.shows("Turn 0.")
        tty.prompt()
        tty.type(b"\x0c/review land d\r")
        tty.shows("! to the model: The person has landed a part of the layer")
        tty.prompt()
        assert "some of it may not be landed" in " ".join(tty.screen.text().split())
        assert made(tty, "d/a") and not made(tty, "b") and not made(tty, "d/sub/.git")
        tty.type(b"\x15\x04")
        is_asked(tty, 1)
        tty.type(b"\r")
        assert tty.end() == 0, tty.screen.text()


@tap.case
def a_name_in_quotes_is_one_word_of_review():
    with Chat(writes_then_echoes("echo a > 'a b'; echo c > '#c'; echo d > d; echo e > $'e\\377'"),
              options=("--review",)) as tty:
        tty.type(b"go\r")
        tty.shows("Turn 0.")
        tty.prompt()
        for words, told in ((b"#c", "begins with # in quotes"), (b"'a b", "close the quote"),
                            (b"d;x", "in '…'")):
            tty.type(b"\x0c/review land " + words + b"\r")
            tty.shows(told)
            tty.prompt()
        assert not made(tty, "d") and not made(tty, "#c")
        tty.type(b"\x0c/review land 'a b' '#c' $'e\\377'\r")
        tty.shows("! to the model: The person has landed a part of the layer")
        tty.prompt()
        assert made(tty, "a b") and made(tty, "#c") and not made(tty, "d")
        assert os.path.exists(os.path.join(os.fsencode(tty.work), b"e\xff"))
        tty.type(b"\x15\x04")
        is_asked(tty, 1)
        tty.type(b"\r")
        assert tty.end() == 0, tty.screen.text()


@tap.case
def a_conversation_without_a_layer_says_so():
    with Chat() as tty:
        tty.type(b"/review\r")
        tty.shows("This conversation writes into the folder itself")
        tty.prompt()
        tty.leave()


tap.play()
