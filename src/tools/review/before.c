/* before: reads the log of a layer, and asks git for contents that lie there. */

#include "tools/review/before.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "files/overlay.h"
#include "tools/review/merge.h"

#include <errno.h>
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
	uint64_t sound; /* the log holds whole chunks up to here; 0: it is not written to */
	bool undone;    /* a landing of the layer was undone */
	struct before_row *rows; /* in order of path, and of the log */
	size_t count;
	struct arena paths;
};

static bool take_change(void *context, const struct undo_change *change)
{
	struct before *before = context;

	before->rows = memory_more(before->rows, before->count, sizeof(*before->rows));
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

bool before_read(int log, bool undone, struct before **out, struct err *err)
{
	struct before *before = memory_alloc(sizeof(*before));
	struct undo_reader reader = {.change = take_change, .context = before};

	*before = (struct before){.log = log, .undone = undone};
	arena_init(&before->paths);
	*out = before;
	/* A log with a wrong chunk tells of nothing: what it says may be wrong elsewhere. */
	if (!undo_log_read(&reader, log, err)) {
		before->count = 0;
		return false;
	}
	before->sound = reader.sound;
	if (before->count > 0)
		qsort(before->rows, before->count, sizeof(*before->rows), compare_rows);
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

const struct undo_state *before_find(const struct before *before, const char *path,
				     const struct undo_state *below)
{
	const struct before_row *first =
		before->count > 0 ? bsearch(path, before->rows, before->count,
					    sizeof(*before->rows), compare_path)
				  : NULL;
	const struct before_row *last = first;

	if (first == NULL)
		return NULL;
	while (first > before->rows && strcmp(first[-1].path, path) == 0)
		first--;
	while (last + 1 < before->rows + before->count && strcmp(last[1].path, path) == 0)
		last++;
	if (!before->undone)
		return &last->state;
	/* Which landing of this path was undone shows only in what is BELOW. */
	while (last > first && !undo_state_same(&last->state, below))
		last--;
	return &last->state;
}

bool before_log(const struct before *before, struct undo_log *log)
{
	/* A killed worker may have left bytes behind the last whole chunk. */
	if (before->sound == 0 || ftruncate(before->log, (off_t)before->sound) < 0)
		return false;
	undo_log_begin(log, before->log, 1);
	return true;
}

bool before_note(struct undo_log *log, const char *path, int file,
		 const struct undo_state *landed)
{
	struct undo_state state = *landed, after = *landed;
	const uint64_t begin = log->at;
	struct err err;

	state.source = after.source = UNDO_NOWHERE;
	/* Without a content no text can be merged; a large file is none. */
	if (state.kind == UNDO_FILE && file >= 0 &&
	    !undo_log_file(log, file, OVERLAY_TEXT_MAX, &state, &err) && err.code != EFBIG) {
		undo_log_cut(log, begin);
		return false;
	}
	if (undo_log_change(log, str_of(path), &state, &after, &err))
		return true;
	undo_log_cut(log, begin);
	return false;
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
