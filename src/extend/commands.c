/* commands: reads the files, and makes prompts of them. */

#include "extend/commands.h"

#include "base/memory.h"
#include "base/str.h"
#include "base/text/front_matter.h"
#include "base/text/text.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAME_MAX_BYTES = 128,
	WORDS_MAX = 9,
	COMMAND_MAX = 4096, /* of one !`command` */
};

/* Letters, digits, "-", "_", "." and ":" between the folders. */
static bool name_is_fine(const char *name)
{
	const size_t size = strlen(name);

	return size > 0 && size <= NAME_MAX_BYTES &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "-_.:") == size;
}

static char *text_of(const struct value *matter, const char *name)
{
	const char *text = value_text(value_member(matter, name));

	return memory_copy(text != NULL ? text : "");
}

/* The first line of a body, which says what a command without a description is for. */
static char *first_line(const char *body)
{
	struct str rest = str_of(body), line = {0};

	(void)str_next_line(&rest, &line);
	return memory_copy_str(str_trim(line));
}

static void take_text(struct command *command, const char *text)
{
	struct err err = {0};

	/* A file without front matter is a body as a whole. */
	if (!str_starts(str_of(text), STR("---"))) {
		command->body = memory_copy(text);
		command->description = first_line(text);
		command->hint = memory_copy("");
		return;
	}
	if (!front_matter_parse(str_of(text), &command->matter, &err)) {
		brought_refuse(&command->problem, err.text, "");
		return;
	}
	command->body = text_of(command->matter, "prompt");
	command->hint = text_of(command->matter, "argument-hint");
	command->description =
		value_text(value_member(command->matter, "description")) != NULL
			? text_of(command->matter, "description")
			: first_line(command->body);
}

void commands_add(struct commands *commands, const struct brought *item, bool own)
{
	const struct command *first = commands_find(commands, item->name);
	struct command command = {
		.name = memory_copy(item->name),
		.file = memory_copy(item->file),
		.own = own,
	};

	if (item->problem != NULL) {
		brought_refuse(&command.problem, item->problem, "");
	} else if (!name_is_fine(item->name)) {
		brought_refuse(&command.problem,
			       "the name is made of letters, digits, - and _", "");
	} else if (first != NULL) {
		brought_refuse(&command.problem, "the name is taken by ", first->file);
		command.shadowed = first->own && !own;
	} else {
		take_text(&command, item->text);
	}
	commands->items = memory_grow(commands->items, commands->count + 1,
				      sizeof(commands->items[0]));
	commands->items[commands->count++] = command;
}

void commands_fini(struct commands *commands)
{
	for (size_t i = 0; i < commands->count; i++) {
		struct command *command = &commands->items[i];

		free(command->name);
		free(command->file);
		free(command->description);
		free(command->hint);
		free(command->body);
		free(command->problem);
		value_free(command->matter);
	}
	free(commands->items);
	*commands = (struct commands){0};
}

const struct command *commands_find(const struct commands *commands, const char *name)
{
	for (size_t i = 0; i < commands->count; i++) {
		if (commands->items[i].problem == NULL &&
		    strcmp(commands->items[i].name, name) == 0)
			return &commands->items[i];
	}
	return NULL;
}

/* Makes a prompt of a body. */

struct expansion {
	struct str arguments;
	struct buf words[WORDS_MAX];
	size_t word_count;
	command_run *run;
	void *context;
	struct buf *out;
	bool named; /* the body names an argument */
};

/* Split the arguments: quotes hold words together, and a backslash takes the next byte. */
static void split_words(struct expansion *expansion)
{
	const struct str text = expansion->arguments;
	size_t at = 0;

	while (at < text.size && expansion->word_count < WORDS_MAX) {
		struct buf *word = &expansion->words[expansion->word_count];
		char quote = '\0';
		bool begun = false;

		buf_init(word, text.size + 1);
		for (; at < text.size; at++) {
			const char c = text.data[at];
			const bool blank = c == ' ' || c == '\t' || c == '\n';

			if (quote == '\0' && blank && begun)
				break;
			if (quote == '\0' && blank)
				continue;
			begun = true;
			if (quote == '\0' && (c == '\'' || c == '"'))
				quote = c;
			else if (quote != '\0' && c == quote)
				quote = '\0';
			else if (c == '\\' && quote != '\'' && at + 1 < text.size)
				(void)buf_addc(word, text.data[++at]);
			else
				(void)buf_addc(word, c);
		}
		if (begun)
			expansion->word_count++;
		else
			buf_fini(word);
	}
}

/*
 * Take "$ARGUMENTS", "$1" or "${1:-x}" at the beginning of REST. Returns its size; 0: it is none.
 */
static size_t take_argument(struct expansion *expansion, struct str rest)
{
	static const char all[] = "$ARGUMENTS";
	struct str absent = {0};
	size_t size = 2;
	char digit;

	if (str_starts(rest, STR(all))) {
		(void)buf_addstr(expansion->out, expansion->arguments);
		expansion->named = true;
		return strlen(all);
	}
	if (str_starts(rest, STR("${")) && rest.size > 5 && rest.data[3] == ':' &&
	    rest.data[4] == '-') {
		const size_t end = str_find(rest, STR("}"), 5);

		if (end == SIZE_MAX)
			return 0;
		absent = str_part(rest, 5, end - 5);
		digit = rest.data[2];
		size = end + 1;
	} else if (str_starts(rest, STR("${")) && rest.size > 3 && rest.data[3] == '}') {
		digit = rest.data[2];
		size = 4;
	} else {
		digit = rest.size > 1 ? rest.data[1] : '\0';
	}
	if (digit < '1' || digit > '9')
		return 0;
	const size_t index = (size_t)(digit - '1');
	(void)buf_addstr(expansion->out,
			 index < expansion->word_count && expansion->words[index].size > 0
				 ? buf_str(&expansion->words[index])
				 : absent);
	expansion->named = true;
	return size;
}

/* Take "!`command`" at the beginning of REST. *SIZE 0: it is none. False: the command failed. */
static bool take_command(struct expansion *expansion, struct str rest, size_t *size,
			 struct err *err)
{
	const size_t end =
		str_starts(rest, STR("!`")) ? str_find(rest, STR("`"), 2) : SIZE_MAX;
	bool fine;

	*size = 0;
	if (end == SIZE_MAX || end - 2 > COMMAND_MAX)
		return true;
	auto_free char *command = memory_copy_str(str_part(rest, 2, end - 2));
	*size = end + 1;
	fine = expansion->run(expansion->context, command, expansion->out, err);
	while (fine && expansion->out->size > 0 &&
	       expansion->out->data[expansion->out->size - 1] == '\n')
		buf_truncate(expansion->out, expansion->out->size - 1);
	return fine;
}

static bool expand(struct expansion *expansion, struct str body, struct err *err)
{
	size_t at = 0;

	while (at < body.size) {
		const struct str rest = str_part(body, at, SIZE_MAX);
		size_t size = 0;

		if (rest.data[0] == '$')
			size = take_argument(expansion, rest);
		else if (rest.data[0] == '!' && !take_command(expansion, rest, &size, err))
			return false;
		if (size == 0)
			(void)buf_addc(expansion->out, rest.data[0]);
		at += size > 0 ? size : 1;
	}
	return true;
}

bool command_expand(const struct command *command, struct str arguments, command_run *run,
		    void *context, struct buf *out, struct err *err)
{
	struct expansion expansion = {
		.arguments = str_trim(arguments),
		.run = run,
		.context = context,
		.out = out,
	};
	bool fine;

	split_words(&expansion);
	fine = expand(&expansion, str_of(command->body), err);
	if (fine && !expansion.named && expansion.arguments.size > 0) {
		(void)buf_end_line(out);
		(void)buf_addc(out, '\n');
		(void)buf_addstr(out, expansion.arguments);
	}
	if (fine && out->overflowed)
		fine = err_set(err, E2BIG, "the prompt of /%s is too long", command->name);
	for (size_t i = 0; i < expansion.word_count; i++)
		buf_fini(&expansion.words[i]);
	return fine;
}
