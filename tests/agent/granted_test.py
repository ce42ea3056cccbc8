#!/usr/bin/env python3
"""The program is killed while a set of files is written in a folder that a person has granted: the
next session of the workspace, to which nobody grants it, leaves all of them old or all new, and
nothing beside.

granted_test.py TAP_FOLDER GLOVEBOX
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, sys.argv[1])
from place import outside  # pylint: disable=wrong-import-position
import tap  # pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
MOMENTS = 4  # from the first sign of the write on
APART_S = 0.001
TRIES = 50  # whoever dies lets go of its locks a little later
FILES = [f"f{number}" for number in range(60)]
OLD, NEW = "old\n", "new\n"
SANITIZERS = {name: value for name, value in os.environ.items() if "SAN_OPTIONS" in name}


class Place:
    """A workspace, a folder beside it, and the program."""

    def __init__(self, root):
        self.root = root
        self.workspace, self.beside = os.path.join(root, "work"), os.path.join(root, "beside")
        self.environment = {"PATH": os.environ["PATH"], "HOME": os.path.join(root, "home"),
                            "LC_ALL": "C.UTF-8", **SANITIZERS}
        for name in ("work", "beside", "home"):
            os.mkdir(os.path.join(root, name))
        patch = "".join(f"*** Update File: {self.beside}/{name}\n@@\n" + "-old\n+new\n"
                        for name in FILES)
        turns = [{"calls": [{"tool": "write_file", "arguments": {
                      "path": os.path.join(self.beside, "asked"), "content": ""}}]},
                 {"calls": [{"tool": "apply_patch", "arguments": {
                      "patch": f"*** Begin Patch\n{patch}*** End Patch\n"}}]},
                 {"text": "Done."}]
        with open(os.path.join(root, "replay.json"), "w", encoding="utf-8") as file:
            json.dump({"name": "test", "turns": turns}, file)

    def prepare(self):
        for name in FILES:
            with open(os.path.join(self.beside, name), "w", encoding="utf-8") as file:
                file.write(OLD)
        if os.path.exists(os.path.join(self.beside, "asked")):
            os.remove(os.path.join(self.beside, "asked"))

    def begin(self):
        """A run whose question was answered, once what it asked for is done."""
        process = subprocess.Popen(
            [PROGRAM, "run", "--json", "--answers", "--ask", "write", "--model",
             "replay:" + os.path.join(self.root, "replay.json"), "Go."],
            env=self.environment, cwd=self.workspace, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "tool_ended":
                assert event["status"] == "done", line
                return process
            if event["event"] == "approval_wanted":
                given = {"call": event["call"], "id": event["id"], "action": "accept",
                         "content": {"answer": "session", "hash": event["hash"]}}
                process.stdin.write(json.dumps(given) + "\n")
                process.stdin.flush()
        raise AssertionError("it did not write what was granted")

    def left(self):
        return set(os.listdir(self.beside)) - {*FILES, "asked"}

    def contents(self):
        found = set()
        for name in FILES:
            with open(os.path.join(self.beside, name), encoding="utf-8") as file:
                found.add({OLD: "old", NEW: "new"}.get(file.read(), "neither"))
        return found

    def next_session(self):
        for _ in range(TRIES):
            subprocess.run([PROGRAM, "tool", "call", "list_files", '{"path": "."}'],
                           env=self.environment, cwd=self.workspace, check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if not self.left():
                break


def play(place):
    hits = 0
    for moment in range(MOMENTS):
        place.prepare()
        process = place.begin()
        while not place.left() and process.poll() is None:
            pass
        time.sleep(moment * APART_S)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        hits += bool(place.left())
        place.next_session()
        assert not place.left(), (moment, place.left())
        assert place.contents() in ({"old"}, {"new"}), (moment, place.contents())
    assert hits > 0, "nothing was left at any moment: what is it that was ended?"


@tap.case
def a_set_of_files_in_a_granted_folder_is_old_or_new():
    # A path below /tmp cannot be granted.
    with tempfile.TemporaryDirectory(prefix="glovebox-granted-", dir=outside()) as root:
        play(Place(root))


if __name__ == "__main__":
    tap.play()
