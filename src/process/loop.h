/*
 * loop: waits for several descriptors and times in one thread. It is small on purpose:
 * poll(2) over a list, and callbacks run in the order in which watches were added.
 * Watches of which there may be hundreds can set `stays`, or are added by loop_want: the
 * kernel then keeps them (epoll), and their callbacks come after all others. A watch may
 * be removed from any callback, its own included.
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

/*
 * A watch in memory of the caller. Zero it, fill fd, events and ready, then call
 * loop_add.
 */
struct watch {
	int fd;
	/*
	 * POLLIN, POLLOUT; 0: only errors and hang-up; the caller may change it at any
	 * time, unless the kernel keeps the watch
	 */
	short events;
	void (*ready)(struct watch *watch, short events);
	void *context;
	/* fd is open and neither fd nor events change until the watch is removed */
	bool stays;
	/* used by the loop only */
	struct loop *loop;
	bool kept; /* by the kernel */
	struct watch *next, *previous;
};

struct timer {
	/* monotonic; CLOCK_NEVER: off; the caller may change it at any time */
	int64_t due_ms;
	/* called with due_ms set back to CLOCK_NEVER */
	void (*due)(struct timer *timer);
	void *context;
	struct loop *loop;
	struct timer *next, *previous;
};

struct loop *loop_new(void);
void loop_free(struct loop *loop); /* remove all watches and timers first */
void loop_add(struct loop *loop, struct watch *watch);
/*
 * Wait for EVENTS at WATCH from now on, or for nothing at all when EVENTS is 0, not even
 * for errors. Adds WATCH when needed, and the kernel always keeps it: a loop that has no
 * other watches makes one system call a turn, however many watches there are. False when
 * the kernel has no memory. A watch that loop_add added must not be given.
 */
bool loop_want(struct loop *loop, struct watch *watch, short events);
void loop_remove(struct watch *watch); /* does nothing when WATCH was not added */
void loop_add_timer(struct loop *loop, struct timer *timer);
void loop_remove_timer(struct timer *timer);

/*
 * An event is expected before UNTIL_US (clock.h). The next wait stays awake until then,
 * because waking up from a sleep would take longer.
 */
void loop_stay(struct loop *loop, int64_t until_us);

/* Wait until a watch is ready or UNTIL_MS has come, then call the due callbacks, once. */
void loop_turn(struct loop *loop, int64_t until_ms);

/*
 * Waits without sleeping, for an event that comes within microseconds. Waking a process
 * that sleeps on another processor takes longer (docs/performance.md, "Warm calls").
 *
 * Between two polls the processor is offered to other processes that are ready: the
 * process that has to answer, or that was answered, may be waiting for this processor.
 * Without this, every second call took a hundred microseconds longer.
 */

/*
 * Like poll, until UNTIL_US (clock.h). Polls at least once, even when UNTIL_US is past.
 * 0: no event; -1 with errno.
 */
int loop_awake_poll(struct pollfd *slots, nfds_t count, int64_t until_us);

/*
 * Finds out whether a program waits for somebody to type at its terminal, from the
 * system call in which it sleeps. So a program that computes, or waits for something
 * else, is not mistaken for one. /proc must belong to this pid namespace, and show us
 * the system calls of its processes (which needs the right to trace them). Otherwise no
 * waiting program is found.
 */

/*
 * The state of a process that waits. If two readings are equal, it has not run in
 * between.
 */
struct reading {
	int pid;         /* 0: no process waits */
	uint64_t rested; /* how often it has gone to sleep so far */
	/* the number of the system call in which it sleeps, and its first argument */
	uint64_t at, arg;
};

/*
 * Find a process in the foreground group of the terminal that sleeps in a read of the
 * terminal, or in poll, select or epoll for it. MASTER is the terminal's other end.
 */
struct reading reading_find(int master);
bool reading_is_same(const struct reading *a, const struct reading *b);
