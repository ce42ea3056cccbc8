/*
 * toolbox_fuzz: what an executable may print about itself. What is let through has a name that
 * can be a tool's, names what it requires, and no argument's value becomes a second line.
 */
#include "plugins/run.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_lines(const struct plugin_schema *schema, struct str value)
{
	const struct run_order order = {.mode = schema->mode,
					.arguments = schema->arguments,
					.argument_count = schema->argument_count};
	auto_value struct value *arguments = value_new_object();
	struct arena arena;
	struct buf lines;
	size_t count = 0;

	arena_init(&arena);
	buf_init(&lines, 1 << 20);
	for (size_t i = 0; i < order.argument_count; i++)
		value_set_str(arguments, order.arguments[i].name, value);
	if (run_arguments_build(&order, arguments, &arena, NULL, 0, &count, &lines, NULL))
		assert(text_count_line_ends(buf_str(&lines)) == order.argument_count);
	buf_fini(&lines);
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	struct plugin_schema schema;
	struct err err = {0};

	if (!plugin_schema_parse(PLUGIN_TOOLBOX, text, &schema, &err)) {
		assert(err.text[0] != '\0');
		return 0;
	}
	assert(strncmp(schema.id, TOOLBOX_PREFIX, strlen(TOOLBOX_PREFIX)) == 0);
	assert(strlen(schema.id) <= PLUGIN_ID_MAX);
	assert(value_kind(schema.parameters) == VALUE_OBJECT);
	if (schema.mode == PLUGIN_TOOLBOX_TEXT) {
		try_lines(&schema, STR("plain"));
		try_lines(&schema, str_part(text, 0, 64));
	}
	plugin_schema_fini(&schema);
	return 0;
}
