/* talk: putting together what one prompt needs, and taking it apart again; see talk.h. */
#include "front/talk.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "front/embedded.h"
#include "front/exit_code.h"
#include "front/interrupt.h"
#include "front/json_events.h"
#include "front/verb.h"
#include "store/journal.h"

/* One works while the next is being made. */
enum { READY_WORKERS = 2 };

static const char default_replay[] = "examples/replays/default.json";

struct parts {
	struct interrupt *interrupt;
	struct model *model;
	struct journal *journal;
	struct screen *screen;
	struct json_events *json;
	struct recorder *recorder;
	struct session *session;
	struct agent *agent;
};

struct str talk_embedded(const char *name)
{
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++)
		if (strcmp(file->name, name) == 0)
			return (struct str){file->data, file->size};
	return STR("");
}

/* A variable that is set to nothing is as good as none. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

bool talk_model(const char *name, const struct config_role *role,
		struct model_options *model, struct err *err)
{
	*model = (struct model_options){
		.name = name,
		.base_url = variable("GLOVEBOX_BASE_URL"),
		.key = variable("OPENAI_API_KEY"),
		.embedded = talk_embedded(default_replay),
		.temperature = role->temperature,
		.retries = MODEL_RETRIES,
	};
	if (model->name == NULL)
		model->name = variable("GLOVEBOX_MODEL");
	if (model->name == NULL)
		model->name = role->model;
	if (model->name == NULL && model->base_url != NULL)
		return err_set(err, EINVAL,
			       "GLOVEBOX_BASE_URL names a server, but no model of it: "
			       "set GLOVEBOX_MODEL, or give --model NAME");
	return true;
}

static struct event_sink open_view(struct parts *parts, const struct talk *talk)
{
	if (talk->json) {
		parts->json = json_events_new(STDOUT_FILENO);
		return json_events_sink(parts->json);
	}
	parts->screen = screen_new(STDOUT_FILENO, talk->screen);
	return screen_sink(parts->screen);
}

/* Everything up to the agent. An exit code; complaints have been printed. */
static int open_parts(struct parts *parts, const struct talk *talk, struct setup *setup)
{
	struct session_options session_options = {.ready_workers = READY_WORKERS};
	struct err err = {0};
	int code;

	if (!interrupt_open(&parts->interrupt, &err) ||
	    !model_open(&talk->model, &parts->model, &err) ||
	    (talk->kept && !journal_open_default(&parts->journal, &err)))
		return verb_complain(CODE_FAILED, "%s", err.text);
	parts->recorder = recorder_new(parts->journal, open_view(parts, talk));
	session_options.sink = recorder_sink(parts->recorder);
	session_options.cancel_fd = interrupt_fd(parts->interrupt);
	code = setup_session(setup, &session_options, &parts->session);
	if (code != CODE_DONE)
		return code;

	struct agent_options agent_options = {
		.session = parts->session,
		.model = parts->model,
		.recorder = parts->recorder,
		.name = setup->agent,
		.prompt = setup->role.prompt,
		.cancel_fd = interrupt_fd(parts->interrupt),
	};

	if (!interrupt_start(parts->interrupt, &err) ||
	    !agent_open(&agent_options, &parts->agent, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return CODE_DONE;
}

static void close_parts(struct parts *parts)
{
	agent_close(parts->agent);
	session_close(parts->session);
	recorder_free(parts->recorder);
	screen_free(parts->screen);
	json_events_free(parts->json);
	journal_close(parts->journal);
	model_close(parts->model);
	interrupt_close(parts->interrupt);
}

static int code_of(enum agent_reason reason)
{
	switch (reason) {
	case AGENT_STOPPED:
	case AGENT_PATCH:
		return CODE_DONE;
	case AGENT_ITERATIONS:
	case AGENT_TOKENS:
	case AGENT_WALL:
	case AGENT_SHELL:
	case AGENT_REPEATS:
	case AGENT_TIMEOUTS:
		return CODE_LIMIT;
	case AGENT_CANCELLED:
		return CODE_CANCELLED;
	case AGENT_MODEL_FAILED:
		break;
	}
	return CODE_FAILED;
}

int talk_run(const struct talk *talk, struct setup *setup, struct agent_outcome *outcome)
{
	struct parts parts = {0};
	struct err err = {0};
	int code;

	*outcome = (struct agent_outcome){0};
	setup_hide_memory();
	code = open_parts(&parts, talk, setup);
	if (code == CODE_DONE) {
		if (!agent_submit(parts.agent, talk->prompt, outcome, &err))
			code = verb_complain(CODE_FAILED, "%s", err.text);
		else
			code = code_of(outcome->reason);
		if (code == CODE_CANCELLED && interrupt_signal(parts.interrupt) != 0)
			code = CODE_SIGNAL + interrupt_signal(parts.interrupt);
	}
	close_parts(&parts);
	return code;
}
