/*
 * tree_get: the front's own tool behind `tree/get` of `glovebox serve`: packs a folder of the
 * cell as a tar, which it writes to a descriptor. No link is followed. Owners are left out,
 * and so are set-id bits, pipes, sockets and devices, and the paths that the policy blocks.
 *
 * It packs the changes of the base of the cell as well, as a layer of an image (image-spec,
 * layer.md): an empty file `.wh.NAME` says that NAME was removed, and `.wh..wh..opq` that its
 * folder hides the one below. A file of the cell with such a name is left out.
 *
 * The format is ustar, with a pax header before an entry that ustar has no room for: a name
 * or target over 100 bytes, or 8 GiB and more. A file with holes is a sparse file of GNU tar,
 * version 1.0: its first blocks are the map of its parts. A file that gets shorter while it
 * is read is filled up with zeros, and counted.
 */
#include "tools/tools.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/files.h"
#include "tool/call.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	BLOCK = 512,
	END_BLOCKS = 2, /* of zeros */
	WRITE_BYTES = 256 << 10,
	ENTRIES_MAX = 2 << 20, /* as many as tree_put makes */
	DEPTH_MAX = 128,
	LINKS_MAX = 100000, /* files of several names that are remembered */
	PARTS_MAX = 4096,   /* of a file with holes; with more it is written as a whole */
	PART_ROOM = 48,     /* bytes of one of them in the map */
	PAX_ROOM = 4 * PATH_MAX,
	KEY_ROOM = 64,
	MODE_BITS = 0777,
};
#define OCTAL_MAX (UINT64_C(8) << 30) /* eleven octal digits hold less */

/* A header of ustar (POSIX 1003.1, pax). All members are text. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], changed[12], sum[8], type;
	char target[100], magic[6], version[2], owner[32], group[32], major[8], minor[8];
	char prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

/* One part of a file with holes. */
struct part {
	int64_t offset, size;
};

/* The marks of a layer, and of the overlay that it comes from. */
#define REMOVED ".wh."
#define HIDES   ".wh..wh..opq"
#define OPAQUE  "user.overlay.opaque"

struct get {
	struct call *call;
	int out;
	uint64_t most;   /* bytes of the tar */
	bool exact;      /* times to the nanosecond, each in a header of its own */
	bool layer;      /* the folder is that of the changes of the base */
	struct buf held; /* that are not written yet */
	uint64_t size;   /* of the tar so far */
	uint64_t entries, bytes, skipped, shortened;
	struct buf path, real; /* of an entry: as it is in the tar, and in the cell */
	struct value *links;   /* "device:inode" -> the key of the path in the tar */
	struct part *parts;
	size_t part_count;
};

static const struct row tree_get_params[] = {
	{"path", ROW_BYTES, true, "Folder that is packed", .min = 1, .max = PATH_MAX - 1},
	{"most", ROW_COUNT, true, "Most bytes of the tar", .max = (double)INT64_MAX / 2},
	{"exact", ROW_FLAG, false, "Times to the nanosecond, as a snapshot keeps them",
	 .initial = "false"},
	{"layer", ROW_FLAG, false,
	 "In place of the folder, what the cell has changed of its base",
	 .initial = "false"},
	{0},
};

/* Bytes of the tar. */

static bool flush(struct get *get, struct err *err)
{
	const bool ok = fd_write_all(get->out, get->held.data, get->held.size, err);

	buf_clear(&get->held);
	if (!ok && err->code == ENOSPC)
		return err_set(err, ENOSPC,
			       "the disk of the temporary file that keeps the tar is full; name "
			       "another folder in TMPDIR, or take its folders one by one");
	if (!ok && err->code == EFBIG)
		return err_set(err, EFBIG,
			       "the tar is larger than limits.file_size of the policy lets a file "
			       "be");
	return ok;
}

static bool add(struct get *get, const void *data, size_t size, struct err *err)
{
	const char *at = data;

	get->size += size;
	if (get->size > get->most)
		return err_set(err, EFBIG,
			       "the tree has more than %" PRIu64
			       " MiB; get its folders one by one",
			       get->most >> 20);
	while (size > 0) {
		const size_t room = WRITE_BYTES - get->held.size;
		const size_t n = size < room ? size : room;

		(void)buf_add(&get->held, at, n);
		at += n;
		size -= n;
		if (get->held.size == WRITE_BYTES && !flush(get, err))
			return false;
	}
	return true;
}

static bool add_zeros(struct get *get, uint64_t size, struct err *err)
{
	static const char zeros[BLOCK];

	while (size > 0) {
		const size_t n = size < BLOCK ? (size_t)size : BLOCK;

		if (!add(get, zeros, n, err))
			return false;
		size -= n;
	}
	return true;
}

/* Fill up the last block. */
static bool pad(struct get *get, struct err *err)
{
	return add_zeros(get, (BLOCK - get->size % BLOCK) % BLOCK, err);
}

/* Headers. */

static void put_octal(char *place, size_t room, uint64_t number)
{
	char text[KEY_ROOM];

	(void)snprintf(text, sizeof(text), "%0*" PRIo64, (int)room - 1, number);
	memcpy(place, text, room); /* with its NUL */
}

static void put_text(char *place, size_t room, const char *text)
{
	const size_t size = strlen(text);

	memcpy(place, text, size < room ? size : room);
}

/* One record of a pax header: its length, which counts its own digits, and NAME=VALUE. */
static void add_record(struct buf *pax, const char *name, struct str value)
{
	/* a blank, '=' and the line end */
	const size_t rest = strlen(name) + value.size + 3;
	size_t size = rest + 1;

	for (size_t power = 10; size >= power; power *= 10)
		size++;
	(void)buf_addf(pax, "%zu %s=", size, name);
	(void)buf_addstr(pax, value);
	(void)buf_addc(pax, '\n');
}

/* A record with a path, whose bytes need not be UTF-8: readers have to know. */
static void add_path(struct buf *pax, const char *name, struct str path)
{
	if (!text_is_utf8(path))
		add_record(pax, "hdrcharset", STR("BINARY"));
	add_record(pax, name, path);
}

static void add_number(struct buf *pax, const char *name, uint64_t number)
{
	char text[KEY_ROOM];

	(void)snprintf(text, sizeof(text), "%" PRIu64, number);
	add_record(pax, name, str_of(text));
}

/* The time of a file. One before 1970 is told in whole seconds only. */
static void add_time(struct buf *pax, const struct timespec *time)
{
	char text[KEY_ROOM];

	if (time->tv_sec < 0)
		return;
	(void)snprintf(text, sizeof(text), "%jd.%09ld", (intmax_t)time->tv_sec,
		       time->tv_nsec);
	add_record(pax, "mtime", str_of(text));
}

/* An entry as its header tells it. */
struct told {
	char type;
	const char *name, *target;
	const struct stat *st;
	uint64_t size; /* of its data in the tar */
};

static bool add_block(struct get *get, const struct told *told, struct err *err)
{
	struct header header = {.type = told->type};
	const unsigned char *bytes = (const unsigned char *)&header;
	const int64_t changed = told->st != NULL ? (int64_t)told->st->st_mtime : 0;
	unsigned sum = 0;

	put_text(header.name, sizeof(header.name), told->name);
	put_octal(header.mode, sizeof(header.mode),
		  told->st != NULL ? told->st->st_mode & MODE_BITS : 0644);
	put_octal(header.uid, sizeof(header.uid), 0);
	put_octal(header.gid, sizeof(header.gid), 0);
	put_octal(header.size, sizeof(header.size), told->size < OCTAL_MAX ? told->size : 0);
	put_octal(header.changed, sizeof(header.changed),
		  changed > 0 && (uint64_t)changed < OCTAL_MAX ? (uint64_t)changed : 0);
	put_text(header.target, sizeof(header.target),
		 told->target != NULL ? told->target : "");
	memcpy(header.magic, "ustar", sizeof(header.magic));
	memcpy(header.version, "00", sizeof(header.version));
	/* The sum counts its own place as blanks. */
	memset(header.sum, ' ', sizeof(header.sum));
	for (size_t i = 0; i < sizeof(header); i++)
		sum += bytes[i];
	put_octal(header.sum, sizeof(header.sum) - 1, sum);
	return add(get, &header, sizeof(header), err);
}

/* The header of TOLD, with a pax header of PAX before it when that holds something. */
static bool add_header(struct get *get, const struct told *told, struct buf *pax,
		       struct err *err)
{
	const struct told extended = {.type = 'x', .name = "./PaxHeaders/entry", .size = 0};
	struct told before = extended;

	if (strlen(told->name) > sizeof(((struct header *)0)->name))
		add_path(pax, "path", str_of(told->name));
	if (told->target != NULL &&
	    strlen(told->target) > sizeof(((struct header *)0)->target))
		add_path(pax, "linkpath", str_of(told->target));
	if (told->size >= OCTAL_MAX)
		add_number(pax, "size", told->size);
	if (get->exact && told->st != NULL && told->st->st_mtim.tv_nsec != 0)
		add_time(pax, &told->st->st_mtim);
	before.size = pax->size;
	return (pax->size == 0 || (add_block(get, &before, err) &&
				   add(get, pax->data, pax->size, err) && pad(get, err))) &&
	       add_block(get, told, err);
}

static bool add_plain(struct get *get, const struct told *told, struct err *err)
{
	struct buf pax;
	bool ok;

	buf_init(&pax, PAX_ROOM);
	ok = add_header(get, told, &pax, err);
	buf_fini(&pax);
	return ok;
}

/* Files. */

/* Add SIZE bytes at OFFSET of FD. */
static bool add_bytes(struct get *get, int fd, int64_t offset, int64_t size, struct err *err)
{
	auto_free char *block = memory_alloc(WRITE_BYTES);

	while (size > 0) {
		const size_t want = size < WRITE_BYTES ? (size_t)size : WRITE_BYTES;
		const ssize_t n = pread(fd, block, want, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, errno, "%s: %s", get->path.data,
				       strerror(errno));
		if (call_stopped(get->call))
			return err_set(err, ECANCELED, "it was ended");
		if (n == 0) {
			get->shortened++;
			return add_zeros(get, (uint64_t)size, err);
		}
		if (!add(get, block, (size_t)n, err))
			return false;
		offset += n;
		size -= n;
	}
	return true;
}

/* Find the parts of FD that are no holes. False: there are none, or too many. */
static bool find_parts(struct get *get, int fd, const struct stat *st)
{
	off_t at = 0;

	get->part_count = 0;
	if (st->st_blocks * BLOCK >= st->st_size || st->st_size < WRITE_BYTES)
		return false;
	while (at < st->st_size) {
		const off_t data = lseek(fd, at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break;
		const off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
		if (hole < 0 || get->part_count + 1 >= PARTS_MAX)
			return false;
		if (data >= st->st_size)
			break;
		at = hole < st->st_size ? hole : st->st_size;
		get->parts[get->part_count++] = (struct part){data, at - data};
	}
	/* A part without bytes at the end says how long the file is. */
	get->parts[get->part_count++] = (struct part){st->st_size, 0};
	return true;
}

static bool add_sparse(struct get *get, int fd, const struct stat *st, struct err *err)
{
	struct told told = {.type = '0', .name = "./GNUSparseFile.0/file", .st = st};
	struct buf pax, map;
	bool ok;

	buf_init(&pax, PAX_ROOM);
	buf_init(&map, PARTS_MAX * PART_ROOM);
	(void)buf_addf(&map, "%zu\n", get->part_count);
	for (size_t i = 0; i < get->part_count; i++)
		(void)buf_addf(&map, "%" PRId64 "\n%" PRId64 "\n", get->parts[i].offset,
			       get->parts[i].size);
	while (map.size % BLOCK != 0)
		(void)buf_addc(&map, '\0');
	told.size = map.size;
	for (size_t i = 0; i < get->part_count; i++)
		told.size += (uint64_t)get->parts[i].size;
	add_number(&pax, "GNU.sparse.major", 1);
	add_number(&pax, "GNU.sparse.minor", 0);
	add_path(&pax, "GNU.sparse.name", buf_str(&get->path));
	add_number(&pax, "GNU.sparse.realsize", (uint64_t)st->st_size);
	ok = add_header(get, &told, &pax, err) && add(get, map.data, map.size, err);
	for (size_t i = 0; i < get->part_count && ok; i++)
		ok = add_bytes(get, fd, get->parts[i].offset, get->parts[i].size, err);
	buf_fini(&pax);
	buf_fini(&map);
	return ok && pad(get, err);
}

/* The name under which the file of ST is in the tar already, for the caller to free; or NULL. */
static char *known_link(struct get *get, const struct stat *st)
{
	char key[KEY_ROOM];
	const char *known;

	if (st->st_nlink < 2)
		return NULL;
	(void)snprintf(key, sizeof(key), "%ju:%ju", (uintmax_t)st->st_dev,
		       (uintmax_t)st->st_ino);
	known = value_text(value_member(get->links, key));
	if (known != NULL)
		return path_of_key(known);
	if (value_count(get->links) < LINKS_MAX) {
		auto_free char *path = path_key(get->path.data);

		value_set_text(get->links, key, path);
	}
	return NULL;
}

static bool add_file(struct get *get, int folder, const char *name, struct err *err)
{
	struct stat st;
	auto_close int fd = files_open_regular(folder, name, &st);

	if (fd < 0) {
		/* A file that has just gone, or that may not be read. */
		get->skipped++;
		return true;
	}
	auto_free char *known = known_link(get, &st);
	struct told told = {.type = known != NULL ? '1' : '0',
			    .name = get->path.data,
			    .target = known,
			    .st = &st};
	if (known != NULL)
		return add_plain(get, &told, err);
	get->bytes += (uint64_t)st.st_size;
	if (find_parts(get, fd, &st))
		return add_sparse(get, fd, &st, err);
	told.size = (uint64_t)st.st_size;
	return add_plain(get, &told, err) && add_bytes(get, fd, 0, st.st_size, err) &&
	       pad(get, err);
}

static bool add_link(struct get *get, int folder, const char *name, const struct stat *st,
		     struct err *err)
{
	char target[PATH_MAX];
	const ssize_t size = readlinkat(folder, name, target, sizeof(target) - 1);

	if (size < 0) {
		get->skipped++;
		return true;
	}
	target[size] = '\0';
	return add_plain(get,
			 &(const struct told){.type = '2',
					      .name = get->path.data,
					      .target = target,
					      .st = st},
			 err);
}

/* The marks of a layer. */

/* Add the empty file that says that NAME is removed; NULL: that its folder hides the one below. */
static bool add_mark(struct get *get, const char *name, struct err *err)
{
	const size_t size = get->path.size - (name != NULL ? strlen(name) : 0);
	struct buf path;
	bool ok;

	buf_init(&path, PATH_MAX);
	ok = (buf_add(&path, get->path.data, size) &&
	      (name != NULL ? buf_addf(&path, REMOVED "%s", name) : buf_adds(&path, HIDES))) ||
	     err_set(err, ENAMETOOLONG, "a path is too long: %s", get->path.data);
	ok = ok &&
	     add_plain(get, &(const struct told){.type = '0', .name = path.data}, err);
	buf_fini(&path);
	return ok;
}

/* Does the folder FD of a layer hide the one below? */
static bool hides(const struct get *get, int fd)
{
	char value[2];

	return get->layer && fgetxattr(fd, OPAQUE, value, sizeof(value)) == 1 &&
	       value[0] == 'y';
}

/* The walk. */

static bool add_folder(struct get *get, int fd, size_t depth, struct err *err);

static bool add_below(struct get *get, int folder, const char *name,
		      const struct stat *st, size_t depth, struct err *err)
{
	auto_close int fd =
		openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0) {
		get->skipped++;
		return true;
	}
	if (depth >= DEPTH_MAX)
		return err_set(err, EFBIG, "more than %d folders in each other: %s",
			       DEPTH_MAX, get->path.data);
	return buf_addc(&get->path, '/') &&
	       add_plain(get,
			 &(const struct told){.type = '5', .name = get->path.data, .st = st},
			 err) &&
	       (!hides(get, fd) || add_mark(get, NULL, err)) &&
	       add_folder(get, fd, depth + 1, err);
}

static bool add_name(struct get *get, int folder, const char *name, size_t depth,
		     struct err *err)
{
	struct stat st;

	if (files_is_blocked(get->call->files, get->real.data) ||
	    fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		get->skipped++;
		return true;
	}
	if (get->layer && str_starts(str_of(name), STR(REMOVED))) {
		get->skipped++;
		return true;
	}
	if (++get->entries > ENTRIES_MAX)
		return err_set(err, EFBIG, "the tree has more than %d names", ENTRIES_MAX);
	if (get->layer && S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0))
		return add_mark(get, name, err);
	if (S_ISDIR(st.st_mode))
		return add_below(get, folder, name, &st, depth, err);
	if (S_ISREG(st.st_mode))
		return add_file(get, folder, name, err);
	if (S_ISLNK(st.st_mode))
		return add_link(get, folder, name, &st, err);
	get->skipped++;
	return true;
}

static bool add_folder(struct get *get, int fd, size_t depth, struct err *err)
{
	const size_t size = get->path.size, real = get->real.size;
	struct fd_names names = {0};
	bool ok = true;

	fd_names_read(&names, fd, ENTRIES_MAX, true);
	for (size_t i = 0; i < names.count && ok; i++) {
		if (call_stopped(get->call))
			ok = err_set(err, ECANCELED, "it was ended");
		else if (!buf_adds(&get->path, names.items[i]) ||
			 !buf_addf(&get->real, "/%s", names.items[i]))
			ok = err_set(err, ENAMETOOLONG, "a path is too long: %s",
				     get->real.data);
		else
			ok = add_name(get, fd, names.items[i], depth, err);
		buf_truncate(&get->path, size);
		buf_truncate(&get->real, real);
	}
	fd_names_fini(&names);
	return ok;
}

static void tell(const struct get *get, struct tool_result *result)
{
	const struct {
		const char *name;
		uint64_t count;
	} rows[] = {
		{"size", get->size},           {"entries", get->entries},
		{"bytes", get->bytes},         {"skipped", get->skipped},
		{"shortened", get->shortened},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		value_set_integer(tool_details(result), rows[i].name,
				  (int64_t)rows[i].count);
}

static bool get_layer(struct get *get, struct err *err)
{
	auto_close int fd =
		openat(get->call->base_layer, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, errno, "the changes of the base: %s", strerror(errno));
	return add_folder(get, fd, 0, err) && add_zeros(get, END_BLOCKS * BLOCK, err) &&
	       flush(get, err);
}

static bool get_all(struct get *get, struct err *err)
{
	struct file folder;
	bool ok;

	if (get->layer)
		return get_layer(get, err);
	file_init(&folder);
	ok = files_reach(get->call->files, call_text(get->call, "path"), FILES_FOLDER,
			 &folder, err) &&
	     (strcmp(folder.path.data, "/") == 0 ||
	      buf_addstr(&get->real, buf_str(&folder.path))) &&
	     add_folder(get, folder.fd, 0, err) &&
	     add_zeros(get, END_BLOCKS * BLOCK, err) && flush(get, err);
	file_fini(&folder);
	return ok;
}

static enum result_status tree_get_execute(struct call *call, struct tool_result *result)
{
	struct get get = {.call = call,
			  .out = call->fds[0],
			  .most = (uint64_t)call_count(call, "most", 0),
			  .exact = call_flag(call, "exact"),
			  .layer = call_flag(call, "layer"),
			  .links = value_new_object(),
			  .parts = memory_array(PARTS_MAX, sizeof(*get.parts))};
	struct err err = {0};
	bool ok;

	buf_init(&get.held, WRITE_BYTES);
	buf_init(&get.path, PATH_MAX);
	buf_init(&get.real, PATH_MAX);
	ok = get_all(&get, &err);
	if (ok) {
		tell(&get, result);
		(void)tool_done(result);
	} else if (call->cancelled || call_stopped(call)) {
		(void)call_stop_result(call, result);
	} else {
		value_set_integer(tool_details(result), "code", err.code);
		(void)tool_fail(result, "%s", err.text);
	}
	buf_fini(&get.held);
	buf_fini(&get.path);
	buf_fini(&get.real);
	value_free(get.links);
	free(get.parts);
	return result->status;
}

const struct tool tree_get_tool = {
	.name = "tree_get",
	.description = "Pack a folder for a client of `glovebox serve`.",
	.example = "{\"path\": \"/src\", \"most\": 1048576}",
	.params = tree_get_params,
	.effects = EFFECT_READS,
	.timeout_s = 3600,
	.internal = true,
	.plain = true,
	.searches = true, /* a tree takes a while */
	.execute = tree_get_execute,
};
