"""
deepagents (interface of August 2026): `create_deep_agent(backend=GloveboxBackend(cell))`. Files go over the wire, and
searches by grep and find in the cell, so a base needs no Python.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Any

from .._blocking import Cell
from ..errors import Denied, GloveboxError, TimedOut
from . import load

TRIED = "the interface of August 2026"
KEEP = 1 << 20
SEARCH_SECONDS = 60.0

_protocol = load("deepagents.backends.protocol", "deepagents", TRIED)
if TYPE_CHECKING:
    _Base = object
else:
    _Base = _protocol.SandboxBackendProtocol


def _code_of(error: Exception) -> str:
    for kind, code in ((FileNotFoundError, "file_not_found"), (IsADirectoryError, "is_directory"),
                       (Denied, "permission_denied")):
        if isinstance(error, kind):
            return code
    return "invalid_path" if isinstance(error, (OSError, ValueError)) else str(error)


class GloveboxBackend(_Base):
    """The files and the shell of CELL; without one, of a new cell with the ARGUMENTS of a Cell."""

    def __init__(self, cell: Cell | None = None, **arguments: Any) -> None:
        self._cell = cell if cell is not None else Cell(**arguments)

    @property
    def id(self) -> str:
        return self._cell.name

    def close(self) -> None:
        self._cell.close()

    def execute(self, command: str, *, timeout: int | None = None) -> Any:
        try:
            result = self._cell.exec(command, timeout=timeout or None, merge=True, keep=KEEP)
        except TimedOut as error:
            said = error.result.text if error.result is not None else ""
            return _protocol.ExecuteResponse(output=f"{said}\n[timed out after {timeout} s]", exit_code=124)
        code = result.exit_code if result.exit_code is not None else 128 + (result.signal or 0)
        return _protocol.ExecuteResponse(output=result.text, exit_code=code, truncated=bool(result.dropped))

    def ls(self, path: str) -> Any:
        try:
            entries = []
            for name in self._cell.listdir(path):
                whole = posixpath.join(path, name)
                about = self._cell.stat(whole)
                entries.append({"path": whole, "is_dir": about.kind == "folder", "size": about.size})
            return _protocol.LsResult(entries=entries)
        except (GloveboxError, OSError) as error:
            return _protocol.LsResult(error=str(error))

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> Any:
        if limit <= 0:
            return _protocol.ReadResult(file_data={"content": "", "encoding": "utf-8"}, no_lines_requested=True)
        try:
            data = self._cell.read_bytes(file_path)
            lines = data.decode().splitlines(keepends=True)
        except UnicodeDecodeError:
            import base64

            return _protocol.ReadResult(file_data={"content": base64.b64encode(data).decode(), "encoding": "base64"})
        except (GloveboxError, OSError) as error:
            return _protocol.ReadResult(error=str(error))
        first = max(0, offset)
        shown = lines[first:first + limit]
        file_data = {"content": "".join(shown), "encoding": "utf-8"}
        if not shown:
            return _protocol.ReadResult(file_data=file_data) if not lines else \
                _protocol.ReadResult(error=f"Line offset {first} exceeds file length ({len(lines)} lines)")
        end = first + len(shown)
        return _protocol.ReadResult(file_data=file_data, total_lines=len(lines), start_line=first + 1, end_line=end,
                                    next_offset=end if end < len(lines) else None)

    def write(self, file_path: str, content: str) -> Any:
        try:
            self._cell.mkdir(posixpath.dirname(file_path) or ".", parents=True)
            self._cell.write_text(file_path, content)
            return _protocol.WriteResult(path=file_path)
        except (GloveboxError, OSError) as error:
            return _protocol.WriteResult(error=str(error))

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> Any:
        try:
            text = self._cell.read_text(file_path)
            count = text.count(old_string) if old_string else 0
            if count == 0:
                return _protocol.EditResult(error=f"String not found in file: {old_string!r}")
            if count > 1 and not replace_all:
                return _protocol.EditResult(error=f"{old_string!r} appears {count} times; use replace_all, or more context")
            self._cell.write_text(file_path, text.replace(old_string, new_string))
            return _protocol.EditResult(path=file_path, occurrences=count)
        except (GloveboxError, OSError, ValueError) as error:
            return _protocol.EditResult(error=str(error))

    def delete(self, file_path: str) -> Any:
        try:
            self._cell.remove(file_path, recursive=True)
            return _protocol.DeleteResult(path=file_path)
        except (GloveboxError, OSError) as error:
            return _protocol.DeleteResult(error=str(error))

    def grep(self, pattern: str, path: str | None = None, glob: str | None = None, *,
             max_count: int | None = None) -> Any:
        words = ["grep", "-rnHIZF", *(["--include=" + posixpath.basename(glob)] if glob else []), "-e", pattern, "--",
                 path or self._cell.workspace]
        try:
            result = self._cell.exec(words, timeout=SEARCH_SECONDS, keep=KEEP)
        except (GloveboxError, OSError) as error:
            return _protocol.GrepResult(error=str(error))
        if result.exit_code not in (0, 1):
            return _protocol.GrepResult(error=result.stderr.decode(errors="replace").strip() or f"exit {result.exit_code}")
        matches = []
        for line in result.text.split("\n"):
            name, zero, rest = line.partition("\0")
            number, colon, text = rest.partition(":")
            if zero and colon and number.isdigit():
                matches.append({"path": name, "line": int(number), "text": text})
        cut = max_count is not None and len(matches) > max_count
        return _protocol.GrepResult(matches=matches[:max_count] if cut else matches, truncated=cut or bool(result.dropped))

    def glob(self, pattern: str, path: str | None = None) -> Any:
        top = path or self._cell.workspace
        script = 'shopt -s globstar nullglob dotglob; cd -- "$1" || exit 1; IFS=; for name in $2; do printf "%s\\0" "$name"; done'
        try:
            result = self._cell.exec(["bash", "-c", script, "glob", top, pattern.lstrip("/")], timeout=SEARCH_SECONDS,
                                     keep=KEEP)
        except (GloveboxError, OSError) as error:
            return _protocol.GlobResult(error=str(error))
        if result.exit_code != 0:
            return _protocol.GlobResult(error=result.stderr.decode(errors="replace").strip())
        names = [name for name in result.text.split("\0") if name]
        return _protocol.GlobResult(matches=[{"path": posixpath.join(top, name)} for name in sorted(names)],
                                    truncated=bool(result.dropped))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[Any]:
        answers = []
        for path, content in files:
            error = None
            try:
                self._cell.mkdir(posixpath.dirname(path) or ".", parents=True)
                self._cell.write_bytes(path, content)
            except (GloveboxError, OSError) as failure:
                error = _code_of(failure)
            answers.append(_protocol.FileUploadResponse(path=path, error=error))
        return answers

    def download_files(self, paths: list[str]) -> list[Any]:
        answers = []
        for path in paths:
            content, error = None, None
            try:
                content = self._cell.read_bytes(path)
            except (GloveboxError, OSError) as failure:
                error = _code_of(failure)
            answers.append(_protocol.FileDownloadResponse(path=path, content=content, error=error))
        return answers
