"""What the adapters share: how a cell is opened from a harness's words, outputs with a ceiling, and whole folders."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from .. import _tree
from ..errors import Closed, Limit, TimedOut, Usage
from ..results import ExecResult

if TYPE_CHECKING:
    from .. import aio
    from .._blocking import Cell

BASES = ("host", "rootfs:", "image:", "oci:", "snapshot:", "devcontainer")
ONE_USER = ("", "root", "0", "glovebox")  # names of the one user of a cell
ROOT = {"HOME": "/root", "USER": "root", "LOGNAME": "root"}
OWN = ("/", "//", "/root", "/tmp")  # folders that a cell has of its own: commands start there, and no workspace stands there
PIECE = 1 << 20
TREE_MAX = 8 << 30  # bytes of a folder that is copied as a whole
SAID_MAX = 4096  # bytes that are kept of what tar complains about


@contextlib.contextmanager
def harness(name: str, install: str) -> Iterator[None]:
    """Say what to install where an import from the harness NAME fails; INSTALL is what pip knows it as."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"the adapter for {name} needs that package: pip install {install} ({error})",
                          name=error.name) from error


def base_of(image: str | None, base: str | None) -> str | None:
    """The base of a cell for an IMAGE as container engines name it, or for a BASE as Cell does."""
    if image and base:
        raise Usage("image and base exclude each other: give one of both")
    if base or not image:
        return base or None
    return image if image.startswith(BASES) else f"image:{image}"


def cell_arguments(*, image: str | None = None, base: str | None = None, workspace: str | None = None,
                   cwd: str | None = None, env: Mapping[str, str] | None = None, memory: str | None = None,
                   cpus: float | None = None, network: Sequence[str] = (), policy: Mapping[str, Any] | None = None,
                   **more: Any) -> dict[str, Any]:
    """
    The arguments of Cell. CWD is the folder in which commands start: in a base alone it is there already, else the
    workspace is shown at that place.
    """
    arguments: dict[str, Any] = {"base": base_of(image, base), "workspace": workspace or None,
                                 "memory": size(memory), "cpus": cpus, **more}
    if network:
        arguments["network"] = list(network)
    if policy is not None:
        arguments["policy"] = policy
    arguments["env"] = variables(env)
    place = os.path.normpath(cwd) if cwd and os.path.isabs(cwd) else "/"
    if (workspace or arguments["base"] is None) and place not in OWN and not _within(place, workspace):
        arguments["at"] = place
    return {name: value for name, value in arguments.items() if value not in (None, {}, [])}


def _within(path: str, folder: str | None) -> bool:
    return folder is not None and os.path.commonpath([path, os.path.abspath(folder)]) == os.path.abspath(folder)


def variables(env: Mapping[str, str] | None) -> dict[str, str]:
    """Variables of a harness without those that say who root is: a cell sets them, for its one user and its own home."""
    return {name: value for name, value in (env or {}).items() if ROOT.get(name) != value}


def size(text: str | None) -> str | None:
    """A size as container engines write it (512m, 1.5gb), as a cell takes it."""
    if not text:
        return None
    number = text.strip().upper().removesuffix("B").removesuffix("I")
    digits, unit = (number[:-1], number[-1]) if number[-1:] in tuple("KMGT") else (number, "")
    try:
        value = float(digits)
    except ValueError:
        raise Usage(f"{text!r} is no size: give bytes, or a number with k, m, g or t, as in 512m") from None
    if value.is_integer():
        return f"{int(value)}{unit}"
    return str(int(value * 1024 ** " KMGT".index(unit or " ")))


def one_user(user: str | int | None) -> None:
    """Raise Usage for a USER that a cell does not have: all its programs are one user's, who is root inside a base."""
    if user is not None and str(user) not in (*ONE_USER, str(os.getuid())):
        raise Usage(f'this cell has one user; "{user}" needs another base', rule="user")


def exit_code(result: ExecResult) -> int:
    """The exit code as a shell tells it."""
    return result.exit_code if result.exit_code is not None else 128 + (result.signal or 0)


def reasons(result: ExecResult) -> str:
    """The sentences about RESULT that its outputs do not have."""
    said = [result.message or ""]
    if result.limit and result.exit_code != 0:
        said.append(f"The limit {result.limit} was reached.")
    return " ".join(text for text in said if text)


class Excerpt:
    """The first HEAD and the last TAIL bytes of an output, of which any amount may come."""

    def __init__(self, head: int, tail: int) -> None:
        self._head, self._tail = head, tail
        self._first = bytearray()
        self._last = bytearray()
        self.dropped = 0  # bytes between both that were not kept

    def add(self, data: bytes) -> None:
        room = max(0, self._head - len(self._first))
        self._first += data[:room]
        self._last += data[room:]
        if len(self._last) >= 2 * self._tail + PIECE:
            self._cut()

    def _cut(self) -> None:
        surplus = max(0, len(self._last) - self._tail)
        del self._last[:surplus]
        self.dropped += surplus

    @property
    def text(self) -> str:
        """Both as text, and between them how much is missing."""
        self._cut()
        first, last = self._first.decode(errors="replace"), self._last.decode(errors="replace")
        return f"{first}\n[{self.dropped} bytes were left out here]\n{last}" if self.dropped else \
            (self._first + self._last).decode(errors="replace")


def run_merged(cell: Cell, argv: Sequence[str] | str, output: Excerpt, *, cwd: str | None = None,
               env: Mapping[str, str] | None = None, timeout: float | None = None) -> ExecResult:
    """Run a program to its end, both outputs into OUTPUT. A timeout is told by the result."""
    process = cell.start(argv, input="", cwd=cwd, env=env, timeout=timeout, merge=True)
    try:
        while data := process.stdout.read_some():
            output.add(data)
        return process.wait()
    except TimedOut as error:
        if error.result is None:
            raise
        return error.result
    except BaseException:
        with contextlib.suppress(Exception):
            process.kill()
        raise


# Whole folders, as a tar. What a program of the cell has packed stays a tar on this machine.

async def unpack(cell: aio.Cell, archive: IO[bytes], folder: str) -> None:
    """Unpack a tar, which is read from where it stands, in FOLDER of CELL. The folder is made."""
    process = await cell.start(["sh", "-c", 'mkdir -p -- "$1" && exec tar -x -f - --no-same-owner -C "$1"', "sh", folder])
    done = 0
    try:
        with contextlib.suppress(Closed):  # tar may end before it has read the padding
            while data := await asyncio.to_thread(archive.read, PIECE):
                done += len(data)
                if done > TREE_MAX:
                    raise Limit(f"{folder}: a folder of more than {TREE_MAX >> 30} GiB is not copied as a whole")
                await process.write(data)
            await process.close_input()
        result = await process.wait()
    except BaseException:
        with contextlib.suppress(Exception):
            await process.kill()
        raise
    _check_tar(result.exit_code, result.stderr, result.message, folder)


async def pack(cell: aio.Cell, folder: str, leave_out: Sequence[str] = ()) -> IO[bytes]:
    """A temporary file with the tar of FOLDER of CELL, without the paths of LEAVE_OUT. The caller closes it."""
    options = [f"--exclude=./{path}" for path in leave_out]
    process = await cell.start(["tar", "-c", "-f", "-", "--anchored", "--no-wildcards", *options, "-C", folder, "."],
                               input="")
    archive = tempfile.TemporaryFile()
    said = Excerpt(SAID_MAX, 0)

    async def outputs() -> None:
        done = 0
        while data := await process.stdout.read_some():
            done += len(data)
            if done > TREE_MAX:
                raise Limit(f"{folder}: a folder of more than {TREE_MAX >> 30} GiB is not copied as a whole")
            await asyncio.to_thread(archive.write, data)

    async def complaints() -> None:
        while data := await process.stderr.read_some():
            said.add(data)

    try:
        await asyncio.gather(outputs(), complaints())
        result = await process.wait()
        _check_tar(result.exit_code, said.text.encode(), result.message, folder)
    except BaseException:
        archive.close()
        with contextlib.suppress(Exception):
            await process.kill()
        raise
    archive.seek(0)
    return archive


def _check_tar(code: int | None, said: bytes, message: str | None, folder: str) -> None:
    if code != 0:
        reason = (message or said.decode(errors="replace")).strip() or f"tar has ended with {code}"
        raise OSError(f"{folder}: it could not be copied: {reason}")


async def get_folder(cell: aio.Cell, remote: str, local: str | os.PathLike[str]) -> int:
    """
    Copy what is below the folder REMOTE of CELL into LOCAL of this machine, which is made. Programs in the cell have
    written it, so what is no file, folder or link, a name that goes through a link, and a link that could leave LOCAL is
    left out; `cell.download` refuses these. How many entries were left out.
    """
    with tempfile.TemporaryFile() as packed:
        skipped = await cell._pack(remote, packed)
        return skipped + await asyncio.to_thread(_tree.unpack, packed, local, True)
