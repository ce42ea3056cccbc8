/* poller: epoll, a list of moments, and sockets that begin to connect. */
#include "proxy/poller.h"

#include "base/clock.h"
#include "base/fd.h"
#include "policy/network.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Events of one turn. Further ones are reported in the next turn. */
enum { BATCH = 64 };

bool poller_open(struct poller *poller)
{
	*poller = (struct poller){.epoll = epoll_create1(EPOLL_CLOEXEC)};
	return poller->epoll >= 0;
}

bool poller_want(struct poller *poller, struct source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	if (events == 0) {
		poller_remove(poller, source);
		return true;
	}
	if (source->added && source->events == events)
		return true;
	if (epoll_ctl(poller->epoll, source->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
		      source->fd, &event) < 0)
		return false;
	source->added = true;
	source->events = events;
	return true;
}

void poller_remove(struct poller *poller, struct source *source)
{
	if (source->added)
		(void)epoll_ctl(poller->epoll, EPOLL_CTL_DEL, source->fd, NULL);
	source->added = false;
	source->events = 0;
}

void poller_add_moment(struct poller *poller, struct moment *moment)
{
	if (moment->poller != NULL)
		return;
	moment->poller = poller;
	moment->previous = NULL;
	moment->next = poller->moments;
	if (poller->moments != NULL)
		poller->moments->previous = moment;
	poller->moments = moment;
}

void poller_remove_moment(struct moment *moment)
{
	if (moment->poller == NULL)
		return;
	if (moment->previous != NULL)
		moment->previous->next = moment->next;
	else
		moment->poller->moments = moment->next;
	if (moment->next != NULL)
		moment->next->previous = moment->previous;
	moment->poller = NULL;
}

static int64_t next_due(const struct poller *poller)
{
	int64_t due = CLOCK_NEVER;

	for (const struct moment *at = poller->moments; at != NULL; at = at->next) {
		if (at->due_ms < due)
			due = at->due_ms;
	}
	return due;
}

/* Start from the head again after each call, because a callback may change the list. */
static void run_moments(struct poller *poller)
{
	int64_t now = clock_now_ms();
	struct moment *at = poller->moments;

	while (at != NULL) {
		if (at->due_ms > now) {
			at = at->next;
			continue;
		}
		at->due_ms = CLOCK_NEVER;
		at->due(at);
		at = poller->moments;
	}
}

void poller_turn(struct poller *poller)
{
	struct epoll_event events[BATCH];
	int64_t due = next_due(poller);
	int count = epoll_wait(poller->epoll, events, BATCH, clock_poll_timeout(due));

	for (int i = 0; i < count; i++) {
		struct source *source = events[i].data.ptr;
		/* An earlier callback of this turn may have removed this source. */
		if (source->added)
			source->ready(source, events[i].events);
	}
	/* Reading the clock for each turn of a busy relay would be half its cost. */
	if (due != CLOCK_NEVER && clock_now_ms() >= due)
		run_moments(poller);
}

/* Turns our addresses into those of the kernel. */

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

int poller_connect(const struct network_host *host, uint16_t port, bool stream)
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
