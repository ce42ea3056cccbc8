/* terminal: settings and signals. */
#include "front/terminal/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "front/terminal/terminal_guard.h"

enum { OLD_ROWS = 24, OLD_COLUMNS = 80 };

struct terminal {
	struct watch signals;
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

static void size_send(const struct terminal *terminal)
{
	const struct pty_size size = terminal_size();
	char packet[1 + sizeof(size)] = {PTY_RESIZED};

	memcpy(packet + 1, &size, sizeof(size));
	(void)send(terminal->socket, packet, sizeof(packet), MSG_DONTWAIT | MSG_NOSIGNAL);
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
	if (isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &terminal->before) == 0) {
		if (!terminal_guard_start(&terminal->guard, &terminal->before, "", err)) {
			terminal_close(terminal);
			return false;
		}
		raw_on(terminal);
	}
	*opened = terminal;
	return true;
}

void terminal_close(struct terminal *terminal)
{
	if (terminal == NULL)
		return;
	raw_off(terminal);
	terminal_guard_end(&terminal->guard);
	loop_remove(&terminal->signals);
	fd_close(&terminal->signals.fd);
	free(terminal);
}
