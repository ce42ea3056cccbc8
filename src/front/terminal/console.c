/*
 * console: the modes of the terminal, and the thread that takes its signals and, while
 * something runs, its keys. Two threads use this file: the lock protects the mode and the
 * typed bytes.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "front/terminal/console_parts.h"
#include "front/terminal/terminal.h"

/* Bracketed paste: the terminal marks pasted text. */
static const char paste_on[] = "\x1b[?2004h";
static const char paste_off[] = "\x1b[?2004l";

enum { ESCAPE = '\x1b' };

void console_write(const char *bytes)
{
	(void)fd_write_all(STDOUT_FILENO, bytes, strlen(bytes), NULL);
}

/* True as well for a terminal of another session: there is no job control on it. */
static bool in_foreground(void)
{
	const pid_t group = tcgetpgrp(STDIN_FILENO);

	return group < 0 || group == getpgrp();
}

/* Set the terminal to the mode of CONSOLE. The caller holds the lock. */
static void apply(struct console *console)
{
	struct termios settings = console->before;

	if (!console->look.terminal || !in_foreground())
		return;
	if (console->mode != MODE_BEFORE) {
		settings.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | IXON | ISTRIP);
		settings.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
		settings.c_cc[VMIN] = 1;
		settings.c_cc[VTIME] = 0;
	}
	if (console->mode == MODE_TYPING)
		settings.c_lflag &= ~(tcflag_t)ISIG;
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &settings);
	if ((console->mode != MODE_BEFORE) == console->marks_pastes)
		return;
	console->marks_pastes = !console->marks_pastes;
	console_write(console->marks_pastes ? paste_on : paste_off);
}

void console_set_mode(struct console *console, enum mode mode)
{
	const uint64_t one = 1;

	(void)pthread_mutex_lock(&console->lock);
	console->mode = mode;
	console->interrupted = false;
	apply(console);
	(void)pthread_mutex_unlock(&console->lock);
	/* Wake the thread: it begins or stops to read keys. */
	if (mode == MODE_WATCHING)
		(void)fd_write_all(console->end, &one, sizeof(one), NULL);
}

/*
 * Restore the terminal, stop the process, and return after SIGCONT. All threads, this one
 * too, run on for a moment after the kill. So this function waits until SIGCONT has
 * arrived, and the caller keeps the lock meanwhile.
 */
static void stand_still(struct console *console)
{
	struct pollfd pollfd = {.fd = console->signals, .events = POLLIN};
	enum mode mode = console->mode;
	struct signalfd_siginfo info = {0};

	console->mode = MODE_BEFORE;
	apply(console);
	console->mode = mode;
	(void)kill(getpid(), SIGSTOP);
	while (info.ssi_signo != SIGCONT) {
		if (poll(&pollfd, 1, -1) > 0)
			(void)!read(console->signals, &info, sizeof(info));
	}
}

static void take_signal(struct console *console)
{
	uint64_t news = 1;
	struct signalfd_siginfo info;

	if (read(console->signals, &info, sizeof(info)) != sizeof(info))
		return;
	(void)pthread_mutex_lock(&console->lock);
	if (info.ssi_signo == SIGTSTP)
		stand_still(console);
	if (info.ssi_signo != SIGWINCH) {
		apply(console);
		news = CONSOLE_STOPPED;
	}
	(void)pthread_mutex_unlock(&console->lock);
	(void)fd_write_all(console->news, &news, sizeof(news), NULL);
}

/*
 * Remove the Escape at the end of BYTES when it is the key and does not begin a sequence:
 * no byte follows for CONSOLE_ESCAPE_WAIT_MS, or a second Escape follows (the key is held
 * or pressed again). True when an Escape was removed.
 */
static bool take_escape(char bytes[CONSOLE_READ_MAX], size_t *size)
{
	struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};

	while (*size > 0 && *size < CONSOLE_READ_MAX && bytes[*size - 1] == ESCAPE) {
		ssize_t got;

		if ((*size > 1 && bytes[*size - 2] == ESCAPE) ||
		    poll(&more, 1, CONSOLE_ESCAPE_WAIT_MS) == 0) {
			while (*size > 0 && bytes[*size - 1] == ESCAPE)
				--*size;
			return true;
		}
		got = read(STDIN_FILENO, bytes + *size, CONSOLE_READ_MAX - *size);
		if (got <= 0)
			break;
		*size += (size_t)got;
	}
	return false;
}

/*
 * Read keys while something runs: they are kept for later, except Escape, which
 * interrupts.
 */
static void keep_keys(struct console *console)
{
	struct pollfd here = {.fd = STDIN_FILENO, .events = POLLIN};
	char bytes[CONSOLE_READ_MAX];
	ssize_t got = 0;
	size_t size;

	(void)pthread_mutex_lock(&console->lock);
	/*
	 * The other thread may have begun to read since the poll: look again under the
	 * lock.
	 */
	if (console->mode == MODE_WATCHING && poll(&here, 1, 0) > 0)
		got = read(STDIN_FILENO, bytes, sizeof(bytes));
	size = got > 0 ? (size_t)got : 0;
	if (take_escape(bytes, &size)) {
		/*
		 * Send SIGINT only once: a second one would end the program, as a second
		 * Ctrl+C does.
		 */
		if (!console->interrupted)
			(void)kill(getpid(), SIGINT);
		console->interrupted = true;
	}
	if (size > 0)
		(void)typing_add(&console->typing, (struct str){bytes, size});
	else if (got < 0 || (got == 0 && (here.revents & POLLHUP) != 0))
		console->mode = MODE_BEFORE;
	(void)pthread_mutex_unlock(&console->lock);
}

static bool is_watching(struct console *console)
{
	bool watching;

	(void)pthread_mutex_lock(&console->lock);
	watching = console->look.terminal && console->mode == MODE_WATCHING;
	(void)pthread_mutex_unlock(&console->lock);
	return watching;
}

/* A counter of END_COUNT or more ends the thread; a smaller one only wakes it. */
enum { END_COUNT = 1 << 20 };

static void *console_run(void *argument)
{
	struct console *console = argument;
	struct pollfd fds[] = {
		{.fd = console->end, .events = POLLIN},
		{.fd = console->signals, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
	};
	uint64_t count = 0;

	for (;;) {
		fds[2].fd = is_watching(console) ? STDIN_FILENO : -1;
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0)
			continue;
		if (fds[0].revents != 0 &&
		    read(console->end, &count, sizeof(count)) > 0 && count >= END_COUNT)
			return NULL;
		if (fds[1].revents != 0)
			take_signal(console);
		if (fds[2].fd >= 0 && fds[2].revents != 0)
			keep_keys(console);
	}
}

static bool start_thread(struct console *console, struct err *err)
{
	sigset_t set, all, before;
	int failed;

	(void)pthread_sigmask(SIG_SETMASK, NULL, &console->mask_before);
	terminal_prepare();
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGWINCH);
	(void)sigaddset(&set, SIGCONT);
	(void)sigaddset(&set, SIGTSTP);
	console->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	console->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	console->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (console->signals < 0 || console->news < 0 || console->end < 0)
		return err_set(err, errno, "signals of the terminal: %s", strerror(errno));
	(void)sigfillset(&all);
	(void)sigdelset(&all, SIGTTOU);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&console->thread, NULL, console_run, console);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed != 0)
		return err_set(err, failed, "watching the terminal: %s", strerror(failed));
	console->started = true;
	return true;
}

bool console_open(struct console **opened, struct err *err)
{
	struct console *console = memory_alloc(sizeof(*console));

	console->signals = console->news = console->end = -1;
	console->look = screen_options_of(STDOUT_FILENO);
	(void)pthread_mutex_init(&console->lock, NULL);
	typing_init(&console->typing);
	line_frame_init(&console->shown);
	line_frame_init(&console->wanted);
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		(void)err_set(err, ENOTTY, "this needs a terminal on both sides");
	} else if (tcgetattr(STDIN_FILENO, &console->before) < 0) {
		(void)err_set(err, errno, "the terminal: %s", strerror(errno));
	} else if ((!console->look.terminal ||
		    terminal_guard_start(&console->guard, &console->before, paste_off, err)) &&
		   start_thread(console, err)) {
		*opened = console;
		console_set_mode(console, MODE_WATCHING);
		return true;
	}
	console_close(console);
	return false;
}

bool console_open_if_any(struct console **opened, struct err *err)
{
	*opened = NULL;
	return !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || console_open(opened, err);
}

void console_close(struct console *console)
{
	const uint64_t end = END_COUNT;

	if (console == NULL)
		return;
	if (console->started) {
		console_set_mode(console, MODE_BEFORE);
		(void)fd_write_all(console->end, &end, sizeof(end), NULL);
		(void)pthread_join(console->thread, NULL);
		(void)pthread_sigmask(SIG_SETMASK, &console->mask_before, NULL);
	}
	terminal_guard_end(&console->guard);
	fd_close(&console->signals);
	fd_close(&console->news);
	fd_close(&console->end);
	typing_fini(&console->typing);
	line_frame_fini(&console->shown);
	line_frame_fini(&console->wanted);
	(void)pthread_mutex_destroy(&console->lock);
	free(console);
}
