/*
 * undo_log: one step of a run as bytes: what its files held before and after. A log is a file
 * that the front makes in the user's state folder and hands to one worker, open; the worker
 * appends to it. What a call replaces is in the log before it is replaced, so that a process
 * killed at any moment leaves a log that tells the truth.
 *
 * A log is a row of chunks: UNDO_META first (JSON, the front's), then contents (UNDO_DATA) and
 * changes (UNDO_CHANGE: a path, what it held, what it holds), at last UNDO_END. What is read
 * back is foreign: lengths, kinds and paths are checked, and nothing larger than a ceiling is
 * taken. How a state is written, here and in the list of a workspace, is undo_state.h.
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
	/* largest content kept; files over it are told and left alone */
	UNDO_CONTENT_MAX = 1 << 30,
	UNDO_CHANGES_MAX = 2000000, /* of one step: a removed tree of that many files */
	UNDO_CHUNK_HEADER = 16,     /* tag, zero, length */
};

enum undo_tag {
	UNDO_META = 0x4d554247, /* "GBUM" */
	UNDO_DATA = 0x44554247,
	UNDO_CHANGE = 0x43554247,
	UNDO_END = 0x45554247,
};

/* A log being written; FD is borrowed. It begins where the file ends now. */
struct undo_log {
	int fd;
	uint32_t number;
	uint64_t at; /* the end */
	struct err trouble;
};

void undo_log_begin(struct undo_log *log, int fd, uint32_t number);
bool undo_log_meta(struct undo_log *log, struct str json, struct err *err);
/* A content that is in memory; STATE learns where it lies, its size and digest. */
bool undo_log_data(struct undo_log *log, struct str content, struct undo_state *state,
		   struct err *err);
/*
 * The content and the extended attributes of the regular file FILE, shared with it where the
 * file system can (reflink), copied else; at most MAX bytes (EFBIG).
 */
bool undo_log_file(struct undo_log *log, int file, uint64_t max, struct undo_state *state,
		   struct err *err);
/* Size and digest alone, of a file that is kept by somebody else. */
bool undo_state_hash(int file, struct undo_state *state, struct err *err);
void undo_state_hash_text(struct str content, struct undo_state *state);
/*
 * The content at OFFSET of another log FROM, with its attributes, as KEPT has them; STATE
 * learns where it lies now.
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
	bool ended;     /* found: UNDO_END came */
	uint64_t sound; /* found: so far the log holds together */
	size_t changes;
};

/*
 * Read FD from its beginning. A log that is cut short (its writer was killed) is read as far as
 * it is whole; one that does not hold together is an error.
 */
bool undo_log_read(struct undo_reader *reader, int fd, struct err *err);

/* Append SIZE bytes at OFFSET of the log FD to OUT. */
bool undo_log_content(int fd, uint64_t offset, uint64_t size, struct buf *out,
		      struct err *err);
