/* command: reads a shell text by a strict grammar over the tokens of base/text/shell. */
#include "policy/command.h"

#include "base/memory.h"
#include "base/text/shell.h"

#include <string.h>

enum { WORDS_FIRST = 32, PARTS_FIRST = 4 };

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
	size_t word_count, word_room, part_room;
	enum command_join join; /* of the next command */
	bool required;          /* a command must follow */
};

static void add_word(struct reader *reader, const char *word)
{
	struct command *command = reader->command;

	if (reader->word_count == reader->word_room) {
		reader->word_room = 2 * reader->word_room + WORDS_FIRST;
		command->words = memory_grow(command->words, reader->word_room,
					     sizeof(*command->words));
	}
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
	if (command->count == reader->part_room) {
		reader->part_room = 2 * reader->part_room + PARTS_FIRST;
		command->parts = memory_grow(command->parts, reader->part_room,
					     sizeof(*command->parts));
	}
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
