/* Tests of model/replay. */
#include "../base/unit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "model/provider.h"

struct play {
	struct replay *replay;
	struct conversation conversation;
	struct buf log;
	int stop_fd;
	struct err err;
};

static void note_text(void *context, struct str fragment)
{
	struct play *play = context;

	(void)buf_addf(&play->log, "[%.*s]", (int)fragment.size, fragment.data);
}

static void play_begin(struct play *play, const char *script)
{
	memset(play, 0, sizeof(*play));
	play->stop_fd = -1;
	conversation_init(&play->conversation);
	buf_init(&play->log, 10000);
	if (!replay_open(str_of(script), "test.json", &play->replay, &play->err))
		fail_msg("%s", play->err.text);
}

static bool play_turn(struct play *play)
{
	struct model_sink sink = {.context = play, .text = note_text, .thinking = note_text};
	struct model_request request = {
		.conversation = &play->conversation,
		.stop_fd = play->stop_fd,
	};
	struct answer *answer = answer_new(&sink);
	bool ok = replay_ask(play->replay, &request, answer, &play->err);

	if (ok)
		assert_true(answer_finish(answer, &play->conversation, NULL, NULL, NULL));
	answer_free(answer);
	return ok;
}

static const struct message *last(const struct play *play)
{
	return &play->conversation.messages[play->conversation.message_count - 1];
}

static void play_end(struct play *play)
{
	replay_close(play->replay);
	conversation_fini(&play->conversation);
	buf_fini(&play->log);
}

static void user_says(struct play *play, const char *text)
{
	(void)message_add_text(conversation_add(&play->conversation, SPEAKER_USER), text);
}

static void plays_turn_by_turn_until_the_last(void **state)
{
	struct play play;

	(void)state;
	play_begin(&play,
		   "// a comment\n{\"name\": \"x\", \"turns\": ["
		   "{\"thinking\": \"hm\", \"text\": \"one two\", \"calls\": ["
		   "{\"tool\": \"bash\", \"arguments\": {\"command\": \"ls\"}},"
		   "{\"tool\": \"glob\"}, {\"tool\": \"grep\", \"arguments\": \"{oops\"}]},"
		   "{\"text\": \"done\"},]}");
	user_says(&play, "go");
	assert_true(play_turn(&play));
	assert_int_equal(last(&play)->part_count, 5);
	assert_string_equal(last(&play)->parts[0].text, "hm");
	assert_string_equal(last(&play)->parts[1].text, "one two");
	assert_string_equal(last(&play)->parts[2].arguments, "{\"command\":\"ls\"}");
	assert_string_equal(last(&play)->parts[3].arguments, "{}");
	assert_string_equal(last(&play)->parts[4].arguments, "{oops");
	assert_string_not_equal(last(&play)->parts[2].call_id,
				last(&play)->parts[3].call_id);
	assert_true(play_turn(&play));
	assert_string_equal(play.log.data, "[hm][one two][done]");
	assert_false(play_turn(&play));
	assert_int_equal(play.err.code, EPROTO);
	assert_non_null(strstr(play.err.text, "test.json has only 2 turns"));
	assert_false(play_turn(&play));
	play_end(&play);
}

static void the_last_turn_may_repeat(void **state)
{
	struct play play;
	char first[64];

	(void)state;
	play_begin(&play,
		   "{\"turns\": [{\"repeat\": true, \"calls\": [{\"tool\": \"f\"}]}]}");
	user_says(&play, "go");
	assert_true(play_turn(&play));
	(void)snprintf(first, sizeof(first), "%s", last(&play)->parts[0].call_id);
	for (int i = 0; i < 5; i++)
		assert_true(play_turn(&play));
	assert_string_not_equal(last(&play)->parts[0].call_id, first);
	play_end(&play);
}

static void the_newest_prompt_can_be_quoted(void **state)
{
	struct play play;

	(void)state;
	play_begin(&play, "{\"turns\": [{\"text\": \"<${prompt}> ${prompt} $ {prompt}\"},"
			  "{\"text\": \"${prompt}\"}]}");
	user_says(&play, "old");
	user_says(&play, "new ${prompt}");
	assert_true(play_turn(&play));
	assert_string_equal(last(&play)->parts[0].text,
			    "<new ${prompt}> new ${prompt} $ {prompt}");
	(void)message_add_result(conversation_add(&play.conversation, SPEAKER_USER), "1",
				 "f", "ok", false);
	(void)message_add_text(&play.conversation.messages[3], "two steps are left");
	assert_true(play_turn(&play));
	assert_string_equal(last(&play)->parts[0].text, "new ${prompt}");
	play_end(&play);
}

/*
 * Two turns; between them the results glob "a.c b.c" (done) and bash "FAIL 3" (failed).
 */
static bool fits(const char *expect, struct err *err)
{
	struct play play;
	char script[1000];
	struct message *results;
	bool ok;

	(void)snprintf(script, sizeof(script),
		       "{\"turns\": [{\"text\": \"x\"}, {\"text\": \"y\", \"expect\": %s}]}",
		       expect);
	play_begin(&play, script);
	user_says(&play, "go");
	assert_true(play_turn(&play));
	results = conversation_add(&play.conversation, SPEAKER_USER);
	(void)message_add_result(results, "1", "glob", "a.c b.c", false);
	(void)message_add_result(results, "2", "bash", "FAIL 3", true);
	ok = play_turn(&play);
	*err = play.err;
	/* A turn that does not fit is never played. */
	assert_true(ok || !play_turn(&play));
	play_end(&play);
	return ok;
}

static void expectations_are_held_against_the_results(void **state)
{
	static const struct {
		const char *expect;
		bool fits;
	} cases[] = {
		{"[]", true},
		{"[{\"tool\":\"bash\",\"contains\":\"FAIL\",\"status\":\"failed\"}]", true},
		{"[{\"contains\":\"b.c\",\"status\":\"done\"},{\"contains\":\"3\"}]", true},
		{"[{\"contains\":\"3\"},{\"contains\":\"b.c\"}]", false},
		{"[{\"tool\":\"bash\",\"status\":\"done\"}]", false},
		{"[{\"tool\":\"grep\"}]", false},
		{"[{\"tool\":\"glob\"},{\"tool\":\"glob\"}]", false},
		{"[{\"contains\":\"green\"}]", false},
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		if (fits(cases[i].expect, &err) != cases[i].fits)
			fail_msg("%s: %s", cases[i].expect, err.text);
	}
}

static void what_does_not_fit_is_told_in_full(void **state)
{
	struct err err;

	(void)state;
	assert_false(fits("[{\"tool\":\"glob\"},{\"contains\":\"green\"}]", &err));
	assert_int_equal(err.code, EPROTO);
	assert_string_equal(err.text,
			    "the replay test.json does not fit: turn 2, expectation 2 wants "
			    "{\"contains\":\"green\"}, but this came: glob (done) \"a.c b.c\"; "
			    "bash (not done) \"FAIL 3\"");
}

static void expecting_results_where_none_are_says_so(void **state)
{
	struct play play;

	(void)state;
	play_begin(&play,
		   "{\"turns\": [{\"text\": \"x\", \"expect\": [{\"tool\": \"f\"}]}]}");
	user_says(&play, "go");
	assert_false(play_turn(&play));
	assert_non_null(strstr(play.err.text, "this came: no result"));
	play_end(&play);
}

static void scripts_that_cannot_be_played_are_refused(void **state)
{
	static const struct {
		const char *script, *says;
	} cases[] = {
		{"", "line 1"},
		{"{\"turns\": [}", "line 1, column 12"},
		{"[]", "an object was expected, not array"},
		{"{}", "\"turns\" is missing"},
		{"{\"turns\": []}", "there is no turn"},
		{"{\"turns\": [{}], \"nmae\": 1}",
		 "unknown key \"nmae\"; did you mean \"name\"?"},
		{"{\"turns\": [{\"txt\": \"\"}]}",
		 "test.json, turn 1: unknown key \"txt\"; did you mean \"text\"?"},
		{"{\"turns\": [{\"text\": 1}]}", "\"text\" is to be string, not integer"},
		{"{\"turns\": [{}, 5]}", "turn 2: an object was expected"},
		{"{\"turns\": [{\"calls\": [{}]}]}", "turn 1, call 1: \"tool\" is missing"},
		{"{\"turns\": [{\"calls\": [{\"tool\": \"\"}]}]}", "\"tool\" is empty"},
		{"{\"turns\": [{\"calls\": [{\"tool\": \"f\", \"arguments\": [1]}]}]}",
		 "\"arguments\" is to be an object"},
		{"{\"turns\": [{\"expect\": [{}]}]}", "it expects nothing"},
		{"{\"turns\": [{\"expect\": [{\"status\": \"ok\"}]}]}", "not \"ok\""},
		{"{\"turns\": [{\"delay_ms\": 1001}]}", "\"delay_ms\" is more than 1000"},
		{"{\"turns\": [{\"delay_ms\": -1}]}", "\"delay_ms\" is less than 0"},
		{"{\"turns\": [{\"repeat\": true}, {}]}", "turn 1: only the last turn"},
		{"{\"turns\": [{\"usage\": {\"inputs\": 1}}]}", "did you mean \"input\"?"},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct replay *replay = NULL;
		struct err err = {0};

		assert_false(
			replay_open(str_of(cases[i].script), "test.json", &replay, &err));
		if (!strstr(err.text, cases[i].says) || !strstr(err.text, "test.json"))
			fail_msg("%s: %s", cases[i].script, err.text);
		assert_null(replay);
	}
}

static void a_delay_gives_words_and_a_stop_cuts_it_short(void **state)
{
	struct play play;
	int ends[2];
	int64_t began;

	(void)state;
	play_begin(&play,
		   "{\"turns\": [{\"text\": \"a bc\\n d \", \"delay_ms\": 1},"
		   "{\"text\": \"x y z x y z x y z x y z x y z x y z x y z x y z x y z x y z\", "
		   "\"delay_ms\": 1000}]}");
	user_says(&play, "go");
	assert_true(play_turn(&play));
	assert_string_equal(play.log.data, "[a ][bc\n ][d ]");

	assert_true(fd_pipe(ends, NULL));
	assert_int_equal(write(ends[1], "x", 1), 1);
	play.stop_fd = ends[0];
	began = clock_now_ms();
	assert_false(play_turn(&play));
	assert_true(clock_now_ms() - began < 20000);
	assert_int_equal(play.err.code, ECANCELED);
	fd_close(&ends[0]);
	fd_close(&ends[1]);
	play_end(&play);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plays_turn_by_turn_until_the_last),
		cmocka_unit_test(the_last_turn_may_repeat),
		cmocka_unit_test(the_newest_prompt_can_be_quoted),
		cmocka_unit_test(expectations_are_held_against_the_results),
		cmocka_unit_test(what_does_not_fit_is_told_in_full),
		cmocka_unit_test(expecting_results_where_none_are_says_so),
		cmocka_unit_test(scripts_that_cannot_be_played_are_refused),
		cmocka_unit_test(a_delay_gives_words_and_a_stop_cuts_it_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
