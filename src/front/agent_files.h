/*
 * agent_files: where roles lie. Shipped roles are part of the program. The user's roles
 * are files in the folder of the configuration, under the same rules (config_file.h);
 * each of their keys replaces that key of the shipped role of the same name. A worker
 * reads the roles of a workspace (agent_workspace.h); such a role counts only under a
 * name that no other role has, and only while its content is the one that the user let
 * in.
 */
#pragma once
#include "agent/roles.h"
#include "base/buf.h"
#include "base/err.h"
#include "policy/config.h"
#include "policy/policy.h"

#include <stdbool.h>

/*
 * Some shipped roles have another name (policy/role_names.h). When the user or WORKSPACE
 * has a role of such a name, let in or not, the name means that role: tell CONFIG so.
 * Call it before agent_files_read.
 */
void agent_files_know_names(struct config *config, const char *workspace);

/*
 * Read the shipped role of AGENT into *SHIPPED (NULL: there is none; the caller frees it)
 * and the user's role of AGENT into CONFIG. Tell CONFIG the names of all shipped roles,
 * and those of the user's roles too when AGENT is unknown. SHIPPED_ONLY: look at no file
 * of the user.
 */
bool agent_files_read(const char *agent, bool shipped_only, struct config *config,
		      struct value **shipped, struct err *err);

/*
 * Is AGENT a shipped role, the default, or an agent of the configuration or of the user's
 * role files? Roles of a workspace do not count. Call it after agent_files_read.
 */
bool agent_files_know(const struct config *config, const struct value *shipped,
		      const char *agent);

/*
 * Does every agent exist that AGENT may delegate to: as an agent of the configuration, as
 * a role, or as a role of WORKSPACE, let in or not? Call it after agent_files_read.
 */
bool agent_files_check_delegates(struct config *config, const struct value *shipped,
				 const char *agent, const char *workspace, struct err *err);
/*
 * Read the role of each agent outside the workspace, and check its delegates in the same
 * way.
 */
bool agent_files_check(struct config *config, const char *workspace, struct err *err);

/* Append the path of the user's role NAME to PATH. False: there is no home directory. */
bool agent_files_place(const char *name, struct buf *path);

/*
 * The names of all shipped roles, or of all the user's role files: sorted, NULL-ended.
 * The caller frees the list with agent_files_names_free.
 */
char **agent_files_shipped(void);
char **agent_files_users(void);
void agent_files_names_free(char **names);
