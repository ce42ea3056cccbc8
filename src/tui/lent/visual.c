/* visual: the text in a file for the editor, the editor's command, and what it left. */
#include "tui/lent/visual.h"

#include "base/fd.h"
#include "base/text/text.h"
#include "tui/lent/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	COMMAND_MAX = 4096,
};

static const char *editor(void)
{
	const char *visual = getenv("VISUAL"), *plain = getenv("EDITOR");

	return visual != NULL && visual[0] != '\0' ? visual
	       : plain != NULL && plain[0] != '\0' ? plain
						   : NULL;
}

static bool run(struct console *console, const char *path, int wake_fd, struct err *err)
{
	char command[COMMAND_MAX];
	const struct lent_job job = {
		.name = "your editor",
		.command = command,
		.argument = path,
		.environment = (const char *const *)environ,
		.input = -1,
		.wake_fd = wake_fd,
		.stop = LENT_STOPS_US,
	};
	const int size = snprintf(command, sizeof(command), "%s \"$1\"", editor());
	int status = 0;

	if (size < 0 || (size_t)size >= sizeof(command))
		return err_set(err, E2BIG, "the command in VISUAL or EDITOR is too long");
	if (!lent_job_run(console, &job, &status, err))
		return false;
	if (status == 0)
		return true;
	return err_set(err, ECANCELED,
		       "your editor (%.60s) did not end well: the text is as it was",
		       editor());
}

static bool write_text(const char *path, const struct buf *text, struct err *err)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	return fd_write_all(fd, text->data, text->size, err);
}

static bool read_text(const char *path, struct buf *text, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct buf read;
	bool sound;

	if (fd < 0)
		return err_set(err, errno, "what your editor left: %s", strerror(errno));
	buf_init(&read, text->max);
	sound = fd_read_all(fd, &read, "what your editor left", err);
	if (sound && (!text_is_utf8(buf_str(&read)) || strlen(read.data) != read.size))
		sound = err_set(err, EILSEQ, "what your editor left is no text in UTF-8");
	/* An editor ends the last line, which the person has not typed. */
	if (sound && read.size > 0 && read.data[read.size - 1] == '\n')
		buf_truncate(&read, read.size - 1);
	if (sound)
		buf_swap(text, &read);
	buf_fini(&read);
	return sound;
}

bool visual_edit(struct console *console, struct buf *text, int wake_fd, struct err *err)
{
	const char *place = getenv("XDG_RUNTIME_DIR");
	char folder[PATH_MAX], path[PATH_MAX + 16];
	bool edited;

	if (editor() == NULL)
		return err_set(err, ENOENT,
			       "no editor is known: set VISUAL or EDITOR to its command");
	if (place == NULL || place[0] != '/' || access(place, W_OK) < 0)
		place = getenv("TMPDIR");
	if (place == NULL || place[0] != '/')
		place = "/tmp";
	if ((size_t)snprintf(folder, sizeof(folder), "%s/glovebox-edit-XXXXXX", place) >=
	    sizeof(folder))
		return err_set(err, ENAMETOOLONG,
			       "the path in XDG_RUNTIME_DIR or TMPDIR is too long");
	if (mkdtemp(folder) == NULL)
		return err_set(err, errno, "a folder for the text in %s: %s", place,
			       strerror(errno));
	(void)snprintf(path, sizeof(path), "%s/prompt.md", folder);
	edited = write_text(path, text, err) && run(console, path, wake_fd, err) &&
		 read_text(path, text, err);
	fd_folder_remove(folder);
	return edited;
}
