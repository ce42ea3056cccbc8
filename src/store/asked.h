/*
 * asked: the questions about approvals that the journal has, each with its answer. They tell
 * which rules a person would have answered the same way each time (`policy suggest`).
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "store/journal.h"

#include <stdbool.h>
#include <stdint.h>

/* The texts are valid until the callback returns, and as session/approval.h has them. */
struct asked_question {
	struct str agent, workspace, effect, subject, rule;
	struct str answer, by;
};

/*
 * Every question since SINCE_MS (wall clock) that was asked of a person and answered, session
 * by session, oldest first. Questions that a session has passed on for a delegate are left
 * out: the delegate's own session has them. The callback returns false to stop.
 */
bool asked_read(struct journal *journal, int64_t since_ms,
		bool (*question)(void *context, const struct asked_question *question),
		void *context, struct err *err);
