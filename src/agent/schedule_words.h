/* schedule_words: schedules as people and models read them, and when they are due. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "store/schedules.h"

#include <stdbool.h>
#include <stdint.h>

/* The schedules of the user. */
bool schedules_open_default(struct schedules **schedules, struct err *err);

/*
 * The first run of TIMES in ZONE (empty: the machine's) after NOW_S; 0: there is none. TIMES
 * was parsed before it was kept.
 */
int64_t schedule_next(struct str times, struct str zone, int64_t began_s, int64_t now_s);

/* "runs: Mon 2026-11-23 09:00 CET, …": the next three of them after NOW_S. */
void schedule_add_runs(struct str times, struct str zone, int64_t began_s, int64_t now_s,
		       struct buf *out);

/*
 * Append all of SCHEDULE: a head line, the lines that say when, and the task between bars, every
 * byte that is not plain made visible.
 */
void schedule_add(const struct schedule *schedule, int64_t now_s, struct buf *out);

/*
 * The one form of WHEN in ZONE (NULL: the machine's), which is checked: TIMES is replaced. False
 * as when_parse, or when there is no such time at all.
 */
bool schedule_settle(const char *when, const char *zone, int64_t now_s, struct buf *times,
		     int64_t *next_s, struct err *err);
