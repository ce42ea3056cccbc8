"""
deepagents: `create_deep_agent(backend=GloveboxBackend(cell))`. `execute` is a program in the cell, and ls, write, edit,
grep and glob are the tools of the cell; no Python is needed inside. Written against the interface of August 2026
(`SandboxBackendProtocol` with `read` that tells the lines of its window).
"""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import os
from typing import TYPE_CHECKING, Any

from .._blocking import Cell
from ..errors import Denied, GloveboxError
from ..results import ToolResult
from . import _shared

if TYPE_CHECKING:
    class SandboxBackendProtocol:
        """The base class of the harness."""

    class _Answer:
        def __init__(self, **members: Any) -> None: ...

    class LsResult(_Answer): ...
    class ReadResult(_Answer): ...
    class WriteResult(_Answer): ...
    class EditResult(_Answer): ...
    class DeleteResult(_Answer): ...
    class GrepResult(_Answer): ...
    class GlobResult(_Answer): ...
    class ExecuteResponse(_Answer): ...
    class FileUploadResponse(_Answer): ...
    class FileDownloadResponse(_Answer): ...
else:
    with _shared.harness("deepagents", "deepagents"):
        from deepagents.backends.protocol import (DeleteResult, EditResult, ExecuteResponse, FileDownloadResponse,
                                                  FileUploadResponse, GlobResult, GrepResult, LsResult, ReadResult,
                                                  SandboxBackendProtocol, WriteResult)

__all__ = ["GloveboxBackend"]

HEAD = TAIL = 50_000  # bytes of an output of `execute`
READ_MAX = 32 << 20  # bytes of a file that `read` looks at
SHOWN = 1000  # entries and files
LINES = 2000  # lines that match
TIMEOUT_CODE = 124
_numbers = itertools.count(1)


class GloveboxBackend(SandboxBackendProtocol):
    """
    CELL, or a cell of its own that is opened with CELL_ARGS and ends with `close`. Paths are absolute ones of the cell;
    TIMEOUT holds for commands that name none. What .gitignore leaves out is not listed and not searched.
    """

    def __init__(self, cell: Cell | None = None, *, timeout: int = 120, **cell_args: Any) -> None:
        self._owned = cell is None
        self._cell = cell if cell is not None else Cell(**_shared.cell_arguments(**cell_args))
        self._timeout = timeout
        self._id = f"glovebox-{os.getpid()}-{next(_numbers)}"

    @property
    def id(self) -> str:
        return self._id

    @property
    def cell(self) -> Cell:
        """The cell itself."""
        return self._cell

    def close(self) -> None:
        """End the cell, if it is this backend's own."""
        if self._owned:
            self._cell.close()

    def __enter__(self) -> GloveboxBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run COMMAND by bash. A TIMEOUT of 0 is none."""
        output = _shared.Excerpt(HEAD, TAIL)
        seconds = self._timeout if timeout is None else timeout
        try:
            result = _shared.run_merged(self._cell, ["bash", "-c", command], output, timeout=seconds or None)
        except (GloveboxError, OSError) as error:
            return ExecuteResponse(output=str(error), exit_code=None, truncated=False)
        said, code = _shared.reasons(result), _shared.exit_code(result)
        if result.timed_out:
            said, code = f"[The command was ended after {seconds} s, with all that it had started.]", TIMEOUT_CODE
        text = output.text
        return ExecuteResponse(output="\n".join(part for part in (text, said) if part), exit_code=code,
                               truncated=output.dropped > 0)

    # Files.

    def _call(self, tool: str, **arguments: Any) -> ToolResult:
        return self._cell.tools.call(tool, {name: value for name, value in arguments.items() if value is not None})

    def _absolute(self, path: str) -> str:
        """Tools tell paths below the workspace without it."""
        return os.path.join(self._cell.at, path)

    def ls(self, path: str) -> LsResult:
        """The entries of a folder."""
        answer = self._call("list_files", path=path, depth=1, limit=SHOWN)
        if not answer.ok:
            return LsResult(error=answer.text)
        entries = [{"path": self._absolute(row["path"]), "is_dir": row.get("kind") == "folder", "size": row.get("size", 0)}
                   for row in answer.details.get("rows", ())]
        return LsResult(entries=entries)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """LIMIT lines behind the first OFFSET, as they are; a file that is no text is Base64."""
        if limit <= 0:
            return ReadResult(file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True)
        try:
            if (size := self._cell.stat(file_path).size) > READ_MAX:
                return ReadResult(error=f"{file_path} has {size} bytes, more than {READ_MAX}: read parts of it by execute")
            data = self._cell.read_bytes(file_path)
        except (OSError, GloveboxError) as error:
            return ReadResult(error=_reason(file_path, error))
        try:
            lines = list(io.StringIO(data.decode(), newline="\n"))
        except UnicodeDecodeError:
            return ReadResult(file_data={"content": base64.b64encode(data).decode(), "encoding": "base64"})
        first = max(0, offset)
        shown = lines[first:first + limit]
        if not shown:
            if lines:
                return ReadResult(error=f"{file_path} has {len(lines)} lines, and none behind line {first}")
            return ReadResult(file_data={"content": "", "encoding": "utf-8"})
        end = first + len(shown)
        return ReadResult(file_data={"content": "".join(shown), "encoding": "utf-8"}, total_lines=len(lines),
                          start_line=first + 1, end_line=end, next_offset=end if end < len(lines) else None)

    def write(self, file_path: str, content: str) -> WriteResult:
        """Write a file, new or not; folders above it are made."""
        try:
            known = hashlib.sha256(self._cell.read_bytes(file_path)).hexdigest()
        except (OSError, GloveboxError):
            known = None
        answer = self._call("write_file", path=file_path, content=content, line_ends="given", expected_hash=known)
        return WriteResult(path=file_path) if answer.ok else WriteResult(error=answer.text)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        """Replace a text that stands in a file once, or everywhere with REPLACE_ALL."""
        answer = self._call("edit_file", path=file_path, line_ends="given",
                            edits=[{"old": old_string, "new": new_string, "replace_all": replace_all}])
        if not answer.ok:
            return EditResult(error=answer.text)
        edits = answer.details.get("edits") or [{}]
        return EditResult(path=file_path, occurrences=int(edits[0].get("count") or 1))

    def delete(self, file_path: str) -> DeleteResult:
        """Remove a file, or a folder with everything in it."""
        try:
            self._cell.remove(file_path, recursive=True)
        except (OSError, GloveboxError) as error:
            return DeleteResult(error=_reason(file_path, error))
        return DeleteResult(path=file_path)

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None, *,
             max_count: int | None = None) -> GrepResult:
        """Lines with the text PATTERN, in files that fit GLOB."""
        wanted = LINES if max_count is None else max(1, min(max_count, LINES))
        answer = self._call("grep", pattern=pattern, literal=True, mode="lines", limit=wanted, path=path, glob=glob)
        if not answer.ok:
            return GrepResult(error=answer.text)
        rows = answer.details.get("rows") or ()
        more = bool(answer.details.get("stopped_early")) or int(answer.details.get("matching_lines") or 0) > len(rows)
        matches = [{"path": self._absolute(row["path"]), "line": row["line"], "text": row["text"]} for row in rows]
        return GrepResult(matches=matches, truncated=more)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Files whose paths fit PATTERN, below PATH."""
        answer = self._call("glob", pattern=pattern.lstrip("/"), path=path, limit=SHOWN)
        if not answer.ok:
            return GlobResult(error=answer.text)
        paths = answer.details.get("paths") or ()
        more = bool(answer.details.get("stopped_early")) or int(answer.details.get("found") or 0) > len(paths)
        return GlobResult(matches=[{"path": self._absolute(path), "is_dir": False} for path in paths], truncated=more)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write each file; one that fails does not hold up the others."""
        answers = []
        for path, content in files:
            error = None
            try:
                self._cell.mkdir(os.path.dirname(path) or ".", parents=True)
                self._cell.write_bytes(path, content)
            except (OSError, GloveboxError) as failure:
                error = _code(failure)
            answers.append(FileUploadResponse(path=path, error=error))
        return answers

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read each file; one that fails does not hold up the others."""
        answers = []
        for path in paths:
            content, error = None, None
            try:
                content = self._cell.read_bytes(path)
            except (OSError, GloveboxError) as failure:
                error = _code(failure)
            answers.append(FileDownloadResponse(path=path, content=content, error=error))
        return answers


def _code(error: Exception) -> str:
    """The word of the harness for ERROR, or its sentence."""
    for kind, code in ((FileNotFoundError, "file_not_found"), (IsADirectoryError, "is_directory"),
                       (PermissionError, "permission_denied"), (Denied, "permission_denied"),
                       (NotADirectoryError, "invalid_path")):
        if isinstance(error, kind):
            return code
    return str(error)


def _reason(path: str, error: Exception) -> str:
    return f"{path}: {error.strerror or error}" if isinstance(error, OSError) else str(error)
