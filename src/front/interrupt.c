/*
 * interrupt: a thread that waits for the signals, so that neither a handler nor a
 * global variable is needed and a second signal ends the program even while the main
 * thread is stuck in a write.
 */
#include "front/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "front/exit_code.h"

struct interrupt {
	int ends[2];
	atomic_int signal;
	atomic_bool closing;
	bool started;
	pthread_t thread;
	sigset_t set, before;
};

/*
 * What the caller has switched off stays off: nohup(1), a job in the background of a
 * script.
 */
static void signals_of_interest(sigset_t *set)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

	(void)sigemptyset(set);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction now;

		if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			(void)sigaddset(set, numbers[i]);
	}
	/* Sent by interrupt_close alone, to this one thread. */
	(void)sigaddset(set, SIGURG);
}

static void interrupt_free(struct interrupt *interrupt)
{
	fd_close(&interrupt->ends[0]);
	fd_close(&interrupt->ends[1]);
	free(interrupt);
}

static void *wait_for_signals(void *context)
{
	struct interrupt *interrupt = context;
	int number;

	for (;;) {
		int none = 0;

		if (sigwait(&interrupt->set, &number) != 0)
			continue;
		if (atomic_load(&interrupt->closing)) {
			interrupt_free(interrupt);
			return NULL;
		}
		if (number == SIGURG)
			continue;
		if (!atomic_compare_exchange_strong(&interrupt->signal, &none, number))
			_exit(CODE_SIGNAL + number);
		(void)!write(interrupt->ends[1], "", 1);
	}
}

bool interrupt_open(struct interrupt **opened, struct err *err)
{
	struct interrupt *interrupt = memory_alloc(sizeof(*interrupt));

	interrupt->ends[0] = interrupt->ends[1] = -1;
	atomic_init(&interrupt->signal, 0);
	atomic_init(&interrupt->closing, false);
	if (!fd_pipe(interrupt->ends, err) ||
	    !fd_set_blocking(interrupt->ends[0], false, err) ||
	    !fd_set_blocking(interrupt->ends[1], false, err)) {
		interrupt_close(interrupt);
		return false;
	}
	*opened = interrupt;
	return true;
}

void interrupt_close(struct interrupt *interrupt)
{
	if (interrupt == NULL)
		return;
	if (!interrupt->started) {
		interrupt_free(interrupt);
		return;
	}
	const sigset_t before = interrupt->before;
	const pthread_t thread = interrupt->thread;
	/*
	 * pthread_cancel would load a library for it. The thread frees what it uses: to wait
	 * for its end would cost a verb more than all its other goodbyes.
	 */
	atomic_store(&interrupt->closing, true);
	(void)pthread_kill(thread, SIGURG);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int interrupt_fd(const struct interrupt *interrupt)
{
	return interrupt->ends[0];
}

bool interrupt_start(struct interrupt *interrupt, struct err *err)
{
	int failed;

	signals_of_interest(&interrupt->set);
	(void)pthread_sigmask(SIG_BLOCK, &interrupt->set, &interrupt->before);
	failed = pthread_create(&interrupt->thread, NULL, wait_for_signals, interrupt);
	if (failed != 0) {
		(void)pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
		return err_set(err, failed, "starting to listen for signals: %s%s",
			       strerror(failed),
			       failed == EAGAIN ? "; raise the limit of processes (ulimit -u) "
						  "or of memory (ulimit -v, -d)"
						: "");
	}
	(void)pthread_detach(interrupt->thread);
	interrupt->started = true;
	return true;
}

int interrupt_signal(const struct interrupt *interrupt)
{
	return atomic_load(&interrupt->signal);
}

void interrupt_settle(struct interrupt *interrupt)
{
	int number = SIGINT;
	char bytes[16];

	if (atomic_load(&interrupt->signal) == SIGINT)
		while (read(interrupt->ends[0], bytes, sizeof(bytes)) > 0)
			;
	(void)atomic_compare_exchange_strong(&interrupt->signal, &number, 0);
}
