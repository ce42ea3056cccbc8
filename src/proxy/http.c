/*
 * http: reads heads, bodies and greetings strictly, and names the rule that a head
 * breaks.
 */

#include "proxy/http.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/text/text.h"
#include "policy/network.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct head_field {
	struct str name, value;
};

/*
 * Splits an HTTP head (RFC 9112) into lines and fields, strictly line by line. The
 * results are views of the bytes, no copies.
 */

enum { METHOD_MAX = 32 };

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

/*
 * Take the next line off *REST. False when its "\r\n" has not come yet; then *BROKEN
 * tells whether the bytes are malformed.
 */
static bool head_next_line(struct str *rest, struct str *line, bool *broken)
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

/* "METHOD TARGET HTTP/1.1" with one blank each. */
static bool head_split_first(struct str line, struct str *method, struct str *target)
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

/* Split "http://host/path" into AUTHORITY and PATH. */
static bool head_split_url(struct str target, struct str *authority, struct str *path)
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

/* "Name: value". */
static bool head_split_field(struct str line, struct head_field *field)
{
	size_t colon = str_find(line, STR(":"), 0);

	if (colon == (size_t)-1)
		return false;
	field->name = str_part(line, 0, colon);
	field->value = str_trim(str_part(line, colon + 1, line.size));
	return all_token(field->name); /* no blank before the colon, none at the start */
}

/* Is TEXT the field name NAME, in any case of letters? */
static bool head_is_named(struct str text, const char *name)
{
	return text.size == strlen(name) && strncasecmp(text.data, name, text.size) == 0;
}

/* Prints the head that is passed on to the server. */

/*
 * Is NAME a header that is only for the proxy (RFC 9110, section 7.6.1), or that we print
 * anew?
 */
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
		if (head_is_named(name, names[i]))
			return true;
	}
	return false;
}

bool http_request_print(struct str bytes, const struct http_request *request, struct buf *out)
{
	struct str rest = bytes, line, method, target, authority, path;
	struct head_field header;
	char host[NETWORK_TEXT_MAX];
	bool broken;

	if (!head_next_line(&rest, &line, &broken) ||
	    !head_split_first(line, &method, &target))
		return false;
	if (!head_split_url(target, &authority, &path))
		path = target; /* inside a tunnel */
	/* The part after # is for the client only. */
	size_t end = str_find(path, STR("#"), 0);
	path = str_part(path, 0, end);
	(void)network_print(&request->host, request->port, host);
	if (request->port == REQUEST_PORT_PLAIN)
		*strrchr(host, ':') = '\0';
	(void)buf_addf(out, "%.*s %s%.*s HTTP/1.1\r\nHost: %s\r\n", (int)method.size,
		       method.data,
		       path.size > 0 && (path.data[0] == '/' || path.data[0] == '*') ? ""
										     : "/",
		       (int)path.size, path.data, host);
	while (head_next_line(&rest, &line, &broken) && line.size > 0) {
		if (!head_split_field(line, &header) || stays_here(header.name))
			continue;
		(void)buf_addf(out, "%.*s: %.*s\r\n", (int)header.name.size,
			       header.name.data, (int)header.value.size, header.value.data);
	}
	(void)buf_adds(out, "Connection: close\r\n\r\n");
	return !out->overflowed;
}

/*
 * Finds the end of a body: counted, or in chunks (RFC 9112, section 7.1) without
 * extensions and trailers.
 */

enum { SIZE_DIGITS = 15 }; /* hexadecimal; fits 64 bits */

enum state {
	CHUNK_SIZE,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_LAST_CR,
	CHUNK_LAST_LF,
};

void body_begin(struct body *body, const struct http_request *request)
{
	*body = (struct body){.kind = request->body, .left = request->body_bytes};
	body->done = body->kind == BODY_NONE ||
		     (body->kind == BODY_COUNTED && body->left == 0);
}

static void size_byte(struct body *body, char c)
{
	int digit = text_hex_digit(c);

	if (digit >= 0 && body->digits < SIZE_DIGITS) {
		body->left = body->left << 4 | (unsigned)digit;
		body->digits++;
	} else if (c == '\r' && body->digits > 0) {
		body->state = CHUNK_SIZE_LF;
	} else {
		body->broken = true;
	}
}

/* One byte that is not data. */
static void frame_byte(struct body *body, char c)
{
	static const char expected[] = {[CHUNK_SIZE_LF] = '\n',
					[CHUNK_DATA_CR] = '\r',
					[CHUNK_DATA_LF] = '\n',
					[CHUNK_LAST_CR] = '\r',
					[CHUNK_LAST_LF] = '\n'};

	if (body->state == CHUNK_SIZE) {
		size_byte(body, c);
		return;
	}
	body->broken = c != expected[body->state];
	if (body->state == CHUNK_SIZE_LF) {
		body->state = body->left > 0 ? CHUNK_DATA : CHUNK_LAST_CR;
	} else if (body->state == CHUNK_DATA_LF) {
		body->state = CHUNK_SIZE;
		body->digits = 0;
	} else if (body->state == CHUNK_LAST_LF) {
		body->done = true;
	} else {
		body->state++;
	}
}

size_t body_take(struct body *body, struct str bytes)
{
	size_t at = 0;

	while (at < bytes.size && !body->done && !body->broken) {
		bool data = body->kind == BODY_COUNTED || body->state == CHUNK_DATA;

		if (!data) {
			frame_byte(body, bytes.data[at++]);
			continue;
		}
		size_t size = bytes.size - at;
		if (size > body->left)
			size = (size_t)body->left;
		at += size;
		body->left -= size;
		if (body->left == 0) {
			body->done = body->kind == BODY_COUNTED;
			body->state = CHUNK_DATA_CR;
		}
	}
	return at;
}

/*
 * Reads the greeting of TLS: records, the message in them, its extensions. Each length
 * is checked once, here.
 */

enum {
	RECORD_HANDSHAKE = 22,
	RECORD_MAJOR = 3, /* of the version: SSL 3 and every TLS */
	RECORD_HEADER = 5,
	RECORD_MAX = 16 << 10,
	MESSAGE_HELLO = 1,
	MESSAGE_HEADER = 4,
	EXTENSION_NAME = 0, /* RFC 6066, section 3 */
	NAME_HOST = 0,
	RANDOM = 2 + 32, /* version and random */
	SESSION_MAX = 32,
};

bool http_hello_begins(struct str bytes)
{
	return bytes.size > 0 && bytes.data[0] == RECORD_HANDSHAKE &&
	       (bytes.size == 1 || bytes.data[1] == RECORD_MAJOR);
}

static unsigned byte_at(struct str text, size_t at)
{
	return (unsigned char)text.data[at];
}

static size_t number(struct str text, size_t at, size_t bytes)
{
	size_t value = 0;

	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | byte_at(text, at + i);
	return value;
}

static enum hello_answer bad(struct err *err, const char *what)
{
	(void)err_set(err, EPROTO, "the TLS greeting is malformed: %s", what);
	return HELLO_BAD;
}

/* Take a part off the front of *REST. The part begins with its length in BYTES bytes. */
static bool take(struct str *rest, size_t bytes, struct str *part)
{
	if (rest->size < bytes)
		return false;
	size_t size = number(*rest, 0, bytes);
	if (rest->size - bytes < size)
		return false;
	*part = str_part(*rest, bytes, size);
	*rest = str_part(*rest, bytes + size, rest->size);
	return true;
}

static bool read_name(struct str extension, char name[NETWORK_NAME_MAX + 1])
{
	struct str list, text;
	struct network_host host;

	/*
	 * Allow exactly one name, of a host. With more, client and server could choose
	 * different ones.
	 */
	if (!take(&extension, 2, &list) || extension.size != 0 || list.size < 1 ||
	    byte_at(list, 0) != NAME_HOST)
		return false;
	list = str_part(list, 1, list.size);
	if (!take(&list, 2, &text) || list.size != 0 ||
	    !network_parse_host(text, &host, NULL))
		return false;
	memcpy(name, host.text, sizeof(host.text));
	return true;
}

static enum hello_answer read_message(struct str rest, char name[NETWORK_NAME_MAX + 1],
				      struct err *err)
{
	struct str part, extensions;
	bool named = false;

	name[0] = '\0';
	if (rest.size < RANDOM)
		return bad(err, "it is too short");
	rest = str_part(rest, RANDOM, rest.size);
	if (!take(&rest, 1, &part) || part.size > SESSION_MAX)
		return bad(err, "its session");
	if (!take(&rest, 2, &part) || !take(&rest, 1, &part))
		return bad(err, "its ciphers");
	if (rest.size == 0)
		return HELLO_GOOD; /* TLS 1.0 had no extensions */
	if (!take(&rest, 2, &extensions) || rest.size != 0)
		return bad(err, "its extensions");
	while (extensions.size > 0) {
		if (extensions.size < 2)
			return bad(err, "an extension");
		size_t kind = number(extensions, 0, 2);
		extensions = str_part(extensions, 2, extensions.size);
		if (!take(&extensions, 2, &part))
			return bad(err, "an extension");
		if (kind != EXTENSION_NAME)
			continue;
		if (named || !read_name(part, name))
			return bad(err, "the name of the server");
		named = true;
	}
	return HELLO_GOOD;
}

enum hello_answer http_hello_read(struct str bytes, char name[NETWORK_NAME_MAX + 1],
				  struct err *err)
{
	char message[HELLO_MAX];
	size_t have = 0, want = MESSAGE_HEADER, at = 0;

	while (have < want) {
		if (bytes.size - at < RECORD_HEADER)
			return bytes.size < HELLO_MAX ? HELLO_MORE
						      : bad(err, "it is too long");
		size_t size = number(bytes, at + 3, 2);
		if (byte_at(bytes, at) != RECORD_HANDSHAKE ||
		    byte_at(bytes, at + 1) != RECORD_MAJOR)
			return bad(err, "no handshake");
		if (size == 0 || size > RECORD_MAX)
			return bad(err, "the length of a record");
		at += RECORD_HEADER;
		size_t here = bytes.size - at < size ? bytes.size - at : size;
		if (here > sizeof(message) - have)
			return bad(err, "it is too long");
		memcpy(message + have, bytes.data + at, here);
		have += here;
		at += here;
		if (have >= MESSAGE_HEADER) {
			if (message[0] != MESSAGE_HELLO)
				return bad(err, "it is no greeting");
			want = MESSAGE_HEADER + number((struct str){message, have}, 1, 3);
			if (want > sizeof(message))
				return bad(err, "it is too long");
		}
		if (here < size && have < want)
			return bytes.size < HELLO_MAX ? HELLO_MORE
						      : bad(err, "it is too long");
	}
	return read_message((struct str){message + MESSAGE_HEADER, want - MESSAGE_HEADER},
			    name, err);
}

/*
 * Reads the token in a Proxy-Authorization (RFC 7617): Base64 of "glovebox:" and a
 * token, and nothing else.
 */

enum { CREDENTIALS_MAX = sizeof(PROXY_USER ":") - 1 + PROXY_TOKEN, GROUP = 4 };

/*
 * Copy the token of Basic credentials of our form to TOKEN. Other credentials leave TOKEN
 * as it is.
 */
static void credentials_read(struct str value, char token[PROXY_TOKEN + 1])
{
	static const struct str scheme = STR("Basic ");
	static const struct str user = STR(PROXY_USER ":");
	struct buf padded, text;

	if (value.size <= scheme.size ||
	    strncasecmp(value.data, scheme.data, scheme.size) != 0)
		return;
	value = str_trim(str_part(value, scheme.size, value.size));
	buf_init(&padded, 2 * CREDENTIALS_MAX);
	buf_init(&text, CREDENTIALS_MAX);
	(void)buf_addstr(&padded, value);
	/* Some clients omit the padding. */
	while (padded.size % GROUP != 0 && buf_addc(&padded, '='))
		;
	if (!padded.overflowed && buf_base64_read(buf_str(&padded), &text) &&
	    text.size == CREDENTIALS_MAX && str_starts(buf_str(&text), user)) {
		memcpy(token, text.data + user.size, PROXY_TOKEN);
		token[PROXY_TOKEN] = '\0';
	}
	buf_fini(&text);
	buf_fini(&padded);
}

enum { LENGTH_DIGITS = 18 }; /* fits 64 bits */

struct seen {
	bool host, length, coding, credentials;
};

static void show(struct str text, char shown[NETWORK_TEXT_MAX])
{
	size_t size = text.size < NETWORK_TEXT_MAX - 1 ? text.size : NETWORK_TEXT_MAX - 1;

	for (size_t i = 0; i < size; i++)
		shown[i] = (char)(text.data[i] > 0x20 && text.data[i] < 0x7f ? text.data[i]
									     : '?');
	shown[size] = '\0';
}

/* Inside a tunnel the target is a path. REQUEST already has the host of the tunnel. */
static bool read_first_inside(struct str method, struct str target, struct err *err)
{
	if (!str_is(method, "CONNECT") && (target.data[0] == '/' || str_is(target, "*")))
		return true;
	return err_set(err, EPROTO, "a request in a tunnel names a path");
}

static bool read_first(struct str line, struct http_request *request,
		       struct str *authority, struct err *err)
{
	struct str method, target, path;

	if (!head_split_first(line, &method, &target))
		return err_set(err, EPROTO, "the first line is no HTTP/1.1 request");
	for (size_t i = 0; i < target.size; i++) {
		if (target.data[i] <= 0x20 || target.data[i] >= 0x7f)
			return err_set(err, EPROTO, "the target holds what no URL does");
	}
	if (request->port != 0)
		return read_first_inside(method, target, err);
	request->connect = str_is(method, "CONNECT");
	*authority = target;
	if (request->connect || head_split_url(target, authority, &path)) {
		show(*authority, request->shown);
		return true;
	}
	return err_set(err, EPROTO,
		       "a request is CONNECT host:port, or has a URL with http:// in front");
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

static bool read_header(const struct head_field *header, struct http_request *request,
			struct seen *seen, struct str *host, struct err *err)
{
	bool twice = false;

	if (head_is_named(header->name, "Host")) {
		twice = seen->host;
		seen->host = true;
		*host = header->value;
	} else if (head_is_named(header->name, "Content-Length")) {
		twice = seen->length;
		seen->length = true;
		request->body = BODY_COUNTED;
		if (!read_length(header->value, &request->body_bytes))
			return err_set(err, EPROTO, "Content-Length is no number");
	} else if (head_is_named(header->name, "Transfer-Encoding")) {
		twice = seen->coding;
		seen->coding = true;
		request->body = BODY_CHUNKED;
		if (!head_is_named(header->value, "chunked"))
			return err_set(err, EPROTO,
				       "Transfer-Encoding is not chunked alone");
	} else if (head_is_named(header->name, "Proxy-Authorization")) {
		twice = seen->credentials;
		seen->credentials = true;
		credentials_read(header->value, request->token);
	}
	if (twice)
		return err_set(err, EPROTO, "%.*s stands there twice",
			       (int)header->name.size, header->name.data);
	return true;
}

/*
 * The Host header must name the same host and port as the target of the request. The Host
 * header of CONNECT is not checked: it is not passed on, and some clients name the proxy
 * in it.
 */
static bool check_host(struct str value, const struct http_request *request,
		       uint16_t plain_port, struct err *err)
{
	struct network_host host;
	uint16_t port;

	if (request->connect)
		return true;
	if (!network_parse_authority(value, plain_port, &host, &port, err))
		return err_while(err, "Host");
	return (network_same_host(&host, &request->host) && port == request->port) ||
	       err_set(err, EPROTO, "Host names another host than the %s",
		       plain_port == REQUEST_PORT_PLAIN ? "request" : "tunnel");
}

static bool check_whole(struct http_request *request, const struct seen *seen,
			struct str authority, struct str host, struct err *err)
{
	if (seen->length && seen->coding)
		return err_set(err, EPROTO,
			       "Content-Length and Transfer-Encoding exclude each other");
	if (request->connect && (seen->coding || request->body_bytes != 0))
		return err_set(err, EPROTO, "CONNECT has no body");
	if (request->port != 0) {
		if (!seen->host)
			return err_set(err, EPROTO, "no Host names the tunnel's host");
		return check_host(host, request, request->port, err);
	}
	if (!network_parse_authority(authority, request->connect ? 0 : REQUEST_PORT_PLAIN,
				     &request->host, &request->port, err))
		return false;
	(void)network_print(&request->host, request->port, request->shown);
	return !seen->host || check_host(host, request, REQUEST_PORT_PLAIN, err);
}

/* REQUEST is empty, or has the host and port of the tunnel it is inside. */
static enum request_answer read_head(struct str bytes, struct http_request *request,
				     struct err *err)
{
	struct str rest = bytes, line, authority = {0}, host = {0};
	struct seen seen = {0};
	struct head_field header;
	bool broken;

	for (size_t count = 0; head_next_line(&rest, &line, &broken); count++) {
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
		if (!head_split_field(line, &header)) {
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

enum request_answer http_request_read(struct str bytes, struct http_request *request,
				      struct err *err)
{
	*request = (struct http_request){0};
	return read_head(bytes, request, err);
}

enum request_answer http_request_read_inside(struct str bytes,
					     const struct network_host *host, uint16_t port,
					     struct http_request *request, struct err *err)
{
	*request = (struct http_request){.host = *host, .port = port};
	return read_head(bytes, request, err);
}
