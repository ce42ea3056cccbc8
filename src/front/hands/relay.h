/*
 * relay: carries bytes between the caller's descriptors 0-2 and a program in a cell, which
 * another process of ours starts. The program gets the caller's pipes directly. Other
 * descriptors (terminal, file, device, directory, socket) stay outside the cell, since such
 * a descriptor gives access to more than its bytes. Their bytes go through a pipe of ours,
 * as fast as the slower side takes them.
 *
 * A pipe without a name is handed on to the program, by a descriptor of its own: the program
 * may change its flags, and the caller's stay. A named pipe is relayed like a file, because a
 * process that holds it could change a file of the host.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "front/ask/question.h"
#include "process/loop.h"

#include <stdbool.h>
#include <stddef.h>

/* The end of the program's output is remembered, because it has the error messages. */
enum { RELAY_TAIL = 4 << 10 };

enum relay_kind {
	RELAY_PLAIN, /* three descriptors for the program */
	/*
	 * The program has a terminal of its own. Input goes out as packets of
	 * process/pty.h, no descriptor of the caller is handed on, and there are two
	 * descriptors for the program.
	 */
	RELAY_TERMINAL,
};

struct relay;
struct terminal;

/*
 * Examine descriptors 0-2, make the pipes and begin to carry bytes, by watches in LOOP.
 * With CLIPBOARD the program may set the clipboard of the terminal that it prints on.
 */
bool relay_open(struct loop *loop, enum relay_kind kind, bool clipboard,
		struct relay **opened, struct err *err);
void relay_close(struct relay *relay); /* NULL is fine */

/* The COUNT descriptors for the program; borrowed. */
const int *relay_fds(const struct relay *relay, size_t *count);
/* The socket that gets the packets of RELAY_TERMINAL; borrowed. */
int relay_packets(const struct relay *relay);
/*
 * The program has its descriptors: close ours, and the caller's pipes except standard
 * error. From now on only the program decides when its streams end.
 */
void relay_give(struct relay *relay);
/*
 * The program has ended: stop reading input, and turn the loop until its last byte is
 * delivered. With HURRIES, and from the moment on when STOP (-1: none) is readable, a reader
 * that takes nothing for RELAY_STUCK_MS loses the rest, and a terminal among them all that it
 * has not shown yet, so that there is room for our own words.
 */
enum { RELAY_STUCK_MS = 2000 };
void relay_drain(struct relay *relay, int stop, bool hurries);
/*
 * The program has ended: switch off what it has left on at the caller's terminals. The write
 * does not wait for a terminal that was stopped.
 */
void relay_leave(const struct relay *relay);
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

/*
 * Where a question may stand: on TERMINAL, the caller's, which is lent to it. Nothing is
 * carried meanwhile, and what the program prints waits in its pipe.
 */
struct question_place relay_place(struct relay *relay, struct terminal *terminal);
