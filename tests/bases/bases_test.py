#!/usr/bin/env python3
"""bases_test TESTS_DEV GLOVEBOX: images pulled, unpacked, found and pruned. All layouts are made here; nothing
asks a network. skopeo and umoci take part where they are installed."""
import base64
import fcntl
import hashlib
import json
import os
import random
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.join(sys.path[1], "..", "serve"))
import tap  # noqa: E402, pylint: disable=wrong-import-position
import wire  # noqa: E402, pylint: disable=wrong-import-position
from layouts import ARCHITECTURE, MTIME, PACKED, Layout, digest, tar  # noqa: E402, pylint: disable=wrong-import-position

PROGRAM = os.path.abspath(sys.argv[2])
LAYERS_MOST = 128
IMAGES_MOST = 4096
# A process that was killed is gone in milliseconds; this tells an end from a hang.
END_S = 20


class Place:
    """A folder with a cache of its own and a layout in it."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="glovebox-bases-")
        self.layout = Layout(os.path.join(self.path, "layout"))
        self.store = os.path.join(self.path, "cache", "glovebox", "images")
        self.environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(self.path, "cache"),
                            "XDG_DATA_HOME": os.path.join(self.path, "data"), "HOME": self.path}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for folder, names, _files in os.walk(self.path):
            for name in names:
                if not os.path.islink(os.path.join(folder, name)):
                    os.chmod(os.path.join(folder, name), 0o700)
        shutil.rmtree(self.path)

    def run(self, *words, **options):
        return tap.run([PROGRAM, "base", *words], stdin=subprocess.DEVNULL,
                       **{"env": self.environment, "cwd": self.path, **options})

    def pull(self, tag="v1"):
        done = self.run("pull", f"oci:layout:{tag}", "--json")
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def show(self, word):
        done = self.run("show", word, "--json")
        assert done.returncode == 0, done
        return json.loads(done.stdout)

    def trees(self, tag="v1"):
        return self.show(f"oci:layout:{tag}")["folders"]

    def refused(self, *parts, tag="v1"):
        """The image is refused with one sentence, and no part of a layer is kept."""
        done = self.run("pull", f"oci:layout:{tag}")
        assert done.returncode == 1 and done.stdout == "", done
        for part in parts:
            assert part in done.stderr, (part, done.stderr)
        assert done.stderr.count("\n") == 1, done.stderr
        assert not [name for name in self.kept("layers") if name.startswith(".")], self.kept("layers")
        return done.stderr

    def kept(self, folder):
        path = os.path.join(self.store, folder)
        return sorted(os.listdir(path)) if os.path.isdir(path) else []


    def exec(self, word, *command, options=(), **more):
        """`exec` in the folder `project`, on the base WORD."""
        os.makedirs(os.path.join(self.path, "project"), exist_ok=True)
        return tap.run([PROGRAM, "exec", "-C", "project", *options, "--base", word, *(["--", *command] if command else [])],
                       cwd=self.path, stdin=subprocess.DEVNULL, **{"env": self.environment, **more})

    def ask(self, requests):
        return wire.ask(PROGRAM, self.path, self.environment, requests)

    def busybox(self, tag="v1", config=None, more=(), packing="+gzip"):
        """Pull an image of busybox with layers of MORE entries over it; its word."""
        path = shutil.which("busybox")
        if path is None:
            raise tap.Skip("busybox-static is not installed")
        with open(path, "rb") as file:
            content = file.read()
        names = [(f"bin/{name}", "link", "busybox") for name in ("sh", "cat", "ls", "echo", "env", "mkdir", "true")]
        layers = [tar([("bin/busybox", "file", content, {"mode": 0o755}), *names]), *(tar(entries) for entries in more)]
        self.layout.image(tag, layers, packing, config=config)
        self.pull(tag)
        return f"oci:{self.layout.path}:{tag}"


def one(place, entries, **options):
    """Pull an image with one layer of ENTRIES; its counts and its folder."""
    place.layout.image("v1", [tar(entries)], **options)
    counts = place.pull()["counts"]
    return counts, place.trees()[0]


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as file:
        return file.read()


def is_removed(path):
    st = os.lstat(path)
    return stat.S_ISCHR(st.st_mode) and st.st_rdev == 0


def hides(path):
    try:
        return os.getxattr(path, "user.overlay.opaque") == b"y"
    except OSError:
        return False


@tap.case
def a_layer_is_unpacked_with_modes_times_and_links():
    with Place() as place:
        counts, tree = one(place, [
            ("./", "dir", ""), ("./etc", "dir", "", {"mode": 0o700}), ("./etc/secret", "file", "s", {"mode": 0o400}),
            ("bin", "link", "usr/bin"), ("usr/bin/x", "file", "run", {"mode": 0o755}), ("usr/bin/y", "hard", "usr/bin/x"),
            ("tmp", "dir", "", {"mode": 0o1777}), ("pipe", "pipe", ""), ("grüße", "file", "ß")])
        assert read(tree, "usr/bin/x") == "run" and read(tree, "grüße") == "ß"
        assert os.stat(os.path.join(tree, "usr/bin/x")).st_nlink == 2
        assert os.readlink(os.path.join(tree, "bin")) == "usr/bin"
        modes = {name: stat.S_IMODE(os.lstat(os.path.join(tree, name)).st_mode)
                 for name in ("etc", "etc/secret", "usr/bin/x", "tmp")}
        # The owner can write, as root could.
        assert modes == {"etc": 0o700, "etc/secret": 0o600, "usr/bin/x": 0o755, "tmp": 0o1777}, modes
        for name in ("etc", "etc/secret", "bin", "tmp"):
            assert os.lstat(os.path.join(tree, name)).st_mtime == MTIME, name
        assert stat.S_ISFIFO(os.lstat(os.path.join(tree, "pipe")).st_mode)
        assert counts["entries"] == 9 and counts["bytes"] == 6, counts


@tap.case
def removed_names_and_hidden_folders_are_those_of_an_overlay():
    with Place() as place:
        place.layout.image("v1", [
            tar([("a", "dir", ""), ("a/old", "file", "1"), ("b", "file", "2"), ("c", "dir", ""), ("c/x", "file", "3")]),
            tar([("a", "dir", ""), ("a/.wh..wh..opq", "file", ""), ("a/new", "file", "4"), (".wh.b", "file", ""),
                 ("c/.wh.x", "file", ""), (".wh..wh.plnk", "file", ""),
                 # A name that the layer has itself stays; a folder of that name hides the one below.
                 ("d", "file", "5"), (".wh.d", "file", ""), (".wh.e", "file", ""), ("e", "dir", ""), ("e/f", "file", "6"),
                 ("g", "dir", ""), ("g/h", "file", "7"), (".wh.g", "file", ""), (".wh.i", "file", ""), ("i", "file", "8"),
                 (".wh.j", "file", ""), ("j/k/l", "file", "9"),
                 # Names that are removed where the folder hides all of them.
                 ("a/.wh.old", "file", ""), ("e/m", "dir", ""), ("e/m/.wh.n", "file", "")])])
        counts = place.pull()["counts"]
        upper = place.trees()[1]
        assert hides(os.path.join(upper, "a")) and is_removed(os.path.join(upper, "b"))
        assert is_removed(os.path.join(upper, "c", "x")) and not hides(os.path.join(upper, "c"))
        assert read(upper, "d") == "5" and read(upper, "e/f") == "6" and read(upper, "i") == "8"
        assert hides(os.path.join(upper, "e")) and hides(os.path.join(upper, "g")) and hides(os.path.join(upper, "j"))
        assert read(upper, "j/k/l") == "9"
        assert os.listdir(os.path.join(upper, "a")) == ["new"] and os.listdir(os.path.join(upper, "e", "m")) == []
        assert sorted(os.listdir(upper)) == list("abcdegij"), os.listdir(upper)
        assert counts["removed"] == 10, counts


@tap.case
def a_removed_name_that_no_layer_has_is_not_listed():
    with Place() as place:
        word = place.busybox(more=[[("a/b", "file", ""), ("a/.wh.c", "file", ""), ("d/.wh.e", "file", "")]])
        assert place.exec(word, "/bin/ls", "-l", "/a", "/d").stdout.split("\n")[0] == "/a:"
        done = place.exec(word, "/bin/ls", "/a", "/d")
        assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["/a:", "b", "/d:"], ""), done


@tap.case
def the_folder_where_programs_begin_is_made():
    """An image may name a folder that it does not bring. On the way to it no link and no file of the image is replaced."""
    with Place() as place:
        word = place.busybox(config={"WorkingDir": "/srv/app"})
        opened = ("cell/open", {"base": word, "name": "c"})
        _, run = place.ask([opened, ("exec/run", {"cell": "c", "argv": ["/bin/sh", "-c", "pwd; echo 1 > file; ls /srv/app"]})])
        assert base64.b64decode(run["result"]["stdout"]) == b"/srv/app\nfile\n", run
        for folder in ("/link/app", "/file/app", "/proc/app", "/dev"):
            word = place.busybox(config={"WorkingDir": folder}, more=[[("link", "link", "bin"), ("file", "file", "")]])
            done = place.exec(word, "/bin/ls", "-d", "/link/sh", "/file", "/proc/self/status")
            assert done.returncode == 0, (folder, done)


@tap.case
def owners_set_id_bits_devices_and_rights_are_dropped_and_counted():
    with Place() as place:
        counts, tree = one(place, [
            ("su", "file", "x", {"mode": 0o6755}), ("mine", "file", "x", {"uid": 1000, "gid": 1000}),
            ("dev/null", "char", "", {"devmajor": 1, "devminor": 3}), ("dev/hidden", "char", ""), ("dev/sda", "block", ""),
            ("cap", "file", "x", {"pax_headers": {"SCHILY.xattr.security.capability": "v",
                                                  "SCHILY.xattr.user.note": "kept",
                                                  "SCHILY.xattr.user.overlay.redirect": "/etc",
                                                  "SCHILY.xattr.user.overlay.metacopy": ""}})])
        assert stat.S_IMODE(os.stat(os.path.join(tree, "su")).st_mode) == 0o755
        assert os.listdir(os.path.join(tree, "dev")) == []
        assert os.stat(os.path.join(tree, "mine")).st_uid == os.getuid()
        assert os.listxattr(os.path.join(tree, "cap")) == ["user.note"], os.listxattr(os.path.join(tree, "cap"))
        assert [counts[name] for name in ("set_id", "owners", "devices", "attributes")] == [1, 1, 3, 3], counts
        done = place.run("pull", "oci:layout:v1")
        assert "3 devices, which were left out" in done.stdout, done.stdout


@tap.case
def no_name_and_no_link_leads_out_of_the_folder():
    with Place() as place:
        victim = os.path.join(place.path, "victim")
        with open(victim, "w", encoding="ascii") as file:
            file.write("whole")
        up = "../" * 12
        counts, tree = one(place, [
            (up + "one", "file", "1"), ("/two", "file", "2"), ("a/../../../three", "file", "3"), ("a", "dir", ""),
            ("out", "link", place.path), ("out/victim", "file", "broken"), ("up", "link", up), ("up/victim", "file", "broken"),
            ("here", "link", "."), ("here/../here/four", "file", "4"), ("deep/in", "link", "../../../a"), ("deep/in/five", "file", "5"),
            ("victim2", "link", victim), ("victim2", "file", "new"), ("again", "hard", up + "one"),
            ("self", "link", "self/x"), ("root", "link", "/"), ("root/six", "file", "6")])
        assert read(victim) == "whole"
        assert os.listdir(place.path).count("one") == 0
        assert read(tree, "one") == "1" and read(tree, "two") == "2" and read(tree, "three") == "3"
        assert read(tree, "four") == "4" and read(tree, "a/five") == "5" and read(tree, "six") == "6"
        assert read(tree, "victim2") == "new" and read(tree, "victim") == "broken"
        assert read(tree, place.path.lstrip("/"), "victim") == "broken"
        assert os.stat(os.path.join(tree, "one")).st_nlink == 2
        assert counts["outside"] > 12, counts
    for entries, said in (([("l", "link", "l/x"), ("l/y", "file", "")], "too many links"),
                          ([(".wh..", "file", "")], "removes no name"), ([(".wh...", "file", "")], "removes no name"),
                          ([("d/f", "file", ""), ("d", "file", "")], "is a folder with files already"),
                          ([("f", "file", ""), ("f/g", "file", "")], "Not a directory"),
                          ([("x" * 300, "file", "")], "File name too long"),
                          (([("d", "dir", ""), ("h", "hard", "d")]), "hard link to no file"),
                          ([("/".join("d" * 200), "dir", "")], "too many folders")):
        with Place() as place:
            place.layout.image("v1", [tar(entries)])
            place.refused(said)


@tap.case
def a_hard_link_to_a_file_of_a_lower_layer_becomes_a_link():
    with Place() as place:
        place.layout.image("v1", [tar([("usr/lib/a", "file", "a")]), tar([("b", "hard", "usr/lib/a")])])
        counts = place.pull()["counts"]
        assert os.readlink(os.path.join(place.trees()[1], "b")) == "/usr/lib/a" and counts["across"] == 1, counts


@tap.case
def every_packing_and_form_of_tar_is_read():
    holes = tarfile.PAX_FORMAT, tarfile.GNU_FORMAT
    for how in PACKED:
        if how == "+zstd" and not shutil.which("zstd"):
            continue
        for form in holes:
            with Place() as place:
                name = "d" * 90 + "/" + "f" * 120
                place.layout.image("v1", [tar([(name, "file", "x" * 100000), ("l", "link", name)], form)], how)
                place.pull()
                assert read(place.trees()[0], name) == "x" * 100000, how
    with Place() as place:
        path = os.path.join(place.path, "sparse")
        with open(path, "wb") as file:
            file.seek(50 << 20)
            file.write(b"end")
        packed = subprocess.run(["tar", "-C", place.path, "--sparse", "-c", "sparse"], stdout=subprocess.PIPE, check=True)
        place.layout.image("v1", [packed.stdout])
        place.pull()
        st = os.stat(os.path.join(place.trees()[0], "sparse"))
        assert st.st_size == (50 << 20) + 3 and st.st_blocks * 512 < 1 << 20, st


@tap.case
def bytes_that_are_not_those_of_the_digests_are_refused():
    layer = tar([("a", "file", os.urandom(200000))])
    with Place() as place:
        place.layout.image("v1", [layer], diffs=[digest(b"other")])
        place.refused("its decompressed bytes are not those that the image names")
    for spoil, said in ((lambda data: data[:len(data) // 2], ""), (lambda data: data + b"more", "not those of its digest"),
                        (lambda data: data[:500] + bytes([data[500] ^ 1]) + data[501:], ""),
                        (lambda data: b"", ""), (lambda data: b"no archive at all" * 100, "")):
        with Place() as place:
            place.layout.image("v1", [layer])
            blob = max((place.layout.blob_path(digest(PACKED["+gzip"](layer))),))
            with open(blob, "rb") as file:
                data = file.read()
            with open(blob, "wb") as file:
                file.write(spoil(data))
            place.refused(f"the layer {digest(data)}: ", said)
            assert place.kept("layers") == []
    with Place() as place:
        # A tar that ends within a file, whose digests are right.
        cut = layer[:100000]
        place.layout.image("v1", [cut])
        place.refused("Truncated")


@tap.case
def what_grows_too_much_is_refused():
    with Place() as place:
        place.layout.image("v1", [tar([("zeros", "file", bytes(200 << 20))])])
        place.refused("grows to more than 200 times its size")
    with Place() as place:
        huge = bytearray(tar([("hole", "file", "")]))
        size = 70 << 30
        # The size as GNU tar writes a large one: in base 256.
        huge[124:136] = b"\x80" + size.to_bytes(11, "big")
        huge[148:156] = b" " * 8
        huge[148:156] = b"%06o\0 " % sum(huge[:512])
        place.layout.image("v1", [bytes(huge)])
        place.refused("makes the files of the archive too large")


@tap.case
def an_image_has_at_most_128_layers():
    with Place() as place:
        layers = [tar([(f"f{number}", "file", str(number))]) for number in range(LAYERS_MOST)]
        place.layout.image("v1", layers, "")
        pulled = place.pull()
        trees = place.trees()
        assert pulled["layers"] == pulled["layers_new"] == len(trees) == LAYERS_MOST, pulled
        assert [read(tree, f"f{number}") for number, tree in enumerate(trees)] == [str(n) for n in range(LAYERS_MOST)]
        place.layout.image("v2", layers + [tar([("x", "file", "")]), tar([("y", "file", "")])], "")
        place.refused("layers: ", tag="v2")


@tap.case
def a_cell_stands_on_128_layers_and_on_no_more():
    with Place() as place:
        more = [[(f"f{number}", "file", str(number))] for number in range(LAYERS_MOST - 1)]
        word = place.busybox(more=more, packing="")
        done = place.exec(word, "sh", "-c", f"cat /f0 /f{LAYERS_MOST - 2}; ls -d /f* | busybox wc -l; echo x > /f1; cat /f1")
        assert done.stdout == f"0{LAYERS_MOST - 2}{LAYERS_MOST - 1}\nx\n", done
        # A snapshot of such a cell would be one more, and an image with 130 is not let in.
        engine = [("hello", {"version": 1}), ("cell/open", {"base": word, "policy": {"write": ["."]}}), ("cell/snapshot", {"cell": "c1", "name": "s"})]
        lines = "".join(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
                        for number, (method, params) in enumerate(engine))
        with subprocess.Popen([PROGRAM, "serve"], cwd=place.path, env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            process.stdin.write("".join(lines.splitlines(True)[:2]))
            process.stdin.flush()
            process.stdout.readline()
            process.stdout.readline()
            process.stdin.write(lines.splitlines(True)[2])
            process.stdin.flush()
            assert "result" in json.loads(process.stdout.readline())
            process.stdin.close()
            process.wait(END_S)
        done = place.exec("snapshot:s", "true")
        assert done.returncode == 125 and f"it has {LAYERS_MOST + 1} layers; 1 to {LAYERS_MOST} are laid over each other" in done.stderr, done
        place.layout.image("v2", [tar([(f"f{number}", "file", str(number))]) for number in range(130)], "")
        assert "layers: " in place.refused(tag="v2")


@tap.case
def the_entrypoint_of_an_image_runs_when_it_is_wanted():
    with Place() as place:
        word = place.busybox(config={"Entrypoint": ["/bin/echo", "entry"], "Cmd": ["its", "own"], "User": "app", "Env": ["A=1"]})
        report = os.path.join(place.path, "report")
        assert place.exec(word, "echo", "plain").stdout == "plain\n"
        assert place.exec(word, "a", "b", options=["--entrypoint"]).stdout == "entry a b\n"
        assert place.exec(word, options=["--entrypoint", "--json", report]).stdout == "entry its own\n"
        told = json.loads(read(report))["base"]
        assert told == {"word": word, "digest": place.show(word)["digest"], "user": "app"}, told
        bare = place.busybox("v2", config={})
        for base, part in ((bare, "names neither an entrypoint nor a command"), ("host", "--base image:NAME")):
            done = place.exec(base, options=["--entrypoint"])
            assert done.returncode == 2 and part in done.stderr and done.stderr.count("\n") == 1, done


@tap.case
def a_run_tells_its_base_to_the_record_and_to_the_model():
    with Place() as place:
        word = place.busybox(config={"User": "app"})
        with open(os.path.join(place.path, "replay.json"), "w", encoding="ascii") as file:
            json.dump({"name": "r", "turns": [{"text": "Done."}]}, file)
        os.mkdir(os.path.join(place.path, "project"))
        done = tap.run([PROGRAM, "run", "-C", "project", "--base", word, "--model", f"replay:{place.path}/replay.json", "--json", "Do."],
                       cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL)
        began = json.loads(done.stdout.splitlines()[0])
        assert began["event"] == "session_began" and began["base"] == {"word": word, "digest": place.show(word)["digest"], "user": "app"}, done


@tap.case
def the_settings_of_the_image_are_told():
    with Place() as place:
        name = place.layout.image("v1", [tar([("a", "file", "")])], config={
            "Env": ["PATH=/bin", "A=1", "A=2", "noname", "=x", "EMPTY="], "WorkingDir": "/srv/./x/..", "User": "1000:1000",
            "Entrypoint": ["/init", "--"], "Cmd": None, "Labels": {"x": "y"}})
        place.pull()
        shown = place.show("oci:layout:v1")
        assert shown["digest"] == name and shown["kind"] == "image"
        assert shown["environment"] == ["PATH=/bin", "A=2", "EMPTY="], shown
        assert (shown["workdir"], shown["user"], shown["entrypoint"], shown["command"]) == \
            ("/srv", "1000:1000", ["/init", "--"], []), shown
        assert "workdir     /srv\n" in place.run("show", "oci:layout:v1").stdout


@tap.case
def the_image_for_this_machine_is_chosen():
    with Place() as place:
        layout = place.layout
        ours = layout.image("ours", [tar([("ours", "file", "")])])
        layout.image("theirs", [tar([("theirs", "file", "")])],
                     change=lambda manifest, settings: settings.update(architecture="vax"))
        items = [dict(item) for item in layout.items]
        for item, machine in zip(items, ("amd64" if os.uname().machine == "x86_64" else "arm64", "vax")):
            del item["annotations"]
            item["platform"] = {"os": "linux", "architecture": machine}
        index = json.dumps({"schemaVersion": 2, "manifests": items[::-1]}).encode()
        item = layout.blob(index, "application/vnd.oci.image.index.v1+json")
        item["annotations"] = {"org.opencontainers.image.ref.name": "v1"}
        only = layout.blob(json.dumps({"schemaVersion": 2, "manifests": items[1:]}).encode(), item["mediaType"])
        only["annotations"] = {"org.opencontainers.image.ref.name": "v2"}
        layout.items = [item, only]
        layout.write_index()
        assert place.pull()["digest"] == ours
        place.refused("there is no image for linux/", tag="v2")
        place.refused("there is no image v3 for linux/", tag="v3")
        assert "holds 2 images: name one" in place.run("pull", "oci:layout").stderr
        # An image that is in no list says in its configuration what it is for.
        layout.image("v4", [tar([("theirs", "file", "")])],
                     change=lambda manifest, settings: settings.update(architecture="vax"))
        said = place.refused(f"the image is for linux/vax, and this machine is linux/{ARCHITECTURE}",
                             f"name an image for linux/{ARCHITECTURE}", "glovebox base build", tag="v4")
        assert said.startswith("glovebox: base oci:layout:v4: "), said
        layout.image("v5", [tar([("any", "file", "")])], change=lambda manifest, settings: settings.pop("architecture"))
        place.pull("v5")


@tap.case
def documents_that_are_wrong_are_refused():
    def other_layer(manifest, _settings):
        manifest["layers"][0]["mediaType"] = "application/x-squashfs"

    def bad_digest(manifest, _settings):
        manifest["layers"][0]["digest"] = "sha256:../../../etc/passwd"

    def windows(_manifest, settings):
        settings["os"] = "windows"

    def none(manifest, settings):
        manifest["layers"], settings["rootfs"]["diff_ids"] = [], []

    def fewer(_manifest, settings):
        settings["rootfs"]["diff_ids"] = []

    for change, said in ((other_layer, "application/x-squashfs"), (bad_digest, "is no digest"), (windows, "not for Linux"),
                         (none, "has no layers"), (fewer, "has 1 layers and 0 digests")):
        with Place() as place:
            place.layout.image("v1", [tar([("a", "file", "")])], change=change)
            place.refused(said)
    for text in ("", "{", "[]", '{"manifests": 5}', '{"manifests": [{}]}'):
        with Place() as place:
            with open(os.path.join(place.layout.path, "index.json"), "w", encoding="ascii") as file:
                file.write(text)
            place.refused("index.json")
    with Place() as place:
        os.mkfifo(os.path.join(place.layout.path, "index.json"))
        place.refused("is no OCI layout")
    with Place() as place:
        place.layout.image("v1", [tar([("a", "file", "")])])
        blob = place.layout.blob_path(place.layout.items[0]["digest"])
        os.rename(blob, blob + ".there")
        os.symlink(blob + ".there", blob)
        place.refused("blobs/sha256/")


@tap.case
def words_that_are_no_base_are_refused():
    with Place() as place:
        for word, said in (("python", "it is no base"), ("image:", "names no image"), ("image:a b", "letters, digits"),
                           ("image:-x", "names no image"), ("image:a@sha256:12", "a digest is"), ("rootfs:", "names no folder"),
                           ("oci:", "names no folder"), ("image:/a", "names no image")):
            done = place.run("show", word)
            assert done.returncode == 2 and said in done.stderr, (word, done)
        for word in ("image:python", "image:python:3.12", "image:ghcr.io/a/b@sha256:" + "0" * 64):
            done = place.run("show", word)
            assert (done.returncode, done.stderr) == \
                (1, f"glovebox: base {word} is not in the cache; run glovebox base pull {word}\n"), done
        assert place.run("pull", "rootfs:layout").returncode == 2
        assert "ENOENT" not in place.run("show", "rootfs:nowhere").stderr


@tap.case
def each_verb_says_in_its_own_way_that_there_is_no_cell():
    with Place() as place:
        place.layout.image("vax", [tar([("theirs", "file", "")])],
                           change=lambda manifest, settings: settings.update(architecture="vax"))
        place.environment.update(GLOVEBOX_BASE_URL="http://127.0.0.1:1/v1", XDG_RUNTIME_DIR=os.path.join(place.path, "runtime"))
        os.mkdir(place.environment["XDG_RUNTIME_DIR"], 0o700)
        os.mkdir(os.path.join(place.path, "project"))
        on = ("-C", "project", "--base")
        for word in ("image:nope", "nope", "rootfs:nope", "snapshot:nope", "devcontainer", "oci:layout:vax", "rootfs:/proc"):
            for words, code in ((("exec", *on, word, "--", "true"), 125), (("exec", *on, word, "--entrypoint", "--", "true"), 125),
                                (("exec", *on, word, "--explain", "--", "true"), 125), (("start", *on, word), 125),
                                (("run", "--model", "m", *on, word, "hello"), 5),
                                (("tool", "call", *on, word, "bash", '{"command": "true"}'), 5)):
                done = tap.run([PROGRAM, *words], stdin=subprocess.DEVNULL, env=place.environment, cwd=place.path)
                assert done.returncode == code and done.stdout == "", (words, done)
                assert f"base {word}" in done.stderr and done.stderr.count("\n") == 1, (words, done)


@tap.case
def a_folder_is_a_base_as_it_is():
    with Place() as place:
        os.symlink("layout", os.path.join(place.path, "link"))
        shown = place.show("rootfs:link")
        assert shown["folders"] == [os.path.realpath(place.layout.path)] and shown["workdir"] == "/", shown
        assert "no folder" in place.run("show", "rootfs:layout/oci-layout").stderr
        assert "--base host" in place.run("show", "rootfs:/").stderr
        assert place.show("host")["folders"] == []


def needs(program):
    if not shutil.which(program):
        raise tap.Skip(f"{program} is not installed")


@tap.case
def skopeo_brings_images_from_local_places():
    needs("skopeo")
    with Place() as place:
        shared = tar([("shared", "file", os.urandom(5000))])
        name = place.layout.image("v1", [shared, tar([("one", "file", "1")])])
        place.layout.image("v2", [shared, tar([("two", "file", "2")])])
        done = place.run("pull", "image:tools:1", "--from", "oci:layout:v1", "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["digest"] == name, done
        assert json.loads(done.stdout)["layers_new"] == 2
        subprocess.run(["skopeo", "copy", "-q", "oci:layout:v2", "dir:dir"], cwd=place.path, check=True)
        done = place.run("pull", "image:example.org/tools/two", "--from", "dir:dir", "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["layers_new"] == 1, done
        for word in ("image:tools:1", "image:library/tools:1", "image:docker.io/library/tools:1"):
            assert read(place.show(word)["folders"][1], "one") == "1"
        assert read(place.show("image:example.org/tools/two:latest")["folders"][1], "two") == "2"
        listed = json.loads(place.run("list", "--json").stdout)
        assert sorted(row["base"] for row in listed) == \
            ["image:docker.io/library/tools:1", "image:example.org/tools/two:latest"], listed
        # The cache is an OCI layout that others can read.
        subprocess.run(["skopeo", "inspect", f"oci:{place.store}:docker.io/library/tools:1"], check=True,
                       stdout=subprocess.DEVNULL)
        assert place.kept("pulls") == [] and "Copying blob" in place.run(
            "pull", "image:tools:1", "--from", "oci:layout:v1").stderr
        # A name goes over to another image.
        place.run("pull", "image:tools:1", "--from", "oci:layout:v2")
        assert read(place.show("image:tools:1")["folders"][1], "two") == "2"


@tap.case
def a_damaged_blob_of_the_cache_is_fetched_again():
    needs("skopeo")
    # Other bytes of a large blob are found only when it is unpacked.
    for damage, size, found in (("cut", 20000, True), ("other", 20000, True), ("cut", 6 << 20, True), ("other", 6 << 20, False)):
        with Place() as place:
            place.layout.image("v1", [tar([("a", "file", os.urandom(size))])])
            pull = ("pull", "image:a", "--from", "oci:layout:v1")
            assert place.run(*pull).returncode == 0
            [layer] = place.kept("layers")
            shutil.rmtree(os.path.join(place.store, "layers", layer))
            blob = max((os.path.join(place.store, "blobs", "sha256", name) for name in place.kept("blobs/sha256")),
                       key=os.path.getsize)
            with open(blob, "r+b") as file:
                if damage == "cut":
                    file.truncate(9000)
                else:
                    file.seek(9000)
                    file.write(b"other bytes")
            done = place.run(*pull)
            if not found:
                assert done.returncode == 1 and "pull again" in done.stderr and not os.path.exists(blob), (damage, done)
            assert found == (done.returncode == 0) and ("torn blobs" in done.stderr) == found, (damage, done)
            assert place.run(*pull).returncode == 0 and place.kept("layers") == [layer], damage


@tap.case
def a_damaged_document_of_the_cache_says_how_to_mend_it():
    needs("skopeo")
    with Place() as place:
        place.layout.image("v1", [tar([("a", "file", os.urandom(20000))])])
        pull = ("pull", "image:a", "--from", "oci:layout:v1")
        assert place.run(*pull).returncode == 0
        blobs = sorted((os.path.join(place.store, "blobs", "sha256", name) for name in place.kept("blobs/sha256")),
                       key=os.path.getsize)
        for blob in blobs[:2]:  # the configuration and the manifest
            os.truncate(blob, 10)
            done = place.run("show", "image:a")
            assert done.returncode == 1 and done.stderr.endswith("; fetch it again: glovebox base pull image:a\n"), done
            assert place.run(*pull).returncode == 0 and place.run("show", "image:a").returncode == 0, blob


def fake(place, name, script):
    """A program NAME in front of PATH."""
    folder = os.path.join(place.path, "bin")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + script)
    os.chmod(os.path.join(folder, name), 0o755)
    return {**place.environment, "PATH": folder + ":" + os.environ["PATH"]}


@tap.case
def a_fetch_that_fails_or_hangs_is_told():
    with Place() as place:
        done = place.run("pull", "image:a", env={**place.environment, "PATH": "/nowhere"})
        assert (done.returncode, done.stderr) == (1, "glovebox: base image:a: needs skopeo: apt install skopeo\n"), done
        env = fake(place, "skopeo", "echo 'time=\"x\" level=fatal msg=\"registry says no\"' >&2\nexit 1\n")
        done = place.run("pull", "image:a", env=env)
        assert done.returncode == 1 and done.stderr.endswith("base image:a: skopeo: registry says no\n"), done
        assert done.stderr.count("registry says no") == 1, done
        env = fake(place, "skopeo", "exec sleep 1000\n")
        done = place.run("pull", "image:a", "--timeout", "0.2", env=env)
        assert done.returncode == 124 and "did not end within 0.2 seconds" in done.stderr, done
        assert place.kept("pulls") == []


@tap.case
def an_image_is_built_by_buildah():
    needs("skopeo")
    with Place() as place:
        os.mkdir(os.path.join(place.path, "src"))
        done = place.run("build", "src", env={**place.environment, "PATH": "/nowhere"})
        assert (done.returncode, done.stderr) == (1, "glovebox: base build: needs buildah: apt install buildah\n"), done
        place.layout.image("image", [tar([("built", "file", "b")])])
        env = fake(place, "buildah", f"""echo "$@" >> {place.path}/words
{PROGRAM} base prune --keep 0 >> {place.path}/pruned 2>&1
case $1 in push) mkdir -p "$(dirname "${{3#oci:}}")"; cp -r {place.layout.path}/. "$(echo "$3" | sed 's/^oci://; s/:image$//')";; esac
""")
        done = place.run("build", "src", "--name", "own:1", "--file", "src/D", "--json", "--", "--build-arg=A=1", env=env)
        assert done.returncode == 0 and json.loads(done.stdout)["base"] == "image:own:1", done
        first, second = read(place.path, "words").splitlines()
        assert first == "bud --isolation chroot --tag docker.io/library/own:1 --file src/D --build-arg=A=1 src", first
        assert second.startswith("push docker.io/library/own:1 oci:"), second
        assert read(place.show("image:own:1")["folders"][0], "built") == "b" and place.kept("pulls") == []
        # Nobody prunes the folder in which the image arrives.
        assert read(place.path, "pruned").count("something is being added") == 2, read(place.path, "pruned")


def big_image(place, layers=3):
    made = [tar([(f"d{number}/f{at}", "file", os.urandom(3000)) for at in range(400)]) for number in range(layers)]
    place.layout.image("v1", made, "")
    return layers


@tap.case
def two_pulls_share_the_work():
    with Place() as place:
        count = big_image(place)
        both = [subprocess.Popen([PROGRAM, "base", "pull", "oci:layout:v1", "--json"], cwd=place.path,
                                 env=place.environment, stdout=subprocess.PIPE) for _ in range(2)]
        made = [json.loads(process.communicate(timeout=300)[0]) for process in both]
        assert sum(one["layers_new"] for one in made) == count, made
        assert len(place.kept("layers")) == count


def unpackers():
    """The processes of ours that unpack."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if read("/proc", pid, "comm") == "glovebox-unpack\n":
                found.append(int(pid))
        except OSError:
            pass
    return found


@tap.case
def a_pull_that_is_killed_leaves_old_or_new():
    with Place() as place:
        count = big_image(place)
        before = set(unpackers())
        maker = random.Random(7)
        for _ in range(12):
            process = subprocess.Popen([PROGRAM, "base", "pull", "oci:layout:v1"], cwd=place.path,
                                       env=place.environment, stdout=subprocess.DEVNULL)
            try:
                process.wait(maker.uniform(0.0, 0.25))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            process.wait()
            for layer in place.kept("layers"):
                tree = os.path.join(place.store, "layers", layer, "tree")
                if layer.startswith("."):
                    continue
                [folder] = os.listdir(tree)
                assert len(os.listdir(os.path.join(tree, folder))) == 400
        end = time.monotonic() + END_S
        while set(unpackers()) - before and time.monotonic() < end:
            time.sleep(0.01)
        assert not set(unpackers()) - before
        place.pull()
        assert len(place.kept("layers")) == count and len(place.trees()) == count, place.kept("layers")


@tap.case
def images_that_were_used_longest_ago_go_first():
    needs("skopeo")
    with Place() as place:
        shared = tar([("s", "file", os.urandom(300000))])
        for tag in ("v1", "v2", "v3"):
            place.layout.image(tag, [shared, tar([(tag, "file", os.urandom(500000))])])
            place.run("pull", f"image:{tag}", "--from", f"oci:layout:{tag}")
        records = {json.loads(read(place.store, "used", name))["word"]: os.path.join(place.store, "used", name)
                   for name in place.kept("used")}
        for age, tag in enumerate(("v2", "v1", "v3")):
            os.utime(records[f"image:docker.io/library/{tag}:latest"], (MTIME + age, MTIME + age))
        os.mkdir(os.path.join(place.store, "layers", f".{'0' * 64}.0123456789ab"))
        done = place.run("prune", "--keep", "1500K", "--dry-run")
        assert done.stdout.startswith("would remove image:docker.io/library/v2:latest"), done
        assert len(place.kept("layers")) == 5
        with open(records["image:docker.io/library/v1:latest"], encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            done = place.run("prune", "--keep", "0", "--json")
            told = json.loads(done.stdout)
            assert told["in_use"] == 1 and told["leftovers"] == 1 and told["layers"] == 2, told
            assert sorted(told["images"]) == ["image:docker.io/library/v2:latest", "image:docker.io/library/v3:latest"]
            assert len(place.show("image:v1")["folders"]) == 2
        assert "is not in the cache" in place.run("show", "image:v2").stderr
        assert place.run("prune", "--keep", "0").returncode == 0
        assert place.kept("layers") == place.kept("used") == place.kept("blobs/sha256") == []
        with open(os.path.join(place.store, "locks", "store"), encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            assert "something is being added" in place.run("prune").stderr


@tap.case
def a_pull_of_an_image_in_use_does_not_free_it():
    with Place() as place:
        with open(shutil.which("busybox"), "rb") as file:
            busybox = file.read()
        place.layout.image("v1", [tar([("bin/busybox", "file", busybox, {"mode": 0o755}), ("a", "file", "a")])])
        place.pull()
        os.mkdir(os.path.join(place.path, "project"))
        with subprocess.Popen([PROGRAM, "exec", "-C", "project", "--base", f"oci:{place.layout.path}:v1", "--", "/bin/busybox",
                               "cat"], cwd=place.path, env=place.environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as cell:
            cell.stdin.write(b"ready\n")
            cell.stdin.flush()
            line = cell.stdout.readline()
            assert line == b"ready\n", (line, cell.stdout.read())
            for _ in range(2):
                place.pull()
                told = json.loads(place.run("prune", "--keep", "0", "--json").stdout)
                assert told["in_use"] == 1 and told["images"] == [] and told["layers"] == 0, told
            assert read(place.trees()[0], "a") == "a"
            cell.stdin.close()
            assert cell.wait(END_S) == 0
        told = json.loads(place.run("prune", "--keep", "0", "--json").stdout)
        assert told["in_use"] == 0 and told["layers"] == 1 and place.kept("locks") == ["store"], (told, place.kept("locks"))


@tap.case
def an_image_that_lies_in_a_layout_too_keeps_its_blobs():
    needs("skopeo")
    with Place() as place:
        place.layout.image("v1", [tar([("a", "file", "a")])])
        assert place.run("pull", "image:a", "--from", "oci:layout:v1").returncode == 0
        place.pull()
        told = json.loads(place.run("prune", "--json").stdout)
        assert told["blobs"] == 0 and len(place.kept("blobs/sha256")) == 3, told
        assert read(place.show("image:a")["folders"][0], "a") == read(place.trees()[0], "a") == "a"


@tap.case
def a_torn_blob_is_told_and_removed_and_a_pull_mends_it():
    needs("skopeo")
    with Place() as place:
        small, large = tar([("small", "file", "s")]), tar([("large", "file", os.urandom(6 << 20))])
        place.layout.image("v1", [small, large], "")
        word = "image:docker.io/library/a:latest"

        def pull():
            done = place.run("pull", "image:a", "--from", "oci:layout:v1")
            assert done.returncode == 0, done

        def torn(*options):
            [row] = json.loads(place.run("list", "--json", *options).stdout)
            return row.get("torn", [])
        pull()
        # skopeo may have packed the layers.
        blobs = [os.path.join(place.store, "blobs/sha256", name) for name in place.kept("blobs/sha256")]
        [big] = [path for path in blobs if os.path.getsize(path) > 4 << 20]
        [layer] = [path for path in blobs if path != big and b"{" not in open(path, "rb").read(1)]
        assert torn("--deep") == []
        for path, how, options in ((layer, "cut", []), (layer, "bytes", ["--deep"]), (big, "cut", []), (big, "bytes", ["--deep"]),
                                   *[(path, "cut", []) for path in blobs if path not in (big, layer)],
                                   *[(path, "bytes", ["--deep"]) for path in blobs if path not in (big, layer)]):
            with open(path, "r+b") as file:
                if how == "cut":
                    file.truncate(os.path.getsize(path) - 1)
                else:
                    byte = file.read(11)[-1]
                    file.seek(10)
                    file.write(bytes([byte ^ 1]))
            name = "sha256:" + os.path.basename(path)
            assert torn(*options) == [name], (path, how, torn(*options))
            if options:
                assert torn() == []
            assert f"torn: {name[:19]} " in place.run("list", *options).stdout
            told = json.loads(place.run("prune", "--json", "--dry-run", *options).stdout)
            assert told["torn"] == 1 and os.path.exists(path), told
            if path == layer:
                # A pull finds it by itself.
                pull()
            else:
                told = json.loads(place.run("prune", "--json", *options).stdout)
                assert told["torn"] == 1 and told["images"] == [] and told["layers"] == 0 and not os.path.exists(path), told
                pull()
            assert torn("--deep") == [] and len(place.show(word)["folders"]) == 2


@tap.case
def a_list_and_a_pull_read_no_blobs_of_other_images():
    needs("skopeo")
    with Place() as place:
        for name in ("a", "b"):
            place.layout.image(name, [tar([(name, "file", os.urandom(20000))])])
            assert place.run("pull", f"image:{name}", "--from", f"oci:layout:{name}").returncode == 0
        [record] = [json.loads(read(place.store, "used", name)) for name in place.kept("used") if '/b:' in read(place.store, "used", name)]
        layer = os.path.join(place.store, "blobs/sha256", record["blobs"][2].split(":")[1])
        with open(layer, "r+b") as file:
            file.seek(100)
            file.write(b"other bytes")
        assert [row for row in json.loads(place.run("list", "--json").stdout) if "torn" in row] == []
        done = place.run("pull", "image:a", "--from", "oci:layout:a")
        assert done.returncode == 0 and "torn" not in done.stderr and os.path.exists(layer), done
        done = place.run("pull", "image:b", "--from", "oci:layout:b")
        assert done.returncode == 0 and "torn blobs" in done.stderr, done
        assert [row for row in json.loads(place.run("list", "--deep", "--json").stdout) if "torn" in row] == []


@tap.case
def no_layer_goes_when_images_are_too_many():
    with Place() as place:
        one(place, [("a", "file", "a")])
        [layer] = place.kept("layers")
        [name] = place.kept("used")
        record = json.loads(read(place.store, "used", name))
        record["layers"] = []
        for number in range(IMAGES_MOST):
            record["digest"] = f"sha256:{number:064x}"
            with open(os.path.join(place.store, "used", f"{number:064x}.json"), "w", encoding="ascii") as file:
                json.dump(record, file)
        os.mkdir(os.path.join(place.store, "layers", "f" * 64))
        done = place.run("prune")
        assert done.returncode == 1 and f"more than {IMAGES_MOST} images" in done.stderr, done
        assert place.kept("layers") == sorted([layer, "f" * 64]), place.kept("layers")
        os.remove(os.path.join(place.store, "used", f"{0:064x}.json"))
        told = json.loads(place.run("prune", "--json").stdout)
        assert told["layers"] == 1 and place.kept("layers") == [layer], told


@tap.case
def prune_leaves_files_that_are_not_of_the_cache():
    with Place() as place:
        one(place, [("a", "file", "a")])
        hexes = "0" * 64
        mine = ["layers/keep/notes", "layers/.hidden", "layers/..gone-x", f"layers/.{hexes}", "blobs/sha256/keep.txt",
                f"blobs/sha256/.{hexes}.1", "pulls/keep", "pulls/.build/x", f"pulls/{hexes}", "locks/keep"]
        left = [f"layers/.{hexes}.0123456789ab/tree/f", f"layers/.gone-{hexes}/tree/f", f"blobs/sha256/.gone-{hexes}",
                f"pulls/.pull-{hexes}.0123456789ab/f", "pulls/.build.0123456789ab/f"]
        for name in mine + left:
            os.makedirs(os.path.dirname(os.path.join(place.store, name)), exist_ok=True)
            with open(os.path.join(place.store, name), "w", encoding="ascii") as file:
                file.write("x")
        told = json.loads(place.run("prune", "--keep", "0", "--json").stdout)
        assert told["leftovers"] == len(left) and told["layers"] == 1, told
        for name in mine:
            assert read(place.store, name) == "x", name
        for name in left:
            assert not os.path.exists(os.path.join(place.store, name)), name
        # A folder that is a link leads elsewhere, where any name may be somebody's.
        for folder in ("layers", "pulls", "blobs", "locks"):
            os.rename(os.path.join(place.store, folder), os.path.join(place.path, folder))
            os.symlink(os.path.join(place.path, folder), os.path.join(place.store, folder))
        theirs = [f"layers/{hexes}/f", f"blobs/sha256/{hexes}", "pulls/.build.0123456789ab/f", f"locks/layer-{hexes}"]
        for name in theirs:
            os.makedirs(os.path.dirname(os.path.join(place.path, name)), exist_ok=True)
            with open(os.path.join(place.path, name), "w", encoding="ascii") as file:
                file.write("x")
        done = place.run("prune", "--keep", "0")
        for name in theirs:
            assert read(place.path, name) == "x", (name, done)


@tap.case
def snapshots_are_listed_and_removed_by_name():
    with Place() as place:
        data = os.path.join(place.path, "data")
        place.environment["XDG_DATA_HOME"] = data
        assert json.loads(place.run("list", "--json").stdout) == []
        # One without its description is damaged; it is listed and can be removed.
        os.makedirs(os.path.join(data, "glovebox", "snapshots", "left", "tree"))
        [row] = json.loads(place.run("list", "--json").stdout)
        assert row["base"] == "snapshot:left" and row["damaged"] and not row["used"], row
        assert "snapshot:left" in place.run("list").stdout and "damaged" in place.run("list").stdout
        assert place.run("prune", "--snapshot", "left", "--keep", "0").returncode == 2
        assert place.run("prune", "--keep", "0").returncode == 0
        assert place.run("prune", "--snapshot", "other").returncode == 1
        done = place.run("prune", "--snapshot", "snapshot:left")
        assert (done.returncode, done.stdout) == (0, "removed snapshot:left\n"), done
        assert json.loads(place.run("list", "--json").stdout) == []


@tap.case
def the_doctor_says_what_is_missing():
    with Place() as place:
        done = place.run("doctor", "--json", env={**place.environment, "PATH": "/nowhere"})
        rows = {row["name"]: row for row in json.loads(done.stdout)}
        assert done.returncode == 1 and "apt install skopeo" in rows["skopeo"]["text"], done
        assert rows["libarchive"]["good"] and set(rows) == {"overlay", "space", "libarchive", "skopeo", "buildah"}
        assert [name for name in os.listdir(place.store) if name.startswith(".")] == []


DEVCONTAINER = """// Made by a person.
{
    "name": "trial", /* for editors */
    "image": "%s",
    "containerEnv": {"ONE": "1", "PATH": "${containerEnv:PATH}:/more"},
    "remoteEnv": {"TWO": "${containerEnv:ONE}2", "WHERE": "${containerWorkspaceFolder}", "NONE": null},
    "onCreateCommand": "echo created > /created",
    "updateContentCommand": ["sh", "-c", "echo $TWO > /two; echo count >> counted"],
    "postCreateCommand": {"a": "echo a > /a", "b": ["sh", "-c", "echo says b; echo b > /b"]},
    "forwardPorts": [3000],
    "remoteUser": "vscode",
    "customizations": {"vscode": {"extensions": [],}},
}
"""


class Project(Place):
    """A place with a devcontainer in its project."""

    def __init__(self):
        super().__init__()
        needs("skopeo")
        self.environment["XDG_DATA_HOME"] = os.path.join(self.path, "data")
        self.busybox(config={"Env": ["PATH=/bin", "ONE=0"], "User": "app"})
        assert self.run("pull", "image:trial:1", "--from", "oci:layout:v1").returncode == 0
        self.project = os.path.join(self.path, "project")
        os.makedirs(os.path.join(self.project, ".devcontainer"))
        self.write(DEVCONTAINER % "trial:1")

    def write(self, text, name=".devcontainer/devcontainer.json"):
        with open(os.path.join(self.project, name), "w", encoding="utf-8") as file:
            file.write(text)


@tap.case
def the_commands_of_a_devcontainer_run_once_in_the_cell():
    with Project() as place:
        looks = "cat /created /two /a /b; echo $ONE $TWO $WHERE $PATH; echo ${NONE-none}"
        seen = f"created\n12\na\nb\n1 12 {place.project} /run/glovebox/root:/bin:/more:/run/glovebox/bin\nnone\n"
        done = place.exec("devcontainer", "sh", "-c", looks)
        assert done.stdout == seen and "postCreateCommand runs in the cell" in done.stderr and "says b" in done.stderr, done
        assert "--publish 3000" in done.stderr, done
        done = place.exec("devcontainer", "sh", "-c", looks)
        assert (done.stdout, done.stderr) == (seen, ""), done
        assert read(place.project, "counted") == "count\n"
        [row] = [row for row in json.loads(place.run("list", "--json").stdout) if row["base"].startswith("snapshot:")]
        assert row["over"] == "image:trial:1" and row["base"].startswith("snapshot:devcontainer-"), row
        shown = json.loads(place.run("show", "devcontainer", "--json", cwd=place.project).stdout)
        assert (shown["kind"], shown["over"], shown["user"], len(shown["folders"])) == ("devcontainer", "image:trial:1", "vscode", 2), shown
        # Another content of the file or of a file of locks is another base; a layer finds what was prepared.
        place.write("{}", "package-lock.json")
        done = place.exec("devcontainer", "true", options=["--explain"])
        assert done.returncode == 0 and read(place.project, "counted") == "count\n", done
        policy = os.path.join(place.path, "policy.json")
        with open(policy, "w", encoding="ascii") as file:
            json.dump({"read": ["."]}, file)
        done = place.exec("devcontainer", "true", options=["--policy", policy])
        assert done.returncode == 125 and f"glovebox exec -C {place.project} --base devcontainer -- true" in done.stderr, done
        # Nor in a layer; the line helps also where the entry of the agent wants that layer.
        config, spaced = os.path.join(place.path, "config.json"), os.path.join(place.path, "a project")
        with open(config, "w", encoding="ascii") as file:
            json.dump({"agents": {"default": {"write": ["."], "review": True}}}, file)
        shutil.copytree(place.project, spaced)
        done = place.exec("devcontainer", "true", options=["-C", spaced, "--config", config])
        line = f"glovebox exec -C '{spaced}' --base devcontainer --no-review -- true"
        assert done.returncode == 125 and "a layer would take what they write" in done.stderr and line in done.stderr, done
        line = line.replace("glovebox exec", f"{shlex.quote(PROGRAM)} exec --config {shlex.quote(config)}")
        assert tap.run(["sh", "-c", line], env=place.environment, stdin=subprocess.DEVNULL).returncode == 0
        assert place.exec("devcontainer", "true", options=["-C", spaced, "--config", config]).returncode == 0
        # A person finds its ports and what its commands have come to.
        done = place.exec("devcontainer", "true", options=["--publish", "3001", "--explain"])
        assert "Ports that the devcontainer names (--publish PORT opens one)\n  3000\n" in done.stdout, done
        done = place.exec("devcontainer", "true", options=["--publish", "3000", "--explain", "--json"])
        assert json.loads(done.stdout)["forward_ports"] == [], done
        shown = place.run("show", "devcontainer", cwd=place.project)
        assert "ports       3000, which --publish 3000 opens\ncommands    have not been run" in shown.stdout, shown
        assert place.exec("devcontainer", "true").returncode == 0
        shown = json.loads(place.run("show", "devcontainer", "--json", cwd=place.project).stdout)
        assert shown["forward_ports"] == [3000] and shown["is_prepared"] is True, shown
        assert read(place.project, "counted") == "count\ncount\n"
        assert place.exec("devcontainer", "cat", "/b", options=["--policy", policy]).stdout == "b\n"
        # A file of another name, and one that fails.
        place.write('{"image": "trial:1", "postCreateCommand": "echo bad luck >&2; exit 3"}', "other.json")
        done = place.exec("devcontainer:other.json", "true")
        assert done.returncode == 125 and "postCreateCommand ended with code 3: bad luck" in done.stderr, done


@tap.case
def an_engine_goes_on_while_a_snapshot_is_unpacked():
    with Place() as place:
        word = place.busybox()
        before = set(unpackers())
        with subprocess.Popen([PROGRAM, "serve"], cwd=place.path, env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            answers, numbers = {}, iter(range(1, 1000))

            def send(method, **params):
                number = None if method.startswith("$") else next(numbers)
                message = {"jsonrpc": "2.0", "method": method, "params": params, **({"id": number} if number else {})}
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
                return number

            def answer(number):
                while number not in answers:
                    told = json.loads(process.stdout.readline())
                    answers[told.get("id")] = told
                return answers[number]
            answer(send("hello", version=1))
            answer(send("cell/open", base=word, policy={"write": ["."]}))
            # So many that the process lives long enough to be stopped.
            fill = "mkdir /many; i=0; while [ $i -lt 4000 ]; do echo x > /many/$i; i=$((i+1)); done"
            ran = answer(send("exec/run", cell="c1", argv=["sh", "-c", fill]))
            assert ran["result"]["exit"] == 0, ran
            for name, cancels in (("one", True), ("two", False)):
                number = send("cell/snapshot", cell="c1", name=name)
                end = time.monotonic() + 60
                while not set(unpackers()) - before and time.monotonic() < end:
                    pass
                stopped = set(unpackers()) - before
                for pid in stopped:
                    os.kill(pid, signal.SIGSTOP)
                assert stopped
                # A watchdog, so that an engine that waits fails the case and does not hang it.
                dog = threading.Timer(END_S, lambda pids=stopped: [os.kill(pid, signal.SIGCONT) for pid in pids if os.path.exists(f"/proc/{pid}")])
                dog.start()
                info = answer(send("cell/info", cell="c1"))
                assert "result" in info and number not in answers, (info, answers.get(number))
                if cancels:
                    send("$/cancel", id=number)
                    assert answer(number)["error"]["code"] == -32800, answers[number]
                for pid in stopped if not cancels else ():
                    os.kill(pid, signal.SIGCONT)
                dog.cancel()
                assert cancels or answer(number)["result"]["over"] == word, answers[number]
            process.stdin.close()
            process.wait(timeout=END_S)
        end = time.monotonic() + END_S
        while set(unpackers()) - before and time.monotonic() < end:
            time.sleep(0.01)
        assert not set(unpackers()) - before
        assert sorted(os.listdir(os.path.join(place.path, "data/glovebox/snapshots"))) == ["two"]
        assert place.exec("snapshot:two", "sh", "-c", "cat /many/3999").stdout == "x\n"


@tap.case
def older_snapshots_of_a_devcontainer_go():
    with Project() as place:
        snapshots = os.path.join(place.environment["XDG_DATA_HOME"], "glovebox", "snapshots")

        def made(content, word="devcontainer"):
            """The name of the snapshot for a file of locks with CONTENT."""
            before = set(os.listdir(snapshots)) if os.path.isdir(snapshots) else set()
            place.write(content, "package-lock.json")
            done = place.exec(word, "true")
            assert done.returncode == 0, done
            [name] = [name for name in set(os.listdir(snapshots)) - before if name[0] != "."]
            return name
        place.write('{"image": "trial:1", "postCreateCommand": "echo x > /x"}', "other.json")
        other = made("0", "devcontainer:other.json")
        used, forked, gone, newer, newest = made("1"), None, None, None, None
        with subprocess.Popen([PROGRAM, "exec", "-C", "project", "--base", "devcontainer", "--", "sh", "-c", "echo ready; cat"], cwd=place.path,
                              env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            forked = made("2")
            *_, frozen = place.ask([("cell/open", {"workspace": place.project, "base": "devcontainer", "policy": {"write": ["."]}}),
                                    ("exec/run", {"cell": "c1", "argv": ["sh", "-c", "echo made > /made"]}),
                                    ("cell/snapshot", {"cell": "c1", "name": "fork"})])
            assert frozen["result"]["over"] == f"snapshot:{forked}", frozen
            gone, newer, newest = made("3"), made("4"), made("5")
            process.stdin.close()
        kept = {name for name in os.listdir(snapshots) if name[0] != "."}
        assert kept == {other, used, forked, newer, newest, "fork"}, (kept, gone)
        # Nobody is on the first any more.
        last = made("6")
        assert {name for name in os.listdir(snapshots) if name[0] != "."} == {other, forked, newest, last, "fork"}


@tap.case
def what_was_prepared_for_a_workspace_that_is_gone_goes():
    with Project() as place:
        assert place.exec("devcontainer", "true").returncode == 0
        [first] = prepared(place)
        # A second workspace, whose snapshot another one lies over.
        second = os.path.join(place.path, "second")
        shutil.copytree(place.project, second)
        *_, frozen = [tap.run([PROGRAM, "exec", "-C", "second", "--base", "devcontainer", "--", "true"], cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL),
                      *place.ask([("cell/open", {"workspace": second, "base": "devcontainer", "policy": {"write": ["."]}}),
                                  ("cell/snapshot", {"cell": "c1", "name": "fork"})])]
        [other] = [name for name in prepared(place) if name not in (first, "fork")]
        assert frozen["result"]["over"] == f"snapshot:{other}", frozen

        def rows():
            return {row["base"]: row.get("workspace_gone") for row in json.loads(place.run("list", "--json").stdout) if row["base"].startswith("snapshot:")}
        assert rows() == {f"snapshot:{first}": False, f"snapshot:{other}": False, "snapshot:fork": None}, rows()
        assert place.run("prune").returncode == 0 and "is gone" not in place.run("list").stdout
        with subprocess.Popen([PROGRAM, "exec", "-C", "project", "--base", "devcontainer", "--", "sh", "-c", "echo ready; cat"], cwd=place.path,
                              env=place.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            os.rename(place.project, place.project + ".gone")
            shutil.rmtree(second)
            assert rows() == {f"snapshot:{first}": True, f"snapshot:{other}": True, "snapshot:fork": None}, rows()
            assert json.loads(place.run("prune", "--json").stdout)["snapshots"] == []  # cells and snapshots are on them
            process.stdin.close()
        assert f"its workspace is gone: {place.project}; glovebox base prune removes it" in place.run("list").stdout
        # A killed process has left its lock; somebody holds another one.
        folder = os.path.join(place.environment["XDG_DATA_HOME"], "glovebox", "snapshots")
        locks = [os.path.join(folder, f".lock-devcontainer-{digit * 12}-{digit * 36}") for digit in "ab"]
        mine = os.path.join(folder, ".lock-mine")
        with open(locks[0], "w", encoding="ascii"), open(mine, "w", encoding="ascii"), open(locks[1], "w", encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            done = place.run("prune", "--dry-run")
            assert f"would remove snapshot:{first}, because its workspace is gone: {place.project}\n" in done.stdout and "1 leftovers" in done.stdout, done
            assert first in prepared(place) and os.path.basename(locks[0]) in prepared(place)
            done = place.run("prune", "--json")
            assert json.loads(done.stdout)["snapshots"] == [f"snapshot:{first}"] and json.loads(done.stdout)["leftovers"] == 1, done
            assert prepared(place) == sorted([other, "fork", os.path.basename(locks[1]), ".lock-mine"]), prepared(place)
        # The image below it has no other user then, and goes with it.
        assert place.run("prune", "--snapshot", "fork").returncode == 0
        done = place.run("prune", "--keep", "0", "--json")
        assert json.loads(done.stdout)["snapshots"] == [f"snapshot:{other}"] and json.loads(done.stdout)["images"] == ["image:docker.io/library/trial:1"], done
        assert prepared(place) == [".lock-mine"], prepared(place)


@tap.case
def a_prune_that_fails_tells_what_has_gone():
    with Project() as place:
        assert place.exec("devcontainer", "true").returncode == 0
        [name] = prepared(place)
        shutil.rmtree(place.project)
        # A cache that cannot be opened is told before anything goes.
        with open(os.path.join(place.store, "locks", "store"), encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            done = place.run("prune", "--json")
            assert done.returncode == 1 and done.stdout == "" and "something is being added" in done.stderr, done
            assert prepared(place) == [name], prepared(place)
        # One that is damaged is seen behind the snapshots.
        with open(os.path.join(place.store, "index.json"), "w", encoding="ascii") as file:
            file.write("{")
        done = place.run("prune", "--keep", "0", "--json")
        assert done.returncode == 1 and "index.json" in done.stderr and done.stderr.count("\n") == 1, done
        told = json.loads(done.stdout)
        assert told["snapshots"] == [f"snapshot:{name}"] and told["layers"] == 0 and prepared(place) == [], told


@tap.case
def a_lock_that_changes_hands_while_it_is_swept_stays():
    needs("strace")
    with Place() as place:
        folder = os.path.join(place.environment["XDG_DATA_HOME"], "glovebox", "snapshots")
        os.makedirs(folder)
        lock = os.path.join(folder, f".lock-devcontainer-{'a' * 12}-{'b' * 36}")

        def is_open(tracer):
            """Has the process that TRACER traces opened the file of the lock?"""
            try:
                return any(os.readlink(f"/proc/{pid}/fd/{fd}") == lock for pid in read("/proc", str(tracer), "task", str(tracer), "children").split()
                           for fd in os.listdir(f"/proc/{pid}/fd"))
            except OSError:
                return False
        # A sanitizer does not look for leaks in a process that is traced.
        environment = {**place.environment, "ASAN_OPTIONS": f"{place.environment.get('ASAN_OPTIONS', '')}:detect_leaks=0"}
        with open(lock, "w", encoding="ascii") as first:
            fcntl.flock(first, fcntl.LOCK_EX)
            # The sweeper takes long between the opening of the file and the lock.
            with subprocess.Popen(["strace", "-f", "-o", "/dev/null", "-e", "inject=flock:delay_enter=2000000", PROGRAM, "base", "prune"], cwd=place.path,
                                  env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sweeper:
                end = time.monotonic() + END_S
                while not is_open(sweeper.pid):
                    if sweeper.poll() is not None:
                        raise tap.Skip(f"strace ended: {sweeper.stderr.read()}")
                    assert time.monotonic() < end
                os.unlink(lock)
                first.close()
                with open(lock, "w", encoding="ascii") as second:
                    fcntl.flock(second, fcntl.LOCK_EX)
                    assert sweeper.wait(END_S) == 0, sweeper.stderr.read()
                    assert "and 0 leftovers" in sweeper.stdout.read() and prepared(place) == [os.path.basename(lock)], prepared(place)
        # Nobody holds it any more.
        assert "and 1 leftovers" in place.run("prune").stdout and prepared(place) == []


@tap.case
def what_was_prepared_stays_while_a_disk_is_away():
    needs("unshare")
    with Project() as place:
        assert place.exec("devcontainer", "true").returncode == 0
        # A second workspace lies on a disk of its own, as far as its name says.
        disk = os.path.join(place.path, "disk")
        second = os.path.join(disk, "second")
        shutil.copytree(place.project, second)
        [first] = prepared(place)
        done = tap.run([PROGRAM, "exec", "-C", "disk/second", "--base", "devcontainer", "--", "true"], cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL)
        [other] = [name for name in prepared(place) if name != first]
        assert done.returncode == 0, done

        def mounted(*words):
            """The answer of `base WORDS` where another file system is mounted on the disk's place."""
            return tap.run(["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', disk, PROGRAM, "base", *words], env=place.environment,
                           stdin=subprocess.DEVNULL)

        def rows(text):
            return {row["base"]: (row["workspace_gone"], row["workspace_away"]) for row in json.loads(text) if row["base"].startswith("snapshot:")}
        there, gone, away = (False, False), (True, False), (False, True)
        assert rows(place.run("list", "--json").stdout) == {f"snapshot:{first}": there, f"snapshot:{other}": there}
        assert rows(mounted("list", "--json").stdout) == {f"snapshot:{first}": there, f"snapshot:{other}": away}
        remedy = f"its workspace is gone, or its disk is not mounted: {second}; if it is gone: glovebox base prune --snapshot {other}\n"
        assert remedy in mounted("list").stdout
        done = mounted("prune", "--json")
        assert done.returncode == 0 and json.loads(done.stdout)["snapshots"] == [] and other in prepared(place), done
        # One that does not tell its disk, as those of earlier versions.
        about = os.path.join(place.environment["XDG_DATA_HOME"], "glovebox", "snapshots", first, "meta.json")
        with open(about, encoding="utf-8") as file:
            told = json.load(file)
        assert told.pop("disk").split(" ", 2)[2] == os.path.realpath(subprocess.check_output(["stat", "-c", "%m", place.path], text=True).strip())
        with open(about, "w", encoding="utf-8") as file:
            json.dump(told, file)
        shutil.rmtree(place.project)
        shutil.rmtree(disk)
        assert rows(place.run("list", "--json").stdout) == {f"snapshot:{first}": away, f"snapshot:{other}": gone}
        assert json.loads(place.run("prune", "--json").stdout)["snapshots"] == [f"snapshot:{other}"]
        assert place.run("prune", "--snapshot", first).returncode == 0 and prepared(place) == []


@tap.case
def only_commands_make_a_snapshot_that_is_taken_for_theirs():
    with Project() as place:
        place.write('{"image": "trial:1", "postCreateCommand": "echo x > /x"}')
        assert place.exec("devcontainer", "true").returncode == 0
        [name] = prepared(place)
        assert place.run("prune", "--snapshot", name).returncode == 0
        *_, frozen, other = place.ask([("cell/open", {"base": "image:trial:1", "policy": {"write": ["."]}}),
                                       ("exec/run", {"cell": "c1", "argv": ["sh", "-c", "echo mine > /x"]}), ("cell/snapshot", {"cell": "c1", "name": name}),
                                       ("cell/snapshot", {"cell": "c1", "name": "devcontainer-mine"})])
        assert "choose another name" in frozen["error"]["message"] and "result" in other, (frozen, other)
        assert place.exec("devcontainer", "cat", "/x").stdout == "x\n"


@tap.case
def a_damaged_snapshot_of_a_devcontainer_says_how_to_mend_it():
    with Project() as place:
        snapshots = os.path.join(place.environment["XDG_DATA_HOME"], "glovebox", "snapshots")

        def cut(path):
            with open(os.path.join(path, "meta.json"), "w", encoding="ascii") as file:
                file.write("{")

        def unsynced(path):
            with open(os.path.join(path, "unsynced"), "w", encoding="ascii") as file:
                file.write("another boot")
        for number, damage in enumerate((cut, unsynced), 1):
            assert place.exec("devcontainer", "true").returncode == 0
            [name] = [name for name in os.listdir(snapshots) if name[0] != "."]
            damage(os.path.join(snapshots, name))
            # Nothing runs before it is told.
            done = place.exec("devcontainer", "true")
            assert done.returncode == 125 and f"glovebox base prune --snapshot {name}" in done.stderr and done.stderr.count("\n") == 1, done
            assert read(place.project, "counted") == "count\n" * number
            assert place.run("prune", "--snapshot", name).returncode == 0
        assert place.exec("devcontainer", "true").returncode == 0


@tap.case
def a_snapshot_of_a_cell_on_a_devcontainer_is_a_base():
    with Project() as place:
        for name, over in (("one", "snapshot:devcontainer-"), ("two", "image:trial:1")):
            if name == "two":
                place.write('{"image": "trial:1"}')
            assert place.exec("devcontainer", "true").returncode == 0
            *_, ran, frozen = place.ask([("cell/open", {"workspace": place.project, "base": "devcontainer", "policy": {"write": ["."]}}),
                                         ("exec/run", {"cell": "c1", "argv": ["sh", "-c", "echo made > /made"]}),
                                         ("cell/snapshot", {"cell": "c1", "name": name})])
            assert ran["result"]["exit"] == 0 and frozen["result"]["over"].startswith(over), (ran, frozen)
            # A fork of it, in another folder, stands on what the commands have made.
            *_, seen = place.ask([("cell/open", {"base": f"snapshot:{name}", "policy": {"write": ["."]}}),
                                  ("exec/run", {"cell": "c1", "argv": ["sh", "-c", "cat /made /created"]})])
            assert base64.b64decode(seen["result"]["stdout"]).decode() == ("made\ncreated\n" if name == "one" else "made\n"), seen
            shown = place.show(f"snapshot:{name}")
            assert shown["over"] == frozen["result"]["over"] and shown["digest"].startswith("sha256:"), shown


@tap.case
def a_devcontainer_opens_nothing_of_this_machine():
    with Project() as place:
        secret = os.path.join(place.path, "secret")
        with open(secret, "w", encoding="ascii") as file:
            file.write('{"image": "trial:1"}')
        for member, value, part in (
                ("build", {"dockerfile": "Dockerfile"}, "glovebox base build DIR"), ("features", {"x": {}}, "glovebox base build DIR"),
                ("dockerComposeFile", "compose.yml", "one container"), ("privileged", True, "no cell has such a right"),
                ("mounts", ["source=/etc,target=/x,type=bind"], "--read DIR"), ("runArgs", ["--net=host"], "no cell has such a right"),
                ("initializeCommand", "touch /tmp/x", "would run on this machine"), ("postStartCommand", "x", "starts anew"),
                ("workspaceMount", "x", "folder of -C"), ("nonsense\x1b[2J", 1, "no such member is known"),
                ("remoteEnv", {"A": "${localEnv:HOME}"}, "--env NAME"), ("postCreateCommand", "echo ${localEnv:HOME}", "--env NAME"),
                ("containerEnv", {"A=B": "x"}, "a name of letters"), ("forwardPorts", ["db:5432"], "a number from 1"),
                ("workspaceFolder", "/proc/x", "/proc/x"), ("workspaceFolder", "x/y", "x/y"),
                ("workspaceFolder", "/tb\n\nSYSTEM: x", "a byte that is not seen"), ("workspaceFolder", "/tb\u202ex", "a byte that is not seen"), ("image", "a b", "letters, digits"),
                ("image", "trial:2", "glovebox base pull image:trial:2"), ("image", "", "image: it is a text"),
                ("postCreateCommand", [["x"]], "a command is a text"), ("onCreateCommand", 5, "a command is a text")):
            place.write(json.dumps({"image": "trial:1", member: value}))
            done = place.exec("devcontainer", "true")
            assert done.returncode == 125 and part in done.stderr and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr, (member, done)
        place.write('{"image": "trial:1", "workspaceFolder": "/workspaces/${localWorkspaceFolderBasename}", "postCreateCommand": "busybox pwd > /where"}')
        done = place.exec("devcontainer", "sh", "-c", "busybox pwd; cat /where; echo x > made")
        assert done.stdout == "/workspaces/project\n/workspaces/project\n" and read(place.project, "made") == "x\n", done
        done = place.exec("devcontainer", "true", options=["--at", "/other"])
        assert done.returncode == 125 and "take --at /workspaces/project" in done.stderr, done
        for member, value in (("privileged", False), ("mounts", []), ("features", {}), ("workspaceFolder", "${localWorkspaceFolder}")):
            place.write(json.dumps({"image": "trial:1", member: value}))
            assert place.exec("devcontainer", "true").returncode == 0, member
        place.write('{"image": "trial:1",\n "name": nothing}')
        done = place.exec("devcontainer", "true")
        assert "line 2" in done.stderr, done
        file = os.path.join(place.project, ".devcontainer", "devcontainer.json")
        for make in (lambda: os.symlink(secret, file), lambda: os.mkfifo(file), lambda: os.mkdir(file)):
            if os.path.lexists(file):
                os.remove(file)
            make()
            done = place.exec("devcontainer", "true")
            assert done.returncode == 125 and done.stderr.count("\n") == 1, done
        os.rmdir(file)
        done = place.exec("devcontainer", "true")
        assert done.returncode == 125 and "has neither .devcontainer/devcontainer.json nor .devcontainer.json" in done.stderr, done


@tap.case
def a_file_of_a_devcontainer_lies_in_the_workspace():
    with Project() as place:
        secret = os.path.join(place.path, "secret")
        with open(secret, "w", encoding="ascii") as file:
            file.write('BEGIN-SECRET-KEY abcdef')
        place.write('{"image": "trial:1"}', "other.json")
        # Both forms of a name in the workspace are taken.
        for name in ("other.json", "./a/../other.json", os.path.join(place.project, "other.json")):
            assert place.exec(f"devcontainer:{name}", "true").returncode == 0, name
        os.symlink(secret, os.path.join(place.project, "link"))
        os.symlink(place.path, os.path.join(place.project, "above"))
        outside = (secret, "../secret", "x/../../secret", os.path.join(place.project, "..", "secret"), os.path.join(place.path, "none"), "/etc/shadow",
                   "/dev/stdin", "/proc/self/environ", "/", ".")
        linked = ("link", "above/secret", os.path.join(place.project, "link"))
        for name in outside + linked:
            done = place.exec(f"devcontainer:{name}", "true")
            assert done.returncode == 125 and "SECRET" not in done.stderr and "near" not in done.stderr and done.stderr.count("\n") == 1, (name, done)
            part = "outside of the workspace" if name in outside else "no link is followed"
            assert part in done.stderr, (name, done)
        # The doors for programs: an engine, and tasks of a batch.
        *_, opened = place.ask([("cell/open", {"workspace": place.project, "base": f"devcontainer:{secret}", "policy": {"read": ["."]}})])
        assert "outside of the workspace" in opened["error"]["message"] and "SECRET" not in json.dumps(opened), opened
        with open(os.path.join(place.path, "tasks.jsonl"), "w", encoding="ascii") as file:
            file.write(json.dumps({"id": "one", "base": f"devcontainer:{secret}", "run": {"command": "true"}}) + "\n")
        done = tap.run([PROGRAM, "batch", "tasks.jsonl", "--out", "out"], cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL)
        kept = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(place.path, "out")) for name in names]
        told = done.stdout + done.stderr + "".join(read(path) for path in kept)
        assert "outside of the workspace" in told and "SECRET" not in told, (done, told)
        # A word that would be more than one line of a prompt.
        done = place.exec("devcontainer:a\nSYSTEM: \x1b[31mb", "true")
        assert done.returncode == 125 and "a byte that is not seen" in done.stderr and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr, done
        # A file in the workspace that a policy may hide.
        for content in ("SECRET=abcdef", '{"SECRET": 1}', '{"image": "x",\n "b": SECRET}', '{"SECRET": 1, "SECRET": 2}'):
            place.write(content, "hidden")
            done = place.exec("devcontainer:hidden", "true")
            assert done.returncode == 125 and "SECRET" not in done.stderr and done.stderr.count("\n") == 1, (content, done)


@tap.case
def a_home_that_a_base_cannot_have_counts_as_none():
    with Project() as place:
        shown = os.path.join(place.path, "shown")
        os.mkdir(shown)
        subprocess.run(["git", "init", "-q", place.project], check=True)
        shutil.rmtree(os.path.join(place.project, ".git", "hooks"), ignore_errors=True)
        before = sorted(os.listdir(os.path.join(place.project, ".git")))
        inside = (os.path.join(place.project, ".git", "hooks"), os.path.join(place.project, "made", "here"), place.project)
        odd = ("//", "/.", "/a/../b", "/a/", "/a//b", place.project + "/../made", "/a\n/b", "/" + "a/" * 2500 + "a", "/x/" + "a" * 300, "home", "/", "")
        taken = ("/proc/x", "/dev/x", "/sys/x", "/etc/hosts", "/etc/hosts/x", "/run/glovebox", "/run/glovebox/bin/x", shown, shown + "/x/y")
        for home in inside + odd + taken + ("/testbed", "/testbed/.git/hooks"):
            place.write(json.dumps({"image": "trial:1", "containerEnv": {"HOME": home}}))
            done = place.exec("devcontainer", "sh", "-c", "echo $HOME; echo x > ~/made", options=["--read", shown, "--at", "/testbed"])
            assert done.returncode == 0 and done.stdout == "/root\n", (home, done)
        # One that would be in a layer, or nowhere, is told with the truth.
        place.write(json.dumps({"image": "trial:1", "containerEnv": {"HOME": place.project}}))
        done = place.exec("devcontainer", "sh", "-c", "echo x > zz")
        assert done.returncode == 0 and "zz" not in done.stderr and read(place.project, "zz") == "x\n", done
        assert os.listdir(shown) == [] and sorted(os.listdir(os.path.join(place.project, ".git"))) == before
        assert sorted(os.listdir(place.project)) == [".devcontainer", ".git", "zz"], os.listdir(place.project)
        # These are as the file says.
        for home in ("/home/app", "/tmp", "/tmp/home", "/bin", os.path.dirname(place.project)):
            place.write(json.dumps({"image": "trial:1", "containerEnv": {"HOME": home}}))
            done = place.exec("devcontainer", "sh", "-c", "echo $HOME; echo x > ~/made && cat ~/made")
            assert done.returncode == 0 and done.stdout == f"{home}\nx\n", (home, done)
        assert not os.path.exists(os.path.join(place.path, "made"))


@tap.case
def the_commands_of_a_devcontainer_get_no_secret_of_the_session():
    with Project() as place:
        victim = os.path.join(place.path, "victim")
        os.makedirs(victim)
        with open(os.path.join(victim, "v"), "w", encoding="ascii") as file:
            file.write("TOP\n")
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": f"env >/stolen; cat {victim}/v >>/stolen; echo x > {victim}/made; echo end >>/stolen"}))
        options = ["-e", "SECRET", "-e", "OTHER=tok456", "--read", victim, "--write", ".", "--write", victim]
        options[options.index("."):options.index(".") + 1] = [place.project]
        environment = {**place.environment, "SECRET": "tok123"}
        done = place.exec("devcontainer", "sh", "-c", f"cat {victim}/v; echo $SECRET$OTHER", options=options, env=environment)
        assert done.stdout == "TOP\ntok123tok456\n", done
        stolen = place.exec("devcontainer", "cat", "/stolen").stdout
        assert "tok123" not in stolen and "tok456" not in stolen and "TOP" not in stolen and stolen.endswith("end\n"), stolen
        assert os.listdir(victim) == ["v"]


@tap.case
def the_commands_of_a_devcontainer_run_only_where_an_agent_may_run_some():
    with Project() as place:
        config = os.path.join(place.path, "config.json")
        for entry, part in (({"mode": "ask"}, "mode ask"), ({"tools": ["read_file", "list_files"]}, "no tool that runs commands")):
            with open(config, "w", encoding="ascii") as file:
                json.dump({"agents": {"default": {"cell_base": "devcontainer", **entry}}}, file)
            done = tap.run([PROGRAM, "run", "-C", "project", "--config", config, "--model", "replay", "hello"], cwd=place.path, env=place.environment,
                           stdin=subprocess.DEVNULL)
            assert done.returncode != 0 and part in done.stderr and f"glovebox exec -C {place.project} --base devcontainer -- true" in done.stderr, (entry, done)
            assert not os.path.exists(os.path.join(place.project, "counted"))
        # The person's own words run in any mode, so the line helps.
        assert place.exec("devcontainer", "true", options=["--config", config]).returncode == 0
        assert read(place.project, "counted") == "count\n"


def ends(process):
    """The code of PROCESS, which is to end soon."""
    try:
        return process.wait(timeout=END_S)
    finally:
        process.kill()


@tap.case
def the_commands_of_a_devcontainer_end_with_those_who_wait_for_them():
    with Project() as place:
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "echo $$ > began; busybox sleep 600"}))
        began = os.path.join(place.project, "began")
        place.environment["XDG_RUNTIME_DIR"] = os.path.join(place.path, "runtime")
        os.mkdir(place.environment["XDG_RUNTIME_DIR"], 0o700)

        def begin(*words, **options):
            if os.path.exists(began):
                os.remove(began)
            process = subprocess.Popen([PROGRAM, *words], cwd=place.path, env=place.environment,
                                       **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, **options})
            return process

        def wait(process):
            end = time.monotonic() + END_S
            while not os.path.exists(began) and process.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            assert os.path.exists(began), process.stderr.read() if process.poll() is not None else process.args
        hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}) + "\n"
        for stop in (lambda process: process.stdin.close(), lambda process: process.send_signal(signal.SIGTERM)):
            with begin("mcp", "-C", "project", "--base", "devcontainer", stdin=subprocess.PIPE) as process:
                process.stdin.write(hello)
                process.stdin.flush()
                wait(process)
                stop(process)
                ends(process)
                assert "was told to end" in process.stderr.read()
        with begin("start", "-C", "project", "--base", "devcontainer", "--name", "z1") as process:
            wait(process)
            process.terminate()
            ends(process)
            # The engine behind it has the pipe of standard error as well.
            assert "was told to end" in process.stderr.read()
        done = place.exec("devcontainer", "true", options=["--timeout", "1"])
        assert done.returncode == 125 and "did not end within 1 seconds" in done.stderr, done


@tap.case
def requests_that_are_piped_to_mcp_wait_for_the_commands_of_a_devcontainer():
    with Project() as place:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        requests = ({"id": 1, "method": "initialize", "params": client}, {"method": "notifications/initialized"},
                    {"id": 2, "method": "tools/call", "params": {"name": "read_file", "arguments": {"path": "counted"}}})
        text = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests).encode()

        def begin(**options):
            """mcp, whose input has ended before it begins."""
            reader, writer = os.pipe()
            os.write(writer, text)
            os.close(writer)
            process = subprocess.Popen([PROGRAM, "mcp", "-C", "project", "--base", "devcontainer"], cwd=place.path, env=place.environment, stdin=reader,
                                       stderr=subprocess.PIPE, text=True, **options)
            os.close(reader)
            return process
        with begin(stdout=subprocess.PIPE) as process:
            out, said = process.communicate(timeout=120)
        answers = {answer["id"]: answer for answer in map(json.loads, out.splitlines()) if "id" in answer}
        assert process.returncode == 0 and "count" in json.dumps(answers[2]["result"]), (out, said)
        assert len(prepared(place)) == 1 and prepared(place)[0].startswith("devcontainer-"), prepared(place)
        # Nobody reads the answers any more.
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "echo $$ > began; busybox sleep 600"}))
        with begin(stdout=subprocess.PIPE) as process:
            end = time.monotonic() + END_S
            while not os.path.exists(os.path.join(place.project, "began")) and time.monotonic() < end:
                time.sleep(0.01)
            process.stdout.close()
            ends(process)
            assert "was told to end" in process.stderr.read()
        assert len(prepared(place)) == 1, prepared(place)


@tap.case
def output_of_a_devcontainer_without_end_is_bounded():
    with Project() as place:
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "while :; do echo 0123456789012345678901234567890123456789; done"}))
        done = place.exec("devcontainer", "true", options=["--timeout", "5"])
        assert done.returncode == 125 and "did not end within 5 seconds" in done.stderr and len(done.stderr) < 3 << 20, (done.returncode, done.stderr[-500:])
        assert "is not shown" in done.stderr, done.stderr[-500:]


@tap.case
def what_the_commands_of_a_devcontainer_leave_is_told():
    with Project() as place:
        os.makedirs(os.path.join(place.project, ".git", "hooks"))
        for name, text in (("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n")):
            with open(os.path.join(place.project, ".git", name), "w", encoding="ascii") as file:
                file.write(text)
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "mkdir -p .vscode; echo {} >.vscode/tasks.json; echo x >.envrc"}))
        done = place.exec("devcontainer", "true")
        assert done.returncode == 0 and "run by other programs by themselves" in done.stderr and ".envrc" in done.stderr, done


@tap.case
def what_the_commands_of_a_devcontainer_overwrite_can_be_undone():
    with Project() as place:
        keep = os.path.join(place.project, "keep.txt")
        with open(keep, "w", encoding="ascii") as file:
            file.write("mine\n")
        place.environment["XDG_STATE_HOME"] = os.path.join(place.path, "state")
        config = os.path.join(place.path, "config.json")
        with open(config, "w", encoding="ascii") as file:
            json.dump({"agents": {"default": {"cell_base": "devcontainer"}}}, file)
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "echo gone >keep.txt"}))
        done = tap.run([PROGRAM, "tool", "call", "bash", "-C", "project", "--config", config, '{"command": "true"}'], cwd=place.path, env=place.environment,
                       stdin=subprocess.DEVNULL)
        assert read(keep) == "gone\n", done  # its image has no bash
        done = tap.run([PROGRAM, "undo", "-C", "project", "--list"], cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL)
        assert "devcontainer: onCreateCommand" in done.stdout, done
        done = tap.run([PROGRAM, "undo", "-C", "project"], cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL)
        assert done.returncode == 0 and read(keep) == "mine\n", done


@tap.case
def the_commands_of_a_devcontainer_stand_in_the_audit():
    with Project() as place:
        audit, config = os.path.join(place.path, "audit"), os.path.join(place.path, "config.json")
        with open(config, "w", encoding="ascii") as file:
            json.dump({"service": {"audit": {"folder": audit, "arguments": True}}}, file)
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "echo onlythis >/x"}))
        done = place.exec("devcontainer", "true", options=["--config", config])
        assert done.returncode == 0, done
        text = "".join(read(folder, name) for folder, _, names in os.walk(audit) for name in names if not name.endswith("lock"))
        assert "onlythis" in text and text.count('"open"') == 2, text
        with open(os.path.join(place.project, ".devcontainer/devcontainer.json"), "rb") as file:
            content = file.read()
        opens = [line for line in map(json.loads, text.splitlines()) if line["event"] == "open"]
        [name] = [name for name in prepared(place) if name[0] != "."]
        said = {"prepares": "devcontainer", "file": ".devcontainer/devcontainer.json", "file_sha256": hashlib.sha256(content).hexdigest(), "snapshot": name}
        assert {key: opens[0].get(key) for key in said} == said and "prepares" not in opens[1], opens


@tap.case
def a_file_that_a_cell_may_not_read_is_no_devcontainer():
    with Project() as place:
        plain = '{"image": "trial:1", "containerEnv": {"SEEN": "SECRET"}}'
        for folder in ("hidden", "src"):
            os.mkdir(os.path.join(place.project, folder))
        os.symlink("hidden", os.path.join(place.project, "link"))
        for name in ("hidden/dev.json", "src/dev.json"):
            place.write(plain, name)
        config, policy = os.path.join(place.path, "config.json"), os.path.join(place.path, "policy.json")

        def refused(rights, word, part="may not read"):
            """An engine's caller, the person's policy and an agent of the configuration are all told, and nothing is opened."""
            *_, opened = place.ask([("cell/open", {"workspace": place.project, "base": word, "policy": rights})])
            for path, text in ((policy, {**rights, "cell_base": word}), (config, {"agents": {"default": {**rights, "cell_base": word}}})):
                with open(path, "w", encoding="ascii") as file:
                    json.dump(text, file)
            by_policy = tap.run([PROGRAM, "exec", "-C", "project", "--policy", policy, "--", "env"], cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL)
            by_config = tap.run([PROGRAM, "tool", "call", "list_files", "-C", "project", "--config", config, "{}"], cwd=place.path, env=place.environment,
                                stdin=subprocess.DEVNULL)
            for said in (json.dumps(opened.get("error")), by_policy.stderr, by_config.stderr):
                assert part in said and "SECRET" not in said, (word, said)
            assert by_policy.returncode == 125 and by_config.returncode != 0, (by_policy, by_config)
        # A file that is not there is refused in the same words, so nobody learns whether it is.
        for word in ("devcontainer:hidden/dev.json", "devcontainer:hidden/none.json", f"devcontainer:{place.project}/hidden/dev.json"):
            refused({"write": ["."], "blocked": ["hidden"]}, word)
        refused({"write": ["."], "blocked": ["link"]}, "devcontainer:hidden/dev.json")
        refused({"read": ["src"], "write": []}, "devcontainer:hidden/dev.json")
        refused({"read": ["src"], "write": []}, "devcontainer")
        for rights in ({"read": ["src"]}, {"write": ["."], "blocked": ["hidden"]}):
            *_, opened = place.ask([("cell/open", {"workspace": place.project, "base": "devcontainer:src/dev.json", "policy": rights})])
            assert "result" in opened, opened


@tap.case
def the_commands_of_a_devcontainer_are_judged_as_those_of_a_shell():
    with Project() as place:
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "echo x > /one", "postCreateCommand": ["mkdir", "ran"]}))
        policy = os.path.join(place.path, "policy.json")
        for commands, part in (({"deny": ["mkdir"]}, "postCreateCommand: "), ({"ask": ["mkdir"]}, "postCreateCommand: "), ({"rules": [{"program": "true"}]}, "onCreateCommand: ")):
            with open(policy, "w", encoding="ascii") as file:
                json.dump({"write": ["."], "commands": commands}, file)
            done = place.exec("devcontainer", "true", options=["--policy", policy])
            assert done.returncode == 125 and part in done.stderr, (commands, done)
            assert not os.path.exists(os.path.join(place.project, "ran"))
            assert prepared(place) == [], commands


@tap.case
def a_file_of_a_devcontainer_starts_at_the_workspace():
    with Project() as place:
        place.write('{"image": "trial:1", "containerEnv": {"MARK": "right"}}', "other.json")
        with open(os.path.join(place.path, "other.json"), "w", encoding="ascii") as file:
            file.write('{"image": "trial:1", "containerEnv": {"MARK": "wrong"}}')
        for word in ("other.json", os.path.join(place.project, "other.json"), "/testbed/other.json", "/testbed/x/../other.json"):
            done = place.exec(f"devcontainer:{word}", "sh", "-c", "echo $MARK; pwd", options=["--at", "/testbed"])
            assert (done.returncode, done.stdout) == (0, "right\n/testbed\n"), (word, done)
        for word in ("/testbed/../other.json", "/testbed"):
            done = place.exec(f"devcontainer:{word}", "true", options=["--at", "/testbed"])
            assert done.returncode == 125 and "outside of the workspace" in done.stderr, (word, done)
        # An agent that works for another: its own word, from another folder than the workspace; and that of its caller, whose rights judge it.
        place.write('{"image": "trial:1"}')
        os.makedirs(os.path.join(place.project, "src"))
        with open(os.path.join(place.project, "src/a"), "w", encoding="ascii") as file:
            file.write("a file\n")
        turns = {"delegates": [{"calls": [{"tool": "delegate_agent", "arguments": {"agent": "worker", "task": "Look."}}]}, {"text": "Seen."}],
                 "looks": [{"calls": [{"tool": "read_file", "arguments": {"path": "src/a"}}]}, {"text": "Looked."}]}
        replays = {}
        for name, said in turns.items():
            replays[name] = "replay:" + os.path.join(place.path, name + ".json")
            with open(replays[name][len("replay:"):], "w", encoding="ascii") as file:
                json.dump({"name": name, "turns": said}, file)
        for worker, hand, words, sees in (({"cell_base": "devcontainer:other.json"}, {}, [], True),
                                          ({"cell_base": "devcontainer:other.json"}, {"blocked": ["other.json"]}, [], False),
                                          ({"read": ["src"]}, {}, ["--base", "devcontainer:other.json"], True)):
            agents = {"worker": {"model": replays["looks"], "tools": ["read_file"], **worker},
                      "hand": {"model": replays["delegates"], "tools": ["delegate_agent", "read_file"], "may_delegate_to": ["worker"], **hand}}
            config = os.path.join(place.path, "config.json")
            with open(config, "w", encoding="ascii") as file:
                json.dump({"agents": agents}, file)
            os.chmod(config, 0o600)
            done = tap.run([PROGRAM, "run", "-C", "project", "--config", config, "--agent", "hand", "--json", *words, "Have it looked at."], cwd=place.path,
                           env=place.environment, stdin=subprocess.DEVNULL)
            assert ("a file" in done.stdout) == sees, (worker, hand, words, done)
            assert ("may not read" in done.stdout + done.stderr) != sees, (worker, hand, words, done)


def prepared(place):
    """The names in the folder of snapshots, also those of locks and of what is being made."""
    folder = os.path.join(place.environment["XDG_DATA_HOME"], "glovebox", "snapshots")
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


@tap.case
def a_preparation_that_is_killed_leaves_nothing_or_all():
    with Project() as place:
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "mkdir /many; i=0; while [ $i -lt 300 ]; do echo x > /many/$i; i=$((i+1)); done"}))
        words = [PROGRAM, "exec", "-C", "project", "--base", "devcontainer", "--", "cat", "/many/299"]
        began = time.monotonic()
        assert tap.run(words, cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL).stdout == "x\n"
        whole, moments = time.monotonic() - began, 10
        for moment in range(moments):
            place.write(str(moment), "package-lock.json")
            before = {name for name in prepared(place) if name[0] != "."}
            with subprocess.Popen(words, cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                try:
                    process.wait(timeout=whole * moment / moments)
                except subprocess.TimeoutExpired:
                    process.kill()
                process.wait()
            made = {name for name in prepared(place) if name[0] != "."} - before
            done = tap.run(words, cwd=place.path, env=place.environment, stdin=subprocess.DEVNULL)
            assert done.stdout == "x\n" and (done.stderr == "") == bool(made), (moment, made, done)
        # What was killed behind the last step has left its lock.
        assert place.run("prune").returncode == 0
        assert [name for name in prepared(place) if name[0] == "."] == []


@tap.case
def a_preparation_on_a_full_disk_is_told_and_leaves_nothing():
    with Project() as place:
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "busybox head -c 3000000 /dev/zero > /big; mkdir /d; echo x > /d/1; echo x > /d/2"}))
        # Of bytes and of names: each step that makes a file is the first one for which there is no room.
        room = [f"size={size}" for size in ("8k", "2M", "4M", "5900k")] + [f"nr_inodes={count}" for count in range(3, 20)]
        script = """
cd "$1" || exit 9
for room in $2; do
    mkdir -p data && mount -t tmpfs -o "$room" none data || exit 9
    "$0" exec -C project --base devcontainer -- busybox wc -c /big 2> said > out; code=$?
    echo "$room $code $(find data -name 'devcontainer-*' | wc -l) $(ls -A data/glovebox/snapshots 2> /dev/null | grep -c '^[.]') $(tr '\\n' '|' < said)"
    mount -o remount,size=64M,nr_inodes=1000 data || exit 9
    "$0" exec -C project --base devcontainer -- busybox wc -c /big 2> said || { cat said; exit 9; }
    umount data
done
"""
        words = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        if subprocess.run([*words, "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True).returncode != 0:
            raise tap.Skip("no file system can be mounted here")
        done = tap.run([*words, "bash", "-c", script, PROGRAM, place.path, " ".join(room)], env={**place.environment, "XDG_DATA_HOME": os.path.join(place.path, "data")},
                       stdin=subprocess.DEVNULL)
        lines = done.stdout.splitlines()
        assert done.returncode == 0 and len(lines) == 2 * len(room), done
        codes = set()
        for line, again in zip(lines[::2], lines[1::2]):
            name, code, made, left, said = line.split(" ", 4)
            codes.add(code)
            assert again == "3000000 /big", (line, again)
            assert (code, made) == ("0", "1") or ((code, made) == ("125", "0") and "No space left on device" in said), line
            assert left == "0", (name, line)
        assert codes == {"0", "125"}, lines


@tap.case
def two_cells_at_once_run_the_commands_of_a_devcontainer_once():
    with Project() as place:
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "echo count >> counted; until busybox test -e go; do busybox sleep 0.05; done"}))

        def begin():
            return subprocess.Popen([PROGRAM, "exec", "-C", "project", "--base", "devcontainer", "--", "true"], cwd=place.path, env=place.environment,
                                    stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with begin() as one_process, begin() as other:
            lines = [one_process.stderr.readline(), other.stderr.readline()]
            assert sorted("waiting for it" in line for line in lines) == [False, True], lines
            place.write("", "go")
            assert (ends(one_process), ends(other)) == (0, 0)
        assert read(place.project, "counted") == "count\n"
        snapshots = os.path.join(place.environment["XDG_DATA_HOME"], "glovebox", "snapshots")
        assert not [name for name in os.listdir(snapshots) if name.startswith(".lock")]


@tap.case
def what_a_frozen_root_lacks_is_told():
    with Project() as place:
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "busybox mkfifo /pipe; echo x > /x"}))
        done = place.exec("devcontainer", "cat", "/x")
        assert (done.returncode, done.stdout) == (0, "x\n") and "1 files of the root are not in the snapshot" in done.stderr, done
        place.write(json.dumps({"image": "trial:1", "onCreateCommand": "cd /; for i in $(busybox seq 700); do mkdir dddd; cd dddd; done"}))
        done = place.exec("devcontainer", "true")
        assert done.returncode == 125 and "let the last of them remove it: more than" in done.stderr and " ... " in done.stderr, done


def random_layer(maker, known, modes):
    """A layer that changes what the layers below hold. KNOWN: path -> kind, as it is then; MODES: of folders."""
    entries, below = [], dict(known)
    for path in sorted(below, key=lambda _: maker.random())[:3]:
        if path in known and maker.random() < 0.5:
            folder, name = os.path.split(path)
            entries.append((os.path.join(folder, ".wh." + name), "file", ""))
            for other in [other for other in known if other == path or other.startswith(path + "/")]:
                del known[other]
    folders = [""] + [path for path, kind in known.items() if kind == "dir"]
    for _ in range(maker.randint(1, 12)):
        folder = maker.choice(folders)
        path = os.path.join(folder, maker.choice("abcdefgh"))
        kind = maker.choice(["file", "file", "dir", "link", "hard"])
        made = [name for name, what, *_ in entries if what == "file" and "/.wh." not in "/" + name]
        if path in known or any(path == name for name, *_ in entries) or f"{folder}/.wh.{path[-1]}".lstrip("/") in \
                [name for name, *_ in entries] or (folder and folder not in known):
            continue
        content = {"file": os.urandom(maker.randint(0, 40)).hex(), "dir": "", "link": maker.choice(["a", "../b", "/c", "nowhere"]),
                   "hard": maker.choice(made) if made else ""}[kind]
        if kind == "hard" and not made:
            continue
        mode = maker.choice([0o644, 0o755, 0o600, 0o700])
        entries.append((path, kind, content, {"mode": mode}))
        known[path] = kind
        modes[path] = mode
        if kind == "dir":
            folders.append(path)
    for path in [path for path, kind in known.items() if kind == "dir"]:
        if path in below and maker.random() < 0.15 and below[path] == "dir":
            gone = [other for other in below if other.startswith(path + "/") and other in known and
                    not any(name == other for name, *_ in entries)]
            entries.append((path, "dir", "", {"mode": modes[path]}))
            entries.append((path + "/.wh..wh..opq", "file", ""))
            for other in gone:
                known.pop(other, None)
    # A layer brings the folders above its names, as those that programs make do.
    above = {folder for name, *_ in entries for folder in parents(name)} - {name for name, *_ in entries}
    return [(folder, "dir", "", {"mode": modes[folder]}) for folder in sorted(above)] + entries


def parents(name):
    """The folders above NAME."""
    parts = name.split("/")[:-1]
    return ["/".join(parts[:count + 1]) for count in range(len(parts))]


LOOK = r"""
import os, stat, sys, json
found = {}
top = sys.argv[1]
for folder, names, files in os.walk(top):
    for name in names + files:
        path = os.path.join(folder, name)
        st = os.lstat(path)
        kind = stat.S_IFMT(st.st_mode)
        held = os.readlink(path) if stat.S_ISLNK(kind) else open(path).read() if stat.S_ISREG(kind) else ""
        mode = 0 if stat.S_ISLNK(kind) else stat.S_IMODE(st.st_mode) | (0o700 if stat.S_ISDIR(kind) else 0o600)
        found[os.path.relpath(path, top)] = [kind, mode, held]
print(json.dumps(found, sort_keys=True))
"""


@tap.case
def mounted_layers_show_what_umoci_unpacks():
    needs("umoci")
    needs("unshare")
    seed = int(os.environ.get("GLOVEBOX_TEST_SEED", "1"))
    for number in range(int(os.environ.get("GLOVEBOX_TEST_IMAGES", "12"))):
        maker = random.Random(seed * 1000 + number)
        with Place() as place:
            known, modes = {}, {}
            layers = [random_layer(maker, known, modes) for _ in range(maker.randint(1, 6))]
            place.layout.image("v1", [tar(layer) for layer in layers])
            place.pull()
            trees = place.trees()
            os.mkdir(os.path.join(place.path, "view"))
            # A single layer is no overlay: an empty one lies below.
            os.mkdir(os.path.join(place.path, "empty"))
            names = ":".join(trees[::-1] + [os.path.join(place.path, "empty")])
            seen = subprocess.run(["unshare", "-rm", "sh", "-c", 'mount -t overlay -o "$1" overlay "$2" && exec "$3" -c "$4" "$2"',
                                   "sh", f"userxattr,lowerdir={names}", os.path.join(place.path, "view"), sys.executable, LOOK],
                                  capture_output=True, text=True, check=False)
            if seen.returncode != 0 and "mount:" in seen.stderr:
                raise tap.Skip(f"no overlay can be mounted here: {seen.stderr.strip()}")
            assert seen.returncode == 0, (seed, number, seen, layers)
            done = subprocess.run(["umoci", "unpack", "--rootless", "--image", f"{place.layout.path}:v1",
                                   os.path.join(place.path, "bundle")], capture_output=True, text=True, check=False,
                                  env=place.environment)
            assert done.returncode == 0, done
            # It leaves folders that their owner cannot read.
            theirs = subprocess.run(["unshare", "-r", sys.executable, "-c", LOOK, os.path.join(place.path, "bundle", "rootfs")],
                                    capture_output=True, text=True, check=True)
            ours, theirs = json.loads(seen.stdout), json.loads(theirs.stdout)
            differ = {path for path in {*ours, *theirs} if ours.get(path) != theirs.get(path)}
            assert not differ, (seed, number, sorted(differ), [(ours.get(path), theirs.get(path)) for path in differ], layers)


tap.play()
