"""Cells for asyncio: cancelling, tasks beside each other, tools that are coroutines."""
import asyncio
import os
import tempfile
import time
import unittest
from unittest import mock

import glovebox
import support
from glovebox import _engine, _waiting, aio

# A time that no other test of this machine sleeps.
LONG = f"4321.{os.getpid()}"


class Awaited(unittest.IsolatedAsyncioTestCase):
    async def test_everything_is_awaited(self):
        async with aio.Cell() as cell:
            self.assertEqual((await cell.exec("echo hello")).text, "hello\n")
            await cell.write_text("a", "b")
            self.assertEqual(await cell.read_text("a"), "b")
            process = await cell.start("cat; echo err >&2")
            await process.write("one\ntwo\n")
            await process.close_input()
            self.assertEqual([line async for line in process.stdout], [b"one\n", b"two\n"])
            self.assertEqual((await process.wait()).stderr, b"err\n")
            shell = await cell.shell()
            await shell.run("x=1")
            self.assertEqual((await shell.run("echo $x")).text, "1\n")
            self.assertEqual((await cell.tools.read_file(path="a")).status, "done")
            self.assertIn("read_file", [row["name"] for row in await cell.tools.schemas("mcp")])
            with self.assertRaises(FileNotFoundError):
                await cell.read_bytes("none")
        with self.assertRaises(glovebox.Closed):
            await cell.exec("true")

    async def test_a_cell_is_opened_by_await_too(self):
        cell = aio.Cell()
        with self.assertRaisesRegex(glovebox.Usage, "await Cell"):
            await cell.exec("true")
        self.assertIs(await cell, cell)
        await cell.close()

    async def test_a_cancelled_task_ends_its_program(self):
        async with aio.Cell() as cell:
            task = asyncio.create_task(cell.exec(["sleep", LONG]))
            while not support.processes("sleep", LONG):
                await asyncio.sleep(0.01)
                self.assertFalse(task.done())
            began = time.monotonic()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertLess(time.monotonic() - began, 30)
            self.assertTrue(support.until(lambda: not support.processes("sleep", LONG)))
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(cell.exec(["sleep", LONG]), 0.3)
            with self.assertRaises(glovebox.TimedOut):
                await cell.exec(["sleep", LONG], timeout=0.3)
            self.assertTrue(support.until(lambda: not support.processes("sleep", LONG)))
            self.assertEqual((await cell.exec("echo well")).text, "well\n")

    async def test_a_cancellation_that_comes_with_the_answer_is_not_forgotten(self):
        for turns in range(6):
            signal = _waiting.ASYNCIO.signal()

            async def waits(signal=signal):
                await signal.wait(1000)
                await asyncio.sleep(1000)

            task = asyncio.ensure_future(waits())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            signal.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=0.5)
            self.assertTrue(done and task.cancelled(), turns)

    async def test_what_was_cancelled_between_two_pieces_takes_no_place(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(aio, "PIECE", 4096):
            with open(os.path.join(folder, "f"), "wb") as file:
                file.write(b"x" * 20000)
            async with aio.Cell() as cell:
                await cell.upload(folder, "whole")
                ask = cell._ask

                async def ask_once(method, **params):
                    told = await ask(method, **params)
                    asyncio.current_task().cancel()
                    return told

                for call in (lambda number: cell.upload(folder, f"up{number}"),
                             lambda number: cell.download("whole", os.path.join(folder, f"down{number}")),
                             lambda number: cell.write_bytes(f"f{number}", b"x" * 20000)):
                    for number in range(20):
                        # The first request of an upload is that of the folder above it, if there is one.
                        with mock.patch.object(cell, "_ask", ask_once), self.assertRaises(asyncio.CancelledError):
                            await asyncio.ensure_future(call(number))
                await cell.upload(folder, "again")
                self.assertEqual(sorted(await cell.listdir()), ["again", "whole"])

    async def test_writers_of_one_file_in_pieces_do_not_meet(self):
        async with aio.Cell() as cell:
            with mock.patch.object(aio, "PIECE", 4096):
                texts = [letter * 40000 for letter in (b"a", b"b", b"c", b"d")]
                await asyncio.gather(*(cell.write_bytes(name, text) for name, text
                                       in zip(("f", "./f", "d/../f", os.path.join(cell.workspace, "f")), texts)))
                self.assertIn(await cell.read_bytes("f"), texts)

    async def test_output_without_end_can_be_left(self):
        much = "yes " + "much" * 1000
        async with aio.Cell() as cell:
            async def lines():
                process = await cell.start(much)
                async for _ in process.stdout:
                    pass

            async def waits():
                await (await cell.start(much)).wait()

            for reads in (lines, waits):
                began = time.monotonic()
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(reads(), 0.3)
                self.assertLess(time.monotonic() - began, support.PATIENCE_S)

    async def test_a_shell_that_was_cancelled_while_it_began_is_ended(self):
        async with aio.Cell() as cell:
            start = cell._start

            async def start_once(*words):
                process = await start(*words)
                asyncio.current_task().cancel()
                return process

            with mock.patch.object(cell, "_start", start_once), self.assertRaises(asyncio.CancelledError):
                await asyncio.ensure_future(cell.shell())
            end = time.monotonic() + support.PATIENCE_S
            while any(row["running"] for row in (await cell._ask("exec/list"))["processes"]):
                self.assertLess(time.monotonic(), end)
                await asyncio.sleep(0.02)

    async def test_a_cancelled_opening_leaves_no_cell(self):
        engine = glovebox._engine.shared_engine()
        async with aio.Cell() as first:
            for _ in range(5):
                task = asyncio.create_task(aio.Cell().open())
                await asyncio.sleep(0)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
            end = time.monotonic() + 60
            while True:
                pending = glovebox._engine.Pending("cell/list")
                cells = (await engine.request(first._mode, pending, {}))["cells"]
                if len(cells) == 1 or time.monotonic() > end:
                    break
                await asyncio.sleep(0.01)
            self.assertEqual([row["cell"] for row in cells], [first.name])

    async def test_a_cancelled_close_ends_those_who_wait_for_programs(self):
        cell = await aio.Cell()
        process = await cell.start(["sleep", LONG])
        waiting = asyncio.create_task(process.wait())
        await asyncio.sleep(0)
        closing = asyncio.create_task(cell.close())
        beginning = asyncio.create_task(cell.start(["sleep", LONG]))
        await asyncio.sleep(0)
        closing.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await closing
        with self.assertRaises(glovebox.Closed):
            await asyncio.wait_for(waiting, support.PATIENCE_S)
        with self.assertRaises(glovebox.Closed):
            await asyncio.wait_for(beginning, support.PATIENCE_S)
        self.assertTrue(support.until(lambda: not support.processes("sleep", LONG)))

    async def test_a_close_that_was_not_sent_can_be_tried_again(self):
        async with aio.Cell() as cell:
            with mock.patch.object(_engine, "QUEUE_MAX", 0), mock.patch.object(_engine, "ATOMIC", 0):
                with self.assertRaises(glovebox.Busy):
                    await cell.close()
            self.assertEqual((await cell.exec("echo well")).text, "well\n")

    async def test_downloads_to_one_place_do_not_meet(self):
        with tempfile.TemporaryDirectory() as folder:
            local = os.path.join(folder, "file")
            async with aio.Cell() as cell:
                await cell.exec("head -c 17000000 /dev/zero >big")
                await asyncio.gather(*(cell.download("big", local) for _ in range(3)))
                self.assertEqual((os.listdir(folder), os.path.getsize(local)), (["file"], 17_000_000))

    async def test_tasks_run_beside_each_other(self):
        async with aio.Cell() as cell:
            began = time.monotonic()
            await asyncio.gather(*(cell.exec("sleep 1") for _ in range(8)))
            together = time.monotonic() - began
            self.assertLess(together, 8)

    async def test_coroutine_functions_are_tools(self):
        loop = asyncio.get_running_loop()

        async def wait(seconds: float) -> str:
            """Wait a little."""
            await asyncio.sleep(seconds)
            return "same loop" if asyncio.get_running_loop() is loop else "another"

        def plain(text: str) -> str:
            """Say it again."""
            return text
        async with aio.Cell() as cell:
            await cell.add_tool(wait)
            await cell.add_tool(plain)
            self.assertEqual((await cell.tools.wait(seconds=0.01)).text, "same loop")
            self.assertEqual((await cell.tools.plain(text="x")).text, "x")
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(cell.tools.wait(seconds=1000), 0.3)

    async def test_a_cancelled_coroutine_of_a_tool_has_failed(self):
        async def gives_up() -> str:
            """Give up."""
            raise asyncio.CancelledError("given up")
        async with aio.Cell() as cell:
            await cell.add_tool(gives_up)
            result = await cell.tools.call("gives_up", timeout=30)
            self.assertEqual((result.status, result.text), ("failed", "CancelledError: given up"))

    async def test_an_interrupted_text_is_not_the_answer_of_the_next(self):
        async with aio.Cell() as cell:
            for way in ("run", "type"):
                shell = await cell.shell()
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(shell.run(f"echo old; sleep {LONG}") if way == "run" else
                                           shell._type(f"sleep {LONG}\n", ["never"], None), 0.3)
                with self.assertRaisesRegex(glovebox.Closed, "its last text was interrupted; start another"):
                    await shell.run("echo new")
                self.assertTrue(support.until(lambda: not support.processes("sleep", LONG)))
                await shell.close()

    async def test_map_keeps_the_order_and_a_bound(self):
        taken = []

        def items():
            for number in range(20):
                taken.append(number)
                yield number

        async def work(cell, number):
            await cell.write_text("n", str(number))
            return await cell.read_text("n")
        got = []
        async for result in aio.map(work, items(), cells=4):
            got.append(result)
            self.assertLessEqual(len(taken) - len(got), 8)
        self.assertEqual(got, [str(number) for number in range(20)])

        async def fails(cell, number):
            raise ValueError(number)
        with self.assertRaises(ValueError):
            async for _ in aio.map(fails, items(), cells=2):
                pass

        async def first_sleeps(cell, number):
            if number:
                raise ValueError(number)
            await cell.exec(["sleep", LONG])
        with self.assertRaises(ValueError):
            async for _ in aio.map(first_sleeps, range(4), cells=2):
                pass
        self.assertTrue(support.until(lambda: not support.processes("sleep", LONG)))
