/* copy: a copied tree is as the tree was, and its list tells every change of it. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "files/copied.h"
#include "view/copy.h"

enum { HOLE = 8 << 20 };

static const char *const none[] = {NULL};
static const struct copy_except nothing = {.top = "/none", .closed = none};

struct place {
	char folder[64];
	int from, layer; /* the folders `from` and `layer` */
};

static void write_at(int at, const char *name, const char *text)
{
	auto_close int fd =
		openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static int setup(void **state)
{
	static struct place place;

	(void)snprintf(place.folder, sizeof(place.folder), "/var/tmp/copy-XXXXXX");
	if (mkdtemp(place.folder) == NULL || chdir(place.folder) < 0 ||
	    mkdir("from", 0750) < 0 || mkdir("layer", 0700) < 0)
		return -1;
	place.from = open("from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place.layer = open("layer", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = &place;
	return place.from < 0 || place.layer < 0;
}

static int teardown(void **state)
{
	struct place *place = *state;

	(void)!chdir("/");
	(void)close(place->from);
	(void)close(place->layer);
	tree_remove(place->folder);
	return 0;
}

static void make(const struct place *place)
{
	struct copy_size size;
	struct err err = {0};

	if (!copy_make(place->from, place->layer, &nothing, &size, &err))
		fail_msg("%s", err.text);
}

/* Does the copy differ from its list at PATH? */
static bool differs(const struct place *place, const char *path)
{
	auto_close int list = openat(place->layer, COPIED_LIST, O_RDONLY | O_CLOEXEC);
	auto_close int copy =
		openat(place->layer, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct copied *copied = NULL;
	struct err err;

	assert_true(copied_read(list, &copied, &err));
	const bool found = copied_differs(copied, copy, path);
	copied_free(copied);
	return found;
}

static void same_in_both(const char *name)
{
	char from[PATH_MAX], copy[PATH_MAX];
	struct stat a, b;

	(void)snprintf(from, sizeof(from), "from/%s", name);
	(void)snprintf(copy, sizeof(copy), "layer/upper/%s", name);
	assert_int_equal(lstat(from, &a), 0);
	assert_int_equal(lstat(copy, &b), 0);
	assert_int_equal(a.st_mode, b.st_mode);
	assert_int_equal(clock_ns(&a.st_mtim), clock_ns(&b.st_mtim));
	assert_int_equal(a.st_uid, b.st_uid);
	if (!S_ISDIR(a.st_mode)) {
		assert_int_equal(a.st_size, b.st_size);
		assert_int_equal(a.st_nlink, b.st_nlink);
	}
}

static void a_copy_is_as_the_tree(void **state)
{
	const struct place *place = *state;
	const struct timespec old[] = {{.tv_sec = 1000}, {.tv_sec = 2000, .tv_nsec = 3}};
	char value[16] = "";
	struct stat st;

	assert_int_equal(mkdirat(place->from, "d", 0700), 0);
	assert_int_equal(mkdirat(place->from, "d/e", 0555), 0);
	write_at(place->from, "d/one", "text");
	assert_int_equal(linkat(place->from, "d/one", place->from, "two", 0), 0);
	assert_int_equal(symlinkat("d/none", place->from, "link"), 0);
	write_at(place->from, "holes", "");
	assert_int_equal(truncate("from/holes", HOLE), 0);
	assert_int_equal(fchmodat(place->from, "d/one", 0640, 0), 0);
	(void)setxattr("from/two", "user.color", "red", 3, 0);
	assert_int_equal(mkfifoat(place->from, "pipe", 0600), 0);
	assert_int_equal(utimensat(place->from, "d/one", old, 0), 0);
	assert_int_equal(utimensat(place->from, "link", old, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(utimensat(place->from, "d", old, 0), 0);
	make(place);
	same_in_both(".");
	same_in_both("d");
	same_in_both("d/e");
	same_in_both("d/one");
	same_in_both("two");
	same_in_both("link");
	same_in_both("holes");
	assert_int_equal(stat("layer/upper/holes", &st), 0);
	assert_true(st.st_blocks < 100);
	if (getxattr("from/two", "user.color", value, sizeof(value)) == 3)
		assert_int_equal(getxattr("layer/upper/d/one", "user.color", value,
					  sizeof(value)),
				 3);
	/* A pipe is left out, and is no difference. */
	assert_int_equal(faccessat(place->layer, "upper/pipe", F_OK, 0), -1);
	assert_false(differs(place, "d"));
	assert_false(differs(place, "two"));
	assert_false(differs(place, "link"));
	assert_false(differs(place, "pipe"));
}

static void every_change_is_told(void **state)
{
	const struct place *place = *state;
	struct stat st;

	for (const char *at = "abcfghi"; *at != '\0'; at++)
		write_at(place->from, (const char[]){*at, '\0'}, "x");
	assert_int_equal(mkdirat(place->from, "d", 0700), 0);
	assert_int_equal(mkdirat(place->from, "e", 0700), 0);
	write_at(place->from, "e/f", "x");
	make(place);
	assert_int_equal(stat("layer/upper/a", &st), 0);
	const struct timespec times[] = {st.st_atim, st.st_mtim};

	/* Of the same size, and with its old time. */
	write_at(place->layer, "upper/a", "y");
	assert_int_equal(utimensat(place->layer, "upper/a", times, 0), 0);
	assert_true(differs(place, "a"));
	assert_int_equal(fchmodat(place->layer, "upper/b", 0600, 0), 0);
	assert_true(differs(place, "b"));
	assert_int_equal(unlinkat(place->layer, "upper/c", 0), 0);
	assert_true(differs(place, "c"));
	assert_int_equal(renameat(place->layer, "upper/f", place->layer, "upper/g"), 0);
	assert_true(differs(place, "f"));
	assert_true(differs(place, "g"));
	assert_int_equal(mkdirat(place->layer, "upper/d/new", 0700), 0);
	assert_true(differs(place, "d"));
	assert_int_equal(unlinkat(place->layer, "upper/e/f", 0), 0);
	assert_true(differs(place, "e"));
	assert_int_equal(unlinkat(place->layer, "upper/h", 0), 0);
	assert_int_equal(symlinkat("x", place->layer, "upper/h"), 0);
	assert_true(differs(place, "h"));
	assert_false(differs(place, "i"));
}

static void a_folder_of_ours_is_left_out(void **state)
{
	const struct place *place = *state;
	struct copy_size size;
	struct err err = {0};
	struct stat st;

	assert_int_equal(mkdirat(place->from, "own", 0700), 0);
	assert_int_equal(mkdirat(place->from, "own/deep", 0700), 0);
	write_at(place->from, "f", "x");
	assert_int_equal(fstatat(place->from, "own", &st, 0), 0);
	const struct copy_except except = {.top = "/w", .closed = none, .folder = &st};
	assert_true(copy_make(place->from, place->layer, &except, &size, &err));
	assert_int_equal(size.files, 1);
	assert_int_equal(faccessat(place->layer, "upper/own", F_OK, 0), -1);
	assert_int_equal(faccessat(place->layer, "upper/f", F_OK, 0), 0);
}

static void what_is_hidden_is_empty_and_closed(void **state)
{
	const struct place *place = *state;
	const char *const closed[] = {"/w/d/secret", "/w/keys", "/other", NULL};
	const struct copy_except except = {.top = "/w", .closed = closed};
	struct copy_size size;
	struct err err = {0};
	struct stat st;

	assert_int_equal(mkdirat(place->from, "d", 0700), 0);
	assert_int_equal(mkdirat(place->from, "keys", 0700), 0);
	write_at(place->from, "d/secret", "s");
	write_at(place->from, "d/secret2", "s");
	write_at(place->from, "keys/k", "s");
	assert_true(copy_make(place->from, place->layer, &except, &size, &err));
	assert_int_equal(fstatat(place->layer, "upper/d/secret", &st, 0), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(st.st_mode & 07777, 0);
	assert_int_equal(fstatat(place->layer, "upper/d/secret2", &st, 0), 0);
	assert_int_equal(st.st_size, 1);
	assert_int_equal(fstatat(place->layer, "upper/keys", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0);
	assert_int_equal(faccessat(place->layer, "upper/keys/k", F_OK, 0), -1);
	assert_false(differs(place, "d"));
	assert_int_equal(copy_renew(place->from, place->layer, "d", &except), ENOENT);
	write_at(place->layer, "upper/d/secret2", "mine");
	assert_int_equal(copy_renew(place->from, place->layer, "d", &except), 0);
	assert_int_equal(fstatat(place->layer, "upper/d/secret", &st, 0), 0);
	assert_int_equal(st.st_size, 0);
}

static void too_many_files_are_counted_and_nothing_is_copied(void **state)
{
	const struct place *place = *state;
	struct copy_size size;
	struct err err = {0};
	char name[16];

	/* Without data there are no blocks to share. */
	for (int i = 0; i <= COPY_FILES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(mknodat(place->from, name, S_IFREG | 0600, 0), 0);
	}
	assert_false(copy_make(place->from, place->layer, &nothing, &size, &err));
	assert_int_equal(err.code, E2BIG);
	assert_int_equal(size.files, COPY_FILES_MAX + 1);
	assert_int_equal(faccessat(place->layer, "upper", F_OK, 0), -1);
	assert_int_equal(unlinkat(place->from, "0", 0), 0);
	assert_true(copy_try(place->from, place->layer, &nothing, &size, &err));
	assert_int_equal(faccessat(place->layer, "upper", F_OK, 0), -1);
}

static void a_large_tree_is_copied_only_where_blocks_are_shared(void **state)
{
	const struct place *place = *state;
	auto_close int large =
		openat(place->from, "large", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	auto_close int clone =
		openat(place->from, "clone", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct copy_size size;
	struct err err = {0};

	assert_int_equal(write(large, "x", 1), 1);
	const bool shares = ioctl(clone, FICLONE, large) == 0;
	/* Nothing is written: the disk only keeps so much room. */
	if (fallocate(large, 0, 0, (off_t)COPY_BYTES_MAX + 1) < 0)
		unit_skip("this disk cannot keep room for a gibibyte");
	if (copy_make(place->from, place->layer, &nothing, &size, &err)) {
		assert_true(shares);
		assert_false(differs(place, "large"));
		return;
	}
	assert_false(shares);
	assert_int_equal(err.code, E2BIG);
	assert_true(size.bytes > COPY_BYTES_MAX);
}

static void one_path_is_copied_again(void **state)
{
	const struct place *place = *state;
	struct stat st;

	assert_int_equal(mkdirat(place->from, "d", 0700), 0);
	write_at(place->from, "d/f", "old");
	write_at(place->from, "d/g", "g");
	make(place);
	assert_int_equal(copy_renew(place->from, place->layer, "d/f", &nothing), ENOENT);
	assert_int_equal(copy_renew(place->from, place->layer, "none", &nothing), ENOENT);
	write_at(place->layer, "upper/d/f", "mine");
	write_at(place->layer, "upper/d/g", "mine");
	write_at(place->from, "d/f", "newer");
	assert_int_equal(copy_renew(place->from, place->layer, "d/f", &nothing), 0);
	assert_int_equal(fstatat(place->layer, "upper/d/f", &st, 0), 0);
	assert_int_equal(st.st_size, strlen("newer"));
	assert_false(differs(place, "d/f"));
	assert_true(differs(place, "d/g"));
	/* What is in the folder no more is not in the copy either, and nobody removed it. */
	write_at(place->layer, "upper/d/f", "mine");
	assert_int_equal(unlinkat(place->from, "d/f", 0), 0);
	assert_int_equal(copy_renew(place->from, place->layer, "d/f", &nothing), 0);
	assert_int_equal(faccessat(place->layer, "upper/d/f", F_OK, 0), -1);
	assert_false(differs(place, "d/f"));
	/* The session has removed a folder. */
	assert_int_equal(unlinkat(place->layer, "upper/d/g", 0), 0);
	assert_int_equal(unlinkat(place->layer, "upper/d", AT_REMOVEDIR), 0);
	assert_int_equal(copy_renew(place->from, place->layer, "d", &nothing), 0);
	assert_false(differs(place, "d"));
	assert_int_equal(faccessat(place->layer, "upper/d/g", F_OK, 0), 0);
}

static void a_copy_of_another_users_files(void **state)
{
	const struct place *place = *state;
	struct copy_size size;
	struct err err = {0};
	struct stat st;

	write_at(place->from, "closed", "secret");
	assert_int_equal(fchmodat(place->from, "closed", 0, 0), 0);
	if (geteuid() == 0) {
		/* Root keeps owners. */
		assert_int_equal(fchownat(place->from, "closed", 4711, 4712, 0), 0);
		assert_true(copy_make(place->from, place->layer, &nothing, &size, &err));
		assert_int_equal(fstatat(place->layer, "upper/closed", &st, 0), 0);
		assert_int_equal(st.st_uid, 4711);
		assert_int_equal(st.st_gid, 4712);
		return;
	}
	assert_true(copy_make(place->from, place->layer, &nothing, &size, &err));
	assert_int_equal(fstatat(place->layer, "upper/closed", &st, 0), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(st.st_mode & 0777, 0);
	assert_false(differs(place, "closed"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_copy_is_as_the_tree),
		TEST(every_change_is_told),
		TEST(a_folder_of_ours_is_left_out),
		TEST(what_is_hidden_is_empty_and_closed),
		TEST(too_many_files_are_counted_and_nothing_is_copied),
		TEST(a_large_tree_is_copied_only_where_blocks_are_shared),
		TEST(one_path_is_copied_again),
		TEST(a_copy_of_another_users_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
