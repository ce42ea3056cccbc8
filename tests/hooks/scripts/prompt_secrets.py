#!/usr/bin/env python3
"""Do not send prompts that hold a password."""
import json
import re
import sys

if re.search(r"(?i)\b(password|secret|token)\s*[:=]", json.load(sys.stdin).get("prompt", "")):
    print(json.dumps({"decision": "block", "reason": "The prompt holds a password. Put it into a file."}))
    sys.exit(0)
