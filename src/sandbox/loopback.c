/*
 * loopback: the listeners that a proxy serves, and the socket that keeps the questions for
 * names, on the one device of a cell's network.
 */
#include "base/fd.h"
#include "sandbox/sandbox.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* Room for more waiting connections than a proxy serves at the same time. */
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

bool sandbox_overhear(int *fd, struct err *err)
{
	enum { NAME_SERVER = 53, PORT_AT = 2 }; /* the UDP header: source, destination */
	/* A raw socket's packets begin with the IP header, whose length is in its first byte. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, PORT_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NAME_SERVER, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SANDBOX_QUESTION_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]),
					  .filter = code};
	auto_close int made =
		socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);

	if (made < 0 ||
	    setsockopt(made, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) < 0)
		return err_set(err, errno, "a socket for questions to name servers: %s",
			       strerror(errno));
	*fd = fd_take(&made);
	return true;
}
