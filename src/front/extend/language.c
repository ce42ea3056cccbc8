/* language: reads the key `lsp`, and opens the cell of the language servers. */

#include "front/extend/language.h"

#include "base/memory.h"
#include "extend/lsp/lsp.h"
#include "front/setup.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "session/session.h"
#include "tools/tools.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Of one server and all that it starts. Servers of large projects have taken many times that. */
static const uint64_t memory_max = 1ULL << 30;

/* Calls that read a file for a server, beside the servers themselves. */
enum { READY_WORKERS = 2 };

struct language {
	const struct setup *setup;
	struct value *settings;
	struct policy *take_policy; /* moved to the session */
	struct lsp *lsp;
};

static bool open_cell(void *context, struct loop *loop, struct session **session,
		      struct err *err)
{
	struct language *language = context;
	struct session_options options = {.minimum_level =
						  setup_least_level(language->setup)};
	const char *files[SETUP_PROTECTED_MAX];

	if (language->setup->review != NULL)
		return err_set(
			err, EINVAL,
			"what the agent changes goes into a layer, which they would not see");
	if (language->take_policy == NULL)
		return err_set(err, EINVAL, "their cell has ended");
	setup_fill_options(language->setup, files, &options);
	options.take_policy = language->take_policy;
	options.tools = builtin_tools;
	options.loop = loop;
	options.ready_workers = READY_WORKERS;
	options.credentials = NULL;
	options.credential_count = 0;
	options.undo_folder = NULL;
	options.undoes = NULL;
	options.publishes = false; /* the agent's cell has the ports */
	options.asks = false;
	options.ssh = NULL;
	options.cancel_fd = -1;
	language->take_policy = NULL;
	return session_open(&options, session, err);
}

/* The tool joins our own ones. */
static void add_tool(struct setup *setup, const struct tool *tool)
{
	size_t count = 0;

	while (setup->own_tools[count] != NULL)
		count++;
	setup->own_tools =
		memory_grow(setup->own_tools, count + 2, sizeof(*setup->own_tools));
	setup->own_tools[count] = tool;
	setup->own_tools[count + 1] = NULL;
	setup->tools = setup->own_tools;
}

bool language_read(struct setup *setup, struct config *config,
		   const struct value *shipped, struct err *err)
{
	const struct value *settings = config_value(config, "lsp");
	auto_value struct value *entry = value_new_object();
	struct policy *policy = NULL;
	struct language *language;

	if (value_count(settings) == 0 || setup->language != NULL)
		return true;
	/* Only the cell limits the programs; the agent's list may name tools of servers. */
	value_set_text(entry, "commands", "box");
	value_set(entry, "tools", value_new_array());
	if (!config_override(config, setup->agent, entry, "lsp", err) ||
	    !config_policy(config, shipped, setup->agent, setup->workspace, &policy, err))
		return false;
	if (policy->limits.memory > memory_max)
		policy->limits.memory = memory_max;
	language = memory_alloc(sizeof(*language));
	language->setup = setup;
	language->settings = value_copy(settings);
	language->take_policy = policy;
	language->lsp = lsp_new(&(struct lsp_options){
		.settings = language->settings,
		.workspace = setup->workspace,
		.open_cell = open_cell,
		.context = language,
	});
	setup->language = language;
	add_tool(setup, lsp_tool(language->lsp));
	return true;
}

void language_close(struct language *language)
{
	if (language == NULL)
		return;
	lsp_free(language->lsp);
	policy_free(language->take_policy);
	value_free(language->settings);
	free(language);
}

struct lsp *language_lsp(const struct setup *setup)
{
	return setup->language != NULL ? setup->language->lsp : NULL;
}
