/* servers: the front's part of using MCP servers. */
#include "front/servers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text/text.h"
#include "build_config.h"
#include "front/plugins.h"
#include "plugins/source.h"
#include "process/loop.h"
#include "tools/tools.h"

enum {
	WHY_MAX = 16 << 10,
	/* The programs wait for their input: nobody waits for their workers. */
	READY_WORKERS = 2,
};

bool front_servers_read(struct front_servers *servers, const struct config *config,
			const char *config_path, const char *workspace, struct err *err)
{
	const struct value *settings = config_value(config, "mcpServers");
	auto_free char *folder = front_plugins_folder(config_path);
	const struct plugin_places places = {
		.config_dir = folder,
		.working_dir = workspace,
		.environment = (const char *const *)(uintptr_t)environ,
	};

	if (value_count(settings) == 0)
		return true;
	if (!plugin_expand_value(&places, settings, &servers->settings, err))
		return err_while(err, "mcpServers");
	return remotes_check(servers->settings, err);
}

/* Print the problems that were not printed yet. */
static void tell_problems(struct front_servers *servers)
{
	const struct value *problems = remotes_problems(servers->remotes);

	for (; servers->told < value_count(problems); servers->told++) {
		struct buf text;

		buf_init(&text, WHY_MAX);
		(void)text_clean(value_str(value_item(problems, servers->told)), &text);
		(void)fprintf(stderr, "glovebox: %s\n", text.data);
		buf_fini(&text);
	}
}

static bool changed(void *context)
{
	struct front_servers *servers = context;

	tell_problems(servers);
	return servers->changed != NULL && servers->changed(servers->context);
}

const struct tool *const *front_servers_tools(const struct front_servers *servers)
{
	return servers->remotes != NULL ? remotes_tools(servers->remotes) : NULL;
}

bool front_servers_start(struct front_servers *servers,
			 const struct session_options *options,
			 const struct tool *const *tools, struct err *err)
{
	struct session_options own = *options;

	servers->loop = loop_new();
	own.take_policy = servers->take_policy;
	own.tools = builtin_tools;
	own.loop = servers->loop;
	own.ready_workers = READY_WORKERS;
	own.undo_folder = NULL;
	own.cancel_fd = -1;
	servers->take_policy = NULL;
	if (!session_open(&own, &servers->session, err))
		return err_while(err, "the cell of the MCP servers");
	servers->remotes = remotes_start(&(struct remotes_options){
		.session = servers->session,
		.servers = servers->settings,
		.version = GLOVEBOX_VERSION,
		.tools = tools,
		.wait_ms = servers->wait_ms,
		.asks = servers->asks,
		.changed = changed,
		.context = servers,
	});
	tell_problems(servers);
	return true;
}

void front_servers_fini(struct front_servers *servers)
{
	remotes_free(servers->remotes);
	session_close(servers->session);
	if (servers->loop != NULL)
		loop_free(servers->loop);
	policy_free(servers->take_policy);
	value_free(servers->settings);
	memset(servers, 0, sizeof(*servers));
}
