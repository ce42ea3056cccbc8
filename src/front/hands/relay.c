/* relay: pipes of ours between the caller's descriptors and a program in a cell. */

#include "front/hands/relay.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "process/pty.h"
#include "tui/lent/terminal.h"
#include "tui/terminal_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

/* One piece is as large as a pipe. Larger pieces would only need more memory. */
enum {
	RELAY_PIECE = 64 << 10,
	RELAY_STREAMS = 3,
	/* a piece behind what the filter has held, and the switching off of all modes */
	FILTERED_MAX = RELAY_PIECE + TERMINAL_FILTER_CLIPBOARD + (1 << 10),
	SAID_MAX = 8 * QUESTION_TEXT_MAX + (4 << 10), /* a question, between two screens */
};

/*
 * One direction of carrying. A piece is read from `from` and written to `to`, and only
 * then the next piece is read.
 */
struct stream {
	struct loop *loop;
	struct watch input, output;
	int from, to;
	bool from_is_callers, to_is_callers; /* we do not close these */
	bool to_is_socket;
	bool packets; /* a piece is one packet of typed bytes */
	bool ended;   /* the packet that ends the input is being sent */
	bool failed;  /* bytes for the caller were lost, for example on a full disk */
	bool held;    /* nothing is read, while a question has the terminal */
	size_t size, sent;
	size_t delivered; /* bytes in all */
	char *piece;      /* NULL: nothing is carried here */
	/* to a terminal: what goes there instead of the piece; NULL: the piece itself */
	struct terminal_filter *filter;
	struct buf filtered;
	struct buf said; /* of ours; goes to the terminal behind the piece */
	char tail[RELAY_TAIL];
	size_t tail_size;
};

struct relay {
	struct loop *loop;
	struct stream streams[RELAY_STREAMS];
	int fds[RELAY_STREAMS]; /* for the program */
	size_t fd_count;
	bool passed[RELAY_STREAMS]; /* the caller's pipe: it, or a descriptor of its own */
	bool clipboard;             /* the program may set the person's clipboard */
	bool tty;                   /* the program has a terminal */
	struct terminal *terminal;  /* the caller's, while the program runs; borrowed */
};

static void stream_end(struct stream *stream)
{
	if (stream->piece == NULL)
		return;
	loop_remove(&stream->input);
	loop_remove(&stream->output);
	if (!stream->from_is_callers)
		fd_close(&stream->from);
	if (!stream->to_is_callers)
		fd_close(&stream->to);
	free(stream->piece);
	stream->piece = NULL;
	buf_fini(&stream->filtered);
	buf_fini(&stream->said);
}

/* Write the held piece; false when the other side is gone. */
static bool stream_write(struct stream *stream)
{
	const char *data = (stream->filter != NULL ? stream->filtered.data : stream->piece) +
			   stream->sent;
	size_t size = stream->size - stream->sent;
	ssize_t n;

	if (stream->to_is_socket)
		n = send(stream->to, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = write(stream->to, data, size);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	stream->sent += (size_t)n;
	stream->delivered += (size_t)n;
	return true;
}

/* Nothing is being written: go on with our own text, or with the next piece. */
static void stream_go_on(struct stream *stream)
{
	stream->output.events = 0;
	if (stream->said.size > 0) {
		buf_clear(&stream->filtered);
		(void)buf_addstr(&stream->filtered, buf_str(&stream->said));
		buf_clear(&stream->said);
		stream->size = stream->filtered.size;
		stream->sent = 0;
		stream->output.events = POLLOUT;
	} else if (!stream->ended && !stream->held) {
		loop_add(stream->loop, &stream->input);
	}
}

static void output_ready(struct watch *watch, short events)
{
	struct stream *stream = watch->context;

	if (!(events & POLLOUT)) {
		/* The reader is gone: close our end, so that the writer sees it too. */
		stream_end(stream);
		return;
	}
	if (!stream_write(stream)) {
		if (stream->to_is_callers && errno != EPIPE) {
			stream->failed = true;
			(void)fprintf(stderr, "glovebox: output: %s\n", strerror(errno));
		}
		stream_end(stream);
		return;
	}
	if (stream->sent == stream->size)
		stream_go_on(stream);
}

/*
 * Say the end of the input. A terminal cannot be closed at one side, so the end is a
 * packet, and the socket stays open for other packets.
 */
static void end_say(struct stream *stream)
{
	stream->piece[0] = PTY_ENDED;
	stream->ended = true;
}

static void tail_add(struct stream *stream, struct str piece)
{
	size_t kept = stream->tail_size;

	if (piece.size > RELAY_TAIL)
		piece = str_part(piece, piece.size - RELAY_TAIL, RELAY_TAIL);
	if (kept > RELAY_TAIL - piece.size) {
		const size_t gone = kept - (RELAY_TAIL - piece.size);
		kept -= gone;
		memmove(stream->tail, stream->tail + gone, kept);
	}
	memcpy(stream->tail + kept, piece.data, piece.size);
	stream->tail_size = kept + piece.size;
}

static void input_ready(struct watch *watch, short events)
{
	struct stream *stream = watch->context;
	size_t head = stream->packets ? 1 : 0;
	ssize_t n = read(stream->from, stream->piece + head,
			 stream->packets ? PTY_PACKET : RELAY_PIECE);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0 && errno == EISDIR)
		(void)fprintf(stderr, "glovebox: standard input: %s\n", strerror(errno));
	if (n <= 0 && (!stream->packets || stream->ended)) {
		stream_end(stream);
		return;
	}
	if (n <= 0)
		end_say(stream);
	else
		stream->piece[0] = head ? PTY_TYPED : stream->piece[0];
	stream->size = n > 0 ? (size_t)n + head : 1;
	if (n > 0 && !stream->packets)
		tail_add(stream, (struct str){stream->piece, (size_t)n});
	stream->sent = 0;
	if (stream->filter != NULL) {
		buf_clear(&stream->filtered);
		terminal_filter_pass(stream->filter,
				     (struct str){stream->piece, stream->size},
				     &stream->filtered);
		stream->size = stream->filtered.size;
		if (stream->size == 0)
			return;
	}
	loop_remove(&stream->input);
	stream->output.events = POLLOUT;
}

static void stream_begin(struct stream *stream, struct loop *loop)
{
	stream->loop = loop;
	/* Not zeroed, so that its pages are only used when bytes are carried. */
	stream->piece = memory_grow(NULL, RELAY_PIECE, 1);
	stream->input.fd = stream->from;
	stream->input.events = POLLIN;
	stream->input.ready = input_ready;
	stream->input.context = stream;
	stream->output.fd = stream->to;
	stream->output.events = 0;
	stream->output.ready = output_ready;
	stream->output.context = stream;
	loop_add(loop, &stream->input);
	loop_add(loop, &stream->output);
}

/* Carry standard input through a pipe of ours. */
static bool relay_input(struct relay *relay, struct err *err)
{
	struct stream *stream = &relay->streams[STDIN_FILENO];
	int ends[2];

	if (!fd_pipe(ends, err))
		return false;
	relay->fds[STDIN_FILENO] = ends[0];
	stream->from = STDIN_FILENO;
	stream->from_is_callers = true;
	stream->to = ends[1];
	stream_begin(stream, relay->loop);
	return fd_set_blocking(ends[1], false, err);
}

/*
 * Open the terminal FD again, for nonblocking writes. A terminal that was stopped
 * (Ctrl+S) would block our write, and then neither deadline nor cancel would work.
 * Setting O_NONBLOCK on FD would change the caller's descriptor as well. Where opening is
 * forbidden, FD itself is used.
 */
static int reopen_terminal(int fd)
{
	char name[FD_NAME_ROOM];

	return open(fd_name(fd, name), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool relay_output(struct relay *relay, int fd, const struct stat *st, struct err *err)
{
	struct stream *stream = &relay->streams[fd];
	int ends[2];

	if (!fd_pipe(ends, err))
		return false;
	relay->fds[fd] = ends[1];
	stream->from = ends[0];
	const bool terminal = S_ISCHR(st->st_mode) && isatty(fd);
	stream->to = terminal ? reopen_terminal(fd) : -1;
	if (stream->to < 0) {
		stream->to = fd;
		stream->to_is_callers = true;
	}
	stream->to_is_socket = S_ISSOCK(st->st_mode);
	if (terminal || relay->tty) {
		stream->filter = terminal_filter_new(relay->clipboard);
		buf_init(&stream->filtered, FILTERED_MAX);
		buf_init(&stream->said, SAID_MAX);
	}
	stream_begin(stream, relay->loop);
	return fd_set_blocking(ends[0], false, err);
}

/*
 * Open the caller's pipe FD again, for the program. Its flags belong to what was opened, so
 * those of the caller stay as they are. Where that cannot be done (another user's pipe, or
 * nobody at its other end), FD itself is handed on.
 */
static int pipe_for_program(int fd)
{
	const int mode = fd == STDIN_FILENO ? O_RDONLY : O_WRONLY;
	char name[FD_NAME_ROOM];
	const int flags = fcntl(fd, F_GETFL);
	int again;

	if (flags < 0 || (flags & O_ACCMODE) != mode)
		return fd;
	/* Without O_NONBLOCK, this would wait for the other end. */
	again = open(fd_name(fd, name), mode | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (again >= 0 && fcntl(again, F_SETFL, flags & (O_NONBLOCK | O_APPEND)) < 0)
		fd_close(&again);
	return again >= 0 ? again : fd;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool relay_prepare(struct relay *relay, struct err *err)
{
	struct stat st[RELAY_STREAMS];

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fstat(fd, &st[fd]) < 0)
			return err_set(err, errno, "descriptor %d: %s", fd, strerror(errno));
		if (fd_is_pipe(fd)) {
			relay->passed[fd] = true;
			relay->fds[fd] = pipe_for_program(fd);
		}
	}
	if (!relay->passed[STDIN_FILENO] && !relay_input(relay, err))
		return false;
	if (!relay->passed[STDOUT_FILENO] &&
	    !relay_output(relay, STDOUT_FILENO, &st[STDOUT_FILENO], err))
		return false;
	if (relay->passed[STDERR_FILENO])
		return true;
	/*
	 * When both are the same terminal or file, one pipe keeps the order of their
	 * bytes.
	 */
	if (!relay->passed[STDOUT_FILENO] &&
	    same_file(&st[STDOUT_FILENO], &st[STDERR_FILENO])) {
		relay->fds[STDERR_FILENO] = fcntl(relay->fds[STDOUT_FILENO],
						  F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		if (relay->fds[STDERR_FILENO] < 0)
			return err_set(err, errno, "standard error: %s", strerror(errno));
		return true;
	}
	return relay_output(relay, STDERR_FILENO, &st[STDERR_FILENO], err);
}

static bool relay_prepare_terminal(struct relay *relay, struct err *err)
{
	struct stream *stream = &relay->streams[STDIN_FILENO];
	struct stat st;
	int ends[2];

	if (fstat(STDOUT_FILENO, &st) < 0)
		return err_set(err, errno, "descriptor 1: %s", strerror(errno));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, errno, "a socket: %s", strerror(errno));
	relay->fds[STDIN_FILENO] = ends[0];
	stream->from = STDIN_FILENO;
	stream->from_is_callers = true;
	stream->to = ends[1];
	stream->to_is_socket = true;
	stream->packets = true;
	stream_begin(stream, relay->loop);
	relay->fd_count = 2;
	relay->tty = true;
	return relay_output(relay, STDOUT_FILENO, &st, err);
}

static void close_programs_ends(struct relay *relay)
{
	for (int i = 0; i < RELAY_STREAMS; i++)
		if (!relay->passed[i] || relay->fds[i] != i)
			fd_close(&relay->fds[i]);
}

void relay_close(struct relay *relay)
{
	if (relay == NULL)
		return;
	for (int i = 0; i < RELAY_STREAMS; i++)
		stream_end(&relay->streams[i]);
	for (int i = 0; i < RELAY_STREAMS; i++)
		terminal_filter_free(relay->streams[i].filter);
	close_programs_ends(relay);
	free(relay);
}

bool relay_open(struct loop *loop, enum relay_kind kind, bool clipboard,
		struct relay **opened, struct err *err)
{
	struct relay *relay = memory_alloc(sizeof(*relay));

	relay->loop = loop;
	relay->clipboard = clipboard;
	relay->fd_count = RELAY_STREAMS;
	for (int i = 0; i < RELAY_STREAMS; i++)
		relay->fds[i] = -1;
	/*
	 * With SIGTTIN ignored, reading a terminal from the background is an error and
	 * does not stop this process.
	 */
	(void)signal(SIGTTIN, SIG_IGN);
	if (!(kind == RELAY_TERMINAL ? relay_prepare_terminal : relay_prepare)(relay, err)) {
		relay_close(relay);
		return false;
	}
	*opened = relay;
	return true;
}

const int *relay_fds(const struct relay *relay, size_t *count)
{
	*count = relay->fd_count;
	return relay->fds;
}

int relay_packets(const struct relay *relay)
{
	return relay->streams[STDIN_FILENO].to;
}

void relay_give(struct relay *relay)
{
	auto_close int null = -1;

	close_programs_ends(relay);
	/* Keep standard error: the messages at the end go there. */
	for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++) {
		if (!relay->passed[fd])
			continue;
		if (null < 0)
			null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null >= 0)
			(void)dup2(null, fd);
	}
}

void relay_tail(const struct relay *relay, struct buf *out)
{
	const struct stream *stream = &relay->streams[STDERR_FILENO];

	if (stream->tail_size == 0 && !relay->passed[STDERR_FILENO])
		stream = &relay->streams[STDOUT_FILENO];
	(void)buf_addstr(out, (struct str){stream->tail, stream->tail_size});
}

bool relay_lost(const struct relay *relay)
{
	return relay->streams[STDOUT_FILENO].failed || relay->streams[STDERR_FILENO].failed;
}

/*
 * Is the pipe empty? Do not wait for its end: the kernel closes the descriptors of a
 * dying process only after freeing its memory, which may be long after the last byte.
 */
static bool is_drained(struct stream *stream)
{
	int waiting = 0;

	if (stream->piece == NULL)
		return true;
	if (stream->output.events != 0 || ioctl(stream->from, FIONREAD, &waiting) < 0 ||
	    waiting > 0)
		return false;
	stream_end(stream);
	return true;
}

static void stop_came(struct watch *watch, short events)
{
	bool *stopped = watch->context;

	(void)events;
	*stopped = true;
	loop_remove(watch);
}

/* A reader takes nothing more: drop the rest, and what a stopped terminal has not shown. */
static void drop_rest(struct relay *relay)
{
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		struct stream *stream = &relay->streams[fd];

		if (stream->piece == NULL)
			continue;
		stream_end(stream);
		if (!isatty(fd))
			continue;
		/* From the background as well. A terminal starts again when it was stopped. */
		(void)signal(SIGTTOU, SIG_IGN);
		(void)tcflow(fd, TCOOFF);
		(void)tcflow(fd, TCOON);
		(void)tcflush(fd, TCOFLUSH);
	}
}

void relay_drain(struct relay *relay, int stop, bool hurries)
{
	struct stream *out = &relay->streams[STDOUT_FILENO];
	struct stream *error = &relay->streams[STDERR_FILENO];
	struct watch watch = {.fd = stop,
			      .events = POLLIN,
			      .ready = stop_came,
			      .context = &hurries};
	size_t delivered = 0;
	int64_t until_ms = CLOCK_NEVER;

	stream_end(&relay->streams[STDIN_FILENO]);
	close_programs_ends(relay);
	if (stop >= 0 && !hurries)
		loop_add(relay->loop, &watch);
	for (;;) {
		const bool out_done = is_drained(out), error_done = is_drained(error);

		if (out_done && error_done)
			break;
		if (hurries && (until_ms == CLOCK_NEVER ||
				delivered != out->delivered + error->delivered)) {
			delivered = out->delivered + error->delivered;
			until_ms = clock_now_ms() + RELAY_STUCK_MS;
		}
		if (clock_now_ms() >= until_ms) {
			drop_rest(relay);
			break;
		}
		loop_turn(relay->loop, until_ms);
	}
	loop_remove(&watch);
}

void relay_leave(const struct relay *relay)
{
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		struct terminal_filter *filter = relay->streams[fd].filter;
		struct buf text;

		if (filter == NULL || !isatty(fd))
			continue;
		auto_close int again = reopen_terminal(fd);
		buf_init(&text, FILTERED_MAX);
		terminal_filter_end(filter, &text);
		if (text.size > 0)
			(void)!write(again >= 0 ? again : fd, text.data, text.size);
		buf_fini(&text);
	}
}

/*
 * The terminal is lent to a question (front/ask/question.h): nothing is carried meanwhile,
 * and what the program prints waits in its pipe.
 */

static void stream_hold(struct stream *stream)
{
	stream->held = true;
	if (stream->piece != NULL)
		loop_remove(&stream->input);
}

static void stream_release(struct stream *stream)
{
	stream->held = false;
	if (stream->piece != NULL && stream->output.events == 0)
		stream_go_on(stream);
}

static void say(void *context, struct str text)
{
	struct relay *relay = context;
	struct stream *stream = &relay->streams[STDOUT_FILENO];

	if (stream->piece == NULL)
		return;
	(void)buf_addstr(&stream->said, text);
	if (stream->output.events == 0)
		stream_go_on(stream);
}

static bool lend(void *context, struct str text)
{
	struct relay *relay = context;
	struct stream *stream = &relay->streams[STDOUT_FILENO];

	if (stream->piece == NULL || stream->filter == NULL)
		return false;
	stream_hold(&relay->streams[STDIN_FILENO]);
	stream_hold(stream);
	terminal_filter_pause(stream->filter, &stream->said);
	say(relay, text);
	return true;
}

static void take_back(void *context)
{
	struct relay *relay = context;
	struct stream *stream = &relay->streams[STDOUT_FILENO];

	if (stream->piece != NULL && !terminal_filter_resume(stream->filter, &stream->said))
		terminal_redraw(relay->terminal);
	stream_release(stream);
	stream_release(&relay->streams[STDIN_FILENO]);
}

struct question_place relay_place(struct relay *relay, struct terminal *terminal)
{
	relay->terminal = terminal;
	return (struct question_place){.loop = relay->loop,
				       .hold = lend,
				       .say = say,
				       .go_on = take_back,
				       .context = relay};
}
