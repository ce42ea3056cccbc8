/*
 * shape_layer: adds layers, which take writes over a tree of a view, and pins, which keep
 * folders in their places.
 */
#include "base/fd.h"
#include "base/path.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

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

/* Find a mount point below PATH and put it into POINT. */
static bool find_mount_below(struct str mounts, const char *path, struct buf *point)
{
	struct mount mount;

	while (mounts_next(&mounts, &mount)) {
		buf_clear(point);
		(void)mounts_add_path(mount.point, point);
		if (strcmp(point->data, path) != 0 && path_within(point->data, path))
			return true;
	}
	return false;
}

/*
 * A layer shows only one file system. A mount point below it would silently be empty, or
 * the kernel would refuse the layer.
 */
static bool refuse_mounts_below(const char *path, struct err *err)
{
	auto_close int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	struct buf text, point;

	if (fd < 0)
		return err_set(err, errno, "the list of mounts: %s", strerror(errno));
	buf_init(&text, MOUNTS_BYTES_MAX);
	buf_init(&point, PATH_MAX);
	bool ok = fd_read_all(fd, &text, "the list of mounts", err);
	if (ok && find_mount_below(buf_str(&text), path, &point))
		ok = err_set(err, EINVAL,
			     "scratch: %s is a file system of its own, which a layer over %s "
			     "cannot show; name the folders beside it in `read`, or leave "
			     "`scratch` out",
			     point.data, path);
	buf_fini(&point);
	buf_fini(&text);
	return ok;
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
	entry = &spec->view.entries[spec->view.count - 1];
	entry->kind = VIEW_OVERLAY;
	entry->passing = true;
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
