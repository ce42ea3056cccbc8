/*
 * store_folder: a store in a folder, also on a file system that several machines share (NFS).
 * A file is written and synced in `.tmp`, which no name of a store reaches, then it gets its
 * name by link(2) or, where it replaces another one, by rename(2), then the folder is synced. A
 * process that is killed at any moment leaves the old or the new file. The next process that
 * opens the store removes the rest of a killed writer from `.tmp`, an hour after its last byte
 * by the clock of the file system. No link is followed, and no name leaves the folder.
 */

#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "fleet/store_kind.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMP_FOLDER ".tmp"

enum {
	TEMP_NAME_DIGITS = 32,
	/* The rest of a dead writer is removed when it was not written for so long. */
	TEMP_OLD_S = 3600,
	/* Looked at by one sweep; the next one goes on. */
	TEMP_SWEPT_MAX = 100000,
	/* Bytes that are copied at a time. */
	COPY_PIECE = 256 << 10,
	/* A name that a sweep or a server that was restarted took away: once more. */
	TRIES = 3,
	/* The umask decides who else reads; a folder that is made here is its owner's only. */
	FILE_MODE = 0666,
	FOLDER_MODE = 0777,
};

struct store_folder {
	int root, temp; /* temp: the folder of files without a name, or -1 */
	char *shown;
};

/* Sentences. */

/* Was the folder of the store removed, or its file system taken away? */
static bool is_gone(const struct store_folder *folder)
{
	struct stat st;

	return fstat(folder->root, &st) < 0 || st.st_nlink == 0;
}

/* The remedy for CODE, or NULL. */
static const char *remedy_for(int code)
{
	switch (code) {
	case ENOSPC:
	case EDQUOT:
		return "nothing was replaced; free some space there, then do the same again";
	case EROFS:
		return "its file system is mounted read-only; take another folder, or mount it "
		       "for writing";
	case EACCES:
	case EPERM:
		return "this user may not do that there; change the owner or the mode of the "
		       "folder";
	case ELOOP:
	case ENOTDIR:
		return "a part of this name is no folder; links in a store are not followed: "
		       "remove it";
	case EXDEV:
		return "it lies on another file system than its store, which has to be on one";
	case EMFILE:
	case ENFILE:
		return "raise the limit of open files (ulimit -n)";
	default:
		return NULL;
	}
}

/* Always false. DOING: "writing jobs/J/job.json". */
static bool fail(const struct store_folder *folder, const char *doing, const char *name,
		 int code, struct err *err)
{
	const char *remedy = remedy_for(code);

	if (code == ESTALE || (code == ENOENT && is_gone(folder)))
		return err_set(err, ESTALE,
			       "%s: the folder of the store is gone: it was removed, or its "
			       "file system is no longer mounted; put it back, then do the same "
			       "again",
			       folder->shown);
	if (remedy != NULL)
		return err_set(err, code, "%s: %s %s: %s: %s", folder->shown, doing, name,
			       strerror(code), remedy);
	return err_set(err, code, "%s: %s %s: %s", folder->shown, doing, name,
		       strerror(code));
}

/* Folders. */

/* File systems that cannot sync a folder (some in user space) keep it in another way. */
static bool sync_folder(int fd)
{
	return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
}

/* The folder NAME in PARENT, made when it is missing and MAKE; -1 with errno. */
static int enter(int parent, const char *name, bool make)
{
	int fd = fd_open_beneath(parent, name, O_RDONLY | O_DIRECTORY);

	if (fd >= 0 || errno != ENOENT || !make)
		return fd;
	if (mkdirat(parent, name, FOLDER_MODE) < 0 && errno != EEXIST)
		return -1;
	return sync_folder(parent) ? fd_open_beneath(parent, name, O_RDONLY | O_DIRECTORY)
				   : -1;
}

/* Open the folder of NAME, and let *LAST be its last part; -1 with errno. */
static int open_above(const struct store_folder *folder, const char *name, bool make,
		      const char **last)
{
	const char *slash = strrchr(name, '/');
	char path[FLEET_NAME_BYTES];
	int at;

	*last = slash != NULL ? slash + 1 : name;
	if (slash == NULL)
		return fd_open_beneath(folder->root, ".", O_RDONLY | O_DIRECTORY);
	(void)snprintf(path, sizeof(path), "%.*s", (int)(slash - name), name);
	at = fd_open_beneath(folder->root, path, O_RDONLY | O_DIRECTORY);
	if (at >= 0 || errno != ENOENT || !make)
		return at;
	at = fd_open_beneath(folder->root, ".", O_RDONLY | O_DIRECTORY);
	for (char *part = path; at >= 0 && part != NULL;) {
		char *next = strchr(part, '/');
		int below;

		if (next != NULL)
			*next++ = '\0';
		below = enter(at, part, true);
		fd_close(&at);
		at = below;
		part = next;
	}
	return at;
}

/* Writing. */

/* A file that has no name yet that a store has. */
struct temp_file {
	int folder, fd;
	bool borrowed; /* the folder is the store's */
	char name[TEMP_NAME_DIGITS + 1];
};

static void temp_file_drop(struct temp_file *temp)
{
	if (temp->fd >= 0)
		(void)unlinkat(temp->folder, temp->name, 0);
	fd_close(&temp->fd);
	if (!temp->borrowed)
		fd_close(&temp->folder);
}

static bool temp_file_open(struct temp_file *temp)
{
	temp->fd = openat(temp->folder, temp->name,
			  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
	return temp->fd >= 0;
}

static bool temp_file_make(const struct store_folder *folder, struct temp_file *temp)
{
	*temp = (struct temp_file){.folder = folder->temp, .fd = -1, .borrowed = true};
	if (!text_random_hex(temp->name, TEMP_NAME_DIGITS))
		return false;
	if (temp->folder >= 0 && temp_file_open(temp))
		return true;
	/* Not open yet, or somebody has removed the folder since. */
	temp->borrowed = false;
	temp->folder = enter(folder->root, TEMP_FOLDER, true);
	return temp->folder >= 0 && temp_file_open(temp);
}

/* Copy the file of SOURCE to TO. False with errno; EAGAIN: its bytes are others now. */
static bool copy_file(const struct store_source *source, int to)
{
	auto_free char *piece = memory_alloc(COPY_PIECE);
	struct hash *hash = hash_new();
	char found[FLEET_HASH_BYTES];
	uint64_t at = 0;
	bool same;
	ssize_t n = 0;

	while (at < source->size &&
	       ((n = pread(source->fd, piece,
			   source->size - at < COPY_PIECE ? (size_t)(source->size - at)
							  : (size_t)COPY_PIECE,
			   (off_t)at)) > 0 ||
		(n < 0 && errno == EINTR))) {
		if (n < 0)
			continue;
		hash_add(hash, (struct str){piece, (size_t)n});
		if (!fd_write_all(to, piece, (size_t)n, NULL)) {
			n = -1;
			break;
		}
		at += (uint64_t)n;
	}
	hash_digest_text(hash, found);
	hash_free(hash);
	same = n >= 0 && strcmp(found, source->hash) == 0;
	if (n >= 0 && !same)
		errno = EAGAIN;
	return same;
}

/* False with errno. */
static bool fill(const struct store_source *source, int to)
{
	return (source->fd >= 0
			? copy_file(source, to)
			: fd_write_all(to, source->text.data, source->text.size, NULL)) &&
	       fsync(to) == 0;
}

/*
 * Is NAME of the folder AT a file that was there before? The answer "it is there" is given
 * when it is there after a power cut as well, because its task will not be done again.
 */
static enum fleet_put look_there(int at, const char *name)
{
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return FLEET_PUT_FAILED;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : ELOOP;
		return FLEET_PUT_FAILED;
	}
	return sync_folder(at) ? FLEET_PUT_THERE : FLEET_PUT_FAILED;
}

/* Name the file TEMP as NAME of the folder AT, which is new. FAILED with errno. */
static enum fleet_put name_new(const struct temp_file *temp, int at, const char *name)
{
	struct stat st;
	bool named = linkat(temp->folder, temp->name, at, name, 0) == 0;

	/* No links on this file system (FAT, some in user space). */
	if (!named && (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS))
		named = renameat2(temp->folder, temp->name, at, name, RENAME_NOREPLACE) == 0;
	/*
	 * A server of NFS that has done it, and whose answer was lost, is asked again and says that
	 * the name is there: then it is our file that is there.
	 */
	if (!named && errno == EEXIST) {
		struct stat there;

		named = fstat(temp->fd, &st) == 0 &&
			fstatat(at, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
			there.st_dev == st.st_dev && there.st_ino == st.st_ino;
		if (!named)
			return look_there(at, name);
	}
	return named && sync_folder(at) ? FLEET_PUT_DONE : FLEET_PUT_FAILED;
}

/* One attempt. FAILED with errno. */
static enum fleet_put put_once(const struct store_folder *folder, const char *name,
			       const struct store_source *source, enum fleet_put_how how)
{
	const char *last;
	auto_close int at = open_above(folder, name, true, &last);
	enum fleet_put put = FLEET_PUT_FAILED;
	struct temp_file temp;
	struct stat st;
	int code;

	if (at < 0)
		return FLEET_PUT_FAILED;
	/* Most that are there already are found before they are written once more. */
	if (how == FLEET_IF_NEW && fstatat(at, last, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return look_there(at, last);
	if (temp_file_make(folder, &temp) && fill(source, temp.fd)) {
		if (how == FLEET_IF_NEW)
			put = name_new(&temp, at, last);
		else if (renameat(temp.folder, temp.name, at, last) == 0 && sync_folder(at))
			put = FLEET_PUT_DONE;
	}
	code = errno;
	temp_file_drop(&temp);
	errno = code;
	return put;
}

static enum fleet_put folder_put(void *self, const char *name,
				 const struct store_source *source,
				 enum fleet_put_how how, struct err *err)
{
	const struct store_folder *folder = self;

	for (int i = 1;; i++) {
		const enum fleet_put put = put_once(folder, name, source, how);
		const int code = errno;

		if (put != FLEET_PUT_FAILED)
			return put;
		if (code == EAGAIN && source->fd >= 0) {
			(void)err_set(err, EAGAIN,
				      "a file for %s has changed while it was stored; do it "
				      "again when nobody writes it",
				      folder->shown);
			return FLEET_PUT_FAILED;
		}
		if ((code == ENOENT || code == ESTALE) && i < TRIES && !is_gone(folder))
			continue;
		(void)fail(folder, "writing", name, code, err);
		return FLEET_PUT_FAILED;
	}
}

/* Reading. */

static bool folder_has(void *self, const char *name, uint64_t size, bool *has,
		       struct err *err)
{
	const struct store_folder *folder = self;
	const char *last;
	auto_close int at = open_above(folder, name, false, &last);
	struct stat st;

	*has = false;
	if (at < 0 || fstatat(at, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return (errno == ENOENT && !is_gone(folder)) ||
		       fail(folder, "looking for", name, errno, err);
	*has = S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
	return !*has || sync_folder(at) || fail(folder, "syncing", name, errno, err);
}

static bool folder_read(void *self, const char *name,
			bool (*take)(void *context, struct str piece, struct err *err),
			void *context, struct err *err)
{
	const struct store_folder *folder = self;
	auto_close int fd = fd_open_beneath(folder->root, name, O_RDONLY);
	auto_free char *piece = NULL;
	struct stat st;
	ssize_t n;

	/* Another machine has replaced the file on a shared file system: the new one is opened. */
	if (fd < 0 && errno == ESTALE)
		fd = fd_open_beneath(folder->root, name, O_RDONLY);
	if (fd < 0 && errno == ENOENT && !is_gone(folder))
		return err_set(err, ENOENT, "%s does not have it", folder->shown);
	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(folder, "reading", name, errno, err);
	if (!S_ISREG(st.st_mode))
		return fail(folder, "reading", name, S_ISDIR(st.st_mode) ? EISDIR : ELOOP,
			    err);
	piece = memory_alloc(COPY_PIECE);
	while ((n = read(fd, piece, COPY_PIECE)) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && !take(context, (struct str){piece, (size_t)n}, err))
			return false;
	return n == 0 || fail(folder, "reading", name, errno, err);
}

/* The kind of ENTRY of AT: 'f' a file, 'd' a folder, 0 something that no store has. */
static char entry_kind(int at, const struct dirent *entry)
{
	struct stat st;

	if (!fleet_store_name_check(entry->d_name, NULL))
		return 0;
	if (entry->d_type == DT_REG)
		return 'f';
	if (entry->d_type == DT_DIR)
		return 'd';
	if (entry->d_type != DT_UNKNOWN ||
	    fstatat(at, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return S_ISREG(st.st_mode) ? 'f' : (S_ISDIR(st.st_mode) ? 'd' : 0);
}

static bool folder_list(void *self, const char *name,
			bool (*take)(void *context, const char *name), void *context,
			struct err *err)
{
	const struct store_folder *folder = self;
	int at = fd_open_beneath(folder->root, name[0] != '\0' ? name : ".",
				 O_RDONLY | O_DIRECTORY);
	DIR *names = at >= 0 ? fdopendir(at) : NULL;
	bool more = true;
	int code;

	if (names == NULL) {
		code = errno;
		fd_close(&at);
		return (code == ENOENT && !is_gone(folder)) ||
		       fail(folder, "listing", name, code, err);
	}
	while (more) {
		char shown[NAME_MAX + 2];
		const struct dirent *entry;
		char kind;

		errno = 0;
		entry = readdir(names);
		if (entry == NULL)
			break;
		kind = entry_kind(at, entry);
		if (kind == 0)
			continue;
		(void)snprintf(shown, sizeof(shown), "%s%s", entry->d_name,
			       kind == 'd' ? "/" : "");
		more = take(context, shown);
	}
	code = more ? errno : 0;
	(void)closedir(names);
	return code == 0 || fail(folder, "listing", name, code, err);
}

static bool folder_remove(void *self, const char *name, struct err *err)
{
	const struct store_folder *folder = self;
	const char *last;
	auto_close int at = open_above(folder, name, false, &last);

	if (at >= 0 && unlinkat(at, last, 0) == 0 && sync_folder(at))
		return true;
	return (errno == ENOENT && !is_gone(folder)) ||
	       fail(folder, "removing", name, errno, err);
}

/* Opening. */

/* Remove the files in FOLDER that nobody has written for an hour, as it is by the time NOW. */
static void sweep(int folder, time_t now)
{
	DIR *names = fd_open_names(folder);
	const struct dirent *entry;
	struct stat st;

	for (int i = 0; names != NULL && i < TEMP_SWEPT_MAX; i++) {
		entry = readdir(names);
		if (entry == NULL)
			break;
		if (strlen(entry->d_name) == TEMP_NAME_DIGITS &&
		    fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && now - st.st_mtime > TEMP_OLD_S)
			(void)unlinkat(folder, entry->d_name, 0);
	}
	if (names != NULL)
		(void)closedir(names);
}

/*
 * Write a file, because the mark of a store that is there already would be found without
 * writing. The clock that stamps it says how old the files are that dead writers have left.
 */
static bool try_writing(const struct store_folder *folder, struct err *err)
{
	const struct store_source some = {.text = STR("a trial\n"), .fd = -1};
	struct temp_file temp;
	struct stat st;
	const bool written = temp_file_make(folder, &temp) && fill(&some, temp.fd) &&
			     fstat(temp.fd, &st) == 0;
	const int code = errno;

	if (written)
		sweep(temp.folder, st.st_mtime);
	temp_file_drop(&temp);
	return written || fail(folder, "writing", TEMP_FOLDER, code, err);
}

static bool make_root(const char *path, struct err *err)
{
	struct buf slashed;
	struct stat st;
	bool made;

	if (stat(path, &st) == 0)
		return true;
	buf_init(&slashed, PATH_MAX);
	made = (buf_addf(&slashed, "%s/", path) ||
		err_set(err, ENAMETOOLONG, "the name of the store is too long")) &&
	       fd_make_folders(slashed.data, err);
	buf_fini(&slashed);
	return made;
}

static void folder_close(void *self)
{
	struct store_folder *folder = self;

	fd_close(&folder->root);
	fd_close(&folder->temp);
	free(folder->shown);
	free(folder);
}

/* WRITES: a file is written for a trial, but not the mark of a store. */
static bool folder_open(const char *path, const char *shown, bool writes, void **self,
			struct err *err)
{
	struct store_folder *folder;
	auto_close int root = -1;

	if (writes && !make_root(path, err))
		return err_while(err, "the store %s", shown);
	root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_set(err, errno, "the store %s: %s%s", shown, strerror(errno),
			       errno == ENOENT ? "; is its name right, and its file system "
						 "mounted?"
					       : "");
	folder = memory_alloc(sizeof(*folder));
	folder->root = fd_take(&root);
	folder->temp = -1;
	folder->shown = memory_copy(shown);
	if (writes && !try_writing(folder, err)) {
		folder_close(folder);
		return false;
	}
	if (writes)
		folder->temp = enter(folder->root, TEMP_FOLDER, true);
	*self = folder;
	return true;
}

const struct store_kind store_folder_kind = {
	.open = folder_open,
	.put = folder_put,
	.has = folder_has,
	.read = folder_read,
	.list = folder_list,
	.remove = folder_remove,
	.close = folder_close,
};
