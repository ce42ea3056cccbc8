/*
 * patch: the input is the size of a file's text in two bytes, that text, and a patch.
 * Whatever is read: each sentence says something, a refused patch leaves nothing, and what
 * stands outside of the hunks' places stays, so that a patch without changes changes nothing.
 */
#include "base/memory.h"
#include "tools/patches/patch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
	if (!truth)
		abort();
}

static bool changes_nothing(const struct patch_file *file)
{
	for (size_t i = 0; i < file->hunk_count; i++) {
		if (!str_equal(file->hunks[i].old, file->hunks[i].new))
			return false;
	}
	return true;
}

static void check_file(const struct patch_file *file, struct str text, bool exact_only)
{
	struct patch_outcome *outcomes =
		memory_array(file->hunk_count + 1, sizeof(*outcomes));
	struct buf out, sentence;

	buf_init(&out, 1 << 24);
	buf_init(&sentence, 1 << 24);
	if (patch_apply("f", file, text, exact_only, &out, outcomes, &sentence)) {
		for (size_t i = 0; i < file->hunk_count; i++)
			require(outcomes[i].already || outcomes[i].level != MATCH_NONE);
		if (changes_nothing(file) && exact_only)
			require(str_equal(buf_str(&out), text));
	} else {
		require(sentence.size > 0);
	}
	buf_fini(&out);
	buf_fini(&sentence);
	free(outcomes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str whole = {(const char *)data, size};
	struct patch patch;
	struct buf sentence;
	struct str text;

	if (size < 2)
		return 0;
	text = str_part(whole, 2, (size_t)data[0] + 256 * (size_t)data[1]);
	buf_init(&sentence, 1 << 24);
	if (patch_parse(str_part(whole, 2 + text.size, size), &patch, &sentence)) {
		for (size_t i = 0; i < patch.file_count; i++) {
			const struct patch_file *file = &patch.files[i];

			require(file->path != NULL && file->path[0] != '\0');
			require(file->kind != PATCH_UPDATE || file->hunk_count > 0 ||
				file->to || file->mode);
			if (file->kind == PATCH_UPDATE) {
				check_file(file, text, false);
				check_file(file, text, true);
			}
		}
	} else {
		require(sentence.size > 0);
	}
	patch_fini(&patch);
	buf_fini(&sentence);
	return 0;
}
