/*
 * bare_mcp FOLDER [--sync]: an MCP server over stdio that does the essential work of `read_file`,
 * `edit_file` and `bash` and nothing else: it takes its words out of the text, has no walls, no
 * policy, no hash, no undo, and believes every client. With --sync an edit reaches the disk, as
 * ours does. The floor under bench/mcp.py.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
	INPUT_MAX = 1 << 20,
	FILE_SIZE_MAX = 4 << 20,
	/* What a byte becomes at most: \u00xx. */
	ESCAPED = 6,
	/* Answers wait for each other up to here, while there are requests to read. */
	OUTPUT_FULL = 64 << 10,
	HEAD_MAX = 4096,
	OUTPUT_MAX = FILE_SIZE_MAX * ESCAPED + OUTPUT_FULL + HEAD_MAX,
	LANES = 16,
};

typedef unsigned char lanes __attribute__((vector_size(LANES)));

static char input[INPUT_MAX], text[FILE_SIZE_MAX + 1], *output;
static size_t output_size;
static bool syncs;

static _Noreturn void fail(const char *what)
{
	(void)fprintf(stderr, "bare_mcp: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void output_flush(void)
{
	for (size_t done = 0; done < output_size;) {
		ssize_t n = write(STDOUT_FILENO, output + done, output_size - done);

		if (n <= 0)
			exit(0);
		done += (size_t)n;
	}
	output_size = 0;
}

static void put(const char *data, size_t size)
{
	memcpy(output + output_size, data, size);
	output_size += size;
}

/* Whether LANES bytes from AT on stand in JSON as they are. */
static bool is_plain(const char *at)
{
	union {
		lanes bytes;
		unsigned long words[2];
	} special;

	memcpy(&special.bytes, at, LANES);
	special.bytes = (lanes)((special.bytes < ' ') | (special.bytes == '"') |
				(special.bytes == '\\'));
	return (special.words[0] | special.words[1]) == 0;
}

static void put_escaped(const char *data, size_t size)
{
	char *to = output + output_size;

	for (size_t i = 0; i < size;) {
		while (i + LANES <= size && is_plain(data + i)) {
			memcpy(to, data + i, LANES);
			to += LANES;
			i += LANES;
		}
		for (size_t end = i + LANES; i < size && i < end; i++) {
			const unsigned char byte = (unsigned char)data[i];

			if (byte == '\n') {
				*to++ = '\\';
				*to++ = 'n';
			} else if (byte < ' ') {
				(void)snprintf(to, ESCAPED + 1, "\\u%04x", byte);
				to += ESCAPED;
			} else {
				if (byte == '"' || byte == '\\')
					*to++ = '\\';
				*to++ = (char)byte;
			}
		}
	}
	output_size = (size_t)(to - output);
}

/* The text of KEY in LINE, made a C string in its place; escapes stay. */
static char *field(char *line, const char *key)
{
	char *at = strstr(line, key), *end = at ? strchr(at + strlen(key), '"') : NULL;

	if (end == NULL) {
		errno = EINVAL;
		fail(key);
	}
	*end = '\0';
	return at + strlen(key);
}

static size_t read_whole(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size <= FILE_SIZE_MAX)
		n = read(fd, text, (size_t)st.st_size);
	if (n < 0)
		fail(path);
	(void)close(fd);
	text[n] = '\0';
	return (size_t)n;
}

static void write_whole(int fd, const char *data, size_t size)
{
	if (write(fd, data, size) != (ssize_t)size)
		fail("write");
}

static void edit(const char *path, const char *old, const char *new)
{
	const char *const temp = ".bare_mcp.new";
	const size_t size = read_whole(path);
	const char *at = memmem(text, size, old, strlen(old));
	const int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	int folder;

	if (at == NULL || fd < 0)
		fail(path);
	write_whole(fd, text, (size_t)(at - text));
	write_whole(fd, new, strlen(new));
	at += strlen(old);
	write_whole(fd, at, size - (size_t)(at - text));
	if (syncs && fsync(fd) < 0)
		fail("fsync");
	(void)close(fd);
	if (rename(temp, path) < 0)
		fail("rename");
	if (!syncs)
		return;
	folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0 || fsync(folder) < 0)
		fail("fsync");
	(void)close(folder);
}

/* What COMMAND printed, in `text`. */
static size_t run(char *command)
{
	char *argv[] = {(char[]){"bash"}, (char[]){"-c"}, command, NULL};
	posix_spawn_file_actions_t actions;
	size_t size = 0;
	int fds[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		fail("pipe");
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
					       O_RDONLY, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	(void)posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0)
		fail(argv[0]);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(fds[1]);
	while ((n = read(fds[0], text + size, FILE_SIZE_MAX - size)) > 0)
		size += (size_t)n;
	(void)close(fds[0]);
	(void)waitpid(pid, NULL, 0);
	return size;
}

static void answer(char *line)
{
	static const char hello[] =
		"{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"tools\":{}},"
		"\"serverInfo\":{\"name\":\"bare\",\"version\":\"1\"}}}\n";
	static const char text_begins[] = "{\"content\":[{\"type\":\"text\",\"text\":\"",
			  text_ends[] = "\"}]}}\n";
	const char *id = strstr(line, "\"id\":");
	size_t size = 0;

	if (id == NULL)
		return;
	output_size += (size_t)snprintf(output + output_size, HEAD_MAX,
					"{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":",
					strtol(id + strlen("\"id\":"), NULL, 10));
	if (strstr(line, "\"initialize\"") != NULL) {
		put(hello, sizeof(hello) - 1);
		return;
	}
	/* From the last to the first, since each is ended in its place. */
	if (strstr(line, "\"edit_file\"") != NULL) {
		const char *new = field(line, "\"new\": \""),
			   *old = field(line, "\"old\": \"");

		edit(field(line, "\"path\": \""), old, new);
	} else if (strstr(line, "\"bash\"") != NULL) {
		size = run(field(line, "\"command\": \""));
	} else {
		size = read_whole(field(line, "\"path\": \""));
	}
	put(text_begins, sizeof(text_begins) - 1);
	put_escaped(text, size);
	put(text_ends, sizeof(text_ends) - 1);
}

int main(int argc, char **argv)
{
	size_t have = 0;
	ssize_t n;

	syncs = argc == 3 && strcmp(argv[2], "--sync") == 0;
	if (argc != (syncs ? 3 : 2)) {
		(void)fputs("usage: bare_mcp FOLDER [--sync]\n", stderr);
		return 2;
	}
	output = malloc(OUTPUT_MAX);
	if (output == NULL || chdir(argv[1]) < 0)
		fail(argv[1]);
	while ((n = read(STDIN_FILENO, input + have, sizeof(input) - have)) > 0) {
		char *line = input, *end;

		have += (size_t)n;
		while ((end = memchr(line, '\n', (size_t)(input + have - line))) != NULL) {
			*end = '\0';
			answer(line);
			if (output_size >= OUTPUT_FULL)
				output_flush();
			line = end + 1;
		}
		output_flush();
		have -= (size_t)(line - input);
		memmove(input, line, have);
	}
	if (n < 0)
		fail("read");
	if (have == 0)
		return 0;
	errno = have == sizeof(input) ? EMSGSIZE : EPROTO;
	fail("a request without an end");
}
