/*
 * undo_list: what a workspace held when a checkpoint last looked: one row for each path, in
 * order of name, with the state of undo_log.h. Read back it is foreign: rows out of order,
 * paths that lead elsewhere, too many of them are an error.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "files/undo_log.h"

#include <stdbool.h>
#include <stddef.h>

/* Rows of one list: the tracked files of the largest repositories, and the rest. */
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

/* A row more, its path copied. False: there are UNDO_ROWS_MAX. */
bool undo_list_add(struct undo_list *list, struct str path, const struct undo_state *state);
/* Put the rows in order; of two with one path the first stays. */
void undo_list_sort(struct undo_list *list);
/* In a list in order; NULL: not there. */
const struct undo_row *undo_list_find(const struct undo_list *list, struct str path);
/* The first row at or after PATH. */
size_t undo_list_at(const struct undo_list *list, struct str path);

void undo_list_print(const struct undo_list *list, struct buf *out);
/* LIST is initialised; the text may go. */
bool undo_list_parse(struct str text, struct undo_list *list, struct err *err);
/* From a file; an empty one is an empty list. */
bool undo_list_read(int fd, struct undo_list *list, struct err *err);
