/*
 * delegate: another agent at work on a task, as a process of its own: our program again, by
 * exec with an empty environment (front/talk.c). Its request, which includes API
 * keys, goes over a descriptor; its events come back as lines. A delegate dies with its
 * caller. After a crash, a hang or garbage on its output, its report says so.
 *
 * The events of a delegate are judged like those of any stranger and become
 * EVENT_CHILD. Its question to a person becomes a question of the call of
 * delegate_agent, and the answer goes to the delegate through a pipe, as a line. Each
 * agent above it has narrowed its rights.
 *
 * With limits.writers of more than 1, delegates that write work side by side, each in a layer
 * of its own (view/review.h). When the last of them has ended, they land their layers in the
 * order of their calls, each when its caller tells it so: all of them have begun with the same
 * files, and none sees what another has not finished. A layer whose delegate did not finish
 * is not landed and stays for a person.
 *
 * Delegates of an agent that works in a layer itself have layers in any case, over that one
 * (view/below.h). Only the cell of that agent may write to its layer, so a delegate that gets the
 * word ends, and its caller lands what it has left.
 */
#pragma once

#include "agent/tools/orchestra.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/model.h"
#include "session/session.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdint.h>

struct delegate;

/*
 * Reads the output of a delegate as events and sums them up. A delegate is our own
 * program, but the files and answers it reads may have taken it over: its lines are
 * therefore not trusted. Pure: bytes in, events and a report out.
 */

struct delegate_report {
	/*
	 * Called with each event that the caller must show: data of EVENT_CHILD,
	 * borrowed.
	 */
	void (*show)(void *context, struct value *child);
	/*
	 * Called when an answer of the delegate's model, or of one below it, used tokens.
	 */
	void (*used)(void *context, const struct model_usage *usage);
	void *context;
	/* filled in by the functions below */
	struct buf line;
	uint64_t bytes;
	char session[JOURNAL_ID + 1]; /* "" until its session began */
	char *agent;
	struct buf said;      /* the last words of its model */
	struct value *ended;  /* data of its EVENT_TURN_ENDED, or NULL */
	struct value *landed; /* data of its EVENT_LANDED, or NULL */
	struct buf notice;    /* the last sentence for the person */
	char *web; /* the page of the web that it, or one below it, read last; or NULL */
	uint64_t answers;         /* of its model and of the delegates below it */
	struct model_usage usage; /* the sum that `used` has been called with so far */
};

void delegate_report_init(struct delegate_report *report);
void delegate_report_fini(struct delegate_report *report);

/*
 * Take BYTES of output. ERR (EPROTO, E2BIG): the output has another format; later bytes
 * do not count.
 */
bool delegate_report_take(struct delegate_report *report, struct str bytes, struct err *err);

/*
 * The delegate has ended and all its output was taken. Reports to `used` what the
 * delegate used beside its answers.
 */
void delegate_report_end(struct delegate_report *report);

/*
 * The start of a delegate: argv[0], then the descriptors of the request, the events, the
 * complaints, the answers to the delegate's questions (lines as front/talk.h has them),
 * the word to land its layer (one byte, or the end of the file), and the caller.
 */
#define DELEGATE_ROLE "glovebox-delegate"
enum {
	DELEGATE_ARGUMENTS = 7,
	/*
	 * The exit code of a delegate that has got the word to land, and whose layer lies over
	 * that of its caller, which lands it.
	 */
	DELEGATE_LEFT = 64,
};

struct delegate_options {
	struct loop *loop;           /* it calls `ended`, and outlives the delegate */
	const struct value *request; /* the request that the new process reads */
	void (*show)(void *context, struct value *child);
	void (*used)(void *context, const struct model_usage *usage);
	/* Called when the delegate has ended. It may call delegate_free. */
	void (*ended)(void *context, struct delegate *delegate);
	void *context;
};

bool delegate_start(const struct delegate_options *options, struct delegate **delegate,
		    struct err *err);

/*
 * Tell DELEGATE, which has a layer, to land it when it has ended its turn, and all before it
 * have landed.
 */
void delegate_tell_to_land(struct delegate *delegate);
/* After the delegate's end: its layer is done, and its caller lands it (DELEGATE_LEFT). */
bool delegate_has_left(const struct delegate *delegate);
/* Ask DELEGATE to end (SIGTERM); `ended` is called later. */
void delegate_ask_to_end(struct delegate *delegate);
/*
 * End DELEGATE now. It may end by itself until UNTIL_MS (monotonic); then it is killed,
 * and its cell with it. `ended` is not called any more.
 */
void delegate_end(struct delegate *delegate, int64_t until_ms);

/* The report so far; complete after the delegate has ended. */
const struct delegate_report *delegate_report_of(const struct delegate *delegate);
/* After the delegate's end: a sentence why its report cannot be trusted; NULL: it can. */
const char *delegate_fault(const struct delegate *delegate);

/* Kills a delegate that still runs. NULL is fine. */
void delegate_free(struct delegate *delegate);

/* The calls of delegate_agent that are under way; for orchestra.c only. */

/* End all these calls now, each with all the processes that it started. */
void delegate_calls_end(struct orchestra *orchestra);

/* Begin and cancel such a call; for its row in orchestra.c. */
void delegate_calls_begin(void *keeper, struct running *running);
void delegate_calls_stop(void *keeper, struct running *running);
