/*
 * request: plays the cases in cases/, whose heads explain them, and compares the readers
 * of heads and answers with themselves in pieces.
 */
#include "../base/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/library.h"
#include "base/memory.h"
#include "base/value.h"
#include "broker/request.h"

extern const struct embedded_file broker_cases[];

enum { KEYS_MAX = 4, TEXT_MAX = 64 << 10, DOOR_PORT = 4000 };

/* The credentials of the cases beside the shipped ones. */
static struct scrub *scrub_of(struct str secret, const char *user)
{
	struct scrub *scrub = scrub_new();

	(void)scrub_learn(scrub, secret, user, 0);
	return scrub;
}

static const char entries_text[] =
	"{"
	"\"query\": {\"from\": [\"env:A\"], \"hosts\": [\"query.example:8443\"],"
	" \"place\": \"query: k\"},"
	"\"basic\": {\"from\": [\"env:A\"], \"hosts\": [\"basic.example\"],"
	" \"place\": \"basic:git\"},"
	"\"anonymous\": {\"from\": [\"env:A\"], \"hosts\": [\"anonymous.example\"],"
	" \"place\": \"bearer\", \"anonymous\": true},"
	"\"keyless\": {\"from\": [\"env:A\"], \"hosts\": [\"keyless.example\"],"
	" \"place\": \"bearer\", \"keyless\": [\"GET /list/*\"]},"
	"\"rules\": {\"from\": [\"env:A\"], \"hosts\": [\"rules.example\"], \"place\": \"bearer\","
	" \"allow\": [\"GET /items/**\", \"POST /session/*/upload\"],"
	" \"foreign\": [\"/session/*/upload\"]},"
	"\"foreign\": {\"from\": [\"env:A\"], \"hosts\": [\"foreign.example\"],"
	" \"place\": \"bearer\", \"foreign\": [\"/session/**\"]},"
	"\"forge\": {\"from\": [\"env:A\"], \"hosts\": [\"forge.example\"],"
	" \"place\": \"bearer\", \"repositories\": \"github\"},"
	"\"fetches\": {\"from\": [\"env:A\"], \"hosts\": [\"forge.example\"],"
	" \"place\": \"bearer\", \"repositories\": \"github\", \"allow\": [\"fetch\"]}"
	"}";

/* For which the keys of forges hold. */
static const char *const repositories[] = {"github.com/me/own", "gitlab.com/group/sub/own",
					   "forge.example/me/own", NULL};

/* One case. */
struct play {
	char title[128];
	struct credential credentials[KEYS_MAX];
	char phantoms[KEYS_MAX][96];
	struct request_key keys[KEYS_MAX];
	size_t count;
	struct network_host tls;
	bool is_tls;
	char method[16];
	bool websocket;
	struct buf sent, wanted;
	char refused[256], state[64];
};

static void play_init(struct play *play)
{
	*play = (struct play){0};
	buf_init(&play->sent, TEXT_MAX);
	buf_init(&play->wanted, TEXT_MAX);
	(void)snprintf(play->method, sizeof(play->method), "GET");
}

static void play_fini(struct play *play)
{
	for (size_t i = 0; i < play->count; i++)
		credential_fini(&play->credentials[i]);
	buf_fini(&play->sent);
	buf_fini(&play->wanted);
}

static void use(struct play *play, struct str names)
{
	auto_value struct value *entries = NULL;
	struct str name;

	assert_true(value_parse(STR(entries_text), 0, &entries, NULL));
	while (str_next_word(&names, &name)) {
		struct credential *credential = &play->credentials[play->count];
		char text[64];
		struct err err = {0};

		(void)snprintf(text, sizeof(text), "%.*s", (int)name.size, name.data);
		if (!credential_find(entries, text, credential, &err))
			fail_msg("%s: %s", play->title, err.text);
		(void)snprintf(play->phantoms[play->count], sizeof(play->phantoms[0]),
			       "phantom-%s", text);
		play->keys[play->count] =
			(struct request_key){credential, play->phantoms[play->count],
					     repositories};
		play->count++;
	}
}

static void copy(char *to, size_t room, struct str text)
{
	(void)snprintf(to, room, "%.*s", (int)text.size, text.data);
}

/* LINE without its mark WORD; false when it has another one. */
static bool is_marked(struct str line, const char *word, struct str *rest)
{
	const size_t size = strlen(word);

	if (!str_starts(line, str_of(word)) || (line.size > size && line.data[size] != ' '))
		return false;
	*rest = str_part(line, size + 1, line.size);
	return true;
}

/* Read LINE of a case; SENT and WANTED are the marks of what is sent and comes out. */
static void read_line(struct play *play, struct str line, const char *sent,
		      const char *wanted)
{
	struct str rest;

	if (is_marked(line, "use", &rest)) {
		use(play, rest);
	} else if (is_marked(line, "tls", &rest)) {
		play->is_tls = network_parse_host(rest, &play->tls, NULL);
		assert_true(play->is_tls);
	} else if (is_marked(line, "method", &rest)) {
		copy(play->method, sizeof(play->method), rest);
	} else if (is_marked(line, "websocket", &rest)) {
		play->websocket = true;
	} else if (is_marked(line, "state", &rest)) {
		copy(play->state, sizeof(play->state), rest);
	} else if (is_marked(line, "!", &rest)) {
		copy(play->refused, sizeof(play->refused), rest);
	} else if (is_marked(line, sent, &rest)) {
		(void)buf_addf(&play->sent, "%.*s\r\n", (int)rest.size, rest.data);
	} else if (is_marked(line, wanted, &rest)) {
		(void)buf_addf(&play->wanted, "%.*s\r\n", (int)rest.size, rest.data);
	} else if (line.size > 0 && line.data[0] != '#') {
		fail_msg("%s: what is %.*s?", play->title, (int)line.size, line.data);
	}
}

/* The last line end of a case is no part of a body. */
static struct str without_end(const struct buf *text)
{
	return str_trim(buf_str(text));
}

static void compare(const struct play *play, const struct buf *out)
{
	if (!str_equal(without_end(out), without_end(&play->wanted)))
		fail_msg("%s: it is\n%s\nnot\n%s", play->title, out->data,
			 play->wanted.data);
}

static void check_refusal(const struct play *play, unsigned status, const char *sentence)
{
	char text[ERR_TEXT_MAX + 16];

	(void)snprintf(text, sizeof(text), "%u %s", status, sentence);
	if (play->refused[0] == '\0' ||
	    strncmp(text, play->refused, strlen(play->refused)) != 0)
		fail_msg("%s: refused with\n%s\nnot\n%s", play->title, text, play->refused);
	/* No sentence holds what may be a key. */
	assert_null(strstr(sentence, "secret-"));
	assert_null(strstr(sentence, "phantom-"));
	assert_null(strstr(sentence, "somebody"));
}

static void play_request(const struct play *play)
{
	const struct request_door door = {.keys = play->keys,
					  .count = play->count,
					  .host = play->is_tls ? &play->tls : NULL,
					  .port = play->is_tls ? 443 : DOOR_PORT};
	struct str sent = buf_str(&play->sent);
	struct request request;
	struct err err = {0};
	struct buf out;

	/* Each beginning is incomplete, or already broken. */
	for (size_t size = 0; size + 1 < sent.size; size++)
		assert_int_not_equal(request_read(str_part(sent, 0, size), &door,
						  &request, NULL),
				     REQUEST_READY);
	if (request_read(sent, &door, &request, &err) != REQUEST_READY) {
		check_refusal(play, 0, err.text);
		return;
	}
	assert_int_equal(request.head.size, sent.size);
	if (request.verdict == REQUEST_REFUSED) {
		check_refusal(play, request.status, err.text);
		return;
	}
	if (play->refused[0] != '\0')
		fail_msg("%s: it passes", play->title);
	const char *name = request.key->credential->name;
	char secret[64];
	(void)snprintf(secret, sizeof(secret),
		       strcmp(name, "query") == 0 ? "secret/%s" : "secret-%s", name);
	buf_init(&out, TEXT_MAX);
	assert_true(request_print(&request,
				  request.verdict == REQUEST_KEYED ? str_of(secret)
								   : (struct str){0},
				  &out));
	compare(play, &out);
	buf_fini(&out);
}

static void add_state(char *state, size_t room, bool is, const char *word)
{
	const size_t used = strlen(state);

	if (is)
		(void)snprintf(state + used, room - used, "%s%s", used > 0 ? " " : "", word);
}

/* Carry what is behind the head of REPLY in pieces of STEP bytes. */
static void play_body(const struct play *play, const struct reply *reply,
		      const struct scrub *scrub, size_t step, struct buf *out,
		      char state[64])
{
	struct str rest = str_part(buf_str(&play->sent), reply->head.size, TEXT_MAX);
	struct reply_carry carry;
	bool closed;

	reply_carry_init(&carry, reply, scrub);
	while (rest.size > 0 && !carry.body.done && !carry.body.broken) {
		size_t taken = reply_carry_take(&carry, str_part(rest, 0, step), out);

		rest = str_part(rest, taken, rest.size);
	}
	closed = reply_carry_close(&carry, out) && !carry.body.done;
	add_state(state, 64, carry.body.done, "whole");
	add_state(state, 64, carry.body.broken, "broken");
	add_state(state, 64, closed, "closed");
	add_state(state, 64, !closed && !carry.body.done && !carry.body.broken, "open");
	reply_carry_fini(&carry);
}

static void play_reply_in_steps(const struct play *play, const struct request *request,
				const struct scrub *scrub, size_t step)
{
	struct reply reply;
	char state[64] = "";
	struct err err = {0};
	struct buf out;

	if (reply_read(buf_str(&play->sent), request, &reply, &err) != REQUEST_READY) {
		if (play->refused[0] == '\0' ||
		    strncmp(err.text, play->refused, strlen(play->refused)) != 0)
			fail_msg("%s: refused with\n%s\nnot\n%s", play->title, err.text,
				 play->refused);
		return;
	}
	if (play->refused[0] != '\0')
		fail_msg("%s: it passes", play->title);
	buf_init(&out, TEXT_MAX);
	if (!reply.interim) {
		assert_true(reply_print(&reply, scrub, &out));
		play_body(play, &reply, scrub, step, &out, state);
		add_state(state, sizeof(state), reply.reusable, "reusable");
		add_state(state, sizeof(state), reply.upgraded, "upgraded");
	}
	add_state(state, sizeof(state), reply.interim, "interim");
	/* Chunks are as large as the pieces that came. */
	if (step > 1 || reply.body != BODY_CHUNKED)
		compare(play, &out);
	assert_null(strstr(out.data, "secret-anthropic"));
	assert_string_equal(state, play->state);
	buf_fini(&out);
}

static void play_reply(const struct play *play)
{
	struct scrub *scrub = scrub_of(STR("secret-anthropic"), NULL);
	const struct request_door door = {play->keys, play->count, NULL, DOOR_PORT};
	struct request request;
	struct err err = {0};
	struct buf asked;

	buf_init(&asked, TEXT_MAX);
	(void)buf_addf(&asked,
		       "%s /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
		       "x-api-key: phantom-anthropic\r\n\r\n",
		       play->method, DOOR_PORT);
	if (request_read(buf_str(&asked), &door, &request, &err) != REQUEST_READY)
		fail_msg("%s: %s", play->title, err.text);
	request.upgrades = play->websocket;
	play_reply_in_steps(play, &request, scrub, TEXT_MAX);
	play_reply_in_steps(play, &request, scrub, 1);
	buf_fini(&asked);
	scrub_free(scrub);
}

/* Play the cases of the file NAME; returns how many there were. */
static size_t play_file(const char *name, const char *sent, const char *wanted,
			void (*one)(const struct play *play))
{
	const struct embedded_file *file = broker_cases;
	struct str rest, line, title;
	struct play play;
	size_t count = 0;

	while (file->name != NULL && strstr(file->name, name) == NULL)
		file++;
	assert_non_null(file->name);
	rest = (struct str){file->data, file->size};
	play_init(&play);
	while (true) {
		const bool more = str_next_line(&rest, &line);

		if (more && !is_marked(line, "##", &title)) {
			read_line(&play, line, sent, wanted);
			continue;
		}
		if (play.sent.size > 0) {
			if (play.count == 0)
				use(&play, STR("anthropic"));
			one(&play);
			count++;
		}
		play_fini(&play);
		if (!more)
			return count;
		play_init(&play);
		copy(play.title, sizeof(play.title), title);
	}
}

static void requests_are_judged(void **state)
{
	(void)state;
	assert_true(play_file("request.case", ">", ">>", play_request) > 45);
}

static void answers_are_carried(void **state)
{
	(void)state;
	assert_true(play_file("reply.case", "<", "<<", play_reply) > 15);
}

static void each_service_is_refused_in_its_own_form(void **state)
{
	static const struct {
		enum credential_errors errors;
		unsigned status;
		const char *body;
	} rows[] = {
		{ERRORS_MESSAGE, 403, "{\"message\":\"a \\\"b\\\"\"}\n"},
		{ERRORS_ANTHROPIC, 403,
		 "{\"type\":\"error\",\"error\":{\"type\":\"permission_error\","
		 "\"message\":\"a \\\"b\\\"\"}}\n"},
		{ERRORS_OPENAI, 502,
		 "{\"error\":{\"type\":\"api_error\",\"param\":null,\"code\":\"glovebox\","
		 "\"message\":\"a \\\"b\\\"\"}}\n"},
		{ERRORS_GOOGLE, 504,
		 "{\"error\":{\"code\":504,\"status\":\"DEADLINE_EXCEEDED\","
		 "\"message\":\"a \\\"b\\\"\"}}\n"},
	};
	struct buf out;

	(void)state;
	buf_init(&out, TEXT_MAX);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct http_head head;
		struct err err = {0};

		buf_clear(&out);
		assert_true(request_print_error(rows[i].errors, rows[i].status, "a \"b\"",
						&out));
		assert_int_equal(http_head_read(buf_str(&out), HTTP_ANSWER, &head, &err),
				 REQUEST_READY);
		assert_int_equal(head.status, rows[i].status);
		assert_int_equal(head.body_bytes, strlen(rows[i].body));
		assert_string_equal(out.data + head.size, rows[i].body);
	}
	buf_fini(&out);
}

/* Several requests on one connection: the second is judged for itself. */
static void each_request_is_judged_for_itself(void **state)
{
	static const char both[] =
		"POST /anthropic/v1/messages HTTP/1.1\r\nHost: 127.0.0.1:4000\r\n"
		"x-api-key: phantom-anthropic\r\nContent-Length: 4\r\n\r\nbody"
		"GET /anthropic/v1/models HTTP/1.1\r\nHost: 127.0.0.1:4000\r\n"
		"x-api-key: other\r\nConnection: close\r\n\r\n";
	struct play play;
	struct request request;
	struct body body;
	struct err err = {0};

	(void)state;
	play_init(&play);
	use(&play, STR("anthropic"));
	const struct request_door door = {play.keys, play.count, NULL, DOOR_PORT};
	struct str rest = STR(both);
	assert_int_equal(request_read(rest, &door, &request, &err), REQUEST_READY);
	assert_int_equal(request.verdict, REQUEST_KEYED);
	assert_false(request.closes);
	rest = str_part(rest, request.head.size, rest.size);
	body_begin(&body, HTTP_REQUEST, request.head.body, request.head.body_bytes);
	rest = str_part(rest, body_take(&body, rest), rest.size);
	assert_true(body.done);
	assert_int_equal(request_read(rest, &door, &request, &err), REQUEST_READY);
	assert_int_equal(request.verdict, REQUEST_REFUSED);
	assert_true(request.closes);
	play_fini(&play);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_judged),
		cmocka_unit_test(answers_are_carried),
		cmocka_unit_test(each_service_is_refused_in_its_own_form),
		cmocka_unit_test(each_request_is_judged_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
