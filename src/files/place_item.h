/*
 * place_item: one file of a write, from locking the old content to naming the new one.
 * The functions are called in the order below. When one fails, place_item_take_back and
 * temp_drop clean up. For place_write.c only.
 */
#pragma once
#include "files/place_journal.h"
#include "files/place_temp.h"

#include <stdbool.h>

struct place_item {
	struct place_change *change;
	struct journal_row row;
	struct temp temp;
	int old_fd; /* locked */
	bool in_place;
};

/*
 * Set ERR to the failure CODE of a writer, with the assurance that nothing was lost.
 * Returns false.
 */
bool place_say_write(int code, const struct place *place, struct err *err);

/* Lock the old file and compare it. */
bool place_item_lock(struct place_item *item, struct err *err);
/*
 * Write the new content into a temporary file (NAMED or nameless) in the same folder, and
 * wait until it is on disk. False with errno.
 */
bool place_item_write(struct place_item *item, bool named);
/*
 * Before the file changes, write its old content and its new state to the log for undo.
 */
bool place_item_keep(const struct place_item *item, struct err *err);
/*
 * Give the temporary file the name that is in the journal. False: a nameless file can get
 * no name here.
 */
bool place_item_link(struct place_item *item);
/*
 * Put the new content in place. Unless ALONE, the old content is kept, so that
 * place_item_take_back can restore it.
 */
bool place_item_put(struct place_item *item, bool alone, struct err *err);
/* Undo place_item_put. A file that somebody else has put there since stays. */
void place_item_take_back(struct place_item *item);
