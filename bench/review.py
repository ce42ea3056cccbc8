"""
review: what a layer costs the command that works in it, and what it costs to look at a layer and to land it.
`exec --review -- true` is a row of the group exec.
"""
import os
import shutil
import subprocess
import tempfile
import time

import undo
import watched

CHANGED = 1_000
NEW = 10_000
IN_FOLDER = 100
READ = 100_000  # files of the tree that grep reads
ROUNDS = 3
REVIEW_MS = 60.0

REVIEW = f"glovebox review, {CHANGED:,} changed files"
COPY = f"cp -a, {NEW:,} new files"
LAND = f"glovebox land, {NEW:,} new files"
MAKE = f"make, {watched.SOURCES} files of C"
# The kernel has the larger part of what a layer costs a search, so the same search plays in an overlay without us.
SEARCH = ["rg", "nothing-of-it", "."] if shutil.which("rg") else ["grep", "-r", "nothing-of-it", "."]
SEARCHED = f"{SEARCH[0]}, {READ:,} files"
OVERLAY = """set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work"
mount -t overlay none -o "userxattr,volatile,lowerdir=$PWD,upperdir=$1/upper,workdir=$1/work" "$PWD"
cd "$PWD"
shift
"$@" || true
"""
TITLES = (REVIEW, COPY, LAND, MAKE + ", exec", MAKE + ", exec --review", SEARCHED, SEARCHED + ", a bare overlay",
          SEARCHED + ", exec", SEARCHED + ", exec --review")


def new_files(root, count=NEW):
    for first in range(0, count, IN_FOLDER):
        folder = os.path.join(root, f"d{first // IN_FOLDER}")
        os.makedirs(folder)
        for number in range(first, first + IN_FOLDER):
            with open(os.path.join(folder, f"f{number}"), "w", encoding="ascii") as file:
                file.write(f"line {number} of a file that is not long\n")


def sources(root):
    for number in range(watched.SOURCES):
        with open(os.path.join(root, f"s{number}.c"), "w", encoding="ascii") as file:
            file.write("#include <stdio.h>\n" + f"int s{number}(void) {{ return puts(\"{number}\"); }}\n")
    with open(os.path.join(root, "Makefile"), "w", encoding="ascii") as file:
        names = " ".join(f"s{number}.o" for number in range(watched.SOURCES))
        file.write(f"all: {names}\n")


def play(build, _running, rounds, workspace):
    """Rounds of microseconds. Each round has folders of its own, which are removed at the end."""
    glovebox = os.path.join(build, "glovebox")
    tree = undo.tree(workspace, READ)
    base = tempfile.mkdtemp(prefix="review-", dir=workspace)
    env = {"PATH": os.environ["PATH"], "HOME": os.path.join(base, "home")}
    os.mkdir(env["HOME"])

    def run(root, *argv):
        began = time.perf_counter_ns()
        subprocess.run(argv, cwd=root, env=env, check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return (time.perf_counter_ns() - began) // 1000

    def folder(name, fill=None):
        path = os.path.join(base, name)
        os.mkdir(path)
        if fill:
            fill(path)
        return path

    new, over = folder("new", new_files), folder("over")
    for number in range(rounds + 1):
        row = []
        one = folder(f"changed-{number}", lambda path: new_files(path, CHANGED))
        run(one, glovebox, "exec", "--review", "--", "sh", "-c",
            "for f in */*; do echo changed >> $f; done")
        row.append(run(one, glovebox, "review", "--stat"))
        row.append(run(base, "cp", "-a", new, f"copy-{number}"))
        two = folder(f"land-{number}")
        run(two, glovebox, "exec", "--review", "--read", new, "--", "cp", "-a", new + "/.", ".")
        row.append(run(two, glovebox, "land", "--yes"))
        for options in ([], ["--review"]):
            three = folder(f"make-{number}-{len(options)}", sources)
            row.append(run(three, glovebox, "exec", *options, "--", "make", "-s"))
        anyhow = ["sh", "-c", '"$@" || true', "sh", *SEARCH]
        row.append(run(tree, *anyhow))
        row.append(run(tree, "unshare", "-Urm", "sh", "-c", OVERLAY, "sh", over, *SEARCH))
        for options in ([], ["--review"]):
            row.append(run(tree, glovebox, "exec", *options, "--", *anyhow))
        if number > 0:
            yield row
    shutil.rmtree(base, ignore_errors=True)


def review_group(group, command, _build, _workspace):
    return group("review", "Layers: the command in one, the look at one, the landing of one",
                 [command(name, []) for name in TITLES],
                 [(REVIEW, REVIEW_MS), (LAND, COPY, 1.5),
                  (MAKE + ", exec --review", MAKE + ", exec", 1.05),
                  (SEARCHED + ", a bare overlay", SEARCHED, None),
                  (SEARCHED + ", exec --review", SEARCHED + ", exec", 1.6)],
                 play=play, rounds=ROUNDS)


GROUPS = {"review": review_group}
