/*
 * front_matter_fuzz: any text as a role's file; what is taken can be printed and read
 * as a role.
 */
#include "base/text/front_matter.h"

#include "front/agents.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Escapes make a text up to six times as long. */
enum { PRINTED_MAX = 8 * FRONT_MATTER_TEXT_MAX };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	auto_value struct value *object = NULL, *role = NULL;
	struct buf printed;
	struct err err;

	if (!front_matter_parse(text, &object, &err))
		return 0;
	assert(value_kind(object) == VALUE_OBJECT);
	buf_init(&printed, PRINTED_MAX);
	assert(value_print(object, 0, &printed));
	buf_fini(&printed);
	if (agents_role_read("agents/coder.md", text, &role, &err))
		assert(value_kind(role) == VALUE_OBJECT && !value_member(role, "name"));
	return 0;
}
