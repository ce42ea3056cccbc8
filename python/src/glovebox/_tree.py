"""
Folders of a cell on their way to this machine. Programs of the cell have made their names and links, so each entry is
judged by its words before anything is made of it; Python's own filter, which older releases lack, looks at it behind that.
"""

from __future__ import annotations

import copy
import os
import stat
import tarfile
from collections.abc import Iterator
from typing import IO, Any

__all__ = ["Refused", "unpack"]

FILE_MODE = 0o755  # what a file keeps of its mode
FOLDER_MODE = 0o755


class Refused(Exception):
    """An entry would leave the folder, or is neither file, folder nor link."""


def unpack(packed: IO[bytes], folder: str | os.PathLike[str], leave_out: bool = False) -> int:
    """
    Unpack the tar PACKED in FOLDER, which is made. An entry that would leave FOLDER raises Refused, or with LEAVE_OUT is
    left out. How many were left out.
    """
    os.makedirs(folder, exist_ok=True)
    judge = _Judge(os.path.abspath(folder))
    left_out = 0

    def kept(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
        # What an entry meets is known when those before it are in place: extractall takes one after the other.
        nonlocal left_out
        for member in tar:
            try:
                allowed = judge.allow(member)
            except Refused:
                if not leave_out:
                    raise
                left_out += 1
                continue
            if allowed is not None:
                yield allowed

    how: dict[str, Any] = {"filter": "fully_trusted"} if judge.behind is not None else {}
    with tarfile.open(fileobj=packed, mode="r:") as tar:
        all_of: Any = tar.extractall  # filters are newer than some types of tarfile
        all_of(folder, members=kept(tar), **how)
    return left_out


class _Judge:
    """Says which entries stay in FOLDER. No link is followed, so no target has to be resolved."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files: set[str] = set()  # regular files of this tar
        self.behind: Any = getattr(tarfile, "data_filter", None)

    def allow(self, member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        """MEMBER as it may be unpacked; None for FOLDER itself. Raises Refused."""
        words = self._words(member.name, member.name)
        if not words and member.isdir():
            return None
        path = os.path.join(self._folder, *words)
        if not words:
            raise Refused(f"{member.name!r} is no name")
        if member.issym():
            self._check_target(member, len(words) - 1)
        elif member.islnk():
            self._check_hard_link(member, words)
        elif not (member.isreg() or member.isdir()):
            raise Refused(f"{member.name!r} is neither file, folder nor link")
        elif member.isdir() and os.path.islink(path):
            raise Refused(f"{member.name!r} is a folder where a link is")
        # An open for writing would go through the link that was there.
        if os.path.islink(path) or (member.islnk() and os.path.lexists(path)):
            os.unlink(path)
        kept = self._plain(member)
        name = "/".join(words)
        if member.isreg() or member.islnk():
            self._files.add(name)
        else:
            self._files.discard(name)
        return kept

    def _words(self, name: str, member: str) -> list[str]:
        """The words of NAME, which leads from FOLDER through folders only."""
        words = _split(name)
        if name.startswith("/") or ".." in words:
            raise Refused(f"{member!r} would leave the folder")
        for end in range(1, len(words)):
            if os.path.islink(os.path.join(self._folder, *words[:end])):
                raise Refused(f"{member!r} goes through a link")
        return words

    @staticmethod
    def _check_target(member: tarfile.TarInfo, depth: int) -> None:
        """
        A link goes up first and then down. One that goes up behind a name could leave by a link of that name, which no
        look at the link alone tells.
        """
        words = _split(member.linkname)
        up = next((count for count, word in enumerate(words) if word != ".."), len(words))
        if member.linkname.startswith("/") or up > depth or ".." in words[up:]:
            raise Refused(f"{member.name!r} is a link that could leave the folder")

    def _check_hard_link(self, member: tarfile.TarInfo, own: list[str]) -> None:
        words = self._words(member.linkname, member.name)
        if "/".join(words) not in self._files or words == own or \
                not stat.S_ISREG(os.lstat(os.path.join(self._folder, *words)).st_mode):
            raise Refused(f"{member.name!r} is a hard link to what is no file before it")

    def _plain(self, member: tarfile.TarInfo) -> tarfile.TarInfo:
        """MEMBER without an owner, and without the bits of a mode that give rights."""
        if self.behind is not None:
            try:
                kept: tarfile.TarInfo = self.behind(member, self._folder)
            except tarfile.TarError as error:
                raise Refused(str(error)) from error
            return kept
        kept = copy.copy(member)
        kept.uid, kept.gid, kept.uname, kept.gname = os.getuid(), os.getgid(), "", ""
        kept.mode = FOLDER_MODE if member.isdir() else member.mode & FILE_MODE | stat.S_IRUSR | stat.S_IWUSR
        return kept


def _split(path: str) -> list[str]:
    return [word for word in path.split("/") if word not in ("", ".")]
