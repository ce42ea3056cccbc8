/*
 * config_file: the files that decide what agents may do: the person's configuration and
 * rules.json (policy/rules.h), which stands beside it, a policy in a file of its own, and the
 * ceiling of this machine. A file of the person's that another user owns or may write is
 * refused: who can write it decides. A file of root is fine.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "policy/config.h"
#include "policy/policy.h"
#include "policy/rules.h"

#include <stdbool.h>

/*
 * Read the ceiling of this machine (policy/ceiling.h), which binds all sessions that this
 * process makes. False: it cannot be read or is not root's, and no verb may run.
 */
bool config_file_take_ceiling(struct err *err);

/*
 * Read PATH. NULL: read glovebox/config.json in the XDG config directory; when that file
 * is missing, CONFIG is empty. A PATH that is missing is an error.
 */
bool config_file_load(const char *path, struct config **config, struct err *err);

/*
 * Read one policy (config_parse_policy) from PATH. The same rules of owner and mode hold,
 * because a policy decides what a program may do.
 */
bool config_file_load_policy(const char *path, struct value **entry, struct err *err);

/* Read the whole of PATH into TEXT. The same rules of owner and mode hold. */
bool config_file_read(const char *path, struct buf *text, struct err *err);

/*
 * The value of the variable NAME of the environment. NULL: it is not set, or empty; so is
 * a NULL NAME.
 */
const char *config_file_variable(const char *name);

/*
 * Append the path of NAME in the folder of the person's configuration to PATH: of
 * "config.json", the configuration itself, or of another file or folder. False: there is
 * no home directory.
 */
bool config_file_beside(const char *name, struct buf *path);

/* Read the rules. Without the file, and without a home, there are none. Call rules_fini. */
bool config_file_rules_read(struct rules *rules, struct err *err);

/*
 * Change the file: CHANGE changes RULES as the file has them now, while no other process can
 * write it. False (nothing is written): CHANGE has refused, or the file cannot be written.
 */
bool config_file_rules_change(bool (*change)(void *context, struct rules *rules,
					     struct err *err),
			      void *context, struct err *err);

/* Add a rule of today. */
bool config_file_rules_keep(const char *agent, const char *folder, enum rule_kind kind,
			    const char *rule, struct err *err);

/*
 * Add the rules for AGENT in FOLDER to POLICY. A host that the ceiling forbids or that hands
 * over the machine, and a folder that is gone, are left out.
 */
bool config_file_rules_apply(struct policy *policy, const char *agent, const char *folder,
			     struct err *err);
