/*
 * poller: wait for descriptors and moments, by epoll: a proxy may have a thousand sockets
 * of which one is ready. Whoever owns a source must keep its memory until the turn is over
 * (poller_turn has returned), also after removing it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct poller;

struct source {
	int fd;
	uint32_t events; /* EPOLLIN, EPOLLOUT; set by poller_want */
	/* EVENTS is what is so now, and never 0 */
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
 * Wait for EVENTS at SOURCE from now on; 0: for nothing, not even errors. Adds it when
 * needed. False when the kernel has no memory.
 */
bool poller_want(struct poller *poller, struct source *source, uint32_t events);
/* Before its descriptor is closed. Fine when it was never added. */
void poller_remove(struct poller *poller, struct source *source);

void poller_add_moment(struct poller *poller, struct moment *moment);
void poller_remove_moment(struct moment *moment);

/* Wait until something is ready or due, and call it, once. */
void poller_turn(struct poller *poller);
