#include "tui/edit/changes.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void changes_init(struct changes *changes)
{
	*changes = (struct changes){0};
}

static struct change *newest(struct changes *changes)
{
	return &changes->items[(changes->first + changes->count - 1) % CHANGES_MAX];
}

static void forget(struct changes *changes, struct change *change)
{
	changes->bytes -= change->removed_size;
	free(change->removed);
	*change = (struct change){0};
	changes->count--;
}

static void forget_oldest(struct changes *changes)
{
	forget(changes, &changes->items[changes->first]);
	changes->first = (changes->first + 1) % CHANGES_MAX;
}

void changes_clear(struct changes *changes)
{
	while (changes->count > 0)
		forget_oldest(changes);
}

void changes_begin(struct changes *changes)
{
	changes->step++;
}

/* Typed text that follows the newest change in one step makes this change longer. */
static bool grows(struct changes *changes, size_t at, struct str removed)
{
	const struct change *last = changes->count > 0 ? newest(changes) : NULL;

	return last != NULL && last->step == changes->step && removed.size == 0 &&
	       last->removed_size == 0 && at == last->at + last->inserted;
}

void changes_note(struct changes *changes, size_t at, struct str removed, size_t inserted,
		  size_t cursor)
{
	if (removed.size == 0 && inserted == 0)
		return;
	if (grows(changes, at, removed)) {
		newest(changes)->inserted += inserted;
		return;
	}
	while (changes->count > 0 && (changes->count == CHANGES_MAX ||
				      changes->bytes + removed.size > CHANGES_BYTES_MAX))
		forget_oldest(changes);
	changes->count++;
	changes->bytes += removed.size;
	*newest(changes) = (struct change){
		.at = at,
		.inserted = inserted,
		.removed = removed.size > 0 ? memory_copy_str(removed) : NULL,
		.removed_size = removed.size,
		.cursor = cursor,
		.step = changes->step,
	};
}

static void put_back(const struct change *change, struct buf *text)
{
	const size_t behind = text->size - change->at - change->inserted;
	char *room;

	if (change->removed_size > change->inserted) {
		const size_t more = change->removed_size - change->inserted;

		/* There was room for it before. */
		room = buf_reserve(text, more);
		if (room == NULL)
			return;
		memmove(text->data + change->at + change->removed_size,
			text->data + change->at + change->inserted, behind);
		buf_commit(text, more);
	} else {
		buf_remove(text, change->at, change->inserted - change->removed_size);
	}
	if (change->removed_size > 0)
		memcpy(text->data + change->at, change->removed, change->removed_size);
}

bool changes_undo(struct changes *changes, struct buf *text, size_t *cursor)
{
	unsigned step;

	if (changes->count == 0)
		return false;
	step = newest(changes)->step;
	while (changes->count > 0 && newest(changes)->step == step) {
		put_back(newest(changes), text);
		*cursor = newest(changes)->cursor;
		forget(changes, newest(changes));
	}
	return true;
}
