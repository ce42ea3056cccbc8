#!/usr/bin/env python3
"""A delegate must end with a summary."""
import json
import sys

data = json.load(sys.stdin)
if not data["stop_hook_active"] and "Summary:" not in data["last_assistant_message"]:
    print(json.dumps({"decision": "block", "reason": f"{data['agent_type']}: end with 'Summary:'"}))
