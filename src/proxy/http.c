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

static bool head_read_version(struct str text, struct http_head *head)
{
	head->old = str_is(text, "HTTP/1.0");
	return head->old || str_is(text, "HTTP/1.1");
}

/* "METHOD TARGET HTTP/1.1" with one blank each. */
static bool head_split_request(struct str line, struct http_head *head, struct err *err)
{
	size_t one = str_find(line, STR(" "), 0);
	size_t two = one == (size_t)-1 ? one : str_find(line, STR(" "), one + 1);
	struct str method = str_part(line, 0, one);
	struct str target;

	if (two == (size_t)-1 || two == one + 1 || !all_token(method) ||
	    method.size > METHOD_MAX ||
	    !head_read_version(str_part(line, two + 1, line.size), head))
		return err_set(err, EPROTO, "the first line is no HTTP/1.1 request");
	target = str_part(line, one + 1, two - one - 1);
	for (size_t i = 0; i < target.size; i++) {
		if (target.data[i] <= 0x20 || target.data[i] >= 0x7f)
			return err_set(err, EPROTO, "the target holds what no URL does");
	}
	head->method = method;
	head->target = target;
	return true;
}

/* "HTTP/1.1 200 REASON"; some servers omit the last blank with the reason. */
static bool head_split_answer(struct str line, struct http_head *head, struct err *err)
{
	enum { VERSION = 8, DIGITS = 3 };
	struct str digits = str_part(line, VERSION + 1, DIGITS);
	struct str rest = str_part(line, VERSION + 1 + DIGITS, line.size);

	head->reason = str_trim(rest);
	if (digits.size < DIGITS || line.data[VERSION] != ' ' ||
	    !head_read_version(str_part(line, 0, VERSION), head))
		return err_set(err, EPROTO, "the first line is no HTTP/1.1 answer");
	for (size_t i = 0; i < DIGITS; i++) {
		if (digits.data[i] < '0' || digits.data[i] > '9')
			return err_set(err, EPROTO, "the status is no number");
		head->status = head->status * 10 + (unsigned)(digits.data[i] - '0');
	}
	return (head->status >= 100 && head->status <= 599 &&
		(rest.size == 0 || rest.data[0] == ' ')) ||
	       err_set(err, EPROTO, "the status is no number from 100 to 599");
}

/* Split "http://host/path" into AUTHORITY and PATH. */
static bool head_split_url(struct str target, struct str *authority, struct str *path)
{
	static const struct str scheme = STR("http://");
	size_t end = scheme.size;

	if (!str_starts_caseless(target, scheme.data))
		return false;
	while (end < target.size && target.data[end] != '/' && target.data[end] != '?' &&
	       target.data[end] != '#')
		end++;
	*authority = str_part(target, scheme.size, end - scheme.size);
	*path = str_part(target, end, target.size);
	return true;
}

/* "Name: value". */
static bool head_split_field(struct str line, struct http_field *field)
{
	size_t colon = str_find(line, STR(":"), 0);

	if (colon == (size_t)-1)
		return false;
	field->name = str_part(line, 0, colon);
	field->value = str_trim(str_part(line, colon + 1, line.size));
	return all_token(field->name); /* no blank before the colon, none at the start */
}

bool http_list_has(struct str list, const char *word)
{
	while (list.size > 0) {
		size_t comma = str_find(list, STR(","), 0);

		if (str_is_caseless(str_trim(str_part(list, 0, comma)), word))
			return true;
		if (comma == (size_t)-1)
			break;
		list = str_part(list, comma + 1, list.size);
	}
	return false;
}

enum { LENGTH_DIGITS = 18 }; /* fits 64 bits */

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

/* The fields of a head that may stand there once only, because they say what it is. */
struct seen {
	bool length, coding;
};

static bool head_read_field(const struct http_field *field, enum http_side side,
			    struct http_head *head, struct seen *seen, struct err *err)
{
	bool twice = false;

	if (side == HTTP_REQUEST && str_is_caseless(field->name, "Host")) {
		twice = head->named;
		head->named = true;
		head->host = field->value;
	} else if (str_is_caseless(field->name, "Content-Length")) {
		twice = seen->length;
		seen->length = true;
		head->body = BODY_COUNTED;
		if (!read_length(field->value, &head->body_bytes))
			return err_set(err, EPROTO, "Content-Length is no number");
	} else if (str_is_caseless(field->name, "Transfer-Encoding")) {
		twice = seen->coding;
		seen->coding = true;
		head->body = BODY_CHUNKED;
		if (!str_is_caseless(field->value, "chunked"))
			return err_set(err, EPROTO,
				       "Transfer-Encoding is not chunked alone");
	}
	if (twice)
		return err_set(err, EPROTO, "%.*s stands there twice",
			       (int)field->name.size, field->name.data);
	return true;
}

/* One line of a head behind the first one. */
static bool head_add_line(struct str line, enum http_side side, struct http_head *head,
			  struct seen *seen, struct err *err)
{
	struct http_field *field = &head->fields[head->count];

	if (head->count >= REQUEST_HEADERS_MAX)
		return err_set(err, E2BIG, "the %s has over %d headers",
			       side == HTTP_REQUEST ? "request" : "answer",
			       REQUEST_HEADERS_MAX);
	if (!head_split_field(line, field))
		return err_set(err, EPROTO, "a header is no \"name: value\"");
	head->count++;
	return head_read_field(field, side, head, seen, err);
}

enum request_answer http_head_read(struct str bytes, enum http_side side,
				   struct http_head *head, struct err *err)
{
	struct str rest = bytes, line;
	struct seen seen = {0};
	bool broken, first = true;

	*head = (struct http_head){0};
	for (; head_next_line(&rest, &line, &broken); first = false) {
		bool fine;

		if (!first && line.size == 0) {
			head->size = bytes.size - rest.size;
			if (!seen.length || !seen.coding)
				return REQUEST_READY;
			(void)err_set(err, EPROTO,
				      "Content-Length and Transfer-Encoding exclude each other");
			return REQUEST_BAD;
		}
		if (!first)
			fine = head_add_line(line, side, head, &seen, err);
		else if (side == HTTP_REQUEST)
			fine = head_split_request(line, head, err);
		else
			fine = head_split_answer(line, head, err);
		if (!fine)
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

/* Prints the head that is passed on to the server. */

bool http_is_hop(struct str name)
{
	static const char *const names[] = {"Connection",
					    "Keep-Alive",
					    "Proxy-Connection",
					    "Proxy-Authorization",
					    "Proxy-Authenticate",
					    "TE",
					    "Upgrade",
					    "HTTP2-Settings"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (str_is_caseless(name, names[i]))
			return true;
	}
	return false;
}

struct str http_value(const struct http_head *head, const char *name)
{
	for (size_t i = head->count; i > 0; i--)
		if (str_is_caseless(head->fields[i - 1].name, name))
			return head->fields[i - 1].value;
	return (struct str){0};
}

void http_field_print(const struct http_field *field, struct buf *out)
{
	(void)buf_addstr(out, field->name);
	(void)buf_adds(out, ": ");
	(void)buf_addstr(out, field->value);
	(void)buf_adds(out, "\r\n");
}

bool http_request_print(struct str bytes, const struct http_request *request, struct buf *out)
{
	struct str authority, path;
	struct http_head head;
	char host[NETWORK_TEXT_MAX];

	if (http_head_read(bytes, HTTP_REQUEST, &head, NULL) != REQUEST_READY)
		return false;
	if (!head_split_url(head.target, &authority, &path))
		path = head.target; /* inside a tunnel */
	/* The part after # is for the client only. */
	size_t end = str_find(path, STR("#"), 0);
	path = str_part(path, 0, end);
	(void)network_print(&request->host, request->port, host);
	if (request->port == REQUEST_PORT_PLAIN)
		*strrchr(host, ':') = '\0';
	(void)buf_addf(out, "%.*s %s%.*s HTTP/1.1\r\nHost: %s\r\n", (int)head.method.size,
		       head.method.data,
		       path.size > 0 && (path.data[0] == '/' || path.data[0] == '*') ? ""
										     : "/",
		       (int)path.size, path.data, host);
	for (size_t i = 0; i < head.count; i++) {
		const struct http_field *field = &head.fields[i];

		if (!str_is_caseless(field->name, "Host") && !http_is_hop(field->name))
			http_field_print(field, out);
	}
	(void)buf_adds(out, "Connection: close\r\n\r\n");
	return !out->overflowed;
}

/*
 * Finds the end of a body: counted, or in chunks (RFC 9112, section 7.1). Chunks of an
 * answer may have extensions and trailers, which are skipped.
 */

enum {
	SIZE_DIGITS = 15,     /* hexadecimal; fits 64 bits */
	ASIDE_MAX = 16 << 10, /* no service sends more beside the content */
};

enum state {
	CHUNK_SIZE,
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_LAST_CR,
	CHUNK_LAST_LF,
	CHUNK_TRAILER,
	CHUNK_TRAILER_LF,
};

void body_begin(struct body *body, enum http_side side, enum body_kind kind, uint64_t bytes)
{
	*body = (struct body){.kind = kind,
			      .left = kind == BODY_COUNTED ? bytes : 0,
			      .answer = side == HTTP_ANSWER};
	body->done = kind == BODY_NONE || (kind == BODY_COUNTED && bytes == 0);
}

static void size_byte(struct body *body, char c)
{
	int digit = text_hex_digit(c);

	if (digit >= 0 && body->digits < SIZE_DIGITS) {
		body->left = body->left << 4 | (unsigned)digit;
		body->digits++;
	} else if (c == '\r' && body->digits > 0) {
		body->state = CHUNK_SIZE_LF;
	} else if ((c == ';' || c == ' ' || c == '\t') && body->digits > 0 && body->answer) {
		body->state = CHUNK_EXTENSION;
	} else {
		body->broken = true;
	}
}

/* One byte of an extension or a trailer. */
static void aside_byte(struct body *body, char c)
{
	if (c == '\r')
		body->state++;
	else
		body->broken = ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f ||
			       ++body->aside > ASIDE_MAX;
}

/* One byte that is not data. */
static void frame_byte(struct body *body, char c)
{
	static const char expected[] = {
		[CHUNK_SIZE_LF] = '\n', [CHUNK_DATA_CR] = '\r',
		[CHUNK_DATA_LF] = '\n', [CHUNK_LAST_CR] = '\r',
		[CHUNK_LAST_LF] = '\n', [CHUNK_TRAILER_LF] = '\n'};

	if (body->state == CHUNK_LAST_CR && c != '\r' && body->answer)
		body->state = CHUNK_TRAILER;
	if (body->state == CHUNK_SIZE) {
		size_byte(body, c);
		return;
	}
	if (body->state == CHUNK_EXTENSION || body->state == CHUNK_TRAILER) {
		aside_byte(body, c);
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
	} else if (body->state == CHUNK_TRAILER_LF) {
		body->state = CHUNK_LAST_CR;
	} else {
		body->state++;
	}
}

void body_next(struct body *body, struct str *bytes, struct str *piece)
{
	*piece = str_part(*bytes, 0, 0);
	while (bytes->size > 0 && !body->done && !body->broken) {
		if (body->kind == BODY_CHUNKED && body->state != CHUNK_DATA) {
			frame_byte(body, bytes->data[0]);
			*bytes = str_part(*bytes, 1, bytes->size);
			continue;
		}
		*piece = *bytes;
		if (body->kind != BODY_TO_END) {
			if (body->left < bytes->size)
				*piece = str_part(*bytes, 0, (size_t)body->left);
			body->left -= piece->size;
			if (body->left == 0) {
				body->done = body->kind == BODY_COUNTED;
				body->state = CHUNK_DATA_CR;
			}
		}
		*bytes = str_part(*bytes, piece->size, bytes->size);
		return;
	}
}

size_t body_take(struct body *body, struct str bytes)
{
	struct str rest = bytes, piece;

	do
		body_next(body, &rest, &piece);
	while (piece.size > 0);
	return bytes.size - rest.size;
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

	if (!str_starts_caseless(value, scheme.data))
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

static bool read_first(const struct http_head *head, struct http_request *request,
		       struct str *authority, struct err *err)
{
	struct str path;

	if (request->port != 0)
		return read_first_inside(head->method, head->target, err);
	request->connect = str_is(head->method, "CONNECT");
	*authority = head->target;
	if (request->connect || head_split_url(head->target, authority, &path)) {
		show(*authority, request->shown);
		return true;
	}
	return err_set(err, EPROTO,
		       "a request is CONNECT host:port, or has a URL with http:// in front");
}

/* The token in the head; there may be one header for it. */
static bool read_token(const struct http_head *head, struct http_request *request,
		       struct err *err)
{
	bool seen = false;

	for (size_t i = 0; i < head->count; i++) {
		if (!str_is_caseless(head->fields[i].name, "Proxy-Authorization"))
			continue;
		if (seen)
			return err_set(err, EPROTO, "%.*s stands there twice",
				       (int)head->fields[i].name.size,
				       head->fields[i].name.data);
		seen = true;
		credentials_read(head->fields[i].value, request->token);
	}
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

static bool check_whole(const struct http_head *head, struct http_request *request,
			struct str authority, struct err *err)
{
	if (request->connect && (head->body == BODY_CHUNKED || head->body_bytes != 0))
		return err_set(err, EPROTO, "CONNECT has no body");
	if (request->port != 0) {
		if (!head->named)
			return err_set(err, EPROTO, "no Host names the tunnel's host");
		return check_host(head->host, request, request->port, err);
	}
	if (!network_parse_authority(authority, request->connect ? 0 : REQUEST_PORT_PLAIN,
				     &request->host, &request->port, err))
		return false;
	(void)network_print(&request->host, request->port, request->shown);
	return !head->named || check_host(head->host, request, REQUEST_PORT_PLAIN, err);
}

/* REQUEST is empty, or has the host and port of the tunnel it is inside. */
static enum request_answer read_head(struct str bytes, struct http_request *request,
				     struct err *err)
{
	struct str authority = {0};
	struct http_head head;
	enum request_answer answer = http_head_read(bytes, HTTP_REQUEST, &head, err);

	if (head.target.size > 0 && !read_first(&head, request, &authority, err))
		return REQUEST_BAD;
	if (answer != REQUEST_READY)
		return answer;
	request->size = head.size;
	request->body = head.body;
	request->body_bytes = head.body_bytes;
	return read_token(&head, request, err) && check_whole(&head, request, authority, err)
		       ? REQUEST_READY
		       : REQUEST_BAD;
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
