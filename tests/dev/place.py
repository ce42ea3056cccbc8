"""place: folders on this machine that the tests of several suites need, and a person who has some."""
import contextlib
import json
import os
import random
import shutil
import socket
import stat
import subprocess
import sys
import tempfile

import tap

# A cell has its own /tmp (and /var/tmp is that too), which may be read and written: nothing in it is outside.
NOT_OUTSIDE = ("/tmp", "/var/tmp", "/dev/shm")


def _may_be_entered_by_all(path):
    while True:
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def outside(for_all=False):
    """A folder to make folders in, of which none lies in what a cell has as its own /tmp: the
    current one where that fits. FOR_ALL: every account must be able to come there."""
    candidates = [os.getcwd(), os.path.expanduser("~"), "/srv", "/var/lib", "/opt",
                  os.environ.get("XDG_RUNTIME_DIR", "/")]
    for path in candidates:
        real = os.path.realpath(path)
        inside = any(real == top or real.startswith(top + "/") for top in NOT_OUTSIDE)
        if (not inside and os.access(real, os.W_OK | os.X_OK)
                and (not for_all or _may_be_entered_by_all(real))):
            return real
    raise SystemExit(f"Bail out! no folder outside {', '.join(NOT_OUTSIDE)} can be written: "
                     f"tried {', '.join(candidates)}")


def copies(programs, prefix):
    """(folder, copies of PROGRAMS in it) that every account can run; the caller removes the folder.
    A build folder below a closed home cannot be entered by other accounts."""
    folder = tempfile.mkdtemp(prefix=prefix, dir=outside(for_all=True))
    os.chmod(folder, 0o755)
    made = [shutil.copy(program, folder) for program in programs]
    for path in made:
        os.chmod(path, 0o755)
    return folder, made


# The sockets that say which ports this process has chosen.
_PORTS = []
# Below are those of services; a cell has its own service at the second one.
_FIRST_PORT, _PORT_OF_CELLS = 10240, 27183


def unused_port():
    """A port of 127.0.0.1 for a program that has to be told one, which is ours until this process ends. The kernel
    gives it to nobody who asks for any port, as it does with one that was free a moment ago, and a socket with its
    number keeps it from our other tests."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first, last = map(int, file.read().split())
    ports = [port for port in range(_FIRST_PORT, 65536) if not first <= port <= last and port != _PORT_OF_CELLS]
    for port in random.sample(ports, len(ports)):
        mine = socket.socket(socket.AF_UNIX)
        try:
            mine.bind(f"\0glovebox-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            mine.close()
            continue
        _PORTS.append(mine)
        return port
    raise SystemExit(f"Bail out! no port from {_FIRST_PORT} on is free beside those from {first} to {last}")


def sanitizers():
    """The variables by which a program of a sanitizer build knows what it is to do."""
    return {name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name}


class Home:
    """A person's home, a folder to work in (WORK is its name), and one of programs; gone at the end."""

    def __init__(self, prefix, work="work", parent=None):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix=prefix, dir=parent))
        os.chmod(self.folder, 0o755)
        self.home, self.work, self.bin = (os.path.join(self.folder, name) for name in ("home", work, "bin"))
        for name in (self.home, self.work, self.bin):
            os.mkdir(name, 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name, text, mode=0o600):
        """A file of the home."""
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def read(self, name):
        with open(os.path.join(self.home, name), encoding="utf-8") as file:
            return file.read()

    def has(self, name):
        return os.path.exists(os.path.join(self.home, name))

    def program(self, name, text):
        return self.write(os.path.join(self.bin, name), text, 0o755)

    def environment(self, **more):
        return {"PATH": self.bin + ":/usr/bin:/bin", "HOME": self.home, "LANG": "C.UTF-8", **sanitizers(), **more}

    def trust(self, glovebox, profile, environment):
        """The person trusts PROFILE of `wrap` as it is now."""
        def wrap(*words):
            done = tap.run([glovebox, "wrap", *words], env=environment, cwd=self.work, timeout=120)
            assert done.returncode == 0, done.stderr
            return done.stdout

        rows = json.loads(wrap("--list", "--json"))
        digest = [row["hash"] for row in rows if row["profile"] == profile][0]
        wrap("--trust", profile, "--hash", digest)


@contextlib.contextmanager
def model(script):
    """The address of a model that plays SCRIPT (tests/fake/model_server.py)."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake", "model_server.py")
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(script, file)
        file.flush()
        server = subprocess.Popen([sys.executable, program, "--script", file.name], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.stdin.close()
            server.wait(60)
            server.stdout.close()
