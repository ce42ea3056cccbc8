/*
 * http_daemon: loads libmicrohttpd and drives it from our loop. While neither side has
 * anything to send, a connection is suspended. The library does not look at a suspended
 * connection, so we watch it for its end ourselves.
 */

#include "mcp/server/http_daemon.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "process/loop.h"

#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* The most headers that http_daemon_add_header can add to one answer. */
enum { HTTP_HEADERS = 4 };

struct functions {
	struct MHD_Daemon *(*start_daemon)(unsigned flags, uint16_t port,
					   MHD_AcceptPolicyCallback accept,
					   void *accept_context,
					   MHD_AccessHandlerCallback handler,
					   void *context, ...);
	void (*stop_daemon)(struct MHD_Daemon *daemon);
	MHD_socket (*quiesce_daemon)(struct MHD_Daemon *daemon);
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

/* Bytes of one stream or answer that its client has not read. */
enum { HTTP_UNREAD_MAX = 64 << 20 };

struct http_daemon {
	struct http_daemon_options options;
	struct functions mhd;
	struct MHD_Daemon *daemon;
	struct watch watch;
	struct timer timer;
	struct http_exchange *first;
	struct http_connection *first_connection,
		*last_connection; /* in the order of their arrival */
	size_t connections;
	size_t unknown; /* those of which no request was let in yet */
	size_t busy;    /* requests without a complete answer */
	size_t bodies;  /* bytes of the bodies that are held */
	size_t unread;  /* bytes of answers that no client has read yet */
	bool quiet;     /* it takes no more connections */
	bool closing;
};

/* One connection, from its beginning to its end. The library keeps the pointer to it. */
struct http_connection {
	struct http_daemon *daemon;
	struct http_connection *next, *previous;
	struct http_exchange *exchange; /* NULL: no request is under way */
	int fd;
	/* since when it is idle, or since when its answer is complete */
	int64_t since_ms;
	struct watch end; /* watches for the end of the client's side */
	bool gone;        /* this end has come */
	bool known;       /* the owner has let in a request of it: its body was read */
	/* to make room: the library closes it when it next looks at it */
	bool sent_away;
	struct timer late;
};

enum progress {
	READING, /* the request has not come whole */
	WAITING, /* for its answer */
	ANSWERED,
	STREAMING, /* the answer is a stream, which may go on */
	STREAMED,  /* the stream is complete */
};

/* Is there room for one more request? */
enum room {
	HAS_ROOM,
	FOR_SHORT,   /* only for requests that are answered immediately */
	TURNED_AWAY, /* no, and the owner was not told of it */
};

/*
 * A body is held, or dropped because other bodies need the room, or because it is too
 * large.
 */
enum taken { BODY_HELD, BODY_CROWDED_OUT, BODY_TOO_LARGE };

struct http_exchange {
	struct http_daemon *daemon;
	struct http_exchange *next, *previous;
	struct MHD_Connection *connection;
	struct http_connection *carrier;
	char *method, *path;
	void *owner;
	struct buf body;
	enum taken taken;
	enum progress progress;
	enum room room;
	bool queued; /* the library has the answer */
	bool suspended;
	bool broken; /* the connection must be closed without an answer */
	int status;
	char *type, *beat;
	char *names[HTTP_HEADERS], *values[HTTP_HEADERS];
	size_t headers;
	struct buf out;
	size_t out_from;
	struct watch end;  /* watches for the connection's end while it is suspended */
	struct timer late; /* when the next beat is due */
};

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

/*
 * Connections, with or without a request: how long each may take to send its request,
 * and which one is closed when there are too many.
 */

enum {
	/* from the beginning of a connection to the end of its first head */
	HEAD_MS = 10000,
	/* from the end of a head to the end of its body: 16 MiB at 2 Mbit/s */
	BODY_MS = 60000,
	/* With so many connections, each new one closes an idle one. */
	CROWDED = 480,
	/*
	 * With so many of which no request was let in, each new one closes one of these. Clients
	 * that nobody knows so never take the places of those that have a token.
	 */
	UNKNOWN_CROWDED = 128,
	/*
	 * From the end of a request to the end of the next head. The library counts from the last
	 * byte, so that a client with a byte now and then would stay for ever.
	 */
	NEXT_HEAD_MS = IDLE_S * 1000 + HEAD_MS,
	/*
	 * From the end of the client's side to the end of the connection, to read the
	 * bytes that the client sent before.
	 */
	GONE_MS = 1000,
	/* A connection whose answer is read more slowly may be closed to make room. */
	READ_MS = 30000,
};

static void connection_late(struct timer *timer)
{
	const struct http_connection *connection = timer->context;

	timer->due_ms = CLOCK_NEVER;
	/* The library then sees the end of the connection, and closes it. */
	(void)shutdown(connection->fd, SHUT_RDWR);
}

/*
 * The library misses the end of a connection that comes together with the last bytes: one
 * epoll edge reports both, and the library reads only the bytes. When the request is
 * already complete, that request handles the end.
 */
static void connection_gone(struct watch *watch, short events)
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

	return !connection->sent_away &&
	       (exchange == NULL || (exchange->progress == ANSWERED &&
				     clock_now_ms() - connection->since_ms > READ_MS));
}

/* Close the connection that has been idle for longest, an unknown one if there is one. */
static void make_room(const struct http_daemon *daemon)
{
	struct http_connection *longest = NULL;

	for (struct http_connection *at = daemon->first_connection; at != NULL;
	     at = at->next) {
		if (may_go(at) &&
		    (longest == NULL || (longest->known && !at->known) ||
		     (longest->known == at->known && at->since_ms < longest->since_ms)))
			longest = at;
	}
	if (longest == NULL)
		return;
	longest->sent_away = true;
	(void)shutdown(longest->fd, SHUT_RDWR);
}

static struct http_connection *connection_new(struct http_daemon *daemon,
					      struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		daemon->mhd.get_connection_info(connection,
						MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_connection *made = memory_alloc(sizeof(*made));

	if (daemon->connections >= CROWDED || daemon->unknown >= UNKNOWN_CROWDED)
		make_room(daemon);
	made->daemon = daemon;
	made->fd = info != NULL ? info->connect_fd : -1;
	made->since_ms = clock_now_ms();
	made->late = (struct timer){.due_ms = made->since_ms + HEAD_MS,
				    .due = connection_late,
				    .context = made};
	loop_add_timer(daemon->options.loop, &made->late);
	made->end = (struct watch){.fd = made->fd,
				   .events = POLLRDHUP,
				   .ready = connection_gone,
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
	daemon->unknown++;
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
	daemon->unknown -= !connection->known;
	free(connection);
}

/* For the library, when a connection begins and ends. */
static void http_connection_changed(void *context, struct MHD_Connection *connection,
				    void **own, enum MHD_ConnectionNotificationCode what)
{
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*own = connection_new(context, connection);
	} else if (*own != NULL) {
		struct http_daemon *daemon = context;

		connection_free(*own);
		*own = NULL;
		/*
		 * The library that had no descriptor for a connection listens again in the run
		 * behind the one in which a connection ended, and nothing else would wake it.
		 */
		daemon->timer.due_ms = 0;
	}
}

static struct http_connection *http_connection_of(const struct http_daemon *daemon,
						  struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		daemon->mhd.get_connection_info(connection,
						MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info != NULL ? info->socket_context : NULL;
}

/*
 * The steps of a request on its connection: its head has come, it is let in, all of it has
 * come, it is answered, it is over.
 */
static void http_connection_asks(struct http_connection *connection,
				 struct http_exchange *exchange)
{
	if (connection == NULL)
		return;
	connection->exchange = exchange;
	connection->late.due_ms = clock_now_ms() + (connection->gone ? GONE_MS : BODY_MS);
}

static void http_connection_let_in(struct http_connection *connection)
{
	if (connection == NULL || connection->known)
		return;
	connection->known = true;
	connection->daemon->unknown--;
}

static void http_connection_asked(struct http_connection *connection)
{
	if (connection != NULL)
		connection->late.due_ms = CLOCK_NEVER;
}

static void http_connection_answered(struct http_connection *connection)
{
	if (connection != NULL)
		connection->since_ms = clock_now_ms();
}

static void http_connection_rests(struct http_connection *connection)
{
	int next_ms;

	if (connection == NULL)
		return;
	next_ms = connection->daemon->options.next_head_ms;
	next_ms = next_ms > 0 ? next_ms : NEXT_HEAD_MS;
	connection->exchange = NULL;
	connection->since_ms = clock_now_ms();
	connection->late.due_ms =
		connection->since_ms + (connection->gone ? GONE_MS : next_ms);
}

/* One HTTP request, from its head to its end. */

enum {
	BODIES_MAX = 128 << 20, /* of all incomplete requests together */
	/*
	 * A body that is no longer has room in any case, so that clients with large bodies do
	 * not shut out all others. There are never more of them than requests.
	 */
	BODY_SMALL = 64 << 10,
};

static void http_run_soon(struct http_daemon *daemon);

static void exchange_gone(struct watch *watch, short events)
{
	struct http_exchange *exchange = watch->context;

	(void)events;
	loop_remove(watch);
	exchange->broken = true;
	if (exchange->room != TURNED_AWAY)
		exchange->daemon->options.dropped(exchange->daemon->options.context,
						  exchange);
	if (exchange->suspended) {
		exchange->suspended = false;
		exchange->daemon->mhd.resume_connection(exchange->connection);
		http_run_soon(exchange->daemon);
	}
}

/*
 * The library does not serve a suspended exchange until it is woken. When the client
 * leaves meanwhile, the owner is told immediately. Both functions may be called twice.
 */
static void http_exchange_suspend(struct http_exchange *exchange)
{
	struct http_daemon *daemon = exchange->daemon;

	if (exchange->suspended || daemon->closing)
		return;
	exchange->suspended = true;
	daemon->mhd.suspend_connection(exchange->connection);
	if (exchange->end.fd >= 0)
		loop_add(daemon->options.loop, &exchange->end);
}

/* There are bytes to send again. */
static void http_exchange_wake(struct http_exchange *exchange)
{
	if (!exchange->suspended)
		return;
	exchange->suspended = false;
	loop_remove(&exchange->end);
	exchange->daemon->mhd.resume_connection(exchange->connection);
	http_run_soon(exchange->daemon);
}

static void exchange_late(struct timer *timer)
{
	struct http_exchange *exchange = timer->context;

	if (exchange->progress == WAITING && exchange->type != NULL)
		http_daemon_stream(exchange, exchange->type, str_of(exchange->beat));
	if (exchange->progress == STREAMING)
		http_daemon_stream_add(exchange, str_of(exchange->beat));
}

/* The body is not needed any more: give its room to other bodies. */
static void http_exchange_forget_body(struct http_exchange *exchange)
{
	exchange->daemon->bodies -= exchange->body.size;
	buf_fini(&exchange->body);
}

/* Append PIECE to the body. Without room the body is dropped, and `taken` says why. */
static void http_exchange_take_body(struct http_exchange *exchange, struct str piece)
{
	struct http_daemon *daemon = exchange->daemon;

	if (exchange->taken != BODY_HELD)
		return;
	if (daemon->bodies + piece.size > BODIES_MAX &&
	    exchange->body.size + piece.size > BODY_SMALL)
		exchange->taken = BODY_CROWDED_OUT;
	else if (!buf_addstr(&exchange->body, piece))
		exchange->taken = BODY_TOO_LARGE;
	if (exchange->taken == BODY_HELD)
		daemon->bodies += piece.size;
	else
		http_exchange_forget_body(exchange);
}

/*
 * The head of a request has come from CONNECTION; METHOD and PATH are copied. The request
 * is the daemon's until http_exchange_free, which tells the owner that it is over.
 */
static struct http_exchange *http_exchange_new(struct http_daemon *daemon,
					       struct MHD_Connection *connection,
					       const char *method, const char *path)
{
	struct http_exchange *exchange = memory_alloc(sizeof(*exchange));
	const union MHD_ConnectionInfo *info =
		daemon->mhd.get_connection_info(connection,
						MHD_CONNECTION_INFO_CONNECTION_FD);

	exchange->daemon = daemon;
	exchange->carrier = http_connection_of(daemon, connection);
	http_connection_asks(exchange->carrier, exchange);
	daemon->busy++;
	exchange->connection = connection;
	exchange->method = memory_copy(method);
	exchange->path = memory_copy(path);
	buf_init(&exchange->body, daemon->options.body_max);
	buf_init(&exchange->out, HTTP_UNREAD_MAX);
	exchange->end = (struct watch){.fd = info != NULL ? info->connect_fd : -1,
				       .events = POLLRDHUP,
				       .ready = exchange_gone,
				       .context = exchange};
	exchange->late = (struct timer){.due_ms = CLOCK_NEVER,
					.due = exchange_late,
					.context = exchange};
	loop_add_timer(daemon->options.loop, &exchange->late);
	exchange->next = daemon->first;
	if (exchange->next != NULL)
		exchange->next->previous = exchange;
	daemon->first = exchange;
	return exchange;
}

static void http_exchange_free(struct http_exchange *exchange)
{
	struct http_daemon *daemon = exchange->daemon;

	if (exchange->room != TURNED_AWAY)
		daemon->options.over(daemon->options.context, exchange);
	if (exchange->progress != ANSWERED)
		daemon->busy--;
	http_connection_rests(exchange->carrier);
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
	http_exchange_forget_body(exchange);
	daemon->unread -= exchange->out.size - exchange->out_from;
	buf_fini(&exchange->out);
	free(exchange->type);
	free(exchange->beat);
	free(exchange->method);
	free(exchange->path);
	free(exchange);
}

const struct sockaddr *http_daemon_peer(const struct http_exchange *exchange)
{
	const union MHD_ConnectionInfo *info = exchange->daemon->mhd.get_connection_info(
		exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	return info != NULL ? info->client_addr : NULL;
}

const char *http_daemon_method(const struct http_exchange *exchange)
{
	return exchange->method;
}

const char *http_daemon_path(const struct http_exchange *exchange)
{
	return exchange->path;
}

const char *http_daemon_header(const struct http_exchange *exchange, const char *name)
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

size_t http_daemon_header_count(const struct http_exchange *exchange, const char *name)
{
	struct counting counting = {.name = name};

	(void)exchange->daemon->mhd.get_values(exchange->connection, MHD_HEADER_KIND,
					       count_header, &counting);
	return counting.count;
}

void *http_daemon_owner(const struct http_exchange *exchange)
{
	return exchange->owner;
}

void http_daemon_add_header(struct http_exchange *exchange, const char *name,
			    const char *value)
{
	if (exchange->headers == HTTP_HEADERS)
		return;
	exchange->names[exchange->headers] = memory_copy(name);
	exchange->values[exchange->headers++] = memory_copy(value);
}

struct joining {
	const char *name;
	struct buf *out;
};

static enum MHD_Result join_header(void *context, enum MHD_ValueKind kind,
				   const char *name, const char *value)
{
	struct joining *joining = context;

	(void)kind;
	if (strcasecmp(name, joining->name) == 0)
		(void)buf_addf(joining->out, "%s%s", joining->out->size > 0 ? "," : "",
			       value != NULL ? value : "");
	return MHD_YES;
}

void http_daemon_header_list(const struct http_exchange *exchange, const char *name,
			     struct buf *out)
{
	struct joining joining = {name, out};

	(void)exchange->daemon->mhd.get_values(exchange->connection, MHD_HEADER_KIND,
					       join_header, &joining);
}

/* Is NAME a token of RFC 9110, section 5.6.2? */
static bool is_token(const char *name)
{
	return name != NULL && name[0] != '\0' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "!#$%&'*+-.^_`|~") == strlen(name);
}

static enum MHD_Result check_header(void *context, enum MHD_ValueKind kind,
				    const char *name, const char *value)
{
	bool *sound = context;

	(void)kind;
	(void)value;
	*sound = *sound && is_token(name);
	return *sound ? MHD_YES : MHD_NO;
}

bool http_daemon_headers_are_sound(const struct http_exchange *exchange)
{
	bool sound = true;

	(void)exchange->daemon->mhd.get_values(exchange->connection, MHD_HEADER_KIND,
					       check_header, &sound);
	return sound;
}

static const struct library microhttpd = {"libmicrohttpd.so.12", "0.9.71",
					  "libmicrohttpd12", "serving HTTP"};

static bool load_functions(struct functions *mhd, struct err *err)
{
	const struct library_function wanted[] = {
		{"MHD_start_daemon", &mhd->start_daemon},
		{"MHD_stop_daemon", &mhd->stop_daemon},
		{"MHD_quiesce_daemon", &mhd->quiesce_daemon},
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

/* The library has work to do. */
static void http_run_soon(struct http_daemon *daemon)
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
void http_daemon_ask_again(struct http_exchange *exchange)
{
	http_daemon_add_header(exchange, "Retry-After", "1");
	http_daemon_add_header(exchange, "Connection", "close");
}

static void answer_busy(struct http_exchange *exchange, struct str why)
{
	http_daemon_ask_again(exchange);
	http_daemon_answer(exchange, STATUS_BUSY, "text/plain", why);
}

bool http_daemon_is_crowded(const struct http_exchange *exchange)
{
	return exchange->room != HAS_ROOM;
}

static void turn_away(struct http_exchange *exchange)
{
	exchange->room = TURNED_AWAY;
	answer_busy(exchange,
		    STR("Too many requests are under way; ask again in a second.\n"));
}

static void answer_too_large(struct http_exchange *exchange)
{
	http_daemon_answer(exchange, STATUS_TOO_LARGE, "text/plain",
			   STR("The request is too large.\n"));
}

/*
 * Does the client wait for a word of ours before it sends more than we take? One that sends without
 * waiting is read to its end: it would find the connection broken, and perhaps never read why.
 */
static bool asks_for_too_much(const struct http_exchange *exchange)
{
	const char *expects = http_daemon_header(exchange, "Expect");
	const char *length = http_daemon_header(exchange, "Content-Length");
	uint64_t size;

	return expects != NULL && length != NULL &&
	       strcasecmp(expects, "100-continue") == 0 &&
	       text_parse_count(length, UINT64_MAX, &size, NULL) &&
	       size > exchange->daemon->options.body_max;
}

static void take_whole(struct http_daemon *daemon, struct http_exchange *exchange)
{
	http_connection_asked(exchange->carrier);
	exchange->progress = WAITING;
	if (exchange->taken == BODY_CROWDED_OUT)
		answer_busy(exchange,
			    STR("Too much is being sent at once; ask again in a second.\n"));
	else if (exchange->taken == BODY_TOO_LARGE)
		answer_too_large(exchange);
	else
		daemon->options.whole(daemon->options.context, exchange,
				      buf_str(&exchange->body));
	http_exchange_forget_body(exchange);
}

static enum MHD_Result http_exchange_queue(struct http_exchange *exchange);

/*
 * The library calls this for the head, for each piece of the body, for the end of the
 * body, and after a suspended connection was resumed.
 */
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
		exchange->room = daemon->busy > REQUESTS_MAX ? FOR_SHORT : HAS_ROOM;
		if (daemon->busy > CROWDED_MAX)
			turn_away(exchange);
		else
			exchange->owner =
				daemon->options.head(daemon->options.context, exchange);
		if (exchange->progress < ANSWERED && asks_for_too_much(exchange))
			answer_too_large(exchange);
		if (exchange->progress >= ANSWERED)
			return http_exchange_queue(exchange);
		http_connection_let_in(exchange->carrier);
		return MHD_YES;
	}
	if (exchange->broken || exchange->queued)
		return exchange->broken ? MHD_NO : MHD_YES;
	if (*size > 0) {
		http_exchange_take_body(exchange, (struct str){data, *size});
		*size = 0;
		return MHD_YES;
	}
	if (exchange->progress == READING)
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

bool http_daemon_stop_listening(struct http_daemon *daemon)
{
	const struct http_connection *at = daemon->first_connection;

	if (!daemon->quiet) {
		const int fd = daemon->mhd.quiesce_daemon(daemon->daemon);

		if (fd >= 0)
			(void)close(fd);
		daemon->quiet = true;
	}
	/* One without a request has brought one before, or its first head is to come. */
	while (at != NULL &&
	       (at->exchange != NULL ? at->exchange->progress >= STREAMING : at->known))
		at = at->next;
	return at == NULL;
}

void http_daemon_close(struct http_daemon *daemon)
{
	if (daemon == NULL)
		return;
	daemon->closing = true;
	/* The library may only be stopped when no connection is suspended. */
	for (struct http_exchange *at = daemon->first; at != NULL; at = at->next) {
		if (at->progress == STREAMING)
			at->progress = STREAMED;
		else if (at->progress < ANSWERED)
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

/*
 * The reply: an answer, or a stream of bytes. Its bytes are stored once, and given to the
 * library piece by piece, as fast as the client reads.
 */

enum {
	BEAT_MS = 15000, /* proxies give up after 30 to 60 s */
	PIECE_MAX = 64 << 10,
	/* Unread bytes of all streams and answers together. */
	UNREAD_ALL_MAX = 256 << 20,
};

static const char too_much[] =
	"Too much that was answered is unread; ask again in a second.\n";

/*
 * Free the memory of bytes that the client has read, in pieces large enough to be worth
 * it.
 */
static void forget_read(struct http_exchange *exchange)
{
	struct buf *out = &exchange->out;

	if (exchange->out_from == out->size) {
		buf_fini(out);
		buf_init(out, HTTP_UNREAD_MAX);
		exchange->out_from = 0;
	} else if (exchange->progress >= STREAMING &&
		   exchange->out_from > out->size / 2 && exchange->out_from > PIECE_MAX) {
		buf_remove(out, 0, exchange->out_from);
		exchange->out_from = 0;
	}
}

/*
 * May SIZE more bytes wait for the client? A piece may always, so that clients that do not read
 * their long answers leave others their short ones.
 */
static bool has_unread_room(const struct http_exchange *exchange, size_t size)
{
	return exchange->out.size - exchange->out_from + size <= PIECE_MAX ||
	       exchange->daemon->unread + size <= UNREAD_ALL_MAX;
}

/*
 * Add BYTES to the output. Without room the stream is broken: lost bytes cannot be
 * resent.
 */
static void add(struct http_exchange *exchange, struct str bytes)
{
	struct http_daemon *daemon = exchange->daemon;

	if (!has_unread_room(exchange, bytes.size) || !buf_addstr(&exchange->out, bytes))
		exchange->broken = true;
	else
		daemon->unread += bytes.size;
}

static ssize_t read_stream(void *context, uint64_t at, char *data, size_t max)
{
	struct http_exchange *exchange = context;
	size_t size = exchange->out.size - exchange->out_from;

	(void)at;
	if (exchange->broken)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (size == 0 && (exchange->progress != STREAMING || exchange->daemon->closing))
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (size == 0) {
		http_exchange_suspend(exchange);
		return 0;
	}
	if (size > max)
		size = max;
	memcpy(data, exchange->out.data + exchange->out_from, size);
	exchange->out_from += size;
	exchange->daemon->unread -= size;
	forget_read(exchange);
	return (ssize_t)size;
}

static struct MHD_Response *response_of(struct http_exchange *exchange)
{
	const struct functions *mhd = &exchange->daemon->mhd;
	struct MHD_Response *response;
	size_t size = exchange->out.size;

	if (exchange->progress >= STREAMING)
		return mhd->from_callback(MHD_SIZE_UNKNOWN, PIECE_MAX, read_stream,
					  exchange, NULL);
	if (size > PIECE_MAX)
		return mhd->from_callback(size, PIECE_MAX, read_stream, exchange, NULL);
	response = mhd->from_buffer(size, exchange->out.data, MHD_RESPMEM_MUST_COPY);
	exchange->daemon->unread -= size;
	buf_fini(&exchange->out);
	return response;
}

/* Give the answer, or the beginning of the stream, to the library. */
static enum MHD_Result http_exchange_queue(struct http_exchange *exchange)
{
	const struct functions *mhd = &exchange->daemon->mhd;
	struct MHD_Response *response;
	/* it has the header that closes the connection, or needs none */
	bool closes = !exchange->daemon->quiet;
	enum MHD_Result queued;

	exchange->queued = true;
	if (exchange->broken)
		return MHD_NO;
	response = response_of(exchange);
	if (response == NULL)
		return MHD_NO;
	if (exchange->type != NULL)
		(void)mhd->add_header(response, "Content-Type", exchange->type);
	if (exchange->progress >= STREAMING) {
		(void)mhd->add_header(response, "Cache-Control", "no-cache");
		(void)mhd->add_header(response, "X-Accel-Buffering", "no");
	}
	for (size_t i = 0; i < exchange->headers; i++) {
		(void)mhd->add_header(response, exchange->names[i], exchange->values[i]);
		closes = closes || strcmp(exchange->names[i], "Connection") == 0;
	}
	if (!closes)
		(void)mhd->add_header(response, "Connection", "close");
	queued = mhd->queue(exchange->connection, (unsigned)exchange->status, response);
	mhd->destroy(response);
	return queued;
}

static int64_t next_beat_ms(const struct http_exchange *exchange)
{
	const int ms = exchange->daemon->options.beat_ms;

	return clock_now_ms() + (ms > 0 ? ms : BEAT_MS);
}

static void set_type(struct http_exchange *exchange, const char *type, struct str beat)
{
	char *type_copy = memory_copy(type);

	free(exchange->type);
	free(exchange->beat);
	exchange->type = type_copy;
	exchange->beat = memory_copy_str(beat);
}

void http_daemon_answer(struct http_exchange *exchange, int status, const char *type,
			struct str body)
{
	if (exchange->progress >= ANSWERED)
		return;
	if (!has_unread_room(exchange, body.size) || body.size > HTTP_UNREAD_MAX) {
		http_daemon_add_header(exchange, "Retry-After", "1");
		status = STATUS_BUSY;
		type = "text/plain";
		body = str_of(too_much);
	}
	exchange->progress = ANSWERED;
	exchange->daemon->busy--;
	http_connection_answered(exchange->carrier);
	exchange->status = status;
	set_type(exchange, type, STR(""));
	exchange->late.due_ms = CLOCK_NEVER;
	add(exchange, body);
	http_exchange_wake(exchange);
}

bool http_daemon_is_answered(const struct http_exchange *exchange)
{
	return exchange->progress >= ANSWERED;
}

bool http_daemon_is_stream(const struct http_exchange *exchange)
{
	return exchange->progress >= STREAMING;
}

void http_daemon_stream(struct http_exchange *exchange, const char *type, struct str beat)
{
	if (exchange->progress >= ANSWERED)
		return;
	exchange->progress = STREAMING;
	exchange->status = MHD_HTTP_OK;
	auto_free char *beat_copy = memory_copy_str(beat);
	set_type(exchange, type, str_of(beat_copy));
	exchange->late.due_ms = next_beat_ms(exchange);
	http_exchange_wake(exchange);
}

void http_daemon_stream_if_late(struct http_exchange *exchange, const char *type,
				struct str beat)
{
	if (exchange->progress >= ANSWERED)
		return;
	set_type(exchange, type, beat);
	exchange->late.due_ms = next_beat_ms(exchange);
}

void http_daemon_stream_add(struct http_exchange *exchange, struct str bytes)
{
	if (exchange->progress != STREAMING)
		return;
	exchange->late.due_ms = next_beat_ms(exchange);
	add(exchange, bytes);
	http_exchange_wake(exchange);
}

void http_daemon_stream_end(struct http_exchange *exchange)
{
	if (exchange->progress != STREAMING)
		return;
	exchange->progress = STREAMED;
	exchange->late.due_ms = CLOCK_NEVER;
	http_exchange_wake(exchange);
}
