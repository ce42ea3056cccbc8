/* maker: what a tree may hold, and what it may not. Layers are in tests/bases/. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "image/maker.h"

struct place {
	char folder[64];
	int top; /* the folder `in`, beside the file `kept` */
	struct maker_counts counts;
	struct maker *maker;
	struct err err;
};

static int setup(void **state)
{
	static struct place place;

	place = (struct place){0};
	(void)snprintf(place.folder, sizeof(place.folder), "/tmp/maker-XXXXXX");
	if (mkdtemp(place.folder) == NULL)
		return -1;
	auto_close int folder = open(place.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int kept = openat(folder, "kept", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(kept >= 0 && mkdirat(folder, "in", 0700) == 0);
	place.top = openat(folder, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place.maker = maker_open(place.top, MAKER_TREE, NULL, &place.counts);
	*state = &place;
	return place.top < 0;
}

static int teardown(void **state)
{
	struct place *place = *state;

	maker_close(place->maker);
	(void)close(place->top);
	tree_remove(place->folder);
	return 0;
}

/* Make an entry whose files hold "text". False, with errno of the refusal, when it is refused. */
static bool make(struct place *place, enum maker_entry_kind kind, const char *path,
		 const char *target)
{
	const struct maker_entry entry = {
		.kind = kind,
		.path = path,
		.target = target,
		.mode = 04755,
		.size = kind == MAKER_FILE ? 4 : 0,
		.changed = {.tv_sec = 1000},
	};

	if (!maker_begin(place->maker, &entry, &place->err)) {
		errno = place->err.code;
		/* A caller that goes on begins anew. */
		maker_close(place->maker);
		place->maker = maker_open(place->top, MAKER_TREE, NULL, &place->counts);
		return false;
	}
	assert_true(maker_write(place->maker, 0, STR("text"), &place->err));
	assert_true(maker_end(place->maker, &place->err));
	return true;
}

static bool holds_text(const struct place *place, const char *name)
{
	struct buf text;
	bool same;

	buf_init(&text, 100);
	same = fd_read_at(place->top, name, &text) && strcmp(text.data, "text") == 0;
	buf_fini(&text);
	return same;
}

static void files_folders_and_links_are_made(void **state)
{
	struct place *place = *state;
	struct stat st;

	assert_true(make(place, MAKER_FILE, "a/b/file", ""));
	assert_true(make(place, MAKER_AGAIN, "again", "a/b/file"));
	assert_true(make(place, MAKER_LINK, "a/link", "../again"));
	assert_true(make(place, MAKER_FOLDER, "a", ""));
	assert_true(make(place, MAKER_DEVICE, "dev", ""));
	maker_finish(place->maker);
	assert_true(holds_text(place, "a/b/file") && holds_text(place, "again"));
	assert_int_equal(fstatat(place->top, "a", &st, 0), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1000);
	assert_int_equal(st.st_mode & ALLPERMS, 0755);
	assert_true(place->counts.devices == 1 && place->counts.set_id == 2);
	assert_true(fstatat(place->top, "dev", &st, 0) < 0);
}

static void what_is_there_is_replaced_and_folders_are_kept(void **state)
{
	struct place *place = *state;

	assert_int_equal(mkdirat(place->top, "d", 0700), 0);
	assert_int_equal(symlinkat("../kept", place->top, "d/x"), 0);
	assert_true(make(place, MAKER_FOLDER, "d", ""));
	assert_true(make(place, MAKER_FILE, "d/x", ""));
	assert_true(holds_text(place, "d/x"));
	assert_false(make(place, MAKER_FILE, "d", ""));
	assert_int_equal(errno, EEXIST);
}

static void names_that_leave_are_refused(void **state)
{
	struct place *place = *state;
	static const char *const names[] = {"/a",   "../a", "a/../../b", "a/../b",
					    "a/..", "..",   "d/.."};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_false(make(place, MAKER_FILE, names[i], ""));
		assert_int_equal(errno, EXDEV);
	}
}

static void links_that_may_leave_are_refused(void **state)
{
	struct place *place = *state;
	static const char *const targets[] = {"/etc", "..",      "../kept", "a/..",
					      "",     "a/../..", "./../x"};

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		assert_false(make(place, MAKER_LINK, "link", targets[i]));
		assert_int_equal(errno, EXDEV);
	}
	assert_true(make(place, MAKER_LINK, "d/link", "../a/b"));
	assert_true(make(place, MAKER_LINK, "here", "."));
	/* A link by another name lies deeper or higher than it was made for. */
	assert_false(make(place, MAKER_AGAIN, "moved", "d/link"));
	assert_false(make(place, MAKER_AGAIN, "moved", "nowhere"));
	assert_false(make(place, MAKER_AGAIN, "moved", "../kept"));
	assert_false(make(place, MAKER_AGAIN, "moved", "/etc/passwd"));
}

static void nothing_is_made_through_a_link(void **state)
{
	struct place *place = *state;

	assert_int_equal(symlinkat("..", place->top, "out"), 0);
	assert_int_equal(symlinkat(".", place->top, "here"), 0);
	assert_false(make(place, MAKER_FILE, "out/kept", ""));
	assert_int_equal(errno, ELOOP);
	assert_false(make(place, MAKER_FILE, "here/x", ""));
	assert_int_equal(errno, ELOOP);
	assert_false(make(place, MAKER_AGAIN, "x", "out/kept"));
	assert_true(make(place, MAKER_FOLDER, "out", ""));
	assert_true(make(place, MAKER_FILE, "out/kept", ""));
	assert_true(holds_text(place, "out/kept"));
}

static void limits_are_kept(void **state)
{
	struct place *place = *state;
	const struct maker_limits few = {.bytes = 6, .entries = 3, .depth = 2};
	const struct maker_entry file = {.kind = MAKER_FILE,
					 .path = "a",
					 .target = "",
					 .size = 4};
	const struct maker_entry deep = {.kind = MAKER_FOLDER, .path = "a/b/c", .target = ""};

	maker_close(place->maker);
	place->counts = (struct maker_counts){0};
	place->maker = maker_open(place->top, MAKER_TREE, &few, &place->counts);
	assert_true(maker_begin(place->maker, &file, &place->err));
	assert_false(maker_write(place->maker, 2, STR("text"), &place->err));
	assert_int_equal(place->err.code, EBADMSG);
	assert_true(maker_end(place->maker, &place->err));
	assert_false(maker_begin(place->maker, &file, &place->err));
	assert_int_equal(place->err.code, E2BIG);
	assert_true(maker_end(place->maker, &place->err));
	assert_false(maker_begin(place->maker, &deep, &place->err));
	assert_true(maker_end(place->maker, &place->err));
	assert_false(maker_begin(place->maker, &deep, &place->err));
	assert_int_equal(place->err.code, E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_folders_and_links_are_made, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_there_is_replaced_and_folders_are_kept,
						setup, teardown),
		cmocka_unit_test_setup_teardown(names_that_leave_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(links_that_may_leave_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(nothing_is_made_through_a_link, setup,
						teardown),
		cmocka_unit_test_setup_teardown(limits_are_kept, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
