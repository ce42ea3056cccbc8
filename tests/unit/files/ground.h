/*
 * ground: a tree with roots in it, and the files of a worker that has these, for the tests of
 * files and places. Paths are below its base.
 */
#pragma once
#include "../base/unit.h"
#include "files/place.h"

/*
 * base/ws (writable), base/ws/blocked (blocked), base/lib (readable), base/secret (in no
 * root).
 */
struct ground {
	char base[64];
	char workspace[96];
	struct files *files;
};

int ground_set_up(void **state);
int ground_tear_down(void **state);

/* PATH, absolute. */
void ground_at(struct ground *here, const char *path, char out[256]);
void ground_put(struct ground *here, const char *path, const char *content);
void ground_folder(struct ground *here, const char *path);
/* A symbolic link at PATH. */
void ground_link(struct ground *here, const char *target, const char *path);
void ground_assert_holds(struct ground *here, const char *path, const char *content);

/* 0 when reached, else the code; the content's first bytes in FOUND when it is a file. */
int ground_reach(struct ground *here, const char *path, enum files_want want,
		 char found[64]);

/* From here on this process is like a program in a cell: it has no openat2. */
bool ground_refuse_openat2(void);
