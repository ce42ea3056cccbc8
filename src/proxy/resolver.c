/* resolver: questions, their repetition, and the search of suffixes. */
#include "proxy/resolver.h"

#include "base/clock.h"
#include "base/fd.h"
#include "proxy/connection.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	TRY_MS = 2000,    /* a working server answers in a tenth of this time */
	ROUNDS = 2,       /* a datagram may be lost once */
	STRANGE_MAX = 32, /* a sender of so many is guessing query numbers */
	LENGTH = 2,       /* in front of a message over TCP */
};

static void query_ask(struct query *query);

static void query_stop(struct query *query)
{
	struct poller *poller = query->lookup->resolver->poller;

	poller_remove(poller, &query->source);
	poller_remove_moment(&query->moment);
	fd_close(&query->source.fd);
}

static void lookup_stop(struct lookup *lookup)
{
	for (size_t i = 0; i < 2; i++) {
		query_stop(&lookup->queries[i]);
		buf_fini(&lookup->queries[i].bytes);
	}
	lookup->active = false;
}

void resolver_cancel(struct lookup *lookup)
{
	if (lookup->active)
		lookup_stop(lookup);
}

static bool lookup_begin(struct lookup *lookup);

/*
 * When both questions have ended: collect the addresses, or try the next suffix, or give
 * up.
 */
static void lookup_step(struct lookup *lookup)
{
	bool failed = false;

	if (!lookup->queries[0].ended || !lookup->queries[1].ended)
		return;
	for (size_t i = 0; i < 2; i++) {
		const struct query *query = &lookup->queries[i];

		failed = failed || query->failed;
		for (size_t j = 0; j < query->addresses.count; j++)
			address_make(&lookup->addresses[lookup->count++],
				     query->type == DNS_A ? NETWORK_IPV4 : NETWORK_IPV6,
				     query->addresses.bytes[j]);
	}
	lookup_stop(lookup);
	if (lookup->count == 0 && lookup_begin(lookup))
		return;
	lookup->done(lookup, failed ? "no name server could say where it is"
				    : "no name server knows it");
}

static void query_end(struct query *query, bool failed)
{
	query_stop(query);
	query->ended = true;
	query->failed = failed;
	lookup_step(query->lookup);
}

static void query_take(struct query *query, struct str message)
{
	switch (dns_read_answer(message, query->lookup->name, query->type, query->id,
				&query->addresses)) {
	case DNS_FOUND:
		query_end(query, false);
		return;
	case DNS_CUT:
		if (!query->tcp) {
			query->tcp = true;
			query->asked--; /* the same server once more */
		}
		break;
	case DNS_FAILED:
		break;
	case DNS_STRANGE:
		if (!query->tcp && ++query->strange < STRANGE_MAX)
			return; /* the real answer may still come */
		break;
	}
	query_ask(query);
}

static void tcp_ready(struct query *query)
{
	struct buf *bytes = &query->bytes;
	ssize_t n;

	if (!query->sent) {
		n = send(query->source.fd, bytes->data, bytes->size, MSG_NOSIGNAL);
		if (n != (ssize_t)bytes->size) {
			query_ask(query);
			return;
		}
		query->sent = true;
		buf_clear(bytes);
		if (!poller_want(query->lookup->resolver->poller, &query->source, EPOLLIN))
			query_ask(query);
		return;
	}
	char *room = buf_reserve(bytes, DNS_MESSAGE_MAX + LENGTH - bytes->size);
	n = room != NULL ? recv(query->source.fd, room,
				DNS_MESSAGE_MAX + LENGTH - bytes->size, 0)
			 : -1;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		query_ask(query);
		return;
	}
	buf_commit(bytes, (size_t)n);
	if (bytes->size < LENGTH)
		return;
	size_t size = (size_t)(unsigned char)bytes->data[0] << 8 |
		      (unsigned char)bytes->data[1];
	if (bytes->size >= size + LENGTH)
		query_take(query, str_part(buf_str(bytes), LENGTH, size));
}

static void query_ready(struct source *source, uint32_t events)
{
	struct query *query = source->context;
	char message[4096];

	(void)events;
	if (query->tcp) {
		tcp_ready(query);
		return;
	}
	ssize_t n = recv(source->fd, message, sizeof(message), 0);
	if (n >= 0)
		query_take(query, (struct str){message, (size_t)n});
	else if (errno != EAGAIN && errno != EINTR)
		query_ask(query); /* nobody there */
}

static void query_due(struct moment *moment)
{
	query_ask(moment->context);
}

static bool query_send(struct query *query)
{
	struct resolver *resolver = query->lookup->resolver;
	const struct names *names = &resolver->names;
	const struct network_host *server =
		&names->servers[(query->asked - 1) % names->server_count];
	unsigned char question[LENGTH + DNS_QUESTION_MAX];

	query->source.fd = socket_connect(server, names->port, query->tcp);
	if (query->source.fd < 0 || getrandom(&query->id, sizeof(query->id), 0) < 0)
		return false;
	size_t size = dns_print_question(query->lookup->name, query->type, query->id,
					 question + LENGTH);
	if (!query->tcp)
		return send(query->source.fd, question + LENGTH, size, MSG_NOSIGNAL) ==
			       (ssize_t)size &&
		       poller_want(resolver->poller, &query->source, EPOLLIN);
	question[0] = (unsigned char)(size >> 8);
	question[1] = (unsigned char)size;
	query->sent = false;
	buf_clear(&query->bytes);
	return buf_add(&query->bytes, question, size + LENGTH) &&
	       poller_want(resolver->poller, &query->source, EPOLLOUT);
}

/* Ask the next server. After the last round QUERY has failed. */
static void query_ask(struct query *query)
{
	struct resolver *resolver = query->lookup->resolver;

	for (;;) {
		query_stop(query);
		if (query->asked++ >= ROUNDS * resolver->names.server_count) {
			query_end(query, true);
			return;
		}
		query->moment.due_ms = clock_now_ms() + TRY_MS;
		poller_add_moment(resolver->poller, &query->moment);
		if (query_send(query))
			return;
	}
}

/* The next name to be asked. False when there is none left. */
static bool lookup_name(struct lookup *lookup)
{
	const struct names *names = &lookup->resolver->names;
	/* As with `ndots:1`: a name with a dot is complete. */
	size_t suffixes = strchr(lookup->wanted, '.') == NULL ? names->search_count : 0;
	size_t size = strlen(lookup->wanted);

	for (; lookup->suffix < suffixes; lookup->suffix++) {
		const char *suffix = names->search[lookup->suffix];
		size_t more = strlen(suffix);
		if (size + 1 + more > NETWORK_NAME_MAX)
			continue;
		memcpy(lookup->name, lookup->wanted, size);
		lookup->name[size] = '.';
		memcpy(lookup->name + size + 1, suffix, more + 1);
		lookup->suffix++;
		return true;
	}
	if (lookup->suffix > suffixes)
		return false;
	lookup->suffix = suffixes + 1;
	memcpy(lookup->name, lookup->wanted, size + 1);
	return true;
}

static bool lookup_begin(struct lookup *lookup)
{
	static const enum dns_type types[] = {DNS_A, DNS_AAAA};

	if (!lookup_name(lookup))
		return false;
	lookup->active = true;
	for (size_t i = 0; i < 2; i++) {
		struct query *query = &lookup->queries[i];

		*query = (struct query){.lookup = lookup, .type = types[i]};
		query->source =
			(struct source){.fd = -1, .ready = query_ready, .context = query};
		query->moment = (struct moment){.due_ms = CLOCK_NEVER,
						.due = query_due,
						.context = query};
		buf_init(&query->bytes, DNS_MESSAGE_MAX + LENGTH);
	}
	query_ask(&lookup->queries[0]);
	/* The first question may have failed already, but lookup_step waits for both. */
	query_ask(&lookup->queries[1]);
	return true;
}

static void add_address(struct lookup *lookup, const struct network_host *address)
{
	if (lookup->count < RESOLVER_ADDRESSES_MAX)
		lookup->addresses[lookup->count++] = *address;
}

/* Find the addresses that are known without a server. */
static bool known_here(struct lookup *lookup)
{
	static const unsigned char one[] = {127, 0, 0, 1};
	static const unsigned char six[NETWORK_ADDRESS] = {[15] = 1};
	const struct names *names = &lookup->resolver->names;
	struct network_host address;

	for (size_t i = 0; i < names->host_count; i++) {
		if (strcmp(names->hosts[i].name, lookup->wanted) == 0)
			add_address(lookup, &names->hosts[i].address);
	}
	/* A server is never asked for this name (RFC 6761, section 6.3). */
	if (lookup->count == 0 && strcmp(lookup->wanted, "localhost") == 0) {
		address_make(&address, NETWORK_IPV4, one);
		add_address(lookup, &address);
		address_make(&address, NETWORK_IPV6, six);
		add_address(lookup, &address);
	}
	return lookup->count > 0;
}

void resolver_look_up(struct resolver *resolver, struct lookup *lookup, const char *name)
{
	lookup->resolver = resolver;
	lookup->count = 0;
	lookup->suffix = 0;
	memcpy(lookup->wanted, name, strlen(name) + 1);
	lookup->local = known_here(lookup);
	if (lookup->local)
		lookup->done(lookup, "");
	else
		(void)lookup_begin(lookup);
}
