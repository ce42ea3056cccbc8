/* saving: what an upper folder holds comes back as it was, and a forged file builds nothing else. */
#include "../base/tree.h"
#include "../base/unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/memory.h"
#include "view/saved.h"
#include "view/saving.h"

enum { SNAP_MAX = 16 << 20, MOST = 64 << 20, HOLE = 3 << 20 };

/* The folders `old`, `new` and the file `kept` beside them. */
struct place {
	char folder[64];
	int old, new, file;
	bool attributes;
};

static int open_at(int at, const char *name, int flags)
{
	const int fd = openat(at, name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);

	assert_true(fd >= 0);
	return fd;
}

static void write_at(int at, const char *name, const char *text)
{
	const int fd = open_at(at, name, O_WRONLY | O_CREAT | O_TRUNC);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static int setup(void **state)
{
	static struct place place;
	char name[96];

	(void)snprintf(place.folder, sizeof(place.folder), "%s/saving-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (mkdtemp(place.folder) == NULL)
		return -1;
	const int top = open(place.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	write_at(top, "kept", "kept");
	assert_int_equal(mkdirat(top, "old", 0700), 0);
	assert_int_equal(mkdirat(top, "new", 0700), 0);
	place.old = open_at(top, "old", O_RDONLY | O_DIRECTORY);
	place.new = open_at(top, "new", O_RDONLY | O_DIRECTORY);
	(void)snprintf(name, sizeof(name), "%s/file", place.folder);
	place.file = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_int_equal(mkdirat(place.old, "0", 0700), 0);
	assert_int_equal(mkdirat(place.old, "0/upper", 0755), 0);
	place.attributes = fsetxattr(place.old, "user.overlay.tried", "", 0, 0) == 0;
	(void)close(top);
	*state = &place;
	return place.file < 0;
}

static int teardown(void **state)
{
	const struct place *place = *state;

	(void)close(place->old);
	(void)close(place->new);
	(void)close(place->file);
	fd_folder_remove(place->folder);
	return 0;
}

/* All that can be seen of a folder, as text. */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The kernel lists attributes in any order. */
static void snap_extras(int fd, struct buf *out)
{
	char list[4096], value[4096];
	const char *names[64];
	const ssize_t size = flistxattr(fd, list, sizeof(list));
	size_t count = 0;

	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(list + at) + 1)
		names[count++] = list + at;
	qsort(names, count, sizeof(names[0]), by_text);
	for (size_t i = 0; i < count; i++) {
		const ssize_t length = fgetxattr(fd, names[i], value, sizeof(value));

		assert_true(length >= 0);
		(void)buf_addf(out, "  %s=", names[i]);
		for (ssize_t at = 0; at < length; at++)
			(void)buf_addf(out, "%02x", (unsigned char)value[at]);
		(void)buf_addc(out, '\n');
	}
}

/* Its owner cannot open everything; a test may, and puts the permissions back. */
static int open_closed(int at, const char *name, const struct stat *st)
{
	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode)) {
		assert_int_equal(fchmodat(at, name, 0700, 0), 0);
		const int fd = open_at(at, name, O_RDONLY);
		assert_int_equal(fchmod(fd, st->st_mode & ALLPERMS), 0);
		return fd;
	}
	return -1;
}

static void snap_contents(int fd, struct buf *out)
{
	char data[4096];

	for (off_t at = lseek(fd, 0, SEEK_DATA); at >= 0; at = lseek(fd, at, SEEK_DATA)) {
		const off_t end = lseek(fd, at, SEEK_HOLE);

		(void)buf_addf(out, "  %jd-%jd ", (intmax_t)at, (intmax_t)end);
		while (at < end) {
			const ssize_t got = pread(fd, data, sizeof(data), at);

			assert_true(got > 0);
			for (ssize_t i = 0; i < got; i++) {
				if (data[i] != '\0')
					(void)buf_addc(out, data[i]);
			}
			at += got;
		}
		(void)buf_addc(out, '\n');
	}
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void snap(int at, const char *name, struct buf *out)
{
	char target[PATH_MAX] = "";
	struct dirent **names = NULL;
	struct stat st;

	assert_int_equal(fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	if (S_ISLNK(st.st_mode))
		assert_true(readlinkat(at, name, target, sizeof(target) - 1) > 0);
	/* The kernel counts the links of removed names as it likes. */
	(void)buf_addf(out, "%s %o %u %u %zu %jd %jd.%09ld %jx %s\n", name, st.st_mode,
		       st.st_uid, st.st_gid, S_ISCHR(st.st_mode) ? 0 : (size_t)st.st_nlink,
		       S_ISDIR(st.st_mode) ? 0 : (intmax_t)st.st_size,
		       (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
		       (uintmax_t)st.st_rdev, target);
	const int fd = open_closed(at, name, &st);
	if (fd < 0)
		return;
	snap_extras(fd, out);
	if (S_ISREG(st.st_mode))
		snap_contents(fd, out);
	assert_int_equal(fchmod(fd, 0700), 0);
	const int count =
		S_ISDIR(st.st_mode) ? scandirat(fd, ".", &names, NULL, by_name) : 0;
	for (int i = 0; i < count; i++) {
		if (strcmp(names[i]->d_name, ".") != 0 &&
		    strcmp(names[i]->d_name, "..") != 0)
			snap(fd, names[i]->d_name, out);
		free(names[i]);
	}
	free(names);
	assert_int_equal(fchmod(fd, st.st_mode & ALLPERMS), 0);
	(void)close(fd);
}

static void same(const struct place *place)
{
	struct buf old, new;

	buf_init(&old, SNAP_MAX);
	buf_init(&new, SNAP_MAX);
	snap(place->old, "0/upper", &old);
	snap(place->new, "0/upper", &new);
	struct str a = buf_str(&old), b = buf_str(&new), was = {0}, is = {0};
	while (str_next_line(&a, &was) && str_next_line(&b, &is)) {
		if (!str_equal(was, is))
			fail_msg("%.*s\nis not\n%.*s", (int)was.size, was.data,
				 (int)is.size, is.data);
	}
	assert_int_equal(old.size, new.size);
	buf_fini(&old);
	buf_fini(&new);
}

static void is_empty_but(int fd, size_t most)
{
	DIR *names = fd_open_names(fd);
	size_t count = 0;

	while (readdir(names) != NULL)
		count++;
	(void)closedir(names);
	assert_true(count <= 2 + most);
}

static int upper_of(const struct place *place)
{
	return open_at(place->old, "0/upper", O_RDONLY | O_DIRECTORY);
}

/* Every shape. */

static void make_socket(int at, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char own[FD_NAME_ROOM];

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s",
		       fd_name(at, own), name);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	(void)close(fd);
}

static void make_extras(const struct place *place, int upper)
{
	static const char list[] = {2, 0, 0,  0,  1,  0,  7,  0, -1, -1, -1, -1, 4,  0,
				    4, 0, -1, -1, -1, -1, 32, 0, 0,  0,  -1, -1, -1, -1};
	const int folder = open_at(upper, "again", O_RDONLY | O_DIRECTORY);
	const int file = open_at(upper, "holes", O_RDONLY);

	if (place->attributes) {
		assert_int_equal(fsetxattr(folder, "user.overlay.opaque", "y", 1, 0), 0);
		assert_int_equal(fsetxattr(folder, "user.overlay.impure", "y", 1, 0), 0);
		assert_int_equal(fsetxattr(file, "user.overlay.origin", "\0\xfb\xff", 3, 0),
				 0);
		assert_int_equal(fsetxattr(file, "user.overlay.overlay.x", "z", 1, 0), 0);
		assert_int_equal(fsetxattr(file, "user.mine", "", 0, 0), 0);
	}
	(void)!fsetxattr(folder, "system.posix_acl_default", list, sizeof(list), 0);
	(void)close(folder);
	(void)close(file);
}

static void make_shapes(const struct place *place)
{
	const struct timespec times[2] = {{12345, 6789}, {1000000000, 999999999}};
	const int upper = upper_of(place);

	write_at(upper, "plain", "text\n");
	write_at(upper, "empty", "");
	write_at(upper, "n\xff\n m", "no UTF-8");
	write_at(upper, "holes", "begin");
	const int holes = open_at(upper, "holes", O_WRONLY);
	assert_int_equal(pwrite(holes, "end", 3, HOLE), 3);
	assert_int_equal(ftruncate(holes, 2 * HOLE), 0);
	(void)close(holes);
	assert_int_equal(mkdirat(upper, "again", 0755), 0);
	make_extras(place, upper);
	assert_int_equal(mkdirat(upper, "again/deep", 0711), 0);
	write_at(upper, "again/deep/f", "x");
	assert_int_equal(linkat(upper, "plain", upper, "again/deep/second", 0), 0);
	assert_int_equal(symlinkat("../../kept", upper, "link"), 0);
	assert_int_equal(linkat(upper, "link", upper, "again/link too", 0), 0);
	assert_int_equal(symlinkat("\xff/nowhere", upper, "again/lost"), 0);
	assert_int_equal(mkfifoat(upper, "pipe", 0640), 0);
	assert_int_equal(linkat(upper, "pipe", upper, "pipe too", 0), 0);
	make_socket(upper, "socket");
	assert_int_equal(mknodat(upper, "removed", S_IFCHR, makedev(0, 0)), 0);
	assert_int_equal(linkat(upper, "removed", upper, "removed too", 0), 0);
	write_at(upper, "set-id", "#!/bin/sh\n");
	if (geteuid() == 0)
		assert_int_equal(fchownat(upper, "set-id", 12345, 54321, 0), 0);
	assert_int_equal(fchmodat(upper, "set-id", 06755, 0), 0);
	assert_int_equal(utimensat(upper, "plain", times, 0), 0);
	assert_int_equal(utimensat(upper, "link", times, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(utimensat(upper, "removed", times, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(utimensat(upper, "again", times, 0), 0);
	assert_int_equal(utimensat(upper, ".", times, 0), 0);
	(void)close(upper);
}

static void every_shape_comes_back(void **state)
{
	const struct place *place = *state;

	make_shapes(place);
	assert_int_equal(saving_store(place->old, 1, place->file, MOST), 0);
	assert_int_equal(saving_build(place->new, 1, place->file, MOST), 0);
	same(place);
	is_empty_but(place->new, 1);
}

static void what_its_owner_may_not_read_comes_back(void **state)
{
	const struct place *place = *state;
	const int upper = upper_of(place);

	write_at(upper, "closed", "secret");
	assert_int_equal(mkdirat(upper, "shut", 0700), 0);
	write_at(upper, "shut/in", "x");
	assert_int_equal(fchmodat(upper, "shut", 0, 0), 0);
	assert_int_equal(fchmodat(upper, "closed", 0, 0), 0);
	(void)close(upper);
	const int dumpable = prctl(PR_GET_DUMPABLE);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	const int code = saving_store(place->old, 1, place->file, MOST);
	(void)prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0);
	if (code == EACCES)
		unit_skip("the kernel makes no user namespace here");
	assert_int_equal(code, 0);
	assert_int_equal(saving_build(place->new, 1, place->file, MOST), 0);
	same(place);
}

static void many_names_of_files_come_back(void **state)
{
	const struct place *place = *state;
	const int upper = upper_of(place);
	char name[32], other[32];

	for (int i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		(void)snprintf(other, sizeof(other), "g%d", 499 - i);
		write_at(upper, name, name);
		assert_int_equal(linkat(upper, name, upper, other, 0), 0);
	}
	(void)close(upper);
	assert_int_equal(saving_store(place->old, 1, place->file, MOST), 0);
	assert_int_equal(saving_build(place->new, 1, place->file, MOST), 0);
	same(place);
	is_empty_but(place->new, 1);
}

static void several_trees_come_back(void **state)
{
	const struct place *place = *state;
	struct stat st;

	assert_int_equal(mkdirat(place->old, "1", 0700), 0);
	assert_int_equal(mkdirat(place->old, "1/upper", 0700), 0);
	write_at(place->old, "1/upper/f", "second");
	assert_int_equal(saving_store(place->old, 3, place->file, MOST), 0);
	assert_int_equal(saving_build(place->new, 1, place->file, MOST), SAVED_UNSOUND);
	fd_folder_remove(place->folder);
	assert_int_equal(mkdir(place->folder, 0700), 0);
	const int again = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(saving_build(again, 3, place->file, MOST), 0);
	assert_int_equal(fstatat(again, "1/upper/f", &st, 0), 0);
	assert_int_equal(st.st_size, 6);
	(void)close(again);
}

static void one_of_the_trees_comes_back(void **state)
{
	const struct place *place = *state;
	struct stat st;

	assert_int_equal(mkdirat(place->old, "63", 0700), 0);
	assert_int_equal(mkdirat(place->old, "63/upper", 0700), 0);
	write_at(place->old, "63/upper/f", "second");
	const uint64_t which = UINT64_C(1) << 63;
	assert_int_equal(saving_store(place->old, which, place->file, MOST), 0);
	assert_int_equal(saving_build(place->new, which, place->file, MOST), 0);
	assert_int_equal(fstatat(place->new, "63/upper/f", &st, 0), 0);
	assert_int_equal(fstatat(place->new, "0", &st, 0), -1);
}

static void more_than_the_limit_is_not_saved(void **state)
{
	const struct place *place = *state;
	const int upper = upper_of(place);

	write_at(upper, "f", "12345");
	(void)close(upper);
	assert_int_equal(saving_store(place->old, 1, place->file, 4), SAVED_OVER);
	assert_int_equal(ftruncate(place->file, 0), 0);
	assert_int_equal(lseek(place->file, 0, SEEK_SET), 0);
	assert_int_equal(saving_store(place->old, 1, place->file, 5), 0);
	assert_int_equal(saving_build(place->new, 1, place->file, 4), SAVED_OVER);
}

static void a_tree_that_is_too_deep_is_not_saved(void **state)
{
	const struct place *place = *state;
	int at = upper_of(place);

	for (int i = 0; i < SAVED_DEPTH_MAX; i++) {
		if (i == SAVED_DEPTH_MAX - 1) {
			assert_int_equal(saving_store(place->old, 1, place->file, MOST), 0);
			assert_int_equal(saving_build(place->new, 1, place->file, MOST), 0);
		}
		assert_int_equal(mkdirat(at, "d", 0700), 0);
		const int next = open_at(at, "d", O_RDONLY | O_DIRECTORY);

		(void)close(at);
		at = next;
	}
	(void)close(at);
	assert_int_equal(saving_store(place->old, 1, place->file, MOST), E2BIG);
}

static void a_link_in_place_of_a_tree_leads_nowhere(void **state)
{
	const struct place *place = *state;

	assert_int_equal(unlinkat(place->old, "0/upper", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("../../new", place->old, "0/upper"), 0);
	assert_int_not_equal(saving_store(place->old, 1, place->file, MOST), 0);
	assert_int_equal(unlinkat(place->old, "0/upper", 0), 0);
	assert_int_equal(unlinkat(place->old, "0", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("../new", place->old, "0"), 0);
	assert_int_not_equal(saving_store(place->old, 1, place->file, MOST), 0);
}

static void a_device_is_not_saved(void **state)
{
	const struct place *place = *state;
	const int upper = upper_of(place);

	if (mknodat(upper, "null", S_IFCHR | 0600, makedev(1, 3)) < 0) {
		(void)close(upper);
		unit_skip("only root makes devices");
	}
	(void)close(upper);
	assert_int_equal(saving_store(place->old, 1, place->file, MOST), ENODEV);
}

/* Damaged and forged files. */

static size_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (size_t)st.st_size;
}

static int take(void *context, const struct saved_item *item)
{
	(void)context;
	assert_true(item->tag != SAVED_END);
	return 0;
}

static int read_saved(int fd)
{
	struct saved_reader reader = {.take = take, .bytes_most = MOST};

	return saved_read(&reader, fd);
}

static void a_damaged_file_is_refused(void **state)
{
	const struct place *place = *state;
	const int upper = upper_of(place);
	char byte, other;

	write_at(upper, "f", "content");
	assert_int_equal(symlinkat("target", upper, "l"), 0);
	(void)close(upper);
	assert_int_equal(saving_store(place->old, 1, place->file, MOST), 0);
	assert_int_equal(read_saved(place->file), 0);
	const size_t size = size_of(place->file);
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(pread(place->file, &byte, 1, (off_t)i), 1);
		other = (char)(byte ^ 0x10);
		assert_int_equal(pwrite(place->file, &other, 1, (off_t)i), 1);
		if (read_saved(place->file) == 0)
			fail_msg("byte %zu of %zu does not count", i, size);
		assert_int_equal(pwrite(place->file, &byte, 1, (off_t)i), 1);
	}
	assert_int_equal(pwrite(place->file, "x", 1, (off_t)size), 1);
	assert_int_equal(read_saved(place->file), SAVED_UNSOUND);
	for (size_t i = size; i-- > 0;) {
		assert_int_equal(ftruncate(place->file, (off_t)i), 0);
		assert_int_equal(read_saved(place->file), SAVED_UNSOUND);
	}
	assert_int_equal(saving_build(place->new, 1, place->file, MOST), SAVED_UNSOUND);
}

#define ENTRY(what, called, ...)                         \
	{                                                \
		.tag = SAVED_ENTRY, .entry =             \
		{.kind = (what),                         \
		 .name = {(called), sizeof(called) - 1}, \
		 __VA_ARGS__ }                           \
	}
#define DATA(at, text)                                                                  \
	{                                                                               \
		.tag = SAVED_DATA, .offset = (at), .bytes = {(text), sizeof(text) - 1 } \
	}
#define EXTRA(name, text)                                                               \
	{                                                                               \
		.tag = SAVED_EXTRA, .attribute = {(name), sizeof(name) - 1}, .bytes = { \
			(text),                                                         \
			sizeof(text) - 1                                                \
		}                                                                       \
	}
#define CLOSE                      \
	{                          \
		.tag = SAVED_CLOSE \
	}
enum { ITEMS = 8 };

/* Write ITEMS, up to one that is zero, between the tree "0" and its end, and build them. */
static int forge(const struct place *place, const struct saved_item items[ITEMS], bool whole)
{
	const struct saved_item tree = ENTRY(SAVED_FOLDER, "0"), over = CLOSE,
				end = {.tag = SAVED_END};
	struct saved_writer writer = {.fd = place->file};

	assert_int_equal(ftruncate(place->file, 0), 0);
	assert_int_equal(lseek(place->file, 0, SEEK_SET), 0);
	if (!whole)
		assert_int_equal(saved_write(&writer, &tree), 0);
	for (size_t i = 0; i < ITEMS && items[i].tag != 0; i++)
		assert_int_equal(saved_write(&writer, &items[i]), 0);
	if (!whole)
		assert_int_equal(saved_write(&writer, &over), 0);
	assert_int_equal(saved_write(&writer, &end), 0);
	fd_folder_remove(place->folder);
	assert_int_equal(mkdir(place->folder, 0700), 0);
	const int folder = open(place->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(folder, "in", 0700), 0);
	const int in = open_at(folder, "in", O_RDONLY | O_DIRECTORY);
	const int code = saving_build(in, 1, place->file, MOST);
	is_empty_but(folder, 1);
	(void)close(in);
	(void)close(folder);
	return code;
}

static void a_forged_file_builds_nothing_else(void **state)
{
	static const struct saved_item rows[][ITEMS] = {
		{ENTRY(SAVED_FILE, ".."), CLOSE},
		{ENTRY(SAVED_FOLDER, ".."), CLOSE},
		{ENTRY(SAVED_FOLDER, "."), CLOSE},
		{ENTRY(SAVED_FILE, "../../f"), CLOSE},
		{ENTRY(SAVED_FILE, "/etc/f"), CLOSE},
		{ENTRY(SAVED_FILE, "a/b"), CLOSE},
		{ENTRY(SAVED_FILE, ""), CLOSE},
		{ENTRY(SAVED_FILE, "a\0b"), CLOSE},
		{ENTRY(SAVED_LINK, "l")},
		{ENTRY(SAVED_LINK, "l", .target = {"a\0b", 3})},
		{ENTRY(SAVED_FILE, "f", .target = {"x", 1}), CLOSE},
		{ENTRY(SAVED_KINDS, "f")},
		{ENTRY(SAVED_FILE, "f", .mode = S_IFBLK | 0600), CLOSE},
		{ENTRY(SAVED_FILE, "f", .times = {{0, 1000000000}, {0, 0}}), CLOSE},
		{ENTRY(SAVED_FILE, "f", .size = UINT64_MAX), CLOSE},
		{ENTRY(SAVED_FOLDER, "d", .size = 1), CLOSE},
		{ENTRY(SAVED_FOLDER, "d", .number = 1), CLOSE},
		{ENTRY(SAVED_REMOVED, "r", .number = 1)},
		{ENTRY(SAVED_AGAIN, "a")},
		{ENTRY(SAVED_AGAIN, "a", .number = 7)},
		/* what was built does not lead out, and is not built again */
		{ENTRY(SAVED_LINK, "l", .target = {"../../..", 8}),
		 ENTRY(SAVED_FOLDER, "l"), ENTRY(SAVED_FILE, "f"), CLOSE, CLOSE},
		{ENTRY(SAVED_LINK, "l", .target = {"../../f", 7}), ENTRY(SAVED_FILE, "l"),
		 CLOSE},
		{ENTRY(SAVED_FILE, "f"), CLOSE, ENTRY(SAVED_FILE, "f"), CLOSE},
		{ENTRY(SAVED_FILE, "f", .number = 1), CLOSE,
		 ENTRY(SAVED_FILE, "g", .number = 1), CLOSE},
		/* the grammar */
		{ENTRY(SAVED_FILE, "f")},
		{CLOSE, CLOSE},
		{ENTRY(SAVED_FILE, "f"), ENTRY(SAVED_FILE, "g"), CLOSE, CLOSE},
		{DATA(0, "x")},
		{ENTRY(SAVED_FILE, "f", .size = 3), DATA(0, "four"), CLOSE},
		{ENTRY(SAVED_FILE, "f", .size = 3), DATA(UINT64_MAX, "x"), CLOSE},
		{ENTRY(SAVED_FILE, "f", .size = 9), DATA(4, "four"), DATA(0, "x"), CLOSE},
		{ENTRY(SAVED_FILE, "f", .size = 9), DATA(0, ""), CLOSE},
		{ENTRY(SAVED_FILE, "f"), EXTRA("trusted.overlay.opaque", "y"), CLOSE},
		{ENTRY(SAVED_FILE, "f"), EXTRA("security.capability", "y"), CLOSE},
		{ENTRY(SAVED_FILE, "f"), EXTRA("user.overlay.redirect", "/etc"), CLOSE},
		{ENTRY(SAVED_FILE, "f"), EXTRA("user.overlay.metacopy", ""), CLOSE},
		{ENTRY(SAVED_FILE, "f"), EXTRA("user.overlay.whiteout", "y"), CLOSE},
	};
	static const struct saved_item whole[][ITEMS] = {
		{ENTRY(SAVED_FOLDER, "1"), CLOSE},
		{ENTRY(SAVED_FOLDER, "upper"), CLOSE},
		{ENTRY(SAVED_FILE, "0"), CLOSE},
		{ENTRY(SAVED_FOLDER, "0"), CLOSE, ENTRY(SAVED_FOLDER, "0"), CLOSE},
		{ENTRY(SAVED_FOLDER, "1"), CLOSE, ENTRY(SAVED_FOLDER, "0"), CLOSE},
		{ENTRY(SAVED_FOLDER, "00"), CLOSE},
		{ENTRY(SAVED_FOLDER, "64"), CLOSE},
		{ENTRY(SAVED_FOLDER, "0"), CLOSE, EXTRA("user.x", "y")},
		{ENTRY(SAVED_FOLDER, "0"), CLOSE, ENTRY(SAVED_FOLDER, "1"), CLOSE},
		{ENTRY(SAVED_FOLDER, "0")},
		{{0}},
	};
	static const struct saved_item fine[ITEMS] = {ENTRY(SAVED_FILE, "f", .size = 9),
						      DATA(5, "x"), CLOSE};
	const struct place *place = *state;

	assert_int_equal(forge(place, fine, false), 0);
	for (size_t i = 0; i < UNIT_COUNT(rows); i++) {
		if (forge(place, rows[i], false) != SAVED_UNSOUND)
			fail_msg("row %zu is taken", i);
	}
	for (size_t i = 0; i < UNIT_COUNT(whole); i++) {
		if (forge(place, whole[i], true) != SAVED_UNSOUND)
			fail_msg("row %zu of whole ones is taken", i);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_shape_comes_back),
		CASE(what_its_owner_may_not_read_comes_back),
		CASE(many_names_of_files_come_back),
		CASE(several_trees_come_back),
		CASE(one_of_the_trees_comes_back),
		CASE(more_than_the_limit_is_not_saved),
		CASE(a_tree_that_is_too_deep_is_not_saved),
		CASE(a_link_in_place_of_a_tree_leads_nowhere),
		CASE(a_device_is_not_saved),
		CASE(a_damaged_file_is_refused),
		CASE(a_forged_file_builds_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
