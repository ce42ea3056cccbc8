/* library_plugins: loads plugins for the library, without fetching any. */
#include "library/library_plugins.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "session/session.h"
#include "tools/tools.h"

/* A library does not use the network on its own. */
static bool fetch(void *context, const struct plugin_source *source, struct buf *folder,
		  char commit[HASH_HEX + 1], struct err *err)
{
	(void)context;
	(void)source;
	(void)folder;
	(void)commit;
	return err_set(err, ENOTSUP,
		       "the library fetches nothing: clone it, and name the folder");
}

static char **problems_of(const struct plugins *loaded)
{
	const size_t count = value_count(loaded->problems);
	char **problems = memory_array(count + 1, sizeof(*problems));

	for (size_t i = 0; i < count; i++)
		problems[i] = plugins_problem_text(value_item(loaded->problems, i));
	return problems;
}

bool library_plugins_load(struct library_plugins *plugins, struct config *config,
			  const struct policy *policy, struct err *err)
{
	struct plugin_cell cell = {
		.workspace = plugins->workspace,
		.program = plugins->program,
		.tools = builtin_tools,
		.minimum_level = plugins->minimum_level,
	};
	struct plugin_host host = {
		.places = {.config_dir = plugins->workspace,
			   .working_dir = plugins->workspace,
			   .environment = (const char *const *)(uintptr_t)environ},
		.cell = &cell,
		.writable = &policy->write,
		.fetch = fetch,
	};
	struct buf state;
	bool ok;

	plugin_host_configure(&host, config, plugins->agent);
	if (value_count(host.sources) == 0)
		return true;
	if (!plugin_cell_policy(config, NULL, plugins->agent, plugins->workspace,
				&cell.take_policy, err))
		return false;
	buf_init(&state, PATH_MAX);
	if (path_xdg(getenv("XDG_STATE_HOME"), getenv("HOME"), ".local/state",
		     "glovebox/plugins", &state))
		host.state = state.data;
	ok = plugins_load(&host, &plugins->loaded, err);
	if (ok)
		plugins->problems = problems_of(plugins->loaded);
	plugin_cell_end(&cell);
	buf_fini(&state);
	return ok;
}

void library_plugins_fini(struct library_plugins *plugins)
{
	for (char **at = plugins->problems; at != NULL && *at != NULL; at++)
		free(*at);
	free(plugins->problems);
	plugins->problems = NULL;
	plugins_free(plugins->loaded);
	plugins->loaded = NULL;
}
