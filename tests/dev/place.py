"""place: folders on this machine that the tests of several suites need."""
import os
import shutil
import stat
import tempfile

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
