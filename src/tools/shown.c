/* shown: files as a model sees them; see shown.h. */
#include "tools/shown.h"

#include "base/str.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tool/denial.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_SAMPLE = 8192 };

struct shown_kind shown_kind(struct str start)
{
	struct shown_kind kind = {0};

	if (str_starts(start, STR("\xef\xbb\xbf")))
		kind.utf8_mark = true;
	else if (str_starts(start, STR("\xff\xfe")))
		kind.utf16 = true;
	else if (str_starts(start, STR("\xfe\xff")))
		kind.utf16 = kind.utf16_big = true;
	if (!kind.utf16)
		kind.binary = text_is_binary(str_part(start, 0, SHOWN_SAMPLE));
	return kind;
}

void shown_count_ends(struct str text, struct shown_ends *ends)
{
	const char *end = text.data + text.size;
	const char *at = text.data;

	/* Most files have none: to count by vectors then takes a tenth. */
	if (text.size > 0 && memchr(text.data, '\r', text.size) == NULL) {
		ends->lf += text_count_line_ends(text);
		return;
	}
	while (at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
		if (at > text.data && at[-1] == '\r')
			ends->crlf++;
		else
			ends->lf++;
		at++;
	}
}

enum shown_end shown_end_of_all(const struct shown_ends *ends)
{
	if ((ends->lf > 0) == (ends->crlf > 0))
		return SHOWN_END_NONE;
	return ends->lf > 0 ? SHOWN_END_LF : SHOWN_END_CRLF;
}

bool shown_set_ends(struct buf *text, enum shown_end wanted)
{
	struct shown_ends ends = {0};
	struct str rest = buf_str(text);
	struct buf made;
	size_t feed;

	shown_count_ends(rest, &ends);
	if (wanted == SHOWN_END_NONE || (wanted == SHOWN_END_LF ? ends.crlf : ends.lf) == 0)
		return false;
	buf_init(&made, SIZE_MAX);
	while ((feed = str_find(rest, STR("\n"), 0)) != (size_t)-1) {
		struct str line = str_part(rest, 0, feed);

		if (str_ends(line, STR("\r")))
			line.size--;
		buf_addstr(&made, line);
		buf_adds(&made, wanted == SHOWN_END_CRLF ? "\r\n" : "\n");
		rest = str_part(rest, feed + 1, rest.size);
	}
	buf_addstr(&made, rest);
	made.max = text->max;
	buf_fini(text);
	*text = made;
	return true;
}

bool shown_ends_are_given(const struct call *call)
{
	const char *wanted = call_text(call, "line_ends");

	return wanted != NULL && strcmp(wanted, "given") == 0;
}

void shown_add_ends_set(const char *name, enum shown_end end, struct buf *out)
{
	if (end != SHOWN_END_NONE)
		buf_addf(out,
			 " %s was given the file's %s line ends (\"line_ends\": \"given\" keeps "
			 "its own).",
			 name, end == SHOWN_END_CRLF ? "CRLF" : "LF");
}

void shown_add_ends(const struct shown_ends *ends, struct buf *out)
{
	if (ends->crlf == 0)
		buf_adds(out, "LF");
	else if (ends->lf == 0)
		buf_adds(out, "CRLF");
	else
		buf_addf(out, "mixed (%zu CRLF, %zu LF)", ends->crlf, ends->lf);
}

static bool is_plain(char c)
{
	unsigned char byte = (unsigned char)c;

	return (byte >= 0x20 && byte < 0x7f) || byte == '\t';
}

/* Past whole vectors of plain bytes, which most lines are. */
static size_t skip_plain(struct str text, size_t at)
{
	while (text.size - at >= BYTE_VECTOR) {
		byte_vector bytes = byte_vector_load(text.data + at);
		byte_vector other =
			(byte_vector)(bytes < 0x20) & (byte_vector)(bytes != '\t');

		if (byte_vector_first(other | (byte_vector)(bytes >= 0x7f)) < BYTE_VECTOR)
			break;
		at += BYTE_VECTOR;
	}
	return at;
}

static void add_visible(struct str text, bool spaces, struct buf *out)
{
	size_t at = 0;

	while (at < text.size) {
		size_t from = at;
		size_t length;

		if (!spaces)
			at = skip_plain(text, at);
		while (at < text.size && is_plain(text.data[at]) &&
		       !(spaces && (text.data[at] == '\t' || text.data[at] == ' ')))
			at++;
		buf_add(out, text.data + from, at - from);
		if (at == text.size)
			break;
		length = text_utf8_length(str_part(text, at, 4));
		if (spaces && text.data[at] == '\t') {
			buf_adds(out, "→");
			at++;
		} else if (spaces && text.data[at] == ' ') {
			buf_adds(out, "·");
			at++;
		} else if (length > 1) {
			buf_add(out, text.data + at, length);
			at += length;
		} else {
			buf_addf(out, "\\x%02X", (unsigned)(unsigned char)text.data[at]);
			at++;
		}
	}
}

void shown_add(struct str text, struct buf *out)
{
	add_visible(text, false, out);
}

void shown_add_spaces(struct str text, struct buf *out)
{
	add_visible(text, true, out);
}

/* "`sed -n 3p PATH | PROGRAM…", or "`PROGRAM… PATH" of each line. */
static void add_line_call(const char *path, uint64_t number, const char *program,
			  struct buf *out)
{
	struct buf word;

	buf_init(&word, 4 * PATH_MAX);
	shell_token_add_word(path, &word);
	(void)buf_adds(out, "`");
	if (number > 0) {
		(void)buf_addf(out, "sed -n %" PRIu64 "p ", number);
		shown_add(buf_str(&word), out);
		(void)buf_addf(out, " | %s`", program);
	} else {
		(void)buf_addf(out, "%s ", program);
		shown_add(buf_str(&word), out);
		(void)buf_adds(out, "`");
	}
	buf_fini(&word);
}

void shown_add_line_calls(const char *path, uint64_t number, uint64_t shown, bool has_end,
			  struct buf *out)
{
	char cut[64];

	/* As much as an answer shows of one line. */
	(void)snprintf(cut, sizeof(cut), "cut -c%" PRIu64 "-%" PRIu64, shown + 1,
		       shown + SHOWN_LONG_LINE);
	(void)buf_adds(out, "in bash ");
	add_line_call(path, number, cut, out);
	(void)buf_adds(out, " shows more of it");
	if (!has_end)
		return;
	(void)buf_adds(out, ", ");
	add_line_call(path, number, "tail -c " SHOWN_LONG_LINE_TEXT, out);
	(void)buf_adds(out, " its end");
}

static unsigned utf16_unit(struct str text, size_t at, bool big)
{
	unsigned first = (unsigned char)text.data[at];
	unsigned second = (unsigned char)text.data[at + 1];

	return big ? first << 8 | second : second << 8 | first;
}

static void add_utf8(unsigned code, struct buf *out)
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

void shown_from_utf16(struct str text, bool big, struct buf *out)
{
	for (size_t at = 0; at + 1 < text.size; at += 2) {
		unsigned unit = utf16_unit(text, at, big);

		if (unit >= 0xd800 && unit < 0xdc00 && at + 3 < text.size) {
			unsigned low = utf16_unit(text, at + 2, big);

			if (low >= 0xdc00 && low < 0xe000) {
				add_utf8(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00),
					 out);
				at += 2;
				continue;
			}
		}
		add_utf8(unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit, out);
	}
}

void shown_claim_unwritable(struct call *call, struct tool_result *result, const char *path)
{
	struct file file;
	struct buf above;
	struct err err;
	bool found;

	file_init(&file);
	buf_init(&above, PATH_MAX);
	found = files_reach(call->files, path, FILES_ANY, &file, &err) ||
		(buf_addf(&above, "%s/..", path) &&
		 files_reach(call->files, above.data, FILES_FOLDER, &file, &err));
	if (found)
		claims_add_unwritable(file.path.data, result);
	buf_fini(&above);
	file_fini(&file);
}

enum result_status shown_fail(struct call *call, struct tool_result *result,
			      const char *path, const struct err *err)
{
	enum result_status status = tool_fail(result, "%s", err->text);

	if (err->code == ENOENT)
		files_add_near(call->files, path, &result->text);
	else if (err->code == EACCES || err->code == EPERM)
		buf_adds(&result->text, " Its permissions close it to this agent; only the "
					"user can change that.");
	else if (err->code == EROFS)
		shown_claim_unwritable(call, result, path);
	return status;
}

void shown_place_path(const struct place *place, struct buf *out)
{
	buf_adds(out, place->folder.data);
	if (!str_ends(buf_str(out), STR("/")))
		buf_addc(out, '/');
	buf_adds(out, place->name);
}
