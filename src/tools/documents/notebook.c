/*
 * notebook: finds the cells in the text of a notebook, shows them, and writes one anew in
 * the form of the others: Jupyter writes each member and each line of a source in a line of
 * its own.
 */

#include "tools/documents/notebook.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "tool/picture.h"
#include "tools/shown.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	FORMAT = 4,     /* of nbformat: older ones have worksheets */
	FORMAT_IDS = 5, /* of nbformat_minor */
	/* A longer source is cut: nobody wrote it by hand. */
	SOURCE_MAX = 20000,
	OUTPUTS_MAX = 20, /* of one cell that are shown */
	ID_DIGITS = 8,    /* of a new id */
	CELL_DEPTH = 2,   /* of nesting; the notebook itself has 0 */
};

/*
 * Finds the places of values in a text. The text was parsed before, so its form is right;
 * all the same no function leaves it.
 */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t pass_blanks(struct str text, size_t at)
{
	while (at < text.size && is_blank(text.data[at]))
		at++;
	return at;
}

/* AT is a quote. Returns the place behind the closing one. */
static size_t pass_string(struct str text, size_t at)
{
	for (at++; at < text.size && text.data[at] != '"'; at++) {
		if (text.data[at] == '\\')
			at++;
	}
	return at < text.size ? at + 1 : text.size;
}

/* Returns the place behind the value at AT. */
static size_t pass_value(struct str text, size_t at)
{
	size_t depth = 0;

	while (at < text.size) {
		const char c = text.data[at];

		if (c == '"') {
			at = pass_string(text, at);
		} else if (c == '{' || c == '[') {
			depth++;
			at++;
		} else if (c == '}' || c == ']') {
			if (depth == 0)
				return at;
			depth--;
			at++;
		} else if (depth == 0 && (c == ',' || is_blank(c))) {
			return at;
		} else {
			at++;
			continue;
		}
		if (depth == 0)
			return at;
	}
	return at;
}

/*
 * Move *AT, which is behind the opening bracket or the item before, to the next item.
 * False: there is none.
 */
static bool next_item(struct str text, size_t *at)
{
	*at = pass_blanks(text, *at);
	if (*at < text.size && text.data[*at] == ',')
		*at = pass_blanks(text, *at + 1);
	return *at < text.size && text.data[*at] != ']' && text.data[*at] != '}';
}

/* The value of the member KEY of the object at AT. False: it has no such member. */
static bool find_member(struct str text, size_t at, const char *key,
			struct notebook_span *found)
{
	if (at >= text.size || text.data[at] != '{')
		return false;
	at++;
	while (next_item(text, &at)) {
		const size_t start = at;
		struct str name;

		at = pass_string(text, at);
		name = str_part(text, start + 1, at - start - 2);
		at = pass_blanks(text, at);
		if (at >= text.size || text.data[at] != ':')
			return false;
		at = pass_blanks(text, at + 1);
		found->start = at;
		at = pass_value(text, at);
		found->end = at;
		if (str_is(name, key))
			return true;
	}
	return false;
}

static struct str part_of(const struct notebook *notebook, struct notebook_span span)
{
	return str_part(notebook->text, span.start, span.end - span.start);
}

static bool find_cells(struct notebook *notebook, struct err *err)
{
	const struct str text = notebook->text;
	size_t at;

	if (!find_member(text, pass_blanks(text, 0), "cells", &notebook->list))
		return err_set(err, EINVAL, "its cells are not found");
	notebook->spans =
		memory_array(value_count(notebook->cells) + 1, sizeof(*notebook->spans));
	at = notebook->list.start + 1;
	while (notebook->count < value_count(notebook->cells) && next_item(text, &at)) {
		struct notebook_span *span = &notebook->spans[notebook->count++];

		span->start = at;
		at = pass_value(text, at);
		span->end = at;
	}
	return notebook->count == value_count(notebook->cells) ||
	       err_set(err, EINVAL, "its cells are not found");
}

bool notebook_open(struct notebook *notebook, struct str text, struct err *err)
{
	const struct value *format;
	int64_t minor;

	*notebook = (struct notebook){.text = text};
	if (!value_parse(text, 0, &notebook->root, err))
		return err_while(err, "it is no JSON");
	format = value_member(notebook->root, "nbformat");
	minor = value_integer(value_member(notebook->root, "nbformat_minor"));
	notebook->cells = value_member(notebook->root, "cells");
	if (value_kind(format) != VALUE_INTEGER || value_integer(format) < 1)
		return err_set(err, EINVAL, "it names no \"nbformat\"");
	if (value_integer(format) < FORMAT)
		return err_set(err, EINVAL,
			       "its format %d is an old one; `jupyter nbconvert --to notebook "
			       "--inplace` makes it a new one",
			       (int)(value_integer(format) & 0xf));
	if (value_kind(notebook->cells) != VALUE_ARRAY)
		return err_set(err, EINVAL, "it has no list of cells");
	for (size_t i = 0; i < value_count(notebook->cells); i++) {
		if (value_kind(value_item(notebook->cells, i)) != VALUE_OBJECT)
			return err_set(err, EINVAL, "its cell %zu is no object", i + 1);
	}
	notebook->has_ids = value_integer(format) > FORMAT || minor >= FORMAT_IDS;
	return find_cells(notebook, err);
}

void notebook_close(struct notebook *notebook)
{
	value_free(notebook->root);
	free(notebook->spans);
	*notebook = (struct notebook){0};
}

/* Shows cells. */

/* Append a text, or a list of texts that are its pieces. */
static void join(const struct value *text, struct buf *out)
{
	(void)buf_addstr(out, value_str(text));
	for (size_t i = 0; value_kind(text) == VALUE_ARRAY && i < value_count(text); i++)
		(void)buf_addstr(out, value_str(value_item(text, i)));
}

/* Append TEXT without the colours of a terminal (ESC [ … letter). */
static void add_without_colours(struct str text, struct buf *out)
{
	for (size_t at = 0; at < text.size;) {
		const char *found = memchr(text.data + at, 0x1b, text.size - at);
		const size_t end = found ? (size_t)(found - text.data) : text.size;

		(void)buf_addstr(out, str_part(text, at, end - at));
		at = end;
		if (at + 1 >= text.size || text.data[at + 1] != '[') {
			at = end + 1;
			continue;
		}
		for (at += 2;
		     at < text.size && (text.data[at] < '@' || text.data[at] > '~');)
			at++;
		at++;
	}
}

/* Append at most MAX bytes of TEXT, every byte visible, and say how many are left out. */
static void add_lines(struct str text, size_t max, struct tool_result *result)
{
	struct buf *out = &result->text;
	struct str rest = text;
	struct str line;

	if (text.size > max)
		rest = str_part(text, 0, text_character_border(text, max));
	result->left_out_bytes += text.size - rest.size;
	const size_t left = text.size - rest.size;
	while (str_next_line(&rest, &line)) {
		shown_add(line, out);
		(void)buf_addc(out, '\n');
	}
	if (left > 0)
		(void)buf_addf(out, "[… %zu more bytes]\n", left);
}

struct showing {
	struct tool_result *result;
	size_t number;   /* of the cell */
	size_t pictures; /* that may still be shown */
};

/* The picture in Base64, in which notebooks have line ends. */
static void show_picture(struct showing *showing, const struct value *data)
{
	struct buf *out = &showing->result->text;
	struct picture picture;
	struct buf text, bytes;
	struct err err = {0};
	size_t kept = 0;

	buf_init(&text, VALUE_TEXT_MAX);
	buf_init(&bytes, VALUE_TEXT_MAX);
	join(data, &text);
	for (size_t i = 0; i < text.size; i++) {
		if (!is_blank(text.data[i]))
			text.data[kept++] = text.data[i];
	}
	buf_truncate(&text, kept);
	(void)buf_addf(out, "[%zu] picture: ", showing->number);
	if (!buf_base64_read(buf_str(&text), &bytes)) {
		(void)buf_adds(out, "it is damaged: it is no Base64");
	} else if (!picture_read(buf_str(&bytes), &picture, &err)) {
		(void)buf_adds(out, err.text);
	} else {
		picture_describe(&picture, bytes.size, out);
		if (!picture_fits(&picture, bytes.size))
			(void)buf_adds(out, " (not shown: models take at most " PICTURE_MOST_TEXT
					    ")");
		else if (showing->pictures == 0 ||
			 !picture_add(&picture, buf_str(&bytes), showing->result))
			(void)buf_adds(out, " (not shown: ask for this cell alone)");
		else
			showing->pictures--;
	}
	(void)buf_addc(out, '\n');
	buf_fini(&bytes);
	buf_fini(&text);
}

static void show_text(struct showing *showing, struct str text)
{
	if (str_trim(text).size == 0)
		return;
	(void)buf_addf(&showing->result->text, "[%zu] output\n", showing->number);
	add_lines(text, NOTEBOOK_OUTPUT_MAX, showing->result);
}

/* Of one output in several forms, show the picture, else the text. */
static void show_forms(struct showing *showing, const struct value *forms)
{
	static const char *const pictures[] = {"image/png", "image/jpeg", "image/gif",
					       "image/webp"};
	struct buf text;

	for (size_t i = 0; i < sizeof(pictures) / sizeof(pictures[0]); i++) {
		const struct value *data = value_member(forms, pictures[i]);

		if (data != NULL) {
			show_picture(showing, data);
			return;
		}
	}
	buf_init(&text, VALUE_TEXT_MAX);
	if (value_member(forms, "text/plain") != NULL) {
		join(value_member(forms, "text/plain"), &text);
	} else if (value_first(forms) != NULL) {
		(void)buf_adds(&text, "(only ");
		(void)buf_adds(&text, value_key(value_first(forms)));
		(void)buf_adds(&text, ")");
	}
	show_text(showing, buf_str(&text));
	buf_fini(&text);
}

static void show_output(struct showing *showing, const struct value *output)
{
	const struct value *trace = value_member(output, "traceback");
	struct buf text, plain;

	if (value_member(output, "data") != NULL) {
		show_forms(showing, value_member(output, "data"));
		return;
	}
	buf_init(&text, VALUE_TEXT_MAX);
	buf_init(&plain, VALUE_TEXT_MAX);
	join(value_member(output, "text"), &text);
	if (value_member(output, "ename") != NULL) {
		(void)buf_addstr(&text, value_str(value_member(output, "ename")));
		(void)buf_adds(&text, ": ");
		(void)buf_addstr(&text, value_str(value_member(output, "evalue")));
		for (size_t i = 0; i < value_count(trace); i++) {
			(void)buf_end_line(&text);
			(void)buf_addstr(&text, value_str(value_item(trace, i)));
		}
	}
	add_without_colours(buf_str(&text), &plain);
	show_text(showing, buf_str(&plain));
	buf_fini(&plain);
	buf_fini(&text);
}

static void show_cell(struct showing *showing, const struct value *cell)
{
	const struct value *outputs = value_member(cell, "outputs");
	const size_t count = value_kind(outputs) == VALUE_ARRAY ? value_count(outputs) : 0;
	struct buf *out = &showing->result->text;
	struct buf source;

	(void)buf_addf(out, "[%zu] ", showing->number);
	shown_add(value_str(value_member(cell, "cell_type")), out);
	(void)buf_addc(out, '\n');
	buf_init(&source, VALUE_TEXT_MAX);
	join(value_member(cell, "source"), &source);
	add_lines(buf_str(&source), SOURCE_MAX, showing->result);
	buf_fini(&source);
	for (size_t i = 0; i < count && i < OUTPUTS_MAX; i++)
		show_output(showing, value_item(outputs, i));
	if (count > OUTPUTS_MAX)
		(void)buf_addf(out, "[… %zu more outputs]\n", count - OUTPUTS_MAX);
}

/* Keep the first COUNT contents of RESULT. */
static void keep_contents(struct tool_result *result, size_t count)
{
	struct value *kept;

	if (value_count(result->content) <= count)
		return;
	kept = count > 0 ? value_new_array() : NULL;
	for (size_t i = 0; i < count; i++)
		value_append(kept, value_ref(value_item(result->content, i)));
	value_free(result->content);
	result->content = kept;
}

void notebook_show(const struct notebook *notebook, size_t first, size_t last,
		   size_t max_bytes, size_t pictures, struct tool_result *result)
{
	struct showing showing = {.result = result, .pictures = pictures};
	const size_t begin = result->text.size;

	for (size_t i = first; i <= last && i <= notebook->count; i++) {
		const size_t before = result->text.size;
		const size_t contents = value_count(result->content);
		const uint64_t left_out = result->left_out_bytes;

		showing.number = i;
		show_cell(&showing, value_item(notebook->cells, i - 1));
		if (result->text.size - begin <= max_bytes || i == first)
			continue;
		buf_truncate(&result->text, before);
		keep_contents(result, contents);
		result->left_out_bytes = left_out;
		(void)buf_addf(&result->text, "[… cells %zu-%zu: \"pages\": \"%zu-%zu\"]\n",
			       i, last, i, last);
		return;
	}
}

/* Writes cells. */

/* How the notebook is written; in one line when NEWLINE is empty. */
struct form {
	struct str newline, unit;
	bool spaced; /* a blank behind a colon, and behind a comma in one line */
};

static struct form form_of(const struct notebook *notebook)
{
	const struct str text = notebook->text;
	const size_t start = pass_blanks(text, 0) + 1;
	const size_t key = pass_blanks(text, start);
	struct str blanks = str_part(text, start, key - start);
	struct form form = {.newline = STR(""), .unit = STR("")};
	size_t at = pass_blanks(text, pass_string(text, key));

	if (str_starts(blanks, STR("\r\n")))
		form.newline = STR("\r\n");
	else if (str_starts(blanks, STR("\n")))
		form.newline = STR("\n");
	form.unit = str_part(blanks, form.newline.size, blanks.size);
	form.spaced = at + 1 < text.size && text.data[at + 1] == ' ';
	return form;
}

static void add_break(const struct form *form, unsigned depth, struct buf *out)
{
	(void)buf_addstr(out, form->newline);
	for (unsigned i = 0; form->newline.size > 0 && i < depth; i++)
		(void)buf_addstr(out, form->unit);
}

static void add_comma(const struct form *form, unsigned depth, struct buf *out)
{
	(void)buf_adds(out, form->newline.size == 0 && form->spaced ? ", " : ",");
	add_break(form, depth, out);
}

/* Append SOURCE as a list of lines at DEPTH. */
static void add_source(const struct form *form, struct str source, unsigned depth,
		       struct buf *out)
{
	(void)buf_addc(out, '[');
	for (size_t at = 0; at < source.size;) {
		const size_t feed = str_find(source, STR("\n"), at);
		const size_t end = feed == (size_t)-1 ? source.size : feed + 1;

		if (at > 0)
			add_comma(form, depth + 1, out);
		else
			add_break(form, depth + 1, out);
		(void)value_quote(str_part(source, at, end - at), out);
		at = end;
	}
	if (source.size > 0)
		add_break(form, depth, out);
	(void)buf_addc(out, ']');
}

static void add_key(const struct form *form, const char *key, struct buf *out)
{
	if (!str_ends(buf_str(out), STR("{")))
		add_comma(form, CELL_DEPTH + 1, out);
	else
		add_break(form, CELL_DEPTH + 1, out);
	(void)buf_addf(out, "\"%s\":%s", key, form->spaced ? " " : "");
}

/* Does a cell of NOTEBOOK have the id ID? */
static bool has_id(const struct notebook *notebook, const char *id)
{
	for (size_t i = 0; i < notebook->count; i++) {
		const struct value *cell = value_item(notebook->cells, i);

		if (str_is(value_str(value_member(cell, "id")), id))
			return true;
	}
	return false;
}

static const char no_cell[] =
	"The new cell cannot be written: it is too large, or there is no "
	"random number for its id. Nothing was changed.";

static bool add_new_id(const struct notebook *notebook, struct buf *out)
{
	char id[ID_DIGITS + 1];

	do {
		if (!text_random_hex(id, ID_DIGITS))
			return false;
	} while (has_id(notebook, id));
	return buf_addf(out, "\"%s\"", id);
}

/*
 * Append a whole cell, its members in the order of Jupyter. OLD, from which its id and
 * metadata come, is the place of a cell; NULL: there is none. False: there is no random
 * number for a new id, or OUT is full.
 */
static bool add_cell(const struct notebook *notebook, const struct form *form,
		     const struct notebook_edit *edit, const struct notebook_span *old,
		     struct buf *out)
{
	const char *kind = edit->kind != NULL ? edit->kind : "code";
	const bool is_code = strcmp(kind, "code") == 0;
	struct notebook_span part;

	(void)buf_addc(out, '{');
	add_key(form, "cell_type", out);
	(void)buf_addf(out, "\"%s\"", kind);
	if (is_code) {
		add_key(form, "execution_count", out);
		(void)buf_adds(out, "null");
	}
	if (old != NULL && find_member(notebook->text, old->start, "id", &part)) {
		add_key(form, "id", out);
		(void)buf_addstr(out, part_of(notebook, part));
	} else if (notebook->has_ids) {
		add_key(form, "id", out);
		if (!add_new_id(notebook, out))
			return false;
	}
	add_key(form, "metadata", out);
	if (old != NULL && find_member(notebook->text, old->start, "metadata", &part))
		(void)buf_addstr(out, part_of(notebook, part));
	else
		(void)buf_adds(out, "{}");
	if (is_code) {
		add_key(form, "outputs", out);
		(void)buf_adds(out, "[]");
	}
	add_key(form, "source", out);
	add_source(form, edit->source, CELL_DEPTH + 1, out);
	add_break(form, CELL_DEPTH, out);
	return buf_addc(out, '}');
}

static int compare_spans(const void *a, const void *b)
{
	const struct notebook_span *left = a, *right = b;

	return left->start < right->start ? -1 : left->start > right->start;
}

/* Append the cell OLD with its source, outputs and count replaced, each in its place. */
static bool add_changed(const struct notebook *notebook, const struct form *form,
			const struct notebook_edit *edit, struct notebook_span old,
			struct buf *out, struct err *err)
{
	struct notebook_span parts[3], source, found;
	size_t count = 0, at = old.start;
	const bool is_code =
		str_is(value_str(value_member(value_item(notebook->cells, edit->cell - 1),
					      "cell_type")),
		       "code");

	if (!find_member(notebook->text, old.start, "source", &source))
		return err_set(err, EINVAL, "Cell %zu has no source.", edit->cell);
	parts[count++] = source;
	if (is_code && find_member(notebook->text, old.start, "outputs", &found))
		parts[count++] = found;
	if (is_code && find_member(notebook->text, old.start, "execution_count", &found))
		parts[count++] = found;
	qsort(parts, count, sizeof(parts[0]), compare_spans);
	for (size_t i = 0; i < count; i++) {
		const char first = notebook->text.data[parts[i].start];

		(void)buf_addstr(out, str_part(notebook->text, at, parts[i].start - at));
		at = parts[i].end;
		if (parts[i].start != source.start)
			(void)buf_adds(out, first == '[' ? "[]" : "null");
		else if (first == '"')
			(void)value_quote(edit->source, out);
		else
			add_source(form, edit->source, CELL_DEPTH + 1, out);
	}
	(void)buf_addstr(out, str_part(notebook->text, at, old.end - at));
	return true;
}

/* Append the text up to UP_TO, and set *AT, up to which the text was taken. */
static void take_up_to(const struct notebook *notebook, size_t up_to, size_t *at,
		       struct buf *out)
{
	(void)buf_addstr(out, str_part(notebook->text, *at, up_to - *at));
	*at = up_to;
}

static bool insert_cell(const struct notebook *notebook, const struct form *form,
			const struct notebook_edit *edit, size_t *at, struct buf *out)
{
	const size_t count = notebook->count;
	const struct notebook_span *last = &notebook->spans[count > 0 ? count - 1 : 0];
	bool added;

	if (edit->cell <= count) {
		take_up_to(notebook, notebook->spans[edit->cell - 1].start, at, out);
		added = add_cell(notebook, form, edit, NULL, out);
		add_comma(form, CELL_DEPTH, out);
	} else if (count > 0) {
		take_up_to(notebook, last->end, at, out);
		add_comma(form, CELL_DEPTH, out);
		added = add_cell(notebook, form, edit, NULL, out);
	} else {
		take_up_to(notebook, notebook->list.start + 1, at, out);
		add_break(form, CELL_DEPTH, out);
		added = add_cell(notebook, form, edit, NULL, out);
		add_break(form, CELL_DEPTH - 1, out);
		*at = notebook->list.end - 1;
	}
	return added;
}

static void remove_cell(const struct notebook *notebook, const struct notebook_edit *edit,
			size_t *at, struct buf *out)
{
	const struct notebook_span *spans = notebook->spans;

	if (notebook->count == 1) {
		take_up_to(notebook, notebook->list.start + 1, at, out);
		*at = notebook->list.end - 1;
	} else if (edit->cell < notebook->count) {
		take_up_to(notebook, spans[edit->cell - 1].start, at, out);
		*at = spans[edit->cell].start;
	} else {
		take_up_to(notebook, spans[edit->cell - 2].end, at, out);
		*at = spans[edit->cell - 1].end;
	}
}

static bool replace_cell(const struct notebook *notebook, const struct form *form,
			 const struct notebook_edit *edit, size_t *at, struct buf *out,
			 struct err *err)
{
	const struct notebook_span *old = &notebook->spans[edit->cell - 1];
	const struct value *cell = value_item(notebook->cells, edit->cell - 1);

	take_up_to(notebook, old->start, at, out);
	*at = old->end;
	if (edit->kind == NULL ||
	    str_is(value_str(value_member(cell, "cell_type")), edit->kind))
		return add_changed(notebook, form, edit, *old, out, err);
	return add_cell(notebook, form, edit, old, out) || err_set(err, EIO, "%s", no_cell);
}

/* The result is read once more: a mistake must not become somebody's broken notebook. */
static bool is_sound(const struct notebook *notebook, const struct notebook_edit *edit,
		     struct str text, struct err *err)
{
	const size_t wanted = notebook->count + (edit->action == NOTEBOOK_INSERT) -
			      (edit->action == NOTEBOOK_DELETE);
	struct notebook made;
	const bool ok = notebook_open(&made, text, err) && made.count == wanted;

	notebook_close(&made);
	return ok || err_set(err, EINVAL,
			     "The notebook would not be one afterwards. Nothing was changed; "
			     "edit_file changes its text.");
}

bool notebook_apply(const struct notebook *notebook, const struct notebook_edit *edit,
		    struct buf *out, struct err *err)
{
	const struct form form = form_of(notebook);
	const size_t most = notebook->count + (edit->action == NOTEBOOK_INSERT);
	size_t at = 0;

	if (edit->cell < 1 || edit->cell > most)
		return err_set(err, EINVAL,
			       "There is no cell %zu; the notebook has %zu. Nothing was changed.",
			       edit->cell, notebook->count);
	if (edit->action == NOTEBOOK_INSERT) {
		if (!insert_cell(notebook, &form, edit, &at, out))
			return err_set(err, EIO, "%s", no_cell);
	} else if (edit->action == NOTEBOOK_DELETE)
		remove_cell(notebook, edit, &at, out);
	else if (!replace_cell(notebook, &form, edit, &at, out, err))
		return false;
	take_up_to(notebook, notebook->text.size, &at, out);
	if (out->overflowed)
		return err_set(err, E2BIG,
			       "The notebook would become larger than this tool writes.");
	return is_sound(notebook, edit, buf_str(out), err);
}
