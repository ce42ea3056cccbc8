/*
 * burst COUNT COMMAND [GLOVEBOX WORKSPACE]: start COUNT times `sh -c COMMAND` at once and wait
 * for all: bare, or as calls of one cell. Prints the microseconds from the first start to the
 * last end.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/value.h"
#include "policy/config.h"
#include "session/session.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool all_bare(size_t count, const char *command)
{
	char *const argv[] = {(char[]){"sh"}, (char[]){"-c"}, (char *)(uintptr_t)command,
			      NULL};
	posix_spawn_file_actions_t actions;
	bool ok = true;
	int status;

	(void)posix_spawn_file_actions_init(&actions);
	for (int fd = 0; fd < 3; fd++)
		(void)posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	for (size_t i = 0; i < count; i++) {
		pid_t pid;
		ok = ok && posix_spawnp(&pid, "sh", &actions, NULL, argv, environ) == 0;
	}
	for (size_t i = 0; i < count && ok; i++) {
		while (wait(&status) < 0 && errno == EINTR)
			;
		ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return ok;
}

static struct session *session_begin(const char *program, const char *workspace)
{
	auto_config struct config *config = NULL;
	struct session *session = NULL;
	struct session_options options = {
		.workspace = workspace,
		.tools = builtin_tools,
		.program = program,
		.ready_workers = 2,
		.cancel_fd = -1,
	};
	struct err err;

	if (!config_parse((struct str){0}, "config", &config, &err) ||
	    !config_policy(config, NULL, NULL, workspace, &options.take_policy, &err) ||
	    !session_open(&options, &session, &err))
		(void)fprintf(stderr, "burst: %s\n", err.text);
	return session;
}

static bool all_in_cell(struct session *session, size_t count, const char *command)
{
	auto_free struct running **calls = memory_array(count, sizeof(struct running *));
	auto_value struct value *arguments = value_new_object();
	struct value *argv = value_new_array();
	bool ok = true;

	value_append(argv, value_new_text("sh"));
	value_append(argv, value_new_text("-c"));
	value_append(argv, value_new_text(command));
	value_set(arguments, "argv", argv);
	for (size_t i = 0; i < count; i++) {
		const struct request request = {.tool = "exec",
						.arguments = arguments,
						.by_front = true};
		calls[i] = session_start(session, &request, NULL, NULL);
	}
	for (size_t i = 0; i < count; i++) {
		while (!running_is_done(calls[i]))
			loop_turn(session_loop(session), CLOCK_NEVER);
		const struct tool_result *result = running_result(calls[i]);
		if (ok && (result->status != RESULT_DONE || result->exit_code != 0)) {
			(void)fprintf(stderr, "burst: %s\n", result->text.data);
			ok = false;
		}
	}
	for (size_t i = 0; i < count; i++)
		running_free(calls[i]);
	return ok;
}

int main(int argc, char **argv)
{
	size_t count = argc == 3 || argc == 5 ? strtoul(argv[1], NULL, 10) : 0;
	struct session *session = NULL;

	if (count == 0) {
		(void)fprintf(stderr, "usage: burst COUNT COMMAND [GLOVEBOX WORKSPACE]\n");
		return 2;
	}
	if (argc == 5) {
		session = session_begin(argv[3], argv[4]);
		if (session == NULL)
			return EXIT_FAILURE;
	}
	int64_t began = clock_now_us();
	bool ok = session != NULL ? all_in_cell(session, count, argv[2])
				  : all_bare(count, argv[2]);
	(void)printf("%" PRId64 "\n", clock_now_us() - began);
	session_close(session);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
