/* run: `glovebox run`, and `glovebox "PROMPT"`: an agent works on the folder. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "front/exit_code.h"
#include "front/setup.h"
#include "front/talk.h"
#include "front/verb.h"

/* A prompt beyond this is a file that belongs into the workspace. */
enum { PROMPT_MAX = 4 << 20 };

static const struct option_row run_options[] = {
	{"model", 'm', OPTION_TEXT, "MODEL", "ask this model (default: $GLOVEBOX_MODEL)"},
	{"max-iterations", 0, OPTION_COUNT, "N", "stop after N answers of the model"},
	{"json", 0, OPTION_FLAG, NULL, "print one event per line, as JSON"},
	OPTION_ROW_WORKSPACE,
	OPTION_ROW_CONFIG,
	OPTION_ROW_AGENT,
	OPTION_ROW_ALLOW_HOST,
	OPTION_ROW_LEVEL,
	OPTION_ROW_HELP,
	{0},
};

/* The words with a blank between them; standard input for a lone "-". */
static bool read_prompt(const struct options *options, struct buf *prompt, struct err *err)
{
	if (options->word_count == 1 && strcmp(options->words[0], "-") == 0) {
		if (!fd_read_all(STDIN_FILENO, prompt, "standard input", err))
			return false;
	} else {
		for (size_t i = 0; i < options->word_count; i++) {
			if (i > 0)
				(void)buf_addc(prompt, ' ');
			(void)buf_adds(prompt, options->words[i]);
		}
	}
	if (prompt->overflowed)
		return err_set(err, E2BIG, "the prompt is longer than %d MiB",
			       PROMPT_MAX >> 20);
	if (strlen(prompt->data) != prompt->size)
		return err_set(err, EINVAL, "the prompt holds a NUL byte: is it a text?");
	return true;
}

static int run_with(const struct options *options, struct setup *setup, const char *prompt)
{
	struct talk talk = {
		.prompt = prompt,
		.json = options_given(options, "json"),
		.kept = true,
	};
	struct agent_outcome outcome;
	struct err err = {0};

	setup->policy->limits.iterations =
		options_count(options, "max-iterations", setup->policy->limits.iterations);
	if (!talk_model(options_text(options, "model"), &setup->role, &talk.model, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return talk_run(&talk, setup, &outcome);
}

static int run_run(const struct options *options)
{
	struct setup setup = {0};
	struct buf prompt;
	struct err err = {0};
	int code;

	buf_init(&prompt, PROMPT_MAX);
	if (!read_prompt(options, &prompt, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else if (str_trim(buf_str(&prompt)).size == 0)
		code = verb_complain(CODE_USAGE, "the prompt is empty");
	else if (!setup_init(&setup, options, &err) || !setup_serve(&setup, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	else if (!setup_allow_hosts(&setup, options, &err))
		code = verb_complain(CODE_USAGE, "%s", err.text);
	else
		code = run_with(options, &setup, prompt.data);
	setup_fini(&setup);
	buf_fini(&prompt);
	return code;
}

static const char run_help[] =
	"Send PROMPT to a model and run the tools it calls, in the cell, until it is\n"
	"done; then show what was changed. - reads the prompt from standard input. A\n"
	"first word with a blank in it needs no verb: glovebox \"fix the failing test\".\n\n"
	"The model is the one that --model, GLOVEBOX_MODEL or the configuration names,\n"
	"at the server GLOVEBOX_BASE_URL (any that speaks the chat completions API:\n"
	"llama.cpp, Ollama, vLLM, OpenRouter, …; https://api.openai.com/v1 unless it is\n"
	"set), with the key in OPENAI_API_KEY. When nothing names a model a recorded\n"
	"answer is played; --model replay:FILE plays yours.\n\n"
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
