/*
 * record: one step of a run as bytes: the states of its files before and after. A log
 * is a file that the front makes in the user's state folder and hands to one worker,
 * open; the worker appends to it. The worker logs a file before it replaces the file,
 * so that a process killed at any moment leaves a log that tells the truth.
 *
 * A log is a row of chunks: UNDO_META first (JSON, the front's), then contents
 * (UNDO_DATA) and changes (UNDO_CHANGE: a path, what it held, what it holds), and at
 * last UNDO_END. A log that is read back is not trusted: lengths, kinds and paths are
 * checked, and nothing larger than a ceiling is accepted. Each chunk has a sum, so that a
 * reader notices a wrong byte; 0 is the sum of a chunk of an earlier version. The list of a
 * workspace (undo/list.h) keeps states as the same bytes.
 *
 * A log is also the record of a killed writer. Between the changes stand notes
 * (UNDO_NOTE): the temporary names that a write is about to use, the beginning of a set
 * of changes that are made together or not at all, the end of the write. A log in which
 * a write has no end is unfinished, and place_put_back (place.h) works it off. A write
 * has its own end, beside that of the log, for two reasons: a power failure may take the
 * end of a log whose call was answered long ago, and an undo that was killed is
 * continued, not taken back.
 *
 * While the names of a set are exchanged, a temporary name may be the only one of an old
 * content. A log that has lost its end to a damaged disk then looks like that of a write
 * which was not begun. Therefore the permissions of the log bear marks, which no damage to
 * its bytes can remove. A log whose mark says that names are exchanged, and which does not
 * hold the whole set, is damaged, and nobody may remove anything because of it. While the
 * mark is another one, nothing has to be put back.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/*
 * The state of one path at one moment, and the place of its content. Logs and the list
 * of a workspace (undo/list.h) consist of states. States that are read back are not
 * trusted but checked.
 */

enum undo_kind {
	UNDO_ABSENT,
	UNDO_FILE,
	UNDO_LINK,
	UNDO_FOLDER,
	/* only in a list: rules ignore the path, and nothing but its name is known */
	UNDO_IGNORED,
};

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
bool record_is_gits(struct str path);
/* git rewrites its index even when somebody only asks for the status. */
#define UNDO_GIT_INDEX UNDO_GIT "/index"

/* The place where the content of a file or link is kept. */
enum undo_source {
	UNDO_NOWHERE, /* not kept: over the ceilings */
	UNDO_LOGGED,  /* in the log of the number `log`, at `offset` */
	/* the repository's object `object` holds what a checkout would write */
	UNDO_IN_GIT,
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
bool record_path_is_sound(struct str path);

/* Kind, permissions and times of ST; the content is nowhere yet. */
void undo_state_of(const struct stat *st, struct undo_state *state);
extern const struct undo_state undo_absent;

enum {
	UNDO_META_MAX = 16 << 10,
	/* largest content kept; larger files are reported and not undone */
	UNDO_CONTENT_MAX = 1 << 30,
	/* of one step, e.g. a removed tree of that many files */
	UNDO_CHANGES_MAX = 2000000,
	/*
	 * A log that a dead session left is read by nobody's order, so it must not take
	 * long. A changed file makes four chunks in an undo, and fewer elsewhere.
	 */
	UNDO_CHUNKS_MAX = 8 * UNDO_CHANGES_MAX,
	UNDO_CHUNK_HEADER = 16, /* tag, sum, length */
};

/* A log being written. FD is borrowed; writing starts at the present end of the file. */
struct undo_log {
	int fd;
	uint32_t number;
	bool marked; /* its permissions bear a mark */
	uint64_t at; /* the end */
	struct err trouble;
};

void undo_log_begin(struct undo_log *log, int fd, uint32_t number);
/*
 * Forget what was appended to LOG (or NULL) from FROM on. All files that it tells of must be
 * as before, because its mark goes first. LOG->at is FROM when that was done. Keeps errno.
 */
void undo_log_cut(struct undo_log *log, uint64_t from);
bool undo_log_meta(struct undo_log *log, struct str json, struct err *err);
/* Append a content from memory. STATE gets its offset, size and digest. */
bool undo_log_data(struct undo_log *log, struct str content, struct undo_state *state,
		   struct err *err);
/*
 * Append the content and the extended attributes of the regular file FILE, at most MAX
 * bytes (EFBIG). Large files share their blocks with the log where the file system can do
 * that (reflink); others are copied.
 */
bool undo_log_file(struct undo_log *log, int file, uint64_t max, struct undo_state *state,
		   struct err *err);
/* Set only size and digest of STATE, for a file that is kept elsewhere. */
bool undo_state_hash(int file, struct undo_state *state, struct err *err);
/*
 * As undo_state_hash, for a file of the size that STATE says: TEXT gets all of it. False: it has
 * no room there, or has another size now; STATE is unchanged.
 */
bool undo_state_hash_small(int file, struct undo_state *state, struct buf *text);
void undo_state_hash_text(struct str content, struct undo_state *state);
/*
 * Copy the content that KEPT describes, with its attributes, from another log FROM. STATE
 * becomes KEPT with the new place.
 */
bool undo_log_copy(struct undo_log *log, int from, const struct undo_state *kept,
		   struct undo_state *state, struct err *err);
bool undo_log_change(struct undo_log *log, struct str path, const struct undo_state *before,
		     const struct undo_state *after, struct err *err);
bool undo_log_end(struct undo_log *log, struct err *err);

enum undo_note_kind {
	/* the folder PATH is made next, for a file that is written in it */
	UNDO_NOTE_MAKES,
	/*
	 * The file PATH is written next. Until UNDO_NOTE_OVER, its folder may hold files
	 * called TEMP and KEEP.
	 */
	UNDO_NOTE_TEMPS,
	/*
	 * the changes between the last UNDO_NOTE_OVER and the next one are one set;
	 * undo_log_note adds S_ISVTX to MODE when the log bears marks
	 */
	UNDO_NOTE_SET,
	/* every change of the set is in place and on disk; the log gets its next mark */
	UNDO_NOTE_STANDS,
	/* the write is over, and its temporary names are gone; the log loses the mark */
	UNDO_NOTE_OVER,
	/* the folder PATH is open to its owner for a while, and gets MODE in the end */
	UNDO_NOTE_OPENED,
	/* every folder that was opened has its permissions */
	UNDO_NOTE_CLOSED,
	/* the log holds the whole set, whose names are exchanged next; it gets the mark */
	UNDO_NOTE_PUTS,
};

enum {
	UNDO_TEMP_NAME = 40,
	/* rows of one write, and folders opened at one time; see place_put_back */
	UNDO_NOTES_MAX = 1 << 16,
};

struct undo_note {
	enum undo_note_kind kind;
	mode_t mode;
	char temp[UNDO_TEMP_NAME], keep[UNDO_TEMP_NAME]; /* "": unused */
	struct str path; /* absolute; read back, it ends in NUL and is valid for the call */
};
/* LOG may be NULL: nothing is noted then. */
bool undo_log_note(struct undo_log *log, const struct undo_note *note, struct err *err);
/* Note KIND, which needs no more. */
static inline bool undo_log_say(struct undo_log *log, enum undo_note_kind kind,
				struct err *err)
{
	const struct undo_note note = {.kind = kind};

	return undo_log_note(log, &note, err);
}

struct undo_change {
	struct str path; /* ends in NUL; valid during the call */
	struct undo_state before, after;
};

struct undo_reader {
	/* false stops the reading */
	bool (*meta)(void *context, struct str json);                    /* or NULL */
	bool (*change)(void *context, const struct undo_change *change); /* or NULL */
	bool (*note)(void *context, const struct undo_note *note);       /* or NULL */
	void *context;
	bool ended;      /* result: UNDO_END was read */
	bool unfinished; /* result: a write has no end, or a folder is still opened */
	/* result: the log has the mark of a set, but not the whole set; also `unfinished` */
	bool damaged;
	/*
	 * result: no name of the last set was exchanged, or they all were, and the set is over
	 */
	bool unmoved;
	uint64_t sound; /* result: the log is sound up to this offset */
	uint64_t over;  /* result: where the last write that is over ends */
	size_t changes;
};

/* The ERR.code of a log with a wrong chunk; with any other code it could not be read. */
#define UNDO_UNSOUND EINVAL
/*
 * Read FD from its beginning. A log that is cut short (its writer was killed) is read up
 * to its last whole chunk. A log with a wrong chunk is an error.
 */
bool undo_log_read(struct undo_reader *reader, int fd, struct err *err);
/*
 * Has a write in the log FD (or -1) no end, as far as the log holds together? A log that
 * cannot be read may have such a write.
 */
static inline bool undo_log_is_unfinished(int fd)
{
	struct undo_reader reader = {0};
	struct err err = {0};

	return fd >= 0 && ((!undo_log_read(&reader, fd, &err) && err.code != UNDO_UNSOUND) ||
			   reader.unfinished);
}

/* Append SIZE bytes at OFFSET of the log FD to OUT. */
bool undo_log_content(int fd, uint64_t offset, uint64_t size, struct buf *out,
		      struct err *err);
