/*
 * shell_words: the simple commands of a shell text, roughly: enough to recognise which
 * programs it starts by name. It decides nothing about safety (the cell contains); a text
 * it reads wrongly is run all the same. What decides is policy/command.h, over the same tokens.
 */
#pragma once
#include "base/shell_token.h"

#include <stdbool.h>
#include <stddef.h>

enum { SHELL_WORDS_MAX = 64 }; /* further words of one command are not looked at */

struct shell_command {
	struct str words[SHELL_WORDS_MAX]; /* as written, quotes included */
	size_t count;
	bool input_given;  /* from a pipe, a file or a here-document */
	bool output_taken; /* by a pipe or a file */
};

struct shell_scan {
	struct shell_lexer lexer;
	size_t open; /* "(" not yet closed */
	bool after_pipe;
	bool here_document; /* one begins on this line: what follows the line is data */
	bool ended;
};
void shell_scan_init(struct shell_scan *scan, struct str text);
/*
 * The next simple command, without assignments and the words before its name (`if`,
 * `sudo`, `env` …).
 */
bool shell_next(struct shell_scan *scan, struct shell_command *command);

/* The last name in WORD after its slashes: "/usr/bin/vim" is "vim". */
struct str shell_program(struct str word);
