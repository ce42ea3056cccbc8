/*
 * calls GLOVEBOX WORKSPACE ROUNDS WARM_UP KIND WORDS… [--next KIND WORDS…]: time calls through
 * the runtime beside bare programs, in turn, ROUNDS times each after WARM_UP unmeasured ones:
 * one line per round, one column of microseconds per command.
 *
 *   bare PROGRAM…     posix_spawn and waitpid
 *   asked SERVER…     a server that is started once (walls_alone -w): a byte there, a byte back
 *   pipe PROGRAM…     the same, and read its output to the end
 *   exec PROGRAM…     the same program by the tool behind `glovebox exec`, in a warm cell
 *   tool NAME JSON    a tool, as an agent or a client calls it
 *   cold NAME JSON    the same in a cell that keeps workers ready, but nothing started in them
 *   again NAME JSON   as `tool`, without the rest before it: calls back to back
 *   lines PATH COUNT  the floor under read_file: open, read until COUNT lines are there, close
 *   swap PATH OLD NEW the floor under edit_file: read, look for OLD, write a new file with NEW
 *                     in its place beside it, fsync, rename
 *
 * Before every command but `again` there is the same rest, in which the cell makes its next
 * worker: in a conversation the model thinks meanwhile.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/value.h"
#include "policy/config.h"
#include "process/loop.h"
#include "session/session.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	COMMANDS_MAX = 24,
	REST_MS = 5, /* without news of the cell: its next worker is ready, the machine rests */
	REST_MOST_MS = 200,
	PIPE_BYTES = 256 << 10,
	READY_WORKERS = 2, /* as conversations have */
	SWAP_BYTES = 64 << 20,
};

enum kind { BARE, PIPE, ASKED, EXEC, TOOL, COLD, AGAIN, LINES, SWAP };

struct bench {
	struct session *prepared, *plain;
};

struct command {
	enum kind kind;
	char **words;
	struct value *arguments;
	pid_t server; /* of ASKED; 0: none */
	int asks, answers;
};

/* As a plain program would: one pipe, made larger, read in large pieces. */
static void pipe_drain(int fd)
{
	auto_free char *bytes = memory_alloc(PIPE_BYTES);

	(void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
	while (read(fd, bytes, PIPE_BYTES) > 0)
		;
	(void)close(fd);
}

static bool bare_run(char **argv, bool with_pipe)
{
	posix_spawn_file_actions_t actions;
	int ends[2] = {-1, -1};
	int status = 0;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&actions);
	for (int fd = 0; fd < 3; fd++)
		(void)posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
	if (with_pipe && pipe2(ends, O_CLOEXEC) < 0)
		return false;
	if (with_pipe)
		(void)posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	int failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (with_pipe) {
		(void)close(ends[1]);
		pipe_drain(ends[0]);
	}
	if (failed != 0)
		return false;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool server_start(struct command *command)
{
	posix_spawn_file_actions_t actions;
	int asks[2], answers[2];

	if (pipe2(asks, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
		return false;
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, asks[0], STDIN_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, answers[1], STDOUT_FILENO);
	int failed = posix_spawnp(&command->server, command->words[0], &actions, NULL,
				  command->words, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(asks[0]);
	(void)close(answers[1]);
	command->asks = asks[1];
	command->answers = answers[0];
	return failed == 0;
}

static void server_end(struct command *command)
{
	if (command->server == 0)
		return;
	(void)close(command->asks);
	(void)close(command->answers);
	(void)waitpid(command->server, NULL, 0);
}

static bool server_ask(const struct command *command)
{
	unsigned char code = 1;

	return write(command->asks, &code, 1) == 1 &&
	       read(command->answers, &code, 1) == 1 && code == 0;
}

static bool call_run(struct session *session, const struct command *command)
{
	struct request request = {
		.tool = command->kind == EXEC ? "exec" : command->words[0],
		.arguments = command->arguments,
		.by_front = true,
	};
	struct tool_result result;

	for (size_t i = 0; i < 3 && command->kind == EXEC; i++)
		request.fds[request.fd_count++] = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* Where it writes the paths, and that it has. */
	if (command->kind == TOOL && strcmp(request.tool, "list_paths") == 0) {
		request.fds[request.fd_count++] = memfd_create("paths", MFD_CLOEXEC);
		request.fds[request.fd_count++] = open("/dev/null", O_RDWR | O_CLOEXEC);
	}
	session_call(session, &request, &result);
	for (size_t i = 0; i < request.fd_count; i++)
		(void)close(request.fds[i]);
	bool ok = result.status == RESULT_DONE && result.exit_code <= 0;
	if (!ok)
		(void)fprintf(stderr, "calls: %s\n", result.text.data);
	tool_result_fini(&result);
	return ok;
}

/* Read until COUNT line feeds, as a plain program would. */
static bool lines_read(const char *path, size_t count)
{
	auto_free char *bytes = memory_alloc(PIPE_BYTES);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 0;

	while (fd >= 0 && count > 0 && (got = read(fd, bytes, PIPE_BYTES)) > 0) {
		const char *at = bytes, *end = bytes + got;

		while (count > 0 && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
			count--;
			at++;
		}
	}
	return fd >= 0 && got >= 0;
}

static bool text_swap(const char *path, const char *old, const char *new)
{
	struct buf text, name;
	struct err err;
	auto_close int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok;

	buf_init(&text, SWAP_BYTES);
	buf_init(&name, PATH_MAX);
	(void)buf_addf(&name, "%s.new", path);
	ok = fd_read_file(path, SWAP_BYTES, &text, &err);
	size_t at = ok ? str_find(buf_str(&text), str_of(old), 0) : (size_t)-1;
	auto_close int fd = open(name.data, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	ok = at != (size_t)-1 && fd >= 0 && fd_write_all(fd, text.data, at, &err) &&
	     fd_write_all(fd, new, strlen(new), &err) &&
	     fd_write_all(fd, text.data + at + strlen(old), text.size - at - strlen(old),
			  &err) &&
	     fsync(fd) == 0 && rename(name.data, path) == 0 && fsync(folder) == 0;
	buf_fini(&text);
	buf_fini(&name);
	return ok;
}

static bool floor_run(const struct command *command)
{
	char **words = command->words;

	return command->kind == LINES ? lines_read(words[0], strtoul(words[1], NULL, 10))
				      : text_swap(words[0], words[1], words[2]);
}

/* The loop turns, as it does in a front that waits for its model, until all is made. */
static void rest(struct session *session)
{
	int64_t latest = clock_now_ms() + REST_MOST_MS;
	int64_t until;

	do {
		until = clock_now_ms() + REST_MS;
		loop_turn(session_loop(session), until);
	} while (clock_now_ms() < until && until < latest);
}

/* Microseconds, -1 when it failed. */
static int64_t command_time(const struct bench *bench, const struct command *command)
{
	struct session *session = command->kind == COLD ? bench->plain : bench->prepared;

	if (command->kind != AGAIN)
		rest(session);
	int64_t began = clock_now_us();
	bool ok = command->kind == LINES || command->kind == SWAP ? floor_run(command)
		  : command->kind == ASKED                        ? server_ask(command)
		  : command->kind == BARE || command->kind == PIPE
			  ? bare_run(command->words, command->kind == PIPE)
			  : call_run(session, command);
	return ok ? clock_now_us() - began : -1;
}

static bool kind_read(const char *word, enum kind *kind)
{
	static const char *const names[] = {"bare", "pipe",  "asked", "exec", "tool",
					    "cold", "again", "lines", "swap"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(word, names[i]) == 0) {
			*kind = (enum kind)i;
			return true;
		}
	}
	return false;
}

static bool arguments_read(struct command *command)
{
	struct err err;

	if (command->words[0] == NULL)
		return false;
	if (command->kind == ASKED)
		return server_start(command);
	if (command->kind == EXEC) {
		struct value *list = value_new_array();
		for (char **word = command->words; *word != NULL; word++)
			value_append(list, value_new_text(*word));
		command->arguments = value_new_object();
		value_set(command->arguments, "argv", list);
	} else if (command->kind == LINES || command->kind == SWAP) {
		return command->words[1] != NULL &&
		       (command->kind == LINES || command->words[2] != NULL);
	} else if (command->kind != BARE && command->kind != PIPE) {
		return command->words[1] != NULL &&
		       value_parse(str_of(command->words[1]), 0, &command->arguments, &err);
	}
	return true;
}

static size_t commands_read(char **argv, struct command commands[COMMANDS_MAX])
{
	size_t count = 0;

	while (*argv != NULL) {
		struct command *command = &commands[count];
		if (count == COMMANDS_MAX || !kind_read(*argv, &command->kind))
			return 0;
		command->words = ++argv;
		while (*argv != NULL && strcmp(*argv, "--next") != 0)
			argv++;
		if (*argv != NULL)
			*argv++ = NULL;
		if (!arguments_read(command))
			return 0;
		count++;
	}
	return count;
}

static struct session *session_begin(const char *program, const char *workspace,
				     const struct tool *const *tools)
{
	auto_config struct config *config = NULL;
	auto_value struct value *entry = value_new_object();
	auto_value struct value *write = value_new_array();
	struct session *session = NULL;
	struct session_options options = {
		.workspace = workspace,
		.tools = tools,
		.program = program,
		.ready_workers = READY_WORKERS,
		.cancel_fd = -1,
	};
	struct err err;

	value_append(write, value_new_text("."));
	value_set(entry, "write", value_ref(write));
	if (!config_parse((struct str){0}, "config", &config, &err) ||
	    !config_override(config, NULL, entry, "policy", &err) ||
	    !config_policy(config, NULL, NULL, workspace, &options.take_policy, &err) ||
	    !session_open(&options, &session, &err))
		(void)fprintf(stderr, "calls: %s\n", err.text);
	return session;
}

int main(int argc, char **argv)
{
	struct command commands[COMMANDS_MAX] = {0};
	size_t count = argc < 6 ? 0 : commands_read(argv + 5, commands);
	int code = EXIT_SUCCESS;

	if (count == 0) {
		(void)fprintf(stderr, "usage: calls GLOVEBOX WORKSPACE ROUNDS WARM_UP "
				      "KIND WORDS… [--next KIND WORDS…]\n");
		return 2;
	}
	struct tool bash = bash_tool;
	bash.prepare = NULL;
	const struct tool *const unprepared[] = {&bash, NULL};
	struct bench bench = {
		.prepared = session_begin(argv[1], argv[2], builtin_tools),
		.plain = session_begin(argv[1], argv[2], unprepared),
	};
	if (bench.prepared == NULL || bench.plain == NULL)
		return EXIT_FAILURE;
	long rounds = strtol(argv[3], NULL, 10), warm_up = strtol(argv[4], NULL, 10);
	for (long round = -warm_up; round < rounds && code == EXIT_SUCCESS; round++) {
		for (size_t i = 0; i < count && code == EXIT_SUCCESS; i++) {
			int64_t us = command_time(&bench, &commands[i]);
			if (us < 0)
				code = EXIT_FAILURE;
			else if (round >= 0)
				(void)printf("%" PRId64 "%c", us,
					     i + 1 < count ? '\t' : '\n');
		}
	}
	session_close(bench.plain);
	session_close(bench.prepared);
	for (size_t i = 0; i < count; i++) {
		server_end(&commands[i]);
		value_free(commands[i].arguments);
	}
	return code;
}
