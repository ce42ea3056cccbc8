/*
 * undo_projects: the undo stores of all workspaces, seen from outside: what they take, and which of
 * their steps may go. A store that a session uses is left alone.
 */
#pragma once
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UNDO_PROJECT_NAME = 17 /* with its NUL: digits of the workspace's hash */ };

/* What all stores may take together unless the configuration says otherwise. */
#define UNDO_ALL_MAX ((uint64_t)10 << 30)

struct undo_project {
	char name[UNDO_PROJECT_NAME]; /* of its folder */
	char *workspace;              /* NULL: it does not say; owned */
	uint64_t bytes;               /* on disk, without what git holds anyway */
	int64_t oldest_ms, newest_ms; /* of its logs; 0: there are none */
	bool used;                    /* by a session that lives */
};
struct undo_projects {
	struct undo_project *items;
	size_t count;
};

/* The stores in FOLDER; none where there is no such folder. undo_projects_fini in either case. */
bool undo_projects_list(const char *folder, struct undo_projects *projects, struct err *err);
void undo_projects_fini(struct undo_projects *projects);

/*
 * Let the steps of the store NAME go that began before OLDEST_MS (INT64_MAX: all), and its folder
 * when it is empty then. False: a session uses it, or it is no store.
 */
bool undo_projects_prune(const char *folder, const char *name, int64_t oldest_ms);

/*
 * While all stores take more than MAX bytes, let the oldest steps go, of any workspace but those in
 * use. How many bytes are left.
 */
uint64_t undo_projects_tidy(const char *folder, uint64_t max);
