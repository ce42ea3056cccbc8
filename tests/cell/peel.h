/*
 * peel: what a wall's row may do with a process at the beginning of one of its calls.
 * x86-64 only: it changes registers.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum role {
	ROLE_FRONT,
	ROLE_STARTER,
	ROLE_MAPPING,
	ROLE_ANCHOR,
	ROLE_HELPER, /* of the anchor: it makes the network */
	ROLE_WORKER,
	ROLE_COMMAND,
};

struct process {
	pid_t pid;
	enum role role;
	bool known, stopped; /* a new one is met by its own stop or by its parent's, first */
	long number;         /* of the call that begins */
	unsigned long arguments[6];
	unsigned long spaces; /* the flags of a clone, as they were meant */
	bool serves;          /* a worker to which a call has come */
	bool answered;        /* the call is not made; this is its answer */
	long answer;
	/* for rows that need more than one call */
	bool wants_fd; /* of the openat that begins */
	int fd, count;
};

/* One wall: how it is taken away. The list of walls is peel_walls and no other. */
struct wall {
	const char *name, *what;
	void (*remove)(struct process *process);
	/* "closed": without it no cell starts; "closed for root"; NULL: it has witnesses */
	const char *closed;
};

/* Ends with a row without a name. */
extern const struct wall peel_walls[];

/* The call is not made; its answer is ANSWER (0, or a negative errno). */
void peel_answer(struct process *process, long answer);
void peel_argument(struct process *process, int index, unsigned long value);
bool peel_read(const struct process *process, unsigned long address, void *bytes,
	       size_t size);
bool peel_text_is(const struct process *process, unsigned long address, const char *text);
void peel_write_word(const struct process *process, unsigned long address,
		     unsigned long word);
void peel_write(const struct process *process, unsigned long address, const void *bytes,
		size_t size);
unsigned long peel_stack(const struct process *process);
/* Of prctl(PR_SET_DUMPABLE, 0): it is not made. */
void peel_keep_dumpable(struct process *process);
