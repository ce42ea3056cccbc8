/* below: what layers hold is found by the rules of the kernel. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/memory.h"
#include "view/below.h"

enum { LAYERS = 2 };

struct place {
	char folder[64], work[80], store[80];
	struct review *layers[LAYERS]; /* the nearest first */
	char ids[LAYERS][REVIEW_ID];
	struct below below;
};

/* Make the layer number I, over those behind it. */
static void make(struct place *place, size_t i)
{
	struct err err;
	size_t number;

	if (!review_make(place->store, place->work, NULL, "glovebox run",
			 &place->layers[i], &err) ||
	    !review_add_tree(place->layers[i], place->work, &number, &err) ||
	    !review_publish(place->layers[i], &err))
		fail_msg("%s", err.text);
	memcpy(place->ids[i], place->layers[i]->meta.id, REVIEW_ID);
	auto_free char *tree = review_tree_path(place->layers[i], 0);
	char upper[PATH_MAX];
	(void)snprintf(upper, sizeof(upper), "%s/upper", tree);
	assert_int_equal(mkdir(upper, 0700), 0);
}

static int setup(void **state)
{
	static struct place place;

	place = (struct place){.folder = "/var/tmp/below-XXXXXX"};
	if (mkdtemp(place.folder) == NULL)
		return -1;
	(void)snprintf(place.work, sizeof(place.work), "%s/project", place.folder);
	(void)snprintf(place.store, sizeof(place.store), "%s/state/review", place.folder);
	if (mkdir(place.work, 0700) < 0)
		return -1;
	for (size_t i = LAYERS; i-- > 0;)
		make(&place, i);
	*state = &place;
	return 0;
}

static int teardown(void **state)
{
	struct place *place = *state;

	below_close(&place->below);
	for (size_t i = 0; i < LAYERS; i++)
		review_close(place->layers[i]);
	tree_remove(place->folder);
	return 0;
}

/* The path of NAME in the upper folder of layer I. */
static const char *at(const struct place *place, size_t i, const char *name)
{
	static char path[PATH_MAX];
	auto_free char *tree = review_tree_path(place->layers[i], 0);

	(void)snprintf(path, sizeof(path), "%s/upper/%s", tree, name);
	return path;
}

static void folder(const struct place *place, size_t i, const char *name, bool hides)
{
	assert_int_equal(mkdir(at(place, i, name), 0755), 0);
	if (hides && setxattr(at(place, i, name), "user.overlay.opaque", "y", 1, 0) < 0)
		unit_skip("this file system keeps no attributes of users");
}

static void file(const struct place *place, size_t i, const char *name)
{
	const int fd =
		open(at(place, i, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void removed(const struct place *place, size_t i, const char *name)
{
	if (mknod(at(place, i, name), S_IFCHR, makedev(0, 0)) < 0)
		unit_skip("this file system takes no whiteouts");
}

static void open_all(struct place *place)
{
	char *over[LAYERS];
	struct err err;

	for (size_t i = 0; i < LAYERS; i++)
		over[i] = place->ids[i];
	if (!below_open(place->store, place->work, over, LAYERS, "glovebox exec",
			&place->below, &err))
		fail_msg("%s", err.text);
}

/* NAME is a KIND, of so many layers, and HIDES what is below or not. */
static void is(struct place *place, const char *name, enum below_kind kind, size_t count,
	       bool hides)
{
	struct below_found found = {0};
	char path[PATH_MAX];
	struct err err;

	if (place->below.count == 0)
		open_all(place);
	(void)snprintf(path, sizeof(path), "%s%s%s", place->work,
		       name[0] != '\0' ? "/" : "", name);
	if (!below_find(&place->below, path, &found, &err))
		fail_msg("%s", err.text);
	if (found.kind != kind || found.count != count || found.hides != hides)
		fail_msg("%s: kind %d, %zu places, hides %d", name, (int)found.kind,
			 found.count, found.hides);
	below_found_fini(&found);
}

static void an_untouched_name_is_that_of_the_folder(void **state)
{
	struct place *place = *state;

	is(place, "", BELOW_FOLDER, 2, false);
	is(place, "a", BELOW_NOTHING, 0, false);
	is(place, "a/b/c", BELOW_NOTHING, 0, false);
	assert_true(review_is_bare(place->layers[0]));
}

static void folders_are_joined_from_the_top(void **state)
{
	struct place *place = *state;
	struct below_found found = {0};
	char path[PATH_MAX];

	folder(place, 0, "d", false);
	folder(place, 1, "d", false);
	folder(place, 1, "d/deep", false);
	is(place, "d", BELOW_FOLDER, 2, false);
	is(place, "d/deep", BELOW_FOLDER, 1, false);
	assert_false(review_is_bare(place->layers[0]));
	(void)snprintf(path, sizeof(path), "%s/d", place->work);
	assert_true(below_find(&place->below, path, &found, NULL));
	for (size_t i = 0; i < LAYERS; i++)
		assert_string_equal(found.places[i].path, at(place, i, "d"));
	below_found_fini(&found);
}

static void a_file_hides_what_is_below(void **state)
{
	struct place *place = *state;

	file(place, 0, "f");
	folder(place, 1, "f", false);
	folder(place, 0, "g", false);
	file(place, 1, "g");
	is(place, "f", BELOW_FILE, 1, true);
	is(place, "f/x", BELOW_REMOVED, 0, true);
	/* The folder is seen by itself: what is below it is none. */
	is(place, "g", BELOW_FOLDER, 1, true);
}

static void a_removed_name_is_not_there(void **state)
{
	struct place *place = *state;

	removed(place, 0, "gone");
	folder(place, 1, "gone", false);
	folder(place, 1, "gone/deep", false);
	removed(place, 1, "back");
	folder(place, 0, "back", false);
	is(place, "gone", BELOW_REMOVED, 0, true);
	is(place, "gone/deep", BELOW_REMOVED, 0, true);
	is(place, "back", BELOW_FOLDER, 1, true);
}

static void a_folder_made_anew_hides_all_below_it(void **state)
{
	struct place *place = *state;

	folder(place, 0, "new", true);
	folder(place, 0, "new/own", false);
	folder(place, 1, "new", false);
	folder(place, 1, "new/old", false);
	is(place, "new", BELOW_FOLDER, 1, true);
	is(place, "new/own", BELOW_FOLDER, 1, true);
	is(place, "new/old", BELOW_REMOVED, 0, true);
}

static void no_link_of_a_layer_is_followed(void **state)
{
	struct place *place = *state;

	folder(place, 1, "d", false);
	assert_int_equal(symlink("d", at(place, 0, "link")), 0);
	assert_int_equal(symlink("/etc", at(place, 0, "out")), 0);
	is(place, "link", BELOW_REMOVED, 0, true);
	is(place, "out/passwd", BELOW_REMOVED, 0, true);
}

static void a_path_outside_of_the_trees_is_of_no_layer(void **state)
{
	struct place *place = *state;
	struct below_found found = {0};

	open_all(place);
	assert_true(below_find(&place->below, place->folder, &found, NULL));
	assert_int_equal(found.kind, BELOW_NOTHING);
	assert_true(below_find(NULL, place->work, &found, NULL));
	assert_int_equal(found.kind, BELOW_NOTHING);
	below_found_fini(&found);
}

static void only_open_layers_lie_below(void **state)
{
	struct place *place = *state;
	char none[] = "00000000", bad[] = "../../etc";
	char *over[] = {place->ids[0], none, place->ids[1]};
	char *strange[] = {bad};
	struct err err;

	assert_true(review_set_state(place->layers[0], REVIEW_LANDED, &err));
	assert_true(below_open(place->store, place->work, over, 3, "glovebox exec",
			       &place->below, &err));
	assert_int_equal(place->below.count, 1);
	assert_string_equal(place->below.reviews[0]->meta.id, place->ids[1]);
	below_close(&place->below);
	assert_true(below_open(place->store, place->work, strange, 1, "glovebox exec",
			       &place->below, &err));
	assert_int_equal(place->below.count, 0);
	assert_false(below_open(place->store, place->work, over, REVIEW_OVER_MAX + 1,
				"glovebox exec", &place->below, &err));
	assert_int_equal(err.code, E2BIG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_untouched_name_is_that_of_the_folder,
						setup, teardown),
		cmocka_unit_test_setup_teardown(folders_are_joined_from_the_top, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_file_hides_what_is_below, setup, teardown),
		cmocka_unit_test_setup_teardown(a_removed_name_is_not_there, setup, teardown),
		cmocka_unit_test_setup_teardown(a_folder_made_anew_hides_all_below_it,
						setup, teardown),
		cmocka_unit_test_setup_teardown(no_link_of_a_layer_is_followed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_path_outside_of_the_trees_is_of_no_layer,
						setup, teardown),
		cmocka_unit_test_setup_teardown(only_open_layers_lie_below, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
