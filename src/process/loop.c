/*
 * loop: poll(2) over a list, in which one epoll descriptor may stand for many watches.
 * A callback may add and remove any watch and timer. Also finds the program that waits
 * at a terminal.
 */

#include "process/loop.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

enum {
	/* Polling a list of this length costs no more than one epoll_ctl. */
	LISTED = 16,
	KEPT_AT_ONCE = 64,
};

struct loop {
	struct watch *first, *last;
	size_t listed;
	int keeper; /* epoll descriptor, made at first use; -1: none */
	size_t kept;
	struct epoll_event events[KEPT_AT_ONCE]; /* of the running turn */
	int event_count;
	/*
	 * in order of adding: of the timers that are due, the first one is called first
	 */
	struct timer *timers, *last_timer;
	/* the watches of the running turn; a removed one becomes NULL */
	struct watch **ready_at;
	struct pollfd *polled;
	size_t count, capacity;
	int64_t stay_until_us; /* the next wait stays awake until then */
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

/*
 * Let the kernel keep WATCH, or with EPOLL_CTL_MOD wait for its other events. False when
 * epoll refuses it: a file, or no room.
 */
static bool keep(struct loop *loop, struct watch *watch, int how)
{
	/* poll and epoll use the same bits. */
	struct epoll_event event = {.events = (uint32_t)watch->events, .data.ptr = watch};

	if (loop->keeper < 0)
		loop->keeper = epoll_create1(EPOLL_CLOEXEC);
	return loop->keeper >= 0 && epoll_ctl(loop->keeper, how, watch->fd, &event) == 0;
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
	watch->kept = watch->stays && loop->listed >= LISTED &&
		      keep(loop, watch, EPOLL_CTL_ADD);
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

bool loop_want(struct loop *loop, struct watch *watch, short events)
{
	assert(watch->kept || watch->loop == NULL);
	if (events == 0) {
		loop_remove(watch);
		return true;
	}
	if (watch->kept && watch->events == events)
		return true;
	watch->events = events;
	if (!keep(loop, watch, watch->kept ? EPOLL_CTL_MOD : EPOLL_CTL_ADD))
		return false;
	loop->kept += !watch->kept;
	watch->kept = true;
	watch->loop = loop;
	return true;
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

/* WATCH NULL: the slot of the epoll descriptor. */
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

static void run_kept(struct loop *loop, int timeout)
{
	int count = epoll_wait(loop->keeper, loop->events, KEPT_AT_ONCE, timeout);

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

/*
 * After each callback begin at the start, because the callback may have changed the
 * list.
 */
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
		ready = loop_awake_poll(loop->polled, loop->count, loop->stay_until_us);
	loop->stay_until_us = 0;
	return ready;
}

/* Wait by poll, and call the watches that are ready. */
static void run_listed(struct loop *loop, int64_t until_ms)
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
		run_kept(loop, 0);
}

void loop_turn(struct loop *loop, int64_t until_ms)
{
	if (loop->listed == 0 && loop->kept > 0 && loop->stay_until_us == 0)
		run_kept(loop, clock_poll_timeout(next_due(loop, until_ms)));
	else
		run_listed(loop, until_ms);
	run_timers(loop);
}

int loop_awake_poll(struct pollfd *slots, nfds_t count, int64_t until_us)
{
	int ready;

	while ((ready = poll(slots, count, 0)) == 0 && clock_now_us() < until_us)
		(void)sched_yield();
	return ready;
}

/* Walks over /proc to find the program that waits at a terminal. */

enum {
	FILE_MAX = 16 << 10, /* stat, status, syscall and fdinfo are below 4 KiB */
	POLLED_MAX = 16,     /* descriptors of one poll that are checked */
	SELECTED_MAX = 256,  /* and of one select */
	FIELD_STATE = 1,     /* of /proc/PID/stat, counted from the end of the name */
	FIELD_GROUP = 3,
	/*
	 * the first major number of /dev/pts; each has 256 terminals (devices.txt of
	 * Linux)
	 */
	PTS_MAJOR = 136,
	TTY_MAJOR = 5, /* /dev/tty: the terminal of the process, which is this one here */
};

struct look {
	int proc_fd;
	const char *pid;
	dev_t tty;
	struct buf text;
};

static bool read_file(struct look *look, const char *name)
{
	char path[NAME_MAX + sizeof("/fdinfo/") + 16];

	(void)snprintf(path, sizeof(path), "%s/%s", look->pid, name);
	return fd_read_at(look->proc_fd, path, &look->text);
}

/* Is the process asleep, and a member of GROUP? */
static bool sleeps_in(struct look *look, pid_t group)
{
	bool sleeps = false;
	struct str rest, word;
	const char *at;

	if (!read_file(look, "stat"))
		return false;
	at = strrchr(look->text.data, ')');
	rest = str_of(at);
	for (int i = 0; at != NULL && i <= FIELD_GROUP && str_next_word(&rest, &word); i++) {
		if (i == FIELD_STATE)
			sleeps = *word.data == 'S';
		else if (i == FIELD_GROUP)
			return sleeps && strtol(word.data, NULL, 10) == group;
	}
	return false;
}

static bool is_terminal(const struct look *look, uint64_t fd)
{
	char path[NAME_MAX + sizeof("/fd/") + 24];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/fd/%d", look->pid, (int)fd);
	return fstatat(look->proc_fd, path, &st, 0) == 0 && S_ISCHR(st.st_mode) &&
	       (st.st_rdev == look->tty || st.st_rdev == makedev(TTY_MAJOR, 0));
}

static size_t read_memory(const struct look *look, uint64_t address, void *to, size_t size)
{
	char path[NAME_MAX + sizeof("/mem")];
	ssize_t got;

	(void)snprintf(path, sizeof(path), "%s/mem", look->pid);
	auto_close int fd = openat(look->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || address == 0 || address > INT64_MAX)
		return 0;
	got = pread(fd, to, size, (off_t)address);
	return got > 0 ? (size_t)got : 0;
}

static bool polls_terminal(const struct look *look, uint64_t list, uint64_t count)
{
	struct pollfd fds[POLLED_MAX];
	size_t size = read_memory(look, list, fds, sizeof(fds)) / sizeof(fds[0]);

	for (size_t i = 0; i < size && i < count; i++) {
		if (fds[i].fd >= 0 && (fds[i].events & POLLIN) != 0 &&
		    is_terminal(look, (uint64_t)fds[i].fd))
			return true;
	}
	return false;
}

static bool selects_terminal(const struct look *look, uint64_t count, uint64_t set)
{
	unsigned char bits[SELECTED_MAX / CHAR_BIT];
	size_t size = read_memory(look, set, bits, sizeof(bits)) * CHAR_BIT;

	for (size_t i = 0; i < size && i < count; i++) {
		if ((bits[i / CHAR_BIT] >> (i % CHAR_BIT) & 1) != 0 && is_terminal(look, i))
			return true;
	}
	return false;
}

/* Finds the terminal in lines of fdinfo: "tfd: 0 events: 19 data: …". */
static bool epoll_has_terminal(struct look *look, uint64_t fd)
{
	char name[sizeof("fdinfo/") + 16];

	(void)snprintf(name, sizeof(name), "fdinfo/%d", (int)fd);
	if (!read_file(look, name))
		return false;
	for (const char *at = look->text.data; (at = strstr(at, "tfd:")) != NULL;) {
		char *end;
		const uint64_t target = strtoull(at + 4, &end, 10);
		const char *events = strstr(end, "events:");
		if (events != NULL && (strtoull(events + 7, NULL, 16) & POLLIN) != 0 &&
		    is_terminal(look, target))
			return true;
		at = end;
	}
	return false;
}

/*
 * Reads /proc/PID/syscall: "0 0x3 0x7ffd… …", the number and arguments of the current
 * call; "running" when there is none.
 */
static bool waits_to_read(struct look *look, struct reading *found)
{
	uint64_t words[4] = {0};
	char *at;

	if (!read_file(look, "syscall") || look->text.data[0] < '0' ||
	    look->text.data[0] > '9')
		return false;
	at = look->text.data;
	words[0] = strtoull(at, &at, 10);
	for (size_t i = 1; i < 4; i++)
		words[i] = strtoull(at, &at, 16);
	found->at = words[0];
	found->arg = words[1];
	switch (words[0]) {
	case SYS_read:
	case SYS_readv:
		return is_terminal(look, words[1]);
#ifdef SYS_poll
	case SYS_poll:
#endif
	case SYS_ppoll:
		return polls_terminal(look, words[1], words[2]);
#ifdef SYS_select
	case SYS_select:
#endif
	case SYS_pselect6:
		return selects_terminal(look, words[1], words[2]);
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		return epoll_has_terminal(look, words[1]);
	default:
		return false;
	}
}

static bool count_rests(struct look *look, uint64_t *rests)
{
	static const char name[] = "\nvoluntary_ctxt_switches:";
	const char *at;

	if (!read_file(look, "status"))
		return false;
	at = strstr(look->text.data, name);
	*rests = at != NULL ? strtoull(at + sizeof(name) - 1, NULL, 10) : 0;
	return at != NULL;
}

struct reading reading_find(int master)
{
	struct reading found = {0};
	struct look look = {0};
	pid_t group = 0;
	unsigned slave = 0;
	DIR *folder;

	if (ioctl(master, TIOCGPGRP, &group) < 0 || group <= 0 ||
	    ioctl(master, TIOCGPTN, &slave) < 0)
		return found;
	folder = opendir("/proc");
	if (folder == NULL)
		return found;
	look.proc_fd = dirfd(folder);
	look.tty = makedev(PTS_MAJOR + (slave >> 8), slave & 0xff);
	buf_init(&look.text, FILE_MAX);
	for (struct dirent *entry; found.pid == 0 && (entry = readdir(folder)) != NULL;) {
		struct reading here = {0};

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		look.pid = entry->d_name;
		if (!sleeps_in(&look, group) || !waits_to_read(&look, &here) ||
		    !count_rests(&look, &here.rested))
			continue;
		here.pid = (int)strtol(entry->d_name, NULL, 10);
		found = here;
	}
	buf_fini(&look.text);
	(void)closedir(folder);
	return found;
}

bool reading_is_same(const struct reading *a, const struct reading *b)
{
	return a->pid == b->pid && a->rested == b->rested && a->at == b->at &&
	       a->arg == b->arg;
}
