/*
 * follow: run one program to its end. Used inside workers, where this process is pid 1:
 * orphans are reaped and, at the end, everything left is killed.
 *
 * The module waits at the same time for the output, the end, a stop and the clock. It
 * knows to which run the processes belong, ends those that are left, and keeps the
 * first and the last bytes of the output.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "process/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pty;

enum program_ending {
	PROGRAM_ENDED,     /* by itself */
	PROGRAM_TIMED_OUT, /* we ended it */
	PROGRAM_CANCELLED,
	PROGRAM_QUIET,   /* we ended it: it printed nothing for quiet_s */
	PROGRAM_LIMITED, /* we ended it: its watch said so */
};

/* The number of bytes that one run gathers from the output streams. */
enum {
	PROGRAM_HEAD = 64 << 10,  /* first bytes kept per command */
	PROGRAM_TAIL = 192 << 10, /* last bytes kept */
	PROGRAM_SPILL = 16 << 20, /* first bytes spilled to a file */
	/* one read: more gains nothing, less costs system calls */
	PROGRAM_READ = 256 << 10,
};

struct program_output {
	struct buf head; /* first PROGRAM_HEAD bytes */
	char *tail;      /* ring of PROGRAM_READ bytes, made when the head is full */
	size_t tail_size, tail_at;
	uint64_t total; /* all bytes that came */
};
/*
 * Append head and tail as one text; a line between them says how many bytes are
 * missing.
 */
void program_output_text(const struct program_output *output, struct buf *text);
void program_output_fini(struct program_output *output);

/* Watches a program while it runs. All calls come in the thread of follow_program. */
struct program_watch {
	/* `reached` is first called this long after the start; 0: never. */
	int64_t after_ms;
	/*
	 * Returns true to kill everything immediately (PROGRAM_LIMITED). Otherwise sets
	 * *AGAIN_MS to the milliseconds until the next call.
	 */
	bool (*reached)(void *context, int64_t *again_ms);
	/*
	 * Polled together with the output; `ready` is called when it is readable. -1:
	 * none.
	 */
	int fd;
	void (*ready)(void *context);
	/*
	 * Called once, before a program that took too long gets its SIGTERM, while all
	 * of its processes are still there; or NULL.
	 */
	void (*before_end)(void *context);
	/* Called once, when no process of the program runs any more; or NULL. */
	void (*over)(void *context);
	void *context;
};

struct program_run {
	/* in */
	/* fds[1], fds[2] == -1: output is gathered; else passed on */
	struct program_start start;
	/*
	 * A program started ahead, which is taken over. Of START only the terms are
	 * used then. pid 0: none.
	 */
	struct program_ahead ahead;
	/*
	 * a grace longer than the default begins before the deadline, at the earliest in
	 * the middle of the time
	 */
	int64_t deadline_ms;
	double grace_s;
	bool patient;   /* a cancel gives as much time as the deadline */
	double quiet_s; /* end the program after this long without output; 0: never */
	const struct program_watch *watch; /* or NULL */
	struct pty *pty; /* served while the program runs (pty.h); NULL: none */
	/*
	 * Close start.fds (they become -1) once the program has them, so that no other
	 * copies stay open
	 */
	bool gives_fds;
	/*
	 * Polled together with the output. When it is readable, `side` is called; it
	 * reads, and sets side_fd to -1 at the end of the stream. -1: none. Bytes that
	 * are in it at the program's end stay unread.
	 */
	int side_fd;
	void (*side)(void *context);
	bool in_use; /* set by `side`: quiet_s begins anew, as after output */
	/* The program's end is expected before this time: stay awake until then */
	int64_t stay_until_us;
	int stop_fd; /* polled together with the output; -1: none */
	/* called when stop_fd is readable; true: cancel */
	bool (*stopped)(void *context);
	/* called with stream 1 or 2; may be NULL */
	void (*output)(void *context, int stream, struct str bytes);
	void *context;
	/* both streams in order of arrival, up to PROGRAM_SPILL; -1: none */
	int spill_fd;
	/* out */
	struct program_output out, error;
	enum program_ending ending;
	int exit_code; /* -1 when a signal ended it */
	int signal;
	unsigned left_processes;   /* alive when the program ended; they were killed */
	uint64_t spilled, dropped; /* bytes in the spill; bytes beyond its limit */
	double seconds;
};

/*
 * Start a program and follow it. Output is read until the program and all its
 * descendants are gone and a read would block, so no grandchild and no inherited
 * descriptor can delay the answer. At the deadline or a cancel, TERM goes to the
 * process group. After 200 ms (70 after a cancel, unless patient; or grace_s), KILL
 * goes to everything in this pid namespace, or, when the terms say `alone`, to
 * everything that kill(-1) reaches. In any other process, this process becomes a
 * subreaper for the run, and ends the process group and its orphans until none is left.
 * False only when the program could not be started (as program_start).
 */
bool follow_program(struct program_run *run, struct err *err);
void program_run_init(struct program_run *run);
void program_run_fini(struct program_run *run);

/*
 * After this time, do not wait for processes on which only the kernel still works: they
 * execute no instruction. The kernel needs 0.1 s to free some GiB of memory, and an
 * answer that is due need not wait for that.
 */
enum { PROGRAM_END_PATIENCE_MS = 30 };

/*
 * Kill everything except this process and reap it; REAPED (may be NULL) is called for
 * each process. Returns when no process is left, or after PATIENCE_MS (CLOCK_NEVER: no
 * such limit) when only dying processes are left, which end with the namespace.
 */
void follow_end_all(int64_t patience_ms,
		    void (*reaped)(void *context, pid_t pid, int status), void *context);

/* Reads one stream into a struct program_output (program.h). */

/*
 * Read once from FD (non-blocking). PIECES are the new bytes, valid until the next
 * read. Returns as read(2).
 */
ssize_t follow_output_read(struct program_output *output, int fd, struct str pieces[2]);

/* Append the kept last bytes to TEXT. */
void follow_output_tail(const struct program_output *output, struct buf *text);

/*
 * PART gets the bytes of OUTPUT from byte SINCE on. It may only be read, and only while
 * OUTPUT does not change. The caller frees its head with buf_fini.
 */
void follow_output_since(const struct program_output *output, uint64_t since,
			 struct program_output *part);

/* The number of bytes between head and tail that were not kept. */
uint64_t follow_output_missing(const struct program_output *output);

/*
 * Ends the children of this process with all their descendants. For a
 * subreaper, which adopts orphans. A pid 1, or a process with a signal domain, uses one
 * kill(-1) instead.
 */

/*
 * Kill and reap all children except OTHERS (ends with 0; NULL: none), and the orphans
 * that this process adopts by that, until none is left. GROUP: a process group to kill
 * as well; 0: none. Returns the number of children that were still alive.
 */
unsigned follow_children_end(int fd, const pid_t *others, pid_t group);
