/*
 * glob: lists the files whose path fits a pattern, the newest first. Ignored files do not
 * count, but when no other file fits, the answer says which of them would. The worker that
 * looks at the workspace after commands has the names of all files at hand, and walks only
 * when something has changed since its last look.
 */

#include "tools/search/glob.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "tool/call.h"
#include "tool/tool.h"
#include "tools/looks/checkpoint.h"
#include "tools/search/walk.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GLOB_LIMIT     100
#define GLOB_LIMIT_MAX 1000 /* a longer list of names is no answer any more */

static const struct row glob_params[] = {
	{"pattern", ROW_TEXT, true,
	 "Like **/*.c, src/{a,b}/*.h or [A-Z]*.md; without a slash it fits names at any depth",
	 .aliases = "glob file_pattern", .min = 1, .max = PATTERN_MAX},
	{"path", ROW_FOLDER, false, "Folder to search; the workspace unless told",
	 .aliases = "folder dir directory", .initial = "\".\""},
	{"limit", ROW_COUNT, false, "Most files named", .aliases = "max_results",
	 .initial = SHOWN_NUMBER(GLOB_LIMIT), .min = 1, .max = GLOB_LIMIT_MAX},
	{0},
};

enum { GLOB_FLAGS = PATTERN_BRACES | PATTERN_BASENAME };

/* The findings of one thread; the first part gets the sum. */
struct glob_part {
	struct ranking best;
	uint64_t total; /* files that fit */
	char apart[WALK_APART];
};

/*
 * The request, after a pattern like /usr/include/x*.h is split into a folder and a
 * pattern.
 */
struct glob {
	char *path;              /* where to start */
	char *pattern;           /* relative to it */
	struct pattern_set *set; /* the same, compiled */
	/* the plain folders with which PATTERN begins; "": there are none */
	char *under;
	size_t depth;   /* of the deepest file that may fit, 0: any */
	bool from_list; /* the files are those of the list that this worker keeps */
	struct glob_part parts[WALK_THREADS_MAX];
};

/*
 * The size of the leading folders of PATTERN that are plain names, without the slash
 * behind them.
 */
static size_t plain_folders(const char *pattern)
{
	size_t special = strcspn(pattern, "*?[{\\");
	size_t at = special;

	while (at > 0 && pattern[at - 1] != '/')
		at--;
	return at > 0 ? at - 1 : 0;
}

static bool has_parent_step(const char *pattern)
{
	for (const char *at = pattern; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == '\0'))
			return true;
	}
	return false;
}

static size_t pattern_depth(const char *pattern)
{
	size_t depth = 1;

	if (!strchr(pattern, '/') || strstr(pattern, "**") || strchr(pattern, '{'))
		return 0;
	for (const char *at = pattern; *at; at++)
		depth += *at == '/';
	return depth;
}

static void glob_fini(struct glob *glob)
{
	if (!glob)
		return;
	for (size_t i = 0; i < WALK_THREADS_MAX; i++)
		ranking_fini(&glob->parts[i].best);
	free(glob->path);
	free(glob->pattern);
	free(glob->under);
	pattern_set_free(glob->set);
	free(glob);
}

/*
 * A pattern that begins outside the folder (an absolute one, "../") moves the start there.
 */
static struct glob *glob_new(const char *path, const char *pattern)
{
	struct glob *glob = memory_alloc(sizeof(*glob));
	struct buf text;

	buf_init(&text, 2 * PATTERN_MAX + PATH_MAX);
	while (strncmp(pattern, "./", 2) == 0)
		pattern += 2;
	if (pattern[0] == '/' || strncmp(pattern, "../", 3) == 0) {
		size_t folders = plain_folders(pattern);

		if (pattern[0] != '/')
			(void)buf_addf(&text, "%s/", path);
		(void)buf_addf(&text, "%.*s", (int)folders, pattern);
		glob->path = memory_copy(text.size > 0 ? text.data : "/");
		pattern += folders;
		pattern += *pattern == '/';
	} else {
		glob->path = memory_copy(path);
	}
	buf_clear(&text);
	(void)buf_adds(&text, pattern);
	/* A pattern that names a folder means the files in the folder. */
	if (str_ends(buf_str(&text), STR("/")) || text.size == 0)
		(void)buf_adds(&text, "**");
	glob->pattern = buf_take(&text);
	glob->under =
		memory_copy_str((struct str){glob->pattern, plain_folders(glob->pattern)});
	glob->depth = pattern_depth(glob->pattern);
	glob->set = pattern_set_new(str_of(glob->pattern), GLOB_FLAGS);
	buf_fini(&text);
	return glob;
}

static void glob_visit(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct glob *glob = owner;
	struct glob_part *part = &glob->parts[walker_number(walker)];
	/* The path is borrowed until the ranking takes the file. */
	struct found found = {
		.path = (char *)(uintptr_t)entry->path.data,
		.kind = (int)entry->kind,
	};
	struct stat st;

	if (entry->kind == WALK_OTHER || !pattern_set_match(glob->set, entry->path) ||
	    fstatat(entry->folder_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	part->total++;
	found.time_ns = clock_ns(&st.st_mtim);
	found.size = (uint64_t)st.st_size;
	if (!ranking_wants(&part->best, &found))
		return;
	found.path = memory_copy_str(entry->path);
	ranking_add(&part->best, found);
}

/* A list that is asked for names. */
struct glob_list {
	struct glob *glob;
	int workspace;
};

/* As glob_visit, for a row of the list. */
static void glob_take(void *context, const struct undo_row *row)
{
	const struct glob_list *list = context;
	struct glob_part *part = &list->glob->parts[0];
	struct found found = {
		.path = (char *)(uintptr_t)row->path.data,
		.kind = row->state.kind == UNDO_LINK ? WALK_LINK : WALK_FILE,
		.time_ns = row->state.mtime_ns,
		.size = row->state.size,
	};
	struct stat st;

	if ((row->state.kind != UNDO_FILE && row->state.kind != UNDO_LINK) ||
	    !pattern_set_match(list->glob->set, row->path))
		return;
	/* A file that was looked at while it was written has no times in the list. */
	if (row->state.inode == 0 &&
	    fstatat(list->workspace, row->path.data, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		found.time_ns = clock_ns(&st.st_mtim);
		found.size = (uint64_t)st.st_size;
	}
	part->total++;
	if (!ranking_wants(&part->best, &found))
		return;
	found.path = memory_copy_str(row->path);
	ranking_add(&part->best, found);
}

static void glob_begin(struct glob *glob, size_t limit)
{
	for (size_t i = 0; i < WALK_THREADS_MAX; i++) {
		glob->parts[i].total = 0;
		ranking_init(&glob->parts[i].best, limit, found_newer);
	}
}

/*
 * Find the files in the list that this worker keeps. False: it keeps none, or the list does
 * not have them (glob_must_go).
 */
static bool glob_list(struct glob *glob, const struct walk_start *start, size_t limit,
		      struct walk_summary *summary)
{
	struct glob_list list = {glob, start->fd};
	struct checkpoint_names_wanted wanted = {
		.under = str_of(glob->under),
		.part = pattern_set_text(glob->set),
		.each = glob_take,
		.context = &list,
	};

	if (!str_is(str_of(glob->path), ".") || start->ignored)
		return false;
	glob_begin(glob, limit);
	glob->from_list = checkpoint_each_name(&wanted) == CHECKPOINT_LISTED;
	summary->entries += wanted.entries;
	summary->ignored += wanted.ignored;
	ranking_sort(&glob->parts[0].best);
	return glob->from_list;
}

/* A worker that makes looks does not walk. RESULT says that another must make the call. */
static bool glob_must_go(struct tool_result *result)
{
	if (!checkpoint_is_made_here())
		return false;
	value_set_boolean(tool_details(result), TOOL_NOT_LISTED, true);
	(void)tool_fail(result, "The list of names does not have them.");
	return true;
}

static void glob_walk(struct glob *glob, const struct walk_start *start,
		      struct walk_options *options, size_t limit,
		      struct walk_summary *summary)
{
	struct glob_part *all = &glob->parts[0];

	glob_begin(glob, limit);
	options->visit = glob_visit;
	options->owner = glob;
	options->depth = glob->depth;
	options->under = glob->under;
	walk_run(start, options, summary);
	for (size_t i = 1; i < WALK_THREADS_MAX; i++) {
		ranking_take_all(&all->best, &glob->parts[i].best);
		all->total += glob->parts[i].total;
	}
	ranking_sort(&all->best);
}

/* No file fits except among the ignored ones: name those of them that do. */
static void glob_ignored(struct call *call, struct glob *glob,
			 const struct walk_start *start, struct tool_result *result)
{
	struct walk_options options = {
		.call = call,
		.ignored_only = true,
		.until_ms = clock_now_ms() + SEARCH_IGNORED_MS,
	};
	struct walk_summary summary;
	uint64_t total;

	walk_summary_init(&summary);
	glob_walk(glob, start, &options, SEARCH_IGNORED_SHOWN, &summary);
	total = glob->parts[0].total;
	if (total > 0) {
		(void)buf_adds(&result->text,
			       "Among ignored files (.gitignore) these fit: ");
		glob_search_add_names(start, &glob->parts[0].best, total, &result->text);
		(void)buf_adds(&result->text, ". Name their folder as path to search it.\n");
	}
	glob_search_add_ignored_gap(&summary, total > 0, &result->text);
	walk_summary_fini(&summary);
	value_set_integer(tool_details(result), "ignored_fitting", (int64_t)total);
	ranking_fini(&glob->parts[0].best);
}

static void glob_say_none(const struct glob *glob, const struct walk_start *start,
			  const struct walk_summary *summary, struct buf *out)
{
	if (summary->end == WALK_COMPLETE)
		(void)buf_adds(out, "No file fits ");
	else
		(void)buf_adds(out, "Nothing found in the part that was searched for ");
	shown_add(str_of(glob->pattern), out);
	glob_search_add_where(start, out);
	(void)buf_addf(out, " (%" PRIu64 " entries looked at).", summary->entries);
	if (!pattern_is_one(str_of(glob->pattern)))
		(void)buf_addf(out,
			       " For a part of a name use *%s*; list_files shows folders.",
			       glob->pattern);
	(void)buf_addc(out, '\n');
}

static void glob_say_some(const struct call *call, const struct glob *glob,
			  uint64_t shown, struct buf *out)
{
	uint64_t total = glob->parts[0].total;
	int64_t limit = call_count(call, "limit", GLOB_LIMIT);

	(void)buf_addf(out, "%" PRIu64 " file%s ", total, total == 1 ? " fits" : "s fit");
	shown_add(str_of(glob->pattern), out);
	(void)buf_adds(out, ", newest first");
	if (shown < total)
		(void)buf_addf(out, "; the newest %" PRIu64 " follow%s", shown,
			       shown == (uint64_t)limit && limit < GLOB_LIMIT_MAX
				       ? " (limit=" SHOWN_NUMBER(GLOB_LIMIT_MAX) " shows more)"
				       : " (narrow the pattern to see the others)");
	(void)buf_adds(out, ".\n");
}

static void glob_show(struct call *call, struct glob *glob, const struct walk_start *start,
		      const struct walk_summary *summary, struct tool_result *result)
{
	const struct ranking *found = &glob->parts[0].best;
	uint64_t total = glob->parts[0].total;
	struct value *paths = call->terse ? NULL : value_new_array();
	struct buf text;
	size_t shown;

	buf_init(&text, RESULT_TEXT_MAX);
	for (shown = 0; shown < found->count && text.size < SEARCH_TEXT_MAX; shown++) {
		size_t from = text.size;

		walk_start_name(start, str_of(found->items[shown].path), &text);
		if (paths != NULL)
			value_append(paths, value_new_str(str_part(buf_str(&text), from,
								   text.size)));
		(void)buf_addc(&text, '\n');
	}
	if (total > 0)
		glob_say_some(call, glob, shown, &result->text);
	else
		glob_say_none(glob, start, summary, &result->text);
	glob_search_add_ignored(start, &result->text);
	glob_search_add_gaps(start, summary, &result->text);
	if (total > 0)
		(void)buf_addc(&result->text, '\n');
	(void)buf_addstr(&result->text, buf_str(&text));
	buf_fini(&text);
	result->left_out_lines = total - shown;
	if (paths == NULL)
		return;
	value_set_integer(tool_details(result), "found", (int64_t)total);
	value_set(tool_details(result), "paths", paths);
	value_set_boolean(tool_details(result), "from_list", glob->from_list);
	glob_search_set_details(result, summary);
}

/* Search from START, and put the answer into RESULT. */
static void glob_from(struct call *call, struct glob *glob,
		      const struct walk_start *start, struct tool_result *result)
{
	const size_t limit = (size_t)call_count(call, "limit", GLOB_LIMIT);
	const struct glob_part *all = &glob->parts[0];
	struct walk_options options = {.call = call};
	struct walk_summary summary;

	walk_summary_init(&summary);
	const bool listed = glob_list(glob, start, limit, &summary);
	/*
	 * Of ignored files the list has no more than some names, and no name for one in an
	 * ignored folder.
	 */
	const bool wants_more =
		!listed ||
		(all->total == 0 && (summary.ignored > 0 || glob->under[0] != '\0'));
	if (!wants_more || !glob_must_go(result)) {
		if (!listed)
			glob_walk(glob, start, &options, limit, &summary);
		glob_show(call, glob, start, &summary, result);
		if (all->total == 0 && summary.end == WALK_COMPLETE && summary.ignored > 0) {
			ranking_fini(&glob->parts[0].best);
			glob_ignored(call, glob, start, result);
		}
		(void)glob_search_end(call, result, &summary);
	}
	walk_summary_fini(&summary);
}

static enum result_status glob_execute(struct call *call, struct tool_result *result)
{
	struct glob *glob;
	struct walk_start start;
	struct err err;

	if (!pattern_check(call_str(call, "pattern"), GLOB_FLAGS, &err))
		return tool_fail(result, "pattern is not well-formed: %s", err.text);
	glob = glob_new(call_text(call, "path"), call_text(call, "pattern"));
	if (has_parent_step(glob->pattern)) {
		(void)tool_fail(result, "pattern cannot climb with \"..\"; name the folder to "
					"search as path instead.");
	} else if (str_is(str_of(glob->path), ".") || !glob_must_go(result)) {
		if (walk_start_open(&start, call, glob->path, &err))
			glob_from(call, glob, &start, result);
		else
			(void)shown_fail(call, result, glob->path, &err);
		walk_start_fini(&start);
	}
	glob_fini(glob);
	return result->status;
}

const struct tool glob_tool = {
	.name = "glob",
	.description = "Find files by a path pattern with * ? [] {} and **, newest first. "
		       "Ignored files (.gitignore) are left out.",
	.example = "{\"pattern\": \"src/**/*.c\"}",
	.aliases = "find_files search_files",
	.params = glob_params,
	.effects = EFFECT_READS,
	.searches = true,
	.by_resident = true,
	.timeout_s = 10,
	.execute = glob_execute,
};

/* A binary heap. The item at its top is the first to be dropped. */

bool found_newer(const struct found *a, const struct found *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns;
	return strcmp(a->path, b->path) < 0;
}

void ranking_init(struct ranking *ranking, size_t max, ranking_before *before)
{
	*ranking = (struct ranking){.before = before, .max = max};
}

static void found_fini(struct found *found)
{
	free(found->path);
	free(found->target);
}

void ranking_fini(struct ranking *ranking)
{
	for (size_t i = 0; i < ranking->count; i++)
		found_fini(&ranking->items[i]);
	free(ranking->items);
	ranking->items = NULL;
	ranking->count = 0;
}

bool ranking_wants(const struct ranking *ranking, const struct found *found)
{
	if (ranking->count < ranking->max)
		return true;
	return ranking->max > 0 && ranking->before(found, &ranking->items[0]);
}

static void ranking_swap(struct ranking *ranking, size_t a, size_t b)
{
	struct found kept = ranking->items[a];

	ranking->items[a] = ranking->items[b];
	ranking->items[b] = kept;
}

/* Let the item AT sink to its place among the first COUNT. */
static void ranking_sink(struct ranking *ranking, size_t at, size_t count)
{
	for (;;) {
		size_t last = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count;
		     child++) {
			if (ranking->before(&ranking->items[last], &ranking->items[child]))
				last = child;
		}
		if (last == at)
			return;
		ranking_swap(ranking, at, last);
		at = last;
	}
}

void ranking_add(struct ranking *ranking, struct found take_found)
{
	size_t at = ranking->count;

	if (!ranking_wants(ranking, &take_found)) {
		found_fini(&take_found);
		return;
	}
	if (ranking->count == ranking->max) {
		found_fini(&ranking->items[0]);
		ranking->items[0] = take_found;
		ranking_sink(ranking, 0, ranking->count);
		return;
	}
	ranking->items =
		memory_more(ranking->items, ranking->count, sizeof(*ranking->items));
	ranking->items[ranking->count++] = take_found;
	while (at > 0 &&
	       ranking->before(&ranking->items[(at - 1) / 2], &ranking->items[at])) {
		ranking_swap(ranking, at, (at - 1) / 2);
		at = (at - 1) / 2;
	}
}

void ranking_take_all(struct ranking *ranking, struct ranking *other)
{
	for (size_t i = 0; i < other->count; i++)
		ranking_add(ranking, other->items[i]);
	other->count = 0;
	ranking_fini(other);
}

void ranking_sort(struct ranking *ranking)
{
	/*
	 * The top is the last of all, so it moves behind the rest, and the rest becomes a
	 * heap again.
	 */
	for (size_t left = ranking->count; left > 1; left--) {
		ranking_swap(ranking, 0, left - 1);
		ranking_sink(ranking, 0, left - 1);
	}
}

void ranking_sort_by(struct ranking *ranking, ranking_before *before)
{
	ranking->before = before;
	for (size_t at = ranking->count / 2; at-- > 0;)
		ranking_sink(ranking, at, ranking->count);
	ranking_sort(ranking);
}

/* Sentences and names of the searching tools. */

void glob_search_add_where(const struct walk_start *start, struct buf *out)
{
	(void)buf_adds(out, " in ");
	if (str_is(buf_str(&start->shown), "."))
		(void)buf_adds(out, "the workspace");
	else
		walk_start_name(start, STR(""), out);
}

void glob_search_add_ignored(const struct walk_start *start, struct buf *out)
{
	if (start->ignored)
		(void)buf_adds(out, "The folder is itself ignored by a .gitignore; no ignore rule "
				    "is applied in it.\n");
}

void glob_search_add_gaps(const struct walk_start *start,
			  const struct walk_summary *summary, struct buf *out)
{
	if (summary->end == WALK_STOPPED)
		(void)buf_addf(out,
			       "Stopped early, out of time, after %" PRIu64
			       " entries: there may be more. Name a smaller path.\n",
			       summary->entries);
	if (summary->end == WALK_FULL)
		(void)buf_addf(out,
			       "Stopped early after %" PRIu64
			       " entries: the tree is too large to be searched at once, there "
			       "may be more. Name a smaller path.\n",
			       summary->entries);
	if (summary->unreadable > 0) {
		(void)text_add_count(out, summary->unreadable, "folder");
		(void)buf_adds(out, " could not be read: ");
		walk_start_name(start, buf_str(&summary->example), out);
		(void)buf_adds(out, summary->unreadable > 1 ? " and others.\n" : ".\n");
	}
	if (summary->too_long > 0) {
		(void)text_add_count(out, summary->too_long, "path");
		(void)buf_adds(out, " longer than any program can open, left out.\n");
	}
}

void glob_search_add_ignored_gap(const struct walk_summary *summary, bool found,
				 struct buf *out)
{
	if (summary->end == WALK_COMPLETE)
		return;
	(void)buf_adds(out, found ? "Not all ignored files were looked at.\n"
				  : "Ignored files (.gitignore) were looked into for a moment "
				    "only, with nothing found so far. Name one of their "
				    "folders as path to search it.\n");
}

void glob_search_set_details(struct tool_result *result, const struct walk_summary *summary)
{
	struct value *details = tool_details(result);

	value_set_boolean(details, "stopped_early",
			  summary->end == WALK_STOPPED || summary->end == WALK_FULL ||
				  summary->end == WALK_GIVEN_UP);
	value_set_integer(details, "entries", (int64_t)summary->entries);
	value_set_integer(details, "ignored", (int64_t)summary->ignored);
	value_set_integer(details, "unreadable_folders", (int64_t)summary->unreadable);
}

void glob_search_add_names(const struct walk_start *start, const struct ranking *found,
			   uint64_t total, struct buf *out)
{
	for (size_t i = 0; i < found->count; i++) {
		(void)buf_adds(out, i > 0 ? ", " : "");
		walk_start_name(start, str_of(found->items[i].path), out);
	}
	if (total > found->count)
		(void)buf_addf(out, " and %" PRIu64 " more", total - found->count);
}

enum result_status glob_search_end(struct call *call, struct tool_result *result,
				   const struct walk_summary *summary)
{
	if (summary->end != WALK_STOPPED)
		return tool_done(result);
	if (call->cancelled) {
		buf_clear(&result->text);
		return call_stop_result(call, result);
	}
	result->status = RESULT_TIMED_OUT;
	return result->status;
}
