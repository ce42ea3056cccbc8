/*
 * shown: how the tools show files and outputs to a model: the kind of text that a content
 * is, its bytes made visible without losing any, what an answer says of the lines that it
 * leaves out, and the sentences that the tools share.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "files/files.h"
#include "files/place.h"
#include "tool/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct place;

/* A constant number as text, for descriptions. */
#define SHOWN_TEXT(number)   #number
#define SHOWN_NUMBER(number) SHOWN_TEXT(number)

/*
 * Of a longer line of a file or of a command's output only the beginning and the end are
 * shown (text_add_line), with its length.
 */
#define SHOWN_LONG_LINE      2000
#define SHOWN_LONG_LINE_TEXT SHOWN_NUMBER(SHOWN_LONG_LINE)

struct shown_kind {
	bool binary;    /* it has a NUL, or over 30 % control bytes, in its first 8 KiB */
	bool utf8_mark; /* it begins with the byte-order mark of UTF-8 */
	bool utf16;     /* it begins with a byte-order mark of UTF-16 */
	bool utf16_big;
};
/* Find the kind of a file from its first bytes. */
struct shown_kind shown_kind(struct str start);

/*
 * The kind of a file that is no text, by its first bytes: "PNG", "gzip". NULL: the kind is
 * not known.
 */
const char *shown_binary_kind(struct str start);

enum { SHOWN_MARK8 = 3, SHOWN_MARK16 = 2 }; /* sizes of the byte-order marks */

/* The line ends of a text. A last line without an end does not count. */
struct shown_ends {
	size_t lf, crlf;
};
void shown_count_ends(struct str text, struct shown_ends *ends);
/*
 * The line end that all lines have; SHOWN_END_NONE when they differ, or there are none.
 */
enum shown_end { SHOWN_END_NONE, SHOWN_END_LF, SHOWN_END_CRLF };
enum shown_end shown_end_of_all(const struct shown_ends *ends);
/*
 * Give each line of TEXT the end WANTED (SHOWN_END_NONE: do nothing). True: TEXT was
 * changed.
 */
bool shown_set_ends(struct buf *text, enum shown_end wanted);

/*
 * The parameter by which a tool that writes is asked to leave the line ends of a new text
 * as they are, the test whether a call does so, and the words of an answer (" NAME was
 * given …") about a line end that was set.
 */
#define SHOWN_ENDS_PARAM                                                                  \
	{                                                                                 \
		"line_ends", ROW_CHOICE, false,                                           \
			"Of new text: the file's (file), or as it is given here (given)", \
			.choices = "file given", .initial = "\"file\""                    \
	}
bool shown_ends_are_given(const struct call *call);
void shown_add_ends_set(const char *name, enum shown_end end, struct buf *out);

/*
 * Append TEXT with every byte visible: control bytes and bytes that are no UTF-8 as \xHH.
 * Tabs stay.
 */
void shown_add(struct str text, struct buf *out);
/* The same with tabs as → and blanks as ·, for showing differences in white space. */
void shown_add_spaces(struct str text, struct buf *out);

/*
 * Append the commands that show more of line NUMBER of the file PATH: the part behind its
 * first SHOWN bytes, and, when the file HAS_END, its end. NUMBER 0: of every line.
 */
void shown_add_line_calls(const char *path, uint64_t number, uint64_t shown, bool has_end,
			  struct buf *out);

/*
 * Returns RESULT_FAILED with the sentence of ERR and, when PATH is missing, similar
 * paths.
 */
enum result_status shown_fail(struct call *call, struct tool_result *result,
			      const char *path, const struct err *err);
void shown_place_path(const struct place *place, struct buf *out);

/*
 * The lines in which compilers and test runners report a failure are known by how they
 * begin. When an output is too long for an answer, the answer names these lines with their
 * numbers.
 */

enum {
	FAILING_SHOWN = 10, /* the most lines that are shown */
	/* of each line, whose beginning says what failed and where */
	FAILING_LINE_BYTES = 200,
};

/* Does LINE begin with a word for failure, perhaps behind a place ("a.c:12:5: error: …")? */
bool shown_failing_line(struct str line);

/*
 * Append such lines of the file FD, from its byte FROM on, that SHOWN does not have yet:
 * "NUMBER<tab>line" each, the first FAILING_SHOWN. NUMBER: the number of the line at
 * FROM. Returns how many such lines there are.
 */
size_t shown_failing_gather(int fd, uint64_t from, size_t number, struct str shown,
			    struct buf *out);

/*
 * An outline: the lines of a file that begin a function, a class, a heading or a section, as
 * far as single lines tell it: a map of what an answer does not show. Any text gives an
 * outline; data has none.
 */

struct outline;

/*
 * Begin the outline of a file with this NAME, whose content begins with START. NULL: the
 * file is data, or of an unknown kind.
 */
struct outline *outline_new(const char *name, struct str start);
void outline_free(struct outline *outline); /* NULL is fine */

/*
 * Take LINE, without its end, which has this NUMBER. Call it for all lines in their
 * order. NULL is fine.
 */
void outline_add(struct outline *outline, size_t number, struct str line);

/*
 * Append at most MOST places in at most BYTES, "NUMBER<tab>line" each: those of the outer
 * levels first, and, of the first level that has too many, some from every part of the
 * file. Returns how many were appended.
 */
size_t outline_print(struct outline *outline, size_t most, size_t bytes, struct buf *out);
/* The number of places. */
size_t outline_count(const struct outline *outline);

/*
 * Shared by write_file and edit_file: the old content of the file, the guard against
 * overwriting a content that the model has not read, and the report of a change.
 */

/* The most bytes of a diff in details: enough for people, and bounded for fronts. */
enum { WRITTEN_DIFF_MAX = 256 << 10, WRITTEN_FILE_MAX = 64 << 20 };

struct written {
	struct call *call;
	struct tool_result *result;
	const char *path; /* as the call gives it */
	struct place place;
	struct buf real; /* the path in the view */
	struct buf old;
	struct stat st;
	char mark[FILES_MARK]; /* of the old content */
	/* this session has read a content other than the old one */
	bool changed_since_read;
	/* of the content that was reported as written; empty before */
	char new_hash[HASH_MARK_HEX + 1];
};

void written_init(struct written *written, struct call *call, struct tool_result *result);
void written_fini(struct written *written);

/*
 * May CALL bring BYTES of new text? False: RESULT has the sentence, which names the
 * limit.
 */
bool written_fits(const struct call *call, size_t bytes, struct tool_result *result);

/* Read the old content and its mark. The caller has found the place. */
bool written_read_old(struct written *written, struct err *err);

/*
 * When expected_hash is given, it must be the hash of the old content. False: RESULT has
 * the sentence, which names the right hash.
 */
bool written_check_hash(struct written *written);

/* The model's knowledge of the old content that a call replaces. */
enum written_known {
	KNOWN_NOW,     /* the content: it was read, or its hash is in the call */
	KNOWN_BEFORE,  /* an older one */
	KNOWN_NOT,     /* nothing */
	KNOWN_REFUSED, /* the hash in the call is wrong, and RESULT has the sentence */
};
/* HASH becomes that of the old content for KNOWN_BEFORE and KNOWN_NOT. */
enum written_known written_known(struct written *written, char hash[HASH_HEX + 1]);

/* Replace the old content, which must still be there, by CONTENT (place_write). */
bool written_replace(struct written *written, struct str content, struct err *err);

/* Append the path that was written, and the target of a link. */
void written_add_path(const struct written *written, struct buf *out);

/*
 * Report a change: the diffstat behind the text of the result, the diff, the hash and the
 * counts in its details. The old content is kept for the patch of the session.
 */
void written_report(struct written *written, struct str content, bool created);
/* The same with the facts in INTO, for tools that change several files. */
enum written_kind { WRITTEN_CHANGED, WRITTEN_CREATED, WRITTEN_REMOVED };
void written_report_into(struct written *written, struct str content,
			 enum written_kind kind, struct value *into);

/* The mark of the content that is at the place now. */
void written_new_mark(const struct written *written, struct str content,
		      char mark[FILES_MARK]);

/*
 * Returns RESULT_FAILED (RESULT_DENIED for a protected path) with the sentence of ERR and
 * advice.
 */
enum result_status written_fail(struct written *written, const struct err *err);
