/* pending_parts: the inside of a pending, for pending.c and pending_left.c. */
#pragma once
#include "cell/pending.h"

#include <stddef.h>

enum {
	PENDING_PROJECT_DIGITS = 16, /* of the workspace's hash, as for its home */
	PENDING_NAME = 64,
	PENDING_MAX = 8 << 20, /* of guard and rights */
};

/* The key of a line that is no guard and no rights. */
#define PENDING_GRANTED "granted"

struct pending_name {
	char text[PENDING_NAME];
};

/* A file of a dead front's, locked. */
struct pending_left {
	int fd;
	struct pending_name name;
};

struct pending {
	int folder, fd;
	char name[PENDING_NAME];
	bool due, has_rights;
	unsigned last;               /* journal made last */
	struct pending_journal idle; /* one that the next call gets */
	struct pending_left *left;   /* of dead fronts */
	size_t left_count;
	struct value *granted; /* those of sets that meet folders which a person granted */
	struct value *granted_roots; /* and these folders */
	struct value *writes; /* what their journals say that may be done; NULL: nothing */
	int64_t sets;         /* so many journals are in it */
	bool keeps_left;      /* some of them could not be finished in this session */
};

/*
 * Take over what dead fronts left of PROJECT: their files become `left`, their writes `writes`,
 * and GUARD what they began with.
 */
void pending_take_over(struct pending *pending, const char *project, struct value *guard);
/* Let go of `left`, and REMOVE it. */
void pending_remove_left(struct pending *pending, bool remove);
