/*
 * line_search: searches the history for entries that contain a text, again after each key
 * (Ctrl+R).
 */
#include "base/text/text.h"
#include "front/terminal/line_parts.h"

static void show_entry(struct line *line, size_t entry)
{
	struct str item = line_history_item(line->history, entry);
	size_t at = str_find(item, buf_str(&line->search.wanted), 0);

	line->search.entry = entry;
	line_set(line, item);
	line->cursor = at != SIZE_MAX ? at : item.size;
}

/*
 * Search from the entry FROM on, backwards (BACK) or forwards. Without a match the shown
 * entry stays.
 */
static void look(struct line *line, size_t from, bool back)
{
	struct line_search *search = &line->search;
	size_t count = line_history_count(line->history);

	search->failed = false;
	if (search->wanted.size == 0)
		return;
	for (size_t at = from; at < count; at = back ? at - 1 : at + 1) {
		struct str item = line_history_item(line->history, at);

		if (str_find(item, buf_str(&search->wanted), 0) != SIZE_MAX) {
			show_entry(line, at);
			return;
		}
	}
	search->failed = true;
}

void line_search_start(struct line *line)
{
	struct line_search *search = &line->search;

	buf_clear(&search->wanted);
	buf_clear(&search->before);
	(void)buf_addstr(&search->before, buf_str(&line->text));
	search->on = true;
	search->failed = false;
	search->entry = line_history_count(line->history);
}

static void end(struct line *line, bool keep)
{
	line->search.on = false;
	if (keep && line->search.entry < line_history_count(line->history)) {
		line->entry = line->search.entry;
		buf_clear(&line->draft);
		(void)buf_addstr(&line->draft, buf_str(&line->search.before));
	} else {
		line_set(line, buf_str(&line->search.before));
	}
}

bool line_search_take(struct line *line, enum typing_key key, struct str typed)
{
	struct line_search *search = &line->search;
	size_t newest = line_history_count(line->history) - 1;

	switch (key) {
	case TYPING_TEXT:
	case TYPING_PASTE:
		(void)buf_addstr(&search->wanted, typed);
		look(line, search->entry <= newest ? search->entry : newest, true);
		return true;
	case TYPING_BACKSPACE:
		buf_truncate(&search->wanted,
			     text_character_border(buf_str(&search->wanted),
						   search->wanted.size > 0
							   ? search->wanted.size - 1
							   : 0));
		look(line, newest, true);
		return true;
	case TYPING_SEARCH:
		look(line, search->entry <= newest ? search->entry - 1 : newest, true);
		return true;
	case TYPING_SEARCH_ON:
		look(line, search->entry + 1, false);
		return true;
	case TYPING_NONE:
		return true;
	case TYPING_CANCEL:
	case TYPING_INTERRUPT:
		end(line, false);
		return true;
	case TYPING_ESCAPE:
		end(line, true);
		return true;
	default:
		end(line, true);
		return false;
	}
}
