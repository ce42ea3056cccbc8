/* Fuzz target of model/openai_chat behind model/reader (provider.h). */
#include "provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Calls have a name, and arguments that are the text of an object. */
static void look(const struct value *request)
{
	const struct value *message = value_item(value_member(request, "messages"), 0);
	const struct value *calls = value_member(message, "tool_calls");

	for (size_t i = 0; i < value_count(calls); i++) {
		const struct value *function =
			value_member(value_item(calls, i), "function");
		auto_value struct value *arguments = NULL;

		fuzz_check(value_str(value_member(function, "name")).size > 0);
		fuzz_check(value_parse(value_str(value_member(function, "arguments")), 0,
				       &arguments, NULL));
		fuzz_check(value_kind(arguments) == VALUE_OBJECT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_provider(&openai_chat_provider, data, size, look);
}
