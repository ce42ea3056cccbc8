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

/*
 * Restrictions and helpers that a process gives all programs it starts. All zero:
 * none.
 */
struct program_terms {
	/* one more system-call filter, for programs and all they start; NULL: none */
	const struct sock_fprog *filter;
	/* a Landlock ruleset that they enter besides; 0: none */
	int ruleset;
	/* the filter asks: called with its listener whenever a call waits there; or NULL */
	void (*answer)(void *context, int listener);
	void *context;
	/*
	 * kill(-1) ends what programs left and nothing else, every orphan of theirs comes
	 * to this process, and it has no other children
	 */
	bool alone;
	/*
	 * where `alone`, or where this is pid 1: a signalfd of SIGCHLD, blocked as long as this
	 * process lives; 0: each run makes its own
	 */
	int ends_fd;
	/* the kernel's list of this process's children, open since /proc is closed; or 0 */
	int children_fd;
	/* NULL: this process is worth as much to the kernel as what it starts */
	struct program_score *score;
};

/*
 * When memory runs out the kernel ends who has the highest oom_score_adj. A process made here
 * inherits this one's, 1000; from the first sign of the first program that is followed on, this
 * process has its own again.
 */
struct program_score {
	int fd;          /* this process's /proc/self/oom_score_adj */
	const char *own; /* as text; nothing that a program writes into its own is below it */
	bool is_own;
};

struct program_start {
	const char *const *argv;        /* [0] is looked up in the PATH of environment */
	const char *const *environment; /* NULL-ended */
	const char *folder;             /* absolute; NULL: stay */
	int fds[3];                     /* become 0, 1, 2; -1: /dev/null */
	/* become 3, 4, …, at most PROGRAM_PLACED_MAX; end with -1; NULL: none. Then no more_fds */
	const int *placed_fds;
	const int *more_fds; /* kept open under the same number; ends with -1; or NULL */
	/* Terms of every program that this process starts; NULL: none. */
	const struct program_terms *terms;
	/* fds[0] is a terminal: it becomes that of a session of its own */
	bool terminal;
	/* It stays in the caller's process group instead of having one of its own */
	bool joins_group;
	/*
	 * Instead of a program: run in a copy of this process, with CONTEXT; the answer is its exit
	 * code. argv[0] names it in sentences. Takes no launcher.
	 */
	int (*body)(void *context);
	void *context;
	/* No signal of the caller is ignored or blocked: 64 calls less (program_plain_signals) */
	bool signals_are_plain;
	/*
	 * One that is used for this start, if it can be; taken in any case (NULL is left).
	 * NULL: none.
	 */
	struct program_launcher **launcher;
};

/*
 * Block SIGCHLD, with its default action, and make the signalfd of program_terms; BEFORE is
 * what was blocked, or NULL. -1 with errno.
 */
int program_ends_open(sigset_t *before);

/* Every signal of this process as a new one has it. */
void program_plain_signals(void);

/*
 * ERR.code ENOENT (not found: exit code 127), EACCES/ENOEXEC (not executable: 126),
 * E2BIG, ENOTDIR (folder), ECHILD (any other step before the exec), else what the exec said.
 */
bool program_start(const struct program_start *start, pid_t *pid, struct err *err);

/*
 * A start made ahead: the process is there, in a group of its own and on TERMS that do not
 * ask, and waits for what it shall become. It shares our memory and descriptors until then.
 * Only where the caller's signals are plain. It serves starts on these very TERMS. NULL when
 * it could not be made.
 */
struct program_launcher *program_launcher_make(const struct program_terms *terms);
/*
 * A start follows at once, or none does: it wakes up, and stays awake for a moment. Only where
 * it has a processor of its own. NULL is fine.
 */
void program_launcher_rouse(struct program_launcher *launcher);
/* End it, when nobody wants it any more; *LAUNCHER may be NULL and becomes it. */
void program_launcher_end(struct program_launcher **launcher);

/*
 * A program that runs already and waits for something its starter will give it; pid 0: none.
 * Its run is followed like any other (program_run.ahead).
 */
struct program_ahead {
	pid_t pid;
	int pipes[2]; /* what it writes to 1 and 2; -1: passed on */
	int listener; /* of its filter, when the terms' filter asks; 0: none */
	/* This process's children before it, ends with 0; NULL where all are the program's. Owned */
	pid_t *others;
};
/* As program_start; fds[1], fds[2] == -1 become pipes. */
bool program_start_ahead(const struct program_start *start, struct program_ahead *ahead,
			 struct err *err);
/* Does it still run? One that has ended is reaped. */
bool program_ahead_lives(struct program_ahead *ahead);
/* End it, when nobody wants it any more. */
void program_ahead_end(struct program_ahead *ahead);

enum program_ending {
	PROGRAM_ENDED,     /* by itself */
	PROGRAM_TIMED_OUT, /* we ended it */
	PROGRAM_CANCELLED,
	PROGRAM_QUIET,   /* we ended it: it printed nothing for quiet_s */
	PROGRAM_LIMITED, /* we ended it: its watch said so */
};

/* How much one run gathers from the output streams. */
enum {
	PROGRAM_HEAD = 64 << 10,  /* first bytes kept per command */
	PROGRAM_TAIL = 192 << 10, /* last bytes kept */
	PROGRAM_SPILL = 16 << 20, /* first bytes spilled to a file */
	/* one read: larger gains nothing, smaller costs calls */
	PROGRAM_READ = 256 << 10,
};

struct program_output {
	struct buf head; /* first PROGRAM_HEAD bytes */
	char *tail;      /* ring of PROGRAM_READ bytes, made when the head is full */
	size_t tail_size, tail_at;
	uint64_t total; /* all bytes that came */
};
/* Head and tail as one text; a line says how much is missing between them. */
void program_output_text(const struct program_output *output, struct buf *text);
void program_output_fini(struct program_output *output);

/* Somebody who looks on while a program runs; all in the thread of program_follow. */
struct program_watch {
	/* Asked first so long after the start; 0: never. */
	int64_t after_ms;
	/*
	 * True: everything is killed at once (PROGRAM_LIMITED). Else *AGAIN_MS says in how
	 * many milliseconds to ask again.
	 */
	bool (*reached)(void *context, int64_t *again_ms);
	/* Polled beside the output; `ready` is called when it can be read. -1: none. */
	int fd;
	void (*ready)(void *context);
	/* Called once, when nothing of the program runs any more; NULL: nobody needs it. */
	void (*over)(void *context);
	void *context;
};

struct program_run {
	/* in */
	struct program_start start; /* fds[1], fds[2] == -1: gathered; else passed on */
	/* Taken: what was started ahead; of START only the terms are then looked at. pid 0: none. */
	struct program_ahead ahead;
	int64_t deadline_ms; /* a grace over the default is taken from before it */
	double grace_s;
	bool patient; /* a cancel leaves as much time as the deadline does */
	double quiet_s; /* ended like at a deadline after so long without output; 0: never */
	const struct program_watch *watch; /* or NULL */
	struct pty *pty; /* carried while it runs (pty.h), or gathered; NULL: none */
	/* Close start.fds (they become -1) once the program has them: its ends are the last */
	bool gives_fds;
	/*
	 * Polled beside the output; `side` is called when it can be read, reads it, and makes it
	 * -1 at its end. -1: none. Bytes in it at the program's end stay unread.
	 */
	int side_fd;
	void (*side)(void *context);
	/* The program's end is expected before: the wait for it stays awake until then */
	int64_t stay_until_us;
	int stop_fd;                    /* poll beside the output; -1: none */
	bool (*stopped)(void *context); /* asked when stop_fd is readable; true: cancel */
	/* 1, 2; may be NULL */
	void (*output)(void *context, int stream, struct str bytes);
	void *context;
	/* both streams in order of arrival, up to PROGRAM_SPILL; -1: none */
	int spill_fd;
	/* out */
	struct program_output out, error;
	enum program_ending ending;
	int exit_code; /* -1 when it died of a signal */
	int signal;
	unsigned left_processes;   /* still there when it ended: killed */
	uint64_t spilled, dropped; /* bytes in the spill; beyond it */
	double seconds;
};

/*
 * Start and follow: output is read until the program and everything it started are gone
 * and a read would block, so no grandchild and no passed descriptor can hold the answer.
 * At the deadline or a cancel TERM goes to its process group, after 200 ms (70 after a cancel,
 * unless patient; or grace_s) KILL to everything in this pid namespace, or wherever its terms
 * say that it is alone. False only when the program could not be started (as program_start).
 * Else it becomes a subreaper and ends what its process group holds and its orphans, until none
 * is left.
 */
bool program_follow(struct program_run *run, struct err *err);
void program_run_init(struct program_run *run);
void program_run_fini(struct program_run *run);

/*
 * Several programs, one after the other or joined by pipes, as a shell would run them,
 * without a shell: a process of our own starts and waits for them. It is a copy of the
 * caller, on the terms of programs and without any descriptor above 2.
 */

/* How a program is joined to what stands before it. */
enum program_join {
	PROGRAM_THEN, /* in any case */
	PROGRAM_AND,  /* when that ended with 0 */
	PROGRAM_OR,   /* when it did not */
	PROGRAM_PIPE, /* at the same time, reading what that writes to 1 */
};

struct program_item {
	enum program_join join;
	const char *const *argv;
};

/*
 * Start a process that runs the COUNT ITEMS by START, of which argv is not looked at. Its exit
 * code is that of the last program that ran: 128+N after signal N, 127 for one that was not
 * found, 126 for one that cannot be executed, with a line on 2. They stay in its process group.
 */
bool program_list_start_ahead(const struct program_start *start,
			      const struct program_item *items, size_t count,
			      struct program_ahead *ahead, struct err *err);

/*
 * A start's process between its making and its exec (program.c), and one that is
 * made before it is known what it shall become (program.c). For program*.c.
 */

/*
 * This process is not. What shares its memory is lowered by the kernel as well, and what
 * was made does so a moment longer than anybody is told by it: not before it has given a
 * sign.
 */
void program_score_lower(struct program_score *score);
