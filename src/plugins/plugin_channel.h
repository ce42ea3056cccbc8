/*
 * plugin_channel: descriptor 3 of a running script, one JSON object a line: content beyond
 * text, progress, words for the log, questions; and descriptor 4, by which answers come back
 * (docs/plugins.md). Bytes of a stranger: bounded like output; what is wrong is noted.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/text/text.h"
#include "base/value.h"
#include "tool/call.h"
#include "tool/spill.h"

#include <stdbool.h>

enum {
	PLUGIN_CHANNEL_MESSAGES = 10000,
	PLUGIN_CHANNEL_QUESTIONS = 8, /* that wait */
	PLUGIN_CHANNEL_FAULTS = 5,    /* of which are told */
	PLUGIN_CHANNEL_TEXT = 50000, /* bytes of all texts: they are part of the answer */
};

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
/* Read what the script wrote last; nothing of the script runs any more. */
void plugin_channel_end(struct plugin_channel *channel);
/* Take a piece of what is there. False: nothing is. */
bool plugin_channel_read(struct plugin_channel *channel);
/* Pass on the answer, if one has come, and ask the next question that waits. */
void plugin_channel_turn(struct plugin_channel *channel);
/* Close the channel. Faults in the script's lines go into the result's details. */
void plugin_channel_close(struct plugin_channel *channel);

/*
 * Take one line of the script; public for tests. False: ERR says what is wrong with the
 * line.
 */
bool plugin_channel_line(struct plugin_channel *channel, struct str line, struct err *err);
