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
| `src/desk/` | all | all above | – |

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


def links(base="'jansson', 'nettle'", rule="'base', 'wall'", more=""):
    """src/meson.build as it fits TABLE, but for what is said."""
    rows = f"""layers = {{
  'base': {{'uses': [], 'foreign': [{base}]}},
  'wall': {{'uses': ['base'], 'foreign': []}},
  'rule': {{
    'uses': [{rule}],
    'foreign': [],
  }},
  'desk': {{'uses': ['base', 'wall', 'rule'], 'foreign': []}},
{more}}}
"""
    return {"src/meson.build": rows}


def function_of(lines):
    return "int f(int a,\n      int b)\n{\n" + "\ta++;\n" * (lines - 2) + "}\n"


@tap.case
def an_include_of_a_lower_layer_is_fine():
    accepted({"src/wall/wall.c": '#include "base/buf.h"\n#include "wall/wall.h"\n'})


@tap.case
def the_last_row_may_include_all_above():
    accepted({"src/desk/main.c": '#include "base/buf.h"\n#include "rule/rule.h"\n'})


@tap.case
def an_upward_include_is_refused():
    refused({"src/base/buf.c": '#include <stdio.h>\n#include "desk/main.h"\n'},
            "src/base/buf.c:2", "desk/main.h")


@tap.case
def a_function_of_a_header_without_a_caller_is_refused():
    header = "/* Is called by wall_lost() only. */\nbool wall_lost(int a,\n\t       int b);\n"
    source = "bool wall_lost(int a, int b)\n{\n\treturn a == b || wall_lost(b, a);\n}\n"
    refused({"src/wall/wall.h": header, "src/wall/wall.c": source},
            "src/wall/wall.h", "wall_lost()", "static")
    caller = {"src/rule/rule.c": '#include "wall/wall.h"\nint main(void)\n{\n\treturn wall_lost(1, 2);\n}\n'}
    accepted({"src/wall/wall.h": header, "src/wall/wall.c": source, **caller})
    # A macro of the header calls it.
    accepted({"src/wall/wall.h": header + "#define FOUND(a) wall_lost(a, a)\n", "src/wall/wall.c": source})


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
    refused({"src/desk/main.c": '#include "extra/x.h"\n'}, "without a row")


@tap.case
def a_folder_without_a_row_is_refused():
    refused({"src/extra/x.c": "int x;\n"}, "src/extra/x.c", "no row")


@tap.case
def a_folder_within_a_layer_belongs_to_it():
    accepted({"src/base/deep/x.c": '#include "base/deep/y.h"\n', "src/desk/a/b/c.c": '#include "base/deep/y.h"\n'})
    refused({"src/base/deep/x.c": '#include "wall/deep/y.h"\n'}, "src/base/ may not include", "rule 2")


@tap.case
def a_row_that_names_a_row_below_is_refused():
    upwards = TABLE.replace("| C | – |", "| C | `rule` |")
    assert upwards != TABLE
    refused({}, "src/base/ names rule", "no row above", "rule 1", table=upwards)


@tap.case
def another_folder_comes_in_by_the_doors():
    doors = TABLE.replace("| `src/wall/` |", "| `src/wall/`: `wall.h`, `deep/gate.h` |")
    assert doors != TABLE
    inside = {"src/wall/brick.c": '#include "wall/brick.h"\n'}
    by_door = {"src/desk/main.c": '#include "wall/wall.h"\n#include "wall/deep/gate.h"\n'}
    assert check({**inside, **by_door}, doors) == (0, []), check({**inside, **by_door}, doors)
    refused({"src/desk/main.c": '#include "wall/brick.h"\n'}, "no door of src/wall/", "rule 2", table=doors)


@tap.case
def a_function_that_is_declared_by_hand_is_refused():
    header = {"src/wall/wall.h": "bool wall_up(int a,\n\t     int b);\n",
              "src/wall/wall.c": "bool wall_up(int a, int b)\n{\n\treturn a < b;\n}\n"}
    caller = "int main(void)\n{\n\treturn wall_up(1, 2);\n}\n"
    accepted({**header, "src/desk/main.c": '#include "wall/wall.h"\n' + caller})
    refused({**header, "src/desk/main.c": "bool wall_up(int a,\n\t     int b);\n\n" + caller},
            "src/desk/main.c", "wall_up", "by hand", "rule 2")
    refused({"src/desk/main.c": "extern const struct tool wall_tool;\n"}, "wall_tool", "by hand")
    # What the file defines itself it may announce.
    accepted({"src/desk/main.c": "static int later(int a);\n\nstatic int later(int a)\n{\n\treturn a;\n}\n"})


@tap.case
def a_foreign_structure_that_is_copied_by_hand_is_refused():
    refused({"src/wall/wall.c": "struct json_t {\n\tint type;\n};\n"}, "json_t", "<jansson.h>", "rule 2")
    accepted({"src/wall/wall.c": "struct wall_json {\n\tint type;\n};\n"})
    # The file of the library may name its own structures so, behind whatever it includes first.
    accepted({"src/base/value.c": "#include <stdio.h>\n#include <jansson.h>\n\n"
                                  "struct json_t_functions {\n\tint a;\n};\n"})


@tap.case
def a_folder_without_code_needs_a_row():
    refused({"src/extra/meson.build": "\n"}, "src/extra/", "no row")


@tap.case
def a_source_outside_every_folder_is_refused():
    refused({"src/x.c": "int x;\n"}, "src/x.c", "no row")


@tap.case
def a_build_file_outside_every_folder_is_fine():
    accepted(links())


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
    refused({"src/desk/main.c": "#include <zlib.h>\n"}, "zlib.h", "in no row")


@tap.case
def headers_of_the_system_are_fine():
    accepted({"src/base/fd.c": "#include <fcntl.h>\n#include <sys/stat.h>\n"
                               "#include <linux/landlock.h>\n"})


@tap.case
def the_build_links_what_the_table_says():
    accepted(links())
    refused(links(rule="'base'"), "rule: 'uses' lacks wall", "rule 3")
    refused(links(base="'jansson', 'nettle', 'yaml-0.1'"), "base: 'foreign' has yaml-0.1", "rule 3")
    refused(links(base="'nettle'"), "base: 'foreign' lacks jansson")
    refused(links(more="  'extra': {'uses': [], 'foreign': []},\n"), "extra has a row in it only")


@tap.case
def a_folder_of_more_than_25_files_is_refused():
    files = {f"src/base/{number}.c": "" for number in range(25)}
    accepted({**files, "src/base/deep/x.c": "", "src/base/meson.build": ""})
    refused({**files, "src/base/x.h": ""}, "src/base", "26 files", "rule 4")


@tap.case
def headers_that_hold_pieces_together_are_refused():
    refused({"src/base/buf_parts.h": ""}, "src/base/buf_parts.h", "rule 5")
    refused({"src/base/deep/buf_inside.h": ""}, "buf_inside.h", "rule 5")


@tap.case
def a_header_speaks_for_a_sister_without_one_and_for_no_other():
    header = {"src/base/buf.h": "int buf_one(void);\nint buf_two(void);\n",
              "src/base/buf.c": "int buf_one(void)\n{\n\treturn buf_two();\n}\n",
              "src/wall/wall.c": "static int f(void)\n{\n\treturn buf_one() + buf_two();\n}\n"}
    two = "int buf_two(void)\n{\n\treturn 2;\n}\n"
    accepted({**header, "src/base/buf.c": header["src/base/buf.c"] + two})
    more = {**header, "src/base/buf_more.c": two}
    accepted(more)
    refused({**more, "src/base/buf_more.h": ""}, "src/base/buf.h", "src/base/buf_more.c", "rule 5")
    refused({**more, "src/base/buf_two.h": "int buf_two(void);\n"}, "buf_two()", "speaks", "rule 5")
    refused({**header, "src/base/deep/buf_more.c": two}, "src/base/buf.h", "another folder", "rule 5")


@tap.case
def a_public_function_bears_a_name_of_its_module():
    def named(name, path="src/base/deep/buf", text=""):
        return {path + ".h": f"{text}int {name}(void);\n",
                path + ".c": f"int {name}(void)\n{{\n\treturn 1;\n}}\n",
                "src/desk/main.c": f"int main(void)\n{{\n\treturn {name}();\n}}\n"}

    for name in ("buf_add", "buf", "deep_buf_add", "base_deep_buf_add", "base_buf_add", "glovebox_add"):
        accepted(named(name))
    accepted(named("place_write", text="struct place {\n\tint fd;\n};\n"))
    for name in ("add", "deep_add", "buffer_add", "place_write"):
        refused(named(name), "src/base/deep/buf.h", f"{name}()", "module's name", "rule 6")


@tap.case
def a_table_is_the_only_place_that_names_what_it_lists():
    tools = TABLE.replace("`src/rule/`", "`src/tools/`")
    table = {"src/tools/tools.def": "TOOL(grep)\nTOOL(glob)\n"}
    assert check(table, tools) == (0, []), check(table, tools)
    one = {"src/tools/grep.c": "const struct tool grep_tool = {0};\n"}
    assert check({**table, **one}, tools) == (0, [])
    refused({**table, "src/tools/all.c": "static const t *all[] = {&grep_tool, &glob_tool};\n"},
            "src/tools/all.c", "tools.def", "rule 8", table=tools)
    refused({**table, "src/tools/meson.build": "files('grep.c', 'glob.c')\n"}, "meson.build", "rule 8",
            table=tools)
    refused({"src/tools/grep.c": ""}, "src/tools/tools.def", "is missing", "rule 8", table=tools)
    refused({"src/tools/tools.def": "/* none */\n"}, "has no rows", table=tools)


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
    code, sentences = check({"src/base/a.c": '#include "desk/a.h"\n#include "wall/a.h"\n',
                             "src/base/b.c": "\n" * 2001})
    assert code == 1 and len(sentences) == 3, sentences


# From the bottom up. It stands here as well, so that a change of the table alone is seen.
OUR_LAYERS = """base audit sandbox process policy tool guard files undo view proxy broker ssh cell
                image session plugins tools library model store agent mcp acp serve fleet extend tui front""".split()


@tap.case
def our_own_tree_holds():
    done = tap.run([PROGRAM])
    assert done.returncode == 0, done.stdout


@tap.case
def our_own_layers_stand_in_their_order():
    with open(os.path.join(sys.argv[1], "ARCHITECTURE.md"), encoding="utf-8") as file:
        rows = [line.split("`")[1] for line in file if line.startswith("| `src/")]
    assert rows == [f"src/{name}/" for name in OUR_LAYERS], rows


tap.play()
