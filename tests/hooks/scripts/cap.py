#!/usr/bin/env python3
"""End the turn when the session has grown too long."""
import json
import os
import sys

data = json.load(sys.stdin)
with open(data["transcript_path"], encoding="utf-8") as lines:
    count = sum(1 for line in lines if json.loads(line))
if count >= int(os.environ.get("CAP", "0")):
    print(json.dumps({"continue": False, "stopReason": f"The session has {count} messages already"}))
