/* folder: a temporary folder for one test, removed at the end with all that is in it. */
#pragma once
#include "../base/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FOLDER_PATH = 256 };

struct folder {
	char path[FOLDER_PATH];
	char file[FOLDER_PATH + 32]; /* a name in it */
};

static inline void folder_begin(struct folder *folder, const char *name)
{
	const char *place = getenv("TMPDIR");

	*folder = (struct folder){0};
	(void)snprintf(folder->path, sizeof(folder->path), "%s/glovebox-store-XXXXXX",
		       place ? place : "/tmp");
	if (!mkdtemp(folder->path))
		abort();
	(void)snprintf(folder->file, sizeof(folder->file), "%s/%s", folder->path, name);
}

static inline void folder_end(struct folder *folder)
{
	tree_remove(folder->path);
}
