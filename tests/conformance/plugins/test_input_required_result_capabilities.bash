#!/usr/bin/env bash
description='Asks the user and the model, whoever is there.'
run()
{
	local answer
	tell '{"type": "questions", "id": "all", "requests": {
		"user": {"type": "question", "message": "Are you there?", "schema": '"$(text_form answer)"'},
		"model": {"type": "sampling", "request": {"maxTokens": 10, "messages": [
			{"role": "user", "content": {"type": "text", "text": "Are you there?"}}]}}}}'
	read -r answer <&4
	printf 'Answers: %s' "$answer"
}
. "${0%/*}/fixture.bash"
