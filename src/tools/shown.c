/* shown: shows files and outputs to a model, and reports changes of files. */

#include "tools/shown.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/diff.h"
#include "base/text/shell.h"
#include "base/text/text.h"
#include "files/files.h"
#include "tool/call.h"
#include "tool/denial.h"
#include "tools/search/grep.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Kinds of files that are no text, by their beginning. */
static const struct {
	size_t at;
	struct str bytes;
	const char *name;
} binary_kinds[] = {
	{0, {"\x89PNG\r\n\x1a\n", 8}, "PNG"},
	{0, {"\xff\xd8\xff", 3}, "JPEG"},
	{0, {"GIF8", 4}, "GIF"},
	{8, {"WEBP", 4}, "WebP"},
	{0, {"%PDF-", 5}, "PDF"},
	{0,
	 {"\x7f"
	  "ELF",
	  4},
	 "ELF"},
	{0, {"PK\x03\x04", 4}, "ZIP"},
	{0, {"\x1f\x8b", 2}, "gzip"},
	{0, {"BZh", 3}, "bzip2"},
	{0,
	 {"\xfd"
	  "7zXZ",
	  5},
	 "xz"},
	{0, {"\x28\xb5\x2f\xfd", 4}, "Zstandard"},
	{0, {"7z\xbc\xaf", 4}, "7z"},
	{0, {"SQLite format 3", 15}, "SQLite"},
	{0, {"\0asm", 4}, "WebAssembly"},
	{0, {"\xca\xfe\xba\xbe", 4}, "a Java class"},
	{0, {"!<arch>\n", 8}, "an archive of ar"},
	{257, {"ustar", 5}, "tar"},
	{0, {"OggS", 4}, "Ogg"},
	{0, {"ID3", 3}, "MP3"},
	{0, {"RIFF", 4}, "RIFF"},
	{4, {"ftyp", 4}, "MP4"},
	{0, {"PACK", 4}, "a pack of git"},
	{0, {"DIRC", 4}, "an index of git"},
	{0, {"\xff\xfe", 2}, "UTF-16"},
	{0, {"\xfe\xff", 2}, "UTF-16"},
};

static bool is_plain_part(struct str part)
{
	for (size_t i = 0; i < part.size; i++) {
		unsigned char byte = (unsigned char)part.data[i];

		if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') ||
		    byte == 0x7f)
			return false;
	}
	return text_is_utf8(part);
}

/*
 * Is START text, except for NUL bytes between its parts, as `find -print0` writes them?
 */
static bool is_parts(struct str start)
{
	struct str rest = str_part(start, 0, SHOWN_SAMPLE);
	size_t parts = 0, end;

	/* The last part may be cut in the middle of a character. */
	while ((end = str_find(rest, STR("\0"), 0)) != (size_t)-1) {
		if (end == 0 || !is_plain_part(str_part(rest, 0, end)))
			return false;
		rest = str_part(rest, end + 1, rest.size);
		parts++;
	}
	return parts > 0;
}

const char *shown_binary_kind(struct str start)
{
	for (size_t i = 0; i < sizeof(binary_kinds) / sizeof(binary_kinds[0]); i++) {
		if (str_starts(str_part(start, binary_kinds[i].at, start.size),
			       binary_kinds[i].bytes))
			return binary_kinds[i].name;
	}
	return is_parts(start) ? "text in parts that end with NUL" : NULL;
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
	/* the beginnings of its lines in the order of bytes; NULL: not needed yet */
	struct str *begins;
	size_t begin_count;
	struct buf *out;
	size_t number; /* of the next line */
	size_t told, count;
};

static int compare_begins(const void *left, const void *right)
{
	const struct str *a = left, *b = right;
	const size_t size = a->size < b->size ? a->size : b->size;
	const int order = size > 0 ? memcmp(a->data, b->data, size) : 0;

	return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

/* Sort the beginnings of the shown lines, so that no line searches the whole text. */
static void sort_begins(struct gather *gather)
{
	const struct str shown = gather->shown;
	size_t at = 0;

	gather->begins =
		memory_array(text_count_line_ends(shown) + 1, sizeof(*gather->begins));
	for (size_t end; (end = str_find(shown, STR("\n"), at)) != (size_t)-1; at = end + 1)
		gather->begins[gather->begin_count++] =
			str_part(shown, at, FAILING_LINE_BYTES);
	gather->begins[gather->begin_count++] = str_part(shown, at, FAILING_LINE_BYTES);
	qsort(gather->begins, gather->begin_count, sizeof(*gather->begins), compare_begins);
}

/* Does LINE, in the form in which it would be told, begin a line that is shown? */
static bool is_shown(struct gather *gather, struct str line)
{
	size_t low = 0, high;

	if (gather->begins == NULL)
		sort_begins(gather);
	high = gather->begin_count;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare_begins(&gather->begins[middle], &line) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < gather->begin_count && str_starts(gather->begins[low], line);
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
	if (!is_shown(gather, told)) {
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
	free(gather.begins);
	return gather.count;
}

/*
 * The lines that begin a part of a file. A language is a row: words that begin a
 * definition, words that may stand before them, and the forms without such a word. Each
 * line is judged by itself: a call over several lines may look like a definition, and a
 * definition in an unusual form may be missed. Neither does harm in a map of a file.
 */

enum {
	/* places that are kept; when there are more, some are dropped */
	PLACES_MAX = 1024,
	/* bytes shown of one place, whose name stands near its beginning */
	PLACE_TEXT_MAX = 96,
	LINE_LOOKED_AT = 400, /* bytes of a line; a longer line is data or generated */
	INDENT_MAX = 40,
	TAB_WIDTH = 8,
	/* words before the word that begins a definition: templates and modifiers */
	WORDS_MAX = 12,
};

/* Forms of definitions without a word of their own. */
enum form {
	FORM_C = 1,           /* "static int f(int a)" without indentation */
	FORM_METHOD = 2,      /* "public int f(int a) {", behind one of the modifiers */
	FORM_BODY = 4,        /* "name(a, b) {", indented */
	FORM_ARROW = 8,       /* "const f = (a) => …" without indentation */
	FORM_SHELL = 16,      /* "name() {" */
	FORM_BLOCK = 32,      /* anything that ends with "{", without indentation */
	FORM_LABEL = 64,      /* "name:" and "name: other", without indentation */
	FORM_SECTION = 128,   /* "[name]" */
	FORM_HASHES = 256,    /* "## heading" */
	FORM_RULE = 512,      /* a line above "====" or "----" */
	FORM_PAREN = 1024,    /* "(def…" without indentation */
	FORM_COMMAND = 2048,  /* "\section{…}", ".SH name" */
	FORM_TYPE = 4096,     /* "name :: type" without indentation */
	FORM_ASSIGNED = 8192, /* "name <- function(a)" */
};

struct language {
	const char *types; /* names of file_types, blank-separated */
	const char *words;
	const char *modifiers;
	unsigned forms; /* of enum form */
};

static const struct language languages[] = {
	{"c cpp objc",
	 "struct enum union class namespace template @interface @implementation",
	 "typedef static extern export inline", FORM_C},
	{"java cs kotlin scala swift dart gradle",
	 "class interface enum record struct namespace trait object protocol extension fun func "
	 "def actor",
	 "public private protected internal static final abstract sealed override open async "
	 "virtual partial data inline suspend case implicit lazy mutating fileprivate readonly "
	 "unsafe synchronized native default external @Override @objc",
	 FORM_METHOD},
	{"php", "class interface trait enum function namespace",
	 "public private protected static final abstract readonly", 0},
	{"js ts vue svelte", "class interface enum namespace module function type",
	 "export default async abstract declare public private protected static",
	 FORM_BODY | FORM_ARROW},
	{"go", "func type", "", 0},
	{"rust", "fn struct enum trait impl mod union type macro_rules!",
	 "pub unsafe async const extern default pub(crate) pub(super) \"C\"", 0},
	{"zig", "fn test", "pub export inline extern", 0},
	{"py", "def class", "async", 0},
	{"rb", "def class module", "private protected", 0},
	{"elixir", "def defp defmodule defmacro defprotocol defimpl", "", 0},
	{"lua", "function", "local", 0},
	{"perl", "sub package", "", 0},
	{"julia", "function struct macro module", "mutable", 0},
	{"r", "", "", FORM_ASSIGNED},
	{"sh fish", "function", "", FORM_SHELL},
	{"ps", "function class filter Function", "", 0},
	{"haskell", "data class instance module type newtype", "", FORM_TYPE},
	{"ocaml", "let module type class and", "", 0},
	{"erlang", "-module -record -export", "", FORM_C},
	{"clojure lisp", "", "", FORM_PAREN},
	{"sql", "create CREATE alter ALTER", "", 0},
	{"proto graphql", "message service enum rpc type interface input union scalar",
	 "extend", 0},
	{"tf css scss nix", "", "", FORM_BLOCK},
	{"make", "define", "", FORM_LABEL},
	{"asm", "", "", FORM_LABEL},
	{"cmake", "function macro function( macro(", "", 0},
	{"vim", "function function! def", "", 0},
	{"docker", "FROM from", "", 0},
	{"ini toml", "", "", FORM_SECTION},
	{"md", "", "", FORM_HASHES | FORM_RULE},
	{"rst", "", "", FORM_RULE},
	{"tex", "", "", FORM_COMMAND},
	{"html", "<h1 <h2 <h3 <h4 <section <article <main <script <style", "", 0},
	{"diff", "diff Index:", "", 0},
};

enum { LANGUAGES = sizeof(languages) / sizeof(languages[0]) };

struct outline_place {
	size_t number;
	unsigned indent;
	char *text;
};

struct outline {
	const struct language *language;
	bool first[UCHAR_MAX + 1]; /* bytes with which a word or a modifier begins */
	struct outline_place *places;
	size_t count;
	size_t total;
	/* the line before, in a language with rules under headings; or NULL */
	char *before;
	bool fenced; /* in a code block */
};

/* Finds the language of a file. */

static const struct language *language_of_type(const char *name)
{
	for (size_t i = 0; i < LANGUAGES; i++) {
		if (str_among(languages[i].types, str_of(name)))
			return &languages[i];
	}
	return NULL;
}

static const struct language *language_of_name(struct str name)
{
	for (size_t i = 0; i < LANGUAGES; i++) {
		const char *at = languages[i].types;
		struct str rest = str_of(at), word;

		while (str_next_word(&rest, &word)) {
			char type[16];
			const struct file_type *found;

			(void)memcpy(type, word.data, word.size);
			type[word.size] = '\0';
			found = file_type_find(type);
			if (found != NULL && file_type_fits(found, name))
				return &languages[i];
		}
	}
	return NULL;
}

/* The language of a first line like "#!/usr/bin/env python3". */
static const struct language *language_of_start(struct str start)
{
	static const struct {
		const char *program, *type;
	} programs[] = {
		{"python", "py"}, {"bash", "sh"}, {"perl", "perl"}, {"ruby", "rb"},
		{"node", "js"},   {"/sh", "sh"},  {"php", "php"},   {"lua", "lua"},
	};
	struct str line;

	if (!str_starts(start, STR("#!")) || !str_next_line(&start, &line))
		return NULL;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (str_find(line, str_of(programs[i].program), 0) != (size_t)-1)
			return language_of_type(programs[i].type);
	}
	return NULL;
}

static void note_first(struct outline *outline, const char *words)
{
	struct str rest = str_of(words), word;

	while (str_next_word(&rest, &word))
		outline->first[(unsigned char)word.data[0]] = true;
}

struct outline *outline_new(const char *name, struct str start)
{
	const char *slash = strrchr(name, '/');
	const struct language *language =
		language_of_name(str_of(slash != NULL ? slash + 1 : name));
	struct outline *outline;

	if (language == NULL)
		language = language_of_start(start);
	if (language == NULL)
		return NULL;
	outline = memory_alloc(sizeof(*outline));
	outline->language = language;
	note_first(outline, language->words);
	note_first(outline, language->modifiers);
	return outline;
}

void outline_free(struct outline *outline)
{
	if (outline == NULL)
		return;
	for (size_t i = 0; i < outline->count; i++)
		free(outline->places[i].text);
	free(outline->places);
	free(outline->before);
	free(outline);
}

/* The functions below recognise a line that begins a part of the file. */

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' ||
	       (unsigned char)c >= 0x80;
}

static bool has(struct str line, const char *what)
{
	return str_find(line, str_of(what), 0) != (size_t)-1;
}

static bool ends_with(struct str line, char last)
{
	return line.size > 0 && line.data[line.size - 1] == last;
}

/* Does LINE begin with one of the language's words, behind any of its modifiers? */
static bool begins_with_word(const struct language *language, struct str line)
{
	struct str rest = line, word;

	for (int i = 0; i < WORDS_MAX && str_next_word(&rest, &word); i++) {
		size_t open = str_find(word, STR("("), 0);

		if (str_among(language->words, word))
			return rest.size > 0;
		/* As in "function(" of cmake or "impl<T>" of Rust. */
		if (open < word.size &&
		    str_among(language->words, str_part(word, 0, open + 1)))
			return true;
		open = str_find(word, STR("<"), 0);
		if (open > 0 && open < word.size &&
		    str_among(language->words, str_part(word, 0, open)))
			return true;
		if (!str_among(language->modifiers, word))
			return false;
	}
	return false;
}

/* Does the first word begin a statement? */
static bool is_statement(struct str line)
{
	static const char statements[] =
		"if else for while do switch case return goto sizeof catch try throw new delete "
		"assert await with until unless elif foreach using import from super";
	size_t size = 0;

	while (size < line.size && is_name(line.data[size]))
		size++;
	return str_among(statements, str_part(line, 0, size));
}

static bool is_c_function(struct str line)
{
	const size_t open = str_find(line, STR("("), 0);

	if (line.size == 0 || !is_name(line.data[0]) ||
	    isdigit((unsigned char)line.data[0]) || open == (size_t)-1 || open == 0 ||
	    ends_with(line, ';') || is_statement(line))
		return false;
	return is_name(line.data[open - 1]) && !has(str_part(line, 0, open), "=");
}

static bool is_method(const struct language *language, struct str line)
{
	struct str rest = line, word;

	return str_next_word(&rest, &word) && str_among(language->modifiers, word) &&
	       has(line, "(") && !ends_with(line, ';') && !has(line, " = ");
}

/* Is LINE like "name(a) {", "async name() {" or "get name() {"? */
static bool is_body(struct str line)
{
	const size_t open = str_find(line, STR("("), 0);

	return ends_with(line, '{') && open != (size_t)-1 && open > 0 &&
	       is_name(line.data[open - 1]) && has(line, ")") && !is_statement(line) &&
	       !has(str_part(line, 0, open), ".") && !has(str_part(line, 0, open), "=");
}

static bool is_arrow(struct str line)
{
	struct str rest = line, word;

	if (!str_next_word(&rest, &word))
		return false;
	if (str_is(word, "export") && !str_next_word(&rest, &word))
		return false;
	return str_among("const let var", word) && has(rest, "=") &&
	       (has(rest, "=>") || has(rest, "function"));
}

static bool is_shell_function(struct str line)
{
	const size_t open = str_find(line, STR("()"), 0);
	size_t at = 0;

	while (at < line.size && (is_name(line.data[at]) || line.data[at] == '-'))
		at++;
	return at > 0 && (open == at || open == at + 1);
}

static bool is_label(struct str line)
{
	const size_t colon = str_find(line, STR(":"), 0);

	return line.size > 0 && (is_name(line.data[0]) || line.data[0] == '%') &&
	       colon > 0 && colon < line.size &&
	       !str_starts(str_part(line, colon, 2), STR(":=")) &&
	       !has(str_part(line, 0, colon), "=");
}

static bool is_hashes(struct str line)
{
	size_t at = 0;

	while (at < line.size && line.data[at] == '#')
		at++;
	return at > 0 && at <= 6 && at < line.size && line.data[at] == ' ';
}

static bool is_command(struct str line)
{
	static const char *const commands[] = {"\\part", "\\chapter", "\\section",
					       "\\subsection", "\\subsubsection"};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		struct str command = str_of(commands[i]);

		if (str_starts(line, command) && line.size > command.size &&
		    strchr("{*[", line.data[command.size]) != NULL)
			return true;
	}
	return false;
}

static bool is_type(struct str line)
{
	return line.size > 0 && islower((unsigned char)line.data[0]) && has(line, " :: ");
}

static bool begins_part(const struct outline *outline, struct str line, unsigned indent)
{
	const struct language *language = outline->language;
	const unsigned forms = language->forms;
	const bool ends_body = ends_with(line, '{');

	/* In C an indented type belongs to a parameter or a variable. */
	if ((forms & FORM_C) != 0 && indent > 0 && (!ends_body || has(line, "=")))
		return false;
	/* A declaration is not a definition. */
	if (outline->first[(unsigned char)line.data[0]] &&
	    !((forms & (FORM_C | FORM_METHOD)) != 0 && ends_with(line, ';')) &&
	    begins_with_word(language, line))
		return true;
	if (indent > 0)
		return ((forms & FORM_METHOD) != 0 && is_method(language, line)) ||
		       ((forms & FORM_BODY) != 0 && is_body(line));
	return ((forms & FORM_C) != 0 && is_c_function(line)) ||
	       ((forms & FORM_METHOD) != 0 && is_method(language, line)) ||
	       ((forms & FORM_ARROW) != 0 && is_arrow(line)) ||
	       ((forms & FORM_SHELL) != 0 && is_shell_function(line)) ||
	       ((forms & FORM_BLOCK) != 0 && ends_body) ||
	       ((forms & FORM_LABEL) != 0 && is_label(line)) ||
	       ((forms & FORM_SECTION) != 0 && str_starts(line, STR("[")) &&
		ends_with(line, ']')) ||
	       ((forms & FORM_HASHES) != 0 && is_hashes(line)) ||
	       ((forms & FORM_PAREN) != 0 && str_starts(line, STR("(def"))) ||
	       ((forms & FORM_PAREN) != 0 && str_starts(line, STR("(ns "))) ||
	       ((forms & FORM_COMMAND) != 0 && is_command(line)) ||
	       ((forms & FORM_TYPE) != 0 && is_type(line)) ||
	       ((forms & FORM_ASSIGNED) != 0 && has(line, "function(") &&
		(has(line, "<-") || has(line, "=")));
}

/* Finds the places that an outline shows. */

/*
 * Keep at most MOST places: all of the outer levels, and, of the first level that has too
 * many, some from every part of the file.
 */
static void thin(struct outline *outline, size_t most)
{
	size_t levels[INDENT_MAX + 1] = {0};
	size_t level = 0, left = most, kept = 0, met = 0;

	if (outline->count <= most)
		return;
	for (size_t i = 0; i < outline->count; i++)
		levels[outline->places[i].indent]++;
	for (; level < INDENT_MAX && levels[level] <= left; level++)
		left -= levels[level];
	for (size_t i = 0; i < outline->count; i++) {
		struct outline_place *place = &outline->places[i];
		bool stays = place->indent < level;

		if (place->indent == level) {
			stays = met * left / levels[level] !=
				(met + 1) * left / levels[level];
			met++;
		}
		if (stays) {
			struct outline_place first = outline->places[kept];

			outline->places[kept++] = *place;
			*place = first;
		}
	}
	while (outline->count > kept)
		free(outline->places[--outline->count].text);
}

static void add_place(struct outline *outline, size_t number, unsigned indent,
		      struct str line)
{
	struct outline_place *place;
	size_t size = line.size < PLACE_TEXT_MAX
			      ? line.size
			      : text_character_border(line, PLACE_TEXT_MAX);

	outline->total++;
	if (outline->count == PLACES_MAX)
		thin(outline, PLACES_MAX / 2);
	outline->places =
		memory_more(outline->places, outline->count, sizeof(*outline->places));
	place = &outline->places[outline->count++];
	*place = (struct outline_place){.number = number,
					.indent = indent < INDENT_MAX ? indent : INDENT_MAX,
					.text = memory_copy_str(str_part(line, 0, size))};
}

/* Is LINE "====" or "----", as long as the heading above it? */
static bool is_rule(struct str line, const char *before)
{
	if (before == NULL || line.size < 3 || strchr("=-~^\"*+#", line.data[0]) == NULL)
		return false;
	for (size_t i = 1; i < line.size; i++) {
		if (line.data[i] != line.data[0])
			return false;
	}
	return line.size + 2 >= strlen(before) && before[0] != '\0' && is_name(before[0]);
}

static void keep_before(struct outline *outline, struct str line)
{
	free(outline->before);
	outline->before = line.size < PLACE_TEXT_MAX ? memory_copy_str(line) : NULL;
}

void outline_add(struct outline *outline, size_t number, struct str line)
{
	unsigned indent = 0;
	size_t at = 0;
	struct str words;

	if (outline == NULL || line.size > LINE_LOOKED_AT)
		return;
	for (; at < line.size && (line.data[at] == ' ' || line.data[at] == '\t'); at++)
		indent += line.data[at] == '\t' ? TAB_WIDTH : 1;
	words = str_trim(line);
	if ((outline->language->forms & FORM_HASHES) != 0 && str_starts(words, STR("```"))) {
		outline->fenced = !outline->fenced;
		return;
	}
	if (outline->fenced)
		return;
	if ((outline->language->forms & FORM_RULE) != 0) {
		if (number > 1 && is_rule(words, outline->before))
			add_place(outline, number - 1, 0, str_of(outline->before));
		keep_before(outline, str_trim(line));
	}
	if (words.size > 0 && begins_part(outline, words, indent))
		add_place(outline, number, indent, str_part(line, 0, at + words.size));
}

size_t outline_count(const struct outline *outline)
{
	return outline != NULL ? outline->total : 0;
}

size_t outline_print(struct outline *outline, size_t most, size_t bytes, struct buf *out)
{
	size_t before;

	if (outline == NULL)
		return 0;
	before = out->size;
	for (;; most = outline->count * 3 / 4) {
		thin(outline, most);
		for (size_t i = 0; i < outline->count; i++) {
			buf_addf(out, "%zu\t", outline->places[i].number);
			shown_add(str_of(outline->places[i].text), out);
			buf_addc(out, '\n');
		}
		if (out->size - before <= bytes || outline->count == 0)
			return outline->count;
		buf_truncate(out, before);
	}
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
		(void)tool_fail(
			written->result,
			"expected_hash must be %d to %d lower-case hex digits of the hash "
			"that read_file gives in its details, or of the file's SHA-256.",
			HASH_SHOWN, HASH_HEX);
		return false;
	}
	if (hash_matches(expected, written->mark))
		return true;
	hash_text(buf_str(&written->old), hash);
	if (hash_matches(expected, hash))
		return true;
	(void)tool_fail(written->result,
			"%s does not have the hash %.16s; its hash is now %.*s. Read it again: it "
			"holds something else than you think. Nothing was written.",
			written->path, expected, HASH_SHOWN, hash);
	return false;
}

enum written_known written_known(struct written *written, char hash[HASH_HEX + 1])
{
	const char *seen = call_seen(written->call, written->real.data);

	if (call_text(written->call, "expected_hash"))
		return written_check_hash(written) ? KNOWN_NOW : KNOWN_REFUSED;
	if (seen && !written->changed_since_read)
		return KNOWN_NOW;
	hash_text(buf_str(&written->old), hash);
	return seen ? KNOWN_BEFORE : KNOWN_NOT;
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
	hash_mark(content, written->new_hash);
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
