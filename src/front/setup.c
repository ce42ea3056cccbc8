/*
 * setup: configuration, role, workspace and policy. setup_session.c makes the session of
 * them.
 */
#include "front/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/memory.h"
#include "front/agent_files.h"
#include "front/agent_workspace.h"
#include "front/config_file.h"
#include "front/front_tools.h"
#include "front/policy_words.h"
#include "policy/config.h"
#include "store/database.h"
#include "view/shape.h"

int setup_least_level(const struct setup *setup)
{
	return setup->minimum_level > 0 ? (int)setup->minimum_level : SESSION_ANY_LEVEL;
}

/*
 * Put AGENT's own list KEY before ENTRY's list KEY. When AGENT has no such list, it
 * counts as [UNTOLD].
 */
static void add_to_list(struct value *entry, const char *key, const char *untold,
			const char *agent, struct config *config,
			const struct value *shipped)
{
	const struct value *more = value_member(entry, key);
	enum config_layer layer;

	if (more == NULL)
		return;
	const struct value *had = config_find(config, shipped, agent, key, NULL, &layer);
	struct value *all = had != NULL ? value_copy(had) : value_new_array();

	if (had == NULL && untold != NULL)
		value_append(all, value_new_text(untold));
	for (size_t i = 0; i < value_count(more); i++)
		value_append(all, value_copy(value_item(more, i)));
	value_set(entry, key, all);
}

/* Let the keys of FLAGS override those that CONFIG and SHIPPED have for AGENT. */
static bool add_flags(const char *agent, struct config *config, const struct value *shipped,
		      const struct setup_flags *flags, struct err *err)
{
	auto_value struct value *entry = NULL;

	if (flags->entry == NULL)
		return true;
	entry = value_copy(flags->entry);
	add_to_list(entry, "read", ".", agent, config, shipped);
	add_to_list(entry, "env", NULL, agent, config, shipped);
	return config_override(config, agent, entry, "the options", err);
}

static void add_origin(struct setup *setup, const struct config *config,
		       const struct value *shipped, const struct setup_flags *flags,
		       const char *key, const char *inner)
{
	enum config_layer layer;
	char name[CONFIG_NAME_MAX];
	const char *who = NULL;

	(void)config_find(config, shipped, setup->agent, key, inner, &layer);
	if (layer == LAYER_PERSON)
		who = "option";
	else if (layer == LAYER_CONFIG)
		who = flags->policy_file != NULL ? "--policy" : "configuration";
	else if (layer == LAYER_USER)
		who = setup->bounds != NULL ? "the workspace's role" : "role of yours";
	else if (layer == LAYER_ROLE)
		who = "shipped role";
	if (who == NULL)
		return;
	(void)snprintf(name, sizeof(name), "%s%s%s", key, inner != NULL ? "." : "",
		       inner != NULL ? inner : "");
	value_set_text(setup->origins, name, who);
}

static void find_origins(struct setup *setup, const struct config *config,
			 const struct value *shipped, const struct setup_flags *flags)
{
	setup->origins = value_new_object();
	for (const struct key *key = keys_agent; key->name != NULL; key++) {
		if (key->kind != KEY_ROWS)
			add_origin(setup, config, shipped, flags, key->name, NULL);
		for (const struct key *row = key->kind == KEY_ROWS ? key->rows : NULL;
		     row != NULL && row->name != NULL; row++)
			add_origin(setup, config, shipped, flags, key->name, row->name);
	}
}

/* Load the plugins. This is the last use of CONFIG. */
static bool load_plugins(struct setup *setup, struct config *config,
			 const struct value *shipped, const struct setup_flags *flags,
			 struct err *err)
{
	const struct front_plugins_wish configured = {0};
	const struct front_plugins_wish *wish =
		flags->plugins != NULL ? flags->plugins : &configured;
	struct front_plugins *plugins = &setup->plugins;

	if (wish->named == NULL && value_count(config_value(config, "plugins")) == 0)
		return true;
	plugins->cell.workspace = setup->workspace;
	plugins->cell.tools = setup->tools;
	plugins->cell.minimum_level = setup_least_level(setup);
	plugins->asked = plugins->cell;
	plugins->config_path = setup->config;
	plugins->agent = setup->agent;
	plugins->writable = &setup->policy->write;
	if (!plugin_cell_policy(config, shipped, setup->agent, setup->workspace,
				&plugins->cell.take_policy, err) ||
	    !plugin_cell_policy(config, shipped, setup->agent, setup->workspace,
				&plugins->asked.take_policy, err) ||
	    !front_plugins_load(plugins, config, wish, flags->quiet_plugins, err))
		return false;
	setup->tools = (const struct tool *const *)plugins->loaded->tools;
	return true;
}

/*
 * Read the MCP servers. Their policy is that of the agent, but with any command (only the
 * cell limits it) and without tools: the agent's list may name tools that are only known
 * when the servers run.
 */
static bool read_servers(struct setup *setup, struct config *config,
			 const struct value *shipped, struct err *err)
{
	struct front_servers *servers = &setup->servers;
	auto_value struct value *entry = value_new_object();

	if (!front_servers_read(servers, config, setup->config, setup->workspace, err))
		return false;
	if (servers->settings == NULL)
		return true;
	value_set_text(entry, "commands", "box");
	value_set(entry, "tools", value_new_array());
	return config_override(config, setup->agent, entry, "mcpServers", err) &&
	       config_policy(config, shipped, setup->agent, setup->workspace,
			     &servers->take_policy, err);
}

/*
 * Add AGENT's rights, as CONFIG and SHIPPED have them, to the list of rights that bound
 * this setup.
 */
static bool note_entry(struct setup *setup, const struct config *config,
		       const struct value *shipped, const char *agent, struct err *err)
{
	struct value *entry = NULL, *row;

	if (!config_entry(config, shipped, agent, &entry, err))
		return false;
	if (setup->entries == NULL)
		setup->entries = value_new_array();
	row = value_new_object();
	value_set_text(row, "agent", agent);
	value_set(row, "entry", value_copy(entry));
	value_free(entry);
	value_append(setup->entries, row);
	return true;
}

/* Find the bound of every role of a workspace: the rights of the user's default agent. */
static bool find_bounds(struct setup *setup, struct config *config,
			const struct setup_flags *flags, struct err *err)
{
	auto_value struct value *shipped = NULL;

	return agent_files_read(POLICY_NAME_DEFAULT, false, config, &shipped, err) &&
	       add_flags(POLICY_NAME_DEFAULT, config, shipped, flags, err) &&
	       note_entry(setup, config, shipped, POLICY_NAME_DEFAULT, err) &&
	       config_policy(config, shipped, NULL, setup->workspace, &setup->bounds, err) &&
	       session_check_tools(setup->bounds, setup->tools, err);
}

/*
 * No other layer has an agent of this name: take the role of the workspace if it exists
 * and was let in.
 */
static bool take_workspace_role(struct setup *setup, struct config *config,
				const struct setup_flags *flags, struct err *err)
{
	auto_value struct value *entry = NULL;

	if (!find_bounds(setup, config, flags, err) ||
	    !agent_workspace_load(setup->bounds, setup->agent, setup_least_level(setup),
				  &entry, err))
		return false;
	if (entry != NULL)
		config_set_role(config, setup->agent, entry);
	return true;
}

/*
 * Narrow the policy to the bounds. shape_limits first turns limits that depend on the
 * machine into numbers, so that the two can be compared.
 */
static bool narrow_policy(struct setup *setup, struct err *err)
{
	auto_close int folder = open(setup->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct policy *both;

	if (!session_check_tools(setup->policy, setup->tools, err))
		return false;
	shape_limits(&setup->policy->limits, folder);
	shape_limits(&setup->bounds->limits, folder);
	both = policy_intersect(setup->policy, setup->bounds);
	policy_free(setup->policy);
	setup->policy = both;
	return true;
}

static bool make_policy(struct setup *setup, struct config *config,
			const struct value *shipped, const struct setup_flags *flags,
			struct err *err)
{
	return add_flags(setup->agent, config, shipped, flags, err) &&
	       note_entry(setup, config, shipped, setup->agent, err) &&
	       config_policy(config, shipped, setup->agent, setup->workspace,
			     &setup->policy, err) &&
	       config_role(config, shipped, setup->agent, &setup->role, err) &&
	       (setup->bounds == NULL || narrow_policy(setup, err));
}

static void note_agents(struct setup *setup, const struct config *config)
{
	auto_free const char **names = config_agents(config);
	enum config_layer layer;

	setup->agents = value_new_object();
	for (size_t i = 0; names[i] != NULL; i++) {
		const struct value *model =
			config_find(config, NULL, names[i], "model", NULL, &layer);

		value_set(setup->agents, names[i],
			  model != NULL ? value_copy(model) : value_new_null());
	}
}

static void take_wall(struct setup *setup, const struct config *config,
		      const struct value *shipped)
{
	enum config_layer layer;

	if (config_find(config, shipped, setup->agent, "limits", "wall_s", &layer) != NULL)
		setup->wall_s = setup->policy->limits.wall_s;
}

/* Find the agent's role, from all layers, and make its policy. CONFIG is complete. */
static bool choose_agent(struct setup *setup, struct config *config,
			 const struct setup_flags *flags, struct err *err)
{
	auto_value struct value *shipped = NULL;

	if (!setup->level_is_asked)
		setup->minimum_level = config_minimum_level(config);
	setup->resolver = memory_copy(config_resolver(config));
	setup->undo_space = config_undo_space(config);
	if (config_value(config, "models") != NULL)
		setup->models = value_copy(config_value(config, "models"));
	if (!flags->shipped_only)
		agent_files_know_names(config, setup->workspace);
	if (flags->policy_file == NULL &&
	    (!agent_files_read(setup->agent, flags->shipped_only, config, &shipped, err) ||
	     (!agent_files_know(config, shipped, setup->agent) &&
	      !take_workspace_role(setup, config, flags, err))))
		return false;
	if (!make_policy(setup, config, shipped, flags, err) ||
	    !agent_files_check_delegates(config, shipped, setup->agent, setup->workspace,
					 err))
		return false;
	setup->role_name = memory_copy(config_role_name(config, setup->agent));
	take_wall(setup, config, shipped);
	note_agents(setup, config);
	if (flags->explain)
		find_origins(setup, config, shipped, flags);
	/* A role of the workspace has only the built-in tools. */
	if (setup->bounds == NULL && (!read_servers(setup, config, shipped, err) ||
				      !load_plugins(setup, config, shipped, flags, err)))
		return false;
	/*
	 * The tools of servers are only known when the servers run: session_open checks
	 * then.
	 */
	return setup->servers.settings != NULL ||
	       session_check_tools(setup->policy, setup->tools, err);
}

static void take_tools(struct setup *setup)
{
	setup->own_tools = front_tools_new();
	setup->tools = setup->own_tools;
}

static const char *workspace_remedy(const char *folder, int code)
{
	if (code == ENOENT && strcmp(folder, ".") == 0)
		return "; it has been removed: go to another folder, or name one with -C";
	if (code == ENAMETOOLONG)
		return "; the whole path has to be shorter than 4,096 bytes";
	return "";
}

static bool set_workspace(struct setup *setup, const char *folder, struct err *err)
{
	setup->workspace_name = memory_copy(folder);
	setup->workspace = realpath(folder, NULL);
	/* realpath does not limit the text that it allocates. */
	if (setup->workspace != NULL && strlen(setup->workspace) >= PATH_MAX) {
		free(setup->workspace);
		setup->workspace = NULL;
		errno = ENAMETOOLONG;
	}
	if (setup->workspace == NULL) {
		int code = errno;
		return err_set(err, code, "workspace %s: %s%s", folder, strerror(code),
			       workspace_remedy(folder, code));
	}
	return true;
}

static char *config_place(const char *given)
{
	struct buf place;
	char *path = NULL;

	buf_init(&place, PATH_MAX);
	if (given != NULL || config_file_place(&place))
		path = memory_copy(given != NULL ? given : place.data);
	buf_fini(&place);
	return path;
}

/* Take --minimum-level, for verbs that have it, before that of the configuration. */
static void take_level(struct setup *setup, const struct options *options)
{
	bool apart;

	if (options_find(options->rows, "--minimum-level", &apart) == NULL ||
	    !options_given(options, "minimum-level"))
		return;
	setup->minimum_level = (unsigned)options_count(options, "minimum-level", 0);
	setup->level_is_asked = true;
}

/* Take the policy file of FLAGS in place of an agent's policy. */
static bool take_policy_file(struct setup *setup, struct config *config,
			     const struct setup_flags *flags, struct err *err)
{
	auto_value struct value *entry = NULL;

	if (flags->policy_file == NULL)
		return true;
	if (!config_file_load_policy(flags->policy_file, &entry, err))
		return false;
	config_set_agent(config, setup->agent, entry);
	return true;
}

/*
 * The folder of undo stores in the user's state, beside the journal. Call it before the
 * environment is wiped.
 */
static char *undo_place(void)
{
	struct buf path;
	char *place = NULL;

	buf_init(&path, PATH_MAX);
	if (state_path("undo", &path, NULL))
		place = memory_copy(path.data);
	buf_fini(&path);
	return place;
}

bool setup_init_with(struct setup *setup, const struct options *options,
		     const struct setup_flags *flags, struct err *err)
{
	auto_config struct config *config = NULL;
	const char *agent =
		flags->agent != NULL ? flags->agent : options_text(options, "agent");
	const char *folder = flags->workspace != NULL ? flags->workspace
						      : options_text(options, "workspace");

	memset(setup, 0, sizeof(*setup));
	take_tools(setup);
	if (flags->policy_file != NULL)
		agent = POLICY_FILE_AGENT;
	setup->agent = memory_copy(agent != NULL ? agent : POLICY_NAME_DEFAULT);
	setup->config = config_place(options_text(options, "config"));
	setup->config_given = options_text(options, "config") != NULL;
	setup->policy_file = memory_copy(flags->policy_file);
	setup->said = flags->entry;
	setup->undo_folder = undo_place();
	take_level(setup, options);
	if (!set_workspace(setup, folder != NULL ? folder : ".", err) ||
	    !config_file_load(options_text(options, "config"), &config, err) ||
	    !take_policy_file(setup, config, flags, err) ||
	    !choose_agent(setup, config, flags, err))
		return false;
	return true;
}

bool setup_init(struct setup *setup, const struct options *options, struct err *err)
{
	return setup_init_with(setup, options, &(struct setup_flags){0}, err);
}

/* Add HOST to the bounds of delegates, so that they may reach it as well. */
static void note_host(struct setup *setup, const char *host)
{
	for (size_t i = 0; i < value_count(setup->entries); i++) {
		struct value *entry = value_member(value_item(setup->entries, i), "entry");

		if (value_member(entry, "network") == NULL)
			value_set(entry, "network", value_new_array());
		value_append(value_member(entry, "network"), value_new_text(host));
	}
}

bool setup_allow_hosts(struct setup *setup, const struct options *options, struct err *err)
{
	const char *const *hosts = options_texts(options, "allow-host");

	for (; *hosts != NULL; hosts++) {
		if (!policy_add_network(setup->policy, *hosts, "--allow-host", err) ||
		    (setup->servers.take_policy != NULL &&
		     !policy_add_network(setup->servers.take_policy, *hosts,
					 "--allow-host", err)))
			return false;
		note_host(setup, *hosts);
	}
	return true;
}

bool setup_ask(struct setup *setup, const struct options *options, struct err *err)
{
	const char *const *asks = options_texts(options, "ask");

	for (; *asks != NULL; asks++) {
		if (!policy_add_ask(setup->policy, *asks, "--ask", err))
			return false;
		if (setup->asked == NULL)
			setup->asked = value_new_array();
		value_append(setup->asked, value_new_text(*asks));
	}
	return true;
}

bool setup_init_shipped(struct setup *setup, const char *folder, struct err *err)
{
	auto_config struct config *config = config_new();

	memset(setup, 0, sizeof(*setup));
	take_tools(setup);
	setup->agent = memory_copy(POLICY_NAME_DEFAULT);
	return set_workspace(setup, folder, err) &&
	       choose_agent(setup, config, &(struct setup_flags){.shipped_only = true}, err);
}

void setup_fini(struct setup *setup)
{
	front_servers_fini(&setup->servers);
	front_plugins_fini(&setup->plugins);
	value_free(setup->asked);
	policy_free(setup->policy);
	policy_free(setup->bounds);
	value_free(setup->origins);
	value_free(setup->entries);
	free(setup->own_tools);
	value_free(setup->models);
	value_free(setup->agents);
	config_role_fini(&setup->role);
	free(setup->workspace);
	free(setup->workspace_name);
	free(setup->config);
	free(setup->policy_file);
	free(setup->undo_folder);
	free(setup->resolver);
	free(setup->agent);
	free(setup->role_name);
	memset(setup, 0, sizeof(*setup));
}

bool setup_has_tool(const struct setup *setup, const struct tool *tool)
{
	return policy_has_tool(setup->policy, tool->name);
}

bool setup_temp_folder(const char *verb, struct buf *folder, struct err *err)
{
	const char *parent = getenv("TMPDIR");

	if (parent == NULL || parent[0] != '/')
		parent = "/tmp";
	if (!buf_addf(folder, "%s/glovebox-%s-XXXXXX", parent, verb))
		return err_set(err, ENAMETOOLONG, "TMPDIR: the path is too long");
	return mkdtemp(folder->data) != NULL ||
	       err_set(err, errno, "%s: %s; name a folder that can be written to in TMPDIR",
		       folder->data, strerror(errno));
}
