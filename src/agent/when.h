/*
 * when: the times of a schedule. Five fields as crontab(5) has them (minute, hour, day of
 * the month, month, day of the week; where both day fields leave days out, a day fits when
 * either does), `L` for the last day of a month, or plain words that mean one thing:
 *
 *	every weekday at 9            daily at 7:30 and 19:30      on the last day at noon
 *	every monday and friday at 8  every 90 minutes             yearly on 29 february
 *
 * Nothing is guessed: a word that is not known is refused by name. Pure, but for the
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

/* Longest text, longest name of a zone. */
enum { WHEN_TEXT_MAX = 200, WHEN_ZONE_MAX = 64 };

/* Zero fits no time. */
struct when {
	int64_t every_s;  /* > 0: an interval from its beginning on, and nothing below */
	uint64_t minutes; /* a bit each, from 0 */
	uint32_t hours, days, months; /* days and months from 1 */
	uint8_t weekdays;             /* from 0, Sunday */
	bool last_day;                /* the last day of a month fits, too */
};

/* ERR names the word or the field that is wrong, and an example. */
bool when_parse(struct str text, struct when *when, struct err *err);

/* Append the one form of it: five fields, or "every N minutes". Parsing it gives the same. */
void when_print(const struct when *when, struct buf *out);

/* Is ZONE a name of the machine's table ("Europe/Berlin", "UTC")? */
bool when_check_zone(const char *zone, struct err *err);
bool when_next(const struct when *when, const char *zone, int64_t began_s,
	       int64_t after_s, int64_t *next_s);

/* Append the moment as a person in ZONE has it: "Mon 2026-11-23 09:00 CET". */
void when_add_moment(int64_t moment_s, const char *zone, struct buf *out);

/* Schedules as people and models read them, and when they are due. */

/* The schedules of the user. */
bool when_open_default(struct schedules **schedules, struct err *err);

/*
 * The first run of TIMES in ZONE (empty: the machine's) after NOW_S; 0: there is none. TIMES
 * was parsed before it was kept.
 */
int64_t when_schedule_next(struct str times, struct str zone, int64_t began_s,
			   int64_t now_s);

/* "runs: Mon 2026-11-23 09:00 CET, …": the next three of them after NOW_S. */
void when_schedule_add_runs(struct str times, struct str zone, int64_t began_s,
			    int64_t now_s, struct buf *out);

/*
 * Append all of SCHEDULE: a head line, the lines that say when, and the task between bars, every
 * byte that is not plain made visible.
 */
void when_schedule_add(const struct schedule *schedule, int64_t now_s, struct buf *out);

/*
 * The one form of WHEN in ZONE (NULL: the machine's), which is checked: TIMES is replaced. False
 * as when_parse, or when there is no such time at all.
 */
bool when_schedule_settle(const char *when, const char *zone, int64_t now_s,
			  struct buf *times, int64_t *next_s, struct err *err);
