#!/usr/bin/env python3
"""Cells on a base: root file systems made of programs of this machine, and one that lies in wait."""
import base64
import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(sys.path[0], "..", "serve"))
sys.path.insert(0, os.path.join(sys.path[0], "..", "bases"))
import rootfs  # noqa: E402
import tap  # noqa: E402
import wire  # noqa: E402
from layouts import Layout  # noqa: E402

GLOVEBOX = os.path.abspath(sys.argv[2])  # it is started in another folder
BUSYBOX = "/bin/busybox"
APPLETS = "sh ls cat id mkdir chown touch ps env pwd echo mount mv rm ln readlink wc".split()


class Place:
    """A workspace, a home, folders for bases, and how glovebox is run in them."""

    def __init__(self, root):
        self.root = root
        self.work, self.home = os.path.join(root, "work"), os.path.join(root, "home")
        for folder in (self.work, self.home):
            os.mkdir(folder)
        os.chmod(root, 0o755)

    def put(self, name, text, mode=0o644):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def environment(self, more=None):
        known = {name: os.environ[name] for name in ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ}
        return {**known, "HOME": self.home, "LANG": "C.UTF-8", **(more or {})}

    def run(self, *words, environment=None, timeout=240, stdin=subprocess.DEVNULL, **options):
        return subprocess.run([GLOVEBOX, *words], cwd=self.work, env=self.environment(environment), stdin=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, check=False,
                              **options)

    def shell(self, base, script, *words, program="sh", **options):
        """What SCRIPT says in a cell on BASE, which has to end with 0."""
        done = self.run("exec", "--base", base, *words, "--", program, "-c", script, **options)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return done.stdout

    def small(self):
        """A base of busybox alone, which has no C library."""
        if not os.access(BUSYBOX, os.X_OK) or "statically linked" not in self.kind(BUSYBOX):
            raise tap.Skip("busybox-static is not installed")
        folder = os.path.join(self.root, "small")
        if not os.path.isdir(folder):
            os.makedirs(os.path.join(folder, "bin"))
            shutil.copy(BUSYBOX, os.path.join(folder, "bin/busybox"))
            for name in APPLETS:
                os.symlink("busybox", os.path.join(folder, "bin", name))
        return "rootfs:" + folder

    @staticmethod
    def kind(program):
        done = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return "statically linked" if done.returncode != 0 or "statically" in done.stdout else "dynamic"


@contextlib.contextmanager
def place():
    root = tempfile.mkdtemp(prefix="glovebox-bases-", dir="/tmp")
    try:
        yield Place(root)
    finally:
        shutil.rmtree(root)


@tap.case
def no_program_moves_the_folder_above_the_workspace():
    with place() as here:
        script = f"mv {here.root} {here.root}.gone 2>/dev/null; ls -d {here.work}; mkdir {here.root}/beside && echo made"
        assert here.shell(here.small(), script) == f"{here.work}\nmade\n"


@tap.case
def a_base_without_a_library_is_a_whole_root():
    """A base without a C library is a whole root, and the workspace is at its place."""
    with place() as p:
        base = p.small()
        p.put("work/here", "mine\n")
        said = p.shell(base, "id; pwd; cat here; echo new > there; echo x > /top; mkdir /usr; cat /top; ls /; echo $HOME")
        lines = said.split("\n")
        assert lines[0].startswith("uid=0") and lines[1] == p.work and lines[2:4] == ["mine", "x"], said
        assert "home" not in lines and "lib" not in lines, said
        assert lines[-2] == "/root", said
        with open(os.path.join(p.work, "there"), encoding="utf-8") as file:
            assert file.read() == "new\n"
        # All else went with the cell, and the base is as it was.
        assert sorted(os.listdir(os.path.join(p.root, "small"))) == ["bin"]
        assert "top" not in p.shell(base, "ls /")


@tap.case
def our_own_program_and_the_helpers_of_root_run_in_any_base():
    """Our own program runs in a base without a C library, and root's helpers run what they are given."""
    with place() as p:
        base = p.small()
        assert p.shell(base, "glovebox --version").startswith("glovebox ")
        assert p.shell(base, "sudo -n -u root A=b sh -c 'echo $A; id'").startswith("b\nuid=0")
        assert p.shell(base, "gosu root:root echo fine") == "fine\n"
        done = p.run("exec", "--base", base, "--", "sudo", "-u", "joe", "id")
        assert done.returncode == 1 and 'this cell has one user; "joe" needs another base' in done.stderr, done


@tap.case
def root_changes_owners_and_modes_as_far_as_installers_look():
    """Root of a base changes owners, users and set-id bits as far as its installers look."""
    with place() as p:
        base = p.small()
        said = p.shell(base, "cp /bin/busybox /root/x; busybox chmod 4755 /root/x; busybox stat -c %a /root/x;"
                             "chown 5:6 /root/x && busybox stat -c %u:%g /root/x; busybox mknod /root/d c 1 3 && ls /root")
        assert said == "755\n0:0\nx\n", said
        # A path by a descriptor is one of the program's.
        said = p.shell(base, "mkdir d; touch d/x y; exec 3<d 4<y; for at in /proc/self/fd/4 /dev/fd/3/x /proc/thread-self/fd/4 /proc/self/fd/3/x; do"
                             " busybox chmod 4711 $at; done; busybox stat -c %a d/x y; rm -r d y")
        assert said == "711\n711\n", said
        # In the workspace as well: no file of this machine gets such a bit, or another owner.
        p.shell(base, "cp /bin/busybox y; busybox chmod 6755 y; chown 1:1 y")
        state = os.stat(os.path.join(p.work, "y"))
        assert state.st_mode & 0o7777 == 0o755 and state.st_uid == os.stat(p.work).st_uid, state


@tap.case
def a_plain_user_is_told_the_truth():
    """`cell_user` plain: the caller's own number, and no call is pretended."""
    with place() as p:
        base = p.small()
        policy = p.put("policy.json", json.dumps({"write": ["."], "cell_base": base, "cell_user": "plain"}))
        done = p.run("exec", "--policy", policy, "--", "sh", "-c", "id; chown 1:1 /bin/sh")
        assert not done.stdout.startswith("uid=0") and done.returncode != 0, done


@tap.case
def a_base_in_a_folder_that_may_be_written_is_read_only_there():
    """A base in the workspace, or in another folder to write, never changes, whatever is moved above it."""
    with place() as p:
        base = p.small()[len("rootfs:"):]
        inside = os.path.join(p.work, "a/b/base")
        os.makedirs(os.path.dirname(inside))
        shutil.move(base, inside)
        script = (f"echo x > {inside}/top; echo x > {inside}/bin/sh; rm {inside}/bin/ls; mv {inside} {p.work}/a/b/gone;"
                  f"busybox chmod 700 {inside}; mv {p.work}/a/b {p.work}/a/gone; mv {p.work}/a {p.work}/gone;"
                  f"mv {inside}/bin {inside}/gone; echo x > /top; echo x > a/new; cat /top")
        assert p.shell("rootfs:" + inside, script) == "x\n"
        assert p.shell("rootfs:a/b/base", "echo x > a/b/base/bin/new; ls a/b/base") == "bin\n"
        policy = p.put("policy.json", json.dumps({"write": [".", p.root], "cell_base": "rootfs:" + inside}))
        done = p.run("exec", "--policy", policy, "--", "sh", "-c", script + f"; mv {p.work} {p.root}/gone; echo x > {inside}/bin/new")
        assert done.returncode != 0 and done.stdout == "x\n", done
        assert sorted(os.listdir(inside)) == ["bin"] and sorted(os.listdir(inside + "/bin")) == sorted([*APPLETS, "busybox"])
        assert sorted(os.listdir(p.work)) == ["a"] and sorted(os.listdir(p.work + "/a")) == ["b", "new"], os.listdir(p.work)


@tap.case
def agents_that_work_for_another_work_in_its_base():
    """An agent that works for the agent of `run --base` works in that base, whether its caller has hands or none."""
    with place() as p:
        base = p.small()
        p.put("small/marker", "of the base\n")
        delegates = [{"calls": [{"tool": "delegate_agent", "arguments": {"agent": "worker", "task": "Look."}}]}, {"text": "Seen."}]
        looks = [{"calls": [{"tool": "read_file", "arguments": {"path": "/marker"}}]}, {"text": "Looked."}]
        replays = {name: "replay:" + p.put(name + ".json", json.dumps({"name": name, "turns": turns}))
                   for name, turns in (("delegates", delegates), ("looks", looks))}
        agents = {"worker": {"model": replays["looks"], "tools": ["read_file"]}}
        for name, tools in (("boss", ["delegate_agent"]), ("hand", ["delegate_agent", "read_file"])):
            agents[name] = {"model": replays["delegates"], "tools": tools, "may_delegate_to": ["worker"]}
        config = p.put("config.json", json.dumps({"agents": agents}), 0o600)
        for name, bases in (("boss", ["--base", base]), ("hand", ["--base", base]), ("hand", []), ("boss", [])):
            done = p.run("run", "--config", config, "--agent", name, "--json", *bases, "Have it looked at.")
            events = [json.loads(line) for line in done.stdout.splitlines()]
            inner = [event["event_of"] for event in events if event["event"] == "child"]
            texts = [event["text"] for event in inner if event["event"] == "tool_ended" and event["tool"] == "read_file"]
            assert len(texts) == 1 and ("of the base" in texts[0]) == bool(bases), (name, bases, texts, done.stderr)


@tap.case
def a_delegate_keeps_its_own_base_where_its_caller_has_none():
    """A delegate keeps the base of its entry on this machine's root, but no folder that its caller may not read."""
    with place() as p:
        base = p.small()
        p.put("small/marker", "of the base\n")
        delegates = [{"calls": [{"tool": "delegate_agent", "arguments": {"agent": "worker", "task": "Look."}}]}, {"text": "Seen."}]
        looks = [{"calls": [{"tool": "read_file", "arguments": {"path": "/marker"}}]}, {"text": "Looked."}]
        replays = {name: "replay:" + p.put(name + ".json", json.dumps({"name": name, "turns": turns}))
                   for name, turns in (("delegates", delegates), ("looks", looks))}
        worker = {"model": replays["looks"], "tools": ["read_file"], "cell_base": base}
        for reads, own, sees in ((["."], [], False), ([".", base[len("rootfs:"):]], [], True), ([".", p.root + "/small"], ["--base", "host"], False)):
            hand = {"model": replays["delegates"], "tools": ["delegate_agent", "read_file"], "may_delegate_to": ["worker"], "read": reads}
            config = p.put("config.json", json.dumps({"agents": {"worker": worker, "hand": hand}}), 0o600)
            done = p.run("run", "--config", config, "--agent", "hand", "--json", *own, "Have it looked at.")
            assert ("of the base" in done.stdout) == sees, (reads, own, done.stdout, done.stderr)
            assert ("may not read this folder" in done.stdout + done.stderr) == (not sees and not own), (reads, done.stdout, done.stderr)


def ask(p, requests):
    return wire.ask(GLOVEBOX, p.work, p.environment(), requests)


def out_of(answer):
    return base64.b64decode(answer["result"]["stdout"]).decode()


@tap.case
def a_layer_over_a_base_has_the_workspace_alone():
    """exec --review --base: the workspace's changes are kept, shown, landed, taken back and dropped; those of the root go."""
    with place() as p:
        base = p.small()
        p.put("work/a", "one\n")

        def read(name):
            with open(os.path.join(p.work, name), encoding="utf-8") as file:
                return file.read()

        def layered(script, *words, review="--review"):
            done = p.run("exec", review, "--base", base, *words, "--", "sh", "-c", script)
            assert done.returncode == 0, done
            return done
        layered("echo two > a; echo x > b; echo y > /top; mkdir /etc/new")
        shown = json.loads(p.run("review", "--json").stdout)
        assert [(row["path"], row["kind"]) for row in shown["changes"]] == [("a", "changed"), ("b", "added")], shown
        assert read("a") == "one\n" and os.listdir(p.work) == ["a"]
        # Going on, with the base and without it: the layer has no root.
        own = f"--review={shown['id']}"
        assert layered("cat a b; echo three > c; [ -e /top ] || echo fresh", review=own).stdout == "two\nx\nfresh\n"
        done = p.run("exec", own, "--", "cat", "a", "c")
        assert done.stdout == "two\nthree\n", done
        # Killed while it works: the layer stays, and is gone on with.
        reader, writer = os.pipe()
        with subprocess.Popen([GLOVEBOX, "exec", own, "--base", base, "--", "sh", "-c", "echo four > d; echo in; cat"], cwd=p.work, env=p.environment(),
                              stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout.readline() == b"in\n"
            process.kill()
        os.close(reader)
        os.close(writer)
        for _ in range(1000):
            done = p.run("exec", own, "--base", base, "--", "cat", "d")
            if "in use" not in done.stderr:
                break
        assert done.stdout == "four\n" and os.listdir(p.work) == ["a"], done
        done = p.run("land", "--yes")
        assert done.returncode == 0 and [read(name) for name in "abcd"] == ["two\n", "x\n", "three\n", "four\n"], done
        done = p.run("undo")
        assert done.returncode == 0 and read("a") == "one\n" and os.listdir(p.work) == ["a"], done
        done = p.run("drop", "--yes", "--id", shown["id"])
        assert done.returncode == 0 and os.listdir(p.work) == ["a"], done
        assert sorted(os.listdir(os.path.join(p.root, "small"))) == ["bin"]


@tap.case
def a_copy_over_a_base_is_reviewed_and_landed():
    """Where the kernel lays no layer over the workspace, the copy of it is used in a cell on a base as well."""
    with place() as p:
        base = p.small()
        p.put("stack/a", "one\n")
        script = p.put("script", f"""
{GLOVEBOX} exec --review --base {base} -- sh -c 'echo two > a; echo x > b; echo y > /top' 2>&1 | grep -c 'in a copy'
cat a; {GLOVEBOX} review --stat | tail -1; {GLOVEBOX} land --yes > /dev/null; cat a b; {GLOVEBOX} undo > /dev/null; cat a; ls
""")
        stacked = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stacked")
        done = subprocess.run(["unshare", "-Urm", stacked, p.root + "/stack", script], env=p.environment(), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=240, check=False)
        if done.stdout == "":
            raise tap.Skip("no overlay of an overlay can be mounted here: " + done.stderr[-200:])
        assert done.stdout == "1\none\n  1 file changed, 1 added (6 B)\ntwo\nx\none\na\n", done


@tap.case
def a_snapshot_finds_the_folder_below_it_from_everywhere():
    """A snapshot over a folder that was named from another one lies over that, and over no other of the same name."""
    with place() as p:
        base = p.small()
        p.put("small/mark", "right\n")
        other = os.path.join(p.root, "other")
        shutil.copytree(base[len("rootfs:"):], os.path.join(other, "small"), symlinks=True)
        p.put("other/small/mark", "wrong\n")
        os.mkdir(os.path.join(other, "work"))
        opened, ran, frozen = ask(p, [("cell/open", {"base": "rootfs:../small", "policy": {"write": ["."]}}),
                                      ("exec/run", {"cell": "c1", "argv": ["sh", "-c", "echo new > /made"]}), ("cell/snapshot", {"cell": "c1", "name": "one"})])
        assert opened["result"]["base_word"] == "rootfs:../small" and ran["result"]["exit"] == 0, (opened, ran)
        assert frozen["result"]["over"] == base, frozen
        looks = f"cd {other}/work && exec {GLOVEBOX} exec --base snapshot:one -- cat /mark /made"
        done = subprocess.run(["sh", "-c", looks], env=p.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
                              check=False)
        assert done.stdout == "right\nnew\n", done
        # A folder has no digest, so what lies over it has none.
        shown = json.loads(p.run("base", "show", "snapshot:one", "--json").stdout)
        assert shown["over"] == base and "digest" not in shown, shown
        # One that was made when the word was kept as it was typed is refused.
        meta = os.path.join(p.home, ".local/share/glovebox/snapshots/one/meta.json")
        with open(meta, encoding="utf-8") as file:
            told = json.load(file)
        p.put(os.path.relpath(meta, p.root), json.dumps({**told, "base": "rootfs:../small"}))
        done = p.run("exec", "--base", "snapshot:one", "--", "true")
        assert done.returncode == 125 and "does not say where that is" in done.stderr, done


@tap.case
def a_snapshot_of_a_cell_on_a_base_is_a_base():
    """A snapshot has what a cell changed of its root: new, changed and removed files, hidden folders, links."""
    with place() as p:
        base = p.small()
        p.put("small/etc/old/a", "a\n")
        p.put("small/etc/gone", "x\n")
        changes = ("echo new > /made; echo two > /etc/two; rm /etc/gone /bin/wc; rm -r /etc/old; mkdir /etc/old; echo b > /etc/old/b;"
                   "ln -s made /link; busybox ln /made /same; busybox mkfifo /pipe; echo x > /.wh.mine; echo kept > here")
        names = "for name in gone old two; do [ -e /etc/$name ] && echo $name; done"
        looks = f"cat /made /etc/two /link /etc/old/*; {names}; ls /bin/wc; echo more > /more"
        opened, ran, frozen, again, seen, info = ask(p, [
            ("cell/open", {"workspace": p.work, "base": base, "policy": {"write": ["."]}}),
            ("exec/run", {"cell": "c1", "argv": ["sh", "-c", changes]}), ("cell/snapshot", {"cell": "c1", "name": "one"}), ("cell/open", {"workspace": {"snapshot": "one"}, "policy": {"write": ["."]}}),
            ("exec/run", {"cell": "c2", "argv": ["sh", "-c", "cat here /made"]}), ("cell/info", {"cell": "c2"})])
        assert opened["result"]["base_word"] == base and ran["result"]["exit"] == 0, (opened, ran)
        assert frozen["result"]["over"] == base and frozen["result"]["skipped"] == 2, frozen
        assert again["result"]["base_word"] == "snapshot:one" and "base" not in again["result"], again
        assert out_of(seen) == "kept\nnew\n" and info["result"]["base_word"] == "snapshot:one", (seen, info)
        for _ in range(2):
            done = p.run("exec", "--base", "snapshot:one", "--", "sh", "-c", looks)
            assert done.stdout == "new\ntwo\nnew\nb\nold\ntwo\n", done
        policy = p.put("policy.json", json.dumps({"write": ["."], "cell_base": "snapshot:one"}))
        done = p.run("exec", "--policy", policy, "--json", os.path.join(p.root, "report"), "--", "sh", "-c", "cat /made; ls /more")
        with open(os.path.join(p.root, "report"), encoding="utf-8") as file:
            told = json.load(file)["base"]
        assert done.stdout == "new\n" and told == {"word": "snapshot:one"}, (done, told)
        # One over the other, and one of a cell without a base.
        asked = ask(p, [("cell/open", {"base": "snapshot:one", "policy": {"write": ["."]}}),
                        ("exec/run", {"cell": "c1", "argv": ["sh", "-c", "echo three > /three; rm /etc/two"]}),
                        ("cell/snapshot", {"cell": "c1", "name": "two"}), ("cell/open", {"policy": {"write": ["."]}}),
                        ("cell/snapshot", {"cell": "c2", "name": "plain"})])
        assert "over" not in asked[4]["result"], asked
        assert p.shell("snapshot:two", f"cat /made /three; {names}; true") == "new\nthree\nold\n"
        listed = {row["base"]: row for row in json.loads(p.run("base", "list", "--json").stdout)}
        assert listed["snapshot:two"]["over"] == "snapshot:one" and "over" not in listed["snapshot:plain"], listed
        shown = json.loads(p.run("base", "show", "snapshot:two", "--json").stdout)
        assert shown["kind"] == "snapshot" and shown["over"] == "snapshot:one" and len(shown["folders"]) == 3, shown
        for word, part in (("snapshot:plain", "no root"), ("snapshot:none", "there is no snapshot none"), ("snapshot:../x", "a snapshot's name"),
                           ("snapshot:", "a snapshot's name")):
            done = p.run("exec", "--base", word, "--", "true")
            assert done.returncode == 125 and part in done.stderr and done.stderr.count("\n") == 1, (word, done)
        # What it lies over has to be there, and it goes only when nobody is on it.
        with subprocess.Popen([GLOVEBOX, "exec", "--base", "snapshot:two", "--", "cat"], cwd=p.work, env=p.environment(),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cell:
            cell.stdin.write("ready\n")
            cell.stdin.flush()
            assert cell.stdout.readline() == "ready\n"
            for name in ("one", "two"):
                assert "a cell works over it" in p.run("base", "prune", "--snapshot", name).stderr, name
            cell.stdin.close()
        assert p.run("base", "prune", "--snapshot", "one").returncode == 0
        done = p.run("exec", "--base", "snapshot:two", "--", "true")
        assert done.returncode == 125 and "lies over snapshot:one" in done.stderr, done


@tap.case
def a_folder_to_write_in_a_base_is_refused():
    """A folder that lies in the base cannot be written, so it is no workspace of a cell on that base."""
    with place() as p:
        base = p.small()[len("rootfs:"):]
        os.mkdir(os.path.join(base, "src"))
        done = p.run("exec", "--base", "rootfs:" + base, "-C", base + "/src", "--", "true")
        assert done.returncode == 125 and "lies in the base, which no cell changes" in done.stderr, done


@tap.case
def a_base_that_lies_in_wait_leads_nowhere():
    """A base that lies in wait leads nowhere, and the cell is built."""
    with place() as p:
        base = p.small()[len("rootfs:"):]
        p.put("home/secret", "secret\n")
        for name in ("proc", "dev", "tmp", "run", "etc", "sys", "root"):
            os.symlink(p.home, os.path.join(base, name))
        os.symlink("loop", os.path.join(base, "loop"))
        os.symlink(p.home, os.path.join(base, "home"))
        os.symlink("../" * 20 + p.home.lstrip("/") + "/secret", os.path.join(base, "bait"))
        said = p.shell("rootfs:" + base, "ls -A /proc/self /dev /run /etc | wc -l; cat /bait /home/secret; "
                                         "echo x > /etc/x; echo x > /root/x; echo x > /tmp/x; echo done")
        assert said.endswith("done\n") and "secret" not in said, said
        assert os.listdir(p.home) == ["secret"] or sorted(os.listdir(p.home)) == [".local", "secret"], os.listdir(p.home)
        os.remove(os.path.join(base, "etc"))
        os.mkdir(os.path.join(base, "etc"))
        os.mkfifo(os.path.join(base, "etc/passwd"))
        os.mkfifo(os.path.join(base, "etc/resolv.conf"))
        os.mkdir(os.path.join(base, "etc/hosts"))
        os.symlink(p.home, os.path.join(base, "etc/apt"))
        assert "localhost" in p.shell("rootfs:" + base, "cat /etc/hosts")
        # A path of the workspace's own in the base is covered, whatever it is.
        os.remove(os.path.join(base, "tmp"))
        with open(os.path.join(base, "tmp"), "w", encoding="utf-8"):
            pass
        assert p.shell("rootfs:" + base, "pwd") == p.work + "\n"


@tap.case
def no_program_moves_the_places_of_mounts():
    """No program moves or covers the places of mounts, nor adds to what is ours."""
    with place() as p:
        base = p.small()
        script = ("for at in /proc /dev /tmp /run/glovebox; do mv $at /away 2>/dev/null; rm -r $at/nothing 2>/dev/null; done;"
                  "for at in /run/glovebox/bin/x /dev/x /run/glovebox/lib/x; do ( echo > $at ) 2>/dev/null && echo $at; done;"
                  f"mv {os.path.dirname(p.work)} /elsewhere 2>/dev/null; echo still > {p.work}/still; ls /run")
        assert p.shell(base, script) == "glovebox\n"
        assert os.path.exists(os.path.join(p.work, "still"))


@tap.case
def what_a_policy_says_of_folders_outside_holds_in_a_base():
    """What a policy says of this machine's folders holds in a base."""
    with place() as p:
        base = p.small()
        p.put("other/file", "read me\n")
        p.put("work/closed/key", "hidden\n")
        p.put("unnamed/file", "not for you\n")
        os.makedirs(os.path.join(p.work, ".git/hooks"))
        for name, text in (("HEAD", "ref: refs/heads/main\n"), ("config", "[core]\n\trepositoryformatversion = 0\n")):
            p.put("work/.git/" + name, text)
        os.makedirs(os.path.join(p.work, ".git/objects"))
        os.makedirs(os.path.join(p.work, ".git/refs"))
        other, unnamed = os.path.join(p.root, "other"), os.path.join(p.root, "unnamed")
        policy = p.put("policy.json", json.dumps({"write": ["."], "read": [".", other], "blocked": ["closed"],
                                                  "cell_base": base}))
        said = p.run("exec", "--policy", policy, "--", "sh", "-c",
                     f"cat {other}/file; echo x > {other}/file; rm {other}/file; touch {other}/new; busybox chmod 600 {other}/file;"
                     f"cat closed/key {unnamed}/file; echo x > .git/hooks/post-checkout; echo x >> .git/config;"
                     "mount -t tmpfs none /bin; busybox chroot /bin true; busybox unshare -m true; echo end").stdout
        assert said == "read me\nend\n", said
        with open(os.path.join(p.root, "other/file"), encoding="utf-8") as file:
            assert file.read() == "read me\n"
        assert os.stat(os.path.join(other, "file")).st_mode & 0o777 == 0o644 and os.listdir(other) == ["file"]
        assert not os.listdir(os.path.join(p.work, ".git/hooks"))


@tap.case
def a_base_has_no_network_and_no_process_of_this_machine():
    """A cell on a base has no network, and no process of this machine."""
    with place() as p:
        base = p.small()
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port = listener.getsockname()[1]
            said = p.shell(base, f"busybox nc 127.0.0.1 {port} </dev/null && echo through; busybox ps | wc -l")
        assert "through" not in said and int(said.split()[-1]) < 8, said


@tap.case
def file_tools_write_in_the_base_and_nothing_of_it_is_undone():
    """File tools write in the base, and what they wrote there is not undone on this machine."""
    with place() as p:
        base = p.small()
        done = p.run("tool", "call", "--base", base, "write_file", json.dumps({"path": "/etc/new", "content": "x\n"}))
        assert done.returncode == 0, done
        assert "/etc/new existed in the cell only" in done.stdout and not os.path.exists("/etc/new"), done
        done = p.run("tool", "call", "--base", base, "read_file", json.dumps({"path": "/bin/nothing"}))
        assert done.returncode != 0, done
        done = p.run("tool", "call", "--base", base, "write_file", json.dumps({"path": "made", "content": "x\n"}))
        assert done.returncode == 0 and os.path.exists(os.path.join(p.work, "made")), done
        done = p.run("undo", "1")
        assert "Nothing was undone" in done.stdout + done.stderr, done
        done = p.run("undo", "2")
        assert done.returncode == 0 and not os.path.exists(os.path.join(p.work, "made")), done


@tap.case
def words_that_are_no_base_are_refused_with_a_sentence():
    """Words that are no base, and folders that no cell gets as its root, are refused with a sentence."""
    with place() as p:
        for word, part in (("nothing", "base"), ("rootfs:" + p.root + "/missing", "No such file"),
                           ("rootfs:/", "machine"), ("rootfs:" + p.home, "is a home"), ("rootfs:/proc", "of this system"),
                           ("rootfs:" + p.put("file", ""), "folder")):
            done = p.run("exec", "--base", word, "--", "true")
            assert done.returncode == 125 and part in done.stderr and done.stderr.count("\n") == 1, (word, done)


@tap.case
def no_base_shows_what_is_hidden_from_every_agent():
    """No base shows our own folders, a person's keys, or what the policy blocks."""
    with place() as p:
        base = p.small()
        for name in (".local/state/glovebox/x", ".config/glovebox/login.json", ".local/share/glovebox/marks.key", ".ssh/id"):
            p.put("home/" + name, "secret\n")
        for name in (".local/state/glovebox", ".local/state", ".config", ".local/share", ".ssh"):
            done = p.run("exec", "--base", f"rootfs:{p.home}/{name}", "--", "true")
            assert done.returncode == 125 and "is hidden from every agent" in done.stderr, (name, done)
        done = p.run("tool", "call", "--base", f"rootfs:{p.home}/.local/share", "read_file", '{"path": "/glovebox/marks.key"}')
        assert "secret" not in done.stdout and "is hidden from every agent" in done.stderr, done
        for blocked in (p.root + "/small/bin", p.root + "/small"):
            policy = p.put("policy.json", json.dumps({"write": ["."], "blocked": [blocked], "cell_base": base}))
            done = p.run("exec", "--policy", policy, "--", "true")
            assert done.returncode == 125 and "is hidden from every agent" in done.stderr, (blocked, done)
        # A folder of the person's own that holds none of this is a base as before.
        os.rename(os.path.join(p.root, "small"), os.path.join(p.home, "small"))
        assert p.shell(f"rootfs:{p.home}/small", "echo fine") == "fine\n"


@tap.case
def file_tools_read_nothing_of_the_worker():
    """File tools read nothing of the worker's own /proc in a base; programs have a /proc of their own."""
    with place() as p:
        base = p.small()
        for path in ("/proc/self/maps", "/proc/self/status", "/proc/1/cmdline"):
            done = p.run("tool", "call", "--base", base, "read_file", json.dumps({"path": path}))
            assert done.returncode != 0 and "glovebox" not in done.stdout, done
        assert p.shell(base, "cat /proc/self/comm") == "cat\n"


@tap.case
def the_engine_opens_cells_on_a_base():
    """The engine of `serve` opens a cell on a base, which begins where the base says."""
    with place() as p:
        base = p.small()
        requests = [{"id": 1, "method": "hello", "params": {"version": 1}},
                    {"id": 2, "method": "cell/open", "params": {"base": base, "policy": {"write": ["."]}}},
                    {"id": 3, "method": "exec/run", "params": {"cell": "c1", "argv": ["sh", "-c", "pwd; id"]}},
                    {"id": 4, "method": "cell/open", "params": {"base": "rootfs:/missing"}}]
        process = subprocess.Popen([GLOVEBOX, "serve"], cwd=p.work, env=p.environment(),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        answers = {}
        try:
            for request in requests:
                process.stdin.write(json.dumps(dict(request, jsonrpc="2.0")) + "\n")
                process.stdin.flush()
                while request["id"] not in answers:
                    answer = json.loads(process.stdout.readline())
                    answers[answer.get("id")] = answer
        finally:
            process.stdin.close()
            process.wait(timeout=60)
            process.stdout.close()
        assert answers[2]["result"]["folder"] == "/", answers
        assert base64.b64decode(answers[3]["result"]["stdout"]).startswith(b"/\nuid=0"), answers
        assert "No such file" in answers[4]["error"]["message"], answers


# Attacks on what belongs to the base itself, and calls that root's programs are told to have worked.
OF_THE_BASE = {
    "chmod u+s by the program", "chmod g+s of a folder", "reads the passwords", "reads /root", "reads /var", "writes into /usr",
    "writes into /etc", "changes /etc/passwd", "makes a file in the root of the view", "makes a device",
    "makes a block device", "makes the device of memory", "makes a device in /dev", "makes a device in /tmp",
    "lists the homes of others", "writes into the libraries of the system", "writes /opt",
    "preloads a library into every program", "plants a job of cron", "plants a job in the spool", "changes who may log in",
    "changes the mode of the root of the view", "gives a file away"}


@tap.case
def what_was_done_on_a_base_that_is_gone_can_be_undone_and_landed():
    with place() as p:
        base = p.small()
        config = p.put("config.json", json.dumps({"agents": {"default": {"write": ["."], "cell_base": base}}}))
        os.chmod(config, 0o600)
        assert p.run("tool", "call", "--config", config, "write_file", '{"path": "one", "content": "1\\n"}').returncode == 0
        assert p.run("exec", "--config", config, "--review", "--", "sh", "-c", "echo 2 > two").returncode == 0
        os.rename(os.path.join(p.root, "small"), os.path.join(p.root, "gone"))
        for words, there in ((("undo",), []), (("review",), []), (("land",), ["two"]), (("undo",), [])):
            done = p.run(*words, "--config", config)
            assert done.returncode == 0 and sorted(os.listdir(p.work)) == there, (words, done, os.listdir(p.work))
        done = p.run("exec", "--config", config, "--", "true")
        assert done.returncode == 125 and "No such file" in done.stderr, done


@tap.case
def attacks_find_the_base_that_is_named():
    """A stage has a home and a workspace of its own: images and relative words are those of the person."""
    with place() as p:
        for word, part in (("image:nope", "is not in the cache; run glovebox base pull image:nope"), ("nope", "it is no base"),
                           ("rootfs:nope", "No such file"), ("devcontainer", "needs a workspace")):
            done = p.run("doctor", "--attack", "--base", word)
            assert done.returncode == 5 and done.stdout == "" and part in done.stderr, (word, done)
        p.small()
        done = p.run("doctor", "--attack", "--base", "rootfs:../small")
        assert done.returncode == 5 and "has no bash" in done.stderr, done
        p.put("small/bin/bash", '#!/bin/sh\nexec /bin/sh "$@"\n', 0o755)
        layout = Layout(os.path.join(p.root, "layout"))
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as archive:
            archive.add(os.path.join(p.root, "small"), arcname=".")
        layout.image("v1", [made.getvalue()])
        assert p.run("base", "pull", "oci:" + layout.path + ":v1").returncode == 0
        for word in ("rootfs:../small", "oci:../layout:v1"):
            done = p.run("doctor", "--attack", "--json", "--group", "machine", "--base", word)
            assert json.loads(done.stdout)["shown"] > 0, (word, done)


@tap.plain_case
def no_attack_reaches_out_of_a_cell_on_a_base():
    """The shipped attacks get through only where they stay in the base."""
    if not rootfs.which("git"):
        raise tap.Skip("git is not installed")
    with place() as p:
        made = debian_place(p)
        made.add_git()
        done = p.run("doctor", "--attack", "--json", "--base", "rootfs:" + made.root, timeout=1500)
        report = json.loads(done.stdout)
        assert set(report["through"]) <= OF_THE_BASE, set(report["through"]) - OF_THE_BASE
        assert report["held"] > 200, report


def debian_place(p):
    if not rootfs.which("dpkg-deb"):
        raise tap.Skip("dpkg is not installed")
    return rootfs.debian(os.path.join(p.root, "debian"))


INSTALLS = """
set -e
dpkg -i greet_1.0_all.deb >/dev/null
greet
stat -c %a /usr/bin/greet
dpkg -r greet >/dev/null
hash -r; ! command -v greet
mkdir -p t/a; echo 1 > t/a/b; cd t
tar --owner=7 --group=8 -cf x.tar a; rm -r a; tar -xpf x.tar --same-owner; cat a/b
install -o 5 -g 6 -m 2755 x.tar y; stat -c %a y
chgrp mail y
"""
ADDS_USERS = """
useradd -m joe && grep -c joe /etc/passwd && ls -d /home/joe
setpriv --reuid=1000 --regid=1000 --clear-groups echo as 1000
"""
USES_APT = """
echo "deb [trusted=yes] file:$PWD/repo ./" > /etc/apt/sources.list
apt-get -qq update && apt-get -qq install -y greet >/dev/null && greet && apt-get -qq remove -y greet >/dev/null
"""


@tap.case
def package_managers_work_as_root_in_a_base():
    """Dpkg, tar, install, useradd, setpriv and apt-get work as root in a base."""
    with place() as p:
        base = "rootfs:" + debian_place(p).root
        made = rootfs.package(p.root, "greet", {"usr/bin/greet": ("#!/bin/sh\necho greetings\n", 0o4755),
                                                "var/mail/box": ("x\n", 0o2660)},
                              {"postinst": "#!/bin/sh\nset -e\nchown root:mail /var/mail/box\n"})
        shutil.copy(made, p.work)
        assert p.shell(base, INSTALLS, program="bash") == "greetings\n755\n1\n755\n"
        if rootfs.which("useradd") and rootfs.which("setpriv"):
            assert p.shell(base, ADDS_USERS, program="bash").split("\n")[:3] == ["1", "/home/joe", "as 1000"]
        if rootfs.which("apt-get"):
            os.mkdir(os.path.join(p.work, "repo"))
            shutil.copy(made, os.path.join(p.work, "repo"))
            digest = subprocess.run(["sha256sum", made], check=True, stdout=subprocess.PIPE, text=True).stdout.split()[0]
            p.put("work/repo/Packages", f"Package: greet\nVersion: 1.0\nArchitecture: all\nMaintainer: n <n@example.org>\n"
                                        f"Description: a test\nFilename: ./{os.path.basename(made)}\n"
                                        f"Size: {os.path.getsize(made)}\nSHA256: {digest}\n")
            assert "greetings\n" in p.shell(base, USES_APT, program="bash")


def repository(p):
    """A repository as workspace, with a file, a test and a hidden file."""
    if not rootfs.which("git"):
        raise tap.Skip("git is not installed")
    p.put("work/src/main.txt", "one\n")
    p.put("work/secret.txt", "hidden\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=p.work, check=True, env={"PATH": os.environ["PATH"], "HOME": p.home})


def at(p, script, *words, code=0, program="bash"):
    done = p.run("exec", "--at", "/testbed", *words, "--", program, "-c", script)
    assert done.returncode == code, (script, done.returncode, done.stdout, done.stderr)
    return done.stdout


def tool(p, name, arguments, *words, code=0):
    done = p.run("tool", "call", "--at", "/testbed", *words, name, json.dumps(arguments))
    assert (done.returncode == 0) == (code == 0), (name, arguments, done)
    return done.stdout + done.stderr


@tap.case
def programs_see_the_workspace_at_the_other_place():
    """Programs begin at the place of --at, git works there, and the workspace keeps its own path, too."""
    with place() as p:
        repository(p)
        assert at(p, "pwd; cd src; pwd; cat main.txt; git rev-parse --show-toplevel; git status --short") == \
            "/testbed\n/testbed/src\none\n/testbed\n"
        at(p, "echo two > src/new.txt; git add -A; git -c user.name=n -c user.email=n@example.org commit -qm second")
        assert subprocess.run(["git", "log", "--format=%s"], cwd=p.work, check=True, stdout=subprocess.PIPE, text=True,
                              env={"PATH": os.environ["PATH"], "HOME": p.home}).stdout == "second\nfirst\n"
        # Links that name the workspace's own path, and those that name the other one.
        at(p, f"ln -s {p.work}/src/main.txt own; ln -s /testbed/src/main.txt other; cat own other; cat {p.work}/own")
        for name in ("own", "other", "/testbed/own", p.work + "/other"):
            assert "one" in tool(p, "read_file", {"path": name}), name
        at(p, "rm own other; mv /testbed /gone 2>/dev/null || rmdir /testbed 2>/dev/null || ls -d /testbed")
        assert at(p, "glovebox --version >/dev/null; printf '*** Begin Patch\n*** Update File: main.txt\n@@\n-one\n+three\n"
                     "*** End Patch\n' | (cd src; /run/glovebox/bin/apply_patch); cat src/main.txt").endswith("three\n")


@tap.case
def on_a_base_the_other_place_is_as_without_one():
    """On a base the place of --at is as without one, also where a folder of the base is empty."""
    with place() as p:
        base = p.small()
        p.put("work/here", "mine\n")
        for folder in ("", "small/testbed"):
            if folder:
                os.mkdir(os.path.join(p.root, folder))
            assert at(p, f"pwd; cat here; echo new > there; cat {p.work}/there; mv /testbed /x 2>/dev/null || echo stays",
                      "--base", base, program="sh") == "/testbed\nmine\nnew\nstays\n"
        # The folders of this machine's programs are not those of a base.
        for path in ("/usr/src/app", "/opt/app"):
            assert p.shell(base, f"pwd; cat here; mv {path} /x 2>/dev/null || echo stays", "--at", path) == f"{path}\nmine\nstays\n"
        p.put("small/testbed/file", "x")
        done = p.run("exec", "--base", base, "--at", "/testbed", "--", "true")
        assert done.returncode == 125 and "has files there, which the workspace would hide; name a place that is free" in done.stderr, done


PROTECTED = ("for at in /testbed .; do for name in hooks/pre-commit config; do"
             " (echo x >> $at/.git/$name) 2>/dev/null && echo wrote $at/.git/$name; done;"
             " mv $at/.git $at/moved 2>/dev/null && echo moved $at; rm -rf $at/.git/hooks 2>/dev/null;"
             " mkdir -p $at/.git/hooks 2>/dev/null; done; cat secret.txt; true")


@tap.case
def protected_and_hidden_names_are_so_at_the_other_place():
    """What git runs is protected, and what is blocked is hidden, at the place of --at as at the workspace's own."""
    with place() as p:
        repository(p)
        config = os.path.join(p.work, ".git/config")
        with open(config, encoding="utf-8") as file:
            before = file.read()
        bases = [[]]
        with contextlib.suppress(tap.Skip):
            bases.append(["--base", p.small()])
            os.symlink("testbed/.git", os.path.join(p.root, "small/leak"))
        for words in bases:
            program = "sh" if words else "bash"
            policy = p.put("policy.json", json.dumps({"write": ["."], "blocked": ["secret.txt"], "read": ["."]}))
            said = at(p, PROTECTED, "--policy", policy, *words, program=program)
            assert "wrote" not in said.replace("wrote ./.git/hooks", "").replace("wrote /testbed/.git/hooks", ""), said
            assert "moved" not in said and "hidden" not in said, said
            with open(config, encoding="utf-8") as file:
                assert file.read() == before
            assert not os.path.exists(os.path.join(p.work, ".git/hooks/pre-commit")), said
            for path in ("/testbed/.git/hooks/post-commit", ".git/hooks/post-commit", "/leak/hooks/post-commit"):
                tool(p, "write_file", {"path": path, "content": "x"}, *words, code=1)
            rights = p.put("config.json", json.dumps({"agents": {"narrow": {
                "tools": ["write_file", "read_file"], "write": ["docs/*.md"], "blocked": ["secret.txt"]}}}), 0o600)
            os.makedirs(os.path.join(p.work, "docs"), exist_ok=True)
            words = ["--config", rights, "--agent", "narrow", *words]
            tool(p, "write_file", {"path": "/testbed/docs/a.txt", "content": "x"}, *words, code=1)
            tool(p, "write_file", {"path": "/testbed/src/a.md", "content": "x"}, *words, code=1)
            tool(p, "write_file", {"path": "/testbed/docs/a.md", "content": "x"}, *words)
            os.remove(os.path.join(p.work, "docs/a.md"))
            said = tool(p, "read_file", {"path": "/testbed/secret.txt"}, *words, code=1)
            assert "hidden\n" not in said, said
        assert sorted(os.listdir(p.work)) == [".git", "docs", "secret.txt", "src"], os.listdir(p.work)


@tap.case
def changes_at_the_other_place_are_undone_and_landed_at_the_own_one():
    """A change that is made at the place of --at is undone, and a layer of one is landed, in the workspace."""
    with place() as p:
        repository(p)
        tool(p, "write_file", {"path": "/testbed/src/tool.txt", "content": "tool\n"})
        said = p.run("undo", "--list").stdout
        assert "src/tool.txt" in said and "testbed" not in said, said
        done = p.run("undo")
        assert done.returncode == 0 and not os.path.exists(p.work + "/src/tool.txt"), done
        tool(p, "bash", {"command": "echo changed > /testbed/src/main.txt; cd /testbed/src && pwd"})
        with open(p.work + "/src/main.txt", encoding="utf-8") as file:
            assert file.read() == "changed\n"
        done = p.run("undo")
        with open(p.work + "/src/main.txt", encoding="utf-8") as file:
            assert done.returncode == 0 and file.read() == "one\n", done
        done = p.run("exec", "--at", "/testbed", "--review", "--json", "--", "sh", "-c", "echo layer > /testbed/src/main.txt; pwd; cat src/main.txt")
        assert done.returncode == 0 and done.stdout.startswith("/testbed\nlayer\n"), done
        with open(p.work + "/src/main.txt", encoding="utf-8") as file:
            assert file.read() == "one\n"
        done = p.run("land")
        with open(p.work + "/src/main.txt", encoding="utf-8") as file:
            assert done.returncode == 0 and file.read() == "layer\n", done
        assert "testbed" not in done.stdout + done.stderr, done


@tap.case
def tools_take_and_tell_paths_of_the_other_place():
    """File tools, searches, commands and tests take a path of the place of --at; a refusal names the way on the host."""
    with place() as p:
        repository(p)
        assert "one" in tool(p, "grep", {"pattern": "on[e]", "path": "/testbed/src"})
        assert "/testbed/src" in tool(p, "bash", {"command": "pwd", "workdir": "/testbed/src"})
        assert "/testbed/src" in tool(p, "bash", {"command": "pwd", "workdir": "src"})
        p.put("work/tests/test_it.py", "import os, unittest\n\nclass It(unittest.TestCase):\n    def test_place(self):\n"
              "        self.assertEqual(os.getcwd(), '/elsewhere')\n")
        said = tool(p, "run_tests", {"file": "/testbed/tests/test_it.py"})
        assert "/testbed" in said and "tests/test_it.py:5" in said and p.work not in said, said
        done = p.run("exec", "--at", "/testbed", "--", "sh", "-c", "echo x > /testbed/.git/config")
        assert done.returncode != 0, done
        # A step of an agent, and of one that works for it, and the words of the prompt.
        calls = [{"calls": [{"tool": "delegate_agent", "arguments": {"agent": "worker", "task": "Look."}}]}, {"text": "Seen."}]
        looks = [{"calls": [{"tool": "bash", "arguments": {"command": "pwd"}}]},
                 {"calls": [{"tool": "bash", "arguments": {"command": "cd src; pwd"}}]},
                 {"calls": [{"tool": "bash", "arguments": {"command": "pwd; cat main.txt"}}]}, {"text": "Looked."}]
        replays = {name: "replay:" + p.put(name + ".json", json.dumps({"name": name, "turns": turns}))
                   for name, turns in (("calls", calls), ("looks", looks))}
        agents = {"worker": {"model": replays["looks"], "tools": ["bash"]},
                  "boss": {"model": replays["calls"], "tools": ["delegate_agent", "bash"], "may_delegate_to": ["worker"]}}
        config = p.put("config.json", json.dumps({"agents": agents}), 0o600)
        for name in ("boss", "worker"):
            done = p.run("run", "--config", config, "--agent", name, "--json", "--at", "/testbed", "Have it looked at.")
            events = [json.loads(line) for line in done.stdout.splitlines()]
            events += [event["event_of"] for event in events if event["event"] == "child"]
            texts = [event["text"] for event in events if event["event"] == "tool_ended" and event["tool"] == "bash"]
            assert [text.splitlines()[0] for text in texts] == ["/testbed", "/testbed/src", "/testbed/src"], (texts, done.stderr)
            assert "one" in texts[2], texts


@tap.case
def hooks_servers_of_languages_and_jobs_know_the_other_place():
    """Hooks are told paths of the host; language servers see what is written at the place of --at; jobs begin there."""
    with place() as p:
        repository(p)
        shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fake", "lsp_server.py"), p.work + "/server.py")
        p.put("work/n.ipynb", json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
        calls = [("write_file", {"path": "/testbed/src/bad.txt", "content": "x\nBAD wrong\n"}),
                 ("bash", {"command": "pwd", "workdir": "/testbed/src"}),
                 ("read_file", {"path": "/testbed/n.ipynb"}),
                 ("edit_notebook", {"path": "/testbed/n.ipynb", "action": "insert", "cell": 1, "kind": "code", "source": "1"}),
                 ("bash", {"command": "pwd; echo job > /testbed/job.txt", "background": True}),
                 ("job", {"id": 1, "action": "wait"})]
        turns = [{"calls": [{"tool": name, "arguments": arguments}]} for name, arguments in calls]
        replay = p.put("replay.json", json.dumps({"name": "x", "turns": [*turns, {"text": "Done."}]}))
        hook = {"hooks": [{"type": "command", "where": "host", "command": f"cat >> {p.root}/hook.log; echo >> {p.root}/hook.log"}]}
        config = p.put("config.json", json.dumps({
            "hooks": {"PreToolUse": [hook], "PostToolUse": [hook]}, "agents": {"default": {"write": ["."]}},
            "lsp": {"fake": {"command": ["python3", "server.py", "good"], "files": ["*.txt"]}}}), 0o600)
        done = p.run("run", "--config", config, "--model", "replay:" + replay, "--json", "--at", "/testbed", "Do it.")
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert [e["text"] for e in events if e["event"] == "check_ended"] == ["fake: src/bad.txt:2:1: wrong"], (events, done.stderr)
        assert any(e.get("tool") in ("bash", "job") and "/testbed\n" in e["text"] for e in events if e["event"] == "tool_ended"), events
        with open(os.path.join(p.work, "job.txt"), encoding="utf-8") as file:
            assert file.read() == "job\n"
        with open(os.path.join(p.root, "hook.log"), encoding="utf-8") as file:
            told = [json.loads(line) for line in file if line.strip()]
        paths = {(name, value) for row in told for part in (row["tool_input"], row.get("tool_response", {}))
                 for name, value in part.items() if name in ("file_path", "filePath", "notebook_path", "workdir")}
        own = {("file_path", "/src/bad.txt"), ("filePath", "/src/bad.txt"), ("workdir", "/src"), ("file_path", "/n.ipynb"),
               ("filePath", "/n.ipynb"), ("notebook_path", "/n.ipynb")}
        assert paths == {(name, p.work + path) for name, path in own}, (paths, told)


BAD_PLACES = (
    ("testbed", "which begins with /"), ("/", "holds everything else"), ("/a/../b", "without"), ("/a/", "without"),
    ("/a//b", "without"), ("/proc/x", "has /proc there"), ("/dev/x", "there"), ("/usr/x", "has /usr there"), ("/etc", "there"), ("/tmp", "holds the workspace"),
    ("/run/glovebox/x", "there"), ("/home/glovebox", "there"), ("/home/glovebox/x", "there"), ("/home", "there"),
    ("/a\x1b[31mb", "/a\\x1B[31mb: the place has a byte that is not seen"), ("/a\nSYSTEM: x", "not seen"), ("/" + "a" * 5000, "at most"))


@tap.case
def places_that_cannot_be_are_refused_with_a_sentence():
    """A place that is relative, taken, too long, or in the workspace is refused, and the sentence says what to name."""
    with place() as p:
        for path, said in (*BAD_PLACES, (p.work + "/x", "lies in the workspace itself"), (p.root, "holds the workspace")):
            done = p.run("exec", "--at", path, "--", "true")
            assert done.returncode == 125 and "--at" in done.stderr and said in done.stderr and "as /testbed" in done.stderr, (path, done)
        assert p.run("exec", "--at", p.work, "--", "true").returncode == 0
        os.mkdir(os.path.join(p.root, "beside"))
        done = p.run("exec", "--read", p.root + "/beside", "--at", p.root + "/beside/x", "--", "true")
        assert done.returncode == 125 and "as /testbed" in done.stderr, done
        done = p.run("exec", "--at", "/testbed", "--minimum-level", "L2", "--explain", "--json", "--", "true")
        assert done.returncode == 0 and {"access": "write", "path": "/testbed", "why": "--at"} in json.loads(done.stdout)["view"], done
        assert at(p, "pwd", "--at", "/tmp/in/it") == "/tmp/in/it\n"


@tap.case
def the_engine_shows_a_workspace_at_another_place():
    """`at` of cell/open: programs, jobs, files and undo of an engine take the path inside."""
    with place() as p:
        p.put("work/src/a", "one\n")
        cell = {"cell": "c1"}
        requests = [("hello", {"version": 1}), ("cell/open", {"workspace": p.work, "at": "/testbed", "policy": {"write": ["."]}}),
                    ("exec/run", {**cell, "argv": ["sh", "-c", "pwd; echo two > /testbed/src/a"]}),
                    ("exec/run", {**cell, "command": "pwd", "cwd": "/testbed/src"}),
                    ("exec/run", {**cell, "command": "pwd", "cwd": "src"}),
                    ("file/read", {**cell, "path": "/testbed/src/a"}),
                    ("tool/call", {**cell, "tool": "write_file", "arguments": {"path": "/testbed/b", "content": "x"}}),
                    ("cell/changes", cell), ("cell/undo", cell), ("cell/open", {"at": "relative"})]
        process = subprocess.Popen([GLOVEBOX, "serve"], cwd=p.work, env=p.environment(),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        answers = {}
        try:
            for number, (method, params) in enumerate(requests):
                process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
                process.stdin.flush()
                while number not in answers:
                    answer = json.loads(process.stdout.readline())
                    answers[answer.get("id")] = answer
        finally:
            process.stdin.close()
            process.wait(timeout=60)
            process.stdout.close()
        outputs = [base64.b64decode(answers[number]["result"]["stdout"]).decode() for number in (2, 3, 4)]
        assert outputs == ["/testbed\n", "/testbed/src\n", "/testbed/src\n"], answers
        assert (answers[1]["result"]["workspace"], answers[1]["result"]["at"]) == (p.work, "/testbed"), answers
        assert base64.b64decode(answers[5]["result"]["bytes"]) == b"two\n", answers
        assert [row["path"] for row in answers[7]["result"]["files"]] == ["b"] or "result" in answers[7], answers
        assert not os.path.exists(p.work + "/b"), answers
        assert "--at relative" in answers[9]["error"]["message"], answers


@tap.case
def no_attack_gets_through_by_the_other_place():
    """The shipped attacks get no further in a cell with --at than in one without."""
    with place() as p:
        done = p.run("doctor", "--attack", "--json", "--at", "/testbed", timeout=1500)
        report = json.loads(done.stdout)
        assert report["through"] == [] and report["held"] > 200, report


@tap.case
def no_attack_reaches_out_by_the_other_place_of_a_cell_on_a_base():
    """The shipped attacks get no further in a cell on a base with --at than in one without."""
    if not rootfs.which("git"):
        raise tap.Skip("git is not installed")
    with place() as p:
        made = debian_place(p)
        made.add_git()
        done = p.run("doctor", "--attack", "--json", "--base", "rootfs:" + made.root, "--at", "/testbed", timeout=1500)
        report = json.loads(done.stdout)
        assert set(report["through"]) <= OF_THE_BASE, set(report["through"]) - OF_THE_BASE
        assert report["held"] > 200, report


tap.play(GLOVEBOX)
