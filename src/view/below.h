/*
 * below: the layers over which a cell works. An agent in a layer (review.h) has delegates; they
 * see what it sees, and what they write goes into a layer of their own, which lies over the
 * layer of their caller, which lies over that of its own caller, and so on down to the
 * person's folder. A layer names those below it (review_meta.over).
 *
 * The layers below are read only. Their sessions are at rest meanwhile, all but the jobs that
 * they have begun: what these write is seen from the next call on.
 *
 * One in which nobody works is locked as long as others work over it, so that it is neither landed
 * nor dropped meanwhile.
 *
 * Only layers that are open lie below: the files of a landed one are in the layer or folder that
 * is the next below, and a dropped one is gone.
 */
#pragma once

#include "base/err.h"
#include "view/review.h"

#include <stdbool.h>
#include <stddef.h>

/* Open layers, the nearest one first. */
struct below {
	struct review *reviews[REVIEW_OVER_MAX];
	size_t count;
};

/*
 * Open those of the COUNT layers OVER (names, the nearest one first) of WORKSPACE in FOLDER that
 * are open, for BY ("glovebox exec"). BELOW is zero; below_close in either case. False: one of them
 * cannot be read, or they are too many.
 */
bool below_open(const char *folder, const char *workspace, char *const *over,
		size_t count, const char *by, struct below *below, struct err *err);
void below_close(struct below *below);

/* One path in the layers. */
enum below_kind {
	BELOW_NOTHING, /* nothing: the folder that they lie over tells */
	BELOW_REMOVED, /* they have removed it, or a name above it */
	BELOW_FILE,    /* a file, the only one of `places` */
	BELOW_FOLDER,  /* folders, the highest one first */
};
struct below_found {
	enum below_kind kind;
	struct {
		int fd; /* O_PATH */
		char *path;
	} places[REVIEW_OVER_MAX];
	size_t count;
	bool hides; /* what lies below the last one is not seen */
};

/*
 * Find PATH, absolute and normal, in the layers BELOW, by the rules of the kernel. No link of a
 * layer is followed. FOUND is zero; below_found_fini in either case. BELOW NULL is fine.
 */
bool below_find(const struct below *below, const char *path, struct below_found *found,
		struct err *err);
void below_found_fini(struct below_found *found);
