/* screen_spinner: the ticking thread. */
#include "front/terminal/screen_spinner.h"

#include "base/fd.h"
#include "base/memory.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Ten pictures a second look like movement and cost next to nothing. */
enum { SPINNER_TICK_MS = 100 };

struct screen_spinner {
	void (*tick)(void *context);
	void *context;
	int end_fd; /* readable: the thread must end */
	pthread_t thread;
};

static void *spinner_run(void *argument)
{
	struct screen_spinner *spinner = argument;
	struct pollfd end = {.fd = spinner->end_fd, .events = POLLIN};

	while (poll(&end, 1, SPINNER_TICK_MS) == 0)
		spinner->tick(spinner->context);
	return NULL;
}

struct screen_spinner *screen_spinner_start(void (*tick)(void *context), void *context)
{
	struct screen_spinner *spinner = memory_alloc(sizeof(*spinner));
	sigset_t all, before;
	int failed;

	spinner->tick = tick;
	spinner->context = context;
	spinner->end_fd = eventfd(0, EFD_CLOEXEC);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = spinner->end_fd < 0 ||
		 pthread_create(&spinner->thread, NULL, spinner_run, spinner) != 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed)
		return spinner;
	/* Without a thread there is no spinner, but the screen still works. */
	fd_close(&spinner->end_fd);
	free(spinner);
	return NULL;
}

void screen_spinner_stop(struct screen_spinner *spinner)
{
	const uint64_t one = 1;

	if (!spinner)
		return;
	(void)fd_write_all(spinner->end_fd, &one, sizeof(one), NULL);
	(void)pthread_join(spinner->thread, NULL);
	fd_close(&spinner->end_fd);
	free(spinner);
}
