/*
 * claim: which process works on a shard of a job, so that a shard whose process has ended can
 * be taken over. Shard I of N are the tasks whose number modulo N is I; its claim is the object
 * jobs/J/claims/I-of-N.json. Claims save work and money; what keeps results apart is the store, so a
 * claim that two processes have for a moment costs a task that is done twice, and nothing else.
 *
 * The holder changes its claim every FLEET_CLAIM_RENEW_S. Clocks of machines are never compared:
 * a claim is stale when the looker has seen it unchanged for FLEET_CLAIM_STALE_S by its own
 * clock, or when the holder was a process of this machine that has ended, or an earlier start of
 * the same task of a Slurm array.
 */
#pragma once

#include "base/err.h"
#include "fleet/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLEET_CLAIM_RENEW_S = 60, FLEET_CLAIM_STALE_S = 300, FLEET_SHARDS_MAX = 100000 };

enum fleet_claimed {
	FLEET_CLAIM_MINE,
	FLEET_CLAIM_LIVES, /* it has changed since the first look, or its process runs here */
	FLEET_CLAIM_UNSURE, /* neither changed nor stale yet: look again */
	FLEET_CLAIM_FAILED,
};

/* One shard as this process sees it; not for several threads at the same time. */
struct fleet_claim;

struct fleet_claim *fleet_claim_new(struct fleet_store *store, const char *job,
				    size_t shard, size_t shards);
void fleet_claim_free(struct fleet_claim *claim);
/* Have the shard, or look at it once more. NOW_MS: clock_now_ms. */
enum fleet_claimed fleet_claim_take(struct fleet_claim *claim, int64_t now_ms,
				    struct err *err);
/* The holder at the last look: "HOST, process 12"; "" before. */
const char *fleet_claim_holder(const struct fleet_claim *claim);
/*
 * Change a claim of ours when that is due. False: somebody else has it (EEXIST in ERR), or the
 * store failed, and it is tried again when this is called again.
 */
bool fleet_claim_renew(struct fleet_claim *claim, int64_t now_ms, struct err *err);
/* Let others have it at once. */
void fleet_claim_release(struct fleet_claim *claim);
