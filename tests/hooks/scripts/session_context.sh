#!/bin/bash
# Give the model the state of the project at the start.
jq -c '{hookSpecificOutput: {hookEventName: "SessionStart",
	additionalContext: "The session began by \(.source) in \(.cwd | split("/") | last)"}}'
