/* snapshot: a name is given once, and one that is not finished is nowhere. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "image/snapshot.h"

struct store {
	char folder[64];
	struct err err;
};

static int setup(void **state)
{
	static struct store store;

	store = (struct store){0};
	(void)snprintf(store.folder, sizeof(store.folder), "/tmp/snapshots-XXXXXX");
	*state = &store;
	return mkdtemp(store.folder) == NULL;
}

static int teardown(void **state)
{
	struct store *store = *state;

	tree_remove(store->folder);
	return 0;
}

/* The text of the file NAME in the tree of SNAPSHOT. */
static void assert_holds(const struct snapshot *snapshot, const char *name, const char *text)
{
	char path[PATH_MAX];
	struct buf got;

	(void)snprintf(path, sizeof(path), "%s/%s", snapshot->tree, name);
	buf_init(&got, PATH_MAX);
	assert_true(fd_read_file(path, PATH_MAX, &got, NULL));
	assert_string_equal(got.data, text);
	buf_fini(&got);
}

/* Begin the snapshot NAME with a file in it. */
static bool begin(struct store *store, const char *name, struct snapshot *snapshot)
{
	char path[PATH_MAX];

	if (!snapshot_begin(store->folder, name, snapshot, &store->err))
		return false;
	(void)snprintf(path, sizeof(path), "%s/file", snapshot->tree);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && fd_write_all(fd, name, strlen(name), &store->err));
	snapshot->from = memory_copy("/work\xff");
	memset(snapshot->digest, 'a', sizeof(snapshot->digest) - 1);
	snapshot->entries = 1;
	snapshot->bytes = (int64_t)strlen(name);
	return true;
}

static void make(struct store *store, const char *name)
{
	struct snapshot snapshot;

	assert_true(begin(store, name, &snapshot));
	assert_true(snapshot_finish(&snapshot, &store->err));
	assert_holds(&snapshot, "file", name);
	snapshot_close(&snapshot);
}

static size_t names_in(const struct store *store)
{
	auto_close int fd = open(store->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fd_names names = {0};

	fd_names_read(&names, fd, 100, true);
	const size_t count = names.count;
	fd_names_fini(&names);
	return count;
}

static void one_that_is_whole_is_found_as_it_was(void **state)
{
	struct store *store = *state;
	struct snapshot snapshot;

	make(store, "one");
	assert_true(snapshot_open(store->folder, "one", &snapshot, &store->err));
	assert_string_equal(snapshot.from, "/work\xff");
	assert_int_equal(snapshot.entries, 1);
	assert_int_equal(snapshot.bytes, 3);
	assert_int_equal(strlen(snapshot.digest), HASH_HEX);
	assert_holds(&snapshot, "file", "one");
	snapshot_close(&snapshot);
	assert_false(snapshot_open(store->folder, "two", &snapshot, &store->err));
	assert_int_equal(store->err.code, ENOENT);
	snapshot_close(&snapshot);
}

static void a_name_is_given_once(void **state)
{
	struct store *store = *state;
	struct snapshot first, second;

	assert_true(begin(store, "one", &first));
	assert_true(begin(store, "one", &second));
	assert_true(snapshot_finish(&first, &store->err));
	assert_false(snapshot_finish(&second, &store->err));
	assert_int_equal(store->err.code, EEXIST);
	snapshot_close(&first);
	snapshot_close(&second);
	assert_false(snapshot_begin(store->folder, "one", &second, &store->err));
	assert_int_equal(store->err.code, EEXIST);
	snapshot_close(&second);
	assert_int_equal(names_in(store), 1);
}

static void names_are_checked(void **state)
{
	static const char *const wrong[] = {"",    ".",   "..",      ".x",
					    "a/b", "a b", "\xc3\xa4"};
	struct store *store = *state;
	struct snapshot snapshot;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(
			snapshot_begin(store->folder, wrong[i], &snapshot, &store->err));
		assert_int_equal(store->err.code, EINVAL);
		snapshot_close(&snapshot);
		assert_false(snapshot_open(store->folder, wrong[i], &snapshot, &store->err));
		snapshot_close(&snapshot);
	}
	assert_true(snapshot_check_name("A.b_c-9", &store->err));
	assert_int_equal(names_in(store), 0);
}

static void one_that_is_given_up_goes_and_a_killed_one_with_the_next(void **state)
{
	struct store *store = *state;
	struct snapshot snapshot;
	char path[PATH_MAX];

	assert_true(begin(store, "one", &snapshot));
	assert_int_equal(names_in(store), 1);
	snapshot_close(&snapshot);
	assert_int_equal(names_in(store), 0);
	(void)snprintf(path, sizeof(path), "%s/.new-00000001", store->folder);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/.old-00000001", store->folder);
	assert_int_equal(mkdir(path, 0700), 0);
	/* The one whose lock is held stays. */
	assert_true(begin(store, "one", &snapshot));
	snapshot_tidy(store->folder);
	assert_int_equal(names_in(store), 1);
	assert_true(snapshot_finish(&snapshot, &store->err));
	snapshot_close(&snapshot);
}

static void a_used_one_is_not_removed(void **state)
{
	struct store *store = *state;
	struct snapshot_list list;
	struct snapshot snapshot;

	make(store, "one");
	make(store, "two");
	assert_true(snapshot_open(store->folder, "one", &snapshot, &store->err));
	assert_true(snapshot_list_read(store->folder, &list, &store->err));
	assert_int_equal(list.count, 2);
	assert_true(list.items[0].used && !list.items[0].damaged);
	assert_false(list.items[1].used);
	assert_string_equal(list.items[1].snapshot.name, "two");
	snapshot_list_fini(&list);
	assert_false(snapshot_remove(store->folder, "one", &store->err));
	assert_int_equal(store->err.code, EBUSY);
	assert_true(snapshot_remove(store->folder, "two", &store->err));
	snapshot_close(&snapshot);
	assert_true(snapshot_remove(store->folder, "one", &store->err));
	assert_int_equal(names_in(store), 0);
}

static void damaged_and_cut_ones_are_told(void **state)
{
	struct store *store = *state;
	struct snapshot_list list;
	struct snapshot snapshot;
	char path[PATH_MAX];

	make(store, "one");
	(void)snprintf(path, sizeof(path), "%s/one/unsynced", store->folder);
	/* The disk has it soon, and then the mark goes. */
	for (int i = 0; i < 3000 && access(path, F_OK) == 0; i++)
		(void)usleep(10000);
	/* As another boot has left it. */
	assert_true(fd_replace_file(path, STR("never\n"), &store->err));
	assert_false(snapshot_open(store->folder, "one", &snapshot, &store->err));
	assert_int_equal(store->err.code, EINVAL);
	snapshot_close(&snapshot);
	make(store, "two");
	(void)snprintf(path, sizeof(path), "%s/two/meta.json", store->folder);
	assert_true(fd_replace_file(path, STR("{\"version\": 1}"), &store->err));
	assert_true(snapshot_list_read(store->folder, &list, &store->err));
	assert_int_equal(list.count, 2);
	assert_true(list.items[0].damaged && list.items[1].damaged);
	snapshot_list_fini(&list);
	assert_true(snapshot_remove(store->folder, "two", &store->err));
}

/* The folder of a snapshot that has just been made is no one that a killed process has left. */
static void nobody_tidies_a_snapshot_away_that_begins(void **state)
{
	enum { BEGUN = 400 };
	struct store *store = *state;
	const pid_t tidier = fork();

	if (tidier == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (tidier == 0)
		snapshot_tidy(store->folder);
	assert_true(tidier > 0);
	for (int i = 0; i < BEGUN; i++) {
		struct snapshot snapshot;

		if (!begin(store, "one", &snapshot)) {
			(void)kill(tidier, SIGKILL);
			fail_msg("the snapshot %d: %s", i, store->err.text);
		}
		snapshot_close(&snapshot);
	}
	assert_int_equal(kill(tidier, SIGKILL), 0);
	assert_int_equal(waitpid(tidier, NULL, 0), tidier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_that_is_whole_is_found_as_it_was,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_is_given_once, setup, teardown),
		cmocka_unit_test_setup_teardown(names_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(
			one_that_is_given_up_goes_and_a_killed_one_with_the_next, setup,
			teardown),
		cmocka_unit_test_setup_teardown(nobody_tidies_a_snapshot_away_that_begins,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_used_one_is_not_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_and_cut_ones_are_told, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
