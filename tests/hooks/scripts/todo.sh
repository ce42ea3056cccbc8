#!/bin/bash
# Only one task at a time.
active=$(jq '[.tool_input.todos[] | select(.status == "in_progress")] | length')
if ((active > 1)); then
	echo "$active tasks are in progress; keep one" >&2
	exit 2
fi
