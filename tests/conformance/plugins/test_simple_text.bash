#!/usr/bin/env bash
description='Says one sentence.'
run()
{
	printf 'This is a simple text response for testing.'
}
. "${0%/*}/fixture.bash"
