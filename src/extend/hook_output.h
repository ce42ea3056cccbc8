/*
 * hook_output: what one hook said by its exit code and what it printed. 0: standard output is
 * a JSON answer when it begins with "{", and else a text, which joins the conversation at a
 * prompt and at the begin of a session. 2: it refuses, with the reason on standard error, and
 * standard output is not read. Neither stream is ever taken for the other one. Any
 * other code is a failure of the hook, of which the person is told.
 *
 * All of it is text of a program, and none of it is trusted: an answer can refuse, ask, change
 * arguments (which are judged again) and add words, and a member of the wrong kind is a failure.
 */
#pragma once

#include "agent/hooks.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/value.h"
#include "extend/hooks.h"

#include <stdbool.h>

enum hook_ending {
	HOOK_ENDED,     /* by itself */
	HOOK_FAILED,    /* it did not start; `why` says the reason */
	HOOK_TIMED_OUT, /* it was ended */
	HOOK_CANCELLED, /* the person interrupted */
};

/* The members are borrowed. */
struct hook_output {
	enum hook_ending ending;
	int exit_code; /* -1: a signal ended it */
	int signal;
	struct str out, error;
	bool cut;       /* more was printed than is kept */
	struct str why; /* of HOOK_FAILED */
};

struct hook_said {
	enum hook_decision decision;
	bool ends;   /* continue: false */
	bool failed; /* it gave no answer */
	struct buf reason, context, told;
	struct value *input; /* theirs (hook_call_back); owned; or NULL */
};
void hook_said_init(struct hook_said *said);
void hook_said_fini(struct hook_said *said);

/* Fill SAID with that which HOOK said by OUTPUT. SAID is initialised. */
void hook_output_read(const struct hook_output *output, const struct hook *hook,
		      struct hook_said *said);

/* Append the hook in words, for people: its file and its command. */
void hook_output_name(const struct hook *hook, struct buf *text);
