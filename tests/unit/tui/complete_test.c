/* complete: names are found by some of their letters, and mentions in a text. */
#include "tui/choose/complete.h"

#include "base/clock.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add_name(void *context, struct str name)
{
	struct buf *out = context;

	(void)buf_addstr(out, name);
	(void)buf_addc(out, ' ');
}

static void finds(const struct complete *complete, const char *wanted, const char *names)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	complete_find(complete, str_of(wanted), add_name, &out);
	assert_string_equal(out.data != NULL ? out.data : "", names);
	buf_fini(&out);
}

static const char list[] = "README.md\0src/\0src/tui/\0src/tui/screen.c\0src/tui/screen.h\0"
			   "docs/screens/old.md\0src/sc/rest.c\0";

static void the_name_counts_before_its_folders(void **state)
{
	struct complete *complete = complete_new();

	(void)state;
	complete_set(complete, STR(list));
	finds(complete, "screen", "src/tui/screen.c src/tui/screen.h docs/screens/old.md ");
	finds(complete, "SCR.H", "src/tui/screen.h ");
	finds(complete, "tui/", "src/tui/ src/tui/screen.c src/tui/screen.h ");
	finds(complete, "src/t",
	      "src/tui/ src/tui/screen.c src/tui/screen.h src/sc/rest.c ");
	finds(complete, "rdm", "README.md docs/screens/old.md ");
	finds(complete, "zzz", "");
	finds(complete, "",
	      "README.md src/ src/tui/ docs/screens/old.md src/sc/rest.c "
	      "src/tui/screen.c src/tui/screen.h ");
	complete_free(complete);
}

static void what_was_used_last_comes_first(void **state)
{
	struct complete *complete = complete_new();

	(void)state;
	complete_set(complete, STR(list));
	complete_note(complete, STR("src/tui/screen.h"));
	finds(complete, "screen", "src/tui/screen.h src/tui/screen.c docs/screens/old.md ");
	complete_note(complete, STR("src/tui/screen.c"));
	complete_note(complete, STR("src/sc/rest.c"));
	finds(complete, "",
	      "src/sc/rest.c src/tui/screen.c src/tui/screen.h README.md src/ "
	      "src/tui/ docs/screens/old.md ");
	assert_true(complete_has(complete, STR("src/tui/")));
	assert_false(complete_has(complete, STR("src/tui")));
	complete_free(complete);
}

static void names_that_cannot_be_typed_are_left_out(void **state)
{
	struct complete *complete = complete_new();

	(void)state;
	complete_set(complete, STR("a\x1b[31m.c\0a\nb\0\xff\xfe\0\xe2\x80\xae"
				   "a\0a\"b\0good a\0"
				   "\xc3\xa4.c\0unended"));
	finds(complete, "", "good a \xc3\xa4.c ");
	complete_free(complete);
}

struct wanted {
	const char *text, *name;
	uint32_t first, last;
};

static void mentions_are_found(void **state)
{
	static const struct wanted rows[] = {
		{"@a.c", "a.c", 0, 0},
		{"see @src/a.c:10-40, or", "src/a.c", 10, 40},
		{"(@src/a.c:7)", "src/a.c", 7, 7},
		{"see @a.c:7-3", "a.c:7-3", 0, 0},
		{"@a:b.c", "a:b.c", 0, 0},
		{"@a.c:11.c", "a.c:11.c", 0, 0},
		{"(see @a.c:11).", "a.c", 11, 11},
		{"@\"a.c:11\"", "a.c:11", 0, 0},
		{"see @\"my file.c\":3-4 and", "my file.c", 3, 4},
		{"@\"open end", "open end", 0, 0},
		{"me@example.org", NULL, 0, 0},
		{"a @", "", 0, 0},
		{"\"@x\"", "x\"", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct mention mention;
		const bool found = mention_next(str_of(rows[i].text), 0, &mention);

		assert_int_equal(found, rows[i].name != NULL);
		if (!found)
			continue;
		assert_true(str_is(mention.name, rows[i].name));
		assert_int_equal(mention.first, rows[i].first);
		assert_int_equal(mention.last, rows[i].last);
	}
}

static void a_name_that_would_be_read_otherwise_has_quotes(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 256);
	mention_add(STR("a b.c"), &out);
	mention_add(STR("/x"), &out);
	mention_add(STR("a.c:11"), &out);
	mention_add(STR("a.c:11.c"), &out);
	assert_string_equal(out.data, "@\"a b.c\"@/x@\"a.c:11\"@a.c:11.c");
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_counts_before_its_folders),
		cmocka_unit_test(what_was_used_last_comes_first),
		cmocka_unit_test(names_that_cannot_be_typed_are_left_out),
		cmocka_unit_test(mentions_are_found),
		cmocka_unit_test(a_name_that_would_be_read_otherwise_has_quotes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
