/*
 * Fuzz target of tool/picture: a picture that is taken has a format and sides, its
 * end is within the bytes, and it stays taken with bytes behind it.
 */
#include "tool/picture.h"

#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str bytes = {(const char *)data, size};
	struct picture picture, again;
	struct err err = {0};
	struct buf text;

	if (!picture_read(bytes, &picture, &err)) {
		if (err.text[0] == '\0')
			abort();
		return 0;
	}
	if (picture_format(bytes) != picture.format || picture.mime == NULL ||
	    picture.width == 0 || picture.height == 0)
		abort();
	auto_free char *more = memory_alloc(size + 1);
	memcpy(more, data, size);
	if (!picture_read((struct str){more, size + 1}, &again, &err) ||
	    again.width != picture.width || again.height != picture.height)
		abort();
	/* A mark alone is no picture. */
	if (picture_read(str_part(bytes, 0, 8), &again, &err))
		abort();
	buf_init(&text, 256);
	picture_describe(&picture, size, &text);
	if (text.overflowed)
		abort();
	buf_fini(&text);
	return 0;
}
