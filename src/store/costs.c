/* costs: reads the answers and the turns that they belong to, by one statement. */

#include "store/costs.h"

#include "base/buf.h"
#include "store/database.h"

#include <stdlib.h>

/* In the order of the columns. */
enum {
	ID,
	WORKSPACE,
	AGENT,
	MODEL,
	IS_ANSWER,
	WALL_MS,
	TURN_AGENT,
	TURN_MODEL,
	INPUT,
	OUTPUT,
	CACHED,
	CACHE_WRITES,
	REASONING,
	MONEY,
};

/*
 * The events that name an agent and a model come before the answers of theirs. Only these
 * kinds are parsed: the column of the kind stands before that of the JSON.
 */
static const char query[] =
	"WITH RECURSIVE family (key) AS ("
	" SELECT key FROM session WHERE id = ?2"
	" UNION"
	" SELECT event.session FROM family JOIN session ON session.key = family.key"
	" JOIN event ON event.number = 1 AND json_valid(json)"
	" AND json_extract(json, '$.parent') = session.id"
	") SELECT id, workspace, agent, model, kind IN ('message', 'compacted', 'sampled'), wall_ms,"
	" coalesce(json_extract(j, '$.agent'), ''), coalesce(json_extract(j, '$.model'), ''),"
	" json_extract(j, '$.usage.input'), json_extract(j, '$.usage.output'),"
	" json_extract(j, '$.usage.cached'), json_extract(j, '$.usage.cache_writes'),"
	" json_extract(j, '$.usage.reasoning'),"
	" CASE json_extract(j, '$.usage.money_known') WHEN 1"
	" THEN coalesce(json_extract(j, '$.usage.money'), 0) ELSE -1 END"
	" FROM (SELECT session, number, kind, wall_ms,"
	" CASE WHEN json_valid(json) THEN json ELSE '{}' END AS j FROM event"
	" WHERE kind IN ('session_began', 'session_resumed', 'turn_began')"
	" OR (kind IN ('message', 'compacted', 'sampled') AND wall_ms >= ?1)) AS event"
	" JOIN session ON session.key = event.session"
	" WHERE ?2 = '' OR session.key IN family"
	" ORDER BY session.key, number";

/* The agent and the model of the turn that is being read. */
struct turn {
	struct buf session, agent, model;
};

enum { NAME_MAX_BYTES = 64 << 10 };

static void set(struct buf *name, struct str text)
{
	buf_clear(name);
	(void)buf_addstr(name, text);
}

/* The row of STATEMENT is the beginning of a session or of a turn, or an answer in one. */
static void note_turn(struct turn *turn, struct statement *statement)
{
	const struct str session = statement_text(statement, ID);

	if (!str_equal(buf_str(&turn->session), session)) {
		set(&turn->session, session);
		set(&turn->agent, statement_text(statement, AGENT));
		set(&turn->model, statement_text(statement, MODEL));
	}
	if (statement_text(statement, TURN_AGENT).size > 0)
		set(&turn->agent, statement_text(statement, TURN_AGENT));
	if (statement_text(statement, TURN_MODEL).size > 0)
		set(&turn->model, statement_text(statement, TURN_MODEL));
}

static void fill(const struct turn *turn, struct statement *statement,
		 struct cost_answer *answer)
{
	*answer = (struct cost_answer){
		.session = buf_str(&turn->session),
		.workspace = statement_text(statement, WORKSPACE),
		.agent = buf_str(&turn->agent),
		.model = buf_str(&turn->model),
		.wall_ms = statement_integer(statement, WALL_MS),
		.input = statement_integer(statement, INPUT),
		.output = statement_integer(statement, OUTPUT),
		.cached = statement_integer(statement, CACHED),
		.cache_writes = statement_integer(statement, CACHE_WRITES),
		.reasoning = statement_integer(statement, REASONING),
		.money = strtod(statement_text(statement, MONEY).data, NULL),
	};
}

bool costs_read(struct journal *journal, int64_t since_ms, const char *session,
		bool (*answer)(void *context, const struct cost_answer *answer),
		void *context, struct err *err)
{
	struct statement *statement;
	struct cost_answer found;
	struct turn turn;
	bool row = false, ok, more = true;

	if (!statement_begin(journal->database, query, &statement, err))
		return err_while(err, "reading what was used");
	statement_bind_integer(statement, 1, since_ms);
	statement_bind_text(statement, 2, str_of(session != NULL ? session : ""));
	buf_init(&turn.session, NAME_MAX_BYTES);
	buf_init(&turn.agent, NAME_MAX_BYTES);
	buf_init(&turn.model, NAME_MAX_BYTES);
	do {
		ok = statement_step(statement, &row, err);
		if (!ok || !row)
			break;
		note_turn(&turn, statement);
		if (statement_integer(statement, IS_ANSWER) == 0)
			continue;
		fill(&turn, statement, &found);
		more = answer(context, &found);
	} while (more);
	statement_end(statement);
	buf_fini(&turn.session);
	buf_fini(&turn.agent);
	buf_fini(&turn.model);
	return ok || err_while(err, "reading what was used");
}
