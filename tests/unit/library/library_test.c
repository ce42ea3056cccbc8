/* library: what include/glovebox.h promises, seen from a program that uses it. */
#include "world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void options_of_another_size_are_refused(void **state)
{
	struct world *world = *state;
	struct glovebox_options options = world_options(world);

	options.size = 0;
	assert_null(glovebox_open(&options, world->error, sizeof(world->error)));
	assert_non_null(strstr(world->error, "GLOVEBOX_OPTIONS"));
	options.size = sizeof(options) + sizeof(void *);
	assert_null(glovebox_open(&options, world->error, sizeof(world->error)));
	assert_non_null(strstr(world->error, "newer library"));
	assert_null(glovebox_open(NULL, NULL, 0));
}

static void options_of_an_older_program_are_enough(void **state)
{
	struct world *world = *state;
	struct glovebox_options options = world_options(world);

	options.size = offsetof(struct glovebox_options, output);
	world->session = glovebox_open(&options, world->error, sizeof(world->error));
	assert_non_null(world->session);
	glovebox_result_free(
		glovebox_call(world->session, "bash", "{\"command\": \"echo x\"}"));
	assert_string_equal(world->output, "");
}

static void an_error_is_cut_to_its_room(void **state)
{
	struct world *world = *state;
	struct glovebox_options options = world_options(world);
	char small[8] = "unread!";

	options.workspace = "/nowhere/at/all";
	assert_null(glovebox_open(&options, small, sizeof(small)));
	assert_int_equal(strlen(small), sizeof(small) - 1);
}

static void a_policy_with_a_slip_is_refused(void **state)
{
	struct world *world = *state;
	struct glovebox_options options = world_options(world);

	options.policy = "{\"wirte\": []}";
	assert_null(glovebox_open(&options, world->error, sizeof(world->error)));
	assert_non_null(strstr(world->error, "write"));
	options.policy = "{";
	assert_null(glovebox_open(&options, world->error, sizeof(world->error)));
	assert_non_null(strstr(world->error, "line 1"));
}

static void tools_come_with_their_schema(void **state)
{
	struct world *world = *state;
	const struct glovebox_tool *tool = NULL;
	size_t count = 0;

	world_open(world, "{\"tools\": [\"bash\", \"read_file\"]}");
	while (glovebox_tool(world->session, count) != NULL)
		count++;
	assert_int_equal(count, 2);
	tool = glovebox_tool(world->session, 0);
	assert_string_equal(tool->name, "bash");
	assert_true(tool->runs);
	assert_non_null(strstr(tool->schema, "\"command\""));
	assert_false(glovebox_tool(world->session, 1)->runs);
	assert_string_equal(glovebox_workspace(world->session), world->folder);
	assert_in_range(glovebox_level(world->session), 2, 3);
}

static void a_call_is_answered(void **state)
{
	struct world *world = *state;
	struct glovebox_result *result;

	world_open(world, NULL);
	result = glovebox_call(world->session, "bash",
			       "{\"command\": \"echo hello; exit 3\"}");
	assert_int_equal(result->status, GLOVEBOX_DONE);
	assert_int_equal(result->exit_code, 3);
	assert_int_equal(strlen(result->text), result->text_size);
	assert_non_null(strstr(result->text, "hello"));
	assert_int_equal(result->details[0], '{');
	assert_true(result->seconds > 0);
	assert_int_equal(result->level, glovebox_level(world->session));
	assert_false(result->unfiltered);
	assert_non_null(strstr(world->output, "bash1:hello"));
	glovebox_result_free(result);
}

static void nothing_is_written_unless_the_policy_says_so(void **state)
{
	struct world *world = *state;
	struct glovebox_result *result;

	world_open(world, NULL);
	result = glovebox_call(world->session, "write_file",
			       "{\"path\": \"a\", \"content\": \"x\"}");
	assert_int_equal(result->status, GLOVEBOX_DENIED);
	assert_string_equal(glovebox_status_name(result->status), "denied");
	glovebox_result_free(result);
}

static void what_is_wrong_is_an_answer(void **state)
{
	static const char *const arguments[] = {NULL, "", "{", "[]", "{\"comand\": \"x\"}"};
	struct world *world = *state;

	world_open(world, NULL);
	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		struct glovebox_result *result =
			glovebox_call(world->session, "bash", arguments[i]);

		assert_int_equal(result->status, GLOVEBOX_FAILED);
		assert_true(result->text_size > 0);
		glovebox_result_free(result);
	}
	glovebox_result_free(glovebox_call(world->session, NULL, NULL));
	glovebox_result_free(NULL);
}

static void *cancel_it(void *context)
{
	struct world *world = context;
	char byte;

	if (read(world->begun[0], &byte, 1) == 1)
		glovebox_cancel(world->session);
	return NULL;
}

static void a_cancel_ends_the_call_under_way(void **state)
{
	struct world *world = *state;
	struct glovebox_result *result;
	pthread_t thread;

	world_open(world, NULL);
	assert_int_equal(pthread_create(&thread, NULL, cancel_it, world), 0);
	result = glovebox_call(world->session, "bash",
			       "{\"command\": \"echo begun; sleep 60\"}");
	(void)pthread_join(thread, NULL);
	assert_int_equal(result->status, GLOVEBOX_CANCELLED);
	assert_true(result->seconds < 30);
	glovebox_result_free(result);
	result = glovebox_call(world->session, "bash", "{\"command\": \"echo again\"}");
	assert_int_equal(result->status, GLOVEBOX_DONE);
	glovebox_result_free(result);
}

static void a_cancel_without_a_call_is_for_the_next_one(void **state)
{
	struct world *world = *state;
	struct glovebox_result *result;

	world_open(world, NULL);
	glovebox_cancel(world->session);
	glovebox_cancel(world->session);
	result = glovebox_call(world->session, "bash", "{\"command\": \"sleep 60\"}");
	assert_int_equal(result->status, GLOVEBOX_CANCELLED);
	glovebox_result_free(result);
	result = glovebox_call(world->session, "bash", "{\"command\": \"echo again\"}");
	assert_int_equal(result->status, GLOVEBOX_DONE);
	glovebox_result_free(result);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, world_make, world_end)

static const char script[] =
	"if [ \"$1\" = schema ]; then\n"
	"echo '{\"id\": \"greet\", \"version\": \"1\", \"args_mode\": \"flags\", \"tools\": [{\"type\": "
	"\"function\", \"function\": {\"name\": \"greet\", \"description\": \"Say hello.\", "
	"\"parameters\": {\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}}, "
	"\"required\": [\"name\"]}}}]}'\n"
	"elif [ \"$1\" = run ]; then echo \"Hello, $3, from $PWD\"; touch made 2>/dev/null || echo kept out\n"
	"else exit 1; fi\n";

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void plugins_of_the_configuration_are_tools(void **state)
{
	struct world *world = *state;
	struct glovebox_options options = world_options(world);
	char place[] = "/tmp/glovebox-plugin-XXXXXX", path[128], config[512];
	const struct glovebox_tool *tool = NULL;
	bool found = false;

	assert_non_null(mkdtemp(place));
	write_file(place, "greet.bash", script);
	(void)snprintf(config, sizeof(config),
		       "{\"plugins\": [\"bash:%s/greet.bash\", \"bash:%s/gone.bash\"],"
		       " \"plugin_policy\": {\"allow_bash_tools\": true}}",
		       place, place);
	options.config = config;
	world->session = glovebox_open(&options, world->error, sizeof(world->error));
	if (world->session == NULL)
		fail_msg("%s", world->error);
	for (size_t i = 0; (tool = glovebox_tool(world->session, i)) != NULL; i++)
		found = found || strcmp(tool->name, "greet") == 0;
	if (!found)
		fail_msg("left out: %s", glovebox_problem(world->session, 0));
	assert_non_null(strstr(glovebox_problem(world->session, 0), "gone.bash"));
	assert_null(glovebox_problem(world->session, 1));
	struct glovebox_result *result =
		glovebox_call(world->session, "greet", "{\"name\": \"Ada\"}");
	assert_int_equal(result->status, GLOVEBOX_DONE);
	/* It has the rights of the policy, which writes nothing. */
	assert_non_null(strstr(result->text, "Hello, Ada, from /tmp/glovebox-library-"));
	assert_non_null(strstr(result->text, "kept out"));
	assert_string_equal(result->content, "[]");
	glovebox_result_free(result);
	result = glovebox_call(world->session, "greet", "{\"name\": 1}");
	assert_int_equal(result->status, GLOVEBOX_FAILED);
	glovebox_result_free(result);
	(void)snprintf(path, sizeof(path), "%s/greet.bash", place);
	(void)unlink(path);
	(void)rmdir(place);
}

static void plugins_need_the_persons_yes(void **state)
{
	struct world *world = *state;
	struct glovebox_options options = world_options(world);

	options.config = "{\"plugins\": [\"bash:/nowhere\"]}";
	assert_null(glovebox_open(&options, world->error, sizeof(world->error)));
	assert_non_null(strstr(world->error, "allow_bash_tools"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_WORLD(options_of_another_size_are_refused),
		IN_WORLD(options_of_an_older_program_are_enough),
		IN_WORLD(an_error_is_cut_to_its_room),
		IN_WORLD(a_policy_with_a_slip_is_refused),
		IN_WORLD(tools_come_with_their_schema),
		IN_WORLD(plugins_of_the_configuration_are_tools),
		IN_WORLD(plugins_need_the_persons_yes),
		IN_WORLD(a_call_is_answered),
		IN_WORLD(nothing_is_written_unless_the_policy_says_so),
		IN_WORLD(what_is_wrong_is_an_answer),
		IN_WORLD(a_cancel_ends_the_call_under_way),
		IN_WORLD(a_cancel_without_a_call_is_for_the_next_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
