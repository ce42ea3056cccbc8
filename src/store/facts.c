/* facts: one table. The transaction that writes checks the bounds. */
#include "store/facts.h"

#include "base/clock.h"
#include "base/memory.h"
#include "store/database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const schema[] = {
	/* version 1 */
	"CREATE TABLE fact ("
	" workspace TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" value TEXT NOT NULL,"
	" agent TEXT NOT NULL,"
	" session TEXT NOT NULL,"
	" written_ms INTEGER NOT NULL,"
	" expires_ms INTEGER NOT NULL,"
	" PRIMARY KEY (workspace, key)"
	") STRICT;",
	NULL,
};

struct facts {
	struct database *database;
};

bool facts_open(const char *path, struct facts **facts, struct err *err)
{
	struct database *database;

	if (!database_state_open(path, "the shared context", schema, &database, err))
		return false;
	*facts = memory_alloc(sizeof(**facts));
	(*facts)->database = database;
	return true;
}

void facts_close(struct facts *facts)
{
	if (!facts)
		return;
	database_close(facts->database);
	free(facts);
}

bool facts_check_key(struct str key, struct err *err)
{
	static const char fit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:";
	bool fits = key.size > 0 && key.size <= FACTS_KEY_MAX;

	for (size_t i = 0; fits && i < key.size; i++)
		fits = memchr(fit, key.data[i], sizeof(fit) - 1) != NULL;
	return fits || err_set(err, EINVAL,
			       "a key has 1 to %d letters, digits and . _ - / :, as in "
			       "\"build/command\"",
			       FACTS_KEY_MAX);
}

static bool facts_sweep(struct facts *facts, int64_t now_ms, struct err *err)
{
	struct statement *statement;

	if (!statement_begin(facts->database,
			     "DELETE FROM fact WHERE expires_ms > 0 AND expires_ms <= ?",
			     &statement, err))
		return false;
	statement_bind_integer(statement, 1, now_ms);
	return statement_run(statement, NULL, err);
}

/* Is there room for SIZE bytes under KEY, when they replace the present value of KEY? */
static bool facts_have_room(struct facts *facts, const char *workspace, struct str key,
			    size_t size, struct err *err)
{
	struct statement *statement;
	int64_t count = 0, bytes = 0;
	bool row = false, ok;

	if (!statement_begin(facts->database,
			     "SELECT count(*), coalesce(sum(length(CAST(value AS BLOB))"
			     " + length(key)), 0) FROM fact WHERE workspace = ? AND key <> ?",
			     &statement, err))
		return false;
	statement_bind_text(statement, 1, str_of(workspace));
	statement_bind_text(statement, 2, key);
	ok = statement_step(statement, &row, err);
	if (ok && row) {
		count = statement_integer(statement, 0);
		bytes = statement_integer(statement, 1);
	}
	statement_end(statement);
	if (!ok)
		return false;
	if (count >= FACTS_COUNT_MAX)
		return err_set(err, ENOSPC,
			       "there are %d facts of this workspace already: delete what no longer "
			       "holds",
			       FACTS_COUNT_MAX);
	if (bytes + (int64_t)size + (int64_t)key.size > FACTS_BYTES_MAX)
		return err_set(err, ENOSPC,
			       "the facts of this workspace would have more than %d MiB together: "
			       "delete what no longer holds",
			       FACTS_BYTES_MAX >> 20);
	return true;
}

static bool facts_write(struct facts *facts, const char *workspace,
			const struct fact *fact, int64_t now_ms, struct err *err)
{
	struct statement *statement;

	if (!statement_begin(
		    facts->database,
		    "INSERT INTO fact (workspace, key, value, agent, session, written_ms,"
		    " expires_ms) VALUES (?, ?, ?, ?, ?, ?, ?)"
		    " ON CONFLICT (workspace, key) DO UPDATE SET value = excluded.value,"
		    " agent = excluded.agent, session = excluded.session,"
		    " written_ms = excluded.written_ms, expires_ms = excluded.expires_ms",
		    &statement, err))
		return false;
	statement_bind_text(statement, 1, str_of(workspace));
	statement_bind_text(statement, 2, fact->key);
	statement_bind_text(statement, 3, fact->value);
	statement_bind_text(statement, 4, fact->agent);
	statement_bind_text(statement, 5, fact->session);
	statement_bind_integer(statement, 6, now_ms);
	statement_bind_integer(statement, 7, fact->expires_ms);
	return statement_run(statement, NULL, err);
}

bool facts_set(struct facts *facts, const char *workspace, const struct fact *fact,
	       struct err *err)
{
	const int64_t now_ms = clock_wall_ms();
	bool ok;

	if (!facts_check_key(fact->key, err))
		return false;
	if (fact->value.size > FACTS_VALUE_MAX)
		return err_set(err, E2BIG,
			       "a value has at most %d KiB, this one %zu bytes: keep what is worth "
			       "knowing, or write a file",
			       FACTS_VALUE_MAX >> 10, fact->value.size);
	if (!database_run(facts->database, "BEGIN IMMEDIATE", err))
		return err_while(err, "keeping a fact");
	ok = facts_sweep(facts, now_ms, err) &&
	     facts_have_room(facts, workspace, fact->key, fact->value.size, err) &&
	     facts_write(facts, workspace, fact, now_ms, err);
	return database_end(facts->database, ok, err);
}

bool facts_find(struct facts *facts, const char *workspace, struct str prefix, bool exact,
		bool (*fact)(void *context, const struct fact *fact), void *context,
		struct err *err)
{
	struct statement *statement;
	bool row = false, ok;

	if (!statement_begin(facts->database,
			     "SELECT key, value, agent, session, written_ms, expires_ms FROM fact"
			     " WHERE workspace = ?1 AND (expires_ms = 0 OR expires_ms > ?3)"
			     " AND (key = ?2 OR (?4 = 0 AND substr(key, 1, length(?2)) = ?2))"
			     " ORDER BY key",
			     &statement, err))
		return err_while(err, "reading the shared context");
	statement_bind_text(statement, 1, str_of(workspace));
	statement_bind_text(statement, 2, prefix);
	statement_bind_integer(statement, 3, clock_wall_ms());
	statement_bind_integer(statement, 4, exact);
	for (;;) {
		ok = statement_step(statement, &row, err);
		if (!ok || !row)
			break;
		const struct fact found = {
			.key = statement_text(statement, 0),
			.value = statement_text(statement, 1),
			.agent = statement_text(statement, 2),
			.session = statement_text(statement, 3),
			.written_ms = statement_integer(statement, 4),
			.expires_ms = statement_integer(statement, 5),
		};
		if (!fact(context, &found))
			break;
	}
	statement_end(statement);
	return ok || err_while(err, "reading the shared context");
}

bool facts_remove(struct facts *facts, const char *workspace, struct str key,
		  bool *removed, struct err *err)
{
	struct statement *statement;
	int64_t changed = 0;

	if (!statement_begin(facts->database,
			     "DELETE FROM fact WHERE workspace = ? AND key = ?",
			     &statement, err))
		return err_while(err, "deleting a fact");
	statement_bind_text(statement, 1, str_of(workspace));
	statement_bind_text(statement, 2, key);
	if (!statement_run(statement, &changed, err))
		return err_while(err, "deleting a fact");
	*removed = changed > 0;
	return true;
}
