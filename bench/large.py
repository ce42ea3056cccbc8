"""
large: what a command costs in a large workspace. Sessions of the MCP server in an empty folder and in trees
of many files take turns; each has run a command, so its looks are at what was changed since. The look at
all files begins when a client has asked for the tools; a command that comes before its end waits for it.
"""
import os
import shutil
import time

import mcp

SIZES = (10_000, 100_000, 1_000_000)
IN_FOLDER = 10
WIDE = 100  # folders in a folder: the guard looks for .git in each folder of the top, whatever is below
NAMED = 100_000  # where a name is searched, and where memory is measured
ROUNDS = 40
TIMES = 1.3
NAME_MS = 3.0
MEMORY_MIB = 64
FIRST_MS = 250
THINKS_S = 1.0  # before its first command: few models are faster
SETTLE_S = 3.0  # a long list is written once the session rests
# A model takes longer. Without a rest the session before is still making its next worker.
REST_MS = 100


def tree(workspace, count):
    """COUNT small files, IN_FOLDER in each folder, WIDE folders in each of these, made once."""
    root = os.path.join(workspace, f"large-{count}")
    if os.path.isdir(root):
        return root
    os.makedirs(root)
    for first in range(0, count, IN_FOLDER):
        number = first // IN_FOLDER
        folder = os.path.join(root, f"group{number // WIDE ** 2}", f"part{number // WIDE}",
                              f"d{number}")
        os.makedirs(folder)
        for number in range(first, min(first + IN_FOLDER, count)):
            with open(os.path.join(folder, f"f{number}.c"), "w", encoding="ascii") as file:
                file.write(f"int f{number};\n")
    return root


def title(count):
    return f"{count:,} files" if count > 0 else "an empty folder"


def server(build, workspace, count):
    folder = tree(workspace, count)
    return mcp.Server(title(count), [os.path.join(build, "glovebox"), "mcp", "-C", folder], folder)


def first_command(talk):
    began = time.perf_counter()
    talk.ask("tools/call", {"name": "bash", "arguments": {"command": "true"}})
    return round((time.perf_counter() - began) * 1000, 1)


def figures(build, workspace):
    """The first command of the first session, of further ones, and memory."""
    shutil.rmtree(os.path.join(workspace, ".home-of-servers"), ignore_errors=True)
    for what, thinks_s in (("the first session", 0), ("a further session", 0),
                           ("a session whose model has thought for a second", THINKS_S)):
        talk = mcp.Conversation(server(build, workspace, NAMED), workspace)
        if thinks_s > 0:
            talk.ask("tools/list", {})
            time.sleep(thinks_s)
        took = first_command(talk)
        yield {"of": f"first command of {what}, {title(NAMED)}", "figure": took, "unit": "ms",
               "asked": f"≤ {FIRST_MS} ms" if thinks_s > 0 else "",
               "met": took <= FIRST_MS if thinks_s > 0 else None}
        first_command(talk)
        time.sleep(SETTLE_S)
        memory = round(talk.memory(), 1)
        talk.end()
    yield {"of": f"all processes of it, {title(NAMED)}", "figure": memory, "unit": "MiB",
           "asked": f"≤ {MEMORY_MIB} MiB", "met": memory <= MEMORY_MIB}


def large_group(group, command, build, workspace):
    columns, commands, targets = {}, [], []
    there = {count: server(build, workspace, count) for count in (0, *SIZES)}
    for words in ("true", "echo x > new"):
        for count, one in there.items():
            name = f"bash, {words}, {title(count)}"
            commands.append(command(name, []))
            columns[name] = (one, 1, 1, ("bash", {"command": words}))
            if count > 0:
                targets.append((name, f"bash, {words}, {title(0)}", TIMES))
    name = f"glob, one name, {title(NAMED)}"
    commands.append(command(name, []))
    columns[name] = (there[NAMED], 1, 1, ("glob", {"pattern": "f77777.c"}))
    targets.append((name, NAME_MS))
    return group("large", "A command in a large workspace, over MCP", commands, targets,
                 play=mcp.play_columns(columns, REST_MS), rounds=ROUNDS, measure=figures)


GROUPS = {"large": large_group}
