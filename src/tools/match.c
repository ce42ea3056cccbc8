/*
 * match: the levels that compare bytes after putting both texts into a plainer form; see
 * match.h.
 */
#include "tools/match.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <string.h>

static const struct {
	const char *name, *sentence;
} levels[] = {
	[MATCH_NONE] = {"none", "not found"},
	[MATCH_EXACT] = {"exact", "exactly"},
	[MATCH_LINE_END] = {"line_end", "the line ends differed"},
	[MATCH_TRAILING_SPACE] = {"trailing_space", "blanks at line ends differed"},
	[MATCH_PUNCTUATION] = {"punctuation",
			       "typographic quotes, dashes or blanks differed"},
	[MATCH_INDENT] = {"indent",
			  "the indentation differed, and the new text was indented as the file is"},
	[MATCH_LINE_NUMBERS] = {"line_numbers",
				"the line numbers of the reading were taken out"},
};

const char *match_level_name(enum match_level level)
{
	return levels[level].name;
}

const char *match_level_sentence(enum match_level level)
{
	return levels[level].sentence;
}

void match_init(struct match *match)
{
	memset(match, 0, sizeof(*match));
	buf_init(&match->replacement, SIZE_MAX);
}

void match_fini(struct match *match)
{
	if (!match)
		return;
	free(match->spans);
	match->spans = NULL;
	match->count = 0;
	buf_fini(&match->replacement);
}

void match_add(struct match *match, size_t start, size_t end)
{
	size_t count = match->count;

	/* Grows by doubling: its size is a power of two whenever it is full. */
	if (count < MATCH_SPANS_MAX && (count & (count - 1)) == 0)
		match->spans = memory_grow(match->spans, count ? 2 * count : 1,
					   sizeof(*match->spans));
	if (count < MATCH_SPANS_MAX)
		match->spans[count] = (struct match_span){start, end};
	match->count++;
}

size_t match_line(struct str text, size_t at)
{
	struct str before = str_part(text, 0, at);
	size_t line = 1;

	for (const char *feed = before.data;
	     (feed = memchr(feed, '\n', before.size - (size_t)(feed - before.data))); feed++)
		line++;
	return line;
}

void match_exact(struct str text, struct str old, bool all, struct match *match)
{
	size_t at = str_find(text, old, 0);

	while (at != (size_t)-1) {
		match_add(match, at, at + old.size);
		at = str_find(text, old, at + (all ? old.size : 1));
	}
}

/* Typographic characters and what stands for them on a keyboard. */
static const struct {
	const char *fancy, *plain;
} punctuation[] = {
	{"\u2018", "'"},  {"\u2019", "'"},  {"\u201a", "'"},  {"\u201b", "'"},
	{"\u2032", "'"},  {"\u201c", "\""}, {"\u201d", "\""}, {"\u201e", "\""},
	{"\u201f", "\""}, {"\u2033", "\""}, {"\u00ab", "\""}, {"\u00bb", "\""},
	{"\u2010", "-"},  {"\u2011", "-"},  {"\u2012", "-"},  {"\u2013", "-"},
	{"\u2014", "-"},  {"\u2015", "-"},  {"\u2212", "-"},  {"\u2026", "..."},
	{"\u00a0", " "},  {"\u2002", " "},  {"\u2003", " "},  {"\u2007", " "},
	{"\u2008", " "},  {"\u2009", " "},  {"\u200a", " "},  {"\u202f", " "},
	{"\u205f", " "},  {"\u3000", " "},
};

/* One step of the plainer form: SOURCE bytes of the text become PLAIN (maybe nothing). */
struct step {
	size_t source;
	struct str plain;
	bool verbatim; /* the bytes themselves: may be entered anywhere */
};

/* Longest run taken as one step: each entry into a text begins in the middle of one. */
enum { STEP_MAX = 256 };

/* Blanks at AT that stand at the end of their line: how many. */
static size_t trailing_blanks(struct str text, size_t at)
{
	size_t end = at;

	while (end < text.size && (text.data[end] == ' ' || text.data[end] == '\t'))
		end++;
	if (end == text.size || text.data[end] == '\n' ||
	    (text.data[end] == '\r' && end + 1 < text.size && text.data[end + 1] == '\n'))
		return end - at;
	return 0;
}

/* Blanks at AT: dropped at a line's end, else a run of themselves. */
static struct step blank_step(struct str text, size_t at)
{
	size_t size = trailing_blanks(text, at);

	if (size)
		return (struct step){.source = size};
	while (size < STEP_MAX &&
	       (text.data[at + size] == ' ' || text.data[at + size] == '\t'))
		size++;
	return (struct step){size, str_part(text, at, size), true};
}

static struct step punctuation_step(struct str text, size_t at)
{
	for (size_t i = 0; i < sizeof(punctuation) / sizeof(punctuation[0]); i++) {
		struct str fancy = str_of(punctuation[i].fancy);

		if (str_equal(str_part(text, at, fancy.size), fancy))
			return (struct step){fancy.size, str_of(punctuation[i].plain),
					     false};
	}
	return (struct step){1, str_part(text, at, 1), true};
}

/* Can the byte at AT mean anything else than itself at LEVEL? */
static bool is_special(unsigned char byte, enum match_level level)
{
	return byte == '\r' ||
	       (level >= MATCH_TRAILING_SPACE && (byte == ' ' || byte == '\t')) ||
	       (level >= MATCH_PUNCTUATION && byte >= 0x80);
}

static struct step plain_step(struct str text, size_t at, enum match_level level)
{
	unsigned char byte = (unsigned char)text.data[at];
	size_t size = 1;

	if (byte == '\r' && at + 1 < text.size && text.data[at + 1] == '\n')
		return (struct step){2, STR("\n"), false};
	if (level >= MATCH_TRAILING_SPACE && (byte == ' ' || byte == '\t'))
		return blank_step(text, at);
	if (level >= MATCH_PUNCTUATION && byte >= 0x80)
		return punctuation_step(text, at);
	while (size < STEP_MAX && at + size < text.size &&
	       !is_special((unsigned char)text.data[at + size], level))
		size++;
	return (struct step){size, str_part(text, at, size), true};
}

static void make_plain(struct str text, enum match_level level, struct buf *out)
{
	for (size_t at = 0; at < text.size;) {
		struct step step = plain_step(text, at, level);

		buf_addstr(out, step.plain);
		at += step.source;
	}
}

/* Where one span of the plainer form is in the text. Walks on from *AT and *PLAIN_AT. */
struct walk_back {
	struct str text;
	enum match_level level;
	size_t at, plain_at;
};

/*
 * The offset in the text of offset WANTED of the plainer form; false when it lies within
 * a step. AFTER: the end of what came before it, else the beginning of what comes then
 * (between the two lie dropped blanks).
 */
static bool walk_back(struct walk_back *walk, size_t wanted, bool after, size_t *found)
{
	while (walk->at < walk->text.size && walk->plain_at < wanted) {
		struct step step = plain_step(walk->text, walk->at, walk->level);

		if (step.verbatim && walk->plain_at + step.source > wanted) {
			step.source = wanted - walk->plain_at;
			step.plain.size = step.source;
		}
		walk->at += step.source;
		walk->plain_at += step.plain.size;
	}
	if (walk->plain_at != wanted)
		return false;
	if (!after) {
		while (walk->at < walk->text.size) {
			struct step step = plain_step(walk->text, walk->at, walk->level);

			if (step.plain.size)
				break;
			walk->at += step.source;
		}
	}
	*found = walk->at;
	return true;
}

static void match_plain(struct str text, struct str old, bool all, enum match_level level,
			struct match *match)
{
	struct walk_back walk = {.text = text, .level = level};
	struct match plain;
	struct buf text_plain, old_plain;

	match_init(&plain);
	buf_init(&text_plain, SIZE_MAX);
	buf_init(&old_plain, SIZE_MAX);
	make_plain(old, level, &old_plain);
	if (old_plain.size) {
		make_plain(text, level, &text_plain);
		match_exact(buf_str(&text_plain), buf_str(&old_plain), all, &plain);
	}
	for (size_t i = 0; i < plain.count && i < MATCH_SPANS_MAX; i++) {
		size_t start, end;
		struct walk_back from = walk;

		if (!walk_back(&from, plain.spans[i].start, false, &start))
			continue;
		walk = from;
		if (walk_back(&from, plain.spans[i].end, true, &end))
			match_add(match, start, end);
	}
	match_fini(&plain);
	buf_fini(&text_plain);
	buf_fini(&old_plain);
}

/* Do the bytes from START to END begin and end where lines of TEXT do? */
static bool is_whole_lines(struct str text, struct str old, struct match_span span)
{
	if (span.start > 0 && text.data[span.start - 1] != '\n')
		return false;
	/* A last line without an end is the last one of its file. */
	return span.end == text.size || (str_ends(old, STR("\n")) && span.end > 0 &&
					 text.data[span.end - 1] == '\n');
}

static void keep_whole_lines(struct str text, struct str old, struct match *match)
{
	size_t kept = 0;

	if (match->count > MATCH_SPANS_MAX)
		return;
	for (size_t i = 0; i < match->count; i++) {
		if (is_whole_lines(text, old, match->spans[i]))
			match->spans[kept++] = match->spans[i];
	}
	match->count = kept;
}

/*
 * OLD ends its last line, but the last line of the file, where it stands, has no end: the
 * new text gets none either.
 */
static bool match_open_end(struct str text, struct str old, enum match_level level,
			   struct match *match)
{
	size_t kept = 0;

	if (!str_ends(old, STR("\n")) || old.size < 2 || text.size == 0 ||
	    str_ends(text, STR("\n")))
		return false;
	old.size--;
	match_plain(text, old, false, level, match);
	for (size_t i = 0; i < match->count && i < MATCH_SPANS_MAX; i++) {
		if (match->spans[i].end == text.size)
			match->spans[kept++] = match->spans[i];
	}
	match->count = kept;
	return kept > 0;
}

bool match_find(struct str text, struct str old, struct str replacement, bool all,
		enum match_level highest, struct match *match)
{
	bool open_end = false;

	match->level = MATCH_EXACT;
	match_exact(text, old, all, match);
	if (match->whole_lines)
		keep_whole_lines(text, old, match);
	if (all && highest > MATCH_LINE_END)
		highest = MATCH_LINE_END;
	while (match->count == 0 && match->level < highest) {
		match->level++;
		if (match->level < MATCH_INDENT)
			match_plain(text, old, all, match->level, match);
		else if (match->level == MATCH_INDENT)
			match_indent(text, old, replacement, match);
		else
			match_numbers(text, old, replacement, match);
		if (match->whole_lines && match->level != MATCH_INDENT)
			keep_whole_lines(text, old, match);
		if (match->count == 0 && match->level < MATCH_INDENT && !all)
			open_end = match_open_end(text, old, match->level, match);
		if (open_end && match->whole_lines)
			keep_whole_lines(text, old, match);
	}
	if (match->count == 0)
		match->level = MATCH_NONE;
	else if (match->level < MATCH_INDENT)
		buf_addstr(&match->replacement, replacement);
	open_end = open_end || (match->level == MATCH_INDENT &&
				str_ends(old, STR("\n")) && !str_ends(text, STR("\n")) &&
				match->count == 1 && match->spans[0].end == text.size);
	if (open_end && str_ends(buf_str(&match->replacement), STR("\n")))
		buf_truncate(&match->replacement, match->replacement.size - 1);
	return match->count > 0;
}
