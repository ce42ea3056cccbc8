/* network: the cell's private network, made beside the view. For identity.c and settle.c. */
#pragma once
#include "base/err.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>

/*
 * Start the helper that makes a network namespace with `lo` up. NETWORK stays where it is
 * until network_enter, which also tells what went wrong here: the helper writes there.
 */
void network_begin(struct sandbox_network *network);
/* Wait for the helper's end and enter its namespace. False with the helper's own reason. */
bool network_enter(struct sandbox_network *network, struct err *err);
