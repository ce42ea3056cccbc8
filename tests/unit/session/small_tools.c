/* small_tools: what each does, and fails to do, in its few lines; see small_tools.h. */
#include "small_tools.h"
#include "process/follow.h"

#include "files/place.h"
#include "process/program.h"
#include "tool/call.h"

#include <unistd.h>

static enum result_status say(struct call *call, struct tool_result *result)
{
	call_output(call, CALL_STDOUT, STR("fragment"));
	(void)buf_addf(&result->text, "%s in %s", call_text(call, "word"), call->folder);
	value_set_text(tool_details(result), "said", call_text(call, "word"));
	return tool_done(result);
}

static enum result_status wait_for_stop(struct call *call, struct tool_result *result)
{
	while (!call_stopped(call))
		;
	return call_stop_result(call, result);
}

static enum result_status ignore_stop(struct call *call, struct tool_result *result)
{
	(void)call;
	while (pause() < 0)
		;
	return tool_done(result);
}

static enum result_status crash(struct call *call, struct tool_result *result)
{
	(void)call;
	(void)result;
	_exit(9);
}

/* What git would follow, left by a call that has no time to clean up. */
static enum result_status plant_and_stick(struct call *call, struct tool_result *result)
{
	(void)!symlink("/nonexistent", ".git");
	return ignore_stop(call, result);
}

static enum result_status plant_and_crash(struct call *call, struct tool_result *result)
{
	(void)!symlink("/nonexistent", ".git");
	return crash(call, result);
}

static enum result_status touch(struct call *call, struct tool_result *result)
{
	const char *path = call_text(call, "path");
	const char *mark = call_seen(call, path);
	struct place place;
	struct err err;
	bool fine;

	(void)buf_addf(&result->text, "%s", mark != NULL ? mark : "unseen");
	call_saw(result, path, "mark-of-this-test");
	place_init(&place);
	fine = files_place(call->files, path, false, &place, &err) &&
	       (place.exists || place_write(&place, STR(""), NULL, &err));
	place_fini(&place);
	return fine ? tool_done(result) : tool_fail(result, "%s", err.text);
}

static enum result_status leave_a_process(struct call *call, struct tool_result *result)
{
	/*
	 * The processes left behind carry the workspace's name, so that they can be
	 * looked for.
	 */
	const char *const argv[] = {
		"/bin/bash", "-c",
		"(exec -a \"$0\" sleep 1000) & (trap '' TERM; exec -a \"$0\" setsid sleep 1000) & :",
		call->workspace, NULL};
	struct program_run run;
	struct err err;

	program_run_init(&run);
	run.start.argv = argv;
	run.start.environment = call->environment;
	run.deadline_ms = call->deadline_ms;
	run.stop_fd = -1;
	run.spill_fd = -1;
	if (!follow_program(&run, &err))
		return tool_fail(result, "%s", err.text);
	result->exit_code = run.exit_code;
	program_run_fini(&run);
	return tool_done(result);
}

static const struct row say_params[] = {
	{"word", ROW_TEXT, true, "What to say"},
	{0},
};
static const struct row touch_params[] = {
	{"path", ROW_PATH, true, "A file"},
	{0},
};
static const struct row no_params[] = {{0}};

static const struct tool say_tool = {.name = "say",
				     .description = "Say a word.",
				     .example = "{\"word\": \"hello\"}",
				     .params = say_params,
				     .effects = EFFECT_READS,
				     .timeout_s = 30,
				     .execute = say};
static const struct tool wait_tool = {.name = "wait",
				      .description = "Wait.",
				      .example = "{}",
				      .params = no_params,
				      .effects = EFFECT_READS,
				      .timeout_s = 0.2,
				      .execute = wait_for_stop};
static const struct tool stuck_tool = {.name = "stuck",
				       .description = "Never answer.",
				       .example = "{}",
				       .params = no_params,
				       .effects = EFFECT_READS,
				       .timeout_s = 0.2,
				       .execute = ignore_stop};
static const struct tool crash_tool = {.name = "crash",
				       .description = "Die.",
				       .example = "{}",
				       .params = no_params,
				       .effects = EFFECT_READS,
				       .timeout_s = 30,
				       .execute = crash};
static const struct tool plant_stuck_tool = {.name = "plant_stuck",
					     .description = "Plant, never answer.",
					     .example = "{}",
					     .params = no_params,
					     .effects = EFFECT_RUNS,
					     .timeout_s = 0.2,
					     .execute = plant_and_stick};
static const struct tool plant_crash_tool = {.name = "plant_crash",
					     .description = "Plant and die.",
					     .example = "{}",
					     .params = no_params,
					     .effects = EFFECT_WRITES,
					     .timeout_s = 30,
					     .execute = plant_and_crash};
static const struct tool touch_tool = {.name = "touch",
				       .description = "Touch a file.",
				       .example = "{\"path\": \"a\"}",
				       .params = touch_params,
				       .effects = EFFECT_WRITES,
				       .timeout_s = 30,
				       .execute = touch};
static const struct tool leave_tool = {.name = "leave",
				       .description = "Leave processes behind.",
				       .example = "{}",
				       .params = no_params,
				       .effects = EFFECT_RUNS,
				       .timeout_s = 30,
				       .execute = leave_a_process};
static const struct tool hidden_tool = {.name = "hidden",
					.description = "For the front.",
					.example = "{}",
					.params = no_params,
					.effects = EFFECT_READS,
					.timeout_s = 30,
					.internal = true,
					.execute = wait_for_stop};
const struct tool *const small_tools[] = {&say_tool,         &wait_tool,
					  &stuck_tool,       &crash_tool,
					  &touch_tool,       &leave_tool,
					  &hidden_tool,      &plant_stuck_tool,
					  &plant_crash_tool, NULL};
