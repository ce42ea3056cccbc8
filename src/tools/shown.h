/*
 * shown: how the file tools show files to a model: what kind of text a content is, its
 * bytes made visible without losing any, and the sentences they share.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "tool/call.h"

#include <stdbool.h>
#include <stdint.h>

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

/*
 * PATH may not be written: a claim (tool/claims.h) by its real path, or its folder's,
 * since a link may lead there from where writing is allowed.
 */
void shown_claim_unwritable(struct call *call, struct tool_result *result, const char *path);

/* FAILED with ERR's sentence, and for a missing PATH the near ones. */
enum result_status shown_fail(struct call *call, struct tool_result *result,
			      const char *path, const struct err *err);

/* Append "folder/name" of PLACE, as in the view. */
struct place;
void shown_place_path(const struct place *place, struct buf *out);
