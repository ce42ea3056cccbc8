/* plugins: the front's part of loading scripts as tools. */
#include "front/plugins.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "front/plugin_fetch.h"
#include "front/setup.h"
#include "session/session.h"
#include "store/database.h"
#include "tools/tools.h"

#define PREVIEW_S 2.0

static bool fetch(void *context, const struct plugin_source *source, struct buf *folder,
		  char commit[HASH_HEX + 1], struct err *err)
{
	const struct front_plugins *plugins = context;

	const struct plugin_fetch_terms terms = {.hosts = plugins->git_hosts,
						 .resolver = plugins->resolver,
						 .minimum_level =
							 plugins->cell.minimum_level};

	return setup_temp_folder("fetch", folder, err) &&
	       plugin_fetch(source, &terms, folder->data, commit, err);
}

/* Make an entry of `plugins` from NAMED, a word of the command line. */
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
		auto_free char *text =
			plugins_problem_text(value_item(loaded->problems, i));

		(void)fprintf(stderr, "glovebox: a plugin is left out: %s\n", text);
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

bool front_plugins_load(struct front_plugins *plugins, const struct config *config,
			const struct front_plugins_wish *wish, bool quiet, struct err *err)
{
	auto_value struct value *named = NULL;
	auto_free char *folder = front_plugins_folder(plugins->config_path);
	struct buf state;
	bool ok;

	buf_init(&state, PATH_MAX);
	plugins->resolver = config_resolver(config);
	plugins->git_hosts =
		value_member(config_value(config, "plugin_policy"), "allowed_git_hosts");
	struct plugin_host host = {
		.places = {.config_dir = folder,
			   .working_dir = plugins->cell.workspace,
			   .environment = (const char *const *)(uintptr_t)environ},
		.cell = &plugins->cell,
		.writable = plugins->writable,
		.named_now = wish->named != NULL && !wish->trusts,
		.trusts = wish->trusts,
		.fetch = fetch,
		.context = plugins,
	};
	plugin_host_configure(&host, config, plugins->agent);
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

static const struct plugin *plugin_of(const struct plugins *loaded, const char *tool)
{
	for (size_t i = 0; loaded != NULL && i < loaded->count; i++) {
		if (strcmp(loaded->items[i]->tool.name, tool) == 0)
			return loaded->items[i];
	}
	return NULL;
}

bool front_plugins_preview(struct front_plugins *plugins, const char *tool,
			   const struct value *arguments, struct buf *line)
{
	const struct plugin *plugin = plugin_of(plugins->loaded, tool);
	struct tool_result result;
	struct tool preview;
	struct err err;
	bool ok;

	if (plugin == NULL || plugin->package->is_toolbox)
		return false;
	preview = plugin_look_tool(plugin, "preview", PREVIEW_S);
	const struct plugin_look look = {.tool = &preview,
					 .arguments = arguments,
					 .shown = plugins->loaded->shown};

	tool_result_init(&result);
	ok = plugin_cell_look(&plugins->asked, &look, &result, &err) &&
	     result.status == RESULT_DONE && result.text.size > 0 &&
	     buf_addstr(line, buf_str(&result.text));
	tool_result_fini(&result);
	value_free(preview.carried);
	return ok;
}

void front_plugins_rest(struct front_plugins *plugins)
{
	plugin_cell_end(&plugins->cell);
}

void front_plugins_fini(struct front_plugins *plugins)
{
	front_plugins_rest(plugins);
	plugin_cell_end(&plugins->asked);
	plugins_free(plugins->loaded);
	memset(plugins, 0, sizeof(*plugins));
}
