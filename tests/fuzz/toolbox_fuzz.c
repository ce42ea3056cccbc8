/*
 * toolbox_fuzz: what an executable may print about itself. What is let through has a name that
 * can be a tool's, names what it requires, and no argument's value becomes a second line.
 */
#include "plugins/describe.h"

#include "base/memory.h"
#include "base/text/text.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_lines(const struct plugin_schema *schema, struct str value)
{
	const struct value *required = value_member(schema->parameters, "required");
	auto_value struct value *arguments = value_new_object();
	struct buf lines;

	buf_init(&lines, 1 << 20);
	for (size_t i = 0; i < value_count(required); i++)
		value_set_str(arguments, value_text(value_item(required, i)), value);
	if (describe_toolbox_lines(required, arguments, &lines, NULL))
		assert(text_count_line_ends(buf_str(&lines)) == value_count(required));
	buf_fini(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	struct plugin_schema schema;
	struct err err = {0};

	if (!describe_toolbox_parse(text, &schema, &err)) {
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
