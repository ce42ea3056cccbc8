/*
 * dial: the addresses of a host, each checked, then tried one after the other. A name is
 * looked up only once, so that exactly the checked addresses are dialed.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "proxy/address.h"
#include "proxy/proxy_parts.h"
#include "proxy/socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { DIAL_MS = 5000 }; /* time for one retransmission; then the next address is tried */

/* Does some entry name ADDRESS itself, with this port? */
static bool is_listed(const struct connection *connection, const struct network_host *address)
{
	const struct proxy *proxy = connection->proxy;

	for (size_t i = 0; i < proxy->entry_count; i++) {
		const struct network_entry *entry = &proxy->entries[i];
		if (!entry->suffix && entry->port == connection->port &&
		    network_same_host(&entry->host, address))
			return true;
	}
	return false;
}

/*
 * A name may lead to public addresses only. The name of a tcp:// entry was listed for its
 * own sake: it may also lead to private addresses, and to the loopback when /etc/hosts
 * (or the name localhost) says so.
 */
static bool is_allowed(const struct connection *connection,
		       const struct network_host *address)
{
	enum address_kind kind = address_kind(address);
	bool carried = connection->entry->carried;

	if (is_listed(connection, address))
		return true;
	/* A person was asked about this very address and allowed it. */
	if (connection->asked != 0 && network_same_host(&connection->host, address))
		return true;
	switch (kind) {
	case ADDRESS_PUBLIC:
		return carried || !socket_is_own(address);
	case ADDRESS_PRIVATE:
		return carried;
	case ADDRESS_LOOPBACK:
		return carried && connection->lookup.local;
	default:
		return false;
	}
}

static void address_refuse(struct connection *connection, const struct network_host *address)
{
	char text[NETWORK_TEXT_MAX];

	connection->refused = true;
	(void)snprintf(connection->why, sizeof(connection->why),
		       "the name leads to %s, %s: add \"%s\" to network as well if that is "
		       "what you want",
		       address->text, address_kind_name(address_kind(address)),
		       network_print(address, connection->port, text));
}

static void dial_failed(struct connection *connection)
{
	char target[NETWORK_TEXT_MAX], sentence[PROXY_REMEDY_MAX + NETWORK_TEXT_MAX + 32];

	(void)network_print(&connection->host, connection->port, target);
	if (connection->refused) {
		answer_refusal(connection, connection->call == 0 ? 0 : 403, target,
			       connection->why);
		return;
	}
	if (connection->call == 0) {
		connection_end(connection);
		return;
	}
	(void)snprintf(sentence, sizeof(sentence), "%s cannot be reached: %s", target,
		       connection->why);
	answer_error(connection, 502, sentence);
}

/* Dial the next address that is allowed. */
static void dial_next(struct connection *connection)
{
	struct lookup *lookup = &connection->lookup;

	poller_remove(&connection->proxy->poller, &connection->server);
	fd_close(&connection->server.fd);
	while (connection->dialed < lookup->count) {
		const struct network_host *address =
			&lookup->addresses[connection->dialed++];

		if (!is_allowed(connection, address)) {
			address_refuse(connection, address);
			continue;
		}
		connection->server.fd = socket_connect(address, connection->port, true);
		if (connection->server.fd >= 0) {
			connection->state = DIALING;
			connection_set_deadline(connection, DIAL_MS);
			connection_watch(connection);
			return;
		}
		(void)snprintf(connection->why, sizeof(connection->why), "%s",
			       strerror(errno));
		connection->refused = false;
	}
	dial_failed(connection);
}

void dial_ready(struct connection *connection)
{
	int code = 0;
	socklen_t size = sizeof(code);

	if (getsockopt(connection->server.fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0 &&
	    code == 0) {
		connection_connected(connection);
		return;
	}
	(void)snprintf(connection->why, sizeof(connection->why), "%s", strerror(code));
	connection->refused = false;
	dial_next(connection);
}

void dial_due(struct connection *connection)
{
	(void)snprintf(connection->why, sizeof(connection->why), "it does not answer");
	connection->refused = false;
	dial_next(connection);
}

static void found(struct lookup *lookup, const char *why)
{
	struct connection *connection = lookup->context;

	if (lookup->count == 0)
		(void)snprintf(connection->why, sizeof(connection->why), "%s", why);
	dial_next(connection);
}

void dial_start(struct connection *connection)
{
	struct lookup *lookup = &connection->lookup;

	connection->state = FINDING;
	connection->deadline.due_ms = CLOCK_NEVER; /* the resolver has its own timeouts */
	connection_watch(connection);
	lookup->done = found;
	lookup->context = connection;
	if (connection->host.kind == NETWORK_NAME) {
		resolver_look_up(&connection->proxy->resolver, lookup,
				 connection->host.text);
		return;
	}
	lookup->addresses[0] = connection->host;
	lookup->count = 1;
	found(lookup, "");
}
