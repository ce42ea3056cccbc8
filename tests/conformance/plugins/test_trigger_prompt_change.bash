#!/usr/bin/env bash
description='Has the list of prompts changed: whoever reads the pipe in the workspace does it.'
run()
{
	printf 'prompt\n' >prompt-change
	printf 'Asked for.'
}
. "${0%/*}/fixture.bash"
