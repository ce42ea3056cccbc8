/*
 * diff_apply: a strict reader of unified diffs without head, for tests: rebuilds the new text
 * from the old one and the hunks, and refuses whatever does not fit exactly.
 */
#pragma once
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

struct diff_apply {
	struct str old_rest;
	size_t old_line, new_line; /* lines passed */
	struct buf *out;
};

static inline bool diff_apply_number(struct str *text, size_t *number)
{
	size_t digits = 0;

	for (*number = 0;
	     digits < text->size && text->data[digits] >= '0' && text->data[digits] <= '9';
	     digits++)
		*number = *number * 10 + (size_t)(text->data[digits] - '0');
	*text = str_part(*text, digits, text->size);
	return digits > 0;
}

/* "-3,2": first line and count. */
static inline bool diff_apply_range(struct str *text, char mark, size_t *from, size_t *count)
{
	*count = 1;
	if (text->size == 0 || text->data[0] != mark)
		return false;
	*text = str_part(*text, 1, text->size);
	if (!diff_apply_number(text, from))
		return false;
	if (text->size == 0 || text->data[0] != ',')
		return true;
	*text = str_part(*text, 1, text->size);
	return diff_apply_number(text, count);
}

/* The next line of the old text, with its line end when it has one. */
static inline struct str diff_apply_old_line(struct diff_apply *apply)
{
	struct str before = apply->old_rest, line;

	if (!str_next_line(&apply->old_rest, &line))
		return str_of(NULL);
	apply->old_line++;
	return str_part(before, 0, before.size - apply->old_rest.size);
}

/* Copy old lines up to the first of a hunk. */
static inline bool diff_apply_skip(struct diff_apply *apply, size_t to)
{
	while (apply->old_line < to) {
		struct str line = diff_apply_old_line(apply);

		if (line.size == 0)
			return false;
		apply->new_line++;
		buf_addstr(apply->out, line);
	}
	return apply->old_line == to;
}

/* One line of a hunk: LINE is without mark, with its line end unless the file has none. */
static inline bool diff_apply_line(struct diff_apply *apply, char mark, struct str line)
{
	if (mark != '+' && !str_equal(diff_apply_old_line(apply), line))
		return false;
	if (mark != '-') {
		buf_addstr(apply->out, line);
		apply->new_line++;
	}
	return true;
}

static inline bool diff_apply_hunk(struct diff_apply *apply, struct str *diff)
{
	size_t old_from, old_count, new_from, new_count;
	struct str head, line;

	if (!str_next_line(diff, &head) || !str_starts(head, STR("@@ ")))
		return false;
	head = str_part(head, 3, head.size);
	if (!diff_apply_range(&head, '-', &old_from, &old_count) ||
	    !str_starts(head, STR(" ")))
		return false;
	head = str_part(head, 1, head.size);
	if (!diff_apply_range(&head, '+', &new_from, &new_count) || !str_is(head, " @@"))
		return false;
	/* A range of no lines is named by the line before it. */
	if (!diff_apply_skip(apply, old_count ? old_from - 1 : old_from) ||
	    apply->new_line != (new_count ? new_from - 1 : new_from))
		return false;
	old_count += apply->old_line;
	new_count += apply->new_line;
	while (apply->old_line < old_count || apply->new_line < new_count) {
		struct str before = *diff;
		char mark;

		if (!str_next_line(diff, &line) || line.size == 0 ||
		    !strchr(" -+", line.data[0]))
			return false;
		mark = line.data[0];
		line = str_part(before, 1, line.size);
		if (str_starts(*diff, STR("\\ No newline at end of file\n"))) {
			line.size--;
			(void)str_next_line(diff, &before);
		}
		if (!diff_apply_line(apply, mark, line))
			return false;
	}
	return true;
}

/* Append to OUT what OLD_TEXT becomes by DIFF; false when DIFF does not fit it. */
static inline bool diff_apply(struct str old_text, struct str diff, struct buf *out)
{
	struct diff_apply apply = {.old_rest = old_text, .out = out};

	while (diff.size) {
		if (!diff_apply_hunk(&apply, &diff))
			return false;
	}
	while (apply.old_rest.size)
		buf_addstr(out, diff_apply_old_line(&apply));
	return true;
}
