/* Fuzz target of model/anthropic behind model/reader (provider.h). */
#include "provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every block has a type, a text says something, a call has an id, a name and an object. */
static void look(const struct value *request)
{
	const struct value *message = value_item(value_member(request, "messages"), 0);
	const struct value *content = value_member(message, "content");

	for (size_t i = 0; i < value_count(content); i++) {
		const struct value *block = value_item(content, i);
		struct str type = value_str(value_member(block, "type"));

		fuzz_check(type.size > 0);
		if (str_is(type, "text"))
			fuzz_check(str_trim(value_str(value_member(block, "text"))).size >
				   0);
		if (!str_is(type, "tool_use"))
			continue;
		fuzz_check(value_str(value_member(block, "id")).size > 0);
		fuzz_check(value_str(value_member(block, "name")).size > 0);
		fuzz_check(value_kind(value_member(block, "input")) == VALUE_OBJECT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_provider(&anthropic_provider, data, size, look);
}
