"""What several tests share: processes that are looked at, and engines that are none."""
import contextlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time

PATIENCE_S = 90  # sanitizers on a busy machine


def until(fits, seconds=PATIENCE_S):
    """Wait until FITS() is true; what it said at last."""
    end = time.monotonic() + seconds
    while True:
        said = fits()
        if said or time.monotonic() > end:
            return said
        time.sleep(0.01)


def runs(pid):
    """Does PID run?"""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@contextlib.contextmanager
def hostile(body):
    """The path of a program that is run as an engine: a Python text that may use `say(message)` and `hear()`."""
    text = f"""#!/usr/bin/env python3
import json, os, sys, time

def say(message):
    sys.stdout.write(message if isinstance(message, str) else json.dumps(dict(jsonrpc="2.0", **message)) + "\\n")
    sys.stdout.flush()

def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)

def greet(methods=("cell/open",)):
    say(dict(id=hear()["id"], result=dict(version=1, program="hostile 1", level=3, methods=list(methods))))

def open_cell():
    say(dict(id=hear()["id"], result=dict(cell="c1", level=3, workspace="/nowhere", fresh=True)))

{body}
"""
    descriptor, path = tempfile.mkstemp(suffix=".py")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, stat.S_IRWXU)
    try:
        yield path
    finally:
        os.unlink(path)


def processes(*argv):
    """The processes of this machine that were started as ARGV."""
    wanted, found = b"\0".join(word.encode() for word in argv) + b"\0", []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
            if file.read() == wanted:
                found.append(int(name))
    return found


def rootfs(*programs):
    """A folder that is the root of a base, with PROGRAMS of this machine and their libraries. The caller removes it."""
    folder = tempfile.mkdtemp(dir="/var/tmp")
    for program in programs:
        path = shutil.which(program)
        told = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        for source, target in [(path, f"/usr/bin/{program}"), *((name, name) for name in re.findall(r"(/\S+) \(0x", told))]:
            os.makedirs(os.path.dirname(folder + target), exist_ok=True)
            shutil.copy(source, folder + target)
    os.symlink("usr/bin", folder + "/bin")
    return folder
