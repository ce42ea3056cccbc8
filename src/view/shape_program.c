/*
 * shape_program: our own program in the view, last in PATH, so that commands can use the
 * verbs that need no cell. If the view shows the program anyway, a link to it is enough.
 */
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "tool/denial.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The real path of the program. False when the file was removed or replaced since the
 * program started.
 */
static bool program_path(const struct shape_options *options, char path[PATH_MAX])
{
	const char *given = options->program != NULL ? options->program : "/proc/self/exe";
	struct stat held, named;
	auto_free char *real = realpath(given, NULL);

	if (real == NULL || strlen(real) >= PATH_MAX || stat(given, &held) < 0 ||
	    stat(real, &named) < 0 || held.st_ino != named.st_ino ||
	    held.st_dev != named.st_dev || !S_ISREG(named.st_mode))
		return false;
	memcpy(path, real, strlen(real) + 1);
	return true;
}

void shape_add_program(const struct shape_options *options, struct cell_spec *spec)
{
	char path[PATH_MAX];
	struct view_entry *entry;

	if (!program_path(options, path))
		return;
	if (system_folder_around(path, FOLDER_SYSTEM) != NULL) {
		(void)spec_add_entry(spec, VIEW_LINK, SHAPE_PROGRAM, path);
		(void)spec_add_entry(spec, VIEW_LINK, SHAPE_PATCH, "glovebox");
		return;
	}
	auto_close int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !shape_show_tree(spec, SHAPE_PROGRAM, &fd, false,
				       shape_closed_to_others(fd), NULL)) {
		spec->view.count -= fd >= 0;
		return;
	}
	entry = &spec->view.entries[spec->view.count - 1];
	entry->source = arena_copy(&spec->arena, str_of(path));
	entry->why = "for commands";
	/*
	 * Without a view the program stays at its own path, which the cell's user may be
	 * unable to reach.
	 */
	entry->optional = !spec_is_sealed(spec);
	if (spec_is_sealed(spec))
		(void)spec_add_entry(spec, VIEW_LINK, SHAPE_PATCH, "glovebox");
}
