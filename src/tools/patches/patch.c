/*
 * patch: takes away the text around a patch, reads the grammar of Codex and that of
 * unified diffs, chooses between them by the first words of a patch, merges the sections
 * about one file, and applies the hunks of one file to its text.
 */

#include "tools/patches/patch.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/diff.h"
#include "base/text/text.h"
#include "tools/edit.h"

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PATCH_BEGIN "*** Begin Patch"

enum { PATCH_QUOTED = 120 /* bytes of a wrong line in a sentence */ };

/* A text while it is read. */
struct patch_reader {
	struct patch *patch;
	struct str *lines; /* without line ends */
	size_t count, at;
	size_t first; /* the number of lines[0] in the original text */
	size_t hunks;
	struct buf *sentence;
};

/*
 * Set "Line N of the patch: " and the sentence. N belongs to the line INDEX. Always
 * false.
 */
static bool patch_refuse(struct patch_reader *reader, size_t index, const char *format,
			 ...) __attribute__((format(printf, 3, 4)));

static bool patch_refuse(struct patch_reader *reader, size_t index, const char *format, ...)
{
	struct str line = index < reader->count ? reader->lines[index] : STR("");
	struct buf *out = reader->sentence;
	va_list arguments;

	buf_addf(out, "Line %zu of the patch", reader->first + index);
	if (line.size > 0) {
		buf_adds(out, " (`");
		text_add_name(out, str_part(line, 0,
					    text_character_border(line, PATCH_QUOTED)));
		buf_adds(out, line.size > PATCH_QUOTED ? "…`)" : "`)");
	}
	buf_adds(out, ": ");
	va_start(arguments, format);
	buf_addv(out, format, arguments);
	va_end(arguments);
	buf_adds(out, " Nothing was changed.");
	return false;
}

/*
 * Make room for one more item in an array that doubles. The old array stays in the arena.
 */
static void *grown(struct arena *arena, void *old, size_t count, size_t size)
{
	void *made = old;

	if ((count & (count - 1)) == 0) {
		made = arena_alloc(arena, (count ? 2 * count : 1) * size);
		if (count)
			memcpy(made, old, count * size);
	}
	return made;
}

/* NULL: there are too many files, and the sentence is set. */
static struct patch_file *patch_add_file(struct patch_reader *reader, enum patch_kind kind)
{
	struct patch *patch = reader->patch;

	if (patch->file_count == PATCH_FILES_MAX) {
		(void)patch_refuse(reader, reader->at,
				   "a patch may hold %d files; give it in parts.",
				   PATCH_FILES_MAX);
		return NULL;
	}
	patch->files = grown(&patch->arena, patch->files, patch->file_count,
			     sizeof(*patch->files));
	patch->files[patch->file_count] =
		(struct patch_file){.kind = kind, .at = reader->first + reader->at};
	return &patch->files[patch->file_count++];
}

static struct patch_hunk *patch_add_hunk(struct patch_reader *reader, struct patch_file *file)
{
	if (reader->hunks++ == PATCH_HUNKS_MAX) {
		(void)patch_refuse(reader, reader->at,
				   "a patch may hold %d hunks; give it in parts.",
				   PATCH_HUNKS_MAX);
		return NULL;
	}
	file->hunks = grown(&reader->patch->arena, file->hunks, file->hunk_count,
			    sizeof(*file->hunks));
	file->hunks[file->hunk_count] =
		(struct patch_hunk){.at = reader->first + reader->at};
	return &file->hunks[file->hunk_count++];
}

/* The line INDEX from the reader's position on; empty behind the last line. */
static struct str patch_line(const struct patch_reader *reader, size_t index)
{
	return index < reader->count ? reader->lines[index] : STR("");
}

/*
 * Take the number at *AT. When there are no digits and ABSENT, the number is 1 and *AT
 * stays.
 */
static bool take_number(struct str line, size_t *at, size_t *number)
{
	size_t from = *at;

	*number = 0;
	while (*at < line.size && line.data[*at] >= '0' && line.data[*at] <= '9') {
		*number = *number * 10 + (size_t)(line.data[*at] - '0');
		if (++*at - from > 9)
			return false;
	}
	return *at > from;
}

static bool take_range(struct str line, size_t *at, char sign, size_t *start, size_t *count)
{
	if (*at >= line.size || line.data[*at] != sign)
		return false;
	++*at;
	if (!take_number(line, at, start))
		return false;
	*count = 1;
	if (*at >= line.size || line.data[*at] != ',')
		return true;
	++*at;
	return take_number(line, at, count);
}

/* Parse "@@ -3,4 +5,6 @@ …". COUNTS: 4 and 6. */
static bool patch_hunk_head(struct str line, size_t *old_line, size_t counts[2])
{
	size_t at = 3;
	size_t new_line;

	if (!str_starts(line, STR("@@ ")) ||
	    !take_range(line, &at, '-', old_line, &counts[0]) || at >= line.size ||
	    line.data[at] != ' ')
		return false;
	at++;
	return take_range(line, &at, '+', &new_line, &counts[1]) &&
	       str_starts(str_part(line, at, 3), STR(" @@"));
}

/*
 * Does every line end in CR? Then the CRs come from the transport and not from the patch.
 */
static bool all_crlf(const struct patch_reader *reader)
{
	for (size_t i = 0; i < reader->count; i++) {
		if (!str_ends(reader->lines[i], STR("\r")))
			return false;
	}
	return reader->count > 0;
}

static void split(struct str text, struct patch_reader *reader)
{
	size_t count = text_count_lines(text);
	struct str line;

	reader->lines =
		arena_alloc(&reader->patch->arena, (count + 1) * sizeof(*reader->lines));
	while (reader->count < count && str_next_line(&text, &line))
		reader->lines[reader->count++] = line;
	for (size_t i = 0; i < reader->count && all_crlf(reader); i++) {
		for (size_t j = 0; j < reader->count; j++)
			reader->lines[j].size--;
		break;
	}
}

/* Does a patch begin with LINE? */
static bool patch_starts_codex(struct str line)
{
	return str_starts(line, STR(PATCH_BEGIN)) ||
	       str_starts(line, STR("*** Update File: ")) ||
	       str_starts(line, STR("*** Add File: ")) ||
	       str_starts(line, STR("*** Delete File: "));
}

/* Does a patch begin at the line I? */
static bool patch_starts_unified(const struct patch_reader *reader, size_t i)
{
	struct str line = patch_line(reader, i);

	return str_starts(line, STR("diff --git ")) ||
	       (str_starts(line, STR("--- ")) &&
		str_starts(patch_line(reader, i + 1), STR("+++ ")));
}

/*
 * The text that models put around a patch: a code fence; a shell's here-document
 * (`apply_patch <<'EOF'`, `cat <<EOF | apply_patch`), maybe as the text of `bash -lc "…"`;
 * quotes around the patch as apply_patch's argument. A wrapping is taken away only when it
 * leaves no doubt about the patch in it. Further commands of a shell, and a folder that it
 * changes to first, are refused, since this tool would leave them out.
 */

struct wrapping {
	bool fenced;
	struct str word; /* the word that ends a here-document; empty: there is none */
	bool dashed;     /* its lines lose their first tabs: <<- */
	char quote;      /* around the shell's text or the argument; 0: none */
};

static bool is_blank(struct str line)
{
	return str_trim(line).size == 0;
}

static bool is_fence(struct str line)
{
	line = str_trim(line);
	return str_starts(line, STR("```")) || str_starts(line, STR("~~~"));
}

static bool is_quote(char c)
{
	return c == '\'' || c == '"';
}

/* Remove NAME from the front of *LINE, if it is a word there. */
static bool take_word(struct str *line, const char *name)
{
	struct str rest = *line;

	while (rest.size > 0 && (rest.data[0] == ' ' || rest.data[0] == '\t'))
		rest = str_part(rest, 1, rest.size);
	if (!str_starts(rest, str_of(name)))
		return false;
	rest = str_part(rest, strlen(name), rest.size);
	if (rest.size > 0 && !strchr(" \t<|", rest.data[0]))
		return false;
	*line = rest;
	return true;
}

/* Take the name of a program that applies the patch on its input, as this tool does. */
static bool take_patch_word(struct str *line)
{
	struct str rest = *line;

	if (take_word(line, "apply_patch") || take_word(line, "applypatch"))
		return true;
	if (!(take_word(&rest, "git") && take_word(&rest, "apply")) &&
	    !(take_word(&rest, "patch") && take_word(&rest, "-p1")))
		return false;
	*line = rest;
	return true;
}

/* Take `bash -lc "`, and a prompt before it. The text behind it is in those quotes. */
static void take_shell(struct str *line, struct wrapping *wrapping)
{
	struct str rest = *line;

	if (take_word(&rest, "$"))
		*line = rest;
	if (!take_word(&rest, "bash") && !take_word(&rest, "sh") &&
	    !take_word(&rest, "/bin/bash") && !take_word(&rest, "/bin/sh"))
		return;
	if (!take_word(&rest, "-lc") && !take_word(&rest, "-c"))
		return;
	rest = str_trim(rest);
	if (rest.size == 0 || !is_quote(rest.data[0]))
		return;
	wrapping->quote = rest.data[0];
	*line = str_part(rest, 1, rest.size);
}

/* The word behind "<<". *REST becomes the rest of the line. */
static struct str here_word(struct str line, struct wrapping *wrapping, struct str *rest)
{
	size_t from = 0, to;

	wrapping->dashed = str_starts(line, STR("-"));
	from += wrapping->dashed;
	while (from < line.size && strchr(" \t\\'\"", line.data[from]))
		from++;
	to = from;
	while (to < line.size && !strchr(" \t\\'\"|;&<>()", line.data[to]))
		to++;
	*rest = str_part(line, to, line.size);
	while (rest->size > 0 && strchr("\\'\"", rest->data[0]))
		*rest = str_part(*rest, 1, rest->size);
	*rest = str_trim(*rest);
	return str_part(line, from, to - from);
}

static bool refuse_shell(struct patch_reader *reader, size_t index)
{
	return patch_refuse(reader, index,
			    "this tool is no shell: it applies a patch and runs nothing else. Give "
			    "the patch alone, with paths from the workspace, and run the rest "
			    "with bash.");
}

/* Does LINE, with "<<" at HERE, only hand the patch to a program for patches? */
static bool take_here_document(struct str line, size_t here, struct wrapping *wrapping)
{
	struct str rest = str_part(line, 0, here), word;
	struct wrapping found = *wrapping;
	bool piped;

	take_shell(&rest, &found);
	piped = !take_patch_word(&rest);
	if ((piped && !take_word(&rest, "cat")) || !is_blank(rest))
		return false;
	word = here_word(str_part(line, here + 2, line.size), &found, &rest);
	if (piped && (!take_word(&rest, "|") || !take_patch_word(&rest)))
		return false;
	if (word.size == 0 || !is_blank(rest))
		return false;
	*wrapping = found;
	wrapping->word = word;
	return true;
}

/*
 * Look at a line before the patch. False: a shell would do something else, or in another
 * folder, and the sentence is set.
 */
static bool look_at(struct patch_reader *reader, size_t index, struct wrapping *wrapping)
{
	struct str line = reader->lines[index];
	size_t here = str_find(line, STR("<<"), 0);

	if (is_fence(line)) {
		wrapping->fenced = true;
		return true;
	}
	if (here == (size_t)-1 || take_here_document(line, here, wrapping))
		return true;
	/* Without this name the line is text of a person, or a message of git. */
	return str_find(line, STR("apply_patch"), 0) == (size_t)-1 ||
	       refuse_shell(reader, index);
}

/* After `apply_patch "*** Begin Patch` the line begins with the patch. */
static void take_argument(struct str *line, struct wrapping *wrapping)
{
	struct str rest = *line;

	take_shell(&rest, wrapping);
	if (!take_patch_word(&rest))
		return;
	rest = str_trim(rest);
	if (rest.size < 2 || !is_quote(rest.data[0]) ||
	    !str_starts(str_part(rest, 1, rest.size), STR(PATCH_BEGIN)))
		return;
	wrapping->quote = rest.data[0];
	*line = str_part(rest, 1, rest.size);
}

static struct str without_tabs(struct str line)
{
	while (line.size > 0 && line.data[0] == '\t')
		line = str_part(line, 1, line.size);
	return line;
}

/* Does LINE end the here-document? The quote behind its word may be in the line. */
static bool ends_here(const struct wrapping *wrapping, struct str line)
{
	if (!str_starts(line, wrapping->word))
		return false;
	line = str_trim(str_part(line, wrapping->word.size, line.size));
	return line.size == 0 ||
	       (line.size == 1 && wrapping->quote != 0 && line.data[0] == wrapping->quote);
}

/* Is LINE the quote itself, the end of the fence, or empty? */
static bool is_wrapping(const struct wrapping *wrapping, struct str line)
{
	/* A fence inside a hunk has a blank, or another letter, before it. */
	if (line.size > 0 && (line.data[0] == ' ' || line.data[0] == '\t'))
		return is_blank(line);
	return is_blank(line) || (wrapping->fenced && is_fence(line)) ||
	       (str_trim(line).size == 1 && wrapping->quote != 0 &&
		line.data[0] == wrapping->quote);
}

/*
 * Drop the lines behind the patch, from the end on. False: other commands follow the
 * here-document, and the sentence is set.
 */
static bool drop_behind(struct patch_reader *reader, const struct wrapping *wrapping)
{
	size_t end = reader->count;

	for (size_t i = reader->count; wrapping->word.size > 0 && i-- > 0;) {
		if (!ends_here(wrapping, reader->lines[i]))
			continue;
		for (size_t j = i + 1; j < reader->count; j++) {
			if (!is_wrapping(wrapping, reader->lines[j]))
				return refuse_shell(reader, j);
		}
		end = i;
		break;
	}
	/* A line of blanks may be an empty line of a hunk, so it stays. */
	while (end > 0 && (reader->lines[end - 1].size == 0 ||
			   (!is_blank(reader->lines[end - 1]) &&
			    is_wrapping(wrapping, reader->lines[end - 1]))))
		end--;
	reader->count = end;
	return true;
}

/*
 * Is each double quote in the lines written as \"? Otherwise it would end the text in
 * quotes.
 */
static bool is_escaped(const struct patch_reader *reader, size_t start)
{
	for (size_t i = start; i < reader->count; i++) {
		struct str line = reader->lines[i];

		for (size_t j = 0; j < line.size; j++) {
			if (line.data[j] == '\\')
				j++;
			else if (line.data[j] == '"')
				return false;
		}
	}
	return true;
}

/* LINE as the shell reads it in double quotes: \" \\ \$ and \` lose their backslash. */
static struct str unescape(struct patch_reader *reader, struct str line)
{
	char *made = arena_alloc(&reader->patch->arena, line.size + 1);
	size_t size = 0;

	for (size_t i = 0; i < line.size; i++) {
		if (line.data[i] == '\\' && i + 1 < line.size &&
		    strchr("\"\\$`", line.data[i + 1]))
			i++;
		made[size++] = line.data[i];
	}
	return (struct str){made, size};
}

/* LINE as the shell reads it in single quotes: '\'' is one quote. */
static struct str unquote_shell(struct patch_reader *reader, struct str line)
{
	static const struct str written = STR("'\\''");
	char *made = arena_alloc(&reader->patch->arena, line.size + 1);
	size_t size = 0;

	for (size_t i = 0; i < line.size; i++) {
		made[size++] = line.data[i];
		if (str_equal(str_part(line, i, written.size), written))
			i += written.size - 1;
	}
	return (struct str){made, size};
}

/* Change the lines from START on into those that the shell would hand to the program. */
static void undo_shell(struct patch_reader *reader, size_t start,
		       const struct wrapping *wrapping)
{
	bool escaped = wrapping->quote == '"' && is_escaped(reader, start);

	for (size_t i = start; i < reader->count; i++) {
		struct str *line = &reader->lines[i];

		if (escaped && memchr(line->data, '\\', line->size))
			*line = unescape(reader, *line);
		else if (wrapping->quote == '\'' && memchr(line->data, '\'', line->size))
			*line = unquote_shell(reader, *line);
	}
}

/*
 * Drop the argument's last quote behind the last marker. A further command may stand
 * there too.
 */
static bool drop_quote(struct patch_reader *reader, const struct wrapping *wrapping)
{
	const struct str marker = STR("*** End Patch");
	struct str *last = reader->count ? &reader->lines[reader->count - 1] : NULL;

	if (!last || wrapping->quote == 0 || wrapping->word.size > 0 ||
	    !str_starts(*last, marker))
		return true;
	for (size_t i = marker.size; i < last->size; i++) {
		if (!is_quote(last->data[i]))
			return refuse_shell(reader, reader->count - 1);
	}
	last->size = marker.size;
	return true;
}

/*
 * Remove the text around the patch. False: there are other lines that a shell would run,
 * and the sentence refuses them, because this tool runs none.
 */
static bool unwrap(struct patch_reader *reader)
{
	struct wrapping wrapping = {.word = STR("")};
	bool tabless = false; /* once is enough for any number of here-documents */
	size_t start = 0;

	for (; start < reader->count; start++) {
		take_argument(&reader->lines[start], &wrapping);
		if (patch_starts_codex(reader->lines[start]) ||
		    patch_starts_unified(reader, start))
			break;
		if (!look_at(reader, start, &wrapping))
			return false;
		for (size_t i = start + 1;
		     wrapping.dashed && !tabless && i < reader->count; i++)
			reader->lines[i] = without_tabs(reader->lines[i]);
		tabless |= wrapping.dashed;
	}
	/* Without a patch the refusal shows the original lines. */
	if (start == reader->count)
		return true;
	/*
	 * Text before the patch stays, because a misspelt mark of the beginning may be in
	 * it.
	 */
	if (!drop_behind(reader, &wrapping) || !drop_quote(reader, &wrapping))
		return false;
	undo_shell(reader, start, &wrapping);
	return true;
}

/*
 * The grammar that models of one family write by themselves: `*** Begin Patch`, per file
 * `*** Add File: `, `*** Update File: ` (and `*** Move to: `) or `*** Delete File: `,
 * hunks after `@@ LINE BEFORE`, `*** End of File`, `*** End Patch`.
 */

static bool is_section(struct str line)
{
	return str_starts(line, STR("*** ")) && !str_starts(line, STR("*** End of File"));
}

/* The path behind PREFIX in the current line. NULL: the sentence is set. */
static const char *take_path(struct patch_reader *reader, struct str prefix)
{
	struct str line = patch_line(reader, reader->at);
	struct str path = str_trim(str_part(line, prefix.size, line.size));

	if (path.size == 0 || path.size >= PATH_MAX) {
		(void)patch_refuse(reader, reader->at,
				   "a path is missing or too long here.");
		return NULL;
	}
	if (memchr(path.data, '\0', path.size) != NULL) {
		(void)patch_refuse(reader, reader->at, "the path here holds a NUL byte.");
		return NULL;
	}
	if (path.size > 2 && (path.data[0] == '`' || path.data[0] == '"') &&
	    path.data[path.size - 1] == path.data[0])
		path = str_part(path, 1, path.size - 2);
	reader->at++;
	return arena_copy(&reader->patch->arena, path);
}

static struct str keep(struct patch_reader *reader, const struct buf *text)
{
	return (struct str){arena_copy(&reader->patch->arena, buf_str(text)), text->size};
}

static bool read_add(struct patch_reader *reader)
{
	struct patch_file *file = patch_add_file(reader, PATCH_ADD);
	struct patch_hunk *hunk = file ? patch_add_hunk(reader, file) : NULL;
	struct buf content;
	bool ok = true;

	if (!hunk || !(file->path = take_path(reader, STR("*** Add File: "))))
		return false;
	buf_init(&content, PATCH_BYTES_MAX);
	for (; ok && reader->at < reader->count; reader->at++) {
		struct str line = patch_line(reader, reader->at);

		if (is_section(line))
			break;
		ok = line.size == 0 || line.data[0] == '+' ||
		     patch_refuse(reader, reader->at,
				  "each line of a new file begins with +, also an empty one. If "
				  "this line belongs to %s, write it as `+%.*s`.",
				  file->path, (int)(line.size < 60 ? line.size : 60),
				  line.data);
		buf_addstr(&content, str_part(line, 1, line.size));
		buf_addc(&content, '\n');
	}
	hunk->new = keep(reader, &content);
	buf_fini(&content);
	return ok;
}

/* The `@@` lines before a hunk: places in the file, one behind the other. */
static bool read_anchors(struct patch_reader *reader, struct patch_hunk *hunk)
{
	size_t first = reader->at;
	size_t counts[2];

	while (str_starts(patch_line(reader, reader->at), STR("@@")))
		reader->at++;
	hunk->anchors = arena_alloc(&reader->patch->arena,
				    (reader->at - first + 1) * sizeof(*hunk->anchors));
	for (size_t i = first; i < reader->at; i++) {
		struct str line = patch_line(reader, i);
		struct str anchor = str_trim(str_part(line, 2, line.size));

		/* The head of a unified diff has line numbers and needs no anchor. */
		if (patch_hunk_head(line, &hunk->line, counts))
			continue;
		if (str_ends(anchor, STR("@@")))
			anchor = str_trim(str_part(anchor, 0, anchor.size - 2));
		if (anchor.size)
			hunk->anchors[hunk->anchor_count++] = anchor;
	}
	return true;
}

/* Take one line of a hunk. False: the line is none, and the sentence is set. */
static bool take_codex_line(struct patch_reader *reader, struct buf *old, struct buf *new,
			    struct buf *kinds)
{
	struct str line = patch_line(reader, reader->at);
	char kind = line.size ? line.data[0] : ' ';
	struct str rest = str_part(line, 1, line.size);

	if (kind != ' ' && kind != '-' && kind != '+')
		return patch_refuse(
			reader, reader->at,
			"a line of a hunk begins with a blank (it stays), - (it goes) or + (it is "
			"new). If it is a line of the file, put one blank before it.");
	buf_addc(kinds, kind);
	if (kind != '+') {
		buf_addstr(old, rest);
		buf_addc(old, '\n');
	}
	if (kind != '-') {
		buf_addstr(new, rest);
		buf_addc(new, '\n');
	}
	return true;
}

static bool read_codex_hunk(struct patch_reader *reader, struct patch_file *file)
{
	size_t first = reader->at;
	struct patch_hunk *hunk = patch_add_hunk(reader, file);
	struct buf old, new, kinds;
	size_t blanks = 0;
	bool ok = hunk != NULL && read_anchors(reader, hunk);

	buf_init(&old, PATCH_BYTES_MAX);
	buf_init(&new, PATCH_BYTES_MAX);
	buf_init(&kinds, PATCH_BYTES_MAX);
	while (ok && reader->at < reader->count) {
		struct str line = patch_line(reader, reader->at);

		if (str_starts(line, STR("*** End of File"))) {
			hunk->at_end = true;
			reader->at++;
			break;
		}
		if (is_section(line) || str_starts(line, STR("@@")))
			break;
		blanks = line.size == 0 ? blanks + 1 : 0;
		ok = take_codex_line(reader, &old, &new, &kinds);
		reader->at++;
	}
	/* Empty lines before the next head come from the writer, not from the file. */
	if (ok && blanks) {
		buf_truncate(&old, old.size - blanks);
		buf_truncate(&new, new.size - blanks);
		buf_truncate(&kinds, kinds.size - blanks);
	}
	if (ok && old.size == 0 && new.size == 0)
		ok = patch_refuse(reader, first, "this hunk has no lines.");
	if (ok) {
		hunk->old = keep(reader, &old);
		hunk->new = keep(reader, &new);
		hunk->kinds = keep(reader, &kinds);
	}
	buf_fini(&kinds);
	buf_fini(&old);
	buf_fini(&new);
	return ok;
}

static bool read_update(struct patch_reader *reader)
{
	struct patch_file *file = patch_add_file(reader, PATCH_UPDATE);
	size_t first = reader->at;

	if (!file || !(file->path = take_path(reader, STR("*** Update File: "))))
		return false;
	if (str_starts(patch_line(reader, reader->at), STR("*** Move to: ")) &&
	    !(file->to = take_path(reader, STR("*** Move to: "))))
		return false;
	while (reader->at < reader->count && !is_section(patch_line(reader, reader->at))) {
		if (patch_line(reader, reader->at).size == 0)
			reader->at++;
		else if (!read_codex_hunk(reader, file))
			return false;
	}
	return file->hunk_count > 0 || file->to ||
	       patch_refuse(reader, first,
			    "nothing follows that would change this file. Put hunks below it.");
}

static bool read_delete(struct patch_reader *reader)
{
	struct patch_file *file = patch_add_file(reader, PATCH_DELETE);

	if (!file || !(file->path = take_path(reader, STR("*** Delete File: "))))
		return false;
	while (reader->at < reader->count && patch_line(reader, reader->at).size == 0)
		reader->at++;
	return true;
}

static bool read_section(struct patch_reader *reader)
{
	struct str line = patch_line(reader, reader->at);

	if (str_starts(line, STR("*** Add File: ")))
		return read_add(reader);
	if (str_starts(line, STR("*** Update File: ")))
		return read_update(reader);
	if (str_starts(line, STR("*** Delete File: ")))
		return read_delete(reader);
	return patch_refuse(reader, reader->at,
			    "expected `*** Add File: PATH`, `*** Update File: PATH`, `*** Delete "
			    "File: PATH` or `*** End Patch`.");
}

static bool patch_read_codex(struct patch_reader *reader)
{
	bool ended = false;

	while (reader->at < reader->count) {
		struct str line = patch_line(reader, reader->at);

		if (str_trim(line).size == 0 || str_starts(line, STR("*** Begin Patch"))) {
			ended = ended && line.size == 0;
			reader->at++;
		} else if (str_starts(line, STR("*** End Patch"))) {
			ended = true;
			reader->at++;
		} else {
			ended = false;
			if (!read_section(reader))
				return false;
		}
	}
	if (!ended)
		return patch_refuse(reader, reader->count,
				    "the patch ends here without `*** End Patch`, so a part of it "
				    "may be missing. Send it whole.");
	return reader->patch->file_count > 0 ||
	       patch_refuse(reader, 0, "the patch names no file.");
}

/*
 * Unified diffs as diff -u and git write them. Counts in a hunk's head are believed where
 * the lines agree with them. Else the lines decide; but a last hunk that is too short may
 * have been cut off.
 */

static bool starts(const struct patch_reader *reader, size_t index, const char *prefix)
{
	return str_starts(patch_line(reader, index), str_of(prefix));
}

/* Does another part of the patch begin at line INDEX? */
static bool is_head(const struct patch_reader *reader, size_t index)
{
	return starts(reader, index, "@@ ") || starts(reader, index, "diff --git ") ||
	       starts(reader, index, "Index: ") ||
	       (starts(reader, index, "--- ") && starts(reader, index + 1, "+++ "));
}

/* Take a byte of a name in quotes, in git's form. AT is behind the backslash. */
static bool unquote_byte(struct str text, size_t *at, struct buf *out)
{
	static const char names[] = "abtnvfr\"\\";
	static const char bytes[] = "\a\b\t\n\v\f\r\"\\";
	const char *found;
	unsigned value = 0;

	if (*at >= text.size)
		return false;
	found = text.data[*at] ? strchr(names, text.data[*at]) : NULL;
	if (found) {
		++*at;
		return buf_addc(out, bytes[found - names]);
	}
	for (int i = 0; i < 3; i++, ++*at) {
		if (*at >= text.size || text.data[*at] < '0' || text.data[*at] > '7')
			return false;
		value = 8 * value + (unsigned)(text.data[*at] - '0');
	}
	return value > 0 && value < 256 && buf_addc(out, (char)value);
}

/* Take a name in quotes at the beginning of TEXT. REST is the text behind it. */
static bool unquote(struct str text, struct buf *out, struct str *rest)
{
	size_t at = 1;

	while (at < text.size && text.data[at] != '"') {
		char byte = text.data[at++];

		if (byte == '\\' ? !unquote_byte(text, &at, out) : !buf_addc(out, byte))
			return false;
	}
	*rest = str_part(text, at + 1, text.size);
	return at < text.size;
}

/*
 * The name behind PREFIX in the current line, without the time that may follow a tab.
 * NULL: the sentence is set.
 */
static const char *take_name(struct patch_reader *reader, size_t index, const char *prefix)
{
	struct str line = patch_line(reader, index);
	struct str text = str_part(line, strlen(prefix), line.size);
	const char *tab = text.size ? memchr(text.data, '\t', text.size) : NULL;
	const char *made = NULL;
	struct str rest;
	struct buf name;

	buf_init(&name, PATH_MAX);
	if (str_starts(text, STR("\""))) {
		if (unquote(text, &name, &rest))
			made = arena_copy(&reader->patch->arena, buf_str(&name));
	} else {
		if (tab)
			text.size = (size_t)(tab - text.data);
		text = str_trim(text);
		if (text.size && text.size < PATH_MAX)
			made = arena_copy(&reader->patch->arena, text);
	}
	buf_fini(&name);
	if (!made || !*made || str_ends(str_of(made), STR("/"))) {
		(void)patch_refuse(reader, index,
				   "a file name is missing or not readable here.");
		return NULL;
	}
	return made;
}

static bool is_nothing(const char *name)
{
	return strcmp(name, "/dev/null") == 0;
}

/*
 * Does NAME begin like "a/x" or "b/x"? These are git's own first letters (also i, w, c, o
 * with its mnemonic prefixes).
 */
static bool has_prefix(const char *name)
{
	return name[0] && strchr("abiwco", name[0]) && name[1] == '/' && name[2];
}

/* Set path, other name and kind of FILE from the names of both sides. */
static void take_sides(struct patch_file *file, const char *old, const char *new)
{
	bool prefixed;

	if (is_nothing(old))
		prefixed = has_prefix(new);
	else if (is_nothing(new))
		prefixed = has_prefix(old);
	else
		prefixed = has_prefix(old) && has_prefix(new) && old[0] != new[0];
	if (prefixed && !is_nothing(old))
		old += 2;
	if (prefixed && !is_nothing(new))
		new += 2;
	if (is_nothing(old))
		file->kind = PATCH_ADD;
	else if (is_nothing(new))
		file->kind = PATCH_DELETE;
	file->path = is_nothing(new) ? old : new;
	if (file->to)
		file->path = old;
	else if (!is_nothing(old) && !is_nothing(new) && old[0] != '/' &&
		 strcmp(old, new) != 0)
		file->other = old;
}

/* The body of a hunk while it is read. */
struct body {
	struct buf old, new, kinds;
	size_t old_left, new_left;
	bool last_old, last_new; /* is the last line in the old text, and in the new one? */
};

static void drop_end(struct buf *side)
{
	if (side->size && side->data[side->size - 1] == '\n')
		buf_truncate(side, side->size - 1);
}

/* False: LINE is no line of a body. */
static bool take_unified_line(struct str line, struct body *body)
{
	char kind = line.size ? line.data[0] : ' ';

	if (kind == '\\') {
		if (body->last_old)
			drop_end(&body->old);
		if (body->last_new)
			drop_end(&body->new);
		return true;
	}
	if (kind != ' ' && kind != '-' && kind != '+')
		return false;
	buf_addc(&body->kinds, kind);
	body->last_old = kind != '+';
	body->last_new = kind != '-';
	if (body->last_old) {
		buf_addstr(&body->old, str_part(line, 1, line.size));
		buf_addc(&body->old, '\n');
		body->old_left -= body->old_left > 0;
	}
	if (body->last_new) {
		buf_addstr(&body->new, str_part(line, 1, line.size));
		buf_addc(&body->new, '\n');
		body->new_left -= body->new_left > 0;
	}
	return true;
}

/*
 * The counts of a hunk are reached. Do the lines behind it belong to something else?
 * Blank lines may.
 */
static bool is_over(const struct patch_reader *reader)
{
	size_t next = reader->at;
	struct str line;

	while (next < reader->count && reader->lines[next].size == 0)
		next++;
	line = patch_line(reader, next);
	if (next >= reader->count || is_head(reader, next) || str_is(line, "-- "))
		return true;
	return line.data[0] != ' ' && line.data[0] != '-' && line.data[0] != '+';
}

/*
 * Does another part begin here? A removed line "-- x" before an added line "++ y" looks
 * like one.
 */
static bool body_ends(const struct patch_reader *reader, const struct body *body)
{
	bool waits = body->old_left > 0 && body->new_left > 0;

	return is_head(reader, reader->at) && !(waits && starts(reader, reader->at, "--- ") &&
						!starts(reader, reader->at + 2, "@@ "));
}

static bool read_lines(struct patch_reader *reader, struct body *body)
{
	while (reader->at < reader->count && !body_ends(reader, body)) {
		struct str line = patch_line(reader, reader->at);

		if (body->old_left == 0 && body->new_left == 0 &&
		    !str_starts(line, STR("\\")) && is_over(reader))
			return true;
		if (!take_unified_line(line, body)) {
			if (body->old_left == 0 && body->new_left == 0)
				return true;
			return patch_refuse(
				reader, reader->at,
				"a line of a hunk begins with a blank (it stays), - (it goes) or + "
				"(it is new). If it is a line of the file, put one blank before it.");
		}
		reader->at++;
	}
	return true;
}

static bool refuse_short(struct patch_reader *reader, size_t head, const size_t counts[2],
			 const struct body *body)
{
	size_t line = 0;
	size_t unused[2];

	(void)patch_hunk_head(patch_line(reader, head), &line, unused);
	return patch_refuse(
		reader, head,
		"the patch ends before this hunk has its %zu old and %zu new lines, so "
		"a part of it may be missing. Send it whole; if it is whole, its head is "
		"`@@ -%zu,%zu +%zu,%zu @@`.",
		counts[0], counts[1], line, text_count_lines(buf_str(&body->old)), line,
		text_count_lines(buf_str(&body->new)));
}

static bool read_unified_hunk(struct patch_reader *reader, struct patch_file *file)
{
	struct patch_hunk *hunk = patch_add_hunk(reader, file);
	size_t head = reader->at;
	struct body body = {0};
	size_t counts[2];
	bool ok;

	if (!hunk)
		return false;
	if (!patch_hunk_head(patch_line(reader, head), &hunk->line, counts))
		return patch_refuse(reader, head,
				    "a hunk of a unified diff begins with `@@ -LINE,COUNT "
				    "+LINE,COUNT @@`. Without line numbers use `*** Begin Patch`, `*** "
				    "Update File: PATH` and a bare `@@`.");
	reader->at++;
	body.old_left = counts[0];
	body.new_left = counts[1];
	buf_init(&body.old, PATCH_BYTES_MAX);
	buf_init(&body.new, PATCH_BYTES_MAX);
	buf_init(&body.kinds, PATCH_BYTES_MAX);
	ok = read_lines(reader, &body);
	if (ok && reader->at >= reader->count && (body.old_left || body.new_left))
		ok = refuse_short(reader, head, counts, &body);
	if (ok) {
		hunk->miscounted = text_count_lines(buf_str(&body.old)) != counts[0] ||
				   text_count_lines(buf_str(&body.new)) != counts[1];
		hunk->old = keep(reader, &body.old);
		hunk->new = keep(reader, &body.new);
		hunk->kinds = keep(reader, &body.kinds);
	}
	buf_fini(&body.old);
	buf_fini(&body.new);
	buf_fini(&body.kinds);
	return ok;
}

static bool take_mode(struct patch_reader *reader, struct patch_file *file,
		      const char *prefix)
{
	struct str mode =
		str_trim(str_part(patch_line(reader, reader->at), strlen(prefix), 16));

	if (str_is(mode, "100644"))
		file->mode = 0644;
	else if (str_is(mode, "100755"))
		file->mode = 0755;
	else
		return patch_refuse(reader, reader->at,
				    "only regular files can be patched here; make links with a "
				    "command (ln -s).");
	return true;
}

/* Take "a/x" in a line of git's, quoted or up to the first blank, without its "a/". */
static bool take_half(struct str text, struct buf *name, struct str *rest)
{
	size_t end;

	buf_clear(name);
	if (str_starts(text, STR("\""))) {
		if (!unquote(text, name, rest))
			return false;
	} else {
		end = str_find(text, STR(" "), 0);
		end = end == (size_t)-1 ? text.size : end;
		(void)buf_addstr(name, str_part(text, 0, end));
		*rest = str_part(text, end, text.size);
	}
	return !name->overflowed && name->size > 2 && name->data[1] == '/';
}

/* Take the names of "a/x b/x", of which one is in quotes, when they are the same. */
static void take_quoted_name(struct patch_reader *reader, struct str names,
			     struct patch_file *file)
{
	struct buf old, new;
	struct str rest;

	buf_init(&old, PATH_MAX);
	buf_init(&new, PATH_MAX);
	if (take_half(names, &old, &rest) && str_starts(rest, STR(" ")) &&
	    take_half(str_part(rest, 1, rest.size), &new, &rest) && rest.size == 0 &&
	    strcmp(old.data + 2, new.data + 2) == 0)
		file->path = arena_copy(&reader->patch->arena, str_of(new.data + 2));
	buf_fini(&old);
	buf_fini(&new);
}

/* "diff --git a/x b/x" names the file of a change of mode or of an empty file. */
static void take_git_name(struct patch_reader *reader, struct patch_file *file)
{
	struct str line = patch_line(reader, reader->at);
	struct str names = str_part(line, strlen("diff --git "), line.size);
	size_t half = names.size / 2;

	reader->at++;
	if (names.size > 0 && (names.data[0] == '"' || names.data[names.size - 1] == '"'))
		take_quoted_name(reader, names, file);
	/*
	 * Both names are the same except for their first letter, whatever blanks they
	 * have.
	 */
	else if (names.size % 2 == 1 && names.data[half] == ' ' && half > 2 &&
		 str_equal(str_part(names, 2, half - 2),
			   str_part(names, half + 3, names.size)))
		file->path =
			arena_copy(&reader->patch->arena, str_part(names, 2, half - 2));
}

/* Take one of git's lines between the head and the hunks. */
static bool take_git_line(struct patch_reader *reader, struct patch_file *file)
{
	size_t at = reader->at;

	if (starts(reader, at, "new file mode ")) {
		file->kind = PATCH_ADD;
		return take_mode(reader, file, "new file mode ");
	}
	if (starts(reader, at, "new mode "))
		return take_mode(reader, file, "new mode ");
	if (starts(reader, at, "deleted file mode "))
		file->kind = PATCH_DELETE;
	if (starts(reader, at, "rename from "))
		return (file->path = take_name(reader, at, "rename from ")) != NULL;
	if (starts(reader, at, "rename to "))
		return (file->to = take_name(reader, at, "rename to ")) != NULL;
	if (starts(reader, at, "copy from "))
		return patch_refuse(reader, at,
				    "copies cannot be patched; give the copy as a new file.");
	if (starts(reader, at, "GIT binary patch") || starts(reader, at, "Binary files "))
		return patch_refuse(reader, at,
				    "binary files cannot be patched; copy them with a command.");
	return true;
}

static bool read_sides(struct patch_reader *reader, struct patch_file *file)
{
	const char *old = take_name(reader, reader->at, "--- ");
	const char *new = old ? take_name(reader, reader->at + 1, "+++ ") : NULL;

	if (!new)
		return false;
	take_sides(file, old, new);
	reader->at += 2;
	return true;
}

static bool read_file(struct patch_reader *reader)
{
	struct patch_file *file = patch_add_file(reader, PATCH_UPDATE);
	size_t first = reader->at;

	if (!file)
		return false;
	if (starts(reader, reader->at, "diff --git ")) {
		take_git_name(reader, file);
		while (reader->at < reader->count && !is_head(reader, reader->at)) {
			if (!take_git_line(reader, file))
				return false;
			reader->at++;
		}
	}
	if (starts(reader, reader->at, "--- ") &&
	    starts(reader, reader->at + 1, "+++ ") && !read_sides(reader, file))
		return false;
	while (starts(reader, reader->at, "@@")) {
		if (!read_unified_hunk(reader, file))
			return false;
		while (reader->at < reader->count &&
		       patch_line(reader, reader->at).size == 0)
			reader->at++;
	}
	if (!file->path)
		return patch_refuse(reader, first, "the name of this file cannot be read.");
	if (file->kind == PATCH_ADD && file->hunk_count == 0) {
		/* The file is empty. */
		if (!patch_add_hunk(reader, file))
			return false;
	}
	return file->kind != PATCH_UPDATE || file->hunk_count || file->to || file->mode ||
	       patch_refuse(reader, first,
			    "nothing follows that would change this file. Put hunks below it.");
}

static bool patch_read_unified(struct patch_reader *reader)
{
	while (reader->at < reader->count) {
		if (starts(reader, reader->at, "@@ "))
			return patch_refuse(
				reader, reader->at,
				"a hunk stands here, but no file is named before it.");
		if (starts(reader, reader->at, "diff --git ") ||
		    (starts(reader, reader->at, "--- ") &&
		     starts(reader, reader->at + 1, "+++ "))) {
			if (!read_file(reader))
				return false;
		} else {
			reader->at++; /* words of a commit, or the head of another tool */
		}
	}
	return true;
}

/* The first words of a patch. */

/*
 * The line before AT that is most similar to the marker of the beginning; (size_t)-1:
 * none is.
 */
static size_t find_near_begin(const struct patch_reader *reader, size_t at)
{
	size_t limit = (sizeof(PATCH_BEGIN) - 1) / 3;
	size_t found = (size_t)-1;

	for (size_t i = 0; i < at; i++) {
		struct str line = str_trim(reader->lines[i]);
		size_t distance = line.size > 2 * sizeof(PATCH_BEGIN)
					  ? limit + 1
					  : text_distance(line, STR(PATCH_BEGIN), limit);

		if (distance > limit)
			continue;
		found = i;
		limit = distance > 0 ? distance - 1 : 0;
	}
	return found;
}

static bool refuse_headless(struct patch_reader *reader, size_t at)
{
	size_t near = find_near_begin(reader, at);

	if (near != (size_t)-1)
		return patch_refuse(reader, near,
				    "this line is nearly `" PATCH_BEGIN "`, with which the "
				    "patch has to begin. Write it so.");
	return patch_refuse(reader, at,
			    "no `" PATCH_BEGIN
			    "` stands before it, so a part of the patch may "
			    "be missing. Send it whole, from `" PATCH_BEGIN
			    "` to `*** End Patch`.");
}

static bool refuse_unknown(struct patch_reader *reader)
{
	for (size_t i = 0; i < reader->count; i++) {
		if (str_starts(reader->lines[i], STR("@@")))
			return patch_refuse(
				reader, i,
				"a hunk stands here, but no file is named before it. Begin with "
				"`--- a/PATH` and `+++ b/PATH`, or with `*** Update File: PATH`.");
		if (str_starts(reader->lines[i], STR("***************")))
			return patch_refuse(reader, i,
					    "this is a context diff. Give a unified one "
					    "(diff -u, git diff).");
	}
	buf_adds(reader->sentence,
		 "This is no patch. Give a unified diff, or:\n*** Begin Patch\n*** Update File: "
		 "src/a.c\n@@ int sum(int n)\n {\n-\treturn 0;\n+\treturn n;\n }\n*** End "
		 "Patch\nEach line of a hunk begins with a blank (context), - (old) or + (new). "
		 "Nothing was changed.");
	return false;
}

bool patch_parse(struct str text, struct patch *patch, struct buf *sentence)
{
	struct patch_reader reader = {.patch = patch, .first = 1, .sentence = sentence};

	memset(patch, 0, sizeof(*patch));
	arena_init(&patch->arena);
	if (text.size > PATCH_BYTES_MAX) {
		buf_addf(sentence,
			 "The patch has %zu bytes; at most %d are taken. Give it in parts.",
			 text.size, PATCH_BYTES_MAX);
		return false;
	}
	split(text, &reader);
	if (!unwrap(&reader))
		return false;
	for (size_t i = 0; i < reader.count; i++) {
		reader.at = i;
		if (patch_starts_codex(reader.lines[i])) {
			patch->codex = true;
			return str_starts(reader.lines[i], STR(PATCH_BEGIN))
				       ? patch_read_codex(&reader)
				       : refuse_headless(&reader, i);
		}
		if (patch_starts_unified(&reader, i))
			return patch_read_unified(&reader);
	}
	return refuse_unknown(&reader);
}

void patch_fini(struct patch *patch)
{
	if (patch)
		arena_fini(&patch->arena);
}

/* Files of one patch that need the same path. */

/* Is it impossible that both paths exist at the same time? */
static bool collide(const char *one, const char *other)
{
	return strcmp(one, other) != 0 &&
	       (path_within(one, other) || path_within(other, one));
}

bool patch_makes_room(const struct patch *patch, const char *path)
{
	for (size_t i = 0; i < patch->file_count; i++) {
		const struct patch_file *file = &patch->files[i];

		if (file->kind == PATCH_DELETE && collide(file->path, path))
			return true;
	}
	return false;
}

bool patch_needs_room(const struct patch *patch, const char *path)
{
	for (size_t i = 0; i < patch->file_count; i++) {
		const struct patch_file *file = &patch->files[i];
		const char *made = file->kind == PATCH_ADD ? file->path : file->to;

		if (made != NULL && collide(made, path))
			return true;
	}
	return false;
}

void patch_merge(struct patch *patch)
{
	size_t kept = 0;

	for (size_t i = 0; i < patch->file_count; i++) {
		struct patch_file *file = &patch->files[i];
		struct patch_file *same = NULL;

		for (size_t j = 0; j < kept && file->kind == PATCH_UPDATE && !file->to;
		     j++) {
			if (patch->files[j].kind == PATCH_UPDATE &&
			    strcmp(patch->files[j].path, file->path) == 0)
				same = &patch->files[j];
		}
		if (same) {
			size_t count = same->hunk_count + file->hunk_count;
			struct patch_hunk *hunks =
				arena_alloc(&patch->arena, (count + 1) * sizeof(*hunks));

			if (same->hunk_count)
				memcpy(hunks, same->hunks,
				       same->hunk_count * sizeof(*hunks));
			if (file->hunk_count)
				memcpy(hunks + same->hunk_count, file->hunks,
				       file->hunk_count * sizeof(*hunks));
			same->hunks = hunks;
			same->hunk_count = count;
			same->mode = file->mode ? file->mode : same->mode;
		} else {
			patch->files[kept++] = *file;
		}
	}
	patch->file_count = kept;
}

/*
 * Finds the place of each hunk, refuses a hunk whose place is not sure, then builds the
 * new text.
 */

enum { APPLY_QUOTED = 200 /* bytes of an anchor in a sentence */ };

/* One hunk's place. */
struct spot {
	size_t start, end;
	struct buf text; /* the text for this place */
	size_t hunk;
	bool unchanged; /* the change was made before */
};

struct applying {
	const char *shown;
	const struct patch_file *file;
	struct str text;
	bool exact_only, given_ends;
	struct shown_ends ends; /* of the text */
	struct spot *spots;
	struct patch_outcome *outcomes;
	struct buf *sentence;
	size_t cursor; /* end of the hunk before */
};

static bool refuse(struct applying *applying, size_t index, const char *sentence)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];

	buf_addf(applying->sentence, "Hunk %zu of %zu of %s (line %zu of the patch): %s",
		 index + 1, applying->file->hunk_count, applying->shown, hunk->at,
		 sentence);
	return false;
}

/*
 * The end of the line at or behind FROM in TEXT that equals ANCHOR, except for its
 * indentation and blanks at its end; (size_t)-1 when there is none.
 */
static size_t find_anchor(struct str text, struct str anchor, size_t from)
{
	struct str rest = str_part(text, from, text.size);
	struct str line;

	while (str_next_line(&rest, &line)) {
		if (str_equal(str_trim(line), anchor))
			return text.size - rest.size;
	}
	return (size_t)-1;
}

/* The end of the last anchor of HUNK, when the anchors are searched from FROM on. */
static size_t find_anchors(const struct patch_hunk *hunk, struct str text, size_t from)
{
	for (size_t i = 0; i < hunk->anchor_count && from != (size_t)-1; i++)
		from = find_anchor(text, hunk->anchors[i], from);
	return from;
}

/*
 * Choose among several places the first behind the anchors, but only when each place of
 * the first anchor leads to the same one.
 */
static size_t choose_by_anchors(const struct applying *applying, size_t index,
				const struct match *match)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	size_t chosen = (size_t)-1;
	size_t from = 0;

	while (hunk->anchor_count > 0) {
		size_t behind = find_anchors(hunk, applying->text, from);
		size_t here = 0;

		if (behind == (size_t)-1)
			return chosen;
		while (here < match->count && match->spans[here].start < behind)
			here++;
		if (here < match->count && chosen != (size_t)-1 && chosen != here)
			return (size_t)-1;
		if (here < match->count)
			chosen = here;
		from = find_anchor(applying->text, hunk->anchors[0], from);
	}
	return chosen;
}

/* The only span that CHOSEN accepts; (size_t)-1 when there is none, or several. */
static size_t only_one(const struct applying *applying, const struct patch_hunk *hunk,
		       const struct match *match,
		       bool (*chosen)(const struct applying *applying,
				      const struct patch_hunk *hunk, struct match_span span))
{
	size_t found = (size_t)-1;

	for (size_t i = 0; i < match->count; i++) {
		if (!chosen(applying, hunk, match->spans[i]))
			continue;
		if (found != (size_t)-1)
			return (size_t)-1;
		found = i;
	}
	return found;
}

static bool stands_where_said(const struct applying *applying,
			      const struct patch_hunk *hunk, struct match_span span)
{
	return hunk->line && match_line(applying->text, span.start) == hunk->line;
}

static bool stands_at_the_end(const struct applying *applying,
			      const struct patch_hunk *hunk, struct match_span span)
{
	return hunk->at_end && span.end == applying->text.size;
}

static bool stands_behind(const struct applying *applying, const struct patch_hunk *hunk,
			  struct match_span span)
{
	(void)hunk;
	return span.start >= applying->cursor;
}

static size_t choose(const struct applying *applying, size_t index, const struct match *match)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	size_t chosen = match->count == 1 ? 0 : (size_t)-1;

	/*
	 * The line numbers are of another state of the file, so using them would be a
	 * guess.
	 */
	if (chosen == (size_t)-1 && !applying->exact_only)
		chosen = only_one(applying, hunk, match, stands_where_said);
	if (chosen == (size_t)-1)
		chosen = only_one(applying, hunk, match, stands_at_the_end);
	if (chosen == (size_t)-1)
		chosen = choose_by_anchors(applying, index, match);
	if (chosen == (size_t)-1 && index > 0)
		chosen = only_one(applying, hunk, match, stands_behind);
	return chosen;
}

static bool say_several(struct applying *applying, size_t index, const struct match *match)
{
	struct buf *out = applying->sentence;

	(void)refuse(applying, index, "its old lines stand at ");
	buf_addf(out, "%zu places: ", match->count);
	edit_add_places(applying->text, match, out);
	buf_adds(out,
		 applying->file->hunks[index].line
			 ? ". Add context lines until it is the only one, or give the right "
			   "line number. Nothing was changed."
			 : ". Add context lines until it is the only one, or name a line "
			   "before it (`@@ int main(void)`). Nothing was changed.");
	return false;
}

/*
 * The first anchor of HUNK that TEXT does not have behind the anchors before it; NULL:
 * TEXT has all.
 */
static const struct str *lost_anchor(const struct patch_hunk *hunk, struct str text)
{
	size_t from = 0;

	for (size_t i = 0; i < hunk->anchor_count; i++) {
		from = find_anchor(text, hunk->anchors[i], from);
		if (from == (size_t)-1)
			return &hunk->anchors[i];
	}
	return NULL;
}

static bool say_lost_anchor(struct applying *applying, size_t index, struct str anchor)
{
	struct buf *out = applying->sentence;
	bool is_there = find_anchor(applying->text, anchor, 0) != (size_t)-1;

	(void)refuse(applying, index, "the line behind its @@ (`");
	text_add_name(out, str_part(anchor, 0, text_character_border(anchor, APPLY_QUOTED)));
	buf_adds(out, is_there ? "`) does not stand behind the one named before it. Name them in "
				 "their order. "
			       : "`) does not stand in the file. ");
	if (!is_there)
		edit_add_nearest(applying->text, anchor, out);
	buf_adds(out, "Name a line that stands before the place, whole, or let @@ stand alone. "
		      "Nothing was changed.");
	return false;
}

static bool say_missed(struct applying *applying, size_t index)
{
	struct buf *out = applying->sentence;

	(void)refuse(applying, index, "its old lines were not found");
	if (applying->exact_only)
		buf_adds(out, " in the file, which has changed since it was read (so only exact "
			      "text is taken). Read it again");
	buf_adds(out, ". Nothing was changed. ");
	edit_explain_miss(applying->text, applying->file->hunks[index].old, out);
	return false;
}

/* Are the new lines there already, so that nothing must be done at this place? */
static bool is_already_made(struct applying *applying, size_t index)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	struct match match;
	bool made;

	match_init(&match);
	match.whole_lines = true;
	made = hunk->new.size > 0 &&
	       match_find(applying->text, hunk->new, STR(""), false, MATCH_LINE_END,
			  &match) &&
	       match.count == 1 &&
	       (edit_shares_enough(hunk->old, hunk->new) ||
		stands_where_said(applying, hunk, match.spans[0]));
	if (made) {
		struct spot *spot = &applying->spots[index];

		spot->start = match.spans[0].start;
		spot->end = match.spans[0].end;
		spot->unchanged = true;
		applying->outcomes[index].already = true;
		applying->outcomes[index].line = match_line(applying->text, spot->start);
	}
	match_fini(&match);
	return made;
}

/* Take the next line of *REST with its end. False: nothing is left. */
static bool next_whole_line(struct str *rest, struct str *line)
{
	const char *start = rest->data;

	if (!str_next_line(rest, line))
		return false;
	line->size = (size_t)(rest->data - start);
	return true;
}

/*
 * After a loose match the lines of context stay as the file has them, byte for byte; only
 * added lines change the file. MADE has the new lines. False: the lines do not
 * correspond, and MADE is unchanged.
 */
static bool keep_context(struct str file, struct str kinds, struct buf *made)
{
	struct str new = buf_str(made), old_line, new_line;
	bool ok = true;
	struct buf out;

	buf_init(&out, SIZE_MAX);
	for (size_t i = 0; ok && i < kinds.size; i++) {
		ok = (kinds.data[i] == '+' || next_whole_line(&file, &old_line)) &&
		     (kinds.data[i] == '-' || next_whole_line(&new, &new_line));
		if (!ok || kinds.data[i] == '-')
			continue;
		if (kinds.data[i] == ' ' &&
		    str_ends(old_line, STR("\n")) == str_ends(new_line, STR("\n")))
			new_line = old_line;
		buf_addstr(&out, new_line);
	}
	ok = ok && file.size == 0 && new.size == 0;
	if (ok) {
		buf_fini(made);
		*made = out;
	} else {
		buf_fini(&out);
	}
	return ok;
}

/*
 * Give the new lines at the byte AT the file's line ends, except when they must keep
 * their own.
 */
static void fit_ends(struct applying *applying, size_t index, size_t at)
{
	if (!applying->given_ends)
		applying->outcomes[index].end_set =
			edit_fit_line_ends(applying->text, &applying->ends, at,
					   &applying->spots[index].text);
}

static void take_spot(struct applying *applying, size_t index, const struct match *match,
		      size_t chosen)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	struct patch_outcome *outcome = &applying->outcomes[index];
	struct spot *spot = &applying->spots[index];

	spot->start = match->spans[chosen].start;
	spot->end = match->spans[chosen].end;
	buf_addstr(&spot->text, buf_str(&match->replacement));
	fit_ends(applying, index, spot->start);
	if (match->level != MATCH_EXACT)
		(void)keep_context(str_part(applying->text, spot->start,
					    spot->end - spot->start),
				   hunk->kinds, &spot->text);
	outcome->level = match->level;
	outcome->line = match_line(applying->text, spot->start);
	outcome->said = hunk->line != outcome->line ? hunk->line : 0;
	applying->cursor = spot->end;
}

/*
 * TEXT goes behind a last line without a line end: move the line end of TEXT to its
 * front. The old last line then has one, and the new last line has none.
 */
static void move_end_to_front(struct buf *text)
{
	size_t end = str_ends(buf_str(text), STR("\r\n")) ? 2 : 1;
	struct buf moved;

	if (!str_ends(buf_str(text), STR("\n")))
		end = 0;
	buf_init(&moved, SIZE_MAX);
	buf_adds(&moved, end == 2 ? "\r\n" : "\n");
	buf_addstr(&moved, str_part(buf_str(text), 0, text->size - end));
	buf_fini(text);
	*text = moved;
}

/* Place a hunk that only adds lines: behind the anchors, or at the end of the file. */
static bool place_addition(struct applying *applying, size_t index)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	struct spot *spot = &applying->spots[index];
	const struct str *lost = lost_anchor(hunk, applying->text);
	size_t size = applying->text.size;
	size_t behind = size;

	if (hunk->line > 0 && size > 0)
		return refuse(applying, index,
			      "it only adds lines and shows none of those around them. Give it "
			      "context lines. Nothing was changed.");
	if (lost)
		return say_lost_anchor(applying, index, *lost);
	if (hunk->anchor_count > 0)
		behind = find_anchors(hunk, applying->text, 0);
	if (hunk->anchor_count > 0 &&
	    find_anchors(hunk, applying->text,
			 find_anchor(applying->text, hunk->anchors[0], 0)) != (size_t)-1)
		return refuse(applying, index,
			      "the line behind its @@ stands at several places. Give context "
			      "lines. Nothing was changed.");
	spot->start = spot->end = behind;
	buf_addstr(&spot->text, hunk->new);
	fit_ends(applying, index, behind);
	if (spot->text.size > 0 && behind == size && size > 0 &&
	    !str_ends(applying->text, STR("\n")))
		move_end_to_front(&spot->text);
	applying->outcomes[index].level = MATCH_EXACT;
	applying->outcomes[index].line = match_line(applying->text, behind);
	applying->cursor = behind;
	return true;
}

static bool place_hunk(struct applying *applying, size_t index)
{
	const struct patch_hunk *hunk = &applying->file->hunks[index];
	const struct str *lost;
	struct match match;
	size_t chosen;
	bool ok = true;

	applying->outcomes[index].miscounted = hunk->miscounted;
	if (hunk->old.size == 0)
		return place_addition(applying, index);
	match_init(&match);
	match.whole_lines = true;
	if (!match_find(applying->text, hunk->old, hunk->new, false,
			applying->exact_only ? MATCH_EXACT : MATCH_LINE_NUMBERS, &match)) {
		match_fini(&match);
		return is_already_made(applying, index) || say_missed(applying, index);
	}
	lost = lost_anchor(hunk, applying->text);
	if (lost) {
		match_fini(&match);
		return say_lost_anchor(applying, index, *lost);
	}
	chosen = match.count > MATCH_SPANS_MAX ? (size_t)-1
					       : choose(applying, index, &match);
	if (chosen == (size_t)-1)
		ok = say_several(applying, index, &match);
	else
		take_spot(applying, index, &match, chosen);
	match_fini(&match);
	return ok;
}

static int compare_spots(const void *a, const void *b)
{
	const struct spot *left = a;
	const struct spot *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->hunk < right->hunk ? -1 : left->hunk > right->hunk;
}

static bool build(struct applying *applying, struct buf *out)
{
	size_t count = applying->file->hunk_count;
	size_t at = 0;

	if (count)
		qsort(applying->spots, count, sizeof(*applying->spots), compare_spots);
	for (size_t i = 0; i < count; i++) {
		const struct spot *spot = &applying->spots[i];

		if (spot->unchanged)
			continue;
		if (spot->start < at) {
			buf_clear(out);
			return refuse(applying, spot->hunk,
				      "it changes lines that another hunk changes too. Merge them "
				      "into one. Nothing was changed.");
		}
		buf_addstr(out, str_part(applying->text, at, spot->start - at));
		buf_addstr(out, buf_str(&spot->text));
		at = spot->end;
	}
	buf_addstr(out, str_part(applying->text, at, applying->text.size));
	if (!out->overflowed)
		return true;
	buf_addf(applying->sentence,
		 "%s would become larger than this tool writes (%zu bytes). Nothing was changed.",
		 applying->shown, out->max);
	return false;
}

bool patch_apply(const char *shown, const struct patch_file *file, struct str text,
		 unsigned how, struct buf *out, struct patch_outcome *outcomes,
		 struct buf *sentence)
{
	struct applying applying = {.shown = shown,
				    .file = file,
				    .text = text,
				    .exact_only = (how & EDIT_EXACT_ONLY) != 0,
				    .given_ends = (how & EDIT_GIVEN_ENDS) != 0,
				    .outcomes = outcomes,
				    .sentence = sentence};
	bool ok = true;

	shown_count_ends(text, &applying.ends);
	applying.spots = memory_array(file->hunk_count + 1, sizeof(*applying.spots));
	memset(outcomes, 0, file->hunk_count * sizeof(*outcomes));
	for (size_t i = 0; i < file->hunk_count; i++) {
		applying.spots[i].hunk = i;
		buf_init(&applying.spots[i].text, SIZE_MAX);
	}
	for (size_t i = 0; ok && i < file->hunk_count; i++)
		ok = place_hunk(&applying, i);
	ok = ok && build(&applying, out);
	for (size_t i = 0; i < file->hunk_count; i++)
		buf_fini(&applying.spots[i].text);
	free(applying.spots);
	return ok;
}

bool patch_add_path(const char *path, struct buf *out)
{
	const bool quoted = !text_is_utf8(str_of(path));

	(void)(quoted ? diff_add_quoted("", path, out) : buf_adds(out, path));
	return quoted;
}
