/*
 * follow: waits for the end of a program, and ends all other processes of this pid
 * namespace. Used by the pid 1 of the namespace.
 *
 * The module waits at the same time for the output, the end, a stop and the clock. It
 * knows to which run the processes belong, ends those that are left, and keeps the
 * first and the last bytes of the output.
 */
#pragma once

#include "process/program.h"

#include <stdint.h>
#include <sys/types.h>

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
 * Lists and ends the children of this process with all their descendants. For a
 * subreaper, which adopts orphans. A pid 1, or a process with a signal domain, uses one
 * kill(-1) instead.
 */

/*
 * The children of all threads, as a list that ends with 0; free() it. FD: the kernel's
 * list for a process with one thread, opened before /proc was closed; 0: open the lists
 * now.
 */
pid_t *follow_children_list(int fd);

/*
 * Kill and reap all children except OTHERS (ends with 0; NULL: none), and the orphans
 * that this process adopts by that, until none is left. GROUP: a process group to kill
 * as well; 0: none. Returns the number of children that were still alive.
 */
unsigned follow_children_end(int fd, const pid_t *others, pid_t group);
