/*
 * plugin_cell: the cell that scripts are looked at from, made by the first look. It reads what the
 * agent may, and does nothing else. Front and library look through it alike.
 */
#pragma once
#include "base/err.h"
#include "base/value.h"
#include "policy/config.h"
#include "tool/tool.h"
#include "view/shape.h"

#include <stdbool.h>

struct plugin_cell {
	/* borrowed */
	const char *workspace;           /* real */
	const char *program;             /* that becomes a cell; NULL: this one */
	const struct tool *const *tools; /* the built-in ones */
	int minimum_level;               /* as session_options have it */
	/* owned */
	struct policy *take_policy; /* moved by the first look */
	struct session *session;    /* or NULL: nothing was looked at yet */
};

/*
 * One look at a script: the made tool (session.h), its arguments, and the files shown for
 * it.
 */
struct plugin_look {
	const struct tool *tool;
	const struct value *arguments;
	const struct shape_shown *shown;
	const int *fds;   /* three for the front's own exec; or NULL */
	double timeout_s; /* 0: the tool's own */
};

/*
 * Make POLICY, the rights of that cell: those of AGENT, but only to read; else as
 * config_policy. CONFIG must not be asked about AGENT afterwards, because its entry is
 * overridden.
 */
bool plugin_cell_policy(struct config *config, const struct value *shipped,
			const char *agent, const char *workspace, struct policy **policy,
			struct err *err);

/*
 * One look; the first makes the cell, and false with ERR when it cannot. RESULT, which the caller
 * has initialised and frees, becomes what the tool said.
 */
bool plugin_cell_look(struct plugin_cell *cell, const struct plugin_look *look,
		      struct tool_result *result, struct err *err);
/* Nothing is looked at any more; also of one that was never looked from. */
void plugin_cell_end(struct plugin_cell *cell);
