/*
 * cluster: the shards of a job on many machines, by a scheduler that is there already: an
 * array of Slurm, or an indexed Job of Kubernetes. Each part is `glovebox batch --shard I/N`
 * over the same store, so a part that is started again goes on where the last one was killed.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	CLUSTER_ARRAY_MAX =
		1001, /* Slurm's MaxArraySize unless its configuration says otherwise */
	CLUSTER_TEXT_MAX = 1 << 20,
};

struct cluster_job {
	const char *job;   /* its name */
	const char *store; /* absolute, or s3:// */
	size_t tasks;
	size_t cells;   /* of each part, 0: what its machine has */
	size_t shards;  /* 0: as many as fit the tasks */
	size_t at_once; /* parts at the same time; 0: all */
	/* Further words of each part, NULL-ended: "--retry", "gave_up", … */
	const char *const *words;
};

/*
 * Read N or N%M. False: ERR.
 */
bool cluster_read_shards(const char *text, size_t *shards, size_t *at_once, struct err *err);

/* Most parts that Slurm takes here: by `scontrol show config`, or CLUSTER_ARRAY_MAX. */
size_t cluster_array_max(void);
/* Append the script of an array with at most MOST parts. */
bool cluster_add_slurm(const struct cluster_job *job, size_t most, struct buf *script,
		       struct err *err);
/*
 * Hand SCRIPT to sbatch with the words of OPTIONS, a text as for a shell (or NULL). SAID gets the
 * words of sbatch.
 */
bool cluster_submit(const char *options, const struct buf *script, struct buf *said,
		    struct err *err);

/* Append the manifest of an indexed Job, in YAML. IMAGE: that has our program. */
bool cluster_add_kubernetes(const struct cluster_job *job, const char *image,
			    struct buf *manifest, struct err *err);
