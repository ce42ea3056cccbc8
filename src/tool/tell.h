/*
 * tell: what a worker says of its call while that runs, and asks of the caller it:
 * FRAME_TELL and FRAME_QUESTION, and FRAME_REPLY for the answer. All JSON. One question at a
 * time is open; its number is the worker's. Read by a front (running_tell.c), which trusts
 * none of it, and by the call that asked (call_tell.c).
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

/* A word for a person; a form or a conversation for a model; and what is answered to it. */
enum { TELL_MAX = 64 << 10, TELL_QUESTION_MAX = 4 << 20 };

struct tell_question {
	int64_t id;            /* 1, 2, … in its call */
	const char *kind;      /* "form", "url", "sampling", "roots" or "several" */
	struct value *request; /* an object */
};

struct call;
/* call_tell.c: take what has come for CALL, which awaits a reply: that, or its end. */
void call_read_control(struct call *call);

bool tell_print_question(const struct tell_question *question, struct buf *out);
/* QUESTION holds on to what was parsed: value_free *OBJECT. */
bool tell_parse_question(struct str text, struct tell_question *question,
			 struct value **object, struct err *err);

/* ANSWER is an object with an "action": accept, decline or cancel. */
bool tell_is_answer(const struct value *answer);
bool tell_print_reply(int64_t id, const struct value *answer, struct buf *out);
/* *ANSWER is the caller's. */
bool tell_parse_reply(struct str text, int64_t *id, struct value **answer, struct err *err);
