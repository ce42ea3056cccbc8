/* request: line by line; a rule that is broken is named. */
#include "proxy/request.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum {
	METHOD_MAX = 32,
	LENGTH_DIGITS = 18, /* fits 64 bits */
	CREDENTIALS_MAX = sizeof(PROXY_USER ":") - 1 + PROXY_TOKEN,
};

struct header {
	struct str name, value;
};

struct seen {
	bool host, length, coding, credentials;
};

static bool is_token(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool all_token(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (!is_token(text.data[i]))
			return false;
	}
	return text.size > 0;
}

static bool is_named(struct str text, const char *name)
{
	return text.size == strlen(name) && strncasecmp(text.data, name, text.size) == 0;
}

/* The next line off *REST; false when its "\r\n" has not come, BROKEN when it is no line. */
static bool next_line(struct str *rest, struct str *line, bool *broken)
{
	size_t end = str_find(*rest, STR("\n"), 0);

	*broken = end != (size_t)-1 && (end == 0 || rest->data[end - 1] != '\r');
	if (end == (size_t)-1 || *broken)
		return false;
	*line = str_part(*rest, 0, end - 1);
	*rest = str_part(*rest, end + 1, rest->size);
	for (size_t i = 0; i < line->size; i++) {
		unsigned char c = (unsigned char)line->data[i];
		*broken = *broken || (c < 0x20 && c != '\t') || c == 0x7f;
	}
	return !*broken;
}

/* ---- the first line ---- */

static void show(struct str text, char shown[NETWORK_TEXT_MAX])
{
	size_t size = text.size < NETWORK_TEXT_MAX - 1 ? text.size : NETWORK_TEXT_MAX - 1;

	for (size_t i = 0; i < size; i++)
		shown[i] = (char)(text.data[i] > 0x20 && text.data[i] < 0x7f ? text.data[i]
									     : '?');
	shown[size] = '\0';
}

/* Where the path of "http://host/path" begins; the authority stands before it. */
static bool split_url(struct str target, struct str *authority, struct str *path)
{
	static const struct str scheme = STR("http://");
	size_t end = scheme.size;

	if (target.size < scheme.size ||
	    strncasecmp(target.data, scheme.data, scheme.size) != 0)
		return false;
	while (end < target.size && target.data[end] != '/' && target.data[end] != '?' &&
	       target.data[end] != '#')
		end++;
	*authority = str_part(target, scheme.size, end - scheme.size);
	*path = str_part(target, end, target.size);
	return true;
}

/* "METHOD TARGET HTTP/1.1" with one blank each. */
static bool split_first(struct str line, struct str *method, struct str *target)
{
	size_t one = str_find(line, STR(" "), 0);
	size_t two = one == (size_t)-1 ? one : str_find(line, STR(" "), one + 1);
	struct str version;

	if (two == (size_t)-1)
		return false;
	*method = str_part(line, 0, one);
	*target = str_part(line, one + 1, two - one - 1);
	version = str_part(line, two + 1, line.size);
	return all_token(*method) && method->size <= METHOD_MAX && target->size > 0 &&
	       (str_is(version, "HTTP/1.1") || str_is(version, "HTTP/1.0"));
}

static bool read_first(struct str line, struct request *request, struct str *authority,
		       struct err *err)
{
	struct str method, target, path;

	if (!split_first(line, &method, &target))
		return err_set(err, EPROTO, "the first line is no HTTP/1.1 request");
	for (size_t i = 0; i < target.size; i++) {
		if (target.data[i] <= 0x20 || target.data[i] >= 0x7f)
			return err_set(err, EPROTO, "the target holds what no URL does");
	}
	request->connect = str_is(method, "CONNECT");
	*authority = target;
	if (request->connect || split_url(target, authority, &path)) {
		show(*authority, request->shown);
		return true;
	}
	return err_set(err, EPROTO,
		       "a request is CONNECT host:port, or has a URL with http:// in front");
}

/* ---- headers ---- */

static int base64_digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c != '\0' ? strchr(digits, c) : NULL;

	return found != NULL ? (int)(found - digits) : -1;
}

/* Basic credentials (RFC 7617) that have our form; anything else is no token. */
static void read_credentials(struct str value, char token[PROXY_TOKEN + 1])
{
	static const struct str scheme = STR("Basic ");
	static const struct str user = STR(PROXY_USER ":");
	char text[CREDENTIALS_MAX + 3];
	size_t size = 0, bits = 0;
	unsigned held = 0;

	if (value.size <= scheme.size ||
	    strncasecmp(value.data, scheme.data, scheme.size) != 0)
		return;
	value = str_trim(str_part(value, scheme.size, value.size));
	while (value.size > 0 && value.data[value.size - 1] == '=')
		value.size--;
	for (size_t i = 0; i < value.size; i++) {
		int digit = base64_digit(value.data[i]);

		if (digit < 0 || size == sizeof(text))
			return;
		held = held << 6 | (unsigned)digit;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			text[size++] = (char)(held >> bits & 0xff);
		}
	}
	if (size != CREDENTIALS_MAX || !str_starts((struct str){text, size}, user))
		return;
	memcpy(token, text + user.size, PROXY_TOKEN);
	token[PROXY_TOKEN] = '\0';
}

static bool read_length(struct str value, uint64_t *bytes)
{
	uint64_t number = 0;

	if (value.size == 0 || value.size > LENGTH_DIGITS)
		return false;
	for (size_t i = 0; i < value.size; i++) {
		if (value.data[i] < '0' || value.data[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(value.data[i] - '0');
	}
	*bytes = number;
	return true;
}

static bool split_header(struct str line, struct header *header)
{
	size_t colon = str_find(line, STR(":"), 0);

	if (colon == (size_t)-1)
		return false;
	header->name = str_part(line, 0, colon);
	header->value = str_trim(str_part(line, colon + 1, line.size));
	return all_token(header->name); /* no blank before the colon, none at the start */
}

static bool read_header(const struct header *header, struct request *request,
			struct seen *seen, struct str *host, struct err *err)
{
	bool twice = false;

	if (is_named(header->name, "Host")) {
		twice = seen->host;
		seen->host = true;
		*host = header->value;
	} else if (is_named(header->name, "Content-Length")) {
		twice = seen->length;
		seen->length = true;
		request->body = BODY_COUNTED;
		if (!read_length(header->value, &request->body_bytes))
			return err_set(err, EPROTO, "Content-Length is no number");
	} else if (is_named(header->name, "Transfer-Encoding")) {
		twice = seen->coding;
		seen->coding = true;
		request->body = BODY_CHUNKED;
		if (!is_named(header->value, "chunked"))
			return err_set(err, EPROTO,
				       "Transfer-Encoding is not chunked alone");
	} else if (is_named(header->name, "Proxy-Authorization")) {
		twice = seen->credentials;
		seen->credentials = true;
		read_credentials(header->value, request->token);
	}
	if (twice)
		return err_set(err, EPROTO, "%.*s stands there twice",
			       (int)header->name.size, header->name.data);
	return true;
}

/*
 * The Host header must mean what the request's own target does; that of a tunnel ends here,
 * and some clients name the proxy in it.
 */
static bool check_host(struct str value, const struct request *request, struct err *err)
{
	struct network_host host;
	uint16_t port;

	if (request->connect)
		return true;
	if (!network_parse_authority(value, REQUEST_PORT_PLAIN, &host, &port, err))
		return err_while(err, "Host");
	return (network_same_host(&host, &request->host) && port == request->port) ||
	       err_set(err, EPROTO, "Host names another host than the request");
}

static bool check_whole(struct request *request, const struct seen *seen,
			struct str authority, struct str host, struct err *err)
{
	if (seen->length && seen->coding)
		return err_set(err, EPROTO,
			       "Content-Length and Transfer-Encoding exclude each other");
	if (request->connect && (seen->coding || request->body_bytes != 0))
		return err_set(err, EPROTO, "CONNECT has no body");
	if (!network_parse_authority(authority, request->connect ? 0 : REQUEST_PORT_PLAIN,
				     &request->host, &request->port, err))
		return false;
	(void)network_print(&request->host, request->port, request->shown);
	return !seen->host || check_host(host, request, err);
}

enum request_answer request_read(struct str bytes, struct request *request, struct err *err)
{
	struct str rest = bytes, line, authority = {0}, host = {0};
	struct seen seen = {0};
	struct header header;
	bool broken;

	*request = (struct request){0};
	for (size_t count = 0; next_line(&rest, &line, &broken); count++) {
		if (count == 0) {
			if (!read_first(line, request, &authority, err))
				return REQUEST_BAD;
			continue;
		}
		if (line.size == 0) {
			request->size = bytes.size - rest.size;
			return check_whole(request, &seen, authority, host, err)
				       ? REQUEST_READY
				       : REQUEST_BAD;
		}
		if (count > REQUEST_HEADERS_MAX) {
			(void)err_set(err, E2BIG, "the request has over %d headers",
				      REQUEST_HEADERS_MAX);
			return REQUEST_BAD;
		}
		if (!split_header(line, &header)) {
			(void)err_set(err, EPROTO, "a header is no \"name: value\"");
			return REQUEST_BAD;
		}
		if (!read_header(&header, request, &seen, &host, err))
			return REQUEST_BAD;
	}
	if (broken)
		(void)err_set(err, EPROTO,
			      "a line ends without CR LF, or holds control characters");
	else if (bytes.size < REQUEST_HEAD_MAX)
		return REQUEST_MORE;
	else
		(void)err_set(err, E2BIG, "the head is over %d bytes", REQUEST_HEAD_MAX);
	return REQUEST_BAD;
}

/* Between client and proxy only (RFC 9110, section 7.6.1), or made anew. */
static bool stays_here(struct str name)
{
	static const char *const names[] = {"Host",
					    "Connection",
					    "Keep-Alive",
					    "Proxy-Connection",
					    "Proxy-Authorization",
					    "Proxy-Authenticate",
					    "TE",
					    "Upgrade",
					    "HTTP2-Settings"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (is_named(name, names[i]))
			return true;
	}
	return false;
}

bool request_print(struct str bytes, const struct request *request, struct buf *out)
{
	struct str rest = bytes, line, method, target, authority, path;
	struct header header;
	char host[NETWORK_TEXT_MAX];
	bool broken;

	if (!next_line(&rest, &line, &broken) || !split_first(line, &method, &target) ||
	    !split_url(target, &authority, &path))
		return false;
	/* What stands behind # is the client's own. */
	size_t end = str_find(path, STR("#"), 0);
	path = str_part(path, 0, end);
	(void)network_print(&request->host, request->port, host);
	if (request->port == REQUEST_PORT_PLAIN)
		*strrchr(host, ':') = '\0';
	(void)buf_addf(out, "%.*s %s%.*s HTTP/1.1\r\nHost: %s\r\n", (int)method.size,
		       method.data, path.size > 0 && path.data[0] == '/' ? "" : "/",
		       (int)path.size, path.data, host);
	while (next_line(&rest, &line, &broken) && line.size > 0) {
		if (!split_header(line, &header) || stays_here(header.name))
			continue;
		(void)buf_addf(out, "%.*s: %.*s\r\n", (int)header.name.size,
			       header.name.data, (int)header.value.size, header.value.data);
	}
	(void)buf_adds(out, "Connection: close\r\n\r\n");
	return !out->overflowed;
}
