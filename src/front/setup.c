/*
 * setup: configuration, role, workspace and policy, and the session made of them; see
 * setup.h.
 */
#include "front/setup.h"
#include "front/policy_words.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/roles.h"
#include "base/memory.h"
#include "base/path.h"
#include "front/config_file.h"
#include "front/embedded.h"
#include "front/environment.h"
#include "front/exit_code.h"
#include "front/interrupt.h"
#include "front/verb.h"
#include "policy/keys.h"
#include "sandbox/probe.h"
#include "tools/tools.h"

static const char roles_folder[] = "agents/";

/* The name in "agents/NAME.md", or an empty text. */
static struct str role_name(const struct embedded_file *file)
{
	struct str name = str_of(file->name);

	if (!str_starts(name, str_of(roles_folder)) || !str_ends(name, STR(".md")))
		return STR("");
	return str_part(name, strlen(roles_folder),
			name.size - strlen(roles_folder) - strlen(".md"));
}

/*
 * Tell CONFIG of all shipped roles, but read the wanted one only: the others cost every
 * start.
 */
static bool read_role(const char *agent, struct config *config, struct roles *roles,
		      struct err *err)
{
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		struct role_text text = {file->name, {file->data, file->size}};
		auto_free char *name = memory_copy_str(role_name(file));

		if (name[0] == '\0')
			continue;
		config_know_agent(config, name);
		if (strcmp(name, agent) == 0 && !roles_init(roles, &text, 1, err))
			return false;
	}
	return true;
}

/* Lay FLAGS over what CONFIG and SHIPPED say. */
static bool add_flags(const struct setup *setup, struct config *config,
		      const struct value *shipped, const struct setup_flags *flags,
		      struct err *err)
{
	auto_value struct value *entry = value_copy(flags->entry);
	struct value *more = value_member(entry, "read");
	enum config_layer layer;

	if (more != NULL) {
		const struct value *had =
			config_find(config, shipped, setup->agent, "read", NULL, &layer);
		struct value *all = had != NULL ? value_copy(had) : value_new_array();

		if (had == NULL)
			value_append(all, value_new_text("."));
		for (size_t i = 0; i < value_count(more); i++)
			value_append(all, value_copy(value_item(more, i)));
		value_set(entry, "read", all);
	}
	return config_override(config, setup->agent, entry, "the options", err);
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
		if (key->home != KEY_IN_POLICY)
			continue;
		if (key->kind != KEY_ROWS)
			add_origin(setup, config, shipped, flags, key->name, NULL);
		for (const struct key *row = key->rows; row != NULL && row->name != NULL;
		     row++)
			add_origin(setup, config, shipped, flags, key->name, row->name);
	}
}

/* What the cell may do that plugins are looked at from: read what the agent may. */
static bool look_policy(const struct setup *setup, struct config *config,
			const struct value *shipped, struct policy **policy, struct err *err)
{
	auto_value struct value *entry = value_new_object();

	value_set(entry, "write", value_new_array());
	value_set(entry, "network", value_new_array());
	value_set(entry, "env", value_new_array());
	value_set_boolean(entry, "scratch", false);
	value_set_text(entry, "commands", "box");
	return config_override(config, setup->agent, entry, "plugins", err) &&
	       config_policy(config, shipped, setup->agent, setup->workspace, policy, err);
}

/* CONFIG is asked for nothing else afterwards. */
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
	plugins->workspace = setup->workspace;
	plugins->config_path = setup->config;
	plugins->writable = &setup->policy->write;
	plugins->minimum_level =
		setup->minimum_level > 0 ? (int)setup->minimum_level : SESSION_ANY_LEVEL;
	if (!look_policy(setup, config, shipped, &plugins->take_policy, err) ||
	    !front_plugins_load(plugins, config, wish, flags->quiet_plugins, err))
		return false;
	setup->tools = (const struct tool *const *)plugins->loaded->tools;
	return true;
}

/* What the MCP servers may do is what the agent may, whatever it may start by itself. */
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
	return config_override(config, setup->agent, entry, "mcpServers", err) &&
	       config_policy(config, shipped, setup->agent, setup->workspace,
			     &servers->take_policy, err);
}

/* CONFIG is complete; the agent's role, from all layers, and its policy. */
static bool choose_agent(struct setup *setup, struct config *config,
			 const struct setup_flags *flags, struct err *err)
{
	struct roles roles = {0};
	const struct role *role;
	const struct value *shipped;
	bool sound;

	if (flags->policy_file == NULL && !read_role(setup->agent, config, &roles, err)) {
		roles_fini(&roles);
		return false;
	}
	role = roles_find(&roles, setup->agent);
	shipped = role != NULL ? role->entry : NULL;
	sound = (flags->entry == NULL || add_flags(setup, config, shipped, flags, err)) &&
		config_policy(config, shipped, setup->agent, setup->workspace,
			      &setup->policy, err) &&
		config_role(config, shipped, setup->agent, &setup->role, err);
	if (!setup->level_is_asked)
		setup->minimum_level = config_minimum_level(config);
	setup->resolver = memory_copy(config_resolver(config));
	if (sound && flags->explain)
		find_origins(setup, config, shipped, flags);
	sound = sound && read_servers(setup, config, shipped, err) &&
		load_plugins(setup, config, shipped, flags, err);
	/* What the servers have is known when they run: session_open looks again. */
	if (sound && setup->servers.settings == NULL)
		sound = session_check_tools(setup->policy, setup->tools, err);
	roles_fini(&roles);
	return sound;
}

static bool set_workspace(struct setup *setup, const char *folder, struct err *err)
{
	setup->workspace = realpath(folder, NULL);
	if (setup->workspace == NULL)
		return err_set(err, errno, "workspace %s: %s", folder, strerror(errno));
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

/* --minimum-level L2, for the verbs that have it, goes before the configuration's. */
static void take_level(struct setup *setup, const struct options *options)
{
	bool apart;

	if (options_find(options->rows, "--minimum-level", &apart) == NULL ||
	    !options_given(options, "minimum-level"))
		return;
	setup->minimum_level = (unsigned)options_count(options, "minimum-level", 0);
	setup->level_is_asked = true;
}

/* Never a silent step down, not even one that was allowed. */
static void say_level(int level)
{
	const struct level_row *row = probe_level_row((enum sandbox_level)level);

	if (level < SANDBOX_SEALED)
		(void)fprintf(stderr,
			      "glovebox: this cell is of level %s (%s), not L3; what is "
			      "missing: glovebox doctor\n",
			      row->name, row->walls);
}

/* The policy of FLAGS' file stands in the place of an agent's. */
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

/* In the user's state, beside the journal. Found before the environment is wiped. */
static char *undo_place(void)
{
	struct buf path;
	char *place = NULL;

	buf_init(&path, PATH_MAX);
	if (path_xdg(getenv("XDG_STATE_HOME"), getenv("HOME"), ".local/state",
		     "glovebox/undo", &path))
		place = memory_copy(path.data);
	buf_fini(&path);
	return place;
}

bool setup_init_with(struct setup *setup, const struct options *options,
		     const struct setup_flags *flags, struct err *err)
{
	auto_config struct config *config = NULL;
	const char *agent = options_text(options, "agent");
	const char *folder = options_text(options, "workspace");

	memset(setup, 0, sizeof(*setup));
	setup->tools = builtin_tools;
	if (flags->policy_file != NULL)
		agent = POLICY_FILE_AGENT;
	setup->agent = memory_copy(agent != NULL ? agent : POLICY_NAME_DEFAULT);
	setup->config = config_place(options_text(options, "config"));
	setup->policy_file = memory_copy(flags->policy_file);
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

bool setup_allow_hosts(struct setup *setup, const struct options *options, struct err *err)
{
	const char *const *hosts = options_texts(options, "allow-host");

	for (; *hosts != NULL; hosts++) {
		if (!policy_add_network(setup->policy, *hosts, "--allow-host", err))
			return false;
	}
	return true;
}

bool setup_init_shipped(struct setup *setup, const char *folder, struct err *err)
{
	auto_config struct config *config = config_new();

	memset(setup, 0, sizeof(*setup));
	setup->tools = builtin_tools;
	setup->agent = memory_copy(POLICY_NAME_DEFAULT);
	return set_workspace(setup, folder, err) &&
	       choose_agent(setup, config, &(struct setup_flags){0}, err);
}

void setup_fini(struct setup *setup)
{
	front_servers_fini(&setup->servers);
	front_plugins_fini(&setup->plugins);
	policy_free(setup->policy);
	value_free(setup->origins);
	config_role_fini(&setup->role);
	free(setup->workspace);
	free(setup->config);
	free(setup->policy_file);
	free(setup->undo_folder);
	free(setup->resolver);
	free(setup->agent);
	memset(setup, 0, sizeof(*setup));
}

bool setup_has_tool(const struct setup *setup, const struct tool *tool)
{
	return policy_has_tool(setup->policy, tool->name);
}

void setup_hide_memory(void)
{
	/* The leak checker of sanitizer builds reads memory the same way: kept out too. */
#if defined(__SANITIZE_ADDRESS__)
	return;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
	return;
#endif
#endif
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* The first NULL ends the list: the one that is always there comes first. */
enum { PROTECTED_FILES = 3 };

static void fill_options(const struct setup *setup, const char *files[PROTECTED_FILES],
			 struct session_options *options)
{
	files[0] = setup->config != NULL ? setup->config : setup->policy_file;
	files[1] = setup->policy_file;
	files[2] = NULL;
	options->workspace = setup->workspace;
	options->protected_files = files;
	options->resolver = setup->resolver;
	options->tools = setup->tools;
	options->shown =
		setup->plugins.loaded != NULL ? setup->plugins.loaded->shown : NULL;
	options->undo_folder = setup->undo_folder;
}

static int least_level(const struct setup *setup)
{
	return setup->minimum_level > 0 ? (int)setup->minimum_level : SESSION_ANY_LEVEL;
}

bool setup_serve(struct setup *setup, struct err *err)
{
	struct session_options options = {.minimum_level = least_level(setup)};
	const char *files[PROTECTED_FILES];

	if (setup->servers.settings == NULL)
		return true;
	front_plugins_rest(&setup->plugins);
	fill_options(setup, files, &options);
	if (!front_servers_start(&setup->servers, &options, setup->tools, err))
		return false;
	setup->tools = remotes_tools(setup->servers.remotes);
	return session_check_tools(setup->policy, setup->tools, err);
}

bool setup_shape(const struct setup *setup, struct cell_spec *spec, struct err *err)
{
	const char *files[PROTECTED_FILES];
	struct session_options options = {.direct = true,
					  .minimum_level = least_level(setup)};

	fill_options(setup, files, &options);
	return session_shape(&options, setup->policy, spec, err);
}

static bool open_session(struct setup *setup, struct session_options *options,
			 struct session **session, struct err *err)
{
	const char *files[PROTECTED_FILES];
	bool opened;

	front_plugins_rest(&setup->plugins);
	fill_options(setup, files, options);
	if (setup->servers.loop != NULL) {
		options->loop = setup->servers.loop;
		/* Their cell's ends are among our descriptors: no copy of this process then. */
		options->direct = false;
	}
	options->take_policy = setup->policy;
	setup->policy = NULL;
	opened = session_open(options, session, err);
	options->protected_files = NULL;
	if (!opened)
		return false;
	/* Not earlier: a cell that is cloned out of this process needs its /proc files. */
	setup_hide_memory();
	return true;
}

bool setup_session_err(struct setup *setup, struct session_options *options,
		       struct session **session, struct err *err)
{
	options->minimum_level = least_level(setup);
	if (!open_session(setup, options, session, err))
		return false;
	say_level(session_level(*session));
	return true;
}

int setup_session(struct setup *setup, struct session_options *options,
		  struct session **session)
{
	struct err err = {0};

	if (setup_session_err(setup, options, session, &err))
		return CODE_DONE;
	return policy_words_complain(err.code == ECHILD ? CODE_NO_CELL : CODE_FAILED,
				     setup->policy_file, err.text);
}

int setup_session_once(struct setup *setup, struct interrupt *interrupt,
		       struct session **session)
{
	struct session_options options = {
		.direct = true,
		.ready_workers = 1,
		.caller_environment = environment_wipe(&setup->policy->environment),
		.cancel_fd = interrupt_fd(interrupt),
	};
	struct err err = {0};
	int code = setup_session(setup, &options, session);

	if (code != CODE_DONE || interrupt_start(interrupt, &err))
		return code;
	session_close(*session);
	*session = NULL;
	return verb_complain(CODE_FAILED, "%s", err.text);
}

bool setup_open_session(struct setup *setup, struct session_options *options,
			struct session **session, struct err *err)
{
	options->minimum_level = SESSION_ANY_LEVEL;
	return open_session(setup, options, session, err);
}

bool setup_temp_folder(const char *verb, struct buf *folder, struct err *err)
{
	const char *parent = getenv("TMPDIR");

	if (parent == NULL || parent[0] != '/')
		parent = "/tmp";
	if (!buf_addf(folder, "%s/glovebox-%s-XXXXXX", parent, verb))
		return err_set(err, ENAMETOOLONG, "TMPDIR: the path is too long");
	return mkdtemp(folder->data) != NULL ||
	       err_set(err, errno, "%s: %s", folder->data, strerror(errno));
}
