/*
 * http_daemon_connection: connections, with or without a request: how long each may take
 * to send its request, and which one is closed when there are too many.
 */
#include "mcp/server/http_daemon_parts.h"

#include "base/clock.h"
#include "base/memory.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
	HEAD_MS = 10000, /* from its begin to the end of its first head */
	BODY_MS = 60000, /* from there to the end of the body: 16 MiB at 2 Mbit/s */
	/* With so many, each new connection closes an idle one. */
	CROWDED = 480,
	/* From the end of what its client says to its own: for what it said before. */
	GONE_MS = 1000,
	/* An answer that takes longer to be read holds no place against others. */
	READ_MS = 30000,
};

static void late_due(struct timer *timer)
{
	const struct http_connection *connection = timer->context;

	timer->due_ms = CLOCK_NEVER;
	/* The library sees its end, and closes it. */
	(void)shutdown(connection->fd, SHUT_RDWR);
}

/*
 * The library misses the end of a connection that comes together with the last bytes: one
 * epoll edge reports both, and the library reads only the bytes. When the request is
 * already complete, that request handles the end.
 */
static void client_gone(struct watch *watch, short events)
{
	struct http_connection *connection = watch->context;
	const struct http_exchange *exchange = connection->exchange;

	(void)events;
	loop_remove(watch);
	connection->gone = true;
	if (exchange == NULL || exchange->progress == READING)
		connection->late.due_ms = clock_now_ms() + GONE_MS;
}

static bool may_go(const struct http_connection *connection)
{
	const struct http_exchange *exchange = connection->exchange;

	return exchange == NULL || (exchange->progress == ANSWERED &&
				    clock_now_ms() - connection->since_ms > READ_MS);
}

/* Which says nothing for longest makes room. */
static void make_room(const struct http_daemon *daemon)
{
	struct http_connection *longest = NULL;

	for (struct http_connection *at = daemon->first_connection; at != NULL;
	     at = at->next) {
		if (may_go(at) && (longest == NULL || at->since_ms < longest->since_ms))
			longest = at;
	}
	if (longest != NULL)
		(void)shutdown(longest->fd, SHUT_RDWR);
}

static struct http_connection *connection_new(struct http_daemon *daemon,
					      struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		daemon->mhd.get_connection_info(connection,
						MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_connection *made = memory_alloc(sizeof(*made));

	if (daemon->connections >= CROWDED)
		make_room(daemon);
	made->daemon = daemon;
	made->fd = info != NULL ? info->connect_fd : -1;
	made->since_ms = clock_now_ms();
	made->late = (struct timer){.due_ms = made->since_ms + HEAD_MS,
				    .due = late_due,
				    .context = made};
	loop_add_timer(daemon->options.loop, &made->late);
	made->end = (struct watch){.fd = made->fd,
				   .events = POLLRDHUP,
				   .ready = client_gone,
				   .context = made,
				   .stays = true};
	if (made->fd >= 0)
		loop_add(daemon->options.loop, &made->end);
	made->previous = daemon->last_connection;
	if (made->previous != NULL)
		made->previous->next = made;
	else
		daemon->first_connection = made;
	daemon->last_connection = made;
	daemon->connections++;
	return made;
}

static void connection_free(struct http_connection *connection)
{
	struct http_daemon *daemon = connection->daemon;

	loop_remove(&connection->end);
	loop_remove_timer(&connection->late);
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		daemon->first_connection = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	else
		daemon->last_connection = connection->previous;
	if (connection->exchange != NULL)
		connection->exchange->carrier = NULL;
	daemon->connections--;
	free(connection);
}

void http_connection_changed(void *context, struct MHD_Connection *connection, void **own,
			     enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*own = connection_new(context, connection);
	} else if (*own != NULL) {
		connection_free(*own);
		*own = NULL;
	}
}

struct http_connection *http_connection_of(const struct http_daemon *daemon,
					   struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		daemon->mhd.get_connection_info(connection,
						MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info != NULL ? info->socket_context : NULL;
}

void http_connection_asks(struct http_connection *connection, struct http_exchange *exchange)
{
	if (connection == NULL)
		return;
	connection->exchange = exchange;
	connection->late.due_ms = clock_now_ms() + (connection->gone ? GONE_MS : BODY_MS);
}

void http_connection_asked(struct http_connection *connection)
{
	if (connection != NULL)
		connection->late.due_ms = CLOCK_NEVER;
}

void http_connection_answered(struct http_connection *connection)
{
	if (connection != NULL)
		connection->since_ms = clock_now_ms();
}

void http_connection_rests(struct http_connection *connection)
{
	if (connection == NULL)
		return;
	connection->exchange = NULL;
	connection->since_ms = clock_now_ms();
	connection->late.due_ms =
		connection->gone ? connection->since_ms + GONE_MS : CLOCK_NEVER;
}
