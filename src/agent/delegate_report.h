/*
 * delegate_report: reads the output of a delegate as events and sums them up. A delegate
 * is our own program, but the files and answers it reads may have taken it over: its
 * lines are therefore not trusted. Pure: bytes in, events and a report out.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "model/model.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	/* An event of a delegate; the largest of ours are results of calls, escaped. */
	DELEGATE_LINE_MAX = 64 << 20,
	/* All it may print: a run of a day has some megabytes. */
	DELEGATE_BYTES_MAX = 512 << 20,
	/* Bytes of the delegate's last words that its caller is told. */
	DELEGATE_SAID_MAX = 24 << 10,
};

struct delegate_report {
	/* Called with each event that its caller is to show: data of EVENT_CHILD, borrowed. */
	void (*show)(void *context, struct value *child);
	/* An answer of its model, or of one below it, has used this. */
	void (*used)(void *context, const struct model_usage *usage);
	void *context;
	/* the rest is filled in */
	struct buf line;
	uint64_t bytes;
	char session[JOURNAL_ID + 1]; /* "" until it began */
	char *agent;
	struct buf said;          /* the last words of its model */
	struct value *ended;      /* data of its EVENT_TURN_ENDED, or NULL */
	struct buf notice;        /* the last sentence for the person */
	uint64_t answers;         /* of its model and those below it */
	struct model_usage usage; /* told by `used` so far */
};

void delegate_report_init(struct delegate_report *report);
void delegate_report_fini(struct delegate_report *report);

/* Take BYTES of output. ERR (EPROTO, E2BIG): not our format; later bytes do not count. */
bool delegate_report_take(struct delegate_report *report, struct str bytes, struct err *err);

/* It has ended, and these were all: what it used beside its answers is told, too. */
void delegate_report_end(struct delegate_report *report);
