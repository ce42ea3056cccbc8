/*
 * pending: a file that its front holds locked. It contains two lines of JSON: the guard
 * and, after the first write, the rights. The logs lie beside it; their names are its name
 * and a number.
 */

#include "cell/pending.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/value.h"
#include "files/record.h"
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
	bool in_layer; /* the disk need not confirm it: a crash harms the layer as well */
	unsigned last; /* number of the last log */
	unsigned held; /* how many logs have a name */
	struct pending_left *left; /* the files of dead fronts */
	size_t left_count;
	struct pending_left_log *logs; /* their unfinished logs */
	size_t log_count;
};

/* Takes over the files that dead fronts left. */

enum {
	NAMES_MAX = 4096, /* of one project; further ones are for a later session */
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
	/* The time in which the kernel ends a front that was killed a moment ago. */
	FRONT_END_MS = 300,
	/* Another session puts back what a dead front left. It is done in much less. */
	MENDER_END_MS = 5000,
};

/* Before the name of a log that no session looks at any more. */
#define KEPT "kept-"

static bool is_log_of(const char *name, const char *record)
{
	size_t size = strlen(record);

	return strncmp(name, record, size) == 0 && name[size] == '.';
}

/*
 * The names in FOLDER that begin with PREFIX: a project, or the name of a front's file.
 * *WHOLE: these are all of them.
 */
static size_t names_read(int folder, const char *prefix, struct pending_name **names,
			 bool *whole)
{
	const size_t size = strlen(prefix);
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	size_t count = 0;

	*names = NULL;
	*whole = list != NULL;
	if (list == NULL) {
		fd_close(&fd);
		return 0;
	}
	for (const struct dirent *at = readdir(list); at != NULL; at = readdir(list)) {
		*whole = count < NAMES_MAX;
		if (!*whole)
			break;
		if (strncmp(at->d_name, prefix, size) != 0 ||
		    strlen(at->d_name) >= PENDING_NAME)
			continue;
		*names = memory_more(*names, count, sizeof(**names));
		memcpy((*names)[count++].text, at->d_name, strlen(at->d_name) + 1);
	}
	(void)closedir(list);
	return count;
}

const struct field pending_root_fields[] = {
	FIELD_PATH(struct pending_root, path, "path"),
	FIELD(struct pending_root, file),
	{0},
};

/* A log that is being read. */
struct log_look {
	const struct value *roots; /* that were granted to its session */
	struct value *met;         /* those in which it writes */
	char *file; /* the first file of the last write; NULL: that write is over */
};

static bool look_note(void *context, const struct undo_note *note)
{
	struct log_look *look = context;

	if (note->kind == UNDO_NOTE_OVER) {
		free(look->file);
		look->file = NULL;
	} else if (note->kind == UNDO_NOTE_TEMPS && look->file == NULL) {
		look->file = memory_copy_str(note->path);
	}
	for (size_t i = 0; note->path.size > 0 && i < value_count(look->roots); i++) {
		struct value *root = value_item(look->roots, i);
		struct pending_root granted = {0};
		(void)fields_read(root, pending_root_fields, &granted, NULL, NULL);
		auto_free char *path = granted.path;
		bool known = path == NULL || !path_within(note->path.data, path);

		for (size_t j = 0; !known && j < value_count(look->met); j++)
			known = value_item(look->met, j) == root;
		if (!known)
			value_append(look->met, value_ref(root));
	}
	return true;
}

/* A log of a front in which a write has no end, found by a look from outside. */
struct unfinished {
	char name[PENDING_NAME];
	char *file; /* as in a log_look */
};

/*
 * Has the front of the file RECORD such a log? One that cannot be read may be one. FOUND may
 * be NULL; else the caller frees its `file`.
 */
static bool find_unfinished(int folder, const char *record, struct unfinished *found)
{
	struct pending_name *names;
	struct log_look look = {0};
	const char *name = record;
	bool whole;
	const size_t count = names_read(folder, record, &names, &whole);
	bool has = !whole;

	for (size_t i = 0; !has && i < count; i++) {
		struct undo_reader reader = {.note = look_note, .context = &look};
		struct err err = {0};

		if (!is_log_of(names[i].text, record))
			continue;
		free(look.file);
		look.file = NULL;
		name = names[i].text;
		auto_close int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
		has = fd < 0 ? errno != ENOENT
			     : (!undo_log_read(&reader, fd, &err) &&
				err.code != UNDO_UNSOUND) ||
				       reader.unfinished;
	}
	if (has && found != NULL) {
		(void)snprintf(found->name, sizeof(found->name), "%s", name);
		found->file = look.file;
		look.file = NULL;
	}
	free(look.file);
	free(names);
	return has;
}

/* Does the living process that holds the front's file FD put back what it left? */
static bool is_mended(int fd)
{
	struct flock whole = {.l_type = F_WRLCK};

	return fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

/*
 * Open and lock the file of an earlier front. -1 when another process holds it or it is
 * gone; *WHY says so when a write of that front is not put back yet. A front that was
 * killed a moment ago, or while it put back such writes, may hold the file for a moment.
 */
static int open_left(int folder, const char *name, struct stat *st, const char **why)
{
	auto_close int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	const int64_t began = clock_now_ms();
	struct flock whole = {.l_type = F_WRLCK};

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		const bool mended = is_mended(fd);

		if (!find_unfinished(folder, name, NULL))
			return -1;
		if (clock_now_ms() >= began + (mended ? MENDER_END_MS : FRONT_END_MS)) {
			*why = mended ? "another session is still at it" : NULL;
			return -1;
		}
		(void)poll(NULL, 0, WORKER_END_STEP_MS);
	}
	if (fd < 0 && errno != ENOENT && find_unfinished(folder, name, NULL))
		*why = "its record cannot be opened";
	if (fd < 0 || fstat(fd, st) < 0 || st->st_nlink == 0)
		return -1;
	(void)fcntl(fd, F_OFD_SETLK, &whole);
	return fd_take(&fd);
}

/* Add LOG, called NAME (NULL: unknown, all of the front's logs), to those that are left. */
static void log_add(struct pending *pending, struct pending_left_log log,
		    const char *prefix, const char *name)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (fd_real_path(pending->folder, &path))
		(void)buf_addf(&path, "/%s%s", prefix, name);
	log.name = memory_copy(path.data);
	buf_fini(&path);
	pending->logs =
		memory_grow(pending->logs, pending->log_count + 1, sizeof(*pending->logs));
	pending->logs[pending->log_count++] = log;
}

/* Nothing can be done now about the unfinished log of the front of RECORD: WHY. */
static void log_block(struct pending *pending, const char *record, const char *why)
{
	struct pending_left_log log = {.state = PENDING_BLOCKED, .fd = -1, .why = why};
	struct unfinished found = {0};

	if (!find_unfinished(pending->folder, record, &found))
		(void)snprintf(found.name, sizeof(found.name), "%s", record);
	log.file = found.file;
	log_add(pending, log, "", found.name);
}

static bool is_kept(const struct pending_left_log *log)
{
	return log->state == PENDING_FOREIGN || log->state == PENDING_DAMAGED;
}

/*
 * Take the log NAME of a dead front when a write in it has no end. A log that cannot
 * be read may have one as well.
 */
static void take_log(struct pending *pending, const char *name,
		     const struct value *rights, const struct value *roots)
{
	auto_close int fd = openat(pending->folder, name, O_RDWR | O_CLOEXEC);
	struct log_look look = {.roots = roots, .met = value_new_array()};
	struct undo_reader reader = {.note = look_note, .context = &look};
	struct pending_left_log log = {.fd = -1, .granted = look.met};
	struct err err = {0};

	/* Of a log that does not hold together, the part before the break counts. */
	const bool fine = fd >= 0 && undo_log_read(&reader, fd, &err);
	log.file = look.file;
	if (fd < 0 ? errno != ENOENT : !fine && err.code != UNDO_UNSOUND) {
		log.state = PENDING_BLOCKED;
		log.why = "its log cannot be read";
	} else if (reader.unfinished) {
		/* While this lock is held, no other session tidies the step away. */
		(void)flock(fd, LOCK_SH | LOCK_NB);
		log.state = reader.damaged ? PENDING_DAMAGED : PENDING_OPEN;
		log.fd = fd_take(&fd);
		log.rights = value_copy(rights);
	} else if (fd >= 0 && !fine && reader.sound == 0) {
		log.state = PENDING_FOREIGN;
	} else {
		free(log.file);
		value_free(log.granted);
		return;
	}
	log_add(pending, log, is_kept(&log) ? KEPT : "", name);
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

/* Does the worker that writes the log NAME end before DEADLINE? Waits until then. */
static bool worker_has_ended(int folder, const char *name, int64_t deadline)
{
	auto_close int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);

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
		ended = !is_log_of(names[i].text, record) ||
			worker_has_ended(folder, names[i].text, deadline);
	return ended;
}

/*
 * When did the guard of the record FD, with the status ST, begin? Not later than the file
 * was made, and not later than the time that record_write has set. Where it is unknown
 * when the file was made, every other file counts as newer.
 */
static int64_t made_ns(int fd, const struct stat *st)
{
	const int64_t written_ns = clock_ns(&st->st_mtim);
	struct statx made;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &made) < 0 ||
	    (made.stx_mask & STATX_BTIME) == 0)
		return 1;
	const struct timespec born = {.tv_sec = made.stx_btime.tv_sec,
				      .tv_nsec = made.stx_btime.tv_nsec};
	return clock_ns(&born) < written_ns ? clock_ns(&born) : written_ns;
}

/* Read the file FD of a dead front: EARLIER becomes its guard, RIGHTS and ROOTS the rest. */
static bool record_read(int fd, const char *name, struct value **earlier,
			struct value **rights, struct value *roots)
{
	struct str rest, line;
	struct buf text;

	buf_init(&text, PENDING_MAX);
	const bool fine = fd_read_all(fd, &text, name, NULL);
	rest = buf_str(&text);
	if (fine && str_next_line(&rest, &line))
		(void)value_parse(line, 0, earlier, NULL);
	if (fine)
		lines_take(rest, rights, roots);
	buf_fini(&text);
	return fine;
}

/*
 * Take over the file NAME of a dead front: GUARD becomes the guard with which that front
 * began. Nothing is taken over while this front may not be dead, or its files cannot be
 * read: they stay, and an unfinished log among them blocks this session.
 */
static void take_over(struct pending *pending, const char *name, struct guard *guard)
{
	struct pending_name *names = NULL;
	const char *why = NULL;
	struct stat st;
	auto_close int fd = open_left(pending->folder, name, &st, &why);
	auto_value struct value *earlier = NULL, *rights = NULL;
	auto_value struct value *roots = value_new_array();
	size_t count = 0;
	bool whole = true;

	if (fd >= 0 && st.st_size == 0) {
		if (st.st_mtim.tv_sec + EMPTY_AGE_S < time(NULL))
			(void)unlinkat(pending->folder, name, 0);
		return;
	}
	/* While this process holds the lock, nobody else changes the logs of that front. */
	if (fd >= 0)
		count = names_read(pending->folder, name, &names, &whole);
	if (!whole)
		why = "its logs cannot be listed";
	else if (fd >= 0 && !workers_have_ended(pending->folder, name, names, count))
		why = "a worker of that session has not ended yet";
	else if (fd >= 0 && !record_read(fd, name, &earlier, &rights, roots) &&
		 find_unfinished(pending->folder, name, NULL))
		why = "its record cannot be read";
	if (why != NULL || fd < 0) {
		if (why != NULL)
			log_block(pending, name, why);
		free(names);
		return;
	}
	struct guard *before = guard_parse(earlier, NULL);
	guard_take_earlier(guard, before, made_ns(fd, &st));
	guard_free(before);
	pending->left = memory_grow(pending->left, pending->left_count + 1,
				    sizeof(*pending->left));
	struct pending_left *left = &pending->left[pending->left_count++];
	*left = (struct pending_left){.fd = fd_take(&fd)};
	(void)snprintf(left->name.text, PENDING_NAME, "%s", name);
	for (size_t i = 0; i < count; i++) {
		if (is_log_of(names[i].text, name))
			take_log(pending, names[i].text, rights, roots);
	}
	free(names);
}

/*
 * Take over the files of PROJECT that dead fronts left: their locked files become `left`,
 * their unfinished logs `logs`, and GUARD the guard with which they began.
 */
static void pending_take_over(struct pending *pending, const char *project,
			      struct guard *guard)
{
	struct pending_name *names;
	bool whole;
	size_t count = names_read(pending->folder, project, &names, &whole);

	for (size_t i = 0; i < count; i++) {
		char *dot = strchr(names[i].text, '.');
		if (dot == NULL) {
			take_over(pending, names[i].text, guard);
			continue;
		}
		/*
		 * Remove the name of a log without the file of its front. That file is
		 * made before the names of its logs and removed after them.
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
 * Remove the names of the logs of NAME before NAME itself: without NAME nobody would look
 * for them. False: some names may be left.
 */
static bool remove_logs(int folder, const char *name)
{
	struct pending_name *names;
	bool whole;
	size_t count = names_read(folder, name, &names, &whole);

	for (size_t i = 0; i < count; i++) {
		if (is_log_of(names[i].text, name))
			(void)unlinkat(folder, names[i].text, 0);
	}
	free(names);
	return whole;
}

/* Close the files in `left` and, with REMOVE, delete them. */
static void pending_remove_left(struct pending *pending, bool remove)
{
	for (size_t i = 0; i < pending->left_count; i++) {
		struct pending_left *left = &pending->left[i];

		if (remove && remove_logs(pending->folder, left->name.text))
			(void)unlinkat(pending->folder, left->name.text, 0);
		fd_close(&left->fd);
	}
	free(pending->left);
	pending->left = NULL;
	pending->left_count = 0;
}

const struct pending_left_log *pending_left(const struct pending *pending, size_t index)
{
	return pending != NULL && index < pending->log_count ? &pending->logs[index] : NULL;
}

void pending_mended(struct pending *pending, bool all)
{
	if (pending == NULL)
		return;
	all = all && pending->fd >= 0;
	for (size_t i = 0; i < pending->log_count; i++) {
		const char *kept = path_base_name(pending->logs[i].name);

		if (all && is_kept(&pending->logs[i]))
			all = str_starts(str_of(kept), STR(KEPT)) &&
			      renameat(pending->folder, kept + strlen(KEPT),
				       pending->folder, kept) == 0;
		fd_close(&pending->logs[i].fd);
		free(pending->logs[i].name);
		free(pending->logs[i].file);
		value_free(pending->logs[i].rights);
		value_free(pending->logs[i].granted);
	}
	free(pending->logs);
	pending->logs = NULL;
	pending->log_count = 0;
	pending_remove_left(pending, all);
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

/*
 * Lock the new record FD and write GUARD as its first line. Its time is the guard's, so that
 * it is known when the line is damaged.
 */
static bool record_begin(int fd, const struct guard *guard)
{
	auto_value struct value *line = guard_print(guard);
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT},
					  {.tv_sec = guard->ticked_ns / CLOCK_SECOND_NS,
					   .tv_nsec = guard->ticked_ns % CLOCK_SECOND_NS}};

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || !add_line(fd, line))
		return false;
	(void)futimens(fd, times);
	return true;
}

static bool record_write(struct pending *pending, const char *project,
			 const struct guard *guard)
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return false;
	(void)snprintf(pending->name, sizeof(pending->name), "%.*s-%08x",
		       PENDING_PROJECT_DIGITS, project, number);
	/* The file gets its name when it is locked and holds the guard. */
	pending->fd = openat(pending->folder, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (record_begin(pending->fd, guard) &&
	    fd_link(pending->fd, pending->folder, pending->name))
		return true;
	/* Here are no nameless files, or no links. */
	fd_close(&pending->fd);
	pending->fd = openat(pending->folder, pending->name,
			     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (record_begin(pending->fd, guard))
		return true;
	if (pending->fd >= 0)
		(void)unlinkat(pending->folder, pending->name, 0);
	fd_close(&pending->fd);
	return false;
}

struct pending *pending_open(const char *folder, const char *workspace,
			     struct guard *guard, bool *due)
{
	struct pending *pending = memory_alloc(sizeof(*pending));
	char project[HASH_HEX + 1];

	*pending = (struct pending){.fd = -1};
	hash_text(str_of(workspace), project);
	project[PENDING_PROJECT_DIGITS] = '\0';
	pending->folder = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (pending->folder < 0 && errno == ENOENT && fd_make_folders(folder, NULL) &&
	    mkdir(folder, 0700) == 0)
		pending->folder =
			open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (pending->folder >= 0) {
		pending->in_layer = guard->root_count == 0;
		pending_take_over(pending, project, guard);
		*due = pending->left_count > 0;
		/*
		 * Our file exists before the old files are removed, so a death in between
		 * loses nothing. Without it the old ones stay.
		 */
		const bool written = record_write(pending, project, guard);
		pending->due = *due;
		if (written && pending->log_count == 0)
			pending_remove_left(pending, true);
		if (written || pending->log_count > 0)
			return pending;
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

bool pending_waits(int folder)
{
	struct pending_name *names;
	bool whole;
	const size_t count = names_read(folder, "", &names, &whole);
	bool waits = !whole;

	for (size_t i = 0; !waits && i < count; i++)
		waits = strchr(names[i].text, '.') == NULL &&
			find_unfinished(folder, names[i].text, NULL);
	free(names);
	return waits;
}

void pending_set_audit_due(struct pending *pending, bool due)
{
	if (pending != NULL)
		pending->due = due;
}

void pending_drop(struct pending *pending, struct pending_log *log)
{
	char name[2 * PENDING_NAME];

	if (pending != NULL && log->number > 0) {
		(void)snprintf(name, sizeof(name), "%s.%u", pending->name, log->number);
		(void)unlinkat(pending->folder, name, 0);
		pending->held--;
	}
	*log = (struct pending_log){.fd = -1};
}

void pending_close(struct pending *pending)
{
	if (pending == NULL)
		return;
	if (pending->fd >= 0 && !pending->due && pending->held == 0)
		(void)unlinkat(pending->folder, pending->name, 0);
	/* Leave unfinished logs for the next session. */
	pending_mended(pending, false);
	fd_close(&pending->fd);
	fd_close(&pending->folder);
	free(pending);
}

/* Write the rights to disk once. Without them nobody could put a write back. */
static bool rights_write(struct pending *pending, const struct cell_spec *spec)
{
	if (!pending->has_rights) {
		auto_value struct value *rights = spec_rights(spec);
		pending->has_rights = add_line(pending->fd, rights) &&
				      (pending->in_layer || fdatasync(pending->fd) == 0);
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
	auto_free char *copy = memory_copy(path);
	char file[PENDING_FILE];

	pending_file(root, file);
	value_set(line, PENDING_GRANTED,
		  fields_print(pending_root_fields,
			       &(struct pending_root){copy, str_of(file)}));
	if (pending != NULL)
		(void)(add_line(pending->fd, line) && fdatasync(pending->fd) == 0);
}

/*
 * Give FD the name NAME. A log on another file system, or on one that has no hard links,
 * gets a symbolic link instead: only fronts can write in this folder.
 */
static bool log_link(const struct pending *pending, int fd, const char *name)
{
	struct buf path;
	bool linked = fd_link(fd, pending->folder, name);

	if (linked)
		return true;
	buf_init(&path, PATH_MAX);
	linked = errno != EEXIST && fd_real_path(fd, &path) &&
		 access(path.data, F_OK) == 0 &&
		 symlinkat(path.data, pending->folder, name) == 0;
	buf_fini(&path);
	return linked;
}

void pending_hold(struct pending *pending, const struct cell_spec *spec, int fd,
		  struct pending_log *log)
{
	char name[2 * PENDING_NAME];

	*log = (struct pending_log){.fd = fd};
	if (pending != NULL && rights_write(pending, spec)) {
		(void)snprintf(name, sizeof(name), "%s.%u", pending->name, ++pending->last);
		if (fd < 0)
			log->fd = openat(pending->folder, name,
					 O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
					 0600);
		if (fd < 0 ? log->fd >= 0 : log_link(pending, fd, name))
			log->number = pending->last;
		else if (fd >= 0)
			log->fd = -1;
		pending->held += log->number > 0;
	}
	if (fd < 0 && log->fd < 0)
		log->fd = memfd_create("glovebox-log", MFD_CLOEXEC);
	/* Together with the store's own lock: both keep a successor away. */
	if (log->fd >= 0)
		(void)flock(log->fd, LOCK_SH | LOCK_NB);
}
