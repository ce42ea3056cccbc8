/*
 * land: the front's own tool behind `glovebox review` and `glovebox land`. It compares a
 * layer (view/review.h) with the workspace, and puts what the layer holds there. The tool
 * `read_layer` only compares. fds: the log of the layer, a file for the report, one for the
 * diff, the choices of the user (compare.h), and the log of the step.
 *
 * Everything is compared before anything is written, and a conflict stops all of it, unless
 * the rest is wanted: then the files in conflict and all commits stay in the layer. Files
 * are written by undo/place.h: each one is old or new at every moment, and the log of the
 * step tells what was there before. New names come first, and old names go last, so that a
 * killed landing has lost nothing; the next one finds what is there already.
 */

#include "base/fd.h"
#include "base/hash.h"
#include "base/memory.h"
#include "files/files.h"
#include "files/rights.h"
#include "tool/call.h"
#include "tools/review/commits.h"
#include "tools/review/compare.h"
#include "tools/review/report.h"
#include "tools/tools.h"
#include "undo/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FD_CHANGES,
	FD_REPORT,
	FD_DIFF,
	FD_CHOICES,
	FD_LOG, /* the last one (session/left.c); of `land` alone */
	REPORT_BYTES_MAX = 256 << 20,
	LEFT_MAX = 20, /* most paths that are named because they stay */
	NANOSECONDS_IN_MS = 1000000,
};

static const struct row tree_rows[] = {
	{"path", ROW_BYTES, true, "The tree", .max = 4096},
	{"layer", ROW_BYTES, true, "The upper folder of its layer", .max = 4096},
	{"list", ROW_BYTES, false, "The list, where that folder is a copy", .max = 4096},
	{0},
};

static const struct row land_params[] = {
	{"log", ROW_ID, true, "Number of the log of the step", .max = UINT32_MAX},
	{"id", ROW_TEXT, true, "Name of the layer"},
	{"created_ms", ROW_COUNT, true, "When the layer was made"},
	{"trees", ROW_LIST, true, "The trees of the layer", .max = UPPER_TREES_MAX,
	 .rows = tree_rows},
	{"rights", ROW_VALUES, true, "Rights of the session that made the layer"},
	{"diff", ROW_FLAG, false, "Print a diff", .initial = "false"},
	{"brief", ROW_FLAG, false, "Report only what a person is told after a landing",
	 .initial = "false"},
	{"markers", ROW_FLAG, false, "Write texts with marks of conflicts",
	 .initial = "false"},
	{"commits", ROW_FLAG, false, "Take commits as well", .initial = "true"},
	{"undone", ROW_FLAG, false, "A landing of the layer was undone", .initial = "false"},
	{"rest", ROW_FLAG, false, "Leave what is in conflict, and land the rest",
	 .initial = "false"},
	{"hash", ROW_TEXT, false, "Land only this reading"},
	{0},
};

struct landing {
	struct call *call;
	struct tool_result *result;
	struct upper_tree trees[UPPER_TREES_MAX];
	size_t tree_count;
	const char *git_layer; /* the layer of the workspace, in the view; or NULL */
	const struct upper_tree *git_tree; /* the tree of the workspace */
	struct upper upper;
	struct choices choices;
	struct comparing comparing;
	struct undo_log log;
	struct commits commits;
	struct value *report, *left;
};

/* Opening. */

static bool open_folder(struct files *files, const char *path, int *fd, struct err *err)
{
	struct file folder;

	file_init(&folder);
	const bool fine = files_reach(files, path, FILES_FOLDER, &folder, err);
	if (fine)
		*fd = fd_take(&folder.fd);
	file_fini(&folder);
	return fine;
}

/* Read the list of the copy at PATH; NULL: the layer of TREE is none. */
static bool open_list(struct files *files, const char *path, struct upper_tree *tree,
		      struct err *err)
{
	struct file list;

	if (path == NULL)
		return true;
	file_init(&list);
	const bool fine = files_reach(files, path, FILES_READ, &list, err) &&
			  copied_read(list.fd, &tree->copied, err);
	file_fini(&list);
	return fine;
}

static bool open_trees(struct landing *landing, struct err *err)
{
	const struct value *trees = value_member(landing->call->arguments, "trees");

	for (size_t i = 0; i < value_count(trees) && i < UPPER_TREES_MAX; i++) {
		const struct value *item = value_item(trees, i);
		struct upper_tree *tree = &landing->trees[i];
		const char *layer = value_text(value_member(item, "layer"));

		*tree = (struct upper_tree){
			.layer = -1,
			.below = -1,
			.path = value_text(value_member(item, "path")),
		};
		landing->tree_count++;
		if (!open_folder(landing->call->files, layer, &tree->layer, err) ||
		    !open_folder(landing->call->files, tree->path, &tree->below, err) ||
		    !open_list(landing->call->files,
			       value_text(value_member(item, "list")), tree, err) ||
		    !upper_read(&landing->upper, tree, landing->call, err))
			return false;
		if (strcmp(tree->path, landing->call->workspace) == 0) {
			landing->git_layer = layer;
			landing->git_tree = tree;
		}
	}
	upper_sort(&landing->upper);
	return true;
}

/* Writing. */

static void note_left(struct landing *landing, const struct change *change)
{
	if (value_count(landing->left) < LEFT_MAX)
		value_append(landing->left, value_new_str(change->row->path));
}

static bool put_content(struct landing *landing, const struct change *change,
			const struct undo_state *target,
			const struct undo_content *content, struct err *err)
{
	bool left = false;

	return undo_places_put_content(landing->comparing.places, change->row->path.data,
				       &change->below, target, content, &left, err);
}

static bool put_link(struct landing *landing, const struct change *change, struct err *err)
{
	struct undo_content content = {.file = -1, .extra = -1};
	struct buf text;

	buf_init(&text, 8192);
	bool fine = upper_read_link(change->row, &text, err);
	content.text = buf_str(&text);
	fine = fine && put_content(landing, change, &change->target, &content, err);
	buf_fini(&text);
	return fine;
}

static bool put_text(struct landing *landing, const struct change *change, struct err *err)
{
	struct undo_state target = change->target;
	/* The merged file keeps the attributes of the user's. */
	auto_close int extra =
		fd_open_beneath(change->row->tree->below, change->row->relative, O_RDONLY);
	const struct undo_content content = {.text = buf_str(&change->text),
					     .file = -1,
					     .extra = extra};

	undo_state_hash_text(content.text, &target);
	target.mtime_ns = 0;
	return put_content(landing, change, &target, &content, err);
}

/* Only the permissions are the layer's: the content is the one that is there. */
static bool keeps_content(const struct change *change)
{
	return !change->extra_only && change->below.kind == UNDO_FILE &&
	       change->target.inode == change->below.inode &&
	       change->row->state.inode != change->below.inode;
}

static bool put_file(struct landing *landing, const struct change *change, struct err *err)
{
	const bool keeps = keeps_content(change);

	if (!keeps && change->row->content.data != NULL) {
		const struct undo_content kept = {.text = change->row->content,
						  .file = -1,
						  .extra = -1};

		return put_content(landing, change, &change->target, &kept, err);
	}
	auto_close int file = keeps ? fd_open_beneath(change->row->tree->below,
						      change->row->relative, O_RDONLY)
				    : upper_open(change->row);
	const struct undo_content content = {.file = file, .extra = file};

	if (file < 0)
		return err_set(err, errno, "%s: %s", change->row->path.data,
			       strerror(errno));
	return put_content(landing, change, &change->target, &content, err);
}

static bool put(struct landing *landing, struct change *change, struct err *err)
{
	bool left = false;

	if (change->class == CHANGE_MERGE)
		return put_text(landing, change, err);
	if (change->target.kind == UNDO_FILE)
		return put_file(landing, change, err);
	if (change->target.kind == UNDO_LINK)
		return put_link(landing, change, err);
	if (!undo_places_put(landing->comparing.places, change->row->path.data,
			     &change->below, &change->target, &left, err))
		return false;
	if (left)
		note_left(landing, change);
	return true;
}

static bool is_written(const struct change *change)
{
	return change->class == CHANGE_APPLY || change->class == CHANGE_MERGE;
}

static bool is_removal(const struct change *change)
{
	return change->class == CHANGE_APPLY && change->target.kind == UNDO_ABSENT;
}

/* A folder whose place another thing takes has to be emptied first. */
static bool takes_folder(const struct change *change)
{
	return is_written(change) && change->below.kind == UNDO_FOLDER &&
	       (change->target.kind == UNDO_FILE || change->target.kind == UNDO_LINK);
}

/* Names of one file. */

static int compare_inodes(const void *a, const void *b)
{
	const struct change *one = *(struct change *const *)a;
	const struct change *other = *(struct change *const *)b;

	if (one->row->device != other->row->device)
		return one->row->device < other->row->device ? -1 : 1;
	if (one->row->state.inode != other->row->state.inode)
		return one->row->state.inode < other->row->state.inode ? -1 : 1;
	return one < other ? -1 : 1;
}

/* Is CHANGE's file that of the layer after the landing, so that other names can be added? */
static bool is_first(const struct change *change)
{
	/* The user may have changed a file that the layer has only linked. */
	return change->class == CHANGE_APPLY
		       ? !keeps_content(change)
		       : undo_state_same(&change->below, &change->row->state);
}

/* Give the COUNT names LINKED of one file their first name. */
static void find_first(const struct landing *landing, struct change *const *linked,
		       size_t count, struct change **firsts)
{
	struct change *first = NULL;

	/* A name that takes the place of a folder is there later than the others. */
	for (size_t i = 0; i < count; i++) {
		if (is_first(linked[i]) &&
		    (first == NULL || (takes_folder(first) && !takes_folder(linked[i]))))
			first = linked[i];
	}
	for (size_t i = 0; i < count; i++) {
		struct change *change = linked[i];

		if (change != first && change->class == CHANGE_APPLY &&
		    !keeps_content(change) && !change->extra_only)
			firsts[change - landing->comparing.changes] = first;
	}
}

/*
 * FIRSTS gets, for each change whose file has several names in the layer, the one of these
 * that is there first; NULL: it is that one itself.
 */
static void find_names(const struct landing *landing, struct change **firsts)
{
	const size_t count = landing->upper.count;
	struct change *changes = landing->comparing.changes;
	auto_free struct change **linked = memory_array(count + 1, sizeof(struct change *));
	size_t found = 0;

	for (size_t i = 0; i < count; i++) {
		if (changes[i].row->linked && changes[i].row->shape == UPPER_PLAIN &&
		    (changes[i].class == CHANGE_APPLY || changes[i].class == CHANGE_NONE))
			linked[found++] = &changes[i];
	}
	if (found > 0)
		qsort(linked, found, sizeof(*linked), compare_inodes);
	for (size_t begin = 0, end = 0; begin < found; begin = end) {
		const struct upper_row *row = linked[begin]->row;

		for (end = begin + 1; end < found; end++) {
			if (linked[end]->row->device != row->device ||
			    linked[end]->row->state.inode != row->state.inode)
				break;
		}
		find_first(landing, linked + begin, end - begin, firsts);
	}
}

#define TELL_LANDING "landing"

/* Make what is new: files, links and folders, but not where a folder is in the way. */
static bool make_all(struct landing *landing, struct change *const *firsts, bool emptied,
		     struct err *err)
{
	struct change *changes = landing->comparing.changes;

	for (size_t i = 0; i < landing->upper.count; i++) {
		if (!is_written(&changes[i]) || is_removal(&changes[i]) ||
		    takes_folder(&changes[i]) != emptied || firsts[i] != NULL)
			continue;
		compare_tell(&landing->comparing, i, TELL_LANDING);
		if (!put(landing, &changes[i], err))
			return false;
		if (call_stopped(landing->call))
			return err_set(err, ECANCELED, "stopped");
	}
	if (!undo_places_settle(landing->comparing.places, err))
		return false;
	for (size_t i = 0; i < landing->upper.count; i++) {
		if (firsts[i] != NULL && takes_folder(&changes[i]) == emptied &&
		    !undo_places_link(landing->comparing.places,
				      changes[i].row->path.data, &changes[i].below,
				      &changes[i].target, firsts[i]->row->path.data, err))
			return false;
	}
	return true;
}

static bool remove_all(struct landing *landing, struct err *err)
{
	struct change *changes = landing->comparing.changes;

	for (size_t i = landing->upper.count; i-- > 0;) {
		if (!is_removal(&changes[i]))
			continue;
		compare_tell(&landing->comparing, landing->upper.count - i, TELL_LANDING);
		if (!put(landing, &changes[i], err))
			return false;
		if (call_stopped(landing->call))
			return err_set(err, ECANCELED, "stopped");
	}
	return true;
}

static bool has_conflict(const struct landing *landing)
{
	for (size_t i = 0; i < landing->upper.count; i++) {
		const enum change_class class = landing->comparing.changes[i].class;

		if (class == CHANGE_CONFLICT || class == CHANGE_NO_BASE)
			return true;
	}
	return false;
}

static bool takes_commits(const struct landing *landing)
{
	return landing->git_layer != NULL && call_flag(landing->call, "commits") &&
	       landing->choices.only_count == 0 && !has_conflict(landing);
}

/* Does something stay in the layer, so that a session may go on in it? */
static bool stays_open(const struct landing *landing)
{
	for (size_t i = 0; i < landing->upper.count; i++) {
		const struct change *change = &landing->comparing.changes[i];

		if (!is_written(change) && change->class != CHANGE_NONE)
			return true;
	}
	return landing->commits.count > 0 && !takes_commits(landing);
}

/*
 * A landed content is the base of what the layer holds later. Without that note the older base
 * stays, and a later change may be a conflict.
 */
static void note_bases(struct landing *landing)
{
	struct undo_log log;
	char path[PATH_MAX];

	if (!stays_open(landing) || !before_log(landing->comparing.before, &log))
		return;
	for (size_t i = 0; i < landing->upper.count; i++) {
		const struct change *change = &landing->comparing.changes[i];
		auto_close int file = -1;

		if (!is_written(change) || change->extra_only)
			continue;
		if (change->row->state.kind == UNDO_FILE)
			file = upper_open(change->row);
		compare_absolute(&landing->comparing, change->row, path);
		if (!before_note(&log, path, file, &change->row->state))
			return;
	}
}

/* A landing that has changed nothing leaves its log empty, and is no step. */
static bool land_all(struct landing *landing, struct err *err)
{
	auto_free struct change **firsts =
		memory_array(landing->upper.count + 1, sizeof(*firsts));

	find_names(landing, firsts);
	return make_all(landing, firsts, false, err) && remove_all(landing, err) &&
	       make_all(landing, firsts, true, err) &&
	       undo_places_settle(landing->comparing.places, err) &&
	       (!takes_commits(landing) ||
		commits_land(&landing->commits, landing->call, &landing->log,
			     landing->comparing.places, err)) &&
	       (landing->log.at == 0 || undo_log_end(&landing->log, err));
}

/* The whole call. */

/* Is the reading still the one that the user has seen? */
static bool is_as_read(const struct landing *landing)
{
	const char *given = call_text(landing->call, "hash");
	char hex[HASH_HEX + 1];

	if (given == NULL)
		return true;
	report_hash(&landing->comparing, &landing->commits, hex);
	return hash_matches(given, hex);
}

static bool write_report(struct landing *landing, struct err *err)
{
	struct buf text;

	value_set(landing->report, "left", value_ref(landing->left));
	buf_init(&text, REPORT_BYTES_MAX);
	const bool fine =
		(value_print(landing->report, 0, &text) ||
		 err_set(err, EFBIG, "there are too many changes to be told")) &&
		fd_write_all(landing->call->fds[FD_REPORT], text.data, text.size, err);
	buf_fini(&text);
	return fine;
}

static bool compare_layer(struct landing *landing, struct err *err)
{
	struct err ignored = {0};

	landing->comparing.call = landing->call;
	landing->comparing.upper = &landing->upper;
	landing->comparing.choices = &landing->choices;
	landing->comparing.id = call_text(landing->call, "id");
	landing->comparing.created_ns =
		call_count(landing->call, "created_ms", 0) * NANOSECONDS_IN_MS;
	landing->comparing.rights =
		rights_read(value_member(landing->call->arguments, "rights"));
	landing->choices.markers = call_flag(landing->call, "markers");
	landing->comparing.places =
		undo_places_new(landing->call->files, -1, &landing->log);
	/* Without the log no base is known but what nobody has touched since. */
	if (!before_read(landing->call->fds[FD_CHANGES], call_flag(landing->call, "undone"),
			 &landing->comparing.before, &ignored))
		value_set_boolean(landing->report, "log_damaged", true);
	if (!choices_read(landing->call->fds[FD_CHOICES], &landing->choices, err) ||
	    !open_trees(landing, err) || !compare_all(&landing->comparing, err))
		return false;
	if (landing->git_layer != NULL && landing->upper.has_git)
		commits_look(&landing->commits, landing->call, landing->git_layer,
			     landing->git_tree, landing->comparing.id,
			     landing->comparing.before);
	return report_add(landing->report, &landing->comparing, &landing->commits,
			  call_flag(landing->call, "brief")  ? REPORT_BRIEF
			  : call_flag(landing->call, "diff") ? REPORT_DIFFS
							     : REPORT_COUNTS,
			  landing->call->fds[FD_DIFF], err);
}

static void carry_out(struct landing *landing)
{
	struct tool_result *result = landing->result;
	const bool lands = landing->call->tool == &land_tool;
	struct err err = {0};
	bool landed = false;

	if (!compare_layer(landing, &err)) {
		(void)tool_fail(result, "%s%s", lands ? "Nothing was landed. " : "",
				err.text);
		return;
	}
	const bool stale = !is_as_read(landing);
	value_set_boolean(landing->report, "stale", stale);
	value_set_boolean(landing->report, "conflict", has_conflict(landing));
	const bool writes = lands && !stale &&
			    (!has_conflict(landing) || call_flag(landing->call, "rest"));
	if (writes && takes_commits(landing) && landing->commits.count > 0 &&
	    !commits_wait_for_index(landing->call, &err)) {
		(void)tool_fail(result, "Nothing was landed. %s.", err.text);
		return;
	}
	if (writes) {
		landed = land_all(landing, &err);
		if (landed) {
			note_bases(landing);
		} else {
			value_set_text(landing->report, "broken_off", err.text);
			err = (struct err){0};
		}
	}
	value_set_boolean(landing->report, "landed", landed);
	commits_report(&landing->commits, landing->report);
	if (write_report(landing, &err))
		(void)tool_done(result);
	else
		(void)tool_fail(result, "%s", err.text);
}

static enum result_status land_execute(struct call *call, struct tool_result *result)
{
	struct landing landing = {
		.call = call,
		.result = result,
		.report = value_new_object(),
		.left = value_new_array(),
	};

	upper_init(&landing.upper);
	undo_log_begin(&landing.log, call->fds[FD_LOG],
		       (uint32_t)call_count(call, "log", 0));
	carry_out(&landing);
	undo_places_free(landing.comparing.places);
	compare_fini(&landing.comparing);
	before_free(landing.comparing.before);
	rights_free(landing.comparing.rights);
	choices_fini(&landing.choices);
	commits_fini(&landing.commits);
	upper_fini(&landing.upper);
	for (size_t i = 0; i < landing.tree_count; i++) {
		copied_free(landing.trees[i].copied);
		fd_close(&landing.trees[i].layer);
		fd_close(&landing.trees[i].below);
	}
	value_free(landing.report);
	value_free(landing.left);
	return result->status;
}

const struct tool land_tool = {
	.name = "land",
	.description = "Compare a layer with the workspace, and land it.",
	.example = "{\"log\": 1, \"id\": \"3f9a61c2\", \"created_ms\": 1, \"trees\": [], "
		   "\"rights\": {}}",
	.params = land_params,
	.effects = EFFECT_WRITES | EFFECT_RUNS,
	.timeout_s = 3600, /* a tree of two million files on a slow disk */
	.internal = true,
	.execute = land_execute,
};

const struct tool read_layer_tool = {
	.name = "read_layer",
	.description = "Compare a layer with the workspace.",
	.example = "{\"log\": 1, \"id\": \"3f9a61c2\", \"created_ms\": 1, \"trees\": [], "
		   "\"rights\": {}}",
	.params = land_params,
	.effects = EFFECT_READS | EFFECT_RUNS,
	.timeout_s = 3600,
	.internal = true,
	.execute = land_execute,
};
