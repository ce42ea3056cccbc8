/* orchestrate: makes the request of a delegate and the orchestra of a run. */
#include "front/orchestrate.h"

#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "front/agent_registry.h"

enum { PROMPT_MAX = 1 << 20 };

struct orchestrate {
	struct orchestra *orchestra;
	struct value *registry, *other_names, *chain, *request;
	char *prompt;
};

static struct value *environment_now(void)
{
	struct value *environment = value_new_object();

	for (char **at = environ; *at != NULL; at++) {
		const char *equals = strchr(*at, '=');

		if (equals == NULL || equals == *at)
			continue;
		auto_free char *name =
			memory_copy_str((struct str){*at, (size_t)(equals - *at)});
		value_set_text(environment, name, equals + 1);
	}
	return environment;
}

struct value *orchestrate_request(const struct setup *setup, const char *model)
{
	struct value *request = value_new_object();

	value_set_text(request, "workspace", setup->workspace);
	if (setup->config_given)
		value_set_text(request, "config", setup->config);
	if (setup->level_is_asked)
		value_set_integer(request, "level", setup->minimum_level);
	if (model != NULL)
		value_set_text(request, "model", model);
	value_set(request, "environment", environment_now());
	return request;
}

static bool is_orchestras(const char *tool)
{
	for (size_t i = 0; orchestra_rows[i] != NULL; i++)
		if (strcmp(orchestra_rows[i]->name, tool) == 0)
			return true;
	return false;
}

/*
 * Has the agent hands of its own, that is, tools besides those of the orchestra? An agent
 * without hands only delegates and has no rights that could bound its delegates. Its
 * delegates are held to the rights of its caller.
 */
static bool has_hands(const struct policy *policy)
{
	for (size_t i = 0; i < policy->tools.count; i++)
		if (!is_orchestras(policy->tools.items[i]))
			return true;
	return false;
}

static bool uses_any(const struct policy *policy)
{
	for (size_t i = 0; i < policy->tools.count; i++)
		if (is_orchestras(policy->tools.items[i]))
			return true;
	return false;
}

static struct value *copy_list(const struct value *list)
{
	return list != NULL ? value_copy(list) : value_new_array();
}

static struct value *bounds_of(const struct orchestrate_options *options)
{
	const struct setup *setup = options->setup;
	struct value *bounds = copy_list(value_member(options->request, "bounds"));

	for (size_t i = 0; has_hands(setup->policy) && i < value_count(setup->entries); i++)
		value_append(bounds, value_copy(value_item(setup->entries, i)));
	return bounds;
}

/*
 * The kinds of approval that a delegate may ask for: those that our own request lets
 * through to our caller, as far as this agent may ask for them too, or has the right
 * without asking. An agent without hands removes none.
 */
static struct value *asks_of(const struct orchestrate_options *options)
{
	static const char *const kinds[] = {"commands", "network", "read", "write"};
	const struct value *up = value_member(options->request, "asks");
	const struct policy *policy = options->setup->policy;
	struct value *asks = value_new_array();

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const bool grants = !has_hands(policy) || policy_asks(policy, kinds[i]) ||
				    (i == 0 && !policy_lists_commands(policy));

		if (grants && (options->request == NULL || value_has_text(up, kinds[i])))
			value_append(asks, value_new_text(kinds[i]));
	}
	return asks;
}

static bool only_reads(void *context, const char *agent)
{
	const struct orchestrate *orchestrate = context;

	for (size_t i = 0; i < value_count(orchestrate->registry); i++) {
		const struct value *row = value_item(orchestrate->registry, i);

		if (strcmp(value_text(value_member(row, "name")), agent) == 0)
			return value_is_true(value_member(row, "only_reads"));
	}
	return false;
}

static void make_prompt(struct orchestrate *orchestrate, const struct setup *setup)
{
	struct buf prompt;

	if (!policy_has_tool(setup->policy, "delegate_agent"))
		return;
	buf_init(&prompt, PROMPT_MAX);
	if (setup->role.prompt != NULL)
		(void)buf_addf(&prompt, "%s\n\n", setup->role.prompt);
	if (value_count(orchestrate->registry) == 0)
		(void)buf_adds(&prompt, "There is no agent that you may delegate to.\n");
	else
		(void)buf_adds(&prompt, "The agents that you may delegate to:\n\n");
	orchestra_describe(orchestrate->registry, &prompt);
	orchestrate->prompt = memory_copy(prompt.data);
	buf_fini(&prompt);
}

/* Make the request that starts delegates, and the prompt that tells the agent of them. */
static void make_request(struct orchestrate *orchestrate,
			 const struct orchestrate_options *options)
{
	const struct setup *setup = options->setup;

	orchestrate->request = orchestrate_request(setup, options->model);
	value_set(orchestrate->request, "chain", value_copy(orchestrate->chain));
	value_set(orchestrate->request, "bounds", bounds_of(options));
	if (options->answered)
		value_set(orchestrate->request, "asks", asks_of(options));
	if (setup->asked != NULL)
		value_set(orchestrate->request, "ask", value_copy(setup->asked));
	make_prompt(orchestrate, setup);
}

bool orchestrate_open(const struct orchestrate_options *options,
		      struct orchestrate **made, struct err *err)
{
	struct setup *setup = options->setup;
	struct orchestrate *orchestrate;

	*made = NULL;
	if (!uses_any(setup->policy))
		return true;
	orchestrate = memory_alloc(sizeof(*orchestrate));
	*made = orchestrate;
	orchestrate->chain = copy_list(value_member(options->request, "chain"));
	value_append(orchestrate->chain, value_new_text(setup->role_name));
	if (!agent_registry_make(setup, orchestrate->chain, &orchestrate->registry,
				 &orchestrate->other_names, err))
		return err_while(err, "the agents there are");
	if (!options->alone)
		make_request(orchestrate, options);
	orchestrate->orchestra = orchestra_open(&(struct orchestra_options){
		.workspace = setup->workspace,
		.agent = setup->agent,
		.registry = orchestrate->registry,
		.other_names = orchestrate->other_names,
		.chain = orchestrate->chain,
		.request = orchestrate->request,
		.only_reads = only_reads,
		.context = orchestrate,
		.alone = options->alone,
		.counts_answers = options->counts_answers,
	});
	setup->orchestra = orchestrate->orchestra;
	return true;
}

void orchestrate_close(struct orchestrate *orchestrate)
{
	if (orchestrate == NULL)
		return;
	orchestra_close(orchestrate->orchestra);
	value_free(orchestrate->registry);
	value_free(orchestrate->other_names);
	value_free(orchestrate->chain);
	value_free(orchestrate->request);
	free(orchestrate->prompt);
	free(orchestrate);
}

const char *orchestrate_prompt(const struct orchestrate *orchestrate, const char *prompt)
{
	return orchestrate != NULL && orchestrate->prompt != NULL ? orchestrate->prompt
								  : prompt;
}

void orchestrate_set_agent(struct orchestrate *orchestrate, struct agent *agent,
			   struct session *session, struct recorder *recorder)
{
	if (orchestrate != NULL)
		orchestra_set_agent(orchestrate->orchestra, agent, session, recorder);
}
