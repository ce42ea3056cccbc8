/* callback: the listener, and the pairs of connections that it joins. */

#include "front/ask/callback.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "process/loop.h"
#include "proxy/stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PIECE = 16 << 10,
	/* Connections that one callback takes in all its time. */
	CONNECTIONS_MAX = 64,
};

enum side { OF_BROWSER, OF_CELL, SIDES };

/* One end of a pair. STREAM has the bytes that were read here and wait for the other end. */
struct end {
	struct join *join;
	struct watch watch;
	struct stream stream;
};

enum join_state {
	JOIN_FREE,
	JOIN_ACCEPTED, /* the browser has connected, and has sent nothing yet */
	JOIN_WAITING,  /* it has sent bytes, and waits for a connection from the cell */
	JOIN_JOINED,
};

struct join {
	struct callback *callback;
	enum join_state state;
	struct end ends[SIDES];
	bool answered; /* bytes have come from the cell */
};

struct callback {
	struct loop *loop;
	char token[CALLBACK_TOKEN + 1];
	struct watch listener;
	struct timer timer;
	unsigned taken; /* connections of the browser so far */
	struct join joins[CALLBACK_JOINS_MAX];
	int waiting[CALLBACK_JOINS_MAX]; /* connections from the cell; -1: none */
};

static void join_free(struct join *join)
{
	for (int side = OF_BROWSER; side < SIDES; side++) {
		loop_remove(&join->ends[side].watch);
		fd_close(&join->ends[side].watch.fd);
		buf_fini(&join->ends[side].stream.pending);
	}
	join->state = JOIN_FREE;
}

/* The port is closed. Connections that are joined go on to their ends. */
static void port_close(struct callback *callback)
{
	loop_remove(&callback->listener);
	fd_close(&callback->listener.fd);
	for (size_t i = 0; i < CALLBACK_JOINS_MAX; i++) {
		if (callback->joins[i].state != JOIN_JOINED)
			join_free(&callback->joins[i]);
		fd_close(&callback->waiting[i]);
	}
}

static void join_end(struct join *join)
{
	const bool answered = join->answered;

	join_free(join);
	/* That was the request: nobody needs the port any more. */
	if (answered)
		port_close(join->callback);
}

/* Nothing more is read while bytes wait for the other end, which is slow. */
static bool may_read(const struct end *end)
{
	return !end->stream.ended && end->stream.pending.size == 0;
}

/*
 * Wait for what END can do, now that its own stream and that of OTHER are as they are. False
 * when the kernel has no memory.
 */
static bool end_want(struct end *end, const struct end *other)
{
	const bool reads = may_read(end);
	const bool writes = other->stream.pending.size > 0;

	return loop_want(end->join->callback->loop, &end->watch,
			 (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)));
}

/* Read from END, and pass the bytes to OTHER. False: a connection is broken. */
static bool end_read(struct end *end, const struct end *other)
{
	char piece[PIECE];
	const ssize_t size = recv(end->watch.fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (size < 0)
		return errno == EAGAIN || errno == EINTR;
	end->stream.ended = size == 0;
	end->join->answered =
		end->join->answered || (size > 0 && end == &end->join->ends[OF_CELL]);
	return size == 0 || stream_pass(&end->stream, other->watch.fd, piece, (size_t)size);
}

/* The browser has sent its first bytes, or is gone again. */
static void browser_begins(struct join *join)
{
	struct callback *callback = join->callback;
	struct end *browser = &join->ends[OF_BROWSER];
	char first;

	if (recv(browser->watch.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) <= 0 ||
	    !loop_want(callback->loop, &browser->watch, 0)) {
		join_free(join);
		return;
	}
	join->state = JOIN_WAITING;
	for (size_t i = 0; i < CALLBACK_JOINS_MAX; i++) {
		if (callback->waiting[i] >= 0) {
			callback_join(callback, &callback->waiting[i]);
			return;
		}
	}
}

static void end_ready(struct watch *watch, short events)
{
	struct end *end = watch->context;
	struct join *join = end->join;
	struct end *browser = &join->ends[OF_BROWSER], *cell = &join->ends[OF_CELL];
	bool fine = true;

	if (join->state == JOIN_ACCEPTED) {
		browser_begins(join);
		return;
	}
	if ((events & ~POLLOUT) != 0 && may_read(end))
		fine = end_read(end, end == browser ? cell : browser);
	fine = fine && stream_flush(&browser->stream, cell->watch.fd) &&
	       stream_flush(&cell->stream, browser->watch.fd);
	if (!fine || (browser->stream.passed && cell->stream.passed) ||
	    !end_want(browser, cell) || !end_want(cell, browser))
		join_end(join);
}

static bool end_open(struct join *join, enum side side, int *take_fd)
{
	struct end *end = &join->ends[side];

	end->join = join;
	stream_init(&end->stream);
	end->watch =
		(struct watch){.fd = fd_take(take_fd), .ready = end_ready, .context = end};
	return loop_want(join->callback->loop, &end->watch, POLLIN);
}

static void listener_ready(struct watch *watch, short events)
{
	struct callback *callback = watch->context;
	struct join *join = NULL;
	auto_close int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0)
		return;
	for (size_t i = 0; join == NULL && i < CALLBACK_JOINS_MAX; i++) {
		if (callback->joins[i].state == JOIN_FREE)
			join = &callback->joins[i];
	}
	if (++callback->taken > CONNECTIONS_MAX) {
		port_close(callback);
		return;
	}
	if (join == NULL)
		return; /* as many as a browser uses are open already */
	join->state = JOIN_ACCEPTED;
	join->answered = false;
	if (!end_open(join, OF_BROWSER, &fd))
		join_free(join);
}

static void timer_due(struct timer *timer)
{
	struct callback *callback = timer->context;

	port_close(callback);
	for (size_t i = 0; i < CALLBACK_JOINS_MAX; i++)
		join_free(&callback->joins[i]);
}

static int listen_at(uint16_t port)
{
	const struct sockaddr_in place = {.sin_family = AF_INET,
					  .sin_port = htons(port),
					  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int yes = 1;
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* Connections of an earlier login that are closing must not keep the port. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(fd, (const struct sockaddr *)&place, sizeof(place)) < 0 ||
	    listen(fd, CALLBACK_JOINS_MAX) < 0)
		return -1;
	return fd_take(&fd);
}

bool callback_open(struct loop *loop, uint16_t port, struct callback **callback,
		   struct err *err)
{
	struct callback *made;
	char token[CALLBACK_TOKEN + 1] = "";
	auto_close int fd = listen_at(port);

	if (fd < 0)
		return err_set(err, errno, "port %u: %s", port,
			       errno == EADDRINUSE ? "it is in use here" : strerror(errno));
	if (!text_random_hex(token, CALLBACK_TOKEN))
		return err_set(err, errno, "a random word: %s", strerror(errno));
	made = memory_alloc(sizeof(*made));
	made->loop = loop;
	memcpy(made->token, token, sizeof(token));
	for (size_t i = 0; i < CALLBACK_JOINS_MAX; i++) {
		made->waiting[i] = -1;
		made->joins[i].callback = made;
		made->joins[i].ends[OF_BROWSER].watch.fd = -1;
		made->joins[i].ends[OF_CELL].watch.fd = -1;
	}
	made->listener = (struct watch){.fd = fd_take(&fd),
					.events = POLLIN,
					.ready = listener_ready,
					.context = made};
	made->timer = (struct timer){.due_ms = clock_now_ms() + CALLBACK_OPEN_S * 1000,
				     .due = timer_due,
				     .context = made};
	loop_add(loop, &made->listener);
	loop_add_timer(loop, &made->timer);
	*callback = made;
	return true;
}

void callback_close(struct callback *callback)
{
	if (callback == NULL)
		return;
	timer_due(&callback->timer);
	loop_remove_timer(&callback->timer);
	free(callback);
}

const char *callback_token(const struct callback *callback)
{
	return callback->token;
}

void callback_join(struct callback *callback, int *take_fd)
{
	auto_close int fd = fd_take(take_fd);

	for (size_t i = 0; i < CALLBACK_JOINS_MAX; i++) {
		struct join *join = &callback->joins[i];

		if (join->state != JOIN_WAITING)
			continue;
		join->state = JOIN_JOINED;
		if (!end_open(join, OF_CELL, &fd) ||
		    !loop_want(callback->loop, &join->ends[OF_BROWSER].watch, POLLIN))
			join_end(join);
		return;
	}
	for (size_t i = 0; fd >= 0 && i < CALLBACK_JOINS_MAX; i++) {
		if (callback->waiting[i] < 0 && callback->listener.fd >= 0)
			callback->waiting[i] = fd_take(&fd);
	}
}
