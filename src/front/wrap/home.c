#include "front/wrap/home.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "front/verb.h"
#include "front/wrap/profile.h"
#include "front/wrap/wrapping.h"
#include "store/database.h"
#include "view/shape.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	SEED_MAX = 16 << 20,
	STALE_S = 3600, /* a home is made in much less */
	HOME_DIGITS = 16,
	SHARE_DEPTH = 64,
	HOME_TRIES = 16, /* another start may remove it again and again */
	SHARE_TRIES = 16, /* another wrap may remove it again and again, when it was empty */
};

bool wrap_home_find(struct wrapping *wrapping, struct err *err)
{
	struct buf key, path;
	char hex[HASH_HEX + 1], name[HASH_HEX + 16];
	bool fine;

	buf_init(&key, PATH_MAX + WRAP_NAME_MAX + 8);
	(void)buf_addf(&key, WRAP_HOME_OF, wrapping->workspace, wrapping->name);
	hash_text(buf_str(&key), hex);
	buf_fini(&key);
	(void)snprintf(name, sizeof(name), "homes/%.*s", HOME_DIGITS, hex);
	buf_init(&path, PATH_MAX / 2);
	fine = database_state_path(name, &path, err);
	wrapping->home.path = wrapping->places.home;
	wrapping->home.held = -1;
	wrapping->home.folder = wrapping_keep(wrapping, &path);
	return fine;
}

/* Remove the home, for --fresh; a cell that uses it keeps a lock on it. */
static bool remove_home(const struct wrapping *wrapping, struct err *err)
{
	auto_close int fd = open(wrapping->home.folder,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return true;
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, EBUSY,
			       "wrap: --fresh: %s is at work in this project; end it first",
			       wrapping->name);
	fd_folder_remove(wrapping->home.folder);
	return access(wrapping->home.folder, F_OK) < 0 ||
	       err_set(err, EBUSY, "wrap: --fresh: %s could not be removed",
		       wrapping->home.folder);
}

/* Root's cell in somebody else's workspace is of that user, whose home it then is. */
static void give_away(const struct wrapping *wrapping, int fd)
{
	struct stat st;

	if (geteuid() == 0 && stat(wrapping->workspace, &st) == 0 && st.st_uid != 0)
		(void)!fchownat(fd, "", st.st_uid, st.st_gid, AT_EMPTY_PATH);
}

/*
 * Open the folder that holds PATH, of the view, in the home at ROOT, and with MAKE make it.
 * A link is not followed: commands of former runs may have put it there. *LAST becomes the
 * last name of PATH.
 */
static int open_above(const struct wrapping *wrapping, int root, const char *path,
		      bool make, const char **last)
{
	auto_free char *rest = memory_copy(path_relative(path, wrapping->places.home));
	auto_close int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	char *next = rest, *name;

	*last = path_base_name(path);
	while (at >= 0 && (name = strsep(&next, "/")) != NULL && next != NULL) {
		const bool made = make && mkdirat(at, name, 0700) == 0;

		if (make && !made && errno != EEXIST)
			return -1;
		int below = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (made && below >= 0)
			give_away(wrapping, below);
		fd_close(&at);
		at = below;
	}
	return fd_take(&at);
}

static bool seed_one(struct wrapping *wrapping, int root, const struct wrap_seed *seed,
		     struct err *err)
{
	const char *path = wrapping_expand(wrapping, seed->path), *name;
	struct err why = {0};
	struct buf text;
	bool fine = true;

	buf_init(&text, SEED_MAX);
	if (!fd_read_file(path, SEED_MAX, &text, &why)) {
		buf_fini(&text);
		if (why.code != ENOENT)
			(void)verb_complain(CODE_DONE, "wrap: not copied: %s", why.text);
		return true; /* the person may have no such file */
	}
	if (!wrap_seed_pick(seed, &text)) {
		(void)verb_complain(CODE_DONE, "wrap: %s is no JSON and was not copied",
				    wrapping_shortened(wrapping, path));
	} else {
		auto_close int folder = open_above(wrapping, root, path, true, &name);
		auto_close int fd =
			folder < 0 ? -1
				   : openat(folder, name,
					    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			fine = err_set(err, errno, "wrap: its home: %s: %s", path,
				       strerror(errno));
		else
			fine = fd_write_all(fd, text.data, text.size, err);
		if (fd >= 0)
			give_away(wrapping, fd);
	}
	buf_fini(&text);
	return fine;
}

/* Remove the homes beside PATH that starts were killed over while they made them. */
static void remove_stale(const char *path)
{
	const char *name = path_base_name(path);
	const size_t size = strlen(name);
	char folder[PATH_MAX];
	struct stat st;
	DIR *names;

	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(name - path), path);
	names = opendir(folder);
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL; at != NULL;
	     at = readdir(names)) {
		char stale[PATH_MAX + NAME_MAX];

		if (strncmp(at->d_name, name, size) != 0 || at->d_name[size] != '-' ||
		    fstatat(dirfd(names), at->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    time(NULL) - st.st_mtime < STALE_S)
			continue;
		(void)snprintf(stale, sizeof(stale), "%s%s", folder, at->d_name);
		fd_folder_remove(stale);
	}
	if (names != NULL)
		(void)closedir(names);
}

/* Make the home with the person's settings in it, whole or not at all. */
static bool make_home(struct wrapping *wrapping, struct err *err)
{
	const char *path = wrapping->home.folder;
	struct buf aside;
	bool fine = true;

	remove_stale(path);
	if (access(path, F_OK) == 0)
		return true;
	if (!fd_make_folders(path, err))
		return false;
	buf_init(&aside, PATH_MAX);
	(void)buf_addf(&aside, "%s-XXXXXX", path);
	if (mkdtemp(aside.data) == NULL) {
		fine = err_set(err, errno, "wrap: %s: %s", aside.data, strerror(errno));
		buf_fini(&aside);
		return fine;
	}
	auto_close int root = open(aside.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; fine && root >= 0 && i < wrapping->profile.seed_count; i++)
		fine = seed_one(wrapping, root, &wrapping->profile.seeds[i], err);
	/*
	 * Another start may have been faster; then its home is the one, also when it is empty:
	 * a cell may use it.
	 */
	if (!fine || (renameat2(AT_FDCWD, aside.data, AT_FDCWD, path, RENAME_NOREPLACE) < 0 &&
		      (errno != EINVAL || rename(aside.data, path) < 0)))
		fd_folder_remove(aside.data);
	buf_fini(&aside);
	return fine;
}

/*
 * Is there a place in the home at ROOT for SOURCE, which is shown at PATH, or with MAKE a
 * folder for it?
 */
static bool check_place(const struct wrapping *wrapping, int root, const char *source,
			const char *path, bool make, struct err *err)
{
	const char *name;
	struct stat st, shown;

	if (!path_within(path, wrapping->places.home) ||
	    (path_within(path, wrapping->workspace) &&
	     strcmp(path, wrapping->workspace) != 0))
		return true;
	auto_close int folder = open_above(wrapping, root, path, make, &name);
	if (folder < 0 && !make && errno == ENOENT)
		return true;
	if (folder >= 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return true;
	if (folder >= 0 && !S_ISLNK(st.st_mode) &&
	    (stat(source, &shown) < 0 || S_ISDIR(shown.st_mode) == S_ISDIR(st.st_mode)))
		return true;
	return err_set(err, ELOOP,
		       "wrap: %s has made something else of %s in its home: --fresh gives it a "
		       "new one",
		       wrapping->name, path);
}

/* Make the home, and hold it, so that no other start removes it from now on. */
static bool hold_home(struct wrapping *wrapping, struct err *err)
{
	/* Another start may remove one that was just made, which lacks what `make_home` puts there. */
	for (int i = 0; i < HOME_TRIES && wrapping->home.held < 0; i++) {
		if (!make_home(wrapping, err))
			return false;
		wrapping->home.held = fd_hold(AT_FDCWD, wrapping->home.folder, LOCK_SH, 0);
		if (wrapping->home.held < 0 && errno != ENOENT)
			break;
	}
	return wrapping->home.held >= 0 || err_set(err, errno, "wrap: its home: %s: %s",
						   wrapping->home.folder, strerror(errno));
}

/*
 * Make the empty file that the copy of a login at PATH is mounted over, so that the agent
 * may write it in a cell without the copy.
 */
static bool make_place(const struct wrapping *wrapping, int root, const char *path,
		       struct err *err)
{
	const char *name;

	if (!check_place(wrapping, root, path, path, true, err))
		return false;
	auto_close int folder = open_above(wrapping, root, path, false, &name);
	auto_close int fd =
		folder < 0 ? -1
			   : openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				    0600);
	if (fd >= 0)
		give_away(wrapping, fd);
	return fd >= 0 || errno == EEXIST ||
	       err_set(err, errno, "wrap: its home: %s: %s", path, strerror(errno));
}

/* Note outside whose home it is: its name is a hash, and the cell may write all in it. */
static bool note_home(const struct wrapping *wrapping, struct err *err)
{
	char name[sizeof(WRAP_HOME_NOTES) + HASH_HEX + 1];
	struct buf key, path;
	bool fine;

	(void)snprintf(name, sizeof(name), WRAP_HOME_NOTES "/%s",
		       path_base_name(wrapping->home.folder));
	buf_init(&key, PATH_MAX + WRAP_NAME_MAX + sizeof(WRAP_HOME_OF));
	buf_init(&path, PATH_MAX);
	(void)buf_addf(&key, WRAP_HOME_OF, wrapping->workspace, wrapping->name);
	fine = database_state_path(name, &path, err) &&
	       fd_replace_file(path.data, buf_str(&key), err);
	buf_fini(&path);
	buf_fini(&key);
	return fine;
}

bool wrap_home_prepare(struct wrapping *wrapping, struct err *err)
{
	const struct value *write = value_member(wrapping->policy, "write");
	char toolchain[PATH_MAX];
	const char *below;

	if ((options_given(wrapping->options, "fresh") && !remove_home(wrapping, err)) ||
	    !hold_home(wrapping, err) || !note_home(wrapping, err))
		return false;
	const int root = wrapping->home.held;
	if (!check_place(wrapping, root, wrapping->workspace, wrapping->workspace, true, err))
		return false;
	for (size_t i = 0; i < wrapping->shown_count; i++)
		if (!check_place(wrapping, root, wrapping->shown[i].source,
				 wrapping->shown[i].path, true, err))
			return false;
	for (size_t i = 0; i < value_count(write); i++) {
		const char *path = value_text(value_item(write, i));

		if (path[0] == '/' && !check_place(wrapping, root, path, path, true, err))
			return false;
	}
	for (size_t i = 0; i < wrapping->home.login_count; i++)
		if (!make_place(wrapping, root, wrapping->home.logins[i].path, err))
			return false;
	/* The cell itself shows these, when they are there. */
	for (size_t at = 0; (below = shape_toolchain_next(&at)) != NULL;) {
		(void)snprintf(toolchain, sizeof(toolchain), "%s/%s",
			       wrapping->places.home, below);
		if (access(toolchain, F_OK) == 0 &&
		    !check_place(wrapping, root, toolchain, toolchain, false, err))
			return false;
	}
	return true;
}

bool wrap_home_show_texts(struct wrapping *wrapping, struct err *err)
{
	for (size_t i = 0; i < wrapping->profile.file_count; i++) {
		const struct wrap_file *file = &wrapping->profile.files[i];
		char hex[HASH_HEX + 1], name[HASH_HEX + 16];
		struct buf path, text;
		bool fine;

		buf_init(&text, 2 * WRAP_TEXT_MAX);
		(void)wrap_places_expand(&wrapping->places, file->text, &text);
		hash_text(buf_str(&text), hex);
		(void)snprintf(name, sizeof(name), WRAPPING_FILES "%s", hex);
		buf_init(&path, PATH_MAX);
		fine = database_state_path(name, &path, err) &&
		       fd_replace_file(path.data, buf_str(&text), err);
		buf_fini(&text);
		if (fine)
			wrapping_show(wrapping, path.data,
				      wrapping_expand(wrapping, file->path), "files");
		buf_fini(&path);
		if (!fine)
			return false;
	}
	return true;
}

/*
 * Remove all that is no file and no folder below the open folder AT: the agent outside
 * would follow a link that a command has put there. Returns the number.
 */
static size_t remove_links(int at, int depth)
{
	DIR *names = fd_open_names(at);
	char path[NAME_MAX + 32];
	size_t count = 0;
	struct stat st;

	for (const struct dirent *name = names != NULL ? readdir(names) : NULL;
	     name != NULL; name = readdir(names)) {
		if (strcmp(name->d_name, ".") == 0 || strcmp(name->d_name, "..") == 0 ||
		    fstatat(at, name->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    S_ISREG(st.st_mode))
			continue;
		if (!S_ISDIR(st.st_mode)) {
			count += unlinkat(at, name->d_name, 0) == 0;
			continue;
		}
		auto_close int below =
			openat(at, name->d_name,
			       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0 && depth < SHARE_DEPTH) {
			count += remove_links(below, depth + 1);
		} else {
			/* No agent keeps sessions so deep, nor in a folder that is closed. */
			(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", at,
				       name->d_name);
			fd_folder_remove(path);
			count++;
		}
	}
	if (names != NULL)
		(void)closedir(names);
	return count;
}

/* Remove links below the open folder FD, of `share` at PATH, and tell of them. */
static void clear_links(struct wrapping *wrapping, int fd, const char *path)
{
	const size_t links = remove_links(fd, 0);

	if (links > 0)
		(void)verb_complain(CODE_DONE,
				    "wrap: %zu links were removed from %s: the agent outside "
				    "would have followed them",
				    links, wrapping_shortened(wrapping, path));
}

/* Returns the size of the beginning of PATH, an absolute one, whose folders are there. */
static size_t size_there(const char *path)
{
	auto_free char *at = memory_copy(path);
	size_t size = strlen(at);

	while (size > 1 && access(at, F_OK) < 0) {
		size = (size_t)(path_base_name(at) - at) - 1;
		at[size] = '\0';
	}
	return size;
}

/* PATH is removed. Remove the folders above it, behind its first THERE bytes, that are empty. */
static void remove_made(const char *path, size_t there)
{
	auto_free char *at = memory_copy(path);
	size_t size;

	do {
		size = (size_t)(path_base_name(at) - at) - 1;
		at[size] = '\0';
	} while (size > there && rmdir(at) == 0);
}

/*
 * Make and open the folder PATH of `share`. It is locked, so that no other wrap of the
 * project removes it while it is empty.
 */
static int open_share(const struct wrapping *wrapping, const char *path, struct err *err)
{
	struct stat held, named;

	for (int i = 0; i < SHARE_TRIES; i++) {
		if (!fd_make_folders(path, err))
			return -1;
		const bool made = mkdir(path, 0700) == 0;
		/* Another wrap that ends has removed the folder above it. */
		if (!made && errno == ENOENT)
			continue;
		if (!made && errno != EEXIST)
			break;
		auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_SH) < 0)
			break;
		if (made)
			give_away(wrapping, fd);
		if (fstat(fd, &held) == 0 && stat(path, &named) == 0 &&
		    held.st_ino == named.st_ino && held.st_dev == named.st_dev)
			return fd_take(&fd);
		errno = EBUSY;
	}
	(void)err_set(err, errno, "wrap: share: %s: %s", path, strerror(errno));
	return -1;
}

bool wrap_home_share(struct wrapping *wrapping, struct value *list, struct err *err)
{
	const struct policy_names *share = &wrapping->profile.share;

	wrapping->shares = memory_array(share->count + 1, sizeof(wrapping->shares[0]));
	wrapping->shares[0].fd = -1;
	for (size_t i = 0; i < share->count; i++) {
		const char *path = wrapping_expand(wrapping, share->items[i]);

		if (options_given(wrapping->options, "explain")) {
			if (access(path, F_OK) == 0)
				value_append(list, value_new_text(path));
			continue;
		}
		wrapping->shares[i].there = size_there(path);
		wrapping->shares[i].fd = open_share(wrapping, path, err);
		wrapping->shares[i + 1].fd = -1;
		if (wrapping->shares[i].fd < 0)
			return false;
		/* A run that was killed has left them. */
		clear_links(wrapping, wrapping->shares[i].fd, path);
		value_append(list, value_new_text(path));
	}
	return true;
}

void wrap_home_end(struct wrapping *wrapping)
{
	const struct policy_names *share = &wrapping->profile.share;

	for (size_t i = 0; i < share->count; i++) {
		const char *path = wrapping_expand(wrapping, share->items[i]);
		const int share_fd = wrapping->shares[i].fd;

		clear_links(wrapping, share_fd, path);
		const bool is_last = flock(share_fd, LOCK_EX | LOCK_NB) == 0;
		if (is_last && rmdir(path) == 0)
			remove_made(path, wrapping->shares[i].there);
		else if (!is_last || errno == ENOTEMPTY)
			(void)verb_complain(CODE_DONE, "sessions are kept in %s",
					    wrapping_shortened(wrapping, path));
	}
}
