/* resolver: sends questions, repeats them, and searches suffixes. */

#include "proxy/resolver.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "policy/network.h"
#include "process/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	TRY_MS = 2000,    /* a working server answers in a tenth of this time */
	ROUNDS = 2,       /* a datagram may be lost once */
	STRANGE_MAX = 32, /* a sender of more wrong answers is guessing query numbers */
	LENGTH = 2,       /* in front of a message over TCP */
};

/* An address as the kernel wants it. */
union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static socklen_t address_fill(const struct network_host *host, uint16_t port,
			      union address *address)
{
	memset(address, 0, sizeof(*address));
	if (host->kind == NETWORK_IPV4) {
		address->four.sin_family = AF_INET;
		address->four.sin_port = htons(port);
		memcpy(&address->four.sin_addr, host->address, 4);
		return sizeof(address->four);
	}
	address->six.sin6_family = AF_INET6;
	address->six.sin6_port = htons(port);
	memcpy(&address->six.sin6_addr, host->address, NETWORK_ADDRESS);
	return sizeof(address->six);
}

int resolver_connect(const struct network_host *host, uint16_t port, bool stream)
{
	union address address;
	socklen_t size = address_fill(host, port, &address);
	const int yes = 1;
	auto_close int fd =
		socket(address.any.sa_family,
		       (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0);

	if (fd < 0)
		return -1;
	/* Small messages of a protocol must not wait for each other. */
	if (stream)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (connect(fd, &address.any, size) < 0 && errno != EINPROGRESS)
		return -1;
	return fd_take(&fd);
}

static void query_ask(struct query *query);

static void query_stop(struct query *query)
{
	loop_remove(&query->watch);
	loop_remove_timer(&query->timer);
	fd_close(&query->watch.fd);
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

/* HOST becomes the address BYTES (4 or 16, by KIND). */
static void address_make(struct network_host *host, enum network_kind kind,
			 const unsigned char *bytes)
{
	*host = (struct network_host){.kind = kind};
	memcpy(host->address, bytes, kind == NETWORK_IPV4 ? 4 : NETWORK_ADDRESS);
	(void)inet_ntop(kind == NETWORK_IPV4 ? AF_INET : AF_INET6, host->address,
			host->text, sizeof(host->text));
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
	switch (resolver_dns_read_answer(message, query->lookup->name, query->type,
					 query->id, &query->addresses)) {
	case DNS_FOUND:
		query_end(query, false);
		return;
	case DNS_CUT:
		if (!query->tcp) {
			query->tcp = true;
			query->asked--; /* ask the same server again */
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
		n = send(query->watch.fd, bytes->data, bytes->size, MSG_NOSIGNAL);
		if (n != (ssize_t)bytes->size) {
			query_ask(query);
			return;
		}
		query->sent = true;
		buf_clear(bytes);
		if (!loop_want(query->lookup->resolver->loop, &query->watch, POLLIN))
			query_ask(query);
		return;
	}
	char *room = buf_reserve(bytes, DNS_MESSAGE_MAX + LENGTH - bytes->size);
	n = room != NULL
		    ? recv(query->watch.fd, room, DNS_MESSAGE_MAX + LENGTH - bytes->size, 0)
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

static void query_ready(struct watch *watch, short events)
{
	struct query *query = watch->context;
	char message[4096];

	(void)events;
	if (query->tcp) {
		tcp_ready(query);
		return;
	}
	ssize_t n = recv(watch->fd, message, sizeof(message), 0);
	if (n >= 0)
		query_take(query, (struct str){message, (size_t)n});
	else if (errno != EAGAIN && errno != EINTR)
		query_ask(query); /* nobody there */
}

static void query_due(struct timer *timer)
{
	query_ask(timer->context);
}

static bool query_send(struct query *query)
{
	struct resolver *resolver = query->lookup->resolver;
	const struct names *names = &resolver->names;
	const struct network_host *server =
		&names->servers[(query->asked - 1) % names->server_count];
	unsigned char question[LENGTH + DNS_QUESTION_MAX];

	query->watch.fd = resolver_connect(server, names->port, query->tcp);
	if (query->watch.fd < 0 || getrandom(&query->id, sizeof(query->id), 0) < 0)
		return false;
	size_t size = resolver_dns_print_question(query->lookup->name, query->type,
						  query->id, question + LENGTH);
	if (!query->tcp)
		return send(query->watch.fd, question + LENGTH, size, MSG_NOSIGNAL) ==
			       (ssize_t)size &&
		       loop_want(resolver->loop, &query->watch, POLLIN);
	question[0] = (unsigned char)(size >> 8);
	question[1] = (unsigned char)size;
	query->sent = false;
	buf_clear(&query->bytes);
	return buf_add(&query->bytes, question, size + LENGTH) &&
	       loop_want(resolver->loop, &query->watch, POLLOUT);
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
		query->timer.due_ms = clock_now_ms() + TRY_MS;
		loop_add_timer(resolver->loop, &query->timer);
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
		query->watch =
			(struct watch){.fd = -1, .ready = query_ready, .context = query};
		query->timer = (struct timer){.due_ms = CLOCK_NEVER,
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

/* Prints one question and reads one answer. Each read checks its offset first. */

enum {
	HEADER = 12,
	CLASS_IN = 1,
	TYPE_CNAME = 5,
	FLAG_ANSWER = 0x8000,
	FLAG_OPCODE = 0x7800,
	FLAG_CUT = 0x0200,
	FLAG_WANTED = 0x0100, /* recursion */
	CODE = 0x000f,
	CODE_NO_NAME = 3,
	POINTER = 0xc0,
	HOPS_MAX = 64,     /* pointers in one name */
	RECORDS_MAX = 128, /* the most records of an answer that are read */
	ALIASES_MAX = 16,
	NAME_TEXT = 256,
};

static void put(unsigned char *out, size_t *at, unsigned value)
{
	out[(*at)++] = (unsigned char)(value >> 8);
	out[(*at)++] = (unsigned char)value;
}

size_t resolver_dns_print_question(const char *name, enum dns_type type, uint16_t id,
				   unsigned char out[DNS_QUESTION_MAX])
{
	size_t at = 0;

	put(out, &at, id);
	put(out, &at, FLAG_WANTED);
	put(out, &at, 1);
	put(out, &at, 0);
	put(out, &at, 0);
	put(out, &at, 0);
	while (*name != '\0') {
		size_t length = strcspn(name, ".");

		out[at++] = (unsigned char)length;
		memcpy(out + at, name, length);
		at += length;
		name += length + (name[length] == '.');
	}
	out[at++] = 0;
	put(out, &at, type);
	put(out, &at, CLASS_IN);
	return at;
}

struct reader {
	struct str message;
	size_t at;
	bool broken;
};

static unsigned take(struct reader *reader, size_t bytes)
{
	unsigned value = 0;

	if (reader->broken || reader->message.size - reader->at < bytes) {
		reader->broken = true;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | (unsigned char)reader->message.data[reader->at++];
	return value;
}

static void skip(struct reader *reader, size_t bytes)
{
	if (reader->broken || reader->message.size - reader->at < bytes)
		reader->broken = true;
	else
		reader->at += bytes;
}

/* Read a name as text with dots. Pointers must lead strictly backwards. */
static void take_name(struct reader *reader, char text[NAME_TEXT])
{
	struct reader here = *reader;
	size_t used = 0, behind = 0, lowest = reader->at;

	for (int hops = 0; !here.broken;) {
		unsigned length = take(&here, 1);

		if (length == 0)
			break;
		if ((length & POINTER) == POINTER) {
			size_t to = (length & ~(unsigned)POINTER) << 8 | take(&here, 1);
			if (behind == 0)
				behind = here.at;
			here.broken = here.broken || to >= lowest || ++hops > HOPS_MAX;
			lowest = to;
			here.at = to;
			continue;
		}
		if (length > 63 || used + length + 2 > NAME_TEXT ||
		    here.message.size - here.at < length) {
			here.broken = true;
			break;
		}
		if (used > 0)
			text[used++] = '.';
		memcpy(text + used, here.message.data + here.at, length);
		/*
		 * Replace a dot or NUL inside a label by a byte that no host name has. So
		 * one label "a.b" is never taken for two.
		 */
		for (size_t i = used; i < used + length; i++)
			text[i] = text[i] == '.' || text[i] == '\0' ? '?' : text[i];
		used += length;
		here.at += length;
	}
	text[used] = '\0';
	reader->broken = here.broken;
	if (!here.broken)
		reader->at = behind != 0 ? behind : here.at;
}

struct record {
	char owner[NAME_TEXT];
	unsigned type, class;
	size_t size;
	size_t at; /* of its data */
};

static bool take_record(struct reader *reader, struct record *record)
{
	take_name(reader, record->owner);
	record->type = take(reader, 2);
	record->class = take(reader, 2);
	skip(reader, 4); /* time to live */
	record->size = take(reader, 2);
	record->at = reader->at;
	skip(reader, record->size);
	return !reader->broken;
}

/*
 * Follow the aliases that begin at NAME and replace NAME by the last one. False when an
 * alias is malformed or there are too many.
 */
static bool follow_aliases(const struct reader *answers, size_t count, char name[NAME_TEXT])
{
	for (int hops = 0; hops < ALIASES_MAX; hops++) {
		struct reader reader = *answers;
		struct record record;
		bool moved = false;

		for (size_t i = 0; i < count && !moved && take_record(&reader, &record);
		     i++) {
			if (record.type != TYPE_CNAME || record.class != CLASS_IN ||
			    strcasecmp(record.owner, name) != 0)
				continue;
			struct reader data = reader;
			data.at = record.at;
			take_name(&data, name);
			moved = !data.broken;
			if (data.broken)
				return false;
		}
		if (!moved)
			return true;
	}
	return false;
}

bool resolver_dns_read_question(struct str message, struct network_host *host)
{
	struct reader reader = {.message = message, .at = 2};
	char asked[NAME_TEXT];
	unsigned type;

	if (message.size < HEADER ||
	    (take(&reader, 2) & (FLAG_ANSWER | FLAG_OPCODE)) != 0 || take(&reader, 2) != 1)
		return false;
	skip(&reader, HEADER - 6);
	take_name(&reader, asked);
	type = take(&reader, 2);
	return take(&reader, 2) == CLASS_IN && !reader.broken &&
	       (type == DNS_A || type == DNS_AAAA) &&
	       network_parse_host(str_of(asked), host, NULL) && host->kind == NETWORK_NAME;
}

static bool check_question(struct reader *reader, const char *name, enum dns_type type,
			   uint16_t id, unsigned *flags, size_t *answers)
{
	char asked[NAME_TEXT];

	if (take(reader, 2) != id)
		return false;
	*flags = take(reader, 2);
	if ((*flags & FLAG_ANSWER) == 0 || (*flags & FLAG_OPCODE) != 0 ||
	    take(reader, 2) != 1)
		return false;
	*answers = take(reader, 2);
	skip(reader, 4);
	take_name(reader, asked);
	return take(reader, 2) == (unsigned)type && take(reader, 2) == CLASS_IN &&
	       !reader->broken && strcasecmp(asked, name) == 0;
}

enum dns_answer resolver_dns_read_answer(struct str message, const char *name,
					 enum dns_type type, uint16_t id,
					 struct dns_addresses *addresses)
{
	const size_t size = type == DNS_A ? 4 : NETWORK_ADDRESS;
	struct reader reader = {.message = message};
	struct dns_addresses found = {0};
	char end[NAME_TEXT];
	unsigned flags = 0;
	size_t count = 0;

	if (message.size < HEADER ||
	    !check_question(&reader, name, type, id, &flags, &count))
		return DNS_STRANGE;
	if ((flags & FLAG_CUT) != 0)
		return DNS_CUT;
	if ((flags & CODE) != 0 && (flags & CODE) != CODE_NO_NAME)
		return DNS_FAILED;
	if (count > RECORDS_MAX)
		count = RECORDS_MAX;
	memcpy(end, name, strlen(name) + 1);
	if ((flags & CODE) == CODE_NO_NAME || !follow_aliases(&reader, count, end))
		count = 0;
	for (size_t i = 0; i < count && found.count < DNS_ADDRESSES_MAX; i++) {
		struct record record;

		if (!take_record(&reader, &record))
			return DNS_STRANGE;
		if (record.type == (unsigned)type && record.class == CLASS_IN &&
		    record.size == size && strcasecmp(record.owner, end) == 0)
			memcpy(found.bytes[found.count++], message.data + record.at, size);
	}
	*addresses = found;
	return DNS_FOUND;
}

/*
 * Reads resolv.conf and hosts, two old formats. Lines that are not understood are
 * skipped, as other programs do.
 */

/* Few hosts are listed by the policy. A longer list of them is cut off here. */
enum { HOSTS_MAX = 4096 };

void names_init(struct names *names)
{
	*names = (struct names){.port = NETWORK_PORT_DNS};
}

void names_fini(struct names *names)
{
	free(names->hosts);
	names_init(names);
}

static bool parse_address(struct str text, struct network_host *host)
{
	char bracketed[NETWORK_TEXT_MAX];
	struct str whole = text;

	/* In these files an IPv6 address has no brackets. */
	if (memchr(text.data, ':', text.size) != NULL && text.size < sizeof(bracketed) - 2) {
		bracketed[0] = '[';
		memcpy(bracketed + 1, text.data, text.size);
		bracketed[text.size + 1] = ']';
		whole = (struct str){bracketed, text.size + 2};
	}
	return network_parse_host(whole, host, NULL) && host->kind != NETWORK_NAME;
}

/* Words are separated by blanks or tabs; # begins a comment. */
static bool next_word(struct str *rest, struct str *word)
{
	while (rest->size > 0 && strchr(" \t\r", rest->data[0]) != NULL &&
	       rest->data[0] != '\0')
		*rest = str_part(*rest, 1, rest->size);
	*word = (struct str){rest->data, 0};
	while (word->size < rest->size && strchr(" \t\r#", rest->data[word->size]) == NULL)
		word->size++;
	*rest = word->size < rest->size && rest->data[word->size] == '#'
			? (struct str){"", 0}
			: str_part(*rest, word->size, rest->size);
	return word->size > 0;
}

static void add_search(struct names *names, struct str words)
{
	struct network_host suffix;
	struct str word;

	names->search_count = 0; /* the last line counts */
	while (names->search_count < NAMES_SEARCH_MAX && next_word(&words, &word)) {
		if (str_ends(word, STR(".")))
			word.size--;
		if (network_parse_host(word, &suffix, NULL) && suffix.kind == NETWORK_NAME)
			memcpy(names->search[names->search_count++], suffix.text,
			       sizeof(suffix.text));
	}
}

void names_read_servers(struct names *names, struct str text)
{
	struct str line, word;

	while (str_next_line(&text, &line)) {
		if (!next_word(&line, &word))
			continue;
		if (str_is(word, "nameserver") &&
		    names->server_count < NAMES_SERVERS_MAX && next_word(&line, &word) &&
		    parse_address(word, &names->servers[names->server_count]))
			names->server_count++;
		else if (str_is(word, "search") || str_is(word, "domain"))
			add_search(names, line);
	}
	/* The default that resolv.conf(5) documents. */
	if (names->server_count == 0 && parse_address(STR("127.0.0.1"), &names->servers[0]))
		names->server_count = 1;
}

bool names_set_server(struct names *names, const char *text)
{
	struct network_host host;
	uint16_t port;

	if (!network_parse_authority(str_of(text), NETWORK_PORT_DNS, &host, &port, NULL) ||
	    host.kind == NETWORK_NAME)
		return false;
	names->servers[0] = host;
	names->port = port;
	names->server_count = 1;
	return true;
}

static bool is_listed(const char *name, const struct network_entry *entries, size_t count)
{
	struct network_host host = {.kind = NETWORK_NAME};

	memcpy(host.text, name, strlen(name) + 1);
	for (size_t i = 0; i < count; i++) {
		if (entries[i].carried
			    ? network_same_host(&entries[i].host, &host)
			    : network_find(&entries[i], 1, &host, entries[i].port) != NULL)
			return true;
	}
	return false;
}

void names_read_hosts(struct names *names, struct str text,
		      const struct network_entry *entries, size_t count)
{
	struct str line, word;

	while (str_next_line(&text, &line)) {
		struct network_host address, host;

		if (!next_word(&line, &word) || !parse_address(word, &address))
			continue;
		while (names->host_count < HOSTS_MAX && next_word(&line, &word)) {
			if (!network_parse_host(word, &host, NULL) ||
			    host.kind != NETWORK_NAME ||
			    !is_listed(host.text, entries, count))
				continue;
			names->hosts = memory_grow(names->hosts, names->host_count + 1,
						   sizeof(names->hosts[0]));
			struct names_host *added = &names->hosts[names->host_count++];
			memcpy(added->name, host.text, sizeof(added->name));
			added->address = address;
		}
	}
}

void names_load(struct names *names, const char *resolver,
		const struct network_entry *entries, size_t count)
{
	struct buf text;

	names_init(names);
	buf_init(&text, NAMES_FILE_MAX);
	if (resolver == NULL || !names_set_server(names, resolver)) {
		(void)fd_read_file("/etc/resolv.conf", NAMES_FILE_MAX, &text, NULL);
		names_read_servers(names, buf_str(&text));
	}
	buf_clear(&text);
	if (fd_read_file("/etc/hosts", NAMES_FILE_MAX, &text, NULL))
		names_read_hosts(names, buf_str(&text), entries, count);
	buf_fini(&text);
}
