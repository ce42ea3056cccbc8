/* diff: finds the lines in which two texts differ, and prints a unified diff. */

#include "base/text/diff.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The lines of one text. */
struct diff_side {
	struct str text;
	size_t count;
	size_t *starts; /* count + 1 offsets */
	uint32_t *ids;  /* equal lines have equal numbers, over both sides */
	bool *changed;  /* count + 1; the last is always false */
};

struct diff_sides {
	struct diff_side old_side, new_side;
	/* equal lines at the beginning, which are not part of the sides */
	size_t skipped;
};

/*
 * Finds the lines that two texts do not have in common: Myers, "An O(ND) Difference
 * Algorithm and Its Variations" (1986), section 4b, the linear-space refinement.
 */

/*
 * Steps of the search over one pair of texts: a quarter of a second. Lines that are
 * still undecided then are shown as replaced. The diff stays correct and is no worse to
 * read than any diff of that size.
 */
#define DIFF_EFFORT ((ptrdiff_t)40000000)

/*
 * A table of the different lines. The number of a line is one more than the index of
 * the first line equal to it, counted through the old text and then the new one. So a
 * new line is also in the old text when its number lies in the range of the old text.
 */
struct diff_slot {
	uint32_t hash, id; /* id 0: free */
};

struct diff_table {
	const struct diff_sides *sides;
	struct diff_slot *slots;
	size_t mask;
};

/*
 * FNV-1a over words, mixed at the end (Murmur3's finalizer). It is fast, and equality
 * is checked anyway.
 */
static uint64_t diff_hash(struct str line)
{
	uint64_t hash = 0xcbf29ce484222325u ^ line.size, word;
	size_t at = 0;

	for (; line.size - at >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, line.data + at, sizeof(word));
		hash = (hash ^ word) * 0x100000001b3u;
		hash ^= hash >> 29;
	}
	for (; at < line.size; at++)
		hash = (hash ^ (unsigned char)line.data[at]) * 0x100000001b3u;
	hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
	return hash ^ (hash >> 33);
}

/*
 * Line I with its line end. So a last line without one differs from the same line with
 * one.
 */
static struct str diff_line(const struct diff_side *side, size_t i)
{
	return str_part(side->text, side->starts[i], side->starts[i + 1] - side->starts[i]);
}

/* The number of LINE; NEXT when no equal line came before. */
static uint32_t diff_table_number(struct diff_table *table, struct str line, uint32_t next)
{
	const size_t old_count = table->sides->old_side.count;
	uint64_t hash = diff_hash(line);
	struct diff_slot *slot;

	for (size_t at = (size_t)hash & table->mask;; at = (at + 1) & table->mask) {
		size_t first;

		slot = &table->slots[at];
		if (slot->id == 0)
			break;
		if (slot->hash != (uint32_t)(hash >> 32))
			continue;
		first = slot->id - 1;
		if (str_equal(line, first < old_count
					    ? diff_line(&table->sides->old_side, first)
					    : diff_line(&table->sides->new_side,
							first - old_count)))
			return slot->id;
	}
	*slot = (struct diff_slot){(uint32_t)(hash >> 32), next};
	return next;
}

static void diff_side_init(struct diff_side *side, struct str text)
{
	struct str rest = text, line;
	size_t i = 0;

	side->text = text;
	side->count = text_count_lines(text);
	/* The numbers of the lines of both sides must fit into 32 bits. */
	assert(side->count < UINT32_MAX / 2);
	side->starts = memory_array(side->count + 1, sizeof(*side->starts));
	side->ids = memory_array(side->count + 1, sizeof(*side->ids));
	side->changed = memory_array(side->count + 1, sizeof(*side->changed));
	while (str_next_line(&rest, &line))
		side->starts[++i] = text.size - rest.size;
}

static void diff_lines_init(struct diff_sides *sides, struct str old_text,
			    struct str new_text)
{
	diff_side_init(&sides->old_side, old_text);
	diff_side_init(&sides->new_side, new_text);
}

static void diff_side_fini(struct diff_side *side)
{
	free(side->starts);
	free(side->ids);
	free(side->changed);
}

static void diff_lines_fini(struct diff_sides *sides)
{
	diff_side_fini(&sides->old_side);
	diff_side_fini(&sides->new_side);
}

/* The lines that have to be searched: those that occur on both sides. */
struct diff_part {
	uint32_t *ids;
	uint32_t *lines; /* index of each line in its side */
	size_t count;
};

/* One direction of the search: the farthest point on each diagonal x - y. */
struct diff_front {
	ptrdiff_t *reach; /* x by diagonal; the allocation includes negative indices */
	ptrdiff_t low, high;
};

struct diff_search {
	struct diff_part old_part, new_part;
	struct diff_side *old_side, *new_side;
	struct diff_front forward, backward;
	ptrdiff_t effort;
};

/* A box of the edit graph: old lines from x0 to x1, new lines from y0 to y1. */
struct diff_box {
	ptrdiff_t x0, x1, y0, y1;
};

struct diff_point {
	ptrdiff_t x, y;
};

static bool diff_same(const struct diff_search *search, ptrdiff_t x, ptrdiff_t y)
{
	return search->old_part.ids[x] == search->new_part.ids[y];
}

/* Remove equal lines at both ends of BOX. */
static void diff_box_trim(const struct diff_search *search, struct diff_box *box)
{
	while (box->x0 < box->x1 && box->y0 < box->y1 &&
	       diff_same(search, box->x0, box->y0)) {
		box->x0++;
		box->y0++;
	}
	while (box->x0 < box->x1 && box->y0 < box->y1 &&
	       diff_same(search, box->x1 - 1, box->y1 - 1)) {
		box->x1--;
		box->y1--;
	}
}

static void diff_mark(struct diff_search *search, const struct diff_box *box)
{
	for (ptrdiff_t x = box->x0; x < box->x1; x++)
		search->old_side->changed[search->old_part.lines[x]] = true;
	for (ptrdiff_t y = box->y0; y < box->y1; y++)
		search->new_side->changed[search->new_part.lines[y]] = true;
}

/*
 * Allow one more difference: widen FRONT by a diagonal on each side, or narrow it where
 * BOX ends.
 */
static void diff_front_widen(struct diff_front *front, const struct diff_box *box,
			     ptrdiff_t nowhere)
{
	if (front->low > box->x0 - box->y1) {
		front->low--;
		front->reach[front->low - 1] = nowhere;
	} else {
		front->low++;
	}
	if (front->high < box->x1 - box->y0) {
		front->high++;
		front->reach[front->high + 1] = nowhere;
	} else {
		front->high--;
	}
}

/*
 * Advance the forward front. True when it meets the backward front; *MEET is the point.
 */
static bool diff_forward(struct diff_search *search, const struct diff_box *box,
			 bool decides, struct diff_point *meet)
{
	struct diff_front *front = &search->forward;
	const struct diff_front *other = &search->backward;

	diff_front_widen(front, box, -1);
	for (ptrdiff_t k = front->high; k >= front->low; k -= 2) {
		ptrdiff_t right = front->reach[k - 1] + 1, down = front->reach[k + 1];
		ptrdiff_t x = right > down ? right : down, start = x;

		while (x < box->x1 && x - k < box->y1 && diff_same(search, x, x - k))
			x++;
		front->reach[k] = x;
		search->effort -= x - start + 1;
		if (decides && other->low <= k && k <= other->high && other->reach[k] <= x) {
			*meet = (struct diff_point){x, x - k};
			return true;
		}
	}
	return false;
}

static bool diff_backward(struct diff_search *search, const struct diff_box *box,
			  bool decides, struct diff_point *meet)
{
	struct diff_front *front = &search->backward;
	const struct diff_front *other = &search->forward;

	diff_front_widen(front, box, PTRDIFF_MAX);
	for (ptrdiff_t k = front->high; k >= front->low; k -= 2) {
		ptrdiff_t left = front->reach[k + 1] - 1, up = front->reach[k - 1];
		ptrdiff_t x = left < up ? left : up, start = x;

		while (x > box->x0 && x - k > box->y0 && diff_same(search, x - 1, x - k - 1))
			x--;
		front->reach[k] = x;
		search->effort -= start - x + 1;
		if (decides && other->low <= k && k <= other->high && x <= other->reach[k]) {
			*meet = (struct diff_point){x, x - k};
			return true;
		}
	}
	return false;
}

/*
 * Find a point in the middle of a shortest path through BOX. False when the effort is
 * spent.
 */
static bool diff_middle(struct diff_search *search, const struct diff_box *box,
			struct diff_point *meet)
{
	const ptrdiff_t start = box->x0 - box->y0, end = box->x1 - box->y1;
	/*
	 * The path length is odd exactly when the diagonals of the corners differ by an
	 * odd number.
	 */
	const bool odd = (start - end) & 1;

	search->forward.low = search->forward.high = start;
	search->forward.reach[start] = box->x0;
	search->backward.low = search->backward.high = end;
	search->backward.reach[end] = box->x1;
	while (search->effort > 0) {
		if (diff_forward(search, box, odd, meet) ||
		    diff_backward(search, box, !odd, meet))
			return true;
	}
	return false;
}

/* The depth is bounded, because each part has about half of the differences. */
static void diff_box_compare(struct diff_search *search, struct diff_box box)
{
	struct diff_box first, second;
	struct diff_point middle;

	diff_box_trim(search, &box);
	if (box.x0 == box.x1 || box.y0 == box.y1 || !diff_middle(search, &box, &middle)) {
		diff_mark(search, &box);
		return;
	}
	assert(middle.x >= box.x0 && middle.x <= box.x1);
	assert(middle.y >= box.y0 && middle.y <= box.y1);
	first = second = box;
	first.x1 = second.x0 = middle.x;
	first.y1 = second.y0 = middle.y;
	diff_box_compare(search, first);
	diff_box_compare(search, second);
}

/*
 * Number the lines of both sides between FROM and the ends. A line that is only on one
 * side is certainly changed.
 */
static void diff_number(struct diff_sides *sides, size_t from, size_t old_to, size_t new_to)
{
	struct diff_side *old_side = &sides->old_side, *new_side = &sides->new_side;
	auto_free bool *in_new = memory_array(old_to + 1, sizeof(*in_new));
	struct diff_table table = {.sides = sides};
	size_t wanted = 16;

	/* The table has a power of two slots and is at most half full. */
	while (wanted < 2 * (old_to - from + new_to - from))
		wanted *= 2;
	table.slots = memory_array(wanted, sizeof(*table.slots));
	table.mask = wanted - 1;
	for (size_t i = from; i < old_to; i++)
		old_side->ids[i] = diff_table_number(&table, diff_line(old_side, i),
						     (uint32_t)(i + 1));
	for (size_t i = from; i < new_to; i++) {
		uint32_t next = (uint32_t)(old_side->count + i + 1);

		new_side->ids[i] = diff_table_number(&table, diff_line(new_side, i), next);
		new_side->changed[i] = new_side->ids[i] > old_to;
		if (!new_side->changed[i])
			in_new[new_side->ids[i]] = true;
	}
	for (size_t i = from; i < old_to; i++)
		old_side->changed[i] = !in_new[old_side->ids[i]];
	free(table.slots);
}

/*
 * Fill PART with the lines of SIDE between FROM and TO that are not marked as changed.
 * Only these still have to be searched.
 */
static void diff_part_init(struct diff_part *part, const struct diff_side *side,
			   size_t from, size_t to)
{
	*part = (struct diff_part){
		.ids = memory_array(to - from, sizeof(*part->ids)),
		.lines = memory_array(to - from, sizeof(*part->lines)),
	};
	for (size_t i = from; i < to; i++) {
		if (side->changed[i])
			continue;
		part->ids[part->count] = side->ids[i];
		part->lines[part->count++] = (uint32_t)i;
	}
}

static void diff_search_between(struct diff_sides *sides, size_t from, size_t old_to,
				size_t new_to)
{
	struct diff_search search = {.old_side = &sides->old_side,
				     .new_side = &sides->new_side,
				     .effort = DIFF_EFFORT};
	ptrdiff_t *forward, *backward;
	struct diff_box box = {0};
	size_t diagonals;

	diff_part_init(&search.old_part, search.old_side, from, old_to);
	diff_part_init(&search.new_part, search.new_side, from, new_to);
	/* One more on both sides, for the borders that diff_front_widen writes. */
	diagonals = search.old_part.count + search.new_part.count + 3;
	forward = memory_array(diagonals, sizeof(*forward));
	backward = memory_array(diagonals, sizeof(*backward));
	search.forward.reach = forward + search.new_part.count + 1;
	search.backward.reach = backward + search.new_part.count + 1;
	box.x1 = (ptrdiff_t)search.old_part.count;
	box.y1 = (ptrdiff_t)search.new_part.count;
	diff_box_compare(&search, box);
	free(forward);
	free(backward);
	free(search.old_part.ids);
	free(search.old_part.lines);
	free(search.new_part.ids);
	free(search.new_part.lines);
}

/* Fill `changed` of both sides. */
static void diff_lines_compare(struct diff_sides *sides)
{
	const struct diff_side *old_side = &sides->old_side, *new_side = &sides->new_side;
	size_t from = 0, old_to = old_side->count, new_to = new_side->count;

	/* Most edits are small: equal lines at both ends need no numbers. */
	while (from < old_to && from < new_to &&
	       str_equal(diff_line(old_side, from), diff_line(new_side, from)))
		from++;
	while (old_to > from && new_to > from &&
	       str_equal(diff_line(old_side, old_to - 1), diff_line(new_side, new_to - 1))) {
		old_to--;
		new_to--;
	}
	diff_number(sides, from, old_to, new_to);
	diff_search_between(sides, from, old_to, new_to);
}

/* One stretch of different lines, as line numbers on both sides. */
struct diff_change {
	size_t old_from, old_to, new_from, new_to;
};

/*
 * Move each group of changed lines as far down as possible, as other diffs do. An added
 * function then begins with its head, not with the brace of the function before it.
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
			/*
			 * The group may have reached the next one: both are one group
			 * now.
			 */
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

	/* The line behind the last one counts as unchanged on both sides. */
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
	/*
	 * Texts of this size or more first lose their equal lines before and behind the
	 * changes.
	 */
	DIFF_CROPPED_MIN = 64 << 10,
	/*
	 * So many of these lines stay: as context, and for changes that slide down
	 * (diff_slide).
	 */
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

/*
 * Cut the common lines at the beginning and the end of both texts. Returns the number
 * of lines cut at the beginning.
 */
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

/*
 * Print a range such as "3,2". A single line has no count. An empty range names the
 * line before it.
 */
static bool diff_add_range(char mark, size_t from, size_t to, struct buf *out)
{
	size_t count = to - from;

	if (!buf_addf(out, "%c%zu", mark, count ? from + 1 : from))
		return false;
	return count == 1 || buf_addf(out, ",%zu", count);
}

/* Print one hunk with COUNT CHANGES and CONTEXT lines around them. */
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
	/* Quote a name that is no UTF-8, so that the diff is always UTF-8. */
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

	/*
	 * Quote as C does, because git writes such names in this form and patch reads
	 * them.
	 */
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
	/* Without the tab, patch reads a name only up to its first blank. */
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
	size_t count = 0, old_at = 0, new_at = 0;
	bool fits = true;

	while (fits && diff_next_change(sides, &old_at, &new_at, &next)) {
		size_t gap = count ? next.old_from - changes[count - 1].old_to : 0;

		/*
		 * Changes share a hunk when their contexts touch: with a gap of at most
		 * twice the context.
		 */
		if (gap - gap / 2 > context) {
			fits = diff_add_hunk(sides, changes, count, context, out);
			count = 0;
		}
		changes = memory_more(changes, count, sizeof(*changes));
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
	/* Remove an incomplete diff. */
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
