/* Fuzz target of model/ollama behind model/reader (provider.h). */
#include "provider.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every message has a text, and every call a name and an object. */
static void look(const struct value *request)
{
	const struct value *message = value_item(value_member(request, "messages"), 0);
	const struct value *calls = value_member(message, "tool_calls");

	fuzz_check(value_text(value_member(message, "content")) != NULL);
	for (size_t i = 0; i < value_count(calls); i++) {
		const struct value *function =
			value_member(value_item(calls, i), "function");

		fuzz_check(value_str(value_member(function, "name")).size > 0);
		fuzz_check(value_kind(value_member(function, "arguments")) == VALUE_OBJECT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_provider(&ollama_provider, data, size, look);
}
