/* before: reads the log of a layer, and asks git for contents that lie there. */

#include "tools/review/before.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "tools/review/merge.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct before_row {
	const char *path;
	size_t order;
	struct undo_state state;
};

struct before {
	int log;
	struct before_row *rows; /* in order of path, one for each */
	size_t count, room;
	struct arena paths;
};

static bool take_change(void *context, const struct undo_change *change)
{
	struct before *before = context;

	if (before->count == before->room) {
		before->room = before->room > 0 ? 2 * before->room : 64;
		before->rows =
			memory_grow(before->rows, before->room, sizeof(*before->rows));
	}
	before->rows[before->count] =
		(struct before_row){.path = arena_copy(&before->paths, change->path),
				    .order = before->count,
				    .state = change->before};
	before->count++;
	return true;
}

static int compare_rows(const void *a, const void *b)
{
	const struct before_row *one = a, *other = b;
	const int order = strcmp(one->path, other->path);

	return order != 0 ? order : one->order < other->order ? -1 : 1;
}

bool before_read(int log, struct before **out, struct err *err)
{
	struct before *before = memory_alloc(sizeof(*before));
	struct undo_reader reader = {.change = take_change, .context = before};
	size_t kept = 0;

	*before = (struct before){.log = log};
	arena_init(&before->paths);
	*out = before;
	/* A log with a wrong chunk tells of nothing: what it says may be wrong elsewhere. */
	if (!undo_log_read(&reader, log, err)) {
		before->count = 0;
		return false;
	}
	if (before->count > 0)
		qsort(before->rows, before->count, sizeof(*before->rows), compare_rows);
	for (size_t i = 0; i < before->count; i++) {
		if (kept == 0 ||
		    strcmp(before->rows[kept - 1].path, before->rows[i].path) != 0)
			before->rows[kept++] = before->rows[i];
	}
	before->count = kept;
	return true;
}

void before_free(struct before *before)
{
	if (before == NULL)
		return;
	free(before->rows);
	arena_fini(&before->paths);
	free(before);
}

static int compare_path(const void *path, const void *row)
{
	return strcmp(path, ((const struct before_row *)row)->path);
}

const struct undo_state *before_find(const struct before *before, const char *path)
{
	const struct before_row *row =
		before->count > 0 ? bsearch(path, before->rows, before->count,
					    sizeof(*before->rows), compare_path)
				  : NULL;

	return row != NULL ? &row->state : NULL;
}

/* Has TEXT the digest of STATE, or the name of its object? */
static bool is_content(const struct undo_state *state, struct str text)
{
	uint8_t digest[HASH_BYTES];

	if (state->hashed) {
		hash_bytes(text, digest);
		return memcmp(digest, state->digest, sizeof(digest)) == 0;
	}
	hash_git_blob(text, state->object_size == HASH_BYTES, digest);
	return state->object_size > 0 &&
	       memcmp(digest, state->object, state->object_size) == 0;
}

static bool ask_git(struct call *call, const struct undo_state *state, struct buf *out)
{
	char name[2 * UNDO_OBJECT + 1] = "";

	for (size_t i = 0; i < state->object_size; i++)
		(void)snprintf(name + 2 * i, 3, "%02x", state->object[i]);
	const char *const words[] = {"--no-replace-objects", "cat-file", "blob", name, NULL};
	return merge_git(call, call->workspace, words, NULL, out) == 0;
}

bool before_content(const struct before *before, struct call *call,
		    const struct undo_state *state, struct buf *out)
{
	const size_t from = out->size;
	bool fine = false;

	if (state->kind != UNDO_FILE)
		return false;
	if (state->source == UNDO_LOGGED)
		fine = undo_log_content(before->log, state->offset, state->size, out, NULL);
	else if (state->object_size > 0)
		fine = ask_git(call, state, out);
	return fine && is_content(state, str_part(buf_str(out), from, out->size - from));
}
