/*
 * plugin: scripts of the user that are tools. A source that a configuration names is
 * resolved, hashed and copied; its scripts describe themselves in a cell, and each
 * becomes a `struct tool` like any other. The caller that loads plugins passes in the
 * cell in which scripts are asked, and the function that fetches git sources, because
 * this layer must not depend on either.
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
#include "plugins/run.h"
#include "plugins/source.h"
#include "policy/config.h"
#include "tool/tool.h"
#include "view/shape.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * The cell in which scripts are asked to describe themselves. The first question makes
 * it. Its files are those that the agent may read, and it may do nothing but read them.
 * Front and library use it alike.
 */

struct plugin_cell {
	/* borrowed members */
	const char *workspace; /* real */
	/* the program that becomes a cell; NULL: this one */
	const char *program;
	const struct tool *const *tools; /* the built-in ones */
	int minimum_level;               /* as session_options have it */
	/* owned members */
	struct policy *take_policy; /* moved by the first question */
	struct session *session;    /* NULL: there was no question yet */
};

/*
 * One question to a script: the tool that was made for it (session.h), its arguments, and
 * the files shown for it.
 */
struct plugin_look {
	const struct tool *tool;
	const struct value *arguments;
	const struct shape_shown *shown;
	const int *fds;   /* three descriptors for the front's own exec; or NULL */
	double timeout_s; /* 0: the tool's own */
};

/*
 * Make POLICY, the rights of that cell: those of AGENT, but only to read. Otherwise like
 * config_policy. Do not ask CONFIG about AGENT afterwards, because its entry is
 * overridden.
 */
bool plugin_cell_policy(struct config *config, const struct value *shipped,
			const char *agent, const char *workspace, struct policy **policy,
			struct err *err);

/*
 * Ask one question. The first question makes the cell; false with ERR when this fails.
 * RESULT, which the caller has initialised and frees, becomes the tool's result.
 */
bool plugin_cell_look(struct plugin_cell *cell, const struct plugin_look *look,
		      struct tool_result *result, struct err *err);
/* End the cell, also one that was never used. */
void plugin_cell_end(struct plugin_cell *cell);

/* One source: a folder or a single file, copied as a whole. */
struct plugin_package {
	char *source;                  /* its name for people: a path, or URL#ref */
	char *place;                   /* its path in the view: its own absolute path */
	char *copy;                    /* the copy that is shown there */
	struct plugin_trusted content; /* of the copy */
	enum plugin_dialect dialect;
	struct plugin_manifest manifest;
};

/* One script, whichever way its source named it and it described itself. */
struct plugin {
	const struct plugin_package *package;
	char *file, *copy; /* the script: in the view, and on the host */
	struct plugin_schema schema;
	struct value *environment, *secrets; /* of the order */
	struct run_order order; /* for RUN_WORK; it borrows from the others */
	struct tool tool;       /* owns its `carried` */
};

/*
 * A tool that starts PLUGIN's script for another subcommand than RUN_WORK. OTHER says
 * which, with its code and times, and for RUN_TEST with its file and copy; all else is as
 * in the order of PLUGIN. The caller frees the tool's `carried`.
 */
struct tool plugin_other_tool(const struct plugin *plugin, const struct run_order *other);

struct plugins {
	struct plugin_package **packages;
	size_t package_count;
	/* in the configuration's order, without plugins that were left out */
	struct plugin **items;
	size_t count;
	struct shape_shown *shown; /* ends with {0} */
	const struct tool **tools; /* the built-in ones, then these; NULL-ended */
	/* objects {source, text}: each plugin that was left out, and why */
	struct value *problems;
	/* shared by the orders of all scripts; each NULL unless configured */
	struct value *python; /* of `plugin_policy`, expanded */
	char *folder;         /* where they start */
};

struct plugin_host {
	/* from the configuration; each may be NULL */
	const struct config *whole; /* where the values for config_keys are */
	const struct value *sources, *policy, *enabled, *disabled;
	const char *agent; /* the agent whose entry is used first */
	/* as written in the configuration; NULL: a folder below `state` */
	const char *cache_dir;
	struct plugin_places places;
	const char *state; /* the folder of the record; NULL: the user has none */
	/* the cell for questions to scripts; its tools come before theirs in the table */
	struct plugin_cell *cell;
	/* other paths that the agent may write; or NULL */
	const struct policy_paths *writable;
	/*
	 * The person names the sources at this moment, so the record is neither read nor
	 * written.
	 */
	bool named_now;
	bool trusts; /* write the record anew, whatever its content */
	/*
	 * Fetch SOURCE into FOLDER/files, at COMMIT if it is not ""; COMMIT becomes the
	 * commit that was fetched. FOLDER becomes the path of a new folder, which the
	 * caller removes in either case.
	 */
	bool (*fetch)(void *context, const struct plugin_source *source,
		      struct buf *folder, char commit[HASH_HEX + 1], struct err *err);
	void *context; /* of fetch */
};

/*
 * Set the members of HOST that come from CONFIG, for AGENT. Their values belong to
 * CONFIG.
 */
void plugin_host_configure(struct plugin_host *host, const struct config *config,
			   const char *agent);

/*
 * Load the plugins that HOST names. False: the configuration is wrong or forbids them. A
 * plugin with an error is left out, and the error is listed among the problems.
 */
bool plugins_load(const struct plugin_host *host, struct plugins **plugins, struct err *err);
void plugins_free(struct plugins *plugins);

/* One of the problems as one line, safe for a terminal. The caller frees it. */
char *plugins_problem_text(const struct value *problem);
