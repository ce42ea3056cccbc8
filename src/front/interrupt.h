/*
 * interrupt: turns Ctrl+C, SIGTERM and SIGHUP into a descriptor that becomes readable. The first
 * signal asks for an orderly end; a second signal ends the front immediately, and the cell dies
 * with the front. Signals within a tenth of a second of the first count as that one, because
 * timeout(1), npm and docker send two.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct interrupt;
struct session;

bool interrupt_open(struct interrupt **interrupt, struct err *err);
/*
 * Signals have their former effect again. A process starts only one interrupt: its thread
 * keeps it until the process ends. NULL is fine.
 */
void interrupt_close(struct interrupt *interrupt);

/*
 * The descriptor, readable once a signal has come (session_options.cancel_fd). The code
 * that has handled the signal may read the descriptor empty.
 */
int interrupt_fd(const struct interrupt *interrupt);

/*
 * From now on signals make the descriptor readable. Before this call a signal simply ends
 * the process, which is right as long as nothing runs. Call it when the session is open,
 * or earlier when a terminal has to be put back.
 */
bool interrupt_start(struct interrupt *interrupt, struct err *err);

/* The number of the first signal that came; 0: none. */
int interrupt_signal(const struct interrupt *interrupt);

/*
 * Call it when the work that a SIGINT cancelled has ended. The descriptor is read empty,
 * and the next SIGINT asks for an orderly end again instead of ending the front. SIGTERM
 * and SIGHUP stay recorded, and the descriptor is readable again, because they mean the whole
 * program.
 */
void interrupt_settle(struct interrupt *interrupt);

/*
 * End SESSION, whose agent has ended. Where tokens of a login are on their way, the person is
 * told so, and Ctrl+C does not end the front before they are in their file: without them the
 * login would be dead.
 */
void interrupt_close_session(struct interrupt *interrupt, struct session *session);
