"""
Sealed cells for programs: run commands, files and tools of an AI agent where they can do no harm.

    import glovebox

    with glovebox.Cell() as cell:
        print(cell.exec("echo hello").text)

`glovebox.aio` has the same with `await`. docs/python.md is the manual; docs/serve.md says what goes over the wire.
"""

from . import aio
from ._blocking import Cell, Process, Shell, Stream, Tools, map
from ._engine import Engine, program_path
from .errors import (Busy, Closed, CommandFailed, Denied, GloveboxError, Limit, SetUp, TimedOut, Unavailable,
                     Usage)
from .results import Accounts, Change, Denial, ExecResult, Stat, ToolResult

__version__ = "0.1.0"
__all__ = ["Accounts", "Busy", "Cell", "Change", "Closed", "CommandFailed", "Denial", "Denied", "Engine", "ExecResult",
           "GloveboxError", "Limit", "Process", "SetUp", "Shell", "Stat", "Stream", "TimedOut", "ToolResult", "Tools",
           "Unavailable", "Usage", "aio", "map", "program_path"]
