/*
 * files_keep: writes the content that a file tool is about to replace to the log of the
 * call.
 */
#include "files/files_inside.h"
#include "files/undo_log.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/text/text.h"
#include "base/value.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void files_keep(struct files *files, struct undo_log *log)
{
	files->log = log;
}

bool files_keeps(const struct files *files)
{
	return files->log != NULL;
}

bool files_keep_change(const struct files *files, const char *path, int old_fd,
		       const struct stat *old, const struct undo_state *after,
		       struct err *err)
{
	struct undo_log *log = files->log;
	struct undo_state before = undo_absent;

	if (log == NULL)
		return true;
	if (old_fd >= 0) {
		undo_state_of(old, &before);
		if (!undo_log_file(log, old_fd, UNDO_CONTENT_MAX, &before, err))
			return err_while(err, "what is there could not be kept for "
					      "`glovebox undo`, so nothing was written");
	}
	return undo_log_change(log, str_of(path_relative(path, files->workspace)),
			       &before, after, err) ||
	       err_while(err, "this change could not be noted for `glovebox undo`, so "
			      "nothing was written");
}

void files_note_heads(struct files *files, struct value *list)
{
	files->heads = list;
}

void files_add_heads(const struct files *files, const char *folder)
{
	const struct files_held *root = files_root_of(files, folder);
	auto_free char *at = memory_copy(folder);
	char head[PATH_MAX];

	if (files->heads == NULL || root == NULL)
		return;
	while (strlen(at) > strlen(root->path)) {
		auto_free char *key = path_key(at);

		if (snprintf(head, sizeof(head), "%s/HEAD", at) < (int)sizeof(head) &&
		    faccessat(AT_FDCWD, head, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !value_has_text(files->heads, key))
			value_append(files->heads, value_new_text(key));
		*strrchr(at, '/') = '\0';
	}
}

void files_note_written(struct files *files, struct value *list)
{
	files->written = list;
}

void files_add_written(const struct files *files, const char *folder, const char *name)
{
	struct buf path;

	if (files->written == NULL || value_count(files->written) >= FILES_NOTED)
		return;
	buf_init(&path, PATH_MAX);
	if (buf_addf(&path, "%s%s%s", folder,
		     str_ends(str_of(folder), STR("/")) ? "" : "/", name) &&
	    text_is_utf8(buf_str(&path)))
		value_append(files->written, value_new_text(path.data));
	buf_fini(&path);
}
