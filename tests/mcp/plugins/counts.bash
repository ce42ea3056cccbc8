#!/usr/bin/env bash
# Prints a line, waits until the file "go" is there, then counts slower than seconds pass.
case $1 in
schema)
	cat <<-'JSON'
	{"id": "counts", "version": "1", "args_mode": "json", "tools": [{"type": "function", "function":
	 {"name": "counts", "description": "Count.", "parameters": {"type": "object", "properties": {}}}}]}
	JSON
	;;
run)
	sleep 0.3
	echo working
	until [[ -e go ]]; do sleep 0.05; done
	for part in 0.1 0.2; do
		printf '{"type": "progress", "progress": %s, "total": 1}\n' $part >&3
	done
	;;
esac
