/* socket: turns our addresses into those of the kernel. */
#include "proxy/socket.h"

#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static socklen_t address_fill(const struct network_host *host, uint16_t port,
			      union address *address)
{
	memset(address, 0, sizeof(*address));
	if (host->kind == NETWORK_IPV4) {
		address->four.sin_family = AF_INET;
		address->four.sin_port = htons(port);
		memcpy(&address->four.sin_addr, host->address, 4);
		return sizeof(address->four);
	}
	address->six.sin6_family = AF_INET6;
	address->six.sin6_port = htons(port);
	memcpy(&address->six.sin6_addr, host->address, NETWORK_ADDRESS);
	return sizeof(address->six);
}

int socket_connect(const struct network_host *host, uint16_t port, bool stream)
{
	union address address;
	socklen_t size = address_fill(host, port, &address);
	const int yes = 1;
	auto_close int fd =
		socket(address.any.sa_family,
		       (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0);

	if (fd < 0)
		return -1;
	/* Small messages of a protocol must not wait for each other. */
	if (stream)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (connect(fd, &address.any, size) < 0 && errno != EINPROGRESS)
		return -1;
	return fd_take(&fd);
}

bool socket_is_own(const struct network_host *host)
{
	/*
	 * Ask the routing table instead of reading a list, because addresses come and go:
	 * the source address of a packet to this machine is its destination. connect() on
	 * a UDP socket sends nothing.
	 */
	auto_close int fd = socket_connect(host, 9, false);
	union address source;
	socklen_t size = sizeof(source);

	if (fd < 0 || getsockname(fd, &source.any, &size) < 0)
		return false;
	if (host->kind == NETWORK_IPV4)
		return memcmp(&source.four.sin_addr, host->address, 4) == 0;
	return memcmp(&source.six.sin6_addr, host->address, NETWORK_ADDRESS) == 0;
}
