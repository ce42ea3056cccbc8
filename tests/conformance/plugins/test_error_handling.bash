#!/usr/bin/env bash
description='Fails, on purpose.'
run()
{
	printf 'This tool intentionally returns an error for testing'
	exit 1
}
. "${0%/*}/fixture.bash"
