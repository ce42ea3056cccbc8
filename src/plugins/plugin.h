/*
 * plugin: scripts of the user that are tools. A source that a configuration names is
 * resolved, hashed and copied; its scripts describe themselves in a cell, and each
 * becomes a `struct tool` like any other. The caller that loads gives the cell to look
 * from and a function to fetch, which this layer may not know.
 *
 * A source is let in by its hash and copied into the user's state. Every script is
 * asked for its `schema` in a cell that only reads, and becomes a tool beside the
 * built-in ones. The built-in tool `plugin` (run.c) carries it out: it makes words of
 * the arguments, starts the script, which sees its copy at its own path, and reads its
 * descriptor 3. A plugin's `error` runs in the worker of its `run`. Below L3 there is
 * no view, so a script runs from the place of its copy.
 *
 * `glovebox plugin trust` lets a changed plugin in again, because no front that loads
 * plugins can ask a person yet.
 */
#pragma once

#include "base/err.h"
#include "base/hash.h"
#include "base/value.h"
#include "plugins/describe.h"
#include "plugins/source.h"
#include "policy/config.h"
#include "tool/tool.h"
#include "view/shape.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The cell that scripts are looked at from, made by the first look. It reads what the
 * agent may, and does nothing else. Front and library look through it alike.
 */

struct plugin_cell {
	/* borrowed */
	const char *workspace;           /* real */
	const char *program;             /* that becomes a cell; NULL: this one */
	const struct tool *const *tools; /* the built-in ones */
	int minimum_level;               /* as session_options have it */
	/* owned */
	struct policy *take_policy; /* moved by the first look */
	struct session *session;    /* or NULL: nothing was looked at yet */
};

/*
 * One look at a script: the made tool (session.h), its arguments, and the files shown for
 * it.
 */
struct plugin_look {
	const struct tool *tool;
	const struct value *arguments;
	const struct shape_shown *shown;
	const int *fds;   /* three for the front's own exec; or NULL */
	double timeout_s; /* 0: the tool's own */
};

/*
 * Make POLICY, the rights of that cell: those of AGENT, but only to read; else as
 * config_policy. CONFIG must not be asked about AGENT afterwards, because its entry is
 * overridden.
 */
bool plugin_cell_policy(struct config *config, const struct value *shipped,
			const char *agent, const char *workspace, struct policy **policy,
			struct err *err);

/*
 * One look; the first makes the cell, and false with ERR when it cannot. RESULT, which the caller
 * has initialised and frees, becomes what the tool said.
 */
bool plugin_cell_look(struct plugin_cell *cell, const struct plugin_look *look,
		      struct tool_result *result, struct err *err);
/* Nothing is looked at any more; also of one that was never looked from. */
void plugin_cell_end(struct plugin_cell *cell);

/* One source: a folder or a single file, copied as a whole. */
struct plugin_package {
	char *source; /* as people know it: a path, or URL#ref */
	char *place;  /* where the view shows it: its own absolute path */
	char *copy;   /* what is shown there */
	char hash[HASH_HEX + 1];
	char commit[HASH_HEX + 1]; /* of git; "" else */
	bool is_file;
	bool is_toolbox; /* its executables are tools, listed as manifest.files */
	struct plugin_manifest manifest;
};

/* One script. */
struct plugin {
	const struct plugin_package *package;
	char *file, *copy; /* the script: in the view, and on the host */
	struct plugin_schema schema;
	struct tool tool;
	struct value *carried;
};

struct plugins {
	struct plugin_package **packages;
	size_t package_count;
	struct plugin **items; /* in the configuration's order; what was left out is not there */
	size_t count;
	struct shape_shown *shown; /* ends with {0} */
	const struct tool **tools; /* the built-in ones, then these; NULL-ended */
	struct value *problems; /* objects {source, text}: what was left out, and why */
	struct value *secrets;  /* texts of `plugin_config`, expanded */
};

struct plugin_host {
	/* of the configuration; each may be NULL */
	const struct config *whole; /* where values for config_keys are */
	const struct value *sources, *policy, *enabled, *disabled;
	const char *agent;     /* whose entry goes before */
	const char *cache_dir; /* as written; NULL: below the state */
	struct plugin_places places;
	const char *state; /* the folder of the record; NULL: the user has none */
	struct plugin_cell *cell; /* that they are looked at from; its tools come before theirs */
	const struct policy_paths *writable; /* where else the agent may write; or NULL */
	/* The person names the sources at this moment: no record is asked, or written. */
	bool named_now;
	bool trusts; /* write the record anew, whatever it said */
	/*
	 * Fetch SOURCE, at COMMIT unless that is "", into FOLDER/files; COMMIT becomes what it
	 * is at. FOLDER, which becomes the path of a new one, is removed in either case.
	 */
	bool (*fetch)(void *context, const struct plugin_source *source,
		      struct buf *folder, char commit[HASH_HEX + 1], struct err *err);
	void *context; /* of fetch */
};

/* HOST's part that CONFIG says, for AGENT; the values are CONFIG's. */
void plugin_host_configure(struct plugin_host *host, const struct config *config,
			   const char *agent);

/*
 * Load what HOST names. False: the configuration is wrong, or forbids it. What is wrong with
 * one plugin leaves that out and stands among the problems.
 */
bool plugins_load(const struct plugin_host *host, struct plugins **plugins, struct err *err);
void plugins_free(struct plugins *plugins);

/* One of the problems in a line, as it may stand on a terminal. The caller frees it. */
char *plugins_problem_text(const struct value *problem);

/*
 * A tool that carries out SUBCOMMAND ("preview") of PLUGIN within SECONDS; its `carried` is
 * the caller's to free.
 */
struct tool plugin_look_tool(const struct plugin *plugin, const char *subcommand,
			     double seconds);

/* One loading under way, for plugin.c and source.c only. */

struct plugin_loading {
	const struct plugin_host *host;
	struct plugins *plugins;
	struct value *config; /* values for config_keys, expanded */
	struct value *ids;    /* of all that described themselves */
	struct value *asked;  /* config_keys of all of them */
	char *cache;          /* where the copies lie */
};

/* A plugin is left out: SOURCE and TEXT join the problems. */
void plugin_problem(struct plugin_loading *loading, const char *source, const char *text);

/* Is this entry of `plugins` one of ours? (Others are other dialects'.) */
bool plugin_is_source(const struct value *entry);
/* Where the copies lie: out of every cell's reach. */
bool plugin_cache_find(struct plugin_loading *loading, struct err *err);
/* Each source that is let in becomes a package with its copy. False: an entry is wrong. */
bool plugin_packages_load(struct plugin_loading *loading, struct err *err);
void plugin_package_free(struct plugin_package *package); /* NULL is fine */
