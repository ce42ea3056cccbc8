/*
 * copied: the list of a tree that was copied (view/copy.h), where the kernel lays no layer over
 * it. A session works in the copy, and what differs from the list is what the session has
 * changed. The list is an undo log (record.h). Its paths begin at the tree; `before` of a row
 * is what the tree held when it was copied, `after` what the copy held then, and of several
 * rows for a path the last one counts. A path with nothing before and after is not of the copy
 * any more.
 *
 * The list lies beside the copy, where no program of a cell writes. It is checked as any log.
 */
#pragma once

#include "base/err.h"
#include "files/record.h"

#include <stdbool.h>
#include <sys/stat.h>

struct copied;

/* The name of the list, beside the copy. */
#define COPIED_LIST "list"

/* Read LIST from its beginning. False: *COPIED is NULL. */
bool copied_read(int list, struct copied **copied, struct err *err);
void copied_free(struct copied *copied);

/* The state of RELATIVE in the tree when it was copied; NULL: there was nothing. */
const struct undo_state *copied_before(const struct copied *copied, const char *relative);
/*
 * Is NOW, the present state of a path in the tree, still BEFORE? The times decide. A folder is
 * one whatever its times are.
 */
bool copied_is_kept(const struct undo_state *before, const struct undo_state *now);

/*
 * Is ST, the status of RELATIVE in the copy, as the list says? Of a folder only the permissions
 * count, and not the names in it.
 */
bool copied_same(const struct copied *copied, const char *relative, const struct stat *st);
/*
 * Call EACH, until it returns false, with the paths that are in the list and not in the copy
 * COPY: a folder before the names in it. False: EACH has returned false.
 */
bool copied_each_gone(const struct copied *copied, int copy,
		      bool (*each)(void *context, const char *relative), void *context);
/* Does the copy COPY differ from the list at RELATIVE, or somewhere below it? */
bool copied_differs(const struct copied *copied, int copy, const char *relative);
/* Call EACH with RELATIVE and all paths of the list below it ("": all of them). */
void copied_each(const struct copied *copied, const char *relative,
		 void (*each)(void *context, const char *relative), void *context);
