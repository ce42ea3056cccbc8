#!/bin/bash
# No commits on main.
command=$(jq -r .tool_input.command)
branch=$(sed 's|ref: refs/heads/||' "$CLAUDE_PROJECT_DIR/head" 2>/dev/null || echo none)
[[ $command == "git commit"* && $branch == main ]] || exit 0
jq -n --arg b "$branch" '{decision: "block", reason: "You are on \($b): make a branch first"}'
