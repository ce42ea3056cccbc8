/*
 * mcp_client ROUNDS WARM_UP REST --server WORD… [--server WORD…]… --column N CALLS WINDOW PARAMS…: what
 * calls of MCP servers over stdio cost. Each column is a tools/call with PARAMS (JSON) at the Nth
 * server, made CALLS times with WINDOW of them under way; CALLS 0: the server's start until it
 * has answered `initialize`, with a new one. Columns take turns, each after REST milliseconds, in
 * which a server ends what it does behind its answer. Prints a line of microseconds a round, tab
 * between columns. A call that fails ends the measurement.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	SERVERS_MAX = 8,
	COLUMNS_MAX = 64,
	REQUEST_MAX = 4096,
	/* A line of an answer: the largest file that is read, escaped. */
	ANSWER_MAX = 64 << 20,
	/* A server that is told to end has so many of these. */
	END_PAUSE_MS = 10,
	END_PAUSES = 100,
	/* Where the id of an answer stands: in its first bytes, or in its last. */
	EDGE = 64,
};

struct server {
	char **argv;
	pid_t pid;
	int in, out;
	char *line;
	size_t used, taken; /* bytes read; of these, of lines that were looked at */
	long next_id;
};

struct column {
	struct server *server;
	long calls, window;
	const char *params;
};

static _Noreturn void fail(const char *what, const char *detail)
{
	(void)fprintf(stderr, "mcp_client: %s: %s\n", what, detail);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void server_start(struct server *server)
{
	extern char **environ;
	posix_spawn_file_actions_t actions;
	int in[2], out[2], code;

	if (server->argv[0] == NULL)
		fail("usage", "--server without a program");
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		fail("pipe", strerror(errno));
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	(void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
					       O_WRONLY, 0);
	code = posix_spawnp(&server->pid, server->argv[0], &actions, NULL, server->argv,
			    environ);
	if (code != 0)
		fail(server->argv[0], strerror(code));
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(in[0]);
	(void)close(out[1]);
	server->in = in[1];
	server->out = out[0];
	server->used = server->taken = 0;
	server->next_id = 1;
}

/* Not every peer ends with its input. */
static void server_end(struct server *server)
{
	const struct timespec pause = {.tv_nsec = END_PAUSE_MS * 1000000L};

	(void)close(server->in);
	(void)close(server->out);
	for (int i = 0; i < END_PAUSES; i++) {
		if (waitpid(server->pid, NULL, WNOHANG) != 0)
			return;
		(void)nanosleep(&pause, NULL);
	}
	(void)kill(server->pid, SIGKILL);
	(void)waitpid(server->pid, NULL, 0);
}

static void server_send(struct server *server, const char *text)
{
	size_t size = strlen(text);

	while (size > 0) {
		ssize_t written = write(server->in, text, size);

		if (written < 0)
			fail(server->argv[0], strerror(errno));
		text += written;
		size -= (size_t)written;
	}
}

/* The next line; valid until the next call. */
static const char *server_line(struct server *server, size_t *size)
{
	size_t looked = 0;

	memmove(server->line, server->line + server->taken, server->used - server->taken);
	server->used -= server->taken;
	server->taken = 0;
	for (;;) {
		const char *end =
			memchr(server->line + looked, '\n', server->used - looked);
		ssize_t got;

		if (end) {
			*size = (size_t)(end - server->line);
			server->taken = *size + 1;
			return server->line;
		}
		looked = server->used;
		if (server->used == ANSWER_MAX)
			fail(server->argv[0], "a line without an end");
		got = read(server->out, server->line + server->used,
			   ANSWER_MAX - server->used);
		if (got <= 0)
			fail(server->argv[0], got < 0 ? strerror(errno) : "it has ended");
		server->used += (size_t)got;
	}
}

static bool holds(const char *line, size_t size, const char *text)
{
	return memmem(line, size, text, strlen(text)) != NULL;
}

/* The id of an answer; 0: it is none. */
static long answer_id(const char *line, size_t size)
{
	static const char key[] = "\"id\":";
	size_t edge = size < EDGE ? size : EDGE;
	const char *at = memmem(line, edge, key, strlen(key));

	if (!at)
		at = memmem(line + size - edge, edge, key, strlen(key));
	return at ? strtol(at + strlen(key), NULL, 10) : 0;
}

static void server_answer(struct server *server, bool strict)
{
	size_t size;
	const char *line;

	do {
		line = server_line(server, &size);
	} while (answer_id(line, size) == 0);
	if (strict &&
	    (holds(line, size, "\"isError\":true") || holds(line, size, "\"error\":{"))) {
		server->line[size < 1000 ? size : 1000] = '\0';
		fail(server->argv[0], line);
	}
}

static void server_ask(struct server *server, const char *method, const char *params)
{
	char text[REQUEST_MAX];

	(void)snprintf(text, sizeof(text),
		       "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"%s\",\"params\":%s}\n",
		       server->next_id++, method, params);
	server_send(server, text);
}

static void server_open(struct server *server)
{
	server_start(server);
	server_ask(server, "initialize",
		   "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":"
		   "{\"name\":\"bench\",\"version\":\"1\"}}");
	server_answer(server, true);
}

static void server_go(struct server *server)
{
	server_send(server,
		    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
}

/* Nanoseconds. */
static int64_t play(const struct column *column, bool strict)
{
	struct server *server = column->server;
	int64_t began = now_ns(), ended;
	long sent = 0;

	if (column->calls == 0) {
		struct server one = {.argv = server->argv, .line = malloc(ANSWER_MAX)};

		server_open(&one);
		ended = now_ns();
		server_end(&one);
		free(one.line);
		return ended - began;
	}
	for (long done = 0; done < column->calls; done++) {
		while (sent < column->calls && sent - done < column->window) {
			server_ask(server, "tools/call", column->params);
			sent++;
		}
		server_answer(server, strict);
	}
	return now_ns() - began;
}

static void rest(long ms)
{
	const struct timespec pause = {ms / 1000, ms % 1000 * 1000000L};

	if (ms > 0)
		(void)nanosleep(&pause, NULL);
}

static long number(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end != '\0' || value < 0)
		fail("not a number", text);
	return value;
}

static bool is_option(const char *word)
{
	return strcmp(word, "--server") == 0 || strcmp(word, "--column") == 0;
}

int main(int argc, char **argv)
{
	struct server servers[SERVERS_MAX] = {0};
	struct column columns[COLUMNS_MAX];
	size_t server_count = 0, column_count = 0;
	long rounds = argc > 3 ? number(argv[1]) : 0,
	     warm_up = argc > 3 ? number(argv[2]) : 0,
	     rest_ms = argc > 3 ? number(argv[3]) : 0;

	for (int i = 4; i < argc;) {
		if (strcmp(argv[i], "--server") == 0 && server_count < SERVERS_MAX) {
			servers[server_count].argv = &argv[i + 1];
			servers[server_count++].line = malloc(ANSWER_MAX);
			argv[i++] = NULL;
			while (i < argc && !is_option(argv[i]))
				i++;
		} else if (strcmp(argv[i], "--column") == 0 && i + 4 < argc &&
			   column_count < COLUMNS_MAX &&
			   number(argv[i + 1]) < (long)server_count) {
			columns[column_count++] =
				(struct column){&servers[number(argv[i + 1])],
						number(argv[i + 2]), number(argv[i + 3]),
						argv[i + 4]};
			argv[i] = NULL;
			i += 5;
		} else {
			fail("usage", argv[i]);
		}
	}
	for (size_t i = 0; i < server_count; i++) {
		server_open(&servers[i]);
		server_go(&servers[i]);
	}
	for (long round = -warm_up; round < rounds; round++)
		for (size_t i = 0; i < column_count; i++) {
			rest(rest_ms);
			int64_t ns = play(&columns[i], round < 0);

			if (round >= 0)
				(void)printf("%lld%c", (long long)(ns / 1000),
					     i + 1 < column_count ? '\t' : '\n');
		}
	for (size_t i = 0; i < server_count; i++) {
		server_end(&servers[i]);
		free(servers[i].line);
	}
	return 0;
}
