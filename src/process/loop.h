/*
 * loop: wait for several descriptors and moments in one thread. Small on purpose: poll(2)
 * over a list, callbacks run in the order of adding. Watches that come by
 * the hundred may set `stays`: the kernel then keeps them (epoll), and their callbacks
 * come after all others. A watch may be removed from any callback, its own included.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct loop;

/* The caller's memory; zero it, fill fd, events and ready, then loop_add. */
struct watch {
	int fd;
	/* POLLIN, POLLOUT; 0: only errors and hang-up; may be changed at any time */
	short events;
	void (*ready)(struct watch *watch, short events);
	void *context;
	/* neither fd nor events change until it is removed, and fd is open until then */
	bool stays;
	/* the loop's own */
	struct loop *loop;
	bool kept; /* by the kernel */
	struct watch *next, *previous;
};

struct timer {
	int64_t due_ms; /* monotonic; CLOCK_NEVER: sleeping; may be changed at any time */
	/* due_ms is CLOCK_NEVER again when it is called */
	void (*due)(struct timer *timer);
	void *context;
	struct loop *loop;
	struct timer *next, *previous;
};

struct loop *loop_new(void);
void loop_free(struct loop *loop); /* everything must have been removed */
void loop_add(struct loop *loop, struct watch *watch);
void loop_remove(struct watch *watch); /* fine when not added */
void loop_add_timer(struct loop *loop, struct timer *timer);
void loop_remove_timer(struct timer *timer);

/*
 * Something is expected before UNTIL_US (clock.h): the next wait stays awake until then,
 * since to be woken from a sleep would take longer.
 */
void loop_stay(struct loop *loop, int64_t until_us);

/*
 * Wait until something is ready or UNTIL_MS has come, and run the callbacks that are
 * due, once.
 */
void loop_turn(struct loop *loop, int64_t until_ms);
