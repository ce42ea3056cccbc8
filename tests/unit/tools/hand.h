/*
 * hand: a call made by hand in the test's own process: a fresh workspace in a temporary
 * directory, its roots opened, and execute() called directly. Not a mock: the same
 * files/files and process/ as in a worker.
 */
#pragma once
/* clang-format off: cmocka wants these first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
/* clang-format on */

#include "base/value.h"
#include "files/files.h"
#include "tool/call.h"

#include <stdbool.h>

struct hand {
	char base[64];      /* the temporary directory */
	char workspace[80]; /* base/ws, the writable root */
	char outside[80];   /* base/outside, in no root */
	struct files *files;
	struct call call;
	struct tool_result result;
	struct value *arguments;
	struct value *seen; /* what the session has read, kept between calls */
	char *folder;
	char temporary[96]; /* "TMPDIR=…" */
	const char *environment[8];
};

/* For cmocka's setup and teardown: *STATE is a struct hand. */
int hand_set_up(void **state);
int hand_tear_down(void **state);

/*
 * Run TOOL with the arguments JSON (valid, complete: there is no schema here). The result
 * is in hand->result.
 */
enum result_status hand_run(struct hand *hand, const struct tool *tool, const char *json,
			    ...) __attribute__((format(printf, 3, 4)));
/* The same with FD as its first descriptor. */
enum result_status hand_run_with(struct hand *hand, const struct tool *tool, int fd,
				 const char *json);
/* With a deadline so many milliseconds ahead. */
enum result_status hand_run_for(struct hand *hand, const struct tool *tool, int64_t ms,
				const char *json);

/* Files of the workspace. */
void hand_write(struct hand *hand, const char *path, const char *content, size_t size);
void hand_puts(struct hand *hand, const char *path, const char *content);
/* Malloc'ed; NULL when missing. */
char *hand_read(struct hand *hand, const char *path, size_t *size);
void hand_assert_file(struct hand *hand, const char *path, const char *content);
char *hand_path(struct hand *hand, const char *path); /* absolute; malloc'ed */

/* The result's text holds / does not hold FRAGMENT. */
void hand_assert_says(struct hand *hand, const char *fragment);
void hand_assert_says_not(struct hand *hand, const char *fragment);
void hand_assert_status(struct hand *hand, enum result_status status);
