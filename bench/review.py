"""
review: what a layer costs the command that works in it, and what it costs to look at a layer and to land it.
`exec --review -- true` is a row of the group exec. The target of a search is that of ripgrep; GNU grep opens
a file in other ways, and its rows show beside a bare overlay how much of the price is the kernel's.
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
READ = 100_000  # files of the tree that is searched
ROUNDS = 3
REVIEW_MS = 60.0

REVIEW = f"glovebox review, {CHANGED:,} changed files"
COPY = f"cp -a, {NEW:,} new files"
LAND = f"glovebox land, {NEW:,} new files"
MAKE = f"make, {watched.SOURCES} files of C"
# The names of the searches, and what a shell is told.
GREP = f"grep -r, {READ:,} files"
RG = f"rg, {READ:,} files"
SEARCHES = {GREP: "grep -r nothing-of-it . || true"}
if shutil.which("rg"):
    SEARCHES[RG] = "rg --no-config nothing-of-it . || true"
WAYS = (", bare", ", bare overlay", ", exec", ", exec --review")
TITLES = (REVIEW, COPY, LAND, MAKE + ", exec", MAKE + ", exec --review",
          *(search + way for search in SEARCHES for way in WAYS))


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


def searches(glovebox, tree, base):
    """The commands of each search, in the order of WAYS. The overlay has the options of ours."""
    upper, work = (os.path.join(base, name) for name in ("overlay-upper", "overlay-work"))
    os.makedirs(upper, exist_ok=True)
    os.makedirs(work, exist_ok=True)
    mounted = (f"rm -rf '{work}/work'; mount -t overlay overlay -o lowerdir='{tree}',upperdir='{upper}',"
               f"workdir='{work}',userxattr,volatile '{tree}' && cd '{tree}' && ")
    for words in SEARCHES.values():
        yield ["unshare", "-Urm", "sh", "-c", words]
        yield ["unshare", "-Urm", "sh", "-c", mounted + "{ " + words + "; }"]
        yield [glovebox, "exec", "--", "sh", "-c", words]
        yield [glovebox, "exec", "--review", "--", "sh", "-c", words]


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

    new = folder("new", new_files)
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
        row += [run(tree, *argv) for argv in searches(glovebox, tree, base)]
        if number > 0:
            yield row
    shutil.rmtree(base, ignore_errors=True)


def review_group(group, command, _build, _workspace):
    return group("review", "Layers: the command in one, the look at one, the landing of one",
                 [command(name, []) for name in TITLES],
                 [(REVIEW, REVIEW_MS), (LAND, COPY, 1.5),
                  (MAKE + ", exec --review", MAKE + ", exec", 1.05),
                  *((search + with_it, search + without, limit if search == RG else None)
                    for search in SEARCHES for with_it, without, limit in (
                        (", exec --review", ", exec", 1.6), (", bare overlay", ", bare", None)))],
                 play=play, rounds=ROUNDS)


GROUPS = {"review": review_group}
