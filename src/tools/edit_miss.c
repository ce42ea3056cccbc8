/*
 * edit_miss: where a text that was not found nearly stands, and where one stands that was found
 * too often. The nearest windows of as many lines are those that share most of them, else the
 * lines that are nearest to the first; shown with white space visible, only what differs.
 */
#include "tools/edit.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "tools/shown.h"

#include <stdint.h>
#include <string.h>

enum {
	MISS_PLACES = EDIT_NEAR, /* shown */
	MISS_SHOWN = 6,          /* differing lines shown of the nearest */
	MISS_SHOWN_NEXT = 2,     /* and of each other */
	MISS_FOUND_LISTED = 20,  /* of the places of a text that was found too often */
	MISS_FOUND_SHOWN = 3,    /* of these with the line before them */
	MISS_LINE_BYTES = 200,   /* of each */
	MISS_WORK_MAX = 8000000, /* comparisons of lines by their hash: about 10 ms */
	MISS_NEAR_LINES = 20000, /* lines compared by distance */
	MISS_NEAR_BYTES = 256,   /* of each */
};

struct miss_lines {
	struct str *lines;
	uint32_t *hashes; /* of the line without blanks at its ends */
	size_t count;
};

static uint32_t hash_line(struct str line)
{
	struct str body = str_trim(line);
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < body.size; i++)
		hash = (hash ^ (unsigned char)body.data[i]) * 16777619u;
	return hash;
}

static struct miss_lines split(struct str text)
{
	struct miss_lines split = {.count = text_count_lines(text)};
	struct str line;

	split.lines = memory_array(split.count + 1, sizeof(*split.lines));
	split.hashes = memory_array(split.count + 1, sizeof(*split.hashes));
	for (size_t i = 0; i < split.count && str_next_line(&text, &line); i++) {
		split.lines[i] = line;
		split.hashes[i] = hash_line(line);
	}
	return split;
}

static void split_free(struct miss_lines *split)
{
	free(split->lines);
	free(split->hashes);
}

/* Where OLD may be meant: its first line would be these lines of the file, from 0. */
struct miss_places {
	size_t at[MISS_PLACES];
	size_t count;
};

static bool overlaps(const struct miss_places *places, size_t at, size_t lines)
{
	for (size_t i = 0; i < places->count; i++) {
		size_t other = places->at[i];

		if (at < other + lines && other < at + lines)
			return true;
	}
	return false;
}

static size_t count_same(const struct miss_lines *file, const struct miss_lines *old,
			 size_t at)
{
	size_t same = 0;

	for (size_t i = 0; i < old->count && at + i < file->count; i++)
		same += file->hashes[at + i] == old->hashes[i] &&
			str_trim(old->lines[i]).size > 0;
	return same;
}

/*
 * The windows of FILE with most lines of OLD in their places, none over another. Blank lines
 * do not count.
 */
static void add_windows(const struct miss_lines *file, const struct miss_lines *old,
			struct miss_places *places)
{
	size_t windows = file->count >= old->count ? file->count - old->count + 1 : 1;
	size_t *same;

	if (windows * old->count > MISS_WORK_MAX)
		return;
	same = memory_array(windows, sizeof(*same));
	for (size_t at = 0; at < windows; at++)
		same[at] = count_same(file, old, at);
	while (places->count < MISS_PLACES) {
		size_t best = 0, found = 0;

		for (size_t at = 0; at < windows; at++) {
			if (same[at] > best && !overlaps(places, at, old->count)) {
				best = same[at];
				found = at;
			}
		}
		if (best == 0)
			break;
		places->at[places->count++] = found;
	}
	free(same);
}

/* The EDIT_NEAR lines of FILE nearest to WANTED; how many. */
static size_t nearest_lines(const struct miss_lines *file, struct str wanted,
			    size_t lines[EDIT_NEAR])
{
	size_t distances[EDIT_NEAR];
	size_t count = 0, limit;

	wanted = str_part(str_trim(wanted), 0, MISS_NEAR_BYTES);
	limit = wanted.size / 3;
	for (size_t i = 0; i < file->count && i < MISS_NEAR_LINES && wanted.size > 0; i++) {
		struct str line = str_part(str_trim(file->lines[i]), 0, MISS_NEAR_BYTES);
		size_t distance, at;

		/* Two texts are at least as far apart as their lengths. */
		if (line.size > wanted.size + limit || wanted.size > line.size + limit)
			continue;
		distance = text_distance(wanted, line, limit);
		if (distance > limit ||
		    (count == EDIT_NEAR && distance >= distances[count - 1]))
			continue;
		count += count < EDIT_NEAR;
		for (at = count - 1; at > 0 && distances[at - 1] > distance; at--) {
			distances[at] = distances[at - 1];
			lines[at] = lines[at - 1];
		}
		distances[at] = distance;
		lines[at] = i;
		if (count == EDIT_NEAR)
			limit = distances[count - 1];
	}
	return count;
}

/* Where lines stand that are like the first one of OLD that is not blank. */
static void add_nearest(const struct miss_lines *file, const struct miss_lines *old,
			struct miss_places *places)
{
	size_t lines[EDIT_NEAR], first = 0, count;

	while (first < old->count && str_trim(old->lines[first]).size == 0)
		first++;
	count = first < old->count ? nearest_lines(file, old->lines[first], lines) : 0;
	for (size_t i = 0; i < count && places->count < MISS_PLACES; i++) {
		size_t at = lines[i] >= first ? lines[i] - first : 0;

		if (!overlaps(places, at, old->count))
			places->at[places->count++] = at;
	}
}

static void add_line(const char *label, struct str line, struct buf *out)
{
	size_t size = line.size;

	if (size > MISS_LINE_BYTES)
		size = text_character_border(line, MISS_LINE_BYTES);
	buf_adds(out, label);
	shown_add_spaces(str_part(line, 0, size), out);
	buf_adds(out, size < line.size ? "…\n" : "\n");
}

static bool differs(const struct miss_lines *file, const struct miss_lines *old,
		    size_t at, size_t i)
{
	return at + i >= file->count || !str_equal(file->lines[at + i], old->lines[i]);
}

/* The first MOST lines of OLD that are not in FILE from line AT on. */
static void show_window(const struct miss_lines *file, const struct miss_lines *old,
			size_t at, size_t most, struct buf *out)
{
	size_t differ = 0;

	for (size_t i = 0; i < old->count; i++) {
		if (!differs(file, old, at, i) || ++differ > most)
			continue;
		if (at + i < file->count) {
			buf_addf(out, "line %zu\n", at + i + 1);
			add_line("  file: ", file->lines[at + i], out);
		} else {
			buf_addf(out, "line %zu is past the end of the file\n", at + i + 1);
		}
		add_line("  old:  ", old->lines[i], out);
	}
	if (differ > most) {
		buf_adds(out, "… and ");
		text_add_count(out, differ - most, "more line");
		buf_adds(out, "\n");
	}
}

static void show_places(const struct miss_lines *file, const struct miss_lines *old,
			const struct miss_places *places, struct buf *out)
{
	for (size_t i = 0; i < places->count; i++) {
		size_t at = places->at[i], differ = 0;

		for (size_t j = 0; j < old->count; j++)
			differ += differs(file, old, at, j);
		buf_addf(out, "%s is line %zu; it differs in",
			 i == 0 ? "Nearest" : "Then", at + 1);
		if (old->count > 1)
			buf_addf(out, " %zu of %zu lines", differ, old->count);
		buf_adds(out, i == 0 ? " (→ is a tab, · a blank):\n" : ":\n");
		show_window(file, old, at, i == 0 ? MISS_SHOWN : MISS_SHOWN_NEXT, out);
	}
}

void edit_explain_miss(struct str text, struct str old, struct buf *sentence)
{
	struct miss_lines file = split(text);
	struct miss_lines wanted = split(old);
	struct miss_places places = {0};

	add_windows(&file, &wanted, &places);
	add_nearest(&file, &wanted, &places);
	if (file.count == 0)
		buf_adds(sentence, "The file is empty: fill it with write_file.");
	else if (places.count == 0)
		buf_addf(sentence,
			 "No line of it (%zu) is like the first of the old text. Read "
			 "the file, or find the text with grep.",
			 file.count);
	else
		show_places(&file, &wanted, &places, sentence);
	split_free(&file);
	split_free(&wanted);
}

void edit_add_nearest(struct str text, struct str wanted, struct buf *out)
{
	struct miss_lines file = split(text);
	size_t lines[EDIT_NEAR];
	size_t count = nearest_lines(&file, wanted, lines);

	if (count == 0)
		buf_adds(out, "No line of the file is like it. ");
	for (size_t i = 0; i < count; i++) {
		buf_addf(out, "%s %zu: `", i == 0 ? "Nearest are: line" : "`, line",
			 lines[i] + 1);
		text_add_name(out,
			      str_part(str_trim(file.lines[lines[i]]), 0,
				       text_character_border(str_trim(file.lines[lines[i]]),
							     MISS_LINE_BYTES)));
	}
	if (count > 0)
		buf_adds(out, "`. ");
	split_free(&file);
}

/* The last line before the one that holds the byte AT that is not blank; the empty one: none. */
static struct str line_before(struct str text, size_t at)
{
	const char *feed = at > 0 ? memrchr(text.data, '\n', at) : NULL;
	struct str before =
		str_trim(str_part(text, 0, feed ? (size_t)(feed - text.data) : 0));

	feed = before.size ? memrchr(before.data, '\n', before.size) : NULL;
	if (feed)
		before = str_trim(
			str_part(before, (size_t)(feed - before.data) + 1, before.size));
	return str_part(before, 0, text_character_border(before, MISS_LINE_BYTES));
}

void edit_add_places(struct str text, const struct match *match, struct buf *out)
{
	buf_addf(out, "line%s ", match->count == 1 ? "" : "s");
	for (size_t i = 0; i < match->count && i < MISS_FOUND_LISTED; i++) {
		struct str before = line_before(text, match->spans[i].start);

		buf_addf(out, "%s%zu", i ? ", " : "",
			 match_line(text, match->spans[i].start));
		if (i >= MISS_FOUND_SHOWN || before.size == 0)
			continue;
		buf_adds(out, " (after `");
		text_add_name(out, before);
		buf_adds(out, "`)");
	}
	if (match->count > MISS_FOUND_LISTED)
		buf_addf(out, " and %zu more", match->count - MISS_FOUND_LISTED);
}
