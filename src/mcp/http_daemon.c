/*
 * http_daemon: see http_daemon.h. While nobody has anything to say a connection is suspended;
 * the library does not look at it then, so that we watch it for its end ourselves.
 */
#include "mcp/http_daemon.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/library.h"
#include "base/memory.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum {
	CONNECTIONS_MAX = 512,
	IDLE_S = 120,           /* a connection without a request */
	HEAD_MS = 10000,        /* from its begin to the end of its first head */
	BODIES_MAX = 128 << 20, /* of all requests that are not whole yet */
	MEMORY_MAX = 64 << 10,  /* of a connection: its headers */
	BEAT_MS = 15000,        /* proxies give up after 30 to 60 s */
	UNREAD_MAX = 64 << 20,  /* of a stream whose client does not read */
	PIECE_MAX = 64 << 10,
	STATUS_TOO_LARGE = 413,
	RETRY_MS = 1,
};

static const struct library microhttpd = {"libmicrohttpd.so.12", "0.9.71",
					  "libmicrohttpd12", "serving HTTP"};

struct functions {
	struct MHD_Daemon *(*start_daemon)(unsigned flags, uint16_t port,
					   MHD_AcceptPolicyCallback accept,
					   void *accept_context,
					   MHD_AccessHandlerCallback handler,
					   void *context, ...);
	void (*stop_daemon)(struct MHD_Daemon *daemon);
	const union MHD_DaemonInfo *(*get_daemon_info)(struct MHD_Daemon *daemon,
						       enum MHD_DaemonInfoType type, ...);
	const union MHD_ConnectionInfo *(*get_connection_info)(
		struct MHD_Connection *connection, enum MHD_ConnectionInfoType type, ...);
	enum MHD_Result (*run)(struct MHD_Daemon *daemon);
	enum MHD_Result (*get_timeout)(struct MHD_Daemon *daemon,
				       MHD_UNSIGNED_LONG_LONG *ms);
	void (*suspend_connection)(struct MHD_Connection *connection);
	void (*resume_connection)(struct MHD_Connection *connection);
	const char *(*lookup)(struct MHD_Connection *connection, enum MHD_ValueKind kind,
			      const char *key);
	int (*get_values)(struct MHD_Connection *connection, enum MHD_ValueKind kind,
			  MHD_KeyValueIterator iterator, void *context);
	struct MHD_Response *(*from_buffer)(size_t size, void *buffer,
					    enum MHD_ResponseMemoryMode mode);
	struct MHD_Response *(*from_callback)(uint64_t size, size_t block,
					      MHD_ContentReaderCallback reader,
					      void *context,
					      MHD_ContentReaderFreeCallback free_context);
	enum MHD_Result (*add_header)(struct MHD_Response *response, const char *header,
				      const char *content);
	enum MHD_Result (*queue)(struct MHD_Connection *connection, unsigned status,
				 struct MHD_Response *response);
	void (*destroy)(struct MHD_Response *response);
};

struct http_daemon {
	struct http_daemon_options options;
	struct functions mhd;
	struct MHD_Daemon *daemon;
	struct watch watch;
	struct timer timer;
	struct http_exchange *first;
	size_t bodies; /* bytes of those that are held */
	bool closing;
};

/* A connection that has not said yet what it wants. */
struct arrival {
	struct loop *loop;
	int fd;
	struct timer late;
};

enum progress { READING, WAITING, ANSWERED, STREAMING };

struct http_exchange {
	struct http_daemon *daemon;
	struct http_exchange *next, *previous;
	struct MHD_Connection *connection;
	char *method, *path;
	void *owner;
	struct buf body;
	enum progress progress;
	bool whole;  /* the request has been handed over */
	bool queued; /* the library has the answer */
	bool suspended;
	bool broken; /* to be closed without a word */
	bool ended;  /* the stream */
	int status;
	char *type, *beat;
	char *names[HTTP_HEADERS], *values[HTTP_HEADERS];
	size_t headers;
	struct buf out;
	size_t out_from;
	struct watch end;  /* of the connection, while it is suspended */
	struct timer late; /* then a beat is due */
};

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

static void run_soon(struct http_daemon *daemon)
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

static void client_gone(struct watch *watch, short events)
{
	struct http_exchange *exchange = watch->context;

	(void)events;
	loop_remove(watch);
	exchange->broken = true;
	exchange->daemon->options.dropped(exchange->daemon->options.context, exchange);
	if (exchange->suspended) {
		exchange->suspended = false;
		exchange->daemon->mhd.resume_connection(exchange->connection);
		run_soon(exchange->daemon);
	}
}

static void suspend(struct http_exchange *exchange)
{
	struct http_daemon *daemon = exchange->daemon;

	if (exchange->suspended || daemon->closing)
		return;
	exchange->suspended = true;
	daemon->mhd.suspend_connection(exchange->connection);
	if (exchange->end.fd >= 0)
		loop_add(daemon->options.loop, &exchange->end);
}

/* There is something to say again. */
static void wake(struct http_exchange *exchange)
{
	if (!exchange->suspended)
		return;
	exchange->suspended = false;
	loop_remove(&exchange->end);
	exchange->daemon->mhd.resume_connection(exchange->connection);
	run_soon(exchange->daemon);
}

static void late_due(struct timer *timer)
{
	struct http_exchange *exchange = timer->context;

	if (exchange->progress == WAITING && exchange->type != NULL)
		http_stream(exchange, exchange->type, str_of(exchange->beat));
	if (exchange->progress == STREAMING)
		http_stream_add(exchange, str_of(exchange->beat));
}

static void arrival_due(struct timer *timer)
{
	const struct arrival *arrival = timer->context;

	timer->due_ms = CLOCK_NEVER;
	/* The library sees its end, and closes it. */
	(void)shutdown(arrival->fd, SHUT_RDWR);
}

static void connection_changed(void *context, struct MHD_Connection *connection,
			       void **own, enum MHD_ConnectionNotificationCode what)
{
	const struct http_daemon *daemon = context;
	struct arrival *arrival = *own;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		const union MHD_ConnectionInfo *info =
			daemon->mhd.get_connection_info(connection,
							MHD_CONNECTION_INFO_CONNECTION_FD);

		arrival = memory_alloc(sizeof(*arrival));
		arrival->loop = daemon->options.loop;
		arrival->fd = info != NULL ? info->connect_fd : -1;
		arrival->late = (struct timer){.due_ms = clock_now_ms() + HEAD_MS,
					       .due = arrival_due,
					       .context = arrival};
		loop_add_timer(arrival->loop, &arrival->late);
		*own = arrival;
	} else if (arrival != NULL) {
		loop_remove_timer(&arrival->late);
		free(arrival);
		*own = NULL;
	}
}

static void has_arrived(const struct http_daemon *daemon, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		daemon->mhd.get_connection_info(connection,
						MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct arrival *arrival = info != NULL ? info->socket_context : NULL;

	if (arrival != NULL)
		arrival->late.due_ms = CLOCK_NEVER;
}

static void forget_body(struct http_exchange *exchange)
{
	exchange->daemon->bodies -= exchange->body.size;
	buf_fini(&exchange->body);
}

static void take_body(struct http_exchange *exchange, struct str piece)
{
	struct http_daemon *daemon = exchange->daemon;

	if (exchange->body.overflowed)
		return;
	if (daemon->bodies + piece.size > BODIES_MAX || !buf_addstr(&exchange->body, piece)) {
		forget_body(exchange);
		exchange->body.overflowed = true;
		return;
	}
	daemon->bodies += piece.size;
}

static struct http_exchange *exchange_new(struct http_daemon *daemon,
					  struct MHD_Connection *connection,
					  const char *method, const char *path)
{
	struct http_exchange *exchange = memory_alloc(sizeof(*exchange));
	const union MHD_ConnectionInfo *info =
		daemon->mhd.get_connection_info(connection,
						MHD_CONNECTION_INFO_CONNECTION_FD);

	exchange->daemon = daemon;
	exchange->connection = connection;
	exchange->method = memory_copy(method);
	exchange->path = memory_copy(path);
	buf_init(&exchange->body, daemon->options.body_max);
	buf_init(&exchange->out, UNREAD_MAX);
	exchange->end = (struct watch){.fd = info != NULL ? info->connect_fd : -1,
				       .events = POLLRDHUP,
				       .ready = client_gone,
				       .context = exchange};
	exchange->late =
		(struct timer){.due_ms = CLOCK_NEVER, .due = late_due, .context = exchange};
	loop_add_timer(daemon->options.loop, &exchange->late);
	exchange->next = daemon->first;
	if (exchange->next != NULL)
		exchange->next->previous = exchange;
	daemon->first = exchange;
	return exchange;
}

static void exchange_free(struct http_exchange *exchange)
{
	struct http_daemon *daemon = exchange->daemon;

	daemon->options.over(daemon->options.context, exchange);
	loop_remove(&exchange->end);
	loop_remove_timer(&exchange->late);
	if (exchange->previous != NULL)
		exchange->previous->next = exchange->next;
	else
		daemon->first = exchange->next;
	if (exchange->next != NULL)
		exchange->next->previous = exchange->previous;
	for (size_t i = 0; i < exchange->headers; i++) {
		free(exchange->names[i]);
		free(exchange->values[i]);
	}
	forget_body(exchange);
	buf_fini(&exchange->out);
	free(exchange->type);
	free(exchange->beat);
	free(exchange->method);
	free(exchange->path);
	free(exchange);
}

static ssize_t read_stream(void *context, uint64_t at, char *data, size_t max)
{
	struct http_exchange *exchange = context;
	size_t size = exchange->out.size - exchange->out_from;

	(void)at;
	if (exchange->broken)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (size == 0 && (exchange->ended || exchange->daemon->closing))
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (size == 0) {
		suspend(exchange);
		return 0;
	}
	if (size > max)
		size = max;
	memcpy(data, exchange->out.data + exchange->out_from, size);
	exchange->out_from += size;
	if (exchange->out_from == exchange->out.size) {
		buf_clear(&exchange->out);
		exchange->out_from = 0;
	}
	return (ssize_t)size;
}

static enum MHD_Result queue_answer(struct http_exchange *exchange)
{
	const struct functions *mhd = &exchange->daemon->mhd;
	struct MHD_Response *response;
	enum MHD_Result queued;

	if (exchange->progress == STREAMING)
		response = mhd->from_callback(MHD_SIZE_UNKNOWN, PIECE_MAX, read_stream,
					      exchange, NULL);
	else
		response = mhd->from_buffer(exchange->out.size, exchange->out.data,
					    MHD_RESPMEM_MUST_COPY);
	if (response == NULL)
		return MHD_NO;
	if (exchange->type != NULL)
		(void)mhd->add_header(response, "Content-Type", exchange->type);
	if (exchange->progress == STREAMING) {
		(void)mhd->add_header(response, "Cache-Control", "no-cache");
		(void)mhd->add_header(response, "X-Accel-Buffering", "no");
	}
	for (size_t i = 0; i < exchange->headers; i++)
		(void)mhd->add_header(response, exchange->names[i], exchange->values[i]);
	queued = mhd->queue(exchange->connection, (unsigned)exchange->status, response);
	mhd->destroy(response);
	exchange->queued = true;
	return queued;
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
		has_arrived(daemon, connection);
		exchange = exchange_new(daemon, connection, method, url);
		*own = exchange;
		daemon->options.head(daemon->options.context, exchange);
		return exchange->progress >= ANSWERED ? queue_answer(exchange) : MHD_YES;
	}
	if (exchange->broken || exchange->queued)
		return exchange->broken ? MHD_NO : MHD_YES;
	if (*size > 0) {
		take_body(exchange, (struct str){data, *size});
		*size = 0;
		return MHD_YES;
	}
	if (!exchange->whole) {
		exchange->whole = true;
		exchange->progress = WAITING;
		if (exchange->body.overflowed)
			http_answer(exchange, STATUS_TOO_LARGE, "text/plain",
				    STR("The request is too large.\n"));
		else
			daemon->options.whole(daemon->options.context, exchange,
					      buf_str(&exchange->body));
		forget_body(exchange);
	}
	if (exchange->progress >= ANSWERED)
		return queue_answer(exchange);
	suspend(exchange);
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
		exchange_free(exchange);
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
		completed, daemon, MHD_OPTION_NOTIFY_CONNECTION, connection_changed,
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
		wake(at);
	}
	(void)daemon->mhd.run(daemon->daemon);
	(void)daemon->mhd.run(daemon->daemon);
	loop_remove(&daemon->watch);
	loop_remove_timer(&daemon->timer);
	daemon->mhd.stop_daemon(daemon->daemon);
	free(daemon);
}

const char *http_method(const struct http_exchange *exchange)
{
	return exchange->method;
}

const char *http_path(const struct http_exchange *exchange)
{
	return exchange->path;
}

const char *http_header(const struct http_exchange *exchange, const char *name)
{
	return exchange->daemon->mhd.lookup(exchange->connection, MHD_HEADER_KIND, name);
}

struct counting {
	const char *name;
	size_t count;
};

static enum MHD_Result count_header(void *context, enum MHD_ValueKind kind,
				    const char *name, const char *value)
{
	struct counting *counting = context;

	(void)kind;
	(void)value;
	counting->count += strcasecmp(name, counting->name) == 0;
	return MHD_YES;
}

size_t http_header_count(const struct http_exchange *exchange, const char *name)
{
	struct counting counting = {.name = name};

	(void)exchange->daemon->mhd.get_values(exchange->connection, MHD_HEADER_KIND,
					       count_header, &counting);
	return counting.count;
}

void *http_owner(const struct http_exchange *exchange)
{
	return exchange->owner;
}

void http_set_owner(struct http_exchange *exchange, void *owner)
{
	exchange->owner = owner;
}

void http_add_header(struct http_exchange *exchange, const char *name, const char *value)
{
	if (exchange->headers == HTTP_HEADERS)
		return;
	exchange->names[exchange->headers] = memory_copy(name);
	exchange->values[exchange->headers++] = memory_copy(value);
}

static void set_type(struct http_exchange *exchange, const char *type, struct str beat)
{
	char *type_copy = memory_copy(type);

	free(exchange->type);
	free(exchange->beat);
	exchange->type = type_copy;
	exchange->beat = memory_copy_str(beat);
}

void http_answer(struct http_exchange *exchange, int status, const char *type,
		 struct str body)
{
	if (exchange->progress >= ANSWERED)
		return;
	exchange->progress = ANSWERED;
	exchange->status = status;
	set_type(exchange, type, STR(""));
	exchange->late.due_ms = CLOCK_NEVER;
	if (!buf_addstr(&exchange->out, body))
		exchange->broken = true;
	wake(exchange);
}

bool http_is_answered(const struct http_exchange *exchange)
{
	return exchange->progress >= ANSWERED;
}

bool http_is_stream(const struct http_exchange *exchange)
{
	return exchange->progress == STREAMING;
}

void http_stream(struct http_exchange *exchange, const char *type, struct str beat)
{
	if (exchange->progress >= ANSWERED)
		return;
	exchange->progress = STREAMING;
	exchange->status = MHD_HTTP_OK;
	auto_free char *beat_copy = memory_copy_str(beat);
	set_type(exchange, type, str_of(beat_copy));
	exchange->late.due_ms = clock_now_ms() + BEAT_MS;
	wake(exchange);
}

void http_stream_if_late(struct http_exchange *exchange, const char *type, struct str beat)
{
	if (exchange->progress >= ANSWERED)
		return;
	set_type(exchange, type, beat);
	exchange->late.due_ms = clock_now_ms() + BEAT_MS;
}

void http_stream_add(struct http_exchange *exchange, struct str bytes)
{
	if (exchange->progress != STREAMING || exchange->ended)
		return;
	exchange->late.due_ms = clock_now_ms() + BEAT_MS;
	/* Its client has stopped reading: what is lost now nobody could make good. */
	if (!buf_addstr(&exchange->out, bytes))
		exchange->broken = true;
	wake(exchange);
}

void http_stream_end(struct http_exchange *exchange)
{
	exchange->ended = true;
	exchange->late.due_ms = CLOCK_NEVER;
	wake(exchange);
}
