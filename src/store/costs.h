/*
 * costs: what the recorded answers of models have used: tokens, and money where a price was
 * known when the answer came. Each answer is counted once, in the session that asked for
 * it: a delegate's in the delegate's own session. Summaries count as answers,
 * and so does what a server had the model asked.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdint.h>

/* The texts are valid until the callback returns. */
struct cost_answer {
	struct str session, workspace, agent, model; /* those of its turn */
	int64_t wall_ms;
	int64_t input, output, cached, cache_writes, reasoning; /* tokens */
	double money; /* US dollars; below 0: the price was not known */
};

/*
 * Every answer since SINCE_MS (wall clock; 0: all), session by session, oldest first.
 * SESSION: an id, for this session and those of its delegates alone; NULL: all. The
 * callback returns false to stop.
 */
bool costs_read(struct journal *journal, int64_t since_ms, const char *session,
		bool (*answer)(void *context, const struct cost_answer *answer),
		void *context, struct err *err);
