/*
 * interrupt: Ctrl+C, SIGTERM and SIGHUP as a descriptor that becomes readable. The
 * first one asks for an orderly end; a second one ends the front immediately, and the cell
 * dies with it. Signals within a tenth of a second of the first are the same one: timeout(1), npm
 * and docker send two.
 */
#pragma once
#include "base/err.h"

#include <stdbool.h>

struct interrupt;

bool interrupt_open(struct interrupt **interrupt, struct err *err);
void interrupt_close(struct interrupt *interrupt); /* NULL is fine */

/*
 * Readable once a signal has come (session_options.cancel_fd). Whoever handled it may
 * read it empty.
 */
int interrupt_fd(const struct interrupt *interrupt);

/*
 * From now on signals go there; before this they end the process as they always do,
 * which is right as long as nothing runs. Call it when the session is open.
 */
bool interrupt_start(struct interrupt *interrupt, struct err *err);

/* The first signal that came, 0: none. */
int interrupt_signal(const struct interrupt *interrupt);

/*
 * What a SIGINT asked for has been done: the descriptor is read empty, and the next one asks
 * again instead of ending the front. Other signals stay: they mean the whole program.
 */
void interrupt_settle(struct interrupt *interrupt);
