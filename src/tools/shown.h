/*
 * shown: how the file tools show files to a model: what kind of text a content is, its
 * bytes made visible without losing any, and the sentences they share.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "files/files.h"
#include "tool/call.h"

#include <stdbool.h>
#include <stdint.h>

struct place;

/* A number that is a constant, as text in a description. */
#define SHOWN_TEXT(number)   #number
#define SHOWN_NUMBER(number) SHOWN_TEXT(number)

/*
 * A line of a file or of a command's output that is longer is shown in part: its beginning
 * and its end (text_add_line), with its length.
 */
#define SHOWN_LONG_LINE      2000
#define SHOWN_LONG_LINE_TEXT SHOWN_NUMBER(SHOWN_LONG_LINE)

struct shown_kind {
	bool binary;    /* NUL in the first 8 KiB or over 30 % control bytes there */
	bool utf8_mark; /* begins with the UTF-8 byte-order mark */
	bool utf16;     /* begins with one of UTF-16's */
	bool utf16_big;
};
/* Look at the first bytes of a file. */
struct shown_kind shown_kind(struct str start);

enum { SHOWN_MARK8 = 3, SHOWN_MARK16 = 2 }; /* sizes of the byte-order marks */

/* How the lines of a text end. A last line without an end counts for none. */
struct shown_ends {
	size_t lf, crlf;
};
void shown_count_ends(struct str text, struct shown_ends *ends);
/* The end that all lines have; SHOWN_END_NONE where they differ, or none has one. */
enum shown_end { SHOWN_END_NONE, SHOWN_END_LF, SHOWN_END_CRLF };
enum shown_end shown_end_of_all(const struct shown_ends *ends);
/* Give each line of TEXT the end WANTED, if that is one. Was anything to be done? */
bool shown_set_ends(struct buf *text, enum shown_end wanted);

/*
 * How a tool that writes is asked to leave the line ends of a new text alone: its parameter,
 * whether a call does so, and what an answer says (" NAME was given …") of an end that was set.
 */
#define SHOWN_ENDS_PARAM                                                                  \
	{                                                                                 \
		"line_ends", PARAM_CHOICE, false,                                         \
			"Of new text: the file's (file), or as it is given here (given)", \
			.choices = "file given", .initial = "\"file\""                    \
	}
bool shown_ends_are_given(const struct call *call);
void shown_add_ends_set(const char *name, enum shown_end end, struct buf *out);
/* Append "LF", "CRLF" or "mixed (3 CRLF, 10 LF)". */
void shown_add_ends(const struct shown_ends *ends, struct buf *out);

/*
 * Append TEXT with every byte visible: control bytes and what is no UTF-8 as \xHH. Tabs
 * stay.
 */
void shown_add(struct str text, struct buf *out);
/* The same with tabs as → and blanks as ·, for showing differences in white space. */
void shown_add_spaces(struct str text, struct buf *out);

/*
 * Append the commands that show more of line NUMBER of the file PATH: what follows its first
 * SHOWN bytes, and its end where PATH HAS_END. NUMBER 0: of each line.
 */
void shown_add_line_calls(const char *path, uint64_t number, uint64_t shown, bool has_end,
			  struct buf *out);

/* Convert UTF-16 (after its mark) to UTF-8; half pairs become U+FFFD. */
void shown_from_utf16(struct str text, bool big, struct buf *out);

/* FAILED with ERR's sentence, and for a missing PATH the near ones. */
enum result_status shown_fail(struct call *call, struct tool_result *result,
			      const char *path, const struct err *err);
void shown_place_path(const struct place *place, struct buf *out);

/*
 * What write_file and edit_file share: the old content of the file, the guard against
 * overwriting what was not read, and the report of a change.
 */

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
