/*
 * children: the processes that are this one's children now, and an end to them and all
 * that they started. For who is no pid 1 and has no signal domain, where one kill(-1) does
 * it: a subreaper, to whom orphans come.
 */
#pragma once
#include <sys/types.h>

/*
 * Children of all threads, as a list that ends with 0; free() it. FD: the kernel's list of
 * a process with one thread, opened when /proc still was open; 0: look it up.
 */
pid_t *children_list(int fd);

/*
 * Kill and reap all but OTHERS (ends with 0; NULL: none), and what comes to this process
 * by that, until nothing is left. GROUP: a process group that goes too; 0: none. The number
 * of those that were still alive.
 */
unsigned children_end(int fd, const pid_t *others, pid_t group);
