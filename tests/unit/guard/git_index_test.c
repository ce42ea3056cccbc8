/* Tests of guard/git_index: the gitlinks of indexes that git made. */
#include "../base/unit.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "guard/readers.h"
#include "places.h"

struct links {
	struct buf text;
	size_t room;
};

static bool add_link(void *context, struct str path)
{
	struct links *links = context;

	(void)buf_addstr(&links->text, path);
	(void)buf_addc(&links->text, '\n');
	return links->room-- > 0;
}

/* One of the indexes that the fuzz target begins with. */
static void read_seed(const char *name, struct buf *text)
{
	char path[PATH_MAX];

	buf_init(text, 1 << 20);
	(void)snprintf(path, sizeof(path), "%s/%s", place_of_git_index, name);
	assert_true(fd_read_file(path, 1 << 20, text, NULL));
}

/* READER gets LINKS filled, ROOM of them at most. */
static bool read_index(struct str text, size_t room, struct git_index_reader *reader,
		       struct links *links, struct err *err)
{
	*links = (struct links){.room = room};
	buf_init(&links->text, 1000);
	reader->link = add_link;
	reader->context = links;
	return readers_index_read(reader, text, err);
}

static void gitlinks_of_every_version_are_found(void **state)
{
	static const char *const names[] = {"v2-sha1", "v3-sha1", "v4-sha1", "v2-sha256"};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(names); i++) {
		struct git_index_reader reader = {.sha256 = i == 3};
		struct links links;
		struct buf text;
		struct err err;

		read_seed(names[i], &text);
		assert_true(read_index(buf_str(&text), 10, &reader, &links, &err));
		assert_string_equal(links.text.data, "dir/sub\ndir/sub2/deep\n");
		assert_string_equal(reader.shared, "");
		buf_fini(&text);
		buf_fini(&links.text);
	}
}

static bool add_entry(void *context, const struct git_index_entry *entry)
{
	struct links *links = context;
	char end = entry->unsure ? '?' : ' ';

	if (links->room-- == 0)
		return false;
	assert_true(entry->object[0] != 0 || entry->object[1] != 0);
	return buf_addf(&links->text, "%.*s%c%o\n", (int)entry->path.size,
			entry->path.data, end, entry->mode);
}

static void files_of_every_version_are_told(void **state)
{
	static const char *const names[] = {"v2-sha1", "v3-sha1", "v4-sha1", "v2-sha256"};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(names); i++) {
		struct links files = {.room = 100};
		struct git_index_reader reader = {.sha256 = i == 3,
						  .entry = add_entry,
						  .context = &files};
		struct buf text;
		struct err err;

		buf_init(&files.text, 10000);
		read_seed(names[i], &text);
		assert_true(readers_index_read(&reader, buf_str(&text), &err));
		/* No gitlink among them, every one a file or a link. */
		assert_null(strstr(files.text.data, "160000"));
		assert_non_null(strstr(files.text.data, "100644\n"));
		assert_null(strstr(files.text.data, "dir/sub "));
		files.room = 0;
		assert_false(readers_index_read(&reader, buf_str(&text), &err));
		buf_fini(&text);
		buf_fini(&files.text);
	}
}

static void a_split_index_names_its_other_part(void **state)
{
	struct git_index_reader reader = {0};
	struct links links;
	struct buf text;
	struct err err;

	(void)state;
	read_seed("split", &text);
	assert_true(read_index(buf_str(&text), 10, &reader, &links, &err));
	assert_int_equal(strlen(reader.shared), 40);
	buf_fini(&text);
	buf_fini(&links.text);
}

static void a_cut_index_is_an_error_at_every_byte(void **state)
{
	struct buf text;

	(void)state;
	read_seed("v2-sha1", &text);
	for (size_t size = 0; size < text.size; size++) {
		struct git_index_reader reader = {0};
		struct links links;
		struct err err;

		assert_false(read_index(str_part(buf_str(&text), 0, size), 10, &reader,
					&links, &err));
		buf_fini(&links.text);
	}
	buf_fini(&text);
}

/* The index of one file called NAME. */
static void index_of(const char *name, struct buf *text)
{
	char fixed[12 + 40 + 20 + 2] = "DIRC\0\0\0\2\0\0\0\1";
	const size_t size = strlen(name);

	fixed[12 + 24 + 2] = (char)0x81; /* 0100644 */
	fixed[12 + 24 + 3] = (char)0xa4;
	fixed[12 + 40 + 20 + 1] = (char)size;
	buf_init(text, 1000);
	(void)buf_add(text, fixed, sizeof(fixed));
	(void)buf_addstr(text, str_of(name));
	for (size_t i = 0; i < 8 - (sizeof(fixed) - 12 + size) % 8 + 20; i++)
		(void)buf_addc(text, '\0');
}

static void names_that_lead_elsewhere_are_unsound(void **state)
{
	static const struct {
		const char *name;
		bool unsound;
	} rows[] = {
		{"a", false},         {"a/b.c/..d", false},  {".gitignore", false},
		{"a/.git2/b", false}, {"...", false},        {"a.git/x", false},
		{"../a", true},       {"a/../../b", true},   {"..", true},
		{"./a", true},        {"/a", true},          {"a//b", true},
		{"a/", true},         {".git/config", true}, {"a/.GIT", true},
		{"a/.Git/b", true},   {"a/..", true},
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		struct git_index_reader reader = {0};
		struct buf text;
		struct err err;

		index_of(rows[i].name, &text);
		if (!readers_index_read(&reader, buf_str(&text), &err))
			fail_msg("%s: %s", rows[i].name, err.text);
		if (reader.unsound != rows[i].unsound)
			fail_msg("%s", rows[i].name);
		buf_fini(&text);
	}
}

static void too_many_gitlinks_are_an_error(void **state)
{
	struct git_index_reader reader = {0};
	struct links links;
	struct buf text;
	struct err err;

	(void)state;
	read_seed("v2-sha1", &text);
	assert_false(read_index(buf_str(&text), 1, &reader, &links, &err));
	assert_non_null(strstr(err.text, "too many"));
	buf_fini(&text);
	buf_fini(&links.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gitlinks_of_every_version_are_found),
		cmocka_unit_test(files_of_every_version_are_told),
		cmocka_unit_test(a_split_index_names_its_other_part),
		cmocka_unit_test(a_cut_index_is_an_error_at_every_byte),
		cmocka_unit_test(too_many_gitlinks_are_an_error),
		cmocka_unit_test(names_that_lead_elsewhere_are_unsound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
