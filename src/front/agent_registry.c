/*
 * agent_registry: makes each agent's role and policy as a run would, and describes them.
 */
#include "front/agent_registry.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "front/agent_files.h"
#include "front/agent_workspace.h"
#include "front/setup.h"
#include "policy/config.h"

/* Agents in one registry; the others are left out. */
enum { REGISTRY_MAX = 100 };

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct names {
	char *items[REGISTRY_MAX];
	size_t count;
};

static void add_name(struct names *names, const char *name)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], name) == 0)
			return;
	if (names->count < REGISTRY_MAX)
		names->items[names->count++] = memory_copy(name);
}

static void add_names(struct names *names, char **list)
{
	for (size_t i = 0; list[i] != NULL; i++)
		add_name(names, list[i]);
	agent_files_names_free(list);
}

static void names_fini(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->items[i]);
}

static bool may_delegate(const struct setup *setup, const struct config *config,
			 const struct value *chain, const char *name)
{
	const struct policy_names *allowed = &setup->role.may_delegate_to;

	if (value_has_text(chain, name))
		return false;
	for (size_t i = 0; allowed->given && i < allowed->count; i++)
		if (strcmp(config_role_name(config, allowed->items[i]), name) == 0)
			return true;
	return !allowed->given;
}

static unsigned effects_of(const struct setup *setup, const struct policy *policy)
{
	unsigned effects = 0;

	for (size_t i = 0; setup->tools[i] != NULL; i++) {
		const struct tool *tool = setup->tools[i];

		if (!policy_has_tool(policy, tool->name) || tool->internal)
			continue;
		effects |= tool->effects;
		/* Such a tool hands the task to another agent, which may do anything. */
		if (tool->where == IN_FRONT && tool->begin != NULL)
			effects |= EFFECT_RUNS;
	}
	return effects;
}

static struct value *describe(const struct setup *setup, const char *name,
			      const struct config_role *role, const struct policy *policy)
{
	const unsigned changes = EFFECT_WRITES | EFFECT_RUNS;
	struct value *row = value_new_object();
	struct value *tools = value_new_array(), *write = value_new_array();

	value_set_text(row, "name", name);
	value_set_text(row, "description",
		       role->description != NULL ? role->description : "");
	for (size_t i = 0; i < policy->tools.count; i++)
		value_append(tools, value_new_text(policy->tools.items[i]));
	value_set(row, "tools", tools);
	for (size_t i = 0; i < policy->write.count; i++)
		value_append(write, value_new_text(policy->write.items[i].text));
	value_set(row, "write", write);
	value_set_boolean(row, "only_reads", (effects_of(setup, policy) & changes) == 0);
	return row;
}

static void add_row(const struct setup *setup, struct config *config, const char *name,
		    const struct value *shipped, struct value *registry)
{
	auto_policy struct policy *policy = NULL;
	struct config_role role = {0};

	if (config_policy(config, shipped, name, setup->workspace, &policy, NULL) &&
	    config_role(config, shipped, name, &role, NULL) &&
	    agent_files_check_delegates(config, shipped, name, setup->workspace, NULL) &&
	    session_check_tools(policy, setup->tools, NULL))
		value_append(registry, describe(setup, name, &role, policy));
	config_role_fini(&role);
}

/*
 * Add the roles of the workspace that were let in, but only under names that no other
 * agent has (TAKEN).
 */
static bool add_workspace(const struct setup *setup, struct config *config,
			  const struct value *chain, const struct names *taken,
			  struct value *registry, struct err *err)
{
	auto_value struct value *list = NULL;
	auto_value struct value *shipped = NULL;
	auto_policy struct policy *bounds = NULL;

	/* Reading the roles takes a cell: make one only where there may be roles. */
	if (!agent_workspace_has_any(setup->workspace))
		return true;
	if (!agent_files_read(POLICY_NAME_DEFAULT, false, config, &shipped, err) ||
	    !config_policy(config, shipped, NULL, setup->workspace, &bounds, err) ||
	    !session_check_tools(bounds, setup->tools, err) ||
	    !agent_workspace_read(bounds, NULL, SESSION_ANY_LEVEL, &list, err))
		return false;
	for (size_t i = 0; i < value_count(list) && value_count(registry) < REGISTRY_MAX;
	     i++) {
		const struct value *file = value_item(list, i);
		struct str name = value_str(value_member(file, "file"));
		auto_free char *word =
			memory_copy_str(str_part(name, 0, name.size - strlen(".md")));
		auto_value struct value *entry = NULL;
		enum agent_trust trust = AGENT_NOT_TRUSTED;
		char hash[HASH_HEX + 1];
		bool hidden = false;

		for (size_t j = 0; j < taken->count; j++)
			hidden = hidden || strcmp(taken->items[j], word) == 0;
		if (hidden || !may_delegate(setup, config, chain, word) ||
		    !agent_workspace_ask(setup->workspace, word,
					 value_str(value_member(file, "text")), &trust,
					 hash, NULL) ||
		    trust != AGENT_TRUSTED || !agent_workspace_check(file, &entry, NULL))
			continue;
		add_row(setup, config, word, entry, registry);
	}
	return true;
}

static void note_other_names(const struct config *config, struct value *names)
{
	for (const struct role_name *row = role_names; row->other != NULL; row++) {
		if (strcmp(config_role_name(config, row->other), row->role) == 0)
			value_set_text(names, row->other, row->role);
	}
}

bool agent_registry_make(struct setup *setup, const struct value *chain,
			 struct value **registry, struct value **other_names,
			 struct err *err)
{
	auto_config struct config *config = NULL;
	auto_value struct value *made = value_new_array();
	auto_value struct value *others = value_new_object();
	struct names names = {0};
	const struct value *agents;
	bool ok =
		config_file_load(setup->config_given ? setup->config : NULL, &config, err);

	if (ok) {
		agent_files_know_names(config, setup->workspace);
		note_other_names(config, others);
		agents = config_value(config, "agents");
		add_names(&names, agent_files_shipped());
		add_names(&names, agent_files_users());
		for (void *at = value_first(agents); at != NULL; at = value_next(agents, at))
			add_name(&names, config_role_name(config, value_key(at)));
		qsort(names.items, names.count, sizeof(names.items[0]), compare);
	}
	for (size_t i = 0; ok && i < names.count; i++) {
		auto_value struct value *shipped = NULL;

		if (may_delegate(setup, config, chain, names.items[i]) &&
		    agent_files_read(names.items[i], false, config, &shipped, NULL))
			add_row(setup, config, names.items[i], shipped, made);
	}
	ok = ok && add_workspace(setup, config, chain, &names, made, err);
	names_fini(&names);
	if (ok) {
		*registry = value_ref(made);
		*other_names = value_ref(others);
	}
	return ok;
}
