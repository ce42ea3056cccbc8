/* toolbox: see toolbox.h. */
#include "plugins/toolbox.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "plugins/source.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { QUOTED_MAX = 60 };

static const char types[] = "string number integer boolean array object";

/* A schema while it is put together: its one function, as scripts print it. */
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

/* Takes "optional" or "(optional)" off the begin of TEXT. */
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

/* TYPE is one word, as it came. */
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

/* As a script's own description, which has all the checks. Takes PARAMETERS. */
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

bool toolbox_parse(struct str text, struct plugin_schema *schema, struct err *err)
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

/* Is there what any language's reader of lines takes for the end of one (or of the text)? */
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

bool toolbox_lines(const struct value *order, const struct value *arguments,
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

bool toolbox_list(const char *place, struct value **files, struct err *err)
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
