/*
 * Fuzz target of extend/allowed: the text as the entries of a skill, before a NUL byte, and as a
 * command that they let in or not, behind it.
 */
#include "extend/allowed.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PRINTED_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tool bash = {.name = "bash"}, other = {.name = "read_file"};
	const struct str text = {(const char *)data, size};
	const char *end = size > 0 ? memchr(text.data, '\0', size) : NULL;
	const size_t entries = end != NULL ? (size_t)(end - text.data) : size;
	auto_value struct value *matter = value_new_object(),
				*arguments = value_new_object();
	struct allowed allowed;
	struct buf printed;

	value_set_str(matter, "allowed-tools", str_part(text, 0, entries));
	value_set_str(arguments, "command", str_part(text, entries + 1, SIZE_MAX));
	allowed_take(&allowed, matter);
	assert(allowed.names != NULL);
	(void)allowed_has(&allowed, &bash, arguments);
	(void)allowed_has(&allowed, &other, arguments);
	buf_init(&printed, PRINTED_MAX);
	allowed_print(&allowed, &printed);
	assert(printed.size > 0);
	buf_fini(&printed);
	allowed_fini(&allowed);
	return 0;
}
