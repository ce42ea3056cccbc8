/* Tests of store/schedules. */
#include "../base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/memory.h"
#include "folder.h"
#include "store/database.h"
#include "store/schedules.h"

static const struct schedule content = {
	.workspace = {"/work", 5},
	.agent = {"reviewer", 8},
	.task = {"look", 4},
	.times = {"0 9 * * *", 9},
	.next_s = 1000,
};

/* A copy that outlives the callback, as far as these tests look. */
static bool take(void *context, const struct schedule *schedule)
{
	struct schedule *taken = context;

	*taken = *schedule;
	taken->workspace = taken->agent = taken->task = taken->times = taken->zone =
		STR("");
	taken->last_outcome =
		str_is(schedule->last_outcome, "done") ? STR("done") : STR("");
	return true;
}

static struct schedule find(struct schedules *schedules, int64_t id)
{
	struct schedule found = {0};

	assert_true(schedules_find(schedules, NULL, id, take, &found, NULL));
	return found;
}

static bool claim(struct schedules *schedules, int64_t id, int64_t now_s)
{
	const struct schedule found = find(schedules, id);
	bool claimed = false;

	assert_true(schedules_claim(schedules, &found, now_s, now_s + 60, now_s + 600,
				    &claimed, NULL));
	return claimed;
}

static void what_an_agent_adds_waits_for_a_person(void **state)
{
	struct schedule asked = content;
	struct schedules *schedules;
	struct folder folder;
	char hash[HASH_HEX + 1], other[HASH_HEX + 1];
	struct err err;
	int64_t id;

	(void)state;
	folder_begin(&folder, "a/schedules.db");
	assert_true(schedules_open(folder.file, &schedules, NULL));
	asked.by = STR("orchestrator");
	assert_true(schedules_add(schedules, &asked, &id, hash, NULL));
	assert_int_equal(find(schedules, id).state, SCHEDULE_PENDING);
	assert_false(find(schedules, id).approved);
	assert_false(claim(schedules, id, 2000));
	assert_false(schedules_set_state(schedules, id, SCHEDULE_ACTIVE, 1000, &err));
	assert_int_equal(err.code, EPERM);
	memset(other, 'a', HASH_HEX);
	other[HASH_HEX] = '\0';
	assert_false(schedules_approve(schedules, id, other, 1000, &err));
	assert_int_equal(err.code, ESTALE);
	assert_false(claim(schedules, id, 2000));
	assert_true(schedules_approve(schedules, id, hash, 1000, NULL));
	assert_true(find(schedules, id).approved);
	assert_true(claim(schedules, id, 2000));
	schedules_close(schedules);
	folder_end(&folder);
}

static void the_content_cannot_be_changed_behind_an_approval(void **state)
{
	static const char *const none[] = {"", NULL};
	struct schedules *schedules;
	struct database *database;
	struct folder folder;
	char hash[HASH_HEX + 1];
	struct err err;
	int64_t id;

	(void)state;
	folder_begin(&folder, "schedules.db");
	assert_true(schedules_open(folder.file, &schedules, NULL));
	assert_true(schedules_add(schedules, &content, &id, hash, NULL));
	assert_true(database_open(folder.file, none, &database, NULL));
	assert_false(database_run(database, "UPDATE schedule SET task = 'other'", &err));
	assert_non_null(strstr(err.text, "stays"));
	/* Whoever takes even that away has another hash. */
	assert_true(database_run(
		database,
		"DROP TRIGGER content_stays; UPDATE schedule SET task = 'other'", NULL));
	database_close(database);
	assert_false(find(schedules, id).approved);
	assert_false(claim(schedules, id, 2000));
	schedules_close(schedules);
	folder_end(&folder);
}

static void a_run_is_claimed_once_and_ends(void **state)
{
	struct schedules *schedules;
	struct folder folder;
	char hash[HASH_HEX + 1];
	int64_t id;

	(void)state;
	folder_begin(&folder, "schedules.db");
	assert_true(schedules_open(folder.file, &schedules, NULL));
	assert_true(schedules_add(schedules, &content, &id, hash, NULL));
	assert_false(claim(schedules, id, 999)); /* not due yet */
	assert_true(claim(schedules, id, 2000));
	assert_int_equal(find(schedules, id).busy_until_s, 2060);
	assert_false(claim(schedules, id, 2000)); /* due at 2600 */
	assert_true(schedules_set_state(schedules, id, SCHEDULE_ACTIVE, 2010, NULL));
	assert_false(claim(schedules, id, 2020)); /* due, but it still runs */
	/* Somebody else's claim does not end it. */
	assert_true(schedules_end(schedules, id, 2059, "done", "s", NULL));
	assert_int_equal(find(schedules, id).busy_until_s, 2060);
	assert_true(schedules_end(schedules, id, 2060, "done", "s", NULL));
	assert_int_equal(find(schedules, id).busy_until_s, 0);
	assert_true(str_is(find(schedules, id).last_outcome, "done"));
	assert_true(claim(schedules, id, 2020));
	/* It was killed: its time runs out. */
	assert_true(schedules_set_state(schedules, id, SCHEDULE_ACTIVE, 2030, NULL));
	assert_false(claim(schedules, id, 2079));
	assert_true(claim(schedules, id, 2080));
	assert_true(schedules_set_state(schedules, id, SCHEDULE_DISABLED, 2080, NULL));
	assert_false(claim(schedules, id, 9000));
	schedules_close(schedules);
	folder_end(&folder);
}

static void two_timers_run_it_once(void **state)
{
	enum { TIMERS = 4 };
	struct schedules *schedules;
	struct folder folder;
	char hash[HASH_HEX + 1];
	int64_t id;
	int claimed = 0;

	(void)state;
	folder_begin(&folder, "schedules.db");
	assert_true(schedules_open(folder.file, &schedules, NULL));
	assert_true(schedules_add(schedules, &content, &id, hash, NULL));
	schedules_close(schedules);
	for (int i = 0; i < TIMERS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			bool mine = schedules_open(folder.file, &schedules, NULL) &&
				    claim(schedules, id, 2000);

			_exit(mine ? 1 : 0);
		}
	}
	for (int i = 0; i < TIMERS; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status));
		claimed += WEXITSTATUS(status);
	}
	assert_int_equal(claimed, 1);
	folder_end(&folder);
}

/* A schedule of WHOM, with the times of 0.1.0; NOW has the form that means the same. */
static int64_t add_old(struct schedules *schedules, const char *whom,
		       struct schedule *old, struct schedule *now)
{
	int64_t id;

	*old = content;
	old->times = STR("every 30 minutes");
	old->zone = STR("Europe/Berlin");
	old->by = str_of(whom);
	assert_true(schedules_add(schedules, old, &id, old->hash, NULL));
	old->id = id;
	*now = *old;
	now->times = STR("*:00/30");
	now->zone = STR("UTC");
	assert_true(schedules_may_add(schedules, now, now->hash, NULL));
	return id;
}

static void a_form_that_means_the_same_keeps_the_approval(void **state)
{
	struct schedules *schedules;
	struct schedule old, now, found;
	struct folder folder;
	int64_t id;

	(void)state;
	folder_begin(&folder, "schedules.db");
	assert_true(schedules_open(folder.file, &schedules, NULL));
	id = add_old(schedules, "", &old, &now);
	assert_true(claim(schedules, id, 2000));
	assert_true(schedules_renew(schedules, &old, &now, NULL));
	found = find(schedules, id);
	assert_string_equal(found.hash, now.hash);
	assert_true(found.approved);
	assert_int_equal(found.state, SCHEDULE_ACTIVE);
	assert_int_equal(found.next_s, 2600);
	assert_int_equal(found.last_s, 2000);
	assert_int_equal(found.busy_until_s, 2060);
	assert_true(schedules_end(schedules, id, 2060, "done", "s", NULL));
	/* The content of before is not there any more, and nothing happens again. */
	assert_true(schedules_renew(schedules, &old, &now, NULL));
	assert_true(claim(schedules, id, 2600));
	schedules_close(schedules);
	folder_end(&folder);
}

static void a_form_that_means_the_same_approves_nothing(void **state)
{
	struct schedules *schedules;
	struct schedule old, now;
	struct database *database;
	struct folder folder;
	static const char *const none[] = {"", NULL};
	int64_t id, other;

	(void)state;
	folder_begin(&folder, "schedules.db");
	assert_true(schedules_open(folder.file, &schedules, NULL));
	id = add_old(schedules, "orchestrator", &old, &now);
	/* Another schedule has that content: both stay as they are. */
	assert_true(schedules_add(schedules, &now, &other, now.hash, NULL));
	assert_true(schedules_renew(schedules, &old, &now, NULL));
	assert_string_equal(find(schedules, id).hash, old.hash);
	assert_string_equal(find(schedules, other).hash, now.hash);
	assert_true(schedules_remove(schedules, other, NULL));
	assert_true(schedules_renew(schedules, &old, &now, NULL));
	assert_string_equal(find(schedules, id).hash, now.hash);
	assert_false(find(schedules, id).approved);
	assert_int_equal(find(schedules, id).state, SCHEDULE_PENDING);
	/* Nor is another content approved that somebody wrote into the database. */
	assert_true(schedules_remove(schedules, id, NULL));
	id = add_old(schedules, "", &old, &now);
	assert_true(database_open(folder.file, none, &database, NULL));
	assert_true(database_run(
		database,
		"DROP TRIGGER content_stays; UPDATE schedule SET task = 'other'", NULL));
	database_close(database);
	old = find(schedules, id);
	old.workspace = content.workspace;
	old.agent = content.agent;
	old.task = STR("other");
	now = old;
	now.times = STR("*:00/30");
	now.zone = STR("UTC");
	assert_true(schedules_renew(schedules, &old, &now, NULL));
	assert_false(find(schedules, id).approved);
	assert_false(claim(schedules, id, 2000));
	schedules_close(schedules);
	folder_end(&folder);
}

static void there_are_bounds(void **state)
{
	auto_free char *task = memory_alloc(SCHEDULES_TASK_MAX + 2);
	struct schedule wanted = content;
	struct schedules *schedules;
	struct folder folder;
	char hash[HASH_HEX + 1], text[32];
	struct err err;
	int64_t id, first = 0;

	(void)state;
	folder_begin(&folder, "schedules.db");
	assert_true(schedules_open(folder.file, &schedules, NULL));
	memset(task, 't', SCHEDULES_TASK_MAX + 1);
	wanted.task = str_of(task);
	assert_false(schedules_add(schedules, &wanted, &id, hash, &err));
	assert_int_equal(err.code, E2BIG);
	wanted.task = (struct str){"a\0b", 3};
	assert_false(schedules_add(schedules, &wanted, &id, hash, &err));
	wanted.by = STR("orchestrator");
	for (int i = 0; i < SCHEDULES_PENDING_MAX; i++) {
		(void)snprintf(text, sizeof(text), "task %d", i);
		wanted.task = str_of(text);
		assert_true(schedules_add(schedules, &wanted, &id, hash, NULL));
		first = first > 0 ? first : id;
	}
	assert_false(schedules_add(schedules, &wanted, &id, hash, &err));
	assert_true(err.code == ENOSPC || err.code == EEXIST);
	assert_false(schedules_may_add(schedules, &wanted, hash, &err));
	assert_int_equal(err.code, EEXIST);
	wanted.task = STR("one more");
	assert_false(schedules_add(schedules, &wanted, &id, hash, &err));
	assert_int_equal(err.code, ENOSPC);
	assert_false(schedules_may_add(schedules, &wanted, hash, &err));
	assert_int_equal(err.code, ENOSPC);
	/* The person still may, and no number comes twice. */
	wanted.by = STR("");
	assert_true(schedules_may_add(schedules, &wanted, hash, NULL));
	assert_true(schedules_add(schedules, &wanted, &id, hash, NULL));
	assert_false(schedules_add(schedules, &wanted, &id, hash, &err));
	assert_int_equal(err.code, EEXIST);
	assert_true(schedules_remove(schedules, id, NULL));
	wanted.task = STR("another");
	int64_t next = 0;
	assert_true(schedules_add(schedules, &wanted, &next, hash, NULL));
	assert_true(next > id);
	assert_false(schedules_remove(schedules, id, &err));
	assert_int_equal(err.code, ENOENT);
	schedules_close(schedules);
	folder_end(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_agent_adds_waits_for_a_person),
		cmocka_unit_test(the_content_cannot_be_changed_behind_an_approval),
		cmocka_unit_test(a_run_is_claimed_once_and_ends),
		cmocka_unit_test(two_timers_run_it_once),
		cmocka_unit_test(a_form_that_means_the_same_keeps_the_approval),
		cmocka_unit_test(a_form_that_means_the_same_approves_nothing),
		cmocka_unit_test(there_are_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
