/* describe: parses a script's text into a checked description. */

#include "plugins/describe.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/text.h"
#include "base/value.h"
#include "plugins/source.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	QUOTED_MAX = 60, /* of output that is no JSON, in a sentence */
	VERSION_MAX = 64,
	DESCRIPTION_MAX = 8 << 10,
	KEY_MAX = 128,
	/* the most that the kernel passes in one argument */
	ARGUMENT_MAX = (128 << 10) - 1,
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

/* May a tool have the name NAME? */
static bool plugin_schema_is_name(struct str name)
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

/* A default in the list of positions is also a default of the property. */
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

static bool plugin_schema_read(const struct value *root, const enum plugin_mode *mode,
			       struct plugin_schema *schema, struct err *err);

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

/*
 * Read SCHEMA from ROOT, which was parsed already. MODE: the mode in place of
 * "args_mode"; or NULL.
 */
static bool plugin_schema_read(const struct value *root, const enum plugin_mode *mode,
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

static const char types[] = "string number integer boolean array object";

/* A schema while it is built: its one function, in the form that scripts print. */
struct describing {
	struct value *properties, *required, *guessed;
	struct buf name, description;
};

static bool refuse(struct err *err, size_t line, const char *what, struct str text)
{
	struct buf shown;

	buf_init(&shown, 8 * QUOTED_MAX);
	text_add_name(&shown, str_part(text, 0, QUOTED_MAX));
	if (line > 0)
		(void)err_set(err, EINVAL, "describe: line %zu: %s: \"%s\"", line, what,
			      shown.data);
	else
		(void)err_set(err, EINVAL, "describe: %s: \"%s\"", what, shown.data);
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
static void add_argument(struct describing *made, const char *name, struct str type,
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

static bool add_line_argument(struct describing *made, struct str key, struct str rest,
			      size_t line, struct err *err)
{
	auto_free char *name = memory_copy_str(key);
	struct str after = rest, type;

	if (key.size == 0 || memchr(key.data, '\0', key.size))
		return refuse(err, line, "an argument without a name", key);
	if (value_member(made->properties, name) != NULL)
		return refuse(err, line, "this argument was described before", key);
	if (value_count(made->properties) >= PLUGIN_PROPERTIES_MAX)
		return err_set(err, EINVAL, "describe: over %d arguments",
			       PLUGIN_PROPERTIES_MAX);
	if (!str_next_word(&after, &type) || !is_type(type)) {
		type = STR("string");
		after = rest;
		value_append(made->guessed, value_new_text(name));
	}
	add_argument(made, name, type, str_trim(after));
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
		return add_line_argument(made, key, rest, number, err);
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
	       err_set(err, EINVAL,
		       "describe: no line \"name: …\"; a tool begins with its name");
}

static bool add_args(const struct value *args, struct describing *made, struct err *err)
{
	if (value_kind(args) != VALUE_OBJECT)
		return err_set(err, EINVAL,
			       "describe: \"args\" must be {NAME: [TYPE, DESCRIPTION]}");
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
		add_argument(made, value_key(at), type,
			     str_trim(value_str(value_item(item, 1))));
	}
	return true;
}

static bool read_object(const struct value *root, struct describing *made,
			struct value **schema, struct err *err)
{
	const struct value *input = value_member(root, "inputSchema");
	const struct value *args = value_member(root, "args");
	struct str name = value_str(value_member(root, "name"));

	if (name.size == 0)
		return err_set(err, EINVAL,
			       "describe: \"name\" must be the name of the tool");
	(void)buf_addstr(&made->name, name);
	(void)buf_addstr(&made->description, value_str(value_member(root, "description")));
	if (input == NULL)
		return args == NULL || add_args(args, made, err);
	if (value_kind(input) != VALUE_OBJECT)
		return err_set(err, EINVAL,
			       "describe: \"inputSchema\" must be a JSON Schema, an object");
	*schema = value_copy(input);
	return true;
}

static struct value *parameters_of(struct describing *made)
{
	struct value *parameters = value_new_object();

	value_set_text(parameters, "type", "object");
	value_set(parameters, "properties", value_ref(made->properties));
	value_set(parameters, "required", value_ref(made->required));
	value_set_boolean(parameters, "additionalProperties", false);
	return parameters;
}

/*
 * Make the same object that a script prints about itself, so that it passes the same
 * checks. Takes PARAMETERS.
 */
static struct value *schema_of(const struct describing *made, struct value *parameters)
{
	struct value *root = value_new_object();
	struct value *function = value_new_object();
	struct value *tool = value_new_object();
	struct value *tools = value_new_array();
	struct buf id;

	buf_init(&id, PLUGIN_SCHEMA_MAX + sizeof(TOOLBOX_PREFIX));
	(void)buf_adds(&id, TOOLBOX_PREFIX);
	(void)buf_addstr(&id, buf_str(&made->name));
	value_set_str(function, "name", buf_str(&id));
	value_set_str(function, "description", buf_str(&made->description));
	value_set(function, "parameters", parameters);
	value_set(tool, "function", function);
	value_append(tools, tool);
	value_set_str(root, "id", buf_str(&id));
	value_set_text(root, "version", "-");
	value_set(root, "tools", tools);
	buf_fini(&id);
	return root;
}

static void warn_of_guesses(const struct describing *made, struct plugin_schema *schema)
{
	for (size_t i = 0; i < value_count(made->guessed); i++) {
		struct buf text;

		buf_init(&text, 1024);
		(void)buf_adds(&text, "\"");
		text_add_name(&text, str_part(value_str(value_item(made->guessed, i)), 0,
					      QUOTED_MAX));
		(void)buf_adds(&text, "\" has no type that is known: it is taken as string");
		value_append(schema->warnings, value_new_str(buf_str(&text)));
		buf_fini(&text);
	}
}

static bool check_name(struct str name, struct err *err)
{
	return (name.size <= PLUGIN_ID_MAX - strlen(TOOLBOX_PREFIX) &&
		plugin_schema_is_name(name)) ||
	       refuse(err, 0,
		      "the name is made of 1 to 60 letters, digits, '_' and '-', and not",
		      name);
}

bool describe_toolbox_parse(struct str text, struct plugin_schema *schema, struct err *err)
{
	const bool json = str_starts(str_trim(text), STR("{"));
	const enum plugin_mode mode = json ? PLUGIN_TOOLBOX_JSON : PLUGIN_TOOLBOX_TEXT;
	auto_value struct value *printed = NULL;
	auto_value struct value *input = NULL;
	struct describing made = {0};
	bool ok;

	if (text.size > PLUGIN_SCHEMA_MAX)
		return err_set(err, EFBIG, "describe: over %d bytes", PLUGIN_SCHEMA_MAX);
	if (str_trim(text).size == 0)
		return err_set(err, EINVAL,
			       "describe: nothing was printed; with " TOOLBOX_DESCRIBE
			       " an executable must print what it is");
	if (json && !value_parse(text, 0, &printed, err))
		return err_while(err, "describe");
	made.properties = value_new_object();
	made.required = value_new_array();
	made.guessed = value_new_array();
	buf_init(&made.name, PLUGIN_SCHEMA_MAX);
	buf_init(&made.description, 2 * PLUGIN_SCHEMA_MAX);
	ok = (json ? read_object(printed, &made, &input, err)
		   : read_lines(text, &made, err)) &&
	     check_name(buf_str(&made.name), err);
	if (ok) {
		auto_value struct value *root =
			schema_of(&made, input != NULL ? value_ref(input)
						       : parameters_of(&made));

		ok = plugin_schema_read(root, &mode, schema, err) ||
		     err_while(err, "describe");
	}
	if (ok)
		warn_of_guesses(&made, schema);
	value_free(made.properties);
	value_free(made.required);
	value_free(made.guessed);
	buf_fini(&made.name);
	buf_fini(&made.description);
	return ok;
}

/*
 * Does TEXT have a character that the line reader of any language takes for the end of a
 * line (or of the text)?
 */
static bool ends_lines(struct str text)
{
	for (size_t i = 0; i < text.size; i++) {
		const unsigned char *at = (const unsigned char *)text.data + i;
		size_t left = text.size - i;

		if ((*at < 0x20 && *at != '\t') ||
		    (left > 1 && at[0] == 0xc2 && at[1] == 0x85) ||
		    (left > 2 && at[0] == 0xe2 && at[1] == 0x80 &&
		     (at[2] == 0xa8 || at[2] == 0xa9)))
			return true;
	}
	return false;
}

static bool add_value_line(const char *name, const struct value *value, struct buf *lines,
			   struct err *err)
{
	if (value == NULL || value_kind(value) == VALUE_NULL)
		return true;
	if (value_kind(value) == VALUE_STRING && ends_lines(value_str(value)))
		return err_set(err, EINVAL,
			       "\"%.64s\" may not hold a line end or a control character: this "
			       "tool reads one line for each argument",
			       name);
	(void)buf_addf(lines, "%s: ", name);
	if (value_kind(value) == VALUE_STRING)
		(void)buf_addstr(lines, value_str(value));
	else
		(void)value_print(value, 0, lines);
	return buf_addc(lines, '\n') || err_set(err, E2BIG, "the arguments are too large");
}

bool describe_toolbox_lines(const struct value *order, const struct value *arguments,
			    struct buf *lines, struct err *err)
{
	for (size_t i = 0; i < value_count(order); i++) {
		const char *name = value_text(value_item(order, i));

		if (!add_value_line(name, value_member(arguments, name), lines, err))
			return false;
	}
	return true;
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static bool is_executable(const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return snprintf(path, sizeof(path), "%s%s%s", folder, *name ? "/" : "", name) <
		       (int)sizeof(path) &&
	       stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IXUSR);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

bool describe_toolbox_list(const char *place, struct value **files, struct err *err)
{
	struct dirent **names = NULL;
	struct stat st;
	int count;

	if (stat(place, &st) == 0 && S_ISREG(st.st_mode))
		return is_executable(place, "") ||
		       err_set(err, EACCES, "it is not executable: chmod +x");
	*files = value_new_array();
	count = scandir(place, &names, is_shown, by_name);
	for (int i = 0; i < count; i++) {
		if (is_executable(place, names[i]->d_name))
			value_append(*files, value_new_text(names[i]->d_name));
		free(names[i]);
	}
	free(names);
	if (value_count(*files) > PLUGIN_PACKAGE_ENTRIES_MAX)
		return err_set(err, EFBIG, "a toolbox has at most %d executables",
			       PLUGIN_PACKAGE_ENTRIES_MAX);
	return value_count(*files) > 0 ||
	       err_set(err, ENOENT, "there is no executable in it (chmod +x?)");
}
