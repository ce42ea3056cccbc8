/*
 * job: the tool that asks about the jobs of a session. The session answers it
 * (session/jobs.c), with the worker of the job.
 */
#include "tools/shown.h"
#include "tools/tools.h"

#define JOB_WAIT_S     20
#define JOB_WAIT_MAX_S 600

static const struct tool_param job_params[] = {
	{"id", PARAM_ID, false,
	 "Number of the job; may be omitted when there is only one job",
	 .aliases = "job job_id"},
	{"action", PARAM_CHOICE, false,
	 "read: what it has printed since it was last asked; wait: until it ends or waits for "
	 "input; input: type on its terminal; signal: send it one; list: all jobs",
	 .choices = "read wait input signal list", .initial = "\"read\""},
	{"since", PARAM_COUNT, false,
	 "Show output from this byte on (0: all) instead of what is new"},
	{"input", PARAM_TEXT, false, "What is typed, line ends included: \"yes\\n\"",
	 .aliases = "text", .min = 1, .max = 4096},
	{"signal", PARAM_CHOICE, false, "Signal to send; TERM unless told otherwise",
	 .choices = "TERM INT KILL HUP QUIT USR1 USR2 STOP CONT"},
	{"timeout_s", PARAM_SECONDS, false,
	 "Seconds that wait waits; " SHOWN_NUMBER(JOB_WAIT_S) " unless told otherwise",
	 .aliases = "timeout"},
	{0},
};

const struct tool job_tool = {
	.name = "job",
	.description =
		"Follow a job (bash with background=true, or a call that took too long): "
		"read its output, wait for it, type for it, end it.",
	.example = "{\"id\": 1, \"action\": \"wait\"}",
	.aliases = "jobs",
	.params = job_params,
	.effects = EFFECT_RUNS,
	.timeout_s = JOB_WAIT_S,
	.timeout_max_s = JOB_WAIT_MAX_S,
	.where = IN_JOBS,
};
