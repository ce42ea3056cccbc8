/*
 * config_fuzz: any text as configuration; each agent it holds becomes a policy whose
 * paths are sound.
 */
#include "policy/config.h"

#include "base/path.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char workspace[] = "/ws/project";

static void check_entries(const struct policy *policy, const struct policy_paths *paths)
{
	for (size_t i = 0; i < paths->count; i++) {
		const struct policy_path *entry = &paths->items[i];

		assert(entry->text && entry->path && entry->path[0] == '/');
		assert(entry->text[0] == '/' || path_within(entry->path, policy->base.path));
	}
}

static void try_agent(const struct config *config, const char *name)
{
	auto_policy struct policy *policy = NULL;
	struct config_role role;
	struct err err;

	if (config_policy(config, NULL, name, workspace, &policy, &err)) {
		check_entries(policy, &policy->read);
		check_entries(policy, &policy->write);
		check_entries(policy, &policy->blocked);
	}
	if (config_role(config, NULL, name, &role, &err))
		config_role_fini(&role);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = {(const char *)data, size};
	auto_config struct config *config = NULL;
	struct err err;

	if (!config_parse(text, "input", &config, &err))
		return 0;
	assert(config_minimum_level(config) <= 3);
	try_agent(config, NULL);
	try_agent(config, "nobody");
	for (void *at = value_first(config->agents); at; at = value_next(config->agents, at))
		try_agent(config, value_key(at));
	return 0;
}
