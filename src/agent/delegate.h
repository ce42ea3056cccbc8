/*
 * delegate: another agent at work on a task, as a process of its own: our program again, by
 * exec with an empty environment (front/delegate_role.c). Its request, which includes API
 * keys, goes over a descriptor; its events come back as lines. A delegate dies with its
 * caller. After a crash, a hang or garbage on its output, its report says so.
 */
#pragma once
#include "agent/delegate_report.h"
#include "base/err.h"
#include "base/value.h"
#include "session/session.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How it is started: argv[0], then the descriptors of request, events, complaints, answers (to what
 * it asks, lines as front/answers.h has them), caller.
 */
#define DELEGATE_ROLE "glovebox-delegate"
enum { DELEGATE_ARGUMENTS = 6 };

struct delegate;

struct delegate_options {
	struct loop *loop;           /* that calls back; outlives it */
	const struct value *request; /* for the role */
	void (*show)(void *context, struct value *child);
	void (*used)(void *context, const struct model_usage *usage);
	/* It has ended; delegate_free may be called from here. */
	void (*ended)(void *context, struct delegate *delegate);
	void *context;
};

bool delegate_start(const struct delegate_options *options, struct delegate **delegate,
		    struct err *err);

/* The answer to its question ID of its CALL, as session_answer takes it. */
void delegate_answer(struct delegate *delegate, const char *call, int64_t id,
		     const struct value *answer);

/* Ask DELEGATE to end (SIGTERM); `ended` is called later. */
void delegate_ask_to_end(struct delegate *delegate);
/*
 * End DELEGATE now. It may end by itself until UNTIL_MS (monotonic); then it is killed,
 * and its cell with it. `ended` is not called any more.
 */
void delegate_end(struct delegate *delegate, int64_t until_ms);

/* The report so far; complete after the delegate has ended. */
const struct delegate_report *delegate_report_of(const struct delegate *delegate);
/* After its end: a sentence why its report cannot be trusted; NULL: it can. */
const char *delegate_fault(const struct delegate *delegate);

/* Kills it when it still runs. NULL is fine. */
void delegate_free(struct delegate *delegate);
