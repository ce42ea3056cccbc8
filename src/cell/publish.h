/*
 * publish: the front's listeners of a cell's published ports. The front makes them before
 * the cell starts, so that a port that is taken is reported before anything runs, and
 * hands them to the proxy (outlet_publish), which serves them until the session ends.
 */
#pragma once

#include "base/err.h"
#include "policy/network.h"
#include "view/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct published {
	int fd; /* -1: handed over */
	struct network_host address;
	uint16_t host_port; /* where it listens */
	uint16_t port;      /* of the cell */
	bool chosen;        /* nobody named the place: the person must be told */
};

struct publish {
	struct published rows[NETWORK_PUBLISHED_MAX];
	size_t count;
};

/*
 * Listen for every published port of SPEC. When one of them is taken, ERR has the code
 * EADDRINUSE and names the entry to write instead.
 */
bool publish_listen(const struct cell_spec *spec, struct publish *publish, struct err *err);
/* Close the listeners that were not handed over. */
void publish_close(struct publish *publish);
