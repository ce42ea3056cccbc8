/*
 * shell_words: the simple commands of a shell text, as far as they can be seen without running
 * it: which programs it starts by name, with which words. Nothing about safety follows from it
 * (the cell contains): a program's own programs, and the words that only the shell knows, are
 * not seen. policy/command.h is strict over the same tokens.
 */
#pragma once
#include "base/text/shell_token.h"

#include <stdbool.h>
#include <stddef.h>

/* Both lists are the scan's, and good until its next command. */
struct shell_command {
	const struct str *words; /* as written, quotes included */
	const struct str *values; /* without quotes, ended by NUL; NULL data: only the shell knows */
	size_t count;
	size_t depth;      /* subshells around it: "(" not yet closed */
	bool input_given;  /* from a pipe, a file or a here-document */
	bool output_taken; /* by a pipe or a file */
};

/* Here-documents of one line; the text behind more of them is not looked at. */
enum { SHELL_DOCUMENTS_MAX = 8 };

struct shell_document {
	struct str end; /* the line that ends it */
	bool tabs;      /* "<<-": tabs before its lines do not count */
};

struct shell_scan {
	struct shell_lexer lexer;
	char *values;
	struct str *word_room, *value_room;
	size_t room;
	size_t open; /* "(" not yet closed */
	bool after_pipe;
	struct shell_document documents[SHELL_DOCUMENTS_MAX]; /* that begin on this line */
	size_t document_count;
	bool ended;
};

void shell_scan_init(struct shell_scan *scan, struct str text);
void shell_scan_fini(struct shell_scan *scan);
/*
 * The next simple command, without assignments and the words before its name (`if`,
 * `sudo`, `env`, `timeout 5` …). Here-documents are passed over.
 */
bool shell_scan_next(struct shell_scan *scan, struct shell_command *command);

/* Take assignments and the words before its name off COMMAND. */
void shell_command_strip(struct shell_command *command);

/* The text that COMMAND hands to another shell (`bash -c TEXT`, `eval TEXT`), if it can be seen. */
bool shell_command_inner(const struct shell_command *command, struct str *text);

/* The last name in WORD after its slashes: "/usr/bin/vim" is "vim". */
struct str shell_words_program(struct str word);

/* The word AT without its quotes; as it is written when only the shell knows what it says. */
struct str shell_command_value(const struct shell_command *command, size_t at);

/* Where the subcommand of git stands in COMMAND, behind git's own options; `count`: nowhere. */
size_t shell_command_git(const struct shell_command *command);
