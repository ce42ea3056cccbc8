/* review: asks a worker about a layer, and reads its report. */

#include "session/review.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/text/text.h"
#include "session/keeper.h"
#include "tool/tool.h"
#include "undo/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
	MODE_DIGITS = 7,
};

#define LAND_TOOL "land"
#define READ_TOOL "read_layer"

/* Reading a report, and printing it for programs. */

static const char *const kind_names[REVIEW_KINDS] = {"added",     "removed", "changed",
						     "renamed",   "mode",    "link",
						     "attributes"};
static const char *const class_names[REVIEW_CLASSES] = {"apply",   "merge",   "conflict",
							"no_base", "refused", "mine"};

/* A text that people see, with its escapes; a hash; a number that is not negative; two of them. */
#define SHOWN  .max = NAME_MAX_BYTES
#define HASHED .min = HASH_HEX, .max = HASH_HEX
#define COUNT  .max = INT64_MAX
#define PAIR(items, count, as)                                                    \
	FIELD_NUMBERS(struct review_change, items, count, as, .min = 2, .max = 2, \
		      .optional = true)

/* The content of a side, which is known with its size or not at all. */
static const struct field content_fields[] = {
	FIELD(struct review_side, hash, HASHED),
	FIELD(struct review_side, size, COUNT),
	{0},
};
static const struct field side_fields[] = {
	FIELD(struct review_side, mode, .optional = true, .max = MODE_DIGITS),
	FIELD(struct review_side, folder, .optional = true),
	FIELD(struct review_side, link, .optional = true),
	{0},
};

static const struct field change_fields[] = {
	FIELD(struct review_change, path, .min = 1, SHOWN),
	FIELD_CHOICE(struct review_change, kind, "kind", kind_names),
	{0},
};
static const struct field class_fields[] = {
	FIELD_CHOICE(struct review_change, class, "class", class_names),
	FIELD(struct review_change, key, .optional = true, SHOWN),
	FIELD(struct review_change, from, .optional = true, SHOWN),
	FIELD(struct review_change, target, .optional = true, SHOWN),
	{0},
};
static const struct field refused_fields[] = {
	FIELD_CHOICE(struct review_change, refused, "refused", overlay_refusal_names),
	{0},
};
static const struct field detail_fields[] = {
	FIELD(struct review_change, why, .optional = true, SHOWN),
	FIELD(struct review_change, type, .optional = true, SHOWN),
	FIELD(struct review_change, set_ids, .optional = true),
	FIELD(struct review_change, text, .optional = true),
	FIELD(struct review_change, since_ms, .optional = true, COUNT),
	PAIR(lines.items, lines.count, "lines"),
	PAIR(ours.items, ours.count, "ours"),
	PAIR(theirs.items, theirs.count, "theirs"),
	PAIR(overlap.items, overlap.count, "overlap"),
	{0},
};
static const struct field lines_fields[] = {
	FIELD_NAMED(struct review_change, lines.items[0], "lines_added"),
	FIELD_NAMED(struct review_change, lines.items[1], "lines_removed"),
	{0},
};

static const struct field branch_fields[] = {
	FIELD_NAMED(struct review_branch, name, "branch", .min = 1, SHOWN),
	FIELD(struct review_branch, commit, .min = 1, .max = HASH_HEX),
	{0},
};
static const struct field commits_fields[] = {
	FIELD(struct review_branch, commits, COUNT),
	{0},
};
static const struct field moves_fields[] = {
	FIELD(struct review_branch, moves),
	FIELD(struct review_branch, moved),
	{0},
};
static const struct field sound_fields[] = {
	FIELD(struct review_branch, sound),
	{0},
};

static const struct field tag_fields[] = {
	FIELD_NAMED(struct review_tag, name, "tag", .min = 1, SHOWN),
	FIELD(struct review_tag, commit, .min = 1, .max = HASH_HEX),
	{0},
};
static const struct field git_fields[] = {
	FIELD_LIST(struct review_report, tags, tag_count, "tags", tag_fields,
		   .optional = true, .max = TAGS_MAX),
	FIELD(struct review_report, stash, .optional = true),
	FIELD(struct review_report, notes, .optional = true),
	FIELD(struct review_report, staged, .optional = true),
	FIELD(struct review_report, trouble, .optional = true, SHOWN),
	FIELD(struct review_report, unread, .optional = true, SHOWN),
	{0},
};
/* The totals that programs are told, and further ones. */
static const struct field total_fields[] = {
	FIELD(struct review_report, changed, COUNT),
	FIELD(struct review_report, added, COUNT),
	FIELD(struct review_report, removed, COUNT),
	FIELD(struct review_report, bytes, COUNT),
	{0},
};
static const struct field further_fields[] = {
	FIELD(struct review_report, outside, COUNT),
	FIELD(struct review_report, kept, COUNT),
	FIELD(struct review_report, lands, COUNT),
	FIELD(struct review_report, conflicts, COUNT),
	{0},
};
static const struct field report_fields[] = {
	FIELD(struct review_report, hash, HASHED),
	FIELD(struct review_report, more, COUNT),
	FIELD(struct review_report, stale, .optional = true),
	FIELD(struct review_report, conflict, .optional = true),
	FIELD(struct review_report, landed, .optional = true),
	FIELD(struct review_report, log_damaged, .optional = true),
	FIELD(struct review_report, broken_off, .optional = true, SHOWN),
	FIELD_TEXTS(struct review_report, left, left_count, "left", .optional = true,
		    .max = LEFT_MAX),
	FIELD_GROUP("git", git_fields, .optional = true),
	FIELD_GROUP("totals", total_fields),
	FIELD_GROUP("totals", further_fields),
	{0},
};

/* How a report ends. */
static const struct field end_fields[] = {
	FIELD(struct review_report, conflict),
	FIELD(struct review_report, hash),
	FIELD(struct review_report, step, .optional = true),
	{0},
};

static bool is_hex(const char *text)
{
	while (text_hex_digit(*text) >= 0)
		text++;
	return *text == '\0';
}

static bool read_side(const struct value *object, struct review_side *side, struct err *err)
{
	*side = (struct review_side){.there = value_kind(object) == VALUE_OBJECT,
				     .size = -1};
	return !side->there ||
	       (fields_read(object, side_fields, side, NULL, err) &&
		(value_member(object, "hash") == NULL ||
		 fields_read(object, content_fields, side, NULL, err)) &&
		((side->hash == NULL || is_hex(side->hash)) ||
		 err_set(err, EINVAL, "hash: it has other signs than digits")));
}

static bool is_pair(const struct review_pair *pair)
{
	return pair->count == 0 || (pair->items[0] >= 0 && pair->items[1] >= 0);
}

static bool read_change(const struct value *row, struct review_change *change,
			struct err *err)
{
	return fields_read(row, change_fields, change, NULL, err) &&
	       fields_read(row, class_fields, change, NULL, err) &&
	       fields_read(row, detail_fields, change, NULL, err) &&
	       (change->class != REVIEW_REFUSED ||
		fields_read(row, refused_fields, change, NULL, err)) &&
	       read_side(value_member(row, "before"), &change->before, err) &&
	       read_side(value_member(row, "after"), &change->after, err) &&
	       ((is_pair(&change->lines) && is_pair(&change->ours) &&
		 is_pair(&change->theirs) && is_pair(&change->overlap) &&
		 (change->kind != REVIEW_RENAMED || change->from != NULL)) ||
		err_set(err, EINVAL, "it does not hold together"));
}

static bool read_branch(const struct value *row, struct review_branch *branch,
			struct err *err)
{
	branch->commits = -1;
	(void)fields_read(row, commits_fields, branch, NULL, NULL);
	return fields_read(row, branch_fields, branch, NULL, err) &&
	       fields_read(row, moves_fields, branch, NULL, err) &&
	       fields_read(row, sound_fields, branch, NULL, err) &&
	       (is_hex(branch->commit) ||
		err_set(err, EINVAL, "commit: it has other signs than digits"));
}

static bool read_changes(struct review_report *report, const struct value *rows,
			 struct err *err)
{
	const size_t count = value_count(rows);

	if (count > ROWS_MAX)
		return err_set(err, E2BIG, "changes: too many");
	report->changes = memory_array(count + 1, sizeof(*report->changes));
	for (; report->count < count; report->count++) {
		if (!read_change(value_item(rows, report->count),
				 &report->changes[report->count], err))
			return err_while(err, "changes: %zu", report->count);
	}
	return true;
}

static bool read_branches(struct review_report *report, const struct value *rows,
			  struct err *err)
{
	const size_t count = value_count(rows);

	if (count > BRANCHES_MAX)
		return err_set(err, E2BIG, "git: refs: too many");
	report->branches = memory_array(count + 1, sizeof(*report->branches));
	for (; report->branch_count < count; report->branch_count++) {
		if (!read_branch(value_item(rows, report->branch_count),
				 &report->branches[report->branch_count], err))
			return err_while(err, "git: refs: %zu", report->branch_count);
	}
	for (size_t i = 0; i < report->tag_count; i++) {
		if (!is_hex(report->tags[i].commit))
			return err_set(err, EINVAL, "git: tags: %zu: commit", i);
	}
	return true;
}

bool review_report_parse(struct str text, struct review_report *report, struct err *err)
{
	report->diff = -1;
	return (value_parse(text, 0, &report->object, err) &&
		fields_read(report->object, report_fields, report, NULL, err) &&
		(is_hex(report->hash) ||
		 err_set(err, EINVAL, "hash: it has other signs than digits")) &&
		read_changes(report, value_member(report->object, "changes"), err) &&
		read_branches(report,
			      value_member(value_member(report->object, "git"), "refs"),
			      err)) ||
	       err_while(err, "the report of a layer");
}

void review_report_fini(struct review_report *report)
{
	fields_free(report_fields, report);
	free(report->changes);
	free(report->branches);
	value_free(report->object);
	if (report->diff > 0)
		(void)close(report->diff);
	*report = (struct review_report){.diff = -1};
}

bool review_report_has_news(const struct review_report *report)
{
	return report->count > 0 || report->branch_count > 0 || report->tag_count > 0 ||
	       report->stash || report->notes || report->staged || report->unread != NULL;
}

static struct value *side_value(const struct review_side *side)
{
	struct value *value;

	if (!side->there)
		return value_new_null();
	value = value_new_object();
	if (side->hash != NULL)
		fields_set(value, content_fields, side);
	fields_set(value, side_fields, side);
	return value;
}

static struct value *change_value(const struct review_change *change)
{
	struct value *value = fields_print(change_fields, change);

	value_set(value, "before", side_value(&change->before));
	value_set(value, "after", side_value(&change->after));
	value_set_boolean(value, "binary", change->type != NULL);
	fields_set(value, class_fields, change);
	if (change->class == REVIEW_REFUSED)
		fields_set(value, refused_fields, change);
	if (change->lines.count > 0)
		fields_set(value, lines_fields, change);
	return value;
}

static struct value *branch_value(const struct review_branch *branch)
{
	struct value *value = fields_print(branch_fields, branch);

	if (branch->commits >= 0)
		fields_set(value, commits_fields, branch);
	fields_set(value, moves_fields, branch);
	return value;
}

struct value *review_report_value(const struct review_report *report, const char *id)
{
	struct value *value = value_new_object();
	struct value *changes = value_new_array(), *branches = value_new_array();

	for (size_t i = 0; i < report->count; i++)
		value_append(changes, change_value(&report->changes[i]));
	for (size_t i = 0; i < report->branch_count; i++)
		value_append(branches, branch_value(&report->branches[i]));
	value_set_text(value, "id", id);
	value_set(value, "changes", changes);
	value_set_integer(value, "more", report->more);
	value_set(value, "branches", branches);
	fields_set(value, git_fields, report);
	value_set(value, "totals", fields_print(total_fields, report));
	value_set_boolean(value, "cut", report->cut != REVIEW_WHOLE);
	fields_set(value, end_fields, report);
	return value;
}

bool review_report_lacks_commits(const struct review_report *report)
{
	bool lacks = report->unread != NULL || report->trouble != NULL;

	for (size_t i = 0; i < report->branch_count && !lacks; i++)
		lacks = !report->branches[i].sound;
	return lacks;
}

/* The entries of the view. */

/* The ending of the place of the list of a copied tree. */
#define SHOWN_LIST ".list"

/* Show the part FD (or -1) of the tree N of REVIEW as ENTRY. */
static bool show_part(struct review_shown *shown, struct shape_shown *entry,
		      const struct review *review, size_t n, int fd, const char *ending,
		      struct err *err)
{
	char place[PATH_MAX];
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (fd < 0 || !fd_real_path(fd, &path)) {
		buf_fini(&path);
		return err_set(err, errno, "the files of review %s: %s", review->meta.id,
			       strerror(errno));
	}
	(void)snprintf(place, sizeof(place), REVIEW_SHOWN "/%s/%zu%s", review->meta.id, n,
		       ending);
	*entry = (struct shape_shown){
		.source = arena_copy(&shown->texts, buf_str(&path)),
		.path = arena_copy(&shown->texts, str_of(place)),
		.why = "the review",
		.layer = true,
	};
	buf_fini(&path);
	return true;
}

bool review_shown_fill(struct review_shown *shown, const struct review *review,
		       struct err *err)
{
	size_t count = 0;

	*shown = (struct review_shown){0};
	arena_init(&shown->texts);
	for (size_t i = 0; i < review->meta.tree_count; i++) {
		const bool copied = review->meta.trees[i].copied;
		auto_close int upper = review_open_upper(review, i);
		auto_close int list = copied ? review_open_list(review, i) : -1;

		if (!show_part(shown, &shown->entries[count++], review, i, upper, "", err) ||
		    (copied && !show_part(shown, &shown->entries[count++], review, i,
					  list, SHOWN_LIST, err)))
			return false;
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

/* The arguments of the worker. */
struct told_tree {
	const char *path;
	char *layer; /* the place of its upper folder in the view, or outside without one */
	char *list; /* of a copy: the place of its list; or NULL */
};
struct told {
	uint32_t log;
	const char *id;
	int64_t created_ms;
	struct told_tree *trees;
	size_t tree_count;
	const struct value *rights;
	bool diff, brief, markers, commits, rest, undone;
	const char *hash;
};

static const struct field told_tree_fields[] = {
	FIELD(struct told_tree, path),
	FIELD(struct told_tree, layer),
	FIELD(struct told_tree, list, .optional = true),
	{0},
};
static const struct field told_fields[] = {
	FIELD(struct told, log),
	FIELD(struct told, id),
	FIELD(struct told, created_ms),
	FIELD_LIST(struct told, trees, tree_count, "trees", told_tree_fields),
	FIELD(struct told, rights),
	FIELD(struct told, diff),
	FIELD(struct told, brief),
	FIELD(struct told, markers),
	FIELD(struct told, commits),
	FIELD(struct told, rest),
	FIELD(struct told, undone),
	FIELD(struct told, hash, .optional = true),
	{0},
};

/* The place of a part FD of tree INDEX of REVIEW, for the caller to free. */
static char *place_of(const struct session *session, const struct review *review,
		      size_t index, int fd, const char *ending)
{
	const bool sealed = spec_is_sealed(cell_spec(session->cell));
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (sealed || fd < 0 || !fd_real_path(fd, &path)) {
		buf_clear(&path);
		(void)buf_addf(&path, REVIEW_SHOWN "/%s/%zu%s", review->meta.id, index,
			       ending);
	}
	char *place = memory_copy_str(buf_str(&path));
	buf_fini(&path);
	return place;
}

/* Is STEP a landing of the layer ID? */
static bool is_landing(const struct undo_step *step, const char *id)
{
	return step->work == UNDO_BY_TOOL && strcmp(step->tool, LAND_TOOL) == 0 &&
	       strcmp(step->title, id) == 0;
}

/* Was any landing of the layer ID undone? */
static bool was_undone(const struct session *session, const char *id)
{
	struct undo_steps steps = {0};
	bool undone = false;

	if (keeper_keeps(session->keeper) &&
	    undo_store_steps(keeper_store(session->keeper), &steps, NULL)) {
		for (size_t i = 0; i < steps.count && !undone; i++)
			undone = steps.steps[i].undone && is_landing(&steps.steps[i], id);
	}
	undo_steps_fini(&steps);
	return undone;
}

static struct told_tree tell_tree(const struct session *session,
				  const struct review *review, size_t index)
{
	const struct review_tree *tree = &review->meta.trees[index];
	auto_close int upper = review_open_upper(review, index);
	auto_close int list = tree->copied ? review_open_list(review, index) : -1;

	return (struct told_tree){
		.path = tree->path,
		.layer = place_of(session, review, index, upper, ""),
		.list = tree->copied ? place_of(session, review, index, list, SHOWN_LIST)
				     : NULL,
	};
}

static void told_tree_fini(struct told_tree *tree)
{
	free(tree->layer);
	free(tree->list);
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
			const struct review_wish *wish, const struct shape_shown *lent,
			const struct files_of_call *files, struct tool_result *result)
{
	const struct review_meta *meta = &review->meta;
	struct told_tree trees[REVIEW_TREES_MAX];
	const struct told told = {
		.log = files->step,
		.id = meta->id,
		.created_ms = meta->created_ms,
		.trees = trees,
		.tree_count = meta->tree_count,
		.rights = meta->rights,
		.diff = wish->diff,
		.brief = wish->brief,
		.markers = wish->markers,
		.commits = !wish->no_commits,
		.rest = wish->rest,
		.undone = was_undone(session, meta->id),
		.hash = wish->hash,
	};

	for (size_t i = 0; i < meta->tree_count; i++)
		trees[i] = tell_tree(session, review, i);
	auto_value struct value *arguments = fields_print(told_fields, &told);
	for (size_t i = 0; i < meta->tree_count; i++)
		told_tree_fini(&trees[i]);
	const struct request request = {
		.tool = wish->lands ? LAND_TOOL : READ_TOOL,
		.arguments = arguments,
		.fds = {files->changes, files->report, files->diff, files->choices,
			files->log},
		.fd_count = wish->lands ? 5 : 4,
		.by_front = true,
		.unheard = wish->unheard,
		.lent = lent,
	};

	session_call(session, &request, result);
	return result->status == RESULT_DONE;
}

void review_say_unfinished(const char *id, uint32_t step, struct buf *out)
{
	if (step == 0)
		(void)buf_addf(out,
			       "Nothing was landed yet: `glovebox land --id %s` begins again.",
			       id);
	else
		(void)buf_addf(out,
			       "The landing is not finished: every file is old or new, and the "
			       "next `glovebox land --id %s` goes on. `glovebox review %s` shows "
			       "what is not landed yet, and `glovebox undo %" PRIu32
			       "` takes back what is.",
			       id, id, step);
}

bool session_review(struct session *session, const struct review *review,
		    const struct review_wish *wish, struct review_report *report,
		    struct tool_result *result)
{
	struct files_of_call files = {-1, -1, -1, -1, -1, 0};
	struct review_shown shown = {0};
	auto_close int held = -1;
	struct err err = {0};

	files.changes = review_open_log(review, wish->lands);
	bool fine = (!wish->lends || review_shown_fill(&shown, review, &err)) &&
		    (files.changes >= 0 ||
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
	const bool called = fine;
	fine = fine && call_worker(session, review, wish, shown.entries, &files, result);
	review_shown_fini(&shown);
	/* The worker was ended, and could tell nothing any more. */
	if (called && !fine && files.step != 0 && undo_store_is_used(files.log)) {
		(void)buf_end_line(&result->text);
		review_say_unfinished(review->meta.id, files.step, &result->text);
	}
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

		if (is_landing(step, id))
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

/* Open those layers of LIST again whose landing is undone in the stores of the folder UNDO. */
static void open_undone(const char *folder, const char *undo, const char *workspace,
			const struct review_list *list, struct buf *told)
{
	struct undo_store *store = NULL;
	struct undo_steps steps = {0};
	struct err err = {0};

	if (undo_store_open_old(undo, workspace, &store, &err) && store != NULL &&
	    undo_store_steps(store, &steps, &err)) {
		for (size_t i = 0; i < list->count; i++) {
			if (!list->items[i].damaged &&
			    list->items[i].meta.state == REVIEW_LANDED &&
			    is_undone(&steps, list->items[i].meta.id))
				open_again(folder, workspace, list->items[i].meta.id, told);
		}
	}
	undo_steps_fini(&steps);
	undo_store_close(store);
}

/* Open those of LIST again that were landed into the layer ID, where that is undone. */
static void open_undone_in(const char *folder, const char *workspace, const char *id,
			   const struct review_list *list, struct buf *told)
{
	struct review *review = NULL;
	char undo[PATH_MAX];
	bool has = false;

	for (size_t i = 0; i < list->count && !has; i++) {
		const struct review_meta *meta = &list->items[i].meta;

		has = !list->items[i].damaged && meta->state == REVIEW_LANDED &&
		      meta->over_count > 0 && strcmp(meta->over[0], id) == 0;
	}
	if (has && review_open(folder, workspace, id, &review, NULL) &&
	    snprintf(undo, sizeof(undo), "%s/undo", review->path) < (int)sizeof(undo))
		open_undone(folder, undo, workspace, list, told);
	review_close(review);
}

void review_reopen(const char *folder, const char *undo, const char *workspace,
		   struct buf *told)
{
	struct review_list list = {0};
	struct err err = {0};

	if (review_list_read(folder, workspace, &list, &err) && list.count > list.open) {
		if (undo != NULL)
			open_undone(folder, undo, workspace, &list, told);
		for (size_t i = 0; i < list.count; i++) {
			if (!list.items[i].damaged && list.items[i].meta.state == REVIEW_OPEN)
				open_undone_in(folder, workspace, list.items[i].meta.id,
					       &list, told);
		}
	}
	review_list_fini(&list);
}
