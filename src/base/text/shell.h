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
#include <stdint.h>

enum shell_kind {
	SHELL_END,
	SHELL_WORD,
	SHELL_NEWLINE,
	SHELL_SEMICOLON,
	SHELL_AND,        /* && */
	SHELL_OR,         /* || */
	SHELL_PIPE,       /* | */
	SHELL_PIPE_BOTH,  /* |& */
	SHELL_BACKGROUND, /* & */
	SHELL_CASE_END,   /* ;; ;& ;;& */
	SHELL_OPEN,       /* ( */
	SHELL_CLOSE,      /* ) */
	/* < << <<- <<< <& <> > >> >& >| &> &>>; its word is the next token */
	SHELL_REDIRECTION,
	SHELL_PROCESS, /* <(…) and >(…), whole */
};

/* The reason why a word is not literal. policy/command.c has a sentence for each. */
enum shell_reason {
	SHELL_LITERAL,
	SHELL_ANSI, /* $'…' and $"…": its value is known, but it is no plain word */
	SHELL_EXPANSION,  /* $name, ${…} */
	SHELL_COMMAND,    /* $(…) and `…` */
	SHELL_PATTERN,    /* * ? [ */
	SHELL_BRACES,     /* {a,b} {1..3} */
	SHELL_TILDE,      /* ~ where bash may expand it to a home */
	SHELL_OPEN_QUOTE, /* ' or " without the closing one */
	SHELL_LAST_BACKSLASH,
	SHELL_BYTE, /* a control byte, or invalid UTF-8 */
};

struct shell_token {
	enum shell_kind kind;
	struct str text; /* as written */
	/* Only for words: */
	enum shell_reason reason;
	size_t at; /* place of the reason in the whole text */
	/* without its quotes, and what only the shell knows as written; with `values` */
	struct str value;
	bool quoted; /* a part was quoted, so the word is no keyword of the shell */
	bool is_assignment; /* NAME=… or NAME+=… */
};

/* A text within a word that the shell runs by itself: of $(…), `…`, <(…) or >(…). */
struct shell_inner {
	struct str text;
	bool in_backquotes; /* a backslash in TEXT may hide the byte behind it */
};

/* The texts of that kind, in their order. */
struct shell_inners {
	struct shell_inner *items;
	size_t count;
};

struct shell_lexer {
	struct str text;
	size_t at;
	/* Gets the texts that the shell runs within words; NULL: not needed. */
	struct shell_inners *inners;
	unsigned nested;   /* number of substitutions around this lexer */
	size_t arithmetic; /* number of "(" since "((" that are not yet closed */
	size_t opened;     /* number of "${", "$[" and "[" that are not yet closed */
	/* of the last ones of those, the last in bit 0: is it no "${"; was it in double quotes? */
	uint64_t squares, quotes;
	bool shifts;     /* the last operator stood in one of those */
	size_t searched; /* bytes in which the end of a here-document was not found */
	/*
	 * From here on the shell may see other words: there were too many here-documents or
	 * substitutions, or what looks like a here-document may be arithmetic.
	 */
	bool unsure;
	/*
	 * Receives the values of words, each ended by NUL; NULL: not needed. It has
	 * room for text.size + 1 bytes, which is enough for all of them.
	 */
	char *values;
	size_t values_size;
	/*
	 * For the first byte outside of words that bash treats specially;
	 * SHELL_LITERAL: none
	 */
	enum shell_reason outside;
	size_t outside_at;
};

void shell_lexer_init(struct shell_lexer *lexer, struct str text, char *values);

/*
 * Read the next token. Comments and blanks are skipped. Never reads beyond the text.
 * Each token except SHELL_END takes at least one byte.
 */
void shell_lexer_next(struct shell_lexer *lexer, struct shell_token *token);

/* Append WORD as a person would type it, in quotes where needed. */
void shell_token_add_word(const char *word, struct buf *out);

/*
 * The simple commands of a shell text, as far as they can be seen without running it:
 * the programs that it starts by name, with their words. The scan does not see programs
 * that a program starts itself, or words that only the shell knows. So nothing about
 * safety follows from it; the cell contains the commands. policy/command.h is strict
 * over the same tokens.
 */

/* More programs that start each other are not noted. */
enum { SHELL_STARTERS_MAX = 16 };

/* The scan owns the three lists of words. They are valid until its next command. */
struct shell_command {
	/* as written, quotes included; the same one for each word of a brace expansion */
	const struct str *words;
	/* without quotes, ended by NUL; data NULL when only the shell knows the value */
	const struct str *values;
	/* like values, with the parts that only the shell knows as they are written */
	const struct str *texts;
	size_t count;
	/* number of subshells around it, whose "(" is not yet closed */
	size_t depth;
	bool input_given;  /* its input comes from a pipe, a file or a here-document */
	bool piped;        /* its input comes from the command before it */
	bool input_seen;   /* its input is a text that the scan has taken (shell_scan) */
	bool output_taken; /* its output goes to a pipe or a file */
	struct str here;   /* the text of its here-string or its last here-document */
	/* programs that start it (`sudo`): the number of words from each to the first */
	size_t starters[SHELL_STARTERS_MAX], starter_count;
};

/*
 * Here-documents that begin on one line. The lines of further ones are read as commands, and
 * the lexer is unsure.
 */
enum { SHELL_DOCUMENTS_MAX = 8 };

struct shell_document {
	struct str end; /* the line that ends it, with its quotes */
	bool tabs;      /* "<<-": tabs at the beginning of its lines do not count */
	bool runs;      /* it is the input of a shell */
	/* it may be arithmetic: "((x<<y))", "a[x<<y]=1", "x<<2". Its lines are read as commands. */
	bool doubtful;
};

/* Those that begin on one line. */
struct shell_documents {
	struct shell_document items[SHELL_DOCUMENTS_MAX];
	size_t count;
};

struct shell_scan {
	struct shell_lexer lexer;
	char *values;
	struct str *word_room, *value_room, *text_room;
	size_t room;
	size_t open; /* number of "(" that are not yet closed */
	bool after_pipe, after_line;
	struct shell_documents documents;
	/* the last of AHEAD_COUNT here-documents, whose lines begin behind LINE_END */
	struct str ahead;
	size_t ahead_count, line_end;
	char *expanded; /* the words of brace expansions in the last command */
	size_t expanded_size;
	/*
	 * Bytes that may still be read for brace expansions. A caller that reads texts
	 * within texts takes the number from one scan to the next.
	 */
	size_t braces_left;
	/*
	 * The texts that the shell runs for the words and the here-documents behind the
	 * last command but one, up to the last command. They are parts of the text, or of
	 * `values`.
	 */
	struct shell_inners inners;
	bool ended;
};

void shell_scan_init(struct shell_scan *scan, struct str text);
void shell_scan_fini(struct shell_scan *scan);
/*
 * Read the next simple command, without assignments and the words before its name
 * (`if`, `sudo`, `env`, `timeout 5` …). Here-documents are skipped, except for the texts
 * in them that a shell runs: those are among `inners`, which also counts after the last
 * call, which returns false.
 */
bool shell_scan_next(struct shell_scan *scan, struct shell_command *command);

/*
 * Remove assignments and the words before its name from COMMAND. A word of those that has
 * no program behind it is the program itself.
 */
void shell_command_strip(struct shell_command *command);

/*
 * Append the text that COMMAND has another shell run (`bash -c TEXT`, `eval TEXT`,
 * `watch TEXT`), with the parts that only the shell knows as they are written. False:
 * there is none.
 */
bool shell_command_inner(const struct shell_command *command, struct buf *text);
/* Is COMMAND a shell that reads its commands from its input? */
bool shell_command_reads(const struct shell_command *command);

/* The last name in the path WORD: "/usr/bin/vim" gives "vim". */
struct str shell_words_program(struct str word);

/*
 * The word AT without its quotes, or as it is written when only the shell knows its
 * value.
 */
struct str shell_command_value(const struct shell_command *command, size_t at);

/*
 * The index of git's subcommand in COMMAND, behind git's own options; `count` when
 * there is none.
 */
size_t shell_command_git(const struct shell_command *command);
