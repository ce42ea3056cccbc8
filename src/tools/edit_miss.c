/*
 * edit_miss: where a text that was not found nearly stands. The window of as many lines
 * that shares most of them, else the line that is nearest to the first; shown with white
 * space visible, only what differs.
 */
#include "tools/edit.h"

#include "base/memory.h"
#include "base/text.h"
#include "tools/shown.h"

#include <stdint.h>
#include <string.h>

enum {
	MISS_SHOWN = 6,          /* differing lines shown */
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

/*
 * The window of FILE with most lines of OLD in their places: its first line; *BEST is how
 * many. Blank lines do not count.
 */
static size_t best_window(const struct miss_lines *file, const struct miss_lines *old,
			  size_t *best)
{
	size_t windows = file->count >= old->count ? file->count - old->count + 1 : 1;
	size_t found = 0;

	*best = 0;
	if (windows * old->count > MISS_WORK_MAX)
		return 0;
	for (size_t at = 0; at < windows; at++) {
		size_t same = 0;

		for (size_t i = 0; i < old->count && at + i < file->count; i++)
			same += file->hashes[at + i] == old->hashes[i] &&
				str_trim(old->lines[i]).size > 0;
		if (same > *best) {
			*best = same;
			found = at;
		}
	}
	return found;
}

/* The line of FILE nearest to the first line of OLD that is not blank, or -1. */
static size_t nearest_line(const struct miss_lines *file, const struct miss_lines *old,
			   size_t *first)
{
	size_t found = (size_t)-1;
	struct str wanted;
	size_t limit;

	for (*first = 0; *first < old->count && !str_trim(old->lines[*first]).size;)
		++*first;
	if (*first == old->count)
		return found;
	wanted = str_part(str_trim(old->lines[*first]), 0, MISS_NEAR_BYTES);
	limit = wanted.size / 3;
	for (size_t i = 0; i < file->count && i < MISS_NEAR_LINES; i++) {
		struct str line = str_part(str_trim(file->lines[i]), 0, MISS_NEAR_BYTES);
		size_t distance;

		/* Two texts are at least as far apart as their lengths. */
		if (line.size > wanted.size + limit || wanted.size > line.size + limit)
			continue;
		distance = text_distance(wanted, line, limit);
		if (distance < limit || (distance == limit && found == (size_t)-1)) {
			found = i;
			limit = distance;
		}
	}
	return found;
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

static void show_window(const struct miss_lines *file, const struct miss_lines *old,
			size_t at, struct buf *out)
{
	size_t shown = 0;
	size_t differ = 0;

	buf_addf(out, "Nearest is line %zu; it differs in (→ is a tab, · a blank):\n",
		 at + 1);
	for (size_t i = 0; i < old->count; i++) {
		if (at + i < file->count && str_equal(file->lines[at + i], old->lines[i]))
			continue;
		differ++;
		if (shown == MISS_SHOWN)
			continue;
		shown++;
		if (at + i < file->count) {
			buf_addf(out, "line %zu\n", at + i + 1);
			add_line("  file: ", file->lines[at + i], out);
		} else {
			buf_addf(out, "line %zu is past the end of the file\n", at + i + 1);
		}
		add_line("  old:  ", old->lines[i], out);
	}
	if (differ > shown)
		buf_addf(out, "… and %zu more lines\n", differ - shown);
}

void edit_explain_miss(struct str text, struct str old, struct buf *sentence)
{
	struct miss_lines file = split(text);
	struct miss_lines wanted = split(old);
	size_t same = 0;
	size_t first = 0;
	size_t at = best_window(&file, &wanted, &same);

	if (same == 0) {
		at = nearest_line(&file, &wanted, &first);
		if (at != (size_t)-1)
			at = at >= first ? at - first : 0;
	}
	if (file.count == 0)
		buf_adds(sentence, "The file is empty: fill it with write_file.");
	else if (at == (size_t)-1)
		buf_addf(sentence,
			 "No line of it (%zu) is like the first of the old text. Read "
			 "the file, or find the text with grep.",
			 file.count);
	else
		show_window(&file, &wanted, at, sentence);
	split_free(&file);
	split_free(&wanted);
}
