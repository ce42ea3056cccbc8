/*
 * question: asks the person something while a program of a cell has the terminal (`exec
 * --tty`, `wrap`). The program's output is held back meanwhile, and the question has a
 * screen of its own, so the program cannot draw into it and nothing of the program's
 * screen is lost.
 *
 * Only a `y` (or `yes`) and Enter that are typed while the question is shown mean yes. The
 * terminal is asked what it has drawn, by numbers that a program cannot know; one that does
 * not tell gets a code to type instead. Keys that come before that, or before the person can
 * have read the question, are thrown away, and so is pasted text. Another key, and the end of
 * the input, is a no. A question stands on the screen as a whole, from its first line on: in
 * a window that is too small for that, nobody is asked.
 *
 * One question is shown at a time, and a few wait. A program that asks more often than
 * QUESTION_MINUTE_MAX times a minute is refused without a question; the end of the run says
 * so once. After QUESTION_VAIN_MAX questions in a row without a yes, the person is asked
 * whether there may be more of them: after a no to that, nothing is asked in this run any
 * more.
 *
 * A question that is withdrawn while it is shown makes room for another one, which looks
 * much like it perhaps. The next question therefore says so, and it takes longer until that
 * one listens.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "process/loop.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	QUESTION_WAIT_S = 60,
	QUESTION_MINUTE_MAX = 6,
	QUESTION_VAIN_MAX = 5,
	QUESTION_WAITING_MAX = 4,
	QUESTION_TEXT_MAX = 16 << 10,
};

struct question;

/* The terminal that the program has, and how it is taken from the program and given back. */
struct question_place {
	struct loop *loop;
	/*
	 * Hold the program's output and input back, and show TEXT on an empty screen.
	 * False: the terminal is gone.
	 */
	bool (*hold)(void *context, struct str text);
	/* Append TEXT to that screen. */
	void (*say)(void *context, struct str text);
	/* Give the terminal back to the program. */
	void (*go_on)(void *context);
	void *context;
};

enum question_answer {
	QUESTION_NO,    /* the person has typed something else than yes */
	QUESTION_YES,   /* a y and Enter */
	QUESTION_LATE,  /* nobody has answered for QUESTION_WAIT_S */
	QUESTION_MUTED, /* the person wants no more questions */
	QUESTION_UNSEEN, /* the window is too small to show all of it, so nobody was asked */
};

/*
 * Something to ask, in memory of the caller: zero it, fill the first members, then call
 * question_ask. The texts must live until the answer.
 */
struct question_wish {
	/* lines that say what is wanted, and by whom; shown whole, with unseen bytes as \xHH */
	const char *text;
	const char *asks; /* one short line of ours: "Open it?" */
	void (*answered)(struct question_wish *wish, enum question_answer answer);
	void *context;
	/* of this module */
	bool asked;
	struct question_wish *next;
};

/* Questions on PLACE, which is copied. */
struct question *question_new(const struct question_place *place);
/* Drops all questions without an answer, and says what was not asked. NULL is fine. */
void question_free(struct question *question);

/*
 * Ask WISH now, or after the questions that are open. `answered` is called from the loop.
 * False: WISH is not asked, and WHY says the reason. QUESTION NULL: there is no terminal.
 */
bool question_ask(struct question *question, struct question_wish *wish, struct err *why);
/* Nobody waits for the answer to WISH any more. Does nothing when WISH is not open. */
void question_withdraw(struct question *question, struct question_wish *wish);

/* Why ANSWER is no yes, for a sentence: "the person did not agree". */
const char *question_reason(enum question_answer answer);
