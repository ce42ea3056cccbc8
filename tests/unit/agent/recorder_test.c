/* recorder: numbers, the journal first, and no hole after a failure. */
#include "../base/tree.h"
#include "agent/history.h"
#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct place {
	char folder[64], path[96];
	struct journal *journal;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	struct err err = {0};

	if (!place)
		return -1;
	(void)snprintf(place->folder, sizeof(place->folder), "/tmp/recorder-test-XXXXXX");
	if (!mkdtemp(place->folder))
		return -1;
	(void)snprintf(place->path, sizeof(place->path), "%s/sessions.db", place->folder);
	if (!journal_open(place->path, &place->journal, &err)) {
		print_error("%s\n", err.text);
		return -1;
	}
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	journal_close(place->journal);
	tree_remove(place->folder);
	free(place);
	return 0;
}

struct seen {
	struct buf text;
	struct journal *journal;
	const struct recorder *recorder;
};

static bool count_event(void *context, int64_t number, const char *kind, int64_t wall_ms,
			struct str json)
{
	int64_t *count = context;

	(void)kind;
	(void)wall_ms;
	assert_true(json.size > 0);
	assert_int_equal(number, *count + 1);
	*count = number;
	return true;
}

static bool see(void *context, const struct event *event, struct err *err)
{
	struct seen *seen = context;
	int64_t on_disk = 0;

	(void)err;
	buf_addf(&seen->text, "%s:%d ", event_kind_name(event->kind), (int)event->number);
	if (event_is_kept(event->kind) && seen->journal) {
		assert_true(journal_read(seen->journal, recorder_session_id(seen->recorder),
					 NULL, count_event, &on_disk, NULL));
		assert_int_equal(on_disk, event->number);
	}
	return false; /* a front has no veto */
}

static void send_one(struct recorder *recorder, enum event_kind kind)
{
	struct event event = {.kind = kind, .text = STR("x")};
	struct event_sink sink = recorder_sink(recorder);

	assert_true(sink.event(sink.context, &event, NULL));
}

static void kept_events_are_numbered_and_on_disk_before_they_are_shown(void **state)
{
	struct place *place = *state;
	struct seen seen = {.journal = place->journal};
	struct recorder *recorder;
	struct err err = {0};

	buf_init(&seen.text, 4096);
	recorder = recorder_new(place->journal, (struct event_sink){see, &seen});
	seen.recorder = recorder;
	assert_true(recorder_begin(recorder, "/w", "default", "replay", &err));
	assert_int_equal(strlen(recorder_session_id(recorder)), JOURNAL_ID);
	send_one(recorder, EVENT_SESSION_BEGAN);
	send_one(recorder, EVENT_TEXT);
	send_one(recorder, EVENT_TOOL_BEGAN);
	send_one(recorder, EVENT_TOOL_OUTPUT);
	send_one(recorder, EVENT_TOOL_ENDED);
	assert_string_equal(seen.text.data, "session_began:1 text:0 tool_began:2 "
					    "tool_output:0 tool_ended:3 ");
	assert_false(recorder_failed(recorder, NULL));
	recorder_free(recorder);
	buf_fini(&seen.text);
}

static void the_listener_hears_kept_events_first(void **state)
{
	struct seen seen = {0};
	struct recorder *recorder;

	(void)state;
	buf_init(&seen.text, 4096);
	recorder = recorder_new(NULL, (struct event_sink){see, &seen});
	recorder_set_listener(recorder, (struct event_sink){see, &seen});
	send_one(recorder, EVENT_TEXT);
	send_one(recorder, EVENT_NOTICE);
	assert_string_equal(seen.text.data, "text:0 notice:1 notice:1 ");
	recorder_free(recorder);
	buf_fini(&seen.text);
}

static void after_a_failure_nothing_more_is_kept(void **state)
{
	struct place *place = *state;
	struct event event = {.kind = EVENT_NOTICE, .text = STR("x")};
	struct recorder *recorder = recorder_new(place->journal, (struct event_sink){0});
	struct err err = {0};
	char session[JOURNAL_ID + 1];

	assert_true(recorder_begin(recorder, "/w", "default", "replay", &err));
	assert_true(recorder_event(recorder, &event, &err));
	/* Somebody else writes our next number: ours is then refused by the journal. */
	(void)snprintf(session, sizeof(session), "%s", recorder_session_id(recorder));
	assert_true(
		journal_append(place->journal, session, 2, "notice", 0, STR("{}"), &err));
	assert_false(recorder_event(recorder, &event, &err));
	assert_non_null(strstr(err.text, "recording the session"));
	err.text[0] = '\0';
	assert_false(recorder_event(recorder, &event, &err));
	assert_non_null(strstr(err.text, "recording the session"));
	assert_true(recorder_failed(recorder, &err));
	event.kind = EVENT_TEXT;
	assert_true(recorder_event(recorder, &event, &err));
	recorder_free(recorder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			kept_events_are_numbered_and_on_disk_before_they_are_shown,
			set_up, tear_down),
		cmocka_unit_test(the_listener_hears_kept_events_first),
		cmocka_unit_test_setup_teardown(after_a_failure_nothing_more_is_kept,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
