/*
 * projects: the stores of all workspaces (store.h), seen from outside: the space that they take, and
 * the removal of old steps. A store that a session uses is left unchanged.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNDO_PROJECT_NAME = 17 /* with its NUL: digits of the workspace's hash */ };

/* The default limit on the space of all stores together. */
#define UNDO_ALL_MAX ((uint64_t)10 << 30)

struct undo_project {
	char name[UNDO_PROJECT_NAME]; /* of its folder */
	char *workspace;              /* NULL: unknown; owned */
	/* on disk, without objects that git holds as well */
	uint64_t bytes;
	int64_t oldest_ms, newest_ms; /* of its logs; 0: there are none */
	bool used;                    /* by a running session */
};
struct undo_projects {
	struct undo_project *items;
	size_t count;
};

/*
 * The stores in FOLDER; none where there is no such folder. undo_projects_fini in
 * either case.
 */
bool undo_projects_list(const char *folder, struct undo_projects *projects, struct err *err);
void undo_projects_fini(struct undo_projects *projects);
/* Is NAME how the folder of a store is named? */
bool undo_projects_is_name(const char *name);

/*
 * Remove the steps of the store NAME that began before OLDEST_MS (INT64_MAX: all), and
 * its folder when no log is left. False: a session uses it, or it is no store.
 */
bool undo_projects_prune(const char *folder, const char *name, int64_t oldest_ms);

/*
 * While all stores take more than MAX bytes, remove the oldest steps of all workspaces
 * that are not in use. Returns the number of bytes left.
 */
uint64_t undo_projects_tidy(const char *folder, uint64_t max);
