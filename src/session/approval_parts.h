/* approval_parts: the inside of a question, for approval*.c only. */
#pragma once
#include "session/approval_relay.h"
#include "session/session.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/*
	 * How many connections may wait for one answer; a program opens a handful at the
	 * same time.
	 */
	HELD_MAX = 64,
};

struct approval {
	struct approval *next;
	struct running *running;
	int64_t id;
	bool shown; /* the person is being asked this question now */
	struct value *data;
	char *grant; /* the key of a session's grant */
	/* the host:port for which connections wait; NULL: the call itself waits */
	char *target;
	struct extra *extra; /* the folder that the call waits for; NULL: its command */
	/* the other session that asks (approval_relay.h); its parts are ours */
	struct approval_relay relay;
	uint64_t held[HELD_MAX];
	size_t held_count;
	/* until the question is shown, then until the time for an answer is over */
	struct timer timer;
};

/*
 * Add a question behind the other questions of RUNNING. GRANT: the key of a session's
 * grant; NULL: none.
 */
struct approval *approval_new(struct running *running, struct value *take_data,
			      const char *grant);
/* Was GRANT given to the session? Then an event reports that as the answer. */
bool approval_is_granted(struct running *running, const char *grant);
