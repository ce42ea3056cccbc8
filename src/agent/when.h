/*
 * when: the times of a schedule, in one of two forms.
 *
 *	0 9 * * 1-5       the five fields of crontab(5), or one of its names (@daily)
 *	Mon..Fri 09:00    systemd's OnCalendar, as systemd.time(7) has it
 *
 * Cron's day may also be `L`, the last day of the month. An OnCalendar has whole seconds,
 * and no "@" with a number of seconds. Times in words are refused, and the sentence names the
 * forms that are nearest to them. A time that the clock skips in spring becomes as much
 * later. A time that the clock shows twice in autumn counts once (twice when every hour
 * fits). Pure, except that it reads the machine's table of time zones.
 *
 * Version 0.1.0 also stored intervals ("every 90 minutes", counted from `made_s`), which
 * are still read here.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "store/schedules.h"

#include <stdbool.h>
#include <stdint.h>

/* The longest text, and the longest name of a zone. */
enum { WHEN_TEXT_MAX = 200, WHEN_ZONE_MAX = 64 };

/* Open the schedules of the user. */
bool when_open_default(struct schedules **schedules, struct err *err);

/*
 * Replace TIMES by WHEN as it was written, with one blank between its words, and find its
 * next run after NOW_S in ZONE (NULL: the one in WHEN, or the machine's). ERR: WHEN or ZONE
 * is wrong, both name a zone, or WHEN has no time after NOW_S.
 */
bool when_schedule_settle(const char *when, const char *zone, int64_t now_s,
			  struct buf *times, int64_t *next_s, struct err *err);

/*
 * The first run of the stored TIMES in ZONE (empty: the machine's) after NOW_S; 0: there
 * is none. Intervals count from BEGAN_S.
 */
int64_t when_schedule_next(struct str times, struct str zone, int64_t began_s,
			   int64_t now_s);

/*
 * Append "runs: Mon 2026-11-23 09:00 CET, …": the next three runs after NOW_S, or "none".
 */
void when_schedule_add_runs(struct str times, struct str zone, int64_t began_s,
			    int64_t now_s, struct buf *out);

/*
 * Append all of SCHEDULE: a head line, the lines about its times, and the task between
 * bars, with every byte that is not plain text made visible.
 */
void when_schedule_add(const struct schedule *schedule, int64_t now_s, struct buf *out);

/*
 * Make RENEWED a copy of SCHEDULE in the form of today. True: the times of SCHEDULE are an
 * interval, and an OnCalendar has exactly the same times. Its text is appended to TIMES.
 */
bool when_schedule_renew(const struct schedule *schedule, struct buf *times,
			 struct schedule *renewed);
