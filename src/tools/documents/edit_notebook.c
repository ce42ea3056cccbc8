/*
 * edit_notebook: replaces, inserts or deletes one cell of a notebook. A cell is named by its
 * number, and numbers change with each inserted cell. So the session must have read the
 * notebook, which must be unchanged since, or the call must name its hash.
 */

#include "base/buf.h"
#include "base/hash.h"
#include "base/value.h"
#include "tools/documents/notebook.h"
#include "tools/shown.h"
#include "tools/tools.h"

#include <errno.h>
#include <string.h>

static const struct row edit_notebook_params[] = {
	{"path", ROW_PATH, true, "Notebook", .aliases = "file file_path notebook_path"},
	{"cell", ROW_ID, true, "Its number, or that of the new cell", .min = 1,
	 .max = INT32_MAX, .aliases = "cell_number"},
	{"action", ROW_CHOICE, false, "What to do", .choices = "replace insert delete",
	 .initial = "\"replace\"", .aliases = "edit_mode"},
	{"kind", ROW_CHOICE, false, "Unless told its own, or code",
	 .choices = "code markdown raw", .aliases = "cell_type"},
	{"source", ROW_TEXT, false, "Whole new source", .aliases = "new_source content",
	 .unmasks = UNMASKS},
	{"expected_hash", ROW_TEXT, false, "Instead of a read_file before",
	 .aliases = "hash"},
	{0},
};

/* Does the model know the numbers of the cells? False: RESULT says what to do. */
static bool is_known(struct written *written)
{
	char hash[HASH_HEX + 1];
	const enum written_known known = written_known(written, hash);

	if (known == KNOWN_NOW || known == KNOWN_REFUSED)
		return known == KNOWN_NOW;
	(void)tool_fail(written->result,
			"%s %s, and its cells are known by their numbers only. Read it, then edit; "
			"or pass \"expected_hash\": \"%.*s\". Nothing was changed.",
			written->path,
			known == KNOWN_BEFORE ? "was changed since you read it"
					      : "has not been read in this session",
			HASH_SHOWN, hash);
	return false;
}

static bool take_edit(const struct call *call, struct notebook_edit *edit,
		      struct tool_result *result)
{
	const struct str action = call_str(call, "action");

	edit->action = str_is(action, "insert")   ? NOTEBOOK_INSERT
		       : str_is(action, "delete") ? NOTEBOOK_DELETE
						  : NOTEBOOK_REPLACE;
	edit->cell = (size_t)call_count(call, "cell", 1);
	edit->kind = call_text(call, "kind");
	edit->source = call_str(call, "source");
	if (edit->action != NOTEBOOK_DELETE &&
	    value_member(call->arguments, "source") == NULL) {
		(void)tool_fail(result,
				"Give the \"source\" of the cell, which may be empty.");
		return false;
	}
	return written_fits(call, edit->source.size, result);
}

static enum result_status finish(struct written *written,
				 const struct notebook_edit *edit, struct str content)
{
	struct buf *text = &written->result->text;
	char mark[FILES_MARK];

	switch (edit->action) {
	case NOTEBOOK_REPLACE:
		buf_addf(text, "Replaced cell %zu of ", edit->cell);
		break;
	case NOTEBOOK_INSERT:
		buf_addf(text, "Inserted cell %zu into ", edit->cell);
		break;
	case NOTEBOOK_DELETE:
		buf_addf(text, "Deleted cell %zu of ", edit->cell);
		break;
	}
	written_add_path(written, text);
	written_report(written, content, false);
	written_new_mark(written, content, mark);
	call_saw(written->result, written->real.data, mark);
	return tool_done(written->result);
}

static enum result_status edit(struct written *written, const struct notebook_edit *edit)
{
	struct notebook notebook;
	struct buf content;
	struct err err = {0};
	enum result_status status;

	if (!written_read_old(written, &err))
		return written_fail(written, &err);
	if (!is_known(written))
		return RESULT_FAILED;
	buf_init(&content, WRITTEN_FILE_MAX);
	if (!notebook_open(&notebook, buf_str(&written->old), &err))
		status = tool_fail(written->result, "%s is no notebook: %s.",
				   written->path, err.text);
	else if (!notebook_apply(&notebook, edit, &content, &err))
		status = tool_fail(written->result, "%s: %s", written->path, err.text);
	else if (written_replace(written, buf_str(&content), &err))
		status = finish(written, edit, buf_str(&content));
	else
		status = written_fail(written, &err);
	notebook_close(&notebook);
	buf_fini(&content);
	return status;
}

static enum result_status edit_notebook_execute(struct call *call, struct tool_result *result)
{
	struct notebook_edit wanted = {0};
	struct written written;
	struct err err = {0};
	enum result_status status = RESULT_FAILED;

	written_init(&written, call, result);
	if (take_edit(call, &wanted, result)) {
		if (!files_place(call->files, written.path, false, &written.place, &err))
			status = written_fail(&written, &err);
		else if (written.place.exists)
			status = edit(&written, &wanted);
		else if (!err_set(&err, ENOENT,
				  "%s does not exist; write_file makes new files.",
				  written.path))
			status = written_fail(&written, &err);
	}
	written_fini(&written);
	return status;
}

const struct tool edit_notebook_tool = {
	.name = "edit_notebook",
	.description = "Replace, insert or delete a cell of a notebook that was read.",
	.example = "{\"path\": \"plot.ipynb\", \"cell\": 3, \"source\": \"print(1)\\n\"}",
	.aliases = "notebook_edit",
	.params = edit_notebook_params,
	.effects = EFFECT_WRITES,
	.timeout_s = 30, /* fsync on a busy disk */
	.execute = edit_notebook_execute,
};
