/*
 * program: starting one program. The child shares our memory until its exec (as vfork
 * does: nothing is copied, however large we are) but runs on a stack of its own; what
 * went wrong in it is left in that shared memory. One that is made ahead runs the same
 * steps and rests once between them.
 */
#include "process/program.h"

#include "base/memory.h"
#include "base/path.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CALL_LANDLOCK_RESTRICT = 446, /* the C library's headers may end before */
	/* A dozen system calls are made on it; each page of it is a fault of every start. */
	CHILD_STACK = 16 << 10,
	MORE_FDS_MAX = 8,
	PATH_TEXT_MAX = 64 << 10, /* all candidates for one name */
	SHARED_FDS = 256, /* a table that two use waits for the kernel when it has to grow */
	LAUNCHER_LOOK_MS = 10, /* until it is asked whether it still lives */
};

/* Where one that is made ahead stands; a word of a futex. */
enum launcher_turn { TURN_NONE, TURN_MAKING, TURN_WAITS, TURN_GO };

enum child_step { STEP_DESCRIPTORS = 1, STEP_FOLDER, STEP_FILTER, STEP_EXEC };

struct child {
	const struct program_start *start;
	struct program_terms terms; /* START's, or none */
	const char *candidates; /* names to try, each ended by NUL; then an empty one */
	int keep[MORE_FDS_MAX]; /* descriptors that stay, ascending */
	size_t keep_count;
	volatile enum child_step failed;
	volatile int code;
	volatile int listener; /* in the table of descriptors that is shared until then */
	int turn;              /* enum launcher_turn; TURN_NONE: does not wait */
	/* not 0 while it shares our memory: the kernel clears it at its exec or end */
	int shares;
};

struct program_launcher {
	__attribute__((aligned(16))) char stack[CHILD_STACK];
	struct child child;
	struct program_start blank; /* what is known ahead */
	pid_t pid;
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
 * A descriptor that is not where it belongs and lies among 0-2 is moved out of the way
 * first.
 */
IN_CHILD static bool child_place_fds(const int fds[3])
{
	int from[3];

	for (int i = 0; i < 3; i++) {
		from[i] = fds[i] >= 0 ? fds[i] : open("/dev/null", O_RDWR | O_CLOEXEC);
		if (from[i] < 0)
			return false;
		if (from[i] < 3 && from[i] != i)
			from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 3);
		if (from[i] < 0)
			return false;
	}
	for (int i = 0; i < 3; i++) {
		if (from[i] == i ? fcntl(i, F_SETFD, 0) < 0 : dup2(from[i], i) < 0)
			return false;
	}
	return true;
}

IN_CHILD static bool child_close_others(const struct child *child)
{
	unsigned from = 3;

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
IN_CHILD static int child_exec(const struct child *child)
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

/*
 * A filter that asks has its listener where its first process is. The child shares our
 * descriptors just so long that it becomes ours as well.
 */
IN_CHILD static bool child_listen(struct child *child)
{
	long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, child->terms.filter);

	if (listener < 0)
		return false;
	child->listener = (int)listener;
	return syscall(SYS_unshare, CLONE_FILES) == 0;
}

/* What needs descriptors that are closed later. */
IN_CHILD static bool child_enter_domain(struct child *child)
{
	if (child->terms.ruleset > 0 &&
	    syscall(CALL_LANDLOCK_RESTRICT, child->terms.ruleset, 0) < 0)
		return false;
	return child->terms.answer == NULL || child_listen(child);
}

IN_CHILD static bool child_wall_in(const struct child *child)
{
	const struct program_terms *terms = &child->terms;

	return terms->filter == NULL || terms->answer != NULL ||
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, terms->filter) == 0;
}

IN_CHILD static void futex_wait(int *word, int value, const struct timespec *most)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT, value, most, NULL, 0);
}

IN_CHILD static void turn_set(struct child *child, enum launcher_turn turn)
{
	__atomic_store_n(&child->turn, (int)turn, __ATOMIC_RELEASE);
	(void)syscall(SYS_futex, &child->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* All that needs not know what will be started. */
IN_CHILD static bool child_prepare(struct child *child)
{
	const struct program_start *start = child->start;

	if (!start->signals_are_plain)
		reset_signals();
	if (start->terminal)
		(void)setsid();
	else
		(void)setpgid(0, 0);
	/* Before anything is done to descriptors that are shared yet. */
	child->failed = STEP_FILTER;
	return child_enter_domain(child) && child_wall_in(child);
}

/* Until it is known; from then on descriptors are its own. */
IN_CHILD static bool child_wait(struct child *child)
{
	turn_set(child, TURN_WAITS);
	while (__atomic_load_n(&child->turn, __ATOMIC_ACQUIRE) == TURN_WAITS)
		futex_wait(&child->turn, TURN_WAITS, NULL);
	child->failed = STEP_DESCRIPTORS;
	return close_range(UINT_MAX, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0;
}

IN_CHILD static bool child_become(struct child *child)
{
	const struct program_start *start = child->start;
	sigset_t none;

	child->failed = STEP_DESCRIPTORS;
	if (!child_place_fds(start->fds) || !child_close_others(child))
		return false;
	if (start->terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
		return false;
	child->failed = STEP_FOLDER;
	if (start->folder && chdir(start->folder) < 0)
		return false;
	child->failed = STEP_EXEC;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	errno = child_exec(child);
	return false;
}

/* Comes back only with what went wrong. */
IN_CHILD static int child_main(void *context)
{
	struct child *child = context;

	if (child_prepare(child) && (child->turn == TURN_NONE || child_wait(child)))
		(void)child_become(child);
	child->code = errno;
	return 127;
}

static const char *environment_value(const char *const *environment, const char *name)
{
	size_t size = strlen(name);

	for (; environment && *environment; environment++) {
		if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=')
			return *environment + size + 1;
	}
	return NULL;
}

/* The files that argv[0] may mean, in order. False when they are too many to hold. */
static bool list_candidates(const struct program_start *start, struct buf *list)
{
	const char *name = start->argv[0];
	const char *path = environment_value(start->environment, "PATH");
	struct str rest, folder;

	if (!*name)
		return buf_addc(list, '\0');
	if (strchr(name, '/'))
		return buf_add(list, name, strlen(name) + 1) && buf_addc(list, '\0');
	/* as a shell without PATH does */
	rest = str_of(path ? path : "/usr/local/bin:/usr/bin:/bin");
	while (path_next_folder(&rest, &folder)) {
		if (!buf_addstr(list, folder) || !buf_addc(list, '/') ||
		    !buf_add(list, name, strlen(name) + 1))
			return false;
	}
	return buf_addc(list, '\0');
}

static int compare_ints(const void *a, const void *b)
{
	int left = *(const int *)a;
	int right = *(const int *)b;

	return (left > right) - (left < right);
}

static void keep_more(struct child *child, const int *more)
{
	for (; more && *more >= 0; more++) {
		assert(child->keep_count < MORE_FDS_MAX);
		assert(*more > STDERR_FILENO);
		child->keep[child->keep_count++] = *more;
	}
	qsort(child->keep, child->keep_count, sizeof(int), compare_ints);
}

static bool say_failure(const struct child *child, struct err *err)
{
	const struct program_start *start = child->start;
	int code = child->code;

	if (child->failed == STEP_FOLDER)
		return err_set(err, ENOTDIR, "The folder %s cannot be entered: %s.",
			       start->folder, strerror(code));
	if (child->failed == STEP_FILTER)
		return err_set(err, ECHILD, "%s: its walls could not be set: %s.",
			       start->argv[0], strerror(code));
	if (child->failed != STEP_EXEC)
		return err_set(err, ECHILD, "%s: its descriptors could not be set up: %s.",
			       start->argv[0], strerror(code));
	switch (code) {
	case ENOENT:
	case ENOTDIR:
		if (strchr(start->argv[0], '/') && access(start->argv[0], F_OK) == 0)
			return err_set(err, ENOENT,
				       "%s exists, but the interpreter its first "
				       "line names does not.",
				       start->argv[0]);
		return err_set(err, ENOENT, "%s: command not found.", start->argv[0]);
	case EACCES:
		return err_set(err, code, "%s: not executable (permission denied).",
			       start->argv[0]);
	case ENOEXEC:
		return err_set(err, code, "%s: not a program this machine can run.",
			       start->argv[0]);
	case E2BIG:
		return err_set(err, code, "%s: its arguments and environment are too long.",
			       start->argv[0]);
	default:
		return err_set(err, code, "%s: %s.", start->argv[0], strerror(code));
	}
}

/* Start the child and wait until it has become the program or failed. */
static pid_t child_begin(struct child *child)
{
	__attribute__((aligned(16))) char stack[CHILD_STACK];
	sigset_t all, before;
	int saved;
	pid_t pid;

	/* No handler of ours may run in the child while it shares our memory. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(child_main, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | SIGCHLD |
			    (child->terms.answer != NULL ? CLONE_FILES : 0),
		    child);
	saved = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return pid;
}

/* ---- made ahead ---- */

/* Wait until it shares nothing with us any more: it has become a program, or ended. */
static void launcher_leave(struct program_launcher *launcher)
{
	int *shares = &launcher->child.shares;

	while (__atomic_load_n(shares, __ATOMIC_ACQUIRE) != 0)
		futex_wait(shares, 1, NULL);
}

/* Room for what comes between now and the start. */
static void table_grow(void)
{
	int high = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, SHARED_FDS - 1);

	if (high >= 0)
		(void)close(high);
}

struct program_launcher *program_launcher_make(const struct program_terms *terms)
{
	static const struct timespec look = {.tv_nsec = LAUNCHER_LOOK_MS * 1000000L};
	struct program_launcher *launcher = memory_alloc(sizeof(*launcher));
	struct child *child = &launcher->child;
	sigset_t all, before;

	assert(terms->answer == NULL);
	launcher->blank = (struct program_start){.terms = terms, .signals_are_plain = true};
	*child = (struct child){.start = &launcher->blank,
				.terms = *terms,
				.turn = TURN_MAKING,
				.shares = 1,
				.listener = -1};
	table_grow();
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	launcher->pid = clone(child_main, launcher->stack + sizeof(launcher->stack),
			      CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID | SIGCHLD,
			      child, NULL, NULL, &child->shares);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	/* Its steps leave traces in our errno: it rests before we go on. */
	while (launcher->pid > 0 && __atomic_load_n(&child->shares, __ATOMIC_ACQUIRE) != 0) {
		if (__atomic_load_n(&child->turn, __ATOMIC_ACQUIRE) == TURN_WAITS)
			return launcher;
		futex_wait(&child->turn, TURN_MAKING, &look);
	}
	program_launcher_end(&launcher);
	return NULL;
}

void program_launcher_end(struct program_launcher **launcher)
{
	struct program_launcher *given = *launcher;

	if (given && given->pid > 0) {
		(void)kill(given->pid, SIGKILL);
		launcher_leave(given);
		while (waitpid(given->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(given);
	*launcher = NULL;
}

static bool launcher_fits(const struct program_launcher *launcher,
			  const struct program_start *start)
{
	return !start->terminal && start->terms == launcher->blank.terms &&
	       __atomic_load_n(&launcher->child.shares, __ATOMIC_ACQUIRE) != 0;
}

/* Begin CHILD in the process that waits; *LAUNCHER is then used up. Its pid. */
static pid_t launcher_begin(struct program_launcher **launcher, struct child *child)
{
	struct program_launcher *used = *launcher;
	pid_t pid = used->pid;

	used->child.start = child->start;
	used->child.candidates = child->candidates;
	memcpy(used->child.keep, child->keep, sizeof(child->keep));
	used->child.keep_count = child->keep_count;
	turn_set(&used->child, TURN_GO);
	launcher_leave(used);
	child->failed = used->child.failed;
	child->code = used->child.code;
	free(used);
	*launcher = NULL;
	return pid;
}

bool program_start_listening(const struct program_start *start, pid_t *pid, int *listener,
			     struct err *err)
{
	struct child child = {.start = start, .listener = -1};
	struct buf candidates;
	bool started = false;
	pid_t made;

	if (start->terms != NULL)
		child.terms = *start->terms;
	buf_init(&candidates, PATH_TEXT_MAX);
	keep_more(&child, start->more_fds);
	if (!list_candidates(start, &candidates)) {
		buf_fini(&candidates);
		return err_set(err, ENAMETOOLONG, "%.200s: the name or PATH is too long.",
			       start->argv[0]);
	}
	child.candidates = candidates.data;
	if (start->launcher && *start->launcher && !launcher_fits(*start->launcher, start))
		program_launcher_end(start->launcher);
	made = start->launcher && *start->launcher
		       ? launcher_begin(start->launcher, &child)
		       : child_begin(&child);
	if (made < 0) {
		err_set(err, ECHILD, "%s: no process could be made: %s.", start->argv[0],
			strerror(errno));
	} else if (child.code) {
		while (waitpid(made, NULL, 0) < 0 && errno == EINTR)
			;
		say_failure(&child, err);
	} else {
		*pid = made;
		started = true;
	}
	buf_fini(&candidates);
	if (started)
		*listener = child.listener;
	else if (child.listener >= 0)
		(void)close(child.listener);
	return started;
}

bool program_start(const struct program_start *start, pid_t *pid, struct err *err)
{
	int listener = -1;

	assert(start->terms == NULL || start->terms->answer == NULL);
	return program_start_listening(start, pid, &listener, err);
}
