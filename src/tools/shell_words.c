/* shell_words: simple commands out of the tokens of a text; see shell_words.h. */
#include "tools/shell_words.h"

#include <ctype.h>
#include <string.h>

void shell_scan_init(struct shell_scan *scan, struct str text)
{
	memset(scan, 0, sizeof(*scan));
	shell_lexer_init(&scan->lexer, text, NULL);
}

static bool is_number(struct str word)
{
	for (size_t i = 0; i < word.size; i++) {
		if (!isdigit((unsigned char)word.data[i]))
			return false;
	}
	return word.size > 0;
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
	if (str_is(operator, "<<") || str_is(operator, "<<-"))
		scan->here_document = true;
	if (input)
		command->input_given = true;
	else if (!descriptor.size || str_is(descriptor, "1"))
		command->output_taken = true;
	before = scan->lexer;
	shell_lexer_next(&scan->lexer, &token);
	if (token.kind != SHELL_WORD)
		scan->lexer = before;
}

/* Words that stand before a program's name and are not it. */
static bool is_before_name(struct str word)
{
	static const char *const words[] = {"if",      "then",  "else", "elif",  "do",
					    "while",   "until", "!",    "{",     "time",
					    "exec",    "env",   "sudo", "nohup", "nice",
					    "builtin", NULL};

	for (size_t i = 0; words[i]; i++) {
		if (str_is(word, words[i]))
			return true;
	}
	return false;
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
	command->count -= count;
	memmove(command->words, command->words + count,
		command->count * sizeof(command->words[0]));
}

static void strip(struct shell_command *command)
{
	size_t at = 0;
	bool options = false; /* of env, sudo and the like */

	while (at < command->count) {
		struct str word = command->words[at];

		if (is_before_name(word))
			options = true;
		else if (!is_assignment(word) && !(options && str_starts(word, STR("-"))))
			break;
		at++;
	}
	drop_first(command, at);
	/* `command vim` runs it, `command -v vim` only looks for it. */
	if (command->count > 1 && str_is(command->words[0], "command") &&
	    !str_starts(command->words[1], STR("-")))
		drop_first(command, 1);
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
	} else if (kind == SHELL_END || (kind == SHELL_NEWLINE && scan->here_document)) {
		scan->ended = true;
	}
	return counts;
}

/* One command up to its separator; false when it was none. */
static bool take_command(struct shell_scan *scan, struct shell_command *command)
{
	struct shell_token token;

	memset(command, 0, sizeof(*command));
	command->input_given = scan->after_pipe;
	for (;;) {
		shell_lexer_next(&scan->lexer, &token);
		if (token.kind == SHELL_REDIRECTION)
			take_redirection(scan, token.text, command);
		else if (token.kind != SHELL_WORD && token.kind != SHELL_PROCESS)
			return take_separator(scan, token.kind, command);
		else if (token.kind == SHELL_WORD && command->count < SHELL_WORDS_MAX)
			command->words[command->count++] = token.text;
	}
}

bool shell_next(struct shell_scan *scan, struct shell_command *command)
{
	while (!scan->ended) {
		bool counts = take_command(scan, command);

		strip(command);
		if (command->count && counts)
			return true;
	}
	return false;
}

struct str shell_program(struct str word)
{
	for (size_t i = word.size; i > 0; i--) {
		if (word.data[i - 1] == '/')
			return str_part(word, i, word.size);
	}
	if (str_starts(word, STR("\\")))
		return str_part(word, 1, word.size);
	return word;
}
