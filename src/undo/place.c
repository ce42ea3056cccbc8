/*
 * place: restores states. A new file is written without a name. When a batch of files
 * is written, one syncfs puts all of them on disk, and then each file gets its name. So
 * neither a killed process nor a power failure leaves a file half-written. A thread waits for
 * the disk, while the next batch is written.
 */

#include "undo/place.h"

#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/path.h"
#include "files/files.h"
#include "files/overlay.h"
#include "files/place.h"
#include "files/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	COPY_AT_ONCE = 256 << 10,
	COPY_SMALL = 16 << 10, /* sharing blocks saves nothing, and a hole is hardly in it */
	/*
	 * Files that wait for one sync. Each of them is open. A sync begins with the least, when
	 * none is under way: the last one, which is waited for, is then a short one.
	 */
	BATCH_MAX = 2048,
	BATCH_LEAST = 256,
	/*
	 * A batch of so few files is synced file by file: fsync does not wait for data
	 * that other programs have written.
	 */
	SYNC_EACH = 4,
	NANOSECONDS = 1000000000,
};

/*
 * The place of a path: its folder, which is borrowed from `struct undo_places`, and its
 * last name.
 */
struct spot {
	int folder;
	char path[PATH_MAX]; /* absolute */
	const char *name;
};

/* A file that is written and has no name yet. */
struct waiting {
	const char *path;
	struct temp temp;
	struct undo_state now; /* the state of the file that it replaces */
};

struct batch {
	struct waiting *files;
	size_t count;
};

/* A folder that is open to its owner only as long as the undo works in it. */
struct opened {
	char *path;  /* absolute */
	mode_t mode; /* in the end */
};

struct undo_places {
	struct files *files;
	int from;
	const struct undo_content *content; /* of the put under way; or NULL: in FROM */
	struct undo_log *log;
	/*
	 * The folder that was opened last. Paths in one folder usually follow each other.
	 */
	int folder;
	char folder_path[PATH_MAX];
	bool is_open; /* its owner may change what is in it */
	/*
	 * The folder that was not there when a path in it was looked at; "": none. It counts
	 * until something is put: nobody else's folder is judged by it later.
	 */
	char missing[PATH_MAX];
	bool puts;
	struct batch batch;    /* its files are written */
	struct batch synced;   /* its files are put on the disk next, or have been */
	size_t most;           /* files in a batch */
	pthread_t thread;      /* of the sync */
	bool syncs;            /* the thread is to be joined */
	atomic_bool is_synced; /* and does not have to be waited for */
	struct err sync_error; /* of the files `synced`; empty: none */
	struct opened *opened;
	size_t opened_count;
};

struct undo_places *undo_places_new(struct files *files, int from, struct undo_log *log)
{
	struct undo_places *places = memory_alloc(sizeof(*places));
	struct rlimit open_files;

	*places =
		(struct undo_places){.files = files, .from = from, .log = log, .folder = -1};
	places->most = BATCH_MAX;
	/*
	 * Half of the descriptors that may be open are for two batches, the others for the rest
	 * of the call.
	 */
	if (getrlimit(RLIMIT_NOFILE, &open_files) < 0)
		places->most = 1;
	else if (open_files.rlim_cur / 4 < places->most)
		places->most = open_files.rlim_cur > 4 ? open_files.rlim_cur / 4 : 1;
	return places;
}

static void forget_batch(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		temp_drop(&batch->files[i].temp);
	batch->count = 0;
}

static const struct files_held *root_of(const struct files *files, const char *path)
{
	const struct files_held *found = NULL;

	for (size_t i = 0; i < files->root_count; i++) {
		const struct files_held *root = &files->roots[i];
		if (path_within(path, root->path) && strcmp(path, root->path) != 0 &&
		    (found == NULL || strlen(root->path) > strlen(found->path)))
			found = root;
	}
	return found;
}

/* Open the folder of SPOT. MAKE: create it and its parents when missing. */
static bool open_folder(struct spot *spot, const struct files_held *root, bool make,
			struct err *err)
{
	auto_free char *below = memory_copy(path_relative(spot->path, root->path));
	char *last = strrchr(below, '/');
	auto_close int at = fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
	char *rest = last != NULL ? below : NULL;

	if (last != NULL)
		*last = '\0';
	while (at >= 0 && rest != NULL) {
		const char *name = strsep(&rest, "/");
		int next = fd_open_beneath(at, name, O_PATH | O_DIRECTORY);

		if (next < 0 && errno == ENOENT && make &&
		    (mkdirat(at, name, 0777) == 0 || errno == EEXIST))
			next = fd_open_beneath(at, name, O_PATH | O_DIRECTORY);
		int code = errno;
		fd_close(&at);
		at = next;
		errno = code;
	}
	if (at < 0)
		return err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	spot->folder = fd_take(&at);
	return true;
}

static struct opened *find_opened(const struct undo_places *places, const char *path)
{
	for (size_t i = 0; i < places->opened_count; i++) {
		if (strcmp(places->opened[i].path, path) == 0)
			return &places->opened[i];
	}
	return NULL;
}

/*
 * Give the open folder FD, whose path is PATH, the permissions MODE: at once when its owner
 * may do everything in it, else in the end.
 */
static void folder_set_mode(struct undo_places *places, int fd, const char *path, mode_t mode)
{
	struct opened *opened = find_opened(places, path);
	char name[FD_NAME_ROOM];

	if (opened == NULL && (mode & S_IRWXU) != S_IRWXU) {
		places->opened = memory_more(places->opened, places->opened_count,
					     sizeof(*places->opened));
		opened = &places->opened[places->opened_count++];
		opened->path = memory_copy(path);
	}
	if (opened != NULL) {
		opened->mode = mode;
		const struct undo_note note = {.kind = UNDO_NOTE_OPENED,
					       .mode = mode,
					       .path = str_of(path)};
		/* A log that is full does not stop the undo here, but at its next change. */
		if (record_path_is_sound(note.path))
			(void)undo_log_note(places->log, &note, NULL);
	}
	(void)!chmod(fd_name(fd, name),
		     folder_mode_opened(mode, opened != NULL ? S_IRWXU : 0));
}

/* The folder that PLACES hold is to be changed: open it to its owner. */
static void open_held(struct undo_places *places)
{
	const size_t size = strlen(places->folder_path) - 1; /* without the slash */
	auto_free char *path = memory_copy_str((struct str){places->folder_path, size});
	struct stat st;

	places->is_open = true;
	if (fstat(places->folder, &st) == 0 && (st.st_mode & S_IRWXU) != S_IRWXU)
		folder_set_mode(places, places->folder, path, st.st_mode & 07777);
}

/* Like open_folder, but PLACES keep the folder open for the next path. */
static bool hold_folder(struct undo_places *places, struct spot *spot,
			const struct files_held *root, bool make, struct err *err)
{
	const size_t size = (size_t)(spot->name - spot->path);

	places->puts = places->puts || make;
	if (places->folder < 0 || strncmp(places->folder_path, spot->path, size) != 0 ||
	    places->folder_path[size] != '\0') {
		struct err why = {0};

		/* A new folder has many names. */
		if (!places->puts && strncmp(places->missing, spot->path, size) == 0 &&
		    places->missing[size] == '\0')
			return files_say_missing(spot->path, err);
		if (!open_folder(spot, root, make, &why)) {
			if (why.code == ENOENT)
				(void)snprintf(places->missing, sizeof(places->missing),
					       "%.*s", (int)size, spot->path);
			return err_set(err, why.code, "%s", why.text);
		}
		fd_close(&places->folder);
		places->folder = spot->folder;
		places->is_open = false;
		(void)snprintf(places->folder_path, sizeof(places->folder_path), "%.*s",
			       (int)size, spot->path);
	}
	if (make && !places->is_open)
		open_held(places);
	spot->folder = places->folder;
	return true;
}

static bool spot_open(struct spot *spot, struct undo_places *places, const char *path,
		      bool make, struct err *err)
{
	const struct files *files = places->files;
	int size = path[0] == '/' ? snprintf(spot->path, sizeof(spot->path), "%s", path)
				  : snprintf(spot->path, sizeof(spot->path), "%s/%s",
					     files->workspace, path);

	spot->folder = -1;
	if (size >= (int)sizeof(spot->path) || !record_path_is_sound(str_of(spot->path)))
		return err_set(err, EINVAL, "%.200s: no path", path);
	spot->name = path_base_name(spot->path);
	const struct files_held *root = root_of(files, spot->path);
	if (root == NULL || files_is_blocked(files, spot->path))
		return files_say_missing(path, err);
	if (make && !files_is_writable(files, spot->path))
		return err_set(err, EROFS, "%s may not be written by this agent", path);
	return hold_folder(places, spot, root, make, err);
}

/*
 * Open the file at SPOT for reading. If its owner may not read it, the owner may do so as
 * long as this function runs. The filter of a cell refuses set-id bits, so a file with such
 * bits could not get them back. -1 with errno.
 */
static int open_file(const struct spot *spot)
{
	const mode_t bits = S_ISUID | S_ISGID | S_IRUSR;
	int file = fd_open_beneath(spot->folder, spot->name, O_RDONLY);
	char name[FD_NAME_ROOM];
	struct stat st;

	if (file >= 0 || errno != EACCES)
		return file;
	auto_close int closed = fd_open_beneath(spot->folder, spot->name, O_PATH);
	if (closed >= 0 && fstat(closed, &st) == 0 && S_ISREG(st.st_mode) &&
	    (st.st_mode & bits) == 0 &&
	    chmod(fd_name(closed, name), (st.st_mode & 07777) | S_IRUSR) == 0) {
		file = open(name, O_RDONLY | O_CLOEXEC);
		(void)!chmod(name, st.st_mode & 07777);
	}
	errno = EACCES;
	return file;
}

static bool look_link(const struct spot *spot, struct undo_state *state, struct buf *target)
{
	char *room = buf_reserve(target, PATH_MAX);
	ssize_t size =
		room != NULL ? readlinkat(spot->folder, spot->name, room, PATH_MAX) : -1;

	if (size < 0)
		return false;
	buf_commit(target, (size_t)size);
	state->size = (uint64_t)size;
	return true;
}

bool undo_places_look(struct undo_places *places, const char *path,
		      struct undo_state *state, struct buf *text, struct err *err)
{
	struct err why = {0};
	struct spot spot;
	struct stat st;
	bool fine = true;

	*state = undo_absent;
	if (text != NULL)
		buf_clear(text);
	if (!spot_open(&spot, places, path, false, &why)) {
		/*
		 * When a folder on the way is missing or is a link now, the path is
		 * absent.
		 */
		return why.code == ENOENT || why.code == ENOTDIR || why.code == ELOOP ||
		       err_set(err, why.code, "%s", why.text);
	}
	if (fstatat(spot.folder, spot.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ||
		       err_set(err, errno, "%s: %s", path, strerror(errno));
	undo_state_of(&st, state);
	if (state->kind == UNDO_ABSENT)
		return err_set(err, ENXIO, "%s is neither a file nor a folder now", path);
	const struct opened *opened = state->kind == UNDO_FOLDER && places->opened_count > 0
					      ? find_opened(places, spot.path)
					      : NULL;
	if (opened != NULL)
		state->mode = opened->mode;
	if (state->kind == UNDO_LINK) {
		struct buf target;
		buf_init(&target, PATH_MAX);
		fine = look_link(&spot, state, &target);
		undo_state_hash_text(buf_str(&target), state);
		buf_fini(&target);
		return fine || err_set(err, errno, "%s: %s", path, strerror(errno));
	}
	if (state->kind == UNDO_FILE) {
		auto_close int file = fd_open_beneath(spot.folder, spot.name, O_RDONLY);
		fine = file >= 0 ? (text != NULL &&
				    undo_state_hash_small(file, state, text)) ||
					   undo_state_hash(file, state, err)
				 : err_set(err, errno, "%s: %s", path, strerror(errno));
	}
	return fine;
}

bool undo_places_read(struct undo_places *places, const char *path,
		      struct undo_state *state, struct err *err)
{
	struct spot spot;
	struct stat st;

	if (!spot_open(&spot, places, path, false, err))
		return false;
	auto_close int file = open_file(&spot);
	if (file < 0 || fstat(file, &st) < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	undo_state_of(&st, state);
	return undo_state_hash(file, state, err);
}

/* Is the file PATH one that open_file can open, although its owner may not read it? */
static bool can_be_read(struct undo_places *places, const char *path)
{
	struct spot spot;
	struct stat st;

	return spot_open(&spot, places, path, false, NULL) &&
	       fstatat(spot.folder, spot.name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_uid == geteuid() && (st.st_mode & (S_ISUID | S_ISGID)) == 0;
}

const char *undo_places_refuse(struct undo_places *places, const char *path,
			       const struct undo_state *now, const struct undo_state *target)
{
	const bool has_content = target->kind == UNDO_FILE || target->kind == UNDO_LINK;

	if (has_content && target->source == UNDO_NOWHERE)
		return "its earlier content was not kept";
	if (now->kind == UNDO_FILE && now->size > UNDO_CONTENT_MAX)
		return "is over 1 GiB, so its present content could not be kept";
	if (now->kind == UNDO_FILE && !now->hashed && !can_be_read(places, path))
		return "cannot be read, so its present content could not be kept";
	return NULL;
}

size_t undo_places_blocked(struct undo_places *places, const char *path)
{
	struct err why = {0};
	struct spot spot;

	if (spot_open(&spot, places, path, false, &why) ||
	    (why.code != ENOTDIR && why.code != ELOOP))
		return 0;
	/* The deepest name above PATH whose own folder is one is the name in the way. */
	auto_free char *above = memory_copy(path);
	for (char *slash = strrchr(above, '/'); slash != NULL; slash = strrchr(above, '/')) {
		*slash = '\0';
		if (spot_open(&spot, places, above, false, &why))
			return (size_t)(slash - above);
	}
	return 0;
}

bool undo_place_look(struct files *files, const char *path, struct undo_state *state,
		     struct err *err)
{
	struct undo_places places = {.files = files, .folder = -1};
	const bool fine = undo_places_look(&places, path, state, NULL, err);

	fd_close(&places.folder);
	return fine;
}

/* Has the file at SPOT, which is the one of NOW, the content of NOW? */
static bool has_content(const struct spot *spot, const struct undo_state *now)
{
	auto_close int file = open_file(spot);
	struct undo_state state;
	struct stat st;

	if (!now->hashed || file < 0 || fstat(file, &st) < 0)
		return false;
	undo_state_of(&st, &state);
	return state.inode == now->inode && undo_state_hash(file, &state, NULL) &&
	       memcmp(state.digest, now->digest, UNDO_DIGEST) == 0;
}

/* Is the file at SPOT still in the state NOW? */
static bool is_still(const struct spot *spot, const struct undo_state *now)
{
	struct undo_state state = undo_absent;
	struct stat st;

	if (fstatat(spot->folder, spot->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		undo_state_of(&st, &state);
	if (state.kind != now->kind)
		return false;
	if (state.kind == UNDO_ABSENT || state.kind == UNDO_FOLDER)
		return true;
	if (state.inode != now->inode || state.size != now->size ||
	    state.mtime_ns != now->mtime_ns)
		return false;
	/*
	 * The undo itself may have taken another name (link) of the file away, or set the
	 * mode by it. The target of a symbolic link never changes.
	 */
	return state.ctime_ns == now->ctime_ns || state.kind == UNDO_LINK ||
	       has_content(spot, now);
}

/*
 * Write the present content and state of SPOT and its future state to LOG. NOW gets the
 * digest of a file that was not read before.
 */
static bool keep(const struct spot *spot, const char *path, struct undo_state *now,
		 const struct undo_state *target, struct undo_log *log, struct err *err)
{
	struct undo_state before = *now;
	struct undo_state after = *target;
	bool fine = true;

	if (now->kind == UNDO_FILE) {
		auto_close int file = open_file(spot);
		fine = file >= 0 ? undo_log_file(log, file, UNDO_CONTENT_MAX, &before, err)
				 : err_set(err, errno, "%s: %s", path, strerror(errno));
		if (fine && !now->hashed) {
			now->hashed = true;
			memcpy(now->digest, before.digest, UNDO_DIGEST);
		}
	} else if (now->kind == UNDO_LINK) {
		struct buf link;
		buf_init(&link, PATH_MAX);
		fine = (look_link(spot, &before, &link) ||
			err_set(err, errno, "%s: %s", path, strerror(errno))) &&
		       undo_log_data(log, buf_str(&link), &before, err);
		buf_fini(&link);
	}
	/*
	 * The new content is recorded only by its digest, because it lies in another log.
	 */
	after.source = UNDO_NOWHERE;
	return fine && undo_log_change(log, str_of(path), &before, &after, err);
}

static void set_extra(int fd, struct str extra)
{
	while (extra.size > 0) {
		const char *end = memchr(extra.data, '\0', extra.size);
		size_t name = end != NULL ? (size_t)(end - extra.data) + 1 : extra.size;
		if (extra.size < name + 4)
			return;
		const unsigned char *number = (const unsigned char *)extra.data + name;
		size_t size = number[0] | (size_t)number[1] << 8 |
			      (size_t)number[2] << 16 | (size_t)number[3] << 24;
		if (size > extra.size - name - 4)
			return;
		/* An attribute that the file system refuses is left out. */
		(void)fsetxattr(fd, extra.data, extra.data + name + 4, size, 0);
		extra = str_part(extra, name + 4 + size, extra.size);
	}
}

/*
 * Write the content of TARGET and its attributes to TO. The content must still have its
 * digest.
 */
static bool write_content(int to, int from, const struct undo_state *target, struct err *err)
{
	struct hash *hash = hash_new();
	uint8_t digest[UNDO_DIGEST];
	uint64_t at = 0;
	struct buf piece;
	bool fine = true;

	buf_init(&piece, COPY_AT_ONCE + UNDO_EXTRA_MAX);
	while (fine && at < target->size) {
		uint64_t left = target->size - at;
		buf_clear(&piece);
		fine = undo_log_content(from, target->offset + at,
					left < COPY_AT_ONCE ? left : COPY_AT_ONCE, &piece,
					err) &&
		       fd_write_all(to, piece.data, piece.size, err);
		hash_add(hash, buf_str(&piece));
		at += piece.size;
	}
	buf_clear(&piece);
	fine = fine && undo_log_content(from, target->offset + target->size,
					target->extra, &piece, err);
	if (fine)
		set_extra(to, buf_str(&piece));
	buf_fini(&piece);
	hash_digest(hash, digest);
	hash_free(hash);
	return fine && (!target->hashed || memcmp(digest, target->digest, UNDO_DIGEST) == 0 ||
			err_set(err, EINVAL, "what was kept of it is damaged"));
}

/* Contents and attributes that come from an open file. */

static void set_one(void *context, const char *name, struct str value)
{
	/* An attribute that the file system refuses is left out. */
	(void)fsetxattr(*(const int *)context, name, value.data, value.size, 0);
}

/* Copy SIZE bytes at AT of FROM to the same place in TO. */
static bool copy_part(int to, int from, off_t at, off_t size)
{
	off_t in = at, out = at;

	while (size > 0) {
		const ssize_t n = copy_file_range(from, &in, to, &out, (size_t)size, 0);

		if (n <= 0)
			break;
		size -= n;
	}
	if (size == 0)
		return true;
	auto_free char *piece = memory_alloc(COPY_AT_ONCE);
	while (size > 0) {
		ssize_t n = pread(from, piece, COPY_AT_ONCE, in);

		if (n <= 0 || pwrite(to, piece, (size_t)n, out) != n)
			return false;
		in += n;
		out += n;
		size -= n;
	}
	return size == 0;
}

/* Write TEXT, which is all that the file TO is to hold. */
static bool write_text(int to, struct str text)
{
	for (size_t at = 0; at < text.size;) {
		const ssize_t n = pwrite(to, text.data + at, text.size - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

/* Copy the data of FROM, which has SIZE bytes and is small, by one read and one write. */
static bool copy_small(int to, int from, off_t size)
{
	char piece[COPY_SMALL];

	return pread(from, piece, sizeof(piece), 0) == size &&
	       write_text(to, (struct str){piece, (size_t)size});
}

bool undo_place_copy_data(int to, int from, off_t size)
{
	off_t at = 0;

	if (size < COPY_SMALL)
		return size == 0 || copy_small(to, from, size);
	if (ioctl(to, FICLONE, from) == 0)
		return true;
	while (at < size) {
		const off_t data = lseek(from, at, SEEK_DATA);
		off_t hole = data >= 0 ? lseek(from, data, SEEK_HOLE) : size;

		if (data < 0 && errno == ENXIO)
			break;
		if (hole < 0 || hole > size)
			hole = size;
		if (!copy_part(to, from, data >= 0 ? data : at,
			       hole - (data >= 0 ? data : at)))
			return false;
		at = hole;
	}
	return ftruncate(to, size) == 0;
}

/* Write all of the open file FROM, which was in the state TARGET. */
static bool write_open(int to, int from, const struct undo_state *target, struct err *err)
{
	struct stat st;

	if (fstat(from, &st) < 0)
		return err_set(err, errno, "its new content: %s", strerror(errno));
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != target->size ||
	    (target->mtime_ns != 0 &&
	     st.st_mtim.tv_sec * NANOSECONDS + st.st_mtim.tv_nsec != target->mtime_ns))
		return err_set(err, EAGAIN, "its new content was just changed");
	if (!undo_place_copy_data(to, from, st.st_size))
		return err_set(err, errno, "%s", strerror(errno));
	const struct timespec times[] = {st.st_atim, st.st_mtim};
	(void)futimens(to, times);
	return true;
}

/* Set the time of the last change of TO. */
static void put_time(int to, int64_t mtime_ns)
{
	struct timespec times[] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = mtime_ns / NANOSECONDS, .tv_nsec = mtime_ns % NANOSECONDS},
	};

	/* Before 1970 both parts are negative. */
	if (times[1].tv_nsec < 0) {
		times[1].tv_sec--;
		times[1].tv_nsec += NANOSECONDS;
	}
	(void)futimens(to, times);
}

/* Write TEXT, which has the time of TARGET (0: now). */
static bool write_kept(int to, struct str text, const struct undo_state *target,
		       struct err *err)
{
	if (!write_text(to, text))
		return err_set(err, errno, "%s", strerror(errno));
	if (target->mtime_ns != 0)
		put_time(to, target->mtime_ns);
	return true;
}

/*
 * Git compares a file with its entry by content only when the file is not older than the index.
 * An index that came back with a new time would hide what was changed right after it was written.
 */
static void put_index_time(int to, const char *path, const struct undo_state *target)
{
	if (target->mtime_ns > 0 && str_ends(str_of(path), STR("/" UNDO_GIT_INDEX)))
		put_time(to, target->mtime_ns);
}

static bool write_target(int to, const struct undo_places *places, const char *path,
			 const struct undo_state *target, struct err *err)
{
	const struct undo_content *content = places->content;

	if (content == NULL) {
		if (!write_content(to, places->from, target, err))
			return false;
		put_index_time(to, path, target);
		return true;
	}
	/* A change of the attributes leaves the times as they are set after it. */
	if (content->extra >= 0)
		overlay_each_extra(content->extra, set_one, &to);
	return content->text.data != NULL ? write_kept(to, content->text, target, err)
					  : write_open(to, content->file, target, err);
}

/*
 * Make the temporary name NAME and note it before a file gets it. So the temporary file of
 * a killed undo is removed later (place_put_back).
 */
static bool note_temp(struct undo_places *places, const struct spot *spot,
		      char name[TEMP_NAME], struct err *err)
{
	struct undo_note note = {.kind = UNDO_NOTE_TEMPS, .path = str_of(spot->path)};

	temp_make_name(note.temp);
	memcpy(name, note.temp, TEMP_NAME);
	return undo_log_note(places->log, &note, err);
}

/* The temporary name is gone. */
static void note_over(struct undo_places *places)
{
	(void)undo_log_say(places->log, UNDO_NOTE_OVER, NULL);
}

/*
 * Rename TEMP to its place. When the place was free, a file that appeared there meanwhile
 * is not replaced.
 */
static bool rename_into(const struct spot *spot, const char *temp,
			const struct undo_state *now, struct err *err)
{
	unsigned flags = now->kind == UNDO_ABSENT ? RENAME_NOREPLACE : 0;

	return renameat2(spot->folder, temp, spot->folder, spot->name, flags) == 0 ||
	       (errno == EINVAL &&
		renameat(spot->folder, temp, spot->folder, spot->name) == 0) ||
	       err_set(err, errno, "%s: %s", spot->path, strerror(errno));
}

static bool say_changed(const struct spot *spot, struct err *err)
{
	return err_set(err, EAGAIN, "%s was just changed by somebody else", spot->path);
}

/* Move TEMP, which is complete and on disk, to its place. */
static bool take_place(struct undo_places *places, const struct spot *spot,
		       struct temp *temp, const struct undo_state *now, struct err *err)
{
	char name[TEMP_NAME];

	/* The folder of TEMP may have been opened again since, as another descriptor. */
	temp->folder_fd = spot->folder;
	/* A free name is taken in one step, which needs no note and fails where it is not free. */
	if (now->kind == UNDO_ABSENT) {
		if (temp_link(temp, spot->name))
			return true;
		return errno == EEXIST
			       ? say_changed(spot, err)
			       : err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	}
	if (!is_still(spot, now))
		return say_changed(spot, err);
	if (!note_temp(places, spot, name, err))
		return false;
	bool fine = temp_link(temp, name) ||
		    err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	if (fine)
		memcpy(temp->name, name, sizeof(temp->name));
	fine = fine && rename_into(spot, temp->name, now, err);
	if (fine)
		temp->name[0] = '\0';
	temp_drop(temp);
	note_over(places);
	return fine;
}

/*
 * On a file system without nameless files, write one file at a time under a temporary
 * name.
 */
static bool put_named_file(struct undo_places *places, const struct spot *spot,
			   const struct undo_state *target, const struct undo_state *now,
			   struct err *err)
{
	struct temp temp = {.fd = -1};
	char name[TEMP_NAME];

	if (!note_temp(places, spot, name, err))
		return false;
	bool fine = temp_open(&temp, spot->folder, name, 0600) ||
		    err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	fine = fine && write_target(temp.fd, places, spot->path, target, err);
	if (fine && (fchmod(temp.fd, target->mode & 01777) < 0 || fsync(temp.fd) < 0))
		fine = err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	fine = fine && (is_still(spot, now) || say_changed(spot, err)) &&
	       rename_into(spot, temp.name, now, err);
	if (fine)
		temp.name[0] = '\0';
	temp_drop(&temp);
	note_over(places);
	return fine;
}

/* Write all contents of the batch to disk. They may lie on several file systems. */
static bool sync_batch(const struct batch *batch, struct err *err)
{
	dev_t synced = 0;
	struct stat st;

	for (size_t i = 0; i < batch->count; i++) {
		const struct waiting *waiting = &batch->files[i];

		if (batch->count > SYNC_EACH) {
			if (fstat(waiting->temp.fd, &st) < 0)
				return err_set(err, errno, "%s: %s", waiting->path,
					       strerror(errno));
			if (i > 0 && st.st_dev == synced)
				continue;
			synced = st.st_dev;
		}
		if ((batch->count > SYNC_EACH ? syncfs(waiting->temp.fd)
					      : fsync(waiting->temp.fd)) < 0)
			return err_set(err, errno, "%s: %s", waiting->path, strerror(errno));
	}
	return true;
}

static void *sync_main(void *context)
{
	struct undo_places *places = context;

	(void)sync_batch(&places->synced, &places->sync_error);
	atomic_store(&places->is_synced, true);
	return NULL;
}

/* Let a thread put the batch on the disk. LAST: there is nothing to be done meanwhile. */
static void begin_sync(struct undo_places *places, bool last)
{
	const struct batch written = places->batch;
	sigset_t all, before;

	places->batch = places->synced;
	places->synced = written;
	places->sync_error = (struct err){0};
	atomic_store(&places->is_synced, false);
	/* Signals are for the thread that works on the call. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	places->syncs =
		!last && pthread_create(&places->thread, NULL, sync_main, places) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!places->syncs)
		(void)sync_main(places);
}

static void end_sync(struct undo_places *places)
{
	if (places->syncs)
		(void)pthread_join(places->thread, NULL);
	places->syncs = false;
}

/* Give the files their names which a sync was begun for. */
static bool name_synced(struct undo_places *places, struct err *err)
{
	struct spot spot;

	end_sync(places);
	bool fine = places->synced.count == 0 || places->sync_error.code == 0 ||
		    err_set(err, places->sync_error.code, "%s", places->sync_error.text);
	for (size_t i = 0; fine && i < places->synced.count; i++) {
		struct waiting *waiting = &places->synced.files[i];

		fine = spot_open(&spot, places, waiting->path, true, err) &&
		       take_place(places, &spot, &waiting->temp, &waiting->now, err);
	}
	forget_batch(&places->synced);
	return fine;
}

/* The batch is written. LAST: no file follows, and all get their names. */
static bool settle_batch(struct undo_places *places, bool last, struct err *err)
{
	bool fine = name_synced(places, err);

	if (fine)
		begin_sync(places, last);
	fine = fine && (!last || name_synced(places, err));
	if (!fine)
		forget_batch(&places->batch);
	return fine;
}

static int compare_opened(const void *a, const void *b)
{
	return -strcmp(((const struct opened *)a)->path, ((const struct opened *)b)->path);
}

/* The folder PATH, which is a root or below one; -1: it is not there any more. */
static int open_again(struct undo_places *places, const char *path)
{
	struct spot spot;

	for (size_t i = 0; i < places->files->root_count; i++) {
		const struct files_held *root = &places->files->roots[i];

		if (strcmp(root->path, path) == 0)
			return fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
	}
	return spot_open(&spot, places, path, false, NULL)
		       ? fd_open_beneath(spot.folder, spot.name, O_PATH | O_DIRECTORY)
		       : -1;
}

/* Close the folders again, the deepest first. */
static void close_opened(struct undo_places *places)
{
	char name[FD_NAME_ROOM];

	if (places->opened_count > 0)
		qsort(places->opened, places->opened_count, sizeof(*places->opened),
		      compare_opened);
	for (size_t i = 0; i < places->opened_count; i++) {
		auto_close int fd = open_again(places, places->opened[i].path);

		if (fd >= 0)
			(void)!chmod(fd_name(fd, name),
				     folder_mode_opened(places->opened[i].mode, 0));
		free(places->opened[i].path);
	}
	if (places->opened_count > 0)
		(void)undo_log_say(places->log, UNDO_NOTE_CLOSED, NULL);
	places->opened_count = 0;
	places->is_open = false;
}

bool undo_places_settle(struct undo_places *places, struct err *err)
{
	const bool fine = settle_batch(places, true, err);

	places->puts = true;
	close_opened(places);
	return fine;
}

void undo_places_free(struct undo_places *places)
{
	if (places == NULL)
		return;
	end_sync(places);
	forget_batch(&places->batch);
	forget_batch(&places->synced);
	close_opened(places);
	free(places->opened);
	fd_close(&places->folder);
	free(places->batch.files);
	free(places->synced.files);
	free(places);
}

static bool put_file(struct undo_places *places, const char *path,
		     const struct spot *spot, const struct undo_state *target,
		     const struct undo_state *now, struct err *err)
{
	struct waiting *waiting;

	if (places->batch.files == NULL)
		places->batch.files =
			memory_array(places->most, sizeof(*places->batch.files));
	waiting = &places->batch.files[places->batch.count];
	*waiting = (struct waiting){.path = path, .temp = {.fd = -1}, .now = *now};
	if (!temp_open(&waiting->temp, spot->folder, NULL, 0600))
		return put_named_file(places, spot, target, now, err);
	/* From here on the batch owns the file and closes it. */
	places->batch.count++;
	if (!write_target(waiting->temp.fd, places, spot->path, target, err))
		return false;
	if (fchmod(waiting->temp.fd, target->mode & 01777) < 0)
		return err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	if (places->batch.count < places->most &&
	    (places->batch.count < BATCH_LEAST ||
	     (places->syncs && !atomic_load(&places->is_synced))))
		return true;
	return settle_batch(places, false, err);
}

static bool put_link(struct undo_places *places, const struct spot *spot,
		     const struct undo_state *target, const struct undo_state *now,
		     struct err *err)
{
	const bool is_free = now->kind == UNDO_ABSENT;
	char name[TEMP_NAME];
	struct buf text;

	if (!is_free && !note_temp(places, spot, name, err))
		return false;
	buf_init(&text, PATH_MAX);
	bool fine = places->content != NULL
			    ? buf_addstr(&text, places->content->text)
			    : undo_log_content(places->from, target->offset, target->size,
					       &text, err);
	if (fine && symlinkat(text.data, spot->folder, is_free ? spot->name : name) < 0)
		fine = err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	buf_fini(&text);
	if (is_free)
		return fine;
	if (fine && !rename_into(spot, name, now, err)) {
		(void)unlinkat(spot->folder, name, 0);
		fine = false;
	}
	note_over(places);
	return fine;
}

/* FROM is where the log ended before it told of this folder. */
static bool put_folder(struct undo_places *places, const struct spot *spot,
		       const struct undo_state *now, const struct undo_state *target,
		       uint64_t from, struct err *err)
{
	struct undo_state seen = {.kind = UNDO_FOLDER};

	if (now->kind != UNDO_FOLDER && mkdirat(spot->folder, spot->name, 0777) < 0) {
		if (errno != EEXIST)
			return err_set(err, errno, "%s: %s", spot->path, strerror(errno));
		/* Somebody else has just made it: an undo must not remove it. */
		undo_log_cut(places->log, from);
		return is_still(spot, &seen) || say_changed(spot, err);
	}
	if (target->mode != 0) {
		auto_close int fd =
			fd_open_beneath(spot->folder, spot->name, O_PATH | O_DIRECTORY);

		if (fd >= 0)
			folder_set_mode(places, fd, spot->path, target->mode);
	}
	return true;
}

/* Remove the file, link or empty folder at SPOT. */
static bool clear(const struct spot *spot, const struct undo_state *now, bool *left,
		  struct err *err)
{
	bool is_folder = now->kind == UNDO_FOLDER;

	if (now->kind == UNDO_ABSENT ||
	    unlinkat(spot->folder, spot->name, is_folder ? AT_REMOVEDIR : 0) == 0)
		return true;
	if (is_folder && (errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY)) {
		*left = true;
		return true;
	}
	return errno == ENOENT ||
	       err_set(err, errno, "%s: %s", spot->path, strerror(errno));
}

static bool put(struct undo_places *places, const char *path, const struct spot *spot,
		struct undo_state *now, const struct undo_state *target, bool *left,
		struct err *err)
{
	const uint64_t from = places->log != NULL ? places->log->at : 0;

	if (!is_still(spot, now))
		return say_changed(spot, err);
	if (!keep(spot, path, now, target, places->log, err))
		return false;
	if (target->kind == UNDO_ABSENT)
		return clear(spot, now, left, err);
	/*
	 * Only a file or link can be replaced in one step; a folder must be removed
	 * first.
	 */
	const struct undo_state *now_there = now;
	if ((now->kind == UNDO_FOLDER) != (target->kind == UNDO_FOLDER)) {
		if (!clear(spot, now, left, err))
			return false;
		if (*left)
			return err_set(err, ENOTEMPTY,
				       "%s is a folder that holds something", path);
		now_there = &undo_absent;
	}
	if (target->kind == UNDO_FOLDER)
		return put_folder(places, spot, now_there, target, from, err);
	return target->kind == UNDO_LINK
		       ? put_link(places, spot, target, now_there, err)
		       : put_file(places, path, spot, target, now_there, err);
}

bool undo_places_put(struct undo_places *places, const char *path,
		     const struct undo_state *now, const struct undo_state *target,
		     bool *left, struct err *err)
{
	struct undo_state seen = *now;
	struct spot spot;

	*left = false;
	return spot_open(&spot, places, path, true, err) &&
	       put(places, path, &spot, &seen, target, left, err);
}

bool undo_places_put_content(struct undo_places *places, const char *path,
			     const struct undo_state *now, const struct undo_state *target,
			     const struct undo_content *content, bool *left, struct err *err)
{
	places->content = content;
	const bool fine = undo_places_put(places, path, now, target, left, err);
	places->content = NULL;
	return fine;
}

/* The regular file at PATH, opened without rights to read or write it; -1 with ERR. */
static int open_named(struct undo_places *places, const char *path, struct err *err)
{
	struct spot spot;
	struct stat st;

	if (!spot_open(&spot, places, path, false, err))
		return -1;
	auto_close int fd = fd_open_beneath(spot.folder, spot.name, O_PATH);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)err_set(err, fd < 0 ? errno : ENXIO, "%s: not there any more", path);
		return -1;
	}
	return fd_take(&fd);
}

bool undo_places_link(struct undo_places *places, const char *path,
		      const struct undo_state *now, const struct undo_state *target,
		      const char *first, struct err *err)
{
	struct temp temp = {.fd = open_named(places, first, err)};
	struct undo_state seen = *now;
	bool left = false;
	struct spot spot;

	bool fine = temp.fd >= 0 && spot_open(&spot, places, path, true, err) &&
		    (is_still(&spot, &seen) || say_changed(&spot, err)) &&
		    keep(&spot, path, &seen, target, places->log, err);
	if (fine && seen.kind == UNDO_FOLDER) {
		fine = clear(&spot, &seen, &left, err) &&
		       (!left || err_set(err, ENOTEMPTY,
					 "%s is a folder that holds something", path));
		seen = undo_absent;
	}
	fine = fine && take_place(places, &spot, &temp, &seen, err);
	temp_drop(&temp);
	return fine;
}
