/*
 * answers: a program that reads `--json` answers the questions of approvals on standard
 * input, each answer on a line of its own:
 * {"call": "c3", "id": -1, "action": "accept", "content": {"answer": "once", "hash": "…"}}
 * A line that is no such answer, or that answers no open question, is skipped with a
 * complaint on standard error.
 */
#pragma once
#include "session/session.h"

struct answers;

enum { ANSWERS_LINE_MAX = 64 << 10 };

/*
 * Read FD, which stays the caller's, in the loop of SESSION. When FD ends, open questions
 * are refused, and nobody is asked any more.
 */
struct answers *answers_open(int fd, struct session *session);
void answers_close(struct answers *answers); /* NULL is fine */
