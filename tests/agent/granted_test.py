#!/usr/bin/env python3
"""The program is killed while a set of files is written in a folder that a person has granted: the
next session of the workspace, to which nobody grants it, leaves all of them old or all new, and
nothing beside.

granted_test.py TAP_FOLDER GLOVEBOX PEEL
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

PROGRAM, PEEL = map(os.path.abspath, sys.argv[2:4])
# Steps of the workers' writes (tests/cell/peel.c) at which all processes are killed, until a run
# comes to its end without.
FIRST_STEP, STEPS_APART, STEPS_MAX = 20, 90, 3000
SESSIONS_LEAST, MENDED_S = 3, 60
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

    def killed_at(self, step):
        """A run whose question is answered: the exit code once it is killed or done."""
        process = subprocess.Popen(
            [PEEL, "kill", "all", str(step), PROGRAM, "run", "--json", "--answers", "--ask", "write", "--model",
             "replay:" + os.path.join(self.root, "replay.json"), "Go."],
            env=self.environment, cwd=self.workspace, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "approval_wanted":
                given = {"call": event["call"], "id": event["id"], "action": "accept",
                         "content": {"answer": "session", "hash": event["hash"]}}
                process.stdin.write(json.dumps(given) + "\n")
                process.stdin.flush()
        process.stdin.close()
        process.stdout.close()
        return process.wait()

    def left(self):
        return set(os.listdir(self.beside)) - {*FILES, "asked"}

    def contents(self):
        found = set()
        for name in FILES:
            with open(os.path.join(self.beside, name), encoding="utf-8") as file:
                found.add({OLD: "old", NEW: "new"}.get(file.read(), "neither"))
        return found

    def next_session(self):
        subprocess.run([PROGRAM, "tool", "call", "list_files", '{"path": "."}'],
                       env=self.environment, cwd=self.workspace, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def play(place):
    hits = 0
    for step in range(FIRST_STEP, STEPS_MAX, STEPS_APART):
        place.prepare()
        code = place.killed_at(step)
        if code == 0:
            break
        assert code == -signal.SIGKILL, (step, code)
        hits += bool(place.left())
        # A worker may outlive its front, and a session waits for it only so long: the next one mends then.
        until = time.monotonic() + MENDED_S
        sessions = 0
        while sessions == 0 or place.left() and (sessions < SESSIONS_LEAST or
                                                 time.monotonic() < until):
            place.next_session()
            sessions += 1
        assert not place.left(), (step, place.left())
        assert place.contents() in ({"old"}, {"new"}), (step, place.contents())
    assert code == 0 and place.contents() == {"new"}, "it did not write what was granted"
    assert hits > 0, "nothing was left at any step: what is it that was ended?"


@tap.case
def a_set_of_files_in_a_granted_folder_is_old_or_new():
    # A path below /tmp cannot be granted.
    with tempfile.TemporaryDirectory(prefix="glovebox-granted-", dir=outside()) as root:
        play(Place(root))


if __name__ == "__main__":
    tap.play()
