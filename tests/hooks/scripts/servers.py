#!/usr/bin/env python3
"""Tools of servers may only read."""
import json
import sys

name = json.load(sys.stdin)["tool_name"]
server, tool = name.split("__")[1:3]
if not tool.startswith(("get", "list", "read")):
    print(f"{tool} of {server} may change something", file=sys.stderr)
    sys.exit(2)
