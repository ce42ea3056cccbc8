/*
 * interrupt: a thread waits for the signals. So neither a handler nor a global variable
 * is needed, and a second signal ends the program even while the main thread is stuck in
 * a write.
 */
#include "front/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "front/verb.h"

enum {
	/*
	 * timeout(1), npm and docker send a signal to the process and then to its group.
	 * A person who presses Ctrl+C a second time takes longer than this.
	 */
	SAME_SIGNAL_MS = 100,
};

struct interrupt {
	int ends[2];
	int signals;    /* the thread's signalfd */
	int closing[2]; /* closing its writing end makes the thread free this struct */
	atomic_int signal;
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

/* Free all except the writing end of CLOSING, which interrupt_close closes. */
static void interrupt_free(struct interrupt *interrupt)
{
	fd_close(&interrupt->ends[0]);
	fd_close(&interrupt->ends[1]);
	fd_close(&interrupt->signals);
	fd_close(&interrupt->closing[0]);
	free(interrupt);
}

/*
 * Handle the signal NUMBER. A signal before UNTIL_MS repeats the one before it and is
 * ignored; any other second signal ends the process.
 */
static void signal_take(struct interrupt *interrupt, int number, int64_t *until_ms)
{
	const int64_t now = clock_now_ms();
	int none = 0;

	if (now < *until_ms)
		return;
	if (!atomic_compare_exchange_strong(&interrupt->signal, &none, number))
		_exit(CODE_SIGNAL + number);
	*until_ms = now + SAME_SIGNAL_MS;
	(void)!write(interrupt->ends[1], "", 1);
}

static void *wait_for_signals(void *context)
{
	struct interrupt *interrupt = context;
	struct pollfd polled[] = {
		{.fd = interrupt->signals, .events = POLLIN},
		{.fd = interrupt->closing[0], .events = POLLIN},
	};
	struct signalfd_siginfo info;
	int64_t until_ms = 0;

	for (;;) {
		if (poll(polled, 2, -1) < 0)
			continue;
		if (polled[1].revents != 0)
			break;
		if (read(interrupt->signals, &info, sizeof(info)) == sizeof(info))
			signal_take(interrupt, (int)info.ssi_signo, &until_ms);
	}
	interrupt_free(interrupt);
	return NULL;
}

bool interrupt_open(struct interrupt **opened, struct err *err)
{
	struct interrupt *interrupt = memory_alloc(sizeof(*interrupt));

	interrupt->ends[0] = interrupt->ends[1] = interrupt->signals = -1;
	interrupt->closing[0] = interrupt->closing[1] = -1;
	atomic_init(&interrupt->signal, 0);
	if (!fd_pipe(interrupt->ends, err) || !fd_pipe(interrupt->closing, err) ||
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
	 * Once this end is closed, the thread frees INTERRUPT by itself. Waiting for the
	 * thread would take longer than all else that a verb does at its end.
	 */
	const bool started = interrupt->started;
	const sigset_t before = interrupt->before;
	int closing = fd_take(&interrupt->closing[1]);

	if (!started)
		interrupt_free(interrupt);
	fd_close(&closing);
	if (started)
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
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
	interrupt->signals = signalfd(-1, &interrupt->set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (interrupt->signals < 0)
		return err_set(err, errno, "starting to listen for signals: %s",
			       strerror(errno));
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
	int number = SIGINT;
	char bytes[16];

	if (atomic_load(&interrupt->signal) == SIGINT)
		while (read(interrupt->ends[0], bytes, sizeof(bytes)) > 0)
			;
	(void)atomic_compare_exchange_strong(&interrupt->signal, &number, 0);
}
