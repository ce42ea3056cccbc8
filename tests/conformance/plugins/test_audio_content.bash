#!/usr/bin/env bash
description='Gives a sound of one sample.'
run()
{
	sound
}
. "${0%/*}/fixture.bash"
