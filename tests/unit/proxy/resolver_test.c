/*
 * Tests of proxy/resolver: whole lookups, with a name server in the same loop that answers
 * as the first label of the name says.
 */
#include "../base/unit.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "process/loop.h"
#include "proxy/resolver.h"

enum {
	ASKED_MAX = 64,
	MANY = 8,
	FLAGS_AT = 2,
	COUNT_AT = 7, /* the low byte of the number of answers */
	OPCODE_AT = 2,
	NO_NAME = 3,
	SERVER_FAILURE = 2,
	GUESSES = 40,
};

struct server {
	struct watch watch;
	struct loop *loop;
	struct resolver resolver;
	size_t asked;
	char names[ASKED_MAX][NETWORK_NAME_MAX + 1];
	in_port_t ports[ASKED_MAX];
	uint16_t numbers[ASKED_MAX];
};

/* One datagram of a client, and where it came from. */
struct question {
	int fd;
	struct sockaddr_in from;
	struct str bytes;
	bool six;
};

static void say(const struct question *question, struct buf *message)
{
	(void)sendto(question->fd, message->data, message->size, 0,
		     (const struct sockaddr *)&question->from, sizeof(question->from));
}

/* The true answer with CODE, and the address of the wanted kind when CODE is 0. */
static void answer_begin(const struct question *question, int code, struct buf *message)
{
	static const char four[] = "\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01";
	static const char six[] = "\xc0\x0c\0\x1c\0\x01\0\0\0\x3c\0\x10\x20\x01\x0d\xb8"
				  "\0\0\0\0\0\0\0\0\0\0\0\x01";

	buf_clear(message);
	(void)buf_addstr(message, question->bytes);
	message->data[FLAGS_AT] = (char)0x81;
	message->data[FLAGS_AT + 1] = (char)(0x80 | code);
	if (code != 0)
		return;
	message->data[COUNT_AT] = 1;
	(void)buf_add(message, question->six ? six : four,
		      question->six ? sizeof(six) - 1 : sizeof(four) - 1);
}

/* Send what is no answer, or not this one's. False when WAY is another. */
static bool say_strange(const struct question *question, struct str way, struct buf *message)
{
	if (str_is(way, "echo")) {
		buf_clear(message);
		(void)buf_addstr(message, question->bytes);
	} else if (str_is(way, "torn")) {
		buf_truncate(message, message->size - 1);
	} else if (str_is(way, "half")) {
		buf_truncate(message, message->size / 2);
	} else if (str_is(way, "opcode")) {
		message->data[OPCODE_AT] = (char)0x91;
	} else if (str_is(way, "number")) {
		message->data[0] ^= 1;
	} else if (str_is(way, "name")) {
		message->data[sizeof("123456789012")] ^= 1;
	} else if (str_is(way, "empty")) {
		buf_clear(message);
	} else {
		return false;
	}
	say(question, message);
	return true;
}

static void answer(struct server *server, const struct question *question, struct str name)
{
	const struct str way = str_part(name, 0, str_find(name, STR("."), 0));
	struct buf message;

	buf_init(&message, 4096);
	answer_begin(question, 0, &message);
	if (str_is(way, "guess") && server->asked == (question->six ? 2 : 1)) {
		message.data[0] ^= 1;
		for (size_t i = 0; i < GUESSES; i++)
			say(question, &message);
	} else if (str_is(way, "only4") && question->six) {
		answer_begin(question, SERVER_FAILURE, &message);
		say(question, &message);
	} else if (str_is(way, "none") || str_is(name, "short.corp.test")) {
		answer_begin(question, NO_NAME, &message);
		say(question, &message);
	} else if (!str_is(way, "silent")) {
		if (say_strange(question, way, &message))
			answer_begin(question, 0, &message);
		say(question, &message);
	}
	buf_fini(&message);
}

static void server_ready(struct watch *watch, short events)
{
	struct server *server = watch->context;
	struct question question = {.fd = watch->fd};
	socklen_t size = sizeof(question.from);
	struct network_host host;
	char bytes[512];
	ssize_t n = recvfrom(watch->fd, bytes, sizeof(bytes), 0,
			     (struct sockaddr *)&question.from, &size);

	(void)events;
	assert_true(n > 0 && server->asked < ASKED_MAX);
	question.bytes = (struct str){bytes, (size_t)n};
	question.six = bytes[n - 3] == DNS_AAAA;
	assert_true(resolver_dns_read_question(question.bytes, &host));
	memcpy(server->names[server->asked], host.text, sizeof(server->names[0]));
	server->ports[server->asked] = question.from.sin_port;
	memcpy(&server->numbers[server->asked++], bytes, sizeof(server->numbers[0]));
	answer(server, &question, str_of(host.text));
}

static int setup(void **state)
{
	struct server *server = calloc(1, sizeof(*server));
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	char text[64];

	server->loop = loop_new();
	server->resolver.loop = server->loop;
	server->watch = (struct watch){.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
				       .events = POLLIN,
				       .ready = server_ready,
				       .context = server};
	assert_int_equal(bind(server->watch.fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(server->watch.fd, (struct sockaddr *)&address, &size),
			 0);
	(void)snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(address.sin_port));
	names_init(&server->resolver.names);
	assert_true(names_set_server(&server->resolver.names, text));
	loop_add(server->loop, &server->watch);
	*state = server;
	return 0;
}

static int teardown(void **state)
{
	struct server *server = *state;

	names_fini(&server->resolver.names);
	loop_remove(&server->watch);
	fd_close(&server->watch.fd);
	loop_free(server->loop);
	free(server);
	return 0;
}

static void note(struct lookup *lookup, const char *why)
{
	const char **told = lookup->context;

	*told = why;
}

/* Look NAME up until LOOKUP has ended. Returns the reason it gives. */
static const char *look_up(struct server *server, struct lookup *lookup, const char *name)
{
	const char *told = NULL;

	*lookup = (struct lookup){.done = note, .context = &told};
	resolver_look_up(&server->resolver, lookup, name);
	while (told == NULL)
		loop_turn(server->loop, CLOCK_NEVER);
	return told;
}

static void assert_both(const struct lookup *lookup, const char *what)
{
	if (lookup->count != 2 || strcmp(lookup->addresses[0].text, "192.0.2.1") != 0 ||
	    strcmp(lookup->addresses[1].text, "2001:db8::1") != 0)
		fail_msg("%s: %zu addresses", what, lookup->count);
}

static void both_families_are_asked_for(void **state)
{
	struct server *server = *state;
	struct lookup lookup;

	(void)look_up(server, &lookup, "a.test");
	assert_both(&lookup, "a.test");
	assert_int_equal(server->asked, 2);
	assert_false(lookup.local);
}

static void what_is_no_answer_is_passed_over(void **state)
{
	static const char *const names[] = {"echo.test",   "torn.test", "half.test",
					    "opcode.test", "name.test", "number.test",
					    "empty.test"};
	struct server *server = *state;
	struct lookup lookup;

	for (size_t i = 0; i < UNIT_COUNT(names); i++) {
		(void)look_up(server, &lookup, names[i]);
		assert_both(&lookup, names[i]);
	}
	/* It waited for the answer, and did not ask again. */
	assert_int_equal(server->asked, 2 * UNIT_COUNT(names));
}

static void a_sender_that_guesses_is_left_for_a_new_question(void **state)
{
	struct server *server = *state;
	struct lookup lookup;

	(void)look_up(server, &lookup, "guess.test");
	assert_both(&lookup, "guess.test");
	assert_int_equal(server->asked, 4);
}

static void one_family_is_found_when_the_other_fails(void **state)
{
	struct server *server = *state;
	struct lookup lookup;

	(void)look_up(server, &lookup, "only4.test");
	assert_int_equal(lookup.count, 1);
	assert_string_equal(lookup.addresses[0].text, "192.0.2.1");
	assert_string_equal(look_up(server, &lookup, "none.test"),
			    "no name server knows it");
	assert_int_equal(lookup.count, 0);
}

/* A port and a number to guess: who does not see the question has to guess both. */
static void each_question_has_its_own_port_and_number(void **state)
{
	struct server *server = *state;
	struct lookup lookups[MANY];
	const char *told[MANY] = {0};
	unsigned same = 0;

	for (size_t i = 0; i < MANY; i++) {
		lookups[i] = (struct lookup){.done = note, .context = &told[i]};
		resolver_look_up(&server->resolver, &lookups[i], "a.test");
	}
	for (size_t i = 0; i < MANY; i++) {
		while (told[i] == NULL)
			loop_turn(server->loop, CLOCK_NEVER);
		assert_both(&lookups[i], "a.test");
	}
	assert_int_equal(server->asked, 2 * MANY);
	for (size_t i = 0; i < server->asked; i++) {
		for (size_t j = 0; j < i; j++) {
			assert_int_not_equal(server->ports[i], server->ports[j]);
			same += server->numbers[i] == server->numbers[j];
		}
	}
	/* Two of sixteen random numbers may be the same, rarely. */
	assert_true(same <= 1);
}

static void a_lookup_that_is_given_up_tells_nothing(void **state)
{
	struct server *server = *state;
	const char *told = NULL;
	struct lookup lookup = {.done = note, .context = &told}, other;

	resolver_cancel(&lookup);
	resolver_look_up(&server->resolver, &lookup, "a.test");
	resolver_cancel(&lookup);
	resolver_cancel(&lookup);
	(void)look_up(server, &other, "b.test");
	assert_both(&other, "b.test");
	assert_null(told);
	assert_int_equal(server->asked, 4);
}

static void suffixes_come_before_a_name_without_a_dot(void **state)
{
	struct server *server = *state;
	struct lookup lookup;

	names_read_servers(&server->resolver.names, STR("search corp.test other.test\n"));
	(void)look_up(server, &lookup, "short");
	assert_both(&lookup, "short");
	assert_int_equal(server->asked, 4);
	assert_string_equal(server->names[0], "short.corp.test");
	assert_string_equal(server->names[2], "short.other.test");
	(void)look_up(server, &lookup, "a.test");
	assert_string_equal(server->names[4], "a.test");
	/* Nobody is asked for this one. */
	(void)look_up(server, &lookup, "localhost");
	assert_int_equal(lookup.count, 2);
	assert_true(lookup.local);
	assert_int_equal(server->asked, 6);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(both_families_are_asked_for),
		TEST(what_is_no_answer_is_passed_over),
		TEST(a_sender_that_guesses_is_left_for_a_new_question),
		TEST(one_family_is_found_when_the_other_fails),
		TEST(each_question_has_its_own_port_and_number),
		TEST(a_lookup_that_is_given_up_tells_nothing),
		TEST(suffixes_come_before_a_name_without_a_dot),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
