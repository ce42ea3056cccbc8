#include "tui/edit/insets.h"

#include "base/text/text.h"

#include <stdio.h>
#include <string.h>

/* U+FDD0 is EF B7 90. */
static const char lead[] = "\xef\xb7";
enum { FIRST = 0x90, FIRST_CODE = 0xfdd0 };

void insets_init(struct insets *insets)
{
	*insets = (struct insets){0};
}

void insets_clear(struct insets *insets)
{
	for (size_t i = 0; i < insets->count; i++) {
		buf_fini(&insets->items[i].text);
		value_free(insets->items[i].picture);
	}
	insets->count = insets->bytes = 0;
}

/* The place of the first inset's character in TEXT; its size: there is none. */
static size_t find(struct str text)
{
	size_t at = str_find(text, STR(lead), 0);

	while (at != SIZE_MAX) {
		const unsigned char last =
			at + 2 < text.size ? (unsigned char)text.data[at + 2] : 0;

		if (last >= FIRST && last < FIRST + INSETS_MAX)
			return at;
		at = str_find(text, STR(lead), at + 1);
	}
	return text.size;
}

bool insets_are_in(struct str text)
{
	return find(text) < text.size;
}

void insets_add_clean(struct str text, struct buf *out)
{
	for (;;) {
		const size_t at = find(text);

		(void)buf_addstr(out, str_part(text, 0, at));
		if (at == text.size)
			return;
		(void)buf_adds(out, "\xef\xbf\xbd");
		text = str_part(text, at + INSETS_SIZE, text.size);
	}
}

static size_t count_characters(struct str text)
{
	size_t count = 0;

	for (size_t i = 0; i < text.size; i++)
		count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
	return count;
}

bool insets_are_for(struct str text)
{
	return text_count_lines(text) > INSETS_LINES_SHOWN ||
	       (text.size > INSETS_CHARACTERS_SHOWN &&
		count_characters(text) > INSETS_CHARACTERS_SHOWN);
}

/* The next inset, whose character is appended to OUT; NULL: there is no room. */
static struct inset *add(struct insets *insets, size_t bytes, struct buf *out)
{
	struct inset *inset = &insets->items[insets->count];

	if (insets->count == INSETS_MAX || insets->bytes + bytes > INSETS_BYTES_MAX)
		return NULL;
	text_add_code((uint32_t)(FIRST_CODE + insets->count), out);
	*inset = (struct inset){0};
	buf_init(&inset->text, INSETS_BYTES_MAX);
	insets->bytes += bytes;
	insets->count++;
	return inset;
}

/* The number of the newest inset among those of its kind. */
static size_t number_of_newest(const struct insets *insets)
{
	const bool is_picture = insets->items[insets->count - 1].picture != NULL;
	size_t number = 0;

	for (size_t i = 0; i < insets->count; i++)
		number += (insets->items[i].picture != NULL) == is_picture;
	return number;
}

bool insets_add_paste(struct insets *insets, struct str text, struct buf *out)
{
	const size_t lines = text_count_lines(text);
	struct inset *inset = add(insets, text.size, out);

	if (inset == NULL)
		return false;
	(void)buf_addstr(&inset->text, text);
	(void)snprintf(inset->label, sizeof(inset->label), "[paste %zu: %zu %s]",
		       number_of_newest(insets), lines > 1 ? lines : count_characters(text),
		       lines > 1 ? "lines" : "characters");
	return true;
}

bool insets_add_picture(struct insets *insets, struct value *take_picture, struct buf *out)
{
	struct inset *inset = add(insets, 0, out);
	struct str text = value_str(value_member(take_picture, "text"));

	if (inset == NULL) {
		value_free(take_picture);
		return false;
	}
	inset->picture = take_picture;
	/* The name is somebody else's, and may be long. */
	text = str_part(text, 0, text_character_border(text, INSETS_LABEL_MAX - 32));
	(void)snprintf(inset->label, sizeof(inset->label), "[picture %zu: %.*s]",
		       number_of_newest(insets), (int)text.size, text.data);
	return true;
}

const struct inset *insets_at(const struct insets *insets, struct str text)
{
	size_t number;

	if (text.size < INSETS_SIZE || memcmp(text.data, lead, strlen(lead)) != 0 ||
	    (unsigned char)text.data[2] < FIRST)
		return NULL;
	number = (unsigned char)text.data[2] - (size_t)FIRST;
	return number < insets->count ? &insets->items[number] : NULL;
}

/* Take the text up to the next inset from *REST; *INSET is that inset, or NULL. False at the end. */
static bool next(const struct insets *insets, struct str *rest, struct str *text,
		 const struct inset **inset)
{
	const size_t at = find(*rest);

	if (rest->size == 0)
		return false;
	*text = str_part(*rest, 0, at);
	*inset = insets_at(insets, str_part(*rest, at, rest->size));
	*rest = str_part(*rest, at + INSETS_SIZE, rest->size);
	return true;
}

static struct str whole_of(const struct inset *inset)
{
	return inset == NULL            ? STR("")
	       : inset->picture != NULL ? str_of(inset->label)
					: buf_str(&inset->text);
}

bool insets_add_whole(const struct insets *insets, struct str text, struct buf *out)
{
	const struct inset *inset;
	struct str part;
	bool added = true;

	while (added && next(insets, &text, &part, &inset))
		added = buf_addstr(out, part) && buf_addstr(out, whole_of(inset));
	return added;
}

void insets_add_shown(const struct insets *insets, struct str text, struct buf *out)
{
	const struct inset *inset;
	struct str part;

	while (next(insets, &text, &part, &inset)) {
		(void)buf_addstr(out, part);
		if (inset != NULL)
			(void)buf_adds(out, inset->label);
	}
}

/* The number of the picture whose label TEXT begins with; the count: of none. */
static size_t labelled(const struct insets *insets, struct str text)
{
	size_t at = 0;

	while (at < insets->count && (insets->items[at].picture == NULL ||
				      !str_starts(text, str_of(insets->items[at].label))))
		at++;
	return at;
}

void insets_add_again(const struct insets *insets, struct str text, struct buf *out)
{
	while (text.size > 0) {
		const size_t at = str_find(text, STR("[picture "), 0);
		const size_t before = at != SIZE_MAX ? at : text.size;
		const struct str rest = str_part(text, before, text.size);
		const size_t found = labelled(insets, rest);

		insets_add_clean(str_part(text, 0, before), out);
		text = rest;
		if (rest.size == 0)
			return;
		if (found < insets->count)
			text_add_code((uint32_t)(FIRST_CODE + found), out);
		else
			(void)buf_addc(out, '[');
		text = str_part(text,
				found < insets->count ? strlen(insets->items[found].label)
						      : 1,
				text.size);
	}
}

size_t insets_whole_size(const struct insets *insets, struct str text)
{
	const struct inset *inset;
	struct str part;
	size_t size = 0;

	while (next(insets, &text, &part, &inset))
		size += part.size + whole_of(inset).size;
	return size;
}

struct value *insets_pictures(const struct insets *insets, struct str text)
{
	struct value *pictures = NULL;
	const struct inset *inset;
	struct str part;

	while (next(insets, &text, &part, &inset)) {
		if (inset == NULL || inset->picture == NULL)
			continue;
		if (pictures == NULL)
			pictures = value_new_array();
		value_append(pictures, value_ref(inset->picture));
	}
	return pictures;
}

void insets_move(const struct insets *from, struct str text, struct insets *to,
		 struct buf *out)
{
	const struct inset *inset;
	struct str part;

	while (next(from, &text, &part, &inset)) {
		(void)buf_addstr(out, part);
		if (inset == NULL)
			continue;
		if (inset->picture != NULL
			    ? !insets_add_picture(to, value_ref(inset->picture), out)
			    : !insets_add_paste(to, buf_str(&inset->text), out))
			(void)buf_addstr(out, whole_of(inset));
	}
}
