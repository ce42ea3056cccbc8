/*
 * command: a shell text as plain argument vectors. It accepts the part of bash in which
 * a text says exactly what will run: words and quotes, && || ; | and line ends, comments.
 * Everything else is "not literal", with the place and the reason. Where a text is literal,
 * bash would run exactly these vectors (a test compares them on random texts). Pure; one pass.
 *
 * base/text/shell.c has the words, and this module has what they mean together. Rows
 * are tested in tests/unit/policy/command_test.c, and `make gate` compares with bash.
 */
#pragma once
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	COMMAND_TEXT_MAX = 1 << 20, /* a longer text is a program and belongs in a file */
	COMMAND_PARTS_MAX = 256,    /* commands in one text */
};

/* The operator between a command and the one before it. */
enum command_join {
	COMMAND_THEN, /* ; or a line end, or the first command */
	COMMAND_AND,
	COMMAND_OR,
	COMMAND_PIPE
};
/* ";", "&&", "||", "|" */
extern const char *const command_joins[];

struct command_part {
	enum command_join join;
	const char *const *argv; /* NULL-ended, at least one; [0] may be empty */
	size_t argc;
	struct str text; /* as written */
};

struct command {
	struct command_part *parts;
	size_t count;
	bool literal;
	/* When the text is not literal: the place, and the reason. */
	size_t at;
	const char *reason; /* a clause: "a redirection (<, >)" */
	const char *remedy; /* a sentence */
	char *values;
	const char **words;
};

/* Fill COMMAND; true when TEXT is literal. command_fini in either case. */
bool command_parse(struct command *command, struct str text);
void command_fini(struct command *command);
