/* prepared: names by hashes, locks beside the snapshots, and those that nobody finds any more. */

#include "image/devcontainer/prepared.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "image/devcontainer/devcontainer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK   ".lock-"
#define DIGITS "0123456789abcdef"

enum {
	LOCK_BYTES_MAX = 64 << 20, /* of one file of versions that are hashed */
	READ_BYTES = 64 << 10,
};

/* Names. */

/* Files in the workspace that say which versions a build takes. */
static const char *const versions[] = {
	"package.json",
	"package-lock.json",
	"npm-shrinkwrap.json",
	"yarn.lock",
	"pnpm-lock.yaml",
	"bun.lock",
	"bun.lockb",
	"deno.lock",
	"requirements.txt",
	"requirements-dev.txt",
	"constraints.txt",
	"pyproject.toml",
	"setup.py",
	"setup.cfg",
	"poetry.lock",
	"uv.lock",
	"pdm.lock",
	"Pipfile.lock",
	"conda-lock.yml",
	"environment.yml",
	"Gemfile.lock",
	"Cargo.lock",
	"go.mod",
	"go.sum",
	"composer.lock",
	"mix.lock",
	"gradle.lockfile",
	"pubspec.lock",
	"packages.lock.json",
	"flake.lock",
	"Package.resolved",
	"stack.yaml.lock",
};

/* Add the file NAME of FOLDER that tells versions to HASH, where there is one. */
static void version_add(struct hash *hash, int folder, const char *name)
{
	auto_close int fd = devcontainer_open_file(folder, name);
	auto_free char *bytes = fd >= 0 ? memory_alloc(READ_BYTES) : NULL;
	size_t left = LOCK_BYTES_MAX;
	ssize_t got;

	if (fd < 0)
		return;
	hash_add(hash, (struct str){name, strlen(name) + 1});
	while (left > 0 && (got = read(fd, bytes, READ_BYTES)) > 0) {
		hash_add(hash, (struct str){bytes, (size_t)got});
		left -= (size_t)got < left ? (size_t)got : left;
	}
	hash_add(hash, (struct str){"", 1});
}

void prepared_name(const struct prepared_content *content, char name[PREPARED_NAME_ROOM])
{
	struct hash *hash = hash_new();
	char place[HASH_HEX + 1], hex[HASH_HEX + 1];

	hash_add(hash, (struct str){content->workspace, strlen(content->workspace) + 1});
	hash_add(hash, (struct str){content->file, strlen(content->file) + 1});
	hash_digest_text(hash, place);
	hash_free(hash);
	hash = hash_new();
	hash_add(hash, (struct str){place, sizeof(place)});
	hash_add(hash, (struct str){content->shown, strlen(content->shown) + 1});
	hash_add(hash, (struct str){content->below, strlen(content->below) + 1});
	hash_add(hash, content->text);
	hash_add(hash, (struct str){"", 1});
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		version_add(hash, content->folder, versions[i]);
	hash_digest_text(hash, hex);
	hash_free(hash);
	(void)snprintf(name, PREPARED_NAME_ROOM, PREPARED_KIND "-%.*s-%.*s",
		       PREPARED_PLACE, place, PREPARED_CONTENT, hex);
}

bool prepared_is_name(const char *name)
{
	const size_t kind = strlen(PREPARED_KIND "-");

	return strncmp(name, PREPARED_KIND "-", kind) == 0 &&
	       strspn(name + kind, DIGITS) == PREPARED_PLACE &&
	       name[kind + PREPARED_PLACE] == '-' &&
	       strspn(name + kind + PREPARED_PLACE + 1, DIGITS) == PREPARED_CONTENT &&
	       name[kind + PREPARED_PLACE + 1 + PREPARED_CONTENT] == '\0';
}

/* Locks. */

/*
 * Lock FD, opened by its name, without waiting; false with errno. The process that held the file removes
 * its name before it lets go, so a file that lost its name while it was opened here locks nothing: ENOENT.
 */
static bool lock_file(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
		return false;
	errno = ENOENT;
	return st.st_nlink > 0;
}

bool prepared_lock(const char *folder, const char *name, struct prepared_lock *lock,
		   struct err *err)
{
	struct buf path;
	bool made;

	*lock = (struct prepared_lock){.fd = -1};
	buf_init(&path, PATH_MAX);
	made = buf_addf(&path, "%s/" LOCK "%s", folder, name) ||
	       err_set(err, ENAMETOOLONG, "%s: the path is too long", folder);
	made = made && fd_make_folders(path.data, err);
	lock->path = made ? memory_copy(path.data) : NULL;
	buf_fini(&path);
	while (made) {
		auto_close int fd =
			open(lock->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			     S_IRUSR | S_IWUSR);

		if (fd >= 0 && lock_file(fd)) {
			lock->fd = fd_take(&fd);
			return true;
		}
		if (fd < 0 || errno != ENOENT)
			made = err_set(err, errno, "%s: %s", lock->path, strerror(errno));
	}
	free(lock->path);
	lock->path = NULL;
	return false;
}

void prepared_unlock(struct prepared_lock *lock)
{
	if (lock->fd >= 0)
		(void)unlink(lock->path);
	fd_close(&lock->fd);
	free(lock->path);
	lock->path = NULL;
}

/* Those that go. */

/* Does another snapshot of LIST lie over the one of NAME? */
static bool is_below(const struct snapshot_list *list, const char *name)
{
	const size_t prefix = strlen(SNAPSHOT_WORD);

	for (size_t i = 0; i < list->count; i++) {
		const char *base = list->items[i].snapshot.base;

		if (base != NULL && strncmp(base, SNAPSHOT_WORD, prefix) == 0 &&
		    strcmp(base + prefix, name) == 0)
			return true;
	}
	return false;
}

void prepared_drop_older(const char *folder, const char *prepared)
{
	const size_t place = (size_t)(strrchr(prepared, '-') - prepared) + 1;
	const struct snapshot_item *newest = NULL;
	struct snapshot_list list;
	struct err err;

	(void)snapshot_list_read(folder, &list, &err);
	for (int removes = 0; removes <= 1; removes++) {
		for (size_t i = 0; i < list.count; i++) {
			const struct snapshot_item *item = &list.items[i];
			const char *name = item->snapshot.name;

			if (strncmp(name, prepared, place) != 0 ||
			    strcmp(name, prepared) == 0)
				continue;
			if (!removes &&
			    (newest == NULL ||
			     item->snapshot.created_ms > newest->snapshot.created_ms))
				newest = item;
			if (removes && item != newest && !is_below(&list, name))
				(void)snapshot_remove(folder, name, &err);
		}
	}
	snapshot_list_fini(&list);
}

/* Was ITEM made for a workspace that is gone? */
static bool is_lost(const struct snapshot_item *item)
{
	return prepared_is_name(item->snapshot.name) && !item->damaged &&
	       snapshot_find_workspace(&item->snapshot) == SNAPSHOT_WORKSPACE_GONE;
}

/* Remove the locks in FOLDER that nobody holds; the number of them. */
static size_t sweep_locks(const char *folder, bool dry)
{
	auto_close int at = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct fd_names names = {0};
	size_t count = 0;

	if (at >= 0)
		fd_names_read(&names, at, SNAPSHOT_LIST_MAX, true);
	for (size_t i = 0; i < names.count; i++) {
		const char *name = names.items[i];
		auto_close int fd = -1;

		if (strncmp(name, LOCK, strlen(LOCK)) != 0 ||
		    !prepared_is_name(name + strlen(LOCK)))
			continue;
		fd = openat(at, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 || !lock_file(fd))
			continue;
		count += dry || unlinkat(at, name, 0) == 0;
	}
	fd_names_fini(&names);
	return count;
}

size_t prepared_prune(const char *folder, struct snapshot_list *list, bool dry)
{
	struct err err;

	for (size_t i = 0; i < list->count; i++) {
		struct snapshot_item *item = &list->items[i];
		const char *name = item->snapshot.name;

		item->goes = is_lost(item) && !item->used && !is_below(list, name) &&
			     (dry || snapshot_remove(folder, name, &err));
	}
	if (!dry)
		snapshot_tidy(folder);
	return sweep_locks(folder, dry);
}
