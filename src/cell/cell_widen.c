/*
 * cell_widen: sends the folders that are additionally allowed to the anchor and its
 * workers.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "cell/cell_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Send the request KIND with ADDITION and its trees. */
static bool request_send(struct cell *cell, char kind, struct cell_spec *addition,
			 struct err *err)
{
	int fds[ANCHOR_REQUEST_FDS] = {-1};
	auto_close int file = -1;
	size_t count = 1, trees = 0;
	struct buf text;

	if (cell_broken(cell) != NULL)
		return err_set(err, ECHILD, "%s", cell_broken(cell));
	for (size_t i = 0; i < addition->view.count; i++)
		trees += addition->view.entries[i].fd >= 0;
	if (trees > ANCHOR_EXTRAS_MAX)
		return err_set(err, E2BIG, "more than %d folders at once",
			       ANCHOR_EXTRAS_MAX);
	/* The entries refer to their trees by position in the message. */
	for (size_t i = 0; i < addition->view.count; i++) {
		struct view_entry *entry = &addition->view.entries[i];

		if (entry->fd < 0)
			continue;
		fds[count] = entry->fd;
		entry->fd = (int)count++ - 1;
	}
	buf_init(&text, SPEC_BYTES_MAX);
	bool ok = spec_print(addition, &text) ||
		  err_set(err, E2BIG, "what is to be protected is over %d bytes",
			  SPEC_BYTES_MAX);
	for (size_t i = 0; i < addition->view.count; i++) {
		struct view_entry *entry = &addition->view.entries[i];

		if (entry->fd >= 0)
			entry->fd = fds[1 + entry->fd];
	}
	ok = ok && fd_memory_file("glovebox-addition", buf_str(&text), &file, err);
	buf_fini(&text);
	fds[0] = file;
	return ok &&
	       (message_send(cell->control, &kind, 1, fds, count, 0) ||
		err_set(err, errno, "telling the cell's anchor: %s", strerror(errno)));
}

bool cell_ask_widened(struct cell *cell, uint64_t call, struct cell_spec *addition,
		      struct err *err)
{
	if (!request_send(cell, WORKER_WIDENED, addition, err))
		return false;
	cell->widening = memory_grow(cell->widening, cell->widening_count + 1,
				     sizeof(cell->widening[0]));
	cell->widening[cell->widening_count++] = call;
	return true;
}

void cell_add_widened(struct cell *cell, const int fds[ANCHOR_FDS])
{
	const uint64_t call = cell->widening_count > 0 ? cell->widening[0] : 0;

	if (cell->widening_count > 0)
		memmove(cell->widening, cell->widening + 1,
			--cell->widening_count * sizeof(cell->widening[0]));
	cell_add_worker(cell, fds, WORKER_WIDENED);
	cell->workers->of_call = call;
	if (call == 0)
		cell_free_worker(cell->workers);
}

static struct worker_end *find(struct cell *cell, uint64_t call)
{
	struct worker_end *at = cell->workers;

	while (at != NULL && (at->of_call != call || at->state >= WORKER_BUSY))
		at = at->next;
	return at;
}

struct worker_end *cell_take_widened(struct cell *cell, uint64_t call)
{
	struct worker_end *found = find(cell, call);

	if (found != NULL)
		found->state = WORKER_BUSY;
	return found;
}

void cell_forget_widened(struct cell *cell, uint64_t call)
{
	struct worker_end *found = find(cell, call);

	if (found != NULL)
		cell_free_worker(found);
	for (size_t i = 0; i < cell->widening_count; i++) {
		if (cell->widening[i] == call)
			cell->widening[i] = 0;
	}
}

bool cell_widen(struct cell *cell, struct cell_spec *addition, struct err *err)
{
	return request_send(cell, ANCHOR_WIDEN, addition, err);
}

void cell_set_widened(struct cell *cell, const struct cell_spec *addition)
{
	spec_widen(&cell->spec, addition);
	for (struct worker_end *at = cell->workers; at != NULL;) {
		struct worker_end *next = at->next;

		at->stale = at->of_call == 0;
		if (at->stale && at->state < WORKER_BUSY)
			cell_free_worker(at);
		at = next;
	}
	cell_refill(cell);
}
