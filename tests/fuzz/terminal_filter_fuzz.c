/*
 * Fuzz target of terminal_filter: the first byte says whether the clipboard is open, the second the
 * size of the pieces, the rest is what a program prints. However it is divided, the same passes. A
 * second reader, which knows no states and looks at each introducer wherever it stands, finds
 * nothing in there that is forbidden, also when questions of ours come in between. Text without
 * controls that change how it looks passes as it is.
 */
#include "tui/terminal_filter.h"

#include "base/buf.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 64 << 20 };

static void run(struct str text, size_t step, bool clipboard, bool asks, struct buf *out)
{
	struct terminal_filter *filter = terminal_filter_new(clipboard);

	for (size_t at = 0; at < text.size; at += step) {
		terminal_filter_pass(filter, str_part(text, at, step), out);
		if (asks) {
			terminal_filter_pause(filter, out);
			(void)terminal_filter_resume(filter, out);
		}
	}
	terminal_filter_end(filter, out);
	terminal_filter_free(filter);
}

/* The size of the well-formed character of several bytes that TEXT begins with, or 0. */
static size_t character_of(struct str text)
{
	const unsigned char *at = (const unsigned char *)text.data;
	const size_t size = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	uint32_t code = at[0] & (0xffu >> (size + 1));

	if (at[0] < 0xc2 || at[0] > 0xf4 || text.size < size)
		return 0;
	for (size_t i = 1; i < size; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	if ((size == 3 && code < 0x800) ||
	    (size == 4 && (code < 0x10000 || code > 0x10ffff)) ||
	    (code >= 0xd800 && code < 0xe000))
		return 0;
	return size;
}

/* TEXT goes on behind an introducer. Leave out the controls that terminals obey or skip. */
static struct str skip_controls(struct str text)
{
	while (text.size > 0 && (unsigned char)text.data[0] < ' ' &&
	       text.data[0] != '\033' && text.data[0] != '\030' && text.data[0] != '\032')
		text = str_part(text, 1, text.size);
	while (text.size > 0 && text.data[0] == '\177')
		text = skip_controls(str_part(text, 1, text.size));
	return text;
}

static unsigned long read_number(struct str *text)
{
	unsigned long number = 0;

	for (;;) {
		*text = skip_controls(*text);
		if (text->size == 0 || text->data[0] < '0' || text->data[0] > '9')
			return number;
		number = 10 * number + (unsigned long)(text->data[0] - '0');
		*text = str_part(*text, 1, text->size);
	}
}

/* The final byte of a CSI or DCS; *DOLLAR: there is one before it. */
static char read_final(struct str text, bool *dollar)
{
	for (;;) {
		text = skip_controls(text);
		if (text.size == 0 || text.data[0] < ' ')
			return '\0';
		if (text.data[0] >= '@')
			return text.data[0];
		*dollar = *dollar || text.data[0] == '$';
		text = str_part(text, 1, text.size);
	}
}

static void check_command(struct str text, bool clipboard)
{
	const void *bell = memchr(text.data, '\007', text.size);

	if (bell != NULL)
		text.size = (size_t)((const char *)bell - text.data);
	const unsigned long number = read_number(&text);
	assert(number != 5113 && number != 5522 && number != 21 && number != 30001 &&
	       number != 30101);
	if (number == 1337)
		assert(str_starts(text, STR(";File=")) ||
		       str_starts(text, STR(";MultipartFile=")) ||
		       str_starts(text, STR(";FilePart=")) ||
		       str_starts(text, STR(";FileEnd")));
	if (number == 52) {
		assert(clipboard);
		for (; text.size > 0 && text.data[0] > ' ';
		     text = str_part(text, 1, text.size))
			assert(text.data[0] != '?');
	}
}

static void check_control(struct str text)
{
	struct str body = skip_controls(text), rest = text;
	const unsigned long number = read_number(&rest);
	bool dollar = false;

	if (body.size > 0 && body.data[0] == '?') {
		const char final = read_final(body, &dollar);

		assert(final != 'r' && final != 's');
	}
	rest = skip_controls(rest);
	/* Parameters may follow, in which bytes between them and the final one stand. */
	if (number == 20 || number == 21) {
		bool plain = body.size > 0 && (body.data[0] < '<' || body.data[0] > '?');

		for (struct str at = rest; at.size > 0; at = str_part(at, 1, at.size)) {
			if (at.data[0] >= ' ' && at.data[0] <= '/')
				plain = false;
			if (at.data[0] >= '@' || at.data[0] < 0)
				break;
		}
		assert(!plain || read_final(rest, &dollar) != 't');
	}
}

static void check_device(struct str text)
{
	bool dollar = false;
	const char final = read_final(text, &dollar);

	assert(final != 't' && final != '@' && !(final == 'q' && dollar));
}

static void check_introduced(unsigned char which, struct str text, bool clipboard)
{
	if (which == ']')
		check_command(text, clipboard);
	else if (which == '[')
		check_control(text);
	else if (which == 'P')
		check_device(text);
	else if (which == 'V' || which == 'W')
		abort();
	else if (which == '%' && skip_controls(text).size > 0)
		assert(skip_controls(text).data[0] == 'G' ||
		       skip_controls(text).data[0] < '0');
}

static void check_output(struct str text, bool clipboard)
{
	while (text.size > 0) {
		const unsigned char first = (unsigned char)text.data[0];
		const size_t size = character_of(text);
		struct str rest = str_part(text, size > 0 ? size : 1, text.size);

		if (first == 0x1b) {
			struct str behind = skip_controls(rest);

			if (behind.size > 0)
				check_introduced((unsigned char)behind.data[0],
						 str_part(behind, 1, behind.size),
						 clipboard);
		} else if (first >= 0x80 && first < 0xa0) {
			check_introduced(first - 0x40, rest, clipboard);
		} else if (size == 2 && first == 0xc2 && (unsigned char)text.data[1] < 0xa0) {
			check_introduced((unsigned char)text.data[1] - 0x40, rest,
					 clipboard);
		}
		text = rest;
	}
}

static void check_text(struct str text, struct buf *plain, struct buf *out)
{
	for (size_t i = 0; i < text.size; i++) {
		const unsigned char byte = (unsigned char)text.data[i];

		if (byte != 0x1b && byte != 0x0e && (byte < 0x80 || byte >= 0xc3))
			(void)buf_addc(plain, (char)byte);
	}
	run(buf_str(plain), 7, false, false, out);
	assert(str_equal(buf_str(plain), buf_str(out)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf one, other, plain;

	if (size < 2)
		return 0;
	const bool clipboard = (data[0] & 1) != 0;
	const struct str text = {(const char *)data + 2, size - 2};
	buf_init(&one, OUT_MAX);
	buf_init(&other, OUT_MAX);
	buf_init(&plain, OUT_MAX);
	run(text, text.size + 1, clipboard, false, &one);
	run(text, 1 + data[1] % 8u, clipboard, false, &other);
	assert(str_equal(buf_str(&one), buf_str(&other)));
	check_output(buf_str(&one), clipboard);
	buf_clear(&one);
	run(text, 1 + data[1] % 64u, clipboard, true, &one);
	check_output(buf_str(&one), clipboard);
	buf_clear(&other);
	check_text(text, &plain, &other);
	buf_fini(&plain);
	buf_fini(&other);
	buf_fini(&one);
	return 0;
}
