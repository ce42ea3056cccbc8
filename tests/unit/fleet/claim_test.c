/* Claims: one holder, renewed, and taken over from holders that have ended or are silent. */

#include "fleet/batch/claim.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "fleet/store.h"

#include "../base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND = 1000, TEXT_MAX = 4 << 10 };

struct place {
	char folder[64];
	struct fleet_store *store;
};

static int set_up(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	struct err err;

	(void)snprintf(place->folder, sizeof(place->folder), "/tmp/glovebox-claim-XXXXXX");
	assert_non_null(mkdtemp(place->folder));
	if (!fleet_store_open(place->folder, true, &place->store, &err))
		fail_msg("%s", err.text);
	*state = place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;

	fleet_store_close(place->store);
	fd_folder_remove(place->folder);
	free(place);
	return 0;
}

static struct fleet_claim *claim_of(void **state)
{
	const struct place *place = *state;

	return fleet_claim_new(place->store, "job", 1, 4);
}

/* Somebody on another machine has the shard, and has changed the claim COUNT times. */
static void put_other(void **state, int count, const char *more)
{
	const struct place *place = *state;
	char text[256];
	struct err err;

	(void)snprintf(text, sizeof(text),
		       "{\"holder\":\"f00\",\"host\":\"far\",\"boot\":\"other\",\"pids\":\"x\","
		       "\"process\":7,\"started\":\"1\",\"count\":%d%s}\n",
		       count, more);
	if (fleet_store_put(place->store, "jobs/job/claims/1-of-4.json", str_of(text),
			    FLEET_REPLACE, &err) != FLEET_PUT_DONE)
		fail_msg("%s", err.text);
}

static enum fleet_claimed take(struct fleet_claim *claim, int64_t now_ms)
{
	struct err err = {0};
	const enum fleet_claimed claimed = fleet_claim_take(claim, now_ms, &err);

	if (claimed == FLEET_CLAIM_FAILED)
		fail_msg("%s", err.text);
	return claimed;
}

static void a_free_shard_has_one_holder(void **state)
{
	struct fleet_claim *first = claim_of(state), *second = claim_of(state);

	assert_int_equal(take(first, 0), FLEET_CLAIM_MINE);
	assert_int_equal(take(second, 0), FLEET_CLAIM_UNSURE);
	fleet_claim_release(first);
	assert_int_equal(take(second, 0), FLEET_CLAIM_MINE);
	/* The shard of somebody else is not given away. */
	fleet_claim_release(first);
	assert_int_equal(take(first, 0), FLEET_CLAIM_UNSURE);
	fleet_claim_free(first);
	fleet_claim_free(second);
}

static void a_silent_holder_is_stale_after_five_minutes_of_looking(void **state)
{
	struct fleet_claim *claim = claim_of(state);

	put_other(state, 1, "");
	assert_int_equal(take(claim, 50 * SECOND), FLEET_CLAIM_UNSURE);
	assert_string_equal(fleet_claim_holder(claim), "far, process 7");
	assert_int_equal(take(claim, 349 * SECOND), FLEET_CLAIM_UNSURE);
	assert_int_equal(take(claim, 350 * SECOND), FLEET_CLAIM_MINE);
	fleet_claim_free(claim);
}

static void a_holder_that_changes_its_claim_lives(void **state)
{
	struct fleet_claim *claim = claim_of(state);

	put_other(state, 1, "");
	assert_int_equal(take(claim, 0), FLEET_CLAIM_UNSURE);
	put_other(state, 2, "");
	assert_int_equal(take(claim, 301 * SECOND), FLEET_CLAIM_LIVES);
	fleet_claim_free(claim);
}

static void an_earlier_start_of_the_same_array_task_has_ended(void **state)
{
	struct fleet_claim *claim = claim_of(state);

	put_other(state, 1, ",\"scheduler\":\"slurm 12 3 0 batch\"");
	assert_int_equal(setenv("SLURM_ARRAY_JOB_ID", "12", 1), 0);
	assert_int_equal(setenv("SLURM_ARRAY_TASK_ID", "4", 1), 0);
	assert_int_equal(take(claim, 0), FLEET_CLAIM_UNSURE);
	assert_int_equal(setenv("SLURM_ARRAY_TASK_ID", "3", 1), 0);
	assert_int_equal(take(claim, 0), FLEET_CLAIM_MINE);
	(void)unsetenv("SLURM_ARRAY_JOB_ID");
	(void)unsetenv("SLURM_ARRAY_TASK_ID");
	fleet_claim_free(claim);
}

static void a_claim_is_renewed_when_that_is_due(void **state)
{
	const struct place *place = *state;
	struct fleet_claim *claim = claim_of(state);
	struct buf before, after;
	struct err err = {0};

	buf_init(&before, TEXT_MAX);
	buf_init(&after, TEXT_MAX);
	assert_int_equal(take(claim, 0), FLEET_CLAIM_MINE);
	assert_true(fleet_store_get(place->store, "jobs/job/claims/1-of-4.json", &before,
				    &err));
	assert_true(fleet_claim_renew(claim, 59 * SECOND, &err));
	assert_true(fleet_store_get(place->store, "jobs/job/claims/1-of-4.json", &after,
				    &err));
	assert_string_equal(before.data, after.data);
	buf_clear(&after);
	assert_true(fleet_claim_renew(claim, 60 * SECOND, &err));
	assert_true(fleet_store_get(place->store, "jobs/job/claims/1-of-4.json", &after,
				    &err));
	assert_string_not_equal(before.data, after.data);
	buf_fini(&before);
	buf_fini(&after);
	fleet_claim_free(claim);
}

static void a_holder_whose_claim_was_taken_over_is_told(void **state)
{
	const struct place *place = *state;
	struct fleet_claim *claim = claim_of(state);
	struct buf text;
	struct err err = {0};

	assert_int_equal(take(claim, 0), FLEET_CLAIM_MINE);
	put_other(state, 1, "");
	assert_false(fleet_claim_renew(claim, 61 * SECOND, &err));
	assert_int_equal(err.code, EEXIST);
	fleet_claim_release(claim);
	buf_init(&text, TEXT_MAX);
	assert_true(fleet_store_get(place->store, "jobs/job/claims/1-of-4.json", &text,
				    &err));
	assert_non_null(strstr(text.data, "f00"));
	buf_fini(&text);
	fleet_claim_free(claim);
}

static void a_claim_that_is_no_json_is_stale_after_a_while(void **state)
{
	const struct place *place = *state;
	struct fleet_claim *claim = claim_of(state);
	struct err err;

	assert_int_equal(fleet_store_put(place->store, "jobs/job/claims/1-of-4.json",
					 STR("{"), FLEET_REPLACE, &err),
			 FLEET_PUT_DONE);
	assert_int_equal(take(claim, 0), FLEET_CLAIM_UNSURE);
	assert_int_equal(take(claim, 300 * SECOND), FLEET_CLAIM_MINE);
	fleet_claim_free(claim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_free_shard_has_one_holder, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			a_silent_holder_is_stale_after_five_minutes_of_looking, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(a_holder_that_changes_its_claim_lives,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_earlier_start_of_the_same_array_task_has_ended,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_claim_is_renewed_when_that_is_due,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_holder_whose_claim_was_taken_over_is_told,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_claim_that_is_no_json_is_stale_after_a_while,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
