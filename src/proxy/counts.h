/*
 * counts: the bytes of the network that a process outside of a cell carries for it, by host.
 * The proxy and the broker count in memory that they share with the front, so that the front
 * reads the numbers at any time and waits for nobody. They only write there, and the front
 * only reads. A process that was taken over could write anything: the front believes no text
 * of it that is no host, and the numbers are for the cell's own accounts only.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "policy/network.h"

#include <stdint.h>

/* Further hosts are counted together, in the last row. */
enum { COUNTS_HOSTS = 64 };

struct counts_row {
	char host[NETWORK_TEXT_MAX]; /* host:port; empty: the row is free */
	uint64_t in, out;            /* bytes that the cell received and sent */
};

struct counts {
	struct counts_row rows[COUNTS_HOSTS];
};

/* Make the memory. *FD is for the other process, *COUNTS for this one, which only reads it. */
bool counts_make(int *fd, struct counts **counts, struct err *err);
/* The memory behind *TAKE_FD, to count in; NULL: it cannot be had, and nothing is counted. */
struct counts *counts_take(int *take_fd);
void counts_free(struct counts *counts);

/* Count for HOST; COUNTS NULL is fine. */
void counts_add(struct counts *counts, const char *host, uint64_t in, uint64_t out);
/* Add the rows to LIST, as {host, in, out}, unless it is NULL, and their sums to *IN and *OUT. */
void counts_tell(const struct counts *counts, struct value *list, uint64_t *in,
		 uint64_t *out);
