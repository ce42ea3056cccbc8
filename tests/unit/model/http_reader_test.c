/* Tests of model/http_reader and of what model/http_plain takes. */
#include "../base/unit.h"

#include <errno.h>
#include <string.h>

#include "model/http_plain.h"
#include "model/http_reader.h"

struct heard {
	struct buf lines, body;
	size_t most; /* bytes after which it wants no more; 0: all */
};

static void hear_line(void *context, struct str line)
{
	struct heard *heard = context;

	(void)buf_addstr(&heard->lines, line);
	(void)buf_addc(&heard->lines, '|');
}

static bool hear_bytes(void *context, struct str bytes)
{
	struct heard *heard = context;

	(void)buf_addstr(&heard->body, bytes);
	return heard->most == 0 || heard->body.size < heard->most;
}

static void begin(struct http_reader *reader, struct heard *heard)
{
	*heard = (struct heard){0};
	buf_init(&heard->lines, 1 << 16);
	buf_init(&heard->body, 1 << 16);
	http_reader_init(reader);
	reader->line = hear_line;
	reader->bytes = hear_bytes;
	reader->context = heard;
}

static void end(struct http_reader *reader, struct heard *heard)
{
	http_reader_fini(reader);
	buf_fini(&heard->lines);
	buf_fini(&heard->body);
}

/* TEXT in pieces of STEP, and then, if it is still wanted, the connection's end. */
static enum http_read feed(struct http_reader *reader, const char *text, size_t step,
			   struct err *err)
{
	struct str rest = str_of(text);
	enum http_read read = HTTP_READ_MORE;

	while (read == HTTP_READ_MORE && rest.size > 0) {
		read = http_reader_feed(reader, str_part(rest, 0, step), err);
		rest = str_part(rest, step, rest.size);
	}
	return read == HTTP_READ_MORE ? http_reader_end(reader, err) : read;
}

static void an_answer_is(const char *text, long status, const char *body, bool keeps)
{
	for (size_t step = 1; step <= strlen(text); step++) {
		struct http_reader reader;
		struct heard heard;
		struct err err = {0};

		begin(&reader, &heard);
		if (feed(&reader, text, step, &err) != HTTP_READ_DONE)
			fail_msg("%s: %s", text, err.text);
		assert_int_equal(reader.status, status);
		assert_string_equal(heard.body.data, body);
		/* What lies behind an answer is seen where it came with its end. */
		if (step == strlen(text) || keeps)
			assert_int_equal(reader.keeps, keeps);
		end(&reader, &heard);
	}
}

static void bodies_of_all_kinds_are_read_in_any_pieces(void **state)
{
	(void)state;
	an_answer_is("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello",
		     true);
	an_answer_is("HTTP/1.1 200 OK\r\ncontent-length:5\r\nConnection: close\r\n\r\nhello",
		     200, "hello", false);
	an_answer_is("HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n", 503, "", true);
	an_answer_is("HTTP/1.1 204 No Content\r\n\r\n", 204, "", true);
	an_answer_is("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", 200, "hi", true);
	an_answer_is("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
		     "5\r\nhello\r\n1;name=x\r\n,\r\nA\r\n 123456789\r\n0\r\nx-more: 1\r\n\r\n",
		     200, "hello, 123456789", true);
	an_answer_is("HTTP/1.0 200 OK\r\n\r\nto the end", 200, "to the end", false);
	an_answer_is("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x", false);
	an_answer_is("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nx: y\r\n\r\n"
		     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
		     200, "x", true);
}

static void what_lies_behind_an_answer_ends_the_connection(void **state)
{
	(void)state;
	an_answer_is("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n",
		     200, "x", false);
	an_answer_is("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n"
		     "\r\n1\r\nx\r\n0\r\n\r\n",
		     200, "x", false);
}

static void is_broken(const char *text, const char *says)
{
	struct http_reader reader;
	struct heard heard;
	struct err err = {0};

	begin(&reader, &heard);
	assert_int_equal(feed(&reader, text, 7, &err), HTTP_READ_BROKEN);
	assert_int_equal(err.code, EPROTO);
	if (strstr(err.text, says) == NULL)
		fail_msg("%s", err.text);
	end(&reader, &heard);
}

static void what_is_no_answer_or_half_of_one_is_an_error(void **state)
{
	(void)state;
	is_broken("", "closed without an answer");
	is_broken("HTTP/1.1 200 OK\r\nContent-", "in the middle");
	is_broken("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "in the middle");
	is_broken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
		  "in the middle");
	is_broken("SSH-2.0-OpenSSH_9.2p1 Debian\r\n", "no answer of HTTP");
	is_broken("HTTP/2 200\r\n\r\n", "no answer of HTTP");
	is_broken("HTTP/1.1 2000 OK\r\n\r\n", "no answer of HTTP");
	is_broken("HTTP/1.1 101 Switching Protocols\r\n\r\n", "something else");
	is_broken("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no size");
	is_broken("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
		  "no size");
	is_broken("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
		  "no size");
	is_broken("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "not known");
	is_broken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "no size");
	is_broken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n",
		  "longer than it says");
}

static void heads_have_ceilings(void **state)
{
	static char many[400 << 10];
	size_t at = 0;

	(void)state;
	while (at < sizeof(many) - 64)
		at += (size_t)snprintf(many + at, 64, "HTTP/1.1 100 Go on\r\n\r\n");
	is_broken(many, "one interim answer after the other");
	at = (size_t)snprintf(many, 64, "HTTP/1.1 200 OK\r\n");
	while (at < sizeof(many) - 64)
		at += (size_t)snprintf(many + at, 64,
				       "x-more: and more, and more still\r\n");
	is_broken(many, "too long");
	memset(many + 17, 'x', sizeof(many) - 18);
	is_broken(many, "too long");
}

static void who_wants_no_more_gets_no_more(void **state)
{
	struct http_reader reader;
	struct heard heard;
	struct err err = {0};

	(void)state;
	begin(&reader, &heard);
	heard.most = 1;
	assert_int_equal(feed(&reader,
			      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			      "1\r\na\r\n1\r\nb\r\n0\r\n\r\n",
			      1000, &err),
			 HTTP_READ_STOPPED);
	assert_string_equal(heard.body.data, "a");
	end(&reader, &heard);
}

static void only_plain_addresses_of_this_machine_are_taken(void **state)
{
	static const char *const taken[] = {"http://127.0.0.1/",
					    "http://127.0.0.1:11434/v1/chat?x=%20",
					    "http://[::1]:1/a", "http://localhost",
					    "http://localhost:8080/v1"};
	static const char *const others[] = {"https://127.0.0.1/",
					     "http://127.0.0.1.example.org/",
					     "http://localhost.example/",
					     "http://127.0.0.2/",
					     "http://example.org/",
					     "http://me@127.0.0.1/",
					     "http://127.0.0.1:0/",
					     "http://127.0.0.1:65536/",
					     "http://127.0.0.1:8x/",
					     "http://[::1]x/",
					     "http://127.0.0.1/a b",
					     "http://127.0.0.1/a\r\nx: y",
					     "http://127.0.0.1/#a",
					     "http://127.0.0.1:/",
					     "127.0.0.1:8080",
					     "http://127.0.0.1/\xc3\xa4"};

	(void)state;
	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
		if (!http_plain_takes(taken[i]))
			fail_msg("%s", taken[i]);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (http_plain_takes(others[i]))
			fail_msg("%s", others[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_of_all_kinds_are_read_in_any_pieces),
		cmocka_unit_test(what_lies_behind_an_answer_ends_the_connection),
		cmocka_unit_test(what_is_no_answer_or_half_of_one_is_an_error),
		cmocka_unit_test(heads_have_ceilings),
		cmocka_unit_test(who_wants_no_more_gets_no_more),
		cmocka_unit_test(only_plain_addresses_of_this_machine_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
