/*
 * relay: the standard streams of a program of `exec`. The program gets the caller's pipes
 * directly. Other descriptors (terminal, file, device, directory, socket) stay outside
 * the cell, since such a descriptor gives access to more than its bytes. Their bytes go
 * through a pipe of ours, as fast as the slower side takes them.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "process/loop.h"

#include <stdbool.h>

struct relay;

/* The end of the program's output is remembered, because it has the error messages. */
enum { RELAY_TAIL = 4 << 10 };

/*
 * Examine descriptors 0-2, make the pipes and begin to carry bytes, by watches in LOOP.
 */
bool relay_open(struct loop *loop, struct relay **relay, struct err *err);
/*
 * relay_open for a program with a terminal of its own. Input goes out as packets of
 * process/pty.h, no descriptor of the caller is handed on, and there are two descriptors
 * for the program.
 */
bool relay_open_terminal(struct loop *loop, struct relay **relay, struct err *err);
void relay_close(struct relay *relay); /* NULL is fine; bytes not carried yet are lost */

/* The three descriptors for the program; borrowed. */
const int *relay_fds(const struct relay *relay);
size_t relay_fd_count(const struct relay *relay);

/* The socket that gets the packets of relay_open_terminal; borrowed. */
int relay_packets(const struct relay *relay);

/*
 * The program has its descriptors: close ours, and the caller's pipes except standard
 * error. From now on only the program decides when its streams end.
 */
void relay_give(struct relay *relay);

/*
 * The program has ended: stop reading input, and turn the loop until its last byte is
 * delivered.
 */
void relay_drain(struct relay *relay);

/*
 * Append the last RELAY_TAIL bytes that were carried for standard error, or for both
 * outputs when they share a pipe. Bytes in the caller's pipes were never seen here.
 */
void relay_tail(const struct relay *relay, struct buf *out);

/*
 * Was output lost, because it could not be written for the caller? The loss has been
 * printed.
 */
bool relay_lost(const struct relay *relay);
