/*
 * interrupt: a thread waits for the signals. So neither a handler nor a global variable is needed,
 * and a second signal ends the program even while the main thread is stuck in a write.
 */

#include "front/interrupt.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "front/verb.h"
#include "session/session.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/*
	 * timeout(1), npm and docker send a signal to the process and then to its group.
	 * A person who presses Ctrl+C a second time takes longer than this.
	 */
	SAME_SIGNAL_MS = 100,
};

struct interrupt {
	int ends[2];
	atomic_int signal;
	atomic_bool held; /* SIGINT does nothing */
	bool started;
	sigset_t set, before;
};

/*
 * Fill SET with the signals to wait for. A signal that the caller ignores stays ignored,
 * as nohup(1) and a background job of a script need it.
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
}

/*
 * Handle the signal NUMBER. A signal before UNTIL_MS repeats the one before it and is
 * ignored; any other second signal ends the process.
 */
static void signal_take(struct interrupt *interrupt, int number, int64_t *until_ms)
{
	const int64_t now = clock_now_ms();
	int none = 0;

	if (now < *until_ms || (number == SIGINT && atomic_load(&interrupt->held)))
		return;
	if (!atomic_compare_exchange_strong(&interrupt->signal, &none, number))
		_exit(CODE_SIGNAL + number);
	*until_ms = now + SAME_SIGNAL_MS;
	(void)!write(interrupt->ends[1], "", 1);
}

static _Noreturn void *wait_for_signals(void *context)
{
	struct interrupt *interrupt = context;
	int64_t until_ms = 0;

	for (;;) {
		const int number = sigwaitinfo(&interrupt->set, NULL);

		if (number > 0)
			signal_take(interrupt, number, &until_ms);
	}
}

bool interrupt_open(struct interrupt **opened, struct err *err)
{
	struct interrupt *interrupt = memory_alloc(sizeof(*interrupt));

	interrupt->ends[0] = interrupt->ends[1] = -1;
	atomic_init(&interrupt->signal, 0);
	atomic_init(&interrupt->held, false);
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
	/*
	 * The thread sleeps until the process ends, and keeps INTERRUPT. To wake it costs
	 * more than all else that a verb does at its end: every page that this thread
	 * writes to then has to be taken back from the thread's processor.
	 */
	if (interrupt->started) {
		(void)pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
		return;
	}
	fd_close(&interrupt->ends[0]);
	fd_close(&interrupt->ends[1]);
	free(interrupt);
}

int interrupt_fd(const struct interrupt *interrupt)
{
	return interrupt->ends[0];
}

bool interrupt_start(struct interrupt *interrupt, struct err *err)
{
	pthread_t thread;
	int failed;

	signals_of_interest(&interrupt->set);
	(void)pthread_sigmask(SIG_BLOCK, &interrupt->set, &interrupt->before);
	failed = pthread_create(&thread, NULL, wait_for_signals, interrupt);
	if (failed != 0) {
		(void)pthread_sigmask(SIG_SETMASK, &interrupt->before, NULL);
		return err_set(err, failed, "starting to listen for signals: %s%s",
			       strerror(failed),
			       failed == EAGAIN ? "; raise the limit of processes (ulimit -u) "
						  "or of memory (ulimit -v, -d)"
						: "");
	}
	(void)pthread_detach(thread);
	interrupt->started = true;
	return true;
}

int interrupt_signal(const struct interrupt *interrupt)
{
	return atomic_load(&interrupt->signal);
}

void interrupt_settle(struct interrupt *interrupt)
{
	const int signal = atomic_load(&interrupt->signal);
	int number = SIGINT;
	char bytes[16];

	if (signal == SIGINT)
		while (read(interrupt->ends[0], bytes, sizeof(bytes)) > 0)
			;
	else if (signal != 0)
		/* The agent has read it empty, and another thread may wait for it, as for an editor. */
		(void)!write(interrupt->ends[1], "", 1);
	(void)atomic_compare_exchange_strong(&interrupt->signal, &number, 0);
}

void interrupt_close_session(struct interrupt *interrupt, struct session *session)
{
	if (session != NULL && session_is_renewing(session)) {
		(void)fprintf(stderr, "glovebox: waiting for the new tokens of a login; "
				      "without them you would have to log in again\n");
		atomic_store(&interrupt->held, true);
	}
	session_close(session);
}
