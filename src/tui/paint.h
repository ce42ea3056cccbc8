/*
 * paint: composes the parts of the screen as bytes in a buffer: rules, marks,
 * lines inside a block, diffs, whole calls. It writes to no descriptor, so tests only
 * need to compare texts. Foreign text is made safe before it is put anywhere: the output
 * of programs and the words of a model by paint_clean; names, commands and diffs, by which
 * a person judges, by paint_exact, which loses nothing.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "tui/theme.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Most bytes composed before they are written. */
enum { PAINT_MAX = 16 << 20 };

struct paint {
	struct buf out;
	bool colour, unicode;
	const struct theme *theme; /* borrowed; NULL: `dark` in sixteen colours */
	bool reader; /* for one who listens: no bars, no rules, words in place of marks */
	bool wraps;  /* break lines between words, except those for copying */
	/* of a conversation, whose commands the person has as well; borrowed; or NULL */
	const struct keys *keys;
	bool full;  /* leave nothing out of prompts, commands, results and changes */
	bool links; /* the terminal makes links of PAINT_LINK_BEGIN */
	size_t columns;
	size_t indent; /* columns before each line; `columns` does not count them */
};

/*
 * A link of a terminal (OSC 8): PAINT_LINK_BEGIN, the address, PAINT_LINK_END, the text, and the
 * two again without an address.
 */
#define PAINT_LINK_BEGIN "\x1b]8;;"
#define PAINT_LINK_END   "\x1b\\"

void paint_init(struct paint *paint);
void paint_fini(struct paint *paint);

/*
 * Append TEXT made safe for a terminal: as text_clean does it, and characters that change
 * the direction of the text are shown as escapes.
 */
void paint_clean(struct str text, struct buf *out);

/*
 * Append TEXT made safe for a terminal without losing a byte, for a person who judges by
 * it: as text_add_exact does it, but line ends and tabs stay.
 */
void paint_exact(struct str text, struct buf *out);

/* Append TEXT in STYLE. It is our own words, or clean already. */
void paint_text(struct paint *paint, enum paint_style style, struct str text);
/* paint_text in several styles at the same time: STYLES has the bit 1 << STYLE of each of them. */
void paint_styles(struct paint *paint, unsigned styles, struct str text);
void paint_format(struct paint *paint, enum paint_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Append TEXT, which is clean and on one line, cut to COLUMNS with a mark. */
void paint_cut(struct paint *paint, enum paint_style style, struct str text, size_t columns);

/*
 * Append foreign TEXT, exact, on one line: with \x0A for line ends and blanks for tabs,
 * cut to COLUMNS with a mark.
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

/* The text before each line of a text. */
enum paint_lead {
	PAINT_NO_LEAD,
	/* the bar of a block; long lines are broken (wraps), very long ones are cut */
	PAINT_BAR,
	PAINT_BLANKS, /* likewise, but two blanks */
};

/* How much of a text is shown, and how. */
struct paint_excerpt {
	size_t head, tail;  /* lines of its beginning and of its end */
	size_t more;        /* lines that the caller has left out of the text */
	const char *handle; /* where the whole text is, or NULL */
	enum paint_lead lead;
	bool as_it_is; /* a command: exact, and no line is broken */
	bool is_diff; /* a diff (commit/change.h): exact as well, and no line is broken */
};

/* Append the excerpt of foreign TEXT; "… 12 more lines (HANDLE)" stands in the gap. */
void paint_lines(struct paint *paint, struct str text, const struct paint_excerpt *excerpt);

/*
 * The block of one ended call: ARGUMENTS as they were sent, RESULT as tool_result_value
 * has it.
 */
void paint_call(struct paint *paint, const char *tool, const struct value *arguments,
		const struct value *result);

/* The subject of a call on one line: "make test", "src/a.c start_line=3". */
void paint_subject(struct paint *paint, const struct value *arguments, size_t columns);

/*
 * One picture of the spinner, "⠋ 3 s  bash", at most COLUMNS - 1 wide; the next one comes after
 * PAINT_SPINNER_MS.
 */
enum {
	PAINT_SPINNER_MS = 125
}; /* eight a second look like movement and cost next to nothing */
void paint_spinner(struct paint *paint, const char *label, int64_t elapsed_ms);

/*
 * Prose on a terminal, broken between its words instead of inside them. A word is held
 * until it is complete, so that nothing on the screen ever moves. Text for copying stays
 * on its line, however long: code between fences or indented by four, tables, and a word
 * that is wider than the line. Between characters of two columns a line may end
 * anywhere, except before a closing mark.
 */

struct paint_wrap {
	struct buf word;   /* held */
	size_t last;       /* columns of its last character */
	struct buf blanks; /* held as well: the blanks before the word */
	size_t column;     /* the column of the next character */
	bool begun;        /* the line has a character that is not a blank */
	bool torn;         /* the beginning of the coming word is shown already */
	bool as_it_is;     /* the rest of the line is not prose */
	bool fenced;       /* between fences */
};

void paint_wrap_init(struct paint_wrap *wrap);
void paint_wrap_fini(struct paint_wrap *wrap);

/*
 * Add TEXT (clean, complete characters), and append to OUT all that can be shown now, on
 * lines of COLUMNS.
 */
void paint_wrap_add(struct paint_wrap *wrap, struct str text, size_t columns,
		    struct buf *out);
/*
 * The text has ended: append the rest to OUT. The next text begins at column AT of a
 * line.
 */
void paint_wrap_end(struct paint_wrap *wrap, size_t columns, size_t at, struct buf *out);

/*
 * Breaks long lines that verbs print for people. The rest of a line goes on the next
 * line of the terminal, indented to the column where the text of the line begins. No
 * word is cut, and a line that is to be copied (a command) is not broken. Where standard
 * output is no terminal, nothing is changed.
 */

/* Columns of the terminal FD; SIZE_MAX when FD is no terminal or does not say. */
size_t paint_columns_of(int fd);

/*
 * Append LINE to OUT, broken into lines of COLUMNS. LINE is clean except for colours and
 * has no line end.
 */
void paint_fold_line(struct str line, size_t columns, struct buf *out);

/* paint_fold_line for each line of TEXT; the last line may have no line end. */
void paint_fold_lines(struct str text, size_t columns, struct buf *out);
/*
 * paint_fold_lines for the width of the terminal FD; where FD is no terminal, append TEXT
 * unchanged.
 */
void paint_fold_for(int fd, struct str text, struct buf *out);

/* Print TEXT on stderr, folded for its terminal. */
void paint_fold_complain(struct str text);

/*
 * The stream that a verb prints on: it writes to standard output, folded line by line. It
 * holds a line back until the line has its end, so do not ask the person anything in an
 * unfinished line. Returns stdout itself where standard output is no terminal.
 */
FILE *paint_fold_open(void);
/* Write the rest of OUT, and close OUT unless it is stdout itself. */
void paint_fold_close(FILE *out);

/* Counts the columns that a text takes on a terminal. No other module uses utf8proc. */

/*
 * Columns of TEXT (one line, no control bytes). A byte that is not UTF-8 counts as one
 * column.
 */
size_t paint_width_of(struct str text);
/*
 * The columns of ROW, in which colours and links are the only sequences. CERTAIN (NULL: not asked): do
 * terminals agree on them? They do not where there is a tab, an emoji, or several characters in one
 * place. Of the numbers that terminals may have, a flag and a new emoji count the largest.
 */
size_t paint_width_of_row(struct str row, bool *certain);

/*
 * The columns that ROW, as above, reaches at most on a terminal that draws each character of a
 * doubtful place by itself, when it is printed by paint_steady.
 */
size_t paint_width_reach(struct str row);
/*
 * Append ROW, as above, which begins at COLUMN, to OUT. After each place on whose columns terminals do
 * not agree, the column is set anew (CSI G), so that all that follows stands where paint_width_of_row
 * has it on every terminal. The row must be blank before, and be erased behind its end after.
 */
void paint_steady(struct str row, size_t column, struct buf *out);

/*
 * Size of the longest beginning of TEXT that reaches at most COLUMNS (paint_width_reach); no
 * character is cut.
 */
size_t paint_width_fit(struct str text, size_t columns);

/* Size of the first character of TEXT as a person sees it, with all combining marks. */
size_t paint_width_character(struct str text, size_t *columns);

/*
 * Is FILE, a record as generate_patch makes it, one of Python's caches (__pycache__)? How
 * many of FILES are? Caches are many, and nobody's work.
 */
bool paint_is_cache(const struct value *file);
size_t paint_count_caches(const struct value *files);
