#!/usr/bin/env bash
description='Asks twice, one after the other.'
run()
{
	local name color
	tell '{"type": "question", "id": "step1", "message": "Step 1: What is your name?", "schema": '"$(text_form name)"'}'
	name=$(hear .content.name)
	tell '{"type": "question", "id": "step2", "message": "Step 2: What is your favorite color?", "schema": '"$(text_form color)"'}'
	color=$(hear .content.color)
	printf '%s likes %s.' "$name" "$color"
}
. "${0%/*}/fixture.bash"
