/* text_clean: bytes of a program as a reader should see them; see text.h. */
#include "base/text/text.h"

#include <stdint.h>
#include <string.h>

enum { ESCAPE = 0x1b, BELL = 0x07, DELETE = 0x7f };

struct text_cleaner {
	struct buf *out;
	size_t line;   /* where the line began in out */
	bool returned; /* "\r" seen: what comes next replaces the line */
};

/* The effect of one escape sequence on the text. */
struct text_sequence {
	size_t size;     /* 0: not a sequence */
	bool erases;     /* the line from the cursor on */
	bool erases_all; /* the whole line */
};

/* CSI (ECMA-48, 5.4): parameters, intermediates, one final byte. */
static struct text_sequence text_csi(struct str text)
{
	struct text_sequence sequence = {0};
	size_t at = 2;

	while (at < text.size && text.data[at] >= 0x20 && text.data[at] <= 0x3f)
		at++;
	if (at == text.size || text.data[at] < 0x40 || text.data[at] > 0x7e)
		return sequence;
	sequence.size = at + 1;
	if (text.data[at] == 'K') {
		struct str how = str_part(text, 2, at - 2);

		sequence.erases = how.size == 0 || str_is(how, "0");
		sequence.erases_all = str_is(how, "2");
	}
	return sequence;
}

/*
 * Titles, links, device strings: up to BEL or ESC \. One that does not end on its line is
 * none, so that a lone introducer cannot hide what follows.
 */
static size_t text_control_string(struct str text)
{
	for (size_t at = 2; at < text.size && text.data[at] != '\n'; at++) {
		if (text.data[at] == BELL)
			return at + 1;
		if (text.data[at] == ESCAPE)
			return at + 1 < text.size && text.data[at + 1] == '\\' ? at + 2 : 0;
	}
	return 0;
}

static struct text_sequence text_escape(struct str text)
{
	struct text_sequence sequence = {0};
	size_t at = 1;

	if (text.size < 2)
		return sequence;
	if (text.data[1] == '[')
		return text_csi(text);
	if (strchr("]PX^_", text.data[1]) && text.data[1]) {
		sequence.size = text_control_string(text);
		return sequence;
	}
	while (at < text.size && text.data[at] >= 0x20 && text.data[at] <= 0x2f)
		at++;
	if (at < text.size && text.data[at] >= 0x30 && text.data[at] <= 0x7e)
		sequence.size = at + 1;
	return sequence;
}

static bool text_is_plain(char c)
{
	return (c >= 0x20 && c < DELETE) || c == '\t';
}

/* The size of the piece of TEXT that stays as it is. */
static size_t text_plain_run(struct str text)
{
	size_t at = 0;

	while (at < text.size) {
		unsigned char first = (unsigned char)text.data[at];
		size_t length;

		if (text_is_plain(text.data[at])) {
			at++;
			continue;
		}
		/*
		 * U+0080 to U+009F are control characters too; some terminals obey them.
		 */
		if (first < 0x80 || (first == 0xc2 && at + 1 < text.size &&
				     (unsigned char)text.data[at + 1] < 0xa0))
			break;
		length = text_utf8_length(str_part(text, at, 4));
		if (length == 0)
			break;
		at += length;
	}
	return at;
}

/* Something to be seen is about to be added. */
static void text_before_output(struct text_cleaner *cleaner)
{
	if (cleaner->returned)
		buf_truncate(cleaner->out, cleaner->line);
	cleaner->returned = false;
}

/* Handle what stands at TEXT[0]; returns its size, 0 at the ceiling. */
static size_t text_clean_one(struct text_cleaner *cleaner, struct str text)
{
	struct text_sequence sequence = {0};
	size_t run = text_plain_run(text);

	if (run) {
		text_before_output(cleaner);
		return buf_add(cleaner->out, text.data, run) ? run : 0;
	}
	if (text.data[0] == '\n') {
		if (!buf_addc(cleaner->out, '\n'))
			return 0;
		cleaner->line = cleaner->out->size;
		cleaner->returned = false;
		return 1;
	}
	if (text.data[0] == '\r') {
		cleaner->returned = true;
		return 1;
	}
	if (text.data[0] == ESCAPE)
		sequence = text_escape(text);
	if (sequence.erases_all || (sequence.erases && cleaner->returned))
		buf_truncate(cleaner->out, cleaner->line);
	if (sequence.size)
		return sequence.size;
	text_before_output(cleaner);
	return buf_addf(cleaner->out, "\\x%02X", (unsigned char)text.data[0]) ? 1 : 0;
}

bool text_clean(struct str text, struct buf *out)
{
	struct text_cleaner cleaner = {.out = out, .line = out->size};

	while (text.size) {
		size_t done = text_clean_one(&cleaner, text);

		if (done == 0)
			return false;
		text = str_part(text, done, text.size);
	}
	return true;
}

/*
 * Characters that change how a line looks without being seen in it: those a terminal obeys
 * (U+0080 to U+009F), marks of direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to
 * U+2069), other line ends (U+2028, U+2029).
 */
static bool is_unseen(struct str character)
{
	const unsigned char *b = (const unsigned char *)character.data;

	if (character.size == 2)
		return (b[0] == 0xc2 && b[1] < 0xa0) || (b[0] == 0xd8 && b[1] == 0x9c);
	if (character.size != 3 || b[0] != 0xe2)
		return false;
	return (b[1] == 0x80 &&
		((b[2] >= 0x8e && b[2] <= 0x8f) || (b[2] >= 0xa8 && b[2] <= 0xae))) ||
	       (b[1] == 0x81 && b[2] >= 0xa6 && b[2] <= 0xa9);
}

/* The bytes at the front of TEXT (not empty) that may stand as they are, one character; or 0. */
static size_t seen_size(struct str text)
{
	unsigned char c = (unsigned char)text.data[0];
	size_t size = text_utf8_length(text);

	return c < ' ' || c == DELETE || is_unseen(str_part(text, 0, size)) ? 0 : size;
}

size_t text_find_unseen(struct str text)
{
	size_t at = 0;

	while (at < text.size) {
		size_t size = seen_size(str_part(text, at, text.size));

		if (size == 0)
			break;
		at += size;
	}
	return at;
}

void text_add_name(struct buf *out, struct str name)
{
	while (name.size > 0) {
		size_t size = text_find_unseen(name);

		(void)buf_add(out, name.data, size);
		if (size < name.size)
			(void)buf_addf(out, "\\x%02X", (unsigned char)name.data[size++]);
		name = str_part(name, size, name.size);
	}
}

/*
 * Characters without ink of their own, and blanks that no program takes for one:
 * Default_Ignorable_Code_Point and White_Space beyond ASCII, and the fillers, as of Unicode
 * 15.
 */
static const uint32_t inkless[][2] = {
	{0xa0, 0xa0},     {0xad, 0xad},       {0x34f, 0x34f},     {0x115f, 0x1160},
	{0x1680, 0x1680}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x2000, 0x200d},
	{0x202f, 0x202f}, {0x205f, 0x206f},   {0x2800, 0x2800},   {0x3000, 0x3000},
	{0x3164, 0x3164}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
	{0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static bool has_ink(struct str character)
{
	static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t point = (unsigned char)character.data[0] & first[character.size];

	for (size_t i = 1; i < character.size; i++)
		point = point << 6 | ((unsigned char)character.data[i] & 0x3f);
	for (size_t i = 0; i < sizeof(inkless) / sizeof(inkless[0]); i++) {
		if (point >= inkless[i][0] && point <= inkless[i][1])
			return false;
	}
	return true;
}

void text_add_exact(struct buf *out, struct str text)
{
	while (text.size > 0) {
		const size_t seen = seen_size(text);
		const size_t size = seen > 0 ? seen : 1;
		const bool shown = seen > 0 && has_ink(str_part(text, 0, seen));

		if (shown)
			(void)buf_add(out, text.data, size);
		for (size_t i = 0; !shown && i < size; i++)
			(void)buf_addf(out, "\\x%02X", (unsigned char)text.data[i]);
		text = str_part(text, size, text.size);
	}
}

void text_add_paragraph(struct buf *out, struct str text)
{
	while (text.size > 0) {
		size_t size = 0;

		while (size < text.size && text.data[size] != '\n' && text.data[size] != '\t')
			size++;
		text_add_name(out, str_part(text, 0, size));
		if (size < text.size)
			(void)buf_addc(out, text.data[size++]);
		text = str_part(text, size, text.size);
	}
}
