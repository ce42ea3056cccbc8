/* network: reads names, addresses, ports and entries, and searches a list of entries. */
#include "policy/network.h"

#include "base/hash.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	LABEL_MAX = 63,  /* RFC 1035 */
	PORT_DIGITS = 5, /* 65535 */
	QUOTED = 80,     /* bytes of a wrong host in a sentence */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool network_parse_port(struct str text, uint16_t *port)
{
	unsigned value = 0;

	if (text.size == 0 || text.size > PORT_DIGITS || text.data[0] == '0')
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (!is_digit(text.data[i]))
			return false;
		value = value * 10 + (unsigned)(text.data[i] - '0');
	}
	if (value > UINT16_MAX)
		return false;
	*port = (uint16_t)value;
	return true;
}

static bool label_check(struct str label, struct err *err)
{
	if (label.size == 0)
		return err_set(err, EINVAL,
			       "a host name has no empty label: no dot at its ends, no two in a "
			       "row");
	if (label.size > LABEL_MAX)
		return err_set(err, EINVAL,
			       "a label of a host name has at most %d letters", LABEL_MAX);
	if (label.data[0] == '-' || label.data[label.size - 1] == '-')
		return err_set(err, EINVAL,
			       "a label of a host name neither begins nor ends with '-'");
	for (size_t i = 0; i < label.size; i++) {
		char c = label.data[i];

		if (c == '*')
			return err_set(err, EINVAL,
				       "'*' stands only in front: \"*.example.org\"");
		if ((unsigned char)c >= 0x80)
			return err_set(err, EINVAL,
				       "a host name is ASCII: write an international one in "
				       "its xn-- form");
		if (!is_digit(c) && !is_letter(c) && c != '-')
			return err_set(err, EINVAL,
				       "a host name is made of letters, digits, '-' and dots");
	}
	return true;
}

/*
 * Some programs take any name whose last part is a number for an address (URL Standard,
 * "ends in a number checker"). Here only the plain form is an address.
 */
static bool ends_in_number(struct str label)
{
	bool hex = label.size >= 2 && label.data[0] == '0' &&
		   (label.data[1] == 'x' || label.data[1] == 'X');
	bool digits = true;

	for (size_t i = 0; i < label.size; i++)
		digits = digits && is_digit(label.data[i]);
	return digits || hex;
}

static bool parse_ipv4(struct str text, struct network_host *host, struct err *err)
{
	char number[INET_ADDRSTRLEN];

	if (text.size < sizeof(number)) {
		memcpy(number, text.data, text.size);
		number[text.size] = '\0';
		if (inet_pton(AF_INET, number, host->address) == 1) {
			host->kind = NETWORK_IPV4;
			memcpy(host->text, number, text.size + 1);
			return true;
		}
	}
	return err_set(err, EINVAL,
		       "an IPv4 address is four decimal numbers from 0 to 255 with dots "
		       "between them and no zeros in front");
}

static bool parse_ipv6(struct str text, struct network_host *host, struct err *err)
{
	char number[INET6_ADDRSTRLEN];

	if (text.size > 0 && text.size < sizeof(number) &&
	    memchr(text.data, '\0', text.size) == NULL) {
		memcpy(number, text.data, text.size);
		number[text.size] = '\0';
		if (inet_pton(AF_INET6, number, host->address) == 1 &&
		    inet_ntop(AF_INET6, host->address, host->text, sizeof(host->text))) {
			host->kind = NETWORK_IPV6;
			return true;
		}
	}
	return err_set(err, EINVAL,
		       "what stands in brackets is an IPv6 address without a zone");
}

static bool parse_name(struct str text, struct network_host *host, struct err *err)
{
	struct str rest = text, label = {0};

	if (text.size == 0)
		return err_set(err, EINVAL, "the host is empty");
	if (text.size > NETWORK_NAME_MAX)
		return err_set(err, EINVAL, "a host name has at most %d letters",
			       NETWORK_NAME_MAX);
	for (bool more = true; more;) {
		size_t end = str_find(rest, STR("."), 0);

		more = end != (size_t)-1;
		label = str_part(rest, 0, more ? end : rest.size);
		if (!label_check(label, err))
			return false;
		if (more)
			rest = str_part(rest, end + 1, rest.size);
	}
	if (ends_in_number(label))
		return parse_ipv4(text, host, err);
	host->kind = NETWORK_NAME;
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];
		host->text[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	host->text[text.size] = '\0';
	return true;
}

bool network_parse_host(struct str text, struct network_host *host, struct err *err)
{
	struct network_host read = {0};
	bool ok;

	if (text.size > 0 && text.data[0] == '[') {
		if (text.data[text.size - 1] != ']')
			return err_set(err, EINVAL, "the bracket is not closed");
		ok = parse_ipv6(str_part(text, 1, text.size - 2), &read, err);
	} else {
		ok = parse_name(text, &read, err);
	}
	if (ok)
		*host = read;
	return ok;
}

/*
 * The offset of the colon before the port: behind a bracket, or the first one; SIZE
 * when there is none.
 */
static size_t find_colon(struct str text)
{
	size_t from = 0;

	if (text.size > 0 && text.data[0] == '[') {
		size_t end = str_find(text, STR("]"), 0);
		from = end == (size_t)-1 ? text.size : end;
	}
	size_t colon = str_find(text, STR(":"), from);
	return colon == (size_t)-1 ? text.size : colon;
}

bool network_parse_authority(struct str text, uint16_t default_port,
			     struct network_host *host, uint16_t *port, struct err *err)
{
	size_t colon = find_colon(text);
	struct str behind =
		str_part(text, colon < text.size ? colon + 1 : colon, text.size);
	uint16_t number = default_port;

	if (memchr(text.data != NULL ? text.data : "", '@', text.size) != NULL)
		return err_set(err, EINVAL, "no user name stands in front of a host");
	if (colon == text.size && default_port == 0)
		return err_set(err, EINVAL, "the port is missing: write host:port");
	if (colon < text.size && text.data[0] != '[' &&
	    str_find(behind, STR(":"), 0) != (size_t)-1)
		return err_set(err, EINVAL, "an IPv6 address stands in brackets");
	if (colon < text.size && !network_parse_port(behind, &number))
		return err_set(err, EINVAL,
			       "a port is a number from 1 to 65535 without zeros in front");
	if (!network_parse_host(str_part(text, 0, colon), host, err))
		return false;
	*port = number;
	return true;
}

bool network_parse_entry(struct str text, struct network_entry *entry, struct err *err)
{
	static const struct str scheme = STR("tcp://");
	struct network_entry read = {0};
	struct str rest = text;

	read.carried = str_starts(text, scheme);
	if (read.carried)
		rest = str_part(text, scheme.size, text.size);
	else if (str_find(text, STR("://"), 0) != (size_t)-1)
		return err_set(err, EINVAL,
			       "an entry is a host, not a URL: host, host:port, *.suffix or "
			       "tcp://host:port");
	if (str_find(rest, STR("/"), 0) != (size_t)-1)
		return err_set(err, EINVAL, "an entry has no path");
	read.suffix = str_starts(rest, STR("*."));
	if (str_is(rest, "*"))
		return err_set(err, EINVAL,
			       "name the hosts: there is no entry for all of them");
	if (read.suffix && read.carried)
		return err_set(err, EINVAL, "tcp:// leads to one host, not to a suffix");
	if (read.suffix)
		rest = str_part(rest, 2, rest.size);
	read.ported = network_parse_authority(rest, 0, &read.host, &read.port, NULL);
	if (!read.ported &&
	    !network_parse_authority(rest, read.carried ? 0 : NETWORK_PORT_TLS,
				     &read.host, &read.port, err))
		return false;
	if (read.suffix && read.host.kind != NETWORK_NAME)
		return err_set(err, EINVAL, "behind *. stands a name, not an address");
	if (!read.carried && strcmp(read.host.text, "localhost") == 0)
		return err_set(err, EINVAL,
			       "localhost is the cell's own in there; for a service of this "
			       "machine write tcp://localhost:PORT");
	*entry = read;
	return true;
}

char *network_print(const struct network_host *host, uint16_t port,
		    char text[NETWORK_TEXT_MAX])
{
	bool brackets = host->kind == NETWORK_IPV6;

	(void)snprintf(text, NETWORK_TEXT_MAX, "%s%s%s:%u", brackets ? "[" : "",
		       host->text, brackets ? "]" : "", port);
	return text;
}

char *network_print_entry(const struct network_host *host, uint16_t port,
			  char text[NETWORK_TEXT_MAX])
{
	(void)network_print(host, port, text);
	if (port == NETWORK_PORT_TLS)
		*strrchr(text, ':') = '\0';
	return text;
}

char *network_print_remedy(const char *entry, char text[NETWORK_REMEDY_MAX])
{
	(void)snprintf(text, NETWORK_REMEDY_MAX,
		       "add \"%s\"" NETWORK_REMEDY_KEY "--allow-host %s", entry, entry);
	return text;
}

bool network_same_host(const struct network_host *a, const struct network_host *b)
{
	return a->kind == b->kind && strcmp(a->text, b->text) == 0;
}

static bool is_below(const char *name, const char *suffix)
{
	size_t long_size = strlen(name), size = strlen(suffix);

	return long_size > size + 1 && name[long_size - size - 1] == '.' &&
	       strcmp(name + long_size - size, suffix) == 0;
}

const struct network_entry *network_find(const struct network_entry *entries, size_t count,
					 const struct network_host *host, uint16_t port)
{
	for (size_t i = 0; i < count; i++) {
		const struct network_entry *entry = &entries[i];

		if (entry->carried || entry->port != port)
			continue;
		if (entry->suffix ? host->kind == NETWORK_NAME &&
					    is_below(host->text, entry->host.text)
				  : network_same_host(&entry->host, host))
			return entry;
	}
	return NULL;
}

bool network_covers(const struct network_entry *entry, const struct network_entry *part)
{
	bool same = network_same_host(&entry->host, &part->host);

	if (entry->carried != part->carried || entry->port != part->port)
		return false;
	if (!entry->suffix)
		return same && !part->suffix;
	return part->host.kind == NETWORK_NAME &&
	       ((same && part->suffix) || is_below(part->host.text, entry->host.text));
}

bool network_check_ports(const struct network_entry *entries, size_t count, struct err *err)
{
	size_t carried = 0;

	for (size_t i = 0; i < count; i++) {
		if (!entries[i].carried)
			continue;
		if (++carried > NETWORK_CARRIED_MAX)
			return err_set(err, E2BIG, "at most %d entries are tcp:// ones",
				       NETWORK_CARRIED_MAX);
		for (size_t j = 0; j < i; j++) {
			if (entries[j].carried && entries[j].port == entries[i].port &&
			    !network_same_host(&entries[j].host, &entries[i].host))
				return err_set(err, EINVAL,
					       "tcp://%.*s:%u and tcp://%.*s:%u want one "
					       "port of the cell's loopback",
					       QUOTED, entries[j].host.text,
					       entries[j].port, QUOTED,
					       entries[i].host.text, entries[i].port);
		}
	}
	return true;
}

/*
 * Services that trust each process that can reach them, because the loopback is their only
 * door.
 */
static const struct {
	uint16_t first, last;
	const char *harm;
} handing_over[] = {
	{2375, 2376, "starts containers with the rights of root (Docker)"},
	{5037, 5037, "works the phones that are connected (adb)"},
	{6000, 6063, "reads every key and draws on the screen (X11)"},
	{9222, 9222, "is the person in the browser (Chrome's debugger)"},
	{9229, 9229, "runs code outside (Node's debugger)"},
};

bool network_is_loopback(const struct network_host *host)
{
	static const unsigned char six[NETWORK_ADDRESS] = {[NETWORK_ADDRESS - 1] = 1};

	switch (host->kind) {
	case NETWORK_NAME:
		return strcmp(host->text, "localhost") == 0;
	case NETWORK_IPV4:
		return host->address[0] == 127;
	case NETWORK_IPV6:
		break;
	}
	return memcmp(host->address, six, sizeof(six)) == 0;
}

const char *network_hands_over(const struct network_entry *entry)
{
	if (entry->suffix || !network_is_loopback(&entry->host))
		return NULL;
	for (size_t i = 0; i < sizeof(handing_over) / sizeof(handing_over[0]); i++) {
		if (entry->port >= handing_over[i].first &&
		    entry->port <= handing_over[i].last)
			return handing_over[i].harm;
	}
	return NULL;
}

/* Ports of the cell that this machine reaches. */

static bool parse_publish_ports(struct str text, struct network_publish *publish)
{
	const size_t colon = str_find(text, STR(":"), 0);

	if (colon == (size_t)-1) {
		if (!network_parse_port(text, &publish->port))
			return false;
		publish->host_port = publish->port;
		return true;
	}
	const struct str outside = str_part(text, 0, colon);
	return (str_is(outside, "0") || network_parse_port(outside, &publish->host_port)) &&
	       network_parse_port(str_part(text, colon + 1, text.size), &publish->port);
}

/* Take "ADDRESS:" off REST, when it begins with an address. */
static bool parse_publish_address(struct str *rest, struct network_publish *publish,
				  struct err *err)
{
	const size_t colon = find_colon(*rest);
	const struct str first = str_part(*rest, 0, colon);

	if (str_find(first, STR("."), 0) == (size_t)-1 && !str_starts(first, STR("[")))
		return true;
	if (!network_parse_host(first, &publish->address, err))
		return false;
	if (publish->address.kind == NETWORK_NAME)
		return err_set(err, EINVAL,
			       "an address to listen on stands in numbers, not as a name");
	if (strcmp(publish->address.text, "127.0.0.1") != 0)
		publish->at = LISTENS_ADDRESS;
	*rest = str_part(*rest, colon < rest->size ? colon + 1 : colon, rest->size);
	return true;
}

bool network_parse_publish(struct str text, struct network_publish *publish, struct err *err)
{
	static const struct str own = STR("own:");
	struct network_publish read = {.at = LISTENS_LOOPBACK};
	struct str rest = text;

	(void)parse_ipv4(STR("127.0.0.1"), &read.address, err);
	if (str_starts(text, own)) {
		read.at = LISTENS_OWN;
		read.address = (struct network_host){0};
		rest = str_part(text, own.size, text.size);
	} else if (!parse_publish_address(&rest, &read, err)) {
		return false;
	}
	if (!parse_publish_ports(rest, &read))
		return err_set(err, EINVAL,
			       "a published port is [own:|ADDRESS:][HOST:]PORT: numbers from 1 "
			       "to 65535, and HOST may be 0 for any free port");
	*publish = read;
	return true;
}

static bool same_listener(const struct network_publish *a, const struct network_publish *b)
{
	return a->at == b->at && a->host_port == b->host_port &&
	       (a->at == LISTENS_OWN || network_same_host(&a->address, &b->address));
}

bool network_same_publish(const struct network_publish *a, const struct network_publish *b)
{
	return same_listener(a, b) && a->port == b->port;
}

bool network_check_publish(const struct network_publish *entries, size_t count,
			   struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < i; j++) {
			if (entries[i].host_port != 0 &&
			    same_listener(&entries[i], &entries[j]))
				return err_set(err, EINVAL,
					       "two entries want port %u outside: write "
					       "HOST:PORT in one of them",
					       entries[i].host_port);
		}
	}
	return true;
}

void network_own_address(const char *workspace, struct network_host *address)
{
	uint8_t digest[HASH_BYTES];
	char text[INET_ADDRSTRLEN];

	hash_bytes(str_of(workspace), digest);
	/*
	 * 127.0.0.0/16 is left out, because other programs choose their addresses there.
	 */
	(void)snprintf(text, sizeof(text), "127.%d.%d.%d", 1 + digest[0] % 254, digest[1],
		       1 + digest[2] % 254);
	(void)network_parse_host(str_of(text), address, NULL);
}

struct network_said network_find_url(struct str text, const char *host)
{
	const struct str name = str_of(host), mark = STR("://");

	for (size_t at = 0; (at = str_find(text, mark, at)) != (size_t)-1; at++) {
		struct str behind = str_part(text, at + mark.size, SIZE_MAX);
		struct network_said said = {
			.plain = str_ends(str_part(text, 0, at), STR("http"))};
		size_t digits = 1;

		if (!str_starts(behind, name))
			continue;
		behind = str_part(behind, name.size, SIZE_MAX);
		if (behind.size > 0 && behind.data[0] == ':') {
			while (digits < behind.size && behind.data[digits] >= '0' &&
			       behind.data[digits] <= '9')
				digits++;
			if (network_parse_port(str_part(behind, 1, digits - 1), &said.port))
				return said;
		} else if (behind.size == 0 ||
			   strchr("/ ?#'\"\\,;)\n", behind.data[0]) != NULL) {
			said.port = said.plain ? NETWORK_PORT_HTTP : NETWORK_PORT_TLS;
			return said;
		}
	}
	return (struct network_said){0};
}
