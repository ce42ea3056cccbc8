#!/usr/bin/env python3
"""batch: a file of tasks worked through without any server, killed, divided, continued.

batch_test.py TAP_FOLDER GLOVEBOX

A program with sanitizers is killed less often: each start of it takes as long as ten of the others. With $GLOVEBOX_TEST_KILLS
it is killed so often, however long that takes."""
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
import place as places  # noqa: E402, pylint: disable=wrong-import-position
import tap  # noqa: E402, pylint: disable=wrong-import-position
import terminal  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
with open(PROGRAM, "rb") as file:
    SANITIZED = b"__asan_init" in file.read()
WAIT_SECONDS = 300  # sanitizers on a busy machine; in a wait by progress: while nothing changes
MANY = 60 if SANITIZED else 1000
KILLS = int(os.environ.get("GLOVEBOX_TEST_KILLS", "12" if SANITIZED else "200"))
# after which no more kills are begun; the machine is busy, and enough were
KILL_SECONDS = 86400 if "GLOVEBOX_TEST_KILLS" in os.environ else 50
KILLS_LEAST = 5
CELLS = 4
FEW_DESCRIPTORS = 120  # enough for six cells
SEED = int(os.environ.get("GLOVEBOX_TEST_SEED", random.randrange(1 << 30)))


class Place:
    """A folder with a home, tasks and a store."""

    def __init__(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="glovebox-batch-", dir="/var/tmp"))
        self.store = os.path.join(self.folder, "store")
        self.tasks = os.path.join(self.folder, "tasks.jsonl")
        self.temp = os.path.join(self.folder, "temp")
        self.begun = []
        for name in ("home", "temp", "work"):
            os.mkdir(os.path.join(self.folder, name))
        self.environment = {"PATH": os.environ["PATH"], "HOME": os.path.join(self.folder, "home"),
                            "TMPDIR": self.temp, "LANG": "C.UTF-8"}
        # A sanitizer that looks for leaks would find the cells that an engine leaves to its end.
        self.environment.update({name: os.environ[name] for name in ("ASAN_OPTIONS",) if name in os.environ})

    def write(self, tasks):
        with open(self.tasks, "w", encoding="utf-8") as out:
            for task in tasks:
                out.write((task if isinstance(task, str) else json.dumps(task)) + "\n")

    def start(self, *words, **more):
        self.begun.append(subprocess.Popen(
            [PROGRAM, "batch", *words], cwd=os.path.join(self.folder, "work"), env={**self.environment, **more.pop("env", {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more))
        return self.begun[-1]

    def run(self, *words, **more):
        process = self.start(*words, **more)
        process.said, process.complained = process.communicate(timeout=WAIT_SECONDS)
        return process

    def run_while_it_goes_on(self, *words):
        """As run, for as long as results come: how fast is the machine's matter."""
        process, last, since = self.start(*words), -1, time.monotonic()
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.said, process.complained = process.communicate(timeout=1)
                return process
            now = len(self.names("results"))
            if now != last:
                last, since = now, time.monotonic()
            assert time.monotonic() - since < WAIT_SECONDS, f"{last} results, and no more"

    def batch(self, *words, code=0, **more):
        done = self.run(self.tasks, "--out", self.store, *words, **more)
        assert done.returncode == code, (done.returncode, done.said, done.complained)
        return done

    @property
    def job(self):
        """The folder of the one job; none yet: a folder that is not there."""
        folder = os.path.join(self.store, "jobs")
        jobs = os.listdir(folder) if os.path.isdir(folder) else []
        assert len(jobs) <= 1, jobs
        return os.path.join(folder, *(jobs or ["none"]))

    def names(self, kind):
        folder = os.path.join(self.job, kind)
        return [name for name in os.listdir(folder) if name.endswith(".json")] if os.path.isdir(folder) else []

    def results(self):
        found = {}
        for name in self.names("results"):
            with open(os.path.join(self.job, "results", name), encoding="utf-8") as lines:
                found[name[:-5]] = json.load(lines)
        return found

    def statuses(self):
        counts = {}
        for result in self.results().values():
            counts[result["status"]] = counts.get(result["status"], 0) + 1
        return counts

    def has_blobs(self):
        """Every blob that a result names is in the store."""
        for result in self.results().values():
            files = dict(result.get("files") or {})
            for key in ("patch", "journal"):
                if isinstance(result.get(key), str):
                    files[key] = result[key]
            for name, blob in files.items():
                blob = blob["sha256"] if isinstance(blob, dict) else blob
                if blob is None:  # it was not there: the command was killed before it wrote it
                    assert result["status"] != "done", result
                    continue
                assert os.path.exists(os.path.join(self.store, "blobs", blob)), (result["id"], name)

    def close(self):
        for process in self.begun:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
        end(lambda: below_folder(self.temp), "processes that were left")
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def place():
    made = Place()
    try:
        yield made
    finally:
        made.close()


def read(path):
    try:
        with open(path, "rb") as data:
            return data.read()
    except OSError:
        return b""


def processes():
    """{pid: (parent, command line)} of what runs."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = read(f"/proc/{name}/stat").decode(errors="replace")
            if stat:
                fields = stat.rsplit(")", 1)[1].split()
                if fields[0] not in "ZX":
                    found[int(name)] = (int(fields[1]), read(f"/proc/{name}/cmdline").replace(b"\0", b" ").decode(errors="replace"))
    return found


def below(pid):
    """The processes below PID: {pid: command line}."""
    found, all_of_them = {}, processes()
    changed = True
    while changed:
        changed = False
        for other, (parent, line) in all_of_them.items():
            if other not in found and (parent == pid or parent in found):
                found[other] = line
                changed = True
    return found


def below_folder(folder):
    """Processes whose environment names FOLDER."""
    return [pid for pid in processes() if folder.encode() in read(f"/proc/{pid}/environ")]


def end(left, what, seconds=WAIT_SECONDS):
    until = time.monotonic() + seconds
    while left():
        assert time.monotonic() < until, (what, left())
        time.sleep(0.01)


def wait_until(true, what):
    end(lambda: not true(), what)


def commands(count, command="true", **more):
    return [{"id": f"t{number}", "run": {"command": command}, **more} for number in range(count)]


def lines_of(place_, *words, code=0):
    done = place_.batch("--json", *words, code=code)
    return [json.loads(line) for line in done.said.splitlines()]


TELLS = {"answers": [{"text": "It is said.", "usage": {"prompt_tokens": 100, "completion_tokens": 5}}], "repeat_last": True}


@tap.case
def each_task_has_one_result_and_the_same_line_again_does_nothing():
    with place() as at:
        at.write(commands(7) + [{"id": "bad", "run": {"command": "exit 3"}}])
        done = at.batch("-j", "3", code=1)
        assert "8 tasks: 7 done, 1 failed" in done.said and "bad: failed: " in done.said and "exit code 3" in done.said, done.said
        results = at.results()
        assert len(results) == 8 and results["bad"]["exit"] == 3 and results["t0"]["attempt"] == 1, results
        seen = {}
        check_unchanged(at, seen)
        done = at.batch(code=1)
        assert "8 with a result" in done.said, done.said
        check_unchanged(at, seen)
        assert len(seen) == 8 and not at.names("claims"), "a claim was left"


@tap.case
def a_bad_line_is_told_with_its_number_and_nothing_is_begun():
    for line, words in (('{"id": "x", "run": {"command": "true"}, "what": 1}', "what"),
                        ('{"id": "t0", "run": {"command": "true"}}', "t0"),
                        ('{"id": "x"', ":3:")):
        with place() as at:
            at.write([*commands(2), line])
            done = at.run(at.tasks, "--out", at.store)
            assert done.returncode == 2 and f"{at.tasks}:3: " in done.complained, done.complained
            assert words in done.complained and not os.path.exists(at.store), done.complained


@tap.case
def a_file_of_another_system_is_read():
    with place() as at:
        with open(at.tasks, "wb") as file:
            file.write(b"\xef\xbb\xbf" + b"".join(json.dumps(task).encode() + b"\r\n" for task in commands(3)))
        at.batch("--job", "mine", "--shard", "0/3", "--no-steal")
        os.remove(at.tasks)
        done = at.run("--job", "mine", "--out", at.store)
        assert done.returncode == 0 and at.statuses() == {"done": 3}, (done.said, done.complained)


@tap.case
def a_full_disk_for_its_lines_is_told_once():
    with place() as at, open("/dev/full", "wb") as full:
        at.write(commands(8))
        done = subprocess.run([PROGRAM, "batch", at.tasks, "--out", at.store, "--json"], stdout=full, stderr=subprocess.PIPE,
                              env=at.environment, timeout=WAIT_SECONDS, check=False)
        assert done.returncode == 1 and done.stderr.count(b"No space left on device") == 1, done
        assert at.statuses() == {"done": 8}, at.statuses()


@tap.case
def a_job_belongs_to_one_file():
    with place() as at:
        at.write(commands(2))
        at.batch("--job", "mine")
        at.write(commands(3))
        done = at.batch("--job", "mine", code=2)
        assert "the job mine of" in done.complained and "another file" in done.complained, done.complained
        at.batch()
        assert len(os.listdir(os.path.join(at.store, "jobs"))) == 2


@tap.case
def a_job_of_the_store_goes_on_without_its_file():
    with place() as at:
        at.write(commands(4))
        at.batch("--job", "mine", "--shard", "0/2", "--no-steal")
        os.remove(at.tasks)
        done = at.run("--job", "mine", "--out", at.store)
        assert done.returncode == 0 and "4 tasks: 4 done" in done.said, (done.said, done.complained)
        done = at.run("--job", "other", "--out", at.store)
        assert done.returncode == 2 and "has no job other" in done.complained, done.complained


@tap.case
def wrong_options_are_told():
    with place() as at:
        at.write(commands(1))
        for words, part in (([at.tasks], "--out"), (["--out", at.store], "--job"),
                            ([at.tasks, "--out", at.store, "--shard", "4/4"], "--shard"),
                            ([at.tasks, "--out", at.store, "--shard", "1"], "0/8"),
                            ([at.tasks, "--out", at.store, "--retry", "done"], "--retry"),
                            ([at.tasks, "--out", at.store, "-j", "5000"], "4096"),
                            ([at.tasks, "--out", at.store, "--job", "a.b"], "--job"),
                            ([at.tasks, "--out", at.store, "--slurm", "--kubernetes"], "exclude"),
                            ([at.tasks, "--out", "http://x"], "a store is a folder"), ([at.tasks, "--out", "file:"], "no name"),
                            ([at.tasks, "--out", "s3://"], "s3://BUCKET/PREFIX"), ([at.tasks, "--out", "s3:/x"], "file:s3:/x"),
                            (["status", "s3:x"], "file:s3:x"), (["status", "http://x"], "a store is a folder")):
            done = at.run(*words)
            assert done.returncode == 2 and part in done.complained and not done.said, (words, done.complained)


@tap.case
def what_cannot_be_set_up_is_tried_again_and_given_up():
    with place() as at:
        at.write([{"id": "one", "base": "image:registry.invalid/none:1", "attempts": 2, "run": {"command": "true"}}])
        events = lines_of(at, code=1)
        kinds = [event["event"] for event in events]
        assert kinds.count("began") == 2 and kinds.count("again") == 1, kinds
        result = at.results()["one"]
        assert result["status"] == "gave_up" and result["attempt"] == 2, result
        assert at.batch(code=1).said.count("gave_up") >= 1
        events = lines_of(at, "--retry", "set_up,gave_up", code=1)
        assert [event["event"] for event in events].count("began") == 2, events
        status = at.run("status", at.store)
        assert status.returncode == 1 and "1 gave_up" in status.said and "--retry gave_up" in status.said, status.said


@tap.case
def status_names_what_is_missing_and_the_line_that_goes_on():
    with place() as at:
        at.write(commands(6))
        at.batch("--job", "mine", "--shard", "1/3", "--no-steal")
        done = at.run("status", at.store)
        assert done.returncode == 1 and "mine: 6 tasks: 2 done, 4 missing" in done.said, done.said
        assert "Missing: t0 t2 t3 t5" in done.said, done.said
        said = json.loads(at.run("status", at.store, "--json").said)
        assert said["missing"] == 4 and said["missing_ids"] == ["t0", "t2", "t3", "t5"], said
        words = said["continue"].split()
        assert words[:2] == ["glovebox", "batch"]
        assert at.run(*words[2:]).returncode == 0
        assert at.run("status", at.store, "--job", "mine").returncode == 0


@tap.case
def shards_have_their_lines_and_take_over_those_that_nobody_has():
    with place() as at:
        at.write(commands(9))
        at.batch("--shard", "1/3", "--no-steal")
        assert sorted(at.results()) == ["t1", "t4", "t7"]
        done = at.batch("--shard", "0/3")
        assert len(at.results()) == 9 and "takes over shard 2 of 3" in done.said, done.said


@tap.case
def two_batches_on_one_store_do_not_do_the_same_work():
    with place() as at:
        at.write(commands(2, "sleep 60"))
        first = at.start(at.tasks, "--out", at.store)
        wait_until(lambda: at.names("claims"), "a claim")
        done = at.batch(code=1)
        assert "is worked on already" in done.complained and str(first.pid) in done.complained, done.complained
        first.kill()
        first.wait()
        # The holder has ended, as everybody on this machine can see.
        second = at.start(at.tasks, "--out", at.store, "--json")
        line = second.stdout.readline()
        while line and '"began"' not in line:
            line = second.stdout.readline()
        assert line, second.stderr.read()
        second.terminate()
        assert second.wait(WAIT_SECONDS) == 143
        assert not at.results()


@tap.case
def two_batches_in_one_task_of_a_scheduler_do_not_take_from_each_other():
    with place() as at:
        at.write(commands(2, "sleep 60"))
        task = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0"}
        at.environment.update(task)
        at.start(at.tasks, "--out", at.store)
        wait_until(lambda: at.names("claims"), "a claim")
        assert "is worked on already" in at.batch(code=1).complained


@tap.case
def shards_at_the_same_time_share_the_work():
    with place() as at:
        at.write(commands(12))
        shards = [at.start(at.tasks, "--out", at.store, "--shard", f"{part}/3", "-j", "2") for part in range(3)]
        for process in shards:
            process.said, process.complained = process.communicate(timeout=WAIT_SECONDS)
            assert process.returncode == 0, (process.said, process.complained)
        assert len(at.results()) == 12 and at.statuses() == {"done": 12}


def started(at, *words):
    process = at.start(at.tasks, "--out", at.store, "--json", *words)
    events = []
    while not events or events[-1]["event"] != "began":
        line = process.stdout.readline()
        assert line, process.stderr.read()
        events.append(json.loads(line))
    return process


@tap.case
def ctrl_c_begins_nothing_more_and_the_second_one_ends_what_runs():
    with place() as at:
        at.write([{"id": "a", "run": {"command": f"until [ -e go ]; do sleep 0.05; done; true"},
                   "workspace": {"copy": at.folder + "/work"}}, *commands(5)])
        process = started(at, "-j", "1")
        process.send_signal(signal.SIGINT)
        # The task that runs may end; nothing else begins.
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 130 and "no more tasks begin" in complained, (process.returncode, complained)
        assert not at.results() and '"began"' not in said, said
        process = started(at, "-j", "1")
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 143 and not at.results()
        assert not at.names("claims")


@tap.case
def a_signal_that_a_task_gets_first_makes_no_result():
    for first in signal.SIGTERM, signal.SIGKILL:
        with place() as at:
            at.write(commands(1, "sleep 666"))
            process = at.start(at.tasks, "--out", at.store, "-j", "1")

            def sleeps():
                return [pid for pid, line in below(process.pid).items() if "sleep 666" in line]
            wait_until(sleeps, "the task")
            # Slurm, systemd and a shell send it to all processes of a job, in any order.
            for pid in sleeps():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, first)
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_SECONDS) == 143 and not at.results(), (first, at.results())
        with place() as at:
            at.write(commands(1, f"kill -{int(first)} $$"))
            at.batch(code=1)
            result, = at.results().values()
            assert result["status"] == "failed" and result["exit"] == 128 + first, result


@tap.case
def what_runs_ends_by_itself_after_one_ctrl_c():
    with place() as at:
        at.write(commands(3, "sleep 1"))
        process = started(at, "-j", "1")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 130 and list(at.results()) == ["t0"], (process.returncode, at.results())


@tap.case
def time_and_failures_stop_it():
    with place() as at:
        at.write(commands(50, "sleep 0.2"))
        done = at.batch("-j", "1", "--time", "1", code=3)
        assert 0 < len(at.results()) < 50 and "1 s are over" in done.complained, done.complained
        assert "To go on: glovebox batch" in done.said, done.said
    with place() as at:
        at.write(commands(20, "false"))
        done = at.batch("-j", "1", "--fail-fast", "2", code=1)
        assert len(at.results()) == 2 and "not done" in done.complained, done.complained
        at.batch("-j", "4", code=1)
        assert at.batch("--any-result").returncode == 0 and len(at.results()) == 20


@tap.case
def money_is_counted_and_stops_it():
    with place() as at, places.model(TELLS) as address:
        with open(os.path.join(at.folder, "config.json"), "w", encoding="utf-8") as out:
            json.dump({"models": {"fake": {"provider": "openai", "context": 100000, "price_input": 10000, "price_output": 0}}}, out)
        at.write([{"id": f"p{number}", "run": {"prompt": "say it", "model": "fake"}} for number in range(6)])
        done = at.batch("-j", "1", "--money", "2", "--config", os.path.join(at.folder, "config.json"), code=3,
                        env={"GLOVEBOX_BASE_URL": address + "/v1", "OPENAI_API_KEY": "key"})
        results = at.results()
        assert [round(result["money"], 2) for result in results.values()] == [1.0, 1.0], results
        assert "have cost $2.00 of $2.00" in done.complained and "this run: $2.00" in done.said, (done.said, done.complained)
        assert "$2.00" in at.run("status", at.store).said


@tap.case
def a_lost_engine_brings_only_what_ran_again():
    with place() as at:
        at.write([*commands(4), *({"id": f"s{number}", "run": {"command": "sleep 1.5"}} for number in range(2))])
        process = at.start(at.tasks, "--out", at.store, "--json", "-j", "2")
        begun, killed, said = {}, False, []
        for line in process.stdout:
            event = json.loads(line)
            said.append(event)
            if event["event"] == "began":
                begun[event["id"]] = begun.get(event["id"], 0) + 1
                if event["id"] == "s1" and not killed:
                    killed = True
                    engines = [pid for pid, command in below(process.pid).items() if " serve " in command]
                    assert engines, below(process.pid)
                    os.kill(engines[0], signal.SIGKILL)
        assert process.wait(WAIT_SECONDS) == 0, said
        again = {event["id"] for event in said if event["event"] == "again"}
        assert killed and again <= {"s0", "s1"} and again, said
        assert all(count == 1 for name, count in begun.items() if name[0] == "t"), begun
        assert at.statuses() == {"done": 6}


def check_unchanged(at, seen):
    """A result never changes; SEEN has those of the last look."""
    for name in at.names("results"):
        text = read(os.path.join(at.job, "results", name))
        assert seen.setdefault(name, text) == text, name


def kill_one(process):
    """Kill the batch, its engine, or a process of a cell."""
    children = below(process.pid)
    engines = [pid for pid, command in children.items() if " serve " in command]
    others = [pid for pid in children if pid not in engines]
    kind = random.choice(["batch", "batch", "engine", "cell"])
    pids = {"batch": [process.pid], "engine": engines, "cell": others}[kind] or [process.pid]
    with contextlib.suppress(ProcessLookupError):
        os.kill(random.choice(pids), signal.SIGKILL)


@tap.plain_case
def kills_at_random_moments_leave_one_result_for_each_task():
    random.seed(SEED)
    print(f"# GLOVEBOX_TEST_SEED={SEED}")
    with place() as at:
        at.write([{"id": f"t{number}", "attempts": 100, "run": {"command": "echo $RANDOM >out.txt"}, "collect": ["out.txt"]}
                  for number in range(MANY)])
        kills, began, process, seen = 0, time.monotonic(), None, {}
        while kills < KILLS and (kills < KILLS_LEAST or time.monotonic() - began < KILL_SECONDS):
            if process is None or process.poll() is not None:
                process = at.start(at.tasks, "--out", at.store, "-j", str(CELLS), "--job", "j")
            # Some kills come while it begins; the others when it has done some more.
            moment = time.monotonic() + random.uniform(0, 0.3)
            goal = len(at.names("results")) + random.randrange(4) if random.random() < 0.5 else 0
            end(lambda: process.poll() is None and (time.monotonic() < moment or len(at.names("results")) < goal), "results")
            if process.poll() is None:
                kill_one(process)
                kills += 1
            if kills % 10 == 0:
                check_unchanged(at, seen)
        if process.poll() is None:
            process.kill()
        process.wait()
        print(f"# {kills} kills, {len(at.results())} results by then, {time.monotonic() - began:.0f} s")
        at.run_while_it_goes_on(at.tasks, "--out", at.store, "-j", "8", "--job", "j")
        check_unchanged(at, seen)
        results = at.results()
        # A task whose cell was killed has failed; everything else comes again.
        assert len(results) == MANY and set(at.statuses()) <= {"done", "failed"}, at.statuses()
        at.has_blobs()


@tap.case
def a_full_store_stops_it_and_nothing_is_lost():
    if os.geteuid() != 0:
        raise tap.Skip("only root may mount a file system of a few pages")
    with place() as at:
        small = os.path.join(at.folder, "small")
        os.mkdir(small)
        if tap.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", small]).returncode != 0:
            raise tap.Skip("a tmpfs cannot be mounted here")
        try:
            at.store = os.path.join(small, "store")
            at.write(commands(10))
            at.batch("--shard", "0/5", "--no-steal")
            filler = os.path.join(small, "filler")
            with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as out:
                while True:
                    out.write(b"\0" * 4096)
            done = at.batch("-j", "2", code=1)
            assert "No space left on device" in done.complained, done.complained
            os.remove(filler)
            at.batch("-j", "2")
            assert at.statuses() == {"done": 10}
        finally:
            subprocess.run(["umount", "-l", small], check=False)


@tap.case
def too_few_descriptors_for_all_cells_fail_no_task():
    with place() as at:
        at.write(commands(40, "sleep 0.2; echo x", attempts=100))
        few = (FEW_DESCRIPTORS, FEW_DESCRIPTORS)
        at.batch("-j", "30", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few))
        assert at.statuses() == {"done": 40}, at.results()


@tap.case
def a_terminal_has_one_line_that_is_painted():
    with place() as at:
        at.write([{"id": "bad", "run": {"command": "false"}}, {"id": "good", "run": {"command": "sleep 1"}}])
        for variables, colour in (({}, True), ({"NO_COLOR": "1"}, False)):
            with terminal.Terminal(PROGRAM, "batch", at.tasks, "--out", at.store, looked_at=False, columns=60,
                                   environment={"TMPDIR": at.temp, **variables}) as shown:
                assert shown.end() == 1
                text = shown.printed
            assert b"\r\033[K" in text and b"running" in text and b"bad: failed: " in text, text
            assert bool(re.search(rb"\033\[[0-9;]+m", text)) == colour, text
            shutil.rmtree(at.store)


@tap.case
def ten_thousand_tasks_take_bounded_memory():
    if SANITIZED:
        raise tap.Skip("sanitizers keep memory that was freed")
    with place() as at:
        at.write([{"id": f"t{number}", "run": {"command": "true"}, "labels": {"text": "x" * 2000}} for number in range(10000)])
        process = started(at, "--time", "3")
        peak = int(re.search(rb"VmHWM:\s+(\d+)", read(f"/proc/{process.pid}/status")).group(1))
        process.terminate()
        process.communicate(timeout=WAIT_SECONDS)
        assert peak < 64 << 10, f"{peak} KiB"
        print(f"# {peak} KiB")


# Schedulers.


@tap.case
def the_script_for_slurm_divides_the_tasks():
    with place() as at:
        at.write(commands(100))
        done = at.batch("--slurm", "--print", "--shards", "8%3", "-j", "2", "--retry", "gave_up")
        assert "#SBATCH --array=0-7%3\n" in done.said and "#SBATCH --requeue\n" in done.said, done.said
        assert '--shard "$SLURM_ARRAY_TASK_ID"/8 -j 2 --retry gave_up' in done.said, done.said
        assert tap.run(["sh", "-n"], input=done.said).returncode == 0
        assert not at.results()
        done = at.batch("--slurm", "--print", "--shards", "100000", code=1)
        assert "MaxArraySize" in done.complained, done.complained
        folder = os.path.join(at.folder, "bin")
        os.mkdir(folder)
        with open(os.path.join(folder, "scontrol"), "w", encoding="utf-8") as script:
            script.write("#!/bin/sh\necho 'MaxArraySize            = 5'\n")
        os.chmod(os.path.join(folder, "scontrol"), 0o755)
        more = {"PATH": folder + ":" + at.environment["PATH"]}
        assert "#SBATCH --array=0-4\n" in at.batch("--slurm", "--print", "-j", "1", env=more).said
        # Somebody who asks for a script, and forgets for what, gets no run.
        for words in (["--print"], ["--shards", "4"], ["--slurm", "--print", "--shard", "0/2"], ["--slurm", "--shards", "x"]):
            assert "--shard" in at.batch(*words, code=2).complained or words == ["--print"], words
        assert not at.results()
        done = at.batch("--slurm=$(id)", env=more, code=1)
        assert "plain words" in done.complained, done.complained


@tap.case
def the_job_for_kubernetes_is_yaml_with_what_cells_need():
    try:
        import yaml  # pylint: disable=import-outside-toplevel
    except ImportError as reason:
        raise tap.Skip("python3-yaml is not installed") from reason
    with place() as at:
        at.write(commands(100))
        job = yaml.safe_load(at.batch("--kubernetes=registry/glovebox:1", "--shards", "6%2", "--job", "My_job").said)
        spec = job["spec"]
        assert job["apiVersion"] == "batch/v1" and job["kind"] == "Job", job
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", job["metadata"]["name"]), job
        assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 6, 2), spec
        pod = spec["template"]["spec"]
        assert pod["hostUsers"] is False and pod["restartPolicy"] == "OnFailure", pod
        box = pod["containers"][0]
        security = box["securityContext"]
        assert security["procMount"] == "Unmasked" and security["seccompProfile"]["type"] == "Localhost", security
        assert box["image"] == "registry/glovebox:1"
        assert '--shard "$JOB_COMPLETION_INDEX"/6' in box["command"][2], box
        assert tap.run(["sh", "-n", "-c", box["command"][2]]).returncode == 0
        assert box["volumeMounts"][0]["mountPath"] == at.store and pod["volumes"][0]["name"] == "store", pod
    with open(os.path.join(HERE, "..", "..", "examples", "fleet", "seccomp.json"), encoding="utf-8") as text:
        profile = json.load(text)
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW" and profile["syscalls"], profile


tap.play(PROGRAM)
