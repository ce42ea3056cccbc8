/* patches: finds the events of patches, and records decisions about them. */
#include "store/patches.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "store/journal.h"

enum {
	NAMED_MAX = 5, /* names in one sentence */
	SENTENCE_MAX = 512,
};

#define ROW_COLUMNS                                                                      \
	"SELECT session.id, event.number, event.wall_ms, workspace, agent, model, json," \
	" coalesce(state, ''), coalesce(decision.wall_ms, 0), coalesce(place, ''),"      \
	" coalesce(branch, ''), coalesce(reason, '')"
#define ROW_TABLES                                                \
	" FROM event JOIN session ON session.key = event.session" \
	" LEFT JOIN decision ON decision.session = event.session" \
	" AND decision.number = event.number WHERE " JOURNAL_IS_PATCH
#define ROW_ORDER " ORDER BY event.wall_ms DESC, event.session DESC, event.number DESC"

static const char *const state_names[] = {"open", "applied", "rejected"};

const char *patch_state_name(enum patch_state state)
{
	return state_names[state];
}

static void make_id(const char *session, int64_t number, char id[PATCH_ID + 1])
{
	char text[JOURNAL_ID + 32], hex[HASH_HEX + 1];

	(void)snprintf(text, sizeof(text), "%s %" PRId64, session, number);
	hash_text(str_of(text), hex);
	memcpy(id, hex, PATCH_ID);
	id[PATCH_ID] = '\0';
}

static void fill_row(struct statement *statement, struct patch_row *row)
{
	const struct str session = statement_text(statement, 0);
	const struct str state = statement_text(statement, 7);

	*row = (struct patch_row){
		.number = statement_integer(statement, 1),
		.wall_ms = statement_integer(statement, 2),
		.workspace = statement_text(statement, 3),
		.agent = statement_text(statement, 4),
		.model = statement_text(statement, 5),
		.json = statement_text(statement, 6),
		.decision = {.state = str_is(state, "applied")    ? PATCH_APPLIED
				      : str_is(state, "rejected") ? PATCH_REJECTED
								  : PATCH_OPEN,
			     .wall_ms = statement_integer(statement, 8),
			     .place = statement_text(statement, 9),
			     .branch = statement_text(statement, 10),
			     .reason = statement_text(statement, 11)},
	};
	memcpy(row->session, session.data,
	       session.size < JOURNAL_ID ? session.size : JOURNAL_ID);
	make_id(row->session, row->number, row->id);
}

bool patches_list(struct journal *journal, const char *workspace, bool elsewhere,
		  size_t limit, bool (*patch)(void *context, const struct patch_row *row),
		  void *context, struct err *err)
{
	struct statement *statement;
	struct patch_row found;
	bool row = false, ok = true;

	if (!statement_begin(journal->database,
			     elsewhere ? ROW_COLUMNS ROW_TABLES
				     " AND workspace <> ?1" ROW_ORDER " LIMIT ?2"
				       : ROW_COLUMNS ROW_TABLES
				     " AND workspace = ?1" ROW_ORDER " LIMIT ?2",
			     &statement, err))
		return err_while(err, "listing the patches");
	statement_bind_text(statement, 1, str_of(workspace));
	statement_bind_integer(statement, 2, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
	do {
		ok = statement_step(statement, &row, err);
		if (ok && row)
			fill_row(statement, &found);
	} while (ok && row && patch(context, &found));
	statement_end(statement);
	return ok || err_while(err, "listing the patches");
}

/* Collects the patches whose name begins with a text. */
struct matching {
	const char *begin;
	size_t count;
	char session[JOURNAL_ID + 1]; /* of the first */
	int64_t number;
	char names[SENTENCE_MAX];
};

static void match(struct matching *matching, struct statement *statement)
{
	const struct str text = statement_text(statement, 0);
	const int64_t number = statement_integer(statement, 1);
	const size_t size = strlen(matching->names);
	char session[JOURNAL_ID + 1] = "", id[PATCH_ID + 1];

	memcpy(session, text.data, text.size < JOURNAL_ID ? text.size : JOURNAL_ID);
	make_id(session, number, id);
	if (strncmp(id, matching->begin, strlen(matching->begin)) != 0)
		return;
	if (matching->count++ == 0) {
		memcpy(matching->session, session, sizeof(session));
		matching->number = number;
	}
	if (matching->count <= NAMED_MAX)
		(void)snprintf(matching->names + size, sizeof(matching->names) - size,
			       "%s%s", size > 0 ? ", " : "", id);
}

static bool look_for(struct journal *journal, struct matching *matching, struct err *err)
{
	struct statement *statement;
	bool row = false, ok = true;

	if (!statement_begin(journal->database,
			     "SELECT session.id, event.number FROM event JOIN session ON"
			     " session.key = event.session WHERE " JOURNAL_IS_PATCH,
			     &statement, err))
		return false;
	do {
		ok = statement_step(statement, &row, err);
		if (ok && row)
			match(matching, statement);
	} while (ok && row);
	statement_end(statement);
	return ok;
}

static bool read_one(struct journal *journal, const struct matching *matching,
		     void (*patch)(void *context, const struct patch_row *row),
		     void *context, struct err *err)
{
	struct statement *statement;
	struct patch_row found;
	bool row = false, ok;

	if (!statement_begin(journal->database,
			     ROW_COLUMNS ROW_TABLES
			     " AND session.id = ?1 AND event.number = ?2",
			     &statement, err))
		return false;
	statement_bind_text(statement, 1, str_of(matching->session));
	statement_bind_integer(statement, 2, matching->number);
	ok = statement_step(statement, &row, err);
	if (ok && row) {
		fill_row(statement, &found);
		patch(context, &found);
	}
	statement_end(statement);
	return ok;
}

bool patches_find(struct journal *journal, const char *id,
		  void (*patch)(void *context, const struct patch_row *row),
		  void *context, struct err *err)
{
	struct matching matching = {.begin = id};
	const size_t size = strlen(id);

	if (size < PATCH_ID_LEAST || size > PATCH_ID ||
	    strspn(id, "0123456789abcdef") != size)
		return err_set(err, EINVAL,
			       "\"%.40s\" is no patch: it takes %d to %d of the digits that "
			       "`glovebox patch list` shows",
			       id, PATCH_ID_LEAST, PATCH_ID);
	if (!look_for(journal, &matching, err))
		return err_while(err, "looking for the patch");
	if (matching.count == 0)
		return err_set(err, ENOENT,
			       "there is no patch \"%s\"; see: glovebox patch list --all",
			       id);
	if (matching.count > 1)
		return err_set(err, EINVAL, "%zu patches begin with \"%s\": %s%s",
			       matching.count, id, matching.names,
			       matching.count > NAMED_MAX ? ", …" : "");
	return read_one(journal, &matching, patch, context, err) ||
	       err_while(err, "reading the patch");
}

bool patches_newest(struct journal *journal, const char *session, char id[PATCH_ID + 1],
		    struct err *err)
{
	struct statement *statement;
	bool row = false, ok;

	if (!statement_begin(journal->database,
			     "SELECT event.number FROM event JOIN session ON"
			     " session.key = event.session WHERE session.id = ?1"
			     " AND " JOURNAL_IS_PATCH " ORDER BY event.number DESC LIMIT 1",
			     &statement, err))
		return err_while(err, "looking for the patch");
	statement_bind_text(statement, 1, str_of(session));
	ok = statement_step(statement, &row, err);
	if (ok && row)
		make_id(session, statement_integer(statement, 0), id);
	statement_end(statement);
	return ok ? row : err_while(err, "looking for the patch");
}

bool patches_decide(struct journal *journal, const char *session, int64_t number,
		    const struct patch_decision *decision, struct err *err)
{
	struct statement *statement;
	int64_t written = 0;
	bool ok;

	if (!statement_begin(
		    journal->database,
		    "INSERT INTO decision (session, number, state, wall_ms, place, branch,"
		    " reason) SELECT key, ?2, ?3, ?4, ?5, ?6, ?7 FROM session WHERE id = ?1"
		    " ON CONFLICT (session, number) DO UPDATE SET state = excluded.state,"
		    " wall_ms = excluded.wall_ms, place = excluded.place,"
		    " branch = excluded.branch, reason = excluded.reason",
		    &statement, err))
		return err_while(err, "noting what was decided");
	statement_bind_text(statement, 1, str_of(session));
	statement_bind_integer(statement, 2, number);
	statement_bind_text(statement, 3, str_of(patch_state_name(decision->state)));
	statement_bind_integer(statement, 4, clock_wall_ms());
	statement_bind_text(statement, 5, decision->place);
	statement_bind_text(statement, 6, decision->branch);
	statement_bind_text(statement, 7, decision->reason);
	ok = statement_run(statement, &written, err);
	if (ok && written != 1)
		ok = err_set(err, ENOENT, "there is no session \"%.40s\"", session);
	return ok || err_while(err, "noting what was decided");
}
