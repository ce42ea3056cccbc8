/*
 * program_follow: one program from its start until nothing of it is left. The wait is one
 * poll over its output, its end, the caller's stop and the clock; no timer and no
 * grandchild that holds a pipe can keep the answer.
 */
#include "process/awake.h"
#include "process/program.h"
#include "process/program_output.h"
#include "process/program_processes.h"
#include "process/pty.h"

#include "base/clock.h"
#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
	FOLLOW_GRACE_MS = 200, /* TERM to KILL: time to flush, and little overshoot */
	FOLLOW_CANCEL_MS = 70, /* the same after a cancel: the person waits, 100 ms in all */
	FOLLOW_PIPE = 64 << 10, /* a new pipe's capacity; filled, it is made larger */
	/*
	 * Nobody tells when a silent program has left our memory: microseconds after its
	 * start, and on the busiest machine before this.
	 */
	FOLLOW_SCORE_MS = 300,
	/* Rest for a stop descriptor that was ready for nothing. */
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
	 * Once something was dropped (full, or no space) nothing more is kept: no holes.
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

/* One read of one stream. The number of bytes, 0 when nothing is there now or ever. */
static size_t read_stream(struct follow *follow, int stream)
{
	struct program_run *run = follow->run;
	struct program_output *output = stream == 0 ? &run->out : &run->error;
	struct str pieces[2];
	ssize_t got = program_output_read(output, follow->pipes[stream], pieces);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0) {
		fd_close(&follow->pipes[stream]);
		return 0;
	}
	follow->heard = true;
	if (got >= FOLLOW_PIPE && !follow->widened[stream]) {
		/* May be refused over the user's total; then reads stay smaller. */
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

	if (follow->ending)
		return;
	follow->ending = true;
	follow->run->ending = why;
	follow->kill_at_ms = now + (grace > FOLLOW_GRACE_MS ? grace : least);
	(void)kill(-follow->pid, SIGTERM);
	(void)kill(-follow->pid, SIGCONT); /* a stopped one could not act on it */
}

static bool is_over(const struct follow *follow, int64_t now)
{
	if (follow->ending)
		return now >= follow->kill_at_ms ||
		       (follow->ended && program_processes_gone(follow));
	return follow->ended;
}

/* Ended by its limits: what runs now is given no time, it would take more. */
static void watch_ask(struct follow *follow, int64_t now)
{
	const struct program_watch *watch = follow->run->watch;
	int64_t again_ms;

	assert(watch != NULL); /* else its moment never comes */
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

/* A program that has written or ended shares no memory with us any more. */
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

/* Hung up without a byte left: most commands end so, and a read would first make room. */
static void take_stream(struct follow *follow, int stream, short events)
{
	if (events & POLLIN)
		(void)read_stream(follow, stream);
	else if (events)
		fd_close(&follow->pipes[stream]);
}

/* As poll, but awake as long as the end is expected. */
static int slots_wait(struct program_run *run, struct pollfd *slots, nfds_t count,
		      int64_t until)
{
	int ready = 0;

	if (run->stay_until_us > 0)
		ready = awake_poll(slots, count, run->stay_until_us);
	if (ready == 0)
		run->stay_until_us = 0;
	return ready != 0 ? ready : poll(slots, count, clock_poll_timeout(until));
}

/* How long to wait from NOW on; LISTENS: the stop is asked, too. */
static int64_t wait_until(const struct follow *follow, int64_t now, bool listens)
{
	int64_t until = next_moment(follow);

	if (follow->run->stop_fd >= 0 && !follow->ending && !listens)
		until = earlier(until, follow->quiet_until_ms);
	/* The group's last process may be nobody's child we could wait for. */
	if (follow->ending && follow->ended && !follow->is_init)
		until = earlier(until, now + FOLLOW_QUIET_MS);
	return until;
}

static void take_end(struct follow *follow)
{
	struct signalfd_siginfo info;

	/* However many have ended, one signal waits; a later one makes it ready again. */
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
		fd_close(&follow->listener); /* nobody is left under the filter */
	take_stream(follow, 0, slots[SLOT_OUT].revents);
	take_stream(follow, 1, slots[SLOT_ERROR].revents);
	if (slots[SLOT_END].revents)
		take_end(follow);
	if (slots[SLOT_SIDE].revents)
		run->side(run->context);
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
		/* A pidfd stays readable after the end: not looked at again. */
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

	/* A terminal holds less than this, and counts only what its reader has been handed. */
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

bool program_follow(struct program_run *run, struct err *err)
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
	/* A longer grace begins before the deadline, so that the end is not later. */
	follow.term_at_ms = run->deadline_ms;
	if (run->deadline_ms != CLOCK_NEVER && grace > FOLLOW_GRACE_MS)
		follow.term_at_ms -= grace;
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
