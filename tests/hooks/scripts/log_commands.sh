#!/bin/sh
# Keep a log of commands.
jq -r '"\(.tool_input.command) - \(.tool_input.description // "No description")"' >>commands.log
