/*
 * world: a folder, the session on it, and what its calls put out, for the tests of the library.
 * They see include/glovebox.h alone, as a program does that uses it.
 */
#pragma once
#include "glovebox.h"

/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

struct world {
	char folder[64];
	char error[GLOVEBOX_ERROR_MAX];
	char output[256];
	int begun[2]; /* a pipe: a byte for each fragment */
	struct glovebox_session *session;
};

/* For cmocka: a world in *STATE, without a session. */
int world_make(void **state);
int world_end(void **state);

struct glovebox_options world_options(struct world *world);
/* The session, with POLICY; the test fails where it cannot be. */
void world_open(struct world *world, const char *policy);
