/* Tests of base/path. */
#include "unit.h"

#include "base/memory.h"
#include "base/path.h"

#include <limits.h>
#include <string.h>

static void normal_forms(void **state)
{
	static const struct {
		const char *base, *path, *normal; /* NULL: refused */
	} cases[] = {
		{"/w", "a/b", "/w/a/b"},
		{"/w", "", "/w"},
		{"/w", ".", "/w"},
		{"/w/", "./a//b/", "/w/a/b"},
		{"/w", "..", "/"},
		{"/w", "../..", NULL},
		{"/w", "../../etc", NULL},
		{"/w", "a/../../x", "/x"},
		{"/w", "/etc/./passwd", "/etc/passwd"},
		{"/w", "/", "/"},
		{"/w", "//", "/"},
		{"/w", "/..", NULL},
		{"/w", "/a/..", "/"},
		{"/", "a", "/a"},
		{"/", "", "/"},
		{"/w/../v", "a", "/v/a"},
		{"/w", "...", "/w/..."},
		{"/w", "a..", "/w/a.."},
		{"/w", "..a/.b", "/w/..a/.b"},
		{"relative", "/a", "/a"},
	};
	struct buf out;

	(void)state;
	buf_init(&out, 100);
	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		buf_clear(&out);
		buf_adds(&out, "before ");
		if (path_normal(cases[i].base, cases[i].path, &out)) {
			assert_non_null(cases[i].normal);
			assert_string_equal(out.data + 7, cases[i].normal);
		} else {
			assert_null(cases[i].normal);
			assert_string_equal(out.data, "before ");
		}
	}
	buf_fini(&out);
}

static void the_ceiling_leaves_nothing(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 6);
	assert_true(path_normal("/ab", "cd", &out));
	buf_clear(&out);
	assert_false(path_normal("/ab", "cde", &out));
	assert_string_equal(out.data, "");
	buf_fini(&out);
}

static void a_path_is_a_uri(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 32);
	assert_true(path_add_uri("/a b/\xc3\xa4%.c", &out));
	assert_string_equal(out.data, "file:///a%20b/%C3%A4%25.c");
	assert_false(path_add_uri("/a", &out));
	buf_clear(&out);
	assert_true(path_of_uri(STR("file:///a/../b%c3%a4"), &out));
	assert_string_equal(out.data, "/b\xc3\xa4");
	assert_false(path_of_uri(STR("file://host/a"), &out));
	assert_false(path_of_uri(STR("file:///a%00b"), &out));
	assert_false(path_of_uri(STR("file://"), &out));
	assert_false(path_of_uri(STR("http:///a"), &out));
	buf_fini(&out);
}

static void within_goes_by_components(void **state)
{
	(void)state;
	assert_true(path_within("/a/b", "/a/b"));
	assert_true(path_within("/a/b/c", "/a/b"));
	assert_true(path_within("/a/b/c", "/a/b/"));
	assert_true(path_within("/a", "/"));
	assert_true(path_within("/", "/"));
	assert_false(path_within("/a/bc", "/a/b"));
	assert_false(path_within("/a", "/a/b"));
	assert_false(path_within("/a/b", ""));
	assert_false(path_within("a", "/"));
	assert_true(path_within("a/b", "a"));
}

static void relative_to_a_root(void **state)
{
	(void)state;
	assert_string_equal(path_relative("/a/b/c", "/a"), "b/c");
	assert_string_equal(path_relative("/a/b", "/a/b"), ".");
	assert_string_equal(path_relative("/a/b", "/"), "a/b");
	assert_string_equal(path_relative("/", "/"), ".");
	assert_string_equal(path_relative("/ab", "/a"), "/ab");
}

static void base_names_and_depths(void **state)
{
	(void)state;
	assert_string_equal(path_base_name("/a/b"), "b");
	assert_string_equal(path_base_name("b"), "b");
	assert_string_equal(path_base_name("/"), "");
	assert_int_equal(path_depth("/"), 0);
	assert_int_equal(path_depth(""), 0);
	assert_int_equal(path_depth("/a"), 1);
	assert_int_equal(path_depth("/a/b/c"), 3);
	assert_int_equal(path_depth("a/b"), 2);
}

static void xdg_folders_are_absolute_or_below_home(void **state)
{
	struct buf path;

	(void)state;
	buf_init(&path, 32);
	assert_true(path_xdg("/state", "/home/me", ".local/state", "a/b", &path));
	assert_string_equal(path.data, "/state/a/b");
	buf_clear(&path);
	assert_true(path_xdg("state", "/home/me", ".state", "a", &path));
	assert_string_equal(path.data, "/home/me/.state/a");
	buf_clear(&path);
	assert_true(path_xdg("/home/../state/", NULL, ".x", "a", &path));
	assert_string_equal(path.data, "/state/a");
	buf_clear(&path);
	assert_true(path_xdg(NULL, "/home//me/", ".state", "a", &path));
	assert_string_equal(path.data, "/home/me/.state/a");
	buf_clear(&path);
	assert_false(path_xdg("/..", "/home/me", ".state", "a", &path));
	assert_int_equal(path.size, 0);
	assert_false(path_xdg(NULL, "home", ".state", "a", &path));
	assert_false(path.overflowed);
	assert_false(
		path_xdg("/longer/than/thirty-two/bytes/in/all", NULL, ".x", "a", &path));
	assert_true(path.overflowed);
	buf_fini(&path);
}

static void folders_between_colons(void **state)
{
	static const char *const wanted[] = {"/bin", "b", "/c d"};
	struct str list = STR(":/bin::b:/c d:"), folder;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_true(path_next_folder(&list, &folder));
		assert_true(str_is(folder, wanted[i]));
	}
	assert_false(path_next_folder(&list, &folder));
	list = (struct str){0};
	assert_false(path_next_folder(&list, &folder));
	list = STR("::");
	assert_false(path_next_folder(&list, &folder));
}

static void a_key_is_the_path_in_plain_ascii(void **state)
{
	static const char odd[] = "a\\\xff\n";

	(void)state;
	auto_free char *key = path_key(odd);
	assert_string_equal(key, "a\\5c\\ff\\0a");
	auto_free char *path = path_of_key(key);
	assert_string_equal(path, odd);
	assert_null(path_of_key("a\\5"));
	assert_null(path_of_key("\\00"));
	assert_null(path_of_key("\\zz"));
}

static void a_path_names_git_in_any_case(void **state)
{
	(void)state;
	assert_true(path_names_git(".git"));
	assert_true(path_names_git("/a/.GIT/hooks"));
	assert_true(path_names_git("a//.git"));
	assert_false(path_names_git("/a/.github/x"));
	assert_false(path_names_git("a/x.git"));
	assert_false(path_names_git(""));
}

static void a_path_moves_to_another_folder(void **state)
{
	static const struct {
		const char *path, *from, *to, *moved;
	} rows[] = {
		{"/at", "/at", "/a/tree", "/a/tree"},
		{"/at/a/b", "/at", "/a/tree", "/a/tree/a/b"},
		{"/atom", "/at", "/a/tree", NULL},
		{"/", "/at", "/a/tree", NULL},
		{"/a/b", "/a", "/", "/b"},
		{"/a", "/", "/b", "/b/a"},
	};
	char long_path[PATH_MAX];
	struct buf path;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_init(&path, PATH_MAX);
		assert_true(buf_adds(&path, rows[i].path));
		assert_int_equal(path_move(&path, rows[i].from, rows[i].to),
				 rows[i].moved != NULL);
		assert_string_equal(path.data,
				    rows[i].moved != NULL ? rows[i].moved : rows[i].path);
		buf_fini(&path);
	}
	memset(long_path, 'a', sizeof(long_path) - 1);
	memcpy(long_path, "/at/", 4);
	long_path[sizeof(long_path) - 1] = '\0';
	buf_init(&path, PATH_MAX);
	assert_true(buf_adds(&path, long_path));
	assert_false(path_move(&path, "/at", "/longer"));
	assert_string_equal(path.data, long_path);
	buf_fini(&path);
	/* The ceiling is that of the buffer. */
	buf_init(&path, 8);
	assert_true(buf_adds(&path, "/at/a"));
	assert_false(path_move(&path, "/at", "/longer"));
	assert_string_equal(path.data, "/at/a");
	assert_true(path_move(&path, "/at", "/longe"));
	assert_string_equal(path.data, "/longe/a");
	buf_fini(&path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(normal_forms),
		cmocka_unit_test(the_ceiling_leaves_nothing),
		cmocka_unit_test(a_path_is_a_uri),
		cmocka_unit_test(within_goes_by_components),
		cmocka_unit_test(relative_to_a_root),
		cmocka_unit_test(a_path_moves_to_another_folder),
		cmocka_unit_test(base_names_and_depths),
		cmocka_unit_test(xdg_folders_are_absolute_or_below_home),
		cmocka_unit_test(folders_between_colons),
		cmocka_unit_test(a_key_is_the_path_in_plain_ascii),
		cmocka_unit_test(a_path_names_git_in_any_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
