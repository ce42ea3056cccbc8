/* Tests of extend/trust: only exactly what was let in counts, and a broken record is no trust. */
#include "../base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "extend/trust.h"

enum { WRITERS = 8 };

static char folder[] = "/tmp/trust-test-XXXXXX";

static int make_state(void **state)
{
	(void)state;
	memcpy(folder + sizeof(folder) - 7, "XXXXXX", 6);
	return mkdtemp(folder) == NULL || setenv("XDG_STATE_HOME", folder, 1) != 0;
}

static int remove_state(void **state)
{
	(void)state;
	fd_folder_remove(folder);
	return 0;
}

/* An item as a worker would have read it. */
static struct brought item_of(enum brought_kind kind, const char *name, const char *text)
{
	struct brought item = {
		.kind = kind,
		.name = (char *)(uintptr_t)name,
		.file = (char *)(uintptr_t)name,
		.text = (char *)(uintptr_t)text,
	};

	hash_text(str_of(text), item.hash);
	return item;
}

static void record(const struct brought *item, bool later)
{
	struct err err = {0};

	if (!trust_record("/w", &item, 1, later, &err))
		fail_msg("%s", err.text);
}

static enum trust_state state_of(const char *workspace, const struct brought *item)
{
	enum trust_state state;
	struct trust trust;
	struct err err = {0};

	if (!trust_read(workspace, &trust, &err))
		fail_msg("%s", err.text);
	state = trust_of(&trust, item);
	trust_fini(&trust);
	return state;
}

static void only_these_bytes_of_this_kind_name_and_workspace_count(void **state)
{
	const struct brought one = item_of(BROUGHT_SKILL, "one", "Do.\n");
	const struct brought others[] = {
		item_of(BROUGHT_COMMAND, "one", "Do.\n"),
		item_of(BROUGHT_SKILL, "two", "Do.\n"),
	};
	const struct brought changed = item_of(BROUGHT_SKILL, "one", "Do it.\n");

	(void)state;
	assert_int_equal(state_of("/w", &one), TRUST_NONE);
	record(&one, false);
	assert_int_equal(state_of("/w", &one), TRUST_GIVEN);
	assert_int_equal(state_of("/v", &one), TRUST_NONE);
	assert_int_equal(state_of("/w", &changed), TRUST_CHANGED);
	for (size_t i = 0; i < UNIT_COUNT(others); i++)
		assert_int_equal(state_of("/w", &others[i]), TRUST_NONE);
}

static void not_now_lasts_until_the_bytes_change(void **state)
{
	const struct brought one = item_of(BROUGHT_HOOK, "h", "{}");
	const struct brought next = item_of(BROUGHT_HOOK, "h", "{ }");

	(void)state;
	record(&one, true);
	assert_int_equal(state_of("/w", &one), TRUST_LATER);
	assert_int_equal(state_of("/w", &next), TRUST_NONE);
	record(&one, false);
	record(&next, true);
	assert_int_equal(state_of("/w", &one), TRUST_GIVEN);
	assert_int_equal(state_of("/w", &next), TRUST_LATER);
}

static void a_change_is_shown_as_a_diff(void **state)
{
	const struct brought one = item_of(BROUGHT_AGENT, "a", "x\ny\n");
	const struct brought next = item_of(BROUGHT_AGENT, "a", "x\nz\n");
	struct trust trust;
	struct buf out;

	(void)state;
	record(&one, false);
	buf_init(&out, 4096);
	assert_true(trust_read("/w", &trust, NULL));
	assert_true(trust_diff(&trust, &next, &out));
	assert_non_null(strstr(out.data, "\n x\n-y\n+z\n"));
	trust_fini(&trust);
	buf_fini(&out);
}

static void what_was_removed_is_asked_again(void **state)
{
	const struct brought one = item_of(BROUGHT_SERVER, "s", "{}");
	bool was;

	(void)state;
	record(&one, false);
	assert_true(trust_remove("/w", BROUGHT_SERVER, "s", &was, NULL));
	assert_true(was);
	assert_int_equal(state_of("/w", &one), TRUST_NONE);
	assert_true(trust_remove("/w", BROUGHT_SERVER, "s", &was, NULL));
	assert_false(was);
}

static void what_cannot_count_is_not_let_in(void **state)
{
	struct brought one = item_of(BROUGHT_SKILL, "one", "");
	const struct brought *items = &one;
	struct err err = {0};

	(void)state;
	one.problem = (char *)(uintptr_t) "it has no SKILL.md";
	assert_false(trust_record("/w", &items, 1, false, &err));
	assert_non_null(strstr(err.text, "it has no SKILL.md"));
	assert_int_equal(state_of("/w", &one), TRUST_NONE);
}

static void nothing_is_lost_when_several_write(void **state)
{
	char names[WRITERS][2] = {"a", "b", "c", "d", "e", "f", "g", "h"};

	(void)state;
	for (size_t i = 0; i < WRITERS; i++) {
		if (fork() == 0) {
			const struct brought one =
				item_of(BROUGHT_SKILL, names[i], "Do.\n");
			const struct brought *items = &one;

			_exit(trust_record("/w", &items, 1, false, NULL) ? 0 : 1);
		}
	}
	for (size_t i = 0; i < WRITERS; i++) {
		int status = 1;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	for (size_t i = 0; i < WRITERS; i++) {
		const struct brought one = item_of(BROUGHT_SKILL, names[i], "Do.\n");

		assert_int_equal(state_of("/w", &one), TRUST_GIVEN);
	}
}

static void a_broken_record_lets_nothing_in(void **state)
{
	static const char *const texts[] = {
		"",
		"{}",
		"{\"entries\": [{\"kind\": \"skill\"}]}",
		"{\"entries\": [{\"kind\": \"spell\", \"name\": \"x\"}]}",
		"{\"entries\": [{\"kind\": \"skill\", \"name\": \"x\", \"hash\": \"aa\"}]}",
		"{\"entries\": [{\"kind\": \"skill\", \"name\": \"x\", \"hash\": 5}]}",
		("{\"entries\": [{\"kind\": \"hook\", \"name\": \"x\"}, "
		 "{\"kind\": \"hook\", \"name\": \"x\"}]}"),
	};

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(texts); i++) {
		struct trust trust;

		if (trust_parse(str_of(texts[i]), &trust, NULL))
			fail_msg("%s was taken", texts[i]);
		trust_fini(&trust);
	}
}

static void what_is_printed_is_read_again(void **state)
{
	static const char text[] = "{\n  \"workspace\": \"/w\",\n  \"entries\": []\n}\n";
	struct trust trust;
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	assert_true(trust_parse(STR(text), &trust, NULL));
	assert_true(trust_print(&trust, "/w", &out));
	assert_string_equal(out.data, text);
	trust_fini(&trust);
	buf_fini(&out);
}

int main(void)
{
#define IN_STATE(name) cmocka_unit_test_setup_teardown(name, make_state, remove_state)
	const struct CMUnitTest tests[] = {
		IN_STATE(only_these_bytes_of_this_kind_name_and_workspace_count),
		IN_STATE(not_now_lasts_until_the_bytes_change),
		IN_STATE(a_change_is_shown_as_a_diff),
		IN_STATE(what_was_removed_is_asked_again),
		IN_STATE(what_cannot_count_is_not_let_in),
		IN_STATE(nothing_is_lost_when_several_write),
		cmocka_unit_test(a_broken_record_lets_nothing_in),
		cmocka_unit_test(what_is_printed_is_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
