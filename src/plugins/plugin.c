/*
 * plugin: makes tools of the configuration's words. First every source becomes a trusted
 * copy, then every script is asked to describe itself.
 */

#include "plugins/plugin.h"

#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/kernel.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text/pattern.h"
#include "base/text/text.h"
#include "base/value.h"
#include "plugins/describe.h"
#include "plugins/run.h"
#include "plugins/source.h"
#include "policy/config.h"
#include "session/session.h"
#include "tool/tool.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Seconds that a script may take to describe itself. */
#define PLUGIN_SCHEMA_SECONDS 1.0
#define TIMEOUT_SECONDS       60.0 /* used when the configuration names no other */

enum {
	PLUGINS_MAX = 128,
	NAME_MAX_BYTES = 4096 + 256,
	PROBLEM_MAX = 16 << 10,
};

struct loading {
	const struct plugin_host *host;
	struct plugins *plugins;
	struct value *config; /* values for config_keys, expanded */
	struct value *ids;    /* the ids of all scripts that described themselves */
	struct value *asked;  /* the config_keys of all these scripts */
	char *cache;          /* the folder of the copies */
};

/* Makes a tool of a checked description and the configuration. */

/* Add the value of KEY as a variable. Lists and objects are not passed. */
static bool add_key(const struct loading *loading, struct plugin *plugin, const char *key,
		    struct err *err)
{
	const struct plugin_host *host = loading->host;
	const struct value *given = value_member(loading->config, key);
	const struct value *value =
		given != NULL ? given : config_own_value(host->whole, host->agent, key);
	/* A value that comes from Glovebox itself is no secret. */
	const bool own = given == NULL || strcmp(key, "working_directory") == 0;
	auto_free char *variable = plugin_schema_variable(key);
	struct buf text, entry;
	bool ok = true;

	if (value == NULL || value_kind(value) == VALUE_NULL ||
	    value_kind(value) == VALUE_ARRAY || value_kind(value) == VALUE_OBJECT)
		return true;
	buf_init(&text, KERNEL_ARGUMENT_MAX);
	buf_init(&entry, KERNEL_ARGUMENT_MAX);
	if (value_kind(value) == VALUE_STRING)
		(void)buf_addstr(&text, value_str(value));
	else
		(void)value_print(value, 0, &text);
	ok = buf_addf(&entry, "%s=%s", variable, text.data) &&
	     strlen(text.data) == text.size;
	if (!ok) {
		(void)err_set(err, EINVAL,
			      "%s, which it asks for: a variable is at most %d bytes without NUL",
			      key, KERNEL_ARGUMENT_MAX);
	} else {
		value_append(plugin->environment, value_new_str(buf_str(&entry)));
		if (!own && value_kind(value) != VALUE_BOOLEAN)
			run_redact_add(plugin->secrets, buf_str(&text));
	}
	buf_fini(&text);
	buf_fini(&entry);
	return ok;
}

/* The order for PLUGIN, of which only the files are known. */
static struct run_order order_of(const struct loading *loading, const struct plugin *plugin)
{
	return (struct run_order){
		.subcommand = RUN_SCHEMA,
		.file = plugin->file,
		.copy = plugin->copy,
		.dialect = plugin->package->dialect,
		.folder = loading->plugins->folder,
		.python = value_text(loading->plugins->python),
		.timeout_s = PLUGIN_SCHEMA_SECONDS,
	};
}

/* Fill in the order and the tool of PLUGIN, whose schema is known. */
static bool tool_make(const struct loading *loading, struct plugin *plugin, struct err *err)
{
	const struct value *policy = loading->host->policy;
	const struct value *timeout = value_member(policy, "bash_timeout_seconds");
	const struct plugin_schema *schema = &plugin->schema;

	plugin->environment = value_new_array();
	plugin->secrets = value_new_array();
	for (size_t i = 0; i < value_count(schema->config_keys); i++) {
		if (!add_key(loading, plugin,
			     value_text(value_item(schema->config_keys, i)), err))
			return false;
	}
	plugin->order = order_of(loading, plugin);
	plugin->order.subcommand = RUN_WORK;
	plugin->order.id = schema->id;
	plugin->order.mode = schema->mode;
	plugin->order.arguments = schema->arguments;
	plugin->order.argument_count = schema->argument_count;
	plugin->order.environment = plugin->environment;
	plugin->order.secrets = plugin->secrets;
	plugin->order.timeout_s =
		value_is_number(timeout) ? value_number(timeout) : TIMEOUT_SECONDS;
	plugin->order.stream_stderr = value_is_true(value_member(policy, "stream_stderr"));
	plugin->tool = run_order_tool(&plugin->order, schema->parameters);
	plugin->tool.description = schema->description;
	plugin->tool.internal = false;
	return true;
}

struct tool plugin_other_tool(const struct plugin *plugin, const struct run_order *other)
{
	struct run_order order = plugin->order;

	order.subcommand = other->subcommand;
	order.code = other->code;
	order.late_s = other->late_s;
	order.timeout_s = other->timeout_s;
	if (other->subcommand != RUN_TEST)
		return run_order_tool(&order, plugin->schema.parameters);
	order.file = other->file;
	order.copy = other->copy;
	return run_order_tool(&order, NULL);
}

static void plugin_free(struct plugin *plugin)
{
	plugin_schema_fini(&plugin->schema);
	value_free(plugin->tool.carried);
	value_free(plugin->environment);
	value_free(plugin->secrets);
	free(plugin->file);
	free(plugin->copy);
	free(plugin);
}

/* The first half of loading: each source is hashed, let in or refused, and copied. */

/* A plugin is left out: SOURCE and TEXT join the problems. */
static void problem_add(struct loading *loading, const char *source, const char *text)
{
	struct value *entry = value_new_object();
	auto_free char *line = memory_copy(text);

	for (char *at = line; *at; at++)
		*at = *at == '\n' ? ' ' : *at;
	value_set_text(entry, "source", source);
	value_set_text(entry, "text", line);
	value_append(loading->plugins->problems, entry);
}

/* Is ENTRY of `plugins` in our form? (Other programs have other forms.) */
static bool is_ours(const struct value *entry)
{
	return value_kind(entry) == VALUE_STRING ||
	       value_member(entry, "bash_tool") != NULL ||
	       value_member(entry, "toolbox") != NULL;
}

static void package_free(struct plugin_package *package)
{
	free(package->source);
	free(package->place);
	free(package->copy);
	plugin_manifest_fini(&package->manifest);
	free(package);
}

/* May an agent of this run write to PLACE? */
static bool is_exposed(const struct plugin_host *host, const char *place)
{
	bool exposed = path_within(place, host->cell->workspace);

	for (size_t i = 0; host->writable != NULL && i < host->writable->count; i++)
		exposed = exposed || path_within(place, host->writable->items[i].path);
	return exposed;
}

/*
 * Does PLACE, which may be named by links, lie where no agent may write? The folder is
 * made first, since only a folder that exists has a real path.
 */
static bool cache_is_apart(const struct plugin_host *host, const char *place, struct err *err)
{
	char within[PATH_MAX];

	if (snprintf(within, sizeof(within), "%s/", place) >= (int)sizeof(within))
		return err_set(err, ENAMETOOLONG, "%s: the path is too long", place);
	if (!is_exposed(host, place) && !fd_make_folders(within, err))
		return false;
	auto_free char *real = realpath(place, NULL);
	const char *at = real != NULL ? real : place;
	return (!is_exposed(host, at) && !path_within(host->cell->workspace, at)) ||
	       err_set(err, EPERM,
		       "%s lies where an agent may write, or holds the workspace: an agent could "
		       "change the copies that plugins run from",
		       at);
}

/* Find the folder of the copies, which no cell can reach. */
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
	ok = source_expand(&host->places, str_of(host->cache_dir), &text, err) &&
	     (path_normal(host->places.config_dir, text.data, &normal) ||
	      err_set(err, EINVAL, "is no path"));
	ok = ok && cache_is_apart(host, normal.data, err);
	if (!ok)
		(void)err_while(err, "plugin_cache_dir");
	loading->cache = buf_take(&normal);
	buf_fini(&text);
	return ok;
}

/*
 * Has the user let in this content of the source? A new source that lies where no agent
 * may write is let in now, because the user has named it.
 */
static bool trust(const struct loading *loading, const struct plugin_source *from,
		  const struct plugin_package *package, struct err *err)
{
	const char *source = package->source;
	const char *dialect = package->dialect == PLUGIN_TOOLBOX ? "toolbox:" : "";
	const struct plugin_host *host = loading->host;
	struct plugin_trusted before;

	if (host->named_now)
		return true;
	if (!source_trust_find(host->state, source, &before, err))
		return false;
	if (!host->trusts && before.hash[0] != '\0') {
		if (strcmp(before.hash, package->content.hash) == 0)
			return true;
		return err_set(err, EPERM,
			       "it has changed since you let it in (%.12s then, %.12s now). Look at "
			       "it, then: glovebox plugin trust %s%s",
			       before.hash, package->content.hash, dialect, source);
	}
	/* A source of git has no place on this machine but its copy. */
	if (!host->trusts && from->kind != PLUGIN_GIT && is_exposed(host, package->place))
		return err_set(err, EPERM,
			       "it lies where an agent may write. Look at it, "
			       "then: glovebox plugin trust %s%s",
			       dialect, source);
	return source_trust_record(host->state, loading->cache, source, &package->content,
				   err);
}

/* Find the files of a source of this machine: at its own real PATH. */
static bool find_local(const struct loading *loading, const struct plugin_source *source,
		       struct plugin_package *package, char path[PATH_MAX], struct err *err)
{
	const char *workspace = loading->host->cell->workspace;
	struct stat st;

	if (realpath(source->text, path) == NULL || stat(path, &st) < 0)
		return err_set(err, errno, "%s", strerror(errno));
	if (source->kind == PLUGIN_FILE && !S_ISREG(st.st_mode))
		return err_set(err, EISDIR,
			       "file names a single script; a folder is named as path");
	if (source->kind == PLUGIN_FOLDER && S_ISREG(st.st_mode))
		return err_set(err, ENOTDIR,
			       "path names a folder; a single script is named as file");
	if (!S_ISREG(st.st_mode) && path_within(workspace, path))
		return err_set(err, EINVAL,
			       "this folder holds the workspace %s, and would be shown read-only "
			       "over it: work elsewhere (-C), or name the script",
			       workspace);
	package->place = memory_copy(path);
	/* Use the real path, so that one place has one record under all its names. */
	free(package->source);
	package->source = memory_copy(path);
	return true;
}

/*
 * Find the files of a git source: the copy of the content that was let in, which is then
 * the content of PACKAGE, or else in FOLDER, to which they are fetched.
 */
static bool find_git(const struct loading *loading, const struct plugin_source *source,
		     struct plugin_package *package, struct buf *folder,
		     char path[PATH_MAX], struct err *err)
{
	const struct plugin_host *host = loading->host;
	struct plugin_trusted before = {0};

	if (!host->named_now &&
	    !source_trust_find(host->state, package->source, &before, err))
		return false;
	if (!host->trusts && before.hash[0] != '\0' &&
	    snprintf(path, PATH_MAX, "%s/%s/files", loading->cache, before.hash) < PATH_MAX &&
	    access(path, F_OK) == 0) {
		package->content = before;
		return true;
	}
	if (!host->trusts)
		(void)snprintf(package->content.commit, sizeof(package->content.commit),
			       "%s", before.commit);
	bool ok = host->fetch(host->context, source, folder, package->content.commit, err);
	(void)snprintf(path, PATH_MAX, "%.4080s/files", folder->data);
	return ok;
}

/* The one way of a source: it is found, hashed, let in or refused, copied and read. */
static bool package_make(struct loading *loading, const struct plugin_source *source,
			 struct plugin_package *package, struct err *err)
{
	struct buf fetched, copy;
	char path[PATH_MAX] = "";

	buf_init(&fetched, PATH_MAX - sizeof("/files"));
	buf_init(&copy, PATH_MAX);
	bool ok = source->kind == PLUGIN_GIT
			  ? find_git(loading, source, package, &fetched, path, err)
			  : find_local(loading, source, package, path, err);
	if (ok && package->content.hash[0] == '\0')
		ok = source_copy_hash(path, package->content.hash, err);
	ok = ok && trust(loading, source, package, err) &&
	     source_copy_make(path, loading->cache, package->content.hash, &copy, err) &&
	     plugin_manifest_read(copy.data, package->dialect, &package->manifest, err);
	if (fetched.size > 0)
		fd_folder_remove(fetched.data);
	buf_fini(&fetched);
	package->copy = buf_take(&copy);
	if (package->place == NULL)
		package->place = memory_copy(package->copy);
	return ok;
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
	package->dialect = source->dialect;
	if (package_make(loading, source, package, &err)) {
		plugins->packages[plugins->package_count++] = package;
	} else {
		problem_add(loading, package->source, err.text);
		package_free(package);
	}
}

/* Make a package with a copy of each source that is let in. False: an entry is wrong. */
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

		if (!is_ours(entry))
			continue;
		if (!plugin_source_parse(&host->places, entry, &source, err))
			return err_while(err, "plugins/%zu", i);
		package_add(loading, &source);
		plugin_source_fini(&source);
	}
	return true;
}

/* The second half: the scripts of each package describe themselves. */

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
	value_free(plugins->python);
	free(plugins->folder);
	free(plugins);
}

/* The position of the first of SOURCES that is ours; their number when there is none. */
static size_t first_of_ours(const struct value *sources)
{
	size_t at = 0;

	while (at < value_count(sources) && !is_ours(value_item(sources, at)))
		at++;
	return at;
}

/*
 * Append the name of the entry for people: its place when the person has just named it,
 * else its position in the configuration.
 */
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

static bool may(const struct loading *loading, struct err *err)
{
	const struct plugin_host *host = loading->host;

	for (size_t i = 0; !host->named_now && i < value_count(host->sources); i++) {
		const struct value *entry = value_item(host->sources, i);
		bool toolbox = plugin_source_dialect(entry) == PLUGIN_TOOLBOX;
		const char *key = toolbox ? "allow_toolboxes" : "allow_bash_tools";

		if (!is_ours(entry) || value_is_true(value_member(host->policy, key)))
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

static const char *asked(const struct plugin *plugin)
{
	return plugin_dialect_question(plugin->package->dialect);
}

/*
 * Set PATH to the file of the script's last answer, beside the copy in which it was asked.
 * False: the path is too long.
 */
static bool schema_path(const struct loading *loading, const struct plugin *plugin,
			char path[PATH_MAX])
{
	char hex[HASH_HEX + 1];

	hash_text(str_of(plugin->copy), hex);
	return snprintf(path, PATH_MAX, "%s/%s/%s-%.16s.json", loading->cache,
			plugin->package->content.hash, asked(plugin), hex) < PATH_MAX;
}

static void schema_keep(const struct loading *loading, const struct plugin *plugin,
			struct str text)
{
	char path[PATH_MAX], temp[PATH_MAX];

	if (!schema_path(loading, plugin, path) ||
	    snprintf(temp, sizeof(temp), "%s.new", path) >= (int)sizeof(temp))
		return;
	/* Without this file the script is asked again the next time. */
	(void)unlink(temp);
	auto_close int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && fd_write_all(fd, text.data, text.size, NULL))
		(void)rename(temp, path);
}

/* Ask the script itself for its description, in a cell. */
static bool schema_ask(struct loading *loading, const struct plugin *plugin,
		       struct buf *text, struct err *err)
{
	const struct run_order order = order_of(loading, plugin);
	struct tool asker = run_order_tool(&order, NULL);
	auto_value struct value *nothing = value_new_object();
	const struct plugin_look look = {.tool = &asker,
					 .arguments = nothing,
					 .shown = loading->plugins->shown};
	struct tool_result result;

	tool_result_init(&result);
	bool ok = plugin_cell_look(loading->host->cell, &look, &result, err);
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
	     plugin_schema_parse(plugin->package->dialect, buf_str(&text),
				 &plugin->schema, err);
	if (ok && !kept)
		schema_keep(loading, plugin, buf_str(&text));
	buf_fini(&text);
	return ok;
}

static bool name_is_free(const struct loading *loading, const struct plugin *plugin,
			 struct err *err)
{
	const char *id = plugin->schema.id;
	const struct tool *taken = tool_find(loading->host->cell->tools, id);

	if (taken != NULL)
		return err_set(err, EEXIST,
			       "%s is the name of the built-in tool %s: rename this one",
			       id, taken->name);
	for (size_t i = 0; i < loading->plugins->count; i++) {
		const struct plugin *other = loading->plugins->items[i];

		if (strcmp(other->schema.id, id) == 0)
			return err_set(err, EEXIST,
				       "%s is the name of %s, too: rename one of them",
				       id, other->file);
	}
	return true;
}

/* Does ID fit one of NAMES, which may be patterns? */
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
	for (size_t i = 0; ok && i < value_count(plugin->schema.config_keys); i++)
		value_append(loading->asked,
			     value_ref(value_item(plugin->schema.config_keys, i)));
	if (ok && !is_enabled(loading->host, plugin->schema.id)) {
		plugin_free(plugin);
		return;
	}
	if (ok && name_is_free(loading, plugin, &err) && tool_make(loading, plugin, &err)) {
		loading->plugins->items[loading->plugins->count++] = plugin;
		return;
	}
	problem_add(loading, file, err.text);
	plugin_free(plugin);
}

static void package_scripts(struct loading *loading, const struct plugin_package *package)
{
	const struct value *files = package->manifest.files;

	if (package->manifest.kind == PLUGIN_FILE)
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
		count += 1 + value_count(plugins->packages[i]->manifest.files);
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

/* A name in the lists that fits no plugin is a typing error: report it. */
static void check_names(struct loading *loading, const struct value *names, const char *key)
{
	for (size_t i = 0; i < value_count(names); i++) {
		const char *name = value_text(value_item(names, i));
		struct buf text;

		if (fits_one(name, loading->ids))
			continue;
		buf_init(&text, ERR_TEXT_MAX);
		(void)buf_addf(&text, "it names \"%.64s\", and no plugin is called so",
			       name);
		problem_add(loading, key, text.data);
		buf_fini(&text);
	}
}

/*
 * A key of the configuration that no plugin has asked for is a slip, and an error. When a
 * plugin was left out, it may have asked for the key: then the slip is only a problem.
 */
static bool check_keys(struct loading *loading, struct err *err)
{
	const bool all = value_count(loading->plugins->problems) == 0;
	struct err why = {0};

	if (loading->host->named_now || loading->host->trusts ||
	    config_check_plugin_keys(loading->host->whole, loading->asked, &why))
		return true;
	if (all)
		return err_set(err, why.code, "%s", why.text);
	problem_add(loading, "config_keys", why.text);
	return true;
}

/* Fill in the placeholders of the settings that all scripts share. */
static bool settings_expand(struct loading *loading, struct err *err)
{
	const struct plugin_host *host = loading->host;
	const struct value *python = value_member(host->policy, "python");
	auto_value struct value *values = config_plugin_values(host->whole, host->agent);
	struct buf normal, name;

	if (python != NULL &&
	    !source_expand_value(&host->places, python, &loading->plugins->python, err))
		return err_while(err, "plugin_policy.python");
	loading->config = value_new_object();
	for (void *at = value_first(values); at != NULL; at = value_next(values, at)) {
		struct value *value = NULL;

		if (!source_expand_value(&host->places, value_at(at), &value, err))
			return err_while(err, "%.64s", value_key(at));
		value_set(loading->config, value_key(at), value);
	}
	const char *folder = value_text(value_member(loading->config, "working_directory"));
	if (folder == NULL)
		return true;
	buf_init(&normal, PATH_MAX);
	buf_init(&name, PATH_MAX);
	name_entry(host, first_of_ours(host->sources), &name);
	bool ok = path_normal(host->cell->workspace, folder, &normal) ||
		  err_set(err, EINVAL,
			  "%s would start in working_directory, and a path is at most %d "
			  "bytes long",
			  name.data, PATH_MAX - 1);
	loading->plugins->folder = buf_take(&normal);
	buf_fini(&name);
	return ok;
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
	struct loading loading = {.host = host,
				  .plugins = memory_alloc(sizeof(struct plugins))};
	bool ok = true;

	loading.plugins->problems = value_new_array();
	loading.ids = value_new_array();
	loading.asked = value_new_array();
	if (first_of_ours(host->sources) < value_count(host->sources)) {
		ok = may(&loading, err) && cache_find(&loading, err) &&
		     settings_expand(&loading, err) && packages_load(&loading, err);
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

/* The cell in which scripts are asked to describe themselves. */

bool plugin_cell_policy(struct config *config, const struct value *shipped,
			const char *agent, const char *workspace, struct policy **policy,
			struct err *err)
{
	auto_value struct value *entry = value_new_object();

	/*
	 * The agent's own lists are removed, because they may name tools and folders that
	 * this cell does not have.
	 */
	value_set(entry, "tools", value_new_array());
	value_set(entry, "write", value_new_array());
	value_set(entry, "network", value_new_array());
	value_set(entry, "publish", value_new_array());
	value_set(entry, "env", value_new_array());
	value_set_boolean(entry, "scratch", false);
	value_set_text(entry, "commands", "box");
	return config_override(config, agent, entry, "plugins", err) &&
	       config_policy(config, shipped, agent, workspace, policy, err);
}

static bool cell_make(struct plugin_cell *cell, const struct shape_shown *shown,
		      struct err *err)
{
	const struct session_options options = {
		.workspace = cell->workspace,
		.take_policy = cell->take_policy,
		.tools = cell->tools,
		.program = cell->program,
		.shown = shown,
		.minimum_level = cell->minimum_level,
		.cancel_fd = -1,
	};

	if (cell->take_policy == NULL)
		return err_set(err, EINVAL, "its cell is gone");
	cell->take_policy = NULL;
	return session_open(&options, &cell->session, err) ||
	       err_while(err, "the cell that plugins are looked at from");
}

bool plugin_cell_look(struct plugin_cell *cell, const struct plugin_look *look,
		      struct tool_result *result, struct err *err)
{
	struct request request = {.tool = look->tool->name,
				  .made = look->tool,
				  .arguments = look->arguments,
				  .by_front = true,
				  .quiet = true,
				  .timeout_s = look->timeout_s > 0 ? look->timeout_s
								   : look->tool->timeout_s};

	if (cell->session == NULL && !cell_make(cell, look->shown, err))
		return false;
	for (size_t i = 0; look->fds != NULL && i < 3; i++)
		request.fds[request.fd_count++] = look->fds[i];
	tool_result_fini(result);
	session_call(cell->session, &request, result);
	return true;
}

void plugin_cell_end(struct plugin_cell *cell)
{
	session_close(cell->session);
	cell->session = NULL;
	policy_free(cell->take_policy);
	cell->take_policy = NULL;
}
