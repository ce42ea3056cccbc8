#!/usr/bin/env bash
# Asks what is no question, then one thing; reads a line for each.
case $1 in
schema)
	cat <<-'JSON'
	{"id": "asks", "version": "1", "args_mode": "json", "tools": [{"type": "function", "function":
	 {"name": "asks", "description": "Ask.", "parameters": {"type": "object", "properties": {}}}}]}
	JSON
	;;
run)
	printf '%s\n' '{"type": "question", "id": 7}' '{"type": "questions", "id": 8, "requests": {}}' \
		'{"type": "question", "id": 9, "message": "Well?", "schema": {"type": "object", "properties": {}}}' >&3
	for _ in 1 2 3; do
		read -r answer <&4
		echo "$answer"
	done
	;;
esac
