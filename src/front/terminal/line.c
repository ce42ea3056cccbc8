/* line: the effect of each key. Moves are in line_move.c, search in line_search.c. */
#include "front/terminal/line.h"

#include "base/text/text.h"
#include "front/terminal/line_parts.h"

#include <string.h>

/*
 * WORDS_MAX: candidates of a completion. HINT_MAX: a hint; more than a page of it helps
 * nobody.
 */
enum { WORDS_MAX = 64 << 10, HINT_MAX = 4 << 10 };

void line_init(struct line *line, struct line_history *history,
	       struct line_completer completer)
{
	*line = (struct line){.history = history, .completer = completer};
	buf_init(&line->text, LINE_BYTES_MAX);
	buf_init(&line->hint, HINT_MAX);
	buf_init(&line->killed, LINE_BYTES_MAX);
	buf_init(&line->draft, LINE_BYTES_MAX);
	buf_init(&line->search.wanted, HINT_MAX);
	buf_init(&line->search.before, LINE_BYTES_MAX);
	line_start(line);
}

void line_fini(struct line *line)
{
	buf_fini(&line->text);
	buf_fini(&line->hint);
	buf_fini(&line->killed);
	buf_fini(&line->draft);
	buf_fini(&line->search.wanted);
	buf_fini(&line->search.before);
}

void line_start(struct line *line)
{
	buf_clear(&line->text);
	buf_clear(&line->hint);
	buf_clear(&line->draft);
	line->cursor = 0;
	line->killing = line->quitting = line->search.on = false;
	line->entry = line_history_count(line->history);
}

void line_set(struct line *line, struct str text)
{
	buf_clear(&line->text);
	(void)buf_addstr(&line->text, text);
	line->cursor = line->text.size;
}

void line_insert(struct line *line, struct str typed)
{
	size_t behind = line->text.size - line->cursor;
	char *room;

	if (typed.size == 0)
		return;
	room = buf_reserve(&line->text, typed.size);
	if (room == NULL) {
		buf_clear(&line->hint);
		(void)buf_addf(&line->hint, "over %d MiB: put it into a file",
			       LINE_BYTES_MAX >> 20);
		return;
	}
	memmove(line->text.data + line->cursor + typed.size,
		line->text.data + line->cursor, behind);
	memcpy(line->text.data + line->cursor, typed.data, typed.size);
	buf_commit(&line->text, typed.size);
	line->cursor += typed.size;
}

/* Remove the text from FROM to TO. KILLED: keep it for Ctrl+Y. */
static void take_out(struct line *line, size_t from, size_t to, bool killed)
{
	struct str part = str_part(buf_str(&line->text), from, to - from);

	if (killed) {
		struct buf joined;

		buf_init(&joined, LINE_BYTES_MAX);
		/*
		 * A kill backwards is joined before the last killed text, a kill forwards
		 * behind it.
		 */
		if (line->killing && to != line->cursor)
			(void)buf_addstr(&joined, buf_str(&line->killed));
		(void)buf_addstr(&joined, part);
		if (line->killing && to == line->cursor)
			(void)buf_addstr(&joined, buf_str(&line->killed));
		buf_fini(&line->killed);
		line->killed = joined;
	}
	if (line->cursor >= to)
		line->cursor -= to - from;
	else if (line->cursor > from)
		line->cursor = from;
	buf_remove(&line->text, from, to - from);
}

/* Handle the keys that remove text. */
static bool take_deletion(struct line *line, enum typing_key key)
{
	size_t from = line->cursor, to = line->cursor;
	bool killed = key != TYPING_BACKSPACE && key != TYPING_DELETE && key != TYPING_EOF;

	if (key == TYPING_BACKSPACE)
		from = line_before(line, from);
	else if (key == TYPING_DELETE || key == TYPING_EOF)
		to = line_behind(line, to);
	else if (key == TYPING_KILL_TO_START)
		from = line_row_start(line, from);
	else if (key == TYPING_KILL_TO_END)
		to = line_row_end(line, to);
	else if (key == TYPING_KILL_WORD_LEFT)
		from = line_blank_left(line, from);
	else if (key == TYPING_KILL_NAME_LEFT)
		from = line_word_left(line, from);
	else if (key == TYPING_KILL_WORD_RIGHT)
		to = line_word_right(line, to);
	else
		return false;
	/* At the end of a row, remove the line end, as Emacs does. */
	if (from == to && key == TYPING_KILL_TO_END && to < line->text.size)
		to++;
	if (from != to)
		take_out(line, from, to, killed);
	line->killing = killed;
	return true;
}

static void swap(struct line *line)
{
	size_t right = line->cursor < line->text.size ? line->cursor
						      : line_before(line, line->cursor);
	size_t left = line_before(line, right);
	size_t end = line_behind(line, right);
	struct buf swapped;

	if (left == right)
		return;
	buf_init(&swapped, LINE_BYTES_MAX);
	(void)buf_add(&swapped, line->text.data + right, end - right);
	(void)buf_add(&swapped, line->text.data + left, right - left);
	memcpy(line->text.data + left, swapped.data, swapped.size);
	line->cursor = end;
	buf_fini(&swapped);
}

static void complete(struct line *line)
{
	struct str before = str_part(buf_str(&line->text), 0, line->cursor);
	struct str rest, word, common = STR("");
	size_t from = line->cursor, count = 0;
	struct buf words;

	if (line->completer.complete == NULL)
		return;
	buf_init(&words, WORDS_MAX);
	line->completer.complete(line->completer.context, before, &from, &words);
	for (rest = buf_str(&words); str_next_line(&rest, &word); count++) {
		size_t same = 0;

		while (count > 0 && same < common.size && same < word.size &&
		       common.data[same] == word.data[same])
			same++;
		common = count == 0
				 ? word
				 : str_part(common, 0, text_character_border(common, same));
	}
	/*
	 * Replace the word only by a longer text that begins with it: Tab never loses a
	 * word.
	 */
	if (count > 0 && from <= line->cursor && common.size >= line->cursor - from) {
		take_out(line, from, line->cursor, false);
		line_insert(line, common);
		if (count == 1)
			line_insert(line, STR(" "));
	}
	if (count > 1) {
		for (rest = buf_str(&words); str_next_line(&rest, &word);)
			(void)buf_addf(&line->hint, "%.*s  ", (int)word.size, word.data);
	}
	buf_fini(&words);
}

static enum line_result enter(struct line *line)
{
	/* A backslash at the end means that the text goes on. */
	if (line->cursor == line->text.size && line->cursor > 0 &&
	    line->text.data[line->cursor - 1] == '\\') {
		take_out(line, line->cursor - 1, line->cursor, false);
		line_insert(line, STR("\n"));
		return LINE_GOES_ON;
	}
	return str_trim(buf_str(&line->text)).size > 0 ? LINE_DONE : LINE_GOES_ON;
}

static enum line_result interrupt(struct line *line, bool quitting)
{
	if (line->text.size == 0 && quitting)
		return LINE_QUIT;
	if (line->text.size == 0) {
		line->quitting = true;
		(void)buf_adds(&line->hint, "Ctrl+C again, or Ctrl+D, to quit");
	}
	line_history_leave(line);
	line_set(line, STR(""));
	return LINE_GOES_ON;
}

enum line_result line_take(struct line *line, enum typing_key key, struct str typed)
{
	bool quitting = line->quitting;

	buf_clear(&line->hint);
	line->quitting = false;
	if (line->search.on && line_search_take(line, key, typed))
		return LINE_GOES_ON;
	if (key == TYPING_EOF && line->text.size == 0)
		return LINE_QUIT;
	if (take_deletion(line, key))
		return LINE_GOES_ON;
	line->killing = false;
	if (line_move(line, key))
		return LINE_GOES_ON;
	switch (key) {
	case TYPING_TEXT:
	case TYPING_PASTE:
		line_insert(line, typed);
		break;
	case TYPING_NEW_LINE:
		line_insert(line, STR("\n"));
		break;
	case TYPING_YANK:
		line_insert(line, buf_str(&line->killed));
		break;
	case TYPING_SWAP:
		swap(line);
		break;
	case TYPING_TAB:
		complete(line);
		break;
	case TYPING_SEARCH:
	case TYPING_SEARCH_ON:
		line_search_start(line);
		break;
	case TYPING_ENTER:
		return enter(line);
	case TYPING_INTERRUPT:
		return interrupt(line, quitting);
	case TYPING_CLEAR:
		return LINE_CLEARED;
	case TYPING_SUSPEND:
		return LINE_SUSPENDED;
	default:
		break;
	}
	return LINE_GOES_ON;
}
