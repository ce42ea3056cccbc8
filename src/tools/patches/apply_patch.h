/*
 * apply_patch: one patch while it is applied: the checks before it, the set of its files,
 * the answer. For apply_patch.c and take_patch.c only.
 */
#pragma once

#include "tools/patches/patch.h"
#include "tools/shown.h"

#include <stdbool.h>
#include <stddef.h>

/* One file of the patch while it is worked on. */
struct patch_target {
	const struct patch_file *file;
	struct written from; /* the old file; for an added file: its place */
	struct written to;   /* the new place of a move; else unused */
	struct patch_outcome *outcomes;
	struct buf content;
	bool unchanged; /* all its changes were made before */
};

struct patching {
	struct call *call;
	struct tool_result *result;
	struct patch patch;
	struct patch_target *targets;
	size_t count;
	bool given_ends; /* new lines keep the line ends of the patch */
	/*
	 * A further check of a verified target, or NULL. False: the result has the
	 * sentence.
	 */
	bool (*fits)(struct patching *patching, struct patch_target *target);
	void *context; /* of `fits` */
};

/* Verify all files of `patch`, which was read, and write them. Returns the answer. */
enum result_status patching_files(struct patching *patching);

/* A tool's visit_paths for the patch in its argument `patch`. */
void patching_paths(const struct value *arguments,
		    void (*visit)(void *context, const char *path), void *context);
