/*
 * command: reads a shell text by a strict grammar over the tokens of base/text/shell,
 * compares words with the table of words that name code, and walks over the commands
 * of a text for the table of harmful ones.
 */
#include "policy/command.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/shell.h"
#include "policy/policy.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *const command_joins[] = {";", "&&", "||", "|"};

/* Reasons why a text is not literal, besides those of its words. */
enum trouble {
	TROUBLE_REDIRECTION = SHELL_BYTE + 1,
	TROUBLE_BACKGROUND,
	TROUBLE_GROUP,
	TROUBLE_PIPE_BOTH,
	TROUBLE_CASE,
	TROUBLE_KEYWORD,
	TROUBLE_ASSIGNMENT,
	TROUBLE_JOB,
	TROUBLE_EMPTY,
	TROUBLE_UNEXPECTED,
	TROUBLE_UNFINISHED,
	TROUBLE_TOO_LONG,
	TROUBLE_TOO_MANY,
};

static const struct {
	const char *reason, *remedy;
} troubles[] = {
	[SHELL_ANSI] = {"an expansion ($…)", "Write the value itself, in plain quotes."},
	[SHELL_EXPANSION] = {"an expansion ($…)",
			     "Write the value itself, or put a $ that is meant in single quotes."},
	[SHELL_COMMAND] = {"a command substitution",
			   "Run the inner command first, then write its answer into the next."},
	[SHELL_PATTERN] =
		{"a pattern of file names (* ? [)",
		 "Name the files (the tool glob finds them), or quote what is no pattern."},
	[SHELL_BRACES] = {"a brace expansion", "Write each word out, or quote the braces."},
	[SHELL_TILDE] = {"a tilde (~)", "Write the path itself, or quote the tilde."},
	[SHELL_OPEN_QUOTE] = {"a quote that is not closed", "Close it."},
	[SHELL_LAST_BACKSLASH] = {"a backslash with nothing behind it", "Leave it away."},
	[SHELL_BYTE] = {"a control byte, or one that is no UTF-8", "Leave it away."},
	[TROUBLE_REDIRECTION] = {"a redirection (< >)",
				 "Leave it away: what is printed on both streams is shown; "
				 "write_file writes a file, apply_patch takes a patch."},
	[TROUBLE_BACKGROUND] = {"a command in the background (&)", "Run it without &."},
	[TROUBLE_GROUP] = {"a group or a function: ( )", "Write the commands one after another, "
							 "or quote the parenthesis."},
	[TROUBLE_PIPE_BOTH] = {"|&", "Use |: what is printed as an error is shown anyway."},
	[TROUBLE_CASE] = {";; of a case", "Write the commands one after another."},
	[TROUBLE_KEYWORD] = {"a word of the shell's own language",
			     "Write plain commands, joined by && || ; or |, in several calls if "
			     "need be."},
	[TROUBLE_ASSIGNMENT] = {"a variable that is set",
				"Leave it away: only `env` in the policy sets variables."},
	[TROUBLE_JOB] = {"a job of the shell (%)", "There are none here."},
	[TROUBLE_EMPTY] = {"no command at all", "Name a program."},
	[TROUBLE_UNEXPECTED] = {"an operator with no command before it", "Take it out."},
	[TROUBLE_UNFINISHED] = {"an operator with no command behind it", "Take it out."},
	[TROUBLE_TOO_LONG] = {"more than 1 MiB of text", "Put it into a file."},
	[TROUBLE_TOO_MANY] = {"more than 256 commands", "Make several calls."},
};

static bool refuse(struct command *command, int trouble, size_t at)
{
	command->literal = false;
	command->at = at;
	command->reason = troubles[trouble].reason;
	command->remedy = troubles[trouble].remedy;
	return false;
}

/* Is WORD, unquoted and at the begin of a command, a keyword of the shell? */
static bool is_keyword(struct str word)
{
	return str_among("if then else elif fi case esac for select while until do done in "
			 "function time { } ! [[ ]] coproc",
			 word);
}

/* The state while a text is read. */
struct reader {
	struct command *command;
	struct shell_lexer lexer;
	struct shell_token token;
	size_t word_count;
	enum command_join join; /* of the next command */
	bool required;          /* a command must follow */
};

static void add_word(struct reader *reader, const char *word)
{
	struct command *command = reader->command;

	command->words =
		memory_more(command->words, reader->word_count, sizeof(*command->words));
	command->words[reader->word_count++] = word;
}

static size_t token_at(const struct reader *reader)
{
	return (size_t)(reader->token.text.data - reader->lexer.text.data);
}

/* False when the first word of a command may be something other than a program's name. */
static bool check_first(const struct reader *reader)
{
	const struct shell_token *token = &reader->token;

	if (token->is_assignment)
		return refuse(reader->command, TROUBLE_ASSIGNMENT, token_at(reader));
	if (!token->quoted && is_keyword(token->value))
		return refuse(reader->command, TROUBLE_KEYWORD, token_at(reader));
	if (token->value.data[0] == '%')
		return refuse(reader->command, TROUBLE_JOB, token_at(reader));
	return true;
}

/* Read the words of one command. The token behind them becomes the current one. */
static bool read_part(struct reader *reader)
{
	struct command *command = reader->command;
	size_t first = reader->word_count;
	size_t start = token_at(reader);
	size_t end = start;

	if (command->count == COMMAND_PARTS_MAX)
		return refuse(command, TROUBLE_TOO_MANY, start);
	while (reader->token.kind == SHELL_WORD) {
		if (reader->token.reason != SHELL_LITERAL)
			return refuse(command, (int)reader->token.reason, reader->token.at);
		if (reader->word_count == first && !check_first(reader))
			return false;
		add_word(reader, reader->token.value.data);
		end = token_at(reader) + reader->token.text.size;
		shell_lexer_next(&reader->lexer, &reader->token);
	}
	command->parts =
		memory_more(command->parts, command->count, sizeof(*command->parts));
	command->parts[command->count++] = (struct command_part){
		.join = reader->join,
		.argc = reader->word_count - first,
		.text = str_part(reader->lexer.text, start, end - start),
	};
	add_word(reader, NULL);
	return true;
}

static int trouble_of(enum shell_kind kind)
{
	switch (kind) {
	case SHELL_OPEN:
	case SHELL_CLOSE:
		return TROUBLE_GROUP;
	case SHELL_BACKGROUND:
		return TROUBLE_BACKGROUND;
	case SHELL_PIPE_BOTH:
		return TROUBLE_PIPE_BOTH;
	case SHELL_CASE_END:
		return TROUBLE_CASE;
	case SHELL_PROCESS:
	case SHELL_REDIRECTION:
		return TROUBLE_REDIRECTION;
	default:
		return TROUBLE_UNEXPECTED;
	}
}

/* Read the operator behind a command. */
static bool read_join(struct reader *reader)
{
	reader->required = true;
	switch (reader->token.kind) {
	case SHELL_AND:
		reader->join = COMMAND_AND;
		break;
	case SHELL_OR:
		reader->join = COMMAND_OR;
		break;
	case SHELL_PIPE:
		reader->join = COMMAND_PIPE;
		break;
	case SHELL_SEMICOLON:
	case SHELL_NEWLINE:
		reader->join = COMMAND_THEN;
		reader->required = false;
		break;
	case SHELL_END:
		reader->required = false;
		return true;
	default:
		return refuse(reader->command, trouble_of(reader->token.kind),
			      token_at(reader));
	}
	shell_lexer_next(&reader->lexer, &reader->token);
	return true;
}

static bool read_parts(struct reader *reader)
{
	struct command *command = reader->command;

	shell_lexer_next(&reader->lexer, &reader->token);
	for (;;) {
		while (reader->token.kind == SHELL_NEWLINE)
			shell_lexer_next(&reader->lexer, &reader->token);
		if (reader->token.kind == SHELL_END)
			break;
		if (reader->token.kind != SHELL_WORD)
			return refuse(command, trouble_of(reader->token.kind),
				      token_at(reader));
		if (!read_part(reader) || !read_join(reader))
			return false;
	}
	if (reader->lexer.outside != SHELL_LITERAL)
		return refuse(command, (int)reader->lexer.outside, reader->lexer.outside_at);
	if (reader->required)
		return refuse(command, TROUBLE_UNFINISHED, reader->lexer.text.size);
	return command->count > 0 || refuse(command, TROUBLE_EMPTY, 0);
}

bool command_parse(struct command *command, struct str text)
{
	struct reader reader = {.command = command};
	const char *const *at;

	*command = (struct command){.literal = true};
	if (text.size > COMMAND_TEXT_MAX)
		return refuse(command, TROUBLE_TOO_LONG, COMMAND_TEXT_MAX);
	command->values = memory_alloc(text.size + 1);
	shell_lexer_init(&reader.lexer, text, command->values);
	if (!read_parts(&reader)) {
		command->count = 0;
		return false;
	}
	/* Only now will the list of words not move any more. */
	at = command->words;
	for (size_t i = 0; i < command->count; i++) {
		command->parts[i].argv = at;
		at += command->parts[i].argc + 1;
	}
	return true;
}

void command_fini(struct command *command)
{
	free(command->parts);
	free(command->values);
	free(command->words);
	*command = (struct command){0};
}

/* Compares the words of a command with the table of words that name code. */

bool command_next_choice(struct str *rest, struct str *choice)
{
	const char *comma = rest->size ? memchr(rest->data, ',', rest->size) : NULL;

	if (rest->size == 0)
		return false;
	*choice = comma ? str_part(*rest, 0, (size_t)(comma - rest->data)) : *rest;
	*rest = str_part(*rest, choice->size + (comma != NULL), rest->size);
	return true;
}

static const struct command_code code_rows[] = {
#define ROW(kind, programs, subcommand, name, reason) \
	{kind, programs, subcommand, name, reason},
#include "policy/command_code.def"
#undef ROW
};

enum { CODE_ROWS = sizeof(code_rows) / sizeof(code_rows[0]) };

/*
 * Is a word of the list LIST ("a,b") in the list TEXT, compared by the last part of
 * their paths?
 */
static bool has_common(const char *list, struct str text)
{
	struct str given;

	while (command_next_choice(&text, &given)) {
		struct str rest = str_of(list), one;

		while (command_next_choice(&rest, &one)) {
			if (str_equal(one, shell_words_program(given)))
				return true;
		}
	}
	return false;
}

static struct str last_word(struct str text)
{
	struct str word = STR(""), next;

	while (str_next_word(&text, &next))
		word = next;
	return word;
}

/* The program and the subcommand whose rows count. */
struct subject {
	struct str programs, subcommand;
};

static bool has_rows(struct str programs)
{
	for (size_t i = 0; i < CODE_ROWS; i++) {
		if (has_common(code_rows[i].programs, programs))
			return true;
	}
	return false;
}

/*
 * In `php vendor/bin/phpunit`, `python -m pytest` and `npx jest` the subject is the
 * started program, when the table knows it.
 */
static struct subject subject_of(const struct command_program *program)
{
	static const char launchers[] = "php,python,python3,npx,bunx";
	struct subject subject = {.programs = program->programs};
	struct str rest = program->subcommand, last = last_word(program->subcommand);

	if (last.size > 0 && has_common(launchers, program->programs) && has_rows(last))
		subject.programs = last;
	else
		(void)str_next_word(&rest, &subject.subcommand);
	return subject;
}

static bool code_is_of(const struct command_code *row, const struct subject *subject)
{
	return has_common(row->programs, subject->programs) &&
	       (row->subcommand[0] == '\0' ||
		has_common(row->subcommand, subject->subcommand));
}

/*
 * Is NAME like "-x", not like "-delete"? Then its letter may follow others, and a value
 * may be attached.
 */
static bool is_letter(struct str name)
{
	return name.size == 2 && name.data[0] == '-' && name.data[1] != '-';
}

/*
 * How near WORD is to NAME: not at all, by one of its letters, by its beginning, or
 * exactly.
 */
static int nearness(struct str name, struct str word)
{
	enum { NOT, BY_LETTER, BY_BEGINNING, EXACTLY };
	const char *equals = word.size ? memchr(word.data, '=', word.size) : NULL;
	struct str bare = equals ? str_part(word, 0, (size_t)(equals - word.data)) : word;

	/* Programs with "-exec" accept "--exec" as well. */
	if (str_equal(bare, name) ||
	    (name.size > 2 && name.data[1] != '-' && bare.size == name.size + 1 &&
	     bare.data[0] == '-' && str_ends(bare, name)))
		return EXACTLY;
	if (str_starts(name, STR("--")))
		return bare.size > 2 && str_starts(name, bare) ? BY_BEGINNING : NOT;
	if (!is_letter(name) || word.size < 2 || word.data[0] != '-' || word.data[1] == '-')
		return NOT;
	for (size_t i = 1; i < word.size && isalnum((unsigned char)word.data[i]); i++) {
		if (word.data[i] == name.data[1])
			return BY_LETTER;
	}
	return NOT;
}

const struct command_code *command_code_option(const struct command_program *program,
					       const char *word, bool global)
{
	const struct subject subject = subject_of(program);
	const struct command_code *found = NULL;
	int nearest = 0;

	for (size_t i = 0; i < CODE_ROWS; i++) {
		const struct command_code *row = &code_rows[i];
		int near;

		if (row->name[0] != '-' ||
		    (row->kind != CODE_HARMLESS && (row->kind == CODE_GLOBAL) != global) ||
		    !code_is_of(row, &subject))
			continue;
		near = nearness(str_of(row->name), str_of(word));
		if (near > nearest) {
			nearest = near;
			found = row;
		}
	}
	return found != NULL && found->kind != CODE_HARMLESS ? found : NULL;
}

/*
 * Does the row name the operand WORD? "SHELL=" matches "SHELL=x", "=" matches any
 * assignment, and any other name matches only itself.
 */
static bool names_operand(const struct command_code *row, const char *word)
{
	size_t size = strlen(row->name);

	if (strcmp(row->name, "=") == 0)
		return strchr(word, '=') != NULL;
	if (size > 1 && row->name[size - 1] == '=')
		return strncmp(word, row->name, size) == 0;
	return strcmp(word, row->name) == 0;
}

/* Does a script of sed have only commands that edit the printed text? */
static bool is_plain_sed(const char *script)
{
	for (const char *at = script; *at != '\0';) {
		/* Skip addresses, and the characters between commands. */
		at += strspn(at, " \t\n;{}!,$+~0123456789I");
		if (*at == '\0')
			break;
		if (*at == '/') {
			for (at++; *at != '\0' && *at != '/'; at++)
				at += *at == '\\' && at[1] != '\0';
			at += *at == '/';
			continue;
		}
		if (*at == 's' || *at == 'y') {
			const char mark = at[1];
			int marks = 0;

			for (at++; *at != '\0' && marks < 3; at++) {
				if (*at == '\\' && at[1] != '\0')
					at++;
				else if (*at == mark)
					marks++;
			}
			if (marks < 3)
				return false;
			at += strspn(at, "gipIM0123456789");
			if (*at != '\0' && strchr(" \t\n;}", *at) == NULL)
				return false;
			continue;
		}
		if (strchr("dDgGhHnNpPqQxz=l", *at) == NULL)
			return false;
		at++;
	}
	return true;
}

/* Does a program of awk neither start programs nor open files? */
static bool is_plain_awk(const char *script)
{
	static const char *const words[] = {"system",   "getline", "|",      "@load",
					    "@include", "close",   "fflush", NULL};
	bool quoted = false;

	for (const char *const *word = words; *word != NULL; word++) {
		const char *at = strstr(script, *word);

		/* "||" is another operator. */
		while (at != NULL && strcmp(*word, "|") == 0 && at[1] == '|')
			at = strstr(at + 2, *word);
		if (at != NULL)
			return false;
	}
	/* Look for print > FILE. A comparison behind print is taken for it as well. */
	for (const char *at = script; *at != '\0'; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++;
		else if (*at == '"')
			quoted = !quoted;
		else if (!quoted && *at == '>' && strstr(script, "print") != NULL &&
			 strstr(script, "print") < at)
			return false;
	}
	return true;
}

static bool is_plain_script(const struct command_code *row, const char *script)
{
	return strcmp(row->name, "sed") == 0 ? is_plain_sed(script) : is_plain_awk(script);
}

const struct command_code *command_code_operand(const struct command_program *program,
						const char *word)
{
	const struct subject subject = subject_of(program);
	const struct command_code *found = NULL;

	for (size_t i = 0; i < CODE_ROWS; i++) {
		const struct command_code *row = &code_rows[i];

		if (!code_is_of(row, &subject))
			continue;
		if (row->kind == CODE_EXPRESSION && strcmp(row->name, word) == 0)
			return row;
		if (row->kind == CODE_SCRIPT && !program->runs_code &&
		    !is_plain_script(row, word))
			return row;
		if ((row->kind != CODE_EXECUTES && row->kind != CODE_HARMLESS) ||
		    row->name[0] == '-' || !names_operand(row, word))
			continue;
		if (row->kind == CODE_HARMLESS)
			return NULL;
		found = row;
	}
	return found;
}

const struct command_code *command_code_operands(const struct command_program *program)
{
	const struct subject subject = subject_of(program);

	for (size_t i = 0; i < CODE_ROWS; i++) {
		const struct command_code *row = &code_rows[i];

		if (row->kind == CODE_OPERANDS &&
		    (row->subcommand[0] != '\0' || program->subcommand.size == 0) &&
		    code_is_of(row, &subject))
			return row;
	}
	return NULL;
}

void command_code_word(const struct command_code *code, struct buf *out)
{
	if (code->kind == CODE_SCRIPT || code->kind == CODE_OPERANDS)
		(void)buf_adds(out, "\"runs_code\": true");
	else if (strcmp(code->name, "=") == 0)
		(void)buf_adds(out, "\"NAME=\" in \"executes\"");
	else
		(void)buf_addf(out, "\"%s\" in \"executes\"", code->name);
}

/* The table of harmful commands, their checks, and the walk over the commands of a text. */

enum {
	COMMAND_INNER_MAX = 8, /* depth of texts and finds inside others */
	/* bytes of texts inside others: a text may name one text in many ways */
	COMMAND_INNER_BYTES = 1 << 20,
	COMMAND_FOLDERS_MAX = 16, /* depth of subshells whose folder is tracked */
};

#define UNDO_ALL_BUT_IGNORED                                                     \
	"glovebox undo brings back what it has kept of the workspace, which is " \
	"everything but the files that git ignores."

static struct str word_of(const struct command_seen *seen, size_t at)
{
	return shell_command_value(seen->command, at);
}

/*
 * Is WORD one of LONGS, or a beginning of one that is long enough for programs that
 * accept beginnings?
 */
static bool is_long(struct str word, const char *longs)
{
	enum { BEGINNING_MIN = sizeof("--x") - 1 };
	struct str rest = str_of(longs), name;

	while (str_next_word(&rest, &name)) {
		if (word.size >= BEGINNING_MIN && str_starts(name, word))
			return true;
	}
	return false;
}

/*
 * Do the options contain one of LETTERS behind a single dash, or one of the words
 * LONGS?
 */
static bool has_option(const struct command_seen *seen, size_t from, const char *letters,
		       const char *longs)
{
	for (size_t i = from; i < seen->command->count; i++) {
		struct str word = word_of(seen, i);

		if (str_is(word, "--"))
			break;
		if (word.size < 2 || word.data[0] != '-')
			continue;
		if (word.data[1] == '-') {
			if (is_long(word, longs))
				return true;
			continue;
		}
		for (size_t j = 1; j < word.size; j++) {
			if (strchr(letters, word.data[j]) != NULL)
				return true;
		}
	}
	return false;
}

/* If *REST begins with one of TEXTS, remove that text from *REST. */
static bool take_first(struct str *rest, const char *const *texts)
{
	for (; *texts != NULL; texts++) {
		struct str text = str_of(*texts);

		if (str_starts(*rest, text) &&
		    (rest->size == text.size || rest->data[text.size] == '/')) {
			*rest = str_part(*rest, text.size, rest->size);
			return true;
		}
	}
	return false;
}

/*
 * Cut a pattern for all names in a folder: removing them is as harmful as removing the
 * folder.
 */
static void take_pattern(struct str *rest)
{
	static const char *const patterns[] = {"*", ".*", "**", ".[!.]*", "{*,.*}", NULL};

	for (size_t i = 0; patterns[i] != NULL; i++) {
		struct str pattern = str_of(patterns[i]);
		size_t before = rest->size - pattern.size;

		if (str_ends(*rest, pattern) &&
		    (before == 0 || rest->data[before - 1] == '/')) {
			rest->size = before;
			return;
		}
	}
}

enum place { PLACE_UNKNOWN, PLACE_HOME, PLACE_PATH };

/*
 * Find the place that the word AT of SEEN names: a PATH (absolute, normal), the home,
 * or unknown.
 */
static enum place place_of(const struct command_seen *seen, size_t at, struct buf *path)
{
	static const char *const homes[] = {"~", "$HOME", "${HOME}", NULL};
	static const char *const here[] = {"$PWD", "${PWD}", "$(pwd)", "`pwd`", NULL};
	struct str given = word_of(seen, at), rest;
	bool known = seen->command->values[at].data != NULL, home = false,
	     in_folder = false;
	struct buf plain;
	enum place place = PLACE_UNKNOWN;

	buf_init(&plain, PATH_MAX);
	for (size_t i = 0; i < given.size; i++) {
		if (known || given.data[i] != '"')
			(void)buf_addc(&plain, given.data[i]);
	}
	rest = buf_str(&plain);
	if (!known) {
		home = take_first(&rest, homes);
		in_folder = !home && take_first(&rest, here);
		take_pattern(&rest);
	}
	if (!plain.overflowed && (known || strcspn(rest.data, "$`*?[]{}~") >= rest.size)) {
		bool absolute = !in_folder && rest.size > 0 && rest.data[0] == '/';
		const char *base = absolute ? "/" : seen->folder;
		auto_free char *text = memory_copy_str(rest);
		const char *relative = in_folder ? text + strspn(text, "/") : text;

		if (home)
			place = strspn(text, "/.") == rest.size ? PLACE_HOME
								: PLACE_UNKNOWN;
		else if (base != NULL && (rest.size > 0 || !known) &&
			 path_normal(base, *relative != '\0' ? relative : ".", path))
			place = PLACE_PATH;
	}
	buf_fini(&plain);
	return place;
}

/*
 * Is PATH the workspace, a folder above it, its repository, or another whole folder of
 * `write`?
 */
static bool is_much(const char *path, const struct policy *policy)
{
	const char *workspace = policy->workspace;

	if (strcmp(path, "/") == 0)
		return true;
	/* The place where the workspace stands as well is as good as its own path. */
	if (policy->at != NULL && (path_within(policy->at, path) ||
				   (path_within(path, policy->at) &&
				    strcmp(path_relative(path, policy->at), ".git") == 0)))
		return true;
	if (workspace != NULL && (path_within(workspace, path) ||
				  (path_within(path, workspace) &&
				   strcmp(path_relative(path, workspace), ".git") == 0)))
		return true;
	for (size_t i = 0; i < policy->write.count; i++) {
		const char *root = policy->write.items[i].path;

		if (root != NULL && (workspace == NULL || !path_within(root, workspace)) &&
		    path_within(root, path))
			return true;
	}
	return false;
}

static bool removes_much(const struct command_seen *seen, const struct policy *policy)
{
	bool much = false, operands = false;

	if (!has_option(seen, 1, "rR", "--recursive"))
		return false;
	for (size_t i = 1; i < seen->command->count && !much; i++) {
		struct str word = word_of(seen, i);
		enum place place;
		struct buf path;

		if (!operands && str_starts(word, STR("-"))) {
			operands = str_is(word, "--");
			continue;
		}
		buf_init(&path, PATH_MAX);
		place = place_of(seen, i, &path);
		much = place == PLACE_HOME ||
		       (place == PLACE_PATH && is_much(path.data, policy));
		buf_fini(&path);
	}
	return much;
}

/* The index of the first option of git's SUBCOMMAND; 0: the subcommand is another one. */
static size_t behind_git(const struct command_seen *seen, const char *subcommand)
{
	size_t at = shell_command_git(seen->command);

	return at < seen->command->count && str_is(word_of(seen, at), subcommand) ? at + 1
										  : 0;
}

static bool cleans(const struct command_seen *seen, const char *letters)
{
	size_t at = behind_git(seen, "clean");

	return at > 0 && has_option(seen, at, "f", "--force") &&
	       has_option(seen, at, letters, "") && !has_option(seen, at, "n", "--dry-run");
}

static bool cleans_ignored(const struct command_seen *seen, const struct policy *policy)
{
	(void)policy;
	return cleans(seen, "xX");
}

static bool cleans_folders(const struct command_seen *seen, const struct policy *policy)
{
	(void)policy;
	return cleans(seen, "d");
}

static bool pushes_over(const struct command_seen *seen, const struct policy *policy)
{
	size_t at = behind_git(seen, "push");

	(void)policy;
	if (at == 0 || has_option(seen, at, "n", "--dry-run"))
		return false;
	if (has_option(seen, at, "f", "--force --mirror"))
		return true;
	for (; at < seen->command->count; at++) {
		if (str_starts(word_of(seen, at), STR("+")))
			return true;
	}
	return false;
}

static bool resets(const struct command_seen *seen, const struct policy *policy)
{
	size_t at = behind_git(seen, "reset");

	(void)policy;
	return at > 0 && has_option(seen, at, "", "--hard");
}

/* dd of=FILE, except for devices without content and files of the cell itself. */
static bool overwrites(const struct command_seen *seen, const struct policy *policy)
{
	static const char harmless[] =
		"/dev/null /dev/zero /dev/full /dev/stdout /dev/stderr "
		"/dev/tty";

	for (size_t i = 1; i < seen->command->count; i++) {
		struct str word = word_of(seen, i);
		struct str file = str_part(word, sizeof("of=") - 1, word.size);
		bool own = str_starts(file, STR("/tmp/")) ||
			   str_starts(file, STR("/dev/fd/")) ||
			   str_starts(file, STR("$TMPDIR/"));

		if (str_starts(word, STR("of=\"")))
			own |= str_starts(file, STR("\"$TMPDIR/")) ||
			       str_starts(file, STR("\"${TMPDIR}/"));
		/* A workspace below /tmp does not belong to the cell itself. */
		const char *value = seen->command->values[i].data;
		if (own && value != NULL &&
		    ((policy->workspace != NULL &&
		      path_within(value + sizeof("of=") - 1, policy->workspace)) ||
		     (policy->at != NULL &&
		      path_within(value + sizeof("of=") - 1, policy->at))))
			own = false;
		if (str_starts(word, STR("of=")) && !own && !str_among(harmless, file))
			return true;
	}
	return false;
}

static bool always(const struct command_seen *seen, const struct policy *policy)
{
	(void)policy;
	return seen->command->count > 1 && !has_option(seen, 1, "V", "--help --version");
}

/*
 * Does a shell or an interpreter run what a command before it, or in it, has downloaded?
 * Without a file it runs its input; a text that only the shell knows holds the download.
 */
static bool runs_download(const struct command_seen *seen, const struct policy *policy)
{
	bool operands = false;

	(void)policy;
	if (!seen->after_download)
		return false;
	for (size_t i = 1; i < seen->command->count; i++) {
		if (seen->command->values[i].data == NULL)
			return true;
		operands |= !str_starts(word_of(seen, i), STR("-"));
	}
	return !operands || seen->command->piped;
}

/* Does a text of SQL drop something, or empty a table? */
static bool drops(const struct command_seen *seen, const struct policy *policy)
{
	static const char *const words[] = {"drop table",  "drop database",
					    "drop schema", "drop user",
					    "drop view",   "truncate ",
					    "delete from", ".drop(",
					    "dropDatabase"};

	(void)policy;
	for (size_t i = 1; i <= seen->command->count; i++) {
		const struct str text =
			i < seen->command->count ? seen->command->texts[i] : seen->input;

		for (size_t at = 0; at < text.size; at++) {
			for (size_t j = 0; j < sizeof(words) / sizeof(words[0]); j++) {
				if (str_starts_caseless(str_part(text, at, text.size),
							words[j]))
					return true;
			}
		}
	}
	return false;
}

/* chmod -R with a mode that lets everybody write. */
static bool opens_all(const struct command_seen *seen, const struct policy *policy)
{
	(void)policy;
	if (!has_option(seen, 1, "R", "--recursive"))
		return false;
	for (size_t i = 1; i < seen->command->count; i++) {
		if (str_among("777 0777 1777 2777 a+rwx a=rwx +rwx ugo+rwx ugo=rwx a+rwX "
			      "a=rwX ugo+rwX",
			      word_of(seen, i)))
			return true;
	}
	return false;
}

static const struct harm_row {
	const char *programs; /* separated by blanks; a final "*" matches any rest */
	struct command_harm harm;
} harm_rows[] = {
	{"rm",
	 {"rm -r", HARM_ASKED, removes_much,
	  "removes a whole workspace, its repository, a folder above them, or the home",
	  UNDO_ALL_BUT_IGNORED " To empty a folder of a build, name that folder."}},
	{"git",
	 {"git clean -x", HARM_ASKED, cleans_ignored,
	  "removes what git does not know, ignored files (.env, build trees, caches) as well",
	  "Ignored files are not in undo: they are gone. git clean -nd shows what it would take; "
	  "glovebox undo brings back the files that were not ignored."}},
	{"git",
	 {"git clean -d", HARM_TOLD, cleans_folders,
	  "removes all files and folders that were never added to git",
	  "glovebox undo brings them back; git clean -nd shows what it would take."}},
	{"git",
	 {"git push --force", HARM_ASKED, pushes_over,
	  "puts other commits in the place of those the remote has",
	  "Undo reaches no remote: the old commits come back by pushing their ids (git reflog, "
	  "or the remote's own log). --force-with-lease refuses where somebody else has pushed."}},
	{"git",
	 {"git reset --hard", HARM_TOLD, resets,
	  "throws away every change of tracked files that was not committed",
	  "glovebox undo brings them back; git stash would have kept them."}},
	{"dd",
	 {"dd of=", HARM_ASKED, overwrites, "writes over the file or device that of= names",
	  "glovebox undo brings back a file of the workspace that git does not ignore."}},
	{"mkfs mkfs.* mke2fs mkswap wipefs blkdiscard",
	 {"mkfs", HARM_ASKED, always,
	  "makes a file system (or none) of what its argument holds",
	  "glovebox undo brings back a file of the workspace that git does not ignore; devices are "
	  "not there in the cell."}},
	{"chmod",
	 {"chmod -R 777", HARM_ASKED, opens_all,
	  "lets everybody write, and run, every file below its folders",
	  "glovebox undo puts the modes back. Give the one folder that needs it u+w or g+w."}},
	{"sh bash dash zsh ksh . source eval python python3 perl ruby node php",
	 {"curl to sh", HARM_NAMED, runs_download, "runs what was just downloaded",
	  "Download it into a file, read the file, then run it."}},
	{"psql mysql mariadb sqlite3 sqlcmd cockroach duckdb mongosh",
	 {"DROP", HARM_NAMED, drops, "removes a table, a database or all rows of one",
	  "Nothing here brings rows back: dump the table first."}},
};

static bool harm_is_of(const struct harm_row *row, struct str program)
{
	struct str rest = str_of(row->programs), name;

	while (str_next_word(&rest, &name)) {
		bool open = str_ends(name, STR("*"));

		name.size -= open;
		if (open ? str_starts(program, name) : str_equal(program, name))
			return true;
	}
	return false;
}

const struct command_harm *command_harm_find(const struct command_seen *seen,
					     const struct policy *policy)
{
	struct str program = shell_words_program(word_of(seen, 0));

	for (size_t i = 0; i < sizeof(harm_rows) / sizeof(harm_rows[0]); i++) {
		if (harm_rows[i].harm.when != HARM_NAMED &&
		    harm_is_of(&harm_rows[i], program) &&
		    harm_rows[i].harm.fits(seen, policy))
			return &harm_rows[i].harm;
	}
	return NULL;
}

const struct command_harm *command_harm_named(const char *name)
{
	for (size_t i = 0; i < sizeof(harm_rows) / sizeof(harm_rows[0]); i++) {
		if (strcmp(harm_rows[i].harm.name, name) == 0)
			return &harm_rows[i].harm;
	}
	return NULL;
}

/* The state of the walk over one text. */
struct looking {
	const struct command_visit *visit;
	/* for each depth of subshells; NULL: not known */
	char *folders[COMMAND_FOLDERS_MAX];
	size_t depth;
	size_t inner;
	size_t *left;    /* bytes of inner texts that may still be read */
	size_t *braces;  /* the same for brace expansions (shell_scan), of all texts */
	bool *downloads; /* a command that downloads was seen */
	/* the text that the last command prints into its pipe, if it says so itself */
	struct buf printed;
	const char *unread; /* why more may run than the next command; NULL: it does not */
	bool ended;
};

static void see_text(struct looking *looking, struct str text);

static void leave(struct looking *looking, size_t depth)
{
	for (; looking->depth > depth; looking->depth--) {
		free(looking->folders[looking->depth]);
		looking->folders[looking->depth] = NULL;
	}
}

/* Enter subshells up to DEPTH. Each begins in the folder of the shell around it. */
static void enter(struct looking *looking, size_t depth)
{
	leave(looking, depth);
	while (looking->depth < depth && looking->depth + 1 < COMMAND_FOLDERS_MAX) {
		looking->folders[looking->depth + 1] =
			memory_copy(looking->folders[looking->depth]);
		looking->depth++;
	}
}

static const char *folder_of(const struct looking *looking, size_t depth)
{
	return depth < COMMAND_FOLDERS_MAX ? looking->folders[depth] : NULL;
}

/* Follow `cd` and `pushd` when their target is known. */
static void take_folder(struct looking *looking, const struct shell_command *command)
{
	char **folder = &looking->folders[looking->depth];
	const char *to = command->count == 2 ? command->values[1].data : NULL;
	struct buf path;

	if (!str_among("cd pushd popd", command->words[0]))
		return;
	buf_init(&path, PATH_MAX);
	if (*folder != NULL || (to != NULL && to[0] == '/')) {
		const bool known = to != NULL && strcmp(to, "-") != 0 &&
				   str_among("cd pushd", command->words[0]) &&
				   path_normal(*folder ? *folder : "/", to, &path);

		free(*folder);
		*folder = known ? memory_copy(path.data) : NULL;
	}
	buf_fini(&path);
}

static void see_command(struct looking *looking, const struct shell_command *command);

static struct str name_of(const struct shell_command *command)
{
	return shell_words_program(shell_command_value(command, 0));
}

/*
 * Visit the commands that find (fd) starts, each up to its ";" or "+". Finds inside finds
 * are limited: each uses stack, and a text can hold too many.
 */
static void see_find(struct looking *looking, const struct shell_command *command)
{
	const char *options = str_is(name_of(command), "find")
				      ? "-exec -execdir -ok -okdir"
				      : "-x -X --exec --exec-batch";

	looking->inner++;
	for (size_t i = 1; i + 1 < command->count && !looking->ended; i++) {
		struct shell_command started = *command;

		if (!str_among(options, shell_command_value(command, i)))
			continue;
		started.words += i + 1;
		started.values += i + 1;
		started.texts += i + 1;
		for (started.count = 0; i + 1 < command->count &&
					!str_is(shell_command_value(command, i + 1), ";") &&
					!str_is(shell_command_value(command, i + 1), "+");
		     i++)
			started.count++;
		shell_command_strip(&started);
		if (started.count > 0)
			see_command(looking, &started);
	}
	looking->inner--;
}

static bool is_find(const struct shell_command *command)
{
	return str_among("find fd fdfind", name_of(command));
}

/* May the text of SIZE bytes inside others be read? */
static bool may_enter(struct looking *looking, size_t size)
{
	if (looking->inner >= COMMAND_INNER_MAX || *looking->left < size)
		return false;
	*looking->left -= size;
	return true;
}

/* Visit the commands of TEXT, which another shell runs in FOLDER. */
static void see_inside(struct looking *looking, struct str text, const char *folder)
{
	struct looking inside = {.visit = looking->visit,
				 .inner = looking->inner + 1,
				 .left = looking->left,
				 .braces = looking->braces,
				 .downloads = looking->downloads};

	if (looking->ended || !may_enter(looking, text.size))
		return;
	inside.folders[0] = memory_copy(folder);
	see_text(&inside, text);
	looking->ended = inside.ended;
}

/* Are INNERS too deep in others, or too large, to be read? */
static bool too_deep(const struct looking *looking, const struct shell_inners *inners)
{
	size_t bytes = 0;

	for (size_t i = 0; i < inners->count; i++)
		bytes += inners->items[i].text.size;
	return inners->count > 0 &&
	       (looking->inner >= COMMAND_INNER_MAX || bytes > *looking->left);
}

/* Visit the commands in the substitutions and here-documents of a command. */
static void see_inners(struct looking *looking, const struct shell_inners *inners)
{
	for (size_t i = 0; i < inners->count && !looking->ended; i++) {
		struct str text = inners->items[i].text;
		struct buf plain;

		buf_init(&plain, text.size);
		/* In backquotes a backslash hides a backquote, "$" or backslash. */
		for (size_t j = 0; j < text.size && inners->items[i].in_backquotes; j++) {
			j += text.data[j] == '\\' && j + 1 < text.size &&
			     strchr("`$\\", text.data[j + 1]) != NULL;
			(void)buf_addc(&plain, text.data[j]);
		}
		see_inside(looking, inners->items[i].in_backquotes ? buf_str(&plain) : text,
			   folder_of(looking, looking->depth));
		buf_fini(&plain);
	}
}

/* Is the program's name known only to the shell? `[` and "~/bin/x" are known. */
static bool is_unknown(const struct shell_command *command)
{
	const struct str word = command->words[0];

	if (command->values[0].data != NULL || str_among("[ [[", word))
		return false;
	for (size_t i = 0; i < word.size; i++) {
		if (strchr("$`*?[{", word.data[i]) != NULL)
			return true;
	}
	return false;
}

static const char deep[] = "holds more commands inside others than Glovebox reads";
static const char unsure[] = "stands in a text whose here-documents or substitutions "
			     "Glovebox cannot tell from its commands";

static const char *why_unread(const struct looking *looking,
			      const struct shell_command *command, struct str inner)
{
	if (is_unknown(command))
		return "is a program whose name only the shell knows";
	if (shell_command_reads(command) && !command->input_seen &&
	    !(command->piped && looking->printed.size > 0))
		return "is a shell that takes its commands from elsewhere";
	if ((inner.size > 0 || is_find(command)) &&
	    (looking->inner >= COMMAND_INNER_MAX || inner.size > *looking->left))
		return deep;
	return looking->unread;
}

/* Keep what `echo` and `printf` print into a pipe: a shell may run it. */
static void keep_printed(struct looking *looking, const struct shell_command *command)
{
	buf_clear(&looking->printed);
	if (!command->output_taken || !str_among("echo printf", name_of(command)))
		return;
	for (size_t i = 1; i < command->count; i++) {
		/* A line end that printf makes of "\n" separates commands, as ";" does. */
		struct str text = command->texts[i];

		for (size_t j = 0; j < text.size; j++) {
			const bool line = text.data[j] == '\\' && j + 1 < text.size &&
					  text.data[j + 1] == 'n';

			(void)buf_addc(&looking->printed, line ? '\n' : text.data[j]);
			j += line;
		}
		(void)buf_addc(&looking->printed, ' ');
	}
}

static void see_command(struct looking *looking, const struct shell_command *command)
{
	struct command_seen seen = {
		.command = command,
		.folder = folder_of(looking, command->depth),
		.after_download = *looking->downloads,
		.input = command->here.size > 0 ? command->here
			 : command->piped       ? buf_str(&looking->printed)
						: STR(""),
	};
	struct buf text;

	buf_init(&text, COMMAND_TEXT_MAX * 2);
	if (!shell_command_inner(command, &text) && shell_command_reads(command) &&
	    command->piped)
		(void)buf_addstr(&text, buf_str(&looking->printed));
	seen.unread = why_unread(looking, command, buf_str(&text));
	looking->ended = !looking->visit->visit(looking->visit->context, &seen);
	*looking->downloads |=
		str_among("curl wget fetch aria2c http https xh", name_of(command));
	if (!looking->ended && is_find(command) && looking->inner < COMMAND_INNER_MAX)
		see_find(looking, command);
	if (text.size > 0)
		see_inside(looking, buf_str(&text), seen.folder);
	buf_fini(&text);
	if (command->depth < COMMAND_FOLDERS_MAX && !looking->ended)
		take_folder(looking, command);
	keep_printed(looking, command);
}

static void see_text(struct looking *looking, struct str text)
{
	struct shell_command command;
	struct shell_scan scan;
	bool found = true;

	buf_init(&looking->printed, COMMAND_TEXT_MAX * 2);
	shell_scan_init(&scan, text);
	while (found && !looking->ended) {
		if (*looking->braces < scan.braces_left)
			scan.braces_left = *looking->braces;
		found = shell_scan_next(&scan, &command);
		*looking->braces = scan.braces_left;
		if (found)
			enter(looking, command.depth);
		looking->unread = scan.lexer.unsure                 ? unsure
				  : too_deep(looking, &scan.inners) ? deep
								    : NULL;
		see_inners(looking, &scan.inners);
		if (found && !looking->ended)
			see_command(looking, &command);
	}
	shell_scan_fini(&scan);
	buf_fini(&looking->printed);
	leave(looking, 0);
	free(looking->folders[0]);
}

void command_seen_text(struct str text, const char *folder, const struct command_visit *visit)
{
	size_t left = COMMAND_INNER_BYTES, braces = SIZE_MAX;
	bool downloads = false;
	struct looking looking = {.visit = visit,
				  .left = &left,
				  .braces = &braces,
				  .downloads = &downloads};

	looking.folders[0] = memory_copy(folder);
	see_text(&looking, text);
}

void command_seen_argv(const char *const *argv, const char *folder,
		       const struct command_visit *visit)
{
	size_t left = COMMAND_INNER_BYTES, braces = SIZE_MAX;
	bool downloads = false;
	struct looking looking = {.visit = visit,
				  .left = &left,
				  .braces = &braces,
				  .downloads = &downloads};
	struct shell_command command = {0};

	while (argv[command.count] != NULL)
		command.count++;
	auto_free struct str *words = memory_array(command.count + 1, sizeof(*words));
	for (size_t i = 0; i < command.count; i++)
		words[i] = str_of(argv[i]);
	command.words = command.values = command.texts = words;
	shell_command_strip(&command);
	looking.folders[0] = memory_copy(folder);
	buf_init(&looking.printed, COMMAND_TEXT_MAX * 2);
	if (command.count > 0)
		see_command(&looking, &command);
	buf_fini(&looking.printed);
	free(looking.folders[0]);
}

/* Words that say what a command does, and programs that these words say nothing of. */

/*
 * Programs that run other programs or code, named by their words, options or input: the
 * first word does not say what would be run. A program is compared by the last part of
 * its path. Programs whose names end in a version (python3.11) are compared by the
 * beginning of the name.
 */
static const char runners[] =
	"sh bash dash zsh ksh mksh fish ash busybox toybox env sudo doas su runuser setpriv "
	"xargs parallel nohup nice ionice chrt taskset timeout time stdbuf setsid setarch script "
	"watch strace ltrace gdb chroot unshare nsenter exec eval source . command builtin trap "
	"find awk gawk mawk sed ssh make ninja just npx bunx pipx uvx deno bun "
	"tclsh expect osascript java";
static const char *const runner_families[] = {"python", "pypy", "perl", "ruby", "node",
					      "nodejs", "php",  "lua",  "guile"};

bool command_is_runner(const char *program)
{
	const struct str name = str_of(path_base_name(program));

	if (str_among(runners, name))
		return true;
	for (size_t i = 0; i < sizeof(runner_families) / sizeof(runner_families[0]); i++) {
		const struct str family = str_of(runner_families[i]);
		const struct str version = str_part(name, family.size, name.size);

		if (str_starts(name, family) &&
		    strspn(version.data, "0123456789.-") >= version.size)
			return true;
	}
	return false;
}

bool command_is_plain_word(const char *word)
{
	return word[0] != '\0' && word[0] != '-' &&
	       word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789_-./:@%+=,")] == '\0';
}
