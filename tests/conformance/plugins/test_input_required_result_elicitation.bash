#!/usr/bin/env bash
description='Greets the user by the name that is asked for.'
run()
{
	tell '{"type": "question", "id": "user_name", "message": "What is your name?", "schema": '"$(text_form name)"'}'
	printf 'Hello, %s!' "$(hear .content.name)"
}
. "${0%/*}/fixture.bash"
