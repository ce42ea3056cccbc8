/* ranking: a binary heap whose top is the first to go; see ranking.h. */
#include "tools/search/ranking.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

bool found_newer(const struct found *a, const struct found *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns;
	return strcmp(a->path, b->path) < 0;
}

void ranking_init(struct ranking *ranking, size_t max, ranking_before *before)
{
	*ranking = (struct ranking){.before = before, .max = max};
}

static void found_fini(struct found *found)
{
	free(found->path);
	free(found->target);
}

void ranking_fini(struct ranking *ranking)
{
	for (size_t i = 0; i < ranking->count; i++)
		found_fini(&ranking->items[i]);
	free(ranking->items);
	ranking->items = NULL;
	ranking->count = 0;
	ranking->room = 0;
}

bool ranking_wants(const struct ranking *ranking, const struct found *found)
{
	if (ranking->count < ranking->max)
		return true;
	return ranking->max > 0 && ranking->before(found, &ranking->items[0]);
}

static void ranking_swap(struct ranking *ranking, size_t a, size_t b)
{
	struct found kept = ranking->items[a];

	ranking->items[a] = ranking->items[b];
	ranking->items[b] = kept;
}

/* Let the item AT sink to its place among the first COUNT. */
static void ranking_sink(struct ranking *ranking, size_t at, size_t count)
{
	for (;;) {
		size_t last = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count;
		     child++) {
			if (ranking->before(&ranking->items[last], &ranking->items[child]))
				last = child;
		}
		if (last == at)
			return;
		ranking_swap(ranking, at, last);
		at = last;
	}
}

void ranking_add(struct ranking *ranking, struct found take_found)
{
	size_t at = ranking->count;

	if (!ranking_wants(ranking, &take_found)) {
		found_fini(&take_found);
		return;
	}
	if (ranking->count == ranking->max) {
		found_fini(&ranking->items[0]);
		ranking->items[0] = take_found;
		ranking_sink(ranking, 0, ranking->count);
		return;
	}
	if (ranking->count == ranking->room) {
		ranking->room = ranking->room ? ranking->room * 2 : 16;
		ranking->items = memory_grow(ranking->items, ranking->room,
					     sizeof(*ranking->items));
	}
	ranking->items[ranking->count++] = take_found;
	while (at > 0 &&
	       ranking->before(&ranking->items[(at - 1) / 2], &ranking->items[at])) {
		ranking_swap(ranking, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

void ranking_take_all(struct ranking *ranking, struct ranking *other)
{
	for (size_t i = 0; i < other->count; i++)
		ranking_add(ranking, other->items[i]);
	other->count = 0;
	ranking_fini(other);
}

void ranking_sort(struct ranking *ranking)
{
	/*
	 * The top is the last of all: it goes behind the rest, which becomes a heap
	 * again.
	 */
	for (size_t left = ranking->count; left > 1; left--) {
		ranking_swap(ranking, 0, left - 1);
		ranking_sink(ranking, 0, left - 1);
	}
}

void ranking_sort_by(struct ranking *ranking, ranking_before *before)
{
	ranking->before = before;
	for (size_t at = ranking->count / 2; at-- > 0;)
		ranking_sink(ranking, at, ranking->count);
	ranking_sort(ranking);
}
