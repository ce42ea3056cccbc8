/*
 * returned: a port of this machine's loopback to which a login in the person's browser comes
 * back, for a program that may not listen itself. One request is taken; its query is for
 * somebody else to judge. The person may type the address instead.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* The path of the address, and the time until it is given up. */
#define RETURNED_PATH "/callback"
enum { RETURNED_S = 300, RETURNED_QUERY_MAX = 16 << 10 };

struct returned;

/* Listen on 127.0.0.1:PORT; 0: a free one. */
bool returned_open(uint16_t port, struct returned **returned, struct err *err);
void returned_close(struct returned *returned); /* NULL is fine */
uint16_t returned_port(const struct returned *returned);

/*
 * Wait for the request, or for a line at TYPED_FD (-1: none) with the address, and put its
 * query in QUERY. NAME: of the server, for the page that the person sees. The wait ends when
 * STOP_FD is readable (-1: none).
 */
bool returned_wait(struct returned *returned, const char *name, int typed_fd, int stop_fd,
		   struct buf *query, struct err *err);
