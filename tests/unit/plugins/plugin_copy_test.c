/* Tests of plugins/source: the hash of a whole folder, its copy, and what is refused. */
#include "../base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "plugins/source.h"

struct fixture {
	char folder[64], source[80], state[80];
};

static void put(const struct fixture *fixture, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", fixture->source, name);
	file = fopen(path, "w");
	assert_non_null(file);
	(void)fputs(text, file);
	(void)fclose(file);
}

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	char sub[128];

	(void)snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/copy-test-XXXXXX");
	if (fixture == NULL || mkdtemp(fixture->folder) == NULL)
		return -1;
	(void)snprintf(fixture->source, sizeof(fixture->source), "%s/source",
		       fixture->folder);
	(void)snprintf(fixture->state, sizeof(fixture->state), "%s/state", fixture->folder);
	(void)snprintf(sub, sizeof(sub), "%s/sub", fixture->source);
	if (mkdir(fixture->source, 0700) < 0 || mkdir(sub, 0700) < 0)
		return -1;
	put(fixture, "a.bash", "echo a\n");
	put(fixture, "sub/help.py", "pass\n");
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	fd_folder_remove(fixture->folder);
	free(fixture);
	return 0;
}

static void hash_of(const char *source, char hex[HASH_HEX + 1])
{
	struct err err = {0};

	if (!source_copy_hash(source, hex, &err))
		fail_msg("%s", err.text);
}

static void every_change_changes_the_hash(void **state)
{
	const struct fixture *fixture = *state;
	char path[128], first[HASH_HEX + 1], hex[HASH_HEX + 1], before[HASH_HEX + 1];

	hash_of(fixture->source, first);
	hash_of(fixture->source, hex);
	assert_string_equal(first, hex);
	memcpy(before, first, sizeof(before));
	put(fixture, "sub/help.py", "fail\n");
	hash_of(fixture->source, hex);
	assert_string_not_equal(before, hex);
	memcpy(before, hex, sizeof(before));
	put(fixture, "new", "");
	hash_of(fixture->source, hex);
	assert_string_not_equal(before, hex);
	memcpy(before, hex, sizeof(before));
	(void)snprintf(path, sizeof(path), "%s/new", fixture->source);
	assert_int_equal(chmod(path, 0700), 0);
	hash_of(fixture->source, hex);
	assert_string_not_equal(before, hex);
	assert_int_equal(unlink(path), 0);
	put(fixture, "sub/help.py", "pass\n");
	hash_of(fixture->source, hex);
	assert_string_equal(first, hex);
}

static void git_of_its_own_is_no_part_of_it(void **state)
{
	const struct fixture *fixture = *state;
	char path[128], first[HASH_HEX + 1], hex[HASH_HEX + 1];

	hash_of(fixture->source, first);
	(void)snprintf(path, sizeof(path), "%s/.git", fixture->source);
	assert_int_equal(mkdir(path, 0700), 0);
	put(fixture, ".git/index", "changes at each look");
	hash_of(fixture->source, hex);
	assert_string_equal(first, hex);
}

static void the_copy_has_what_was_hashed(void **state)
{
	const struct fixture *fixture = *state;
	char path[512], hex[HASH_HEX + 1];
	struct buf copy, text;
	struct err err = {0};
	struct stat st;

	hash_of(fixture->source, hex);
	buf_init(&copy, 512);
	buf_init(&text, 512);
	assert_true(source_copy_make(fixture->source, fixture->state, hex, &copy, &err));
	(void)snprintf(path, sizeof(path), "%s/sub/help.py", copy.data);
	assert_true(fd_read_file(path, 512, &text, &err));
	assert_string_equal(text.data, "pass\n");
	/* Readable for whoever the cell runs as; the folder above is the user's. */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(stat(fixture->state, &st), 0);
	assert_int_equal(st.st_mode & 077, 0);
	/* What changes afterwards does not reach it. */
	put(fixture, "sub/help.py", "evil\n");
	buf_clear(&text);
	assert_true(fd_read_file(path, 512, &text, &err));
	assert_string_equal(text.data, "pass\n");
	/* And no copy is made under a hash that it has not. */
	hex[0] = hex[0] == 'a' ? 'b' : 'a';
	buf_clear(&copy);
	assert_false(source_copy_make(fixture->source, fixture->state, hex, &copy, &err));
	assert_non_null(strstr(err.text, "changed while"));
	buf_fini(&copy);
	buf_fini(&text);
}

static void a_single_file_is_copied_under_its_name(void **state)
{
	const struct fixture *fixture = *state;
	char path[128], hex[HASH_HEX + 1];
	struct buf copy;
	struct err err = {0};

	(void)snprintf(path, sizeof(path), "%s/a.bash", fixture->source);
	hash_of(path, hex);
	buf_init(&copy, 512);
	assert_true(source_copy_make(path, fixture->state, hex, &copy, &err));
	assert_true(str_ends(buf_str(&copy), STR("/files/a.bash")));
	assert_int_equal(access(copy.data, R_OK), 0);
	buf_fini(&copy);
}

static void refuses(const struct fixture *fixture, const char *wanted)
{
	char hex[HASH_HEX + 1];
	struct err err = {0};

	assert_false(source_copy_hash(fixture->source, hex, &err));
	if (!strstr(err.text, wanted))
		fail_msg("%s", err.text);
}

static void links_stay_inside(void **state)
{
	static const char *const out[] = {"/etc/passwd", "../../x", "../source/a.bash",
					  "sub/../.."};
	const struct fixture *fixture = *state;
	char path[128], hex[HASH_HEX + 1];

	(void)snprintf(path, sizeof(path), "%s/link", fixture->source);
	assert_int_equal(symlink("sub/help.py", path), 0);
	hash_of(fixture->source, hex);
	assert_int_equal(unlink(path), 0);
	for (size_t i = 0; i < UNIT_COUNT(out); i++) {
		assert_int_equal(symlink(out[i], path), 0);
		refuses(fixture, "leads out");
		assert_int_equal(unlink(path), 0);
	}
	(void)snprintf(path, sizeof(path), "%s/sub/link", fixture->source);
	assert_int_equal(symlink("../a.bash", path), 0);
	hash_of(fixture->source, hex);
	assert_int_equal(unlink(path), 0);
}

static void links_through_links_stay_inside(void **state)
{
	const struct fixture *fixture = *state;
	char path[128];

	/* By its text sub/up/../x is sub/x; by the kernel it is beside the package. */
	(void)snprintf(path, sizeof(path), "%s/sub/up", fixture->source);
	assert_int_equal(symlink("..", path), 0);
	(void)snprintf(path, sizeof(path), "%s/link", fixture->source);
	assert_int_equal(symlink("sub/up/../x", path), 0);
	refuses(fixture, "leads out");
}

static void what_is_no_file_or_too_much_is_refused(void **state)
{
	const struct fixture *fixture = *state;
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/fifo", fixture->source);
	assert_int_equal(mkfifo(path, 0600), 0);
	refuses(fixture, "neither file nor folder");
	assert_int_equal(unlink(path), 0);
	(void)snprintf(path, sizeof(path), "%s/large", fixture->source);
	put(fixture, "large", "x");
	assert_int_equal(truncate(path, PLUGIN_COPY_MAX + 1), 0);
	refuses(fixture, "large");
}

#define HERE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest cases[] = {
		HERE(every_change_changes_the_hash),
		HERE(git_of_its_own_is_no_part_of_it),
		HERE(the_copy_has_what_was_hashed),
		HERE(a_single_file_is_copied_under_its_name),
		HERE(links_stay_inside),
		HERE(links_through_links_stay_inside),
		HERE(what_is_no_file_or_too_much_is_refused),
	};

	return cmocka_run_group_tests(cases, NULL, NULL);
}
