"""`python -m glovebox WORD…`: the program glovebox itself, in place of Python."""

import os
import sys

from ._engine import program_path
from .errors import GloveboxError


def main() -> None:
    """Replace this process by the program."""
    try:
        program = program_path()
    except GloveboxError as error:
        sys.exit(f"glovebox: {error}")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
