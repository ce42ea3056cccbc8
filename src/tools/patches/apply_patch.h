/*
 * apply_patch: one patch while it is applied, for apply_patch.c and take_patch.c: the set
 * (apply_patch.c), the checks before it (apply_patch.c), the answer (apply_patch.c).
 */
#pragma once

#include "tools/patches/patch.h"
#include "tools/shown.h"

#include <stdbool.h>
#include <stddef.h>

/* One file of the patch while it is worked on. */
struct patch_target {
	const struct patch_file *file;
	struct written from; /* what is there; an added file: where it will be */
	struct written to;   /* of a move, else unused */
	struct patch_outcome *outcomes;
	struct buf content;
	bool unchanged; /* everything of it was made before */
};

struct patching {
	struct call *call;
	struct tool_result *result;
	struct patch patch;
	struct patch_target *targets;
	size_t count;
	bool given_ends; /* new lines keep the line ends that the patch has */
	/*
	 * More that must hold of a verified target, or NULL. False with the sentence in the
	 * result.
	 */
	bool (*fits)(struct patching *patching, struct patch_target *target);
	void *context; /* of `fits` */
};

/* Verify all files of `patch`, which was read, and write them; the answer. */
enum result_status patching_files(struct patching *patching);

/* A tool's visit_paths for the patch in its argument `patch`. */
void patching_paths(const struct value *arguments,
		    void (*visit)(void *context, const char *path), void *context);
