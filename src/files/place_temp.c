/*
 * place_temp: the temporary file that receives a content before it is renamed to its
 * place.
 */
#include "files/place_temp.h"

#include "base/fd.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TEMP_PREFIX ".glovebox-"
#define TEMP_SUFFIX ".tmp"

enum {
	TEMP_DIGITS = 16,
	TEMP_XATTR_LIST = 65536, /* XATTR_LIST_MAX and XATTR_SIZE_MAX of the kernel */
};

void temp_make_name(char name[TEMP_NAME])
{
	uint64_t random = 0;

	while (getrandom(&random, sizeof(random), 0) != sizeof(random))
		;
	(void)snprintf(name, TEMP_NAME, TEMP_PREFIX "%016" PRIx64 TEMP_SUFFIX, random);
}

bool temp_is_name(const char *name)
{
	struct str text = str_of(name);

	return str_starts(text, STR(TEMP_PREFIX)) && str_ends(text, STR(TEMP_SUFFIX)) &&
	       text.size == strlen(TEMP_PREFIX TEMP_SUFFIX) + TEMP_DIGITS &&
	       strspn(name + strlen(TEMP_PREFIX), "0123456789abcdef") == TEMP_DIGITS;
}

void temp_drop(struct temp *temp)
{
	int saved = errno;

	if (temp->name[0])
		(void)unlinkat(temp->folder_fd, temp->name, 0);
	temp->name[0] = '\0';
	fd_close(&temp->fd);
	errno = saved;
}

bool temp_open(struct temp *temp, int folder_fd, const char *name, mode_t mode)
{
	temp->folder_fd = folder_fd;
	temp->name[0] = '\0';
	if (!name)
		temp->fd = openat(folder_fd, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
	else
		temp->fd = openat(folder_fd, name,
				  O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC,
				  mode);
	if (temp->fd >= 0 && name)
		(void)snprintf(temp->name, sizeof(temp->name), "%s", name);
	return temp->fd >= 0;
}

bool temp_write(struct temp *temp, struct str content)
{
	struct err err;

	if (!fd_write_all(temp->fd, content.data, content.size, &err)) {
		errno = err.code ? err.code : EIO;
		return false;
	}
	return true;
}

bool temp_link(const struct temp *temp, const char *name)
{
	return fd_link(temp->fd, temp->folder_fd, name);
}

bool temp_sync_folder(int folder_fd)
{
	auto_close int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) == 0 || errno == EINVAL;
}

/*
 * Copy the attributes of the old file to the new one. An attribute that the file system
 * refuses is left out.
 */
static void copy_xattrs(int from, int to)
{
	auto_free char *names = memory_alloc(TEMP_XATTR_LIST);
	auto_free char *data = NULL;
	ssize_t size = flistxattr(from, names, TEMP_XATTR_LIST);

	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
		ssize_t length;

		if (!data)
			data = memory_alloc(TEMP_XATTR_LIST);
		length = fgetxattr(from, names + at, data, TEMP_XATTR_LIST);
		if (length >= 0)
			(void)fsetxattr(to, names + at, data, (size_t)length, 0);
	}
}

bool temp_take_name(int folder_fd, const char *from, const char *to)
{
	if (renameat2(folder_fd, from, folder_fd, to, RENAME_NOREPLACE) == 0)
		return true;
	/* Without RENAME_NOREPLACE, use a hard link, which replaces no file either. */
	return (errno == EINVAL || errno == ENOSYS) &&
	       linkat(folder_fd, from, folder_fd, to, 0) == 0;
}

bool temp_copy_attributes(const struct temp *temp, int from, const struct stat *st)
{
	const int to = temp->fd;
	struct stat made;
	/*
	 * A changed file loses its set-id bits, as after write(2). A cell refuses these
	 * bits anyway.
	 */
	mode_t mode = st->st_mode & 01777;

	if (fstat(to, &made) < 0)
		return false;
	if (made.st_uid != st->st_uid || made.st_gid != st->st_gid) {
		/*
		 * A user may keep a group of their own even when they may not keep the
		 * owner.
		 */
		if (fchown(to, st->st_uid, st->st_gid) < 0 &&
		    fchown(to, (uid_t)-1, st->st_gid) < 0)
			errno = 0; /* the file belongs to us then, as any new file */
	}
	if (fchmod(to, mode) < 0)
		return false;
	copy_xattrs(from, to);
	return true;
}
