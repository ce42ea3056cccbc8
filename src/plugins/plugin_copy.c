/* plugin_copy: one walk, that hashes and, when asked, copies; see plugin_copy.h. */
#include "plugins/plugin_copy.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* A cell of root runs as somebody else; the folder above is the user's alone. */
	FOLDER_MODE = 0755,
	FILE_MODE = 0644,
	PROGRAM_MODE = 0755,
	LINK_MAX_BYTES = 1024,
};

struct walk {
	struct hash *hash;
	size_t bytes, files;
	const char *source; /* for sentences */
};

static bool entry_copy(struct walk *walk, int from, const char *name, int to,
		       const char *path, int depth, struct err *err);

/* One record: kind, path and what follows, each of a length that is told. */
static void add_record(struct walk *walk, char kind, const char *path, struct str content)
{
	char head[64];

	(void)snprintf(head, sizeof(head), "%c %zu %zu\n", kind, strlen(path), content.size);
	hash_add(walk->hash, str_of(head));
	hash_add(walk->hash, str_of(path));
	if (content.size > 0)
		hash_add(walk->hash, content);
}

static bool count_in(struct walk *walk, size_t bytes, struct err *err)
{
	walk->bytes += bytes;
	walk->files++;
	if (walk->bytes > PLUGIN_COPY_MAX || walk->files > PLUGIN_COPY_FILES)
		return err_set(err, EFBIG, "%s: a plugin has at most %d MiB and %d files",
			       walk->source, PLUGIN_COPY_MAX >> 20, PLUGIN_COPY_FILES);
	return true;
}

static bool file_copy(struct walk *walk, int from, const char *name, int to,
		      const char *path, struct err *err)
{
	auto_close int fd =
		openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct buf content;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, fd < 0 ? errno : EINVAL,
			       "%s: cannot be read as a file", path);
	buf_init(&content, PLUGIN_COPY_MAX);
	bool ok = fd_read_all(fd, &content, path, err) && count_in(walk, content.size, err);
	if (ok) {
		bool runs = (st.st_mode & S_IXUSR) != 0;

		add_record(walk, runs ? 'x' : 'f', path, buf_str(&content));
		if (to >= 0) {
			auto_close int out =
				openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				       0600);
			ok = (out >= 0 &&
			      fchmod(out, runs ? PROGRAM_MODE : FILE_MODE) == 0) ||
			     err_set(err, errno, "%s: %s", path, strerror(errno));
			ok = ok && fd_write_all(out, content.data, content.size, err);
		}
	}
	buf_fini(&content);
	return ok;
}

/*
 * Does TARGET climb after it has gone down? It may have gone down by another link, and then ".."
 * is not what the text says: where it leads cannot be told from it.
 */
static bool climbs_late(const char *target)
{
	bool down = false;

	while (*target != '\0') {
		const struct str name = {target, strcspn(target, "/")};

		target += name.size;
		target += strspn(target, "/");
		if (down && str_is(name, ".."))
			return true;
		down = down || !str_among(". ..", name);
	}
	return false;
}

/* A link that stays inside keeps its text; PATH is below the top. */
static bool link_copy(struct walk *walk, int from, const char *name, int to,
		      const char *path, struct err *err)
{
	char target[LINK_MAX_BYTES + 1], above[PATH_MAX];
	ssize_t size = readlinkat(from, name, target, LINK_MAX_BYTES);
	struct buf leads;

	if (size <= 0 || size >= LINK_MAX_BYTES)
		return err_set(err, EINVAL, "%s: a link that cannot be read", path);
	target[size] = '\0';
	if (snprintf(above, sizeof(above), "/%s", path) >= (int)sizeof(above))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", path);
	above[path_base_name(above) - above] = '\0';
	buf_init(&leads, PATH_MAX);
	bool inside = target[0] != '/' && !climbs_late(target) &&
		      path_normal(above, target, &leads);
	buf_fini(&leads);
	if (!inside)
		return err_set(err, EPERM,
			       "%s/%s is a link that leads out of the plugin, to %s: a plugin is "
			       "one folder, put a copy into it",
			       walk->source, path, target);
	if (!count_in(walk, (size_t)size, err))
		return false;
	add_record(walk, 'l', path, str_of(target));
	return to < 0 || symlinkat(target, to, name) == 0 ||
	       err_set(err, errno, "%s: %s", path, strerror(errno));
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int wanted(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
	       strcmp(entry->d_name, ".git") != 0;
}

/*
 * Hash the content of the folder FROM and copy it to the folder TO (-1: no copy is made).
 * PATH "" is the top.
 */
static bool folder_copy(struct walk *walk, int from, int to, const char *path, int depth,
			struct err *err)
{
	struct dirent **names = NULL;
	int count = scandirat(from, ".", &names, wanted, by_name);
	bool ok = count >= 0 ||
		  err_set(err, errno, "%s: %s", walk->source, strerror(errno));

	if (ok && (depth > PLUGIN_COPY_DEPTH || count > PLUGIN_COPY_FILES))
		ok = err_set(err, EFBIG, "%s: a plugin has at most %d levels and %d files",
			     walk->source, PLUGIN_COPY_DEPTH, PLUGIN_COPY_FILES);
	for (int i = 0; i < count; i++) {
		char below[PATH_MAX];

		ok = ok && snprintf(below, sizeof(below), "%s%s%s", path, *path ? "/" : "",
				    names[i]->d_name) < (int)sizeof(below);
		ok = ok && entry_copy(walk, from, names[i]->d_name, to, below, depth, err);
		free(names[i]);
	}
	free(names);
	return ok;
}

static bool entry_copy(struct walk *walk, int from, const char *name, int to,
		       const char *path, int depth, struct err *err)
{
	auto_close int below_from = -1;
	auto_close int below_to = -1;
	struct stat st;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, errno, "%s/%s: %s", walk->source, path, strerror(errno));
	if (S_ISREG(st.st_mode))
		return file_copy(walk, from, name, to, path, err);
	if (S_ISLNK(st.st_mode))
		return link_copy(walk, from, name, to, path, err);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, EINVAL, "%s/%s is neither file nor folder",
			       walk->source, path);
	if (!count_in(walk, 0, err))
		return false;
	add_record(walk, 'd', path, (struct str){0});
	below_from = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to >= 0 && below_from >= 0 && mkdirat(to, name, FOLDER_MODE) == 0)
		below_to =
			openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below_from < 0 ||
	    (to >= 0 && (below_to < 0 || fchmod(below_to, FOLDER_MODE) < 0)))
		return err_set(err, errno, "%s/%s: %s", walk->source, path, strerror(errno));
	return folder_copy(walk, below_from, below_to, path, depth + 1, err);
}

/* SOURCE, to the folder TO (-1: nowhere); its hash. */
static bool walk_source(const char *source, int to, char hex[HASH_HEX + 1], struct err *err)
{
	struct walk walk = {.source = source};
	auto_close int fd = open(source, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	uint8_t digest[HASH_BYTES];
	struct stat st;
	bool ok;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", source, strerror(errno));
	walk.hash = hash_new();
	if (S_ISDIR(st.st_mode)) {
		ok = folder_copy(&walk, fd, to, "", 0, err);
	} else {
		auto_free char *real = realpath(source, NULL);
		auto_free char *above = memory_copy(real);
		const char *name = real != NULL ? path_base_name(real) : "";

		if (above != NULL)
			above[name - real] = '\0';
		auto_close int folder =
			above != NULL ? open(above, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
		ok = (folder >= 0 && S_ISREG(st.st_mode)) ||
		     err_set(err, EINVAL, "%s: is neither a file nor a folder", source);
		ok = ok && file_copy(&walk, folder, name, to, name, err);
	}
	hash_digest(walk.hash, digest);
	hash_free(walk.hash);
	for (size_t i = 0; i < HASH_BYTES; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	return ok;
}

bool plugin_copy_hash(const char *source, char hex[HASH_HEX + 1], struct err *err)
{
	return walk_source(source, -1, hex, err);
}

/* Into a folder of its own first, that gets its name when it is whole. */
static bool copy_new(const char *source, const char *folder, const char *hex,
		     const char *place, struct err *err)
{
	char temp[PATH_MAX], files[PATH_MAX], found[HASH_HEX + 1];
	bool ok;

	if (snprintf(temp, sizeof(temp), "%s/new-XXXXXX", folder) >= (int)sizeof(temp) ||
	    mkdtemp(temp) == NULL)
		return err_set(err, errno, "%s: %s", folder, strerror(errno));
	(void)chmod(temp, FOLDER_MODE);
	(void)snprintf(files, sizeof(files), "%.4000s/files", temp);
	ok = mkdir(files, FOLDER_MODE) == 0 && chmod(files, FOLDER_MODE) == 0;
	auto_close int to = ok ? open(files, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (to < 0)
		ok = err_set(err, errno, "%s: %s", files, strerror(errno));
	ok = ok && walk_source(source, to, found, err) &&
	     (strcmp(found, hex) == 0 ||
	      err_set(err, ESTALE, "%s: changed while it was copied; try again", source));
	/* Somebody else may have been quicker, with the same. */
	if (ok && rename(temp, place) < 0 && access(place, F_OK) < 0)
		ok = err_set(err, errno, "%s: %s", place, strerror(errno));
	folder_remove(temp);
	return ok;
}

bool plugin_copy_make(const char *source, const char *folder, const char *hex,
		      struct buf *copy, struct err *err)
{
	char place[PATH_MAX];
	struct stat st;

	if (snprintf(place, sizeof(place), "%s/%s", folder, hex) >= (int)sizeof(place))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", folder);
	if (!fd_make_folders(place, err))
		return false;
	if (access(place, F_OK) < 0 && !copy_new(source, folder, hex, place, err))
		return false;
	(void)buf_addf(copy, "%s/files", place);
	if (stat(source, &st) == 0 && S_ISREG(st.st_mode)) {
		auto_free char *real = realpath(source, NULL);

		(void)buf_addf(copy, "/%s", path_base_name(real != NULL ? real : source));
	}
	return true;
}
