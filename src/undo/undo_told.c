/* undo_told: see undo_told.h. */
#include "undo/undo_told.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/text/text.h"
#include "files/record.h"

enum { FILES_SHOWN = 20 };

#define REMOVED "removed"

void undo_told_init(struct undo_told *told)
{
	*told = (struct undo_told){.files = value_new_object(), .left = value_new_array()};
}

void undo_told_fini(struct undo_told *told)
{
	value_free(told->files);
	value_free(told->left);
}

static int64_t *count_of(struct undo_told *told, const char *became)
{
	return str_is(str_of(became), REMOVED) ? &told->removed : &told->restored;
}

/*
 * When several steps have changed a file, the oldest step, which is undone last, decides
 * what became of it.
 */
static void add_file(struct undo_told *told, const char *path, const char *became)
{
	const char *before = value_text(value_member(told->files, path));

	if (before != NULL)
		--*count_of(told, before);
	++*count_of(told, became);
	value_set_text(told->files, path, became);
}

void undo_told_add(struct undo_told *told, const struct value *details)
{
	const struct value *files = value_member(details, "files");
	const struct value *left = value_member(details, "left");

	told->restored += value_integer(value_member(details, "restored"));
	told->removed += value_integer(value_member(details, "removed"));
	told->already += value_integer(value_member(details, "already"));
	for (size_t i = 0; i < value_count(files); i++) {
		const struct value *file = value_item(files, i);
		const char *path = value_text(value_member(file, "path"));
		const char *became = value_text(value_member(file, "became"));

		if (path == NULL || became == NULL)
			continue;
		--*count_of(told, became); /* the file was counted above already */
		add_file(told, path, became);
	}
	for (size_t i = 0; i < value_count(left); i++)
		value_append(told->left, value_ref(value_item(left, i)));
}

void undo_told_print_files(const struct undo_told *told, struct buf *text)
{
	const int64_t all = told->restored + told->removed;
	int64_t shown = 0, gits = 0;

	for (void *at = value_first(told->files); at != NULL;
	     at = value_next(told->files, at)) {
		if (undo_is_gits(str_of(value_key(at)))) {
			gits++;
		} else if (shown < FILES_SHOWN) {
			shown++;
			(void)buf_addf(text, "  %-8s  %s\n", value_text(value_at(at)),
				       value_key(at));
		}
	}
	if (all > shown + gits)
		(void)buf_addf(text, "  and %" PRId64 " more\n", all - shown - gits);
	if (gits > 0)
		(void)buf_addf(text, "  and %" PRId64 " in %s\n", gits, UNDO_GIT);
}

void undo_told_print_counts(const struct undo_told *told, struct buf *text)
{
	if (told->restored > 0 || told->removed == 0) {
		(void)text_add_count(text, (size_t)told->restored, "file");
		(void)buf_adds(text, " restored");
	}
	if (told->restored > 0 && told->removed > 0)
		(void)buf_addf(text, ", %" PRId64 " removed", told->removed);
	else if (told->removed > 0) {
		(void)text_add_count(text, (size_t)told->removed, "file");
		(void)buf_adds(text, " removed");
	}
	if (told->already > 0)
		(void)buf_addf(text, ", %" PRId64 " already as before", told->already);
}

void undo_told_print_left(const struct undo_told *told, struct buf *text)
{
	for (size_t i = 0; i < value_count(told->left); i++)
		(void)buf_addf(text, "Left alone: %s\n",
			       value_text(value_item(told->left, i)));
}

void undo_told_details(const struct undo_told *told, struct value *details)
{
	struct value *files = value_new_array();

	for (void *at = value_first(told->files); at != NULL;
	     at = value_next(told->files, at)) {
		struct value *file = value_new_object();

		value_set_text(file, "path", value_key(at));
		value_set(file, "became", value_ref(value_at(at)));
		value_append(files, file);
	}
	value_set_integer(details, "restored", told->restored);
	value_set_integer(details, "removed", told->removed);
	value_set_integer(details, "already", told->already);
	value_set(details, "files", files);
	value_set(details, "left", value_ref(told->left));
}
