/*
 * config: the one configuration (JSON with comments) and the policies made from it. For
 * each key the value comes from the first of these that has one: the flags of this run,
 * the configuration, the user's role, the shipped role. This module turns texts into
 * structures. The front reads the files.
 *
 * A new setting is one row in config.c. tests/unit/policy/keys_test.c compares the rows
 * with the tables of docs/policy.md. A limit is a row too: the kernel or tool/limits.c
 * enforces it, and a case in tests/cell/limits.case shows that.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>

struct config;

/* A person writes a configuration by hand, so more than 1 MiB is a mistake. */
enum { CONFIG_TEXT_MAX = 1 << 20 };

/* Names of agents: letters, digits, '-' and '_'. */
enum { CONFIG_NAME_MAX = 64 };

/*
 * Make an empty configuration. All functions that read a configuration accept NULL for
 * an empty one.
 */
struct config *config_new(void);

/* SOURCE names the file in sentences. An empty text is an empty configuration. */
bool config_parse(struct str text, const char *source, struct config **config,
		  struct err *err);
void config_auto_free(struct config **config);
#define auto_config __attribute__((cleanup(config_auto_free)))

/* The refusal of a level that former versions had. */
#define CONFIG_FORMER_LEVEL                                                                \
	"there is no L1 any more: name L0 (no wall over files; system calls are filtered " \
	"where the kernel can) or L2 (files outside are closed, and system calls are "     \
	"always filtered)"

/* The level that the cell must reach: 0, 2 or 3. */
unsigned config_minimum_level(const struct config *config);

/* The name server that a proxy asks, "address" or "address:port"; NULL: the machine's. */
const char *config_resolver(const struct config *config);
/* Bytes that the undo stores of all workspaces may use; 0: not set. */
uint64_t config_undo_space(const struct config *config);

/* The parts that the key `footer` may name, in the order in which they stand unless it is there. */
#define CONFIG_FOOTER_PARTS "agent mode model context money level changes"

/* The value of the top-level KEY, of the kind in its row; NULL: none. Borrowed. */
const struct value *config_value(const struct config *config, const char *key);

/*
 * The values that plugins of AGENT may read, by key: those of its entry, over
 * `plugin_config`, over the top level. Only keys of plugins, and `working_directory`.
 * The caller owns the result.
 */
struct value *config_plugin_values(const struct config *config, const char *agent);
/*
 * The value of one of Glovebox's own keys for AGENT, or else of the top level. Plugins
 * may ask for such a value.
 */
const struct value *config_own_value(const struct config *config, const char *agent,
				     const char *key);
/* ERR.code of a configuration that cannot be used; no system call of ours returns it. */
#define CONFIG_WRONG EBADRQC

/*
 * When `plugins` names any, a key without a row may belong to a plugin. Is each such
 * key in ASKED, the list of keys that plugins declare? Otherwise it is a typing error;
 * ERR names it with the nearest key.
 */
bool config_check_plugin_keys(const struct config *config, const struct value *asked,
			      struct err *err);

/*
 * Add an agent that exists outside of the configuration, for the sentence about a wrong
 * name.
 */
void config_know_agent(struct config *config, const char *name);

/*
 * The name under which entries of AGENT stand. This is the shipped role's name when
 * AGENT is another name of that role (role_names) and config_know_agent did not name an
 * agent AGENT; else AGENT. Every function here accepts either name.
 */
const char *config_role_name(const struct config *config, const char *agent);

/*
 * Set the person's wishes (flags) for this run: an object with keys of an agent entry,
 * which is laid over the entry of AGENT (NULL: default). A later call wins for each
 * key. WHERE names its origin in sentences.
 */
bool config_override(struct config *config, const char *agent, const struct value *entry,
		     const char *where, struct err *err);

/*
 * Is ENTRY, for example of a role's front matter, a sound agent entry? If not, ERR names
 * the place as a JSON pointer, the rule, and the nearest key for an unknown one. WHERE
 * (or NULL) stands before it.
 */
bool config_check_entry(const struct value *entry, const char *where, struct err *err);

/* The keys of `limits`. The offset of each is its place in struct policy_limits. */
extern const struct row config_limit_rows[];
/* The keys of a rule of `commands`. */
extern const struct row config_rule_rows[];

/*
 * Does OBJECT, of another file that a person writes, fit ROWS? If not, ERR says so in the
 * words of config_check_entry.
 */
bool config_check_rows(const struct row *rows, const struct value *object, struct err *err);

/* The same for one policy: an entry without the keys of a role. */
bool config_check_policy(const struct value *entry, const char *where, struct err *err);

/*
 * Read TEXT, one policy (JSON with comments): an agent entry without the keys of a
 * role. SOURCE names it in sentences.
 */
bool config_parse_policy(struct str text, const char *source, struct value **entry,
			 struct err *err);

/* Is there an entry of AGENT, in the configuration or from config_set_role? */
bool config_says(const struct config *config, const char *agent);

/* Set ENTRY (checked), from the user's role file, for AGENT. */
void config_set_role(struct config *config, const char *agent, const struct value *entry);

/* Replace the configuration's entry of AGENT by ENTRY (checked). */
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

/*
 * All existing agents, sorted, NULL-ended. The caller frees the list, but CONFIG owns
 * the names.
 */
const char **config_agents(const struct config *config);

/* Does AGENT exist? If not, ERR names the nearest agent and all agents. */
bool config_check_agent(const struct config *config, const char *agent, struct err *err);

/* Is NAME a valid name for an agent? */
bool config_check_name(const char *name, struct err *err);

/*
 * The entry of AGENT, merged from all layers. The caller frees it. It fails as
 * config_policy does. Given to config_policy as a shipped role, it gives the same
 * policy.
 */
bool config_entry(const struct config *config, const struct value *shipped_role,
		  const char *agent, struct value **entry, struct err *err);

/*
 * The policy of AGENT (NULL: default) for WORKSPACE (absolute), with normal paths.
 * SHIPPED_ROLE is the checked entry of the role with that name, or NULL. An agent that
 * neither source has is refused with the existing names; `default` always exists and by
 * itself writes nothing.
 */
bool config_policy(const struct config *config, const struct value *shipped_role,
		   const char *agent, const char *workspace, struct policy **policy,
		   struct err *err);

/* Any value below 0: use the provider's default. */
#define CONFIG_TEMPERATURE_ABSENT (-1.0)

/* The keys of a role; texts are NULL when absent. */
struct config_role {
	char *description, *model, *prompt;
	double temperature;
	uint64_t thinking_budget; /* tokens; 0: the provider's default */
	unsigned mode; /* enum policy_mode; its own, or that of the top level */
	/* name -> command, or an object with `command` or `run_tests`; NULL: none */
	struct value *checks;
	struct policy_names may_delegate_to; /* not given: every agent */
};

/* Fill ROLE with the role of AGENT from the same layers. */
bool config_role(const struct config *config, const struct value *shipped_role,
		 const char *agent, struct config_role *role, struct err *err);
void config_role_fini(struct config_role *role);

/* The members of a configuration, for config.c only. */

struct config {
	unsigned minimum_level;  /* index in the choices of its key */
	unsigned mode;           /* enum policy_mode */
	uint64_t undo_space;     /* 0: not set */
	char *resolver;          /* NULL: that of the machine */
	struct value *root;      /* the whole configuration, checked; NULL: nothing */
	struct value *agents;    /* name -> entry, checked; NULL: none */
	struct value *roles;     /* as `agents`, from the user's role files */
	struct value *overrides; /* as `agents`, from the person's flags */
	/*
	 * Keys without a row, for plugins: at the top level, and by agent those of its
	 * entry
	 */
	struct value *plugin_keys, *agent_plugin_keys; /* or NULL */
	char **known;                                  /* agents that exist elsewhere */
	size_t known_count;
};

/*
 * The one table of configuration keys. Its rows give: the check of config.json, of the
 * front matter of roles and of a person's flags; the place where each value is stored;
 * and the list of keys in docs/policy.md. A new key needs one row here and one member
 * where it is stored.
 */

/*
 * The struct that contains `offset`. KEY_KEPT: none; config_value returns the written
 * value.
 */
enum key_home { KEY_IN_CONFIG, KEY_IN_POLICY, KEY_IN_ROLE, KEY_KEPT };

/*
 * `home` and `offset` of a row say where its value is stored, and `initial` is the default
 * for the manual (NULL in `limits`: the number from policy_new), as `description` is. How
 * a kind is stored: ROW_BYTES and ROW_ADDRESS as char *, ROW_NAMES, ROW_WORDS, ROW_HOSTS
 * and ROW_VARIABLES as struct policy_names, ROW_PATH as struct policy_path, ROW_PATHS as
 * struct policy_paths, ROW_FLAG as bool, ROW_COUNT and ROW_SIZE as uint64_t, ROW_SECONDS
 * and ROW_NUMBER as double, ROW_CHOICE as unsigned (its index), ROW_OBJECT with its rows
 * from `offset` on, ROW_CHECKS as a struct value *, ROW_EITHER as struct commands *,
 * ROW_SECRETS as struct policy_secrets. This table does not store the other kinds.
 */

/* Tables end with {0}. */
extern const struct row keys_config[]; /* top level of config.json */
extern const struct row keys_agent[];  /* an entry of `agents`; front matter of a role */

/*
 * Append the list of keys as Markdown tables, the generated part of docs/policy.md.
 * False when OUT is full.
 */
bool config_keys_describe(struct buf *out);

/*
 * Other names of the shipped roles, for teams that come from the agents after which
 * these roles were modelled. When somebody defines an agent with such a name, the name
 * means that agent (config_role_name).
 */

struct role_name {
	const char *other; /* "VajbCoder" */
	const char *role;  /* "coder" */
};

/* Ends with {0}. */
extern const struct role_name role_names[];
