/*
 * config: the one configuration (JSON with comments) and the policies made from it.
 * A person's flags for this run beat the configuration, which beats a user's role, which
 * beats a shipped role, key by key. Text in, structs out: front/config_file reads the
 * file.
 *
 * A new setting is one row in config.c. The test of the rows says what the tables of
 * docs/policy.md have to hold. A limit is a row here too: the kernel or tool/limits.c
 * keeps it, and a case in tests/cell/limits.case shows it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>

struct config;

/* A person writes this by hand: 1 MiB is a mistake, not a configuration. */
enum { CONFIG_TEXT_MAX = 1 << 20 };

/* Names of agents: letters, digits, '-' and '_'. */
enum { CONFIG_NAME_MAX = 64 };

/* An empty configuration; wherever a config is read, NULL stands for one as well. */
struct config *config_new(void);

/* SOURCE names the file in sentences. An empty text is an empty configuration. */
bool config_parse(struct str text, const char *source, struct config **config,
		  struct err *err);
void config_auto_free(struct config **config);
#define auto_config __attribute__((cleanup(config_auto_free)))

/* Level the cell must reach: 0 to 3. */
unsigned config_minimum_level(const struct config *config);

/* The name server that a proxy asks, "address" or "address:port"; NULL: the machine's. */
const char *config_resolver(const struct config *config);
/* Bytes that what undo keeps of all workspaces may take; 0: nobody said it. */
uint64_t config_undo_space(const struct config *config);

/* The value of KEY of the top level, as its row allows; NULL: none. Borrowed. */
const struct value *config_value(const struct config *config, const char *key);

/*
 * The values that plugins of AGENT may ask for, by key: of its entry, over `plugin_config`, over
 * the top level. Only keys of plugins, and `working_directory`. The caller's.
 */
struct value *config_plugin_values(const struct config *config, const char *agent);
/* The value of a key of Glovebox's own for AGENT, or else of the top level: a plugin may ask for it. */
const struct value *config_own_value(const struct config *config, const char *agent,
				     const char *key);
/*
 * A key that no row has may be one of a plugin, where `plugins` names some. Is each among ASKED, a
 * list of those that they declare? Else it is a slip, which ERR names with the nearest.
 */
bool config_check_plugin_keys(const struct config *config, const struct value *asked,
			      struct err *err);

/* Agents that exist beside those of the configuration, for the answer to a wrong name. */
void config_know_agent(struct config *config, const char *name);

/*
 * The name that the entries of AGENT stand under: the shipped role's when AGENT is another
 * name of it (config.h) and nobody has told CONFIG of an agent of that name, else
 * AGENT. Every function here takes either name.
 */
const char *config_role_name(const struct config *config, const char *agent);

/*
 * The wishes of the person for this run (flags): an object with keys of an agent entry,
 * laid over what AGENT (NULL: default) has. A later call wins key by key. WHERE names
 * it in sentences.
 */
bool config_override(struct config *config, const char *agent, const struct value *entry,
		     const char *where, struct err *err);

/*
 * Is ENTRY (of a role's front matter, say) a sound agent entry? WHERE names it in
 * sentences.
 */
bool config_check_entry(const struct value *entry, const char *where, struct err *err);

/*
 * TEXT is one policy (JSON with comments): an agent entry without the keys of a role.
 * SOURCE names it in sentences.
 */
bool config_parse_policy(struct str text, const char *source, struct value **entry,
			 struct err *err);

/* Is there an entry of AGENT, in the configuration or by config_set_role? */
bool config_says(const struct config *config, const char *agent);

/* ENTRY (checked) is what the user's role file of AGENT says. */
void config_set_role(struct config *config, const char *agent, const struct value *entry);

/* ENTRY (checked) is all that the configuration says of AGENT. */
void config_set_agent(struct config *config, const char *agent, const struct value *entry);

/* The sources of a key's value; a later one beats an earlier one. */
enum config_layer {
	LAYER_DEFAULT,
	LAYER_ROLE, /* shipped */
	LAYER_USER, /* config_set_role */
	LAYER_CONFIG,
	LAYER_PERSON
};

/*
 * The value of KEY of AGENT (with INNER: that member of it) and its source; NULL and
 * LAYER_DEFAULT when no source sets it. Borrowed.
 */
const struct value *config_find(const struct config *config,
				const struct value *shipped_role, const char *agent,
				const char *key, const char *inner,
				enum config_layer *layer);

/* All agents there are, sorted, NULL-ended. The caller frees the list; the names are CONFIG's. */
const char **config_agents(const struct config *config);

/* Is AGENT one of these? Refused with the nearest and all there are. */
bool config_check_agent(const struct config *config, const char *agent, struct err *err);

/* Is NAME fit to name an agent? */
bool config_check_name(const char *name, struct err *err);

/*
 * The entry of AGENT as all layers together have it, which the caller frees; refused as by
 * config_policy. Handed to that as a shipped role, it gives the same policy.
 */
bool config_entry(const struct config *config, const struct value *shipped_role,
		  const char *agent, struct value **entry, struct err *err);

/*
 * The policy of AGENT (NULL: default) for WORKSPACE (absolute), its paths normal.
 * SHIPPED_ROLE is the checked entry of the role of that name, or NULL. An agent that
 * neither has is refused with the names there are; `default` always exists and writes
 * nothing by itself.
 */
bool config_policy(const struct config *config, const struct value *shipped_role,
		   const char *agent, const char *workspace, struct policy **policy,
		   struct err *err);

/* Below 0: the provider's own. */
#define CONFIG_TEMPERATURE_ABSENT (-1.0)

/* The keys of a role; texts are NULL when absent. */
struct config_role {
	char *description, *model, *prompt;
	double temperature;
	uint64_t thinking_budget; /* tokens; 0: the provider's own */
	/* name -> command, or an object with `command` or `run_tests`; NULL: none */
	struct value *checks;
	struct policy_names may_delegate_to; /* not given: every agent */
};

/* The role of AGENT from the same layers. */
bool config_role(const struct config *config, const struct value *shipped_role,
		 const char *agent, struct config_role *role, struct err *err);
void config_role_fini(struct config_role *role);

/* What a configuration is made of, for the key table and the reader only. */

struct config {
	unsigned minimum_level;
	uint64_t undo_space;     /* 0: nobody said it */
	char *resolver;          /* NULL: the machine's own */
	struct value *root;      /* all of it, checked; NULL: nothing */
	struct value *agents;    /* name -> entry, checked; NULL: none */
	struct value *roles;     /* the same from the user's role files */
	struct value *overrides; /* the same from the person's flags */
	/* Keys that no row has, of plugins: of the top level, and name -> those of its entry */
	struct value *plugin_keys, *agent_plugin_keys; /* or NULL */
	char **known;                                  /* agents that exist elsewhere */
	size_t known_count;
};

/*
 * The one table of configuration keys. From its rows come the check of config.json, of
 * the front matter of roles and of a person's flags, the place where each value is
 * stored, and the list of keys in docs/policy.md. A new key is one row here and one
 * member where it is stored.
 */

enum key_kind {
	KEY_TEXT = 1, /* char *; at most `max` bytes */
	KEY_NAMES, /* struct policy_names; each one of `choices`, unless that is NULL */
	KEY_HOSTS, /* struct policy_names: entries as policy/network.h has them */
	KEY_RESOLVER,  /* char *: an address with or without a port */
	KEY_PATH,      /* struct policy_path */
	KEY_PATHS,     /* struct policy_paths */
	KEY_VARIABLES, /* struct policy_names: NAME or NAME=value */
	KEY_FLAG,      /* bool */
	KEY_COUNT,     /* uint64_t */
	KEY_SIZE,      /* uint64_t: bytes, or text with K, M, G, T */
	KEY_SECONDS,   /* double */
	KEY_NUMBER,    /* double */
	KEY_CHOICE,    /* unsigned: index in `choices` */
	KEY_ROWS,      /* an object with the keys `rows`, stored from `offset` on */
	/*
	 * an object: name -> object with the keys `rows`; not stored by this table. Names are
	 * those of agents, or with `max` any text of at most so many bytes.
	 */
	KEY_ENTRIES,
	KEY_TEXTS, /* list of texts of at most `max` bytes; not stored by this table */
	KEY_LIST,  /* list of objects with the keys `rows`; likewise */
	/* list of texts, or objects with the keys `rows`; not stored by this table */
	KEY_SOURCES,
	KEY_VALUES, /* object of anything, its names somebody else's; likewise */
	/* struct value *: an object, name -> text of at most `max` bytes, or an object (`rows`) */
	KEY_CHECKS,
	/* struct commands *: one of `choices`, or an object with the keys `rows` */
	KEY_COMMANDS,
};

/* The struct that `offset` is in; KEY_KEPT: none, config_value gives what was written. */
enum key_home { KEY_IN_CONFIG, KEY_IN_POLICY, KEY_IN_ROLE, KEY_KEPT };

struct key {
	const char *name;
	enum key_kind kind;
	enum key_home home;
	size_t offset;
	double min, max;     /* numbers: bounds; texts: most bytes */
	const char *choices; /* blank-separated */
	/* what holds unless given, for the manual; NULL in `limits`: the number of policy_new */
	const char *initial;
	const char *description; /* one sentence for the manual */
	const struct key *rows;
};

/* Tables end with {0}. */
extern const struct key keys_config[]; /* top level of config.json */
extern const struct key keys_agent[];  /* an entry of `agents`; front matter of a role */

/*
 * Does OBJECT hold only keys of ROWS, each of the right kind and within its bounds? ERR
 * names the place as JSON pointer (below POINTER), the rule, and the nearest key for an
 * unknown one.
 */
bool config_keys_check(const struct key *rows, const struct value *object,
		       const char *pointer, struct err *err);

/*
 * Append the list of keys as Markdown tables: the generated part of docs/policy.md. False
 * at OUT's ceiling.
 */
bool config_keys_describe(struct buf *out);

/*
 * Other names of the shipped roles. Teams that come from the agents which these roles
 * were modelled on keep their names for them. An agent that somebody defines under such
 * a name is that agent: config_role_name decides.
 */

struct role_name {
	const char *other; /* "VajbCoder" */
	const char *role;  /* "coder" */
};

/* Ends with {0}. */
extern const struct role_name role_names[];
