/*
 * http_daemon_exchange: one HTTP request, from its head to its end. http_daemon_answer.c
 * sends its answer.
 */
#include "mcp/server/http_daemon_parts.h"

#include "base/clock.h"
#include "base/memory.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	BODIES_MAX = 128 << 20, /* of all requests that are not whole yet */
};

static void client_gone(struct watch *watch, short events)
{
	struct http_exchange *exchange = watch->context;

	(void)events;
	loop_remove(watch);
	exchange->broken = true;
	if (!exchange->turned_away)
		exchange->daemon->options.dropped(exchange->daemon->options.context,
						  exchange);
	if (exchange->suspended) {
		exchange->suspended = false;
		exchange->daemon->mhd.resume_connection(exchange->connection);
		http_run_soon(exchange->daemon);
	}
}

void http_exchange_suspend(struct http_exchange *exchange)
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
void http_exchange_wake(struct http_exchange *exchange)
{
	if (!exchange->suspended)
		return;
	exchange->suspended = false;
	loop_remove(&exchange->end);
	exchange->daemon->mhd.resume_connection(exchange->connection);
	http_run_soon(exchange->daemon);
}

static void late_due(struct timer *timer)
{
	struct http_exchange *exchange = timer->context;

	if (exchange->progress == WAITING && exchange->type != NULL)
		http_stream(exchange, exchange->type, str_of(exchange->beat));
	if (exchange->progress == STREAMING)
		http_stream_add(exchange, str_of(exchange->beat));
}

void http_exchange_forget_body(struct http_exchange *exchange)
{
	exchange->daemon->bodies -= exchange->body.size;
	buf_fini(&exchange->body);
}

void http_exchange_take_body(struct http_exchange *exchange, struct str piece)
{
	struct http_daemon *daemon = exchange->daemon;

	if (exchange->taken != BODY_HELD)
		return;
	if (daemon->bodies + piece.size > BODIES_MAX)
		exchange->taken = BODY_CROWDED_OUT;
	else if (!buf_addstr(&exchange->body, piece))
		exchange->taken = BODY_TOO_LARGE;
	if (exchange->taken == BODY_HELD)
		daemon->bodies += piece.size;
	else
		http_exchange_forget_body(exchange);
}

struct http_exchange *http_exchange_new(struct http_daemon *daemon,
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

void http_exchange_free(struct http_exchange *exchange)
{
	struct http_daemon *daemon = exchange->daemon;

	if (!exchange->turned_away)
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

/* Those of RFC 9110, section 5.6.2. */
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

bool http_headers_are_sound(const struct http_exchange *exchange)
{
	bool sound = true;

	(void)exchange->daemon->mhd.get_values(exchange->connection, MHD_HEADER_KIND,
					       check_header, &sound);
	return sound;
}
