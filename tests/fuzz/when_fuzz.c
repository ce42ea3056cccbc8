/*
 * Fuzz target of agent/when: what is taken has one form, which means the same, and a next
 * time that lies ahead or none.
 */
#include "agent/when.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = {(const char *)data, size};
	struct when when, again;
	struct buf form, second;
	int64_t next_s;

	buf_init(&form, 4096);
	buf_init(&second, 4096);
	if (when_parse(text, &when, NULL)) {
		when_print(&when, &form);
		if (!when_parse(buf_str(&form), &again, NULL))
			abort();
		when_print(&again, &second);
		if (strcmp(form.data, second.data) != 0)
			abort();
		if (when_next(&when, "UTC", 0, 1000000000, &next_s) && next_s <= 1000000000)
			abort();
	}
	buf_fini(&form);
	buf_fini(&second);
	return 0;
}
