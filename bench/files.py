"""The group of the file tools: calls in a warm cell beside the system calls that read or write
the same file, made in the bench's own process.
"""
import json
import os

import warm

LINE = b"x" * 63 + b"\n"
SMALL = 4 << 10
MEDIUM = 1 << 20
EDITED = 10 << 20
HUGE = 1 << 30
TEXT_OF_HUGE = 64 << 20
FIRST, LAST = 500_001, 500_040  # 32 MB into the file
ROUNDS = 100


def write(workspace, name, size, whole=None):
    with open(os.path.join(workspace, name), "wb") as file:
        file.write(LINE * (size // len(LINE)))
        if whole:
            file.truncate(whole)


def read(name, **more):
    return ["tool", "read_file", json.dumps({"path": name, **more})]


def files_group(group, command, _build, workspace):
    write(workspace, "small", SMALL)
    write(workspace, "medium", MEDIUM)
    write(workspace, "huge", TEXT_OF_HUGE, HUGE)
    write(workspace, "edited", EDITED)
    write(workspace, "swapped", EDITED)
    for name in ("edited", "swapped"):
        with open(os.path.join(workspace, name), "r+b") as file:
            file.seek(EDITED // 2)
            file.write(b"here" + LINE[4:])
    # The mark stays, so that every round finds it; the file grows by a byte.
    edit = json.dumps({"path": "edited", "edits": [{"old": "here", "new": "here."}]})
    lines = SMALL // len(LINE)
    return group("files", "Files: the tools beside plain system calls", [
        command("4 KiB, read", ["lines", os.path.join(workspace, "small"), str(lines)]),
        command("4 KiB, read_file", read("small")),
        command("1 MiB, read", ["lines", os.path.join(workspace, "medium"), str(MEDIUM)]),
        command("1 MiB, read_file", read("medium")),
        command("range of 1 GiB, read", ["lines", os.path.join(workspace, "huge"), str(LAST)]),
        command("range of 1 GiB, read_file", read("huge", start_line=FIRST, end_line=LAST)),
        command("10 MiB, read and write", ["swap", os.path.join(workspace, "swapped"), "here",
                                           "here."]),
        command("10 MiB, edit_file", ["tool", "edit_file", edit]),
    ], [("4 KiB, read_file", 1.0),
        ("4 KiB, read_file", "4 KiB, read", None),
        ("1 MiB, read_file", "1 MiB, read", None),
        ("range of 1 GiB, read_file", "range of 1 GiB, read", 1.5),
        ("10 MiB, edit_file", "10 MiB, read and write", None)],
        play=warm.play_calls, rounds=ROUNDS)


GROUPS = {"files": files_group}
