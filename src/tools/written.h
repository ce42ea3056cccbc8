/*
 * written: what write_file and edit_file share: the old content of the file, the guard
 * against overwriting what was not read, and the report of a change.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "files/files.h"
#include "tool/call.h"

#include <stdbool.h>

/* Most bytes of a diff in details: enough for people, bounded for fronts. */
enum { WRITTEN_DIFF_MAX = 256 << 10, WRITTEN_FILE_MAX = 64 << 20 };

struct written {
	struct call *call;
	struct tool_result *result;
	const char *path; /* as given */
	struct place place;
	struct buf real; /* the path in the view */
	struct buf old;
	struct stat st;
	char mark[FILES_MARK];       /* of the old content */
	bool changed_since_read;     /* this session has read another content */
	char new_hash[HASH_HEX + 1]; /* of what was reported as written; empty before */
};

void written_init(struct written *written, struct call *call, struct tool_result *result);
void written_fini(struct written *written);

/*
 * May CALL bring BYTES of new text? False with the sentence in RESULT, which names the limit.
 */
bool written_fits(const struct call *call, size_t bytes, struct tool_result *result);

/* Read the old content (the place exists) and its mark. */
bool written_read_old(struct written *written, struct err *err);

/*
 * The argument expected_hash, when given, must name the old content. False with the
 * sentence in RESULT, which names the hash that would be right.
 */
bool written_check_hash(struct written *written);

/* Put CONTENT in the place of the old content, which must still be there (place_write). */
bool written_replace(struct written *written, struct str content, struct err *err);

/* Append where it was written: the path, and where a link led. */
void written_add_path(const struct written *written, struct buf *out);

/*
 * The report of a change that was made: diffstat in the text after what is there already,
 * diff, hash and counts in details; the old content is kept for the patch of the session.
 */
void written_report(struct written *written, struct str content, bool created);
/* The same with the facts in INTO, for tools that change several files. */
enum written_kind { WRITTEN_CHANGED, WRITTEN_CREATED, WRITTEN_REMOVED };
void written_report_into(struct written *written, struct str content,
			 enum written_kind kind, struct value *into);

/* The mark of what is at the place now. */
void written_new_mark(const struct written *written, struct str content,
		      char mark[FILES_MARK]);

/* FAILED (of what is protected: DENIED) with ERR's sentence and what to do about it. */
enum result_status written_fail(struct written *written, const struct err *err);
