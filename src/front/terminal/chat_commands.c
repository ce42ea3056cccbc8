/* chat_commands: the commands of a conversation, in one table. */
#include "front/terminal/chat.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "front/terminal/paint.h"
#include "front/verb.h"
#include "session/session.h"

enum {
	COMMAND_COLUMN = 18,
	TOOL_COLUMN = 18,
	LISTED_COLUMNS = 500,
	/* The person reads a whole change here; a longer one is for git. */
	DIFF_HEAD = 2000,
	DIFF_TAIL = 500,
	COMMAND_MAX = 4096, /* of the complaint about an unknown command */
};

struct command {
	const char *name, *argument, *summary;
	void (*run)(struct chat *chat, const char *argument); /* "" when there is none */
};

static void run_help(struct chat *chat, const char *argument);

static void add_line(struct paint *paint, struct str text)
{
	paint_one_line(paint, PAINT_PLAIN, text, LISTED_COLUMNS);
	(void)buf_addc(&paint->out, '\n');
}

/* Print the composed text unchanged: its lines are not folded. */
static void flush(struct chat *chat)
{
	struct buf *out = &chat->paint.out;

	(void)fd_write_all(STDOUT_FILENO, out->data, out->size, NULL);
	buf_clear(out);
}

static void add_name(void *context, const char *name)
{
	struct chat *chat = context;

	(void)buf_adds(&chat->paint.out, "  ");
	add_line(&chat->paint, str_of(name));
}

static void count_name(void *context, const char *name)
{
	size_t *count = context;

	(void)name;
	*count += 1;
}

static void run_model(struct chat *chat, const char *argument)
{
	size_t named = 0;

	if (argument[0] != '\0') {
		chat_change_model(chat, argument);
		return;
	}
	(void)buf_adds(&chat->paint.out, "The model is ");
	add_line(&chat->paint, str_of(talk_model_name(chat->talk)));
	(void)buf_adds(&chat->paint.out, "/model NAME goes on with another");
	chat_each_model(chat, count_name, &named);
	(void)buf_adds(&chat->paint.out,
		       named > 0 ? ". The configuration names:\n"
				 : "; glovebox models lists what can be asked from here.\n");
	chat_each_model(chat, add_name, chat);
}

static void run_agent(struct chat *chat, const char *argument)
{
	if (argument[0] != '\0') {
		chat_change_agent(chat, argument);
		return;
	}
	(void)buf_addf(&chat->paint.out,
		       "The agent is %s. /agent NAME goes on as another, with the rights of "
		       "that one:\n",
		       chat->setup->agent);
	chat_each_agent(chat, add_name, chat);
}

static void run_tools(struct chat *chat, const char *argument)
{
	const struct tool *const *tools = session_tools(talk_session(chat->talk));
	struct paint *paint = &chat->paint;

	(void)argument;
	for (; *tools != NULL; tools++) {
		struct str description = str_of((*tools)->description);
		size_t end = str_find(description, STR(". "), 0);

		(void)buf_addf(&paint->out, "  %-*s", TOOL_COLUMN, (*tools)->name);
		if (end != SIZE_MAX)
			description = str_part(description, 0, end + 1);
		paint_one_line(paint, PAINT_DIM, description,
			       paint->columns > TOOL_COLUMN + 8
				       ? paint->columns - TOOL_COLUMN - 3
				       : LISTED_COLUMNS);
		(void)buf_addc(&paint->out, '\n');
	}
}

/* Tell the model of the undo, so that it does not go on from files that are gone. */
static void tell_of_undo(struct chat *chat, const struct tool_result *result)
{
	struct buf sentence;
	struct err err = {0};

	buf_init(&sentence, COMMAND_MAX);
	(void)buf_adds(&sentence, "The person has undone a step of yours: ");
	(void)buf_addstr(&sentence, str_part(buf_str(&result->text), 0,
					     text_character_border(buf_str(&result->text),
								   COMMAND_MAX / 2)));
	if (!agent_notice(talk_agent(chat->talk), sentence.data, true, &err))
		chat->code = verb_complain(CODE_FAILED, "%s", err.text);
	buf_fini(&sentence);
}

static void run_undo(struct chat *chat, const char *argument)
{
	struct tool_result result;
	uint64_t number = 0;
	struct err err = {0};

	if (argument[0] != '\0' &&
	    (!text_parse_count(argument, UINT32_MAX, &number, &err) || number == 0)) {
		(void)buf_addf(&chat->paint.out,
			       "\"%.100s\" is no step; glovebox undo --list names them.\n",
			       argument);
		return;
	}
	tool_result_init(&result);
	chat_undo(chat, (uint32_t)number, &result);
	if (result.status == RESULT_DONE) {
		tell_of_undo(chat, &result);
	} else {
		(void)buf_addstr(&chat->paint.out, str_trim(buf_str(&result.text)));
		(void)buf_addc(&chat->paint.out, '\n');
	}
	tool_result_fini(&result);
}

static void run_diff(struct chat *chat, const char *argument)
{
	auto_value struct value *arguments = value_new_object();
	const struct request request = {
		.tool = "generate_patch",
		.arguments = arguments,
		.id = "diff",
		.by_front = true,
		.quiet = true,
	};
	const struct paint_excerpt excerpt = {
		.head = DIFF_HEAD,
		.tail = DIFF_TAIL,
		.is_diff = true,
	};
	struct session *session = talk_session(chat->talk);
	struct tool_result result;
	struct str patch;

	(void)argument;
	if (session_changed(session)[0] == NULL) {
		(void)buf_adds(&chat->paint.out, "Nothing has been changed.\n");
		return;
	}
	value_set_text(arguments, "title", "The change so far");
	value_set_text(arguments, "summary", "What this conversation changed.");
	tool_result_init(&result);
	session_call(session, &request, &result);
	patch = value_str(value_member(result.details, "patch"));
	if (result.status == RESULT_DONE && patch.size > 0) {
		paint_lines(&chat->paint, patch, &excerpt);
	} else {
		paint_lines(&chat->paint, str_trim(buf_str(&result.text)),
			    &(struct paint_excerpt){.head = DIFF_HEAD});
	}
	/* Print without folding: lines of files must stay whole. */
	flush(chat);
	tool_result_fini(&result);
}

static void run_sessions(struct chat *chat, const char *argument)
{
	static const char *const words[] = {"--limit", "10", NULL};
	FILE *out = fold_open();
	struct options options;
	struct err err = {0};

	(void)chat;
	(void)argument;
	if (options_parse(&options, verb_sessions_list.options, words, false, &err))
		(void)verb_sessions_list.run(&options, out);
	options_fini(&options);
	fold_close(out);
	/*
	 * Flush: the next words of the conversation are written to the descriptor
	 * directly.
	 */
	(void)fflush(stdout);
}

static void run_quit(struct chat *chat, const char *argument)
{
	(void)argument;
	chat->over = true;
}

static const struct command commands[] = {
	{"help", "", "this list", run_help},
	{"model", "[NAME]", "the model; or go on with another", run_model},
	{"agent", "[NAME]", "the agent; or go on as another, with its rights", run_agent},
	{"tools", "", "the tools that the agent has", run_tools},
	{"undo", "[N]", "put back what the newest step, or step N, has changed", run_undo},
	{"diff", "", "what was changed since the conversation began", run_diff},
	{"sessions", "", "the last conversations there were", run_sessions},
	{"quit", "", "the end; so does Ctrl+D", run_quit},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void run_help(struct chat *chat, const char *argument)
{
	struct buf *out = &chat->paint.out;

	(void)argument;
	for (size_t i = 0; i < COMMANDS; i++) {
		char form[64];

		(void)snprintf(form, sizeof(form), "/%s %s", commands[i].name,
			       commands[i].argument);
		(void)buf_addf(out, "  %-*s%s\n", COMMAND_COLUMN, form, commands[i].summary);
	}
	(void)buf_adds(out,
		       "\nA backslash at the end of a line, or Alt+Enter, begins another one. "
		       "Tab completes a command, Ctrl+R searches what was typed before. While the "
		       "agent works, Ctrl+C or Escape stops it, Ctrl+C again quits.\n");
}

/* The name in "/name …", and where its argument begins. */
static struct str command_name(struct str text, size_t *end)
{
	for (*end = 1; *end < text.size; (*end)++) {
		if (strchr(" \t\n", text.data[*end]) != NULL)
			break;
	}
	return str_part(text, 1, *end - 1);
}

bool chat_is_command(struct str text)
{
	struct str name;
	size_t end;

	if (text.size == 0 || text.data[0] != '/')
		return false;
	name = command_name(text, &end);
	for (size_t i = 0; i < name.size; i++) {
		if ((name.data[i] | 0x20) < 'a' || (name.data[i] | 0x20) > 'z')
			return false;
	}
	return true;
}

static void refuse(struct chat *chat, const char *name)
{
	const char *names[COMMANDS + 1] = {NULL};
	const char *nearest;

	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	nearest = text_nearest(name, names);
	(void)buf_addf(&chat->paint.out, "There is no /%.40s", name);
	if (nearest != NULL)
		(void)buf_addf(&chat->paint.out, "; did you mean /%s?\n", nearest);
	else
		(void)buf_adds(&chat->paint.out, "; /help lists what there is.\n");
}

/* Print the answer of a command, folded to the lines of the terminal. */
static void show(struct chat *chat)
{
	struct buf *out = &chat->paint.out;
	struct buf lines;

	buf_init(&lines, 4 * out->max);
	fold_lines(buf_str(out), chat->paint.columns, &lines);
	(void)buf_end_line(&lines);
	(void)fd_write_all(STDOUT_FILENO, lines.data, lines.size, NULL);
	buf_clear(out);
	buf_fini(&lines);
}

void chat_command(struct chat *chat, struct str text)
{
	struct buf *out = &chat->paint.out;
	size_t end;
	auto_free char *name = memory_copy_str(command_name(text, &end));
	auto_free char *argument =
		memory_copy_str(str_trim(str_part(text, end, text.size)));
	size_t i = 0;

	(void)buf_adds(out, "> ");
	paint_one_line(&chat->paint, PAINT_BOLD, text, LISTED_COLUMNS);
	(void)buf_addc(out, '\n');
	flush(chat);
	while (i < COMMANDS && strcmp(commands[i].name, name) != 0)
		i++;
	if (i == COMMANDS)
		refuse(chat, name);
	else if (argument[0] != '\0' && commands[i].argument[0] == '\0')
		(void)buf_addf(out, "/%s takes nothing more.\n", name);
	else
		commands[i].run(chat, argument);
	show(chat);
}

struct candidates {
	struct str begun;
	const char *prefix;
	struct buf *words;
};

static void add_candidate(void *context, const char *name)
{
	struct candidates *candidates = context;

	if (str_starts(str_of(name), candidates->begun))
		(void)buf_addf(candidates->words, "%s%s\n", candidates->prefix, name);
}

void chat_complete(void *context, struct str before, size_t *from, struct buf *words)
{
	const struct chat *chat = context;
	struct candidates candidates = {.prefix = "", .words = words};
	struct str name;
	size_t end;

	if (!chat_is_command(before))
		return;
	name = command_name(before, &end);
	if (end == before.size) {
		*from = 0;
		candidates.begun = name;
		candidates.prefix = "/";
		for (size_t i = 0; i < COMMANDS; i++)
			add_candidate(&candidates, commands[i].name);
		return;
	}
	while (end < before.size && before.data[end] == ' ')
		end++;
	*from = end;
	candidates.begun = str_part(before, end, before.size);
	if (str_is(name, "agent"))
		chat_each_agent(chat, add_candidate, &candidates);
	else if (str_is(name, "model"))
		chat_each_model(chat, add_candidate, &candidates);
}
