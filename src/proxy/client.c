/*
 * client: what a client says before its bytes are relayed: the head of a request, and in a
 * tunnel to port 443 the greeting that names its host. Both are judged by the same list.
 */
#include "proxy/hello.h"
#include "proxy/proxy_parts.h"
#include "proxy/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* "unrecognized_name", fatal (RFC 8446, section 6.2): what TLS clients can show. */
static const char name_alert[] = {21, 3, 3, 0, 2, 2, 112};

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
	char remedy[NETWORK_REMEDY_MAX], entry[NETWORK_TEXT_MAX];

	connection->host = request->host;
	connection->port = request->port;
	connection->entry = network_find(proxy->entries, proxy->entry_count,
					 &request->host, request->port);
	if (connection->entry != NULL &&
	    (request->connect || request->port == NETWORK_PORT_HTTP)) {
		dial_start(connection);
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

void client_decided(struct proxy *proxy, uint64_t number, bool yes)
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
		dial_start(connection);
		return;
	}
	answer_refusal(connection, 403,
		       network_print(&connection->host, connection->port, target),
		       connection->why);
}

/*
 * Find the grant of the command that sent REQUEST. The grant may still wait in the
 * control socket.
 */
static bool request_grant(struct connection *connection, const struct http_request *request)
{
	struct proxy *proxy = connection->proxy;
	const struct grant *grant = grants_find(proxy, request->token);

	if (grant == NULL) {
		proxy_hear(proxy);
		grant = grants_find(proxy, request->token);
	}
	if (grant != NULL)
		connection->call = grant->call;
	return grant != NULL;
}

void client_head(struct connection *connection)
{
	struct buf *head = &connection->head;
	struct http_request request;
	struct err err = {0};

	switch (request_read(buf_str(head), &request, &err)) {
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
		body_begin(&connection->body, &request);
		if (!request_print(buf_str(head), &request, &connection->out.pending)) {
			answer_error(connection, 400, "the head is too long");
			return;
		}
	}
	buf_remove(head, 0, request.size);
	request_judge(connection, &request);
}

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
	switch (hello_read(buf_str(&connection->head), name, &err)) {
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

	switch (request_read_inside(buf_str(head), &connection->host, connection->port,
				    &request, &err)) {
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
	body_begin(&connection->body, &request);
	if (!request_print(buf_str(head), &request, &connection->out.pending)) {
		connection_end(connection);
		return;
	}
	buf_remove(head, 0, request.size);
	connection_connected(connection);
}

void client_hello_late(struct connection *connection)
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

void client_hello(struct connection *connection)
{
	const struct str bytes = buf_str(&connection->head);

	if (is_localhost(connection) ||
	    (bytes.size == 0 && connection->out.ended && !connection->needs_hello))
		hello_pass(connection);
	else if (bytes.size == 0)
		hello_wait(connection);
	else if (hello_begins(bytes))
		hello_read_tls(connection);
	else if (connection->port == NETWORK_PORT_TLS && connection->call != 0)
		hello_refuse_protocol(connection, true, "port 443 passes TLS only");
	else if (connection->needs_hello)
		hello_read_plain(connection);
	else
		hello_pass(connection);
}
