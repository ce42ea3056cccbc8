/* address: the parts of an address, from left to right. */

#include "policy/address.h"

#include "base/err.h"
#include "base/str.h"
#include "base/text/text.h"
#include "policy/network.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum {
	PORT_MIN = 1024, /* lower ones belong to services of the machine */
	REDIRECT_MAX = 512,
};

/*
 * Does TEXT consist of the characters that RFC 3986 lets stand in an address, with "%" and
 * the brackets? Browsers read others in different ways, or drop them.
 */
static bool is_printable(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		const char c = text.data[i];

		if (c <= ' ' || c > '~' || strchr("\"<>\\^`{|}", c) != NULL)
			return false;
	}
	return true;
}

/* Put TEXT without its percent-encoding into OUT. Returns the size; 0: it is none. */
static size_t decode(struct str text, char out[REDIRECT_MAX])
{
	size_t size = 0;

	while (text.size > 0) {
		if (size == REDIRECT_MAX || !text_percent_take(&text, &out[size++]))
			return 0;
	}
	return size;
}

/* The port of TEXT, "http://localhost:PORT/…" or of 127.0.0.1; 0: it is no such address. */
static uint16_t port_of(struct str text)
{
	static const char *const beginnings[] = {"http://localhost:", "http://127.0.0.1:"};

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++) {
		const size_t size = strlen(beginnings[i]);
		struct str rest = str_part(text, size, text.size);
		uint16_t port = 0;
		size_t digits = 0;

		if (!str_starts_caseless(text, beginnings[i]))
			continue;
		while (digits < rest.size && rest.data[digits] >= '0' &&
		       rest.data[digits] <= '9')
			digits++;
		if (digits < rest.size && (rest.data[digits] == '\0' ||
					   strchr("/?#", rest.data[digits]) == NULL))
			return 0;
		return network_parse_port(str_part(rest, 0, digits), &port) && port >= PORT_MIN
			       ? port
			       : 0;
	}
	return 0;
}

/* The port to which the only redirect_uri of QUERY leads; 0: there is none. */
static uint16_t back_of(struct str query)
{
	static const struct str name = STR("redirect_uri=");
	char decoded[REDIRECT_MAX];
	uint16_t back = 0;
	unsigned count = 0;

	while (query.size > 0) {
		const char *end = memchr(query.data, '&', query.size);
		const size_t size = end != NULL ? (size_t)(end - query.data) : query.size;
		const struct str part = str_part(query, 0, size);

		if (str_starts(part, name)) {
			const size_t whole =
				decode(str_part(part, name.size, part.size), decoded);

			back = port_of((struct str){decoded, whole});
			count++;
		}
		query = str_part(query, size + (end != NULL), query.size);
	}
	return count == 1 ? back : 0;
}

/* The offset of the first of CHARACTERS in TEXT; its size: there is none. */
static size_t find_any(struct str text, const char *characters)
{
	size_t at = 0;

	while (at < text.size && strchr(characters, text.data[at]) == NULL)
		at++;
	return at;
}

bool address_parse(struct str text, struct address *address, struct err *err)
{
	const bool is_plain = str_starts_caseless(text, "http://");
	struct str rest, authority;
	size_t at;

	*address = (struct address){.plain = is_plain};
	if (text.size > ADDRESS_MAX)
		return err_set(err, E2BIG, "the address has more than %d bytes",
			       ADDRESS_MAX);
	if (!is_plain && !str_starts_caseless(text, "https://"))
		return err_set(err, EPROTONOSUPPORT,
			       "only addresses that begin with http:// or https:// are opened");
	if (!is_printable(text))
		return err_set(err, EILSEQ,
			       "the address has characters that do not belong there; they are "
			       "written as %%XX, and a host in its ASCII form (xn--…)");
	rest = str_part(text, is_plain ? 7 : 8, text.size);
	authority = str_part(rest, 0, find_any(rest, "/?#"));
	if (memchr(authority.data, '@', authority.size) != NULL)
		return err_set(err, EINVAL,
			       "the address has a user name, which looks like a host");
	if (!network_parse_authority(authority,
				     is_plain ? NETWORK_PORT_HTTP : NETWORK_PORT_TLS,
				     &address->host, &address->port, err))
		return err_while(err, "the host of the address");
	memcpy(address->text, text.data, text.size);
	at = find_any(rest, "?#");
	if (at < rest.size && rest.data[at] == '?') {
		rest = str_part(rest, at + 1, rest.size);
		address->back = back_of(str_part(rest, 0, find_any(rest, "#")));
	}
	return true;
}
