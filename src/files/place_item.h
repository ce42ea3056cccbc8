/*
 * place_item: one file of a write, from the lock of the old content to the name of the new one.
 * Steps in their order; what is left when one fails, place_item_take_back and temp_drop take
 * away. For place_write.c only.
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

/* A writer's failure, said so that the reader knows that nothing was lost. False. */
bool place_say_write(int code, const struct place *place, struct err *err);

/* Lock the old file and compare it. */
bool place_item_lock(struct place_item *item, struct err *err);
/*
 * Write the new content beside the old one, NAMED or nameless, and wait until the disk has it.
 * False with errno.
 */
bool place_item_write(struct place_item *item, bool named);
/* What is at the place is kept for undo, and what will be is said, before it happens. */
bool place_item_keep(const struct place_item *item, struct err *err);
/*
 * From here on a name of ours stands in the folder, and the journal knows it. False: a nameless
 * file can get no name here.
 */
bool place_item_link(struct place_item *item);
/* Put the new content in place. Not ALONE: so that it can be taken back. */
bool place_item_put(struct place_item *item, bool alone, struct err *err);
/* Undo place_item_put. What somebody has put there since is his. */
void place_item_take_back(struct place_item *item);
