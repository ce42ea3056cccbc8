/*
 * loop: poll(2) over a list, in which one descriptor may stand for many. A callback may add
 * and remove whatever it likes.
 */
#include "process/loop.h"

#include "process/awake.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum {
	/* A list of so many costs no more than telling the kernel of one. */
	LISTED = 16,
	KEPT_AT_ONCE = 64,
};

struct loop {
	struct watch *first, *last;
	size_t listed;
	int keeper; /* epoll, made when it is wanted; -1: none */
	size_t kept;
	struct epoll_event events[KEPT_AT_ONCE]; /* of the running turn */
	int event_count;
	/* as they were added: of those that are due the first is first */
	struct timer *timers, *last_timer;
	/* the watches of the running turn; a removed one becomes NULL */
	struct watch **ready_at;
	struct pollfd *polled;
	size_t count, capacity;
	int64_t stay_until_us; /* the next wait does not sleep before */
};

struct loop *loop_new(void)
{
	struct loop *loop = memory_alloc(sizeof(*loop));

	loop->keeper = -1;
	return loop;
}

void loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	fd_close(&loop->keeper);
	free(loop->ready_at);
	free(loop->polled);
	free(loop);
}

/* False where the kernel does not take it: a file, or no room. */
static bool keep(struct loop *loop, struct watch *watch)
{
	/* The bits of poll and epoll are the same. */
	struct epoll_event event = {.events = (uint32_t)watch->events, .data.ptr = watch};

	if (loop->keeper < 0)
		loop->keeper = epoll_create1(EPOLL_CLOEXEC);
	return loop->keeper >= 0 &&
	       epoll_ctl(loop->keeper, EPOLL_CTL_ADD, watch->fd, &event) == 0;
}

static void forget(struct loop *loop, struct watch *watch)
{
	(void)epoll_ctl(loop->keeper, EPOLL_CTL_DEL, watch->fd, NULL);
	for (int i = 0; i < loop->event_count; i++) {
		if (loop->events[i].data.ptr == watch)
			loop->events[i].data.ptr = NULL;
	}
	loop->kept--;
	watch->kept = false;
	watch->loop = NULL;
}

void loop_add(struct loop *loop, struct watch *watch)
{
	if (watch->loop != NULL)
		return;
	watch->loop = loop;
	watch->kept = watch->stays && loop->listed >= LISTED && keep(loop, watch);
	if (watch->kept) {
		loop->kept++;
		return;
	}
	loop->listed++;
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
	if (watch->kept) {
		forget(loop, watch);
		return;
	}
	loop->listed--;
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
	timer->next = NULL;
	timer->previous = loop->last_timer;
	if (loop->last_timer != NULL)
		loop->last_timer->next = timer;
	else
		loop->timers = timer;
	loop->last_timer = timer;
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
	else
		timer->loop->last_timer = timer->previous;
	timer->loop = NULL;
}

/* WATCH NULL: those that are kept. */
static void list(struct loop *loop, struct watch *watch, int fd, short events)
{
	if (loop->count == loop->capacity) {
		loop->capacity = loop->capacity * 2 + 16;
		loop->ready_at = memory_grow(loop->ready_at, loop->capacity,
					     sizeof(loop->ready_at[0]));
		loop->polled =
			memory_grow(loop->polled, loop->capacity, sizeof(loop->polled[0]));
	}
	loop->ready_at[loop->count] = watch;
	loop->polled[loop->count] = (struct pollfd){.fd = fd, .events = events};
	loop->count++;
}

static void list_watches(struct loop *loop)
{
	loop->count = 0;
	for (struct watch *watch = loop->first; watch != NULL; watch = watch->next)
		list(loop, watch, watch->fd, watch->events);
	if (loop->kept > 0)
		list(loop, NULL, loop->keeper, POLLIN);
}

static void run_kept(struct loop *loop)
{
	int count = epoll_wait(loop->keeper, loop->events, KEPT_AT_ONCE, 0);

	loop->event_count = count > 0 ? count : 0;
	for (int i = 0; i < loop->event_count; i++) {
		struct watch *watch = loop->events[i].data.ptr;
		if (watch != NULL)
			watch->ready(watch, (short)loop->events[i].events);
	}
	loop->event_count = 0;
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

	if (loop->stay_until_us != 0)
		ready = awake_poll(loop->polled, loop->count, loop->stay_until_us);
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
	const bool kept =
		ready > 0 && loop->kept > 0 && loop->polled[loop->count - 1].revents != 0;
	for (size_t i = 0; ready > 0 && i < loop->count; i++) {
		struct watch *watch = loop->ready_at[i];
		if (watch != NULL && loop->polled[i].revents != 0)
			watch->ready(watch, loop->polled[i].revents);
	}
	loop->count = 0;
	if (kept && loop->kept > 0)
		run_kept(loop);
	run_timers(loop);
}
