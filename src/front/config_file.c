/* config_file: finds the configuration, checks its owner and mode, and reads it. */
#include "front/config_file.h"

#include "base/fd.h"
#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool config_file_beside(const char *name, struct buf *path)
{
	char inside[NAME_MAX + 1];
	int size = snprintf(inside, sizeof(inside), "glovebox/%s", name);

	return size > 0 && (size_t)size < sizeof(inside) &&
	       path_xdg(getenv("XDG_CONFIG_HOME"), getenv("HOME"), ".config", inside, path);
}

bool config_file_place(struct buf *path)
{
	return config_file_beside("config.json", path);
}

static bool check_owner(const char *path, const struct stat *st, struct err *err)
{
	if (!S_ISREG(st->st_mode))
		return err_set(err, EINVAL, "%s: is not a regular file", path);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(err, EPERM,
			       "%s: belongs to another user (uid %u), who could change what agents may "
			       "do; copy it, or chown it to yourself",
			       path, (unsigned)st->st_uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(err, EPERM, "%s: %s may write to it; chmod go-w %s", path,
			       st->st_mode & S_IWOTH ? "anyone" : "its group", path);
	return true;
}

bool config_file_read(const char *path, struct buf *buf, struct err *err)
{
	/* Without O_NONBLOCK, opening a FIFO of that name would block the program. */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	return check_owner(path, &st, err) && fd_read_all(fd, buf, path, err);
}

bool config_file_load(const char *path, struct config **config, struct err *err)
{
	struct buf place;
	struct buf text;
	struct err why = {0};
	bool fine = true;

	buf_init(&place, PATH_MAX - 1);
	buf_init(&text, CONFIG_TEXT_MAX);
	if (path || config_file_place(&place)) {
		const char *name = path ? path : place.data;

		fine = config_file_read(name, &text, &why) ||
		       (!path && (why.code == ENOENT || why.code == ENOTDIR));
		fine = fine && config_parse(buf_str(&text), name, config, &why);
		if (!fine)
			(void)err_set(err, why.code, "%s", why.text);
	} else {
		*config = config_new();
	}
	buf_fini(&text);
	buf_fini(&place);
	return fine;
}

bool config_file_load_policy(const char *path, struct value **entry, struct err *err)
{
	struct buf text;
	bool fine;

	buf_init(&text, CONFIG_TEXT_MAX);
	fine = config_file_read(path, &text, err) &&
	       config_parse_policy(buf_str(&text), path, entry, err);
	buf_fini(&text);
	return fine;
}
