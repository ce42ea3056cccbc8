/*
 * image_fuzz: the bytes as each document of an image, as a record of the cache, and as the word of a
 * base. Every digest that is let in has its form, and what is printed is read again.
 */
#include "base/buf.h"
#include "image/base.h"
#include "image/manifest.h"
#include "image/store.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void index_of(struct str text)
{
	struct manifest_index index, again;
	struct err err = {0};
	struct buf printed;

	if (manifest_parse_index(text, &index, &err)) {
		const struct manifest_descriptor *chosen = manifest_choose(&index, NULL);

		for (size_t i = 0; i < index.count; i++)
			assert(manifest_is_digest(str_of(index.items[i].digest)));
		assert(chosen == NULL || manifest_media_of(chosen) == MEDIA_INDEX ||
		       manifest_media_of(chosen) == MEDIA_MANIFEST);
		buf_init(&printed, 2 * MANIFEST_BYTES_MAX);
		if (manifest_print_index(&index, &printed) &&
		    printed.size <= MANIFEST_BYTES_MAX) {
			assert(manifest_parse_index(buf_str(&printed), &again, &err));
			assert(again.count == index.count);
			manifest_fini_index(&again);
		}
		buf_fini(&printed);
	} else {
		assert(err.text[0] != '\0');
	}
	manifest_fini_index(&index);
}

static void manifest_of(struct str text)
{
	struct manifest manifest;
	struct err err = {0};

	if (manifest_parse(text, &manifest, &err)) {
		assert(manifest.layer_count <= MANIFEST_LAYERS_MAX);
		assert(manifest_is_digest(str_of(manifest.config.digest)));
		for (size_t i = 0; i < manifest.layer_count; i++)
			assert(manifest_is_digest(str_of(manifest.layers[i].digest)));
	} else {
		assert(err.text[0] != '\0');
	}
	manifest_fini(&manifest);
}

static void config_of(struct str text)
{
	struct manifest_config config;
	struct err err = {0};

	if (manifest_parse_config(text, &config, &err)) {
		size_t count = 0;

		while (config.environment[count] != NULL)
			count++;
		assert(count == config.environment_count);
		for (size_t i = 0; i < config.diff_count; i++)
			assert(manifest_is_digest(str_of(config.diff_ids[i])));
	} else {
		assert(err.text[0] != '\0');
	}
	manifest_fini_config(&config);
}

static void record_of(struct str text)
{
	struct image_record record;
	struct err err = {0};

	if (image_store_parse(text, &record, &err)) {
		assert(manifest_is_digest(str_of(record.digest)));
		for (size_t i = 0; i < record.layer_count; i++)
			assert(manifest_is_digest(str_of(record.layers[i])));
	} else {
		assert(err.text[0] != '\0');
	}
	image_store_fini(&record);
}

static void word_of(struct str text)
{
	struct arena arena;
	struct base_word parsed;
	struct err err = {0};

	arena_init(&arena);
	const char *word = arena_copy(&arena, text);
	if (base_parse_word(word, &arena, &parsed, &err)) {
		assert(parsed.kind != BASE_ROOTFS || parsed.folder[0] != '\0');
		assert(parsed.kind != BASE_IMAGE || parsed.is_layout ||
		       (parsed.name[0] != '/' && parsed.name[0] != '-' &&
			strstr(parsed.name, " ") == NULL));
	} else {
		assert(err.text[0] != '\0');
	}
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};

	index_of(text);
	manifest_of(text);
	config_of(text);
	record_of(text);
	word_of(text);
	return 0;
}
