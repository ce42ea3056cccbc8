#!/usr/bin/env python3
"""Say which commands have a better one."""
import json
import re
import sys

RULES = [(r"^grep\b(?!.*\|)", "Use 'rg' instead of 'grep'"),
         (r"^find\s+\S+\s+-name\b", "Use 'rg --files' instead of 'find -name'")]
try:
    data = json.load(sys.stdin)
except json.JSONDecodeError as error:
    print(f"Error: Invalid JSON input: {error}", file=sys.stderr)
    sys.exit(1)
if data.get("tool_name", "") != "Bash":
    sys.exit(1)
issues = [message for pattern, message in RULES if re.search(pattern, data["tool_input"].get("command", ""))]
for message in issues:
    print(f"• {message}", file=sys.stderr)
sys.exit(2 if issues else 0)
