/*
 * proxy_hello_fuzz: any bytes as a client's first. A name that is found is one of the
 * grammar, or none, and cutting the greeting into other records does not change it.
 */
#include "proxy/http.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same messages in records of one byte each; 0 when they do not fit. */
static size_t cut(const uint8_t *data, size_t size, char *out, size_t max)
{
	size_t used = 0;

	for (size_t at = 0; at + 5 <= size;) {
		size_t length = (size_t)data[at + 3] << 8 | data[at + 4];
		at += 5;
		for (size_t i = 0; i < length && at < size; i++, at++) {
			if (used + 6 > max)
				return 0;
			memcpy(out + used, "\x16\x03\x01\0\x01", 5);
			out[used + 5] = (char)data[at];
			used += 6;
		}
	}
	return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[NETWORK_NAME_MAX + 1], same[NETWORK_NAME_MAX + 1], pieces[HELLO_MAX];
	struct network_host host;

	if (http_hello_read((struct str){(const char *)data, size}, name, NULL) != HELLO_GOOD)
		return 0;
	assert(name[0] == '\0' || network_parse_host(str_of(name), &host, NULL) ||
	       strchr(name, ':') != NULL);
	size_t used = cut(data, size, pieces, sizeof(pieces));
	if (used > 0) {
		assert(http_hello_read((struct str){pieces, used}, same, NULL) ==
		       HELLO_GOOD);
		assert(strcmp(name, same) == 0);
	}
	return 0;
}
