/* when_next: the calendar: days one by one, then the times of the first that fits. */
#include "agent/when.h"
#include "base/memory.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	DAYS_LOOKED_AT = WHEN_YEARS * 366,
	HOURS = 24,
	MINUTES = 60,
	HOURS_ALL = (1 << 24) - 1
};

static const char zone_folder[] = "/usr/share/zoneinfo/";

bool when_check_zone(const char *zone, struct err *err)
{
	static const char fit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
	size_t size = strlen(zone);
	char path[sizeof(zone_folder) + WHEN_ZONE_MAX];

	if (size > 0 && size <= WHEN_ZONE_MAX && strspn(zone, fit) == size &&
	    zone[0] != '/' && zone[0] != '-' && zone[size - 1] != '/') {
		(void)snprintf(path, sizeof(path), "%s%s", zone_folder, zone);
		if (strcmp(zone, "UTC") == 0 || access(path, R_OK) == 0)
			return true;
	}
	return err_set(err, EINVAL,
		       "there is no time zone \"%.64s\" here: a name as \"Europe/Berlin\" or "
		       "\"UTC\" (those of %s)",
		       zone, zone_folder);
}

/* Set TZ, which holds for the whole process, until zone_leave. Returns the old value. */
static char *zone_enter(const char *zone)
{
	char *old = memory_copy(getenv("TZ"));
	char name[WHEN_ZONE_MAX + 2];

	if (zone) {
		(void)snprintf(name, sizeof(name), ":%s", zone);
		(void)setenv("TZ", name, 1);
	}
	tzset();
	return old;
}

static void zone_leave(const char *zone, char *old)
{
	if (zone && old)
		(void)setenv("TZ", old, 1);
	else if (zone)
		(void)unsetenv("TZ");
	tzset();
	free(old);
}

static bool is_same_time(const struct tm *a, const struct tm *b)
{
	return a->tm_mday == b->tm_mday && a->tm_hour == b->tm_hour &&
	       a->tm_min == b->tm_min;
}

/*
 * The moments at which clocks show WANTED: one, two in the hour that comes twice; in the
 * hour that is skipped the one that comes as much later. Returns how many.
 */
static size_t moments_of(const struct tm *wanted, time_t moments[2])
{
	size_t count = 0;
	time_t latest = 0;

	/* Read as summer time and as the other; where neither holds, both are near. */
	for (int summer = 1; summer >= 0; summer--) {
		struct tm asked = *wanted, shown;
		time_t moment;

		asked.tm_isdst = summer;
		moment = mktime(&asked);
		if (moment > latest)
			latest = moment;
		if (!localtime_r(&moment, &shown) || !is_same_time(&shown, wanted))
			continue;
		if (count == 0 || moments[0] != moment)
			moments[count++] = moment;
	}
	if (count == 0 && latest != 0)
		moments[count++] = latest;
	return count;
}

static bool day_fits(const struct when *when, const struct tm *day)
{
	struct tm next = {.tm_year = day->tm_year,
			  .tm_mon = day->tm_mon,
			  .tm_mday = day->tm_mday + 1,
			  .tm_hour = 12,
			  .tm_isdst = -1};
	const bool all_days = (when->days & 0xfffffffeU) == 0xfffffffeU;
	const bool all_weekdays = (when->weekdays & 0x7f) == 0x7f;
	bool of_month = when->days >> day->tm_mday & 1;
	const bool of_week = when->weekdays >> day->tm_wday & 1;

	if (!(when->months >> (day->tm_mon + 1) & 1))
		return false;
	if (when->last_day && !of_month)
		of_month = mktime(&next) != -1 && next.tm_mday == 1;
	if (all_days || all_weekdays)
		return of_month && of_week;
	return of_month || of_week;
}

/* The first time of DAY after AFTER. */
static bool day_next(const struct when *when, const struct tm *day, time_t after,
		     time_t *next)
{
	const bool every_hour = (when->hours & HOURS_ALL) == HOURS_ALL;
	bool found = false;

	for (int at = 0; at < HOURS * MINUTES; at++) {
		const int hour = at / MINUTES, minute = at % MINUTES;
		struct tm wanted = {.tm_year = day->tm_year,
				    .tm_mon = day->tm_mon,
				    .tm_mday = day->tm_mday,
				    .tm_hour = hour,
				    .tm_min = minute};
		time_t moments[2];
		size_t count;

		if (!(when->hours >> hour & 1) || !(when->minutes >> minute & 1))
			continue;
		count = moments_of(&wanted, moments);
		for (size_t i = 0; i < count; i++) {
			if (i > 0 && !every_hour)
				break;
			if (moments[i] > after && (!found || moments[i] < *next)) {
				*next = moments[i];
				found = true;
			}
		}
	}
	return found;
}

static bool calendar_next(const struct when *when, time_t after, time_t *next)
{
	struct tm day;

	if (!localtime_r(&after, &day))
		return false;
	day.tm_mday--; /* what the clock skipped or showed twice around midnight */
	for (int i = 0; i < DAYS_LOOKED_AT; i++) {
		/* Noon is there on every day. */
		day.tm_hour = HOURS / 2;
		day.tm_min = day.tm_sec = 0;
		day.tm_isdst = -1;
		if (mktime(&day) == -1)
			return false;
		if (day_fits(when, &day) && day_next(when, &day, after, next))
			return true;
		day.tm_mday++;
	}
	return false;
}

bool when_next(const struct when *when, const char *zone, int64_t began_s,
	       int64_t after_s, int64_t *next_s)
{
	time_t next = 0;
	char *old;
	bool found;

	if (when->every_s > 0) {
		const int64_t passed =
			after_s >= began_s ? (after_s - began_s) / when->every_s + 1 : 1;

		*next_s = began_s + passed * when->every_s;
		return true;
	}
	old = zone_enter(zone);
	found = calendar_next(when, (time_t)after_s, &next);
	zone_leave(zone, old);
	if (found)
		*next_s = next;
	return found;
}

void when_add_moment(int64_t moment_s, const char *zone, struct buf *out)
{
	const time_t moment = (time_t)moment_s;
	char *old = zone_enter(zone);
	char text[64] = "";
	struct tm local;

	if (localtime_r(&moment, &local))
		(void)strftime(text, sizeof(text), "%a %Y-%m-%d %H:%M %Z", &local);
	(void)buf_adds(out, text);
	zone_leave(zone, old);
}
