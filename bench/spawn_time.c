/*
 * spawn_time ROUNDS WARM_UP CODE COMMAND… [--next CODE COMMAND…]: run the commands in turn,
 * ROUNDS times each after WARM_UP unmeasured ones, and print the microseconds from the start
 * of each to its end, one line per round and one column per command. Taking turns is what
 * makes ratios of one run hold on a machine whose speed drifts. A command that does not exit
 * with its CODE ends the measurement. What the commands print goes to /dev/null.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* A table of more columns is no table. */
enum { COMMANDS_MAX = 16 };

struct command {
	char **argv;
	int code; /* expected */
};

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Microseconds, or -1 after a message. */
static int64_t run_once(const struct command *command,
			const posix_spawn_file_actions_t *actions)
{
	int64_t start = now_us();
	int status = 0;
	pid_t pid;
	int64_t end;
	int failed = posix_spawnp(&pid, command->argv[0], actions, NULL, command->argv,
				  environ);

	if (failed != 0) {
		(void)fprintf(stderr, "%s: %s\n", command->argv[0], strerror(failed));
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	end = now_us();
	if (!WIFEXITED(status) || WEXITSTATUS(status) != command->code) {
		(void)fprintf(stderr, "%s: ended with status 0x%x instead of exit code %d\n",
			      command->argv[0], (unsigned)status, command->code);
		return -1;
	}
	return end - start;
}

static bool number_of(const char *text, long *number)
{
	char *end;

	errno = 0;
	*number = strtol(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *number >= 0;
}

/* Cut ARGV at each "--next" into commands; their number, 0 when it is wrong. */
static size_t commands_of(char **argv, struct command commands[COMMANDS_MAX])
{
	size_t count = 0;

	while (*argv != NULL) {
		long code;

		if (count == COMMANDS_MAX || !number_of(argv[0], &code) ||
		    argv[1] == NULL || strcmp(argv[1], "--next") == 0)
			return 0;
		commands[count++] = (struct command){argv + 1, (int)code};
		argv += 2;
		while (*argv != NULL && strcmp(*argv, "--next") != 0)
			argv++;
		if (*argv != NULL)
			*argv++ = NULL;
	}
	return count;
}

int main(int argc, char **argv)
{
	struct command commands[COMMANDS_MAX];
	posix_spawn_file_actions_t actions;
	long rounds, warm_up;
	size_t count;

	count = argc < 5 ? 0 : commands_of(argv + 3, commands);
	if (count == 0 || !number_of(argv[1], &rounds) || !number_of(argv[2], &warm_up)) {
		(void)fprintf(stderr, "usage: spawn_time ROUNDS WARM_UP CODE COMMAND… "
				      "[--next CODE COMMAND…]\n");
		return 2;
	}
	if (posix_spawn_file_actions_init(&actions) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null",
					     O_WRONLY, 0) != 0 ||
	    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO) != 0)
		return EXIT_FAILURE;

	for (long round = -warm_up; round < rounds; round++) {
		for (size_t i = 0; i < count; i++) {
			int64_t us = run_once(&commands[i], &actions);

			if (us < 0)
				return EXIT_FAILURE;
			if (round >= 0)
				(void)printf("%" PRId64 "%c", us,
					     i + 1 < count ? '\t' : '\n');
		}
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return EXIT_SUCCESS;
}
