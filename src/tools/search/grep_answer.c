/*
 * grep_answer: what was found as a model reads it: the totals first, then lines, files or
 * counts, the newest file first. The files shown are opened once more for their lines;
 * all others were only counted.
 */
#include "tools/search/grep.h"

#include "base/fd.h"
#include "base/text/text.h"
#include "tools/search/grep_show.h"
#include "tools/search/search.h"
#include "tools/shown.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

/* A name with every byte escaped at its longest. */
enum { NAME_SHOWN_MAX = 4 * PATH_MAX };

/* An answer on its way. */
struct answer {
	struct grep *grep;
	struct buf body;
	struct value *rows;
	uint64_t shown;   /* lines, or files in the modes that show files */
	size_t next_file; /* in the ranking, behind the last one shown */
	uint64_t gone;    /* files that were changed or removed meanwhile */
	struct buf cut;   /* what shows more of the first line that was cut */
};

static void add_plural(struct buf *out, uint64_t count, const char *one, const char *many)
{
	(void)buf_addf(out, "%" PRIu64 " %s", count, count == 1 ? one : many);
}

static int answer_open(const struct grep *grep, const char *path)
{
	if (grep->file_fd < 0)
		return walk_start_open_file(&grep->start, path);
	if (lseek(grep->file_fd, 0, SEEK_SET) < 0)
		return -1;
	return dup(grep->file_fd);
}

/* Lines SKIP and following of the file FOUND. */
static void answer_lines_of(struct answer *answer, const struct found *found, uint64_t skip)
{
	struct grep *grep = answer->grep;
	struct grep_worker *worker = &grep->workers[0];
	auto_close int fd = answer_open(grep, found->path);
	size_t before = answer->body.size;
	struct grep_show show = {
		.scan = &worker->scan,
		.context = grep->context,
		.skip = skip,
		.want = grep->limit - answer->shown,
		.text_max = SEARCH_TEXT_MAX,
		.out = &answer->body,
		.rows = answer->rows,
	};
	struct buf name;

	if (fd < 0) {
		answer->gone++;
		return;
	}
	buf_init(&name, NAME_SHOWN_MAX);
	walk_start_name(&grep->start, str_of(found->path), &name);
	show.name = name.data;
	(void)buf_addf(&answer->body, "%s%s\n", before > 0 ? "\n" : "", name.data);
	/* A name that reaches the ceiling is followed by a line of its file all the same. */
	if (answer->body.size >= show.text_max)
		show.text_max = answer->body.size + 1;
	grep_scan_begin(&worker->scan, fd, worker->short_is_end);
	/* It was text when its lines were counted. */
	worker->scan.checked = true;
	grep_show_file(&show);
	if (show.shown == 0) {
		buf_truncate(&answer->body, before);
		answer->gone++;
	}
	answer->shown += show.shown;
	if (show.first_cut > 0 && answer->cut.size == 0) {
		(void)buf_addf(&answer->cut,
			       "Lines over %d bytes are cut, as line %" PRIu64 " of ",
			       GREP_LINE_MAX, show.first_cut);
		(void)buf_adds(&answer->cut, name.data);
		(void)buf_adds(&answer->cut, ": ");
		shown_add_line_calls(name.data, show.first_cut, show.gap, true,
				     &answer->cut);
		(void)buf_adds(&answer->cut, ".\n");
	}
	buf_fini(&name);
}

static void answer_lines(struct answer *answer)
{
	const struct grep *grep = answer->grep;
	const struct ranking *best = &grep->workers[0].best;
	uint64_t before = 0;

	for (size_t i = 0; i < best->count; i++) {
		const struct found *found = &best->items[i];

		if (answer->shown == grep->limit || answer->body.size >= SEARCH_TEXT_MAX)
			break;
		if (before + found->count > grep->offset)
			answer_lines_of(answer, found,
					grep->offset > before ? grep->offset - before : 0);
		before += found->count;
		answer->next_file = i + 1;
	}
}

/* Files with or without their counts, FROM on, at most COUNT. Returns how many. */
static uint64_t answer_files(struct answer *answer, size_t from, uint64_t count, bool counts)
{
	const struct ranking *best = &answer->grep->workers[0].best;
	size_t i;

	for (i = from; i < best->count && i - from < count; i++) {
		const struct found *found = &best->items[i];
		struct value *row = value_new_object();
		size_t at = answer->body.size;

		if (at >= SEARCH_TEXT_MAX) {
			value_free(row);
			break;
		}
		walk_start_name(&answer->grep->start, str_of(found->path), &answer->body);
		value_set_str(row, "path",
			      str_part(buf_str(&answer->body), at, answer->body.size));
		if (counts) {
			(void)buf_addf(&answer->body, ": %" PRIu64, found->count);
			value_set_integer(row, "count", (int64_t)found->count);
		}
		(void)buf_addc(&answer->body, '\n');
		value_append(answer->rows, row);
	}
	return i - from;
}

/* Behind the lines of auto mode: where the others are. */
static void answer_other_files(struct answer *answer)
{
	const struct grep_worker *all = &answer->grep->workers[0];
	uint64_t shown;

	if (all->files <= answer->next_file)
		return;
	(void)buf_adds(&answer->body, "\nFurther files, with their matching lines:\n");
	shown = answer_files(answer, answer->next_file, GREP_AUTO_FILES, true);
	if (all->files - answer->next_file > shown)
		(void)buf_addf(&answer->body, "and %" PRIu64 " more files\n",
			       all->files - answer->next_file - shown);
}

/* Tell what was searched, when nothing was found in it. */
static void answer_none(const struct grep *grep, struct buf *out)
{
	const struct grep_worker *all = &grep->workers[0];
	struct str pattern = call_str(grep->call, "pattern");
	size_t bar = str_find(pattern, STR("\\|"), 0);

	if (all->searched == 0 && all->unfitting > 0) {
		(void)buf_adds(out, "No file fits ");
		if (grep->glob)
			shown_add(str_of(call_text(grep->call, "glob")), out);
		(void)buf_adds(out, grep->glob && grep->type ? " and file_type " : "");
		if (grep->type)
			(void)buf_adds(out, call_text(grep->call, "file_type"));
		search_add_where(&grep->start, out);
		(void)buf_adds(out, ": nothing was searched; ");
		add_plural(out, all->unfitting, "file does", "files do");
		(void)buf_adds(out, " not fit.\n");
		return;
	}
	if (grep->summary.end == WALK_COMPLETE)
		(void)buf_adds(out, "No match in ");
	else
		(void)buf_adds(out, "No match so far in ");
	add_plural(out, all->searched, "file", "files");
	if (grep->file_fd < 0) {
		(void)buf_adds(out, " searched");
		search_add_where(&grep->start, out);
	} else {
		(void)buf_adds(out, ": ");
		walk_start_name(&grep->start, STR(""), out);
	}
	if (all->unfitting > 0)
		(void)buf_addf(out, " (%" PRIu64 " more do not fit glob or file_type)",
			       all->unfitting);
	(void)buf_adds(out, ".\n");
	if (bar != (size_t)-1 && !call_flag(grep->call, "literal"))
		(void)buf_adds(out,
			       "Note: \\| finds a bar; alternatives are written a|b.\n");
}

/* The totals, and which part of them follows. */
static void answer_totals(const struct answer *answer, struct buf *out)
{
	const struct grep *grep = answer->grep;
	const struct grep_worker *all = &grep->workers[0];
	bool files = grep->mode == GREP_FILES || grep->mode == GREP_COUNT;
	uint64_t total = files ? all->files : all->lines;

	if (grep->mode == GREP_FILES) {
		add_plural(out, all->files, "file has a match", "files have a match");
	} else {
		add_plural(out, all->lines, "matching line", "matching lines");
		(void)buf_adds(out, " in ");
		add_plural(out, all->files, "file", "files");
	}
	(void)buf_adds(out, ", newest file first");
	if (answer->shown == 0)
		(void)buf_addf(out, "; none from offset %" PRIu64 " on", grep->offset);
	else if (answer->shown < total)
		(void)buf_addf(out, "; %s %" PRIu64 " to %" PRIu64 " follow",
			       files ? "files" : "lines", grep->offset + 1,
			       grep->offset + answer->shown);
	if (answer->shown > 0 && grep->offset + answer->shown < total)
		(void)buf_addf(out, ", the next with offset=%" PRIu64,
			       grep->offset + answer->shown);
	(void)buf_adds(out, ".\n");
}

static void answer_gaps(const struct answer *answer, struct buf *out)
{
	const struct grep *grep = answer->grep;
	const struct grep_worker *all = &grep->workers[0];

	search_add_ignored(&grep->start, out);
	search_add_gaps(&grep->start, &grep->summary, out);
	if (all->limited > 0) {
		add_plural(out, all->limited, "file", "files");
		(void)buf_adds(out,
			       " could not be searched whole: the pattern needs too many "
			       "steps on some lines. Simplify it (nested * or +).\n");
	}
	if (grep->summary.end == WALK_GIVEN_UP)
		(void)buf_adds(out,
			       "The search was given up for that: there may be more.\n");
	if (all->unreadable > 0) {
		add_plural(out, all->unreadable, "file", "files");
		(void)buf_adds(out, " could not be read.\n");
	}
	if (all->binary > 0) {
		(void)buf_adds(out, "Binary and not shown: ");
		add_plural(out, all->binary, "file with a match", "files with a match");
		(void)buf_adds(out, ".\n");
	}
	if (answer->gone > 0) {
		add_plural(out, answer->gone, "file", "files");
		(void)buf_adds(out, " changed while being searched.\n");
	}
}

/* Nothing found outside ignored files: which of these have it? */
static void answer_ignored(struct grep *grep, struct tool_result *result)
{
	const struct grep_worker *all = &grep->workers[0];
	struct walk_summary summary;

	walk_summary_init(&summary);
	grep_run_ignored(grep, &summary);
	value_set_integer(tool_details(result), "ignored_files", (int64_t)all->files);
	if (all->files > 0) {
		(void)buf_adds(&result->text, "Ignored files (.gitignore) have it: ");
		search_add_names(&grep->start, &all->best, all->files, &result->text);
		(void)buf_adds(&result->text,
			       ". Name the file or its folder as path to search it.\n");
	}
	search_add_ignored_gap(&summary, all->files > 0, &result->text);
	walk_summary_fini(&summary);
}

static void answer_details(const struct answer *answer, struct tool_result *result)
{
	const struct grep *grep = answer->grep;
	const struct grep_worker *all = &grep->workers[0];
	struct value *details = tool_details(result);

	search_set_details(result, &grep->summary);
	value_set_integer(details, "matching_lines", (int64_t)all->lines);
	value_set_integer(details, "matching_files", (int64_t)all->files);
	value_set_integer(details, "searched_files", (int64_t)all->searched);
	value_set_integer(details, "unreadable_files", (int64_t)all->unreadable);
	value_set_integer(details, "binary_files", (int64_t)all->binary);
	value_set_integer(details, "limited_files", (int64_t)all->limited);
	value_set_integer(details, "offset", (int64_t)grep->offset);
	value_set_integer(details, "shown", (int64_t)answer->shown);
	value_set(details, "rows", answer->rows);
}

void grep_answer(struct grep *grep, struct tool_result *result)
{
	const struct grep_worker *all = &grep->workers[0];
	struct answer answer = {.grep = grep, .rows = value_new_array()};
	bool files = grep->mode == GREP_FILES || grep->mode == GREP_COUNT;
	uint64_t total = files ? all->files : all->lines;

	buf_init(&answer.body, RESULT_TEXT_MAX / 2);
	buf_init(&answer.cut, 4 * NAME_SHOWN_MAX);
	if (files)
		answer.shown = answer_files(&answer, (size_t)grep->offset, grep->limit,
					    grep->mode == GREP_COUNT);
	else
		answer_lines(&answer);
	if (grep->mode == GREP_AUTO && answer.shown > 0)
		answer_other_files(&answer);
	if (all->files > 0)
		answer_totals(&answer, &result->text);
	else
		answer_none(grep, &result->text);
	answer_gaps(&answer, &result->text);
	(void)buf_addstr(&result->text, buf_str(&answer.cut));
	if (answer.body.size > 0)
		(void)buf_addc(&result->text, '\n');
	(void)buf_addstr(&result->text, buf_str(&answer.body));
	buf_fini(&answer.body);
	buf_fini(&answer.cut);
	if (total > grep->offset + answer.shown)
		result->left_out_lines = total - grep->offset - answer.shown;
	answer_details(&answer, result);
	if (all->files == 0 && grep->summary.end == WALK_COMPLETE &&
	    grep->summary.ignored > 0 && grep->file_fd < 0)
		answer_ignored(grep, result);
}
