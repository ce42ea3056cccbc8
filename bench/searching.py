"""The groups of the searching tools: grep, glob and list_files in a warm cell beside the
programs that people use, over a tree that tree.py makes.

A peer prints all it finds into a pipe that is read to the end, as an agent would run it; a tool
counts all and shows the newest. Peers are told not to look for ignore files; the tools do look.
"""
import json
import os
import shutil

import tree
import warm

FILES = 100_000
FEW_FILES = 20
ROUNDS = 15

WORDS = "glove_box(finger"
REGEX = r"\w+_box\(finger, [0-9]+\)"
ANY_CASE = "Glove_Box(finger"
MANY = "return"

RG = ["rg", "--no-config", "--no-ignore", "--hidden", "-n"]
UGREP = ["ugrep", "-r", "-n", "-I", "--hidden", "--color=never"]
GREP = ["grep", "-rnI"]


def call(tool, **arguments):
    return ["tool", tool, json.dumps(arguments)]


def grep_group(group, command, build, workspace):
    tree.make(workspace, FILES)
    shutil.copy(os.path.join(build, "bench", "read_all"), workspace)
    read_all = [os.path.join(workspace, "read_all"), workspace]
    commands = [command("limit: open, read, close", ["pipe", *read_all]),
                command("the limit in the cell", ["exec", *read_all])]
    targets = []
    for name, pattern, ours, theirs, limits in (
            ("literal", WORDS, {"literal": True}, ["-F"], {"ripgrep": 0.6, "limit": 1.15}),
            ("regex", REGEX, {}, ["-E"], {"ripgrep": 0.65}),
            ("ignore case", ANY_CASE, {"literal": True, "ignore_case": True}, ["-F", "-i"],
             {"ripgrep": 0.65}),
            ("many matches", MANY, {}, ["-E"], {"ugrep": 0.7})):
        tool = f"{name}, grep tool"
        commands.append(command(tool, call("grep", pattern=pattern, **ours)))
        # For ripgrep -E is an encoding, and regular expressions are what it takes anyway.
        for peer, argv, options in (("ripgrep", RG, [o for o in theirs if o != "-E"]),
                                    ("ugrep", UGREP, theirs), ("GNU grep", GREP, theirs)):
            commands.append(command(f"{name}, {peer}",
                                    ["pipe", *argv, *options, "-e", pattern, workspace],
                                    peer=True))
            targets.append((tool, f"{name}, {peer}", limits.get(peer)))
        if "limit" in limits:
            targets.append((tool, commands[0].name, limits["limit"]))
            targets.append((tool, commands[1].name, None))
    return group("grep", f"Contents of {FILES:,} files (180 MB)", commands, targets,
                 play=warm.few, rounds=ROUNDS)


def glob_group(group, command, _build, workspace):
    tree.make(workspace, FILES)
    return group("glob", f"Names of {FILES:,} files", [
        command("all, list_files", call("list_files", depth=5)),
        command("all, find", ["pipe", "find", workspace], peer=True),
        command("all, fd", ["pipe", "fdfind", "-u", ".", workspace], peer=True),
        command("names for an @, list_paths", call("list_paths")),
        command("*.c newest first, glob", call("glob", pattern="*.c")),
        command("*.c, find", ["pipe", "find", workspace, "-name", "*.c"], peer=True),
        command("*.c, fd", ["pipe", "fdfind", "-u", "-e", "c", ".", workspace], peer=True),
        command("all newest first, glob", call("glob", pattern="**")),
        command("all with times, find", ["pipe", "find", workspace, "-printf", r"%T@ %p\n"],
                peer=True),
    ], [("all, list_files", "all, find", 0.4),
        ("all, list_files", "all, fd", None),
        ("names for an @, list_paths", 150.0),
        ("*.c newest first, glob", "*.c, find", 0.4),
        ("*.c newest first, glob", "*.c, fd", None),
        ("all newest first, glob", "all with times, find", None),
        ("all newest first, glob", "all, find", None)], play=warm.few, rounds=ROUNDS)


def query_group(group, command, _build, workspace):
    tree.make(workspace, FEW_FILES)
    with open(os.path.join(workspace, "mark.c"), "w", encoding="ascii") as file:
        file.write(tree.MARK)
    return group("query", f"A small search: {FEW_FILES} files", [
        command("list_files tool", ["again", *call("list_files")[1:]]),
        command("glob tool", ["again", *call("glob", pattern="*.c")[1:]]),
        command("grep tool", ["again", *call("grep", pattern=WORDS, literal=True)[1:]]),
        command("grep tool, after a rest", call("grep", pattern=WORDS, literal=True)),
        command("ripgrep", ["pipe", *RG, "-F", "-e", WORDS, workspace], peer=True),
    ], [("grep tool", 0.2),
        ("glob tool", 0.2),
        ("grep tool", "ripgrep", None)], play=warm.play_calls)


GROUPS = {"grep": grep_group, "glob": glob_group, "query": query_group}
