/*
 * usage: the memory of the machine that the processes of this pid namespace use, and
 * their number. For a pid 1 without a control group. /proc must belong to this pid
 * namespace.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct usage {
	/* bytes, including swapped pages and page tables; without files on disks */
	uint64_t memory;
	uint64_t tasks; /* processes and threads, without this process */
};

/* The state before the measured programs run. */
struct usage_memory {
	uint64_t shared_at_first; /* of the whole machine */
	/* in files of /tmp and /dev/shm, where these are memory file systems */
	uint64_t kept_at_first;
};

/* Call this before the measured programs start. */
void usage_begin(struct usage_memory *memory);

/*
 * Add up the usage. False when this process is not pid 1, because its /proc would show
 * other processes as well. There are two stages. The first adds the memory of each
 * process, with shared pages counted once for each process; this costs some
 * microseconds per process. When this sum, plus the growth of the machine's memory
 * files, is above LIMIT, the second stage asks for exact shares, which takes the kernel
 * milliseconds per GiB. LIMIT 0: memory is not measured.
 *
 * Memory files count when a process has them open, and so does the growth of /tmp and
 * /dev/shm. If some may be hidden (by a process that lets nobody look, or in transit
 * through a socket), the whole growth of the machine's memory files counts, because
 * nobody could tell them apart.
 */
bool usage_measure(struct usage_memory *memory, uint64_t limit, struct usage *usage);
