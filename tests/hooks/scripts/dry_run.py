#!/usr/bin/env python3
"""Let a deployment only be tried."""
import json
import sys

data = json.load(sys.stdin)
command = data["tool_input"]["command"]
if command.startswith("deploy") and "--dry-run" not in command:
    print(json.dumps({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow",
        "permissionDecisionReason": "only tried",
        "updatedInput": {**data["tool_input"], "command": command + " --dry-run"}}}))
