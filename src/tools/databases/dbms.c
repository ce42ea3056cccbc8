/* dbms: one connection, by any client, and answers in one shape; see dbms.h. */
#include "tools/databases/dbms.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <stdlib.h>

const char *const dbms_headings[DBMS_QUESTIONS][DBMS_COLUMNS_MAX + 1] = {
	[DBMS_TABLES] = {"name", "kind", "rows", "comment"},
	[DBMS_COLUMNS] = {"name", "type", "null", "default", "key", "comment"},
	[DBMS_RULES] = {"name", "definition"},
	[DBMS_INDEXES] = {"name", "kind", "definition"},
};

struct dbms {
	const struct dbms_client *client;
	void *handle;
	char version[DBMS_VERSION];
};

struct gathering {
	struct value *rows;
	bool more;
};

bool dbms_open(const struct dbms_place *place, struct call *call, struct dbms **dbms,
	       struct err *err)
{
	struct dbms *made = memory_alloc(sizeof(*made));

	made->client = place->client;
	if (!made->client->open(place, call, &made->handle, made->version, err)) {
		free(made);
		return false;
	}
	*dbms = made;
	return true;
}

void dbms_close(struct dbms *dbms)
{
	if (!dbms)
		return;
	dbms->client->close(dbms->handle);
	free(dbms);
}

const char *dbms_version(const struct dbms *dbms)
{
	return dbms->version;
}

static bool gather(void *context, const struct str *cells, size_t count)
{
	struct gathering *gathering = context;
	struct value *row;

	if (value_count(gathering->rows) == DBMS_ROWS_MAX) {
		gathering->more = true;
		return false;
	}
	row = value_new_array();
	for (size_t i = 0; i < count && i < DBMS_COLUMNS_MAX; i++) {
		size_t size = cells[i].size <= DBMS_CELL_MAX
				      ? cells[i].size
				      : text_character_border(cells[i], DBMS_CELL_MAX);

		value_append(row, cells[i].data ? value_new_str(str_part(cells[i], 0, size))
						: value_new_null());
	}
	value_append(gathering->rows, row);
	return true;
}

bool dbms_ask(struct dbms *dbms, enum dbms_question question, const char *table,
	      struct value **rows, bool *more, struct err *err)
{
	struct gathering gathering = {value_new_array(), false};

	if (!dbms->client->ask(dbms->handle, dbms->client->questions[question], table,
			       gather, &gathering, err)) {
		value_free(gathering.rows);
		return false;
	}
	*rows = gathering.rows;
	*more = gathering.more;
	return true;
}
