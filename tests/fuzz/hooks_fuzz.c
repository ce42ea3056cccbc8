/*
 * Fuzz target of hooks: the text as a file of hooks, whose matchers are then tried; as what a
 * hook of each moment printed; and as the input that a hook gives a call, which must come back
 * as an object.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "extend/hook_call.h"
#include "extend/hook_output.h"
#include "extend/hooks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_file(struct str text)
{
	static const char *const names[] = {"MultiEdit", "Edit", "edit_file", NULL};
	struct hooks *hooks = hooks_new();
	struct err err;

	if (!hooks_parse(hooks, text, "fuzz.json", false, &err))
		assert(hooks->count == 0 && hooks->note_count == 0);
	for (size_t i = 0; i < hooks->count; i++) {
		assert(hooks->items[i].place == HOOK_IN_CELL);
		(void)hook_fits(&hooks->items[i], names);
	}
	hooks_free(hooks);
}

static void try_output(struct str text)
{
	for (int kind = 0; kind < HOOK_KINDS; kind++) {
		const struct hook hook = {.kind = (enum hook_kind)kind,
					  .command = "x",
					  .source = "fuzz.json"};
		const struct hook_output output = {.out = text};
		struct hook_said said;

		hook_said_init(&said);
		hook_output_read(&output, &hook, &said);
		assert(!said.failed || (said.input == NULL && said.decision == HOOK_SILENT));
		assert(said.decision != HOOK_DENY || said.reason.size > 0);
		hook_said_fini(&said);
	}
}

static void try_input(struct str text)
{
	static const char *const names[] = {"bash", "edit_file", "todo", "grep", "other"};
	auto_value struct value *input = NULL;

	if (!value_parse(text, 0, &input, NULL) || value_kind(input) != VALUE_OBJECT)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct tool tool = {.name = names[i]};
		auto_value struct value *ours = hook_call_back(&tool, input);
		struct hook_calls calls;

		assert(value_kind(ours) == VALUE_OBJECT);
		hook_calls_of(&tool, ours, "/w", &calls);
		assert(calls.count == 1);
		hook_calls_fini(&calls);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};

	try_file(text);
	try_output(text);
	try_input(text);
	return 0;
}
