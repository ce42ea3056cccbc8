/*
 * shell: a text of bash in tokens: words, operators, line ends. The one place that
 * knows how bash cuts a text up; what the tokens mean together is decided by others
 * (policy/command.h is strict; the commands that can be seen, below, are a guess).
 * Nothing is expanded: a word whose arguments only the shell itself can know is told
 * from a literal one, with the reason.
 *
 * A program that starts the one it is given (`sudo`) is a row in shell.c.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum shell_kind {
	SHELL_END,
	SHELL_WORD,
	SHELL_NEWLINE,
	SHELL_SEMICOLON,
	SHELL_AND,         /* && */
	SHELL_OR,          /* || */
	SHELL_PIPE,        /* | */
	SHELL_PIPE_BOTH,   /* |& */
	SHELL_BACKGROUND,  /* & */
	SHELL_CASE_END,    /* ;; ;& ;;& */
	SHELL_OPEN,        /* ( */
	SHELL_CLOSE,       /* ) */
	SHELL_REDIRECTION, /* < << <<- <<< <& <> > >> >& >| &> &>>; its word comes next */
	SHELL_PROCESS,     /* <(…) and >(…), whole */
};

/* Why a word is not what it says. In the order of shell_reason_text. */
enum shell_reason {
	SHELL_LITERAL,
	SHELL_EXPANSION,  /* $name, ${…}, $'…' */
	SHELL_COMMAND,    /* $(…) and `…` */
	SHELL_PATTERN,    /* * ? [ */
	SHELL_BRACES,     /* {a,b} {1..3} */
	SHELL_TILDE,      /* ~ where bash may look for a home */
	SHELL_OPEN_QUOTE, /* ' or " without its other */
	SHELL_LAST_BACKSLASH,
	SHELL_BYTE, /* a control byte, or one that is no UTF-8 */
};

struct shell_token {
	enum shell_kind kind;
	struct str text; /* as written */
	/* Of words: */
	enum shell_reason reason;
	size_t at;        /* where in the whole text the reason stands */
	struct str value; /* without its quotes; only where `values` is given, and literal */
	bool quoted;      /* something of it was: it is then no word of the shell's own */
	bool is_assignment; /* NAME=… or NAME+=… */
};

struct shell_lexer {
	struct str text;
	size_t at;
	/*
	 * Where the values of words are written, each ended by NUL; NULL: none wanted. Room for
	 * text.size + 1 bytes, which all of them together do not exceed.
	 */
	char *values;
	size_t values_size;
	/* Of the first byte outside of words that bash has its own ideas about; SHELL_LITERAL: none */
	enum shell_reason outside;
	size_t outside_at;
};

void shell_lexer_init(struct shell_lexer *lexer, struct str text, char *values);

/*
 * The next token; comments and blanks are passed over. Never reads beyond the text, and each
 * but SHELL_END takes at least a byte of it.
 */
void shell_lexer_next(struct shell_lexer *lexer, struct shell_token *token);

/* Append WORD as one would type it: in quotes where they are needed. */
void shell_token_add_word(const char *word, struct buf *out);

/*
 * The simple commands of a shell text, as far as they can be seen without running it:
 * which programs it starts by name, with which words. Nothing about safety follows from
 * it (the cell contains): a program's own programs, and the words that only the shell
 * knows, are not seen. policy/command.h is strict over the same tokens.
 */

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
