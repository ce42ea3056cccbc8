/*
 * Tests of how a call is judged by its arguments: a command runs in the folder that is named, in
 * whatever order a tool has its arguments. The session has a real cell, which none of this uses.
 */
#include "../base/unit.h"
#include "room.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "policy/config.h"
#include "session/session.h"

static void begin(void *context, struct running *running)
{
	struct tool_result result;

	(void)context;
	tool_result_init(&result);
	(void)tool_done(&result);
	running_end(running, &result);
}

static const struct row file_rows[] = {
	{"path", ROW_PATH, true, "A file"},
	{0},
};
/* The paths of a list and a path that is not given stand before the folder. */
static const struct row params[] = {
	{"files", ROW_LIST, false, "Files", .max = 4, .rows = file_rows},
	{"log", ROW_PATH, false, "A file"},
	{"command", ROW_COMMAND, true, "What is to run"},
	{"workdir", ROW_FOLDER, false, "Where it runs"},
	{0},
};
static const struct tool late_tool = {.name = "late",
				      .description = "Runs a command in a folder.",
				      .params = params,
				      .effects = EFFECT_RUNS,
				      .timeout_s = 20,
				      .where = ELSEWHERE,
				      .begin = begin};
static const struct tool *const table[] = {&late_tool, NULL};

static struct policy *policy_of(const char *folder)
{
	static const char text[] =
		"{\"agents\": {\"default\": {\"write\": [\".\"], \"blocked\": [\"secret/\"], "
		"\"tools\": [\"late\"], \"commands\": {\"presets\": [\"text\"]}}}}";
	auto_config struct config *config = NULL;
	struct policy *policy = NULL;
	struct err err = {0};

	if (!config_parse(STR(text), "c.json", &config, &err) ||
	    !config_policy(config, NULL, NULL, folder, &policy, &err))
		fail_msg("%s", err.text);
	return policy;
}

static int open_session(void **state)
{
	struct room *room = *state = room_new();
	char path[sizeof(room->folder) + 16];

	if (room == NULL)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/secret", room->folder);
	if (mkdir(path, 0755) < 0)
		return -1;
	return room_open(room,
			 (struct session_options){
				 .take_policy = policy_of(room->folder),
				 .tools = table,
			 })
		       ? 0
		       : -1;
}

static int close_session(void **state)
{
	const struct room *room = *state;
	char path[sizeof(room->folder) + 16];

	(void)snprintf(path, sizeof(path), "%s/secret", room->folder);
	(void)rmdir(path);
	return room_end(state);
}

static enum result_status status_of(const struct room *room, const char *arguments)
{
	struct tool_result result;
	enum result_status status;

	room_call(room, "late", arguments, &result);
	status = result.status;
	tool_result_fini(&result);
	return status;
}

static void a_command_is_judged_in_the_folder_that_is_named(void **state)
{
	const struct room *room = *state;

	assert_int_equal(status_of(room, "{\"command\": \"cat key\"}"), RESULT_DONE);
	assert_int_equal(status_of(room, "{\"command\": \"cat secret/key\"}"),
			 RESULT_DENIED);
	assert_int_equal(status_of(room,
				   "{\"command\": \"cat key\", \"workdir\": \"secret\"}"),
			 RESULT_DENIED);
	assert_int_equal(status_of(room, "{\"command\": \"cat key\", \"workdir\": \".\"}"),
			 RESULT_DONE);
}

static void other_paths_before_the_folder_are_not_taken_for_it(void **state)
{
	const struct room *room = *state;

	assert_int_equal(status_of(room,
				   "{\"files\": [{\"path\": \"a\"}, {\"path\": \"b\"}], "
				   "\"command\": \"cat ../key\", \"workdir\": \"open/x\"}"),
			 RESULT_DONE);
	assert_int_equal(status_of(room,
				   "{\"files\": [{\"path\": \"open/a\"}], "
				   "\"command\": \"cat ../secret/key\", \"workdir\": \"x\"}"),
			 RESULT_DENIED);
	assert_int_equal(status_of(room, "{\"log\": \"open/a\", \"command\": "
					 "\"cat ../secret/key\", \"workdir\": \"x\"}"),
			 RESULT_DENIED);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_judged_in_the_folder_that_is_named),
		cmocka_unit_test(other_paths_before_the_folder_are_not_taken_for_it),
	};

	session_role(argc, argv, table);
	return cmocka_run_group_tests(tests, open_session, close_session);
}
