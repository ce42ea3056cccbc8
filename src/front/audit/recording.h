/*
 * recording: writes down what the sessions of a front do, for people who do not sit before it:
 * the audit (audit/ledger.h) and spans (front/audit/exporter.h), as the key `service` of the
 * configuration wants them (docs/audit.md). It is a receiver of events, between a session
 * and the receiver that the front has: every call of the front's passes there
 * (ARCHITECTURE.md), and a call of which the audit cannot take the begin does not run.
 *
 * setup.c opens one for each setup that makes a session, unless a verb has lent one
 * (setup_flags.recording), as verbs with many setups do.
 */
#pragma once

#include "audit/chain.h"
#include "base/err.h"
#include "policy/policy.h"
#include "policy/recorded.h"
#include "tool/event.h"

#include <stdbool.h>

struct recording;

/* The sessions of which lines and spans tell. */
struct recording_session {
	const char *front;  /* the verb that serves them; NULL: "glovebox" */
	const char *token;  /* the name of the service's token; NULL: there is none */
	const char *cell;   /* its name; NULL: one is made */
	const char *folder; /* the workspace */
	const char *agent;
};

/*
 * Open what WANTED names. HEADS: standard error gets the head of the audit each minute, and
 * at the end, for a front whose standard error is kept (a service).
 */
bool recording_open(const struct recorded *wanted, bool heads,
		    struct recording **recording, struct err *err);
/* After the end of all its sessions. NULL is fine. */
void recording_close(struct recording *recording);

/*
 * A session for ABOUT with POLICY is about to be opened: *SINK becomes a receiver that records
 * its events and hands them to the former *SINK. False: nothing may be opened, because the audit
 * cannot be written, or would lie where the cell may write.
 */
bool recording_begin(struct recording *recording, const struct recording_session *about,
		     const struct policy *policy, struct event_sink *sink, struct err *err);
/*
 * A receiver for all events of an agent, those of its session too, in the place of SINK:
 * spans of its turns and of the answers of its model. RECORDING NULL: SINK itself.
 */
struct event_sink recording_agent(struct recording *recording, struct event_sink sink);
/*
 * Write RECORD of something that is no event of a session: a token, a refused connection. BEFORE
 * as in ledger_add. RECORDING NULL, or without an audit: nothing, and true.
 */
bool recording_add(struct recording *recording, const struct chain_record *record,
		   bool before, struct err *err);
