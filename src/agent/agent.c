/* agent: turns from beginning to end. */
#include "agent/agent.h"

#include "agent/checks.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "policy/policy.h"
#include "tool/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The role's prompt and our paragraph about the place. */
enum { AGENT_SYSTEM_MAX = 1 << 20 };

static const char *const reasons[] = {
	[AGENT_MODEL_FAILED] = "model_failed",
	[AGENT_STOPPED] = "stopped",
	[AGENT_PATCH] = "patch",
	[AGENT_ITERATIONS] = "iterations",
	[AGENT_TOKENS] = "tokens",
	[AGENT_MONEY] = "money",
	[AGENT_WALL] = "wall",
	[AGENT_SHELL] = "shell",
	[AGENT_REPEATS] = "repeats",
	[AGENT_TIMEOUTS] = "timeouts",
	[AGENT_CHECKS] = "checks",
	[AGENT_CANCELLED] = "cancelled",
};

const char *agent_reason_name(enum agent_reason reason)
{
	return reasons[reason];
}

static bool agent_listen(void *context, const struct event *event, struct err *err)
{
	return history_event(context, event, err);
}

static bool agent_watch(int set, int fd, struct err *err)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (fd >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0)
		return err_set(err, errno, "waiting for an interrupt: %s", strerror(errno));
	return true;
}

static bool agent_open_stop(struct agent *agent, struct err *err)
{
	agent->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	agent->stop_fd = epoll_create1(EPOLL_CLOEXEC);
	if (agent->timer_fd < 0 || agent->stop_fd < 0)
		return err_set(err, errno, "waiting for an interrupt: %s", strerror(errno));
	return agent_watch(agent->stop_fd, agent->timer_fd, err) &&
	       agent_watch(agent->stop_fd, agent->options.cancel_fd, err);
}

static void agent_offer_tools(struct agent *agent)
{
	const struct tool *const *tools = session_tools(agent->options.session);
	struct buf printed;

	while (tools[agent->tool_count])
		agent->tool_count++;
	agent->tools = memory_array(agent->tool_count + 1, sizeof(*agent->tools));
	agent->schemas = memory_array(agent->tool_count + 1, sizeof(char *));
	for (size_t i = 0; i < agent->tool_count; i++) {
		auto_value struct value *schema = schema_of_tool(tools[i]);

		buf_init(&printed, EVENT_JSON_MAX);
		(void)value_print(schema, 0, &printed);
		agent->fixed_bytes += printed.size + strlen(tools[i]->name) +
				      strlen(tools[i]->description);
		agent->schemas[i] = buf_take(&printed);
		agent->tools[i] = (struct model_tool){
			.name = tools[i]->name,
			.description = tools[i]->description,
			.schema = agent->schemas[i],
		};
	}
}

/* Add the facts that the prompt of a role cannot know: workspace, hosts, instructions. */
static void agent_set_system(struct agent *agent)
{
	const struct policy *policy = session_policy(agent->options.session);
	const struct policy_names *network = &policy->network;
	const bool asks = policy_asks(policy, "network");
	struct buf text;

	buf_init(&text, AGENT_SYSTEM_MAX);
	if (agent->options.prompt)
		buf_addf(&text, "%s\n\n", agent->options.prompt);
	buf_addf(&text,
		 "The workspace is %s; paths are relative to it. Every tool runs in a sealed "
		 "cell: other folders of the user are not visible there, /tmp is private, and ",
		 session_workspace(agent->options.session));
	if (network->count == 0 && !asks)
		buf_adds(&text, "there is no network.");
	else
		buf_addf(&text, "the network is a proxy (HTTP_PROXY) to %s",
			 network->count == 0 ? "hosts that the person allows when asked."
			 : asks ? "these hosts, and others that the person allows when asked:"
				: "these hosts only:");
	for (size_t i = 0; i < network->count; i++)
		buf_addf(&text, " %s%s", network->items[i],
			 i + 1 < network->count ? "," : ".");
	instructions_add(agent, &text);
	conversation_set_system(&agent->history.conversation, text.data);
	agent->fixed_bytes += text.size;
	buf_fini(&text);
}

static bool agent_begin(struct agent *agent, struct err *err)
{
	const struct agent_options *options = &agent->options;
	const char *workspace = session_workspace(options->session);
	const char *model = model_name(options->model);

	return recorder_begin(options->recorder, workspace, options->name, model, err) &&
	       agent_record_begin(agent, EVENT_SESSION_BEGAN, NULL, err);
}

/* Money that cannot be counted cannot be kept to. */
static bool agent_check_money(const struct agent_options *options, struct err *err)
{
	const char *name = model_bare_name(options->model);

	if (session_policy(options->session)->limits.money <= 0 ||
	    model_is_priced(options->model))
		return true;
	return err_set(err, EINVAL,
		       "there is a limit of money, but the price of %.200s is not known here: "
		       "give it in your configuration, {\"models\": {\"%.200s\": "
		       "{\"price_input\": …, \"price_output\": …}}} in US dollars for a million "
		       "tokens (0 for your own machine), or take the limit away",
		       name, name);
}

static bool agent_say_context(struct agent *agent, struct err *err)
{
	struct buf note;
	bool recorded;

	buf_init(&note, ERR_TEXT_MAX);
	model_ready(agent->options.model, &note);
	recorded = note.size == 0 || agent_notice(agent, note.data, false, err);
	buf_fini(&note);
	return recorded;
}

bool agent_open(const struct agent_options *options, struct agent **agent, struct err *err)
{
	struct agent *made = memory_alloc(sizeof(*made));
	struct event_sink listener = {.event = agent_listen, .context = &made->history};

	made->options = *options;
	made->stop_fd = -1;
	made->timer_fd = -1;
	history_init(&made->history);
	recorder_set_listener(options->recorder, listener);
	agent_offer_tools(made);
	if (!agent_check_money(options, err) || !checks_judge(made, err) ||
	    !agent_open_stop(made, err) ||
	    !(options->resume ? resume_session(made, err) : agent_begin(made, err)) ||
	    !instructions_read(made, err) || !agent_say_context(made, err)) {
		agent_close(made);
		return false;
	}
	agent_set_system(made);
	*agent = made;
	return true;
}

static void agent_forget_tools(struct agent *agent)
{
	for (size_t i = 0; i < agent->tool_count; i++)
		free(agent->schemas[i]);
	free(agent->schemas);
	free(agent->tools);
	agent->schemas = NULL;
	agent->tools = NULL;
	agent->tool_count = 0;
	agent->fixed_bytes = 0;
}

bool agent_change(struct agent *agent, const struct agent_options *options, struct err *err)
{
	const struct agent_options before = agent->options;

	if (!agent_check_money(options, err))
		return false;
	agent->options = *options;
	if (!checks_judge(agent, err)) {
		agent->options = before;
		return false;
	}
	agent_forget_tools(agent);
	agent_offer_tools(agent);
	agent_set_system(agent);
	return true;
}

void agent_close(struct agent *agent)
{
	if (!agent)
		return;
	recorder_set_listener(agent->options.recorder, (struct event_sink){0});
	agent_forget_tools(agent);
	history_fini(&agent->history);
	fd_close(&agent->stop_fd);
	fd_close(&agent->timer_fd);
	free(agent);
}

static void agent_clear_interrupt(struct agent *agent)
{
	char bytes[256]; /* a signalfd wants room for a whole record: 128 bytes */

	while (agent_interrupted(agent)) {
		if (read(agent->options.cancel_fd, bytes, sizeof(bytes)) <= 0)
			return;
	}
}

static void turn_begin(struct agent *agent, struct turn *turn, const char *text,
		       struct agent_outcome *outcome)
{
	const struct policy_limits *limits =
		&session_policy(agent->options.session)->limits;
	struct itimerspec at = {0};
	int64_t deadline_ms;

	*outcome = (struct agent_outcome){.last_exit_code = -1};
	*turn = (struct turn){
		.text = text,
		.outcome = outcome,
		.limits =
			{
				.iterations_max = limits->iterations,
				.tokens_max = limits->tokens,
				.money_max = limits->money,
				.wall_s = limits->run_s,
				.shell_s = limits->shell_s,
			},
		.guard = {.warn = limits->loop_warn, .stop = limits->loop_stop},
	};
	limits_init(&turn->limits, clock_now_ms());
	deadline_ms = limits_deadline_ms(&turn->limits);
	at.it_value.tv_sec = deadline_ms / 1000;
	at.it_value.tv_nsec = deadline_ms % 1000 * 1000000;
	(void)timerfd_settime(agent->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Is there another step, and is the model told when it is the last one? */
static bool turn_begin_step(struct agent *agent, struct turn *turn, struct err *err)
{
	enum agent_reason reason;
	struct buf sentence;
	bool recorded = true;

	buf_init(&sentence, ERR_TEXT_MAX);
	switch (limits_step(&turn->limits, clock_now_ms(), &reason, &sentence)) {
	case LIMITS_GO:
		break;
	case LIMITS_LAST:
		recorded = agent_notice(agent, sentence.data, true, err);
		break;
	case LIMITS_STOP:
		turn_end(turn, reason, sentence.data);
		break;
	}
	buf_fini(&sentence);
	return recorded;
}

static bool turn_step(struct agent *agent, struct turn *turn, struct err *err)
{
	if (agent_interrupted(agent)) {
		turn_end(turn, AGENT_CANCELLED, turn_interrupted);
		return true;
	}
	if (!turn_begin_step(agent, turn, err))
		return false;
	if (turn->over)
		return true;
	history_settle(&agent->history);
	if (!compact_when_due(agent, turn, err))
		return false;
	if (turn->over)
		return true;
	if (!ask_model(agent, turn, err))
		return false;
	if (turn->over)
		return true;
	return calls_run(agent, turn, err);
}

static bool turn_record_end(struct agent *agent, struct turn *turn, struct err *err)
{
	struct agent_outcome *outcome = turn->outcome;
	auto_value struct value *data = value_new_object();
	struct event event = {.kind = EVENT_TURN_ENDED, .data = data};

	value_set_text(data, "reason", agent_reason_name(outcome->reason));
	value_set_integer(data, "iterations", (int64_t)outcome->iterations);
	value_set(data, "usage", turn_usage_value(&outcome->usage));
	value_set_real(data, "seconds", outcome->seconds);
	value_set_real(data, "shell_seconds", outcome->shell_seconds);
	value_set_integer(data, "level", session_level(agent->options.session));
	handover_describe(agent, turn, data);
	checks_describe(agent, turn, data);
	return recorder_event(agent->options.recorder, &event, err);
}

static bool turn_finish(struct agent *agent, struct turn *turn, struct err *err)
{
	struct agent_outcome *outcome = turn->outcome;

	outcome->iterations = turn->limits.iterations;
	outcome->shell_seconds = turn->limits.shell_seconds;
	if (outcome->sentence[0] && !agent_notice(agent, outcome->sentence, false, err))
		return false;
	/* An interrupt ends the turn, but must not stop the hand-over of its changes. */
	agent_clear_interrupt(agent);
	if (!handover_make(agent, turn, err))
		return false;
	outcome->seconds = (double)(clock_now_ms() - turn->limits.began_ms) / 1000;
	return turn_record_end(agent, turn, err);
}

bool agent_submit(struct agent *agent, const char *text, struct agent_outcome *outcome,
		  struct err *err)
{
	struct event began = {.kind = EVENT_TURN_BEGAN, .text = str_of(text)};
	struct turn turn;
	bool recorded;

	turn_begin(agent, &turn, text, outcome);
	agent->turn = &turn;
	recorded = recorder_event(agent->options.recorder, &began, err);
	while (recorded && !turn.over)
		recorded = turn_step(agent, &turn, err) && checks_finish(agent, &turn, err);
	if (recorded)
		recorded = turn_finish(agent, &turn, err);
	agent->turn = NULL;
	guard_fini(&turn.guard);
	value_free(turn.patch);
	value_free(turn.delegated);
	value_free(turn.edited);
	value_free(turn.checks);
	return recorded;
}
