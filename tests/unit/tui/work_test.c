/* work: the rows of delegates and tasks. */
#include "tui/region/work.h"

#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Let WORK take the event in JSON at NOW_MS. */
static void take(struct work *work, const char *json, int64_t now_ms)
{
	auto_value struct value *line = NULL;
	struct event event;
	struct err err = {0};

	if (!event_parse(str_of(json), &line, &event, &err))
		fail_msg("%s", err.text);
	work_event(work, &event, now_ms);
}

static void shows(const struct work *work, int64_t now_ms, const char *rows)
{
	struct buf text;

	buf_init(&text, 1 << 16);
	work_print(work, now_ms, true, &text);
	assert_string_equal(text.data, rows);
	buf_fini(&text);
}

#define CHILD(members)                                                                 \
	"{\"event\":\"child\",\"call\":\"c1\",\"session\":\"s1\",\"agent\":\"coder\"," \
	"\"event_of\":{" members "}}"

static void an_agent_has_a_row_until_it_ends(void **state)
{
	struct work work = {0};

	(void)state;
	take(&work, CHILD("\"event\":\"session_began\""), 1000);
	shows(&work, 1000, "coder · 0 s\n");
	take(&work,
	     CHILD("\"event\":\"turn_began\",\"text\":\"mend\\u001b[2J it\\nnow\""), 1500);
	take(&work,
	     CHILD("\"event\":\"message\",\"usage\":{\"input\":3000,\"output\":200}"),
	     2000);
	take(&work,
	     CHILD("\"event\":\"tool_began\",\"tool\":\"bash\",\"arguments\":{\"command\":\"make\"}"),
	     3000);
	shows(&work, 13000, "coder: mend\\x1B[2J it · 12 s · 3.2k tokens · bash make\n");
	take(&work, CHILD("\"event\":\"tool_ended\",\"tool\":\"bash\""), 14000);
	shows(&work, 14000,
	      "coder: mend\\x1B[2J it · 13 s · 3.2k tokens · asks its model\n");
	take(&work, CHILD("\"event\":\"turn_ended\""), 15000);
	shows(&work, 15000, "");
	work_fini(&work);
}

static void an_agent_goes_with_its_call_and_with_the_turn(void **state)
{
	struct work work = {0};

	(void)state;
	take(&work, CHILD("\"event\":\"session_began\""), 0);
	take(&work, "{\"event\":\"tool_ended\",\"call\":\"c1\"}", 0);
	shows(&work, 0, "");
	take(&work, CHILD("\"event\":\"session_began\""), 0);
	take(&work,
	     "{\"event\":\"child\",\"call\":\"c2\",\"session\":\"s2\",\"agent\":\"tester\","
	     "\"event_of\":{\"event\":\"session_began\"}}",
	     0);
	shows(&work, 0, "coder · 0 s\ntester · 0 s\n");
	take(&work, "{\"event\":\"turn_ended\"}", 0);
	shows(&work, 0, "");
	work_fini(&work);
}

static void tasks_are_counted_until_all_are_done(void **state)
{
	struct work work = {0};

	(void)state;
	take(&work,
	     "{\"event\":\"tool_ended\",\"call\":\"c2\",\"details\":{\"todo\":["
	     "{\"text\":\"look\",\"state\":\"done\"},{\"text\":\"write\",\"state\":\"active\"},"
	     "{\"text\":\"tell\",\"state\":\"pending\"}]}}",
	     0);
	shows(&work, 0, "tasks: 1 of 3 · now: write\n");
	take(&work,
	     "{\"event\":\"tool_ended\",\"call\":\"c3\",\"details\":{\"todo\":["
	     "{\"text\":\"look\",\"state\":\"done\"}]}}",
	     0);
	shows(&work, 0, "");
	work_fini(&work);
}

/* WORK has COUNT tasks, of which DONE are done. */
static void has_tasks(struct work *work, size_t count, size_t done)
{
	struct buf json;

	buf_init(&json, 1 << 16);
	(void)buf_adds(&json,
		       "{\"event\":\"tool_ended\",\"call\":\"c\",\"details\":{\"todo\":[");
	for (size_t i = 0; i < count; i++)
		(void)buf_addf(&json, "%s{\"text\":\"%zu\",\"state\":\"%s\"}",
			       i > 0 ? "," : "", i,
			       i < done    ? "done"
			       : i == done ? "active"
					   : "pending");
	(void)buf_adds(&json, "]}}");
	take(work, json.data, 0);
	buf_fini(&json);
}

static void all_tasks_have_rows_when_they_are_wanted(void **state)
{
	struct work work = {.all_tasks = true};

	(void)state;
	shows(&work, 0, "");
	has_tasks(&work, 3, 1);
	shows(&work, 0, "tasks: 1 of 3\n  [x] 0\n  [>] 1\n  [ ] 2\n");
	has_tasks(&work, 2, 2);
	shows(&work, 0, "tasks: 2 of 2\n  [x] 0\n  [x] 1\n");
	/* Of many those around the present one. */
	has_tasks(&work, 20, 10);
	shows(&work, 0,
	      "tasks: 10 of 20\n  [x] 6\n  [x] 7\n  [x] 8\n  [x] 9\n  [>] 10\n  [ ] 11\n"
	      "  [ ] 12\n  [ ] 13\n");
	has_tasks(&work, 9, 8);
	shows(&work, 0,
	      "tasks: 8 of 9\n  [x] 1\n  [x] 2\n  [x] 3\n  [x] 4\n  [x] 5\n  [x] 6\n"
	      "  [x] 7\n  [>] 8\n");
	work_fini(&work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_has_a_row_until_it_ends),
		cmocka_unit_test(an_agent_goes_with_its_call_and_with_the_turn),
		cmocka_unit_test(tasks_are_counted_until_all_are_done),
		cmocka_unit_test(all_tasks_have_rows_when_they_are_wanted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
