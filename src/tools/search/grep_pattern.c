/*
 * grep_pattern: reads a pattern once from left to right, writes it again so that nothing
 * in it matches "\n", and keeps the longest run of plain characters that each match must
 * hold. A pattern with a construct that is not certainly known stays as it is and is
 * matched line by line, without a needle.
 */

#include "tools/search/grep_pattern.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/regex.h"
#include "base/text/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The longest rewritten pattern: "$" becomes eight bytes. */
enum { REWRITTEN_MAX = 1 << 20 };

struct reader {
	struct str text;
	size_t at;
	size_t depth;    /* of open groups */
	struct buf out;  /* the pattern rewritten */
	struct buf run;  /* plain characters in a row at depth 0 */
	struct buf best; /* the longest such run */
	/* size of the last character of the run; 0: a quantifier cannot follow */
	size_t last;
	bool constrained; /* the pattern is more than plain characters in a row */
	bool by_line;     /* something may match "\n" */
	bool line_end;    /* the pattern asks for "\n" */
	/* The best run of each alternative so far. */
	struct grep_needle needles[GREP_NEEDLES_MAX];
	size_t needle_count;
	bool no_needles; /* an alternative has none, or there are too many */
	bool unknown;    /* there is a construct that is not known here */
};

static char reader_peek(const struct reader *reader, size_t ahead)
{
	size_t at = reader->at + ahead;

	return at < reader->text.size ? reader->text.data[at] : '\0';
}

static void reader_copy(struct reader *reader, size_t size)
{
	(void)buf_addstr(&reader->out, str_part(reader->text, reader->at, size));
	reader->at += size;
}

static void reader_replace(struct reader *reader, size_t size, const char *by)
{
	(void)buf_adds(&reader->out, by);
	reader->at += size;
}

/* The run ends here. */
static void reader_end_run(struct reader *reader)
{
	if (reader->run.size > reader->best.size) {
		buf_clear(&reader->best);
		(void)buf_addstr(&reader->best, buf_str(&reader->run));
	}
	buf_clear(&reader->run);
	reader->last = 0;
}

/* The run ends before something that is no plain character. */
static void reader_break(struct reader *reader)
{
	reader_end_run(reader);
	reader->constrained = true;
}

/* An alternative ends here, outside all groups. */
static void reader_end_alternative(struct reader *reader)
{
	reader_end_run(reader);
	if (reader->best.size == 0 || reader->needle_count == GREP_NEEDLES_MAX)
		reader->no_needles = true;
	else
		grep_needle_set(&reader->needles[reader->needle_count++],
				buf_str(&reader->best));
	buf_clear(&reader->best);
}

static void reader_plain(struct reader *reader, const char *bytes, size_t size)
{
	if (reader->depth > 0)
		return;
	(void)buf_add(&reader->run, bytes, size);
	reader->last = size;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Read the character behind a backslash, outside classes. */
static void reader_escape(struct reader *reader)
{
	char c = reader_peek(reader, 1);

	switch (c) {
	case 's':
		reader_break(reader);
		reader_replace(reader, 2, "[^\\S\\n]");
		return;
	case 'W':
		reader_break(reader);
		reader_replace(reader, 2, "[^\\w\\n]");
		return;
	case 'D':
		reader_break(reader);
		reader_replace(reader, 2, "[^\\d\\n]");
		return;
	case 'w':
	case 'd':
	case 'S':
	case 'h':
	case 'V':
		reader_break(reader);
		reader_copy(reader, 2);
		return;
	case 'b':
	case 'B':
		/* It has no width, so the characters on both sides stay in a row. */
		reader->last = 0;
		reader->constrained = true;
		/*
		 * Beside bytes that are no UTF-8, \B of PCRE2 10.42 gives different
		 * answers in a block and in a single line.
		 */
		reader->by_line = reader->by_line || c == 'B';
		reader_copy(reader, 2);
		return;
	case 't':
		reader_plain(reader, "\t", 1);
		reader_copy(reader, 2);
		return;
	case '\0':
	case 'Q':
	case 'E':
	case 'K':
		reader->unknown = true;
		return;
	default:
		break;
	}
	reader->line_end = reader->line_end || c == 'n';
	if (is_letter(c) || is_digit(c)) {
		/* These may match anything: \n, \R, \x0a, \12, \p{…}, \A. */
		reader_break(reader);
		reader->by_line = true;
		/*
		 * The characters behind such a letter belong to it, in a form that is not
		 * read here.
		 */
		reader->unknown = reader->unknown || strchr("xocpPNgk", c) || is_digit(c);
		reader_copy(reader, 2);
		return;
	}
	if ((unsigned char)c >= 0x80 || (unsigned char)c < ' ') {
		reader->unknown = true;
		return;
	}
	reader_plain(reader, &reader->text.data[reader->at + 1], 1);
	reader_copy(reader, 2);
}

/* The size of the [:name:] at OFFSET from here; 0: there is none. */
static size_t reader_posix_class(const struct reader *reader, size_t offset)
{
	size_t at = offset + 2;

	if (reader_peek(reader, offset) != '[' || reader_peek(reader, offset + 1) != ':')
		return 0;
	at += reader_peek(reader, at) == '^';
	while (is_letter(reader_peek(reader, at)))
		at++;
	if (reader_peek(reader, at) != ':' || reader_peek(reader, at + 1) != ']')
		return 0;
	return at + 2 - offset;
}

/*
 * A class [...]. A negated class is rewritten so that it cannot match "\n". With any
 * other class that might, lines are matched one by one.
 */
static void reader_class(struct reader *reader)
{
	bool negated = reader_peek(reader, 1) == '^';
	size_t at = negated ? 2 : 1;
	bool plain = true;

	reader_break(reader);
	if (reader_peek(reader, at) == ']')
		at++;
	while (reader->at + at < reader->text.size && reader_peek(reader, at) != ']') {
		char c = reader_peek(reader, at);
		size_t posix = reader_posix_class(reader, at);

		if (posix > 0) {
			struct str name = str_part(reader->text, reader->at + at, posix);

			plain = plain &&
				(str_is(name, "[:alnum:]") || str_is(name, "[:alpha:]") ||
				 str_is(name, "[:digit:]") || str_is(name, "[:upper:]") ||
				 str_is(name, "[:lower:]") || str_is(name, "[:punct:]"));
			at += posix;
		} else if (c == '\\') {
			char next = reader_peek(reader, at + 1);

			/*
			 * Except for these, letters and digits behind a backslash may
			 * stand for anything.
			 */
			if ((is_letter(next) && !strchr("wdSh", next)) || is_digit(next))
				plain = false;
			reader->unknown = reader->unknown || next == 'Q' || next == 'E';
			at += 2;
		} else {
			/* A range that begins below a blank may include "\n". */
			plain = plain && (unsigned char)c >= ' ';
			at++;
		}
	}
	if (reader->at + at >= reader->text.size) {
		reader->unknown = true;
		return;
	}
	reader_copy(reader, at);
	reader_replace(reader, 1, negated ? "\\n]" : "]");
	reader->by_line = reader->by_line || (!negated && !plain);
}

/*
 * The opening of a group. Only groups whose meaning does not reach beyond the group are
 * known.
 */
static void reader_group(struct reader *reader)
{
	static const char *const openings[] = {"(?:",  "(?=", "(?!", "(?<=",
					       "(?<!", "(?>", NULL};
	struct str rest = str_part(reader->text, reader->at, reader->text.size);

	reader_break(reader);
	reader->depth++;
	if (reader_peek(reader, 1) == '*') {
		reader->unknown = true;
		return;
	}
	if (reader_peek(reader, 1) != '?') {
		reader_copy(reader, 1);
		return;
	}
	for (const char *const *opening = openings; *opening; opening++) {
		if (str_starts(rest, str_of(*opening))) {
			reader_copy(reader, strlen(*opening));
			return;
		}
	}
	/*
	 * (?<name>…) and (?P<name>…) are known. All others are options, conditions,
	 * recursion or comments.
	 */
	if (str_starts(rest, STR("(?<")) || str_starts(rest, STR("(?P<"))) {
		size_t end = str_find(rest, STR(">"), 0);

		if (end != (size_t)-1) {
			reader_copy(reader, end + 1);
			return;
		}
	}
	reader->unknown = true;
}

/* A quantifier "*", "+", "?" or "{": how often the last character must stand there. */
static void reader_quantifier(struct reader *reader)
{
	char c = reader_peek(reader, 0);
	size_t size = 1;
	bool needed = c == '+';

	if (c == '{') {
		while (reader_peek(reader, size) &&
		       strchr("0123456789, ", reader_peek(reader, size)))
			size++;
		/* Otherwise "{" is a plain character. */
		if (size == 1 || reader_peek(reader, size) != '}') {
			reader_plain(reader, "{", 1);
			reader_copy(reader, 1);
			return;
		}
		needed = reader_peek(reader, 1) >= '1' && reader_peek(reader, 1) <= '9';
		size++;
	}
	if (!needed)
		buf_truncate(&reader->run, reader->run.size - reader->last);
	reader_break(reader);
	reader_copy(reader, size);
	/* The quantifier is lazy or possessive. */
	if (reader_peek(reader, 0) == '?' || reader_peek(reader, 0) == '+')
		reader_copy(reader, 1);
}

static void reader_step(struct reader *reader)
{
	struct str rest = str_part(reader->text, reader->at, reader->text.size);
	size_t size = text_utf8_length(rest);

	switch (rest.data[0]) {
	case '\\':
		reader_escape(reader);
		return;
	case '[':
		reader_class(reader);
		return;
	case '(':
		reader_group(reader);
		return;
	case ')':
		reader->depth -= reader->depth > 0;
		reader_break(reader);
		reader_copy(reader, 1);
		return;
	case '|':
		if (reader->depth == 0)
			reader_end_alternative(reader);
		else
			reader_break(reader);
		reader_copy(reader, 1);
		return;
	case '*':
	case '+':
	case '?':
	case '{':
		reader_quantifier(reader);
		return;
	case '.':
		reader_break(reader);
		reader_copy(reader, 1);
		return;
	case '^':
		reader_break(reader);
		reader_copy(reader, 1);
		return;
	case '$':
		reader_break(reader);
		reader_replace(reader, 1, "(?=\\r?$)");
		return;
	default:
		break;
	}
	if (size == 0 || rest.data[0] == '\n')
		reader->unknown = true;
	else
		reader_plain(reader, rest.data, size);
	reader_copy(reader, size > 0 ? size : 1);
}

/* Compile with Unicode rules for \w, \d, \s and \b, as people expect. */
static bool reader_compile(struct grep_pattern *pattern, struct str text, unsigned flags,
			   struct err *err)
{
	struct buf with_options;
	bool compiled;

	flags |= REGEX_MULTILINE;
	buf_init(&with_options, REWRITTEN_MAX);
	(void)buf_adds(&with_options, "(*UCP)");
	(void)buf_addstr(&with_options, text);
	compiled = regex_compile(buf_str(&with_options), flags, &pattern->regex, NULL);
	buf_fini(&with_options);
	/* Compile again without the option, to get an error with the right position. */
	return compiled || (err && regex_compile(text, flags, &pattern->regex, err));
}

/* Make the needles and the regex of the pattern that was read. */
static bool reader_use(struct reader *reader, struct grep_pattern *pattern,
		       unsigned flags, struct err *err)
{
	bool as_read = !reader->unknown;

	if (as_read && !reader->no_needles && !(flags & REGEX_IGNORE_CASE)) {
		memcpy(pattern->needles, reader->needles, sizeof(pattern->needles));
		pattern->needle_count = reader->needle_count;
		reader->needle_count = 0;
	}
	/* The pattern has only plain characters, so the needles are the whole pattern. */
	if (pattern->needle_count > 0 && !reader->constrained)
		return true;
	as_read = as_read && reader_compile(pattern, buf_str(&reader->out), flags, NULL);
	pattern->by_line = reader->by_line || !as_read;
	pattern->drop_cr = !as_read;
	/*
	 * An error must be about the pattern as it was written, not as it was rewritten.
	 */
	return as_read || reader_compile(pattern, reader->text, flags, err);
}

static void needles_fini(struct grep_needle *needles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		grep_needle_fini(&needles[i]);
}

bool grep_pattern_init(struct grep_pattern *pattern, struct str text, bool literal,
		       bool ignore_case, struct err *err)
{
	unsigned flags = ignore_case ? REGEX_IGNORE_CASE : 0;
	struct reader reader = {.text = text};
	bool used;

	*pattern = (struct grep_pattern){0};
	pattern->line_end = reader.line_end = memchr(text.data, '\n', text.size) != NULL;
	if (literal && !ignore_case) {
		grep_needle_set(&pattern->needles[0], text);
		pattern->needle_count = 1;
		return true;
	}
	if (literal)
		return regex_compile(text, flags | REGEX_LITERAL, &pattern->regex, err);
	buf_init(&reader.out, REWRITTEN_MAX);
	buf_init(&reader.run, REWRITTEN_MAX);
	buf_init(&reader.best, REWRITTEN_MAX);
	while (reader.at < text.size && !reader.unknown)
		reader_step(&reader);
	reader_end_alternative(&reader);
	pattern->line_end = reader.line_end;
	used = reader_use(&reader, pattern, flags, err);
	buf_fini(&reader.out);
	buf_fini(&reader.run);
	buf_fini(&reader.best);
	needles_fini(reader.needles, reader.needle_count);
	return used;
}

void grep_pattern_fini(struct grep_pattern *pattern)
{
	needles_fini(pattern->needles, pattern->needle_count);
	regex_free(pattern->regex);
	*pattern = (struct grep_pattern){0};
}

/* Finds a literal by its two rarest bytes, compared at 64 places at the same time. */

/* Bytes of source code and prose, the most frequent first. All other bytes are rarer. */
static const char frequent_bytes[] =
	" etaoinsrlcdup_mf,;()hg.b=-*\"\ty/v0wx:k>1<'{}[]2E&TSA+IRNCOLD"
	"Pz3jq!#MFUB4|8G56\\VH7%9X?WY@K~$J`Z^Q";

enum { STRIDE = 4 * BYTE_VECTOR };

static size_t byte_rarity(char c)
{
	const char *at = c ? strchr(frequent_bytes, c) : NULL;

	return at ? (size_t)(at - frequent_bytes) : sizeof(frequent_bytes);
}

/* The index of the rarest byte of TEXT, except the byte at BUT. */
static size_t rarest_byte(struct str text, size_t but)
{
	size_t rare = but == 0 && text.size > 1 ? 1 : 0;

	for (size_t i = rare + 1; i < text.size; i++) {
		if (i != but && byte_rarity(text.data[i]) > byte_rarity(text.data[rare]))
			rare = i;
	}
	return rare;
}

void grep_needle_set(struct grep_needle *needle, struct str text)
{
	needle->data = memory_copy_str(text);
	needle->size = text.size;
	needle->rare = rarest_byte(text, SIZE_MAX);
	needle->next_rare = rarest_byte(text, needle->rare);
}

void grep_needle_fini(struct grep_needle *needle)
{
	free(needle->data);
	*needle = (struct grep_needle){0};
}

/* The needle of a search, with its two bytes in all lanes of vectors. */
struct pair {
	const struct grep_needle *needle;
	byte_vector first, second;
};

/* The places from AT on at which both bytes stand at their distance. */
static byte_vector pair_at(const struct pair *pair, const char *at)
{
	return byte_vector_equal(at + pair->needle->rare, pair->first) &
	       byte_vector_equal(at + pair->needle->next_rare, pair->second);
}

/* The first of the COUNT places from AT on at which the needle stands, or NULL. */
static const char *needle_among(const struct grep_needle *needle, const char *at,
				size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (at[i + needle->rare] == needle->data[needle->rare] &&
		    memcmp(at + i, needle->data, needle->size) == 0)
			return at + i;
	}
	return NULL;
}

/*
 * The same for the STRIDE places from AT on, of which at most a few can hold the needle.
 */
static const char *needle_in_stride(const struct pair *pair, const char *at)
{
	for (size_t i = 0; i < STRIDE; i += BYTE_VECTOR) {
		byte_vector found = pair_at(pair, at + i);
		uint64_t parts[BYTE_VECTOR / sizeof(uint64_t)];
		const char *hit = NULL;

		memcpy(parts, &found, sizeof(parts));
		for (size_t k = 0; k < BYTE_VECTOR / sizeof(parts[0]) && !hit; k++) {
			if (parts[k] != 0)
				hit = needle_among(pair->needle,
						   at + i + k * sizeof(parts[0]),
						   sizeof(parts[0]));
		}
		if (hit)
			return hit;
	}
	return NULL;
}

static bool stride_holds_pair(const struct pair *pair, const char *at)
{
	byte_vector found = {0};
	uint64_t parts[BYTE_VECTOR / sizeof(uint64_t)];
	uint64_t all = 0;

	for (size_t i = 0; i < STRIDE; i += BYTE_VECTOR)
		found |= pair_at(pair, at + i);
	memcpy(parts, &found, sizeof(parts));
	for (size_t k = 0; k < BYTE_VECTOR / sizeof(parts[0]); k++)
		all |= parts[k];
	return all != 0;
}

size_t grep_needle_find(const struct grep_needle *needle, struct str text, size_t from)
{
	const char *at = text.data + from;
	const char *hit;
	struct pair pair;
	size_t places;

	if (text.size < needle->size || from > text.size - needle->size)
		return (size_t)-1;
	places = text.size - needle->size - from + 1;
	if (needle->size == 1) {
		hit = memchr(at, needle->data[0], places);
		return hit ? (size_t)(hit - text.data) : (size_t)-1;
	}
	pair = (struct pair){needle, byte_vector_of(needle->data[needle->rare]),
			     byte_vector_of(needle->data[needle->next_rare])};
	for (; places >= STRIDE; at += STRIDE, places -= STRIDE) {
		hit = stride_holds_pair(&pair, at) ? needle_in_stride(&pair, at) : NULL;
		if (hit)
			return (size_t)(hit - text.data);
	}
	hit = needle_among(needle, at, places);
	return hit ? (size_t)(hit - text.data) : (size_t)-1;
}
