/*
 * agents: agents as data, and where they lie. A role is a Markdown file with front
 * matter: the keys of an agent's entry in the configuration, and its name. Shipped roles
 * are part of the program: one file each in agents/, with a row in
 * tests/unit/front/agents_test.c and in docs/agents.md. The user's roles are files in
 * the folder of the configuration, under the same rules (setup.h); each of their keys
 * replaces that key of the shipped role of the same name. A worker reads the roles of a
 * workspace; such a role counts only under a name that no other role has, and only while
 * its content is the one that the user let in.
 *
 * This module finds the shipped role and the user's file; policy/config.c lays them,
 * the configuration and the options over each other, key by key. A role of the
 * workspace is read in a cell that only reads, let in by its hash, and cut to what the
 * user's default may do.
 */
#pragma once

#include "agent/tools/orchestra.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/value.h"
#include "extend/brought.h"
#include "front/setup.h"
#include "policy/config.h"
#include "policy/policy.h"

#include <stdbool.h>

struct orchestrate;

/*
 * TEXT of FILE ("agents/coder.md": its last part without ".md" must be the name) as a
 * checked entry without `name`, which the caller frees. ERR names the file, and the line
 * or the key that is wrong.
 */
bool agents_role_read(const char *file, struct str text, struct value **entry,
		      struct err *err);

/*
 * Some shipped roles have another name (policy/config.h). When the user or WORKSPACE
 * has a role of such a name, let in or not, the name means that role: tell CONFIG so.
 * Call it before agents_files_read.
 */
void agents_files_know_names(struct config *config, const char *workspace);

/*
 * Read the shipped role of AGENT into *SHIPPED (NULL: there is none; the caller frees it)
 * and the user's role of AGENT into CONFIG. Tell CONFIG the names of all shipped roles,
 * and those of the user's roles too when AGENT is unknown. SHIPPED_ONLY: look at no file
 * of the user.
 */
bool agents_files_read(const char *agent, bool shipped_only, struct config *config,
		       struct value **shipped, struct err *err);

/*
 * Is AGENT a shipped role, the default, or an agent of the configuration or of the user's
 * role files? Roles of a workspace do not count. Call it after agents_files_read.
 */
bool agents_files_know(const struct config *config, const struct value *shipped,
		       const char *agent);

/*
 * Does every agent exist that AGENT may delegate to: as an agent of the configuration, as
 * a role, or as a role of WORKSPACE, let in or not? Call it after agents_files_read.
 */
bool agents_files_check_delegates(struct config *config, const struct value *shipped,
				  const char *agent, const char *workspace,
				  struct err *err);
/*
 * Read the role of each agent outside the workspace, and check its delegates in the same
 * way.
 */
bool agents_files_check(struct config *config, const char *workspace, struct err *err);

/* Append the path of the user's role NAME to PATH. False: there is no home directory. */
bool agents_files_place(const char *name, struct buf *path);

/*
 * The names of all shipped roles, or of all the user's role files: sorted, NULL-ended.
 * The caller frees the list with agents_files_names_free.
 */
char **agents_files_shipped(void);
char **agents_files_users(void);
void agents_files_names_free(char **names);

/*
 * The roles that a workspace brings along (.glovebox/agents/NAME.md). A worker reads
 * them in a cell that can only read. A role counts only after the user let in exactly
 * its content, and then has only rights that the user's default agent has too.
 */

/* Give each role of LIST that is not valid its problem: nobody would learn of it before the role is used. */
void agents_workspace_mark(struct brought_list *list);

/*
 * Set *ENTRY to the checked entry of the role NAME, or to NULL when the workspace has no
 * such file. ERR: the role is not trusted or not valid, or could not be read.
 */
bool agents_workspace_load(const struct policy *bounds, const char *name,
			   int minimum_level, struct value **entry, struct err *err);

/*
 * The front's part of orchestration: the list of agents, and the parts of our setup that
 * the process of a delegate gets.
 */

struct orchestrate_options {
	struct setup *setup;         /* setup_session has not taken its policy yet */
	const struct value *request; /* the request that started us, or NULL */
	const char *model;           /* of this run; NULL: the embedded replay */
	bool alone;    /* there is no run (orchestra.h); the members below are not used */
	bool answered; /* questions of delegates get an answer */
	bool counts_answers; /* the person limits the answers of all agents together */
};

/*
 * Open the orchestra for an agent that has any of its tools that can work here: the tools
 * of SETUP then work. For all other agents *MADE is NULL.
 */
bool orchestrate_open(const struct orchestrate_options *options,
		      struct orchestrate **made, struct err *err);
/* Call it after the end of the session. NULL is fine. */
void orchestrate_close(struct orchestrate *orchestrate);

/*
 * Does an agent with POLICY only read? False where it may change files, run commands or delegate.
 */
bool agents_only_read(const struct setup *setup, const struct policy *policy);

/* Has an agent with POLICY only tools of the orchestra, delegate_agent among them? */
bool agents_only_delegate(const struct policy *policy);

/* PROMPT, with the list of agents when the agent may delegate; borrowed. */
const char *orchestrate_prompt(const struct orchestrate *orchestrate, const char *prompt);

void orchestrate_set_agent(struct orchestrate *orchestrate, struct agent *agent,
			   struct session *session, struct recorder *recorder);

/* Delegates that begin later work in MODE, or a stricter one. ORCHESTRATE NULL is fine. */
void orchestrate_set_mode(struct orchestrate *orchestrate, enum policy_mode mode);

/* The variables of this process, by name, for the request of a process of ours. */
struct value *orchestrate_environment(void);
/*
 * The request of a run in SETUP's workspace, filled from the environment and SETUP's
 * configuration. It has no agent, no task, and no members that come from a caller.
 */
struct value *orchestrate_request(const struct setup *setup, const char *model);
