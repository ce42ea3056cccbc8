/*
 * follow: follows one program from its start until no process of it is left. The wait
 * is one poll over its output, its end, the caller's stop and the clock, so no timer
 * and no grandchild that holds a pipe can delay the answer.
 */

#include "process/follow.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "process/loop.h"
#include "process/program.h"
#include "process/pty.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct follow {
	struct program_run *run;
	struct program_terms terms; /* those of the run, or all zero */
	pid_t pid;
	/*
	 * kill(-1) reaches only the program's processes, and all our children are the
	 * program's
	 */
	bool is_init;
	bool was_subreaper;
	sigset_t mask_before;
	int pipes[2]; /* read ends for streams 1 and 2; -1: passed on or ended */
	bool widened[2];
	int end_fd;    /* readable when the program (init: any child) has ended */
	int listener;  /* the listener of the program's filter, or -1 */
	pid_t *others; /* children of ours before the start, when not init; ends with 0 */
	bool ended;    /* the program itself; its status is in RUN */
	bool is_alone; /* init without a child: no process is left, and none will come */
	bool ending;   /* TERM was sent */
	int64_t term_at_ms, kill_at_ms, quiet_until_ms;
	int64_t watch_at_ms;     /* time of the next call of the watch */
	int64_t silence_ends_ms; /* time when quiet_s is over, unless output comes */
	bool heard;              /* output came in this round */
	/* time when this process gets its own score back at the latest */
	int64_t score_at_ms;
};

/*
 * Kills and reaps everything, and recognises processes that only the kernel still works
 * on.
 */

enum {
	STEP_MS = 1,        /* between two looks at the processes that are left */
	STAT_MAX = 4096,    /* a line of numbers and a name of 16 bytes */
	FLAG_EXITING = 0x4, /* PF_EXITING, include/linux/sched.h since 2.4 */
	FIELD_STATE = 1,    /* of /proc/PID/stat, from the end of the name on */
	FIELD_FLAGS = 7,
};

/* Is the thread whose stat file is at PATH below FOLDER_FD dead or dying? */
static bool is_exiting(int folder_fd, const char *path)
{
	auto_close int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC);
	struct buf text;
	struct str rest, word;
	bool exiting = false;
	const char *at;

	if (fd < 0)
		return true; /* the thread is gone */
	buf_init(&text, STAT_MAX);
	if (!fd_read_all(fd, &text, path, NULL)) {
		exiting = errno == ESRCH;
	} else if ((at = strrchr(text.data, ')')) != NULL) {
		rest = str_of(at);
		for (int i = 0; str_next_word(&rest, &word); i++) {
			if (i == FIELD_STATE && (*word.data == 'Z' || *word.data == 'X'))
				exiting = true;
			else if (i == FIELD_FLAGS &&
				 (strtoul(word.data, NULL, 10) & FLAG_EXITING) != 0)
				exiting = true;
		}
	}
	buf_fini(&text);
	return exiting;
}

/* Look at every thread, because the first one may be dead long before the others. */
static bool are_threads_exiting(const char *pid)
{
	char path[NAME_MAX + sizeof("/proc//task")];
	bool all = true;
	DIR *folder;

	(void)snprintf(path, sizeof(path), "/proc/%s/task", pid);
	folder = opendir(path);
	if (!folder)
		return errno == ENOENT || errno == ESRCH;
	for (struct dirent *entry; all && (entry = readdir(folder));) {
		char name[NAME_MAX + sizeof("/stat")];

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "%s/stat", entry->d_name);
		all = is_exiting(dirfd(folder), name);
	}
	(void)closedir(folder);
	return all;
}

static bool are_all_exiting(void)
{
	DIR *folder = opendir("/proc");
	bool all = folder != NULL;

	for (struct dirent *entry; all && (entry = readdir(folder));) {
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    strtol(entry->d_name, NULL, 10) != getpid())
			all = are_threads_exiting(entry->d_name);
	}
	if (folder)
		(void)closedir(folder);
	return all;
}

void follow_end_all(int64_t patience_ms,
		    void (*reaped)(void *context, pid_t pid, int status), void *context)
{
	int flags = patience_ms == CLOCK_NEVER ? __WALL : __WALL | WNOHANG;
	int64_t until =
		patience_ms == CLOCK_NEVER ? CLOCK_NEVER : clock_now_ms() + patience_ms;

	(void)kill(-1, SIGKILL);
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, flags);

		if (pid > 0 && reaped)
			reaped(context, pid, status);
		if (pid > 0 || (pid < 0 && errno == EINTR))
			continue;
		if (pid < 0 || (clock_now_ms() >= until && are_all_exiting()))
			return;
		(void)poll(NULL, 0, STEP_MS);
	}
}

/*
 * Keeps the first and the last bytes of one output stream. Behind the head, reads go
 * straight into the ring, so a flood costs no copy and no further memory.
 */

ssize_t follow_output_read(struct program_output *output, int fd, struct str pieces[2])
{
	struct iovec parts[2];
	ssize_t got;

	pieces[0] = pieces[1] = (struct str){0};
	if (output->head.size < PROGRAM_HEAD) {
		size_t room = PROGRAM_HEAD - output->head.size;
		char *at = buf_reserve(&output->head, room);

		got = read(fd, at, room);
		if (got > 0) {
			buf_commit(&output->head, (size_t)got);
			pieces[0] = (struct str){at, (size_t)got};
			output->total += (uint64_t)got;
		}
		return got;
	}
	if (!output->tail)
		output->tail = memory_grow(NULL, PROGRAM_READ, 1);
	parts[0] = (struct iovec){output->tail + output->tail_at,
				  PROGRAM_READ - output->tail_at};
	parts[1] = (struct iovec){output->tail, output->tail_at};
	got = readv(fd, parts, output->tail_at ? 2 : 1);
	if (got > 0) {
		size_t size = (size_t)got;
		size_t first = size < parts[0].iov_len ? size : parts[0].iov_len;

		pieces[0] = (struct str){parts[0].iov_base, first};
		pieces[1] = (struct str){output->tail, size - first};
		output->tail_at = (output->tail_at + size) % PROGRAM_READ;
		output->tail_size += size;
		if (output->tail_size > PROGRAM_TAIL)
			output->tail_size = PROGRAM_TAIL;
		output->total += size;
	}
	return got;
}

void follow_output_tail(const struct program_output *output, struct buf *text)
{
	size_t size = output->tail_size;
	size_t from = (output->tail_at + PROGRAM_READ - size) % PROGRAM_READ;
	size_t first = size < PROGRAM_READ - from ? size : PROGRAM_READ - from;

	if (size == 0)
		return;
	buf_add(text, output->tail + from, first);
	buf_add(text, output->tail, size - first);
}

void follow_output_since(const struct program_output *output, uint64_t since,
			 struct program_output *part)
{
	const uint64_t left = since < output->total ? output->total - since : 0;

	*part = *output;
	buf_init(&part->head, PROGRAM_HEAD);
	if (since < output->head.size)
		(void)buf_add(&part->head, output->head.data + since,
			      output->head.size - (size_t)since);
	part->total = left;
	if (part->tail_size > left - part->head.size)
		part->tail_size = (size_t)(left - part->head.size);
}

uint64_t follow_output_missing(const struct program_output *output)
{
	return output->total - output->head.size - output->tail_size;
}

void program_output_text(const struct program_output *output, struct buf *text)
{
	uint64_t missing = follow_output_missing(output);

	buf_addstr(text, buf_str(&output->head));
	if (missing) {
		if (!str_ends(buf_str(text), STR("\n")))
			buf_addc(text, '\n');
		buf_addf(text, "[… %llu bytes not kept …]\n", (unsigned long long)missing);
	}
	follow_output_tail(output, text);
}

void program_output_fini(struct program_output *output)
{
	if (!output)
		return;
	buf_fini(&output->head);
	free(output->tail);
	output->tail = NULL;
	output->tail_size = output->tail_at = 0;
}

/*
 * Manages the processes of one run, from its start to the last of them. As init of a
 * pid namespace, every process in it is the program's. Otherwise this process becomes a
 * subreaper for the run, and its children from before are told apart.
 */

enum { FOLLOW_REAP_MAX = 4096 /* ended processes reaped in one round */ };

static void take_status(struct follow *follow, int status)
{
	follow->ended = true;
	if (WIFEXITED(status))
		follow->run->exit_code = WEXITSTATUS(status);
	else if (WIFSIGNALED(status))
		follow->run->signal = WTERMSIG(status);
}

/*
 * Reap the program if it has ended, without waiting. Init reaps orphans as well, which
 * would otherwise stay zombies. True when this process is init and has no child: then
 * the program has no descendant left.
 */
static bool program_processes_reap(struct follow *follow)
{
	int status;
	pid_t pid;

	if (!follow->is_init) {
		if (!follow->ended && waitpid(follow->pid, &status, WNOHANG) == follow->pid)
			take_status(follow, status);
		return false;
	}
	/* A fork bomb ends processes as fast as they are reaped, so limit the round. */
	for (int i = 0; i < FOLLOW_REAP_MAX; i++) {
		pid = waitpid(-1, &status, WNOHANG | __WALL);
		if (pid <= 0)
			return pid < 0 && errno == ECHILD;
		if (pid == follow->pid)
			take_status(follow, status);
	}
	return false;
}

static bool set_up_init(struct follow *follow, struct err *err)
{
	follow->end_fd = follow->terms.ends_fd > 0
				 ? follow->terms.ends_fd
				 : program_ends_open(&follow->mask_before);
	return follow->end_fd >= 0 ||
	       err_set(err, ECHILD, "No signalfd: %s.", strerror(errno));
}

/*
 * Restore the signal mask, unless the descriptor belongs to the terms and outlives this
 * run.
 */
static void tear_down_init(struct follow *follow)
{
	if (follow->end_fd >= 0 && follow->end_fd == follow->terms.ends_fd)
		follow->end_fd = -1;
	else if (follow->end_fd >= 0)
		(void)sigprocmask(SIG_SETMASK, &follow->mask_before, NULL);
}

/* After the run, adopt orphans only if this process did so before it. */
static void leave_orphans_as_before(const struct follow *follow)
{
	if (!follow->is_init && !follow->was_subreaper)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

/* Start the program, or take over the one that was started ahead. */
static bool program_processes_begin(struct follow *follow, struct err *err)
{
	struct program_run *run = follow->run;
	bool ok = !follow->is_init || set_up_init(follow, err);

	if (ok && !follow->is_init) {
		int before = 0;

		(void)prctl(PR_GET_CHILD_SUBREAPER, &before, 0, 0, 0);
		follow->was_subreaper = before != 0;
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	}
	bool is_new = run->ahead.pid == 0;
	ok = ok && (!is_new || program_start_ahead(&run->start, &run->ahead, err));
	for (size_t i = 0; run->gives_fds && i < 3; i++)
		fd_close(&run->start.fds[i]);
	if (!ok) {
		leave_orphans_as_before(follow);
		return false;
	}
	follow->pid = run->ahead.pid;
	follow->others = run->ahead.others;
	memcpy(follow->pipes, run->ahead.pipes, sizeof(follow->pipes));
	follow->listener = run->ahead.listener > 0 ? run->ahead.listener : -1;
	run->ahead = (struct program_ahead){.pipes = {-1, -1}};
	if (run->pty != NULL && run->pty->gathered) {
		follow->pipes[0] = fcntl(run->pty->master, F_DUPFD_CLOEXEC, 0);
		if (follow->pipes[0] < 0)
			return err_set(err, errno, "No free descriptor: %s.",
				       strerror(errno));
	}
	if (follow->is_init) {
		/* The program may have ended before its end was watched. */
		if (!is_new)
			(void)program_processes_reap(follow);
		return true;
	}
	follow->end_fd = (int)syscall(SYS_pidfd_open, follow->pid, 0);
	return follow->end_fd >= 0 || err_set(err, errno, "No pidfd: %s.", strerror(errno));
}

/* Is no process of the program alive any more, as far as one can tell without killing? */
static bool program_processes_gone(const struct follow *follow)
{
	if (follow->is_init)
		return waitid(P_ALL, 0, &(siginfo_t){0}, WNOHANG | WNOWAIT | WEXITED) < 0 &&
		       errno == ECHILD;
	return kill(-follow->pid, 0) < 0 && errno == ESRCH;
}

/* Count every reaped process except the program itself as left behind. */
static void one_reaped(void *context, pid_t pid, int status)
{
	struct follow *follow = context;

	if (pid == follow->pid)
		take_status(follow, status);
	else
		follow->run->left_processes++;
}

static void end_all_as_init(struct follow *follow)
{
	/* A process that has already ended does not count as left behind. */
	if (follow->is_alone || program_processes_reap(follow))
		return;
	follow_end_all(follow->ending ? PROGRAM_END_PATIENCE_MS : CLOCK_NEVER, one_reaped,
		       follow);
	if (!follow->ended)
		follow->run->signal = SIGKILL; /* the kernel is still ending it */
}

static void end_all_as_subreaper(struct follow *follow)
{
	int status;

	/*
	 * Kill only the program first, so that its descendants are still alive when
	 * they are counted.
	 */
	if (follow->pid > 0 && !follow->ended) {
		(void)kill(follow->pid, SIGKILL);
		if (waitpid(follow->pid, &status, 0) == follow->pid)
			take_status(follow, status);
	}
	follow->run->left_processes += follow_children_end(follow->terms.children_fd,
							   follow->others, follow->pid);
	leave_orphans_as_before(follow);
}

/* Kill, reap and count the remaining processes. */
static void program_processes_end(struct follow *follow)
{
	if (follow->is_init)
		end_all_as_init(follow);
	else
		end_all_as_subreaper(follow);
}

/* After the end, or when the start failed: restore the signals and close descriptors. */
static void program_processes_forget(struct follow *follow)
{
	if (follow->is_init)
		tear_down_init(follow);
	fd_close(&follow->end_fd);
	free(follow->others);
}

enum {
	FOLLOW_GRACE_MS = 200, /* from TERM to KILL: time to flush, without much delay */
	/* the same after a cancel: a person waits, and 100 ms in all is the limit */
	FOLLOW_CANCEL_MS = 70,
	/* capacity of a new pipe; once full, the pipe is enlarged */
	FOLLOW_PIPE = 64 << 10,
	/*
	 * Nobody reports when a silent program stops sharing our memory. This happens
	 * microseconds after its start, and even on the busiest machine before this
	 * time.
	 */
	FOLLOW_SCORE_MS = 300,
	/*
	 * Ignore a stop descriptor for this long after it was readable without a
	 * reason.
	 */
	FOLLOW_QUIET_MS = 20,
};

enum {
	SLOT_OUT,
	SLOT_ERROR,
	SLOT_END,
	SLOT_STOP,
	SLOT_WATCH,
	SLOT_ASKED,
	SLOT_SIDE,
	SLOT_PTY,
	SLOT_COUNT = SLOT_PTY + PTY_SLOTS
};

void program_run_init(struct program_run *run)
{
	memset(run, 0, sizeof(*run));
	run->start.fds[0] = run->start.fds[1] = run->start.fds[2] = -1;
	run->ahead.pipes[0] = run->ahead.pipes[1] = -1;
	run->deadline_ms = CLOCK_NEVER;
	run->stop_fd = -1;
	run->side_fd = -1;
	run->spill_fd = -1;
	run->exit_code = -1;
	buf_init(&run->out.head, PROGRAM_HEAD);
	buf_init(&run->error.head, PROGRAM_HEAD);
}

void program_run_fini(struct program_run *run)
{
	if (!run)
		return;
	program_output_fini(&run->out);
	program_output_fini(&run->error);
}

static void spill(struct program_run *run, struct str bytes)
{
	size_t fits = bytes.size;

	if (run->spill_fd < 0)
		return;
	/*
	 * Once bytes were dropped (limit reached, or no space), keep no more, so that
	 * there are no gaps.
	 */
	if (run->dropped || run->spilled >= PROGRAM_SPILL)
		fits = 0;
	else if (fits > PROGRAM_SPILL - run->spilled)
		fits = (size_t)(PROGRAM_SPILL - run->spilled);
	if (fits && !fd_write_all(run->spill_fd, bytes.data, fits, NULL))
		fits = 0;
	run->spilled += fits;
	run->dropped += bytes.size - fits;
}

/*
 * Read once from one stream. Returns the number of bytes; 0 when there are none now, or
 * no more.
 */
static size_t read_stream(struct follow *follow, int stream)
{
	struct program_run *run = follow->run;
	struct program_output *output = stream == 0 ? &run->out : &run->error;
	struct str pieces[2];
	ssize_t got = follow_output_read(output, follow->pipes[stream], pieces);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0) {
		fd_close(&follow->pipes[stream]);
		return 0;
	}
	follow->heard = true;
	if (got >= FOLLOW_PIPE && !follow->widened[stream]) {
		/*
		 * The kernel may refuse this over the user's total; then reads stay
		 * smaller.
		 */
		(void)fcntl(follow->pipes[stream], F_SETPIPE_SZ, PROGRAM_READ);
		follow->widened[stream] = true;
	}
	for (int i = 0; i < 2; i++) {
		if (pieces[i].size == 0)
			continue;
		if (run->output)
			run->output(run->context, stream + 1, pieces[i]);
		spill(run, pieces[i]);
	}
	return (size_t)got;
}

static void send_term(struct follow *follow, enum program_ending why, int64_t now)
{
	const bool hurry = why == PROGRAM_CANCELLED && !follow->run->patient;
	const int64_t least = hurry ? FOLLOW_CANCEL_MS : FOLLOW_GRACE_MS;
	const int64_t grace = (int64_t)(follow->run->grace_s * 1000);
	const struct program_watch *watch = follow->run->watch;

	if (follow->ending)
		return;
	follow->ending = true;
	follow->run->ending = why;
	if (watch && watch->before_end && why != PROGRAM_CANCELLED)
		watch->before_end(watch->context);
	follow->kill_at_ms = now + (grace > FOLLOW_GRACE_MS ? grace : least);
	/* The grace of a deadline ends with it. */
	if (why == PROGRAM_TIMED_OUT)
		follow->kill_at_ms = follow->run->deadline_ms > now + least
					     ? follow->run->deadline_ms
					     : now + least;
	(void)kill(-follow->pid, SIGTERM);
	(void)kill(-follow->pid, SIGCONT); /* a stopped process could not handle TERM */
}

static bool is_over(const struct follow *follow, int64_t now)
{
	if (follow->ending)
		return now >= follow->kill_at_ms ||
		       (follow->ended && program_processes_gone(follow));
	return follow->ended;
}

/*
 * Ask the watch. When a limit is reached, the program gets no grace, because it would
 * use more.
 */
static void watch_ask(struct follow *follow, int64_t now)
{
	const struct program_watch *watch = follow->run->watch;
	int64_t again_ms;

	assert(watch != NULL); /* without a watch, watch_at_ms is CLOCK_NEVER */
	again_ms = watch->after_ms;
	if (watch->reached(watch->context, &again_ms)) {
		if (!follow->ending)
			follow->run->ending = PROGRAM_LIMITED;
		follow->ending = true;
		follow->kill_at_ms = now;
	}
	follow->watch_at_ms = clock_now_ms() + again_ms;
}

static void silence_ask(struct follow *follow, int64_t now)
{
	if (follow->run->quiet_s <= 0)
		return;
	if (follow->heard)
		follow->silence_ends_ms = now + (int64_t)(follow->run->quiet_s * 1000);
	else if (now >= follow->silence_ends_ms)
		send_term(follow, PROGRAM_QUIET, now);
	follow->heard = false;
}

/* A program that has printed something or ended no longer shares our memory. */
static void score_ask(struct follow *follow, int64_t now)
{
	const struct program_run *run = follow->run;
	bool gave_sign = follow->ended || run->out.total > 0 || run->error.total > 0;

	if (follow->score_at_ms != CLOCK_NEVER && (gave_sign || now >= follow->score_at_ms)) {
		program_score_lower(follow->terms.score);
		follow->score_at_ms = CLOCK_NEVER;
	}
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t next_moment(const struct follow *follow)
{
	int64_t looks = earlier(follow->watch_at_ms, follow->score_at_ms);

	if (follow->ending)
		return earlier(follow->kill_at_ms, looks);
	return earlier(earlier(follow->term_at_ms, looks), follow->silence_ends_ms);
}

/*
 * On a hang-up without data, close without a read: most commands end so, and a read
 * would first allocate room.
 */
static void take_stream(struct follow *follow, int stream, short events)
{
	if (events & POLLIN)
		(void)read_stream(follow, stream);
	else if (events)
		fd_close(&follow->pipes[stream]);
}

/* Like poll, but stay awake as long as the end is expected. */
static int slots_wait(struct program_run *run, struct pollfd *slots, nfds_t count,
		      int64_t until)
{
	int ready = 0;

	if (run->stay_until_us > 0)
		ready = loop_awake_poll(slots, count, run->stay_until_us);
	if (ready == 0)
		run->stay_until_us = 0;
	return ready != 0 ? ready : poll(slots, count, clock_poll_timeout(until));
}

/*
 * The time until which to wait from NOW on. LISTENS: the stop descriptor is polled,
 * too.
 */
static int64_t wait_until(const struct follow *follow, int64_t now, bool listens)
{
	int64_t until = next_moment(follow);

	if (follow->run->stop_fd >= 0 && !follow->ending && !listens)
		until = earlier(until, follow->quiet_until_ms);
	/* The last process of the group may not be our child, so its end wakes nobody. */
	if (follow->ending && follow->ended && !follow->is_init)
		until = earlier(until, now + FOLLOW_QUIET_MS);
	return until;
}

static void take_end(struct follow *follow)
{
	struct signalfd_siginfo info;

	/*
	 * One pending signal stands for all ended children; a later one makes the
	 * descriptor readable again.
	 */
	if (follow->is_init)
		(void)!read(follow->end_fd, &info, sizeof(info));
	follow->is_alone = program_processes_reap(follow);
}

static void take_ready(struct follow *follow, const struct pollfd slots[SLOT_COUNT])
{
	struct program_run *run = follow->run;

	if (run->pty)
		pty_ready(run->pty, &slots[SLOT_PTY]);
	if (follow->terms.answer && slots[SLOT_ASKED].revents & POLLIN)
		follow->terms.answer(follow->terms.context, follow->listener);
	else if (slots[SLOT_ASKED].revents)
		fd_close(&follow->listener); /* no process has the filter any more */
	take_stream(follow, 0, slots[SLOT_OUT].revents);
	take_stream(follow, 1, slots[SLOT_ERROR].revents);
	if (slots[SLOT_END].revents)
		take_end(follow);
	if (slots[SLOT_SIDE].revents) {
		run->side(run->context);
		follow->heard = follow->heard || run->in_use;
		run->in_use = false;
	}
	if (run->watch && slots[SLOT_WATCH].revents)
		run->watch->ready(run->watch->context);
	if (slots[SLOT_STOP].revents) {
		if (run->stopped && run->stopped(run->context))
			send_term(follow, PROGRAM_CANCELLED, clock_now_ms());
		else
			follow->quiet_until_ms = clock_now_ms() + FOLLOW_QUIET_MS;
	}
}

static void poll_once(struct follow *follow, int64_t now)
{
	struct program_run *run = follow->run;
	const bool listens =
		run->stop_fd >= 0 && !follow->ending && now >= follow->quiet_until_ms;
	struct pollfd slots[SLOT_COUNT] = {
		[SLOT_OUT] = {.fd = follow->pipes[0], .events = POLLIN},
		[SLOT_ERROR] = {.fd = follow->pipes[1], .events = POLLIN},
		/* A pidfd stays readable after the end, so it is not polled again. */
		[SLOT_END] = {.fd = follow->ended && !follow->is_init ? -1 : follow->end_fd,
			      .events = POLLIN},
		[SLOT_STOP] = {.fd = listens ? run->stop_fd : -1, .events = POLLIN},
		[SLOT_WATCH] = {.fd = run->watch ? run->watch->fd : -1, .events = POLLIN},
		[SLOT_ASKED] = {.fd = follow->listener, .events = POLLIN},
		[SLOT_SIDE] = {.fd = run->side_fd, .events = POLLIN},
		[SLOT_PTY] = {.fd = -1},
	};

	if (run->pty)
		pty_slots(run->pty, &slots[SLOT_PTY]);
	if (slots_wait(run, slots, run->pty ? SLOT_COUNT : SLOT_PTY,
		       wait_until(follow, now, listens)) > 0)
		take_ready(follow, slots);
}

/*
 * Read only the bytes that are in the pipe now: another process may hold its other end
 * and go on writing.
 */
static void drain(struct follow *follow, int stream)
{
	int waiting = 0;
	size_t got = 1;

	/*
	 * A terminal holds less than PROGRAM_READ, and FIONREAD counts only the bytes
	 * already passed to the reader.
	 */
	if (stream == 0 && follow->run->pty && follow->run->pty->gathered)
		waiting = PROGRAM_READ;
	else if (follow->pipes[stream] < 0 ||
		 ioctl(follow->pipes[stream], FIONREAD, &waiting) < 0)
		return;
	while (waiting > 0 && got > 0 && follow->pipes[stream] >= 0) {
		got = read_stream(follow, stream);
		waiting -= (int)got;
	}
}

static void wait_for_end(struct follow *follow)
{
	int64_t now = clock_now_ms();

	while (!is_over(follow, now)) {
		poll_once(follow, now);
		now = clock_now_ms();
		score_ask(follow, now);
		if (!follow->ended && now >= follow->term_at_ms)
			send_term(follow, PROGRAM_TIMED_OUT, now);
		if (!follow->ended)
			silence_ask(follow, now);
		if (!follow->ended && now >= follow->watch_at_ms)
			watch_ask(follow, now);
	}
	program_processes_end(follow);
	program_score_lower(follow->terms.score);
	drain(follow, 0);
	drain(follow, 1);
	if (follow->run->pty)
		pty_drain(follow->run->pty);
}

bool follow_program(struct program_run *run, struct err *err)
{
	struct follow follow = {.run = run,
				.pipes = {-1, -1},
				.end_fd = -1,
				.listener = -1,
				.is_init = getpid() == 1};
	int64_t grace = (int64_t)(run->grace_s * 1000);
	int64_t began = clock_now_us();
	bool ok;

	if (run->start.terms)
		follow.terms = *run->start.terms;
	follow.is_init = follow.is_init || follow.terms.alone;
	run->ending = PROGRAM_ENDED;
	/*
	 * A longer grace begins before the deadline, so that the end does not come
	 * later; but the program has half of its time to itself.
	 */
	follow.term_at_ms = run->deadline_ms;
	if (run->deadline_ms != CLOCK_NEVER && grace > FOLLOW_GRACE_MS) {
		const int64_t half = (run->deadline_ms - began / 1000) / 2;

		if (half > 0)
			follow.term_at_ms -= grace < half ? grace : half;
	}
	follow.watch_at_ms = run->watch && run->watch->after_ms
				     ? began / 1000 + run->watch->after_ms
				     : CLOCK_NEVER;
	follow.silence_ends_ms = run->quiet_s > 0
					 ? began / 1000 + (int64_t)(run->quiet_s * 1000)
					 : CLOCK_NEVER;
	ok = program_processes_begin(&follow, err);
	follow.score_at_ms =
		follow.terms.score ? clock_now_ms() + FOLLOW_SCORE_MS : CLOCK_NEVER;
	if (ok)
		wait_for_end(&follow);
	else if (follow.others)
		program_processes_end(&follow);
	program_processes_forget(&follow);
	if (run->watch && run->watch->over)
		run->watch->over(run->watch->context);
	fd_close(&follow.listener);
	fd_close(&follow.pipes[0]);
	fd_close(&follow.pipes[1]);
	run->seconds = (double)(clock_now_us() - began) / 1e6;
	return ok;
}

/* Ends children from the kernel's list, again and again until it is empty. */

static bool is_among(pid_t pid, const pid_t *pids)
{
	for (; pids && *pids; pids++) {
		if (*pids == pid)
			return true;
	}
	return false;
}

unsigned follow_children_end(int fd, const pid_t *others, pid_t group)
{
	unsigned alive = 0;
	bool found = true;

	while (found) {
		auto_free pid_t *pids = program_children_list(fd);

		found = false;
		/*
		 * Kill all of them before waiting for any, so that a process that keeps
		 * forking gains no time.
		 */
		for (pid_t *at = pids; *at; at++) {
			if (!is_among(*at, others) && waitpid(*at, NULL, WNOHANG) == 0)
				(void)kill(*at, SIGKILL);
		}
		for (pid_t *at = pids; *at; at++) {
			if (is_among(*at, others))
				continue;
			found = true;
			/*
			 * waitpid returns -1 for an orphan that had already ended by
			 * itself.
			 */
			if (waitpid(*at, NULL, 0) == *at)
				alive++;
		}
		/*
		 * The kernel's list is not exact while processes start and end, so kill
		 * the group as well.
		 */
		if (group > 0)
			(void)kill(-group, SIGKILL);
	}
	return alive;
}
