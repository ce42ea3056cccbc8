/*
 * when: the times of a schedule. A schedule has five fields as in crontab(5) (minute,
 * hour, day of the month, month, day of the week), or plain words that mean one thing.
 * When both day fields are restricted, a day fits when either of them fits. `L` is the
 * last day of a month.
 *
 *	every weekday at 9            daily at 7:30 and 19:30      on the last day at noon
 *	every monday and friday at 8  every 90 minutes             yearly on 29 february
 *
 * Nothing is guessed: an unknown word is refused by name. Pure, except that it reads the
 * machine's table of time zones.
 *
 * A new word for times also belongs in docs/orchestration.md and
 * tests/unit/agent/when_test.c.
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

/* A schedule that is all zero fits no time. */
struct when {
	/* > 0: an interval from its beginning on; the members below are not used */
	int64_t every_s;
	uint64_t minutes;             /* one bit each, from 0 */
	uint32_t hours, days, months; /* days and months from 1 */
	uint8_t weekdays;             /* from 0, Sunday */
	bool last_day;                /* the last day of a month fits, too */
};

/* ERR names the word or the field that is wrong, and an example. */
bool when_parse(struct str text, struct when *when, struct err *err);

/*
 * Append WHEN in its standard form: five fields, or "every N minutes". Parsing this text
 * gives the same schedule.
 */
void when_print(const struct when *when, struct buf *out);

/* Is ZONE a name of the machine's table ("Europe/Berlin", "UTC")? */
bool when_check_zone(const char *zone, struct err *err);
bool when_next(const struct when *when, const char *zone, int64_t began_s,
	       int64_t after_s, int64_t *next_s);

/* Append the time MOMENT_S as a clock in ZONE shows it: "Mon 2026-11-23 09:00 CET". */
void when_add_moment(int64_t moment_s, const char *zone, struct buf *out);

/* Schedules as people and models read them, and when they are due. */

/* Open the schedules of the user. */
bool when_open_default(struct schedules **schedules, struct err *err);

/*
 * The first run of TIMES in ZONE (empty: the machine's) after NOW_S; 0: there is none.
 * TIMES was parsed before it was stored.
 */
int64_t when_schedule_next(struct str times, struct str zone, int64_t began_s,
			   int64_t now_s);

/* Append "runs: Mon 2026-11-23 09:00 CET, …": the next three runs after NOW_S. */
void when_schedule_add_runs(struct str times, struct str zone, int64_t began_s,
			    int64_t now_s, struct buf *out);

/*
 * Append all of SCHEDULE: a head line, the lines about its times, and the task between
 * bars, with every byte that is not plain text made visible.
 */
void when_schedule_add(const struct schedule *schedule, int64_t now_s, struct buf *out);

/*
 * Parse WHEN, check ZONE (NULL: the machine's), and replace TIMES by the standard form of
 * WHEN. False: when_parse failed, or WHEN has no time at all.
 */
bool when_schedule_settle(const char *when, const char *zone, int64_t now_s,
			  struct buf *times, int64_t *next_s, struct err *err);
