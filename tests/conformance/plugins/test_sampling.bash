#!/usr/bin/env bash
description='Has the model of the client answer a prompt.'
parameters='{"type": "object", "properties": {"prompt": {"type": "string", "description": "What to ask"}},
"required": ["prompt"]}'
run()
{
	local prompt
	prompt=$(glovebox json get --json .prompt <<<"$arguments")
	tell '{"type": "sampling", "id": "model", "required": true, "request": {"maxTokens": 100, "messages": [
		{"role": "user", "content": {"type": "text", "text": '"$prompt"'}}]}}'
	printf 'LLM response: %s' "$(hear .content.content.text)"
}
. "${0%/*}/fixture.bash"
