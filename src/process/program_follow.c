/*
 * program_follow: one program from its start until nothing of it is left. The wait is one
 * poll over its output, its end, the caller's stop and the clock; no timer and no
 * grandchild that holds a pipe can keep the answer.
 */
#include "process/children.h"
#include "process/program_end.h"
#include "process/program_output.h"
#include "process/pty.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	FOLLOW_GRACE_MS = 200,  /* TERM to KILL: time to flush, and little overshoot */
	FOLLOW_PIPE = 64 << 10, /* a new pipe's capacity; filled, it is made larger */
	/* Rest for a stop descriptor that was ready for nothing. */
	FOLLOW_QUIET_MS = 20,
	FOLLOW_REAP_MAX = 4096, /* ended processes taken at one look */
};

enum {
	SLOT_OUT,
	SLOT_ERROR,
	SLOT_END,
	SLOT_STOP,
	SLOT_WATCH,
	SLOT_ASKED,
	SLOT_PTY,
	SLOT_COUNT = SLOT_PTY + PTY_SLOTS
};

struct follow {
	struct program_run *run;
	struct program_terms terms; /* the run's, or none */
	pid_t pid;
	bool is_init; /* all that kill(-1) reaches is the program's, every child too */
	bool was_subreaper;
	sigset_t mask_before;
	int pipes[2]; /* read ends for streams 1 and 2; -1: passed on or ended */
	bool widened[2];
	int end_fd;    /* readable when the program (init: any child) has ended */
	int listener;  /* of the program's filter, or -1 */
	pid_t *others; /* children of ours before the start, when not init; ends with 0 */
	bool ended;    /* the program itself; its status is in RUN */
	bool is_alone; /* init without a child: nothing is left, or comes any more */
	bool ending;   /* TERM was sent */
	int64_t term_at_ms, kill_at_ms, quiet_until_ms;
	int64_t watch_at_ms;     /* when the watch is asked next */
	int64_t silence_ends_ms; /* quiet_s is over then, unless output comes */
	bool heard;              /* some came in this round */
};

void program_run_init(struct program_run *run)
{
	memset(run, 0, sizeof(*run));
	run->start.fds[0] = run->start.fds[1] = run->start.fds[2] = -1;
	run->ahead.pipes[0] = run->ahead.pipes[1] = -1;
	run->deadline_ms = CLOCK_NEVER;
	run->stop_fd = -1;
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

static void take_status(struct follow *follow, int status)
{
	follow->ended = true;
	if (WIFEXITED(status))
		follow->run->exit_code = WEXITSTATUS(status);
	else if (WIFSIGNALED(status))
		follow->run->signal = WTERMSIG(status);
}

/*
 * Take what has ended without waiting. As init also the orphans, which else stay as
 * zombies. True when this process is init and alone: who has no child has no descendant.
 */
static bool reap_ended(struct follow *follow)
{
	int status;
	pid_t pid;

	if (!follow->is_init) {
		if (!follow->ended && waitpid(follow->pid, &status, WNOHANG) == follow->pid)
			take_status(follow, status);
		return false;
	}
	/* A fork bomb ends processes as fast as they can be taken. */
	for (int i = 0; i < FOLLOW_REAP_MAX; i++) {
		pid = waitpid(-1, &status, WNOHANG | __WALL);
		if (pid <= 0)
			return pid < 0 && errno == ECHILD;
		if (pid == follow->pid)
			take_status(follow, status);
	}
	return false;
}

int program_ends_open(sigset_t *before)
{
	struct sigaction plain;
	sigset_t child;

	/* An inherited "ignore" would throw the exit status away. */
	memset(&plain, 0, sizeof(plain));
	plain.sa_handler = SIG_DFL;
	(void)sigaction(SIGCHLD, &plain, NULL);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, before);
	return signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool set_up_init(struct follow *follow, struct err *err)
{
	follow->end_fd = follow->terms.ends_fd > 0
				 ? follow->terms.ends_fd
				 : program_ends_open(&follow->mask_before);
	return follow->end_fd >= 0 ||
	       err_set(err, errno, "No signalfd: %s.", strerror(errno));
}

/* What is there for longer than this run stays. */
static void tear_down_init(struct follow *follow)
{
	if (follow->end_fd >= 0 && follow->end_fd == follow->terms.ends_fd)
		follow->end_fd = -1;
	else if (follow->end_fd >= 0)
		(void)sigprocmask(SIG_SETMASK, &follow->mask_before, NULL);
}

/* Start the program, or take over the one that was started ahead. */
static bool begin(struct follow *follow, struct err *err)
{
	struct program_run *run = follow->run;
	bool ok = !follow->is_init || set_up_init(follow, err);

	if (ok && !follow->is_init) {
		int before = 0;

		follow->others = children_list(follow->terms.children_fd);
		(void)prctl(PR_GET_CHILD_SUBREAPER, &before, 0, 0, 0);
		follow->was_subreaper = before != 0;
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	}
	bool is_new = run->ahead.pid == 0;
	ok = ok && (!is_new || program_start_ahead(&run->start, &run->ahead, err));
	for (size_t i = 0; run->gives_fds && i < 3; i++)
		fd_close(&run->start.fds[i]);
	if (!ok)
		return false;
	follow->pid = run->ahead.pid;
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
		/* Its end may have come before anybody listened for it. */
		if (!is_new)
			(void)reap_ended(follow);
		return true;
	}
	follow->end_fd = (int)syscall(SYS_pidfd_open, follow->pid, 0);
	return follow->end_fd >= 0 || err_set(err, errno, "No pidfd: %s.", strerror(errno));
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
	int64_t grace = (int64_t)(follow->run->grace_s * 1000);

	if (follow->ending)
		return;
	follow->ending = true;
	follow->run->ending = why;
	follow->kill_at_ms = now + (grace > FOLLOW_GRACE_MS ? grace : FOLLOW_GRACE_MS);
	(void)kill(-follow->pid, SIGTERM);
	(void)kill(-follow->pid, SIGCONT); /* a stopped one could not act on it */
}

/* Is nothing of the program alive any more, as far as can be told without killing? */
static bool all_gone(const struct follow *follow)
{
	if (follow->is_init)
		return waitid(P_ALL, 0, &(siginfo_t){0}, WNOHANG | WNOWAIT | WEXITED) < 0 &&
		       errno == ECHILD;
	return kill(-follow->pid, 0) < 0 && errno == ESRCH;
}

static bool is_over(const struct follow *follow, int64_t now)
{
	if (follow->ending)
		return now >= follow->kill_at_ms || (follow->ended && all_gone(follow));
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

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t next_moment(const struct follow *follow)
{
	if (follow->ending)
		return earlier(follow->kill_at_ms, follow->watch_at_ms);
	return earlier(earlier(follow->term_at_ms, follow->watch_at_ms),
		       follow->silence_ends_ms);
}

/* Hung up without a byte left: most commands end so, and a read would first make room. */
static void take_stream(struct follow *follow, int stream, short events)
{
	if (events & POLLIN)
		(void)read_stream(follow, stream);
	else if (events)
		fd_close(&follow->pipes[stream]);
}

static void poll_once(struct follow *follow, int64_t now)
{
	struct program_run *run = follow->run;
	bool listen = run->stop_fd >= 0 && !follow->ending && now >= follow->quiet_until_ms;
	struct pollfd slots[SLOT_COUNT] = {
		[SLOT_OUT] = {.fd = follow->pipes[0], .events = POLLIN},
		[SLOT_ERROR] = {.fd = follow->pipes[1], .events = POLLIN},
		/* A pidfd stays readable after the end: not looked at again. */
		[SLOT_END] = {.fd = follow->ended && !follow->is_init ? -1 : follow->end_fd,
			      .events = POLLIN},
		[SLOT_STOP] = {.fd = listen ? run->stop_fd : -1, .events = POLLIN},
		[SLOT_WATCH] = {.fd = run->watch ? run->watch->fd : -1, .events = POLLIN},
		[SLOT_ASKED] = {.fd = follow->listener, .events = POLLIN},
		[SLOT_PTY] = {.fd = -1},
	};
	int64_t until = next_moment(follow);

	if (run->stop_fd >= 0 && !follow->ending && !listen && follow->quiet_until_ms < until)
		until = follow->quiet_until_ms;
	/* The group's last process may be nobody's child we could wait for. */
	if (follow->ending && follow->ended && !follow->is_init &&
	    until > now + FOLLOW_QUIET_MS)
		until = now + FOLLOW_QUIET_MS;
	if (run->pty)
		pty_slots(run->pty, &slots[SLOT_PTY]);
	if (poll(slots, run->pty ? SLOT_COUNT : SLOT_PTY, clock_poll_timeout(until)) <= 0)
		return;
	if (run->pty)
		pty_ready(run->pty, &slots[SLOT_PTY]);
	if (follow->terms.answer && slots[SLOT_ASKED].revents & POLLIN)
		follow->terms.answer(follow->terms.context, follow->listener);
	else if (slots[SLOT_ASKED].revents)
		fd_close(&follow->listener); /* nobody is left under the filter */
	take_stream(follow, 0, slots[SLOT_OUT].revents);
	take_stream(follow, 1, slots[SLOT_ERROR].revents);
	if (slots[SLOT_END].revents) {
		struct signalfd_siginfo info;

		/* However many have ended, one signal waits; a later one makes it ready again. */
		if (follow->is_init)
			(void)!read(follow->end_fd, &info, sizeof(info));
		follow->is_alone = reap_ended(follow);
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

/* Each of these was left behind, but the program itself. */
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
	/* What is dead already was not left behind. */
	if (follow->is_alone || reap_ended(follow))
		return;
	program_end_all(follow->ending ? PROGRAM_END_PATIENCE_MS : CLOCK_NEVER,
			one_reaped, follow);
	if (!follow->ended)
		follow->run->signal = SIGKILL; /* it is dying of it */
}

static void end_all_as_subreaper(struct follow *follow)
{
	int status;

	/* It alone first: what it leaves is counted while that still lives. */
	if (follow->pid > 0 && !follow->ended) {
		(void)kill(follow->pid, SIGKILL);
		if (waitpid(follow->pid, &status, 0) == follow->pid)
			take_status(follow, status);
	}
	follow->run->left_processes +=
		children_end(follow->terms.children_fd, follow->others, follow->pid);
	if (!follow->was_subreaper)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

/*
 * What lies in the pipe now and no more: somebody outside may hold its other end and go
 * on writing.
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
		if (!follow->ended && now >= follow->term_at_ms)
			send_term(follow, PROGRAM_TIMED_OUT, now);
		if (!follow->ended)
			silence_ask(follow, now);
		if (!follow->ended && now >= follow->watch_at_ms)
			watch_ask(follow, now);
	}
	if (follow->is_init)
		end_all_as_init(follow);
	else
		end_all_as_subreaper(follow);
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
	/* Who asks for a longer grace takes it from before the deadline. */
	follow.term_at_ms = run->deadline_ms;
	if (run->deadline_ms != CLOCK_NEVER && grace > FOLLOW_GRACE_MS)
		follow.term_at_ms -= grace;
	follow.watch_at_ms = run->watch && run->watch->after_ms
				     ? began / 1000 + run->watch->after_ms
				     : CLOCK_NEVER;
	follow.silence_ends_ms = run->quiet_s > 0
					 ? began / 1000 + (int64_t)(run->quiet_s * 1000)
					 : CLOCK_NEVER;
	ok = begin(&follow, err);
	if (ok && run->watch && run->watch->began)
		run->watch->began(run->watch->context);
	if (ok)
		wait_for_end(&follow);
	else if (!follow.is_init && follow.others)
		end_all_as_subreaper(&follow);
	if (follow.is_init)
		tear_down_init(&follow);
	fd_close(&follow.end_fd);
	fd_close(&follow.listener);
	fd_close(&follow.pipes[0]);
	fd_close(&follow.pipes[1]);
	free(follow.others);
	run->seconds = (double)(clock_now_us() - began) / 1e6;
	return ok;
}
