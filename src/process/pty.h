/*
 * pty: a terminal for one program. Packets from `input` are typed on it, and the
 * program's output goes to `output`; both are carried piece by piece while follow_program
 * polls, so that neither side can make this process wait or grow. SIGPIPE must be
 * ignored.
 *
 * The terminal of `exec --tty` is made by the worker, in the cell. Front and worker
 * exchange packets over a socket for the keys and over a pipe for the output, so that
 * the front takes no descriptor from a cell. A process of its own restores the
 * caller's terminal if the front is killed.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The first byte of a packet: typed bytes, a new size (struct pty_size), or the end of
 * the input, which is typed as the terminal's end-of-input character.
 */
enum { PTY_TYPED = 'd', PTY_RESIZED = 'w', PTY_ENDED = 'e' };
enum { PTY_PACKET = 4096 };

struct pty_size {
	uint16_t rows, columns;
};

/* Output is copied in pieces of 64 KiB, the capacity of a pipe; typing is slow. */
enum { PTY_PIECE = 64 << 10 };

struct pty {
	int master, slave;
	int input;  /* a SOCK_SEQPACKET socket; -1: no more typing */
	int output; /* -1: nobody reads the output any more */
	/* The caller of follow_program gathers the output, as standard output. */
	bool gathered;
	char typed[PTY_PACKET];
	size_t typed_size, typed_sent;
	bool mid_line; /* the last typed bytes did not end their line */
	char *printed;
	size_t printed_size, printed_sent;
};

/*
 * Open a terminal of SIZE. The caller keeps INPUT and OUTPUT. ERR names the step. When
 * OUTPUT is -1, the terminal is `gathered`.
 */
bool pty_open(struct pty *pty, struct pty_size size, int input, int output, struct err *err);
/* Also allowed for a zeroed struct whose descriptors are -1. */
void pty_close(struct pty *pty);

/*
 * Type TEXT in addition to the packets from `input`. False, and nothing is typed, while
 * the program has not read the bytes typed before, or when TEXT is longer than
 * PTY_PACKET.
 */
bool pty_type(struct pty *pty, struct str text);

/* For poll: the events that PTY waits for now, and the handling of those that came. */
enum { PTY_SLOTS = 3 };
void pty_slots(const struct pty *pty, struct pollfd slots[PTY_SLOTS]);
void pty_ready(struct pty *pty, const struct pollfd slots[PTY_SLOTS]);

/*
 * After the program's end, deliver its remaining output. Waits for the reader of
 * `output`.
 */
void pty_drain(struct pty *pty);
