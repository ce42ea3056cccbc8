#!/usr/bin/env bash
description='Asks three things at once: the user, the model, and for the roots.'
run()
{
	local answer
	tell '{"type": "questions", "id": "all", "requests": {
		"user_name": {"type": "question", "message": "What is your name?", "schema": '"$(text_form name)"'},
		"greeting": {"type": "sampling", "request": {"maxTokens": 50, "messages": [
			{"role": "user", "content": {"type": "text", "text": "Generate a greeting"}}]}},
		"client_roots": {"type": "roots"}}}'
	read -r answer <&4
	printf 'Answers: %s' "$answer"
}
. "${0%/*}/fixture.bash"
