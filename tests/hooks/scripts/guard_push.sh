#!/usr/bin/env bash
# Refuse pushes by force, with an answer in JSON.
set -euo pipefail
input=$(cat)
if jq -e '.tool_name == "Bash" and (.tool_input.command | test("git push.*(--force|-f)\\b"))' <<<"$input" >/dev/null; then
	jq -n '{hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "deny",
		permissionDecisionReason: "Pushes by force are not for agents"}}'
fi
