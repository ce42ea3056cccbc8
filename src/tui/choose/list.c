/* list: the filter, the keys and the rows. */

#include "tui/choose/list.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "tui/keys.h"
#include "tui/paint.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Short rows stay one row each when the window becomes narrower (live.c). */
	SHORT_COLUMNS = 72,
	COLUMNS_LEAST = 8,
	MARK_COLUMNS = 2,
	GAP_COLUMNS = 2,
	TEXT_LEAST = 12, /* a detail that would leave less for the text is cut instead */
};

void list_init(struct list *list, const char *title)
{
	*list = (struct list){.title = title};
	buf_init(&list->filter, LIST_FILTER_MAX);
}

void list_fini(struct list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].text);
		free(list->items[i].detail);
	}
	free(list->items);
	free(list->fitting);
	buf_fini(&list->filter);
	*list = (struct list){0};
}

/* TEXT made safe, on one line; the caller frees it. */
static char *on_one_line(struct str text)
{
	struct buf clean;

	buf_init(&clean, 4 * LIST_ITEM_MAX + 1);
	text = str_trim(text);
	text = str_part(text, 0, str_find(text, STR("\n"), 0));
	text_add_name(&clean, str_part(text, 0, text_character_border(text, LIST_ITEM_MAX)));
	return buf_take(&clean);
}

void list_add(struct list *list, struct str text, struct str detail)
{
	if (list->count == LIST_ITEMS_MAX)
		return;
	list->items = memory_grow(list->items, list->count + 1, sizeof(*list->items));
	list->fitting = memory_grow(list->fitting, list->count + 1, sizeof(*list->fitting));
	list->items[list->count] = (struct list_item){
		.text = on_one_line(text),
		.detail = on_one_line(detail),
	};
	/* Items are added before anything is typed. */
	list->fitting[list->fits++] = list->count++;
}

/* Is each word of the filter in ITEM? */
static bool passes(const struct list *list, const struct list_item *item)
{
	struct str rest = str_trim(buf_str(&list->filter));

	while (rest.size > 0) {
		const size_t end = str_find(rest, STR(" "), 0);
		auto_free char *word = memory_copy_str(str_part(rest, 0, end));

		if (strcasestr(item->text, word) == NULL &&
		    strcasestr(item->detail, word) == NULL)
			return false;
		rest = end != SIZE_MAX ? str_trim(str_part(rest, end, rest.size)) : STR("");
	}
	return true;
}

static void apply_filter(struct list *list)
{
	list->fits = list->at = list->first = 0;
	for (size_t i = 0; i < list->count; i++) {
		if (passes(list, &list->items[i]))
			list->fitting[list->fits++] = i;
	}
}

/* Choose the item AT, or the nearest one, and show it. */
static void go_to(struct list *list, size_t at)
{
	if (list->fits == 0)
		return;
	list->at = at < list->fits ? at : list->fits - 1;
	if (list->at < list->first)
		list->first = list->at;
	if (list->at >= list->first + LIST_ROWS_MAX)
		list->first = list->at - LIST_ROWS_MAX + 1;
}

/* A paste may have line ends and tabs: the filter is one line. */
static void add_typed(struct list *list, struct str typed)
{
	for (size_t i = 0; i < typed.size; i++) {
		const char c = typed.data[i];

		if (!buf_addc(&list->filter, c == '\n' || c == '\t' ? ' ' : c))
			break;
	}
	buf_truncate(&list->filter,
		     text_character_border(buf_str(&list->filter), list->filter.size));
}

enum list_result list_take(struct list *list, enum typing_key key, struct str typed)
{
	switch (key) {
	case TYPING_TEXT:
	case TYPING_PASTE:
		add_typed(list, typed);
		apply_filter(list);
		break;
	case TYPING_BACKSPACE:
		if (list->filter.size > 0)
			buf_truncate(&list->filter,
				     text_character_border(buf_str(&list->filter),
							   list->filter.size - 1));
		apply_filter(list);
		break;
	case TYPING_KILL_TO_START:
	case TYPING_KILL_WORD_LEFT:
		buf_clear(&list->filter);
		apply_filter(list);
		break;
	case TYPING_UP:
		go_to(list, list->at > 0 ? list->at - 1 : list->fits - 1);
		break;
	case TYPING_DOWN:
	case TYPING_TAB:
		go_to(list, list->at + 1 < list->fits ? list->at + 1 : 0);
		break;
	case TYPING_HOME:
		go_to(list, 0);
		break;
	case TYPING_END:
		go_to(list, SIZE_MAX);
		break;
	case TYPING_ENTER:
		return list->fits > 0 ? LIST_CHOSEN : LIST_GOES_ON;
	case TYPING_ESCAPE:
	case TYPING_INTERRUPT:
	case TYPING_CANCEL:
	case TYPING_EOF:
		return LIST_LEFT;
	case TYPING_CLEAR:
		return LIST_CLEARED;
	case TYPING_SUSPEND:
		return LIST_SUSPENDED;
	default:
		break;
	}
	return LIST_GOES_ON;
}

size_t list_choice(const struct list *list)
{
	return list->fits > 0 ? list->fitting[list->at] : SIZE_MAX;
}

static void add_item(struct paint *paint, const struct list_item *item, bool chosen,
		     size_t columns)
{
	const struct str text = str_of(item->text), detail = str_of(item->detail);
	const size_t room = columns - MARK_COLUMNS;
	const size_t wide = paint_width_of(detail);
	size_t most = room;

	if (detail.size > 0 && wide + GAP_COLUMNS + TEXT_LEAST <= room)
		most = room - wide - GAP_COLUMNS;
	paint_text(paint, PAINT_BOLD, chosen ? STR("> ") : STR("  "));
	const size_t before = paint->out.size;
	paint_cut(paint, chosen ? PAINT_BOLD : PAINT_PLAIN, text, most);
	const size_t used =
		paint_width_of_row(str_part(buf_str(&paint->out), before, paint->out.size),
				   NULL);
	if (detail.size > 0 && used + GAP_COLUMNS < room) {
		(void)buf_addf(&paint->out, "%*s", GAP_COLUMNS, "");
		paint_cut(paint, PAINT_DIM, detail, room - used - GAP_COLUMNS);
	}
	(void)buf_addc(&paint->out, '\n');
}

static void add_count(struct paint *paint, const struct list *list, size_t shown,
		      const struct keys *keys)
{
	struct buf text;

	buf_init(&text, LIST_ITEM_MAX);
	keys_say(keys, "  nothing fits; {escape} leaves\n", &text);
	if (list->fits == 0)
		paint_text(paint, PAINT_DIM, buf_str(&text));
	else if (shown < list->fits)
		paint_format(paint, PAINT_DIM, "  %zu of %zu\n", list->at + 1, list->fits);
	buf_fini(&text);
}

void list_compose(struct line_frame *frame, const struct list *list,
		  const struct line_look *look)
{
	const size_t columns =
		(look->columns > COLUMNS_LEAST ? look->columns : COLUMNS_LEAST) - 1;
	const size_t width = columns < SHORT_COLUMNS ? columns : SHORT_COLUMNS;
	/* The title and the count have a row each. */
	const size_t room = look->rows > 3 ? look->rows - 2 : 1;
	const size_t most = room < LIST_ROWS_MAX ? room : LIST_ROWS_MAX;
	size_t first = list->first;
	struct paint paint;

	line_look_paint(look, &paint);
	paint_format(&paint, PAINT_BOLD, "%s: ", list->title);
	if (list->filter.size > 0)
		paint_cut(&paint, PAINT_BOLD, buf_str(&list->filter), width);
	frame->row = 0;
	frame->column = paint_width_of_row(buf_str(&paint.out), NULL);
	if (frame->column >= width) {
		/* The row is full: the cursor stands on its last column. */
		buf_clear(&paint.out);
		paint_cut(&paint, PAINT_BOLD, str_of(list->title), width - 1);
		frame->column = width - 1;
	}
	(void)buf_addc(&paint.out, '\n');
	if (list->at >= first + most)
		first = list->at - most + 1;
	for (size_t i = first; i < list->fits && i < first + most; i++)
		add_item(&paint, &list->items[list->fitting[i]], i == list->at, width);
	if (look->rows > 2)
		add_count(&paint, list, most, look->keys);
	buf_clear(&frame->rows);
	(void)buf_addstr(&frame->rows, buf_str(&paint.out));
	paint_fini(&paint);
}

void list_print(const struct list *list, struct buf *out)
{
	(void)buf_addf(out, "%s:\n", list->title);
	for (size_t i = 0; i < list->count; i++)
		(void)buf_addf(out, "%3zu  %s%s%s\n", i + 1, list->items[i].text,
			       list->items[i].detail[0] != '\0' ? "  " : "",
			       list->items[i].detail);
}
