/*
 * http_daemon: see http_daemon.h: the library, loaded and turned by our loop. While nobody has
 * anything to say a connection is suspended; the library does not look at it then, so that we
 * watch it for its end ourselves. Connections: http_daemon_connection.c; requests and their answers:
 * http_daemon_exchange.c, http_daemon_answer.c.
 */
#include "mcp/server/http_daemon_parts.h"

#include "base/clock.h"
#include "base/library.h"
#include "base/memory.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

enum {
	/*
	 * Connections that the library accepts. Fewer requests may be under way, so that
	 * a connection is always free for a request that is answered immediately (a ping,
	 * a cancel) and for a client that must be told that the server is busy.
	 */
	CONNECTIONS_MAX = 512,
	CROWDED_MAX = 464,
	REQUESTS_MAX = 448,
	IDLE_S = 120,          /* a connection without a request */
	MEMORY_MAX = 64 << 10, /* of a connection: its headers */
	STATUS_TOO_LARGE = 413,
	STATUS_BUSY = 503,
};

static const struct library microhttpd = {"libmicrohttpd.so.12", "0.9.71",
					  "libmicrohttpd12", "serving HTTP"};

static bool load_functions(struct functions *mhd, struct err *err)
{
	const struct library_function wanted[] = {
		{"MHD_start_daemon", &mhd->start_daemon},
		{"MHD_stop_daemon", &mhd->stop_daemon},
		{"MHD_get_daemon_info", &mhd->get_daemon_info},
		{"MHD_get_connection_info", &mhd->get_connection_info},
		{"MHD_run", &mhd->run},
		{"MHD_get_timeout", &mhd->get_timeout},
		{"MHD_suspend_connection", &mhd->suspend_connection},
		{"MHD_resume_connection", &mhd->resume_connection},
		{"MHD_lookup_connection_value", &mhd->lookup},
		{"MHD_get_connection_values", &mhd->get_values},
		{"MHD_create_response_from_buffer", &mhd->from_buffer},
		{"MHD_create_response_from_callback", &mhd->from_callback},
		{"MHD_add_response_header", &mhd->add_header},
		{"MHD_queue_response", &mhd->queue},
		{"MHD_destroy_response", &mhd->destroy},
	};

	return library_load(&microhttpd, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

void http_run_soon(struct http_daemon *daemon)
{
	daemon->timer.due_ms = 0;
}

static void run(struct http_daemon *daemon)
{
	MHD_UNSIGNED_LONG_LONG ms;

	(void)daemon->mhd.run(daemon->daemon);
	if (daemon->timer.due_ms == 0)
		return;
	daemon->timer.due_ms = CLOCK_NEVER;
	if (daemon->mhd.get_timeout(daemon->daemon, &ms) == MHD_YES)
		daemon->timer.due_ms = clock_now_ms() + (int64_t)ms;
}

static void run_ready(struct watch *watch, short events)
{
	(void)events;
	run(watch->context);
}

static void run_due(struct timer *timer)
{
	run(timer->context);
}

/* Tell the client immediately when to ask again, and close its connection. */
void http_ask_again(struct http_exchange *exchange)
{
	http_add_header(exchange, "Retry-After", "1");
	http_add_header(exchange, "Connection", "close");
}

static void answer_busy(struct http_exchange *exchange, struct str why)
{
	http_ask_again(exchange);
	http_answer(exchange, STATUS_BUSY, "text/plain", why);
}

bool http_is_crowded(const struct http_exchange *exchange)
{
	return exchange->crowded;
}

static void turn_away(struct http_exchange *exchange)
{
	exchange->turned_away = true;
	answer_busy(exchange,
		    STR("Too many requests are under way; ask again in a second.\n"));
}

static void take_whole(struct http_daemon *daemon, struct http_exchange *exchange)
{
	exchange->whole = true;
	http_connection_asked(exchange->carrier);
	exchange->progress = WAITING;
	if (exchange->taken == BODY_CROWDED_OUT)
		answer_busy(exchange,
			    STR("Too much is being sent at once; ask again in a second.\n"));
	else if (exchange->taken == BODY_TOO_LARGE)
		http_answer(exchange, STATUS_TOO_LARGE, "text/plain",
			    STR("The request is too large.\n"));
	else
		daemon->options.whole(daemon->options.context, exchange,
				      buf_str(&exchange->body));
	http_exchange_forget_body(exchange);
}

/* Called for the head, for each piece of the body, for its end, and when it was woken. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection,
			      const char *url, const char *method, const char *version,
			      const char *data, size_t *size, void **own)
{
	struct http_daemon *daemon = context;
	struct http_exchange *exchange = *own;

	(void)version;
	if (exchange == NULL) {
		exchange = http_exchange_new(daemon, connection, method, url);
		*own = exchange;
		exchange->crowded = daemon->busy > REQUESTS_MAX;
		if (daemon->busy > CROWDED_MAX)
			turn_away(exchange);
		else
			daemon->options.head(daemon->options.context, exchange);
		return exchange->progress >= ANSWERED ? http_exchange_queue(exchange)
						      : MHD_YES;
	}
	if (exchange->broken || exchange->queued)
		return exchange->broken ? MHD_NO : MHD_YES;
	if (*size > 0) {
		http_exchange_take_body(exchange, (struct str){data, *size});
		*size = 0;
		return MHD_YES;
	}
	if (!exchange->whole)
		take_whole(daemon, exchange);
	if (exchange->progress >= ANSWERED)
		return http_exchange_queue(exchange);
	http_exchange_suspend(exchange);
	return MHD_YES;
}

static void completed(void *context, struct MHD_Connection *connection, void **own,
		      enum MHD_RequestTerminationCode why)
{
	struct http_exchange *exchange = *own;

	(void)context;
	(void)connection;
	(void)why;
	*own = NULL;
	if (exchange != NULL)
		http_exchange_free(exchange);
}

bool http_daemon_open(const struct http_daemon_options *options,
		      struct http_daemon **opened, struct err *err)
{
	struct http_daemon *daemon = memory_alloc(sizeof(*daemon));
	const union MHD_DaemonInfo *info = NULL;

	daemon->options = *options;
	if (!load_functions(&daemon->mhd, err)) {
		free(daemon);
		return false;
	}
	daemon->daemon = daemon->mhd.start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, daemon,
		MHD_OPTION_LISTEN_SOCKET, options->take_socket, MHD_OPTION_NOTIFY_COMPLETED,
		completed, daemon, MHD_OPTION_NOTIFY_CONNECTION, http_connection_changed,
		daemon, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_MAX, MHD_OPTION_END);
	if (daemon->daemon != NULL)
		info = daemon->mhd.get_daemon_info(daemon->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (info == NULL) {
		if (daemon->daemon != NULL)
			daemon->mhd.stop_daemon(daemon->daemon);
		free(daemon);
		return err_set(err, EIO, "%s could not be started", microhttpd.name);
	}
	daemon->watch = (struct watch){.fd = info->epoll_fd,
				       .events = POLLIN,
				       .ready = run_ready,
				       .context = daemon};
	daemon->timer = (struct timer){.due_ms = 0, .due = run_due, .context = daemon};
	loop_add(options->loop, &daemon->watch);
	loop_add_timer(options->loop, &daemon->timer);
	*opened = daemon;
	return true;
}

void http_daemon_close(struct http_daemon *daemon)
{
	if (daemon == NULL)
		return;
	daemon->closing = true;
	/* The library insists that none is asleep. */
	for (struct http_exchange *at = daemon->first; at != NULL; at = at->next) {
		at->ended = true;
		if (at->progress < ANSWERED)
			at->broken = true;
		http_exchange_wake(at);
	}
	(void)daemon->mhd.run(daemon->daemon);
	(void)daemon->mhd.run(daemon->daemon);
	loop_remove(&daemon->watch);
	loop_remove_timer(&daemon->timer);
	daemon->mhd.stop_daemon(daemon->daemon);
	free(daemon);
}
