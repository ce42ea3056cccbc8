#!/usr/bin/env python3
"""forge: write into an undo log what a worker that was taken over could write there.

forge.py put LOG PATH TEXT        undoing the log's step puts TEXT at PATH
forge.py remove LOG PATH          undoing it removes PATH
forge.py steal LOG PATH FROM TEXT PATH held what lies in the log FROM where TEXT is now
forge.py list LIST LOG PATH TEXT  the list of the workspace says that LOG keeps PATH, as TEXT

The layout is that of files/record.h, undo_state.h and undo_list.h. PATH is relative to the
working folder, which is the workspace.
"""
import hashlib
import os
import re
import struct
import sys

ABSENT, FILE = 0, 1
NOWHERE, LOGGED = 0, 1
DATA, CHANGE, STATE = b"GBUD", b"GBUC", 136


def state(kind, content=b"", source=NOWHERE, log=0, offset=0, st=None, digest=True):
    mode = 0o644 if st is None else st.st_mode & 0o7777
    times = (0, 0, 0) if st is None else (st.st_ino, st.st_mtime_ns, st.st_ctime_ns)
    text = struct.pack("<BBBxIIIQQQqq", kind, source, digest, mode, log, 0, len(content),
                       offset, *times)
    text += hashlib.sha256(content).digest() if digest else bytes(32)
    return text.ljust(STATE, b"\0")


def chunk(tag, text):
    return tag + struct.pack("<IQ", 0, len(text)) + text


def number(log):
    return int(re.search(r"(\d{8})\.log$", log).group(1))


def append(log, text):
    """The offset at which TEXT begins in the file LOG."""
    with open(log, "ab") as file:
        file.write(text)
        return file.tell() - len(text)


def now(path):
    with open(path, "rb") as file:
        return state(FILE, file.read(), st=os.stat(path))


def change(log, path, before):
    after = now(path) if os.path.exists(path) else state(ABSENT)
    append(log, chunk(CHANGE, before + after + path.encode()))


def keep(log, text):
    return append(log, chunk(DATA, text)) + 16


def forge_list(name, log, path, text):
    """Row by row: only what is said of PATH is another."""
    with open(name, "rb") as file:
        rows = file.read()
    at, out = 8, rows[:8]
    while at < len(rows):
        size = struct.unpack_from("<H", rows, at)[0]
        end = at + 2 + STATE + size
        row = rows[at:end]
        if row[2 + STATE:] == path:
            row = row[:2] + state(FILE, text, LOGGED, number(log), keep(log, text),
                                  os.stat(path)) + path
            # The size is what the file has: only so the list knows it again.
            assert len(text) == os.path.getsize(path)
        out += row
        at = end
    assert out != rows
    with open(name, "wb") as file:
        file.write(out)


def main():
    what, log, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    if what == "put":
        text = rest[1].encode()
        change(log, rest[0], state(FILE, text, LOGGED, number(log), keep(log, text)))
    elif what == "remove":
        change(log, rest[0], state(ABSENT))
    elif what == "steal":
        with open(rest[1], "rb") as file:
            at = file.read().index(rest[2].encode())
        change(log, rest[0], state(FILE, rest[2].encode(), LOGGED, number(rest[1]), at,
                                   digest=False))
    elif what == "list":
        forge_list(log, rest[0], rest[1].encode(), rest[2].encode())


if __name__ == "__main__":
    main()
