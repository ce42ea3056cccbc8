/*
 * edit_file: replace parts of a file by their text. The matcher is edit.c and match.c;
 * here are the file, the guard, and the repetition when another writer was faster.
 */
#include "tools/edit.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { EDIT_TRIES = 64 /* writers of one file at once that may each be faster */ };

static const struct tool_param edit_rows[] = {
	{"old", PARAM_TEXT, true,
	 "Text to be replaced, exactly as in the file; must stand there once",
	 .aliases = "old_string old_str old_text search"},
	{"new", PARAM_TEXT, true, "Text to put in its place",
	 .aliases = "new_string new_str new_text replace replacement"},
	{"replace_all", PARAM_BOOLEAN, false, "Replace every place", .initial = "false",
	 .aliases = "all"},
	{0},
};

static const struct tool_param edit_file_params[] = {
	{"path", PARAM_PATH, true, "File to edit", .aliases = "file file_path filename"},
	{"edits", PARAM_LIST, true, "Edits, all made against the file as it is now",
	 .aliases = "changes", .rows = edit_rows, .min = 1, .max = EDIT_MAX},
	{"expected_hash", PARAM_TEXT, false,
	 "SHA-256 (12 digits or more) that the file must have", .aliases = "hash"},
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

/* How each edit was made, when that is not simply "exactly, once". */
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
	/* A caller that has not seen the rest of the file has not read it. */
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

/* Bytes of new text, as often as each edit puts it in. */
static size_t brought(const struct editing *editing)
{
	size_t bytes = 0;

	for (size_t i = 0; i < editing->count; i++) {
		if (!editing->outcomes[i].already)
			bytes += editing->edits[i].new.size * editing->outcomes[i].count;
	}
	return bytes;
}

/* One try: read, match, write. AGAIN: another writer came between. */
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
		err_set(&err, ENOENT, "%s does not exist; write_file makes new files.",
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
