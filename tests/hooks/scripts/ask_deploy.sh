#!/bin/bash
# A person decides about what leaves the house.
if jq -e '.tool_input.command | test("^(deploy|terraform apply)")' >/dev/null; then
	echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask",
		"permissionDecisionReason": "This changes the servers"}}'
fi
