#!/usr/bin/env python3
"""Is every option that names code in the table of such words (src/policy/command_code.def)?

For each program that a preset names, and each of its subcommands there, the help is read: what the program
prints where it is installed (with --live), and what is recorded in help/ of it in any case. An option whose
description speaks of code (SPEAKS) must stand in the table: as what names code, or as harmless, with the
reason. A program of a preset without a record fails, and so does a row whose program nothing names.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "dev"))

HELP_SECONDS = 120

# Words about an option that runs, loads or is told by a file or a text.
THINGS = (
    r"(?:commands?|programs?|executables?|scripts?|plug-?ins?|modules?|addons?|shell|hooks?|wrapper|"
    r"interpreter|(?:go|js|python|php) code|daemon|subtool|editor|pager|shared (?:object|library)|class(?:es)?)"
)
SPEAKS = re.compile(
    rf"\b(?:run|execut\w*|invok\w*|launch|start|evaluat\w*|(?:pre)?loads?|(?:pre)?loading|interpret|spawn|"
    rf"call|pipe)\b[^.;]{{0,40}}?\b{THINGS}\b|"
    rf"\b{THINGS}\b[^.;]{{0,24}}?\bto (?:run|execute|use|invoke|load|preload|start|evaluate)\b|"
    r"\b(?:plugin|plug-in|preload|wrapper|toolexec|hook|rcfile|bootstrap|loader|config|configuration) "
    r"(?:file|value|setting|name|path)s?\b|"
    r"\b(?:override|alternate|use|load|read|specifies|specified)\b[^.;]{0,24}?\bconfig(?:uration)?\b|"
    r"(?:<|\[|=| )(?:COMMAND|PROGRAM|PROG|CMD|SCRIPT|MODULE|PLUGIN|WRAPPER|dsopath)(?:>|\]|\b)|"
    r"\bas a makefile\b|\bini entry\b",
)

# Words of launchers: the help of what they name is another program's.
LAUNCHED = {
    "python -m py_compile": None,
    "python -m pytest": "pytest",
    "php vendor/bin/phpunit": "phpunit",
    "npx tsc": "tsc",
    "npx eslint": "eslint",
    "npx jest": "jest",
    "npx vitest": "vitest",
    "npx mocha": "mocha",
    "npx prettier": "prettier",
}

# How the help is asked for where it is not PROGRAM SUBCOMMAND --help.
ASKED = {
    "git": "git {sub} -h",
    "npm": "npm {sub} -h",
    "go build": "go help build",
    "go vet": "go help build",
    "go install": "go help build",
    "go test": "go help testflag",
    "go run": "go help build",
    "go list": "go help list",
    "go doc": "go help doc",
    "go version": "go help version",
    "go env": "go help env",
    "go mod": "go help mod",
    "pip": "pip {sub} --help",
    "cargo": "cargo {sub} --help",
    "cargo --version": "cargo --help",
    "meson": "meson {sub} --help",
    "python -m unittest": "python3 -m unittest --help",
    "composer": "composer {sub} --help",
}
# Their help is that of the program itself.
PLAIN = {"php", "node", "cmake", "gcc", "clang", "clang-format", "rustfmt", "rustc", "black", "tsc", "python"}
SAME = {
    "python3": "python", "pip3": "pip", "cc": "gcc", "c++": "gcc", "g++": "gcc", "clang++": "clang",
    "gmake": "make", "egrep": "grep", "fgrep": "grep",
}  # fmt: skip
# They have no options that matter, or none at all.
BARE = {"echo", "true", "false", "pwd", "basename", "dirname"}


def base_name(word):
    return word.rsplit("/", 1)[-1]


def read_table(text):
    """[(kind, programs, subcommands, name, reason)]"""
    string = r'"((?:[^"\\]|\\.)*)"'
    rows = []
    patterns = {
        "EXECUTES": rf"\({string},\s*{string},\s*{string}\)",
        "GLOBAL": rf"\({string},\s*{string},\s*{string}\)",
        "HARMLESS": rf"\({string},\s*{string},\s*{string}\)",
    }
    for kind, pattern in patterns.items():
        for programs, name, reason in re.findall(rf"(?m)^{kind}{pattern}", text):
            rows.append((kind, programs.split(","), [], name, reason))
    for programs, subs, name, reason in re.findall(
        rf"(?m)^EXECUTES_IN\({string},\s*{string},\s*{string},\s*{string}\)", text
    ):
        rows.append(("EXECUTES", programs.split(","), subs.split(","), name, reason))
    for kind, programs, subs, name, reason in re.findall(
        rf"(?m)^ROW\(CODE_(\w+),\s*{string},\s*{string},\s*{string},\s*{string}\)", text
    ):
        rows.append((kind, programs.split(","), subs.split(",") if subs else [], name, reason))
    return rows


def read_presets():
    """{(program, subcommand)}, aliases and launchers resolved."""
    found = set()
    for path in sorted(glob.glob(os.path.join(ROOT, "presets", "*.json"))):
        with open(path, encoding="utf-8") as file:
            rules = json.loads(re.sub(r"(?m)^\s*//.*$", "", file.read()))
        for rule in rules:
            if isinstance(rule, str):
                continue
            for program in rule["program"].split(","):
                program = SAME.get(base_name(program), base_name(program))
                words = rule.get("subcommand", "").split(" ")
                first = words[0].split(",") if words[0] != "-m" else [rule["subcommand"]]
                for sub in first:
                    name = f"{program} {sub}".strip().replace("./vendor", "vendor")
                    if name in LAUNCHED:
                        if LAUNCHED[name] is not None:
                            found.add((LAUNCHED[name], ""))
                    elif program in PLAIN and sub != "-m unittest":
                        found.add((program, ""))
                    elif program not in BARE:
                        found.add((program, sub))
    return found


def command_of(program, sub):
    for key in (f"{program} {sub}".strip(), program):
        if key in ASKED:
            return ASKED[key].format(sub=sub).split()
    real = "python3" if program == "python" else program
    return [real, *([sub] if sub else []), "--help"]


def names_of(head):
    """The names at the beginning of HEAD: "-x FILE, --name=FILE"."""
    names = []
    for part in re.split(r", *|[|]", head):
        name = re.match(r"(--?(?:\[no-?\])?[A-Za-z0-9][\w-]*)", part.strip())
        if name is None:
            break
        names.append(re.sub(r"\[no-?\]", "", name.group(1)))
    return names


def options_of(text):
    """[(names, description)] of a help text: lines that begin with a dash, and what is indented below."""
    found = []
    for line in text.splitlines():
        bare = re.sub(r"\x1b\[[0-9;]*m|.\x08", "", line).strip()
        indent = len(line) - len(line.lstrip())
        if re.match(r"-{1,2}[A-Za-z0-9@]", bare):
            head, _, tail = re.sub(r"\t", "  ", bare).partition("  ")
            found.append([names_of(head), f"{head} {tail}", indent])
        elif found and bare and (indent > found[-1][2] or line.startswith("\t")):
            found[-1][1] += " " + bare
        elif found and not bare:
            found.append([[], "", indent])
    return [(names, text) for names, text, _ in found if names]


def is_in(table, program, sub, name):
    for kind, programs, subs, word, _ in table:
        if program in [SAME.get(p, p) for p in programs] and (not subs or sub in subs) and word == name:
            return True
    return False


def missing(table, program, sub, text, where):
    """Sentences about options that speak of code and are not in the table."""
    said = []
    for names, description in options_of(text):
        said_of = " ".join(description.split())
        if not SPEAKS.search(said_of) and not SPEAKS.search(said_of.lower()):
            continue
        lacking = [name for name in names if not is_in(table, program, sub, name)]
        if lacking:
            said.append(f'{where}: {", ".join(lacking)} is in no row of "{program}": {said_of[:110]}')
    return said


def live_help(program, sub):
    """The help of an installed program; None: it is not there."""
    command = command_of(program, sub)
    if shutil.which(command[0]) is None:
        return None
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=HELP_SECONDS,
            check=False,
            env={**os.environ, "PAGER": "cat", "LC_ALL": "C.UTF-8", "COLUMNS": "200"},
        )
    except subprocess.TimeoutExpired:
        return ""
    return run.stdout.decode("utf-8", "replace")


def record_of(program, sub):
    """The recorded options of a program, or None."""
    path = os.path.join(HERE, "help", f"{program}.txt")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    live = "--live" in sys.argv[1:]
    with open(os.path.join(ROOT, "src", "policy", "command_code.def"), encoding="utf-8") as file:
        table = read_table(file.read())
    cases = []
    for program, sub in sorted(read_presets()):
        where = f"{program} {sub}".strip()
        if live:
            text = live_help(program, sub)
            if text is not None:
                cases.append((f"{where} as installed", missing(table, program, sub, text, where)))
            continue
        text = record_of(program, sub)
        if text is None:
            cases.append((f"{where} as recorded", [f"tests/gate/help/{program}.txt is missing: record the options"]))
        else:
            cases.append((f"{where} as recorded", missing(table, program, sub, text, where)))
    if not live:
        bare = [row for row in table if not row[4].strip() or len(row[4]) < len("a file")]
        cases.append(("every row has a reason", [f"{row}" for row in bare]))
        found = missing([], "phpunit", "", record_of("phpunit", ""), "phpunit")
        blind = [] if any("--bootstrap" in line for line in found) else ["without a row nothing is missed"]
        cases.append(("a row that is not there is missed", blind))
    print(f"1..{len(cases)}")
    for number, (name, said) in enumerate(cases, 1):
        print(f'{"not ok" if said else "ok"} {number} - {name}')
        for line in said:
            print(f"# {line}")
    return any(said for _, said in cases)


if __name__ == "__main__":
    sys.exit(main())
