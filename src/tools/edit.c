/*
 * edit: replaces parts of a file by other texts. It matches every edit, refuses an edit
 * whose place is not sure, and then builds the new text in one pass.
 */

#include "tools/edit.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most edits of one call, and the most places that one call may change. */
enum { EDIT_MAX = 1000 };

/* The number of nearest places or lines that are shown for a text that was not found. */
enum { EDIT_NEAR = 3 };

/*
 * The tool itself: the file, the guard, and the repetition when another writer was
 * faster.
 */

/* How often the edit is tried again when another program changes the file meanwhile. */
enum { EDIT_TRIES = 64 };

static const struct row edit_rows[] = {
	{"old", ROW_TEXT, true,
	 "Text to be replaced, exactly as in the file; must stand there once",
	 .aliases = "old_string old_str old_text search", .unmasks = UNMASKS},
	{"new", ROW_TEXT, true, "Text to put in its place",
	 .aliases = "new_string new_str new_text replace replacement", .unmasks = UNMASKS},
	{"replace_all", ROW_FLAG, false, "Replace every place", .initial = "false",
	 .aliases = "all"},
	{0},
};

static const struct row edit_file_params[] = {
	{"path", ROW_PATH, true, "File to edit", .aliases = "file file_path filename"},
	{"edits", ROW_LIST, true, "Edits, all made against the file as it is now",
	 .aliases = "changes", .rows = edit_rows, .min = 1, .max = EDIT_MAX},
	{"expected_hash", ROW_TEXT, false,
	 "Hash (read_file's, or SHA-256; 12 digits or more) that the file must have",
	 .aliases = "hash"},
	SHOWN_ENDS_PARAM,
	{0},
};

struct editing {
	struct written written;
	struct edit *edits;
	struct edit_outcome *outcomes;
	size_t count;
};

static void take_edits(struct editing *editing, struct call *call)
{
	const struct value *list = value_member(call->arguments, "edits");

	editing->count = value_count(list);
	editing->edits = memory_array(editing->count + 1, sizeof(*editing->edits));
	editing->outcomes = memory_array(editing->count + 1, sizeof(*editing->outcomes));
	for (size_t i = 0; i < editing->count; i++) {
		const struct value *item = value_item(list, i);

		editing->edits[i].old = value_str(value_member(item, "old"));
		editing->edits[i].new = value_str(value_member(item, "new"));
		editing->edits[i].replace_all =
			value_is_true(value_member(item, "replace_all"));
		if (!editing->edits[i].new.data)
			editing->edits[i].new = STR("");
		if (!editing->edits[i].old.data)
			editing->edits[i].old = STR("");
	}
}

static bool check_kind(struct editing *editing)
{
	struct shown_kind kind = shown_kind(buf_str(&editing->written.old));

	if (kind.utf16)
		(void)tool_fail(
			editing->written.result,
			"%s is UTF-16; read_file shows it as text, but edits would damage it. "
			"Convert it first (iconv -f UTF-16 -t UTF-8) if its users allow that.",
			editing->written.path);
	else if (kind.binary)
		(void)tool_fail(editing->written.result,
				"%s is a binary file; text edits would damage it.",
				editing->written.path);
	return !kind.utf16 && !kind.binary;
}

/* Append how each edit was made, when it was not simply "exactly, once". */
static void report_outcomes(struct editing *editing)
{
	struct buf *text = &editing->written.result->text;
	struct value *list = value_new_array();

	for (size_t i = 0; i < editing->count; i++) {
		const struct edit_outcome *outcome = &editing->outcomes[i];
		struct value *item = value_new_object();
		char name[32];

		value_set_text(item, "level",
			       outcome->already ? "already_made"
						: match_level_name(outcome->level));
		value_set_integer(item, "count", (int64_t)outcome->count);
		value_set_integer(item, "line", (int64_t)outcome->line);
		value_append(list, item);
		if (outcome->already)
			buf_addf(text,
				 " Edit %zu was made before: its new text stands at line %zu.",
				 i + 1, outcome->line);
		else if (outcome->level != MATCH_EXACT)
			buf_addf(text, " Edit %zu at line %zu was not exact: %s.", i + 1,
				 outcome->line, match_level_sentence(outcome->level));
		if (outcome->count > 1)
			buf_addf(text, " Edit %zu changed %zu places.", i + 1,
				 outcome->count);
		(void)snprintf(name, sizeof(name), "Edit %zu", i + 1);
		shown_add_ends_set(name, outcome->end_set, text);
	}
	value_set(tool_details(editing->written.result), "edits", list);
}

static enum result_status finish(struct editing *editing, struct str content)
{
	struct written *written = &editing->written;
	struct buf *text = &written->result->text;
	const char *seen = call_seen(written->call, written->real.data);
	char mark[FILES_MARK];

	buf_adds(text, "Edited ");
	written_add_path(written, text);
	written_report(written, content, false);
	report_outcomes(editing);
	if (written->changed_since_read)
		buf_adds(text,
			 " The file holds other changes, made since you read it: read it "
			 "again before you rely on the rest.");
	/* A model that has not seen the rest of the file has not read the file. */
	if (seen && !written->changed_since_read) {
		written_new_mark(written, content, mark);
		call_saw(written->result, written->real.data, mark);
	}
	return tool_done(written->result);
}

static enum result_status say_nothing_changed(struct editing *editing)
{
	struct buf *text = &editing->written.result->text;

	buf_adds(text, "Nothing to do in ");
	written_add_path(&editing->written, text);
	buf_addc(text, '.');
	report_outcomes(editing);
	return tool_done(editing->written.result);
}

/* The bytes of new text, each counted as often as its edit inserts it. */
static size_t brought(const struct editing *editing)
{
	size_t bytes = 0;

	for (size_t i = 0; i < editing->count; i++) {
		if (!editing->outcomes[i].already)
			bytes += editing->edits[i].new.size * editing->outcomes[i].count;
	}
	return bytes;
}

/* One try: read, match, write. AGAIN: another program has written the file in between. */
static enum result_status try_edit(struct editing *editing, bool *again)
{
	struct written *written = &editing->written;
	struct err err = {0};
	struct buf content;
	enum result_status status;

	*again = false;
	if (!written_read_old(written, &err))
		return written_fail(written, &err);
	if (!written_check_hash(written) || !check_kind(editing))
		return RESULT_FAILED;
	buf_init(&content, WRITTEN_FILE_MAX);
	written->result->status = RESULT_FAILED;
	if (!edit_apply(files_shown(written->call->files, written->real.data),
			buf_str(&written->old), editing->edits, editing->count,
			(written->changed_since_read ? EDIT_EXACT_ONLY : 0U) |
				(shown_ends_are_given(written->call) ? EDIT_GIVEN_ENDS : 0U),
			&content, editing->outcomes, &written->result->text)) {
		status = RESULT_FAILED;
	} else if (!written_fits(written->call, brought(editing), written->result)) {
		status = RESULT_FAILED;
	} else if (str_equal(buf_str(&content), buf_str(&written->old))) {
		status = say_nothing_changed(editing);
	} else if (written_replace(written, buf_str(&content), &err)) {
		status = finish(editing, buf_str(&content));
	} else {
		*again = err.code == EAGAIN;
		status = *again ? RESULT_FAILED : written_fail(written, &err);
	}
	buf_fini(&content);
	return status;
}

static enum result_status edit_reached(struct editing *editing)
{
	struct written *written = &editing->written;
	struct err err = {0};
	bool again = true;
	enum result_status status = RESULT_FAILED;

	if (!files_place(written->call->files, written->path, false, &written->place, &err))
		return written_fail(written, &err);
	if (!written->place.exists) {
		(void)err_set(&err, ENOENT, "%s does not exist; write_file makes new files.",
			      written->path);
		return written_fail(written, &err);
	}
	for (int i = 0; again && i < EDIT_TRIES; i++) {
		if (call_stopped(written->call))
			return call_stop_result(written->call, written->result);
		status = try_edit(editing, &again);
	}
	if (again)
		return tool_fail(written->result,
				 "%s is being changed by others all the time; "
				 "nothing was written. Try again.",
				 written->path);
	return status;
}

static enum result_status edit_file_execute(struct call *call, struct tool_result *result)
{
	struct editing editing = {0};
	enum result_status status;

	written_init(&editing.written, call, result);
	take_edits(&editing, call);
	status = edit_reached(&editing);
	free(editing.edits);
	free(editing.outcomes);
	written_fini(&editing.written);
	return status;
}

const struct tool edit_file_tool = {
	.name = "edit_file",
	.description = "Replace parts of a file by exact text. All edits are made or none.",
	.example = "{\"path\": \"src/main.c\", \"edits\": [{\"old\": \"return 1;\", "
		   "\"new\": \"return 0;\"}]}",
	.aliases = "edit str_replace",
	.params = edit_file_params,
	.effects = EFFECT_WRITES,
	.timeout_s = 30, /* fsync on a busy disk */
	.execute = edit_file_execute,
};

/*
 * The sentences about a text that was not found, or was found too often. For a missing
 * text they show the windows of as many lines that share most lines with it, or else the
 * lines that are nearest to its first line. White space is made visible, and only
 * differences are shown.
 */

enum {
	MISS_PLACES = EDIT_NEAR, /* places that are shown */
	MISS_SHOWN = 6,          /* differing lines that are shown of the nearest place */
	MISS_SHOWN_NEXT = 2,     /* and of each further place */
	MISS_FOUND_LISTED = 20,  /* listed places of a text that was found too often */
	MISS_FOUND_SHOWN = 3,    /* of these, places with the line before them */
	MISS_LINE_BYTES = 200,   /* shown of each line */
	MISS_WORK_MAX = 8000000, /* comparisons of lines by their hash, about 10 ms */
	MISS_NEAR_LINES = 20000, /* lines compared by distance */
	MISS_NEAR_BYTES = 256,   /* compared of each line */
};

struct miss_lines {
	struct str *lines;
	uint32_t *hashes; /* of each line without blanks at its ends */
	size_t count;
};

static uint32_t hash_line(struct str line)
{
	struct str body = str_trim(line);
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < body.size; i++)
		hash = (hash ^ (unsigned char)body.data[i]) * 16777619u;
	return hash;
}

static struct miss_lines split(struct str text)
{
	struct miss_lines split = {.count = text_count_lines(text)};
	struct str line;

	split.lines = memory_array(split.count + 1, sizeof(*split.lines));
	split.hashes = memory_array(split.count + 1, sizeof(*split.hashes));
	for (size_t i = 0; i < split.count && str_next_line(&text, &line); i++) {
		split.lines[i] = line;
		split.hashes[i] = hash_line(line);
	}
	return split;
}

static void split_free(struct miss_lines *split)
{
	free(split->lines);
	free(split->hashes);
}

/*
 * Places that OLD may mean: the lines of the file, from 0, at which its first line would
 * be.
 */
struct miss_places {
	size_t at[MISS_PLACES];
	size_t count;
};

static bool overlaps(const struct miss_places *places, size_t at, size_t lines)
{
	for (size_t i = 0; i < places->count; i++) {
		size_t other = places->at[i];

		if (at < other + lines && other < at + lines)
			return true;
	}
	return false;
}

static size_t count_same(const struct miss_lines *file, const struct miss_lines *old,
			 size_t at)
{
	size_t same = 0;

	for (size_t i = 0; i < old->count && at + i < file->count; i++)
		same += file->hashes[at + i] == old->hashes[i] &&
			str_trim(old->lines[i]).size > 0;
	return same;
}

/*
 * Find the windows of FILE that have most lines of OLD in the same places. Windows do not
 * overlap, and blank lines do not count.
 */
static void add_windows(const struct miss_lines *file, const struct miss_lines *old,
			struct miss_places *places)
{
	size_t windows = file->count >= old->count ? file->count - old->count + 1 : 1;
	size_t *same;

	if (windows * old->count > MISS_WORK_MAX)
		return;
	same = memory_array(windows, sizeof(*same));
	for (size_t at = 0; at < windows; at++)
		same[at] = count_same(file, old, at);
	while (places->count < MISS_PLACES) {
		size_t best = 0, found = 0;

		for (size_t at = 0; at < windows; at++) {
			if (same[at] > best && !overlaps(places, at, old->count)) {
				best = same[at];
				found = at;
			}
		}
		if (best == 0)
			break;
		places->at[places->count++] = found;
	}
	free(same);
}

/*
 * Find the EDIT_NEAR lines of FILE that are nearest to WANTED. Returns how many there
 * are.
 */
static size_t nearest_lines(const struct miss_lines *file, struct str wanted,
			    size_t lines[EDIT_NEAR])
{
	size_t distances[EDIT_NEAR];
	size_t count = 0, limit;

	wanted = str_part(str_trim(wanted), 0, MISS_NEAR_BYTES);
	limit = wanted.size / 3;
	for (size_t i = 0; i < file->count && i < MISS_NEAR_LINES && wanted.size > 0; i++) {
		struct str line = str_part(str_trim(file->lines[i]), 0, MISS_NEAR_BYTES);
		size_t distance, at;

		/*
		 * The distance of two texts is at least the difference of their lengths.
		 */
		if (line.size > wanted.size + limit || wanted.size > line.size + limit)
			continue;
		distance = text_distance(wanted, line, limit);
		if (distance > limit ||
		    (count == EDIT_NEAR && distance >= distances[count - 1]))
			continue;
		count += count < EDIT_NEAR;
		for (at = count - 1; at > 0 && distances[at - 1] > distance; at--) {
			distances[at] = distances[at - 1];
			lines[at] = lines[at - 1];
		}
		distances[at] = distance;
		lines[at] = i;
		if (count == EDIT_NEAR)
			limit = distances[count - 1];
	}
	return count;
}

/* Find lines that are similar to the first line of OLD that is not blank. */
static void add_nearest(const struct miss_lines *file, const struct miss_lines *old,
			struct miss_places *places)
{
	size_t lines[EDIT_NEAR], first = 0, count;

	while (first < old->count && str_trim(old->lines[first]).size == 0)
		first++;
	count = first < old->count ? nearest_lines(file, old->lines[first], lines) : 0;
	for (size_t i = 0; i < count && places->count < MISS_PLACES; i++) {
		size_t at = lines[i] >= first ? lines[i] - first : 0;

		if (!overlaps(places, at, old->count))
			places->at[places->count++] = at;
	}
}

static void add_line(const char *label, struct str line, struct buf *out)
{
	size_t size = line.size;

	if (size > MISS_LINE_BYTES)
		size = text_character_border(line, MISS_LINE_BYTES);
	buf_adds(out, label);
	shown_add_spaces(str_part(line, 0, size), out);
	buf_adds(out, size < line.size ? "…\n" : "\n");
}

static bool differs(const struct miss_lines *file, const struct miss_lines *old,
		    size_t at, size_t i)
{
	return at + i >= file->count || !str_equal(file->lines[at + i], old->lines[i]);
}

/* Append the first MOST lines of OLD that differ from FILE, compared from line AT on. */
static void show_window(const struct miss_lines *file, const struct miss_lines *old,
			size_t at, size_t most, struct buf *out)
{
	size_t differ = 0;

	for (size_t i = 0; i < old->count; i++) {
		if (!differs(file, old, at, i) || ++differ > most)
			continue;
		if (at + i < file->count) {
			buf_addf(out, "line %zu\n", at + i + 1);
			add_line("  file: ", file->lines[at + i], out);
		} else {
			buf_addf(out, "line %zu is past the end of the file\n", at + i + 1);
		}
		add_line("  old:  ", old->lines[i], out);
	}
	if (differ > most) {
		buf_adds(out, "… and ");
		text_add_count(out, differ - most, "more line");
		buf_adds(out, "\n");
	}
}

static void show_places(const struct miss_lines *file, const struct miss_lines *old,
			const struct miss_places *places, struct buf *out)
{
	for (size_t i = 0; i < places->count; i++) {
		size_t at = places->at[i], differ = 0;

		for (size_t j = 0; j < old->count; j++)
			differ += differs(file, old, at, j);
		buf_addf(out, "%s is line %zu; it differs in",
			 i == 0 ? "Nearest" : "Then", at + 1);
		if (old->count > 1)
			buf_addf(out, " %zu of %zu lines", differ, old->count);
		buf_adds(out, i == 0 ? " (→ is a tab, · a blank):\n" : ":\n");
		show_window(file, old, at, i == 0 ? MISS_SHOWN : MISS_SHOWN_NEXT, out);
	}
}

void edit_explain_miss(struct str text, struct str old, struct buf *sentence)
{
	struct miss_lines file = split(text);
	struct miss_lines wanted = split(old);
	struct miss_places places = {0};

	add_windows(&file, &wanted, &places);
	add_nearest(&file, &wanted, &places);
	if (file.count == 0)
		buf_adds(sentence, "The file is empty: fill it with write_file.");
	else if (places.count == 0)
		buf_addf(sentence,
			 "No line of it (%zu) is like the first of the old text. Read "
			 "the file, or find the text with grep.",
			 file.count);
	else
		show_places(&file, &wanted, &places, sentence);
	split_free(&file);
	split_free(&wanted);
}

void edit_add_nearest(struct str text, struct str wanted, struct buf *out)
{
	struct miss_lines file = split(text);
	size_t lines[EDIT_NEAR];
	size_t count = nearest_lines(&file, wanted, lines);

	if (count == 0)
		buf_adds(out, "No line of the file is like it. ");
	for (size_t i = 0; i < count; i++) {
		buf_addf(out, "%s %zu: `", i == 0 ? "Nearest are: line" : "`, line",
			 lines[i] + 1);
		text_add_name(out,
			      str_part(str_trim(file.lines[lines[i]]), 0,
				       text_character_border(str_trim(file.lines[lines[i]]),
							     MISS_LINE_BYTES)));
	}
	if (count > 0)
		buf_adds(out, "`. ");
	split_free(&file);
}

/* The last non-blank line before the line with the byte AT; empty when there is none. */
static struct str line_before(struct str text, size_t at)
{
	const char *feed = at > 0 ? memrchr(text.data, '\n', at) : NULL;
	struct str before =
		str_trim(str_part(text, 0, feed ? (size_t)(feed - text.data) : 0));

	feed = before.size ? memrchr(before.data, '\n', before.size) : NULL;
	if (feed)
		before = str_trim(
			str_part(before, (size_t)(feed - before.data) + 1, before.size));
	return str_part(before, 0, text_character_border(before, MISS_LINE_BYTES));
}

void edit_add_places(struct str text, const struct match *match, struct buf *out)
{
	buf_addf(out, "line%s ", match->count == 1 ? "" : "s");
	for (size_t i = 0; i < match->count && i < MISS_FOUND_LISTED; i++) {
		struct str before = line_before(text, match->spans[i].start);

		buf_addf(out, "%s%zu", i ? ", " : "",
			 match_line(text, match->spans[i].start));
		if (i >= MISS_FOUND_SHOWN || before.size == 0)
			continue;
		buf_adds(out, " (after `");
		text_add_name(out, before);
		buf_adds(out, "`)");
	}
	if (match->count > MISS_FOUND_LISTED)
		buf_addf(out, " and %zu more", match->count - MISS_FOUND_LISTED);
}

/* The levels that compare bytes after putting both texts into a plainer form. */

static const struct {
	const char *name, *sentence;
} levels[] = {
	[MATCH_NONE] = {"none", "not found"},
	[MATCH_EXACT] = {"exact", "exactly"},
	[MATCH_LINE_END] = {"line_end", "the line ends differed"},
	[MATCH_TRAILING_SPACE] = {"trailing_space", "blanks at line ends differed"},
	[MATCH_PUNCTUATION] = {"punctuation",
			       "typographic quotes, dashes or blanks differed"},
	[MATCH_INDENT] = {"indent",
			  "the indentation differed, and the new text was indented as the file is"},
	[MATCH_LINE_NUMBERS] = {"line_numbers",
				"the line numbers of the reading were taken out"},
};

const char *match_level_name(enum match_level level)
{
	return levels[level].name;
}

const char *match_level_sentence(enum match_level level)
{
	return levels[level].sentence;
}

void match_init(struct match *match)
{
	memset(match, 0, sizeof(*match));
	buf_init(&match->replacement, SIZE_MAX);
}

void match_fini(struct match *match)
{
	if (!match)
		return;
	free(match->spans);
	match->spans = NULL;
	match->count = 0;
	buf_fini(&match->replacement);
}

static void match_add(struct match *match, size_t start, size_t end)
{
	size_t count = match->count;

	if (count < MATCH_SPANS_MAX) {
		match->spans = memory_more(match->spans, count, sizeof(*match->spans));
		match->spans[count] = (struct match_span){start, end};
	}
	match->count++;
}

size_t match_line(struct str text, size_t at)
{
	struct str before = str_part(text, 0, at);
	size_t line = 1;

	for (const char *feed = before.data;
	     (feed = memchr(feed, '\n', before.size - (size_t)(feed - before.data))); feed++)
		line++;
	return line;
}

/* Find the exact places of OLD. ALL: without overlap. */
static void match_exact(struct str text, struct str old, bool all, struct match *match)
{
	size_t at = str_find(text, old, 0);

	while (at != (size_t)-1) {
		match_add(match, at, at + old.size);
		at = str_find(text, old, at + (all ? old.size : 1));
	}
}

/* Typographic characters, and the keyboard characters for them. */
static const struct {
	const char *fancy, *plain;
} punctuation[] = {
	{"\u2018", "'"},  {"\u2019", "'"},  {"\u201a", "'"},  {"\u201b", "'"},
	{"\u2032", "'"},  {"\u201c", "\""}, {"\u201d", "\""}, {"\u201e", "\""},
	{"\u201f", "\""}, {"\u2033", "\""}, {"\u00ab", "\""}, {"\u00bb", "\""},
	{"\u2010", "-"},  {"\u2011", "-"},  {"\u2012", "-"},  {"\u2013", "-"},
	{"\u2014", "-"},  {"\u2015", "-"},  {"\u2212", "-"},  {"\u2026", "..."},
	{"\u00a0", " "},  {"\u2002", " "},  {"\u2003", " "},  {"\u2007", " "},
	{"\u2008", " "},  {"\u2009", " "},  {"\u200a", " "},  {"\u202f", " "},
	{"\u205f", " "},  {"\u3000", " "},
};

/*
 * One step of the plainer form: SOURCE bytes of the text become PLAIN, which may be
 * empty.
 */
struct step {
	size_t source;
	struct str plain;
	/* the bytes stay unchanged, so a match may begin anywhere in them */
	bool verbatim;
};

/* The longest run that is one step. A match may begin in the middle of such a run. */
enum { STEP_MAX = 256 };

/* The number of blanks at AT, when they stand at the end of their line; else 0. */
static size_t trailing_blanks(struct str text, size_t at)
{
	size_t end = at;

	while (end < text.size && (text.data[end] == ' ' || text.data[end] == '\t'))
		end++;
	if (end == text.size || text.data[end] == '\n' ||
	    (text.data[end] == '\r' && end + 1 < text.size && text.data[end + 1] == '\n'))
		return end - at;
	return 0;
}

/* The step for blanks at AT: they are dropped at the end of a line, else they stay. */
static struct step blank_step(struct str text, size_t at)
{
	size_t size = trailing_blanks(text, at);

	if (size)
		return (struct step){.source = size};
	while (size < STEP_MAX &&
	       (text.data[at + size] == ' ' || text.data[at + size] == '\t'))
		size++;
	return (struct step){size, str_part(text, at, size), true};
}

static struct step punctuation_step(struct str text, size_t at)
{
	for (size_t i = 0; i < sizeof(punctuation) / sizeof(punctuation[0]); i++) {
		struct str fancy = str_of(punctuation[i].fancy);

		if (str_equal(str_part(text, at, fancy.size), fancy))
			return (struct step){fancy.size, str_of(punctuation[i].plain),
					     false};
	}
	return (struct step){1, str_part(text, at, 1), true};
}

/* Can the byte at AT be changed in the plainer form of LEVEL? */
static bool is_special(unsigned char byte, enum match_level level)
{
	return byte == '\r' ||
	       (level >= MATCH_TRAILING_SPACE && (byte == ' ' || byte == '\t')) ||
	       (level >= MATCH_PUNCTUATION && byte >= 0x80);
}

static struct step plain_step(struct str text, size_t at, enum match_level level)
{
	unsigned char byte = (unsigned char)text.data[at];
	size_t size = 1;

	if (byte == '\r' && at + 1 < text.size && text.data[at + 1] == '\n')
		return (struct step){2, STR("\n"), false};
	if (level >= MATCH_TRAILING_SPACE && (byte == ' ' || byte == '\t'))
		return blank_step(text, at);
	if (level >= MATCH_PUNCTUATION && byte >= 0x80)
		return punctuation_step(text, at);
	while (size < STEP_MAX && at + size < text.size &&
	       !is_special((unsigned char)text.data[at + size], level))
		size++;
	return (struct step){size, str_part(text, at, size), true};
}

static void make_plain(struct str text, enum match_level level, struct buf *out)
{
	for (size_t at = 0; at < text.size;) {
		struct step step = plain_step(text, at, level);

		buf_addstr(out, step.plain);
		at += step.source;
	}
}

/*
 * Finds the places in the text that belong to offsets in the plainer form. It goes
 * forward from *AT and *PLAIN_AT.
 */
struct walk_back {
	struct str text;
	enum match_level level;
	size_t at, plain_at;
};

/*
 * The offset in the text for the offset WANTED in the plainer form. False: WANTED lies
 * within a step. AFTER: the end of the bytes before it, else the beginning of the bytes
 * behind it (dropped blanks may lie between the two).
 */
static bool walk_back(struct walk_back *walk, size_t wanted, bool after, size_t *found)
{
	while (walk->at < walk->text.size && walk->plain_at < wanted) {
		struct step step = plain_step(walk->text, walk->at, walk->level);

		if (step.verbatim && walk->plain_at + step.source > wanted) {
			step.source = wanted - walk->plain_at;
			step.plain.size = step.source;
		}
		walk->at += step.source;
		walk->plain_at += step.plain.size;
	}
	if (walk->plain_at != wanted)
		return false;
	if (!after) {
		while (walk->at < walk->text.size) {
			struct step step = plain_step(walk->text, walk->at, walk->level);

			if (step.plain.size)
				break;
			walk->at += step.source;
		}
	}
	*found = walk->at;
	return true;
}

static void match_plain(struct str text, struct str old, bool all, enum match_level level,
			struct match *match)
{
	struct walk_back walk = {.text = text, .level = level};
	struct match plain;
	struct buf text_plain, old_plain;

	match_init(&plain);
	buf_init(&text_plain, SIZE_MAX);
	buf_init(&old_plain, SIZE_MAX);
	make_plain(old, level, &old_plain);
	if (old_plain.size) {
		make_plain(text, level, &text_plain);
		match_exact(buf_str(&text_plain), buf_str(&old_plain), all, &plain);
	}
	for (size_t i = 0; i < plain.count && i < MATCH_SPANS_MAX; i++) {
		size_t start, end;
		struct walk_back from = walk;

		if (!walk_back(&from, plain.spans[i].start, false, &start))
			continue;
		walk = from;
		if (walk_back(&from, plain.spans[i].end, true, &end))
			match_add(match, start, end);
	}
	match_fini(&plain);
	buf_fini(&text_plain);
	buf_fini(&old_plain);
}

/* Does the span begin and end at borders of lines of TEXT? */
static bool is_whole_lines(struct str text, struct str old, struct match_span span)
{
	if (span.start > 0 && text.data[span.start - 1] != '\n')
		return false;
	/* A last line without an end is the last one of its file. */
	return span.end == text.size || (str_ends(old, STR("\n")) && span.end > 0 &&
					 text.data[span.end - 1] == '\n');
}

static void keep_whole_lines(struct str text, struct str old, struct match *match)
{
	size_t kept = 0;

	if (match->count > MATCH_SPANS_MAX)
		return;
	for (size_t i = 0; i < match->count; i++) {
		if (is_whole_lines(text, old, match->spans[i]))
			match->spans[kept++] = match->spans[i];
	}
	match->count = kept;
}

/*
 * OLD ends with a line end, but its place is the last line of the file, which has none.
 * Then the new text gets no line end either.
 */
static bool match_open_end(struct str text, struct str old, enum match_level level,
			   struct match *match)
{
	size_t kept = 0;

	if (!str_ends(old, STR("\n")) || old.size < 2 || text.size == 0 ||
	    str_ends(text, STR("\n")))
		return false;
	old.size--;
	match_plain(text, old, false, level, match);
	for (size_t i = 0; i < match->count && i < MATCH_SPANS_MAX; i++) {
		if (match->spans[i].end == text.size)
			match->spans[kept++] = match->spans[i];
	}
	match->count = kept;
	return kept > 0;
}

static void match_indent(struct str text, struct str old, struct str replacement,
			 struct match *match);

static void match_numbers(struct str text, struct str old, struct str replacement,
			  struct match *match);

bool match_find(struct str text, struct str old, struct str replacement, bool all,
		enum match_level highest, struct match *match)
{
	bool open_end = false;

	match->level = MATCH_EXACT;
	match_exact(text, old, all, match);
	if (match->whole_lines)
		keep_whole_lines(text, old, match);
	if (all && highest > MATCH_LINE_END)
		highest = MATCH_LINE_END;
	while (match->count == 0 && match->level < highest) {
		match->level++;
		if (match->level < MATCH_INDENT)
			match_plain(text, old, all, match->level, match);
		else if (match->level == MATCH_INDENT)
			match_indent(text, old, replacement, match);
		else
			match_numbers(text, old, replacement, match);
		if (match->whole_lines && match->level != MATCH_INDENT)
			keep_whole_lines(text, old, match);
		if (match->count == 0 && match->level < MATCH_INDENT && !all)
			open_end = match_open_end(text, old, match->level, match);
		if (open_end && match->whole_lines)
			keep_whole_lines(text, old, match);
	}
	if (match->count == 0)
		match->level = MATCH_NONE;
	else if (match->level < MATCH_INDENT)
		buf_addstr(&match->replacement, replacement);
	open_end = open_end || (match->level == MATCH_INDENT &&
				str_ends(old, STR("\n")) && !str_ends(text, STR("\n")) &&
				match->count == 1 && match->spans[0].end == text.size);
	if (open_end && str_ends(buf_str(&match->replacement), STR("\n")))
		buf_truncate(&match->replacement, match->replacement.size - 1);
	return match->count > 0;
}

/*
 * Whole lines that differ only in their indentation, all by the same rule: one prefix for
 * another, or so many blanks for each tab. The new text is indented by that rule too. A
 * file that indents with tabs never gets blanks from here, and a file that indents with
 * blanks never gets tabs.
 */

enum {
	/* of one edit, because each line is compared at each place */
	INDENT_LINES_MAX = 10000,
	INDENT_UNIT_MIN = 2, /* the fewest blanks that one tab may stand for */
	INDENT_UNIT_MAX = 8,
};

enum rule_kind { RULE_PREFIX, RULE_BLANKS_TO_TABS, RULE_TABS_TO_BLANKS };

struct rule {
	enum rule_kind kind;
	struct str from, to; /* RULE_PREFIX */
	/* other rules: blanks per tab; tabs or blanks that are added */
	ptrdiff_t unit, shift;
};

struct line {
	struct str indent, body; /* body without blanks at its end and without line end */
	/* offsets in the text; `end` is before the line end and the blanks there */
	size_t start, end;
	size_t next; /* start of the next line */
};

struct lines {
	struct line *items;
	size_t count;
};

/* How the file indents its lines. A result may not mix the two styles. */
struct style {
	bool tabs, blanks;
};

static struct line line_at(struct str text, size_t at)
{
	struct line line = {.start = at};
	const char *feed = memchr(text.data + at, '\n', text.size - at);
	size_t end = feed ? (size_t)(feed - text.data) : text.size;
	size_t body = at;

	line.next = feed ? end + 1 : end;
	while (end > at && text.data[end - 1] != '\0' && strchr(" \t\r", text.data[end - 1]))
		end--;
	while (body < end && (text.data[body] == ' ' || text.data[body] == '\t'))
		body++;
	line.end = end;
	line.indent = str_part(text, at, body - at);
	line.body = str_part(text, body, end - body);
	return line;
}

static struct lines split_lines(struct str text)
{
	struct lines lines = {0};

	for (size_t at = 0; at < text.size;) {
		struct line line = line_at(text, at);

		lines.items = memory_more(lines.items, lines.count, sizeof(*lines.items));
		lines.items[lines.count++] = line;
		at = line.next;
	}
	return lines;
}

static bool is_all(struct str text, char c)
{
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] != c)
			return false;
	}
	return true;
}

static struct style style_of(const struct lines *lines)
{
	size_t tabs = 0, blanks = 0;

	for (size_t i = 0; i < lines->count; i++) {
		if (lines->items[i].indent.size && lines->items[i].indent.data[0] == '\t')
			tabs++;
		else if (lines->items[i].indent.size)
			blanks++;
	}
	return (struct style){tabs > blanks, blanks > tabs};
}

/* Append INDENT, changed by RULE. False: the rule does not fit INDENT. */
static bool rule_apply(const struct rule *rule, struct str indent, struct buf *out)
{
	ptrdiff_t size = (ptrdiff_t)indent.size;

	if (rule->kind == RULE_PREFIX) {
		if (!str_starts(indent, rule->from))
			return false;
		buf_addstr(out, rule->to);
		buf_addstr(out, str_part(indent, rule->from.size, indent.size));
		return true;
	}
	if (rule->kind == RULE_BLANKS_TO_TABS) {
		if (!is_all(indent, ' ') || size % rule->unit)
			return false;
		size = size / rule->unit + rule->shift;
	} else {
		if (!is_all(indent, '\t'))
			return false;
		size = size * rule->unit + rule->shift;
	}
	for (ptrdiff_t i = 0; i < size; i++)
		buf_addc(out, rule->kind == RULE_BLANKS_TO_TABS ? '\t' : ' ');
	return size >= 0;
}

/* Does RULE turn each line of OLD into the line of the file? */
static bool rule_holds(const struct rule *rule, const struct lines *old,
		       const struct line *file)
{
	struct buf made;
	bool holds = true;

	buf_init(&made, SIZE_MAX);
	for (size_t i = 0; holds && i < old->count; i++) {
		if (old->items[i].body.size == 0)
			continue;
		buf_clear(&made);
		holds = rule_apply(rule, old->items[i].indent, &made) &&
			str_equal(buf_str(&made), file[i].indent);
	}
	buf_fini(&made);
	return holds;
}

/*
 * Append the new text, each line indented by RULE. False: the rule or the file's style
 * forbids it.
 */
static bool rule_rewrite(const struct rule *rule, struct str replacement,
			 const struct style *style, struct buf *out)
{
	struct lines lines = split_lines(replacement);
	bool ok = true;

	for (size_t i = 0; ok && i < lines.count; i++) {
		const struct line *line = &lines.items[i];
		size_t from = out->size;

		if (line->body.size) {
			ok = rule_apply(rule, line->indent, out);
			if (ok && style->tabs &&
			    memchr(out->data + from, ' ', out->size - from))
				ok = false;
			if (ok && style->blanks &&
			    memchr(out->data + from, '\t', out->size - from))
				ok = false;
			buf_addstr(out, line->body);
		}
		buf_addstr(out, str_part(replacement, line->end, line->next - line->end));
	}
	free(lines.items);
	return ok;
}

/* The prefix rule that follows from the first line that is not blank. */
static struct rule prefix_rule(struct str old, struct str file)
{
	size_t same = 0;

	while (same < old.size && same < file.size &&
	       old.data[old.size - same - 1] == file.data[file.size - same - 1])
		same++;
	return (struct rule){.kind = RULE_PREFIX,
			     .from = str_part(old, 0, old.size - same),
			     .to = str_part(file, 0, file.size - same)};
}

/* Try one rule. All rules that fit must give the same replacement. */
static bool rule_try(const struct rule *rule, const struct lines *old,
		     const struct line *file, struct str replacement,
		     const struct style *style, size_t *found, struct buf *out)
{
	struct buf made;
	bool agrees = true;

	if (!rule_holds(rule, old, file))
		return true;
	buf_init(&made, SIZE_MAX);
	if (rule_rewrite(rule, replacement, style, &made)) {
		agrees = *found == 0 || str_equal(buf_str(&made), buf_str(out));
		if (++*found == 1)
			buf_addstr(out, buf_str(&made));
	}
	buf_fini(&made);
	return agrees;
}

/*
 * Try rules of so many blanks per tab. PLAIN: only the rule without a shift, which is the
 * natural one and is tried first.
 */
static bool try_units(const struct lines *old, const struct line *file, size_t first,
		      bool plain, struct str replacement, const struct style *style,
		      size_t *found, struct buf *out)
{
	ptrdiff_t old_size = (ptrdiff_t)old->items[first].indent.size;
	ptrdiff_t file_size = (ptrdiff_t)file[first].indent.size;
	bool sure = true;

	for (ptrdiff_t unit = INDENT_UNIT_MIN; sure && unit <= INDENT_UNIT_MAX; unit++) {
		struct rule to_tabs = {.kind = RULE_BLANKS_TO_TABS,
				       .unit = unit,
				       .shift = file_size - old_size / unit};
		struct rule to_blanks = {.kind = RULE_TABS_TO_BLANKS,
					 .unit = unit,
					 .shift = file_size - old_size * unit};

		if (!plain || to_tabs.shift == 0)
			sure = rule_try(&to_tabs, old, file, replacement, style, found, out);
		if (sure && (!plain || to_blanks.shift == 0))
			sure = rule_try(&to_blanks, old, file, replacement, style, found,
					out);
	}
	return sure;
}

/*
 * Find the rule between OLD and the lines FILE of the file. OUT becomes the new text.
 * False: there is no rule, or no sure one.
 */
static bool find_rule(const struct lines *old, const struct line *file, size_t first,
		      struct str replacement, const struct style *style, struct buf *out)
{
	struct rule rule;
	size_t found = 0;
	bool sure;

	assert(old->items && file && first < old->count);
	rule = prefix_rule(old->items[first].indent, file[first].indent);
	sure = rule_try(&rule, old, file, replacement, style, &found, out);
	if (!found)
		sure = try_units(old, file, first, true, replacement, style, &found, out);
	if (!found && sure)
		sure = try_units(old, file, first, false, replacement, style, &found, out);
	return sure && found > 0;
}

static bool bodies_equal(const struct lines *old, const struct line *file, size_t first)
{
	if (!str_equal(old->items[first].body, file[first].body))
		return false;
	for (size_t i = 0; i < old->count; i++) {
		if (!str_equal(old->items[i].body, file[i].body))
			return false;
	}
	return true;
}

/* Fill MATCH at the level MATCH_INDENT. */
static void match_indent(struct str text, struct str old, struct str replacement,
			 struct match *match)
{
	struct lines file = split_lines(text);
	struct lines wanted = split_lines(old);
	struct style style = style_of(&file);
	size_t first = 0;
	size_t found = 0;

	while (first < wanted.count && wanted.items[first].body.size == 0)
		first++;
	if (first < wanted.count && wanted.count <= INDENT_LINES_MAX) {
		for (size_t i = 0; i + wanted.count <= file.count; i++) {
			const struct line *last = &file.items[i + wanted.count - 1];

			if (!bodies_equal(&wanted, &file.items[i], first))
				continue;
			found = i;
			match_add(match, file.items[i].start,
				  str_ends(old, STR("\n")) ? last->next : last->end);
		}
	}
	/*
	 * Several places are reported as several. A single place needs a rule that is
	 * sure.
	 */
	if (match->count == 1 && !find_rule(&wanted, &file.items[found], first,
					    replacement, &style, &match->replacement)) {
		buf_clear(&match->replacement);
		match->count = 0;
	}
	free(file.items);
	free(wanted.items);
}

/*
 * An old text that was pasted with the line numbers of a reading ("12<tab>text"). The
 * numbers are taken out when the rest then stands exactly once, and exactly where the
 * numbers say.
 */

/* The size of the number and the tab with which LINE begins; 0: it has none. */
static size_t number_size(struct str line, size_t *number)
{
	size_t at = 0;
	size_t value = 0;

	while (at < line.size && line.data[at] == ' ')
		at++;
	if (at == line.size || line.data[at] < '1' || line.data[at] > '9')
		return 0;
	for (; at < line.size && line.data[at] >= '0' && line.data[at] <= '9'; at++) {
		if (value > SIZE_MAX / 100)
			return 0;
		value = value * 10 + (size_t)(line.data[at] - '0');
	}
	if (at == line.size || line.data[at] != '\t')
		return 0;
	*number = value;
	return at + 1;
}

/*
 * Does each line of TEXT begin with a number and a tab, in the form of read_file? *FIRST
 * is the first number.
 */
static bool match_is_numbered(struct str text, size_t *first)
{
	struct str rest = text;
	struct str line;
	size_t expected = 0;

	while (str_next_line(&rest, &line)) {
		size_t number;

		if (number_size(line, &number) == 0 || (expected && number != expected))
			return false;
		if (!expected)
			*first = number;
		expected = number + 1;
	}
	return expected > 0;
}

static void strip(struct str text, struct buf *out)
{
	struct str rest = text;
	struct str line;

	while (str_next_line(&rest, &line)) {
		size_t number;
		size_t size = number_size(line, &number);

		buf_addstr(out, str_part(line, size, line.size));
		buf_addc(out, '\n');
	}
	if (!str_ends(text, STR("\n")) && out->size)
		buf_truncate(out, out->size - 1);
}

/* Does any line of TEXT have a number? Then all lines must have one. */
static bool has_numbers(struct str text)
{
	struct str line;
	size_t number;

	while (str_next_line(&text, &line)) {
		if (number_size(line, &number))
			return true;
	}
	return false;
}

/* Fill MATCH at the level of pasted line numbers. */
static void match_numbers(struct str text, struct str old, struct str replacement,
			  struct match *match)
{
	struct buf plain;
	size_t first = 0;
	size_t unused;

	if (!match_is_numbered(old, &first))
		return;
	buf_init(&plain, SIZE_MAX);
	strip(old, &plain);
	if (plain.size)
		match_exact(text, buf_str(&plain), false, match);
	if (match->count == 1 && match_line(text, match->spans[0].start) != first)
		match->count = 0;
	if (match_is_numbered(replacement, &unused))
		strip(replacement, &match->replacement);
	else if (has_numbers(replacement))
		match->count = 0;
	else
		buf_addstr(&match->replacement, replacement);
	buf_fini(&plain);
}

enum {
	/* bytes that old and new text must share to count as "made before" */
	EDIT_ANCHOR_MIN = 8,
};

struct replacement {
	size_t start, end;
	const struct buf *text;
	size_t edit;
};

struct plan {
	const char *shown;
	struct str text;
	const struct edit *edits;
	size_t count;
	bool exact_only, given_ends;
	struct shown_ends ends; /* of the text */
	struct edit_outcome *outcomes;
	struct buf *sentence;
	struct match *matches;
	struct replacement *replacements;
	size_t replacement_count;
};

static bool plan_refuse(struct plan *plan, size_t index, const char *sentence)
{
	if (plan->count > 1)
		buf_addf(plan->sentence, "Edit %zu of %zu: ", index + 1, plan->count);
	buf_adds(plan->sentence, sentence);
	return false;
}

/* The line end at or after AT, or (at the end of the text) before it. */
static enum shown_end end_at(struct str text, size_t at)
{
	size_t feed = str_find(text, STR("\n"), at);

	if (feed == (size_t)-1) {
		const char *last = text.size ? memrchr(text.data, '\n', text.size) : NULL;

		if (!last)
			return SHOWN_END_NONE;
		feed = (size_t)(last - text.data);
	}
	return feed > 0 && text.data[feed - 1] == '\r' ? SHOWN_END_CRLF : SHOWN_END_LF;
}

enum shown_end edit_fit_line_ends(struct str text, const struct shown_ends *ends,
				  size_t at, struct buf *new)
{
	enum shown_end wanted = shown_end_of_all(ends);
	struct shown_ends mine = {0};

	if (wanted == SHOWN_END_NONE) {
		shown_count_ends(buf_str(new), &mine);
		if (shown_end_of_all(&mine) != SHOWN_END_NONE)
			wanted = end_at(text, at);
	}
	return shown_set_ends(new, wanted) ? wanted : SHOWN_END_NONE;
}

static bool say_several(struct plan *plan, size_t index, const struct match *match)
{
	struct buf *out = plan->sentence;

	(void)plan_refuse(plan, index, "");
	buf_addf(out, "the old text stands at %zu places in %s: ", match->count,
		 plan->shown);
	edit_add_places(plan->text, match, out);
	buf_adds(out, ". Add lines around it to \"old\" until it is the only one, or set "
		      "\"replace_all\": true to change all.");
	return false;
}

static size_t common_start(struct str a, struct str b)
{
	size_t at = 0;

	while (at < a.size && at < b.size && a.data[at] == b.data[at])
		at++;
	return at;
}

static size_t common_end(struct str a, struct str b, size_t limit)
{
	size_t at = 0;

	while (at < limit && a.data[a.size - at - 1] == b.data[b.size - at - 1])
		at++;
	return at;
}

bool edit_shares_enough(struct str old, struct str new)
{
	size_t smaller = old.size < new.size ? old.size : new.size;
	size_t start = common_start(old, new);

	return start + common_end(old, new, smaller - start) >= EDIT_ANCHOR_MIN;
}

/*
 * Was the edit made before? It was when the new text stands exactly once, and shares so
 * much with the old text at its ends that there is no doubt about the place.
 */
static bool is_already_made(struct plan *plan, size_t index)
{
	const struct edit *edit = &plan->edits[index];
	struct edit_outcome *outcome = &plan->outcomes[index];
	struct match match;
	bool once;

	if (!edit_shares_enough(edit->old, edit->new) || edit->replace_all)
		return false;
	match_init(&match);
	once = match_find(plan->text, edit->new, STR(""), false, MATCH_LINE_END, &match) &&
	       match.count == 1;
	if (once) {
		outcome->already = true;
		outcome->line = match_line(plan->text, match.spans[0].start);
	}
	match_fini(&match);
	return once;
}

static bool say_missed(struct plan *plan, size_t index)
{
	const struct edit *edit = &plan->edits[index];
	struct buf *out = plan->sentence;
	size_t first;

	(void)plan_refuse(plan, index, "");
	buf_addf(out, "the old text was not found in %s", plan->shown);
	if (plan->exact_only)
		buf_adds(out, ", which has changed since it was read (so only exact text is "
			      "taken). Read it again");
	buf_adds(out, ". Nothing was changed. ");
	if (match_is_numbered(edit->old, &first))
		buf_adds(out, "It begins with line numbers, as read_file shows them: leave the "
			      "numbers and the tab after them away. ");
	edit_explain_miss(plan->text, edit->old, out);
	return false;
}

static void plan_add(struct plan *plan, size_t index)
{
	const struct match *match = &plan->matches[index];

	plan->replacements =
		memory_grow(plan->replacements, plan->replacement_count + match->count,
			    sizeof(*plan->replacements));
	for (size_t i = 0; i < match->count; i++)
		plan->replacements[plan->replacement_count++] =
			(struct replacement){match->spans[i].start, match->spans[i].end,
					     &match->replacement, index};
}

static bool plan_match(struct plan *plan, size_t index)
{
	const struct edit *edit = &plan->edits[index];
	struct match *match = &plan->matches[index];
	struct edit_outcome *outcome = &plan->outcomes[index];

	if (edit->old.size == 0)
		return plan_refuse(plan, index,
				   "\"old\" is empty. Give the text to be replaced; "
				   "write_file makes or replaces whole files.");
	if (str_equal(edit->old, edit->new))
		return plan_refuse(plan, index,
				   "\"old\" and \"new\" are the same; nothing would "
				   "change.");
	if (!match_find(plan->text, edit->old, edit->new, edit->replace_all,
			plan->exact_only ? MATCH_EXACT : MATCH_LINE_NUMBERS, match))
		return is_already_made(plan, index) || say_missed(plan, index);
	if (match->count > MATCH_SPANS_MAX)
		return plan_refuse(plan, index,
				   "the old text stands at more than a million "
				   "places; use a command (sed) for that.");
	if (match->count > 1 && !edit->replace_all)
		return say_several(plan, index, match);
	if (match->count > 1 && plan->exact_only)
		return plan_refuse(plan, index,
				   "the file has changed since it was read, and the "
				   "old text stands at several places. Read it again "
				   "before replacing all. Nothing was changed.");
	outcome->level = match->level;
	outcome->count = match->count;
	outcome->line = match_line(plan->text, match->spans[0].start);
	if (!plan->given_ends)
		outcome->end_set =
			edit_fit_line_ends(plan->text, &plan->ends, match->spans[0].start,
					   &match->replacement);
	plan_add(plan, index);
	return true;
}

static int compare_replacements(const void *a, const void *b)
{
	const struct replacement *left = a;
	const struct replacement *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->edit < right->edit ? -1 : left->edit > right->edit;
}

static bool plan_check_disjoint(struct plan *plan)
{
	for (size_t i = 1; i < plan->replacement_count; i++) {
		const struct replacement *before = &plan->replacements[i - 1];
		const struct replacement *at = &plan->replacements[i];

		if (before->end <= at->start)
			continue;
		buf_addf(plan->sentence,
			 "Edits %zu and %zu overlap at line %zu of %s: all edits are made against "
			 "the file as it is now. Merge them into one. Nothing was changed.",
			 (before->edit < at->edit ? before->edit : at->edit) + 1,
			 (before->edit < at->edit ? at->edit : before->edit) + 1,
			 match_line(plan->text, at->start), plan->shown);
		return false;
	}
	return true;
}

static bool plan_build(const struct plan *plan, struct buf *out)
{
	size_t at = 0;

	(void)buf_reserve(out, plan->text.size < out->max ? plan->text.size : 0);
	for (size_t i = 0; i < plan->replacement_count; i++) {
		const struct replacement *item = &plan->replacements[i];

		buf_addstr(out, str_part(plan->text, at, item->start - at));
		buf_addstr(out, buf_str(item->text));
		at = item->end;
	}
	buf_addstr(out, str_part(plan->text, at, plan->text.size - at));
	if (!out->overflowed)
		return true;
	buf_addf(plan->sentence,
		 "%s would become larger than this tool writes (%zu bytes). "
		 "Nothing was changed.",
		 plan->shown, out->max);
	return false;
}

bool edit_apply(const char *shown, struct str text, const struct edit *edits,
		size_t count, unsigned how, struct buf *out,
		struct edit_outcome *outcomes, struct buf *sentence)
{
	struct plan plan = {.shown = shown,
			    .text = text,
			    .edits = edits,
			    .count = count,
			    .exact_only = (how & EDIT_EXACT_ONLY) != 0,
			    .given_ends = (how & EDIT_GIVEN_ENDS) != 0,
			    .outcomes = outcomes,
			    .sentence = sentence};
	bool ok = true;

	plan.matches = memory_array(count, sizeof(*plan.matches));
	shown_count_ends(text, &plan.ends);
	memset(outcomes, 0, count * sizeof(*outcomes));
	for (size_t i = 0; i < count; i++)
		match_init(&plan.matches[i]);
	for (size_t i = 0; ok && i < count; i++)
		ok = plan_match(&plan, i);
	if (ok && plan.replacement_count)
		qsort(plan.replacements, plan.replacement_count,
		      sizeof(*plan.replacements), compare_replacements);
	ok = ok && plan_check_disjoint(&plan) && plan_build(&plan, out);
	for (size_t i = 0; i < count; i++)
		match_fini(&plan.matches[i]);
	free(plan.matches);
	free(plan.replacements);
	return ok;
}
