#!/bin/bash
# Refuse to remove whole trees.
command=$(jq -r '.tool_input.command // empty')
if grep -qE '\brm\s+(-\w*r\w*f|-\w*f\w*r)\b' <<<"$command"; then
	echo "Blocked: $command removes a tree. Name the files." >&2
	exit 2
fi
