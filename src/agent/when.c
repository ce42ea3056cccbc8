/* when: texts to times, and the next of them. */
#include "agent/when.h"

#include "agent/when_words.h"
#include "base/text/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

enum { FIELDS = 5, MINUTE_S = 60, HOURS = 24 };

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

/* One of a field's comma-separated parts: "3", "1-5", "*", each with "/2" behind it. */
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
	/* 7 is Sunday, too. */
	when->weekdays = (uint8_t)((bits[4] | bits[4] >> 7) & 0x7f);
	return true;
}

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
