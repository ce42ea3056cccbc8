/* opener: asks for one address from inside the cell, and carries what comes back. */

#include "front/inside/opener.h"

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/str.h"
#include "front/ask/callback.h"
#include "front/ask/desk.h"
#include "policy/network.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	OPENED = 0,
	WRONG_ARGUMENTS = 1,
	NOT_OPENED = 4,
	PIECE = 16 << 10,
	LINE_MAX_SIZE = ERR_TEXT_MAX + 64,
};

static int ask_connect(void)
{
	const struct sockaddr_un place = {.sun_family = AF_UNIX, .sun_path = SHAPE_ASK};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)&place, sizeof(place)) < 0)
		return -1;
	return fd_take(&fd);
}

/* Carries the connections of the browser to a port of the cell. */

static int port_connect(uint16_t port)
{
	const struct sockaddr_in four = {.sin_family = AF_INET,
					 .sin_port = htons(port),
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 six = {.sin6_family = AF_INET6,
					 .sin6_port = htons(port),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&four, sizeof(four)) == 0)
		return fd_take(&fd);
	fd_close(&fd);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&six, sizeof(six)) == 0)
		return fd_take(&fd);
	return -1;
}

/* Pass what FROM has to TO. False at its end, which TO is told. */
static bool pass(int from, int to)
{
	char piece[PIECE];
	const ssize_t size = read(from, piece, sizeof(piece));

	if (size > 0 && fd_write_all(to, piece, (size_t)size, NULL))
		return true;
	(void)shutdown(to, SHUT_WR);
	return false;
}

static void carry(int front, int port)
{
	struct pollfd ends[] = {{.fd = front, .events = POLLIN},
				{.fd = port, .events = POLLIN}};

	while ((ends[0].fd >= 0 || ends[1].fd >= 0) && poll(ends, 2, -1) >= 0) {
		if (ends[0].fd >= 0 && ends[0].revents != 0 && !pass(front, port))
			ends[0].fd = -1;
		if (ends[1].fd >= 0 && ends[1].revents != 0 && !pass(port, front))
			ends[1].fd = -1;
	}
}

/*
 * Offer connections for PORT one after the other, until the front closes the port. Each one
 * that is used is carried by a copy of this process.
 */
static void serve(uint16_t port, const char *token)
{
	char line[CALLBACK_TOKEN + 8];
	char first;

	(void)snprintf(line, sizeof(line), "back %s\n", token);
	for (;;) {
		auto_close int front = ask_connect();

		if (front < 0 || !fd_write_all(front, line, strlen(line), NULL) ||
		    recv(front, &first, 1, MSG_PEEK) <= 0)
			return;
		if (fork() == 0) {
			auto_close int end = port_connect(port);

			if (end >= 0)
				carry(front, end);
			_exit(0);
		}
	}
}

/* Leave a copy of this process that serves PORT. The caller need not wait for it. */
static void stay(uint16_t port, const char *token)
{
	const pid_t pid = fork();

	if (pid != 0)
		return;
	(void)setsid();
	(void)signal(SIGCHLD, SIG_IGN);
	/* Nobody must wait for the end of a pipe that this process holds. */
	(void)syscall(SYS_close_range, 0U, ~0U, 0U);
	(void)open("/dev/null", O_RDWR);
	(void)!dup(STDIN_FILENO);
	(void)!dup(STDIN_FILENO);
	serve(port, token);
	_exit(0);
}

/* Asks for an address. */

static int not_opened(const char *name, const char *sentence, const char *address)
{
	(void)fprintf(stderr, "%s: %s. Open it yourself:\n%s\n", name, sentence, address);
	return NOT_OPENED;
}

/* Read the answer, a line, into LINE without its end. False: there is none. */
static bool read_line(int fd, char line[LINE_MAX_SIZE])
{
	size_t size = 0;
	ssize_t n;

	do {
		n = read(fd, line + size, LINE_MAX_SIZE - 1 - size);
		if (n < 0 && errno == EINTR)
			continue;
		size += n > 0 ? (size_t)n : 0;
	} while (n != 0 && size < LINE_MAX_SIZE - 1 && (n > 0 || errno == EINTR));
	line[size] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return size > 0;
}

static int obey(const char *name, const char *line, const char *address)
{
	struct str rest = str_of(line), word, port, token;
	uint16_t number;

	if (!str_next_word(&rest, &word) || !str_is(word, "yes"))
		return not_opened(name, strncmp(line, "no ", 3) == 0 ? line + 3 : line,
				  address);
	if (str_next_word(&rest, &port) && str_next_word(&rest, &token) &&
	    token.size <= CALLBACK_TOKEN && network_parse_port(port, &number))
		stay(number, token.data);
	return OPENED;
}

static int ask(const char *name, const char *address)
{
	char line[LINE_MAX_SIZE];
	auto_close int fd = ask_connect();

	if (fd < 0)
		return not_opened(name, "nobody outside of this cell opens addresses",
				  address);
	if (strlen(address) >= DESK_LINE_MAX - sizeof("open ") ||
	    strchr(address, '\n') != NULL)
		return not_opened(name, "the address is too long, or has several lines",
				  address);
	if (!fd_write_all(fd, "open ", 5, NULL) ||
	    !fd_write_all(fd, address, strlen(address), NULL) ||
	    !fd_write_all(fd, "\n", 1, NULL) || !read_line(fd, line))
		return not_opened(name, "the front gave no answer", address);
	return obey(name, line, address);
}

bool opener_program(int argc, char **argv, int *code)
{
	const char *name = argc > 0 ? path_base_name(argv[0]) : "";

	if (name[0] == '\0' || !str_among(SHAPE_OPENER_NAMES, str_of(name)))
		return false;
	if (argc == 2 && argv[1][0] != '-') {
		*code = ask(name, argv[1]);
		return true;
	}
	(void)fprintf(argc == 2 && strcmp(argv[1], "--help") == 0 ? stdout : stderr,
		      "usage: %s ADDRESS\n\nAsks the person at the terminal whether "
		      "ADDRESS may be opened in the browser\noutside.\n",
		      name);
	*code = argc == 2 && strcmp(argv[1], "--help") == 0 ? OPENED : WRONG_ARGUMENTS;
	return true;
}
