/*
 * walk_parts: what walk.c (the threads and their work) and walk_folder.c (reading one
 * folder) share and nobody else includes.
 */
#pragma once
#include "tools/search/walk.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	/*
	 * The kernel fills it with some 2,000 entries at once; more gains nothing
	 * measurable.
	 */
	WALK_FOLDER_BUFFER = 64 << 10,
	/* Folders waiting to be read, as bytes: far over any tree people work in. */
	WALK_PENDING_MAX = 64 << 20,
};

/* A folder to be read, or a part of one that was read already. */
struct walk_item {
	struct rules *rules; /* that hold around it; of a part: inside it */
	size_t depth;        /* of the folder; the start is 0 */
	bool ignored;        /* so is all that is in it */
	bool count_only;     /* below the depth wanted */
	char *part;          /* directory entries, NULL: to be read */
	size_t part_size;
	size_t path_size;
	char path[]; /* relative to the start */
};

struct walk_stack {
	struct walk_item **items;
	size_t count, room;
};

struct walk;

struct walker {
	struct walk *walk;
	unsigned number;
	pthread_t thread;
	struct walk_stack stack;
	char *buffer; /* WALK_FOLDER_BUFFER */
	/* relative to the root of all rules; an entry's own begins at path_at */
	char *path;
	size_t path_at;
	uint64_t folder; /* number of the one being read */
	uint64_t entries, folders, ignored, unreadable, too_long;
	char apart[WALK_APART];
};

struct walk {
	const struct walk_start *start;
	const struct walk_options *options;
	struct str under;
	uint64_t entries_max;
	unsigned threads_max;
	int64_t begun_us;
	struct walker walkers[WALK_THREADS_MAX];
	unsigned walker_count; /* running, thread 0 included */
	/* Read at each entry, seldom written. */
	atomic_int end; /* enum walk_end, set once */
	atomic_uint idle;
	char apart[WALK_APART];
	atomic_size_t pending; /* bytes of all items */
	/* of all threads, brought up to date now and then */
	atomic_uint_least64_t entries;

	pthread_mutex_t lock; /* for the rest */
	pthread_cond_t changed;
	struct walk_stack shared;
	bool finished;
	struct buf *example;
};

/* Set why the walk ends; the first reason stays. */
void walk_end_with(struct walk *walk, enum walk_end end);

struct walk_item *walk_item_new(struct walk *walk, struct rules *rules, struct str path,
				struct str part);
void walk_stack_push(struct walk_stack *stack, struct walk_item *item);

/* Is somebody, or somebody still to be called, without work? */
bool walker_others_idle(struct walker *walker);
/* Give ITEMS to the threads without work. */
void walk_share(struct walk *walk, struct walk_item *const *items, size_t count);
/*
 * Give the oldest folders, which hold the largest trees, to others without work; keep
 * KEPT.
 */
void walker_share_folders(struct walker *walker, size_t kept);

/* Read one folder, or take up a part of one, and visit what is in it. */
void walker_read(struct walker *walker, const struct walk_item *item);
