#!/bin/bash
# Help after a failure.
error=$(jq -r .error)
case $error in
*"not found"*) text="Programs are installed by dev/bootstrap" ;;
*) exit 0 ;;
esac
jq -n --arg text "$text" '{hookSpecificOutput: {hookEventName: "PostToolUseFailure", additionalContext: $text}}'
