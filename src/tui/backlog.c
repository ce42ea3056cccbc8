#include "tui/backlog.h"

#include "base/text/text.h"

#include <string.h>

/* So many parts of the tail go at a time: one small piece must not move all of it. */
enum { TAIL_PARTS = 8 };

void backlog_init(struct backlog *backlog, size_t most, bool colour)
{
	*backlog = (struct backlog){.colour = colour};
	buf_init(&backlog->head, most / 2);
	buf_init(&backlog->tail, most / 2);
}

void backlog_fini(struct backlog *backlog)
{
	buf_fini(&backlog->head);
	buf_fini(&backlog->tail);
}

bool backlog_is_empty(const struct backlog *backlog)
{
	return backlog->head.size == 0 && backlog->tail.size == 0 && backlog->bytes == 0;
}

/* Leave out SIZE bytes of TEXT, which begin it. */
static void leave_out(struct backlog *backlog, struct str text, size_t size)
{
	backlog->lines += text_count_line_ends(str_part(text, 0, size));
	backlog->bytes += size;
}

/* Leave out the beginning of the tail, so that it has room for SIZE bytes. */
static void make_room(struct backlog *backlog, size_t size)
{
	struct buf *tail = &backlog->tail;
	const size_t most = tail->max;
	size_t from = size > most / TAIL_PARTS ? size : most / TAIL_PARTS;

	if (tail->size + size <= most)
		return;
	from = from < tail->size ? str_find(buf_str(tail), STR("\n"), from) : SIZE_MAX;
	from = from != SIZE_MAX ? from + 1 : tail->size;
	leave_out(backlog, buf_str(tail), from);
	buf_remove(tail, 0, from);
}

void backlog_add(struct backlog *backlog, struct str text)
{
	const struct buf *tail = &backlog->tail;

	if (tail->size == 0 && backlog->bytes == 0 &&
	    backlog->head.size + text.size <= backlog->head.max) {
		(void)buf_addstr(&backlog->head, text);
		return;
	}
	if (text.size > tail->max) {
		const size_t least = text.size - tail->max;
		const size_t end = str_find(text, STR("\n"), least);
		const size_t from = end != SIZE_MAX ? end + 1 : text.size;

		make_room(backlog, tail->max);
		leave_out(backlog, text, from);
		text = str_part(text, from, text.size);
	}
	make_room(backlog, text.size);
	(void)buf_addstr(&backlog->tail, text);
}

/* Append the line in the gap to OUT. The text before it ends with a whole line, or with none. */
static void add_gap(struct backlog *backlog, struct buf *out)
{
	char size[32];

	if (backlog->bytes == 0)
		return;
	if (out->size > 0)
		(void)buf_end_line(out);
	(void)buf_adds(out, backlog->colour ? "\x1b[0m[" : "[");
	(void)text_add_count(out, backlog->lines, "line");
	(void)buf_addf(out, ", %s, left out: the terminal took nothing]\n",
		       text_size(backlog->bytes, size));
	backlog->lines = backlog->bytes = 0;
}

void backlog_take(struct backlog *backlog, size_t most, struct buf *out)
{
	struct buf *head = &backlog->head;
	size_t end = head->size;

	if (head->size > most) {
		const char *last = memrchr(head->data, '\n', most);

		if (last == NULL)
			last = memchr(head->data, '\n', head->size);
		end = last != NULL ? (size_t)(last - head->data) + 1 : head->size;
	}
	(void)buf_addstr(out, str_part(buf_str(head), 0, end));
	buf_remove(head, 0, end);
	if (head->size > 0)
		return;
	add_gap(backlog, out);
	buf_swap(head, &backlog->tail);
}
