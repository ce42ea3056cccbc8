/* Tests of cell/layer_tell: what does not last, by folder and in words. */
#include "../base/unit.h"

#include <stdio.h>
#include <string.h>

#include "cell/layers/layer.h"

static void add(struct layer_found *found, enum layer_change change, const char *path)
{
	layer_found_add(found, change, str_of(path), 0);
}

/* The line that RESULT has of FOUND, where tests/ stays. */
static void check_line(const struct layer_found *found, bool whole, const char *wanted)
{
	struct value *stays = value_new_array();
	struct tool_result result;

	value_append(stays, value_new_text("tests/"));
	tool_result_init(&result);
	(void)buf_adds(&result.text, "out");
	layer_tell(&result, found, stays, whole);
	assert_string_equal(result.text.data, wanted);
	tool_result_fini(&result);
}

static void few_names_are_told_and_many_by_their_folder(void **state)
{
	struct layer_found *found = layer_found_new();

	(void)state;
	add(found, LAYER_WRITTEN, "src/b.c");
	add(found, LAYER_WRITTEN, "build/x/1.o");
	add(found, LAYER_WRITTEN, "src/a.c");
	add(found, LAYER_WRITTEN, "build/xy/2.o");
	add(found, LAYER_WRITTEN, "build/x/3.o");
	add(found, LAYER_REMOVED, "old");
	assert_int_equal(layer_found_count(found), 6);
	check_line(found, true,
		   "out\n[not kept: 3 files below build/, src/a.c, src/b.c, removal of old "
		   "(a layer that goes with this cell; only tests/ stays)]\n");
	check_line(found, false,
		   "out\n[not kept: 3 files below build/, src/a.c, src/b.c, removal of old "
		   "at least (a layer that goes with this cell; only tests/ stays)]\n");
	layer_found_free(found);
}

static void the_folder_is_the_deepest_that_holds_all(void **state)
{
	struct layer_found *found = layer_found_new();

	(void)state;
	add(found, LAYER_WRITTEN, "a/bc/d/1");
	add(found, LAYER_WRITTEN, "a/bc/d/e/2");
	add(found, LAYER_WRITTEN, "a/bc/d/3");
	add(found, LAYER_WRITTEN, "1");
	add(found, LAYER_WRITTEN, "2");
	add(found, LAYER_WRITTEN, "3");
	check_line(found, true,
		   "out\n[not kept: 3 files in ./, 3 files below a/bc/d/ (a layer that goes "
		   "with this cell; only tests/ stays)]\n");
	layer_found_free(found);
}

static void what_is_over_the_ceilings_is_counted(void **state)
{
	struct layer_found *found = layer_found_new();
	struct tool_result result;
	const struct value *layer;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "d%04d/a", i);
		add(found, LAYER_WRITTEN, path);
	}
	add(found, LAYER_EMPTY, "e");
	tool_result_init(&result);
	layer_tell(&result, found, value_new_array(), true);
	layer = value_member(result.details, "layer");
	assert_int_equal(value_integer(value_member(layer, "files")), 3000);
	assert_int_equal(value_integer(value_member(layer, "empty")), 1);
	assert_int_equal(value_count(value_member(layer, "folders")), 64);
	assert_string_equal(result.text.data,
			    "[not kept: d0000/a, d0001/a, d0002/a, d0003/a, and 2997 more (a "
			    "layer that goes with this cell; nothing written here stays)]\n");
	tool_result_fini(&result);
	layer_found_free(found);
}

static void a_look_that_saw_nothing_in_time_says_so(void **state)
{
	struct layer_found *found = layer_found_new();

	(void)state;
	check_line(found, false,
		   "out\n[not kept: what it wrote here, if anything; there was too much to look "
		   "at (a layer that goes with this cell; only tests/ stays)]\n");
	layer_found_free(found);
}

/* A worker that is taken over may send anything as details. */
static void foreign_details_break_no_line(void **state)
{
	static const char *const texts[] = {
		"{\"layer\": 1, \"cell_only\": {}}",
		"{\"layer\": {\"folders\": [1, {}, {\"path\": 2, \"files\": \"x\"}], \"stays\": "
		"[{}]}, \"cell_only\": [1, null]}",
		"{\"layer\": {\"folders\": [{\"path\": \"a\\n]\\u001b[2J\", \"files\": "
		"9007199254740993}], \"files\": -5, \"stays\": [\"b\\n\"]}, \"cell_only\": "
		"[\"/tmp/a\\nb\"]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct tool_result result;
		struct buf line;
		struct err err;

		tool_result_init(&result);
		buf_init(&line, RESULT_TEXT_MAX);
		assert_true(value_parse(str_of(texts[i]), 0, &result.details, &err));
		layer_tell_print(&result, &line);
		layer_tell_print_own(&result, &(struct layer_own){.sealed = true}, &line);
		assert_null(memchr(line.data, '\n', line.size));
		assert_null(memchr(line.data, '\x1b', line.size));
		buf_fini(&line);
		tool_result_fini(&result);
	}
}

static void check_own(const struct tool_result *result, const struct layer_own *own,
		      const char *wanted)
{
	struct buf line;

	buf_init(&line, RESULT_TEXT_MAX);
	layer_tell_print_own(result, own, &line);
	assert_string_equal(line.size > 0 ? line.data : "", wanted);
	buf_fini(&line);
}

static void a_path_of_the_cell_is_told_by_where_it_lies(void **state)
{
	static const struct layer_own kept = {.sealed = true, .home = "/home/glovebox"};
	struct tool_result result;

	(void)state;
	tool_result_init(&result);
	check_own(&result, &kept, "");
	layer_tell_note_own(&result, "/tmp/a");
	layer_tell_note_own(&result, "/tmp/a");
	check_own(&result, &kept, "/tmp/a exists in this cell only, until the session ends");
	check_own(&result, &(struct layer_own){.one_call = true, .sealed = true},
		  "/tmp/a existed in the cell only, and is gone with it");
	check_own(&result, &(struct layer_own){0},
		  "/tmp/a is removed when the session ends");
	layer_tell_note_own(&result, "/home/glovebox/b");
	check_own(&result, &kept,
		  "/tmp/a exists in this cell only, until the session ends; /home/glovebox/b "
		  "exists in cells of this workspace only, not in the user's home");
	for (char name[] = "/tmp/0"; name[5] < '9'; name[5]++)
		layer_tell_note_own(&result, name);
	check_own(&result, &(struct layer_own){.sealed = true},
		  "/tmp/a, /home/glovebox/b, /tmp/0 and 5 more exist in this cell only, until "
		  "the session ends");
	tool_result_fini(&result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_names_are_told_and_many_by_their_folder),
		cmocka_unit_test(the_folder_is_the_deepest_that_holds_all),
		cmocka_unit_test(what_is_over_the_ceilings_is_counted),
		cmocka_unit_test(a_look_that_saw_nothing_in_time_says_so),
		cmocka_unit_test(foreign_details_break_no_line),
		cmocka_unit_test(a_path_of_the_cell_is_told_by_where_it_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
