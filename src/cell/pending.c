/*
 * pending: a file that its front holds locked. It contains two lines of JSON: the guard
 * and, after the first write, the rights. The journals lie beside it; their names are its
 * name and a number.
 */
#include "cell/pending_parts.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "view/spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static bool add_line(int fd, const struct value *value)
{
	struct buf text;

	buf_init(&text, PENDING_MAX);
	bool fine = value_print(value, 0, &text) && buf_addc(&text, '\n') &&
		    fd_write_all(fd, text.data, text.size, NULL);
	buf_fini(&text);
	return fine;
}

static bool record_write(struct pending *pending, const char *project,
			 const struct value *guard)
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return false;
	(void)snprintf(pending->name, sizeof(pending->name), "%.*s-%08x",
		       PENDING_PROJECT_DIGITS, project, number);
	pending->fd = openat(pending->folder, pending->name,
			     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return pending->fd >= 0 && flock(pending->fd, LOCK_EX | LOCK_NB) == 0 &&
	       add_line(pending->fd, guard);
}

struct pending *pending_open(const char *folder, const char *workspace,
			     struct value *guard, bool *due)
{
	struct pending *pending = memory_alloc(sizeof(*pending));
	char project[HASH_HEX + 1];

	*pending = (struct pending){.fd = -1, .idle = {.fd = -1}};
	hash_text(str_of(workspace), project);
	project[PENDING_PROJECT_DIGITS] = '\0';
	pending->folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (pending->folder < 0 && errno == ENOENT && fd_make_folders(folder, NULL) &&
	    mkdir(folder, 0700) == 0)
		pending->folder =
			open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (pending->folder >= 0) {
		pending_take_over(pending, project, guard);
		*due = pending->left_count > 0;
		if (record_write(pending, project, guard)) {
			/*
			 * Our file exists before the old files are removed, so a death in
			 * between loses nothing.
			 */
			pending->due = *due;
			if (pending->writes == NULL && pending->granted == NULL)
				pending_remove_left(pending, true);
			return pending;
		}
	}
	pending_close(pending);
	return NULL;
}

bool pending_is_held(const char *folder, const char *hash)
{
	DIR *names = opendir(folder);
	bool held = false;

	if (names == NULL)
		return false;
	for (const struct dirent *at = readdir(names); !held && at != NULL;
	     at = readdir(names)) {
		if (strncmp(at->d_name, hash, PENDING_PROJECT_DIGITS) != 0 ||
		    at->d_name[PENDING_PROJECT_DIGITS] != '-' ||
		    strchr(at->d_name, '.') != NULL)
			continue;
		auto_close int fd = openat(dirfd(names), at->d_name,
					   O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
	}
	(void)closedir(names);
	return held;
}

void pending_set_audit_due(struct pending *pending, bool due)
{
	if (pending != NULL)
		pending->due = due;
}

static void journal_remove(struct pending *pending, struct pending_journal *journal)
{
	char name[2 * PENDING_NAME];

	if (pending != NULL && journal->fd >= 0 && journal->number > 0) {
		(void)snprintf(name, sizeof(name), "%s.%u", pending->name, journal->number);
		(void)unlinkat(pending->folder, name, 0);
	}
	fd_close(&journal->fd);
}

void pending_close(struct pending *pending)
{
	if (pending == NULL)
		return;
	journal_remove(pending, &pending->idle);
	if (pending->fd >= 0 && !pending->due)
		(void)unlinkat(pending->folder, pending->name, 0);
	/* Leave unfinished writes for the next session. */
	pending_remove_left(pending, false);
	value_free(pending->writes);
	value_free(pending->granted);
	value_free(pending->granted_roots);
	fd_close(&pending->fd);
	fd_close(&pending->folder);
	free(pending);
}

/* Write the rights to disk once. Without them nobody could finish a write. */
static bool rights_write(struct pending *pending, const struct cell_spec *spec)
{
	if (!pending->has_rights) {
		auto_value struct value *rights = spec_rights(spec);
		pending->has_rights =
			add_line(pending->fd, rights) && fdatasync(pending->fd) == 0;
	}
	return pending->has_rights;
}

void pending_file(const struct stat *st, char text[PENDING_FILE])
{
	(void)snprintf(text, PENDING_FILE, "%jx:%jx", (uintmax_t)st->st_dev,
		       (uintmax_t)st->st_ino);
}

void pending_grant(struct pending *pending, const char *path, const struct stat *root)
{
	auto_value struct value *line = value_new_object();
	auto_free char *key = path_key(path);
	struct value *granted = value_new_object();
	char file[PENDING_FILE];

	pending_file(root, file);
	value_set_text(granted, "path", key);
	value_set_text(granted, "file", file);
	value_set(line, PENDING_GRANTED, granted);
	if (pending != NULL)
		(void)(add_line(pending->fd, line) && fdatasync(pending->fd) == 0);
}

void pending_give(struct pending *pending, const struct cell_spec *spec,
		  struct pending_journal *journal)
{
	char name[2 * PENDING_NAME];

	*journal = (struct pending_journal){.fd = -1};
	if (pending != NULL && pending->idle.fd >= 0) {
		*journal = pending->idle;
		pending->idle.fd = -1;
		return;
	}
	if (pending != NULL && rights_write(pending, spec)) {
		journal->number = ++pending->last;
		(void)snprintf(name, sizeof(name), "%s.%u", pending->name, journal->number);
		journal->fd =
			openat(pending->folder, name,
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (journal->fd >= 0)
			(void)flock(journal->fd, LOCK_EX | LOCK_NB);
	}
	if (journal->fd < 0)
		*journal = (struct pending_journal){
			.fd = memfd_create("glovebox-journal", MFD_CLOEXEC)};
}

void pending_take_back(struct pending *pending, struct pending_journal *journal)
{
	struct stat st;

	if (journal->fd < 0)
		return;
	/*
	 * A journal that is not empty holds more than its call should have left. Do not
	 * reuse it.
	 */
	if (pending != NULL && journal->number > 0 && pending->idle.fd < 0 &&
	    fstat(journal->fd, &st) == 0 && st.st_size == 0) {
		pending->idle = *journal;
		journal->fd = -1;
		return;
	}
	journal_remove(pending, journal);
}
