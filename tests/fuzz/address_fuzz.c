/*
 * address_fuzz: any text as an address. One that is taken is itself, is plain, begins with
 * its scheme and its host, and names no port of a service of the machine.
 */
#include "policy/address.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	struct address address, again;
	struct err err = {0};

	if (!address_parse(text, &address, &err)) {
		assert(err.text[0] != '\0');
		return 0;
	}
	assert(size <= ADDRESS_MAX && strlen(address.text) == size &&
	       memcmp(address.text, data, size) == 0);
	for (size_t i = 0; i < size; i++)
		assert(data[i] > ' ' && data[i] < 0x7f && data[i] != '\\' && data[i] != '"');
	assert(address.host.text[0] != '\0' && address.port != 0);
	assert(address.back == 0 || address.back >= 1024);
	assert(address_parse(str_of(address.text), &again, NULL) &&
	       network_same_host(&address.host, &again.host) && again.back == address.back);
	return 0;
}
