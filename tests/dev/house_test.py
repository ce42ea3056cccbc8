#!/usr/bin/env python3
"""dev/house counts right, in a small tree whose figures are known."""
import os
import sys
import tempfile

import tap

PROGRAM = os.path.join(sys.argv[1], "dev", "house")

TREE = {
    "ARCHITECTURE.md": """<!-- layers -->
| `src/base/` | C | – | – |
| `src/wall/` | walls | `base` | – |
""",
    "src/base/buf.h": """/* Who calls this is nobody's business. */
#include "base/fd.h"

struct running {
	int a, b; /* two */
	bool c;
	struct {
		bool d;
	} e;
	bool (*f)(int g, int h);
};

int buf_one(int a);
int odd(void);
""",
    "src/base/buf.c": """#include "base/buf.h"

/* Whoever comes here. */
int buf_one(int a)
{
	return a; /* one */
}

int odd(void)
{
	return buf_one(1) + fd_one();
}
""",
    "src/base/fd.h": '#include "base/buf.h"\n\nint fd_one(void);\n',
    "src/base/fd.c": "int fd_one(void)\n{\n\tint a = odd();\n\n\treturn buf_one(a);\n}\n",
    "src/base/buf_parts.h": "",
    "src/wall/wall.c": '#include "wall/none.h"\n#include "desk/desk.h"\n\nint main(void)\n{\n\treturn fd_one();\n}\n',
}


def look(*arguments):
    """What house prints of TREE: each figure's value by its words."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in TREE.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        done = tap.run([PROGRAM, root, *arguments])
    assert done.stderr == "", done
    return done.stdout, done.returncode


@tap.case
def each_figure_is_what_one_counts_by_hand():
    said, code = look()
    for row in ("lines in src/ 42",
                "files in src/ 6 at most 820",
                "files in the largest folder (src/base) 5 at most 25",
                "lines of the largest file (src/base/buf.h) 14 at most 2,000",
                "lines of a function: median 3.0 at most 12",
                "lines of a function: longest 5 at most 80",
                "lines of code a file 5 at least 290 MISSED",
                "*_parts.h and *_inside.h 1 at most 0 MISSED",
                "public functions 3 at most 3,370",
                "of these without their module's name 1 at most 0 MISSED",
                "of these without a caller elsewhere 0 at most 0",
                "includes and rows that point upwards 1 at most 0 MISSED",
                "breaches of the law of dev/check-layers 3 at most 0 MISSED",
                "pairs of modules in a folder that include each other 1 at most 20",
                "struct running: members / bools 6 / 2",
                "value_member( from guard to session 0 at most 60",
                "value_set…( from guard to session 0 at most 80",
                "comments that begin with Who, What, Whoever, Whose 2 at most 0 MISSED",
                "comments with the word whoever 1 at most 0 MISSED",
                "lines of ARCHITECTURE.md 3 at most 80"):
        assert row in [" ".join(line.split()) for line in said.splitlines()], (row, said)
    assert code == 1 and said.count("MISSED") == 7, (code, said)


@tap.case
def this_tree_keeps_each_bar():
    done = tap.run([PROGRAM])
    missed = [" ".join(line.split()) for line in done.stdout.splitlines() if line.endswith("MISSED")]
    assert done.returncode == 0 and not missed, missed


@tap.case
def comments_are_taken_from_all_of_the_tree():
    done = tap.run([PROGRAM, "--comments", "20"])
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 20, done
    assert all(line.startswith("src/") and ": " in line for line in lines), lines
    assert len({line.split("/")[1] for line in lines}) > 5, lines


@tap.case
def other_words_are_refused():
    for words in (["--comments", "many"], ["--comments", "1", "2"], ["/no/such/folder"], ["--help"]):
        done = tap.run([PROGRAM, *words])
        assert done.returncode == 2 and done.stderr.startswith("house: "), (words, done)


tap.play()
