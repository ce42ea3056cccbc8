/*
 * commits: the commits of a layer, and how they come into the repository of the workspace.
 * The files of a layer in `.git` are never copied: its settings and hooks are nothing that a
 * layer may change. Git fetches the new commits, and checks each object, from a repository
 * that only this module writes, which has the objects of the layer and of the workspace
 * behind it, into refs/glovebox/ID/. A branch that still is where the layer began moves
 * on; any other one stays, and the report names the command that merges it.
 */
#pragma once

#include "base/err.h"
#include "base/value.h"
#include "files/record.h"
#include "tool/call.h"
#include "tools/review/before.h"
#include "tools/review/upper.h"
#include "undo/place.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	COMMITS_REFS_MAX = 1000,
	COMMITS_NAME = 65, /* of an object, with its NUL */
	COMMITS_TAGS_MAX = 20,
};

struct commits_ref {
	char *name; /* "refs/heads/main", or "HEAD" for commits on no branch */
	char layer[COMMITS_NAME], below[COMMITS_NAME]; /* "": not there */
	int count;                                     /* new commits; -1: unknown */
	bool moves; /* the branch below is where the layer began, or in its past */
	bool past;  /* the latter, as far as the objects of the layer can be believed */
	bool moved;
	bool sound; /* git knows the commit */
};

/* A tag that the workspace does not have; it is never landed. */
struct commits_tag {
	char *name; /* without "refs/tags/" */
	char object[COMMITS_NAME];
};

struct commits {
	struct commits_ref refs[COMMITS_REFS_MAX];
	size_t count;
	struct commits_tag tags[COMMITS_TAGS_MAX]; /* further ones are not told */
	size_t tag_count;
	char head[COMMITS_NAME];       /* the commit that the workspace is on; "": none */
	char *id, *layer, *repository; /* the last is of our own, or NULL */
	const struct upper_tree *tree; /* of the workspace; borrowed */
	bool has_stash, has_notes, has_staged, elsewhere;
	const char *trouble; /* why nothing was fetched; or NULL */
	const char *unread;  /* why some branches of the layer are not known; or NULL */
};

/*
 * LAYER is the path of the layer of the workspace in the view, and TREE (borrowed) the
 * workspace's tree. COMMITS is zero.
 */
void commits_look(struct commits *commits, struct call *call, const char *layer,
		  const struct upper_tree *tree, const char *id,
		  const struct before *before);
/*
 * Wait a second for a git that writes the index of the workspace. False: the index is held, ERR
 * says what to do, and a landing that moved the branch of the user could not tell the index.
 */
bool commits_wait_for_index(struct call *call, struct err *err);
/*
 * Fetch the commits and move branches. What changes in the repository goes into LOG, by
 * PLACES. False: LOG could not be written.
 */
bool commits_land(struct commits *commits, struct call *call, struct undo_log *log,
		  struct undo_places *places, struct err *err);
/* Add the member `git` to REPORT, when there is something to tell. */
void commits_report(const struct commits *commits, struct value *report);
void commits_fini(struct commits *commits);
