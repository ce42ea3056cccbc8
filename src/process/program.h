/*
 * program: start one program, or a list of them; follow.h follows it to its end.
 * vfork-style start (never a plain fork from a large process), own process group,
 * descriptors 0-2 given and everything above 2 closed.
 */
#pragma once

#include "base/err.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
	/*
	 * A folder that programs see at another place: they start at that one (program_folder).
	 * NULL: there is none.
	 */
	const char *own, *shown;
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
	 * The program gets a process group of its own, but stays in the caller's session, as
	 * the jobs of a shell do: the caller may give it the terminal
	 */
	bool is_job;
	/* The kernel kills the program when the thread that starts it ends */
	bool ends_with_us;
	/*
	 * Not NULL: run this function with CONTEXT in a copy of this process, instead
	 * of a program. It returns the exit code. argv[0] names it in sentences.
	 */
	int (*body)(void *context);
	void *context;
	/*
	 * The caller ignores and blocks no signals; saves 64 system calls
	 * (program_plain_signals)
	 */
	bool signals_are_plain;
};

/*
 * Block SIGCHLD, set its default action, and make the signalfd of program_terms. BEFORE
 * (or NULL) gets the former signal mask. Returns -1 with errno on failure.
 */
int program_ends_open(sigset_t *before);

/*
 * FOLDER, absolute, as programs with TERMS see it: itself, or put into ROOM the place where it is
 * shown. Returns it.
 */
const char *program_folder(const struct program_terms *terms, const char *folder,
			   char room[PATH_MAX]);

/* Reset every signal of this process to the state in a new process. */
void program_plain_signals(void);

/*
 * Start a program. ERR.code on failure: ENOENT (not found: exit code 127),
 * EACCES/ENOEXEC (not executable: 126), E2BIG, ENOTDIR (folder), ECHILD (any other step
 * before the exec), else the errno of the exec.
 */
bool program_start(const struct program_start *start, pid_t *pid, struct err *err);
/*
 * Start a program that belongs to nobody here: it has no terminal, outlives this process, and
 * nobody waits for it. Its argv, environment, folder and fds count, and nothing else of START.
 */
bool program_start_apart(const struct program_start *start, struct err *err);

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
 * The children of all threads, as a list that ends with 0; free() it. FD: the kernel's
 * list for a process with one thread, opened before /proc was closed; 0: open the lists
 * now.
 */
pid_t *program_children_list(int fd);

/*
 * Set this process's own oom_score_adj again; SCORE may be NULL. Do it only after the
 * program has given a first sign: the kernel would lower the value of a child that
 * still shares our memory as well, and nobody reports when a child has stopped sharing
 * it.
 */
void program_score_lower(struct program_score *score);
