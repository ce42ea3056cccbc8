/*
 * agent_workspace: the roles that a workspace brings along (.glovebox/agents/NAME.md). A worker
 * reads them, in a cell that only reads; none counts before the user let in exactly its
 * content, and then it has no right that the user's own default has not.
 */
#pragma once
#include "base/err.h"
#include "base/hash.h"
#include "base/value.h"
#include "policy/policy.h"

#include <stdbool.h>

/* Is there such a folder? Nothing of it is read. */
bool agent_workspace_has_any(const char *workspace);
/* Is there such a file in it, for the role NAME? */
bool agent_workspace_has(const char *workspace, const char *name);

/*
 * All of them, or the one called NAME: a list of objects with `file` ("NAME.md") and `text`, or
 * `problem`. Read as BOUNDS, the user's default, may read. The caller frees it.
 */
bool agent_workspace_read(const struct policy *bounds, const char *name,
			  int minimum_level, struct value **list, struct err *err);

enum agent_trust { AGENT_NOT_TRUSTED, AGENT_CHANGED, AGENT_TRUSTED };

/* Is TEXT what the user let in as the role NAME of WORKSPACE? HASH is filled in. */
bool agent_workspace_ask(const char *workspace, const char *name, struct str text,
			 enum agent_trust *trust, char hash[HASH_HEX + 1], struct err *err);
/* From now on it is. */
bool agent_workspace_trust(const char *workspace, const char *name, struct str text,
			   struct err *err);

/* Is ROW of that list a sound role? ENTRY is its checked entry, which the caller frees. */
bool agent_workspace_check(const struct value *row, struct value **entry, struct err *err);

/*
 * The checked entry of the role NAME when it is there and trusted. *ENTRY is NULL when there is
 * no such file; ERR: it is not trusted, or no sound role.
 */
bool agent_workspace_load(const struct policy *bounds, const char *name,
			  int minimum_level, struct value **entry, struct err *err);
