/* review: asks a worker about a layer, and reads its report. */

#include "session/review.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/text/text.h"
#include "session/keeper.h"
#include "tool/tool.h"
#include "undo/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	REPORT_MAX = 256 << 20, /* bytes of a report */
	ROWS_MAX = 20000,       /* changes in it; the worker counts further ones */
	BRANCHES_MAX = 1000,
	LEFT_MAX = 20,
	TAGS_MAX = 20,
	NAME_MAX_BYTES = 64 << 10, /* of a path as it is shown, with its escapes */
	CHOICES_MAX = 8 << 20,
};

#define LAND_TOOL "land"
#define READ_TOOL "read_layer"

/* Reading a report. */

static const char *const kind_names[REVIEW_KINDS] = {"added",     "removed", "changed",
						     "renamed",   "mode",    "link",
						     "attributes"};
static const char *const class_names[REVIEW_CLASSES] = {"apply",   "merge",   "conflict",
							"no_base", "refused", "mine"};
static const char *const refusals = "git protected session agent kind read";

static bool find_name(const char *const *names, size_t count, const char *name, size_t *at)
{
	for (size_t i = 0; name != NULL && i < count; i++) {
		if (strcmp(names[i], name) == 0) {
			*at = i;
			return true;
		}
	}
	return false;
}

/* A copy of the text KEY of OBJECT that outlives it; NULL: it is not there, or too long. */
static const char *copy_text(struct review_report *report, const struct value *object,
			     const char *key)
{
	const struct str text = value_str(value_member(object, key));

	if (text.size == 0 || text.size > NAME_MAX_BYTES ||
	    memchr(text.data, '\0', text.size) != NULL)
		return NULL;
	return arena_copy(&report->texts, text);
}

/* A number that is not negative; 0: it is none. */
static int64_t read_count(const struct value *object, const char *key)
{
	const int64_t number = value_integer(value_member(object, key));

	return number > 0 ? number : 0;
}

static bool is_set(const struct value *object, const char *key)
{
	return value_is_true(value_member(object, key));
}

static bool read_pair(const struct value *object, const char *key, int64_t pair[2])
{
	const struct value *list = value_member(object, key);

	if (value_count(list) != 2)
		return false;
	for (size_t i = 0; i < 2; i++) {
		const int64_t number = value_integer(value_item(list, i));

		pair[i] = number > 0 ? number : 0;
	}
	return true;
}

static bool is_hex(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text_hex_digit(text[i]) < 0)
			return false;
	}
	return text[size] == '\0';
}

static void read_side(const struct value *object, struct review_side *side)
{
	const char *hash = value_text(value_member(object, "hash"));
	const char *mode = value_text(value_member(object, "mode"));
	const struct value *size = value_member(object, "size");

	*side = (struct review_side){
		.there = value_kind(object) == VALUE_OBJECT,
		.folder = value_is_true(value_member(object, "folder")),
		.link = value_is_true(value_member(object, "link")),
		.size = size != NULL ? read_count(object, "size") : -1,
	};
	if (hash != NULL && strlen(hash) == HASH_HEX && is_hex(hash, HASH_HEX))
		memcpy(side->hash, hash, HASH_HEX + 1);
	if (mode != NULL && strlen(mode) < sizeof(side->mode) &&
	    strspn(mode, "01234567") == strlen(mode))
		(void)snprintf(side->mode, sizeof(side->mode), "%s", mode);
}

static bool read_change(struct review_report *report, const struct value *row,
			struct review_change *change)
{
	int64_t lines[2];
	size_t kind, class;

	if (!find_name(kind_names, REVIEW_KINDS, value_text(value_member(row, "kind")),
		       &kind) ||
	    !find_name(class_names, REVIEW_CLASSES,
		       value_text(value_member(row, "class")), &class))
		return false;
	change->kind = (enum review_kind)kind;
	change->class = (enum review_class) class;
	change->path = copy_text(report, row, "path");
	change->from = copy_text(report, row, "from");
	change->target = copy_text(report, row, "target");
	change->why = copy_text(report, row, "why");
	change->type = copy_text(report, row, "type");
	change->refused = copy_text(report, row, "refused");
	read_side(value_member(row, "before"), &change->before);
	read_side(value_member(row, "after"), &change->after);
	change->set_ids = value_is_true(value_member(row, "set_ids"));
	change->text = value_is_true(value_member(row, "text"));
	change->has_lines = read_pair(row, "lines", lines);
	if (change->has_lines) {
		change->lines_added = lines[0];
		change->lines_removed = lines[1];
	}
	(void)read_pair(row, "ours", change->ours);
	(void)read_pair(row, "theirs", change->theirs);
	(void)read_pair(row, "overlap", change->overlap);
	change->since_ms = read_count(row, "since_ms");
	return change->path != NULL && (change->kind != REVIEW_RENAMED || change->from) &&
	       (change->class != REVIEW_REFUSED ||
		(change->refused != NULL && str_among(refusals, str_of(change->refused))));
}

static bool read_branch(struct review_report *report, const struct value *row,
			struct review_branch *branch)
{
	const struct value *commits = value_member(row, "commits");

	*branch = (struct review_branch){
		.name = copy_text(report, row, "branch"),
		.commit = copy_text(report, row, "commit"),
		.commits = value_integer(commits) >= 0 ? value_integer(commits) : -1,
		.sound = value_is_true(value_member(row, "sound")),
		.moves = value_is_true(value_member(row, "moves")),
		.moved = value_is_true(value_member(row, "moved")),
	};
	return branch->name != NULL && branch->commit != NULL &&
	       is_hex(branch->commit, strlen(branch->commit));
}

static bool read_tags(struct review_report *report, const struct value *rows)
{
	const size_t count = value_count(rows);

	if (count > TAGS_MAX)
		return false;
	report->tags = memory_array(count + 1, sizeof(*report->tags));
	for (; report->tag_count < count; report->tag_count++) {
		const struct value *row = value_item(rows, report->tag_count);
		struct review_tag *tag = &report->tags[report->tag_count];

		tag->name = copy_text(report, row, "tag");
		tag->commit = copy_text(report, row, "commit");
		if (tag->name == NULL || tag->commit == NULL ||
		    !is_hex(tag->commit, strlen(tag->commit)))
			return false;
	}
	return true;
}

static bool read_git(struct review_report *report, const struct value *git)
{
	const struct value *refs = value_member(git, "refs");
	const size_t count = value_count(refs);

	if (count > BRANCHES_MAX)
		return false;
	report->branches = memory_array(count + 1, sizeof(*report->branches));
	for (; report->branch_count < count; report->branch_count++) {
		if (!read_branch(report, value_item(refs, report->branch_count),
				 &report->branches[report->branch_count]))
			return false;
	}
	report->stash = is_set(git, "stash");
	report->notes = is_set(git, "notes");
	report->staged = is_set(git, "staged");
	report->trouble = copy_text(report, git, "trouble");
	report->unread = copy_text(report, git, "unread");
	return read_tags(report, value_member(git, "tags"));
}

static bool read_changes(struct review_report *report, const struct value *rows)
{
	const size_t count = value_count(rows);

	if (count > ROWS_MAX)
		return false;
	report->changes = memory_array(count + 1, sizeof(*report->changes));
	for (; report->count < count; report->count++) {
		if (!read_change(report, value_item(rows, report->count),
				 &report->changes[report->count]))
			return false;
	}
	return true;
}

static bool read_left(struct review_report *report, const struct value *names)
{
	const size_t count = value_count(names);

	if (count > LEFT_MAX)
		return false;
	report->left = memory_array(count + 1, sizeof(*report->left));
	for (size_t i = 0; i < count; i++) {
		const struct str name = value_str(value_item(names, i));

		if (name.size > 0 && name.size <= NAME_MAX_BYTES)
			report->left[report->left_count++] =
				arena_copy(&report->texts, name);
	}
	return true;
}

bool review_report_parse(struct str text, struct review_report *report, struct err *err)
{
	auto_value struct value *object = NULL;
	const struct value *totals;
	const char *hash;

	arena_init(&report->texts);
	report->diff = -1;
	if (!value_parse(text, 0, &object, err))
		return err_while(err, "the report of a layer");
	hash = value_text(value_member(object, "hash"));
	if (!read_changes(report, value_member(object, "changes")) ||
	    !read_git(report, value_member(object, "git")) ||
	    !read_left(report, value_member(object, "left")) || hash == NULL ||
	    strlen(hash) != HASH_HEX || !is_hex(hash, HASH_HEX))
		return err_set(err, EINVAL, "the report of a layer does not hold together");
	memcpy(report->hash, hash, HASH_HEX + 1);
	totals = value_member(object, "totals");
	report->more = read_count(object, "more");
	report->changed = read_count(totals, "changed");
	report->added = read_count(totals, "added");
	report->removed = read_count(totals, "removed");
	report->bytes = read_count(totals, "bytes");
	report->outside = read_count(totals, "outside");
	report->kept = read_count(totals, "kept");
	report->lands = read_count(totals, "lands");
	report->conflicts = read_count(totals, "conflicts");
	report->stale = value_is_true(value_member(object, "stale"));
	report->conflict = value_is_true(value_member(object, "conflict"));
	report->landed = value_is_true(value_member(object, "landed"));
	report->log_damaged = value_is_true(value_member(object, "log_damaged"));
	report->broken_off = copy_text(report, object, "broken_off");
	return true;
}

void review_report_fini(struct review_report *report)
{
	free(report->changes);
	free(report->branches);
	free(report->tags);
	free(report->left);
	arena_fini(&report->texts);
	if (report->diff > 0)
		(void)close(report->diff);
	*report = (struct review_report){.diff = -1};
}

bool review_report_has_news(const struct review_report *report)
{
	return report->count > 0 || report->branch_count > 0 || report->tag_count > 0 ||
	       report->stash || report->notes || report->staged || report->unread != NULL;
}

/* Printing a report for programs. */

static struct value *side_value(const struct review_side *side)
{
	struct value *value;

	if (!side->there)
		return value_new_null();
	value = value_new_object();
	if (side->hash[0] != '\0')
		value_set_text(value, "hash", side->hash);
	if (side->size >= 0)
		value_set_integer(value, "size", side->size);
	if (side->mode[0] != '\0')
		value_set_text(value, "mode", side->mode);
	if (side->folder)
		value_set_boolean(value, "folder", true);
	if (side->link)
		value_set_boolean(value, "link", true);
	return value;
}

static struct value *change_value(const struct review_change *change)
{
	struct value *value = value_new_object();

	value_set_text(value, "path", change->path);
	value_set_text(value, "kind", kind_names[change->kind]);
	value_set(value, "before", side_value(&change->before));
	value_set(value, "after", side_value(&change->after));
	value_set_boolean(value, "binary", change->type != NULL);
	value_set_text(value, "class", class_names[change->class]);
	if (change->from != NULL)
		value_set_text(value, "from", change->from);
	if (change->target != NULL)
		value_set_text(value, "target", change->target);
	if (change->refused != NULL)
		value_set_text(value, "refused", change->refused);
	if (change->has_lines) {
		value_set_integer(value, "lines_added", change->lines_added);
		value_set_integer(value, "lines_removed", change->lines_removed);
	}
	return value;
}

static struct value *branch_value(const struct review_branch *branch)
{
	struct value *value = value_new_object();

	value_set_text(value, "branch", branch->name);
	value_set_text(value, "commit", branch->commit);
	if (branch->commits >= 0)
		value_set_integer(value, "commits", branch->commits);
	value_set_boolean(value, "moves", branch->moves);
	value_set_boolean(value, "moved", branch->moved);
	return value;
}

struct value *review_report_value(const struct review_report *report, const char *id)
{
	struct value *value = value_new_object();
	struct value *changes = value_new_array(), *branches = value_new_array();
	struct value *totals = value_new_object();

	for (size_t i = 0; i < report->count; i++)
		value_append(changes, change_value(&report->changes[i]));
	for (size_t i = 0; i < report->branch_count; i++)
		value_append(branches, branch_value(&report->branches[i]));
	value_set_integer(totals, "changed", report->changed);
	value_set_integer(totals, "added", report->added);
	value_set_integer(totals, "removed", report->removed);
	value_set_integer(totals, "bytes", report->bytes);
	value_set_text(value, "id", id);
	value_set(value, "changes", changes);
	value_set_integer(value, "more", report->more);
	value_set(value, "branches", branches);
	value_set(value, "totals", totals);
	value_set_boolean(value, "conflict", report->conflict);
	value_set_boolean(value, "cut", report->cut);
	value_set_text(value, "hash", report->hash);
	if (report->step != 0)
		value_set_integer(value, "step", report->step);
	return value;
}

/* The entries of the view. */

bool review_shown_fill(struct review_shown *shown, const struct review *review,
		       struct err *err)
{
	*shown = (struct review_shown){0};
	arena_init(&shown->texts);
	for (size_t i = 0; i < review->meta.tree_count; i++) {
		auto_close int upper = review_open_upper(review, i);
		char place[PATH_MAX];
		struct buf path;

		buf_init(&path, PATH_MAX);
		if (upper < 0 || !fd_real_path(upper, &path)) {
			buf_fini(&path);
			return err_set(err, errno, "the files of review %s: %s",
				       review->meta.id, strerror(errno));
		}
		(void)snprintf(place, sizeof(place), REVIEW_SHOWN "/%s/%zu",
			       review->meta.id, i);
		shown->entries[i] = (struct shape_shown){
			.source = arena_copy(&shown->texts, buf_str(&path)),
			.path = arena_copy(&shown->texts, str_of(place)),
			.why = "the review",
			.layer = true,
		};
		buf_fini(&path);
	}
	return true;
}

void review_shown_fini(struct review_shown *shown)
{
	arena_fini(&shown->texts);
	*shown = (struct review_shown){0};
}

/* The call. */

/* The files that the worker gets. */
struct files_of_call {
	int changes, log, report, diff, choices;
	uint32_t step; /* of `log`; 0: it is no step */
};

static void add_choices(const char *const *paths, char kind, struct buf *out)
{
	for (size_t i = 0; paths != NULL && paths[i] != NULL; i++) {
		(void)buf_addc(out, kind);
		(void)buf_add(out, paths[i], strlen(paths[i]) + 1);
	}
}

static bool print_choices(const struct review_wish *wish, int *fd, struct err *err)
{
	struct buf text;

	buf_init(&text, CHOICES_MAX);
	add_choices(wish->only, 'p', &text);
	add_choices(wish->mine, 'm', &text);
	add_choices(wish->theirs, 't', &text);
	const bool fine = !text.overflowed
				  ? fd_memory_file("choices", buf_str(&text), fd, err)
				  : err_set(err, E2BIG, "too many paths are named");
	buf_fini(&text);
	return fine;
}

/* Go on with the log of a landing of ID that was killed; -1: there is none. */
static int open_broken(struct undo_store *store, const char *id, uint32_t *number)
{
	struct undo_steps steps = {0};
	int log = -1;

	if (!undo_store_steps(store, &steps, NULL))
		return -1;
	for (size_t i = steps.count; i-- > 0 && log < 0;) {
		const struct undo_step *step = &steps.steps[i];
		struct undo_reader reader = {0};

		if (step->whole || step->undone || strcmp(step->tool, LAND_TOOL) != 0 ||
		    strcmp(step->title, id) != 0 ||
		    !undo_store_is_ours(store, step->number))
			continue;
		log = undo_store_open_log(store, step->number, true);
		if (log >= 0 && (!undo_log_read(&reader, log, NULL) ||
				 ftruncate(log, (off_t)reader.sound) < 0))
			fd_close(&log);
		*number = step->number;
	}
	undo_steps_fini(&steps);
	return log;
}

/* Open the log of the step of a landing. Without a store its undo is not possible. */
static bool open_log(struct session *session, const char *id, struct files_of_call *files,
		     struct err *err)
{
	struct undo_store *store = keeper_store(session->keeper);
	const struct undo_meta meta = {
		.work = UNDO_BY_TOOL,
		.run = keeper_run(session->keeper),
		.tool = LAND_TOOL,
		.title = str_of(id),
		.wall_ms = clock_wall_ms(),
		.alone = true,
	};

	if (!keeper_keeps(session->keeper))
		return err_set(err, ENOTSUP,
			       "Nothing was landed: undo keeps nothing of this "
			       "workspace, so nobody could take it back.");
	files->log = open_broken(store, id, &files->step);
	if (files->log < 0)
		files->log = undo_store_new_log(store, &meta, &files->step, err);
	return files->log >= 0;
}

static struct value *trees_value(const struct session *session, const struct review *review)
{
	struct value *trees = value_new_array();
	const bool sealed = spec_is_sealed(cell_spec(session->cell));

	for (size_t i = 0; i < review->meta.tree_count; i++) {
		struct value *tree = value_new_object();
		auto_close int upper = review_open_upper(review, i);
		char place[PATH_MAX];
		struct buf path;

		buf_init(&path, PATH_MAX);
		(void)snprintf(place, sizeof(place), REVIEW_SHOWN "/%s/%zu",
			       review->meta.id, i);
		value_set_text(tree, "path", review->meta.trees[i]);
		if (!sealed && upper >= 0 && fd_real_path(upper, &path))
			value_set_str(tree, "layer", buf_str(&path));
		else
			value_set_text(tree, "layer", place);
		value_append(trees, tree);
		buf_fini(&path);
	}
	return trees;
}

static bool take_report(int fd, struct review_report *report, struct err *err)
{
	struct buf text;

	buf_init(&text, REPORT_MAX);
	const bool fine = lseek(fd, 0, SEEK_SET) == 0 &&
			  fd_read_all(fd, &text, "the report of a layer", err) &&
			  review_report_parse(buf_str(&text), report, err);
	buf_fini(&text);
	return fine;
}

static bool call_worker(struct session *session, const struct review *review,
			const struct review_wish *wish, const struct files_of_call *files,
			struct tool_result *result)
{
	auto_value struct value *arguments = value_new_object();
	const struct request request = {
		.tool = wish->lands ? LAND_TOOL : READ_TOOL,
		.arguments = arguments,
		.fds = {files->changes, files->report, files->diff, files->choices,
			files->log},
		.fd_count = wish->lands ? 5 : 4,
		.by_front = true,
		.quiet = false,
	};

	value_set_integer(arguments, "log", files->step);
	value_set_text(arguments, "id", review->meta.id);
	value_set_integer(arguments, "created_ms", review->meta.created_ms);
	value_set(arguments, "trees", trees_value(session, review));
	value_set(arguments, "rights", value_ref(review->meta.rights));
	value_set_boolean(arguments, "diff", wish->diff);
	value_set_boolean(arguments, "brief", wish->brief);
	value_set_boolean(arguments, "markers", wish->markers);
	value_set_boolean(arguments, "commits", !wish->no_commits);
	value_set_boolean(arguments, "rest", wish->rest);
	if (wish->hash != NULL)
		value_set_text(arguments, "hash", wish->hash);
	session_call(session, &request, result);
	return result->status == RESULT_DONE;
}

bool session_review(struct session *session, const struct review *review,
		    const struct review_wish *wish, struct review_report *report,
		    struct tool_result *result)
{
	struct files_of_call files = {-1, -1, -1, -1, -1, 0};
	auto_close int held = -1;
	struct err err = {0};

	files.changes = review_open_log(review, false);
	bool fine = (files.changes >= 0 ||
		     fd_memory_file("changes", STR(""), &files.changes, &err)) &&
		    fd_memory_file("report", STR(""), &files.report, &err) &&
		    fd_memory_file("diff", STR(""), &files.diff, &err) &&
		    print_choices(wish, &files.choices, &err) &&
		    (!wish->lands || !keeper_keeps(session->keeper) ||
		     undo_store_hold(keeper_store(session->keeper), &held, &err)) &&
		    (wish->lands ? open_log(session, review->meta.id, &files, &err)
				 : fd_memory_file("log", STR(""), &files.log, &err));
	if (!fine)
		(void)tool_fail(result, "%s", err.text);
	fine = fine && call_worker(session, review, wish, &files, result);
	if (fine && !take_report(files.report, report, &err))
		fine = tool_fail(result, "%s", err.text) == RESULT_DONE;
	if (fine) {
		report->diff = fd_take(&files.diff);
		report->step = files.step;
	}
	if (files.step != 0 && !undo_store_is_used(files.log)) {
		undo_store_drop_log(keeper_store(session->keeper), files.step);
		report->step = 0;
	}
	fd_close(&files.changes);
	fd_close(&files.log);
	fd_close(&files.report);
	fd_close(&files.diff);
	fd_close(&files.choices);
	return fine;
}

/* Opening again. */

/* Was the last landing of the layer ID undone? */
static bool is_undone(const struct undo_steps *steps, const char *id)
{
	for (size_t i = steps->count; i-- > 0;) {
		const struct undo_step *step = &steps->steps[i];

		if (step->work == UNDO_BY_TOOL && strcmp(step->tool, LAND_TOOL) == 0 &&
		    strcmp(step->title, id) == 0)
			return step->undone;
	}
	return false;
}

static void open_again(const char *folder, const char *workspace, const char *id,
		       struct buf *told)
{
	struct review *review = NULL;

	if (review_open(folder, workspace, id, &review, NULL) &&
	    review_lock(review, "glovebox undo", NULL) &&
	    review->meta.state == REVIEW_LANDED &&
	    review_set_state(review, REVIEW_OPEN, NULL) && told != NULL)
		(void)buf_addf(told, "Review %s is open again.\n", id);
	review_close(review);
}

void review_reopen(const char *folder, const char *undo, const char *workspace,
		   struct buf *told)
{
	struct undo_store *store = NULL;
	struct undo_steps steps = {0};
	struct review_list list = {0};
	struct err err = {0};

	if (undo != NULL && review_list_read(folder, workspace, &list, &err) &&
	    list.count > list.open && undo_store_open_old(undo, workspace, &store, &err) &&
	    store != NULL && undo_store_steps(store, &steps, &err)) {
		for (size_t i = 0; i < list.count; i++) {
			if (!list.items[i].damaged &&
			    list.items[i].meta.state == REVIEW_LANDED &&
			    is_undone(&steps, list.items[i].meta.id))
				open_again(folder, workspace, list.items[i].meta.id, told);
		}
	}
	undo_steps_fini(&steps);
	undo_store_close(store);
	review_list_fini(&list);
}
