/*
 * handed: the input is a record of files as JSON, a NUL, and a patch. What is taken names the same
 * files in both, each below the workspace and once; what is not has a sentence.
 */
#include "tools/patches/take_patch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
	if (!truth)
		abort();
}

static void check_path(const char *path)
{
	require(path[0] != '\0' && path[0] != '/');
	require(strcmp(path, "..") != 0 && strncmp(path, "../", 3) != 0 &&
		strstr(path, "/../") == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str whole = {(const char *)data, size};
	const char *end = size > 0 ? memchr(data, '\0', size) : NULL;
	const size_t record = end != NULL ? (size_t)(end - whole.data) : size;
	auto_value struct value *files = NULL;
	struct handed handed;
	struct buf sentence;

	(void)value_parse(str_part(whole, 0, record), 0, &files, NULL);
	buf_init(&sentence, 1 << 24);
	if (handed_read(str_part(whole, record + 1, size), files, &handed, &sentence)) {
		require(handed.count > 0 && handed.count <= value_count(files));
		for (size_t i = 0; i < handed.count; i++) {
			const struct handed_file *file = &handed.files[i];

			check_path(file->to);
			check_path(file->file->path);
			require(!file->existed || strlen(file->base) == HASH_HEX);
			require(!file->exists || !file->now_known ||
				strlen(file->now) == HASH_HEX);
			for (size_t j = 0; j < i; j++)
				require(strcmp(file->to, handed.files[j].to) != 0);
		}
	} else {
		require(sentence.size > 0);
	}
	handed_fini(&handed);
	buf_fini(&sentence);
	return 0;
}
