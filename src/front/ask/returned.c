/* returned: some connections of a browser, of which one has the request. */
#include "front/ask/returned.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	/* Browsers make connections that they never use. */
	CONNECTIONS_MAX = 8,
	READ_SIZE = 4096,
	PAGE_MAX = 2048,
	NAME_MAX_BYTES = 64,
};

struct returned {
	int listener;
	uint16_t port;
	int connections[CONNECTIONS_MAX];
	struct buf heads[CONNECTIONS_MAX];
	struct buf typed;
	bool typing; /* the person may still type */
};

bool returned_open(uint16_t port, struct returned **opened, struct err *err)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	auto_close int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct returned *returned;

	if (listener < 0 ||
	    bind(listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, CONNECTIONS_MAX) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) < 0)
		return err_set(err, errno, "127.0.0.1:%u: %s", port, strerror(errno));
	returned = memory_alloc(sizeof(*returned));
	returned->listener = fd_take(&listener);
	returned->port = ntohs(address.sin_port);
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		returned->connections[i] = -1;
		buf_init(&returned->heads[i], RETURNED_QUERY_MAX);
	}
	buf_init(&returned->typed, RETURNED_QUERY_MAX);
	*opened = returned;
	return true;
}

void returned_close(struct returned *returned)
{
	if (!returned)
		return;
	fd_close(&returned->listener);
	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		fd_close(&returned->connections[i]);
		buf_fini(&returned->heads[i]);
	}
	buf_fini(&returned->typed);
	free(returned);
}

uint16_t returned_port(const struct returned *returned)
{
	return returned->port;
}

/* Answer with a page that says TEXT, and close the connection. */
static void answer(int *fd, const char *status, const char *text)
{
	struct buf page;

	buf_init(&page, PAGE_MAX);
	(void)buf_addf(&page,
		       "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\n"
		       "Content-Length: %zu\r\nConnection: close\r\nCache-Control: no-store\r\n"
		       "X-Content-Type-Options: nosniff\r\n\r\n%s",
		       status, strlen(text), text);
	(void)send(*fd, page.data, page.size, MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_fini(&page);
	fd_close(fd);
}

/* The query of the request line in HEAD. False: it is another request. */
static bool query_of(struct str head, struct str *query)
{
	static const struct str begin = STR("GET " RETURNED_PATH "?");
	size_t end;

	if (!str_starts(head, begin))
		return false;
	end = str_find(head, STR(" HTTP/1."), 0);
	if (end == (size_t)-1 || end > str_find(head, STR("\r\n"), 0))
		return false;
	*query = str_part(head, begin.size, end - begin.size);
	return true;
}

/* Read from the connection INDEX. True: it had the request. */
static bool read_head(struct returned *returned, size_t index, const char *name,
		      struct buf *query)
{
	int *fd = &returned->connections[index];
	struct buf *head = &returned->heads[index], text, shown;
	char bytes[READ_SIZE];
	const ssize_t size = recv(*fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	struct str found;

	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (size <= 0 || !buf_add(head, bytes, (size_t)size)) {
		fd_close(fd);
		return false;
	}
	if (str_find(buf_str(head), STR("\r\n\r\n"), 0) == (size_t)-1)
		return false;
	if (!query_of(buf_str(head), &found)) {
		answer(fd, "404 Not Found", "Nothing is here.\n");
		return false;
	}
	(void)buf_addstr(query, found);
	buf_init(&text, PAGE_MAX / 2);
	buf_init(&shown, PAGE_MAX / 4);
	text_add_name(&shown, str_part(str_of(name), 0, NAME_MAX_BYTES));
	(void)buf_addf(&text,
		       "The login for the MCP server %s has come back to glovebox, which says in "
		       "its terminal whether it was taken. You may close this page.\n",
		       shown.data);
	answer(fd, "200 OK", text.data);
	buf_fini(&shown);
	buf_fini(&text);
	return true;
}

static void accept_one(struct returned *returned)
{
	auto_close int fd = accept4(returned->listener, NULL, NULL, SOCK_CLOEXEC);
	size_t free_one = 0;

	while (free_one < CONNECTIONS_MAX && returned->connections[free_one] >= 0)
		free_one++;
	/* The oldest connection without a request makes room. */
	if (free_one == CONNECTIONS_MAX) {
		free_one = 0;
		fd_close(&returned->connections[0]);
	}
	buf_clear(&returned->heads[free_one]);
	returned->connections[free_one] = fd_take(&fd);
}

/* Read what the person types. True: it is a whole line with an address. */
static bool read_typed(struct returned *returned, int fd, struct buf *query)
{
	char bytes[READ_SIZE];
	const ssize_t size = read(fd, bytes, sizeof(bytes));
	struct str rest = {bytes, size > 0 ? (size_t)size : 0};
	size_t mark;

	if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
		returned->typing = false;
	while (buf_take_line(&returned->typed, &rest)) {
		struct str line = str_trim(buf_str(&returned->typed));

		mark = str_find(line, STR("?"), 0);
		if (mark != (size_t)-1)
			(void)buf_addstr(query, str_part(line, mark + 1, line.size));
		buf_clear(&returned->typed);
		if (mark != (size_t)-1)
			return true;
	}
	return false;
}

bool returned_wait(struct returned *returned, const char *name, int typed_fd, int stop_fd,
		   struct buf *query, struct err *err)
{
	const int64_t deadline_ms = clock_deadline(RETURNED_S);

	returned->typing = typed_fd >= 0;
	while (clock_now_ms() < deadline_ms) {
		enum { LISTENER, TYPED, STOP, FIRST, ALL = FIRST + CONNECTIONS_MAX };
		struct pollfd slots[ALL] = {
			[LISTENER] = {.fd = returned->listener, .events = POLLIN},
			[TYPED] = {.fd = returned->typing ? typed_fd : -1, .events = POLLIN},
			[STOP] = {.fd = stop_fd, .events = POLLIN},
		};

		for (size_t i = 0; i < CONNECTIONS_MAX; i++)
			slots[FIRST + i] = (struct pollfd){.fd = returned->connections[i],
							   .events = POLLIN};
		if (poll(slots, ALL, clock_poll_timeout(deadline_ms)) < 0 && errno != EINTR)
			return err_set(err, errno, "waiting: %s", strerror(errno));
		if (slots[STOP].revents)
			return err_set(err, ECANCELED, "the login was stopped");
		if (slots[TYPED].revents && read_typed(returned, typed_fd, query))
			return true;
		for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
			if (slots[FIRST + i].revents && returned->connections[i] >= 0 &&
			    read_head(returned, i, name, query))
				return true;
		}
		if (slots[LISTENER].revents)
			accept_one(returned);
	}
	return err_set(err, ETIMEDOUT, "no login came back within %d seconds", RETURNED_S);
}
