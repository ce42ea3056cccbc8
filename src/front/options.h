/*
 * options: parses the command line by a table of rows. A row has an option's name, its
 * kind of value and its line of help. The same rows are used for parsing and for
 * `--help`. Long options take their value after "=" or as the next word; `--` ends the
 * options.
 */
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_kind {
	OPTION_FLAG = 1,
	OPTION_TEXT,
	OPTION_TEXTS,   /* may be given several times */
	OPTION_WORDS,   /* like OPTION_TEXT, but may be empty */
	OPTION_COUNT,   /* an integer >= 1 */
	OPTION_SECONDS, /* a number >= 0, fractions allowed */
	OPTION_AMOUNT,  /* a decimal number > 0 */
	OPTION_LEVEL,   /* L0 to L3; its digit is the count */
};

/*
 * Sets of names that the program knows. A value, or a first word, is one of such a set
 * (verb_complete.c).
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
	NAMES_QUESTIONS, /* of --ask */
	NAMES_LEVELS,
	NAMES_SHELLS,
};

/* A table of rows ends with {0}. */
struct option_row {
	const char *name; /* without its dashes */
	char letter;      /* 0: none */
	enum option_kind kind;
	const char *value; /* the word for the value in the help: "DIR" */
	const char *help;
	enum option_names names; /* the set that its value is from */
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
#define OPTION_ROW_LEVEL                                                         \
	{                                                                        \
		"minimum-level", 0, OPTION_LEVEL, "L",                           \
			"allow a weaker cell, down to level L (L3, L2, L1, L0)", \
			NAMES_LEVELS                                             \
	}
#define OPTION_ROW_AGENT                                                          \
	{                                                                         \
		"agent", 'a', OPTION_TEXT, "NAME",                                \
			"work as this agent, with its rights (default: default)", \
			NAMES_AGENTS                                              \
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
#define OPTION_ROW_HELP                                           \
	{                                                         \
		"help", 'h', OPTION_FLAG, NULL, "print this help" \
	}

/* Most rows of one verb. */
enum { OPTIONS_MAX = 24 };

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
/* Replace the value of --NAME, which was given, by TEXT (borrowed). */
void options_replace(struct options *options, const char *name, const char *text);
/* Set --NAME to TEXT (borrowed) when the option was not given. */
void options_fill(struct options *options, const char *name, const char *text);
uint64_t options_count(const struct options *options, const char *name, uint64_t absent);
double options_seconds(const struct options *options, const char *name, double absent);
double options_amount(const struct options *options, const char *name, double absent);

/*
 * The row of WORD ("--name", "--name=x", "-C", "-Cx"), or NULL. *APART: the value of the
 * option is the next word. Used to find the verb behind options.
 */
const struct option_row *options_find(const struct option_row *rows, const char *word,
				      bool *apart);
