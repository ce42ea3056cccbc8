/* plugins: the front's part of loading scripts as tools; see plugins.h. */
#include "front/plugins.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "front/plugin_fetch.h"
#include "front/setup.h"
#include "front/verb.h"
#include "runtime/session.h"
#include "store/state.h"
#include "tools/tools.h"

static bool session_make(struct front_plugins *plugins, const struct shape_shown *shown,
			 struct err *err)
{
	const struct session_options options = {
		.workspace = plugins->workspace,
		.take_policy = plugins->take_policy,
		.tools = builtin_tools,
		.shown = shown,
		.minimum_level = plugins->minimum_level,
		.cancel_fd = -1,
	};

	plugins->take_policy = NULL;
	return session_open(&options, &plugins->session, err) ||
	       err_while(err, "the cell that plugins are looked at from");
}

bool front_plugins_look(void *context, const struct plugin_look *look,
			struct tool_result *result, struct err *err)
{
	struct front_plugins *plugins = context;
	const struct request request = {.tool = look->tool->name,
					.made = look->tool,
					.arguments = look->arguments,
					.by_front = true,
					.quiet = true,
					.timeout_s = look->tool->timeout_s};

	if (plugins->session == NULL) {
		if (plugins->take_policy == NULL)
			return err_set(err, EINVAL, "its cell is gone");
		if (!session_make(plugins, look->shown, err))
			return false;
	}
	tool_result_fini(result);
	session_call(plugins->session, &request, result);
	return true;
}

static bool fetch(void *context, const struct plugin_source *source, struct buf *folder,
		  char commit[HASH_HEX + 1], struct err *err)
{
	const struct front_plugins *plugins = context;

	const struct plugin_fetch_terms terms = {.hosts = plugins->git_hosts,
						 .resolver = plugins->resolver,
						 .minimum_level = plugins->minimum_level};

	return setup_temp_folder("fetch", folder, err) &&
	       plugin_fetch(source, &terms, folder->data, commit, err);
}

/* What a person names on the command line, as an entry of `plugins`. */
static struct value *entry_of(const char *named)
{
	struct str text = str_of(named);
	struct buf entry, place;
	struct value *made;

	const bool toolbox = str_starts(text, STR("toolbox:"));

	if (str_starts(text, STR("bash:")) || str_starts(text, STR("bash+git:")))
		return value_new_text(named);
	buf_init(&entry, 2 * PATH_MAX);
	buf_init(&place, PATH_MAX);
	if (!toolbox && str_find(text, STR("://"), 0) != (size_t)-1) {
		(void)buf_addf(&entry, "bash+git:%s", named);
	} else {
		auto_free char *here = getcwd(NULL, 0);

		(void)path_normal(here != NULL ? here : "/",
				  toolbox ? named + strlen("toolbox:") : named, &place);
		(void)buf_addf(&entry, "%s:%s", toolbox ? "toolbox" : "bash", place.data);
	}
	made = value_new_str(buf_str(&entry));
	buf_fini(&place);
	buf_fini(&entry);
	return made;
}

static void tell_problems(const struct plugins *loaded)
{
	for (size_t i = 0; i < value_count(loaded->problems); i++) {
		const struct value *entry = value_item(loaded->problems, i);
		struct buf text;

		buf_init(&text, 16 << 10);
		text_add_name(&text, value_str(value_member(entry, "source")));
		(void)buf_adds(&text, ": ");
		text_add_name(&text, value_str(value_member(entry, "text")));
		(void)fprintf(stderr, "glovebox: a plugin is left out: %s\n", text.data);
		buf_fini(&text);
	}
}

char *front_plugins_folder(const char *config_path)
{
	struct buf folder;
	auto_free char *here = getcwd(NULL, 0);
	char *text;

	buf_init(&folder, PATH_MAX);
	(void)path_normal(here != NULL ? here : "/",
			  config_path != NULL ? config_path : ".", &folder);
	text = buf_take(&folder);
	if (config_path != NULL)
		text[path_base_name(text) - text] = '\0';
	return text;
}

static const char **paths_of(const struct policy_paths *paths)
{
	size_t count = paths != NULL ? paths->count : 0;
	const char **list = memory_array(count + 1, sizeof(*list));

	for (size_t i = 0; i < count; i++)
		list[i] = paths->items[i].path;
	return list;
}

bool front_plugins_load(struct front_plugins *plugins, const struct config *config,
			const struct front_plugins_wish *wish, bool quiet, struct err *err)
{
	auto_value struct value *named = NULL;
	auto_free char *folder = front_plugins_folder(plugins->config_path);
	auto_free const char **writable = paths_of(plugins->writable);
	struct buf state;
	bool ok;

	buf_init(&state, PATH_MAX);
	plugins->resolver = config_resolver(config);
	plugins->git_hosts =
		value_member(config_value(config, "plugin_policy"), "allowed_git_hosts");
	struct plugin_host host = {
		.sources = config_value(config, "plugins"),
		.policy = config_value(config, "plugin_policy"),
		.config = config_value(config, "plugin_config"),
		.enabled = config_value(config, "enabled_plugins"),
		.disabled = config_value(config, "disabled_plugins"),
		.cache_dir = value_text(config_value(config, "plugin_cache_dir")),
		.places = {.config_dir = folder,
			   .working_dir = plugins->workspace,
			   .environment = (const char *const *)(uintptr_t)environ},
		.workspace = plugins->workspace,
		.writable = (const char *const *)writable,
		.tools = plugins->tools,
		.named_now = wish->named != NULL && !wish->trusts,
		.trusts = wish->trusts,
		.look = front_plugins_look,
		.fetch = fetch,
		.context = plugins,
	};
	if (state_path("plugins", &state, NULL))
		host.state = state.data;
	if (wish->named != NULL) {
		named = value_new_array();
		value_append(named, entry_of(wish->named));
		host.sources = named;
		host.enabled = host.disabled = NULL;
	}
	ok = plugins_load(&host, &plugins->loaded, err);
	if (ok && !quiet)
		tell_problems(plugins->loaded);
	buf_fini(&state);
	return ok;
}

void front_plugins_rest(struct front_plugins *plugins)
{
	session_close(plugins->session);
	plugins->session = NULL;
}

void front_plugins_fini(struct front_plugins *plugins)
{
	front_plugins_rest(plugins);
	policy_free(plugins->take_policy);
	plugins_free(plugins->loaded);
	memset(plugins, 0, sizeof(*plugins));
}
