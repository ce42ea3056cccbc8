/*
 * follow: the end of all that lives in this pid namespace, for its pid 1.
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
 * Whom nothing but the kernel works on any more executes no instruction: memory of many GiB
 * takes it 0.1 s each to give back, which an answer that is due need not wait for.
 */
enum { PROGRAM_END_PATIENCE_MS = 30 };

/*
 * Kill everything but this process and reap it; REAPED (may be NULL) is told each. Returns
 * when nothing is left, or after PATIENCE_MS (CLOCK_NEVER: not before) when all that is left
 * are dying processes as above: they go with the namespace.
 */
void follow_end_all(int64_t patience_ms,
		    void (*reaped)(void *context, pid_t pid, int status), void *context);

/* Reading one stream into what is kept of it (program.h has the struct). */

/*
 * One read from FD (non-blocking). PIECES are the bytes that came, valid until the next
 * read; the answer is read(2)'s.
 */
ssize_t follow_output_read(struct program_output *output, int fd, struct str pieces[2]);

/* Append the kept end. */
void follow_output_tail(const struct program_output *output, struct buf *text);

/*
 * PART is what OUTPUT has from byte SINCE on, to be looked at only and while OUTPUT stays as it
 * is; buf_fini its head.
 */
void follow_output_since(const struct program_output *output, uint64_t since,
			 struct program_output *part);

/* Bytes that lie between head and tail and are gone. */
uint64_t follow_output_missing(const struct program_output *output);

/*
 * The processes that are this one's children now, and an end to them and all that they
 * started. For who is no pid 1 and has no signal domain, where one kill(-1) does it: a
 * subreaper, to whom orphans come.
 */

/*
 * Children of all threads, as a list that ends with 0; free() it. FD: the kernel's list of
 * a process with one thread, opened when /proc still was open; 0: look it up.
 */
pid_t *follow_children_list(int fd);

/*
 * Kill and reap all but OTHERS (ends with 0; NULL: none), and what comes to this process
 * by that, until nothing is left. GROUP: a process group that goes too; 0: none. The number
 * of those that were still alive.
 */
unsigned follow_children_end(int fd, const pid_t *others, pid_t group);
