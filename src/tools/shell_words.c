/* shell_words: a scanner over quotes, separators and redirections; see shell_words.h. */
#include "tools/shell_words.h"

#include <ctype.h>
#include <string.h>

void shell_scan_init(struct shell_scan *scan, struct str text)
{
	memset(scan, 0, sizeof(*scan));
	scan->text = text;
}

static char peek(const struct shell_scan *scan, size_t ahead)
{
	size_t at = scan->at + ahead;

	return at < scan->text.size ? scan->text.data[at] : '\0';
}

static bool at_end(const struct shell_scan *scan)
{
	return scan->at >= scan->text.size;
}

/* Skip to after the closing QUOTE; the scan is at the opening one. */
static void skip_quoted(struct shell_scan *scan, char quote)
{
	scan->at++;
	while (!at_end(scan) && peek(scan, 0) != quote) {
		if (peek(scan, 0) == '\\' && quote != '\'')
			scan->at++;
		scan->at++;
	}
	scan->at++;
}

/* Skip "(…)" of a substitution, quotes and inner parentheses included. */
static void skip_parentheses(struct shell_scan *scan)
{
	size_t depth = 0;

	do {
		char c = peek(scan, 0);

		if (c == '\'' || c == '"' || c == '`') {
			skip_quoted(scan, c);
			continue;
		}
		if (c == '\\')
			scan->at++;
		else if (c == '(')
			depth++;
		else if (c == ')')
			depth--;
		scan->at++;
	} while (depth > 0 && !at_end(scan));
}

static struct str take_word(struct shell_scan *scan)
{
	size_t start = scan->at;

	while (!at_end(scan) && !strchr(" \t\n;&|<>()", peek(scan, 0))) {
		char c = peek(scan, 0);

		if (c == '\'' || c == '"' || c == '`')
			skip_quoted(scan, c);
		else if (c == '\\')
			scan->at += 2;
		else if (c == '$' && peek(scan, 1) == '(') {
			scan->at++;
			skip_parentheses(scan);
		} else
			scan->at++;
	}
	if (scan->at > scan->text.size)
		scan->at = scan->text.size;
	return str_part(scan->text, start, scan->at - start);
}

static void skip_blanks(struct shell_scan *scan)
{
	for (;;) {
		if (peek(scan, 0) == ' ' || peek(scan, 0) == '\t')
			scan->at++;
		else if (peek(scan, 0) == '\\' && peek(scan, 1) == '\n')
			scan->at += 2;
		else
			return;
	}
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
 * A redirection: the scan is at "<" or ">". A number that touches it is its descriptor,
 * no word.
 */
static void take_redirection(struct shell_scan *scan, struct shell_command *command)
{
	bool input = peek(scan, 0) == '<';
	struct str descriptor = {0};

	if (command->count && scan->at > 0) {
		struct str last = command->words[command->count - 1];

		if (last.data + last.size == scan->text.data + scan->at && is_number(last)) {
			descriptor = last;
			command->count--;
		}
	}
	if (peek(scan, 1) == '(') { /* <(…) and >(…) are words */
		scan->at++;
		skip_parentheses(scan);
		return;
	}
	if (input && peek(scan, 1) == '<' && peek(scan, 2) != '<')
		scan->here_document = true;
	if (input)
		command->input_given = true;
	else if (!descriptor.size || str_is(descriptor, "1"))
		command->output_taken = true;
	while (!at_end(scan) && strchr("<>&|-", peek(scan, 0)))
		scan->at++;
	skip_blanks(scan);
	(void)take_word(scan);
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
static bool take_separator(struct shell_scan *scan, struct shell_command *command)
{
	char c = peek(scan, 0);
	bool counts = true;

	scan->after_pipe = false;
	if (c == '|' && peek(scan, 1) != '|') {
		scan->after_pipe = true;
		command->output_taken = true;
		scan->at += peek(scan, 1) == '&';
	} else if (c == '(') {
		counts = false;
		scan->open++;
	} else if (c == ')') {
		counts = scan->open > 0;
		scan->open -= counts;
	} else if (c == '\n' && scan->here_document) {
		scan->ended = true;
	}
	scan->at++;
	return counts;
}

static void skip_comment(struct shell_scan *scan)
{
	while (!at_end(scan) && peek(scan, 0) != '\n')
		scan->at++;
}

bool shell_next(struct shell_scan *scan, struct shell_command *command)
{
	while (!scan->ended) {
		bool counts = true;

		memset(command, 0, sizeof(*command));
		command->input_given = scan->after_pipe;
		for (bool more = true; more;) {
			char c;

			skip_blanks(scan);
			c = peek(scan, 0);
			if (at_end(scan)) {
				scan->ended = true;
				more = false;
			} else if (c == '&' && peek(scan, 1) == '>') {
				scan->at++;
			} else if (c == '<' || c == '>') {
				take_redirection(scan, command);
			} else if (strchr("\n;&|()", c)) {
				counts = take_separator(scan, command);
				more = false;
			} else if (c == '#') {
				skip_comment(scan);
			} else {
				struct str word = take_word(scan);

				if (command->count < SHELL_WORDS_MAX)
					command->words[command->count++] = word;
			}
		}
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
