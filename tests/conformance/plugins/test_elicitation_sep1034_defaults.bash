#!/usr/bin/env bash
description='Asks with a default of every kind.'
run()
{
	local answer
	tell '{"type": "question", "id": "user", "required": true, "message": "Please review these values.", "schema":
		{"type": "object", "properties": {
		"name": {"type": "string", "default": "John Doe"},
		"age": {"type": "integer", "default": 30},
		"score": {"type": "number", "default": 95.5},
		"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
		"verified": {"type": "boolean", "default": true}}}}'
	read -r answer <&4
	printf 'Elicitation completed: action=%s, content=%s' "$(glovebox json get .action <<<"$answer")" \
		"$(glovebox json get --default '{}' .content <<<"$answer")"
}
. "${0%/*}/fixture.bash"
