/*
 * ask: what a front may want of a call that goes on as a job, and the answer to it. The front
 * sends FRAME_ASK, one at a time, to a call whose tool `answers` (tool.h); the worker answers
 * each with FRAME_ANSWER, a result of wire.h, and with FRAME_WAITS says of its own accord that
 * a program waits for somebody to type.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "tool/call.h"

#include <stdbool.h>
#include <stdint.h>

struct ask {
	int64_t job;          /* the number under which people know the call */
	bool reads;           /* wants to see output */
	int64_t since;        /* from this byte on; < 0: what no answer has shown yet */
	struct str input;     /* to be typed; data NULL: nothing */
	int signal;           /* for what it runs; 0: none */
	struct value *object; /* what `input` lies in; ask_fini */
};

bool ask_print(const struct ask *ask, struct buf *out);
/* ASK is filled in whole; ask_fini it when true. */
bool ask_parse(struct str text, struct ask *ask, struct err *err);
void ask_fini(struct ask *ask);

/*
 * In the worker, when call->control_fd can be read: the next ask, or false when none has come
 * yet. A cancel, a front that is gone and whatever else comes set call->cancelled.
 */
bool ask_next(struct call *call, struct ask *ask);
/* The answer to the ask that came last. */
void ask_answer(const struct call *call, const struct tool_result *result);
/* A program of this call waits for input at its terminal. */
void ask_tell_waiting(const struct call *call);
