/*
 * relay: what the program of `exec` gets as its standard streams. The caller's pipes
 * are handed on. Anything else (terminal, file, device, directory, socket) stays
 * outside, since such a descriptor opens more than itself; its bytes go through a pipe
 * of ours, as fast as the slower side takes them.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "process/loop.h"

#include <stdbool.h>

struct relay;

/* Of what the program printed, the end is remembered: its messages. */
enum { RELAY_TAIL = 4 << 10 };

/* Look at descriptors 0-2, make the pipes and begin to carry, by watches in LOOP. */
bool relay_open(struct loop *loop, struct relay **relay, struct err *err);
/*
 * For a program with a terminal of its own: what is read goes out as packets of
 * process/pty.h, nothing of the caller's is handed on, and there are two descriptors.
 */
bool relay_open_terminal(struct loop *loop, struct relay **relay, struct err *err);
void relay_close(struct relay *relay); /* NULL is fine; what was not carried is lost */

/* The three descriptors for the program; borrowed. */
const int *relay_fds(const struct relay *relay);
size_t relay_fd_count(const struct relay *relay);

/* Where relay_open_terminal's packets go; borrowed. */
int relay_packets(const struct relay *relay);

/*
 * The program has them: ours are closed, pipes of the caller's included but for standard
 * error. From now on the program alone decides when its streams end.
 */
void relay_give(struct relay *relay);

/*
 * The program is gone: nothing more is read for it. Turns the loop until its last byte
 * is delivered.
 */
void relay_drain(struct relay *relay);

/*
 * Append the last RELAY_TAIL bytes of what was carried of standard error, or of both when they
 * are one. Nothing of the caller's pipes: those were handed on.
 */
void relay_tail(const struct relay *relay, struct buf *out);

/* Output could not be written where the caller wanted it, which was said. */
bool relay_lost(const struct relay *relay);
