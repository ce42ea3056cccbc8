/* shell_words: simple commands out of the tokens of a text; see shell_words.h. */
#include "base/text/shell_words.h"

#include "base/memory.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_FIRST = 32 };

void shell_scan_init(struct shell_scan *scan, struct str text)
{
	memset(scan, 0, sizeof(*scan));
	scan->values = memory_alloc(text.size + 1);
	shell_lexer_init(&scan->lexer, text, scan->values);
}

void shell_scan_fini(struct shell_scan *scan)
{
	free(scan->values);
	free(scan->word_room);
	free(scan->value_room);
	memset(scan, 0, sizeof(*scan));
}

static void add_word(struct shell_scan *scan, struct shell_command *command,
		     const struct shell_token *token)
{
	if (command->count == scan->room) {
		scan->room = 2 * scan->room + WORDS_FIRST;
		scan->word_room =
			memory_grow(scan->word_room, scan->room, sizeof(*scan->word_room));
		scan->value_room = memory_grow(scan->value_room, scan->room,
					       sizeof(*scan->value_room));
	}
	scan->word_room[command->count] = token->text;
	scan->value_room[command->count++] =
		token->kind == SHELL_WORD && token->reason == SHELL_LITERAL
			? token->value
			: (struct str){0};
	command->words = scan->word_room;
	command->values = scan->value_room;
}

static bool is_number(struct str word)
{
	for (size_t i = 0; i < word.size; i++) {
		if (!isdigit((unsigned char)word.data[i]))
			return false;
	}
	return word.size > 0;
}

static void begin_document(struct shell_scan *scan, const struct shell_token *token,
			   bool tabs)
{
	if (scan->document_count == SHELL_DOCUMENTS_MAX) {
		scan->ended = true;
		return;
	}
	scan->documents[scan->document_count++] = (struct shell_document){
		.end = token->reason == SHELL_LITERAL ? token->value : token->text,
		.tabs = tabs,
	};
}

/* The lines of a here-document are data of the command before them. */
static void skip_documents(struct shell_scan *scan)
{
	struct shell_lexer *lexer = &scan->lexer;

	for (size_t i = 0; i < scan->document_count; i++) {
		const struct shell_document *document = &scan->documents[i];
		bool found = false;

		while (!found && lexer->at < lexer->text.size) {
			struct str rest =
				str_part(lexer->text, lexer->at, lexer->text.size);
			struct str left = rest, line;

			if (!str_next_line(&left, &line))
				break;
			lexer->at += rest.size - left.size;
			while (document->tabs && str_starts(line, STR("\t")))
				line = str_part(line, 1, line.size);
			found = str_equal(line, document->end);
		}
	}
	scan->document_count = 0;
}

/*
 * A redirection. A number that touches it is its descriptor, no word; the word behind it is
 * none of the command's either.
 */
static void take_redirection(struct shell_scan *scan, struct str operator,
			     struct shell_command * command)
{
	bool input = operator.data[0] == '<';
	struct shell_lexer before;
	struct shell_token token;
	struct str descriptor = {0};

	if (command->count && operator.data[0] != '&') {
		struct str last = command->words[command->count - 1];

		if (last.data + last.size == operator.data && is_number(last)) {
			descriptor = last;
			command->count--;
		}
	}
	if (input)
		command->input_given = true;
	else if (!descriptor.size || str_is(descriptor, "1"))
		command->output_taken = true;
	before = scan->lexer;
	shell_lexer_next(&scan->lexer, &token);
	if (token.kind != SHELL_WORD)
		scan->lexer = before;
	else if (str_is(operator, "<<") || str_is(operator, "<<-"))
		begin_document(scan, &token, operator.size == 3);
}

/*
 * Words that stand before a program's name and are not it; of their options those whose value
 * is the next word, and how many operands come before the name.
 */
static const struct before {
	const char *names, *valued;
	size_t operands;
} befores[] = {
	{"if then else elif do while until ! { time builtin nohup setsid", "", 0},
	{"exec", "-a", 0},
	{"env", "-u --unset -C --chdir", 0},
	{"sudo doas", "-u -g -h -p -C -D -R -r -T -t -U --user --group --host --chdir", 0},
	{"nice", "-n --adjustment", 0},
	{"ionice", "-c -n", 0},
	{"stdbuf", "-i -o -e", 0},
	{"timeout", "-s -k --signal --kill-after", 1},
	{"xargs", "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-procs", 0},
};

static const struct before *before_of(struct str word)
{
	for (size_t i = 0; i < sizeof(befores) / sizeof(befores[0]); i++) {
		if (str_among(befores[i].names, shell_words_program(word)))
			return &befores[i];
	}
	return NULL;
}

static bool is_assignment(struct str word)
{
	size_t at = 0;

	while (at < word.size &&
	       (isalnum((unsigned char)word.data[at]) || word.data[at] == '_'))
		at++;
	if (at < word.size && word.data[at] == '+')
		at++;
	return at > 0 && at < word.size && word.data[at] == '=' &&
	       !isdigit((unsigned char)word.data[0]);
}

static void drop_first(struct shell_command *command, size_t count)
{
	if (count == 0)
		return;
	command->count -= count;
	command->words += count;
	command->values += count;
}

/* Behind the word at AT, which BEFORE describes: to the name, as far as there is one. */
static size_t skip_before(const struct shell_command *command,
			  const struct before *before, size_t at)
{
	size_t operands = before->operands;

	for (at++; at < command->count; at++) {
		struct str word = command->words[at];

		if (str_starts(word, STR("-")))
			at += str_among(before->valued, word);
		else if (!is_assignment(word) && operands-- == 0)
			break;
	}
	return at < command->count ? at : command->count;
}

void shell_command_strip(struct shell_command *command)
{
	size_t at = 0;

	while (at < command->count) {
		struct str word = command->words[at];
		const struct before *before = before_of(shell_command_value(command, at));

		if (before != NULL)
			at = skip_before(command, before, at);
		else if (is_assignment(word))
			at++;
		else
			break;
	}
	drop_first(command, at);
	/* `command vim` runs it, `command -v vim` only looks for it. */
	if (command->count > 1 && str_is(command->words[0], "command") &&
	    !str_starts(command->words[1], STR("-")))
		drop_first(command, 1);
}

/* Behind the option -c of a shell, alone or among letters ("-lc"); `count` when it has none. */
static size_t behind_c(const struct shell_command *command)
{
	for (size_t at = 1; at < command->count; at++) {
		struct str word = command->words[at];

		if (!str_starts(word, STR("-")))
			break;
		if (!str_starts(word, STR("--")) && memchr(word.data, 'c', word.size) != NULL)
			return at + 1;
	}
	return command->count;
}

bool shell_command_inner(const struct shell_command *command, struct str *text)
{
	struct str name =
		command->count > 0 ? shell_words_program(command->words[0]) : STR("");
	size_t at = command->count;

	if (str_is(name, "eval") && command->count == 2)
		at = 1;
	else if (str_among("sh bash dash zsh ksh ash", name))
		at = behind_c(command);
	if (at >= command->count || command->values[at].data == NULL)
		return false;
	*text = command->values[at];
	return true;
}

/*
 * A separator ends the command; false when it was no command after all (a case label, a
 * function's name).
 */
static bool take_separator(struct shell_scan *scan, enum shell_kind kind,
			   struct shell_command *command)
{
	bool counts = true;

	scan->after_pipe = kind == SHELL_PIPE || kind == SHELL_PIPE_BOTH;
	if (scan->after_pipe)
		command->output_taken = true;
	if (kind == SHELL_OPEN) {
		counts = false;
		scan->open++;
	} else if (kind == SHELL_CLOSE) {
		counts = scan->open > 0;
		scan->open -= counts;
	} else if (kind == SHELL_END) {
		scan->ended = true;
	} else if (kind == SHELL_NEWLINE) {
		skip_documents(scan);
	}
	return counts;
}

/* One command up to its separator; false when it was none. */
static bool take_command(struct shell_scan *scan, struct shell_command *command)
{
	struct shell_token token;

	memset(command, 0, sizeof(*command));
	command->input_given = scan->after_pipe;
	command->depth = scan->open;
	for (;;) {
		shell_lexer_next(&scan->lexer, &token);
		if (token.kind == SHELL_REDIRECTION)
			take_redirection(scan, token.text, command);
		else if (token.kind != SHELL_WORD && token.kind != SHELL_PROCESS)
			return take_separator(scan, token.kind, command);
		else if (token.kind == SHELL_WORD)
			add_word(scan, command, &token);
	}
}

bool shell_scan_next(struct shell_scan *scan, struct shell_command *command)
{
	while (!scan->ended) {
		bool counts = take_command(scan, command);

		shell_command_strip(command);
		if (command->count && counts)
			return true;
	}
	return false;
}

struct str shell_words_program(struct str word)
{
	for (size_t i = word.size; i > 0; i--) {
		if (word.data[i - 1] == '/')
			return str_part(word, i, word.size);
	}
	if (str_starts(word, STR("\\")))
		return str_part(word, 1, word.size);
	return word;
}

size_t shell_command_git(const struct shell_command *command)
{
	size_t at = 1;

	while (at < command->count && str_starts(command->words[at], STR("-")))
		at += str_among("-c -C --git-dir --work-tree --namespace --config-env "
				"--super-prefix",
				command->words[at])
			      ? 2
			      : 1;
	return at < command->count ? at : command->count;
}

struct str shell_command_value(const struct shell_command *command, size_t at)
{
	return command->values[at].data != NULL ? command->values[at] : command->words[at];
}
