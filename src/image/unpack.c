/*
 * unpack: two readers of libarchive, one behind the other. The outer one decompresses the bytes
 * and knows no format; the inner one reads the tar. Between them stands our hash.
 */

#include "image/unpack.h"

#include "base/library.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct library libarchive = {"libarchive.so.13", "3.4", "libarchive13",
					  "unpacking archives"};

enum {
	READ_ROOM = 64 << 10,   /* of the archive */
	PLAIN_ROOM = 256 << 10, /* of the tar */
	END_BYTES = 1024,       /* without a bit, behind the last entry of a tar */
	STOP_EVERY = 64,        /* pieces between two questions for `stopped` */
};

/* Bytes that headers and padding may add to the bytes of files. */
#define PLAIN_MORE (UINT64_C(8) << 30)

struct functions {
	typeof(archive_read_new) *read_new;
	typeof(archive_read_free) *read_free;
	typeof(archive_read_support_filter_gzip) *filter_gzip;
	typeof(archive_read_support_filter_zstd) *filter_zstd;
	typeof(archive_read_support_format_raw) *format_raw;
	typeof(archive_read_support_format_tar) *format_tar;
	typeof(archive_read_open) *read_open;
	typeof(archive_read_data) *read_data;
	typeof(archive_read_data_block) *read_block;
	typeof(archive_read_next_header) *next_header;
	typeof(archive_error_string) *error_string;
	typeof(archive_entry_pathname) *pathname;
	typeof(archive_entry_hardlink) *hardlink;
	typeof(archive_entry_symlink) *symlink;
	typeof(archive_entry_filetype) *filetype;
	typeof(archive_entry_perm) *perm;
	typeof(archive_entry_size) *size;
	typeof(archive_entry_mtime) *mtime;
	typeof(archive_entry_mtime_nsec) *mtime_nsec;
	typeof(archive_entry_uid) *uid;
	typeof(archive_entry_xattr_reset) *xattr_reset;
	typeof(archive_entry_xattr_next) *xattr_next;
};

static bool load(struct functions *with, struct err *err)
{
	const struct library_function wanted[] = {
		{"archive_read_new", &with->read_new},
		{"archive_read_free", &with->read_free},
		{"archive_read_support_filter_gzip", &with->filter_gzip},
		{"archive_read_support_filter_zstd", &with->filter_zstd},
		{"archive_read_support_format_raw", &with->format_raw},
		{"archive_read_support_format_tar", &with->format_tar},
		{"archive_read_open", &with->read_open},
		{"archive_read_data", &with->read_data},
		{"archive_read_data_block", &with->read_block},
		{"archive_read_next_header", &with->next_header},
		{"archive_error_string", &with->error_string},
		{"archive_entry_pathname", &with->pathname},
		{"archive_entry_hardlink", &with->hardlink},
		{"archive_entry_symlink", &with->symlink},
		{"archive_entry_filetype", &with->filetype},
		{"archive_entry_perm", &with->perm},
		{"archive_entry_size", &with->size},
		{"archive_entry_mtime", &with->mtime},
		{"archive_entry_mtime_nsec", &with->mtime_nsec},
		{"archive_entry_uid", &with->uid},
		{"archive_entry_xattr_reset", &with->xattr_reset},
		{"archive_entry_xattr_next", &with->xattr_next},
	};

	return library_load(&libarchive, wanted, sizeof(wanted) / sizeof(wanted[0]), err);
}

/* One unpacking. */
struct state {
	struct functions with;
	struct unpack *unpack;
	struct archive *outer, *inner;
	struct hash *read_hash, *plain_hash;
	struct err broken; /* what a reader of ours has found; code 0: nothing */
	unsigned pieces;
	bool ended; /* the outer archive has no more bytes */
	char *read_room, *plain_room;
};

bool unpack_load(struct err *err)
{
	struct functions with;
	/* libarchive reads names of pax by the character set of the thread. */
	const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

	if (utf8 != (locale_t)0)
		(void)uselocale(utf8);
	return load(&with, err);
}

/* Always -1, which libarchive takes for a failure. */
static la_ssize_t break_off(struct state *state, int code, const char *sentence)
{
	if (state->broken.code == 0)
		(void)err_set(&state->broken, code, "%s", sentence);
	return -1;
}

/* The bytes of the archive, as they come. */
static la_ssize_t read_archive(struct archive *outer, void *context, const void **bytes)
{
	struct state *state = context;
	ssize_t got;

	(void)outer;
	do
		got = read(state->unpack->archive, state->read_room, READ_ROOM);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return break_off(state, errno, strerror(errno));
	hash_add(state->read_hash, (struct str){state->read_room, (size_t)got});
	state->unpack->read += (uint64_t)got;
	*bytes = state->read_room;
	return got;
}

/* The tar goes on with SIZE bytes at DATA. */
static void count_zeros(struct unpack *unpack, const char *data, size_t size)
{
	size_t zeros = 0;

	while (zeros < size && data[size - zeros - 1] == '\0')
		zeros++;
	unpack->zeros = zeros == size ? unpack->zeros + zeros : zeros;
}

/* The bytes of the tar. */
static la_ssize_t read_plain(struct archive *inner, void *context, const void **bytes)
{
	struct state *state = context;
	struct unpack *unpack = state->unpack;

	(void)inner;
	if (state->pieces++ % STOP_EVERY == 0 && unpack->stopped != NULL &&
	    unpack->stopped(unpack->context))
		return break_off(state, ECANCELED, "unpacking was cancelled");
	if (state->ended)
		return 0;
	const la_ssize_t got =
		state->with.read_data(state->outer, state->plain_room, PLAIN_ROOM);

	if (got < 0) {
		const char *said = state->with.error_string(state->outer);

		return break_off(state, EBADMSG,
				 said != NULL ? said : "the compressed bytes are damaged");
	}
	state->ended = got == 0;
	hash_add(state->plain_hash, (struct str){state->plain_room, (size_t)got});
	unpack->plain += (uint64_t)got;
	count_zeros(unpack, state->plain_room, (size_t)got);
	if (unpack->plain > UNPACK_FREE && unpack->plain / UNPACK_GROWTH_MAX > unpack->read)
		return break_off(state, E2BIG,
				 "the archive grows to more than 200 times its size");
	if (unpack->plain > unpack->limits.bytes + PLAIN_MORE)
		return break_off(state, E2BIG, "the archive is too large");
	*bytes = state->plain_room;
	return got;
}

/* The sentence for a failure of READER of libarchive. Always false. */
static bool explain(const struct state *state, struct archive *reader, const char *when,
		    struct err *err)
{
	const char *said = state->with.error_string(reader);
	struct buf text;

	if (state->broken.code != 0)
		return err_set(err, state->broken.code, "%s", state->broken.text);
	buf_init(&text, ERR_TEXT_MAX);
	text_add_name(&text, str_of(said != NULL ? said : "it is damaged"));
	(void)err_set(err, EBADMSG, "%s: %s", when, text.data);
	buf_fini(&text);
	return false;
}

static bool open_readers(struct state *state, struct err *err)
{
	const struct functions *with = &state->with;

	state->outer = with->read_new();
	state->inner = with->read_new();
	if (state->outer == NULL || state->inner == NULL)
		memory_exhausted(0);
	/* Only these formats are read, of all that libarchive knows. */
	if (with->filter_gzip(state->outer) != ARCHIVE_OK ||
	    with->filter_zstd(state->outer) != ARCHIVE_OK)
		return err_set(err, ENOSYS,
			       "libarchive was built without gzip or without zstd; "
			       "install the one of the distribution");
	if (with->format_raw(state->outer) != ARCHIVE_OK ||
	    with->read_open(state->outer, state, NULL, read_archive, NULL) != ARCHIVE_OK)
		return explain(state, state->outer, "opening it", err);
	struct archive_entry *whole;

	if (with->next_header(state->outer, &whole) != ARCHIVE_OK)
		return explain(state, state->outer, "opening it", err);
	if (with->format_tar(state->inner) != ARCHIVE_OK ||
	    with->read_open(state->inner, state, NULL, read_plain, NULL) != ARCHIVE_OK)
		return explain(state, state->inner, "opening the tar in it", err);
	return true;
}

static enum maker_entry_kind kind_of(const struct state *state, struct archive_entry *header)
{
	switch (state->with.filetype(header)) {
	case AE_IFREG:
		return MAKER_FILE;
	case AE_IFDIR:
		return MAKER_FOLDER;
	case AE_IFLNK:
		return MAKER_LINK;
	case AE_IFIFO:
		return MAKER_PIPE;
	default:
		return MAKER_DEVICE;
	}
}

static bool read_entry(const struct state *state, struct archive_entry *header,
		       struct maker_entry *entry, struct err *err)
{
	const struct functions *with = &state->with;
	const char *again = with->hardlink(header);
	const int64_t size = with->size(header);

	*entry = (struct maker_entry){
		.kind = again != NULL ? MAKER_AGAIN : kind_of(state, header),
		.path = with->pathname(header),
		.target = again != NULL ? again : with->symlink(header),
		.mode = with->perm(header),
		.size = size > 0 ? (uint64_t)size : 0,
		.changed = {.tv_sec = with->mtime(header),
			    .tv_nsec = with->mtime_nsec(header)},
	};
	if (entry->path == NULL)
		return err_set(err, EBADMSG, "the name of entry %" PRIu64 " cannot be read",
			       state->unpack->counts.entries + 1);
	if (entry->target == NULL)
		entry->target = "";
	return true;
}

static bool give_attributes(const struct state *state, struct maker *maker,
			    struct archive_entry *header, struct err *err)
{
	const char *name;
	const void *value;
	size_t size;

	(void)state->with.xattr_reset(header);
	while (state->with.xattr_next(header, &name, &value, &size) == ARCHIVE_OK) {
		if (name != NULL &&
		    !maker_attribute(maker, name, (struct str){value, size}, err))
			return false;
	}
	return true;
}

static bool give_data(const struct state *state, struct maker *maker, struct err *err)
{
	for (;;) {
		const void *bytes;
		size_t size;
		la_int64_t offset;
		const int code =
			state->with.read_block(state->inner, &bytes, &size, &offset);

		if (code == ARCHIVE_EOF)
			return true;
		if (code != ARCHIVE_OK)
			return explain(state, state->inner, "reading a file", err);
		if (offset < 0)
			return err_set(err, EBADMSG, "a file is damaged");
		if (!maker_write(maker, (uint64_t)offset, (struct str){bytes, size}, err))
			return false;
	}
}

static bool take_entry(const struct state *state, struct maker *maker,
		       struct archive_entry *header, struct err *err)
{
	struct maker_entry entry;

	if (!read_entry(state, header, &entry, err) || !maker_begin(maker, &entry, err))
		return false;
	if (state->with.uid(header) != 0)
		maker_note_owner(maker);
	return give_attributes(state, maker, header, err) &&
	       (entry.kind != MAKER_FILE || give_data(state, maker, err)) &&
	       maker_end(maker, err);
}

static bool take_entries(struct state *state, struct maker *maker, struct err *err)
{
	for (;;) {
		struct archive_entry *header;
		const int code = state->with.next_header(state->inner, &header);

		if (code == ARCHIVE_EOF)
			return true;
		/* A warning means a name that was changed on the way to us. */
		if (code != ARCHIVE_OK)
			return explain(state, state->inner, "reading an entry", err);
		if (!take_entry(state, maker, header, err))
			return false;
	}
}

/* The hashes are over all bytes, also over those behind the last entry. */
static bool read_rest(struct state *state, struct err *err)
{
	const void *bytes;
	la_ssize_t got;

	do
		got = read_plain(state->inner, state, &bytes);
	while (got > 0);
	while (got == 0 && state->broken.code == 0) {
		if (read_archive(state->outer, state, &bytes) <= 0)
			break;
	}
	return state->broken.code == 0 || explain(state, state->outer, "reading it", err);
}

static void print_digest(struct hash *hash, char hex[HASH_HEX + 1])
{
	uint8_t digest[HASH_BYTES];

	hash_digest(hash, digest);
	for (size_t i = 0; i < HASH_BYTES; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

static bool run(struct state *state, struct maker *maker, struct err *err)
{
	if (!open_readers(state, err) || !take_entries(state, maker, err) ||
	    !read_rest(state, err))
		return false;
	/* Layers of some builders lack the end of the tar; other tars have it. */
	if (state->unpack->rules != MAKER_LAYER && state->unpack->zeros < END_BYTES)
		return err_set(err, EBADMSG, "the tar has no end: it was cut");
	maker_finish(maker);
	print_digest(state->read_hash, state->unpack->digest);
	print_digest(state->plain_hash, state->unpack->plain_digest);
	return true;
}

bool unpack_run(struct unpack *unpack, struct err *err)
{
	struct state state = {.unpack = unpack};
	struct maker *maker;
	bool done;

	if (!load(&state.with, err))
		return false;
	if (unpack->limits.bytes == 0)
		unpack->limits.bytes = MAKER_BYTES_MAX;
	state.read_hash = hash_new();
	state.plain_hash = hash_new();
	state.read_room = memory_alloc(READ_ROOM);
	state.plain_room = memory_alloc(PLAIN_ROOM);
	maker = maker_open(unpack->folder, unpack->rules, &unpack->limits, &unpack->counts);
	done = run(&state, maker, err);
	maker_close(maker);
	if (state.inner != NULL)
		(void)state.with.read_free(state.inner);
	if (state.outer != NULL)
		(void)state.with.read_free(state.outer);
	hash_free(state.read_hash);
	hash_free(state.plain_hash);
	free(state.read_room);
	free(state.plain_room);
	return done;
}
