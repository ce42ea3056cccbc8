/* plugin_schema: from text to a checked description; see plugin_schema.h. */
#include "plugins/plugin_schema.h"

#include "base/buf.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	QUOTED_MAX = 60, /* of output that is no JSON */
	VERSION_MAX = 64,
	DESCRIPTION_MAX = 8 << 10,
	KEY_MAX = 128,
	ARGUMENT_MAX = (128 << 10) - 1, /* what the kernel passes in one argument */
};

static const char *const modes[] = {
	[PLUGIN_FLAGS] = "flags",
	[PLUGIN_POSITIONAL] = "positional",
	[PLUGIN_JSON] = "json",
	[PLUGIN_TOOLBOX_JSON] = "toolbox-json",
	[PLUGIN_TOOLBOX_TEXT] = "toolbox-text",
};

const char *plugin_mode_name(enum plugin_mode mode)
{
	return modes[mode];
}

char *plugin_schema_variable(const char *name)
{
	struct buf variable;

	buf_init(&variable, KEY_MAX + 64);
	(void)buf_adds(&variable, "AGENT_TOOL_CONFIG_");
	for (const char *at = name; *at; at++)
		(void)buf_addc(&variable, isalnum((unsigned char)*at)
						  ? (char)toupper((unsigned char)*at)
						  : '_');
	return buf_take(&variable);
}

static void warn(struct plugin_schema *schema, const char *format, const char *name)
{
	struct buf text;

	buf_init(&text, 1024);
	(void)buf_adds(&text, "\"");
	text_add_name(&text, str_part(str_of(name), 0, KEY_MAX));
	(void)buf_addf(&text, "\" %s", format);
	value_append(schema->warnings, value_new_str(buf_str(&text)));
	buf_fini(&text);
}

bool plugin_schema_is_name(struct str name)
{
	bool fine = name.size > 0 && name.size <= PLUGIN_ID_MAX;

	for (size_t i = 0; fine && i < name.size; i++)
		fine = isalnum((unsigned char)name.data[i]) || name.data[i] == '_' ||
		       name.data[i] == '-';
	return fine;
}

static bool wrong(struct err *err, const char *where, const char *wanted,
		  const struct value *value)
{
	if (!value)
		return err_set(err, EINVAL, "schema: \"%s\" is missing; it must be %s",
			       where, wanted);
	return err_set(err, EINVAL, "schema: \"%s\" must be %s, not %s", where, wanted,
		       value_kind_name(value_kind(value)));
}

static bool read_text(const struct value *object, const char *key, size_t max,
		      char **text, struct err *err)
{
	const struct value *value = value_member(object, key);
	struct str given = value_str(value);

	if (value_kind(value) != VALUE_STRING)
		return wrong(err, key, "text", value);
	if (given.size == 0 || given.size > max || memchr(given.data, '\0', given.size))
		return err_set(err, EINVAL,
			       "schema: \"%s\" must be 1 to %zu bytes of text without NUL",
			       key, max);
	*text = memory_copy_str(given);
	return true;
}

static bool read_mode(const struct value *root, enum plugin_mode *mode, struct err *err)
{
	const struct value *value = value_member(root, "args_mode");

	for (size_t i = 0; i <= PLUGIN_JSON; i++) {
		if (str_is(value_str(value), modes[i])) {
			*mode = (enum plugin_mode)i;
			return true;
		}
	}
	return wrong(err, "args_mode", "\"flags\", \"positional\" or \"json\"", value);
}

/* The one function there is. */
static bool read_function(const struct value *root, struct plugin_schema *schema,
			  struct err *err)
{
	const struct value *tools = value_member(root, "tools");
	const struct value *tool = value_item(tools, 0);
	const struct value *function = value_member(tool, "function");
	const struct value *parameters = value_member(function, "parameters");
	const struct value *type = value_member(tool, "type");
	struct str name = value_str(value_member(function, "name"));
	struct str description = value_str(value_member(function, "description"));

	if (value_kind(tools) != VALUE_ARRAY)
		return wrong(err, "tools", "a list with one tool", tools);
	if (value_count(tools) != 1)
		return err_set(err, EINVAL,
			       "schema: \"tools\" has %zu entries; one file is exactly one tool",
			       value_count(tools));
	if (type && !str_is(value_str(type), "function"))
		return err_set(err, EINVAL, "schema: \"tools/0/type\" must be \"function\"");
	if (value_kind(function) != VALUE_OBJECT)
		return wrong(err, "tools/0/function", "an object", function);
	if (!str_is(name, schema->id))
		return err_set(err, EINVAL,
			       "schema: \"id\" is \"%s\" and \"tools/0/function/name\" is \"%.*s\": "
			       "they must be the same",
			       schema->id,
			       (int)(name.size < PLUGIN_ID_MAX ? name.size : PLUGIN_ID_MAX),
			       name.size ? name.data : "");
	if (description.size > DESCRIPTION_MAX ||
	    (description.size && memchr(description.data, '\0', description.size)))
		return err_set(err, EINVAL,
			       "schema: the description is over %d bytes, or holds NUL",
			       DESCRIPTION_MAX);
	if (parameters && value_kind(parameters) != VALUE_OBJECT)
		return wrong(err, "tools/0/function/parameters", "an object", parameters);
	if (!description.size)
		warn(schema, "has no description: a model must guess what it is for",
		     schema->id);
	schema->description = memory_copy_str(description);
	schema->parameters = parameters ? value_copy(parameters) : value_new_object();
	return true;
}

static bool check_property(struct plugin_schema *schema, const char *name,
			   const struct value *property, struct err *err)
{
	struct str type = value_str(value_member(property, "type"));
	const struct value *longest = value_member(property, "maxLength");
	bool words = schema->mode == PLUGIN_FLAGS || schema->mode == PLUGIN_POSITIONAL;

	if (strlen(name) > KEY_MAX || strpbrk(name, " \t\r\n=") != NULL || name[0] == '-')
		return err_set(err, EINVAL,
			       "schema: the name of property \"%.64s\" cannot be that of an option "
			       "(over %d bytes, a blank, '=', or '-' at its begin)",
			       name, KEY_MAX);
	if (words && (str_is(type, "array") || str_is(type, "object")))
		warn(schema,
		     "comes as JSON in one argument; args_mode json is easier to read",
		     name);
	if (words && value_is_number(longest) && value_number(longest) > ARGUMENT_MAX)
		warn(schema,
		     "may be longer than one argument can be (128 KiB); use args_mode json",
		     name);
	return true;
}

static bool check_parameters(struct plugin_schema *schema, struct err *err)
{
	const struct value *type = value_member(schema->parameters, "type");
	const struct value *properties = value_member(schema->parameters, "properties");

	if (!type)
		value_set_text(schema->parameters, "type", "object");
	else if (!str_is(value_str(type), "object"))
		return err_set(
			err, EINVAL,
			"schema: \"parameters/type\" must be \"object\": arguments have names");
	if (properties && value_kind(properties) != VALUE_OBJECT)
		return wrong(err, "parameters/properties", "an object", properties);
	if (value_count(properties) > PLUGIN_PROPERTIES_MAX)
		return err_set(err, EINVAL, "schema: %zu properties, at most %d are taken",
			       value_count(properties), PLUGIN_PROPERTIES_MAX);
	for (void *at = value_first(properties); at; at = value_next(properties, at)) {
		if (!check_property(schema, value_key(at), value_at(at), err))
			return false;
	}
	return true;
}

/* A default that the list of positions names is one of the property, too. */
static void take_default(struct plugin_schema *schema, const char *name,
			 const struct value *initial)
{
	struct value *property =
		value_member(value_member(schema->parameters, "properties"), name);

	if (initial && value_kind(property) == VALUE_OBJECT &&
	    !value_member(property, "default"))
		value_set(property, "default", value_copy(initial));
}

static bool read_position(struct plugin_schema *schema, const struct value *item,
			  struct err *err)
{
	const char *name = value_text(value_member(item, "name"));
	const struct value *required = value_member(item, "required");
	const struct value *initial = value_member(item, "default");
	struct value *position = value_new_object();

	if (!name || !value_member(value_member(schema->parameters, "properties"), name)) {
		value_free(position);
		return err_set(err, EINVAL,
			       "schema: \"positional\" names \"%.64s\", which is no property of the "
			       "parameters",
			       name ? name : "(nothing)");
	}
	for (size_t i = 0; i < value_count(schema->positional); i++) {
		if (str_is(value_str(value_member(value_item(schema->positional, i), "name")),
			   name)) {
			value_free(position);
			return err_set(err, EINVAL,
				       "schema: \"positional\" names \"%.64s\" twice",
				       name);
		}
	}
	value_set_text(position, "name", name);
	value_set_boolean(position, "required", value_is_true(required));
	if (initial)
		value_set(position, "default", value_copy(initial));
	value_append(schema->positional, position);
	take_default(schema, name, initial);
	return true;
}

static bool read_positional(const struct value *root, struct plugin_schema *schema,
			    struct err *err)
{
	const struct value *list = value_member(root, "positional");
	const struct value *properties = value_member(schema->parameters, "properties");

	if (schema->mode != PLUGIN_POSITIONAL)
		return true;
	if (value_kind(list) != VALUE_ARRAY)
		return wrong(err, "positional", "a list, in this args_mode", list);
	if (value_count(list) > PLUGIN_PROPERTIES_MAX)
		return err_set(err, EINVAL, "schema: \"positional\" is over %d entries long",
			       PLUGIN_PROPERTIES_MAX);
	for (size_t i = 0; i < value_count(list); i++) {
		if (!read_position(schema, value_item(list, i), err))
			return false;
	}
	for (void *at = value_first(properties); at; at = value_next(properties, at)) {
		bool named = false;

		for (size_t i = 0; i < value_count(list); i++)
			named = named ||
				str_is(value_str(value_member(value_item(list, i), "name")),
				       value_key(at));
		if (!named)
			warn(schema, "is in no position: the script never gets it",
			     value_key(at));
	}
	return true;
}

static bool read_key(struct plugin_schema *schema, const struct value *item, struct err *err)
{
	struct str key = value_str(item);

	if (key.size == 0 || key.size > KEY_MAX || memchr(key.data, '\0', key.size))
		return err_set(err, EINVAL,
			       "schema: \"config_keys\" holds names of 1 to %d bytes",
			       KEY_MAX);
	auto_free char *variable = plugin_schema_variable(key.data);
	for (size_t i = 0; i < value_count(schema->config_keys); i++) {
		const char *other = value_text(value_item(schema->config_keys, i));
		auto_free char *taken = plugin_schema_variable(other);

		if (strcmp(variable, taken) == 0)
			return err_set(err, EINVAL,
				       "schema: config keys \"%s\" and \"%s\" would both be %s",
				       other, key.data, variable);
	}
	value_append(schema->config_keys, value_new_str(key));
	return true;
}

static bool read_keys(const struct value *root, struct plugin_schema *schema, struct err *err)
{
	const struct value *list = value_member(root, "config_keys");

	if (list && value_kind(list) != VALUE_ARRAY)
		return wrong(err, "config_keys", "a list of names", list);
	if (value_count(list) > PLUGIN_KEYS_MAX)
		return err_set(err, EINVAL,
			       "schema: \"config_keys\" is over %d entries long",
			       PLUGIN_KEYS_MAX);
	for (size_t i = 0; i < value_count(list); i++) {
		if (!read_key(schema, value_item(list, i), err))
			return false;
	}
	return true;
}

static bool refuse_text(struct str text, const struct err *why, struct err *err)
{
	struct buf first;

	buf_init(&first, 8 * QUOTED_MAX);
	(void)value_quote(str_part(text, 0,
				   text_character_border(text, QUOTED_MAX < text.size
								       ? QUOTED_MAX
								       : text.size)),
			  &first);
	(void)err_set(err, EINVAL, "schema: not one JSON object: %s; it begins with %s",
		      why->text, first.data);
	buf_fini(&first);
	return false;
}

bool plugin_schema_parse(struct str text, struct plugin_schema *schema, struct err *err)
{
	auto_value struct value *root = NULL;
	struct err why = {0};

	if (text.size > PLUGIN_SCHEMA_MAX)
		return err_set(err, EFBIG, "schema: over %d bytes", PLUGIN_SCHEMA_MAX);
	if (str_trim(text).size == 0)
		return err_set(
			err, EINVAL,
			"schema: nothing was printed; `schema` must print one JSON object");
	if (!value_parse(text, 0, &root, &why))
		return refuse_text(text, &why, err);
	return plugin_schema_read(root, NULL, schema, err);
}

bool plugin_schema_read(const struct value *root, const enum plugin_mode *mode,
			struct plugin_schema *schema, struct err *err)
{
	struct plugin_schema made = {0};

	if (value_kind(root) != VALUE_OBJECT)
		return wrong(err, "(the whole)", "an object", root);
	made.positional = value_new_array();
	made.config_keys = value_new_array();
	made.warnings = value_new_array();
	if (mode != NULL)
		made.mode = *mode;
	bool ok = read_text(root, "id", PLUGIN_ID_MAX, &made.id, err) &&
		  (plugin_schema_is_name(str_of(made.id)) ||
		   err_set(err, EINVAL,
			   "schema: \"id\" is made of 1 to %d letters, digits, '_' and '-'",
			   PLUGIN_ID_MAX)) &&
		  read_text(root, "version", VERSION_MAX, &made.version, err) &&
		  (mode != NULL || read_mode(root, &made.mode, err)) &&
		  read_function(root, &made, err) && check_parameters(&made, err) &&
		  read_positional(root, &made, err) && read_keys(root, &made, err);
	if (!ok) {
		plugin_schema_fini(&made);
		return false;
	}
	*schema = made;
	return true;
}

void plugin_schema_fini(struct plugin_schema *schema)
{
	if (!schema)
		return;
	free(schema->id);
	free(schema->version);
	free(schema->description);
	value_free(schema->parameters);
	value_free(schema->positional);
	value_free(schema->config_keys);
	value_free(schema->warnings);
	*schema = (struct plugin_schema){0};
}
