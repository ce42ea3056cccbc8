/* wards: one poll over the control socket, the front and the deaths of workers. */
#include "cell/wards.h"

#include "base/fd.h"
#include "base/memory.h"
#include "process/follow.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOT_CONTROL, SLOT_FRONT, SLOT_DEATHS, SLOT_COUNT };

bool wards_init(struct wards *wards, int front, bool alone, struct err *err)
{
	sigset_t child;

	*wards = (struct wards){.front = front, .deaths = -1, .alone = alone};
	wards->workers = memory_alloc(sizeof(pid_t));
	/* Do not ignore SIGCHLD: the pid of a listed worker must not be reused. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, NULL);
	wards->deaths = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	return wards->deaths >= 0 ||
	       err_set(err, errno, "hearing of the end of workers: %s", strerror(errno));
}

void wards_add(struct wards *wards, pid_t worker)
{
	wards->workers = memory_grow(wards->workers, wards->count + 2, sizeof(pid_t));
	wards->workers[wards->count++] = worker;
	wards->workers[wards->count] = 0;
}

void wards_forget(struct wards *wards)
{
	sigset_t none;

	fd_close(&wards->front);
	fd_close(&wards->deaths);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/*
 * Remove the workers that have ended from the list. Every other child of ours is an
 * orphan and is ended.
 */
static void take_deaths(struct wards *wards)
{
	struct signalfd_siginfo info;

	while (read(wards->deaths, &info, sizeof(info)) > 0)
		;
	for (size_t i = 0; i < wards->count;) {
		if (waitpid(wards->workers[i], NULL, WNOHANG) == 0) {
			i++;
			continue;
		}
		wards->workers[i] = wards->workers[--wards->count];
		wards->workers[wards->count] = 0;
	}
	(void)children_end(0, wards->workers, 0);
}

bool wards_wait(struct wards *wards, int control)
{
	for (;;) {
		struct pollfd slots[SLOT_COUNT] = {
			[SLOT_CONTROL] = {.fd = control, .events = POLLIN},
			[SLOT_FRONT] = {.fd = wards->front, .events = POLLIN},
			[SLOT_DEATHS] = {.fd = wards->deaths, .events = POLLIN},
		};

		if (poll(slots, SLOT_COUNT, -1) < 0 && errno != EINTR)
			return false;
		if (slots[SLOT_FRONT].revents != 0)
			return false;
		if (slots[SLOT_DEATHS].revents != 0)
			take_deaths(wards);
		if (slots[SLOT_CONTROL].revents != 0)
			return true;
	}
}

void wards_end(struct wards *wards)
{
	if (wards->alone) {
		(void)kill(-1, SIGKILL);
		while (waitpid(-1, NULL, 0) >= 0 || errno == EINTR)
			;
	} else {
		(void)children_end(0, NULL, 0);
	}
	free(wards->workers);
	wards->workers = NULL;
}
