/*
 * program_parts: a start's process between its making and its exec (program_child.c), and
 * one that is made before it is known what it shall become (program_launcher.c). For
 * program*.c.
 */
#pragma once
#include "process/program.h"

#include <time.h>

enum {
	/* A dozen system calls are made on it; each page of it is a fault of every start. */
	PROGRAM_CHILD_STACK = 16 << 10,
	PROGRAM_MORE_FDS_MAX = 8,
};

/* Where one that is made ahead stands; a word of a futex. */
enum launcher_turn { TURN_NONE, TURN_MAKING, TURN_WAITS, TURN_RISES, TURN_GO };

enum child_step {
	STEP_DESCRIPTORS = 1,
	STEP_FOLDER,
	STEP_FILTER,
	STEP_SESSION,
	STEP_EXEC
};

struct program_child {
	const struct program_start *start;
	struct program_terms terms; /* START's, or none */
	const char *candidates; /* names to try, each ended by NUL; then an empty one */
	int keep[PROGRAM_MORE_FDS_MAX]; /* descriptors that stay, ascending */
	size_t keep_count;
	volatile enum child_step failed;
	volatile int code;
	volatile int listener; /* in the table of descriptors that is shared until then */
	int turn;              /* enum launcher_turn; TURN_NONE: does not wait */
	/* not 0 while it shares our memory: the kernel clears it at its exec or end */
	int shares;
};

/*
 * The main function of the child, on a stack of its own in our memory. CHILD is the
 * context. When it returns, the child did not become the program, and `code` and `failed`
 * are set.
 */
int program_child_main(void *child);
/* Start the child and wait until it has become the program or failed. Its pid, or -1. */
pid_t program_child_begin(struct program_child *child);

/* The same for a start with a body: a copy of this process, and CHILD is in shared memory. */
pid_t program_child_copy(struct program_child *child);

/* Processes made from now on are among the first that the kernel kills. NULL is fine. */
void program_score_raise(struct program_score *score);
/*
 * This process is not. What shares its memory is lowered by the kernel as well, and what
 * was made does so a moment longer than anybody is told by it: not before it has given a
 * sign.
 */
void program_score_lower(struct program_score *score);

/* On either side: rest while WORD is VALUE, at MOST so long (NULL: for ever). */
void program_child_rest(int *word, int value, const struct timespec *most);
/* It is TURN now; the other side is woken. */
void program_child_turn(struct program_child *child, enum launcher_turn turn);

/* Can LAUNCHER, which may have died meanwhile, become what START says? */
bool program_launcher_fits(const struct program_launcher *launcher,
			   const struct program_start *start);
/* Begin CHILD in the process that waits; *LAUNCHER is then used up. Its pid. */
pid_t program_launcher_begin(struct program_launcher **launcher,
			     struct program_child *child);
