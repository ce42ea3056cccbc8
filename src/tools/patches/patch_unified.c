/*
 * patch_unified: unified diffs as diff -u and git write them. Counts in a hunk's head are
 * believed where the lines agree with them; else the lines decide, but a last hunk that is
 * too short may have been cut off.
 */
#include "tools/patches/patch.h"

#include "base/text/text.h"

#include <limits.h>
#include <string.h>

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

/* A byte of a name in quotes as git writes it: AT stands behind the backslash. */
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

/* A name in quotes at the front of TEXT; REST is what follows it. */
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
 * The name in the line at hand behind PREFIX, without the time that may follow a tab. NULL
 * with the sentence.
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

/* "a/x" and "b/x": git's own first letters (also i, w, c, o with its mnemonic prefixes). */
static bool has_prefix(const char *name)
{
	return name[0] && strchr("abiwco", name[0]) && name[1] == '/' && name[2];
}

/* Names of both sides → path, other name and kind of FILE. */
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

/* One body while it is read. */
struct body {
	struct buf old, new, kinds;
	size_t old_left, new_left;
	bool last_old, last_new; /* sides of the line read last */
};

static void drop_end(struct buf *side)
{
	if (side->size && side->data[side->size - 1] == '\n')
		buf_truncate(side, side->size - 1);
}

/* False when the line at hand is none of a body. */
static bool take_line(struct str line, struct body *body)
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

/* Are the lines behind a hunk whose counts are met something else? Blank ones may be. */
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
 * Does another part begin here, and not a removed line "-- x" before an added one "++ y"?
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
		if (!take_line(line, body)) {
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

static struct str keep(struct patch_reader *reader, const struct buf *text)
{
	return (struct str){arena_copy(&reader->patch->arena, buf_str(text)), text->size};
}

static bool read_hunk(struct patch_reader *reader, struct patch_file *file)
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

/* "a/x" of a line of git's, quoted or up to the first blank, without its "a/". */
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

/* Both names of "a/x b/x" where one is in quotes, when they are the same. */
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
	/* Both names are the same but for their first letter, whatever blanks they hold. */
	else if (names.size % 2 == 1 && names.data[half] == ' ' && half > 2 &&
		 str_equal(str_part(names, 2, half - 2),
			   str_part(names, half + 3, names.size)))
		file->path =
			arena_copy(&reader->patch->arena, str_part(names, 2, half - 2));
}

/* One of git's lines between its head and the hunks. */
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
		if (!read_hunk(reader, file))
			return false;
		while (reader->at < reader->count &&
		       patch_line(reader, reader->at).size == 0)
			reader->at++;
	}
	if (!file->path)
		return patch_refuse(reader, first, "the name of this file cannot be read.");
	if (file->kind == PATCH_ADD && file->hunk_count == 0) {
		/* An empty file. */
		if (!patch_add_hunk(reader, file))
			return false;
	}
	return file->kind != PATCH_UPDATE || file->hunk_count || file->to || file->mode ||
	       patch_refuse(reader, first,
			    "nothing follows that would change this file. Put hunks below it.");
}

bool patch_read_unified(struct patch_reader *reader)
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
			reader->at++; /* words of a commit, or another tool's head */
		}
	}
	return true;
}
