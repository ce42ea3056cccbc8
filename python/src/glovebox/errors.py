"""The exceptions of Glovebox. A missing file of a cell is a FileNotFoundError, as anywhere else."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .results import ExecResult

__all__ = ["Busy", "Closed", "CommandFailed", "Denied", "GloveboxError", "Limit", "SetUp", "TimedOut",
           "Unavailable", "Usage"]


class GloveboxError(Exception):
    """The base of all exceptions here. RULE is the key that decided, REMEDY says what would help; both may be None."""

    def __init__(self, message: str, *, rule: str | None = None, remedy: str | None = None,
                 result: ExecResult | None = None) -> None:
        super().__init__(message)
        self.rule = rule
        self.remedy = remedy
        self.result = result

    def __str__(self) -> str:
        message = str(self.args[0])
        return f"{message}; {self.remedy}" if self.remedy and self.remedy not in message else message


class Usage(GloveboxError):
    """The request is wrong: an argument, its type, its bounds, or something that this engine does not have."""


class SetUp(GloveboxError):
    """The cell could not be built, and nothing has run."""


class Denied(GloveboxError):
    """The policy, the bounds of this machine or a wall refused."""


class TimedOut(GloveboxError):
    """The time of a program is over. `result` holds what there was, if there was anything."""


class Limit(GloveboxError):
    """A limit was reached. `result` holds what there was, if a program had run; `rule` names the limit."""


class Closed(GloveboxError):
    """The cell was closed or has broken, or it belongs to another process."""


class Unavailable(GloveboxError):
    """The engine could not be started, has ended, or failed at something else."""


class Busy(GloveboxError):
    """There are too many calls, cells or bytes at the same time: try again."""


class CommandFailed(GloveboxError):
    """A program of which success was demanded (`check=True`) has failed; `result` is its result."""


_KINDS: dict[str, type[GloveboxError]] = {
    "usage": Usage, "no_such": Usage, "set_up": SetUp, "denied": Denied, "limit": Limit, "closed": Closed,
    "busy": Busy, "unavailable": Unavailable,
}
CANCELLED = -32800


def error_of(method: str, error: Mapping[str, Any], path: str | None = None) -> Exception:
    """The exception for ERROR, which the engine has answered to METHOD about PATH."""
    data = error.get("data")
    data = data if isinstance(data, dict) else {}
    kind = str(data.get("kind", ""))
    message = str(error.get("message", f"{method} has failed"))
    if method == "cell/open" and kind == "no_such" and data.get("remedy"):
        kind = "set_up"  # a base that can be brought here, and no file that the caller has named
    number = getattr(errno, str(data.get("error", "")), None)
    about_files = method == "cell/open" or method.split("/")[0] in ("file", "tree", "exec")
    if isinstance(number, int) and kind in ("usage", "no_such") and about_files:
        made = OSError(number, message, path)
        # Only the kinds that have a class of their own: EINVAL or E2BIG are plain mistakes.
        if type(made) is not OSError or number in (errno.ENOTEMPTY, errno.ELOOP, errno.ENAMETOOLONG):
            return made
    if error.get("code") == CANCELLED:
        return Closed(message)
    return _KINDS.get(kind, Unavailable)(message, rule=data.get("rule"), remedy=data.get("remedy"))


def of_another_process(pid: int) -> Closed:
    """A process that was made by os.fork has used something of its parent's, PID."""
    return Closed(f"this cell was opened in process {pid}; open one here (this is process {os.getpid()})")
