/*
 * poller: waits for descriptors and moments, and begins the connections that are waited
 * for. It uses epoll, because a proxy may have a thousand sockets of which only one is
 * ready. The owner of a source must keep its memory until the turn is over (poller_turn has
 * returned), even after removing it.
 */
#pragma once
#include "policy/network.h"

#include <stdbool.h>
#include <stdint.h>

struct poller;

struct source {
	int fd;
	uint32_t events; /* EPOLLIN, EPOLLOUT; set by poller_want */
	/* EVENTS are the events that are ready now, never 0 */
	void (*ready)(struct source *source, uint32_t events);
	void *context;
	bool added; /* the poller's own */
};

struct moment {
	int64_t due_ms; /* monotonic; CLOCK_NEVER: sleeping; may be changed at any time */
	void (*due)(struct moment *moment);
	void *context;
	/* the poller's own */
	struct poller *poller;
	struct moment *next, *previous;
};

struct poller {
	int epoll;
	struct moment *moments;
};

bool poller_open(struct poller *poller);

/*
 * Wait for EVENTS at SOURCE from now on; 0: for nothing, not even errors. Adds SOURCE
 * when needed. False when the kernel has no memory.
 */
bool poller_want(struct poller *poller, struct source *source, uint32_t events);
/*
 * Call this before SOURCE's descriptor is closed. Allowed for a source that was never
 * added.
 */
void poller_remove(struct poller *poller, struct source *source);

void poller_add_moment(struct poller *poller, struct moment *moment);
void poller_remove_moment(struct moment *moment);

/* Wait until something is ready or due. Call each such source and moment once. */
void poller_turn(struct poller *poller);

/*
 * Begin to connect a non-blocking socket to ADDRESS and PORT. Returns -1 with errno when
 * that fails. STREAM: TCP, else UDP.
 */
int poller_connect(const struct network_host *address, uint16_t port, bool stream);
