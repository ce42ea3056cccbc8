/*
 * tree_put: the front's own tool behind `tree/put` of `glovebox serve`: unpacks a tar, which
 * comes as a descriptor, into a folder of the cell. It meets the walls that a command's `tar`
 * would meet, and its changes are looked at and undone like those of a command.
 *
 * The entries are made in a folder beside (image/maker.h decides which may be made), and move
 * to their places only when the whole tar was read. A tar that is cut, broken or refused
 * therefore leaves nothing, and a folder that was not there before appears as a whole. In a
 * folder that is there each name takes its place by one rename: a file or link replaces a
 * file or link, and a folder is joined with a folder. Nothing moves when one of them is of
 * the other kind. When the kernel refuses a rename in the middle, the result says which names
 * are in place.
 *
 * The folder beside has a lock as long as its call runs. The folders that killed calls have
 * left go with the next call.
 */
#include "tools/tools.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "files/files.h"
#include "files/place.h"
#include "image/unpack.h"
#include "tool/call.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The beginning of the names of folders beside. */
#define BESIDE ".glovebox-tree-"

enum {
	BESIDE_ROOM = sizeof(BESIDE "XXXXXX"),
	FOLDER_MODE = 0777,
	FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	FIND_TRIES = 8,      /* others make and remove the destination */
	NAMES_MAX = 2 << 20, /* of one folder; an archive has no more */
	NAMES_SWEPT = 4096, /* names that are looked at for the folders of killed calls */
	SHOWN_MAX = 20,     /* names in a sentence */
	SHOWN_ROOM = 4 * PATH_MAX,
	MOVED_MAX = 1000, /* names in the details */
};

struct put {
	struct call *call;
	struct buf target; /* the real path of the destination */
	int above;         /* the folder in which BESIDE lies */
	int existing;      /* the destination; -1: it is not there yet */
	char *name;        /* of a destination that is not there; or NULL */
	char beside[BESIDE_ROOM];
	int made;       /* the folder beside; -1: there is none */
	uint64_t floor; /* bytes that stay free on its disk */
	bool full;      /* fewer would */
	struct value *moved;
	uint64_t moved_count;
};

static const struct row tree_put_params[] = {
	{"path", ROW_BYTES, true, "Folder that gets the tree; made when it is missing",
	 .min = 1, .max = PATH_MAX - 1},
	{"sweeps", ROW_FLAG, false, "Only remove what killed calls have left there",
	 .initial = "false"},
	{"any_links", ROW_FLAG, false,
	 "Links are made as they are: the tar is tree_get's", .initial = "false"},
	{0},
};

static enum result_status fail(struct tool_result *result, const struct err *err)
{
	value_set_integer(tool_details(result), "code",
			  err->code == E2BIG ? EFBIG : err->code);
	return tool_fail(result, "%s", err->text);
}

static uint64_t free_bytes(int folder)
{
	struct statvfs fs;

	return fstatvfs(folder, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize
					  : UINT64_MAX;
}

static bool put_stopped(void *context)
{
	struct put *put = context;

	put->full = put->full || free_bytes(put->made) < put->floor;
	return put->full || call_stopped(put->call);
}

/* Where it goes. */

/* EISDIR in ERR: the folder, which was missing, has been made meanwhile. */
static bool find_once(struct put *put, struct err *err)
{
	const char *path = call_text(put->call, "path");
	struct files *files = put->call->files;
	struct place place;
	struct file file;
	bool ok;

	file_init(&file);
	ok = files_reach(files, path, FILES_FOLDER, &file, err);
	if (ok) {
		ok = buf_addstr(&put->target, buf_str(&file.path)) &&
		     place_may_write(files, file.path.data, path, err);
		if (ok)
			put->existing = fd_take(&file.fd);
		file_fini(&file);
		if (ok)
			put->above = fcntl(put->existing, F_DUPFD_CLOEXEC, 0);
		return ok && (put->above >= 0 || files_say(errno, path, err));
	}
	file_fini(&file);
	if (err->code != ENOENT)
		return false;
	place_init(&place);
	ok = files_place(files, path, false, &place, err) &&
	     buf_addf(&put->target, "%s/%s",
		      strcmp(place.folder.data, "/") == 0 ? "" : place.folder.data,
		      place.name);
	if (ok) {
		put->name = memory_copy(place.name);
		put->above =
			openat(place.folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ok = put->above >= 0 || files_say(errno, path, err);
	}
	place_fini(&place);
	return ok;
}

/* Find the destination, which others may make or remove at the same time. */
static bool find_target(struct put *put, struct err *err)
{
	int tries = 0;

	while (!find_once(put, err)) {
		if (err->code != EISDIR || ++tries == FIND_TRIES)
			return false;
		buf_clear(&put->target);
	}
	return true;
}

/* Remove the folders of killed calls, whose locks nobody holds. */
static void sweep(const struct put *put)
{
	struct fd_names names = {0};

	fd_names_read(&names, put->above, NAMES_SWEPT, true);
	for (size_t i = 0; i < names.count; i++) {
		if (!str_starts(str_of(names.items[i]), STR(BESIDE)))
			continue;
		auto_close int fd =
			fd_hold(put->above, names.items[i], LOCK_EX | LOCK_NB, 0);
		if (fd >= 0)
			fd_folder_remove_at(put->above, names.items[i]);
	}
	fd_names_fini(&names);
}

static bool make_beside(struct put *put, struct err *err)
{
	(void)snprintf(put->beside, sizeof(put->beside), BESIDE "XXXXXX");
	put->made = fd_hold_new(put->above, put->beside, LOCK_EX, FOLDER_MODE);
	return put->made >= 0 || err_set(err, errno, "%s: nothing can be made there: %s",
					 call_text(put->call, "path"), strerror(errno));
}

/* Moves. */

/* A folder of the tar, and the one of the cell with which it is joined. */
struct joining {
	int from, to;
	struct buf *path; /* below the destination; "" or ending in a slash */
	bool moves;       /* else it is only looked whether all can move */
};

static void note_moved(struct put *put, const char *path)
{
	struct buf shown;

	put->moved_count++;
	if (value_count(put->moved) >= MOVED_MAX)
		return;
	buf_init(&shown, SHOWN_ROOM);
	text_add_name(&shown, str_of(path));
	value_append(put->moved, value_new_str(buf_str(&shown)));
	buf_fini(&shown);
}

/* NAME of JOINING is in the way of another kind of file. */
static bool refuse_kind(const struct joining *joining, const char *name,
			const struct stat *there, struct err *err)
{
	return err_set(err, S_ISDIR(there->st_mode) ? EISDIR : ENOTDIR,
		       "%s%s is %s in the tar and %s in the cell; nothing was changed",
		       joining->path->data, name,
		       S_ISDIR(there->st_mode) ? "no folder" : "a folder",
		       S_ISDIR(there->st_mode) ? "a folder" : "none");
}

static bool join(struct put *put, const struct joining *joining, struct err *err);

/* Join the folders NAME of both. */
static bool join_below(struct put *put, const struct joining *above, const char *name,
		       struct err *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	auto_close int from = openat(above->from, name, flags);
	auto_close int to = openat(above->to, name, flags);
	const struct joining joining = {from, to, above->path, above->moves};

	if (from < 0 || to < 0)
		return err_set(err, errno, "%s%s: %s", above->path->data, name,
			       strerror(errno));
	if (!buf_addf(above->path, "%s/", name))
		return err_set(err, ENAMETOOLONG, "%s%s: the path is too long",
			       above->path->data, name);
	return join(put, &joining, err) &&
	       (!above->moves || unlinkat(above->from, name, AT_REMOVEDIR) == 0 ||
		err_set(err, errno, "%s: %s", above->path->data, strerror(errno)));
}

static bool join_name(struct put *put, const struct joining *joining, const char *name,
		      struct err *err)
{
	const size_t size = joining->path->size;
	struct stat from, to;
	bool ok = true;

	if (fstatat(joining->from, name, &from, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, errno, "%s%s: %s", joining->path->data, name,
			       strerror(errno));
	const bool there = fstatat(joining->to, name, &to, AT_SYMLINK_NOFOLLOW) == 0;
	if (!there && errno != ENOENT)
		return err_set(err, errno, "%s%s: %s", joining->path->data, name,
			       strerror(errno));
	if (there && S_ISDIR(from.st_mode) != S_ISDIR(to.st_mode))
		ok = refuse_kind(joining, name, &to, err);
	else if (there && S_ISDIR(from.st_mode))
		ok = join_below(put, joining, name, err);
	else if (joining->moves) {
		ok = buf_adds(joining->path, name) &&
		     (renameat(joining->from, name, joining->to, name) == 0 ||
		      err_set(err, errno, "%s: %s", joining->path->data, strerror(errno)));
		if (ok)
			note_moved(put, joining->path->data);
	}
	buf_truncate(joining->path, size);
	return ok;
}

static bool join(struct put *put, const struct joining *joining, struct err *err)
{
	struct fd_names names = {0};
	bool ok = true;

	fd_names_read(&names, joining->from, NAMES_MAX, true);
	for (size_t i = 0; i < names.count && ok; i++) {
		if (!joining->moves && call_stopped(put->call))
			ok = err_set(err, ECANCELED, "it was ended");
		ok = ok && join_name(put, joining, names.items[i], err);
	}
	fd_names_fini(&names);
	return ok;
}

/* Join all of the folder beside with the destination. */
static bool join_all(struct put *put, bool moves, struct err *err)
{
	struct buf path;

	buf_init(&path, PATH_MAX);
	const struct joining joining = {put->made, put->existing, &path, moves};
	const bool ok = join(put, &joining, err);
	buf_fini(&path);
	return ok;
}

/*
 * Give the folder beside the name of the destination. When another call has made that
 * meanwhile, join it as one that was there.
 */
static bool name_it(struct put *put, struct err *err)
{
	const char *path = call_text(put->call, "path");

	if (renameat2(put->above, put->beside, put->above, put->name, RENAME_NOREPLACE) == 0)
		return true;
	if (errno == EEXIST) {
		put->existing = openat(put->above, put->name, FOLDER_FLAGS);
		if (put->existing >= 0)
			return place_may_write(put->call->files, put->target.data, path,
					       err) &&
			       join_all(put, false, err) && join_all(put, true, err);
	}
	return err_set(err, errno, "%s: %s; nothing was changed", path, strerror(errno));
}

/* Some names are in place, and others are not: say so. */
static void tell_half(const struct put *put, struct tool_result *result)
{
	(void)buf_addf(&result->text, "; in place are %" PRIu64 " names:", put->moved_count);
	for (size_t i = 0; i < value_count(put->moved) && i < SHOWN_MAX; i++)
		(void)buf_addf(&result->text, "%s %s", i > 0 ? "," : "",
			       value_text(value_item(put->moved, i)));
	if (put->moved_count > SHOWN_MAX)
		(void)buf_addf(&result->text, " and %" PRIu64 " more",
			       put->moved_count - SHOWN_MAX);
	(void)buf_adds(&result->text, "; no other name of the tar is");
	value_set(tool_details(result), "moved", value_ref(put->moved));
}

static void tell_made(const struct maker_counts *counts, struct tool_result *result)
{
	const struct {
		const char *name;
		uint64_t count;
	} rows[] = {
		{"entries", counts->entries}, {"bytes", counts->bytes},
		{"devices", counts->devices}, {"set_ids", counts->set_id},
		{"owners", counts->owners},   {"attributes", counts->attributes},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		value_set_integer(tool_details(result), rows[i].name,
				  (int64_t)rows[i].count);
}

static bool unpack_beside(struct put *put, struct tool_result *result, struct err *err)
{
	struct unpack unpack = {
		.archive = put->call->fds[0],
		.folder = put->made,
		.rules = call_flag(put->call, "any_links") ? MAKER_COPY : MAKER_TREE,
		.stopped = put_stopped,
		.context = put,
	};
	const uint64_t left = free_bytes(put->made), limit = put->call->limits.free_space;

	/* As for a command: one that begins below the limit may use half of the rest. */
	put->floor = left < limit ? left / 2 : limit;
	if (!unpack_run(&unpack, err)) {
		if (put->full)
			return err_set(err, ENOSPC,
				       "less than %" PRIu64 " MiB would stay free on the disk "
				       "(limits.free_space); nothing was changed",
				       put->floor >> 20);
		/* The name that is missing is one of the tar. */
		if (err->code == ENOENT)
			err->code = EINVAL;
		return false;
	}
	tell_made(&unpack.counts, result);
	value_set_text(tool_details(result), "digest", unpack.plain_digest);
	return true;
}

static bool put_all(struct put *put, struct tool_result *result, struct err *err)
{
	const bool sweeps = call_flag(put->call, "sweeps");

	if (!sweeps && !unpack_load(err)) {
		err->code = 0; /* nothing about the tar or the folder is wrong */
		return false;
	}
	if (!find_target(put, err))
		return false;
	sweep(put);
	if (sweeps)
		return true;
	if (!make_beside(put, err) || !unpack_beside(put, result, err))
		return false;
	if (put->name != NULL)
		return name_it(put, err);
	return join_all(put, false, err) && join_all(put, true, err);
}

static enum result_status tree_put_execute(struct call *call, struct tool_result *result)
{
	struct put put = {.call = call, .above = -1, .existing = -1, .made = -1};
	struct err err = {0};
	bool ok;

	buf_init(&put.target, PATH_MAX);
	put.moved = value_new_array();
	ok = put_all(&put, result, &err);
	/* A folder that has its name is not there any more. */
	if (put.made >= 0)
		fd_folder_remove_at(put.above, put.beside);
	if (ok)
		(void)tool_done(result);
	else if (call->cancelled || call_stopped(call))
		(void)call_stop_result(call, result);
	else
		(void)fail(result, &err);
	if (!ok && put.moved_count > 0)
		tell_half(&put, result);
	value_free(put.moved);
	fd_close(&put.made);
	fd_close(&put.existing);
	fd_close(&put.above);
	free(put.name);
	buf_fini(&put.target);
	return result->status;
}

const struct tool tree_put_tool = {
	.name = "tree_put",
	.title = "tree/put", /* as `undo --list` names it */
	.description = "Unpack a tar for a client of `glovebox serve`.",
	.example = "{\"path\": \"/src\"}",
	.params = tree_put_params,
	.effects = EFFECT_RUNS, /* what it changes is judged and undone like a command's */
	.timeout_s = 3600,      /* two million files on a slow disk */
	.internal = true,
	.plain = true,
	.is_step = true,
	.execute = tree_put_execute,
};
