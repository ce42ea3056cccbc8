/*
 * undo_state: states as bytes, comparing them, and making them from a status; see
 * undo_state.h.
 */
#include "files/undo_state.h"
#include "files/undo_log_parts.h"

#include "base/clock.h"

#include <limits.h>
#include <string.h>

const struct undo_state undo_absent = {.kind = UNDO_ABSENT};

enum {
	AT_KIND = 0,
	AT_SOURCE = 1,
	AT_HASHED = 2,
	AT_OBJECT_SIZE = 3,
	AT_MODE = 4,
	AT_LOG = 8,
	AT_EXTRA = 12,
	AT_SIZE = 16,
	AT_OFFSET = 24,
	AT_INODE = 32,
	AT_MTIME = 40,
	AT_CTIME = 48,
	AT_DIGEST = 56,
	AT_OBJECT = AT_DIGEST + UNDO_DIGEST,
	AT_RESERVED = AT_OBJECT + UNDO_OBJECT,
};
_Static_assert((int)AT_RESERVED <= (int)UNDO_STATE_BYTES, "a state has room for all");

void undo_state_print(const struct undo_state *state, struct buf *out)
{
	char bytes[UNDO_STATE_BYTES] = {0};

	bytes[AT_KIND] = (char)state->kind;
	bytes[AT_SOURCE] = (char)state->source;
	bytes[AT_HASHED] = (char)state->hashed;
	bytes[AT_OBJECT_SIZE] = (char)state->object_size;
	undo_put(bytes + AT_MODE, state->mode, 4);
	undo_put(bytes + AT_LOG, state->log, 4);
	undo_put(bytes + AT_EXTRA, state->extra, 4);
	undo_put(bytes + AT_SIZE, state->size, 8);
	undo_put(bytes + AT_OFFSET, state->offset, 8);
	undo_put(bytes + AT_INODE, state->inode, 8);
	undo_put(bytes + AT_MTIME, (uint64_t)state->mtime_ns, 8);
	undo_put(bytes + AT_CTIME, (uint64_t)state->ctime_ns, 8);
	memcpy(bytes + AT_DIGEST, state->digest, UNDO_DIGEST);
	memcpy(bytes + AT_OBJECT, state->object, UNDO_OBJECT);
	(void)buf_add(out, bytes, sizeof(bytes));
}

bool undo_state_parse(const char *bytes, struct undo_state *state)
{
	struct undo_state read = {
		.kind = (enum undo_kind)(unsigned char)bytes[AT_KIND],
		.source = (enum undo_source)(unsigned char)bytes[AT_SOURCE],
		.hashed = bytes[AT_HASHED] == 1,
		.object_size = (uint8_t)bytes[AT_OBJECT_SIZE],
		.mode = (mode_t)undo_get(bytes + AT_MODE, 4),
		.log = (uint32_t)undo_get(bytes + AT_LOG, 4),
		.extra = (uint32_t)undo_get(bytes + AT_EXTRA, 4),
		.size = undo_get(bytes + AT_SIZE, 8),
		.offset = undo_get(bytes + AT_OFFSET, 8),
		.inode = undo_get(bytes + AT_INODE, 8),
		.mtime_ns = (int64_t)undo_get(bytes + AT_MTIME, 8),
		.ctime_ns = (int64_t)undo_get(bytes + AT_CTIME, 8),
	};

	if (read.kind > UNDO_FOLDER || read.source > UNDO_LINKED ||
	    (unsigned char)bytes[AT_HASHED] > 1 || read.mode > 07777 ||
	    read.extra > UNDO_EXTRA_MAX || read.size > INT64_MAX || read.offset > INT64_MAX ||
	    (read.object_size != 0 && read.object_size != 20 && read.object_size != 32) ||
	    (read.source == UNDO_IN_GIT && read.object_size == 0))
		return false;
	memcpy(read.digest, bytes + AT_DIGEST, UNDO_DIGEST);
	memcpy(read.object, bytes + AT_OBJECT, UNDO_OBJECT);
	*state = read;
	return true;
}

bool undo_state_same(const struct undo_state *a, const struct undo_state *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == UNDO_ABSENT)
		return true;
	/*
	 * A new folder is logged before its permissions are known, as 0. So 0 matches
	 * any.
	 */
	if (a->kind == UNDO_FOLDER)
		return a->mode == b->mode || a->mode == 0 || b->mode == 0;
	if (a->kind == UNDO_FILE && a->mode != b->mode)
		return false;
	if (a->size != b->size)
		return false;
	if (a->hashed && b->hashed)
		return memcmp(a->digest, b->digest, UNDO_DIGEST) == 0;
	return a->object_size != 0 && a->object_size == b->object_size &&
	       memcmp(a->object, b->object, a->object_size) == 0;
}

bool undo_is_gits(struct str path)
{
	return str_is(path, UNDO_GIT) || str_starts(path, STR(UNDO_GIT "/"));
}

bool undo_path_is_sound(struct str path)
{
	size_t at = path.size > 0 && path.data[0] == '/';

	if (path.size == 0 || path.size >= PATH_MAX ||
	    memchr(path.data, '\0', path.size) != NULL)
		return false;
	for (;;) {
		size_t slash = str_find(path, STR("/"), at);
		size_t end = slash == (size_t)-1 ? path.size : slash;
		struct str name = str_part(path, at, end - at);

		if (name.size == 0 || name.size > NAME_MAX || str_is(name, ".") ||
		    str_is(name, ".."))
			return false;
		if (end == path.size)
			return true;
		at = end + 1;
	}
}

void undo_state_of(const struct stat *st, struct undo_state *state)
{
	*state = (struct undo_state){
		.kind = S_ISREG(st->st_mode)   ? UNDO_FILE
			: S_ISLNK(st->st_mode) ? UNDO_LINK
			: S_ISDIR(st->st_mode) ? UNDO_FOLDER
					       : UNDO_ABSENT,
		.mode = st->st_mode & 07777,
		.size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
		.inode = st->st_ino,
		.mtime_ns = clock_ns(&st->st_mtim),
		.ctime_ns = clock_ns(&st->st_ctim),
	};
}
