/* watcher: what is told of names, moves, dropped folders, and trees that cannot be watched. */
#include "../base/unit.h"

#include "base/fd.h"
#include "tools/looks/watcher.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WATCHES = 1000 };

struct tree {
	char path[64];
	int fd;
	struct watcher_fds fds;
	struct watcher *watcher;
};

static int open_tree(void **state)
{
	static struct tree tree;
	struct err err = {0};

	(void)snprintf(tree.path, sizeof(tree.path), "/tmp/glovebox-unit-XXXXXX");
	if (mkdtemp(tree.path) == NULL)
		return -1;
	tree.fd = open(tree.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tree.fds.events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	tree.fds.pending = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	tree.watcher = watcher_new(tree.fd, WATCHES, tree.fds, &err);
	*state = &tree;
	return tree.watcher != NULL ? 0 : -1;
}

static int close_tree(void **state)
{
	struct tree *tree = *state;

	watcher_free(tree->watcher);
	(void)close(tree->fd);
	(void)close(tree->fds.events);
	(void)close(tree->fds.pending);
	fd_folder_remove(tree->path);
	return access(tree->path, F_OK) < 0 ? 0 : -1;
}

/* Make the folder PATH if it is not there, and watch it. */
static void watch(struct tree *tree, const char *path, enum watched kind)
{
	int fd;

	(void)mkdirat(tree->fd, path, 0700);
	fd = openat(tree->fd, path[0] != '\0' ? path : ".",
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_false(watcher_add(tree->watcher, fd, str_of(path), kind));
	assert_true(watcher_add(tree->watcher, fd, str_of(path), kind));
	(void)close(fd);
}

static void write_file(struct tree *tree, const char *path)
{
	int fd = openat(tree->fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && write(fd, "x", 1) == 1);
	(void)close(fd);
}

/* The bits that were told of PATH. */
static unsigned how(const struct told_names *told, const char *path)
{
	for (size_t i = 0; i < told->count; i++) {
		if (str_is(told->names[i].path, path))
			return told->names[i].how;
	}
	return 0;
}

static void names_are_told_once_each(void **state)
{
	struct tree *tree = *state;
	struct told_names told;

	watch(tree, "", WATCHED_ROWS);
	watch(tree, "a", WATCHED_ROWS);
	watch(tree, "ignored", WATCHED_IGNORED);
	assert_true(watcher_take(tree->watcher, &told));
	told_names_fini(&told);
	for (int i = 0; i < 1000; i++) {
		write_file(tree, "a/one");
		write_file(tree, "a/two");
	}
	write_file(tree, "ignored/three");
	write_file(tree, "ignored/three");
	assert_int_equal(unlinkat(tree->fd, "a/two", 0), 0);
	assert_true(watcher_take(tree->watcher, &told));
	assert_int_equal(told.count, 3);
	assert_int_equal(how(&told, "a/one"), TOLD_MADE | TOLD_WRITTEN);
	assert_int_equal(how(&told, "a/two"), TOLD_MADE | TOLD_WRITTEN | TOLD_GONE);
	assert_int_equal(how(&told, "ignored/three"), TOLD_MADE | TOLD_IN_IGNORED);
	told_names_fini(&told);
	assert_true(watcher_take(tree->watcher, &told));
	assert_int_equal(told.count, 0);
	told_names_fini(&told);
}

static bool is_pending(const struct tree *tree)
{
	struct pollfd fds[] = {{.fd = tree->fds.events, .events = POLLIN},
			       {.fd = tree->fds.pending, .events = POLLIN}};

	return poll(fds, 2, 0) > 0;
}

static void it_can_be_polled_whether_there_is_something_to_take(void **state)
{
	struct pollfd taken = {.events = POLLIN};
	struct tree *tree = *state;
	struct told_names told;
	struct err err;

	taken.fd = tree->fds.pending;
	for (int i = 0; i < 3; i++) {
		watch(tree, "", WATCHED_ROWS);
		assert_false(is_pending(tree));
		write_file(tree, "one");
		assert_true(is_pending(tree));
		/* Also once the thread has taken it. */
		assert_int_equal(poll(&taken, 1, -1), 1);
		assert_true(is_pending(tree));
		assert_true(watcher_take(tree->watcher, &told));
		assert_int_equal(told.count, 1);
		told_names_fini(&told);
		assert_false(is_pending(tree));
		/* The next watcher begins with nothing. */
		write_file(tree, "two");
		watcher_free(tree->watcher);
		tree->watcher = watcher_new(tree->fd, WATCHES, tree->fds, &err);
		assert_non_null(tree->watcher);
	}
	assert_false(is_pending(tree));
}

static void a_moved_folder_is_two_names(void **state)
{
	struct tree *tree = *state;
	struct told_names told;

	watch(tree, "", WATCHED_ROWS);
	watch(tree, "a", WATCHED_ROWS);
	assert_int_equal(renameat(tree->fd, "a", tree->fd, "b"), 0);
	write_file(tree, "b/x");
	assert_true(watcher_take(tree->watcher, &told));
	assert_int_equal(how(&told, "a") & TOLD_MOVED, TOLD_MOVED);
	assert_int_equal(how(&told, "b") & TOLD_MOVED, TOLD_MOVED);
	for (size_t i = 0; i < told.count; i++) {
		const struct told *name = &told.names[i];

		assert_int_equal(name->left, str_is(name->path, "a"));
		assert_int_equal(name->came, str_is(name->path, "b"));
		assert_int_equal(name->made, !str_is(name->path, "b"));
	}
	/* Under its old path, until it is added under the new one. */
	assert_true(how(&told, "a/x") != 0);
	told_names_fini(&told);
	watcher_drop(tree->watcher, STR("a"));
	write_file(tree, "b/y");
	assert_true(watcher_take(tree->watcher, &told));
	assert_int_equal(how(&told, "a/y"), 0);
	told_names_fini(&told);
	watch(tree, "b", WATCHED_GIT);
	write_file(tree, "b/z");
	assert_true(watcher_take(tree->watcher, &told));
	assert_int_equal(how(&told, "b/z"), TOLD_MADE | TOLD_WRITTEN | TOLD_IN_GIT);
	told_names_fini(&told);
}

static void a_removed_folder_is_told_and_forgotten(void **state)
{
	struct tree *tree = *state;
	struct told_names told;

	watch(tree, "", WATCHED_ROWS);
	watch(tree, "a", WATCHED_ROWS);
	assert_int_equal(unlinkat(tree->fd, "a", AT_REMOVEDIR), 0);
	assert_true(watcher_take(tree->watcher, &told));
	assert_true((how(&told, "a") & TOLD_UNWATCHED) != 0);
	told_names_fini(&told);
	/* The next folder of that name is another one, also where its inode is used again. */
	watch(tree, "a", WATCHED_ROWS);
}

static void a_root_that_goes_is_a_loss(void **state)
{
	struct tree *tree = *state;
	char other[80];
	struct told_names told;

	watch(tree, "", WATCHED_ROWS);
	(void)snprintf(other, sizeof(other), "%s-moved", tree->path);
	assert_int_equal(rename(tree->path, other), 0);
	assert_false(watcher_take(tree->watcher, &told));
	told_names_fini(&told);
	assert_int_equal(rename(other, tree->path), 0);
}

static void what_others_change_is_not_watched(void **state)
{
	struct tree *tree = *state;
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct told_names told;
	struct err err = {0};

	assert_null(watcher_new(fd, WATCHES, (struct watcher_fds){-1, -1}, &err));
	assert_true(strstr(err.text, "unseen") != NULL);
	watch(tree, "", WATCHED_ROWS);
	assert_null(watcher_useless(tree->watcher));
	assert_false(watcher_add(tree->watcher, fd, STR("mounted"), WATCHED_ROWS));
	assert_non_null(watcher_useless(tree->watcher));
	assert_false(watcher_take(tree->watcher, &told));
	told_names_fini(&told);
	(void)close(fd);
}

static void more_folders_than_it_may_watch_are_none(void **state)
{
	struct tree *tree = *state;
	struct told_names told;
	struct err err = {0};

	watcher_free(tree->watcher);
	tree->watcher = watcher_new(tree->fd, 2, tree->fds, &err);
	assert_non_null(tree->watcher);
	watch(tree, "", WATCHED_ROWS);
	watch(tree, "a", WATCHED_ROWS);
	assert_null(watcher_useless(tree->watcher));
	assert_int_equal(mkdirat(tree->fd, "b", 0700), 0);
	auto_close int third = openat(tree->fd, "b", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_false(watcher_add(tree->watcher, third, STR("b"), WATCHED_ROWS));
	assert_string_equal(watcher_useless(tree->watcher),
			    "more folders than the 2 of limits.watches");
	assert_false(watcher_take(tree->watcher, &told));
	told_names_fini(&told);
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test_setup_teardown(names_are_told_once_each, open_tree,
						close_tree),
		cmocka_unit_test_setup_teardown(it_can_be_polled_whether_there_is_something_to_take,
						open_tree, close_tree),
		cmocka_unit_test_setup_teardown(a_moved_folder_is_two_names, open_tree,
						close_tree),
		cmocka_unit_test_setup_teardown(a_removed_folder_is_told_and_forgotten,
						open_tree, close_tree),
		cmocka_unit_test_setup_teardown(a_root_that_goes_is_a_loss, open_tree,
						close_tree),
		cmocka_unit_test_setup_teardown(what_others_change_is_not_watched,
						open_tree, close_tree),
		cmocka_unit_test_setup_teardown(more_folders_than_it_may_watch_are_none,
						open_tree, close_tree),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
