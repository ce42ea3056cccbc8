/* chat: `glovebox` on a terminal, with prompts and answers in turn. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "front/setup.h"
#include "front/terminal/chat.h"
#include "front/verb.h"
#include "store/database.h"

static const struct option_row chat_options[] = {RUN_OPTION_ROW_RESUME, RUN_OPTION_ROWS, {0}};

/*
 * Open the history of typed texts in the user's state. Without it the conversation still
 * works.
 */
static void open_history(struct chat *chat)
{
	struct err err = {0};
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (state_path("history", &path, NULL) &&
	    !line_history_open(chat->history, path.data, &err))
		(void)verb_complain(CODE_DONE, "what is typed is not kept: %s", err.text);
	buf_fini(&path);
}

static void take_line(struct chat *chat)
{
	auto_free char *text = memory_copy_str(str_trim(buf_str(&chat->line.text)));
	struct agent_outcome outcome;

	/* A text that begins with a blank is not kept. */
	if (!str_starts(buf_str(&chat->line.text), STR(" ")))
		line_history_add(chat->history, str_of(text));
	line_start(&chat->line);
	chat->paint.columns = screen_columns_of(STDOUT_FILENO);
	if (chat_is_command(str_of(text)))
		chat_command(chat, str_of(text));
	else
		(void)talk_turn(chat->talk, text, &outcome);
	talk_break(chat->talk);
}

static void serve(struct chat *chat)
{
	while (!chat->over && !talk_is_over(chat->talk)) {
		switch (console_read(chat->console, &chat->line,
				     talk_interrupt_fd(chat->talk))) {
		case CONSOLE_LINE:
			take_line(chat);
			break;
		case CONSOLE_QUIT:
			chat->over = true;
			break;
		case CONSOLE_GONE:
			chat->over = true;
			chat->code = CODE_SIGNAL + SIGHUP;
			break;
		case CONSOLE_WOKEN:
			/* A SIGINT from another process counts as a Ctrl+C. */
			talk_calm(chat->talk);
			if (talk_signal(chat->talk) == 0 &&
			    line_take(&chat->line, TYPING_INTERRUPT, STR("")) == LINE_QUIT)
				chat->over = true;
			break;
		}
	}
	if (talk_signal(chat->talk) != 0)
		chat->code = CODE_SIGNAL + talk_signal(chat->talk);
	else if (talk_is_over(chat->talk))
		chat->code = CODE_FAILED;
}

static void greet(void)
{
	static const char hint[] = "/help lists what there is; Ctrl+D quits.\n";

	(void)fd_write_all(STDOUT_FILENO, hint, sizeof(hint) - 1, NULL);
}

/* Open the conversation. RESUME: the id of the session that goes on, or NULL. */
static int open_talk(struct chat *chat, const char *resume)
{
	struct talk_options options = {.console = chat->console,
				       .kept = true,
				       .resume = resume};
	struct err err = {0};
	int code = run_setup(chat->options, NULL, chat->setup);

	if (code != CODE_DONE)
		return code;
	if (!talk_model(options_text(chat->options, "model"), &chat->setup->role,
			&options.model, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return talk_open(&options, chat->setup, &chat->talk);
}

static int converse(const struct options *options, const char *resume)
{
	struct screen_options look = screen_options_of(STDOUT_FILENO);
	struct chat chat = {.options = options};
	struct err err = {0};

	/*
	 * Open the console first: it starts a process, and its thread must be the first
	 * one.
	 */
	if (!console_open(&chat.console, &err))
		return verb_complain(CODE_USAGE, "%s; for one prompt: glovebox run \"…\"",
				     err.text);
	chat.setup = memory_alloc(sizeof(*chat.setup));
	chat.history = line_history_new();
	open_history(&chat);
	line_init(&chat.line, chat.history,
		  (struct line_completer){.complete = chat_complete, .context = &chat});
	paint_init(&chat.paint);
	chat.paint.colour = look.colour;
	chat.paint.unicode = look.unicode;
	chat.code = open_talk(&chat, resume);
	if (chat.code == CODE_DONE) {
		greet();
		talk_break(chat.talk);
		serve(&chat);
	}
	talk_close(chat.talk);
	setup_fini(chat.setup);
	free(chat.setup);
	free(chat.model);
	value_free(chat.earlier);
	paint_fini(&chat.paint);
	line_fini(&chat.line);
	line_history_free(chat.history);
	console_close(chat.console);
	return chat.code;
}

static int chat_run(const struct options *options, FILE *out)
{
	const char *resume = options_text(options, "resume");
	struct journal_found found = {0};
	struct options filled;
	struct err err = {0};
	int code;

	(void)out;
	if (resume == NULL)
		code = converse(options, NULL);
	else if (run_resume(options, resume, &filled, &found, &err))
		code = converse(&filled, found.id);
	else
		code = verb_complain(CODE_FAILED, "%s", err.text);
	journal_found_fini(&found);
	return code;
}

static const char chat_help[] =
	"Talk with an agent on a terminal: type what is to be done, watch it being done\n"
	"in the cell, and go on from there. glovebox alone does the same. The model and\n"
	"its server are those of glovebox run.\n\n"
	"A backslash at the end of a line, or Alt+Enter, begins another one, and what is\n"
	"pasted stays one text. Arrows, Home, End, Ctrl+A, E, K, U, W, Y, T and Alt+B, F,\n"
	"D edit as in a shell, Ctrl+R searches what was typed before, Tab completes.\n"
	"Ctrl+C clears the line or stops the agent; pressed again it quits, as Ctrl+D\n"
	"does on an empty line. Commands begin with a slash: /help lists them.\n\n"
	"What is typed is kept in ~/.local/state/glovebox/history, but for lines that\n"
	"begin with a blank.\n\n"
	"Exit codes: 0 the end, 1 failed, 2 no terminal, 5 the cell could not be built,\n"
	"128+n ended by signal n.";

const struct verb verb_chat = {
	.name = "chat",
	.summary = "talk with an agent on this terminal",
	.arguments = "",
	.help = chat_help,
	.example = "  glovebox\n  glovebox chat --agent reviewer -C ~/src/project",
	.options = chat_options,
	.run = chat_run,
};
