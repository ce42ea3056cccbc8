#!/usr/bin/env bash
description='Says where it would run; the region stands in a header too.'
parameters='{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer","x-mcp-header":"Level"}}}'
run()
{
	printf 'It would run there.'
}
. "${0%/*}/fixture.bash"
