/*
 * plugin_load: from the configuration's words to tools: first every source becomes a trusted
 * copy, then every script is asked what it is; see plugin.h.
 */
#include "plugins/plugin_make.h"

#include "base/fd.h"
#include "base/folder.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "plugins/plugin_copy.h"
#include "plugins/plugin_trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLUGINS_MAX = 128, NAME_MAX_BYTES = 4096 + 256 };

struct loading {
	const struct plugin_host *host;
	struct plugins *plugins;
	struct value *config; /* expanded; or NULL */
	struct value *ids;    /* of all that described themselves */
	char *cache;          /* where the copies lie */
};

static void problem(struct loading *loading, const char *source, const char *text)
{
	struct value *entry = value_new_object();
	auto_free char *line = memory_copy(text);

	for (char *at = line; *at; at++)
		*at = *at == '\n' ? ' ' : *at;
	value_set_text(entry, "source", source);
	value_set_text(entry, "text", line);
	value_append(loading->plugins->problems, entry);
}

bool plugin_is_source(const struct value *entry)
{
	return value_kind(entry) == VALUE_STRING ||
	       value_member(entry, "bash_tool") != NULL;
}

static void package_free(struct plugin_package *package)
{
	if (package == NULL)
		return;
	free(package->source);
	free(package->place);
	free(package->copy);
	plugin_manifest_fini(&package->manifest);
	free(package);
}

void plugins_free(struct plugins *plugins)
{
	if (plugins == NULL)
		return;
	for (size_t i = 0; i < plugins->count; i++)
		plugin_free(plugins->items[i]);
	for (size_t i = 0; i < plugins->package_count; i++)
		package_free(plugins->packages[i]);
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

static bool may(const struct loading *loading, struct err *err)
{
	if (loading->host->named_now ||
	    value_is_true(value_member(loading->host->policy, "allow_bash_tools")))
		return true;
	return err_set(err, EPERM,
		       "plugins are scripts, and scripts are not allowed: set "
		       "\"plugin_policy\": {\"allow_bash_tools\": true} in the configuration, or "
		       "take \"plugins\" out");
}

/* Where the copies lie: out of every cell's reach. */
static bool cache_find(struct loading *loading, struct err *err)
{
	const struct plugin_host *host = loading->host;
	struct buf text, normal;
	bool ok = true;

	if (host->state == NULL)
		return err_set(err, ENOENT,
			       "plugins are kept below your state folder, and neither HOME nor "
			       "XDG_STATE_HOME is set");
	if (host->cache_dir == NULL) {
		loading->cache = memory_copy(host->state);
		return true;
	}
	buf_init(&text, PATH_MAX);
	buf_init(&normal, PATH_MAX);
	ok = plugin_expand(&host->places, str_of(host->cache_dir), &text, err) &&
	     (path_normal(host->places.config_dir, text.data, &normal) ||
	      err_set(err, EINVAL, "is no path"));
	if (ok && (path_within(normal.data, host->workspace) ||
		   path_within(host->workspace, normal.data)))
		ok = err_set(err, EPERM,
			     "%s and the workspace hold one another: an agent could change the "
			     "copies that plugins run from",
			     normal.data);
	if (!ok)
		(void)err_while(err, "plugin_cache_dir");
	loading->cache = buf_take(&normal);
	buf_fini(&text);
	return ok;
}

/* May an agent of this run write there? */
static bool is_exposed(const struct plugin_host *host, const char *place)
{
	bool exposed = path_within(place, host->workspace);

	for (const char *const *at = host->writable; at != NULL && *at != NULL; at++)
		exposed = exposed || path_within(place, *at);
	return exposed;
}

/* Has the user let this in? A first one outside the workspace has been: he named it. */
static bool trust(const struct loading *loading, const char *source, const char *place,
		  const struct plugin_trusted *now, struct err *err)
{
	const struct plugin_host *host = loading->host;
	struct plugin_trusted before;

	if (host->named_now)
		return true;
	if (!plugin_trust_find(host->state, source, &before, err))
		return false;
	if (!host->trusts && before.hash[0] != '\0') {
		if (strcmp(before.hash, now->hash) == 0)
			return true;
		return err_set(err, EPERM,
			       "it has changed since you let it in (%.12s then, %.12s now). Look at "
			       "it, then: glovebox plugin trust %s",
			       before.hash, now->hash, source);
	}
	if (!host->trusts && is_exposed(host, place))
		return err_set(err, EPERM,
			       "it lies where an agent may write. Look at it, "
			       "then: glovebox plugin trust %s",
			       source);
	if (!plugin_trust_record(host->state, source, now, err))
		return false;
	plugin_trust_prune(host->state, loading->cache);
	return true;
}

/* The copy, and where the view shows it. */
static bool package_fill(struct loading *loading, struct plugin_package *package,
			 const char *real, struct err *err)
{
	struct buf copy;

	buf_init(&copy, PATH_MAX);
	bool ok = plugin_copy_make(real, loading->cache, package->hash, &copy, err);
	package->copy = buf_take(&copy);
	if (package->place == NULL)
		package->place = memory_copy(package->copy);
	if (ok && package->is_file)
		return true;
	return ok && plugin_manifest_read(package->copy, &package->manifest, err);
}

static bool local_package(struct loading *loading, const struct plugin_source *source,
			  struct plugin_package *package, struct err *err)
{
	const struct plugin_host *host = loading->host;
	auto_free char *real = realpath(source->text, NULL);
	struct plugin_trusted now = {0};
	struct stat st;

	if (real == NULL || stat(real, &st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	package->is_file = S_ISREG(st.st_mode);
	if (source->kind == PLUGIN_FILE && !package->is_file)
		return err_set(err, EISDIR,
			       "file names a single script; a folder is named as path");
	if (source->kind == PLUGIN_FOLDER && package->is_file)
		return err_set(err, ENOTDIR,
			       "path names a folder; a single script is named as file");
	if (!package->is_file && path_within(host->workspace, real))
		return err_set(err, EINVAL,
			       "this folder holds the workspace %s, and would be shown read-only "
			       "over it: work elsewhere (-C), or name the script",
			       host->workspace);
	package->place = memory_copy(real);
	/* However it was named: one place has one record. */
	free(package->source);
	package->source = memory_copy(real);
	if (!plugin_copy_hash(real, package->hash, err))
		return false;
	(void)snprintf(now.hash, sizeof(now.hash), "%s", package->hash);
	return trust(loading, package->source, real, &now, err) &&
	       package_fill(loading, package, real, err);
}

/* Is the copy of what was let in still there? Then nothing is fetched. */
static bool copy_is_there(const struct loading *loading, const char *hash)
{
	char path[PATH_MAX];

	return hash[0] != '\0' &&
	       snprintf(path, sizeof(path), "%s/%s/files", loading->cache, hash) <
		       (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

static bool fetch_new(struct loading *loading, const struct plugin_source *source,
		      const struct plugin_trusted *before, struct plugin_package *package,
		      struct err *err)
{
	const struct plugin_host *host = loading->host;
	struct plugin_trusted now = {0};
	char files[PATH_MAX];
	struct buf folder;

	if (!host->trusts)
		(void)snprintf(now.commit, sizeof(now.commit), "%s", before->commit);
	buf_init(&folder, PATH_MAX - sizeof("/files"));
	bool ok = host->fetch(host->context, source, &folder, now.commit, err);
	(void)snprintf(files, sizeof(files), "%.4080s/files", folder.data);
	ok = ok && plugin_copy_hash(files, package->hash, err);
	(void)snprintf(now.hash, sizeof(now.hash), "%s", package->hash);
	(void)snprintf(package->commit, sizeof(package->commit), "%s", now.commit);
	ok = ok && trust(loading, package->source, "/", &now, err) &&
	     package_fill(loading, package, files, err);
	if (folder.size > 0)
		folder_remove(folder.data);
	buf_fini(&folder);
	return ok;
}

static bool git_package(struct loading *loading, const struct plugin_source *source,
			struct plugin_package *package, struct err *err)
{
	const struct plugin_host *host = loading->host;
	struct plugin_trusted before = {0};

	if (!host->named_now &&
	    !plugin_trust_find(host->state, package->source, &before, err))
		return false;
	if (host->trusts || !copy_is_there(loading, before.hash))
		return fetch_new(loading, source, &before, package, err);
	(void)snprintf(package->hash, sizeof(package->hash), "%s", before.hash);
	(void)snprintf(package->commit, sizeof(package->commit), "%s", before.commit);
	/* It is only looked up: the source is its own copy. */
	char files[PATH_MAX];
	(void)snprintf(files, sizeof(files), "%s/%s/files", loading->cache, before.hash);
	return package_fill(loading, package, files, err);
}

static void package_add(struct loading *loading, const struct plugin_source *source)
{
	struct plugins *plugins = loading->plugins;
	struct plugin_package *package = memory_alloc(sizeof(*package));
	struct err err = {0};
	struct buf name;

	buf_init(&name, NAME_MAX_BYTES);
	plugin_source_name(source, &name);
	package->source = buf_take(&name);
	if (source->kind == PLUGIN_GIT ? git_package(loading, source, package, &err)
				       : local_package(loading, source, package, &err)) {
		plugins->packages[plugins->package_count++] = package;
		return;
	}
	problem(loading, package->source, err.text);
	package_free(package);
}

static bool packages_load(struct loading *loading, struct err *err)
{
	const struct plugin_host *host = loading->host;
	size_t count = value_count(host->sources);

	if (count > PLUGINS_MAX)
		return err_set(err, E2BIG, "plugins: at most %d are taken", PLUGINS_MAX);
	loading->plugins->packages =
		memory_array(count + 1, sizeof(*loading->plugins->packages));
	for (size_t i = 0; i < count; i++) {
		const struct value *entry = value_item(host->sources, i);
		struct plugin_source source;

		if (!plugin_is_source(entry))
			continue;
		if (!plugin_source_parse(&host->places, entry, &source, err))
			return err_while(err, "plugins/%zu", i);
		package_add(loading, &source);
		plugin_source_fini(&source);
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

/* What the script said when it was asked last: kept beside the copy it was asked in. */
static bool schema_path(const struct loading *loading, const struct plugin *plugin,
			char path[PATH_MAX])
{
	char hex[HASH_HEX + 1];

	hash_text(str_of(plugin->copy), hex);
	return snprintf(path, PATH_MAX, "%s/%s/schema-%.16s.json", loading->cache,
			plugin->package->hash, hex) < PATH_MAX;
}

static void schema_keep(const struct loading *loading, const struct plugin *plugin,
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
static bool schema_ask(struct loading *loading, const struct plugin *plugin,
		       struct buf *text, struct err *err)
{
	const struct plugin_host *host = loading->host;
	struct tool asker = plugin_make_asker(plugin->file, plugin->copy);
	auto_value struct value *nothing = value_new_object();
	const struct plugin_look look = {.tool = &asker,
					 .arguments = nothing,
					 .shown = loading->plugins->shown};
	struct tool_result result;

	tool_result_init(&result);
	bool ok = host->look(host->context, &look, &result, err);
	if (ok && result.status == RESULT_TIMED_OUT)
		ok = err_set(err, ETIMEDOUT, "schema: nothing came within %g s",
			     PLUGIN_SCHEMA_SECONDS);
	else if (ok && result.status != RESULT_DONE)
		ok = err_set(err, EINVAL, "schema: %.700s", result.text.data);
	ok = ok && (buf_addstr(text, buf_str(&result.text)) ||
		    err_set(err, EFBIG, "schema: over %d bytes", PLUGIN_SCHEMA_MAX));
	tool_result_fini(&result);
	value_free(asker.carried);
	return ok;
}

static bool schema_load(struct loading *loading, struct plugin *plugin, struct err *err)
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
	     plugin_schema_parse(buf_str(&text), &plugin->schema, err);
	if (ok && !kept)
		schema_keep(loading, plugin, buf_str(&text));
	buf_fini(&text);
	return ok;
}

static bool name_is_free(const struct loading *loading, const struct plugin *plugin,
			 struct err *err)
{
	const char *id = plugin->schema.id;
	const struct tool *taken = tool_find(loading->host->tools, id);

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

static bool lists(const struct value *names, const char *id)
{
	for (size_t i = 0; i < value_count(names); i++) {
		if (str_is(value_str(value_item(names, i)), id))
			return true;
	}
	return false;
}

static bool is_enabled(const struct plugin_host *host, const char *id)
{
	return (host->enabled == NULL || lists(host->enabled, id)) &&
	       !lists(host->disabled, id);
}

static void script_add(struct loading *loading, const struct plugin_package *package,
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
	if (ok && !is_enabled(loading->host, plugin->schema.id)) {
		plugin_free(plugin);
		return;
	}
	if (ok && name_is_free(loading, plugin, &err) &&
	    plugin_make_tool(loading->host, loading->config, plugin, &err)) {
		loading->plugins->items[loading->plugins->count++] = plugin;
		return;
	}
	problem(loading, file, err.text);
	plugin_free(plugin);
}

static void package_scripts(struct loading *loading, const struct plugin_package *package)
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

static void scripts_load(struct loading *loading)
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

/* A name that the lists hold and no plugin has is a slip. */
static void check_names(struct loading *loading, const struct value *names, const char *key)
{
	for (size_t i = 0; i < value_count(names); i++) {
		const char *name = value_text(value_item(names, i));
		struct buf text;

		if (lists(loading->ids, name))
			continue;
		buf_init(&text, ERR_TEXT_MAX);
		(void)buf_addf(&text, "it names \"%.64s\", and no plugin is called so",
			       name);
		problem(loading, key, text.data);
		buf_fini(&text);
	}
}

static void tools_fill(const struct plugin_host *host, struct plugins *plugins)
{
	size_t count = 0;

	while (host->tools[count] != NULL)
		count++;
	plugins->tools = memory_array(count + plugins->count + 1, sizeof(*plugins->tools));
	for (size_t i = 0; i < count; i++)
		plugins->tools[i] = host->tools[i];
	for (size_t i = 0; i < plugins->count; i++)
		plugins->tools[count + i] = &plugins->items[i]->tool;
}

bool plugins_load(const struct plugin_host *host, struct plugins **plugins, struct err *err)
{
	struct loading loading = {.host = host,
				  .plugins = memory_alloc(sizeof(struct plugins))};
	bool ok = true;

	loading.plugins->problems = value_new_array();
	loading.ids = value_new_array();
	if (names_ours(host->sources)) {
		ok = may(&loading, err) && cache_find(&loading, err) &&
		     (host->config == NULL ||
		      plugin_expand_value(&host->places, host->config, &loading.config, err) ||
		      err_while(err, "plugin_config")) &&
		     packages_load(&loading, err);
	}
	if (ok) {
		shown_fill(loading.plugins);
		scripts_load(&loading);
		check_names(&loading, host->enabled, "enabled_plugins");
		check_names(&loading, host->disabled, "disabled_plugins");
		tools_fill(host, loading.plugins);
	}
	value_free(loading.config);
	value_free(loading.ids);
	free(loading.cache);
	if (!ok) {
		plugins_free(loading.plugins);
		return false;
	}
	*plugins = loading.plugins;
	return true;
}
