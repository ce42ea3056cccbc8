#!/usr/bin/env bash
description='Cannot do without the model of the client.'
run()
{
	tell '{"type": "sampling", "id": "model", "required": true, "request": {"maxTokens": 10, "messages": [
		{"role": "user", "content": {"type": "text", "text": "Are you there?"}}]}}'
	printf 'The model says: %s' "$(hear .content.content.text)"
}
. "${0%/*}/fixture.bash"
