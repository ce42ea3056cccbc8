#!/usr/bin/env python3
"""What a command used is told by `exec --json`, and the limits of a whole cell end it by their names."""
import contextlib
import http.server
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])  # it is started in another folder
USER = 61000 + os.getpid() % 10000  # whom root becomes where no control group may be made
MEBI = 1 << 20
# Uses a processor for SECONDS, in COUNT processes.
BURN = """import os, sys, time
for i in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
while time.process_time() < float(sys.argv[2]):
    pass
try:
    os.wait()
except ChildProcessError:
    pass
"""
# Its child is waited for by nobody.
HIDES = """import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while time.process_time() < 1:
        pass
    os._exit(0)
try:
    os.wait()
except ChildProcessError:
    pass
"""
MEMBERS = ["cpu_s", "cpu_user_s", "wall_s", "memory_peak", "written", "read", "net_in", "net_out", "processes_peak",
           "source", "limit"]
BARE = "needs a control group"


class Place:
    """A workspace, a home, and how glovebox is run in them."""

    def __init__(self, root, user=None):
        self.root, self.user = root, user
        self.work, self.home = os.path.join(root, "work"), os.path.join(root, "home")
        for folder in (self.work, self.home):
            os.mkdir(folder)
            if user:
                os.chown(folder, user, user)
        self.program = GLOVEBOX
        if user:
            os.chmod(root, 0o755)

    def put(self, name, text, mode=0o644):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def run(self, *words, environment=None, **options):
        known = {name: os.environ[name] for name in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}
        known.update(HOME=self.home, LANG="C.UTF-8", **(environment or {}))
        if self.user:
            options.update(user=self.user, group=self.user, extra_groups=[])
        return subprocess.run([self.program, *words], cwd=self.work, env=known, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                              **options)

    def report(self, *words, **options):
        """Run `exec` with a report: how it ended, and the report."""
        path = os.path.join(self.root, "report")
        with open(path, "w+", encoding="utf-8") as file:
            done = self.run("exec", "--json", str(file.fileno()), *words, pass_fds=(file.fileno(),), **options)
            file.seek(0)
            text = file.read()
        assert text.endswith("}\n") and text.count("\n") == 1, (done, text)
        return done, json.loads(text)


@contextlib.contextmanager
def place(user=None):
    root = tempfile.mkdtemp(prefix="glovebox-accounts-", dir="/tmp")
    try:
        yield Place(root, user)
    finally:
        shutil.rmtree(root)


@contextlib.contextmanager
def ordinary():
    """A place of an ordinary user, who may make no control group."""
    with place(USER if os.geteuid() == 0 else None) as here:
        if os.geteuid() == 0 and here.run("--version").returncode != 0:
            raise tap.Skip("another user cannot run this program where it lies")
        if BARE not in here.run("exec", "--scope", "never", "--cpus", "1", "--", "true").stderr:
            raise tap.Skip("this user may make control groups")
        yield here


def exact(here):
    """Are accounts exact for the user of HERE? Else nothing of a group can be tried."""
    source = here.report("--", "true")[1]["accounts"]["source"]["cpu"]
    assert source in ("cgroup2", "cgroup1", "rusage"), source
    return source.startswith("cgroup")


def need_exact(here):
    if not exact(here):
        raise tap.Skip("this user may make no control group")


def policy(here, **limits):
    return ["--policy", here.put("policy.json", json.dumps({"write": ["."], "limits": limits}))]


@tap.case
def a_report_has_these_members():
    with place() as here:
        done, report = here.report("--", "sh", "-c", "echo out; echo err >&2; exit 7")
        assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n"), done
        assert {name: report[name] for name in ("exit", "signal", "timed_out", "limit", "status", "code", "denials",
                                                "network")} == {
            "exit": 7, "signal": None, "timed_out": False, "limit": None, "status": "done", "code": 7,
            "denials": [], "network": []}, report
        accounts = report["accounts"]
        assert list(accounts) == MEMBERS and list(accounts["source"]) == ["cpu", "memory", "io", "net"], accounts
        assert report["level"] in (0, 2, 3) and 0 < report["seconds"] == accounts["wall_s"], report
        assert 0 < accounts["memory_peak"] and 1 <= accounts["processes_peak"] < 100, accounts
        assert accounts["source"]["net"] == "none" and accounts["net_in"] == accounts["net_out"] == 0, accounts


@tap.case
def every_end_is_told():
    with place() as here:
        for words, code, wanted in (
                (("--", "sh", "-c", "kill -9 $$"), 137, {"exit": None, "signal": 9, "limit": None}),
                (("-t", "0.5", "--", "sleep", "600"), 124, {"timed_out": True, "status": "timed_out", "limit": None}),
                (("--", "no-such-program"), 127, {"exit": 127, "status": "failed"}),
                (("-m", "64M", "--", "python3", "-c", "x = bytearray(3 << 30)"), 137,
                 {"exit": None, "signal": 9, "limit": "memory"}),
                (("-m", "64M", "--", "python3", "-c", "x = bytearray(200 << 20)"), 137,
                 {"signal": 9, "limit": "memory"})):
            done, report = here.report(*words)
            assert done.returncode == report["code"] == code, (words, done, report)
            assert {name: report[name] for name in wanted} == wanted, (words, report)
            assert report["accounts"]["limit"] == report["limit"], report


@tap.case
def the_limit_of_the_time_has_its_name():
    with place() as here:
        done, report = here.report(*policy(here, wall_s=0.5), "--", "sleep", "600")
        assert (done.returncode, report["timed_out"], report["limit"]) == (124, True, "wall_s"), report


@tap.case
def a_report_goes_to_a_file_that_is_empty_before():
    with place() as here:
        here.put("work/report.json", "x" * 100000)
        done = here.run("exec", "--json", "report.json", "--", "true")
        with open(os.path.join(here.work, "report.json"), encoding="utf-8") as file:
            assert (done.returncode, json.load(file)["exit"]) == (0, 0), done
        done = here.run("exec", "--json=../new", "--", "sh", "-c", "test ! -e ../new")
        with open(os.path.join(here.root, "new"), encoding="utf-8") as file:
            assert (done.returncode, json.load(file)["exit"]) == (0, 0), done


@tap.case
def a_place_that_takes_no_report_is_told_before_the_program_runs():
    with place() as here, open("/dev/null", "rb") as reads:
        os.mkfifo(os.path.join(here.work, "pipe"))
        os.symlink("../home/planted", os.path.join(here.work, "link"))
        os.symlink("../home", os.path.join(here.work, "folder"))
        for words, said in (
                (["--json", "999"], "descriptor 999 is not open"), (["--json", "0"], "belongs to the program"),
                (["--json", "1"], "belongs to the program"), (["--json", "2"], "belongs to the program"),
                (["--json", "99999999999999999999"], "descriptor 99999999999999999999 is not open"),
                (["--json", str(reads.fileno())], "open for reading only"),
                (["--json", "no/such/file"], "No such file"), (["--json", "."], "Is a directory"),
                (["--json", "pipe"], "nobody reads"), (["--json", "link"], "no link is followed"),
                (["--json", "folder/planted"], "no link is followed"), (["--json="], "its value is empty"),
                (["--json"], "needs a file or a descriptor")):
            done = here.run("exec", *words, "--", "touch", "ran", pass_fds=(reads.fileno(),))
            assert done.returncode == 2 and said in done.stderr, (words, done)
            assert not os.path.exists(os.path.join(here.work, "ran")), words
        assert os.listdir(here.home) in ([], [".local"]), os.listdir(here.home)


@tap.case
def a_report_that_cannot_be_written_is_a_failure():
    with place() as here:
        done = here.run("exec", "--json", "/dev/full", "--", "true")
        assert done.returncode == 1 and "could not be written" in done.stderr, done
        done = here.run("exec", "--json", "/dev/full", "--", "sh", "-c", "exit 9")
        assert done.returncode == 9, done


@tap.case
def a_cell_that_was_not_built_has_a_report():
    with place() as here:
        done, report = here.report("--write", "/proc", "--", "true")
        assert done.returncode == report["code"] != 0 and report["exit"] is None, (done, report)
        assert report["status"] == "set_up", report


@tap.case
def processor_time_is_that_of_time():
    with place() as here:
        burn = here.put("work/burn.py", BURN)
        own = here.report("--", "true")[1]["accounts"]["cpu_s"]  # of the cell itself
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["python3", burn, "2", "0.5"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        bare = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        accounts = here.report("--", "sh", "-c", "python3 burn.py 2 0.5 & wait")[1]["accounts"]
        assert 0.9 < accounts["cpu_s"] < bare + 2 * own + 1 and accounts["cpu_user_s"] <= accounts["cpu_s"], (bare, own, accounts)


@tap.case
def a_child_that_hides_its_children_is_counted_or_told():
    with place() as here:
        here.put("work/hides.py", HIDES)
        accounts = here.report("--", "python3", "hides.py")[1]["accounts"]
        if accounts["source"]["cpu"] == "rusage":
            assert accounts["cpu_s"] < 1.0, accounts  # and no reader believes it, because of its source
        else:
            assert accounts["cpu_s"] > 0.95, accounts


@tap.case
def an_estimate_is_told_as_one():
    with ordinary() as here:
        here.put("work/hides.py", HIDES)
        accounts = here.report("--", "python3", "hides.py")[1]["accounts"]
        assert accounts["source"] == {"cpu": "rusage", "memory": "sampled", "io": "rusage", "net": "none"}, accounts
        assert accounts["cpu_s"] < 1.0, accounts


@tap.case
def written_bytes_are_counted():
    with place() as here:
        accounts = here.report("--", "sh", "-c", "head -c 52428800 /dev/zero > big; sync big")[1]["accounts"]
        if os.stat(here.work).st_dev != os.stat("/dev/shm").st_dev and accounts["written"] == 0:
            raise tap.Skip("the kernel counts no bytes on this file system")
        assert 50 * MEBI <= accounts["written"] < 70 * MEBI, accounts


@tap.case
def memory_and_processes_have_their_peaks():
    with place() as here:
        accounts = here.report("--", "python3", "-c", "import os, time\nx = bytearray(100 << 20)\n"
                               "for i in range(5):\n  if os.fork() == 0: time.sleep(0.5); os._exit(0)\n"
                               "for i in range(5): os.wait()")[1]["accounts"]
        assert 100 * MEBI < accounts["memory_peak"] < 1024 * MEBI, accounts
        assert 6 <= accounts["processes_peak"] <= 12, accounts


@tap.case
def a_command_starts_no_more_processes_than_it_may():
    with place() as here:
        need_exact(here)
        script = ("import os, time\nn = 0\ntry:\n  while n < 60:\n    if os.fork() == 0: time.sleep(60); os._exit(0)\n    n += 1\n"
                  "except BlockingIOError: print(n); raise SystemExit(4)")
        # The program itself is one of them.
        done, report = here.report("--pids", "20", "--", "python3", "-c", script)
        assert (done.returncode, done.stdout, report["limit"]) == (4, "19\n", "pids"), (done, report)
        assert "20 processes (limits.pids); start fewer at once, or raise --pids" in done.stderr, done
        done = here.run("exec", "--pids", "20", "--", "python3", "-c", script)
        assert (done.returncode, done.stdout) == (4, "19\n"), done


@tap.case
def half_a_processor_is_half_a_processor():
    with place() as here:
        need_exact(here)
        here.put("work/burn.py", BURN)
        accounts = here.report("--cpus", "0.5", "--", "python3", "burn.py", "2", "0.5")[1]["accounts"]
        assert accounts["wall_s"] > 1.4, accounts
        assert accounts["cpu_s"] < 0.6 * accounts["wall_s"] + 0.2, accounts


@tap.case
def more_processors_than_the_machine_gives_us_are_no_error():
    above = f"/sys/fs/cgroup/cpu/glovebox-test-{os.getpid()}"
    if os.geteuid() != 0 or not os.path.exists("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"):
        raise tap.Skip("only root may make a control group of version 1, which refuses more than one above has")

    def enter():
        with open(os.path.join(above, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
    with place() as here:
        need_exact(here)
        os.mkdir(above)
        try:
            for name, value in (("cpu.cfs_period_us", 100_000), ("cpu.cfs_quota_us", 50_000)):
                with open(os.path.join(above, name), "w", encoding="ascii") as file:
                    file.write(str(value))
            done = here.run("exec", "--cpus", "0.9", "--", "echo", "hi", preexec_fn=enter)
            assert (done.returncode, done.stdout) == (0, "hi\n"), done
        finally:
            deadline = time.monotonic() + 20
            while os.path.isdir(above):
                with contextlib.suppress(OSError):
                    os.rmdir(above)
                assert time.monotonic() < deadline, "the group is still used"
                time.sleep(0.02)


@tap.case
def a_limit_of_processor_time_ends_the_cell():
    with place() as here:
        need_exact(here)
        here.put("work/burn.py", BURN)
        here.put("work/hides.py", HIDES + "time.sleep(600)\n")
        for program in ("burn.py 2 60", "hides.py"):
            done, report = here.report(*policy(here, cpu_s=0.7), "--", "sh", "-c",
                                       f"echo begun; exec python3 {program}")
            assert (done.returncode, report["limit"], report["accounts"]["limit"]) == (137, "cpu_s", "cpu_s"), report
            assert "limits.cpu_s" in done.stderr and done.stdout == "begun\n", done
            assert 0.7 <= report["accounts"]["cpu_s"] < 4, report


@tap.case
def without_a_group_no_limit_is_pretended():
    with ordinary() as here:
        hint = "systemd-run --user --scope -p Delegate=yes glovebox exec …"
        done = here.run("exec", "--scope", "never", "--cpus", "1.5", "--", "touch", "ran")
        assert done.returncode == 2 and f"--cpus needs a control group: {hint}" in done.stderr, done
        done = here.run("exec", *policy(here, cpu_s=5), "--", "touch", "ran")
        assert done.returncode == 2 and f"limits.cpu_s needs a control group: {hint}" in done.stderr, done
        for key in ("written", "io_write"):
            done = here.run("exec", *policy(here, **{key: "10M"}), "--", "touch", "ran")
            assert done.returncode == 2 and f"limits.{key} needs a control group of version 2" in done.stderr, done
        assert not os.path.exists(os.path.join(here.work, "ran"))


@tap.case
def bad_values_are_refused():
    with place() as here:
        for option, values in {"--cpus": ("0", "-1", "abc", "1e9", "", "99999999", "0.001"),
                               "--io-write": ("0", "-1", "abc", "1e9", "", "1"),
                               "--memory": ("0", "-1", "abc", "1e9", ""), "--pids": ("0", "-1", "abc", "1e9", ""),
                               "--scope": ("0", "", "always")}.items():
            for value in values:
                done = here.run("exec", f"{option}={value}", "--", "touch", "ran")
                assert done.returncode == 2 and option in done.stderr, (option, value, done)
        for key, values in {"cpus": (0, -1, "abc", 1e9, ""), "cpu_s": (0, -1, "abc", 1e12, ""),
                            "written": (0, -1, "abc", "", "1"), "io_write": (0, -1, "abc", ""),
                            "net": (0, -1, "abc", "")}.items():
            for value in values:
                done = here.run("exec", *policy(here, **{key: value}), "--", "touch", "ran")
                assert done.returncode in (2, 125) and f"limits/{key}" in done.stderr.replace(".", "/"), (key, value, done)
        assert not os.path.exists(os.path.join(here.work, "ran"))


@contextlib.contextmanager
def web(size):
    """A server of this machine whose answer has SIZE bytes."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(size // 65536):
                    self.wfile.write(bytes(65536))

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


FETCH = "import sys, urllib.request\nurllib.request.urlopen(f'http://127.0.0.1:{sys.argv[1]}/').read()"


@tap.case
def bytes_of_the_network_are_those_the_proxy_carried():
    with place() as here, web(4 * MEBI) as port:
        done, report = here.report("--host-loopback", str(port), "--", "python3", "-c", FETCH, str(port))
        accounts = report["accounts"]
        assert done.returncode == 0 and accounts["source"]["net"] == "proxy", (done, report)
        assert 4 * MEBI < accounts["net_in"] < 4 * MEBI + 1000 and 30 < accounts["net_out"] < 1000, accounts
        rows = report["network"]
        assert len(rows) == 1 and rows[0]["host"].endswith(f":{port}"), rows
        assert (rows[0]["in"], rows[0]["out"]) == (accounts["net_in"], accounts["net_out"]), report


@tap.case
def a_limit_of_the_network_ends_the_cell():
    with place() as here, web(1024 * MEBI) as port:
        done, report = here.report(*policy(here, net="8M"), "--host-loopback", str(port), "--", "sh", "-c",
                                   'python3 -c "$0" "$1"; sleep 600', FETCH, str(port))
        assert (done.returncode, report["limit"]) == (137, "net"), (done, report)
        assert "limits.net" in done.stderr and report["accounts"]["net_in"] >= 8 * MEBI, (done, report)


@tap.case
def a_scope_of_systemd_is_begun_once_and_with_the_same_words():
    with ordinary() as here:
        runtime = os.path.join(here.root, "runtime")
        here.put("runtime/systemd/private", "")
        here.put("bin/systemd-run", f"#!/bin/sh\nprintf '%s\\n' \"$@\" >> {here.home}/words\n"
                 "while [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n", 0o755)
        environment = {"XDG_RUNTIME_DIR": runtime, "PATH": here.root + "/bin:" + os.environ["PATH"]}
        words = ["exec", "--cpus", "1", "--", "printf", "%s", "a  b"]
        done = here.run(*words, environment=environment)
        # This systemd gives no group, so the second time it is said.
        assert done.returncode == 2 and BARE in done.stderr, done
        with open(os.path.join(here.home, "words"), encoding="utf-8") as file:
            said = file.read().splitlines()
        assert said[:5] == ["--scope", "--quiet", "-p", "Delegate=yes", "--user"], said
        assert said[5] == "--" and said[7:] == words, said
        os.unlink(os.path.join(here.home, "words"))
        done = here.run("exec", "--scope=never", *words[1:], environment=environment)
        assert done.returncode == 2 and not os.path.exists(os.path.join(here.home, "words")), done
        done = here.run("exec", "--", "true", environment=environment)
        assert done.returncode == 0 and not os.path.exists(os.path.join(here.home, "words")), done


def groups_of(pid):
    """The groups of the front PID, wherever groups are."""
    found = []
    for top, names, _ in os.walk("/sys/fs/cgroup"):
        found += [os.path.join(top, name) for name in names if name.startswith(f"glovebox-{pid}-")]
    return found


@tap.case
def nothing_of_a_group_is_left():
    with place() as here:
        need_exact(here)
        for ends in (False, True):
            process = subprocess.Popen([GLOVEBOX, "exec", "--json", "report", "--", "sh", "-c", "echo on; sleep 600"],
                                       cwd=here.work, stdout=subprocess.PIPE, env=dict(os.environ, HOME=here.home))
            assert process.stdout.readline() == b"on\n"
            assert groups_of(process.pid), "the cell has no group"
            if ends:
                process.terminate()
            else:
                process.kill()
            process.wait()
            process.stdout.close()
            # A later front removes those of a killed one, as soon as the kernel has ended all in them.
            for _ in range(50):
                here.report("--", "true")
                if not groups_of(process.pid):
                    break
            assert not groups_of(process.pid), groups_of(process.pid)


@tap.case
def doctor_tells_how_exact_accounts_are():
    with place() as here:
        facts = {fact["name"]: fact["value"] for fact in json.loads(here.run("doctor", "--json").stdout)["kernel"]}
        assert facts["accounts"].startswith("exact" if exact(here) else "estimates"), facts


tap.play()
