#!/usr/bin/env bash
description='Says one thing in the log.'
run()
{
	tell '{"type": "log", "level": "info", "data": "Somebody may want to know."}'
	printf 'Logged.'
}
. "${0%/*}/fixture.bash"
