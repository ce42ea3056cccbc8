/* when: parses the times of a schedule, and computes the next of them. */

#include "agent/when.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "store/database.h"
#include "store/schedules.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/*
 * The first time after AFTER_S (seconds since 1970) in ZONE (NULL: the machine's);
 * intervals count from BEGAN_S. A time that the clock skips in spring becomes as much
 * later. A time that the clock shows twice in autumn counts once (twice when every hour
 * fits). False when there is no such time in WHEN_YEARS (30 February).
 */
enum { WHEN_YEARS = 9 }; /* 1896 to 1904 had no 29 February */

enum { FIELDS = 5, MINUTE_S = 60, HOURS = 24 };

enum { DAYS_LOOKED_AT = WHEN_YEARS * 366, MINUTES = 60, HOURS_ALL = (1 << 24) - 1 };

struct field {
	const char *name;
	unsigned least, most;
	const char *words; /* names of its values from `least` on, blank-separated; or NULL */
};

static const struct field fields[FIELDS] = {
	{"minute", 0, 59, NULL},
	{"hour", 0, 23, NULL},
	{"day of the month", 1, 31, NULL},
	{"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
	{"day of the week", 0, 7, "sun mon tue wed thu fri sat"},
};

static bool field_fail(const struct field *field, struct str text, struct err *err)
{
	return err_set(err, EINVAL,
		       "the %s \"%.*s\" is none: %u to %u, a list (1,15), a range (1-5), a "
		       "step (*/10) or *",
		       field->name, (int)(text.size < 40 ? text.size : 40), text.data,
		       field->least, field->most);
}

static bool take_number(const struct field *field, struct str *text, unsigned *number)
{
	struct str words = str_of(field->words), word;
	size_t digits = 0;

	for (unsigned at = field->least; str_next_word(&words, &word); at++) {
		if (text->size >= 3 && strncasecmp(text->data, word.data, 3) == 0) {
			*number = at;
			*text = str_part(*text, 3, text->size);
			return true;
		}
	}
	*number = 0;
	while (digits < text->size && digits < 3 && text->data[digits] >= '0' &&
	       text->data[digits] <= '9')
		*number = *number * 10 + (unsigned)(text->data[digits++] - '0');
	*text = str_part(*text, digits, text->size);
	return digits > 0 && *number >= field->least && *number <= field->most;
}

static bool take_char(struct str *text, char c)
{
	if (text->size == 0 || text->data[0] != c)
		return false;
	*text = str_part(*text, 1, text->size);
	return true;
}

/*
 * Parse one of a field's comma-separated parts: "3", "1-5" or "*", each with or without
 * "/2" behind it.
 */
static bool parse_part(const struct field *field, struct str part, uint64_t *bits)
{
	const struct field steps = {"step", 1, 60, NULL};
	unsigned from = field->least, to = field->most, step = 1;
	bool ranged = take_char(&part, '*');

	if (!ranged) {
		if (!take_number(field, &part, &from))
			return false;
		to = from;
		if (take_char(&part, '-')) {
			ranged = true;
			if (!take_number(field, &part, &to) || to < from)
				return false;
		}
	}
	if (take_char(&part, '/') && (!ranged || !take_number(&steps, &part, &step)))
		return false;
	if (part.size > 0)
		return false;
	for (unsigned at = from; at <= to; at += step)
		*bits |= (uint64_t)1 << at;
	return true;
}

static bool parse_field(const struct field *field, struct str text, uint64_t *bits,
			bool *last_day)
{
	while (text.size > 0) {
		size_t comma = str_find(text, STR(","), 0);
		struct str part = str_part(text, 0, comma);

		if (last_day && str_is(part, "L"))
			*last_day = true;
		else if (!parse_part(field, part, bits))
			return false;
		if (comma == (size_t)-1)
			return true;
		text = str_part(text, comma + 1, text.size);
	}
	return false;
}

static bool parse_fields(struct str text, struct when *when, struct err *err)
{
	uint64_t bits[FIELDS] = {0};
	struct str word;

	for (size_t i = 0; i < FIELDS; i++) {
		if (!str_next_word(&text, &word))
			return err_set(err, EINVAL,
				       "five fields are needed (minute hour day month weekday), as "
				       "in \"30 9 * * 1-5\"; there are %zu",
				       i);
		if (!parse_field(&fields[i], word, &bits[i], i == 2 ? &when->last_day : NULL))
			return field_fail(&fields[i], word, err);
	}
	if (str_next_word(&text, &word))
		return err_set(err, EINVAL, "\"%.*s\" stands behind the five fields",
			       (int)(word.size < 40 ? word.size : 40), word.data);
	when->minutes = bits[0];
	when->hours = (uint32_t)bits[1];
	when->days = (uint32_t)bits[2];
	when->months = (uint32_t)bits[3];
	/* 7 is Sunday, like 0. */
	when->weekdays = (uint8_t)((bits[4] | bits[4] >> 7) & 0x7f);
	return true;
}

static bool when_parse_words(struct str text, struct when *when, struct err *err);

bool when_parse(struct str text, struct when *when, struct err *err)
{
	struct when parsed = {0};

	text = str_trim(text);
	if (text.size == 0)
		return err_set(err, EINVAL,
			       "no time is given, as in \"every weekday at 9\" or "
			       "\"0 9 * * 1-5\"");
	if (text.size > WHEN_TEXT_MAX)
		return err_set(err, E2BIG, "a time of more than %d bytes", WHEN_TEXT_MAX);
	if (!text_is_utf8(text) || memchr(text.data, '\0', text.size))
		return err_set(err, EINVAL, "the time is no text");
	if (strchr("0123456789*", text.data[0])) {
		if (!parse_fields(text, &parsed, err))
			return false;
	} else if (!when_parse_words(text, &parsed, err)) {
		return false;
	}
	*when = parsed;
	return true;
}

static void print_bits(uint64_t bits, unsigned least, unsigned most, bool last_day,
		       struct buf *out)
{
	const uint64_t all = ((uint64_t)1 << (most + 1)) - ((uint64_t)1 << least);
	const char *comma = "";

	if ((bits & all) == all) {
		(void)buf_addc(out, '*');
		return;
	}
	for (unsigned at = least; at <= most; at++) {
		unsigned to = at;

		if (!(bits >> at & 1))
			continue;
		while (to < most && bits >> (to + 1) & 1)
			to++;
		(void)buf_addf(out, "%s%u", comma, at);
		if (to > at)
			(void)buf_addf(out, "%c%u", to > at + 1 ? '-' : ',', to);
		comma = ",";
		at = to;
	}
	if (last_day)
		(void)buf_addf(out, "%sL", comma);
}

void when_print(const struct when *when, struct buf *out)
{
	if (when->every_s > 0) {
		const int64_t minutes = when->every_s / MINUTE_S;

		(void)buf_addf(out, "every %" PRId64 " minute%s", minutes,
			       minutes == 1 ? "" : "s");
		return;
	}
	print_bits(when->minutes, 0, 59, false, out);
	(void)buf_addc(out, ' ');
	print_bits(when->hours, 0, 23, false, out);
	(void)buf_addc(out, ' ');
	print_bits(when->days, 1, 31, when->last_day, out);
	(void)buf_addc(out, ' ');
	print_bits(when->months, 1, 12, false, out);
	(void)buf_addc(out, ' ');
	print_bits(when->weekdays, 0, 6, false, out);
}

/* The calendar: finds the first day that fits, and then the times of this day. */

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
 * The times at which clocks show WANTED: one, or two in the hour that comes twice. In the
 * hour that is skipped it is the time that comes as much later. Returns how many there
 * are.
 */
static size_t moments_of(const struct tm *wanted, time_t moments[2])
{
	size_t count = 0;
	time_t latest = 0;

	/*
	 * Read WANTED as summer time and as standard time. Where neither holds, both
	 * results are near.
	 */
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

/* The first time on DAY after AFTER. */
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
	/* one day earlier, because clocks may skip or repeat a time around midnight */
	day.tm_mday--;
	for (int i = 0; i < DAYS_LOOKED_AT; i++) {
		/* Use noon: clocks never skip it, so it exists on every day. */
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

/*
 * Times in plain words. The meanings of the words are collected one by one, in any order,
 * and joined at the end: how often, on which days, at what time.
 */

enum {
	HOUR_S = 60 * MINUTE_S,
	DAY_S = 24 * HOUR_S,
	MINUTES_ALL = 60,
	WEEKDAYS_ALL = 0x7f,
	WORKDAYS = 0x3e,
	WEEKEND = 0x41,
	EVERY_MAX_S = 366 * DAY_S,
};

#define DAYS_ALL   0xfffffffeU
#define MONTHS_ALL 0x1ffeU

/* How often; the rarer, the later in this list. */
enum often {
	OFTEN_UNSAID,
	OFTEN_MINUTE,
	OFTEN_HOUR,
	OFTEN_DAY,
	OFTEN_WEEK,
	OFTEN_MONTH,
	OFTEN_YEAR
};

struct words {
	struct str rest;
	enum often often;
	int64_t every_s;
	uint32_t days, months, hours;
	uint8_t weekdays;
	bool last_day;
	int minute; /* the same for all times that were named; -1: none was named */
};

static bool words_fail(struct str word, const char *why, struct err *err)
{
	struct buf name;

	buf_init(&name, WHEN_TEXT_MAX * 4);
	text_add_name(&name, word);
	(void)err_set(err, EINVAL,
		      "\"%s\" %s; say it as in \"every weekday at 9\", \"on the 1st and the last day "
		      "at 18:30\", \"every 90 minutes\", or in five fields: \"0 9 * * 1-5\"",
		      name.data, why);
	buf_fini(&name);
	return false;
}

/* The next word, in lower case for the comparisons; commas count as blanks. */
static bool next_word(struct words *words, struct str *word)
{
	static const char blanks[] = " \t\r\n,";
	size_t from = 0, to;

	while (from < words->rest.size && strchr(blanks, words->rest.data[from]))
		from++;
	for (to = from; to < words->rest.size && !strchr(blanks, words->rest.data[to]);)
		to++;
	*word = str_part(words->rest, from, to - from);
	words->rest = str_part(words->rest, to, words->rest.size);
	return word->size > 0;
}

static bool is(struct str word, const char *name)
{
	return word.size == strlen(name) && strncasecmp(word.data, name, word.size) == 0;
}

/* Is WORD one of the blank-separated NAMES, with or without an "s" at its end? */
static bool is_one_of(struct str word, const char *names)
{
	struct str rest = str_of(names), name;

	while (str_next_word(&rest, &name)) {
		const bool begins = word.size >= name.size &&
				    strncasecmp(word.data, name.data, name.size) == 0;

		if (begins && (word.size == name.size || (word.size == name.size + 1 &&
							  (word.data[name.size] == 's' ||
							   word.data[name.size] == 'S'))))
			return true;
	}
	return false;
}

/*
 * The index of WORD among NAMES, each of which may be shortened to three letters; -1:
 * WORD is none of them.
 */
static int place_of(struct str word, const char *names)
{
	struct str rest = str_of(names), name;

	for (int at = 0; str_next_word(&rest, &name); at++) {
		char text[16];

		if (name.size >= sizeof(text))
			continue;
		memcpy(text, name.data, name.size);
		text[name.size] = '\0';
		if (is_one_of(word, text) ||
		    (word.size == 3 && strncasecmp(word.data, text, 3) == 0))
			return at;
	}
	return -1;
}

/* Take the digits at the beginning of TEXT. False: there are none or too many. */
static bool take_digits(struct str *text, unsigned *number)
{
	size_t digits = 0;

	*number = 0;
	while (digits < text->size && text->data[digits] >= '0' &&
	       text->data[digits] <= '9') {
		if (digits == 5)
			return false;
		*number = *number * 10 + (unsigned)(text->data[digits++] - '0');
	}
	*text = str_part(*text, digits, text->size);
	return digits > 0;
}

/* Parse "9", "9:30", "9am", "9:30pm", "noon" or "midnight". */
static bool parse_time(struct str word, unsigned *hour, unsigned *minute)
{
	*minute = 0;
	*hour = is(word, "noon") ? 12 : 0;
	if (is(word, "noon") || is(word, "midnight"))
		return true;
	if (!take_digits(&word, hour))
		return false;
	if (word.size > 0 && word.data[0] == ':') {
		word = str_part(word, 1, word.size);
		if (word.size < 2 || !take_digits(&word, minute))
			return false;
	}
	if (is(word, "am") || is(word, "pm")) {
		if (*hour < 1 || *hour > 12)
			return false;
		*hour = *hour % 12 + (is(word, "pm") ? 12 : 0);
	} else if (word.size > 0) {
		return false;
	}
	return *hour < 24 && *minute < 60;
}

/* Take all times behind "at". */
static bool take_times(struct words *words, struct err *err)
{
	struct str word, before;
	unsigned hour, minute, taken = 0;

	for (;;) {
		before = words->rest;
		if (!next_word(words, &word))
			break;
		if (taken > 0 && is(word, "and"))
			continue;
		if (!parse_time(word, &hour, &minute)) {
			words->rest = before;
			break;
		}
		if (words->minute >= 0 && (unsigned)words->minute != minute)
			return words_fail(word,
					  "has other minutes than the time before it: make two "
					  "schedules",
					  err);
		words->minute = (int)minute;
		words->hours |= 1U << hour;
		taken++;
	}
	return taken > 0 || words_fail(word, "is no time of day (9, 9:30, 7pm, noon)", err);
}

static bool set_often(struct words *words, enum often often)
{
	if (words->often != OFTEN_UNSAID && words->often != often)
		return false;
	words->often = often;
	return true;
}

static enum often often_of(struct str word)
{
	static const char *const names[] = {
		[OFTEN_MINUTE] = "minute",
		[OFTEN_HOUR] = "hour hourly @hourly",
		[OFTEN_DAY] = "day daily @daily",
		[OFTEN_WEEK] = "week weekly @weekly",
		[OFTEN_MONTH] = "month monthly @monthly",
		[OFTEN_YEAR] = "year yearly annually @yearly @annually",
	};

	for (enum often often = OFTEN_MINUTE; often <= OFTEN_YEAR; often++) {
		if (is_one_of(word, names[often]))
			return often;
	}
	return OFTEN_UNSAID;
}

/* Take the unit of "90 minutes"; the number has been read. */
static bool take_interval(struct words *words, struct str word, unsigned number,
			  struct err *err)
{
	static const int64_t units[] = {
		[OFTEN_MINUTE] = MINUTE_S, [OFTEN_HOUR] = HOUR_S, [OFTEN_DAY] = DAY_S,
		[OFTEN_WEEK] = 7 * DAY_S,  [OFTEN_MONTH] = 0,     [OFTEN_YEAR] = 0,
	};
	struct str unit;
	enum often often;

	if (!next_word(words, &unit))
		return words_fail(word, "of what? minutes, hours, days or weeks", err);
	often = often_of(unit);
	if (often == OFTEN_UNSAID || units[often] == 0)
		return words_fail(unit,
				  "is no unit of an interval: minutes, hours, days, weeks",
				  err);
	words->every_s = number * units[often];
	if (words->every_s < MINUTE_S || words->every_s > EVERY_MAX_S)
		return words_fail(word,
				  "is an interval of less than a minute or more than a year",
				  err);
	return true;
}

static bool take_number_word(struct words *words, struct str word, bool behind_every,
			     struct err *err)
{
	struct str rest = word;
	unsigned number;

	if (!take_digits(&rest, &number))
		return words_fail(word, "is too large", err);
	if (behind_every && rest.size == 0)
		return take_interval(words, word, number, err);
	if (rest.size > 0 && !is_one_of(rest, "st nd rd th") && !is(rest, "."))
		return words_fail(word, "is no day of a month", err);
	if (number < 1 || number > 31)
		return words_fail(word,
				  "is no day of a month (a time of day stands behind \"at\")",
				  err);
	words->days |= 1U << number;
	return true;
}

/* Take the days or months that WORD names. False: it names none. */
static bool take_day(struct words *words, struct str word)
{
	const int weekday =
		place_of(word, "sunday monday tuesday wednesday thursday friday saturday");
	const int month = place_of(word, "january february march april may june july august "
					 "september october november december");

	if (weekday >= 0)
		words->weekdays |= (uint8_t)(1U << weekday);
	else if (month >= 0)
		words->months |= 2U << month;
	else if (is_one_of(word, "weekday workday"))
		words->weekdays |= WORKDAYS;
	else if (is_one_of(word, "weekend"))
		words->weekdays |= WEEKEND;
	else if (is(word, "last"))
		words->last_day = true;
	else
		return false;
	return true;
}

static bool take_word(struct words *words, struct str word, bool behind_every,
		      struct err *err)
{
	const enum often often = often_of(word);

	if (is(word, "at"))
		return take_times(words, err);
	if (word.data[0] >= '0' && word.data[0] <= '9')
		return take_number_word(words, word, behind_every, err);
	/* In "the last day" the word names no day of its own. */
	if (often == OFTEN_DAY && !behind_every && is(word, "day") &&
	    (words->last_day || words->days != 0))
		return true;
	if (often != OFTEN_UNSAID)
		return set_often(words, often) ||
		       words_fail(word, "says another time how often", err);
	return take_day(words, word) || words_fail(word, "is not understood here", err);
}

/* All words are read: decide what they mean together. */
static bool settle(const struct words *words, struct str text, struct when *when,
		   struct err *err)
{
	const bool of_month = words->days != 0 || words->last_day;
	const bool days = of_month || words->weekdays != 0 || words->months != 0;

	if (words->every_s > 0) {
		if (days || words->minute >= 0 || words->often != OFTEN_UNSAID)
			return words_fail(text,
					  "is an interval with a day or a time: one of them",
					  err);
		when->every_s = words->every_s;
		return true;
	}
	if (words->often == OFTEN_UNSAID && !days && words->minute < 0)
		return words_fail(text, "says no time", err);
	if (of_month && words->weekdays != 0)
		return words_fail(text,
				  "has days of the month and of the week: make two schedules",
				  err);
	if (words->often == OFTEN_HOUR || words->often == OFTEN_MINUTE) {
		if (words->minute >= 0)
			return words_fail(text,
					  "has a time of day, but comes each hour or minute",
					  err);
		when->hours = HOURS_ALL;
		when->minutes =
			words->often == OFTEN_HOUR ? 1 : ((uint64_t)1 << MINUTES_ALL) - 1;
	} else {
		when->minutes = (uint64_t)1 << (words->minute > 0 ? words->minute : 0);
		when->hours = words->hours != 0 ? words->hours : 1;
	}
	when->weekdays = words->weekdays != 0         ? words->weekdays
			 : words->often == OFTEN_WEEK ? 1
						      : WEEKDAYS_ALL;
	/*
	 * The same as in cron: monthly is on the first, yearly on the first of January.
	 */
	when->months = words->months != 0           ? words->months
		       : words->often == OFTEN_YEAR ? 2
						    : MONTHS_ALL;
	when->last_day = words->last_day;
	when->days = words->days;
	if (!of_month)
		when->days = words->often >= OFTEN_MONTH || (words->months != 0 &&
							     words->weekdays == 0 &&
							     words->often == OFTEN_UNSAID)
				     ? 2
				     : DAYS_ALL;
	return true;
}

/* The caller has set WHEN to zero. TEXT is one line of UTF-8 without NUL. */
static bool when_parse_words(struct str text, struct when *when, struct err *err)
{
	struct words words = {.rest = text, .minute = -1};
	bool every = false;
	struct str word;

	while (next_word(&words, &word)) {
		if (is(word, "every") || is(word, "each")) {
			every = true;
			continue;
		}
		if (is_one_of(word, "on the of and in") && !is(word, "ons"))
			continue;
		if (!take_word(&words, word, every, err))
			return false;
		every = false;
	}
	return settle(&words, text, when, err);
}

/* Prints schedules as one text for a terminal, a pipe and a model. */

enum { RUNS_SHOWN = 3 };

bool when_open_default(struct schedules **schedules, struct err *err)
{
	struct buf path;
	bool opened;

	buf_init(&path, PATH_MAX);
	opened = database_state_path("schedules.db", &path, err) &&
		 schedules_open(path.data, schedules, err);
	buf_fini(&path);
	return opened;
}

int64_t when_schedule_next(struct str times, struct str zone, int64_t began_s, int64_t now_s)
{
	auto_free char *name = zone.size > 0 ? memory_copy_str(zone) : NULL;
	struct when when;
	int64_t next_s = 0;

	if (!when_parse(times, &when, NULL) ||
	    !when_next(&when, name, began_s, now_s, &next_s))
		return 0;
	return next_s;
}

void when_schedule_add_runs(struct str times, struct str zone, int64_t began_s,
			    int64_t now_s, struct buf *out)
{
	auto_free char *name = zone.size > 0 ? memory_copy_str(zone) : NULL;

	(void)buf_adds(out, "runs: ");
	for (int i = 0; i < RUNS_SHOWN; i++) {
		now_s = when_schedule_next(times, zone, began_s, now_s);
		if (now_s == 0)
			break;
		(void)buf_adds(out, i > 0 ? ", " : "");
		when_add_moment(now_s, name, out);
	}
	(void)buf_addc(out, '\n');
}

/*
 * Append TASK as lines between bars. Bytes that are invisible, or that change the
 * direction of a line, are shown as \xHH.
 */
static void add_task(struct str task, struct buf *out)
{
	struct str line;

	while (str_next_line(&task, &line)) {
		(void)buf_adds(out, "  | ");
		text_add_name(out, line);
		(void)buf_addc(out, '\n');
	}
}

void when_schedule_add(const struct schedule *schedule, int64_t now_s, struct buf *out)
{
	(void)buf_addf(out, "%" PRId64 "  %s  %.*s  agent ", schedule->id,
		       schedule->state == SCHEDULE_ACTIVE && !schedule->approved
			       ? "not approved"
			       : schedule_state_name(schedule->state),
		       HASH_SHOWN, schedule->hash);
	text_add_name(out, schedule->agent);
	(void)buf_adds(out, "  in ");
	text_add_name(out, schedule->workspace);
	(void)buf_adds(out, "\n  when: ");
	text_add_name(out, schedule->times);
	if (schedule->zone.size > 0) {
		(void)buf_adds(out, " in ");
		text_add_name(out, schedule->zone);
	}
	if (schedule->by.size > 0) {
		(void)buf_adds(out, "; asked for by agent ");
		text_add_name(out, schedule->by);
		if (schedule->session.size > 0)
			(void)buf_addf(out, " in session %.*s",
				       (int)schedule->session.size, schedule->session.data);
	}
	(void)buf_adds(out, "\n  ");
	when_schedule_add_runs(schedule->times, schedule->zone, schedule->made_s, now_s,
			       out);
	if (schedule->busy_until_s > now_s)
		(void)buf_adds(out, "  a run is under way\n");
	if (schedule->last_s > 0) {
		(void)buf_adds(out, "  last run: ");
		when_add_moment(schedule->last_s, NULL, out);
		if (schedule->last_outcome.size > 0) {
			(void)buf_adds(out, ": ");
			text_add_name(out, schedule->last_outcome);
		}
		if (schedule->last_session.size > 0)
			(void)buf_addf(out, " (session %.*s)",
				       (int)schedule->last_session.size,
				       schedule->last_session.data);
		(void)buf_addc(out, '\n');
	}
	add_task(schedule->task, out);
}

bool when_schedule_settle(const char *when, const char *zone, int64_t now_s,
			  struct buf *times, int64_t *next_s, struct err *err)
{
	struct when parsed;

	if (!when_parse(str_of(when), &parsed, err) || (zone && !when_check_zone(zone, err)))
		return false;
	if (!when_next(&parsed, zone, now_s, now_s, next_s))
		return err_set(err, EINVAL, "\"%.100s\" never comes", when);
	buf_clear(times);
	when_print(&parsed, times);
	return true;
}
