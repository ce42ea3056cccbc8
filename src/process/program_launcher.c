/* program_launcher: a start's process made ahead, and how it is set on its way or ended. */
#include "process/program_parts.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SHARED_FDS = 256, /* a table that two use waits for the kernel when it has to grow */
	LAUNCHER_LOOK_MS = 10, /* until it is asked whether it still lives */
};

struct program_launcher {
	__attribute__((aligned(16))) char stack[PROGRAM_CHILD_STACK];
	struct program_child child;
	struct program_start blank; /* what is known ahead */
	pid_t pid;
};

/* Wait until it shares nothing with us any more: it has become a program, or ended. */
static void launcher_leave(struct program_launcher *launcher)
{
	int *shares = &launcher->child.shares;

	while (__atomic_load_n(shares, __ATOMIC_ACQUIRE) != 0)
		program_child_rest(shares, 1, NULL);
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
	struct program_child *child = &launcher->child;
	sigset_t all, before;

	assert(terms->answer == NULL);
	launcher->blank = (struct program_start){.terms = terms, .signals_are_plain = true};
	*child = (struct program_child){.start = &launcher->blank,
					.terms = *terms,
					.turn = TURN_MAKING,
					.shares = 1,
					.listener = -1};
	table_grow();
	program_score_raise(terms->score);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	launcher->pid = clone(program_child_main, launcher->stack + sizeof(launcher->stack),
			      CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID | SIGCHLD,
			      child, NULL, NULL, &child->shares);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	/* Its steps leave traces in our errno: it rests before we go on. */
	while (launcher->pid > 0 && __atomic_load_n(&child->shares, __ATOMIC_ACQUIRE) != 0) {
		if (__atomic_load_n(&child->turn, __ATOMIC_ACQUIRE) == TURN_WAITS)
			return launcher;
		program_child_rest(&child->turn, TURN_MAKING, &look);
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

void program_launcher_rouse(struct program_launcher *launcher)
{
	if (launcher != NULL)
		program_child_turn(&launcher->child, TURN_RISES);
}

bool program_launcher_fits(const struct program_launcher *launcher,
			   const struct program_start *start)
{
	return !start->terminal && start->terms == launcher->blank.terms &&
	       __atomic_load_n(&launcher->child.shares, __ATOMIC_ACQUIRE) != 0;
}

pid_t program_launcher_begin(struct program_launcher **launcher, struct program_child *child)
{
	struct program_launcher *used = *launcher;
	pid_t pid = used->pid;

	used->child.start = child->start;
	used->child.candidates = child->candidates;
	memcpy(used->child.keep, child->keep, sizeof(child->keep));
	used->child.keep_count = child->keep_count;
	program_child_turn(&used->child, TURN_GO);
	launcher_leave(used);
	child->failed = used->child.failed;
	child->code = used->child.code;
	free(used);
	*launcher = NULL;
	return pid;
}
