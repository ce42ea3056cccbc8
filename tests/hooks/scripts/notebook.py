#!/usr/bin/env python3
"""Notebooks are not edited in place."""
import json
import sys

entry = json.load(sys.stdin)["tool_input"]
if entry.get("edit_mode", "replace") == "replace":
    print(f"Insert a cell into {entry['notebook_path'].rsplit('/', 1)[-1]} instead", file=sys.stderr)
    sys.exit(2)
