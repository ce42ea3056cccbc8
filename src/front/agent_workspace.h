/*
 * agent_workspace: the roles that a workspace brings along (.glovebox/agents/NAME.md). A
 * worker reads them in a cell that can only read. A role counts only after the user let
 * in exactly its content, and then has only rights that the user's default agent has too.
 */
#pragma once
#include "base/err.h"
#include "base/hash.h"
#include "base/value.h"
#include "policy/policy.h"

#include <stdbool.h>

/* Does WORKSPACE have a folder of roles? Nothing is read from the folder. */
bool agent_workspace_has_any(const char *workspace);
/* Is there a file for the role NAME in the folder of roles? */
bool agent_workspace_has(const char *workspace, const char *name);

/*
 * Read all roles, or only the one called NAME, with the rights to read of BOUNDS, the
 * user's default. LIST: objects with `file` ("NAME.md") and either `text` or `problem`.
 * The caller frees LIST.
 */
bool agent_workspace_read(const struct policy *bounds, const char *name,
			  int minimum_level, struct value **list, struct err *err);

enum agent_trust { AGENT_NOT_TRUSTED, AGENT_CHANGED, AGENT_TRUSTED };

/*
 * Set TRUST: did the user let in TEXT, or another text, as the role NAME of WORKSPACE?
 * HASH becomes the hash of TEXT. False: the record of trust cannot be read.
 */
bool agent_workspace_ask(const char *workspace, const char *name, struct str text,
			 enum agent_trust *trust, char hash[HASH_HEX + 1], struct err *err);
/* Record that the user lets in TEXT as the role NAME of WORKSPACE. */
bool agent_workspace_trust(const char *workspace, const char *name, struct str text,
			   struct err *err);

/*
 * Is ROW, an item of the list of agent_workspace_read, a valid role? ENTRY becomes its
 * checked entry, which the caller frees.
 */
bool agent_workspace_check(const struct value *row, struct value **entry, struct err *err);

/*
 * Set *ENTRY to the checked entry of the role NAME, or to NULL when the workspace has no
 * such file. ERR: the role is not trusted or not valid, or could not be read.
 */
bool agent_workspace_load(const struct policy *bounds, const char *name,
			  int minimum_level, struct value **entry, struct err *err);
