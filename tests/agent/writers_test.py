#!/usr/bin/env python3
"""Several writers: delegates that write side by side, each in a layer of its own, and what becomes of
the layers.

writers_test.py TAP_FOLDER GLOVEBOX
"""
import contextlib
import glob
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

    def upper(self, review):
        """The folder of the files that the layer REVIEW holds."""
        return glob.glob(os.path.join(self.home, f".local/state/glovebox/review/*/{review}/trees/0/upper"))[0]

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
        # A process that nobody waits for still lets the disk confirm the last layer.
        shutil.rmtree(root, ignore_errors=True)
        shutil.rmtree(root, ignore_errors=not os.path.exists(root))


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


@tap.plain_case
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


def wait_for_end(here):
    """Until no process of HERE is there any more."""
    deadline = time.monotonic() + 60
    while tap.run(["pgrep", "-f", here.root]).stdout and time.monotonic() < deadline:
        time.sleep(0.05)


def cancelled_by(number, here, *words, first=(), **boss):
    here.writer("one", "echo one > one.txt", "echo begun; sleep 100")
    here.writer("two", "echo two > two.txt")
    here.boss(*first, delegate("one", "two"), **boss)
    process = here.start(*words)
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
        wait_for_end(here)
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


def run_layer(here, events):
    """The name of the layer of a run whose delegates have been landed into it."""
    (own,) = [name for name, state in here.reviews().items() if state == "open"]
    assert own not in [event["event_of"]["review"] for event in children(events, "landed")]
    return own


@tap.case
def a_run_in_a_layer_lands_its_delegates_there():
    with place() as here:
        here.writer("one", "cat boss.txt; echo one > one.txt; sed -i 's/^line 2$/two of one/' a.txt; rm gone.txt",
                    "cat boss.txt one.txt")
        here.writer("two", "cat boss.txt one.txt; ls; echo two > two.txt")
        here.write("gone.txt", "gone\n")
        here.boss(bash("echo boss > boss.txt; echo more >> a.txt"), delegate("one"), delegate("two"),
                  bash("cat boss.txt one.txt two.txt; ls"), writers=1)
        events, err = here.run("--review")
        assert [result["text"].split(".\n")[0] for result in results(events)] == \
            ["one is done: landed 3 files", "two is done: landed 1 file"], results(events)
        assert outputs(events, "one").startswith("boss\n[") and "\nboss\none\n[" in outputs(events, "one")
        assert outputs(events, "two").startswith("boss\none\na.txt\nboss.txt\none.txt\n"), outputs(events, "two")
        last = [event for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][-1]
        assert last["text"].startswith("boss\none\ntwo\na.txt\nboss.txt\none.txt\ntwo.txt\n"), last["text"]
        assert sorted(os.listdir(here.work)) == ["a.txt", "gone.txt"] and here.read("a.txt").endswith("line 20\n")
        here.glovebox("land", "--id", run_layer(here, events))
        assert sorted(os.listdir(here.work)) == ["a.txt", "boss.txt", "one.txt", "two.txt"]
        assert here.read("a.txt").startswith("line 1\ntwo of one\n") and here.read("a.txt").endswith("more\n")
        assert err.startswith("Nothing of it is in your folder yet: ") and err.count("glovebox review ") == 1, err


@tap.case
def two_of_a_run_in_a_layer_work_side_by_side_and_are_joined_there():
    with place() as here:
        here.writer("one", "sed -i 's/^line 2$/two of one/' a.txt; sleep 0.5; ls")
        here.writer("two", "sed -i 's/^line 18$/eighteen of two/' a.txt; echo two > two.txt; sleep 0.5; cat boss.txt")
        here.boss(bash("sed -i 's/^line 10$/ten of boss/' a.txt; echo boss > boss.txt"), delegate("one", "two"),
                  bash("sed -n '2p;10p;18p' a.txt"))
        events, _ = here.run("--review")
        assert overlap(events, "one", "two") and outputs(events, "two").startswith("boss\n")
        assert "two.txt" not in outputs(events, "one") and "boss.txt" in outputs(events, "one")
        last = [event for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][-1]
        assert last["text"].startswith("two of one\nten of boss\neighteen of two\n"), last["text"]
        landed = [event["event_of"] for event in children(events, "landed")]
        assert [event["files"] for event in landed] == [1, 2] and [event["agent"] for event in children(
            events, "landed")] == ["one", "two"], landed
        assert os.listdir(here.work) == ["a.txt"] and here.read("a.txt").startswith("line 1\nline 2\n")
        here.glovebox("land", "--id", run_layer(here, events))
        assert "two of one" in here.read("a.txt") and "ten of boss" in here.read("a.txt")


@tap.case
def a_conflict_in_the_layer_of_a_run_is_told_and_read_there():
    with place() as here:
        here.writer("one", "sed -i 's/^line 10$/ten of one/' a.txt")
        here.writer("two", "sed -i 's/^line 10$/ten of two/' a.txt; echo 2 > two.txt")
        here.boss(bash("echo boss > boss.txt"), delegate("one", "two"),
                  bash("cat /run/glovebox/layers/*/a.txt; for f in /run/glovebox/layers/*/a.txt; do echo x > $f; done; "
                       "cat two.txt"))
        events, err = here.run("--review")
        text = results(events)[1]["text"]
        child = children(events, "landed")[1]["event_of"]["review"]
        assert text.startswith(
            "two is done: landed 1 file; 1 conflicts with what the delegate before it landed: a.txt (line 10); its "
            f"version is at review {child}, to be read at /run/glovebox/layers/{child}/a.txt: edit the file, or delegate "
            "again with this text.\n"), text
        last = [event for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][-1]["text"]
        assert "ten of two" in last and "ead-only file system" in last and "\n2\n" in last, repr(last)
        assert f"glovebox review {child} (two)" in err, err
        assert sorted(here.reviews().values()) == ["landed", "open", "open"]


@tap.case
def a_layer_over_an_open_one_is_looked_at_there_and_lands_behind_it():
    with place() as here:
        here.writer("one", "sed -i 's/^line 10$/ten of one/' a.txt")
        here.writer("two", "sed -i 's/^line 10$/ten of two/' a.txt")
        here.boss(bash("sed -i 's/^line 2$/two of boss/' a.txt"), delegate("one", "two"))
        events, _ = here.run("--review")
        one, child = [event["event_of"]["review"] for event in children(events, "landed")]
        (own,) = [name for name, state in here.reviews().items() if state == "open" and name != child]
        rows = {row["id"]: row for row in map(json.loads, here.glovebox("review", "--list", "--json").splitlines())}
        assert (rows[child]["over"], "over" in rows[own], rows[one]["over"]) == ([own], False, [own])
        assert f"over {own}\n" in here.glovebox("review", "--list")
        shown = json.loads(here.glovebox("review", child, "--json"))
        assert [(row["path"], row["class"]) for row in shown["changes"]] == [("a.txt", "conflict")], shown
        diff = here.glovebox("review", child, "--diff")
        assert "-ten of one\n" in diff and "+ten of two\n" in diff and "two of boss" not in diff, diff
        assert here.glovebox("review", child).startswith(
            f"Review {child} is over review {own}: this is what it changes there.\n")
        assert "two of boss" in here.glovebox("review", "--diff")  # without an ID: that of the run
        for words in (["--dry-run"], ["--yes"]):
            done = tap.run([PROGRAM, "land", "-C", here.work, "--id", child, *words], env=here.environment)
            assert done.returncode == 1 and done.stderr == \
                f"glovebox: Review {child} is over review {own}, which is open: what it holds are changes of that one. " \
                f"Land or drop {own} first.\n", done.stderr
        here.glovebox("land")
        assert here.reviews()[own] == "landed" and "ten of one" in here.read("a.txt")
        here.glovebox("land", "--id", child, code=1)
        here.glovebox("land", "--id", child, "--theirs", "a.txt")
        lines = here.read("a.txt").splitlines()
        assert (lines[1], lines[9]) == ("two of boss", "ten of two")


@tap.case
def a_layer_over_a_dropped_one_is_compared_with_the_folder():
    with place() as here:
        here.writer("one", "sed -i 's/^line 10$/ten of one/' a.txt; echo one > one.txt", review=True)
        here.boss(bash("sed -i 's/^line 2$/two of boss/' a.txt; echo boss > boss.txt"), delegate("one"))
        events, _ = here.run("--review")
        assert "which a person lands or drops" in results(events)[0]["text"] and not children(events, "landed")
        (child,) = {event["review"] for event in events if event.get("agent") == "one" and "review" in event}
        (own,) = [name for name in here.reviews() if name != child]
        here.glovebox("drop", "--yes", "--id", own)
        here.glovebox("land", "--id", child)
        lines = here.read("a.txt").splitlines()
        assert (lines[1], lines[9]) == ("line 2", "ten of one"), lines
        assert here.read("one.txt") == "one\n" and not here.has("boss.txt")


@tap.case
def a_person_goes_on_with_a_layer_over_an_open_one():
    with place() as here:
        here.writer("one", "echo one > one.txt", review=True)
        here.boss(bash("echo boss > boss.txt; rm a.txt"), delegate("one"))
        events, _ = here.run("--review")
        (child,) = {event["review"] for event in events if event.get("agent") == "one" and "review" in event}
        done = tap.run([PROGRAM, "exec", "-C", here.work, f"--review={child}", "--", "sh", "-c", "ls; echo x > x.txt"],
                       env=here.environment)
        assert done.stdout == "boss.txt\none.txt\n", (done.stdout, done.stderr)
        assert os.listdir(here.work) == ["a.txt"]


@tap.case
def delegates_of_delegates_land_one_into_the_other():
    with place() as here:
        here.writer("three", "cat boss.txt two.txt; rm two.txt; echo three > three.txt; mkdir d; echo 3 > d/three")
        here.agent("two", [bash("cat boss.txt; echo two > two.txt"), delegate("three"), bash("ls . d; rm -r d; mkdir d"),
                           {"text": "two did."}], HANDS + ["delegate_agent"])
        here.agent("one", [delegate("two"), bash("ls -a d; echo one >> three.txt"), {"text": "one did."}],
                   HANDS + ["delegate_agent"])
        here.boss(bash("echo boss > boss.txt"), delegate("one"), bash("cat three.txt; ls -a . d"), writers=1)
        events, _ = here.run("--review")
        assert outputs(events, "three").startswith("boss\ntwo\n"), outputs(events, "three")
        assert "a.txt\nboss.txt\nd\nthree.txt\n\nd:\nthree\n" in outputs(events, "two"), outputs(events, "two")
        assert [event["agent"] for event in children(events, "landed")] == ["three", "two", "one"]
        last = [event for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][-1]
        assert last["text"].startswith("three\none\n.:\n.\n..\na.txt\nboss.txt\nd\nthree.txt\n\nd:\n.\n..\n"), \
            last["text"]
        assert os.listdir(here.work) == ["a.txt"]
        here.glovebox("land", "--id", run_layer(here, events))
        assert sorted(os.listdir(here.work)) == ["a.txt", "boss.txt", "d", "three.txt"] and \
            here.read("three.txt") == "three\none\n" and os.listdir(os.path.join(here.work, "d")) == []


@tap.case
def a_delegate_in_a_layer_has_delegates_as_well():
    with place() as here:
        here.writer("three", "cat one.txt; echo three > three.txt")
        here.agent("one", [bash("echo one > one.txt"), delegate("three"), bash("cat three.txt"), {"text": "one did."}],
                   HANDS + ["delegate_agent"])
        here.writer("two", "echo two > two.txt; sleep 0.5")
        here.boss(delegate("one", "two"))
        events, _ = here.run()
        assert outputs(events, "three").startswith("one\n") and "three\n" in outputs(events, "one")
        assert sorted(os.listdir(here.work)) == ["a.txt", "one.txt", "three.txt", "two.txt"]
        assert set(here.reviews().values()) == {"landed"}


@tap.case
def one_that_only_delegates_lands_into_its_layer():
    with place() as here:
        here.writer("one", "echo one > one.txt")
        here.writer("two", "cat one.txt; rm a.txt")
        here.boss(delegate("one"), delegate("two"), hands=False, writers=1)
        events, _ = here.run("--review")
        assert outputs(events, "two").startswith("one\n"), outputs(events, "two")
        assert os.listdir(here.work) == ["a.txt"]
        here.glovebox("land", "--id", run_layer(here, events))
        assert os.listdir(here.work) == ["one.txt"]


@tap.case
def one_that_only_delegates_is_a_delegate_in_a_layer():
    with place() as here:
        here.write("tests/t", "t\n")
        here.writer("one", "echo one > one.txt; echo one > tests/t", "cat one.txt")
        here.agent("middle", [delegate("one"), {"text": "middle did."}], ["delegate_agent"], read=[], write=[])
        here.writer("two", "echo two > two.txt; sleep 0.5")
        here.agent("narrow", [delegate("middle"), {"text": "narrow did."}], HANDS + ["delegate_agent"],
                   read=["."], write=["tests"])
        here.boss(delegate("middle", "two"))
        events, _ = here.run()
        assert sorted(os.listdir(here.work)) == ["a.txt", "one.txt", "tests", "two.txt"], results(events)
        here.write("tests/t", "t\n")
        os.unlink(os.path.join(here.work, "one.txt"))
        here.boss(delegate("narrow", "two"))
        events, _ = here.run()
        assert here.read("tests/t") == "one\n" and not here.has("one.txt"), results(events)
        assert "ead-only file system" in outputs(events, "one"), outputs(events, "one")


@tap.case
def a_cancelled_or_killed_run_in_a_layer_leaves_what_is_over_it():
    for number in (signal.SIGINT, signal.SIGKILL):
        with place() as here:
            err = cancelled_by(number, here, "--review", first=[bash("echo boss > boss.txt")])
            wait_for_end(here)
            rows = [json.loads(line) for line in here.glovebox("review", "--list", "--json").splitlines()]
            (own,) = [row["id"] for row in rows if "over" not in row]
            above = [row["id"] for row in rows if row.get("over") == [own]]
            assert len(rows) == 3 and len(above) == 2 and {row["state"] for row in rows} == {"open"}, rows
            assert number == signal.SIGKILL or err.count("glovebox review ") == 3, err
            assert os.listdir(here.work) == ["a.txt"]
            here.glovebox("land")
            assert sorted(os.listdir(here.work)) == ["a.txt", "boss.txt"]
            for review in above:
                here.glovebox("land", "--id", review)
            assert sorted(os.listdir(here.work)) == ["a.txt", "boss.txt", "one.txt", "two.txt"]
            assert set(here.reviews().values()) == {"landed"}


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as file:
        return file.read().strip()


def children_of(pid):
    return [int(child) for child in tap.run(["pgrep", "-P", str(pid)]).stdout.split()]


@tap.case
def a_layer_over_one_that_holds_nothing_lands_by_itself():
    with place() as here:
        cancelled_by(signal.SIGKILL, here, "--review", hands=False)
        wait_for_end(here)
        rows = [json.loads(line) for line in here.glovebox("review", "--list", "--json").splitlines()]
        assert sorted("over" in row for row in rows) == [False, True, True], rows
        for _ in range(2):
            here.glovebox("land")
        assert sorted(os.listdir(here.work)) == ["a.txt", "one.txt", "two.txt"]
        assert sorted(here.reviews().values()) == ["landed", "landed", "open"]


@tap.case
def a_killed_delegate_leaves_its_layer_and_the_run_goes_on():
    with place() as here:
        here.writer("one", "echo one > one.txt", "kill -9 $PPID; echo begun; sleep 100")
        here.writer("two", "echo two > two.txt")
        here.boss(bash("echo boss > boss.txt"), delegate("one"), delegate("two"), bash("ls"), writers=1)
        process = here.start("--review")
        lines = []
        for line in process.stdout:
            lines.append(line)
            inner = json.loads(line).get("event_of", {})
            if inner.get("event") == "tool_output" and "begun" in inner.get("text", ""):
                (child,) = [pid for pid in children_of(process.pid) if name_of(pid) == "glovebox-delega"]
                os.kill(child, signal.SIGKILL)
        err = process.stderr.read()
        assert process.wait() == 0, err
        process.stdout.close()
        process.stderr.close()
        events = [json.loads(line) for line in lines]
        first, second = results(events)
        assert first["status"] == "failed" and "ended by signal 9" in first["text"], first
        assert "What it wrote is not in the workspace: it is in review " in first["text"], first
        assert second["text"].startswith("two is done: landed 1 file.\n"), second
        last = [event for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][-1]
        assert last["text"].startswith("a.txt\nboss.txt\ntwo.txt\n"), last
        assert sorted(here.reviews().values()) == ["landed", "open", "open"]
        here.glovebox("land")
        assert sorted(os.listdir(here.work)) == ["a.txt", "boss.txt", "two.txt"]
        here.glovebox("land")
        assert sorted(os.listdir(here.work)) == ["a.txt", "boss.txt", "one.txt", "two.txt"]


@tap.plain_case
def a_run_killed_or_cancelled_while_it_lands_leaves_each_file_old_or_new():
    files = [f"m/{number}" for number in range(1, 2001)]
    some = files[::100]
    for number, share in ((signal.SIGKILL, 0.1), (signal.SIGKILL, 0.9), (signal.SIGINT, 0.3)):
        with place() as here:
            here.writer("one", "cd m; for f in *; do echo new > $f; done; touch last")
            here.boss(bash("mkdir m; cd m; seq 2000 | xargs touch; for f in *; do echo old > $f; done"),
                      delegate("one"), writers=1)
            process = here.start("--review")
            for line in process.stdout:
                event = json.loads(line)
                if event.get("agent") == "one" and event["event_of"]["event"] == "turn_ended":
                    break
            (own,) = [row["id"] for row in map(json.loads, here.glovebox("review", "--list", "--json").splitlines())
                      if "over" not in row]
            upper = here.upper(own)
            deadline = time.monotonic() + 100
            while time.monotonic() < deadline and process.poll() is None and sum(open(
                    os.path.join(upper, name), encoding="ascii").read() == "new\n" for name in some) < \
                    share * len(some):
                time.sleep(0.002)
            began = time.monotonic()
            process.send_signal(number)
            process.communicate()
            assert not tap.is_late(time.monotonic() - began, 3)
            wait_for_end(here)
            assert os.listdir(here.work) == ["a.txt"]
            found = {open(os.path.join(upper, name), encoding="ascii").read() for name in files}
            assert found <= {"old\n", "new\n"}, found
            child, = [name for name in here.reviews() if name != own]
            here.glovebox("land", "--id", own)
            assert sorted(os.listdir(os.path.join(here.work, "m")))[:-1] == sorted(name[2:] for name in files) or \
                sorted(os.listdir(os.path.join(here.work, "m"))) == sorted(name[2:] for name in files)
            if here.reviews()[child] == "open":
                here.glovebox("land", "--id", child)
            assert {here.read(name) for name in files} == {"new\n"} and here.has("m/last")


@tap.case
def a_job_of_the_caller_is_seen_by_the_next_call_of_a_delegate():
    with place() as here:
        # Files of the folder that are written in place are seen at once, in each cell.
        here.write("begin", "no\n")
        here.write("ended", "no\n")
        wait = "until grep -q yes {}; do sleep 0.05; done"
        here.writer("one", f"cat job a.txt; echo asked; {wait.format('ended')}",
                    "cat job a.txt; cat a.txt > mine.txt; rm job")
        here.agent("boss", [{"calls": [{"tool": "bash", "arguments": {"background": True, "command": (
            f"{wait.format('begin')}; echo changed > a.new; mv a.new a.txt; echo job > job; sleep 100")}}]},
                            delegate("one"), {"text": "All did."}], HANDS + ["job", "delegate_agent"])
        process = here.start("--review")
        events = []
        for line in process.stdout:
            events.append(json.loads(line))
            inner = events[-1].get("event_of", {})
            if inner.get("event") == "tool_output" and "asked" in inner.get("text", ""):
                here.write("begin", "yes\n")
                (own,) = [row["id"] for row in map(json.loads, here.glovebox("review", "--list", "--json").splitlines())
                          if "over" not in row]
                upper = here.upper(own)
                while not os.path.exists(os.path.join(upper, "job")):
                    time.sleep(0.01)
                here.write("ended", "yes\n")
        err = process.stderr.read()
        assert process.wait() == 0, err
        process.stdout.close()
        process.stderr.close()
        told = outputs(events, "one")
        assert "cat: job: No such file" in told and "job\nchanged\n[exit" in told, told
        # The caller's job has changed it while the delegate worked: nobody knows whether it may go.
        assert results(events)[0]["text"].startswith(
            "one is done: landed 1 file; 1 conflicts with what is in the workspace now: job; "), results(events)
        here.glovebox("land", "--id", own)
        assert (here.read("a.txt"), here.read("mine.txt"), here.read("job")) == ("changed\n", "changed\n", "job\n")


@tap.case
def a_full_layer_takes_no_delegate_that_writes():
    with place() as here:
        here.writer("one", "echo one > one.txt")
        here.agent("reader", [{"calls": [{"tool": "read_file", "arguments": {"path": "a.txt"}}]}, {"text": "Read."}],
                   ["read_file"], write=[])
        here.boss(bash("head -c 300000 /dev/urandom > big"), delegate("one"), delegate("reader"),
                  limits={"layer": "64K"})
        events, _ = here.run("--review")
        assert results(events)[0]["status"] == "denied" and "limits.layer is 64 KiB" in results(events)[0]["text"]
        assert results(events)[1]["text"].startswith("reader is done.\n"), results(events)


@tap.case
def commits_of_a_delegate_move_the_branch_in_the_layer_of_a_run():
    with place() as here:
        here.git("init", "-q", "-b", "main")
        here.git("add", "-A")
        here.git("commit", "-q", "-m", "begin")
        commit = "git -c user.name=D -c user.email=d@example.org commit -qm "
        here.writer("one", f"echo one > one.txt; git add one.txt; {commit} one; git log --format=%s")
        here.writer("two", f"echo two > two.txt; git add two.txt; {commit} two; git log --format=%s")
        here.boss(bash(f"echo boss > boss.txt; git add boss.txt; {commit} boss"), delegate("one"), delegate("two"),
                  bash("git log --format=%s; git status --short; git fsck --strict"), writers=1)
        events, _ = here.run("--review")
        assert outputs(events, "one").startswith("one\nboss\nbegin\n"), outputs(events, "one")
        assert outputs(events, "two").startswith("two\none\nboss\nbegin\n"), (outputs(events, "two"), results(events))
        last = [event for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][-1]
        assert last["text"].startswith("two\none\nboss\nbegin\n["), (last["text"], results(events))
        assert here.git("log", "--format=%s") == "begin"
        here.glovebox("land", "--id", run_layer(here, events))
        assert here.git("log", "--format=%s").split() == ["two", "one", "boss", "begin"]
        assert here.git("status", "--short") == "" and here.git("fsck", "--strict") == ""


@tap.case
def what_a_hostile_delegate_plants_is_not_in_the_layer_of_its_caller():
    with place() as here:
        here.git("init", "-q", "-b", "main")
        here.git("add", "-A")
        here.git("commit", "-q", "-m", "begin")
        beside = os.path.join(here.root, "beside")
        here.writer(
            "one",
            "echo '#!/bin/sh' > .git/hooks/pre-commit; git config core.fsmonitor ./x; mkdir -p .claude; "
            "echo '{}' > .claude/settings.json; mkdir -p sub/.git/hooks; echo x > sub/.git/hooks/post-checkout; "
            f"echo '[core]' > sub/.git/config; ln -s {beside} out; echo x > out/x; ln -s ../../.. up; mkfifo pipe; "
            "echo x > /run/glovebox/layers/x; setfattr -n user.overlay.opaque -v y sub; echo fine > fine.txt")
        here.boss(bash("echo boss > boss.txt"), delegate("one"),
                  bash("ls -a . .git/hooks; find sub .claude; cat .git/config"))
        events, _ = here.run("--review")
        last = [event for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][-1]["text"]
        for name in ("pre-commit\n", "fsmonitor =", "settings.json\n", "hooks\n", "pipe"):
            assert name not in last.replace(".git/hooks:\n", ""), (name, last)
        assert "fine.txt" in last and not os.path.lexists(beside)
        assert "is not landed" in results(events)[0]["text"], results(events)[0]["text"]


@tap.case
def a_layer_over_a_layer_without_a_change_goes():
    with place() as here:
        here.writer("one", "cat a.txt boss.txt")
        here.boss(bash("echo boss > boss.txt"), delegate("one"))
        events, err = here.run("--review")
        assert results(events)[0]["text"].startswith("one is done.\n"), results(events)
        assert list(here.reviews().values()) == ["open"] and err.count("glovebox review") == 1, err


@tap.case
def rights_hold_in_a_layer_over_a_layer():
    with place() as here:
        here.write("tests/t", "t\n")
        here.write("docs/d", "d\n")
        here.writer("one", "cat tests/t; echo one > tests/t; mkdir tests/deep; echo 1 > tests/deep/1; echo no > a.txt; "
                    "cat docs/d new/n; echo no > docs/d; mv tests other", write=["tests"], read=["."])
        here.writer("two", "cat new/n tests/t; echo two > new/n; echo no > docs/d", write=["."], read=["docs"])
        here.writer("three", "cat new/n; rm new/n; echo 3 > new/three; ls; touch no", write=["new"], read=["."])
        here.writer("four", "cat docs/d new/three; echo temporary > docs/d; cat docs/d; ls new", write=["new"],
                    read=["."], scratch=True)
        here.boss(bash("echo boss > tests/t; echo boss > docs/d; mkdir new; echo boss > new/n"),
                  delegate("one"), delegate("two"), delegate("three"), delegate("four"),
                  bash("cat tests/t docs/d new/three a.txt; ls . new"), writers=1)
        events, _ = here.run("--review")
        assert outputs(events, "one").startswith("boss\nboss\nboss\n"), outputs(events, "one")
        assert outputs(events, "two").startswith("boss\none\n"), outputs(events, "two")
        assert outputs(events, "three").startswith("two\na.txt\ndocs\nnew\ntests\n"), (
            outputs(events, "three"), results(events)[2])
        assert outputs(events, "four").startswith("boss\n3\ntemporary\nthree\n"), outputs(events, "four")
        for name in ("one", "two", "three"):
            assert "ead-only file system" in outputs(events, name), outputs(events, name)
        last = [event for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"][-1]
        assert last["text"].startswith("one\nboss\n3\nline 1\n") and \
            "a.txt\ndocs\nnew\ntests\n\nnew:\nthree\n" in last["text"], last["text"]
        assert (here.read("tests/t"), here.read("docs/d"), here.has("new")) == ("t\n", "d\n", False)


@tap.case
def one_that_only_reads_sees_the_layer_of_its_caller():
    with place() as here:
        here.write("d/old", "old\n")
        here.agent("reader", [{"calls": [{"tool": "read_file", "arguments": {"path": path}} for path in
                                         ("boss.txt", "d/new", "d/old", "a.txt")]}, {"text": "Read."}],
                   ["read_file"], write=[])
        here.boss(bash("echo boss > boss.txt; rm -r d; mkdir d; echo new > d/new; echo more >> a.txt"),
                  delegate("reader"), bash("echo again > boss.txt"), delegate("reader"))
        events, _ = here.run("--review")
        texts = sorted(event["event_of"]["text"] for event in children(events, "tool_ended"))
        for text in ("1\tboss\n", "1\tagain\n", "1\tnew\n", "\tmore\n", "d/old does not exist"):
            assert any(text in one for one in texts), (text, texts)
        assert len(here.reviews()) == 1 and here.read("d/old") == "old\n"


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


tap.play(PROGRAM)
