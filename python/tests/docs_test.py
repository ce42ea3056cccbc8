"""The programs of docs/python.md, run as they stand there, and what it says of methods."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

import glovebox
import support

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = 5


def manual():
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
        return file.read()


class Manual(unittest.TestCase):
    def test_the_programs_of_the_manual_say_what_it_says(self):
        found = re.findall(r"```python\n(.*?)```\n+(?:```\n(.*?)```)?", manual(), re.DOTALL)
        self.assertEqual(len(found), PROGRAMS)
        for number, (program, said) in enumerate(found, 1):
            with self.subTest(number), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "program.py")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(program)
                done = subprocess.run([sys.executable, "-W", "error", path], cwd=folder, capture_output=True, text=True,
                                      check=False, timeout=support.PATIENCE_S)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertEqual(done.stdout, said)

    def test_every_method_and_exception_is_in_the_manual(self):
        text = manual()
        for kind in (glovebox.Cell, glovebox.Process, glovebox.Shell, glovebox.Stream, glovebox.Tools):
            for name in vars(kind):
                if not name.startswith("_"):
                    self.assertRegex(text, rf"\b{name}\b", kind.__name__)
        for name in glovebox.__all__:
            if isinstance(getattr(glovebox, name), type) and issubclass(getattr(glovebox, name), Exception):
                self.assertIn(f"`{name}`", text)
