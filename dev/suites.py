"""suites: the tests that a build folder registers, played some at a time and counted as they speak.

meson says which tests there are and how each is run; `meson test` plays the same ones. They are played here
because a reader wants to see what runs and what failed while it runs, case by case, also in a pipe.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

TAIL_LINES = 40  # of a failure's log: a screenful
IDLE_SECONDS, IDLE_SHARE = 1.0, 0.2  # how long to look at the processors, and how idle they are to be
CUT_SECONDS = 60  # for tests to end when the time of the whole check is over
END_SECONDS = 5  # for a test that took too long to remove its folders
EXIT_SKIP = 77  # as automake and meson have it
# Names of cases, for a runner to play only those that hold it. Each runner of ours reads this.
ONLY_VARIABLE = "TAP_ONLY"
TAP_PLAN = re.compile(r"^1\.\.(\d+)")
TAP_CASE = re.compile(r"^\s*(not )?ok\b(?:\s+\d+)?(?:\s*-)?\s*(.*)$")
TAP_SKIP = re.compile(r"#\s*skip\b:?\s*(.*)", re.IGNORECASE)
SKIP_WHY = "# skip: "  # cmocka names the case only: its reason is the line before (unit_skip)


class Test:
    """One registered test."""

    def __init__(self, row, folder):
        self.name = row["name"]
        self.suites = [suite.split(":", 1)[1] for suite in row["suite"]]
        self.command = row["cmd"]
        self.environment = row["env"]
        self.seconds = row["timeout"]
        self.folder = row["workdir"] or folder
        self.tap = row["protocol"] == "tap"
        self.beside_others = row["is_parallel"]


def registered(folder):
    """All tests of a build folder in the order in which they should begin."""
    text = subprocess.run(["meson", "introspect", "--tests", folder], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    rows = sorted(json.loads(text), key=lambda row: -row["priority"])
    return [Test(row, os.path.abspath(folder)) for row in rows]


class Report:
    """What one test said, line by line: its cases, and in the end whether it is well."""

    def __init__(self, tap=True):
        self.tap = tap
        self.planned = None
        self.passed = 0
        self.failed = []  # names of cases
        self.reasons = []  # of skipped cases
        self.lines = []
        self.remark = ""

    def seen(self):
        return self.passed + len(self.failed) + len(self.reasons)

    def line(self, line):
        """Takes a line; true when it is a case that failed."""
        self.lines.append(line)
        before, self.remark = self.remark, line
        plan = TAP_PLAN.match(line)
        if plan:
            # A program of cmocka may have several groups.
            self.planned = (self.planned or 0) + int(plan.group(1))
            skip = TAP_SKIP.search(line)
            if skip and self.planned == 0:
                self.reasons.append(skip.group(1).strip() or "no reason given")
                self.planned = 1
            return False
        match = TAP_CASE.match(line)
        if not match:
            return False
        skip = TAP_SKIP.search(match.group(2))
        if skip:
            why = before.removeprefix(SKIP_WHY) if before.startswith(SKIP_WHY) else ""
            self.reasons.append(why or skip.group(1).strip() or "no reason given")
        elif match.group(1):
            self.failed.append(match.group(2))
            return True
        else:
            self.passed += 1
        return False

    def end(self, code, timed_out_s=0):
        """The sentence that says what is wrong with the test as a whole, or None."""
        if timed_out_s:
            return f"it was ended after {timed_out_s} s"
        if code == EXIT_SKIP and self.seen() == 0:
            self.reasons.append("no reason given")
            return None
        if self.planned is not None and self.planned != self.seen():
            return f"it promised {self.planned} cases and said {self.seen()}; its exit status is {code}"
        if self.tap and self.planned is None:
            return f"it did not say how many cases it has; its exit status is {code}"
        if code != 0 and not self.failed:
            return f"its exit status is {code}"
        if self.seen() == 0 and not self.tap:
            self.passed = 1
        return None

    def about_failures(self):
        """The failed cases, each with its remarks; the end of all that was said when there is none."""
        if not self.failed:
            return "\n".join(self.lines[-TAIL_LINES:])
        kept, wanted = [], False
        for line in self.lines:
            if TAP_CASE.match(line):
                wanted = line.lstrip().startswith("not ok") and not TAP_SKIP.search(line)
            if wanted:
                kept.append(line)
        return "\n".join(kept[:TAIL_LINES])


class Playing:
    """A test that runs."""

    def __init__(self, test, environment):
        self.test = test
        self.report = Report(test.tap)
        self.began = time.monotonic()
        self.timed_out = False
        self.cut = False  # the time of the whole check was over
        self.seconds = self.cpu_seconds = 0.0
        self.case_ends = []  # (seconds since the beginning, name)
        # What a sanitizer says is not in the way of the cases.
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            test.command, cwd=test.folder, env={**environment, **test.environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, text=True,
            errors="replace", start_new_session=True)

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def too_late(self):
        self.timed_out = True
        self.signal(signal.SIGTERM)
        time.sleep(END_SECONDS)
        self.signal(signal.SIGKILL)

    def cut_short(self):
        """The time of the whole check is over. What was played counts; the runner removes its folders."""
        self.cut = True
        self.signal(signal.SIGTERM)

    def finish(self, heard):
        """Reads to the end; HEARD is called with each case that failed. Says what is wrong, or None."""
        timer = threading.Timer(self.test.seconds, self.too_late)
        timer.daemon = True
        timer.start()
        for line in self.process.stdout:
            seen = self.report.seen()
            # A case that is ended in the middle has not failed.
            if self.cut:
                continue
            if self.report.line(line.rstrip("\n")):
                heard(self)
            if self.report.seen() > seen:
                case = TAP_CASE.match(line)
                self.case_ends.append((time.monotonic() - self.began, case.group(2) if case else self.test.name))
        _, status, usage = os.wait4(self.process.pid, 0)
        timer.cancel()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - self.began
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        if self.cut:
            return None
        return self.report.end(self.process.returncode, self.test.seconds if self.timed_out else 0)

    def case_times(self):
        """(seconds, name) of each case."""
        before = [0.0] + [at for at, _ in self.case_ends]
        return [(at - since, name) for since, (at, name) in zip(before, self.case_ends)]

    def error_text(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def describe(self):
        """The words of a line of progress."""
        cases = f" {self.report.seen()}/{self.report.planned}" if self.report.planned else ""
        return f"{self.test.name}{cases} {time.monotonic() - self.began:.0f} s"


def processor_times():
    """(idle, all) since the machine started, of all processors together, in ticks."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def have_processors_time():
    """Have the processors had nothing to do for a part of the last second? Takes that second."""
    idle_before, all_before = processor_times()
    time.sleep(IDLE_SECONDS)
    idle, ticks = processor_times()
    return idle - idle_before >= IDLE_SHARE * (ticks - all_before)


class Players:
    """Plays tests, ALWAYS at a time, and up to AT_ONCE while the processors have time: tests wait for much,
    but where they compute, more of them at once make nothing faster, and each of them late. At UNTIL (of the
    monotonic clock; None: never) those that play are cut short, and ENDED gets those that wait with no Playing."""

    def __init__(self, tests, always, at_once, environment, heard, ended, until=None):
        self.waiting = list(tests)
        self.total = len(self.waiting)
        self.done = 0
        self.playing = []
        self.lock = threading.Lock()
        self.environment = environment
        self.heard = heard
        self.ended = ended
        self.until = until
        self.stopped = False
        self.looking = threading.Lock()
        self.threads = [threading.Thread(target=self.work, args=(number < always,), daemon=True)
                        for number in range(at_once)]

    def wait_for_time(self):
        """One at a time, so that each sees what the one before has begun."""
        with self.looking:
            while self.waiting and not self.stopped and not self.is_over() and not have_processors_time():
                pass

    def is_over(self):
        return self.until is not None and time.monotonic() >= self.until

    def work(self, always):
        while True:
            if not always:
                self.wait_for_time()
            with self.lock:
                if self.stopped or not self.waiting or self.is_over():
                    return
                test = self.waiting.pop(0)
                try:
                    playing = Playing(test, self.environment)
                except OSError as error:
                    self.done += 1
                    self.ended(test, None, str(error))
                    continue
                self.playing.append(playing)
            wrong = playing.finish(self.heard)
            with self.lock:
                self.playing.remove(playing)
                self.done += 1
                if not self.stopped:
                    self.ended(test, playing, wrong)

    def play(self):
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join(None if self.until is None else max(0, self.until - time.monotonic()))
        if any(thread.is_alive() for thread in self.threads):
            self.cut_short()
        for test in self.waiting:
            self.ended(test, None, None)

    def cut_short(self):
        with self.lock:
            for playing in self.playing:
                playing.cut_short()
        for thread in self.threads:
            thread.join(CUT_SECONDS)
        for playing in list(self.playing):
            playing.signal(signal.SIGKILL)
        for thread in self.threads:
            thread.join()

    def stop(self, number):
        """No further test begins; the running ones get a signal."""
        self.stopped = True
        for playing in list(self.playing):
            playing.signal(number)

    def describe(self):
        playing = ", ".join(one.describe() for one in list(self.playing))
        return f"{self.done} of {self.total} tests; now {playing or 'the last ones end'}"
