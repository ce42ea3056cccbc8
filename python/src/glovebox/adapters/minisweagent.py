"""
mini-swe-agent: `environment_class: glovebox.adapters.minisweagent.GloveboxEnvironment`. Each command is a program of its
own in one cell, as with its docker environment. Written against mini-swe-agent 2.4.6.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import platform
from typing import TYPE_CHECKING, Any

from .._blocking import Cell
from ..errors import GloveboxError, Usage
from . import _shared

if TYPE_CHECKING:
    class Submitted(Exception):
        """The agent has handed in its work; the argument is the message that ends the run."""
else:
    with _shared.harness("minisweagent", "mini-swe-agent"):
        from minisweagent.exceptions import Submitted

__all__ = ["GloveboxEnvironment", "GloveboxEnvironmentConfig"]

HEAD = TAIL = 8 << 20  # bytes of an output; the agent's templates show the beginning and the end
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
OF_DOCKER = ("executable", "run_args", "container_timeout", "pull_timeout")  # words of its docker class without a meaning here


@dataclasses.dataclass
class GloveboxEnvironmentConfig:
    """The keys below `environment:`. IMAGE, CWD, ENV, FORWARD_ENV, TIMEOUT and INTERPRETER are those of the docker class."""

    image: str = ""
    cwd: str = ""  # a folder of the image; with a workspace, or without an image, the place of the workspace
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    forward_env: list[str] = dataclasses.field(default_factory=list)
    timeout: int = 30
    interpreter: list[str] = dataclasses.field(default_factory=lambda: ["bash", "-lc"])
    workspace: str = ""
    base: str = ""
    network: list[str] = dataclasses.field(default_factory=list)
    memory: str = ""
    cpus: float | None = None
    policy: dict[str, Any] | None = None


class GloveboxEnvironment:
    """One cell, in which the agent's commands run."""

    def __init__(self, *, config_class: type = GloveboxEnvironmentConfig, logger: logging.Logger | None = None,
                 **config: Any) -> None:
        self.logger = logger or logging.getLogger("minisweagent.environment")
        for name in OF_DOCKER:
            if config.pop(name, None) is not None:
                self.logger.debug("a cell has no %s", name)
        known = {field.name for field in dataclasses.fields(config_class)}
        if unknown := sorted(config.keys() - known):
            raise Usage(f"environment: a cell has no {', '.join(unknown)}; the keys are {', '.join(sorted(known))}")
        self.config: GloveboxEnvironmentConfig = config_class(**config)
        self._cell = Cell(**self._arguments())

    def _arguments(self) -> dict[str, Any]:
        config = self.config
        workspace, cwd = config.workspace, config.cwd
        if not (config.image or config.base or workspace) and cwd != "/" and os.path.isdir(cwd):
            workspace = os.path.abspath(cwd)
        forwarded = {name: os.environ[name] for name in config.forward_env if name in os.environ}
        return _shared.cell_arguments(image=config.image, base=config.base, workspace=workspace, cwd=cwd,
                                      env={**forwarded, **config.env}, network=config.network, memory=config.memory,
                                      cpus=config.cpus, policy=config.policy)

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run the command of ACTION, and answer as the other environments do. Raises Submitted when the work is done."""
        output = _shared.Excerpt(HEAD, TAIL)
        seconds = timeout or self.config.timeout
        answer: dict[str, Any]
        try:
            result = _shared.run_merged(self._cell, [*self.config.interpreter, action.get("command", "")], output,
                                        cwd=cwd or self._start_folder(), timeout=seconds)
        except (GloveboxError, OSError) as error:
            answer = self._failed(output.text, type(error).__name__, str(error))
        else:
            if result.timed_out:
                answer = self._failed(output.text, "TimeoutExpired",
                                      f"it timed out after {seconds} seconds, and all that it had started was ended")
            else:
                text = "\n".join(part for part in (output.text, _shared.reasons(result)) if part)
                answer = {"output": text, "returncode": _shared.exit_code(result), "exception_info": ""}
        self._check_finished(answer)
        return answer

    def _start_folder(self) -> str | None:
        cwd = self.config.cwd
        if self.config.image or self.config.base:
            return cwd or None
        return None if cwd in ("", "/") or os.path.isdir(cwd) else cwd

    @staticmethod
    def _failed(output: str, kind: str, reason: str) -> dict[str, Any]:
        return {"output": output, "returncode": -1, "exception_info": f"The command could not be run to its end: {reason}",
                "extra": {"exception_type": kind, "exception": reason}}

    @staticmethod
    def _check_finished(answer: dict[str, Any]) -> None:
        first, _, rest = answer["output"].lstrip().partition("\n")
        if first.strip() == SUBMIT and answer["returncode"] == 0:
            raise Submitted({"role": "exit", "content": rest, "extra": {"exit_status": "Submitted", "submission": rest}})

    def get_template_vars(self, **more: Any) -> dict[str, Any]:
        """What the agent's templates may name: the configuration, this kernel, and MORE. No variables of this machine."""
        return {**dataclasses.asdict(self.config), **platform.uname()._asdict(), "node": "glovebox", **more}

    def serialize(self) -> dict[str, Any]:
        """What a trajectory says of the environment."""
        name = f"{type(self).__module__}.{type(self).__name__}"
        return {"info": {"config": {"environment": dataclasses.asdict(self.config), "environment_type": name}}}

    def cleanup(self) -> None:
        """End the cell, with all that runs in it."""
        cell = getattr(self, "_cell", None)
        if cell is not None:
            cell.close()
