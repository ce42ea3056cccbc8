/*
 * pty: opens the kernel's terminal and copies its two streams. The slave stays open as
 * long as the terminal lives; otherwise a program that closes its terminal would look
 * like its end, and poll would spin.
 */
#include "process/pty.h"

#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

enum { SLOT_INPUT, SLOT_MASTER, SLOT_OUTPUT };

static void resize(int master, struct pty_size size)
{
	const struct winsize window = {.ws_row = size.rows, .ws_col = size.columns};

	(void)ioctl(master, TIOCSWINSZ, &window);
}

bool pty_open(struct pty *pty, struct pty_size size, int input, int output, struct err *err)
{
	int locked = 0;

	*pty = (struct pty){.master = -1, .slave = -1, .input = input, .output = output};
	pty->master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (pty->master < 0)
		return err_set(err, errno,
			       "No terminal: /dev/ptmx: %s. A cell below level L3 has none of its "
			       "own: do without it, or see what L3 needs (glovebox doctor).",
			       strerror(errno));
	if (ioctl(pty->master, TIOCSPTLCK, &locked) == 0)
		pty->slave = ioctl(pty->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (pty->slave < 0) {
		int code = errno;

		pty_close(pty);
		return err_set(err, code, "No terminal: %s.", strerror(code));
	}
	resize(pty->master, size);
	pty->gathered = output < 0;
	if (pty->gathered)
		return true;
	pty->printed = memory_alloc(PTY_PIECE);
	return fd_set_blocking(output, false, err);
}

void pty_close(struct pty *pty)
{
	fd_close(&pty->slave);
	fd_close(&pty->master);
	free(pty->printed);
	pty->printed = NULL;
}

static bool has_typed(const struct pty *pty)
{
	return pty->typed_sent < pty->typed_size;
}

static bool has_printed(const struct pty *pty)
{
	return pty->printed_sent < pty->printed_size;
}

void pty_slots(const struct pty *pty, struct pollfd slots[PTY_SLOTS])
{
	slots[SLOT_INPUT] = (struct pollfd){
		.fd = has_typed(pty) ? -1 : pty->input,
		.events = POLLIN,
	};
	slots[SLOT_MASTER] = (struct pollfd){
		.fd = pty->master,
		.events = (short)((has_typed(pty) ? POLLOUT : 0) |
				  (has_printed(pty) || pty->gathered ? 0 : POLLIN)),
	};
	slots[SLOT_OUTPUT] = (struct pollfd){
		.fd = has_printed(pty) ? pty->output : -1,
		.events = POLLOUT,
	};
}

/*
 * The current end-of-input character of the terminal. A program that reads single keys
 * gets ^D.
 */
static char end_sign(int master)
{
	struct termios now;

	if (tcgetattr(master, &now) < 0 || now.c_cc[VEOF] == 0)
		return 'D' & 0x1f;
	return (char)now.c_cc[VEOF];
}

static void packet_read(struct pty *pty)
{
	char packet[1 + PTY_PACKET];
	struct pty_size size;
	ssize_t n = recv(pty->input, packet, sizeof(packet), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		pty->input = -1;
		return;
	}
	pty->typed_sent = pty->typed_size = 0;
	if (packet[0] == PTY_TYPED) {
		pty->typed_size = (size_t)n - 1;
		memcpy(pty->typed, packet + 1, pty->typed_size);
		pty->mid_line = n > 1 && packet[n - 1] != '\n' && packet[n - 1] != '\r';
	} else if (packet[0] == PTY_RESIZED && n == 1 + sizeof(size)) {
		memcpy(&size, packet + 1, sizeof(size));
		resize(pty->master, size);
	} else if (packet[0] == PTY_ENDED) {
		/*
		 * In the middle of a line, the first character only sends the typed
		 * bytes; a second one ends the input.
		 */
		pty->typed[pty->typed_size++] = end_sign(pty->master);
		if (pty->mid_line)
			pty->typed[pty->typed_size++] = end_sign(pty->master);
	}
}

static void typed_write(struct pty *pty)
{
	ssize_t n = write(pty->master, pty->typed + pty->typed_sent,
			  pty->typed_size - pty->typed_sent);

	if (n > 0)
		pty->typed_sent += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		pty->typed_sent = pty->typed_size;
}

/* Read what the program printed. False when there is nothing now. */
static bool printed_read(struct pty *pty)
{
	ssize_t n = read(pty->master, pty->printed, PTY_PIECE);

	if (n <= 0)
		return false;
	pty->printed_sent = 0;
	pty->printed_size = (size_t)n;
	return true;
}

/*
 * Without a reader, throw the output away: the program can go on, as the terminal is
 * never full.
 */
static void printed_write(struct pty *pty)
{
	ssize_t n = -1;

	errno = EPIPE;
	if (pty->output >= 0)
		n = write(pty->output, pty->printed + pty->printed_sent,
			  pty->printed_size - pty->printed_sent);
	if (n > 0) {
		pty->printed_sent += (size_t)n;
	} else if (errno != EAGAIN && errno != EINTR) {
		pty->output = -1;
		pty->printed_sent = pty->printed_size;
	}
}

void pty_ready(struct pty *pty, const struct pollfd slots[PTY_SLOTS])
{
	if (slots[SLOT_INPUT].revents)
		packet_read(pty);
	if (has_typed(pty))
		typed_write(pty);
	if (slots[SLOT_OUTPUT].revents)
		printed_write(pty);
	if (!pty->gathered && !has_printed(pty) && slots[SLOT_MASTER].revents & POLLIN &&
	    printed_read(pty))
		printed_write(pty);
}

bool pty_type(struct pty *pty, struct str text)
{
	if (has_typed(pty) || text.size > PTY_PACKET)
		return false;
	memcpy(pty->typed, text.data, text.size);
	pty->typed_size = text.size;
	pty->typed_sent = 0;
	typed_write(pty);
	return true;
}

void pty_drain(struct pty *pty)
{
	if (pty->gathered)
		return;
	do {
		while (has_printed(pty)) {
			struct pollfd slot = {.fd = pty->output, .events = POLLOUT};

			if (pty->output >= 0)
				(void)poll(&slot, 1, -1);
			printed_write(pty);
		}
	} while (printed_read(pty));
}
