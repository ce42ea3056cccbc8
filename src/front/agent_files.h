/*
 * agent_files: where roles lie. Shipped ones are part of the program; the user's are files of
 * the configuration's folder, held to its rules (config_file.h), and lie over the shipped one
 * of their name key by key; those of a workspace are read by a worker, for names that nobody
 * else has, and count only while they are what the user let in.
 */
#pragma once
#include "agent/roles.h"
#include "base/buf.h"
#include "base/err.h"
#include "policy/config.h"
#include "policy/policy.h"

#include <stdbool.h>

/*
 * Tell CONFIG which other names of shipped roles (policy/role_names.h) are names of roles that
 * the user or WORKSPACE has, let in or not: these are theirs. Before agent_files_read.
 */
void agent_files_know_names(struct config *config, const char *workspace);

/*
 * Tell CONFIG of all roles that are shipped or the user's, and read the two of AGENT: *SHIPPED
 * (NULL: there is none; the caller frees it), and the user's into CONFIG. SHIPPED_ONLY: the
 * user's are left alone.
 */
bool agent_files_read(const char *agent, bool shipped_only, struct config *config,
		      struct value **shipped, struct err *err);

/* Has anybody but the workspace an agent of this name? After agent_files_read. */
bool agent_files_know(const struct config *config, const struct value *shipped,
		      const char *agent);

/*
 * Is everybody there whom AGENT may delegate to: an agent of the configuration, a role, or one of
 * WORKSPACE, let in or not? After agent_files_read.
 */
bool agent_files_check_delegates(struct config *config, const struct value *shipped,
				 const char *agent, const char *workspace, struct err *err);
/* The same of each agent that is not the workspace's; its role is read, too. */
bool agent_files_check(struct config *config, const char *workspace, struct err *err);

/* Append the file of the user's role NAME; false: there is no home. */
bool agent_files_place(const char *name, struct buf *path);

/*
 * The names of all roles there are, sorted, NULL-ended: shipped, or the user's files. The
 * caller frees each and the list.
 */
char **agent_files_shipped(void);
char **agent_files_users(void);
void agent_files_names_free(char **names);
