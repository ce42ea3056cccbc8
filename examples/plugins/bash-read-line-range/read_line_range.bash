#!/usr/bin/env bash
# read_line_range: some lines of a file. The numbers end up in a program of sed, where a text
# like "1e touch x" would be a command: they are looked at again here, though the caller's schema
# lets nothing but integers through.
set -euo pipefail

describe() {
	cat <<-'JSON'
	{
	  "id": "read_line_range",
	  "version": "0.1.0",
	  "args_mode": "positional",
	  "positional": [
	    {"name": "path", "required": true},
	    {"name": "start_line", "required": true},
	    {"name": "end_line", "required": true},
	    {"name": "show_line_numbers", "default": false}
	  ],
	  "tools": [{
	    "type": "function",
	    "function": {
	      "name": "read_line_range",
	      "description": "Show the lines of a file from start_line to end_line.",
	      "parameters": {
	        "type": "object",
	        "properties": {
	          "path": {"type": "string", "minLength": 1},
	          "start_line": {"type": "integer", "minimum": 1},
	          "end_line": {"type": "integer", "minimum": 1},
	          "show_line_numbers": {"type": "boolean", "default": false}
	        },
	        "required": ["path", "start_line", "end_line"],
	        "additionalProperties": false
	      }
	    }
	  }]
	}
	JSON
}

fail() {
	printf '%s\n' "$1" >&2
	exit 1
}

is_number() {
	[[ $1 =~ ^[1-9][0-9]{0,17}$ ]]
}

show() {
	local path=$1 first=$2 last=$3 numbers=$4

	is_number "$first" || fail "start_line must be a number from 1 on."
	is_number "$last" || fail "end_line must be a number from 1 on."
	((first <= last)) || fail "end_line is before start_line."
	[[ $path == /* ]] || path=./$path
	[[ -f $path ]] || fail "There is no file $path."
	if [[ $numbers == true ]]; then
		sed -n -e "${first},${last}{=;p;}" -e "${last}q" -- "$path" | paste -d '\t' - -
	else
		sed -n -e "${first},${last}p" -e "${last}q" -- "$path"
	fi
}

case ${1-} in
schema) describe ;;
preview) printf 'lines %s to %s of %q\n' "${3-}" "${4-}" "${2-}" ;;
run) show "${2-}" "${3-}" "${4-}" "${5-false}" ;;
*)
	printf 'usage: %s schema|preview|run\n' "$0" >&2
	exit 2
	;;
esac
