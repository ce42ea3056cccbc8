/* network: the cell's private network, made beside the view. For identity.c. */
#pragma once
#include "base/err.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>

/*
 * Start the helper that makes a network namespace with `lo` up. NETWORK stays where it is
 * until sandbox_join, which also tells what went wrong here: the helper writes there.
 */
void network_begin(struct sandbox_network *network);
