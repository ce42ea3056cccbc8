/* patch_file: see patch_file.h. */
#include "tools/patches/patch_file.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "tools/patches/patch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { SENTENCE_MAX = 64 << 10 };

bool patch_add_path(const char *path, struct buf *out)
{
	const bool quoted = !text_is_utf8(str_of(path));

	(void)(quoted ? diff_add_quoted("", path, out) : buf_adds(out, path));
	return quoted;
}

void patch_add_words(struct str words, struct buf *out)
{
	static const char *const heads[] = {"diff ", "--- ", "+++ ",   "@@",
					    "***",   "```",  "Index: "};
	struct str line;

	while (str_next_line(&words, &line)) {
		for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
			if (str_starts(line, str_of(heads[i]))) {
				(void)buf_addc(out, ' ');
				break;
			}
		}
		(void)buf_addstr(out, line);
		(void)buf_addc(out, '\n');
	}
}

static const char *mode_of(bool executable)
{
	return executable ? "100755" : "100644";
}

static void add_rename(const char *words, const char *name, struct buf *out)
{
	(void)buf_adds(out, words);
	(void)diff_add_quoted("", name, out);
	(void)buf_addc(out, '\n');
}

bool patch_file_print(const struct patch_file_change *change, struct buf *out,
		      struct diff_counts *counts)
{
	const char *old = change->from != NULL ? change->from : change->path;
	struct buf names[2];
	bool fine;

	buf_init(&names[0], PATH_MAX + 2);
	buf_init(&names[1], PATH_MAX + 2);
	(void)buf_addf(&names[0], "a/%s", old);
	(void)buf_addf(&names[1], "b/%s", change->path);
	(void)buf_adds(out, "diff --git ");
	(void)diff_add_quoted("", names[0].data, out);
	(void)buf_addc(out, ' ');
	(void)diff_add_quoted("", names[1].data, out);
	(void)buf_addc(out, '\n');
	if (!change->existed)
		(void)buf_addf(out, "new file mode %s\n", mode_of(change->is_executable));
	else if (!change->exists)
		(void)buf_addf(out, "deleted file mode %s\n",
			       mode_of(change->was_executable));
	else if (change->was_executable != change->is_executable)
		(void)buf_addf(out, "old mode %s\nnew mode %s\n",
			       mode_of(change->was_executable),
			       mode_of(change->is_executable));
	if (change->from != NULL) {
		(void)buf_adds(out, "similarity index 100%\n");
		add_rename("rename from ", old, out);
		add_rename("rename to ", change->path, out);
	}
	fine = diff_unified(change->base, change->now,
			    change->existed ? names[0].data : NULL,
			    change->exists ? names[1].data : NULL, DIFF_CONTEXT, out,
			    counts);
	buf_fini(&names[0]);
	buf_fini(&names[1]);
	return fine && !out->overflowed;
}

static bool makes_now(const struct patch_file_change *change, const struct patch_file *file)
{
	struct patch_outcome *outcomes = NULL;
	struct buf made, sentence;
	bool same;

	if (file->kind == PATCH_ADD)
		return str_equal(file->hunk_count > 0 ? file->hunks[0].new : STR(""),
				 change->now) &&
		       file->hunk_count <= 1;
	if (file->kind == PATCH_DELETE)
		return str_equal(file->hunk_count > 0 ? file->hunks[0].old : STR(""),
				 change->base) &&
		       file->hunk_count <= 1;
	if (file->hunk_count == 0)
		return str_equal(change->base, change->now);
	buf_init(&made, change->now.size + 1);
	buf_init(&sentence, SENTENCE_MAX);
	outcomes = memory_array(file->hunk_count, sizeof(*outcomes));
	same = patch_apply(change->path, file, change->base, EDIT_GIVEN_ENDS, &made,
			   outcomes, &sentence) &&
	       str_equal(buf_str(&made), change->now);
	free(outcomes);
	buf_fini(&made);
	buf_fini(&sentence);
	return same;
}

bool patch_file_applies(const struct patch_file_change *change, struct str section)
{
	const char *old = change->from != NULL ? change->from : change->path;
	struct patch patch;
	struct buf sentence;
	bool fine;

	buf_init(&sentence, SENTENCE_MAX);
	fine = patch_parse(section, &patch, &sentence) && patch.file_count == 1;
	if (fine) {
		const struct patch_file *file = &patch.files[0];
		const enum patch_kind kind = !change->existed  ? PATCH_ADD
					     : !change->exists ? PATCH_DELETE
							       : PATCH_UPDATE;
		const unsigned mode = !change->existed || (change->exists &&
							   change->was_executable !=
								   change->is_executable)
					      ? (change->is_executable ? 0755 : 0644)
					      : 0;

		fine = file->kind == kind && strcmp(file->path, old) == 0 &&
		       (change->from == NULL) == (file->to == NULL) &&
		       (file->to == NULL || strcmp(file->to, change->path) == 0) &&
		       file->mode == mode && makes_now(change, file);
	}
	patch_fini(&patch);
	buf_fini(&sentence);
	return fine;
}
