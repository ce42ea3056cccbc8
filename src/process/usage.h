/*
 * usage: what programs use of the machine. While they run: their memory and their number,
 * measured by a pid 1 without a control group, whose /proc belongs to its pid namespace.
 * When they have ended: their accounts.
 */
#pragma once
#include "base/value.h"

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

/*
 * The accounts of a command, or of a whole cell: what it has used, and for each quantity
 * how that was counted. An estimate is told as one: its source says so.
 */

enum accounts_source {
	ACCOUNTS_NONE, /* nothing counted: the numbers are 0 */
	/* control groups of the kernel: exact, whatever the processes do */
	ACCOUNTS_CGROUP2,
	ACCOUNTS_CGROUP1,
	/*
	 * the kernel's sums over all processes that were waited for (getrusage). A process
	 * that ignores SIGCHLD waits for none of its children, and they are missing.
	 */
	ACCOUNTS_RUSAGE,
	/* the highest of looks 100 ms apart, or the largest single process if that is more */
	ACCOUNTS_SAMPLED,
	ACCOUNTS_PROXY, /* the proxy of the cell, which carries every byte */
};

struct accounts {
	double cpu_s, cpu_user_s; /* of all processors; in all, and the part in user mode */
	double wall_s;
	uint64_t memory_peak;       /* bytes at the same time */
	uint64_t written, read;     /* bytes, to and from disks */
	uint64_t net_in, net_out;   /* bytes that the cell received and sent */
	uint64_t processes_peak;    /* processes and threads at the same time */
	uint64_t processes_refused; /* … that a group did not let begin; not printed */
	/* the number of processes comes with the memory */
	enum accounts_source cpu, memory, io, net;
	const char *limit; /* the key of `limits` that ended it, borrowed; NULL: none did */
};

/*
 * Fill in the processor time and the bytes of files of all children of this process that
 * were waited for, with their descendants, and the memory of the largest.
 */
void accounts_of_children(struct accounts *accounts);
/* ACCOUNTS as JSON (docs/accounts.md). */
struct value *accounts_value(const struct accounts *accounts);
