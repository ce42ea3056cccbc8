/*
 * when: parses the times of a schedule, computes the next of them, and prints schedules
 * as one text for a terminal, a pipe and a model.
 */

#include "agent/when.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "store/database.h"
#include "store/schedules.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	MINUTE_S = 60,
	HOUR_M = 60,
	DAY_M = 24 * HOUR_M,
	DAY_S = DAY_M * MINUTE_S,
	WEEK_M = 7 * DAY_M,
};

enum kind { SECOND, MINUTE, HOUR, DAY, DAY_FROM_END, MONTH, WEEKDAY, YEAR, KINDS };

enum { SET_BITS = 64, SET_WORDS = 4 };

/* A time fits when all its parts fit. Times that are all zero fit no time. */
struct when {
	uint64_t sets[KINDS][SET_WORDS]; /* one bit for each number of a kind */
	/* A day fits when its day of the month or its day of the week does. */
	bool either;
	char zone[WHEN_ZONE_MAX + 1]; /* "": the machine's */
};

static const struct field {
	const char *name;
	unsigned least, most;
	const char *words; /* the names of its numbers, from `least` on */
} fields[KINDS] = {
	[SECOND] = {"second", 0, 59, NULL},
	[MINUTE] = {"minute", 0, 59, NULL},
	[HOUR] = {"hour", 0, 23, NULL},
	[DAY] = {"day of the month", 1, 31, NULL},
	/* The most that systemd takes: each month has so many days. */
	[DAY_FROM_END] = {"day from the end of the month", 1, 28, NULL},
	[MONTH] = {"month", 1, 12,
		   "january february march april may june july august september october "
		   "november december"},
	/* Sunday is 0 and 7. */
	[WEEKDAY] = {"day of the week", 0, 7,
		     "sunday monday tuesday wednesday thursday friday saturday"},
	[YEAR] = {"year", 1970, 2199, NULL}, /* those of systemd */
};

static bool is_in(const struct when *when, enum kind kind, unsigned number)
{
	const unsigned bit = number - fields[kind].least;

	if (number < fields[kind].least || number > fields[kind].most)
		return false;
	return when->sets[kind][bit / SET_BITS] >> bit % SET_BITS & 1;
}

static void set_numbers(struct when *when, enum kind kind, unsigned from, unsigned to,
			unsigned step)
{
	for (unsigned at = from; at <= to; at += step) {
		const unsigned bit = at - fields[kind].least;

		when->sets[kind][bit / SET_BITS] |= (uint64_t)1 << bit % SET_BITS;
		if (kind == WEEKDAY && at % 7 == 0)
			when->sets[kind][0] |= 1U | 1U << 7;
	}
}

static void set_all(struct when *when, enum kind kind)
{
	set_numbers(when, kind, fields[kind].least, fields[kind].most, 1);
}

/* The two ways in which times are written. */
enum style { CRON, CALENDAR };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool take(struct str *text, const char *prefix)
{
	if (!str_starts(*text, str_of(prefix)))
		return false;
	*text = str_part(*text, strlen(prefix), text->size);
	return true;
}

/*
 * Take the part of TEXT before the first of the characters STOPS, and this character into
 * *STOP ('\0': TEXT ended without one).
 */
static struct str take_until(struct str *text, const char *stops, char *stop)
{
	const struct str whole = *text;
	size_t size = 0;

	while (size < whole.size && !strchr(stops, whole.data[size]))
		size++;
	*stop = size < whole.size ? whole.data[size] : '\0';
	*text = str_part(whole, size + 1, whole.size);
	return str_part(whole, 0, size);
}

/* Take a name of a number of FIELD from TEXT: the whole name or its first three letters. */
static bool take_name(const struct field *field, struct str *text, unsigned *number)
{
	struct str names = str_of(field->words), name;

	for (unsigned at = field->least; str_next_word(&names, &name); at++) {
		size_t size = 0;

		while (size < text->size && size < name.size &&
		       (text->data[size] | ' ') == name.data[size])
			size++;
		if (size < 3)
			continue;
		*number = at;
		*text = str_part(*text, size == name.size ? size : 3, text->size);
		return true;
	}
	return false;
}

static bool take_digits(struct str *text, unsigned *number)
{
	enum { DIGITS_MAX = 4 };
	size_t digits = 0;

	*number = 0;
	while (digits < text->size && digits < DIGITS_MAX && is_digit(text->data[digits]))
		*number = *number * 10 + (unsigned)(text->data[digits++] - '0');
	*text = str_part(*text, digits, text->size);
	return digits > 0;
}

static bool take_number(const struct field *field, struct str *text, unsigned *number)
{
	return take_name(field, text, number) ||
	       (take_digits(text, number) && *number >= field->least &&
		*number <= field->most);
}

/* Take "*", "3" or a range. *IS_ONE: it was a single number. */
static bool take_range(enum style style, enum kind kind, struct str *part, unsigned *from,
		       unsigned *to, bool *is_one)
{
	const struct field *field = &fields[kind];

	*from = field->least;
	*to = field->most;
	*is_one = false;
	if (take(part, "*"))
		return true;
	if (!take_number(field, part, from))
		return false;
	/* systemd's week ends with Sunday. */
	if (style == CALENDAR && kind == WEEKDAY && *from == 0)
		*from = 7;
	*to = *from;
	/* systemd takes both marks between days of the week. */
	*is_one = !(style == CALENDAR && take(part, "..")) &&
		  !((style == CRON || kind == WEEKDAY) && take(part, "-"));
	if (*is_one)
		return true;
	if (!take_number(field, part, to))
		return false;
	if (kind == WEEKDAY && *to == 0 && *from > 0)
		*to = 7;
	return *to >= *from;
}

/*
 * Parse one of a field's comma-separated parts. A step stands behind "*" or a range in
 * cron, and in a calendar behind a range or behind the first number of a sequence.
 */
static bool parse_part(enum style style, enum kind kind, struct str part, struct when *when)
{
	const bool is_every = str_starts(part, STR("*"));
	unsigned from, to, step = 1;
	bool is_one;

	if (style == CALENDAR && kind == WEEKDAY && memchr(part.data, '/', part.size))
		return false;
	if (!take_range(style, kind, &part, &from, &to, &is_one))
		return false;
	if (take(&part, "/")) {
		if ((style == CRON ? is_one : is_every) || !take_digits(&part, &step) ||
		    step == 0)
			return false;
		if (is_one && kind == DAY_FROM_END)
			from = 1 + (from - 1) % step;
		else if (is_one)
			to = fields[kind].most;
		if (is_one && step > to - from)
			return false;
	}
	if (part.size > 0)
		return false;
	set_numbers(when, kind, from, to, step);
	return true;
}

/* False, with ERR: TEXT is no list of numbers of KIND. */
static bool parse_field(enum style style, enum kind kind, struct str text,
			struct when *when, struct err *err)
{
	const struct field *field = &fields[kind];
	struct str rest = text;
	char stop = '\0';
	bool ok = true;

	do {
		struct str part = take_until(&rest, ",", &stop);

		if (style == CRON && kind == DAY && str_is(part, "L"))
			set_numbers(when, DAY_FROM_END, 1, 1, 1);
		else
			ok = parse_part(style, kind, part, when);
	} while (ok && stop != '\0');
	return ok ||
	       err_set(err, EINVAL,
		       "the %s \"%.*s\" is none: %u to %u, a list (1,15), a range (%s), a step "
		       "(%s) or *",
		       field->name, (int)text.size, text.data, field->least, field->most,
		       style == CRON ? "1-5" : "1..5", style == CRON ? "*/10" : "0/10");
}

static bool parse_cron(struct str text, struct when *when, struct err *err)
{
	static const enum kind kinds[] = {MINUTE, HOUR, DAY, MONTH, WEEKDAY};
	enum { FIELDS = sizeof(kinds) / sizeof(kinds[0]) };
	bool has_star = false;
	struct str word;

	for (size_t i = 0; i < FIELDS; i++) {
		if (!str_next_word(&text, &word))
			return err_set(err, EINVAL,
				       "five fields are needed (minute hour day month weekday), as "
				       "in \"30 9 * * 1-5\"; there are %zu",
				       i);
		if (!parse_field(CRON, kinds[i], word, when, err))
			return false;
		if (kinds[i] == DAY || kinds[i] == WEEKDAY)
			has_star = has_star || word.data[0] == '*';
	}
	if (str_next_word(&text, &word))
		return err_set(err, EINVAL, "\"%.*s\" stands behind the five fields",
			       (int)(word.size < 40 ? word.size : 40), word.data);
	when->either = !has_star;
	set_numbers(when, SECOND, 0, 0, 1);
	set_all(when, YEAR);
	return true;
}

/* Beside the zones the folder holds tables of leap seconds and other texts. */
static bool is_zone_file(const char *path)
{
	static const char magic[] = {'T', 'Z', 'i', 'f'}; /* tzfile(5) */
	auto_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	char begin[sizeof(magic)];

	return fd >= 0 && read(fd, begin, sizeof(begin)) == sizeof(begin) &&
	       memcmp(begin, magic, sizeof(magic)) == 0;
}

/* Set the zone of WHEN, which must be in the machine's table. */
static bool set_zone(struct when *when, struct str zone, struct err *err)
{
	static const char folder[] = "/usr/share/zoneinfo/";
	static const char fit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
	char path[sizeof(folder) + WHEN_ZONE_MAX];

	if (zone.size > 0 && zone.size <= WHEN_ZONE_MAX) {
		(void)snprintf(path, sizeof(path), "%s%.*s", folder, (int)zone.size,
			       zone.data);
		memcpy(when->zone, zone.data, zone.size);
		when->zone[zone.size] = '\0';
		if (strspn(when->zone, fit) == zone.size && !strchr("/-", zone.data[0]) &&
		    zone.data[zone.size - 1] != '/' &&
		    (str_is(zone, "UTC") || is_zone_file(path)))
			return true;
	}
	when->zone[0] = '\0';
	return err_set(err, EINVAL,
		       "there is no time zone \"%.*s\" here: a name as \"Europe/Berlin\" or "
		       "\"UTC\" (those of %s)",
		       (int)(zone.size < WHEN_ZONE_MAX ? zone.size : WHEN_ZONE_MAX),
		       zone.data, folder);
}

/*
 * Take up to MOST fields from WORD, which one of the characters STOPS separates. MARKS
 * gets the character behind each. Returns how many there are; 0: too many.
 */
static size_t split(struct str word, const char *stops, size_t most, struct str *parts,
		    char *marks)
{
	for (size_t count = 0; count < most; count++) {
		parts[count] = take_until(&word, stops, &marks[count]);
		if (marks[count] == '\0')
			return count + 1;
	}
	return 0;
}

/* Parse "2027-03-01", "*-*-01", "03-01", or with "~" before days from the month's end. */
static bool parse_date(struct str word, struct when *when, struct err *err)
{
	struct str parts[3];
	char marks[3];
	const size_t count = split(word, "-~", 3, parts, marks);
	enum kind day;

	if (count < 2 || (count == 3 && marks[0] == '~'))
		return err_set(err, EINVAL,
			       "\"%.*s\" is no date (2027-03-01, *-*-01, or *-*~01 for the last "
			       "day of each month)",
			       (int)word.size, word.data);
	if (count == 2)
		set_all(when, YEAR);
	else if (!parse_field(CALENDAR, YEAR, parts[0], when, err))
		return false;
	day = marks[count - 2] == '-' || str_is(parts[count - 1], "*") ? DAY : DAY_FROM_END;
	return parse_field(CALENDAR, MONTH, parts[count - 2], when, err) &&
	       parse_field(CALENDAR, day, parts[count - 1], when, err);
}

/* Parse "09:00" or "09:00:30". */
static bool parse_time(struct str word, struct when *when, struct err *err)
{
	struct str parts[3];
	char marks[3];
	const size_t count = split(word, ":", 3, parts, marks);

	if (count < 2)
		return err_set(err, EINVAL, "\"%.*s\" is no time of day (09:00, 09:00:30)",
			       (int)word.size, word.data);
	return parse_field(CALENDAR, HOUR, parts[0], when, err) &&
	       parse_field(CALENDAR, MINUTE, parts[1], when, err) &&
	       parse_field(CALENDAR, SECOND, count == 3 ? parts[2] : STR("0"), when, err);
}

static bool has_one_of(struct str text, const char *characters)
{
	for (size_t i = 0; i < text.size; i++) {
		if (strchr(characters, text.data[i]))
			return true;
	}
	return false;
}

/* Does WORD begin as a number or "*" does? */
static bool is_numeric(struct str word)
{
	return word.size > 0 && (is_digit(word.data[0]) || word.data[0] == '*');
}

/* Parse what stands behind the weekdays of an OnCalendar: date, time, zone. */
static bool parse_moment(struct str text, struct when *when, struct err *err)
{
	struct str word;
	bool more = str_next_word(&text, &word);

	if (more && is_numeric(word) && has_one_of(word, "-~") && !has_one_of(word, ":")) {
		if (!parse_date(word, when, err))
			return false;
		more = str_next_word(&text, &word);
	} else {
		(void)parse_date(STR("*-*-*"), when, NULL);
	}
	if (more && (is_numeric(word) || has_one_of(word, ":"))) {
		if (!parse_time(word, when, err))
			return false;
		more = str_next_word(&text, &word);
	} else {
		(void)parse_time(STR("0:0"), when, NULL);
	}
	if (!more)
		return true;
	return set_zone(when, word, err) &&
	       (!str_next_word(&text, &word) ||
		err_set(err, EINVAL, "\"%.*s\" stands behind the time zone",
			(int)(word.size < 40 ? word.size : 40), word.data));
}

/* Set ERR: TEXT is of neither kind. NEAREST: the forms that are nearest to it, or "". */
static bool refuse(struct str text, const char *nearest, struct err *err)
{
	if (nearest[0] == '\0')
		nearest = "\"0 9 * * 1-5\" or \"Mon..Fri 09:00\", for example";
	return err_set(err, EINVAL,
		       "\"%.*s\" is neither cron's five fields nor systemd's OnCalendar: say it "
		       "as %s",
		       (int)text.size, text.data, nearest);
}

static bool parse_calendar(struct str text, struct when *when, struct err *err)
{
	struct str rest = text, word;

	if (is_numeric(text)) {
		set_all(when, WEEKDAY);
		return parse_moment(text, when, err);
	}
	if (!str_next_word(&rest, &word) || has_one_of(word, "0123456789*") ||
	    !parse_field(CALENDAR, WEEKDAY, word, when, NULL))
		return refuse(text, "", err);
	return parse_moment(rest, when, err);
}

/*
 * The names of crontab(5) and of systemd.time(7). They differ in `weekly`, which is
 * Sunday for cron.
 */
static const char *const names[][2] = {
	{"@yearly", "0 0 1 1 *"},
	{"@annually", "0 0 1 1 *"},
	{"@monthly", "0 0 1 * *"},
	{"@weekly", "0 0 * * 0"},
	{"@daily", "0 0 * * *"},
	{"@midnight", "0 0 * * *"},
	{"@hourly", "0 * * * *"},
	{"minutely", "*:*"},
	{"hourly", "*:00"},
	{"daily", "00:00"},
	{"weekly", "Mon 00:00"},
	{"monthly", "*-*-01 00:00"},
	{"quarterly", "*-01,04,07,10-01 00:00"},
	{"semiannually", "*-01,07-01 00:00"},
	{"yearly", "*-01-01 00:00"},
	{"annually", "*-01-01 00:00"},
};

/*
 * The form of TEXT without a name: TEXT itself when it is none, with or without a zone
 * behind it.
 */
static struct str without_name(struct str text, struct buf *form)
{
	struct str rest = text, word;

	(void)str_next_word(&rest, &word);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (str_find(rest, STR(" "), 1) != (size_t)-1 ||
		    !str_is_caseless(word, names[i][0]))
			continue;
		(void)buf_adds(form, names[i][1]);
		(void)buf_addstr(form, rest);
		return buf_str(form);
	}
	return text;
}

/* Is TEXT meant as the fields of cron, be they right or wrong? */
static bool is_cron(struct str text)
{
	struct str rest = text, word, first, second;
	size_t count = 2;

	if (!str_next_word(&rest, &first) || !str_next_word(&rest, &second))
		return false;
	while (str_next_word(&rest, &word))
		count++;
	return is_numeric(first) && is_numeric(second) &&
	       (count == 5 || !(has_one_of(text, ":") || has_one_of(first, "-~")));
}

/*
 * The nearest forms of times in words, for the sentence that refuses them. Only few words
 * are known here. With any other word there are no nearest forms.
 */

/* Append the forms that are nearest to an interval of MINUTES. */
static void add_interval(int64_t minutes, struct buf *out)
{
	const int hours = (int)((minutes + HOUR_M / 2) / HOUR_M);
	const int days = (int)((minutes + DAY_M / 2) / DAY_M);

	if (minutes < HOUR_M)
		(void)buf_addf(out, "\"*/%d * * * *\" or \"*:0/%d\"", (int)minutes,
			       (int)minutes);
	else if (hours < 24)
		(void)buf_addf(out, "\"0 */%d * * *\" or \"0/%d:00\"", hours, hours);
	else if (days < 28)
		(void)buf_addf(out, "\"0 0 */%d * *\" or \"*-*-1/%d\"", days, days);
	else
		(void)buf_adds(out, "\"0 0 1 * *\" or \"*-*-01\"");
}

static const char weekday_names[] = "SunMonTueWedThuFriSat";

/* Words for units and days, the more exact the later, and the same days in both forms. */
static const struct {
	const char *words;
	int64_t unit_m; /* 0: no unit of an interval */
	const char *cron, *calendar;
} meanings[] = {
	{"", 0, "* * *", ""},
	{"minute minutes", 1, "", ""},
	{"hour hours hourly", HOUR_M, "", ""},
	{"day days daily", DAY_M, "* * *", ""},
	{"week weeks weekly", WEEK_M, "* * 1", "Mon "},
	{"month monthly", 0, "1 * *", "*-*-01 "},
	{"year yearly annually", 0, "1 1 *", "*-01-01 "},
	{"weekday weekdays workday workdays", 0, "* * 1-5", "Mon..Fri "},
	{"weekend weekends", 0, "* * 6,7", "Sat,Sun "},
	{"last", 0, "L * *", "*-*~01 "},
};

struct words {
	size_t days;         /* the row of `meanings` */
	struct buf weekdays; /* "Mon,Fri" */
	int64_t every_m;     /* an interval; 0: none was said */
	unsigned hour, minute;
	bool has_hour;
};

/* The row of `meanings` that has WORD; 0: none has. */
static size_t meaning_of(struct str word)
{
	size_t row = sizeof(meanings) / sizeof(meanings[0]) - 1;

	while (row > 0 && !str_among(meanings[row].words, word))
		row--;
	return row;
}

/* Take a time of day, or the number of an interval. */
static bool take_figure(struct words *words, struct str word, struct str next)
{
	unsigned number;

	if (words->has_hour || words->every_m > 0 || !take_digits(&word, &number))
		return false;
	words->every_m = word.size == 0 ? number * meanings[meaning_of(next)].unit_m : 0;
	if (words->every_m > 0)
		return true;
	if (take(&word, ":") && !take_number(&fields[MINUTE], &word, &words->minute))
		return false;
	if (str_among("am pm", word) && number >= 1 && number <= 12)
		number = number % 12 + (str_is(word, "pm") ? 12 : 0);
	else if (word.size > 0)
		return false;
	words->hour = number;
	words->has_hour = true;
	return number <= fields[HOUR].most;
}

static bool take_word(struct words *words, struct str word, struct str next)
{
	const size_t row = meaning_of(word);
	struct str rest = word;
	unsigned weekday;

	if (is_digit(word.data[0]))
		return take_figure(words, word, next);
	if (take_name(&fields[WEEKDAY], &rest, &weekday) &&
	    (rest.size == 0 || str_is(rest, "s")))
		return buf_addf(&words->weekdays, "%s%.3s",
				words->weekdays.size > 0 ? "," : "",
				weekday_names + (size_t)weekday * 3);
	if (words->every_m > 0 && meanings[row].unit_m > 0)
		return true; /* the unit of the interval */
	if (meanings[row].unit_m > 0 && meanings[row].unit_m < DAY_M)
		words->every_m = meanings[row].unit_m;
	else if (row > words->days)
		words->days = row;
	return row > 0 || str_among("every each on the of and in at", word);
}

/* Append the forms that are nearest to WORDS. False: there are none. */
static bool add_nearest(const struct words *words, struct buf *out)
{
	const char *weekdays = words->weekdays.data;

	if (words->every_m > 0) {
		add_interval(words->every_m, out);
		return words->days == 0 && weekdays[0] == '\0' && !words->has_hour;
	}
	(void)buf_addf(out, "\"%u %u ", words->minute, words->hour);
	if (weekdays[0] != '\0')
		(void)buf_addf(out, "* * %s\" or \"%s ", weekdays, weekdays);
	else
		(void)buf_addf(out, "%s\" or \"%s", meanings[words->days].cron,
			       meanings[words->days].calendar);
	(void)buf_addf(out, "%02u:%02u\"", words->hour, words->minute);
	return weekdays[0] != '\0' ? meanings[words->days].unit_m > 0 || words->days == 0
				   : words->days > 0 || words->has_hour;
}

/* Append the forms that are nearest to TEXT. False: there are none. */
static bool find_nearest(struct str text, struct buf *out)
{
	struct words words = {0};
	char lower[WHEN_TEXT_MAX], stop;
	struct str rest = {lower, text.size}, word, next;
	bool ok = true;

	for (size_t i = 0; i < text.size; i++)
		lower[i] = (char)tolower((unsigned char)text.data[i]);
	buf_init(&words.weekdays, WHEN_TEXT_MAX);
	word = take_until(&rest, " ,", &stop);
	while (ok && (word.size > 0 || rest.size > 0)) {
		next = take_until(&rest, " ,", &stop);
		ok = word.size == 0 || take_word(&words, word, next);
		word = next;
	}
	ok = ok && add_nearest(&words, out);
	buf_fini(&words.weekdays);
	return ok;
}

/* Parse TEXT, whose words are separated by one blank. */
static bool parse(struct str text, struct when *when, struct err *err)
{
	struct when parsed = {0};
	struct str form;
	struct buf named, nearest;
	bool ok;

	if (text.size == 0)
		return err_set(err, EINVAL,
			       "no time is given, as in \"0 9 * * 1-5\" or \"Mon..Fri 09:00\"");
	if (text.size > WHEN_TEXT_MAX)
		return err_set(err, E2BIG, "a time of more than %d bytes", WHEN_TEXT_MAX);
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < ' ' || text.data[i] > '~')
			return refuse(STR("this time"), "", err);
	}
	buf_init(&named, WHEN_TEXT_MAX * 2);
	buf_init(&nearest, WHEN_TEXT_MAX * 4);
	form = without_name(text, &named);
	if (is_cron(form)) {
		ok = parse_cron(form, &parsed, err);
	} else {
		ok = parse_calendar(form, &parsed, err);
		if (!ok && find_nearest(text, &nearest))
			(void)refuse(text, nearest.data, err);
	}
	buf_fini(&nearest);
	buf_fini(&named);
	if (ok)
		*when = parsed;
	return ok;
}

/* The calendar: finds the first day that fits, and then the times of this day. */

/*
 * Set TZ, which holds for the whole process, to ZONE ("": leave it) until zone_leave.
 * Returns the old value.
 */
static char *zone_enter(const char *zone)
{
	char *old = memory_copy(getenv("TZ"));
	char name[WHEN_ZONE_MAX + 2];

	if (zone[0] != '\0') {
		(void)snprintf(name, sizeof(name), ":%s", zone);
		(void)setenv("TZ", name, 1);
	}
	tzset();
	return old;
}

static void zone_leave(const char *zone, char *old)
{
	if (zone[0] != '\0' && old)
		(void)setenv("TZ", old, 1);
	else if (zone[0] != '\0')
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
 * The times at which clocks show WANTED: one, or two in the hour that comes twice, the
 * earlier one first. In the hour that is skipped it is the time that comes as much later.
 * Returns how many there are.
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
	/* In Ireland the winter has the shifted time. */
	if (count == 2 && moments[1] < moments[0]) {
		const time_t later = moments[0];

		moments[0] = moments[1];
		moments[1] = later;
	}
	return count;
}

struct day {
	unsigned year, month, day, weekday;
};

static unsigned month_length(const struct day *day)
{
	static const unsigned char lengths[] = {31, 28, 31, 30, 31, 30,
						31, 31, 30, 31, 30, 31};
	const bool leap =
		day->year % 4 == 0 && (day->year % 100 != 0 || day->year % 400 == 0);

	return lengths[day->month - 1] + (day->month == 2 && leap ? 1U : 0U);
}

static void day_step(struct day *day)
{
	day->weekday = (day->weekday + 1) % 7;
	if (day->day++ < month_length(day))
		return;
	day->day = 1;
	if (day->month++ < 12)
		return;
	day->month = 1;
	day->year++;
}

static bool day_fits(const struct when *when, const struct day *day)
{
	const bool of_month = is_in(when, DAY, day->day) ||
			      is_in(when, DAY_FROM_END, month_length(day) - day->day + 1);
	const bool of_week = is_in(when, WEEKDAY, day->weekday);

	return is_in(when, YEAR, day->year) && is_in(when, MONTH, day->month) &&
	       (when->either ? of_month || of_week : of_month && of_week);
}

/* The first second of the minute BEGIN that fits and is after AFTER; 0: there is none. */
static time_t second_next(const struct when *when, time_t begin, time_t after)
{
	for (unsigned second = 0; second < MINUTE_S; second++) {
		if (is_in(when, SECOND, second) && begin + second > after)
			return begin + second;
	}
	return 0;
}

/* The first time on DAY after AFTER. */
static bool day_next(const struct when *when, const struct day *day, time_t after,
		     time_t *next)
{
	const bool every_hour = when->sets[HOUR][0] == (1U << 24) - 1;
	bool found = false;

	for (unsigned at = 0; at < DAY_M; at++) {
		const unsigned hour = at / HOUR_M, minute = at % HOUR_M;
		struct tm wanted = {.tm_year = (int)day->year - 1900,
				    .tm_mon = (int)day->month - 1,
				    .tm_mday = (int)day->day,
				    .tm_hour = (int)hour,
				    .tm_min = (int)minute};
		time_t moments[2], second;
		size_t count;

		if (!is_in(when, HOUR, hour) || !is_in(when, MINUTE, minute))
			continue;
		count = moments_of(&wanted, moments);
		for (size_t i = 0; i < count && (i == 0 || every_hour); i++) {
			second = second_next(when, moments[i], after);
			if (second == 0 || (found && second >= *next))
				continue;
			*next = second;
			found = true;
		}
	}
	return found;
}

/*
 * The first time of WHEN after AFTER_S; 0: there is none. A time that the clock skips in
 * spring becomes as much later. A time that the clock shows twice in autumn counts once
 * (twice when every hour fits).
 */
static int64_t find_next(const struct when *when, int64_t after_s)
{
	/* one day earlier, because clocks may skip or repeat a time around midnight */
	const time_t after = (time_t)after_s, eve = after - DAY_S;
	char *old = zone_enter(when->zone);
	bool found = false;
	time_t next = 0;
	struct tm from;
	struct day day;

	if (localtime_r(&eve, &from)) {
		day = (struct day){(unsigned)(from.tm_year + 1900),
				   (unsigned)from.tm_mon + 1, (unsigned)from.tm_mday,
				   (unsigned)from.tm_wday};
		for (; !found && day.year <= fields[YEAR].most; day_step(&day))
			found = day_fits(when, &day) && day_next(when, &day, after, &next);
	}
	zone_leave(when->zone, old);
	return found ? (int64_t)next : 0;
}

/* Append the time MOMENT_S as a clock in ZONE shows it: "Mon 2026-11-23 09:00 CET". */
static void add_moment(int64_t moment_s, const char *zone, struct buf *out)
{
	const time_t moment = (time_t)moment_s;
	char *old = zone_enter(zone);
	char text[64] = "";
	struct tm local;

	if (localtime_r(&moment, &local))
		(void)strftime(text, sizeof(text),
			       moment_s % MINUTE_S == 0 ? "%a %Y-%m-%d %H:%M %Z"
							: "%a %Y-%m-%d %H:%M:%S %Z",
			       &local);
	(void)buf_adds(out, text);
	zone_leave(zone, old);
}

/* Schedules as they are stored, and as people and models read them. */

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

/* Are TIMES an interval of *MINUTES, as version 0.1.0 stored it ("every 90 minutes")? */
static bool is_interval(struct str times, int64_t *minutes)
{
	*minutes = 0;
	if (!take(&times, "every "))
		return false;
	while (times.size > 0 && is_digit(times.data[0]) && *minutes < INT32_MAX) {
		*minutes = *minutes * 10 + (times.data[0] - '0');
		times = str_part(times, 1, times.size);
	}
	return *minutes > 0 && (str_is(times, " minutes") || str_is(times, " minute"));
}

/* Read TIMES, and ZONE unless TIMES name their own. */
static bool read_times(struct str times, struct str zone, struct when *when, struct err *err)
{
	return parse(times, when, err) &&
	       (when->zone[0] != '\0' || zone.size == 0 || set_zone(when, zone, err));
}

int64_t when_schedule_next(struct str times, struct str zone, int64_t began_s, int64_t now_s)
{
	struct when when;
	int64_t minutes;

	if (!is_interval(times, &minutes))
		return read_times(times, zone, &when, NULL) ? find_next(&when, now_s) : 0;
	if (now_s < began_s)
		return began_s + minutes * MINUTE_S;
	return now_s + minutes * MINUTE_S - (now_s - began_s) % (minutes * MINUTE_S);
}

void when_schedule_add_runs(struct str times, struct str zone, int64_t began_s,
			    int64_t now_s, struct buf *out)
{
	struct when when = {0};

	if (!read_times(times, zone, &when, NULL) && zone.size > 0)
		(void)set_zone(&when, zone, NULL);
	(void)buf_adds(out, "runs: ");
	for (int i = 0; i < RUNS_SHOWN; i++) {
		now_s = when_schedule_next(times, zone, began_s, now_s);
		if (now_s == 0) {
			(void)buf_adds(out, i == 0 ? "none" : "");
			break;
		}
		(void)buf_adds(out, i > 0 ? ", " : "");
		add_moment(now_s, when.zone, out);
	}
	(void)buf_addc(out, '\n');
}

/*
 * Append an OnCalendar whose times in UTC are exactly those of an interval of MINUTES
 * since BEGAN_S. False: there is none.
 */
static bool add_same_times(int64_t minutes, int64_t began_s, struct buf *out)
{
	const int second = (int)(began_s % MINUTE_S);
	const int minute = (int)(began_s / MINUTE_S % HOUR_M);
	const int hour = (int)(began_s % DAY_S / MINUTE_S / HOUR_M);
	const int hours = (int)(minutes / HOUR_M);
	/* 1970 began on a Thursday. */
	const size_t weekday = (size_t)(began_s / DAY_S + 4) % 7;

	if (began_s < 0)
		return false;
	if (minutes < HOUR_M && HOUR_M % minutes == 0)
		(void)buf_addf(out, "*:%02d/%d:%02d", minute % (int)minutes, (int)minutes,
			       second);
	else if (minutes == HOUR_M)
		(void)buf_addf(out, "*:%02d:%02d", minute, second);
	else if (minutes < DAY_M && minutes % HOUR_M == 0 && 24 % hours == 0)
		(void)buf_addf(out, "%02d/%d:%02d:%02d", hour % hours, hours, minute,
			       second);
	else if (minutes == DAY_M)
		(void)buf_addf(out, "%02d:%02d:%02d", hour, minute, second);
	else if (minutes == WEEK_M)
		(void)buf_addf(out, "%.3s %02d:%02d:%02d", weekday_names + weekday * 3,
			       hour, minute, second);
	else
		return false;
	return true;
}

bool when_schedule_renew(const struct schedule *schedule, struct buf *times,
			 struct schedule *renewed)
{
	int64_t minutes;

	*renewed = *schedule;
	if (!is_interval(schedule->times, &minutes) ||
	    !add_same_times(minutes, schedule->made_s, times))
		return false;
	renewed->times = buf_str(times);
	renewed->zone = STR("UTC");
	return true;
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

/* Append the times of SCHEDULE, an interval in its new form. */
static void add_times(const struct schedule *schedule, struct buf *out)
{
	struct schedule renewed;
	struct buf times;

	buf_init(&times, WHEN_TEXT_MAX);
	(void)when_schedule_renew(schedule, &times, &renewed);
	text_add_name(out, renewed.times);
	if (renewed.zone.size > 0) {
		(void)buf_adds(out, " in ");
		text_add_name(out, renewed.zone);
	}
	if (times.size > 0) {
		(void)buf_adds(out, " (until now: ");
		text_add_name(out, schedule->times);
		(void)buf_addc(out, ')');
	}
	buf_fini(&times);
}

/* Append what a person has to do about times that cannot be written today. */
static void add_advice(const struct schedule *schedule, struct buf *out)
{
	struct when when = {0};
	struct err err = {0};
	struct buf times;
	int64_t minutes;

	buf_init(&times, WHEN_TEXT_MAX);
	if (!is_interval(schedule->times, &minutes)) {
		if (!read_times(schedule->times, schedule->zone, &when, &err))
			(void)buf_addf(out,
				       "  this does not run: %s; add the schedule again with "
				       "another time, and remove this one\n",
				       err.text);
	} else if (!add_same_times(minutes, schedule->made_s, &times)) {
		(void)buf_adds(out,
			       "  this still runs, but such an interval cannot be written any "
			       "more: to replace it, add the schedule again, as with ");
		add_interval(minutes, out);
		(void)buf_adds(out, ", and remove this one\n");
	}
	buf_fini(&times);
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
	add_times(schedule, out);
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
	add_advice(schedule, out);
	if (schedule->busy_until_s > now_s)
		(void)buf_adds(out, "  a run is under way\n");
	if (schedule->last_s > 0) {
		(void)buf_adds(out, "  last run: ");
		add_moment(schedule->last_s, "", out);
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
	struct str text = str_of(when);
	struct when parsed;

	buf_clear(times);
	/* So that TIMES has room for all of it. */
	if (text.size > WHEN_TEXT_MAX)
		return err_set(err, E2BIG, "a time of more than %d bytes", WHEN_TEXT_MAX);
	while (text.size > 0) {
		char stop;
		struct str word = take_until(&text, " \t\r\n", &stop);

		if (word.size > 0)
			(void)buf_addf(times, "%s%.*s", times->size > 0 ? " " : "",
				       (int)word.size, word.data);
	}
	if (!parse(buf_str(times), &parsed, err))
		return false;
	if (zone && parsed.zone[0] != '\0')
		return err_set(err, EINVAL,
			       "the time \"%s\" names a time zone itself, and %.64s is given "
			       "besides: leave one of them out",
			       times->data, zone);
	if (zone && !set_zone(&parsed, str_of(zone), err))
		return false;
	*next_s = find_next(&parsed, now_s);
	return *next_s != 0 || err_set(err, EINVAL, "\"%s\" never comes", times->data);
}
