/* carry: bytes between the caller's terminal or pipes and a program behind the wire. */

#include "front/cells/carry.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "front/cells/peer.h"
#include "front/hands/relay.h"
#include "front/interrupt.h"
#include "front/verb.h"
#include "mcp/message.h"
#include "process/loop.h"
#include "process/pty.h"
#include "serve/caller.h"
#include "tool/denial.h"
#include "tool/tool.h"
#include "tui/lent/terminal.h"
#include "tui/terminal_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PIECE = 64 << 10,      /* of the input, in one request */
	TYPED_MAX = 1 << 20,   /* keys that the program has not read; more are lost */
	SINK_MAX = 4 << 20,    /* output that waits: more than the engine sends unasked */
	MORE_BYTES = 64 << 10, /* the engine is told of so many bytes at a time */
	TAIL_SHOWN = 16 << 10, /* of what a job has printed before somebody looked */
	CANCEL_MS = 10000,     /* for the end of a program, after a signal */
	STUCK_MS = 2000,       /* for a reader that takes nothing, after a signal */
	REDRAW_MS = 60,        /* how long a terminal is one row smaller */
	AGAIN_MS = 20,         /* before input that the front has refused is sent again */
	LET_GO = 0x1d,         /* Ctrl+] */
	SEQUENCE_MAX = 32,     /* bytes of a key's sequence that matters here */
	UNFINISHED_MAX =
		256, /* bytes of a sequence that is not whole; one of colours has fewer */
	TITLE_SHOWN = 60,
};

/* Where a program stands, as this process knows. */
enum carry_state {
	CARRY_STARTS, /* exec/start or exec/watch was not answered */
	CARRY_RUNS,
	CARRY_ENDED,   /* its end was told */
	CARRY_REFUSED, /* it could not be started */
	CARRY_LET_GO,  /* the person looks no more */
	CARRY_LOST,    /* the front behind the cell has gone */
	CARRY_SILENT,  /* it does not answer */
};

/* One of the program's outputs, on its way to the relay. */
struct sink {
	struct carry *carry;
	struct watch watch;
	int fd;    /* -1: nobody reads it */
	int given; /* the relay's, which FD may be */
	bool is_socket;
	const char *stream;
	struct buf waiting;
	size_t from;
};

/* The state of the keys that are typed: a key may be a sequence, and a paste is none. */
struct keys_seen {
	char sequence[SEQUENCE_MAX]; /* behind ESC [ */
	size_t size;
	enum { SEEN_TEXT, SEEN_ESCAPE, SEEN_SEQUENCE } state;
	bool pastes;
};

struct carry {
	struct cells_peer peer;
	struct loop *loop;
	struct relay *relay;
	struct interrupt *interrupt;
	struct terminal *terminal;
	enum carry_state state;
	bool tty, attached;
	uint64_t process;
	int64_t asked; /* the request that begins it */
	struct watch input;
	struct buf typed; /* keys that the front has not taken yet */
	bool input_ends;  /* behind them */
	int64_t writing;  /* the exec/write that was not answered; 0: none */
	size_t sent;      /* so many of the first bytes in TYPED are in it */
	bool sent_end;    /* and so is the end of the input */
	bool untaken;     /* it is answered before the program has taken them */
	struct timer again;
	struct sink sinks[2];
	uint64_t dealt_with; /* bytes of output that the engine was not told of */
	struct value *outcome;
	struct err refused;
	int refused_code;
	bool cancelled;
	/* of an attached one */
	bool types;
	struct keys_seen keys;
	struct buf replay;
	uint64_t replay_left; /* bytes that were printed before */
	struct pty_size size;
	struct timer redraw;
};

/* The output of a terminal, shown again. */

static bool is_final(char c)
{
	return c >= 0x40 && c <= 0x7e;
}

/*
 * The end of the sequence that begins at AT with ESC, behind TEXT when it is not whole;
 * *IS_COLOUR: it is one of colours.
 */
static size_t sequence_end(struct str text, size_t at, bool *is_colour)
{
	const char kind = at + 1 < text.size ? text.data[at + 1] : '\0';
	size_t end = at + 2;

	*is_colour = false;
	if (kind == '[') {
		while (end < text.size && !is_final(text.data[end]))
			end++;
		*is_colour = end < text.size && text.data[end] == 'm' &&
			     strspn(text.data + at + 2, "0123456789;:") >= end - at - 2;
		return end + 1;
	}
	if (kind != '\0' && strchr("]P_^X", kind) != NULL) {
		while (end < text.size && text.data[end] != '\a' && text.data[end] != 033)
			end++;
		if (end + 1 >= text.size || text.data[end] == '\a')
			return end + 1 + (end < text.size && text.data[end] == 033);
		/* An ESC that does not end the string begins another sequence. */
		return text.data[end + 1] == '\\' ? end + 2 : end;
	}
	while (end <= text.size && kind >= 0x20 && kind < 0x30 &&
	       !is_final(text.data[end - 1]))
		end++;
	return end;
}

/* The end of the character that begins at AT, behind TEXT when it is not whole. */
static size_t character_end(struct str text, size_t at, bool *passes)
{
	const unsigned char c = (unsigned char)text.data[at];
	const size_t length = text_utf8_length(str_part(text, at, text.size));
	const size_t wanted = c < 0xc2 || c > 0xf4 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	size_t end = at + 1;

	/* C1 controls pass neither as characters nor as bytes. */
	*passes = length > 0 && (c != 0xc2 || (unsigned char)text.data[at + 1] >= 0xa0);
	if (length > 0)
		return at + length;
	while (end < text.size && end < at + wanted && (text.data[end] & 0xc0) == 0x80)
		end++;
	return end == text.size && end < at + wanted ? text.size + 1 : at + 1;
}

/*
 * The sequence or character REST goes on in the next piece of the output. Nothing of a long one
 * passes, so that its kind, and an ESC that may end it, are all that is kept.
 */
static void shorten(struct buf *rest)
{
	const bool may_end = rest->size > 2 && rest->data[rest->size - 1] == 033;
	const bool is_control = rest->size > 1 && rest->data[1] == '[';

	if (rest->size <= UNFINISHED_MAX)
		return;
	buf_truncate(rest, 2);
	if (is_control)
		(void)buf_addc(rest, '?');
	else if (may_end)
		(void)buf_addc(rest, 033);
}

void cells_carry_plain(struct buf *rest, struct str text, struct buf *out)
{
	size_t at = 0;

	if (rest != NULL) {
		(void)buf_addstr(rest, text);
		text = buf_str(rest);
	}
	while (at < text.size) {
		const unsigned char c = (unsigned char)text.data[at];
		size_t end = at + 1;
		bool passes = c == '\n' || c == '\r' || c == '\t' || c == '\b' ||
			      (c >= 0x20 && c != 0x7f);

		if (c == 033)
			end = sequence_end(text, at, &passes);
		else if (c >= 0x80)
			end = character_end(text, at, &passes);
		if (end > text.size)
			break;
		if (passes)
			(void)buf_add(out, text.data + at, end - at);
		at = end;
	}
	if (rest == NULL)
		return;
	buf_remove(rest, 0, at);
	shorten(rest);
}

/* Requests. */

static struct value *params_of(const struct carry *carry)
{
	struct value *params = value_new_object();

	value_set_integer(params, "process", (int64_t)carry->process);
	return params;
}

static void send_size(struct carry *carry, struct pty_size size)
{
	struct value *params = params_of(carry);

	value_set_integer(params, "rows", size.rows > 0 ? size.rows : 1);
	value_set_integer(params, "columns", size.columns > 0 ? size.columns : 1);
	(void)cells_peer_send(&carry->peer, "exec/resize", params);
}

/* Send keys, or the end of the input, when the last ones were taken. */
static void send_typed(struct carry *carry)
{
	struct value *params;
	struct buf text;
	struct str piece;

	if (carry->state != CARRY_RUNS || carry->writing != 0 ||
	    carry->again.due_ms != CLOCK_NEVER ||
	    (carry->typed.size == 0 && !carry->input_ends))
		return;
	piece = str_part(buf_str(&carry->typed), 0, PIECE);
	params = params_of(carry);
	buf_init(&text, 2 * PIECE);
	(void)buf_base64_add(piece, &text);
	value_set_str(params, "bytes", buf_str(&text));
	value_set_boolean(params, "taken", !carry->untaken);
	carry->sent_end = carry->input_ends && piece.size == carry->typed.size;
	if (carry->sent_end)
		value_set_boolean(params, "end", true);
	buf_fini(&text);
	carry->sent = piece.size;
	carry->writing = cells_peer_send(&carry->peer, "exec/write", params);
}

/* Forget the bytes that are on their way: the front has taken them, or nobody will. */
static void drop_sent(struct carry *carry)
{
	buf_remove(&carry->typed, 0, carry->sent);
	carry->sent = 0;
	carry->input_ends = carry->input_ends && !carry->sent_end;
	carry->writing = 0;
}

/* The program has ended, or nobody is there any more: no more input. */
static void input_close(struct carry *carry)
{
	loop_remove(&carry->input);
	carry->input.fd = -1;
	buf_clear(&carry->typed);
	carry->sent = 0;
	carry->input_ends = false;
}

static bool is_busy(const struct value *error)
{
	const char *kind = value_text(value_member(value_member(error, "data"), "kind"));

	return kind != NULL && strcmp(kind, "busy") == 0;
}

static void again_due(struct timer *timer)
{
	send_typed(timer->context);
}

/*
 * The last exec/write was answered, by ERROR when it was refused. A front that has no room now gets
 * the same bytes again. The answer to a write that waits for the program needs a place
 * among its calls, and one that does not wait needs bytes of its memory: where one of both is full,
 * the other one may not be.
 */
static void take_written(struct carry *carry, const struct value *error)
{
	carry->writing = 0;
	if (error == NULL) {
		drop_sent(carry);
	} else if (is_busy(error) && (!carry->attached || carry->types)) {
		carry->untaken = !carry->untaken;
		carry->again.due_ms = clock_now_ms() + AGAIN_MS;
	} else if (carry->attached) {
		drop_sent(carry);
	} else {
		input_close(carry);
	}
	send_typed(carry);
}

/* Keys of the terminal. */

/* Is the sequence that has ended in FINAL the key Ctrl+], as the newer protocols have it? */
static bool is_let_go(const struct keys_seen *keys, char final)
{
	const struct str text = {keys->sequence, keys->size};

	return (final == 'u' &&
		(str_equal(text, STR("93;5")) || str_equal(text, STR("93;5:1")) ||
		 str_starts(text, STR("93;5;")))) ||
	       (final == '~' && str_equal(text, STR("27;5;93")));
}

/*
 * Look for Ctrl+] in the keys TEXT. Returns how many bytes before it are keys of the program;
 * TEXT.size when it is not there.
 */
static size_t find_let_go(struct keys_seen *keys, struct str text)
{
	size_t began = 0;

	for (size_t i = 0; i < text.size; i++) {
		const char c = text.data[i];

		if (c == LET_GO && !keys->pastes)
			return keys->state == SEEN_TEXT ? i : began;
		if (c == 033) {
			keys->state = SEEN_ESCAPE;
			began = i;
		} else if (keys->state == SEEN_ESCAPE) {
			keys->state = c == '[' ? SEEN_SEQUENCE : SEEN_TEXT;
			keys->size = 0;
		} else if (keys->state == SEEN_SEQUENCE && !is_final(c)) {
			if (keys->size < SEQUENCE_MAX)
				keys->sequence[keys->size++] = c;
		} else if (keys->state == SEEN_SEQUENCE) {
			const struct str sequence = {keys->sequence, keys->size};

			keys->state = SEEN_TEXT;
			if (is_let_go(keys, c) && !keys->pastes)
				return began;
			if (c == '~' && str_equal(sequence, STR("200")))
				keys->pastes = true;
			else if (c == '~' && str_equal(sequence, STR("201")))
				keys->pastes = false;
		}
	}
	return text.size;
}

static void let_go(struct carry *carry)
{
	/* The keys before are the program's, which may not have read earlier ones. */
	if (carry->writing != 0)
		drop_sent(carry);
	carry->again.due_ms = CLOCK_NEVER;
	while (carry->state == CARRY_RUNS && carry->types && carry->typed.size > 0) {
		send_typed(carry);
		drop_sent(carry);
	}
	if (carry->state == CARRY_RUNS || carry->state == CARRY_STARTS)
		carry->state = CARRY_LET_GO;
}

static void take_typed(struct carry *carry, struct str keys)
{
	size_t size = keys.size;

	if (carry->attached)
		size = find_let_go(&carry->keys, keys);
	/* Keys that a program does not read are lost, as those of a terminal are. */
	if ((!carry->attached || carry->types || carry->state == CARRY_STARTS) &&
	    carry->typed.size + size <= TYPED_MAX)
		(void)buf_add(&carry->typed, keys.data, size);
	send_typed(carry);
	if (size < keys.size)
		let_go(carry);
}

/* A packet of process/pty.h has come. */
static void take_packet(struct carry *carry, struct str packet)
{
	const struct str rest = str_part(packet, 1, packet.size);

	switch (packet.data[0]) {
	case PTY_TYPED:
		take_typed(carry, rest);
		break;
	case PTY_RESIZED:
		if (rest.size != sizeof(carry->size))
			break;
		memcpy(&carry->size, rest.data, sizeof(carry->size));
		if (carry->state == CARRY_RUNS && (!carry->attached || carry->types))
			send_size(carry, carry->size);
		break;
	case PTY_ENDED:
		if (carry->attached)
			let_go(carry);
		carry->input_ends = !carry->attached;
		send_typed(carry);
		break;
	default:
		break;
	}
}

static void input_ready(struct watch *watch, short events)
{
	struct carry *carry = watch->context;
	char bytes[PIECE];
	ssize_t n;

	(void)events;
	n = carry->tty ? recv(watch->fd, bytes, sizeof(bytes), MSG_DONTWAIT)
		       : read(watch->fd, bytes, sizeof(bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (carry->tty && n > 0) {
		take_packet(carry, (struct str){bytes, (size_t)n});
	} else {
		if (n > 0)
			(void)buf_add(&carry->typed, bytes, (size_t)n);
		else
			carry->input_ends = true;
		if (n <= 0)
			loop_remove(watch);
		send_typed(carry);
	}
}

/* Read input only while the program takes it; Ctrl+] has to be read in any case. */
static void input_settle(struct carry *carry)
{
	const bool reads = carry->input.fd >= 0 && !carry->input_ends &&
			   (carry->state == CARRY_RUNS ||
			    (carry->attached && carry->state == CARRY_STARTS)) &&
			   (carry->attached || carry->typed.size < PIECE) &&
			   (carry->tty || carry->writing == 0);

	if (reads)
		loop_add(carry->loop, &carry->input);
	else
		loop_remove(&carry->input);
}

/* The program's output. */

static void tell_more(struct carry *carry)
{
	struct value *params;

	if (carry->dealt_with == 0)
		return;
	params = params_of(carry);
	value_set_integer(params, "bytes", (int64_t)carry->dealt_with);
	carry->dealt_with = 0;
	(void)cells_peer_send(&carry->peer, "exec/more", params);
}

/* Nobody reads the output of SINK any more: the program finds that as well. */
static void sink_end(struct sink *sink)
{
	struct carry *carry = sink->carry;
	struct value *params;

	if (sink->fd < 0)
		return;
	loop_remove(&sink->watch);
	if (sink->fd != sink->given)
		fd_close(&sink->fd);
	sink->fd = -1;
	carry->dealt_with += sink->waiting.size - sink->from;
	buf_fini(&sink->waiting);
	sink->from = 0;
	if (carry->state != CARRY_RUNS)
		return;
	/* Output that was dropped counts as read, or the other output waits for ever. */
	tell_more(carry);
	if (carry->tty)
		return;
	params = params_of(carry);
	value_set_text(params, "stream", sink->stream);
	(void)cells_peer_send(&carry->peer, "exec/end_output", params);
}

static ssize_t sink_write_some(const struct sink *sink)
{
	const char *data = sink->waiting.data + sink->from;
	size_t size = sink->waiting.size - sink->from;

	if (sink->is_socket)
		return send(sink->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	/* The caller's own descriptor may block: a pipe that is ready takes so much. */
	if (sink->fd == sink->given && size > PIPE_BUF)
		size = PIPE_BUF;
	return write(sink->fd, data, size);
}

static void sink_ready(struct watch *watch, short events)
{
	struct sink *sink = watch->context;
	struct carry *carry = sink->carry;
	ssize_t n;

	if (!(events & POLLOUT) && sink->waiting.size == sink->from) {
		sink_end(sink);
		return;
	}
	n = sink_write_some(sink);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		sink_end(sink);
		return;
	}
	sink->from += (size_t)n;
	carry->dealt_with += (uint64_t)n;
	if (sink->from == sink->waiting.size) {
		buf_clear(&sink->waiting);
		sink->from = 0;
		sink->watch.events = 0;
	}
	if (carry->dealt_with >= MORE_BYTES || sink->waiting.size == 0)
		tell_more(carry);
}

static void sink_add(struct sink *sink, struct str bytes)
{
	if (sink->fd < 0) {
		sink->carry->dealt_with += bytes.size;
		tell_more(sink->carry);
		return;
	}
	buf_remove(&sink->waiting, 0, sink->from);
	sink->from = 0;
	(void)buf_addstr(&sink->waiting, bytes);
	sink->watch.events = sink->waiting.size > 0 ? POLLOUT : 0;
}

static void sink_open(struct carry *carry, size_t number, int fd, const char *stream)
{
	struct sink *sink = &carry->sinks[number];

	sink->carry = carry;
	sink->stream = stream;
	sink->given = fd;
	sink->fd = fd_open_output(fd, &sink->is_socket);
	buf_init(&sink->waiting, SINK_MAX);
	sink->watch = (struct watch){.fd = sink->fd,
				     .events = 0,
				     .ready = sink_ready,
				     .context = sink};
	loop_add(carry->loop, &sink->watch);
}

static bool sinks_wait(const struct carry *carry)
{
	for (size_t i = 0; i < 2; i++) {
		if (carry->sinks[i].fd >= 0 &&
		    carry->sinks[i].waiting.size > carry->sinks[i].from)
			return true;
	}
	return false;
}

/* The beginning of an attached terminal. */

static void redraw_due(struct timer *timer)
{
	struct carry *carry = timer->context;

	if (carry->state == CARRY_RUNS && carry->types)
		send_size(carry, carry->size);
}

/* Let the job draw anew for this terminal, whose size it gets. */
static void redraw(struct carry *carry)
{
	struct pty_size smaller = carry->size;

	if (!carry->types || carry->state != CARRY_RUNS)
		return;
	if (smaller.rows > 1)
		smaller.rows--;
	send_size(carry, smaller);
	carry->redraw.due_ms = clock_now_ms() + REDRAW_MS;
}

/*
 * All that was printed before has come. What the job has switched on is switched on here, and
 * the end of its output is shown, unless it draws on the whole screen: then it draws anew.
 */
static void show_replay(struct carry *carry)
{
	struct terminal_filter *filter = terminal_filter_new(false);
	struct str rest = buf_str(&carry->replay);
	struct buf passed, modes, shown;
	size_t tail;

	buf_init(&passed, CELLS_REPLAY + TERMINAL_FILTER_CLIPBOARD);
	buf_init(&modes, PIECE);
	buf_init(&shown, 2 * TAIL_SHOWN + PIECE);
	terminal_filter_pass(filter, rest, &passed);
	if (terminal_filter_resume(filter, &modes)) {
		tail = rest.size > TAIL_SHOWN ? rest.size - TAIL_SHOWN : 0;
		if (tail > 0)
			tail += str_find(str_part(rest, tail, rest.size), STR("\n"), 0) + 1;
		if (tail <= rest.size)
			cells_carry_plain(NULL, str_part(rest, tail, rest.size), &shown);
	}
	(void)buf_addstr(&shown, buf_str(&modes));
	sink_add(&carry->sinks[0], buf_str(&shown));
	buf_fini(&shown);
	buf_fini(&modes);
	buf_fini(&passed);
	terminal_filter_free(filter);
	buf_fini(&carry->replay);
	redraw(carry);
}

/* Take BYTES, which were printed before; returns the others. */
static struct str take_replay(struct carry *carry, struct str bytes)
{
	const size_t size =
		bytes.size < carry->replay_left ? bytes.size : (size_t)carry->replay_left;

	if (carry->replay_left == 0)
		return bytes;
	(void)buf_addstr(&carry->replay, str_part(bytes, 0, size));
	carry->dealt_with += size;
	carry->replay_left -= size;
	if (carry->replay_left == 0)
		show_replay(carry);
	return str_part(bytes, size, bytes.size);
}

/* Messages of the front behind the cell. */

static void take_output(struct carry *carry, const struct value *params)
{
	const char *stream = value_text(value_member(params, "stream"));
	const uint64_t dropped = (uint64_t)value_integer(value_member(params, "dropped"));
	const bool is_error = stream != NULL && strcmp(stream, "stderr") == 0;
	struct buf bytes;
	struct str rest;

	buf_init(&bytes, SINK_MAX);
	(void)buf_base64_read(value_str(value_member(params, "bytes")), &bytes);
	/* The bytes that were lost are none that come. */
	if (dropped > 0 && carry->replay_left > 0) {
		carry->replay_left -=
			dropped < carry->replay_left ? dropped : carry->replay_left;
		if (carry->replay_left == 0)
			show_replay(carry);
	}
	rest = take_replay(carry, buf_str(&bytes));
	if (rest.size > 0)
		sink_add(&carry->sinks[is_error && carry->sinks[1].carry != NULL], rest);
	else
		tell_more(carry);
	buf_fini(&bytes);
}

static void take_start(struct carry *carry, const struct mcp_message *message)
{
	const struct value *result = message->result;

	if (result == NULL) {
		carry->state = CARRY_REFUSED;
		(void)cells_peer_refused(message->error, &carry->refused);
		carry->refused_code = carry->refused.code;
		return;
	}
	carry->state = CARRY_RUNS;
	if (!carry->attached) {
		carry->process = (uint64_t)value_integer(value_member(result, "process"));
		send_typed(carry);
		return;
	}
	carry->types = value_is_true(value_member(result, "types"));
	if (!carry->types)
		buf_clear(&carry->typed);
	send_typed(carry);
	carry->replay_left = (uint64_t)(value_integer(value_member(result, "to")) -
					value_integer(value_member(result, "from")));
	if (carry->replay_left == 0)
		redraw(carry);
}

static void take(void *context, const struct mcp_message *message)
{
	struct carry *carry = context;
	const int64_t answered = caller_answered(message);
	const struct value *params = message->params;

	if (answered != 0 && answered == carry->asked) {
		take_start(carry, message);
		return;
	}
	if (answered != 0 && answered == carry->writing) {
		take_written(carry, message->error);
		return;
	}
	if (message->method == NULL ||
	    (uint64_t)value_integer(value_member(params, "process")) != carry->process)
		return;
	if (strcmp(message->method, "exec/output") == 0) {
		take_output(carry, params);
	} else if (strcmp(message->method, "exec/exited") == 0) {
		carry->outcome = value_copy(params);
		if (carry->state == CARRY_RUNS)
			carry->state = CARRY_ENDED;
	} else if (strcmp(message->method, "exec/types") == 0) {
		carry->types = value_is_true(value_member(params, "types"));
		redraw(carry);
	}
}

/* Signals to this process. */

static void stop_came(struct watch *watch, short events)
{
	struct carry *carry = watch->context;

	(void)events;
	loop_remove(watch);
	carry->cancelled = true;
	if (carry->attached)
		let_go(carry);
	else if (carry->state == CARRY_RUNS)
		(void)cells_peer_send(&carry->peer, "exec/cancel", params_of(carry));
	else if (carry->state == CARRY_STARTS)
		carry->state = CARRY_LET_GO;
}

/*
 * Look whether the front has begun the program in time. An attached terminal is let go then: its job
 * runs already. Nobody but the person knows how long a new program is to be waited for. Returns
 * the time of the next look.
 */
static int64_t look_at_start(struct carry *carry, int64_t due_ms)
{
	if (carry->state != CARRY_STARTS || clock_now_ms() < due_ms)
		return carry->state == CARRY_STARTS ? due_ms : CLOCK_NEVER;
	if (carry->attached)
		carry->state = CARRY_SILENT;
	else
		(void)verb_complain(CODE_DONE,
				    "cell %s does not answer; glovebox stop %s ends it in any "
				    "case",
				    carry->peer.name, carry->peer.name);
	return CLOCK_NEVER;
}

/* Turn the loop until the program has ended and its output is with the relay. */
static void carry_on(struct carry *carry)
{
	struct watch stop = {.fd = interrupt_fd(carry->interrupt),
			     .events = POLLIN,
			     .ready = stop_came,
			     .context = carry};
	int64_t until = CLOCK_NEVER, starts = clock_now_ms() + CELLS_ANSWER_MS;
	bool counts_output = false;
	uint64_t last = 0;

	loop_add(carry->loop, &stop);
	cells_peer_settle(&carry->peer);
	while (carry->state <= CARRY_RUNS ||
	       (carry->state == CARRY_ENDED && sinks_wait(carry))) {
		if (carry->cancelled && carry->state == CARRY_RUNS) {
			if (until == CLOCK_NEVER)
				until = clock_now_ms() + CANCEL_MS;
			if (clock_now_ms() >= until) {
				carry->state = CARRY_LOST;
				break;
			}
		}
		if (carry->cancelled && carry->state == CARRY_ENDED) {
			if (!counts_output) {
				counts_output = true;
				until = CLOCK_NEVER;
			}
			const uint64_t left = carry->sinks[0].from + carry->sinks[1].from;

			if (until == CLOCK_NEVER || left != last)
				until = clock_now_ms() + STUCK_MS;
			last = left;
			if (clock_now_ms() >= until)
				break;
		}
		starts = look_at_start(carry, starts);
		if (carry->state == CARRY_SILENT)
			break;
		input_settle(carry);
		loop_turn(carry->loop, starts < until ? starts : until);
		cells_peer_settle(&carry->peer);
		if (carry->state <= CARRY_RUNS && cells_peer_is_lost(&carry->peer))
			carry->state = CARRY_LOST;
	}
	loop_remove(&stop);
	input_close(carry);
}

/* The relay and the terminal. */

static bool carry_open(struct carry *carry, bool clipboard, struct err *err)
{
	const int *fds;
	size_t count;

	buf_init(&carry->typed, TYPED_MAX + PIECE);
	buf_init(&carry->replay, CELLS_REPLAY + PIECE);
	carry->size = terminal_size();
	carry->redraw =
		(struct timer){.due_ms = CLOCK_NEVER, .due = redraw_due, .context = carry};
	loop_add_timer(carry->loop, &carry->redraw);
	carry->again =
		(struct timer){.due_ms = CLOCK_NEVER, .due = again_due, .context = carry};
	loop_add_timer(carry->loop, &carry->again);
	if (!relay_open(carry->loop, carry->tty ? RELAY_TERMINAL : RELAY_PLAIN, clipboard,
			&carry->relay, err) ||
	    (carry->tty && !terminal_open(carry->loop, relay_packets(carry->relay),
					  &carry->terminal, err)))
		return false;
	fds = relay_fds(carry->relay, &count);
	carry->input = (struct watch){.fd = fds[STDIN_FILENO],
				      .events = POLLIN,
				      .ready = input_ready,
				      .context = carry};
	sink_open(carry, 0, fds[STDOUT_FILENO], "stdout");
	if (count > STDERR_FILENO)
		sink_open(carry, 1, fds[STDERR_FILENO], "stderr");
	return true;
}

/* Deliver what the relay holds, and put the terminal back. */
static void carry_close(struct carry *carry)
{
	cells_peer_settle(&carry->peer);
	carry->state = carry->state == CARRY_RUNS ? CARRY_LOST : carry->state;
	for (size_t i = 0; i < 2; i++) {
		if (carry->sinks[i].carry != NULL)
			sink_end(&carry->sinks[i]);
	}
	loop_remove_timer(&carry->redraw);
	loop_remove_timer(&carry->again);
	if (carry->relay != NULL) {
		relay_drain(carry->relay, interrupt_fd(carry->interrupt),
			    carry->cancelled || carry->state == CARRY_LET_GO);
		relay_leave(carry->relay);
	}
	terminal_close(carry->terminal);
	carry->terminal = NULL;
}

static void carry_fini(struct carry *carry)
{
	relay_close(carry->relay);
	cells_peer_close(&carry->peer);
	buf_fini(&carry->typed);
	buf_fini(&carry->replay);
	value_free(carry->outcome);
	interrupt_close(carry->interrupt);
	loop_free(carry->loop);
}

/* Connect to the cell NAME, and let signals make a descriptor readable. */
static bool carry_begin(struct carry *carry, const char *name, struct err *err)
{
	if (carry->tty)
		terminal_prepare();
	carry->loop = loop_new();
	if (!cells_peer_open(&carry->peer, name, clock_now_ms() + CELLS_REMOVER_MS,
			     carry->loop, err) ||
	    !interrupt_open(&carry->interrupt, err) ||
	    !interrupt_start(carry->interrupt, err))
		return false;
	carry->peer.take = take;
	carry->peer.context = carry;
	carry->peer.interrupt_fd = interrupt_fd(carry->interrupt);
	return true;
}

/* exec --in. */

static void set_size(struct value *params)
{
	const struct pty_size size = terminal_size();
	struct value *tty = value_new_object();

	value_set_integer(tty, "rows", size.rows > 0 ? size.rows : 1);
	value_set_integer(tty, "columns", size.columns > 0 ? size.columns : 1);
	value_set(params, "tty", tty);
}

/* JSON holds no other bytes. */
static bool are_utf8(const struct options *options)
{
	for (size_t i = 0; i < options->word_count; i++) {
		if (!text_is_utf8(str_of(options->words[i])))
			return false;
	}
	for (const char *const *at = options_texts(options, "env"); *at != NULL; at++) {
		if (!text_is_utf8(str_of(*at)))
			return false;
	}
	return true;
}

/* Add the variables of --env to ENV; a name alone has the value that it has here. */
static void add_variables(const struct options *options, struct value *env)
{
	for (const char *const *at = options_texts(options, "env"); *at != NULL; at++) {
		const size_t size = strcspn(*at, "=");
		auto_free char *name = memory_copy_str((struct str){*at, size});
		const char *text = (*at)[size] == '=' ? *at + size + 1 : getenv(name);

		if (text != NULL)
			value_set_text(env, name, text);
		else
			(void)verb_complain(CODE_DONE,
					    "--env %s: it is not set here, so the program does "
					    "not have it; --env %s=VALUE sets it",
					    name, name);
	}
}

struct value *cells_carry_wish(const struct options *options, bool own_variables)
{
	const char *term = getenv("TERM");
	struct value *params, *env;

	if (!are_utf8(options)) {
		(void)verb_complain(CODE_USAGE,
				    "a word of the command or a variable has bytes "
				    "that are not UTF-8, which cannot be sent to a cell "
				    "that runs already");
		return NULL;
	}
	params = value_new_object();
	env = value_new_object();
	value_set(params, "argv", value_new_texts(options->words));
	if (own_variables)
		add_variables(options, env);
	if (options_given(options, "tty")) {
		set_size(params);
		if (term != NULL && value_member(env, "TERM") == NULL)
			value_set_text(env, "TERM", term);
	}
	value_set(params, "env", env);
	if (options_given(options, "timeout") && options_seconds(options, "timeout", 0) > 0)
		value_set(params, "timeout_s",
			  value_new_real(options_seconds(options, "timeout", 0)));
	return params;
}

/* Print what a wall has refused, and why the program did not end by itself. */
static void print_denials(const struct value *outcome)
{
	const struct value *list = value_member(outcome, "denials");
	const struct str text = value_str(value_member(outcome, "message"));
	struct buf line;

	buf_init(&line, RESULT_TEXT_MAX);
	for (size_t i = 0; i < value_count(list); i++) {
		buf_clear(&line);
		denial_print(value_item(list, i), &line);
		(void)fprintf(stderr, "glovebox: %s\n", line.data);
	}
	if (text.size > 0)
		(void)verb_complain(CODE_DONE, "%.*s", (int)text.size, text.data);
	buf_fini(&line);
}

/* The exit code of a program with this OUTCOME; NUMBER: the signal that came here, or 0. */
static int code_of(const struct value *outcome, const struct options *options, int number)
{
	const struct value *exit_code = value_member(outcome, "exit");
	const struct value *killed = value_member(outcome, "signal");

	if (number != 0)
		return CODE_SIGNAL + number;
	if (value_is_true(value_member(outcome, "timed_out"))) {
		if (options != NULL && options_given(options, "timeout"))
			(void)verb_complain(CODE_DONE, "ended after %g s (--timeout)",
					    options_seconds(options, "timeout", 0));
		else
			(void)verb_complain(CODE_DONE, "ended after its time");
		return CODE_TIMED_OUT;
	}
	if (value_kind(killed) == VALUE_INTEGER)
		return CODE_SIGNAL + (int)value_integer(killed);
	if (value_kind(exit_code) == VALUE_INTEGER)
		return (int)value_integer(exit_code);
	return CODE_EXEC_NO_CELL;
}

/* The exit code for a refusal of exec/start, whose sentence is printed. */
static int complain_refused(const struct carry *carry)
{
	enum { WIRE_DENIED = -32003 };

	return verb_complain(carry->refused_code == WIRE_DENIED ? CODE_EXEC_NOT_EXECUTABLE
								: CODE_EXEC_NO_CELL,
			     "%s", carry->refused.text);
}

/* The options of `exec` that are about a program, and not about its cell. */
static const char of_programs[] =
	"in detach timeout env tty clipboard workspace config help";

/* Why `exec --in` refuses the option NAME, and the remedy. */
static const char *why_not(const char *name)
{
	if (strcmp(name, "json") == 0)
		return "has no report here; glovebox ps --json says what the cell has used";
	if (strcmp(name, "entrypoint") == 0)
		return "is for a cell that exec makes; glovebox base show NAME prints the "
		       "entrypoint of an image: write it before CMD";
	if (strcmp(name, REVIEW_OPTION) == 0 || strcmp(name, "no-" REVIEW_OPTION) == 0)
		return "is for a cell that exec makes, and a cell of glovebox start has no "
		       "layer; leave out --in";
	return "is about the cell, which is there already; give it to glovebox start";
}

static bool check_options(const struct options *options)
{
	for (size_t i = 0; options->rows[i].name != NULL; i++) {
		const char *name = options->rows[i].name;

		if (options->values[i].given && !str_among(of_programs, str_of(name))) {
			(void)verb_complain(CODE_USAGE, "exec --in: --%s %s", name,
					    why_not(name));
			return false;
		}
	}
	if (options_given(options, "detach") && options_given(options, "clipboard")) {
		(void)verb_complain(CODE_USAGE, "exec --in: --clipboard goes with a terminal "
						"here, which --detach does not use");
		return false;
	}
	return true;
}

/* Begin a job, which stays, and print its number. */
static int detach(struct carry *carry, struct value *take_wish)
{
	auto_value struct value *told = NULL;

	value_set_boolean(take_wish, "stays", true);
	if (!cells_peer_ask(&carry->peer, "exec/start", take_wish, CELLS_ANSWER_MS, &told,
			    &carry->refused)) {
		carry->refused_code = carry->refused.code;
		return complain_refused(carry);
	}
	(void)printf("%lld\n", (long long)value_integer(value_member(told, "process")));
	return CODE_DONE;
}

/* Run the program of WISH in the cell, with the streams of this process. */
static int run(struct carry *carry, struct value *take_wish, const struct options *options)
{
	struct err err = {0};
	int code;

	if (!carry_open(carry, options_given(options, "clipboard"), &err)) {
		value_free(take_wish);
		carry_close(carry);
		return verb_complain(CODE_EXEC_NO_CELL, "%s", err.text);
	}
	value_set_boolean(take_wish, "input", true);
	carry->asked = cells_peer_send(&carry->peer, "exec/start", take_wish);
	carry_on(carry);
	carry_close(carry);
	switch (carry->state) {
	case CARRY_REFUSED:
		return complain_refused(carry);
	case CARRY_ENDED:
		break;
	default:
		return carry->cancelled ? CODE_SIGNAL + interrupt_signal(carry->interrupt)
		       : carry->peer.turned_away
			       ? verb_complain(CODE_EXEC_NO_CELL, "cell %s: %s",
					       carry->peer.name, carry->peer.turned.text)
			       : verb_complain(CODE_EXEC_NO_CELL,
					       "cell %s has ended, and the program with it",
					       carry->peer.name);
	}
	print_denials(carry->outcome);
	code = code_of(carry->outcome, options,
		       carry->cancelled ? interrupt_signal(carry->interrupt) : 0);
	return code == CODE_DONE && relay_lost(carry->relay) ? CODE_FAILED : code;
}

int cells_carry_exec(const struct options *options, const char *name)
{
	struct carry carry = {.tty = options_given(options, "tty") &&
				     !options_given(options, "detach")};
	const char *folder = options_text(options, "workspace");
	struct err err = {0};
	struct value *wish;
	int code;

	if (!check_options(options))
		return CODE_USAGE;
	if (options->word_count == 0)
		return verb_complain(CODE_USAGE, "exec: no command; usage: glovebox exec --in "
						 "NAME [--] CMD [ARGS…]");
	if (!carry_begin(&carry, name, &err)) {
		code = verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_EXEC_NO_CELL,
				     "%s", err.text);
	} else {
		wish = cells_carry_wish(options, true);
		if (folder != NULL && wish != NULL)
			value_set_text(wish, "cwd", folder);
		code = wish == NULL                       ? CODE_USAGE
		       : options_given(options, "detach") ? detach(&carry, wish)
							  : run(&carry, wish, options);
	}
	carry_fini(&carry);
	return code;
}

/* attach. */

/* The job that ATTACH means, of those in LIST. NULL: there is none. */
static const struct value *choose(const struct cells_attach *attach, const struct value *list)
{
	const struct value *found = NULL;

	for (size_t i = 0; i < value_count(list); i++) {
		const struct value *at = value_item(list, i);
		const uint64_t number =
			(uint64_t)value_integer(value_member(at, "process"));
		const bool fits =
			attach->job > 0
				? number == attach->job
				: value_is_true(value_member(at, "stays")) &&
					  value_is_true(value_member(at, "tty")) &&
					  value_is_true(value_member(at, "running"));

		if (fits)
			found = at;
	}
	return found;
}

/* Begin a shell with a terminal, as a job. */
static bool begin_shell(struct carry *carry, struct err *err)
{
	static const char *const argv[] = {"bash", NULL};
	struct value *wish = value_new_object(), *env = value_new_object();
	auto_value struct value *told = NULL;
	const char *term = getenv("TERM");

	value_set(wish, "argv", value_new_texts(argv));
	value_set_boolean(wish, "stays", true);
	if (term != NULL)
		value_set_text(env, "TERM", term);
	value_set(wish, "env", env);
	set_size(wish);
	if (!cells_peer_ask(&carry->peer, "exec/start", wish, CELLS_ANSWER_MS, &told, err))
		return false;
	carry->process = (uint64_t)value_integer(value_member(told, "process"));
	return true;
}

/* The beginning of COMMAND, which ends with a whole character. */
static struct str title_of(struct str command)
{
	size_t size = TITLE_SHOWN;

	while (size > 0 && size < command.size && (command.data[size] & 0xc0) == 0x80)
		size--;
	return str_part(command, 0, size);
}

/* Find the job of ATTACH, or begin one. TITLE gets what it is. */
static bool find_job(struct carry *carry, const struct cells_attach *attach,
		     struct buf *title, struct err *err)
{
	auto_value struct value *told = NULL;
	const struct value *job;

	if (!cells_peer_ask(&carry->peer, "exec/list", value_new_object(),
			    CELLS_ANSWER_MS, &told, err))
		return false;
	job = choose(attach, value_member(told, "processes"));
	if (job == NULL && attach->job > 0)
		return err_set(err, ENOENT,
			       "there is no job %" PRIu64
			       " in cell %s; glovebox ps --json names "
			       "those that there are",
			       attach->job, attach->name);
	if (job == NULL && attach->looks)
		return err_set(err, ENOENT,
			       "no job of cell %s has a terminal to look at; without --look a "
			       "shell is started",
			       attach->name);
	if (job == NULL) {
		(void)buf_adds(title, "bash");
		return begin_shell(carry, err);
	}
	carry->process = (uint64_t)value_integer(value_member(job, "process"));
	(void)text_clean(title_of(value_str(value_member(job, "command"))), title);
	if (!value_is_true(value_member(job, "stays")))
		return err_set(err, EINVAL,
			       "%" PRIu64 " (%s) belongs to the one who runs it by exec --in, "
			       "and cannot be attached to",
			       carry->process, title->data);
	if (!value_is_true(value_member(job, "tty")))
		return err_set(err, EINVAL,
			       "job %" PRIu64
			       " (%s) has no terminal; glovebox logs -f %s %" PRIu64
			       " follows its output",
			       carry->process, title->data, attach->name, carry->process);
	return true;
}

/* Tell how it has ended, below the screen that is put back. */
static int tell_attached(const struct carry *carry, const struct cells_attach *attach,
			 const char *title)
{
	const int number = interrupt_signal(carry->interrupt);
	int code;

	switch (carry->state) {
	case CARRY_REFUSED:
		return verb_complain(CODE_FAILED, "%s", carry->refused.text);
	case CARRY_LET_GO:
		return verb_complain(number != 0 ? CODE_SIGNAL + number : CODE_DONE,
				     "let go of job %" PRIu64 " of %s (%s), which goes on: "
				     "glovebox attach %s %" PRIu64,
				     carry->process, attach->name, title, attach->name,
				     carry->process);
	case CARRY_SILENT:
		return verb_complain(CODE_FAILED,
				     "cell %s does not answer; glovebox stop %s ends it in any "
				     "case",
				     attach->name, attach->name);
	case CARRY_ENDED:
		print_denials(carry->outcome);
		code = code_of(carry->outcome, NULL, 0);
		return verb_complain(code, "job %" PRIu64 " of %s (%s) has ended: %d",
				     carry->process, attach->name, title, code);
	default:
		return verb_complain(CODE_FAILED,
				     "cell %s has ended, and job %" PRIu64 " (%s) with it",
				     attach->name, carry->process, title);
	}
}

static int look(struct carry *carry, const struct cells_attach *attach, const char *title)
{
	struct value *params = params_of(carry);
	struct err err = {0};

	(void)verb_complain(CODE_DONE, "job %" PRIu64 " of %s (%s); Ctrl+] lets go%s",
			    carry->process, attach->name, title,
			    attach->looks ? ", other keys do nothing" : "");
	if (!carry_open(carry, false, &err)) {
		value_free(params);
		carry_close(carry);
		return verb_complain(CODE_FAILED, "%s", err.text);
	}
	value_set_integer(params, "last", CELLS_REPLAY);
	if (!attach->looks)
		value_set_text(params, "types", attach->takes ? "take" : "free");
	carry->asked = cells_peer_send(&carry->peer, "exec/watch", params);
	carry_on(carry);
	carry_close(carry);
	return tell_attached(carry, attach, title);
}

int cells_carry_attach(const struct cells_attach *attach)
{
	struct carry carry = {.tty = true, .attached = true};
	struct err err = {0};
	struct buf title;
	int code;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return verb_complain(CODE_USAGE,
				     "attach: it needs a terminal here; glovebox logs -f %s "
				     "follows what a job prints",
				     attach->name);
	buf_init(&title, 4 * TITLE_SHOWN);
	if (!carry_begin(&carry, attach->name, &err) ||
	    !find_job(&carry, attach, &title, &err))
		code = verb_complain(err.code == EINVAL ? CODE_USAGE : CODE_FAILED, "%s",
				     err.text);
	else
		code = look(&carry, attach, title.data);
	buf_fini(&title);
	carry_fini(&carry);
	return code;
}
