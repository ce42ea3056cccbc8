/* talk: sets up the parts of a conversation and takes them down again. */
#include "front/talk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/str.h"
#include "front/agents.h"
#include "front/answers.h"
#include "front/asking.h"
#include "front/json_events.h"
#include "front/setup.h"
#include "front/verb.h"
#include "model/provider.h"
#include "store/journal.h"

/* One worker works while the next one is being made. */
enum { READY_WORKERS = 2 };

static const char default_replay[] = "examples/replays/default.json";

struct talk {
	struct interrupt *interrupt;
	struct catalogue *catalogue;
	struct model *model;
	struct journal *journal;
	struct screen *screen;
	struct json_events *json;
	struct answers *answers;
	struct asking *asking;
	struct recorder *recorder;
	struct session *session;
	struct agent *agent;
	struct orchestrate *orchestrate; /* NULL: the agent has none of its tools */
	struct setup *setup;
	char *asked; /* the model, as the person named it; NULL: the embedded replay */
	const char *parent; /* the caller's session, from the request that started us */
	bool counts_answers, answering; /* as the options said */
	bool answered;                  /* questions get an answer */
	bool relays; /* the answers come from the caller that started this run */
	bool broken; /* an event could not be recorded */
};

/* The value of the variable NAME. NULL: it is not set, or empty. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Refuse MODEL: its service needs a key, and there is none. */
static bool refuse_keyless(const char *model, const char *key_variable, struct err *err)
{
	struct found found;
	struct buf advice;

	buf_init(&advice, ERR_TEXT_MAX);
	if (found_look(&found, NULL, LOCAL_PROBE_MS, NULL))
		found_advise(&found, &advice);
	(void)err_set(err, EINVAL,
		      "the model %.200s is asked with a key in %s, or at the server that "
		      "GLOVEBOX_BASE_URL names, and neither is set. %s All that can be asked: "
		      "glovebox models",
		      model, key_variable, advice.data);
	found_fini(&found);
	buf_fini(&advice);
	return false;
}

/*
 * Refuse to guess when no model is named but a key is set. The key says that the person
 * uses a model, so playing the recording would be strange, and a model of our choice
 * would cost the person's money.
 */
static bool refuse_nameless(struct err *err)
{
	for (size_t i = 0; providers[i] != NULL; i++) {
		if (providers[i]->key_name == NULL ||
		    variable(providers[i]->key_name) == NULL)
			continue;
		return err_set(err, EINVAL,
			       "%s is set, but no model is named: give --model %s:NAME, or set "
			       "GLOVEBOX_MODEL (glovebox models names some); --model replay plays "
			       "the built-in recording",
			       providers[i]->key_name, providers[i]->name);
	}
	return true;
}

bool talk_model(const char *name, const struct config_role *role,
		struct model_options *model, struct err *err)
{
	const char *key_variable;

	*model = (struct model_options){
		.name = name,
		.base_url = variable("GLOVEBOX_BASE_URL"),
		.embedded = embedded_text(default_replay),
		.temperature = role->temperature,
		.thinking_budget = role->thinking_budget,
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
	if (model->name == NULL && !refuse_nameless(err))
		return false;
	key_variable = model_key_variable(model->name);
	if (key_variable != NULL)
		model->key = variable(key_variable);
	if (model->key == NULL && model->base_url == NULL && model_needs_key(model->name))
		return refuse_keyless(model->name, key_variable, err);
	return true;
}

static bool preview(void *context, const char *tool, const struct value *arguments,
		    struct buf *line)
{
	return front_plugins_preview(context, tool, arguments, line);
}

static struct event_sink open_view(struct talk *talk, const struct talk_options *options)
{
	if (options->json) {
		talk->json = json_events_new(STDOUT_FILENO);
		return json_events_sink(talk->json);
	}
	talk->screen = screen_new(STDOUT_FILENO, options->screen);
	if (options->console == NULL)
		return screen_sink(talk->screen);
	talk->asking = asking_open(options->console, talk->screen,
				   interrupt_fd(talk->interrupt), NULL);
	asking_set_preview(talk->asking, preview, &talk->setup->plugins);
	/* Without an `asking` no question is put to anybody. */
	return talk->asking != NULL ? asking_sink(talk->asking) : screen_sink(talk->screen);
}

static struct agent_options agent_options_of(const struct talk *talk)
{
	return (struct agent_options){
		.session = talk->session,
		.model = talk->model,
		.recorder = talk->recorder,
		.name = talk->setup->agent,
		.prompt = orchestrate_prompt(talk->orchestrate, talk->setup->role.prompt),
		.parent = talk->parent,
		.checks = talk->setup->role.checks,
		.cancel_fd = interrupt_fd(talk->interrupt),
	};
}

static int open_agent(struct talk *talk, const char *resume)
{
	struct agent_options options = agent_options_of(talk);
	struct err err = {0};

	options.resume = resume;

	if (!interrupt_start(talk->interrupt, &err) ||
	    !agent_open(&options, &talk->agent, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	orchestrate_set_agent(talk->orchestrate, talk->agent, talk->session, talk->recorder);
	return CODE_DONE;
}

static int open_session(struct talk *talk, struct setup *setup,
			void (*meanwhile)(void *context), void *context,
			struct session **session)
{
	struct session_options options = {
		.ready_workers = READY_WORKERS,
		.sink = recorder_sink(talk->recorder),
		.answers_approvals = talk->answering || talk->asking != NULL,
		.relays_approvals = talk->relays,
		.cancel_fd = interrupt_fd(talk->interrupt),
		.rests = true,
		.meanwhile = meanwhile,
		.meanwhile_context = context,
	};

	return setup_session(setup, &options, session);
}

/*
 * Open the orchestra for TALK's setup and model; the tools of the setup are then
 * complete.
 */
static bool open_orchestrate(struct talk *talk, const struct value *request, struct err *err)
{
	const struct orchestrate_options options = {
		.setup = talk->setup,
		.request = request,
		.model = talk->asked,
		.answered = talk->answered,
		.counts_answers = talk->counts_answers,
	};

	return orchestrate_open(&options, &talk->orchestrate, err);
}

static bool open_model(struct talk *talk, const struct model_options *options,
		       struct model **model, struct err *err)
{
	struct model_options with = *options;

	if (talk->catalogue == NULL &&
	    !catalogue_file_open(talk->setup->models, &talk->catalogue, err))
		return false;
	with.catalogue = talk->catalogue;
	return model_open(&with, model, err);
}

/*
 * The part of the opening that does not need the cell, and that the cell does not need.
 */
struct opening {
	struct talk *talk;
	const struct talk_options *options;
	bool failed;
	struct err err;
};

/* Runs while the cell is being made. */
static void open_meanwhile(void *context)
{
	struct opening *opening = context;
	const struct talk_options *options = opening->options;
	struct talk *talk = opening->talk;

	opening->failed =
		!open_model(talk, &options->model, &talk->model, &opening->err) ||
		(options->kept && !journal_open_default(&talk->journal, &opening->err));
	if (opening->failed)
		return;
	recorder_set_journal(talk->recorder, talk->journal);
	model_prepare(talk->model);
}

int talk_open(const struct talk_options *options, struct setup *setup, struct talk **opened)
{
	struct talk *talk = memory_alloc(sizeof(*talk));
	struct opening opening = {.talk = talk, .options = options};
	struct err err = {0};
	int code;

	*opened = talk;
	talk->setup = setup;
	talk->asked = memory_copy(options->model.name);
	talk->parent = value_text(value_member(options->request, "parent"));
	talk->counts_answers = options->counts_answers;
	talk->answering = options->answers;
	talk->answered = options->answers || options->console != NULL;
	talk->relays = options->answers && options->request != NULL;
	setup_hide_memory();
	if (!interrupt_open(&talk->interrupt, &err) ||
	    !open_orchestrate(talk, options->request, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	talk->recorder = recorder_new(NULL, open_view(talk, options));
	code = open_session(talk, setup, open_meanwhile, &opening, &talk->session);
	if (code == CODE_DONE && opening.failed)
		code = verb_complain(CODE_FAILED, "%s", opening.err.text);
	if (code == CODE_DONE && options->answers)
		talk->answers = answers_open(STDIN_FILENO, talk->session);
	asking_set_session(talk->asking, talk->session);
	return code == CODE_DONE ? open_agent(talk, options->resume) : code;
}

void talk_close(struct talk *talk)
{
	if (talk == NULL)
		return;
	agent_close(talk->agent);
	answers_close(talk->answers);
	session_close(talk->session);
	orchestrate_close(talk->orchestrate);
	recorder_free(talk->recorder);
	asking_close(talk->asking);
	screen_free(talk->screen);
	json_events_free(talk->json);
	journal_close(talk->journal);
	free(talk->asked);
	model_close(talk->model);
	catalogue_close(talk->catalogue);
	interrupt_close(talk->interrupt);
	free(talk);
}

static int code_of(enum agent_reason reason)
{
	switch (reason) {
	case AGENT_STOPPED:
	case AGENT_PATCH:
		return CODE_DONE;
	case AGENT_ITERATIONS:
	case AGENT_TOKENS:
	case AGENT_MONEY:
	case AGENT_WALL:
	case AGENT_SHELL:
	case AGENT_REPEATS:
	case AGENT_TIMEOUTS:
		return CODE_LIMIT;
	case AGENT_CANCELLED:
		return CODE_CANCELLED;
	case AGENT_MODEL_FAILED:
	case AGENT_CHECKS:
		break;
	}
	return CODE_FAILED;
}

int talk_turn(struct talk *talk, const char *prompt, struct agent_outcome *outcome)
{
	struct err err = {0};
	int code;

	*outcome = (struct agent_outcome){0};
	if (!agent_submit(talk->agent, prompt, outcome, &err)) {
		talk->broken = true;
		if (talk->screen != NULL)
			screen_rest(talk->screen);
		return verb_complain(CODE_FAILED, "%s", err.text);
	}
	code = code_of(outcome->reason);
	if (code == CODE_CANCELLED && interrupt_signal(talk->interrupt) != 0)
		code = CODE_SIGNAL + interrupt_signal(talk->interrupt);
	interrupt_settle(talk->interrupt);
	return code;
}

int talk_told(const struct talk *talk, int code)
{
	int gone = talk->json != NULL ? json_events_gone(talk->json)
				      : screen_gone(talk->screen);

	if (code != CODE_DONE || gone == 0 || gone == EPIPE)
		return code;
	return verb_complain(CODE_FAILED,
			     "the work is done, but not all of it was printed: %s%s",
			     strerror(gone),
			     talk->journal != NULL
				     ? "; glovebox sessions export last prints it"
				     : "");
}

bool talk_is_over(const struct talk *talk)
{
	return talk->broken || interrupt_signal(talk->interrupt) != 0;
}

/* Give WITH, a copy of the conversation, a session made of SETUP. */
static int change_hands(struct talk *with, struct setup *setup)
{
	struct err err = {0};

	with->setup = setup;
	with->session = NULL;
	with->orchestrate = NULL;
	if (!open_orchestrate(with, NULL, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return open_session(with, setup, NULL, NULL, &with->session);
}

int talk_change(struct talk *talk, struct setup *setup, const struct model_options *model)
{
	struct talk with = *talk, unused;
	struct agent_options options;
	struct err err = {0};
	char *run = memory_copy(session_run(talk->session));
	const bool handed = !session_has_news(talk->session);
	int code = CODE_DONE;

	if (model != NULL) {
		if (!open_model(talk, model, &with.model, &err)) {
			free(run);
			return verb_complain(CODE_FAILED, "%s", err.text);
		}
		with.asked = memory_copy(model->name);
	}
	if (setup != NULL)
		code = change_hands(&with, setup);
	options = agent_options_of(&with);
	if (code == CODE_DONE && !agent_change(talk->agent, &options, &err))
		code = verb_complain(CODE_FAILED, "%s", err.text);
	unused = code == CODE_DONE ? *talk : with;
	if (setup != NULL) {
		session_close(unused.session);
		orchestrate_close(unused.orchestrate);
	}
	if (model != NULL) {
		model_close(unused.model);
		free(unused.asked);
	}
	if (code != CODE_DONE) {
		free(run);
		return code;
	}
	*talk = with;
	/*
	 * Adopt only now: the last changes of the old session are recorded when it is
	 * closed.
	 */
	if (setup != NULL)
		session_adopt(talk->session, run, handed);
	free(run);
	orchestrate_set_agent(talk->orchestrate, talk->agent, talk->session, talk->recorder);
	asking_set_session(talk->asking, talk->session);
	return CODE_DONE;
}

struct agent *talk_agent(const struct talk *talk)
{
	return talk->agent;
}

struct session *talk_session(const struct talk *talk)
{
	return talk->session;
}

const char *talk_model_name(const struct talk *talk)
{
	return model_name(talk->model);
}

void talk_break(struct talk *talk)
{
	if (talk->screen != NULL)
		screen_break(talk->screen);
}

int talk_interrupt_fd(const struct talk *talk)
{
	return interrupt_fd(talk->interrupt);
}

void talk_calm(struct talk *talk)
{
	interrupt_settle(talk->interrupt);
}

int talk_signal(const struct talk *talk)
{
	return interrupt_signal(talk->interrupt);
}
