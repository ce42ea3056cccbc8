/* undo_place: putting back; see undo_place.h. */
#include "runtime/undo_place.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "runtime/files_inside.h"
#include "runtime/place_journal.h"
#include "runtime/place_temp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { COPY_AT_ONCE = 256 << 10 };

/* Where a path lies: its folder, held, and its last name. */
struct spot {
	int folder;
	char path[PATH_MAX]; /* absolute */
	const char *name;
};

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

/* The folder of SPOT, made with those above it when MAKE. */
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

static bool spot_open(struct spot *spot, const struct files *files, const char *path,
		      bool make, struct err *err)
{
	int size = path[0] == '/' ? snprintf(spot->path, sizeof(spot->path), "%s", path)
				  : snprintf(spot->path, sizeof(spot->path), "%s/%s",
					     files->workspace, path);

	spot->folder = -1;
	if (size >= (int)sizeof(spot->path) || !undo_path_is_sound(str_of(spot->path)))
		return err_set(err, EINVAL, "%.200s: no path", path);
	spot->name = path_base_name(spot->path);
	const struct files_held *root = root_of(files, spot->path);
	if (root == NULL || files_is_blocked(files, spot->path))
		return files_say_missing(path, err);
	if (make && !files_is_writable(files, spot->path))
		return err_set(err, EROFS, "%s may not be written by this agent", path);
	return open_folder(spot, root, make, err);
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

bool undo_place_look(struct files *files, const char *path, struct undo_state *state,
		     struct err *err)
{
	struct err why = {0};
	struct spot spot;
	struct stat st;
	bool fine = true;

	*state = undo_absent;
	if (!spot_open(&spot, files, path, false, &why)) {
		/* A folder on the way that is gone, or is a link now: nothing is there. */
		return why.code == ENOENT || why.code == ENOTDIR || why.code == ELOOP ||
		       err_set(err, why.code, "%s", why.text);
	}
	auto_close int folder = spot.folder;
	if (fstatat(folder, spot.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ||
		       err_set(err, errno, "%s: %s", path, strerror(errno));
	undo_state_of(&st, state);
	if (state->kind == UNDO_ABSENT)
		return err_set(err, ENXIO, "%s is neither a file nor a folder now", path);
	if (state->kind == UNDO_LINK) {
		struct buf target;
		buf_init(&target, PATH_MAX);
		fine = look_link(&spot, state, &target);
		undo_state_hash_text(buf_str(&target), state);
		buf_fini(&target);
		return fine || err_set(err, errno, "%s: %s", path, strerror(errno));
	}
	if (state->kind == UNDO_FILE) {
		auto_close int file = fd_open_beneath(folder, spot.name, O_RDONLY);
		fine = file >= 0 ? undo_state_hash(file, state, err)
				 : err_set(err, errno, "%s: %s", path, strerror(errno));
	}
	return fine;
}

/* Is what lies there still what was looked at? */
static bool is_still(const struct spot *spot, const struct undo_state *now)
{
	struct undo_state state = undo_absent;
	struct stat st;

	if (fstatat(spot->folder, spot->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		undo_state_of(&st, &state);
	return state.kind == now->kind &&
	       (state.kind == UNDO_ABSENT || state.kind == UNDO_FOLDER ||
		(state.inode == now->inode && state.size == now->size &&
		 state.mtime_ns == now->mtime_ns && state.ctime_ns == now->ctime_ns));
}

/* What is there goes into LOG, and what will be. */
static bool keep(const struct spot *spot, const char *path, const struct undo_state *now,
		 const struct undo_state *target, struct undo_log *log, struct err *err)
{
	struct undo_state before = *now;
	struct undo_state after = *target;
	bool fine = true;

	if (now->kind == UNDO_FILE) {
		auto_close int file = fd_open_beneath(spot->folder, spot->name, O_RDONLY);
		fine = file >= 0 ? undo_log_file(log, file, UNDO_CONTENT_MAX, &before, err)
				 : err_set(err, errno, "%s: %s", path, strerror(errno));
	} else if (now->kind == UNDO_LINK) {
		struct buf link;
		buf_init(&link, PATH_MAX);
		fine = (look_link(spot, &before, &link) ||
			err_set(err, errno, "%s: %s", path, strerror(errno))) &&
		       undo_log_data(log, buf_str(&link), &before, err);
		buf_fini(&link);
	}
	/* It is known by its digest; where it lay is of another log. */
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
		/* What the file system refuses is left. */
		(void)fsetxattr(fd, extra.data, extra.data + name + 4, size, 0);
		extra = str_part(extra, name + 4 + size, extra.size);
	}
}

static bool write_content(int to, int from, const struct undo_state *target, struct err *err)
{
	struct undo_state wrote = {0};
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
		at += piece.size;
	}
	buf_clear(&piece);
	fine = fine && undo_log_content(from, target->offset + target->size,
					target->extra, &piece, err);
	if (fine)
		set_extra(to, buf_str(&piece));
	buf_fini(&piece);
	/* What was kept came from a file that others could reach: it must be what it was. */
	return fine && undo_state_hash(to, &wrote, err) &&
	       (!target->hashed || memcmp(wrote.digest, target->digest, UNDO_DIGEST) == 0 ||
		err_set(err, EINVAL, "what was kept of it is damaged"));
}

/*
 * What stands in the folder for a moment under a name of ours is in the journal first
 * (place_journal.h): a killed undo leaves nothing behind for long.
 */
static bool journal_open(const struct files *files, const struct spot *spot,
			 struct journal_row *row, char *folder, struct err *err)
{
	(void)snprintf(folder, PATH_MAX, "%.*s", (int)(spot->name - spot->path - 1),
		       spot->path);
	*row = (struct journal_row){.folder = folder[0] != '\0' ? folder : "/",
				    .name = spot->name};
	temp_make_name(row->temp);
	temp_make_name(row->keep);
	return journal_begin(files, row, 1, false) ||
	       err_set(err, errno, "%s: journal: %s", spot->path, strerror(errno));
}

/* In its place, unless somebody has just put something there where nothing was. */
static bool rename_into(const struct spot *spot, const char *temp,
			const struct undo_state *now, struct err *err)
{
	unsigned flags = now->kind == UNDO_ABSENT ? RENAME_NOREPLACE : 0;

	return renameat2(spot->folder, temp, spot->folder, spot->name, flags) == 0 ||
	       (errno == EINVAL &&
		renameat(spot->folder, temp, spot->folder, spot->name) == 0) ||
	       err_set(err, errno, "%s: %s", spot->path, strerror(errno));
}

static bool put_file(const struct files *files, const struct spot *spot,
		     const struct undo_state *target, int from,
		     const struct undo_state *now, struct err *err)
{
	struct temp temp = {.fd = -1};
	struct journal_row row;
	char folder[PATH_MAX];

	if (!journal_open(files, spot, &row, folder, err))
		return false;
	bool fine = temp_open_readable(&temp, spot->folder, row.temp) ||
		    err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	fine = fine && write_content(temp.fd, from, target, err);
	if (fine && (fchmod(temp.fd, target->mode & 01777) < 0 || fsync(temp.fd) < 0 ||
		     (temp.name[0] == '\0' && !temp_link(&temp, row.temp))))
		fine = err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	if (fine)
		memcpy(temp.name, row.temp, sizeof(temp.name));
	if (fine && !is_still(spot, now))
		fine = err_set(err, EAGAIN, "%s was just changed by somebody else",
			       spot->path);
	fine = fine && rename_into(spot, temp.name, now, err);
	if (fine)
		temp.name[0] = '\0';
	temp_drop(&temp);
	journal_end(files);
	return fine;
}

static bool put_link(const struct files *files, const struct spot *spot,
		     const struct undo_state *target, int from,
		     const struct undo_state *now, struct err *err)
{
	struct journal_row row;
	char folder[PATH_MAX];
	struct buf text;

	if (!journal_open(files, spot, &row, folder, err))
		return false;
	buf_init(&text, PATH_MAX);
	bool fine = undo_log_content(from, target->offset, target->size, &text, err);
	if (fine && symlinkat(text.data, spot->folder, row.temp) < 0)
		fine = err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	buf_fini(&text);
	if (fine && !rename_into(spot, row.temp, now, err)) {
		(void)unlinkat(spot->folder, row.temp, 0);
		fine = false;
	}
	journal_end(files);
	return fine;
}

static bool put_folder(const struct spot *spot, const struct undo_state *now,
		       const struct undo_state *target, struct err *err)
{
	if (now->kind != UNDO_FOLDER && mkdirat(spot->folder, spot->name, 0777) < 0 &&
	    errno != EEXIST)
		return err_set(err, errno, "%s: %s", spot->path, strerror(errno));
	if (target->mode != 0) {
		auto_close int fd =
			fd_open_beneath(spot->folder, spot->name, O_RDONLY | O_DIRECTORY);
		if (fd >= 0)
			(void)fchmod(fd, target->mode & 01777);
	}
	return true;
}

/* Take away what is there. */
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

static bool put(struct files *files, const char *path, const struct spot *spot,
		const struct undo_state *now, const struct undo_state *target, int from,
		struct undo_log *log, bool *left, struct err *err)
{
	if (!is_still(spot, now))
		return err_set(err, EAGAIN, "%s was just changed by somebody else", path);
	if (!keep(spot, path, now, target, log, err))
		return false;
	if (target->kind == UNDO_ABSENT)
		return clear(spot, now, left, err);
	/* Only a file or link gives way to another in one step. */
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
		return put_folder(spot, now_there, target, err);
	return target->kind == UNDO_LINK
		       ? put_link(files, spot, target, from, now_there, err)
		       : put_file(files, spot, target, from, now_there, err);
}

bool undo_place_put(struct files *files, const char *path, const struct undo_state *now,
		    const struct undo_state *target, int from, struct undo_log *log,
		    bool *left, struct err *err)
{
	struct spot spot;
	bool done;

	*left = false;
	if (!spot_open(&spot, files, path, true, err))
		return false;
	done = put(files, path, &spot, now, target, from, log, left, err);
	fd_close(&spot.folder);
	return done;
}
