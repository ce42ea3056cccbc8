/*
 * loop: wait for several descriptors and moments in one thread. Small on purpose: poll(2)
 * over a list, callbacks run in the order of adding. Watches that come by
 * the hundred may set `stays`: the kernel then keeps them (epoll), and their callbacks
 * come after all others. A watch may be removed from any callback, its own included.
 *
 * A process that expects an answer stays awake for it for a moment (loop_stay), and
 * only where both ends have a processor. The front does so for the answer of a file
 * tool, and a worker whose calls follow each other does so for the next call.
 */
#pragma once

#include <poll.h>
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

/*
 * Waiting without sleep, for what comes within microseconds. To wake a process that
 * sleeps on the other processor takes longer (docs/performance.md, "Warm calls").
 *
 * Between two looks whoever else is ready gets the processor: the one who is to answer,
 * or who was answered, may be waiting for this very one. Without that one call in two
 * took a hundred microseconds longer.
 */

/*
 * As poll, until UNTIL_US (clock.h), which may have been: it looks once at least. 0: nothing
 * came; -1 with errno.
 */
int loop_awake_poll(struct pollfd *slots, nfds_t count, int64_t until_us);

/*
 * Does a program wait for somebody to type at its terminal? Told from where the kernel
 * has put it to sleep, so a program that only thinks, or waits for something else, is
 * not taken for one. /proc must be this namespace's own, and show what its processes
 * wait for (who may trace them); where it does not, nobody waits as far as this can
 * tell.
 */

/* The state of a process that waits. Two equal ones: it has not run in between. */
struct reading {
	int pid;          /* 0: nobody waits */
	uint64_t rested;  /* how often it has gone to sleep so far */
	uint64_t at, arg; /* the call it sleeps in, and its first argument */
};

/*
 * A process of the terminal's foreground, MASTER being the terminal's other end, that sleeps in
 * a read of it, or in poll, select or epoll for one.
 */
struct reading reading_find(int master);
bool reading_is_same(const struct reading *a, const struct reading *b);
