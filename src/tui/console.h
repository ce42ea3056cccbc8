/*
 * console: the person's terminal during a conversation. The person edits lines on it, also while
 * something runs (live.h), and answers questions. Escape interrupts as Ctrl+C does. The
 * settings of the terminal are restored on every way out: the end, a signal, a stop
 * (Ctrl+Z), a crash or a kill.
 *
 * On a terminal without cursor movement (TERM=dumb) lines are read as the kernel edits
 * them. On any other, text that this process prints to standard error while the console
 * is open goes above the rows that change, when standard error is the same terminal.
 *
 * Only one thread may use a console. Open it before any other thread is started: from
 * then on the signals of window and job control go to the console's own thread.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "tui/line.h"
#include "tui/notify.h"

#include <stdbool.h>
#include <stddef.h>

struct choice;
struct console;
struct keys;
struct live;
struct theme;
struct value;

/*
 * Open the console. Fails, with *CONSOLE NULL, when standard input or output is no
 * terminal.
 */
bool console_open(struct console **console, struct err *err);
/*
 * Ask the terminal what it is (term.h), and go on: what its answers change is changed when they
 * come. Only once.
 */
void console_ask(struct console *console);
/*
 * Give what is printed from now on the colours of THEME, which is copied. NULL: `dark` or `light`,
 * as the terminal's ground is.
 */
void console_set_theme(struct console *console, const struct theme *theme);
/*
 * Tell a person who looks elsewhere that a question waits, and what console_notify says, in this
 * WAY (notify.h). WORDS: of the command, NULL-ended, copied; or NULL.
 */
void console_set_notify(struct console *console, enum notify_way way,
			const char *const *words);
void console_notify(struct console *console, const char *text);
/* console_open where there is a terminal; else *CONSOLE is NULL, and that is no error. */
bool console_open_if_any(struct console **console, struct err *err);
void console_close(struct console *console); /* restores the terminal; NULL is fine */

enum console_answer {
	CONSOLE_LINE, /* a line was typed; the screen no longer shows it */
	CONSOLE_QUIT, /* the person wants to end the conversation */
	CONSOLE_GONE, /* the terminal is gone */
	CONSOLE_WOKEN /* the descriptor became readable */
};

/* The keys of the person's file; what is typed from now on obeys them. */
struct keys *console_keys(struct console *console);

/*
 * The actions of keys that others carry out: LINE_REWIND and those behind it. Between turns ACT
 * is called by console_read, with the typed rows off the screen, and may use the console. While
 * something runs (RUNS) the console's own thread calls it: it then must return soon, and may use
 * console_live, but not the console. False: nothing takes ACTION here, and a hint says so.
 */
struct console_actor {
	bool (*act)(void *context, enum line_result action, bool runs);
	/*
	 * The person sends TEXT while something runs, on the console's own thread as above. False:
	 * TEXT is for what runs, or waits. May be NULL.
	 */
	bool (*order)(void *context, struct str text);
	void *context;
};
void console_set_actor(struct console *console, const struct console_actor *actor);

/*
 * Let the person edit LINE, from its present text, until Enter. Return early when WAKE_FD
 * (-1: none) becomes readable; LINE keeps its text, and may be read again. The person's editor
 * (LINE_EDITOR) does not see WAKE_FD: it is ended when STOP_FD (-1: none) becomes readable.
 */
enum console_answer console_read(struct console *console, struct line *line, int wake_fd,
				 int stop_fd);

/*
 * Does the line that console_read has given stand on the terminal behind its mark,
 * because the kernel has echoed it there? One that was typed before the mark was printed
 * does not.
 */
bool console_echoed(const struct console *console);

/* Texts that may wait at the same time. */
enum { CONSOLE_WAITING_MAX = 20 };

/*
 * While something runs, the person edits LINE below what is printed, until console_rest.
 * Enter sends the text to what runs (it steers), Tab without anything to complete keeps
 * it for the time after, as it does with a command; Alt+Up takes the last one back.
 * Escape interrupts, and what waits is in the line again. Ctrl+D in an empty line ends
 * the conversation after what runs. The rest of LINE stays there. The person's editor
 * (LINE_EDITOR) has the terminal while what runs goes on, and what it prints waits; the
 * editor is ended when WAKE_FD becomes readable. Does nothing on a terminal without
 * cursor movement: there, keys wait.
 */
void console_work(struct console *console, struct line *line, int wake_fd);
/*
 * While something runs: NAMES_FD (an epoll; -1: none) is readable when there are new words to complete
 * LINE with, which it then offers. It must tell of each news once (EPOLLONESHOT).
 */
void console_offers(struct console *console, int names_fd);
/* The work is over. Waits for the end of an editor, as all do who want the terminal. */
void console_rest(struct console *console);
/*
 * While something runs: show SENTENCE, ours or clean, below the line until the next key.
 * Where no line is shown it is printed.
 */
void console_hint(struct console *console, const char *sentence);
/*
 * The same before the conversation is there: LINE is shown when this returns, and each
 * text that is sent waits. Ctrl+C and Escape take back what waits; where nothing waits
 * they edit LINE, and Ctrl+C or Ctrl+D in an empty line sends SIGINT to this process.
 * Until console_rest.
 */
void console_begin(struct console *console, struct line *line);
/* The person wants the end by Ctrl+D, after what waits. */
bool console_is_quitting(struct console *console);
/* A run has ended badly: the texts that wait are in the line again, and are not sent unasked. */
void console_take_back(struct console *console);
/*
 * Append to TEXT the oldest text that waits; STEERS: for what runs. *PICTURES gets its pictures,
 * which the caller frees, or NULL; a text for what runs has none. Any thread may ask. False:
 * none waits.
 */
bool console_take_waiting(struct console *console, bool steers, struct buf *text,
			  struct value **pictures);
/* Where what is printed meanwhile has to go. It prints at once when nothing runs. */
struct live *console_live(struct console *console);

/*
 * Put the terminal back for a program that has it for a while, and take it again.
 * Whatever that program has left, the modes and the screen are those of a conversation then. Keys
 * that were not read are thrown away: they were for the program.
 */
void console_lend(struct console *console);
void console_take(struct console *console);

/*
 * Let the person choose one of CHOICES ("once", "session", "no"; NULL-ended) by its first
 * letter. The last choice must be the safe one: Enter, Escape, Ctrl+C, Ctrl+D and
 * anything else that ends the question choose it. QUESTION is one short line of ours; the
 * caller shows its subject before. Keys count when the question has been shown for
 * CONSOLE_DEAF_MS and none has come meanwhile: those before were not meant as an answer.
 * The function may be called between lines and while something runs.
 *
 * Returns the index of the choice. The question and the answer stay on the screen.
 */
size_t console_choose(struct console *console, const char *question,
		      const char *const *choices, int wake_fd);

struct list;
/*
 * Let the person choose an item of LIST, in place of the editor, between turns. Returns its
 * number; SIZE_MAX: none was chosen, or WAKE_FD (-1: none) became readable. On a terminal
 * without cursor movement the items are printed with numbers, and the person types one.
 */
size_t console_pick(struct console *console, struct list *list, int wake_fd);

/*
 * The same for CHOICE (region/choice.h), which is shown in the place of the line that is typed
 * and is gone afterwards. Keys count from CONSOLE_DEAF_MS after it was drawn. The end of a
 * question chooses the safe answer. CHOICE_VIEW comes when the person asks for the viewer: the
 * caller asks again afterwards. WORDS gets what was typed with the answer. Only where
 * console_shows.
 */
enum { CONSOLE_DEAF_MS = 300 };
size_t console_decide(struct console *console, const struct choice *choice, int wake_fd,
		      struct buf *words);
/* Can the terminal show rows that change? */
bool console_shows(const struct console *console);
