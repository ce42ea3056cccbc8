/* Fuzz target of guard/git_index: with both lengths of object names; links are plain names. */
#include "guard/readers.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool take(void *context, struct str path)
{
	size_t *count = context;

	if (path.size == 0 || memchr(path.data, '\0', path.size) != NULL)
		abort();
	return ++*count < 1000;
}

static bool take_entry(void *context, const struct git_index_entry *entry)
{
	/* All of it is there to be read. */
	volatile uint8_t last = entry->object[19];

	(void)last;
	return take(context, STR("x"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int i = 0; i < 2; i++) {
		size_t count = 0;
		struct git_index_reader reader = {
			.sha256 = i != 0,
			.link = take,
			.entry = take_entry,
			.context = &count,
		};
		struct err err = {0};

		if (!readers_index_read(&reader, (struct str){(const char *)data, size},
					&err) &&
		    err.text[0] == '\0')
			abort();
		if (strlen(reader.shared) > 2 * (i != 0 ? 32 : 20))
			abort();
	}
	return 0;
}
