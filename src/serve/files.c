/*
 * files: file/…, by calls of the internal tools fs_read, fs_write and fs_change, which need no
 * program of the cell. A file that comes in pieces is gathered here, in a file in memory, and
 * written by fs_write like any other, as a whole behind the last piece.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "guard/guard.h"
#include "policy/ceiling.h"
#include "serve/caller.h"
#include "serve/engine.h"
#include "session/session.h"
#include "tool/tool.h"
#include "tools/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	BLOCK = 3 << 19,      /* of one call of fs_read; its texts can be joined */
	FILE_MAX = 256 << 20, /* of a file that is written in pieces */
	PIECES_MAX = 16, /* files of one engine that come in pieces at the same time */
	URI_MAX = 3 * PATH_MAX + 16,
	BEYOND = 60, /* 2 to the power of it is behind the end of each file */
	CHANGE_SECONDS = 10 * 60, /* for a large file, or a folder with very many */
};

struct file_task {
	struct engine_task task; /* first: they are one and the same */
	const char *name;        /* of the method */
	char *uri;               /* of a content */
	int64_t offset, wanted;
	char *mark;  /* of the blocks so far */
	int brought; /* what is to be written, in memory; or -1 */
	struct buf content;
	void (*answer)(struct file_task *file, const struct tool_result *result);
};

/* Calls of fs_read and fs_write. */

static void file_free(struct engine_task *task)
{
	struct file_task *file = (struct file_task *)task;

	engine_task_fini(task);
	buf_fini(&file->content);
	fd_close(&file->brought);
	free(file->uri);
	free(file->mark);
	free(file);
}

/* The change of the call did not last: it was taken away again. */
static void refuse_quarantined(const struct file_task *file, const struct tool_result *result)
{
	const struct str text = str_trim(buf_str(&result->text));

	caller_refuse(file->task.caller, file->task.id,
		      &(struct caller_fault){.kind = CALLER_DENIED}, "%s: %.*s",
		      file->name, (int)text.size, text.data);
}

static void answer_changed(struct file_task *file, const struct tool_result *result)
{
	(void)result;
	caller_answer(file->task.caller, file->task.id, value_new_object());
}

static void file_turn(struct engine_task *task)
{
	struct file_task *file = (struct file_task *)task;
	const struct tool_result *result = running_result(task->running);

	if (!running_is_done(task->running) || !caller_reads(task->caller))
		return;
	task->over = true;
	/* A change that was made is told, also to a caller that has cancelled it meanwhile. */
	if (result->status != RESULT_DONE ||
	    (task->cancelled && file->answer != answer_changed))
		engine_refuse_result(task->caller, task->cell, task->id, task->cancelled,
				     result, file->name);
	else if (audit_quarantined(result))
		refuse_quarantined(file, result);
	else
		file->answer(file, result);
}

static void file_call(struct file_task *file, const struct tool *tool,
		      const struct value *arguments)
{
	const struct request request = {
		.tool = tool->name,
		.arguments = arguments,
		.fds = {file->brought},
		.fd_count = file->brought >= 0 ? 1 : 0,
		.by_front = true,
		.timeout_s = tool == &fs_read_tool ? 0 : CHANGE_SECONDS,
		.most_s = ceiling_wall_s(session_ceiling()),
	};

	running_free(file->task.running);
	file->task.over = false;
	file->task.running =
		session_start(file->task.cell->place.session, &request, NULL, NULL);
}

static struct file_task *file_new(const struct engine_request *request, const char *name,
				  void (*answer)(struct file_task *file,
						 const struct tool_result *result))
{
	struct file_task *file = memory_alloc(sizeof(*file));

	file->name = name;
	file->answer = answer;
	file->brought = -1;
	file->task.turn = file_turn;
	file->task.free = file_free;
	buf_init(&file->content, 2 * ENGINE_PIECE);
	engine_add_task(&file->task, request, request->id);
	return file;
}

/* The path of REQUEST at KEY. False: it was refused. PATH is empty before. */
static bool take_path(const struct engine_request *request, const char *key, struct buf *path)
{
	const char *text = value_text(value_member(request->params, key));

	if (text == NULL || engine_path(request->cell, text, path))
		return true;
	caller_refuse(request->caller, request->id,
		      &(struct caller_fault){.kind = CALLER_USAGE, .error = ENAMETOOLONG},
		      "file: %s is too long, or leads above /", key);
	return false;
}

/* Ask fs_read for WHAT about the path of REQUEST. */
static struct file_task *look(const struct engine_request *request, const char *name,
			      const char *what,
			      void (*answer)(struct file_task *file,
					     const struct tool_result *result))
{
	auto_value struct value *arguments = value_new_object();
	struct file_task *file = NULL;
	struct buf path, uri;

	buf_init(&path, PATH_MAX);
	buf_init(&uri, URI_MAX);
	if (engine_has_room(request, 0) && take_path(request, "path", &path) &&
	    path_add_uri(path.data, &uri)) {
		value_set_text(arguments, "what", what);
		value_set_str(arguments, "uri", buf_str(&uri));
		file = file_new(request, name, answer);
		file->uri = memory_copy(uri.data);
		if (strcmp(what, "content") != 0)
			file_call(file, &fs_read_tool, arguments);
	}
	buf_fini(&path);
	buf_fini(&uri);
	return file;
}

/* Requests that read. */

#define FILE_ROW_PATH                                                       \
	{                                                                   \
		"path", ROW_PATH, true,                                     \
			"the file; relative to the workspace, or absolute", \
			.min = 1, .max = PATH_MAX                           \
	}

static const struct row path_params[] = {ENGINE_ROW_CELL, FILE_ROW_PATH, {0}};

static const struct row read_params[] = {
	ENGINE_ROW_CELL,
	FILE_ROW_PATH,
	{"offset", ROW_COUNT, false, "its first byte"},
	{"size", ROW_COUNT, false, "bytes wanted", .min = 0, .max = ENGINE_PIECE},
	{0},
};

/* Ask for the next block of a content. */
static void call_block(struct file_task *file)
{
	auto_value struct value *arguments = value_new_object();

	value_set_text(arguments, "what", "content");
	value_set_text(arguments, "uri", file->uri);
	value_set_integer(arguments, "offset", file->offset);
	value_set_integer(arguments, "size", file->wanted < BLOCK ? file->wanted : BLOCK);
	file_call(file, &fs_read_tool, arguments);
}

/* One more block has come. All blocks of an answer are of one state of the file. */
static void answer_content(struct file_task *file, const struct tool_result *result)
{
	struct caller *caller = file->task.caller;
	const char *mark = value_text(value_member(result->details, "mark"));
	const bool ended = value_is_true(value_member(result->details, "eof"));
	const int64_t size = file->wanted < BLOCK ? file->wanted : BLOCK;
	struct value *told;

	if (file->mark != NULL && mark != NULL && strcmp(mark, file->mark) != 0) {
		caller_refuse(caller, file->task.id,
			      &(struct caller_fault){.kind = CALLER_UNAVAILABLE,
						     .error = EAGAIN,
						     .remedy = "read it again"},
			      "%s: the file is being changed", file->name);
		return;
	}
	if (!engine_charge(file->task.engine, &file->task.kept,
			   file->content.size + result->text.size)) {
		engine_refuse_kept(file->task.caller, file->task.id);
		return;
	}
	if (file->mark == NULL)
		file->mark = memory_copy(mark);
	(void)buf_addstr(&file->content, buf_str(&result->text));
	file->offset += size;
	file->wanted -= size;
	if (!ended && file->wanted > 0) {
		call_block(file);
		return;
	}
	told = value_new_object();
	value_set_str(told, "bytes", buf_str(&file->content));
	value_set_integer(told, "size",
			  value_integer(value_member(result->details, "size")));
	value_set_boolean(told, "end", ended);
	caller_answer(caller, file->task.id, told);
}

static void read_file(const struct engine_request *request)
{
	const struct value *size = value_member(request->params, "size");
	struct file_task *file = look(request, "file/read", "content", answer_content);

	if (file == NULL)
		return;
	file->offset = value_integer(value_member(request->params, "offset"));
	if (file->offset > INT64_C(1) << BEYOND)
		file->offset = INT64_C(1) << BEYOND;
	file->wanted = size != NULL ? value_integer(size) : ENGINE_PIECE;
	call_block(file);
}

static const char *kind_of(const struct value *row)
{
	return value_is_true(value_member(row, "isDirectory")) ? "folder"
	       : value_is_true(value_member(row, "isFile"))    ? "file"
							       : "other";
}

static void answer_stat(struct file_task *file, const struct tool_result *result)
{
	static const char *const times[][2] = {{"createdAtMs", "created_ms"},
					       {"modifiedAtMs", "modified_ms"}};
	struct value *told = value_new_object();

	value_set_text(told, "kind", kind_of(result->details));
	value_set_boolean(told, "link",
			  value_is_true(value_member(result->details, "isSymlink")));
	value_set_integer(told, "size",
			  value_integer(value_member(result->details, "size")));
	value_set_integer(told, "mode",
			  value_integer(value_member(result->details, "mode")));
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		value_set_integer(told, times[i][1],
				  value_integer(value_member(result->details, times[i][0])));
	caller_answer(file->task.caller, file->task.id, told);
}

static void stat_file(const struct engine_request *request)
{
	(void)look(request, "file/stat", "status", answer_stat);
}

static void answer_list(struct file_task *file, const struct tool_result *result)
{
	const struct value *rows = value_member(result->details, "entries");
	struct value *told = value_new_object(), *list = value_new_array();

	for (size_t i = 0; i < value_count(rows); i++) {
		const struct value *row = value_item(rows, i);
		struct value *entry = value_new_object();

		value_set(entry, "name", value_ref(value_member(row, "fileName")));
		value_set_text(entry, "kind", kind_of(row));
		value_append(list, entry);
	}
	value_set(told, "entries", list);
	caller_answer(file->task.caller, file->task.id, told);
}

static void list_folder(const struct engine_request *request)
{
	(void)look(request, "file/list", "names", answer_list);
}

/* Changes of names. */

/* Is PATH something in the workspace, and not the workspace itself? Else REQUEST is refused. */
static bool is_within(const struct engine_request *request, const char *name,
		      const struct buf *path)
{
	if (path->size > 0 && strcmp(path->data, ".") != 0 &&
	    strcmp(path->data, session_workspace(request->cell->place.session)) != 0)
		return true;
	caller_refuse(request->caller, request->id,
		      &(struct caller_fault){.kind = CALLER_USAGE},
		      "%s: the workspace itself stays; name what is in it", name);
	return false;
}

/*
 * Let fs_change do WHAT with the path of REQUEST, and its `to` if it has one. ALL is the flag
 * of fs_change. Unless it MAKES a folder, neither path is the workspace itself.
 */
static void change(const struct engine_request *request, const char *name,
		   const char *what, bool all, bool makes)
{
	static const char *const keys[] = {"path", "to"};
	auto_value struct value *arguments = value_new_object();
	bool fits = engine_has_room(request, 0);

	value_set_text(arguments, "what", what);
	value_set_boolean(arguments, "all", all);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && fits; i++) {
		struct buf path;

		if (value_member(request->params, keys[i]) == NULL)
			continue;
		buf_init(&path, PATH_MAX);
		fits = take_path(request, keys[i], &path) &&
		       (makes || is_within(request, name, &path));
		value_set_str(arguments, keys[i], buf_str(&path));
		buf_fini(&path);
	}
	if (fits)
		file_call(file_new(request, name, answer_changed), &fs_change_tool,
			  arguments);
}

static const struct row remove_params[] = {
	ENGINE_ROW_CELL,
	FILE_ROW_PATH,
	{"recursive", ROW_FLAG, false, "a folder with all that it holds"},
	{0},
};

static void remove_file(const struct engine_request *request)
{
	change(request, "file/remove", "remove",
	       value_is_true(value_member(request->params, "recursive")), false);
}

static const struct row rename_params[] = {
	ENGINE_ROW_CELL,
	FILE_ROW_PATH,
	{"to", ROW_PATH, true, "its new path; a file that is there is replaced", .min = 1,
	 .max = PATH_MAX},
	{0},
};

static void rename_file(const struct engine_request *request)
{
	change(request, "file/rename", "rename", false, false);
}

static const struct row make_dir_params[] = {
	ENGINE_ROW_CELL,
	FILE_ROW_PATH,
	{"parents", ROW_FLAG, false, "those above it as well; one that is there is fine"},
	{0},
};

static void make_folder(const struct engine_request *request)
{
	change(request, "file/make_dir", "make_dir",
	       value_is_true(value_member(request->params, "parents")), true);
}

/* Files that are written. */

bool engine_check_piece(const struct row *row, const struct value *value,
			struct rows_problem *problem)
{
	const struct str text = value_str(value);
	size_t size = text.size / 4 * 3;

	(void)row;
	if (value_kind(value) != VALUE_STRING || !buf_base64_is_valid(text))
		return rows_refuse(problem, NULL, "must be bytes as Base64, with padding");
	size -= (size_t)str_ends(text, STR("=")) + (size_t)str_ends(text, STR("=="));
	return size <= ENGINE_PIECE ||
	       rows_refuse(problem, NULL,
			   "has more than %d MiB: send it in pieces, with `last` at the end",
			   ENGINE_PIECE >> 20);
}

static const struct row write_params[] = {
	ENGINE_ROW_CELL,
	FILE_ROW_PATH,
	{"bytes", ROW_ANY, true, "a piece of the content", .check = engine_check_piece},
	{"offset", ROW_COUNT, false, "where the piece begins: behind the one before"},
	{"last", ROW_FLAG, false, "true unless told: the file appears now",
	 .initial = "true"},
	{0},
};

/* A file that comes in pieces. */
struct engine_pieces {
	struct engine_pieces *next;
	const struct caller *caller;
	const struct engine_cell *cell;
	char *path;
	int fd; /* in memory */
	int64_t size;
	uint64_t kept; /* bytes of ENGINE_KEPT_MIB that are charged to it */
};

static struct engine_pieces **pieces_find(const struct engine_request *request,
					  const char *path)
{
	struct engine_pieces **at = &request->engine->pieces;

	while (*at != NULL &&
	       ((*at)->cell != request->cell || strcmp((*at)->path, path) != 0))
		at = &(*at)->next;
	return at;
}

static void pieces_drop(struct engine_pieces **at)
{
	struct engine_pieces *pieces = *at;

	*at = pieces->next;
	(void)engine_charge(pieces->cell->engine, &pieces->kept, 0);
	fd_close(&pieces->fd);
	free(pieces->path);
	free(pieces);
}

void engine_files_forget(struct engine *engine, const struct engine_cell *cell,
			 const struct caller *caller)
{
	for (struct engine_pieces **at = &engine->pieces; *at != NULL;) {
		if ((*at)->cell == cell || (*at)->caller == caller)
			pieces_drop(at);
		else
			at = &(*at)->next;
	}
}

static struct engine_pieces **pieces_begin(const struct engine_request *request,
					   const char *path)
{
	struct engine_pieces *pieces, **at = &request->engine->pieces;
	size_t count = 0;
	int fd;

	for (; *at != NULL; at = &(*at)->next)
		count++;
	if (count >= PIECES_MAX) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_BUSY},
			      "file/write: %zu files come in pieces already; end one of them by "
			      "`last` or file/drop",
			      count);
		return NULL;
	}
	fd = memfd_create("glovebox-file", MFD_CLOEXEC);
	if (fd < 0) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_LIMIT, .error = errno},
			      "file/write: a file in memory: %s", strerror(errno));
		return NULL;
	}
	pieces = memory_alloc(sizeof(*pieces));
	pieces->cell = request->cell;
	pieces->caller = request->caller;
	pieces->path = memory_copy(path);
	pieces->fd = fd;
	*at = pieces;
	return at;
}

/* The whole content is in one message. */
static void write_whole(const struct engine_request *request, const char *path)
{
	auto_value struct value *arguments = value_new_object();
	struct value *bytes = value_member(request->params, "bytes");
	struct engine_pieces **at = pieces_find(request, path);
	struct file_task *file;

	if (!engine_has_room(request, value_str(bytes).size))
		return;
	/* A caller that has given up its pieces writes the file as a whole. */
	if (*at != NULL)
		pieces_drop(at);
	value_set_text(arguments, "path", path);
	value_set(arguments, "content", value_ref(bytes));
	file = file_new(request, "file/write", answer_changed);
	(void)engine_charge(request->engine, &file->task.kept, value_str(bytes).size);
	file_call(file, &fs_write_tool, arguments);
}

/* The last piece of *AT is there: the file appears. The bytes are charged to its call. */
static void write_pieces(const struct engine_request *request, struct engine_pieces **at)
{
	auto_value struct value *arguments = value_new_object();
	const uint64_t size = (uint64_t)(*at)->size;
	struct file_task *file = file_new(request, "file/write", answer_changed);

	file->brought = fd_take(&(*at)->fd);
	value_set_text(arguments, "path", (*at)->path);
	pieces_drop(at);
	(void)engine_charge(request->engine, &file->task.kept, size);
	file_call(file, &fs_write_tool, arguments);
}

/*
 * Add BYTES of REQUEST at OFFSET to *AT. False: it was refused. Pieces are dropped when nobody
 * knows any more how much of them was written, and when their first one is missing.
 */
static bool add_piece(const struct engine_request *request, struct engine_pieces **at,
		      int64_t offset, struct str bytes)
{
	struct caller *caller = request->caller;
	struct engine_pieces *pieces = *at;
	struct err err = {0};

	if (offset != pieces->size)
		caller_refuse(caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "file/write: the next piece begins at %" PRId64
			      ", not at %" PRId64,
			      pieces->size, offset);
	else if (offset + (int64_t)bytes.size > FILE_MAX)
		caller_refuse(caller, request->id,
			      &(struct caller_fault){.kind = CALLER_LIMIT, .error = EFBIG},
			      "file/write: a file may have %d MiB", FILE_MAX >> 20);
	else if (!engine_charge(request->engine, &pieces->kept,
				(uint64_t)pieces->size + bytes.size))
		engine_refuse_kept(request->caller, request->id);
	else if (!fd_write_all(pieces->fd, bytes.data, bytes.size, &err)) {
		caller_refuse(caller, request->id,
			      &(struct caller_fault){.kind = CALLER_LIMIT,
						     .error = err.code,
						     .remedy = "send the file again, from "
							       "offset 0"},
			      "file/write: the pieces so far are dropped: %s", err.text);
		pieces_drop(at);
		return false;
	} else {
		pieces->size += (int64_t)bytes.size;
		return true;
	}
	if (pieces->size == 0)
		pieces_drop(at);
	return false;
}

/* One of several pieces for PATH. */
static void take_piece(const struct engine_request *request, const char *path, bool last)
{
	const int64_t offset = value_integer(value_member(request->params, "offset"));
	struct engine_pieces **at = pieces_find(request, path);
	struct buf bytes;
	bool added;

	/* A caller that is told to try again may send the last piece once more. */
	if (last && !engine_has_room(request, 0))
		return;
	/* A caller that has given up begins again. */
	if (*at != NULL && offset == 0)
		pieces_drop(at);
	at = pieces_find(request, path);
	if (*at == NULL)
		at = pieces_begin(request, path);
	if (at == NULL)
		return;
	buf_init(&bytes, ENGINE_PIECE + 3);
	(void)buf_base64_read(value_str(value_member(request->params, "bytes")), &bytes);
	added = add_piece(request, at, offset, buf_str(&bytes));
	buf_fini(&bytes);
	if (!added)
		return;
	if (!last) {
		caller_answer(request->caller, request->id, value_new_object());
		return;
	}
	write_pieces(request, at);
}

static void write_file(const struct engine_request *request)
{
	const struct value *said = value_member(request->params, "last");
	const bool last = said == NULL || value_is_true(said);
	const bool first = value_integer(value_member(request->params, "offset")) == 0;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (take_path(request, "path", &path)) {
		if (last && first)
			write_whole(request, path.data);
		else
			take_piece(request, path.data, last);
	}
	buf_fini(&path);
}

/* Nobody sends the rest of a file that came in pieces. */
static void drop_pieces(const struct engine_request *request)
{
	struct engine_pieces **at;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (take_path(request, "path", &path)) {
		at = pieces_find(request, path.data);
		if (*at != NULL)
			pieces_drop(at);
		caller_answer(request->caller, request->id, value_new_object());
	}
	buf_fini(&path);
}

const struct engine_method engine_files[] = {
	{"file/read", read_params, read_file},
	{"file/write", write_params, write_file},
	{"file/drop", path_params, drop_pieces},
	{"file/stat", path_params, stat_file},
	{"file/list", path_params, list_folder},
	{"file/remove", remove_params, remove_file},
	{"file/rename", rename_params, rename_file},
	{"file/make_dir", make_dir_params, make_folder},
	{0},
};
