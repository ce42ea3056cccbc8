/* Tests of store/costs. */
#include "../base/unit.h"

#include "base/buf.h"
#include "folder.h"
#include "store/costs.h"
#include "store/journal.h"

static bool note(void *context, const struct cost_answer *answer)
{
	struct buf *text = context;

	(void)buf_addf(text, "%.*s %.*s %.*s %lld %lld/%lld/%lld %.4f\n",
		       (int)answer->workspace.size, answer->workspace.data,
		       (int)answer->agent.size, answer->agent.data,
		       (int)answer->model.size, answer->model.data,
		       (long long)answer->wall_ms, (long long)answer->input,
		       (long long)answer->output, (long long)answer->cached, answer->money);
	return true;
}

static bool first_only(void *context, const struct cost_answer *answer)
{
	(void)note(context, answer);
	return false;
}

static void append(struct journal *journal, const char *id, int64_t number,
		   const char *kind, const char *json)
{
	assert_true(journal_append(journal, id, number, kind, 1000 * number, str_of(json),
				   NULL));
}

struct made {
	struct folder folder;
	struct journal *journal;
	struct buf text;
	char one[JOURNAL_ID + 1], child[JOURNAL_ID + 1], other[JOURNAL_ID + 1];
};

static void make(struct made *made)
{
	struct journal *journal;
	char parent[128];

	folder_begin(&made->folder, "sessions.db");
	buf_init(&made->text, 4096);
	assert_true(journal_open(made->folder.file, &made->journal, NULL));
	journal = made->journal;
	assert_true(journal_new_session(journal, "/a", "coder", "big", made->one, NULL));
	append(journal, made->one, 1, "session_began",
	       "{\"agent\":\"coder\",\"model\":\"big\"}");
	append(journal, made->one, 2, "turn_began", "{\"text\":\"of an old version\"}");
	append(journal, made->one, 3, "message",
	       "{\"parts\":[],\"usage\":{\"input\":10,\"output\":2,\"cached\":4,\"money\":0.25,"
	       "\"money_known\":true}}");
	append(journal, made->one, 4, "turn_began",
	       "{\"text\":\"x\",\"agent\":\"tester\",\"model\":\"small\"}");
	append(journal, made->one, 5, "compacted",
	       "{\"text\":\"x\",\"usage\":{\"input\":7,\"output\":1,\"cached\":0,"
	       "\"money_known\":false}}");
	append(journal, made->one, 6, "message", "no JSON");
	append(journal, made->one, 7, "tool_ended", "{\"usage\":{\"input\":1000}}");
	append(journal, made->one, 8, "sampled",
	       "{\"text\":\"x\",\"usage\":{\"input\":5,\"output\":1,\"cached\":0,"
	       "\"money\":0.5,\"money_known\":true}}");
	assert_true(journal_new_session(journal, "/a", "helper", "big", made->child, NULL));
	(void)snprintf(parent, sizeof(parent), "{\"parent\":\"%s\"}", made->one);
	append(journal, made->child, 1, "session_began", parent);
	append(journal, made->child, 2, "message",
	       "{\"usage\":{\"input\":3,\"output\":3,\"cached\":0,\"money_known\":true}}");
	assert_true(journal_new_session(journal, "/b", "coder", "big", made->other, NULL));
	append(journal, made->other, 1, "message",
	       "{\"usage\":{\"input\":1,\"output\":1,\"cached\":0,\"money_known\":false}}");
}

static void unmake(struct made *made)
{
	journal_close(made->journal);
	buf_fini(&made->text);
	folder_end(&made->folder);
}

static void each_answer_counts_for_its_turn(void **state)
{
	struct made made;

	(void)state;
	make(&made);
	assert_true(costs_read(made.journal, 0, NULL, note, &made.text, NULL));
	assert_string_equal(made.text.data, "/a coder big 3000 10/2/4 0.2500\n"
					    "/a tester small 5000 7/1/0 -1.0000\n"
					    "/a tester small 6000 0/0/0 -1.0000\n"
					    "/a tester small 8000 5/1/0 0.5000\n"
					    "/a helper big 2000 3/3/0 0.0000\n"
					    "/b coder big 1000 1/1/0 -1.0000\n");
	buf_clear(&made.text);
	assert_true(costs_read(made.journal, 0, NULL, first_only, &made.text, NULL));
	assert_string_equal(made.text.data, "/a coder big 3000 10/2/4 0.2500\n");
	unmake(&made);
}

static void a_session_is_read_with_its_delegates(void **state)
{
	struct made made;

	(void)state;
	make(&made);
	assert_true(costs_read(made.journal, 0, made.one, note, &made.text, NULL));
	assert_non_null(strstr(made.text.data, "/a helper big"));
	assert_null(strstr(made.text.data, "/b"));
	buf_clear(&made.text);
	assert_true(costs_read(made.journal, 0, made.child, note, &made.text, NULL));
	assert_string_equal(made.text.data, "/a helper big 2000 3/3/0 0.0000\n");
	unmake(&made);
}

/* A turn that began before the time still names the model of its later answers. */
static void answers_since_a_time_know_their_turn(void **state)
{
	struct made made;

	(void)state;
	make(&made);
	assert_true(costs_read(made.journal, 5000, NULL, note, &made.text, NULL));
	assert_string_equal(made.text.data, "/a tester small 5000 7/1/0 -1.0000\n"
					    "/a tester small 6000 0/0/0 -1.0000\n"
					    "/a tester small 8000 5/1/0 0.5000\n");
	unmake(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_answer_counts_for_its_turn),
		cmocka_unit_test(a_session_is_read_with_its_delegates),
		cmocka_unit_test(answers_since_a_time_know_their_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
