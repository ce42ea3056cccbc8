/*
 * list: the state of a workspace at its last checkpoint: one row for each path, in order of name,
 * with an undo_state. A list that is read back is not trusted: rows out of order, unsound paths and
 * too many rows are an error. A look at the workspace compares it with such a list and makes the next
 * one; what the front says of a look and what the worker reports stand here as well.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/str.h"
#include "files/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Enough rows for the tracked files of the largest repositories and all other files. */
enum { UNDO_ROWS_MAX = 2000000, UNDO_LIST_MAX = 1 << 30 };

struct undo_row {
	struct str path; /* relative to the workspace, ends in NUL */
	struct undo_state state;
};

struct undo_list {
	struct undo_row *rows;
	size_t count;
	struct arena paths;
};

static inline void undo_list_init(struct undo_list *list)
{
	*list = (struct undo_list){0};
	arena_init(&list->paths);
}
static inline void undo_list_fini(struct undo_list *list)
{
	free(list->rows);
	arena_fini(&list->paths);
	*list = (struct undo_list){0};
}

/* Add a row; its path is copied. False: there are UNDO_ROWS_MAX already. */
bool undo_list_add(struct undo_list *list, struct str path, const struct undo_state *state);
/*
 * Sort the rows by path. Of several rows with the same path one stays, and none that says
 * only that the path is ignored when there is another.
 */
void undo_list_sort(struct undo_list *list);
/* The index of the first row at or after PATH. */
size_t undo_list_at(const struct undo_list *list, struct str path);
/*
 * The rows of a sorted LIST whose paths hold PART, which is not empty, in no particular
 * order: at most MOST of them in ROWS. MOST + 1: there are more. This reads the paths
 * alone, so it costs a tenth of a walk over the rows.
 */
size_t undo_list_with(const struct undo_list *list, struct str part, size_t most,
		      const struct undo_row **rows);
/* The row of PATH in a sorted list; NULL: there is none. */
static inline const struct undo_row *undo_list_find(const struct undo_list *list,
						    struct str path)
{
	const size_t at = undo_list_at(list, path);

	return at < list->count && str_equal(list->rows[at].path, path) ? &list->rows[at]
									: NULL;
}

/*
 * Put the rows of NEWER into *INTO, where they replace those of the same path; both are
 * sorted. WITHOUT: rows that are absent take their paths out of *INTO.
 */
void undo_list_join(struct undo_list *into, const struct undo_list *newer, bool without);

void undo_list_print(const struct undo_list *list, struct buf *out);
/* LIST is initialised. TEXT may be freed afterwards. */
bool undo_list_parse(struct str text, struct undo_list *list, struct err *err);
/* Read a list from a file; an empty file is an empty list. */
bool undo_list_read(int fd, struct undo_list *list, struct err *err);

/*
 * A look at the workspace (tools/looks/checkpoint.c): what the front says of it, and what the
 * worker reports. Both travel as the objects of base/json/fields.h. The folders that
 * are repositories and the objects to be linked travel beside the report.
 */
struct undo_look_order {
	int64_t log;                /* the number of the log, which the look may write */
	int64_t began_ms, ended_ms; /* of the command to which the look is owed */
	int64_t looks;              /* that this session has taken before */
	enum undo_look_wish {
		UNDO_LOOK_STEP = 1 << 0,  /* it is owed to a command */
		UNDO_LOOK_KNOWN = 1 << 1, /* an empty list is one of an empty workspace */
		UNDO_LOOK_KEEP = 1 << 2, /* the worker keeps the list for the next look */
		UNDO_LOOK_STALE = 1 << 3, /* the list on the disk is an older one */
		UNDO_LOOK_WHOLE = 1 << 4, /* at the whole workspace */
		UNDO_LOOK_WRITE = 1 << 5, /* the list is to be written to the disk */
		UNDO_LOOK_LINKS = 1 << 6, /* the front can link git's objects */
		/*
		 * the session makes one call: its two looks find everything, and write what
		 * they find
		 */
		UNDO_LOOK_ONCE = 1 << 7,
	} wishes;
};
struct undo_look_report {
	enum undo_look_finding {
		UNDO_FOUND_DIFFERS = 1 << 0, /* the new list differs from the old one */
		UNDO_FOUND_OWES = 1 << 1,    /* a look at the whole workspace is due */
		UNDO_FOUND_WATCHED = 1 << 2, /* the changes from now on are told */
		UNDO_FOUND_POLLED = 1 << 3,  /* by the descriptors of the front */
		/* what a step has changed cannot be known: there was no list */
		UNDO_FOUND_UNKNOWN = 1 << 4,
		UNDO_FOUND_MISSED = 1 << 5,  /* more had changed than was told */
		UNDO_FOUND_WRITTEN = 1 << 6, /* the new list is in its file */
		UNDO_FOUND_ALL = 1 << 7,     /* the look was at the whole workspace */
		/* a file of secrets (tool/secret.h) may have changed */
		UNDO_FOUND_SECRETS = 1 << 8,
	} findings;
	const char *unwatched; /* why changes are not watched; NULL: they are */
	const char *below;     /* the folder of all changes; NULL: there are none */
	int64_t rows, files, changed, added, removed;
	int64_t strange; /* changed when the command did not run; -1: unknown */
	/*
	 * ignored files that are gone, the first of them, and the folder of all; NULL: none.
	 * Where nobody watches, the names of ignored folders and of files outside of them.
	 */
	int64_t lost;
	const char *lost_name, *lost_below;
	int64_t unignored; /* were ignored and are not now: no part of the step */
	int64_t left_files, left_bytes; /* of which no contents are kept */
	int64_t us;
};
extern const struct field undo_look_order_fields[], undo_look_report_fields[];
