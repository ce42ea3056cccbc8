/* plugin_cell: the cell that scripts are looked at from; see plugin_cell.h. */
#include "plugins/plugin_cell.h"

#include <errno.h>

#include "session/session.h"

bool plugin_cell_policy(struct config *config, const struct value *shipped,
			const char *agent, const char *workspace, struct policy **policy,
			struct err *err)
{
	auto_value struct value *entry = value_new_object();

	/* Not those of the agent, which may name what is only to be looked at here. */
	value_set(entry, "tools", value_new_array());
	value_set(entry, "write", value_new_array());
	value_set(entry, "network", value_new_array());
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
