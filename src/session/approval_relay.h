/*
 * approval_relay: a question of another session, put to the person of this session. A
 * call of this session has brought the question about (a delegate's). The person sees
 * what the other session shows, and the agents through which the question came. The
 * answer goes back to the other session, and nothing is granted here. One such question
 * is open at a time in a session; the others wait for their turn.
 */
#pragma once
#include "base/err.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct running;

struct approval_relay {
	/*
	 * ANSWER and BY as EVENT_APPROVAL_GIVEN has them; not called when the question
	 * ends unanswered
	 */
	void (*answered)(const struct approval_relay *relay, const char *answer,
			 const char *by);
	void *context;
	char *call; /* the other session's call, and the number of its question */
	int64_t id;
};

/*
 * Make the data of RUNNING's own question from ASKED, the data of the other session's
 * EVENT_APPROVAL_WANTED, which is not trusted. AGENT is the agent that asks. NULL: ASKED
 * says nothing that a person could judge.
 */
struct value *approval_relay_data(const struct running *running, const char *agent,
				  const struct value *asked);

/*
 * Ask the question, with TAKE_DATA. NULL: the question is asked, and RELAY was copied.
 * Otherwise the answer is no, and the return value says by whom: "nobody" when there is
 * nobody to ask, or "time".
 */
const char *approval_relay(struct running *running, const struct approval_relay *relay,
			   struct value *take_data);
/* The session that asked for CALL and ID does not want an answer any more. */
void approval_relay_over(struct running *running, const char *call, int64_t id);
