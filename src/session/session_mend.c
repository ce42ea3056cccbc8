/*
 * session_mend: finishes writes that a killed front had begun in folders that a person
 * had granted to it. No policy of this session shows these folders. So one worker is made
 * that sees them, only to finish or take back the writes that the journals list.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "cell/anchor.h"
#include "cell/cell.h"
#include "cell/pending.h"
#include "session/extra.h"
#include "session/session_parts.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { MEND_MS = 10000 }; /* enough to start a cell and a worker on a busy machine */

static const struct tool mend_tool = {
	.name = "mend",
	.description = "Finish what a killed session had begun to write.",
	.effects = EFFECT_READS,
	.internal = true,
};

/*
 * The folder of ROOT, when it is still the folder that was granted and this cell may have
 * it; else NULL. *GONE: that folder will never be there again.
 */
static struct extra *extra_of(const struct cell_spec *cell, const struct value *root,
			      bool *gone)
{
	auto_free char *path = path_of_key(value_text(value_member(root, "path")));
	struct extra *extra;
	struct stat st;
	char file[PENDING_FILE];
	struct err err;

	*gone = true;
	auto_close int fd =
		path != NULL ? open(path, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC)
			     : -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	pending_file(&st, file);
	if (!str_is(value_str(value_member(root, "file")), file))
		return NULL;
	*gone = false;
	const struct shape_extra wanted = {.path = path, .fd = fd, .writable = true};
	if (!shape_judge_extra(cell, &wanted, &err))
		return NULL;
	extra = memory_alloc(sizeof(*extra));
	extra->root = (struct shape_extra){.path = memory_copy(path),
					   .fd = fd_take(&fd),
					   .writable = true};
	extra->granted = true;
	return extra;
}

/*
 * The folders of ROOTS that this cell may have now; false when others may be had another
 * time.
 */
static bool extras_take(const struct cell_spec *cell, const struct value *roots,
			struct extra **first)
{
	bool all = true;
	size_t count = 0;

	for (size_t i = 0; i < value_count(roots); i++) {
		bool gone = false;
		struct extra *extra = count < ANCHOR_EXTRAS_MAX
					      ? extra_of(cell, value_item(roots, i), &gone)
					      : NULL;

		all = all && (extra != NULL || gone);
		if (extra == NULL)
			continue;
		extra->next = *first;
		*first = extra;
		count++;
	}
	return all;
}

void session_mend(struct session *session)
{
	const struct cell_spec *cell = cell_spec(session->cell);
	const struct value *roots = NULL;
	struct pending *pending = cell_pending(session->cell);
	const struct value *writes = pending_granted(pending, &roots);
	const int64_t deadline = clock_now_ms() + MEND_MS;
	struct extra *extras = NULL;

	if (writes == NULL)
		return;
	const bool all = extras_take(cell, roots, &extras);
	if (extras != NULL) {
		struct running *running = running_of_session(session, &mend_tool);

		running->extras = extras;
		running->unfinished = value_copy(writes);
		running->auditing = running->mending = true;
		running_set_state(running, RUNNING_QUEUED);
		running_dispatch(session);
		while (!running_is_done(running) && clock_now_ms() < deadline)
			loop_turn(session->loop, deadline);
		const bool mended = running_is_done(running) && running->mended;
		running_free(running);
		if (!mended)
			return;
	}
	if (all)
		pending_granted_mended(pending);
}
