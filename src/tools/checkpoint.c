/*
 * checkpoint: the front's own tool behind undo: look at the workspace, compare with the list
 * made last, keep what neither that nor git holds. fds: the old list, a file for the new one,
 * the log that takes copies and, for a step, the changes.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "files/record.h"
#include "tools/checkpoint_parts.h"
#include "tools/tools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FD_OLD, FD_NEW, FD_LOG };

static const struct tool_param checkpoint_params[] = {
	{"log", PARAM_ID, true, "Number of the log", .max = UINT32_MAX},
	{"step", PARAM_BOOLEAN, false, "What differs is a command's", .initial = "false"},
	{"began_ms", PARAM_COUNT, false, "When that command began", .max = INT64_MAX},
	{"ended_ms", PARAM_COUNT, false, "When it ended", .max = INT64_MAX},
	{"known", PARAM_BOOLEAN, false,
	 "The old list is of this session, even if it is empty", .initial = "false"},
	{"links", PARAM_BOOLEAN, false, "Objects are linked", .initial = "false"},
	{0},
};

static int64_t now_ns(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return clock_ns(&now);
}

static bool list_write(const struct checkpoint *checkpoint, int fd, struct err *err)
{
	struct buf text;

	buf_init(&text, UNDO_LIST_MAX);
	undo_list_print(&checkpoint->now, &text);
	bool fine = !text.overflowed && fd_write_all(fd, text.data, text.size, err);
	if (text.overflowed)
		(void)err_set(err, E2BIG, "the list of the workspace is too long");
	buf_fini(&text);
	return fine;
}

static void tell(struct checkpoint *checkpoint, struct tool_result *result)
{
	struct value *details = tool_details(result);
	size_t files = 0;

	for (size_t i = 0; i < checkpoint->now.count; i++)
		files += checkpoint->now.rows[i].state.kind != UNDO_FOLDER;
	value_set_boolean(details, "list", checkpoint->differs);
	value_set_integer(details, "files", (int64_t)files);
	value_set_integer(details, "changed", (int64_t)checkpoint->changed);
	value_set_integer(details, "added", (int64_t)checkpoint->added);
	value_set_integer(details, "removed", (int64_t)checkpoint->removed);
	value_set_integer(details, "strange", (int64_t)checkpoint->strange);
	value_set_integer(details, "left_files", (int64_t)checkpoint->left_files);
	value_set_integer(details, "left_bytes", (int64_t)checkpoint->left_bytes);
	value_set_integer(details, "unreadable", (int64_t)checkpoint->unreadable);
	if (checkpoint->below != NULL)
		value_set_text(details, "below", checkpoint->below);
	value_set(details, "nested", value_ref(checkpoint->nested));
	value_set(details, "link", value_ref(checkpoint->links));
}

static void old_read(struct checkpoint *checkpoint, int fd)
{
	bool known = call_flag(checkpoint->call, "known");

	/* One that cannot be read is none: everything is looked at and copied anew. */
	if (!undo_list_read(fd, &checkpoint->old, NULL)) {
		undo_list_fini(&checkpoint->old);
		undo_list_init(&checkpoint->old);
		known = false;
	}
	/* Without an old list there is no change to report. */
	if (checkpoint->old.count == 0 && !known)
		checkpoint->is_step = false;
}

static enum result_status checkpoint_execute(struct call *call, struct tool_result *result)
{
	struct checkpoint checkpoint = {
		.call = call,
		.is_step = call_flag(call, "step"),
		.may_link = call_flag(call, "links"),
		.began_ns = now_ns(),
		.command_began_ns = (int64_t)call_count(call, "began_ms", 0) * 1000000,
		.command_ended_ns = (int64_t)call_count(call, "ended_ms", 0) * 1000000,
		.nested = value_new_array(),
		.links = value_new_array(),
	};
	int64_t began_us = clock_now_us(), look_us = 0;
	struct err err = {0};

	undo_list_init(&checkpoint.old);
	undo_list_init(&checkpoint.now);
	arena_init(&checkpoint.tracked.paths);
	undo_log_begin(&checkpoint.log, call->fds[FD_LOG],
		       (uint32_t)call_count(call, "log", 0));
	old_read(&checkpoint, call->fds[FD_OLD]);
	bool fine = walk_start_open(&checkpoint.start, call, ".", &err) &&
		    checkpoint_look(&checkpoint, &err);
	look_us = clock_now_us() - began_us;
	const uint64_t begin = checkpoint.log.at;
	fine = fine && checkpoint_keep(&checkpoint, &err) &&
	       checkpoint_tell_made(&checkpoint, &err);
	fine = fine &&
	       (!checkpoint.differs || list_write(&checkpoint, call->fds[FD_NEW], &err));
	fine = fine && (!checkpoint.is_step || checkpoint.log.at == begin ||
			undo_log_end(&checkpoint.log, &err));
	if (fine) {
		tell(&checkpoint, result);
		value_set_integer(tool_details(result), "us", look_us);
		(void)tool_done(result);
	} else if (call_stopped(call)) {
		(void)call_stop_result(call, result);
	} else {
		(void)tool_fail(result, "%s", err.text);
	}
	walk_start_fini(&checkpoint.start);
	undo_list_fini(&checkpoint.old);
	undo_list_fini(&checkpoint.now);
	arena_fini(&checkpoint.tracked.paths);
	free(checkpoint.tracked.items);
	free(checkpoint.below);
	value_free(checkpoint.nested);
	value_free(checkpoint.links);
	return result->status;
}

const struct tool checkpoint_tool = {
	.name = "checkpoint",
	.description = "List the workspace and keep what could not be had again.",
	.example = "{\"log\": 1}",
	.params = checkpoint_params,
	.effects = EFFECT_READS,
	.timeout_s = 120, /* copying 1 GiB from a slow disk */
	.internal = true,
	.execute = checkpoint_execute,
};
