/*
 * config: the text of a configuration to a checked table of agents, and from it
 * policies.
 */
#include "policy/config.h"

#include "base/memory.h"
#include "base/text/text.h"
#include "policy/config_store.h"
#include "policy/keys.h"
#include "policy/role_names.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing but the whole cell, unless the user says otherwise. */
enum { MINIMUM_LEVEL = 3 };

struct config *config_new(void)
{
	struct config *config = memory_alloc(sizeof(*config));

	config->minimum_level = MINIMUM_LEVEL;
	return config;
}

static void config_free(struct config *config)
{
	if (!config)
		return;
	free(config->resolver);
	value_free(config->root);
	value_free(config->agents);
	value_free(config->roles);
	value_free(config->overrides);
	value_free(config->plugin_keys);
	value_free(config->agent_plugin_keys);
	for (size_t i = 0; i < config->known_count; i++)
		free(config->known[i]);
	free(config->known);
	free(config);
}

void config_auto_free(struct config **config)
{
	config_free(*config);
}

/* Move the members of OBJECT that have no row in ROWS, as a new object; NULL: there are none. */
static struct value *take_strange(const struct key *rows, struct value *object)
{
	struct value *strange = NULL;

	for (void *at = value_first(object); at; at = value_next(object, at)) {
		if (keys_find(rows, value_key(at)))
			continue;
		if (!strange)
			strange = value_new_object();
		value_set(strange, value_key(at), value_ref(value_at(at)));
	}
	for (void *at = value_first(strange); at; at = value_next(strange, at))
		value_remove(object, value_key(at));
	return strange;
}

/*
 * Which keys plugins declare is known when they are loaded: until then every key without
 * a row is kept apart, where there are plugins at all.
 */
static void take_plugin_keys(struct value *root, struct config *config)
{
	struct value *agents = value_member(root, "agents");

	if (value_count(value_member(root, "plugins")) == 0)
		return;
	config->plugin_keys = take_strange(keys_config, root);
	for (void *at = value_first(agents); at; at = value_next(agents, at)) {
		struct value *strange = take_strange(keys_agent, value_at(at));

		if (!strange)
			continue;
		if (!config->agent_plugin_keys)
			config->agent_plugin_keys = value_new_object();
		value_set(config->agent_plugin_keys, value_key(at), strange);
	}
}

bool config_parse(struct str text, const char *source, struct config **config,
		  struct err *err)
{
	auto_value struct value *root = NULL;
	auto_config struct config *made = config_new();
	struct value *agents;

	if (text.size > CONFIG_TEXT_MAX)
		return err_set(err, EFBIG, "%s: is larger than %d bytes", source,
			       CONFIG_TEXT_MAX);
	if (str_trim(text).size > 0) {
		if (!value_parse(text, VALUE_COMMENTS, &root, err))
			return err_while(err, "%s", source);
		take_plugin_keys(root, made);
		if (!keys_check(keys_config, root, "", err))
			return err_while(err, "%s", source);
		keys_store(keys_config, root, KEY_IN_CONFIG, made);
		made->root = value_ref(root);
		agents = value_member(root, "agents");
		if (agents)
			made->agents = value_ref(agents);
	}
	*config = made;
	made = NULL;
	return true;
}

unsigned config_minimum_level(const struct config *config)
{
	return config ? config->minimum_level : MINIMUM_LEVEL;
}

const struct value *config_value(const struct config *config, const char *key)
{
	return value_member(config ? config->root : NULL, key);
}

uint64_t config_undo_space(const struct config *config)
{
	return config ? config->undo_space : 0;
}

const char *config_resolver(const struct config *config)
{
	return config ? config->resolver : NULL;
}

void config_know_agent(struct config *config, const char *name)
{
	config->known = memory_grow(config->known, config->known_count + 1,
				    sizeof(*config->known));
	config->known[config->known_count++] = memory_copy(name);
}

static bool is_known(const struct config *config, const char *name)
{
	for (size_t i = 0; config && i < config->known_count; i++) {
		if (strcmp(config->known[i], name) == 0)
			return true;
	}
	return false;
}

const char *config_role_name(const struct config *config, const char *agent)
{
	const char *role = role_names_role(agent);

	return role && !is_known(config, agent) ? role : agent;
}

/* The other name that entries of ROLE may stand under, or NULL. */
static const char *other_name(const struct config *config, const char *role)
{
	const char *other = role_names_other(role);

	return other && !is_known(config, other) ? other : NULL;
}

/* The entry of AGENT among ENTRIES, under whichever of its names. */
static const struct value *entry_in(const struct value *entries,
				    const struct config *config, const char *agent)
{
	const char *role = config_role_name(config, agent);
	const char *other = other_name(config, role);
	const struct value *entry = value_member(entries, role);

	return entry || !other ? entry : value_member(entries, other);
}

bool config_check_entry(const struct value *entry, const char *where, struct err *err)
{
	return keys_check(keys_agent, entry, "", err) || err_while(err, "%s", where);
}

bool config_parse_policy(struct str text, const char *source, struct value **entry,
			 struct err *err)
{
	auto_value struct value *root = NULL;

	if (text.size > CONFIG_TEXT_MAX)
		return err_set(err, EFBIG, "%s: is larger than %d bytes", source,
			       CONFIG_TEXT_MAX);
	if (!value_parse(text, VALUE_COMMENTS, &root, err))
		return err_while(err, "%s", source);
	if (!config_check_entry(root, source, err))
		return false;
	for (const struct key *key = keys_agent; key->name; key++) {
		if (key->home != KEY_IN_POLICY && value_member(root, key->name))
			return err_set(err, EINVAL,
				       "%s: /%s: is a key of an agent, not of a policy",
				       source, key->name);
	}
	*entry = root;
	root = NULL;
	return true;
}

bool config_says(const struct config *config, const char *agent)
{
	return config && (entry_in(config->agents, config, agent) ||
			  entry_in(config->roles, config, agent));
}

void config_set_role(struct config *config, const char *agent, const struct value *entry)
{
	if (!config->roles)
		config->roles = value_new_object();
	value_set(config->roles, config_role_name(config, agent), value_copy(entry));
}

void config_set_agent(struct config *config, const char *agent, const struct value *entry)
{
	const char *role = config_role_name(config, agent);
	const char *other = other_name(config, role);

	if (!config->agents)
		config->agents = value_new_object();
	if (other)
		value_remove(config->agents, other);
	value_set(config->agents, role, value_copy(entry));
}

const struct value *config_find(const struct config *config,
				const struct value *shipped_role, const char *agent,
				const char *key, const char *inner, enum config_layer *layer)
{
	const struct value *entries[] = {
		[LAYER_ROLE] = shipped_role,
		[LAYER_USER] = entry_in(config ? config->roles : NULL, config, agent),
		[LAYER_CONFIG] = entry_in(config ? config->agents : NULL, config, agent),
		[LAYER_PERSON] = entry_in(config ? config->overrides : NULL, config, agent),
	};

	for (int at = LAYER_PERSON; at > LAYER_DEFAULT; at--) {
		const struct value *found = value_member(entries[at], key);

		if (found && inner)
			found = value_member(found, inner);
		if (found) {
			*layer = (enum config_layer)at;
			return found;
		}
	}
	*layer = LAYER_DEFAULT;
	return NULL;
}

bool config_check_name(const char *name, struct err *err)
{
	size_t length = name ? strlen(name) : 0;
	bool fine = length > 0 && length <= CONFIG_NAME_MAX;

	for (size_t i = 0; fine && i < length; i++)
		fine = isalnum((unsigned char)name[i]) || name[i] == '-' || name[i] == '_';
	if (fine)
		return true;
	return err_set(err, EINVAL,
		       "the name of an agent is made of 1 to %d letters, digits, '-' and '_'",
		       CONFIG_NAME_MAX);
}

/*
 * OVER laid over UNDER key by key, as a new object; either may be NULL. An object
 * inside an entry (`limits`) is merged key by key too, for DEPTH levels; a value below
 * them is replaced as a whole.
 */
static struct value *merge_levels(const struct value *under, const struct value *over,
				  unsigned depth)
{
	struct value *merged = under ? value_copy(under) : value_new_object();

	for (void *at = value_first(over); at; at = value_next(over, at)) {
		const struct value *old = value_member(merged, value_key(at));
		bool both = value_kind(old) == VALUE_OBJECT &&
			    value_kind(value_at(at)) == VALUE_OBJECT;
		struct value *now = both && depth > 0
					    ? merge_levels(old, value_at(at), depth - 1)
					    : value_copy(value_at(at));

		value_set(merged, value_key(at), now);
	}
	return merged;
}

static struct value *merge(const struct value *under, const struct value *over)
{
	return merge_levels(under, over, 1);
}

bool config_override(struct config *config, const char *agent, const struct value *entry,
		     const char *where, struct err *err)
{
	const char *name = config_role_name(config, agent ? agent : POLICY_NAME_DEFAULT);

	if (!config_check_name(name, err) || !config_check_entry(entry, where, err))
		return false;
	if (!config->overrides)
		config->overrides = value_new_object();
	value_set(config->overrides, name,
		  merge(value_member(config->overrides, name), entry));
	return true;
}

static void lay_over(struct value *values, const struct value *more)
{
	for (void *at = value_first(more); at; at = value_next(more, at))
		value_set(values, value_key(at), value_copy(value_at(at)));
}

/* The one key of a row that plugins have besides theirs. */
static void lay_folder_over(struct value *values, const struct value *folder)
{
	if (folder)
		value_set(values, "working_directory", value_copy(folder));
}

struct value *config_plugin_values(const struct config *config, const char *agent)
{
	struct value *values = value_new_object();
	enum config_layer layer;

	if (!config)
		return values;
	lay_folder_over(values, config_value(config, "working_directory"));
	lay_over(values, config->plugin_keys);
	lay_over(values, config_value(config, "plugin_config"));
	lay_folder_over(values, config_find(config, NULL, agent, "working_directory",
					    NULL, &layer));
	lay_over(values, entry_in(config->agent_plugin_keys, config, agent));
	return values;
}

const struct value *config_own_value(const struct config *config, const char *agent,
				     const char *key)
{
	const struct value *value =
		value_member(entry_in(config ? config->agents : NULL, config, agent), key);

	return value ? value : config_value(config, key);
}

static size_t count_rows(const struct key *rows)
{
	size_t count = 0;

	while (rows[count].name)
		count++;
	return count;
}

/* Of KEYS, at POINTER, whose own rows are ROWS. */
static bool check_strange(const struct key *rows, const struct value *keys,
			  const char *pointer, const struct value *asked, struct err *err)
{
	void *at = value_first(keys);
	size_t count = 0;
	const char *nearest;
	struct buf name;

	while (at && value_has_text(asked, value_key(at)))
		at = value_next(keys, at);
	if (!at)
		return true;
	auto_free const char **names =
		memory_array(count_rows(rows) + value_count(asked) + 1, sizeof(*names));
	for (const struct key *key = rows; key->name; key++)
		names[count++] = key->name;
	for (size_t i = 0; i < value_count(asked); i++)
		names[count++] = value_text(value_item(asked, i));
	nearest = text_nearest(value_key(at), names);
	buf_init(&name, ERR_TEXT_MAX);
	text_add_name(&name, str_part(str_of(value_key(at)), 0, CONFIG_NAME_MAX));
	(void)err_set(err, EINVAL,
		      "the configuration: %s: there is no key \"%s\"%s%s%s, and no plugin "
		      "declares it in its config_keys",
		      pointer, name.data, nearest ? " (did you mean \"" : "",
		      nearest ? nearest : "", nearest ? "\"?)" : "");
	buf_fini(&name);
	return false;
}

bool config_check_plugin_keys(const struct config *config, const struct value *asked,
			      struct err *err)
{
	const struct value *agents = config ? config->agent_plugin_keys : NULL;
	char pointer[sizeof("/agents/") + CONFIG_NAME_MAX];

	if (!config)
		return true;
	for (void *at = value_first(agents); at; at = value_next(agents, at)) {
		(void)snprintf(pointer, sizeof(pointer), "/agents/%s", value_key(at));
		if (!check_strange(keys_agent, value_at(at), pointer, asked, err))
			return false;
	}
	return check_strange(keys_config, config->plugin_keys, "/", asked, err);
}

static void add_name(const char **names, size_t *count, const char *name)
{
	for (size_t i = 0; i < *count; i++) {
		if (strcmp(names[i], name) == 0)
			return;
	}
	names[(*count)++] = name;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **config_agents(const struct config *config)
{
	const struct value *agents = config ? config->agents : NULL;
	const struct value *roles = config ? config->roles : NULL;
	size_t known = config ? config->known_count : 0;
	const char **names =
		memory_array(value_count(agents) + value_count(roles) + known + 2,
			     sizeof(*names));
	size_t count = 0;

	add_name(names, &count, POLICY_NAME_DEFAULT);
	for (size_t i = 0; i < known; i++)
		add_name(names, &count, config->known[i]);
	for (void *at = value_first(agents); at; at = value_next(agents, at))
		add_name(names, &count, config_role_name(config, value_key(at)));
	for (void *at = value_first(roles); at; at = value_next(roles, at))
		add_name(names, &count, value_key(at));
	qsort(names, count, sizeof(*names), compare_names);
	return names;
}

static bool refuse_agent(const struct config *config, const char *agent, struct err *err)
{
	auto_free const char **names = config_agents(config);
	const char *nearest;
	struct buf list;

	buf_init(&list, ERR_TEXT_MAX / 2);
	for (size_t i = 0; names[i]; i++)
		(void)buf_addf(&list, "%s%s", i ? ", " : "", names[i]);
	nearest = text_nearest(agent, names);
	(void)err_set(err, ENOENT, "there is no agent \"%.64s\"%s%s%s; there are: %s",
		      agent, nearest ? " (did you mean \"" : "", nearest ? nearest : "",
		      nearest ? "\"?)" : "", list.data);
	buf_fini(&list);
	return false;
}

bool config_check_agent(const struct config *config, const char *agent, struct err *err)
{
	auto_free const char **names = config_agents(config);
	const char *role = config_role_name(config, agent);

	for (size_t i = 0; names[i]; i++) {
		if (strcmp(names[i], role) == 0)
			return true;
	}
	return refuse_agent(config, agent, err);
}

bool config_entry(const struct config *config, const struct value *shipped_role,
		  const char *agent, struct value **entry, struct err *err)
{
	const struct value *agents = config ? config->agents : NULL;
	const struct value *of_config = entry_in(agents, config, agent);
	const struct value *of_person =
		entry_in(config ? config->overrides : NULL, config, agent);
	const struct value *of_user =
		entry_in(config ? config->roles : NULL, config, agent);
	const char *name = config_role_name(config, agent);
	const char *other = other_name(config, name);
	auto_value struct value *role = NULL;
	auto_value struct value *below = NULL;

	if (!shipped_role && !of_user && !of_config &&
	    strcmp(agent, POLICY_NAME_DEFAULT) != 0)
		return refuse_agent(config, agent, err);
	if (other && value_member(agents, name) && value_member(agents, other))
		return err_set(err, EEXIST,
			       "agents.%s and agents.%s are two names of one role: write their "
			       "keys into one entry",
			       name, other);
	if (shipped_role && !config_check_entry(shipped_role, agent, err))
		return false;
	role = merge(shipped_role, of_user);
	below = merge(role, of_config);
	*entry = merge(below, of_person);
	return true;
}

/* A `write` that only the shipped role names may be missing on disk. */
static void mark_shipped(const struct config *config, const struct value *shipped_role,
			 const char *agent, struct policy_paths *write)
{
	enum config_layer layer;

	(void)config_find(config, shipped_role, agent, "write", NULL, &layer);
	if (layer != LAYER_ROLE)
		return;
	for (size_t i = 0; i < write->count; i++)
		write->items[i].shipped = true;
}

bool config_policy(const struct config *config, const struct value *shipped_role,
		   const char *agent, const char *workspace, struct policy **policy,
		   struct err *err)
{
	const char *name = agent ? agent : POLICY_NAME_DEFAULT;
	auto_value struct value *entry = NULL;
	auto_policy struct policy *made = NULL;

	assert(workspace && workspace[0] == '/');
	if (!config_entry(config, shipped_role, name, &entry, err))
		return false;
	made = policy_new(name, workspace);
	keys_store(keys_agent, entry, KEY_IN_POLICY, made);
	mark_shipped(config, shipped_role, name, &made->write);
	if (!policy_paths_normal(made, workspace, err))
		return false;
	*policy = made;
	made = NULL;
	return true;
}

bool config_role(const struct config *config, const struct value *shipped_role,
		 const char *agent, struct config_role *role, struct err *err)
{
	const char *name = agent ? agent : POLICY_NAME_DEFAULT;
	auto_value struct value *entry = NULL;

	if (!config_entry(config, shipped_role, name, &entry, err))
		return false;
	*role = (struct config_role){.temperature = CONFIG_TEMPERATURE_ABSENT};
	keys_store(keys_agent, entry, KEY_IN_ROLE, role);
	return true;
}

void config_role_fini(struct config_role *role)
{
	free(role->description);
	free(role->model);
	free(role->prompt);
	value_free(role->checks);
	policy_names_fini(&role->may_delegate_to);
	*role = (struct config_role){.temperature = CONFIG_TEMPERATURE_ABSENT};
}
