/*
 * read_parts: what the files of read_file share: how a file's lines are taken (read_lines.c), and
 * what is answered (read_file.c). Not for others.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "files/files.h"
#include "tool/call.h"
#include "tools/outline.h"
#include "tools/shown.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	READ_CHUNK = 256 << 10, /* of a large file at a time */
	/*
	 * Of a file that is hashed: it stays in the cache until it has been looked at, and the
	 * memory for it with the process.
	 */
	READ_PIECE = 64 << 10,
	/*
	 * Of an unfinished line each of its two ends: more than an answer shows of either, and
	 * the longest line costs no memory.
	 */
	READ_LINE_END = 64 << 10,
};

struct reading {
	struct call *call;
	struct tool_result *result;
	const char *path;
	struct file file;
	struct shown_kind kind;
	size_t start, end; /* lines wanted, 1-based, inclusive */
	size_t max_lines, max_bytes;
	size_t line; /* lines begun so far */
	size_t shown_first, shown_last;
	size_t first_cut;  /* number of the first line shown in part; 0: none is */
	uint64_t gap;      /* where in it the bytes are that are left out */
	size_t left_bytes; /* of the lines shown in part */
	size_t dropped;    /* bytes of the unfinished line that are not held … */
	size_t head;       /* … behind so many of its beginning */
	struct shown_ends ends;
	struct buf body;
	size_t taken; /* bytes of the file that BODY shows */
	bool full;    /* the answer's ceiling was met */
	bool ranged;  /* the call says which lines */
	bool begun; /* it is too large to be shown whole without that: its beginning is */
	struct outline *map; /* of what follows, while it is read; or NULL */
	size_t map_bytes;
	bool no_final_newline;
	bool not_utf8;
	bool streamed; /* too large to hold: line ends are known of what is shown only */
	bool total_known;
	char mark[FILES_MARK];
};

/* The state of a file that is hashed piece by piece, beside its lines. */
struct pieces {
	struct hash *hash;
	uint64_t size;
	char last; /* byte, of what was read */
};

/* The whole text is in memory: all lines are counted, those wanted shown. */
void read_text(struct reading *reading, struct str text);

/* All of a file, into CONTENT up to its ceiling. ERR names the file. */
bool read_whole(struct reading *reading, struct buf *content, struct err *err);
/* All of a file, of which only the lines wanted, and what is left of one, are ever held. */
bool read_pieces(struct reading *reading, struct pieces *pieces, struct err *err);
/* Lines of a large file, chunk by chunk, until the range is done. */
bool read_range(struct reading *reading, struct err *err);
