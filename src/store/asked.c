/* asked: reads questions and answers by one statement. */

#include "store/asked.h"

#include "store/database.h"

/* In the order of the columns. */
enum { AGENT, WORKSPACE, EFFECT, SUBJECT, RULE, ANSWER, BY };

/*
 * The numbers of questions begin anew in each process that goes on with a session, so the
 * answer is the first one behind the question that has its number.
 */
#define GIVEN(member)                                                                   \
	"coalesce((SELECT json_extract(given.json, '$." member "') FROM event AS given" \
	" WHERE given.session = wanted.session AND given.number > wanted.number"        \
	" AND given.kind = 'approval_given' AND json_valid(given.json)"                 \
	" AND json_extract(given.json, '$.id') = json_extract(wanted.json, '$.id')"     \
	" ORDER BY given.number LIMIT 1), '')"
#define WANTED(member) "coalesce(json_extract(wanted.json, '$." member "'), '')"

/* A column a line. */
/* clang-format off */
static const char query[] =
	"SELECT "
	WANTED("agent") ", " WANTED("workspace") ", " WANTED("effect") ", "
	WANTED("subject") ", " WANTED("rule") ", " GIVEN("answer") ", " GIVEN("by")
	" FROM event AS wanted"
	" WHERE wanted.kind = 'approval_wanted' AND wanted.wall_ms >= ?1"
	" AND CASE WHEN json_valid(wanted.json)"
	" THEN json_extract(wanted.json, '$.delegates') IS NULL ELSE 0 END"
	" ORDER BY wanted.session, wanted.number";
/* clang-format on */

bool asked_read(struct journal *journal, int64_t since_ms,
		bool (*question)(void *context, const struct asked_question *question),
		void *context, struct err *err)
{
	struct statement *statement;
	bool row = false, ok, more = true;

	if (!statement_begin(journal->database, query, &statement, err))
		return err_while(err, "reading what was asked");
	statement_bind_integer(statement, 1, since_ms);
	do {
		ok = statement_step(statement, &row, err);
		if (!ok || !row)
			break;
		const struct asked_question found = {
			.agent = statement_text(statement, AGENT),
			.workspace = statement_text(statement, WORKSPACE),
			.effect = statement_text(statement, EFFECT),
			.subject = statement_text(statement, SUBJECT),
			.rule = statement_text(statement, RULE),
			.answer = statement_text(statement, ANSWER),
			.by = statement_text(statement, BY),
		};

		if (found.answer.size > 0)
			more = question(context, &found);
	} while (more);
	statement_end(statement);
	return ok || err_while(err, "reading what was asked");
}
