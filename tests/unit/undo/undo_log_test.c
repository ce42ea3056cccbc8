/* Tests of files/undo_log, undo_list and undo_plan: what is written is read back, or refused. */
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "files/record.h"
#include "undo/list.h"
#include "undo/plan.h"

struct seen {
	size_t metas, changes;
	struct undo_state before, after;
	char path[256];
};

static bool take_meta(void *context, struct str json)
{
	struct seen *seen = context;

	assert_true(str_equal(json, STR("{\"a\":1}")));
	seen->metas++;
	return true;
}

static bool take_change(void *context, const struct undo_change *change)
{
	struct seen *seen = context;

	seen->changes++;
	seen->before = change->before;
	seen->after = change->after;
	(void)snprintf(seen->path, sizeof(seen->path), "%s", change->path.data);
	return true;
}

static int memory(void)
{
	int fd = memfd_create("undo-test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* A log with one change, not ended. */
static int log_with_change(struct undo_log *log, const char *path, struct str content)
{
	struct undo_state before = {.kind = UNDO_FILE, .mode = 0640};
	struct err err = {0};
	int fd = memory();

	undo_log_begin(log, fd, 7);
	assert_true(undo_log_meta(log, STR("{\"a\":1}"), &err));
	assert_true(undo_log_data(log, content, &before, &err));
	assert_true(undo_log_change(log, str_of(path), &before, &undo_absent, &err));
	return fd;
}

static void a_log_is_read_back(void **state)
{
	struct undo_log log;
	auto_close int fd = log_with_change(&log, "dir/a\nb", STR("old\0text"));
	struct seen seen = {0};
	struct undo_reader reader = {.meta = take_meta,
				     .change = take_change,
				     .context = &seen};
	struct err err = {0};
	struct buf content;

	(void)state;
	assert_true(undo_log_read(&reader, fd, &err));
	assert_false(reader.ended);
	assert_true(undo_log_end(&log, &err));
	seen = (struct seen){0};
	assert_true(undo_log_read(&reader, fd, &err));
	assert_true(reader.ended);
	assert_int_equal(seen.metas, 1);
	assert_int_equal(seen.changes, 1);
	assert_string_equal(seen.path, "dir/a\nb");
	assert_int_equal(seen.before.kind, UNDO_FILE);
	assert_int_equal(seen.before.mode, 0640);
	assert_int_equal(seen.before.log, 7);
	assert_int_equal(seen.after.kind, UNDO_ABSENT);
	buf_init(&content, 100);
	assert_true(undo_log_content(fd, seen.before.offset, seen.before.size, &content,
				     &err));
	assert_true(str_equal(buf_str(&content), STR("old\0text")));
	buf_fini(&content);
}

/* At every length a killed writer may leave: what is whole is read, nothing else, no error. */
static void a_log_cut_anywhere_is_read_as_far_as_it_is_whole(void **state)
{
	struct undo_log log;
	auto_close int fd = log_with_change(&log, "a", STR("content"));
	struct undo_reader reader = {0};
	struct err err = {0};
	size_t most = 0;

	(void)state;
	assert_true(undo_log_end(&log, &err));
	for (uint64_t size = log.at + 1; size-- > 0;) {
		assert_int_equal(ftruncate(fd, (off_t)size), 0);
		assert_true(undo_log_read(&reader, fd, &err));
		assert_true(reader.changes <= 1);
		assert_true(reader.sound <= size);
		if (size < log.at)
			assert_false(reader.ended);
		most = reader.changes > most ? reader.changes : most;
	}
	assert_int_equal(most, 1);
}

static void a_log_that_lies_is_refused(void **state)
{
	static const char *const paths[] = {"../x", "a/../b", "a//b", "a/", ".", "", "/"};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct undo_reader reader = {0};
		struct undo_log log;
		auto_close int fd = memory();

		undo_log_begin(&log, fd, 1);
		assert_true(undo_log_change(&log, str_of(paths[i]), &undo_absent,
					    &undo_absent, &err));
		assert_false(undo_log_read(&reader, fd, &err));
		assert_int_equal(err.code, EINVAL);
	}
	/* A kind that there is not, one that only a list may have, and an unknown chunk. */
	const enum undo_kind kinds[] = {(enum undo_kind)9, UNDO_IGNORED};
	struct undo_reader reader = {0};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const struct undo_state odd = {.kind = kinds[i]};
		struct undo_log log;
		auto_close int before = memory();
		auto_close int after = memory();

		undo_log_begin(&log, before, 1);
		assert_true(undo_log_change(&log, STR("a"), &odd, &undo_absent, &err));
		assert_false(undo_log_read(&reader, before, &err));
		undo_log_begin(&log, after, 1);
		assert_true(undo_log_change(&log, STR("a"), &undo_absent, &odd, &err));
		assert_false(undo_log_read(&reader, after, &err));
	}
	auto_close int other = memory();
	assert_true(fd_write_all(other, "XXXX\0\0\0\0\1\0\0\0\0\0\0\0y", 17, &err));
	assert_false(undo_log_read(&reader, other, &err));
}

static bool take_note(void *context, const struct undo_note *note)
{
	*(struct undo_note *)context = *note;
	return true;
}

/* What a writer has begun and not ended is known wherever its log ends. */
static void a_write_without_its_end_is_unfinished(void **state)
{
	static const struct {
		enum undo_note_kind kind;
		bool unfinished;
	} rows[] = {
		{UNDO_NOTE_MAKES, true},   {UNDO_NOTE_TEMPS, true},
		{UNDO_NOTE_OVER, false},   {UNDO_NOTE_SET, true},
		{UNDO_NOTE_TEMPS, true},   {UNDO_NOTE_STANDS, true},
		{UNDO_NOTE_OVER, false},   {UNDO_NOTE_OPENED, true},
		{UNDO_NOTE_TEMPS, true},   {UNDO_NOTE_OVER, true},
		{UNDO_NOTE_CLOSED, false},
	};
	struct undo_note seen = {0};
	struct undo_reader reader = {.note = take_note, .context = &seen};
	struct undo_log log;
	auto_close int fd = memory();
	struct err err = {0};
	uint64_t over = 0;

	(void)state;
	undo_log_begin(&log, fd, 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const bool has_path = rows[i].kind == UNDO_NOTE_MAKES ||
				      rows[i].kind == UNDO_NOTE_TEMPS ||
				      rows[i].kind == UNDO_NOTE_OPENED;
		const struct undo_note note = {
			.kind = rows[i].kind,
			.mode = 0750,
			.temp = "temp",
			.path = has_path ? STR("/a/\xff b") : STR(""),
		};

		assert_true(undo_log_note(&log, &note, &err));
		over = rows[i].kind == UNDO_NOTE_OVER ? log.at : over;
		assert_true(undo_log_read(&reader, fd, &err));
		assert_int_equal(reader.unfinished, rows[i].unfinished);
		assert_int_equal(undo_log_is_unfinished(fd), rows[i].unfinished);
		assert_int_equal(reader.over, over);
		assert_int_equal(seen.kind, note.kind);
		assert_int_equal(seen.mode & 0777, 0750);
		assert_string_equal(seen.temp, "temp");
	}
	assert_false(undo_log_is_unfinished(-1));
	assert_true(undo_log_note(NULL, &seen, &err));
}

static void a_note_that_lies_is_refused(void **state)
{
	static const struct undo_note notes[] = {
		{.kind = (enum undo_note_kind)9},
		{.kind = UNDO_NOTE_SET, .mode = 010000},
		{.kind = UNDO_NOTE_SET, .path = {"/a", 2}},
		{.kind = UNDO_NOTE_TEMPS, .path = {"a", 1}},
		{.kind = UNDO_NOTE_TEMPS, .path = {"/a/../b", 7}},
		{.kind = UNDO_NOTE_OPENED, .path = {"", 0}},
		{.kind = UNDO_NOTE_OPENED, .path = {"/", 1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
		struct undo_reader reader = {0};
		struct undo_log log;
		auto_close int fd = memory();
		struct err err = {0};

		undo_log_begin(&log, fd, 1);
		assert_true(undo_log_note(&log, &notes[i], &err));
		assert_false(undo_log_read(&reader, fd, &err));
		assert_int_equal(err.code, EINVAL);
		assert_false(reader.unfinished);
	}
}

static void a_file_is_kept_with_its_attributes(void **state)
{
	struct undo_state kept = {.kind = UNDO_FILE}, copied;
	auto_free char *large = memory_alloc(300000);
	auto_close int file = memory(), fd = memory(), other = memory();
	struct undo_log log, second;
	struct err err = {0};

	(void)state;
	memset(large, 'x', 300000);
	assert_true(fd_write_all(file, large, 300000, &err));
	undo_log_begin(&log, fd, 1);
	assert_true(undo_log_data(&log, STR("before"), &kept, &err));
	assert_true(undo_log_file(&log, file, UNDO_CONTENT_MAX, &kept, &err));
	assert_int_equal(kept.size, 300000);
	undo_log_begin(&second, other, 2);
	assert_true(undo_log_copy(&second, fd, &kept, &copied, &err));
	assert_int_equal(copied.log, 2);
	assert_true(undo_state_same(&kept, &copied));
	assert_false(undo_log_file(&log, file, 1000, &kept, &err));
	assert_int_equal(err.code, EFBIG);
	/* A log in which somebody has changed a byte does not pass for the content. */
	assert_int_equal(pwrite(fd, "y", 1, (off_t)kept.offset + 5), 1);
	assert_false(undo_log_copy(&second, fd, &kept, &copied, &err));
}

/* In paths of all lengths, among them some of rows that went, and one longer than a block. */
static void the_rows_with_a_text_are_found_by_their_paths(void **state)
{
	enum { ROWS = 3000, LONGEST = 20000 };
	static const char *const parts[] = {"1",     "17", "/x",     "aa",
					    "x2999", "zz", "a/x17.c"};
	static const struct undo_row *found[2 * ROWS];
	static char longest[LONGEST + 1];
	const struct undo_state file = {.kind = UNDO_FILE, .inode = 1};
	struct undo_list list;
	char path[64];

	(void)state;
	undo_list_init(&list);
	for (unsigned i = 0; i < ROWS; i++) {
		(void)snprintf(path, sizeof(path), "%.*sa/x%u.c", (int)(i % 20),
			       "aaaaaaaaaaaaaaaaaaaaa", i);
		assert_true(undo_list_add(&list, str_of(path), &file));
		/* Sorting leaves one of the two. */
		if (i % 3 == 0)
			assert_true(undo_list_add(&list, str_of(path), &file));
	}
	memset(longest, 'a', LONGEST);
	assert_true(undo_list_add(&list, str_of(longest), &file));
	undo_list_sort(&list);
	assert_int_equal(list.count, ROWS + 1);
	for (size_t k = 0; k < UNIT_COUNT(parts); k++) {
		const struct str part = str_of(parts[k]);
		size_t with = 0;

		for (size_t i = 0; i < list.count; i++)
			with += strstr(list.rows[i].path.data, parts[k]) != NULL;
		assert_int_equal(undo_list_with(&list, part, 2 * ROWS, found), with);
		for (size_t i = 0; i < with; i++) {
			assert_non_null(strstr(found[i]->path.data, parts[k]));
			for (size_t other = 0; other < i && with < 200; other++)
				assert_ptr_not_equal(found[i], found[other]);
		}
		if (with > 0)
			assert_int_equal(undo_list_with(&list, part, with - 1, found), with);
	}
	undo_list_fini(&list);
}

/* A sorted list to which some rows were added, also such as it has. */
static void rows_that_are_added_come_to_their_places(void **state)
{
	const struct undo_state file = {.kind = UNDO_FILE, .mode = 0644, .inode = 5};
	const struct undo_state ignored = {.kind = UNDO_IGNORED};

	(void)state;
	for (unsigned added = 0; added < 40; added++) {
		struct undo_list list;
		char path[16];

		undo_list_init(&list);
		for (unsigned i = 0; i < 60; i += 2) {
			(void)snprintf(path, sizeof(path), "%02u", i);
			assert_true(undo_list_add(&list, str_of(path), &file));
		}
		for (unsigned i = 0; i < added; i++) {
			(void)snprintf(path, sizeof(path), "%02u", i * 17 % 60);
			assert_true(undo_list_add(&list, str_of(path), &ignored));
		}
		undo_list_sort(&list);
		size_t odd = 0;
		for (unsigned i = 0; i < added; i++)
			odd += i * 17 % 60 % 2;
		assert_int_equal(list.count, 30 + odd);
		for (size_t i = 0; i < list.count; i++) {
			const struct undo_row *row = &list.rows[i];
			const bool is_even = (row->path.data[1] - '0') % 2 == 0;

			assert_true(i == 0 || strcmp(list.rows[i - 1].path.data,
						     row->path.data) < 0);
			assert_int_equal(row->state.kind,
					 is_even ? UNDO_FILE : UNDO_IGNORED);
		}
		undo_list_fini(&list);
	}
}

static void a_list_is_read_back_in_order(void **state)
{
	struct undo_state file = {.kind = UNDO_FILE, .mode = 0644, .size = 3, .inode = 5};
	struct undo_list list, read;
	struct err err = {0};
	struct buf text;

	(void)state;
	undo_list_init(&list);
	undo_list_init(&read);
	assert_true(undo_list_add(&list, STR("b"), &file));
	assert_true(undo_list_add(&list, STR("a/b"), &file));
	assert_true(undo_list_add(&list, STR("a"), &file));
	assert_true(undo_list_add(&list, STR("b"), &file));
	undo_list_sort(&list);
	assert_int_equal(list.count, 3);
	buf_init(&text, 1 << 20);
	undo_list_print(&list, &text);
	assert_true(undo_list_parse(buf_str(&text), &read, &err));
	assert_int_equal(read.count, 3);
	assert_non_null(undo_list_find(&read, STR("a/b")));
	assert_null(undo_list_find(&read, STR("a/c")));
	undo_list_fini(&read);
	undo_list_init(&read);
	/* Cut, or out of order. */
	assert_false(
		undo_list_parse(str_part(buf_str(&text), 0, text.size - 1), &read, &err));
	undo_list_fini(&read);
	undo_list_init(&read);
	list.rows[0].path = STR("z");
	buf_clear(&text);
	undo_list_print(&list, &text);
	assert_false(undo_list_parse(buf_str(&text), &read, &err));
	buf_fini(&text);
	undo_list_fini(&list);
	undo_list_fini(&read);
}

static void states_are_the_same_by_what_they_hold(void **state)
{
	struct undo_state a = {.kind = UNDO_FILE, .mode = 0644, .size = 1, .hashed = true};
	struct undo_state b = a;

	(void)state;
	b.mtime_ns = 9;
	assert_true(undo_state_same(&a, &b));
	b.mode = 0755;
	assert_false(undo_state_same(&a, &b));
	b = a;
	b.digest[3] = 1;
	assert_false(undo_state_same(&a, &b));
	/* What neither hash nor object knows is not called the same. */
	b = a;
	b.hashed = false;
	assert_false(undo_state_same(&a, &b));
	assert_true(undo_state_same(&undo_absent, &undo_absent));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_is_read_back),
		cmocka_unit_test(a_log_cut_anywhere_is_read_as_far_as_it_is_whole),
		cmocka_unit_test(a_log_that_lies_is_refused),
		cmocka_unit_test(a_write_without_its_end_is_unfinished),
		cmocka_unit_test(a_note_that_lies_is_refused),
		cmocka_unit_test(a_file_is_kept_with_its_attributes),
		cmocka_unit_test(the_rows_with_a_text_are_found_by_their_paths),
		cmocka_unit_test(rows_that_are_added_come_to_their_places),
		cmocka_unit_test(a_list_is_read_back_in_order),
		cmocka_unit_test(states_are_the_same_by_what_they_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
