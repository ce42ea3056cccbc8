#!/usr/bin/env bash
description='Tells how far it is.'
run()
{
	tell '{"type": "progress", "progress": 0, "total": 100, "message": "begun"}'
	sleep 0.05
	tell '{"type": "progress", "progress": 50, "total": 100, "message": "half"}'
	sleep 0.05
	tell '{"type": "progress", "progress": 100, "total": 100, "message": "done"}'
	printf 'Tool with progress executed.'
}
. "${0%/*}/fixture.bash"
