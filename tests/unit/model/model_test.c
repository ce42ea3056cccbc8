/*
 * Tests of model/model and model/http against the fake server,
 * tests/fake/model_server.py.
 */
#include "../base/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "model/catalogue.h"
#include "model/model.h"
#include "server.h"

#define KEY "sk-test-0123456789abcdef"

/* One model at one behaviour of the server, and what came out of asking it. */
struct ask {
	struct server *server;
	struct model_options options;
	struct model *model;
	struct conversation conversation;
	struct buf text;
	int waits, retries, stop_fd,
		stop_by_sink; /* the last: written to at the first text or retry */
	uint64_t answer_max;
	char why[ERR_TEXT_MAX];
	double wait_s; /* as the last retry told it */
	enum model_finish finish;
	struct model_usage usage;
	struct err err;
};

static void stop_now(struct ask *ask)
{
	if (ask->stop_by_sink >= 0)
		assert_int_equal(write(ask->stop_by_sink, "x", 1), 1);
}

static void on_text(void *context, struct str fragment)
{
	struct ask *ask = context;

	(void)buf_addstr(&ask->text, fragment);
	stop_now(ask);
}

static void on_waiting(void *context)
{
	struct ask *ask = context;

	ask->waits++;
}

static void on_retry(void *context, const struct err *why, double wait_s)
{
	struct ask *ask = context;

	assert_true(wait_s >= 0 && wait_s <= MODEL_WAIT_MAX_S);
	ask->retries++;
	ask->wait_s = wait_s;
	(void)snprintf(ask->why, sizeof(ask->why), "%s", why->text);
	(void)buf_adds(&ask->text, "|");
	stop_now(ask);
}

static void ask_begin(struct ask *ask, void **state)
{
	memset(ask, 0, sizeof(*ask));
	ask->server = *state;
	ask->stop_fd = ask->stop_by_sink = -1;
	ask->options = (struct model_options){
		.name = "openai-chat:fake",
		.key = KEY,
		.temperature = -1,
		.retries = -1,
	};
	buf_init(&ask->text, 1 << 20);
	conversation_init(&ask->conversation);
	(void)message_add_text(conversation_add(&ask->conversation, SPEAKER_USER), "hi");
}

static void ask_open(struct ask *ask, const char *name)
{
	char url[256];

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/%s/v1", ask->server->port,
		       name);
	ask->options.base_url = url;
	if (!model_open(&ask->options, &ask->model, &ask->err))
		fail_msg("%s", ask->err.text);
	ask->options.base_url = NULL;
}

static bool ask_once(struct ask *ask)
{
	struct model_request request = {
		.conversation = &ask->conversation,
		.stop_fd = ask->stop_fd,
		.answer_max = ask->answer_max,
	};
	struct model_sink sink = {.context = ask,
				  .text = on_text,
				  .waiting = on_waiting,
				  .retry = on_retry};
	size_t before = ask->conversation.message_count;
	bool ok = model_ask(ask->model, &request, &sink, &ask->conversation, &ask->finish,
			    &ask->usage, &ask->err);

	assert_int_equal(ask->conversation.message_count, before + (ok ? 1 : 0));
	return ok;
}

static void ask_end(struct ask *ask)
{
	model_close(ask->model);
	conversation_fini(&ask->conversation);
	buf_fini(&ask->text);
}

static const struct part *last_part(const struct ask *ask)
{
	const struct message *message =
		&ask->conversation.messages[ask->conversation.message_count - 1];

	return &message->parts[message->part_count - 1];
}

/* Ask MODEL with behaviour NAME: the answer comes, after RETRIES further tries. */
static void comes_from(void **state, const char *model, const char *name, int retries)
{
	struct ask ask;
	size_t before;

	ask_begin(&ask, state);
	ask.options.name = model;
	before = server_count(ask.server, name);
	ask_open(&ask, name);
	if (!ask_once(&ask))
		fail_msg("%s: %s", name, ask.err.text);
	assert_string_equal(last_part(&ask)->text, "Hello from a fake model.");
	assert_int_equal(ask.finish, MODEL_FINISH_STOP);
	assert_int_equal(ask.usage.input, 12);
	assert_int_equal(ask.usage.output, 6);
	assert_int_equal(ask.usage.cached, 4);
	assert_int_equal(ask.retries, retries);
	/* With each try, when it is out. */
	assert_int_equal(ask.waits, retries + 1);
	assert_int_equal(server_count(ask.server, name) - before, retries + 1);
	ask_end(&ask);
}

static void comes(void **state, const char *name, int retries)
{
	comes_from(state, "openai-chat:fake", name, retries);
}

/* Ask MODEL with behaviour NAME: CODE, a text with SAYS in it, after TRIES in all. */
static void refused_by(void **state, const char *model, const char *name, int code,
		       const char *says, int tries)
{
	struct ask ask;
	size_t before;

	ask_begin(&ask, state);
	ask.options.name = model;
	before = server_count(ask.server, name);
	ask_open(&ask, name);
	assert_false(ask_once(&ask));
	if (ask.err.code != code || !strstr(ask.err.text, says))
		fail_msg("%s: %d, %s", name, ask.err.code, ask.err.text);
	assert_null(strstr(ask.err.text, KEY));
	assert_int_equal(server_count(ask.server, name) - before, tries);
	ask_end(&ask);
}

static void refuses(void **state, const char *name, int code, const char *says, int tries)
{
	refused_by(state, "openai-chat:fake", name, code, says, tries);
}

static void answers_of_all_kinds_come_in(void **state)
{
	comes(state, "normal", 0);
	comes(state, "plain", 0);
	comes(state, "drip", 0);
	comes(state, "proxy", 0);
}

static void a_connection_left_open_after_the_end_is_not_waited_for(void **state)
{
	int64_t began = clock_now_ms();

	comes(state, "open-end", 0);
	assert_true(clock_now_ms() - began < 30000);
}

static void passing_faults_are_tried_again(void **state)
{
	comes(state, "429-once", 1);
	comes(state, "500-once", 1);
	comes(state, "500-twice", 2);
	comes(state, "400-again", 1);
	comes(state, "date", 1);
	comes(state, "408-once", 1);
	comes(state, "409-once", 1);
	comes(state, "529-twice", 2);
	comes(state, "429-both", 1);
}

static void a_cut_stream_is_tried_again_and_the_front_is_told(void **state)
{
	struct ask ask;

	ask_begin(&ask, state);
	ask_open(&ask, "cut-once");
	assert_true(ask_once(&ask));
	assert_string_equal(ask.text.data, "Hello from a fake|Hello from a fake model.");
	assert_string_equal(last_part(&ask)->text, "Hello from a fake model.");
	assert_non_null(strstr(ask.why, "127.0.0.1"));
	ask_end(&ask);
}

static void the_last_try_s_failure_is_told(void **state)
{
	struct ask ask;

	ask_begin(&ask, state);
	ask.options.retries = 0;
	ask_open(&ask, "cut");
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, EPROTO);
	ask_end(&ask);

	ask_begin(&ask, state);
	ask.options.retries = 0;
	ask_open(&ask, "torn");
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, EPROTO);
	assert_non_null(strstr(ask.err.text, "in the middle of the answer"));
	ask_end(&ask);

	ask_begin(&ask, state);
	ask.options.retries = 0;
	ask_open(&ask, "empty");
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, EPROTO);
	assert_non_null(strstr(ask.err.text, "empty answer"));
	ask_end(&ask);
}

static void lasting_faults_end_after_two_more_tries(void **state)
{
	refuses(state, "500", EAGAIN, "answered 500: the part played is 500", 3);
	refuses(state, "503", EAGAIN, "asked 3 times", 3);
	refuses(state, "429", EBUSY, "answered 429", 3);
	refuses(state, "529", EAGAIN, "answered 529", 3);
	refuses(state, "html-502", EAGAIN, "answered 502 with a web page", 3);
}

/* Ask NAME, and stop at the first retry: how long would have been waited? */
static double wait_of(void **state, const char *name)
{
	struct ask ask;
	int ends[2];
	double wait_s;

	assert_true(fd_pipe(ends, NULL));
	ask_begin(&ask, state);
	ask.stop_fd = ends[0];
	ask.stop_by_sink = ends[1];
	ask_open(&ask, name);
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, ECANCELED);
	assert_int_equal(ask.retries, 1);
	wait_s = ask.wait_s;
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	ask_end(&ask);
	return wait_s;
}

static void the_service_says_how_long_to_wait(void **state)
{
	double wait_s;

	wait_s = wait_of(state, "429");
	assert_true(wait_s > 0.0009 && wait_s < 0.0011);
	wait_s = wait_of(state, "429-wait");
	assert_true(wait_s > 29.9 && wait_s < 30.1);
	wait_s = wait_of(state, "429-date");
	assert_true(wait_s > 20 && wait_s <= 31);
	wait_s = wait_of(state, "429-silent");
	assert_true(wait_s >= 0.375 && wait_s <= 0.5);
}

static void what_would_be_refused_again_is_asked_once(void **state)
{
	refuses(state, "400", EIO, "answered 400: the part played is 400", 1);
	refuses(state, "401", EACCES, "check the key in OPENAI_API_KEY", 1);
	refuses(state, "403", EACCES, "answered 403", 1);
	refuses(state, "404", EIO, "check the model's name (fake)", 1);
	refuses(state, "html", EPROTO, "a web page came (\"Sign in\")", 1);
	refuses(state, "500-no", EAGAIN, "answered 500", 1);
	refuses(state, "429-long", EBUSY, "a pause of 3600 seconds", 1);
	refuses(state, "overflow", E2BIG, "available context size", 1);
	refuses(state, "late-error", EIO, "the provider behind gave up", 1);
	refuses(state, "redirect", EIO, "redirects are not followed", 1);
}

static void a_key_in_the_service_s_words_is_hidden(void **state)
{
	refuses(state, "401-echo", EACCES, "wrong key: Bearer ****", 1);
}

static void a_word_for_no_key_leaves_the_message_alone(void **state)
{
	struct ask ask;

	ask_begin(&ask, state);
	ask.options.key = "e";
	ask_open(&ask, "401-echo");
	assert_false(ask_once(&ask));
	assert_non_null(strstr(ask.err.text, "wrong key: Bearer e"));
	ask_end(&ask);
}

static void without_a_key_the_advice_names_the_variable(void **state)
{
	struct ask ask;
	auto_value struct value *requests = NULL;
	const struct value *headers;

	ask_begin(&ask, state);
	ask.options.key = "";
	ask_open(&ask, "401");
	assert_false(ask_once(&ask));
	assert_non_null(strstr(ask.err.text, "set OPENAI_API_KEY"));
	requests = server_requests(ask.server, "401");
	headers = value_member(value_item(requests, value_count(requests) - 1), "headers");
	assert_null(value_member(headers, "Authorization"));
	ask_end(&ask);
}

static void the_key_goes_as_a_bearer_token(void **state)
{
	struct ask ask;
	auto_value struct value *requests = NULL;
	const struct value *request;

	ask_begin(&ask, state);
	ask.options.key = " " KEY "\n";
	ask_open(&ask, "echo");
	assert_true(ask_once(&ask));
	assert_string_equal(last_part(&ask)->text, "You said: hi");
	requests = server_requests(ask.server, "echo");
	request = value_item(requests, value_count(requests) - 1);
	assert_string_equal(value_text(value_member(value_member(request, "headers"),
						    "Authorization")),
			    "Bearer " KEY);
	assert_string_equal(value_text(value_member(value_member(request, "body"), "model")),
			    "fake");
	ask_end(&ask);
}

static void one_answer_may_be_shorter_than_others(void **state)
{
	static const struct {
		const char *model, *limit;
	} cases[] = {
		{"anthropic:fake", "/max_tokens"},
		{"openai:fake", "/max_output_tokens"},
		{"openai-chat:fake", "/max_tokens"},
		{"openai-chat:gpt-5", "/max_completion_tokens"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_value struct value *requests = NULL;
		struct value *body;
		struct ask ask;

		ask_begin(&ask, state);
		ask.options.name = cases[i].model;
		ask.options.thinking_budget = 2000;
		ask.options.max_output = 9000;
		ask.answer_max = 4000;
		ask_open(&ask, "echo");
		if (!ask_once(&ask))
			fail_msg("%s: %s", cases[i].model, ask.err.text);
		requests = server_requests(ask.server, "echo");
		body = value_member(value_item(requests, value_count(requests) - 1), "body");
		assert_int_equal(value_integer(value_at_pointer(body, cases[i].limit)),
				 4000);
		assert_null(value_member(body, "thinking"));
		assert_null(value_member(body, "reasoning"));
		ask_end(&ask);
	}
}

static void messages_have_a_key_and_a_version_of_their_own(void **state)
{
	struct ask ask;
	auto_value struct value *requests = NULL;
	const struct value *headers, *body, *request;

	ask_begin(&ask, state);
	ask.options.name = "anthropic:fake";
	ask.options.thinking_budget = 2000;
	ask.options.max_output = 9000;
	ask_open(&ask, "echo");
	assert_true(ask_once(&ask));
	assert_string_equal(last_part(&ask)->text, "You said: hi");
	requests = server_requests(ask.server, "echo");
	request = value_item(requests, value_count(requests) - 1);
	headers = value_member(request, "headers");
	body = value_member(request, "body");
	assert_string_equal(value_text(value_member(headers, "x-api-key")), KEY);
	assert_string_equal(value_text(value_member(headers, "anthropic-version")),
			    "2023-06-01");
	assert_null(value_member(headers, "Authorization"));
	assert_int_equal(value_integer(value_member(body, "max_tokens")), 9000);
	assert_int_equal(value_integer(value_member(value_member(body, "thinking"),
						    "budget_tokens")),
			 2000);
	ask_end(&ask);
}

static void fails_and_recovers(void **state, const char *model)
{
	comes_from(state, model, "normal", 0);
	comes_from(state, model, "plain", 0);
	comes_from(state, model, "drip", 0);
	comes_from(state, model, "open-end", 0);
	comes_from(state, model, "429-once", 1);
	comes_from(state, model, "529-twice", 2);
	comes_from(state, model, "cut-once", 1);
	refused_by(state, model, "400", EIO, "answered 400", 1);
	refused_by(state, model, "overflow", E2BIG, "available context size", 1);
	refused_by(state, model, "late-error", EIO, "the provider behind gave up", 1);
	refused_by(state, model, "html", EPROTO, "a web page came", 1);
	refused_by(state, model, "torn", EPROTO, "in the middle of the answer", 3);
}

static void messages_fail_and_recover_like_the_others(void **state)
{
	static const char model[] = "anthropic:fake";

	fails_and_recovers(state, model);
	refused_by(state, model, "529", EAGAIN, "answered 529: the part played is 529", 3);
	refused_by(state, model, "500-no", EAGAIN, "request req_0", 1);
	refused_by(state, model, "401", EACCES, "check the key in ANTHROPIC_API_KEY", 1);
	refused_by(state, model, "401-echo", EACCES, "wrong key: ****", 1);
}

static void responses_fail_and_recover_like_the_others(void **state)
{
	static const char model[] = "openai:fake";

	fails_and_recovers(state, model);
	refused_by(state, model, "529", EAGAIN, "answered 529", 3);
	refused_by(state, model, "500-no", EAGAIN, "answered 500", 1);
	refused_by(state, model, "401-echo", EACCES, "wrong key: Bearer ****", 1);
}

static void the_name_says_which_key_is_meant(void **state)
{
	(void)state;
	assert_string_equal(model_key_variable("anthropic:x"), "ANTHROPIC_API_KEY");
	assert_string_equal(model_key_variable("openai:x"), "OPENAI_API_KEY");
	assert_string_equal(model_key_variable("qwen3:8b"), "OPENAI_API_KEY");
	assert_null(model_key_variable("replay"));
	assert_null(model_key_variable(NULL));
	assert_null(model_key_variable("antropic:x"));
}

static void calls_and_their_results_make_a_conversation(void **state)
{
	struct ask ask;
	struct message *results;

	ask_begin(&ask, state);
	ask_open(&ask, "calls");
	assert_true(ask_once(&ask));
	assert_int_equal(ask.finish, MODEL_FINISH_CALLS);
	assert_string_equal(last_part(&ask)->tool, "list_files");
	results = conversation_add(&ask.conversation, SPEAKER_USER);
	(void)message_add_result(results, "call_look", "list_files", "a.c", false);
	assert_true(ask_once(&ask));
	assert_string_equal(last_part(&ask)->text, "The tool said: a.c");
	ask_end(&ask);
}

static void a_connection_serves_several_questions(void **state)
{
	struct ask ask;
	size_t before;

	ask_begin(&ask, state);
	ask_open(&ask, "normal");
	assert_true(ask_once(&ask));
	before = server_connections(ask.server);
	for (int i = 0; i < 5; i++)
		assert_true(ask_once(&ask));
	/* The one more is this question. */
	assert_int_equal(server_connections(ask.server), before + 1);
	ask_end(&ask);
}

static void to_prepare_asks_nobody(void **state)
{
	struct ask ask;
	size_t before;

	ask_begin(&ask, state);
	ask_open(&ask, "normal");
	before = server_connections(ask.server);
	model_prepare(ask.model);
	model_prepare(ask.model);
	/* As above. */
	assert_int_equal(server_connections(ask.server), before + 1);
	assert_true(ask_once(&ask));
	ask_end(&ask);
}

static void twenty_thousand_pieces_are_no_trouble(void **state)
{
	struct ask ask;

	ask_begin(&ask, state);
	ask_open(&ask, "flood");
	assert_true(ask_once(&ask));
	assert_int_equal(ask.text.size, 100000);
	ask_end(&ask);
}

/* Ask NAME with a stop that comes at the first text or retry, or after MS of silence. */
static void stops(void **state, const char *name, int ms)
{
	struct ask ask;
	int ends[2];
	int64_t began = clock_now_ms();
	struct itimerspec once = {.it_value.tv_nsec = ms * 1000000L};

	assert_true(fd_pipe(ends, NULL));
	ask_begin(&ask, state);
	ask.stop_fd = ends[0];
	ask.stop_by_sink = ends[1];
	if (ms > 0) {
		ask.stop_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		assert_int_equal(timerfd_settime(ask.stop_fd, 0, &once, NULL), 0);
	}
	ask_open(&ask, name);
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, ECANCELED);
	assert_true(clock_now_ms() - began < 20000);
	if (ms > 0)
		fd_close(&ask.stop_fd);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	ask_end(&ask);
}

static void a_stop_ends_it_wherever_it_is(void **state)
{
	stops(state, "stall", 0);
	stops(state, "hang", 30);
	stops(state, "429-wait", 0);
}

/* The caller of a run fills the pipe that the variable names. */
static void a_request_waits_for_leave(void **state)
{
	const struct itimerspec once = {.it_value = {.tv_nsec = 30 * 1000000}};
	char path[64];
	struct ask ask;
	size_t before;
	int ends[2];

	assert_true(fd_pipe(ends, NULL));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	assert_int_equal(setenv("GLOVEBOX_PACE", path, 1), 0);
	ask_begin(&ask, state);
	ask_open(&ask, "normal");
	before = server_count(ask.server, "normal");
	assert_int_equal(unsetenv("GLOVEBOX_PACE"), 0);
	ask.stop_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	assert_int_equal(timerfd_settime(ask.stop_fd, 0, &once, NULL), 0);
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, ECANCELED);
	assert_int_equal(server_count(ask.server, "normal"), before);
	fd_close(&ask.stop_fd);
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_true(ask_once(&ask));
	assert_int_equal(server_count(ask.server, "normal"), before + 1);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	ask_end(&ask);
}

static void a_stop_beforehand_asks_nobody(void **state)
{
	struct ask ask;
	int ends[2];

	assert_true(fd_pipe(ends, NULL));
	assert_int_equal(write(ends[1], "x", 1), 1);
	ask_begin(&ask, state);
	ask.stop_fd = ends[0];
	ask_open(&ask, "normal/never");
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, ECANCELED);
	assert_int_equal(server_count(ask.server, "normal/never"), 0);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	ask_end(&ask);
}

static void silence_ends_at_the_deadline(void **state)
{
	struct ask ask;
	size_t before;

	ask_begin(&ask, state);
	before = server_count(ask.server, "hang");
	ask.options.idle_timeout_s = 1.5;
	ask_open(&ask, "hang");
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, ETIMEDOUT);
	assert_non_null(strstr(ask.err.text, "nothing came for 1.5 seconds"));
	/* A server at work is not made to begin anew. */
	assert_int_equal(server_count(ask.server, "hang"), before + 1);
	ask_end(&ask);

	ask_begin(&ask, state);
	ask.options.idle_timeout_s = 0.05;
	ask.options.retries = 0;
	ask_open(&ask, "stall");
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, ETIMEDOUT);
	ask_end(&ask);
}

/* NAME sends something without end, of which nothing is an answer. */
static void never_answers(void **state, const char *name, const char *model,
			  double idle_s, const char *said)
{
	struct ask ask;

	ask_begin(&ask, state);
	ask.options.name = model;
	ask.options.idle_timeout_s = idle_s;
	ask.options.retries = 0;
	ask_open(&ask, name);
	assert_false(ask_once(&ask));
	if (strstr(ask.err.text, said) == NULL)
		fail_msg("%s: %s", name, ask.err.text);
	ask_end(&ask);
}

static void signs_of_life_are_no_answer(void **state)
{
	never_answers(state, "pings", "anthropic:m", 1,
		      "nothing of an answer came for 6 seconds");
	never_answers(state, "comments", "openai:m", 60,
		      "64 MiB came that are no part of an answer");
	never_answers(state, "header-drip", "openai-chat:m", 0.5,
		      "nothing came for 0.5 seconds");
}

static void nobody_at_the_other_end_is_told_as_such(void **state)
{
	struct ask ask;

	ask_begin(&ask, state);
	ask.options.retries = 0;
	/* Port 1 is tcpmux, which nobody runs. */
	ask.options.base_url = "http://127.0.0.1:1/v1";
	assert_true(model_open(&ask.options, &ask.model, NULL));
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, EAGAIN);
	assert_string_equal(ask.err.text,
			    "no model server answers at 127.0.0.1:1 (is it running?)");
	ask_end(&ask);
}

static void bad_options_are_refused_before_anything_is_asked(void **state)
{
	static const struct {
		const char *name, *url, *key, *says;
	} cases[] = {
		{"openai-chat:x", "nonsense", NULL, "begins with http://"},
		{"openai-chat:x", NULL, "two words", "a blank or a control character"},
		{"openai-chat:x", NULL, "a\nb", "a blank or a control character"},
		{"repaly:x", NULL, NULL, "did you mean \"replay\"?"},
		{"replay:/nowhere/at/all.json", NULL, NULL, "/nowhere/at/all.json"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct model_options options = {
			.name = cases[i].name,
			.base_url = cases[i].url,
			.key = cases[i].key,
		};
		struct model *model = NULL;
		struct err err = {0};

		assert_false(model_open(&options, &model, &err));
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s", err.text);
		assert_null(model);
	}
	model_close(NULL);
}

static void a_replay_is_asked_like_any_other(void **state)
{
	struct ask ask;

	ask_begin(&ask, state);
	ask.options.name = NULL;
	ask.options.embedded = STR("{\"turns\": [{\"text\": \"${prompt}!\", \"usage\": "
				   "{\"input\": 3, \"output\": 4}}, {}]}");
	assert_true(model_open(&ask.options, &ask.model, &ask.err));
	assert_true(model_is_replay(ask.model));
	assert_string_equal(model_name(ask.model), "replay");
	assert_true(ask_once(&ask));
	assert_string_equal(ask.text.data, "hi!");
	assert_int_equal(ask.usage.output, 4);
	assert_false(ask_once(&ask));
	assert_int_equal(ask.err.code, ENODATA);
	assert_non_null(strstr(ask.err.text, "says nothing"));
	assert_false(ask_once(&ask));
	assert_non_null(strstr(ask.err.text, "embedded has only 2 turns"));
	ask_end(&ask);
}

static int begin_group(void **state)
{
	static struct server server;

	/* A proxy that is not there: servers on this machine are asked without one. */
	(void)setenv("http_proxy", "http://127.0.0.1:1", 1);
	*state = &server;
	return server_begin(&server) ? 0 : -1;
}

static int end_group(void **state)
{
	server_end(*state);
	return 0;
}

static const char small_catalogue[] =
	"{\"known\": {\"context\": 4000, \"price_input\": 2, \"price_output\": 3}}";

static void open_named(struct ask *ask, void **state, const struct catalogue *catalogue,
		       const char *name)
{
	ask_begin(ask, state);
	ask->options.name = name;
	ask->options.catalogue = catalogue;
	ask_open(ask, "normal");
}

static void the_context_is_the_catalogue_s_else_the_server_s(void **state)
{
	struct catalogue *catalogue = NULL;
	struct ask ask;
	uint64_t context = 0;

	assert_true(catalogue_open(str_of(small_catalogue), NULL, &catalogue, NULL));
	open_named(&ask, state, catalogue, "known");
	assert_int_equal(model_context(ask.model), 4000);
	ask_end(&ask);
	/* The server has so little time that a busy machine may need it again. */
	for (int tries = 0; context == 0 && tries < 100; tries++) {
		open_named(&ask, state, catalogue, "sized");
		assert_int_equal(model_context(ask.model), 0);
		assert_true(ask_once(&ask));
		context = model_context(ask.model);
		assert_int_equal(model_context(ask.model), context);
		ask_end(&ask);
	}
	assert_int_equal(context, 12345);
	open_named(&ask, state, catalogue, "unheard-of");
	assert_true(ask_once(&ask));
	assert_int_equal(model_context(ask.model), 0);
	ask_end(&ask);
	catalogue_close(catalogue);
}

/* How an answer of 12,310 and 35 tokens ends, which the service calls complete. */
static enum model_finish end_of_it(void **state, const struct catalogue *catalogue,
				   const char *name, uint64_t max_output)
{
	struct ask ask;

	ask_begin(&ask, state);
	ask.options.name = name;
	ask.options.catalogue = catalogue;
	ask.options.max_output = max_output;
	ask_open(&ask, "file/responses_llama_full");
	assert_true(ask_once(&ask));
	assert_int_equal(ask.usage.input + ask.usage.output, 12345);
	ask_end(&ask);
	return ask.finish;
}

static void an_answer_that_fills_the_context_is_cut_whatever_it_is_called(void **state)
{
	static const char known[] =
		"{\"full\": {\"context\": 12344}, \"small\": {\"context\": 8192},"
		" \"large\": {\"context\": 12346}}";
	struct catalogue *catalogue = NULL;
	enum model_finish finish = MODEL_FINISH_STOP;

	assert_true(catalogue_open(str_of(known), NULL, &catalogue, NULL));
	assert_int_equal(end_of_it(state, catalogue, "openai:full", 0), MODEL_FINISH_LENGTH);
	assert_int_equal(end_of_it(state, catalogue, "openai:large", 0), MODEL_FINISH_STOP);
	assert_int_equal(end_of_it(state, catalogue, "openai:large", 35),
			 MODEL_FINISH_LENGTH);
	assert_int_equal(end_of_it(state, catalogue, "openai:large", 36), MODEL_FINISH_STOP);
	/* Far over it: somebody was told of less than there is. */
	assert_int_equal(end_of_it(state, catalogue, "openai:small", 0), MODEL_FINISH_STOP);
	/* As its server says; see the test above. */
	for (int tries = 0; finish == MODEL_FINISH_STOP && tries < 100; tries++)
		finish = end_of_it(state, NULL, "openai:sized", 0);
	assert_int_equal(finish, MODEL_FINISH_LENGTH);
	catalogue_close(catalogue);
}

static void money_is_known_where_the_price_is(void **state)
{
	auto_value struct value *own = NULL;
	struct catalogue *catalogue = NULL;
	struct ask ask;

	assert_true(value_parse(str_of(small_catalogue), 0, &own, NULL));
	assert_true(catalogue_open(STR("{}"), own, &catalogue, NULL));
	open_named(&ask, state, catalogue, "known");
	assert_true(model_is_priced(ask.model));
	assert_true(ask_once(&ask));
	/* 12 in, of which 4 were cached, and 6 out */
	assert_true(ask.usage.money > 41.9e-6 && ask.usage.money < 42.1e-6);
	ask_end(&ask);
	open_named(&ask, state, catalogue, "sized");
	assert_false(model_is_priced(ask.model));
	assert_true(ask_once(&ask));
	assert_true(ask.usage.money < 0);
	ask_end(&ask);
	catalogue_close(catalogue);
}

/* Does the request to the model NAME say how much to think, as its role wants it? */
static bool is_told_to_think(void **state, const struct catalogue *catalogue,
			     const char *name)
{
	auto_value struct value *requests = NULL;
	const struct value *body;
	struct ask ask;

	ask_begin(&ask, state);
	ask.options.name = name;
	ask.options.catalogue = catalogue;
	ask.options.thinking_budget = 2000;
	ask_open(&ask, "normal");
	assert_true(ask_once(&ask));
	requests = server_requests(ask.server, "normal");
	body = value_member(value_item(requests, value_count(requests) - 1), "body");
	ask_end(&ask);
	return value_member(body, "thinking") != NULL;
}

static void who_cannot_think_is_not_asked_to(void **state)
{
	struct catalogue *catalogue = NULL;

	assert_true(catalogue_open(STR("{\"plain\": {\"thinking\": false}}"), NULL,
				   &catalogue, NULL));
	assert_false(is_told_to_think(state, catalogue, "anthropic:plain"));
	assert_true(is_told_to_think(state, catalogue, "anthropic:unheard-of"));
	catalogue_close(catalogue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_of_all_kinds_come_in),
		cmocka_unit_test(a_connection_left_open_after_the_end_is_not_waited_for),
		cmocka_unit_test(passing_faults_are_tried_again),
		cmocka_unit_test(a_cut_stream_is_tried_again_and_the_front_is_told),
		cmocka_unit_test(the_last_try_s_failure_is_told),
		cmocka_unit_test(lasting_faults_end_after_two_more_tries),
		cmocka_unit_test(the_service_says_how_long_to_wait),
		cmocka_unit_test(one_answer_may_be_shorter_than_others),
		cmocka_unit_test(messages_have_a_key_and_a_version_of_their_own),
		cmocka_unit_test(messages_fail_and_recover_like_the_others),
		cmocka_unit_test(responses_fail_and_recover_like_the_others),
		cmocka_unit_test(the_name_says_which_key_is_meant),
		cmocka_unit_test(what_would_be_refused_again_is_asked_once),
		cmocka_unit_test(a_key_in_the_service_s_words_is_hidden),
		cmocka_unit_test(a_word_for_no_key_leaves_the_message_alone),
		cmocka_unit_test(without_a_key_the_advice_names_the_variable),
		cmocka_unit_test(the_key_goes_as_a_bearer_token),
		cmocka_unit_test(calls_and_their_results_make_a_conversation),
		cmocka_unit_test(a_connection_serves_several_questions),
		cmocka_unit_test(to_prepare_asks_nobody),
		cmocka_unit_test(twenty_thousand_pieces_are_no_trouble),
		cmocka_unit_test(a_stop_ends_it_wherever_it_is),
		cmocka_unit_test(a_request_waits_for_leave),
		cmocka_unit_test(a_stop_beforehand_asks_nobody),
		cmocka_unit_test(silence_ends_at_the_deadline),
		cmocka_unit_test(signs_of_life_are_no_answer),
		cmocka_unit_test(nobody_at_the_other_end_is_told_as_such),
		cmocka_unit_test(bad_options_are_refused_before_anything_is_asked),
		cmocka_unit_test(a_replay_is_asked_like_any_other),
		cmocka_unit_test(the_context_is_the_catalogue_s_else_the_server_s),
		cmocka_unit_test(
			an_answer_that_fills_the_context_is_cut_whatever_it_is_called),
		cmocka_unit_test(money_is_known_where_the_price_is),
		cmocka_unit_test(who_cannot_think_is_not_asked_to),
	};

	return cmocka_run_group_tests(tests, begin_group, end_group);
}
