/* schema: rows to JSON Schema. */
#include "tool/schema.h"
#include "tool/schema_cap.h"
#include "tool/schema_parts.h"

#include <string.h>

enum { DESCRIPTION_MAX = 4096 };

bool schema_has_bounds(const struct tool_param *row)
{
	return row->max > row->min;
}

static void set_text_bounds(struct value *schema, const struct tool_param *row)
{
	if (!schema_has_bounds(row))
		return;
	value_set_integer(schema, "minLength", row->min);
	value_set_integer(schema, "maxLength", row->max);
}

static void set_list_bounds(struct value *schema, const struct tool_param *row)
{
	if (!schema_has_bounds(row))
		return;
	value_set_integer(schema, "minItems", row->min);
	value_set_integer(schema, "maxItems", row->max);
}

bool schema_is_deadline(const struct tool_param *row, const struct tool *tool)
{
	return tool->timeout_max_s > 0 && strcmp(row->name, "timeout_s") == 0;
}

/*
 * A ceiling that numbers are cut to is no `maximum`: a client that checks would refuse what is
 * taken. It is said in the description.
 */
static void set_number_bounds(struct value *schema, const struct tool_param *row)
{
	if (schema_has_bounds(row))
		value_set_integer(schema, "minimum", row->min);
	else if (row->kind != PARAM_INTEGER)
		value_set_integer(schema, "minimum", 0);
	if (row->kind == PARAM_SECONDS && (!schema_has_bounds(row) || row->min <= 0)) {
		value_remove(schema, "minimum");
		value_set_integer(schema, "exclusiveMinimum", 0);
	}
	if (row->kind == PARAM_ID && schema_has_bounds(row))
		value_set_integer(schema, "maximum", row->max);
}

static struct value *choices_of(const char *choices)
{
	struct value *list = value_new_array();
	struct str rest = str_of(choices), word;

	while (str_next_word(&rest, &word))
		value_append(list, value_new_str(word));
	return list;
}

static struct value *schema_of_rows(const struct tool_param *rows, const struct tool *tool);

static struct value *array_of(struct value *take_items, struct value *take_schema)
{
	value_set(take_schema, "items", take_items);
	return take_schema;
}

static struct value *text_schema(void)
{
	struct value *schema = value_new_object();

	value_set_text(schema, "type", "string");
	return schema;
}

static const char *type_of(enum param_kind kind)
{
	switch (kind) {
	case PARAM_COUNT:
	case PARAM_ID:
	case PARAM_INTEGER:
		return "integer";
	case PARAM_SECONDS:
		return "number";
	case PARAM_BOOLEAN:
		return "boolean";
	case PARAM_LIST:
	case PARAM_TEXTS:
	case PARAM_ARGV:
		return "array";
	case PARAM_TEXT:
	case PARAM_COMMAND:
	case PARAM_PATH:
	case PARAM_FOLDER:
	case PARAM_CHOICE:
		break;
	}
	return "string";
}

static void set_kind(struct value *schema, const struct tool_param *row,
		     const struct tool *tool)
{
	switch (row->kind) {
	case PARAM_TEXT:
	case PARAM_COMMAND:
		set_text_bounds(schema, row);
		break;
	case PARAM_PATH:
	case PARAM_FOLDER:
		value_set_integer(schema, "minLength", 1);
		break;
	case PARAM_COUNT:
	case PARAM_ID:
	case PARAM_INTEGER:
	case PARAM_SECONDS:
		set_number_bounds(schema, row);
		break;
	case PARAM_CHOICE:
		value_set(schema, "enum", choices_of(row->choices));
		break;
	case PARAM_LIST:
		set_list_bounds(schema, row);
		(void)array_of(schema_of_rows(row->rows, tool), schema);
		break;
	case PARAM_TEXTS:
	case PARAM_ARGV:
		set_list_bounds(schema, row);
		(void)array_of(text_schema(), schema);
		break;
	case PARAM_BOOLEAN:
		break;
	}
}

static struct value *schema_of_row(const struct tool_param *row, const struct tool *tool)
{
	struct value *schema = value_new_object();
	struct value *initial = NULL;
	struct buf description;

	value_set_text(schema, "type", type_of(row->kind));
	buf_init(&description, DESCRIPTION_MAX);
	(void)buf_adds(&description, row->description ? row->description : "");
	schema_cap_describe(row, tool, &description);
	if (description.size)
		value_set_str(schema, "description", buf_str(&description));
	buf_fini(&description);
	if (row->initial && value_parse(str_of(row->initial), 0, &initial, NULL))
		value_set(schema, "default", initial);
	set_kind(schema, row, tool);
	return schema;
}

static struct value *schema_of_rows(const struct tool_param *rows, const struct tool *tool)
{
	struct value *schema = value_new_object();
	struct value *properties = value_new_object();
	struct value *required = value_new_array();

	for (const struct tool_param *row = rows; row && row->name; row++) {
		value_set(properties, row->name, schema_of_row(row, tool));
		if (row->required)
			value_append(required, value_new_text(row->name));
	}
	value_set_text(schema, "type", "object");
	value_set(schema, "properties", properties);
	if (value_count(required))
		value_set(schema, "required", required);
	else
		value_free(required);
	value_set_boolean(schema, "additionalProperties", false);
	return schema;
}

struct value *schema_of_tool(const struct tool *tool)
{
	if (tool->schema)
		return value_copy(tool->schema);
	return schema_of_rows(tool->params, tool);
}
