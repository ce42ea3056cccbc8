/*
 * verb: the words of the command line. A verb is one file with one `struct verb`, and a
 * row in verbs.def; usage, help, parsing and the refusal of unknown options come from this
 * record.
 *
 * A new verb also has its place in the manual page (docs/man/) and cases in
 * tests/fronts/.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Parses the command line by a table of rows. A row has an option's name, its kind of
 * value and its line of help. The same rows are used for parsing and for `--help`. Long
 * options take their value after "=" or as the next word; `--` ends the options.
 */

enum option_kind {
	OPTION_FLAG = 1,
	OPTION_MAYBE, /* a flag that takes a value behind "=" only */
	/*
	 * takes its value behind "=", or as the next word; a flag when no word follows, an
	 * option does, or an option of `alone` stands before it
	 */
	OPTION_EITHER,
	OPTION_TEXT,
	OPTION_TEXTS,   /* may be given several times */
	OPTION_WORDS,   /* like OPTION_TEXT, but may be empty */
	OPTION_COUNT,   /* an integer >= 1 */
	OPTION_SECONDS, /* a number >= 0, fractions allowed */
	OPTION_AMOUNT,  /* a decimal number > 0 */
	OPTION_LEVEL,   /* L0, L2 or L3; its digit is the count */
};

/*
 * Sets of names that the program knows. A value, or a first word, is one of such a set.
 */
enum option_names {
	NAMES_NONE,
	NAMES_AGENTS,
	NAMES_MODELS,
	NAMES_TOOLS,
	NAMES_SESSIONS,
	NAMES_PATCHES,
	NAMES_SCHEDULES,
	NAMES_VERBS,
	NAMES_CLIENTS,   /* of mcp --install */
	NAMES_PROFILES,  /* of wrap: those that are built in */
	NAMES_QUESTIONS, /* of --ask */
	NAMES_LEVELS,
	NAMES_SHELLS,
	NAMES_FORMATS,  /* of --output-format */
	NAMES_MODES,    /* of --mode */
	NAMES_THINKING, /* of --thinking */
	NAMES_COSTS,    /* of cost --by */
	NAMES_CELLS,    /* of start */
};

/* The values of `cost --by`. */
#define VERB_COST_GROUPS "model agent folder day"

/* A table of rows ends with {0}. */
struct option_row {
	const char *name; /* without its dashes */
	char letter;      /* 0: none */
	enum option_kind kind;
	const char *value; /* the word for the value in the help: "DIR" */
	const char *help;
	enum option_names names; /* the set that its value is from */
	const char *alone; /* of OPTION_EITHER: names of options, separated by blanks */
};

/* Rows that several verbs have. */
#define OPTION_ROW_WORKSPACE                                             \
	{                                                                \
		"workspace", 'C', OPTION_TEXT, "DIR",                    \
			"the folder to work in (default: where you are)" \
	}
#define OPTION_ROW_CONFIG                                             \
	{                                                             \
		"config", 0, OPTION_TEXT, "FILE",                     \
			"read this configuration instead of your own" \
	}
#define OPTION_ROW_LEVEL                                                                  \
	{                                                                                 \
		"minimum-level", 0, OPTION_LEVEL, "L",                                    \
			"allow a weaker cell, down to level L (L3, L2, L0)", NAMES_LEVELS \
	}
#define OPTION_ROW_AGENT                                                          \
	{                                                                         \
		"agent", 'a', OPTION_TEXT, "NAME",                                \
			"work as this agent, with its rights (default: default)", \
			NAMES_AGENTS                                              \
	}
#define OPTION_ROW_MODE                                                                     \
	{                                                                                   \
		"mode", 0, OPTION_TEXT, "MODE",                                             \
			"auto, ask before each write and command, or plan: change nothing " \
			"(default: the agent's)",                                           \
			NAMES_MODES                                                         \
	}
#define OPTION_ROW_ALLOW_HOST                                              \
	{                                                                  \
		"allow-host", 0, OPTION_TEXTS, "HOST",                     \
			"let commands reach HOST, HOST:PORT, *.SUFFIX or " \
			"tcp://HOST:PORT (may be repeated)"                \
	}
#define OPTION_ROW_ASK                                                         \
	{                                                                      \
		"ask", 0, OPTION_TEXTS, "WHAT",                                \
			"ask me where it would refuse: commands that no rule " \
			"lists, network (hosts), read, write (folders "        \
			"outside; may be repeated)",                           \
			NAMES_QUESTIONS                                        \
	}
#define OPTION_ROW_BASE                                                       \
	{                                                                     \
		"base", 0, OPTION_TEXT, "WORD",                               \
			"the root of the cell: host, rootfs:DIR, image:REF, " \
			"oci:DIR:TAG, snapshot:NAME or devcontainer[:FILE]"   \
	}
#define OPTION_ROW_AT                                                                       \
	{                                                                                   \
		"at", 0, OPTION_TEXT, "PATH",                                               \
			"show the workspace at PATH as well, and begin there (as /testbed)" \
	}
#define REVIEW_OPTION "review"
#define OPTION_ROW_REVIEW                                                              \
	{                                                                              \
		REVIEW_OPTION, 0, OPTION_MAYBE, "ID",                                  \
			"write into a layer for you to land or drop, or go on with ID" \
	}
#define NO_REVIEW_OPTION "no-review"
#define OPTION_ROW_NO_REVIEW                                                          \
	{                                                                             \
		NO_REVIEW_OPTION, 0, OPTION_FLAG, NULL,                               \
			"write into the folder itself, though the agent has `review`" \
	}
#define OPTION_ROW_HELP                                           \
	{                                                         \
		"help", 'h', OPTION_FLAG, NULL, "print this help" \
	}

/* Most rows of one verb. */
enum { OPTIONS_MAX = 48 };

struct option_value {
	bool given;
	const char *text;   /* as written; of the last use */
	const char **texts; /* of all uses, NULL-ended; the caller keeps the texts */
	size_t text_count;
	uint64_t count;
	double seconds, amount;
};

struct options {
	const struct option_row *rows;
	struct option_value values[OPTIONS_MAX];
	const char **words; /* without options, NULL-ended; the caller keeps the texts */
	size_t word_count;
	const char *verb; /* the name of the verb that runs; NULL: none does yet */
};

/*
 * Parse WORDS (NULL-ended). WORDS_END_IT: all words behind the first word that is no
 * option are no options either. ERR names the option and the most similar one that
 * exists. Call options_fini in either case.
 */
bool options_parse(struct options *options, const struct option_row *rows,
		   const char *const *words, bool words_end_it, struct err *err);
void options_fini(struct options *options);

/*
 * The following functions find an option by NAME. A NAME without a row is a mistake in
 * our code.
 */
bool options_given(const struct options *options, const char *name);
/* All values of the repeatable option NAME, NULL-ended. */
const char *const *options_texts(const struct options *options, const char *name);
const char *options_text(const struct options *options, const char *name); /* NULL: not given */
/* Set --NAME to TEXT (borrowed); NULL: it was not given. */
void options_set(struct options *options, const char *name, const char *text);
/* Set --NAME to TEXT (borrowed) when the option was not given. */
void options_fill(struct options *options, const char *name, const char *text);
uint64_t options_count(const struct options *options, const char *name, uint64_t absent);
double options_seconds(const struct options *options, const char *name, double absent);
double options_amount(const struct options *options, const char *name, double absent);

/*
 * The given options as words that options_parse reads again, for another process of our
 * program. The caller frees the list.
 */
struct value *options_words(const struct options *options);

/*
 * The row of WORD ("--name", "--name=x", "-C", "-Cx"), or NULL. *APART: the value of the
 * option is the next word. Used to find the verb behind options.
 */
const struct option_row *options_find(const struct option_row *rows, const char *word,
				      bool *apart);

struct verb {
	const char *name;                 /* "run", or a group and a word: "tool call" */
	const char *summary;              /* one line, no full stop */
	const char *arguments;            /* "NAME [JSON|-]"; "" when there are none */
	const char *help;                 /* lines of at most 78 characters */
	const char *example;              /* lines as they are typed */
	const struct option_row *options; /* ends with {0} */
	size_t words_least, words_most;
	enum option_names names; /* the set that its first word is from */
	bool words_end_options;  /* words behind the first one are not parsed */
	bool folds; /* its output for people is folded on a terminal (paint.h) */
	/*
	 * Returns an exit code. The options are parsed and the number of
	 * words is checked before. The verb prints on OUT, which folds when `folds` is
	 * set.
	 */
	int (*run)(const struct options *options, FILE *out);
};

/* Any number of words. */
#define VERB_WORDS_ANY ((size_t)-1)

/* In the order of the help; NULL ends it. */
extern const struct verb *const verbs[];

/* Each verb of the table by its name: verb_run. */
#define VERB(name, file) extern const struct verb verb_##name;
#include "front/verbs.def"
#undef VERB

/*
 * Find the verb in WORDS (the program's arguments, NULL-ended), parse the other words by
 * its rows, and run the verb.
 */
int verb_dispatch(const char *const *words);

/* Print the foreign TEXT, made safe for a terminal, in at least WIDTH columns. */
void verb_print_name(const char *text, int width, FILE *out);

/*
 * Read the value of --since: a time before now ("30m", "12h", "7d", "2w"), or the beginning of a
 * day ("2026-11-23").
 */
bool verb_read_since(const char *text, int64_t *since_ms, struct err *err);

/* The folder of temporary folders: TMPDIR, or /tmp. */
const char *verb_temp_parent(void);
/* How their names begin, before the name of the verb. */
#define VERB_TEMP_PREFIX "glovebox-"
/* Make a new folder for the front below TMPDIR (or /tmp), named after VERB. */
bool verb_temp_folder(const char *verb, struct buf *folder, struct err *err);

/*
 * Print "glovebox: sentence" and a line end on standard error, cleaned (text_clean).
 * Returns CODE.
 */
int verb_complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * A line on standard error that says how far long work is; only on a terminal, and only when the
 * work has taken half a second. Begin with {0} when the work begins. Show it as often as you like.
 */
struct verb_progress {
	int64_t began_ms, shown_ms; /* monotonic; 0: not yet */
};
void verb_progress_show(struct verb_progress *progress, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Take the line away, before anything else is printed. The next work may begin. */
static inline void verb_progress_end(struct verb_progress *progress)
{
	if (progress->shown_ms != 0)
		(void)fputs("\r\033[K", stderr);
	*progress = (struct verb_progress){0};
}

/*
 * Write all that was printed on OUT. Returns CODE. When writing failed and CODE is
 * CODE_DONE, prints a complaint and returns CODE_FAILED; a reader that has gone is no
 * failure. main calls this function for stdout after each verb, so a verb does not need
 * to.
 */
int verb_printed(int code, FILE *out);
/* Print VALUE (by enum value_flags) and a line end on OUT; returns as verb_printed. */
int verb_print_json(const struct value *value, unsigned flags, FILE *out);

/* The meanings of the program's exit status, the same for every verb. */

enum exit_code {
	CODE_DONE = 0,
	CODE_FAILED = 1,
	CODE_USAGE = 2,
	CODE_LIMIT = 3,
	CODE_DENIED = 4,
	CODE_NO_CELL = 5,
	CODE_TIMED_OUT = 124,
	/*
	 * Only `exec` returns the next three, because its program may use 1 to 5 itself.
	 * env(1) and timeout(1) do the same.
	 */
	CODE_EXEC_NO_CELL = 125,
	CODE_EXEC_NOT_EXECUTABLE = 126,
	CODE_EXEC_NOT_FOUND = 127,
	CODE_SIGNAL = 128, /* plus the signal's number */
	CODE_CANCELLED = 130,
};
