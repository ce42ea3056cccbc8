/* diff: unified diffs; see diff.h. */
#include "base/text/diff.h"

#include <string.h>

#include "base/memory.h"
#include "base/text/diff_lines.h"
#include "base/text/text.h"

/* One stretch of differing lines, as lines on both sides. */
struct diff_change {
	size_t old_from, old_to, new_from, new_to;
};

/*
 * A group of changed lines that could as well stand lower is moved there, as other diffs
 * do: an added function then begins with its head, not with the brace of the one before.
 */
static void diff_slide(struct diff_side *side)
{
	size_t end = 0;

	while (end < side->count) {
		size_t start = end;

		while (start < side->count && !side->changed[start])
			start++;
		for (end = start; end < side->count && side->changed[end];)
			end++;
		while (start < end && end < side->count &&
		       str_equal(diff_line(side, start), diff_line(side, end))) {
			side->changed[start++] = false;
			side->changed[end++] = true;
			/* It may have reached the next group: both are one now. */
			while (end < side->count && side->changed[end])
				end++;
		}
	}
}

/* The next change at or after the unchanged pair *OLD_AT, *NEW_AT. */
static bool diff_next_change(const struct diff_sides *sides, size_t *old_at,
			     size_t *new_at, struct diff_change *change)
{
	const struct diff_side *old_side = &sides->old_side, *new_side = &sides->new_side;

	/* The line behind the last counts as unchanged on both sides. */
	while (!old_side->changed[*old_at] && !new_side->changed[*new_at]) {
		if (*old_at == old_side->count)
			return false;
		++*old_at;
		++*new_at;
	}
	change->old_from = *old_at;
	change->new_from = *new_at;
	while (old_side->changed[*old_at])
		++*old_at;
	while (new_side->changed[*new_at])
		++*new_at;
	change->old_to = *old_at;
	change->new_to = *new_at;
	return true;
}

static bool diff_add_lines(const struct diff_side *side, size_t from, size_t to,
			   char mark, struct buf *out)
{
	for (size_t i = from; i < to; i++) {
		struct str line = diff_line(side, i);

		if (!buf_addc(out, mark) || !buf_addstr(out, line))
			return false;
		if (line.data[line.size - 1] != '\n' &&
		    !buf_adds(out, "\n\\ No newline at end of file\n"))
			return false;
	}
	return true;
}

enum {
	/* Beyond this size equal lines before and behind the changes are left out first. */
	DIFF_CROPPED_MIN = 64 << 10,
	/* Of these so many stay: as context, and for changes that slide down (diff_slide). */
	DIFF_CROP_KEPT = 100,
	DIFF_BLOCK = 4096,
};

static size_t diff_common_start(struct str a, struct str b)
{
	size_t most = a.size < b.size ? a.size : b.size;
	size_t at = 0;

	while (most - at >= DIFF_BLOCK && memcmp(a.data + at, b.data + at, DIFF_BLOCK) == 0)
		at += DIFF_BLOCK;
	while (at < most && a.data[at] == b.data[at])
		at++;
	return at;
}

static size_t diff_common_end(struct str a, struct str b, size_t most)
{
	const char *a_end = a.data + a.size, *b_end = b.data + b.size;
	size_t at = 0;

	while (most - at >= DIFF_BLOCK &&
	       memcmp(a_end - at - DIFF_BLOCK, b_end - at - DIFF_BLOCK, DIFF_BLOCK) == 0)
		at += DIFF_BLOCK;
	while (at < most && a_end[-(ptrdiff_t)at - 1] == b_end[-(ptrdiff_t)at - 1])
		at++;
	return at;
}

/* Leave out what both texts begin and end with, by lines. How many are left out in front. */
static size_t diff_crop(struct str *a, struct str *b)
{
	size_t start = diff_common_start(*a, *b);
	size_t most = (a->size < b->size ? a->size : b->size) - start;
	size_t end = diff_common_end(*a, *b, most);
	struct str left_out;
	size_t lines = 0;

	for (int i = 0; i <= DIFF_CROP_KEPT && start > 0; i++) {
		const char *feed = memrchr(a->data, '\n', start - 1);

		start = feed ? (size_t)(feed - a->data) + 1 : 0;
	}
	for (int i = 0; i <= DIFF_CROP_KEPT && end > 0; i++) {
		const char *from = a->data + a->size - end;
		const char *feed = memchr(from, '\n', end);

		end = feed ? end - (size_t)(feed - from) - 1 : 0;
	}
	left_out = str_part(*a, 0, start);
	for (const char *at = left_out.data;
	     (at = memchr(at, '\n', left_out.size - (size_t)(at - left_out.data))); at++)
		lines++;
	*a = str_part(*a, start, a->size - start - end);
	*b = str_part(*b, start, b->size - start - end);
	return lines;
}

/* "3,2"; a single line has no count, and no line is named by the line before it. */
static bool diff_add_range(char mark, size_t from, size_t to, struct buf *out)
{
	size_t count = to - from;

	if (!buf_addf(out, "%c%zu", mark, count ? from + 1 : from))
		return false;
	return count == 1 || buf_addf(out, ",%zu", count);
}

/* One hunk: CHANGES from the first to the last, with CONTEXT lines around. */
static bool diff_add_hunk(const struct diff_sides *sides, const struct diff_change *changes,
			  size_t count, size_t context, struct buf *out)
{
	const struct diff_change *first = changes, *last = &changes[count - 1];
	size_t before = first->old_from < context ? first->old_from : context;
	size_t after = sides->old_side.count - last->old_to;
	size_t shown = first->old_from - before;

	after = after < context ? after : context;
	if (!buf_adds(out, "@@ ") ||
	    !diff_add_range('-', sides->skipped + shown,
			    sides->skipped + last->old_to + after, out) ||
	    !buf_addc(out, ' ') ||
	    !diff_add_range('+', sides->skipped + first->new_from - before,
			    sides->skipped + last->new_to + after, out) ||
	    !buf_adds(out, " @@\n"))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct diff_change *change = &changes[i];

		if (!diff_add_lines(&sides->old_side, shown, change->old_from, ' ', out) ||
		    !diff_add_lines(&sides->old_side, change->old_from, change->old_to,
				    '-', out) ||
		    !diff_add_lines(&sides->new_side, change->new_from, change->new_to,
				    '+', out))
			return false;
		shown = change->old_to;
	}
	return diff_add_lines(&sides->old_side, shown, last->old_to + after, ' ', out);
}

static bool diff_needs_quotes(const char *name)
{
	/* The text of a diff is UTF-8, whatever its names are. */
	if (!text_is_utf8(str_of(name)))
		return true;
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;

		if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
			return true;
	}
	return false;
}

bool diff_add_quoted(const char *prefix, const char *name, struct buf *out)
{
	const bool is_utf8 = text_is_utf8(str_of(name));

	/* As git writes them, and patch reads them: like strings of C. */
	if (!diff_needs_quotes(name))
		return buf_adds(out, prefix) && buf_adds(out, name);
	(void)buf_addf(out, "\"%s", prefix);
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;

		if (c == '"' || c == '\\')
			(void)buf_addf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !is_utf8))
			(void)buf_addf(out, "\\%03o", c);
		else
			(void)buf_addc(out, *name);
	}
	return buf_addc(out, '"');
}

static bool diff_add_name(const char *head, const char *name, struct buf *out)
{
	if (!buf_adds(out, head))
		return false;
	if (!name)
		return buf_adds(out, "/dev/null\n");
	if (!diff_add_quoted("", name, out))
		return false;
	/* Without the tab, patch takes a name only up to its first blank. */
	if (!diff_needs_quotes(name) && strchr(name, ' ') && !buf_addc(out, '\t'))
		return false;
	return buf_addc(out, '\n');
}

static bool diff_add_head(const char *old_name, const char *new_name, struct buf *out)
{
	if (!old_name && !new_name)
		return true;
	return diff_add_name("--- ", old_name, out) && diff_add_name("+++ ", new_name, out);
}

static bool diff_add_hunks(const struct diff_sides *sides, size_t context, struct buf *out)
{
	struct diff_change *changes = NULL, next;
	size_t count = 0, capacity = 0, old_at = 0, new_at = 0;
	bool fits = true;

	while (fits && diff_next_change(sides, &old_at, &new_at, &next)) {
		size_t gap = count ? next.old_from - changes[count - 1].old_to : 0;

		/*
		 * Changes whose contexts touch share a hunk: a gap of twice the context
		 * at most.
		 */
		if (gap - gap / 2 > context) {
			fits = diff_add_hunk(sides, changes, count, context, out);
			count = 0;
		}
		if (count == capacity) {
			capacity = capacity ? 2 * capacity : 16;
			changes = memory_grow(changes, capacity, sizeof(*changes));
		}
		changes[count++] = next;
	}
	if (fits && count)
		fits = diff_add_hunk(sides, changes, count, context, out);
	free(changes);
	return fits;
}

static void diff_compare(struct diff_sides *sides, struct str old_text,
			 struct str new_text, struct diff_counts *counts)
{
	struct diff_counts found = {0};
	size_t skipped = 0;

	if (old_text.size > DIFF_CROPPED_MIN && new_text.size > DIFF_CROPPED_MIN)
		skipped = diff_crop(&old_text, &new_text);
	diff_lines_init(sides, old_text, new_text);
	sides->skipped = skipped;
	diff_lines_compare(sides);
	diff_slide(&sides->old_side);
	diff_slide(&sides->new_side);
	for (size_t i = 0; i < sides->old_side.count; i++)
		found.removed += sides->old_side.changed[i];
	for (size_t i = 0; i < sides->new_side.count; i++)
		found.added += sides->new_side.changed[i];
	if (counts)
		*counts = found;
}

bool diff_unified(struct str old_text, struct str new_text, const char *old_name,
		  const char *new_name, size_t context, struct buf *out,
		  struct diff_counts *counts)
{
	size_t start = out->size;
	struct diff_sides sides;
	bool fits = true;

	if (str_equal(old_text, new_text)) {
		if (counts)
			*counts = (struct diff_counts){0};
		return true;
	}
	diff_compare(&sides, old_text, new_text, counts);
	fits = diff_add_head(old_name, new_name, out) &&
	       diff_add_hunks(&sides, context, out);
	diff_lines_fini(&sides);
	/* Half a diff is none. */
	if (!fits)
		buf_truncate(out, start);
	return fits;
}

void diff_count(struct str old_text, struct str new_text, struct diff_counts *counts)
{
	struct diff_sides sides;

	diff_compare(&sides, old_text, new_text, counts);
	diff_lines_fini(&sides);
}
