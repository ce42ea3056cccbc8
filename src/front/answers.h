/*
 * answers: a program that reads `--json` answers the questions of approvals by lines on standard input:
 * {"call": "c3", "id": -1, "action": "accept", "content": {"answer": "once", "hash": "…"}}. A line
 * that is no such answer, or answers nothing that is open, is told on standard error and passed over.
 */
#pragma once
#include "session/session.h"

struct answers;

enum { ANSWERS_LINE_MAX = 64 << 10 };

/* Read FD, which stays the caller's, in the loop of SESSION until its end: then nobody is there. */
struct answers *answers_open(int fd, struct session *session);
void answers_close(struct answers *answers); /* NULL is fine */
