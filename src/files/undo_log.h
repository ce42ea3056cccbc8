/*
 * undo_log: one step of a run as bytes: the states of its files before and after. A log
 * is a file that the front makes in the user's state folder and hands to one worker,
 * open; the worker appends to it. The worker logs a file before it replaces the file, so
 * that a process killed at any moment leaves a log that tells the truth.
 *
 * A log is a row of chunks: UNDO_META first (JSON, the front's), then contents
 * (UNDO_DATA) and changes (UNDO_CHANGE: a path, what it held, what it holds), and at last
 * UNDO_END. A log that is read back is not trusted: lengths, kinds and paths are checked,
 * and nothing larger than a ceiling is accepted. undo_state.h describes the bytes of a
 * state, here and in the list of a workspace.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "files/undo_state.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	UNDO_META_MAX = 16 << 10,
	/* largest content kept; larger files are reported and not undone */
	UNDO_CONTENT_MAX = 1 << 30,
	/* of one step, e.g. a removed tree of that many files */
	UNDO_CHANGES_MAX = 2000000,
	UNDO_CHUNK_HEADER = 16, /* tag, zero, length */
};

enum undo_tag {
	UNDO_META = 0x4d554247, /* "GBUM" */
	UNDO_DATA = 0x44554247,
	UNDO_CHANGE = 0x43554247,
	UNDO_END = 0x45554247,
};

/* A log being written. FD is borrowed; writing starts at the present end of the file. */
struct undo_log {
	int fd;
	uint32_t number;
	uint64_t at; /* the end */
	struct err trouble;
};

void undo_log_begin(struct undo_log *log, int fd, uint32_t number);
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

struct undo_change {
	struct str path; /* ends in NUL; valid during the call */
	struct undo_state before, after;
};

struct undo_reader {
	/* false stops the reading */
	bool (*meta)(void *context, struct str json);                    /* or NULL */
	bool (*change)(void *context, const struct undo_change *change); /* or NULL */
	void *context;
	bool ended;     /* result: UNDO_END was read */
	uint64_t sound; /* result: the log is sound up to this offset */
	size_t changes;
};

/*
 * Read FD from its beginning. A log that is cut short (its writer was killed) is read up
 * to its last whole chunk. A log with a wrong chunk is an error.
 */
bool undo_log_read(struct undo_reader *reader, int fd, struct err *err);

/* Append SIZE bytes at OFFSET of the log FD to OUT. */
bool undo_log_content(int fd, uint64_t offset, uint64_t size, struct buf *out,
		      struct err *err);
