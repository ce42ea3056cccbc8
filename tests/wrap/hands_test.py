#!/usr/bin/env python3
"""Agents outside whose commands go through the cell: a stand-in of each, and what is refused.

hands_test.py TAP_FOLDER GLOVEBOX

The stand-in is a program with the agent's name that plays the Python of its first argument. `sh` runs a command as that
agent does: by the variable that names its shell, or by `bash` in PATH."""
import contextlib
import fcntl
import glob
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402, pylint: disable=wrong-import-position
from place import Home, outside  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
MARKER, KEY = "only-the-person-reads-this", "sk-test-0123456789abcdef"
WAIT_SECONDS = 120  # a busy machine
# The variable of the agent's shell (None: bash by PATH), and that of its key.
AGENTS = {"claude": ("CLAUDE_CODE_SHELL", "ANTHROPIC_API_KEY"), "opencode": ("SHELL", "OPENAI_API_KEY"),
          "goose": ("GOOSE_SHELL", "OPENAI_API_KEY"), "qwen": (None, "OPENAI_API_KEY"),
          "gemini": (None, "GEMINI_API_KEY")}
STAND_IN = """#!/usr/bin/env python3
import json, os, signal, subprocess, sys, time
SHELL = os.environ.get(%r) if %r else "bash"
RUN = os.path.dirname(SHELL) if "/" in SHELL else os.environ["PATH"].split(":")[0]
def start(text, *more, **options):
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([SHELL, "-c", text, *more], **options)
def sh(text, *more, data=None, **options):
    if data is not None:
        options["stdin"] = subprocess.PIPE
    process = start(text, *more, **options)
    out, err = process.communicate(data, timeout=100)
    return [process.returncode, (out or b'').decode(), (err or b'').decode()]
def wait_for(path):
    end = time.monotonic() + 100
    while not os.path.exists(path) and time.monotonic() < end:
        time.sleep(0.01)
    return os.path.exists(path)
told = None
exec(sys.argv[-1])
print(json.dumps(told))
"""


class Place(Home):
    """A person's home, a workspace, and the agent's program; gone at the end."""

    def __init__(self, agent):
        self.agent, (variable, self.key) = agent, AGENTS.get(agent, (None, None))
        super().__init__("glovebox-hands-", parent=outside())
        self.write("marker", MARKER)
        self.program(agent, STAND_IN % (variable, variable))
        self.runs = os.path.join(self.home, ".local/state/glovebox/wrap/shells")
        self.variables = self.environment(PERSONS="persons", **({self.key: KEY} if self.key else {}))

    def start(self, script, *options):
        return subprocess.Popen([PROGRAM, "wrap", *options, "--hands", self.agent, "--", script], cwd=self.work,
                                env=self.variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)

    def wrap(self, *words):
        return subprocess.run([PROGRAM, *words], cwd=self.work, env=self.variables, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)

    def play(self, script, *options):
        """What SCRIPT has told; nothing of the run is left."""
        process = self.start(script, *options)
        out, err = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 0, (process.returncode, out.decode(), err.decode())
        assert os.listdir(self.runs) == [], os.listdir(self.runs)
        return json.loads(out)


@contextlib.contextmanager
def place(agent="claude"):
    with Place(agent) as made:
        yield made


def running(mark):
    found = subprocess.run(["pgrep", "-f", f"^sleep {mark}"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split() if int(pid) != os.getpid()]


def gone(mark):
    end = time.monotonic() + WAIT_SECONDS
    while running(mark) and time.monotonic() < end:
        time.sleep(0.05)
    return not running(mark)


def led(agent):
    with place(agent) as at:
        told = at.play("told = [sh('echo ran-$((6*7)); cat %s; echo key=$%s $PERSONS $OWN; pwd; echo $0 $1; "
                       "echo made >made; exit 7', 'name', 'argument', env={**os.environ, 'OWN': 'own'}), "
                       "open(%r).read()]" % (at.home + "/marker", at.key, at.home + "/marker"))
        (code, out, err), outside_text = told
        assert code == 7 and out == f"ran-42\nkey= own\n{at.work}\nname argument\n", told
        assert "No such file" in err and outside_text == MARKER, told
        with open(os.path.join(at.work, "made"), encoding="ascii") as file:
            assert file.read() == "made\n"
        done = at.wrap("undo")
        assert done.returncode == 0 and not os.path.exists(os.path.join(at.work, "made")), done


for each in AGENTS:
    function = (lambda agent: lambda: led(agent))(each)
    function.__name__ = f"{each}_is_led_to_a_shell_in_the_cell"
    tap.case(function)


@tap.case
def the_agent_keeps_the_descriptors_and_ignored_signals_of_the_person():
    """As from a shell: `<(…)` is such a descriptor, and nohup(1) ignores such a signal."""
    with place() as at:
        given, ours = os.pipe()
        os.write(ours, b"given")
        os.close(ours)
        script = f"told = [os.read({given}, 9).decode(), signal.getsignal(signal.SIGHUP) == signal.SIG_IGN]"
        with subprocess.Popen([PROGRAM, "wrap", "--hands", "claude", "--", script], cwd=at.work, env=at.variables,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pass_fds=[given],
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
            out, _ = process.communicate(timeout=WAIT_SECONDS)
        os.close(given)
        assert json.loads(out) == ["given", True], out


@tap.case
def bytes_go_through_in_both_directions_and_end():
    with place() as at:
        told = at.play("told = [sh('cat; echo error >&2', data=b'x' * 3000000)[1:],"
                       " sh('wc -c', data=b'')[1], sh('head -c 5', data=b'hello world')[1]]")
        assert told[0] == ["x" * 3000000, "error\n"] and told[1] == "0\n" and told[2] == "hello", str(told)[:300]
        told = at.play("a, b = os.pipe(); p = start('echo to the pipe', stdout=b); os.close(b); p.wait(); "
                       "told = [os.read(a, 100).decode(), sh('seq 100000', stdout=open('out', 'w'))[0], "
                       "len(open('out').read().splitlines())]")
        assert told == ["to the pipe\n", 0, 100000], told


@tap.case
def only_variables_of_the_agents_own_come_in():
    with place() as at:
        told = at.play("e = {**os.environ, 'OWN': 'a b', 'PERSONS': 'changed', 'GITHUB_TOKEN': 't', 'MY_API_KEY': 'k', "
                       "'HOME': '/x', 'PATH': '/nowhere', 'TMPDIR': '/nowhere', 'https_proxy': 'http://x'}; "
                       "told = sh('env', env=e)[1].splitlines()")
        names = {line.partition("=")[0]: line.partition("=")[2] for line in told}
        assert names["OWN"] == "a b" and names["PERSONS"] == "changed", told
        assert not {"GITHUB_TOKEN", "MY_API_KEY", "ANTHROPIC_API_KEY", "CLAUDE_CODE_SHELL", "https_proxy"} & set(names)
        assert names["HOME"] != "/x" and names["PATH"] != "/nowhere" and names.get("TMPDIR") != "/nowhere", told
        assert KEY not in json.dumps(told)
        told = at.play("told = sh('echo $PERSONS')[1]", "-e", "PERSONS")
        assert told == "persons\n", told


@tap.case
def the_folder_of_a_command_is_that_of_the_shell_and_has_to_be_in_the_view():
    with place() as at:
        told = at.play("os.mkdir('sub'); os.chdir('sub'); told = [sh('pwd')]; os.chdir(%r); told += [sh('pwd')]" % at.home)
        assert told[0][:2] == [0, at.work + "/sub\n"], told
        assert told[1][0] == 125 and told[1][1] == "" and at.home in told[1][2], told


RETURN = ("def cd(text, name='claude-1a2b-cwd'):\n"
          "    path = '/tmp/' + name\n"
          "    if os.path.exists(path): os.unlink(path)\n"
          "    sh('rm -rf ' + path[:-5] + '*')\n"
          "    sh(text.replace('FILE', path))\n"
          "    found = os.path.exists(path) and open(path).read()\n"
          "    if os.path.exists(path): os.unlink(path)\n"
          "    return found\n")


@tap.case
def the_folder_that_a_command_has_gone_to_comes_back():
    with place() as at:
        told = at.play("told = [os.environ['CLAUDE_CODE_TMPDIR'], sh('pwd -P >| /tmp/claude-1a2b-cwd; mktemp /tmp/XXXXX')[2]]")
        assert told[0] == "/tmp" and "in this cell only" in told[1] and "claude" not in told[1], told
        told = at.play(RETURN + "os.makedirs('sub/a b'); told = [cd('cd \"sub/a b\" && pwd -P >| FILE'), "
                       "cd('echo /tmp/claude-9999-cwd; cd sub && pwd -P >|FILE'), cd('pwd -P >| FILE', 'claude-12345-cwd'), "
                       "os.path.exists('/tmp/claude-9999-cwd')]")
        assert told == [at.work + "/sub/a b\n", at.work + "/sub\n", False, False], told


@tap.case
def a_folder_that_the_agents_words_need_is_there():
    with place("gemini") as at:
        told = at.play("told = [sh('echo $0 $1; echo 1 > /tmp/gemini-shell-aB3dE6/pids; cat /tmp/gemini-shell-aB3dE6/pids; "
                       "exit 3', 'name', 'a b'), os.path.exists('/tmp/gemini-shell-aB3dE6')]")
        assert told == [[3, "name a b\n1\n", ""], False], told


@tap.case
def nothing_else_comes_back_by_that_file():
    bad = ["echo /etc >| FILE", "echo sub >| FILE", f"echo /tmp >| FILE", "echo $PWD/sub/../.. >| FILE",
           "echo $PWD/missing >| FILE", "echo $PWD/file >| FILE; touch file", "(pwd -P; pwd -P) >| FILE",
           "ln -s / away; echo $PWD/away/etc >| FILE", "ln -sf / away; echo $PWD/away >| FILE",
           "pwd -P > f; ln -sf $PWD/f FILE", "mkfifo FILE", "mkdir FILE", "yes $PWD | head -c 1M >| FILE",
           "printf '%s\\\\0x' $PWD >| FILE", ": >| FILE", "exit 0 # FILE",
           "mkdir -p mine/deep; git init -q mine; cd mine/deep && pwd -P >| FILE",
           "git init -q --bare bare; cd bare && pwd -P >| FILE"]
    with place() as at:
        told = at.play(RETURN + "os.mkdir('sub'); told = [cd(text) for text in json.loads(%r)]" % json.dumps(bad))
        assert told == [False] * len(bad), list(zip(bad, told))
        # Outside, only a plain file of the person's is written.
        path = "/tmp/claude-%s-cwd" % str(os.getpid())[-4:].rjust(4, "0")
        with open(os.path.join(at.home, "mine"), "w", encoding="ascii") as file:
            file.write("mine")
        os.symlink(os.path.join(at.home, "mine"), path)
        try:
            at.play(f"told = sh('pwd -P >| {path}')")
            with open(os.path.join(at.home, "mine"), encoding="ascii") as file:
                assert file.read() == "mine"
        finally:
            os.unlink(path)


@tap.case
def a_signal_to_the_shell_ends_its_command():
    mark = f"71{os.getpid()}"
    with place() as at:
        for number, code in (signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9):
            told = at.play(f"p = start('touch ready; sleep {mark}; echo survived'); wait_for('ready'); "
                           f"os.unlink('ready'); p.send_signal({int(number)}); out = p.communicate()[0].decode(); "
                           "told = [p.returncode, out, sh('echo next')[1]]")
            assert told == [code, "", "next\n"], told
            assert gone(mark)


@tap.case
def the_end_of_the_agent_ends_what_it_has_started():
    mark = f"72{os.getpid()}"
    with place() as at:
        at.play(f"start('touch ready; sleep {mark}'); wait_for('ready')")
        assert gone(mark)
        process = at.start(f"start('touch again; sleep {mark}'); wait_for('again'); time.sleep(1000)")
        end = time.monotonic() + WAIT_SECONDS
        while not running(mark) and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 143 and gone(mark) and os.listdir(at.runs) == []


@tap.case
def an_interrupt_of_the_terminal_is_for_the_agent():
    with place() as at:
        process = at.start("signal.signal(signal.SIGINT, signal.SIG_IGN); open('ready', 'w'); wait_for('go'); "
                           "told = sh('echo goes on')[1]")
        end = time.monotonic() + WAIT_SECONDS
        while not os.path.exists(os.path.join(at.work, "ready")) and time.monotonic() < end:
            time.sleep(0.01)
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        with open(os.path.join(at.work, "go"), "w", encoding="ascii"):
            pass
        out = process.communicate(timeout=WAIT_SECONDS)[0].decode()
        assert process.returncode == 0 and json.loads(out) == "goes on\n", (process.returncode, out)


@tap.case
def a_killed_front_gives_the_terminal_of_the_agent_back():
    with place() as at:
        master, slave = pty.openpty()
        before = termios.tcgetattr(slave)
        front = subprocess.Popen([PROGRAM, "wrap", "--hands", "claude", "--",
                                  "import tty; tty.setraw(0); print('\\033[?1049hREADY', flush=True); time.sleep(1000)"],
                                 cwd=at.work, env=at.variables, stdin=slave, stdout=slave, stderr=slave,
                                 start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        told = b""
        while b"READY" not in told:
            told += os.read(master, 4096)
        assert termios.tcgetattr(slave) != before
        front.kill()
        front.wait()
        while b"\033[?1049l" not in told:
            assert select.select([master], [], [], WAIT_SECONDS)[0], told
            told += os.read(master, 4096)
        assert termios.tcgetattr(slave) == before
        os.close(master)
        os.close(slave)


@tap.case
def the_flags_of_the_agents_pipes_stay():
    script = ("""import fcntl
ends = os.pipe()
code = \"import fcntl, os; fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK); os.write(1, b'went')\"
done = subprocess.run([SHELL, "-c", 'exec python3 -c "$1"', "-", code], stdin=subprocess.DEVNULL, stdout=ends[1])
told = [done.returncode, os.read(ends[0], 10).decode(), fcntl.fcntl(ends[1], fcntl.F_GETFL) & os.O_NONBLOCK]""")
    with place() as at:
        assert at.play(script) == [0, "went", 0]


@tap.case
def a_killed_front_leaves_nothing_that_the_next_does_not_remove():
    mark = f"73{os.getpid()}"
    with place() as at:
        process = at.start(f"start('sleep {mark}; :', stderr=open('said', 'w')); print(SHELL, flush=True); time.sleep(1000)")
        shell = process.stdout.readline().decode().strip()
        end = time.monotonic() + WAIT_SECONDS
        while not running(mark) and time.monotonic() < end:
            time.sleep(0.05)
        process.kill()
        process.communicate(timeout=WAIT_SECONDS)
        assert gone(mark) and len(os.listdir(at.runs)) == 1
        while "has ended" not in open(os.path.join(at.work, "said"), encoding="utf-8").read():
            assert time.monotonic() < end
            time.sleep(0.05)
        # A stale variable leads to a shell that says so.
        done = subprocess.run([shell, "-c", "echo ran"], capture_output=True, text=True, check=False)
        assert done.returncode == 125 and done.stdout == "" and "has ended" in done.stderr, done
        assert at.play("told = sh('echo ran')[1]") == "ran\n"
        done = subprocess.run(["bash", "-c", "exec " + shell], capture_output=True, text=True, check=False)
        assert done.returncode == 127, done


@tap.case
def many_calls_at_once_long_words_and_many_descriptors():
    with place() as at:
        told = at.play("ps = [start(f'sleep 0.1; echo {i}') for i in range(100)]; "
                       "told = [int(p.communicate()[0]) for p in ps]")
        assert told == list(range(100)), told
        told = at.play("words = ['x' * 100000] * 10; told = sh('echo $# ${#3}', 'name', *words)[1]")
        assert told == "10 100000\n", told
        told = at.play("fds = [os.dup(1) for _ in range(300)]; [os.set_inheritable(fd, True) for fd in fds]; "
                       "told = sh('ls /proc/self/fd | wc -l', close_fds=False)")
        assert told[0] == 0 and int(told[1]) <= 5, told


@tap.case
def the_folder_of_the_run_is_in_no_cell():
    with place() as at:
        told = at.play("told = [oct(os.stat(RUN).st_mode), sorted(os.listdir(RUN)), "
                       "sh('ls ' + RUN), sh('touch ' + RUN + '/x; rm ' + RUN + '/socket; mkdir -p ' + RUN), "
                       "sorted(os.listdir(RUN)), sh('echo again')[1]]")
        assert told[0] == "0o40700" and told[1] == told[4] == ["glovebox-bash", "socket"], told
        assert told[2][0] != 0 and told[5] == "again\n", told


@tap.case
def a_peer_that_breaks_the_protocol_is_left_alone():
    with place() as at:
        told = at.play("import socket, array, struct\n"
                       "def ask(data, *files):\n"
                       "    with socket.socket(socket.AF_UNIX) as s:\n"
                       "        s.connect(RUN + '/socket'); s.settimeout(60)\n"
                       "        try:\n"
                       "            socket.send_fds(s, [data], list(files)) if files else s.sendall(data)\n"
                       "            return s.recv(1000)[8:].decode()\n"
                       "        except OSError as error: return type(error).__name__\n"
                       "def call(value): return struct.pack('<II', 12, len(value)) + value\n"
                       "good = json.dumps({'arguments': {'argv': ['true']}, 'folder': os.getcwd()}).encode()\n"
                       "a, b = os.pipe(); folder = os.open('/', os.O_RDONLY); fifo = 'fifo'; os.mkfifo(fifo)\n"
                       "f = os.open(fifo, os.O_RDWR)\n"
                       "told = [ask(b'GET / HTTP/1.0\\r\\n\\r\\n'), ask(call(b'{')), ask(call(good)), ask(call(good), a, b),"
                       " ask(call(good), folder, b, b), ask(call(good), f, b, b), ask(call(b'{}'), a, b, b),"
                       " ask(call(b'{\"arguments\": {\"argv\": [1]}, \"folder\": \"/\"}'), a, b, b), ask(call(good), a, b, b),"
                       " sh('echo fine')[1]]")
        assert told[2] == told[3] == told[4] == told[5] == "a call has three pipes", told
        assert told[6] == told[7] == "a call has arguments and a folder", told
        assert '"code":0' in told[8].replace(" ", "") and told[9] == "fine\n", told


@tap.case
def it_is_said_what_stays_outside():
    with place() as at:
        done = at.wrap("wrap", "--hands", "--show", "claude")
        assert done.returncode == 0 and "commands only: this agent's file tools run outside" in done.stdout, done
        shown = json.loads(at.wrap("wrap", "--hands", "--json", "--show", "claude").stdout)
        assert shown["form"] == "hands", shown
        assert json.loads(at.wrap("wrap", "--json", "--show", "claude").stdout)["form"] == "whole"
        done = at.wrap("wrap", "--hands", "--whole", "claude")
        assert done.returncode == 2 and "--whole" in done.stderr, done
        done = at.wrap("wrap", "--hands", "--fresh", "claude")
        assert done.returncode == 2 and "--fresh" in done.stderr, done
    with place("pi") as at:
        done = at.wrap("wrap", "--hands", "pi")
        assert done.returncode == 2 and "the profile pi" in done.stderr, done


@tap.case
def limits_and_refusals_are_told_behind_the_output():
    with place() as at:
        told = at.play("told = [sh('sleep 1000'), sh('mkdir .claude; echo {} > .claude/settings.json; echo out')]", "--timeout",
                       "1")
        assert told[0][0] == 124 and "ended after 1 s (--timeout)" in told[0][2], told
        assert told[1][1] == "out\n" and "refused: .claude/settings.json (protected)" in told[1][2], told
        assert not os.path.exists(os.path.join(at.work, ".claude/settings.json"))
        assert not glob.glob(os.path.join(at.home, ".claude*"))


tap.play()
