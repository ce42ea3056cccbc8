/* handed: see handed.h. */
#include "tools/patches/handed.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "files/record.h"
#include "tools/patches/generate_patch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

const struct tool_param handed_rows[] = {
	{"path", PARAM_TEXT, true, "Its name, as the record has it"},
	{"from", PARAM_TEXT, false, "Its name before"},
	{"state", PARAM_TEXT, true, "What became of it"},
	{"base_hash", PARAM_TEXT, false, "What it held before", .max = HASH_HEX},
	{"hash", PARAM_TEXT, false, "What it holds afterwards", .max = HASH_HEX},
	{0},
};

static bool refuse(struct buf *sentence, const char *words, const char *path)
{
	(void)buf_adds(sentence, "The patch and its record do not fit: ");
	text_add_name(sentence, str_part(str_of(path), 0, PATH_MAX));
	(void)buf_addf(sentence, " %s. Nothing was changed.", words);
	return false;
}

static bool is_left_out(const struct value *record)
{
	const char *state = value_text(value_member(record, "state"));

	return state != NULL && strcmp(state, "left_out") == 0;
}

/* Does the member KEY of RECORD name PATH? */
static bool names(const struct value *record, const char *key, const char *path)
{
	const char *given = value_text(value_member(record, key));
	struct buf text;
	bool same;

	buf_init(&text, 5 * PATH_MAX);
	(void)patch_add_path(path, &text);
	same = given != NULL && strcmp(given, text.data) == 0;
	buf_fini(&text);
	return same;
}

static const struct value *find_record(const struct value *files,
				       const struct patch_file *file)
{
	for (size_t i = 0; i < value_count(files); i++) {
		const struct value *record = value_item(files, i);

		if (is_left_out(record))
			continue;
		if (names(record, "path", file->to != NULL ? file->to : file->path) &&
		    (file->to == NULL ? value_member(record, "from") == NULL
				      : names(record, "from", file->path)))
			return record;
	}
	return NULL;
}

/* The hash under KEY. False: there is none, or it is no whole one. */
static bool take_hash(const struct value *record, const char *key, char hex[HASH_HEX + 1])
{
	const char *given = value_text(value_member(record, key));

	if (given == NULL || strlen(given) != HASH_HEX || !hash_is_valid(given))
		return false;
	memcpy(hex, given, HASH_HEX + 1);
	return true;
}

/* Nothing else is ever handed over. */
static bool is_plain(const char *path)
{
	return path[0] != '/' && undo_path_is_sound(str_of(path));
}

static bool take_file(struct handed_file *handed, const struct patch_file *file,
		      const struct value *files, struct buf *sentence)
{
	const struct value *record = find_record(files, file);

	*handed = (struct handed_file){
		.file = file,
		.to = file->to != NULL ? file->to : file->path,
		.existed = file->kind != PATCH_ADD,
		.exists = file->kind != PATCH_DELETE,
	};
	if (!is_plain(file->path) || !is_plain(handed->to))
		return refuse(sentence, "is no path below the workspace", handed->to);
	if (record == NULL)
		return refuse(sentence, "is in the patch alone", handed->to);
	if (file->other != NULL)
		return refuse(sentence, "has two names in the patch", handed->to);
	if (handed->existed && !take_hash(record, "base_hash", handed->base))
		return refuse(sentence, "has no hash of what it was", handed->to);
	handed->now_known = !handed->exists || take_hash(record, "hash", handed->now);
	if (file->kind == PATCH_ADD && !handed->now_known) {
		hash_text(file->hunk_count > 0 ? file->hunks[0].new : STR(""), handed->now);
		handed->now_known = true;
	}
	return true;
}

/* Is no name of a file another file's as well? */
static bool are_apart(const struct handed *handed, struct buf *sentence)
{
	for (size_t i = 0; i < handed->count; i++) {
		const struct handed_file *one = &handed->files[i];

		for (size_t j = 0; j < handed->count; j++) {
			const struct handed_file *other = &handed->files[j];

			if (i != j && (strcmp(one->to, other->to) == 0 ||
				       strcmp(one->to, other->file->path) == 0))
				return refuse(sentence, "is there twice", one->to);
		}
	}
	return true;
}

bool handed_read(struct str text, const struct value *files, struct handed *handed,
		 struct buf *sentence)
{
	size_t recorded = 0;

	*handed = (struct handed){0};
	if (!patch_parse(text, &handed->patch, sentence))
		return false;
	if (handed->patch.codex) {
		(void)buf_adds(sentence, "A patch that was handed over is a unified diff.");
		return false;
	}
	patch_merge(&handed->patch);
	handed->files = memory_array(handed->patch.file_count + 1, sizeof(*handed->files));
	for (; handed->count < handed->patch.file_count; handed->count++) {
		if (!take_file(&handed->files[handed->count],
			       &handed->patch.files[handed->count], files, sentence))
			return false;
	}
	if (!are_apart(handed, sentence))
		return false;
	for (size_t i = 0; i < value_count(files); i++)
		recorded += !is_left_out(value_item(files, i));
	if (recorded != handed->count) {
		(void)buf_addf(sentence,
			       "The patch and its record do not fit: it has %zu files, the "
			       "record %zu. Nothing was changed.",
			       handed->count, recorded);
		return false;
	}
	return true;
}

void handed_fini(struct handed *handed)
{
	patch_fini(&handed->patch);
	free(handed->files);
	*handed = (struct handed){0};
}
