"""
undo: what it costs that commands can be undone. A one-shot call of bash pays for two checkpoints, one
before and one after the command; beside it the same call without a home, where nothing can be kept.
In a conversation the first runs while the model thinks, and the second too in large trees.
"""
import json
import os
import subprocess
import time

SIZES = (100, 10_000, 100_000)
IN_FOLDER = 100
ROUNDS = 7  # the largest tree takes most of a second a round
SETTLE_S = 0.1  # git and we trust no time that is as young as the look at it


def tree(workspace, count):
    """A repository of COUNT small tracked files, made once."""
    root = os.path.join(workspace, f"undo-{count}")
    if os.path.isdir(root):
        return root
    for i in range(0, count, IN_FOLDER):
        folder = os.path.join(root, f"d{i // IN_FOLDER}")
        os.makedirs(folder)
        for j in range(i, min(i + IN_FOLDER, count)):
            with open(os.path.join(folder, f"f{j}.c"), "w", encoding="ascii") as file:
                file.write(f"int f{j}(void) {{ return {j}; }}\n")
    time.sleep(SETTLE_S)
    git = ["git", "-C", root, "-c", "user.name=b", "-c", "user.email=b@localhost",
           "-c", "gc.auto=0"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"], ["gc", "-q"],
                  ["status", "--short"]):
        subprocess.run([*git, *words], check=True, stdout=subprocess.DEVNULL)
    return root


def environment(workspace, keeps):
    env = {"PATH": os.environ["PATH"]}
    if keeps:
        env["HOME"] = os.path.join(workspace, ".home-of-undo")
        os.makedirs(env["HOME"], exist_ok=True)
    return env


def name_of(count, keeps):
    return f"bash, {count:,} files, {'undo' if keeps else 'no undo'}"


def play(_build, running, rounds, workspace):
    """Rounds of microseconds; one more goes before them, in which the list is made."""
    for number in range(rounds + 1):
        row = []
        for command in running:
            count, keeps = command.what
            began = time.perf_counter_ns()
            subprocess.run(command.argv, cwd=tree(workspace, count), check=True,
                           env=environment(workspace, keeps), stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            row.append((time.perf_counter_ns() - began) // 1000)
        if number > 0:
            yield row


def undo_group(group, command, build, _workspace):
    commands, targets = [], []
    for count in SIZES:
        for keeps in (False, True):
            made = command(name_of(count, keeps), [
                os.path.join(build, "glovebox"), "tool", "call", "bash",
                json.dumps({"command": "true"})])
            made.what = (count, keeps)
            commands.append(made)
        targets.append((name_of(count, True), name_of(count, False), None))
    return group("undo", "A command in a repository, with and without undo, from cold",
                 commands, targets, play=play, rounds=ROUNDS)


GROUPS = {"undo": undo_group}
