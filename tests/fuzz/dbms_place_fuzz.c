/*
 * dbms_place_fuzz: an address of a database, from a model or a variable. What is let through names a
 * file, or a host and a port; no sentence repeats what may be a password.
 */
#include "tools/databases/database_schema.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str address = {(const char *)data, size};
	struct dbms_place place;
	struct err err = {0};

	if (!dbms_place_parse(address, &place, &err)) {
		const size_t scheme = str_find(address, STR("://"), 0);

		assert(err.text[0] != '\0');
		/* The name before "://" is said back: nothing secret stands there. */
		if (scheme == (size_t)-1 ||
		    str_find(str_part(address, 0, scheme), STR("sEcReT"), 0) == (size_t)-1)
			assert(strstr(err.text, "sEcReT") == NULL);
		return 0;
	}
	assert(place.client != NULL);
	assert((place.path != NULL) == (place.host == NULL));
	assert(place.path == NULL || place.path[0] != '\0');
	assert(place.host == NULL || (place.host[0] != '\0' && place.port != 0));
	dbms_place_fini(&place);
	return 0;
}
