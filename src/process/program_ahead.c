/* program_ahead: a program and the pipes it writes to, started before anybody follows it. */
#include "process/program.h"

#include "base/fd.h"
#include "process/children.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool make_pipe(int given, int *read_end, int *child_end, struct err *err)
{
	int ends[2];

	*child_end = given;
	if (given >= 0)
		return true;
	if (!fd_pipe(ends, err))
		return false;
	*read_end = ends[0];
	*child_end = ends[1];
	return fd_set_blocking(ends[0], false, err);
}

bool program_start_ahead(const struct program_start *start, struct program_ahead *ahead,
			 struct err *err)
{
	struct program_ahead made = {.pipes = {-1, -1}};
	struct program_start child = *start;

	/* A worker: its signals were made plain before it was ready. */
	child.signals_are_plain |= getpid() == 1;
	/*
	 * Children of the program must not escape, nor be taken for others, before it is
	 * followed.
	 */
	if (getpid() != 1)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (getpid() != 1 && !(start->terms && start->terms->alone))
		made.others = children_list(start->terms ? start->terms->children_fd : 0);
	bool ok = make_pipe(start->fds[1], &made.pipes[0], &child.fds[1], err) &&
		  make_pipe(start->fds[2], &made.pipes[1], &child.fds[2], err);
	if (!ok)
		err->code = ECHILD; /* nothing of the program's */
	ok = ok && program_start_listening(&child, &made.pid, &made.listener, err);
	/* Our copies of the write ends: while they are open no end of output would show. */
	for (int i = 1; i < 3; i++) {
		if (start->fds[i] < 0)
			fd_close(&child.fds[i]);
	}
	if (ok) {
		*ahead = made;
		return true;
	}
	fd_close(&made.pipes[0]);
	fd_close(&made.pipes[1]);
	free(made.others);
	return false;
}

bool program_ahead_lives(struct program_ahead *ahead)
{
	if (ahead->pid > 0 && waitpid(ahead->pid, NULL, WNOHANG) == 0)
		return true;
	ahead->pid = 0;
	return false;
}

void program_ahead_end(struct program_ahead *ahead)
{
	if (program_ahead_lives(ahead)) {
		(void)kill(ahead->pid, SIGKILL);
		while (waitpid(ahead->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	ahead->pid = 0;
	fd_close(&ahead->pipes[0]);
	fd_close(&ahead->pipes[1]);
	if (ahead->listener > 0)
		fd_close(&ahead->listener);
	ahead->listener = 0;
	free(ahead->others);
	ahead->others = NULL;
}
