/* request: reads the head line by line and names the rule that it breaks. */
#include "proxy/request.h"

#include "proxy/credentials.h"
#include "proxy/head.h"

#include <errno.h>
#include <string.h>

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

enum request_answer request_read(struct str bytes, struct http_request *request,
				 struct err *err)
{
	*request = (struct http_request){0};
	return read_head(bytes, request, err);
}

enum request_answer request_read_inside(struct str bytes, const struct network_host *host,
					uint16_t port, struct http_request *request,
					struct err *err)
{
	*request = (struct http_request){.host = *host, .port = port};
	return read_head(bytes, request, err);
}
