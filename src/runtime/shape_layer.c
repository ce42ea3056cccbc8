/*
 * shape_layer: what lies over or around the trees of a view: layers that take what is
 * written, and pins that hold folders in their places.
 */
#include "base/fd.h"
#include "base/path.h"
#include "runtime/shape_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum { MOUNTS_MAX = 16 << 20 }; /* a machine with tens of thousands of them */

static bool is_tree(const struct view_entry *entry)
{
	return entry->kind == VIEW_TREE || entry->kind == VIEW_OVERLAY;
}

static bool is_writable(const struct view_entry *entry)
{
	return entry->writable || entry->kind == VIEW_OVERLAY;
}

bool shape_is_shown(const struct cell_spec *spec, const char *path, bool writable)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (is_tree(entry) && strcmp(entry->path, path) == 0 &&
		    (is_writable(entry) || !writable))
			return true;
	}
	return false;
}

/* The mount point in LINE of mountinfo (its fifth word, blanks as \040) is below PATH. */
static bool is_mounted_below(struct str line, const char *path, char point[PATH_MAX])
{
	struct str word = {0};
	size_t size = 0;

	for (int i = 0; i < 5; i++) {
		if (!str_next_word(&line, &word))
			return false;
	}
	for (size_t i = 0; i < word.size && size + 1 < PATH_MAX; i++) {
		if (word.data[i] == '\\' && word.size - i > 3) {
			const char *digits = word.data + i + 1;

			point[size++] = (char)((digits[0] - '0') << 6 |
					       (digits[1] - '0') << 3 | (digits[2] - '0'));
			i += 3;
		} else {
			point[size++] = word.data[i];
		}
	}
	point[size] = '\0';
	return strcmp(point, path) != 0 && path_within(point, path);
}

/*
 * A layer shows one file system: what is mounted below would silently be empty, or the
 * kernel refuses the whole.
 */
static bool refuse_mounts_below(const char *path, struct err *err)
{
	struct buf text;
	char point[PATH_MAX];
	bool found = false;

	buf_init(&text, MOUNTS_MAX);
	auto_close int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !fd_read_all(fd, &text, "the list of mounts", err)) {
		buf_fini(&text);
		return fd >= 0 ||
		       err_set(err, errno, "the list of mounts: %s", strerror(errno));
	}
	struct str rest = buf_str(&text), line;
	while (!found && str_next_line(&rest, &line))
		found = is_mounted_below(line, path, point);
	buf_fini(&text);
	return !found ||
	       err_set(err, EINVAL,
		       "scratch: %s is a file system of its own, which a layer over %s cannot "
		       "show; name the folders beside it in `read`, or leave `scratch` out",
		       point, path);
}

bool shape_show_layer(struct cell_spec *spec, const char *path, int *take_fd,
		      uint64_t size, struct err *err)
{
	if (!refuse_mounts_below(path, err))
		return false;
	struct view_entry *entry = spec_add_entry(spec, VIEW_MEMORY, path, NULL);

	entry->mode = 0700;
	entry->size = size;
	if (!shape_show_tree(spec, path, take_fd, false, true, err))
		return false;
	spec->view.entries[spec->view.count - 1].kind = VIEW_OVERLAY;
	return true;
}

static bool is_pinned(const struct cell_spec *spec, const char *path)
{
	for (size_t i = 0; i < spec->view.count; i++) {
		if (spec->view.entries[i].kind == VIEW_PIN &&
		    strcmp(spec->view.entries[i].path, path) == 0)
			return true;
	}
	return false;
}

void shape_pin_above(struct cell_spec *spec, const char *path)
{
	const struct view_entry *holder = NULL;
	char above[PATH_MAX];
	size_t size = strlen(path);

	for (size_t i = 0; i < spec->view.count; i++) {
		const struct view_entry *entry = &spec->view.entries[i];

		if (is_tree(entry) && strcmp(entry->path, path) != 0 &&
		    path_within(path, entry->path) &&
		    (holder == NULL || strlen(entry->path) > strlen(holder->path)))
			holder = entry;
	}
	if (holder == NULL || !is_writable(holder) || size >= sizeof(above))
		return;
	memcpy(above, path, size + 1);
	for (size_t at = strlen(holder->path) + 1; at < size; at++) {
		if (path[at] != '/')
			continue;
		above[at] = '\0';
		if (!is_pinned(spec, above)) {
			struct view_entry *pin =
				spec_add_entry(spec, VIEW_PIN, above, NULL);

			pin->writable = true;
			pin->why = "what lies below keeps its place";
		}
		above[at] = '/';
	}
}
