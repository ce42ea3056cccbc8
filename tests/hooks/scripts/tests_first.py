#!/usr/bin/env python3
"""No code without a test beside it."""
import json
import os
import sys

path = json.load(sys.stdin)["tool_input"].get("file_path", "")
name = os.path.basename(path)
if "/src/" in path and name.endswith(".py"):
    test = os.path.join(os.environ["CLAUDE_PROJECT_DIR"], "tests", "test_" + name)
    if not os.path.exists(test):
        sys.exit(f"No test: {test}") if os.environ.get("SOFT") else None
        print(f"Write {os.path.relpath(test, os.environ['CLAUDE_PROJECT_DIR'])} first", file=sys.stderr)
        sys.exit(2)
