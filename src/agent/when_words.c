/*
 * when_words: what the words say is gathered one by one, in any order, and joined at the
 * end: how often, on which days, at what time.
 */
#include "agent/when_words.h"

#include "base/text/text.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum {
	MINUTE_S = 60,
	HOUR_S = 60 * MINUTE_S,
	DAY_S = 24 * HOUR_S,
	MINUTES_ALL = 60,
	HOURS_ALL = (1 << 24) - 1,
	WEEKDAYS_ALL = 0x7f,
	WORKDAYS = 0x3e,
	WEEKEND = 0x41,
	EVERY_MAX_S = 366 * DAY_S,
};

#define DAYS_ALL   0xfffffffeU
#define MONTHS_ALL 0x1ffeU

/* How often, the seldomer the later. */
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
	int minute; /* of every time that was named; -1: none was */
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

/* The next word, in lower case for our comparisons; commas are blanks. */
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

/* "minute" or "minutes", of one of the blank-separated NAMES. */
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

/* The place of WORD among NAMES, each also by its first three letters; -1: it is none. */
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

/* The digits that TEXT begins with; false when there are none or too many. */
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

/* "9", "9:30", "9am", "9:30pm", "noon", "midnight". */
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

/* Behind "at": times, as long as they come. */
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

/* "90 minutes": the number has been read. */
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

static bool take_number(struct words *words, struct str word, bool behind_every,
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

/* The days that WORD names. */
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
		return take_number(words, word, behind_every, err);
	/* "the last day": no day of its own. */
	if (often == OFTEN_DAY && !behind_every && is(word, "day") &&
	    (words->last_day || words->days != 0))
		return true;
	if (often != OFTEN_UNSAID)
		return set_often(words, often) ||
		       words_fail(word, "says another time how often", err);
	return take_day(words, word) || words_fail(word, "is not understood here", err);
}

/* All words are read: what do they mean together? */
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
	/* As cron has it: monthly is the first, yearly the first of January. */
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

bool when_parse_words(struct str text, struct when *when, struct err *err)
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
