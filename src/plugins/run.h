/*
 * run: carries out one subcommand of one script, in the worker. The front says in a
 * `struct run_order` what is to be started; the arguments of the call become the words and
 * the input of the script.
 *
 * Descriptor 3 of a running script is read as one JSON object a line: content beyond
 * text, progress, words for the log, questions. The answers are written to descriptor 4
 * (docs/plugins.md). The lines are not trusted: they are bounded like output, and errors
 * in them are reported in the result.
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
#include <stddef.h>

enum {
	PLUGIN_PREVIEW_MAX = 200, /* characters */
	/*
	 * Time after the script's own time: for `error`, and for killing a script that
	 * ignores SIGTERM.
	 */
	PLUGIN_AFTER_S = 5,
};

enum run_subcommand {
	RUN_SCHEMA,
	RUN_PREVIEW,
	RUN_ERROR,
	RUN_TEST, /* a test of the script, which is `file` then and has no arguments */
	RUN_WORK, /* `run`, and `error` when it has failed */
};

/*
 * One start of one script. The members are borrowed. The order crosses the wire as
 * call->carried of `plugin_tool`.
 */
struct run_order {
	enum run_subcommand subcommand;
	int code;      /* of RUN_ERROR */
	double late_s; /* of RUN_ERROR: the run was ended after so many seconds; 0: else */
	const char *id; /* of its schema; NULL: it was not asked yet */
	/* the script in the view, and where there is no view (below L3) on the host */
	const char *file, *copy;
	/*
	 * A toolbox is started by itself, with TOOLBOX_ACTION for the subcommand, and has
	 * only RUN_SCHEMA and RUN_WORK.
	 */
	enum plugin_dialect dialect;
	enum plugin_mode mode; /* how the script takes its arguments */
	const struct plugin_argument *arguments;
	size_t argument_count;
	/* texts "NAME=value", for RUN_WORK and RUN_ERROR only; NULL: none */
	const struct value *environment;
	/* texts that are taken out of the output of these two; NULL: none */
	const struct value *secrets;
	const char *folder; /* where it starts, except RUN_SCHEMA; NULL: the workspace */
	const char *python; /* NULL: the first python3 in PATH */
	double timeout_s;
	bool stream_stderr;
};

/* The internal tool that carries out the tools of scripts (tool.h: carrier). */
extern const struct tool plugin_tool;

/*
 * An internal tool that carries out ORDER with arguments that fit the JSON Schema
 * PARAMETERS (borrowed; NULL: the script takes no arguments). The caller frees its `carried`.
 */
struct tool run_order_tool(const struct run_order *order, const struct value *parameters);

/*
 * Read ORDER from CARRIED, from which its members are borrowed; its arguments live in
 * ARENA. False: CARRIED names no script.
 */
bool run_order_parse(const struct value *carried, struct arena *arena,
		     struct run_order *order);

/*
 * Append to ARGV (of at most MAX words, *COUNT used) the words behind the subcommand by
 * which ORDER's script gets ARGUMENTS; they live in ARENA. In the mode json and in
 * toolboxes INPUT becomes the script's standard input. ERR names the argument that cannot
 * be passed.
 */
bool run_arguments_build(const struct run_order *order, const struct value *arguments,
			 struct arena *arena, const char **argv, size_t max,
			 size_t *count, struct buf *input, struct err *err);

/*
 * A question that a script asks on descriptor 3, in the form that call_ask takes: of a
 * person ("question"), of a model ("sampling"), for the client's folders ("roots"), or
 * several of these at the same time ("questions").
 */
struct plugin_question {
	const char *kind;      /* a constant */
	struct value *request; /* owned, as the id */
	struct value *id;      /* any value */
};

/* LINE has the type of a question. The caller frees request and id when true. */
bool plugin_question_read(const struct value *line, struct plugin_question *question,
			  struct err *err);

enum { PLUGIN_QUESTIONS_MAX = 1 + 8 }; /* the open question, and those that wait */

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
	size_t messages, lines;
	/* the first one is open while the call awaits a reply */
	struct plugin_question questions[PLUGIN_QUESTIONS_MAX];
	size_t question_count;
	struct value *faults; /* texts */
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
