#!/usr/bin/env bash
# template_bash_echo: a tool in one script. It is started as
#   bash template_bash_echo.bash schema | preview ARGS | run ARGS | error CODE ARGS
# where ARGS are the values of `positional`, in that order.
set -euo pipefail

# What the model sees. "id" and the function's name are the same.
describe() {
	cat <<-'JSON'
	{
	  "id": "template_bash_echo",
	  "version": "0.1.0",
	  "args_mode": "positional",
	  "positional": [
	    {"name": "value", "required": true},
	    {"name": "uppercase", "default": false}
	  ],
	  "tools": [{
	    "type": "function",
	    "function": {
	      "name": "template_bash_echo",
	      "description": "Repeat a text, in capital letters if wanted.",
	      "parameters": {
	        "type": "object",
	        "properties": {
	          "value": {"type": "string", "description": "The text"},
	          "uppercase": {"type": "boolean", "default": false,
	                        "description": "Capital letters"}
	        },
	        "required": ["value"],
	        "additionalProperties": false
	      }
	    }
	  }]
	}
	JSON
}

# What is printed is the answer; an exit status other than 0 makes it a failure.
repeat() {
	if [[ $2 == true ]]; then
		printf '%s\n' "${1^^}"
	else
		printf '%s\n' "$1"
	fi
}

case ${1-} in
schema) describe ;;
preview) printf 'repeat %q, capitals: %s\n' "${2-}" "${3-false}" ;;
run) repeat "${2-}" "${3-false}" ;;
error) printf 'template_bash_echo failed with status %s\n' "${2-1}" ;;
*)
	printf 'usage: %s schema|preview|run|error\n' "$0" >&2
	exit 2
	;;
esac
