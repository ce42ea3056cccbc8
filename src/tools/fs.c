/*
 * fs: the front's own tools behind the file calls of `glovebox exec-server` and `glovebox
 * serve`. They reach what the file tools reach: the paths beneath the cell's roots, without
 * those that the policy blocks. fs_read answers with the members that the protocol wants, as
 * details, and with the content of a file as Base64, as text. fs_write writes one file,
 * whole or not at all. fs_change makes folders, and removes and renames names, in a process with
 * the walls of a command: it reaches what a command reaches, needs no program of the cell, and
 * its changes are found and judged like those of a command.
 */
#include "tools/tools.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "files/files.h"
#include "files/place.h"
#include "process/follow.h"
#include "tool/call.h"
#include "tool/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* of one answer; a multiple of three, so that the texts of blocks can be joined */
	BLOCK_MAX = 3 << 19,
	URI_MAX = 3 * PATH_MAX,
	NAMES_MAX = 64 << 10, /* names of one folder */
	WALK_MAX = 20000,     /* the ceilings of a walk, whatever its caller wants */
	WALK_DEPTH = 64,
	STATUS_MAX = 128,
	PERMISSIONS = 07777,
	CONTENT_MAX = 16 << 20, /* what the line of a client can hold, and more */
	/* The content of a call that writes may come as a file in memory, behind its log. */
	FD_CONTENT = 1,
};

static const struct row fs_read_params[] = {
	{"what", ROW_CHOICE, true, "What is wanted",
	 .choices = "environment metadata status content names real walk"},
	{"uri", ROW_TEXT, false, "file:// and the path, with %XX for other bytes"},
	{"offset", ROW_COUNT, false, "First byte of the content", .initial = "0",
	 .max = (double)INT64_MAX / 2},
	{"size", ROW_COUNT, false, "Bytes wanted of the content", .max = BLOCK_MAX},
	{"depth", ROW_COUNT, false, "Levels of folders walked", .max = WALK_DEPTH},
	{"folders", ROW_COUNT, false, "Folders walked", .max = WALK_MAX},
	{"entries", ROW_COUNT, false, "Names looked at by a walk", .max = WALK_MAX},
	{"links", ROW_FLAG, false, "The walk goes into linked folders", .initial = "false"},
	{0},
};

static enum result_status fail(struct tool_result *result, const struct err *err)
{
	value_set_integer(tool_details(result), "code", err->code);
	return tool_fail(result, "%s", err->text);
}

/* The path of the URI of CALL, in normal form. */
static bool find_path(const struct call *call, struct buf *path, struct err *err)
{
	const struct str uri = call_str(call, "uri");

	return path_of_uri(uri, path) ||
	       err_set(err, EINVAL, "%.200s is no file:// URI of a path", uri.data);
}

static struct value *uri_value(const char *path)
{
	struct value *value;
	struct buf uri;

	buf_init(&uri, URI_MAX + STATUS_MAX);
	(void)path_add_uri(path, &uri);
	value = value_new_str(buf_str(&uri));
	buf_fini(&uri);
	return value;
}

/* The value of NAME in the environment of the cell's programs, or OTHERWISE. */
static const char *variable_of(const struct call *call, const char *name,
			       const char *otherwise)
{
	const size_t size = strlen(name);

	for (const char *const *at = call->environment; *at != NULL; at++) {
		if (strncmp(*at, name, size) == 0 && (*at)[size] == '=')
			return *at + size + 1;
	}
	return otherwise;
}

static enum result_status tell_environment(const struct call *call,
					   struct tool_result *result)
{
	const char *path = access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
	const char *folder = variable_of(call, "TMPDIR", "/tmp");
	struct value *shell = value_new_object(), *folders = value_new_array();
	struct value *told = tool_details(result);
	char room[PATH_MAX];

	value_set_text(shell, "name", path_base_name(path));
	value_set_text(shell, "path", path);
	value_append(folders, uri_value(folder));
	value_set(told, "shell", shell);
	value_set(told, "cwd",
		  uri_value(program_folder(call->terms, call->workspace, room)));
	value_set(told, "userHomeDir", uri_value(variable_of(call, "HOME", "/")));
	value_set_text(told, "platformOs", "linux");
	value_set(told, "temporaryDirectories", folders);
	value_set(told, "tempDir", uri_value(folder));
	value_set(told, "capabilities", value_new_object());
	return tool_done(result);
}

/* The status of the last name of PATH, no link followed. False with errno. */
static bool look_at_name(const struct call *call, const char *path, struct statx *stx)
{
	char *end = strrchr(path, '/');
	struct buf above;
	struct file file;
	bool found = false;

	errno = ENOENT;
	buf_init(&above, PATH_MAX);
	file_init(&file);
	if (buf_add(&above, path, end > path ? (size_t)(end - path) : 1) &&
	    files_reach(call->files, above.data, FILES_FOLDER, &file, NULL))
		found = statx(file.fd, end + 1, AT_SYMLINK_NOFOLLOW,
			      STATX_BASIC_STATS | STATX_BTIME, stx) == 0;
	file_fini(&file);
	buf_fini(&above);
	return found;
}

/* Is the last name of PATH a symbolic link? */
static bool is_link(const struct call *call, const char *path)
{
	struct statx stx = {0};

	return look_at_name(call, path, &stx) && S_ISLNK(stx.stx_mode);
}

static int64_t milliseconds(struct statx_timestamp time)
{
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Tell of the file with the status STX, found at PATH. */
static enum result_status tell_statx(const struct call *call, const char *path,
				     const struct statx *stx, struct tool_result *result)
{
	struct value *told = tool_details(result);

	value_set_boolean(told, "isDirectory", S_ISDIR(stx->stx_mode));
	value_set_boolean(told, "isFile", S_ISREG(stx->stx_mode));
	value_set_boolean(told, "isSymlink", is_link(call, path));
	value_set_integer(told, "size", (int64_t)stx->stx_size);
	value_set_integer(told, "createdAtMs", milliseconds(stx->stx_btime));
	value_set_integer(told, "modifiedAtMs", milliseconds(stx->stx_mtime));
	return tool_done(result);
}

/* Find the status of PATH, links followed. */
static bool find_status(const struct call *call, const char *path, struct statx *stx,
			struct err *err)
{
	struct file file;
	bool found;

	file_init(&file);
	found = files_reach(call->files, path, FILES_ANY, &file, err);
	if (found)
		(void)statx(file.fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME,
			    stx);
	file_fini(&file);
	return found;
}

static enum result_status tell_metadata(const struct call *call, const char *path,
					struct tool_result *result)
{
	struct statx stx = {0};
	struct err err = {0};

	return find_status(call, path, &stx, &err) ? tell_statx(call, path, &stx, result)
						   : fail(result, &err);
}

/*
 * The same, with the permissions, which exec-server has no member for. A link that leads
 * nowhere is told of as itself.
 */
static enum result_status tell_status(const struct call *call, const char *path,
				      struct tool_result *result)
{
	struct statx stx = {0};
	struct err err = {0};

	if (!find_status(call, path, &stx, &err) &&
	    (files_is_blocked(call->files, path) || !look_at_name(call, path, &stx) ||
	     !S_ISLNK(stx.stx_mode)))
		return fail(result, &err);
	value_set_integer(tool_details(result), "mode",
			  (int64_t)(stx.stx_mode & PERMISSIONS));
	return tell_statx(call, path, &stx, result);
}

/* Read up to SIZE bytes at OFFSET of FD into BYTES. */
static bool read_block(int fd, off_t offset, size_t size, struct buf *bytes, struct err *err)
{
	while (bytes->size < size) {
		char *room = buf_reserve(bytes, size - bytes->size);
		const ssize_t n =
			pread(fd, room, size - bytes->size, offset + (off_t)bytes->size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, errno, "%s", strerror(errno));
		if (n == 0)
			break;
		buf_commit(bytes, (size_t)n);
	}
	return true;
}

/*
 * Tell a block of the file's content, and with it a mark of the whole file, by which the
 * caller knows that the next block is of the same content.
 */
static enum result_status tell_content(const struct call *call, const char *path,
				       struct tool_result *result)
{
	const off_t offset = (off_t)call_count(call, "offset", 0);
	const size_t size = (size_t)call_count(call, "size", BLOCK_MAX);
	char status[STATUS_MAX];
	struct err err = {0};
	struct file file;
	struct buf bytes;
	bool ok;

	file_init(&file);
	buf_init(&bytes, BLOCK_MAX);
	ok = files_reach(call->files, path, FILES_READ, &file, &err) &&
	     read_block(file.fd, offset, size, &bytes, &err);
	if (ok) {
		(void)snprintf(status, sizeof(status), "%jx:%jx:%jx:%jx.%09ld",
			       (uintmax_t)file.st.st_dev, (uintmax_t)file.st.st_ino,
			       (uintmax_t)file.st.st_size,
			       (uintmax_t)file.st.st_mtim.tv_sec, file.st.st_mtim.tv_nsec);
		value_set_text(tool_details(result), "mark", status);
		value_set_boolean(tool_details(result), "isSymlink", is_link(call, path));
		value_set_integer(tool_details(result), "size", (int64_t)file.st.st_size);
		value_set_boolean(tool_details(result), "eof",
				  bytes.size < size ||
					  offset + (off_t)bytes.size >= file.st.st_size);
		(void)buf_base64_add(buf_str(&bytes), &result->text);
	}
	file_fini(&file);
	buf_fini(&bytes);
	return ok ? tool_done(result) : fail(result, &err);
}

/* One folder whose names are being told. */
struct naming {
	const struct call *call;
	const struct file *folder;
	struct buf path; /* of the name */
	struct stat st;
	bool linked;
};

/*
 * Look at NAME: set its path and status, links followed. False: it is no name for the
 * client, or it leads nowhere.
 */
static bool look_at(struct naming *naming, const char *name)
{
	const struct call *call = naming->call;
	struct file file;
	bool there;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	buf_clear(&naming->path);
	if (!buf_addf(&naming->path, "%s/%s",
		      strcmp(naming->folder->path.data, "/") == 0 ? ""
								  : naming->folder->path.data,
		      name) ||
	    files_is_blocked(call->files, naming->path.data) ||
	    fstatat(naming->folder->fd, name, &naming->st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	naming->linked = S_ISLNK(naming->st.st_mode);
	if (!naming->linked)
		return true;
	file_init(&file);
	there = files_reach(call->files, naming->path.data, FILES_ANY, &file, NULL);
	naming->st = file.st;
	file_fini(&file);
	return there;
}

static enum result_status tell_names(const struct call *call, const char *path,
				     struct tool_result *result)
{
	struct naming naming = {.call = call};
	struct value *list = value_new_array();
	struct err err = {0};
	struct file file;
	DIR *names = NULL;

	file_init(&file);
	buf_init(&naming.path, PATH_MAX);
	naming.folder = &file;
	if (files_reach(call->files, path, FILES_FOLDER, &file, &err)) {
		names = fd_open_names(file.fd);
		if (names == NULL)
			(void)err_set(&err, errno, "%s: %s", path, strerror(errno));
	}
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL;
	     at != NULL && value_count(list) < NAMES_MAX; at = readdir(names)) {
		struct value *row;

		if (!look_at(&naming, at->d_name))
			continue;
		row = value_new_object();
		value_set_text(row, "fileName", at->d_name);
		value_set_boolean(row, "isDirectory", S_ISDIR(naming.st.st_mode));
		value_set_boolean(row, "isFile", S_ISREG(naming.st.st_mode));
		value_append(list, row);
	}
	value_set(tool_details(result), "entries", list);
	buf_fini(&naming.path);
	file_fini(&file);
	if (names == NULL)
		return fail(result, &err);
	(void)closedir(names);
	return tool_done(result);
}

static enum result_status tell_real(const struct call *call, const char *path,
				    struct tool_result *result)
{
	struct err err = {0};
	struct file file;
	bool ok;

	file_init(&file);
	ok = files_reach(call->files, path, FILES_ANY, &file, &err);
	if (ok)
		value_set(tool_details(result), "path", uri_value(file.path.data));
	file_fini(&file);
	return ok ? tool_done(result) : fail(result, &err);
}

/* Walks a tree, folder by folder, and lists its files and folders. */
struct walking {
	struct call *call;
	struct value *entries;
	struct value *waiting; /* the folders that are still to be walked: path, depth */
	size_t looked, depth_most, folders_most, entries_most;
	bool links, truncated;
};

/* A folder that waits to be walked. Its path may hold any bytes, so it is kept as a key. */
static void add_waiting(struct walking *walking, const char *path, size_t depth)
{
	struct value *row = value_new_object();
	auto_free char *key = path_key(path);

	if (value_count(walking->waiting) >= walking->folders_most) {
		walking->truncated = true;
		value_free(row);
		return;
	}
	value_set_text(row, "path", key);
	value_set_integer(row, "depth", (int64_t)depth);
	value_append(walking->waiting, row);
}

static void walk_name(struct walking *walking, const struct naming *naming, size_t depth)
{
	const bool folder = S_ISDIR(naming->st.st_mode);
	struct value *row;

	if (!folder && !S_ISREG(naming->st.st_mode))
		return;
	row = value_new_object();
	value_set(row, "path", uri_value(naming->path.data));
	value_set_text(row, "kind", folder ? "directory" : "file");
	value_append(walking->entries, row);
	if (!folder || (naming->linked && !walking->links))
		return;
	if (depth < walking->depth_most)
		add_waiting(walking, naming->path.data, depth + 1);
	else
		walking->truncated = true;
}

static bool walk_folder(struct walking *walking, const char *path, size_t depth,
			struct err *err)
{
	struct naming naming = {.call = walking->call};
	struct file file;
	DIR *names = NULL;

	file_init(&file);
	buf_init(&naming.path, PATH_MAX);
	naming.folder = &file;
	if (files_reach(walking->call->files, path, FILES_FOLDER, &file, err))
		names = fd_open_names(file.fd);
	for (const struct dirent *at = names != NULL ? readdir(names) : NULL; at != NULL;
	     at = readdir(names)) {
		if (walking->looked++ >= walking->entries_most ||
		    call_stopped(walking->call)) {
			walking->truncated = true;
			break;
		}
		if (look_at(&naming, at->d_name))
			walk_name(walking, &naming, depth);
	}
	buf_fini(&naming.path);
	file_fini(&file);
	if (names == NULL)
		return false;
	(void)closedir(names);
	return true;
}

static enum result_status tell_walk(struct call *call, const char *path,
				    struct tool_result *result)
{
	struct walking walking = {
		.call = call,
		.entries = value_new_array(),
		.waiting = value_new_array(),
		.depth_most = (size_t)call_count(call, "depth", WALK_DEPTH),
		.folders_most = (size_t)call_count(call, "folders", WALK_MAX),
		.entries_most = (size_t)call_count(call, "entries", WALK_MAX),
		.links = call_flag(call, "links"),
	};
	struct err err = {0};
	bool ok = true;

	add_waiting(&walking, path, 1);
	for (size_t i = 0; i < value_count(walking.waiting); i++) {
		const struct value *row = value_item(walking.waiting, i);
		auto_free char *folder = path_of_key(value_text(value_member(row, "path")));
		const size_t depth = (size_t)value_integer(value_member(row, "depth"));

		/* A folder that has just gone is no failure of the walk. */
		ok = walk_folder(&walking, folder, depth, &err) || i > 0;
		if (!ok)
			break;
	}
	value_free(walking.waiting);
	value_set(tool_details(result), "entries", walking.entries);
	value_set(tool_details(result), "errors", value_new_array());
	value_set_boolean(tool_details(result), "truncated", walking.truncated);
	return ok ? tool_done(result) : fail(result, &err);
}

static enum result_status fs_read_execute(struct call *call, struct tool_result *result)
{
	static const struct {
		const char *what;
		enum result_status (*tell)(const struct call *, const char *,
					   struct tool_result *);
	} rows[] = {
		{"metadata", tell_metadata}, {"status", tell_status},
		{"content", tell_content},   {"names", tell_names},
		{"real", tell_real},
	};
	const char *what = call_text(call, "what");
	struct err err = {0};
	struct buf path;

	if (strcmp(what, "environment") == 0)
		return tell_environment(call, result);
	buf_init(&path, PATH_MAX);
	if (!find_path(call, &path, &err))
		(void)fail(result, &err);
	else if (strcmp(what, "walk") == 0)
		(void)tell_walk(call, path.data, result);
	else
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			if (strcmp(rows[i].what, what) == 0)
				(void)rows[i].tell(call, path.data, result);
	buf_fini(&path);
	return result->status;
}

const struct tool fs_read_tool = {
	.name = "fs_read",
	.description = "Look at files for a client of exec-server.",
	.example = "{\"what\": \"metadata\", \"uri\": \"file:///src/main.c\"}",
	.params = fs_read_params,
	.effects = EFFECT_READS,
	.timeout_s = 30,
	.internal = true,
	.plain = true,
	.execute = fs_read_execute,
};

/* Writes one file. */

static const struct row fs_write_params[] = {
	{"path", ROW_BYTES, true, "File to write, absolute", .max = PATH_MAX - 1},
	{"content", ROW_TEXT, false,
	 "Its content, as Base64; unless told, a file in memory has it"},
	{0},
};

/* The content that a call brings: as Base64, or as a file in memory. */
struct brought {
	struct buf bytes;
	void *mapped; /* NULL: it is in `bytes` */
	struct str content;
};

static bool brought_map(struct brought *brought, int fd, struct err *err)
{
	struct stat st = {0};

	if (fstat(fd, &st) < 0)
		return err_set(err, EINVAL, "the call has brought no content");
	if (st.st_size == 0)
		return true;
	brought->mapped = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (brought->mapped == MAP_FAILED) {
		brought->mapped = NULL;
		return err_set(err, errno, "the content: %s", strerror(errno));
	}
	brought->content = (struct str){brought->mapped, (size_t)st.st_size};
	return true;
}

static bool brought_take(struct brought *brought, const struct call *call, struct err *err)
{
	const uint64_t most = call->limits.write_bytes;

	buf_init(&brought->bytes, CONTENT_MAX);
	if (call_text(call, "content") == NULL) {
		if (!brought_map(brought, call->fds[FD_CONTENT], err))
			return false;
	} else if (!buf_base64_read(call_str(call, "content"), &brought->bytes)) {
		return err_set(err, EINVAL, "the content is no Base64");
	} else {
		brought->content = buf_str(&brought->bytes);
	}
	return most == 0 || brought->content.size <= most ||
	       err_set(err, EFBIG, "the content has more than %llu bytes",
		       (unsigned long long)most);
}

static void brought_fini(struct brought *brought)
{
	if (brought->mapped != NULL)
		(void)munmap(brought->mapped, brought->content.size);
	buf_fini(&brought->bytes);
}

/* Replace the file at PLACE, as it is now, by CONTENT. */
static bool write_place(struct place *place, struct str content, struct err *err)
{
	char mark[FILES_MARK];
	struct buf old;
	struct stat st;
	bool ok = true;

	if (!place->exists)
		return place_write(place, content, NULL, err);
	buf_init(&old, FILES_HASHED_MAX);
	st = place->st;
	if (st.st_size <= FILES_HASHED_MAX)
		ok = place_read(place, FILES_HASHED_MAX, &old, &st, err);
	files_mark(buf_str(&old), &st, mark);
	ok = ok && place_write(place, content, mark, err);
	buf_fini(&old);
	return ok;
}

static enum result_status fs_write_execute(struct call *call, struct tool_result *result)
{
	struct brought brought = {.content = STR("")};
	struct place place;
	struct err err = {0};
	bool ok;

	place_init(&place);
	ok = brought_take(&brought, call, &err) &&
	     files_place(call->files, call_text(call, "path"), false, &place, &err) &&
	     write_place(&place, brought.content, &err);
	place_fini(&place);
	brought_fini(&brought);
	return ok ? tool_done(result) : fail(result, &err);
}

const struct tool fs_write_tool = {
	.name = "fs_write",
	.title = "fs/writeFile", /* as `undo --list` names it */
	.description = "Write a file for a client of exec-server.",
	.example = "{\"path\": \"/src/a\", \"content\": \"YQ==\"}",
	.params = fs_write_params,
	.effects = EFFECT_WRITES,
	.timeout_s = 30, /* fsync on a busy disk */
	.internal = true,
	.plain = true,
	.is_step = true,
	.execute = fs_write_execute,
};

/* Makes folders, removes names, renames. */

static const struct row fs_change_params[] = {
	{"what", ROW_CHOICE, true, "What is done", .choices = "make_dir remove rename"},
	{"path", ROW_BYTES, true, "The name that is changed, absolute", .max = PATH_MAX - 1},
	{"to", ROW_BYTES, false, "For rename: its new path, absolute", .max = PATH_MAX - 1},
	{"all", ROW_FLAG, false,
	 "make_dir: with the folders above, and it may be there; remove: a folder with all "
	 "that it holds",
	 .initial = "false"},
	{"gone", ROW_FLAG, false, "remove: the name may be missing", .initial = "false"},
	{0},
};

/* The changes of fs_change. Each function returns 0 or an errno. */
struct change {
	int (*make)(const struct change *change);
	const char *path, *to;
	bool all, gone;
};

static int change_make_dir(const struct change *change)
{
	struct stat st;
	struct buf above;
	int code = 0;

	buf_init(&above, PATH_MAX);
	for (const char *slash = strchr(change->path + 1, '/');
	     change->all && slash != NULL; slash = strchr(slash + 1, '/')) {
		buf_clear(&above);
		(void)buf_add(&above, change->path, (size_t)(slash - change->path));
		/* Where one cannot be made, the next step says why. */
		(void)mkdir(above.data, 0777);
	}
	buf_fini(&above);
	if (mkdir(change->path, 0777) < 0)
		code = errno;
	return change->all && code == EEXIST && stat(change->path, &st) == 0 &&
			       S_ISDIR(st.st_mode)
		       ? 0
		       : code;
}

/* Remove PATH with everything below it, as far as that goes; the first error is told. */
static int remove_tree(const char *path)
{
	auto_free char *name = memory_copy(path);
	char *const names[] = {name, NULL};
	FTS *tree = fts_open(names, FTS_PHYSICAL | FTS_NOSTAT, NULL);
	int code = tree == NULL ? errno : 0;
	const FTSENT *entry;

	while (tree != NULL && (entry = fts_read(tree)) != NULL) {
		int failed = 0;

		if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR)
			failed = entry->fts_errno;
		if (entry->fts_info != FTS_D && entry->fts_info != FTS_ERR &&
		    unlinkat(AT_FDCWD, entry->fts_accpath,
			     entry->fts_info == FTS_DP || entry->fts_info == FTS_DNR
				     ? AT_REMOVEDIR
				     : 0) < 0 &&
		    failed == 0)
			failed = errno;
		code = code != 0 ? code : failed;
	}
	if (tree != NULL)
		(void)fts_close(tree);
	return code;
}

static int change_remove(const struct change *change)
{
	struct stat st;
	int code = 0;

	if (lstat(change->path, &st) < 0)
		code = errno;
	else if (S_ISDIR(st.st_mode) && change->all)
		code = remove_tree(change->path);
	else if (unlinkat(AT_FDCWD, change->path, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0)
		code = errno;
	return code == ENOENT && change->gone ? 0 : code;
}

static int change_rename(const struct change *change)
{
	return rename(change->path, change->to) == 0 ? 0 : errno;
}

/* In a process with the walls of a command: the errno is its exit code. */
static int change_body(void *context)
{
	const struct change *change = context;

	return change->make(change);
}

static bool fs_change_stopped(void *context)
{
	struct call *call = context;

	return call_stopped(call) && call->cancelled;
}

/* Carry out CHANGE. False: ERR says why it could not be begun. */
static bool change_run(struct call *call, struct change *change, struct program_run *run,
		       struct tool_result *result, struct err *err)
{
	static const char *const name[] = {"a change of files", NULL};
	struct limit_watch limits;

	run->start.argv = name;
	run->start.environment = call->environment;
	run->start.terms = call->terms;
	run->start.body = change_body;
	run->start.context = change;
	run->deadline_ms = call->deadline_ms;
	run->grace_s = call->grace_s;
	run->stop_fd = call->control_fd;
	run->stopped = fs_change_stopped;
	run->context = call;
	limit_watch_start(&limits, call, run);
	if (!follow_program(run, err))
		return false;
	limit_watch_tell(&limits, run, result);
	return true;
}

static enum result_status fs_change_execute(struct call *call, struct tool_result *result)
{
	static const struct {
		const char *what;
		int (*make)(const struct change *change);
	} rows[] = {
		{"make_dir", change_make_dir},
		{"remove", change_remove},
		{"rename", change_rename},
	};
	const char *what = call_text(call, "what");
	struct change change = {.path = call_text(call, "path"),
				.to = call_text(call, "to"),
				.all = call_flag(call, "all"),
				.gone = call_flag(call, "gone")};
	struct program_run run;
	struct err err = {0};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].what, what) == 0)
			change.make = rows[i].make;
	if (change.make == change_rename && change.to == NULL)
		return tool_fail(result, "A rename needs a new path.");
	program_run_init(&run);
	if (!change_run(call, &change, &run, result, &err)) {
		(void)tool_fail(result, "%s", err.text);
	} else if (run.ending == PROGRAM_TIMED_OUT || run.ending == PROGRAM_CANCELLED) {
		(void)call_stop_result(call, result);
	} else if (run.exit_code == 0) {
		(void)tool_done(result);
	} else if (run.exit_code > 0) {
		(void)err_set(&err, run.exit_code, "%s: %s", change.path,
			      strerror(run.exit_code));
		(void)fail(result, &err);
	} else {
		(void)tool_fail(result, "%s: the change was ended by signal %d.",
				change.path, run.signal);
	}
	program_run_fini(&run);
	return result->status;
}

const struct tool fs_change_tool = {
	.name = "fs_change",
	.title = "fs/change",
	.description = "Make a folder, remove or rename a name for a client of exec-server.",
	.example = "{\"what\": \"make_dir\", \"path\": \"/src/a\"}",
	.params = fs_change_params,
	.effects = EFFECT_RUNS,
	.timeout_s = 0, /* a folder may hold millions of files */
	.internal = true,
	.plain = true,
	.is_step = true,
	.execute = fs_change_execute,
};
