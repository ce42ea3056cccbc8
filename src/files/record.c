/*
 * record: writes the chunks of a log, reads and checks them, and keeps states as bytes.
 */

#include "files/record.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"

#include <errno.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum undo_tag {
	UNDO_META = 0x4d554247, /* "GBUM" */
	UNDO_DATA = 0x44554247,
	UNDO_CHANGE = 0x43554247,
	UNDO_NOTE = 0x4e554247,
	UNDO_END = 0x45554247,
};

enum {
	UNDO_CHANGE_HEADER = 2 * UNDO_STATE_BYTES,
	UNDO_NOTE_HEADER = 8 + 2 * UNDO_TEMP_NAME, /* kind, permissions, two names */
	UNDO_READ_AT_ONCE = 256 << 10,
	UNDO_ALIGNED = 4096, /* contents are shared in whole blocks */
};

/* The tag of the padding before a content that begins at a whole block. */
#define UNDO_PAD 0x50554247

/* Write NUMBER as COUNT bytes, the lowest first. */
static inline void undo_put(char *bytes, uint64_t number, size_t count)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = (char)(number >> (8 * i));
}

static inline uint64_t undo_get(const char *bytes, size_t count)
{
	uint64_t number = 0;

	for (size_t i = 0; i < count; i++)
		number |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
	return number;
}

/* Smaller files gain nothing by sharing. */
enum { SHARE_FROM = 64 << 10 };

enum {
	MARK_NONE = 0,
	MARK_BEGUN = S_ISVTX, /* all files of the set have their names */
	MARK_PUTS = S_ISVTX | S_IXUSR,
	MARK_STANDS = S_ISVTX | S_IXUSR | S_IXGRP,
};

/*
 * Give LOG the mark, on the disk when the log is next synced. On a file system that does not
 * store such permissions, a damaged log is not noticed.
 */
static bool set_mark(struct undo_log *log, mode_t mark)
{
	struct stat st;

	if (!log->marked && mark != MARK_BEGUN)
		return true;
	/* A device is no log of ours, whatever our caller took it for. */
	if (fstat(log->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return true;
	if (fchmod(log->fd, S_IRUSR | S_IWUSR | mark) < 0)
		return false;
	log->marked = mark != MARK_NONE &&
		      (log->marked || (fstat(log->fd, &st) == 0 &&
				       (st.st_mode & MARK_STANDS) == MARK_BEGUN));
	return true;
}

/* FNV-1a, by words of eight bytes and then by bytes. */
static uint64_t add_sum(uint64_t sum, struct str part)
{
	const uint64_t prime = 0x100000001b3;
	size_t at = 0;

	for (; part.size - at >= 8; at += 8)
		sum = (sum ^ undo_get(part.data + at, 8)) * prime;
	for (; at < part.size; at++)
		sum = (sum ^ (unsigned char)part.data[at]) * prime;
	return sum;
}

/*
 * The header of a chunk of LENGTH bytes. The sum covers tag, length and PART: the bytes of a
 * note or change, none of a content, which has its digest.
 */
static void print_header(char header[UNDO_CHUNK_HEADER], uint32_t tag, uint64_t length,
			 struct str part)
{
	const uint64_t basis = 0xcbf29ce484222325;

	undo_put(header, tag, 4);
	undo_put(header + 4, 0, 4);
	undo_put(header + 8, length, 8);
	const uint64_t sum =
		add_sum(add_sum(basis, (struct str){header, UNDO_CHUNK_HEADER}), part);
	/* Odd, so that it is never the 0 of a chunk without a sum. */
	undo_put(header + 4, (sum ^ sum >> 32) | 1, 4);
}

static bool write_at(struct undo_log *log, const void *data, size_t size, struct err *err)
{
	const char *at = data;

	while (size > 0) {
		ssize_t n = pwrite(log->fd, at, size, (off_t)log->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, errno, "keeping what was there: %s",
				       strerror(errno));
		log->at += (uint64_t)n;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static bool write_header(struct undo_log *log, uint32_t tag, uint64_t length, struct err *err)
{
	char header[UNDO_CHUNK_HEADER];

	print_header(header, tag, length, (struct str){0});
	return write_at(log, header, sizeof(header), err);
}

void undo_log_begin(struct undo_log *log, int fd, uint32_t number)
{
	struct stat st;

	*log = (struct undo_log){.fd = fd, .number = number};
	if (fstat(fd, &st) == 0) {
		log->at = (uint64_t)st.st_size;
		log->marked = (st.st_mode & S_ISVTX) != 0;
	}
}

/* Cut off the unfinished chunk at FROM, so that the log stays whole. Returns false. */
static bool give_up(struct undo_log *log, uint64_t from)
{
	const int code = errno;

	if (log->at != from && ftruncate(log->fd, (off_t)from) == 0)
		log->at = from;
	errno = code;
	return false;
}

void undo_log_cut(struct undo_log *log, uint64_t from)
{
	const int code = errno;

	if (log == NULL)
		return;
	if ((!log->marked || set_mark(log, MARK_BEGUN)) &&
	    ftruncate(log->fd, (off_t)from) == 0 && set_mark(log, MARK_NONE))
		log->at = from;
	errno = code;
}

bool undo_log_meta(struct undo_log *log, struct str json, struct err *err)
{
	char header[UNDO_CHUNK_HEADER];

	print_header(header, UNDO_META, json.size, json);
	return write_at(log, header, sizeof(header), err) &&
	       write_at(log, json.data, json.size, err);
}

static void logged(const struct undo_log *log, uint64_t offset, uint64_t size,
		   struct undo_state *state)
{
	state->source = UNDO_LOGGED;
	state->log = log->number;
	state->offset = offset;
	state->size = size;
	state->extra = 0;
}

bool undo_log_data(struct undo_log *log, struct str content, struct undo_state *state,
		   struct err *err)
{
	const uint64_t from = log->at;

	if (!write_header(log, UNDO_DATA, content.size, err) ||
	    !write_at(log, content.data, content.size, err))
		return give_up(log, from);
	logged(log, from + UNDO_CHUNK_HEADER, content.size, state);
	hash_bytes(content, state->digest);
	state->hashed = true;
	return true;
}

/* Append padding so that the next content begins at a whole block. */
static bool pad(struct undo_log *log, struct err *err)
{
	static const char zeros[UNDO_ALIGNED];

	if ((log->at + UNDO_CHUNK_HEADER) % UNDO_ALIGNED == 0)
		return true;
	/* The padding has a header of its own. */
	uint64_t over = (log->at + 2 * UNDO_CHUNK_HEADER) % UNDO_ALIGNED;
	size_t room = (size_t)((UNDO_ALIGNED - over) % UNDO_ALIGNED);
	return write_header(log, UNDO_PAD, room, err) && write_at(log, zeros, room, err);
}

/* Let the log share the SIZE bytes of FILE. */
static bool share(struct undo_log *log, int file, uint64_t size)
{
	struct file_clone_range range = {.src_fd = file, .dest_offset = log->at};

	if (ioctl(log->fd, FICLONERANGE, &range) < 0)
		return false;
	struct stat st;
	/*
	 * The file may have grown in the meantime: then more than SIZE bytes were shared.
	 */
	if (fstat(log->fd, &st) < 0 || (uint64_t)st.st_size != log->at + size)
		return false;
	log->at += size;
	return true;
}

/* Append the names and values of the file's attributes to EXTRA. */
static void extra_read(int file, struct buf *extra)
{
	char names[4096], value[4096];
	ssize_t size = flistxattr(file, names, sizeof(names));

	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t length = fgetxattr(file, names + at, value, sizeof(value));
		char number[4];

		if (length < 0)
			continue;
		size_t mark = extra->size;
		undo_put(number, (uint64_t)length, sizeof(number));
		if (!buf_add(extra, names + at, strlen(names + at) + 1) ||
		    !buf_add(extra, number, sizeof(number)) ||
		    !buf_add(extra, value, (size_t)length)) {
			buf_truncate(extra, mark);
			return;
		}
	}
}

/* Hash SIZE bytes of FILE from AT on, and append them to LOG unless LOG is NULL. */
static bool copy_bytes(struct undo_log *log, int file, uint64_t at, uint64_t size,
		       struct hash *hash, struct err *err)
{
	/* Most files are small, so the buffer is no larger than the file. */
	auto_free char *buffer = memory_alloc(
		size < UNDO_READ_AT_ONCE ? (size_t)size + 1 : UNDO_READ_AT_ONCE);
	const uint64_t end = at + size;

	while (at < end) {
		size_t wanted = end - at < UNDO_READ_AT_ONCE ? (size_t)(end - at)
							     : UNDO_READ_AT_ONCE;
		ssize_t n = pread(file, buffer, wanted, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, n < 0 ? errno : EAGAIN, "%s",
				       n < 0 ? strerror(errno) : "it became shorter");
		hash_add(hash, (struct str){buffer, (size_t)n});
		if (log != NULL && !write_at(log, buffer, (size_t)n, err))
			return false;
		at += (uint64_t)n;
	}
	return true;
}

static bool file_content(struct undo_log *log, int file, uint64_t size, struct hash *hash,
			 struct err *err)
{
	const uint64_t from = log->at;

	if (size >= SHARE_FROM && share(log, file, size)) {
		/*
		 * Hash the bytes in the log, not those in FILE, which may change
		 * meanwhile.
		 */
		return copy_bytes(NULL, log->fd, from, size, hash, err);
	}
	return copy_bytes(log, file, 0, size, hash, err);
}

bool undo_log_file(struct undo_log *log, int file, uint64_t max, struct undo_state *state,
		   struct err *err)
{
	uint64_t from = log->at;
	struct stat st;
	struct buf extra;

	if (fstat(file, &st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	const uint64_t size = (uint64_t)st.st_size;
	if (size > max || size > UNDO_CONTENT_MAX)
		return err_set(err, EFBIG, "it has %ju bytes", (uintmax_t)size);
	if (size >= SHARE_FROM && !pad(log, err))
		return give_up(log, from);
	buf_init(&extra, UNDO_EXTRA_MAX);
	extra_read(file, &extra);
	struct hash *hash = hash_new();
	bool fine = write_header(log, UNDO_DATA, size + extra.size, err);
	const uint64_t offset = log->at;
	fine = fine && file_content(log, file, size, hash, err) &&
	       write_at(log, extra.data, extra.size, err);
	if (fine) {
		logged(log, offset, size, state);
		state->extra = (uint32_t)extra.size;
		hash_digest(hash, state->digest);
		state->hashed = true;
	} else {
		(void)give_up(log, from);
	}
	hash_free(hash);
	buf_fini(&extra);
	return fine;
}

bool undo_state_hash(int file, struct undo_state *state, struct err *err)
{
	struct hash *hash = hash_new();
	struct stat st;
	bool fine = (fstat(file, &st) == 0 || err_set(err, errno, "%s", strerror(errno))) &&
		    copy_bytes(NULL, file, 0, (uint64_t)st.st_size, hash, err);

	if (fine) {
		state->size = (uint64_t)st.st_size;
		hash_digest(hash, state->digest);
		state->hashed = true;
	}
	hash_free(hash);
	return fine;
}

bool undo_state_hash_small(int file, struct undo_state *state, struct buf *text)
{
	buf_clear(text);
	/* One more byte shows that a file has grown. */
	char *room = state->size < text->max ? buf_reserve(text, (size_t)state->size + 1)
					     : NULL;

	if (room == NULL ||
	    pread(file, room, (size_t)state->size + 1, 0) != (ssize_t)state->size)
		return false;
	buf_commit(text, (size_t)state->size);
	undo_state_hash_text(buf_str(text), state);
	return true;
}

void undo_state_hash_text(struct str content, struct undo_state *state)
{
	hash_bytes(content, state->digest);
	state->hashed = true;
	state->size = content.size;
}

/* Copy a small content with its header and attributes by one read and one write. */
static bool copy_small(struct undo_log *log, int from, const struct undo_state *kept,
		       struct hash *hash, struct err *err)
{
	char header[UNDO_CHUNK_HEADER];
	struct buf chunk;
	bool fine;

	buf_init(&chunk, UNDO_CHUNK_HEADER + SHARE_FROM + UNDO_EXTRA_MAX);
	print_header(header, UNDO_DATA, kept->size + kept->extra, (struct str){0});
	(void)buf_add(&chunk, header, sizeof(header));
	fine = undo_log_content(from, kept->offset, kept->size + kept->extra, &chunk, err);
	if (fine)
		hash_add(hash, str_part(buf_str(&chunk), UNDO_CHUNK_HEADER,
					UNDO_CHUNK_HEADER + (size_t)kept->size));
	fine = fine && write_at(log, chunk.data, chunk.size, err);
	buf_fini(&chunk);
	return fine;
}

static bool copy_large(struct undo_log *log, int from, const struct undo_state *kept,
		       struct hash *hash, struct err *err)
{
	struct buf extra;

	buf_init(&extra, UNDO_EXTRA_MAX);
	bool fine = write_header(log, UNDO_DATA, kept->size + kept->extra, err) &&
		    copy_bytes(log, from, kept->offset, kept->size, hash, err) &&
		    undo_log_content(from, kept->offset + kept->size, kept->extra, &extra,
				     err) &&
		    write_at(log, extra.data, extra.size, err);
	buf_fini(&extra);
	return fine;
}

bool undo_log_copy(struct undo_log *log, int from, const struct undo_state *kept,
		   struct undo_state *state, struct err *err)
{
	const uint64_t begin = log->at;
	const uint64_t offset = begin + UNDO_CHUNK_HEADER;
	struct hash *hash = hash_new();
	bool fine = kept->size <= SHARE_FROM && kept->extra <= UNDO_EXTRA_MAX
			    ? copy_small(log, from, kept, hash, err)
			    : copy_large(log, from, kept, hash, err);

	if (fine) {
		struct undo_state copied = *kept;

		logged(log, offset, kept->size, &copied);
		copied.extra = kept->extra;
		hash_digest(hash, copied.digest);
		/* The content must still have the hash that it was written with. */
		fine = !kept->hashed ||
		       memcmp(kept->digest, copied.digest, UNDO_DIGEST) == 0 ||
		       err_set(err, EINVAL, "what was kept is not what it was");
		copied.hashed = true;
		if (fine)
			*state = copied;
	}
	if (!fine)
		(void)give_up(log, begin);
	hash_free(hash);
	return fine;
}

/*
 * Append a chunk that consists of HEAD and PATH by one write, so that the log holds all of
 * the chunk or nothing of it.
 */
static bool write_chunk(struct undo_log *log, uint32_t tag, const struct buf *head,
			struct str path, struct err *err)
{
	const uint64_t from = log->at;
	char header[UNDO_CHUNK_HEADER] = {0};
	struct buf chunk;

	buf_init(&chunk, UNDO_CHUNK_HEADER + UNDO_CHANGE_HEADER + PATH_MAX);
	(void)buf_add(&chunk, header, sizeof(header));
	(void)buf_addstr(&chunk, buf_str(head));
	bool fine = buf_addstr(&chunk, path) || err_set(err, ENAMETOOLONG, "a path");
	print_header(chunk.data, tag, head->size + path.size,
		     str_part(buf_str(&chunk), UNDO_CHUNK_HEADER,
			      chunk.size - UNDO_CHUNK_HEADER));
	fine = fine && (write_at(log, chunk.data, chunk.size, err) || give_up(log, from));
	buf_fini(&chunk);
	return fine;
}

bool undo_log_change(struct undo_log *log, struct str path, const struct undo_state *before,
		     const struct undo_state *after, struct err *err)
{
	struct buf states;

	buf_init(&states, UNDO_CHANGE_HEADER);
	undo_state_print(before, &states);
	undo_state_print(after, &states);
	const bool fine = write_chunk(log, UNDO_CHANGE, &states, path, err);
	buf_fini(&states);
	return fine;
}

bool undo_log_note(struct undo_log *log, const struct undo_note *note, struct err *err)
{
	char numbers[8];
	struct buf head;
	mode_t mode = note->mode;

	if (log == NULL)
		return true;
	/* The note says whether the log of this set bears marks. */
	if (note->kind == UNDO_NOTE_SET && set_mark(log, MARK_BEGUN) && log->marked)
		mode |= MARK_BEGUN;
	undo_put(numbers, note->kind, 4);
	undo_put(numbers + 4, mode, 4);
	buf_init(&head, UNDO_NOTE_HEADER);
	(void)buf_add(&head, numbers, sizeof(numbers));
	(void)buf_add(&head, note->temp, sizeof(note->temp));
	(void)buf_add(&head, note->keep, sizeof(note->keep));
	bool fine = write_chunk(log, UNDO_NOTE, &head, note->path, err);
	if (fine && note->kind == UNDO_NOTE_PUTS)
		(void)set_mark(log, MARK_PUTS);
	else if (fine && note->kind == UNDO_NOTE_STANDS)
		(void)set_mark(log, MARK_STANDS);
	else if (fine && note->kind == UNDO_NOTE_OVER)
		fine = set_mark(log, MARK_NONE) ||
		       err_set(err, errno, "the mark of a log: %s", strerror(errno));
	buf_fini(&head);
	return fine;
}

bool undo_log_end(struct undo_log *log, struct err *err)
{
	return write_header(log, UNDO_END, 0, err);
}

/* Reads and checks the chunks of a log. */

/* The notes that were read so far have begun this, and not ended it. */
struct following {
	bool writes, opened;
	bool marked, puts, stands, over; /* the set that was written last */
};

/* The part of a log that was read last. */
struct window {
	int fd;
	uint64_t from;
	struct buf bytes;
	struct following following;
	int trouble; /* the error of a read; 0: none */
};

/* The SIZE bytes at AT, or NULL when the log ends before or cannot be read. */
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
			if (n < 0)
				window->trouble = errno;
			if (n <= 0)
				return NULL;
			buf_commit(&window->bytes, (size_t)n);
		}
	}
	return window->bytes.data + (at - window->from);
}

static bool unsound(struct err *err, const char *what)
{
	return err_set(err, UNDO_UNSOUND, "an undo log that does not hold together (%s)",
		       what);
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
	    !undo_state_parse(bytes + UNDO_STATE_BYTES, &change.after) ||
	    change.before.kind == UNDO_IGNORED || change.after.kind == UNDO_IGNORED)
		return unsound(err, "a state");
	if (!record_path_is_sound((struct str){bytes + UNDO_CHANGE_HEADER, size}))
		return unsound(err, "a path");
	memcpy(path, bytes + UNDO_CHANGE_HEADER, size);
	path[size] = '\0';
	change.path = (struct str){path, size};
	*more = reader->change == NULL || reader->change(reader->context, &change);
	return true;
}

/* Copy the temporary name in BYTES, which may lack its end, to NAME. */
static void take_name(const char *bytes, char name[UNDO_TEMP_NAME])
{
	memcpy(name, bytes, UNDO_TEMP_NAME);
	name[UNDO_TEMP_NAME - 1] = '\0';
}

/* Follow the states of a log from note to note. END is where the chunk of NOTE ends. */
static void follow_note(struct undo_reader *reader, struct following *following,
			const struct undo_note *note, uint64_t end)
{
	switch (note->kind) {
	case UNDO_NOTE_MAKES:
	case UNDO_NOTE_TEMPS:
	case UNDO_NOTE_SET:
		if (following->over)
			*following = (struct following){.opened = following->opened};
		following->writes = true;
		following->marked |=
			note->kind == UNDO_NOTE_SET && (note->mode & MARK_BEGUN) != 0;
		break;
	case UNDO_NOTE_OVER:
		following->writes = false;
		following->over = true;
		reader->over = end;
		break;
	case UNDO_NOTE_OPENED:
		following->opened = true;
		break;
	case UNDO_NOTE_CLOSED:
		following->opened = false;
		break;
	case UNDO_NOTE_PUTS:
		following->puts = true;
		following->stands = false;
		break;
	case UNDO_NOTE_STANDS:
		following->stands = true;
		break;
	}
	reader->unfinished = following->writes || following->opened;
}

static bool take_note(struct undo_reader *reader, struct following *following,
		      const char *bytes, size_t length, uint64_t end, bool *more,
		      struct err *err)
{
	const uint64_t kind = undo_get(bytes, 4), mode = undo_get(bytes + 4, 4);
	const struct str read = {bytes + UNDO_NOTE_HEADER, length - UNDO_NOTE_HEADER};
	const bool has_path = kind == UNDO_NOTE_MAKES || kind == UNDO_NOTE_TEMPS ||
			      kind == UNDO_NOTE_OPENED;
	struct undo_note note = {.kind = (enum undo_note_kind)kind, .mode = (mode_t)mode};
	char path[PATH_MAX];

	if (kind > UNDO_NOTE_PUTS || mode > 07777)
		return unsound(err, "a note");
	if (has_path ? !record_path_is_sound(read) || read.data[0] != '/' : read.size > 0)
		return unsound(err, "the path of a note");
	take_name(bytes + 8, note.temp);
	take_name(bytes + 8 + UNDO_TEMP_NAME, note.keep);
	memcpy(path, read.data, read.size);
	path[read.size] = '\0';
	note.path = (struct str){path, read.size};
	follow_note(reader, following, &note, end);
	*more = reader->note == NULL || reader->note(reader->context, &note);
	return true;
}

static bool is_tag(uint32_t tag)
{
	return tag == UNDO_META || tag == UNDO_DATA || tag == UNDO_CHANGE ||
	       tag == UNDO_NOTE || tag == UNDO_PAD || tag == UNDO_END;
}

/* Is SUM (0: none) that of a chunk in which PART is covered? */
static bool sum_is_right(uint32_t sum, uint32_t tag, uint64_t length, struct str part)
{
	char header[UNDO_CHUNK_HEADER];

	print_header(header, tag, length, part);
	return sum == 0 || sum == undo_get(header + 4, 4);
}

static bool take_chunk(struct undo_reader *reader, struct window *window, uint32_t tag,
		       uint32_t sum, uint64_t at, uint64_t length, bool *more,
		       struct err *err)
{
	const bool has_part = (tag == UNDO_META && length <= UNDO_META_MAX) ||
			      (tag == UNDO_CHANGE && length > UNDO_CHANGE_HEADER &&
			       length < UNDO_CHANGE_HEADER + PATH_MAX) ||
			      (tag == UNDO_NOTE && length >= UNDO_NOTE_HEADER &&
			       length < UNDO_NOTE_HEADER + PATH_MAX);
	const char *bytes = has_part ? window_at(window, at, (size_t)length) : "";

	if (bytes == NULL)
		return !(*more = false);
	if (!sum_is_right(sum, tag, length,
			  (struct str){bytes, has_part ? (size_t)length : 0}))
		return unsound(err, "a sum");
	if (has_part && tag == UNDO_META) {
		reader->over = at + length;
		*more = reader->meta == NULL ||
			reader->meta(reader->context, (struct str){bytes, (size_t)length});
		return true;
	}
	if (has_part && tag == UNDO_CHANGE)
		return take_change(reader, bytes, (size_t)length, more, err);
	if (has_part)
		return take_note(reader, &window->following, bytes, (size_t)length,
				 at + length, more, err);
	if (tag == UNDO_END && length == 0) {
		reader->ended = true;
		return true;
	}
	if ((tag == UNDO_DATA && length <= (uint64_t)UNDO_CONTENT_MAX + UNDO_EXTRA_MAX) ||
	    (tag == UNDO_PAD && length < UNDO_ALIGNED))
		return true;
	return unsound(err, "a chunk");
}

/* Compare the MARK of a log with its bytes; FINE: none of these is wrong. */
static void judge_mark(struct undo_reader *reader, const struct following *set,
		       mode_t mark, bool fine)
{
	const bool put = (mark & MARK_PUTS) == MARK_PUTS;

	reader->damaged =
		put && (!fine || !set->puts || (mark == MARK_STANDS && !set->stands));
	reader->unfinished = reader->unfinished || reader->damaged;
	reader->unmoved = set->marked && !put;
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
	size_t chunks = 0;
	reader->ended = reader->unfinished = false;
	reader->damaged = reader->unmoved = false;
	reader->over = 0;
	reader->changes = 0;
	reader->sound = 0;
	buf_init(&window.bytes, 2 * UNDO_READ_AT_ONCE);
	while (fine && more && at + UNDO_CHUNK_HEADER <= size) {
		const char *header = window_at(&window, at, UNDO_CHUNK_HEADER);
		if (header == NULL)
			break;
		uint32_t tag = (uint32_t)undo_get(header, 4);
		uint32_t sum = (uint32_t)undo_get(header + 4, 4);
		uint64_t length = undo_get(header + 8, 8);
		if (at == 0 && !is_tag(tag)) {
			fine = unsound(err, "its beginning");
			break;
		}
		/* The chunk is cut short: its writer was killed. */
		if (length > size - at - UNDO_CHUNK_HEADER)
			break;
		fine = chunks++ < UNDO_CHUNKS_MAX
			       ? take_chunk(reader, &window, tag, sum,
					    at + UNDO_CHUNK_HEADER, length, &more, err)
			       : unsound(err, "too many chunks");
		at += UNDO_CHUNK_HEADER + length;
		if (fine && more)
			reader->sound = at;
	}
	buf_fini(&window.bytes);
	if (more && window.trouble == 0)
		judge_mark(reader, &window.following, st.st_mode & MARK_STANDS, fine);
	return window.trouble == 0
		       ? fine
		       : err_set(err, window.trouble, "%s", strerror(window.trouble));
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

/* Prints, reads and compares states, and makes them from a status. */

const struct undo_state undo_absent = {.kind = UNDO_ABSENT};

enum {
	AT_KIND = 0,
	AT_SOURCE = 1,
	AT_HASHED = 2,
	AT_OBJECT_SIZE = 3,
	AT_MODE = 4,
	AT_LOG = 8,
	AT_EXTRA = 12,
	AT_SIZE = 16,
	AT_OFFSET = 24,
	AT_INODE = 32,
	AT_MTIME = 40,
	AT_CTIME = 48,
	AT_DIGEST = 56,
	AT_OBJECT = AT_DIGEST + UNDO_DIGEST,
	AT_RESERVED = AT_OBJECT + UNDO_OBJECT,
};
_Static_assert((int)AT_RESERVED <= (int)UNDO_STATE_BYTES, "a state has room for all");

void undo_state_print(const struct undo_state *state, struct buf *out)
{
	char bytes[UNDO_STATE_BYTES] = {0};

	bytes[AT_KIND] = (char)state->kind;
	bytes[AT_SOURCE] = (char)state->source;
	bytes[AT_HASHED] = (char)state->hashed;
	bytes[AT_OBJECT_SIZE] = (char)state->object_size;
	undo_put(bytes + AT_MODE, state->mode, 4);
	undo_put(bytes + AT_LOG, state->log, 4);
	undo_put(bytes + AT_EXTRA, state->extra, 4);
	undo_put(bytes + AT_SIZE, state->size, 8);
	undo_put(bytes + AT_OFFSET, state->offset, 8);
	undo_put(bytes + AT_INODE, state->inode, 8);
	undo_put(bytes + AT_MTIME, (uint64_t)state->mtime_ns, 8);
	undo_put(bytes + AT_CTIME, (uint64_t)state->ctime_ns, 8);
	memcpy(bytes + AT_DIGEST, state->digest, UNDO_DIGEST);
	memcpy(bytes + AT_OBJECT, state->object, UNDO_OBJECT);
	(void)buf_add(out, bytes, sizeof(bytes));
}

bool undo_state_parse(const char *bytes, struct undo_state *state)
{
	struct undo_state read = {
		.kind = (enum undo_kind)(unsigned char)bytes[AT_KIND],
		.source = (enum undo_source)(unsigned char)bytes[AT_SOURCE],
		.hashed = bytes[AT_HASHED] == 1,
		.object_size = (uint8_t)bytes[AT_OBJECT_SIZE],
		.mode = (mode_t)undo_get(bytes + AT_MODE, 4),
		.log = (uint32_t)undo_get(bytes + AT_LOG, 4),
		.extra = (uint32_t)undo_get(bytes + AT_EXTRA, 4),
		.size = undo_get(bytes + AT_SIZE, 8),
		.offset = undo_get(bytes + AT_OFFSET, 8),
		.inode = undo_get(bytes + AT_INODE, 8),
		.mtime_ns = (int64_t)undo_get(bytes + AT_MTIME, 8),
		.ctime_ns = (int64_t)undo_get(bytes + AT_CTIME, 8),
	};

	if (read.kind > UNDO_IGNORED || read.source > UNDO_LINKED ||
	    (unsigned char)bytes[AT_HASHED] > 1 || read.mode > 07777 ||
	    read.extra > UNDO_EXTRA_MAX || read.size > INT64_MAX || read.offset > INT64_MAX ||
	    (read.object_size != 0 && read.object_size != 20 && read.object_size != 32) ||
	    (read.source == UNDO_IN_GIT && read.object_size == 0))
		return false;
	memcpy(read.digest, bytes + AT_DIGEST, UNDO_DIGEST);
	memcpy(read.object, bytes + AT_OBJECT, UNDO_OBJECT);
	*state = read;
	return true;
}

bool undo_state_same(const struct undo_state *a, const struct undo_state *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == UNDO_ABSENT)
		return true;
	/*
	 * A new folder is logged before its permissions are known, as 0. So 0 matches
	 * any.
	 */
	if (a->kind == UNDO_FOLDER)
		return a->mode == b->mode || a->mode == 0 || b->mode == 0;
	if (a->kind == UNDO_FILE && a->mode != b->mode)
		return false;
	if (a->size != b->size)
		return false;
	if (a->hashed && b->hashed)
		return memcmp(a->digest, b->digest, UNDO_DIGEST) == 0;
	return a->object_size != 0 && a->object_size == b->object_size &&
	       memcmp(a->object, b->object, a->object_size) == 0;
}

bool record_is_gits(struct str path)
{
	return str_is(path, UNDO_GIT) || str_starts(path, STR(UNDO_GIT "/"));
}

bool record_path_is_sound(struct str path)
{
	size_t at = path.size > 0 && path.data[0] == '/';

	if (path.size == 0 || path.size >= PATH_MAX ||
	    memchr(path.data, '\0', path.size) != NULL)
		return false;
	for (;;) {
		size_t slash = str_find(path, STR("/"), at);
		size_t end = slash == (size_t)-1 ? path.size : slash;
		struct str name = str_part(path, at, end - at);

		if (name.size == 0 || name.size > NAME_MAX || str_is(name, ".") ||
		    str_is(name, ".."))
			return false;
		if (end == path.size)
			return true;
		at = end + 1;
	}
}

void undo_state_of(const struct stat *st, struct undo_state *state)
{
	*state = (struct undo_state){
		.kind = S_ISREG(st->st_mode)   ? UNDO_FILE
			: S_ISLNK(st->st_mode) ? UNDO_LINK
			: S_ISDIR(st->st_mode) ? UNDO_FOLDER
					       : UNDO_ABSENT,
		.mode = st->st_mode & 07777,
		.size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size,
		.inode = st->st_ino,
		.mtime_ns = clock_ns(&st->st_mtim),
		.ctime_ns = clock_ns(&st->st_ctim),
	};
}
