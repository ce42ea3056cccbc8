/*
 * reports: what the journal knows of the runs in a workspace: for each session the events
 * that tell how it began and ended, and how many calls it made. The caller reads the
 * content of these events.
 */
#pragma once
#include "store/journal.h"

struct report_row {
	char id[JOURNAL_ID + 1];
	/* valid during the callback; events as JSON, empty where there is none */
	struct str agent, model;
	struct str began;    /* EVENT_SESSION_BEGAN */
	struct str task;     /* the first EVENT_TURN_BEGAN */
	struct str message;  /* the last EVENT_MESSAGE */
	struct str handover; /* the last call of generate_patch */
	struct str ended;    /* the last EVENT_TURN_ENDED */
	int64_t began_ms, calls, denied;
};

struct report_filter {
	const char *workspace;
	const char *agent;      /* NULL: any */
	const char *other_name; /* of that agent, which counts as well; or NULL */
	int64_t since_ms;       /* that began since then */
	const char *except;     /* a session; or NULL */
};

/* Newest first, at most LIMIT; the callback returns false to stop. */
bool reports_list(struct journal *journal, const struct report_filter *filter,
		  size_t limit, bool (*report)(void *context, const struct report_row *row),
		  void *context, struct err *err);
