/* patch: what both grammars share: lines, heads, refusals; see patch.h. */
#include "tools/patches/patch.h"

#include "base/path.h"
#include "base/text/text.h"

#include <stdarg.h>
#include <string.h>

enum { PATCH_QUOTED = 120 /* bytes of a wrong line in a sentence */ };

bool patch_refuse(struct patch_reader *reader, size_t index, const char *format, ...)
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

/* Room for one more in an array that doubles; what it held before stays in the arena. */
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

struct patch_file *patch_add_file(struct patch_reader *reader, enum patch_kind kind)
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

struct patch_hunk *patch_add_hunk(struct patch_reader *reader, struct patch_file *file)
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

struct str patch_line(const struct patch_reader *reader, size_t index)
{
	return index < reader->count ? reader->lines[index] : STR("");
}

/* Digits at *AT; 1 and untouched when there are none and ABSENT. */
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

bool patch_hunk_head(struct str line, size_t *old_line, size_t counts[2])
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

/* Does every line end in CR? Then that is how the text travelled, not what it says. */
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

bool patch_starts_codex(struct str line)
{
	return str_starts(line, STR(PATCH_BEGIN)) ||
	       str_starts(line, STR("*** Update File: ")) ||
	       str_starts(line, STR("*** Add File: ")) ||
	       str_starts(line, STR("*** Delete File: "));
}

bool patch_starts_unified(const struct patch_reader *reader, size_t i)
{
	struct str line = patch_line(reader, i);

	return str_starts(line, STR("diff --git ")) ||
	       (str_starts(line, STR("--- ")) &&
		str_starts(patch_line(reader, i + 1), STR("+++ ")));
}

/* The line before AT that is most like the marker of the beginning; (size_t)-1: none is. */
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
	if (!patch_unwrap(&reader))
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

/* Can both not be there at once? */
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
