/*
 * lookups: the hosts that programs of a cell asked the addresses of, without finding a name
 * server (sandbox_overhear). Messages and exit code of the program take no part. A name that the
 * cell's /etc/hosts holds is not asked for.
 */
#pragma once
#include "base/str.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The host that PACKET, a datagram with its IP and UDP headers, asks for. False when it asks for
 * none that a policy could list. PACKET may come from anybody.
 */
bool lookups_parse(struct str packet, struct network_host *host);

/* Take what waits at FD and call EACH for every host; one that was asked for twice comes twice. */
void lookups_read(int fd, void (*each)(void *context, const struct network_host *host),
		  void *context);

/*
 * How many packets found no way out of the network of the process behind PIDFD: an address instead
 * of a name is asked of nobody, and this is all that the kernel keeps of it. False when it cannot
 * be read.
 */
bool lookups_count_unrouted(int pidfd, uint64_t *count);
