#!/usr/bin/env bash
description='Gives a text, a picture and a resource.'
resource='"uri": "test://mixed-content-resource", "mimeType": "application/json"'
run()
{
	printf 'Multiple content types test:'
	picture
	tell '{"type": "resource", "resource": {'"$resource"', "text": "{\"test\":\"data\",\"value\":123}"}}'
}
. "${0%/*}/fixture.bash"
