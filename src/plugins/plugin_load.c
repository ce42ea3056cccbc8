/*
 * plugin_load: from the configuration's words to tools: first every source becomes a trusted
 * copy (plugin_packages.c), then every script is asked what it is; see plugin.h.
 */
#include "plugins/plugin_load_parts.h"

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "plugins/describe.h"
#include "plugins/plugin_make.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROBLEM_MAX = 16 << 10 };

void plugin_problem(struct plugin_loading *loading, const char *source, const char *text)
{
	struct value *entry = value_new_object();
	auto_free char *line = memory_copy(text);

	for (char *at = line; *at; at++)
		*at = *at == '\n' ? ' ' : *at;
	value_set_text(entry, "source", source);
	value_set_text(entry, "text", line);
	value_append(loading->plugins->problems, entry);
}

void plugins_free(struct plugins *plugins)
{
	if (plugins == NULL)
		return;
	for (size_t i = 0; i < plugins->count; i++)
		plugin_free(plugins->items[i]);
	for (size_t i = 0; i < plugins->package_count; i++)
		plugin_package_free(plugins->packages[i]);
	free(plugins->items);
	free(plugins->packages);
	free(plugins->shown);
	free(plugins->tools);
	value_free(plugins->problems);
	free(plugins);
}

static bool names_ours(const struct value *sources)
{
	for (size_t i = 0; i < value_count(sources); i++) {
		if (plugin_is_source(value_item(sources, i)))
			return true;
	}
	return false;
}

/* How people know the entry: its place when they have just named it, else where it stands. */
static void name_entry(const struct plugin_host *host, size_t at, struct buf *name)
{
	struct plugin_source source = {0};
	struct err err = {0};

	if (host->trusts && plugin_source_parse(&host->places, value_item(host->sources, at),
						&source, &err)) {
		plugin_source_name(&source, name);
		plugin_source_fini(&source);
	} else {
		(void)buf_addf(name, "plugins/%zu", at);
	}
}

static bool may(const struct plugin_loading *loading, struct err *err)
{
	const struct plugin_host *host = loading->host;

	for (size_t i = 0; !host->named_now && i < value_count(host->sources); i++) {
		const struct value *entry = value_item(host->sources, i);
		bool toolbox = plugin_source_is_toolbox(entry);
		const char *key = toolbox ? "allow_toolboxes" : "allow_bash_tools";

		if (!plugin_is_source(entry) ||
		    value_is_true(value_member(host->policy, key)))
			continue;
		struct buf name;
		buf_init(&name, PATH_MAX);
		name_entry(host, i, &name);
		(void)err_set(err, EPERM,
			      "%s is a %s, and these are not allowed: set "
			      "\"plugin_policy\": {\"%s\": true} in the configuration "
			      "(docs/plugins.md)",
			      name.data, toolbox ? "toolbox" : "script", key);
		buf_fini(&name);
		return false;
	}
	return true;
}

static void shown_fill(struct plugins *plugins)
{
	plugins->shown = memory_array(plugins->package_count + 1, sizeof(*plugins->shown));
	for (size_t i = 0; i < plugins->package_count; i++)
		plugins->shown[i] =
			(struct shape_shown){.source = plugins->packages[i]->copy,
					     .path = plugins->packages[i]->place,
					     .why = "plugins"};
}

/* The name of the question for the schema: it differs between the two dialects. */
static const char *asked(const struct plugin *plugin)
{
	return plugin->package->is_toolbox ? "describe" : "schema";
}

/*
 * Set PATH to the file of the script's last answer, beside the copy in which it was asked.
 * False: the path is too long.
 */
static bool schema_path(const struct plugin_loading *loading, const struct plugin *plugin,
			char path[PATH_MAX])
{
	char hex[HASH_HEX + 1];

	hash_text(str_of(plugin->copy), hex);
	return snprintf(path, PATH_MAX, "%s/%s/%s-%.16s.json", loading->cache,
			plugin->package->hash, asked(plugin), hex) < PATH_MAX;
}

static void schema_keep(const struct plugin_loading *loading, const struct plugin *plugin,
			struct str text)
{
	char path[PATH_MAX], temp[PATH_MAX];

	if (!schema_path(loading, plugin, path) ||
	    snprintf(temp, sizeof(temp), "%s.new", path) >= (int)sizeof(temp))
		return;
	/* Without it the script is asked again. */
	(void)unlink(temp);
	auto_close int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && fd_write_all(fd, text.data, text.size, NULL))
		(void)rename(temp, path);
}

/* Ask the script itself, in a cell. */
static bool schema_ask(struct plugin_loading *loading, const struct plugin *plugin,
		       struct buf *text, struct err *err)
{
	const struct plugin_host *host = loading->host;
	struct tool asker = plugin_make_asker(host, plugin);
	auto_value struct value *nothing = value_new_object();
	const struct plugin_look look = {.tool = &asker,
					 .arguments = nothing,
					 .shown = loading->plugins->shown};
	struct tool_result result;

	tool_result_init(&result);
	bool ok = plugin_cell_look(host->cell, &look, &result, err);
	if (ok && result.status == RESULT_TIMED_OUT)
		ok = err_set(err, ETIMEDOUT, "%s: nothing came within %g s",
			     asked(plugin), PLUGIN_SCHEMA_SECONDS);
	else if (ok && result.status != RESULT_DONE)
		ok = err_set(err, EINVAL, "%s: %.700s", asked(plugin), result.text.data);
	ok = ok &&
	     (buf_addstr(text, buf_str(&result.text)) ||
	      err_set(err, EFBIG, "%s: over %d bytes", asked(plugin), PLUGIN_SCHEMA_MAX));
	tool_result_fini(&result);
	value_free(asker.carried);
	return ok;
}

static bool schema_load(struct plugin_loading *loading, struct plugin *plugin,
			struct err *err)
{
	char path[PATH_MAX];
	struct buf text;
	bool kept, ok;

	buf_init(&text, PLUGIN_SCHEMA_MAX);
	kept = schema_path(loading, plugin, path) &&
	       fd_read_file(path, PLUGIN_SCHEMA_MAX, &text, NULL);
	if (!kept)
		buf_clear(&text);
	ok = (kept || schema_ask(loading, plugin, &text, err)) &&
	     (plugin->package->is_toolbox
		      ? toolbox_parse(buf_str(&text), &plugin->schema, err)
		      : plugin_schema_parse(buf_str(&text), &plugin->schema, err));
	if (ok && !kept)
		schema_keep(loading, plugin, buf_str(&text));
	buf_fini(&text);
	return ok;
}

static bool name_is_free(const struct plugin_loading *loading,
			 const struct plugin *plugin, struct err *err)
{
	const char *id = plugin->schema.id;
	const struct tool *taken = tool_find(loading->host->cell->tools, id);

	if (taken != NULL)
		return err_set(err, EEXIST,
			       "%s is the name of the built-in tool %s: give it another",
			       id, taken->name);
	for (size_t i = 0; i < loading->plugins->count; i++) {
		const struct plugin *other = loading->plugins->items[i];

		if (strcmp(other->schema.id, id) == 0)
			return err_set(err, EEXIST,
				       "%s is the name of %s, too: give one another", id,
				       other->file);
	}
	return true;
}

/* Does one of NAMES, which may be patterns, fit ID? */
static bool names_fit(const struct value *names, const char *id)
{
	for (size_t i = 0; i < value_count(names); i++) {
		if (pattern_match(value_str(value_item(names, i)), str_of(id), 0))
			return true;
	}
	return false;
}

static bool is_enabled(const struct plugin_host *host, const char *id)
{
	return (host->enabled == NULL || names_fit(host->enabled, id)) &&
	       !names_fit(host->disabled, id);
}

static void script_add(struct plugin_loading *loading, const struct plugin_package *package,
		       const char *file, const char *copy)
{
	struct plugin *plugin = memory_alloc(sizeof(*plugin));
	struct err err = {0};

	plugin->package = package;
	plugin->file = memory_copy(file);
	plugin->copy = memory_copy(copy);
	bool ok = schema_load(loading, plugin, &err);
	if (ok)
		value_append(loading->ids, value_new_text(plugin->schema.id));
	for (size_t i = 0; ok && i < value_count(plugin->schema.config_keys); i++)
		value_append(loading->asked,
			     value_ref(value_item(plugin->schema.config_keys, i)));
	if (ok && !is_enabled(loading->host, plugin->schema.id)) {
		plugin_free(plugin);
		return;
	}
	if (ok && name_is_free(loading, plugin, &err) &&
	    plugin_make_tool(loading->host, loading->config, plugin, &err)) {
		loading->plugins->items[loading->plugins->count++] = plugin;
		return;
	}
	plugin_problem(loading, file, err.text);
	plugin_free(plugin);
}

static void package_scripts(struct plugin_loading *loading,
			    const struct plugin_package *package)
{
	const struct value *files = package->manifest.files;

	if (package->is_file)
		script_add(loading, package, package->place, package->copy);
	for (size_t i = 0; i < value_count(files); i++) {
		struct buf file, copy;

		buf_init(&file, PATH_MAX);
		buf_init(&copy, PATH_MAX);
		if (path_normal(package->place, value_text(value_item(files, i)), &file) &&
		    path_normal(package->copy, value_text(value_item(files, i)), &copy))
			script_add(loading, package, file.data, copy.data);
		buf_fini(&file);
		buf_fini(&copy);
	}
}

static void scripts_load(struct plugin_loading *loading)
{
	struct plugins *plugins = loading->plugins;
	size_t count = 0;

	for (size_t i = 0; i < plugins->package_count; i++)
		count += plugins->packages[i]->is_file
				 ? 1
				 : value_count(plugins->packages[i]->manifest.files);
	plugins->items = memory_array(count + 1, sizeof(*plugins->items));
	for (size_t i = 0; i < plugins->package_count; i++)
		package_scripts(loading, plugins->packages[i]);
}

static bool fits_one(const char *name, const struct value *ids)
{
	for (size_t i = 0; i < value_count(ids); i++) {
		if (pattern_match(str_of(name), value_str(value_item(ids, i)), 0))
			return true;
	}
	return false;
}

/* A name that the lists hold and that fits no plugin is a slip. */
static void check_names(struct plugin_loading *loading, const struct value *names,
			const char *key)
{
	for (size_t i = 0; i < value_count(names); i++) {
		const char *name = value_text(value_item(names, i));
		struct buf text;

		if (fits_one(name, loading->ids))
			continue;
		buf_init(&text, ERR_TEXT_MAX);
		(void)buf_addf(&text, "it names \"%.64s\", and no plugin is called so",
			       name);
		plugin_problem(loading, key, text.data);
		buf_fini(&text);
	}
}

/*
 * A key of the configuration that no plugin has asked for is a slip, and an error. When a
 * plugin was left out, it may have asked for the key: then the slip is only a problem.
 */
static bool check_keys(struct plugin_loading *loading, struct err *err)
{
	const bool all = value_count(loading->plugins->problems) == 0;
	struct err why = {0};

	if (loading->host->named_now || loading->host->trusts ||
	    config_check_plugin_keys(loading->host->whole, loading->asked, &why))
		return true;
	if (all)
		return err_set(err, why.code, "%s", why.text);
	plugin_problem(loading, "config_keys", why.text);
	return true;
}

static bool config_expand(struct plugin_loading *loading, struct err *err)
{
	const struct plugin_host *host = loading->host;
	auto_value struct value *values = config_plugin_values(host->whole, host->agent);

	loading->config = value_new_object();
	for (void *at = value_first(values); at != NULL; at = value_next(values, at)) {
		struct value *value = NULL;

		if (!plugin_expand_value(&host->places, value_at(at), &value, err))
			return err_while(err, "%.64s", value_key(at));
		value_set(loading->config, value_key(at), value);
	}
	return true;
}

static void tools_fill(const struct plugin_host *host, struct plugins *plugins)
{
	size_t count = 0;

	while (host->cell->tools[count] != NULL)
		count++;
	plugins->tools = memory_array(count + plugins->count + 1, sizeof(*plugins->tools));
	for (size_t i = 0; i < count; i++)
		plugins->tools[i] = host->cell->tools[i];
	for (size_t i = 0; i < plugins->count; i++)
		plugins->tools[count + i] = &plugins->items[i]->tool;
}

void plugin_host_configure(struct plugin_host *host, const struct config *config,
			   const char *agent)
{
	host->whole = config;
	host->agent = agent != NULL ? agent : POLICY_NAME_DEFAULT;
	host->sources = config_value(config, "plugins");
	host->policy = config_value(config, "plugin_policy");
	host->enabled = config_value(config, "enabled_plugins");
	host->disabled = config_value(config, "disabled_plugins");
	host->cache_dir = value_text(config_value(config, "plugin_cache_dir"));
}

char *plugins_problem_text(const struct value *problem)
{
	struct buf text;

	buf_init(&text, PROBLEM_MAX);
	text_add_name(&text, value_str(value_member(problem, "source")));
	(void)buf_adds(&text, ": ");
	text_add_name(&text, value_str(value_member(problem, "text")));
	return buf_take(&text);
}

bool plugins_load(const struct plugin_host *host, struct plugins **plugins, struct err *err)
{
	struct plugin_loading loading = {.host = host,
					 .plugins = memory_alloc(sizeof(struct plugins))};
	bool ok = true;

	loading.plugins->problems = value_new_array();
	loading.ids = value_new_array();
	loading.asked = value_new_array();
	if (names_ours(host->sources)) {
		ok = may(&loading, err) && plugin_cache_find(&loading, err) &&
		     config_expand(&loading, err) && plugin_packages_load(&loading, err);
	}
	if (ok) {
		shown_fill(loading.plugins);
		scripts_load(&loading);
		ok = check_keys(&loading, err);
	}
	if (ok) {
		check_names(&loading, host->enabled, "enabled_plugins");
		check_names(&loading, host->disabled, "disabled_plugins");
		tools_fill(host, loading.plugins);
	}
	value_free(loading.config);
	value_free(loading.ids);
	value_free(loading.asked);
	free(loading.cache);
	if (!ok) {
		plugins_free(loading.plugins);
		return false;
	}
	*plugins = loading.plugins;
	return true;
}
