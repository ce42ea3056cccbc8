/*
 * run: reads descriptor 3 of a running script, one JSON object a line: content beyond
 * text, progress, words for the log, questions. Writes the answers to descriptor 4
 * (docs/plugins.md). The lines are not trusted: they are bounded like output, and
 * errors in them are reported in the result.
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
#include "tool/tool.h"

#include <stdbool.h>

struct plugin_channel {
	struct call *call;
	struct tool_result *result;
	const struct value *secrets;
	struct spill *spill;   /* keeps texts whole; NULL: they are only cut */
	size_t text_shown;     /* bytes of texts so far */
	struct text_cut cut;   /* how much the texts lost */
	int read_fd, write_fd; /* our ends of the script's descriptors 3 and 4 */
	/* the script's ends, then -1: for program_start.placed_fds */
	int script_fds[3];
	struct buf line; /* an incomplete line */
	bool skips;      /* the line is too long and is skipped to its end */
	size_t messages, lines;
	struct value *questions; /* questions that were not asked yet, as objects */
	struct value *open_id;   /* the id of the open question; or NULL */
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
 * A question that a script asks on descriptor 3 (docs/plugins.md), in the form that
 * call_ask takes: of a person ("question"), of a model ("sampling"), for the client's
 * folders ("roots"), or several of these at the same time ("questions").
 */

/* LINE has the type of a question. *KIND is a constant; the caller frees *REQUEST. */
bool run_question_read(const struct value *line, const char **kind,
		       struct value **request, struct err *err);

/*
 * The values that a configuration gives a script are taken out of the script's output,
 * byte for byte, also where a value is cut between two pieces. This is no wall: a script
 * that wants to tell the values in another form can do so.
 */

/*
 * Append SECRET to LIST, plain and in the form of JSON. A secret that is too short is
 * left out.
 */
void run_redact_add(struct value *list, struct str secret);

/* Replace each of SECRETS (a list of texts, or NULL) in TEXT. */
void run_redact(const struct value *secrets, struct buf *text);

/*
 * A stream of output. HELD has its last bytes when they may be the beginning of a secret.
 */
struct plugin_redact_stream {
	const struct value *secrets;
	struct buf held;
};
void run_redact_begin(struct plugin_redact_stream *stream, const struct value *secrets);
/*
 * BYTES have arrived: OUT (cleared first) gets the bytes that may be shown now. When the
 * data of BYTES is NULL, the stream has ended, and OUT gets the rest.
 */
void run_redact_piece(struct plugin_redact_stream *stream, struct str bytes,
		      struct buf *out);
void run_redact_end(struct plugin_redact_stream *stream);

/*
 * Passes the arguments of a call, which fit the plugin's JSON Schema, to its script: as
 * flags, in positions, as JSON on standard input, or as lines there.
 */

/* The most bytes that the kernel passes in one argument, its NUL included (execve(2)). */
enum { PLUGIN_ARGUMENT_MAX = 128 << 10 };

struct plugin_argument_rules {
	enum plugin_mode mode;
	const struct value *order; /* names of the properties, in the schema's order */
	const struct value *positional; /* in the form of plugin_schema */
};

/*
 * Append to ARGV (of at most MAX words, *COUNT used) the words behind the subcommand;
 * they live in ARENA. In the mode json and in toolboxes INPUT becomes the script's
 * standard input. ERR names the argument that cannot be passed.
 */
bool run_arguments_build(const struct plugin_argument_rules *rules,
			 const struct value *arguments, struct arena *arena,
			 const char **argv, size_t max, size_t *count, struct buf *input,
			 struct err *err);

/*
 * The internal tool that carries out the tools of scripts (tool.h: carrier). Beside the
 * arguments it gets an object (call->carried) with these members:
 *
 *   subcommand  "run", "preview", "schema"; "test" for a test of the script, which is
 *               `file` then and has no arguments; or "error" by itself, with
 *   code        the error code for it
 *   late_s      the run was ended after so many seconds; absent: it ended by itself
 *   file, copy  the script in the view; where there is no view (below L3), on the host
 *   mode, order, positional   how the script takes its arguments; in the modes of
 *               toolboxes `file` is started by itself, with TOOLBOX_ACTION for the
 *               subcommand, and has only "schema" and "run"
 *   env         texts, "NAME=value"; only for run, and error after it
 *   secrets     texts that are taken out of the output
 *   folder      where it starts, except "schema"; absent: the workspace
 *   timeout_s, stream_stderr, python
 */

enum {
	PLUGIN_PREVIEW_MAX = 200, /* characters */
	/*
	 * Time after the script's own time: for `error`, and for killing a script that
	 * ignores SIGTERM.
	 */
	PLUGIN_AFTER_S = 5,
};

extern const struct tool plugin_tool;
