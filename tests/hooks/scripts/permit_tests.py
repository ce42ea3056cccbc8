#!/usr/bin/env python3
"""The tests may always run."""
import json
import sys

data = json.load(sys.stdin)
if data["tool_input"].get("command", "") in ("npm test", "make test"):
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PermissionRequest",
                                             "decision": {"behavior": "allow"}}}))
