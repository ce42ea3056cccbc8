/* spill: makes, numbers and removes spill files. */
#include "tool/spill.h"

#include "base/fd.h"
#include "process/program.h"

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
	/* how often another number is tried when another process has taken this one */
	SPILL_TRIES = 64,
	SPILL_NAME = 32,
};

const char *spill_folder(const char *const *environment, struct buf *path)
{
	const char *base = "/tmp";

	for (; environment != NULL && *environment != NULL; environment++) {
		if (strncmp(*environment, "TMPDIR=/", 8) == 0)
			base = *environment + 7;
	}
	(void)buf_addf(path, "%s/glovebox", base);
	return path->data;
}

static int open_folder(const char *folder)
{
	/*
	 * Do not follow a link that a command has put there. The commands write only
	 * with their own rights.
	 */
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(folder, flags);

	if (fd < 0 && errno == ENOENT && (mkdir(folder, 0777) == 0 || errno == EEXIST))
		fd = open(folder, flags);
	return fd;
}

int spill_open(const char *folder)
{
	auto_close int folder_fd = open_folder(folder);

	if (folder_fd < 0)
		return -1;
	return openat(folder_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
}

/* The number of "N.log", 0 for any other name. */
static long number_of(const char *name)
{
	char *end;
	long number = strtol(name, &end, 10);

	if (name[0] < '1' || name[0] > '9' || number > INT32_MAX || end[0] != '.' ||
	    end[1] != 'l' || end[2] != 'o' || end[3] != 'g' || end[4] != '\0')
		return 0;
	return number;
}

/* Returns the highest number that exists, and removes files up to the number DROP. */
static long scan(int folder_fd, long drop)
{
	int copy = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	long highest = 0;

	if (!dir) {
		fd_close(&copy);
		return 0;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		long number = number_of(entry->d_name);

		if (number > highest)
			highest = number;
		if (number > 0 && number <= drop)
			(void)unlinkat(folder_fd, entry->d_name, 0);
	}
	(void)closedir(dir);
	return highest;
}

bool spill_keep(int fd, const char *folder, struct buf *path)
{
	auto_close int folder_fd = open_folder(folder);
	long number;

	if (folder_fd < 0)
		return false;
	number = scan(folder_fd, 0) + 1;
	for (int i = 0; i < SPILL_TRIES; i++, number++) {
		char name[SPILL_NAME];

		(void)snprintf(name, sizeof(name), "%ld.log", number);
		if (fd_link(fd, folder_fd, name)) {
			if (number > SPILL_KEPT)
				(void)scan(folder_fd, number - SPILL_KEPT);
			return buf_addf(path, "%s/%s", folder, name);
		}
		if (errno != EEXIST)
			return false;
	}
	return false;
}

void spill_add(struct spill *spill, struct str bytes)
{
	size_t fits = bytes.size;
	struct buf folder;

	if (!spill->tried && bytes.size > 0) {
		buf_init(&folder, PATH_MAX);
		spill->fd = spill_open(spill_folder(spill->environment, &folder));
		buf_fini(&folder);
		spill->tried = true;
	}
	if (spill->fd < 0 || spill->dropped > 0 || spill->kept >= PROGRAM_SPILL)
		fits = 0;
	else if (fits > PROGRAM_SPILL - spill->kept)
		fits = (size_t)(PROGRAM_SPILL - spill->kept);
	if (fits > 0 && !fd_write_all(spill->fd, bytes.data, fits, NULL))
		fits = 0;
	spill->kept += fits;
	spill->dropped += bytes.size - fits;
}

bool spill_name(const struct spill *spill, struct buf *path)
{
	struct buf folder;
	bool named;

	buf_init(&folder, PATH_MAX);
	named = spill->kept > 0 &&
		spill_keep(spill->fd, spill_folder(spill->environment, &folder), path);
	buf_fini(&folder);
	return named;
}

void spill_fini(struct spill *spill)
{
	fd_close(&spill->fd);
}
