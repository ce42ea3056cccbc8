#!/usr/bin/env python3
"""Looks at what a watcher was told, beside the workspace as it is: commands of random changes in a session,
after each of which undo's list must be that of a walk, and in the end everything is undone.

usage: looks_test.py DEV PROGRAM [SEED ROUNDS]
"""
import glob
import http.server
import json
import os
import random
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402

PROGRAM = os.path.abspath(sys.argv[2])
ROUNDS, CHANGES = 30, 8
WAIT_S = 120
LEFT_S, TRIES = 10, 8
MANY = 10001
CLOSE_S = 8  # less than a session waits for a look that undo needs
HEADER, STATE = 8, 136
KINDS = {1: "file", 2: "link", 3: "folder", 4: "ignored"}


class Session:
    """An MCP server in WORK."""

    def __init__(self, root, work):
        self.root, self.work, self.number = root, work, 0
        self.environment = {**os.environ, "HOME": root, "XDG_STATE_HOME": os.path.join(root, "state"),
                            "XDG_CONFIG_HOME": os.path.join(root, "config")}
        self.process = subprocess.Popen([PROGRAM, "mcp"], cwd=work, env=self.environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "a test", "version": "1"}})

    def begin(self, tool, **arguments):
        self.send("tools/call", {"name": tool, "arguments": arguments})

    def send(self, method, params):
        self.number += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.number, "method": method,
                                             "params": params}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.send(method, params)
        return self.end()

    def end(self):
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.number:
                return answer["result"]

    def call(self, tool, **arguments):
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return "".join(part.get("text", "") for part in answer["content"])

    def bash(self, command):
        return self.call("bash", command=command)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(WAIT_S) == 0
        self.process.stdout.close()

    def undo(self, *words):
        return tap.run([PROGRAM, "undo", *words], cwd=self.work, env=self.environment)

    def rows(self):
        """{path: (kind, size)} of the list on the disk."""
        name, = glob.glob(self.root + "/state/glovebox/undo/*/*.list")
        with open(name, "rb") as file:
            text = file.read()
        found, at = {}, HEADER
        while at < len(text):
            size = int.from_bytes(text[at:at + 2], "little")
            state = text[at + 2:at + 2 + STATE]
            path = text[at + 2 + STATE:at + 2 + STATE + size].decode()
            length = int.from_bytes(state[16:24], "little")
            found[path] = KINDS[state[0]], length if KINDS[state[0]] == "file" else 0
            at += 2 + STATE + size
        return without_git(found)


def without_git(rows):
    return {path: row for path, row in rows.items() if path != ".git" and not path.startswith(".git/")}


def walk(work):
    """The same of the workspace itself."""
    found = {}
    for folder, folders, files in os.walk(work):
        for name in folders + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            kind = "folder" if stat.S_ISDIR(status.st_mode) else \
                "link" if stat.S_ISLNK(status.st_mode) else "file"
            found[os.path.relpath(path, work)] = kind, status.st_size if kind == "file" else 0
    return without_git(found)


def contents(work):
    """All that undo must bring back."""
    found = {}
    for path, (kind, _) in walk(work).items():
        whole = os.path.join(work, path)
        mode = stat.S_IMODE(os.lstat(whole).st_mode) if kind == "file" else 0
        if kind == "file":
            with open(whole, "rb") as file:
                found[path] = kind, mode, file.read()
        else:
            found[path] = kind, mode, os.readlink(whole) if kind == "link" else ""
    return found


def place(function):
    """The case FUNCTION with a folder of its own."""
    def play():
        with tempfile.TemporaryDirectory() as root:
            work = os.path.join(root, "work")
            os.mkdir(work)
            function(root, work)
    play.__name__ = function.__name__
    return tap.case(play)


def plant(work):
    for folder in ("a/b/c", "a/d", "e/f", "g"):
        os.makedirs(os.path.join(work, folder))
        for name in "xyz":
            with open(os.path.join(work, folder, name), "w", encoding="utf-8") as file:
                file.write(f"{folder}/{name}\n" * 3)


def change(chance, work):
    """A line of shell that changes something."""
    rows = {path: row for path, row in walk(work).items() if path != ".gitignore"}
    folders = [path for path, (kind, _) in rows.items() if kind == "folder"] or ["."]
    paths = list(rows) or ["x"]
    path, other = chance.choice(paths), chance.choice(paths)
    new = os.path.join(chance.choice(folders), f"n{chance.randrange(20)}")
    return chance.choice([
        f"echo {chance.random()} >{new}", f"echo {chance.random()} >>{path}", f"rm -rf {path}",
        f"mkdir -p {new}/p/q && echo {chance.random()} >{new}/p/q/r", f"mv -T {path} {new}",
        f"mv {path} {other}", f"cp -r {path} {new}", f"ln {path} {new}", f"ln -s {other} {new}",
        f"ln {path} {new} && echo {chance.random()} >{new}", f"[ -f {path} ] && chmod {chance.choice(['600', '755', '644'])} {path}",
        f"truncate -s {chance.randrange(100)} {path}", f"sed -i s/x/{chance.randrange(9)}/ {path}",
        f"mv -T {path} tmp && mkdir {path} && echo new >{path}/k; mv -T tmp {path}/old",
        f"mv -T {path} tmp && mv -T {other} {path} && mv -T tmp {other}",
        f"rm -rf {path} && mkdir {path} && touch {path}/{chance.randrange(9)}",
        f"touch -d '2001-01-0{chance.randrange(1, 9)}' {path}",
        f"python3 -c 'import mmap; f = open(\"{path}\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); f.close(); m[0:1] = b\"{chance.randrange(9)}\"'",
        f"mv {path} /tmp/away; echo {chance.random()} >>/tmp/away; mv /tmp/away {new}",
        "true",
    ])


def ways_unseen(path, new, other, text="more"):
    """Lines of shell that write PATH by another name of it, which is gone in the end. NEW and OTHER are free."""
    linked = f"ln {path} {new} && echo {text} >>{new} && "
    folder = f"mkdir {new} && ln {path} {new}/l && echo {text} >>{new}/l && "
    return [
        linked + f"rm {new}", linked + f"mv {new} {other} && rm {other}", linked + f"rm {new} && echo new >{new}",
        linked + f"mv {new} {other} && echo new >{new} && mv {new} {other}",
        linked + f"mkdir {other} && mv {new} {other} && rm -r {other}",
        linked + f"mkdir {other} && mv {new} {other} && rm {other}/*",
        folder + f"rm -r {new}", folder + f"mv {new} {other} && rm -r {other}",
        folder + f"mkdir {other} && mv {new} {other} && rm -r {other}",
    ]


def change_unseen(chance, work):
    rows = walk(work)
    path = chance.choice([path for path, (kind, _) in rows.items() if kind == "file"] or ["x"])
    folders = [path for path, (kind, _) in rows.items() if kind == "folder"] or ["."]
    new, other = (os.path.join(chance.choice(folders), name + str(chance.randrange(20))) for name in "lm")
    return chance.choice(ways_unseen(path, new, other, chance.random()))


def settled(session, oracle, may_stay=lambda path: False):
    """How the list differs from ORACLE, in the end; on a slow machine a look may end behind the answer."""
    end, there = time.monotonic() + WAIT_S, oracle()
    while True:
        listed = session.rows()
        differs = [("only listed", *row) for row in sorted(set(listed.items()) - set(there.items()))
                   if not may_stay(row[0])] + \
                  [("not listed", *row) for row in sorted(set(there.items()) - set(listed.items()))
                   if row[1][0] != "ignored" or row[0] not in listed]
        if not differs or time.monotonic() > end:
            return differs
        time.sleep(0.1)


def check_names(session, work, is_ignored=lambda name: False):
    """The search for names, which takes the list where it can, finds what a walk finds: the newest first."""
    there = []
    for path, (kind, _) in walk(work).items():
        if kind != "folder" and not any(map(is_ignored, path.split("/"))):
            there.append((-os.lstat(os.path.join(work, path)).st_mtime_ns, path))
    said = session.call("glob", pattern="**", limit=1000)
    found = said.partition("\n\n")[2].splitlines()
    assert found == [path for _, path in sorted(there)], (said, sorted(there))
    # The list is asked for one name otherwise than for many.
    for name in sorted({path.rpartition("/")[2] for _, path in there})[:3]:
        fitting = [path for _, path in sorted(there) if path.rpartition("/")[2] == name]
        said = session.call("glob", pattern=glob.escape(name), limit=1000)
        assert said.partition("\n\n")[2].splitlines() == fitting, (name, said, fitting)
    none, again = (session.call("glob", pattern="no such name" + end).partition(" entries looked at")
                   for end in ("", "{,s}"))
    assert none[1] and none[0].rpartition("(")[2] == again[0].rpartition("(")[2], (none, again)


def some_changes(chance, work):
    return "\n".join(f"( {change(chance, work)} ) 2>/dev/null" for _ in range(chance.randrange(1, CHANGES)))


def rounds(root, work, seed, count):
    chance = random.Random(seed)
    plant(work)
    before = contents(work)
    session = Session(root, work)
    session.bash("true")
    for number in range(count):
        command = change_unseen(chance, work) if number % 10 == 9 else some_changes(chance, work)
        session.bash(command)
        differs = settled(session, lambda: walk(work))
        assert not differs, (seed, number, command, differs)
        check_names(session, work)
    session.close()
    # What was found later is a step of its own.
    for _ in range(2 * count):
        undone = session.undo()
        if undone.returncode != 0:
            break
    assert "nothing to undo" in undone.stderr.lower(), (seed, undone)
    after = contents(work)
    assert after == before, (seed, sorted(set(after.items()) ^ set(before.items())))


GIT = ["git", "-c", "user.name=A", "-c", "user.email=a@localhost", "-c", "protocol.file.allow=always"]


def git(work, *words):
    return tap.run([*GIT, *words], cwd=work).stdout


def kept_in(work):
    """The workspace as a list has it. Git ignores all that begins with "ign", unless it is tracked."""
    tracked = set(git(work, "ls-files", "-z").split("\0"))
    found = {}
    for path, row in walk(work).items():
        names = path.split("/")
        if (path in tracked and row[0] != "folder") or not any(name.startswith("ign") for name in names):
            found[path] = row
        elif not any(name.startswith("ign") for name in names[:-1]):
            found[path] = "ignored", 0
    return found


def git_change(chance, work):
    if chance.random() < 0.6:
        return change(chance, work).replace("/n1", "/ign1")
    return chance.choice(["git add -A", "git add -f .", "git commit -qam x", "git checkout -q .", "git stash -q",
                          "git stash pop -q", "git status", "git rm -rq --cached a", "git reset -q --hard",
                          "git checkout -qb b$RANDOM", "git checkout -q master", "git gc -q",
                          "git clean -fdq", "echo 'ign*' >.gitignore", "git mv a/d moved"])


def rounds_in_git(root, work, seed, count):
    """The same in a repository, with changes of the user between the commands."""
    chance = random.Random(seed)
    plant(work)
    with open(os.path.join(work, ".gitignore"), "w", encoding="utf-8") as file:
        file.write("ign*\n")
    with open(os.path.join(root, ".gitconfig"), "w", encoding="utf-8") as file:
        file.write("[user]\nname = A\nemail = a@localhost\n[safe]\ndirectory = *\n")
    git(work, "init", "-qb", "master")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    session = Session(root, work)
    session.bash("true")
    for number in range(count):
        users, command = "", "\n".join(f"( {git_change(chance, work)} ) >/dev/null 2>&1"
                                       for _ in range(chance.randrange(1, CHANGES)))
        if chance.random() < 0.4:
            users = some_changes(chance, work)
            subprocess.run(["bash", "-c", users], cwd=work, check=False)
        session.bash(command)
        # A file that git tracks no more and rules ignore may stay in the list.
        differs = settled(session, lambda: kept_in(work),
                          lambda path: os.path.lexists(os.path.join(work, path)))
        assert not differs, (seed, number, users, command, differs)
        check_names(session, work, lambda name: name.startswith("ign"))
    session.close()


def play_seeds(first, count):
    for seed in range(first, first + count):
        for play in (rounds, rounds_in_git)[int(os.environ.get("ONLY", 0)):]:
            with tempfile.TemporaryDirectory() as top:
                os.mkdir(top + "/work")
                play(top, top + "/work", seed, ROUNDS)
        print("seed", seed, "well", flush=True)


if len(sys.argv) > 3:
    play_seeds(int(sys.argv[3]), int(sys.argv[4]))
    sys.exit(0)


@place
def after_any_change_the_list_is_that_of_a_walk_and_all_can_be_undone(root, work):
    rounds(root, work, 1, ROUNDS)


@place
def the_same_in_a_repository_beside_a_user(root, work):
    rounds_in_git(root, work, 1, ROUNDS)


def after_unseen_writes(root, work):
    """(session, command) for each way of an unseen write. The caller closes the session; then all is undone."""
    plant(work)
    before = contents(work)
    for command in ways_unseen("a/b/c/x", "a/new", "g/other"):
        session = Session(root, work)
        session.bash("true")
        session.bash(command)
        yield session, command
        assert contents(work) != before, command
        while session.undo().returncode == 0:
            pass
        assert contents(work) == before, command


@place
def a_change_by_a_name_that_is_gone_is_found_before_the_session_ends(root, work):
    for session, _ in after_unseen_writes(root, work):
        session.close()


@place
def it_is_found_before_a_file_tool_overwrites_it(root, work):
    for session, command in after_unseen_writes(root, work):
        there = contents(work)
        session.call("read_file", path="a/b/c/x")
        session.call("write_file", path="a/b/c/x", content="tool\n")
        session.close()
        assert contents(work) != there, command
        assert session.undo().returncode == 0 and contents(work) == there, command


@place
def it_is_found_when_nobody_calls_also_behind_a_look_that_took_long(root, work):
    plant(work)
    session = Session(root, work)
    session.bash("true")
    for first in ("true", "head -c 64M /dev/urandom >large"):
        session.bash(first)
        # Behind a slow look no call waits for the next one.
        session.bash("head -c 64M /dev/urandom >big; ln g/x new; echo more >>new; rm new")
        differs = settled(session, lambda: walk(work))
        assert not differs, differs
    session.close()


@place
def a_file_that_a_session_has_seen_ignored_stays_when_git_tracks_it(root, work):
    git(work, "init", "-q")
    with open(os.path.join(work, ".gitignore"), "w", encoding="utf-8") as file:
        file.write("ign*\n")
    session = Session(root, work)
    session.bash("true")
    session.bash("echo one >ign1; mkdir ignored; echo two >ignored/x")
    session.bash("git add -f ign1 ignored; echo new >new")
    session.bash("rm ign1; echo again >ign2; git add -f ign2; mkdir ign; echo in >ign/x; mv ign kept")
    session.close()
    titles = [json.loads(line)["title"] for line in session.undo("--list", "--json").stdout.splitlines()]
    assert [title.startswith("(not 2 files that had been ignored)") for title in titles] == [False, True], titles
    assert session.undo().returncode == 0
    assert set(walk(work)) == {".gitignore", "ign1", "ignored", "ignored/x", "new"}
    assert session.undo().returncode == 0 and session.undo().returncode == 1
    assert set(walk(work)) == {".gitignore", "ign1", "ignored", "ignored/x"}
    assert git(work, "ls-files") == ""


@place
def of_two_sessions_each_can_take_back_what_its_command_did(root, work):
    plant(work)
    before = contents(work)
    first, second = Session(root, work), Session(root, work)
    first.bash("true")
    second.bash("true")
    # The second looks while the command of the first is at work.
    first.begin("bash", command="echo new >a/d/x; rm e/f/y; while [ ! -e go ]; do sleep 0.05; done; rm go")
    while os.path.exists(os.path.join(work, "e/f/y")):
        time.sleep(0.05)
    second.bash("echo other >g/z")
    with open(os.path.join(work, "go"), "w", encoding="utf-8"):
        pass
    first.end()
    first.close()
    second.close()
    steps = [json.loads(line) for line in first.undo("--list", "--json").stdout.splitlines()]
    mine = [step["step"] for step in steps if "echo new" in step["title"]]
    assert len(mine) == 1, steps
    undone = first.undo()
    while undone.returncode == 0:
        undone = first.undo()
    assert contents(work) == before, (steps, undone)


@place
def names_are_searched_in_the_list_that_looks_keep(root, work):
    plant(work)
    searches = [{"calls": [{"tool": "glob", "arguments": {"pattern": "**", "limit": 50 + number}}]}
                for number in range(20)]
    first = {"calls": [{"tool": "bash", "arguments": {"command": "echo new >a/d/new; rm e/f/y"}}]}
    script = os.path.join(root, "script.json")
    with open(script, "w", encoding="utf-8") as file:
        # A look may end behind the answer of its command.
        json.dump({"turns": [first, {"calls": [{"tool": "bash", "arguments": {"command": "true"}}]},
                             *searches, {"text": "Done."}]}, file)
    ran = tap.run([PROGRAM, "run", "--json", "--model", f"replay:{script}", "search"], cwd=work,
                  env={**os.environ, "HOME": root, "XDG_STATE_HOME": os.path.join(root, "state"),
                       "XDG_CONFIG_HOME": os.path.join(root, "config")})
    ends = [event["details"] for event in map(json.loads, ran.stdout.splitlines())
            if event["event"] == "tool_ended" and event["tool"] == "glob"]
    there = {path for path, (kind, _) in walk(work).items() if kind != "folder"}
    assert len(ends) == 20 and all(set(end["paths"]) == there for end in ends), ran
    assert any(end["from_list"] for end in ends), ends


@place
def a_search_in_an_ignored_folder_says_which_files_fit_there(root, work):
    plant(work)
    git(work, "init", "-q")
    with open(os.path.join(work, ".gitignore"), "w", encoding="utf-8") as file:
        file.write("build\n")
    session = Session(root, work)
    session.bash("mkdir build; echo > build/a.o")
    assert not settled(session, lambda: kept_in_build(work))
    for pattern in ("build/*.o", "build/a.o", "*.o"):
        said = session.call("glob", pattern=pattern)
        assert "Among ignored files (.gitignore) these fit: build/a.o" in said, (pattern, said)
    session.close()


def kept_in_build(work):
    return {path: ("ignored", 0) if path == "build" else row for path, row in walk(work).items()
            if not path.startswith("build/")}


@place
def an_undo_while_a_command_runs_is_told_when_that_command_is_undone(root, work):
    plant(work)
    session = Session(root, work)
    session.bash("echo 2 >a/d/x")
    session.begin("bash", command="echo >begun; until [ -e go ]; do sleep 0.05; done; echo 3 >>a/d/x")
    while not os.path.exists(os.path.join(work, "begun")):
        time.sleep(0.05)
    undone = session.undo()
    assert undone.returncode == 0 and "a/d/x" in undone.stdout, undone
    with open(os.path.join(work, "go"), "w", encoding="utf-8"):
        pass
    session.end()
    session.close()
    steps = [json.loads(line) for line in session.undo("--list", "--json").stdout.splitlines()]
    number = max(step["step"] for step in steps if "echo 3" in step["title"])
    undone = session.undo(str(number))
    assert "with what others changed" in undone.stdout, (undone, steps)


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def watching_worker(session):
    """The process below the server that has an inotify instance, other than the server."""
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            pid = above = int(link.split("/")[2])
            if pid == session.process.pid or "inotify" not in os.readlink(link):
                continue
            while above > 1:
                above = parent(above)
                if above == session.process.pid:
                    return pid
        except OSError:
            pass  # it has just ended, or is somebody else's
    raise AssertionError("nobody watches")


def bash_unfollowed(session, work, name, count):
    """COUNT files made while nobody takes the kernel's notices: (was it so?, what was said of it)."""
    pid, made = watching_worker(session), os.path.join(work, name + "-made")
    os.kill(pid, signal.SIGSTOP)
    try:
        session.begin("bash", command=f"seq {count} | sed s/^/{name}-/ | xargs touch; touch {made}")
        end = time.monotonic() + LEFT_S
        # The worker may have been stopped in the look that this command waits for.
        while not os.path.exists(made) and time.monotonic() < end:
            time.sleep(0.05)
        unfollowed = os.path.exists(made)
    finally:
        os.kill(pid, signal.SIGCONT)
    said = "".join(part.get("text", "") for part in session.end()["content"])
    return unfollowed, said + session.bash("true")


@place
def when_more_changes_than_can_be_followed_all_is_looked_at_and_that_is_told_once(root, work):
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as file:
        count = int(file.read()) // 2
    plant(work)
    session = Session(root, work)
    session.bash("true")
    said = []
    for number in range(TRIES):
        unfollowed, text = bash_unfollowed(session, work, f"f{number}", count)
        said += [text] * unfollowed
        if len(said) == 2:
            break
    session.close()
    assert [text.count("more changed at once than could be followed") for text in said] == [1, 0], said
    assert session.rows() == walk(work)


def kill_watching_worker(session):
    pid = watching_worker(session)
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + WAIT_S
    while os.path.exists(f"/proc/{pid}/fd/0") and time.monotonic() < end:
        time.sleep(0.02)


@place
def another_worker_goes_on_with_the_list_on_the_disk(root, work):
    plant(work)
    before = contents(work)
    session = Session(root, work)
    session.bash("echo new >a/d/x")
    kill_watching_worker(session)
    assert "cannot be undone" not in session.bash("rm a/d/y; echo new >>a/d/x")
    assert not settled(session, lambda: walk(work))
    session.close()
    assert session.undo().returncode == 0 and session.undo().returncode == 0
    assert contents(work) == before


@place
def a_list_that_somebody_removes_stays_with_the_session_that_uses_it(root, work):
    plant(work)
    before = contents(work)
    session = Session(root, work)
    session.bash("true")
    # The first look may end behind the answer. Behind the second answer the session has its list.
    assert not settled(session, lambda: walk(work))
    session.bash("true")
    kill_watching_worker(session)
    for name in glob.glob(root + "/state/glovebox/undo/*/*.list"):
        os.remove(name)
    said = session.bash("echo new >a/d/x")
    assert "changed: 1 file" in said, said
    there = contents(work)
    assert "changed: 1 file" in session.bash("echo newer >a/d/x")
    session.close()
    assert session.undo().returncode == 0 and contents(work) == there
    assert session.undo().returncode == 0 and contents(work) == before


class Model:
    """A model service: each answer waits until the test lets it go."""

    def __init__(self, answers):
        self.asked = threading.Semaphore(0)
        self.goes = threading.Semaphore(0)
        answers, model = iter(answers), self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                model.asked.release()
                model.goes.acquire()
                body = json.dumps({"choices": [{"finish_reason": "stop", "message": next(answers)}]}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        for _ in range(LEFT_S):
            self.goes.release()
        self.server.shutdown()
        self.server.server_close()


class Run:
    """`glovebox run` on a terminal of its own, with a model of the test."""

    def __init__(self, root, work, answers):
        self.model = Model(answers)
        environment = {**os.environ, "HOME": root, "XDG_STATE_HOME": os.path.join(root, "state"),
                       "XDG_CONFIG_HOME": os.path.join(root, "config"), "TERM": "xterm", "GLOVEBOX_API_KEY": "k",
                       "GLOVEBOX_BASE_URL": f"http://127.0.0.1:{self.model.server.server_address[1]}/v1"}
        self.screen, terminal = os.openpty()
        self.process = subprocess.Popen([PROGRAM, "run", "--model", "m", "do it"], cwd=work, env=environment,
                                        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)
        os.close(terminal)
        self.text = ""

    def answer(self):
        assert self.model.asked.acquire(timeout=WAIT_S), self.text
        self.model.goes.release()

    def stop_watching(self):
        """The worker of the looks does nothing from now on: they never end."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            try:
                pid = watching_worker(self)
            except AssertionError:
                time.sleep(0.02)
                continue
            os.kill(pid, signal.SIGSTOP)
            return
        raise AssertionError("nobody watches: " + self.text)

    def read(self, until=None):
        end = time.monotonic() + WAIT_S
        while (until is None or until not in self.text) and time.monotonic() < end:
            if not select.select([self.screen], [], [], 1)[0]:
                continue
            try:
                self.text += os.read(self.screen, 65536).decode(errors="replace")
            except OSError:  # the program has ended
                break
        assert until is None or until in self.text, self.text
        return self.text

    def close(self):
        self.read()
        code = self.process.wait(WAIT_S)
        os.close(self.screen)
        self.model.close()
        return code


@place
def the_end_of_a_run_without_commands_waits_for_no_look(root, work):
    for number in range(MANY):
        with open(os.path.join(work, f"f{number}"), "w", encoding="utf-8"):
            pass
    run = Run(root, work, [{"content": "Nothing to do."}])
    assert run.model.asked.acquire(timeout=WAIT_S), run.text
    run.stop_watching()
    run.model.goes.release()
    run.read("Nothing to do.")
    began = time.monotonic()
    assert run.close() == 0, run.text
    assert time.monotonic() - began < CLOSE_S, run.text
    assert not glob.glob(root + "/state/glovebox/undo/*/*.list")


JOB = {"content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {
    "name": "bash", "arguments": json.dumps({"command": "echo new >made; exec sleep 300", "background": True})}}]}


@place
def the_end_that_undo_needs_is_told_and_ctrl_c_ends_it_without_a_step(root, work):
    run = Run(root, work, [JOB, {"content": "It runs."}])
    run.answer()
    assert run.model.asked.acquire(timeout=WAIT_S), run.text
    end = time.monotonic() + WAIT_S
    while not os.path.exists(os.path.join(work, "made")) and time.monotonic() < end:
        time.sleep(0.02)
    run.stop_watching()
    run.model.goes.release()
    run.read("saving what undo needs")
    os.kill(run.process.pid, signal.SIGINT)
    assert run.close() == 0, run.text
    assert "Undo cannot take back what a command has changed" in run.text and "(Ctrl+C)" in run.text, run.text
    undone = tap.run([PROGRAM, "undo"], cwd=work, env={**os.environ, "HOME": root,
                                                       "XDG_STATE_HOME": os.path.join(root, "state"),
                                                       "XDG_CONFIG_HOME": os.path.join(root, "config")})
    assert undone.returncode == 1 and os.path.exists(os.path.join(work, "made")), undone.stdout + undone.stderr


def configure(root, agent):
    folder = os.path.join(root, "config", "glovebox")
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"agents": {"default": agent}}, file)
    os.chmod(os.path.join(folder, "config.json"), 0o600)


@place
def a_look_that_cannot_log_all_it_was_told_says_so(root, work):
    configure(root, {"limits": {"file_size": "1M"}})
    session = Session(root, work)
    session.bash("true")
    said = session.bash(f"for i in $(seq 3000); do : >{'n' * 240}$i; done")
    session.close()
    assert "cannot be undone" in said and "added:" not in said, said


@place
def a_large_workspace_that_cannot_be_watched_is_named_once(root, work):
    os.mkdir(os.path.join(work, "build"))
    for number in range(MANY):
        with open(os.path.join(work, f"f{number}"), "w", encoding="utf-8"):
            pass
    configure(root, {"write": ["build"], "scratch": True})
    session = Session(root, work)
    said = "".join(session.bash("true") for _ in range(3))
    session.close()
    assert said.count("cannot be watched (a folder is thrown away in the end)") == 1, said
    shutil.rmtree(os.path.join(root, "config"))
    configure(root, {"limits": {"watches": 1}})
    session = Session(root, work)
    said = "".join(session.bash("true") for _ in range(3))
    session.close()
    assert said.count("cannot be watched (more folders than the 1 of limits.watches)") == 1, said


@place
def a_long_list_is_written_when_the_session_ends(root, work):
    for number in range(MANY):
        with open(os.path.join(work, f"f{number}"), "w", encoding="utf-8"):
            pass
    session = Session(root, work)
    session.bash("true")
    session.bash("echo x >f1; rm f2; echo new >n")
    assert "watched" not in session.bash("true")
    session.close()
    assert session.rows() == walk(work)
    # The next session begins with it, and each of its steps is its own.
    session = Session(root, work)
    assert "changed: 1 file" in session.bash("echo y >f3")
    session.close()
    for _ in range(2):
        assert session.undo().returncode == 0
    assert session.undo().returncode == 1
    assert all(size == 0 for _, size in walk(work).values()) and len(walk(work)) == MANY


if __name__ == "__main__":
    tap.play()
