/* server: a child with a pipe each way, and GETs over a plain socket. */
#include "server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "places.h"

enum { PAGE_MAX = 16 << 20 };

static char *interpreter(void)
{
	static char name[] = "python3";

	return name;
}

bool server_begin(struct server *server)
{
	char path[4096], line[32] = "";
	char *argv[] = {interpreter(), path, NULL};
	posix_spawn_file_actions_t actions;
	int in[2], out[2];
	bool ok;
	size_t size = 0;

	(void)snprintf(path, sizeof(path), "%s", place_of_server);
	if (!fd_pipe(in, NULL) || !fd_pipe(out, NULL) ||
	    posix_spawn_file_actions_init(&actions) != 0)
		return false;
	ok = posix_spawn_file_actions_adddup2(&actions, in[0], 0) == 0 &&
	     posix_spawn_file_actions_adddup2(&actions, out[1], 1) == 0 &&
	     posix_spawnp(&server->pid, argv[0], &actions, NULL, argv, environ) == 0;
	(void)posix_spawn_file_actions_destroy(&actions);
	fd_close(&in[0]);
	fd_close(&out[1]);
	while (ok && size + 1 < sizeof(line) && !strchr(line, '\n') &&
	       read(out[0], line + size, 1) == 1)
		size++;
	fd_close(&out[0]);
	server->stdin_fd = in[1];
	server->port = (int)strtol(line, NULL, 10);
	return server->port > 0;
}

void server_end(struct server *server)
{
	fd_close(&server->stdin_fd);
	if (server->pid > 0)
		(void)waitpid(server->pid, NULL, 0);
}

/* The JSON at PATH of the server. */
static struct value *get(const struct server *server, const char *path)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)server->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct value *page = NULL;
	struct buf text;
	size_t body;

	buf_init(&text, PAGE_MAX);
	(void)buf_addf(&text, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		       path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    !fd_write_all(fd, text.data, text.size, NULL))
		abort();
	buf_clear(&text);
	if (!fd_read_all(fd, &text, "the fake server", NULL))
		abort();
	body = str_find(buf_str(&text), STR("\r\n\r\n"), 0);
	if (body == (size_t)-1 ||
	    !value_parse(str_part(buf_str(&text), body + 4, text.size), 0, &page, NULL))
		abort();
	buf_fini(&text);
	return page;
}

struct value *server_requests(const struct server *server, const char *name)
{
	auto_value struct value *all = get(server, "/requests");
	struct value *some = value_new_array();
	char path[256];

	(void)snprintf(path, sizeof(path), "/%s/v1/", name);
	for (size_t i = 0; i < value_count(all); i++) {
		struct value *request = value_item(all, i);

		if (str_starts(value_str(value_member(request, "path")), str_of(path)))
			value_append(some, value_ref(request));
	}
	return some;
}

size_t server_count(const struct server *server, const char *name)
{
	auto_value struct value *requests = server_requests(server, name);

	return value_count(requests);
}

size_t server_connections(const struct server *server)
{
	auto_value struct value *number = get(server, "/connections");

	return (size_t)value_integer(number);
}
