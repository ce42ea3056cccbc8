#!/usr/bin/env bash
description='Tells how far it is, then asks the user.'
run()
{
	tell '{"type": "progress", "progress": 1, "total": 2}'
	tell '{"type": "question", "id": "user", "message": "Shall I go on?", "schema": '"$(text_form answer)"'}'
	printf 'The user says: %s' "$(hear .action)"
}
. "${0%/*}/fixture.bash"
