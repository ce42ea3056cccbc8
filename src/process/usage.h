/*
 * usage: what the processes of this pid namespace hold of the machine's memory, and how
 * many there are. For a pid 1 that has no control group to count for it. /proc must be
 * this namespace's own.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct usage {
	/* bytes, swapped ones and the tables of pages included; files of disks are not counted */
	uint64_t memory;
	uint64_t tasks; /* processes and threads, this process not among them */
};

/* How it was when it began. */
struct usage_memory {
	uint64_t shared_at_first; /* of the whole machine */
	uint64_t kept_at_first; /* in the files of /tmp and /dev/shm, where these are memory */
};

/* Before what is to be measured runs. */
void usage_begin(struct usage_memory *memory);

/*
 * Add up; false for who is not pid 1, whose /proc would show more than what it started. Two
 * stages: what each process holds, shared pages counted once for each, costs
 * some microseconds per process. Only when that, together with what memory files of the
 * whole machine have grown by, is above LIMIT, their exact shares are asked for, which takes
 * the kernel milliseconds per GiB. LIMIT 0: memory is not asked for.
 *
 * Memory files count that a process has open, and what /tmp and /dev/shm have grown by. Where some
 * can be kept out of sight (by a process that lets nobody look, or on their way through a socket),
 * all that the machine's have grown by is theirs: nobody could tell it apart.
 */
bool usage_measure(struct usage_memory *memory, uint64_t limit, struct usage *usage);
