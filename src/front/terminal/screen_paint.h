/*
 * screen_paint: composes the parts of the screen as bytes in a buffer: rules, marks,
 * lines inside a block, diffs, whole calls. It writes to no descriptor, so tests only
 * need to compare texts. Foreign text is made safe by text_clean before it is put
 * anywhere.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most bytes composed before they are written. */
enum { PAINT_MAX = 16 << 20 };

struct paint {
	struct buf out;
	bool colour, unicode;
	bool wraps; /* break lines between words, except those for copying */
	size_t columns;
	size_t indent; /* columns before each line; `columns` does not count them */
};

enum paint_style {
	PAINT_PLAIN,
	PAINT_BOLD,
	PAINT_DIM,
	PAINT_RED,
	PAINT_GREEN,
	PAINT_YELLOW,
	PAINT_CYAN,
};

void paint_init(struct paint *paint);
void paint_fini(struct paint *paint);

/*
 * Append TEXT made safe for a terminal: as text_clean does it, and characters that change
 * the direction of the text are shown as escapes.
 */
void paint_clean(struct str text, struct buf *out);

/* Append TEXT in STYLE. It is our own words, or clean already. */
void paint_text(struct paint *paint, enum paint_style style, struct str text);
void paint_format(struct paint *paint, enum paint_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* paint_text for prose that begins at column AT, broken into lines of the terminal. */
void paint_prose(struct paint *paint, enum paint_style style, struct str text, size_t at);

/*
 * Append foreign TEXT on one line: cleaned, with blanks for line ends and tabs, cut to
 * COLUMNS with a mark.
 */
void paint_one_line(struct paint *paint, enum paint_style style, struct str text,
		    size_t columns);

/*
 * Append "┌─ TITLE ────…" or, for TITLE NULL, "└─────…" up to the right border, and a
 * line end.
 */
void paint_rule(struct paint *paint, const char *title);
/* Append "│ ", which stands before each line of a block. */
void paint_bar(struct paint *paint);
/* The mark between two parts of a line, and the mark for text that was left out. */
const char *paint_dot(const struct paint *paint);
const char *paint_more(const struct paint *paint);

/* How much of a text is shown, and how. */
struct paint_excerpt {
	size_t head, tail;  /* lines of its beginning and of its end */
	size_t more;        /* lines that the caller has left out of the text */
	const char *handle; /* where the whole text is, or NULL */
	/*
	 * inside a block, behind a bar; long lines are broken (wraps), very long ones are
	 * cut
	 */
	bool barred;
	bool as_it_is; /* the text is for copying: no line is broken */
	bool is_diff;  /* a diff, whose lines are not broken either */
};

/* Append the excerpt of foreign TEXT; "… 12 more lines (HANDLE)" stands in the gap. */
void paint_lines(struct paint *paint, struct str text, const struct paint_excerpt *excerpt);

/*
 * The block of one ended call: ARGUMENTS as they were sent, RESULT as tool_result_value
 * has it.
 */
void paint_call(struct paint *paint, const char *tool, const struct value *arguments,
		const struct value *result);

/*
 * The end of a turn: the change as a diff, the files, the closing line. DATA is that of
 * EVENT_TURN_ENDED.
 */
void paint_turn_end(struct paint *paint, const struct value *data);

/* The head of a session (DATA of EVENT_SESSION_BEGAN), a prompt, a notice. */
void paint_session(struct paint *paint, const struct value *data);
void paint_prompt(struct paint *paint, struct str text);
void paint_notice(struct paint *paint, struct str text, bool to_model);

/*
 * The end of a check in a line: "check tests: green". DATA is that of EVENT_CHECK_ENDED.
 */
void paint_check(struct paint *paint, const struct value *data);

/* The subject of a call on one line: "make test", "src/a.c start_line=3". */
void paint_subject(struct paint *paint, const struct value *arguments, size_t columns);

/* One picture of the spinner, "⠋ 3.2 s  bash", at most COLUMNS - 1 wide. */
void paint_spinner(struct paint *paint, const char *label, int64_t elapsed_ms);
