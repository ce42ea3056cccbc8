#!/usr/bin/env bash
description='Asks once; what comes back must be what was given out.'
run()
{
	tell '{"type": "question", "id": "confirm", "message": "Please confirm", "schema":
		{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}}'
	printf 'Confirmed: %s' "$(hear .content.ok)"
}
. "${0%/*}/fixture.bash"
