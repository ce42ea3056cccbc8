/*
 * mask_fuzz: any bytes in a result, and any bytes in a file that holds secrets. The first
 * byte says where the file ends, the second how the result is cut. Cut or whole, the same
 * text comes out; a value by itself becomes a mark; and the marks turned back are the bytes
 * that went in.
 */
#include "tool/mask.h"
#include "tool/secret.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 64 << 20, TEXT_MAX = 8 << 10 };

static const uint8_t key[MASK_KEY];

struct values {
	struct mask *masks[2];
};

static void learn(void *context, struct str name, struct str value)
{
	struct values *values = context;

	assert(secret_is_value(value));
	for (size_t i = 0; i < 2; i++)
		mask_learn(values->masks[i], name, value);
	assert(!mask_is_clean(values->masks[0], value));
}

static void cut(struct mask *mask, struct str bytes, unsigned seed, struct buf *out)
{
	const unsigned most = seed;
	struct mask_stream stream;

	mask_stream_init(&stream, mask);
	for (size_t at = 0, step; at < bytes.size; at += step) {
		seed = seed * 1103515245 + 12345;
		step = most == 0 ? 1 : 1 + (seed >> 16) % most;
		assert(mask_add(&stream, str_part(bytes, at, step), false, out));
	}
	assert(mask_add(&stream, STR(""), true, out));
	mask_stream_fini(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct values values = {.masks = {mask_new(key), mask_new(key)}};
	struct mask_stream stream;
	struct buf whole, parts, back;

	buf_init(&whole, OUT_MAX);
	buf_init(&parts, OUT_MAX);
	buf_init(&back, OUT_MAX);
	if (size > 2) {
		const struct str all = {(const char *)data + 2, size - 2};
		const struct str text = str_part(all, 0, TEXT_MAX);

		secret_file_read(data[0] % 2 ? SECRET_FILE_LINES : SECRET_FILE_NETRC,
				 str_part(text, 0, data[0] * 2U), learn, &values);
		mask_stream_init(&stream, values.masks[0]);
		assert(mask_add(&stream, text, true, &whole));
		mask_stream_fini(&stream);
		cut(values.masks[1], text, data[1], &parts);
		assert(str_equal(buf_str(&whole), buf_str(&parts)));
		const enum mask_undone undone =
			mask_undo(values.masks[0], buf_str(&whole), false, &back);
		assert(undone == MASK_PLAIN || undone == MASK_UNDONE);
		assert(str_equal(text, undone == MASK_PLAIN ? buf_str(&whole)
							    : buf_str(&back)));
		/* Marks that a model makes up. */
		buf_clear(&back);
		(void)mask_undo(values.masks[0], text, true, &back);
	}
	buf_fini(&back);
	buf_fini(&parts);
	buf_fini(&whole);
	mask_free(values.masks[0]);
	mask_free(values.masks[1]);
	return 0;
}
