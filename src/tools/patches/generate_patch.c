/*
 * generate_patch: the hand-over of a run: one unified diff, in the form that `git apply`
 * takes, of every file that the session's tools and commands changed, against its content
 * at the start. The front hands in, open, the old contents of these files (plan.h). Our
 * own reader has applied the patch to the old contents, and the result was the present
 * contents.
 */

#include "tools/patches/take_patch.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/json/fields.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/diff.h"
#include "base/text/text.h"
#include "files/record.h"
#include "tools/patches/patch.h"
#include "tools/shown.h"
#include "tools/tools.h"
#include "undo/place.h"
#include "undo/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct patch_file_change {
	const char *path;
	/* the old name of a renamed file with the same content; NULL: not renamed */
	const char *from;
	bool existed, exists;
	bool was_executable, is_executable;
	struct str base, now; /* both are empty when the content is the same */
};

enum { SENTENCE_MAX = 64 << 10 };

/*
 * Append words that stand before a patch. A line that a reader of patches would take for
 * the beginning of a patch gets a blank before it. Ends with a line end, except when
 * WORDS is empty.
 */
static void patch_add_words(struct str words, struct buf *out)
{
	static const char *const heads[] = {"diff ", "--- ", "+++ ",   "@@",
					    "***",   "```",  "Index: "};
	struct str line;

	while (str_next_line(&words, &line)) {
		for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
			if (str_starts(line, str_of(heads[i]))) {
				(void)buf_addc(out, ' ');
				break;
			}
		}
		(void)buf_addstr(out, line);
		(void)buf_addc(out, '\n');
	}
}

static const char *mode_of(bool executable)
{
	return executable ? "100755" : "100644";
}

static void add_rename(const char *words, const char *name, struct buf *out)
{
	(void)buf_adds(out, words);
	(void)diff_add_quoted("", name, out);
	(void)buf_addc(out, '\n');
}

/* Append CHANGE to OUT. False: OUT has no room. */
static bool patch_file_print(const struct patch_file_change *change, struct buf *out,
			     struct diff_counts *counts)
{
	const char *old = change->from != NULL ? change->from : change->path;
	struct buf names[2];
	bool fine;

	buf_init(&names[0], PATH_MAX + 2);
	buf_init(&names[1], PATH_MAX + 2);
	(void)buf_addf(&names[0], "a/%s", old);
	(void)buf_addf(&names[1], "b/%s", change->path);
	(void)buf_adds(out, "diff --git ");
	(void)diff_add_quoted("", names[0].data, out);
	(void)buf_addc(out, ' ');
	(void)diff_add_quoted("", names[1].data, out);
	(void)buf_addc(out, '\n');
	if (!change->existed)
		(void)buf_addf(out, "new file mode %s\n", mode_of(change->is_executable));
	else if (!change->exists)
		(void)buf_addf(out, "deleted file mode %s\n",
			       mode_of(change->was_executable));
	else if (change->was_executable != change->is_executable)
		(void)buf_addf(out, "old mode %s\nnew mode %s\n",
			       mode_of(change->was_executable),
			       mode_of(change->is_executable));
	if (change->from != NULL) {
		(void)buf_adds(out, "similarity index 100%\n");
		add_rename("rename from ", old, out);
		add_rename("rename to ", change->path, out);
	}
	fine = diff_unified(change->base, change->now,
			    change->existed ? names[0].data : NULL,
			    change->exists ? names[1].data : NULL, DIFF_CONTEXT, out,
			    counts);
	buf_fini(&names[0]);
	buf_fini(&names[1]);
	return fine && !out->overflowed;
}

static bool makes_now(const struct patch_file_change *change, const struct patch_file *file)
{
	struct patch_outcome *outcomes = NULL;
	struct buf made, sentence;
	bool same;

	if (file->kind == PATCH_ADD)
		return str_equal(file->hunk_count > 0 ? file->hunks[0].new : STR(""),
				 change->now) &&
		       file->hunk_count <= 1;
	if (file->kind == PATCH_DELETE)
		return str_equal(file->hunk_count > 0 ? file->hunks[0].old : STR(""),
				 change->base) &&
		       file->hunk_count <= 1;
	if (file->hunk_count == 0)
		return str_equal(change->base, change->now);
	buf_init(&made, change->now.size + 1);
	buf_init(&sentence, SENTENCE_MAX);
	outcomes = memory_array(file->hunk_count, sizeof(*outcomes));
	same = patch_apply(change->path, file, change->base, EDIT_GIVEN_ENDS, &made,
			   outcomes, &sentence) &&
	       str_equal(buf_str(&made), change->now);
	free(outcomes);
	buf_fini(&made);
	buf_fini(&sentence);
	return same;
}

/*
 * Does our own reader read SECTION as exactly this change, and does it make NOW of BASE?
 */
static bool patch_file_applies(const struct patch_file_change *change, struct str section)
{
	const char *old = change->from != NULL ? change->from : change->path;
	struct patch patch;
	struct buf sentence;
	bool fine;

	buf_init(&sentence, SENTENCE_MAX);
	fine = patch_parse(section, &patch, &sentence) && patch.file_count == 1;
	if (fine) {
		const struct patch_file *file = &patch.files[0];
		const enum patch_kind kind = !change->existed  ? PATCH_ADD
					     : !change->exists ? PATCH_DELETE
							       : PATCH_UPDATE;
		const unsigned mode = !change->existed || (change->exists &&
							   change->was_executable !=
								   change->is_executable)
					      ? (change->is_executable ? 0755 : 0644)
					      : 0;

		fine = file->kind == kind && strcmp(file->path, old) == 0 &&
		       (change->from == NULL) == (file->to == NULL) &&
		       (file->to == NULL || strcmp(file->to, change->path) == 0) &&
		       file->mode == mode && makes_now(change, file);
	}
	patch_fini(&patch);
	buf_fini(&sentence);
	return fine;
}

#define PATCH_KB          256
#define PATCH_FILES_SHOWN 1000

_Static_assert(PATCH_FILES_MAX == PATCH_FILES_SHOWN, "what is handed out can be applied");

enum {
	FD_PLAN,
	PATCH_MAX = PATCH_KB << 10,
	/* Renames are found by comparing each removed file with each new one. */
	RENAMES_MAX = 1000,
};

static const struct row generate_patch_params[] = {
	{"title", ROW_TEXT, true, "One line: what the change does", .min = 1, .max = 200},
	{"summary", ROW_TEXT, true, "What was changed and why, and how it was checked",
	 .min = 1, .max = 20000},
	{0},
};

/* A path that may be part of the patch. */
struct item {
	char *path;
	struct undo_state base, now;
	const char *left_out; /* the reason why it is left out, or NULL */
	bool is_cache;        /* it is left out, and needs no line of its own */
	/* of a rename: the removed file, which is then reported here */
	struct item *from;
	bool is_said;
};

struct handing {
	struct call *call;
	struct tool_result *result;
	struct item *items;
	size_t count;
	struct value *limits; /* the front's notes about the plan, or NULL */
	struct buf diff;      /* the patch of all files */
	struct buf list;      /* a line for each file, for the result's text */
	struct value *files;
	size_t changed, left_out, caches, sections;
	size_t swaps; /* files that became folders, and folders that became files */
};

/*
 * Is PATH a cache file of Python? Python writes these files on import, and writes them
 * again when they are missing.
 */
static bool is_cache(const char *path)
{
	const struct str name = str_of(path);

	return str_ends(name, STR(".pyc")) &&
	       (str_starts(name, STR("__pycache__/")) ||
		str_find(name, STR("/__pycache__/"), 0) != (size_t)-1);
}

/*
 * A folder counts as absent: its files have items of their own, and a file that it replaced
 * was removed.
 */
static void take_folder(struct handing *handing, struct item *item)
{
	handing->swaps += item->now.kind == UNDO_FOLDER || item->base.kind == UNDO_FOLDER;
	if (item->now.kind == UNDO_FOLDER)
		item->now = undo_absent;
	if (item->base.kind == UNDO_FOLDER)
		item->base = undo_absent;
}

static const char *why_left_out(struct handing *handing, const struct undo_change *change,
				struct item *item)
{
	struct err err = {0};

	if (item->path[0] == '/')
		return "outside the workspace";
	if (!undo_place_look(handing->call->files, item->path, &item->now, &err))
		return err.code == ENXIO ? "neither a file nor a folder now"
					 : "not readable now";
	if (item->base.kind == UNDO_LINK || item->now.kind == UNDO_LINK)
		return "a symbolic link";
	take_folder(handing, item);
	if (change->after.kind == UNDO_FILE && change->after.source != UNDO_LOGGED)
		return "what it was could not be kept";
	return item->is_cache ? "a cache of Python's" : NULL;
}

static bool take_change(void *context, const struct undo_change *change)
{
	struct handing *handing = context;

	if (undo_is_of_folders(change->before.kind, change->after.kind))
		return !call_stopped(handing->call);
	handing->items =
		memory_more(handing->items, handing->count, sizeof(*handing->items));
	struct item *item = &handing->items[handing->count];
	*item = (struct item){.path = memory_copy_str(change->path), .base = change->after};
	item->is_cache = is_cache(item->path);
	item->left_out = why_left_out(handing, change, item);
	if (undo_state_same(&item->base, &item->now))
		free(item->path); /* it was changed and then changed back */
	else
		handing->count++;
	return !call_stopped(handing->call);
}

static bool take_limits(void *context, struct str json)
{
	struct handing *handing = context;

	if (handing->limits == NULL)
		(void)value_parse(json, 0, &handing->limits, NULL);
	return true;
}

static bool is_made(const struct item *item)
{
	return item->left_out == NULL && item->base.kind == UNDO_ABSENT;
}

static bool is_gone(const struct item *item)
{
	return item->left_out == NULL && item->now.kind == UNDO_ABSENT;
}

/* A removed file whose content is in a new file was renamed. */
static void find_renames(struct handing *handing)
{
	for (size_t i = 0; i < handing->count && handing->count <= RENAMES_MAX; i++) {
		struct item *made = &handing->items[i];

		for (size_t j = 0;
		     is_made(made) && made->now.size > 0 && j < handing->count; j++) {
			struct item *gone = &handing->items[j];
			if (!is_gone(gone) || gone->is_said || !gone->base.hashed ||
			    gone->base.size != made->now.size ||
			    memcmp(gone->base.digest, made->now.digest, UNDO_DIGEST) != 0)
				continue;
			made->from = gone;
			gone->is_said = true;
			break;
		}
	}
}

/* JSON has only UTF-8. Another name is written as in the patch, in quotes. */
static void set_path(struct value *file, const char *key, const char *path)
{
	struct buf text;

	buf_init(&text, 5 * PATH_MAX);
	if (patch_add_path(path, &text))
		value_set_boolean(file, strcmp(key, "from") == 0 ? "from_quoted" : "quoted",
				  true);
	value_set_str(file, key, buf_str(&text));
	buf_fini(&text);
}

static void set_hash(struct value *file, const char *key, const struct undo_state *state)
{
	char hex[2 * UNDO_DIGEST + 1];

	for (size_t i = 0; state->hashed && i < UNDO_DIGEST; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", state->digest[i]);
	if (state->kind == UNDO_FILE && state->hashed)
		value_set_text(file, key, hex);
}

static void note(struct handing *handing, const struct item *item, const char *state,
		 const struct diff_counts *counts)
{
	struct value *file = value_new_object();
	const struct undo_state *base =
		item->from != NULL ? &item->from->base : &item->base;

	set_path(file, "path", item->path);
	value_set_text(file, "state", state);
	value_set_integer(file, "added", (int64_t)counts->added);
	value_set_integer(file, "removed", (int64_t)counts->removed);
	if (item->from != NULL)
		set_path(file, "from", item->from->path);
	set_hash(file, "base_hash", base);
	if (item->left_out == NULL)
		set_hash(file, "hash", &item->now);
	else
		value_set_text(file, "why", item->left_out);
	value_append(handing->files, file);
	if (item->is_cache) {
		value_set_boolean(file, "cache", true);
		handing->caches++;
		return;
	}
	(void)buf_adds(&handing->list, "  ");
	text_add_name(&handing->list, str_of(item->path));
	if (item->left_out != NULL) {
		handing->left_out++;
		(void)buf_addf(&handing->list, ": left out of the patch (%s)\n",
			       item->left_out);
		return;
	}
	handing->changed++;
	(void)buf_addf(&handing->list, ": %s", state);
	if (item->from != NULL) {
		(void)buf_adds(&handing->list, " from ");
		text_add_name(&handing->list, str_of(item->from->path));
	}
	(void)buf_addf(&handing->list, ", +%zu -%zu\n", counts->added, counts->removed);
}

static const char *read_now(struct handing *handing, const struct item *item,
			    struct buf *content)
{
	struct err err = {0};
	struct file file;
	bool fine;

	if (item->now.kind == UNDO_ABSENT)
		return NULL;
	file_init(&file);
	fine = files_reach(handing->call->files, item->path, FILES_READ, &file, &err) &&
	       fd_read_all(file.fd, content, item->path, &err);
	file_fini(&file);
	return fine                ? NULL
	       : err.code == EFBIG ? "larger than 64 MiB"
				   : "not readable now";
}

static const char *read_base(const struct handing *handing, const struct item *item,
			     struct buf *content)
{
	if (item->base.kind == UNDO_ABSENT)
		return NULL;
	if (item->base.size > WRITTEN_FILE_MAX)
		return "it was larger than 64 MiB";
	return undo_log_content(handing->call->fds[FD_PLAN], item->base.offset,
				item->base.size, content, NULL)
		       ? NULL
		       : "what it was could not be read";
}

static const char *why_not_text(struct str base, struct str now)
{
	if (text_is_binary(base) || text_is_binary(now))
		return "binary";
	/* The patch is sent as JSON, which has only UTF-8. */
	return !text_is_utf8(base) || !text_is_utf8(now) ? "not UTF-8" : NULL;
}

static const char *add_section(struct handing *handing,
			       const struct patch_file_change *change,
			       struct diff_counts *counts)
{
	struct buf section;
	const char *why = NULL;

	if (handing->sections == PATCH_FILES_MAX)
		return "no room in a patch of " SHOWN_NUMBER(PATCH_FILES_SHOWN) " files";
	buf_init(&section, PATCH_MAX - handing->diff.size);
	if (!patch_file_print(change, &section, counts))
		why = "no room in a patch of " SHOWN_NUMBER(PATCH_KB) " KiB";
	else if (!patch_file_applies(change, buf_str(&section)))
		why = "a patch of it would not apply cleanly";
	else if (buf_addstr(&handing->diff, buf_str(&section)))
		handing->sections++;
	buf_fini(&section);
	return why;
}

static void add_item(struct handing *handing, struct item *item)
{
	struct diff_counts counts = {0};
	struct buf base, now;
	struct patch_file_change change = {
		.path = item->path,
		.from = item->from != NULL ? item->from->path : NULL,
		.existed = item->base.kind == UNDO_FILE || item->from != NULL,
		.exists = item->now.kind == UNDO_FILE,
		.was_executable =
			((item->from != NULL ? &item->from->base : &item->base)->mode &
			 0100) != 0,
		.is_executable = (item->now.mode & 0100) != 0,
	};

	buf_init(&base, WRITTEN_FILE_MAX);
	buf_init(&now, WRITTEN_FILE_MAX);
	/* A file with only another name or mode may have any bytes. */
	const bool is_same =
		item->from != NULL ||
		(item->base.hashed && item->base.size == item->now.size &&
		 memcmp(item->base.digest, item->now.digest, UNDO_DIGEST) == 0 &&
		 change.existed && change.exists);
	if (item->left_out == NULL && !is_same) {
		item->left_out = read_now(handing, item, &now);
		if (item->left_out == NULL)
			item->left_out = read_base(handing, item, &base);
		if (item->left_out == NULL)
			item->left_out = why_not_text(buf_str(&base), buf_str(&now));
	}
	change.base = buf_str(&base);
	change.now = buf_str(&now);
	if (item->left_out != NULL || !is_same || item->from != NULL ||
	    change.was_executable != change.is_executable) {
		if (item->left_out == NULL)
			item->left_out = add_section(handing, &change, &counts);
		if (item->left_out != NULL)
			counts = (struct diff_counts){0};
		note(handing, item,
		     item->left_out != NULL ? "left_out"
		     : item->from != NULL   ? "renamed"
		     : !change.existed      ? "created"
		     : !change.exists       ? "deleted"
					    : "modified",
		     &counts);
	}
	buf_fini(&base);
	buf_fini(&now);
}

static void add_outside(const struct value *folders, struct buf *text)
{
	for (size_t i = 0; i < value_count(folders); i++) {
		(void)buf_adds(text, i == 0 ? "What was written in granted folders is not in it: "
					    : ", ");
		(void)buf_adds(text, value_text(value_item(folders, i)));
	}
	if (value_count(folders) > 0)
		(void)buf_addc(text, '\n');
}

static void answer(struct handing *handing, const char *title, const char *summary)
{
	struct buf *text = &handing->result->text;
	struct value *details = tool_details(handing->result);
	struct undo_patch_limits limits = {0};

	(void)fields_read(handing->limits, undo_patch_limits_fields, &limits, NULL, NULL);
	patch_add_words(str_of(title), text);
	(void)buf_addc(text, '\n');
	patch_add_words(str_of(summary), text);
	(void)buf_addc(text, '\n');
	if (handing->changed == 0 && handing->left_out == 0)
		(void)buf_adds(text, "No file differs from what it was.\n");
	else
		text_add_count(text, handing->changed, "file");
	if (handing->changed > 0 || handing->left_out > 0)
		(void)buf_addf(text, " in the patch:\n%s", handing->list.data);
	if (handing->caches > 0) {
		(void)buf_adds(text, "Left out: ");
		(void)text_add_count(text, handing->caches, "file");
		(void)buf_adds(text, " of Python's caches (__pycache__).\n");
	}
	if (limits.without_commands != NULL)
		(void)buf_addf(text,
			       "It covers what file tools changed in this session; files changed by "
			       "commands are not in it: %s\n",
			       limits.without_commands);
	add_outside(limits.outside, text);
	if (limits.lost > 0)
		(void)buf_addf(text,
			       "%" PRId64 " calls of file tools changed more than could be "
			       "remembered; what they changed is not in it.\n",
			       limits.lost);
	if (handing->diff.size > 0)
		(void)buf_addf(text, "\n%s", handing->diff.data);
	value_set_text(details, "title", title);
	value_set_text(details, "summary", summary);
	value_set_str(details, "patch", buf_str(&handing->diff));
	value_set(details, "files", value_ref(handing->files));
}

static void say_item(struct handing *handing, struct item *item)
{
	if (!item->is_said)
		add_item(handing, item);
	item->is_said = true;
}

static bool handing_make(struct handing *handing, struct err *err)
{
	struct undo_reader reader = {.meta = take_limits,
				     .change = take_change,
				     .context = handing};

	if (handing->call->fds[FD_PLAN] >= 0 &&
	    !undo_log_read(&reader, handing->call->fds[FD_PLAN], err))
		return false;
	if (handing->call->fds[FD_PLAN] >= 0 && !reader.ended)
		return err_set(err, EINVAL, "it is cut short");
	/*
	 * With such swaps each file is removed or made, in an order that every program
	 * can follow.
	 */
	if (handing->swaps == 0)
		find_renames(handing);
	/*
	 * A file that makes room for another goes first, because some programs take one
	 * after the other.
	 */
	for (size_t i = 0; i < handing->count && handing->swaps > 0; i++) {
		if (handing->items[i].now.kind == UNDO_ABSENT)
			say_item(handing, &handing->items[i]);
	}
	for (size_t i = 0; i < handing->count && !call_stopped(handing->call); i++)
		say_item(handing, &handing->items[i]);
	return true;
}

/*
 * A title becomes the first line of a commit. More lines could look like a patch of their
 * own, and a terminal that shows the log would obey characters that nobody sees.
 */
static bool title_is_plain(struct str title, struct tool_result *result)
{
	size_t at = text_find_unseen(title);
	struct buf shown;

	if (at == title.size)
		return true;
	if (title.data[at] == '\n' || title.data[at] == '\r') {
		(void)tool_fail(
			result,
			"title must be one line; what else is to be said is for summary.");
		return false;
	}
	buf_init(&shown, 5 * title.size + 1);
	text_add_name(&shown, title);
	(void)tool_fail(result,
			"title holds a character that is not seen, at byte %zu: %s. Leave it "
			"away: a log that shows the title would obey it.",
			at + 1, shown.data);
	buf_fini(&shown);
	return false;
}

static enum result_status generate_patch_execute(struct call *call,
						 struct tool_result *result)
{
	struct handing handing = {.call = call, .result = result, .files = value_new_array()};
	struct err err = {0};

	buf_init(&handing.diff, PATCH_MAX);
	buf_init(&handing.list, RESULT_TEXT_MAX / 2);
	if (!title_is_plain(call_str(call, "title"), result)) {
		/* the sentence is set already */
	} else if (!handing_make(&handing, &err)) {
		(void)tool_fail(result, "What was changed could not be read: %s", err.text);
	} else if (call_stopped(call)) {
		(void)call_stop_result(call, result);
	} else {
		answer(&handing, call_text(call, "title"), call_text(call, "summary"));
		(void)tool_done(result);
	}
	for (size_t i = 0; i < handing.count; i++)
		free(handing.items[i].path);
	free(handing.items);
	value_free(handing.limits);
	value_free(handing.files);
	buf_fini(&handing.diff);
	buf_fini(&handing.list);
	return result->status;
}

const struct tool generate_patch_tool = {
	.name = "generate_patch",
	.description =
		"Hand over the work: title, summary and one patch of all files changed in "
		"this session, by tools and commands. Call it last.",
	.example = "{\"title\": \"Fix the sum of empty lists\", \"summary\": \"...\"}",
	.params = generate_patch_params,
	.effects = EFFECT_READS,
	.wants_changes = true,
	.timeout_s = 30, /* reads every changed file once */
	.execute = generate_patch_execute,
};
