/*
 * lsp: language servers of a person's configuration (`lsp`), for one agent: what they find in the
 * files that the agent changes, and the tool `lsp` that asks them (docs/lsp.md).
 *
 * A server is started at the first change of a file that fits its patterns, in a cell with the
 * rights of the agent, and ended after ten minutes without use. Before a call that changes a file,
 * the server gets the text that is there (agent_hooks); after all calls of an answer it gets the
 * new one (agent_options.diagnoses), and has LSP_WAIT_MS to say what is wrong. Told are errors
 * only, of files that were changed, of the version that was sent, and only those that were not
 * there before. What comes later is told after the next answer, if the file is still the same.
 */
#pragma once

#include "agent/hooks.h"
#include "base/err.h"
#include "base/value.h"
#include "process/loop.h"
#include "session/session.h"
#include "tool/tool.h"

#include <stdbool.h>

struct lsp;

enum {
	LSP_WAIT_MS = 1500,
	LSP_LINES_MAX = 10,
	LSP_BYTES_MAX = 1500,
};

struct lsp_options {
	const struct value *settings; /* {NAME: {command, files, idle_s}}, checked by config.c */
	const char *workspace;        /* real, absolute */
	/* Open the session in whose cell the servers run, on LOOP; called once. */
	bool (*open_cell)(void *context, struct loop *loop, struct session **session,
			  struct err *err);
	void *context;
};

/* OPTIONS are copied; their members are borrowed for the life of the result. */
struct lsp *lsp_new(const struct lsp_options *options);
void lsp_free(struct lsp *lsp); /* NULL is fine */

/* The tool `lsp`; nobody carries it out before lsp_serve. */
const struct tool *lsp_tool(const struct lsp *lsp);
void lsp_serve(struct lsp *lsp);

/* The session of the agent, on whose loop all of this goes on, from now on until lsp_end. */
void lsp_begin(struct lsp *lsp, struct session *session);
/* End all servers; before the session of the agent is closed. NULL is fine. */
void lsp_end(struct lsp *lsp);

/* For agent_options. */
const struct tool *lsp_diagnoses(const struct lsp *lsp);
/* To be asked behind all others, when no one refuses a call. */
const struct agent_hooks *lsp_hooks(const struct lsp *lsp);
