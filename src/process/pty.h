/*
 * pty: a terminal for one program. Packets from `input` are typed on it, and the
 * program's output goes to `output`; both are carried piece by piece while program_follow
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
 * The first byte of a packet: bytes that are typed, a new size (struct pty_size), and the
 * end of the input, which is typed as the terminal's own sign for it.
 */
enum { PTY_TYPED = 'd', PTY_RESIZED = 'w', PTY_ENDED = 'e' };
enum { PTY_PACKET = 4096 };

struct pty_size {
	uint16_t rows, columns;
};

/* Pieces of 64 KiB out, as a pipe takes them; typing is slow. */
enum { PTY_PIECE = 64 << 10 };

struct pty {
	int master, slave;
	int input;  /* a SOCK_SEQPACKET socket; -1: nothing more is typed */
	int output; /* -1: nobody listens any more */
	/* The caller that follows the program reads its output, as standard output. */
	bool gathered;
	char typed[PTY_PACKET];
	size_t typed_size, typed_sent;
	bool mid_line; /* the last that was typed did not end its line */
	char *printed;
	size_t printed_size, printed_sent;
};

/*
 * Open a terminal of SIZE; INPUT and OUTPUT stay the caller's. ERR names the step.
 * Without an OUTPUT (-1) it is `gathered`.
 */
bool pty_open(struct pty *pty, struct pty_size size, int input, int output, struct err *err);
/* Of one that was zeroed with its descriptors -1, too. */
void pty_close(struct pty *pty);

/*
 * Type TEXT beside what comes on `input`. False, and nothing is typed, while the program
 * has not taken what was typed before, or when it is over PTY_PACKET bytes.
 */
bool pty_type(struct pty *pty, struct str text);

/* For poll: what it waits for now, and what to do when that has come. */
enum { PTY_SLOTS = 3 };
void pty_slots(const struct pty *pty, struct pollfd slots[PTY_SLOTS]);
void pty_ready(struct pty *pty, const struct pollfd slots[PTY_SLOTS]);

/* The program is gone: deliver what it had printed. Waits for the reader of `output`. */
void pty_drain(struct pty *pty);
