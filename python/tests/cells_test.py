"""Each method of a cell that blocks, and each exception."""
import dataclasses
import enum
import functools
import gc
import inspect
import io
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import typing
import unittest
import warnings
from typing import Annotated, Literal, Optional
from unittest import mock

import glovebox
import support
from glovebox import _schema, _tree


@dataclasses.dataclass
class Point:
    x: int
    y: int = 7


class CellCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cell = glovebox.Cell()

    @classmethod
    def tearDownClass(cls):
        cls.cell.close()


class Programs(CellCase):
    def test_a_text_is_for_bash_and_a_list_is_taken_as_it_is(self):
        result = self.cell.exec("echo out; echo err >&2; exit 3")
        self.assertEqual((result.exit_code, result.stdout, result.stderr), (3, b"out\n", b"err\n"))
        self.assertEqual(self.cell.exec(["echo", "$HOME; *"]).text, "$HOME; *\n")
        self.assertGreater(result.seconds, 0)
        self.assertIn("cpu", result.accounts.source)

    def test_input_folder_and_variables_are_the_programs(self):
        self.cell.mkdir("sub")
        result = self.cell.exec('pwd; echo "$A"; cat', input="typed", cwd="sub", env={"A": "b c"})
        self.assertEqual(result.text, f"{self.cell.workspace}/sub\nb c\ntyped")
        self.assertEqual(self.cell.exec(["cat"], input=b"\0\xff").stdout, b"\0\xff")
        self.assertEqual(self.cell.exec("echo a >&2; echo b", merge=True).stdout, b"a\nb\n")

    def test_input_and_output_may_be_large(self):
        data = os.urandom(1 << 20) * 9
        result = self.cell.exec(["cat"], input=data, keep=len(data))
        self.assertTrue(result.stdout == data and result.dropped == 0)
        result = self.cell.exec("head -c 3000000 /dev/zero")
        self.assertEqual((len(result.stdout), result.dropped), (1 << 20, 3000000 - (1 << 20)))
        self.assertEqual(self.cell.exec("true", input=data).exit_code, 0)
        with self.assertRaisesRegex(glovebox.Usage, "start"):
            self.cell.exec("true", keep=1 << 40)

    def test_a_timeout_has_what_there_was(self):
        sleeper = ["sleep", f"2345.{os.getpid()}"]
        with self.assertRaises(glovebox.TimedOut) as caught:
            self.cell.exec(f"echo begun; {' '.join(sleeper)} & {' '.join(sleeper)}", timeout=1)
        self.assertEqual(caught.exception.result.stdout, b"begun\n")
        self.assertTrue(caught.exception.result.timed_out)
        self.assertTrue(support.until(lambda: not support.processes(*sleeper)))

    def test_a_failed_command_is_an_exception_when_asked(self):
        self.assertEqual(self.cell.exec("exit 3").exit_code, 3)
        with self.assertRaisesRegex(glovebox.CommandFailed, "exit code 3: no") as caught:
            self.cell.exec("echo no >&2; exit 3", check=True)
        self.assertEqual(caught.exception.result.exit_code, 3)
        self.assertEqual(self.cell.exec(["no-such-program"]).exit_code, 127)
        self.assertIn("no-such-program", self.cell.exec(["no-such-program"]).message)
        self.assertEqual(self.cell.exec("kill -9 $$").signal, signal.SIGKILL)

    def test_a_limit_is_an_exception(self):
        with glovebox.Cell(policy={"write": ["."], "limits": {"file_size": "1M"}}) as cell:
            with self.assertRaises(glovebox.Limit) as caught:
                cell.exec("exec head -c 5000000 /dev/zero > big")
            self.assertIn("file_size", str(caught.exception))
            self.assertIsNotNone(caught.exception.result)

    def test_wrong_arguments_name_themselves(self):
        for wrong, words in ((b"true", "text for bash"), ("", "empty"), ([], "empty"), (7, "text for bash")):
            with self.assertRaisesRegex(glovebox.Usage, words):
                self.cell.exec(wrong)
        with self.assertRaisesRegex(glovebox.Usage, "timeout"):
            self.cell.exec("true", timeout=0)
        with self.assertRaises(glovebox.Usage):
            self.cell.exec("true", env={"A B=": "c"})

    def test_a_process_is_read_written_and_waited_for(self):
        process = self.cell.start("while read -r line; do echo got $line; done; echo end >&2; exit 4")
        process.write("one\ntwo\n")
        self.assertEqual([next(process.stdout), next(process.stdout)], [b"got one\n", b"got two\n"])
        self.assertIsNone(process.poll())
        with self.assertRaises(glovebox.TimedOut):
            process.wait(timeout=0.05)
        process.write("three")
        process.close_input()
        self.assertEqual(process.stderr.read(), b"end\n")
        result = process.wait()
        self.assertEqual((result.exit_code, result.stdout), (4, b""))
        self.assertEqual(process.wait(), result)
        with self.assertRaises(glovebox.Closed):
            process.write("four")

    def test_all_output_of_a_process_comes_in_lines(self):
        process = self.cell.start("seq 1 200000", input="")
        self.assertEqual([int(line) for line in process.stdout], list(range(1, 200001)))
        process = self.cell.start("printf 'a\\nb'; seq 1 10 >&2", input="")
        self.assertEqual((list(process.stdout), len(list(process.stderr))), ([b"a\n", b"b"], 10))

    def test_output_that_nobody_reads_is_counted(self):
        process = self.cell.start("head -c 6000000 /dev/zero; echo x >&2", input="")
        result = process.wait()
        self.assertEqual((len(result.stdout), result.dropped, result.stderr),
                         (1 << 20, 6000000 - (1 << 20), b"x\n"))

    def test_a_process_gets_signals(self):
        process = self.cell.start("trap 'echo usr1; exit 5' USR1; echo ready; while :; do sleep 0.05; done")
        self.assertEqual(next(process.stdout), b"ready\n")
        process.signal(signal.SIGUSR1)
        self.assertEqual((process.wait().exit_code, process.wait().stdout), (5, b"usr1\n"))
        process = self.cell.start("sleep 1000")
        process.kill()
        self.assertIsNone(process.wait().exit_code)

    def test_a_process_has_a_terminal_when_asked(self):
        process = self.cell.start("stty size; read x; stty size; tty >/dev/null && echo yes", tty=(31, 97))
        self.assertEqual(next(process.stdout), b"31 97\r\n")
        process.resize(10, 20)
        process.write("go\n")
        rest = process.stdout.read()
        self.assertIn(b"10 20\r\n", rest)
        self.assertIn(b"yes", rest)

    def test_a_shell_keeps_what_it_was_told(self):
        with self.cell.shell() as shell:
            self.assertEqual(shell.run("cd /tmp\nx=5; f() { echo \"f $1\"; }").stdout, b"")
            self.assertEqual(shell.run("pwd; echo $x; f 'a\tb'").text, "/tmp\n5\nf a\tb\n")
            self.assertEqual(shell.run("false").exit_code, 1)
            self.assertEqual(shell.run("echo 'ü\\n\"' \"$((1+1))\" `echo b`").text, "ü\\n\" 2 b\n")
            self.assertEqual(shell.run("cat <<'END'\n$x\nline\nEND\n").text, "$x\nline\n")
            self.assertEqual(len(shell.run("echo " + "xyz" * 9000).stdout), 27001)
            self.assertNotEqual(shell.run("if true; then").exit_code, 0)
            self.assertEqual(shell.run("").exit_code, 0)
            self.assertEqual(shell.run("test -t 0 && test -t 1 && echo terminal").text, "terminal\n")
            self.assertEqual(shell.run("exit 7").exit_code, 7)
            with self.assertRaises(glovebox.Closed):
                shell.run("true")

    def test_a_shell_goes_on_after_a_timeout(self):
        with self.cell.shell() as shell:
            shell.run("x=1")
            with self.assertRaises(glovebox.TimedOut) as caught:
                shell.run("echo begun; sleep 1000; echo never", timeout=1)
            self.assertIn(b"begun", caught.exception.result.stdout)
            self.assertEqual(shell.run("echo $x").text, "1\n")
            threading.Timer(0.3, shell.interrupt).start()
            self.assertEqual(shell.run("sleep 1000").exit_code, 130)
            with self.assertRaises(glovebox.TimedOut):
                shell.run("trap '' INT QUIT; while :; do :; done", timeout=0.2)
            with self.assertRaises(glovebox.Closed):
                shell.run("echo gone")

    def test_a_shell_without_bash_says_so_at_once(self):
        with glovebox.Cell(env={"PATH": "/no/such"}) as cell:
            with self.assertRaisesRegex(glovebox.Closed, "could not begin: .*bash"):
                cell.shell()

    def test_waits_that_time_out_leave_nothing(self):
        process = self.cell.start("read line")
        for _ in range(5):
            with self.assertRaises(glovebox.TimedOut):
                process.wait(timeout=0.01)
        self.assertEqual(process._core._flow._notices, [])
        process.kill()
        process.wait()


class Files(CellCase):
    def test_files_are_written_read_listed_and_removed(self):
        self.cell.write_text("a.txt", "ä\n")
        self.assertEqual(self.cell.read_bytes("a.txt"), "ä\n".encode())
        self.assertEqual(self.cell.read_text(f"{self.cell.workspace}/a.txt"), "ä\n")
        self.cell.mkdir("d/e", parents=True)
        self.cell.rename("a.txt", "d/b.txt")
        self.assertEqual(self.cell.listdir("d"), ["b.txt", "e"])
        about = self.cell.stat("d/b.txt")
        self.assertEqual((about.kind, about.size, about.mode & 0o600), ("file", 3, 0o600))
        self.assertEqual(self.cell.stat("d").kind, "folder")
        self.cell.remove("d", recursive=True)
        self.assertNotIn("d", self.cell.listdir())
        self.cell.write_bytes("empty", b"")
        self.assertEqual(self.cell.read_bytes("empty"), b"")

    def test_a_large_file_goes_both_ways(self):
        data = os.urandom(1 << 20) * 9
        self.cell.write_bytes("large", data)
        self.assertTrue(self.cell.read_bytes("large") == data)

    def test_files_are_uploaded_and_downloaded(self):
        local = os.path.join(os.environ["TMPDIR"], "local")
        data = os.urandom(1 << 20) * 9
        with open(local, "wb") as file:
            file.write(data)
        self.cell.upload(local, "up")
        self.assertEqual(self.cell.stat("up").size, len(data))
        self.cell.download("up", local + "2")
        with open(local + "2", "rb") as file:
            self.assertTrue(file.read() == data)
        with self.assertRaises(FileNotFoundError):
            self.cell.download("none", local)
        with open(local, "rb") as file:
            self.assertTrue(file.read() == data)
        self.assertEqual([name for name in os.listdir(os.environ["TMPDIR"]) if name.endswith(".part")], [])
        with self.assertRaises(FileNotFoundError):
            self.cell.upload(local + "3", "up")

    def test_folders_are_uploaded_and_downloaded(self):
        top = os.path.join(os.environ["TMPDIR"], "tree")
        os.makedirs(os.path.join(top, "a", "b"))
        with open(os.path.join(top, "a", "run"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho ran\n")
        os.chmod(os.path.join(top, "a", "run"), 0o755)
        os.symlink("a/run", os.path.join(top, "link"))
        self.cell.upload(top, "sent/here")
        self.assertEqual(self.cell.exec("cd sent/here; a/run; ./link; test -d a/b").text, "ran\nran\n")
        self.cell.exec("ln -s /etc/passwd sent/here/a/out", check=True)
        with self.assertRaisesRegex(glovebox.Denied, "sent/here"):
            self.cell.download("sent/here", top + "1")
        self.cell.remove("sent/here/a/out")
        self.cell.exec("cd sent/here; mkdir -p z; ln -s . z/z; ln -s z/z/../../etc/hostname out", check=True)
        with self.assertRaisesRegex(glovebox.Denied, "could leave the folder"):
            self.cell.download("sent/here", top + "1")
        self.assertFalse(os.path.lexists(os.path.join(top + "1", "out")))
        self.cell.exec("cd sent/here; rm -r z out", check=True)
        self.cell.download("sent/here", top + "2")
        self.assertEqual(os.readlink(os.path.join(top + "2", "link")), "a/run")
        self.assertTrue(os.access(os.path.join(top + "2", "a", "run"), os.X_OK))

    def test_missing_files_are_errors_of_the_system(self):
        self.cell.write_text("file", "x")
        for error, call in ((FileNotFoundError, lambda: self.cell.read_bytes("none")),
                            (FileNotFoundError, lambda: self.cell.stat("none")),
                            (FileNotFoundError, lambda: self.cell.remove("none")),
                            (FileExistsError, lambda: self.cell.mkdir("file")),
                            (NotADirectoryError, lambda: self.cell.listdir("file")),
                            (FileNotFoundError, lambda: glovebox.Cell("/no/such/folder"))):
            with self.assertRaises(error) as caught:
                call()
            self.assertIsNotNone(caught.exception.filename)
        with self.assertRaises(glovebox.Denied) as caught:
            self.cell.write_bytes("/etc/passwd", b"")
        self.assertRegex(caught.exception.rule, r"agents\..*\.write")
        self.assertIsNotNone(caught.exception.remedy)
        for wrong, words in ((lambda: self.cell.exec("true", cwd="none"), "none"),
                             (lambda: self.cell.start("true", cwd="none").wait(), "none")):
            with self.assertRaisesRegex(FileNotFoundError, words):
                wrong()

    def test_what_is_no_file_of_the_caller_is_no_error_of_the_system(self):
        with self.assertRaises(glovebox.SetUp) as caught:
            glovebox.Cell(base="image:none:9")
        self.assertEqual(caught.exception.remedy, "run glovebox base pull image:none:9")
        with self.assertRaisesRegex(glovebox.Usage, "no agent"):
            glovebox.Cell(agent="nobody-of-this-name")
        with glovebox.Cell() as cell, self.assertRaisesRegex(glovebox.Usage, "nothing to undo"):
            cell.undo()


def tar_of(*entries):
    """A tar of ENTRIES: (name, type, target of a link or None)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, target in entries:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.mode = kind, target or "", 0o7777
            member.size = 5 if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"text\n"))
    out.seek(0)
    return out


FILE, FOLDER, LINK, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
LEAVE = {
    "a name above": (("../f", FILE, None),),
    "an absolute name": (("/f", FILE, None),),
    "a name through a link": (("d", FOLDER, None), ("l", LINK, "d"), ("l/f", FILE, None)),
    "a folder where a link is": (("d", FOLDER, None), ("l", LINK, "d"), ("l", FOLDER, None)),
    "an absolute link": (("l", LINK, "/etc/hostname"),),
    "a link above": (("d", FOLDER, None), ("d/l", LINK, "../../f")),
    "a link through links": (("z", LINK, "."), ("l", LINK, "z/z/../../../etc/hostname")),
    "a link that goes up behind a name": (("d", FOLDER, None), ("l", LINK, "d/../d")),
    "a hard link to a link": (("l", LINK, "f"), ("h", HARD, "l")),
    "a hard link to nothing": (("h", HARD, "there.txt"),),
    "a hard link above": (("h", HARD, "../secret"),),
    "a hard link to a file that became a link": (("d", FOLDER, None), ("d/f", FILE, None), ("d/f", LINK, "../x"),
                                                 ("h", HARD, "d/f")),
    "a pipe": (("p", tarfile.FIFOTYPE, None),),
    "a device": (("p", tarfile.CHRTYPE, None),),
}


class Trees(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = folder.name
        self.local = os.path.join(folder.name, "in", "local")
        os.makedirs(self.local)
        for path in (os.path.join(self.top, "secret"), os.path.join(self.local, "there.txt")):
            with open(path, "w", encoding="ascii") as file:
                file.write("mine\n")

    def check(self):
        for name, entries in LEAVE.items():
            with self.subTest(name):
                with self.assertRaises(_tree.Refused):
                    _tree.unpack(tar_of(*entries), os.path.join(self.local, name.replace(" ", "-")))
                with tempfile.TemporaryDirectory(dir=self.local) as folder:
                    self.assertEqual(_tree.unpack(tar_of(*entries, ("last", FILE, None)), folder, leave_out=True), 1)
                    self.assertEqual(os.stat(os.path.join(folder, "last")).st_nlink, 1)
        self.assertEqual(sorted(os.listdir(self.top)), ["in", "secret"])
        self.assertEqual(os.listdir(os.path.join(self.top, "in")), ["local"])

    def test_what_could_leave_a_folder_is_refused_by_its_words(self):
        self.check()

    def test_it_is_refused_without_the_filter_of_python_too(self):
        # So are 3.10 before 3.10.12 and 3.11 before 3.11.4; the newer ones alone have the argument.
        def bare(tar, path, members):
            for member in members:
                tar.extract(member, path, **({"filter": "fully_trusted"} if had else {}))
        had = hasattr(tarfile, "data_filter")
        with mock.patch.object(tarfile.TarFile, "extractall", bare), mock.patch.object(tarfile, "data_filter", None, create=True):
            self.check()
            self.kept()

    def kept(self):
        out = os.path.join(self.local, "out")
        os.makedirs(os.path.join(out, "d"))
        os.symlink(os.path.join(self.top, "secret"), os.path.join(out, "f"))
        _tree.unpack(tar_of((".", FOLDER, None), ("./f", FILE, None), ("d", FOLDER, None), ("d/l", LINK, "../f"),
                            ("d/h", HARD, "./f"), ("m", LINK, "d/l"), ("n", LINK, "no/such")), out)
        self.assertFalse(os.path.islink(os.path.join(out, "f")))
        for name in ("f", "d/l", "d/h", "m"):
            with open(os.path.join(out, name), encoding="ascii") as file:
                self.assertEqual(file.read(), "text\n")
        self.assertEqual(os.stat(os.path.join(out, "f")).st_mode & 0o7777, 0o755)
        self.assertEqual(os.readlink(os.path.join(out, "n")), "no/such")
        with open(os.path.join(self.top, "secret"), encoding="ascii") as file:
            self.assertEqual(file.read(), "mine\n")

    def test_what_stays_in_a_folder_is_unpacked(self):
        self.kept()

    def test_a_folder_that_has_a_link_of_its_own_is_not_left_by_it(self):
        os.symlink(self.top, os.path.join(self.local, "up"))
        with self.assertRaisesRegex(_tree.Refused, "through a link"):
            _tree.unpack(tar_of(("up/f", FILE, None)), self.local)
        self.assertFalse(os.path.exists(os.path.join(self.top, "f")))


class Changes(unittest.TestCase):
    def test_changes_are_told_and_undone(self):
        with glovebox.Cell() as cell:
            self.assertEqual((cell.changes(), cell.patch()), ([], ""))
            cell.write_text("a.txt", "one\n")
            cell.exec("echo two > b.txt")
            self.assertEqual([(change.path, change.state) for change in cell.changes()],
                             [("a.txt", "created"), ("b.txt", "created")])
            self.assertIn("+two", cell.patch())
            self.assertEqual(cell.undo(), ["b.txt"])
            self.assertEqual(cell.listdir(), ["a.txt"])
            with self.assertRaises(glovebox.GloveboxError):
                cell.undo(999999)

    def test_accounts_stay_after_the_end(self):
        with glovebox.Cell() as cell:
            cell.exec("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
            self.assertGreater(cell.accounts().wall_s, 0)
        self.assertGreater(cell.accounts().wall_s, 0)

    def test_what_this_engine_lacks_is_said(self):
        with glovebox.Cell() as cell:
            if "cell/snapshot" not in glovebox._engine.shared_engine().info["methods"]:
                with self.assertRaisesRegex(glovebox.Usage, "snapshot"):
                    cell.snapshot("name")
        with self.assertRaisesRegex(glovebox.Usage, "is no base; write host") as caught:
            glovebox.Cell(base="nothing:at:all")
        self.assertNotIn("leave it out", str(caught.exception))
        for more in ({"base": "image:no/such:1"}, {"at": "not/absolute"}, {"base": "nothing:at:all"}):
            with self.subTest(more), self.assertRaises((glovebox.GloveboxError, OSError)):
                glovebox.Cell(**more)


class Opening(unittest.TestCase):
    def test_a_workspace_stays_and_a_fresh_one_goes(self):
        folder = os.path.join(os.environ["TMPDIR"], "project")
        os.mkdir(folder)
        with glovebox.Cell(folder, name="mine", env={"A": "b"}) as cell:
            self.assertEqual((cell.workspace, cell.name, cell.level >= 0), (folder, "mine", True))
            self.assertEqual(cell.exec("echo $A > file; pwd").text, folder + "\n")
        with open(os.path.join(folder, "file"), encoding="ascii") as file:
            self.assertEqual(file.read(), "b\n")
        with glovebox.Cell() as cell:
            fresh = cell.workspace
        self.assertFalse(os.path.exists(fresh))
        cell = glovebox.Cell()
        cell.close(keep=True)
        self.assertTrue(os.path.isdir(cell.workspace))

    def test_rights_are_those_that_were_named(self):
        folder = os.path.join(os.environ["TMPDIR"], "rights")
        os.makedirs(os.path.join(folder, "out"))
        with glovebox.Cell(folder, write=["out"]) as cell:
            self.assertNotEqual(cell.exec("touch a").exit_code, 0)
            self.assertEqual(cell.exec("touch out/a").exit_code, 0)
            with self.assertRaises(glovebox.Denied):
                cell.write_text("b", "")
        with glovebox.Cell(folder, policy={"read": ["."]}, memory="64M") as cell:
            self.assertNotEqual(cell.exec("touch out/b").exit_code, 0)

    def test_a_relative_base_starts_at_the_folder_of_the_program(self):
        here = os.getcwd()
        for base, told in (("rootfs:./a:b", f"rootfs:{here}/a:b"), ("oci:a/../b:c/d:e", f"oci:{here}/b:c/d:e"), ("oci:/a", "oci:/a"),
                           ("image:a", "image:a"), ("host", "host")):
            self.assertEqual(glovebox.aio.Cell(base=base)._params["base"], told)
        with glovebox.Cell(), tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                with self.assertRaisesRegex(FileNotFoundError, f"rootfs:{folder}/none"):
                    glovebox.Cell(base="rootfs:none")
            finally:
                os.chdir(here)

    def test_contradictions_are_refused_before_anything_begins(self):
        for wrong in ({"policy": {}, "agent": "default"}, {"write": ["a"], "policy": {}}, {"read": ["a"], "agent": "x"},
                      {"write": "."}, {"layer": True}, {"minimum_level": "L9"}):
            with self.subTest(wrong), self.assertRaises(glovebox.Usage):
                glovebox.Cell(**wrong)
        for wrong in ({"policy": {"no_such_key": 1}}, {"memory": "much"}, {"agent": "no such agent"}):
            with self.subTest(wrong), self.assertRaises(glovebox.GloveboxError):
                glovebox.Cell(**wrong)

    def test_a_closed_cell_says_so(self):
        cell = glovebox.Cell()
        process = cell.start("sleep 1000")
        cell.close()
        cell.close()
        self.assertTrue(cell.closed)
        for call in (lambda: cell.exec("true"), lambda: cell.read_bytes("a"), lambda: cell.tools.bash(command="true"),
                     process.wait, cell.shell):
            with self.assertRaisesRegex(glovebox.Closed, "closed"):
                call()

    def test_a_cell_that_is_left_open_warns_and_goes(self):
        engine = glovebox._engine.shared_engine()
        cell = glovebox.Cell(name="left")
        self.assertIn("left", repr(cell))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            del cell
            gc.collect()
        self.assertEqual([warning.category for warning in said], [ResourceWarning])
        self.assertIn("never closed", str(said[0].message))
        with glovebox.Cell():
            pending = glovebox._engine.Pending("cell/list")
            open_now = glovebox._waiting.finish(engine.request(glovebox._waiting.BLOCKING, pending, {}))
        self.assertNotIn("left", [row["cell"] for row in open_now["cells"]])

    def test_a_cell_left_open_is_closed_where_warnings_are_errors(self):
        text = ("import glovebox, warnings\nfrom glovebox import _engine, _waiting\nwarnings.simplefilter('error')\n"
                "left = glovebox.Cell(name='left')\ndel left\n"
                "with glovebox.Cell(name='other'):\n"
                "    told = _waiting.finish(_engine.shared_engine().request(_waiting.BLOCKING, _engine.Pending('cell/list'), {}))\n"
                "print([row['cell'] for row in told['cells']])")
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False,
                              timeout=support.PATIENCE_S)
        self.assertEqual(done.stdout.strip(), "['other']", done.stderr)
        self.assertIn("was never closed", done.stderr)

    def test_threads_share_a_cell_and_an_engine(self):
        said, failed = [], []

        def work(number):
            try:
                said.append(self.cell.exec(f"echo {number}").text.strip())
                with glovebox.Cell() as own:
                    own.write_text("n", str(number))
                    said.append(own.read_text("n"))
            except Exception as error:
                failed.append(error)
        with glovebox.Cell() as self.cell:
            threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(sorted(said), sorted([str(number) for number in range(12)] * 2))

    def test_exceptions_can_be_pickled(self):
        error = pickle.loads(pickle.dumps(glovebox.Denied("no", rule="write", remedy="ask")))
        self.assertEqual((str(error), error.rule), ("no; ask", "write"))


class Tools(CellCase):
    def test_tools_are_called_by_name(self):
        result = self.cell.tools.write_file(path="a.c", content="int main;\n")
        self.assertTrue(result.ok, result)
        self.assertIn("int main;", self.cell.tools.read_file(path="a.c").text)
        self.assertEqual(self.cell.tools.read_file(path="none").status, "failed")
        self.assertEqual(self.cell.tools.no_such_tool().status, "failed")
        self.assertEqual(self.cell.tools.call("bash", {"command": "exit 3"}).exit_code, 3)
        with self.assertRaises(AttributeError):
            self.cell.tools._private  # noqa: B018, pylint: disable=pointless-statement

    def test_schemas_fit_the_services(self):
        names = [tool["name"] for tool in self.cell.tools.list()]
        self.assertIn("read_file", names)
        self.assertEqual([row["function"]["name"] for row in self.cell.tools.schemas("openai")], names)
        self.assertEqual(self.cell.tools.schemas("anthropic")[0]["input_schema"]["type"], "object")
        self.assertEqual(self.cell.tools.schemas("mcp")[0]["inputSchema"]["type"], "object")
        with self.assertRaisesRegex(glovebox.Usage, "openai, anthropic, mcp"):
            self.cell.tools.schemas("other")

    def test_a_function_becomes_a_tool(self):
        def add(a: int, b: Annotated[int, "the second"] = 2) -> int:
            """Add two numbers.

            Not told to models."""
            return a + b

        def fails() -> None:
            """Fail."""
            raise KeyError("it broke")
        self.cell.add_tool(add)
        self.cell.add_tool(fails, name="broken", description="Fails always.")
        known = {tool["name"]: tool for tool in self.cell.tools.list()}
        self.assertEqual(known["add"]["description"], "Add two numbers.")
        self.assertEqual(known["add"]["schema"]["required"], ["a"])
        self.assertEqual(self.cell.tools.add(a=1).text, "3")
        self.assertEqual(self.cell.tools.add(a="x").status, "failed")
        result = self.cell.tools.broken()
        self.assertEqual((result.status, "it broke" in result.text), ("failed", True))
        with self.assertRaises(glovebox.GloveboxError):
            self.cell.add_tool(add, name="bash")

        async def later() -> str:
            return "x"
        with self.assertRaisesRegex(glovebox.Usage, "aio"):
            self.cell.add_tool(later)

    def test_a_tool_that_exits_has_failed(self):
        with glovebox.Cell() as cell:
            cell.add_tool(lambda: sys.exit(3), name="leaves")
            result = cell.tools.call("leaves", timeout=support.PATIENCE_S)
            self.assertEqual((result.status, result.text), ("failed", "SystemExit: 3"))

    def test_a_tool_may_use_the_cell(self):
        def count(path: str) -> dict[str, int]:
            """Count the bytes of a file."""
            return {"bytes": len(self.cell.read_bytes(path))}
        self.cell.write_text("counted", "12345")
        self.cell.add_tool(count)
        self.assertEqual(self.cell.tools.count(path="counted").details, {"bytes": 5})

    def test_type_hints_become_schemas(self):
        class Colour(enum.Enum):
            RED = "red"

        for hint, schema in (
                (str, {"type": "string"}), (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
                (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
                (list[float], {"type": "array", "items": {"type": "number"}}),
                (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
                (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}), (Literal["a", 1], {"enum": ["a", 1]}),
                (Colour, {"type": "string", "enum": ["red"]}), (typing.Any, {}), (pathlib.Path, {"type": "string"}),
                (Point, {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
                         "required": ["x"], "additionalProperties": False}),
                (Annotated[str, "words"], {"type": "string", "description": "words"}), (list, {"type": "array", "items": {}})):
            with self.subTest(hint):
                self.assertEqual(_schema.of_type(hint), schema)
        for wrong in (lambda a: a, lambda *rest: rest):
            with self.assertRaises(glovebox.Usage):
                _schema.of_function(wrong)

        def unknown(a: threading.Thread) -> None: ...
        with self.assertRaisesRegex(glovebox.Usage, "unknown: a: .*Thread"):
            _schema.of_function(unknown)


    def test_arguments_are_what_the_type_hints_promise(self):
        class Colour(enum.Enum):
            RED = "red"

        class Named(typing.TypedDict):
            colour: Colour

        got = []

        def take(colour: Colour, folder: pathlib.Path, size: float, ids: set[int], pair: tuple[int, Colour], point: Point,
                 named: Named, most: list[Colour] | None = None, default: Colour = Colour.RED) -> None:
            got.extend([colour, folder, size, ids, pair, point, named, most, default])
        with glovebox.Cell() as cell:
            cell.add_tool(take)
            schema = next(tool for tool in cell.tools.list() if tool["name"] == "take")["schema"]
            self.assertEqual(schema["properties"]["default"], {"type": "string", "enum": ["red"], "default": "red"})
            result = cell.tools.take(colour="red", folder="a/b", size=1, ids=[1, 1, 2], pair=[3, "red"], point={"x": 1},
                                     named={"colour": "red"}, most=["red"])
            self.assertEqual(result.status, "done", result.text)
            self.assertEqual(got, [Colour.RED, pathlib.Path("a/b"), 1.0, {1, 2}, (3, Colour.RED), Point(1, 7), {"colour": Colour.RED},
                                   [Colour.RED], Colour.RED])
            self.assertIsInstance(got[2], float)

    def test_what_is_called_like_a_function_becomes_a_tool(self):
        class Scale:
            """Multiply numbers."""

            def __init__(self, by: int) -> None:
                self.by = by

            def __call__(self, number: int) -> int:
                return number * self.by

            def method(self, number: int, more: int = 0) -> int:
                """Multiply and add."""
                return number * self.by + more
        with glovebox.Cell() as cell:
            cell.add_tool(Scale(2))
            cell.add_tool(Scale(3).method)
            cell.add_tool(functools.partial(Scale(3).method, more=1), name="partly")
            self.assertEqual([cell.tools.Scale(number=4).text, cell.tools.method(number=4).text,
                              cell.tools.partly(number=4).text], ["8", "12", "13"])


class OneSource(unittest.TestCase):
    def test_both_modes_have_the_same_methods(self):
        for kind in ("Cell", "Process", "Shell", "Stream", "Tools"):
            waits, blocks = getattr(glovebox.aio, kind), getattr(glovebox, kind)
            for name, member in inspect.getmembers(waits, inspect.iscoroutinefunction):
                if name.startswith("_") or name == "open":
                    continue
                own = getattr(blocks, name, None)
                self.assertIsNotNone(own, f"{kind}.{name}")
                self.assertFalse(inspect.iscoroutinefunction(own), name)
                self.assertEqual(inspect.signature(own), inspect.signature(member))
                self.assertEqual(own.__doc__, member.__doc__)
                self.assertTrue(own.__doc__, f"{kind}.{name} has no documentation")
            for name, member in inspect.getmembers(waits, lambda member: isinstance(member, property)):
                self.assertTrue(name in dir(blocks) or name in ("number",), f"{kind}.{name}")
        self.assertEqual(inspect.signature(glovebox.Cell), inspect.signature(glovebox.aio.Cell))


class Interrupting(unittest.TestCase):
    def test_ctrl_c_ends_the_call_and_nothing_else(self):
        sleeper = ["sleep", f"1234.{os.getpid()}"]
        with glovebox.Cell() as cell:
            def interrupt():
                support.until(lambda: support.processes(*sleeper))
                os.kill(os.getpid(), signal.SIGINT)
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
            thread = threading.Thread(target=interrupt)
            try:
                with self.assertRaises(KeyboardInterrupt):
                    thread.start()
                    cell.exec(sleeper)
                thread.join()
            finally:
                signal.signal(signal.SIGINT, before)
            self.assertTrue(support.until(lambda: not support.processes(*sleeper)))
            self.assertEqual(cell.exec("echo well").text, "well\n")
