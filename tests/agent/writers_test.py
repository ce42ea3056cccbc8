#!/usr/bin/env python3
"""Several writers: delegates that write side by side, each in a layer of its own, and what becomes of
the layers.

writers_test.py TAP_FOLDER GLOVEBOX
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, sys.argv[1])
from place import outside  # pylint: disable=wrong-import-position
import tap  # pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
TIMEOUT_S = 300
SANITIZERS = {name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name}
LINES = [f"line {number}" for number in range(1, 21)]
HANDS = ["read_file", "write_file", "edit_file", "bash"]


def bash(command, **more):
    return {"calls": [{"tool": "bash", "arguments": {"command": command, **more}}]}


def delegate(*agents):
    """One answer that gives a task to each of AGENTS."""
    return {"calls": [{"tool": "delegate_agent", "arguments": {"agent": agent, "task": f"Task of {agent}."}}
                      for agent in agents]}


class Place:
    """A workspace with `a.txt`, a state folder, and agents whose models are replays."""

    def __init__(self, root):
        self.root = root
        self.work, self.home = os.path.join(root, "work"), os.path.join(root, "home")
        os.mkdir(self.work)
        os.mkdir(self.home)
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.home, "LC_ALL": "C.UTF-8", **SANITIZERS}
        self.agents, self.more = {}, {}
        self.write("a.txt", "\n".join(LINES) + "\n")

    def write(self, name, text):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(os.path.join(self.work, name), encoding="utf-8") as file:
            return file.read()

    def has(self, name):
        return os.path.lexists(os.path.join(self.work, name))

    def git(self, *words):
        done = tap.run(["git", "-C", self.work, "-c", "user.name=T", "-c", "user.email=t@example.org", *words])
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def agent(self, name, turns, tools=None, **entry):
        """An agent that does TURNS; without tools in ENTRY it may do what writers do."""
        path = os.path.join(self.root, f"replay-{name}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"name": name, "turns": turns}, file)
        self.agents[name] = {"tools": tools or HANDS, "write": ["."], "model": "replay:" + path, **entry}

    def writer(self, name, *commands, **entry):
        """An agent that carries out COMMANDS, one per answer."""
        self.agent(name, [bash(command, timeout_s=100) for command in commands] + [{"text": f"{name} did."}],
                   **entry)

    def boss(self, *turns, writers=2, hands=True, **entry):
        limits = {"limits": {"writers": writers, **entry.pop("limits", {})}}
        self.agent("boss", [*turns, {"text": "All did."}], (HANDS if hands else []) + ["delegate_agent"],
                   **({} if hands else {"read": [], "write": []}), **limits, **entry)

    def config(self):
        path = os.path.join(self.root, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"agents": self.agents, **self.more}, file)
        return path

    def start(self, *words):
        return subprocess.Popen(
            [PROGRAM, "run", "-C", self.work, "--config", self.config(), "--agent", "boss", "--json", *words, "Go."],
            env=self.environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, code=0):
        """(events, standard error) of a run."""
        process = self.start(*words)
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == code, (process.returncode, err, out[-2000:])
        events = [json.loads(line) for line in out.splitlines()]
        if events[0].get("level", 3) < 3:
            raise tap.Skip("a cell has layers at level L3 only")
        return events, err

    def glovebox(self, *words, code=0):
        done = tap.run([PROGRAM, words[0], "-C", self.work, *words[1:]], env=self.environment, timeout=TIMEOUT_S)
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        return done.stdout

    def reviews(self):
        """The layers that there are: name -> state."""
        rows = [json.loads(line) for line in self.glovebox("review", "--list", "--json").splitlines()]
        return {row["id"]: row["state"] for row in rows}


@contextlib.contextmanager
def place():
    root = tempfile.mkdtemp(prefix="writers-", dir=outside())
    try:
        yield Place(root)
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", root], check=False)
        shutil.rmtree(root)


def results(events):
    """The results of delegate_agent, in the order in which they came."""
    return [event for event in events if event["event"] == "tool_ended" and event["tool"] == "delegate_agent"]


def children(events, kind):
    return [event for event in events if event["event"] == "child" and event["event_of"]["event"] == kind]


def span(events, agent):
    """When the first call of AGENT began and when the last one ended."""
    began = [event["event_of"]["time_ms"] for event in children(events, "tool_began") if event["agent"] == agent]
    ended = [event["event_of"]["time_ms"] for event in children(events, "tool_ended") if event["agent"] == agent]
    return min(began), max(ended)


def overlap(events, one, other):
    (a, b), (c, d) = span(events, one), span(events, other)
    return a < d and c < b


def outputs(events, agent):
    return "".join(event["event_of"]["text"] for event in children(events, "tool_ended") if event["agent"] == agent)


@tap.case
def two_work_at_the_same_time_and_see_nothing_of_each_other():
    with place() as here:
        look = "for i in $(seq 20); do sleep 0.05; ls; done"
        here.writer("one", f"echo half > one.txt; {look}", "echo one > one.txt")
        here.writer("two", f"echo half > two.txt; {look}", "echo two > two.txt")
        here.boss(delegate("one", "two"), bash("cat one.txt two.txt"))
        events, err = here.run()
        assert overlap(events, "one", "two")
        assert "two.txt" not in outputs(events, "one") and "one.txt" not in outputs(events, "two")
        assert "one.txt" in outputs(events, "one")
        texts = [result["text"] for result in results(events)]
        assert texts[0].startswith("one is done: landed 1 file.\n"), texts
        assert texts[1].startswith("two is done: landed 1 file.\n"), texts
        assert (here.read("one.txt"), here.read("two.txt")) == ("one\n", "two\n")
        assert [event["text"] for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][0] \
            .startswith("one\ntwo\n")
        assert set(here.reviews().values()) == {"landed"} and len(here.reviews()) == 2
        assert err == "", err
        landed = [event["event_of"] for event in children(events, "landed")]
        assert [event["files"] for event in landed] == [1, 1]
        named = {event["agent"]: event["review"] for event in children(events, "tool_began")}
        assert [named["one"], named["two"]] == [event["review"] for event in landed], (named, landed)


@tap.case
def with_one_writer_they_work_one_after_the_other_in_the_workspace():
    with place() as here:
        here.writer("one", "echo one > one.txt; sleep 0.3")
        here.writer("two", "cat one.txt; echo two > two.txt")
        here.boss(delegate("one", "two"), writers=1)
        events, _ = here.run()
        assert not overlap(events, "one", "two")
        assert outputs(events, "two").startswith("one\n")
        assert here.reviews() == {} and not children(events, "landed")
        assert all("review" not in event for event in events if event["event"] == "child")
        assert results(events)[0]["text"].startswith("one is done.\n")


@tap.case
def without_the_key_it_is_one_writer():
    with place() as here:
        here.writer("one", "sleep 0.3")
        here.writer("two", "true")
        here.boss(delegate("one", "two"))
        del here.agents["boss"]["limits"]
        events, _ = here.run()
        assert not overlap(events, "one", "two")


@tap.case
def the_third_of_two_waits_for_its_turn():
    with place() as here:
        for name in ("one", "two", "three"):
            here.writer(name, f"sleep 0.5; ls; echo {name} > {name}.txt")
        here.boss(delegate("one", "two", "three"))
        events, _ = here.run()
        assert overlap(events, "one", "two")
        spans = {name: span(events, name) for name in ("one", "two", "three")}
        assert spans["three"][0] >= min(spans["one"][1], spans["two"][1]), spans
        assert "one.txt" not in outputs(events, "three")
        assert [result["text"].split()[0] for result in results(events)] == ["one", "two", "three"]
        assert [here.read(f"{name}.txt") for name in ("one", "two", "three")] == ["one\n", "two\n", "three\n"]


@tap.case
def different_lines_of_one_file_are_joined():
    with place() as here:
        here.writer("one", "sed -i 's/^line 2$/two of one/' a.txt")
        here.writer("two", "sed -i 's/^line 18$/eighteen of two/' a.txt")
        here.boss(delegate("one", "two"))
        events, _ = here.run()
        lines = here.read("a.txt").splitlines()
        assert (lines[1], lines[17], len(lines)) == ("two of one", "eighteen of two", 20)
        assert results(events)[1]["text"].startswith("two is done: landed 1 file.\n")


@tap.case
def the_same_lines_are_a_conflict_of_that_file_alone():
    with place() as here:
        here.writer("one", "sed -i 's/^line 10$/ten of one/' a.txt; echo 1 > one.txt")
        here.writer("two", "sed -i 's/^line 10$/ten of two/' a.txt; echo 2 > two.txt; mkdir d; echo 3 > d/three")
        read = {"calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}]}
        here.boss(read, delegate("one", "two"), {"calls": [{"tool": "bash", "arguments": {
            "command": "cat /run/glovebox/layers/*/a.txt; echo x > /run/glovebox/layers/*/a.txt"}}]},
                  {"calls": [{"tool": "write_file", "arguments": {"path": "a.txt", "content": "all"}}]},
                  {"calls": [{"tool": "edit_file", "arguments": {
                      "path": "a.txt", "edits": [{"old": "ten of one", "new": "ten"}]}}]})
        events, err = here.run()
        text = results(events)[1]["text"]
        (review,) = [name for name, state in here.reviews().items() if state == "open"]
        assert re.match(
            r"two is done: landed \d files; 1 conflicts with what the delegate before it landed: "
            rf"a\.txt \(line 10\); its version is at review {review}, to be read at "
            rf"/run/glovebox/layers/{review}/a\.txt: edit the file, or delegate again with this text\.\n",
            text), [result["text"] for result in results(events)]
        assert (here.read("one.txt"), here.read("two.txt"), here.read("d/three")) == ("1\n", "2\n", "3\n")
        shown = [event["text"] for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][0]
        assert "ten of two" in shown and "ead-only file system" in shown, shown
        (whole,) = [event for event in events if event["event"] == "tool_ended" and event["tool"] == "write_file"]
        assert whole["status"] == "failed" and "read it" in whole["text"], whole
        (edit,) = [event for event in events if event["event"] == "tool_ended" and event["tool"] == "edit_file"]
        assert "The file holds other changes, made since you read it" in edit["text"], edit
        assert sorted(row["path"] for row in results(events)[1]["details"]["changed"]) == ["d/three", "two.txt"]
        assert results(events)[1]["details"]["landed"]["conflicts"] == [{"path": "a.txt", "lines": [10, 10]}]
        assert f"glovebox review {review} (two)" in err and len(err.splitlines()) == 1, err
        here.glovebox("land", "--id", review, "--theirs", "a.txt")
        assert "ten of two" in here.read("a.txt")


@tap.case
def a_conflict_behind_20000_landed_files_is_told():
    with place() as here:
        here.writer("one", "echo one > z.txt")
        here.writer("two", "echo two > z.txt; mkdir m; cd m; seq 20001 | split -l 1 -a 4 -")
        here.boss(delegate("one", "two"))
        events, _ = here.run()
        (two,) = [result for result in results(events) if result["text"].startswith("two is done: ")]
        assert two["text"].startswith("two is done: landed 20002 files; 1 conflicts with "), two["text"][:300]
        assert (two["details"]["landed"]["conflict_count"], two["details"]["landed"]["conflicts"]) == (
            1, [{"path": "z.txt"}]), two["details"]["landed"]
        assert here.read("z.txt") == "one\n" and len(os.listdir(os.path.join(here.work, "m"))) == 20001


@tap.case
def conflicts_with_very_long_names_are_told():
    with place() as here:
        folder = "/".join(["d" * 250] * 13)
        make = "echo {0} > {0}.txt; mkdir -p {1}; cd {1}; for i in $(seq 400); do echo {0} > f$i; done"
        for name in ("one", "two"):
            here.writer(name, make.format(name, folder))
        here.boss(delegate("one", "two"))
        events, _ = here.run()
        text, landed = results(events)[1]["text"], results(events)[1]["details"].get("landed")
        assert text.startswith("two is done: landed 1 file; 400 conflict with "), text[:300]
        assert (landed["conflict_count"], len(landed["conflicts"])) == (400, 10), landed["conflict_count"]
        assert here.read("two.txt") == "two\n" and "not in the workspace" not in text


@tap.case
def a_version_in_conflict_is_read_with_the_tool():
    with place() as here:
        here.writer("one", "echo one > a.txt")
        here.writer("two", "echo two > a.txt")
        here.boss(delegate("one", "two"), bash("ls /run/glovebox/layers"))
        events, _ = here.run()
        shown = [event["text"] for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][0]
        review = shown.split()[0]
        assert f"/run/glovebox/layers/{review}/a.txt" in results(events)[1]["text"]


@tap.case
def a_secret_of_a_version_in_conflict_has_a_mark():
    with place() as here:
        here.write(".env", "API_KEY=first01first02\n")
        here.writer("one", "echo API_KEY=one01one02one03 > .env")
        here.writer("two", "echo API_KEY=two01two02two03 > .env")
        here.boss(delegate("one", "two"), bash("cat /run/glovebox/layers/*/.env"))
        events, _ = here.run()
        shown = [event["text"] for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][-1]
        assert "API_KEY=‹secret:API_KEY-" in shown and "two02" not in shown, shown


@tap.case
def a_caller_without_hands_is_told_to_delegate_again():
    with place() as here:
        here.writer("one", "echo one > a.txt")
        here.writer("two", "echo two > a.txt")
        here.boss(delegate("one", "two"), hands=False)
        events, _ = here.run()
        assert here.read("a.txt") == "one\n"
        text = results(events)[1]["text"]
        assert text.startswith("two is done: nothing was landed; 1 conflicts with what the delegate before it "
                               "landed: a.txt"), text
        assert "delegate again with this text" in text and "/run/glovebox" not in text


@tap.case
def an_undo_takes_a_landed_delegate_back():
    with place() as here:
        here.writer("one", "echo one > one.txt; rm a.txt")
        here.writer("two", "echo two > two.txt")
        here.boss(delegate("one", "two"))
        here.run()
        assert not here.has("a.txt")
        here.glovebox("undo")
        assert not here.has("two.txt") and here.has("one.txt")
        here.glovebox("undo")
        assert not here.has("one.txt") and here.read("a.txt") == "\n".join(LINES) + "\n"


@tap.case
def a_layer_without_a_change_goes():
    with place() as here:
        here.writer("one", "cat a.txt")
        here.writer("two", "true")
        here.boss(delegate("one", "two"))
        events, err = here.run()
        assert here.reviews() == {} and err == ""
        assert sorted(result["text"].split("\n")[0] for result in results(events)) == \
            ["one is done.", "two is done."], \
            results(events)


@tap.case
def a_role_that_does_not_finish_lands_nothing():
    with place() as here:
        here.writer("one", "echo one > one.txt", "echo more >> one.txt", "true", limits={"iterations": 2})
        here.writer("two", "echo two > two.txt")
        here.boss(delegate("one", "two"))
        events, err = here.run()
        first = results(events)[0]
        (review,) = [name for name, state in here.reviews().items() if state == "open"]
        assert first["status"] == "failed" and "changed" not in first["details"], first
        assert f"What it wrote is not in the workspace: it is in review {review}, which a person lands or " \
               "drops.\n" in first["text"], first
        assert not here.has("one.txt") and here.read("two.txt") == "two\n"
        assert f"glovebox review {review} (one)" in err
        here.glovebox("drop", "--yes", "--id", review)


@tap.case
def one_that_has_done_its_work_lands_though_the_budget_is_used_up():
    with place() as here:
        # So many that landing them takes longer than one is given to end.
        files = [f"m/{number}" for number in range(1, 15001)]
        here.agent("one", [bash("mkdir m; seq -f m/%g 15000 | xargs touch"),
                           {"text": "one did.", "usage": {"input": 100, "output": 100}}])
        here.writer("two", "sleep 100")
        here.boss(delegate("one", "two"), limits={"tokens": 150})
        events, _ = here.run(code=3)
        told = [event["event_of"] for event in events if event["event"] == "child" and event.get("agent") == "one"]
        # Its answer uses the budget up; it has two seconds for the end of its turn from then on.
        if not any(event["event"] == "turn_ended" for event in told):
            assert list(here.reviews().values()).count("open") >= 1, told[-3:]
            raise tap.Skip("this machine took over two seconds for the end of a turn")
        (landed,) = [event for event in told if event["event"] == "landed"]
        assert all(map(here.has, files)), landed


def cancelled_by(number, here):
    here.writer("one", "echo one > one.txt", "echo begun; sleep 100")
    here.writer("two", "echo two > two.txt")
    here.boss(delegate("one", "two"))
    process = here.start()
    ended = set()
    for line in process.stdout:
        event = json.loads(line)
        inner = event.get("event_of", {})
        if inner.get("event") == "turn_ended" or "begun" in str(inner.get("text", "")) and \
                inner["event"] == "tool_output":
            ended.add(event["agent"])
        if ended == {"one", "two"}:
            break
    began = time.monotonic()
    process.send_signal(number)
    process.stdout.close()
    err = process.stderr.read()
    process.wait()
    assert not tap.is_late(time.monotonic() - began, 3)
    process.stderr.close()
    return err


@tap.case
def a_cancelled_run_leaves_the_layers_open():
    with place() as here:
        err = cancelled_by(signal.SIGINT, here)
        assert not here.has("one.txt") and not here.has("two.txt")
        assert sorted(here.reviews().values()) == ["open", "open"]
        assert err.count("glovebox review ") == 2 and "(one)" in err and "(two)" in err, err
        for review in here.reviews():
            here.glovebox("land", "--id", review)
        assert (here.read("one.txt"), here.read("two.txt")) == ("one\n", "two\n")


@tap.case
def a_killed_front_leaves_the_layers_and_no_process():
    with place() as here:
        cancelled_by(signal.SIGKILL, here)
        deadline = time.monotonic() + 60
        while tap.run(["pgrep", "-f", here.root]).stdout and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not here.has("one.txt") and not here.has("two.txt")
        assert sorted(here.reviews().values()) == ["open", "open"], here.reviews()
        for review in here.reviews():
            here.glovebox("land", "--id", review)
        assert (here.read("one.txt"), here.read("two.txt")) == ("one\n", "two\n")


@tap.case
def a_role_that_only_reads_has_no_layer():
    with place() as here:
        here.agent("reader", [{"calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}]}, {"text": "Read."}],
                   ["read_file"], write=[])
        here.writer("one", "echo one > one.txt")
        here.boss(delegate("reader", "one"))
        events, _ = here.run()
        assert all("review" not in event for event in events if event["event"] == "child"
                   and event["agent"] == "reader")
        assert len(here.reviews()) == 1 and here.read("one.txt") == "one\n"


@tap.case
def a_role_writes_where_it_may_in_its_layer_as_well():
    with place() as here:
        here.write("tests/t", "t\n")
        here.writer("one", "echo one > tests/t; echo no > a.txt", write=["tests"])
        here.writer("two", "echo two > b.txt")
        here.boss(delegate("one", "two"))
        events, _ = here.run()
        assert here.read("tests/t") == "one\n" and here.read("a.txt").startswith("line 1\n")
        assert "ead-only file system" in outputs(events, "one")


@tap.case
def commits_of_a_delegate_move_the_branch_and_those_of_the_next_wait_beside_it():
    with place() as here:
        here.git("init", "-q", "-b", "main")
        here.git("add", "-A")
        here.git("commit", "-q", "-m", "begin")
        commit = "git -c user.name=D -c user.email=d@example.org commit -qm "
        here.writer("one", f"echo one > one.txt; git add one.txt; {commit} one")
        here.writer("two", f"echo two > two.txt; git add two.txt; {commit} two")
        here.boss(delegate("one", "two"))
        events, _ = here.run()
        assert here.git("log", "--format=%s", "main").split() == ["one", "begin"], \
            [result["text"] for result in results(events)]
        (ref,) = here.git("for-each-ref", "--format=%(refname)", "refs/glovebox/", "--no-contains",
                          "main").split()
        assert here.git("log", "--format=%s", ref).split() == ["two", "begin"]
        assert f"git merge {ref}" in results(events)[1]["text"], results(events)[1]["text"]
        assert (here.read("one.txt"), here.read("two.txt")) == ("one\n", "two\n")
        assert here.git("fsck", "--strict") == ""


@tap.case
def what_a_hostile_delegate_plants_is_not_landed():
    with place() as here:
        here.git("init", "-q", "-b", "main")
        here.git("add", "-A")
        here.git("commit", "-q", "-m", "begin")
        before = {name: open(os.path.join(here.work, ".git", name), "rb").read() for name in ("config", "HEAD")}
        hooks = sorted(os.listdir(os.path.join(here.work, ".git/hooks")))
        beside = os.path.join(here.root, "beside")
        here.writer(
            "one",
            "echo '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; "
            "git config core.fsmonitor ./x; mkdir -p .claude; echo '{}' > .claude/settings.json; "
            "mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/post-checkout; echo '[core]' > sub/.git/config; "
            f"ln -s {beside} out; echo x > out/x; ln -s {beside} outside; ln -s ../../.. up; mkfifo pipe; "
            f"mv .git/config .git/old; echo fine > fine.txt; ln {here.work}/a.txt link; chmod 4755 fine.txt")
        here.writer("two", "echo two > outside; echo two > two.txt")
        here.boss(delegate("one", "two"))
        events, _ = here.run()
        assert {name: open(os.path.join(here.work, ".git", name), "rb").read() for name in before} == before
        assert sorted(os.listdir(os.path.join(here.work, ".git/hooks"))) == hooks
        assert not here.has(".claude/settings.json") and not here.has("sub/.git/config") and not here.has("pipe")
        assert not os.path.lexists(beside)
        assert here.read("fine.txt") == "fine\n" and here.read("two.txt") == "two\n"
        assert os.stat(os.path.join(here.work, "fine.txt")).st_mode & 0o7000 == 0
        assert "is not landed" in results(events)[0]["text"], results(events)[0]["text"]


@tap.case
def a_full_layer_ends_its_writer_and_no_other():
    with place() as here:
        here.writer("one", "head -c 300000 /dev/urandom > big", "echo more > more.txt", limits={"layer": "64K"})
        here.writer("two", "echo two > two.txt")
        here.boss(delegate("one", "two"))
        events, _ = here.run()
        assert "limits.layer is 64 KiB" in outputs(events, "one"), outputs(events, "one")
        assert not here.has("more.txt") and here.read("two.txt") == "two\n"
        assert os.path.getsize(os.path.join(here.work, "big")) == 300000


@tap.case
def a_layer_that_a_role_keeps_for_a_person_is_not_landed():
    with place() as here:
        here.writer("one", "echo one > one.txt", review=True)
        here.boss(delegate("one"))
        events, _ = here.run()
        assert not here.has("one.txt") and list(here.reviews().values()) == ["open"]
        text = results(events)[0]["text"]
        assert "which a person lands or drops" in text and "broke off" not in text, text


SERVER = """import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        result = {"protocolVersion": asked.get("params", {}).get("protocolVersion"), "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}} if asked["method"] == "initialize" else {"tools": []}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@tap.case
def with_a_server_of_the_configuration_they_work_one_after_the_other():
    with place() as here:
        here.write("server.py", SERVER)
        here.more = {"mcpServers": {"s": {"command": "python3", "args": [os.path.join(here.work, "server.py")]}}}
        here.writer("one", "echo one > one.txt; sleep 0.3")
        here.writer("two", "cat one.txt")
        here.boss(delegate("one", "two"))
        events, _ = here.run()
        assert not overlap(events, "one", "two") and outputs(events, "two").startswith("one\n")
        assert here.reviews() == {}


@tap.case
def a_run_in_a_layer_has_no_delegates():
    with place() as here:
        here.writer("one", "echo one > one.txt")
        here.boss(bash("echo boss > boss.txt"), delegate("one"))
        events, _ = here.run("--review")
        assert results(events)[0]["status"] == "denied", results(events)
        assert not here.has("one.txt") and not here.has("boss.txt")


@tap.case
def the_screen_names_the_layer_of_each_delegate_and_what_was_landed():
    with place() as here:
        here.writer("one", "echo one > a.txt")
        here.writer("two", "echo two > a.txt; echo two > two.txt")
        here.boss(delegate("one", "two"))
        done = tap.run([PROGRAM, "run", "-C", here.work, "--config", here.config(), "--agent", "boss", "Go."],
                       env=here.environment, timeout=TIMEOUT_S)
        (review,) = [name for name, state in here.reviews().items() if state == "open"]
        assert re.search(rf"delegate two .* review {review}", done.stdout), done.stdout
        assert f"Landed 1 file, 1 conflict of review {review}" in done.stdout, done.stdout


@tap.case
def the_limit_is_checked_and_shown():
    with place() as here:
        here.boss(writers=9)
        done = tap.run([PROGRAM, "run", "-C", here.work, "--config", here.config(), "--agent", "boss", "Go."],
                       env=here.environment)
        assert done.returncode != 0 and "/agents/boss/limits/writers: must be 1 to 8, not 9" in done.stderr, done.stderr
        here.boss(writers=3)
        shown = tap.run([PROGRAM, "agents", "show", "boss", "-C", here.work, "--config", here.config()],
                        env=here.environment).stdout
        assert re.search(r"^limits\.writers +3  \(configuration\)$", shown, re.M), shown


tap.play()
