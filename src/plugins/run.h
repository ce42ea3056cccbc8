/*
 * run: descriptor 3 of a running script, one JSON object a line: content beyond
 * text, progress, words for the log, questions; and descriptor 4, by which answers come back
 * (docs/plugins.md). Bytes of a stranger: bounded like output; what is wrong is noted.
 *
 * A new kind of line on descriptor 3 belongs here, in docs/plugins.md and in
 * tests/fronts/plugin.case.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "plugins/describe.h"
#include "tool/call.h"
#include "tool/spill.h"
#include "tool/tool.h"

#include <stdbool.h>

struct plugin_channel {
	struct call *call;
	struct tool_result *result;
	const struct value *secrets;
	struct spill *spill;   /* keeps texts whole; NULL: nothing does */
	size_t text_shown;     /* bytes of texts so far */
	struct text_cut cut;   /* what they lost */
	int read_fd, write_fd; /* ours: the script's 3 and 4 */
	int script_fds[3];     /* its ends, then -1: for program_start.placed_fds */
	struct buf line;       /* begun */
	bool skips;            /* the line is too long: to its end nothing is kept */
	size_t messages, lines;
	struct value *questions; /* objects that were not asked yet */
	struct value *open_id;   /* of the one that is; or NULL */
	struct value *faults;    /* texts */
};

/* Texts that are too long for the answer are kept in SPILL, which outlives CHANNEL. */
bool plugin_channel_open(struct plugin_channel *channel, struct call *call,
			 struct tool_result *result, const struct value *secrets,
			 struct spill *spill, struct err *err);
/* Close the channel. Faults in the script's lines go into the result's details. */
void plugin_channel_close(struct plugin_channel *channel);

/*
 * Take one line of the script; public for tests. False: ERR says what is wrong with the
 * line.
 */
bool plugin_channel_line(struct plugin_channel *channel, struct str line, struct err *err);

/*
 * What a script asks on descriptor 3 (docs/plugins.md), as call_ask takes it: of a
 * person ("question"), of a model ("sampling"), for the client's folders ("roots"), or
 * several of these at once ("questions").
 */

/* LINE, whose type is one: *KIND is a constant, *REQUEST the caller's. */
bool run_question_read(const struct value *line, const char **kind,
		       struct value **request, struct err *err);

/*
 * The values that a configuration gives a script are taken out of what it prints, byte
 * for byte, also where one is cut between two pieces. Not a wall: a script that wants to
 * tell them otherwise can.
 */

/* Append SECRET to LIST, as it is and as JSON has it; one that is too short is left out. */
void run_redact_add(struct value *list, struct str secret);

/* Replace each of SECRETS (a list of texts, or NULL) in TEXT. */
void run_redact(const struct value *secrets, struct buf *text);

/*
 * A stream of output. HELD are its last bytes, when they may yet be the beginning of a
 * secret.
 */
struct plugin_redact_stream {
	const struct value *secrets;
	struct buf held;
};
void run_redact_begin(struct plugin_redact_stream *stream, const struct value *secrets);
/*
 * BYTES came: OUT (cleared first) becomes what may be shown now. With data NULL: the end, and
 * OUT is the rest.
 */
void run_redact_piece(struct plugin_redact_stream *stream, struct str bytes,
		      struct buf *out);
void run_redact_end(struct plugin_redact_stream *stream);

/*
 * The arguments of a call, which fit the plugin's JSON Schema, as its script wants them:
 * as flags, in positions, as JSON on standard input, or as lines there.
 */

/* The most bytes that the kernel passes in one argument, its NUL included (execve(2)). */
enum { PLUGIN_ARGUMENT_MAX = 128 << 10 };

struct plugin_argument_rules {
	enum plugin_mode mode;
	const struct value *order; /* names of the properties, in the schema's order */
	const struct value *positional; /* as plugin_schema has it */
};

/*
 * Append to ARGV (of at most MAX words, *COUNT used) what stands behind the subcommand; the
 * words live in ARENA. Mode json and toolboxes: INPUT becomes what is read. ERR names the argument that cannot
 * be passed.
 */
bool run_arguments_build(const struct plugin_argument_rules *rules,
			 const struct value *arguments, struct arena *arena,
			 const char **argv, size_t max, size_t *count, struct buf *input,
			 struct err *err);

/*
 * The internal tool that carries out the tools of scripts (tool.h: carrier). What
 * it is told besides the arguments (call->carried):
 *
 *   subcommand  "run", "preview", "schema"; "test" for a test of it, which is `file` then and has no
 *               arguments; or "error" by itself, with
 *   code        what it is told
 *   late_s      after so many seconds its run was ended; absent: it ended by itself
 *   file, copy  the script in the view; where there is no view (below L3), on the host
 *   mode, order, positional   run.h; the modes of toolboxes: `file` is started by
 *               itself, with TOOLBOX_ACTION for the subcommand, and has only "schema" and "run"
 *   env         texts, "NAME=value"; only for run, and error after it
 *   secrets     texts that are taken out of what is shown
 *   folder      where it starts, "schema" aside; absent: the workspace
 *   timeout_s, stream_stderr, python
 */

enum {
	PLUGIN_PREVIEW_MAX = 200, /* characters */
	/* After the script's own time: for `error`, and for ending what ignores TERM. */
	PLUGIN_AFTER_S = 5,
};

extern const struct tool plugin_tool;
