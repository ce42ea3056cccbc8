/* reports: one statement over the tables of journal.c. */
#include "store/reports.h"

#include "store/journal_parts.h"

#include <string.h>

/*
 * The first or last event of a kind. A denied call says so right behind its names: in texts the
 * quotes have backslashes.
 */
#define EVENT_OF(condition, order)                                            \
	"coalesce((SELECT json FROM event WHERE session = key AND " condition \
	" ORDER BY number " order " LIMIT 1), '')"

static const char query[] =
	"SELECT id, agent, model, began_ms,"
	" " EVENT_OF(
		"kind = 'session_began'",
		"ASC") ","
		       " " EVENT_OF(
			       "kind = 'turn_began'",
			       "ASC") ","
				      " " EVENT_OF(
					      "kind = 'message'",
					      "DESC") ","
						      " " EVENT_OF(
							      "kind = 'tool_began' AND instr(json, '\"tool\":\"generate_patch\"') > 0",
							      "DESC") ","
								      " " EVENT_OF(
									      "kind = 'turn_ended'",
									      "DESC") ","
										      " (SELECT count(*) FROM event WHERE session = key AND kind = 'tool_ended'),"
										      " (SELECT count(*) FROM event WHERE session = key AND kind = 'tool_ended'"
										      "  AND instr(substr(json, 1, 1000), ',\"status\":\"denied\"') > 0)"
										      " FROM session WHERE workspace = ?1 AND (?2 = '' OR agent IN (?2, ?6)) AND began_ms >= ?3"
										      " AND id <> ?4 ORDER BY began_ms DESC, key DESC LIMIT ?5";

static void fill(struct statement *statement, struct report_row *row)
{
	const struct str id = statement_text(statement, 0);

	*row = (struct report_row){
		.agent = statement_text(statement, 1),
		.model = statement_text(statement, 2),
		.began_ms = statement_integer(statement, 3),
		.began = statement_text(statement, 4),
		.task = statement_text(statement, 5),
		.message = statement_text(statement, 6),
		.handover = statement_text(statement, 7),
		.ended = statement_text(statement, 8),
		.calls = statement_integer(statement, 9),
		.denied = statement_integer(statement, 10),
	};
	memcpy(row->id, id.data, id.size < JOURNAL_ID ? id.size : JOURNAL_ID);
}

bool reports_list(struct journal *journal, const struct report_filter *filter,
		  size_t limit, bool (*report)(void *context, const struct report_row *row),
		  void *context, struct err *err)
{
	struct statement *statement;
	struct report_row found;
	bool row = false, ok;

	if (!statement_begin(journal->database, query, &statement, err))
		return err_while(err, "reading reports");
	statement_bind_text(statement, 1, str_of(filter->workspace));
	statement_bind_text(statement, 2, str_of(filter->agent));
	statement_bind_integer(statement, 3, filter->since_ms);
	statement_bind_text(statement, 4, str_of(filter->except));
	statement_bind_integer(statement, 5, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
	statement_bind_text(statement, 6,
			    str_of(filter->other_name ? filter->other_name : filter->agent));
	do {
		ok = statement_step(statement, &row, err);
		if (ok && row)
			fill(statement, &found);
	} while (ok && row && report(context, &found));
	statement_end(statement);
	return ok || err_while(err, "reading reports");
}
