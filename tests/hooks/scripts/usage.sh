#!/bin/bash
# Count the uses of each tool.
jq -c '{tool: .tool_name, ok: .tool_response.success}' >>usage.jsonl
