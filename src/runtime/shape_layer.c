/*
 * shape_layer: what lies over or around the trees of a view: layers that take what is
 * written, and pins that hold folders in their places.
 */
#include "base/path.h"
#include "runtime/shape_parts.h"

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

bool shape_show_layer(struct cell_spec *spec, const char *path, int *take_fd,
		      uint64_t size, struct err *err)
{
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
