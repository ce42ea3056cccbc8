/*
 * restore: the front's own tool behind `glovebox undo`. fds: a log, and the log of the
 * undo itself. The first log names for each path the content that it should hold now
 * (`before`) and the content that it shall hold (`after`, with contents in the same log).
 * All paths are compared first: when somebody has changed a file since, no file is
 * touched. Files that cannot be restored are found in the same comparison. They are left
 * as they are and named, and all other files are restored.
 */

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "files/files.h"
#include "process/follow.h"
#include "tool/call.h"
#include "tools/looks/checkpoint.h"
#include "tools/tools.h"
#include "undo/list.h"
#include "undo/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FD_PLAN,
	FD_LOG,
	NAMES_MAX = 20,   /* most paths listed with a reason */
	FILES_MAX = 1000, /* most paths of each kind listed without a reason */
	TELL_EVERY = 64,  /* paths between two looks at the clock */
	TELL_MS = 200,
};
#define TELL_COMPARING "comparing"
#define TELL_RESTORING "restoring"

static const struct row restore_params[] = {
	{"log", ROW_ID, true, "Number of the log", .max = UINT32_MAX},
	{"look", ROW_FLAG, false, "Only compare", .initial = "false"},
	{"more", ROW_FLAG, false, "A later call goes on with it", .initial = "false"},
	{"spare", ROW_FLAG, false,
	 "Leave what somebody has changed since, and undo the rest", .initial = "false"},
	{0},
};

struct path_plan {
	struct undo_state expected, target, now;
	bool skipped;
	mode_t set_ids;     /* set-id bits that TARGET had, which a cell cannot set */
	const char *became; /* the future state of a path that is no folder; or NULL */
};

#define RESTORED "restored"
#define REMOVED  "removed"

struct restoring {
	struct call *call;
	struct tool_result *result;
	struct undo_list paths; /* sorted; the states are not used */
	struct path_plan *plans;
	struct undo_log log;
	struct undo_places *places;
	int64_t told_ms; /* when the last progress was sent */
	struct walk_start workspace;
	bool spares;           /* what somebody has changed since is left */
	bool takes_repository; /* the step made the repository, so undo removes it */
	/*
	 * git's objects in the repository that were added later, each folder before its
	 * content
	 */
	struct undo_list objects;
	struct value *conflicts, *left;
	size_t left_count; /* of paths, which are not all named in LEFT */
	size_t already, folders;
};

static bool take_change(void *context, const struct undo_change *change)
{
	struct restoring *restoring = context;
	size_t at = restoring->paths.count;

	if (!undo_list_add(&restoring->paths, change->path, &undo_absent))
		return false;
	restoring->plans = memory_more(restoring->plans, at, sizeof(*restoring->plans));
	restoring->plans[at] =
		(struct path_plan){.expected = change->before, .target = change->after};
	if (change->after.kind == UNDO_FILE) {
		restoring->plans[at].set_ids = change->after.mode & (S_ISUID | S_ISGID);
		restoring->plans[at].target.mode &= ~restoring->plans[at].set_ids;
	}
	restoring->takes_repository |= str_is(change->path, UNDO_GIT) &&
				       change->before.kind == UNDO_FOLDER &&
				       change->after.kind == UNDO_ABSENT;
	return true;
}

static void note(struct value *list, const char *path, const char *why)
{
	if (value_count(list) >= NAMES_MAX)
		return;
	struct buf text;
	buf_init(&text, 8 << 10);
	text_add_name(&text, str_of(path));
	(void)buf_addf(&text, " (%s)", why);
	value_append(list, value_new_str(buf_str(&text)));
	buf_fini(&text);
}

static void note_left(struct restoring *restoring, const char *path, const char *why)
{
	restoring->left_count++;
	note(restoring->left, path, why);
}

/* Of a folder only its existence counts: undo makes folders and removes empty ones. */
static bool is_as(const struct undo_state *now, const struct undo_state *wanted)
{
	if (wanted->kind == UNDO_FOLDER)
		return now->kind == UNDO_FOLDER;
	return undo_state_same(now, wanted);
}

/* An earlier undo that was killed may have made or removed the folder. */
static bool is_done_folder(const struct path_plan *plan)
{
	return plan->expected.kind == UNDO_FOLDER
		       ? plan->now.kind == UNDO_ABSENT
		       : plan->target.kind == UNDO_FOLDER && plan->now.kind == UNDO_FOLDER;
}

/*
 * Without git's index the rest of the undo is still right; only the staged state differs.
 */
static bool may_be_left(const struct restoring *restoring, const char *path)
{
	return strcmp(path, UNDO_GIT_INDEX) == 0 && !restoring->takes_repository;
}

/*
 * When the repository is removed, its index must have the same entries; git may have
 * written them anew.
 */
static bool says_the_same(const struct restoring *restoring, const char *path,
			  const struct undo_state *expected)
{
	uint8_t digest[HASH_BYTES];

	if (strcmp(path, UNDO_GIT_INDEX) != 0 || !restoring->takes_repository ||
	    expected->object_size != HASH_BYTES)
		return false;
	auto_close int index = fd_open_beneath(restoring->workspace.fd, path, O_RDONLY);
	return index >= 0 && tracked_index_says(index, digest) &&
	       memcmp(digest, expected->object, HASH_BYTES) == 0;
}

#define OTHER_MODE  "has other permissions since"
#define HOLDS_OTHER "holds something else"
#define NEITHER     "is neither a file nor a folder now"

/* Has the folder its future permissions, or those of an undo that was killed in it? */
static bool is_put(const struct path_plan *plan)
{
	struct undo_state opened = plan->target;

	opened.mode |= S_IRWXU;
	return undo_state_same(&plan->now, &plan->target) ||
	       undo_state_same(&plan->now, &opened);
}

/* Is it the same file, with the same size, written at the same time? */
static bool is_same_file(const struct undo_state *now, const struct undo_state *left)
{
	return now->kind == UNDO_FILE && left->kind == UNDO_FILE && left->inode != 0 &&
	       now->inode == left->inode && now->size == left->size &&
	       now->mtime_ns == left->mtime_ns;
}

/*
 * Is it the file that the step left, although its owner may not read it? No program can set
 * the change time of a file, so a file with this time has not changed since.
 */
static bool is_closed_file(const struct path_plan *plan)
{
	return !plan->now.hashed && is_same_file(&plan->now, &plan->expected) &&
	       plan->now.mode == plan->expected.mode &&
	       plan->now.ctime_ns == plan->expected.ctime_ns;
}

/* Has an undo that was killed left such a file readable by its owner? */
static bool is_opened_file(const struct path_plan *plan)
{
	struct undo_state opened = plan->expected;

	opened.mode |= S_IRUSR;
	return opened.mode != plan->expected.mode && plan->now.mode == opened.mode &&
	       (undo_state_same(&plan->now, &opened) ||
		is_same_file(&plan->now, &plan->expected));
}

/* Fill `now`. A file that its owner may not read is read only if nothing else tells. */
static bool look(struct restoring *restoring, const char *path, struct path_plan *plan,
		 struct err *err)
{
	if (undo_places_look(restoring->places, path, &plan->now, NULL, err))
		return true;
	return err->code == EACCES && plan->now.kind == UNDO_FILE &&
	       (is_closed_file(plan) ||
		undo_places_read(restoring->places, path, &plan->now, err));
}

/* Has somebody changed the path since? */
static bool is_changed(const struct restoring *restoring, const char *path,
		       const struct path_plan *plan)
{
	return !is_as(&plan->now, &plan->expected) && !is_closed_file(plan) &&
	       !is_opened_file(plan) && !is_done_folder(plan) &&
	       !says_the_same(restoring, path, &plan->expected);
}

/*
 * A path cannot be made if a name above it is a file or a link, unless the undo removes that
 * file or link first. *LEFT: the undo would do so, but leaves it as it is.
 */
static bool is_in_the_way(const struct restoring *restoring, const char *path,
			  const struct path_plan *plan, bool *left)
{
	const size_t size = plan->now.kind == UNDO_ABSENT && plan->target.kind != UNDO_ABSENT
				    ? undo_places_blocked(restoring->places, path)
				    : 0;
	auto_free char *above = memory_copy_str((struct str){path, size});
	const struct undo_row *row =
		size > 0 ? undo_list_find(&restoring->paths, str_of(above)) : NULL;
	const struct path_plan *other =
		row != NULL ? &restoring->plans[row - restoring->paths.rows] : NULL;
	const bool goes = other != NULL && (other->target.kind == UNDO_FOLDER ||
					    other->target.kind == UNDO_ABSENT);

	*left = goes && other->skipped;
	return size > 0 && (!goes || other->skipped);
}

/* The undo leaves the path as it is. */
static void leave(struct restoring *restoring, const char *path, struct path_plan *plan,
		  const char *why)
{
	plan->skipped = true;
	note_left(restoring, path, why);
}

/*
 * Somebody has changed the path since. True: it is left, and the rest is undone. False: nothing is.
 */
static bool is_spared(struct restoring *restoring, const char *path,
		      struct path_plan *plan, const char *why)
{
	if (restoring->spares) {
		leave(restoring, path, plan, why);
		return true;
	}
	plan->skipped = true;
	note(restoring->conflicts, path, why);
	return false;
}

/* Has a path that is no folder its future state, with set-id bits or without them? */
static bool is_already(const struct path_plan *plan)
{
	struct undo_state whole = plan->target;

	whole.mode |= plan->set_ids;
	return plan->target.kind != UNDO_FOLDER &&
	       (undo_state_same(&plan->now, &plan->target) ||
		undo_state_same(&plan->now, &whole));
}

/* The file has its future state, except for its set-id bits. */
static void note_set_ids(struct restoring *restoring, const char *path,
			 const struct path_plan *plan)
{
	if (plan->set_ids != 0 && (!plan->skipped || plan->now.mode == plan->target.mode))
		note_left(restoring, path, "its set-id bits cannot be set from a cell");
}

/* True: nobody has changed the path since. Paths above it were compared before. */
static bool compare(struct restoring *restoring, const char *path, struct path_plan *plan)
{
	struct err err = {0};
	const char *why = NULL;
	bool left = false;

	if (!look(restoring, path, plan, &err)) {
		/* A pipe, a socket or a device is in no step, so the step may have made it. */
		if (err.code == ENXIO && plan->expected.kind == UNDO_ABSENT) {
			leave(restoring, path, plan, NEITHER);
			return true;
		}
		why = err.code == ENXIO ? NEITHER : err.text;
	} else if (is_already(plan)) {
		plan->skipped = ++restoring->already > 0;
		note_set_ids(restoring, path, plan);
	} else {
		why = undo_places_refuse(restoring->places, path, &plan->now, &plan->target);
		if (why != NULL) {
			leave(restoring, path, plan, why);
			return true;
		}
		if (is_changed(restoring, path, plan))
			why = plan->now.kind == UNDO_ABSENT ? "is not there any more"
			      : plan->expected.kind == UNDO_ABSENT ? "is there again"
								   : "has changed since";
		else if (is_in_the_way(restoring, path, plan, &left))
			why = "a file or link has taken the place of its folder";
	}
	if (why == NULL && plan->now.kind == UNDO_ABSENT && plan->target.kind == UNDO_ABSENT)
		plan->skipped = true;
	if (why == NULL)
		return true;
	if (left || may_be_left(restoring, path)) {
		leave(restoring, path, plan, why);
		return true;
	}
	return is_spared(restoring, path, plan, why);
}

/* Of a folder whose permissions the step has changed: what somebody did since; or NULL. */
static const char *why_folder_stays(const struct path_plan *plan)
{
	if (plan->target.kind != UNDO_FOLDER || plan->expected.kind != UNDO_FOLDER)
		return NULL;
	if (plan->now.kind != UNDO_FOLDER)
		return "is not there any more";
	return undo_state_same(&plan->now, &plan->expected) || is_put(plan) ? NULL
									    : OTHER_MODE;
}

/* A cell cannot set the set-id bits of a folder, and somebody else's folder not at all. */
static void note_folder(struct restoring *restoring, const char *path,
			const struct path_plan *plan)
{
	struct undo_state now;
	struct err err;

	/* A folder that is open as long as the undo works in it has its future mode here. */
	if (plan->target.kind != UNDO_FOLDER ||
	    (undo_places_look(restoring->places, path, &now, NULL, &err) &&
	     undo_state_same(&now, &plan->target)))
		restoring->folders += !record_is_gits(str_of(path));
	else
		note_left(restoring, path, "its permissions cannot be set from a cell");
}

static bool put(struct restoring *restoring, size_t at, struct err *err)
{
	struct path_plan *plan = &restoring->plans[at];
	const char *path = restoring->paths.rows[at].path.data;
	bool left;

	/* An earlier path may have made this folder, or emptied it. */
	if (plan->target.kind == UNDO_FOLDER || plan->now.kind == UNDO_FOLDER ||
	    plan->expected.kind == UNDO_FOLDER) {
		if (!undo_places_look(restoring->places, path, &plan->now, NULL, err))
			return false;
		if (undo_state_same(&plan->now, &plan->target))
			return true;
		const char *why = why_folder_stays(plan);
		if (why != NULL) {
			note_left(restoring, path, why);
			return true;
		}
	}
	if (!undo_places_put(restoring->places, path, &plan->now, &plan->target, &left, err))
		return false;
	if (left)
		note_left(restoring, path, HOLDS_OTHER);
	else if (plan->target.kind == UNDO_FILE || plan->target.kind == UNDO_LINK)
		plan->became = RESTORED;
	else if (plan->now.kind == UNDO_FILE || plan->now.kind == UNDO_LINK)
		plan->became = REMOVED;
	else
		note_folder(restoring, path, plan);
	if (!left)
		note_set_ids(restoring, path, plan);
	return true;
}

static bool remove_objects(struct restoring *restoring, struct err *err)
{
	struct undo_state now;
	bool fine = true, left;

	for (size_t i = restoring->objects.count; fine && i-- > 0;) {
		const char *path = restoring->objects.rows[i].path.data;

		fine = undo_places_look(restoring->places, path, &now, NULL, err) &&
		       undo_places_put(restoring->places, path, &now, &undo_absent, &left,
				       err);
	}
	return fine;
}

/* Report progress for a person who may be waiting: DONE of all paths are done. */
static void tell_progress(struct restoring *restoring, size_t done, const char *what)
{
	if (done % TELL_EVERY != 0 || clock_now_ms() - restoring->told_ms < TELL_MS)
		return;
	restoring->told_ms = clock_now_ms();
	call_progress(restoring->call, (double)done, (double)restoring->paths.count, what);
}

/*
 * First remove paths, the deepest first; then make paths, folders before their content.
 */
static bool put_all(struct restoring *restoring, struct err *err)
{
	size_t done = 0;

	if (!remove_objects(restoring, err))
		return false;
	for (size_t i = restoring->paths.count; i-- > 0;) {
		const struct path_plan *plan = &restoring->plans[i];
		if (plan->target.kind != UNDO_ABSENT)
			continue;
		tell_progress(restoring, ++done, TELL_RESTORING);
		if (!plan->skipped && !put(restoring, i, err))
			return false;
	}
	for (size_t i = 0; i < restoring->paths.count; i++) {
		const struct path_plan *plan = &restoring->plans[i];
		if (plan->target.kind == UNDO_ABSENT)
			continue;
		tell_progress(restoring, ++done, TELL_RESTORING);
		if (!plan->skipped && !put(restoring, i, err))
			return false;
	}
	return undo_places_settle(restoring->places, err);
}

static enum result_status refuse(struct restoring *restoring)
{
	struct tool_result *result = restoring->result;

	(void)buf_adds(&result->text, "Nothing was undone, because since then:\n");
	for (size_t i = 0; i < value_count(restoring->conflicts); i++)
		(void)buf_addf(&result->text, "  %s\n",
			       value_text(value_item(restoring->conflicts, i)));
	value_set(tool_details(result), "conflicts", value_ref(restoring->conflicts));
	return tool_fail(result,
			 "Undo restores a file only when it still holds what the step "
			 "left in it. Undo later steps first, or put these aside.");
}

/* Add the paths with the state BECAME to FILES, in order. Returns how many there are. */
static int64_t tell_files(const struct restoring *restoring, const char *became,
			  struct value *files)
{
	int64_t count = 0;

	for (size_t i = 0; i < restoring->paths.count; i++) {
		const char *own = restoring->plans[i].became;

		if (own == NULL || strcmp(own, became) != 0 || ++count > FILES_MAX)
			continue;
		struct value *file = value_new_object();
		struct buf name;
		buf_init(&name, 8 << 10);
		text_add_name(&name, restoring->paths.rows[i].path);
		value_set_str(file, "path", buf_str(&name));
		value_set_text(file, "became", became);
		value_append(files, file);
		buf_fini(&name);
	}
	return count;
}

/* Say how many paths were left that have no line of their own. */
static void add_unnamed(struct restoring *restoring)
{
	struct buf text;

	if (restoring->left_count <= value_count(restoring->left))
		return;
	buf_init(&text, 64);
	(void)buf_addf(&text, "%zu more",
		       restoring->left_count - value_count(restoring->left));
	value_append(restoring->left, value_new_str(buf_str(&text)));
	buf_fini(&text);
}

/* The front makes a sentence of the result, because it may have made several calls. */
static enum result_status answer(struct restoring *restoring)
{
	struct value *details = tool_details(restoring->result);

	struct value *files = value_new_array();

	value_set_integer(details, RESTORED, tell_files(restoring, RESTORED, files));
	value_set_integer(details, REMOVED, tell_files(restoring, REMOVED, files));
	value_set_integer(details, "folders", (int64_t)restoring->folders);
	value_set_integer(details, "already", (int64_t)restoring->already);
	value_set(details, "files", files);
	add_unnamed(restoring);
	value_set(details, "left", value_ref(restoring->left));
	return tool_done(restoring->result);
}

static bool look_for_others(struct restoring *restoring, int folder, struct str path);

static bool look_for_other(struct restoring *restoring, int folder, struct str above,
			   const char *name)
{
	char path[PATH_MAX];
	const int size =
		snprintf(path, sizeof(path), "%.*s/%s", (int)above.size, above.data, name);
	const struct str whole = {path, (size_t)size};
	const char *object;

	if (size >= (int)sizeof(path))
		return false;
	if (undo_list_find(&restoring->paths, whole) == NULL &&
	    !(tracked_is_object(whole, &object) &&
	      undo_list_add(&restoring->objects, whole, &undo_absent))) {
		note(restoring->conflicts, path, "has come");
		return false;
	}
	auto_close int below = fd_open_beneath(folder, name, O_RDONLY | O_DIRECTORY);
	return below < 0 || look_for_others(restoring, below, whole);
}

/*
 * Does the repository that will be removed have only its own files and objects? Objects
 * that later steps made stay when these steps are undone; nothing refers to them when
 * everything else is as it was.
 */
static bool look_for_others(struct restoring *restoring, int folder, struct str path)
{
	DIR *names = fd_open_names(folder);
	bool fine = names != NULL;

	if (names == NULL)
		return false;
	for (const struct dirent *at = readdir(names); at != NULL; at = readdir(names)) {
		if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
			fine = look_for_other(restoring, folder, path, at->d_name) && fine;
	}
	(void)closedir(names);
	return fine;
}

static bool is_alone_in_repository(struct restoring *restoring)
{
	if (!restoring->takes_repository)
		return true;
	auto_close int git =
		fd_open_beneath(restoring->workspace.fd, UNDO_GIT, O_RDONLY | O_DIRECTORY);
	return git < 0 || look_for_others(restoring, git, STR(UNDO_GIT));
}

enum emptied { EMPTIED, HOLDS_LEFT, HOLDS_UNKNOWN };

/* Will the folder of the row AT be empty when all paths in it are removed? */
static enum emptied look_into(const struct restoring *restoring, size_t at)
{
	const char *path = restoring->paths.rows[at].path.data;
	char whole[PATH_MAX];
	struct file folder;
	struct err err;

	file_init(&folder);
	DIR *names = files_reach(restoring->call->files, path, FILES_FOLDER, &folder, &err)
			     ? fd_open_names(folder.fd)
			     : NULL;
	enum emptied found = names != NULL ? EMPTIED : HOLDS_UNKNOWN;

	for (const struct dirent *name = names != NULL ? readdir(names) : NULL;
	     name != NULL && found != HOLDS_UNKNOWN; name = readdir(names)) {
		if (strcmp(name->d_name, ".") == 0 || strcmp(name->d_name, "..") == 0)
			continue;
		const int size =
			snprintf(whole, sizeof(whole), "%s/%s", path, name->d_name);
		const struct undo_row *row =
			size < (int)sizeof(whole)
				? undo_list_find(&restoring->paths, str_of(whole))
				: NULL;
		const struct path_plan *plan =
			row != NULL ? &restoring->plans[row - restoring->paths.rows] : NULL;
		if (plan == NULL)
			found = HOLDS_UNKNOWN;
		else if (plan->skipped)
			found = HOLDS_LEFT;
	}
	if (names != NULL)
		(void)closedir(names);
	file_fini(&folder);
	return found;
}

/* The same for all folders of the step in the folder of the row AT. */
static enum emptied look_below(const struct restoring *restoring, size_t at)
{
	const struct undo_list *paths = &restoring->paths;
	enum emptied found = look_into(restoring, at);
	char below[PATH_MAX + 1];
	const int size = snprintf(below, sizeof(below), "%s/", paths->rows[at].path.data);
	const struct str prefix = {below, (size_t)size};

	for (size_t i = undo_list_at(paths, prefix);
	     i < paths->count && str_starts(paths->rows[i].path, prefix); i++) {
		const enum emptied deeper = restoring->plans[i].now.kind == UNDO_FOLDER
						    ? look_into(restoring, i)
						    : EMPTIED;
		found = deeper > found ? deeper : found;
	}
	return found;
}

/*
 * A folder that becomes a file again must be empty by then. The deepest of these folders
 * come first, because one that is left fills the folders above it.
 */
static bool compare_emptied(struct restoring *restoring)
{
	bool fine = true;

	for (size_t i = restoring->paths.count; i-- > 0;) {
		struct path_plan *plan = &restoring->plans[i];
		const char *path = restoring->paths.rows[i].path.data;

		if (plan->skipped || plan->now.kind != UNDO_FOLDER ||
		    (plan->target.kind != UNDO_FILE && plan->target.kind != UNDO_LINK))
			continue;
		const enum emptied found = look_below(restoring, i);
		if (found == HOLDS_LEFT)
			leave(restoring, path, plan, HOLDS_OTHER);
		if (found != HOLDS_UNKNOWN)
			continue;
		fine = is_spared(restoring, path, plan, HOLDS_OTHER) && fine;
	}
	return fine;
}

static bool compare_all(struct restoring *restoring)
{
	bool fine = is_alone_in_repository(restoring);

	for (size_t i = 0; i < restoring->paths.count; i++) {
		tell_progress(restoring, i, TELL_COMPARING);
		fine = compare(restoring, restoring->paths.rows[i].path.data,
			       &restoring->plans[i]) &&
		       fine;
	}
	return compare_emptied(restoring) && fine;
}

static enum result_status restore_execute(struct call *call, struct tool_result *result)
{
	struct restoring restoring = {
		.call = call,
		.result = result,
		.workspace = {.fd = -1},
		.conflicts = value_new_array(),
		.left = value_new_array(),
		.spares = call_flag(call, "spare"),
	};
	struct undo_reader reader = {.change = take_change, .context = &restoring};
	struct err err = {0};

	undo_list_init(&restoring.paths);
	undo_list_init(&restoring.objects);
	undo_log_begin(&restoring.log, call->fds[FD_LOG],
		       (uint32_t)call_count(call, "log", 0));
	restoring.places = undo_places_new(call->files, call->fds[FD_PLAN], &restoring.log);
	if (!undo_log_read(&reader, call->fds[FD_PLAN], &err) ||
	    (restoring.takes_repository &&
	     !walk_start_open(&restoring.workspace, call, ".", &err)))
		(void)tool_fail(result, "%s", err.text);
	else if (!compare_all(&restoring))
		(void)refuse(&restoring);
	else if (call_flag(call, "look"))
		(void)tool_done(result);
	else if (!put_all(&restoring, &err) ||
		 (!call_flag(call, "more") && !undo_log_end(&restoring.log, &err)))
		(void)tool_fail(result,
				"%s. The undo is not finished: run it again and it "
				"goes on.",
				err.text);
	else
		(void)answer(&restoring);
	undo_places_free(restoring.places);
	walk_start_fini(&restoring.workspace);
	undo_list_fini(&restoring.paths);
	undo_list_fini(&restoring.objects);
	free(restoring.plans);
	value_free(restoring.conflicts);
	value_free(restoring.left);
	return result->status;
}

const struct tool restore_tool = {
	.name = "restore",
	.description = "Make files hold what they held before a step.",
	.example = "{\"log\": 1}",
	.params = restore_params,
	.effects = EFFECT_WRITES,
	.timeout_s = 3600, /* a removed tree of two million files on a slow disk */
	.internal = true,
	.plain = true,
	.execute = restore_execute,
};

/*
 * The front's own tool that gets contents out of git, for undo and for patches. fds: a
 * log whose changes name the wanted objects in `after`, the log that takes the contents,
 * and a file for git's output. A content counts when it has the size that the file had.
 * Where filters are set, git is asked for the content once more with the filters.
 */

enum {
	FD_WANTED,
	FD_FETCHED,
	FD_PRINTED,
	HEAD_MAX = 256, /* "<name> blob <size>" */
	BLOB_MAX = 64 << 20,
	WANTED_BYTES_MAX = 256 << 20,
};

static const struct row git_contents_params[] = {
	{"log", ROW_ID, true, "Number of the log", .max = UINT32_MAX},
	{0},
};

struct fetching {
	struct call *call;
	/* with the state IN_GIT; with the state LOGGED when the contents are here */
	struct undo_list wanted;
	struct undo_log log;
	bool filters;
	uint64_t at; /* the position in git's output */
};

static bool take_wanted(void *context, const struct undo_change *change)
{
	struct fetching *fetching = context;

	return change->after.source != UNDO_IN_GIT ||
	       undo_list_add(&fetching->wanted, change->path, &change->after);
}

static bool is_wanted(const struct undo_row *row)
{
	return row->state.source == UNDO_IN_GIT;
}

static void add_object(const struct undo_state *state, struct buf *out)
{
	for (size_t i = 0; i < state->object_size; i++)
		(void)buf_addf(out, "%02x", state->object[i]);
}

/* Can ROW be asked for with filters? A name with a line end cannot. */
static bool is_askable(const struct fetching *fetching, const struct undo_row *row)
{
	return is_wanted(row) &&
	       (!fetching->filters || strchr(row->path.data, '\n') == NULL);
}

static bool run_git(struct fetching *fetching, int input, struct err *err)
{
	static const char *const plain[] = {"git",      "--no-replace-objects",
					    "cat-file", "--batch",
					    "--buffer", NULL};
	static const char *const filtered[] = {"git",      "--no-replace-objects",
					       "cat-file", "--batch",
					       "--buffer", "--filters",
					       NULL};
	struct program_run run;

	program_run_init(&run);
	run.start.argv = fetching->filters ? filtered : plain;
	run.start.environment = fetching->call->environment;
	run.start.folder = fetching->call->workspace;
	run.start.terms = fetching->call->terms;
	run.start.fds[0] = input;
	auto_close int printed = fcntl(fetching->call->fds[FD_PRINTED], F_DUPFD_CLOEXEC, 3);
	run.start.fds[1] = printed;
	run.deadline_ms = fetching->call->deadline_ms;
	run.stop_fd = -1;
	bool fine = follow_program(&run, err);
	if (fine && run.exit_code != 0 && !fetching->filters) {
		struct buf text;
		buf_init(&text, 4 << 10);
		program_output_text(&run.error, &text);
		fine = err_set(err, EIO, "git cat-file: %s", str_trim(buf_str(&text)).data);
		buf_fini(&text);
	}
	program_run_fini(&run);
	return fine;
}

static bool ask(struct fetching *fetching, struct err *err)
{
	auto_close int input = -1;
	struct buf text;
	size_t count = 0;

	buf_init(&text, WANTED_BYTES_MAX);
	for (size_t i = 0; i < fetching->wanted.count; i++) {
		const struct undo_row *row = &fetching->wanted.rows[i];
		if (!is_askable(fetching, row))
			continue;
		add_object(&row->state, &text);
		if (fetching->filters)
			(void)buf_addf(&text, " %s", row->path.data);
		(void)buf_addc(&text, '\n');
		count++;
	}
	fetching->at = 0;
	bool fine =
		count == 0 || (fd_memory_file("objects", buf_str(&text), &input, err) &&
			       ftruncate(fetching->call->fds[FD_PRINTED], 0) == 0 &&
			       lseek(fetching->call->fds[FD_PRINTED], 0, SEEK_SET) == 0 &&
			       run_git(fetching, input, err));
	buf_fini(&text);
	return fine;
}

/* Read the head of the next object. FOUND is false at the end. */
static bool next_head(struct fetching *fetching, bool *found, uint64_t *size)
{
	char head[HEAD_MAX + 1];
	ssize_t n = pread(fetching->call->fds[FD_PRINTED], head, HEAD_MAX,
			  (off_t)fetching->at);
	char *end = n > 0 ? memchr(head, '\n', (size_t)n) : NULL;

	if (end == NULL)
		return false;
	*end = '\0';
	const char *blob = strstr(head, " blob ");
	*found = blob != NULL;
	*size = *found ? strtoull(blob + strlen(" blob "), NULL, 10) : 0;
	fetching->at += (uint64_t)(end - head) + 1;
	return true;
}

/* Without filters the content must be that very object; filters may change it. */
static bool is_object(const struct fetching *fetching, const struct undo_state *wanted)
{
	uint8_t digest[HASH_BYTES];
	struct buf content;
	bool same = true;

	if (fetching->filters || wanted->size > BLOB_MAX)
		return true;
	buf_init(&content, BLOB_MAX);
	same = undo_log_content(fetching->call->fds[FD_PRINTED], fetching->at,
				wanted->size, &content, NULL);
	hash_git_blob(buf_str(&content), wanted->object_size == 32, digest);
	same = same && memcmp(digest, wanted->object, wanted->object_size) == 0;
	buf_fini(&content);
	return same;
}

static bool take_one(struct fetching *fetching, struct undo_row *row, struct err *err)
{
	struct undo_state kept = row->state;
	struct undo_state state;
	uint64_t size;
	bool found;

	if (!next_head(fetching, &found, &size))
		/* git ended early, and the front reports the missing contents */
		return true;
	if (!found)
		return true;
	kept.offset = fetching->at;
	kept.extra = 0;
	bool fits = size == row->state.size && is_object(fetching, &row->state);
	fetching->at += size + 1;
	if (!fits)
		return true;
	if (!undo_log_copy(&fetching->log, fetching->call->fds[FD_PRINTED], &kept, &state,
			   err))
		/* the content differs from the file's old one */
		return err->code == EINVAL;
	row->state = state;
	return undo_log_change(&fetching->log, row->path, &undo_absent, &state, err);
}

static bool fetch(struct fetching *fetching, struct err *err)
{
	if (!ask(fetching, err))
		return false;
	for (size_t i = 0; i < fetching->wanted.count; i++) {
		if (is_askable(fetching, &fetching->wanted.rows[i]) &&
		    !take_one(fetching, &fetching->wanted.rows[i], err))
			return false;
	}
	return true;
}

static enum result_status git_contents_execute(struct call *call, struct tool_result *result)
{
	struct fetching fetching = {.call = call};
	struct undo_reader reader = {.change = take_wanted, .context = &fetching};
	struct err err = {0};

	undo_list_init(&fetching.wanted);
	undo_log_begin(&fetching.log, call->fds[FD_FETCHED],
		       (uint32_t)call_count(call, "log", 0));
	bool fine = undo_log_read(&reader, call->fds[FD_WANTED], &err) &&
		    fetch(&fetching, &err);
	fetching.filters = true;
	fine = fine && fetch(&fetching, &err) && undo_log_end(&fetching.log, &err);
	undo_list_fini(&fetching.wanted);
	return fine ? tool_done(result) : tool_fail(result, "%s", err.text);
}

const struct tool git_contents_tool = {
	.name = "git_contents",
	.description = "Get contents out of git.",
	.example = "{\"log\": 1}",
	.params = git_contents_params,
	.effects = EFFECT_RUNS,
	.timeout_s = 300,
	.internal = true,
	.plain = true,
	.execute = git_contents_execute,
};
