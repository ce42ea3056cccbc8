/*
 * lookups: the hosts that programs of a cell asked the addresses of, without finding a
 * name server (sandbox_overhear). The messages and the exit code of the program do not
 * matter. Programs do not ask for a name that is in the /etc/hosts of the cell.
 *
 * A question for a name goes to the loopback of the cell, where nobody answers. The
 * anchor has made a socket there that keeps a copy, and the front reads it at the end
 * of each call.
 */
#pragma once
#include "base/str.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Read the host that PACKET, a datagram with its IP and UDP headers, asks for. False when
 * PACKET asks for no host that a policy could list. PACKET may come from anybody.
 */
bool lookups_parse(struct str packet, struct network_host *host);

/*
 * Read all datagrams that wait at FD and call EACH for every host. A host that was asked
 * for twice is reported twice.
 */
void lookups_read(int fd, void (*each)(void *context, const struct network_host *host),
		  void *context);

/*
 * Count the packets that found no route out of the network of the process behind PIDFD. A
 * program that uses an address instead of a name asks no name server, and this count is
 * the only trace of it in the kernel. False when the count cannot be read.
 */
bool lookups_count_unrouted(int pidfd, uint64_t *count);
