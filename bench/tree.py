#!/usr/bin/env python3
"""tree.py FOLDER FILES [SEED]: a tree of sources to be searched, the same for the same seed.

Written for the benchmarks and for the tests that compare searches: files of 1 to some 30 KB
(median 1 KB) with lines as C has them, 25 in a folder, four levels deep, of eight kinds. One
file in 2,000 holds the line MARK. With few files the folders are the same, only fewer.
"""
import os
import random
import sys

MARK = "\treturn glove_box(finger, 17);\n"
MARKED = 2000  # one file in so many holds it
KINDS = ("c", "h", "py", "md", "txt", "json", "rs", "js")
IN_A_FOLDER = 25
POOL_LINES = 20_000  # files are pieces of it: 200 MB of choices would take a minute

NOUNS = ("buffer count entry file folder handle index item length limit list map mode name node "
         "offset option owner page path pool queue range result scope size slot source state "
         "table task text token tree value vector walk window word worker").split()
VERBS = ("add append check clear close copy drop fill find free get grow init join load lock make "
         "merge move open parse pop push read reset save seek send set skip sort split start "
         "stop store take test trim unlock update visit wait write").split()
TYPES = "int char long bool void size_t uint32_t uint64_t".split()


def line(some):
    one, other, verb = some.choice(NOUNS), some.choice(NOUNS), some.choice(VERBS)
    return some.choice((
        f"static {some.choice(TYPES)} {one}_{verb}(struct {one} *{other})",
        f"\tif ({one}->{other} > {some.randrange(1000)})",
        f"\t\treturn {one}_{verb}({other}, {some.randrange(100)});",
        f"\t{one}_{verb}(&{other}->{one});",
        f"\t/* The {one} of a {other}: {verb} it before the {some.choice(NOUNS)} is gone. */",
        f'#include "{one}/{other}.h"',
        f"\t{some.choice(TYPES)} {one} = {other}->{some.choice(NOUNS)};",
        "{", "}", ""))


def make(top, files, seed=7):
    some = random.Random(seed)
    pool = "".join(line(some) + "\n" for _ in range(POOL_LINES))
    starts = [at + 1 for at, char in enumerate(pool) if char == "\n"][:-POOL_LINES // 20]
    for number in range(files):
        place = number // IN_A_FOLDER
        folder = os.path.join(top, f"part{place // 200}",
                              f"{NOUNS[place % len(NOUNS)]}{place // 8 % 25}",
                              f"{VERBS[place % len(VERBS)]}{place % 8}")
        if number % IN_A_FOLDER == 0:
            os.makedirs(folder, exist_ok=True)
        start = some.choice(starts)
        end = pool.rfind("\n", start, start + int(some.lognormvariate(7, 1))) + 1
        name = f"{some.choice(NOUNS)}_{number}.{some.choice(KINDS)}"
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            file.write(pool[start:end] + (MARK if number % MARKED == MARKED // 2 else ""))


if __name__ == "__main__":
    make(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:4]))
