/*
 * walk: the threads, the folders they still have to read, and what they tell the visitor;
 * see walk.h. Each thread has a stack of folders of its own, depth first, so that little
 * waits; it gives its oldest ones away, or half of a large folder's entries, when another
 * has nothing to do. Thread 0 is the caller's: it alone asks the call whether to stop.
 */
#include "tools/search/walk_parts.h"

#include "base/clock.h"
#include "base/memory.h"
#include "tool/call.h"
#include "tools/search/rules.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum {
	/*
	 * A walk below both stays on one thread: starting one costs as much as 100
	 * entries.
	 */
	ALONE_ENTRIES = 512,
	ALONE_US = 1000,
	/* Thread 0 without work wakes to ask the call. */
	STOP_POLL_MS = 5,
	/* PCRE2's JIT has a stack of its own; patterns and paths take the rest. */
	THREAD_STACK = 512 << 10,
};

void walk_stack_push(struct walk_stack *stack, struct walk_item *item)
{
	if (stack->count == stack->room) {
		stack->room = stack->room ? stack->room * 2 : 64;
		stack->items =
			memory_grow(stack->items, stack->room, sizeof(*stack->items));
	}
	stack->items[stack->count++] = item;
}

void walk_end_with(struct walk *walk, enum walk_end end)
{
	int complete = WALK_COMPLETE;

	(void)atomic_compare_exchange_strong(&walk->end, &complete, (int)end);
}

void walker_give_up(struct walker *walker)
{
	walk_end_with(walker->walk, WALK_GIVEN_UP);
}

unsigned walker_number(const struct walker *walker)
{
	return walker->number;
}

bool walker_stopped(struct walker *walker)
{
	struct walk *walk = walker->walk;
	const struct walk_options *options = walk->options;

	if (walker->number == 0) {
		if (call_stopped(options->call))
			walk_end_with(walk, WALK_STOPPED);
		else if (options->until_ms > 0 && clock_now_ms() >= options->until_ms)
			walk_end_with(walk, WALK_LATE);
	}
	return atomic_load_explicit(&walk->end, memory_order_relaxed) != WALK_COMPLETE;
}

static size_t item_bytes(const struct walk_item *item)
{
	return sizeof(*item) + item->path_size + 1 + item->part_size;
}

struct walk_item *walk_item_new(struct walk *walk, struct rules *rules, struct str path,
				struct str part)
{
	struct walk_item *item = memory_alloc(sizeof(*item) + path.size + 1);

	item->rules = rules_ref(rules);
	item->path_size = path.size;
	memcpy(item->path, path.data, path.size);
	if (part.size > 0) {
		item->part = memory_alloc(part.size);
		memcpy(item->part, part.data, part.size);
		item->part_size = part.size;
	}
	atomic_fetch_add_explicit(&walk->pending, item_bytes(item), memory_order_relaxed);
	return item;
}

static void item_free(struct walk *walk, struct walk_item *item)
{
	atomic_fetch_sub_explicit(&walk->pending, item_bytes(item), memory_order_relaxed);
	rules_unref(item->rules);
	free(item->part);
	free(item);
}

static void walker_run(struct walker *walker);

static void *walker_main(void *argument)
{
	walker_run(argument);
	return NULL;
}

static void walker_init(struct walk *walk, unsigned number)
{
	struct walker *walker = &walk->walkers[number];
	struct str rules_path = buf_str(&walk->start->rules_path);

	walker->walk = walk;
	walker->number = number;
	walker->buffer = memory_grow(NULL, WALK_FOLDER_BUFFER, 1);
	walker->path = memory_alloc(rules_path.size + 1 + PATH_MAX + 1);
	memcpy(walker->path, rules_path.data, rules_path.size);
	walker->path_at = rules_path.size;
	if (rules_path.size > 0)
		walker->path[walker->path_at++] = '/';
}

static void walker_fini(struct walker *walker)
{
	while (walker->stack.count > 0)
		item_free(walker->walk, walker->stack.items[--walker->stack.count]);
	free(walker->stack.items);
	free(walker->buffer);
	free(walker->path);
}

/*
 * More threads, once the walk turns out to be worth them. None may be had: one is
 * enough.
 */
static void walk_spread(struct walk *walk)
{
	pthread_attr_t attributes;

	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, THREAD_STACK);
	(void)pthread_mutex_lock(&walk->lock);
	while (walk->walker_count < walk->threads_max) {
		struct walker *walker = &walk->walkers[walk->walker_count];

		walker_init(walk, walk->walker_count);
		if (pthread_create(&walker->thread, &attributes, walker_main, walker) != 0) {
			walker_fini(walker);
			walk->threads_max = walk->walker_count;
			break;
		}
		walk->walker_count++;
	}
	(void)pthread_mutex_unlock(&walk->lock);
	(void)pthread_attr_destroy(&attributes);
}

bool walker_others_idle(struct walker *walker)
{
	struct walk *walk = walker->walk;

	if (atomic_load_explicit(&walk->idle, memory_order_relaxed) > 0)
		return true;
	if (walker->number != 0 || walk->walker_count >= walk->threads_max)
		return false;
	if (walker->entries < ALONE_ENTRIES && clock_now_us() - walk->begun_us < ALONE_US)
		return false;
	walk_spread(walk);
	return walk->walker_count > 1;
}

void walk_share(struct walk *walk, struct walk_item *const *items, size_t count)
{
	(void)pthread_mutex_lock(&walk->lock);
	for (size_t i = 0; i < count; i++)
		walk_stack_push(&walk->shared, items[i]);
	(void)pthread_cond_broadcast(&walk->changed);
	(void)pthread_mutex_unlock(&walk->lock);
}

void walker_share_folders(struct walker *walker, size_t kept)
{
	struct walk_stack *stack = &walker->stack;
	size_t count = (stack->count + 1 - kept) / 2;

	if (count == 0 || !walker_others_idle(walker))
		return;
	walk_share(walker->walk, stack->items, count);
	stack->count -= count;
	memmove(stack->items, stack->items + count, stack->count * sizeof(*stack->items));
}

/* Wait for work from others, with the lock held. Thread 0 asks its call meanwhile. */
static void walker_wait(struct walker *walker)
{
	struct walk *walk = walker->walk;
	struct timespec until;

	if (walker->number != 0) {
		(void)pthread_cond_wait(&walk->changed, &walk->lock);
		return;
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += STOP_POLL_MS * 1000000;
	if (until.tv_nsec >= CLOCK_SECOND_NS) {
		until.tv_nsec -= CLOCK_SECOND_NS;
		until.tv_sec++;
	}
	(void)pthread_cond_timedwait(&walk->changed, &walk->lock, &until);
	(void)walker_stopped(walker);
}

/* The next thing to do, or NULL when the walk is over for all. */
static struct walk_item *walker_take(struct walker *walker)
{
	struct walk *walk = walker->walk;
	struct walk_item *item = NULL;

	if (walker->stack.count > 0)
		return walker->stack.items[--walker->stack.count];
	(void)pthread_mutex_lock(&walk->lock);
	atomic_fetch_add(&walk->idle, 1);
	while (!walk->finished && walk->shared.count == 0) {
		if (atomic_load(&walk->idle) == walk->walker_count) {
			walk->finished = true;
			(void)pthread_cond_broadcast(&walk->changed);
		} else {
			walker_wait(walker);
		}
	}
	if (!walk->finished) {
		item = walk->shared.items[--walk->shared.count];
		atomic_fetch_sub(&walk->idle, 1);
	}
	(void)pthread_mutex_unlock(&walk->lock);
	return item;
}

static void walker_run(struct walker *walker)
{
	struct walk_item *item = walker_take(walker);

	while (item) {
		/*
		 * Once stopped, what waits is thrown away, so that all threads come to
		 * an end.
		 */
		if (!walker_stopped(walker)) {
			walker_read(walker, item);
			walker_share_folders(walker, 1);
		}
		item_free(walker->walk, item);
		item = walker_take(walker);
	}
}

static unsigned walk_cores(void)
{
	unsigned count = cores_usable();

	return count > WALK_THREADS_MAX ? WALK_THREADS_MAX : count;
}

void walk_summary_init(struct walk_summary *summary)
{
	*summary = (struct walk_summary){0};
	buf_init(&summary->example, PATH_MAX);
}

void walk_summary_fini(struct walk_summary *summary)
{
	buf_fini(&summary->example);
}

static void walk_sum(struct walk *walk, struct walk_summary *summary)
{
	for (unsigned i = 0; i < walk->walker_count; i++) {
		struct walker *walker = &walk->walkers[i];

		if (i > 0)
			(void)pthread_join(walker->thread, NULL);
		summary->entries += walker->entries;
		summary->folders += walker->folders;
		summary->ignored += walker->ignored;
		summary->unreadable += walker->unreadable;
		summary->too_long += walker->too_long;
		walker_fini(walker);
	}
	summary->end = (enum walk_end)atomic_load(&walk->end);
}

void walk_run(const struct walk_start *start, const struct walk_options *options,
	      struct walk_summary *summary)
{
	struct walk *walk = memory_alloc(sizeof(*walk));
	pthread_condattr_t attributes;

	assert(options->threads <= WALK_THREADS_MAX);
	walk->start = start;
	walk->options = options;
	walk->under = str_of(options->under);
	walk->entries_max = options->entries_max ? options->entries_max : WALK_ENTRIES_MAX;
	walk->threads_max = options->threads ? options->threads : walk_cores();
	walk->begun_us = clock_now_us();
	walk->example = &summary->example;
	walk->walker_count = 1;
	(void)pthread_mutex_init(&walk->lock, NULL);
	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&walk->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);

	walker_init(walk, 0);
	walk_stack_push(&walk->walkers[0].stack,
			walk_item_new(walk, start->rules, STR(""), STR("")));
	walker_run(&walk->walkers[0]);
	walk_sum(walk, summary);
	free(walk->shared.items);
	(void)pthread_cond_destroy(&walk->changed);
	(void)pthread_mutex_destroy(&walk->lock);
	free(walk);
}
