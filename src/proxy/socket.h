/* socket: sockets to checked addresses. */
#pragma once
#include "policy/network.h"

#include <stdbool.h>

/*
 * A socket on its way to ADDRESS and PORT that never blocks; -1 with errno when there can
 * be none. STREAM: TCP, else UDP.
 */
int socket_connect(const struct network_host *address, uint16_t port, bool stream);

/* Is ADDRESS one of this machine's own, now? */
bool socket_is_own(const struct network_host *address);
