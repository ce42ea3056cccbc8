#!/usr/bin/env bash
description='Has the model of the client answer a question.'
run()
{
	tell '{"type": "sampling", "id": "capital_question", "request": {"maxTokens": 100, "messages": [
		{"role": "user", "content": {"type": "text", "text": "What is the capital of France?"}}]}}'
	printf 'The model says: %s' "$(hear .content.content.text)"
}
. "${0%/*}/fixture.bash"
