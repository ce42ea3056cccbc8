/* line_move: places in the text that is typed, and the keys that go there. */
#include "base/text/text.h"
#include "front/terminal/line_parts.h"
#include "front/terminal/paint.h"

#include <string.h>

/*
 * The borders of characters are only known by reading from the start of the row. In a row
 * that is longer than this, any border that is found from a nearer place will do.
 */
enum { ROW_LOOKED_AT = 4096 };

size_t line_row_start(const struct line *line, size_t at)
{
	const char *end = at > 0 ? memrchr(line->text.data, '\n', at) : NULL;

	return end != NULL ? (size_t)(end - line->text.data) + 1 : 0;
}

size_t line_row_end(const struct line *line, size_t at)
{
	const char *end = memchr(line->text.data + at, '\n', line->text.size - at);

	return end != NULL ? (size_t)(end - line->text.data) : line->text.size;
}

size_t line_behind(const struct line *line, size_t at)
{
	size_t columns;

	return at < line->text.size ? at + width_character(str_part(buf_str(&line->text),
								    at, line->text.size),
							   &columns)
				    : at;
}

size_t line_before(const struct line *line, size_t at)
{
	size_t start = line_row_start(line, at), next;

	if (at == 0)
		return 0;
	if (start == at)
		return at - 1;
	if (at - start > ROW_LOOKED_AT)
		start = text_character_border(buf_str(&line->text), at - ROW_LOOKED_AT);
	for (next = line_behind(line, start); next < at; next = line_behind(line, start))
		start = next;
	return start;
}

/*
 * Is the byte at AT part of a word: a letter, a digit, "_", or a byte beyond ASCII (names
 * in any language)?
 */
static bool in_word(const struct line *line, size_t at)
{
	unsigned char c = (unsigned char)line->text.data[at];

	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c >= 0x80;
}

static bool is_blank(const struct line *line, size_t at)
{
	return strchr(" \t\n", line->text.data[at]) != NULL;
}

size_t line_word_left(const struct line *line, size_t at)
{
	while (at > 0 && !in_word(line, at - 1))
		at--;
	while (at > 0 && in_word(line, at - 1))
		at--;
	return at;
}

size_t line_word_right(const struct line *line, size_t at)
{
	while (at < line->text.size && !in_word(line, at))
		at++;
	while (at < line->text.size && in_word(line, at))
		at++;
	return at;
}

size_t line_blank_left(const struct line *line, size_t at)
{
	while (at > 0 && is_blank(line, at - 1))
		at--;
	while (at > 0 && !is_blank(line, at - 1))
		at--;
	return at;
}

/* The place in the row that begins at START which has the same column as the cursor. */
static size_t same_column(const struct line *line, size_t start)
{
	struct str text = buf_str(&line->text);
	size_t from = line_row_start(line, line->cursor);
	size_t columns = width_of(str_part(text, from, line->cursor - from));
	size_t end = line_row_end(line, start);

	return start + width_fit(str_part(text, start, end - start), columns);
}

void line_history_leave(struct line *line)
{
	line->entry = line_history_count(line->history);
	buf_clear(&line->draft);
}

static void go_to_entry(struct line *line, size_t entry)
{
	size_t count = line_history_count(line->history);

	if (line->entry >= count) {
		buf_clear(&line->draft);
		(void)buf_addstr(&line->draft, buf_str(&line->text));
	}
	line->entry = entry;
	line_set(line, entry >= count ? buf_str(&line->draft)
				      : line_history_item(line->history, entry));
}

static void go_up(struct line *line)
{
	size_t start = line_row_start(line, line->cursor);

	if (start > 0)
		line->cursor = same_column(line, line_row_start(line, start - 1));
	else if (line->entry > 0)
		go_to_entry(line, line->entry - 1);
}

static void go_down(struct line *line)
{
	size_t end = line_row_end(line, line->cursor);

	if (end < line->text.size)
		line->cursor = same_column(line, end + 1);
	else if (line->entry < line_history_count(line->history))
		go_to_entry(line, line->entry + 1);
}

bool line_move(struct line *line, enum typing_key key)
{
	switch (key) {
	case TYPING_LEFT:
		line->cursor = line_before(line, line->cursor);
		return true;
	case TYPING_RIGHT:
		line->cursor = line_behind(line, line->cursor);
		return true;
	case TYPING_HOME:
		line->cursor = line_row_start(line, line->cursor);
		return true;
	case TYPING_END:
		line->cursor = line_row_end(line, line->cursor);
		return true;
	case TYPING_WORD_LEFT:
		line->cursor = line_word_left(line, line->cursor);
		return true;
	case TYPING_WORD_RIGHT:
		line->cursor = line_word_right(line, line->cursor);
		return true;
	case TYPING_UP:
		go_up(line);
		return true;
	case TYPING_DOWN:
		go_down(line);
		return true;
	default:
		return false;
	}
}
