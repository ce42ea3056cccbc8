/*
 * proxy: the messages between front and proxy, the grants of commands, the connections, the
 * classification of addresses, and the role. A connection is a state machine from accept
 * to its end: its head or greeting is read, its host is looked up, the addresses are
 * checked, one is connected, and then bytes are relayed. The role reads the files it
 * needs, locks itself in, reports that it is ready, and serves until the front is gone.
 */

#include "proxy/proxy.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"
#include "policy/network.h"
#include "process/loop.h"
#include "proxy/counts.h"
#include "proxy/dial.h"
#include "proxy/http.h"
#include "proxy/resolver.h"
#include "proxy/stream.h"
#include "sandbox/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	/*
	 * Each needs two sockets, and a few more for the resolver. Further clients wait
	 * in the backlog.
	 */
	CONNECTIONS_MAX = 512,
	/* Those of published ports are counted apart, so that neither side starves. */
	PUBLISHED_CONNECTIONS_MAX = 256,
	COPY_BYTES = 64 << 10, /* of one read */
	GRANTS_MAX = 4096,     /* one cell runs far fewer commands at the same time */
	REPORTS_MAX = 32, /* refusals reported for one command; a result shows fewer */
};

/* Timeouts, in the order of a connection's life. */
enum {
	HEAD_MS = 10 * 1000, /* the client is in the same machine */
	/* The front has a shorter limit. This one is for a front that never answers. */
	ASKING_MS = 10 * 60 * 1000,
	HANDING_MS = 30 * 1000, /* the broker serves as many clients as it can already */
	DIAL_MS = 5000, /* time for one retransmission; then the next address is tried */
	/*
	 * A client names its host immediately. One that does not is closed after this
	 * time.
	 */
	HELLO_MS = 900,
	IDLE_MS = 15 * 60 * 1000,
	/*
	 * A connection pool of a database is idle for longer. It ends with its command in
	 * any case.
	 */
	CARRIED_IDLE_MS = 2 * 60 * 60 * 1000,
	LEAVE_MS = 2000, /* an answer is small, and its reader runs on the same machine */
};

/* The right of one command to ask. */
struct grant {
	uint64_t call;
	char token[PROXY_TOKEN];
	unsigned reports;
};

struct listener {
	struct proxy *proxy;
	/* the tcp:// entry it serves; NULL: proxy requests */
	const struct network_entry *entry;
	uint16_t published; /* the port of the cell; 0: it is a listener in the cell */
	struct watch watch;
};

/* Each tcp:// port has a listener for IPv4 and one for IPv6. */
enum { LISTENERS_MAX = 1 + 2 * NETWORK_CARRIED_MAX + NETWORK_PUBLISHED_MAX };

enum {
	SPARE_ASKED = -1,
	SPARE_WISH = 0, /* the number of the wish for a spare socket at the inlet */
};

struct proxy {
	struct loop *loop;
	struct resolver resolver;
	struct watch control;
	struct watch inlet;  /* fd 0: no port is published */
	struct watch broker; /* fd 0: there is none */
	struct network_entry *entries;
	size_t entry_count;
	struct network_entry *brokered; /* the hosts that the broker serves */
	size_t brokered_count;
	char *rule;
	bool asks;
	uint64_t last_asked; /* the number of the connection that asked last */
	uint64_t last_wish;  /* the same for the inlet */
	/*
	 * a socket of the cell's network, for the next connection of a published port;
	 * 0: there is none, SPARE_ASKED: the anchor was asked for one
	 */
	int spare;
	struct grant *grants;
	size_t grant_count;
	unsigned carried_reports;
	struct listener listeners[LISTENERS_MAX];
	size_t listener_count;
	struct connection *connections;
	size_t connection_count, published_count;
	struct connection *dead; /* freed when the turn is over */
	struct counts *counts;   /* NULL: nobody wants to know */
	char scratch[COPY_BYTES];
};

enum connection_state {
	READING_HEAD = 1, /* of a request */
	ASKING,           /* whether it may go on */
	KNOCKING,         /* a socket of the cell's network is wanted */
	HANDING,          /* the broker is to take the client, and has no room yet */
	DIALING,          /* the host, or a port of the cell */
	/* the client's first bytes, which name the host, before they go on */
	READING_HELLO,
	RELAYING,
	LEAVING, /* the whole answer was sent or queued; the client still reads it */
};

struct connection {
	struct proxy *proxy;
	struct connection *next, *previous;
	enum connection_state state;
	const struct network_entry *entry; /* that allows the connection */
	struct network_entry allowed; /* used as that entry when a person allowed it */
	uint64_t asked; /* its number in the question to the front; 0: nobody was asked */
	bool published; /* from this machine to the loopback of the cell */
	uint64_t wish;  /* its number at the inlet */
	bool six;       /* 127.0.0.1 of the cell has refused it: ::1 is tried */
	struct network_host host;
	uint16_t port;
	uint64_t call;    /* the call of its grant; 0: it came by a tcp:// listener */
	bool plain;       /* a plain request: one body, one answer */
	bool needs_hello; /* nothing comes back before the client has named its host */
	struct watch client, server;
	struct timer deadline;
	struct buf head;       /* bytes of the client that are not parsed yet */
	struct stream out, in; /* to the server, to the client */
	struct body body;
	struct dial dial;
	char why[PROXY_REMEDY_MAX]; /* the host is refused when the answer is no */
};

/*
 * Prints and reads the messages between front and proxy, and the data that the proxy
 * gets at its start.
 */

bool proxy_send(int control, const struct proxy_message *message, int fd)
{
	return fd_message_send(control, message, sizeof(*message), &fd, fd >= 0 ? 1 : 0,
			       MSG_DONTWAIT);
}

bool proxy_receive(int control, struct proxy_message *message, int *fd, struct err *err)
{
	struct proxy_message read = {0};
	int came;

	if (!fd_message_receive(control, &read, sizeof(read), &came, 1, MSG_DONTWAIT))
		return errno == EAGAIN
			       ? err_set(err, EAGAIN, "no message yet")
			       : err_set(err, ECONNRESET, "the network proxy has ended");
	read.text[sizeof(read.text) - 1] = '\0';
	read.remedy[sizeof(read.remedy) - 1] = '\0';
	*message = read;
	*fd = came;
	return true;
}

bool proxy_print_spec(const struct proxy_spec *spec, struct buf *out)
{
	auto_value struct value *object = value_new_object();

	value_set(object, "network", value_new_texts(spec->network));
	value_set_text(object, "rule", spec->rule);
	value_set_boolean(object, "asks", spec->asks);
	value_set(object, "brokered", value_new_texts(spec->brokered));
	if (spec->resolver != NULL)
		value_set_text(object, "resolver", spec->resolver);
	return value_print(object, 0, out);
}

/* Keeps the tokens of the commands that run now. */

static bool grants_add(struct proxy *proxy, uint64_t call, const char *token)
{
	if (proxy->grant_count >= GRANTS_MAX || strlen(token) != PROXY_TOKEN)
		return false;
	proxy->grants = memory_grow(proxy->grants, proxy->grant_count + 1,
				    sizeof(proxy->grants[0]));
	struct grant *grant = &proxy->grants[proxy->grant_count++];
	*grant = (struct grant){.call = call};
	memcpy(grant->token, token, PROXY_TOKEN);
	return true;
}

static struct grant *grants_of(struct proxy *proxy, uint64_t call)
{
	for (size_t i = 0; i < proxy->grant_count; i++) {
		if (proxy->grants[i].call == call)
			return &proxy->grants[i];
	}
	return NULL;
}

static void grants_remove(struct proxy *proxy, uint64_t call)
{
	struct grant *grant;

	/* A call that moved to a second worker had two grants. */
	while ((grant = grants_of(proxy, call)) != NULL)
		*grant = proxy->grants[--proxy->grant_count];
}

/* Takes the same time however many bytes are equal. */
static bool is_same(const char *a, const char *b)
{
	unsigned different = 0;

	for (size_t i = 0; i < PROXY_TOKEN; i++)
		different |= (unsigned char)a[i] ^ (unsigned char)b[i];
	return different == 0;
}

static struct grant *grants_find(struct proxy *proxy, const char *token)
{
	if (strlen(token) != PROXY_TOKEN)
		return NULL;
	for (size_t i = 0; i < proxy->grant_count; i++) {
		if (is_same(proxy->grants[i].token, token))
			return &proxy->grants[i];
	}
	return NULL;
}

/* A connection's end, its deadline, and the events that it waits for. */

static void connection_set_deadline(struct connection *connection, int ms)
{
	connection->deadline.due_ms = clock_now_ms() + ms;
}

/* Accept, or do not, from now on: at the published ports, or in the cell. */
static void listeners_watch(struct proxy *proxy, bool published, bool open)
{
	for (size_t i = 0; i < proxy->listener_count; i++) {
		struct listener *listener = &proxy->listeners[i];

		if ((listener->published != 0) == published)
			(void)loop_want(proxy->loop, &listener->watch, open ? POLLIN : 0);
	}
}

static bool connections_full(const struct proxy *proxy, bool published)
{
	return published ? proxy->published_count >= PUBLISHED_CONNECTIONS_MAX
			 : proxy->connection_count >= CONNECTIONS_MAX;
}

/* Count one connection more or less; no listener is served while there are too many. */
static void connections_count(struct proxy *proxy, bool published, bool more)
{
	const bool full = connections_full(proxy, published);
	size_t *count = published ? &proxy->published_count : &proxy->connection_count;

	*count = more ? *count + 1 : *count - 1;
	if (connections_full(proxy, published) != full)
		listeners_watch(proxy, published, full);
}

/*
 * Ask the anchor for a socket beforehand, between two connections: the client of the next
 * one would wait for the way to the anchor and back. Without an answer the next connection
 * asks for a socket of its own.
 */
static void spare_ask(struct proxy *proxy)
{
	const struct proxy_inlet wish = {.connection = SPARE_WISH};

	if (proxy->spare == 0 && proxy->inlet.fd > 0 &&
	    fd_message_send(proxy->inlet.fd, &wish, sizeof(wish), NULL, 0, MSG_DONTWAIT))
		proxy->spare = SPARE_ASKED;
}

static void connection_end(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;

	if (connection->client.fd < 0)
		return;
	dial_cancel(&connection->dial);
	loop_remove(&connection->client);
	loop_remove(&connection->server);
	loop_remove_timer(&connection->deadline);
	fd_close(&connection->client.fd);
	fd_close(&connection->server.fd);
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		proxy->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	connection->next = proxy->dead;
	proxy->dead = connection;
	connections_count(proxy, connection->published, false);
	if (connection->published)
		spare_ask(proxy);
}

/* End all connections of CALL. */
static void connection_end_all(struct proxy *proxy, uint64_t call)
{
	for (struct connection *at = proxy->connections; at != NULL;) {
		struct connection *next = at->next;
		if (at->call == call)
			connection_end(at);
		at = next;
	}
}

static void connection_free_dead(struct proxy *proxy)
{
	while (proxy->dead != NULL) {
		struct connection *dead = proxy->dead;

		proxy->dead = dead->next;
		buf_fini(&dead->head);
		buf_fini(&dead->in.pending);
		buf_fini(&dead->out.pending);
		free(dead);
	}
}

static short client_events(const struct connection *connection)
{
	short events = connection->in.pending.size > 0 ? POLLOUT : 0;

	switch (connection->state) {
	case READING_HEAD:
	case READING_HELLO:
	case LEAVING:
		return connection->out.ended && connection->state != LEAVING
			       ? events
			       : events | POLLIN;
	case RELAYING:
		return connection->out.ended || connection->out.pending.size > 0
			       ? events
			       : events | POLLIN;
	case ASKING:
	case KNOCKING:
	case HANDING:
	case DIALING:
		break;
	}
	return events;
}

static short server_events(const struct connection *connection)
{
	short events = connection->out.pending.size > 0 ? POLLOUT : 0;
	bool reads = connection->state == RELAYING ||
		     (connection->state == READING_HELLO && !connection->needs_hello);

	if (connection->state == DIALING)
		return POLLOUT;
	if (connection->state == LEAVING)
		return 0;
	if (reads && !connection->in.ended && connection->in.pending.size == 0)
		events |= POLLIN;
	return events;
}

/* Wait for the events that its state can handle. */
static void connection_watch(struct connection *connection)
{
	struct loop *loop = connection->proxy->loop;

	if (connection->client.fd < 0)
		return;
	if (!loop_want(loop, &connection->client, client_events(connection)) ||
	    (connection->server.fd >= 0 &&
	     !loop_want(loop, &connection->server, server_events(connection))))
		connection_end(connection);
}

/* Bytes from one socket to the other. Each direction is ended separately. */

enum { ROUNDS = 8 }; /* reads of one turn; then other connections get their turn */

/*
 * Only the body of a plain request is passed on. After the body the client has no more to
 * send.
 */
static size_t part_of_body(struct connection *connection, size_t size)
{
	struct body *body = &connection->body;

	if (!connection->plain)
		return size;
	size = body_take(body, (struct str){connection->proxy->scratch, size});
	if (body->done) {
		connection->out.ended = true;
		/* Do not pass the end on: servers treat a half-closed client as gone. */
		connection->out.passed = true;
	}
	return size;
}

/* Count bytes of CONNECTION that went outward, or came. A published port has its own row. */
static void count(const struct connection *connection, bool outward, size_t size)
{
	/* The client of a published port is outside, and what it sends comes in. */
	const bool in = outward == connection->published;
	char target[NETWORK_TEXT_MAX];

	if (size == 0 || connection->proxy->counts == NULL)
		return;
	if (connection->published)
		(void)snprintf(target, sizeof(target), "published:%u", connection->port);
	else
		(void)network_print(&connection->host, connection->port, target);
	counts_add(connection->proxy->counts, target, in ? size : 0, in ? 0 : size);
}

static bool copy(struct connection *connection, int from, int to, struct stream *stream)
{
	char *scratch = connection->proxy->scratch;
	bool outward = stream == &connection->out;

	for (int round = 0; round < ROUNDS; round++) {
		if (!stream_flush(stream, to))
			return false;
		if (stream->pending.size > 0 || stream->ended)
			return true;
		ssize_t n = recv(from, scratch, COPY_BYTES, 0);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		stream->ended = n == 0;
		if (n == 0)
			continue;
		size_t size = outward ? part_of_body(connection, (size_t)n) : (size_t)n;
		count(connection, outward, size);
		if ((outward && connection->body.broken) ||
		    (size > 0 && !stream_pass(stream, to, scratch, size)))
			return false;
		if ((size_t)n < COPY_BYTES)
			return true; /* another read would only return EAGAIN */
	}
	return true;
}

/* Copy the bytes that are there. False when the connection is broken. */
static bool relay_out(struct connection *connection)
{
	return copy(connection, connection->client.fd, connection->server.fd,
		    &connection->out);
}

static bool relay_in(struct connection *connection)
{
	return copy(connection, connection->server.fd, connection->client.fd,
		    &connection->in);
}

static void relay_settle(struct connection *connection)
{
	bool told = connection->in.ended && connection->in.passed;

	if (connection->state == RELAYING && told && connection->out.passed) {
		/*
		 * A plain client may have sent more than its request. Closing a socket
		 * with unread bytes could lose the answer on its way.
		 */
		connection->state = LEAVING;
		connection_set_deadline(connection, LEAVE_MS);
	}
	if (connection->state == LEAVING && told && connection->out.ended &&
	    !connection->plain)
		connection_end(connection);
	else
		connection_watch(connection);
}

/* Copy the bytes that are there now, and start the idle timeout again. */
static void relay(struct connection *connection)
{
	connection_set_deadline(connection,
				connection->call == 0 ? CARRIED_IDLE_MS : IDLE_MS);
	if (relay_out(connection) && relay_in(connection))
		relay_settle(connection);
	else
		connection_end(connection);
}

/* From now on bytes pass both ways. */
static void connection_relay(struct connection *connection)
{
	connection->state = RELAYING;
	/* The head, and what came behind it, have waited for the host. */
	count(connection, true, connection->out.pending.size);
	buf_fini(&connection->head);
	buf_init(&connection->head, REQUEST_HEAD_MAX);
	relay(connection);
}

/* Sentences for the client, reports for the front. */

static const char *reason_of(int code)
{
	switch (code) {
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 407:
		return "Proxy Authentication Required";
	case 504:
		return "Gateway Timeout";
	default:
		return "Bad Gateway";
	}
}

/* Answer the client with the error CODE and SENTENCE, then close the connection. */
static void answer_error(struct connection *connection, int code, const char *sentence)
{
	struct stream *in = &connection->in;

	(void)buf_addf(&in->pending,
		       "HTTP/1.1 %d %s\r\n%sContent-Type: text/plain; charset=utf-8\r\n"
		       "Content-Length: %zu\r\nConnection: close\r\n"
		       "Proxy-Connection: close\r\n\r\n%s\n",
		       code, reason_of(code),
		       code == 407 ? "Proxy-Authenticate: Basic realm=\"glovebox\"\r\n" : "",
		       strlen(sentence) + 1, sentence);
	in->ended = true;
	connection->state = LEAVING;
	connection_set_deadline(connection, LEAVE_MS);
	if (!stream_flush(in, connection->client.fd))
		connection_end(connection);
	else
		relay_settle(connection);
}

/*
 * Report a refusal to the front. A call's later refusals are dropped after REPORTS_MAX.
 */
static void report(struct connection *connection, const char *target, const char *remedy)
{
	struct proxy *proxy = connection->proxy;
	struct grant *grant = grants_of(proxy, connection->call);
	struct proxy_message message = {.kind = PROXY_REFUSED, .call = connection->call};
	unsigned *reports = grant != NULL ? &grant->reports : &proxy->carried_reports;

	if (*reports >= REPORTS_MAX)
		return;
	(*reports)++;
	(void)snprintf(message.text, sizeof(message.text), "%s", target);
	(void)snprintf(message.remedy, sizeof(message.remedy), "%s", remedy);
	(void)proxy_send(proxy->control.fd, &message, -1);
}

/*
 * Refuse TARGET; REMEDY says how to allow it. The front and the client get the same
 * sentence, the client with the status CODE. CODE 0: the client does not expect HTTP any
 * more, so its connection is only closed.
 */
static void answer_refusal(struct connection *connection, int code, const char *target,
			   const char *remedy)
{
	char sentence[2 * PROXY_REMEDY_MAX];

	/* Tell the front before the client: after the answer the command can end. */
	report(connection, target, remedy);
	if (code == 0) {
		connection_end(connection);
		return;
	}
	(void)snprintf(sentence, sizeof(sentence), "refused: %s (%s); %s", target,
		       connection->proxy->rule, remedy);
	answer_error(connection, code, sentence);
}

static void connection_connected(struct connection *connection);

/* Leads from a host to its connected socket. */

static void dial_failed(struct connection *connection)
{
	const struct dial *dial = &connection->dial;
	char target[NETWORK_TEXT_MAX], sentence[PROXY_REMEDY_MAX + NETWORK_TEXT_MAX + 32];

	(void)network_print(&connection->host, connection->port, target);
	if (dial->refused) {
		answer_refusal(connection, connection->call == 0 ? 0 : 403, target,
			       dial->why);
		return;
	}
	if (connection->call == 0) {
		connection_end(connection);
		return;
	}
	(void)snprintf(sentence, sizeof(sentence), "%s cannot be reached: %s", target,
		       dial->why);
	answer_error(connection, 502, sentence);
}

static void dialed(struct dial *dial)
{
	struct connection *connection = dial->context;

	connection->server.fd = fd_take(&dial->fd);
	if (connection->server.fd >= 0)
		connection_connected(connection);
	else
		dial_failed(connection);
}

/* Start from a host; connection_connected or an answer follows. */
static void connection_dial(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;
	struct dial *dial = &connection->dial;

	connection->state = DIALING;
	connection->deadline.due_ms = CLOCK_NEVER; /* `dial` has its own timeouts */
	connection_watch(connection);
	if (connection->client.fd < 0)
		return;
	dial->resolver = &proxy->resolver;
	dial->entries = proxy->entries;
	dial->entry_count = proxy->entry_count;
	dial->entry = connection->entry;
	dial->host = connection->host;
	dial->port = connection->port;
	dial->done = dialed;
	dial->context = connection;
	dial_start(dial);
}

/* Clients of the hosts that the broker serves. */

/* A host of a credential, on any port; NULL: HOST is none. */
static const struct network_entry *brokered_find(const struct proxy *proxy,
						 const struct network_host *host)
{
	for (size_t i = 0; i < proxy->brokered_count; i++) {
		if (network_same_host(&proxy->brokered[i].host, host))
			return &proxy->brokered[i];
	}
	return NULL;
}

static bool is_brokered(const struct proxy *proxy, const struct network_host *host,
			uint16_t port)
{
	return network_find(proxy->brokered, proxy->brokered_count, host, port) != NULL;
}

/* Give the client of CONNECTION to the broker, now or as soon as it has room. */
static void hand(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;
	struct proxy_handed handed = {.tunnel = connection->call != 0};

	(void)network_print(&connection->host, connection->port, handed.target);
	if (fd_message_send(proxy->broker.fd, &handed, sizeof(handed),
			    &connection->client.fd, 1, MSG_DONTWAIT)) {
		connection_end(connection);
		return;
	}
	if (errno != EAGAIN && errno != ENOBUFS && errno != ETOOMANYREFS) {
		if (connection->call != 0)
			answer_error(connection, 502, "the broker of this cell has ended");
		else
			connection_end(connection);
		return;
	}
	if (connection->state != HANDING)
		connection_set_deadline(connection, HANDING_MS);
	connection->state = HANDING;
	connection_watch(connection);
	(void)loop_want(proxy->loop, &proxy->broker, POLLOUT);
}

/* The broker has room, or has ended: `hand` sees which. */
static void broker_ready(struct watch *watch, short events)
{
	struct proxy *proxy = watch->context;

	(void)events;
	(void)loop_want(proxy->loop, watch, 0);
	for (struct connection *next, *at = proxy->connections; at != NULL; at = next) {
		next = at->next;
		if (at->state != HANDING)
			continue;
		hand(at);
		if (at->state == HANDING && at->client.fd >= 0)
			return; /* there is no room again */
	}
}

/*
 * The head of a request. The policy's list decides whether its host may be reached; for a
 * host that no entry lists the front may be asked.
 */

/*
 * Ask the front whether a host that no entry lists may be reached. WHY is the text of the
 * refusal. False when the front cannot be asked.
 */
static bool ask(struct connection *connection, const char *why)
{
	struct proxy *proxy = connection->proxy;
	struct proxy_message message = {.kind = PROXY_ASKED,
					.call = connection->call,
					.connection = ++proxy->last_asked};

	(void)network_print(&connection->host, connection->port, message.text);
	(void)snprintf(message.remedy, sizeof(message.remedy), "%s", why);
	(void)snprintf(connection->why, sizeof(connection->why), "%s", why);
	connection->asked = message.connection;
	connection->state = ASKING;
	connection_set_deadline(connection, ASKING_MS);
	connection_watch(connection);
	return proxy_send(proxy->control.fd, &message, -1);
}

static void request_judge(struct connection *connection, const struct http_request *request)
{
	struct proxy *proxy = connection->proxy;
	const struct network_entry *served;
	char remedy[NETWORK_REMEDY_MAX], entry[NETWORK_TEXT_MAX];

	connection->host = request->host;
	connection->port = request->port;
	served = brokered_find(proxy, &request->host);
	if (served != NULL && request->connect &&
	    is_brokered(proxy, &request->host, request->port)) {
		hand(connection);
		return;
	}
	if (served != NULL) {
		(void)snprintf(remedy, sizeof(remedy),
			       "a key of this cell is for this host, so it is reached by TLS to "
			       "%s, or list \"tcp://%s\" for another service there",
			       network_print(&served->host, served->port, entry),
			       request->shown);
		answer_refusal(connection, 403, request->shown, remedy);
		return;
	}
	connection->entry = network_find(proxy->entries, proxy->entry_count,
					 &request->host, request->port);
	if (connection->entry != NULL &&
	    (request->connect || request->port == NETWORK_PORT_HTTP)) {
		connection_dial(connection);
		return;
	}
	if (connection->entry != NULL ||
	    !(request->connect || request->port == NETWORK_PORT_HTTP)) {
		(void)snprintf(remedy, sizeof(remedy),
			       "plain HTTP passes on port 80 only: use CONNECT or https, or list "
			       "\"tcp://%s\" and no other entry for this port",
			       network_print(&connection->host, connection->port, entry));
		answer_refusal(connection, 403, request->shown, remedy);
		return;
	}
	network_print_entry(&connection->host, connection->port, entry);
	(void)network_print_remedy(entry, remedy);
	if (proxy->asks && ask(connection, remedy))
		return;
	answer_refusal(connection, 403, request->shown, remedy);
}

/* The connection that asked under NUMBER may go on, or not. */
static void connection_client_decided(struct proxy *proxy, uint64_t number, bool yes)
{
	struct connection *connection = proxy->connections;
	char target[NETWORK_TEXT_MAX];

	while (connection != NULL &&
	       (connection->state != ASKING || connection->asked != number))
		connection = connection->next;
	if (connection == NULL)
		return;
	if (yes) {
		connection->allowed = (struct network_entry){.host = connection->host,
							     .port = connection->port};
		connection->entry = &connection->allowed;
		connection_dial(connection);
		return;
	}
	answer_refusal(connection, 403,
		       network_print(&connection->host, connection->port, target),
		       connection->why);
}

/*
 * Handle all messages of the front. The grant of a request may just have arrived.
 */
static void hear(struct proxy *proxy);

/*
 * Find the grant of the command that sent REQUEST. The grant may still wait in the
 * control socket.
 */
static bool request_grant(struct connection *connection, const struct http_request *request)
{
	struct proxy *proxy = connection->proxy;
	const struct grant *grant = grants_find(proxy, request->token);

	if (grant == NULL) {
		hear(proxy);
		grant = grants_find(proxy, request->token);
	}
	if (grant != NULL)
		connection->call = grant->call;
	return grant != NULL;
}

/* Look at `head`: a request, then the first bytes of a tunnel. */
static void client_head(struct connection *connection)
{
	struct buf *head = &connection->head;
	struct http_request request;
	struct err err = {0};

	switch (http_request_read(buf_str(head), &request, &err)) {
	case REQUEST_MORE:
		if (connection->out.ended)
			connection_end(connection);
		return;
	case REQUEST_BAD:
		if (request.shown[0] != '\0' && request_grant(connection, &request))
			answer_refusal(connection, 400, request.shown, err.text);
		else
			answer_error(connection, 400, err.text);
		return;
	case REQUEST_READY:
		break;
	}
	if (!request_grant(connection, &request)) {
		answer_error(connection, 407,
			     "this proxy takes the user name and token of HTTP_PROXY only, "
			     "and only while the command it was set for runs");
		return;
	}
	connection->plain = !request.connect;
	if (connection->plain) {
		body_begin(&connection->body, HTTP_REQUEST, request.body,
			   request.body_bytes);
		if (!http_request_print(buf_str(head), &request, &connection->out.pending)) {
			answer_error(connection, 400, "the head is too long");
			return;
		}
	}
	buf_remove(head, 0, request.size);
	request_judge(connection, &request);
}

/*
 * The first bytes of a client to its connected server. A TLS greeting, or a plain request
 * in a tunnel, must name the host for which the connection was allowed.
 */

static void client_hello(struct connection *connection);

static void connection_connected(struct connection *connection)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

	if (connection->published) {
		connection_relay(connection);
	} else if (connection->call == 0) {
		/*
		 * The service may send first, and use any protocol. A TLS greeting must
		 * name the host.
		 */
		connection->state = READING_HELLO;
		connection_set_deadline(connection, CARRIED_IDLE_MS);
		client_hello(connection);
	} else if (connection->plain) {
		size_t size = body_take(&connection->body, buf_str(&connection->head));

		connection->out.ended = connection->body.done;
		connection->out.passed = connection->body.done;
		if (connection->body.broken ||
		    !buf_add(&connection->out.pending, connection->head.data, size))
			connection_end(connection);
		else
			connection_relay(connection);
	} else {
		connection->needs_hello = connection->port == NETWORK_PORT_TLS ||
					  connection->host.kind == NETWORK_NAME;
		connection->state = READING_HELLO;
		connection_set_deadline(connection,
					connection->needs_hello ? HELLO_MS : IDLE_MS);
		(void)buf_adds(&connection->in.pending, established);
		if (stream_flush(&connection->in, connection->client.fd))
			client_hello(connection);
		else
			connection_end(connection);
	}
}

/* "unrecognized_name", fatal (RFC 8446, section 6.2): what TLS clients can show. */
static const char name_alert[] = {21, 3, 3, 0, 2, 2, 112};

/*
 * Refuse a greeting before any byte of the client is passed on. TLS: the client can show
 * the alert.
 */
static void hello_refuse(struct connection *connection, bool tls, const char *why)
{
	char target[NETWORK_TEXT_MAX];

	(void)network_print(&connection->host, connection->port, target);
	if (tls)
		(void)send(connection->client.fd, name_alert, sizeof(name_alert),
			   MSG_NOSIGNAL);
	answer_refusal(connection, 0, target, why);
}

/* Refuse with WHY, and name the entry that allows any protocol to this host and port. */
static void hello_refuse_protocol(struct connection *connection, bool tls, const char *why)
{
	char target[NETWORK_TEXT_MAX], sentence[PROXY_REMEDY_MAX];

	(void)network_print(&connection->host, connection->port, target);
	(void)snprintf(sentence, sizeof(sentence),
		       "%.160s; list \"tcp://%s\" for another protocol", why, target);
	hello_refuse(connection, tls, sentence);
}

/* The name must be the one the connection is for; an address has none. */
static bool hello_fits(struct connection *connection, const char *name)
{
	char why[PROXY_REMEDY_MAX];

	if (strcmp(name, connection->host.text) == 0 ||
	    (name[0] == '\0' && connection->host.kind != NETWORK_NAME))
		return true;
	if (name[0] == '\0')
		(void)snprintf(
			why, sizeof(why),
			"its TLS greeting names no host (SNI), which a listed name requires");
	else
		(void)snprintf(why, sizeof(why),
			       "its TLS greeting asks for \"%s\": connect to that name, and list "
			       "it in network",
			       name);
	hello_refuse(connection, true, why);
	return false;
}

static void hello_pass(struct connection *connection)
{
	if (!buf_addstr(&connection->out.pending, buf_str(&connection->head))) {
		connection_end(connection);
		return;
	}
	connection->needs_hello = false;
	connection_relay(connection);
}

static void hello_wait(struct connection *connection)
{
	if (connection->out.ended)
		connection_end(connection);
	else
		connection_watch(connection);
}

static void hello_read_tls(struct connection *connection)
{
	char name[NETWORK_NAME_MAX + 1];
	struct err err = {0};

	/*
	 * After the first byte of TLS no other protocol is possible: wait HELLO_MS only.
	 */
	if (!connection->needs_hello) {
		connection->needs_hello = true;
		connection_set_deadline(connection, HELLO_MS);
	}
	switch (http_hello_read(buf_str(&connection->head), name, &err)) {
	case HELLO_BAD:
		hello_refuse(connection, true, err.text);
		return;
	case HELLO_MORE:
		hello_wait(connection);
		return;
	case HELLO_GOOD:
		if (hello_fits(connection, name))
			hello_pass(connection);
		return;
	}
}

/* Plain HTTP in a tunnel: one request, since a second one could name another host. */
static void hello_read_plain(struct connection *connection)
{
	struct buf *head = &connection->head;
	struct http_request request;
	struct err err = {0};
	char why[PROXY_REMEDY_MAX];

	switch (http_request_read_inside(buf_str(head), &connection->host,
					 connection->port, &request, &err)) {
	case REQUEST_MORE:
		hello_wait(connection);
		return;
	case REQUEST_BAD:
		(void)snprintf(why, sizeof(why),
			       "this port passes TLS, and plain HTTP, that names the host: %.80s",
			       err.text);
		hello_refuse_protocol(connection, false, why);
		return;
	case REQUEST_READY:
		break;
	}
	connection->plain = true;
	connection->needs_hello = false;
	body_begin(&connection->body, HTTP_REQUEST, request.body, request.body_bytes);
	if (!http_request_print(buf_str(head), &request, &connection->out.pending)) {
		connection_end(connection);
		return;
	}
	buf_remove(head, 0, request.size);
	connection_connected(connection);
}

/* The client did not name its host in time. */
static void client_hello_late(struct connection *connection)
{
	if (!connection->needs_hello)
		connection_end(connection);
	else
		hello_refuse_protocol(connection, false,
				      "the client named no host in the first second");
}

/* The loopback of this machine is one host, whatever a client calls it. */
static bool is_localhost(const struct connection *connection)
{
	return connection->call == 0 && strcmp(connection->host.text, "localhost") == 0;
}

static void client_hello(struct connection *connection)
{
	const struct str bytes = buf_str(&connection->head);

	if (is_localhost(connection) ||
	    (bytes.size == 0 && connection->out.ended && !connection->needs_hello))
		hello_pass(connection);
	else if (bytes.size == 0)
		hello_wait(connection);
	else if (http_hello_begins(bytes))
		hello_read_tls(connection);
	else if (connection->port == NETWORK_PORT_TLS && connection->call != 0)
		hello_refuse_protocol(connection, true, "port 443 passes TLS only");
	else if (connection->needs_hello)
		hello_read_plain(connection);
	else
		hello_pass(connection);
}

/*
 * A connection from this machine to a published port. The anchor makes the socket, so that
 * it belongs to the cell's network, and the proxy connects it: to 127.0.0.1, then to ::1.
 */

static void inlet_dial(struct connection *connection, int *take_fd);

/* Take the spare socket, or ask the anchor for one. */
static void knock(struct connection *connection)
{
	struct proxy *proxy = connection->proxy;

	if (proxy->spare > 0 && !connection->six) {
		int spare = proxy->spare;

		proxy->spare = 0;
		inlet_dial(connection, &spare);
		return;
	}
	const struct proxy_inlet wish = {.connection = ++proxy->last_wish,
					 .six = connection->six};

	connection->wish = wish.connection;
	connection->state = KNOCKING;
	connection_set_deadline(connection, DIAL_MS);
	if (fd_message_send(proxy->inlet.fd, &wish, sizeof(wish), NULL, 0, MSG_DONTWAIT))
		connection_watch(connection);
	else
		connection_end(connection);
}

/*
 * No server has answered there. Closing the connection tells the client that none has at
 * ::1 either.
 */
static void knock_again(struct connection *connection)
{
	loop_remove(&connection->server);
	fd_close(&connection->server.fd);
	if (connection->six) {
		connection_end(connection);
		return;
	}
	connection->six = true;
	knock(connection);
}

/*
 * Where nobody listens, a socket of the loopback can meet itself, when the kernel chooses
 * for it the port that it dials.
 */
static bool met_itself(const struct connection *connection)
{
	struct sockaddr_in6 own = {0};
	socklen_t size = sizeof(own);

	/* The port has the same place in both families. */
	return getsockname(connection->server.fd, (struct sockaddr *)&own, &size) < 0 ||
	       ntohs(own.sin6_port) == connection->port;
}

/* A socket of the cell is connected, or not. */
static void inlet_dialed(struct connection *connection)
{
	int code = 0;
	socklen_t size = sizeof(code);

	if (getsockopt(connection->server.fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 &&
	    code == 0 && !met_itself(connection))
		connection_connected(connection);
	else
		knock_again(connection);
}

static void inlet_dial(struct connection *connection, int *take_fd)
{
	const struct sockaddr_in four = {.sin_family = AF_INET,
					 .sin_port = htons(connection->port),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 six = {.sin6_family = AF_INET6,
					 .sin6_port = htons(connection->port),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const int yes = 1;
	int code = -1;

	connection->server.fd = fd_take(take_fd);
	(void)setsockopt(connection->server.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	/*
	 * The loopback shakes hands within the call that begins to connect, so a second
	 * one mostly has the outcome.
	 */
	for (int i = 0; i < 2 && (i == 0 || errno == EINPROGRESS) && code < 0; i++)
		code = connection->six
			       ? connect(connection->server.fd,
					 (const struct sockaddr *)&six, sizeof(six))
			       : connect(connection->server.fd,
					 (const struct sockaddr *)&four, sizeof(four));
	if (code < 0 && errno != EALREADY) {
		knock_again(connection);
		return;
	}
	connection->state = DIALING;
	connection_set_deadline(connection, DIAL_MS);
	if (code == 0)
		inlet_dialed(connection);
	else
		connection_watch(connection);
}

static void inlet_ready(struct watch *watch, short events)
{
	struct proxy *proxy = watch->context;
	struct proxy_inlet wish;
	int fd;

	(void)events;
	while (fd_message_receive(watch->fd, &wish, sizeof(wish), &fd, 1, MSG_DONTWAIT)) {
		struct connection *connection = proxy->connections;

		if (wish.connection == SPARE_WISH) {
			/* One was asked for: no second one takes its place. */
			if (proxy->spare == SPARE_ASKED)
				proxy->spare = fd >= 0 ? fd_take(&fd) : 0;
			fd_close(&fd);
			continue;
		}
		while (connection != NULL && (connection->state != KNOCKING ||
					      connection->wish != wish.connection))
			connection = connection->next;
		if (connection != NULL && fd >= 0)
			inlet_dial(connection, &fd);
		else if (connection != NULL)
			knock_again(connection);
		fd_close(&fd);
	}
	/* When the anchor has ended, knocking fails from now on. */
	if (errno != EAGAIN)
		loop_remove(watch);
}

/* The events of a connection: its sockets are ready, or its deadline is due. */

/*
 * How many of SIZE bytes, which come behind those of HEAD, belong to the head of a request?
 * The bytes behind it stay in the socket, because the broker may get it.
 */
static size_t part_of_head(const struct buf *head, const char *bytes, size_t size)
{
	static const char blank[] = "\r\n\r\n";
	enum { BLANK = sizeof(blank) - 1 };
	char last[2 * BLANK];
	const size_t held = head->size < BLANK - 1 ? head->size : BLANK - 1;
	const size_t first = size < BLANK - 1 ? size : BLANK - 1;
	size_t at;

	/* It may have begun in HEAD. */
	memcpy(last, head->data + head->size - held, held);
	memcpy(last + held, bytes, first);
	at = str_find((struct str){last, held + first}, STR(blank), 0);
	if (at != (size_t)-1)
		return at + BLANK - held;
	at = str_find((struct str){bytes, size}, STR(blank), 0);
	return at != (size_t)-1 ? at + BLANK : size;
}

/* Read into `head` up to MAX bytes in all. False when nothing came. */
static bool client_read(struct connection *connection, size_t max)
{
	struct buf *head = &connection->head;
	char *scratch = connection->proxy->scratch;
	size_t size = max > head->size ? max - head->size : 0;
	ssize_t n;

	if (size > COPY_BYTES)
		size = COPY_BYTES;
	if (size == 0)
		return true; /* `head` is full: its parser reports that */
	if (connection->state == READING_HEAD) {
		n = recv(connection->client.fd, scratch, size, MSG_PEEK);
		if (n > 0)
			size = part_of_head(head, scratch, (size_t)n);
	}
	n = recv(connection->client.fd, scratch, size, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0) {
		connection_end(connection);
		return false;
	}
	connection->out.ended = n == 0;
	return buf_add(head, scratch, (size_t)n);
}

/* The answer was sent. Discard all further bytes until the client closes. */
static void leave(struct connection *connection)
{
	ssize_t n = recv(connection->client.fd, connection->proxy->scratch, COPY_BYTES, 0);

	if (!stream_flush(&connection->in, connection->client.fd) || n == 0 ||
	    (n < 0 && errno != EAGAIN && errno != EINTR))
		connection_end(connection);
	else
		relay_settle(connection);
}

static void client_ready(struct watch *watch, short events)
{
	struct connection *connection = watch->context;

	if ((events & POLLERR) != 0) {
		connection_end(connection);
		return;
	}
	switch (connection->state) {
	case READING_HEAD:
		if (client_read(connection, REQUEST_HEAD_MAX))
			client_head(connection);
		break;
	case READING_HELLO:
		if (!stream_flush(&connection->in, connection->client.fd))
			connection_end(connection);
		else if ((events & (POLLIN | POLLHUP)) == 0)
			connection_watch(connection);
		else if (client_read(connection, REQUEST_HEAD_MAX))
			client_hello(connection);
		break;
	case RELAYING:
		relay(connection);
		break;
	case LEAVING:
		leave(connection);
		break;
	case ASKING:
	case KNOCKING:
	case HANDING:
	case DIALING:
		break;
	}
}

static void server_ready(struct watch *watch, short events)
{
	struct connection *connection = watch->context;

	if (connection->state == DIALING) {
		inlet_dialed(connection);
	} else if ((events & POLLERR) != 0) {
		connection_end(connection);
	} else if (connection->state == RELAYING) {
		relay(connection);
	} else if (!relay_in(connection)) { /* the server speaks first */
		connection_end(connection);
	} else {
		if (connection->call == 0 && connection->head.size == 0)
			connection_set_deadline(connection, CARRIED_IDLE_MS);
		connection_watch(connection);
	}
}

static void deadline_due(struct timer *timer)
{
	struct connection *connection = timer->context;

	if (connection->state == DIALING)
		knock_again(connection);
	else if (connection->state == READING_HEAD)
		answer_error(connection, 400, "no whole request came in time");
	else if (connection->state == READING_HELLO)
		client_hello_late(connection);
	else if (connection->state == HANDING && connection->call != 0)
		answer_error(connection, 504,
			     "the broker of this cell has no room for a further connection; try "
			     "again later");
	else
		connection_end(connection);
}

/* New clients. */

enum { ACCEPT_BATCH = 32 }; /* clients of one turn; then connections get their turn */

static struct connection *connection_new(struct listener *listener, int client)
{
	struct proxy *proxy = listener->proxy;
	struct connection *made = memory_alloc(sizeof(*made));
	const int yes = 1;

	(void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	made->proxy = proxy;
	made->state = READING_HEAD;
	made->client = (struct watch){.fd = client, .ready = client_ready, .context = made};
	made->server = (struct watch){.fd = -1, .ready = server_ready, .context = made};
	made->deadline = (struct timer){.due = deadline_due, .context = made};
	buf_init(&made->head, REQUEST_HEAD_MAX);
	stream_init(&made->out);
	stream_init(&made->in);
	loop_add_timer(proxy->loop, &made->deadline);
	connection_set_deadline(made, HEAD_MS);
	made->next = proxy->connections;
	if (proxy->connections != NULL)
		proxy->connections->previous = made;
	proxy->connections = made;
	made->published = listener->published != 0;
	connections_count(proxy, made->published, true);
	return made;
}

static void connection_accept(struct listener *listener)
{
	struct proxy *proxy = listener->proxy;

	for (int i = 0;
	     i < ACCEPT_BATCH && !connections_full(proxy, listener->published != 0); i++) {
		int client = accept4(listener->watch.fd, NULL, NULL,
				     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (client < 0)
			return;
		struct connection *made = connection_new(listener, client);
		if (made->published) {
			made->port = listener->published;
			knock(made);
			continue;
		}
		if (listener->entry == NULL) {
			connection_watch(made);
			continue;
		}
		made->entry = listener->entry;
		made->host = listener->entry->host;
		made->port = listener->entry->port;
		if (is_brokered(proxy, &made->host, made->port))
			hand(made);
		else
			connection_dial(made);
	}
}

/* The role, from its start to its end. */

enum {
	PROXY_ARGUMENTS = 4,
	/* two sockets a connection, two a lookup, the listeners and a spare socket */
	OPEN_FILES = 4 * CONNECTIONS_MAX + 2 * PUBLISHED_CONNECTIONS_MAX + LISTENERS_MAX + 64,
};

static void listener_ready(struct watch *watch, short events)
{
	(void)events;
	connection_accept(watch->context);
}

static const struct network_entry *entry_of_port(const struct proxy *proxy, uint16_t port)
{
	for (size_t i = 0; i < proxy->entry_count; i++) {
		if (proxy->entries[i].carried && proxy->entries[i].port == port)
			return &proxy->entries[i];
	}
	return NULL;
}

static void listener_add(struct proxy *proxy, const struct listener *made, int fd)
{
	struct listener *listener = &proxy->listeners[proxy->listener_count];

	if (fd < 0 || proxy->listener_count == LISTENERS_MAX) {
		fd_close(&fd);
		return;
	}
	*listener = *made;
	listener->proxy = proxy;
	listener->watch =
		(struct watch){.fd = fd, .ready = listener_ready, .context = listener};
	proxy->listener_count++;
	/* Clients of a published port wait until there is a way into the cell. */
	if (made->published == 0 || proxy->inlet.fd > 0)
		(void)loop_want(proxy->loop, &listener->watch, POLLIN);
}

/* Handle MESSAGE, which brings the descriptor FD; true when it was such a message. */
static bool hear_descriptor(struct proxy *proxy, const struct proxy_message *message, int fd)
{
	struct listener made = {0};

	switch (message->kind) {
	case PROXY_LISTENER:
		if (message->port != 0)
			made.entry = entry_of_port(proxy, message->port);
		if (message->port != 0 && made.entry == NULL)
			fd_close(&fd);
		listener_add(proxy, &made, fd);
		return true;
	case PROXY_PUBLISHED:
		made.published = message->port;
		listener_add(proxy, &made, fd);
		return true;
	case PROXY_BROKER:
		proxy->broker =
			(struct watch){.fd = fd, .ready = broker_ready, .context = proxy};
		return true;
	case PROXY_COUNTS:
		if (fd >= 0 && proxy->counts == NULL)
			proxy->counts = counts_take(&fd);
		fd_close(&fd);
		return true;
	case PROXY_INLET:
		proxy->inlet =
			(struct watch){.fd = fd, .ready = inlet_ready, .context = proxy};
		(void)loop_want(proxy->loop, &proxy->inlet, POLLIN);
		listeners_watch(proxy, true, true);
		return true;
	default:
		return false;
	}
}

static void hear(struct proxy *proxy)
{
	struct proxy_message message;
	struct err err;
	int fd;

	while (proxy_receive(proxy->control.fd, &message, &fd, &err)) {
		if (hear_descriptor(proxy, &message, fd))
			continue;
		fd_close(&fd);
		if (message.kind == PROXY_GRANT) {
			(void)grants_add(proxy, message.call, message.text);
		} else if (message.kind == PROXY_REVOKE) {
			grants_remove(proxy, message.call);
			connection_end_all(proxy, message.call);
		} else if (message.kind == PROXY_DECIDED) {
			connection_client_decided(proxy, message.connection,
						  message.port == 1);
		}
	}
	if (err.code != EAGAIN)
		_exit(0); /* the front is gone */
}

static void control_ready(struct watch *watch, short events)
{
	(void)events;
	hear(watch->context);
}

/* Read the entries of LIST, which stands under the key RULE. */
static bool entries_read(const struct value *list, const char *rule,
			 struct network_entry **entries, size_t *count, struct err *err)
{
	*entries = memory_array(value_count(list) + 1, sizeof((*entries)[0]));
	for (size_t i = 0; i < value_count(list); i++) {
		if (!network_parse_entry(value_str(value_item(list, i)),
					 &(*entries)[(*count)++], err))
			return err_while(err, "%s", rule);
	}
	return true;
}

static bool spec_read(struct proxy *proxy, int fd, struct value **object, struct err *err)
{
	struct buf text;
	bool ok;

	buf_init(&text, PROXY_SPEC_MAX);
	ok = fd_read_all(fd, &text, "the proxy's specification", err) &&
	     value_parse(buf_str(&text), 0, object, err);
	buf_fini(&text);
	if (!ok)
		return false;
	const char *rule = value_text(value_member(*object, "rule"));
	proxy->asks = value_is_true(value_member(*object, "asks"));
	proxy->rule = memory_copy(rule != NULL ? rule : "network");
	return entries_read(value_member(*object, "network"), proxy->rule,
			    &proxy->entries, &proxy->entry_count, err) &&
	       entries_read(value_member(*object, "brokered"), "credentials",
			    &proxy->brokered, &proxy->brokered_count, err);
}

static void fail(int control, const struct err *err)
{
	struct proxy_message message = {.kind = PROXY_FAILED};

	(void)snprintf(message.remedy, sizeof(message.remedy), "%.*s",
		       (int)sizeof(message.remedy) - 1, err->text);
	(void)proxy_send(control, &message, -1);
	_exit(1);
}

static void serve(struct proxy *proxy)
{
	for (;;) {
		loop_turn(proxy->loop, CLOCK_NEVER);
		connection_free_dead(proxy);
	}
}

void proxy_role(int argc, char **argv)
{
	struct proxy_message ready = {.kind = PROXY_READY};
	auto_value struct value *object = NULL;
	struct proxy *proxy;
	struct err err;
	int control;

	if (argc != PROXY_ARGUMENTS || strcmp(argv[0], PROXY_ROLE) != 0)
		return;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)prctl(PR_SET_NAME, PROXY_ROLE);
	proxy = memory_alloc(sizeof(*proxy));
	control = fd_of_text(argv[2]);
	proxy->loop = loop_new();
	proxy->resolver.loop = proxy->loop;
	proxy->control =
		(struct watch){.fd = control, .ready = control_ready, .context = proxy};
	if (!spec_read(proxy, fd_of_text(argv[1]), &object, &err))
		fail(control, &err);
	names_load(&proxy->resolver.names, value_text(value_member(object, "resolver")),
		   proxy->entries, proxy->entry_count);
	const struct sandbox_outside walls = {.parent_pidfd = fd_of_text(argv[3]),
					      .keep = control,
					      .open_files = OPEN_FILES};
	if (!outside_enter(&walls, &err))
		fail(control, &err);
	if (!loop_want(proxy->loop, &proxy->control, POLLIN)) {
		(void)err_set(&err, errno, "the proxy's loop: %s", strerror(errno));
		fail(control, &err);
	}
	(void)proxy_send(control, &ready, -1);
	serve(proxy);
	_exit(0);
}
