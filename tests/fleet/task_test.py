#!/usr/bin/env python3
"""Tasks, each done whole, and the caller of an engine in C.

task_test.py TAP_FOLDER TASK_DRIVER GLOVEBOX"""
import contextlib
import functools
import gzip
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake"))
import place as places  # noqa: E402, pylint: disable=wrong-import-position
import tap  # noqa: E402, pylint: disable=wrong-import-position

DRIVER, GLOVEBOX = (os.path.abspath(path) for path in sys.argv[2:4])
NEEDED = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH")
WAIT_SECONDS = 240
STORM_THREADS = 32
MEMBERS = ["job", "id", "attempt", "status", "worker", "host", "program", "exit", "check", "patch", "journal", "files",
           "accounts", "tokens", "money", "base_digest", "level"]


class Place:
    """A home, a store and a folder of work, and the driver that plays tasks there."""

    def __init__(self, folder):
        self.folder = folder
        self.home, self.work, self.temp, self.store = (os.path.join(folder, name)
                                                       for name in ("home", "work", "temp", "store"))
        for path in (self.home, self.work, self.temp):
            os.makedirs(path)
        self.environment = {name: os.environ[name] for name in NEEDED if name in os.environ}
        self.environment.update(HOME=self.home, TMPDIR=self.temp, LANG="C.UTF-8")
        self.drivers = []

    def path(self, *names):
        return os.path.join(self.work, *names)

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, *words):
        self.drivers.append(subprocess.Popen([DRIVER, *words], cwd=self.work, env=self.environment, stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return self.drivers[-1]

    def close(self):
        for driver in self.drivers:
            if driver.poll() is None:
                driver.kill()
            driver.wait(WAIT_SECONDS)
            for stream in (driver.stdin, driver.stdout, driver.stderr):
                if stream is not None:
                    stream.close()

    def begin(self, *tasks, how="work", program=GLOVEBOX):
        """The driver at work on TASKS, whose ids are task-N unless they have one."""
        driver = self.start(how, program, "file:" + self.store)
        for number, task in enumerate(tasks):
            driver.stdin.write(json.dumps({"id": f"task-{number}", **task}) + "\n")
        driver.stdin.close()
        driver.stdin = None
        return driver

    @staticmethod
    def end(driver):
        """The results of the driver, in the order of their ids."""
        out, errors = driver.communicate(timeout=WAIT_SECONDS)
        assert driver.returncode == 0 and "Sanitizer" not in errors, (driver.returncode, errors)
        return sorted((json.loads(line) for line in out.splitlines()), key=lambda result: result["id"])

    def do(self, *tasks):
        results = self.end(self.begin(*tasks))
        assert len(results) == len(tasks), results
        for result in results:
            assert list(result)[:len(MEMBERS)] == MEMBERS, result
            assert result["began"] <= result["ended"] and result["ended"].endswith("Z"), result
            assert (result["status"] == "done") == ("message" not in result), result
        assert os.listdir(self.temp) == [], os.listdir(self.temp)
        return results

    def blob(self, name):
        with open(os.path.join(self.store, "blobs", name), "rb") as file:
            data = file.read()
        assert hashlib.sha256(data).hexdigest() == name
        return data

    def text(self, name):
        return self.blob(name).decode()

    def journal(self, result, step="run"):
        """The line of a step in the journal of RESULT."""
        lines = [json.loads(line) for line in self.text(result["journal"]).splitlines()]
        return next(line for line in lines if line.get("step") == step)

    def git(self, *words, folder="repo"):
        return subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], check=True,
                              cwd=self.path(folder), env=self.environment, capture_output=True, text=True).stdout.strip()

    def repository(self):
        """Two commits, the first of which is the tag v1, and one more on the branch topic."""
        self.write("repo/a.txt", "one\n")
        self.write("repo/.gitignore", "*.o\n")
        self.git("init", "-q", "-b", "main", ".")
        self.git("add", ".")
        self.git("commit", "-qm", "one")
        self.git("tag", "v1")
        self.write("repo/a.txt", "one\ntwo\n")
        self.git("commit", "-qam", "two")
        self.git("checkout", "-q", "-b", "topic")
        self.write("repo/a.txt", "one\ntwo\nthree\n")
        self.git("commit", "-qam", "three")
        self.git("checkout", "-q", "main")

    def archive(self, name="one.tar.gz", **files):
        """An archive of FILES, and its SHA-256."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for path, text in files.items():
                info = tarfile.TarInfo(path)
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))
        data = gzip.compress(out.getvalue())
        with open(self.path(name), "wb") as file:
            file.write(data)
        return hashlib.sha256(data).hexdigest()


@contextlib.contextmanager
def place():
    folder = tempfile.mkdtemp(prefix="fleet-task-")
    at = Place(folder)
    try:
        yield at
    finally:
        at.close()
        shutil.rmtree(folder)


@contextlib.contextmanager
def served(folder):
    """A web server on loopback with the files of FOLDER: its address."""
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def children(pid):
    """The processes below PID."""
    below = {}
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                below.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
    found, waiting = [], [pid]
    while waiting:
        more = below.get(waiting.pop(), [])
        found += more
        waiting += more
    return found


def until(holds, what):
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)  # the pace of looking, not of what is looked at


# What becomes of a task.

@tap.case
def a_command_and_its_check_say_what_becomes_of_a_task():
    with place() as at:
        results = at.do(
            {"run": {"command": "echo out; echo err >&2"}, "check": "test $((1 + 1)) = 2", "collect": ["journal"],
             "labels": {"set": "one"}},
            {"run": {"command": "echo one; echo last >&2; exit 3"}, "check": "true"},
            {"run": {"command": "true"}, "check": "echo no; exit 2"},
            {"run": {"command": "kill -TERM $$"}},
            {"run": {"command": "/nothing/here"}},
            {"run": {"command": "true"}, "cwd": "nothing"},
            {"setup": ["echo a > a", "cat b"], "run": {"command": "true"}},
            {"setup": ["echo a > a"], "run": {"command": "cat a"}, "collect": ["a"]})
        done, failed, unchecked, killed, missing, nowhere, unready, ready = results
        assert (done["status"], done["exit"], done["check"]) == ("done", 0, {"exit": 0, "passed": True}), done
        assert done["labels"] == {"set": "one"} and done["worker"] == "driver" and done["level"] in (0, 2, 3), done
        assert done["accounts"]["source"] and done["tokens"] == 0 and done["money"] == 0, done
        note = at.journal(done)
        assert (note["stdout"], note["stderr"], note["exit"]) == ("out\n", "err\n", 0), note
        assert (failed["status"], failed["exit"]) == ("failed", 3), failed
        assert failed["message"] == "the command ended with exit code 3: last" and failed["check"]["passed"], failed
        assert (unchecked["status"], unchecked["exit"]) == ("failed", 0), unchecked
        assert unchecked["message"] == "the check ended with exit code 2: no", unchecked
        assert killed["status"] == "failed" and "signal 15" in killed["message"], killed
        assert (missing["status"], missing["exit"]) == ("failed", 127), missing
        assert nowhere["status"] == "failed" and "nothing cannot be entered" in nowhere["message"], nowhere
        assert unready["status"] == "set_up" and unready["exit"] is None, unready
        assert unready["message"].startswith("setup: cat b ended with exit code 1: cat: b: "), unready
        assert ready["status"] == "done" and at.text(ready["files"]["a"]) == "a\n", ready


@tap.case
def limits_and_the_policy_end_a_task():
    with place() as at:
        late, large, refused, hidden, bounded, wrong = at.do(
            {"run": {"command": "sleep 600"}, "limits": {"wall_s": 1.5}, "check": "true"},
            {"run": {"command": "exec python3 -c 'b = bytearray(600 << 20)'"}, "limits": {"memory": "96M"}},
            {"run": {"command": "true"}, "policy": {"commands": "list"}},
            {"run": {"command": f"cat {at.path('secret')}"}, "collect": ["journal"]},
            {"run": {"command": "echo x > here"}, "policy": {"write": []}},
            {"run": {"command": "true"}, "policy": {"read": ["/nothing/here"]}})
        assert late["status"] == "timed_out" and "limits.wall_s" in late["message"] and late["check"] is None, late
        assert large["status"] in ("limit", "failed"), large
        assert refused["status"] == "denied" and refused["message"].count("Not run:") == 1, refused
        assert hidden["status"] == "failed", hidden
        assert bounded["status"] == "failed", bounded
        assert wrong["status"] == "set_up" and "/nothing/here" in wrong["message"], wrong


@tap.case
def the_configuration_of_this_machine_bounds_all_tasks():
    with place() as at:
        config = os.path.join(at.home, ".config", "glovebox", "config.json")
        os.makedirs(os.path.dirname(config))
        at.write("secret/a", "secret\n")
        at.write("open/a", "open\n")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({"agents": {"task": {"write": ["."], "read": [at.path("open")]}}}, file)
        free, held, own = at.do(
            {"run": {"command": f"cat {at.path('open', 'a')}"}, "policy": {"read": [at.path("open")]}},
            {"run": {"command": f"cat {at.path('secret', 'a')}"}, "policy": {"read": [at.path("secret")]}},
            {"run": {"command": "echo x > x"}})
        assert free["status"] == "done" and own["status"] == "done", (free, own)
        assert held["status"] == "failed", held
        at.archive("open/one.tar.gz", file="text\n")
        at.archive("secret/one.tar.gz", file="text\n")
        wrap = {"wrap": "any", "args": ["sh", "-c", f"cat {at.path('secret', 'a')}"]}
        os.symlink(at.path("secret"), at.path("open", "link"))
        for fetched in ({"copy": "open"}, {"archive": "open/one.tar.gz"}):
            near, = at.do({"workspace": fetched, "run": {"command": "ls"}})
            assert near["status"] == "done", near
        for fetched in ({"copy": "secret"}, {"copy": "open/link"}, {"archive": "secret/one.tar.gz"}, {"git": "secret"}):
            far, = at.do({"workspace": fetched, "run": {"command": "ls"}})
            assert far["status"] == "denied" and "agent task" in far["message"], far
        far, = at.do({"workspace": {"copy": "secret"}, "run": wrap})
        assert far["status"] == "denied", far
        held, = at.do({"run": wrap, "policy": {"read": [at.path("secret")]}})
        assert held["status"] == "failed" and "secret" in held["message"], held
        os.remove(config)
        held, = at.do({"run": wrap, "policy": {"read": [at.path("secret")]}})
        assert held["status"] == "done", held
        held, = at.do({"run": {"command": f"cat {at.path('secret', 'a')}"}, "policy": {"read": [at.path("secret")]}})
        assert held["status"] == "done", held


@tap.case
def a_line_with_a_key_or_too_long_a_word_is_refused():
    with place() as at:
        for task, words in (({"workspace": {"archive": "https://me:key@host/a.tar", "sha256": "0" * 64}}, "a name or a key"),
                            ({"workspace": {"git": "https://me:key@host/a"}}, "a name or a key"),
                            ({"run": {"wrap": "any", "prompt": "x" * (128 << 10)}}, "128 KiB"),
                            ({"run": {"wrap": "any", "args": ["x" * (128 << 10)]}}, "128 KiB")):
            driver = at.begin({"run": {"command": "true"}, **task})
            out, errors = driver.communicate(timeout=WAIT_SECONDS)
            assert out == "" and words in errors and "me:key" not in errors, (out, errors[:1000])


@tap.case
def an_archive_is_a_regular_file():
    with place() as at:
        os.mkfifo(at.path("pipe"))
        result, = at.do({"workspace": {"archive": "pipe"}, "run": {"command": "true"}})
        assert result["status"] == "set_up" and "is no file" in result["message"], result


@tap.case
def the_keys_of_the_store_are_in_no_cell():
    with place() as at:
        at.environment.update(AWS_SECRET_ACCESS_KEY="hidden-one", OTHER="other")
        task = {"policy": {"env": ["AWS_SECRET_ACCESS_KEY", "OTHER"]}}
        ours, wrapped = at.do({**task, "run": {"command": "echo $AWS_SECRET_ACCESS_KEY $OTHER"}, "collect": ["journal"]},
                              {**task, "run": {"wrap": "any", "args": ["sh", "-c", "echo $AWS_SECRET_ACCESS_KEY $OTHER"]},
                               "collect": ["journal"]})
        for result in (ours, wrapped):
            assert result["status"] == "done" and at.journal(result)["stdout"] == "other\n", (result, at.text(result["journal"]))


@tap.case
def a_base_that_is_not_there_is_told_with_the_line_that_helps():
    with place() as at:
        result, = at.do({"base": "image:nothing:1", "run": {"command": "true"}})
        assert result["status"] == "set_up", result
        assert result["message"].endswith("run glovebox base pull image:nothing:1"), result


# Workspaces.

@tap.case
def git_gives_a_tag_a_branch_a_commit_or_its_beginning():
    with place() as at:
        at.repository()
        first = at.git("rev-parse", "v1")
        refs = {"v1": "one\n", "topic": "one\ntwo\nthree\n", first: "one\n", first[:9]: "one\n", None: "one\ntwo\n",
                "refs/heads/topic": "one\ntwo\nthree\n"}
        tasks = [{"workspace": {"git": where, **({"ref": ref} if ref else {})}, "run": {"command": "cat a.txt"},
                  "collect": ["journal"]}
                 for ref in refs for where in ("repo", "file://" + at.path("repo"))]
        results = at.do(*[{"id": f"t{number:02}", **task} for number, task in enumerate(tasks)])
        for task, result in zip(tasks, results):
            wanted = refs[task["workspace"].get("ref")]
            assert result["status"] == "done", (task, result)
            assert at.journal(result)["stdout"] == wanted, (task, result)
        missing, nowhere = at.do({"workspace": {"git": "repo", "ref": "v9"}, "run": {"command": "true"}},
                                 {"workspace": {"git": "nothing", "ref": "v9"}, "run": {"command": "true"}})
        assert missing["status"] == "set_up", missing
        assert missing["message"].endswith("repo has no commit, tag or branch v9"), missing
        assert nowhere["status"] == "set_up" and "nothing" in nowhere["message"], nowhere
        # Of all that git says, the sentence that names the mistake is kept, however long the path in it is.
        for folder, said in (("no-repository", "/no-repository'"), ("long-" * 40 + "way", " … .*-way'")):
            at.write(folder + "/file", "text\n")
            other, = at.do({"workspace": {"git": folder}, "run": {"command": "true"}})
            assert other["status"] == "set_up", other
            assert re.search(said + " does not appear to be a git repository$", other["message"]), other
        assert at.git("status", "--short") == ""


@tap.case
def git_and_archives_come_from_one_host_of_the_network():
    with place() as at:
        at.repository()
        at.git("update-server-info")
        digest = at.archive(file="text\n")
        with served(at.work) as address:
            repository, archive, wrong, missing = at.do(
                {"workspace": {"git": address + "/repo/.git", "ref": "topic"}, "run": {"command": "cat a.txt"},
                 "collect": ["journal"]},
                {"workspace": {"archive": address + "/one.tar.gz", "sha256": digest}, "run": {"command": "cat file"},
                 "collect": ["journal"]},
                {"workspace": {"archive": address + "/one.tar.gz", "sha256": "0" * 64}, "run": {"command": "true"}},
                {"workspace": {"archive": address + "/two.tar.gz", "sha256": digest}, "run": {"command": "true"}})
        assert repository["status"] == "done", repository
        assert at.journal(repository)["stdout"] == "one\ntwo\nthree\n", repository
        assert archive["status"] == "done" and at.journal(archive)["stdout"] == "text\n", archive
        assert wrong["status"] == "set_up" and f"has the SHA-256 {digest}, not 000" in wrong["message"], wrong
        assert missing["status"] == "set_up" and "curl ended with exit code" in missing["message"], missing


@tap.case
def archives_come_from_a_path_or_the_store():
    with place() as at:
        digest = at.archive(file="text\n", **{"folder/inner": "more\n"})
        os.makedirs(os.path.join(at.store, "blobs"))
        shutil.copy(at.path("one.tar.gz"), os.path.join(at.store, "blobs", digest))
        at.write("cut.tar.gz", "no archive")
        tasks = [{"workspace": {"archive": "one.tar.gz"}}, {"workspace": {"archive": "one.tar.gz", "sha256": digest}},
                 {"workspace": {"archive": "blob:" + digest}}, {"workspace": {"archive": "one.tar.gz", "sha256": "1" * 64}},
                 {"workspace": {"archive": "cut.tar.gz"}}, {"workspace": {"archive": "blob:" + "2" * 64}}]
        results = at.do(*[{**task, "run": {"command": "cat folder/inner && echo new > file"}, "collect": ["patch"]}
                          for task in tasks])
        for result in results[:3]:
            assert result["status"] == "done" and "-text\n+new\n" in at.text(result["patch"]), result
        for result in results[3:]:
            assert result["status"] == "set_up" and result["patch"] is None, result


@tap.case
def a_folder_is_seen_through_a_layer_and_stays_as_it_is():
    with place() as at:
        at.write("folder/a", "one\n")
        one, two = at.do({"workspace": {"copy": "folder"}, "run": {"command": "echo two >> a; cat a"},
                          "collect": ["patch", "journal"]},
                         {"workspace": {"copy": at.path("folder")}, "run": {"command": "rm a"}, "collect": ["patch"]})
        assert at.journal(one)["stdout"] == "one\ntwo\n", one
        assert at.text(one["patch"]).endswith("@@ -1 +1,2 @@\n one\n+two\n"), one
        assert "deleted file" in at.text(two["patch"]), two
        with open(at.path("folder", "a"), encoding="utf-8") as file:
            assert file.read() == "one\n"


# What is kept.

@tap.case
def a_patch_of_a_repository_is_what_the_run_has_changed():
    with place() as at:
        at.repository()
        result, committed = at.do(
            {"workspace": {"git": "repo"}, "setup": ["echo made > made-before"],
             "run": {"command": "printf 'a\\0b' > binary; touch x.o; rm a.txt; git add a.txt"},
             "collect": ["patch", "patch:.", "binary", "folder", "nothing", "journal"]},
            {"workspace": {"git": "repo"},
             "run": {"command": "echo z > z; git add z; git -c user.name=a -c user.email=a@b commit -qm z"},
             "collect": ["patch"]})
        patch = at.text(result["patch"])
        assert result["status"] == "done", result
        assert "GIT binary patch" in patch and "deleted file mode" in patch, patch
        assert "made-before" not in patch and "x.o" not in patch, patch
        assert result["files"]["patch:."] == result["patch"], result
        assert at.blob(result["files"]["binary"]) == b"a\0b", result
        assert result["files"]["nothing"] is None and result["files"]["folder"] is None, result
        assert any(note.startswith("nothing: ") for note in result["notes"]), result
        subprocess.run(["git", "apply", "--index", "-"], input=patch.encode(), cwd=at.path("repo"), check=True)
        assert not os.path.exists(at.path("repo", "a.txt")) and os.path.exists(at.path("repo", "binary"))
        assert "+++ b/z" in at.text(committed["patch"]), committed


@tap.case
def files_are_named_from_where_commands_begin():
    with place() as at:
        at.write("folder/sub/a", "one\n")
        begin = {"run": {"command": "echo x > made; head -c 9000000 /dev/zero > big"}}
        above, below, nowhere = at.do(
            {**begin, "collect": ["made", "big"]},
            {**begin, "workspace": {"copy": "folder"}, "cwd": "sub", "setup": ["cat a"], "check": "cat a made",
             "collect": ["made", "../sub/a"]},
            {**begin, "cwd": "sub", "setup": ["true"]})
        assert at.text(above["files"]["made"]) == "x\n" and at.blob(above["files"]["big"]) == bytes(9000000), above
        assert below["check"]["passed"] and at.text(below["files"]["made"]) == "x\n", below
        assert at.text(below["files"]["../sub/a"]) == "one\n", below
        assert nowhere["status"] == "set_up" and "sub cannot be entered" in nowhere["message"], nowhere


@tap.case
def a_store_that_takes_nothing_gives_the_task_again():
    with place() as at:
        driver = at.begin({"run": {"command": f"echo x > a; until test -e {at.path('full')}; do sleep 0.1; done"},
                           "policy": {"read": [at.work]}, "collect": ["a"]})
        until(lambda: any(name.startswith("glovebox-serve-") for name in os.listdir(at.temp)), "the cell")
        shutil.rmtree(os.path.join(at.store, "blobs"), ignore_errors=True)
        with open(os.path.join(at.store, "blobs"), "wb"):
            pass
        at.write("full", "")
        result, = at.end(driver)
        assert result["status"] == "set_up" and "the store took nothing of it" in result["message"], result


# Agents.

ANSWERS = {"answers": [
    {"text": "I write.", "calls": [{"id": "c1", "tool": "write_file", "arguments": {"path": "new.txt", "content": "new\n"}}],
     "usage": {"prompt_tokens": 100, "completion_tokens": 5}},
    {"text": "It is written.", "usage": {"prompt_tokens": 120, "completion_tokens": 7}}]}


@tap.case
def our_own_agent_works_on_a_prompt():
    with place() as at, places.model(ANSWERS) as address:
        at.write("folder/a", "one\n")
        at.environment.update(GLOVEBOX_BASE_URL=address + "/v1", OPENAI_API_KEY="key")
        result, = at.do({"workspace": {"copy": "folder"}, "run": {"prompt": "write new.txt", "model": "fake"},
                         "check": "grep new new.txt", "collect": ["patch", "journal", "new.txt"]})
        assert (result["status"], result["exit"], result["tokens"]) == ("done", 0, 232), result
        assert result["check"]["passed"] and at.text(result["files"]["new.txt"]) == "new\n", result
        assert "+++ b/new.txt" in at.text(result["patch"]), result
        journal = at.text(result["journal"])
        assert '"event":"turn_ended"' in journal and '"tool":"write_file"' in journal, journal
        assert "key" not in json.dumps(result), result


@tap.case
def without_a_model_a_prompt_is_not_done():
    with place() as at:
        for name in ("GLOVEBOX_BASE_URL", "GLOVEBOX_MODEL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            at.environment.pop(name, None)
        result, = at.do({"run": {"prompt": "write new.txt"}})
        assert result["status"] == "set_up" and "no model is configured: run glovebox login" in result["message"], result
        played, = at.do({"run": {"prompt": "write new.txt", "model": "replay"}})
        assert played["status"] == "done", played


@tap.case
def an_agent_ends_at_its_limits_and_is_tried_again_when_its_model_is_down():
    with place() as at, places.model({"answers": [ANSWERS["answers"][0]], "repeat_last": True}) as address:
        at.environment.update(GLOVEBOX_BASE_URL=address + "/v1", OPENAI_API_KEY="key")
        limited, = at.do({"run": {"prompt": "write", "model": "fake"}, "limits": {"iterations": 2}})
        assert limited["status"] == "limit" and limited["message"].startswith("the run ended: iterations"), limited
        at.environment.update(GLOVEBOX_BASE_URL=address + "/503/v1")
        down, = at.do({"run": {"prompt": "write", "model": "fake"}})
        assert down["status"] == "set_up" and "503" in down["message"], down
        at.environment.update(GLOVEBOX_BASE_URL=address + "/401/v1")
        wrong, = at.do({"run": {"prompt": "write", "model": "fake"}})
        assert wrong["status"] == "failed" and "401" in wrong["message"], wrong
        at.environment.update(GLOVEBOX_BASE_URL=address + "/hang/v1")
        late, = at.do({"run": {"prompt": "write", "model": "fake"}, "limits": {"wall_s": 2}})
        assert late["status"] == "timed_out", late


@tap.case
def somebody_elses_agent_is_wrapped():
    with place() as at:
        program = os.path.join(at.folder, "bin", "own")
        os.makedirs(os.path.dirname(program))
        with open(program, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho \"$@\" >> said\necho more >> a\n[ \"$3\" != wait ] || sleep 600\n")
        os.chmod(program, 0o755)
        at.environment["PATH"] = os.path.dirname(program) + ":" + at.environment["PATH"]
        profile = os.path.join(at.home, ".config", "glovebox", "wrap", "own.json")
        os.makedirs(os.path.dirname(profile))
        with open(profile, "w", encoding="utf-8") as file:
            file.write('{"program": "own", "auto": ["--yes"], "prompt": ["-p"]}')
        at.repository()
        at.write("folder/a", "one\n")
        task = {"workspace": {"copy": "folder"}, "run": {"wrap": "own", "prompt": "go on"}, "check": "grep more a",
                "collect": ["patch", "said"]}
        denied, = at.do(task)
        assert denied["status"] == "denied" and "glovebox: wrap" in denied["message"], denied
        subprocess.run([GLOVEBOX, "wrap", "--trust", "own", "--hash", denied["message"].split()[-1]], check=True, env=at.environment, cwd=at.work,
                       stdin=subprocess.DEVNULL, capture_output=True)
        copied, cloned, alone, late, failed = at.do(
            task, {**task, "workspace": {"git": "repo"}},
            {"run": {"wrap": "any", "args": ["sh", "-c", "echo x > y; exit 0"]}, "collect": ["patch"]},
            {**task, "run": {"wrap": "own", "prompt": "wait"}, "limits": {"wall_s": 5}},
            {"run": {"wrap": "any", "args": ["sh", "-c", "echo why >&2; exit 9"]}})
        for result in (copied, cloned):
            assert result["status"] == "done" and result["check"]["passed"] and result["money"] is None, result
            assert at.text(result["files"]["said"]) == "--yes -p go on\n", result
        assert at.text(copied["patch"]).count("+++ b/") == 2 and "+more\n" in at.text(copied["patch"]), copied
        assert "+++ b/y" in at.text(alone["patch"]), alone
        assert late["status"] == "timed_out", late
        assert (failed["status"], failed["exit"]) == ("failed", 9) and "why" in failed["message"], failed
        with open(at.path("folder", "a"), encoding="utf-8") as file:
            assert file.read() == "one\n"
        os.remove(program)
        gone, = at.do(task)
        assert gone["status"] == "set_up" and "own is not installed here" in gone["message"], gone


# Ends.

@tap.case
def a_cancelled_task_ends_with_all_that_it_has_started():
    with place() as at:
        driver = at.begin({"run": {"command": "touch began; sleep 601"}},
                          {"run": {"wrap": "any", "args": ["sh", "-c", "touch began; sleep 601"]}},
                          {"setup": ["sleep 601"], "run": {"command": "true"}})

        def sleeps():
            found = 0
            for pid in children(driver.pid):
                with contextlib.suppress(OSError):
                    with open(f"/proc/{pid}/cmdline", "rb") as file:
                        found += file.read() == b"sleep\x00601\x00"
            return found
        until(lambda: sleeps() == 3 or driver.poll() is not None, "all three to begin")
        driver.send_signal(signal.SIGINT)
        results = at.end(driver)
        assert [result["status"] for result in results] == ["cancelled"] * 3, results
        until(lambda: sleeps() == 0, "their end")


@tap.case
def a_task_whose_engine_is_killed_is_to_be_done_again():
    with place() as at:
        driver = at.begin(*[{"run": {"command": "sleep 602"}}] * 4)

        def cells():
            return [pid for pid in children(driver.pid) if os.path.exists(f"/proc/{pid}")]
        until(lambda: len(cells()) > 8 or driver.poll() is not None, "the cells")
        engine = int(subprocess.run(["ps", "--ppid", str(driver.pid), "-o", "pid="], capture_output=True, text=True,
                                    check=True).stdout.split()[0])
        began = time.monotonic()
        os.kill(engine, signal.SIGKILL)
        results = at.end(driver)
        assert not tap.is_late(time.monotonic() - began, 5), time.monotonic() - began
        for result in results:
            assert result["status"] == "set_up" and "the engine was ended by signal 9" in result["message"], result


@tap.case
def an_engine_that_is_killed_fails_all_calls_within_a_second():
    with place() as at:
        for number in range(3):
            driver = at.start("storm", GLOVEBOX, str(STORM_THREADS))
            assert driver.stdout.readline() == "begins\n"
            engine = int(subprocess.run(["ps", "--ppid", str(driver.pid), "-o", "pid="], capture_output=True, text=True,
                                        check=True).stdout.split()[0])
            time.sleep(0.05 * number)  # another moment each time
            began = time.monotonic()
            os.kill(engine, signal.SIGKILL)
            out, errors = driver.communicate(timeout=WAIT_SECONDS)
            assert not tap.is_late(time.monotonic() - began, 1), time.monotonic() - began
            assert driver.returncode == 0 and "closed: cell/list: the engine was ended by signal 9" in out, (out, errors)
            assert out.endswith("gone 1\n"), out


# Stands between the driver and an engine, and answers METHOD as the engine does when the worker of the cell was killed.
WITHOUT_A_WORKER = """#!{python}
import json, subprocess, sys, threading
engine = subprocess.Popen([{program!r}, *sys.argv[1:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
one = threading.Lock()
def say(line):
    with one:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
def ask():
    for line in sys.stdin.buffer:
        call = json.loads(line)
        if call.get("method") == {method!r}:
            say(json.dumps({{"jsonrpc": "2.0", "id": call["id"], "error": {{
                "code": {code}, "message": "The worker ended before it took this call.",
                "data": {{"kind": {kind!r}}}}}}}).encode() + b"\\n")
        else:
            engine.stdin.write(line)
            engine.stdin.flush()
    engine.stdin.close()
threading.Thread(target=ask, daemon=True).start()
for line in engine.stdout:
    say(line)
sys.exit(engine.wait())
"""


@tap.case
def a_cell_that_is_lost_before_its_files_are_kept_makes_no_task_done():
    task = {"run": {"command": "echo one >out.txt"}, "collect": ["out.txt", "patch"]}
    refusals = (("file/read", "unavailable", -32603), ("file/read", "closed", -32005), ("cell/patch", "set_up", -32002))
    for method, kind, code in refusals:
        with place() as at:
            between = at.write("between", WITHOUT_A_WORKER.format(python=sys.executable, program=GLOVEBOX, method=method, kind=kind,
                                                                  code=code))
            os.chmod(between, 0o755)
            lost, failed = at.end(at.begin({"id": "a", **task}, {"id": "b", **task, "run": {"command": "exit 3"}}, program=between))
            assert lost["status"] == "set_up" and "the task has run, but its cell was lost: The worker" in lost["message"], lost
            # What has become of the task is known before that, and is no other then.
            assert failed["status"] == "failed" and failed["exit"] == 3, failed
    with place() as at:
        between = at.write("between", WITHOUT_A_WORKER.format(python=sys.executable, program=GLOVEBOX, method="file/read",
                                                              kind="no_such", code=-32001))
        os.chmod(between, 0o755)
        result, = at.end(at.begin(task, program=between))
        assert result["status"] == "done" and result["files"] == {"out.txt": None} and len(result["notes"]) == 1, result


@tap.case
def an_engine_that_cannot_begin_is_told_with_its_words():
    with place() as at:
        config = os.path.join(at.home, ".config", "glovebox", "config.json")
        os.makedirs(os.path.dirname(config))
        with open(config, "w", encoding="utf-8") as file:
            file.write("{")
        driver = at.start("storm", GLOVEBOX, "1")
        out, errors = driver.communicate(timeout=WAIT_SECONDS)
        assert driver.returncode == 1 and out == "" and "config.json" in errors, errors
        driver = at.start("storm", "/nothing/here", "1")
        out, errors = driver.communicate(timeout=WAIT_SECONDS)
        assert driver.returncode == 1 and "/nothing/here" in errors, errors


@tap.case
def long_lines_and_calls_without_an_answer_fail_by_themselves():
    with place() as at:
        out, errors = at.start("large", GLOVEBOX).communicate(timeout=WAIT_SECONDS)
        assert out.splitlines() == [
            "cell/open: answered", "exec/run: usage: exec/run: a line of the wire has at most 16777216 bytes",
            "exec/run: limit: exec/run: the answer has more than 64 MiB",
            "exec/run: timed_out: exec/run was not answered within 0.2 s", "cell/list: answered"], (out, errors)


@tap.case
def no_descriptor_of_the_client_is_in_a_child():
    with place() as at:
        out, errors = at.start("fds", GLOVEBOX).communicate(timeout=WAIT_SECONDS)
        assert out.split() == ["0", "1", "2", "3"], (out, errors)  # 3 is the folder that ls reads


@tap.case
def those_who_look_on_hear_the_steps():
    with place() as at:
        driver = at.begin({"setup": ["true"], "run": {"command": "echo hi"}, "check": "true"}, how="look")
        out, errors = driver.communicate(timeout=WAIT_SECONDS)
        assert driver.returncode == 0, errors
        lines = [json.loads(line.partition(" ")[2]) for line in errors.splitlines() if line.startswith("task-0 ")]
        assert [line["begins"] for line in lines if "begins" in line] == ["workspace", "setup", "run", "check"], lines
        assert [line["step"] for line in lines if "step" in line] == ["setup", "run", "check"], lines
        assert json.loads(out)["status"] == "done", out


tap.play()
