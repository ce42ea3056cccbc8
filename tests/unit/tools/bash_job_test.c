/* Tests of tools/bash_job: where the next answer goes on. */
#include "../base/unit.h"

#include "tools/bash.h"

static void assert_mark(struct bash_mark mark, uint64_t out, uint64_t error)
{
	assert_int_equal(mark.out, out);
	assert_int_equal(mark.error, error);
}

static void the_first_answer_begins_at_the_beginning(void **state)
{
	const struct bash_job job = {0};

	(void)state;
	assert_mark(bash_job_from(&job, -1), 0, 0);
	assert_mark(bash_job_from(&job, 1000), 0, 0);
}

static void the_next_one_goes_on_where_the_last_ended(void **state)
{
	struct bash_job job = {0};

	(void)state;
	bash_job_shown(&job, (struct bash_mark){10, 5});
	bash_job_shown(&job, (struct bash_mark){30, 5});
	assert_mark(bash_job_from(&job, -1), 30, 5);
}

static void a_place_is_found_by_its_bytes_and_one_between_begins_earlier(void **state)
{
	struct bash_job job = {0};

	(void)state;
	bash_job_shown(&job, (struct bash_mark){10, 5});
	bash_job_shown(&job, (struct bash_mark){30, 5});
	assert_mark(bash_job_from(&job, 35), 30, 5);
	assert_mark(bash_job_from(&job, 34), 10, 5);
	assert_mark(bash_job_from(&job, 15), 10, 5);
	assert_mark(bash_job_from(&job, 14), 0, 0);
	assert_mark(bash_job_from(&job, 0), 0, 0);
}

static void of_very_many_places_the_last_ones_stay(void **state)
{
	struct bash_job job = {0};

	(void)state;
	for (uint64_t i = 1; i <= 1000; i++)
		bash_job_shown(&job, (struct bash_mark){i, 0});
	assert_mark(bash_job_from(&job, -1), 1000, 0);
	assert_mark(bash_job_from(&job, 999), 999, 0);
	assert_mark(bash_job_from(&job, 1), 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_answer_begins_at_the_beginning),
		cmocka_unit_test(the_next_one_goes_on_where_the_last_ended),
		cmocka_unit_test(
			a_place_is_found_by_its_bytes_and_one_between_begins_earlier),
		cmocka_unit_test(of_very_many_places_the_last_ones_stay),
	};

	return cmocka_run_group_tests_name("bash_job", tests, NULL, NULL);
}
