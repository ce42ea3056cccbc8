/*
 * setup: makes an open session from the command line: configuration, the agent's role and
 * rights, workspace. Every verb with hands uses it.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "front/plugins.h"
#include "front/servers.h"
#include "front/verb.h"
#include "policy/config.h"
#include "session/session.h"

#include <stdbool.h>

struct interrupt;
struct orchestra;

/* Settings of the command line besides -C, --config and --agent. */
struct setup_flags {
	const char *workspace;     /* this folder instead of -C's; or NULL */
	const char *policy_file;   /* one policy instead of an agent's; or NULL */
	const char *agent;         /* this one, whatever --agent says; or NULL */
	const struct value *entry; /* keys of a policy; `read` and `env` are additions */
	/* load these plugins; NULL: those of the configuration */
	const struct front_plugins_wish *plugins;
	bool quiet_plugins; /* print nothing about plugins that are left out */
	bool explain;       /* note where each key comes from (setup.origins) */
	bool shipped_only;  /* ignore the user's role files */
};

struct setup {
	char *workspace;       /* real, absolute */
	char *workspace_name;  /* as the person named it: may be relative, or a link */
	char *agent;           /* its name, as the person gave it */
	char *role_name;       /* the name of its entries: config_role_name */
	struct policy *policy; /* moved into the session by setup_session; NULL then */
	/*
	 * The rights of the user's default, which bound a role of the workspace. NULL:
	 * the role is not of the workspace
	 */
	struct policy *bounds;
	struct value *asked; /* rights that --ask names, for the whole run; NULL: none */
	struct config_role role;
	double wall_s; /* limits.wall_s when it was set; else 0 */
	unsigned minimum_level;
	bool level_is_asked;  /* --minimum-level was given, and beats the configuration */
	char *resolver;       /* of the configuration; NULL: the machine's own */
	struct value *agents; /* all agents: name -> the agent's own model, or null */
	struct value *models; /* of the configuration, for the catalogue; NULL: nothing */
	/*
	 * explain: where keys come from: key ("write", "limits.memory") -> words; an
	 * absent key has its default
	 */
	struct value *origins;
	char *config;      /* where the configuration is or would be read from, or NULL */
	bool config_given; /* by --config */
	/* The rights that bound this setup: a list of {agent, entry} (config_entry). */
	struct value *entries;
	const struct tool **own_tools; /* the first ones of `tools` */
	char *policy_file;             /* of --policy, or NULL */
	const struct value *said;      /* the entry of the flags, which own it */
	struct front_plugins plugins;
	struct front_servers servers;
	const struct tool *const *tools; /* built-in and plugins'; the setup keeps them */
	struct orchestra *orchestra;     /* runs the orchestra's tools; or NULL */
	const struct undo_aim *undoes;   /* the steps to undo; NULL: none */
	uint64_t undo_space;             /* of the configuration; 0: not set */
	char *undo_folder;      /* of all projects' undo stores; NULL: there is no home */
	struct event_sink sink; /* of a session of one call; its `event` may be NULL */
};

/*
 * Fill SETUP from the options workspace, config and agent, which the verb must have. Call
 * setup_fini in either case, but after the end of the session: SETUP keeps its tools.
 */
bool setup_init(struct setup *setup, const struct options *options, struct err *err);
/* setup_init with FLAGS, which override everything else. */
bool setup_init_with(struct setup *setup, const struct options *options,
		     const struct setup_flags *flags, struct err *err);

/*
 * Start the MCP servers of the configuration, if there are any: their tools join
 * setup->tools. For verbs that call or list tools, after setup_init. Sessions that are
 * opened afterwards use the loop of the servers.
 */
bool setup_serve(struct setup *setup, struct err *err);

/*
 * setup_serve for an agent whose tools and servers get no right beyond any of BOUNDS, a
 * list like setup.entries.
 */
bool setup_serve_within(struct setup *setup, const struct value *bounds, struct err *err);

/*
 * Add the hosts of --allow-host to those of the policy. For verbs with
 * OPTION_ROW_ALLOW_HOST. Call it after setup_init and before setup_serve, so that servers
 * may reach these hosts too.
 */
bool setup_allow_hosts(struct setup *setup, const struct options *options, struct err *err);

/*
 * Add the rights that --ask names to the policy's own `ask`. For verbs with
 * OPTION_ROW_ASK.
 */
bool setup_ask(struct setup *setup, const struct options *options, struct err *err);

/*
 * setup_init for the shipped default agent in FOLDER; the person's configuration is
 * ignored.
 */
bool setup_init_shipped(struct setup *setup, const char *folder, struct err *err);
void setup_fini(struct setup *setup);

/*
 * The level that a cell must reach: that of --minimum-level, else that of the
 * configuration.
 */
int setup_least_level(const struct setup *setup);

/*
 * The table of tools that exist now, with the present tools of servers, and with the
 * orchestra behind its own tools. The table of the last call is valid until the next
 * call.
 */
const struct tool *const *setup_tools(const struct setup *setup);

/* Does the agent have this tool? */
bool setup_has_tool(const struct setup *setup, const struct tool *tool);

/*
 * Open the session that OPTIONS describe; this function fills in workspace, policy and
 * tools. It refuses a cell below the configuration's minimum level. Returns an exit code;
 * complaints have been printed.
 */
int setup_session(struct setup *setup, struct session_options *options,
		  struct session **session);

/* setup_session, with the complaint in ERR as session_open gives it. */
bool setup_session_err(struct setup *setup, struct session_options *options,
		       struct session **session, struct err *err);

/*
 * setup_session for a verb of one call, which reads no key. The environment of this
 * process is wiped, and signals go to INTERRUPT once the session is open.
 */
int setup_session_once(struct setup *setup, struct interrupt *interrupt,
		       struct session **session);
/*
 * setup_session_once for a tool of the front: this process keeps its environment, and the
 * cell gets none of it.
 */
int setup_session_kept(struct setup *setup, struct interrupt *interrupt,
		       struct session **session);

/*
 * From here on no other process of this user may read the keys out of our memory, and no
 * core file holds them. Opening a session calls this function.
 */
void setup_hide_memory(void);

/*
 * The specification of the cell that a verb of one call would open, without opening it.
 * The caller has initialised SPEC, and calls shape_tidy and spec_fini for it in either
 * case.
 */
bool setup_shape(const struct setup *setup, struct cell_spec *spec, struct err *err);

/*
 * setup_session without a minimum level, with the complaint in ERR as session_open gives
 * it.
 */
bool setup_open_session(struct setup *setup, struct session_options *options,
			struct session **session, struct err *err);

/* Make a new folder for the front below TMPDIR (or /tmp), named after VERB. */
bool setup_temp_folder(const char *verb, struct buf *folder, struct err *err);
