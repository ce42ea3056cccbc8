#!/usr/bin/env python3
"""run.py GLOVEBOX NAME: the tests of NAME_test.py as TAP, in a home of their own.

Of the cases only those are played whose sentence holds $TAP_ONLY."""
import os
import shutil
import signal
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Told(unittest.TestResult):
    """Prints each case when it has ended."""

    def __init__(self):
        super().__init__()
        self.number, self.failed = 0, 0

    def startTest(self, test):
        super().startTest(test)
        self.about, self.reason = [], None

    def addFailure(self, test, err):
        self.about.append(self._exc_info_to_string(err, test))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.about.append(f"{subtest}: {self._exc_info_to_string(err, test)}")

    def addSkip(self, test, reason):
        if not hasattr(self, "about") or not hasattr(test, "_testMethodName"):
            self.startTest(test)
        self.reason = reason

    def stopTest(self, test):
        super().stopTest(test)
        self.number += 1
        self.failed += bool(self.about)
        skip = f" # SKIP {self.reason}" if self.reason and not self.about else ""
        print(f"{'not ' if self.about else ''}ok {self.number} - {sentence(test)}{skip}", flush=True)
        for line in "\n".join(self.about).splitlines():
            print("# " + line, flush=True)


def sentence(test):
    return test.id().rsplit(".", 1)[-1].removeprefix("test_").replace("_", " ")


def cases(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


def main():
    program, name = os.path.abspath(sys.argv[1]), sys.argv[2]
    folder = os.path.realpath(tempfile.mkdtemp(prefix="glovebox-python-", dir="/var/tmp"))
    # A test that takes too long is told so first: its folder goes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        for variable, inside in (("HOME", "home"), ("XDG_STATE_HOME", "state"), ("XDG_CONFIG_HOME", "config"),
                                 ("TMPDIR", "temp")):
            os.environ[variable] = os.path.join(folder, inside)
            os.mkdir(os.environ[variable])
        os.environ.update(GLOVEBOX=program, LANG="C.UTF-8", PYTHONDONTWRITEBYTECODE="1",
                          PYTHONPATH=os.path.join(ROOT, "python", "src"))
        tempfile.tempdir = None
        sys.path[:0] = [os.path.join(ROOT, "python", "src"), HERE]
        wanted = os.environ.get("TAP_ONLY", "")
        found = [case for case in cases(unittest.defaultTestLoader.loadTestsFromName(name + "_test"))
                 if wanted in sentence(case)]
        print(f"1..{len(found)}", flush=True)
        told = Told()
        unittest.TestSuite(found).run(told)
        import glovebox._engine

        glovebox._engine._at_exit()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if told.failed or told.number != len(found) else 0)


main()
