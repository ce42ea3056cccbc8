"""The engine: its end, its death, os.fork, and engines that are hostile."""
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import unittest
from unittest import mock

import glovebox
import support
from glovebox import _engine

CELLS = int(os.environ.get("GLOVEBOX_TEST_CELLS", "1000"))
BESIDE = 64
DESCRIPTORS = 20  # of the engine for a cell whose workers are made ahead


class Life(unittest.TestCase):
    def test_cells_share_one_engine(self):
        with glovebox.Cell() as one, glovebox.Cell() as two:
            self.assertNotEqual(one.name, two.name)
            engine = _engine.shared_engine()
            self.assertTrue(engine.alive and support.runs(engine.pid))
        self.assertIs(_engine.shared_engine(), engine)

    def test_an_engine_of_its_own_ends_with_its_block(self):
        with glovebox.Engine(max_cells=1) as engine:
            self.assertTrue(engine.info["program"].startswith("glovebox "))
            with glovebox.Cell(engine=engine):
                with self.assertRaises(glovebox.Busy) as caught:
                    glovebox.Cell(engine=engine)
                self.assertEqual(caught.exception.rule, "max_cells")
        self.assertFalse(engine.alive or support.runs(engine.pid))
        with self.assertRaises(glovebox.Unavailable):
            glovebox.Cell(engine=engine)

    def test_an_engine_that_is_dropped_is_told_at_the_end(self):
        for own, told in (("glovebox.Engine()", True), ("glovebox.Engine().close()", False), ("glovebox.Cell().close()", False)):
            with self.subTest(own):
                done = subprocess.run([sys.executable, "-W", "always", "-c", f"import glovebox\n{own}"], capture_output=True, text=True,
                                      check=False, timeout=support.PATIENCE_S)
                self.assertEqual(("was never closed" in done.stderr, done.returncode), (told, 0), done.stderr)

    def test_an_engine_that_dies_tells_all_who_wait_and_is_replaced(self):
        cell = glovebox.Cell()
        engine = _engine.shared_engine()
        process = cell.start("sleep 1000")
        errors = []

        def wait(call):
            try:
                call()
            except glovebox.GloveboxError as error:
                errors.append(error)
        threads = [threading.Thread(target=wait, args=(call,))
                   for call in (lambda: cell.exec("sleep 1000"), process.wait, process.stdout.read)]
        for thread in threads:
            thread.start()
        support.until(lambda: len(engine._pending) > 0)
        os.kill(engine.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(support.PATIENCE_S)
        self.assertEqual([type(error) for error in errors], [glovebox.Unavailable] * 3)
        for error in errors:
            self.assertIn("signal 9", str(error))
        with self.assertRaises(glovebox.Unavailable):
            cell.exec("true")
        cell.close()
        with glovebox.Cell() as after:
            self.assertEqual(after.exec("echo well").text, "well\n")
            self.assertIsNot(_engine.shared_engine(), engine)

    def test_the_engine_ends_with_its_process(self):
        for ending in ("os.kill(os.getpid(), 9)", "pass", "sys.exit(3)", "os._exit(0)", "raise KeyError"):
            with self.subTest(ending):
                text = ("import glovebox, os, sys\ncell = glovebox.Cell()\ncell.start('sleep 1000')\n"
                        "print(glovebox._engine.shared_engine().pid, cell.workspace, flush=True)\n" + ending)
                done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False,
                                      timeout=support.PATIENCE_S)
                pid, workspace = done.stdout.split()
                self.assertTrue(support.until(lambda: not support.runs(int(pid))), ending)  # noqa: B023
                self.assertTrue(support.until(lambda: not os.path.exists(workspace)), ending)  # noqa: B023

    def test_ctrl_c_of_the_terminal_is_not_the_engines(self):
        with glovebox.Cell():
            self.assertNotEqual(os.getpgid(_engine.shared_engine().pid), os.getpgid(0))

    def test_a_forked_child_is_told(self):
        cell = glovebox.Cell()
        engine = _engine.shared_engine()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            said = []
            cell._core._writing.add(os.path.join(cell.workspace, "large"))  # a thread of the parent was there
            for call in (lambda: cell.exec("true"), lambda: cell.close(), lambda: cell.tools.bash(command="true"),
                         lambda: glovebox.Cell(engine=engine), lambda: cell.write_bytes("large", bytes(20 << 20))):
                try:
                    call()
                    said.append("nothing")
                except glovebox.Closed as error:
                    said.append(str(error))
                except BaseException as error:
                    said.append(repr(error))
            try:
                with glovebox.Cell() as own:
                    said.append(own.exec("echo own").text.strip())
                    said.append(str(_engine.shared_engine().pid))
            except BaseException as error:
                said.append(repr(error))
            os.write(writing, "\n".join(said).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as file:
            said = file.read().splitlines()
        os.waitpid(child, 0)
        for line in said[:5]:
            self.assertIn(f"this cell was opened in process {os.getpid()}; open one here", line)
        self.assertEqual(said[5], "own")
        self.assertNotEqual(int(said[6]), engine.pid)
        self.assertEqual(cell.exec("echo mine").text, "mine\n")
        cell.close()

    def test_a_child_leaves_the_block_of_its_parents_cell_by_its_own_exit(self):
        text = ("import glovebox, os, sys\n"
                "with glovebox.Cell() as cell:\n"
                "    child = os.fork()\n"
                "    if child == 0:\n        sys.exit(7)\n"
                "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), cell.exec('echo mine').text)")
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False,
                              timeout=support.PATIENCE_S)
        self.assertEqual(done.stdout.split(), ["7", "mine"], done.stderr)
        self.assertEqual(done.stderr, "")

    def test_a_child_that_lives_on_does_not_hold_the_engine(self):
        text = ("import glovebox, os, sys, time\ncell = glovebox.Cell()\n"
                "print(glovebox._engine.shared_engine().pid, flush=True)\n"
                "child = os.fork()\n"
                "if child == 0:\n    os.close(1); time.sleep(1000)\n"
                "print(child, flush=True)\nos.kill(os.getpid(), 9)")
        done = subprocess.run([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, check=False,
                              timeout=support.PATIENCE_S)
        engine, child = map(int, done.stdout.split())
        try:
            self.assertTrue(support.until(lambda: not support.runs(engine)))
        finally:
            os.kill(child, signal.SIGKILL)


def deep(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


class Unwritable(unittest.TestCase):
    ARGUMENTS = {"levels": {"path": deep(200)}, "many levels": {"path": deep(100_000)}, "a large integer": {"offset": 10 ** 400},
                 "one above 64 bits": {"offset": 1 << 63}, "infinity": {"offset": float("inf")}, "no number": {"a": [float("nan")]},
                 "two names": {1: 2, "1": 3}, "many values": {"a": [1] * 2_100_000}, "a name that is none": {(1, 2): 3}}

    def test_one_argument_of_a_model_does_not_end_the_engine(self):
        with glovebox.Cell() as cell:
            cell.write_text("a", "text\n")
            began = time.monotonic()
            for name, arguments in self.ARGUMENTS.items():
                with self.subTest(name), self.assertRaisesRegex(glovebox.Usage, "cannot be written as JSON"):
                    cell.tools.call("read_file", arguments, timeout=5)
            self.assertLess(time.monotonic() - began, 30)
            for largest in ({"path": deep(100)}, {"path": "a", "offset": (1 << 63) - 1}):
                self.assertNotEqual(cell.tools.call("read_file", largest).status, "done")
            self.assertIn("text", cell.tools.read_file(path="a").text)

    def test_nor_does_an_answer_of_a_tool(self):
        with glovebox.Cell() as cell:
            cell.add_tool(lambda: {"value": deep(300)}, name="levels")
            cell.add_tool(lambda: {"value": 10 ** 400}, name="integer")
            for name in ("levels", "integer"):
                result = cell.tools.call(name)
                self.assertEqual(result.status, "failed")
                self.assertIn("cannot be sent", result.text)

    def test_nor_does_a_tool_for_which_there_is_no_thread(self):
        with glovebox.Cell() as cell:
            cell.add_tool(lambda: "well", name="mine")
            with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start new thread")):
                result = cell.tools.call("mine")
            self.assertEqual((result.status, "can't start new thread" in result.text), ("failed", True))
            self.assertEqual(cell.tools.call("mine").text, "well")

    def test_names_that_are_no_utf8_do_not_become_one(self):
        with glovebox.Cell() as cell:
            for name in (b"\xff", b"\xfe"):
                with self.assertRaisesRegex(glovebox.Usage, "no UTF-8"):
                    cell.write_bytes(os.fsdecode(name), name)
                with self.assertRaisesRegex(glovebox.Usage, "no UTF-8"):
                    cell.exec(["touch", os.fsdecode(name)])
            self.assertEqual(cell.listdir(), [])
            self.assertEqual(cell.exec("echo '\ud83d'").text, "\ufffd\n")
            self.assertTrue(cell.tools.call("write_file", {"path": "a", "content": "\udcff"}).ok)
            self.assertEqual(cell.read_text("a"), "\ufffd")

    def test_what_was_not_sent_is_not_waited_for(self):
        with mock.patch.object(_engine, "CANCEL_SECONDS", support.PATIENCE_S), glovebox.Engine() as engine:
            cell = glovebox.Cell(engine=engine)
            began = time.monotonic()
            with self.assertRaises(glovebox.Usage):
                cell.tools.call("read_file", {"path": float("inf")})
            engine.close()
            with self.assertRaises(glovebox.Unavailable):
                cell.exec("true")
            self.assertLess(time.monotonic() - began, support.PATIENCE_S)
            cell.close()


class Many(unittest.TestCase):
    def test_many_cells_leave_nothing_behind(self):
        with glovebox.Engine() as engine:
            with glovebox.Cell(engine=engine):
                pass
            before, own = support.descriptors(engine.pid), support.descriptors(os.getpid())
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            opened, most = 0, 0.0
            while opened < CELLS:
                cells = [glovebox.Cell(engine=engine) for _ in range(min(BESIDE, CELLS - opened))]
                opened += len(cells)
                most = max(most, (support.descriptors(engine.pid) - before) / len(cells))
                for cell in cells:
                    cell.close()
            # The engine's own: those of cells that nobody has used yet.
            self.assertLessEqual(most, DESCRIPTORS)
            self.assertLessEqual(support.descriptors(engine.pid), before + 2)
            self.assertLessEqual(support.descriptors(os.getpid()), own)
            self.assertEqual((len(engine._pending), len(engine._flows), len(engine._tools)), (0, 0, 0))
            self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory, 20 << 10)


class Map(unittest.TestCase):
    def test_a_thousand_items_come_in_their_order(self):
        taken, most, lock = [0], [0, 0], threading.Lock()

        def items():
            for number in range(CELLS):
                taken[0] += 1
                yield number

        def work(cell, number):
            with lock:
                most[1] += 1
                most[0] = max(most[0], most[1])
            try:
                return int(cell.name[1:]) > 0 and number
            finally:
                with lock:
                    most[1] -= 1
        got = 0
        for result in glovebox.map(work, items(), cells=8):
            self.assertEqual(result, got)
            got += 1
            self.assertLessEqual(taken[0] - got, 16)
        self.assertEqual(got, CELLS)
        self.assertLessEqual(most[0], 8)

    def test_the_first_exception_ends_it(self):
        def work(cell, number):
            cell.exec("true")
            if number == 5:
                raise ValueError("five")
            return number
        got = []
        with self.assertRaisesRegex(ValueError, "five"):
            for result in glovebox.map(work, range(1000), cells=2):
                got.append(result)
        self.assertEqual(got, list(range(len(got))))
        self.assertLessEqual(len(got), 5)
        with self.assertRaises(glovebox.Usage):
            list(glovebox.map(work, [1], cells=0))


    def test_its_end_ends_what_runs(self):
        sleeper = ["sleep", f"3456.{os.getpid()}"]

        def work(cell, number):
            if number == 1:
                support.until(lambda: support.processes(*sleeper))
                raise ValueError("one")
            return number if number == 2 else cell.exec(sleeper)
        began = time.monotonic()
        with self.assertRaisesRegex(ValueError, "one"):
            list(glovebox.map(work, range(20), cells=2))
        self.assertTrue(support.until(lambda: not support.processes(*sleeper)))
        for result in glovebox.map(work, [2, 0, 0], cells=3):
            self.assertEqual(result, 2)
            self.assertTrue(support.until(lambda: support.processes(*sleeper)))
            break
        self.assertTrue(support.until(lambda: not support.processes(*sleeper)))
        self.assertLess(time.monotonic() - began, 3 * support.PATIENCE_S)


class Hostile(unittest.TestCase):
    def fails(self, body, words, call=lambda cell: None):
        with support.hostile(body) as program, glovebox.Engine(program) as engine:
            with self.assertRaisesRegex(glovebox.GloveboxError, words) as caught:
                with glovebox.Cell(engine=engine) as cell:
                    call(cell)
            self.assertTrue(support.until(lambda: not support.runs(engine.pid)))
            self.assertTrue(support.until(lambda: not engine.alive))
        return caught.exception

    def test_lines_that_are_no_messages(self):
        for line in ("no message at all\\n", "[1, 2]\\n", '{"jsonrpc": "1.0", "id": 1, "result": {}}\\n', "\\xff\\xfe\\n",
                     '{"jsonrpc": "2.0", "method": "exec/output"}\\n', "[" * 100000 + "\\n",
                     '{"jsonrpc": "2.0", "id": 1, "result": 7}\\n'):
            with self.subTest(line[:40]):
                error = self.fails(f"hear()\nsay({line!r}.replace('\\\\n', chr(10)))\ntime.sleep(1000)", "no message|result")
                self.assertIsInstance(error, glovebox.Unavailable)

    def test_a_line_that_the_engine_could_not_read_ends_its_call_alone(self):
        with support.hostile("""
greet()
open_cell()
for _ in range(2):
    hear()
    say(dict(id=None, error=dict(code=-32700, message="no line of JSON")))
while True:
    say(dict(id=hear()["id"], result=dict(exit=0, stdout="", stderr="")))
""") as program, glovebox.Engine(program) as engine:
            cell = glovebox.Cell(engine=engine)
            for _ in range(2):
                with self.assertRaisesRegex(glovebox.Unavailable, "no line of JSON"):
                    cell.exec("true")
            self.assertEqual(cell.exec("true").exit_code, 0)
            cell.close()

    def test_a_line_without_an_end(self):
        self.fails("greet()\nopen_cell()\nhear()\n"
                   "say('x' * (17 << 20))\ntime.sleep(1000)", "more than 16 MiB", lambda cell: cell.exec("true"))

    def test_no_hello(self):
        with mock.patch.object(_engine, "HELLO_SECONDS", 0.2):
            self.fails("time.sleep(1000)", "hello within")
        self.fails("sys.exit(3)", "exit code 3")
        self.fails("sys.stderr.write('it broke here\\n')\nsys.exit(3)", "exit code 3: it broke here")

    def test_another_version(self):
        self.fails("say(dict(id=hear()['id'], result=dict(version=9, methods=[])))\nhear()", "version 9")

    def test_a_weak_machine_is_told_before_anything_is_opened(self):
        with support.hostile("say(dict(id=hear()['id'], result=dict(version=1, level=2, because='no pids', methods=[])))\n"
                             "hear()") as program, glovebox.Engine(program) as engine:
            with self.assertRaisesRegex(glovebox.SetUp, "L2 .no pids.*doctor"):
                glovebox.Cell(engine=engine)

    def test_more_output_than_the_wire_allows(self):
        self.fails("greet()\nopen_cell()\nsay(dict(id=hear()['id'], result=dict(process=1)))\n"
                   "for _ in range(100):\n    say(dict(method='exec/output', params=dict(process=1, stream='stdout', "
                   "bytes='QUFB' * 100000)))\ntime.sleep(1000)", "more output", lambda cell: (
                       cell.start("true"), support.until(lambda: not cell._core._engine.alive), cell.exec("true")))

    def test_answers_and_notices_that_nobody_wants(self):
        with support.hostile("""
greet()
say(dict(id=999, result={}))
say(dict(method="exec/exited", params=dict(process=[])))
say(dict(method="no/such", params={}))
say(dict(id="x", method="tool/host_call", params=dict(cell="c9", tool="none")))
while True:
    message = hear()
    if "method" in message:
        say(dict(id=message["id"], result=dict(cell="c1", level=3, workspace="/", fresh=True)))
""") as program, glovebox.Engine(program) as engine:
            with glovebox.Cell(engine=engine) as cell:
                self.assertEqual(cell.name, "c1")

    def test_an_engine_that_does_not_end_is_killed(self):
        with mock.patch.object(_engine, "END_SECONDS", 0.3), \
                support.hostile("greet()\nwhile True:\n    time.sleep(1000)") as program:
            engine = glovebox.Engine(program)
            self.assertEqual(engine.info["program"], "hostile 1")
            engine.close()
            self.assertFalse(support.runs(engine.pid))

    def test_a_call_that_is_never_answered_ends(self):
        with mock.patch("glovebox.aio.GRACE_SECONDS", 0.1), support.hostile(
                "greet()\nopen_cell()\nwhile True:\n    time.sleep(1)") as program:
            engine = glovebox.Engine(program)
            cell = glovebox.Cell(engine=engine)
            began = time.monotonic()
            with self.assertRaisesRegex(glovebox.Unavailable, "not answered"):
                cell.exec("true", timeout=0.1)
            self.assertLess(time.monotonic() - began, 30)
            with mock.patch.object(_engine, "END_SECONDS", 0.1):
                engine.close()
            cell.close()

    def test_a_program_that_is_missing_is_named(self):
        with mock.patch.dict(os.environ, {"GLOVEBOX": "/no/such/glovebox"}):
            with self.assertRaisesRegex(glovebox.Unavailable, "/no/such/glovebox"):
                glovebox.Engine()
        with mock.patch.dict(os.environ, {"GLOVEBOX": "", "PATH": "/no/such"}):
            with self.assertRaisesRegex(glovebox.Unavailable, "GLOVEBOX="):
                glovebox.Engine()
