/* diff_lines: the comparison under diff.c; see diff_lines.h. */
#include "base/text/diff_lines.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/text/text.h"

/*
 * Steps of the search over one pair of texts: a quarter of a second. What is undecided
 * then is shown as replaced whole, which is correct and no worse to read than a diff of
 * that size.
 */
#define DIFF_EFFORT ((ptrdiff_t)40000000)

/*
 * A table of different lines. A line's number is one more than the place of the first
 * line equal to it, old lines first: so a new line is in the old text when its number is
 * in there.
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
 * FNV-1a over words, mixed at the end (Murmur3's finalizer): fast, and equality is
 * checked anyway.
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

struct str diff_line(const struct diff_side *side, size_t i)
{
	return str_part(side->text, side->starts[i], side->starts[i + 1] - side->starts[i]);
}

/* The number of LINE; NEXT when it is the first of its kind. */
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
	/* Two sides must number their lines in 32 bits. */
	assert(side->count < UINT32_MAX / 2);
	side->starts = memory_array(side->count + 1, sizeof(*side->starts));
	side->ids = memory_array(side->count + 1, sizeof(*side->ids));
	side->changed = memory_array(side->count + 1, sizeof(*side->changed));
	while (str_next_line(&rest, &line))
		side->starts[++i] = text.size - rest.size;
}

void diff_lines_init(struct diff_sides *sides, struct str old_text, struct str new_text)
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

void diff_lines_fini(struct diff_sides *sides)
{
	diff_side_fini(&sides->old_side);
	diff_side_fini(&sides->new_side);
}

/* The part of the lines that has to be searched: those that occur on both sides. */
struct diff_part {
	uint32_t *ids;
	uint32_t *lines; /* where each stands in its side */
	size_t count;
};

/* One direction of the search: how far it reaches on each diagonal x - y. */
struct diff_front {
	ptrdiff_t *reach; /* x, by diagonal; negative indices are in the allocation */
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

/* Trim what is equal on both ends of BOX. */
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

/* One difference more: a diagonal more on each side, or fewer once BOX ends there. */
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
 * Advance the forward front; true where it meets the backward one, with the point in
 * *MEET.
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
 * A point in the middle of a shortest path through BOX; false when the effort is spent.
 */
static bool diff_middle(struct diff_search *search, const struct diff_box *box,
			struct diff_point *meet)
{
	const ptrdiff_t start = box->x0 - box->y0, end = box->x1 - box->y1;
	/* The length of the whole path is odd or even as the corners' diagonals are. */
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

/* Depth is bounded: both parts have about half of the differences. */
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
 * Number the lines of both sides between FROM and the ends; one that the other side has
 * not is changed for sure.
 */
static void diff_number(struct diff_sides *sides, size_t from, size_t old_to, size_t new_to)
{
	struct diff_side *old_side = &sides->old_side, *new_side = &sides->new_side;
	auto_free bool *in_new = memory_array(old_to + 1, sizeof(*in_new));
	struct diff_table table = {.sides = sides};
	size_t wanted = 16;

	/* A power of two, and half full at most. */
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
 * Fill PART with the lines of SIDE between FROM and TO that are not marked as changed: only
 * these are still to be searched.
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
	/* One more on both sides for the borders that diff_front_widen writes. */
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

void diff_lines_compare(struct diff_sides *sides)
{
	const struct diff_side *old_side = &sides->old_side, *new_side = &sides->new_side;
	size_t from = 0, old_to = old_side->count, new_to = new_side->count;

	/* Most edits are small: what is equal on both ends needs no numbers. */
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
