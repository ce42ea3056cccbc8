/* saving: one process with walls reads upper folders, another one builds them. */

#include "view/saving.h"

#include "base/fd.h"
#include "base/memory.h"
#include "files/overlay.h"
#include "sandbox/outside.h"
#include "sandbox/view.h"
#include "view/saved.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { NUMBER_ROOM = 24 };

/* Names of the folder in which entries of several names wait for their next one. */
#define AGAIN_FOLDER "again"

/* The orders of the process. */
struct order {
	uint64_t which;
	uint64_t most;
	bool is_root;
};

/* Reading. */

/* The inodes of several names that were read: a hash table, in which 0 is a free place. */
struct seen {
	uint64_t *rows;
	size_t room, count;
};

struct saver {
	struct saved_writer writer;
	struct seen seen;
	uint64_t bytes, most;
	size_t entries;
	char *list, *value, *data; /* rooms for attributes and contents */
};

static uint64_t *seen_place(const struct seen *seen, uint64_t inode)
{
	size_t at = (size_t)(inode * 0x9e3779b97f4a7c15 >> 20) % seen->room;

	while (seen->rows[at] != 0 && seen->rows[at] != inode)
		at = (at + 1) % seen->room;
	return &seen->rows[at];
}

/* Was INODE seen before? It is from now on. */
static bool seen_before(struct seen *seen, uint64_t inode)
{
	if (2 * (seen->count + 1) > seen->room) {
		struct seen wider = {.room = 4 * seen->room + 64, .count = seen->count};

		wider.rows = memory_array(wider.room, sizeof(*wider.rows));
		for (size_t i = 0; i < seen->room; i++) {
			if (seen->rows[i] != 0)
				*seen_place(&wider, seen->rows[i]) = seen->rows[i];
		}
		free(seen->rows);
		*seen = wider;
	}
	uint64_t *place = seen_place(seen, inode);
	const bool before = *place == inode;

	seen->count += !before;
	*place = inode;
	return before;
}

static int put(struct saver *saver, const struct saved_item *item)
{
	saver->bytes += item->bytes.size;
	return saver->bytes > saver->most ? SAVED_OVER : saved_write(&saver->writer, item);
}

static int put_close(struct saver *saver)
{
	return put(saver, &(const struct saved_item){.tag = SAVED_CLOSE});
}

static int put_extras(struct saver *saver, int fd)
{
	const ssize_t size = flistxattr(fd, saver->list, XATTR_LIST_MAX);
	int code = size < 0 && errno != ENOTSUP ? errno : 0;

	for (ssize_t at = 0; at < size && code == 0;
	     at += (ssize_t)strlen(saver->list + at) + 1) {
		const char *name = saver->list + at;

		if (!saved_has_extra(name))
			continue;
		const ssize_t length = fgetxattr(fd, name, saver->value, SAVED_EXTRA_MAX);

		code = length < 0
			       ? errno
			       : put(saver, &(const struct saved_item){
						    .tag = SAVED_EXTRA,
						    .attribute = str_of(name),
						    .bytes = {saver->value, (size_t)length},
					    });
	}
	return code;
}

/* Put the bytes from AT to END, which are no hole. */
static int put_run(struct saver *saver, int fd, off_t at, off_t end)
{
	int code = 0;

	while (at < end && code == 0) {
		const size_t wanted = end - at < SAVED_DATA_MAX ? (size_t)(end - at)
								: (size_t)SAVED_DATA_MAX;
		const ssize_t got = pread(fd, saver->data, wanted, at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? errno : EIO;
		code = put(saver, &(const struct saved_item){
					  .tag = SAVED_DATA,
					  .offset = (uint64_t)at,
					  .bytes = {saver->data, (size_t)got},
				  });
		at += got;
	}
	return code;
}

static int put_contents(struct saver *saver, int fd)
{
	off_t end = 0;

	for (;;) {
		const off_t begin = lseek(fd, end, SEEK_DATA);

		if (begin < 0)
			return errno == ENXIO ? 0 : errno;
		end = lseek(fd, begin, SEEK_HOLE);
		if (end < 0)
			return errno;
		const int code = put_run(saver, fd, begin, end);
		if (code != 0)
			return code;
	}
}

static enum saved_kind kind_of(const struct stat *st)
{
	switch (st->st_mode & S_IFMT) {
	case S_IFDIR:
		return SAVED_FOLDER;
	case S_IFREG:
		return SAVED_FILE;
	case S_IFLNK:
		return SAVED_LINK;
	case S_IFIFO:
		return SAVED_PIPE;
	case S_IFSOCK:
		return SAVED_SOCKET;
	default:
		return overlay_is_removed(st) ? SAVED_REMOVED : SAVED_KINDS;
	}
}

/* Put the entry NAME of AT with the status ST. *KIND is what it became. */
static int put_entry(struct saver *saver, int at, const char *name, const struct stat *st,
		     enum saved_kind *kind)
{
	char target[PATH_MAX];
	struct saved_item item = {
		.tag = SAVED_ENTRY,
		.entry =
			{
				.kind = kind_of(st),
				.mode = st->st_mode & ALLPERMS,
				.user = st->st_uid,
				.group = st->st_gid,
				.times = {st->st_atim, st->st_mtim},
				.name = str_of(name),
			},
	};
	struct saved_entry *entry = &item.entry;

	if (entry->kind == SAVED_KINDS)
		return ENODEV; /* no cell can make it */
	if (++saver->entries > SAVED_ENTRIES_MAX)
		return E2BIG;
	/* The kernel itself gives removed names one inode. */
	if (st->st_nlink > 1 && entry->kind != SAVED_FOLDER && entry->kind != SAVED_REMOVED) {
		entry->number = st->st_ino;
		if (seen_before(&saver->seen, st->st_ino))
			entry->kind = SAVED_AGAIN;
	}
	if (entry->kind == SAVED_FILE)
		entry->size = (uint64_t)st->st_size;
	if (entry->kind == SAVED_LINK) {
		const ssize_t size = readlinkat(at, name, target, sizeof(target));

		if (size < 0 || size == sizeof(target))
			return size < 0 ? errno : ENAMETOOLONG;
		entry->target = (struct str){target, (size_t)size};
	}
	*kind = entry->kind;
	return put(saver, &item);
}

static int save_folder(struct saver *saver, int take_fd, size_t depth);

static int save_file(struct saver *saver, int fd)
{
	const int code = put_contents(saver, fd);

	return code != 0 ? code : put_extras(saver, fd);
}

static int save_name(struct saver *saver, int at, const char *name, size_t depth)
{
	enum saved_kind kind = SAVED_KINDS;
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno;
	int code = put_entry(saver, at, name, &st, &kind);
	if (code != 0 || (kind != SAVED_FOLDER && kind != SAVED_FILE))
		return code;
	auto_close int fd = openat(at, name,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC |
					   (kind == SAVED_FOLDER ? O_DIRECTORY : 0));
	if (fd < 0)
		return errno;
	code = kind == SAVED_FOLDER ? save_folder(saver, fd_take(&fd), depth + 1)
				    : save_file(saver, fd);
	return code != 0 ? code : put_close(saver);
}

/* The names in the folder TAKE_FD, which has DEPTH folders above it, and its attributes. */
static int save_folder(struct saver *saver, int take_fd, size_t depth)
{
	/* One descriptor for each level. */
	DIR *names = depth < SAVED_DEPTH_MAX ? fdopendir(take_fd) : NULL;
	int code = 0;

	if (names == NULL) {
		code = depth < SAVED_DEPTH_MAX ? errno : E2BIG;
		fd_close(&take_fd);
		return code;
	}
	while (code == 0) {
		errno = 0;
		const struct dirent *entry = readdir(names);

		if (entry == NULL) {
			code = errno;
			break;
		}
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			code = save_name(saver, take_fd, entry->d_name, depth);
	}
	if (code == 0)
		code = put_extras(saver, take_fd);
	(void)closedir(names);
	return code;
}

/* The upper folder of the tree NUMBER, under the name of the tree. */
static int save_tree(struct saver *saver, unsigned number)
{
	char name[NUMBER_ROOM];
	enum saved_kind kind;
	struct stat st;

	(void)snprintf(name, sizeof(name), "%u", number);
	auto_close int tree = openat(OUTSIDE_FOLDER, name,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int upper =
		tree < 0 ? -1
			 : openat(tree, VIEW_LAYER_UPPER,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (upper < 0 || fstat(upper, &st) < 0)
		return errno;
	int code = put_entry(saver, tree, name, &st, &kind);
	if (code == 0)
		code = save_folder(saver, fd_take(&upper), 0);
	return code != 0 ? code : put_close(saver);
}

/* In the process itself. Its memory goes with it. */
static int store(void *context)
{
	const struct order *order = context;
	struct saver saver = {
		.writer.fd = OUTSIDE_FILE,
		.most = order->most,
		.list = memory_alloc(XATTR_LIST_MAX),
		.value = memory_alloc(SAVED_EXTRA_MAX),
		.data = memory_alloc(SAVED_DATA_MAX),
	};
	int code = 0;

	for (unsigned i = 0; i < SAVED_TREES_MAX && code == 0; i++) {
		if ((order->which >> i & 1) != 0)
			code = save_tree(&saver, i);
	}
	return code != 0 ? code : put(&saver, &(const struct saved_item){.tag = SAVED_END});
}

/* Building. */

/* A folder or file that is open, and gets the rest of what ENTRY says when it is closed. */
struct open_place {
	int fd;
	struct saved_entry entry; /* without its texts */
};

struct builder {
	struct open_place places[SAVED_DEPTH_MAX + 1];
	size_t depth;
	int again;  /* the folder AGAIN_FOLDER */
	bool gives; /* files to their owners, as only root may */
};

/* The failures that mean that a file which was read tells of something impossible. */
static int unsound(int code)
{
	return code == EEXIST || code == ENOENT || code == EMLINK ? SAVED_UNSOUND : code;
}

/* Give NAME in FOLDER (an empty one: FOLDER itself) its owner. */
static int give(const struct builder *builder, int folder, const char *name,
		const struct saved_entry *entry)
{
	return builder->gives && fchownat(folder, name, entry->user, entry->group,
					  AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0
		       ? errno
		       : 0;
}

/* Keep the entry NAME of FOLDER, which has several names, under its number. */
static int keep_number(const struct builder *builder, int folder, const char *name,
		       const struct saved_entry *entry)
{
	char number[NUMBER_ROOM];

	if (entry->number == 0)
		return 0;
	(void)snprintf(number, sizeof(number), "%" PRIx64, entry->number);
	return linkat(folder, name, builder->again, number, 0) < 0 ? unsound(errno) : 0;
}

static int build_again(const struct builder *builder, int folder,
		       const struct saved_entry *entry)
{
	char number[NUMBER_ROOM];

	(void)snprintf(number, sizeof(number), "%" PRIx64, entry->number);
	return linkat(builder->again, number, folder, entry->name.data, 0) < 0
		       ? unsound(errno)
		       : 0;
}

/* A file or folder, which stays open. */
static int build_open(struct builder *builder, int folder, const char *name,
		      const struct saved_entry *entry)
{
	const bool is_folder = entry->kind == SAVED_FOLDER;

	if (is_folder && mkdirat(folder, name, S_IRWXU) < 0)
		return unsound(errno);
	auto_close int fd = openat(folder, name,
				   O_NOFOLLOW | O_CLOEXEC |
					   (is_folder ? O_RDONLY | O_DIRECTORY
						      : O_WRONLY | O_CREAT | O_EXCL),
				   S_IRUSR | S_IWUSR);
	if (fd < 0)
		return unsound(errno);
	if (!is_folder && entry->size > 0 && ftruncate(fd, (off_t)entry->size) < 0)
		return errno;
	const int code = keep_number(builder, folder, name, entry);
	if (code == 0)
		builder->places[builder->depth++] =
			(struct open_place){fd_take(&fd), *entry};
	return code;
}

/* The tree of ENTRY: the folder with its number, and the upper folder in it. */
static int build_tree(struct builder *builder, const struct saved_entry *entry)
{
	const char *name = entry->name.data;

	if (mkdirat(OUTSIDE_FOLDER, name, S_IRWXU) < 0)
		return unsound(errno);
	auto_close int tree = openat(OUTSIDE_FOLDER, name,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree < 0)
		return errno;
	const int code = give(builder, tree, "", entry);
	return code != 0 ? code : build_open(builder, tree, VIEW_LAYER_UPPER, entry);
}

/* A name that has all it gets at once. */
static int build_name(const struct builder *builder, int folder,
		      const struct saved_entry *entry)
{
	static const mode_t types[SAVED_KINDS] = {
		[SAVED_PIPE] = S_IFIFO,
		[SAVED_SOCKET] = S_IFSOCK,
		[SAVED_REMOVED] = S_IFCHR,
	};
	const char *name = entry->name.data;
	int code = entry->kind == SAVED_LINK
			   ? symlinkat(entry->target.data, folder, name)
			   : mknodat(folder, name, types[entry->kind] | entry->mode,
				     makedev(0, 0));

	code = code < 0 ? unsound(errno) : give(builder, folder, name, entry);
	if (code == 0 && utimensat(folder, name, entry->times, AT_SYMLINK_NOFOLLOW) < 0)
		code = errno;
	return code != 0 ? code : keep_number(builder, folder, name, entry);
}

static int build_entry(struct builder *builder, const struct saved_entry *entry)
{
	if (builder->depth == 0)
		return build_tree(builder, entry);
	const int folder = builder->places[builder->depth - 1].fd;

	if (entry->kind == SAVED_AGAIN)
		return build_again(builder, folder, entry);
	return entry->kind == SAVED_FOLDER || entry->kind == SAVED_FILE
		       ? build_open(builder, folder, entry->name.data, entry)
		       : build_name(builder, folder, entry);
}

static int build_data(int fd, uint64_t at, struct str bytes)
{
	while (bytes.size > 0) {
		const ssize_t done = pwrite(fd, bytes.data, bytes.size, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : EIO;
		at += (uint64_t)done;
		bytes = str_part(bytes, (size_t)done, bytes.size);
	}
	return 0;
}

/* A new owner takes set-id bits away, and a new name in a folder changes its time. */
static int build_close(struct builder *builder)
{
	const struct open_place *place = &builder->places[--builder->depth];
	auto_close int fd = place->fd;
	const int code = give(builder, fd, "", &place->entry);

	if (code != 0)
		return code;
	return fchmod(fd, place->entry.mode) < 0 || futimens(fd, place->entry.times) < 0
		       ? errno
		       : 0;
}

static int take(void *context, const struct saved_item *item)
{
	struct builder *builder = context;
	const int open = builder->depth > 0 ? builder->places[builder->depth - 1].fd : -1;

	switch (item->tag) {
	case SAVED_ENTRY:
		return build_entry(builder, &item->entry);
	case SAVED_EXTRA:
		return fsetxattr(open, item->attribute.data, item->bytes.data,
				 item->bytes.size, 0) < 0
			       ? errno
			       : 0;
	case SAVED_DATA:
		return build_data(open, item->offset, item->bytes);
	case SAVED_CLOSE:
		return build_close(builder);
	case SAVED_END:
		break;
	}
	return 0;
}

/* Remove the folder in which entries have waited. */
static int again_remove(int again)
{
	DIR *names = fd_open_names(again);

	for (const struct dirent *entry = names != NULL ? readdir(names) : NULL;
	     entry != NULL; entry = readdir(names))
		(void)unlinkat(again, entry->d_name, 0);
	if (names != NULL)
		(void)closedir(names);
	return unlinkat(OUTSIDE_FOLDER, AGAIN_FOLDER, AT_REMOVEDIR) < 0 ? errno : 0;
}

/* In the process itself. */
static int build(void *context)
{
	const struct order *order = context;
	struct builder *builder = memory_alloc(sizeof(*builder));
	struct saved_reader reader = {.take = take,
				      .context = builder,
				      .bytes_most = order->most};

	if (mkdirat(OUTSIDE_FOLDER, AGAIN_FOLDER, S_IRWXU) < 0)
		return errno;
	builder->gives = order->is_root;
	builder->again = openat(OUTSIDE_FOLDER, AGAIN_FOLDER,
				O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (builder->again < 0)
		return errno;
	const int code = saved_read(&reader, OUTSIDE_FILE);
	if (code != 0)
		return code;
	return reader.trees == order->which ? again_remove(builder->again) : SAVED_UNSOUND;
}

/* The callers. */

static int run(enum outside_work work, int trees, uint64_t which, int file, uint64_t most,
	       int (*act)(void *context))
{
	const struct outside_folder walls = {work, trees, file};
	struct order order = {which, most, geteuid() == 0};

	return outside_run(&walls, act, &order);
}

int saving_store(int trees, uint64_t which, int file, uint64_t most)
{
	const int code = run(OUTSIDE_READS, trees, which, file, most, store);

	if (code != EACCES)
		return code;
	if (ftruncate(file, 0) < 0 || lseek(file, 0, SEEK_SET) < 0)
		return errno;
	return run(OUTSIDE_READS_ALL, trees, which, file, most, store);
}

int saving_build(int trees, uint64_t which, int file, uint64_t most)
{
	return run(OUTSIDE_BUILDS, trees, which, file, most, build);
}
