/*
 * terminal: the guard, and a terminal that is raw for a program.
 */

#include "tui/lent/terminal.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "tui/terminal_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The guard. */

/*
 * Runs in the guard process. It makes only calls that are safe after a fork in a process
 * with threads.
 */
static _Noreturn void guard_run(int news, const struct termios *before, const char *reset)
{
	char done;
	ssize_t n;
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_NAME, "glovebox-tty");
	if (dup2(news, 1) >= 0)
		(void)syscall(SYS_close_range, 2U, ~0U, 0U);
	do {
		n = read(1, &done, 1);
	} while (n < 0 && errno == EINTR);
	if (n == 0) {
		/* A terminal that was stopped would keep the guard for ever. */
		const int fd = open("/proc/self/fd/0", O_WRONLY | O_NONBLOCK | O_NOCTTY);

		(void)tcsetattr(STDIN_FILENO, TCSANOW, before);
		/* The terminal may be another user's, and cannot be opened then. */
		(void)!write(fd >= 0 ? fd : STDIN_FILENO, reset, strlen(reset));
	}
	_exit(0);
}

bool terminal_guard_start(struct terminal_guard *guard, const struct termios *before,
			  const char *reset, struct err *err)
{
	int ends[2];

	if (!fd_pipe(ends, err))
		return false;
	guard->pid = fork();
	if (guard->pid == 0)
		guard_run(ends[0], before, reset);
	fd_close(&ends[0]);
	if (guard->pid < 0) {
		fd_close(&ends[1]);
		guard->pid = 0;
		return err_set(err, errno, "guarding the terminal: %s", strerror(errno));
	}
	guard->news = ends[1];
	return true;
}

void terminal_guard_end(struct terminal_guard *guard)
{
	if (guard->pid <= 0)
		return;
	(void)!write(guard->news, "", 1);
	fd_close(&guard->news);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	guard->pid = 0;
}

/* Settings and signals. */

enum {
	OLD_ROWS = 24,
	OLD_COLUMNS = 80,
	/* Programs that hear of two sizes in one moment see the last one only. */
	REDRAW_MS = 100,
};

struct terminal {
	struct watch signals;
	struct timer sized; /* the program's terminal gets its size back */
	int socket;
	bool raw; /* there is a terminal, and it is raw */
	struct termios before;
	struct terminal_guard guard;
};

static void signals_of_terminal(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGWINCH);
	(void)sigaddset(set, SIGCONT);
	(void)sigaddset(set, SIGTSTP);
}

void terminal_prepare(void)
{
	sigset_t set;

	signals_of_terminal(&set);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

struct pty_size terminal_size(void)
{
	struct winsize size;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
			return (struct pty_size){size.ws_row, size.ws_col};
	}
	return (struct pty_size){OLD_ROWS, OLD_COLUMNS};
}

static void raw_on(struct terminal *terminal)
{
	struct termios raw = terminal->before;

	cfmakeraw(&raw);
	terminal->raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static void raw_off(struct terminal *terminal)
{
	if (terminal->raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before);
	terminal->raw = false;
}

static void size_send_as(const struct terminal *terminal, struct pty_size size)
{
	char packet[1 + sizeof(size)] = {PTY_RESIZED};

	memcpy(packet + 1, &size, sizeof(size));
	(void)send(terminal->socket, packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void size_send(const struct terminal *terminal)
{
	size_send_as(terminal, terminal_size());
}

static void size_due(struct timer *timer)
{
	size_send(timer->context);
}

void terminal_redraw(struct terminal *terminal)
{
	struct pty_size size = terminal_size();

	size.rows = (uint16_t)(size.rows - (size.rows > 1));
	size_send_as(terminal, size);
	terminal->sized.due_ms = clock_now_ms() + REDRAW_MS;
}

static void signal_came(struct watch *watch, short events)
{
	struct terminal *terminal = watch->context;
	bool had = terminal->raw;
	struct signalfd_siginfo info;

	(void)events;
	if (read(watch->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGTSTP) {
		/*
		 * Restore the settings before we stop, for the program that uses the
		 * terminal next.
		 */
		raw_off(terminal);
		(void)raise(SIGSTOP);
	}
	if (had)
		raw_on(terminal);
	size_send(terminal);
}

bool terminal_open(struct loop *loop, int socket, struct terminal **opened, struct err *err)
{
	struct terminal *terminal = memory_alloc(sizeof(*terminal));
	sigset_t set;

	signals_of_terminal(&set);
	terminal->socket = socket;
	terminal->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	terminal->signals.events = POLLIN;
	terminal->signals.ready = signal_came;
	terminal->signals.context = terminal;
	if (terminal->signals.fd < 0) {
		(void)err_set(err, errno, "signals of the terminal: %s", strerror(errno));
		terminal_close(terminal);
		return false;
	}
	loop_add(loop, &terminal->signals);
	terminal->sized =
		(struct timer){.due_ms = CLOCK_NEVER, .due = size_due, .context = terminal};
	loop_add_timer(loop, &terminal->sized);
	if (isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &terminal->before) == 0) {
		if (!terminal_guard_start(&terminal->guard, &terminal->before,
					  terminal_filter_reset, err)) {
			terminal_close(terminal);
			return false;
		}
		raw_on(terminal);
	}
	*opened = terminal;
	return true;
}

bool terminal_lend(struct terminal **lent, struct err *err)
{
	struct terminal *terminal = memory_alloc(sizeof(*terminal));

	terminal->signals.fd = -1;
	if (isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &terminal->before) == 0 &&
	    !terminal_guard_start(&terminal->guard, &terminal->before,
				  terminal_filter_reset, err)) {
		free(terminal);
		return false;
	}
	*lent = terminal;
	return true;
}

void terminal_close(struct terminal *terminal)
{
	if (terminal == NULL)
		return;
	/*
	 * The terminal may still be answering questions of the program. A shell would take
	 * the answers for typed commands.
	 */
	if (terminal->raw) {
		(void)poll(NULL, 0, TERMINAL_ANSWERS_MS);
		(void)tcflush(STDIN_FILENO, TCIFLUSH);
	}
	raw_off(terminal);
	terminal_guard_end(&terminal->guard);
	loop_remove(&terminal->signals);
	loop_remove_timer(&terminal->sized);
	fd_close(&terminal->signals.fd);
	free(terminal);
}
