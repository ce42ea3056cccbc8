/* blocked: watches the empty files that stand for blocked ones. */

#include "cell/layers/blocked.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text/text.h"
#include "tool/denial.h"

#include <limits.h>
#include <stdalign.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EVENTS_BYTES = 4096 };

void blocked_begin(struct blocked *blocked, const struct cell_spec *spec)
{
	struct stat st;

	*blocked = (struct blocked){.fd = -1};
	for (size_t i = 0; i < spec->view.count && blocked->count < BLOCKED_MAX; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (entry->kind != VIEW_MASK || !entry->apart ||
		    lstat(entry->path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (blocked->fd < 0)
			blocked->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		const int watch =
			blocked->fd < 0
				? -1
				: inotify_add_watch(blocked->fd, entry->path, IN_OPEN);
		if (watch < 0)
			return;
		blocked->paths[blocked->count] =
			path_within(entry->path, spec->workspace)
				? path_relative(entry->path, spec->workspace)
				: entry->path;
		blocked->watches[blocked->count++] = watch;
	}
}

static void tell(const char *path, struct tool_result *result)
{
	struct buf shown;

	buf_init(&shown, 4 * PATH_MAX);
	text_add_name(&shown, str_of(path));
	denial_add(result, &(struct denial){
				   .kind = DENIAL_FS,
				   .target = shown.data,
				   .rule = "blocked",
				   .remedy = "it was opened, and reads as empty here; only the "
					     "user can take it out of `blocked` in the "
					     "configuration",
			   });
	buf_fini(&shown);
}

void blocked_end(struct blocked *blocked, struct tool_result *result)
{
	alignas(struct inotify_event) char events[EVENTS_BYTES];
	bool opened[BLOCKED_MAX] = {false};
	ssize_t size;

	if (blocked->fd < 0)
		return;
	while ((size = read(blocked->fd, events, sizeof(events))) > 0) {
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *event = (const void *)(events + at);

			for (size_t i = 0; i < blocked->count; i++)
				opened[i] = opened[i] || blocked->watches[i] == event->wd;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	for (size_t i = 0; i < blocked->count; i++) {
		if (opened[i])
			tell(blocked->paths[i], result);
	}
	fd_close(&blocked->fd);
}
