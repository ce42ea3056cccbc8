/*
 * Fuzz target of what is typed: tui/typing, keys, term, line with its insets and changes,
 * line_frame and line_history. The first two
 * bytes are the size of the terminal, the third that of the pieces, the rest what is typed; it
 * is the history as well. The text stays UTF-8, the cursor on a border, nothing that a
 * terminal would obey is in a row, and the changes from frame to frame add up to the last.
 */
#include "tui/line.h"

#include "base/text/text.h"
#include "tui/term.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each frame draws all that was typed so far: without FRAMES a long input takes a slow machine longer than a run may. */
enum { SCREEN_ROWS = 300, FRAME_MAX = 1 << 20, FRAMES = 256 };

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* A terminal that knows whole rows: what line_frame_change may send, and nothing else. */
struct terminal {
	struct buf rows[SCREEN_ROWS];
	size_t row, there;
	bool fresh; /* the cursor is at the start: what comes replaces the row */
	struct buf coming;
};

static void terminal_init(struct terminal *terminal)
{
	memset(terminal, 0, sizeof(*terminal));
	for (size_t i = 0; i < SCREEN_ROWS; i++)
		buf_init(&terminal->rows[i], FRAME_MAX);
	buf_init(&terminal->coming, FRAME_MAX);
	terminal->there = 1;
}

static void terminal_fini(struct terminal *terminal)
{
	for (size_t i = 0; i < SCREEN_ROWS; i++)
		buf_fini(&terminal->rows[i]);
	buf_fini(&terminal->coming);
}

static void terminal_obey(struct terminal *terminal, size_t number, char what)
{
	switch (what) {
	case 'A':
		check(number > 0 && number <= terminal->row);
		terminal->row -= number;
		break;
	case 'B':
		check(number > 0 && terminal->row + number < terminal->there);
		terminal->row += number;
		break;
	case 'G':
		check(terminal->coming.size == 0);
		terminal->fresh = false;
		break;
	case 'K':
		/* Behind the end of what was drawn there is nothing. */
		if (!terminal->fresh)
			break;
		buf_clear(&terminal->rows[terminal->row]);
		(void)buf_addstr(&terminal->rows[terminal->row], buf_str(&terminal->coming));
		buf_clear(&terminal->coming);
		terminal->fresh = false;
		break;
	case 'J':
		for (size_t i = terminal->row; i < terminal->there; i++)
			buf_clear(&terminal->rows[i]);
		terminal->there = terminal->row + 1;
		terminal->fresh = false;
		break;
	default:
		abort();
	}
}

static void terminal_take(struct terminal *terminal, struct str out)
{
	for (size_t i = 0; i < out.size; i++) {
		char c = out.data[i];

		if (c == '\x1b') {
			size_t number = 0, from = i;

			check(i + 2 < out.size && out.data[i + 1] == '[');
			for (i += 2; out.data[i] >= '0' && out.data[i] <= '9'; i++)
				number = number * 10 + (size_t)(out.data[i] - '0');
			if (out.data[i] == 'm')
				(void)buf_add(terminal->fresh
						      ? &terminal->coming
						      : terminal->rows + terminal->row,
					      out.data + from, i + 1 - from);
			else
				terminal_obey(terminal, number, out.data[i]);
		} else if (c == '\r') {
			check(terminal->coming.size == 0);
			terminal->fresh = true;
		} else if (c == '\n') {
			check(++terminal->row < SCREEN_ROWS);
			if (terminal->row == terminal->there)
				terminal->there++;
		} else if (terminal->fresh) {
			(void)buf_addc(&terminal->coming, c);
		} else {
			(void)buf_addc(&terminal->rows[terminal->row], c);
		}
	}
	check(terminal->coming.size == 0);
}

static void terminal_shows(const struct terminal *terminal, struct str rows)
{
	struct str row;

	for (size_t i = 0; i < terminal->there; i++) {
		if (!str_next_line(&rows, &row))
			row = STR("");
		check(str_equal(buf_str(&terminal->rows[i]), row));
	}
	check(rows.size == 0);
}

static void is_sound(const struct line *line)
{
	struct str text = buf_str(&line->text);

	check(text_is_utf8(text) && line->cursor <= text.size);
	check(text_character_border(text, line->cursor) == line->cursor);
	check(line->insets.count <= INSETS_MAX && line->insets.bytes <= INSETS_BYTES_MAX);
	check(line->changes.count <= CHANGES_MAX &&
	      line->changes.bytes <= CHANGES_BYTES_MAX);
}

/* What is sent is as long as the line said, and no character of an inset is in it. */
static void is_sent_whole(const struct line *line, struct line_history *history)
{
	struct buf whole;

	buf_init(&whole, LINE_BYTES_MAX);
	line_add_whole(line, &whole);
	check(whole.size == insets_whole_size(&line->insets, buf_str(&line->text)));
	check(text_is_utf8(buf_str(&whole)) && !insets_are_in(buf_str(&whole)));
	line_history_add(history, buf_str(&whole));
	buf_fini(&whole);
}

/* After undoing all that is left the changes are used up. */
static void is_undone(struct line *line)
{
	while (line->changes.count > 0) {
		const size_t before = line->changes.count;

		(void)line_take(line, TYPING_UNDO, STR(""));
		check(line->changes.count < before);
		is_sound(line);
	}
}

static void frame_is_safe(const struct line_frame *frame, const struct line_look *look)
{
	struct str rows = buf_str(&frame->rows);

	check(text_is_utf8(rows) && text_count_lines(rows) <= look->rows);
	check(frame->row < look->rows && frame->column < look->columns);
	for (size_t i = 0; i < rows.size; i++) {
		unsigned char c = (unsigned char)rows.data[i];

		check((c >= ' ' && c != 0x7f) || c == '\n' || c == '\x1b');
		if (c == '\x1b')
			check(strchr("012", rows.data[i + 2]) && rows.data[i + 3] == 'm');
	}
}

/* TAB knows two words. */
static void complete(void *context, struct str before, size_t *from, struct buf *words)
{
	(void)context;
	*from = before.size - (before.size > 0 && before.data[before.size - 1] == 'a');
	(void)buf_adds(words, "abc\nabd\n");
}

/* What is pasted with a "/" is the path of a picture; the clipboard has none. */
static struct value *see(void *context, struct str paths, const struct value *before,
			 struct err *err)
{
	struct value *pictures, *picture;

	(void)context;
	(void)before;
	if (paths.size == 0)
		(void)err_set(err, 1, "no picture");
	if (!str_starts(paths, STR("/")))
		return NULL;
	pictures = value_new_array();
	picture = value_new_object();
	value_set_str(picture, "text", STR("a.png"));
	value_append(pictures, picture);
	return pictures;
}

struct play {
	struct typing typing;
	struct term term;
	struct line line;
	struct line_frame shown, wanted;
	struct line_look look;
	struct terminal terminal;
};

static void step(struct play *play)
{
	struct line_frame swapped;
	struct buf typed, out;
	enum typing_key key;

	buf_init(&typed, TYPING_MAX * 3);
	buf_init(&out, FRAME_MAX);
	while (typing_next(&play->typing, &key, &typed)) {
		/* An answer of the terminal is bytes: what term takes of it is printable. */
		if (key == TYPING_ANSWER) {
			term_take(&play->term, buf_str(&typed));
			check(text_find_unseen(str_of(play->term.name)) ==
			      strlen(play->term.name));
			buf_clear(&typed);
			continue;
		}
		check(text_is_utf8(buf_str(&typed)));
		if (line_take(&play->line, key, buf_str(&typed)) == LINE_DONE) {
			is_sent_whole(&play->line, play->line.history);
			line_start(&play->line);
		}
		is_sound(&play->line);
		buf_clear(&typed);
	}
	line_frame_compose(&play->wanted, &play->line, &play->look);
	frame_is_safe(&play->wanted, &play->look);
	line_frame_change(&play->shown, &play->wanted, &out);
	terminal_take(&play->terminal, buf_str(&out));
	terminal_shows(&play->terminal, buf_str(&play->wanted.rows));
	check(play->terminal.row == play->wanted.row);
	swapped = play->shown;
	play->shown = play->wanted;
	play->wanted = swapped;
	buf_fini(&typed);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_completer completer = {.complete = complete};
	struct line_history *history;
	struct play play = {0};
	struct str typed;
	size_t piece;

	if (size < 4)
		return 0;
	piece = data[2] > size / FRAMES ? data[2] : size / FRAMES + 1;
	typed = (struct str){(const char *)data + 3, size - 3};
	history = line_history_new();
	line_history_parse(history, typed);
	play.look.columns = 8 + data[0] % 100;
	play.look.rows = 2 + data[1] % 40;
	play.look.colour = data[0] & 1;
	play.look.unicode = data[1] & 1;
	typing_init(&play.typing);
	term_init(&play.term);
	line_init(&play.line, history, completer);
	play.line.camera.pictures = see;
	line_frame_init(&play.shown);
	line_frame_init(&play.wanted);
	terminal_init(&play.terminal);
	for (size_t at = 0; at < typed.size; at += piece) {
		check(typing_add(&play.typing, str_part(typed, at, piece)));
		step(&play);
	}
	typing_settle(&play.typing);
	step(&play);
	check(!typing_waits(&play.typing));
	check(typing_patience_ms(&play.typing) == -1);
	if (!play.line.search.on)
		is_undone(&play.line);
	terminal_fini(&play.terminal);
	line_frame_fini(&play.shown);
	line_frame_fini(&play.wanted);
	line_fini(&play.line);
	typing_fini(&play.typing);
	line_history_free(history);
	return 0;
}
