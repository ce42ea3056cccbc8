/*
 * setup: configuration, role, workspace and policy, and the session made of them; see
 * setup.h.
 */
#include "front/setup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/roles.h"
#include "base/memory.h"
#include "front/config_file.h"
#include "front/embedded.h"
#include "front/environment.h"
#include "front/exit_code.h"
#include "front/interrupt.h"
#include "front/verb.h"
#include "tools/tools.h"

static const char roles_folder[] = "agents/";

/* The name in "agents/NAME.md", or an empty text. */
static struct str role_name(const struct embedded_file *file)
{
	struct str name = str_of(file->name);

	if (!str_starts(name, str_of(roles_folder)) || !str_ends(name, STR(".md")))
		return STR("");
	return str_part(name, strlen(roles_folder),
			name.size - strlen(roles_folder) - strlen(".md"));
}

/*
 * Tell CONFIG of all shipped roles, but read the wanted one only: the others cost every
 * start.
 */
static bool read_role(const char *agent, struct config *config, struct roles *roles,
		      struct err *err)
{
	for (const struct embedded_file *file = embedded_files; file->name != NULL; file++) {
		struct role_text text = {file->name, {file->data, file->size}};
		auto_free char *name = memory_copy_str(role_name(file));

		if (name[0] == '\0')
			continue;
		config_know_agent(config, name);
		if (strcmp(name, agent) == 0 && !roles_init(roles, &text, 1, err))
			return false;
	}
	return true;
}

/* CONFIG is complete; the agent's role, from all layers, and its policy. */
static bool choose_agent(struct setup *setup, struct config *config, struct err *err)
{
	struct roles roles = {0};
	const struct role *role;
	const struct value *shipped;
	bool sound;

	if (!read_role(setup->agent, config, &roles, err)) {
		roles_fini(&roles);
		return false;
	}
	role = roles_find(&roles, setup->agent);
	shipped = role != NULL ? role->entry : NULL;
	sound = config_policy(config, shipped, setup->agent, setup->workspace,
			      &setup->policy, err) &&
		config_role(config, shipped, setup->agent, &setup->role, err) &&
		session_check_tools(setup->policy, builtin_tools, err);
	setup->minimum_level = config_minimum_level(config);
	roles_fini(&roles);
	return sound;
}

static bool set_workspace(struct setup *setup, const char *folder, struct err *err)
{
	setup->workspace = realpath(folder, NULL);
	if (setup->workspace == NULL)
		return err_set(err, errno, "workspace %s: %s", folder, strerror(errno));
	return true;
}

bool setup_init(struct setup *setup, const struct options *options, struct err *err)
{
	auto_config struct config *config = NULL;
	const char *agent = options_text(options, "agent");
	const char *folder = options_text(options, "workspace");

	memset(setup, 0, sizeof(*setup));
	setup->agent = memory_copy(agent != NULL ? agent : POLICY_NAME_DEFAULT);
	return set_workspace(setup, folder != NULL ? folder : ".", err) &&
	       config_file_load(options_text(options, "config"), &config, err) &&
	       choose_agent(setup, config, err);
}

bool setup_init_shipped(struct setup *setup, const char *folder, struct err *err)
{
	auto_config struct config *config = config_new();

	memset(setup, 0, sizeof(*setup));
	setup->agent = memory_copy(POLICY_NAME_DEFAULT);
	return set_workspace(setup, folder, err) && choose_agent(setup, config, err);
}

void setup_fini(struct setup *setup)
{
	policy_free(setup->policy);
	config_role_fini(&setup->role);
	free(setup->workspace);
	free(setup->agent);
	memset(setup, 0, sizeof(*setup));
}

bool setup_has_tool(const struct setup *setup, const struct tool *tool)
{
	return policy_has_tool(setup->policy, tool->name);
}

void setup_hide_memory(void)
{
	/* The leak checker of sanitizer builds reads memory the same way: kept out too. */
#if defined(__SANITIZE_ADDRESS__)
	return;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
	return;
#endif
#endif
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static bool open_session(struct setup *setup, struct session_options *options,
			 struct session **session, struct err *err)
{
	options->workspace = setup->workspace;
	options->tools = builtin_tools;
	options->take_policy = setup->policy;
	setup->policy = NULL;
	if (!session_open(options, session, err))
		return false;
	/* Not earlier: a cell that is cloned out of this process needs its /proc files. */
	setup_hide_memory();
	return true;
}

int setup_session(struct setup *setup, struct session_options *options,
		  struct session **session)
{
	struct err err = {0};

	options->minimum_level =
		setup->minimum_level > 0 ? (int)setup->minimum_level : SESSION_ANY_LEVEL;
	if (open_session(setup, options, session, &err))
		return CODE_DONE;
	return verb_complain(err.code == ECHILD ? CODE_NO_CELL : CODE_FAILED, "%s",
			     err.text);
}

int setup_session_once(struct setup *setup, struct interrupt *interrupt,
		       struct session **session)
{
	struct session_options options = {
		.direct = true,
		.ready_workers = 1,
		.caller_environment = environment_wipe(&setup->policy->environment),
		.cancel_fd = interrupt_fd(interrupt),
	};
	struct err err = {0};
	int code = setup_session(setup, &options, session);

	if (code != CODE_DONE || interrupt_start(interrupt, &err))
		return code;
	session_close(*session);
	*session = NULL;
	return verb_complain(CODE_FAILED, "%s", err.text);
}

bool setup_open_session(struct setup *setup, struct session_options *options,
			struct session **session, struct err *err)
{
	options->minimum_level = SESSION_ANY_LEVEL;
	return open_session(setup, options, session, err);
}

bool setup_temp_folder(const char *verb, struct buf *folder, struct err *err)
{
	const char *parent = getenv("TMPDIR");

	if (parent == NULL || parent[0] != '/')
		parent = "/tmp";
	if (!buf_addf(folder, "%s/glovebox-%s-XXXXXX", parent, verb))
		return err_set(err, ENAMETOOLONG, "TMPDIR: the path is too long");
	return mkdtemp(folder->data) != NULL ||
	       err_set(err, errno, "%s: %s", folder->data, strerror(errno));
}
