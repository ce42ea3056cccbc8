/* http_check: see http_check.h. */
#include "mcp/server/http_check.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
	PORT_MAX = 65535,
	ADDRESS_MAX = 64,
	TOKEN_LEAST = 16, /* less can be guessed by asking */
	OTHERS = 077,     /* what a token's file grants to nobody */
};

static bool set_address(const char *name, uint16_t port, struct http_place *place)
{
	struct sockaddr_in *four = (struct sockaddr_in *)&place->address;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&place->address;

	memset(place, 0, sizeof(*place));
	if (inet_pton(AF_INET, name, &four->sin_addr) == 1) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		place->size = sizeof(*four);
		place->loopback = ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
		return true;
	}
	if (inet_pton(AF_INET6, name, &six->sin6_addr) != 1)
		return false;
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	place->size = sizeof(*six);
	place->loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
	return true;
}

/* HOST without its port and without the brackets of IPv6; *PORT is what follows, or empty. */
static struct str split_port(struct str host, struct str *port)
{
	size_t colon = (size_t)-1;

	*port = STR("");
	if (str_starts(host, STR("["))) {
		const size_t end = str_find(host, STR("]"), 0);

		if (end == (size_t)-1)
			return STR("");
		if (end + 1 < host.size && host.data[end + 1] == ':')
			*port = str_part(host, end + 2, host.size);
		else if (end + 1 < host.size)
			return STR("");
		return str_part(host, 1, end - 1);
	}
	for (size_t i = 0; i < host.size; i++) {
		if (host.data[i] == ':')
			colon = i;
	}
	if (colon == (size_t)-1)
		return host;
	*port = str_part(host, colon + 1, host.size);
	return str_part(host, 0, colon);
}

bool http_place_read(const char *text, struct http_place *place, struct err *err)
{
	struct str port, name = split_port(str_of(text), &port);
	uint64_t number;

	if (port.size == 0 && strspn(text, "0123456789") == strlen(text)) {
		port = name;
		name = STR("127.0.0.1");
	}
	auto_free char *port_text = memory_copy_str(port);
	auto_free char *name_text = str_is(name, "localhost") ? memory_copy("127.0.0.1")
							      : memory_copy_str(name);
	if (port.size > 0 && text_parse_count(port_text, PORT_MAX, &number, NULL) &&
	    set_address(name_text, (uint16_t)number, place))
		return true;
	return err_set(err, EINVAL,
		       "--http %.100s: must be an address and a port, as 127.0.0.1:8080 or "
		       "[::1]:8080",
		       text);
}

void http_place_add(const struct http_place *place, struct buf *out)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&place->address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&place->address;
	char name[ADDRESS_MAX] = "";

	if (place->address.ss_family == AF_INET) {
		(void)inet_ntop(AF_INET, &four->sin_addr, name, sizeof(name));
		(void)buf_addf(out, "%s:%d", name, ntohs(four->sin_port));
	} else {
		(void)inet_ntop(AF_INET6, &six->sin6_addr, name, sizeof(name));
		(void)buf_addf(out, "[%s]:%d", name, ntohs(six->sin6_port));
	}
}

static bool same_name(struct str a, const char *b)
{
	return a.size == strlen(b) && strncasecmp(a.data, b, a.size) == 0;
}

bool http_host_is_ours(const struct http_guard *guard, struct str host)
{
	struct str port;
	const struct str name = split_port(str_trim(host), &port);
	auto_free char *text = memory_copy_str(name);
	struct http_place place;

	for (size_t i = 0; i < port.size; i++) {
		if (!isdigit((unsigned char)port.data[i]))
			return false;
	}
	if (same_name(name, "localhost"))
		return true;
	/*
	 * An address cannot be rebound as a DNS name can; foreign ones do not lead here.
	 */
	if (set_address(text, 0, &place))
		return place.loopback || guard->token != NULL;
	for (const char *const *at = guard->hosts; at != NULL && *at != NULL; at++) {
		if (same_name(name, *at))
			return true;
	}
	return false;
}

bool http_origin_is_ours(const struct http_guard *guard, const char *origin)
{
	struct str rest = str_of(origin);

	if (origin == NULL)
		return true;
	if (str_starts(rest, STR("http://")))
		rest = str_part(rest, strlen("http://"), rest.size);
	else if (str_starts(rest, STR("https://")))
		rest = str_part(rest, strlen("https://"), rest.size);
	else
		return false;
	return http_host_is_ours(guard, rest);
}

bool http_token_fits(const struct http_guard *guard, const char *authorization)
{
	char given[HASH_HEX + 1], wanted[HASH_HEX + 1];
	struct str rest = str_of(authorization);
	unsigned differs = 0;

	if (guard->token == NULL)
		return true;
	if (rest.size < strlen("Bearer ") ||
	    strncasecmp(rest.data, "Bearer ", strlen("Bearer ")) != 0)
		return false;
	hash_text(str_trim(str_part(rest, strlen("Bearer "), rest.size)), given);
	hash_text(str_of(guard->token), wanted);
	for (size_t i = 0; i < HASH_HEX; i++)
		differs |= (unsigned char)given[i] ^ (unsigned char)wanted[i];
	return differs == 0;
}

/* The next of the comma-separated ranges of ACCEPT, without its parameters. */
static bool next_range(struct str *rest, struct str *range)
{
	size_t comma;

	if (rest->size == 0)
		return false;
	comma = str_find(*rest, STR(","), 0);
	*range = str_part(*rest, 0, comma == (size_t)-1 ? rest->size : comma);
	*rest = comma == (size_t)-1 ? STR("") : str_part(*rest, comma + 1, rest->size);
	const size_t end = str_find(*range, STR(";"), 0);
	*range = str_trim(str_part(*range, 0, end == (size_t)-1 ? range->size : end));
	return true;
}

static bool token_file_read(const char *path, struct buf *token, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(err, errno, "--token-file %s: %s", path, strerror(errno));
	if ((st.st_mode & OTHERS) != 0)
		return err_set(err, EPERM,
			       "--token-file %s: others may read it; chmod 600 it", path);
	if (!fd_read_file(path, HTTP_TOKEN_MAX, token, err))
		return err_while(err, "--token-file");
	const struct str trimmed = str_trim(buf_str(token));
	buf_truncate(token, (size_t)(trimmed.data + trimmed.size - token->data));
	buf_remove(token, 0, (size_t)(trimmed.data - token->data));
	return true;
}

bool http_token_read(const char *given, const char *path, struct buf *token,
		     struct http_guard *guard, struct err *err)
{
	if (path != NULL && !token_file_read(path, token, err))
		return false;
	guard->token = path != NULL ? token->data : given;
	if (guard->token != NULL && strlen(guard->token) < TOKEN_LEAST)
		return err_set(err, EINVAL,
			       "a token needs at least %d characters; for one: "
			       "head -c 24 /dev/urandom | base64",
			       TOKEN_LEAST);
	return true;
}

bool http_accepts(const char *accept, struct str type)
{
	const size_t slash = str_find(type, STR("/"), 0);
	struct str rest = str_of(accept), range;

	if (rest.size == 0)
		return true;
	while (next_range(&rest, &range)) {
		if (str_is(range, "*/*"))
			return true;
		if (range.size == type.size &&
		    strncasecmp(range.data, type.data, type.size) == 0)
			return true;
		if (range.size == slash + 2 && str_ends(range, STR("/*")) &&
		    strncasecmp(range.data, type.data, slash + 1) == 0)
			return true;
	}
	return false;
}
