/*
 * formats: the output of a run in the forms that Claude Code has for programs, so that a
 * program made for them reads ours (`--output-format`, docs/events.md). It is a sink of
 * events (tool/event.h) and writes lines:
 *
 *	text         the last words of the agent, and nothing else
 *	json         one `result`
 *	stream-json  `system` (init, compact_boundary), `assistant` and `user` as they
 *	             come, and one `result`
 *
 * Every run ends with its result, also one that could not begin. An amount of money that is
 * not known is null, never 0.
 */
#pragma once

#include "base/err.h"
#include "policy/policy.h"
#include "tool/event.h"
#include "tool/tool.h"

#include <stdbool.h>

/* For completion; in the order of the kinds. */
#define FORMATS_NAMES "text json stream-json"

enum formats_kind { FORMATS_NONE, FORMATS_TEXT, FORMATS_JSON, FORMATS_STREAM };

/* The kind that NAME means. ERR names those that there are. */
bool formats_parse(const char *name, enum formats_kind *kind, struct err *err);

struct formats;

struct formats *formats_new(enum formats_kind kind, int fd);
void formats_free(struct formats *formats); /* NULL is fine */

/* The tools that the beginning of the session lists: those of TOOLS that POLICY has. */
void formats_set_tools(struct formats *formats, const struct tool *const *tools,
		       const struct policy *policy);

struct event_sink formats_sink(struct formats *formats);

/*
 * The run has ended with the exit code CODE: write its end. Returns CODE, or another code
 * when not all was written; the complaint has been printed.
 */
int formats_end(struct formats *formats, int code);
