/*
 * stopping: one call under way ends because the person says so, while the thread of the
 * conversation waits for it and for others.
 */
#pragma once

#include "base/err.h"

struct session;
struct stopping;

bool stopping_open(struct stopping **stopping, struct err *err);
void stopping_close(struct stopping *stopping); /* NULL is fine */
/* The session whose calls may be stopped from now on; NULL: none. STOPPING NULL is fine. */
void stopping_set_session(struct stopping *stopping, struct session *session);

/*
 * Any thread: have CALL ended, which another agent carries out; its caller reads WHY. Only the
 * newest wish counts of those that nobody has read.
 */
void stopping_ask(struct stopping *stopping, const char *call, const char *why);
