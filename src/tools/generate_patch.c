/*
 * generate_patch: the hand-over of a run: one unified diff, as `git apply` takes it, of
 * every file that write_file and edit_file changed in this session, against what it was
 * before the first change.
 */
#include "tools/shown.h"
#include "tools/tools.h"
#include "tools/written.h"

#include "base/diff.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "runtime/files.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define PATCH_KB 256

enum { PATCH_MAX = PATCH_KB << 10 };

static const struct tool_param generate_patch_params[] = {
	{"title", PARAM_TEXT, true, "One line: what the change does", .min = 1, .max = 200},
	{"summary", PARAM_TEXT, true, "What was changed and why, and how it was checked",
	 .min = 1, .max = 20000},
	{0},
};

enum patch_state { PATCH_MODIFIED, PATCH_CREATED, PATCH_DELETED, PATCH_LEFT_OUT };

static const char *const state_names[] = {"modified", "created", "deleted", "left_out"};

struct patch {
	struct call *call;
	struct tool_result *result;
	struct buf diff; /* all files */
	struct buf list; /* lines for the text */
	struct value *files;
	size_t changed, left_out;
};

/*
 * A name as git writes it: in quotes with escapes when it holds a quote, a backslash or a
 * control byte.
 */
static void add_name(const char *name, struct buf *out)
{
	bool quoted = false;

	for (const char *at = name; *at; at++) {
		unsigned char byte = (unsigned char)*at;

		quoted = quoted || byte < 0x20 || byte == 0x7f || byte == '"' ||
			 byte == '\\';
	}
	if (!quoted) {
		buf_adds(out, name);
		return;
	}
	buf_addc(out, '"');
	for (const char *at = name; *at; at++) {
		unsigned char byte = (unsigned char)*at;

		if (byte == '"' || byte == '\\')
			buf_addf(out, "\\%c", byte);
		else if (byte < 0x20 || byte == 0x7f)
			buf_addf(out, "\\%03o", (unsigned)byte);
		else
			buf_addc(out, (char)byte);
	}
	buf_addc(out, '"');
}

static void note_file(struct patch *patch, const char *shown, enum patch_state state,
		      const struct diff_counts *counts, const char *why)
{
	struct value *item = value_new_object();

	value_set_text(item, "path", shown);
	value_set_text(item, "state", state_names[state]);
	value_set_integer(item, "added", (int64_t)counts->added);
	value_set_integer(item, "removed", (int64_t)counts->removed);
	value_append(patch->files, item);
	buf_addf(&patch->list, "  %s: ", shown);
	if (state == PATCH_LEFT_OUT) {
		patch->left_out++;
		buf_addf(&patch->list, "left out of the patch (%s)\n", why);
		return;
	}
	patch->changed++;
	buf_addf(&patch->list, "%s, +%zu -%zu\n", state_names[state], counts->added,
		 counts->removed);
}

/* The head and hunks of one file. False when the patch has no room for it. */
static bool add_diff(struct patch *patch, const char *shown, struct str before,
		     struct str now, enum patch_state state, mode_t mode,
		     struct diff_counts *counts)
{
	const char *executable = mode & 0100 ? "100755" : "100644";
	struct buf names[2];
	bool ok;

	for (int i = 0; i < 2; i++) {
		buf_init(&names[i], PATH_MAX + 8);
		buf_addf(&names[i], "%c/%s", i == 0 ? 'a' : 'b', shown);
	}
	buf_adds(&patch->diff, "diff --git ");
	add_name(names[0].data, &patch->diff);
	buf_addc(&patch->diff, ' ');
	add_name(names[1].data, &patch->diff);
	buf_addc(&patch->diff, '\n');
	if (state == PATCH_CREATED)
		buf_addf(&patch->diff, "new file mode %s\n", executable);
	else if (state == PATCH_DELETED)
		buf_addf(&patch->diff, "deleted file mode %s\n", executable);
	ok = diff_unified(before, now, state == PATCH_CREATED ? NULL : names[0].data,
			  state == PATCH_DELETED ? NULL : names[1].data, DIFF_CONTEXT,
			  &patch->diff, counts);
	buf_fini(&names[0]);
	buf_fini(&names[1]);
	return ok && !patch->diff.overflowed;
}

/*
 * What the path holds now. ABSENT: nothing. False: it cannot be part of a patch, WHY says
 * so.
 */
static bool read_now(struct patch *patch, const char *path, struct buf *content,
		     struct stat *st, bool *absent, const char **why)
{
	struct err err = {0};
	struct file file;
	bool reached;

	*absent = false;
	file_init(&file);
	reached = files_reach(patch->call->files, path, FILES_READ, &file, &err);
	if (reached) {
		*st = file.st;
		reached = fd_read_all(file.fd, content, path, &err);
	} else if (err.code == ENOENT) {
		*absent = true;
		reached = true;
	}
	file_fini(&file);
	*why = reached              ? NULL
	       : err.code == EFBIG  ? "larger than 64 MiB"
	       : err.code == EISDIR ? "a folder now"
				    : "not readable now";
	return reached;
}

static const char *why_not_text(struct str before, struct str now)
{
	if (text_is_binary(before) || text_is_binary(now))
		return "binary";
	/* What was replaced travels as JSON, which holds UTF-8 alone. */
	if (!text_is_utf8(now) || str_find(before, STR("\xef\xbf\xbd"), 0) != (size_t)-1)
		return "not UTF-8";
	return NULL;
}

static void add_file(struct patch *patch, const char *path, const struct value *was)
{
	const char *shown = files_shown(patch->call->files, path);
	bool was_absent = value_kind(was) == VALUE_NULL;
	struct str before = was_absent ? STR("") : value_str(was);
	enum patch_state state;
	struct diff_counts counts = {0};
	size_t mark = patch->diff.size;
	struct stat st = {.st_mode = 0644};
	const char *why;
	struct buf now;
	bool absent;

	if (value_kind(was) == VALUE_BOOLEAN) {
		note_file(patch, shown, PATCH_LEFT_OUT, &counts,
			  "what it was is too large to be kept");
		return;
	}
	buf_init(&now, WRITTEN_FILE_MAX);
	if (value_kind(was) == VALUE_BOOLEAN) {
		note_file(patch, shown, PATCH_LEFT_OUT, &counts,
			  "what it held before was too large to keep");
	} else if (!read_now(patch, path, &now, &st, &absent, &why)) {
		note_file(patch, shown, PATCH_LEFT_OUT, &counts, why);
	} else if (absent == was_absent && str_equal(before, buf_str(&now))) {
		/* Made and taken back: nothing to hand over. */
	} else if (shown[0] == '/') {
		note_file(patch, shown, PATCH_LEFT_OUT, &counts, "outside the workspace");
	} else if ((why = why_not_text(before, buf_str(&now)))) {
		note_file(patch, shown, PATCH_LEFT_OUT, &counts, why);
	} else {
		state = was_absent ? PATCH_CREATED
			: absent   ? PATCH_DELETED
				   : PATCH_MODIFIED;
		if (add_diff(patch, shown, before, buf_str(&now), state, st.st_mode,
			     &counts)) {
			note_file(patch, shown, state, &counts, NULL);
		} else {
			buf_truncate(&patch->diff, mark);
			patch->diff.overflowed = false;
			note_file(patch, shown, PATCH_LEFT_OUT, &counts,
				  "no room in a patch of " SHOWN_NUMBER(PATCH_KB) " KiB");
		}
	}
	buf_fini(&now);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/*
 * The paths of the session's changes in order of name, NULL-ended; the caller frees the
 * list.
 */
static const char **sorted_paths(const struct value *before)
{
	const char **paths = memory_array(value_count(before) + 1, sizeof(*paths));
	size_t count = 0;

	for (void *at = value_first(before); at; at = value_next(before, at))
		paths[count++] = value_key(at);
	if (count)
		qsort(paths, count, sizeof(*paths), compare_names);
	return paths;
}

static void answer(struct patch *patch, const char *title, const char *summary)
{
	struct buf *text = &patch->result->text;
	struct value *details = tool_details(patch->result);

	buf_addf(text, "%s\n\n%s\n\n", title, summary);
	if (!patch->changed && !patch->left_out)
		buf_adds(text, "No file differs from what it was.\n");
	else
		text_add_count(text, patch->changed, "file");
	if (patch->changed || patch->left_out)
		buf_addf(text, " in the patch:\n%s", patch->list.data);
	buf_adds(text,
		 "It covers what write_file and edit_file changed in this session; files "
		 "changed by commands are not in it.\n");
	if (patch->diff.size)
		buf_addf(text, "\n%s", patch->diff.data);
	value_set_text(details, "title", title);
	value_set_text(details, "summary", summary);
	value_set_str(details, "patch", buf_str(&patch->diff));
	value_set(details, "files", patch->files);
	patch->files = NULL;
}

static enum result_status generate_patch_execute(struct call *call,
						 struct tool_result *result)
{
	struct patch patch = {.call = call, .result = result, .files = value_new_array()};
	auto_free const char **paths = sorted_paths(call->before);
	bool stopped = false;

	buf_init(&patch.diff, PATCH_MAX);
	buf_init(&patch.list, RESULT_TEXT_MAX / 2);
	for (size_t i = 0; paths[i] && !stopped; i++) {
		add_file(&patch, paths[i], value_member(call->before, paths[i]));
		stopped = call_stopped(call);
	}
	if (!stopped)
		answer(&patch, call_text(call, "title"), call_text(call, "summary"));
	value_free(patch.files);
	buf_fini(&patch.diff);
	buf_fini(&patch.list);
	return stopped ? call_stop_result(call, result) : tool_done(result);
}

const struct tool generate_patch_tool = {
	.name = "generate_patch",
	.description =
		"Hand over the work: title, summary and one patch of all files changed by "
		"write_file and edit_file. Call it last.",
	.example = "{\"title\": \"Fix the sum of empty lists\", \"summary\": \"...\"}",
	.params = generate_patch_params,
	.effects = EFFECT_READS,
	.wants_changes = true,
	.timeout_s = 30, /* reads every changed file once */
	.execute = generate_patch_execute,
};
