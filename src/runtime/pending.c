/*
 * pending: a file that its front holds locked, with the guard and, once something is written,
 * the rights as two lines of JSON; beside it, by its name and a number, the journals.
 */
#include "runtime/pending.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "git/git_scan.h"
#include "runtime/files_inside.h"
#include "runtime/spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
	PROJECT_DIGITS = 16, /* of the workspace's hash, as for its home */
	NAME_BYTES = 64,
	NAMES_MAX = 4096, /* of one project; more are nobody's */
	RECORD_MAX = 8 << 20,
	/* A file without content belongs to a front that begins now, or died doing so. */
	EMPTY_AGE_S = 3600,
};

struct name {
	char text[NAME_BYTES];
};

/* A file of a dead front's, locked. */
struct left {
	int fd;
	struct name name;
};

struct pending {
	int folder, fd;
	char name[NAME_BYTES];
	bool due, has_rights;
	unsigned last;               /* journal made last */
	struct pending_journal idle; /* one that the next call gets */
	struct left *left;           /* of dead fronts */
	size_t left_count;
	struct value *writes; /* what their journals say that may be done; NULL: nothing */
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

/* ---- what a session could write ---- */

static void add_path(struct value *list, const char *path)
{
	auto_free char *key = git_scan_key(path);

	value_append(list, value_new_text(key));
}

static struct value *rights_of(const struct cell_spec *spec)
{
	struct value *rights = value_new_object(), *roots = value_new_array();
	struct value *closed = value_new_array();
	const struct value *files = value_member(spec->guard, "files");

	for (size_t i = 0; i < spec->root_count; i++) {
		const struct files_root *root = &spec->roots[i];
		auto_free char *key = git_scan_key(root->path);
		struct value *item = value_new_object();

		value_set_text(item, "path", key);
		value_set_boolean(item, "writable", root->writable);
		if (root->pattern != NULL)
			value_set_text(item, "pattern", root->pattern);
		value_append(roots, item);
	}
	for (size_t i = 0; i < spec->blocked_count; i++)
		add_path(closed, spec->blocked[i]);
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];
		if (entry->kind == VIEW_MASK ||
		    (entry->kind == VIEW_PIN && !entry->writable))
			add_path(closed, entry->path);
	}
	for (size_t i = 0; i < value_count(files); i++)
		value_append(closed, value_ref(value_item(files, i)));
	value_set(rights, "roots", roots);
	value_set(rights, "closed", closed);
	return rights;
}

static bool could_write(const struct value *rights, const char *path)
{
	const struct value *roots = value_member(rights, "roots");
	const struct value *closed = value_member(rights, "closed");
	const size_t count = value_count(roots);
	auto_free struct files_held *held = memory_array(count + 1, sizeof(*held));
	const struct files files = {.roots = held, .root_count = count};
	bool could = true;

	for (size_t i = 0; i < count; i++) {
		const struct value *root = value_item(roots, i);
		held[i] = (struct files_held){
			.fd = -1,
			.path = git_scan_path(value_text(value_member(root, "path"))),
			.pattern = memory_copy(value_text(value_member(root, "pattern"))),
			.writable = value_is_true(value_member(root, "writable")),
		};
		/* A root may be written into; it is never moved or removed itself. */
		could = could && held[i].path != NULL && strcmp(held[i].path, path) != 0;
	}
	could = could && files_is_writable(&files, path);
	for (size_t i = 0; could && i < value_count(closed); i++) {
		auto_free char *at = git_scan_path(value_text(value_item(closed, i)));
		could = at != NULL && !path_within(path, at);
	}
	for (size_t i = 0; i < count; i++) {
		free(held[i].path);
		free(held[i].pattern);
	}
	return could;
}

static bool row_is_allowed(const struct value *rights, const struct value *row)
{
	auto_free char *folder = git_scan_path(value_text(value_member(row, "folder")));
	auto_free char *name = git_scan_path(value_text(value_member(row, "name")));
	struct buf path;
	bool allowed;

	if (folder == NULL || name == NULL || folder[0] != '/')
		return false;
	buf_init(&path, PATH_MAX);
	allowed = path_normal("/", folder, &path) && strcmp(path.data, folder) == 0 &&
		  buf_addf(&path, "%s%s", folder[1] != '\0' ? "/" : "", name) &&
		  could_write(rights, path.data);
	buf_fini(&path);
	return allowed;
}

/* ---- what dead fronts left ---- */

static bool is_journal_of(const char *name, const char *record)
{
	size_t size = strlen(record);

	return strncmp(name, record, size) == 0 && name[size] == '.';
}

/* The names in FOLDER that belong to PROJECT. */
static size_t names_read(int folder, const char *project, struct name **names)
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
		if (strncmp(at->d_name, project, PROJECT_DIGITS) != 0 ||
		    strlen(at->d_name) >= NAME_BYTES)
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

/* The file of an earlier front, locked, when nobody holds it any more; -1 else. */
static int open_left(int folder, const char *name, struct stat *st)
{
	auto_close int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, st) < 0 ||
	    st->st_nlink == 0)
		return -1;
	return fd_take(&fd);
}

/* What the journal NAME says that the rights of its front allowed. */
static void take_journal(struct pending *pending, const char *name,
			 const struct value *rights)
{
	auto_close int fd =
		openat(pending->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_value struct value *rows = fd >= 0 ? files_unfinished(fd) : NULL;

	for (size_t i = 0; i < value_count(rows); i++) {
		if (!row_is_allowed(rights, value_item(rows, i)))
			continue;
		if (pending->writes == NULL)
			pending->writes = value_new_array();
		value_append(pending->writes, value_ref(value_item(rows, i)));
	}
}

/* GUARD becomes what the dead front's began with. False when there is nothing to take. */
static bool take_over(struct pending *pending, const char *name, const struct name *names,
		      size_t count, struct value *guard)
{
	struct stat st;
	auto_close int fd = open_left(pending->folder, name, &st);
	auto_value struct value *earlier = NULL, *rights = NULL;
	struct str rest, line;
	struct buf text;

	if (fd < 0)
		return false;
	if (st.st_size == 0) {
		if (st.st_mtim.tv_sec + EMPTY_AGE_S < time(NULL))
			(void)unlinkat(pending->folder, name, 0);
		return false;
	}
	buf_init(&text, RECORD_MAX);
	if (!fd_read_all(fd, &text, name, NULL))
		buf_clear(&text);
	rest = buf_str(&text);
	if (str_next_line(&rest, &line))
		(void)value_parse(line, 0, &earlier, NULL);
	if (str_next_line(&rest, &line))
		(void)value_parse(line, 0, &rights, NULL);
	/* One that cannot be read says nothing of what was there: all counts as new. */
	keep_known(value_member(guard, "dangers"), value_member(earlier, "dangers"));
	for (size_t i = 0; i < count; i++) {
		if (is_journal_of(names[i].text, name))
			take_journal(pending, names[i].text, rights);
	}
	buf_fini(&text);
	pending->left = memory_grow(pending->left, pending->left_count + 1,
				    sizeof(*pending->left));
	struct left *left = &pending->left[pending->left_count++];
	left->fd = fd_take(&fd);
	(void)snprintf(left->name.text, NAME_BYTES, "%s", name);
	return true;
}

static void take_over_all(struct pending *pending, const char *project, struct value *guard)
{
	struct name *names;
	size_t count = names_read(pending->folder, project, &names);

	for (size_t i = 0; i < count; i++) {
		char *dot = strchr(names[i].text, '.');
		if (dot == NULL) {
			(void)take_over(pending, names[i].text, names, count, guard);
			continue;
		}
		/* One without its front's file: that is made before it, and goes after it. */
		*dot = '\0';
		bool alone = faccessat(pending->folder, names[i].text, F_OK, 0) < 0;
		*dot = '.';
		if (alone)
			(void)unlinkat(pending->folder, names[i].text, 0);
	}
	free(names);
}

/* The journals of NAME go before NAME itself: without it nobody would look for them. */
static void remove_journals(int folder, const char *name)
{
	struct name *names;
	size_t count = names_read(folder, name, &names);

	for (size_t i = 0; i < count; i++) {
		if (is_journal_of(names[i].text, name))
			(void)unlinkat(folder, names[i].text, 0);
	}
	free(names);
}

static void remove_left(struct pending *pending, bool remove)
{
	for (size_t i = 0; i < pending->left_count; i++) {
		struct left *left = &pending->left[i];

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

void pending_mended(struct pending *pending)
{
	if (pending == NULL || pending->writes == NULL)
		return;
	value_free(pending->writes);
	pending->writes = NULL;
	remove_left(pending, true);
}

/* ---- our own ---- */

static bool add_line(int fd, const struct value *value)
{
	struct buf text;

	buf_init(&text, RECORD_MAX);
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
	(void)snprintf(pending->name, sizeof(pending->name), "%.*s-%08x", PROJECT_DIGITS,
		       project, number);
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
	project[PROJECT_DIGITS] = '\0';
	pending->folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (pending->folder < 0 && errno == ENOENT && fd_make_folders(folder, NULL) &&
	    mkdir(folder, 0700) == 0)
		pending->folder =
			open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (pending->folder >= 0) {
		take_over_all(pending, project, guard);
		*due = pending->left_count > 0;
		if (record_write(pending, project, guard)) {
			/* Ours is there before theirs go: a death in between loses nothing. */
			pending->due = *due;
			if (pending->writes == NULL)
				remove_left(pending, true);
			return pending;
		}
	}
	pending_close(pending);
	return NULL;
}

void pending_set_audit_due(struct pending *pending, bool due)
{
	if (pending != NULL)
		pending->due = due;
}

static void journal_remove(struct pending *pending, struct pending_journal *journal)
{
	char name[2 * NAME_BYTES];

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
	/* What is not mended yet is left for the next one. */
	remove_left(pending, false);
	value_free(pending->writes);
	fd_close(&pending->fd);
	fd_close(&pending->folder);
	free(pending);
}

/* Without the rights on disk nobody would finish anything. */
static bool rights_write(struct pending *pending, const struct cell_spec *spec)
{
	if (!pending->has_rights) {
		auto_value struct value *rights = rights_of(spec);
		pending->has_rights =
			add_line(pending->fd, rights) && fdatasync(pending->fd) == 0;
	}
	return pending->has_rights;
}

void pending_give(struct pending *pending, const struct cell_spec *spec,
		  struct pending_journal *journal)
{
	char name[2 * NAME_BYTES];

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
	/* One that is not empty is more than its call should have left. */
	if (pending != NULL && journal->number > 0 && pending->idle.fd < 0 &&
	    fstat(journal->fd, &st) == 0 && st.st_size == 0) {
		pending->idle = *journal;
		journal->fd = -1;
		return;
	}
	journal_remove(pending, journal);
}
