/* loopback: the listeners that a proxy serves, on the one device of a cell's network. */
#include "base/fd.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* More wait in there than a proxy serves at once. */
enum { BACKLOG = 1024 };

static int listen_at(const struct sockaddr *address, socklen_t size)
{
	const int yes = 1;
	auto_close int fd =
		socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (address->sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) < 0)
		return -1;
	if (bind(fd, address, size) < 0 || listen(fd, BACKLOG) < 0)
		return -1;
	return fd_take(&fd);
}

bool sandbox_listen(uint16_t port, int *four, int *six, struct err *err)
{
	const struct sockaddr_in address4 = {.sin_family = AF_INET,
					     .sin_port = htons(port),
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 address6 = {.sin6_family = AF_INET6,
					      .sin6_port = htons(port),
					      .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	*six = -1;
	*four = -1;
	*four = listen_at((const struct sockaddr *)&address4, sizeof(address4));
	if (*four < 0)
		return err_set(err, errno, "listening on port %u of the loopback: %s",
			       port, strerror(errno));
	if (port != 0)
		*six = listen_at((const struct sockaddr *)&address6, sizeof(address6));
	return true;
}
