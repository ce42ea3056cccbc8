/*
 * list_files: the content of a folder, some levels deep: names, sizes, kinds, folders
 * first with their counts. When the limit cuts the list, the upper levels are shown
 * before the lower ones, and each folder says how many of its entries are missing.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tool/call.h"
#include "tools/search/glob.h"
#include "tools/search/walk.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIST_DEPTH     2
#define LIST_DEPTH_MAX 5   /* for a whole tree there is glob */
#define LIST_LIMIT     300 /* some 10 KB of text */
#define LIST_LIMIT_MAX 1000

static const struct row list_files_params[] = {
	{"path", ROW_FOLDER, false, "Folder to list; the workspace unless told",
	 .aliases = "folder dir directory", .initial = "\".\""},
	{"pattern", ROW_TEXT, false,
	 "Only names that fit, like *.c or src/**/test_*; without a slash at any depth",
	 .aliases = "glob", .min = 1, .max = PATTERN_MAX},
	{"depth", ROW_COUNT, false, "Levels shown", .aliases = "max_depth",
	 .initial = SHOWN_NUMBER(LIST_DEPTH), .min = 1, .max = LIST_DEPTH_MAX},
	{"limit", ROW_COUNT, false, "Most entries shown", .aliases = "max_results",
	 .initial = SHOWN_NUMBER(LIST_LIMIT), .min = 1, .max = LIST_LIMIT_MAX},
	{0},
};

enum { LIST_FLAGS = PATTERN_BRACES | PATTERN_BASENAME };

/* The findings of one thread; the first part gets the sum. */
struct listing_part {
	struct ranking best;
	uint64_t files, folders; /* that fit */
	char apart[WALK_APART];
};

struct listing {
	struct pattern_set *pattern; /* NULL: none */
	struct listing_part parts[WALK_THREADS_MAX];
};

/* The part of PATH before its last name, without the slash. */
static struct str path_folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	return (struct str){path, slash ? (size_t)(slash - path) : 0};
}

/*
 * Upper levels come first, so that the limit cuts the lowest ones. Within a level,
 * folders come first, then names.
 */
static bool listing_before(const struct found *a, const struct found *b)
{
	bool is_folder_a = a->kind == WALK_FOLDER;

	if (a->depth != b->depth)
		return a->depth < b->depth;
	if (is_folder_a != (b->kind == WALK_FOLDER) &&
	    str_equal(path_folder(a->path), path_folder(b->path)))
		return is_folder_a;
	return strcmp(a->path, b->path) < 0;
}

/* The order of printing: each folder is followed by its content, folders before files. */
static bool listing_printed_before(const struct found *a, const struct found *b)
{
	const char *x = a->path;
	const char *y = b->path;
	size_t common = 0;
	size_t from;
	bool folder_x, folder_y;

	while (x[common] && x[common] == y[common])
		common++;
	for (from = common; from > 0 && x[from - 1] != '/'; from--)
		;
	if (x[common] == '\0' || y[common] == '\0') {
		/* One of the two may be the folder that holds the other. */
		if (x[common] == '\0' && y[common] == '/')
			return true;
		if (y[common] == '\0' && x[common] == '/')
			return false;
	}
	folder_x = strchr(x + from, '/') || a->kind == WALK_FOLDER;
	folder_y = strchr(y + from, '/') || b->kind == WALK_FOLDER;
	if (folder_x != folder_y)
		return folder_x;
	/*
	 * "a/x" comes before "a.b/x": compare whole names, not the slash behind a name.
	 */
	if (x[common] == '/' || y[common] == '/')
		return x[common] == '/';
	return (unsigned char)x[common] < (unsigned char)y[common];
}

static void listing_visit(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct listing *listing = owner;
	struct listing_part *part = &listing->parts[walker_number(walker)];
	/*
	 * The path is borrowed until the ranking takes it; most entries of a large tree
	 * are not taken.
	 */
	struct found found = {
		.path = (char *)(uintptr_t)entry->path.data,
		.depth = entry->depth,
		.kind = (int)entry->kind,
		.count = entry->files,
		.size = entry->folders,
		.ignored = entry->ignored,
	};
	struct stat st;

	if (entry->depth > 0 && listing->pattern &&
	    !pattern_set_match(listing->pattern, entry->path))
		return;
	part->folders += entry->depth > 0 && entry->kind == WALK_FOLDER;
	part->files += entry->kind != WALK_FOLDER;
	if (!ranking_wants(&part->best, &found))
		return;
	found.path = memory_copy_str(entry->path);
	if (entry->kind == WALK_FOLDER) {
		found.time_ns = entry->folder_fd < 0 ? -1 : 0;
	} else if (fstatat(entry->folder_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		found.size = (uint64_t)st.st_size;
		found.count = st.st_mode;
	}
	if (entry->kind == WALK_LINK) {
		char target[PATH_MAX];
		ssize_t n =
			readlinkat(entry->folder_fd, entry->name, target, sizeof(target));

		if (n > 0)
			found.target = memory_copy_str((struct str){target, (size_t)n});
	}
	ranking_add(&part->best, found);
}

static const char *kind_name(const struct found *found)
{
	mode_t mode = (mode_t)found->count;

	switch ((enum walk_kind)found->kind) {
	case WALK_FILE:
		return "file";
	case WALK_FOLDER:
		return "folder";
	case WALK_LINK:
		return "link";
	case WALK_OTHER:
		break;
	}
	if (S_ISFIFO(mode))
		return "pipe";
	if (S_ISSOCK(mode))
		return "socket";
	return S_ISCHR(mode) || S_ISBLK(mode) ? "device" : "other";
}

static void add_folder_counts(const struct found *folder, uint64_t shown, bool entered,
			      struct buf *out)
{
	uint64_t all = folder->count + folder->size;

	if (folder->time_ns < 0) {
		(void)buf_adds(out, "cannot be read");
		return;
	}
	if (all == 0)
		(void)buf_adds(out, "empty");
	if (folder->size > 0)
		(void)text_add_count(out, folder->size, "folder");
	if (folder->size > 0 && folder->count > 0)
		(void)buf_adds(out, ", ");
	if (folder->count > 0)
		(void)text_add_count(out, folder->count, "file");
	if (folder->ignored > 0)
		(void)buf_addf(out, ", %" PRIu64 " ignored", folder->ignored);
	if (entered && shown < all)
		(void)buf_addf(out, " (%" PRIu64 " of %" PRIu64 " shown)", shown, all);
}

/* How many of the sorted ITEMS lie directly in the folder at AT. */
static uint64_t listing_shown_below(const struct ranking *items, size_t at)
{
	const struct found *folder = &items->items[at];
	size_t size = strlen(folder->path);
	uint64_t shown = 0;

	for (size_t i = at + 1; i < items->count && items->items[i].depth > folder->depth;
	     i++) {
		const struct found *item = &items->items[i];

		if (size == 0 || (strncmp(item->path, folder->path, size) == 0 &&
				  item->path[size] == '/'))
			shown += item->depth == folder->depth + 1;
	}
	return shown;
}

static void add_row(const struct walk_start *start, const struct ranking *items,
		    size_t at, bool entered, struct buf *out)
{
	const struct found *found = &items->items[at];
	char size[32];

	walk_start_name(start, str_of(found->path), out);
	switch ((enum walk_kind)found->kind) {
	case WALK_FOLDER:
		(void)buf_adds(out, "/  ");
		add_folder_counts(found, entered ? listing_shown_below(items, at) : 0,
				  entered, out);
		break;
	case WALK_FILE:
		(void)buf_addf(out, "  %s", text_size(found->size, size));
		break;
	case WALK_LINK:
		(void)buf_adds(out, " -> ");
		shown_add(str_of(found->target), out);
		break;
	case WALK_OTHER:
		(void)buf_addf(out, "  (%s)", kind_name(found));
		break;
	}
	(void)buf_addc(out, '\n');
}

static struct value *row_value(const struct walk_start *start, const struct found *found)
{
	struct value *row = value_new_object();
	struct buf name;

	buf_init(&name, 4 * PATH_MAX);
	walk_start_name(start, str_of(found->path), &name);
	value_set_text(row, "path", name.data);
	buf_fini(&name);
	value_set_text(row, "kind", kind_name(found));
	if (found->kind == WALK_FOLDER) {
		value_set_integer(row, "folders", (int64_t)found->size);
		value_set_integer(row, "files", (int64_t)found->count);
		value_set_integer(row, "ignored", (int64_t)found->ignored);
	} else {
		value_set_integer(row, "size", (int64_t)found->size);
	}
	if (found->target)
		value_set_text(row, "target", found->target);
	return row;
}

static void add_heading(const struct call *call, const struct listing *listing,
			const struct walk_start *start, const struct walk_summary *summary,
			uint64_t shown, struct buf *out)
{
	uint64_t folders = listing->parts[0].folders;
	uint64_t files = listing->parts[0].files;
	const char *pattern = call_text(call, "pattern");

	walk_start_name(start, STR(""), out);
	(void)buf_adds(out, ": ");
	(void)text_add_count(out, folders, "folder");
	(void)buf_adds(out, " and ");
	(void)text_add_count(out, files, "file");
	if (pattern) {
		(void)buf_adds(out, " fitting ");
		shown_add(str_of(pattern), out);
	}
	(void)buf_addf(out, " down to depth %" PRId64,
		       call_count(call, "depth", LIST_DEPTH));
	if (shown < folders + files)
		(void)buf_addf(out, "; %" PRIu64 " shown, the upper levels first", shown);
	(void)buf_adds(out, ".\n");
	glob_search_add_ignored(start, out);
	if (summary->ignored > 0)
		(void)buf_addf(out, "Left out as ignored (.gitignore): %" PRIu64 ".\n",
			       summary->ignored);
}

static void listing_show(struct call *call, struct tool_result *result,
			 const struct walk_start *start, const struct listing *listing,
			 const struct walk_summary *summary)
{
	size_t depth = (size_t)call_count(call, "depth", LIST_DEPTH);
	struct value *rows = call->terse ? NULL : value_new_array();
	const struct ranking *items = &listing->parts[0].best;
	uint64_t found = listing->parts[0].folders + listing->parts[0].files;
	uint64_t shown = 0;
	struct buf text;
	size_t i;

	buf_init(&text, RESULT_TEXT_MAX);
	for (i = 0; i < items->count && text.size < SEARCH_TEXT_MAX; i++) {
		const struct found *item = &items->items[i];

		/* The start itself is in the heading. */
		if (item->depth == 0)
			continue;
		add_row(start, items, i, !listing->pattern && item->depth < depth, &text);
		if (rows != NULL)
			value_append(rows, row_value(start, item));
		shown++;
	}
	add_heading(call, listing, start, summary, shown, &result->text);
	glob_search_add_gaps(start, summary, &result->text);
	(void)buf_addc(&result->text, '\n');
	(void)buf_addstr(&result->text, buf_str(&text));
	if (shown < found)
		(void)buf_addf(&result->text,
			       "[%" PRIu64
			       " more not shown: name a folder as path, a pattern, or a "
			       "smaller depth]\n",
			       found - shown);
	buf_fini(&text);
	result->left_out_lines = found - shown;
	if (rows == NULL)
		return;
	value_set(tool_details(result), "rows", rows);
	value_set_integer(tool_details(result), "found", (int64_t)found);
	glob_search_set_details(result, summary);
}

/* When the path is a file, the list is one line about the file. */
static enum result_status list_one_file(struct call *call, struct tool_result *result,
					const char *path, const struct err *err)
{
	struct file file;
	struct err why;
	char size[32];

	file_init(&file);
	if (!files_reach(call->files, path, FILES_ANY, &file, &why) ||
	    !S_ISREG(file.st.st_mode)) {
		file_fini(&file);
		return shown_fail(call, result, path, err);
	}
	shown_add(str_of(files_shown(call->files, file.path.data)), &result->text);
	(void)buf_addf(&result->text, " is a file of %s. read_file shows it.\n",
		       text_size((uint64_t)file.st.st_size, size));
	value_set_integer(tool_details(result), "size", (int64_t)file.st.st_size);
	file_fini(&file);
	return tool_done(result);
}

static enum result_status list_files_execute(struct call *call, struct tool_result *result)
{
	const char *path = call_text(call, "path");
	struct listing *listing;
	struct listing_part *all;
	struct walk_options options = {
		.call = call,
		.depth = (size_t)call_count(call, "depth", LIST_DEPTH),
		.with_folders = true,
		.visit = listing_visit,
	};
	/* One more for the start itself. */
	size_t limit = (size_t)call_count(call, "limit", LIST_LIMIT) + 1;
	struct walk_start start;
	struct walk_summary summary;
	struct err err;

	if (call_text(call, "pattern") &&
	    !pattern_check(call_str(call, "pattern"), LIST_FLAGS, &err))
		return tool_fail(result, "pattern is not well-formed: %s", err.text);
	if (!walk_start_open(&start, call, path, &err)) {
		walk_start_fini(&start);
		return err.code == ENOTDIR ? list_one_file(call, result, path, &err)
					   : shown_fail(call, result, path, &err);
	}
	listing = memory_alloc(sizeof(*listing));
	all = &listing->parts[0];
	if (call_text(call, "pattern"))
		listing->pattern = pattern_set_new(call_str(call, "pattern"), LIST_FLAGS);
	for (size_t i = 0; i < WALK_THREADS_MAX; i++)
		ranking_init(&listing->parts[i].best, limit, listing_before);
	options.owner = listing;
	walk_summary_init(&summary);
	walk_run(&start, &options, &summary);
	for (size_t i = 1; i < WALK_THREADS_MAX; i++) {
		ranking_take_all(&all->best, &listing->parts[i].best);
		all->files += listing->parts[i].files;
		all->folders += listing->parts[i].folders;
	}
	ranking_sort_by(&all->best, listing_printed_before);
	listing_show(call, result, &start, listing, &summary);
	ranking_fini(&all->best);
	pattern_set_free(listing->pattern);
	free(listing);
	(void)glob_search_end(call, result, &summary);
	walk_summary_fini(&summary);
	walk_start_fini(&start);
	return result->status;
}

const struct tool list_files_tool = {
	.name = "list_files",
	.description = "List a folder: names, sizes and kinds, " SHOWN_NUMBER(
		LIST_DEPTH) " levels deep unless told. Folders come first, with counts. "
			    "Ignored files (.gitignore) are left out and counted.",
	.example = "{\"path\": \"src\", \"depth\": 1}",
	.aliases = "ls list_dir list_directory",
	.params = list_files_params,
	.effects = EFFECT_READS,
	.searches = true,
	.timeout_s = 10,
	.execute = list_files_execute,
};
