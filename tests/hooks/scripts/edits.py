#!/usr/bin/env python3
"""No edit may bring in a word."""
import json
import sys

entry = json.load(sys.stdin)["tool_input"]
edits = entry.get("edits", [entry])
for number, edit in enumerate(edits, 1):
    if "console.log" in edit.get("new_string", ""):
        print(f"Edit {number} of {entry['file_path'].rsplit('/', 1)[-1]} leaves a console.log", file=sys.stderr)
        sys.exit(2)
