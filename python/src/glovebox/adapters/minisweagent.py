"""
mini-swe-agent (written for 2.4.6; 1.x calls `execute` with a text, which is taken too). In its configuration:

    environment:
      environment_class: glovebox.adapters.minisweagent.GloveboxEnvironment
      image: swebench/sweb.eval.x86_64.…       # or none: this machine
      cwd: /testbed
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .._blocking import Cell
from ..errors import GloveboxError, TimedOut
from . import base_of, load

TRIED = "2.4.6"
FINISHED = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
KEEP = 10 << 20


@dataclass
class GloveboxEnvironmentConfig:
    """As the configuration of the harness's docker class; WORKSPACE, NETWORK and POLICY are those of a cell."""

    image: str = ""
    cwd: str = ""
    env: dict[str, str] = field(default_factory=dict)
    forward_env: list[str] = field(default_factory=list)
    timeout: int = 30
    interpreter: list[str] = field(default_factory=lambda: ["bash", "-c"])
    workspace: str | None = None
    network: Sequence[str] = ()
    policy: dict[str, Any] | None = None


class GloveboxEnvironment:
    """An environment whose commands run in one cell."""

    def __init__(self, *, config_class: type = GloveboxEnvironmentConfig, logger: Any = None, **kwargs: Any) -> None:
        self.logger = logger
        self.config = config_class(**kwargs)
        rights: dict[str, Any] = {"policy": self.config.policy} if self.config.policy is not None \
            else {"network": self.config.network}
        self._cell = Cell(self.config.workspace, base=base_of(self.config.image), **rights)

    def execute(self, action: Mapping[str, Any] | str, cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run the command of ACTION; its first line of output may say that the task is done."""
        command = action if isinstance(action, str) else str(action.get("command", ""))
        forwarded = {name: os.environ[name] for name in self.config.forward_env if name in os.environ}
        output: dict[str, Any]
        try:
            result = self._cell.exec([*self.config.interpreter, command], cwd=cwd or self.config.cwd or None,
                                     env={**forwarded, **self.config.env}, timeout=timeout or self.config.timeout,
                                     merge=True, keep=KEEP)
            code = result.exit_code if result.exit_code is not None else 128 + (result.signal or 0)
            output = {"output": result.text, "returncode": code, "exception_info": ""}
        except (GloveboxError, OSError) as error:
            if isinstance(action, str) and isinstance(error, TimedOut):
                import subprocess

                said = error.result.stdout if error.result is not None else b""
                raise subprocess.TimeoutExpired(command, timeout or self.config.timeout, output=said) from error
            partial = getattr(error, "result", None)
            output = {"output": partial.text if partial is not None else "", "returncode": -1,
                      "exception_info": f"An error occurred while executing the command: {error}",
                      "extra": {"exception_type": type(error).__name__, "exception": str(error)}}
        if not isinstance(action, str):
            self._check_finished(output)
        return output

    def _check_finished(self, output: Mapping[str, Any]) -> None:
        lines = str(output["output"]).lstrip().splitlines(keepends=True)
        if output["returncode"] == 0 and lines and lines[0].strip() == FINISHED:
            submission = "".join(lines[1:])
            submitted = load("minisweagent.exceptions", "mini-swe-agent", TRIED).Submitted
            raise submitted({"role": "exit", "content": submission,
                             "extra": {"exit_status": "Submitted", "submission": submission}})

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        return {**self._config(), **platform.uname()._asdict(), **kwargs}

    def serialize(self) -> dict[str, Any]:
        kind = f"{type(self).__module__}.{type(self).__name__}"
        return {"info": {"config": {"environment": self._config(), "environment_type": kind}}}

    def cleanup(self) -> None:
        self._cell.close()

    def __del__(self) -> None:
        if hasattr(self, "_cell"):
            self.cleanup()

    def _config(self) -> dict[str, Any]:
        dump = getattr(self.config, "model_dump", None)
        return dict(dump()) if dump is not None else asdict(self.config)
