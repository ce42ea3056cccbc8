#!/usr/bin/env python3
"""Sessions that go on after their program was killed, at every moment of a scripted run; and what
a project tells agents, well-meant or not.

sessions_test.py TAP_FOLDER GLOVEBOX SERVER: the model is tests/fake/model_server.py, which finds
its place by what the conversation holds.
"""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, sys.argv[1])
import tap  # pylint: disable=wrong-import-position

PROGRAM, SERVER = map(os.path.abspath, sys.argv[2:4])
TIMEOUT_S = 300
MOMENTS = 16  # spread over the time of a run, beside one at each line that it prints
STEPS = ("echo first >> log.txt", "echo second >> log.txt")


def call(name, tool, **arguments):
    return {"id": name, "tool": tool, "arguments": arguments}


SCRIPT = [
    {"text": "I look.", "calls": [call("r1", "read_file", path="a.txt")]},
    {"calls": [call("b1", "bash", command=STEPS[0])]},
    {"calls": [call("e1", "edit_file", path="a.txt", edits=[{"old": "one", "new": "two"}]),
               call("r2", "read_file", path="a.txt"), call("r3", "list_files", path="."),
               call("b2", "bash", command=STEPS[1])]},
    {"text": "All is done."},
]


def sanitizers():
    return {name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name}


class Server:
    """The model, for the time of one case."""

    def __init__(self, root, answers, **more):
        path = os.path.join(root, "script.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"answers": answers, "by_history": True, **more}, file)
        self.process = subprocess.Popen([sys.executable, SERVER, "--script", path],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(TIMEOUT_S)
        self.process.stdout.close()

    def requests(self):
        with urllib.request.urlopen(self.url + "/requests") as answer:
            return [request["body"] for request in json.load(answer)]


class Place:
    """A workspace, a state folder, and the program in them."""

    def __init__(self, root, server):
        self.root = root
        self.workspace = os.path.join(root, "work")
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": root, "LC_ALL": "C.UTF-8",
            "XDG_STATE_HOME": os.path.join(root, "state"), "GLOVEBOX_MODEL": "fake",
            "GLOVEBOX_BASE_URL": server.url + "/v1", "OPENAI_API_KEY": "none", **sanitizers()}
        self.renew()

    def renew(self):
        for name in ("work", "state"):
            shutil.rmtree(os.path.join(self.root, name), ignore_errors=True)
        os.mkdir(self.workspace)
        self.write("a.txt", "one\n")

    def write(self, name, text):
        with open(os.path.join(self.workspace, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        try:
            with open(os.path.join(self.workspace, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def start(self, *words):
        return subprocess.Popen([PROGRAM, *words], env=self.environment, cwd=self.workspace,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, *words):
        process = self.start(*words)
        out, err = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, out, err

    def begin(self):
        return self.start("run", "--json", "Do the task.")

    def resume(self, *words, name="last"):
        return self.run("run", "--json", "--resume", name, *words, "Go on.")

    def events(self):
        path = os.path.join(self.root, "state", "glovebox", "sessions.db")
        if not os.path.exists(path):
            return []
        database = sqlite3.connect(path)
        try:
            return [json.loads(row[0])
                    for row in database.execute("SELECT json FROM event ORDER BY number")]
        except sqlite3.OperationalError:
            return []  # killed before there was a table
        finally:
            database.close()

    def change_events(self, how, *arguments):
        database = sqlite3.connect(os.path.join(self.root, "state", "glovebox", "sessions.db"))
        database.execute("DROP TRIGGER event_stays")
        database.execute("UPDATE event SET " + how, arguments)
        database.commit()
        database.close()


def case(answers, plain=False, **more):
    """The case FUNCTION with a server of ANSWERS and a place of its own. PLAIN: see tap.plain_case."""
    def wrap(function):
        def play():
            with tempfile.TemporaryDirectory() as root, Server(root, answers, **more) as server:
                function(Place(root, server), server)
        play.__name__ = function.__name__
        return (tap.plain_case if plain else tap.case)(play)
    return wrap


def end(process):
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=TIMEOUT_S)


def kill_at_line(process, number):
    """Once its line NUMBER has come; True when there was one."""
    for at, _ in enumerate(process.stdout, 1):
        if at == number:
            end(process)
            return True
    process.communicate(timeout=TIMEOUT_S)
    return False


def check_record(events):
    numbers = [event["n"] for event in events]
    assert numbers == list(range(1, len(numbers) + 1)), numbers
    asked = [part["call"] for event in events if event["event"] == "message"
             for part in event["parts"] if part["kind"] == "call"]
    began = [event["call"] for event in events if event["event"] == "tool_began"]
    ended = [event["call"] for event in events if event["event"] == "tool_ended"]
    assert len(set(asked)) == len(asked), asked
    assert len(set(began)) == len(began), f"begun twice: {began}"
    assert len(set(ended)) == len(ended), f"answered twice: {ended}"
    assert set(asked) | set(began) == set(ended), (asked, began, ended)


def check_effects(place, events):
    """What the record says of the commands is what has become of them."""
    log = place.read("log.txt").split()
    commands = {part["call"]: json.loads(part["arguments"])["command"]
                for event in events if event["event"] == "message"
                for part in event["parts"]
                if part["kind"] == "call" and part["tool"] == "bash"}
    for event in events:
        if event["event"] != "tool_ended" or event["call"] not in commands:
            continue
        times = log.count(commands[event["call"]].split()[1])
        if event["status"] == "done":
            assert times == 1, f"{times} times, though it is done: {event}"
        elif event["text"].startswith("Not run"):
            assert times == 0, f"{times} times, though it was not run: {event}"
        else:
            assert event["text"].startswith("No result") and times <= 1, (times, event)


def check_sent(request):
    """Each call is followed by its results, in its order, and there is no other result."""
    due = []
    for message in request["messages"]:
        if message["role"] == "tool":
            assert due and message["tool_call_id"] == due.pop(0), request["messages"]
            assert message["content"].strip(), message
            continue
        assert not due, f"no result for {due}: {request['messages']}"
        due = [made["id"] for made in message.get("tool_calls", [])]
    assert not due, request["messages"]


def check_whole(place, server, code, err):
    assert code == 0, err
    events = place.events()
    check_record(events)
    check_effects(place, events)
    for request in server.requests():
        check_sent(request)
    assert events[-1]["event"] == "turn_ended" and events[-1]["reason"] == "stopped", events[-1]
    said = [part["text"] for event in events if event["event"] == "message"
            for part in event["parts"] if part["kind"] == "text"]
    assert said[-1] == "All is done.", said


@case(SCRIPT, plain=True, repeat_last=True)
def killed_at_each_line_it_comes_to_the_same_end(place, server):
    number, kills = 0, 0
    while True:
        number += 1
        place.renew()
        if not kill_at_line(place.begin(), number):
            break
        assert place.events(), "what was shown is not in the journal"
        code, _, err = place.resume()
        check_whole(place, server, code, err)
        kills += 1
    assert kills > len(SCRIPT) * 3, f"only {kills} moments"


@case(SCRIPT, plain=True, repeat_last=True)
def killed_at_any_time_it_comes_to_the_same_end(place, server):
    began = time.monotonic()
    place.begin().communicate(timeout=TIMEOUT_S)
    takes_s = time.monotonic() - began
    for moment in range(MOMENTS):
        place.renew()
        process = place.begin()
        try:
            process.communicate(timeout=takes_s * (moment + 1) / (MOMENTS + 1))
        except subprocess.TimeoutExpired:
            end(process)
        if not place.events():
            code, _, err = place.resume()
            # It may have begun and recorded nothing yet.
            if code == 0:
                continue
            assert code == 1 and "no session" in err, (code, err)
            continue
        code, _, err = place.resume()
        check_whole(place, server, code, err)


@case(SCRIPT, repeat_last=True)
def killed_again_while_it_goes_on_it_still_comes_to_the_same_end(place, server):
    for number in (1, 2, 4, 8):
        place.renew()
        assert kill_at_line(place.begin(), 9)
        kill_at_line(place.start("run", "--json", "--resume", "last", "Go on."), number)
        code, _, err = place.resume()
        check_whole(place, server, code, err)


# What is there may be written over only by who has read it.
READ_THEN_WRITE = [
    {"calls": [call("r1", "read_file", path="a.txt")]},
    {"text": "Seen."},
    {"calls": [call("w1", "write_file", path="a.txt", content="two\n")]},
    {"text": "Written."},
]


@case(READ_THEN_WRITE)
def what_was_read_is_still_known(place, _server):
    place.run("run", "Read it.")
    code, _, err = place.resume()
    assert code == 0, err
    assert place.read("a.txt") == "two\n", place.events()[-3:]


@case(READ_THEN_WRITE)
def what_others_changed_meanwhile_is_noticed(place, _server):
    place.run("run", "Read it.")
    place.write("a.txt", "one and more\n")
    place.resume()
    ended = [event for event in place.events() if event["event"] == "tool_ended"][-1]
    assert ended["tool"] == "write_file" and ended["status"] == "failed", ended
    assert place.read("a.txt") == "one and more\n"


@case(READ_THEN_WRITE[1:])
def what_was_never_read_is_not_known(place, _server):
    place.run("run", "Look.")
    place.resume()
    assert place.read("a.txt") == "one\n", place.events()[-3:]


@case([{"calls": [call("b1", "bash", command="mkdir -p sub; cd sub")]}, {"text": "There."},
       {"calls": [call("b2", "bash", command="pwd")]}, {"text": "Here."}])
def commands_start_where_the_last_one_ended(place, _server):
    place.run("run", "Go there.")
    code, _, err = place.resume()
    assert code == 0, err
    # A look that takes long is still owed at the end; then a patch is made, and that call ends last.
    ended = [event for event in place.events()
             if event["event"] == "tool_ended" and event["tool"] == "bash"][-1]
    assert ended["text"].split()[0].endswith(os.path.join("work", "sub")), ended["text"]


@case([{"text": ["Slowly", " ", "said", " ", "words", "."], "delay_ms": 60000}])
def two_processes_have_not_the_same_session(place, _server):
    process = place.begin()
    for line in process.stdout:
        if json.loads(line)["event"] == "text":
            break
    session = place.events()[0]["session"]
    code, _, err = place.resume(name=session)
    end(process)
    assert code == 1 and "another process" in err, (code, err)
    numbers = [event["n"] for event in place.events()]
    assert numbers == list(range(1, len(numbers) + 1))


@case([{"text": "Well."}, {"text": "Well again."}])
def a_session_stays_in_its_folder(place, _server):
    place.run("run", "Begin.")
    session = place.events()[0]["session"]
    other = os.path.join(place.root, "other")
    os.mkdir(other)
    code, _, err = place.resume("-C", other, name=session)
    assert code == 1 and place.workspace in err and "not in" in err, (code, err)
    code, _, err = place.resume("-C", place.workspace, name=session[:6])
    assert code == 0, err
    os.rename(place.workspace, place.workspace + ".away")
    os.mkdir(place.workspace)
    os.rmdir(place.workspace)
    os.chdir(other)
    process = subprocess.run([PROGRAM, "run", "--resume", session, "Go on."], check=False,
                             env=place.environment, capture_output=True, text=True,
                             timeout=TIMEOUT_S)
    assert process.returncode == 1 and "not there any more" in process.stderr, process.stderr


@case([{"text": "Well."}, {"text": "Well again."}])
def the_verb_and_the_flag_are_one_way(place, server):
    place.run("run", "Begin.")
    code, _, err = place.run("sessions", "resume", "last", "--json", "Go", "on.")
    assert code == 0, err
    assert [m["content"] for m in server.requests()[-1]["messages"] if m["role"] == "user"][0] \
        == "Begin."
    for words in (("sessions", "resume", "0123456789ab", "on"), ("run", "--resume", "xyz1", "on"),
                  ("sessions", "show", "0123456789ab"), ("sessions", "export", "0123")):
        code, out, err = place.run(*words)
        assert code == 1 and not out and "glovebox sessions list" in err, (words, code, err)
    code, out, _ = place.run("sessions", "export", "last")
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == place.events()
    code, out, _ = place.run("sessions", "export", "last", "--markdown")
    assert code == 0 and "# Session" in out and "Well again." in out and "\nGo on.\n" in out, out


def order_of(events):
    return [(event["event"], event["call"]) for event in events
            if event["event"] in ("tool_began", "tool_ended")]


@case([{"calls": [call("r1", "read_file", path="a.txt"), call("r2", "list_files", path="."),
                  call("r3", "glob", pattern="*.txt"),
                  call("w1", "write_file", path="b.txt", content="two\n"),
                  call("r4", "grep", pattern="two"), call("r5", "read_file", path="b.txt")]},
       {"text": "Done."}])
def readers_go_side_by_side_around_a_writer(place, server):
    code, _, err = place.run("run", "--json", "Go.")
    assert code == 0, err
    order = order_of(place.events())
    began = [("tool_began", name) for name in ("r1", "r2", "r3")]
    assert order[:3] == began and {name for _, name in order[3:6]} == {"r1", "r2", "r3"}, order
    assert order[6:8] == [("tool_began", "w1"), ("tool_ended", "w1")], order
    assert order[8:10] == [("tool_began", "r4"), ("tool_began", "r5")], order
    results = [m["tool_call_id"] for m in server.requests()[-1]["messages"]
               if m["role"] == "tool"]
    assert results == ["r1", "r2", "r3", "w1", "r4", "r5"], results


# The first result is too short for a step without the model to be worth it.
GROWS = [{"calls": [call(name, "bash", command=f"seq 1 {last}")]}
         for last, name in zip((1235, 5001, 5002), "abc")]
GROWS += [{"calls": [call("d", "bash", command="echo last")],
           "usage": {"prompt_tokens": 12000, "completion_tokens": 10}},
          {"text": "Counted."}, {"text": "Done."}, {"text": "Done again."}]


@case(GROWS, by_history=False)
def what_was_summarised_stays_so(place, server):
    config = os.path.join(place.root, "config.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"models": {"fake": {"context": 20000}}}, file)
    os.chmod(config, 0o600)
    code, _, err = place.run("run", "--config", config, "Do the great task.")
    assert code == 0, err
    code, _, err = place.resume("--config", config)
    assert code == 0, err
    assert [event["event"] for event in place.events()].count("compacted") == 1
    before, after = [request["messages"] for request in server.requests()[-2:]]
    assert len(before) == 8 and after[:len(before)] == before, (before, after)
    check_record(place.events())


@case([{"calls": [call("w1", "write_file", path="b.txt", content="made\n")]},
       {"calls": [call("b1", "bash", command="echo more > c.txt")]},
       {"calls": [call("b2", "bash", command="echo begun; sleep 1000")]}, {"text": "All is done."}])
def what_a_killed_process_had_made_is_handed_over(place, _server):
    process = place.begin()
    # When the second command runs somebody has looked at what the first one left.
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "tool_output" and event["call"] == "b2":
            break
    end(process)
    code, _, err = place.resume()
    assert code == 0, err
    ended = place.events()[-1]
    changed = sorted(file["path"] for file in ended["changed"])
    assert changed == ["b.txt", "c.txt"], ended
    assert "+made" in ended["patch"] and "+more" in ended["patch"], ended["patch"]
    place.resume()
    assert place.events()[-1]["changed"] == [], "handed over twice"


LONG_RUN = [{"calls": [call(f"b{at}", "bash", command=f"echo {at} >> log.txt; seq 3000")]}
            for at in range(40)]


@case([*LONG_RUN, {"text": "All is done."}], repeat_last=True)
def a_store_that_takes_no_more_ends_the_turn_and_it_can_be_gone_on_with(place, server):
    # So large that a cell can be built, too small for the record of 40 long results.
    shell = 'ulimit -f 256; exec "$0" "$@"'
    process = subprocess.run(["bash", "-c", shell, PROGRAM, "run", "--json", "Do the task."],
                             env=place.environment, cwd=place.workspace, text=True,
                             stdin=subprocess.DEVNULL, capture_output=True, check=False,
                             timeout=TIMEOUT_S)
    assert process.returncode == 1, process
    assert re.fullmatch(r"glovebox: recording the session: [^\n]+\n", process.stderr), process.stderr
    shown = [json.loads(line) for line in process.stdout.splitlines()]
    kept = [event for event in shown if "n" in event]
    assert kept == place.events(), "what was shown is not what was kept"
    assert kept[-1]["event"] != "turn_ended" and len(place.read("log.txt").split()) < 40
    code, _, err = place.resume("--max-iterations", "100")
    check_whole(place, server, code, err)
    assert "log.txt" in [file["path"] for file in place.events()[-1]["changed"]]


@case([{"calls": [call("b1", "bash", command="sleep 1000")]}, {"text": "Never."}])
def an_interrupt_does_not_wait_for_a_checkpoint(place, _server):
    for number in range(20000):
        with open(os.path.join(place.workspace, f"file{number}"), "wb"):
            pass
    process = place.begin()
    for line in process.stdout:
        if json.loads(line)["event"] == "tool_began":
            break
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=TIMEOUT_S)
    took_s = time.monotonic() - began
    assert process.returncode == 130 and not tap.is_late(took_s, 20), (process.returncode, took_s)
    ended = [event for event in place.events() if event["event"] == "tool_ended"]
    assert [event["status"] for event in ended] == ["cancelled"], ended


SEALED = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "sealed=="}
LOOK = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "read_file",
        "arguments": "{\"path\":\"a.txt\"}"}


@case([{"items": [SEALED, LOOK]}, {"text": "One."}, {"text": "Two."}], by_history=False)
def it_is_asked_by_the_same_api_with_all_that_was_kept_for_it(place, server):
    place.environment["GLOVEBOX_MODEL"] = "openai:fake"
    code, _, err = place.run("run", "Begin.")
    assert code == 0, err
    # Only the record knows it now.
    del place.environment["GLOVEBOX_MODEL"]
    code, _, err = place.resume()
    assert code == 0, err
    began = place.events()[0]
    assert began["model"] == "openai:fake", began
    sent = server.requests()[-1]["input"]
    assert sent[1] == SEALED and sent[2] == LOOK and "one" in sent[3]["output"], sent


def system_of(request):
    assert request["messages"][0]["role"] == "system"
    return request["messages"][0]["content"]


@case([{"text": "Well."}], repeat_last=True)
def what_the_project_says_is_read_anew_and_recorded_once(place, server):
    place.write("AGENTS.md", "Use tabs.\n")
    place.run("run", "Begin.")
    place.resume()
    place.write("AGENTS.md", "Use blanks.\n")
    place.resume()
    os.unlink(os.path.join(place.workspace, "AGENTS.md"))
    place.resume()
    place.resume()
    said = [event["text"] for event in place.events() if event["event"] == "instructions"]
    assert said == ["## AGENTS.md\n\nUse tabs.\n", "## AGENTS.md\n\nUse blanks.\n", ""], said
    told = [re.findall("Use [a-z]+", system_of(request)) for request in server.requests()]
    assert told == [["Use tabs"], ["Use tabs"], ["Use blanks"], [], []], told


def hostile(place, make, why):
    """AGENTS.md made by MAKE does no harm: the run ends, and says WHY it was left out."""
    path = os.path.join(place.workspace, "AGENTS.md")
    make(path)
    code, _, err = place.run("run", "--json", "Begin.")
    assert code == 0, err
    event = [event for event in place.events() if event["event"] == "instructions"][-1]
    skipped = event["skipped"]
    assert event["text"] == "" and len(skipped) == 1 and why in skipped[0]["why"], event
    if os.path.isdir(path):
        os.rmdir(path)
    else:
        os.unlink(path)


@case([{"text": "Well."}], repeat_last=True)
def what_is_no_text_is_left_out(place, _server):
    def binary(path):
        with open(path, "wb") as file:
            file.write(b"a\0b" * 100)

    def latin(path):
        with open(path, "wb") as file:
            file.write(b"\xe4\xf6\xfc\n" * 100)

    hostile(place, binary, "no text")
    hostile(place, latin, "no text")
    hostile(place, os.mkfifo, "FIFO")
    hostile(place, os.mkdir, "folder")


@case([{"text": "Well."}], repeat_last=True)
def a_link_out_of_the_workspace_shows_nothing(place, server):
    secret = os.path.join(place.root, "secret")
    with open(secret, "w", encoding="utf-8") as file:
        file.write("Do not tell.\n")
    os.symlink(secret, os.path.join(place.workspace, "AGENTS.md"))
    code, _, err = place.run("run", "--json", "Begin.")
    assert code == 0, err
    assert "Do not tell" not in json.dumps(server.requests() + place.events())


@case([{"text": "Well."}], repeat_last=True)
def a_huge_one_is_cut(place, server):
    place.write("AGENTS.md", "ä" * (8 << 20))
    code, _, err = place.run("run", "--json", "Begin.")
    assert code == 0, err
    told = system_of(server.requests()[0])
    assert 30 << 10 < len(told.encode()) < 36 << 10, len(told.encode())
    assert f"{(16 << 20) - (32 << 10)} bytes left out" in told, told[-200:]


@case([{"text": "Well."}], repeat_last=True)
def a_forged_record_moves_no_cursor(place, _server):
    code, _, err = place.run("run", "--json", "Begin.")
    assert code == 0, err
    place.change_events("kind = ?1, json = ?1 WHERE number = 2", "k\x1b[2J\x07")
    for words in (("show", "last"), ("export", "last", "--markdown")):
        code, out, err = place.run("sessions", *words)
        assert code == 0 and "\\x07" in out and "\x1b" not in out, (out, err)


@case(READ_THEN_WRITE)
def a_journal_of_a_level_that_is_no_more_is_read_and_gone_on_with(place, _server):
    place.run("run", "Read it.")
    place.change_events("""json = replace(json, '"level":3', '"level":1')""")
    assert {event["level"] for event in place.events() if "level" in event} == {1}
    code, out, err = place.run("sessions", "export", "last", "--markdown")
    assert code == 0 and "- level of the cell: L1\n" in out, (out, err)
    code, _, err = place.resume()
    assert code == 0, err
    assert place.read("a.txt") == "two\n", place.events()[-3:]


if __name__ == "__main__":
    tap.play(PROGRAM)
