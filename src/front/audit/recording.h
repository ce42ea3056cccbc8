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
#include "policy/service/recorded.h"
#include "tool/event.h"

#include <stdbool.h>
#include <stdint.h>

struct recording;
struct setup;

/*
 * Open what WANTED names. HEADS: standard error gets the head of the audit each minute, and
 * at the end, for a front whose standard error is kept (a service).
 */
bool recording_open(const struct recorded *wanted, bool heads,
		    struct recording **recording, struct err *err);
/* After the end of all its sessions. NULL is fine. */
void recording_close(struct recording *recording);

/* How many lines and spans were lost so far? RECORDING may be NULL. */
uint64_t recording_dropped(const struct recording *recording);

/* Can the audit not be written now (ledger_is_stuck)? RECORDING may be NULL. */
bool recording_is_stuck(const struct recording *recording);

/*
 * A receiver for all events of an agent, those of its session too, in the place of SINK:
 * spans of its turns and of the answers of its model. RECORDING NULL: SINK itself.
 */
struct event_sink recording_agent(struct recording *recording, struct event_sink sink);
/*
 * The part of a setup about records. SETUP, of VERB, uses RECORDING, borrowed, or
 * else one of its own (NULL); recording_forget closes its own, after its sessions.
 */
void recording_lend(struct setup *setup, const char *verb, struct recording *recording);
void recording_forget(struct setup *setup);
/*
 * Open setup.recording if the configuration of SETUP wants one and nobody has lent one.
 * recording_join does this; a caller that needs it before may call it, too.
 */
bool recording_settle(struct setup *setup, struct err *err);
/*
 * SETUP is about to open a session: *SINK becomes a receiver that records its events and hands
 * them to the former *SINK, if anything is to be recorded. False: nothing may be opened, because
 * the audit cannot be written, or would lie where the cell may write. PURPOSE: further members of its
 * `open`, an object; or NULL.
 */
bool recording_join(struct setup *setup, const struct value *purpose,
		    struct event_sink *sink, struct err *err);
/*
 * Write RECORD of something that is no event of a session: a token. BEFORE as in ledger_add.
 * RECORDING NULL, or without an audit: nothing, and true.
 */
bool recording_add(struct recording *recording, const struct chain_record *record,
		   bool before, struct err *err);
