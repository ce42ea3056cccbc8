/*
 * command: what a shell text runs, and which of its commands name code or destroy much.
 *
 * command_parse turns a shell text into plain argument vectors. It accepts the part of
 * bash in which a text says exactly what will run: words and quotes, && || ; | and line
 * ends, comments. Every other text is "not literal", with the place and the reason. When a
 * text is literal, bash would run exactly these vectors (a test compares them on random
 * texts). The rest of this header is two tables: words that name code, and commands that
 * destroy much.
 *
 * base/text/shell.c splits a text into words and operators; this module decides what they
 * run. Its cases stand in tests/unit/policy/command_test.c, and `make gate` compares with
 * bash.
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct policy;
struct shell_command;

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

/*
 * Words that name code: a file that a program runs or loads, a text that it executes, a
 * program that it starts. Such a word needs a word of its own in a rule (`executes`, or
 * `runs_code` for operands): no rule grants it along with others. The table is
 * command_code.def.
 *
 * A new row comes with the option in tests/gate/help/PROGRAM.txt, in words of our own,
 * and with rows in tests/unit/policy/command_judge_test.c.
 */

enum code_kind {
	/* an option behind the subcommand, or an operand: "NAME=", a word */
	CODE_EXECUTES,
	CODE_EXPRESSION, /* an option that stays one behind "--", too */
	CODE_GLOBAL,     /* an option before the subcommand */
	CODE_HARMLESS,   /* looks like one of the others, but names no code */
	CODE_OPERANDS,   /* the operands of the program */
	CODE_SCRIPT, /* an operand is a script, which can start programs or write files */
};

struct command_code {
	enum code_kind kind;
	const char *programs;   /* "python,python3" */
	const char *subcommand; /* "clone,fetch"; "": all */
	const char *name;
	const char *reason; /* a noun: "a configuration, which names code to load" */
};

/* The part of a rule (commands.h) that says whose words they are. */
struct command_program {
	struct str programs;   /* "phpunit,vendor/bin/phpunit" */
	struct str subcommand; /* words separated by blanks; may be empty */
	bool runs_code;        /* the rule grants code in operands */
};

/* Take the next of "a,b,c" from *REST. False when none is left. */
bool command_next_choice(struct str *rest, struct str *choice);

/*
 * The row for the option WORD among those of PROGRAM. WORD may be written out,
 * attached ("-cFILE", "--name=V"), behind other letters ("-fcFILE") or abbreviated
 * ("--na"). GLOBAL: WORD stands before the subcommand. NULL: WORD names no code.
 */
const struct command_code *command_code_option(const struct command_program *program,
					       const char *word, bool global);
/* Like command_code_option, for an operand of the kind `text`. */
const struct command_code *command_code_operand(const struct command_program *program,
						const char *word);
/* The row for all operands of PROGRAM, when they name code; else NULL. */
const struct command_code *command_code_operands(const struct command_program *program);
/* Append the part of a rule that would grant CODE: `"-c" in "executes"`. */
void command_code_word(const struct command_code *code, struct buf *out);

/*
 * The commands that can be seen in a shell text or an argument vector, each with its
 * working folder: commands of the text itself, behind `sudo`, `env` and the like, in
 * substitutions, in the text of `bash -c` and `eval`, in a text that a shell gets as its
 * input, and behind -exec of find. Commands of scripts, and words that only the shell
 * knows, are not seen.
 */

struct command_seen {
	const struct shell_command *command; /* has at least a name */
	const char *folder;                  /* absolute and normal; NULL: not known */
	/* a command before it in the text downloads, or a substitution in it does */
	bool after_download;
	/* the text of its here-document, or that `echo` prints into it; may be empty */
	struct str input;
	/*
	 * why the command is not all that runs, as a clause ("is a program whose name only
	 * the shell knows"); NULL: it is
	 */
	const char *unread;
};

/* Called for each command. Returning false ends the walk. */
struct command_visit {
	bool (*visit)(void *context, const struct command_seen *seen);
	void *context;
};

/*
 * FOLDER: the folder where TEXT, or the program of ARGV (NULL-ended), starts; NULL: not
 * known.
 */
void command_seen_text(struct str text, const char *folder,
		       const struct command_visit *visit);
void command_seen_argv(const char *const *argv, const char *folder,
		       const struct command_visit *visit);

/*
 * Commands that destroy much, in one table: what each does, and the next step. A person
 * is asked about most of them where one can be; nobody there, they run, since the cell
 * and undo hold what they do. The table goes by the commands that can be seen, and is no
 * wall.
 *
 * Each command that can be seen in a text (base/text/shell.h) is shown to the rules
 * that deny or ask, and to this table. Where only listed commands run, the list
 * decides after that; commands.h has the order. A new row also belongs in
 * docs/policy.md and tests/unit/policy/command_judge_test.c, together with commands
 * that must not be asked about.
 */

struct command_harm {
	const char *name; /* "git push --force" */
	enum command_harm_when {
		/* no row finds it: only a rule that names it (`harm` in docs/policy.md) */
		HARM_NAMED,
		HARM_TOLD, /* the result tells it */
		/*
		 * A person is asked, because undo cannot restore all of it, or because
		 * everything would be lost.
		 */
		HARM_ASKED,
	} when;
	bool (*fits)(const struct command_seen *seen, const struct policy *policy);
	const char *does; /* a clause behind its name */
	const char *next; /* a sentence */
};

/*
 * The row for the harm of SEEN to the workspace and folders of POLICY; NULL: no great
 * harm.
 */
const struct command_harm *command_harm_find(const struct command_seen *seen,
					     const struct policy *policy);
/* The row with NAME, or NULL. */
const struct command_harm *command_harm_named(const char *name);

/*
 * Does PROGRAM run other programs or code, so that the word behind it does not say what would
 * be run? A shell, an interpreter, env, sudo, xargs, find, make and the like.
 */
bool command_is_runner(const char *program);
/*
 * Has WORD no blank, quote or operator, and no dash at its beginning? Nobody can take it for
 * more than one word then.
 */
bool command_is_plain_word(const char *word);
