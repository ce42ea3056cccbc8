"""
openai-agents (interface of August 2026): `ShellTool(executor=GloveboxExecutor(cell))`. The sandbox sessions of that
package are not served; the tools of a cell are `cell.tools.schemas("openai")`.
"""

from __future__ import annotations

from typing import Any

from ..aio import Cell
from ..errors import TimedOut
from . import load

TRIED = "the interface of August 2026"
KEEP = 1 << 20

_agents = load("agents", "openai-agents", TRIED)


class GloveboxExecutor:
    """Runs the commands of a shell call in CELL, one after the other; one that is too slow ends the call."""

    def __init__(self, cell: Cell, cwd: str | None = None) -> None:
        self._cell, self._cwd = cell, cwd

    async def __call__(self, request: Any) -> Any:
        action = request.data.action
        timeout = action.timeout_ms / 1000 if action.timeout_ms else None
        outputs = []
        for command in action.commands:
            try:
                result, outcome = await self._cell.exec(command, cwd=self._cwd, timeout=timeout, keep=KEEP), "exit"
            except TimedOut as error:
                if error.result is None:
                    raise
                result, outcome = error.result, "timeout"
            code = result.exit_code if result.exit_code is not None else 128 + (result.signal or 0)
            outputs.append(_agents.ShellCommandOutput(
                command=command, stdout=result.text, stderr=result.stderr.decode(errors="replace"),
                outcome=_agents.ShellCallOutcome(type=outcome, exit_code=None if outcome == "timeout" else code)))
            if outcome == "timeout":
                break
        return _agents.ShellResult(output=outputs, max_output_length=action.max_output_length)
