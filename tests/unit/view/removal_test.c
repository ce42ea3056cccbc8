/* removal: a process of its own removes what a cell has left, and nothing else. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "view/removal.h"

struct place {
	char folder[64];
	int top; /* the folder `in`, beside the file `kept` */
};

static void make_file(int at, const char *name)
{
	const int fd = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static bool is_there(int at, const char *name)
{
	struct stat st;

	return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int setup(void **state)
{
	static struct place place;

	(void)snprintf(place.folder, sizeof(place.folder), "/tmp/removal-XXXXXX");
	if (mkdtemp(place.folder) == NULL)
		return -1;
	auto_close int folder = open(place.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_file(folder, "kept");
	assert_int_equal(mkdirat(folder, "in", 0700), 0);
	place.top = openat(folder, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &place;
	return place.top < 0;
}

static int teardown(void **state)
{
	struct place *place = *state;

	(void)close(place->top);
	tree_remove(place->folder);
	return 0;
}

static void a_folder_is_emptied_whatever_its_rights_are(void **state)
{
	const struct place *place = *state;

	assert_int_equal(mkdirat(place->top, "a", 0700), 0);
	make_file(place->top, "a/f");
	assert_int_equal(symlinkat("../../kept", place->top, "a/l"), 0);
	assert_int_equal(symlinkat("..", place->top, "up"), 0);
	assert_int_equal(mkdirat(place->top, "a/closed", 0700), 0);
	make_file(place->top, "a/closed/f");
	assert_int_equal(fchmodat(place->top, "a/closed", 0, 0), 0);
	assert_int_equal(fchmodat(place->top, "a", 0, 0), 0);
	assert_int_equal(removal_empty(place->top), 0);
	assert_false(is_there(place->top, "a"));
	assert_false(is_there(place->top, "up"));
	assert_true(is_there(place->top, "../kept"));
}

static void one_name_goes_and_its_neighbours_stay(void **state)
{
	const struct place *place = *state;

	assert_int_equal(mkdirat(place->top, "a", 0700), 0);
	assert_int_equal(mkdirat(place->top, "a/b", 0700), 0);
	make_file(place->top, "a/b/f");
	make_file(place->top, "a/f");
	assert_int_equal(fchmodat(place->top, "a/b", 0, 0), 0);
	assert_int_equal(removal_run(place->top, "a/b"), 0);
	assert_false(is_there(place->top, "a/b"));
	assert_true(is_there(place->top, "a/f"));
	assert_int_equal(removal_run(place->top, "a/b"), ENOENT);
	assert_int_equal(removal_run(place->top, "a/f/g"), ENOENT);
	assert_int_equal(removal_run(place->top, "a/f"), 0);
	assert_false(is_there(place->top, "a/f"));
	assert_int_equal(removal_run(place->top, "a"), 0);
	assert_int_equal(removal_empty(place->top), 0);
}

static void a_link_on_the_way_leads_nowhere(void **state)
{
	const struct place *place = *state;

	assert_int_equal(symlinkat("..", place->top, "l"), 0);
	assert_int_equal(removal_run(place->top, "l/kept"), ENOENT);
	assert_int_equal(removal_run(place->top, "../kept"), EACCES);
	assert_true(is_there(place->top, "../kept"));
	assert_int_equal(removal_run(place->top, "l"), 0);
	assert_true(is_there(place->top, "../kept"));
}

static void what_a_killed_one_has_left_goes_with_the_next(void **state)
{
	const struct place *place = *state;

	assert_int_equal(mkdirat(place->top, ".glovebox-dropped-0123456789abcdef", 0700), 0);
	make_file(place->top, ".glovebox-dropped-0123456789abcdef/f");
	make_file(place->top, "a");
	make_file(place->top, "b");
	assert_int_equal(removal_run(place->top, "a"), 0);
	assert_false(is_there(place->top, ".glovebox-dropped-0123456789abcdef"));
	assert_true(is_there(place->top, "b"));
}

static void a_name_below_a_folder_that_hides_stays(void **state)
{
	const struct place *place = *state;

	assert_int_equal(mkdirat(place->top, "a", 0700), 0);
	make_file(place->top, "a/f");
	auto_close int folder = openat(place->top, "a", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fsetxattr(folder, "user.overlay.opaque", "y", 1, 0) < 0)
		unit_skip("/tmp keeps no attributes of users, as a tmpfs before Linux 6.6: run it "
			  "where /tmp is on ext4, xfs or btrfs");
	assert_int_equal(removal_run(place->top, "a/f"), ENOTSUP);
	assert_true(is_there(place->top, "a/f"));
	assert_int_equal(removal_run(place->top, "a"), 0);
	assert_false(is_there(place->top, "a"));
}

static void a_tree_deeper_than_a_walk_goes(void **state)
{
	const struct place *place = *state;
	int at = fcntl(place->top, F_DUPFD_CLOEXEC, 3);

	for (int i = 0; i < 700; i++) {
		assert_int_equal(mkdirat(at, "d", 0700), 0);
		const int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		(void)close(at);
		at = next;
		assert_true(at >= 0);
	}
	(void)close(at);
	assert_int_equal(removal_run(place->top, "d"), 0);
	assert_false(is_there(place->top, "d"));
	assert_int_equal(removal_empty(place->top), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_folder_is_emptied_whatever_its_rights_are),
		CASE(one_name_goes_and_its_neighbours_stay),
		CASE(a_link_on_the_way_leads_nowhere),
		CASE(what_a_killed_one_has_left_goes_with_the_next),
		CASE(a_name_below_a_folder_that_hides_stays),
		CASE(a_tree_deeper_than_a_walk_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
