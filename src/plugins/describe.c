/* describe: parses what a script prints about itself into a checked description. */

#include "plugins/describe.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	QUOTED_MAX = 60, /* of output that is no JSON, in a sentence */
	DESCRIPTION_MAX = 8 << 10,
	KEY_MAX = 128,
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

const char *plugin_dialect_question(enum plugin_dialect dialect)
{
	return dialect == PLUGIN_TOOLBOX ? "describe" : "schema";
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

static void warn(struct plugin_schema *schema, const char *name, const char *what)
{
	struct buf text;

	buf_init(&text, 1024);
	(void)buf_adds(&text, "\"");
	text_add_name(&text, str_part(str_of(name), 0, KEY_MAX));
	(void)buf_addf(&text, "\" %s", what);
	value_append(schema->warnings, value_new_str(buf_str(&text)));
	buf_fini(&text);
}

/* The parts that both dialects describe. */

/* Name SCHEMA by PREFIX and NAME. False: a tool may not have this name. */
static bool set_id(struct plugin_schema *schema, const char *prefix, struct str name)
{
	bool fine = name.size > 0 && name.size <= PLUGIN_ID_MAX - strlen(prefix);

	for (size_t i = 0; fine && i < name.size; i++)
		fine = isalnum((unsigned char)name.data[i]) || name.data[i] == '_' ||
		       name.data[i] == '-';
	if (fine)
		(void)snprintf(schema->id, sizeof(schema->id), "%s%.*s", prefix,
			       (int)name.size, name.data);
	return fine;
}

static bool set_description(struct plugin_schema *schema, struct str text, struct err *err)
{
	if (text.size > DESCRIPTION_MAX ||
	    (text.size > 0 && memchr(text.data, '\0', text.size) != NULL))
		return err_set(err, EINVAL, "the description is over %d bytes, or holds NUL",
			       DESCRIPTION_MAX);
	if (text.size == 0)
		warn(schema, schema->id,
		     "has no description: a model must guess what it is for");
	schema->description = memory_copy_str(text);
	return true;
}

static struct value *properties_of(const struct plugin_schema *schema)
{
	return value_member(schema->parameters, "properties");
}

static bool is_argument(const struct plugin_schema *schema, const char *name)
{
	bool found = false;

	for (size_t i = 0; i < schema->argument_count; i++)
		found = found || strcmp(schema->arguments[i].name, name) == 0;
	return found;
}

static bool wrong(struct err *err, const char *where, const char *wanted,
		  const struct value *value)
{
	if (value == NULL)
		return err_set(err, EINVAL, "\"%s\" is missing; it must be %s", where,
			       wanted);
	return err_set(err, EINVAL, "\"%s\" must be %s, not %s", where, wanted,
		       value_kind_name(value_kind(value)));
}

static bool check_property(struct plugin_schema *schema, const char *name,
			   const struct value *property, struct err *err)
{
	struct str type = value_str(value_member(property, "type"));
	const struct value *longest = value_member(property, "maxLength");
	bool words = schema->mode == PLUGIN_FLAGS || schema->mode == PLUGIN_POSITIONAL;

	if (strlen(name) > KEY_MAX || strpbrk(name, " \t\r\n=") != NULL || name[0] == '-')
		return err_set(err, EINVAL,
			       "the name of property \"%.64s\" cannot be that of an option "
			       "(over %d bytes, a blank, '=', or '-' at its begin)",
			       name, KEY_MAX);
	if (words && (str_is(type, "array") || str_is(type, "object")))
		warn(schema, name,
		     "comes as JSON in one argument; args_mode json is easier to read");
	if (words && value_is_number(longest) && value_number(longest) > KERNEL_ARGUMENT_MAX)
		warn(schema, name,
		     "may be longer than one argument can be (128 KiB); use args_mode json");
	return true;
}

/* KEY is the name under which the description holds the parameters. */
static bool check_parameters(struct plugin_schema *schema, const char *key, struct err *err)
{
	const struct value *type = value_member(schema->parameters, "type");
	const struct value *properties = properties_of(schema);

	if (properties != NULL && value_kind(properties) != VALUE_OBJECT)
		return err_set(err, EINVAL, "\"%s/properties\" must be an object, not %s",
			       key, value_kind_name(value_kind(properties)));
	if (type == NULL)
		value_set_text(schema->parameters, "type", "object");
	else if (!str_is(value_str(type), "object"))
		return err_set(err, EINVAL,
			       "\"%s/type\" must be \"object\": arguments have names", key);
	if (value_count(properties) > PLUGIN_PROPERTIES_MAX)
		return err_set(err, EINVAL, "%zu properties, at most %d are taken",
			       value_count(properties), PLUGIN_PROPERTIES_MAX);
	for (void *at = value_first(properties); at; at = value_next(properties, at)) {
		if (!check_property(schema, value_key(at), value_at(at), err))
			return false;
	}
	return true;
}

static void add_argument(struct plugin_schema *schema, const char *name, bool required,
			 const struct value *initial)
{
	schema->arguments[schema->argument_count++] =
		(struct plugin_argument){name, required, initial};
}

static bool add_position(struct plugin_schema *schema, const struct value *item,
			 struct err *err)
{
	const char *name = value_text(value_member(item, "name"));
	struct value *property = name ? value_member(properties_of(schema), name) : NULL;
	const struct value *initial = value_member(item, "default");

	if (property == NULL)
		return err_set(err, EINVAL,
			       "\"positional\" names \"%.64s\", which is no property of the "
			       "parameters",
			       name ? name : "(nothing)");
	if (is_argument(schema, name))
		return err_set(err, EINVAL, "\"positional\" names \"%.64s\" twice", name);
	add_argument(schema, name, value_is_true(value_member(item, "required")), initial);
	/* A default in the list of positions is also a default of the property. */
	if (initial != NULL && value_kind(property) == VALUE_OBJECT &&
	    value_member(property, "default") == NULL)
		value_set(property, "default", value_copy(initial));
	return true;
}

/* List the arguments in the order in which the script gets them. */
static bool set_arguments(struct plugin_schema *schema, const struct value *positional,
			  struct err *err)
{
	const struct value *properties = properties_of(schema);
	const bool by_position = schema->mode == PLUGIN_POSITIONAL;

	if (by_position && value_kind(positional) != VALUE_ARRAY)
		return wrong(err, "positional", "a list, in this args_mode", positional);
	if (by_position && value_count(positional) > PLUGIN_PROPERTIES_MAX)
		return err_set(err, EINVAL, "\"positional\" is over %d entries long",
			       PLUGIN_PROPERTIES_MAX);
	schema->arguments = memory_array(PLUGIN_PROPERTIES_MAX, sizeof(*schema->arguments));
	for (size_t i = 0; by_position && i < value_count(positional); i++) {
		if (!add_position(schema, value_item(positional, i), err))
			return false;
	}
	for (void *at = value_first(properties); at; at = value_next(properties, at)) {
		if (!by_position)
			add_argument(schema, value_key(at), false, NULL);
		else if (!is_argument(schema, value_key(at)))
			warn(schema, value_key(at),
			     "is in no position: the script never gets it");
	}
	return true;
}

/* The description that a script of the contract prints: one JSON object. */

static bool read_version(const struct value *root, struct plugin_schema *schema,
			 struct err *err)
{
	const struct value *value = value_member(root, "version");
	struct str given = value_str(value);

	if (value_kind(value) != VALUE_STRING)
		return wrong(err, "version", "text", value);
	if (given.size == 0 || given.size > PLUGIN_VERSION_MAX ||
	    memchr(given.data, '\0', given.size) != NULL)
		return err_set(err, EINVAL,
			       "\"version\" must be 1 to %d bytes of text without NUL",
			       PLUGIN_VERSION_MAX);
	(void)snprintf(schema->version, sizeof(schema->version), "%.*s", (int)given.size,
		       given.data);
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

/* Read the function, of which there is exactly one. */
static bool read_function(const struct value *root, struct plugin_schema *schema,
			  struct err *err)
{
	const struct value *tools = value_member(root, "tools");
	const struct value *tool = value_item(tools, 0);
	const struct value *function = value_member(tool, "function");
	const struct value *parameters = value_member(function, "parameters");
	const struct value *type = value_member(tool, "type");
	struct str name = value_str(value_member(function, "name"));

	if (value_kind(tools) != VALUE_ARRAY)
		return wrong(err, "tools", "a list with one tool", tools);
	if (value_count(tools) != 1)
		return err_set(err, EINVAL,
			       "\"tools\" has %zu entries; one file is exactly one tool",
			       value_count(tools));
	if (type != NULL && !str_is(value_str(type), "function"))
		return err_set(err, EINVAL, "\"tools/0/type\" must be \"function\"");
	if (value_kind(function) != VALUE_OBJECT)
		return wrong(err, "tools/0/function", "an object", function);
	if (!str_is(name, schema->id))
		return err_set(err, EINVAL,
			       "\"id\" is \"%s\" and \"tools/0/function/name\" is \"%.*s\": "
			       "they must be the same",
			       schema->id,
			       (int)(name.size < PLUGIN_ID_MAX ? name.size : PLUGIN_ID_MAX),
			       name.size ? name.data : "");
	if (parameters != NULL && value_kind(parameters) != VALUE_OBJECT)
		return wrong(err, "tools/0/function/parameters", "an object", parameters);
	schema->parameters = parameters ? value_ref(parameters) : value_new_object();
	return set_description(schema, value_str(value_member(function, "description")),
			       err);
}

static bool read_key(struct plugin_schema *schema, const struct value *item, struct err *err)
{
	struct str key = value_str(item);

	if (key.size == 0 || key.size > KEY_MAX || memchr(key.data, '\0', key.size))
		return err_set(err, EINVAL,
			       "\"config_keys\" holds names of 1 to %d bytes", KEY_MAX);
	auto_free char *variable = plugin_schema_variable(key.data);
	for (size_t i = 0; i < value_count(schema->config_keys); i++) {
		const char *other = value_text(value_item(schema->config_keys, i));
		auto_free char *taken = plugin_schema_variable(other);

		if (strcmp(variable, taken) == 0)
			return err_set(err, EINVAL,
				       "config keys \"%s\" and \"%s\" would both be %s",
				       other, key.data, variable);
	}
	value_append(schema->config_keys, value_ref(item));
	return true;
}

static bool read_keys(const struct value *root, struct plugin_schema *schema, struct err *err)
{
	const struct value *list = value_member(root, "config_keys");

	if (list != NULL && value_kind(list) != VALUE_ARRAY)
		return wrong(err, "config_keys", "a list of names", list);
	if (value_count(list) > PLUGIN_KEYS_MAX)
		return err_set(err, EINVAL, "\"config_keys\" is over %d entries long",
			       PLUGIN_KEYS_MAX);
	for (size_t i = 0; i < value_count(list); i++) {
		if (!read_key(schema, value_item(list, i), err))
			return false;
	}
	return true;
}

static bool refuse_text(struct str text, const struct err *why, struct err *err)
{
	const size_t most = QUOTED_MAX < text.size ? QUOTED_MAX : text.size;
	struct buf first;

	buf_init(&first, 8 * QUOTED_MAX);
	(void)value_quote(str_part(text, 0, text_character_border(text, most)), &first);
	(void)err_set(err, EINVAL, "not one JSON object: %s; it begins with %s",
		      why->text, first.data);
	buf_fini(&first);
	return false;
}

static bool read_script(struct str text, struct plugin_schema *schema, struct err *err)
{
	struct err why = {0};

	if (!value_parse(text, 0, &schema->described, &why))
		return refuse_text(text, &why, err);
	const struct value *root = schema->described;
	const struct value *id = value_member(root, "id");
	if (value_kind(root) != VALUE_OBJECT)
		return wrong(err, "(the whole)", "an object", root);
	if (value_kind(id) != VALUE_STRING)
		return wrong(err, "id", "text", id);
	if (!set_id(schema, "", value_str(id)))
		return err_set(err, EINVAL,
			       "\"id\" is made of 1 to %d letters, digits, '_' and '-'",
			       PLUGIN_ID_MAX);
	return read_version(root, schema, err) && read_mode(root, &schema->mode, err) &&
	       read_function(root, schema, err) &&
	       check_parameters(schema, "parameters", err) &&
	       set_arguments(schema, value_member(root, "positional"), err) &&
	       read_keys(root, schema, err);
}

/* The description that a toolbox prints: lines, or a JSON object of another form. */

static const char types[] = "string number integer boolean array object";

/* A description while it is read; its values belong to the parameters of SCHEMA. */
struct describing {
	struct plugin_schema *schema;
	struct value *properties, *required;
	struct buf name, description;
};

static bool refuse(struct err *err, size_t line, const char *what, struct str text)
{
	struct buf shown;

	buf_init(&shown, 8 * QUOTED_MAX);
	text_add_name(&shown, str_part(text, 0, QUOTED_MAX));
	if (line > 0)
		(void)err_set(err, EINVAL, "line %zu: %s: \"%s\"", line, what, shown.data);
	else
		(void)err_set(err, EINVAL, "%s: \"%s\"", what, shown.data);
	buf_fini(&shown);
	return false;
}

/* Remove "optional" or "(optional)" from the beginning of TEXT. */
static bool take_optional(struct str *text)
{
	struct str rest = *text, word;

	if (!str_next_word(&rest, &word))
		return false;
	if (word.size > 1 && word.data[word.size - 1] == ':')
		word.size--;
	if (!str_is(word, "optional") && !str_is(word, "(optional)"))
		return false;
	*text = str_trim(rest);
	return true;
}

/* TYPE is one word, unchanged. */
static void add_property(struct describing *made, const char *name, struct str type,
			 struct str description)
{
	struct value *property = value_new_object();
	bool optional = str_ends(type, STR("?"));

	if (optional)
		type.size--;
	optional = take_optional(&description) || optional;
	value_set_str(property, "type", type);
	if (description.size > 0)
		value_set_str(property, "description", description);
	value_set(made->properties, name, property);
	if (!optional)
		value_append(made->required, value_new_text(name));
}

static bool is_type(struct str word)
{
	if (str_ends(word, STR("?")))
		word.size--;
	return word.size > 0 && str_among(types, word);
}

static bool add_line_property(struct describing *made, struct str key, struct str rest,
			      size_t line, struct err *err)
{
	auto_free char *name = memory_copy_str(key);
	struct str after = rest, type;

	if (key.size == 0 || memchr(key.data, '\0', key.size))
		return refuse(err, line, "an argument without a name", key);
	if (value_member(made->properties, name) != NULL)
		return refuse(err, line, "this argument was described before", key);
	if (value_count(made->properties) >= PLUGIN_PROPERTIES_MAX)
		return err_set(err, EINVAL, "over %d arguments", PLUGIN_PROPERTIES_MAX);
	if (!str_next_word(&after, &type) || !is_type(type)) {
		type = STR("string");
		after = rest;
		warn(made->schema, name, "has no type that is known: it is taken as string");
	}
	add_property(made, name, type, str_trim(after));
	return true;
}

static bool add_line(struct describing *made, struct str line, size_t number, struct err *err)
{
	size_t colon = str_find(line, STR(":"), 0);
	struct str key, rest;

	if (made->description.size > 0 && (line.data[0] == ' ' || line.data[0] == '\t')) {
		(void)buf_adds(&made->description, "\n");
		(void)buf_addstr(&made->description, str_trim(line));
		return true;
	}
	if (colon == (size_t)-1)
		return refuse(err, number,
			      "a line is \"key: value\", and this one is not", line);
	key = str_trim(str_part(line, 0, colon));
	rest = str_trim(str_part(line, colon + 1, line.size));
	if (str_is(key, "name") && made->name.size == 0) {
		(void)buf_addstr(&made->name, rest);
		return true;
	}
	if (!str_is(key, "description"))
		return add_line_property(made, key, rest, number, err);
	if (made->description.size > 0)
		(void)buf_adds(&made->description, "\n");
	(void)buf_addstr(&made->description, rest);
	return true;
}

static bool read_lines(struct str text, struct describing *made, struct err *err)
{
	struct str line;

	for (size_t number = 1; str_next_line(&text, &line); number++) {
		if (str_trim(line).size > 0 && !add_line(made, line, number, err))
			return false;
	}
	return made->name.size > 0 ||
	       err_set(err, EINVAL, "no line \"name: …\"; a tool begins with its name");
}

static bool add_args(const struct value *args, struct describing *made, struct err *err)
{
	if (value_kind(args) != VALUE_OBJECT)
		return err_set(err, EINVAL, "\"args\" must be {NAME: [TYPE, DESCRIPTION]}");
	for (void *at = value_first(args); at; at = value_next(args, at)) {
		const struct value *item = value_at(at);
		struct str type = value_str(value_item(item, 0));

		if (value_kind(item) == VALUE_OBJECT) {
			value_set(made->properties, value_key(at), value_copy(item));
			value_append(made->required, value_new_text(value_key(at)));
			continue;
		}
		if (value_kind(item) != VALUE_ARRAY || !is_type(type))
			return refuse(err, 0,
				      "an argument in \"args\" is [TYPE, DESCRIPTION] with one of "
				      "string, number, integer, boolean, array and object",
				      str_of(value_key(at)));
		add_property(made, value_key(at), type,
			     str_trim(value_str(value_item(item, 1))));
	}
	return true;
}

static bool read_object(struct str text, struct describing *made, struct err *err)
{
	struct plugin_schema *schema = made->schema;

	if (!value_parse(text, 0, &schema->described, err))
		return false;
	const struct value *root = schema->described;
	const struct value *input = value_member(root, "inputSchema");
	const struct value *args = value_member(root, "args");
	struct str name = value_str(value_member(root, "name"));
	if (name.size == 0)
		return err_set(err, EINVAL, "\"name\" must be the name of the tool");
	(void)buf_addstr(&made->name, name);
	(void)buf_addstr(&made->description, value_str(value_member(root, "description")));
	if (input == NULL)
		return args == NULL || add_args(args, made, err);
	if (value_kind(input) != VALUE_OBJECT)
		return err_set(err, EINVAL,
			       "\"inputSchema\" must be a JSON Schema, an object");
	value_free(schema->parameters);
	schema->parameters = value_ref(input);
	return true;
}

static bool read_toolbox(struct str text, struct plugin_schema *schema, struct err *err)
{
	const bool json = str_starts(str_trim(text), STR("{"));
	struct describing made = {schema, value_new_object(), value_new_array(), {0}, {0}};

	buf_init(&made.name, PLUGIN_SCHEMA_MAX);
	buf_init(&made.description, 2 * PLUGIN_SCHEMA_MAX);
	schema->mode = json ? PLUGIN_TOOLBOX_JSON : PLUGIN_TOOLBOX_TEXT;
	(void)snprintf(schema->version, sizeof(schema->version), "-");
	schema->parameters = value_new_object();
	value_set_text(schema->parameters, "type", "object");
	value_set(schema->parameters, "properties", made.properties);
	value_set(schema->parameters, "required", made.required);
	value_set_boolean(schema->parameters, "additionalProperties", false);
	bool ok = (json ? read_object : read_lines)(text, &made, err);
	if (ok && !set_id(schema, TOOLBOX_PREFIX, buf_str(&made.name)))
		ok = refuse(err, 0,
			    "the name is made of 1 to 60 letters, digits, '_' and '-', and not",
			    buf_str(&made.name));
	ok = ok && set_description(schema, buf_str(&made.description), err) &&
	     check_parameters(schema, "inputSchema", err) &&
	     set_arguments(schema, NULL, err);
	buf_fini(&made.name);
	buf_fini(&made.description);
	return ok;
}

static bool read_text(enum plugin_dialect dialect, struct str text,
		      struct plugin_schema *schema, struct err *err)
{
	if (text.size > PLUGIN_SCHEMA_MAX)
		return err_set(err, EFBIG, "over %d bytes", PLUGIN_SCHEMA_MAX);
	if (str_trim(text).size == 0)
		return err_set(err, EINVAL, "nothing was printed; %s",
			       dialect == PLUGIN_TOOLBOX
				       ? "with " TOOLBOX_DESCRIBE
					 " an executable must print what it is"
				       : "`schema` must print one JSON object");
	return dialect == PLUGIN_TOOLBOX ? read_toolbox(text, schema, err)
					 : read_script(text, schema, err);
}

bool plugin_schema_parse(enum plugin_dialect dialect, struct str text,
			 struct plugin_schema *schema, struct err *err)
{
	struct plugin_schema made = {.config_keys = value_new_array(),
				     .warnings = value_new_array()};

	if (!read_text(dialect, text, &made, err)) {
		plugin_schema_fini(&made);
		return err_while(err, "%s", plugin_dialect_question(dialect));
	}
	*schema = made;
	return true;
}

void plugin_schema_fini(struct plugin_schema *schema)
{
	free(schema->description);
	free(schema->arguments);
	value_free(schema->parameters);
	value_free(schema->config_keys);
	value_free(schema->warnings);
	value_free(schema->described);
	*schema = (struct plugin_schema){0};
}
