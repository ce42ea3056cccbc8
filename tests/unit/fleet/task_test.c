/* task: lines and files of work. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "fleet/task.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define RUN  "\"run\": {\"command\": \"true\"}"
#define WHOLE                                                                                 \
	"{\"id\": \"django__django-11099\", \"base\": \"image:a:1\", \"workspace\": "         \
	"{\"git\": \"https://x.test/a\", \"ref\": \"abc123\"}, \"setup\": [\"make\"], "       \
	"\"run\": {\"prompt\": \"mend it\", \"model\": \"anthropic:m\", \"agent\": "          \
	"\"coder\"}, \"cwd\": \"/testbed\", \"check\": \"make check\", \"policy\": "          \
	"{\"network\": [\"pypi.org\"]}, \"limits\": {\"wall_s\": 3600, \"money\": 2, "        \
	"\"cpu_s\": 1800}, \"collect\": [\"patch\", \"journal\", \"report.xml\"], \"lane\": " \
	"\"sonnet\", \"priority\": 2, \"attempts\": 5, \"labels\": {\"set\": \"verified\"}}"

static void a_whole_line_is_read(void **state)
{
	struct fleet_task task;
	struct err err = {0};

	(void)state;
	if (!fleet_task_read(STR(WHOLE), &task, &err))
		fail_msg("%s", err.text);
	assert_string_equal(task.id, "django__django-11099");
	assert_string_equal(task.base, "image:a:1");
	assert_int_equal(task.workspace.kind, FLEET_GIT);
	assert_string_equal(task.workspace.from, "https://x.test/a");
	assert_string_equal(task.workspace.ref, "abc123");
	assert_null(task.workspace.sha256);
	assert_int_equal(task.run.kind, FLEET_PROMPT);
	assert_string_equal(task.run.prompt, "mend it");
	assert_string_equal(task.run.model, "anthropic:m");
	assert_string_equal(task.run.agent, "coder");
	assert_int_equal(value_count(task.setup), 1);
	assert_string_equal(task.cwd, "/testbed");
	assert_string_equal(task.check, "make check");
	assert_true(value_integer(value_member(task.limits, "wall_s")) == 3600);
	assert_int_equal(value_count(task.collect), 3);
	assert_string_equal(task.lane, "sonnet");
	assert_int_equal(task.priority, FLEET_HIGH);
	assert_int_equal(task.attempts, 5);
	fleet_task_fini(&task);
}

static void the_shortest_line_has_what_is_said_of_it(void **state)
{
	struct fleet_task task;
	struct err err = {0};

	(void)state;
	assert_true(fleet_task_read(STR("{\"id\": \"a\", " RUN "}"), &task, &err));
	assert_int_equal(task.workspace.kind, FLEET_EMPTY);
	assert_int_equal(task.run.kind, FLEET_COMMAND);
	assert_string_equal(task.run.command, "true");
	assert_string_equal(task.lane, "default");
	assert_int_equal(task.priority, FLEET_NORMAL);
	assert_int_equal(task.attempts, FLEET_ATTEMPTS);
	assert_null(task.setup);
	assert_null(task.collect);
	fleet_task_fini(&task);
}

static const struct {
	const char *line, *says;
} mistakes[] = {
	{"[]", "a task is a JSON object, not array"},
	{"{\"id\": 1, " RUN "}", "/id: must be text, not integer"},
	{"{" RUN "}", "needs \"id\""},
	{"{\"id\": \"a\"}", "needs \"run\""},
	{"{\"id\": \"a\", " RUN ", \"lanes\": \"x\"}",
	 "there is no key \"lanes\" (did you mean \"lane\"?)"},
	{"{\"id\": \"a.\", " RUN "}", "/id: the name of an id has 1 to 128 letters"},
	{"{\"id\": \"a..b\", " RUN "}", "/id: the name of an id"},
	{"{\"id\": \".a\", " RUN "}", "/id: the name of an id"},
	{"{\"id\": \"a/b\", " RUN "}", "/id: the name of an id"},
	{"{\"id\": \"\", " RUN "}", "/id: the name of an id"},
	{"{\"id\": \"a\", " RUN ", \"lane\": \"a.b\"}",
	 "/lane: the name of a lane has 1 to 128 letters"},
	{"{\"id\": \"a\", " RUN ", \"base\": \"\"}",
	 "/base: base : it is no base; write host"},
	{"{\"id\": \"a\", " RUN ", \"base\": \"imagine:a\"}",
	 "/base: base imagine:a: it is no base; write host"},
	{"{\"id\": \"a\", \"run\": {}}",
	 "/run: has one of \"prompt\", \"command\" and \"wrap\""},
	{"{\"id\": \"a\", \"run\": {\"prompt\": \"x\", \"command\": \"x\"}}",
	 "/run: has one of"},
	{"{\"id\": \"a\", \"run\": {\"wrap\": \"x\", \"command\": \"x\"}}",
	 "/run: has one of"},
	{"{\"id\": \"a\", \"run\": {\"command\": \"x\", \"model\": \"x\"}}",
	 "/run: \"model\" goes with \"prompt\""},
	{"{\"id\": \"a\", \"run\": {\"wrap\": \"x\", \"agent\": \"x\"}}",
	 "/run: \"agent\" goes with \"prompt\""},
	{"{\"id\": \"a\", \"run\": {\"prompt\": \"x\", \"args\": [\"x\"]}}",
	 "/run: \"args\" goes with \"wrap\" only"},
	{"{\"id\": \"a\", \"run\": {\"command\": \"\"}}", "/run/command: may not be empty"},
	{"{\"id\": \"a\", \"run\": {\"cmd\": \"x\"}}", "there is no key \"cmd\""},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {}}",
	 "/workspace: has one of \"git\", \"archive\" and \"copy\""},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"git\": \"x\", \"copy\": \"x\"}}",
	 "/workspace: has one of"},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"copy\": \"x\", \"ref\": \"x\"}}",
	 "/workspace: \"ref\" goes with \"git\" only"},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"git\": \"x\", \"sha256\": \"" HASH
	 "\"}}",
	 "/workspace: \"sha256\" goes with \"archive\" only"},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"git\": \"--upload-pack=x\"}}",
	 "/workspace/git: may not be empty or begin with \"-\""},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"git\": \"x\", \"ref\": \"-x\"}}",
	 "/workspace/ref: is a commit, a tag or a branch"},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"git\": \"x\", \"ref\": \"a b\"}}",
	 "/workspace/ref: is a commit"},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"archive\": \"https://x/a\"}}",
	 "/workspace: an archive of the network needs \"sha256\""},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"archive\": \"blob:12\"}}",
	 "/workspace/archive: blob: is followed by the 64 hexadecimal digits"},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"archive\": \"x\", \"sha256\": \"12\"}}",
	 "/workspace/sha256: has 64 lower-case hexadecimal digits"},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"git\": \"git@x.test:a/b\"}}",
	 "/workspace/git: is https://"},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"git\": \"ssh://x.test/a\"}}",
	 "/workspace/git: is https://"},
	{"{\"id\": \"a\", " RUN ", \"workspace\": {\"git\": \"https://me:key@x.test/a\"}}",
	 "/workspace/git: has a name or a key in it"},
	{"{\"id\": \"a\", " RUN ", \"setup\": \"make\"}",
	 "/setup: must be a list of texts, not string"},
	{"{\"id\": \"a\", " RUN ", \"setup\": [\"\"]}", "/setup/0: may not be empty"},
	{"{\"id\": \"a\", " RUN ", \"policy\": {\"networks\": []}}",
	 "/policy: /: there is no key \"networks\""},
	{"{\"id\": \"a\", " RUN ", \"policy\": {\"prompt\": \"x\"}}",
	 "/policy: /prompt: is a key of an agent, not of a policy"},
	{"{\"id\": \"a\", " RUN ", \"limits\": {\"wall\": 1}}",
	 "there is no key \"wall\" (did you mean \"wall_s\"?)"},
	{"{\"id\": \"a\", " RUN ", \"limits\": {\"money\": -1}}", "/limits/money: must be "},
	{"{\"id\": \"a\", " RUN ", \"limits\": {\"tokens\": 1.5}}",
	 "/limits/tokens: must be a whole number, not 1.5"},
	{"{\"id\": \"a\", " RUN ", \"collect\": [\"patch\", \"patch\"]}",
	 "/collect/1: is there twice"},
	{"{\"id\": \"a\", " RUN ", \"collect\": [\"patch:\"]}",
	 "/collect/0: names no repository: patch:PATH"},
	{"{\"id\": \"a\", " RUN ", \"priority\": 3}", "/priority: must be 0 to 2, not 3"},
	{"{\"id\": \"a\", " RUN ", \"attempts\": 0}", "/attempts: must be 1 to 100, not 0"},
	{"{\"id\": \"a\", " RUN ", \"attempts\": \"3\"}",
	 "/attempts: must be a whole number"},
	{"{\"id\": \"a\", " RUN ", \"labels\": {\"a\": 1}}", "/labels/a: must be text"},
	{"{\"id\": \"a\", \"id\": \"b\", " RUN "}", "the key occurs twice"},
	{"{\"id\": \"a\", " RUN "} x", "column 41"},
};

static void every_mistake_is_told_with_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(mistakes); i++) {
		struct fleet_task task;
		struct err err = {0};

		if (fleet_task_read(str_of(mistakes[i].line), &task, &err))
			fail_msg("%s was taken", mistakes[i].line);
		if (strstr(err.text, mistakes[i].says) == NULL)
			fail_msg("%s: %s", mistakes[i].line, err.text);
	}
}

static void a_line_has_a_ceiling(void **state)
{
	static char line[FLEET_LINE_MAX + 2];
	struct fleet_task task;
	struct err err = {0};

	(void)state;
	memset(line, ' ', sizeof(line));
	memcpy(line, "{\"id\": \"a\", " RUN "}", strlen("{\"id\": \"a\", " RUN "}"));
	assert_true(fleet_task_read((struct str){line, FLEET_LINE_MAX}, &task, &err));
	fleet_task_fini(&task);
	assert_false(fleet_task_read((struct str){line, FLEET_LINE_MAX + 1}, &task, &err));
	assert_string_equal(err.text, "a line has at most 204800 bytes, not 204801");
}

static void names_have_dots_in_ids_only(void **state)
{
	char longest[FLEET_NAME_MAX + 2] = "";
	struct err err;

	(void)state;
	memset(longest, 'a', FLEET_NAME_MAX);
	assert_true(fleet_name_check(FLEET_ID, longest, &err));
	assert_true(fleet_name_check(FLEET_ID, "a.b-c_1.D", &err));
	assert_true(fleet_name_check(FLEET_JOB, "a-b_1", &err));
	assert_false(fleet_name_check(FLEET_JOB, "a.b", &err));
	assert_false(fleet_name_check(FLEET_JOB, NULL, &err));
	assert_false(fleet_name_check(FLEET_LANE, "a b", &err));
	assert_string_equal(err.text, "the name of a lane has 1 to 128 letters, digits, \"-\" "
				      "and \"_\"");
	longest[FLEET_NAME_MAX] = 'a';
	assert_false(fleet_name_check(FLEET_ID, longest, &err));
}

/* Files. */

struct place {
	char folder[64], path[80];
};

static int setup(void **state)
{
	static struct place place;

	(void)snprintf(place.folder, sizeof(place.folder), "/tmp/task-XXXXXX");
	if (mkdtemp(place.folder) == NULL)
		return -1;
	(void)snprintf(place.path, sizeof(place.path), "%s/tasks", place.folder);
	*state = &place;
	return 0;
}

static int teardown(void **state)
{
	const struct place *place = *state;

	tree_remove(place->folder);
	return 0;
}

static void put(const char *path, const char *text)
{
	struct err err;
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && fd_write_all(fd, text, strlen(text), &err));
}

#define LINE(id) "{\"id\": \"" id "\", " RUN "}"

static void a_file_is_read_line_by_line(void **state)
{
	static const char text[] =
		"# tasks\n" LINE("a") "\n\n  \r\n" LINE("b") "\r\n" LINE("c");
	const struct place *place = *state;
	struct fleet_tasks *tasks = NULL;
	char hash[HASH_HEX + 1];
	struct fleet_task task;
	struct err err = {0};

	put(place->path, text);
	if (!fleet_tasks_open(place->path, &tasks, &err))
		fail_msg("%s", err.text);
	assert_int_equal(fleet_tasks_count(tasks), 3);
	assert_string_equal(fleet_tasks_id(tasks, 0), "a");
	assert_string_equal(fleet_tasks_id(tasks, 2), "c");
	hash_text(STR(text), hash);
	assert_string_equal(fleet_tasks_hash(tasks), hash);
	for (size_t i = 0; i < 3; i++) {
		assert_true(fleet_tasks_get(tasks, i, &task, &err));
		assert_string_equal(task.id, fleet_tasks_id(tasks, i));
		fleet_task_fini(&task);
	}
	assert_int_equal(lseek(fleet_tasks_fd(tasks), 0, SEEK_END), sizeof(text) - 1);
	fleet_tasks_free(tasks);
}

static void tasks_of_one_lane_needs_and_priority_are_of_one_kind(void **state)
{
	static const struct {
		const char *more;
		size_t kind;
	} cases[] = {
		{"", 0},
		{", \"lane\": \"default\", \"priority\": 1", 0},
		{", \"lane\": \"slow\"", 1},
		{", \"priority\": 0", 2},
		{", \"needs\": {\"gpu\": \"a\"}", 3},
		{", \"needs\": {\"gpu\": \"b\"}", 4},
		{", \"lane\": \"slow\", \"attempts\": 9", 1},
		{", \"needs\": {\"gpu\": \"a\"}", 3},
	};
	const struct place *place = *state;
	struct fleet_tasks *tasks = NULL;
	struct err err = {0};
	struct buf text;

	buf_init(&text, 64 << 10);
	for (size_t i = 0; i < UNIT_COUNT(cases); i++)
		assert_true(buf_addf(&text, "{\"id\": \"t%zu\", " RUN "%s}\n", i,
				     cases[i].more));
	/* Those beyond the last kind are known to be so. */
	for (int i = 0; i < FLEET_TASK_KINDS; i++)
		assert_true(buf_addf(&text, "{\"id\": \"l%d\", " RUN ", \"lane\": \"l%d\"}\n",
				     i, i));
	put(place->path, text.data);
	buf_fini(&text);
	if (!fleet_tasks_open(place->path, &tasks, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < UNIT_COUNT(cases); i++)
		assert_int_equal(fleet_tasks_kind(tasks, i), cases[i].kind);
	for (size_t i = 0; i < FLEET_TASK_KINDS; i++)
		assert_int_equal(fleet_tasks_kind(tasks, UNIT_COUNT(cases) + i),
				 i + 5 < FLEET_TASK_KINDS ? i + 5 : FLEET_TASK_KINDS);
	fleet_tasks_free(tasks);
}

static void the_line_of_a_mistake_is_named(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{LINE("a") "\n\n" LINE("b") "\n{\"id\": \"c\"}\n", ":4: /: needs \"run\""},
		{"# x\n" LINE("a") "\n" LINE("b") "\n" LINE("a") "\n",
		 ":4: /id: \"a\" is that of line 2 as well"},
		{LINE("a") "\n{\n", ":2: "},
		{"\n# nothing\n", ": there is no task in it"},
		{"", ": there is no task in it"},
	};
	const struct place *place = *state;

	for (size_t i = 0; i < UNIT_COUNT(cases); i++) {
		struct fleet_tasks *tasks = NULL;
		struct err err = {0};

		put(place->path, cases[i].text);
		assert_false(fleet_tasks_open(place->path, &tasks, &err));
		if (strncmp(err.text, place->path, strlen(place->path)) != 0 ||
		    strncmp(err.text + strlen(place->path), cases[i].says,
			    strlen(cases[i].says)) != 0)
			fail_msg("%s", err.text);
	}
}

static void a_file_that_is_none_is_told(void **state)
{
	const struct place *place = *state;
	struct fleet_tasks *tasks = NULL;
	struct err err = {0};

	assert_false(fleet_tasks_open(place->path, &tasks, &err));
	assert_int_equal(err.code, ENOENT);
	assert_false(fleet_tasks_open(place->folder, &tasks, &err));
	assert_int_equal(err.code, EISDIR);
}

static void a_pipe_is_copied(void **state)
{
	struct fleet_tasks *tasks = NULL;
	struct fleet_task task;
	struct err err = {0};
	char path[32];
	int ends[2];

	(void)state;
	assert_true(fd_pipe(ends, &err));
	assert_true(fd_write_all(ends[1], LINE("a"), strlen(LINE("a")), &err));
	(void)close(ends[1]);
	(void)snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
	if (!fleet_tasks_open(path, &tasks, &err))
		fail_msg("%s", err.text);
	(void)close(ends[0]);
	assert_true(fleet_tasks_get(tasks, 0, &task, &err));
	assert_string_equal(task.id, "a");
	fleet_task_fini(&task);
	fleet_tasks_free(tasks);
}

static void a_line_that_was_changed_is_told(void **state)
{
	const struct place *place = *state;
	struct fleet_tasks *tasks = NULL;
	struct fleet_task task;
	struct err err = {0};

	put(place->path, LINE("a") "\n" LINE("b") "\n");
	assert_true(fleet_tasks_open(place->path, &tasks, &err));
	put(place->path, LINE("a") "\n" LINE("x") "\n");
	assert_true(fleet_tasks_get(tasks, 0, &task, &err));
	fleet_task_fini(&task);
	assert_false(fleet_tasks_get(tasks, 1, &task, &err));
	assert_int_equal(err.code, ESTALE);
	assert_non_null(strstr(err.text, "tasks:2: the file has been changed"));
	put(place->path, "");
	assert_false(fleet_tasks_get(tasks, 0, &task, &err));
	fleet_tasks_free(tasks);
}

/* Many lines, some of which end in pieces of the file, and one that is too long. */
static void many_lines_are_kept_by_their_places(void **state)
{
	enum { MANY = 5000 };
	const struct place *place = *state;
	struct fleet_tasks *tasks = NULL;
	struct fleet_task task;
	struct err err = {0};
	char id[32], longer[128];
	FILE *file = fopen(place->path, "we");

	assert_non_null(file);
	for (int i = 0; i < MANY; i++)
		(void)fprintf(file, "{\"id\": \"id-%d\",%*s " RUN "}\n", i, i % 97, "");
	assert_int_equal(fflush(file), 0);
	assert_true(fleet_tasks_open(place->path, &tasks, &err));
	assert_int_equal(fleet_tasks_count(tasks), MANY);
	for (int i = MANY - 1; i >= 0; i -= 7) {
		(void)snprintf(id, sizeof(id), "id-%d", i);
		assert_true(fleet_tasks_get(tasks, (size_t)i, &task, &err));
		assert_string_equal(task.id, id);
		fleet_task_fini(&task);
	}
	fleet_tasks_free(tasks);
	(void)fprintf(file, "{\"id\": \"id-4321\", " RUN "}\n");
	assert_int_equal(fflush(file), 0);
	assert_false(fleet_tasks_open(place->path, &tasks, &err));
	(void)snprintf(longer, sizeof(longer),
		       ":%d: /id: \"id-4321\" is that of line 4322 as well", MANY + 1);
	assert_string_equal(err.text + strlen(place->path), longer);
	(void)fclose(file);
	file = fopen(place->path, "we");
	assert_non_null(file);
	(void)fprintf(file, "%s\n{%*s", LINE("a"), FLEET_LINE_MAX, "");
	(void)fclose(file);
	assert_false(fleet_tasks_open(place->path, &tasks, &err));
	assert_string_equal(err.text + strlen(place->path),
			    ":2: a line has at most 204800 bytes");
}

/* Results. */

static void a_result_begins_with_its_members(void **state)
{
	auto_value struct value *result = fleet_result_new("j", "a", 2, FLEET_TIMED_OUT);
	static const char *const members[] = {"job",    "id",   "attempt", "status",
					      "worker", "host", "program"};
	void *at = value_first(result);

	(void)state;
	for (size_t i = 0; i < UNIT_COUNT(members); i++) {
		assert_non_null(at);
		assert_string_equal(value_key(at), members[i]);
		at = value_next(result, at);
	}
	assert_null(at);
	assert_int_equal(fleet_result_status(result), FLEET_TIMED_OUT);
	for (enum fleet_status status = 0; status < FLEET_STATUSES; status++)
		assert_int_equal(fleet_status_of(str_of(fleet_status_name(status))), status);
	assert_int_equal(fleet_status_of(STR("unknown")), FLEET_STATUSES);
	assert_int_equal(fleet_result_status(NULL), FLEET_STATUSES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_line_is_read),
		cmocka_unit_test(the_shortest_line_has_what_is_said_of_it),
		cmocka_unit_test(every_mistake_is_told_with_its_place),
		cmocka_unit_test(a_line_has_a_ceiling),
		cmocka_unit_test(names_have_dots_in_ids_only),
		cmocka_unit_test_setup_teardown(a_file_is_read_line_by_line, setup, teardown),
		cmocka_unit_test_setup_teardown(tasks_of_one_lane_needs_and_priority_are_of_one_kind,
						setup, teardown),
		cmocka_unit_test_setup_teardown(the_line_of_a_mistake_is_named, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_file_that_is_none_is_told, setup, teardown),
		cmocka_unit_test(a_pipe_is_copied),
		cmocka_unit_test_setup_teardown(a_line_that_was_changed_is_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(many_lines_are_kept_by_their_places,
						setup, teardown),
		cmocka_unit_test(a_result_begins_with_its_members),
	};

	return cmocka_run_group_tests_name("task", tests, NULL, NULL);
}
