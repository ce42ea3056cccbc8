/* Tests of undo/undo_store: the files of the next steps, made ahead and named when they begin. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "undo/store.h"

enum { MANY = 300 };

static const struct undo_meta meta = {
	.work = UNDO_BY_TOOL,
	.run = "0123456789ab",
	.tool = "edit_file",
};

/* A folder of stores, and the one of a workspace in it. */
struct shed {
	char base[64];
	char folder[PATH_MAX]; /* of that store */
};

static struct undo_store *open_store(const struct shed *shed)
{
	auto_value struct value *rights = value_new_object();
	struct undo_store *store = NULL;
	struct err err = {0};

	assert_true(undo_store_open(shed->base, "/somewhere", &store, &err));
	undo_store_set_rights(store, rights);
	return store;
}

static int shed_set_up(void **state)
{
	struct shed *shed = memory_alloc(sizeof(*shed));

	(void)snprintf(shed->base, sizeof(shed->base), "%s/glovebox-unit-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(shed->base));
	undo_store_close(open_store(shed));
	DIR *names = opendir(shed->base);
	assert_non_null(names);
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (at->d_name[0] != '.')
			(void)snprintf(shed->folder, sizeof(shed->folder), "%s/%s",
				       shed->base, at->d_name);
	}
	(void)closedir(names);
	*state = shed;
	return 0;
}

static int shed_tear_down(void **state)
{
	struct shed *shed = *state;

	tree_remove(shed->base);
	free(shed);
	return 0;
}

static size_t count_names(const char *folder, const char *ending)
{
	DIR *names = opendir(folder);
	size_t count = 0;

	assert_non_null(names);
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (at->d_name[0] != '.' && str_ends(str_of(at->d_name), str_of(ending)))
			count++;
	}
	(void)closedir(names);
	return count;
}

static size_t count_open(void)
{
	return count_names("/proc/self/fd", "");
}

static int new_log(struct undo_store *store, uint32_t *number)
{
	struct err err = {0};
	int fd = undo_store_new_log(store, &meta, number, &err);

	if (fd < 0)
		fail_msg("no log: %s", err.text);
	return fd;
}

static void begin_and_end(struct undo_store *store)
{
	uint32_t number;
	int fd = new_log(store, &number);

	assert_true(undo_store_is_ours(store, number));
	fd_close(&fd);
}

static void many_steps_leave_as_many_files_and_no_descriptor(void **state)
{
	const struct shed *shed = *state;
	struct undo_store *store = open_store(shed);
	size_t open_first = 0;

	for (int i = 0; i < MANY; i++) {
		begin_and_end(store);
		if (i == 1)
			open_first = count_open();
	}
	assert_int_equal(count_open(), open_first);
	assert_int_equal(count_names(shed->folder, ".log"), MANY);
	assert_int_equal(count_names(shed->folder, ".step"), MANY);
	assert_int_equal(count_names(shed->folder, ""), 2 * MANY + 2);
	undo_store_close(store);
}

static void two_sessions_take_neither_numbers_nor_files_of_each_other(void **state)
{
	const struct shed *shed = *state;
	struct undo_store *stores[2] = {open_store(shed), open_store(shed)};
	uint32_t last = 0;

	for (int i = 0; i < MANY; i++) {
		struct undo_store *store = stores[i % 3 != 0];
		struct undo_reader reader = {0};
		uint32_t number;
		auto_close int fd = new_log(store, &number);
		struct undo_log log;

		assert_true(number > last);
		last = number;
		undo_log_begin(&log, fd, number);
		assert_int_equal(log.at, 0);
		assert_true(undo_log_end(&log, NULL));
		/* Each finds what the other has begun. */
		assert_true(undo_store_read_log(stores[i % 2], number, true, &reader,
						NULL, NULL));
		assert_true(reader.ended);
	}
	assert_int_equal(count_names(shed->folder, ".log"), MANY);
	assert_int_equal(count_names(shed->folder, ".step"), MANY);
	undo_store_close(stores[0]);
	undo_store_close(stores[1]);
}

/* What stands beside a log that is no more says nothing of the one that gets its number. */
static void an_old_step_is_replaced(void **state)
{
	const struct shed *shed = *state;
	struct undo_store *store = open_store(shed);
	char old[PATH_MAX + 32];

	begin_and_end(store);
	(void)snprintf(old, sizeof(old), "%s/00000002.step", shed->folder);
	auto_close int fd = open(old, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	begin_and_end(store);
	assert_int_equal(count_names(shed->folder, ""), 6);
	undo_store_close(store);
}

/* A power failure has taken the description, or a kill came before it: the content stays. */
static void a_log_without_its_description_is_kept_and_told(void **state)
{
	const struct timespec past[2] = {{.tv_nsec = UTIME_OMIT},
					 {.tv_sec = clock_wall_ms() / 1000 - 7200}};
	const struct shed *shed = *state;
	struct undo_store *store = open_store(shed);
	struct undo_state before = {.kind = UNDO_FILE, .mode = 0644};
	struct undo_steps steps;
	struct undo_log log;
	struct err err = {0};
	uint32_t number;
	char path[PATH_MAX + 32];

	for (int i = 0; i < 2; i++) {
		auto_close int fd = new_log(store, &number);

		/* The first one holds no change, and nobody needs it. */
		undo_log_begin(&log, fd, number);
		assert_true(i == 0 ||
			    (undo_log_data(&log, STR("only copy"), &before, &err) &&
			     undo_log_change(&log, STR("a"), &before, &undo_absent, &err)));
		assert_int_equal(futimens(fd, past), 0);
		(void)snprintf(path, sizeof(path), "%s/%08u.step", shed->folder, number);
		assert_int_equal(i == 0 ? unlink(path) : truncate(path, 0), 0);
	}
	undo_store_close(store);
	store = open_store(shed);
	for (int i = 0; i < 2; i++) {
		assert_true(undo_store_steps(store, &steps, &err));
		assert_int_equal(steps.count, 1);
		assert_int_equal(steps.steps[0].number, number);
		assert_int_equal(steps.steps[0].files, 1);
		assert_non_null(strstr(steps.steps[0].title, "description is lost"));
		undo_steps_fini(&steps);
		assert_true(undo_store_tidy(store));
		assert_int_equal(count_names(shed->folder, ".log"), 1);
	}
	undo_store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, shed_set_up, shed_tear_down)
		TEST(many_steps_leave_as_many_files_and_no_descriptor),
		TEST(two_sessions_take_neither_numbers_nor_files_of_each_other),
		TEST(an_old_step_is_replaced),
		TEST(a_log_without_its_description_is_kept_and_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
