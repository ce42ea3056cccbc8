"""A person with a home of their own, and a model service of tests/fake: ARGV as login_test.py has it."""
import contextlib
import json
import os
import subprocess
import sys
import urllib.request

sys.path.insert(0, sys.argv[1])
import tap  # noqa: E402
from place import Home, outside, sanitizers  # noqa: E402

GLOVEBOX, SERVER = os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])


class Person(Home):
    def __init__(self):
        super().__init__("service-", parent=outside())

    def run(self, *words, typed="", **variables):
        return tap.run([GLOVEBOX, *words], input=typed, cwd=self.work, timeout=180, env={
            "PATH": os.environ["PATH"], "HOME": self.home, "LANG": "C.UTF-8", **sanitizers(), **variables})


@contextlib.contextmanager
def service(*words):
    """The address of a model service, and a function for the questions that it was asked."""
    process = subprocess.Popen([sys.executable, SERVER, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"

        def asked():
            with urllib.request.urlopen(f"{url}/requests", timeout=180) as answer:
                return [{**one, "headers": {name.lower(): value for name, value in one["headers"].items()}}
                        for one in json.load(answer)]
        yield url, asked
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
