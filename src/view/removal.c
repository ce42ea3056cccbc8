/* removal: a process with one folder removes names in it. */

#include "view/removal.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/overlay.h"
#include "sandbox/outside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOVED ".glovebox-dropped-"
enum { DIGITS = 16 };

/* In the process itself. Its exit code is a number of errno.h, which all fit. */

static int remove_name(int at, const char *name)
{
	char own[FD_NAME_ROOM], path[FD_NAME_ROOM + NAME_MAX + 2];
	struct stat st;

	if (unlinkat(at, name, 0) == 0)
		return 0;
	if (errno == ENOENT)
		return ENOENT;
	(void)snprintf(path, sizeof(path), "%s/%s", fd_name(at, own), name);
	fd_folder_remove(path);
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return unlinkat(at, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) == 0 ? 0 : errno;
}

/* Remove the names in AT that begin with START. Returns the first failure. */
static int remove_all(int at, const char *start)
{
	DIR *names = fd_open_names(at);
	int first = names == NULL ? errno : 0;

	for (const struct dirent *entry = names != NULL ? readdir(names) : NULL;
	     entry != NULL; entry = readdir(names)) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strncmp(entry->d_name, start, strlen(start)) != 0)
			continue;
		const int code = remove_name(at, entry->d_name);

		if (first == 0 && code != ENOENT)
			first = code;
	}
	if (names != NULL)
		(void)closedir(names);
	return first;
}

/* Take NAME out of ABOVE: remove it, or move it to TOP. Returns a number of errno.h. */
static int take_away(int top, int above, const char *name)
{
	char moved[sizeof(MOVED) + DIGITS];
	uint64_t number;

	if (unlinkat(above, name, 0) == 0)
		return 0;
	/* The kernel moves only a folder that its owner may change. */
	auto_close int folder =
		openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder >= 0)
		(void)fchmod(folder, S_IRWXU);
	else if (errno == EACCES)
		(void)!fchmodat(above, name, S_IRWXU, 0);
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return errno;
	(void)snprintf(moved, sizeof(moved), MOVED "%016" PRIx64, number);
	return renameat(above, name, top, moved) < 0 ? errno : 0;
}

/* Remove NAME of the folder ABOVE somewhere below TOP. Returns a number of errno.h. */
static int remove_in(int top, int above, const char *name)
{
	struct stat st;

	if (fstat(above, &st) < 0)
		return errno;
	/* A name in a read-only folder goes as well; the folder stays as it is. */
	const bool shut = (st.st_mode & S_IRWXU) != S_IRWXU &&
			  fchmod(above, (st.st_mode & ALLPERMS) | S_IRWXU) == 0;
	int code = take_away(top, above, name);
	if (code == 0)
		code = remove_all(top, MOVED); /* ABOVE may be TOP */
	if (shut)
		(void)fchmod(above, st.st_mode & ALLPERMS);
	return code;
}

/*
 * Remove RELATIVE, which may be changed, below AT, one name at a time. A folder that is closed to
 * its owner is open while the removal is in it. Returns a number of errno.h.
 */
static int remove_below(int top, int at, char *relative)
{
	char *slash = strchr(relative, '/');
	struct stat st;

	if (slash == NULL)
		return remove_in(top, at, relative);
	*slash = '\0';
	if (fstatat(at, relative, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno;
	/* A file or a link on the way: there is nothing below it. */
	if (!S_ISDIR(st.st_mode))
		return ENOENT;
	const bool shut = (st.st_mode & (S_IRUSR | S_IXUSR)) != (S_IRUSR | S_IXUSR) &&
			  fchmodat(at, relative, (st.st_mode & ALLPERMS) | S_IRWXU, 0) == 0;
	auto_close int next =
		openat(at, relative, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int code = next < 0              ? errno
		   : overlay_hides(next) ? ENOTSUP
					 : remove_below(top, next, slash + 1);
	if (shut && next >= 0)
		(void)fchmod(next, st.st_mode & ALLPERMS);
	return code;
}

static int move_and_remove(int top, const char *relative)
{
	auto_free char *path = memory_copy(relative);

	return remove_below(top, top, path);
}

/* The caller. */

/* RELATIVE NULL: all that is in the folder. */
static int act(void *relative)
{
	return relative != NULL ? move_and_remove(OUTSIDE_FOLDER, relative)
				: remove_all(OUTSIDE_FOLDER, "");
}

int removal_empty(int at)
{
	const struct outside_folder walls = {OUTSIDE_REMOVES, at, -1};

	return outside_run(&walls, act, NULL);
}

int removal_run(int at, const char *relative)
{
	const struct outside_folder walls = {OUTSIDE_REMOVES, at, -1};
	auto_free char *own = memory_copy(relative);

	return outside_run(&walls, act, own);
}
