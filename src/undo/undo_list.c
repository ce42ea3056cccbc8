/* undo_list: rows in order of their names; see undo_list.h. */
#include "undo/undo_list.h"

#include "base/fd.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_HEADER = 8, PATH_LENGTH = 2, ROWS_AT_FIRST = 256 };

/* The last byte is the version of the rows. */
static const char list_magic[LIST_HEADER] = "GBLIST\n\1";

void undo_list_init(struct undo_list *list)
{
	*list = (struct undo_list){0};
	arena_init(&list->paths);
}

void undo_list_fini(struct undo_list *list)
{
	free(list->rows);
	arena_fini(&list->paths);
	*list = (struct undo_list){0};
}

bool undo_list_add(struct undo_list *list, struct str path, const struct undo_state *state)
{
	if (list->count >= UNDO_ROWS_MAX)
		return false;
	if (list->count == list->room) {
		list->room = list->room > 0 ? 2 * list->room : ROWS_AT_FIRST;
		list->rows = memory_grow(list->rows, list->room, sizeof(*list->rows));
	}
	list->rows[list->count++] = (struct undo_row){
		.path = {arena_copy(&list->paths, path), path.size},
		.state = *state,
	};
	return true;
}

static int compare_paths(struct str a, struct str b)
{
	int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);

	return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_rows(const void *a, const void *b)
{
	const struct undo_row *left = a, *right = b;

	return compare_paths(left->path, right->path);
}

void undo_list_sort(struct undo_list *list)
{
	size_t kept = 0;

	if (list->count == 0)
		return;
	qsort(list->rows, list->count, sizeof(*list->rows), compare_rows);
	for (size_t i = 1; i < list->count; i++) {
		if (!str_equal(list->rows[kept].path, list->rows[i].path))
			list->rows[++kept] = list->rows[i];
	}
	list->count = kept + 1;
}

size_t undo_list_at(const struct undo_list *list, struct str path)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_paths(list->rows[middle].path, path) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct undo_row *undo_list_find(const struct undo_list *list, struct str path)
{
	size_t at = undo_list_at(list, path);

	return at < list->count && str_equal(list->rows[at].path, path) ? &list->rows[at]
									: NULL;
}

void undo_list_print(const struct undo_list *list, struct buf *out)
{
	(void)buf_add(out, list_magic, sizeof(list_magic));
	for (size_t i = 0; i < list->count; i++) {
		const struct undo_row *row = &list->rows[i];
		const unsigned char size[PATH_LENGTH] = {row->path.size & 0xff,
							 (row->path.size >> 8) & 0xff};

		(void)buf_add(out, size, sizeof(size));
		undo_state_print(&row->state, out);
		(void)buf_addstr(out, row->path);
	}
}

static bool unsound(struct err *err, const char *what)
{
	return err_set(err, EINVAL,
		       "a list of the workspace that does not hold together (%s)", what);
}

bool undo_list_parse(struct str text, struct undo_list *list, struct err *err)
{
	size_t at = LIST_HEADER;

	if (text.size < LIST_HEADER || memcmp(text.data, list_magic, LIST_HEADER) != 0)
		return unsound(err, "its head");
	while (at < text.size) {
		struct undo_state state;

		if (text.size - at < PATH_LENGTH + UNDO_STATE_BYTES)
			return unsound(err, "a row is cut");
		size_t size = (size_t)(unsigned char)text.data[at] |
			      (size_t)(unsigned char)text.data[at + 1] << 8;
		struct str path = str_part(text, at + PATH_LENGTH + UNDO_STATE_BYTES, size);
		if (!undo_state_parse(text.data + at + PATH_LENGTH, &state))
			return unsound(err, "a state");
		if (path.size != size || !undo_path_is_sound(path) ||
		    (list->count > 0 &&
		     compare_paths(list->rows[list->count - 1].path, path) >= 0))
			return unsound(err, "a path");
		if (!undo_list_add(list, path, &state))
			return unsound(err, "too many rows");
		at += PATH_LENGTH + UNDO_STATE_BYTES + size;
	}
	return true;
}

bool undo_list_read(int fd, struct undo_list *list, struct err *err)
{
	struct buf text;
	struct stat st;

	buf_init(&text, UNDO_LIST_MAX);
	if (fstat(fd, &st) == 0 && st.st_size > 0 && st.st_size < UNDO_LIST_MAX)
		(void)buf_reserve(&text, (size_t)st.st_size + 1);
	bool fine = fd_read_all(fd, &text, "the list of the workspace", err) &&
		    (text.size == 0 || undo_list_parse(buf_str(&text), list, err));
	buf_fini(&text);
	return fine;
}
