/*
 * text: checks UTF-8, shortens and cleans output, finds near words, and reads numbers
 * and sizes.
 */

#include "base/text/text.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/*
 * The bytes in which binary is told from text; other programs use similar numbers (git
 * 8,000, grep 32 Ki).
 */
enum { TEXT_BINARY_PROBE = 8192, TEXT_BINARY_PERCENT = 30 };

static bool text_is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

size_t text_utf8_length(struct str text)
{
	const unsigned char *at = (const unsigned char *)text.data;
	unsigned char low = 0x80, high = 0xbf;
	size_t length;

	if (text.size == 0)
		return 0;
	if (at[0] < 0x80)
		return 1;
	if (at[0] < 0xc2 || at[0] > 0xf4)
		return 0;
	length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	/* The second byte shows overlong forms, surrogates and values above U+10FFFF. */
	if (at[0] == 0xe0)
		low = 0xa0;
	else if (at[0] == 0xed)
		high = 0x9f;
	else if (at[0] == 0xf0)
		low = 0x90;
	else if (at[0] == 0xf4)
		high = 0x8f;
	if (text.size < length || at[1] < low || at[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++) {
		if (!text_is_continuation(at[i]))
			return 0;
	}
	return length;
}

/* Offset of the first byte at or after FROM that is not ASCII. */
static size_t text_skip_ascii(struct str text, size_t from)
{
	const uint64_t high_bits = 0x8080808080808080u;

	while (text.size - from >= 4 * sizeof(uint64_t)) {
		uint64_t words[4];

		memcpy(words, text.data + from, sizeof(words));
		if ((words[0] | words[1] | words[2] | words[3]) & high_bits)
			break;
		from += sizeof(words);
	}
	while (from < text.size && (unsigned char)text.data[from] < 0x80)
		from++;
	return from;
}

bool text_is_utf8(struct str text)
{
	size_t at = 0;

	for (;;) {
		size_t length;

		at = text_skip_ascii(text, at);
		if (at == text.size)
			return true;
		/*
		 * Characters of other scripts come in runs: stay in this loop until the
		 * next ASCII byte.
		 */
		while (at < text.size && (unsigned char)text.data[at] >= 0x80) {
			length = text_utf8_length(
				(struct str){text.data + at, text.size - at});
			if (length == 0)
				return false;
			at += length;
		}
	}
}

void text_add_code(uint32_t code, struct buf *out)
{
	if (code < 0x80) {
		buf_addc(out, (char)code);
	} else if (code < 0x800) {
		buf_addc(out, (char)(0xc0 | code >> 6));
		buf_addc(out, (char)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		buf_addc(out, (char)(0xe0 | code >> 12));
		buf_addc(out, (char)(0x80 | (code >> 6 & 0x3f)));
		buf_addc(out, (char)(0x80 | (code & 0x3f)));
	} else {
		buf_addc(out, (char)(0xf0 | code >> 18));
		buf_addc(out, (char)(0x80 | (code >> 12 & 0x3f)));
		buf_addc(out, (char)(0x80 | (code >> 6 & 0x3f)));
		buf_addc(out, (char)(0x80 | (code & 0x3f)));
	}
}

size_t text_character_border(struct str text, size_t at)
{
	size_t start = at;

	if (at >= text.size)
		return text.size;
	while (start > 0 && at - start < 3 &&
	       text_is_continuation((unsigned char)text.data[start]))
		start--;
	if (start + text_utf8_length(str_part(text, start, 4)) > at)
		return start;
	return at;
}

/*
 * Is C a control byte that speaks for binary? Line ends, tab, form feed, backspace and
 * escape do not, because logs and sources contain them.
 */
static bool byte_is_control(unsigned char c)
{
	return (c < 0x20 && (c < '\b' || c > '\r' || c == '\v') && c != 0x1b) || c == 0x7f;
}

/* Like byte_is_control for sixteen bytes: -1 in the lanes where it is true. */
static byte_vector bytes_are_controls(byte_vector c)
{
	byte_vector plain = (byte_vector)((c - '\b') <= '\r' - '\b');

	plain &= (byte_vector)(c != '\v');
	plain |= (byte_vector)(c == 0x1b);
	return ((byte_vector)(c < 0x20) & ~plain) | (byte_vector)(c == 0x7f);
}

/* The end of the bytes from AT that can be counted before a lane overflows. */
static size_t lane_end(struct str text, size_t at)
{
	size_t most = (size_t)BYTE_VECTOR * BYTE_VECTOR_COUNT_MAX;

	return text.size - at > most ? at + most : text.size;
}

static size_t text_count_controls(struct str text)
{
	size_t count = 0;
	size_t at = 0;

	while (text.size - at >= BYTE_VECTOR) {
		byte_vector lanes = {0};

		for (size_t end = lane_end(text, at); end - at >= BYTE_VECTOR;
		     at += BYTE_VECTOR)
			lanes -= bytes_are_controls(byte_vector_load(text.data + at));
		count += byte_vector_sum(lanes);
	}
	for (; at < text.size; at++)
		count += byte_is_control((unsigned char)text.data[at]);
	return count;
}

bool text_is_binary(struct str text)
{
	struct str probe = str_part(text, 0, TEXT_BINARY_PROBE);

	if (probe.size == 0)
		return false;
	return memchr(probe.data, '\0', probe.size) ||
	       text_count_controls(probe) * 100 > probe.size * TEXT_BINARY_PERCENT;
}

size_t text_count_line_ends(struct str text)
{
	byte_vector feed = byte_vector_of('\n');
	size_t count = 0;
	size_t at = 0;

	while (text.size - at >= BYTE_VECTOR) {
		byte_vector lanes = {0};

		for (size_t end = lane_end(text, at); end - at >= BYTE_VECTOR;
		     at += BYTE_VECTOR)
			lanes -= byte_vector_equal(text.data + at, feed);
		count += byte_vector_sum(lanes);
	}
	for (; at < text.size; at++)
		count += text.data[at] == '\n';
	return count;
}

size_t text_count_lines(struct str text)
{
	return text_count_line_ends(text) + (text.size > 0 && !str_ends(text, STR("\n")));
}

char *text_size(uint64_t bytes, char text[32])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double amount = (double)bytes;
	size_t unit = 0;

	if (bytes < 1024) {
		(void)snprintf(text, 32, "%d B", (int)bytes);
		return text;
	}
	/* From 1023.95 on, the smaller unit would print 1024.0. */
	for (amount /= 1024; amount >= 1023.95 && unit < 5; amount /= 1024)
		unit++;
	(void)snprintf(text, 32, "%.1f", amount);
	if (str_ends(str_of(text), STR(".0")))
		text[strlen(text) - 2] = '\0';
	(void)snprintf(text + strlen(text), 32 - strlen(text), " %s", units[unit]);
	return text;
}

bool text_add_count(struct buf *out, size_t count, const char *noun)
{
	return buf_addf(out, "%zu %s%s", count, noun, count == 1 ? "" : "s");
}

/* Turns the output of a program into text for a reader. */

enum { ESCAPE = 0x1b, BELL = 0x07, DELETE = 0x7f };

struct text_cleaner {
	struct buf *out;
	size_t line;   /* beginning of the current line in OUT */
	bool returned; /* after "\r": the next output replaces the line */
};

/* The effect of one escape sequence on the text. */
struct text_sequence {
	size_t size;     /* 0: not a sequence */
	bool erases;     /* erases the line from the cursor on */
	bool erases_all; /* erases the whole line */
};

/* Reads a CSI sequence (ECMA-48, 5.4): parameters, intermediates, one final byte. */
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
 * The size of a control string (title, link, device string), which ends with BEL or ESC
 * \. A string that does not end on its line is none, so that a stray introducer cannot
 * hide the text behind it.
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

/* The size of the beginning of TEXT that stays unchanged. */
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
		 * U+0080 to U+009F are control characters too, and some terminals obey
		 * them.
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

/* Called before visible output is added. */
static void text_before_output(struct text_cleaner *cleaner)
{
	if (cleaner->returned)
		buf_truncate(cleaner->out, cleaner->line);
	cleaner->returned = false;
}

/* Handle the character or sequence at TEXT[0]. Returns its size; 0 when OUT is full. */
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
 * Invisible characters that change how a line looks: those that a terminal obeys
 * (U+0080 to U+009F), marks of direction (U+061C, U+200E, U+200F, U+202A to U+202E,
 * U+2066 to U+2069), and other line ends (U+2028, U+2029).
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

/*
 * The size of the character at the front of TEXT (not empty), if it may stay as it is;
 * else 0.
 */
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
 * Characters without ink, and blanks that programs do not treat as blanks:
 * Default_Ignorable_Code_Point, White_Space beyond ASCII, and the fillers, as in
 * Unicode 15.
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

/*
 * Shortens a long text to its first third and its last two thirds, and a long line to
 * its beginning and its end.
 */

/*
 * The beginning gets one third of the limits, because the end of a log says what went
 * wrong.
 */
enum { TEXT_HEAD_SHARE = 3 };

enum {
	/*
	 * The end of a line gets one quarter, because its beginning says what the line
	 * is.
	 */
	LINE_TAIL_SHARE = 4,
	/*
	 * Beginning and end get one fifth each when a place between them is also shown.
	 */
	LINE_EDGE_SHARE = 5,
	/*
	 * One third of the text around a place is before it, because the text behind it
	 * says more.
	 */
	LINE_BEFORE_SHARE = 3,
};

/* A part of a line to show. */
struct line_span {
	uint64_t from, to;
};

/* The beginning or the end of a text, which grows line by line up to its budget. */
struct text_part {
	size_t bytes, lines; /* left in its budget */
	size_t line_bytes;   /* limit of one line */
	size_t size;         /* bytes taken from the source */
};

static size_t text_limit(size_t limit)
{
	return limit ? limit : SIZE_MAX;
}

/* The size of the first line, including its line end. */
static size_t text_first_line(struct str text)
{
	const char *end = memchr(text.data, '\n', text.size);

	return end ? (size_t)(end - text.data) + 1 : text.size;
}

/* The size of the last line, including its line end. */
static size_t text_last_line(struct str text)
{
	const char *before;

	if (text.size < 2)
		return text.size;
	before = memrchr(text.data, '\n', text.size - 1);
	return before ? text.size - (size_t)(before + 1 - text.data) : text.size;
}

/* Take a line of SIZE bytes if the budget allows it. */
static bool text_take_line(struct text_part *part, size_t size)
{
	/*
	 * A line over its own limit costs the bytes that are shown of it, and its line
	 * end.
	 */
	size_t cost = size - 1 > part->line_bytes ? part->line_bytes + 1 : size;

	if (part->lines == 0 || cost > part->bytes)
		return false;
	part->lines--;
	part->bytes -= cost;
	part->size += size;
	return true;
}

size_t text_line_head(size_t most)
{
	return most - most / LINE_TAIL_SHARE;
}

/*
 * The spans to show of LINE, which is longer than MOST. They are in order and may
 * touch.
 */
static size_t line_spans(const struct text_line *line, size_t most,
			 struct line_span spans[TEXT_LINE_PARTS])
{
	size_t head = text_line_head(most), tail = most - head;
	size_t edge = most / LINE_EDGE_SHARE, around = most - 2 * edge;
	uint64_t place_end = line->place_end, from = line->place;

	if (place_end > line->place + around)
		place_end = line->place + around;
	if (place_end == line->place || place_end <= head ||
	    line->place >= line->size - tail) {
		spans[0] = (struct line_span){0, head};
		spans[1] = (struct line_span){line->size - tail, line->size};
		return 2;
	}
	from -= (around - (place_end - from)) / LINE_BEFORE_SHARE;
	if (line->place < from || from < edge)
		from = edge;
	if (from + around > line->size - edge)
		from = line->size - edge - around;
	spans[0] = (struct line_span){0, edge};
	spans[1] = (struct line_span){from, from + around};
	spans[2] = (struct line_span){line->size - edge, line->size};
	return 3;
}

/*
 * The bytes of SPAN. SPAN shrinks until it cuts no character and all its bytes are
 * held.
 */
static struct str line_part(const struct text_line *line, struct line_span *span)
{
	struct str bytes = {0};
	uint64_t at = 0;
	size_t from, to, border;

	for (size_t i = 0; i < TEXT_LINE_PARTS; i++) {
		bytes = line->held[i].bytes;
		at = line->held[i].at;
		if (at <= span->from && span->to <= at + bytes.size)
			break;
		bytes.size = 0;
	}
	if (bytes.size == 0) {
		span->to = span->from;
		return (struct str){"", 0};
	}
	from = (size_t)(span->from - at);
	to = text_character_border(bytes, (size_t)(span->to - at));
	border = text_character_border(bytes, from);
	/* Move forward, not back, so that the limit is kept. */
	if (border < from)
		border += text_utf8_length(str_part(bytes, border, 4));
	if (border > to)
		border = to;
	*span = (struct line_span){at + border, at + to};
	return str_part(bytes, border, to - border);
}

static void add_gap(const struct text_line *line, uint64_t from, uint64_t to,
		    struct text_line_cut *cut, struct buf *out)
{
	if (from >= to)
		return;
	(void)buf_addf(out, " [… %" PRIu64 " of this line's %" PRIu64 " bytes left out …] ",
		       to - from, line->size);
	cut->left_out += to - from;
	cut->gap = from;
}

struct text_line_cut text_add_line(const struct text_line *line, size_t most,
				   void (*add)(struct str part, struct buf *out),
				   struct buf *out)
{
	struct line_span spans[TEXT_LINE_PARTS] = {{0, line->size}};
	size_t count = line->size <= most ? 1 : line_spans(line, most, spans);
	struct text_line_cut cut = {0};
	uint64_t at = 0;

	for (size_t i = 0; i < count; i++) {
		struct str part = line_part(line, &spans[i]);

		add_gap(line, at, spans[i].from, &cut, out);
		if (add)
			add(part, out);
		else
			(void)buf_addstr(out, part);
		at = spans[i].to;
	}
	add_gap(line, at, line->size, &cut, out);
	return cut;
}

/* Append LINES, each cut to line_bytes, and count the cuts. */
static bool text_add_lines(struct str lines, size_t line_bytes, struct buf *out,
			   struct text_cut *cut)
{
	while (lines.size) {
		size_t size = text_first_line(lines);
		struct str line = str_part(lines, 0, size);
		bool ended = line.data[size - 1] == '\n';
		struct text_line shown = {0};

		lines = str_part(lines, size, lines.size);
		line.size -= ended;
		shown.size = line.size;
		shown.held[0].bytes = line;
		cut->long_lines += line.size > line_bytes;
		cut->bytes += (size_t)text_add_line(&shown, line_bytes, NULL, out).left_out;
		if (ended)
			(void)buf_addc(out, '\n');
		if (out->overflowed)
			return false;
	}
	return true;
}

/*
 * When not even one line fits, show a piece of it, so that a text without line ends is
 * not left out as a whole. When this end already shows a line, the cut stays between
 * lines.
 */
static void text_cut_head(struct str middle, struct text_part *head)
{
	size_t room = head->bytes < head->line_bytes ? head->bytes : head->line_bytes;

	if (head->size || head->lines == 0)
		return;
	middle.size = text_first_line(middle);
	head->size = text_character_border(middle, room);
	head->bytes -= head->size;
	head->lines--;
}

static void text_cut_tail(struct str middle, struct text_part *tail)
{
	size_t room = tail->bytes < tail->line_bytes ? tail->bytes : tail->line_bytes;
	size_t last = text_last_line(middle), at, border;
	struct str line = str_part(middle, middle.size - last, last);

	if (tail->size || tail->lines == 0)
		return;
	at = last > room ? last - room : 0;
	border = text_character_border(line, at);
	/* Move forward, not back, so that the budget is kept. */
	if (border < at)
		border += text_utf8_length(str_part(line, border, 4));
	tail->size = last - border;
}

static bool text_add_mark(struct str middle, bool after_line_end, struct buf *out)
{
	size_t lines = text_count_lines(middle);

	return (after_line_end || buf_addc(out, '\n')) && buf_adds(out, "[… ") &&
	       text_add_count(out, lines, "line") && buf_adds(out, ", ") &&
	       text_add_count(out, middle.size, "byte") && buf_adds(out, " left out …]\n");
}

bool text_shorten(struct str text, const struct text_limits *limits, struct buf *out,
		  struct text_cut *cut)
{
	size_t bytes = text_limit(limits->bytes), lines = text_limit(limits->lines);
	size_t line_bytes = text_limit(limits->line_bytes);
	const size_t head_bytes =
		limits->head_bytes ? limits->head_bytes : bytes / TEXT_HEAD_SHARE;
	struct text_part head = {head_bytes, lines / TEXT_HEAD_SHARE, line_bytes, 0};
	struct text_part tail = {0};
	struct text_cut left_out = {0};
	struct str middle = text;

	if (text.size <= bytes && text_count_lines(text) <= lines) {
		head = (struct text_part){.size = text.size};
		middle.size = 0;
	}
	while (middle.size && text_take_line(&head, text_first_line(middle)))
		middle = str_part(text, head.size, text.size);
	if (middle.size)
		text_cut_head(middle, &head);
	/* The tail may use the room that the head did not use. */
	tail.bytes = bytes - head_bytes + head.bytes;
	tail.lines = lines - lines / TEXT_HEAD_SHARE + head.lines;
	tail.line_bytes = line_bytes;
	middle = str_part(text, head.size, middle.size ? text.size : 0);
	while (middle.size && text_take_line(&tail, text_last_line(middle)))
		middle = str_part(text, head.size, text.size - head.size - tail.size);
	if (middle.size)
		text_cut_tail(middle, &tail);
	middle = str_part(text, head.size, text.size - head.size - tail.size);
	if (!text_add_lines(str_part(text, 0, head.size), line_bytes, out, &left_out))
		return false;
	if (middle.size) {
		bool line_ended = head.size == 0 || text.data[head.size - 1] == '\n';

		if (!text_add_mark(middle, line_ended, out))
			return false;
		left_out.bytes += middle.size;
		left_out.lines += text_count_lines(middle);
	}
	if (!text_add_lines(str_part(text, text.size - tail.size, tail.size), line_bytes,
			    out, &left_out))
		return false;
	*cut = left_out;
	return true;
}

/*
 * Append the whole lines of a torn HEAD, and the shown part of its last one. Returns how
 * many bytes of that line are left out.
 */
static size_t text_add_torn_head(struct str head, size_t line_bytes, struct buf *out,
				 struct text_cut *cut)
{
	size_t whole = head.size, shown;
	struct str torn;

	while (whole > 0 && head.data[whole - 1] != '\n')
		whole--;
	torn = str_part(head, whole, head.size);
	shown = line_bytes == SIZE_MAX
			? torn.size
			: text_character_border(torn, text_line_head(line_bytes));
	(void)text_add_lines(str_part(head, 0, whole), line_bytes, out, cut);
	(void)buf_addstr(out, str_part(torn, 0, shown));
	cut->long_lines += shown < torn.size;
	return torn.size - shown;
}

/* The same of the first line of a torn TAIL, and its other lines. */
static size_t text_add_torn_tail(struct str tail, size_t line_bytes, struct buf *out,
				 struct text_cut *cut)
{
	const size_t room =
		line_bytes == SIZE_MAX ? SIZE_MAX : line_bytes - text_line_head(line_bytes);
	size_t end = str_find(tail, STR("\n"), 0), from = 0;

	if (end == (size_t)-1)
		end = tail.size;
	if (end > room)
		from = text_character_border(tail, end - room);
	(void)buf_addstr(out, str_part(tail, from, end - from));
	(void)text_add_lines(str_part(tail, end, tail.size), line_bytes, out, cut);
	cut->long_lines += from > 0;
	return from;
}

/* The size of the largest beginning of TEXT in whole lines within the limits. */
static size_t text_fitting_start(struct str text, size_t bytes, size_t lines)
{
	size_t fits = 0;

	if (text.size <= bytes && text_count_lines(text) <= lines)
		return text.size;
	while (lines-- > 0) {
		size_t feed = str_find(text, STR("\n"), fits);

		if (feed == (size_t)-1 || feed + 1 > bytes)
			break;
		fits = feed + 1;
	}
	return fits > 0 ? fits : text_character_border(text, bytes);
}

/* The start of the largest end of TEXT in whole lines within the limits. */
static size_t text_fitting_end(struct str text, size_t bytes, size_t lines)
{
	size_t from = text.size > bytes ? text.size - bytes : 0;
	size_t at = text.size;

	while (at > from && lines > 0) {
		const char *feed = at > 1 ? memrchr(text.data, '\n', at - 1) : NULL;
		size_t start = feed != NULL ? (size_t)(feed - text.data) + 1 : 0;

		if (start < from)
			break;
		at = start;
		lines--;
	}
	return at < text.size ? at : text_character_border(text, from);
}

void text_shorten_torn(struct str head, struct str tail, uint64_t missing,
		       const struct text_limits *limits, struct buf *out,
		       struct text_cut *cut)
{
	const size_t bytes = text_limit(limits->bytes), lines = text_limit(limits->lines);
	const size_t line_bytes = text_limit(limits->line_bytes);
	const size_t head_bytes =
		limits->head_bytes ? limits->head_bytes : bytes / TEXT_HEAD_SHARE;
	const size_t head_lines = lines / TEXT_HEAD_SHARE;
	struct text_cut left_out = {0};
	struct buf start, end;

	buf_init(&start, SIZE_MAX);
	buf_init(&end, SIZE_MAX);
	missing += text_add_torn_head(head, line_bytes, &start, &left_out);
	missing += text_add_torn_tail(tail, line_bytes, &end, &left_out);
	const size_t first = text_fitting_start(buf_str(&start), head_bytes, head_lines);
	const size_t last =
		text_fitting_end(buf_str(&end), bytes - head_bytes, lines - head_lines);
	missing += start.size - first + last;
	(void)buf_addstr(out, str_part(buf_str(&start), 0, first));
	if (first == 0 || start.data[first - 1] != '\n')
		(void)buf_addc(out, '\n');
	(void)buf_addf(out, "[… %" PRIu64 " bytes left out …]\n", missing);
	(void)buf_addstr(out, str_part(buf_str(&end), last, end.size));
	buf_fini(&start);
	buf_fini(&end);
	left_out.bytes += (size_t)missing;
	left_out.lines = 0;
	*cut = left_out;
}

/* Finds the nearest word, and reads numbers that people type. */

/* About 31 years, the same limit as in base/clock.c. */
#define TEXT_SECONDS_MAX 1000000000u
/* No clock here is finer than a nanosecond. */
enum { TEXT_FRACTION_DIGITS = 9 };
/* Bytes of a wrong word in a sentence. */
enum { TEXT_QUOTED = 40 };

static size_t text_least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t text_distance(struct str a, struct str b, size_t limit)
{
	const size_t far = limit == SIZE_MAX ? limit : limit + 1;
	size_t width = b.size + 1;
	auto_free size_t *rows = NULL;
	size_t *before, *last, *row;

	if ((a.size > b.size ? a.size - b.size : b.size - a.size) >= far)
		return far;
	rows = memory_array(3 * width, sizeof(*rows));
	before = rows;
	last = rows + width;
	row = rows + 2 * width;
	for (size_t j = 0; j < width; j++)
		last[j] = text_least(j, far);
	for (size_t i = 1; i <= a.size; i++) {
		/*
		 * Only compute the band of LIMIT around the diagonal; everything
		 * outside is too far.
		 */
		size_t from = i > limit ? i - limit : 1;
		size_t to = b.size - i > limit && b.size > i ? i + limit : b.size;
		size_t best = far, *free_row = before;

		row[from - 1] = from == 1 ? text_least(i, far) : far;
		for (size_t j = from; j <= to; j++) {
			bool same = a.data[i - 1] == b.data[j - 1];
			size_t cost = last[j - 1] + !same;

			cost = text_least(cost, row[j - 1] + 1);
			cost = text_least(cost, last[j] + 1);
			if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
			    a.data[i - 2] == b.data[j - 1])
				cost = text_least(cost, before[j - 2] + 1);
			row[j] = text_least(cost, far);
			best = text_least(best, row[j]);
		}
		if (to < b.size)
			row[to + 1] = far;
		if (best == far && row[from - 1] >= far)
			return far;
		before = last;
		last = row;
		row = free_row;
	}
	return text_least(last[b.size], far);
}

const char *text_nearest(const char *word, const char *const *names)
{
	struct str wanted = str_of(word);
	size_t best = wanted.size / 3 + 2;
	const char *nearest = NULL;

	for (; *names; names++) {
		struct str name = str_of(*names);
		size_t longer = wanted.size > name.size ? wanted.size : name.size;
		size_t distance = text_distance(wanted, name, best - 1);

		/* A word without a common character is another word, not a slip. */
		if (distance < best && distance < longer) {
			best = distance;
			nearest = *names;
		}
		if (best == 0)
			break;
	}
	return nearest;
}

static bool text_refuse(const char *text, const char *what, const char *form, struct err *err)
{
	struct str shown = str_of(text);
	struct buf clean;

	buf_init(&clean, (size_t)4 * TEXT_QUOTED);
	(void)text_clean(str_part(shown, 0, text_character_border(shown, TEXT_QUOTED)),
			 &clean);
	(void)err_set(err, EINVAL, "\"%s%s\" is not a %s: %s", clean.data,
		      shown.size > TEXT_QUOTED ? "…" : "", what, form);
	buf_fini(&clean);
	return false;
}

int text_hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

void text_from_hex(struct str digits, char *bytes)
{
	for (size_t i = 0; i + 1 < digits.size; i += 2) {
		const int high = text_hex_digit(digits.data[i]);
		const int low = text_hex_digit(digits.data[i + 1]);

		*bytes++ = (char)((high < 0 ? 0 : high) << 4 | (low < 0 ? 0 : low));
	}
	*bytes = '\0';
}

bool text_random_hex(char *digits, size_t count)
{
	unsigned char bytes[32];

	for (size_t i = 0; i < count; i += 2) {
		const size_t at = i / 2 % sizeof(bytes), left = (count - i + 1) / 2,
			     wanted = left < sizeof(bytes) ? left : sizeof(bytes);

		if (at == 0 && getrandom(bytes, wanted, 0) != (ssize_t)wanted)
			return false;
		(void)snprintf(digits + i, 3, "%02x", bytes[at]);
	}
	return true;
}

size_t text_take_number(struct str *text)
{
	enum { DIGITS_MAX = 7 };
	size_t number = 0, at = 0;

	for (; at < text->size && at < DIGITS_MAX && text->data[at] >= '0' &&
	       text->data[at] <= '9';
	     at++)
		number = 10 * number + (size_t)(text->data[at] - '0');
	*text = str_part(*text, at, text->size);
	return number;
}

bool text_percent_take(struct str *text, char *byte)
{
	const bool is_escape = text->data[0] == '%';
	const int high = is_escape && text->size > 2 ? text_hex_digit(text->data[1]) : -1;
	const int low = high >= 0 ? text_hex_digit(text->data[2]) : -1;

	if (is_escape && low < 0)
		return false;
	*byte = is_escape ? (char)(high * 16 + low) : text->data[0];
	*text = str_part(*text, is_escape ? 3 : 1, text->size);
	return true;
}

bool text_percent_read(struct str text, struct buf *out)
{
	while (text.size > 0) {
		char byte;

		if (!text_percent_take(&text, &byte)) {
			byte = '%';
			text = str_part(text, 1, text.size);
		}
		if (byte == '\0' || !buf_addc(out, byte))
			return false;
	}
	return true;
}

bool text_percent_add(struct str text, const char *plain, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		const unsigned char c = (unsigned char)text.data[i];
		const bool stays = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
				   (c >= 'a' && c <= 'z') ||
				   (c != '\0' && (strchr("-._~", c) || strchr(plain, c)));

		if (stays ? !buf_addc(out, (char)c) : !buf_addf(out, "%%%02X", c))
			return false;
	}
	return true;
}

/* Read digits at *AT as a number up to MAX, and move *AT behind them. */
static bool text_digits(const char **at, uint64_t max, uint64_t *number)
{
	const char *start = *at;

	*number = 0;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		uint64_t digit = (uint64_t)(**at - '0');

		if (digit > max || *number > (max - digit) / 10)
			return false;
		*number = *number * 10 + digit;
	}
	return *at > start;
}

bool text_parse_count(const char *text, uint64_t max, uint64_t *count, struct err *err)
{
	const char *at = text;
	uint64_t number;

	if (text_digits(&at, max, &number) && *at == '\0') {
		*count = number;
		return true;
	}
	if (*text && text[strspn(text, "0123456789")] == '\0')
		return err_set(err, ERANGE, "%.*s is too large: at most %llu",
			       TEXT_QUOTED, text, (unsigned long long)max);
	return text_refuse(text, "number", "give digits, as in 20", err);
}

bool text_parse_size(const char *text, uint64_t *bytes, struct err *err)
{
	static const char form[] = "give bytes, or a number with K, M, G or T, as in 512M";
	static const char letters[] = "KMGT";
	const char *at = text, *letter;
	uint64_t number;
	unsigned shift = 0;

	/* A size is later used as off_t, so INT64_MAX is the maximum. */
	if (!text_digits(&at, INT64_MAX, &number))
		return text_refuse(text, "size", form, err);
	letter = *at ? strchr(letters, *at) : NULL;
	if (letter) {
		shift = 10 * (unsigned)(letter - letters + 1);
		at++;
	}
	if (*at || number > (uint64_t)INT64_MAX >> shift)
		return text_refuse(text, "size", form, err);
	*bytes = number << shift;
	return true;
}

bool text_parse_seconds(const char *text, double *seconds, struct err *err)
{
	static const char form[] = "give seconds, fractions allowed, as in 1.5";
	const char *at = text;
	uint64_t whole, fraction = 0;
	double scale = 1;

	if (!text_digits(&at, TEXT_SECONDS_MAX, &whole))
		return text_refuse(text, "time", form, err);
	if (*at == '.') {
		const char *first = ++at;

		if (!text_digits(&at, UINT64_MAX, &fraction) ||
		    at - first > TEXT_FRACTION_DIGITS)
			return text_refuse(text, "time", form, err);
		for (; first < at; first++)
			scale *= 10;
	}
	if (*at)
		return text_refuse(text, "time", form, err);
	*seconds = (double)whole + (double)fraction / scale;
	return true;
}
