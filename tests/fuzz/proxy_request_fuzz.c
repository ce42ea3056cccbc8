/*
 * proxy_request_fuzz: any bytes as the head of a request and the body behind it. What is
 * ready has a host of the grammar, stays the same when more comes behind it, and goes on as
 * a head that names that host once.
 */
#include "proxy/http.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count_hosts(struct str text)
{
	size_t count = 0;

	for (size_t at = 0; (at = str_find(text, STR("\r\nHost: "), at)) != (size_t)-1; at++)
		count++;
	return count;
}

/* The same bytes inside a tunnel: what is ready goes on with the tunnel's host. */
static void read_inside(struct str bytes)
{
	static const struct network_host tunnel = {.kind = NETWORK_NAME,
						   .text = "example.org"};
	struct http_request request;
	struct buf out;
	struct err err = {0};

	if (http_request_read_inside(bytes, &tunnel, 8080, &request, &err) != REQUEST_READY)
		return;
	assert(request.size <= bytes.size && !request.connect && request.port == 8080);
	assert(network_same_host(&request.host, &tunnel));
	buf_init(&out, 2 * REQUEST_HEAD_MAX);
	if (http_request_print(bytes, &request, &out)) {
		assert(count_hosts(buf_str(&out)) == 1);
		assert(str_find(buf_str(&out), STR("\r\nHost: example.org:8080\r\n"), 0) !=
		       (size_t)-1);
		assert(str_find(buf_str(&out), STR("\n\r\n"), 0) + 3 == out.size);
	}
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = {(const char *)data, size};
	struct http_request request, again;
	struct body whole, apart;
	struct buf out;
	struct err err = {0};
	size_t at = 0;

	read_inside(bytes);
	if (http_request_read(bytes, &request, &err) != REQUEST_READY)
		return 0;
	assert(request.size <= size && request.port != 0 && request.host.text[0] != '\0');
	assert(strlen(request.token) == 0 || strlen(request.token) == PROXY_TOKEN);
	assert(http_request_read(str_part(bytes, 0, request.size), &again, &err) ==
	       REQUEST_READY);
	assert(http_request_read(str_part(bytes, 0, request.size - 1), &again, &err) !=
	       REQUEST_READY);
	if (request.connect)
		return 0;
	buf_init(&out, 2 * REQUEST_HEAD_MAX);
	if (http_request_print(bytes, &request, &out)) {
		assert(count_hosts(buf_str(&out)) == 1);
		assert(str_ends(buf_str(&out), STR("Connection: close\r\n\r\n")));
		assert(str_find(buf_str(&out), STR("\n\r\n"), 0) + 3 == out.size);
	}
	buf_fini(&out);
	struct str rest = str_part(bytes, request.size, size);
	body_begin(&whole, HTTP_REQUEST, request.body, request.body_bytes);
	size_t taken = body_take(&whole, rest);
	body_begin(&apart, HTTP_REQUEST, request.body, request.body_bytes);
	while (at < rest.size && body_take(&apart, str_part(rest, at, 1)) == 1)
		at++;
	assert(at == taken && whole.done == apart.done && whole.broken == apart.broken);
	return 0;
}
