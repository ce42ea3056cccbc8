/* change: reads the lines of a diff, pairs the removed with the added ones, and paints them. */
#include "tui/commit/change.h"

#include "base/text/diff.h"
#include "base/text/text.h"
#include "tui/commit/highlight.h"
#include "tui/theme.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	PAIRS_MAX = 64, /* removed lines in a row that are compared with the added ones */
	PAIR_BYTES_MAX = 1000, /* a longer line is not compared: nobody sees its words */
	TOKENS_MAX = 512,
	TOKENS_TEXT_MAX = 2 * (PAIR_BYTES_MAX + TOKENS_MAX),
};

/* Reading. */

enum line_kind {
	LINE_HEAD, /* of a file */
	LINE_PLACE,
	LINE_ADDED,
	LINE_REMOVED,
	LINE_SAME,
};

/* How many lines of the hunk are still to come. */
struct reader {
	size_t old_left, new_left;
	size_t new_line;
};

static size_t take_number(struct str *text)
{
	size_t number = 0, size = 0;

	for (; size < text->size && isdigit((unsigned char)text->data[size]); size++) {
		if (number < SIZE_MAX / 100)
			number = 10 * number + (size_t)(text->data[size] - '0');
	}
	*text = str_part(*text, size, text->size);
	return number;
}

/* Read "12,3" or "12", which is one line. */
static void take_range(struct str *text, size_t *from, size_t *count)
{
	*from = take_number(text);
	*count = 1;
	if (text->size > 0 && text->data[0] == ',') {
		*text = str_part(*text, 1, text->size);
		*count = take_number(text);
	}
}

static void read_place(struct reader *reader, struct str line)
{
	struct str rest = str_part(line, sizeof("@@ -") - 1, line.size);
	size_t from;

	take_range(&rest, &from, &reader->old_left);
	rest = str_part(rest, sizeof(" +") - 1, rest.size);
	take_range(&rest, &reader->new_line, &reader->new_left);
}

/* A line outside of every hunk, or in one whose head was cut off. */
static enum line_kind kind_by_words(struct str line)
{
	if (str_starts(line, STR("+++ ")) || str_starts(line, STR("--- ")) ||
	    str_starts(line, STR("diff ")))
		return LINE_HEAD;
	if (str_starts(line, STR("+")))
		return LINE_ADDED;
	return str_starts(line, STR("-")) ? LINE_REMOVED : LINE_SAME;
}

static enum line_kind read_line(struct reader *reader, struct str line)
{
	const char first = line.size > 0 ? line.data[0] : ' ';

	if (reader->old_left + reader->new_left > 0) {
		switch (first) {
		case '+':
			reader->new_left -= reader->new_left > 0;
			return LINE_ADDED;
		case '-':
			reader->old_left -= reader->old_left > 0;
			return LINE_REMOVED;
		case ' ':
			reader->old_left -= reader->old_left > 0;
			reader->new_left -= reader->new_left > 0;
			return LINE_SAME;
		case '\\':
			return LINE_SAME;
		default:
			*reader = (struct reader){0};
		}
	}
	if (str_starts(line, STR("@@ -"))) {
		read_place(reader, line);
		return LINE_PLACE;
	}
	return kind_by_words(line);
}

/* The name of the file that LINE, of a head, names: without "b/". */
static struct str path_of(struct str line)
{
	const struct str path = str_part(line, sizeof("+++ ") - 1, line.size);

	return str_starts(path, STR("b/")) ? str_part(path, 2, path.size) : path;
}

void change_summarise(struct str diff, struct change_summary *summary)
{
	struct reader reader = {0};
	struct str line;

	*summary = (struct change_summary){0};
	while (str_next_line(&diff, &line)) {
		const enum line_kind kind = read_line(&reader, line);

		summary->added += kind == LINE_ADDED;
		summary->removed += kind == LINE_REMOVED;
		if (summary->line == 0 && (kind == LINE_ADDED || kind == LINE_REMOVED))
			summary->line = reader.new_line;
		reader.new_line += kind == LINE_ADDED || kind == LINE_SAME;
		if (kind != LINE_HEAD || !str_starts(line, STR("+++ ")))
			continue;
		if (summary->files++ == 0)
			summary->path = path_of(line);
	}
}

/* The words of two lines that are compared. */

struct token {
	struct str text;
	bool changed;
};

struct tokens {
	struct token items[TOKENS_MAX];
	size_t count, weight; /* bytes that are no blanks */
};

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_blank(struct str text)
{
	return text.data[0] == ' ' || text.data[0] == '\t';
}

/* Cut LINE into words, blanks, and single other marks. False: there are too many. */
static bool cut(struct str line, struct tokens *tokens)
{
	*tokens = (struct tokens){0};
	if (line.size > PAIR_BYTES_MAX)
		return false;
	while (line.size > 0) {
		size_t size = 1;
		const bool word = is_of_word(line.data[0]), blank = is_blank(line);

		while (size < line.size &&
		       ((word && is_of_word(line.data[size])) ||
			(blank && (line.data[size] == ' ' || line.data[size] == '\t'))))
			size++;
		if (tokens->count == TOKENS_MAX)
			return false;
		tokens->items[tokens->count++].text = str_part(line, 0, size);
		tokens->weight += blank ? 0 : size;
		line = str_part(line, size, line.size);
	}
	return true;
}

/* TOKENS as a text of one line each, which Myers' algorithm of base compares. */
static void add_lines(const struct tokens *tokens, struct buf *out)
{
	for (size_t i = 0; i < tokens->count; i++) {
		(void)buf_addstr(out, tokens->items[i].text);
		(void)buf_addc(out, '\n');
	}
}

/* The COUNT tokens from the one with the number FROM, of 1, are changed. */
static void mark(struct tokens *tokens, size_t from, size_t count)
{
	for (size_t i = 0; i < count && from > 0 && from - 1 + i < tokens->count; i++)
		tokens->items[from - 1 + i].changed = true;
}

static size_t kept_weight(const struct tokens *tokens)
{
	size_t weight = 0;

	for (size_t i = 0; i < tokens->count; i++) {
		if (!tokens->items[i].changed && !is_blank(tokens->items[i].text))
			weight += tokens->items[i].text.size;
	}
	return weight;
}

/* Mark what differs in OLD and NEW. False: the lines have less than half in common. */
static bool compare(struct tokens *old, struct tokens *new)
{
	struct buf texts[2], hunks;
	struct str rest, line;

	buf_init(&texts[0], TOKENS_TEXT_MAX);
	buf_init(&texts[1], TOKENS_TEXT_MAX);
	buf_init(&hunks, PAINT_MAX);
	add_lines(old, &texts[0]);
	add_lines(new, &texts[1]);
	(void)diff_unified(buf_str(&texts[0]), buf_str(&texts[1]), NULL, NULL, 0, &hunks,
			   NULL);
	rest = buf_str(&hunks);
	while (str_next_line(&rest, &line)) {
		size_t from, count;

		if (!str_starts(line, STR("@@ -")))
			continue;
		line = str_part(line, sizeof("@@ -") - 1, line.size);
		take_range(&line, &from, &count);
		mark(old, from, count);
		line = str_part(line, sizeof(" +") - 1, line.size);
		take_range(&line, &from, &count);
		mark(new, from, count);
	}
	buf_fini(&texts[0]);
	buf_fini(&texts[1]);
	buf_fini(&hunks);
	return 2 * (kept_weight(old) + kept_weight(new)) >= old->weight + new->weight;
}

/* Painting. */

/* Append LINE, of which TOKENS (NULL: not compared) is all but its first character. */
static void add_line(struct paint *paint, enum paint_style style, struct str line,
		     const struct tokens *tokens)
{
	const unsigned plain = 1U << style, changed = plain | 1U << PAINT_CHANGED;
	const char *begin = line.data;
	bool was = false;

	for (size_t i = 0; tokens != NULL && i < tokens->count; i++) {
		const struct token *token = &tokens->items[i];
		/* A blank between two changed words is a part of what is changed. */
		const bool is = token->changed ||
				(was && is_blank(token->text) && i + 1 < tokens->count &&
				 tokens->items[i + 1].changed);

		if (is == was)
			continue;
		paint_styles(paint, was ? changed : plain,
			     (struct str){begin, (size_t)(token->text.data - begin)});
		begin = token->text.data;
		was = is;
	}
	paint_styles(paint, was ? changed : plain,
		     (struct str){begin, (size_t)(line.data + line.size - begin)});
	(void)buf_addc(&paint->out, '\n');
}

/* Removed lines in a row, and the added ones that follow. */
struct pairs {
	struct str removed[PAIRS_MAX], added[PAIRS_MAX];
	size_t removed_count, added_count;
};

static bool compare_pair(const struct pairs *pairs, size_t at, struct tokens *old,
			 struct tokens *new)
{
	return at < pairs->removed_count && at < pairs->added_count &&
	       cut(str_part(pairs->removed[at], 1, pairs->removed[at].size), old) &&
	       cut(str_part(pairs->added[at], 1, pairs->added[at].size), new) &&
	       compare(old, new);
}

/* Each line is compared twice, which needs no room for the words of all of them. */
static void add_pairs(struct paint *paint, struct pairs *pairs)
{
	struct tokens old, new;

	for (size_t i = 0; i < pairs->removed_count; i++)
		add_line(paint, PAINT_REMOVED, pairs->removed[i],
			 compare_pair(pairs, i, &old, &new) ? &old : NULL);
	for (size_t i = 0; i < pairs->added_count; i++)
		add_line(paint, PAINT_ADDED, pairs->added[i],
			 compare_pair(pairs, i, &old, &new) ? &new : NULL);
	pairs->removed_count = pairs->added_count = 0;
}

/* Lines that are the same have the colours of their language: the others have those of a diff. */
static void add_other(struct paint *paint, enum line_kind kind, struct str line,
		      struct highlight *highlight)
{
	if (kind == LINE_SAME && str_starts(line, STR(" "))) {
		(void)buf_addc(&paint->out, ' ');
		highlight_line(highlight, paint, str_part(line, 1, line.size));
	} else {
		paint_text(paint,
			   kind == LINE_HEAD    ? PAINT_BOLD
			   : kind == LINE_PLACE ? PAINT_HUNK
						: PAINT_PLAIN,
			   line);
		/* The text behind the place of a hunk is not known. */
		highlight->until = NULL;
		if (kind == LINE_HEAD && str_starts(line, STR("+++ ")))
			highlight_begin_file(highlight, path_of(line));
	}
	(void)buf_addc(&paint->out, '\n');
}

void change_paint(const struct paint *look, struct str diff, struct buf *out)
{
	struct pairs pairs = {.removed_count = 0};
	struct highlight highlight = {0};
	struct reader reader = {0};
	struct paint paint = *look;
	struct str line;

	if (!look->colour) {
		(void)buf_addstr(out, diff);
		return;
	}
	buf_init(&paint.out, out->max);
	while (str_next_line(&diff, &line)) {
		const enum line_kind kind = read_line(&reader, line);

		if ((kind == LINE_REMOVED && pairs.added_count > 0) ||
		    (kind != LINE_REMOVED && kind != LINE_ADDED) ||
		    pairs.removed_count == PAIRS_MAX || pairs.added_count == PAIRS_MAX)
			add_pairs(&paint, &pairs);
		if (kind == LINE_REMOVED)
			pairs.removed[pairs.removed_count++] = line;
		else if (kind == LINE_ADDED)
			pairs.added[pairs.added_count++] = line;
		else
			add_other(&paint, kind, line, &highlight);
	}
	add_pairs(&paint, &pairs);
	(void)buf_addstr(out, buf_str(&paint.out));
	buf_fini(&paint.out);
}
