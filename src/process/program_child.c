/*
 * program_child: what a start's process does until its exec. It shares our memory so long (as
 * vfork does: nothing is copied, however large we are) but runs on a stack of its own; what
 * went wrong in it is left in that shared memory. One that is made ahead runs the same steps
 * and rests once between them.
 */
#include "process/program_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CALL_LANDLOCK_RESTRICT = 446, /* the C library's headers may end before */
	/* Each takes half a microsecond: some 100 in all, twice what a start is away. */
	RISEN_LOOKS = 200,
	CHILD_FAILED = 127, /* nobody sees it: the code tells */
	COPY_LOOK_MS = 10,  /* until it is asked whether it still lives */
};

/* In the child no code of the sanitizers may run: it is on a stack they do not know. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined"), noinline))

/*
 * By the kernel's call: the C library's leaves out two numbers that it uses itself, and a
 * caller may have had them ignored. Zero is the default action.
 */
IN_CHILD static void reset_signals(void)
{
	static const struct {
		unsigned long handler, flags, restorer, mask;
	} plain = {0};

	for (int number = 1; number < _NSIG; number++)
		(void)syscall(SYS_rt_sigaction, number, &plain, NULL, sizeof(plain.mask));
}

void program_plain_signals(void)
{
	sigset_t none;

	reset_signals();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * A descriptor that is not where it belongs and lies among those that are filled is moved out
 * of the way first. COUNT: how many are.
 */
IN_CHILD static bool child_place_fds(const struct program_start *start, int *count)
{
	int from[3 + PROGRAM_PLACED_MAX];
	int all = 3;

	while (start->placed_fds != NULL && all < 3 + PROGRAM_PLACED_MAX &&
	       start->placed_fds[all - 3] >= 0)
		all++;
	*count = all;
	for (int i = 0; i < all; i++) {
		from[i] = i < 3 ? start->fds[i] : start->placed_fds[i - 3];
		if (from[i] < 0)
			from[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (from[i] >= 0 && from[i] < all && from[i] != i)
			from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, all);
		if (from[i] < 0)
			return false;
	}
	for (int i = 0; i < all; i++) {
		if (from[i] == i ? fcntl(i, F_SETFD, 0) < 0 : dup2(from[i], i) < 0)
			return false;
	}
	return true;
}

IN_CHILD static bool child_close_others(const struct program_child *child, int placed)
{
	unsigned from = (unsigned)placed;

	for (size_t i = 0; i < child->keep_count; i++) {
		unsigned kept = (unsigned)child->keep[i];

		if (kept > from && close_range(from, kept - 1, 0) < 0)
			return false;
		if (fcntl(child->keep[i], F_SETFD, 0) < 0)
			return false;
		from = kept + 1;
	}
	return close_range(from, UINT_MAX, 0) == 0;
}

/*
 * Try each candidate as the shell does: what is merely missing or closed to us does not
 * end the search.
 */
IN_CHILD static int child_exec(const struct program_child *child)
{
	/* execve takes them without const and changes nothing. */
	union {
		const char *const *given;
		char *const *taken;
	} argv = {child->start->argv}, environment = {child->start->environment};
	int code = ENOENT;

	for (const char *at = child->candidates; *at; at += strlen(at) + 1) {
		(void)execve(at, argv.taken, environment.taken);
		if (errno == EACCES)
			code = EACCES;
		else if (errno != ENOENT && errno != ENOTDIR)
			return errno;
	}
	return code;
}

/* The same descriptors, its own from now on; unshare is forbidden in many containers. */
IN_CHILD static bool child_own_fds(void)
{
	return close_range(UINT_MAX, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0;
}

/*
 * A filter that asks has its listener where its first process is. The child shares our
 * descriptors just so long that it becomes ours as well.
 */
IN_CHILD static bool child_listen(struct program_child *child)
{
	long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, child->terms.filter);

	if (listener < 0)
		return false;
	child->listener = (int)listener;
	return child_own_fds();
}

/* Steps that need descriptors which are closed later. */
IN_CHILD static bool child_enter_domain(struct program_child *child)
{
	if (child->terms.ruleset > 0 &&
	    syscall(CALL_LANDLOCK_RESTRICT, child->terms.ruleset, 0) < 0)
		return false;
	return child->terms.answer == NULL || child_listen(child);
}

IN_CHILD static bool child_wall_in(const struct program_child *child)
{
	const struct program_terms *terms = &child->terms;

	return terms->filter == NULL || terms->answer != NULL ||
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, terms->filter) == 0;
}

IN_CHILD void program_child_rest(int *word, int value, const struct timespec *most)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT, value, most, NULL, 0);
}

IN_CHILD void program_child_turn(struct program_child *child, enum launcher_turn turn)
{
	__atomic_store_n(&child->turn, (int)turn, __ATOMIC_RELEASE);
	(void)syscall(SYS_futex, &child->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* All that needs not know what will be started. */
IN_CHILD static bool child_prepare(struct program_child *child)
{
	const struct program_start *start = child->start;

	if (!start->signals_are_plain)
		reset_signals();
	/* A group of its own, and a session: the kernel shares the processor out by sessions. */
	child->failed = STEP_SESSION;
	if ((start->terminal || !start->joins_group) && setsid() < 0)
		return false;
	/* Before anything is done to descriptors that are shared yet. */
	child->failed = STEP_FILTER;
	return child_enter_domain(child) && child_wall_in(child);
}

IN_CHILD static enum launcher_turn turn_of(const struct program_child *child)
{
	return (enum launcher_turn)__atomic_load_n(&child->turn, __ATOMIC_ACQUIRE);
}

/*
 * Until it is known; from then on descriptors are its own. Nothing may fail before: errno is
 * that of the other side, which goes on meanwhile.
 */
IN_CHILD static bool child_wait(struct program_child *child)
{
	program_child_turn(child, TURN_WAITS);
	while (turn_of(child) == TURN_WAITS)
		program_child_rest(&child->turn, TURN_WAITS, NULL);
	for (int i = 0; i < RISEN_LOOKS && turn_of(child) == TURN_RISES; i++)
		(void)syscall(SYS_sched_yield);
	while (turn_of(child) == TURN_RISES)
		program_child_rest(&child->turn, TURN_RISES, NULL);
	child->failed = STEP_DESCRIPTORS;
	return child_own_fds();
}

IN_CHILD static bool child_become(struct program_child *child)
{
	const struct program_start *start = child->start;
	sigset_t none;
	int placed;

	child->failed = STEP_DESCRIPTORS;
	if (!child_place_fds(start, &placed) || !child_close_others(child, placed))
		return false;
	if (start->terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
		return false;
	child->failed = STEP_FOLDER;
	if (start->folder && chdir(start->folder) < 0)
		return false;
	child->failed = STEP_EXEC;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (start->body != NULL) {
		program_child_turn(child, TURN_GO);
		_exit(start->body(start->context));
	}
	errno = child_exec(child);
	return false;
}

IN_CHILD int program_child_main(void *context)
{
	struct program_child *child = context;

	if (child_prepare(child) && (child->turn == TURN_NONE || child_wait(child)))
		(void)child_become(child);
	child->code = errno;
	return CHILD_FAILED;
}

pid_t program_child_begin(struct program_child *child)
{
	__attribute__((aligned(16))) char stack[PROGRAM_CHILD_STACK];
	sigset_t all, before;
	int saved;
	pid_t pid;

	/* No handler of ours may run in the child while it shares our memory. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(program_child_main, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | SIGCHLD |
			    (child->terms.answer != NULL ? CLONE_FILES : 0),
		    child);
	saved = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return pid;
}

/* As fork, but with the descriptors shared where a listener has to come out of them. */
pid_t program_child_copy(struct program_child *child)
{
	static const struct timespec look = {.tv_nsec = COPY_LOOK_MS * 1000000L};
	long flags = SIGCHLD | (child->terms.answer != NULL ? CLONE_FILES : 0);
	pid_t pid;

	child->turn = TURN_MAKING;
	pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		if (child_prepare(child))
			(void)child_become(child);
		child->code = errno;
		_exit(CHILD_FAILED);
	}
	/* A child that fails before its turn sets `code`, or dies without one. */
	while (pid > 0 && __atomic_load_n(&child->turn, __ATOMIC_ACQUIRE) == TURN_MAKING) {
		siginfo_t ended = {0};

		if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		    ended.si_pid == pid) {
			if (child->code == 0)
				child->code = ECHILD;
			break;
		}
		program_child_rest(&child->turn, TURN_MAKING, &look);
	}
	return pid;
}
