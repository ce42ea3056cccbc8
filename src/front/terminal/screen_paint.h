/*
 * screen_paint: what the parts of the screen look like, as bytes in a buffer: rules,
 * marks, lines inside a block, diffs, whole calls. Nothing is written here, so all of
 * it can be tested with text. Foreign text is made safe by text_clean before it is put
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
	bool wraps; /* what is not to be copied is broken between words; else lines have no end */
	size_t columns;
	size_t indent; /* columns before all of it, which are not among those */
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
 * Append TEXT as it may stand on a terminal: besides what text_clean sees to, marks that turn
 * the direction of what follows are shown and not obeyed.
 */
void paint_clean(struct str text, struct buf *out);

/* Our own words or text that is clean already. */
void paint_text(struct paint *paint, enum paint_style style, struct str text);
void paint_format(struct paint *paint, enum paint_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for prose that begins at column AT, on lines of a terminal. */
void paint_prose(struct paint *paint, enum paint_style style, struct str text, size_t at);

/*
 * Foreign text on one line: cleaned, line ends and tabs as blanks, cut to COLUMNS with
 * a mark.
 */
void paint_one_line(struct paint *paint, enum paint_style style, struct str text,
		    size_t columns);

/* "┌─ TITLE ────…" and "└─────…" to the right border; with the line end. */
void paint_rule(struct paint *paint, const char *title);
/* "│ ", before each line of a block. */
void paint_bar(struct paint *paint);
/* The two between parts of a line, the one before what was left out. */
const char *paint_dot(const struct paint *paint);
const char *paint_more(const struct paint *paint);

/* How much of a text is shown, and how. */
struct paint_excerpt {
	size_t head, tail;  /* lines of its front and of its end */
	size_t more;        /* lines that were left out of the text before it came here */
	const char *handle; /* where all of it is, or NULL */
	/* inside a block: after a bar; long lines go on below (wraps), very long ones are cut */
	bool barred;
	bool as_it_is; /* it is to be copied: no line goes on below */
	bool is_diff;  /* and so is a diff */
};

/* TEXT is foreign. "… 12 more lines (HANDLE)" stands in the gap. */
void paint_lines(struct paint *paint, struct str text, const struct paint_excerpt *excerpt);

/*
 * The block of one ended call: ARGUMENTS as they were sent, RESULT as tool_result_value
 * has it.
 */
void paint_call(struct paint *paint, const char *tool, const struct value *arguments,
		const struct value *result);

/*
 * The end of a turn: the change as a diff, the files, the closing line. DATA:
 * EVENT_TURN_ENDED's.
 */
void paint_turn_end(struct paint *paint, const struct value *data);

/* The head of a session (EVENT_SESSION_BEGAN's DATA), a prompt, a notice. */
void paint_session(struct paint *paint, const struct value *data);
void paint_prompt(struct paint *paint, struct str text);
void paint_notice(struct paint *paint, struct str text, bool to_model);

/* A check's end in a line: "check tests: green". DATA: EVENT_CHECK_ENDED's. */
void paint_check(struct paint *paint, const struct value *data);

/* What a call is about, on one line: "make test", "src/a.c start_line=3". */
void paint_subject(struct paint *paint, const struct value *arguments, size_t columns);

/* One picture of the spinner, "⠋ 3.2 s  bash", at most COLUMNS - 1 wide. */
void paint_spinner(struct paint *paint, const char *label, int64_t elapsed_ms);
