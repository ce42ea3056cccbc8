/* text_word: the nearest word, and numbers people type; see text.h. */
#include "base/text/text.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/memory.h"

/* About 31 years, the same end that base/clock.c has. */
#define TEXT_SECONDS_MAX 1000000000u
/* A nanosecond is the finest any clock here knows. */
enum { TEXT_FRACTION_DIGITS = 9 };
/* As much of a wrong word as a sentence repeats. */
enum { TEXT_QUOTED = 40 };

static size_t text_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t text_distance(struct str a, struct str b, size_t limit)
{
	const size_t far = limit == SIZE_MAX ? limit : limit + 1;
	size_t width = b.size + 1;
	auto_free size_t *rows = NULL;
	size_t *before, *last, *row;

	if ((a.size > b.size ? a.size - b.size : b.size - a.size) >= far)
		return far;
	rows = memory_array(3 * width, sizeof(*rows));
	before = rows;
	last = rows + width;
	row = rows + 2 * width;
	for (size_t j = 0; j < width; j++)
		last[j] = text_least(j, far);
	for (size_t i = 1; i <= a.size; i++) {
		/* Outside the band of LIMIT around the diagonal all is too far. */
		size_t from = i > limit ? i - limit : 1;
		size_t to = b.size - i > limit && b.size > i ? i + limit : b.size;
		size_t best = far, *free_row = before;

		row[from - 1] = from == 1 ? text_least(i, far) : far;
		for (size_t j = from; j <= to; j++) {
			bool same = a.data[i - 1] == b.data[j - 1];
			size_t cost = last[j - 1] + !same;

			cost = text_least(cost, row[j - 1] + 1);
			cost = text_least(cost, last[j] + 1);
			if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
			    a.data[i - 2] == b.data[j - 1])
				cost = text_least(cost, before[j - 2] + 1);
			row[j] = text_least(cost, far);
			best = text_least(best, row[j]);
		}
		if (to < b.size)
			row[to + 1] = far;
		if (best == far && row[from - 1] >= far)
			return far;
		before = last;
		last = row;
		row = free_row;
	}
	return text_least(last[b.size], far);
}

const char *text_nearest(const char *word, const char *const *names)
{
	struct str wanted = str_of(word);
	size_t best = wanted.size / 3 + 2;
	const char *nearest = NULL;

	for (; *names; names++) {
		struct str name = str_of(*names);
		size_t longer = wanted.size > name.size ? wanted.size : name.size;
		size_t distance = text_distance(wanted, name, best - 1);

		/* With no character in common it is another word, not a slip. */
		if (distance < best && distance < longer) {
			best = distance;
			nearest = *names;
		}
		if (best == 0)
			break;
	}
	return nearest;
}

static bool text_refuse(const char *text, const char *what, const char *form, struct err *err)
{
	struct str shown = str_of(text);
	struct buf clean;

	buf_init(&clean, (size_t)4 * TEXT_QUOTED);
	(void)text_clean(str_part(shown, 0, text_character_border(shown, TEXT_QUOTED)),
			 &clean);
	err_set(err, EINVAL, "\"%s%s\" is not a %s: %s", clean.data,
		shown.size > TEXT_QUOTED ? "…" : "", what, form);
	buf_fini(&clean);
	return false;
}

int text_hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

void text_from_hex(struct str digits, char *bytes)
{
	for (size_t i = 0; i + 1 < digits.size; i += 2) {
		const int high = text_hex_digit(digits.data[i]);
		const int low = text_hex_digit(digits.data[i + 1]);

		*bytes++ = (char)((high < 0 ? 0 : high) << 4 | (low < 0 ? 0 : low));
	}
	*bytes = '\0';
}

/* Digits at *AT as a number up to MAX; moves *AT behind them. */
static bool text_digits(const char **at, uint64_t max, uint64_t *number)
{
	const char *start = *at;

	*number = 0;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		uint64_t digit = (uint64_t)(**at - '0');

		if (digit > max || *number > (max - digit) / 10)
			return false;
		*number = *number * 10 + digit;
	}
	return *at > start;
}

bool text_parse_count(const char *text, uint64_t max, uint64_t *count, struct err *err)
{
	const char *at = text;
	uint64_t number;

	if (text_digits(&at, max, &number) && *at == '\0') {
		*count = number;
		return true;
	}
	if (*text && text[strspn(text, "0123456789")] == '\0')
		return err_set(err, ERANGE, "%.*s is too large: at most %llu",
			       TEXT_QUOTED, text, (unsigned long long)max);
	return text_refuse(text, "number", "give digits, as in 20", err);
}

bool text_parse_size(const char *text, uint64_t *bytes, struct err *err)
{
	static const char form[] = "give bytes, or a number with K, M, G or T, as in 512M";
	static const char letters[] = "KMGT";
	const char *at = text, *letter;
	uint64_t number;
	unsigned shift = 0;

	/* Sizes meet off_t sooner or later: INT64_MAX is their end. */
	if (!text_digits(&at, INT64_MAX, &number))
		return text_refuse(text, "size", form, err);
	letter = *at ? strchr(letters, *at) : NULL;
	if (letter) {
		shift = 10 * (unsigned)(letter - letters + 1);
		at++;
	}
	if (*at || number > (uint64_t)INT64_MAX >> shift)
		return text_refuse(text, "size", form, err);
	*bytes = number << shift;
	return true;
}

bool text_parse_seconds(const char *text, double *seconds, struct err *err)
{
	static const char form[] = "give seconds, fractions allowed, as in 1.5";
	const char *at = text;
	uint64_t whole, fraction = 0;
	double scale = 1;

	if (!text_digits(&at, TEXT_SECONDS_MAX, &whole))
		return text_refuse(text, "time", form, err);
	if (*at == '.') {
		const char *first = ++at;

		if (!text_digits(&at, UINT64_MAX, &fraction) ||
		    at - first > TEXT_FRACTION_DIGITS)
			return text_refuse(text, "time", form, err);
		for (; first < at; first++)
			scale *= 10;
	}
	if (*at)
		return text_refuse(text, "time", form, err);
	*seconds = (double)whole + (double)fraction / scale;
	return true;
}
