/*
 * plugin_schema_fuzz: what a script may print as its description. What is let through can be a
 * tool's name and variables; nothing that stands in it is longer than the whole.
 */
#include "plugins/describe.h"
#include "plugins/source.h"

#include "base/memory.h"

#include <assert.h>
#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_schema(struct str text)
{
	struct plugin_schema schema;
	struct err err = {0};

	if (!plugin_schema_parse(PLUGIN_SCRIPT, text, &schema, &err)) {
		assert(err.text[0] != '\0');
		return;
	}
	assert(strlen(schema.id) > 0 && strlen(schema.id) <= PLUGIN_ID_MAX);
	for (const char *at = schema.id; *at; at++)
		assert(isalnum((unsigned char)*at) || *at == '_' || *at == '-');
	assert(value_kind(schema.parameters) == VALUE_OBJECT);
	for (size_t i = 0; i < value_count(schema.config_keys); i++) {
		auto_free char *variable = plugin_schema_variable(
			value_text(value_item(schema.config_keys, i)));

		assert(strchr(variable, '=') == NULL);
	}
	for (size_t i = 0; i < schema.argument_count; i++)
		assert(value_member(value_member(schema.parameters, "properties"),
				    schema.arguments[i].name) != NULL);
	plugin_schema_fini(&schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	struct plugin_manifest manifest;

	try_schema(text);
	if (plugin_manifest_parse(text, &manifest, NULL)) {
		for (size_t i = 0; i < value_count(manifest.files); i++)
			assert(value_text(value_item(manifest.files, i))[0] != '/');
		plugin_manifest_fini(&manifest);
	}
	return 0;
}
