"""
Harnesses that run their agents in cells: one module for each, which imports its harness when it is imported itself.
docs/python.md has the table. This module holds what they share.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import Usage

__all__ = ["base_of", "check_user", "load"]


def load(module: str, harness: str, tried: str) -> Any:
    """The MODULE of a HARNESS, of which release TRIED is known to fit."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"this adapter needs {harness} (tried with {tried}): pip install {harness}: {error}") from error


def check_user(user: str | int | None) -> None:
    """A cell has one user, who is root in a cell with a base."""
    if user not in (None, "", "root", 0, "0"):
        raise Usage(f'this cell has one user; "{user}" needs another base')


def base_of(image: str | None) -> str | None:
    """The base for the IMAGE of a harness, which may already be the word of a base."""
    if not image:
        return None
    kinds = ("host", "rootfs:", "image:", "oci:", "snapshot:", "devcontainer")
    return image if image.startswith(kinds) else f"image:{image}"
