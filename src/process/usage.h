/*
 * usage: what the processes of this pid namespace hold of the machine's memory, and how
 * many there are. For a pid 1 that has no control group to count for it. /proc must be
 * this namespace's own.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct usage {
	uint64_t memory; /* bytes, swapped ones included; pages of files are not counted */
	uint64_t tasks;  /* processes and threads, this process not among them */
};

/* What earlier looks have found out; zero it before the first. */
struct usage_memory {
	bool looked;
	uint64_t shared_at_first; /* of the whole machine, when the first look came */
};

/*
 * Add up; false for who is not pid 1, whose /proc would show more than what it started. Two
 * stages: what each process holds, shared pages counted once for each, costs
 * some microseconds per process. Only when that, together with what memory files of the
 * whole machine have grown by, is above LIMIT, their exact shares are asked for, which takes
 * the kernel milliseconds per GiB. LIMIT 0: memory is not asked for.
 */
bool usage_measure(struct usage_memory *memory, uint64_t limit, struct usage *usage);
