#!/bin/bash
# The agent may not stop before the tests are green, but is asked once only.
input=$(cat)
[[ $(jq -r .stop_hook_active <<<"$input") == true ]] && exit 0
if ! ./check >/dev/null 2>&1; then
	echo "The tests are red: run ./check and mend what it says" >&2
	exit 2
fi
