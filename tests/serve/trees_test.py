#!/usr/bin/env python3
"""serve: trees that pass as tars, layers over a folder, snapshots.

trees_test.py TAP_FOLDER GLOVEBOX"""
import contextlib
import gzip
import io
import json
import os
import random
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402, pylint: disable=wrong-import-position
import wire  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
PIECE = 8 << 20
CUTS = 24
KILLS = 8


@contextlib.contextmanager
def served(*options):
    engine = wire.Engine(PROGRAM, wire.folder(), *options)
    try:
        yield engine
    finally:
        engine.close()


KINDS = {tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE}


def tar_of(*entries, form=tarfile.PAX_FORMAT):
    """A tar of ENTRIES: (name, content or kind, members of TarInfo)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name, content, *more in entries:
            info = tarfile.TarInfo(name)
            info.mtime = 1_000_000_000
            info.mode = 0o644
            data = None
            if content not in KINDS:
                info.size, data = len(content), io.BytesIO(content)
            else:
                info.type = content
                info.mode = 0o755
            for key, value in (more[0] if more else {}).items():
                setattr(info, key, value)
            tar.addfile(info, data)
    return out.getvalue()


def put(engine, cell, tar, piece=PIECE, **more):
    """Send TAR in pieces; the last answer."""
    params, at = dict(more), 0
    while True:
        part = tar[at:at + piece]
        last = at + len(part) >= len(tar)
        answer = engine.call("tree/put", cell=cell, bytes=wire.encode(part), last=last, offset=at, **params)
        if last or "error" in answer:
            return answer
        params = {"tree": answer["result"]["tree"]}
        at += len(part)


def get(engine, cell, size=PIECE, **more):
    """The tar of a folder, and the first answer."""
    first = answer = engine.result("tree/get", cell=cell, size=size, **more)
    tar = wire.decode(answer["bytes"])
    while not answer["end"]:
        answer = engine.result("tree/get", cell=cell, tree=first["tree"], offset=len(tar), size=size)
        tar += wire.decode(answer["bytes"])
    assert len(tar) == first["size"]
    return tar, first


def names(engine, cell, folder="."):
    return sorted(engine.run(cell, f"cd {folder} && find . -mindepth 1 | sort")["stdout"].decode().split("\n"))[1:]


def members(tar):
    with tarfile.open(fileobj=io.BytesIO(tar)) as file:
        return {member.name: member for member in file}


@tap.case
def a_tree_goes_in_and_comes_out_as_it_was():
    big = os.urandom(3 << 20)
    long = "/".join(["a-rather-long-name-of-a-folder"] * 9) + "/" + "f" * 120
    tar = tar_of(("top", tarfile.DIRTYPE), ("top/plain", b"one\n", {"mode": 0o600}), ("top/run", b"#!/bin/sh\n", {"mode": 0o755}),
                 ("top/big", big), (long, b"deep"), ("top/link", tarfile.SYMTYPE, {"linkname": "plain"}),
                 ("top/sub/up", tarfile.SYMTYPE, {"linkname": "../plain"}), ("empty", tarfile.DIRTYPE),
                 ("top/again", tarfile.LNKTYPE, {"linkname": "top/plain"}), ("\u00e4\u4e2d", b"utf-8"))
    with served() as engine:
        cell = engine.open()
        answer = put(engine, cell, tar, piece=1 << 20)["result"]
        assert answer["entries"] == 10 and answer["bytes"] == len(big) + 4 + 10 + 4 + 5, answer
        assert not any(answer["dropped"].values()), answer
        said = engine.run(cell, "stat -c '%a %Y %h' top/plain top/run; readlink top/link top/sub/up; cat top/again top/sub/up; "
                          "ls -A | sort")
        assert said["stdout"] == (b"600 1000000000 2\n755 1000000000 1\nplain\n../plain\none\none\n"
                                  b"a-rather-long-name-of-a-folder\nempty\ntop\n" + "\u00e4\u4e2d\n".encode()), said
        got, first = get(engine, cell, size=1 << 20)
        assert first["skipped"] == 0 and first["shortened"] == 0, first
        back = members(got)
        assert back[long].size == 4 and back["top/run"].mode == 0o755 and back["top/plain"].mtime == 1_000_000_000
        assert back["top/link"].linkname == "plain" and back["empty"].isdir() and back["\u00e4\u4e2d"].size == 5
        assert back["top/plain"].islnk() != back["top/again"].islnk()
        assert all(member.uid == 0 and member.uname == "" for member in back.values())
        # The same tree, packed again, is the same tar.
        other = engine.open()
        assert put(engine, other, got)["result"]["entries"] == first["entries"]
        assert get(engine, other)[0] == got
        # GNU's tar reads it.
        listed = subprocess.run(["tar", "-tf", "-"], input=got, stdout=subprocess.PIPE, check=True).stdout.decode()
        assert long in listed and "top/sub/up" in listed
        assert not os.listdir(engine.temp) or set(os.listdir(engine.temp)) == {
            name for name in os.listdir(engine.temp) if name.startswith("glovebox-serve-")}


@tap.case
def all_forms_of_a_tar_are_read():
    entries = (("d/" + "n" * 150, b"x" * 5000), ("d/l", tarfile.SYMTYPE, {"linkname": "n" * 150}))
    with served() as engine:
        for number, form in enumerate((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)):
            cell = engine.open()
            tar = tar_of(*entries, form=form)
            for packed in (tar, gzip.compress(tar)):
                assert put(engine, cell, packed, path=f"in{number}")["result"]["entries"] == 2
                assert engine.run(cell, f"cat in{number}/d/l")["stdout"] == b"x" * 5000


@tap.case
def a_file_with_holes_keeps_them():
    with served() as engine:
        cell = engine.open()
        made = engine.run(cell, "truncate -s 512M big && printf middle | dd of=big bs=1M seek=200 conv=notrunc status=none; "
                          "printf end | dd of=big bs=1 seek=536870000 conv=notrunc status=none; sha256sum big; du -k big")
        if int(made["stdout"].split()[2]) > 4096:
            raise tap.Skip("the file system of temporary folders keeps no holes")
        tar, _ = get(engine, cell)
        assert len(tar) < 4 << 20, len(tar)
        other = engine.open()
        put(engine, other, tar)
        said = engine.run(other, "sha256sum big; du -k big")["stdout"].split()
        assert said[0] == made["stdout"].split()[0] and int(said[2]) < 8192, said
        # GNU's own sparse files as well.
        with open(os.path.join(engine.work, "holes"), "wb") as file:
            file.truncate(64 << 20)
            file.seek(32 << 20)
            file.write(b"here")
        packed = subprocess.run(["tar", "-C", engine.work, "-S", "-cf", "-", "holes"], stdout=subprocess.PIPE, check=True).stdout
        put(engine, other, packed)
        assert engine.run(other, "stat -c %s holes; tr -d '\\0' <holes")["stdout"] == b"67108864\nhere"


HOSTILE = {
    "dots": [("../x", b"x")],
    "dots inside": [("a/../../x", b"x")],
    "dots that stay": [("a/../x", b"x")],
    "absolute": [("/tmp/glovebox-hostile", b"x")],
    "absolute link": [("l", tarfile.SYMTYPE, {"linkname": "/etc"})],
    "link up": [("l", tarfile.SYMTYPE, {"linkname": ".."})],
    "link up from below": [("a/l", tarfile.SYMTYPE, {"linkname": "../../b"})],
    "link down and up": [("l", tarfile.SYMTYPE, {"linkname": "a/../.."})],
    "links in a chain": [("a/up", tarfile.SYMTYPE, {"linkname": ".."}), ("l", tarfile.SYMTYPE, {"linkname": "a/up/.."})],
    "through its own link": [("d", tarfile.DIRTYPE), ("l", tarfile.SYMTYPE, {"linkname": "d"}), ("l/x", b"x")],
    "hard link up": [("l", tarfile.LNKTYPE, {"linkname": "../secret"})],
    "hard link out": [("l", tarfile.LNKTYPE, {"linkname": "/etc/passwd"})],
    "hard link through a link": [("d", tarfile.SYMTYPE, {"linkname": "e"}), ("l", tarfile.LNKTYPE, {"linkname": "d/x"})],
    "hard link to nothing": [("l", tarfile.LNKTYPE, {"linkname": "none"})],
    "over a link of the tree": [("out/x", b"x")],
    "over a link of the tree, as a folder": [("out", tarfile.DIRTYPE)],
    "a file over a folder": [("folder", b"x")],
    "a folder over a file": [("file/x", b"x")],
}


@tap.case
def nothing_leaves_the_folder_and_what_is_refused_leaves_nothing():
    with served() as engine:
        outside = os.path.join(engine.folder, "outside")
        tree = os.path.join(engine.work, "tree")
        os.makedirs(outside)
        os.makedirs(os.path.join(tree, "folder"))
        for path in (os.path.join(engine.work, "secret"), os.path.join(tree, "file"), os.path.join(tree, "folder", "f")):
            with open(path, "w", encoding="ascii") as file:
                file.write("old")
        os.symlink(outside, os.path.join(tree, "out"))
        cell = engine.open(workspace=engine.work)
        before = names(engine, cell)
        for title, entries in HOSTILE.items():
            for first in ([], [("good", b"x" * 100)]):
                answer = put(engine, cell, tar_of(*first, *entries), path="tree")
                assert answer.get("error", {}).get("data", {}).get("kind") == "usage", (title, answer)
                assert names(engine, cell) == before, (title, names(engine, cell))
                fresh = put(engine, cell, tar_of(*first, *entries), path="new")
                if title.startswith(("over", "a f")):
                    engine.result("file/remove", cell=cell, path="new", recursive=True)
                else:
                    assert "error" in fresh and names(engine, cell) == before, (title, fresh)
        assert not os.listdir(outside) and not os.path.exists("/tmp/glovebox-hostile")
        assert engine.run(cell, "cat tree/file tree/folder/f secret")["stdout"] == b"oldoldold"


@tap.case
def owners_devices_and_set_ids_are_dropped_and_counted():
    tar = tar_of(("s", b"x", {"mode": 0o6755, "uid": 77, "gid": 77, "uname": "joe"}),
                 ("null", tarfile.CHRTYPE, {"devmajor": 1, "devminor": 3}), ("disk", tarfile.BLKTYPE, {"devmajor": 8}),
                 ("a", b"x", {"pax_headers": {"SCHILY.xattr.security.capability": "x", "SCHILY.xattr.user.mine": "y"}}))
    with served() as engine:
        cell = engine.open()
        dropped = put(engine, cell, tar)["result"]["dropped"]
        assert dropped["devices"] == 2 and dropped["set_ids"] == 1 and dropped["owners"] == 1, dropped
        said = engine.run(cell, "ls -A; stat -c '%a %u' s; id -u")["stdout"].split()
        assert said[:3] == [b"a", b"s", b"755"] and said[3] == said[4], said


@tap.case
def files_are_replaced_and_folders_are_joined():
    with served() as engine:
        cell = engine.open()
        engine.run(cell, "mkdir -p d/e; echo old >d/e/f; echo stays >d/g; ln -s g d/l; echo old >h")
        answer = put(engine, cell, tar_of(("d/e/f", b"new\n"), ("d/e/i", b"i\n"), ("d/l", b"no link\n"),
                                          ("h", tarfile.SYMTYPE, {"linkname": "d/g"}), ("d/n/m", b"m\n")))
        assert answer["result"]["entries"] == 5
        assert engine.run(cell, "cat d/e/f d/e/i d/g d/l h d/n/m; test ! -L d/l && ls -A d")["stdout"] == \
            b"new\ni\nstays\nno link\nstays\nm\ne\ng\nl\nn\n"
        # It is a step, like the changes of a command.
        assert engine.result("cell/changes", cell=cell)["files"]
        engine.result("cell/undo", cell=cell)
        assert engine.run(cell, "cat d/e/f h; readlink d/l; ls -A d")["stdout"] == b"old\nold\ng\ne\ng\nl\n"


@tap.case
def a_tar_that_is_cut_or_broken_leaves_nothing():
    chance = random.Random(7)
    tar = tar_of(*((f"d{number % 7}/f{number}", chance.randbytes(chance.randrange(3000))) for number in range(60)))
    packed = gzip.compress(tar)
    with tarfile.open(fileobj=io.BytesIO(tar)) as file:
        entries = list(file)
        end = entries[-1].offset_data + entries[-1].size
    with served() as engine:
        cell = engine.open()
        engine.run(cell, "echo old >old")
        for number in range(CUTS):
            for whole in (tar, packed):
                cut = chance.randrange(1, end if whole is tar else len(whole))
                if whole is tar and number % 3 == 0:  # at the end of an entry
                    cut = chance.choice(entries[1:]).offset
                answer = put(engine, cell, whole[:cut], path="new" if number % 2 else ".")
                assert answer.get("error", {}).get("data", {}).get("kind") == "usage", (cut, answer)
                assert names(engine, cell) == ["./old"], (cut, names(engine, cell))
        for data in (b"", b"x", b"junk" * 1000, os.urandom(5000), tar[:200] + b"\xff" * 100 + tar[300:]):
            answer = put(engine, cell, data)
            assert "error" in answer and names(engine, cell) == ["./old"], (data[:10], answer)


@tap.case
def bombs_end_at_a_limit():
    with served() as engine:
        cell = engine.open()
        zeros = gzip.compress(tar_of(("zeros", bytes(160 << 20))), 9)
        answer = put(engine, cell, zeros)
        assert answer["error"]["data"]["kind"] == "limit", answer
        deep = tar_of(("/".join(["d"] * 200) + "/f", b"x"))
        answer = put(engine, cell, deep)
        assert answer["error"]["data"]["kind"] == "limit", answer
        holes = tar_of(("f", b"x"))
        assert put(engine, cell, holes)["result"]["entries"] == 1
        assert names(engine, cell) == ["./f"]


@tap.case
def times_of_folders_are_no_work_without_end():
    deep = ["/".join(name * 120) for name in "de"]
    with served() as engine:
        cell = engine.open()
        tar = tar_of(("first", tarfile.DIRTYPE), *[(name, tarfile.DIRTYPE) for name in deep] * 4500, ("last", tarfile.DIRTYPE))
        assert put(engine, cell, tar)["result"]["entries"] == 9002
        # The times of folders are set from the last one on, as far as a second or so lets them.
        first, last = engine.run(cell, "stat -c %Y first last")["stdout"].split()
        assert last == b"1000000000" and first != last, (first, last)
        # A tree as people have them has all of them.
        names = [(f"top/d{number // 100}/e{number % 100}", tarfile.DIRTYPE) for number in range(5000)]
        assert put(engine, cell, tar_of(*names))["result"]["entries"] == 5000
        assert engine.run(cell, "find top -mindepth 2 -newermt @1000000001 | wc -l")["stdout"] == b"0\n"


@tap.case
def a_call_that_is_ended_leaves_nothing():
    tar = tar_of(*((f"d{number % 100}/f{number}", b"x" * 300) for number in range(30000)))
    with served() as engine:
        cell = engine.open()
        first = engine.result("tree/put", cell=cell, bytes=wire.encode(tar[:PIECE]), last=False)
        for at in range(PIECE, len(tar), PIECE):
            last = at + PIECE >= len(tar)
            number = engine.send("tree/put", cell=cell, tree=first["tree"], bytes=wire.encode(tar[at:at + PIECE]), last=last)
            if not last:
                assert "result" in engine.answer(number)
        while not engine.run(cell, "ls -A")["stdout"]:
            pass
        engine.cancel(number)
        assert engine.answer(number)["error"]["code"] == -32800
        end = time.monotonic() + wire.WAIT_SECONDS
        while engine.run(cell, "ls -A")["stdout"]:
            assert time.monotonic() < end
        engine.error("tree/put", "no_such", cell=cell, tree=first["tree"], bytes="")


@tap.case
def what_may_not_be_written_is_refused_and_what_is_blocked_is_not_packed():
    with served() as engine:
        for path in ("out", "in", "in/hidden"):
            os.makedirs(os.path.join(engine.work, path))
        for path in ("in/f", "in/hidden/f", "out/f"):
            with open(os.path.join(engine.work, path), "w", encoding="ascii") as file:
                file.write("x")
        os.mkfifo(os.path.join(engine.work, "in/pipe"))
        cell = engine.open(workspace=engine.work, policy={"write": ["out"], "blocked": ["in/hidden"]})
        for path in (".", "in", "new", "/etc"):
            error = put(engine, cell, tar_of(("x", b"x")), path=path)["error"]
            assert error["data"]["kind"] in ("denied", "no_such"), (path, error)
        assert put(engine, cell, tar_of(("x", b"x")), path="out")["result"]["entries"] == 1
        tar, first = get(engine, cell)
        assert sorted(members(tar)) == ["in", "in/f", "out", "out/f", "out/x"] or \
            sorted(members(tar)) == ["in", "in/f", "in/hidden", "out", "out/f", "out/x"], members(tar)
        assert first["skipped"] >= 1
        engine.error("tree/get", "no_such", cell=cell, path="none")
        engine.error("tree/get", "usage", cell=cell, path="in/f")
        engine.error("tree/get", "usage", cell=cell, offset=1)
        engine.error("tree/get", "no_such", cell=cell, tree=1000, offset=1)
        engine.error("tree/put", "usage", cell=cell, bytes="", offset=3)


@tap.case
def a_caller_can_give_up_trees():
    with served() as engine:
        cell = engine.open()
        engine.result("file/write", cell=cell, path="f", bytes=wire.encode(b"x" * 20000))
        puts = [engine.result("tree/put", cell=cell, bytes="", last=False)["tree"] for _ in range(8)]
        gets = [engine.result("tree/get", cell=cell, size=1)["tree"] for _ in range(8)]
        for method, more in (("tree/put", {"bytes": "", "last": False}), ("tree/get", {"size": 1})):
            refused = engine.error(method, "busy", cell=cell, **more)
            assert "tree/drop" in refused["data"]["remedy"], refused
        other = engine.open()
        engine.error("tree/drop", "no_such", cell=other, tree=puts[0])
        for number in puts + gets:
            engine.result("tree/drop", cell=cell, tree=number)
            engine.error("tree/drop", "no_such", cell=cell, tree=number)
        engine.error("tree/put", "no_such", cell=cell, bytes="", tree=puts[0], offset=0)
        engine.error("tree/get", "no_such", cell=cell, tree=gets[0], offset=1)
        for _ in range(16):
            engine.result("tree/get", cell=cell, size=1)


@tap.case
def many_trees_go_into_one_folder_at_once():
    with served() as engine:
        cell = engine.open()
        for turn in range(12):
            numbers = [engine.send("tree/put", cell=cell, path=f"new{turn}", bytes=wire.encode(tar_of((f"d/f{number}", b"x"))))
                       for number in range(10)]
            answers = [engine.answer(number) for number in numbers]
            assert all("result" in answer for answer in answers), answers
            assert len(names(engine, cell, f"new{turn}")) == 11, names(engine, cell)


@tap.case
def a_tree_that_was_put_aside_in_part_is_no_success():
    with served() as engine:
        cell = engine.open()
        error = put(engine, cell, tar_of(("plain", b"x"), (".mcp.json", b"{}\n")))["error"]
        assert error["data"]["kind"] == "denied" and ".mcp.json" in error["message"], error
        assert "./plain" in names(engine, cell), names(engine, cell)
        assert put(engine, cell, tar_of(("plain", b"y")))["result"]["entries"] == 1


def open_files(engine):
    """How many nameless files of trees the engine holds when the call before is not only answered, but over."""
    engine.result("cell/list")
    held = []
    for fd in os.listdir(f"/proc/{engine.process.pid}/fd"):
        with contextlib.suppress(OSError):
            held.append(os.readlink(f"/proc/{engine.process.pid}/fd/{fd}"))
    return len([path for path in held if os.path.dirname(path) == engine.temp and path.endswith("(deleted)")])


@tap.case
def trees_that_were_given_up_go_with_their_cell():
    with served() as engine:
        cells = [engine.open() for _ in range(2)]
        put(engine, cells[1], tar_of(("x", b"x")))
        before = open_files(engine)
        for _ in range(16):
            engine.result("tree/put", cell=cells[0], bytes="", last=False)
        engine.error("tree/put", "busy", cell=cells[1], bytes="")
        engine.result("cell/close", cell=cells[0])
        assert put(engine, cells[1], tar_of(("x", b"x")))["result"]["entries"] == 1
        assert open_files(engine) <= before


@tap.case
def a_tree_and_a_snapshot_leave_no_file_open():
    def all_calls(number):
        assert put(engine, cell, tar_of(("x", b"x")))["result"]["entries"] == 1
        get(engine, cell)
        engine.result("cell/snapshot", cell=cell, name=f"n{number}")
    with served() as engine:
        cell = engine.open()
        for number in range(2):
            all_calls(number)
        before = open_files(engine)
        for number in range(2, 12):
            all_calls(number)
        assert open_files(engine) <= before, (open_files(engine), before)


def tree_of(folder):
    found = {}
    for path, folders, files in os.walk(folder):
        for name in folders + files:
            whole = os.path.join(path, name)
            status = os.lstat(whole)
            content = open(whole, "rb").read() if stat.S_ISREG(status.st_mode) else None  # noqa: SIM115
            found[os.path.relpath(whole, folder)] = (status.st_mode, status.st_mtime_ns, content)
    return found


def reviews(engine, *words):
    environment = {"PATH": os.environ["PATH"], "HOME": engine.home, "LANG": "C.UTF-8"}
    done = subprocess.run([PROGRAM, *words], cwd=engine.work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout.decode()


@tap.case
def a_layer_over_a_folder_leaves_it_as_it_is():
    with served() as engine:
        os.makedirs(os.path.join(engine.work, "d"))
        for path in ("a", "d/b"):
            with open(os.path.join(engine.work, path), "w", encoding="ascii") as file:
                file.write("old\n")
        before = tree_of(engine.work)
        opened = engine.result("cell/open", workspace={"from": engine.work}, policy={"write": ["."]})
        cell, layer = opened["cell"], opened["layer"]
        assert opened["fresh"] is False and opened["workspace"] == engine.work and layer["place"] in ("disk", "memory", "copy")
        engine.run(cell, "echo new >a; rm d/b; mkdir e; echo c >e/c")
        engine.result("file/write", cell=cell, path="f", bytes=wire.encode(b"f\n"))
        put(engine, cell, tar_of(("t/u", b"u\n")))
        rows = {row["path"]: row["state"] for row in engine.result("cell/changes", cell=cell)["files"]}
        assert set(rows) == {"a", "d/b", "e/c", "f", "t/u"}, rows
        patch = engine.result("cell/patch", cell=cell)["patch"]
        assert "+new" in patch and "a/d/b" in patch, patch
        assert tree_of(engine.work) == before
        # Another cell over the same folder has a layer of its own.
        other = engine.open(workspace={"from": engine.work})
        assert engine.run(other, "cat a; ls -A")["stdout"] == b"old\na\nd\n"
        assert "layer" not in engine.result("cell/close", cell=other, keep=True)
        assert engine.result("cell/close", cell=cell, keep=True)["layer"] == layer
        assert tree_of(engine.work) == before
        code, told = reviews(engine, "review", layer["id"])
        assert code == 0 and "t/u" in told, told
        code, told = reviews(engine, "land", "--id", layer["id"])
        assert code == 0 and open(os.path.join(engine.work, "a"), encoding="ascii").read() == "new\n", told  # noqa: SIM115
        assert not os.path.exists(os.path.join(engine.work, "d/b"))


@tap.case
def a_layer_goes_with_its_cell_and_with_the_engine():
    with served() as engine:
        with open(os.path.join(engine.work, "a"), "w", encoding="ascii") as file:
            file.write("old\n")
        before = tree_of(engine.work)
        cell = engine.open(workspace={"from": engine.work})
        engine.run(cell, "echo new >a")
        engine.result("cell/close", cell=cell)
        for _ in range(3):
            cell = engine.open(workspace={"from": engine.work})
            engine.run(cell, "echo new >a; head -c 100000 /dev/zero >z")
        engine.end()
        code, told = reviews(engine, "review", "--list")
        assert code == 0 and "nothing to review" in told, told
        assert tree_of(engine.work) == before


@tap.case
def an_agent_that_wants_a_review_gets_its_layer():
    with served() as engine:
        opened = engine.result("cell/open", workspace=engine.work, policy={"write": ["."], "review": True})
        assert re.fullmatch("[0-9a-f]{8}", opened["layer"]["id"])
        engine.run(opened["cell"], "echo x >f")
        assert not os.listdir(engine.work)
        assert engine.result("cell/info", cell=opened["cell"])["layer"] == opened["layer"]
        engine.error("cell/open", "no_such", workspace={"from": os.path.join(engine.work, "none")})
        engine.error("cell/open", "usage", workspace={"form": engine.work})
        engine.error("cell/open", "usage", workspace={})


def snapshots(engine):
    folder = os.path.join(engine.home, ".local/share/glovebox/snapshots")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def index_of(folder, files, *rows):
    """Git's index of FOLDER gets so many FILES, and ROWS; it is old enough to be known by its times."""
    blob = subprocess.run(["git", "hash-object", "-w", "--stdin"], cwd=folder, input=b"x", capture_output=True, check=True).stdout.decode().strip()
    text = "".join(f"100644 {blob}\tfolder/of/many/files/{number:08}\n" for number in range(files)) + "".join(rows)
    subprocess.run(["git", "update-index", "--add", "--index-info"], cwd=folder, input=text.encode(), check=True)
    time.sleep(0.1)
    return os.stat(os.path.join(folder, ".git/index")).st_size


@tap.case
def a_large_index_is_read_once_for_all_cells_and_again_when_it_has_changed():
    with served() as engine:
        subprocess.run(["git", "init", "-q", "."], cwd=engine.work, check=True)
        size = index_of(engine.work, 20000)
        assert size > 1 << 20

        def opened():
            """How many bytes the engine reads for a cell, and the cell."""
            def read():
                with open(f"/proc/{engine.process.pid}/io", encoding="ascii") as file:
                    return int(file.readline().split()[1])
            before = read()
            cell = engine.open(workspace=engine.work)
            return read() - before, cell
        first, cell = opened()
        again, other = opened()
        assert first >= size > again, (first, again, size)
        for held in (cell, other):
            engine.result("cell/close", cell=held)
        # A module that the index names is protected from the next cell on.
        subprocess.run(["git", "init", "-q", "a/b/c/module"], cwd=engine.work, check=True)
        index_of(engine.work, 0, f"160000 {'1' * 40}\ta/b/c/module\n")
        first, cell = opened()
        again, other = opened()
        assert first >= size > again, (first, again, size)
        for held in (cell, other):
            said = engine.run(held, "echo x > a/b/c/module/.git/config")
            assert b"Read-only" in said["stderr"], said
        engine.end()


@tap.case
def any_number_of_cells_work_over_a_snapshot():
    with served() as engine:
        with open(os.path.join(engine.work, "a"), "w", encoding="ascii") as file:
            file.write("old\n")
        cell = engine.open(workspace={"from": engine.work})
        engine.run(cell, "echo new >b; ln -s /usr/bin/env abs; ln -s ../../.. up; ln a again; mkdir -m 700 d; touch d/e")
        taken = engine.result("cell/snapshot", cell=cell, name="one")
        assert taken["snapshot"] == "snapshot:one" and taken["entries"] == 7 and re.fullmatch("[0-9a-f]{64}", taken["digest"]), taken
        # The same files have the same hash, and the cell goes on.
        assert engine.result("cell/snapshot", cell=cell, name="two")["digest"] == taken["digest"]
        engine.run(cell, "echo more >>b")
        other = engine.result("cell/snapshot", cell=cell, name="three.x_-")
        assert other["digest"] != taken["digest"]
        for name in ("one", ".x", "a/b", "", "x" * 65):
            engine.error("cell/snapshot", "usage", cell=cell, name=name)
        engine.result("cell/close", cell=cell)
        assert os.listdir(engine.work) == ["a"] and snapshots(engine) == ["one", "three.x_-", "two"]
        os.remove(os.path.join(engine.work, "a"))
        cells = []
        for number in range(5):
            opened = engine.result("cell/open", workspace={"snapshot": "one"}, policy={"write": ["."]})
            assert opened["snapshot"] == taken["digest"] and opened["layer"] and not opened["fresh"], opened
            said = engine.run(opened["cell"], f"cat a b; readlink abs up; stat -c '%a %h' d again; echo {number} >a; rm b; ls -A | sort")
            assert said["stdout"] == b"old\nnew\n/usr/bin/env\n../../..\n700 2\n644 2\na\nabs\nagain\nd\nup\n", said
            cells.append(opened["cell"])
        assert [engine.run(cell, "cat a")["stdout"] for cell in cells] == [b"%d\n" % number for number in range(5)]
        rows = engine.result("cell/changes", cell=cells[0])["files"]
        assert {row["path"] for row in rows} >= {"a", "b"}, rows
        # A snapshot of a cell over a snapshot.
        assert engine.result("cell/snapshot", cell=cells[1], name="four")["entries"] == 6
        engine.error("cell/close", "usage", cell=cells[0], keep=True)
        for cell in cells:
            engine.result("cell/close", cell=cell)
        engine.error("cell/open", "no_such", workspace={"snapshot": "never"})
        engine.error("cell/open", "usage", workspace={"snapshot": "one", "from": engine.work})
        last = engine.open(workspace={"snapshot": "four"})
        assert engine.run(last, "cat a; ls -A")["stdout"].startswith(b"1\na\n")
        engine.end()


@tap.case
def a_snapshot_has_the_files_that_a_guard_puts_aside():
    with served() as engine:
        subprocess.run(["git", "init", "-q", engine.work], check=True)
        os.makedirs(os.path.join(engine.work, ".git/hooks"), exist_ok=True)
        for path in (".git/hooks/pre-commit", ".mcp.json"):
            with open(os.path.join(engine.work, path), "w", encoding="ascii") as file:
                file.write("{}\n")
            os.chmod(os.path.join(engine.work, path), 0o755)
        os.mkfifo(os.path.join(engine.work, "pipe"))
        cell = engine.open(workspace=engine.work)
        taken = engine.result("cell/snapshot", cell=cell, name="one")
        assert taken["skipped"] == 1 and taken["shortened"] == 0, taken
        other = engine.open(workspace={"snapshot": "one"})
        assert engine.run(other, "cat .git/hooks/pre-commit .mcp.json")["stdout"] == b"{}\n{}\n", names(engine, other)
        assert not [name for name in names(engine, other) if "quarantine" in name], names(engine, other)


@tap.case
def a_snapshot_has_the_times_of_files_to_the_nanosecond():
    with served() as engine:
        cell = engine.open(workspace=engine.work)
        looks = "stat -c '%n %y' d d/f l"
        made = engine.run(cell, "mkdir d; touch -d @1234567890.123456789 d/f; ln -s f l; touch -h -d @2.5 l; touch -d @3.000000004 d; " + looks)["stdout"]
        assert b".123456789" in made and b".000000004" in made, made
        engine.result("cell/snapshot", cell=cell, name="times")
        other = engine.open(workspace={"snapshot": "times"})
        assert engine.run(other, looks)["stdout"] == made


@tap.case
def a_snapshot_without_a_temporary_file_says_what_to_do():
    with served() as engine:
        cell = engine.open(workspace=engine.work)
        for name in os.listdir(engine.temp):
            shutil.rmtree(os.path.join(engine.temp, name))
        os.rmdir(engine.temp)
        assert "name another folder in TMPDIR" in engine.error("cell/snapshot", "limit", cell=cell, name="one")["message"]
        os.mkdir(engine.temp)
        engine.result("cell/snapshot", cell=cell, name="one")


@tap.case
def names_that_are_no_utf8_are_frozen_as_they_are():
    with served() as engine:
        cell = engine.open()
        made = engine.run(cell, "n=$(printf '%120s\\377\\344' | tr ' ' n); echo x >$n; ln -s $n l; truncate -s 64M s$n; echo y >>s$n; ls -lR | md5sum")
        taken = engine.result("cell/snapshot", cell=cell, name="bytes")
        assert taken["entries"] == 3, taken
        other = engine.open(workspace={"snapshot": "bytes"})
        assert engine.run(other, "cat n*; cat l; tail -c 2 s*; ls | wc -l")["stdout"] == b"x\nx\ny\n3\n", made


@tap.case
def a_fresh_workspace_is_frozen_as_well():
    with served() as engine:
        cell = engine.open()
        engine.run(cell, "echo x >f")
        taken = engine.result("cell/snapshot", cell=cell, name="f")
        number = engine.send("exec/run", cell=cell, command="sleep 1000")
        engine.error("cell/snapshot", "busy", cell=cell, name="g")
        engine.cancel(number)
        engine.answer(number)
        again = engine.open(workspace={"snapshot": "f"})
        assert engine.run(again, "cat f")["stdout"] == b"x\n" and taken["bytes"] == 2


@tap.case
def a_snapshot_that_takes_too_long_is_given_up():
    with served() as engine:
        cell = engine.open()
        engine.run(cell, "for i in $(seq 300); do mkdir d$i; echo $i >d$i/f; done")
        told = engine.error("cell/snapshot", "limit", cell=cell, name="late", timeout_s=0.001)
        assert "not whole after 0.001 s" in told["message"] and "timeout_s" in told["data"]["remedy"], told
        assert snapshots(engine) == [] and engine.run(cell, "cat d300/f")["stdout"] == b"300\n"
        engine.result("cell/snapshot", cell=cell, name="late", timeout_s=600)


@tap.case
def a_snapshot_ends_with_its_caller():
    with served() as engine:
        cell = engine.open()
        engine.run(cell, "head -c 400M /dev/zero | tr '\\0' x >f")
        engine.send("cell/snapshot", cell=cell, name="gone")
        while not snapshots(engine):
            time.sleep(0.01)
        assert engine.end() == 0 and snapshots(engine) == []


@tap.plain_case
def a_snapshot_that_is_killed_is_there_or_not():
    with served() as first:
        home = first.home
        cell = first.open()
        first.run(cell, "for i in $(seq 300); do mkdir d$i; echo $i >d$i/f; done")
        tar, _ = get(first, cell)
        seen = set()
        for seed in range(KILLS):
            engine = wire.Engine(PROGRAM, wire.folder(), home=home)
            try:
                own = engine.open()
                put(engine, own, tar)
                number = engine.send("cell/snapshot", cell=own, name=f"n{seed}")
                if seed == 0:
                    engine.answer(number)
                time.sleep(random.Random(seed).random() * 0.3)
                engine.process.kill()
                engine.process.wait()
                whole = f"n{seed}" in snapshots(engine)
                seen.add(whole)
                cell = None
                try:
                    cell = first.open(workspace={"snapshot": f"n{seed}"})
                except AssertionError:
                    assert not whole
                if cell:
                    said = first.run(cell, "cat d*/f | sort -n | md5sum; ls | wc -l")
                    assert said["stdout"].split()[2] == b"300", said
                    first.result("cell/close", cell=cell)
            finally:
                engine.close()
        cell = first.open()
        first.result("cell/snapshot", cell=cell, name="last")
        assert not [name for name in snapshots(first) if name.startswith(".")], snapshots(first)


def recording(engine, *turns):
    path = os.path.join(engine.folder, "recording.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"name": "test", "turns": turns}, file)
    return f"replay:{path}"


WRITES = {"calls": [{"tool": "write_file", "arguments": {"path": "made", "content": "by the agent\n"}},
                    {"tool": "bash", "arguments": {"command": "echo more >made2; echo no >out/f; env | grep -c SECRET_OF_THE_CALLER"}}]}


@tap.case
def an_agent_works_in_the_workspace_of_a_cell():
    for layered in (False, True):
        with served() as engine:
            model = recording(engine, {"text": "I begin.", **WRITES}, {"text": "Done: ${prompt}", "repeat": True})
            cell = engine.open(workspace={"from": engine.work} if layered else engine.work)
            number = engine.result("run/start", cell=cell, prompt="make it", model=model, agent="coder",
                                   budget={"seconds": 300})["run"]
            events = []
            while True:
                message = engine.take(lambda message: message.get("method", "").startswith("run/"))
                params = message["params"]
                assert params["cell"] == cell and params["run"] == number, params
                if message["method"] == "run/ended":
                    break
                events.append(params["event"]["event"])
            assert "failed" not in params and params["text"].startswith("Done: make it"), (params, events)
            assert {"session_began", "message", "tool_ended", "turn_ended"} & set(events), events
            assert engine.run(cell, "cat made made2")["stdout"] == b"by the agent\nmore\n", params
            assert bool(os.listdir(engine.work)) != layered
            assert engine.result("cell/info", cell=cell)["state"] == "idle"
            if layered:
                rows = {row["path"] for row in engine.result("cell/changes", cell=cell)["files"]}
                assert rows == {"made", "made2"}, rows
            engine.error("run/cancel", "no_such", cell=cell, run=number)
            engine.end()


@tap.case
def an_agent_has_no_right_that_its_cell_lacks():
    with served() as engine:
        os.makedirs(os.path.join(engine.work, "in"))
        model = recording(engine, {"calls": [{"tool": "write_file", "arguments": {"path": "f", "content": "x"}},
                                             {"tool": "write_file", "arguments": {"path": "in/f", "content": "x"}},
                                             {"tool": "bash", "arguments": {"command": "echo x >g; echo x >in/g"}}]},
                          {"text": "Done.", "repeat": True})
        cell = engine.open(workspace=engine.work, policy={"write": ["in"]})
        engine.result("run/start", cell=cell, prompt="write", model=model, agent="coder")
        ended = engine.notice("run/ended")["params"]
        assert "failed" not in ended and names(engine, cell) == ["./in", "./in/f", "./in/g"], (ended, names(engine, cell))


@tap.case
def a_run_is_cancelled_and_goes_with_its_cell():
    with served() as engine:
        model = recording(engine, {"calls": [{"tool": "bash", "arguments": {"command": "echo begun >begun; sleep 1000"}}]},
                          {"text": "Done.", "repeat": True})
        cell = engine.open()
        number = engine.result("run/start", cell=cell, prompt="wait", model=model)["run"]
        while not engine.run(cell, "ls")["stdout"]:
            pass
        engine.error("cell/undo", "busy", cell=cell)
        engine.result("run/cancel", cell=cell, run=number)
        ended = engine.notice("run/ended")["params"]
        assert ended["run"] == number and "Done" not in ended["text"], ended
        engine.result("run/start", cell=cell, prompt="wait", model=model)
        engine.result("cell/close", cell=cell)
        cell = engine.open()
        engine.result("run/start", cell=cell, prompt="wait", agent="nobody-of-this-name")
        assert "nobody-of-this-name" in engine.notice("run/ended")["params"]["failed"]
        engine.result("run/start", cell=cell, prompt="nobody has named a model")
        ended = engine.notice("run/ended")["params"]
        assert "no model is configured" in ended["failed"] and "ended" not in ended, ended
        engine.result("run/start", cell=cell, prompt="wait", model=model)
        pids = engine.children()
        engine.end()
        assert not wire.gone(pids)


tap.play(PROGRAM)
