/* agent_workspace: reads roles in a cell, and compares them with the record of trust. */
#include "front/agent_workspace.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "agent/roles.h"
#include "base/buf.h"
#include "plugins/source.h"
#include "policy/config.h"
#include "session/session.h"
#include "store/database.h"
#include "tools/tools.h"

#define WORKSPACE_FOLDER ".glovebox/agents"

/* A policy without tools that may read the part of the workspace that BOUNDS may read. */
static struct policy *reading_policy(const struct policy *bounds, struct err *err)
{
	auto_policy struct policy *all = policy_new(bounds->name, bounds->workspace);

	all->tools.given = true;
	if (!policy_paths_normal(all, bounds->workspace, err))
		return NULL;
	return policy_intersect(all, bounds);
}

static bool is_there(const char *workspace, const char *before, const char *name,
		     const char *after)
{
	struct buf path;
	bool there;

	buf_init(&path, PATH_MAX);
	there = buf_addf(&path, "%s/" WORKSPACE_FOLDER "%s%s%s", workspace, before, name,
			 after) &&
		access(path.data, F_OK) == 0;
	buf_fini(&path);
	return there;
}

bool agent_workspace_has_any(const char *workspace)
{
	return is_there(workspace, "", "", "");
}

bool agent_workspace_has(const char *workspace, const char *name)
{
	return config_check_name(name, NULL) && is_there(workspace, "/", name, ".md");
}

bool agent_workspace_read(const struct policy *bounds, const char *name,
			  int minimum_level, struct value **list, struct err *err)
{
	struct session_options options = {
		.workspace = bounds->workspace,
		.take_policy = reading_policy(bounds, err),
		.tools = builtin_tools,
		.minimum_level = minimum_level,
		.cancel_fd = -1,
	};
	auto_value struct value *arguments = value_new_object();
	const struct request request = {.tool = "read_roles",
					.arguments = arguments,
					.by_front = true,
					.quiet = true};
	struct session *session = NULL;
	struct tool_result result;
	bool fine;

	if (options.take_policy == NULL)
		return false;
	if (name != NULL)
		value_set_text(arguments, "name", name);
	if (!session_open(&options, &session, err))
		return err_while(err, "the cell that roles are read in");
	tool_result_init(&result);
	session_call(session, &request, &result);
	fine = result.status == RESULT_DONE;
	if (fine)
		*list = value_ref(value_member(result.details, "roles"));
	else
		(void)err_set(err, EIO, "reading %s: %s", WORKSPACE_FOLDER,
			      result.text.data);
	tool_result_fini(&result);
	session_close(session);
	return fine;
}

/*
 * FOLDER: where the record of trust lies. SOURCE: the key of the role NAME in the record.
 */
static bool trust_places(const char *workspace, const char *name, struct buf *folder,
			 struct buf *source, struct err *err)
{
	if (!state_path("agents", folder, err))
		return err_while(err, "what was let in");
	return buf_addf(source, "%s/" WORKSPACE_FOLDER "/%s.md", workspace, name) ||
	       err_set(err, ENAMETOOLONG, "%s: the path is too long", workspace);
}

bool agent_workspace_ask(const char *workspace, const char *name, struct str text,
			 enum agent_trust *trust, char hash[HASH_HEX + 1], struct err *err)
{
	struct plugin_trusted trusted = {0};
	struct buf folder, source;
	bool fine;

	hash_text(text, hash);
	buf_init(&folder, PATH_MAX);
	buf_init(&source, 2 * PATH_MAX);
	fine = trust_places(workspace, name, &folder, &source, err) &&
	       plugin_trust_find(folder.data, source.data, &trusted, err);
	*trust = trusted.hash[0] == '\0'           ? AGENT_NOT_TRUSTED
		 : strcmp(trusted.hash, hash) == 0 ? AGENT_TRUSTED
						   : AGENT_CHANGED;
	buf_fini(&source);
	buf_fini(&folder);
	return fine;
}

bool agent_workspace_trust(const char *workspace, const char *name, struct str text,
			   struct err *err)
{
	struct plugin_trusted trusted = {0};
	struct buf folder, source;
	bool fine;

	hash_text(text, trusted.hash);
	buf_init(&folder, PATH_MAX);
	buf_init(&source, 2 * PATH_MAX);
	fine = trust_places(workspace, name, &folder, &source, err) &&
	       plugin_trust_record(folder.data, source.data, &trusted, err);
	buf_fini(&source);
	buf_fini(&folder);
	return fine;
}

bool agent_workspace_check(const struct value *row, struct value **entry, struct err *err)
{
	const char *file = value_text(value_member(row, "file"));
	const char *problem = value_text(value_member(row, "problem"));
	struct role_text role = {.text = value_str(value_member(row, "text"))};
	struct roles roles;
	struct buf name;
	bool fine;

	if (problem != NULL)
		return err_set(err, EINVAL, WORKSPACE_FOLDER "/%s: %s", file, problem);
	buf_init(&name, PATH_MAX);
	(void)buf_addf(&name, WORKSPACE_FOLDER "/%s", file);
	role.file = name.data;
	fine = roles_init(&roles, &role, 1, err);
	if (fine) {
		*entry = value_ref(roles.items[0].entry);
		roles_fini(&roles);
	}
	buf_fini(&name);
	return fine;
}

static bool is_trusted(const struct policy *bounds, const char *name,
		       const struct value *row, struct err *err)
{
	enum agent_trust trust;
	char hash[HASH_HEX + 1];

	if (!agent_workspace_ask(bounds->workspace, name,
				 value_str(value_member(row, "text")), &trust, hash, err))
		return false;
	return trust == AGENT_TRUSTED ||
	       err_set(err, EPERM,
		       WORKSPACE_FOLDER
		       "/%s.md is a role of this workspace that %s; look at it, and let it in "
		       "with: glovebox agents trust %s",
		       name,
		       trust == AGENT_CHANGED ? "has changed since you let it in"
					      : "you have not let in",
		       name);
}

bool agent_workspace_load(const struct policy *bounds, const char *name,
			  int minimum_level, struct value **entry, struct err *err)
{
	auto_value struct value *list = NULL;

	*entry = NULL;
	if (!config_check_name(name, err) ||
	    !agent_workspace_read(bounds, name, minimum_level, &list, err))
		return false;
	return value_count(list) == 0 ||
	       (is_trusted(bounds, name, value_item(list, 0), err) &&
		agent_workspace_check(value_item(list, 0), entry, err));
}
