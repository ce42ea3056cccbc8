/*
 * ranking: the best few of very many, in bounded memory. What is best is a file's time,
 * the newest first, then its path; or any order the caller brings.
 */
#pragma once
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One file or folder found. The three numbers are the finder's own. */
struct found {
	int64_t time_ns;  /* last change, since 1970 */
	char *path;       /* relative to the start of the walk */
	uint64_t count;   /* grep: matching lines; a folder: its files */
	uint64_t size;    /* bytes; a folder: its folders */
	uint64_t ignored; /* of a folder */
	size_t depth;
	int kind;     /* enum walk_kind */
	char *target; /* of a link, or NULL */
};

/* Does A come before B? */
typedef bool ranking_before(const struct found *a, const struct found *b);
/* Newest first, then by path. */
bool found_newer(const struct found *a, const struct found *b);

struct ranking {
	ranking_before *before;
	size_t max;
	struct found *items; /* a heap, the last one on top, until ranking_sort */
	size_t count, room;
};

void ranking_init(struct ranking *ranking, size_t max, ranking_before *before);
void ranking_fini(struct ranking *ranking);

/* Would FOUND (its path borrowed) be among the best so far? */
bool ranking_wants(const struct ranking *ranking, const struct found *found);
/* Add it when it is; `take_found.path` and `.target` move in or are freed. */
void ranking_add(struct ranking *ranking, struct found take_found);
/* Move all of OTHER in. */
void ranking_take_all(struct ranking *ranking, struct ranking *other);
/* Best first; afterwards nothing may be added. */
void ranking_sort(struct ranking *ranking);
/* Sort by another order than the one they were chosen by. */
void ranking_sort_by(struct ranking *ranking, ranking_before *before);
