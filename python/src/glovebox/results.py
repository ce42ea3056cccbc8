"""The answers of a cell, as immutable values."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Accounts", "Change", "Denial", "ExecResult", "Stat", "ToolResult"]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True)
class Accounts:
    """What a program or a cell has used. `source` says how each number was counted (docs/accounts.md)."""

    cpu_s: float = 0.0
    cpu_user_s: float = 0.0
    wall_s: float = 0.0
    memory_peak: int = 0
    written: int = 0
    read: int = 0
    net_in: int = 0
    net_out: int = 0
    processes_peak: int = 0
    source: Mapping[str, str] = field(default_factory=dict)
    limit: str | None = None

    @classmethod
    def of(cls, told: object) -> Accounts:
        """Accounts from the wire; members that this release does not know are left out."""
        members = _mapping(told)
        return cls(**{name: members[name] for name in cls.__dataclass_fields__ if name in members})


@dataclass(frozen=True)
class Denial:
    """One thing that a wall or the policy refused to a program."""

    kind: str
    target: str
    rule: str | None = None
    remedy: str | None = None

    @classmethod
    def all_of(cls, told: object) -> tuple[Denial, ...]:
        rows = [_mapping(row) for row in told] if isinstance(told, list) else []
        return tuple(cls(str(row.get("kind", "")), str(row.get("target", "")), row.get("rule"), row.get("remedy"))
                     for row in rows)


@dataclass(frozen=True)
class ExecResult:
    """
    What became of a program. `exit_code` is None when `signal` ended it; `dropped` counts the bytes of both outputs
    that were not kept; `message` says why a program could not be started (exit_code 126 or 127).
    """

    exit_code: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    signal: int | None = None
    timed_out: bool = False
    seconds: float = 0.0
    dropped: int = 0
    limit: str | None = None
    denials: Sequence[Denial] = ()
    accounts: Accounts = Accounts()
    message: str | None = None

    @property
    def text(self) -> str:
        """The output as text; bytes that are no UTF-8 become U+FFFD."""
        return self.stdout.decode(errors="replace")

    @classmethod
    def of(cls, told: Mapping[str, Any], stdout: bytes | None = None, stderr: bytes | None = None,
           dropped: int = 0) -> ExecResult:
        """From the wire, with the outputs unless they are given."""
        return cls(
            exit_code=told.get("exit"), signal=told.get("signal"), timed_out=bool(told.get("timed_out")),
            seconds=float(told.get("seconds") or 0), limit=told.get("limit"), message=told.get("message"),
            dropped=int(told.get("dropped") or 0) + dropped, denials=Denial.all_of(told.get("denials")),
            accounts=Accounts.of(told.get("accounts")),
            stdout=base64.b64decode(told.get("stdout") or "") if stdout is None else stdout,
            stderr=base64.b64decode(told.get("stderr") or "") if stderr is None else stderr)


@dataclass(frozen=True)
class ToolResult:
    """The answer of a tool. `status` is done, failed, denied, timed_out or cancelled."""

    status: str
    text: str
    exit_code: int | None = None
    seconds: float = 0.0
    level: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    content: Sequence[Mapping[str, Any]] = ()
    accounts: Accounts = Accounts()

    @property
    def ok(self) -> bool:
        """Has the tool done what it was asked?"""
        return self.status == "done"

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> ToolResult:
        return cls(str(told.get("status", "failed")), str(told.get("text", "")), told.get("exit_code"),
                   float(told.get("seconds") or 0), told.get("level"), _mapping(told.get("details")),
                   tuple(_mapping(row) for row in told.get("content") or ()), Accounts.of(told.get("accounts")))


@dataclass(frozen=True)
class Change:
    """A file that was changed in the cell; `state` is created, modified, removed and the like."""

    path: str
    state: str
    added: int = 0
    removed: int = 0

    @classmethod
    def of(cls, told: object) -> Change:
        row = _mapping(told)
        return cls(str(row.get("path", "")), str(row.get("state", "")), int(row.get("added") or 0),
                   int(row.get("removed") or 0))


@dataclass(frozen=True)
class Stat:
    """What a path of the cell is. `kind` is file, folder or other; times are milliseconds since 1970."""

    kind: str
    size: int
    mode: int
    link: bool = False
    created_ms: int | None = None
    modified_ms: int | None = None

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Stat:
        return cls(str(told.get("kind", "other")), int(told.get("size") or 0), _mode(told.get("mode")),
                   bool(told.get("link")), told.get("created_ms"), told.get("modified_ms"))


def _mode(told: object) -> int:
    """The wire may write a mode as a number or as octal digits."""
    if isinstance(told, str):
        return int(told, 8)
    return told if isinstance(told, int) else 0
