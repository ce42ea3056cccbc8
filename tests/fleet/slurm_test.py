#!/usr/bin/env python3
"""slurm: a batch as an array of a real Slurm: one controller and one node on loopback, without munge.

slurm_test.py TAP_FOLDER GLOVEBOX"""
import contextlib
import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from place import unused_port  # noqa: E402, pylint: disable=wrong-import-position
import tap  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
with open(PROGRAM, "rb") as file:
    SANITIZED = b"__asan_init" in file.read()
TASKS = 24 if SANITIZED else 200
SHARDS = 4
WAIT_SECONDS = 600
ANSWER_SECONDS = 120
os.environ["PATH"] += ":/usr/sbin:/sbin"

CONFIGURATION = """ClusterName=glovebox
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
SlurmctldPort={controller}
SlurmdPort={node}
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
KillWait=2
MaxArraySize=50
NodeName={host} NodeAddr=127.0.0.1 Port={node} CPUs=4 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """A controller and a node, in the foreground, as children of this process."""

    def __init__(self):
        for name in ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue"):
            if shutil.which(name) is None:
                raise tap.Skip(f"{name} is not installed: apt install slurm-wlm")
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="glovebox-slurm-", dir="/var/tmp"))
        for name in ("state", "spool", "home", "temp", "work"):
            os.mkdir(os.path.join(self.folder, name))
        self.store = os.path.join(self.folder, "store")
        self.tasks = os.path.join(self.folder, "tasks.jsonl")
        self.daemons = []
        controller, node = unused_port(), unused_port()
        configuration = os.path.join(self.folder, "slurm.conf")
        with open(configuration, "w", encoding="utf-8") as out:
            out.write(CONFIGURATION.format(host=socket.gethostname().split(".")[0], user=getpass.getuser(), folder=self.folder,
                                           controller=controller, node=node))
        self.environment = {"PATH": os.environ["PATH"], "HOME": os.path.join(self.folder, "home"), "LANG": "C.UTF-8",
                            "TMPDIR": os.path.join(self.folder, "temp"), "SLURM_CONF": configuration}
        self.environment.update({name: os.environ[name] for name in ("ASAN_OPTIONS",) if name in os.environ})

    def log(self, name):
        with contextlib.suppress(OSError), open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as lines:
            return lines.read()[-3000:]
        return ""

    def begin(self):
        for words in (["slurmctld", "-D"], ["slurmd", "-D"]):
            self.daemons.append(subprocess.Popen(words, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL,
                                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        self.wait(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"), "an idle node", ANSWER_SECONDS)

    def wait(self, true, what, seconds=WAIT_SECONDS):
        until = time.monotonic() + seconds
        while not true():
            ended = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            assert not ended and time.monotonic() < until, (what, ended, self.log("slurmctld.log"), self.log("slurmd.log"))
            time.sleep(0.05)

    def ask(self, *words):
        return tap.run(words, env=self.environment, timeout=ANSWER_SECONDS).stdout

    def batch(self, *words):
        return tap.run([PROGRAM, "batch", *words], env=self.environment, cwd=os.path.join(self.folder, "work"), timeout=WAIT_SECONDS)

    def results(self):
        folder = os.path.join(self.store, "jobs", "j", "results")
        found = {}
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if name.endswith(".json"):
                with open(os.path.join(folder, name), encoding="utf-8") as lines:
                    found[name[:-5]] = json.load(lines)
        return found

    def parts(self):
        """The process of each part that runs: its number is in its environment."""
        found = {}
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as variables, \
                    open(f"/proc/{name}/cmdline", "rb") as words:
                text, line = variables.read(), words.read()
                if name.isdigit() and self.folder.encode() in text and b"\0--shard\0" in line:
                    found[int(line.split(b"\0--shard\0")[1].split(b"/")[0])] = int(name)
        return found

    def is_over(self):
        return not self.ask("squeue", "-h", "-a").strip()

    def end(self):
        self.ask("scancel", "-u", getpass.getuser())
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        until = time.monotonic() + 60
        left = None
        while left != []:
            left = []
            for name in os.listdir("/proc"):
                with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as variables:
                    if name.isdigit() and self.folder.encode() in variables.read():
                        left.append(int(name))
            if time.monotonic() > until:
                for pid in left:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def slurm():
    made = Slurm()
    try:
        made.begin()
        yield made
    finally:
        made.end()


@tap.case
def an_array_does_each_task_once_though_parts_are_killed_and_requeued():
    with slurm() as cluster:
        with open(cluster.tasks, "w", encoding="utf-8") as out:
            for number in range(TASKS):
                out.write(json.dumps({"id": f"t{number}", "run": {"command": "sleep 0.2"}}) + "\n")
        done = cluster.batch(cluster.tasks, "--out", cluster.store, "--job", "j", "--shards", "51", "--slurm")
        assert done.returncode == 1 and "at most 50 (MaxArraySize)" in done.stderr, done
        done = cluster.batch(cluster.tasks, "--out", cluster.store, "--job", "j", "-j", "1", "--shards", str(SHARDS),
                             "--slurm=--export=ALL -n 1")
        assert done.returncode == 0 and "Submitted batch job" in done.stdout, done
        number = done.stdout.split("Submitted batch job ")[1].split()[0]
        assert f"glovebox batch status {cluster.store} --job j" in done.stdout, done.stdout
        cluster.wait(lambda: len(cluster.results()) >= 3 and len(cluster.parts()) >= 2, "results")
        first, second, *_ = sorted(cluster.parts().items())
        os.kill(first[1], signal.SIGKILL)
        assert tap.run(["scontrol", "requeue", f"{number}_{second[0]}"], env=cluster.environment).returncode == 0
        cluster.wait(cluster.is_over, "the end of the array")
        seen = cluster.results()
        # The part that was killed may have been taken over by one that ended later.
        assert len(seen) > TASKS // 2, len(seen)
        status = cluster.batch("status", cluster.store)
        assert status.returncode == (0 if len(seen) == TASKS else 1), status
        done = cluster.batch("--job", "j", "--out", cluster.store)
        assert done.returncode == 0, done
        results = cluster.results()
        assert len(results) == TASKS and all(results[name] == seen[name] for name in seen)
        print(f"# {len(seen)} of {TASKS} results when the array was over")


tap.play()
