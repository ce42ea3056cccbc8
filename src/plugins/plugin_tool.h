/*
 * plugin_tool: the internal tool that carries out the tools of scripts (tool.h: carrier). What
 * it is told besides the arguments (call->carried):
 *
 *   subcommand  "run", "preview", "schema"; "test" for a test of it, which is `file` then and has no
 *               arguments; or "error" by itself, with
 *   code        what it is told
 *   late_s      after so many seconds its run was ended; absent: it ended by itself
 *   file, copy  the script in the view; where there is no view (below L3), on the host
 *   mode, order, positional   plugin_arguments.h; the modes of toolboxes: `file` is started by
 *               itself, with TOOLBOX_ACTION for the subcommand, and has only "schema" and "run"
 *   env         texts, "NAME=value"; only for run, and error after it
 *   secrets     texts that are taken out of what is shown
 *   folder      where it starts, "schema" aside; absent: the workspace
 *   timeout_s, stream_stderr, python
 */
#pragma once
#include "tool/tool.h"

enum {
	PLUGIN_PREVIEW_MAX = 200, /* characters */
	/* After the script's own time: for `error`, and for ending what ignores TERM. */
	PLUGIN_AFTER_S = 5,
};

extern const struct tool plugin_tool;
