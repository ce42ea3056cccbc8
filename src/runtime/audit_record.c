/* audit_record: the guard as a file that its front holds locked. */
#include "runtime/audit_record.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	PROJECT_DIGITS = 16, /* of the workspace's hash, as for its home */
	NAME_BYTES = 64,
	RECORD_MAX = 8 << 20,
	/* A file without content belongs to a front that begins now, or died doing so. */
	EMPTY_AGE_S = 3600,
};

struct audit_record {
	int folder, fd;
	char name[NAME_BYTES];
	bool due;
};

/* Keep of DANGERS only what EARLIER had too: the rest came in between. */
static void keep_known(struct value *dangers, const struct value *earlier)
{
	auto_value struct value *all = value_copy(dangers);

	for (void *at = value_first(all); at != NULL; at = value_next(all, at)) {
		if (!value_equal(value_member(earlier, value_key(at)), value_at(at)))
			value_remove(dangers, value_key(at));
	}
}

/* The file of an earlier front, when nobody holds it any more; -1 else. */
static int open_left(int folder, const char *name, struct stat *st)
{
	auto_close int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, st) < 0 ||
	    st->st_nlink == 0)
		return -1;
	return fd_take(&fd);
}

/* GUARD becomes what the dead front's began with. False when there is nothing to take. */
static bool take_over(int folder, const char *name, struct value *guard)
{
	struct stat st;
	auto_close int fd = open_left(folder, name, &st);
	auto_value struct value *earlier = NULL;
	struct buf text;
	bool read;

	if (fd < 0)
		return false;
	if (st.st_size == 0) {
		if (st.st_mtim.tv_sec + EMPTY_AGE_S < time(NULL))
			(void)unlinkat(folder, name, 0);
		return false;
	}
	buf_init(&text, RECORD_MAX);
	read = fd_read_all(fd, &text, name, NULL) &&
	       value_parse(buf_str(&text), 0, &earlier, NULL);
	buf_fini(&text);
	/* One that cannot be read says nothing of what was there: all counts as new. */
	keep_known(value_member(guard, "dangers"),
		   read ? value_member(earlier, "dangers") : NULL);
	return true;
}

/* The names of the files that were taken over. */
static struct value *take_over_all(int folder, const char *project, struct value *guard)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
	struct value *taken = value_new_array();

	if (names == NULL) {
		fd_close(&fd);
		return taken;
	}
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (strncmp(at->d_name, project, PROJECT_DIGITS) == 0 &&
		    take_over(folder, at->d_name, guard))
			value_append(taken, value_new_text(at->d_name));
	}
	(void)closedir(names);
	return taken;
}

static void remove_left(int folder, const struct value *names)
{
	struct stat st;

	for (size_t i = 0; i < value_count(names); i++) {
		const char *name = value_text(value_item(names, i));
		auto_close int fd = open_left(folder, name, &st);

		if (fd >= 0)
			(void)unlinkat(folder, name, 0);
	}
}

static bool record_write(struct audit_record *record, const char *project,
			 const struct value *guard)
{
	uint32_t number;
	struct buf text;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return false;
	(void)snprintf(record->name, sizeof(record->name), "%.*s-%08x", PROJECT_DIGITS,
		       project, number);
	record->fd = openat(record->folder, record->name,
			    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (record->fd < 0)
		return false;
	buf_init(&text, RECORD_MAX);
	bool fine = flock(record->fd, LOCK_EX | LOCK_NB) == 0 &&
		    value_print(guard, 0, &text) &&
		    fd_write_all(record->fd, text.data, text.size, NULL);
	buf_fini(&text);
	return fine;
}

struct audit_record *audit_record_open(const char *folder, const char *workspace,
				       struct value *guard, bool *due)
{
	struct audit_record *record = memory_alloc(sizeof(*record));
	char project[HASH_HEX + 1];

	*record = (struct audit_record){.fd = -1};
	hash_text(str_of(workspace), project);
	record->folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (record->folder < 0 && errno == ENOENT && fd_make_folders(folder, NULL) &&
	    mkdir(folder, 0700) == 0)
		record->folder =
			open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (record->folder >= 0) {
		auto_value struct value *left =
			take_over_all(record->folder, project, guard);
		*due = value_count(left) > 0;
		if (record_write(record, project, guard)) {
			/* Ours is there before theirs go: a death in between loses nothing. */
			record->due = *due;
			remove_left(record->folder, left);
			return record;
		}
	}
	audit_record_close(record);
	return NULL;
}

void audit_record_set_due(struct audit_record *record, bool due)
{
	if (record != NULL)
		record->due = due;
}

void audit_record_close(struct audit_record *record)
{
	if (record == NULL)
		return;
	if (record->fd >= 0 && !record->due)
		(void)unlinkat(record->folder, record->name, 0);
	fd_close(&record->fd);
	fd_close(&record->folder);
	free(record);
}
