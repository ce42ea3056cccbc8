#!/usr/bin/env python3
"""Compile a Python file that was written, and give the errors to the model."""
import json
import sys

path = json.load(sys.stdin)["tool_input"]["file_path"]
if path.endswith(".py"):
    try:
        compile(open(path, encoding="utf-8").read(), path, "exec")
    except SyntaxError as error:
        print(f"{path}:{error.lineno}: {error.msg}", file=sys.stderr)
        sys.exit(2)
