/* undo_log_read: chunks of a log, read and checked; see undo_log.h. */
#include "files/undo_log.h"
#include "files/undo_log_parts.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* The part of a log that was read last. */
struct window {
	int fd;
	uint64_t from;
	struct buf bytes;
};

/* The SIZE bytes at AT, or NULL when the log ends before. */
static const char *window_at(struct window *window, uint64_t at, size_t size)
{
	if (at < window->from || at + size > window->from + window->bytes.size) {
		buf_clear(&window->bytes);
		window->from = at;
		while (window->bytes.size < size) {
			char *room = buf_reserve(&window->bytes, UNDO_READ_AT_ONCE);
			ssize_t n = room != NULL
					    ? pread(window->fd, room, UNDO_READ_AT_ONCE,
						    (off_t)(at + window->bytes.size))
					    : -1;
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return NULL;
			buf_commit(&window->bytes, (size_t)n);
		}
	}
	return window->bytes.data + (at - window->from);
}

static bool unsound(struct err *err, const char *what)
{
	return err_set(err, EINVAL, "an undo log that does not hold together (%s)", what);
}

static bool take_change(struct undo_reader *reader, const char *bytes, size_t length,
			bool *more, struct err *err)
{
	char path[PATH_MAX];
	struct undo_change change;
	size_t size = length - UNDO_CHANGE_HEADER;

	if (++reader->changes > UNDO_CHANGES_MAX)
		return unsound(err, "too many changes");
	if (!undo_state_parse(bytes, &change.before) ||
	    !undo_state_parse(bytes + UNDO_STATE_BYTES, &change.after))
		return unsound(err, "a state");
	if (!undo_path_is_sound((struct str){bytes + UNDO_CHANGE_HEADER, size}))
		return unsound(err, "a path");
	memcpy(path, bytes + UNDO_CHANGE_HEADER, size);
	path[size] = '\0';
	change.path = (struct str){path, size};
	*more = reader->change == NULL || reader->change(reader->context, &change);
	return true;
}

static bool take_chunk(struct undo_reader *reader, struct window *window, uint32_t tag,
		       uint64_t at, uint64_t length, bool *more, struct err *err)
{
	const char *bytes;

	if (tag == UNDO_META && length <= UNDO_META_MAX) {
		bytes = window_at(window, at, (size_t)length);
		if (bytes == NULL)
			return !(*more = false);
		*more = reader->meta == NULL ||
			reader->meta(reader->context, (struct str){bytes, (size_t)length});
		return true;
	}
	if (tag == UNDO_CHANGE && length > UNDO_CHANGE_HEADER &&
	    length < UNDO_CHANGE_HEADER + PATH_MAX) {
		bytes = window_at(window, at, (size_t)length);
		if (bytes == NULL)
			return !(*more = false);
		return take_change(reader, bytes, (size_t)length, more, err);
	}
	if (tag == UNDO_END && length == 0) {
		reader->ended = true;
		return true;
	}
	if ((tag == UNDO_DATA && length <= (uint64_t)UNDO_CONTENT_MAX + UNDO_EXTRA_MAX) ||
	    (tag == UNDO_PAD && length < UNDO_ALIGNED))
		return true;
	return unsound(err, "a chunk");
}

bool undo_log_read(struct undo_reader *reader, int fd, struct err *err)
{
	struct window window = {.fd = fd};
	uint64_t at = 0;
	struct stat st;
	bool fine = true, more = true;

	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	const uint64_t size = (uint64_t)st.st_size;
	reader->ended = false;
	reader->changes = 0;
	reader->sound = 0;
	buf_init(&window.bytes, 2 * UNDO_READ_AT_ONCE);
	while (fine && more && at + UNDO_CHUNK_HEADER <= size) {
		const char *header = window_at(&window, at, UNDO_CHUNK_HEADER);
		if (header == NULL)
			break;
		uint32_t tag = (uint32_t)undo_get(header, 4);
		uint64_t length = undo_get(header + 8, 8);
		/* The chunk is cut short: its writer was killed. */
		if (length > size - at - UNDO_CHUNK_HEADER)
			break;
		fine = take_chunk(reader, &window, tag, at + UNDO_CHUNK_HEADER, length,
				  &more, err);
		at += UNDO_CHUNK_HEADER + length;
		if (fine && more)
			reader->sound = at;
	}
	buf_fini(&window.bytes);
	return fine;
}

bool undo_log_content(int fd, uint64_t offset, uint64_t size, struct buf *out,
		      struct err *err)
{
	while (size > 0) {
		size_t wanted = size < UNDO_READ_AT_ONCE ? (size_t)size : UNDO_READ_AT_ONCE;
		char *room = buf_reserve(out, wanted);
		if (room == NULL)
			return err_set(err, EFBIG, "a content that is too large");
		ssize_t n = pread(fd, room, wanted, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, EINVAL, "a content that is not there");
		buf_commit(out, (size_t)n);
		offset += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return true;
}
