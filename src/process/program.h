/*
 * program: start one program and follow it to its end. vfork-style start (never a plain
 * fork from a large process), own process group, descriptors 0-2 given and everything
 * above 2 closed. Used inside workers, where this process is pid 1: orphans are reaped
 * and, at the end, everything left is killed.
 *
 * A plain worker holds a start made ahead (program_launcher_make): a clone that has
 * its filter and waits. It serves the first program of `exec` or a cold shell. A
 * terminal does without, because it needs a session of its own.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct program_launcher;
struct pty;
struct sock_fprog;

/* Restrictions and helpers for all programs that a process starts. All zero: none. */
struct program_terms {
	/* one more system-call filter, for programs and their descendants; NULL: none */
	const struct sock_fprog *filter;
	/* a Landlock ruleset that they enter as well; 0: none */
	int ruleset;
	/*
	 * called with the listener of the filter whenever a call waits there; NULL: the
	 * filter has no listener
	 */
	void (*answer)(void *context, int listener);
	void *context;
	/*
	 * kill(-1) ends the processes of programs and nothing else, all their orphans
	 * come to this process, and it has no other children
	 */
	bool alone;
	/*
	 * with `alone`, or when this is pid 1: a signalfd of SIGCHLD, which stays
	 * blocked as long as this process lives; 0: each run makes its own
	 */
	int ends_fd;
	/*
	 * the kernel's list of this process's children, opened before /proc was closed;
	 * or 0
	 */
	int children_fd;
	/* NULL: the kernel may kill this process as early as its programs */
	struct program_score *score;
};

/*
 * When memory runs out, the kernel kills the process with the highest oom_score_adj
 * first. A new process inherits the value of this process, which is raised to 1000 for
 * the start. When the first followed program has given the first sign (output or its
 * end), this process gets its own value back.
 */
struct program_score {
	int fd;          /* this process's /proc/self/oom_score_adj */
	const char *own; /* as text; a program cannot set its own value lower than this */
	bool is_own;
};

struct program_start {
	/* argv[0] is searched in the PATH of environment */
	const char *const *argv;
	const char *const *environment; /* NULL-ended */
	const char *folder;             /* absolute; NULL: the folder of the caller */
	int fds[3];                     /* become 0, 1, 2; -1: /dev/null */
	/*
	 * become 3, 4, …, at most PROGRAM_PLACED_MAX; ends with -1; NULL: none.
	 * Excludes more_fds
	 */
	const int *placed_fds;
	const int *more_fds; /* stay open under the same number; ends with -1; or NULL */
	/* Terms of all programs that this process starts; NULL: none. */
	const struct program_terms *terms;
	/*
	 * fds[0] is a terminal: the program gets a session of its own with this
	 * terminal
	 */
	bool terminal;
	/* The program stays in the caller's process group instead of getting its own */
	bool joins_group;
	/*
	 * Not NULL: run this function with CONTEXT in a copy of this process, instead
	 * of a program. It returns the exit code. argv[0] names it in sentences. Does
	 * not use a launcher.
	 */
	int (*body)(void *context);
	void *context;
	/*
	 * The caller ignores and blocks no signals; saves 64 system calls
	 * (program_plain_signals)
	 */
	bool signals_are_plain;
	/*
	 * A launcher to use for this start, if it fits. It is used up or ended in any
	 * case, and the pointer becomes NULL. NULL: none.
	 */
	struct program_launcher **launcher;
};

/*
 * Block SIGCHLD, set its default action, and make the signalfd of program_terms. BEFORE
 * (or NULL) gets the former signal mask. Returns -1 with errno on failure.
 */
int program_ends_open(sigset_t *before);

/* Reset every signal of this process to the state in a new process. */
void program_plain_signals(void);

/*
 * Start a program. ERR.code on failure: ENOENT (not found: exit code 127),
 * EACCES/ENOEXEC (not executable: 126), E2BIG, ENOTDIR (folder), ECHILD (any other step
 * before the exec), else the errno of the exec.
 */
bool program_start(const struct program_start *start, pid_t *pid, struct err *err);

/*
 * Make a process ahead of a start. It has a group of its own and TERMS, which must have
 * no listener, and waits to learn its program. Until then it shares our memory and
 * descriptors. The caller's signals must be plain. It serves only starts with these
 * same TERMS. NULL when it could not be made.
 */
struct program_launcher *program_launcher_make(const struct program_terms *terms);
/*
 * Tell LAUNCHER that a start follows immediately, if at all: it wakes up and stays
 * awake for a moment. Useful only when it has a processor of its own. LAUNCHER may be
 * NULL.
 */
void program_launcher_rouse(struct program_launcher *launcher);
/* End an unused launcher. *LAUNCHER may be NULL, and becomes NULL. */
void program_launcher_end(struct program_launcher **launcher);

/*
 * A program that already runs, for example waiting for data from its starter; pid 0:
 * none. It is followed like any other run (program_run.ahead).
 */
struct program_ahead {
	pid_t pid;
	int pipes[2]; /* of its output 1 and 2; -1: passed on */
	int listener; /* the listener of its filter; 0: none */
	/*
	 * This process's children before the start, ends with 0; NULL when all are the
	 * program's. Owned
	 */
	pid_t *others;
};
/* Like program_start; fds[1], fds[2] == -1 become pipes. */
bool program_start_ahead(const struct program_start *start, struct program_ahead *ahead,
			 struct err *err);
/* Is the program still running? If it has ended, it is reaped. */
bool program_ahead_lives(struct program_ahead *ahead);
/* End a program that nobody needs any more. */
void program_ahead_end(struct program_ahead *ahead);

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

/* Watches a program while it runs. All calls come in the thread of program_follow. */
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
	/* a grace longer than the default begins before the deadline */
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
bool program_follow(struct program_run *run, struct err *err);
void program_run_init(struct program_run *run);
void program_run_fini(struct program_run *run);

/*
 * Runs several programs, one after the other or joined by pipes, as a shell would, but
 * without a shell: a process of our own starts them and waits for them. It is a copy of
 * the caller, with the terms of programs and without descriptors above 2.
 */

/* How a program is joined to the program before it. */
enum program_join {
	PROGRAM_THEN, /* in any case */
	PROGRAM_AND,  /* when the one before ended with 0 */
	PROGRAM_OR,   /* when the one before did not end with 0 */
	/* at the same time, reading the standard output of the one before */
	PROGRAM_PIPE,
};

struct program_item {
	enum program_join join;
	const char *const *argv;
};

/*
 * Start a process that runs the COUNT ITEMS as START says, except argv. Its exit code
 * is that of the last program that ran: 128+N after signal N, 127 when not found, 126
 * when not executable; in the last two cases a line goes to descriptor 2. The programs
 * stay in its process group.
 */
bool program_list_start_ahead(const struct program_start *start,
			      const struct program_item *items, size_t count,
			      struct program_ahead *ahead, struct err *err);

/* For follow.c only. */

/*
 * Set this process's own oom_score_adj again; SCORE may be NULL. Do it only after the
 * program has given a first sign: the kernel would lower the value of a child that
 * still shares our memory as well, and nobody reports when a child has stopped sharing
 * it.
 */
void program_score_lower(struct program_score *score);
