/*
 * walled: for a child of a worker that reads foreign bytes (a PDF, a page of the web): it may do less
 * than the other programs of the cell. Landlock forbids every change of a file's content and of
 * folders, TCP, and signals and traces of other processes. A filter forbids all sockets, and the
 * changes of modes, owners, times and attributes that Landlock does not know.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct walled {
	uint64_t memory; /* bytes of address space */
	unsigned cpu_s;
	bool network; /* it may make sockets and connect, as far as the cell lets it */
};

/* Wall this process in. False: the kernel of this machine cannot; then the process must end. */
bool walled_enter(const struct walled *walls);
