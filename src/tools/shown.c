/* shown: shows files to a model, and reports changes of files. */

#include "tools/shown.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/text/diff.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tool/call.h"
#include "tool/denial.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

	/*
	 * Most files have no CR, and counting by vectors then takes a tenth of the time.
	 */
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

/* Skip whole vectors of plain bytes, of which most lines consist. */
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

/* Append "`sed -n 3p PATH | PROGRAM…", or "`PROGRAM… PATH" for every line. */
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

	/* As many bytes as an answer shows of one line. */
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

/*
 * PATH may not be written. Add a claim (tool/denial.h) with its real path, or with that
 * of its folder, since a link may lead there from a place where writing is allowed.
 */
static void shown_claim_unwritable(struct call *call, struct tool_result *result,
				   const char *path)
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
		denial_claims_add_unwritable(file.path.data, result);
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

/* The words of failures, and the search for lines that begin with them. */

enum {
	PIECE = 64 << 10,            /* of the file at a time */
	FAILING_LOOKED_AT = 4 << 10, /* bytes of a line; no place before the word is longer */
	ESCAPE = 0x1b,
};

/*
 * Words with which such a line begins. The whole word must fit: "errors" is none of them.
 */
static const char *const failure_words[] = {
	"error",
	"Error",
	"ERROR",
	"fatal",
	"Fatal",
	"FATAL",
	"fail",
	"Fail",
	"FAIL",
	"failed",
	"Failed",
	"FAILED",
	"FAILURE",
	"FAILURES",
	"failure",
	"Failure",
	"not ok",
	"panic",
	"Traceback",
	"Assertion",
	"assertion",
	"Exception",
	"Caused by",
	"Uncaught",
	"Unhandled",
	"Segmentation fault",
	"internal compiler error",
	"syntax error",
	"fatal error",
	"parse error",
	"PHP Fatal error",
	"PHP Parse error",
	"Parse error",
	"CMake Error",
	"BUILD FAILED",
	"undefined reference",
	"--- FAIL",
	"[ERROR]",
	"[FAIL]",
	"[FAILED]",
	"npm ERR!",
	"npm error",
	"ninja: build stopped",
};

/* Marks with which such a line begins, with any text behind them. */
static const char *const failure_marks[] = {
	"[  FAILED  ]", "[  ERROR   ]", "E   ", "✗", "✘", "✕", "✖", "×", "❌", "● "};

/* Skip blanks and colours before the first word. */
static struct str skip_colours(struct str line)
{
	size_t at = 0;

	while (at < line.size) {
		if (line.data[at] == ' ' || line.data[at] == '\t' || line.data[at] == '\r') {
			at++;
		} else if (line.data[at] == ESCAPE && at + 1 < line.size &&
			   line.data[at + 1] == '[') {
			at += 2;
			while (at < line.size && !isalpha((unsigned char)line.data[at]))
				at++;
			at += at < line.size;
		} else {
			break;
		}
	}
	return str_part(line, at, line.size);
}

static bool begins_with_failure(struct str line)
{
	for (size_t i = 0; i < sizeof(failure_words) / sizeof(failure_words[0]); i++) {
		struct str word = str_of(failure_words[i]);

		if (str_starts(line, word) &&
		    (line.size == word.size ||
		     !(isalnum((unsigned char)line.data[word.size]) ||
		       line.data[word.size] == '_' || line.data[word.size] == '-')))
			return true;
	}
	return false;
}

static bool begins_with_failure_mark(struct str line)
{
	for (size_t i = 0; i < sizeof(failure_marks) / sizeof(failure_marks[0]); i++) {
		if (str_starts(line, str_of(failure_marks[i])))
			return true;
	}
	return false;
}

/*
 * Is WORD the name of an exception: "ValueError: …", "java.lang.IllegalStateException"?
 */
static bool is_exception(struct str word)
{
	if (str_ends(word, STR(":")))
		word.size--;
	for (size_t i = 0; i < word.size; i++) {
		if (!isalnum((unsigned char)word.data[i]) &&
		    strchr("._$", word.data[i]) == NULL)
			return false;
	}
	return str_ends(word, STR("Error")) || str_ends(word, STR("Exception"));
}

/* Is WORD a place: "a.c:12:5:", "a.ts(3,5):", "a.o:(.text+0x5):", "collect2:"? */
static bool is_place(struct str word)
{
	return word.size > 1 && str_ends(word, STR(":"));
}

/*
 * The part of LINE behind a place, or behind the number of a process ("==12==ERROR");
 * empty when LINE has neither.
 */
static struct str behind_place(struct str line)
{
	struct str rest = line, word;

	if (str_starts(line, STR("=="))) {
		size_t end = str_find(line, STR("=="), 2);

		return end == (size_t)-1 ? STR("") : str_part(line, end + 2, line.size);
	}
	if (!str_next_word(&rest, &word) || !is_place(word))
		return STR("");
	return skip_colours(rest);
}

static bool tells_of_failure(struct str line)
{
	struct str rest = line, word;

	if (line.size == 0)
		return false;
	return begins_with_failure(line) || begins_with_failure_mark(line) ||
	       (str_next_word(&rest, &word) && is_exception(word));
}

bool shown_failing_line(struct str line)
{
	struct str rest = skip_colours(str_part(line, 0, FAILING_LOOKED_AT));

	if (rest.size == 0)
		return false;
	if (tells_of_failure(rest))
		return true;
	/* In the lines of make and Rust the word is in the middle. */
	if (str_starts(rest, STR("make")) && str_find(rest, STR(": *** "), 0) != (size_t)-1)
		return true;
	if (str_starts(rest, STR("thread '")) &&
	    str_find(rest, STR("' panicked at "), 0) != (size_t)-1)
		return true;
	return tells_of_failure(behind_place(rest));
}

struct gather {
	struct str shown;
	struct buf *out;
	size_t number; /* of the next line */
	size_t told, count;
};

/* Does LINE, in the form in which it would be shown, begin a line of SHOWN? */
static bool is_shown(struct str shown, struct str line)
{
	for (size_t at = 0; (at = str_find(shown, line, at)) != (size_t)-1; at++) {
		if (at == 0 || shown.data[at - 1] == '\n')
			return true;
	}
	return false;
}

static void gather_line(struct gather *gather, struct str line)
{
	const size_t number = gather->number++;
	struct buf clean;
	struct str told;

	if (!shown_failing_line(line))
		return;
	buf_init(&clean, 4 * FAILING_LOOKED_AT + 1);
	(void)text_clean(str_part(line, 0, FAILING_LOOKED_AT), &clean);
	told = buf_str(&clean);
	if (told.size > FAILING_LINE_BYTES)
		told.size = text_character_border(told, FAILING_LINE_BYTES);
	if (!is_shown(gather->shown, told)) {
		gather->count++;
		if (gather->told < FAILING_SHOWN) {
			gather->told++;
			(void)buf_addf(gather->out, "%zu\t", number);
			(void)buf_addstr(gather->out, told);
			(void)buf_addc(gather->out, '\n');
		}
	}
	buf_fini(&clean);
}

size_t shown_failing_gather(int fd, uint64_t from, size_t number, struct str shown,
			    struct buf *out)
{
	struct gather gather = {.shown = shown, .out = out, .number = number};
	struct buf held;     /* from the beginning of the current line on */
	bool passes = false; /* the rest of a line that was too long is skipped */

	buf_init(&held, 2 * PIECE);
	for (;;) {
		char *at = buf_reserve(&held, PIECE);
		ssize_t got = at != NULL ? pread(fd, at, PIECE, (off_t)from) : 0;
		struct str rest, line;
		const char *end;

		if (got <= 0)
			break;
		from += (uint64_t)got;
		buf_commit(&held, (size_t)got);
		rest = buf_str(&held);
		while ((end = memchr(rest.data, '\n', rest.size)) != NULL) {
			line = str_part(rest, 0, (size_t)(end - rest.data));
			rest = str_part(rest, line.size + 1, rest.size);
			if (passes)
				gather.number++;
			else
				gather_line(&gather, line);
			passes = false;
		}
		if (!passes && rest.size >= PIECE) {
			/*
			 * gather_line counts the line, and so does its end: correct the
			 * number.
			 */
			gather_line(&gather, rest);
			gather.number--;
			passes = true;
		}
		buf_remove(&held, 0, passes ? held.size : held.size - rest.size);
	}
	if (held.size > 0 && !passes)
		gather_line(&gather, buf_str(&held));
	buf_fini(&held);
	return gather.count;
}

/* The guard and the report of the tools that write. */

void written_init(struct written *written, struct call *call, struct tool_result *result)
{
	memset(written, 0, sizeof(*written));
	written->call = call;
	written->result = result;
	written->path = call_text(call, "path");
	place_init(&written->place);
	buf_init(&written->real, PATH_MAX);
	buf_init(&written->old, WRITTEN_FILE_MAX);
}

void written_fini(struct written *written)
{
	place_fini(&written->place);
	buf_fini(&written->real);
	buf_fini(&written->old);
}

bool written_fits(const struct call *call, size_t bytes, struct tool_result *result)
{
	const uint64_t most = call->limits.write_bytes;
	char target[32], now[32];

	if (most == 0 || bytes <= most)
		return true;
	(void)tool_fail(result,
			"%s brings %zu bytes, and this agent may write at most %" PRIu64
			" in one call. Nothing was written.",
			call->tool->name, bytes, most);
	denial_add_limit(result,
			 &(struct denial_limit){.agent = call->agent,
						.key = "write_bytes",
						.target = text_size(bytes, target),
						.advice = "bring it in several calls",
						.now = text_size(most, now)});
	return false;
}

bool written_read_old(struct written *written, struct err *err)
{
	const char *seen;

	buf_clear(&written->old);
	buf_clear(&written->real);
	shown_place_path(&written->place, &written->real);
	if (!place_read(&written->place, WRITTEN_FILE_MAX, &written->old, &written->st, err))
		return false;
	files_mark(buf_str(&written->old), &written->st, written->mark);
	seen = call_seen(written->call, written->real.data);
	written->changed_since_read = seen && strcmp(seen, written->mark) != 0;
	return true;
}

bool written_check_hash(struct written *written)
{
	const char *expected = call_text(written->call, "expected_hash");
	char hash[HASH_HEX + 1];

	if (!expected)
		return true;
	if (!hash_is_valid(expected)) {
		(void)tool_fail(written->result,
				"expected_hash must be %d to %d lower-case hex digits of the file's "
				"SHA-256, as read_file gives it in its details.",
				HASH_SHOWN, HASH_HEX);
		return false;
	}
	hash_text(buf_str(&written->old), hash);
	if (hash_matches(expected, hash))
		return true;
	(void)tool_fail(written->result,
			"%s does not have the hash %.16s; its hash is now %.*s. Read it again: it "
			"holds something else than you think. Nothing was written.",
			written->path, expected, HASH_SHOWN, hash);
	return false;
}

bool written_replace(struct written *written, struct str content, struct err *err)
{
	struct place_change change = {.place = &written->place,
				      .content = content,
				      .expected_mark = written->mark,
				      .expected = buf_str(&written->old)};

	return place_write_set(&change, 1, err);
}

void written_add_path(const struct written *written, struct buf *out)
{
	const char *shown = files_shown(written->call->files, written->real.data);

	shown_add(str_of(shown), out);
	if (strcmp(shown, written->path) != 0 &&
	    strcmp(written->real.data, written->path) != 0) {
		buf_adds(out, " (reached as ");
		shown_add(str_of(written->path), out);
		buf_addc(out, ')');
	}
}

void written_new_mark(const struct written *written, struct str content,
		      char mark[FILES_MARK])
{
	if (written->new_hash[0] && content.size <= FILES_HASHED_MAX)
		memcpy(mark, written->new_hash, sizeof(written->new_hash));
	else
		files_mark(content, written->place.exists ? &written->place.st : NULL, mark);
}

void written_report_into(struct written *written, struct str content,
			 enum written_kind kind, struct value *into)
{
	static const char *const kinds[] = {"", "new file, ", "deleted, "};
	const bool created = kind == WRITTEN_CREATED, removed = kind == WRITTEN_REMOVED;
	struct buf *text = &written->result->text;
	const char *shown = files_shown(written->call->files, written->real.data);
	struct str old = buf_str(&written->old);
	struct diff_counts counts = {0};
	char size[32];
	struct buf diff;
	struct buf names[2];

	buf_init(&diff, WRITTEN_DIFF_MAX);
	buf_init(&names[0], PATH_MAX + 2);
	buf_init(&names[1], PATH_MAX + 2);
	/* A path outside of the workspace begins with a slash already. */
	buf_addf(&names[0], "a/%s", shown + (shown[0] == '/'));
	buf_addf(&names[1], "b/%s", shown + (shown[0] == '/'));
	if (!diff_unified(old, content, created ? NULL : names[0].data,
			  removed ? NULL : names[1].data, DIFF_CONTEXT, &diff, &counts)) {
		value_set_boolean(into, "diff_cut", true);
		diff_count(old, content, &counts);
	}
	buf_addf(text, ": %s+%zu -%zu lines", kinds[kind], counts.added, counts.removed);
	if (!removed) {
		buf_adds(text, "; now ");
		text_add_count(text, text_count_lines(content), "line");
		buf_addf(text, ", %s", text_size(content.size, size));
	}
	buf_addc(text, '.');
	hash_text(content, written->new_hash);
	value_set_text(into, "path", written->real.data);
	value_set_boolean(into, "created", created);
	if (removed)
		value_set_boolean(into, "removed", true);
	value_set_integer(into, "added", (int64_t)counts.added);
	value_set_integer(into, "removed", (int64_t)counts.removed);
	value_set_integer(into, "size", (int64_t)content.size);
	value_set_text(into, "hash", written->new_hash);
	value_set_str(into, "diff", buf_str(&diff));
	buf_fini(&diff);
	buf_fini(&names[0]);
	buf_fini(&names[1]);
}

void written_report(struct written *written, struct str content, bool created)
{
	written_report_into(written, content, created ? WRITTEN_CREATED : WRITTEN_CHANGED,
			    tool_details(written->result));
}

enum result_status written_fail(struct written *written, const struct err *err)
{
	struct buf roots;

	switch (err->code) {
	case EPERM:
		return tool_fail(written->result,
				 "%s Write where this agent may write, or ask the user to add the "
				 "path to its `write` list.",
				 err->text);
	case EROFS:
		buf_init(&roots, FILES_LISTED * 4 * PATH_MAX);
		files_add_writable(written->call->files, &roots);
		(void)tool_fail(written->result,
				"%s It writes only below %s: write there, or ask the user to add "
				"the path to its `write` list.",
				err->text, roots.data);
		buf_fini(&roots);
		shown_claim_unwritable(written->call, written->result, written->path);
		return RESULT_FAILED;
	case FILES_PROTECTED:
		denial_note(written->result,
			    &(struct denial){.kind = DENIAL_FS,
					     .target = written->path,
					     .rule = "protected",
					     .remedy = "run git by a command instead"});
		(void)tool_fail(written->result,
				"%s Use git in bash (git commit, git switch, git reset …); hooks "
				"and configuration are the user's to change.",
				err->text);
		written->result->status = RESULT_DENIED;
		return RESULT_DENIED;
	case FILES_AUTOEXEC:
		denial_note(written->result, &(struct denial){.kind = DENIAL_FS,
							      .target = written->path,
							      .rule = "protected",
							      .remedy = AUTOEXEC_REMEDY});
		(void)tool_fail(written->result,
				"%s Tell the user what it should say; who wants it written here names "
				"it in the `write` list.",
				err->text);
		written->result->status = RESULT_DENIED;
		return RESULT_DENIED;
	case EFBIG:
		return tool_fail(written->result,
				 "%s Use a command (sed, a script) through bash "
				 "for a file of this size.",
				 err->text);
	case EISDIR:
		return tool_fail(written->result, "%s Name a file in it.", err->text);
	case EAGAIN:
		return tool_fail(written->result,
				 "%s Nothing was written; read it again and repeat "
				 "the call.",
				 err->text);
	default:
		return shown_fail(written->call, written->result, written->path, err);
	}
}
