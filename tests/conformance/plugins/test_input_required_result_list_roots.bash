#!/usr/bin/env bash
description='Asks for the roots of the client.'
run()
{
	tell '{"type": "roots", "id": "client_roots"}'
	printf 'Roots: %s' "$(hear .content.roots)"
}
. "${0%/*}/fixture.bash"
