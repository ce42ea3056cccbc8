#!/usr/bin/env python3
"""Each rule of dev/check-layers is broken once in a small tree of its own."""
import os
import sys
import tempfile

import tap

PROGRAM = os.path.join(sys.argv[1], "dev", "check-layers")

TABLE = """
<!-- layers: read by dev/check-layers -->

| folder | knows | may include | foreign |
| --- | --- | --- | --- |
| `src/base/` | C | – | `jansson.h` in `value.c`, `nettle/` in `hash.c` |
| `src/wall/` | walls | `base` | `seccomp.h` in `filter.c` |
| `src/rule/` | rules | `base`, `wall/wall.h` | – |
| `src/front/` | all | all above | – |

End.
"""


def check(files, table=TABLE):
    """Exit code and sentences for a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in {"ARCHITECTURE.md": table, **files}.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        done = tap.run([PROGRAM, root])
    assert done.stderr == "", done.stderr
    return done.returncode, done.stdout.splitlines()


def refused(files, *parts, table=TABLE):
    """The tree is refused in one sentence that holds all PARTS."""
    code, sentences = check(files, table)
    assert code == 1, sentences
    assert len(sentences) == 1, sentences
    for part in parts:
        assert part in sentences[0], sentences


def accepted(files):
    assert check(files) == (0, []), check(files)


def function_of(lines):
    return "int f(int a,\n      int b)\n{\n" + "\ta++;\n" * (lines - 2) + "}\n"


@tap.case
def an_include_of_a_lower_layer_is_fine():
    accepted({"src/wall/wall.c": '#include "base/buf.h"\n#include "wall/wall.h"\n'})


@tap.case
def the_last_row_may_include_all_above():
    accepted({"src/front/main.c": '#include "base/buf.h"\n#include "rule/rule.h"\n'})


@tap.case
def an_upward_include_is_refused():
    refused({"src/base/buf.c": '#include <stdio.h>\n#include "front/main.h"\n'},
            "src/base/buf.c:2", "front/main.h")


@tap.case
def a_function_of_a_header_without_a_caller_is_refused():
    header = "/* Is called by lost_call() only. */\nbool lost_call(int a,\n\t       int b);\n"
    source = "bool lost_call(int a, int b)\n{\n\treturn a == b || lost_call(b, a);\n}\n"
    refused({"src/wall/wall.h": header, "src/wall/wall.c": source},
            "src/wall/wall.h", "lost_call()", "static")
    caller = {"src/rule/rule.c": '#include "wall/wall.h"\nint main(void)\n{\n\treturn lost_call(1, 2);\n}\n'}
    accepted({"src/wall/wall.h": header, "src/wall/wall.c": source, **caller})
    # A macro of the header calls it.
    accepted({"src/wall/wall.h": header + "#define FOUND(a) lost_call(a, a)\n", "src/wall/wall.c": source})


@tap.case
def a_sideways_include_is_refused():
    refused({"src/wall/wall.c": '#include "rule/rule.h"\n'}, "src/wall/wall.c:1")


@tap.case
def a_header_upward_include_is_refused_too():
    refused({"src/base/buf.h": '#  include "rule/rule.h"\n'}, "src/base/buf.h:1")


@tap.case
def one_listed_header_of_a_layer_is_fine():
    accepted({"src/rule/rule.c": '#include "wall/wall.h"\n'})


@tap.case
def another_header_of_that_layer_is_refused():
    refused({"src/rule/rule.c": '#include "wall/view.h"\n'}, "wall/view.h")


@tap.case
def an_include_without_its_folder_is_refused():
    refused({"src/base/buf.c": '#include "buf.h"\n'}, "without its folder")


@tap.case
def an_include_of_a_folder_without_a_row_is_refused():
    refused({"src/front/main.c": '#include "extra/x.h"\n'}, "without a row")


@tap.case
def a_folder_without_a_row_is_refused():
    refused({"src/extra/x.c": "int x;\n"}, "src/extra/x.c", "no row")


@tap.case
def a_folder_within_a_layer_needs_a_row():
    refused({"src/base/deep/x.c": "int x;\n"}, "src/base/deep/", "no row")


@tap.case
def a_folder_without_code_needs_a_row():
    refused({"src/extra/meson.build": "\n"}, "src/extra/", "no row")


@tap.case
def a_source_outside_every_folder_is_refused():
    refused({"src/x.c": "int x;\n"}, "src/x.c", "no row")


@tap.case
def a_build_file_outside_every_folder_is_fine():
    accepted({"src/meson.build": "\n"})


@tap.case
def a_foreign_header_in_its_file_is_fine():
    accepted({"src/base/value.c": "#include <jansson.h>\n",
              "src/base/hash.c": "#include <nettle/sha2.h>\n"})


@tap.case
def a_foreign_header_in_another_file_is_refused():
    refused({"src/base/buf.c": "#include <jansson.h>\n"}, "value.c alone")


@tap.case
def a_foreign_header_in_another_layer_is_refused():
    refused({"src/wall/value.c": "#include <jansson.h>\n"}, "src/base/value.c alone")


@tap.case
def a_foreign_header_of_two_layers_is_fine_in_both():
    rows = [line for line in TABLE.splitlines() if line.startswith("| `src/wall/`")]
    assert len(rows) == 1, TABLE
    both = TABLE.replace(rows[0], rows[0].rsplit("|", 2)[0] + "| `jansson.h` in `brick.c` |")
    files = {"src/base/value.c": "#include <jansson.h>\n", "src/wall/brick.c": "#include <jansson.h>\n"}
    assert check(files, both) == (0, []), check(files, both)
    refused({"src/wall/wall.c": "#include <jansson.h>\n"}, "value.c and src/wall/brick.c alone",
            table=both)


@tap.case
def a_foreign_folder_in_another_file_is_refused():
    refused({"src/wall/wall.c": "#include <nettle/sha2.h>\n"}, "hash.c alone")


@tap.case
def an_unlisted_foreign_header_is_refused():
    refused({"src/front/main.c": "#include <zlib.h>\n"}, "zlib.h", "in no row")


@tap.case
def headers_of_the_system_are_fine():
    accepted({"src/base/fd.c": "#include <fcntl.h>\n#include <sys/stat.h>\n"
                               "#include <linux/landlock.h>\n"})


@tap.case
def a_file_of_two_thousand_lines_is_fine():
    accepted({"src/base/buf.c": "\n" * 2000})


@tap.case
def a_longer_file_is_refused():
    refused({"src/base/buf.c": "\n" * 2001}, "src/base/buf.c", "2001 lines")


@tap.case
def a_longer_test_is_refused():
    refused({"tests/unit/base/buf_test.c": "\n" * 2001,
             "tests/unit/base/meson.build": "files('buf_test.c')\n"}, "buf_test.c", "2001 lines")


@tap.case
def a_longer_script_is_refused():
    refused({"dev/script": "#!/bin/sh\n" + "\n" * 2000}, "dev/script", "2001 lines")


@tap.case
def long_data_is_fine():
    accepted({"tests/fuzz/corpus/value/long": "\n" * 5000, "tests/tools/long.txt": "\n" * 5000})


@tap.case
def a_function_of_a_hundred_lines_is_fine():
    accepted({"src/base/buf.c": function_of(100)})


@tap.case
def a_longer_function_is_refused():
    refused({"src/base/buf.c": function_of(101)}, "src/base/buf.c:3", "f()", "101 lines")


@tap.case
def a_longer_function_in_a_test_is_refused():
    refused({"tests/unit/x_test.c": function_of(101), "tests/unit/meson.build": "['x']\n"},
            "f()", "101 lines")


@tap.case
def long_tables_are_fine():
    accepted({"src/base/table.c": "static const int t[] = {\n" + "\t1,\n" * 300 + "};\n"})


@tap.case
def a_test_that_is_named_is_fine():
    accepted({"tests/unit/base/buf_test.c": "", "tests/unit/base/meson.build": "['buf']\n",
              "tests/cell/calls.case": "", "tests/cell/meson.build": "foreach name : ['calls']\n",
              "tests/tools/read.case": ""})


@tap.case
def a_test_that_nobody_names_is_refused():
    for path in ("tests/unit/base/buf_test.c", "tests/fuzz/buf_fuzz.c", "tests/dev/buf_test.py",
                 "tests/cell/buf.case"):
        rows = os.path.join(os.path.dirname(path), "meson.build")
        refused({path: "", rows: "['buffer', 'buf_tests']  # buf\n"}, path, "nobody plays it")
        refused({path: ""}, path, rows)


@tap.case
def a_missing_table_is_refused():
    refused({}, "ARCHITECTURE.md", "no table", table="nothing\n")


@tap.case
def an_empty_table_is_refused():
    refused({}, "no row", table="<!-- layers -->\n\nnothing\n")


@tap.case
def every_sentence_is_said_at_once():
    code, sentences = check({"src/base/a.c": '#include "front/a.h"\n#include "wall/a.h"\n',
                             "src/base/b.c": "\n" * 2001})
    assert code == 1 and len(sentences) == 3, sentences


@tap.case
def our_own_tree_holds():
    done = tap.run([PROGRAM])
    assert done.returncode == 0, done.stdout


tap.play()
