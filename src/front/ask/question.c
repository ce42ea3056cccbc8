/* question: the screen of a question, and the keys that answer it. */

#include "front/ask/question.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "process/loop.h"
#include "process/pty.h"
#include "tui/lent/terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum {
	/*
	 * Keys are thrown away for so long. Somebody who types at that moment has not read
	 * the question, and the terminal may still be answering the program.
	 */
	DEAF_MS = 500,
	WITHDRAWN_DEAF_MS = 2000, /* behind a question that was withdrawn */
	SENT_MS = 5000, /* a terminal that has not told by then what it has drawn does not tell */
	MINUTE_MS = 60 * 1000,
	TYPED_MAX = 16, /* the longest answer is "yes" */
	READ_MAX = 1024,
	/* A window in which a person does not see what is asked. */
	ROWS_MIN = 8,
	COLUMNS_MIN = 40,
	ESCAPE = 0x1b,
	/*
	 * Positions that the terminal is asked to repeat before the question. The program
	 * cannot know them, so it cannot have asked for the same before.
	 */
	POSITIONS = 4,
	PROOF_MAX = 128,
	NUMBER_DIGITS = 4, /* of a random number */
	RANDOM_DIGITS = (2 * POSITIONS + 1) * NUMBER_DIGITS,
	BELL = 0x07,
	INTERRUPT = 0x03,
	END_OF_INPUT = 0x04,
	BACKSPACE = 0x08,
	DELETE = 0x7f,
	MOUSE_BYTES = 3, /* behind CSI M, in the oldest protocol */
};

enum question_state {
	QUIET,  /* no question is shown */
	SENT,   /* the first one is on its way, and keys are thrown away */
	DEAF,   /* the terminal has drawn it, and keys are thrown away */
	ASKING, /* keys answer it */
};

/* Where a key stands: terminals send sequences that are no typed text. */
enum key_state { TYPED, AFTER_ESCAPE, IN_CONTROL, IN_STRING, SKIPPED, PASTED };

/* The keys that were typed for the question that is shown. */
struct answer {
	enum key_state state;
	unsigned number;  /* of a control sequence */
	unsigned skipped; /* bytes still to skip */
	char typed[TYPED_MAX];
	size_t size;
	bool is_other; /* more than was kept, or something that is no text */
};

struct question {
	struct question_place place;
	enum question_state state;
	struct question_wish *first; /* the one that is shown, then those that wait */
	struct watch input;
	struct timer timer;    /* the end of SENT or DEAF, then of the question */
	int64_t until_ms;      /* the question is a no from then on */
	char proof[PROOF_MAX]; /* what the terminal sends when it has drawn the question */
	size_t proven;         /* bytes of that which have come */
	size_t rows;           /* of the screen, that the question takes */
	char code[NUMBER_DIGITS + 1]; /* means yes on a terminal that does not tell */
	bool by_code;
	struct answer answer;
	int64_t shown_ms[QUESTION_MINUTE_MAX]; /* when the last ones were asked; 0: never */
	size_t shown_next;
	size_t refused; /* because there were too many */
	bool withdrawn; /* the question before this one */
	unsigned vain;  /* questions in a row that were not answered with a yes */
	bool muted;     /* nothing is asked any more */
	struct question_wish more; /* whether there may be more */
};

static void show_next(struct question *question);

/* Take the first wish off the list; it is over. */
static struct question_wish *take_first(struct question *question)
{
	struct question_wish *wish = question->first;

	question->first = wish->next;
	wish->next = NULL;
	wish->asked = false;
	return wish;
}

/* Take the shown question off the screen. */
static void screen_leave(struct question *question)
{
	if (question->state == QUIET)
		return;
	question->state = QUIET;
	loop_remove(&question->input);
	question->timer.due_ms = CLOCK_NEVER;
	/* Keys that were typed for the question are not for the program. */
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	question->place.go_on(question->place.context);
}

static void answer_first(struct question *question, enum question_answer answer)
{
	struct question_wish *wish;

	screen_leave(question);
	question->withdrawn = false;
	question->vain = answer == QUESTION_YES ? 0 : question->vain + 1;
	wish = take_first(question);
	wish->answered(wish, answer);
	show_next(question);
}

/* The person has said whether there may be more questions. */
static void more_answered(struct question_wish *wish, enum question_answer answer)
{
	struct question *question = wish->context;

	question->muted = answer == QUESTION_NO;
	question->vain = answer == QUESTION_YES ? 0 : QUESTION_VAIN_MAX;
	while (answer != QUESTION_YES && question->first != NULL) {
		struct question_wish *next = take_first(question);

		question->refused += question->muted;
		next->answered(next, question->muted ? QUESTION_MUTED : answer);
	}
}

/* Before the first wish, ask whether there may be more. */
static void ask_for_more(struct question *question)
{
	question->more = (struct question_wish){
		.text = "The programs of this cell ask again and again, and got no yes for "
			"long.\nAfter a no to this, nothing is asked until the cell ends.",
		.asks = "Go on?",
		.answered = more_answered,
		.context = question,
		.asked = true,
		.next = question->first,
	};
	question->first = &question->more;
}

/* The keys. */

/* A byte of a paste. The end of the paste is a control sequence. */
static void paste_take(struct answer *answer, char byte)
{
	static const char end[] = "\033[201~";

	if (byte != end[answer->skipped])
		answer->skipped = byte == end[0];
	else if (++answer->skipped == sizeof(end) - 1)
		answer->state = TYPED;
}

static void control_take(struct answer *answer, char byte)
{
	enum { PASTE_BEGINS = 200, NUMBER_MAX = 10000 };

	if (byte >= '0' && byte <= '9' && answer->number < NUMBER_MAX)
		answer->number = 10 * answer->number + (unsigned)(byte - '0');
	if (byte < '@' || byte > '~')
		return;
	answer->state = TYPED;
	answer->skipped = 0;
	if (byte == '~' && answer->number == PASTE_BEGINS) {
		answer->state = PASTED;
		answer->is_other = true;
	} else if (byte == 'M' && answer->number == 0) {
		answer->state = SKIPPED;
		answer->skipped = MOUSE_BYTES;
	}
}

static void escape_take(struct answer *answer, char byte)
{
	answer->state = TYPED;
	answer->number = 0;
	answer->skipped = 1;
	if (byte == '[')
		answer->state = IN_CONTROL;
	else if (byte == 'O')
		answer->state = SKIPPED;
	else if (byte == ']' || byte == 'P' || byte == '_' || byte == '^' || byte == 'X')
		answer->state = IN_STRING;
}

static void text_take(struct question *question, char byte)
{
	struct answer *answer = &question->answer;

	if ((byte == BACKSPACE || byte == DELETE) && answer->size > 0) {
		answer->size--;
		question->place.say(question->place.context, STR("\b \b"));
	} else if (byte < ' ' || byte == DELETE || answer->size == TYPED_MAX) {
		answer->is_other = true;
	} else {
		answer->typed[answer->size++] = byte;
		question->place.say(question->place.context, (struct str){&byte, 1});
	}
}

static bool is_yes(const struct question *question)
{
	const struct str typed = {question->answer.typed, question->answer.size};

	if (question->answer.is_other)
		return false;
	if (question->by_code)
		return str_is(typed, question->code);
	return str_is(typed, "y") || str_is(typed, "Y") || str_is(typed, "yes");
}

/* Take one byte of the input. True: it ends the answer. */
static bool key_take(struct question *question, char byte)
{
	struct answer *answer = &question->answer;

	switch (answer->state) {
	case AFTER_ESCAPE:
		escape_take(answer, byte);
		return false;
	case IN_CONTROL:
		control_take(answer, byte);
		return false;
	case IN_STRING:
		if (byte == BELL || byte == ESCAPE)
			answer->state = byte == BELL ? TYPED : AFTER_ESCAPE;
		return false;
	case SKIPPED:
		if (--answer->skipped == 0)
			answer->state = TYPED;
		return false;
	case PASTED:
		paste_take(answer, byte);
		return false;
	case TYPED:
		break;
	}
	if (byte == INTERRUPT || byte == END_OF_INPUT)
		answer->is_other = true;
	if (byte == '\r' || byte == '\n' || byte == INTERRUPT || byte == END_OF_INPUT)
		return true;
	if (byte == ESCAPE)
		answer->state = AFTER_ESCAPE;
	else
		text_take(question, byte);
	return false;
}

/* Take one byte of the input while the question is on its way. */
static void proof_take(struct question *question, char byte)
{
	if (byte != question->proof[question->proven])
		question->proven = byte == ESCAPE;
	else
		question->proven++;
	if (question->proof[question->proven] != '\0')
		return;
	question->state = DEAF;
	question->timer.due_ms =
		clock_now_ms() + (question->withdrawn ? WITHDRAWN_DEAF_MS : DEAF_MS);
}

static void input_ready(struct watch *watch, short events)
{
	struct question *question = watch->context;
	char bytes[READ_MAX];
	const ssize_t size = read(STDIN_FILENO, bytes, sizeof(bytes));

	(void)events;
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size <= 0) {
		answer_first(question, QUESTION_NO);
		return;
	}
	for (ssize_t i = 0; i < size; i++) {
		if (question->state == SENT) {
			proof_take(question, bytes[i]);
		} else if (question->state == ASKING && key_take(question, bytes[i])) {
			answer_first(question,
				     is_yes(question) ? QUESTION_YES : QUESTION_NO);
			return;
		}
	}
	/* An ESC with nothing behind it is the key. */
	if (question->state == ASKING && question->answer.state == AFTER_ESCAPE)
		answer_first(question, QUESTION_NO);
}

/*
 * How many rows of a terminal of COLUMNS does TEXT take? A character outside of ASCII may take
 * two columns.
 */
static size_t rows_of(struct str text, unsigned columns)
{
	size_t rows = 1, column = 0;

	for (size_t i = 0; i < text.size; i++) {
		const unsigned char byte = (unsigned char)text.data[i];
		const size_t width = byte < 0x80 ? 1 : byte >= 0xc0 ? 2 : 0;

		if (byte == '\n') {
			rows++;
			column = 0;
		} else if (byte >= ' ') {
			rows += column + width > columns;
			column = column + width > columns ? width : column + width;
		}
	}
	return rows;
}

/*
 * The terminal does not tell what it has drawn: only somebody who reads it knows the code.
 * False: there is no room for that.
 */
static bool ask_for_code(struct question *question)
{
	enum { SENTENCE_MAX = 256 };
	const struct pty_size size = terminal_size();
	struct buf text;
	bool fits;

	question->by_code = true;
	buf_init(&text, SENTENCE_MAX);
	(void)buf_addf(&text,
		       "\r\n\r\nThe terminal does not tell whether it has shown this. "
		       "%s and Enter: yes, anything else: no. ",
		       question->code);
	fits = question->rows + rows_of(buf_str(&text), size.columns) <= size.rows;
	if (fits)
		question->place.say(question->place.context, buf_str(&text));
	buf_fini(&text);
	return fits;
}

static void timer_due(struct timer *timer)
{
	struct question *question = timer->context;

	if (question->state == ASKING) {
		answer_first(question, QUESTION_LATE);
		return;
	}
	if (question->state == SENT && !ask_for_code(question)) {
		answer_first(question, QUESTION_UNSEEN);
		return;
	}
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	question->answer = (struct answer){.state = TYPED};
	question->state = ASKING;
	timer->due_ms = question->until_ms;
}

/* The questions. */

/* Append TEXT for a terminal that is raw: a line end does not go back to the first column. */
static void add_lines(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] == '\n')
			(void)buf_addc(out, '\r');
		(void)buf_addc(out, text.data[i]);
	}
}

/* A random number from 1 to MOST, by the digits at DIGITS. */
static unsigned number_of(const char *digits, unsigned most)
{
	auto_free char *text = memory_copy_str((struct str){digits, NUMBER_DIGITS});

	return 1 + (unsigned)strtoul(text, NULL, 16) % most;
}

/*
 * Append to OUT what has a terminal of SIZE tell positions of the cursor, in order with all
 * that it draws, and note what it will send. False: there are no random numbers.
 */
static bool demand_proof(struct question *question, struct pty_size size, struct buf *out)
{
	char digits[RANDOM_DIGITS + 1];
	const char *at = digits;
	struct buf proof;

	if (!text_random_hex(digits, RANDOM_DIGITS))
		return false;
	buf_init(&proof, PROOF_MAX - 1);
	for (size_t i = 0; i < POSITIONS; i++, at += 2 * NUMBER_DIGITS) {
		const unsigned row = number_of(at, size.rows);
		const unsigned column = number_of(at + NUMBER_DIGITS, size.columns);

		(void)buf_addf(out, "\033[%u;%uH\033[6n", row, column);
		(void)buf_addf(&proof, "\033[%u;%uR", row, column);
	}
	(void)buf_adds(out, "\033[H");
	(void)buf_adds(&proof, "\033[0n"); /* behind the question */
	memcpy(question->proof, proof.data, proof.size + 1);
	memcpy(question->code, at, NUMBER_DIGITS + 1);
	buf_fini(&proof);
	question->proven = 0;
	question->by_code = false;
	return true;
}

static void compose(const struct question *question, const struct question_wish *wish,
		    struct buf *out)
{
	struct buf clean;

	buf_init(&clean, 4 * QUESTION_TEXT_MAX);
	text_add_paragraph(&clean, str_of(wish->text));
	(void)buf_adds(out, "glovebox: a program in the cell asks, and waits.\r\n\r\n");
	if (question->withdrawn)
		(void)buf_adds(out, "The question before this one was withdrawn.\r\n\r\n");
	add_lines(out, buf_str(&clean));
	(void)buf_addf(out, "\r\n\r\n%s y and Enter: yes, anything else: no. ", wish->asks);
	buf_fini(&clean);
}

/* Show WISH. False: nobody can see it. */
static bool show(struct question *question, const struct question_wish *wish)
{
	const struct pty_size size = terminal_size();
	struct buf text, asked;
	bool shown;

	if (size.rows < ROWS_MIN || size.columns < COLUMNS_MIN)
		return false;
	buf_init(&text, 8 * QUESTION_TEXT_MAX);
	buf_init(&asked, 8 * QUESTION_TEXT_MAX);
	compose(question, wish, &asked);
	/* Room for the answer stays behind it. */
	question->rows = rows_of(buf_str(&asked), size.columns) + 1;
	shown = question->rows <= size.rows && demand_proof(question, size, &text);
	(void)buf_addstr(&text, buf_str(&asked));
	(void)buf_adds(&text, "\033[5n");
	shown = shown && !asked.overflowed && !text.overflowed &&
		question->place.hold(question->place.context, buf_str(&text));
	buf_fini(&asked);
	buf_fini(&text);
	if (!shown)
		return false;
	question->state = SENT;
	question->until_ms = clock_now_ms() + QUESTION_WAIT_S * 1000;
	question->timer.due_ms = clock_now_ms() + SENT_MS;
	loop_add(question->place.loop, &question->input);
	return true;
}

/* Show the first question that waits. Those that nobody can see are not asked. */
static void show_next(struct question *question)
{
	while (question->state == QUIET && question->first != NULL) {
		if (question->vain >= QUESTION_VAIN_MAX && question->first != &question->more)
			ask_for_more(question);
		if (show(question, question->first))
			return;
		struct question_wish *wish = take_first(question);

		wish->answered(wish, QUESTION_UNSEEN);
	}
}

/* Was there a question too many within the last minute? Else this one counts. */
static bool is_flood(struct question *question)
{
	const int64_t now_ms = clock_now_ms();
	int64_t *oldest = &question->shown_ms[question->shown_next];

	if (*oldest > 0 && now_ms - *oldest < MINUTE_MS)
		return true;
	*oldest = now_ms;
	question->shown_next = (question->shown_next + 1) % QUESTION_MINUTE_MAX;
	return false;
}

static size_t count_open(const struct question *question)
{
	size_t count = 0;

	for (const struct question_wish *at = question->first; at != NULL; at = at->next)
		count++;
	return count;
}

struct question *question_new(const struct question_place *place)
{
	struct question *question = memory_alloc(sizeof(*question));

	question->place = *place;
	question->state = QUIET;
	question->input = (struct watch){.fd = STDIN_FILENO,
					 .events = POLLIN,
					 .ready = input_ready,
					 .context = question};
	question->timer =
		(struct timer){.due_ms = CLOCK_NEVER, .due = timer_due, .context = question};
	loop_add_timer(place->loop, &question->timer);
	return question;
}

void question_free(struct question *question)
{
	if (question == NULL)
		return;
	screen_leave(question);
	loop_remove_timer(&question->timer);
	while (question->first != NULL)
		(void)take_first(question);
	if (question->refused > 0 && question->muted)
		(void)fprintf(stderr,
			      "glovebox: %zu question%s of the cell %s not asked: you wanted no "
			      "more of them\n",
			      question->refused, question->refused == 1 ? "" : "s",
			      question->refused == 1 ? "was" : "were");
	else if (question->refused > 0)
		(void)fprintf(stderr,
			      "glovebox: %zu question%s of the cell %s not asked: at most %d a "
			      "minute\n",
			      question->refused, question->refused == 1 ? "" : "s",
			      question->refused == 1 ? "was" : "were", QUESTION_MINUTE_MAX);
	free(question);
}

bool question_ask(struct question *question, struct question_wish *wish, struct err *why)
{
	struct question_wish **last;

	if (question == NULL)
		return err_set(why, ENOTTY, "there is no terminal to ask a person on");
	if (question->muted) {
		question->refused++;
		return err_set(why, EACCES, "%s", question_reason(QUESTION_MUTED));
	}
	if (count_open(question) > QUESTION_WAITING_MAX || is_flood(question)) {
		question->refused++;
		return err_set(why, EAGAIN,
			       "there are too many questions; ask again in a minute");
	}
	for (last = &question->first; *last != NULL; last = &(*last)->next)
		;
	*last = wish;
	wish->next = NULL;
	wish->asked = true;
	show_next(question);
	return true;
}

void question_withdraw(struct question *question, struct question_wish *wish)
{
	const bool is_shown =
		question != NULL && question->state != QUIET && question->first == wish;

	if (question == NULL || !wish->asked)
		return;
	if (is_shown) {
		screen_leave(question);
		question->withdrawn = true;
		question->vain++;
	}
	for (struct question_wish **at = &question->first; *at != NULL; at = &(*at)->next) {
		if (*at == wish) {
			*at = wish->next;
			break;
		}
	}
	wish->next = NULL;
	wish->asked = false;
	if (is_shown)
		show_next(question);
}

const char *question_reason(enum question_answer answer)
{
	switch (answer) {
	case QUESTION_LATE:
		return "nobody answered the question within a minute";
	case QUESTION_UNSEEN:
		return "the window is too small to show the question; enlarge it";
	case QUESTION_MUTED:
		return "the person wants no more questions of this cell";
	case QUESTION_NO:
	case QUESTION_YES:
		break;
	}
	return "the person did not agree";
}
