/* publish: listens outside for the published ports of a cell. */
#include "cell/publish.h"

#include "base/fd.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	/* clients that wait while the cell starts, or while a proxy serves its most */
	BACKLOG = 1024,
	/* the port that a sentence offers in the place of a taken one */
	OFFERED = 8080,
};

union place {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static socklen_t place_of(const struct network_host *address, uint16_t port,
			  union place *place)
{
	*place = (union place){0};
	if (address->kind == NETWORK_IPV4) {
		place->four.sin_family = AF_INET;
		place->four.sin_port = htons(port);
		memcpy(&place->four.sin_addr, address->address,
		       sizeof(place->four.sin_addr));
		return sizeof(place->four);
	}
	place->six.sin6_family = AF_INET6;
	place->six.sin6_port = htons(port);
	memcpy(&place->six.sin6_addr, address->address, sizeof(place->six.sin6_addr));
	return sizeof(place->six);
}

/* Listen at ROW's place. A free port is chosen when its `host_port` is 0. */
static bool row_listen(struct published *row)
{
	const int yes = 1;
	union place place;
	socklen_t size = place_of(&row->address, row->host_port, &place);
	auto_close int fd =
		socket(place.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/*
	 * Connections of an earlier session that are closing must not keep the port. A
	 * second listener is refused all the same.
	 */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    (place.any.sa_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes)) < 0) ||
	    bind(fd, &place.any, size) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, &place.any, &size) < 0)
		return false;
	row->host_port = ntohs(place.any.sa_family == AF_INET6 ? place.six.sin6_port
							       : place.four.sin_port);
	row->fd = fd_take(&fd);
	return true;
}

static const char *reason_of(int code)
{
	switch (code) {
	case EADDRINUSE:
		return "is in use here";
	case EACCES:
		return "is not for ordinary users here";
	default:
		return strerror(code);
	}
}

/* Say that entry INDEX of SPEC cannot be published, and which entry to try. */
static bool refused(const struct cell_spec *spec, size_t index, int code, struct err *err)
{
	const struct network_publish *entry = &spec->publish[index];
	char place[NETWORK_TEXT_MAX] = "", instead[NETWORK_TEXT_MAX + 32];

	if (entry->at == LISTENS_OWN)
		(void)snprintf(place, sizeof(place), "own:");
	else if (entry->at == LISTENS_ADDRESS)
		strrchr(network_print(&entry->address, 0, place), ':')[1] = '\0';
	(void)snprintf(instead, sizeof(instead), "%s%d:%u", place,
		       entry->host_port == OFFERED ? OFFERED + 1 : OFFERED, entry->port);
	if (code == EADDRNOTAVAIL)
		return err_set(err, EADDRINUSE,
			       "%s: this machine does not have the address %s",
			       spec->publish_rule, entry->address.text);
	if (index >= spec->publish_listed)
		return err_set(err, EADDRINUSE, "port %u %s: --publish %s",
			       entry->host_port, reason_of(code), instead);
	return err_set(err, EADDRINUSE, "%s: port %u %s: write \"%s\"",
		       spec->publish_rule, entry->host_port, reason_of(code), instead);
}

bool publish_listen(const struct cell_spec *spec, struct publish *publish, struct err *err)
{
	publish->count = 0;
	for (size_t i = 0; i < spec->publish_count; i++) {
		const struct network_publish *entry = &spec->publish[i];
		struct published *row = &publish->rows[i];

		*row = (struct published){.fd = -1,
					  .address = entry->address,
					  .host_port = entry->host_port,
					  .port = entry->port,
					  .chosen = entry->host_port == 0 ||
						    entry->at == LISTENS_OWN};
		if (entry->at == LISTENS_OWN)
			network_own_address(spec->workspace, &row->address);
		publish->count++;
		if (!row_listen(row))
			return refused(spec, i, errno, err);
	}
	return true;
}

void publish_close(struct publish *publish)
{
	for (size_t i = 0; i < publish->count; i++)
		fd_close(&publish->rows[i].fd);
}
