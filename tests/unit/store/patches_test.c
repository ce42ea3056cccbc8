/* Tests of store/patches, and of a journal that was made before there were any. */
#include "../base/unit.h"

#include <errno.h>

#include "base/buf.h"
#include "folder.h"
#include "store/database.h"
#include "store/journal.h"
#include "store/patches.h"

/* The journal of version 1, word for word. */
static const char *const first_schema[] = {
	"CREATE TABLE session ("
	" key INTEGER PRIMARY KEY,"
	" id TEXT NOT NULL UNIQUE,"
	" workspace TEXT NOT NULL,"
	" agent TEXT NOT NULL,"
	" model TEXT NOT NULL,"
	" began_ms INTEGER NOT NULL"
	") STRICT;"
	"CREATE TABLE event ("
	" session INTEGER NOT NULL REFERENCES session(key),"
	" number INTEGER NOT NULL CHECK (number > 0),"
	" kind TEXT NOT NULL,"
	" wall_ms INTEGER NOT NULL,"
	" json TEXT NOT NULL,"
	" PRIMARY KEY (session, number)"
	") STRICT;"
	"CREATE TRIGGER event_stays BEFORE UPDATE ON event"
	" BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;",
	NULL,
};

#define HANDED(text) \
	"{\"event\":\"tool_ended\",\"tool\":\"generate_patch\",\"text\":\"" text "\"}"

struct seen {
	struct buf text;
	char id[PATCH_ID + 1], session[JOURNAL_ID + 1];
	int64_t number;
};

static void note(void *context, const struct patch_row *row)
{
	struct seen *seen = context;

	(void)buf_addf(&seen->text, "%.*s %.*s %lld %s %.*s %.*s %.*s\n",
		       (int)row->workspace.size, row->workspace.data,
		       (int)row->agent.size, row->agent.data, (long long)row->number,
		       patch_state_name(row->decision.state),
		       (int)row->decision.place.size, row->decision.place.data,
		       (int)row->decision.branch.size, row->decision.branch.data,
		       (int)row->decision.reason.size, row->decision.reason.data);
	memcpy(seen->id, row->id, sizeof(seen->id));
	memcpy(seen->session, row->session, sizeof(seen->session));
	seen->number = row->number;
}

static bool note_and_go_on(void *context, const struct patch_row *row)
{
	note(context, row);
	return true;
}

static void list(struct journal *journal, const char *workspace, bool elsewhere,
		 size_t limit, struct seen *seen)
{
	buf_clear(&seen->text);
	assert_true(patches_list(journal, workspace, elsewhere, limit, note_and_go_on,
				 seen, NULL));
}

static void append(struct journal *journal, const char *session, int64_t number,
		   const char *kind, const char *json)
{
	assert_true(journal_append(journal, session, number, kind, 1000 + number,
				   str_of(json), NULL));
}

/* A session with a hand-over, and with events that look like one and are none. */
static void fill(struct journal *journal, const char *workspace, char id[JOURNAL_ID + 1])
{
	assert_true(journal_new_session(journal, workspace, "coder", "replay", id, NULL));
	append(journal, id, 1, "tool_began",
	       "{\"event\":\"tool_began\",\"tool\":\"generate_patch\"}");
	append(journal, id, 2, "tool_ended",
	       "{\"tool\":\"read_file\",\"text\":\"\\\"tool\\\":\\\"generate_patch\\\"\"}");
	append(journal, id, 3, "tool_ended", HANDED("one"));
	append(journal, id, 4, "turn_ended", "{}");
}

static void hand_overs_are_found_in_their_order(void **state)
{
	struct folder folder;
	struct journal *journal;
	struct seen seen = {0};
	char one[JOURNAL_ID + 1], two[JOURNAL_ID + 1];

	(void)state;
	folder_begin(&folder, "s.db");
	buf_init(&seen.text, 4000);
	assert_true(journal_open(folder.file, &journal, NULL));
	list(journal, "/work", false, 10, &seen);
	assert_string_equal(seen.text.data, "");
	fill(journal, "/work", one);
	fill(journal, "/other", two);
	append(journal, one, 5, "tool_ended", HANDED("two"));
	list(journal, "/work", false, 10, &seen);
	assert_string_equal(seen.text.data,
			    "/work coder 5 open   \n/work coder 3 open   \n");
	list(journal, "/work", false, 1, &seen);
	assert_string_equal(seen.text.data, "/work coder 5 open   \n");
	list(journal, "/work", true, 10, &seen);
	assert_string_equal(seen.text.data, "/other coder 3 open   \n");
	buf_fini(&seen.text);
	journal_close(journal);
	folder_end(&folder);
}

static void a_patch_is_found_by_the_beginning_of_its_name(void **state)
{
	struct folder folder;
	struct journal *journal;
	struct seen seen = {0};
	struct err err = {0};
	char id[JOURNAL_ID + 1], name[PATCH_ID + 1];

	(void)state;
	folder_begin(&folder, "s.db");
	buf_init(&seen.text, 4000);
	assert_true(journal_open(folder.file, &journal, NULL));
	fill(journal, "/work", id);
	list(journal, "/work", false, 1, &seen);
	memcpy(name, seen.id, sizeof(name));
	assert_int_equal(strspn(name, "0123456789abcdef"), PATCH_ID);
	for (size_t size = PATCH_ID; size >= PATCH_ID_LEAST; size--) {
		name[size] = '\0';
		seen.number = 0;
		assert_true(patches_find(journal, name, note, &seen, NULL));
		assert_int_equal(seen.number, 3);
		assert_string_equal(seen.session, id);
	}
	name[PATCH_ID_LEAST - 1] = '\0';
	assert_false(patches_find(journal, name, note, &seen, &err));
	assert_int_equal(err.code, EINVAL);
	assert_false(patches_find(journal, "", note, &seen, &err));
	assert_false(patches_find(journal, "%' OR 1", note, &seen, &err));
	assert_int_equal(err.code, EINVAL);
	assert_false(patches_find(journal, "00000000000000000", note, &seen, &err));
	assert_int_equal(err.code, EINVAL);
	/* One in 2^64 that this is the one. */
	assert_false(patches_find(journal, "0000000000000000", note, &seen, &err));
	assert_int_equal(err.code, ENOENT);
	buf_fini(&seen.text);
	journal_close(journal);
	folder_end(&folder);
}

/* These two sessions' first events have six digits of their names in common. */
static void a_name_of_several_is_refused_and_they_are_named(void **state)
{
	struct folder folder;
	struct database *old;
	struct journal *journal;
	struct seen seen = {0};
	struct err err = {0};

	(void)state;
	folder_begin(&folder, "s.db");
	buf_init(&seen.text, 4000);
	assert_true(database_open(folder.file, first_schema, &old, NULL));
	assert_true(
		database_run(old,
			     "INSERT INTO session VALUES (1, '000000000228', '/work', 'a', 'm', 1),"
			     " (2, '000000000aeb', '/work', 'a', 'm', 1);"
			     "INSERT INTO event VALUES (1, 1, 'tool_ended', 5, '" HANDED(
				     "x") "'),"
					  " (2, 1, 'tool_ended', 5, '" HANDED("y") "');",
			     NULL));
	database_close(old);
	assert_true(journal_open(folder.file, &journal, NULL));
	assert_false(patches_find(journal, "7b78d7", note, &seen, &err));
	assert_int_equal(err.code, EINVAL);
	assert_non_null(strstr(err.text, "2 patches begin with \"7b78d7\": "));
	assert_non_null(strstr(err.text, "7b78d71df449426e"));
	assert_non_null(strstr(err.text, "7b78d74cab4dceb3"));
	assert_true(patches_find(journal, "7b78d71", note, &seen, &err));
	assert_string_equal(seen.session, "000000000228");
	buf_fini(&seen.text);
	journal_close(journal);
	folder_end(&folder);
}

static void the_last_decision_stands(void **state)
{
	struct folder folder;
	struct journal *journal;
	struct seen seen = {0};
	struct err err = {0};
	char id[JOURNAL_ID + 1];
	struct patch_decision decision = {
		.state = PATCH_REJECTED,
		.reason = STR("not 'wanted'"),
	};

	(void)state;
	folder_begin(&folder, "s.db");
	buf_init(&seen.text, 4000);
	assert_true(journal_open(folder.file, &journal, NULL));
	fill(journal, "/work", id);
	assert_true(patches_decide(journal, id, 3, &decision, NULL));
	list(journal, "/work", false, 1, &seen);
	assert_string_equal(seen.text.data, "/work coder 3 rejected   not 'wanted'\n");
	decision = (struct patch_decision){.state = PATCH_APPLIED,
					   .place = STR("/else"),
					   .branch = STR("fix")};
	assert_true(patches_decide(journal, id, 3, &decision, NULL));
	journal_close(journal);
	assert_true(journal_open(folder.file, &journal, NULL));
	list(journal, "/work", false, 1, &seen);
	assert_string_equal(seen.text.data, "/work coder 3 applied /else fix \n");
	/* Of what is not there nothing is decided. */
	assert_false(patches_decide(journal, id, 9, &decision, &err));
	assert_false(patches_decide(journal, "000000000000", 3, &decision, &err));
	assert_int_equal(err.code, ENOENT);
	buf_fini(&seen.text);
	journal_close(journal);
	folder_end(&folder);
}

static void a_journal_of_the_first_version_is_taken_over(void **state)
{
	struct folder folder;
	struct database *old, *again = NULL;
	struct journal *journal;
	struct seen seen = {0};
	struct err err = {0};
	char id[JOURNAL_ID + 1];

	(void)state;
	folder_begin(&folder, "s.db");
	buf_init(&seen.text, 4000);
	assert_true(database_open(folder.file, first_schema, &old, NULL));
	assert_true(database_run(
		old,
		"INSERT INTO session VALUES (7, '0123456789ab', '/work', 'a', 'm', 1);"
		"INSERT INTO event VALUES (7, 1, 'tool_ended', 5, '" HANDED("x") "');",
		NULL));
	assert_true(journal_open(folder.file, &journal, NULL));
	list(journal, "/work", false, 10, &seen);
	assert_string_equal(seen.text.data, "/work a 1 open   \n");
	/* The older program that has it open goes on, and what it hands over is seen. */
	assert_true(database_run(
		old, "INSERT INTO event VALUES (7, 2, 'tool_ended', 6, '" HANDED("y") "');",
		NULL));
	list(journal, "/work", false, 10, &seen);
	assert_string_equal(seen.text.data, "/work a 2 open   \n/work a 1 open   \n");
	assert_true(journal_new_session(journal, "/work", "b", "m", id, NULL));
	database_close(old);
	assert_false(database_open(folder.file, first_schema, &again, &err));
	assert_non_null(strstr(err.text, "written by a newer Glovebox (schema 2, this one "
					 "knows 1); use that one, or another file"));
	buf_fini(&seen.text);
	journal_close(journal);
	folder_end(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hand_overs_are_found_in_their_order),
		cmocka_unit_test(a_patch_is_found_by_the_beginning_of_its_name),
		cmocka_unit_test(a_name_of_several_is_refused_and_they_are_named),
		cmocka_unit_test(the_last_decision_stands),
		cmocka_unit_test(a_journal_of_the_first_version_is_taken_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
