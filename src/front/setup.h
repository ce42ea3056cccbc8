/*
 * setup: from the command line to an open session: the configuration, the agent's role
 * and rights, the workspace. Every verb that has hands goes this way.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "front/options.h"
#include "front/plugins.h"
#include "front/servers.h"
#include "policy/config.h"
#include "session/session.h"

#include <stdbool.h>

struct interrupt;
struct orchestra;

/* What a person said on the command line beside -C, --config and --agent. */
struct setup_flags {
	const char *workspace;   /* this folder instead of -C's; or NULL */
	const char *policy_file; /* one policy instead of an agent's; or NULL */
	const char *agent;       /* this one, whatever --agent says; or NULL */
	const struct value *entry; /* keys of a policy; `read` and `env` are added to, others replaced */
	/* load these plugins instead of the configuration's; NULL: those */
	const struct front_plugins_wish *plugins;
	bool quiet_plugins; /* say nothing of those that are left out */
	bool explain;       /* find out who said what (setup.origins) */
	bool shipped_only;  /* whatever the user's role files say */
};

struct setup {
	char *workspace;       /* real, absolute */
	char *workspace_name;  /* as it was named: may be relative, or a link */
	char *agent;           /* its name, as it was named */
	char *role_name;       /* the name its entries stand under: config_role_name */
	struct policy *policy; /* moved into the session by setup_session; NULL then */
	/* What a role of the workspace was held to: the user's default. NULL: it is none */
	struct policy *bounds;
	struct value *asked; /* what the person named by --ask, for the whole run; NULL: nothing */
	struct config_role role;
	double wall_s; /* limits.wall_s, when somebody said it; 0: nobody */
	unsigned minimum_level;
	bool level_is_asked; /* by --minimum-level, which goes before the configuration's */
	char *resolver;      /* of the configuration; NULL: the machine's own */
	struct value *agents; /* all there are: name -> the model of its own, or null */
	struct value *models; /* of the configuration, for the catalogue; NULL: nothing */
	/* explain: who said it: key ("write", "limits.memory") -> words; what is absent is default */
	struct value *origins;
	char *config;      /* where the configuration is or would be read from, or NULL */
	bool config_given; /* by --config */
	/*
	 * What its rights were made of: a list of {agent, entry} (config_entry), each of which it
	 * was held to.
	 */
	struct value *entries;
	const struct tool **own_tools; /* `tools` begins with them */
	char *policy_file;             /* of --policy, or NULL */
	const struct value *said;      /* the flags' entry, which is theirs */
	struct front_plugins plugins;
	struct front_servers servers;
	const struct tool *const *tools; /* built-in and plugins'; as long as the setup */
	struct orchestra *orchestra; /* behind its tools among them (setup_tools); NULL: nobody */
	const struct undo_aim *undoes; /* what the session is opened to undo; NULL: nothing */
	uint64_t undo_space;           /* of the configuration; 0: nobody said it */
	char *undo_folder;      /* of all projects' undo stores; NULL: there is no home */
	struct event_sink sink; /* of a session of one call; event NULL: nobody listens */
};

/*
 * From the options workspace, config and agent, which the verb must have. setup_fini in
 * either case, but after the session's end: its tools are kept here.
 */
bool setup_init(struct setup *setup, const struct options *options, struct err *err);
/* The same with FLAGS, which beat everything else. */
bool setup_init_with(struct setup *setup, const struct options *options,
		     const struct setup_flags *flags, struct err *err);

/*
 * Start the MCP servers of the configuration, if there are any: their tools join setup->tools.
 * For verbs that call or list tools, after setup_init. A session that is opened then uses their
 * loop.
 */
bool setup_serve(struct setup *setup, struct err *err);

/*
 * setup_serve for one that has no right beyond any of BOUNDS, a list as setup.entries: neither
 * its tools nor its servers.
 */
bool setup_serve_within(struct setup *setup, const struct value *bounds, struct err *err);

/*
 * The hosts of --allow-host, beside those that the policy lists. For verbs with
 * OPTION_ROW_ALLOW_HOST, after setup_init and before setup_serve: servers reach them too.
 */
bool setup_allow_hosts(struct setup *setup, const struct options *options, struct err *err);

/* What --ask names, beside the policy's own `ask`. For verbs with OPTION_ROW_ASK. */
bool setup_ask(struct setup *setup, const struct options *options, struct err *err);

/*
 * The same for the default agent in FOLDER as it is shipped, whatever the person's
 * configuration says.
 */
bool setup_init_shipped(struct setup *setup, const char *folder, struct err *err);
void setup_fini(struct setup *setup);

/* The level that a cell must reach: of --minimum-level, else the configuration's. */
int setup_least_level(const struct setup *setup);

/*
 * The tools there are now, with those of servers that have come or gone since, and with whoever is
 * behind those of the front. The table there was before is valid until the next call.
 */
const struct tool *const *setup_tools(const struct setup *setup);

/* Does the agent have this tool? */
bool setup_has_tool(const struct setup *setup, const struct tool *tool);

/*
 * Open the session that OPTIONS describe; workspace, policy and tools are filled in
 * here. Refuses a cell below the configuration's minimum level. An exit code;
 * complaints have been printed.
 */
int setup_session(struct setup *setup, struct session_options *options,
		  struct session **session);

/* The same, its complaint in ERR as session_open's. */
bool setup_session_err(struct setup *setup, struct session_options *options,
		       struct session **session, struct err *err);

/*
 * setup_session for a verb of one call, which reads no key: this process's environment is
 * wiped, and signals go to INTERRUPT once the session is open.
 */
int setup_session_once(struct setup *setup, struct interrupt *interrupt,
		       struct session **session);
/* The same for a tool of the front: this process keeps its environment, and the cell has none. */
int setup_session_kept(struct setup *setup, struct interrupt *interrupt,
		       struct session **session);

/*
 * From here on no other process of this user may read the keys out of our memory, and no
 * core file holds them. Opening a session does so by itself.
 */
void setup_hide_memory(void);

/*
 * The specification of the cell that a verb of one call would open, without opening it.
 * Afterwards, in either case: shape_tidy and spec_fini SPEC, which was initialised.
 */
bool setup_shape(const struct setup *setup, struct cell_spec *spec, struct err *err);

/* setup_session without a minimum; ERR as session_open's. */
bool setup_open_session(struct setup *setup, struct session_options *options,
			struct session **session, struct err *err);

/* A new folder of the front's own below TMPDIR (or /tmp), named after VERB. */
bool setup_temp_folder(const char *verb, struct buf *folder, struct err *err);
