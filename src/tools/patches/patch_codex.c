/*
 * patch_codex: the grammar that models of one family write by themselves:
 * `*** Begin Patch`, per file `*** Add File: `, `*** Update File: ` (and `*** Move to: `) or
 * `*** Delete File: `, hunks after `@@ LINE BEFORE`, `*** End of File`, `*** End Patch`.
 */
#include "tools/patches/patch.h"

#include <limits.h>
#include <string.h>

static bool is_section(struct str line)
{
	return str_starts(line, STR("*** ")) && !str_starts(line, STR("*** End of File"));
}

/* The path behind PREFIX in the line at hand. NULL with the sentence. */
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

		/* The head of a unified hunk, which says more than its heading. */
		if (patch_hunk_head(line, &hunk->line, counts))
			continue;
		if (str_ends(anchor, STR("@@")))
			anchor = str_trim(str_part(anchor, 0, anchor.size - 2));
		if (anchor.size)
			hunk->anchors[hunk->anchor_count++] = anchor;
	}
	return true;
}

/* One line of a hunk. False with the sentence when it is none. */
static bool take_line(struct patch_reader *reader, struct buf *old, struct buf *new,
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

static bool read_hunk(struct patch_reader *reader, struct patch_file *file)
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
		ok = take_line(reader, &old, &new, &kinds);
		reader->at++;
	}
	/* Empty lines before the next head are the writer's, not the file's. */
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
		else if (!read_hunk(reader, file))
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

bool patch_read_codex(struct patch_reader *reader)
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
