/*
 * server: starts tests/fake/model_server.py for a test program, and asks it what it saw.
 * It ends with the program.
 */
#pragma once
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

struct server {
	int port;
	int stdin_fd; /* closing it ends the server */
	int pid;
};

bool server_begin(struct server *server);
void server_end(struct server *server);

/* All requests for the behaviour NAME so far, as a list, or how many there are. */
struct value *server_requests(const struct server *server, const char *name);
size_t server_count(const struct server *server, const char *name);
size_t server_connections(const struct server *server);
