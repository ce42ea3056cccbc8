/*
 * undo_state: the state of one path at one moment, and the place of its content. Logs
 * (undo_log.h) and the list of a workspace (undo_list.h) consist of states. States that
 * are read back are not trusted but checked.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

enum undo_kind { UNDO_ABSENT, UNDO_FILE, UNDO_LINK, UNDO_FOLDER };

/*
 * Did only a folder change (made, removed or other permissions)? Git knows no folders,
 * only the files in them.
 */
static inline bool undo_is_of_folders(enum undo_kind before, enum undo_kind after)
{
	return (before == UNDO_FOLDER && (after == UNDO_FOLDER || after == UNDO_ABSENT)) ||
	       (before == UNDO_ABSENT && after == UNDO_FOLDER);
}

/* The repository of the workspace: its folder, or the file or link that leads to it. */
#define UNDO_GIT ".git"
/* Is PATH the repository, or in it? */
bool undo_is_gits(struct str path);
/* git rewrites its index even when somebody only asks for the status. */
#define UNDO_GIT_INDEX UNDO_GIT "/index"

/* Where the content of a file or link is kept. */
enum undo_source {
	UNDO_NOWHERE, /* not kept: over the ceilings */
	UNDO_LOGGED,  /* in the log of the number `log`, at `offset` */
	UNDO_IN_GIT, /* the repository's object `object` holds what a checkout would write */
	UNDO_LINKED, /* a file of .git/objects, kept by a link in the store */
};

enum {
	UNDO_DIGEST = 32, /* SHA-256 */
	UNDO_OBJECT = 32, /* a git object's name, at most */
	/* extended attributes of one file, as they are kept */
	UNDO_EXTRA_MAX = 64 << 10,
};

struct undo_state {
	enum undo_kind kind;
	enum undo_source source;
	mode_t mode;     /* the permission bits */
	uint64_t size;   /* of the content */
	uint32_t log;    /* UNDO_LOGGED */
	uint32_t extra;  /* bytes of attributes right behind the content */
	uint64_t offset; /* UNDO_LOGGED */
	bool hashed;     /* `digest` is that of the content */
	uint8_t digest[UNDO_DIGEST];
	uint8_t object_size; /* 20 or 32 when `object` is set */
	uint8_t object[UNDO_OBJECT];
	/*
	 * a list recognises an unchanged file by these three; 0 in `inode`: they are not
	 * set
	 */
	uint64_t inode;
	int64_t mtime_ns, ctime_ns;
};

/* A written state; all have the same length. */
enum { UNDO_STATE_BYTES = 136 };
void undo_state_print(const struct undo_state *state, struct buf *out);
/* BYTES holds UNDO_STATE_BYTES bytes. False: they are no valid state. */
bool undo_state_parse(const char *bytes, struct undo_state *state);

/* Do A and B have the same kind, permissions and content? Times do not count. */
bool undo_state_same(const struct undo_state *a, const struct undo_state *b);

/* Relative to the workspace or absolute, and normal: no "..", no empty name? */
bool undo_path_is_sound(struct str path);

/* Kind, permissions and times of ST; the content is nowhere yet. */
void undo_state_of(const struct stat *st, struct undo_state *state);
extern const struct undo_state undo_absent;
