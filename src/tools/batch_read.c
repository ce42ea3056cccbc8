/*
 * batch_read: several files as read_file shows them, in one answer under one ceiling. What
 * a file leaves of its share goes to those behind it. One that cannot be read says why in
 * its place; the others are shown all the same.
 */
#include "tools/read_file.h"
#include "tools/tools.h"

#include "base/text/text.h"

#define BATCH_FILES 50

/* Less of a file than this helps nobody: the file is named instead. */
enum { BATCH_LEAST_BYTES = 200 };

static const struct tool_param batch_read_params[] = {
	{"files", PARAM_LIST, true, "Files and the ranges wanted of them",
	 .aliases = "paths file_paths", .rows = read_file_params, .min = 1,
	 .max = BATCH_FILES},
	{0},
};

struct batch {
	struct call *call;
	struct tool_result *result;
	struct value *list;
	size_t bytes, lines; /* left of the ceiling */
	size_t done, failed;
};

static void merge_seen(struct tool_result *into, const struct tool_result *from)
{
	for (void *at = value_first(from->seen); at; at = value_next(from->seen, at))
		call_saw(into, value_key(at), value_text(value_at(at)));
}

static void take_result(struct batch *batch, const char *path, struct tool_result *one)
{
	struct value *item = one->details ? value_ref(one->details) : value_new_object();
	size_t shown = text_count_lines(buf_str(&one->text));

	(void)buf_end_line(&batch->result->text);
	buf_addstr(&batch->result->text, buf_str(&one->text));
	merge_seen(batch->result, one);
	batch->result->left_out_bytes += one->left_out_bytes;
	batch->result->left_out_lines += one->left_out_lines;
	batch->bytes -= one->text.size < batch->bytes ? one->text.size : batch->bytes;
	batch->lines -= shown < batch->lines ? shown : batch->lines;
	batch->done += one->status == RESULT_DONE;
	batch->failed += one->status != RESULT_DONE;
	if (!value_member(item, "path"))
		value_set_text(item, "path", path);
	value_set_text(item, "status", result_status_name(one->status));
	value_append(batch->list, item);
}

static void read_next(struct batch *batch, const struct value *item, size_t left)
{
	struct read_wanted wanted = {.path = value_text(value_member(item, "path")),
				     .arguments = item,
				     .max_lines = batch->lines / left,
				     .max_bytes = batch->bytes / left};
	struct tool_result one;

	tool_result_init(&one);
	if (wanted.max_bytes < BATCH_LEAST_BYTES || wanted.max_lines == 0)
		(void)tool_fail(&one,
				"%s was not read: no room is left in this answer. Ask for it with "
				"read_file.",
				wanted.path);
	else
		(void)read_one(batch->call, &wanted, &one);
	take_result(batch, wanted.path, &one);
	tool_result_fini(&one);
}

static enum result_status batch_read_execute(struct call *call, struct tool_result *result)
{
	const struct value *files = value_member(call->arguments, "files");
	struct batch batch = {.call = call,
			      .result = result,
			      .list = value_new_array(),
			      .bytes = READ_BYTES,
			      .lines = READ_LINES};
	const uint64_t most = call->limits.read_bytes;
	size_t count = value_count(files);

	if (most > 0 && most < batch.bytes)
		batch.bytes = (size_t)most;

	for (size_t i = 0; i < count && !call_stopped(call); i++)
		read_next(&batch, value_item(files, i), count - i);
	value_set(tool_details(result), "files", batch.list);
	if (call_stopped(call))
		return call_stop_result(call, result);
	result->status = batch.done ? RESULT_DONE : RESULT_FAILED;
	return result->status;
}

const struct tool batch_read_tool = {
	.name = "batch_read",
	.description = "Read several text files, or ranges of them, in one call; at most "
		       "" LINES_TEXT " lines or " KB_TEXT " KB together.",
	.example = "{\"files\": [{\"path\": \"src/main.c\"}, {\"path\": \"README.md\", "
		   "\"end_line\": 40}]}",
	.aliases = "read_files read_many_files",
	.params = batch_read_params,
	.effects = EFFECT_READS,
	.timeout_s = 60, /* some files on a slow disk */
	.execute = batch_read_execute,
};
