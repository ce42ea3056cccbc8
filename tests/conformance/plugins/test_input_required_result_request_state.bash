#!/usr/bin/env bash
description='Asks once, and goes on where it was.'
run()
{
	tell '{"type": "question", "id": "confirm", "message": "Please confirm", "schema":
		{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}}'
	printf 'state-ok: %s' "$(hear .content.ok)"
}
. "${0%/*}/fixture.bash"
