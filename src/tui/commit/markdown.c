/*
 * markdown: cuts the words of a model into blocks as they come, has md4c find the structure of
 * each block, and paints its rows. The text of a block is collected with its styles, broken by
 * paint_wrap as if it had none, and then written with them: no style goes on from one row into
 * the next.
 */
#include "tui/commit/markdown.h"

#include "base/err.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "tui/commit/highlight.h"

#include <ctype.h>
#include <md4c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH_MAX = 16,         /* lists and quotes in each other */
	CELLS_MAX = 4096,       /* of one table */
	CELLS_COLUMNS_MAX = 64, /* of one table, beside each other */
	CELLS_GAP = 2,
	ROW_MAX = 4 << 10, /* of the unfinished row; more is never seen */
	MARK_MAX = 16,
	RULE_COLUMNS = 24,
	HTTP_LENGTH = sizeof("http://") - 1,
	INDENT_MAX = 3, /* a fence or an item with more blanks before it is code, outside of lists */
	LEVEL_MAX = 6,
	FENCE_MIN = 3,
};

/* A part of the collected text, up to END, in one look. */
struct run {
	size_t end;
	unsigned styles;
	struct str link; /* its address, for a terminal that makes links of it; or empty */
};

struct cell {
	struct str text; /* in the arena, as are the runs */
	struct run *runs;
	size_t count;
	MD_ALIGN align;
};

struct list {
	bool ordered;
	unsigned number;
	char mark;
};

/* The block that is being painted. */
struct page {
	struct paint *look;
	struct paint rows; /* the outcome, thrown away when the block is refused */
	struct buf text;   /* of the paragraph, without marks */
	struct buf kept;   /* all texts of the block: nothing may be missing */
	struct run *runs;  /* of `text` */
	size_t run_count;
	unsigned depths[PAINT_STYLES]; /* how often each style is on */
	struct buf first, rest; /* what stands before the next row, and before others */
	bool first_due;
	size_t rests[DEPTH_MAX], depth;
	struct list lists[DEPTH_MAX];
	size_t list_count;
	size_t link_from; /* where the text of the open link begins */
	bool table, refused;
	struct arena arena;
	struct cell *cells;
	size_t cell_count, cell_room, columns; /* of the table */
};

enum state { STATE_BLOCKS, STATE_FENCED, STATE_AS_WRITTEN };

struct markdown {
	typeof(md_parse) *parse;
	enum state state;
	struct buf held; /* the lines of the block that is not complete … */
	size_t line;     /* … and where the last one, which has no end yet, begins */
	bool torn;       /* the beginning of that line is shown already */
	size_t indent;   /* blanks before the rows of the block */
	size_t contents[DEPTH_MAX], depth; /* the columns at which items of lists begin */
	struct fence {
		char mark;
		size_t size, indent;
		struct highlight highlight; /* of the code behind it */
	} fence;
	bool begun; /* something was shown */
	bool gap;   /* a blank line is due before the next row */
	struct paint_wrap wrap, draft;
	struct buf row,
		unfinished; /* of the draft; the row with the word that is not complete */
};

struct markdown *markdown_new(void)
{
	static const struct library libmd4c = {"libmd4c.so.0", "0.4", "libmd4c0",
					       "showing the words of a model"};
	struct markdown *markdown = memory_alloc(sizeof(*markdown));
	const struct library_function wanted[] = {{"md_parse", &markdown->parse}};
	struct err err;

	if (!library_load(&libmd4c, wanted, 1, &err)) {
		free(markdown);
		return NULL;
	}
	buf_init(&markdown->held, PAINT_MAX);
	buf_init(&markdown->row, PAINT_MAX);
	buf_init(&markdown->unfinished, PAINT_MAX);
	paint_wrap_init(&markdown->wrap);
	paint_wrap_init(&markdown->draft);
	return markdown;
}

void markdown_free(struct markdown *markdown)
{
	if (markdown == NULL)
		return;
	buf_fini(&markdown->held);
	buf_fini(&markdown->row);
	buf_fini(&markdown->unfinished);
	paint_wrap_fini(&markdown->wrap);
	paint_wrap_fini(&markdown->draft);
	free(markdown);
}

static size_t columns_of(const struct paint *paint)
{
	return paint->columns < MARKDOWN_COLUMNS_MAX ? paint->columns
						     : MARKDOWN_COLUMNS_MAX;
}

/* Collecting the text of a block. */

static unsigned styles_of(const struct page *page)
{
	unsigned styles = 0;

	for (unsigned i = 0; i < (unsigned)PAINT_STYLES; i++) {
		if (page->depths[i] > 0)
			styles |= 1U << i;
	}
	return styles;
}

/* The text added to PAGE since its last run is a run, to ADDRESS or to nothing. */
static void end_run(struct page *page, struct str address)
{
	const size_t before = page->run_count > 0 ? page->runs[page->run_count - 1].end : 0;

	if (page->text.size == before)
		return;
	page->runs = memory_more(page->runs, page->run_count, sizeof(*page->runs));
	page->runs[page->run_count++] = (struct run){.end = page->text.size,
						     .styles = styles_of(page),
						     .link = address};
}

static void add_shown(struct page *page, struct str text)
{
	(void)buf_addstr(&page->text, text);
	(void)buf_addstr(&page->kept, text);
}

/* STYLE begins (or ends); MARK is shown where there are no styles. */
static void turn(struct page *page, enum paint_style style, bool on, const char *mark)
{
	end_run(page, STR(""));
	if (!page->look->colour)
		(void)buf_adds(&page->text, mark);
	if (on)
		page->depths[style]++;
	else if (page->depths[style] > 0)
		page->depths[style]--;
}

/* Painting the rows of a block. */

static void add_prefix(struct page *page)
{
	struct paint *rows = &page->rows;

	(void)buf_addstr(&rows->out, buf_str(page->first_due ? &page->first : &page->rest));
	page->first_due = false;
}

/* Append TEXT in the look of RUN. */
static void add_run(struct paint *rows, const struct run *run, struct str text)
{
	if (text.size == 0)
		return;
	if (run->link.size > 0) {
		(void)buf_adds(&rows->out, PAINT_LINK_BEGIN);
		(void)buf_addstr(&rows->out, run->link);
		(void)buf_adds(&rows->out, PAINT_LINK_END);
	}
	paint_styles(rows, run->styles, text);
	if (run->link.size > 0)
		(void)buf_adds(&rows->out, PAINT_LINK_BEGIN PAINT_LINK_END);
}

/* Append the part of TEXT from FROM to TO, in the looks of RUNS. */
static void add_runs(struct paint *rows, struct str text, size_t from, size_t to,
		     const struct run *runs, size_t count)
{
	for (size_t i = 0; i < count && from < to; i++) {
		const size_t end = runs[i].end < to ? runs[i].end : to;

		if (end <= from)
			continue;
		add_run(rows, &runs[i], str_part(text, from, end - from));
		from = end;
	}
}

/* Does paint_wrap end a row there, and leave out what stands at AT? */
static size_t skip_row_end(struct str text, size_t at)
{
	while (at < text.size && (text.data[at] == ' ' || text.data[at] == '\t'))
		at++;
	return at + (at < text.size && text.data[at] == '\n');
}

/* The paragraph is complete: paint its rows. */
static void end_paragraph(struct page *page)
{
	const size_t before = page->first_due && page->first.size > page->rest.size
				      ? page->first.size
				      : page->rest.size;
	const size_t columns = columns_of(page->look);
	const struct str text = buf_str(&page->text);
	struct paint_wrap wrap;
	struct buf broken;
	struct str rest, row;
	size_t at = 0;

	end_run(page, STR(""));
	if (2 * before > columns)
		page->refused = true;
	if (text.size == 0 || page->refused)
		return;
	buf_init(&broken, PAINT_MAX);
	paint_wrap_init(&wrap);
	paint_wrap_add(&wrap, text, columns - before, &broken);
	paint_wrap_end(&wrap, columns - before, 0, &broken);
	rest = buf_str(&broken);
	while (str_next_line(&rest, &row)) {
		add_prefix(page);
		add_runs(&page->rows, text, at, at + row.size, page->runs, page->run_count);
		(void)buf_addc(&page->rows.out, '\n');
		at = skip_row_end(text, at + row.size);
	}
	paint_wrap_fini(&wrap);
	buf_fini(&broken);
	buf_clear(&page->text);
	page->run_count = 0;
}

/* The lines of code in the text of PAGE, which are not broken. */
static void end_code(struct page *page)
{
	struct str rest = buf_str(&page->text), line;

	while (str_next_line(&rest, &line)) {
		add_prefix(page);
		(void)buf_addstr(&page->rows.out, line);
		(void)buf_addc(&page->rows.out, '\n');
	}
	buf_clear(&page->text);
	page->run_count = 0;
}

/* Tables. */

static void end_cell(struct page *page, const MD_BLOCK_TD_DETAIL *detail)
{
	struct cell *cell = &page->cells[page->cell_count];

	if (page->cell_count == page->cell_room) {
		page->refused = true;
		return;
	}
	page->cell_count++;
	end_run(page, STR(""));
	cell->text.size = page->text.size;
	cell->text.data = arena_copy(&page->arena, buf_str(&page->text));
	cell->count = page->run_count;
	cell->runs = arena_alloc(&page->arena, page->run_count * sizeof(*cell->runs) + 1);
	if (page->run_count > 0)
		memcpy(cell->runs, page->runs, page->run_count * sizeof(*cell->runs));
	cell->align = detail->align;
	buf_clear(&page->text);
	page->run_count = 0;
}

/* Append a line of COLUMNS. */
static void add_line(struct page *page, size_t columns)
{
	struct buf line;

	buf_init(&line, PAINT_MAX);
	for (size_t i = 0; i < columns; i++)
		(void)buf_adds(&line, page->look->unicode ? "─" : "-");
	add_prefix(page);
	paint_text(&page->rows, PAINT_DIM, buf_str(&line));
	(void)buf_addc(&page->rows.out, '\n');
	buf_fini(&line);
}

static void add_blanks(struct paint *rows, size_t count)
{
	(void)buf_addf(&rows->out, "%*s", (int)count, "");
}

static void add_cell(struct page *page, const struct cell *cell, size_t columns, bool last)
{
	const size_t room = columns - paint_width_of(cell->text);
	const size_t before = cell->align == MD_ALIGN_RIGHT    ? room
			      : cell->align == MD_ALIGN_CENTER ? room / 2
							       : 0;

	add_blanks(&page->rows, before);
	add_runs(&page->rows, cell->text, 0, cell->text.size, cell->runs, cell->count);
	if (!last)
		add_blanks(&page->rows, room - before + CELLS_GAP);
}

static void end_table(struct page *page)
{
	size_t widths[CELLS_COLUMNS_MAX] = {0}, sum = 0;

	for (size_t i = 0; i < page->cell_count; i++) {
		const size_t width = paint_width_of(page->cells[i].text);

		if (width > widths[i % page->columns])
			widths[i % page->columns] = width;
	}
	for (size_t i = 0; i < page->columns; i++)
		sum += widths[i] + (i > 0 ? CELLS_GAP : 0);
	/* The last column of the terminal stays free, as in prose. */
	if (page->rest.size + sum >= page->look->columns)
		page->refused = true;
	for (size_t i = 0; i < page->cell_count && !page->refused; i++) {
		const size_t at = i % page->columns;

		if (at == 0)
			add_prefix(page);
		add_cell(page, &page->cells[i], widths[at], at + 1 == page->columns);
		if (at + 1 < page->columns)
			continue;
		(void)buf_addc(&page->rows.out, '\n');
		if (i + 1 != page->columns)
			continue;
		add_line(page, sum);
	}
	page->cell_count = 0;
	page->table = false;
}

static void begin_table(struct page *page, const MD_BLOCK_TABLE_DETAIL *detail)
{
	const size_t cells = (size_t)detail->col_count * ((size_t)detail->head_row_count +
							  (size_t)detail->body_row_count);

	page->table = true;
	page->columns = detail->col_count;
	page->cell_count = 0;
	page->cell_room = cells;
	if (detail->col_count == 0 || detail->col_count > CELLS_COLUMNS_MAX ||
	    cells > CELLS_MAX)
		page->refused = true;
	else
		page->cells = arena_alloc(&page->arena, cells * sizeof(*page->cells));
}

/* The parts that md4c finds in a block. Each of its functions ends the work when it does not return 0. */

/* A list item or a quote begins: MARK stands before its first row, and BLANKS before others. */
static void begin_container(struct page *page, const char *mark, const char *blanks)
{
	if (page->depth == DEPTH_MAX) {
		page->refused = true;
		return;
	}
	end_paragraph(page);
	if (!page->first_due) {
		buf_clear(&page->first);
		(void)buf_addstr(&page->first, buf_str(&page->rest));
	}
	page->first_due = true;
	(void)buf_adds(&page->first, mark);
	page->rests[page->depth++] = page->rest.size;
	(void)buf_adds(&page->rest, blanks);
}

static void end_container(struct page *page)
{
	end_paragraph(page);
	/* An item without any text. */
	if (page->first_due) {
		const struct str mark = str_trim(buf_str(&page->first));
		const size_t end = (size_t)(mark.data - page->first.data) + mark.size;

		(void)buf_addstr(&page->rows.out, str_part(buf_str(&page->first), 0, end));
		(void)buf_addc(&page->rows.out, '\n');
		page->first_due = false;
	}
	buf_truncate(&page->rest, page->rests[--page->depth]);
}

static void begin_list(struct page *page, const struct list *list)
{
	end_paragraph(page);
	if (page->list_count == DEPTH_MAX)
		page->refused = true;
	else
		page->lists[page->list_count++] = *list;
}

static void begin_item(struct page *page, const MD_BLOCK_LI_DETAIL *detail)
{
	static const char blanks[] = "                ";
	struct list *list = &page->lists[page->list_count - 1];
	char mark[MARK_MAX];

	if (list->ordered)
		(void)snprintf(mark, sizeof(mark), "%u%c ", list->number++, list->mark);
	else
		(void)snprintf(mark, sizeof(mark), "%c ", list->mark);
	(void)buf_adds(&page->kept, mark);
	begin_container(page, mark, blanks + sizeof(blanks) - 1 - strlen(mark));
	if (detail->is_task) {
		(void)snprintf(mark, sizeof(mark), "[%c] ", detail->task_mark);
		add_shown(page, str_of(mark));
	}
}

static void add_rule(struct page *page)
{
	end_paragraph(page);
	add_line(page, RULE_COLUMNS);
}

static void begin_heading(struct page *page, const MD_BLOCK_H_DETAIL *detail)
{
	turn(page, PAINT_BOLD, true, &"###### "[LEVEL_MAX - detail->level]);
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *context)
{
	struct page *page = context;
	const MD_BLOCK_UL_DETAIL *bullets = detail;
	const MD_BLOCK_OL_DETAIL *numbers = detail;

	switch (type) {
	case MD_BLOCK_QUOTE:
		begin_container(page, page->look->unicode ? "│ " : "> ",
				page->look->unicode ? "│ " : "> ");
		break;
	case MD_BLOCK_UL:
		begin_list(page, &(struct list){.mark = bullets->mark});
		break;
	case MD_BLOCK_OL:
		begin_list(page,
			   &(struct list){true, numbers->start, numbers->mark_delimiter});
		break;
	case MD_BLOCK_LI:
		begin_item(page, detail);
		break;
	case MD_BLOCK_HR:
		add_rule(page);
		break;
	case MD_BLOCK_H:
		begin_heading(page, detail);
		break;
	case MD_BLOCK_CODE:
		end_paragraph(page);
		break;
	case MD_BLOCK_TABLE:
		end_paragraph(page);
		begin_table(page, detail);
		break;
	case MD_BLOCK_TH:
		turn(page, PAINT_BOLD, true, "");
		break;
	default:
		break;
	}
	return page->refused;
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *context)
{
	struct page *page = context;

	switch (type) {
	case MD_BLOCK_QUOTE:
	case MD_BLOCK_LI:
		end_container(page);
		break;
	case MD_BLOCK_UL:
	case MD_BLOCK_OL:
		page->list_count--;
		break;
	case MD_BLOCK_P:
		end_paragraph(page);
		break;
	case MD_BLOCK_H:
		turn(page, PAINT_BOLD, false, "");
		end_paragraph(page);
		break;
	case MD_BLOCK_CODE:
		end_code(page);
		break;
	case MD_BLOCK_TABLE:
		end_table(page);
		break;
	case MD_BLOCK_TH:
		turn(page, PAINT_BOLD, false, "");
		end_cell(page, detail);
		break;
	case MD_BLOCK_TD:
		end_cell(page, detail);
		break;
	default:
		break;
	}
	return page->refused;
}

/* Is TEXT, of a link, what a person would take for the address itself? */
static bool is_like_address(struct str text)
{
	return str_find(text, STR("://"), 0) != SIZE_MAX ||
	       (memchr(text.data, ' ', text.size) == NULL &&
		memchr(text.data, '.', text.size) != NULL);
}

/* May ADDRESS be handed to a terminal, which opens it at a click? */
static bool is_safe_address(struct str address)
{
	if (!str_starts(address, STR("http://")) && !str_starts(address, STR("https://")))
		return false;
	for (size_t i = 0; i < address.size; i++) {
		if (address.data[i] <= ' ' || address.data[i] > '~')
			return false;
	}
	return true;
}

/* The text of a link to ADDRESS is complete. */
static void end_link(struct page *page, const MD_ATTRIBUTE *attribute)
{
	const struct str address = {attribute->text, attribute->size};
	const struct str text =
		str_part(buf_str(&page->text), page->link_from, page->text.size);
	const bool same = str_equal(text, address) ||
			  (str_starts(address, STR("http://")) &&
			   str_equal(text, str_part(address, HTTP_LENGTH, address.size)));

	(void)buf_addstr(&page->kept, address);
	if (address.size == 0 || same) {
		end_run(page, STR(""));
	} else if (page->look->links && is_safe_address(address) && text.size > 0 &&
		   !is_like_address(text)) {
		end_run(page, (struct str){arena_copy(&page->arena, address), address.size});
	} else {
		(void)buf_adds(&page->text, " (");
		(void)buf_addstr(&page->text, address);
		(void)buf_adds(&page->text, ")");
		end_run(page, STR(""));
	}
}

static int turn_span(struct page *page, MD_SPANTYPE type, bool on)
{
	switch (type) {
	case MD_SPAN_EM:
		turn(page, PAINT_EMPHASIS, on, "*");
		break;
	case MD_SPAN_STRONG:
		turn(page, PAINT_BOLD, on, "**");
		break;
	case MD_SPAN_CODE:
		turn(page, PAINT_CODE, on, "`");
		break;
	default:
		break;
	}
	return 0;
}

static int enter_span(MD_SPANTYPE type, void *detail, void *context)
{
	struct page *page = context;

	(void)detail;
	if (type == MD_SPAN_A || type == MD_SPAN_IMG) {
		end_run(page, STR(""));
		page->link_from = page->text.size;
	}
	return turn_span(page, type, true);
}

static int leave_span(MD_SPANTYPE type, void *detail, void *context)
{
	struct page *page = context;

	/* The address is the first member of both details. */
	if (type == MD_SPAN_A || type == MD_SPAN_IMG)
		end_link(page, detail);
	return turn_span(page, type, false);
}

static int take_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *context)
{
	struct page *page = context;

	if (type == MD_TEXT_BR || type == MD_TEXT_SOFTBR)
		(void)buf_addc(&page->text, page->table ? ' ' : '\n');
	else
		add_shown(page, (struct str){text, size});
	return 0;
}

/* Painting a whole block. */

/* Is B a byte of a word, which must not get lost? */
static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Are all words of SOURCE in SHOWN, in their order? */
static bool is_all_there(struct str source, struct str shown)
{
	size_t at = 0;

	for (size_t i = 0; i < source.size; i++) {
		if (!is_of_word(source.data[i]))
			continue;
		while (at < shown.size && shown.data[at] != source.data[i])
			at++;
		if (at++ == shown.size)
			return false;
	}
	return true;
}

/* Append the rows of the block SOURCE to PAINT. False: nothing was appended. */
static bool paint_block(const struct markdown *markdown, struct paint *paint,
			struct str source)
{
	static const MD_PARSER parser = {
		.flags = MD_FLAG_TABLES | MD_FLAG_TASKLISTS | MD_FLAG_NOHTML |
			 MD_FLAG_PERMISSIVEURLAUTOLINKS,
		.enter_block = enter_block,
		.leave_block = leave_block,
		.enter_span = enter_span,
		.leave_span = leave_span,
		.text = take_text,
	};
	struct page page = {.look = paint, .rows = *paint};

	buf_init(&page.rows.out, PAINT_MAX);
	buf_init(&page.text, PAINT_MAX);
	buf_init(&page.kept, PAINT_MAX);
	buf_init(&page.first, PAINT_MAX);
	buf_init(&page.rest, PAINT_MAX);
	arena_init(&page.arena);
	(void)buf_addf(&page.rest, "%*s", (int)markdown->indent, "");
	const bool shown =
		markdown->parse(source.data, (MD_SIZE)source.size, &parser, &page) == 0 &&
		!page.refused && is_all_there(source, buf_str(&page.kept));
	if (shown)
		(void)buf_addstr(&paint->out, buf_str(&page.rows.out));
	arena_fini(&page.arena);
	free(page.runs);
	buf_fini(&page.rows.out);
	buf_fini(&page.text);
	buf_fini(&page.kept);
	buf_fini(&page.first);
	buf_fini(&page.rest);
	return shown;
}

/* Cutting the words into blocks. */

static void begin_rows(struct markdown *markdown, struct paint *paint)
{
	if (markdown->gap && markdown->begun)
		(void)buf_addc(&paint->out, '\n');
	markdown->gap = false;
	markdown->begun = true;
}

/* Append TEXT as it was written, broken between words. */
static void add_as_written(struct markdown *markdown, struct paint *paint, struct str text)
{
	paint_wrap_add(&markdown->wrap, text, columns_of(paint), &paint->out);
}

/* The first SIZE bytes of what is held are a whole block: paint it. */
static void end_block(struct markdown *markdown, struct paint *paint, size_t size)
{
	const size_t dedent = markdown->indent;
	const struct str source = str_part(buf_str(&markdown->held), 0, size);
	struct str rest = source, line;
	struct buf flush_left;

	if (size == 0)
		return;
	begin_rows(markdown, paint);
	buf_init(&flush_left, PAINT_MAX);
	while (str_next_line(&rest, &line)) {
		size_t blanks = 0;

		while (blanks < dedent && blanks < line.size && line.data[blanks] == ' ')
			blanks++;
		(void)buf_addstr(&flush_left, str_part(line, blanks, line.size));
		(void)buf_addc(&flush_left, '\n');
	}
	if (!paint_block(markdown, paint, buf_str(&flush_left))) {
		add_as_written(markdown, paint, source);
		paint_wrap_end(&markdown->wrap, columns_of(paint), 0, &paint->out);
		(void)buf_end_line(&paint->out);
	}
	buf_fini(&flush_left);
	buf_remove(&markdown->held, 0, size);
	markdown->line = markdown->line > size ? markdown->line - size : 0;
}

static size_t blanks_before(struct str line)
{
	size_t count = 0;

	while (count < line.size && line.data[count] == ' ')
		count++;
	return count;
}

static bool is_blank(struct str line)
{
	return str_trim(line).size == 0;
}

/* Does LINE open a fence of code? */
static bool is_fence(const struct markdown *markdown, struct str line, struct fence *fence)
{
	const size_t indent = blanks_before(line);
	size_t size = 0;

	line = str_part(line, indent, line.size);
	if (line.size == 0 || (line.data[0] != '`' && line.data[0] != '~') ||
	    (indent > INDENT_MAX && markdown->depth == 0))
		return false;
	while (size < line.size && line.data[size] == line.data[0])
		size++;
	*fence = (struct fence){.mark = line.data[0], .size = size, .indent = indent};
	if (size >= FENCE_MIN)
		highlight_begin(&fence->highlight,
				str_trim(str_part(line, size, line.size)));
	/* Code between two marks in one line is not a fence. */
	return size >= FENCE_MIN &&
	       (line.data[0] == '~' ||
		memchr(line.data + size, '`', line.size - size) == NULL);
}

static bool ends_fence(const struct fence *fence, struct str line)
{
	size_t size = 0;

	line = str_trim(line);
	while (size < line.size && line.data[size] == fence->mark)
		size++;
	return size >= fence->size && size == line.size;
}

static bool is_rule(struct str line)
{
	size_t count = 0;

	line = str_trim(line);
	for (size_t i = 0; i < line.size; i++) {
		if (line.data[i] == line.data[0])
			count++;
		else if (line.data[i] != ' ')
			return false;
	}
	return count >= FENCE_MIN && strchr("*-_", line.data[0]) != NULL;
}

static bool is_heading(struct str line)
{
	size_t size = 0;

	while (size < line.size && line.data[size] == '#')
		size++;
	return size > 0 && size <= LEVEL_MAX && size < line.size && line.data[size] == ' ';
}

/*
 * Does LINE begin an item of a list? *CONTENT becomes the column where its text begins.
 */
static bool is_item(const struct markdown *markdown, struct str line, size_t *content)
{
	const size_t indent = blanks_before(line);
	size_t at = indent;

	if ((indent > INDENT_MAX && markdown->depth == 0) || is_rule(line))
		return false;
	while (at < line.size && isdigit((unsigned char)line.data[at]))
		at++;
	if (at == line.size || at - indent > 9 ||
	    strchr(at > indent ? ".)" : "-*+", line.data[at]) == NULL)
		return false;
	/* In a paragraph only a list that begins with 1 begins: a year may end a sentence. */
	if (at > indent && markdown->line > 0 && markdown->depth == 0 &&
	    !str_is(str_part(line, indent, at - indent), "1"))
		return false;
	at++;
	if (at < line.size && line.data[at] != ' ')
		return false;
	*content = at + blanks_before(str_part(line, at, line.size));
	if (*content > at + INDENT_MAX + 1 || *content == line.size)
		*content = at + 1;
	return true;
}

/* Leave the items in whose text a line with INDENT blanks does not stand. */
static void leave_items(struct markdown *markdown, size_t indent)
{
	while (markdown->depth > 0 && markdown->contents[markdown->depth - 1] > indent)
		markdown->depth--;
}

static void begin_fence(struct markdown *markdown, const struct fence *fence)
{
	markdown->state = STATE_FENCED;
	markdown->fence = *fence;
	markdown->gap = true;
	buf_clear(&markdown->held);
	markdown->line = 0;
}

static void add_code(struct markdown *markdown, struct paint *paint, struct str line)
{
	size_t blanks = markdown->torn ? 0 : blanks_before(line);

	if (blanks > markdown->fence.indent)
		blanks = markdown->fence.indent;
	if (!markdown->torn)
		begin_rows(markdown, paint);
	highlight_line(&markdown->fence.highlight, paint, str_part(line, blanks, line.size));
}

/* A line of code has come as a whole. */
static void take_code_line(struct markdown *markdown, struct paint *paint, struct str line)
{
	if (!markdown->torn && ends_fence(&markdown->fence, line)) {
		markdown->state = STATE_BLOCKS;
		markdown->gap = true;
	} else {
		add_code(markdown, paint, line);
		(void)buf_addc(&paint->out, '\n');
	}
	markdown->torn = false;
	buf_clear(&markdown->held);
	markdown->line = 0;
}

/* A line of a block that is shown as it was written has come as a whole. */
static void take_written_line(struct markdown *markdown, struct paint *paint, struct str line)
{
	if (markdown->torn || !is_blank(line)) {
		add_as_written(markdown, paint, line);
		add_as_written(markdown, paint, STR("\n"));
	} else {
		paint_wrap_end(&markdown->wrap, columns_of(paint), 0, &paint->out);
		markdown->state = STATE_BLOCKS;
		markdown->gap = true;
	}
	markdown->torn = false;
	buf_clear(&markdown->held);
	markdown->line = 0;
}

/* An item of a list begins in LINE, the last line of what is held. */
static void begin_listed(struct markdown *markdown, struct paint *paint, struct str line,
			 size_t content)
{
	const size_t indent = blanks_before(line);
	struct fence fence;

	leave_items(markdown, indent);
	markdown->indent = indent < columns_of(paint) / 4 ? indent : columns_of(paint) / 4;
	if (markdown->depth < DEPTH_MAX)
		markdown->contents[markdown->depth++] = content;
	if (!is_fence(markdown, str_part(line, content, line.size), &fence))
		return;
	/* The item is code: its mark has a row of its own. */
	fence.indent = content;
	buf_truncate(&markdown->held, content);
	(void)buf_addc(&markdown->held, '\n');
	end_block(markdown, paint, markdown->held.size);
	begin_fence(markdown, &fence);
	markdown->gap = false;
}

/* A line between fences has come as a whole; it is the last one of what is held. */
static void take_block_line(struct markdown *markdown, struct paint *paint)
{
	struct str line = str_part(buf_str(&markdown->held), markdown->line,
				   markdown->held.size - markdown->line - 1);
	size_t content;
	struct fence fence;

	if (is_blank(line)) {
		end_block(markdown, paint, markdown->line);
		buf_clear(&markdown->held);
		markdown->line = 0;
		markdown->gap = true;
		return;
	}
	if (is_fence(markdown, line, &fence)) {
		end_block(markdown, paint, markdown->line);
		begin_fence(markdown, &fence);
		return;
	}
	if (is_item(markdown, line, &content)) {
		end_block(markdown, paint, markdown->line);
		line = str_part(buf_str(&markdown->held), 0, markdown->held.size - 1);
		begin_listed(markdown, paint, line, content);
	} else if (is_heading(line)) {
		end_block(markdown, paint, markdown->line);
		leave_items(markdown, 0);
		markdown->indent = 0;
		end_block(markdown, paint, markdown->held.size);
	} else if (markdown->line == 0) {
		leave_items(markdown, blanks_before(line));
		markdown->indent =
			markdown->depth > 0 ? markdown->contents[markdown->depth - 1] : 0;
	}
	markdown->line = markdown->held.size;
}

static void take_line(struct markdown *markdown, struct paint *paint)
{
	const struct str line =
		str_part(buf_str(&markdown->held), 0,
			 markdown->held.size > 0 ? markdown->held.size - 1 : 0);

	switch (markdown->state) {
	case STATE_BLOCKS:
		take_block_line(markdown, paint);
		break;
	case STATE_FENCED:
		take_code_line(markdown, paint, line);
		break;
	case STATE_AS_WRITTEN:
		take_written_line(markdown, paint, line);
		break;
	}
}

/* More is held than a block may have: show it as it was written, and what follows of it. */
static void stop_holding(struct markdown *markdown, struct paint *paint)
{
	const struct str text = buf_str(&markdown->held);

	if (markdown->state == STATE_FENCED) {
		add_code(markdown, paint, text);
		markdown->torn = true;
	} else {
		if (markdown->state == STATE_BLOCKS)
			begin_rows(markdown, paint);
		add_as_written(markdown, paint, text);
		markdown->torn = text.data[text.size - 1] != '\n';
		markdown->state = STATE_AS_WRITTEN;
	}
	buf_clear(&markdown->held);
	markdown->line = 0;
}

/* The part that is shown of the row that is not complete. */

/* PIECE, without a line end, has been added to what is held. */
static void draft_piece(struct markdown *markdown, const struct paint *paint,
			struct str piece)
{
	const char *last;

	if (markdown->row.size > ROW_MAX)
		buf_clear(&markdown->row);
	paint_wrap_add(&markdown->draft, piece, columns_of(paint), &markdown->row);
	last = memrchr(markdown->row.data, '\n', markdown->row.size);
	if (last != NULL)
		buf_remove(&markdown->row, 0, (size_t)(last - markdown->row.data) + 1);
	buf_clear(&markdown->unfinished);
	(void)buf_addstr(&markdown->unfinished, buf_str(&markdown->row));
	(void)buf_addstr(&markdown->unfinished, buf_str(&markdown->draft.blanks));
	(void)buf_addstr(&markdown->unfinished, buf_str(&markdown->draft.word));
}

static void draft_ends(struct markdown *markdown)
{
	struct buf unused;

	buf_init(&unused, PAINT_MAX);
	paint_wrap_end(&markdown->draft, MARKDOWN_COLUMNS_MAX, 0, &unused);
	buf_fini(&unused);
	buf_clear(&markdown->row);
	buf_clear(&markdown->unfinished);
}

void markdown_add(struct markdown *markdown, struct paint *paint, struct str text)
{
	while (text.size > 0) {
		const size_t end = str_find(text, STR("\n"), 0);
		const struct str piece =
			str_part(text, 0, end == SIZE_MAX ? text.size : end);

		(void)buf_addstr(&markdown->held, piece);
		if (end == SIZE_MAX) {
			draft_piece(markdown, paint, piece);
			if (markdown->held.size > MARKDOWN_BLOCK_MAX) {
				stop_holding(markdown, paint);
				draft_ends(markdown);
			}
			return;
		}
		(void)buf_addc(&markdown->held, '\n');
		draft_ends(markdown);
		take_line(markdown, paint);
		if (markdown->held.size > MARKDOWN_BLOCK_MAX)
			stop_holding(markdown, paint);
		text = str_part(text, end + 1, text.size);
	}
}

void markdown_end(struct markdown *markdown, struct paint *paint)
{
	const bool open = markdown->held.size > markdown->line || markdown->torn;

	if (open)
		markdown_add(markdown, paint, STR("\n"));
	end_block(markdown, paint, markdown->held.size);
	paint_wrap_end(&markdown->wrap, columns_of(paint), 0, &paint->out);
	draft_ends(markdown);
	markdown->state = STATE_BLOCKS;
	markdown->depth = markdown->indent = 0;
	markdown->begun = markdown->gap = markdown->torn = false;
}

struct str markdown_unfinished(const struct markdown *markdown)
{
	return buf_str(&markdown->unfinished);
}

bool markdown_has_begun(const struct markdown *markdown)
{
	return markdown->begun || markdown->held.size > 0;
}
