/* library_plugins: see library_plugins.h. */
#include "library/library_plugins.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/path.h"
#include "base/text.h"
#include "runtime/session.h"
#include "tools/tools.h"

enum { PROBLEM_MAX = 16 << 10 };

/* What scripts are looked at from: a cell that only reads, for as long as they are loaded. */
struct looking {
	const struct library_plugins *plugins;
	struct policy *take_policy;
	struct session *session;
};

static bool look_policy(const struct library_plugins *plugins, struct config *config,
			struct policy **policy, struct err *err)
{
	auto_value struct value *entry = value_new_object();

	value_set(entry, "write", value_new_array());
	value_set(entry, "network", value_new_array());
	value_set(entry, "env", value_new_array());
	value_set_boolean(entry, "scratch", false);
	value_set_text(entry, "commands", "box");
	return config_override(config, plugins->agent, entry, "plugins", err) &&
	       config_policy(config, NULL, plugins->agent, plugins->workspace, policy, err);
}

static bool open_cell(struct looking *looking, const struct shape_shown *shown,
		      struct err *err)
{
	const struct session_options options = {
		.workspace = looking->plugins->workspace,
		.take_policy = looking->take_policy,
		.tools = builtin_tools,
		.program = looking->plugins->program,
		.shown = shown,
		.minimum_level = looking->plugins->minimum_level,
		.cancel_fd = -1,
	};

	if (looking->take_policy == NULL)
		return err_set(err, EINVAL, "its cell is gone");
	looking->take_policy = NULL;
	return session_open(&options, &looking->session, err) ||
	       err_while(err, "the cell that plugins are looked at from");
}

static bool look(void *context, const struct plugin_look *wanted,
		 struct tool_result *result, struct err *err)
{
	struct looking *looking = context;
	const struct request request = {.tool = wanted->tool->name,
					.made = wanted->tool,
					.arguments = wanted->arguments,
					.by_front = true,
					.quiet = true,
					.timeout_s = wanted->tool->timeout_s};

	if (looking->session == NULL && !open_cell(looking, wanted->shown, err))
		return false;
	tool_result_fini(result);
	session_call(looking->session, &request, result);
	return true;
}

/* A library reaches for no network by itself. */
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

static const char **paths_of(const struct policy_paths *paths)
{
	const char **list = memory_array(paths->count + 1, sizeof(*list));

	for (size_t i = 0; i < paths->count; i++)
		list[i] = paths->items[i].path;
	return list;
}

static char **problems_of(const struct plugins *loaded)
{
	const size_t count = value_count(loaded->problems);
	char **problems = memory_array(count + 1, sizeof(*problems));

	for (size_t i = 0; i < count; i++) {
		const struct value *problem = value_item(loaded->problems, i);
		struct buf text;

		buf_init(&text, PROBLEM_MAX);
		text_add_name(&text, value_str(value_member(problem, "source")));
		(void)buf_adds(&text, ": ");
		text_add_name(&text, value_str(value_member(problem, "text")));
		problems[i] = buf_take(&text);
	}
	return problems;
}

bool library_plugins_load(struct library_plugins *plugins, struct config *config,
			  const struct policy *policy, struct err *err)
{
	auto_free const char **writable = paths_of(&policy->write);
	struct looking looking = {.plugins = plugins};
	struct plugin_host host = {
		.sources = config_value(config, "plugins"),
		.policy = config_value(config, "plugin_policy"),
		.config = config_value(config, "plugin_config"),
		.enabled = config_value(config, "enabled_plugins"),
		.disabled = config_value(config, "disabled_plugins"),
		.cache_dir = value_text(config_value(config, "plugin_cache_dir")),
		.places = {.config_dir = plugins->workspace,
			   .working_dir = plugins->workspace,
			   .environment = (const char *const *)(uintptr_t)environ},
		.workspace = plugins->workspace,
		.writable = (const char *const *)writable,
		.tools = builtin_tools,
		.look = look,
		.fetch = fetch,
		.context = &looking,
	};
	struct buf state;
	bool ok;

	if (value_count(host.sources) == 0)
		return true;
	if (!look_policy(plugins, config, &looking.take_policy, err))
		return false;
	buf_init(&state, PATH_MAX);
	if (path_xdg(getenv("XDG_STATE_HOME"), getenv("HOME"), ".local/state",
		     "glovebox/plugins", &state))
		host.state = state.data;
	ok = plugins_load(&host, &plugins->loaded, err);
	if (ok)
		plugins->problems = problems_of(plugins->loaded);
	session_close(looking.session);
	policy_free(looking.take_policy);
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
