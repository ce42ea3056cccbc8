/*
 * trees: tree/put and tree/get: a folder as a tar, in pieces; and cell/snapshot, which packs
 * a workspace in its cell and unpacks it in another one, over the folder of the snapshot. The
 * pieces are gathered in a file without a name in the folder of temporary files, and the tar
 * is read and written by a worker in the cell (tools/trees/), never here: this process only
 * passes bytes on. A tree is known by its number until its last piece has passed.
 */

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "guard/guard.h"
#include "serve/caller.h"
#include "serve/engine.h"
#include "session/session.h"
#include "tool/tool.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	TREES_MAX = 16,    /* of one engine at the same time */
	SNAPSHOT_S = 3600, /* for a snapshot, unless its caller says otherwise */
	TEMP_MODE = 0600,
};
#define TAR_MAX \
	(INT64_C(4) << 30) /* bytes; a disk has more, a temporary folder may not */

/* A tar that passes in pieces. */
struct engine_tree {
	struct engine_tree *next;
	struct engine_cell *cell;
	const struct caller *caller;
	uint64_t number;
	bool comes; /* from the caller; else it goes there */
	char *path; /* the folder in the cell, as the caller has named it */
	int fd;
	int64_t size;
};

struct tree_task {
	struct engine_task task;  /* first: they are one and the same */
	struct engine_tree *tree; /* in no list while its call runs; the task's */
	const char *name;         /* of the method */
	bool sweeps; /* it was answered; what its call has left in the cell is removed */
	int64_t wanted; /* bytes of the first piece */
};

/* Trees. */

static void tree_free(struct engine_tree *tree)
{
	if (tree == NULL)
		return;
	fd_close(&tree->fd);
	free(tree->path);
	free(tree);
}

void engine_trees_forget(struct engine *engine, const struct engine_cell *cell,
			 const struct caller *caller)
{
	for (struct engine_tree **at = &engine->trees; *at != NULL;) {
		struct engine_tree *tree = *at;

		if (tree->cell != cell && tree->caller != caller) {
			at = &tree->next;
			continue;
		}
		*at = tree->next;
		engine->tree_count--;
		tree_free(tree);
	}
}

/* A file without a name; -1 with errno. */
static int open_nameless(void)
{
	const char *folder = getenv("TMPDIR");
	int fd = -1;
	struct buf path;

	if (folder == NULL || folder[0] != '/')
		folder = "/tmp";
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, TEMP_MODE);
	/* Not every file system can make one. */
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s/glovebox-tree-XXXXXX", folder)) {
		fd = mkostemp(path.data, O_CLOEXEC);
		if (fd >= 0)
			(void)unlink(path.data);
	} else {
		errno = ENAMETOOLONG;
	}
	buf_fini(&path);
	return fd;
}

/* A new tree for REQUEST of the method NAME; NULL: it was refused. */
static struct engine_tree *tree_new(const struct engine_request *request,
				    const char *name, bool comes)
{
	const char *path = value_text(value_member(request->params, "path"));
	struct engine *engine = request->engine;
	struct engine_tree *tree;
	int fd;

	if (engine->tree_count >= TREES_MAX) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_BUSY,
						     .remedy =
							     "let one of them pass to its end, "
							     "or give one up by tree/drop"},
			      "%s: %d trees pass in pieces already, which is the most",
			      name, TREES_MAX);
		return NULL;
	}
	fd = open_nameless();
	if (fd < 0) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_LIMIT,
						     .error = errno,
						     .remedy = "name another folder in TMPDIR"},
			      "%s: a temporary file: %s", name, strerror(errno));
		return NULL;
	}
	tree = memory_alloc(sizeof(*tree));
	tree->cell = request->cell;
	tree->caller = request->caller;
	tree->number = ++engine->trees_made;
	tree->comes = comes;
	tree->path = memory_copy(path != NULL ? path : ".");
	tree->fd = fd;
	engine->tree_count++;
	return tree;
}

static void tree_add(struct engine_tree *tree)
{
	struct engine *engine = tree->cell->engine;

	tree->next = engine->trees;
	engine->trees = tree;
}

/* Take TREE out of the list, if it is there, and count it no more. */
static void tree_drop(struct engine_tree *tree)
{
	struct engine *engine = tree->cell->engine;

	for (struct engine_tree **at = &engine->trees; *at != NULL; at = &(*at)->next) {
		if (*at == tree) {
			*at = tree->next;
			break;
		}
	}
	engine->tree_count--;
	tree_free(tree);
}

/* The tree that REQUEST of the method NAME names, which is EITHER way or COMES; NULL: refused. */
static struct engine_tree *tree_find(const struct engine_request *request,
				     const char *name, bool either, bool comes)
{
	const int64_t number = value_integer(value_member(request->params, "tree"));
	struct engine *engine = request->engine;

	for (struct engine_tree *at = engine->trees; at != NULL; at = at->next) {
		if (at->cell == request->cell && (either || at->comes == comes) &&
		    at->number == (uint64_t)number)
			return at;
	}
	caller_refuse(request->caller, request->id,
		      &(struct caller_fault){.kind = CALLER_NO_SUCH},
		      "%s: no tree %" PRId64
		      " of cell %s is passing; leave out `tree` to begin",
		      name, number, request->cell->name);
	return NULL;
}

/* Calls of the worker. */

static void tree_task_free(struct engine_task *task)
{
	struct tree_task *call = (struct tree_task *)task;

	engine_task_fini(task);
	if (call->tree != NULL)
		tree_drop(call->tree);
	free(call);
}

/* Start TOOL for the folder of CALL's tree, with its file. */
static void tree_call(struct tree_task *call, const struct tool *tool)
{
	auto_value struct value *arguments = value_new_object();
	struct request request = {.tool = tool->name,
				  .arguments = arguments,
				  .by_front = true};
	struct engine_tree *tree = call->tree;
	struct buf path;

	buf_init(&path, PATH_MAX);
	(void)engine_path(tree->cell, tree->path, &path);
	value_set_str(arguments, "path", buf_str(&path));
	buf_fini(&path);
	if (!tree->comes)
		value_set_integer(arguments, "most", TAR_MAX);
	if (call->sweeps)
		value_set_boolean(arguments, "sweeps", true);
	/* Borrowed: the call is over before the tree goes. */
	if (!call->sweeps) {
		request.fds[0] = tree->fd;
		request.fd_count = 1;
	}
	running_free(call->task.running);
	call->task.running = session_start(tree->cell->place.session, &request, NULL, NULL);
}

static void begin_call(const struct engine_request *request, struct engine_tree *tree,
		       const char *name, const struct tool *tool, int64_t wanted,
		       void (*turn)(struct engine_task *task))
{
	struct tree_task *call = memory_alloc(sizeof(*call));

	call->tree = tree;
	call->name = name;
	call->wanted = wanted;
	call->task.turn = turn;
	call->task.free = tree_task_free;
	call->task.tidies = tool == &tree_put_tool;
	engine_add_task(&call->task, request, request->id);
	tree_call(call, tool);
}

/* Is the call of TASK over, and is its request answered when it has failed? */
static bool has_result(struct tree_task *call)
{
	struct engine_task *task = &call->task;
	const struct tool_result *result = running_result(task->running);

	if (!running_is_done(task->running) || !caller_reads(task->caller))
		return false;
	task->over = true;
	if (call->sweeps)
		return false;
	/* A tree that was made is told, also to a caller that has cancelled it meanwhile. */
	if (result->status == RESULT_DONE &&
	    (!task->cancelled || strcmp(call->name, "tree/put") == 0))
		return true;
	engine_refuse_result(task->caller, task->cell, task->id, task->cancelled, result,
			     call->name);
	return false;
}

/* The path of REQUEST can be one of its cell. False: it was refused. */
static bool path_fits(const struct engine_request *request, const char *name)
{
	const char *text = value_text(value_member(request->params, "path"));
	struct buf path;
	bool fits;

	buf_init(&path, PATH_MAX);
	fits = text == NULL || engine_path(request->cell, text, &path);
	buf_fini(&path);
	if (!fits)
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE,
						     .error = ENAMETOOLONG},
			      "%s: path is too long, or leads above /", name);
	return fits;
}

/*
 * The guard has put files of the tree aside: a tree that is not the one that was sent is no
 * success.
 */
static void refuse_quarantined(const struct engine_task *task, const char *name,
			       const struct tool_result *result)
{
	const struct str text = str_trim(buf_str(&result->text));

	caller_refuse(task->caller, task->id, &(struct caller_fault){.kind = CALLER_DENIED},
		      "%s: %.*s", name, (int)text.size, text.data);
}

/* tree/put. */

static const struct row put_params[] = {
	ENGINE_ROW_CELL,
	{"path", ROW_FOLDER, false,
	 "the folder that gets the tree, made when it is missing; the workspace unless told",
	 .min = 1, .max = PATH_MAX},
	{"bytes", ROW_ANY, true, "a piece of the tar", .check = engine_check_piece},
	{"tree", ROW_ID, false, "the number of the tree, for all pieces but the first",
	 .min = 1, .max = INT32_MAX},
	{"offset", ROW_COUNT, false, "where the piece begins: behind the one before"},
	{"last", ROW_FLAG, false, "true unless told: the tree appears now",
	 .initial = "true"},
	{0},
};

/* How the tree was made, as the worker tells. */
static void answer_put(struct engine_task *task, const struct tool_result *result)
{
	static const char *const counts[] = {"entries", "bytes"};
	static const char *const dropped[] = {"devices", "set_ids", "owners", "attributes"};
	struct value *told = value_new_object(), *left = value_new_object();

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		value_set_integer(told, counts[i],
				  value_integer(value_member(result->details, counts[i])));
	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++)
		value_set_integer(left, dropped[i],
				  value_integer(value_member(result->details, dropped[i])));
	value_set(told, "dropped", left);
	caller_answer(task->caller, task->id, told);
}

static void put_turn(struct engine_task *task)
{
	struct tree_task *call = (struct tree_task *)task;
	const bool made = task->caller != NULL && has_result(call);
	const struct tool_result *result = running_result(task->running);

	if (task->caller == NULL)
		task->over = running_is_done(task->running);
	if (made && audit_quarantined(result))
		refuse_quarantined(task, call->name, result);
	else if (made)
		answer_put(task, result);
	if (made)
		return;
	/* A tool that tells why has left nothing. */
	if (!task->over || call->sweeps || value_member(result->details, "code") != NULL ||
	    result->status == RESULT_DONE || result->status == RESULT_DENIED ||
	    session_broken(task->cell->place.session) != NULL)
		return;
	/* The call was ended, and may have left a folder beside the tree. */
	value_free(task->id);
	task->id = NULL;
	task->over = task->cancelled = false;
	call->sweeps = true;
	tree_call(call, &tree_put_tool);
}

/*
 * Add BYTES of REQUEST to TREE. False: it was refused. A tree of which nobody knows any more
 * how much of it was kept is dropped.
 */
static bool add_piece(const struct engine_request *request, struct engine_tree *tree,
		      struct str bytes)
{
	const struct value *offset = value_member(request->params, "offset");
	struct caller *caller = request->caller;
	struct err err = {0};

	if (offset != NULL && value_integer(offset) != tree->size) {
		caller_refuse(caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "tree/put: the next piece begins at %" PRId64
			      ", not at %" PRId64,
			      tree->size, value_integer(offset));
		return false;
	}
	if (tree->size + (int64_t)bytes.size > TAR_MAX) {
		caller_refuse(caller, request->id,
			      &(struct caller_fault){.kind = CALLER_LIMIT, .error = EFBIG},
			      "tree/put: a tar may have %" PRId64
			      " MiB; send its folders one by "
			      "one",
			      TAR_MAX >> 20);
		return false;
	}
	if (fd_write_all(tree->fd, bytes.data, bytes.size, &err)) {
		tree->size += (int64_t)bytes.size;
		return true;
	}
	caller_refuse(caller, request->id,
		      &(struct caller_fault){.kind = CALLER_LIMIT,
					     .error = err.code,
					     .remedy = "send the tree again; TMPDIR names the "
						       "folder that keeps it meanwhile"},
		      "tree/put: the pieces so far are dropped: %s", err.text);
	tree->size = -1;
	return false;
}

static void answer_number(const struct engine_request *request,
			  const struct engine_tree *tree)
{
	struct value *told = value_new_object();

	value_set_integer(told, "tree", (int64_t)tree->number);
	caller_answer(request->caller, request->id, told);
}

/* Take TREE out of the list, but count it further: its call has it. */
static void tree_take(struct engine_tree *tree)
{
	struct engine_tree **at = &tree->cell->engine->trees;

	while (*at != tree)
		at = &(*at)->next;
	*at = tree->next;
	tree->next = NULL;
}

static void put_tree(const struct engine_request *request)
{
	const struct value *said = value_member(request->params, "last");
	const bool begins = value_member(request->params, "tree") == NULL;
	const bool last = said == NULL || value_is_true(said);
	struct engine_tree *tree;
	struct buf bytes;
	bool added;

	/* A caller that is told to try again may send the last piece once more. */
	if (!path_fits(request, "tree/put") || (last && !engine_has_room(request, 0)))
		return;
	tree = begins ? tree_new(request, "tree/put", true)
		      : tree_find(request, "tree/put", false, true);
	if (tree == NULL)
		return;
	if (begins)
		tree_add(tree);
	buf_init(&bytes, ENGINE_PIECE + 3);
	(void)buf_base64_read(value_str(value_member(request->params, "bytes")), &bytes);
	added = add_piece(request, tree, buf_str(&bytes));
	buf_fini(&bytes);
	if (!added && (begins || tree->size < 0))
		tree_drop(tree);
	if (!added)
		return;
	if (!last) {
		answer_number(request, tree);
		return;
	}
	(void)lseek(tree->fd, 0, SEEK_SET);
	tree_take(tree);
	begin_call(request, tree, "tree/put", &tree_put_tool, 0, put_turn);
}

/* tree/get. */

static const struct row get_params[] = {
	ENGINE_ROW_CELL,
	{"path", ROW_FOLDER, false, "the folder; the workspace unless told", .min = 1,
	 .max = PATH_MAX},
	{"tree", ROW_ID, false, "the number of the tree, for all pieces but the first",
	 .min = 1, .max = INT32_MAX},
	{"offset", ROW_COUNT, false, "the first byte of the piece"},
	{"size", ROW_COUNT, false, "bytes wanted", .min = 0, .max = ENGINE_PIECE},
	{0},
};

/*
 * Answer ID with the bytes of TREE at OFFSET, WANTED at most, in TOLD. The last ones end the
 * tree; true: it goes on.
 */
static bool answer_piece(struct engine_tree *tree, struct caller *caller,
			 const struct value *id, struct value *take_told, int64_t offset,
			 int64_t wanted)
{
	const int64_t rest = offset < tree->size ? tree->size - offset : 0;
	const size_t size = (size_t)(rest < wanted ? rest : wanted);
	struct buf bytes, text;
	bool whole = true;

	buf_init(&bytes, ENGINE_PIECE);
	buf_init(&text, 2 * ENGINE_PIECE);
	while (whole && bytes.size < size) {
		const ssize_t n = pread(tree->fd, buf_reserve(&bytes, size - bytes.size),
					size - bytes.size, offset + (off_t)bytes.size);

		whole = n > 0 || (n < 0 && errno == EINTR);
		if (n > 0)
			buf_commit(&bytes, (size_t)n);
	}
	(void)buf_base64_add(buf_str(&bytes), &text);
	const bool end = offset + (int64_t)size >= tree->size;
	value_set_integer(take_told, "tree", (int64_t)tree->number);
	value_set_str(take_told, "bytes", buf_str(&text));
	value_set_integer(take_told, "size", tree->size);
	value_set_boolean(take_told, "end", end);
	buf_fini(&bytes);
	buf_fini(&text);
	if (whole) {
		caller_answer(caller, id, take_told);
		return !end;
	}
	value_free(take_told);
	caller_refuse(caller, id,
		      &(struct caller_fault){.kind = CALLER_UNAVAILABLE, .error = errno},
		      "tree/get: the temporary file cannot be read: %s", strerror(errno));
	return false;
}

static void get_turn(struct engine_task *task)
{
	static const char *const counts[] = {"entries", "skipped", "shortened"};
	struct tree_task *call = (struct tree_task *)task;
	struct engine_tree *tree = call->tree;
	struct value *told;

	if (!has_result(call))
		return;
	const struct value *details = running_result(task->running)->details;

	tree->size = lseek(tree->fd, 0, SEEK_END);
	told = value_new_object();
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		value_set_integer(told, counts[i],
				  value_integer(value_member(details, counts[i])));
	if (answer_piece(tree, task->caller, task->id, told, 0, call->wanted)) {
		call->tree = NULL;
		tree_add(tree);
	}
}

static void get_tree(const struct engine_request *request)
{
	const struct value *size = value_member(request->params, "size");
	const int64_t offset = value_integer(value_member(request->params, "offset"));
	const int64_t wanted = size != NULL ? value_integer(size) : ENGINE_PIECE;
	const bool begins = value_member(request->params, "tree") == NULL;
	struct engine_tree *tree;

	if (begins && offset > 0) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_USAGE},
			      "tree/get: without `tree` it begins at 0, not at %" PRId64,
			      offset);
		return;
	}
	if (begins) {
		if (!path_fits(request, "tree/get") || !engine_has_room(request, 0))
			return;
		tree = tree_new(request, "tree/get", false);
		if (tree != NULL)
			begin_call(request, tree, "tree/get", &tree_get_tool, wanted,
				   get_turn);
		return;
	}
	tree = tree_find(request, "tree/get", false, false);
	if (tree != NULL && !answer_piece(tree, request->caller, request->id,
					  value_new_object(), offset, wanted))
		tree_drop(tree);
}

/* tree/drop. */

static const struct row drop_params[] = {
	ENGINE_ROW_CELL,
	{"tree", ROW_ID, true, "the number of the tree", .min = 1, .max = INT32_MAX},
	{0},
};

static void drop_tree(const struct engine_request *request)
{
	struct engine_tree *tree = tree_find(request, "tree/drop", true, false);

	if (tree == NULL)
		return;
	tree_drop(tree);
	caller_answer(request->caller, request->id, value_new_object());
}

/* cell/snapshot. */

/* In the order of life. */
enum freezing_state {
	FREEZING_LAYER, /* its cell packs what it has changed of its base, where it has one */
	FREEZING_PACKS,   /* its cell packs the workspace */
	FREEZING_UNPACKS, /* the cell of the snapshot unpacks it */
	FREEZING_ROOT,    /* a process of the front unpacks the changes of the base */
};

struct freezing {
	struct engine_task task; /* first: they are one and the same */
	enum freezing_state state;
	struct engine_place place;   /* of the snapshot; all zero: it has gone */
	struct watch unpacked;       /* of that process */
	struct timer deadline;       /* of all steps together */
	double seconds;              /* until then */
	bool late;                   /* it has passed */
	bool is_unpacked;            /* it has ended */
	struct engine_snapshot made; /* texts of `told` and of the cell's session */
	struct value *told;          /* the answer; or NULL */
	char *name;
	int fd;                     /* of the tar */
	int layer;                  /* the tar of the changes of the base; -1: none */
	int64_t skipped, shortened; /* files that its cell could not pack, or not in whole */
};

static void freezing_free(struct engine_task *task)
{
	struct freezing *freezing = (struct freezing *)task;
	const struct engine_host *host = &task->engine->options.host;

	engine_task_fini(task);
	loop_remove_timer(&freezing->deadline);
	loop_remove(&freezing->unpacked);
	session_close(freezing->place.session);
	freezing->place.session = NULL;
	if (freezing->place.kept != NULL)
		(void)host->frozen(host->context, &freezing->place, NULL, NULL, NULL);
	value_free(freezing->told);
	fd_close(&freezing->fd);
	fd_close(&freezing->layer);
	free(freezing->name);
	free(freezing);
}

/* Start TOOL over the workspace of SESSION. */
static void freezing_call(struct freezing *freezing, struct session *session,
			  const struct tool *tool)
{
	auto_value struct value *arguments = value_new_object();
	struct request request = {.tool = tool->name,
				  .arguments = arguments,
				  .by_front = true};

	value_set_text(arguments, "path", session_workspace(session));
	if (freezing->state == FREEZING_UNPACKS) {
		value_set_boolean(arguments, "any_links", true);
	} else {
		value_set_integer(arguments, "most", TAR_MAX);
		value_set_boolean(arguments, "exact", true);
		value_set_boolean(arguments, "layer", freezing->state == FREEZING_LAYER);
	}
	(void)lseek(freezing->fd, 0, SEEK_SET);
	/* Borrowed: the call is over before the file goes. */
	request.fds[0] = freezing->state == FREEZING_LAYER ? freezing->layer : freezing->fd;
	request.fd_count = 1;
	running_free(freezing->task.running);
	freezing->task.over = false;
	freezing->task.running = session_start(session, &request, NULL, NULL);
}

static void refuse_name(struct caller *caller, const struct value *id, const struct err *err)
{
	const struct caller_fault fault = {
		.kind = err->code == EEXIST || err->code == EINVAL ? CALLER_USAGE
			: err->code == ECHILD                      ? CALLER_SET_UP
			: err->code == ENOSPC                      ? CALLER_LIMIT
								   : CALLER_UNAVAILABLE,
		.error = err->code,
	};

	caller_refuse(caller, id, &fault, "cell/snapshot: %s", err->text);
}

static void root_unpacked(struct watch *watch, short events)
{
	struct freezing *freezing = watch->context;

	(void)events;
	freezing->is_unpacked = true;
	loop_remove(watch);
}

/* Have the snapshot get its name, or wait until it can. */
static void freeze_settle(struct freezing *freezing)
{
	struct engine_task *task = &freezing->task;
	const struct engine_host *host = &task->engine->options.host;
	struct err err = {0};
	int waits = -1;

	task->over = true;
	if (!host->frozen(host->context, &freezing->place, &freezing->made, &waits, &err)) {
		refuse_name(task->caller, task->id, &err);
		return;
	}
	if (waits < 0) {
		caller_answer(task->caller, task->id, freezing->told);
		freezing->told = NULL;
		return;
	}
	task->over = false;
	freezing->state = FREEZING_ROOT;
	freezing->unpacked = (struct watch){.fd = waits,
					    .events = POLLIN,
					    .ready = root_unpacked,
					    .context = freezing};
	loop_add(task->engine->loop, &freezing->unpacked);
}

/* All files are in the folder of the snapshot, as RESULT tells. */
static void freeze_end(struct freezing *freezing, const struct tool_result *result)
{
	const struct value *details = result->details;
	struct value *told = value_new_object();
	struct buf word;

	freezing->made = (struct engine_snapshot){
		.entries = value_integer(value_member(details, "entries")),
		.bytes = value_integer(value_member(details, "bytes")),
		.layer = freezing->layer,
		.base = session_base(freezing->task.cell->place.session),
	};
	const char *digest = value_text(value_member(details, "digest"));
	buf_init(&word, PATH_MAX);
	(void)buf_addf(&word, "snapshot:%s", freezing->name);
	value_set_str(told, "snapshot", buf_str(&word));
	buf_fini(&word);
	value_set_text(told, "digest", digest != NULL ? digest : "");
	value_set_integer(told, "entries", freezing->made.entries);
	value_set_integer(told, "bytes", freezing->made.bytes);
	value_set_integer(told, "skipped", freezing->skipped);
	value_set_integer(told, "shortened", freezing->shortened);
	if (freezing->layer >= 0)
		value_set_text(told, "over", freezing->made.base->lasting);
	freezing->told = told;
	freezing->made.digest = value_text(value_member(told, "digest"));
	/* The result goes with its session. */
	running_free(freezing->task.running);
	freezing->task.running = NULL;
	session_close(freezing->place.session);
	freezing->place.session = NULL;
	freeze_settle(freezing);
}

/* The time is over: end the step that is under way. */
static void freezing_is_late(struct timer *timer)
{
	struct freezing *freezing = timer->context;

	freezing->late = true;
	if (freezing->task.running != NULL)
		running_cancel(freezing->task.running);
}

static void refuse_late(const struct freezing *freezing)
{
	const struct engine_task *task = &freezing->task;

	caller_refuse(task->caller, task->id,
		      &(struct caller_fault){.kind = CALLER_LIMIT,
					     .remedy = "name more seconds as `timeout_s`, or "
						       "freeze less"},
		      "cell/snapshot: it was not whole after %g s, and has been removed",
		      freezing->seconds);
}

/* The changes of the base are unpacked, or the call has to end before that. */
static void root_turn(struct freezing *freezing)
{
	struct engine_task *task = &freezing->task;
	const bool ends = task->cancelled || freezing->late;

	if ((!freezing->is_unpacked && !ends) || !caller_reads(task->caller))
		return;
	if (!ends) {
		freeze_settle(freezing);
		return;
	}
	task->over = true;
	if (freezing->late && !task->cancelled)
		refuse_late(freezing);
	else
		caller_refuse(task->caller, task->id,
			      &(struct caller_fault){.kind = CALLER_CANCELLED},
			      "cell/snapshot was cancelled");
}

static void freezing_turn(struct engine_task *task)
{
	struct freezing *freezing = (struct freezing *)task;
	const struct tool_result *result;

	if (freezing->state == FREEZING_ROOT) {
		root_turn(freezing);
		return;
	}
	result = running_result(task->running);
	if (!running_is_done(task->running) || !caller_reads(task->caller))
		return;
	task->over = true;
	if (freezing->late && !task->cancelled) {
		refuse_late(freezing);
	} else if (result->status != RESULT_DONE || task->cancelled) {
		engine_refuse_result(task->caller, task->cell, task->id, task->cancelled,
				     result, "cell/snapshot");
	} else if (audit_quarantined(result)) {
		refuse_quarantined(task, "cell/snapshot", result);
	} else if (freezing->state != FREEZING_UNPACKS) {
		freezing->skipped +=
			value_integer(value_member(result->details, "skipped"));
		freezing->shortened +=
			value_integer(value_member(result->details, "shortened"));
		freezing->state++;
		if (freezing->state == FREEZING_PACKS)
			freezing_call(freezing, task->cell->place.session, &tree_get_tool);
		else
			freezing_call(freezing, freezing->place.session, &tree_put_tool);
	} else {
		freeze_end(freezing, result);
	}
}

static const struct row snapshot_params[] = {
	ENGINE_ROW_CELL,
	{"name", ROW_BYTES, true, "the name of the snapshot, which is free", .min = 1,
	 .max = ENGINE_NAME},
	{"timeout_s", ROW_SECONDS, false, "when it is given up, if it is not whole",
	 .min = 0.001, .max = ENGINE_SECONDS},
	{0},
};

static void take_snapshot(const struct engine_request *request)
{
	struct engine *engine = request->engine;
	const struct engine_host *host = &engine->options.host;
	const char *name = value_text(value_member(request->params, "name"));
	const struct value *asked = value_member(request->params, "timeout_s");
	struct session *session = request->cell->place.session;
	struct freezing *freezing;
	struct engine_place place = {0};
	const bool has_base = session_base(session)->word != NULL;
	struct err err = {0};
	int fd, layer = -1;

	if (request->cell->tasks > 0) {
		caller_refuse(request->caller, request->id,
			      &(struct caller_fault){.kind = CALLER_BUSY},
			      "cell/snapshot: %zu calls are under way in cell %s; wait for them",
			      request->cell->tasks, request->cell->name);
		return;
	}
	if (!engine_has_room(request, 0))
		return;
	fd = open_nameless();
	if (fd >= 0 && has_base)
		layer = open_nameless();
	if (fd < 0 || (has_base && layer < 0)) {
		(void)err_set(&err, ENOSPC,
			      "a temporary file: %s; name another folder in TMPDIR",
			      strerror(errno));
		fd_close(&fd);
		refuse_name(request->caller, request->id, &err);
		return;
	}
	if (!host->freeze(host->context, name, session_workspace(session), engine->loop,
			  &place, &err)) {
		fd_close(&fd);
		fd_close(&layer);
		refuse_name(request->caller, request->id, &err);
		return;
	}
	freezing = memory_alloc(sizeof(*freezing));
	freezing->fd = fd;
	freezing->place = place;
	freezing->name = memory_copy(name);
	freezing->task.turn = freezing_turn;
	freezing->task.free = freezing_free;
	freezing->layer = layer;
	freezing->seconds = asked != NULL ? value_number(asked) : SNAPSHOT_S;
	freezing->deadline = (struct timer){.due_ms = clock_now_ms() +
						      (int64_t)(freezing->seconds * 1000),
					    .due = freezing_is_late,
					    .context = freezing};
	loop_add_timer(engine->loop, &freezing->deadline);
	freezing->state = layer >= 0 ? FREEZING_LAYER : FREEZING_PACKS;
	engine_add_task(&freezing->task, request, request->id);
	freezing_call(freezing, session, &tree_get_tool);
}

const struct engine_method engine_trees[] = {
	{"tree/put", put_params, put_tree},
	{"tree/get", get_params, get_tree},
	{"tree/drop", drop_params, drop_tree},
	{"cell/snapshot", snapshot_params, take_snapshot},
	{0},
};
