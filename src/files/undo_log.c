/* undo_log: chunks of a log, written; see undo_log.h. */
#include "files/undo_log.h"
#include "files/undo_log_parts.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Smaller files gain nothing by sharing. */
enum { SHARE_FROM = 64 << 10 };

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
	char header[UNDO_CHUNK_HEADER] = {0};

	undo_put(header, tag, 4);
	undo_put(header + 8, length, 8);
	return write_at(log, header, sizeof(header), err);
}

void undo_log_begin(struct undo_log *log, int fd, uint32_t number)
{
	struct stat st;

	*log = (struct undo_log){.fd = fd, .number = number};
	if (fstat(fd, &st) == 0)
		log->at = (uint64_t)st.st_size;
}

/*
 * Cut off the unfinished chunk at FROM, so that the log stays whole. Keeps errno. Returns
 * false.
 */
static bool give_up(struct undo_log *log, uint64_t from)
{
	int code = errno;

	if (ftruncate(log->fd, (off_t)from) == 0)
		log->at = from;
	errno = code;
	return false;
}

bool undo_log_meta(struct undo_log *log, struct str json, struct err *err)
{
	return write_header(log, UNDO_META, json.size, err) &&
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
	char header[UNDO_CHUNK_HEADER] = {0};
	struct buf chunk;
	bool fine;

	buf_init(&chunk, UNDO_CHUNK_HEADER + SHARE_FROM + UNDO_EXTRA_MAX);
	undo_put(header, UNDO_DATA, 4);
	undo_put(header + 8, kept->size + kept->extra, 8);
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

bool undo_log_change(struct undo_log *log, struct str path, const struct undo_state *before,
		     const struct undo_state *after, struct err *err)
{
	struct buf chunk;
	const uint64_t from = log->at;
	char header[UNDO_CHUNK_HEADER] = {0};

	/* One write, so that the log holds all of the chunk or nothing of it. */
	buf_init(&chunk, UNDO_CHUNK_HEADER + UNDO_CHANGE_HEADER + PATH_MAX);
	undo_put(header, UNDO_CHANGE, 4);
	undo_put(header + 8, UNDO_CHANGE_HEADER + path.size, 8);
	(void)buf_add(&chunk, header, sizeof(header));
	undo_state_print(before, &chunk);
	undo_state_print(after, &chunk);
	bool fine = buf_addstr(&chunk, path) || err_set(err, ENAMETOOLONG, "a path");
	fine = fine && (write_at(log, chunk.data, chunk.size, err) || give_up(log, from));
	buf_fini(&chunk);
	return fine;
}

bool undo_log_end(struct undo_log *log, struct err *err)
{
	return write_header(log, UNDO_END, 0, err);
}
