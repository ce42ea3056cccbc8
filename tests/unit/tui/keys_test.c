/* keys: the table of actions and their keys, and the person's file. */
#include "tui/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static enum typing_key find(const struct keys *keys, uint32_t code, unsigned modifiers)
{
	return keys_find(keys, (struct keys_chord){code, modifiers});
}

static void the_defaults_are_without_doubles(void **state)
{
	struct keys keys;

	(void)state;
	keys_init(&keys);
	for (size_t i = 0; i < keys.count; i++) {
		assert_int_not_equal(keys.bound[i].chord.code, 0);
		assert_int_equal(keys_find(&keys, keys.bound[i].chord), keys.bound[i].key);
	}
	assert_int_equal(find(&keys, 'o', KEYS_CTRL), TYPING_VIEWER);
	assert_int_equal(find(&keys, KEYS_TAB, KEYS_SHIFT), TYPING_MODE);
	assert_int_equal(find(&keys, 'x', KEYS_CTRL), TYPING_NONE);
}

static void a_modifier_that_means_nothing_is_left_out(void **state)
{
	struct keys keys;

	(void)state;
	keys_init(&keys);
	assert_int_equal(find(&keys, 'b', KEYS_ALT | KEYS_SHIFT), TYPING_WORD_LEFT);
	assert_int_equal(find(&keys, KEYS_UP, KEYS_CTRL), TYPING_UP);
	assert_int_equal(find(&keys, KEYS_LEFT, KEYS_CTRL | KEYS_SHIFT), TYPING_WORD_LEFT);
	assert_int_equal(find(&keys, KEYS_TAB, KEYS_CTRL), TYPING_NONE);
	assert_int_equal(find(&keys, 0, 0), TYPING_NONE);
}

static void says(const struct keys *keys, const char *sentence, const char *wanted)
{
	struct buf out;

	buf_init(&out, 256);
	keys_say(keys, sentence, &out);
	assert_string_equal(out.data, wanted);
	buf_fini(&out);
}

static void sentences_name_the_keys_of_the_person(void **state)
{
	struct keys keys;

	(void)state;
	keys_init(&keys);
	says(NULL, "{viewer}, {take-back} and {editor}", "Ctrl+O, Alt+Up and Ctrl+G");
	assert_true(keys_parse(&keys,
			       STR("{\"viewer\": [\"f6\", \"ctrl+o\"], \"editor\": [], "
				   "\"take-back\": \"alt+shift+page-up\"}"),
			       NULL));
	says(&keys, "{viewer}, {take-back} and {editor|/edit}, {editor}, {no",
	     "F6, Alt+Shift+Page-up and /edit, editor, ");
	says(&keys, "plain", "plain");
}

static void a_file_that_leaves_no_way_on_or_out_is_refused(void **state)
{
	static const struct {
		const char *file, *why; /* NULL: it is fine */
	} rows[] = {
		{"{\"interrupt\": []}",
		 "no key stops the agent any more; give interrupt one, such as \"ctrl+c\""},
		{"{\"undo\": \"ctrl+c\"}",
		 "no key stops the agent any more; give interrupt one, such as \"ctrl+c\""},
		{"{\"quit\": []}",
		 "no key quits any more; give quit one, such as \"ctrl+d\""},
		{"{\"delete\": [\"delete\", \"ctrl+d\"]}",
		 "no key quits any more; give quit one, such as \"ctrl+d\""},
		{"{\"steer\": []}",
		 "no key sends a text any more; give steer one, such as \"enter\""},
		/* Enter and Ctrl+M are the same byte to most terminals. */
		{"{\"new-line\": \"enter\"}",
		 "no key sends a text any more; give steer one, such as \"enter\""},
		{"{\"new-line\": \"enter\", \"steer\": \"alt+enter\"}", NULL},
		{"{\"steer\": [], \"queue\": \"enter\"}", NULL},
		{"{\"quit\": \"ctrl+c\", \"interrupt\": \"ctrl+d\"}", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = {0};
		struct keys keys;

		keys_init(&keys);
		assert_int_equal(keys_parse(&keys, str_of(rows[i].file), &err),
				 rows[i].why == NULL);
		assert_string_equal(err.text, rows[i].why != NULL ? rows[i].why : "");
		if (rows[i].why != NULL) {
			assert_int_equal(find(&keys, 'c', KEYS_CTRL), TYPING_INTERRUPT);
			assert_int_equal(find(&keys, KEYS_ENTER, 0), TYPING_ENTER);
		}
	}
}

static void bytes_are_keys(void **state)
{
	static const struct {
		unsigned char byte;
		bool alt;
		const char *name;
	} rows[] = {
		{0x00, false, "ctrl+space"}, {0x01, false, "ctrl+a"},
		{0x0a, false, "ctrl+j"},     {0x0d, false, "enter"},
		{0x09, false, "tab"},        {0x1b, false, "escape"},
		{0x1f, false, "ctrl+_"},     {0x1c, false, "ctrl+\\"},
		{0x7f, false, "backspace"},  {0x7f, true, "alt+backspace"},
		{'b', true, "alt+b"},        {'B', true, "alt+shift+b"},
		{0x08, true, "ctrl+alt+h"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf name;

		buf_init(&name, 64);
		keys_print_chord(keys_chord_of_byte(rows[i].byte, rows[i].alt), &name);
		assert_string_equal(name.data, rows[i].name);
		buf_fini(&name);
	}
}

static void the_file_gives_actions_other_keys(void **state)
{
	struct keys keys;
	struct err err = {0};

	(void)state;
	keys_init(&keys);
	assert_true(keys_parse(
		&keys,
		STR("{\"viewer\": \"ctrl+T\", // a comment\n"
		    "\"tasks\": [\"f5\", \"Ctrl+Alt+\xc3\xa9\", \"alt+plus\"], \"swap\": []}"),
		&err));
	assert_int_equal(find(&keys, 'o', KEYS_CTRL), TYPING_NONE);
	assert_int_equal(find(&keys, 't', KEYS_CTRL), TYPING_NONE);
	assert_int_equal(find(&keys, 't', KEYS_CTRL | KEYS_SHIFT), TYPING_VIEWER);
	assert_int_equal(find(&keys, KEYS_F1 + 4, 0), TYPING_TASKS);
	assert_int_equal(find(&keys, 0xe9, KEYS_CTRL | KEYS_ALT), TYPING_TASKS);
	assert_int_equal(find(&keys, '+', KEYS_ALT), TYPING_TASKS);
	assert_int_equal(find(&keys, 't', KEYS_ALT), TYPING_NONE);
	/* A key that an action had before is taken from it. */
	assert_true(keys_parse(&keys, STR("{\"mode\": \"ctrl+v\"}"), &err));
	assert_int_equal(find(&keys, 'v', KEYS_CTRL), TYPING_MODE);
}

static void a_mistake_is_named_and_changes_nothing(void **state)
{
	static const struct {
		const char *file, *said;
	} rows[] = {
		{"{\"viewr\": \"f1\"}", "did you mean \"viewer\"?"},
		{"{\"xyzzyxyzzy\": \"f1\"}", "/keys lists them"},
		{"{\"viewer\": \"ctrl+\"}", "\"ctrl+\" is no key"},
		{"{\"viewer\": \"f13\"}", "\"f13\" is no key"},
		{"{\"viewer\": \"hyper+x\"}", "is no key"},
		{"{\"viewer\": 3}", "no list of at most"},
		{"{\"viewer\": [3]}", "is no key"},
		{"{\"viewer\": \"x\"}", "types a character"},
		{"{\"viewer\": \"shift+x\"}", "types a character"},
		{"{\"viewer\": \"space\"}", "types a character"},
		{"{\"viewer\": \"f1\", \"mode\": \"f1\"}",
		 "viewer and mode have the same key"},
		{"{\"viewer\": [\"f1\",\"f2\",\"f3\",\"f4\",\"f5\",\"f6\",\"f7\",\"f8\",\"f9\"]}",
		 "at most 8 keys"},
		{"[]", "no object"},
		{"{", "line 1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct keys keys, before;
		struct err err = {0};

		keys_init(&keys);
		before = keys;
		assert_false(keys_parse(&keys, str_of(rows[i].file), &err));
		if (strstr(err.text, rows[i].said) == NULL)
			fail_msg("%s: %s", rows[i].file, err.text);
		assert_memory_equal(&keys, &before, sizeof(keys));
	}
}

static void no_file_is_no_mistake_and_a_folder_is_one(void **state)
{
	struct keys keys;
	struct err err = {0};

	(void)state;
	keys_init(&keys);
	assert_true(keys_load(&keys, "/nonexistent/keys.json", &err));
	assert_false(keys_load(&keys, "/", &err));
	/* A link to a terminal: nothing is read from it, and nobody waits. */
	const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
	assert_false(keys_load(&keys, ptsname(terminal), &err));
	assert_int_equal(err.code, EINVAL);
	assert_int_equal(close(terminal), 0);
	assert_true(strstr(err.text, "/") != NULL);
}

static void the_table_has_a_row_for_each_action(void **state)
{
	struct keys keys;
	struct buf out;

	(void)state;
	keys_init(&keys);
	buf_init(&out, 16 << 10);
	keys_print(&keys, &out);
	assert_non_null(strstr(out.data, "\n  undo            ctrl+_ ctrl+/ ctrl+shift+-"));
	assert_non_null(strstr(out.data, "\n  rewind          -  "));
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_without_doubles),
		cmocka_unit_test(a_modifier_that_means_nothing_is_left_out),
		cmocka_unit_test(sentences_name_the_keys_of_the_person),
		cmocka_unit_test(a_file_that_leaves_no_way_on_or_out_is_refused),
		cmocka_unit_test(bytes_are_keys),
		cmocka_unit_test(the_file_gives_actions_other_keys),
		cmocka_unit_test(a_mistake_is_named_and_changes_nothing),
		cmocka_unit_test(no_file_is_no_mistake_and_a_folder_is_one),
		cmocka_unit_test(the_table_has_a_row_for_each_action),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
