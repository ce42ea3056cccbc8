/* snapshot: folders with a description and a lock, which appear and go by one rename. */

#include "image/snapshot.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "image/unpacked.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define META     "meta.json"
#define LOCK     "lock"
#define TREE     "tree"
#define LAYER    "layer"
#define UNSYNCED "unsynced"
#define MAKING   ".new-"
#define REMOVING ".old-"

enum {
	VERSION = 1,
	META_MAX = 64 << 10,
	NAME_ROOM = 32, /* of one that is being made or removed */
	FOLDER_MODE = 0700,
	LAYER_MODE = 0755, /* the root of a cell, which may be of another user (root's) */
	WORD_MAX = 8192,   /* bytes of the word of a base */
	DIGEST_MAX = 80,
	DISK_MAX = PATH_MAX + 64, /* bytes of what names a file system and its place */
	FILE_MODE = 0600,
};

/* meta.json */
struct meta {
	int version;
	char *from, *disk; /* the second may be NULL */
	const char *digest;
	int64_t entries, bytes, created_ms;
	char *base, *base_digest; /* of a root's layer; or NULL */
	const char *layer;
};

static const struct field meta_fields[] = {
	FIELD(struct meta, version, .min = VERSION, .max = VERSION),
	FIELD_PATH(struct meta, from, "from"),
	FIELD_PATH(struct meta, disk, "disk", .optional = true),
	FIELD(struct meta, digest, .min = HASH_HEX, .max = HASH_HEX),
	FIELD(struct meta, entries, .max = INT64_MAX),
	FIELD(struct meta, bytes, .max = INT64_MAX),
	FIELD(struct meta, created_ms, .max = INT64_MAX),
	FIELD_PATH(struct meta, base, "base", .optional = true, .max = WORD_MAX),
	FIELD(struct meta, base_digest, .optional = true, .max = DIGEST_MAX),
	FIELD(struct meta, layer, .optional = true, .min = HASH_HEX, .max = HASH_HEX),
	{0},
};

bool snapshot_place(const char *data_home, const char *home, struct buf *folder)
{
	return path_xdg(data_home, home, ".local/share", "glovebox/snapshots", folder);
}

bool snapshot_check_name(const char *name, struct err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	const size_t size = strlen(name);

	return (size > 0 && size <= SNAPSHOT_NAME_MAX && name[0] != '.' &&
		strspn(name, letters) == size) ||
	       err_set(err, EINVAL,
		       "a snapshot's name has 1 to %d letters, digits, '.', '_' and '-', and does "
		       "not begin with a dot",
		       SNAPSHOT_NAME_MAX);
}

/* Folders. */

static int open_folder(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool make_name(const char *prefix, char name[NAME_ROOM])
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return false;
	(void)snprintf(name, NAME_ROOM, "%s%08" PRIx32, prefix, number);
	return true;
}

/* Lock the snapshot in the folder AT; -1 with errno, EWOULDBLOCK when somebody else has it. */
static int lock_at(int at, int how)
{
	int fd = openat(at, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);

	if (fd >= 0 && flock(fd, how | LOCK_NB) < 0) {
		const int code = errno;

		fd_close(&fd);
		errno = code;
	}
	return fd;
}

/* The file "lock" stands last, so that nobody takes one that is half removed. */
static void remove_folder(int folder, const char *name)
{
	auto_close int at = open_folder(folder, name);

	if (at < 0)
		return;
	fd_folder_remove_at(at, TREE);
	fd_folder_remove_at(at, LAYER);
	fd_folder_remove_at(folder, name);
}

static void tidy(int folder)
{
	struct fd_names names = {0};

	fd_names_read(&names, folder, SNAPSHOT_LIST_MAX, true);
	for (size_t i = 0; i < names.count; i++) {
		const struct str name = str_of(names.items[i]);
		auto_close int at = -1, lock = -1;

		if (!str_starts(name, STR(MAKING)) && !str_starts(name, STR(REMOVING)))
			continue;
		at = fd_hold(folder, name.data, LOCK_EX | LOCK_NB, 0);
		lock = at >= 0 ? lock_at(at, LOCK_EX) : -1;
		if (lock >= 0)
			remove_folder(folder, name.data);
	}
	fd_names_fini(&names);
}

void snapshot_tidy(const char *folder)
{
	auto_close int at = open_folder(AT_FDCWD, folder);

	if (at >= 0)
		tidy(at);
}

static void set_paths(struct snapshot *snapshot, const char *folder, const char *name)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s/%s", folder, name);
	free(snapshot->path);
	snapshot->path = memory_copy(path.data);
	(void)buf_adds(&path, "/" TREE);
	free(snapshot->tree);
	snapshot->tree = memory_copy(path.data);
	if (snapshot->base != NULL) {
		buf_truncate(&path, path.size - strlen(TREE));
		(void)buf_adds(&path, LAYER);
		free(snapshot->layer);
		snapshot->layer = memory_copy(path.data);
	}
	buf_fini(&path);
}

/* The workspace. */

/* Cut the last name off the absolute path AT; false: it is the root. */
static bool cut_name(char *at)
{
	char *slash = strrchr(at, '/');

	if (slash == NULL || at[1] == '\0')
		return false;
	slash[slash == at ? 1 : 0] = '\0';
	return true;
}

/*
 * Append to DISK what names the file system of the absolute PATH, or of the nearest folder above that is
 * there, and the place where it is mounted. The id of a file system stays over a restart, the number of its
 * device need not; only network disks have no id. False: it cannot be told.
 */
static bool find_disk(const char *path, struct buf *disk)
{
	auto_free char *at = memory_copy(path);
	struct statx about;
	struct statfs fs;
	uint32_t id[2];

	while (statx(AT_FDCWD, at, 0, STATX_TYPE, &about) < 0) {
		if ((errno != ENOENT && errno != ENOTDIR) || !cut_name(at))
			return false;
	}
	/* An encrypted folder shows no plain names without its key. */
	if ((about.stx_attributes & STATX_ATTR_ENCRYPTED) != 0 || statfs(at, &fs) < 0)
		return false;
	memcpy(id, &fs.f_fsid, sizeof(id));
	if (id[0] == 0 && id[1] == 0) {
		id[0] = about.stx_dev_major;
		id[1] = about.stx_dev_minor;
	}
	while ((about.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0 && cut_name(at)) {
		if (statx(AT_FDCWD, at, 0, STATX_TYPE, &about) < 0)
			return false;
	}
	return buf_addf(disk, "%lx %08" PRIx32 "%08" PRIx32 " %s",
			(unsigned long)fs.f_type, id[0], id[1], at);
}

enum snapshot_workspace snapshot_find_workspace(const struct snapshot *snapshot)
{
	const char *from = snapshot->from;
	enum snapshot_workspace found = SNAPSHOT_WORKSPACE_AWAY;
	struct stat st;
	struct buf disk;

	if (from == NULL || from[0] != '/' || stat(from, &st) == 0 ||
	    (errno != ENOENT && errno != ENOTDIR))
		return SNAPSHOT_WORKSPACE_THERE;
	buf_init(&disk, DISK_MAX);
	if (snapshot->disk != NULL && find_disk(from, &disk) &&
	    strcmp(disk.data, snapshot->disk) == 0)
		found = SNAPSHOT_WORKSPACE_GONE;
	buf_fini(&disk);
	return found;
}

/* Making one. */

static bool say_taken(const char *name, struct err *err)
{
	return err_set(err, EEXIST,
		       "there is a snapshot %s already; choose another name, or remove it: "
		       "glovebox base prune --snapshot %s",
		       name, name);
}

/*
 * Make the folder MAKING in AT, and lock the snapshot in it: *LOCK. As long as *MADE is open, the
 * folder has a lock of its own, without which nobody tidies it.
 */
static bool make_locked(int at, char making[NAME_ROOM], int *made, int *lock)
{
	(void)snprintf(making, NAME_ROOM, MAKING "XXXXXX");
	*made = fd_hold_new(at, making, LOCK_EX, FOLDER_MODE);
	*lock = *made >= 0 ? lock_at(*made, LOCK_EX) : -1;
	return *lock >= 0;
}

bool snapshot_begin(const char *folder, const char *name, struct snapshot *snapshot,
		    struct err *err)
{
	auto_close int at = -1, made = -1;
	char making[NAME_ROOM];
	struct stat st;
	struct buf path;
	bool ok;

	*snapshot = (struct snapshot){.lock = -1};
	if (!snapshot_check_name(name, err))
		return false;
	buf_init(&path, PATH_MAX);
	ok = buf_addf(&path, "%s/%s", folder, name) && fd_make_folders(path.data, err);
	buf_fini(&path);
	if (!ok)
		return false;
	at = open_folder(AT_FDCWD, folder);
	if (at < 0)
		return err_set(err, errno, "%s: %s", folder, strerror(errno));
	tidy(at);
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return say_taken(name, err);
	if (!make_locked(at, making, &made, &snapshot->lock)) {
		(void)err_set(err, errno, "%s/%s: %s", folder, making, strerror(errno));
		if (made >= 0)
			fd_folder_remove_at(at, making);
		return false;
	}
	snapshot->is_new = true;
	snapshot->name = memory_copy(name);
	snapshot->created_ms = clock_wall_ms();
	set_paths(snapshot, folder, making);
	if (mkdirat(made, TREE, FOLDER_MODE) < 0)
		return err_set(err, errno, "%s: %s", snapshot->path, strerror(errno));
	return true;
}

bool snapshot_add_layer(struct snapshot *snapshot, int archive, const char *word,
			const char *digest, struct err *err)
{
	auto_close int at = open_folder(AT_FDCWD, snapshot->path);
	auto_close int layer = -1;

	if (at >= 0 && mkdirat(at, LAYER, LAYER_MODE) == 0)
		layer = open_folder(at, LAYER);
	/* Whatever the umask says. */
	if (layer < 0 || fchmod(layer, LAYER_MODE) < 0 || lseek(archive, 0, SEEK_SET) < 0)
		return err_set(err, errno, "%s/" LAYER ": %s", snapshot->path,
			       strerror(errno));
	snapshot->unpacking = unpacked_tree_begin(archive, layer, err);
	if (snapshot->unpacking == NULL)
		return err_while(err, "the changes of the base");
	snapshot->base = memory_copy(word);
	snapshot->base_digest = digest[0] != '\0' ? memory_copy(digest) : NULL;
	return true;
}

int snapshot_unpacks(const struct snapshot *snapshot)
{
	return snapshot->unpacking != NULL ? unpacked_tree_fd(snapshot->unpacking) : -1;
}

/* Take the layer that is being unpacked, where there is one. */
static bool end_layer(struct snapshot *snapshot, struct err *err)
{
	struct unpacked_tree *unpacking = snapshot->unpacking;
	struct maker_counts counts = {0};

	if (unpacking == NULL)
		return true;
	snapshot->unpacking = NULL;
	if (!unpacked_tree_end(unpacking, &counts, snapshot->layer_digest, err))
		return err_while(err, "the changes of the base");
	snapshot->entries += (int64_t)counts.entries;
	snapshot->bytes += (int64_t)counts.bytes;
	return true;
}

static bool write_file(int at, const char *name, struct str text)
{
	auto_close int fd =
		openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       FILE_MODE);

	return fd >= 0 && fd_write_all(fd, text.data, text.size, NULL) && fsync(fd) == 0;
}

static bool write_meta(const struct snapshot *snapshot, int at, struct err *err)
{
	struct meta meta = {
		.version = VERSION,
		.from = snapshot->from,
		.digest = snapshot->digest,
		.entries = snapshot->entries,
		.bytes = snapshot->bytes,
		.created_ms = snapshot->created_ms,
		.base = snapshot->base,
		.base_digest = snapshot->base_digest,
		.layer = snapshot->base != NULL ? snapshot->layer_digest : NULL,
	};
	auto_value struct value *object = NULL;
	struct buf text, disk;
	bool ok;

	buf_init(&disk, DISK_MAX);
	if (snapshot->from[0] == '/' && find_disk(snapshot->from, &disk))
		meta.disk = disk.data;
	object = fields_print(meta_fields, &meta);
	buf_fini(&disk);
	buf_init(&text, META_MAX);
	ok = (value_print(object, 0, &text) && buf_addc(&text, '\n')) ||
	     err_set(err, E2BIG, "its description is too long");
	ok = ok &&
	     (write_file(at, META, buf_str(&text)) ||
	      err_set(err, errno, "%s/" META ": %s", snapshot->path, strerror(errno)));
	buf_fini(&text);
	return ok;
}

/* The kernel's id of this boot; "" where it gives none. */
static void read_boot(struct buf *boot)
{
	(void)fd_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot);
}

/* Let a process of its own, which holds nothing else, wait until the disk has all of AT. */
static void sync_apart(int at)
{
	const pid_t pid = fork();

	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (pid != 0)
		return;
	const int folder = dup2(at, 0);
	(void)syscall(SYS_close_range, 1U, ~0U, 0U);
	if (fork() != 0)
		_exit(0);
	(void)setsid();
	if (folder == 0 && syncfs(folder) == 0)
		(void)unlinkat(folder, UNSYNCED, 0);
	_exit(0);
}

bool snapshot_finish(struct snapshot *snapshot, struct err *err)
{
	auto_free char *folder = memory_copy_str(
		(struct str){snapshot->path, (size_t)(path_base_name(snapshot->path) -
						      snapshot->path - 1)});
	auto_close int at = open_folder(AT_FDCWD, snapshot->path);
	auto_close int above = open_folder(AT_FDCWD, folder);
	struct buf boot;
	bool ok;

	if (!end_layer(snapshot, err))
		return false;
	buf_init(&boot, META_MAX);
	read_boot(&boot);
	ok = (at >= 0 && above >= 0 && write_file(at, UNSYNCED, buf_str(&boot))) ||
	     err_set(err, errno, "%s: %s", snapshot->path, strerror(errno));
	buf_fini(&boot);
	if (!ok || !write_meta(snapshot, at, err))
		return false;
	if (renameat2(above, path_base_name(snapshot->path), above, snapshot->name,
		      RENAME_NOREPLACE) < 0)
		return errno == EEXIST ? say_taken(snapshot->name, err)
				       : err_set(err, errno, "%s/%s: %s", folder,
						 snapshot->name, strerror(errno));
	snapshot->is_new = false;
	set_paths(snapshot, folder, snapshot->name);
	sync_apart(at);
	return true;
}

/* Opening one. */

static bool read_meta(int at, struct snapshot *snapshot, struct err *err)
{
	auto_value struct value *object = NULL;
	struct meta meta = {0};
	struct buf text;
	bool ok;

	buf_init(&text, META_MAX);
	ok = fd_read_at(at, META, &text) && value_parse(buf_str(&text), 0, &object, err);
	buf_fini(&text);
	if (!ok || !fields_read(object, meta_fields, &meta, NULL, err)) {
		fields_free(meta_fields, &meta);
		return err_set(err, EINVAL,
			       "the description of snapshot %s is damaged; remove it: glovebox "
			       "base prune --snapshot %s",
			       snapshot->name, snapshot->name);
	}
	snapshot->from = meta.from;
	snapshot->disk = meta.disk;
	(void)snprintf(snapshot->digest, sizeof(snapshot->digest), "%s", meta.digest);
	snapshot->entries = meta.entries;
	snapshot->bytes = meta.bytes;
	snapshot->created_ms = meta.created_ms;
	/* Half of a description is none. */
	if (meta.base != NULL && meta.layer != NULL) {
		snapshot->base = meta.base;
		meta.base = NULL;
		snapshot->base_digest = meta.base_digest;
		meta.base_digest = NULL;
		(void)snprintf(snapshot->layer_digest, sizeof(snapshot->layer_digest),
			       "%s", meta.layer);
	}
	free(meta.base);
	free(meta.base_digest);
	return true;
}

/* Has the machine stopped before the disk had all of the snapshot in AT? */
static bool is_cut(int at)
{
	struct buf made, now;
	bool cut;

	buf_init(&made, META_MAX);
	buf_init(&now, META_MAX);
	read_boot(&now);
	cut = fd_read_at(at, UNSYNCED, &made) && !str_equal(buf_str(&made), buf_str(&now));
	buf_fini(&made);
	buf_fini(&now);
	return cut;
}

static bool open_at(const char *folder, int at, const char *name,
		    struct snapshot *snapshot, struct err *err)
{
	auto_close int own = open_folder(at, name);
	const int code = errno;

	snapshot->name = memory_copy(name);
	set_paths(snapshot, folder, name);
	if (own < 0 && code != ENOENT && at >= 0)
		return err_set(err, code, "%s/%s: %s", folder, name, strerror(code));
	if (own < 0)
		return err_set(err, ENOENT,
			       "there is no snapshot %s; glovebox base list names those that there "
			       "are",
			       name);
	snapshot->lock = lock_at(own, LOCK_SH);
	if (snapshot->lock < 0)
		return err_set(err, EBUSY, "snapshot %s is being removed", name);
	if (is_cut(own))
		return err_set(
			err, EINVAL,
			"snapshot %s may be short, because the machine stopped before the "
			"disk had all of it; remove it: glovebox base prune --snapshot %s",
			name, name);
	if (!read_meta(own, snapshot, err))
		return false;
	set_paths(snapshot, folder, name);
	return true;
}

bool snapshot_open(const char *folder, const char *name, struct snapshot *snapshot,
		   struct err *err)
{
	auto_close int at = open_folder(AT_FDCWD, folder);

	*snapshot = (struct snapshot){.lock = -1};
	return snapshot_check_name(name, err) && open_at(folder, at, name, snapshot, err);
}

void snapshot_close(struct snapshot *snapshot)
{
	unpacked_tree_stop(snapshot->unpacking);
	if (snapshot->is_new) {
		fd_folder_remove(snapshot->tree);
		fd_folder_remove(snapshot->layer);
		fd_folder_remove(snapshot->path);
	}
	if (snapshot->path != NULL)
		fd_close(&snapshot->lock);
	free(snapshot->name);
	free(snapshot->tree);
	free(snapshot->from);
	free(snapshot->disk);
	free(snapshot->path);
	free(snapshot->layer);
	free(snapshot->base);
	free(snapshot->base_digest);
	*snapshot = (struct snapshot){.lock = -1};
}

/* All of them. */

/* Does a cell work over the snapshot in AT? */
static bool is_used(int at)
{
	auto_close int lock = lock_at(at, LOCK_EX);

	return lock < 0 && errno == EWOULDBLOCK;
}

bool snapshot_list_read(const char *folder, struct snapshot_list *list, struct err *err)
{
	auto_close int at = open_folder(AT_FDCWD, folder);
	struct fd_names names = {0};

	*list = (struct snapshot_list){0};
	if (at < 0)
		return errno == ENOENT ||
		       err_set(err, errno, "%s: %s", folder, strerror(errno));
	fd_names_read(&names, at, SNAPSHOT_LIST_MAX, false);
	list->items = memory_array(names.count + 1, sizeof(*list->items));
	for (size_t i = 0; i < names.count; i++) {
		struct snapshot_item *item = &list->items[list->count];
		auto_close int own = open_folder(at, names.items[i]);
		struct err why;

		if (own < 0 || !snapshot_check_name(names.items[i], &why))
			continue;
		*item = (struct snapshot_item){.snapshot.lock = -1, .used = is_used(own)};
		item->damaged = !open_at(folder, at, names.items[i], &item->snapshot, &why);
		/* Only the description is wanted. */
		fd_close(&item->snapshot.lock);
		list->count++;
	}
	fd_names_fini(&names);
	return true;
}

void snapshot_list_fini(struct snapshot_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		snapshot_close(&list->items[i].snapshot);
	free(list->items);
	*list = (struct snapshot_list){0};
}

bool snapshot_remove(const char *folder, const char *name, struct err *err)
{
	auto_close int at = open_folder(AT_FDCWD, folder);
	auto_close int own = -1, lock = -1;
	char removing[NAME_ROOM];

	if (!snapshot_check_name(name, err))
		return false;
	own = open_folder(at, name);
	if (own < 0)
		return err_set(err, ENOENT, "there is no snapshot %s", name);
	lock = lock_at(own, LOCK_EX);
	if (lock < 0)
		return err_set(err, EBUSY, "snapshot %s: a cell works over it", name);
	if (!make_name(REMOVING, removing) || renameat(at, name, at, removing) < 0)
		return err_set(err, errno, "%s/%s: %s", folder, name, strerror(errno));
	remove_folder(at, removing);
	return true;
}
