#!/usr/bin/env bash
# Prints a line, waits until the file "go" is there, then prints more than an answer has room for.
case $1 in
schema)
	cat <<-'JSON'
	{"id": "floods", "version": "1", "args_mode": "json", "tools": [{"type": "function", "function":
	 {"name": "floods", "description": "Flood.", "parameters": {"type": "object", "properties": {}}}}]}
	JSON
	;;
run)
	printf '\e[1mbegun\e[0m\n'
	until [[ -e go ]]; do sleep 0.05; done
	seq 2 20000
	;;
esac
