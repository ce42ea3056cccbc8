/*
 * undo_list: the state of a workspace at its last checkpoint: one row for each path, in
 * order of name, with an undo_state. A list that is read back is not trusted: rows out of
 * order, unsound paths and too many rows are an error.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "files/record.h"

#include <stdbool.h>
#include <stddef.h>

/* Enough rows for the tracked files of the largest repositories and all other files. */
enum { UNDO_ROWS_MAX = 2000000, UNDO_LIST_MAX = 1 << 30 };

struct undo_row {
	struct str path; /* relative to the workspace, ends in NUL */
	struct undo_state state;
};

struct undo_list {
	struct undo_row *rows;
	size_t count, room;
	struct arena paths;
};

void undo_list_init(struct undo_list *list);
void undo_list_fini(struct undo_list *list);

/* Add a row; its path is copied. False: there are UNDO_ROWS_MAX already. */
bool undo_list_add(struct undo_list *list, struct str path, const struct undo_state *state);
/* Sort the rows by path. Of two rows with the same path one stays. */
void undo_list_sort(struct undo_list *list);
/* The row of PATH in a sorted list; NULL: there is none. */
const struct undo_row *undo_list_find(const struct undo_list *list, struct str path);
/* The index of the first row at or after PATH. */
size_t undo_list_at(const struct undo_list *list, struct str path);

void undo_list_print(const struct undo_list *list, struct buf *out);
/* LIST is initialised. TEXT may be freed afterwards. */
bool undo_list_parse(struct str text, struct undo_list *list, struct err *err);
/* Read a list from a file; an empty file is an empty list. */
bool undo_list_read(int fd, struct undo_list *list, struct err *err);
