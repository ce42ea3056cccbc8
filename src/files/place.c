/* place: the place where a file is or would be written, and the content there now. */
#include "files/files.h"
#include "files/place_parts.h"
#include "files/undo_log.h"

#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "policy/autoexec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

void place_init(struct place *place)
{
	memset(place, 0, sizeof(*place));
	place->folder_fd = -1;
	buf_init(&place->folder, PATH_MAX);
}

void place_fini(struct place *place)
{
	if (!place)
		return;
	fd_close(&place->folder_fd);
	buf_fini(&place->folder);
	free(place->name);
	place->name = NULL;
}

void files_mark(struct str content, const struct stat *st, char mark[FILES_MARK])
{
	uint64_t size = st ? (uint64_t)st->st_size : content.size;

	if (size <= FILES_HASHED_MAX || !st) {
		hash_text(content, mark);
		return;
	}
	(void)snprintf(mark, FILES_MARK,
		       "stat:%" PRIx64 ":%" PRIx64 ":%" PRIx64 ".%09ld:%" PRIx64 ".%09ld",
		       (uint64_t)st->st_ino, size, (uint64_t)st->st_mtim.tv_sec,
		       st->st_mtim.tv_nsec, (uint64_t)st->st_ctim.tv_sec,
		       st->st_ctim.tv_nsec);
}

/*
 * Is REAL git's own record? Git would take a file that a tool puts there (a HEAD, a ref,
 * an index) as its own, and no audit could tell it from git's work. A root inside a
 * `.git` was named by the policy as writable, so its files do not count.
 */
static bool is_gits(const struct files *files, const char *real)
{
	const struct files_held *root = files_root_of(files, real);

	if (!root)
		return false;
	return path_names_git(path_relative(real, root->path)) ||
	       path_names_git(path_base_name(root->path));
}

/* Is the folder in ROOT, named by the first SIZE bytes of RELATIVE, a worktree of git? */
static bool is_worktree(const struct files_held *root, const char *relative, size_t size)
{
	char git[PATH_MAX];
	struct stat st;

	return snprintf(git, sizeof(git), "%.*s/.git", (int)size, relative) <
		       (int)sizeof(git) &&
	       fstatat(root->fd, git, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * The row of autoexec.h for REAL, when REAL is a name at the top of a root or of a
 * worktree that another agent would run; NULL: it is no such name. The audit would put
 * such a file away later. An error now lets the caller do something else.
 */
static const struct autoexec *autoexec_of_real(const struct files *files, const char *real)
{
	const struct files_held *root = files_root_of(files, real);
	const struct autoexec *row;

	if (!root)
		return NULL;
	const char *relative = path_relative(real, root->path);
	row = autoexec_protects(root->path, relative);
	for (const char *slash = strchr(relative, '/'); !row && slash;
	     slash = strchr(slash + 1, '/')) {
		row = autoexec_protects("/", slash + 1);
		if (row && !is_worktree(root, relative, (size_t)(slash - relative)))
			row = NULL;
	}
	return row;
}

/* May REAL (folder and name put together) be written at all? */
static bool check_writable(const struct files *files, const char *real, const char *shown,
			   struct err *err)
{
	if (files_is_blocked(files, real))
		return files_say_missing(shown, err);
	if (!files_is_writable(files, real))
		return err_set(err, EROFS, "%s may not be written by this agent.", shown);
	if (is_gits(files, real))
		return err_set(err, FILES_PROTECTED,
			       "%s is protected: what is in .git is written by git alone.",
			       shown);
	const struct autoexec *row = autoexec_of_real(files, real);
	if (row)
		return err_set(err, FILES_AUTOEXEC,
			       "%s is protected: %s runs what stands there, or takes its settings "
			       "from it, outside of the cell and without a question.",
			       shown, row->reader);
	return true;
}

static void join(const char *folder, const char *name, struct buf *out)
{
	buf_clear(out);
	buf_adds(out, folder);
	if (!str_ends(buf_str(out), STR("/")))
		buf_addc(out, '/');
	buf_adds(out, name);
}

/*
 * Make the folders REST (several names) beneath the folder of PLACE, which becomes the
 * last of them. A folder that another process has made in the meantime is not counted.
 */
static bool make_below(struct place *place, char *rest, const char *shown, struct err *err)
{
	const struct undo_state folder = {.kind = UNDO_FOLDER};
	struct buf made;
	bool ok = true;

	buf_init(&made, PATH_MAX);
	while (ok && rest && *rest) {
		const char *name = strsep(&rest, "/");

		join(place->folder.data, name, &made);
		if (faccessat(place->folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
		    !files_keep_change(place->files, made.data, -1, NULL, &folder, err)) {
			ok = false;
			break;
		}
		bool ours = mkdirat(place->folder_fd, name, 0777) == 0;
		int next = ours || errno == EEXIST
				   ? files_open_below(place->folder_fd, name, FILES_FOLDER)
				   : -1;

		ok = next >= 0 || files_say(errno, shown, err);
		place->made_folders = ours ? place->made_folders + 1 : 0;
		if (!ok)
			break;
		fd_close(&place->folder_fd);
		place->folder_fd = next;
		buf_clear(&place->folder);
		buf_addstr(&place->folder, buf_str(&made));
	}
	buf_fini(&made);
	return ok;
}

void place_unmake_folders(struct place *place)
{
	struct buf real;
	struct err err;

	buf_init(&real, PATH_MAX);
	for (; place->made_folders > 0; place->made_folders--) {
		char *slash = strrchr(place->folder.data, '/');
		auto_free char *name = slash ? memory_copy(slash + 1) : NULL;
		auto_close int above = -1;

		if (!slash || slash == place->folder.data)
			break;
		buf_truncate(&place->folder, (size_t)(slash - place->folder.data));
		above = files_open_real(place->files, place->folder.data,
					O_PATH | O_DIRECTORY, &real, place->name, &err);
		if (above < 0 || unlinkat(above, name, AT_REMOVEDIR) < 0)
			break;
	}
	place->made_folders = 0;
	buf_fini(&real);
}

/* The folder ABSOLUTE is missing: make it below the deepest part of it that exists. */
static bool make_folders(const struct files *files, const char *absolute,
			 struct place *place, const char *shown, struct err *err)
{
	auto_free char *above = memory_copy(absolute);
	auto_free char *rest = NULL;
	struct buf whole;
	struct err why = {0};
	bool ok = false;

	do {
		char *slash = strrchr(above, '/');

		if (!slash || slash == above)
			return files_say_missing(shown, err);
		*slash = '\0';
		place->folder_fd = files_open_real(files, above, O_PATH | O_DIRECTORY,
						   &place->folder, shown, &why);
	} while (place->folder_fd < 0 && why.code == ENOENT);
	if (place->folder_fd < 0)
		return err_set(err, why.code, "%s", why.text);
	rest = memory_copy(absolute + strlen(above) + 1);
	buf_init(&whole, PATH_MAX);
	join(place->folder.data, rest, &whole);
	if (check_writable(files, whole.data, shown, err) &&
	    make_below(place, rest, shown, err)) {
		ok = true;
	}
	if (!ok)
		place_unmake_folders(place);
	buf_fini(&whole);
	return ok;
}

/*
 * Open the folder of PATH (normal, absolute) and look at its last name. When the last
 * name is a link, PATH becomes its target. Returns 1: look again, 0: done, -1: failed.
 */
static int look_at(const struct files *files, struct buf *path, bool make,
		   struct place *place, const char *shown, struct err *err)
{
	auto_free char *folder = memory_copy(path->data);
	char *slash = strrchr(folder, '/');
	char target[PATH_MAX];
	ssize_t size;

	free(place->name);
	place->name = memory_copy(slash + 1);
	slash[slash == folder] = '\0';
	fd_close(&place->folder_fd);
	place->folder_fd = files_open_real(files, folder, O_PATH | O_DIRECTORY,
					   &place->folder, shown, err);
	if (place->folder_fd < 0 && (!make || err->code != ENOENT ||
				     !make_folders(files, folder, place, shown, err)))
		return -1;
	place->exists = fstatat(place->folder_fd, place->name, &place->st,
				AT_SYMLINK_NOFOLLOW) == 0;
	if (!place->exists)
		return errno == ENOENT ? 0 : (files_say(errno, shown, err), -1);
	if (!S_ISLNK(place->st.st_mode))
		return 0;
	size = readlinkat(place->folder_fd, place->name, target, sizeof(target) - 1);
	if (size < 0)
		return files_say(errno, shown, err), -1;
	target[size] = '\0';
	buf_clear(path);
	if (!path_normal(place->folder.data, target, path))
		return files_say_missing(shown, err), -1;
	return 1;
}

/*
 * Is ABSOLUTE the folder of a root, or "/"? The parent of a root may lie outside all
 * roots, so this must be known before the parent is opened.
 */
static bool is_root_folder(const struct files *files, const char *absolute)
{
	struct stat st;

	for (size_t i = 0; i < files->root_count; i++) {
		if (strcmp(files->roots[i].path, absolute) == 0)
			return fstat(files->roots[i].fd, &st) == 0 && S_ISDIR(st.st_mode);
	}
	return strcmp(absolute, "/") == 0;
}

static bool place_find(const struct files *files, const char *path, bool make,
		       struct place *place, struct buf *absolute, struct err *err)
{
	int more = 1;

	if (!files_normal(files, path, absolute, err))
		return false;
	for (int links = 0; more > 0; links++) {
		if (links > FILES_LINKS_MAX)
			return files_say(ELOOP, path, err);
		if (is_root_folder(files, absolute->data))
			return files_say(EISDIR, path, err);
		more = look_at(files, absolute, make, place, path, err);
	}
	if (more < 0)
		return false;
	if (place->exists && S_ISDIR(place->st.st_mode))
		return files_say(EISDIR, path, err);
	if (place->exists && !S_ISREG(place->st.st_mode))
		return files_say(ENXIO, path, err);
	if (files_asks_folder(path))
		return place->exists
			       ? files_say_no_folder(path, err)
			       : err_set(err, EISDIR,
					 "%s ends as the path of a folder does.", path);
	join(place->folder.data, place->name, absolute);
	place->root = files_root_of(files, absolute->data);
	return check_writable(files, absolute->data, path, err);
}

/* A file that is a root of its own is a mount point, which no rename can replace. */
static bool is_lone_file(const struct files *files, const char *absolute)
{
	struct stat st;

	for (size_t i = 0; i < files->root_count; i++) {
		if (strcmp(files->roots[i].path, absolute) == 0 &&
		    fstat(files->roots[i].fd, &st) == 0)
			return S_ISREG(st.st_mode);
	}
	return false;
}

bool files_place(struct files *files, const char *path, bool make, struct place *place,
		 struct err *err)
{
	struct err why = {0};
	struct buf absolute;
	bool found;

	place->files = files;
	buf_init(&absolute, PATH_MAX);
	if (files_normal(files, path, &absolute, NULL) &&
	    is_lone_file(files, absolute.data)) {
		buf_fini(&absolute);
		return err_set(err, EPERM,
			       "%s is open to this agent as a single file, which cannot be "
			       "replaced in one piece. Change it with a command, or ask the "
			       "user to name its folder in `write`.",
			       path);
	}
	place->files = files;
	found = place_find(files, path, make, place, &absolute, &why);
	if (!found)
		place_unmake_folders(place);
	buf_fini(&absolute);
	return found || err_set(err, why.code, "%s", why.text);
}

int place_open_old(const struct place *place, struct stat *st, struct err *err)
{
	int fd = files_open_regular(place->folder_fd, place->name, st);

	if (fd < 0)
		files_say(errno, place->name, err);
	return fd;
}

bool place_read(const struct place *place, size_t max, struct buf *content,
		struct stat *st, struct err *err)
{
	auto_close int fd = place_open_old(place, st, err);

	if (fd < 0)
		return false;
	if (st->st_size > 0 && (uint64_t)st->st_size > max)
		return err_set(err, EFBIG, "%s has %jd bytes; at most %zu are taken.",
			       place->name, (intmax_t)st->st_size, max);
	return fd_read_looked(fd, st->st_size, content, place->name, err);
}
