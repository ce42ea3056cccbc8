/* Tests of store/asked. */
#include "../base/unit.h"

#include "base/buf.h"
#include "folder.h"
#include "store/asked.h"
#include "store/journal.h"

static bool note(void *context, const struct asked_question *question)
{
	struct buf *text = context;

	(void)buf_addf(text, "%.*s %.*s %.*s %.*s\n", (int)question->agent.size,
		       question->agent.data, (int)question->subject.size,
		       question->subject.data, (int)question->answer.size,
		       question->answer.data, (int)question->by.size, question->by.data);
	return true;
}

/* The numbers of questions begin anew when a process goes on with a session. */
static void each_question_has_the_answer_behind_it(void **state)
{
	static const char *const events[][2] = {
		{"approval_wanted", "{\"id\":-1,\"agent\":\"a\",\"subject\":\"one\"}"},
		{"approval_wanted", "{\"id\":-2,\"agent\":\"a\",\"subject\":\"two\"}"},
		{"approval_given", "{\"id\":-2,\"answer\":\"no\",\"by\":\"person\"}"},
		{"approval_given", "{\"id\":-1,\"answer\":\"once\",\"by\":\"person\"}"},
		{"approval_wanted", "{\"id\":-1,\"agent\":\"a\",\"subject\":\"three\"}"},
		{"approval_given", "{\"id\":-1,\"answer\":\"session\",\"by\":\"person\"}"},
		{"approval_wanted",
		 "{\"id\":-2,\"agent\":\"b\",\"subject\":\"relayed\",\"delegates\":[\"a\"]}"},
		{"approval_given", "{\"id\":-2,\"answer\":\"once\",\"by\":\"person\"}"},
		{"approval_wanted", "no JSON"},
		{"approval_wanted", "{\"id\":-3,\"agent\":\"a\",\"subject\":\"unanswered\"}"},
	};
	struct folder folder;
	struct journal *journal;
	char id[JOURNAL_ID + 1];
	struct buf text;

	(void)state;
	folder_begin(&folder, "sessions.db");
	buf_init(&text, 4096);
	assert_true(journal_open(folder.file, &journal, NULL));
	assert_true(journal_new_session(journal, "/a", "a", "m", id, NULL));
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		assert_true(journal_append(journal, id, (int64_t)i + 1, events[i][0],
					   (int64_t)i, str_of(events[i][1]), NULL));
	assert_true(asked_read(journal, 0, note, &text, NULL));
	assert_string_equal(text.data, "a one once person\n"
				       "a two no person\n"
				       "a three session person\n");
	buf_clear(&text);
	assert_true(asked_read(journal, 3, note, &text, NULL));
	assert_string_equal(text.data, "a three session person\n");
	journal_close(journal);
	buf_fini(&text);
	folder_end(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_question_has_the_answer_behind_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
