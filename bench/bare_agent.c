/*
 * bare_agent PORT TURNS: what any agent must do and nothing else, over one connection of loopback:
 * send a request whose conversation grows by each turn, read the answer, and run `bash -c` by
 * posix_spawn. No JSON is read, nothing is written down: the floor under bench/agent.py.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
	/* What our own first request has, and what a turn adds to it. */
	FIRST_SIZE = 13 << 10,
	TURN_SIZE = 270,
	ANSWER_MAX = 64 << 10,
	HEAD_MAX = 256,
	COMMAND_MAX = 64,
};

static const char begins[] =
	"{\"model\":\"bench\",\"tools\":[{\"name\":\"bash\"}],\"text\":\"";

static bool send_whole(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		data += n;
		size -= (size_t)n;
	}
	return true;
}

/* One answer, by its Content-Length. */
static bool read_answer(int fd)
{
	static char answer[ANSWER_MAX];
	size_t have = 0, wanted = 0;

	while (wanted == 0 || have < wanted) {
		const char *end, *length;
		ssize_t n = recv(fd, answer + have, sizeof(answer) - 1 - have, 0);

		if (n <= 0)
			return false;
		have += (size_t)n;
		answer[have] = '\0';
		end = strstr(answer, "\r\n\r\n");
		length = strcasestr(answer, "content-length:");
		if (wanted == 0 && end != NULL && length != NULL && length < end)
			wanted = (size_t)(end + 4 - answer) +
				 strtoul(length + strlen("content-length:"), NULL, 10);
	}
	return true;
}

static bool run_command(int number)
{
	char command[COMMAND_MAX];
	char *argv[] = {(char[]){"bash"}, (char[]){"-c"}, command, NULL};
	int status = 0;
	pid_t pid;

	(void)snprintf(command, sizeof(command), "true %d", number);
	return posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) == 0 &&
	       waitpid(pid, &status, 0) == pid && status == 0;
}

static int connect_to(unsigned long port)
{
	const struct sockaddr_in here = {.sin_family = AF_INET,
					 .sin_port = htons((in_port_t)port),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return connect(fd, (const struct sockaddr *)&here, sizeof(here)) == 0 ? fd : -1;
}

/* All turns over FD, their requests made in BODY. */
static bool play(int fd, int turns, char *body)
{
	for (int turn = 0; turn <= turns; turn++) {
		const size_t size = FIRST_SIZE + (size_t)turn * TURN_SIZE;
		char head[HEAD_MAX];
		int length = snprintf(head, sizeof(head),
				      "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\n"
				      "Content-Length: %zu\r\n\r\n",
				      size);

		memset(body, 'x', size);
		memcpy(body, begins, sizeof(begins) - 1);
		body[size - 2] = '"';
		body[size - 1] = '}';
		if (!send_whole(fd, head, (size_t)length) || !send_whole(fd, body, size) ||
		    !read_answer(fd) || (turn < turns && !run_command(turn))) {
			(void)fprintf(stderr, "bare_agent: turn %d broke off\n", turn);
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	const int turns = argc == 3 ? (int)strtol(argv[2], NULL, 10) : -1;
	const int fd = turns >= 0 ? connect_to(strtoul(argv[1], NULL, 10)) : -1;
	char *body;
	bool ok;

	if (fd < 0) {
		(void)fprintf(stderr, "usage: bare_agent PORT TURNS, with a server there\n");
		return 2;
	}
	body = malloc(FIRST_SIZE + (size_t)(turns + 1) * TURN_SIZE);
	ok = body != NULL && play(fd, turns, body);
	free(body);
	return ok ? 0 : 1;
}
