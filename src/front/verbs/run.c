/* run: `glovebox run`, and `glovebox "PROMPT"`: lets an agent work on the folder. */

#include "front/verbs/run.h"

#include "agent/agent.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/chat.h"
#include "front/config_file.h"
#include "front/conversation/mentions.h"
#include "front/conversation/pictures.h"
#include "front/conversation/stopping.h"
#include "front/embedded/embedded.h"
#include "front/extend/invoke.h"
#include "front/interrupt.h"
#include "front/output/appearance.h"
#include "front/output/formats.h"
#include "front/review/decided.h"
#include "front/review/layered.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"
#include "session/session.h"
#include "store/database.h"
#include "tool/picture.h"
#include "tool/tool.h"
#include "tui/console.h"
#include "tui/keys.h"
#include "tui/live.h"
#include "tui/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* A longer prompt should be a file in the workspace. */
enum { PROMPT_MAX = 4 << 20, GREETING_MAX = 256, SENTENCE_MAX = 1024 };

/* clang-format off */
#define EVENT_OPTION_ROWS \
	{"json", 0, OPTION_FLAG, NULL, "print one event per line, as JSON"}, \
	{"answers", 0, OPTION_FLAG, NULL, \
	 "with --json: read the answers to what is asked as lines on standard input"}, \
	{"output-format", 0, OPTION_TEXT, "FORMAT", \
	 "print text, json or stream-json, as Claude Code has them", NAMES_FORMATS}, \
	{"image", 'i', OPTION_TEXTS, "FILE", \
	 "show the model this picture with the prompt (PNG, JPEG, GIF, WebP; may be repeated)"}, \
	{"print", 'p', OPTION_FLAG, NULL, "this is what run does; glovebox -p is glovebox run"}
/* clang-format on */

static const struct option_row run_options[] = {
	EVENT_OPTION_ROWS,
	RUN_OPTION_ROW_RESUME,
	RUN_OPTION_ROWS,
	{0},
};

/* The options of `sessions resume`, whose first word is the session. */
static const struct option_row resume_options[] = {
	EVENT_OPTION_ROWS,
	RUN_OPTION_ROWS,
	{0},
};

/* Join the words by blanks. The single word "-" means standard input. */
static bool read_prompt(const char *const *words, size_t count, struct buf *prompt,
			struct err *err)
{
	if (count == 1 && strcmp(words[0], "-") == 0) {
		if (!fd_read_all(STDIN_FILENO, prompt, "standard input", err))
			return false;
	} else {
		for (size_t i = 0; i < count; i++) {
			if (i > 0)
				(void)buf_addc(prompt, ' ');
			(void)buf_adds(prompt, words[i]);
		}
	}
	if (prompt->overflowed)
		return err_set(err, E2BIG, "the prompt is longer than %d MiB",
			       PROMPT_MAX >> 20);
	if (strlen(prompt->data) != prompt->size)
		return err_set(err, EINVAL, "the prompt holds a NUL byte: is it a text?");
	return true;
}

/*
 * May the agent have questions for a person? A tool that runs commands always may:
 * commands that destroy much are asked about.
 */
static bool asks(const struct policy *policy)
{
	return policy->asks.count > 0 || policy_has_tool(policy, "bash") ||
	       policy_has_tool(policy, "delegate_agent") ||
	       policy_has_tool(policy, "manage_schedule");
}

/* One run of `run`. */
struct run {
	const struct options *options;
	const char *resume; /* the id of the session that goes on, or NULL */
	const char *prompt;
	struct value *pictures;  /* of --image, or NULL */
	struct formats *formats; /* of --output-format, or NULL */
};

/* One turn with the prompt, or with what it calls. */
static int send(struct talk *talk, const struct run *run, struct agent_outcome *outcome)
{
	struct invocation invocation;
	int code = CODE_FAILED;

	const enum invoked invoked = invoke(talk, run->prompt, &invocation);
	if (invoked == INVOKED) {
		mentions_attach_once(talk, buf_str(&invocation.prompt));
		code = invocation_turn(talk, &invocation, run->pictures, outcome);
	} else if (invoked == INVOKED_NOTHING) {
		code = talk_turn(talk, run->prompt, run->pictures, outcome);
	}
	invocation_fini(&invocation);
	return invoked != INVOKED_FAILED ? talk_told(talk, code) : code;
}

/* The hands of a run: those of the options, and those of a command that names others. */
struct hands {
	const struct options *options;
	struct setup *first, *other; /* OTHER: NULL, or made by `remake` */
};

/* For talk_options. */
static struct setup *remake(void *context, const char *agent, enum policy_mode mode)
{
	const struct hands *hands = context;
	struct setup *setup = memory_alloc(sizeof(*setup));
	const struct setup_flags flags = {
		.agent = agent != NULL ? agent : hands->first->agent,
		.mode = &mode,
		.serves = true,
		.hurries = true,
	};
	int code = setup_open(setup, hands->options, &flags);

	setup->publishes = true;
	if (code == CODE_DONE && (hands->first->review != NULL || setup->policy->review))
		code = verb_complain(CODE_USAGE,
				     "in a layer (`review`) a command works as the agent and in "
				     "the mode of the options: give --agent and --mode");
	if (code == CODE_DONE)
		return setup;
	setup_fini(setup);
	free(setup);
	return NULL;
}

static void taken(void *context, struct setup *setup, bool used)
{
	struct hands *hands = context;

	if (used) {
		hands->other = setup;
		return;
	}
	setup_fini(setup);
	free(setup);
}

static int run_with(const struct run *run, struct setup *setup)
{
	const struct options *options = run->options;
	struct hands hands = {.options = options, .first = setup};
	struct talk_options talk_options = {
		.json = options_given(options, "json"),
		.formats = run->formats,
		.answers = options_given(options, "answers"),
		.kept = true,
		.resume = run->resume,
		.counts_answers = options_given(options, "max-iterations"),
		.remake = remake,
		.taken = taken,
		.one_turn = true,
		.context = &hands,
	};
	struct agent_outcome outcome;
	struct appearance appearance;
	struct screen_options look;
	struct console *console = NULL;
	struct talk *talk = NULL;
	struct err err = {0};
	int code;

	appearance_load(&appearance, options);
	look = appearance_look(&appearance);
	appearance_fini(&appearance);
	talk_options.screen = &look;
	if (talk_options.answers && !talk_options.json)
		return verb_complain(CODE_USAGE,
				     "--answers reads the answers to what --json asks: "
				     "give both");
	if (run->formats != NULL)
		formats_set_tools(run->formats, setup->tools, setup->policy);
	if (!talk_model(options_text(options, "model"), &setup->role, &talk_options.model,
			&err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	appearance_prepare(options);
	/* Open the console even where nothing is asked: Escape ends the run. */
	if (!talk_options.json && run->formats == NULL &&
	    !console_open_if_any(&console, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (asks(setup->policy))
		talk_options.console = console;
	code = talk_open(&talk_options, setup, &talk);
	if (code == CODE_DONE)
		code = send(talk, run, &outcome);
	/* Fail, so that a script does not take a recording for an agent's work. */
	if (code == CODE_DONE && talk_options.model.name == NULL)
		code = verb_complain(CODE_FAILED,
				     "no model is configured: a recording was played, and "
				     "nobody has read the prompt. See: glovebox models");
	talk_close(talk);
	console_close(console);
	if (hands.other != NULL)
		setup_fini(hands.other);
	free(hands.other);
	return code;
}

static int run_set_up(const struct run *run)
{
	const struct setup_flags flags = {.serves = true, .answers = true};
	const struct options *options = run->options;
	struct setup setup = {0};
	int code = setup_open(&setup, options, &flags);

	setup.publishes = true;
	if (code == CODE_DONE)
		code = layered_take(&setup, options, "glovebox run");
	if (code == CODE_DONE)
		code = run_with(run, &setup);
	if (options_given(options, "json") || run->formats != NULL)
		(void)layered_end(&setup, false, stderr);
	else
		decided_end(&setup, options, code);
	setup_fini(&setup);
	return code;
}

/* Go on with the session that RUN names. */
static int run_resumed(const struct run *run)
{
	struct journal_found found = {0};
	struct options filled;
	struct run resumed = *run;
	struct err err = {0};
	int code;

	resumed.options = &filled;
	resumed.resume = found.id;
	if (setup_resume(run->options, run->resume, &filled, &found, &err))
		code = run_set_up(&resumed);
	else
		code = verb_complain(CODE_FAILED, "%s", err.text);
	journal_found_fini(&found);
	return code;
}

/* The pictures of --image. */
static bool read_pictures(const struct options *options, struct value **pictures,
			  struct err *err)
{
	const char *const *paths = options_texts(options, "image");

	for (size_t i = 0; paths != NULL && paths[i] != NULL; i++) {
		if (!pictures_add_file(paths[i], pictures, err))
			return err_while(err, "--image");
	}
	return true;
}

/* The form of --output-format in FORMATS; NULL: the screen, or --json. */
static bool take_format(const struct options *options, struct formats **formats,
			struct err *err)
{
	const char *name = options_text(options, "output-format");
	enum formats_kind kind;

	*formats = NULL;
	if (name == NULL)
		return true;
	if (options_given(options, "json"))
		return err_set(err, EINVAL,
			       "--json prints our own events: give it, or --output-format");
	if (!formats_parse(name, &kind, err))
		return false;
	*formats = formats_new(kind, STDOUT_FILENO);
	return true;
}

/* Run with the prompt WORDS. RESUME is the session that goes on; NULL: a new session. */
static int run_words(const struct options *options, const char *resume,
		     const char *const *words, size_t count)
{
	struct run run = {.options = options, .resume = resume};
	struct buf prompt;
	struct err err = {0};
	int code;

	if (!take_format(options, &run.formats, &err))
		return verb_complain(CODE_USAGE, "%s", err.text);
	buf_init(&prompt, PROMPT_MAX);
	if (!read_prompt(words, count, &prompt, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else if (str_trim(buf_str(&prompt)).size == 0)
		code = verb_complain(CODE_USAGE, "the prompt is empty");
	else if (!read_pictures(options, &run.pictures, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else {
		run.prompt = prompt.data;
		code = resume != NULL ? run_resumed(&run) : run_set_up(&run);
	}
	value_free(run.pictures);
	if (run.formats != NULL)
		code = formats_end(run.formats, code);
	formats_free(run.formats);
	buf_fini(&prompt);
	return code;
}

static int run_run(const struct options *options, FILE *out)
{
	static const char *const standard_input[] = {"-"};
	const char *const *words = (const char *const *)options->words;
	size_t count = options->word_count;

	(void)out;
	/* As `claude -p` does, whose prompt may come through a pipe alone. */
	if (count == 0 && options_given(options, "print") && !isatty(STDIN_FILENO)) {
		words = standard_input;
		count = 1;
	}
	if (count == 0)
		return verb_complain(CODE_USAGE,
				     "run: too few words; usage: glovebox run %s",
				     verb_run.arguments);
	return run_words(options, options_text(options, "resume"), words, count);
}

/* Run with the session as first word. */
static int resume_run(const struct options *options, FILE *out)
{
	(void)out;
	return run_words(options, options->words[0],
			 (const char *const *)options->words + 1, options->word_count - 1);
}

static const char run_help[] =
	"Send PROMPT to a model and run the tools it calls, in the cell, until it is\n"
	"done; then show what was changed. - reads the prompt from standard input. A\n"
	"first word with a blank in it needs no verb: glovebox \"fix the failing test\".\n\n"
	"The model is the one that --model, GLOVEBOX_MODEL or the configuration names,\n"
	"at the server GLOVEBOX_BASE_URL or, unless it is set, at the service's own:\n"
	"  NAME            any that speaks Chat Completions: llama.cpp, Ollama, vLLM, …\n"
	"  openai:NAME     OpenAI's Responses; the key of both is in OPENAI_API_KEY\n"
	"  anthropic:NAME  Anthropic's Messages; the key is in ANTHROPIC_API_KEY\n"
	"When nothing names a model, and neither a key nor a server is set, a recorded\n"
	"answer is played, and the exit code is 1; --model replay:FILE plays yours.\n\n"
	"At a terminal Escape ends it, as Ctrl+C does. After --review it asks there at the\n"
	"end: land, diff, drop or later?\n\n"
	"--output-format prints what programs for Claude Code read: text is the last answer,\n"
	"json one result, stream-json every message and the result. Each run ends with its\n"
	"result, also one that failed. glovebox -p is glovebox run.\n\n"
	"--resume goes on with an earlier session, however it ended: in its folder, as its\n"
	"agent, with its model, with all that was said and read. ID is what `glovebox\n"
	"sessions list` shows, the beginning of it, or `last`.\n\n"
	"Exit codes: 0 done, 1 failed, 3 a limit was reached, 5 the cell could not be\n"
	"built, 130 cancelled.";

const struct verb verb_run = {
	.name = "run",
	.summary = "let an agent work on this folder",
	.arguments = "PROMPT…|-",
	.help = run_help,
	.example = "  export GLOVEBOX_BASE_URL=http://127.0.0.1:11434/v1\n"
		   "  glovebox run --model qwen3-coder \"find out why make test fails\"",
	.options = run_options,
	.words_most = VERB_WORDS_ANY,
	.run = run_run,
};

static const char sessions_resume_help[] =
	"Go on with the session ID: glovebox run --resume ID PROMPT, with all its other\n"
	"options.";

const struct verb verb_sessions_resume = {
	.name = "sessions resume",
	.summary = "go on with one of them",
	.arguments = "ID|last PROMPT…|-",
	.help = sessions_resume_help,
	.example = "  glovebox sessions resume last \"now add a test\"",
	.options = resume_options,
	.words_least = 2,
	.words_most = VERB_WORDS_ANY,
	.names = NAMES_SESSIONS,
	.run = resume_run,
};

/* `glovebox` on a terminal, with prompts and answers in turn. */

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
	if (database_state_path("history", &path, NULL) &&
	    !line_history_open(chat->history, path.data, &err))
		(void)verb_complain(CODE_DONE, "what is typed is not kept: %s", err.text);
	buf_fini(&path);
}

/* Read the person's keys. With a mistake in the file those of before hold. */
static void load_keys(struct chat *chat)
{
	struct err err = {0};
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (config_file_beside("keys.json", &path) &&
	    !keys_load(console_keys(chat->console), path.data, &err))
		(void)verb_complain(CODE_DONE, "the usual keys hold: %s", err.text);
	buf_fini(&path);
}

/* Have what PROMPT names go with it, and tell of names of which there is nothing. */
static void attach_names(struct chat *chat, struct str prompt)
{
	struct buf missing, sentence;

	buf_init(&missing, SENTENCE_MAX / 2);
	buf_init(&sentence, SENTENCE_MAX);
	mentions_attach(chat->mentions, prompt, &missing);
	if (missing.size > 0) {
		(void)buf_addf(&sentence,
			       "no file or folder listed here is called %s: the text goes as "
			       "it is",
			       missing.data);
		console_hint(chat->console, sentence.data);
	}
	buf_fini(&sentence);
	buf_fini(&missing);
}

/*
 * Send PROMPT, or (not NULL) that of INVOCATION, with PICTURES (or NULL) and what it names, and
 * wait for the end of the turn.
 */
static void take_prompt(struct chat *chat, const char *prompt,
			const struct invocation *invocation, const struct value *pictures)
{
	const int64_t begun_ms = clock_now_ms();
	struct agent_outcome outcome;

	console_work(chat->console, &chat->line, talk_interrupt_fd(chat->talk));
	attach_names(chat,
		     invocation != NULL ? buf_str(&invocation->prompt) : str_of(prompt));
	/* So that names are there for what is typed meanwhile. */
	mentions_refresh(chat->mentions);
	if (invocation != NULL)
		(void)invocation_turn(chat->talk, invocation, pictures, &outcome);
	else
		(void)talk_turn(chat->talk, prompt, pictures, &outcome);
	if (clock_now_ms() - begun_ms > NOTIFY_AFTER_MS)
		console_notify(chat->console, "a turn is over");
	if (outcome.reason == AGENT_CANCELLED || outcome.reason == AGENT_MODEL_FAILED)
		console_take_back(chat->console);
	console_rest(chat->console);
	if (mentions_settle(chat->mentions))
		line_offer(&chat->line);
}

enum {
	ASIDE_TOLD_MAX = 16 << 10, /* bytes of the output that the model is told */
	ASIDE_NAME_MAX = 4 << 10,
};

/* Is TEXT a command that the person runs between prompts: `! make test`? */
static bool aside_is_one(struct str text)
{
	return str_starts(text, STR("!"));
}

/* Tell the model with the next prompt that COMMAND was run, and what came of it. */
static void aside_tell(struct talk *talk, struct str command,
		       const struct tool_result *result)
{
	static const struct text_limits limits = {.bytes = ASIDE_TOLD_MAX};
	struct value *items = value_new_array(), *item = value_new_object();
	struct text_cut cut;
	struct buf name, text;

	buf_init(&name, ASIDE_NAME_MAX + ASIDE_TOLD_MAX);
	buf_init(&text, 2 * ASIDE_TOLD_MAX);
	(void)buf_adds(&name, "The person has run this command: ");
	(void)buf_addstr(&name, str_part(command, 0,
					 text_character_border(command, ASIDE_NAME_MAX)));
	(void)text_shorten(buf_str(&result->text), &limits, &text, &cut);
	value_set_str(item, "name", buf_str(&name));
	value_set_str(item, "text", buf_str(&text));
	value_append(items, item);
	agent_attach(talk_agent(talk), items);
	buf_fini(&text);
	buf_fini(&name);
}

/*
 * Run the command TEXT in the cell as one of the agent's bash would, by the same policy; its steps
 * can be undone. The model is told of it with the next prompt; of `!! make test` it is not. The
 * caller shows what goes on (console_work), and forgets an interrupt.
 */
static void aside_run(struct talk *talk, struct str text)
{
	const bool is_told = !str_starts(text, STR("!!"));
	const struct str command = str_trim(str_part(text, is_told ? 1 : 2, text.size));
	auto_value struct value *arguments = value_new_object();
	const struct request request = {.tool = "bash", .arguments = arguments};
	struct tool_result result;

	if (command.size == 0)
		return;
	value_set_str(arguments, "command", command);
	tool_result_init(&result);
	agent_call(talk_agent(talk), &request, true, &result);
	talk_rest(talk);
	if (is_told)
		aside_tell(talk, command, &result);
	tool_result_fini(&result);
}

/* Run the command of the person, while the person can stop it and types on. */
static void take_aside(struct chat *chat, struct str text)
{
	console_work(chat->console, &chat->line, talk_interrupt_fd(chat->talk));
	aside_run(chat->talk, text);
	if (talk_is_interrupted(chat->talk))
		console_take_back(chat->console);
	console_rest(chat->console);
	talk_calm(chat->talk);
}

/* Carry out the command TEXT, and send the prompt that it has made, if any. */
static void take_command(struct chat *chat, struct str text)
{
	auto_free char *prompt = NULL;

	chat_command(chat, text);
	prompt = chat->prompt;
	chat->prompt = NULL;
	if (prompt != NULL)
		take_prompt(chat, prompt, NULL, NULL);
}

/* Carry out SENT, as the person has typed it, with PICTURES (or NULL). */
static void take_text(struct chat *chat, struct str sent, const struct value *pictures)
{
	auto_free char *text = memory_copy_str(str_trim(sent));
	struct invocation invocation = {0};

	/* A text that begins with a blank is not kept. */
	if (!str_starts(sent, STR(" ")))
		line_history_add(chat->history, str_of(text));
	chat->paint.columns = paint_columns_of(STDOUT_FILENO);
	const enum invoked invoked =
		chat_has_command(str_of(text)) || aside_is_one(str_of(text))
			? INVOKED_NOTHING
			: invoke(chat->talk, text, &invocation);
	if (aside_is_one(str_of(text)))
		take_aside(chat, str_of(text));
	else if (invoked == INVOKED_NOTHING && chat_is_command(str_of(text)))
		take_command(chat, str_of(text));
	else if (invoked != INVOKED_FAILED)
		take_prompt(chat, text, invoked == INVOKED ? &invocation : NULL, pictures);
	/* The command may have made a prompt. */
	if (chat->next != NULL) {
		auto_free char *next = chat->next;

		chat->next = NULL;
		take_prompt(chat, next, NULL, NULL);
	}
	invocation_fini(&invocation);
	talk_break(chat->talk);
}

static void take_line(struct chat *chat)
{
	auto_value struct value *pictures = line_pictures(&chat->line);
	struct buf sent;

	buf_init(&sent, LINE_BYTES_MAX);
	line_add_whole(&chat->line, &sent);
	line_start(&chat->line);
	if (console_echoed(chat->console))
		screen_note_typed(chat->screen, buf_str(&sent));
	take_text(chat, buf_str(&sent), pictures);
	screen_note_typed(chat->screen, STR(""));
	buf_fini(&sent);
}

/* Take what was sent while something ran and was not taken. False: nothing was. */
static bool take_waiting(struct chat *chat)
{
	struct value *pictures;
	struct buf text;
	bool taken;

	buf_init(&text, LINE_BYTES_MAX);
	taken = console_take_waiting(chat->console, false, &text, &pictures);
	if (taken)
		take_text(chat, buf_str(&text), pictures);
	value_free(pictures);
	buf_fini(&text);
	return taken;
}

static enum console_answer read_line(struct chat *chat)
{
	enum console_answer answer;

	chat_pauses(chat);
	if (atomic_exchange(&chat->hinted, false))
		line_set_hint(&chat->line, "");
	chat->may_list = true;
	answer = console_read(chat->console, &chat->line, mentions_wake_fd(chat->mentions),
			      talk_interrupt_fd(chat->talk));
	chat->may_list = false;
	return answer;
}

static void serve(struct chat *chat)
{
	while (!chat->over && !talk_is_over(chat->talk)) {
		if (take_waiting(chat))
			continue;
		switch (read_line(chat)) {
		case CONSOLE_LINE:
			take_line(chat);
			break;
		case CONSOLE_QUIT:
			chat->over = true;
			break;
		case CONSOLE_GONE:
			/*
			 * The kernel wakes the reader of a terminal before it sends
			 * SIGHUP, which must not cut the end of the session short.
			 */
			(void)signal(SIGHUP, SIG_IGN);
			chat->over = true;
			chat->code = CODE_SIGNAL + SIGHUP;
			break;
		case CONSOLE_WOKEN:
			if (mentions_settle(chat->mentions)) {
				line_offer(&chat->line);
				break;
			}
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

static void greet(const struct chat *chat)
{
	struct buf line;

	buf_init(&line, GREETING_MAX);
	keys_say(console_keys(chat->console),
		 "/help lists what there is; {quit} quits.\n", &line);
	(void)live_print(console_live(chat->console), buf_str(&line));
	buf_fini(&line);
}

/* Open the conversation. RESUME: the id of the session that goes on, or NULL. */
static int open_talk(struct chat *chat, const char *resume)
{
	struct screen_options look = appearance_look(&chat->appearance);
	struct talk_options options = {
		.console = chat->console,
		.kept = true,
		.screen = &look,
		.resume = resume,
		.joins = chat_joins,
		.remake = chat_remake,
		.taken = chat_taken,
		.pauses = chat_pauses,
		.stopping = chat->stopping,
		.interrupt = chat->interrupt,
		.context = chat,
	};
	const struct setup_flags flags = {
		.serves = true,
		.answers = true,
		.interrupt = chat->interrupt,
	};
	struct err err = {0};
	int code = setup_open(chat->setup, chat->options, &flags);

	look.keys = console_keys(chat->console);
	chat->setup->publishes = true;
	if (interrupt_signal(chat->interrupt) != 0)
		return CODE_FAILED;
	if (code == CODE_DONE)
		code = layered_take(chat->setup, chat->options, "glovebox chat");
	if (code != CODE_DONE)
		return code;
	if (!talk_model(options_text(chat->options, "model"), &chat->setup->role,
			&options.model, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	code = talk_open(&options, chat->setup, &chat->talk);
	if (code == CODE_DONE)
		chat->screen = talk_screen(chat->talk);
	return code;
}

/*
 * Open the conversation while the person types already. An exit code; CODE_DONE with chat.over:
 * the person has had enough before it began.
 */
static int begin(struct chat *chat, const char *resume)
{
	struct err err = {0};
	int code, number;

	if (!interrupt_open(&chat->interrupt, &err) ||
	    !interrupt_start(chat->interrupt, &err) ||
	    !stopping_open(&chat->stopping, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	console_begin(chat->console, &chat->line);
	code = open_talk(chat, resume);
	if (code == CODE_DONE)
		chat->mentions = mentions_new(chat->talk);
	if (chat->mentions != NULL)
		console_offers(chat->console, mentions_news_fd(chat->mentions));
	console_rest(chat->console);
	number = interrupt_signal(chat->interrupt);
	if (number == 0) {
		atomic_store(&chat->is_there, code == CODE_DONE);
		return code;
	}
	chat->over = true;
	return number == SIGINT && console_is_quitting(chat->console)
		       ? CODE_DONE
		       : CODE_SIGNAL + number;
}

static int converse(const struct options *options, const char *resume)
{
	struct chat chat = {.options = options, .wanted_mode = CHAT_NO_MODE};
	struct err err = {0};

	appearance_prepare(options);
	const struct screen_options look = screen_options_of(STDOUT_FILENO);

	/*
	 * Open the console first: it starts a process, and its thread must be the first
	 * one.
	 */
	if (!console_open(&chat.console, &err))
		return verb_complain(CODE_USAGE, "%s; for one prompt: glovebox run \"…\"",
				     err.text);
	console_ask(chat.console);
	appearance_load(&chat.appearance, options);
	if (!appearance_apply(&chat.appearance, chat.console, &err))
		(void)verb_complain(CODE_DONE, "%s", err.text);
	chat.setup = memory_alloc(sizeof(*chat.setup));
	chat.history = line_history_new();
	open_history(&chat);
	load_keys(&chat);
	console_set_actor(chat.console, &(struct console_actor){.act = chat_act,
								.order = chat_order,
								.context = &chat});
	line_init(&chat.line, chat.history,
		  (struct line_completer){.complete = chat_complete,
					  .hint = chat_hint,
					  .context = &chat});
	chat.line.camera.pictures = pictures_taken;
	chat.line.keys = console_keys(chat.console);
	paint_init(&chat.paint);
	chat.paint.colour = look.colour;
	chat.paint.unicode = look.unicode;
	chat.paint.reader = look.reader;
	chat.moves_cursor = look.terminal;
	chat.code = begin(&chat, resume);
	if (chat.code == CODE_DONE && !chat.over) {
		greet(&chat);
		talk_break(chat.talk);
		serve(&chat);
	}
	console_offers(chat.console, -1);
	mentions_free(chat.mentions);
	talk_close(chat.talk);
	interrupt_close(chat.interrupt);
	stopping_close(chat.stopping);
	console_close(chat.console);
	decided_end(chat.setup, chat.options, chat.code);
	setup_fini(chat.setup);
	free(chat.setup);
	free(chat.model);
	free(chat.prompt);
	journal_found_fini(&chat.found);
	value_free(chat.earlier);
	appearance_fini(&chat.appearance);
	paint_fini(&chat.paint);
	line_fini(&chat.line);
	line_history_free(chat.history);
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
	else if (setup_resume(options, resume, &filled, &found, &err))
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
	"A backslash at the end of a line, Ctrl+J or Alt+Enter begins another one, and what\n"
	"is pasted stays one text. Arrows, Home, End, Ctrl+A, E, K, U, W, Y and Alt+B, F, D\n"
	"edit as in a shell, Ctrl+_ takes back a change, Ctrl+R searches what was typed\n"
	"before, Tab completes. Ctrl+C clears the line or stops the agent; pressed again it\n"
	"quits, as Ctrl+D does on an empty line. Escape twice puts the line away. /keys lists\n"
	"all keys, and ~/.config/glovebox/keys.json gives them. Commands begin with a slash:\n"
	"/help lists them. @ names a file that goes with the prompt, ! runs a command in the\n"
	"cell.\n\n"
	"You can type before the cell is there: what you send then waits for it.\n\n"
	"While the agent works you can type on below. Enter sends the text to the work\n"
	"under way, after the calls that run now; Tab, where it completes nothing, keeps it\n"
	"as the next prompt. A command waits for the end of the work. Alt+Up takes the\n"
	"last one back. Escape stops the agent, and all that waits is in the line again.\n\n"
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

/*
 * `glovebox demo` plays a whole session on a small project without a model. The model's
 * words are recorded; tools, cell, compiler and tests are real.
 */

static const char demo_files[] = "examples/demo/";
static const char demo_replay[] = "examples/demo/replay.json";

static const struct option_row demo_options[] = {
	{"plain", 0, OPTION_FLAG, NULL, "no colours and no spinner"},
	{"json", 0, OPTION_FLAG, NULL, "print one event per line, as JSON"},
	{"keep", 0, OPTION_FLAG, NULL, "leave the project's folder there afterwards"},
	OPTION_ROW_HELP,
	{0},
};

static bool write_demo(const char *folder, struct err *err)
{
	auto_close int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t count = 0;

	if (fd < 0)
		return err_set(err, errno, "%s: %s", folder, strerror(errno));
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		if (strncmp(file->name, demo_files, strlen(demo_files)) != 0 ||
		    strcmp(file->name, demo_replay) == 0)
			continue;
		if (!run_write_tree(fd, file->name + strlen(demo_files),
				    (struct str){file->data, file->size},
				    file->executable ? 0755 : 0644, err))
			return err_while(err, "writing the demo into %s", folder);
		count++;
	}
	if (count == 0)
		return err_set(err, ENOENT, "this program was built without its demo");
	return true;
}

static const char demo_prompt[] =
	"A test of this project fails. Find out why, mend it, and show me the change.";

static int play(const char *folder, const struct options *options)
{
	struct screen_options plain = screen_options_of(STDOUT_FILENO);
	const struct talk_options talk_options = {
		.json = options_given(options, "json"),
		.screen = options_given(options, "plain") ? &plain : NULL,
		.model =
			{
				.name = "replay",
				.embedded = embedded_text(demo_replay),
				.temperature = CONFIG_TEMPERATURE_ABSENT,
			},
	};
	struct agent_outcome outcome = {0};
	struct console *console = NULL;
	struct talk *talk = NULL;
	struct setup setup;
	struct err err = {0};
	int code;

	plain.terminal = plain.colour = false;
	/* The demo asks nothing, but Escape must end it. */
	if (!talk_options.json && !console_open_if_any(&console, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (!setup_init_shipped(&setup, folder, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = talk_open(&talk_options, &setup, &talk);
	if (code == CODE_DONE)
		code = talk_told(talk, talk_turn(talk, demo_prompt, NULL, &outcome));
	talk_close(talk);
	console_close(console);
	if (code == CODE_DONE && outcome.last_exit_code != 0)
		code = verb_complain(CODE_FAILED, "the last run of the tests was not green");
	setup_fini(&setup);
	return code;
}

/* Check that the programs which build the project exist: the demo really runs them. */
static bool check_programs(struct err *err)
{
	static const char *const names[] = {"bash", "make", "cc"};
	struct buf path;
	bool found = true;

	buf_init(&path, 4096);
	for (size_t i = 0; found && i < sizeof(names) / sizeof(names[0]); i++)
		found = run_find_program(getenv("PATH"), names[i], &path) ||
			err_set(err, ENOENT,
				"the demo compiles a small C project and needs %s, which is not "
				"there; on Debian and Ubuntu: sudo apt install %s",
				names[i],
				strcmp(names[i], "bash") == 0 ? "bash" : "build-essential");
	buf_fini(&path);
	return found;
}

static int demo_run(const struct options *options, FILE *out)
{
	struct buf folder;
	struct err err = {0};
	int code;

	(void)out;
	if (!check_programs(&err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	buf_init(&folder, PATH_MAX);
	if (!verb_temp_folder("demo", &folder, &err)) {
		buf_fini(&folder);
		return verb_complain(CODE_FAILED, "%s", err.text);
	}
	if (!write_demo(folder.data, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else
		code = play(folder.data, options);
	if (options_given(options, "keep"))
		(void)fprintf(stderr, "The project is in %s\n", folder.data);
	else
		fd_folder_remove(folder.data);
	buf_fini(&folder);
	return code;
}

static const char demo_help[] =
	"Copy a small C project with a failing test to a temporary folder and let an\n"
	"agent mend it there. Only the model's words are recorded: files, compiler,\n"
	"tests and the cell around them are real, and a result that does not fit the\n"
	"recording ends the demo. It needs make and a C compiler, and some seconds.\n\n"
	"Exit codes: 0 the last run of the tests was green, 1 it was not, 5 the cell\n"
	"could not be built.";

const struct verb verb_demo = {
	.name = "demo",
	.summary = "watch a whole session, without a model",
	.arguments = "",
	.help = demo_help,
	.example = "  glovebox demo --plain",
	.options = demo_options,
	.run = demo_run,
};

/* Makes files and folders. */

enum { PARENT_MAX = 256 };

bool run_write_tree(int folder_fd, const char *name, struct str data, mode_t mode,
		    struct err *err)
{
	auto_close int fd = -1;
	char parent[PARENT_MAX];

	for (const char *slash = strchr(name, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
		if (mkdirat(folder_fd, parent, 0755) < 0 && errno != EEXIST)
			return err_set(err, errno, "%s: %s", parent, strerror(errno));
	}
	fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", name, strerror(errno));
	return fd_write_all(fd, data.data, data.size, err);
}

/* Looks up programs in PATH or in other folders. */

bool run_find_program(const char *folders, const char *name, struct buf *found)
{
	struct str rest = str_of(folders), folder;
	struct stat st;

	while (path_next_folder(&rest, &folder)) {
		buf_clear(found);
		if (buf_addstr(found, folder) && buf_addc(found, '/') &&
		    buf_adds(found, name) && stat(found->data, &st) == 0 &&
		    S_ISREG(st.st_mode) && access(found->data, X_OK) == 0)
			return true;
	}
	buf_clear(found);
	return false;
}
