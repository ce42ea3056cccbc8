/*
 * choice: a question to a person, in the place of the line that the person types. It shows the
 * whole text that is judged, by rows that arrows scroll, and what each answer lets in. An
 * answer is chosen by its first letter. Enter, Escape, Ctrl+C and Ctrl+D choose the safe one.
 * An answer that keeps something first shows what, and is chosen a second time; an answer that
 * takes words has them typed. Pure: keys go in, rows and an answer come out; console.h reads
 * the keys.
 */
#pragma once

#include "base/str.h"
#include "tui/line.h"
#include "tui/typing.h"

#include <stdbool.h>
#include <stddef.h>

/* How an answer is chosen. */
enum choice_way { CHOICE_AT_ONCE, CHOICE_TWICE, CHOICE_WITH_WORDS };

struct choice_option {
	const char *word;  /* "once"; no other answer begins with its letter */
	const char *means; /* what it lets in, one line of any bytes; or NULL */
	enum choice_way way;
};

/* All members are borrowed. */
struct choice {
	const char *head; /* who wants what, one line of any bytes */
	struct str text;  /* what is judged, any bytes; shown exactly */
	bool is_diff;     /* lines of it begin with "+" and "-" */
	const char *tail; /* a line below it, any bytes; or NULL */
	const struct choice_option *options; /* COUNT of them */
	size_t count;
	size_t safe; /* the number of the answer that a no is */
	bool views;  /* `v` is CHOICE_VIEW; no answer begins with this letter */
};

/* In place of the number of an answer: the person wants to read the text in the viewer. */
enum { CHOICE_VIEW = 1000 };

/* So far as the person has got. */
struct choice_state {
	bool listens; /* keys count, which is shown by the letters of the answers */
	size_t first; /* the first row of the text that is shown */
	size_t rows, height; /* of the text, and how many of them are shown */
	const struct choice_option *begun; /* it was chosen once; NULL: none */
	struct line words;                 /* those of CHOICE_WITH_WORDS */
};

void choice_begin(struct choice_state *state);
void choice_end(struct choice_state *state);

/* Take KEY. True: *CHOSEN is the number of the answer; STATE.words has its words. */
bool choice_take(const struct choice *choice, struct choice_state *state,
		 enum typing_key key, struct str typed, size_t *chosen);

/* Compose at most LOOK.rows rows. Rows that say what an answer lets in are left out first. */
void choice_compose(const struct choice *choice, struct choice_state *state,
		    const struct line_look *look, struct line_frame *frame);
