"""source: what the scripts of dev/ read in a tree: its files, functions, declarations, structs and
comments. It reads lines as .clang-format leaves them, so it needs no compiler."""
import os
import re

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
# A text may hold what looks like the beginning of a comment: "t/*.t".
TEXT_OR_COMMENT = re.compile(r'''"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|/\*.*?\*/|//[^\n]*''', re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")
# Outside of a function nothing stands in column 0 but what is declared or defined.
DECLARED = re.compile(
    r"^(?!static\b|typedef\b|return\b|extern\b|else\b|struct \w+ \{)[A-Za-z_][\w \*]*?\b(\w+)\(",
    re.MULTILINE)
STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FUNCTION_NAME = re.compile(r"([A-Za-z_]\w*)\s*\(")
MEMBERS_END = re.compile(r";")


def walk(root, folder):
    """All files below a folder as paths relative to ROOT, sorted."""
    for top, folders, names in os.walk(os.path.join(root, folder)):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "build")
        for name in sorted(names):
            yield os.path.relpath(os.path.join(top, name), root)


def read_text(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def read_lines(root, path):
    return read_text(root, path).splitlines()


def is_source(root, path):
    """C, Python and shell, by name or by first line."""
    if path.endswith((".c", ".h", ".py", ".sh")):
        return True
    if "." in os.path.basename(path):
        return False
    with open(os.path.join(root, path), "rb") as file:
        return file.read(2) == b"#!"


def functions(lines):
    """(name, first line, number of lines, is static) of each function; .clang-format puts the
    braces of a function, and no others, alone at the start of a line."""
    start, name, static = 0, "", False
    for number, line in enumerate(lines, 1):
        if line == "{":
            start, name, static = number, "?", False
            for back in reversed(lines[max(0, number - 12) : number - 1]):
                if back.startswith(("\t", " ", "#")):
                    continue
                if not back or back.startswith(("/", "}")):
                    break
                match = FUNCTION_NAME.search(back)
                if match and name == "?":
                    name = match.group(1)
                static = static or back.startswith("static")
        elif line == "}" and start:
            yield name, start, number - start + 1, static
            start = 0


def declared(text):
    """The names of the functions that a text without comments declares or defines in column 0."""
    return [match.group(1) for match in DECLARED.finditer(text)]


def without_comments(text):
    """The text with each comment blanked out; the lines keep their numbers."""
    return TEXT_OR_COMMENT.sub(lambda match: match.group(0) if match.group(0)[0] in "\"'"
                       else "\n" * match.group(0).count("\n"), text)


def code_lines(text):
    """How many lines are neither blank nor comment."""
    return sum(1 for line in without_comments(text).splitlines() if line.strip())


def structs(text):
    """(name, members, members of type bool) of each struct that a text without comments defines.
    A member of a struct within it counts as one more."""
    for match in STRUCT.finditer(text):
        members = bools = 0
        for statement in MEMBERS_END.split(match.group(2)):
            words = statement.rsplit("{", 1)[-1].strip()
            if not words or words == "}":
                continue
            count = 1 + (words.count(",") if "(" not in words else 0)
            members += count
            bools += count if re.match(r"bool\b(?! \(\*)", words) else 0
        yield match.group(1), members, bools


def comments(text):
    """The words of each comment, its stars and line ends folded."""
    for match in TEXT_OR_COMMENT.finditer(text):
        if match.group(0)[0] in "\"'":
            continue
        yield " ".join(re.sub(r"^\s*(/\*+|\*+/|\*|//)", "", line).removesuffix("*/").strip()
                       for line in match.group(0).splitlines()).strip()
