/*
 * frame: sends and receives whole messages over a stream socket, and splits payloads
 * into parts.
 */
#include "process/frame.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	FRAME_KEPT = 1 << 20, /* the memory of larger frames is freed after use */
	/*
	 * Bytes of one read: enough for a usual call or result, and the memory of an
	 * idle reader.
	 */
	FRAME_READ = 16 << 10,
	FRAME_READ_MORE = 256 << 10, /* once a longer frame has begun */
};

static void header_write(unsigned char *header, enum frame_kind kind, size_t size)
{
	memset(header, 0, FRAME_HEADER);
	header[0] = (unsigned char)kind;
	for (int i = 0; i < 4; i++)
		header[4 + i] = (unsigned char)(size >> (8 * i));
}

static size_t header_size(const unsigned char *header)
{
	size_t size = 0;

	for (int i = 0; i < 4; i++)
		size |= (size_t)header[4 + i] << (8 * i);
	return size;
}

static bool wait_writable(int socket, int64_t deadline_ms, struct err *err)
{
	struct pollfd wanted = {.fd = socket, .events = POLLOUT};
	int answer = poll(&wanted, 1, clock_poll_timeout(deadline_ms));

	if (answer > 0 || (answer < 0 && errno == EINTR))
		return true;
	return err_set(err, answer == 0 ? ETIMEDOUT : errno, "sending a frame: %s",
		       strerror(answer == 0 ? ETIMEDOUT : errno));
}

union rights {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * FRAME_FDS_MAX)];
};

/* Put FDS into RIGHTS, as part of MESSAGE. */
static void add_fds(struct msghdr *message, union rights *rights, const int *fds,
		    size_t count)
{
	const size_t size = sizeof(int) * count;

	message->msg_control = rights->bytes;
	message->msg_controllen = CMSG_SPACE(size);
	struct cmsghdr *head = CMSG_FIRSTHDR(message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(head), fds, size);
}

bool frame_send(int socket, enum frame_kind kind, struct str payload, const int *fds,
		size_t fd_count, int64_t deadline_ms, struct err *err)
{
	unsigned char header[FRAME_HEADER];
	union rights rights = {0};
	size_t sent = 0, total = FRAME_HEADER + payload.size;

	if (payload.size > FRAME_MAX || fd_count > FRAME_FDS_MAX)
		return err_set(err, EMSGSIZE,
			       "a frame of %zu bytes is over the ceiling of %d",
			       payload.size, FRAME_MAX);
	header_write(header, kind, payload.size);
	while (sent < total) {
		struct iovec parts[2];
		struct msghdr message = {.msg_iov = parts};
		size_t done = sent < FRAME_HEADER ? 0 : sent - FRAME_HEADER;

		if (sent < FRAME_HEADER)
			parts[message.msg_iovlen++] =
				(struct iovec){header + sent, FRAME_HEADER - sent};
		if (done < payload.size)
			parts[message.msg_iovlen++] =
				(struct iovec){(char *)(uintptr_t)payload.data + done,
					       payload.size - done};
		if (sent == 0 && fd_count > 0)
			add_fds(&message, &rights, fds, fd_count);
		ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0)
			sent += (size_t)n;
		else if (errno == EAGAIN && !wait_writable(socket, deadline_ms, err))
			return false;
		else if (errno != EAGAIN && errno != EINTR)
			return err_set(err, errno, "sending a frame: %s", strerror(errno));
	}
	return true;
}

void frame_reader_init(struct frame_reader *reader)
{
	*reader = (struct frame_reader){0};
	buf_init(&reader->bytes, FRAME_HEADER + (size_t)FRAME_MAX + FRAME_READ);
}

static void fds_close(struct frame_reader *reader)
{
	for (size_t i = 0; i < reader->fd_count; i++)
		fd_close(&reader->fds[i]);
	reader->fd_count = 0;
}

void frame_reader_fini(struct frame_reader *reader)
{
	fds_close(reader);
	buf_fini(&reader->bytes);
}

/*
 * Take the descriptors of MESSAGE. Close those beyond the limit of a frame, so that
 * none leaks.
 */
static void fds_take(struct frame_reader *reader, struct msghdr *message)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
	     part = CMSG_NXTHDR(message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
			if (reader->fd_count < FRAME_FDS_MAX)
				reader->fds[reader->fd_count++] = fd;
			else
				(void)close(fd);
		}
	}
}

/*
 * Check the header of the next frame. The bytes of the frame given last may still stand
 * before it.
 */
static bool header_check(const struct frame_reader *reader, struct err *err)
{
	const unsigned char *header =
		(const unsigned char *)reader->bytes.data + reader->taken;

	if (reader->bytes.size - reader->taken < FRAME_HEADER)
		return true;
	if (header[0] < FRAME_READY || header[0] > FRAME_CANCEL || header[1] != 0 ||
	    header[2] != 0 || header[3] != 0 || header_size(header) > FRAME_MAX)
		return err_set(err, EPROTO, "a frame with a broken header came");
	return true;
}

/* The buffer has room for one whole frame and one small read beyond it. */
static size_t read_size(const struct frame_reader *reader)
{
	const unsigned char *header =
		(const unsigned char *)reader->bytes.data + reader->taken;
	size_t have = reader->bytes.size - reader->taken;
	size_t missing =
		have < FRAME_HEADER ? 0 : FRAME_HEADER + header_size(header) - have;

	if (have < FRAME_HEADER || header_size(header) + FRAME_HEADER <= have ||
	    missing <= FRAME_READ)
		return FRAME_READ;
	return missing < FRAME_READ_MORE ? missing : FRAME_READ_MORE;
}

bool frame_fill(struct frame_reader *reader, int socket, struct err *err)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 8)];
	} control;

	while (!reader->ended) {
		size_t size = read_size(reader);
		char *room = buf_reserve(&reader->bytes, size);
		if (room == NULL)
			/* a whole frame is buffered: frame_next makes room */
			return true;
		struct iovec part = {room, size};
		struct msghdr message = {.msg_iov = &part,
					 .msg_iovlen = 1,
					 .msg_control = control.bytes,
					 .msg_controllen = sizeof(control.bytes)};
		ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return header_check(reader, err);
		if (n < 0 && errno != ECONNRESET)
			return err_set(err, errno, "reading a frame: %s", strerror(errno));
		fds_take(reader, &message);
		if (n <= 0)
			reader->ended = true;
		else
			buf_commit(&reader->bytes, (size_t)n);
		if (!header_check(reader, err))
			return false;
		if (n > 0 && (size_t)n < size)
			return true; /* nothing more is available now */
	}
	return true;
}

bool frame_next(struct frame_reader *reader, struct frame *frame)
{
	const unsigned char *header = (const unsigned char *)reader->bytes.data;

	if (reader->taken > 0) {
		buf_remove(&reader->bytes, 0, reader->taken);
		reader->taken = 0;
	}
	if (reader->bytes.size < FRAME_HEADER)
		return false;
	/* After a bad header no later frame can be found. */
	if (!header_check(reader, NULL)) {
		reader->ended = true;
		return false;
	}
	size_t size = header_size(header);
	if (reader->bytes.size < FRAME_HEADER + size)
		return false;
	*frame = (struct frame){
		.kind = (enum frame_kind)header[0],
		.payload = {reader->bytes.data + FRAME_HEADER, size},
		.fds = {[0 ... FRAME_FDS_MAX - 1] = -1},
	};
	reader->taken = FRAME_HEADER + size;
	if (frame->kind == FRAME_CALL) {
		for (size_t i = 0; i < reader->fd_count; i++)
			frame->fds[i] = reader->fds[i];
		frame->fd_count = reader->fd_count;
		reader->fd_count = 0;
	} else {
		fds_close(reader); /* stray ones */
	}
	return true;
}

void frame_done(struct frame_reader *reader)
{
	if (reader->taken == 0 || reader->taken < reader->bytes.size ||
	    reader->bytes.capacity <= FRAME_KEPT)
		return;
	buf_fini(&reader->bytes);
	reader->taken = 0;
}

bool frame_wait(struct frame_reader *reader, int socket, int64_t deadline_ms,
		struct frame *frame, struct err *err)
{
	struct pollfd wanted = {.fd = socket, .events = POLLIN};

	for (;;) {
		if (frame_next(reader, frame))
			return true;
		if (!header_check(reader, err))
			return false;
		if (reader->ended)
			return err_set(err, ECONNRESET, "the other end is gone");
		int answer = poll(&wanted, 1, clock_poll_timeout(deadline_ms));
		if (answer == 0)
			return err_set(err, ETIMEDOUT, "no answer in time");
		if (answer < 0 && errno != EINTR)
			return err_set(err, errno, "waiting for a frame: %s",
				       strerror(errno));
		if (answer > 0 && !frame_fill(reader, socket, err))
			return false;
	}
}

uint32_t frame_add_text(const char *text, struct buf *out)
{
	const size_t size = strlen(text) + 1;

	return buf_add(out, text, size) ? (uint32_t)size : 0;
}

uint32_t frame_add_value(const struct value *value, struct buf *out)
{
	size_t before = out->size;

	if (value != NULL)
		(void)value_print(value, 0, out);
	return (uint32_t)(out->size - before);
}

uint32_t frame_add_unless_empty(const struct value *value, struct buf *out)
{
	return value_count(value) > 0 ? frame_add_value(value, out) : 0;
}

bool frame_split_parts(struct str payload, size_t head, const uint32_t *sizes,
		       size_t count, struct str *parts)
{
	struct str rest = str_part(payload, head, payload.size - head);

	for (size_t i = 0; i < count; i++) {
		if (sizes[i] > rest.size)
			return false;
		parts[i] = str_part(rest, 0, sizes[i]);
		rest = str_part(rest, sizes[i], rest.size - sizes[i]);
	}
	return rest.size == 0;
}

const char *frame_text_of(struct str part)
{
	const char *end = part.size > 0 ? memchr(part.data, '\0', part.size) : NULL;

	return end != NULL && end == part.data + part.size - 1 ? part.data : NULL;
}

bool frame_take_value(struct str part, enum value_kind kind, struct value **value,
		      struct err *err)
{
	if (part.size == 0)
		return true;
	if (!value_parse(part, 0, value, err))
		return false;
	return value_kind(*value) == kind ||
	       err_set(err, EPROTO, "%s instead of %s",
		       value_kind_name(value_kind(*value)), value_kind_name(kind));
}
