/* agents: finds and reads the shipped roles and the user's role files. */

#include "front/agents.h"

#include "agent/delegate.h"
#include "agent/tools/orchestra.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/text/front_matter.h"
#include "base/value.h"
#include "extend/brought.h"
#include "extend/trust.h"
#include "front/config_file.h"
#include "front/embedded/embedded.h"
#include "front/review/layered.h"
#include "front/review/writer.h"
#include "front/setup.h"
#include "policy/commands.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "session/session.h"
#include "tui/paint.h"
#include "view/review.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Does FILE ("agents/coder.md") belong to the role NAME? */
static bool is_file_of(const char *file, const char *name)
{
	const char *base = path_base_name(file);
	size_t length = strlen(name);

	return strncmp(base, name, length) == 0 && strcmp(base + length, ".md") == 0;
}

bool agents_role_read(const char *file, struct str text, struct value **entry,
		      struct err *err)
{
	auto_value struct value *read = NULL;
	const char *name;

	if (!front_matter_parse(text, &read, err))
		return err_while(err, "%s", file);
	name = value_text(value_member(read, "name"));
	if (!name)
		return err_set(err, EINVAL, "%s: the key \"name\" is missing", file);
	if (!config_check_name(name, err))
		return err_while(err, "%s", file);
	if (!is_file_of(file, name))
		return err_set(err, EINVAL, "%s: the name \"%s\" is not that of the file",
			       file, name);
	value_remove(read, "name");
	if (!config_check_entry(read, file, err))
		return false;
	*entry = value_ref(read);
	return true;
}

/* Roles of the workspace, and whether the person has let them in. */

#define WORKSPACE_FOLDER ".glovebox/agents"

static bool is_there(const char *workspace, const char *before, const char *name,
		     const char *after)
{
	struct buf path;
	bool there;

	buf_init(&path, PATH_MAX);
	there = buf_addf(&path, "%s/" WORKSPACE_FOLDER "%s%s%s", workspace, before, name,
			 after) &&
		access(path.data, F_OK) == 0;
	buf_fini(&path);
	return there;
}

/* Does WORKSPACE have a folder of roles? Nothing is read from the folder. */
static bool agent_workspace_has_any(const char *workspace)
{
	return is_there(workspace, "", "", "");
}

/* Is there a file for the role NAME in the folder of roles? */
static bool agent_workspace_has(const char *workspace, const char *name)
{
	return config_check_name(name, NULL) && is_there(workspace, "/", name, ".md");
}

/* Is ITEM a valid role? ENTRY becomes its checked entry, which the caller frees. */
static bool check_item(const struct brought *item, struct value **entry, struct err *err)
{
	return item->problem != NULL
		       ? err_set(err, EINVAL, "%s: %s", item->file, item->problem)
		       : agents_role_read(item->file, str_of(item->text), entry, err);
}

void agents_workspace_mark(struct brought_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct brought *item = &list->items[i];
		auto_value struct value *entry = NULL;
		struct err err = {0};

		if (item->kind != BROUGHT_AGENT || item->problem != NULL ||
		    check_item(item, &entry, &err))
			continue;
		/* The sentence begins with the file, which is told beside each problem. */
		const char *behind = strstr(err.text, ": ");

		brought_refuse(&item->problem, behind != NULL ? behind + 2 : err.text, "");
	}
}

static bool is_trusted(const struct policy *bounds, const struct brought *item,
		       struct err *err)
{
	struct trust trust;
	enum trust_state state = TRUST_NONE;
	const bool read = trust_read(bounds->workspace, &trust, err);

	if (read)
		state = trust_of(&trust, item);
	trust_fini(&trust);
	return read &&
	       (state == TRUST_GIVEN ||
		err_set(err, EPERM,
			"%s is a role of this workspace that %s; look at it, and let it in "
			"with: glovebox trust add agent/%s",
			item->file,
			state == TRUST_CHANGED ? "has changed since you let it in"
					       : "you have not let in",
			item->name));
}

bool agents_workspace_load(const struct policy *bounds, const char *name,
			   int minimum_level, struct value **entry, struct err *err)
{
	struct brought_list list = {0};
	bool fine;

	*entry = NULL;
	fine = config_check_name(name, err) &&
	       brought_read(bounds, BROUGHT_AGENT, name, minimum_level, &list, err) &&
	       (list.count == 0 ||
		((list.items[0].problem != NULL || is_trusted(bounds, &list.items[0], err)) &&
		 check_item(&list.items[0], entry, err)));
	brought_fini(&list);
	return fine;
}

#define SUFFIX ".md"

enum { NAMES_MAX = 256 /* roles of one folder; people write roles by hand */ };

static const char shipped_folder[] = "agents/";

/* The NAME of a FILE called "agents/NAME.md", else an empty text. */
static struct str role_name(const struct embedded_file *file)
{
	struct str name = str_of(file->name);

	if (!str_starts(name, str_of(shipped_folder)) || !str_ends(name, STR(SUFFIX)))
		return STR("");
	return str_part(name, strlen(shipped_folder),
			name.size - strlen(shipped_folder) - strlen(SUFFIX));
}

/*
 * Tell CONFIG the names of all shipped roles, and read the one of AGENT. Reading the
 * other roles too would slow down every start.
 */
static bool read_shipped(const char *agent, struct config *config, struct value **entry,
			 struct err *err)
{
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		auto_free char *name = memory_copy_str(role_name(file));

		if (name[0] == '\0')
			continue;
		config_know_agent(config, name);
		if (strcmp(name, agent) == 0 &&
		    !agents_role_read(file->name, (struct str){file->data, file->size},
				      entry, err))
			return false;
	}
	return true;
}

/* Append the folder of the user's roles to PATH. False: there is no home directory. */
static bool folder_add(struct buf *path)
{
	return config_file_beside("agents", path);
}

bool agents_files_place(const char *name, struct buf *path)
{
	return folder_add(path) && buf_addf(path, "/%s" SUFFIX, name);
}

char **agents_files_shipped(void)
{
	char **names = memory_array(NAMES_MAX + 1, sizeof(names[0]));
	size_t count = 0;

	for (const struct embedded_file *file = embedded_files;
	     file->name != NULL && count < NAMES_MAX; file++) {
		struct str name = role_name(file);

		if (name.size > 0)
			names[count++] = memory_copy_str(name);
	}
	str_sort(names, count);
	return names;
}

char **agents_files_users(void)
{
	char **names = memory_array(NAMES_MAX + 1, sizeof(names[0]));
	struct dirent *entry;
	DIR *folder = NULL;
	size_t count = 0;
	struct buf path;

	buf_init(&path, PATH_MAX);
	if (folder_add(&path))
		folder = opendir(path.data);
	buf_fini(&path);
	while (folder != NULL && count < NAMES_MAX && (entry = readdir(folder)) != NULL) {
		struct str name = str_of(entry->d_name);

		if (entry->d_name[0] != '.' && str_ends(name, STR(SUFFIX)))
			names[count++] = memory_copy_str(
				str_part(name, 0, name.size - strlen(SUFFIX)));
	}
	if (folder != NULL)
		(void)closedir(folder);
	str_sort(names, count);
	return names;
}

void agents_files_names_free(char **names)
{
	for (size_t i = 0; names[i] != NULL; i++)
		free(names[i]);
	free(names);
}

/* Read the user's role file of AGENT into CONFIG. A missing file is no error. */
static bool read_users(const char *agent, struct config *config, struct err *err)
{
	auto_value struct value *entry = NULL;
	struct buf path, text;
	struct err why = {0};
	bool fine = true;

	buf_init(&path, PATH_MAX);
	buf_init(&text, CONFIG_TEXT_MAX);
	if (agents_files_place(agent, &path)) {
		fine = config_file_read(path.data, &text, &why) &&
		       agents_role_read(path.data, buf_str(&text), &entry, &why);
		if (fine)
			config_set_role(config, agent, entry);
		else if (why.code == ENOENT || why.code == ENOTDIR)
			fine = true;
		else
			(void)err_set(err, why.code, "%s", why.text);
	}
	buf_fini(&text);
	buf_fini(&path);
	return fine;
}

static void know_users(struct config *config)
{
	char **names = agents_files_users();

	for (size_t i = 0; names[i] != NULL; i++)
		config_know_agent(config, names[i]);
	agents_files_names_free(names);
}

void agents_files_know_names(struct config *config, const char *workspace)
{
	for (const struct role_name *row = role_names; row->other != NULL; row++) {
		struct buf path;

		buf_init(&path, PATH_MAX);
		if ((agents_files_place(row->other, &path) && access(path.data, F_OK) == 0) ||
		    agent_workspace_has(workspace, row->other))
			config_know_agent(config, row->other);
		buf_fini(&path);
	}
}

bool agents_files_read(const char *agent, bool shipped_only, struct config *config,
		       struct value **shipped, struct err *err)
{
	auto_value struct value *found = NULL;
	const char *name = config_role_name(config, agent);

	if (!read_shipped(name, config, &found, err))
		return false;
	/* An invalid name must not become part of a path. */
	if (!shipped_only && config_check_name(name, NULL) && !read_users(name, config, err))
		return false;
	if (!shipped_only && !agents_files_know(config, found, agent))
		know_users(config);
	*shipped = value_ref(found);
	return true;
}

bool agents_files_know(const struct config *config, const struct value *shipped,
		       const char *agent)
{
	return shipped != NULL || strcmp(agent, POLICY_NAME_DEFAULT) == 0 ||
	       config_says(config, agent);
}

bool agents_files_check_delegates(struct config *config, const struct value *shipped,
				  const char *agent, const char *workspace, struct err *err)
{
	enum config_layer layer;
	const struct value *list =
		config_find(config, shipped, agent, "may_delegate_to", NULL, &layer);

	if (value_count(list) > 0)
		know_users(config);
	for (size_t i = 0; i < value_count(list); i++) {
		const char *name = value_text(value_item(list, i));

		if (!agent_workspace_has(workspace, name) &&
		    !config_check_agent(config, name, err))
			return err_while(err, "agents.%s.may_delegate_to", agent);
	}
	return true;
}

/*
 * A copy of the names of all agents that CONFIG knows now. A copy, because reading a role
 * changes the list of CONFIG.
 */
static struct value *known_agents(const struct config *config)
{
	auto_free const char **names = config_agents(config);
	struct value *list = value_new_array();

	for (size_t i = 0; names[i] != NULL; i++)
		value_append(list, value_new_text(names[i]));
	return list;
}

bool agents_files_check(struct config *config, const char *workspace, struct err *err)
{
	auto_value struct value *names = NULL;
	auto_value struct value *none = NULL;
	bool fine = read_shipped("", config, &none, err);

	agents_files_know_names(config, workspace);
	know_users(config);
	names = known_agents(config);
	for (size_t i = 0; fine && i < value_count(names); i++) {
		auto_value struct value *shipped = NULL;
		const char *name = value_text(value_item(names, i));

		fine = agents_files_read(name, false, config, &shipped, err) &&
		       agents_files_check_delegates(config, shipped, name, workspace, err);
	}
	return fine;
}

/*
 * The agents that an agent may delegate to, from all layers, as they are now. Makes each
 * agent's role and policy as a run would, and describes them.
 */

/* The most agents in one registry; further agents are left out. */
enum { REGISTRY_MAX = 100 };

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
	agents_files_names_free(list);
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

bool agents_only_read(const struct setup *setup, const struct policy *policy)
{
	return (effects_of(setup, policy) & (EFFECT_WRITES | EFFECT_RUNS)) == 0;
}

static struct value *describe(const struct setup *setup, const char *name,
			      const struct config_role *role, const struct policy *policy)
{
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
	value_set_boolean(row, "only_reads", agents_only_read(setup, policy));
	return row;
}

static void add_row(const struct setup *setup, struct config *config, const char *name,
		    const struct value *shipped, struct value *registry)
{
	auto_policy struct policy *policy = NULL;
	struct config_role role = {0};

	if (config_policy(config, shipped, name, setup->workspace, &policy, NULL) &&
	    config_role(config, shipped, name, &role, NULL) &&
	    agents_files_check_delegates(config, shipped, name, setup->workspace, NULL) &&
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
	auto_value struct value *shipped = NULL;
	auto_policy struct policy *bounds = NULL;
	struct brought_list list = {0};
	struct trust trust = {0};
	bool read;

	/* Reading the roles takes a cell: make one only where there may be roles. */
	if (!agent_workspace_has_any(setup->workspace))
		return true;
	read = agents_files_read(POLICY_NAME_DEFAULT, false, config, &shipped, err) &&
	       config_policy(config, shipped, NULL, setup->workspace, &bounds, err) &&
	       session_check_tools(bounds, setup->tools, err) &&
	       brought_read(bounds, BROUGHT_AGENT, NULL, SESSION_ANY_LEVEL, &list, err) &&
	       trust_read(setup->workspace, &trust, err);
	for (size_t i = 0; read && i < list.count && value_count(registry) < REGISTRY_MAX;
	     i++) {
		const struct brought *item = &list.items[i];
		auto_value struct value *entry = NULL;
		bool hidden = false;

		for (size_t j = 0; j < taken->count; j++)
			hidden = hidden || strcmp(taken->items[j], item->name) == 0;
		if (!hidden && may_delegate(setup, config, chain, item->name) &&
		    trust_of(&trust, item) == TRUST_GIVEN && check_item(item, &entry, NULL))
			add_row(setup, config, item->name, entry, registry);
	}
	trust_fini(&trust);
	brought_fini(&list);
	return read;
}

static void note_other_names(const struct config *config, struct value *names)
{
	for (const struct role_name *row = role_names; row->other != NULL; row++) {
		if (strcmp(config_role_name(config, row->other), row->role) == 0)
			value_set_text(names, row->other, row->role);
	}
}

/*
 * REGISTRY: a list of {name, description, tools, write, only_reads}. First come the
 * shipped roles, the user's roles and the agents of the configuration, sorted by name,
 * then the roles of the workspace that were let in. Left out are the agents in CHAIN
 * (delegating to them would be a circle), those that SETUP's agent may not delegate to,
 * and those that cannot be read. OTHER_NAMES: an object, other name of a shipped role ->
 * that role, without the names that are agents of their own. The caller frees both.
 */
static bool agent_registry_make(struct setup *setup, const struct value *chain,
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
		agents_files_know_names(config, setup->workspace);
		note_other_names(config, others);
		agents = config_value(config, "agents");
		add_names(&names, agents_files_shipped());
		add_names(&names, agents_files_users());
		for (void *at = value_first(agents); at != NULL; at = value_next(agents, at))
			add_name(&names, config_role_name(config, value_key(at)));
		str_sort(names.items, names.count);
	}
	for (size_t i = 0; ok && i < names.count; i++) {
		auto_value struct value *shipped = NULL;

		if (may_delegate(setup, config, chain, names.items[i]) &&
		    agents_files_read(names.items[i], false, config, &shipped, NULL))
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

/* Makes the request of a delegate and the orchestra of a run. */

enum { PROMPT_MAX = 1 << 20 };

struct orchestrate {
	struct orchestra *orchestra;
	struct value *registry, *other_names, *chain, *request;
	char *prompt;
	char *workspace;
	/* the layers of delegates: name -> agent; NULL: a delegate is told by its caller */
	struct value *layers;
	bool shows_layers; /* the agent has hands, and can read them */
	bool is_delegate;
};

struct value *orchestrate_environment(void)
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
	/* An agent without hands bounds nobody, but those that work for it work in its base. */
	if (setup->policy != NULL && setup->policy->cell_base != NULL)
		value_set_text(request, "base", setup->policy->cell_base);
	if (setup->at != NULL)
		value_set_text(request, "at", setup->at);
	value_set(request, "environment", orchestrate_environment());
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

bool agents_only_delegate(const struct policy *policy)
{
	return !has_hands(policy) && policy_has_tool(policy, delegate_agent_tool.name);
}

/* Has the agent any tool of the orchestra? NAMED: any that only agents have which name it. */
static bool uses_any(const struct policy *policy, bool named)
{
	for (size_t i = 0; orchestra_rows[i] != NULL; i++)
		if (policy_has_tool(policy, orchestra_rows[i]->name) &&
		    (orchestra_rows[i]->when_named || !named))
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
				    (i == 0 && !commands_listed(policy->commands));

		if (grants && (options->request == NULL || value_has_text(up, kinds[i])))
			value_append(asks, value_new_text(kinds[i]));
	}
	return asks;
}

static bool only_reads(void *context, const char *agent)
{
	const struct orchestrate *orchestrate = context;

	/* None of them writes in the mode of this run. */
	if (str_is(value_str(value_member(orchestrate->request, "mode")),
		   policy_modes[MODE_PLAN].name))
		return true;
	for (size_t i = 0; i < value_count(orchestrate->registry); i++) {
		const struct value *row = value_item(orchestrate->registry, i);

		if (strcmp(value_text(value_member(row, "name")), agent) == 0)
			return value_is_true(value_member(row, "only_reads"));
	}
	return false;
}

/* The layers of delegates. */

/*
 * How many delegates may write side by side. Servers of the configuration would write past
 * their layers, so with these they work one after the other, as with limits.writers 1.
 */
static uint64_t writers_of(const struct setup *setup)
{
	return setup->servers.settings != NULL ? 1 : setup->policy->limits.writers;
}

static bool layer_new(void *context, const char *agent, char id[ORCHESTRA_LAYER])
{
	struct orchestrate *orchestrate = context;

	if (!review_new_id(id))
		return false;
	value_set_text(orchestrate->layers, id, agent);
	return true;
}

static bool layer_left(void *context, const char *id)
{
	const struct orchestrate *orchestrate = context;

	return writer_is_left(orchestrate->workspace, id);
}

static bool layer_show(void *context, struct session *session, const char *id)
{
	const struct orchestrate *orchestrate = context;

	return orchestrate->shows_layers &&
	       writer_show(session, orchestrate->workspace, id);
}

static bool layer_land(void *context, struct session *session, const char *id,
		       struct buf *line)
{
	const struct orchestrate *orchestrate = context;

	return writer_land_in(session, orchestrate->workspace, id, line);
}

/* Say which layers wait for the person. */
static void tell_left(const struct orchestrate *orchestrate)
{
	const struct value *layers = orchestrate->layers;
	struct buf text;

	buf_init(&text, PROMPT_MAX);
	for (void *at = value_first(layers); at != NULL; at = value_next(layers, at)) {
		if (!writer_is_left(orchestrate->workspace, value_key(at)))
			continue;
		(void)buf_adds(&text, text.size == 0 ? "What delegates wrote waits for you: "
						     : ", ");
		(void)buf_addf(&text, "glovebox review %s (%s)", value_key(at),
			       value_text(value_at(at)));
	}
	if (text.size > 0) {
		(void)buf_end_line(&text);
		paint_fold_complain(buf_str(&text));
	}
	buf_fini(&text);
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
	value_set_text(orchestrate->request, "mode", policy_modes[setup->mode].name);
	if (options->answered)
		value_set(orchestrate->request, "asks", asks_of(options));
	if (setup->asked != NULL)
		value_set(orchestrate->request, "ask", value_copy(setup->asked));
	if (setup->review != NULL)
		value_set(orchestrate->request, "over", layered_over(setup));
	make_prompt(orchestrate, setup);
}

static bool meet_agents(struct orchestrate *orchestrate,
			const struct orchestrate_options *options, struct err *err)
{
	struct setup *setup = options->setup;

	orchestrate->chain = copy_list(value_member(options->request, "chain"));
	value_append(orchestrate->chain, value_new_text(setup->role_name));
	if (!agent_registry_make(setup, orchestrate->chain, &orchestrate->registry,
				 &orchestrate->other_names, err))
		return err_while(err, "the agents there are");
	if (!options->alone)
		make_request(orchestrate, options);
	return true;
}

bool orchestrate_open(const struct orchestrate_options *options,
		      struct orchestrate **made, struct err *err)
{
	struct setup *setup = options->setup;
	struct orchestrate *orchestrate;

	*made = NULL;
	if (!uses_any(setup->policy, options->alone))
		return true;
	orchestrate = memory_alloc(sizeof(*orchestrate));
	*made = orchestrate;
	/* The other tools know nothing of other agents, whose files need not be read. */
	if (uses_any(setup->policy, true) && !meet_agents(orchestrate, options, err))
		return false;
	orchestrate->workspace = memory_copy(setup->workspace);
	orchestrate->layers = value_new_object();
	orchestrate->shows_layers = has_hands(setup->policy);
	orchestrate->is_delegate = options->request != NULL;
	orchestrate->orchestra = orchestra_open(&(struct orchestra_options){
		.workspace = setup->workspace,
		.agent = setup->agent,
		.registry = orchestrate->registry,
		.other_names = orchestrate->other_names,
		.chain = orchestrate->chain,
		.request = orchestrate->request,
		.only_reads = only_reads,
		.writers = writers_of(setup),
		.layer_new = layer_new,
		.layer_left = layer_left,
		.layer_show = layer_show,
		.layered = setup->review != NULL,
		.layer_land = layer_land,
		.context = orchestrate,
		.alone = options->alone,
		.is_delegate = options->request != NULL,
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
	if (!orchestrate->is_delegate)
		tell_left(orchestrate);
	free(orchestrate->workspace);
	value_free(orchestrate->layers);
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

void orchestrate_set_mode(struct orchestrate *orchestrate, enum policy_mode mode)
{
	if (orchestrate != NULL && orchestrate->request != NULL)
		value_set_text(orchestrate->request, "mode", policy_modes[mode].name);
}
