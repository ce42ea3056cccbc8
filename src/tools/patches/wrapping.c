/*
 * wrapping: takes away the text that models put around a patch: a code fence; a shell's
 * here-document (`apply_patch <<'EOF'`, `cat <<EOF | apply_patch`), maybe as the text of
 * `bash -lc "…"`; quotes around the patch as apply_patch's argument. A wrapping is taken
 * away only when it leaves no doubt about the patch in it. Further commands of a shell,
 * and a folder that it changes to first, are refused, since this tool would leave them
 * out.
 */

#include "tools/patches/patch.h"

#include <string.h>

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
static bool drop_end(struct patch_reader *reader, const struct wrapping *wrapping)
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
static struct str unquote(struct patch_reader *reader, struct str line)
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
			*line = unquote(reader, *line);
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

bool patch_unwrap(struct patch_reader *reader)
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
	if (!drop_end(reader, &wrapping) || !drop_quote(reader, &wrapping))
		return false;
	undo_shell(reader, start, &wrapping);
	return true;
}
