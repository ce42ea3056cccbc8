"""stores: a process that has a store of a fleet open (store_driver.c), for tests."""
import contextlib
import errno
import os
import subprocess
import tempfile

import s3_server

DRIVER = None  # set by the test that imports this
NEEDED = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LD_LIBRARY_PATH")


class Failed(Exception):
    """What the driver said of a failure: an errno value and a sentence."""

    def __init__(self, line):
        super().__init__(line)
        self.code, self.text = int(line.split(" ")[0]), line.split(" ", 1)[1]


class Driver:
    """A process that has a store open."""

    def __init__(self, where, folder, mode="w", env=None, before=()):
        environment = {name: os.environ[name] for name in NEEDED if name in os.environ}
        self.folder = folder
        self.process = subprocess.Popen([*before, DRIVER, where, mode], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
                                        env={**environment, **(env or {})})
        try:
            self.where = self.answer(self.process.stdout.readline())[len("open "):]
        except Failed:
            self.close()
            raise

    @staticmethod
    def answer(line):
        if line.startswith("failed "):
            raise Failed(line[len("failed "):].rstrip("\n"))
        assert line, "the driver has ended"
        return line.rstrip("\n")

    def say(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")

    def hear(self):
        return self.answer(self.process.stdout.readline())

    def ask(self, *words):
        self.say(*words)
        return self.hear()

    def file(self, data, name="input"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def put(self, name, data, how="new"):
        return self.ask("put", how, name, self.file(data))

    def get(self, name):
        path = os.path.join(self.folder, "output")
        self.ask("get", name, path)
        with open(path, "rb") as file:
            return file.read()

    def list(self, folder=""):
        return sorted(self.ask("list", folder).split(" ")[1:])

    def close(self):
        """End it in order; what a sanitizer says is a failure."""
        _, said = self.process.communicate()
        assert said == "", said

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.close()
        else:
            self.process.kill()
            self.process.communicate()


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="glovebox-store-") as folder:
        yield folder


def fails(code, parts, function, *arguments):
    """FUNCTION fails with CODE and a sentence that holds PARTS, and no key."""
    try:
        function(*arguments)
    except Failed as failed:
        for part in parts:
            assert part in failed.text, failed.text
        assert failed.code == code or {code, failed.code} == {errno.ELOOP, errno.ENOTDIR}, failed.text
        for key in (s3_server.SECRET, s3_server.TOKEN):
            assert key not in failed.text, failed.text
        return failed.text
    raise AssertionError(f"{function} {arguments} has not failed")
