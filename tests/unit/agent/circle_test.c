/* circle: what counts as going round in circles. */
#include "agent/agent.h"
#include "base/value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A session as far as the detector knows one, and what came of its last call. */
struct played {
	struct circle circle;
	struct session_writes writes;
	struct tool_result result;
	struct value *before; /* the answer from before, of a call that was not run */
	size_t not_run;       /* calls that were answered from before */
	size_t said;          /* sentences by themselves */
};

static void begin(struct played *played, uint64_t warn, uint64_t stop)
{
	memset(played, 0, sizeof(*played));
	played->circle.warn = warn;
	played->circle.stop = stop;
	played->writes.looks = true;
	tool_result_init(&played->result);
}

static void end(struct played *played)
{
	circle_fini(&played->circle);
	value_free(played->before);
	tool_result_fini(&played->result);
}

/* What the model reads of the last call. */
static const char *text(const struct played *played)
{
	return played->before ? value_text(value_member(played->before, "text"))
			      : played->result.text.data;
}

static enum circle_verdict run(struct played *played, struct circle_call *call,
			       enum result_status status, const char *says)
{
	struct err why;

	value_free(played->before);
	played->before = circle_answer(&played->circle, call, &played->writes);
	played->not_run += played->before != NULL;
	tool_result_fini(&played->result);
	tool_result_init(&played->result);
	played->result.status = status;
	call->writers = played->writes.writers;
	(void)buf_adds(&played->result.text, says);
	if (!played->before)
		circle_result(&played->circle, call, &played->writes, &played->result);
	played->said += circle_take_sentence(&played->circle, &why);
	return circle_verdict(&played->circle, &why);
}

static enum circle_verdict reads(struct played *played, const char *arguments,
				 const char *says)
{
	struct circle_call call = {.only_reads = true};

	circle_name(&call, "read_file", arguments);
	return run(played, &call, RESULT_DONE, says);
}

static enum circle_verdict commands(struct played *played, const char *arguments,
				    const char *says)
{
	struct circle_call call = {.only_reads = false};

	circle_name(&call, "bash", arguments);
	played->writes.writers++;
	call.writers = played->writes.writers;
	return run(played, &call, RESULT_DONE, says);
}

/*
 * ROW is calls, one a letter, all with the same result; a lower-case letter only reads, "!" is a
 * file that changed, "?" a wait for a job. How many of them ran until the turn was over.
 */
static size_t plays(struct played *played, const char *row)
{
	size_t count = 0;

	for (const char *at = row; *at != '\0'; at++) {
		struct circle_call call = {.only_reads = *at >= 'a', .waits = *at == '?'};
		const char name[] = {*at, '\0'};

		if (*at == '!') {
			played->writes.found++;
			played->writes.writers++;
			continue;
		}
		circle_name(&call, name, "{}");
		count++;
		if (*at < 'a')
			played->writes.writers++;
		if (run(played, &call, RESULT_DONE, "the same") != CIRCLE_GO)
			break;
	}
	return count;
}

static void rows_of_calls(void **state)
{
	static const struct {
		const char *row;
		size_t ended; /* the call that ended the turn; 0: none did */
		size_t said, not_run;
	} rows[] = {
		{"a", 0, 0, 0},
		{"aaa", 0, 0, 0},
		{"aaaaa", 0, 0, 2},
		{"aaaaaa", 0, 1, 3},
		{"aaaaaaaaa", 0, 1, 6},
		{"aaaaaaaaaaa", 10, 1, 7},
		{"AAAAAAAAAAA", 10, 1, 0},
		/* Another call between begins a new row. */
		{"aaaaaaaaabaaaaaaaaa", 0, 2, 13},
		{"AAAAAAAAABCAAAAAAAAA", 0, 2, 0},
		/* A file that changed, and waiting, are progress. */
		{"AAAAAAAAA!AAAAAAAAA", 0, 2, 0},
		{"A!A!A!A!A!A!A!A!A!A!A!A!A!A", 0, 0, 0},
		{"A?A?A?A?A?A?A?A?A?A?A?A?A?A", 0, 0, 0},
		{"AAAAA?AAAAAAAAA", 0, 1, 0},
		{"???????????????????????????", 0, 0, 0},
		/* Circles of two and three, whichever of them comes when. */
		{"ABABABABABABABAB", 12, 1, 0},
		{"ABCABCABCABCABCABC", 12, 1, 0},
		{"ABBAABBABAABABAB", 12, 1, 0},
		{"AB!AB!AB!AB!AB!AB!AB!AB!AB!", 0, 0, 0},
		/* One of four is no circle yet. */
		{"ABCDABCDABCDABCDABCDABCDABCD", 0, 0, 0},
		/* A read beside commands is run each time. */
		{"aBaBaBaBaBaBaB", 12, 1, 0},
		{"abababababab", 12, 1, 6},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct played played;
		struct err why;
		size_t count;

		begin(&played, 3, 10);
		count = plays(&played, rows[i].row);
		if (circle_verdict(&played.circle, &why) == CIRCLE_GO)
			count = 0;
		if (count != rows[i].ended || played.said != rows[i].said ||
		    played.not_run != rows[i].not_run)
			print_error("%s: ended %zu, said %zu, not run %zu\n", rows[i].row,
				    count, played.said, played.not_run);
		assert_int_equal(count, rows[i].ended);
		assert_int_equal(played.said, rows[i].said);
		assert_int_equal(played.not_run, rows[i].not_run);
		end(&played);
	}
}

static void limits_of_0_are_off(void **state)
{
	struct played played;

	(void)state;
	begin(&played, 0, 10);
	assert_int_equal(plays(&played, "aaaaaaaaaaaa"), 10);
	assert_int_equal(played.said + played.not_run, 0);
	end(&played);
	begin(&played, 3, 0);
	assert_int_equal(plays(&played, "AAAAAAAAAAAAAAAAAAAA"), 20);
	assert_int_equal(played.said, 1);
	assert_non_null(strstr(text(&played), "[the 20. identical call"));
	end(&played);
}

static void the_third_result_says_so(void **state)
{
	static const char sentence[] =
		"[the third identical call with the same result; do something else, or say what "
		"you wait for]\n";
	struct played played;

	(void)state;
	begin(&played, 3, 10);
	for (int i = 1; i <= 3; i++) {
		assert_null(strstr(text(&played), sentence));
		(void)commands(&played, "{\"command\":\"make\"}", "nothing to do");
	}
	assert_string_equal(text(&played), "nothing to do\n[the third identical call with "
					   "the same result; do something else, or say "
					   "what you wait for]\n");
	(void)commands(&played, "{\"command\":\"make\"}", "done");
	assert_string_equal(text(&played), "done");
	end(&played);
}

static void the_fourth_read_is_answered_from_before(void **state)
{
	struct played played;

	(void)state;
	begin(&played, 3, 10);
	for (int i = 0; i < 4; i++)
		(void)reads(&played, "{\"path\":\"a\"}", "one\n");
	assert_non_null(played.before);
	assert_true(value_is_true(value_member(played.before, "from_before")));
	assert_string_equal(
		text(&played),
		"one\n[the fourth identical call with the same result, answered from before "
		"without running because no file changed since; do something else, or say what "
		"you wait for]\n");
	/* Something may have been written, found or not: it is read again. */
	played.writes.writers++;
	(void)reads(&played, "{\"path\":\"a\"}", "two\n");
	assert_null(played.before);
	assert_string_equal(text(&played), "two\n");
	for (int i = 0; i < 2; i++)
		(void)reads(&played, "{\"path\":\"a\"}", "two\n");
	played.writes.writing = true;
	(void)reads(&played, "{\"path\":\"a\"}", "two\n");
	assert_null(played.before);
	end(&played);
}

static void arguments_are_compared_as_json(void **state)
{
	struct played played;

	(void)state;
	begin(&played, 2, 0);
	(void)reads(&played, "{\"path\":\"a\",\"start_line\":1}", "x");
	(void)reads(&played, "{ \"start_line\" : 1, \"path\" : \"a\" }", "x");
	assert_non_null(strstr(text(&played), "the second identical"));
	(void)reads(&played, "{\"path\":\"a\",\n\"start_line\":1}", "x");
	assert_non_null(strstr(text(&played), "the third identical"));
	(void)reads(&played, "{\"path\":\"a\",\"start_line\":2}", "x");
	assert_string_equal(text(&played), "x");
	end(&played);
}

static void no_and_invalid_arguments(void **state)
{
	struct played played;

	(void)state;
	begin(&played, 2, 0);
	(void)reads(&played, "", "x");
	(void)reads(&played, NULL, "x");
	assert_non_null(strstr(text(&played), "the second identical"));
	(void)reads(&played, "{}", "x");
	assert_non_null(strstr(text(&played), "the third identical"));
	(void)reads(&played, "{\"path\": \"x", "x");
	assert_string_equal(text(&played), "x");
	(void)reads(&played, "{\"path\": \"x", "x");
	assert_non_null(strstr(text(&played), "the second identical"));
	end(&played);
}

static void times_do_not_make_results_differ(void **state)
{
	static const struct {
		const char *first, *second;
		bool same;
	} pairs[] = {
		{"[exit code 0, 0.02 s; in .]", "[exit code 0, 1.75 s; in .]", true},
		{"real\t0m0.003s", "real\t0m1.203s", true},
		{"ok  pkg  0.005s", "ok  pkg  0.105s", true},
		{"took 3ms", "took 17ms", true},
		{"Finished in 2 seconds", "Finished in 1 second", true},
		{"12:00:01 start", "12:04:59 start", true},
		{"2026-11-24T10:00:01Z", "2026-11-24T10:00:02Z", true},
		{"2026-11-24", "2026-11-25", true},
		{"3 failed", "2 failed", false},
		{"a.c:12:5: error", "a.c:13:5: error", false},
		{"line 3 sets", "line 4 sets", false},
		{"v1s", "v2s", false},
		{"1.2.3", "1.2.4", false},
		{"7 minutesx", "8 minutesx", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct played played;

		begin(&played, 2, 0);
		(void)commands(&played, "{}", pairs[i].first);
		(void)commands(&played, "{}", pairs[i].second);
		if ((strstr(text(&played), "the second") != NULL) != pairs[i].same)
			print_error("%s: %s\n", pairs[i].first, pairs[i].second);
		assert_int_equal(strstr(text(&played), "the second") != NULL, pairs[i].same);
		end(&played);
	}
}

static void the_name_of_a_spill_does_not_either(void **state)
{
	struct played played;

	(void)state;
	begin(&played, 2, 0);
	for (int i = 1; i <= 2; i++) {
		struct circle_call call = {.only_reads = false};
		char name[32], says[128];

		tool_result_fini(&played.result);
		tool_result_init(&played.result);
		(void)snprintf(name, sizeof(name), "/tmp/%d.log", i);
		(void)snprintf(says, sizeof(says), "long; %s has the rest, see %s", name,
			       name);
		circle_name(&call, "bash", "{}");
		(void)buf_adds(&played.result.text, says);
		value_set_text(tool_details(&played.result), "spill", name);
		circle_result(&played.circle, &call, &played.writes, &played.result);
	}
	assert_non_null(strstr(text(&played), "the second identical"));
	end(&played);
}

static void status_and_exit_code_are_part_of_a_result(void **state)
{
	struct played played;
	struct circle_call call = {.only_reads = false};

	(void)state;
	begin(&played, 2, 0);
	circle_name(&call, "bash", "{}");
	(void)run(&played, &call, RESULT_DONE, "x");
	(void)run(&played, &call, RESULT_FAILED, "x");
	assert_string_equal(text(&played), "x");
	end(&played);
}

/* Nobody looks after commands: only the same command on its own is known to change nothing. */
static void commands_that_nobody_looks_after(void **state)
{
	struct played played;

	(void)state;
	begin(&played, 3, 10);
	played.writes.looks = false;
	for (int i = 0; i < 30; i++) {
		struct circle_call call = {.writers = played.writes.writers};

		circle_name(&call, i % 2 ? "bash" : "run_tests", "{}");
		played.writes.writers++;
		circle_result(&played.circle, &call, &played.writes, &played.result);
		assert_int_equal(played.circle.verdict, CIRCLE_GO);
	}
	for (int i = 0; i < 10; i++) {
		struct circle_call call = {.writers = played.writes.writers};

		tool_result_fini(&played.result);
		tool_result_init(&played.result);
		circle_name(&call, "bash", "{\"a\":1}");
		played.writes.writers++;
		circle_result(&played.circle, &call, &played.writes, &played.result);
	}
	assert_int_equal(played.circle.verdict, CIRCLE_REPEATS);
	end(&played);
}

static void sentences_name_what_happened(void **state)
{
	struct played played;
	struct err why;

	(void)state;
	begin(&played, 3, 10);
	for (int i = 0; i < 5; i++)
		(void)reads(&played, "{}", "x");
	assert_false(circle_take_sentence(&played.circle, &why));
	(void)plays(&played, "");
	{
		struct circle_call call = {.only_reads = true};

		circle_name(&call, "read_file", "{}");
		value_free(circle_answer(&played.circle, &call, &played.writes));
	}
	assert_true(circle_take_sentence(&played.circle, &why));
	assert_string_equal(
		why.text,
		"The last 6 calls brought nothing new: the same calls, the same results, and no "
		"file changed. Do something else, or end your turn and say what you wait for or "
		"cannot do. After 10 such calls the run ends.");
	assert_false(circle_take_sentence(&played.circle, &why));
	for (int i = 0; i < 4; i++)
		(void)reads(&played, "{}", "x");
	assert_int_equal(circle_verdict(&played.circle, &why), CIRCLE_REPEATS);
	assert_string_equal(why.text, "The model called read_file 10 times with the "
				      "same arguments and the same result, so the run was "
				      "stopped.");
	end(&played);
	begin(&played, 3, 10);
	(void)plays(&played, "ABABABABABAB");
	assert_int_equal(circle_verdict(&played.circle, &why), CIRCLE_REPEATS);
	assert_string_equal(why.text,
			    "The model's last 12 calls were the same 2 over and "
			    "over, with the same results, so the run was stopped.");
	end(&played);
}

static enum circle_verdict late(struct played *played, int number)
{
	struct circle_call call = {.only_reads = false};
	char arguments[32];

	(void)snprintf(arguments, sizeof(arguments), "{\"n\":%d}", number);
	circle_name(&call, "bash", arguments);
	return run(played, &call, RESULT_TIMED_OUT, "slow");
}

static void timeouts_are_told_at_the_third_and_end_at_the_fifth(void **state)
{
	struct played played;
	struct err why;

	(void)state;
	begin(&played, 3, 10);
	(void)late(&played, 1);
	(void)late(&played, 2);
	(void)commands(&played, "{}", "fine");
	(void)late(&played, 3);
	(void)late(&played, 4);
	assert_string_equal(text(&played), "slow");
	assert_int_equal(late(&played, 5), CIRCLE_GO);
	assert_non_null(strstr(text(&played), "[the third call in a row that ran into its "
					      "time limit; run it with background=true"));
	assert_int_equal(late(&played, 6), CIRCLE_GO);
	assert_int_equal(late(&played, 7), CIRCLE_TIMEOUTS);
	(void)circle_verdict(&played.circle, &why);
	assert_string_equal(why.text, "5 calls in a row ran into their time limit, so the run "
				      "was stopped.");
	end(&played);
	begin(&played, 0, 0);
	for (int i = 0; i < 9; i++)
		assert_int_equal(late(&played, i), CIRCLE_GO);
	assert_string_equal(text(&played), "slow");
	end(&played);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_calls),
		cmocka_unit_test(limits_of_0_are_off),
		cmocka_unit_test(the_third_result_says_so),
		cmocka_unit_test(the_fourth_read_is_answered_from_before),
		cmocka_unit_test(arguments_are_compared_as_json),
		cmocka_unit_test(no_and_invalid_arguments),
		cmocka_unit_test(times_do_not_make_results_differ),
		cmocka_unit_test(the_name_of_a_spill_does_not_either),
		cmocka_unit_test(status_and_exit_code_are_part_of_a_result),
		cmocka_unit_test(commands_that_nobody_looks_after),
		cmocka_unit_test(sentences_name_what_happened),
		cmocka_unit_test(timeouts_are_told_at_the_third_and_end_at_the_fifth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
