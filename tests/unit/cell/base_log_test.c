/* Tests of cell/layers/base_log: a call begins when the clock of files is past the layer's time. */
#include "../base/unit.h"

#include "base/clock.h"
#include "cell/layers/base_log.h"

enum { NS_IN_MS = 1000000, AHEAD_MAX_MS = 8 };

/* A worker holds its log until it exits, and so does this program. */
static struct base_log *held[AHEAD_MAX_MS + 6];
static size_t held_count;

/* Begin a call in a layer that was made AHEAD_MS after now; its milliseconds of waiting. */
static int64_t begin_ahead(int64_t ahead_ms)
{
	struct view_entry entry = {.path = "/w",
				   .kind = VIEW_OVERLAY,
				   .lasts = VIEW_LASTS_REVIEW};
	const struct cell_spec spec = {
		.view = {.entries = &entry, .count = 1},
		.review_ms = clock_file_ns() / NS_IN_MS + ahead_ms,
	};
	const int64_t began_ms = clock_now_ms();

	held[held_count] = base_log_open(&spec);
	base_log_begin(held[held_count++]);
	if (ahead_ms < 1000)
		assert_true(clock_file_ns() > spec.review_ms * NS_IN_MS);
	return clock_now_ms() - began_ms;
}

static void a_file_saved_during_a_call_is_never_as_old_as_the_layer(void **state)
{
	(void)state;
	for (int64_t ahead_ms = 0; ahead_ms <= AHEAD_MAX_MS; ahead_ms++)
		(void)begin_ahead(ahead_ms);
}

static void a_clock_that_was_set_back_holds_up_no_call(void **state)
{
	enum { TRIES = 5, WAIT_MS = 50 };
	int64_t least_ms = INT64_MAX;

	(void)state;
	/* On a busy machine one try may take long. */
	for (int i = 0; i < TRIES; i++) {
		const int64_t ms = begin_ahead(3600 * 1000);

		least_ms = ms < least_ms ? ms : least_ms;
	}
	assert_true(least_ms < WAIT_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_saved_during_a_call_is_never_as_old_as_the_layer),
		cmocka_unit_test(a_clock_that_was_set_back_holds_up_no_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
