/* run: `glovebox run`, and `glovebox "PROMPT"`: lets an agent work on the folder. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/terminal/console.h"
#include "front/verb.h"

/* A longer prompt should be a file in the workspace. */
enum { PROMPT_MAX = 4 << 20 };

/* clang-format off */
#define EVENT_OPTION_ROWS \
	{"json", 0, OPTION_FLAG, NULL, "print one event per line, as JSON"}, \
	{"answers", 0, OPTION_FLAG, NULL, \
	 "with --json: read the answers to what is asked as lines on standard input"}
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

static int run_with(const struct options *options, struct setup *setup,
		    const char *resume, const char *prompt)
{
	struct talk_options talk_options = {
		.json = options_given(options, "json"),
		.answers = options_given(options, "answers"),
		.kept = true,
		.resume = resume,
		.counts_answers = options_given(options, "max-iterations"),
	};
	struct agent_outcome outcome;
	struct console *console = NULL;
	struct talk *talk = NULL;
	struct err err = {0};
	int code;

	if (talk_options.answers && !talk_options.json)
		return verb_complain(CODE_USAGE,
				     "--answers reads the answers to what --json asks: "
				     "give both");
	if (!talk_model(options_text(options, "model"), &setup->role, &talk_options.model,
			&err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	/* Open the console even where nothing is asked: Escape ends the run. */
	if (!talk_options.json && !console_open_if_any(&console, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	if (asks(setup->policy))
		talk_options.console = console;
	code = talk_open(&talk_options, setup, &talk);
	if (code == CODE_DONE)
		code = talk_told(talk, talk_turn(talk, prompt, &outcome));
	/* Fail, so that a script does not take a recording for an agent's work. */
	if (code == CODE_DONE && talk_options.model.name == NULL)
		code = verb_complain(CODE_FAILED,
				     "no model is configured: a recording was played, and "
				     "nobody has read the prompt. See: glovebox models");
	talk_close(talk);
	console_close(console);
	return code;
}

static int run_set_up(const struct options *options, const char *resume, const char *prompt)
{
	struct setup setup = {0};
	int code = run_setup(options, NULL, &setup);

	if (code == CODE_DONE)
		code = run_with(options, &setup, resume, prompt);
	setup_fini(&setup);
	return code;
}

static int run_resumed(const struct options *options, const char *name, const char *prompt)
{
	struct journal_found found = {0};
	struct options filled;
	struct err err = {0};
	int code;

	if (run_resume(options, name, &filled, &found, &err))
		code = run_set_up(&filled, found.id, prompt);
	else
		code = verb_complain(CODE_FAILED, "%s", err.text);
	journal_found_fini(&found);
	return code;
}

/* Run with the prompt WORDS. RESUME is the session that goes on; NULL: a new session. */
static int run_words(const struct options *options, const char *resume,
		     const char *const *words, size_t count)
{
	struct buf prompt;
	struct err err = {0};
	int code;

	buf_init(&prompt, PROMPT_MAX);
	if (!read_prompt(words, count, &prompt, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else if (str_trim(buf_str(&prompt)).size == 0)
		code = verb_complain(CODE_USAGE, "the prompt is empty");
	else if (resume != NULL)
		code = run_resumed(options, resume, prompt.data);
	else
		code = run_set_up(options, NULL, prompt.data);
	buf_fini(&prompt);
	return code;
}

static int run_run(const struct options *options, FILE *out)
{
	(void)out;
	return run_words(options, options_text(options, "resume"),
			 (const char *const *)options->words, options->word_count);
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
	"At a terminal Escape ends it, as Ctrl+C does.\n\n"
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
	.words_least = 1,
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
