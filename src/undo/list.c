/*
 * list: rows in order of their names, their form in a file, and the objects of a look.
 */

#include "undo/list.h"

#include "base/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { LIST_HEADER = 8, PATH_LENGTH = 2 };

/* The last byte is the version of the rows. */
static const char list_magic[LIST_HEADER] = "GBLIST\n\1";

bool undo_list_add(struct undo_list *list, struct str path, const struct undo_state *state)
{
	if (list->count >= UNDO_ROWS_MAX)
		return false;
	list->rows = memory_more(list->rows, list->count, sizeof(*list->rows));
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

	const int order = compare_paths(left->path, right->path);

	return order != 0 ? order
			  : (left->state.kind > right->state.kind) -
				    (left->state.kind < right->state.kind);
}

/* Put the rows from AT on, which are in order, among those before them, which are so too. */
static void merge(struct undo_list *list, size_t at)
{
	const size_t newer = list->count - at;
	struct undo_row *rows = list->rows, *moved = memory_array(newer, sizeof(*moved));

	memcpy(moved, &rows[at], newer * sizeof(*moved));
	for (size_t to = list->count, left = newer; left > 0;) {
		const bool is_older =
			at > 0 && compare_rows(&rows[at - 1], &moved[left - 1]) > 0;

		rows[--to] = is_older ? rows[--at] : moved[--left];
	}
	free(moved);
}

/* Most rows are in order already when some more were added to a sorted list. */
void undo_list_sort(struct undo_list *list)
{
	size_t sorted = 1, kept = 0;

	if (list->count == 0)
		return;
	while (sorted < list->count &&
	       compare_rows(&list->rows[sorted - 1], &list->rows[sorted]) <= 0)
		sorted++;
	if (sorted < list->count / 2)
		sorted = 0;
	qsort(&list->rows[sorted], list->count - sorted, sizeof(*list->rows), compare_rows);
	if (sorted > 0 && sorted < list->count)
		merge(list, sorted);
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

size_t undo_list_with(const struct undo_list *list, struct str part, size_t most,
		      const struct undo_row **rows)
{
	const struct arena_block *block = NULL;
	struct str bytes;
	size_t count = 0;

	while (arena_next(&list->paths, &block, &bytes)) {
		const char *at = memmem(bytes.data, bytes.size, part.data, part.size);

		for (; at != NULL; at = memmem(at, bytes.size - (size_t)(at - bytes.data),
					       part.data, part.size)) {
			while (at > bytes.data && at[-1] != '\0')
				at--;
			const struct undo_row *row = undo_list_find(list, str_of(at));

			/* Sorting leaves the path of a row that went. */
			if (row != NULL && row->path.data == at) {
				if (count == most)
					return most + 1;
				rows[count++] = row;
			}
			at += strlen(at);
		}
	}
	return count;
}

void undo_list_join(struct undo_list *into, const struct undo_list *newer, bool without)
{
	struct undo_list joined;
	size_t at = 0;

	undo_list_init(&joined);
	for (size_t i = 0; i <= newer->count; i++) {
		const struct undo_row *row = i < newer->count ? &newer->rows[i] : NULL;
		int order = -1;

		for (; at < into->count && order < 0; at += order <= 0) {
			order = row == NULL
					? -1
					: strcmp(into->rows[at].path.data, row->path.data);
			if (order < 0)
				(void)undo_list_add(&joined, into->rows[at].path,
						    &into->rows[at].state);
		}
		if (row != NULL && !(without && row->state.kind == UNDO_ABSENT))
			(void)undo_list_add(&joined, row->path, &row->state);
	}
	undo_list_fini(into);
	*into = joined;
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
		if (path.size != size || !record_path_is_sound(path) ||
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

/* The objects of a look. */

#define ORDER(member)       FIELD(struct undo_look_order, member)
#define REPORT(member, ...) FIELD(struct undo_look_report, member, __VA_ARGS__)

const struct field undo_look_order_fields[] = {
	ORDER(log), ORDER(began_ms), ORDER(ended_ms), ORDER(looks), ORDER(wishes), {0},
};

const struct field undo_look_report_fields[] = {
	REPORT(findings),
	REPORT(unwatched, .optional = true),
	REPORT(below, .optional = true),
	REPORT(rows),
	REPORT(files),
	REPORT(changed),
	REPORT(added),
	REPORT(removed),
	REPORT(strange),
	REPORT(unignored),
	REPORT(left_files),
	REPORT(left_bytes),
	REPORT(us),
	REPORT(lost),
	REPORT(lost_name, .optional = true),
	REPORT(lost_below, .optional = true),
	{0},
};
