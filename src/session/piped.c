/* piped: the pipes of a program, and the call that runs it. */

#include "session/piped.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "process/loop.h"
#include "process/pty.h"
#include "sandbox/sandbox.h"
#include "session/session.h"
#include "tool/tool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10 };

static_assert((int)PIPED_GIVEN <= (int)CALL_FDS_MAX, "a call has room for the descriptors");

/* The output of programs. */

static enum piped_stream stream_of(const struct piped_reading *reading)
{
	return (enum piped_stream)(reading - reading->piped->readings);
}

static void reading_end(struct piped_reading *reading)
{
	loop_remove(&reading->watch);
	fd_close(&reading->watch.fd);
}

/* Read once. False at the end, and when there is nothing now. */
static bool reading_read(struct piped_reading *reading)
{
	struct piped *piped = reading->piped;
	char bytes[READ_BYTES];
	const ssize_t n = read(reading->watch.fd, bytes, sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return errno == EINTR;
	if (n > 0) {
		piped->options.said(piped->options.owner, stream_of(reading),
				    (struct str){bytes, (size_t)n});
		return true;
	}
	reading_end(reading);
	if (piped->options.fell_silent != NULL)
		piped->options.fell_silent(piped->options.owner, stream_of(reading));
	return false;
}

static void reading_ready(struct watch *watch, short events)
{
	struct piped_reading *reading = watch->context;

	(void)events;
	piped_settle(reading->piped);
	(void)reading_read(reading);
}

void piped_hold(struct piped *piped, bool held)
{
	piped->held = held;
	for (size_t i = 0; i < PIPED_STREAMS; i++) {
		struct watch *watch = &piped->readings[i].watch;

		if (held || watch->fd < 0)
			loop_remove(watch);
		else
			loop_add(piped->loop, watch);
	}
}

/* The bytes that lie in the pipe of READING. */
static size_t reading_unread(const struct piped_reading *reading)
{
	int waiting = 0;

	if (reading->watch.fd < 0 || ioctl(reading->watch.fd, FIONREAD, &waiting) < 0)
		return 0;
	return (size_t)waiting;
}

size_t piped_unread(const struct piped *piped)
{
	size_t unread = 0;

	for (size_t i = 0; i < PIPED_STREAMS; i++)
		unread += reading_unread(&piped->readings[i]);
	return unread;
}

void piped_drain(struct piped *piped)
{
	const unsigned generation = piped->generation;

	/* The error output first: the owner of an output that ends may want its words. */
	for (size_t i = PIPED_STREAMS; i-- > 0;) {
		struct piped_reading *reading = &piped->readings[i];

		while (!piped->held && piped->generation == generation &&
		       reading_unread(reading) > 0 && reading_read(reading))
			;
	}
}

void piped_end_stream(struct piped *piped, enum piped_stream stream)
{
	reading_end(&piped->readings[stream]);
}

void piped_end_output(struct piped *piped)
{
	for (size_t i = 0; i < PIPED_STREAMS; i++)
		reading_end(&piped->readings[i]);
}

/* The input of programs. */

static bool send_packet(const struct piped *piped, const char *packet, size_t size)
{
	return send(piped->input.fd, packet, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

size_t piped_waiting(const struct piped *piped)
{
	return piped->typed.size - piped->typed_from;
}

bool piped_takes_input(const struct piped *piped)
{
	return piped->input.fd >= 0 && !piped->input_ends;
}

/* Write bytes once, as much as goes: a packet for a terminal, bytes for a pipe. */
static ssize_t write_typed(const struct piped *piped)
{
	const char *data = piped->typed.data + piped->typed_from;
	const size_t size = piped_waiting(piped);
	char packet[1 + PTY_PACKET];
	ssize_t n;

	if (!piped->tty)
		return write(piped->input.fd, data, size);
	packet[0] = PTY_TYPED;
	n = (ssize_t)(size < PTY_PACKET ? size : PTY_PACKET);
	memcpy(packet + 1, data, (size_t)n);
	return send_packet(piped, packet, (size_t)n + 1) ? n : -1;
}

/* Does anything wait that is to be written? */
static bool has_news(const struct piped *piped)
{
	return piped->resizes || piped_waiting(piped) > 0 ||
	       (piped->input_ends && piped->tty);
}

/* Write the next of what waits: a new size of the terminal, bytes, the end of a terminal's. */
static bool write_next(struct piped *piped)
{
	static const char end = PTY_ENDED;
	char packet[1 + sizeof(piped->size)] = {PTY_RESIZED};
	ssize_t n;

	if (piped->resizes) {
		memcpy(packet + 1, &piped->size, sizeof(piped->size));
		piped->resizes = !send_packet(piped, packet, sizeof(packet));
		return !piped->resizes;
	}
	if (piped_waiting(piped) > 0) {
		n = write_typed(piped);
		piped->typed_from += n > 0 ? (size_t)n : 0;
		return n >= 0;
	}
	piped->input_ends = !send_packet(piped, &end, 1);
	return !piped->input_ends;
}

void piped_end_input(struct piped *piped)
{
	loop_remove(&piped->input);
	fd_close(&piped->input.fd);
	buf_fini(&piped->typed);
	piped->typed_from = 0;
	piped->input_ends = false;
	piped->resizes = false;
}

void piped_write(struct piped *piped)
{
	while (piped->input.fd >= 0 && has_news(piped)) {
		if (write_next(piped) || errno == EINTR)
			continue;
		if (errno == EAGAIN) {
			loop_add(piped->loop, &piped->input);
			return;
		}
		break; /* nobody reads any more; the call tells of the end */
	}
	if (piped->input.fd < 0 || has_news(piped) || (piped->input_ends && !piped->tty)) {
		piped_end_input(piped);
		return;
	}
	loop_remove(&piped->input);
	buf_fini(&piped->typed);
	piped->typed_from = 0;
}

static void input_ready(struct watch *watch, short events)
{
	struct piped *piped = watch->context;

	/* Only an error: nobody reads any more. */
	if (!(events & POLLOUT))
		piped_end_input(piped);
	else
		piped_write(piped);
}

struct buf *piped_input(struct piped *piped)
{
	buf_remove(&piped->typed, 0, piped->typed_from);
	piped->typed_from = 0;
	return &piped->typed;
}

bool piped_type(struct piped *piped, struct str bytes, bool ends)
{
	if (piped_waiting(piped) + bytes.size > piped->options.input_max)
		return false;
	(void)buf_addstr(piped_input(piped), bytes);
	piped->input_ends = piped->input_ends || ends;
	piped_write(piped);
	return true;
}

void piped_resize(struct piped *piped, struct pty_size size)
{
	if (piped->input.fd < 0)
		return;
	piped->size = size;
	piped->resizes = true;
	piped_write(piped);
}

enum piped_signal piped_signal(struct piped *piped, int number)
{
	const unsigned char byte = (unsigned char)number;

	if (piped->signals < 0)
		return PIPED_GONE;
	if (number != 0 && session_strength(piped->session).level < SANDBOX_SEALED) {
		running_cancel(piped->running);
		return PIPED_SENT;
	}
	if (write(piped->signals, &byte, sizeof(byte)) >= 0)
		return PIPED_SENT;
	return errno == EAGAIN ? PIPED_FULL : PIPED_GONE;
}

/* Opening, starting and closing. */

/* Make a pipe, of which the cell gets *GIVEN. */
static bool open_pipe(int *ours, int *given, bool we_write, struct err *err)
{
	int ends[2];

	if (!fd_pipe(ends, err))
		return false;
	*ours = ends[we_write];
	*given = ends[!we_write];
	return fd_set_blocking(*ours, false, err);
}

static bool open_terminal(struct piped *piped, struct err *err)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "a socket: %s", strerror(errno));
	piped->given[PIPED_IN] = ends[0];
	piped->input.fd = ends[1];
	return true;
}

/* A second descriptor of the output takes the place of the error output. */
static bool open_again(struct piped *piped, struct err *err)
{
	piped->given[PIPED_ERR] = fcntl(piped->given[PIPED_OUT], F_DUPFD_CLOEXEC, 0);
	return piped->given[PIPED_ERR] >= 0 ||
	       err_set(err, errno, "a descriptor: %s", strerror(errno));
}

static bool open_all(struct piped *piped, const struct piped_wish *wish, struct err *err)
{
	int *given = piped->given;

	if (!(wish->tty ? open_terminal(piped, err)
			: open_pipe(&piped->input.fd, &given[PIPED_IN], true, err)))
		return false;
	if (!wish->tty && !wish->has_input)
		fd_close(&piped->input.fd);
	if (!open_pipe(&piped->readings[PIPED_OUTPUT].watch.fd, &given[PIPED_OUT], false,
		       err) ||
	    (wish->takes_signals &&
	     !open_pipe(&piped->signals, &given[PIPED_SIGNALS], true, err)))
		return false;
	if (given[PIPED_ERR] >= 0)
		return true;
	return wish->tty || wish->merge ? open_again(piped, err)
					: open_pipe(&piped->readings[PIPED_ERROR].watch.fd,
						    &given[PIPED_ERR], false, err);
}

bool piped_open(struct piped *piped, struct loop *loop, const struct piped_wish *wish,
		struct err *err)
{
	piped_stop(piped);
	piped->loop = loop;
	piped->tty = wish->tty;
	piped->held = false;
	piped->open = true;
	piped->generation++;
	piped->given[PIPED_ERR] = wish->take_error;
	if (!open_all(piped, wish, err))
		return false;
	piped_hold(piped, false);
	return true;
}

void piped_start(struct piped *piped, struct session *session, const struct request *like,
		 void (*done)(void *context, struct running *running), void *context)
{
	struct request request = *like;

	request.tool = piped->tool.name;
	request.made = &piped->tool;
	request.by_front = true;
	request.beside = true;
	request.fd_count =
		piped->given[PIPED_SIGNALS] >= 0 ? PIPED_GIVEN : (size_t)PIPED_SIGNALS;
	memcpy(request.fds, piped->given, sizeof(piped->given));
	piped->session = session;
	piped->running = session_start(session, &request, done, context);
}

bool piped_is_open(const struct piped *piped)
{
	return piped->open;
}

static void close_given(struct piped *piped)
{
	for (size_t i = 0; i < PIPED_GIVEN; i++)
		fd_close(&piped->given[i]);
}

void piped_settle(struct piped *piped)
{
	/* Else we would never see the program close its ends. */
	if (piped->running != NULL &&
	    (running_is_sent(piped->running) || running_is_done(piped->running)))
		close_given(piped);
}

void piped_close(struct piped *piped)
{
	piped->open = false;
	piped_end_input(piped);
	piped_end_output(piped);
	close_given(piped);
	fd_close(&piped->signals);
}

void piped_stop(struct piped *piped)
{
	piped_close(piped);
	running_free(piped->running);
	piped->running = NULL;
}

void piped_init(struct piped *piped, const struct piped_options *options)
{
	*piped = (struct piped){
		.options = *options,
		.tool = *options->tool,
		.given = {[0 ... PIPED_GIVEN - 1] = -1},
		.signals = -1,
		.input = {.fd = -1, .events = POLLOUT, .ready = input_ready, .context = piped},
	};
	for (size_t i = 0; i < PIPED_STREAMS; i++)
		piped->readings[i] = (struct piped_reading){
			.piped = piped,
			.watch = {.fd = -1,
				  .events = POLLIN,
				  .ready = reading_ready,
				  .context = &piped->readings[i]},
		};
	piped->tool.carrier = "exec";
	piped->tool.carried = options->carried;
	buf_init(&piped->typed, options->input_max);
}
