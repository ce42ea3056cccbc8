"""
Harbor and Terminal-Bench (interface of August 2026), by import path:

    harbor run … --environment-import-path glovebox.adapters.harbor:GloveboxEnvironment

Tasks name a `docker_image`; one with a Dockerfile alone needs an image that was built of it.
"""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..aio import Cell
from ..errors import TimedOut
from . import base_of, check_user, load

TRIED = "the interface of August 2026"
KEEP = 10 << 20
TIMED_OUT = 124  # as timeout(1) has it

_harbor = load("harbor.environments.base", "harbor", TRIED)
if TYPE_CHECKING:
    class _Base:
        task_env_config: Any
        environment_dir: Path

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...
else:
    _Base = _harbor.BaseEnvironment


class GloveboxEnvironment(_Base):
    """An environment that is one cell. WORKSPACE and NETWORK are those of a cell."""

    def __init__(self, *args: Any, workspace: str | None = None, network: list[str] | None = None, **kwargs: Any) -> None:
        self._workspace, self._network = workspace, network or []
        self._cell: Cell | None = None
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> Any:
        # The harness has a list of its own kinds; a name is enough where it only prints it.
        class Kind(str):
            value = "glovebox"
        return Kind("glovebox")

    @property
    def is_mounted(self) -> bool:
        return False

    @property
    def supports_gpus(self) -> bool:
        return False

    @property
    def can_disable_internet(self) -> bool:
        return True

    def _validate_definition(self) -> None:
        if not self._image() and (Path(self.environment_dir) / "Dockerfile").exists():
            raise FileNotFoundError("this task has a Dockerfile and no docker_image: build the image, and name it in "
                                    "task.toml as docker_image")

    def _image(self) -> str | None:
        return getattr(self.task_env_config, "docker_image", None)

    async def start(self, force_build: bool = False) -> None:
        memory = getattr(self.task_env_config, "memory_mb", None)
        self._cell = await Cell(self._workspace, base=base_of(self._image()), network=self._network,
                                memory=f"{memory}M" if memory else None)

    async def stop(self, delete: bool = True) -> None:
        if self._cell is not None:
            await self._cell.close(keep=not delete)
            self._cell = None

    def _open(self) -> Cell:
        if self._cell is None:
            raise RuntimeError("the environment was not started")
        return self._cell

    async def exec(self, command: str, cwd: str | None = None, env: dict[str, str] | None = None,
                   timeout_sec: int | None = None, user: str | int | None = None) -> Any:
        check_user(user if user is not None else getattr(self, "default_user", None))
        merge = getattr(self, "_merge_env", None)
        try:
            result = await self._open().exec(command, cwd=cwd, env=merge(env) if merge is not None else env,
                                             timeout=timeout_sec, keep=KEEP)
        except TimedOut as error:
            said = error.result
            return _harbor.ExecResult(stdout=said.text if said else "", return_code=TIMED_OUT,
                                      stderr=f"timed out after {timeout_sec} s")
        code = result.exit_code if result.exit_code is not None else 128 + (result.signal or 0)
        return _harbor.ExecResult(stdout=result.text, stderr=result.stderr.decode(errors="replace"), return_code=code)

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        if posixpath.dirname(target_path):
            await self._open().mkdir(posixpath.dirname(target_path), parents=True)
        await self._open().upload(source_path, target_path)
        if os.access(source_path, os.X_OK):
            await self._open().exec(["chmod", "+x", target_path])

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self._open().upload(source_dir, target_dir)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        await self._open().download(source_path, target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        await self._open().download(source_dir, target_dir)
