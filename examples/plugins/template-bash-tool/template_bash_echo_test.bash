#!/usr/bin/env bash
# Tests of the tool beside this file. They need nothing but bash:
#   bash template_bash_echo_test.bash
# and "glovebox plugin check" runs them in a cell.
set -uo pipefail

tool=$(dirname "$0")/template_bash_echo.bash
tried=0
failed=0

# expect NAME STATUS PATTERN ARGUMENTS…: the tool ends so, and what it prints fits.
expect() {
	local name=$1 status=$2 pattern=$3 said ended=0
	shift 3
	tried=$((tried + 1))
	said=$(bash "$tool" "$@" 2>&1) || ended=$?
	# The pattern is one: not quoted.
	# shellcheck disable=SC2053
	if [[ $ended == "$status" && $said == $pattern ]]; then
		printf 'ok %d - %s\n' "$tried" "$name"
	else
		printf 'not ok %d - %s\n' "$tried" "$name"
		printf '# status %s, not %s; it printed: %q\n' "$ended" "$status" "$said"
		failed=1
	fi
}

expect 'it says what it is' 0 '*"id": "template_bash_echo"*' schema
expect 'it repeats a text' 0 'a b' run 'a b' false
expect 'it makes capital letters' 0 'A B' run 'a b' true
# shellcheck disable=SC2016 # nothing is to become of it
expect 'a text is no command' 0 '$(echo no)' run '$(echo no)' false
expect 'a preview is one line' 0 'repeat *' preview 'a b' true
expect 'a failure has words of its own' 0 '*status 3' error 3 'a b' true
expect 'another subcommand is refused' 2 'usage: *' other

printf '1..%d\n' "$tried"
exit "$failed"
