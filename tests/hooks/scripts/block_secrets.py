#!/usr/bin/env python3
"""Refuse to write what looks like a key."""
import json
import re
import sys

entry = json.load(sys.stdin)["tool_input"]
texts = [entry.get("content", ""), entry.get("new_string", "")]
texts += [edit.get("new_string", "") for edit in entry.get("edits", [])]
if any(re.search(r"AKIA[0-9A-Z]{16}|-----BEGIN (RSA |EC )?PRIVATE KEY", text) for text in texts):
    print(json.dumps({"decision": "block", "reason": "This text holds a key"}))
