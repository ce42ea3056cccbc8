/* plugin_make: see plugin_make.h. */
#include "plugins/plugin_make.h"

#include "base/memory.h"
#include "base/path.h"
#include "plugins/plugin_redact.h"
#include "plugins/plugin_tool.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_SECONDS 60.0 /* unless the configuration says otherwise */

enum { VARIABLE_MAX = 128 << 10 }; /* what the kernel passes in one (execve(2)) */

static struct value *carried_new(const char *subcommand, const char *file,
				 const char *copy, double seconds)
{
	struct value *carried = value_new_object();

	value_set_text(carried, "subcommand", subcommand);
	value_set_text(carried, "file", file);
	value_set_text(carried, "copy", copy);
	value_set_real(carried, "timeout_s", seconds);
	return carried;
}

static bool set_python(const struct plugin_host *host, struct value *carried, struct err *err)
{
	const struct value *python = value_member(host->policy, "python");
	struct value *expanded = NULL;

	if (python == NULL)
		return true;
	if (!plugin_expand_value(&host->places, python, &expanded, err))
		return err_while(err, "plugin_policy.python");
	value_set(carried, "python", expanded);
	return true;
}

struct tool plugin_make_asker(const struct plugin_host *host, const struct plugin *plugin)
{
	struct value *carried =
		carried_new("schema", plugin->file, plugin->copy, PLUGIN_SCHEMA_SECONDS);
	struct err why;

	/* A mistake in it is told when the tool is made. */
	(void)set_python(host, carried, &why);
	if (plugin->package->is_toolbox)
		value_set_text(carried, "mode", plugin_mode_name(PLUGIN_TOOLBOX_JSON));

	return (struct tool){
		.name = plugin_tool.name,
		/* None of its members is a keyword: anything fits. */
		.schema = carried,
		.carrier = plugin_tool.name,
		.carried = carried,
		.effects = EFFECT_RUNS,
		.timeout_s = PLUGIN_SCHEMA_SECONDS + PLUGIN_AFTER_S,
		.internal = true,
	};
}

static struct value *order_of(const struct value *parameters)
{
	const struct value *properties = value_member(parameters, "properties");
	struct value *order = value_new_array();

	for (void *at = value_first(properties); at != NULL; at = value_next(properties, at))
		value_append(order, value_new_text(value_key(at)));
	return order;
}

static void set_arguments(const struct plugin_schema *schema, struct value *carried)
{
	value_set_text(carried, "id", schema->id);
	value_set_text(carried, "mode", plugin_mode_name(schema->mode));
	value_set(carried, "order", order_of(schema->parameters));
	value_set(carried, "positional", value_copy(schema->positional));
}

/* Lists and objects are not passed. */
static bool add_key(const struct plugin_host *host, const struct value *config,
		    const char *key, struct value *environment, struct value *secrets,
		    struct err *err)
{
	const struct value *given = value_member(config, key);
	const struct value *value =
		given != NULL ? given : config_own_value(host->whole, host->agent, key);
	/* A value that Glovebox uses itself is no secret. */
	const bool own = given == NULL || strcmp(key, "working_directory") == 0;
	auto_free char *variable = plugin_schema_variable(key);
	struct buf text, entry;
	bool ok = true;

	if (value == NULL || value_kind(value) == VALUE_NULL ||
	    value_kind(value) == VALUE_ARRAY || value_kind(value) == VALUE_OBJECT)
		return true;
	buf_init(&text, VARIABLE_MAX);
	buf_init(&entry, VARIABLE_MAX);
	if (value_kind(value) == VALUE_STRING)
		(void)buf_addstr(&text, value_str(value));
	else
		(void)value_print(value, 0, &text);
	ok = buf_addf(&entry, "%s=%s", variable, text.data) &&
	     strlen(text.data) == text.size;
	if (!ok) {
		(void)err_set(err, EINVAL,
			      "%s, which it asks for: a variable is at most %d bytes without NUL",
			      key, VARIABLE_MAX);
	} else {
		value_append(environment, value_new_str(buf_str(&entry)));
		if (!own && value_kind(value) != VALUE_BOOLEAN)
			plugin_redact_add(secrets, buf_str(&text));
	}
	buf_fini(&text);
	buf_fini(&entry);
	return ok;
}

static bool set_config(const struct plugin_host *host, const struct value *config,
		       const struct plugin_schema *schema, struct value *carried,
		       struct err *err)
{
	struct value *environment = value_new_array();
	struct value *secrets = value_new_array();
	bool ok = true;

	for (size_t i = 0; ok && i < value_count(schema->config_keys); i++)
		ok = add_key(host, config, value_text(value_item(schema->config_keys, i)),
			     environment, secrets, err);
	value_set(carried, "env", environment);
	value_set(carried, "secrets", secrets);
	return ok;
}

static bool set_folder(const struct plugin_host *host, const struct value *config,
		       struct value *carried, struct err *err)
{
	const char *folder = value_text(value_member(config, "working_directory"));
	struct buf normal;

	if (folder == NULL)
		return true;
	buf_init(&normal, PATH_MAX);
	bool ok = path_normal(host->cell->workspace, folder, &normal) ||
		  err_set(err, EINVAL, "working_directory: is no path");
	if (ok)
		value_set_text(carried, "folder", normal.data);
	buf_fini(&normal);
	return ok;
}

bool plugin_make_tool(const struct plugin_host *host, const struct value *config,
		      struct plugin *plugin, struct err *err)
{
	const struct plugin_schema *schema = &plugin->schema;
	const struct value *timeout = value_member(host->policy, "bash_timeout_seconds");
	double seconds = value_is_number(timeout) ? value_number(timeout) : TIMEOUT_SECONDS;
	struct value *carried = carried_new("run", plugin->file, plugin->copy, seconds);

	plugin->carried = carried;
	set_arguments(schema, carried);
	value_set_boolean(carried, "stream_stderr",
			  value_is_true(value_member(host->policy, "stream_stderr")));
	plugin->tool = (struct tool){
		.name = schema->id,
		.description = schema->description,
		.schema = schema->parameters,
		.carrier = plugin_tool.name,
		.carried = carried,
		.effects = EFFECT_RUNS,
		.timeout_s = seconds + PLUGIN_AFTER_S,
	};
	return set_python(host, carried, err) &&
	       set_config(host, config, schema, carried, err) &&
	       set_folder(host, config, carried, err);
}

static void copy_from(const struct value *from, const char *key, struct value *carried)
{
	const struct value *value = value_member(from, key);

	if (value != NULL)
		value_set(carried, key, value_ref(value));
}

struct tool plugin_look_tool(const struct plugin *plugin, const char *subcommand,
			     double seconds)
{
	struct tool tool = plugin->tool;

	tool.carried = carried_new(subcommand, plugin->file, plugin->copy, seconds);
	set_arguments(&plugin->schema, tool.carried);
	copy_from(plugin->carried, "python", tool.carried);
	copy_from(plugin->carried, "folder", tool.carried);
	if (strcmp(subcommand, "error") == 0) {
		copy_from(plugin->carried, "env", tool.carried);
		copy_from(plugin->carried, "secrets", tool.carried);
	}
	/* A test has no arguments. None of its members is a keyword: anything fits. */
	if (strcmp(subcommand, "test") == 0)
		tool.schema = tool.carried;
	tool.timeout_s = seconds + PLUGIN_AFTER_S;
	tool.internal = true;
	return tool;
}

void plugin_free(struct plugin *plugin)
{
	if (plugin == NULL)
		return;
	plugin_schema_fini(&plugin->schema);
	value_free(plugin->carried);
	free(plugin->file);
	free(plugin->copy);
	free(plugin);
}
