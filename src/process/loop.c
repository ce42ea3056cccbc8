/* loop: poll(2) over a list. A callback may add and remove whatever it likes. */
#include "process/loop.h"

#include "base/clock.h"
#include "base/memory.h"

#include <poll.h>
#include <stddef.h>
#include <stdlib.h>

struct loop {
	struct watch *first, *last;
	struct timer *timers;
	/* the watches of the running turn; a removed one becomes NULL */
	struct watch **ready_at;
	struct pollfd *polled;
	size_t count, capacity;
	int64_t stay_until_us; /* the next wait does not sleep before */
};

struct loop *loop_new(void)
{
	return memory_alloc(sizeof(struct loop));
}

void loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	free(loop->ready_at);
	free(loop->polled);
	free(loop);
}

void loop_add(struct loop *loop, struct watch *watch)
{
	if (watch->loop != NULL)
		return;
	watch->loop = loop;
	watch->next = NULL;
	watch->previous = loop->last;
	if (loop->last != NULL)
		loop->last->next = watch;
	else
		loop->first = watch;
	loop->last = watch;
}

void loop_remove(struct watch *watch)
{
	struct loop *loop = watch->loop;

	if (loop == NULL)
		return;
	if (watch->previous != NULL)
		watch->previous->next = watch->next;
	else
		loop->first = watch->next;
	if (watch->next != NULL)
		watch->next->previous = watch->previous;
	else
		loop->last = watch->previous;
	for (size_t i = 0; i < loop->count; i++) {
		if (loop->ready_at[i] == watch)
			loop->ready_at[i] = NULL;
	}
	watch->loop = NULL;
}

void loop_add_timer(struct loop *loop, struct timer *timer)
{
	if (timer->loop != NULL)
		return;
	timer->loop = loop;
	timer->previous = NULL;
	timer->next = loop->timers;
	if (loop->timers != NULL)
		loop->timers->previous = timer;
	loop->timers = timer;
}

void loop_remove_timer(struct timer *timer)
{
	if (timer->loop == NULL)
		return;
	if (timer->previous != NULL)
		timer->previous->next = timer->next;
	else
		timer->loop->timers = timer->next;
	if (timer->next != NULL)
		timer->next->previous = timer->previous;
	timer->loop = NULL;
}

static void list_watches(struct loop *loop)
{
	loop->count = 0;
	for (struct watch *watch = loop->first; watch != NULL; watch = watch->next) {
		if (loop->count == loop->capacity) {
			loop->capacity = loop->capacity * 2 + 16;
			loop->ready_at = memory_grow(loop->ready_at, loop->capacity,
						     sizeof(loop->ready_at[0]));
			loop->polled = memory_grow(loop->polled, loop->capacity,
						   sizeof(loop->polled[0]));
		}
		loop->ready_at[loop->count] = watch;
		loop->polled[loop->count] =
			(struct pollfd){.fd = watch->fd, .events = watch->events};
		loop->count++;
	}
}

static int64_t next_due(const struct loop *loop, int64_t until_ms)
{
	for (const struct timer *timer = loop->timers; timer != NULL; timer = timer->next) {
		if (timer->due_ms < until_ms)
			until_ms = timer->due_ms;
	}
	return until_ms;
}

/* One after the other from the start: a callback may have changed the list. */
static void run_timers(struct loop *loop)
{
	int64_t now = clock_now_ms();
	struct timer *timer = loop->timers;

	while (timer != NULL) {
		if (timer->due_ms > now) {
			timer = timer->next;
			continue;
		}
		timer->due_ms = CLOCK_NEVER;
		timer->due(timer);
		timer = loop->timers;
	}
}

void loop_stay(struct loop *loop, int64_t until_us)
{
	loop->stay_until_us = until_us;
}

static int wait_awake(struct loop *loop)
{
	int ready = 0;

	if (loop->stay_until_us == 0)
		return 0;
	do {
		ready = poll(loop->polled, loop->count, 0);
	} while (ready == 0 && clock_now_us() < loop->stay_until_us);
	loop->stay_until_us = 0;
	return ready;
}

void loop_turn(struct loop *loop, int64_t until_ms)
{
	list_watches(loop);
	int ready = wait_awake(loop);
	if (ready == 0)
		ready = poll(loop->polled, loop->count,
			     clock_poll_timeout(next_due(loop, until_ms)));
	for (size_t i = 0; ready > 0 && i < loop->count; i++) {
		struct watch *watch = loop->ready_at[i];
		if (watch != NULL && loop->polled[i].revents != 0)
			watch->ready(watch, loop->polled[i].revents);
	}
	loop->count = 0;
	run_timers(loop);
}
