"""The types of the package, as mypy sees them: its own, and those that a program gets."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
RIGHT = """
from collections.abc import Callable

import glovebox
from glovebox import aio

# Pyright binds the method when a cell is made, and refuses the call where its object is another class's.
making: Callable[[glovebox.Cell], None] = glovebox.Cell.__init__


def blocks() -> int:
    with glovebox.Cell("/tmp", write=["."], memory="1G", cpus=0.5) as cell:
        result: glovebox.ExecResult = cell.exec(["true"], timeout=1.5, check=True)
        process: glovebox.Process = cell.start("cat", tty=(24, 80))
        line: bytes = next(process.stdout)
        text: str = cell.shell().run("echo").text + cell.read_text("a") + line.decode()
        names: list[str] = cell.listdir() + cell.undo()
        return result.exit_code or len(text) + len(names)


async def awaits() -> str:
    async with aio.Cell(network=["example.org"]) as cell:
        process = await cell.start("true")
        async for line in process.stdout:
            print(line.decode())
        return (await cell.exec("true")).text + (await (await aio.Cell()).exec("true")).text


print([number + 1 for number in glovebox.map(lambda cell, item: len(item), ["a", "b"])])
"""
WRONG = {
    'glovebox.Cell(works="/tmp")': "call-arg", "glovebox.Cell().exec(7)": "arg-type",
    'glovebox.Cell().exec("true").exitcode': "attr-defined", 'glovebox.Cell().start("true").stdin': "attr-defined",
    'glovebox.Cell().write_text("a", b"bytes")': "arg-type",
    'async def opens() -> int: return (await glovebox.aio.Cell()).nam': "attr-defined",
}


@unittest.skipUnless(shutil.which("mypy") or importlib.util.find_spec("mypy"), "mypy is not installed")
class Types(unittest.TestCase):
    def check(self, *words):
        program = ["mypy"] if shutil.which("mypy") else [sys.executable, "-m", "mypy"]
        with tempfile.TemporaryDirectory() as cache:
            return subprocess.run([*program, "--strict", "--python-version", "3.10", "--cache-dir", cache, *words],
                                  capture_output=True, text=True, check=False,
                                  env={**os.environ, "MYPYPATH": SOURCE})

    def test_the_package_and_a_program_are_strictly_typed(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("right.py", RIGHT), ("wrong.py", "import glovebox\n" + "\n".join(WRONG))):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            done = self.check(os.path.join(SOURCE, "glovebox"), os.path.join(folder, "right.py"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            done = self.check(os.path.join(folder, "wrong.py"))
            for number, (line, error) in enumerate(WRONG.items(), 2):
                self.assertRegex(done.stdout, rf"wrong.py:{number}: .*\[{error}\]", line)
