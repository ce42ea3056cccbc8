/*
 * setup: makes an open session from the command line: configuration, the agent's role and
 * rights, workspace. Every verb with hands uses it.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "base/value.h"
#include "extend/notes.h"
#include "front/extensions.h"
#include "front/output/policy_words.h"
#include "front/verb.h"
#include "policy/config.h"
#include "policy/service/recorded.h"
#include "session/session.h"
#include "store/journal.h"
#include "tool/tool.h"
#include "view/below.h"

#include <stdbool.h>
#include <stddef.h>

struct based;
struct credential;
struct extension;
struct interrupt;
struct language;
struct orchestra;
struct recording;
struct shape_home;
struct shape_shown;
struct ssh_access;

/* Settings of the command line besides -C, --config and --agent. */
struct setup_flags {
	const char *workspace;   /* this folder instead of -C's; or NULL */
	const char *policy_file; /* one policy instead of an agent's; or NULL */
	/* this policy, which policy_file only names in sentences; NULL: read the file */
	const struct value *policy;
	const struct shape_home *home;   /* of the cell (session.h); or NULL */
	const struct shape_shown *shown; /* instead of what plugins show; or NULL */
	/* more files that no command may change or create; NULL-ended, or NULL */
	const char *const *protected_files;
	const char *wrapped; /* the profile that `wrap` runs; or NULL */
	/* hosts whose addresses may be opened in the person's browser; NULL-ended, or NULL */
	const char *const *opens;
	const char *agent; /* this one, whatever --agent says; or NULL */
	/* no right beyond those of this agent, if the configuration has its entry; or NULL */
	const char *within;
	const enum policy_mode *mode; /* this one, whatever --mode says; or NULL */
	const struct value *entry; /* keys of a policy; `read` and `env` are additions */
	/* load these plugins; NULL: those of the configuration */
	const struct front_plugins_wish *plugins;
	bool quiet_plugins; /* print nothing about plugins that are left out */
	/* credentials beside those of the policy, which must be there; NULL-ended, or NULL */
	const char *const *credentials;
	bool no_credentials; /* none, whatever the policy says */
	/* the verb only writes files of the workspace: its cell is on this machine's root */
	bool needs_no_base;
	bool explain;      /* note where each key comes from (setup.origins) */
	bool shipped_only; /* ignore the user's role files */
	bool serves;       /* start the configuration's MCP servers */
	/*
	 * A person waits, in a conversation that goes on: no server is waited for longer
	 * than 2 s, and the tools of a late one join later. Not where the policy names
	 * tools.
	 */
	bool hurries;
	/*
	 * The verb is about servers: it knows those of the workspace as well, and those
	 * that lack something (front_servers.lacking)
	 */
	bool knows_servers;
	bool answers;  /* a person answers what they ask, where there is a terminal */
	unsigned asks; /* what the caller answers in any case (enum remote_asks) */
	const struct value *servers; /* more of them (front_servers_read); or NULL */
	const struct interrupt *interrupt; /* a signal ends the wait for them; or NULL */
	/*
	 * records the sessions (front/audit/recording.h), borrowed; NULL: as the
	 * configuration says
	 */
	struct recording *recording;
};

struct model_level;
struct pollfd;

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
	/* of --thinking (setup_set_thinking); NULL: it was not given */
	const struct model_level *thinking;
	uint64_t role_thinking; /* the role's own thinking_budget */
	enum policy_mode mode;  /* that of the policy, once it was set (setup_set_mode) */
	double wall_s;          /* limits.wall_s when it was set; else 0 */
	struct verb_progress waiting; /* for a look that undo needs */
	bool exact;                   /* of session_options, for setup_session_once */
	unsigned minimum_level;
	bool level_is_asked; /* --minimum-level was given, and beats the configuration */
	char *resolver;      /* of the configuration; NULL: the machine's own */
	struct recorded recorded; /* of the configuration: what is recorded (docs/audit.md) */
	const char *verb;         /* the name of the verb, for records; or NULL */
	/* of the configuration, once a session wants it, or of the flags; or NULL */
	struct recording *recording;
	bool recording_is_lent;
	bool tells_heads; /* its own recording tells standard error the audit's heads */
	/*
	 * the names of the service's token and cell, and the address of the client, for records
	 * (recording.h); or NULL
	 */
	const char *token, *cell, *client;
	/* those of the policy whose key is there, and of the flags (cell/vault.h) */
	struct credential *credentials;
	size_t credential_count;
	struct value *agents; /* all agents: name -> the agent's own model, or null */
	struct value *models; /* of the configuration, for the catalogue; NULL: nothing */
	struct value *hooks;  /* of the configuration (extend/hooks.h); NULL: none */
	struct language *language; /* of its language servers (front/extend/language.h); or NULL */
	enum notes_use notes; /* by the configuration; delegates only read notes */
	/*
	 * explain: where keys come from: key ("write", "limits.memory") -> words; an
	 * absent key has its default
	 */
	struct value *origins;
	/* explain: key -> value, of keys that neither policy nor role holds */
	struct value *kept;
	char *config;      /* where the configuration is or would be read from, or NULL */
	bool config_given; /* by --config */
	/* The rights that bound this setup: a list of {agent, entry} (config_entry). */
	struct value *entries;
	const struct tool **own_tools; /* the first ones of `tools` */
	struct tool *search; /* of the configuration's `search`, one of own_tools; or NULL */
	bool searches_by_model; /* that is the model's (agent/tools/model_search.h) */
	char *policy_file;      /* of --policy, or NULL */
	bool policy_is_read;    /* policy_file is the name of a file */
	/* of the flags, which own them */
	const struct shape_home *home;
	const struct shape_shown *shown;
	const char *const *protected_files;
	const char *wrapped;
	const char *const *opens; /* of setup_flags */
	const struct value *said; /* the entry of the flags, which own it */
	struct front_plugins plugins;
	struct front_servers servers;
	const struct tool *const *tools; /* built-in and plugins'; the setup keeps them */
	struct extension *extension; /* skills and commands (front/extend/trusting.h); or NULL */
	struct orchestra *orchestra;   /* runs the orchestra's tools; or NULL */
	const struct undo_aim *undoes; /* the steps to undo; NULL: none */
	struct review *review; /* of --review; for its sessions (layered.h). NULL: none */
	/* the stores of images and snapshots (image/base.h); NULL: there is no home */
	char *images, *snapshots;
	struct based *based; /* of `cell_base`, once a session or shape wants it; or NULL */
	/* `cell_base` is that of a caller or a service, whose rights it was judged by */
	bool base_is_lent;
	bool prepares; /* the commands of a devcontainer may run first, which takes minutes */
	/* the person names what runs, as with exec: the agent's tools and mode say nothing about it */
	bool by_hand;
	double prepare_s; /* of these commands together; 0: an hour each */
	/* they end when one of these has its events, or its other end is gone; borrowed */
	const struct pollfd *ends;
	size_t end_count;
	struct below below; /* the layers over which its sessions work (view/below.h) */
	char *at; /* where its cells show the workspace as well (session.h); or NULL */
	bool fresh_workspace; /* the person has none: commands begin where the base says */
	bool tells_review;    /* the person is told where a new review lies (layered.h) */
	bool publishes;       /* its sessions publish the policy's ports */
	bool asks;            /* programs of its cells may ask a person (session.h) */
	bool keeps_rules; /* answers of `always` are kept for it (front/config_file.h) */
	struct ssh_access *ssh; /* of --ssh; or NULL */
	uint64_t undo_space;    /* of the configuration; 0: not set */
	char *undo_folder;      /* of all projects' undo stores; NULL: there is no home */
	/* of setup_keep_state: the caller's environment for the cell, or NULL, and its last word */
	const char **environment;
	char *state;
	char *marks_key;        /* the file of session_options; NULL: there is no home */
	struct event_sink sink; /* of a session of one call; its `event` may be NULL */
	struct interrupt *interrupt; /* of a session of one call; NULL before it */
};

/*
 * Fill SETUP from OPTIONS, which have workspace, config and agent, and from FLAGS (may be
 * NULL), which override everything else: configuration, role, rights, plugins, and the
 * limits, hosts and rights to ask for that the verb has options for (--allow-host, --ask,
 * --max-iterations, --budget-*). With flags.serves also the MCP servers (setup_serve).
 * Returns an exit code; complaints have been printed. Call setup_fini in either case, but
 * after the end of the session: SETUP keeps its tools.
 */
int setup_open(struct setup *setup, const struct options *options,
	       const struct setup_flags *flags);

/*
 * The first part of setup_open, without those options and servers, for a caller that says
 * ERR in its own words.
 */
bool setup_init(struct setup *setup, const struct options *options,
		const struct setup_flags *flags, struct err *err);

/*
 * Start the MCP servers of the configuration, if there are any: their tools join
 * setup->tools. For verbs that call or list tools, after setup_init. Sessions that are
 * opened afterwards use the loop of the servers.
 */
bool setup_serve(struct setup *setup, struct err *err);

/*
 * The agent of SETUP works in MODE, and its servers do, which have not been started. A verb that
 * has the option --mode does so in setup_open, in the mode of the option, else that of the
 * role and the configuration (setup.role).
 */
bool setup_set_mode(struct setup *setup, enum policy_mode mode, struct err *err);

/*
 * The base of SETUP's cells, and of the agents that work for its agent, is WORD (cell_base). In
 * setup_open, where the verb has the option --base and it was given.
 */
void setup_set_base(struct setup *setup, const char *word);
/*
 * SETUP's cells, and those of the agents that work for its agent, show the workspace at PATH as well;
 * NULL: nowhere. In setup_open, where the verb has the option --at and it was given.
 */
void setup_set_at(struct setup *setup, const char *path);
/*
 * SETUP's cell keeps its steps, its home and its caches in the folder STATE, in place of the
 * person's state: setup.environment is for its caller_environment.
 */
void setup_keep_state(struct setup *setup, const char *state);

/*
 * The model of SETUP is to think as LEVEL says, in place of the budget of the role. A verb
 * that has the option --thinking does so in setup_open. Holds for models that are opened
 * afterwards.
 */
void setup_set_thinking(struct setup *setup, const struct model_level *level);

/*
 * setup_serve for an agent whose tools and servers get no right beyond any of BOUNDS, a
 * list like setup.entries.
 */
bool setup_serve_within(struct setup *setup, const struct value *bounds, struct err *err);

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

/*
 * The first NULL ends the list of protected files, so a file that may be missing is not before
 * one that exists.
 */
enum { SETUP_PROTECTED_MAX = 67 };
/* Fill in OPTIONS what all sessions of SETUP share; FILES gets the protected files, borrowed. */
void setup_fill_options(const struct setup *setup, const char *files[SETUP_PROTECTED_MAX],
			struct session_options *options);

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
 * process is wiped, and signals go to setup.interrupt once the session is open.
 */
int setup_session_once(struct setup *setup, struct session **session);
/*
 * setup_session_once for a tool of the front: this process keeps its environment, and the
 * cell gets none of it.
 */
int setup_session_kept(struct setup *setup, struct session **session);

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
bool setup_shape(struct setup *setup, struct cell_spec *spec, struct err *err);

/*
 * setup_session without a minimum level, with the complaint in ERR as session_open gives
 * it.
 */
bool setup_open_session(struct setup *setup, struct session_options *options,
			struct session **session, struct err *err);

/* The options of the verbs that let an agent work. */

/*
 * RUN_OPTION_ROWS: of `run`, `chat` and `sessions resume`. RUN_OPTION_ROWS_MODEL and
 * RUN_OPTION_ROWS_AGENT: those of them that `acp` has as well. RUN_OPTION_ROW_RESUME: of `run` and `chat`, where the
 * session is an option.
 */
/* clang-format off */
#define RUN_OPTION_ROW_RESUME \
	{"resume", 'r', OPTION_TEXT, "ID", "go on with the session ID, or with the last one", \
	 NAMES_SESSIONS}
#define RUN_OPTION_ROWS_MODEL \
	{"model", 'm', OPTION_TEXT, "MODEL", "ask this model (default: $GLOVEBOX_MODEL)", \
	 NAMES_MODELS}, \
	{"thinking", 0, OPTION_TEXT, "LEVEL", \
	 "let the model think: low, medium or high (default: the agent's budget)", NAMES_THINKING}, \
	{"max-iterations", 0, OPTION_COUNT, "N", "stop after N answers of the model"}, \
	{"budget-money", 0, OPTION_AMOUNT, "N", "stop before N US dollars are spent"}, \
	{"budget-tokens", 0, OPTION_COUNT, "N", "stop after N tokens, in and out"}, \
	{"budget-seconds", 0, OPTION_SECONDS, "N", "stop after N seconds"}
#define RUN_OPTION_ROWS_AGENT \
	OPTION_ROW_CONFIG, \
	OPTION_ROW_AGENT, \
	OPTION_ROW_MODE, \
	OPTION_ROW_ALLOW_HOST, \
	OPTION_ROW_ASK
#define RUN_OPTION_ROWS \
	RUN_OPTION_ROWS_MODEL, \
	OPTION_ROW_WORKSPACE, \
	OPTION_ROW_BASE, \
	OPTION_ROW_AT, \
	RUN_OPTION_ROWS_AGENT, \
	OPTION_ROW_REVIEW, \
	OPTION_ROW_NO_REVIEW, \
	OPTION_ROW_LEVEL, \
	{"reader", 0, OPTION_FLAG, NULL, "whole lines and words alone, for a screen reader"}, \
	OPTION_ROW_HELP
/* clang-format on */

/*
 * Find the session NAME, which goes on. FILLED becomes OPTIONS, with folder, agent and
 * model of the session where OPTIONS do not name them. FOUND owns these texts. Call
 * journal_found_fini in either case.
 */
bool setup_resume(const struct options *options, const char *name, struct options *filled,
		  struct journal_found *found, struct err *err);

/* ERR.code of a credential that was named and has no key here; no system call of ours returns it. */
#define SETUP_NO_KEY EKEYREVOKED

/* The exit code for ERR, of setup_init or config_file_load: the same for every verb. */
int setup_code(const struct err *err);

/*
 * Is the key of CREDENTIAL there, for this process? SHOWN and ERR as source_look of
 * broker/source.h; CEILING_REFUSED: the ceiling of this machine forbids it or its hosts.
 */
bool setup_credential_is_there(const struct credential *credential, struct buf *shown,
			       struct err *err);

/* Call NAME with each model that the configuration and the agents of SETUP name. */
void setup_each_model(const struct setup *setup,
		      void (*name)(void *context, const char *name), void *context);

/* The tools of the program itself: the built-in ones and the orchestra's. */

/* NULL-ended; the caller frees the list. */
const struct tool **setup_tools_new(void);
