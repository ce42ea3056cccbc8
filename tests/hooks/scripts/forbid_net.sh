#!/bin/bash
# Nobody is asked about the network: the answer is no, and the turn is over.
cat >/dev/null
echo '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "deny",
	"message": "No network in this project", "interrupt": true}}}'
