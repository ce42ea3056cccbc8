#!/usr/bin/env python3
"""What dev/embed writes is compiled and printed: the bytes must come back."""
import os
import sys
import tempfile

import tap

ROOT = sys.argv[1]
READER = r"""
#include "front/embedded/embedded.h"
#include <stdio.h>
#include <string.h>
int main(void)
{
	for (const struct embedded_file *file = embedded_files; file->name; file++) {
		printf("%s %zu %d %d\n", file->name, file->size, file->executable,
		       file->data[file->size] == 0);
		fwrite(file->data, 1, file->size, stdout);
		puts("<");
	}
	return 0;
}
"""


def embed(files, folders):
    """(standard output of a program that prints the table, the depfile)."""
    with tempfile.TemporaryDirectory() as root:
        for path, (data, mode) in files.items():
            full = os.path.join(root, "tree", path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(data)
            os.chmod(full, mode)
        table, program = os.path.join(root, "t.c"), os.path.join(root, "p")
        done = tap.run([os.path.join(ROOT, "dev", "embed"), "--root", os.path.join(root, "tree"),
                        "--output", table, "--depfile", table + ".d", *folders])
        assert done.returncode == 0, done.stderr
        with open(os.path.join(root, "r.c"), "w", encoding="utf-8") as file:
            file.write(READER)
        done = tap.run(["cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror",
                        "-I", os.path.join(ROOT, "src"), "-o", program, table,
                        os.path.join(root, "r.c")])
        assert done.returncode == 0, done.stderr
        with open(table + ".d", encoding="utf-8") as file:
            rules = file.read().replace(root, "")
        return tap.run([program]).stdout, rules


@tap.case
def every_byte_of_a_text_comes_back():
    text = "".join(map(chr, range(1, 128))) + '"\\??/%d\u65e5\u672c 0123\n' * 9 + "\x01777"
    out, _ = embed({"a/x": (text.encode(), 0o644)}, ["a"])
    assert out == f"a/x {len(text.encode())} 0 1\n{text}<\n".replace("\r", "\n"), out


@tap.case
def an_empty_file_is_kept():
    out, _ = embed({"a/x": (b"", 0o644)}, ["a"])
    assert out == "a/x 0 0 1\n<\n", out


@tap.case
def names_are_sorted_and_modes_kept():
    out, _ = embed({"b/z/run": (b"#!", 0o755), "b/a": (b"1", 0o644), "a/c": (b"2", 0o644)},
                   ["b", "a"])
    assert out == "a/c 1 0 1\n2<\nb/a 1 0 1\n1<\nb/z/run 2 1 1\n#!<\n", out


@tap.case
def what_is_no_text_stays_out():
    out, _ = embed({"a/x.o": (b"\x7fELF\0", 0o644), "a/y": (b"\xff", 0o644),
                    "a/.z": (b"z", 0o644), "a/.git/z": (b"z", 0o644), "a/t": (b"t", 0o644)},
                   ["a"])
    assert out == "a/t 1 0 1\nt<\n", out


@tap.case
def a_missing_folder_is_empty():
    out, _ = embed({"a/t": (b"t", 0o644)}, ["nothing"])
    assert out == "", out


@tap.case
def files_and_folders_are_watched():
    _, rules = embed({"a/deep/t": (b"t", 0o644)}, ["a"])
    for path in ("/tree/a", "/tree/a/deep", "/tree/a/deep/t"):
        assert path in rules.split(), rules


tap.play()
