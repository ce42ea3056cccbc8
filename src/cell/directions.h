/*
 * directions: by these the programs of a cell find the broker (broker/broker.h). For each
 * credential there are its variables, with the phantom and the address of the plain door,
 * and for a forge the settings of git. For TLS there are the certificate of the cell's
 * authority, the system's bundle of certificates with it, both below /run/glovebox and over
 * the system's own files, and variables that lead there; one that the policy sets stays as
 * it is. The proxy gets to know the hosts.
 */
#pragma once

#include "view/spec.h"

#include <stdbool.h>
#include <stddef.h>

struct credential;

struct direction {
	const struct credential *credential;
	const char *phantom;
	bool copied; /* a login, of which the cell has a copy: its variables stay unset */
};

/*
 * Put the directions for COUNT ROWS into SPEC. A value that the policy passes under the name
 * of such a variable is replaced: it is the key. The certificate itself comes late, by the
 * pipe of the view (sandbox/view.h).
 */
void directions_set(const struct direction *rows, size_t count, struct cell_spec *spec);
