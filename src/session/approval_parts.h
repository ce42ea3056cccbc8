/* approval_parts: the inside of a question, for approval*.c alone. */
#pragma once
#include "session/approval_relay.h"
#include "session/session_parts.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Connections that wait for one answer; a program opens a handful at once. */
	HELD_MAX = 64,
};

struct approval {
	struct approval *next;
	struct running *running;
	int64_t id;
	bool shown; /* it is the one that is asked now */
	struct value *data;
	char *grant;         /* what a session's grant is known by */
	char *target;        /* host:port; NULL: the call itself waits */
	struct extra *extra; /* the folder that the call waits for; NULL: its command */
	/* in whose name it is asked (approval_relay.h); its parts are ours */
	struct approval_relay relay;
	uint64_t held[HELD_MAX];
	size_t held_count;
	struct timer timer; /* until it is shown, then until nobody has answered */
};

/* A question more, behind the others of RUNNING. GRANT: what a session's is known by; NULL: none. */
struct approval *approval_new(struct running *running, struct value *take_data,
			      const char *grant);
/* Was GRANT given to the session? Then that is told, as the answer that it is. */
bool approval_is_granted(struct running *running, const char *grant);
