/*
 * console: the modes of the terminal, and the thread that takes its signals and, while
 * something runs, its keys. Two threads use this file: the lock protects the mode and the
 * typed bytes.
 */

#include "tui/console.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "tui/choose/list.h"
#include "tui/lent/job.h"
#include "tui/lent/terminal.h"
#include "tui/line.h"
#include "tui/live.h"
#include "tui/paint.h"
#include "tui/region/choice.h"
#include "tui/screen.h"
#include "tui/term.h"
#include "tui/theme.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <termios.h>
#include <unistd.h>

enum {
	CONSOLE_READ_MAX = 4096, /* a terminal gives no more in one read */
	WAITING_ROW_MAX = 256,
	DRAW_EVERY_MS = 50, /* while input comes without a pause */
	PROMPT_MAX = 512,
};

enum mode {
	MODE_BEFORE,   /* as we found it */
	MODE_TYPING,   /* raw: we read each key */
	MODE_WATCHING, /* the thread keeps the keys; Ctrl+C is a signal */
};

/* How the terminal sends the keys that have no bytes of their own. */
enum keyboard {
	KEYBOARD_PLAIN,
	KEYBOARD_KITTY, /* its protocol with flags 1: what would be told from nothing else */
	KEYBOARD_OTHER, /* xterm's modifyOtherKeys 1 */
};

static const struct {
	const char *on, *off;
} keyboards[] = {
	[KEYBOARD_PLAIN] = {"", ""},
	[KEYBOARD_KITTY] = {"\x1b[>1u", "\x1b[<u"},
	[KEYBOARD_OTHER] = {"\x1b[>4;1m", "\x1b[>4m"},
};

/* A theme that was chosen. Another thread may still print with one that is not any more. */
struct chosen {
	struct theme theme;
	struct chosen *before;
};

/* A text that the person has sent while something runs. */
struct waiting {
	struct buf text;
	struct insets insets; /* in the text */
	bool steers;          /* for what runs; else for the time after it */
};

struct console {
	struct screen_options look;
	struct termios before;
	struct terminal_guard guard;
	pthread_mutex_t lock;
	enum mode mode;
	bool interrupted;  /* Escape has interrupted the present run */
	bool marks_pastes; /* the terminal marks pastes (bracketed paste is on) */
	bool echoed;       /* the line that was read last stands behind its mark */
	bool early; /* what is there to be read was typed before the terminal was raw */
	struct typing typing;
	struct term term;
	bool asked; /* the terminal */
	enum keyboard keyboard;
	struct chosen *chosen; /* the newest; NULL: none */
	enum notify_way notify;
	char *notify_words[NOTIFY_WORDS_MAX + 1];
	bool follows_ground; /* dark or light, whatever was chosen */
	struct console_actor actor;
	FILE *complaints, *errors; /* standard error meanwhile, and before; or NULL */
	int signals, news, end;    /* descriptors; news: draw again; end: of the thread */
	bool started;
	/* While something runs, the thread lets the person edit `line` below it (NULL: no). */
	struct line *line;
	struct live *live;
	struct waiting waiting[CONSOLE_WAITING_MAX]; /* the oldest first */
	size_t waiting_count;
	int wake_fd;       /* for an editor while something runs */
	int names_fd;      /* of console_offers */
	bool wants_editor; /* the person has asked for it meanwhile */
	unsigned lent; /* the terminal is the LENDER's, for a program; so many times */
	pthread_t lender;
	pthread_cond_t returned;
	bool decides;     /* a question stands in the place of `line` */
	bool starts;      /* there is no conversation yet (console_begin) */
	bool quitting;    /* the conversation ends after what runs */
	bool away;        /* a stop has taken the rows of `live` off the terminal */
	int64_t drawn_ms; /* when the line was drawn last while something ran */
	pthread_t thread;
	sigset_t mask_before;
};

/* Bracketed paste: the terminal marks pasted text. */
static const char paste_on[] = "\x1b[?2004h";
static const char paste_off[] = "\x1b[?2004l";
/* The terminal tells when its window gets and loses the focus. */
static const char focus_on[] = "\x1b[?1004h";
static const char focus_off[] = "\x1b[?1004l";

/*
 * All that we have switched on, switched off, for a terminal that we have left in the middle of
 * anything: a string, a frame, the keyboard's and the mouse's modes, colours, a hidden cursor,
 * the other screen of a pager (47, which does not move the cursor where it is off).
 */
static const char terminal_reset[] =
	"\030\x1b\\\x1b[?2026l\x1b[?2004l\x1b[?1004l\x1b[?47l\x1b[<8u\x1b[>4m\x1b[0m\x1b[?25h";

enum { ESCAPE = '\x1b' };

/*
 * Write to standard output. Errors are ignored: the next read finds a terminal that is
 * gone.
 */
static void console_write(const char *bytes)
{
	(void)fd_write_all(STDOUT_FILENO, bytes, strlen(bytes), NULL);
}

/* True as well for a terminal of another session: there is no job control on it. */
static bool in_foreground(void)
{
	const pid_t group = tcgetpgrp(STDIN_FILENO);

	return group < 0 || group == getpgrp();
}

/* Switch on what the terminal is to mark and to tell, or off, in one write. */
static void mark(struct console *console, bool on)
{
	struct pollfd there = {.fd = STDIN_FILENO, .events = POLLIN};
	struct buf out;

	if (on == console->marks_pastes)
		return;
	console->marks_pastes = on;
	console->early = on && poll(&there, 1, 0) > 0;
	buf_init(&out, PROMPT_MAX);
	(void)buf_adds(&out, on ? paste_on : paste_off);
	if (console->asked)
		(void)buf_adds(&out, on ? focus_on : focus_off);
	console_write(out.data);
	buf_fini(&out);
}

/*
 * Let the terminal send what the present mode can use. Where no line is edited, Ctrl+C has to be
 * the byte for which the kernel sends a signal. The caller holds the lock.
 */
static void set_keyboard(struct console *console)
{
	const bool edits = console->mode == MODE_TYPING ||
			   (console->mode == MODE_WATCHING && console->line != NULL);
	const enum keyboard wanted = !edits || !console->term.answered ? KEYBOARD_PLAIN
				     : console->term.has_keyboard      ? KEYBOARD_KITTY
								       : KEYBOARD_OTHER;

	if (wanted == console->keyboard || !console->look.terminal || !in_foreground())
		return;
	console_write(keyboards[console->keyboard].off);
	console_write(keyboards[wanted].on);
	console->keyboard = wanted;
}

/* Set the terminal to the mode of CONSOLE. The caller holds the lock. */
static void apply(struct console *console)
{
	struct termios settings = console->before;

	if (!console->look.terminal || !in_foreground())
		return;
	if (console->mode != MODE_BEFORE) {
		settings.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | IXON | ISTRIP);
		settings.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
		/* A key that is a signal throws away nothing that was printed. */
		settings.c_lflag |= NOFLSH;
		settings.c_cc[VMIN] = 1;
		settings.c_cc[VTIME] = 0;
	}
	if (console->mode == MODE_TYPING ||
	    (console->mode == MODE_WATCHING && console->starts))
		settings.c_lflag &= ~(tcflag_t)ISIG;
	/* Keys are signals again from here on, and one of them may end us. */
	if (console->mode == MODE_BEFORE) {
		set_keyboard(console);
		mark(console, false);
	}
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &settings);
	if (console->mode != MODE_BEFORE) {
		mark(console, true);
		set_keyboard(console);
	}
}

/* The thread looks again at what it has to wait for. */
static void wake_thread(struct console *console)
{
	const uint64_t one = 1;

	(void)fd_write_all(console->end, &one, sizeof(one), NULL);
}

/* Wait until no other thread has lent the terminal to a program. The caller holds the lock. */
static void wait_for_return(struct console *console)
{
	while (console->lent > 0 && !pthread_equal(console->lender, pthread_self()))
		(void)pthread_cond_wait(&console->returned, &console->lock);
}

/* The terminal is this thread's, until as many returns. The caller holds the lock. */
static void lend(struct console *console)
{
	wait_for_return(console);
	console->lender = pthread_self();
	console->lent++;
}

static void take_return(struct console *console)
{
	(void)pthread_mutex_lock(&console->lock);
	if (--console->lent == 0)
		(void)pthread_cond_broadcast(&console->returned);
	(void)pthread_mutex_unlock(&console->lock);
}

static void console_set_mode(struct console *console, enum mode mode)
{
	(void)pthread_mutex_lock(&console->lock);
	wait_for_return(console);
	console->mode = mode;
	console->interrupted = false;
	apply(console);
	(void)pthread_mutex_unlock(&console->lock);
	/* It begins to read keys. */
	if (mode == MODE_WATCHING)
		wake_thread(console);
}

/*
 * Restore the terminal, stop the process, and return after SIGCONT. All threads, this one
 * too, run on for a moment after the kill. So this function waits until SIGCONT has
 * arrived, and the caller keeps the lock meanwhile.
 */
static void stand_still(struct console *console)
{
	struct pollfd pollfd = {.fd = console->signals, .events = POLLIN};
	enum mode mode = console->mode;
	struct signalfd_siginfo info = {0};

	console->mode = MODE_BEFORE;
	apply(console);
	console->mode = mode;
	(void)kill(getpid(), SIGSTOP);
	while (info.ssi_signo != SIGCONT) {
		if (poll(&pollfd, 1, -1) > 0)
			(void)!read(console->signals, &info, sizeof(info));
	}
}

/* Show the line that is edited while something runs. The caller holds the lock. */
static void show_meanwhile(struct console *console)
{
	if (console->line != NULL)
		live_set_line(console->live, console->line);
}

/* The process goes on after a stop: other programs may have used the terminal meanwhile. */
static void come_back(struct console *console)
{
	if (!in_foreground())
		return;
	if (console->away)
		live_show(console->live);
	else
		live_redraw(console->live);
	console->away = false;
}

static void take_signal(struct console *console)
{
	const uint64_t news = 1;
	struct signalfd_siginfo info;

	if (read(console->signals, &info, sizeof(info)) != sizeof(info))
		return;
	(void)pthread_mutex_lock(&console->lock);
	if (info.ssi_signo == SIGTSTP) {
		live_hide(console->live);
		console->away = true;
		stand_still(console);
		come_back(console);
	}
	if (info.ssi_signo == SIGWINCH) {
		live_resized(console->live, console->decides ? NULL : console->line);
	} else {
		apply(console);
		if (info.ssi_signo == SIGCONT)
			come_back(console);
	}
	(void)pthread_mutex_unlock(&console->lock);
	(void)fd_write_all(console->news, &news, sizeof(news), NULL);
}

/*
 * Remove the Escape at the end of BYTES when it is the key and does not begin a sequence:
 * no byte follows for TYPING_SEQUENCE_MS, or a second Escape follows (the key is held
 * or pressed again). True when an Escape was removed.
 */
static bool take_escape(char bytes[CONSOLE_READ_MAX], size_t *size)
{
	struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};

	while (*size > 0 && *size < CONSOLE_READ_MAX && bytes[*size - 1] == ESCAPE) {
		ssize_t got;

		if ((*size > 1 && bytes[*size - 2] == ESCAPE) ||
		    poll(&more, 1, TYPING_SEQUENCE_MS) == 0) {
			while (*size > 0 && bytes[*size - 1] == ESCAPE)
				--*size;
			return true;
		}
		got = read(STDIN_FILENO, bytes + *size, CONSOLE_READ_MAX - *size);
		if (got <= 0)
			break;
		*size += (size_t)got;
	}
	return false;
}

/* The colours of the present theme, for all who print. The caller holds the lock. */
static void apply_theme(struct console *console)
{
	const bool is_light = console->term.ground == TERM_GROUND_LIGHT;

	console->look.theme =
		console->follows_ground || console->chosen == NULL
			? theme_shipped(is_light ? "light" : "dark", theme_has_rgb())
			: &console->chosen->theme;
	live_set_theme(console->live, console->look.theme);
}

/* The terminal has told something. The caller holds the lock. */
static void take_answer(struct console *console, struct str answer)
{
	term_take(&console->term, answer);
	live_set_terminal(console->live, &console->term);
	apply_theme(console);
	set_keyboard(console);
}

/* Append the first line of WAITING, as it is shown. */
static void add_waiting(const struct waiting *waiting, struct buf *rows)
{
	struct str text = str_trim(buf_str(&waiting->text));
	struct buf shown, clean;

	buf_init(&shown, WAITING_ROW_MAX + INSETS_MAX * INSETS_LABEL_MAX);
	buf_init(&clean, PAINT_MAX);
	text = str_part(text, 0, str_find(text, STR("\n"), 0));
	insets_add_shown(&waiting->insets,
			 str_part(text, 0, text_character_border(text, WAITING_ROW_MAX)),
			 &shown);
	text = buf_str(&shown);
	paint_clean(str_part(text, 0, text_character_border(text, WAITING_ROW_MAX)), &clean);
	(void)buf_addf(rows, "%s: %s\n", waiting->steers ? "soon" : "then", clean.data);
	buf_fini(&clean);
	buf_fini(&shown);
}

static void show_waiting(struct console *console)
{
	struct buf rows;
	size_t named = 0;

	buf_init(&rows, LIVE_WAITING_MAX * 2 * WAITING_ROW_MAX);
	for (; named < console->waiting_count && named < LIVE_WAITING_MAX; named++)
		add_waiting(&console->waiting[named], &rows);
	if (named < console->waiting_count)
		(void)buf_addf(&rows, "and %zu more\n", console->waiting_count - named);
	if (console->quitting)
		(void)buf_adds(&rows, "then: the end\n");
	live_set(console->live, LIVE_WAITING, buf_str(&rows));
	buf_fini(&rows);
}

static void waiting_fini(struct waiting *waiting)
{
	buf_fini(&waiting->text);
	insets_clear(&waiting->insets);
}

/* The texts that wait come back into the line, before its own: nothing is sent unasked. */
static void take_back(struct console *console, size_t first)
{
	struct line *line = console->line;
	size_t behind, sum;

	if (first >= console->waiting_count)
		return;
	line_to_draft(line);
	behind = line->text.size - line->cursor;
	sum = insets_whole_size(&line->insets, buf_str(&line->text));
	for (size_t i = first; i < console->waiting_count; i++) {
		const struct waiting *waiting = &console->waiting[i];

		sum += insets_whole_size(&waiting->insets, buf_str(&waiting->text)) + 1;
	}
	if (sum > LINE_BYTES_MAX) {
		line_say_hint(line,
			      "too long for one line: {take-back} takes the last one back");
		return;
	}
	const bool had = line->text.size > 0;
	line->cursor = 0;
	line_insert(line, STR(""));
	for (size_t i = first; i < console->waiting_count; i++) {
		struct waiting *waiting = &console->waiting[i];

		line_insert_with(line, &waiting->insets, buf_str(&waiting->text));
		if (i + 1 < console->waiting_count || had)
			line_insert(line, STR("\n"));
		waiting_fini(waiting);
	}
	console->waiting_count = first;
	line->cursor = line->text.size - behind;
}

/* The line is sent: it waits. False: so many wait already that the person has to wait. */
static bool send_line(struct console *console, bool steers)
{
	struct line *line = console->line;
	const struct str text = buf_str(&line->text);
	struct waiting *waiting = &console->waiting[console->waiting_count];

	if (console->actor.order != NULL &&
	    console->actor.order(console->actor.context, str_trim(text))) {
		line_start(line);
		return true;
	}
	if (console->waiting_count == CONSOLE_WAITING_MAX) {
		struct buf hint;

		buf_init(&hint, PROMPT_MAX);
		(void)buf_addf(&hint, "%d texts wait already", CONSOLE_WAITING_MAX);
		keys_say(line->keys, ": {take-back} takes the last one back", &hint);
		line_set_hint(line, hint.data);
		buf_fini(&hint);
		return false;
	}
	auto_value struct value *pictures = line_pictures(line);
	/*
	 * A command is for us, and its time is between two turns. A picture goes with the prompt
	 * of a turn.
	 */
	waiting->steers = steers && !console->starts && pictures == NULL &&
			  !str_starts(str_trim(text), STR("/"));
	buf_init(&waiting->text, LINE_BYTES_MAX);
	insets_init(&waiting->insets);
	insets_move(&line->insets, text, &waiting->insets, &waiting->text);
	console->waiting_count++;
	line_start(line);
	return true;
}

/* Tab where there is nothing to complete. */
static bool completes_nothing(const struct line *line, size_t before)
{
	return line->text.size == before && line->hint.size == 0 &&
	       line->menu.count == 0 && str_trim(buf_str(&line->text)).size > 0;
}

/*
 * Escape: interrupt the present run, and take back what waits. SIGINT is sent only once: a second
 * one would end the program, as a second Ctrl+C does.
 */
static void interrupt_by_key(struct console *console)
{
	if (!console->interrupted)
		(void)kill(getpid(), SIGINT);
	console->interrupted = true;
	if (console->line == NULL)
		return;
	console->quitting = false;
	take_back(console, 0);
	show_waiting(console);
	show_meanwhile(console);
}

/* The conversation that has not begun is not to begin: its set-up ends as by a signal. */
static void give_up(struct console *console, bool quits)
{
	console->quitting = quits;
	/* A step of the set-up may have to be waited for. */
	line_say_hint(console->line, "the start ends; {interrupt} again ends it at once");
	(void)kill(getpid(), SIGINT);
}

/*
 * Ctrl+C or Escape before the conversation is there. The texts that wait come back first, as from
 * a run. False: KEY is for the line.
 */
static bool take_back_start(struct console *console, enum typing_key key)
{
	if (console->waiting_count > 0) {
		console->quitting = false;
		take_back(console, 0);
		return true;
	}
	if (key == TYPING_ESCAPE || console->line->text.size > 0)
		return false;
	give_up(console, false);
	return true;
}

static const char no_effect[] = "this key has no effect here";

/* Do what RESULT, the outcome of KEY while something runs, asks for. */
static void obey_meanwhile(struct console *console, enum typing_key key, size_t before,
			   enum line_result result)
{
	struct line *line = console->line;

	switch (result) {
	case LINE_GOES_ON:
		if (key == TYPING_TAB && completes_nothing(line, before))
			(void)send_line(console, false);
		break;
	case LINE_DONE:
		(void)send_line(console, key != TYPING_QUEUE);
		break;
	case LINE_QUIT:
		if (console->starts && console->waiting_count == 0)
			give_up(console, true);
		else
			console->quitting = !console->quitting;
		break;
	case LINE_CLEARED:
		live_clear(console->live);
		break;
	case LINE_SUSPENDED:
		break;
	case LINE_EDITOR:
		if (console->starts)
			line_set_hint(line, "your editor can open the text in a moment");
		else
			console->wants_editor = true;
		break;
	case LINE_REWIND:
	case LINE_VIEWER:
	case LINE_TASKS:
	case LINE_MODE:
		if (console->actor.act == NULL ||
		    !console->actor.act(console->actor.context, result, true))
			line_set_hint(line, no_effect);
		break;
	}
}

/*
 * Handle the keys that are not the line's while something runs. Those for which the terminal
 * sends a signal come here from one that sends a sequence for each key. False: KEY is another.
 */
static bool take_run_key(struct console *console, enum typing_key key, struct str typed)
{
	switch (key) {
	case TYPING_ANSWER:
		take_answer(console, typed);
		return true;
	case TYPING_TAKE_BACK:
		take_back(console,
			  console->waiting_count > 0 ? console->waiting_count - 1 : 0);
		return true;
	case TYPING_ESCAPE:
	case TYPING_INTERRUPT:
		if (console->starts)
			return take_back_start(console, key);
		if (key == TYPING_ESCAPE)
			interrupt_by_key(console);
		else
			(void)kill(0, SIGINT);
		return true;
	case TYPING_SUSPEND:
		(void)kill(0, SIGTSTP);
		return true;
	default:
		return false;
	}
}

/* Take the keys that have come, while something runs. The caller holds the lock. */
static void type_meanwhile(struct console *console)
{
	struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
	struct line *line = console->line;
	struct buf typed;
	enum typing_key key;

	buf_init(&typed, TYPING_MAX * 3);
	while (!console->wants_editor && typing_next(&console->typing, &key, &typed)) {
		const size_t before = line->text.size;

		if (!take_run_key(console, key, buf_str(&typed)))
			obey_meanwhile(console, key, before,
				       line_take(line, key, buf_str(&typed)));
		buf_clear(&typed);
	}
	buf_fini(&typed);
	/* A paste comes in thousands of pieces: do not draw after each of them. */
	if (poll(&more, 1, 0) > 0 && clock_now_ms() - console->drawn_ms < DRAW_EVERY_MS)
		return;
	show_waiting(console);
	show_meanwhile(console);
	console->drawn_ms = clock_now_ms();
}

static void add_bytes(struct console *console, struct str bytes)
{
	/* Where the kernel edits the lines, all of them come as those typed early. */
	if (console->early || !console->look.terminal)
		(void)typing_add_early(&console->typing, bytes);
	else
		(void)typing_add(&console->typing, bytes);
	console->early = false;
}

/*
 * Read keys while something runs. Escape interrupts; all others edit the line that is shown
 * below, or are kept for later where there is none.
 */
static void keep_keys(struct console *console)
{
	struct pollfd here = {.fd = STDIN_FILENO, .events = POLLIN};
	char bytes[CONSOLE_READ_MAX];
	ssize_t got = 0;
	size_t size;

	(void)pthread_mutex_lock(&console->lock);
	/*
	 * The other thread may have begun to read since the poll: look again under the
	 * lock.
	 */
	if (console->mode == MODE_WATCHING && poll(&here, 1, 0) > 0)
		got = read(STDIN_FILENO, bytes, sizeof(bytes));
	size = got > 0 ? (size_t)got : 0;
	/* At the start Escape is a key of the line. */
	const bool escaped = !console->starts && take_escape(bytes, &size);

	if (size > 0)
		add_bytes(console, (struct str){bytes, size});
	if (size > 0 && console->line != NULL)
		type_meanwhile(console);
	else if (got < 0 || (got == 0 && (here.revents & POLLHUP) != 0))
		console->mode = MODE_BEFORE;
	if (escaped)
		interrupt_by_key(console);
	(void)pthread_mutex_unlock(&console->lock);
}

/* No more bytes have come for the keys that wait for some. */
static void settle_keys(struct console *console)
{
	(void)pthread_mutex_lock(&console->lock);
	if (console->mode == MODE_WATCHING && console->line != NULL) {
		typing_settle(&console->typing);
		type_meanwhile(console);
	}
	(void)pthread_mutex_unlock(&console->lock);
}

/*
 * Does the thread take the keys? PATIENCE_MS gets how long those that have come can wait, NAMES_FD
 * the descriptor that tells of new names (-1: none).
 */
static bool is_watching(struct console *console, int *patience_ms, int *names_fd)
{
	bool watching;

	(void)pthread_mutex_lock(&console->lock);
	watching = console->look.terminal && console->mode == MODE_WATCHING;
	*patience_ms = watching && console->line != NULL
			       ? typing_patience_ms(&console->typing)
			       : -1;
	*names_fd = watching && console->line != NULL ? console->names_fd : -1;
	(void)pthread_mutex_unlock(&console->lock);
	return watching;
}

/* There are new names: offer those that fit to what is typed. */
static void offer_names(struct console *console, int names_fd)
{
	struct epoll_event event;

	if (epoll_wait(names_fd, &event, 1, 0) <= 0)
		return;
	(void)pthread_mutex_lock(&console->lock);
	if (console->mode == MODE_WATCHING && console->line != NULL) {
		line_offer(console->line);
		show_meanwhile(console);
	}
	(void)pthread_mutex_unlock(&console->lock);
}

/* Let the person edit the line in their own editor, on the console's thread, while something runs. */
static void edit_meanwhile(struct console *console)
{
	struct err err = {0};
	struct line *line;
	struct buf text;
	int wake_fd;

	(void)pthread_mutex_lock(&console->lock);
	line = console->wants_editor && console->mode == MODE_WATCHING && !console->decides
		       ? console->line
		       : NULL;
	console->wants_editor = false;
	wake_fd = console->wake_fd;
	if (line != NULL) {
		lend(console);
		/* The keys that have come since are for the editor. */
		typing_clear(&console->typing);
	}
	(void)pthread_mutex_unlock(&console->lock);
	if (line == NULL)
		return;
	buf_init(&text, LINE_BYTES_MAX);
	line_add_whole(line, &text);
	live_hold(console->live);
	const bool edited = lent_job_edit(console, &text, wake_fd, &err);
	(void)pthread_mutex_lock(&console->lock);
	if (edited)
		line_replace(line, buf_str(&text));
	else
		line_set_hint(line, err.text);
	show_meanwhile(console);
	(void)pthread_mutex_unlock(&console->lock);
	live_release(console->live);
	take_return(console);
	buf_fini(&text);
}

/* A counter of END_COUNT or more ends the thread; a smaller one only wakes it. */
enum { END_COUNT = 1 << 20 };

static void *console_run(void *argument)
{
	struct console *console = argument;
	struct pollfd fds[] = {
		{.fd = console->end, .events = POLLIN},
		{.fd = console->signals, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = -1, .events = POLLIN},
	};
	uint64_t count = 0;
	int patience_ms, ready;

	for (;;) {
		edit_meanwhile(console);
		fds[2].fd = is_watching(console, &patience_ms, &fds[3].fd) ? STDIN_FILENO
									   : -1;
		ready = poll(fds, sizeof(fds) / sizeof(fds[0]), patience_ms);
		if (ready == 0)
			settle_keys(console);
		if (ready <= 0)
			continue;
		if (fds[0].revents != 0 &&
		    read(console->end, &count, sizeof(count)) > 0 && count >= END_COUNT)
			return NULL;
		if (fds[1].revents != 0)
			take_signal(console);
		if (fds[2].fd >= 0 && fds[2].revents != 0)
			keep_keys(console);
		if (fds[3].fd >= 0 && fds[3].revents != 0)
			offer_names(console, fds[3].fd);
	}
}

/*
 * While the console is open, complaints on standard error are printed as all else is: above the
 * rows that change. Standard error that goes elsewhere than to this terminal stays as it is.
 */

/* For fopencookie. */
static ssize_t complain(void *cookie, const char *bytes, size_t size)
{
	struct console *console = cookie;

	return live_print(console->live, (struct str){bytes, size}) ? (ssize_t)size : 0;
}

static void take_complaints(struct console *console)
{
	const cookie_io_functions_t functions = {.write = complain};
	struct stat output, errors;

	if (!console->look.terminal || !isatty(STDERR_FILENO) ||
	    fstat(STDOUT_FILENO, &output) < 0 || fstat(STDERR_FILENO, &errors) < 0 ||
	    output.st_rdev != errors.st_rdev)
		return;
	console->complaints = fopencookie(console, "w", functions);
	if (console->complaints == NULL)
		return;
	(void)setvbuf(console->complaints, NULL, _IONBF, 0);
	console->errors = stderr;
	stderr = console->complaints;
}

static void give_back_complaints(struct console *console)
{
	if (console->complaints == NULL)
		return;
	stderr = console->errors;
	(void)fclose(console->complaints);
	console->complaints = NULL;
}

static bool start_thread(struct console *console, struct err *err)
{
	sigset_t set, all, before;
	int failed;

	(void)pthread_sigmask(SIG_SETMASK, NULL, &console->mask_before);
	terminal_prepare();
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGWINCH);
	(void)sigaddset(&set, SIGCONT);
	(void)sigaddset(&set, SIGTSTP);
	console->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	console->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	console->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (console->signals < 0 || console->news < 0 || console->end < 0)
		return err_set(err, errno, "signals of the terminal: %s", strerror(errno));
	(void)sigfillset(&all);
	(void)sigdelset(&all, SIGTTOU);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&console->thread, NULL, console_run, console);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed != 0)
		return err_set(err, failed, "watching the terminal: %s", strerror(failed));
	console->started = true;
	return true;
}

bool console_open(struct console **opened, struct err *err)
{
	struct console *console = memory_alloc(sizeof(*console));

	console->signals = console->news = console->end = -1;
	console->wake_fd = console->names_fd = -1;
	console->look = screen_options_of(STDOUT_FILENO);
	console->live = live_new(STDOUT_FILENO, &console->look);
	term_init(&console->term);
	(void)pthread_mutex_init(&console->lock, NULL);
	(void)pthread_cond_init(&console->returned, NULL);
	typing_init(&console->typing);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		(void)err_set(err, ENOTTY, "this needs a terminal on both sides");
	} else if (tcgetattr(STDIN_FILENO, &console->before) < 0) {
		(void)err_set(err, errno, "the terminal: %s", strerror(errno));
	} else if ((!console->look.terminal ||
		    terminal_guard_start(&console->guard, &console->before,
					 terminal_reset, err)) &&
		   start_thread(console, err)) {
		*opened = console;
		console_set_mode(console, MODE_WATCHING);
		take_complaints(console);
		return true;
	}
	console_close(console);
	return false;
}

bool console_open_if_any(struct console **opened, struct err *err)
{
	*opened = NULL;
	return !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || console_open(opened, err);
}

void console_ask(struct console *console)
{
	struct buf out;

	if (!console->look.terminal || console->asked || !term_may_ask())
		return;
	console->asked = true;
	buf_init(&out, PROMPT_MAX);
	(void)buf_adds(&out, term_questions);
	(void)buf_adds(&out, focus_on);
	console_write(out.data);
	buf_fini(&out);
}

void console_set_notify(struct console *console, enum notify_way way,
			const char *const *words)
{
	(void)pthread_mutex_lock(&console->lock);
	console->notify = way;
	for (size_t i = 0; i < NOTIFY_WORDS_MAX && words != NULL; i++) {
		free(console->notify_words[i]);
		console->notify_words[i] = words[i] != NULL ? memory_copy(words[i]) : NULL;
		if (words[i] == NULL)
			break;
	}
	(void)pthread_mutex_unlock(&console->lock);
}

void console_notify(struct console *console, const char *text)
{
	struct buf out;

	(void)pthread_mutex_lock(&console->lock);
	if (console->look.terminal && notify_is_due(&console->term)) {
		buf_init(&out, PROMPT_MAX);
		notify_add(console->notify, &console->term, text, &out);
		console_write(out.data);
		buf_fini(&out);
		/* A command that cannot be started is told when it is chosen. */
		if (console->notify == NOTIFY_COMMAND)
			(void)notify_start((const char *const *)console->notify_words,
					   text, NULL);
	}
	(void)pthread_mutex_unlock(&console->lock);
}

void console_set_theme(struct console *console, const struct theme *theme)
{
	(void)pthread_mutex_lock(&console->lock);
	console->follows_ground = theme == NULL;
	if (theme != NULL) {
		struct chosen *chosen = memory_alloc(sizeof(*chosen));

		*chosen = (struct chosen){*theme, console->chosen};
		console->chosen = chosen;
	}
	apply_theme(console);
	(void)pthread_mutex_unlock(&console->lock);
}

/*
 * The terminal may still be answering. A shell would take the answers for typed commands. The
 * thread keeps what is typed meanwhile.
 */
static void wait_for_answers(struct console *console)
{
	enum typing_key key;
	struct buf text;

	if (!console->asked)
		return;
	buf_init(&text, TYPING_MAX * 3);
	(void)pthread_mutex_lock(&console->lock);
	for (; typing_next(&console->typing, &key, &text); buf_clear(&text)) {
		if (key == TYPING_ANSWER)
			term_take(&console->term, buf_str(&text));
	}
	const bool answered = console->term.answered;
	(void)pthread_mutex_unlock(&console->lock);
	buf_fini(&text);
	if (!answered) {
		(void)poll(NULL, 0, TERMINAL_ANSWERS_MS);
		(void)tcflush(STDIN_FILENO, TCIFLUSH);
	}
}

void console_close(struct console *console)
{
	const uint64_t end = END_COUNT;

	if (console == NULL)
		return;
	give_back_complaints(console);
	if (console->started) {
		wait_for_answers(console);
		console_set_mode(console, MODE_BEFORE);
		(void)fd_write_all(console->end, &end, sizeof(end), NULL);
		(void)pthread_join(console->thread, NULL);
		(void)pthread_sigmask(SIG_SETMASK, &console->mask_before, NULL);
	}
	terminal_guard_end(&console->guard);
	fd_close(&console->signals);
	fd_close(&console->news);
	fd_close(&console->end);
	for (size_t i = 0; i < console->waiting_count; i++)
		waiting_fini(&console->waiting[i]);
	live_free(console->live);
	for (size_t i = 0; i < NOTIFY_WORDS_MAX; i++)
		free(console->notify_words[i]);
	while (console->chosen != NULL) {
		struct chosen *before = console->chosen->before;

		free(console->chosen);
		console->chosen = before;
	}
	typing_fini(&console->typing);
	(void)pthread_mutex_destroy(&console->lock);
	(void)pthread_cond_destroy(&console->returned);
	free(console);
}

struct live *console_live(struct console *console)
{
	return console->live;
}

struct keys *console_keys(struct console *console)
{
	return &console->typing.keys;
}

void console_set_actor(struct console *console, const struct console_actor *actor)
{
	(void)pthread_mutex_lock(&console->lock);
	console->actor = *actor;
	(void)pthread_mutex_unlock(&console->lock);
}

/* Let the person edit LINE below what is printed, on the thread. */
static void begin_line(struct console *console, struct line *line, int wake_fd, bool starts)
{
	if (!console->look.terminal)
		return;
	(void)pthread_mutex_lock(&console->lock);
	console->interrupted = false;
	console->line = line;
	console->wake_fd = wake_fd;
	console->starts = starts;
	if (starts)
		apply(console);
	else
		set_keyboard(console);
	live_start(console->live);
	show_waiting(console);
	show_meanwhile(console);
	/* Keys that have come already are the line's. Some may wait for more. */
	type_meanwhile(console);
	(void)pthread_mutex_unlock(&console->lock);
	wake_thread(console);
}

void console_begin(struct console *console, struct line *line)
{
	begin_line(console, line, -1, true);
	/* The person sees it now, and not when another thread gets a processor. */
	live_settle(console->live);
}

void console_work(struct console *console, struct line *line, int wake_fd)
{
	begin_line(console, line, wake_fd, false);
}

void console_offers(struct console *console, int names_fd)
{
	(void)pthread_mutex_lock(&console->lock);
	console->names_fd = names_fd;
	(void)pthread_mutex_unlock(&console->lock);
	wake_thread(console);
}

void console_rest(struct console *console)
{
	(void)pthread_mutex_lock(&console->lock);
	wait_for_return(console);
	if (console->line != NULL)
		live_stop(console->live);
	console->wants_editor = false;
	console->line = NULL;
	if (console->starts) {
		console->starts = false;
		apply(console);
	}
	set_keyboard(console);
	(void)pthread_mutex_unlock(&console->lock);
}

void console_hint(struct console *console, const char *sentence)
{
	(void)pthread_mutex_lock(&console->lock);
	if (console->line != NULL) {
		line_set_hint(console->line, sentence);
		show_meanwhile(console);
	} else {
		console_write(sentence);
		console_write("\n");
	}
	(void)pthread_mutex_unlock(&console->lock);
}

bool console_is_quitting(struct console *console)
{
	bool quitting;

	(void)pthread_mutex_lock(&console->lock);
	quitting = console->quitting;
	(void)pthread_mutex_unlock(&console->lock);
	return quitting;
}

void console_take_back(struct console *console)
{
	(void)pthread_mutex_lock(&console->lock);
	wait_for_return(console);
	/* After an Escape, which has taken them back, those that wait were sent since. */
	if (console->line != NULL && !console->interrupted) {
		take_back(console, 0);
		show_waiting(console);
		show_meanwhile(console);
	}
	(void)pthread_mutex_unlock(&console->lock);
}

bool console_take_waiting(struct console *console, bool steers, struct buf *text,
			  struct value **pictures)
{
	size_t at = 0;
	bool found;

	*pictures = NULL;
	(void)pthread_mutex_lock(&console->lock);
	while (steers && at < console->waiting_count && !console->waiting[at].steers)
		at++;
	found = at < console->waiting_count;
	if (found) {
		struct waiting *waiting = &console->waiting[at];

		(void)insets_add_whole(&waiting->insets, buf_str(&waiting->text), text);
		*pictures = insets_pictures(&waiting->insets, buf_str(&waiting->text));
		waiting_fini(waiting);
		console->waiting_count--;
		memmove(console->waiting + at, console->waiting + at + 1,
			(console->waiting_count - at) * sizeof(console->waiting[0]));
		if (console->line != NULL)
			show_waiting(console);
	}
	(void)pthread_mutex_unlock(&console->lock);
	return found;
}

/* Reading a line and asking a question. */

/* Show LINE, in the rows that are shown while something runs as well. */
static void show_line(struct console *console, const struct line *line)
{
	live_set_line(console->live, line);
	live_start(console->live);
}

enum wait {
	WAIT_KEYS,    /* keys have come */
	WAIT_NOTHING, /* no key came in time */
	WAIT_CHANGED, /* the size, or the process goes on after a stop */
	WAIT_WOKEN,
	WAIT_GONE,
};

static enum wait wait_for_keys(struct console *console, int wake_fd, int timeout_ms)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = console->news, .events = POLLIN},
		{.fd = wake_fd, .events = POLLIN},
	};
	char bytes[CONSOLE_READ_MAX];
	uint64_t count;
	ssize_t size;
	int ready;

	do {
		ready = poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms);
	} while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return WAIT_NOTHING;
	if (fds[2].revents != 0)
		return WAIT_WOKEN;
	if (fds[1].revents != 0) {
		(void)!read(console->news, &count, sizeof(count));
		return WAIT_CHANGED;
	}
	size = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (size < 0 && (errno == EINTR || errno == EAGAIN))
		return WAIT_CHANGED;
	if (size <= 0)
		return WAIT_GONE;
	add_bytes(console, (struct str){bytes, (size_t)size});
	return WAIT_KEYS;
}

/* The terminal has told something while the person types. */
static void answered(struct console *console, struct str answer)
{
	(void)pthread_mutex_lock(&console->lock);
	take_answer(console, answer);
	(void)pthread_mutex_unlock(&console->lock);
}

/* Take all keys that have come. LINE_GOES_ON: none of them ended the line. */
static enum line_result take_keys(struct console *console, struct line *line)
{
	enum line_result result = LINE_GOES_ON;
	struct buf typed;
	enum typing_key key;

	buf_init(&typed, TYPING_MAX * 3);
	while (result == LINE_GOES_ON && typing_next(&console->typing, &key, &typed)) {
		if (key == TYPING_ANSWER)
			answered(console, buf_str(&typed));
		else
			result = line_take(line, key, buf_str(&typed));
		buf_clear(&typed);
	}
	buf_fini(&typed);
	return result;
}

/*
 * Do what RESULT, the outcome of a key, asks for. False: the line is over, and *ANSWER
 * says how.
 */
static bool obey(struct console *console, enum line_result result,
		 enum console_answer *answer)
{
	switch (result) {
	case LINE_GOES_ON:
		break;
	case LINE_DONE:
		*answer = CONSOLE_LINE;
		return false;
	case LINE_QUIT:
		*answer = CONSOLE_QUIT;
		return false;
	case LINE_CLEARED:
		live_clear(console->live);
		break;
	case LINE_SUSPENDED:
		/*
		 * Stop the whole job, as the terminal itself does. The console's thread
		 * takes our own SIGTSTP, and the rows off the terminal.
		 */
		(void)kill(0, SIGTSTP);
		break;
	case LINE_EDITOR:
	case LINE_REWIND:
	case LINE_VIEWER:
	case LINE_TASKS:
	case LINE_MODE:
		break;
	}
	return true;
}

/* Let the person edit LINE in their own editor. */
static void edit_outside(struct console *console, struct line *line, int stop_fd)
{
	struct err err = {0};
	struct buf text;

	buf_init(&text, LINE_BYTES_MAX);
	line_add_whole(line, &text);
	live_stop(console->live);
	const bool edited = lent_job_edit(console, &text, stop_fd, &err);
	console_set_mode(console, MODE_TYPING);
	if (edited)
		line_replace(line, buf_str(&text));
	else
		line_set_hint(line, err.text);
	show_line(console, line);
	buf_fini(&text);
}

/* Let others carry out ACTION, between turns. The typed rows are off the screen meanwhile. */
static void act(struct console *console, struct line *line, enum line_result action)
{
	bool taken = false;

	if (console->actor.act != NULL) {
		live_stop(console->live);
		console_set_mode(console, MODE_WATCHING);
		taken = console->actor.act(console->actor.context, action, false);
		console_set_mode(console, MODE_TYPING);
		show_line(console, line);
	}
	if (!taken)
		line_set_hint(line, no_effect);
}

/* Wait once and act on the result. False: the line is over, and *ANSWER says how. */
static bool edit(struct console *console, int wake_fd, enum console_answer *answer)
{
	switch (wait_for_keys(console, wake_fd, typing_patience_ms(&console->typing))) {
	case WAIT_NOTHING:
		typing_settle(&console->typing);
		return true;
	case WAIT_KEYS:
	case WAIT_CHANGED:
		return true;
	case WAIT_WOKEN:
		*answer = CONSOLE_WOKEN;
		return false;
	case WAIT_GONE:
		*answer = CONSOLE_GONE;
		return false;
	}
	return false;
}

static enum console_answer read_edited(struct console *console, struct line *line,
				       int wake_fd, int stop_fd)
{
	struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
	enum console_answer answer = CONSOLE_QUIT;
	int64_t drawn_ms = 0;

	console_set_mode(console, MODE_TYPING);
	show_line(console, line);
	do {
		enum line_result result = take_keys(console, line);

		if (!obey(console, result, &answer))
			break;
		if (result == LINE_SUSPENDED)
			continue;
		if (result == LINE_EDITOR)
			edit_outside(console, line, stop_fd);
		else if (result > LINE_EDITOR)
			act(console, line, result);
		/*
		 * A paste comes in thousands of pieces: do not draw after each of them.
		 */
		if (poll(&more, 1, 0) <= 0 || clock_now_ms() - drawn_ms >= DRAW_EVERY_MS) {
			live_set_line(console->live, line);
			drawn_ms = clock_now_ms();
		}
	} while (edit(console, wake_fd, &answer));
	live_stop(console->live);
	console_set_mode(console, MODE_WATCHING);
	return answer;
}

/*
 * Read LINE as the kernel edits it (TERM=dumb). A backslash at the end of a row continues
 * the text here as well.
 */
static enum console_answer read_plain(struct console *console, struct line *line, int wake_fd)
{
	struct pollfd there = {.fd = STDIN_FILENO, .events = POLLIN};

	console->echoed = true;
	for (;;) {
		if (poll(&there, 1, 0) > 0)
			console->echoed = false;
		else
			console_write(line->text.size > 0 ? "  " : "> ");
		switch (wait_for_keys(console, wake_fd, -1)) {
		case WAIT_KEYS:
			if (take_keys(console, line) == LINE_DONE)
				return CONSOLE_LINE;
			break;
		case WAIT_WOKEN:
			return CONSOLE_WOKEN;
		case WAIT_GONE:
			return CONSOLE_QUIT;
		default:
			break;
		}
	}
}

bool console_echoed(const struct console *console)
{
	return console->echoed;
}

enum console_answer console_read(struct console *console, struct line *line, int wake_fd,
				 int stop_fd)
{
	if (console->quitting)
		return CONSOLE_QUIT;
	return console->look.terminal ? read_edited(console, line, wake_fd, stop_fd)
				      : read_plain(console, line, wake_fd);
}

/* For rows in the place of the line. */
static struct line_look look_of(const struct console *console)
{
	return (struct line_look){
		.columns = terminal_size().columns,
		.rows = live_rows(),
		.colour = console->look.colour,
		.unicode = console->look.unicode,
		.theme = console->look.theme,
		.keys = &console->typing.keys,
	};
}

/* Take all keys that have come. LIST_GOES_ON: none of them ended the choice. */
static enum list_result take_list_keys(struct console *console, struct list *list)
{
	enum list_result result = LIST_GOES_ON;
	struct buf typed;
	enum typing_key key;

	buf_init(&typed, TYPING_MAX * 3);
	while (result == LIST_GOES_ON && typing_next(&console->typing, &key, &typed)) {
		if (key == TYPING_ANSWER)
			answered(console, buf_str(&typed));
		else
			result = list_take(list, key, buf_str(&typed));
		buf_clear(&typed);
	}
	buf_fini(&typed);
	return result;
}

static bool pick_edited(struct console *console, struct list *list, int wake_fd)
{
	enum console_answer answer;
	enum list_result result;
	struct line_frame frame;

	line_frame_init(&frame);
	console_set_mode(console, MODE_TYPING);
	do {
		result = take_list_keys(console, list);
		if (result == LIST_CHOSEN || result == LIST_LEFT)
			break;
		if (result == LIST_CLEARED)
			(void)obey(console, LINE_CLEARED, &answer);
		if (result == LIST_SUSPENDED) {
			(void)obey(console, LINE_SUSPENDED, &answer);
			continue;
		}
		const struct line_look look = look_of(console);

		list_compose(&frame, list, &look);
		live_set_frame(console->live, &frame);
		if (!live_is_on(console->live))
			live_start(console->live);
	} while (edit(console, wake_fd, &answer));
	live_stop(console->live);
	line_frame_fini(&frame);
	console_set_mode(console, MODE_WATCHING);
	return result == LIST_CHOSEN;
}

/* Without cursor movement the items have numbers, and the person types one. */
static size_t pick_plain(struct console *console, const struct list *list, int wake_fd)
{
	struct buf rows;
	struct line line;
	uint64_t number = 0;

	buf_init(&rows, PAINT_MAX);
	list_print(list, &rows);
	(void)buf_adds(&rows, "Type a number, or 0 for none.\n");
	console_write(rows.data);
	buf_fini(&rows);
	line_init(&line, NULL, (struct line_completer){0});
	if (read_plain(console, &line, wake_fd) == CONSOLE_LINE) {
		auto_free char *typed = memory_copy_str(str_trim(buf_str(&line.text)));

		if (!text_parse_count(typed, list->count, &number, NULL))
			number = 0;
	}
	line_fini(&line);
	return number > 0 ? (size_t)number - 1 : SIZE_MAX;
}

size_t console_pick(struct console *console, struct list *list, int wake_fd)
{
	if (list->count == 0)
		return SIZE_MAX;
	if (!console->look.terminal)
		return pick_plain(console, list, wake_fd);
	return pick_edited(console, list, wake_fd) ? list_choice(list) : SIZE_MAX;
}

static void ask(const char *question, const char *const *choices, bool numbered)
{
	struct buf text, lines;

	buf_init(&lines, 2 * PROMPT_MAX);
	buf_init(&text, PROMPT_MAX);
	(void)buf_adds(&text, question);
	for (size_t i = 0; choices[i] != NULL; i++) {
		const char *before = i == 0 ? " " : ", ";

		if (numbered)
			(void)buf_addf(&text, "%s%zu %s", before, i + 1, choices[i]);
		else
			(void)buf_addf(&text, "%s[%c]%s", before, choices[i][0],
				       choices[i] + 1);
	}
	(void)buf_adds(&text, "? ");
	paint_fold_for(STDOUT_FILENO, buf_str(&text), &lines);
	console_write(lines.data);
	buf_fini(&lines);
	buf_fini(&text);
}

/* The index of the choice that KEY means; COUNT when KEY means none. */
static size_t choice_of(enum typing_key key, struct str typed, const char *const *choices,
			size_t count, bool numbered)
{
	switch (key) {
	case TYPING_ENTER:
	case TYPING_NEW_LINE:
	case TYPING_EDITOR:
	case TYPING_ESCAPE:
	case TYPING_INTERRUPT:
	case TYPING_CANCEL:
	case TYPING_EOF:
		return count - 1;
	case TYPING_TEXT:
		for (size_t i = 0; i < count && typed.size > 0; i++) {
			if ((typed.data[0] | 0x20) == choices[i][0] ||
			    (numbered && typed.data[0] == (char)('1' + i)))
				return i;
		}
		return count;
	default:
		return count;
	}
}

/* Read keys until one of them means a choice; returns its index. */
static size_t wait_for_choice(struct console *console, const char *const *choices,
			      size_t count, int wake_fd)
{
	size_t choice = count;
	struct buf typed;
	enum typing_key key;

	buf_init(&typed, TYPING_MAX * 3);
	while (choice == count) {
		enum wait came = wait_for_keys(console, wake_fd,
					       typing_patience_ms(&console->typing));

		if (came == WAIT_NOTHING)
			typing_settle(&console->typing);
		else if (came == WAIT_WOKEN || came == WAIT_GONE)
			choice = count - 1;
		while (choice == count && typing_next(&console->typing, &key, &typed)) {
			if (key == TYPING_ANSWER)
				answered(console, buf_str(&typed));
			else
				choice = choice_of(key, buf_str(&typed), choices, count,
						   console->look.reader);
			buf_clear(&typed);
		}
	}
	buf_fini(&typed);
	return choice;
}

/*
 * Modes that a program that was killed may have left on: another screen (47, which does not move the
 * cursor where it is off), no cursor, keys of the keypad, colours.
 */
static const char screen_back[] = "\x1b[?47l\x1b[?25h\x1b[?1l\x1b>\x1b[0m";

void console_lend(struct console *console)
{
	(void)pthread_mutex_lock(&console->lock);
	lend(console);
	(void)pthread_mutex_unlock(&console->lock);
	console_set_mode(console, MODE_BEFORE);
}

void console_take(struct console *console)
{
	if (console->look.terminal)
		console_write(screen_back);
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	console_set_mode(console, MODE_WATCHING);
	take_return(console);
}

enum { QUIET_TRIES = 50 };

/*
 * Keys that come before a question has been there for a while are no answer to it. A person who is in
 * the middle of a sentence has pressed the next key soon: the question waits until none has come for
 * as long.
 */
static void wait_for_quiet(void)
{
	struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};

	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	for (unsigned i = 0; i < QUIET_TRIES && poll(&keys, 1, CONSOLE_DEAF_MS) > 0 &&
			     (keys.revents & POLLIN) != 0;
	     i++)
		(void)tcflush(STDIN_FILENO, TCIFLUSH);
}

size_t console_choose(struct console *console, const char *question,
		      const char *const *choices, int wake_fd)
{
	size_t count = 0, choice;

	while (choices[count] != NULL)
		count++;
	live_hide(console->live);
	console_notify(console, "a question waits");
	console_set_mode(console, MODE_TYPING);
	ask(question, choices, console->look.reader);
	wait_for_quiet();
	typing_clear(&console->typing);
	choice = wait_for_choice(console, choices, count, wake_fd);
	typing_clear(&console->typing);
	console_write(choices[choice]);
	console_write("\n");
	console_set_mode(console, MODE_WATCHING);
	live_show(console->live);
	return choice;
}

bool console_shows(const struct console *console)
{
	return console->look.terminal && !console->look.reader;
}

/* Let a question take the place of the line, or give it back. */
static void set_decides(struct console *console, bool decides)
{
	(void)pthread_mutex_lock(&console->lock);
	console->decides = decides;
	if (decides && console->line == NULL)
		live_start(console->live);
	else if (!decides && console->line == NULL)
		live_stop(console->live);
	else if (!decides)
		show_meanwhile(console);
	(void)pthread_mutex_unlock(&console->lock);
}

static void draw_choice(struct console *console, const struct choice *choice,
			struct choice_state *state)
{
	const struct line_look look = look_of(console);
	struct line_frame frame;

	line_frame_init(&frame);
	choice_compose(choice, state, &look, &frame);
	live_set_frame(console->live, &frame);
	line_frame_fini(&frame);
}

/* Take the keys that have come, which may not count yet. True: *CHOSEN is an answer. */
static bool decide_by_keys(struct console *console, const struct choice *choice,
			   struct choice_state *state, size_t *chosen)
{
	bool decided = false;
	enum typing_key key;
	struct buf typed;

	buf_init(&typed, TYPING_MAX * 3);
	while (!decided && typing_next(&console->typing, &key, &typed)) {
		if (key == TYPING_ANSWER)
			answered(console, buf_str(&typed));
		else if (state->listens)
			decided = choice_take(choice, state, key, buf_str(&typed), chosen);
		buf_clear(&typed);
	}
	buf_fini(&typed);
	return decided;
}

size_t console_decide(struct console *console, const struct choice *choice, int wake_fd,
		      struct buf *words)
{
	size_t chosen = choice->safe;
	struct choice_state state;
	bool decided = false;
	int64_t until_ms;

	choice_begin(&state);
	console_notify(console, "a question waits");
	console_set_mode(console, MODE_TYPING);
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	typing_clear(&console->typing);
	set_decides(console, true);
	draw_choice(console, choice, &state);
	live_settle(console->live);
	until_ms = clock_now_ms() + CONSOLE_DEAF_MS;
	while (!decided) {
		draw_choice(console, choice, &state);
		const int64_t left_ms = until_ms - clock_now_ms();
		const enum wait came =
			wait_for_keys(console, wake_fd,
				      state.listens ? typing_patience_ms(&console->typing)
				      : left_ms > 0 ? (int)left_ms
						    : 0);

		if (came == WAIT_NOTHING)
			typing_settle(&console->typing);
		decided = came == WAIT_WOKEN || came == WAIT_GONE ||
			  decide_by_keys(console, choice, &state, &chosen);
		/* Keys that came before are none. */
		state.listens = state.listens || clock_now_ms() >= until_ms;
	}
	(void)buf_addstr(words, str_trim(buf_str(&state.words.text)));
	choice_end(&state);
	typing_clear(&console->typing);
	set_decides(console, false);
	console_set_mode(console, MODE_WATCHING);
	return chosen;
}
