/* pending_parts: the inside of a pending, for pending.c and pending_left.c. */
#pragma once
#include "cell/pending.h"

#include <stddef.h>

enum {
	PENDING_PROJECT_DIGITS = 16, /* of the workspace's hash, as for its home */
	PENDING_NAME = 64,
	PENDING_MAX = 8 << 20, /* of guard and rights */
};

/* The key of a line that holds neither guard nor rights but a granted folder. */
#define PENDING_GRANTED "granted"

struct pending_name {
	char text[PENDING_NAME];
};

/* The locked file of a dead front. */
struct pending_left {
	int fd;
	struct pending_name name;
};

struct pending {
	int folder, fd;
	char name[PENDING_NAME];
	bool due, has_rights;
	unsigned last;               /* journal made last */
	struct pending_journal idle; /* the journal that the next call gets */
	struct pending_left *left;   /* the files of dead fronts */
	size_t left_count;
	struct value *granted; /* the writes of sets that meet folders granted by a person */
	struct value *granted_roots; /* and these folders */
	struct value *writes; /* the allowed writes of the journals of dead fronts; NULL: none */
	int64_t sets;         /* number of journals taken over */
	bool keeps_left; /* some writes could not be finished in this session */
};

/*
 * Take over the files of PROJECT that dead fronts left: their locked files become `left`,
 * their writes `writes` or `granted`, and GUARD the guard with which they began.
 */
void pending_take_over(struct pending *pending, const char *project, struct value *guard);
/* Close the files in `left` and, with REMOVE, delete them. */
void pending_remove_left(struct pending *pending, bool remove);
