/* Tests of proxy/request and proxy/body: one meaning for each head, one end for each body. */
#include "../base/unit.h"

#include <string.h>

#include "proxy/http.h"

/* "glovebox:" and thirty-two times "a" */
#define AUTH \
	"Proxy-Authorization: Basic Z2xvdmVib3g6YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=\r\n"
#define TOKEN "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static enum request_answer read_text(const char *text, struct http_request *request,
				     struct err *err)
{
	return http_request_read(str_of(text), request, err);
}

static void requests_are_read(void **state)
{
	static const struct {
		const char *text, *host;
		unsigned port;
		bool connect, authorized;
	} rows[] = {
		{"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n" AUTH "\r\n",
		 "example.org", 443, true, true},
		{"CONNECT Example.org:8443 HTTP/1.0\r\n\r\n", "example.org", 8443, true,
		 false},
		{"CONNECT [::1]:443 HTTP/1.1\r\nhost: 127.0.0.1:8080\r\n\r\n", "::1", 443,
		 true, false},
		{"GET http://example.org/a?b HTTP/1.1\r\nHost: example.org\r\n" AUTH "\r\n",
		 "example.org", 80, false, true},
		{"GET http://example.org:80 HTTP/1.1\r\nHost: example.org\r\n\r\n",
		 "example.org", 80, false, false},
		{"POST http://10.0.0.1:8080/ HTTP/1.1\r\nHost: 10.0.0.1:8080\r\n"
		 "Content-Length: 3\r\n\r\nabc",
		 "10.0.0.1", 8080, false, false},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct http_request request;
		struct err err = {0};

		if (read_text(rows[i].text, &request, &err) != REQUEST_READY)
			fail_msg("%s: %s", rows[i].text, err.text);
		assert_string_equal(request.host.text, rows[i].host);
		assert_int_equal(request.port, rows[i].port);
		assert_int_equal(request.connect, rows[i].connect);
		assert_string_equal(request.token, rows[i].authorized ? TOKEN : "");
		/* Every beginning of it is no request yet. */
		for (size_t size = 0; size < request.size; size++) {
			struct http_request part;
			assert_int_equal(http_request_read((struct str){rows[i].text, size},
							   &part, &err),
					 REQUEST_MORE);
		}
	}
}

static void what_has_two_meanings_is_refused(void **state)
{
	static const char *const texts[] = {
		"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET http://example.org/ HTTP/2\r\nHost: example.org\r\n\r\n",
		"GET http://example.org/ HTTP/1.1 x\r\nHost: example.org\r\n\r\n",
		"GET  http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"G\tT http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\nHost: example.org\n\n",
		"GET http://example.org/ HTTP/1.1\r\nHost: example.org\n\r\n",
		"GET http://example.org/\r HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nHost: b.example\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\r\nHost: example.org:81\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\r\nHost: example.org@b\r\n\r\n",
		"GET http://a@example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\r\nHost : example.org\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\r\n Host: example.org\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\r\nX: a\r\n b\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\r\nX: a\x01\r\n\r\n",
		"GET http://example.org/ HTTP/1.1\r\nno header\r\n\r\n",
		"POST http://example.org/ HTTP/1.1\r\nContent-Length: 1\r\n"
		"Content-Length: 2\r\n\r\n",
		"POST http://example.org/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
		"POST http://example.org/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
		"POST http://example.org/ HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n\r\n",
		"POST http://example.org/ HTTP/1.1\r\nContent-Length: 1\r\n"
		"Transfer-Encoding: chunked\r\n\r\n",
		"POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: \x0b"
		"chunked\r\n\r\n",
		"CONNECT example.org HTTP/1.1\r\n\r\n",
		"CONNECT example.org:443/ HTTP/1.1\r\n\r\n",
		"CONNECT 2130706433:80 HTTP/1.1\r\n\r\n",
		"CONNECT 0x7f.1:80 HTTP/1.1\r\n\r\n",
		"CONNECT ::1:80 HTTP/1.1\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"CONNECT a.example:443 HTTP/1.1\r\n" AUTH AUTH "\r\n",
		"\r\nCONNECT a.example:443 HTTP/1.1\r\n\r\n",
	};
	struct http_request request;
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(texts); i++) {
		err.text[0] = '\0';
		if (read_text(texts[i], &request, &err) != REQUEST_BAD || err.text[0] == '\0')
			fail_msg("taken: %s", texts[i]);
	}
	assert_int_equal(http_request_read((struct str){"CONNECT a\0b:443 HTTP/1.1\r\n\r\n",
							28},
					   &request, &err),
			 REQUEST_BAD);
	/* A host that is refused is still named. */
	assert_int_equal(read_text("CONNECT 127.1:80 HTTP/1.1\r\n" AUTH "\r\n", &request,
				   &err),
			 REQUEST_BAD);
	assert_string_equal(request.shown, "127.1:80");
	assert_string_equal(request.token, TOKEN);
}

static void a_request_in_a_tunnel_names_its_host(void **state)
{
	static const struct {
		const char *text;
		enum request_answer answer;
	} rows[] = {
		{"GET /a HTTP/1.1\r\nHost: example.org:8080\r\n\r\n", REQUEST_READY},
		{"GET /a HTTP/1.1\r\nHost: Example.Org\r\n\r\n", REQUEST_READY},
		{"OPTIONS * HTTP/1.1\r\nHost: example.org\r\n\r\n", REQUEST_READY},
		{"GET /a HTTP/1.1\r\nHost: example.org\r\n", REQUEST_MORE},
		{"GET /a HTTP/1.1\r\nHost: example.org:80\r\n\r\n", REQUEST_BAD},
		{"GET /a HTTP/1.1\r\nHost: b.example\r\n\r\n", REQUEST_BAD},
		{"GET /a HTTP/1.1\r\nHost: example.org\r\nHost: b.example\r\n\r\n",
		 REQUEST_BAD},
		{"GET /a HTTP/1.0\r\n\r\n", REQUEST_BAD},
		{"GET http://b.example/ HTTP/1.1\r\nHost: example.org\r\n\r\n", REQUEST_BAD},
		{"CONNECT b.example:80 HTTP/1.1\r\nHost: example.org\r\n\r\n", REQUEST_BAD},
		{"SSH-2.0-OpenSSH_9.2\r\n", REQUEST_BAD},
	};
	struct network_host host;
	struct http_request request;
	struct buf out;
	struct err err;

	(void)state;
	assert_true(network_parse_host(STR("example.org"), &host, &err));
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		if (http_request_read_inside(str_of(rows[i].text), &host, 8080, &request,
					     &err) != rows[i].answer)
			fail_msg("%s", rows[i].text);
	}
	assert_int_equal(http_request_read_inside(str_of(rows[0].text), &host, 8080,
						  &request, &err),
			 REQUEST_READY);
	buf_init(&out, REQUEST_HEAD_MAX);
	assert_true(http_request_print(str_of(rows[0].text), &request, &out));
	assert_string_equal(out.data, "GET /a HTTP/1.1\r\nHost: example.org:8080\r\n"
				      "Connection: close\r\n\r\n");
	buf_fini(&out);
}

static void a_head_has_its_ceilings(void **state)
{
	struct http_request request;
	struct buf text;
	struct err err;

	(void)state;
	buf_init(&text, 2 * REQUEST_HEAD_MAX);
	(void)buf_adds(&text, "GET http://example.org/ HTTP/1.1\r\nX: ");
	while (text.size < REQUEST_HEAD_MAX - 1)
		(void)buf_addc(&text, 'x');
	assert_int_equal(http_request_read(buf_str(&text), &request, &err), REQUEST_MORE);
	(void)buf_addc(&text, 'x');
	assert_int_equal(http_request_read(buf_str(&text), &request, &err), REQUEST_BAD);
	buf_clear(&text);
	(void)buf_adds(&text, "GET http://example.org/ HTTP/1.1\r\n");
	for (int i = 0; i <= REQUEST_HEADERS_MAX; i++)
		(void)buf_adds(&text, "X: y\r\n");
	assert_int_equal(http_request_read(buf_str(&text), &request, &err), REQUEST_BAD);
	buf_fini(&text);
}

static void only_our_credentials_are_a_token(void **state)
{
	static const char *const values[] = {
		"Basic Z2xvdmVib3g6YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYQ==", /* 31 */
		"Basic Z2xvdmVib3g6YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh", /* 33 */
		"Basic Z2xvdmVib3h4YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=", /* user */
		"Basic Z2xvdmVib3g6YWFhY*FhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=",
		("Bearer " TOKEN),
		"Basic",
		"",
	};
	struct http_request request;
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(values); i++) {
		struct buf text;

		buf_init(&text, 4096);
		(void)buf_addf(&text,
			       "CONNECT a.example:443 HTTP/1.1\r\n"
			       "Proxy-Authorization: %s\r\n\r\n",
			       values[i]);
		assert_int_equal(http_request_read(buf_str(&text), &request, &err),
				 REQUEST_READY);
		assert_string_equal(request.token, "");
		buf_fini(&text);
	}
}

static void the_server_gets_what_was_checked(void **state)
{
	static const char text[] =
		"GET HTTP://Example.org:80?q#x HTTP/1.0\r\nHOST: example.org\r\n"
		"Accept:  a \r\nConnection: keep-alive, X-Secret\r\n"
		"Proxy-Connection: keep-alive\r\nUpgrade: h2c\r\n" AUTH
		"X-Secret: 1\r\n\r\n";
	struct http_request request;
	struct buf out;
	struct err err;

	(void)state;
	assert_int_equal(read_text(text, &request, &err), REQUEST_READY);
	buf_init(&out, 4096);
	assert_true(http_request_print(str_of(text), &request, &out));
	assert_string_equal(out.data, "GET /?q HTTP/1.1\r\nHost: example.org\r\nAccept: a\r\n"
				      "X-Secret: 1\r\nConnection: close\r\n\r\n");
	buf_fini(&out);
}

static size_t taken(enum body_kind kind, uint64_t bytes, const char *text, struct body *body)
{
	size_t size = strlen(text), whole;
	struct body apart;

	body_begin(body, HTTP_REQUEST, kind, bytes);
	whole = body_take(body, (struct str){text, size});
	/* Byte by byte it ends at the same place. */
	body_begin(&apart, HTTP_REQUEST, kind, bytes);
	size_t at = 0;
	while (at < size && body_take(&apart, (struct str){text + at, 1}) == 1)
		at++;
	assert_int_equal(at, whole);
	assert_int_equal(apart.done, body->done);
	assert_int_equal(apart.broken, body->broken);
	return whole;
}

static void a_body_ends_where_it_says(void **state)
{
	struct body body;

	(void)state;
	assert_int_equal(taken(BODY_NONE, 0, "GET /", &body), 0);
	assert_true(body.done);
	assert_int_equal(taken(BODY_COUNTED, 3, "abcGET /", &body), 3);
	assert_true(body.done);
	assert_int_equal(taken(BODY_COUNTED, 9, "abc", &body), 3);
	assert_false(body.done);
	assert_int_equal(taken(BODY_CHUNKED, 0, "3\r\nabc\r\n0\r\n\r\nGET /", &body), 13);
	assert_true(body.done && !body.broken);
	assert_int_equal(taken(BODY_CHUNKED, 0, "00A\r\n0123456789\r\n0\r\n\r\n", &body),
			 22);
	assert_true(body.done);
	static const char *const broken[] = {"\r\n",      "x\r\n",
					     "3;a=b\r\n", "3\nabc",
					     "3\r\nabcd", "0\r\nA: b",
					     "-1\r\n",    "1234567890123456\r\n"};
	for (size_t i = 0; i < UNIT_COUNT(broken); i++) {
		(void)taken(BODY_CHUNKED, 0, broken[i], &body);
		assert_true(body.broken && !body.done);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_read),
		cmocka_unit_test(what_has_two_meanings_is_refused),
		cmocka_unit_test(a_request_in_a_tunnel_names_its_host),
		cmocka_unit_test(a_head_has_its_ceilings),
		cmocka_unit_test(only_our_credentials_are_a_token),
		cmocka_unit_test(the_server_gets_what_was_checked),
		cmocka_unit_test(a_body_ends_where_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
