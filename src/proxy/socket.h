/* socket: sockets to checked addresses. */
#pragma once
#include "policy/network.h"

#include <stdbool.h>

/*
 * Begin to connect a non-blocking socket to ADDRESS and PORT. Returns -1 with errno when
 * that fails. STREAM: TCP, else UDP.
 */
int socket_connect(const struct network_host *address, uint16_t port, bool stream);

/* Does ADDRESS belong to this machine now? */
bool socket_is_own(const struct network_host *address);
