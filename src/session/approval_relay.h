/*
 * approval_relay: a question of another session, which a call of this one has brought about (a
 * delegate's), put to the person of this one. What the other has shown is shown, with the agents that
 * it came by; the answer goes back to it, and nothing is granted here. One of these is open at a
 * time in a session, the others wait for their turn.
 */
#pragma once
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct running;

struct approval_relay {
	/* ANSWER and BY as EVENT_APPROVAL_GIVEN has them; not called when it is over before */
	void (*answered)(const struct approval_relay *relay, const char *answer,
			 const char *by);
	void *context;
	char *call; /* of the other session, with the number of its question */
	int64_t id;
};

/*
 * The data of RUNNING's own question, made of what ASKED (data of the other's EVENT_APPROVAL_WANTED,
 * which is not trusted) says, for AGENT that asks. NULL: it says nothing that a person could judge.
 */
struct value *approval_relay_data(const struct running *running, const char *agent,
				  const struct value *asked);

/*
 * NULL: it is asked, and RELAY was copied. Else it is a no, by "nobody" where there is none to ask,
 * or "time".
 */
const char *approval_relay(struct running *running, const struct approval_relay *relay,
			   struct value *take_data);
/* Whoever asked wants no answer any more. */
void approval_relay_over(struct running *running, const char *call, int64_t id);
