#!/usr/bin/env bash
description='Gives a resource, whole.'
resource='"uri": "test://embedded-resource", "mimeType": "text/plain"'
run()
{
	tell '{"type": "resource", "resource": {'"$resource"', "text": "This is an embedded resource content."}}'
}
. "${0%/*}/fixture.bash"
