/*
 * pending: a file that its front holds locked. It contains two lines of JSON: the guard
 * and, after the first write, the rights. The journals lie beside it; their names are its
 * name and a number.
 */

#include "cell/pending.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/value.h"
#include "files/place.h"
#include "files/rights.h"
#include "guard/guard.h"
#include "view/spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	PENDING_PROJECT_DIGITS = 16, /* of the workspace's hash, as for its home */
	PENDING_NAME = 64,
	PENDING_MAX = 8 << 20, /* of guard and rights */
};

/* The key of a line that holds neither guard nor rights but a granted folder. */
#define PENDING_GRANTED "granted"

struct pending_name {
	char text[PENDING_NAME];
};

/* The locked file of a dead front. */
struct pending_left {
	int fd;
	struct pending_name name;
};

struct pending {
	int folder, fd;
	char name[PENDING_NAME];
	bool due, has_rights;
	unsigned last;               /* journal made last */
	struct pending_journal idle; /* the journal that the next call gets */
	struct pending_left *left;   /* the files of dead fronts */
	size_t left_count;
	/* the writes of sets that meet folders granted by a person */
	struct value *granted;
	struct value *granted_roots; /* and these folders */
	/* the allowed writes of the journals of dead fronts; NULL: none */
	struct value *writes;
	int64_t sets;    /* number of journals taken over */
	bool keeps_left; /* some writes could not be finished in this session */
};

/* Takes over the files that dead fronts left. */

enum {
	NAMES_MAX = 4096, /* of one project; further ones are ignored */
	/*
	 * An empty file belongs to a front that is just starting, or that died while
	 * starting.
	 */
	EMPTY_AGE_S = 3600,
	/*
	 * When the front is killed, the kernel sends its worker SIGKILL. The worker ends
	 * when its system call returns, for example an fsync on a busy disk.
	 */
	WORKER_END_MS = 5000,
	WORKER_END_STEP_MS = 2,
};

static bool is_journal_of(const char *name, const char *record)
{
	size_t size = strlen(record);

	return strncmp(name, record, size) == 0 && name[size] == '.';
}

/* The names in FOLDER that belong to PROJECT. */
static size_t names_read(int folder, const char *project, struct pending_name **names)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	size_t count = 0, room = 0;

	*names = NULL;
	if (list == NULL) {
		fd_close(&fd);
		return 0;
	}
	for (const struct dirent *at = readdir(list); at != NULL && count < NAMES_MAX;
	     at = readdir(list)) {
		if (strncmp(at->d_name, project, PENDING_PROJECT_DIGITS) != 0 ||
		    strlen(at->d_name) >= PENDING_NAME)
			continue;
		if (count == room) {
			room = room > 0 ? 2 * room : 16;
			*names = memory_grow(*names, room, sizeof(**names));
		}
		memcpy((*names)[count++].text, at->d_name, strlen(at->d_name) + 1);
	}
	(void)closedir(list);
	return count;
}

/*
 * Open and lock the file of an earlier front. -1 when another process holds it or it is
 * gone.
 */
static int open_left(int folder, const char *name, struct stat *st)
{
	auto_close int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, st) < 0 ||
	    st->st_nlink == 0)
		return -1;
	return fd_take(&fd);
}

/* Do RIGHTS allow the write that ROW, of a journal, describes? */
static bool is_allowed(const struct rights *rights, const struct value *row)
{
	auto_free char *folder = path_of_key(value_text(value_member(row, "folder")));
	auto_free char *name = path_of_key(value_text(value_member(row, "name")));
	struct buf path;
	bool allowed;

	if (folder == NULL || name == NULL || folder[0] != '/')
		return false;
	buf_init(&path, PATH_MAX);
	allowed = path_normal("/", folder, &path) && strcmp(path.data, folder) == 0 &&
		  buf_addf(&path, "%s%s", folder[1] != '\0' ? "/" : "", name) &&
		  rights_may_write(rights, path.data);
	buf_fini(&path);
	return allowed;
}

/* Find the folder among ROOTS, of a record, that contains FOLDER; NULL: none. */
static struct value *granted_of(const struct value *roots, const char *folder)
{
	for (size_t i = 0; i < value_count(roots); i++) {
		auto_free char *path =
			path_of_key(value_text(value_member(value_item(roots, i), "path")));

		if (path != NULL && path_within(folder, path))
			return value_item(roots, i);
	}
	return NULL;
}

/*
 * Does ROW describe a write in a folder that a person had granted? *ROOT becomes that
 * folder.
 */
static bool is_granted(const struct value *roots, const struct value *row,
		       struct value **root)
{
	auto_free char *folder = path_of_key(value_text(value_member(row, "folder")));
	const char *name = value_text(value_member(row, "name"));
	struct buf path;
	bool granted;

	if (folder == NULL || folder[0] != '/' || name == NULL || path_names_git(name))
		return false;
	buf_init(&path, PATH_MAX);
	granted = path_normal("/", folder, &path) && strcmp(path.data, folder) == 0 &&
		  /* A file tool may never write the files of git, wherever they lie. */
		  !path_names_git(folder);
	*root = granted ? granted_of(roots, folder) : NULL;
	buf_fini(&path);
	return *root != NULL;
}

/* Append ROW to LIST and mark it with SET, the number of its journal. */
static void list_add(struct value **list, struct value *row, int64_t set)
{
	if (*list == NULL)
		*list = value_new_array();
	value_set_integer(row, JOURNAL_SET, set);
	value_append(*list, value_ref(row));
}

static void root_add(struct pending *pending, struct value *root)
{
	if (pending->granted_roots == NULL)
		pending->granted_roots = value_new_array();
	for (size_t i = 0; i < value_count(pending->granted_roots); i++) {
		if (value_equal(value_item(pending->granted_roots, i), root))
			return;
	}
	value_append(pending->granted_roots, value_ref(root));
}

/*
 * When a set has a write in a granted folder, the whole set waits for a worker that sees
 * this folder. The rights may name the folder as well, when they were noted after the
 * grant.
 */
static bool take_granted(struct pending *pending, struct value *rows,
			 const struct rights *rights, const struct value *roots)
{
	struct value *root = NULL;
	bool meets = false;

	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);

		if (!is_granted(roots, row, &root))
			continue;
		root_add(pending, root);
		meets = true;
	}
	for (size_t i = 0; meets && i < value_count(rows); i++) {
		struct value *row = value_item(rows, i);

		if (is_allowed(rights, row) || is_granted(roots, row, &root))
			list_add(&pending->granted, row, pending->sets);
	}
	return meets;
}

/* Take the writes of the journal NAME that the rights of its front, or ROOTS, allowed. */
static void take_journal(struct pending *pending, const char *name,
			 const struct rights *rights, const struct value *roots)
{
	auto_close int fd =
		openat(pending->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_value struct value *rows = fd >= 0 ? place_unfinished(fd) : NULL;

	if (!take_granted(pending, rows, rights, roots)) {
		for (size_t i = 0; i < value_count(rows); i++) {
			if (is_allowed(rights, value_item(rows, i)))
				list_add(&pending->writes, value_item(rows, i),
					 pending->sets);
		}
	}
	pending->sets++;
}

/* Read the lines after the guard: the rights and the granted folders. */
static void lines_take(struct str rest, struct value **rights, struct value *roots)
{
	struct str line;

	while (str_next_line(&rest, &line)) {
		struct value *value = NULL;

		if (!value_parse(line, 0, &value, NULL))
			continue;
		struct value *granted = value_member(value, PENDING_GRANTED);
		if (granted != NULL) {
			value_append(roots, value_ref(granted));
			value_free(value);
		} else {
			value_free(*rights);
			*rights = value;
		}
	}
}

/* Does the worker that writes the journal NAME end before DEADLINE? Waits until then. */
static bool worker_has_ended(int folder, const char *name, int64_t deadline)
{
	auto_close int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (clock_now_ms() >= deadline)
			return false;
		(void)poll(NULL, 0, WORKER_END_STEP_MS);
	}
	return true;
}

static bool workers_have_ended(int folder, const char *record,
			       const struct pending_name *names, size_t count)
{
	const int64_t deadline = clock_now_ms() + WORKER_END_MS;
	bool ended = true;

	for (size_t i = 0; ended && i < count; i++)
		ended = !is_journal_of(names[i].text, record) ||
			worker_has_ended(folder, names[i].text, deadline);
	return ended;
}

/*
 * Take over the file NAME of a dead front: GUARD becomes the guard with which that front
 * began. False when there is nothing to take over.
 */
static bool take_over(struct pending *pending, const char *name,
		      const struct pending_name *names, size_t count, struct guard *guard)
{
	struct stat st;
	auto_close int fd = open_left(pending->folder, name, &st);
	auto_value struct value *earlier = NULL, *rights = NULL;
	auto_value struct value *roots = value_new_array();
	struct str rest, line;
	struct buf text;

	if (fd < 0)
		return false;
	if (st.st_size == 0) {
		if (st.st_mtim.tv_sec + EMPTY_AGE_S < time(NULL))
			(void)unlinkat(pending->folder, name, 0);
		return false;
	}
	if (!workers_have_ended(pending->folder, name, names, count))
		return false;
	buf_init(&text, PENDING_MAX);
	if (!fd_read_all(fd, &text, name, NULL))
		buf_clear(&text);
	rest = buf_str(&text);
	if (str_next_line(&rest, &line))
		(void)value_parse(line, 0, &earlier, NULL);
	lines_take(rest, &rights, roots);
	struct guard *before = guard_parse(earlier);
	guard_take_earlier(guard, before);
	guard_free(before);
	struct rights *allowed = rights_read(rights);
	for (size_t i = 0; i < count; i++) {
		if (is_journal_of(names[i].text, name))
			take_journal(pending, names[i].text, allowed, roots);
	}
	rights_free(allowed);
	buf_fini(&text);
	pending->left = memory_grow(pending->left, pending->left_count + 1,
				    sizeof(*pending->left));
	struct pending_left *left = &pending->left[pending->left_count++];
	left->fd = fd_take(&fd);
	(void)snprintf(left->name.text, PENDING_NAME, "%s", name);
	return true;
}

/*
 * Take over the files of PROJECT that dead fronts left: their locked files become `left`,
 * their writes `writes` or `granted`, and GUARD the guard with which they began.
 */
static void pending_take_over(struct pending *pending, const char *project,
			      struct guard *guard)
{
	struct pending_name *names;
	size_t count = names_read(pending->folder, project, &names);

	for (size_t i = 0; i < count; i++) {
		char *dot = strchr(names[i].text, '.');
		if (dot == NULL) {
			(void)take_over(pending, names[i].text, names, count, guard);
			continue;
		}
		/*
		 * Remove a journal without the file of its front. That file is made
		 * before its journals and removed after them.
		 */
		*dot = '\0';
		bool alone = faccessat(pending->folder, names[i].text, F_OK, 0) < 0;
		*dot = '.';
		if (alone)
			(void)unlinkat(pending->folder, names[i].text, 0);
	}
	free(names);
}

/*
 * Remove the journals of NAME before NAME itself: without NAME nobody would look for
 * them.
 */
static void remove_journals(int folder, const char *name)
{
	struct pending_name *names;
	size_t count = names_read(folder, name, &names);

	for (size_t i = 0; i < count; i++) {
		if (is_journal_of(names[i].text, name))
			(void)unlinkat(folder, names[i].text, 0);
	}
	free(names);
}

/* Close the files in `left` and, with REMOVE, delete them. */
static void pending_remove_left(struct pending *pending, bool remove)
{
	for (size_t i = 0; i < pending->left_count; i++) {
		struct pending_left *left = &pending->left[i];

		if (remove) {
			remove_journals(pending->folder, left->name.text);
			(void)unlinkat(pending->folder, left->name.text, 0);
		}
		fd_close(&left->fd);
	}
	free(pending->left);
	pending->left = NULL;
	pending->left_count = 0;
}

const struct value *pending_writes(const struct pending *pending)
{
	return pending != NULL ? pending->writes : NULL;
}

/* May the cell of SPEC finish all of WRITES? */
static bool may_mend(const struct value *writes, const struct cell_spec *spec)
{
	auto_value struct value *text = spec_rights(spec);
	struct rights *rights = rights_read(text);
	bool may = true;

	for (size_t i = 0; may && i < value_count(writes); i++)
		may = is_allowed(rights, value_item(writes, i));
	rights_free(rights);
	return may;
}

void pending_mended(struct pending *pending, const struct cell_spec *spec)
{
	if (pending == NULL || pending->writes == NULL)
		return;
	/*
	 * Finishing a finished write again changes nothing, so the files may stay for
	 * another session.
	 */
	pending->keeps_left = pending->keeps_left || !may_mend(pending->writes, spec);
	value_free(pending->writes);
	pending->writes = NULL;
	if (pending->granted == NULL)
		pending_remove_left(pending, !pending->keeps_left);
}

const struct value *pending_granted(const struct pending *pending, const struct value **roots)
{
	if (pending == NULL)
		return NULL;
	*roots = pending->granted_roots;
	return pending->granted;
}

void pending_granted_mended(struct pending *pending)
{
	value_free(pending->granted);
	pending->granted = NULL;
	if (pending->writes == NULL)
		pending_remove_left(pending, !pending->keeps_left);
}

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
			 const struct guard *guard)
{
	auto_value struct value *line = guard_print(guard);
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return false;
	(void)snprintf(pending->name, sizeof(pending->name), "%.*s-%08x",
		       PENDING_PROJECT_DIGITS, project, number);
	pending->fd = openat(pending->folder, pending->name,
			     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return pending->fd >= 0 && flock(pending->fd, LOCK_EX | LOCK_NB) == 0 &&
	       add_line(pending->fd, line);
}

struct pending *pending_open(const char *folder, const char *workspace,
			     struct guard *guard, bool *due)
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
