/*
 * list_paths: the front's own tool that names all files and folders of the workspace, for the
 * completion of what a person types. The walk is that of list_files: ignore files are honoured.
 * Each path, relative to the workspace, ends in a NUL; that of a folder has a slash before it.
 * The paths are written to the first descriptor, then one byte to the second one.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "tool/call.h"
#include "tools/search/walk.h"
#include "tools/tools.h"

#include <inttypes.h>

enum {
	FD_PATHS,
	FD_DONE,
	/* Of one thread. A person finds nothing among millions of names. */
	PATHS_MAX = 8 << 20,
	ENTRIES_MAX = 1000000,
	TIMEOUT_S = 10,
};

struct paths {
	struct paths_part {
		struct buf text;
		char apart[WALK_APART];
	} parts[WALK_THREADS_MAX];
};

static void visit(void *owner, struct walker *walker, const struct walk_entry *entry)
{
	struct paths *paths = owner;
	struct buf *text = &paths->parts[walker_number(walker)].text;
	const bool is_folder = entry->kind == WALK_FOLDER;

	/* The start itself, and what cannot be read as a text. */
	if (entry->depth == 0 || entry->kind == WALK_OTHER)
		return;
	if (text->size + entry->path.size + 2 > PATHS_MAX) {
		walker_give_up(walker);
		return;
	}
	(void)buf_addstr(text, entry->path);
	if (is_folder)
		(void)buf_addc(text, '/');
	(void)buf_addc(text, '\0');
}

static enum result_status list_paths_execute(struct call *call, struct tool_result *result)
{
	struct paths *paths = memory_alloc(sizeof(*paths));
	const struct walk_options options = {
		.call = call,
		.with_folders = true,
		.entries_max = ENTRIES_MAX,
		.visit = visit,
		.owner = paths,
	};
	struct walk_summary summary;
	struct walk_start start;
	struct err err = {0};
	bool fine;

	for (size_t i = 0; i < WALK_THREADS_MAX; i++)
		buf_init(&paths->parts[i].text, PATHS_MAX);
	walk_summary_init(&summary);
	fine = walk_start_open(&start, call, ".", &err);
	if (fine)
		walk_run(&start, &options, &summary);
	for (size_t i = 0; fine && i < WALK_THREADS_MAX; i++) {
		const struct buf *text = &paths->parts[i].text;

		fine = fd_write_all(call->fds[FD_PATHS], text->data, text->size, &err);
	}
	/* Also after a failure: somebody waits for it. */
	(void)fd_write_all(call->fds[FD_DONE], "", 1, NULL);
	for (size_t i = 0; i < WALK_THREADS_MAX; i++)
		buf_fini(&paths->parts[i].text);
	walk_summary_fini(&summary);
	walk_start_fini(&start);
	free(paths);
	return fine ? tool_done(result) : tool_fail(result, "%s", err.text);
}

const struct tool list_paths_tool = {
	.name = "list_paths",
	.description = "Name all files and folders of the workspace.",
	.example = "{}",
	.effects = EFFECT_READS,
	.searches = true,
	.timeout_s = TIMEOUT_S,
	.internal = true,
	.execute = list_paths_execute,
};
