#!/usr/bin/env bash
description='Says in the log how far it is.'
run()
{
	tell '{"type": "log", "level": "info", "data": "Tool execution started"}'
	sleep 0.05
	tell '{"type": "log", "level": "info", "data": "Tool processing data"}'
	sleep 0.05
	tell '{"type": "log", "level": "info", "data": "Tool execution completed"}'
	printf 'Tool with logging executed.'
}
. "${0%/*}/fixture.bash"
