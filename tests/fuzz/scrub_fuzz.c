/*
 * scrub_fuzz: any bytes in a stream. The first byte says which secret, the second how the
 * stream is cut. Cut or whole, the same bytes come out; as many as went in; each is the one
 * that went in or a star; and no form of the secret as a whole is left.
 */
#include "broker/scrub.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 8 << 20 };

static struct scrub *scrub_of(struct str secret, const char *user)
{
	struct scrub *scrub = scrub_new();

	(void)scrub_learn(scrub, secret, user, 0);
	return scrub;
}

static const char *const secrets[] = {"key-1234", "aaaaaaab", "%25\\u0061%", "a\\\\b\"/c"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scrub_stream stream;
	struct buf whole, cut, form;
	uint32_t seed;

	if (size < 2)
		return 0;
	struct str secret = str_of(secrets[data[0] % 4]);
	struct str bytes = {(const char *)data + 2, size - 2};
	struct scrub *scrub = scrub_of(secret, data[0] & 4 ? "u" : NULL);
	buf_init(&whole, OUT_MAX);
	buf_init(&cut, OUT_MAX);
	buf_init(&form, OUT_MAX);
	assert(scrub_whole(scrub, bytes, &whole));
	assert(whole.size == bytes.size);
	scrub_stream_init(&stream, scrub);
	seed = data[1];
	for (size_t at = 0, step; at < bytes.size; at += step) {
		seed = seed * 1103515245 + 12345;
		step = data[1] == 0 ? 1 : 1 + (seed >> 16) % data[1];
		assert(scrub_add(&stream, str_part(bytes, at, step), &cut));
	}
	assert(scrub_end(&stream, &cut));
	scrub_stream_fini(&stream);
	assert(str_equal(buf_str(&whole), buf_str(&cut)));
	for (size_t i = 0; i < bytes.size; i++)
		assert(whole.data[i] == bytes.data[i] || whole.data[i] == '*');
	assert(str_find(buf_str(&whole), secret, 0) == (size_t)-1);
	(void)buf_base64_add(secret, &form);
	assert(str_find(buf_str(&whole), buf_str(&form), 0) == (size_t)-1);
	buf_fini(&form);
	buf_fini(&cut);
	buf_fini(&whole);
	scrub_free(scrub);
	return 0;
}
