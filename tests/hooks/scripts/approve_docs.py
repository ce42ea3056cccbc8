#!/usr/bin/env python3
"""Reading documents needs no question."""
import json
import sys

data = json.load(sys.stdin)
if data["tool_name"] == "Read" and data["tool_input"]["file_path"].endswith((".md", ".txt", ".json")):
    print(json.dumps({"decision": "approve", "reason": "A document", "suppressOutput": True}))
