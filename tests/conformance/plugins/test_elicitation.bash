#!/usr/bin/env bash
description='Asks the user for name and address, with a message of the caller.'
parameters='{"type": "object", "properties": {"message": {"type": "string", "description": "What to say"}},
"required": ["message"]}'
run()
{
	local message answer
	message=$(glovebox json get --json .message <<<"$arguments")
	tell '{"type": "question", "id": "user", "required": true, "message": '"$message"', "schema":
		{"type": "object", "required": ["username", "email"], "properties": {
		"username": {"type": "string", "description": "The name"},
		"email": {"type": "string", "description": "The address"}}}}'
	read -r answer <&4
	printf 'User response: %s' "$answer"
}
. "${0%/*}/fixture.bash"
