/*
 * undo_store_ahead: the files of the next steps, made ahead and nameless until they are
 * needed.
 */
#include "base/fd.h"
#include "undo/undo_store_parts.h"

#include <fcntl.h>

int undo_blanks_take(struct undo_blanks *blanks)
{
	return blanks->count > 0 ? blanks->fds[--blanks->count] : -1;
}

void undo_blanks_fini(struct undo_blanks *blanks)
{
	while (blanks->count > 0)
		fd_close(&blanks->fds[--blanks->count]);
}

static bool add(struct undo_blanks *blanks, int fd)
{
	if (fd < 0)
		return false;
	blanks->fds[blanks->count++] = fd;
	return true;
}

static int blank_step(const struct undo_store *store)
{
	return openat(store->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

void undo_store_make_ahead(struct undo_store *store, size_t count)
{
	if (!store->writes)
		return;
	while (store->blank_logs.count < count &&
	       add(&store->blank_logs, undo_store_blank_log(store)))
		;
	while (store->blank_steps.count < count &&
	       add(&store->blank_steps, blank_step(store)))
		;
}
