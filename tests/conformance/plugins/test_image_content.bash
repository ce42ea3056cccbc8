#!/usr/bin/env bash
description='Gives a picture of one pixel.'
run()
{
	picture
}
. "${0%/*}/fixture.bash"
