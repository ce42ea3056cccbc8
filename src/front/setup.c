/*
 * setup: reads configuration, role, workspace and policy, and makes the session of them.
 */

#include "front/setup.h"

#include "agent/tools/model_search.h"
#include "agent/tools/orchestra.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "base/value.h"
#include "broker/source.h"
#include "cell/publish.h"
#include "extend/extension.h"
#include "front/agents.h"
#include "front/audit/recording.h"
#include "front/config_file.h"
#include "front/extend/language.h"
#include "front/extend/trusting.h"
#include "front/extensions.h"
#include "front/hands/based.h"
#include "front/interrupt.h"
#include "front/login/logins.h"
#include "front/review/layered.h"
#include "front/ssh/access.h"
#include "front/verb.h"
#include "image/snapshot.h"
#include "image/store.h"
#include "model/model.h"
#include "policy/ceiling.h"
#include "policy/config.h"
#include "policy/credentials/credential.h"
#include "policy/network.h"
#include "policy/policy.h"
#include "sandbox/sandbox.h"
#include "session/session.h"
#include "store/database.h"
#include "store/journal.h"
#include "tool/tool.h"
#include "tools/tools.h"
#include "tools/web/web_search.h"
#include "view/review.h"
#include "view/shape.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	CREDENTIAL_SHOWN_MAX = 4096,
	HURRY_MS = 2000, /* a server that runs at all has listed its tools by then */
};

/* Holds a setup to the rights of the agents on whose behalf it works. */

/*
 * Narrow *POLICY to the rights of ROW, an item of such a list. TOOLS: first check the
 * tools of ROW's policy.
 */
static bool hold_to(const struct setup *setup, const struct value *row, bool tools,
		    struct policy **policy, struct err *err)
{
	auto_close int folder = open(setup->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_policy struct policy *bound = NULL;
	struct policy *both;

	if (!config_policy(NULL, value_member(row, "entry"),
			   value_text(value_member(row, "agent")), setup->workspace,
			   &bound, err) ||
	    (tools && !session_check_tools(bound, setup->tools, err)))
		return err_while(err, "the rights of who delegates");
	shape_limits(&(*policy)->limits, folder);
	shape_limits(&bound->limits, folder);
	both = policy_intersect(*policy, bound);
	if (!based_keep(bound, (*policy)->cell_base, both, err)) {
		policy_free(both);
		return false;
	}
	policy_free(*policy);
	*policy = both;
	return true;
}

bool setup_serve_within(struct setup *setup, const struct value *bounds, struct err *err)
{
	const size_t count = value_count(bounds);

	for (size_t i = 0; i < count && setup->servers.take_policy != NULL; i++) {
		if (!hold_to(setup, value_item(bounds, i), false,
			     &setup->servers.take_policy, err))
			return false;
	}
	if (!setup_serve(setup, err))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!hold_to(setup, value_item(bounds, i), true, &setup->policy, err))
			return false;
	}
	return true;
}

/* Finds the session that goes on. */

/* Check that FOLDER is the workspace of FOUND. FOLDER NULL: any workspace is fine. */
static bool resume_check_folder(const struct journal_found *found, const char *folder,
				struct err *err)
{
	struct stat st;

	/*
	 * A delegate's rights were cut to those of its caller. By itself it would lose
	 * this bound.
	 */
	if (found->parent != NULL)
		return err_set(err, EPERM,
			       "session %s is of the agent %.64s at work for session %.64s, with "
			       "the rights of both; by itself it would have more. Go on with that "
			       "one, which can delegate again: glovebox run --resume %.64s",
			       found->id, found->agent, found->parent, found->parent);
	if (folder != NULL && strcmp(folder, found->workspace) != 0)
		return err_set(err, EINVAL,
			       "session %s worked in %s, not in %s: what was said there is about "
			       "its files. Leave out -C, or begin a new session",
			       found->id, found->workspace, folder);
	if (stat(found->workspace, &st) != 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ENOENT,
			       "session %s worked in %s, which is not there any more: put it back "
			       "there, or begin a new session",
			       found->id, found->workspace);
	return true;
}

/*
 * Find the session NAME (journal_find) in the user's journal. The last session is the
 * last one of FOLDER or, when FOLDER is NULL, of the working folder. FOLDER, as the
 * person wrote it, must be the workspace of the session, because its conversation speaks
 * of this folder. ERR names the fault and the remedy.
 */
static bool resume_find(const char *name, const char *folder, struct journal_found *found,
			struct err *err)
{
	const char *named = folder != NULL ? folder : ".";
	auto_free char *real = realpath(named, NULL);
	struct journal *journal = NULL;
	bool is_there;

	*found = (struct journal_found){0};
	if (real == NULL)
		return err_set(err, errno,
			       "workspace %s: %s; name a folder that exists with -C",
			       named, strerror(errno));
	is_there = journal_open_default(&journal, err) &&
		   journal_find(journal, name, real, found, err) &&
		   resume_check_folder(found, folder != NULL ? real : NULL, err);
	journal_close(journal);
	return is_there;
}

bool setup_resume(const struct options *options, const char *name, struct options *filled,
		  struct journal_found *found, struct err *err)
{
	if (!resume_find(name, options_text(options, "workspace"), found, err))
		return false;
	*filled = *options;
	options_fill(filled, "workspace", found->workspace);
	options_fill(filled, "agent", found->agent);
	/* A session that began without a model goes on with the one that there is now, if any. */
	if (found->model == NULL || strcmp(found->model, "replay") != 0)
		options_fill(filled, "model", found->model);
	if (found->mode != NULL)
		options_fill(filled, "mode", found->mode);
	return true;
}

/*
 * Removes secrets from the environment before a one-shot verb makes a cell, and keeps the
 * variables that a cell may know. Such a verb clones itself into the cell instead of
 * starting the program again, so the anchor gets a copy of all that is in memory at that
 * moment.
 */

/* The variables that view/shape.h looks at: by some of them it finds what it has to hide. */
static const char *const kept[] = {
	"PATH",           "HOME",           "PWD",
	"TERM",           "LANG",           "TZ",
	"TMPDIR",         "XDG_STATE_HOME", "XDG_CONFIG_HOME",
	"XDG_CACHE_HOME", "XDG_DATA_HOME",  "XDG_RUNTIME_DIR",
};

static bool is_kept(const char *entry, const struct policy_names *passed)
{
	size_t length = strcspn(entry, "=");

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (strlen(kept[i]) == length && memcmp(entry, kept[i], length) == 0)
			return true;
	}
	for (size_t i = 0; i < passed->count; i++) {
		const char *name = passed->items[i];

		if (strlen(name) == length && memcmp(entry, name, length) == 0)
			return true;
	}
	return false;
}

/*
 * Copy the variables that a cell's own environment is made from and those that the policy
 * passes by name (PASSED), then overwrite all variables where they stand. So only those
 * API keys are left in this process that the policy passes. Returns the copy, NULL-ended,
 * which is also the new `environ` and lives until the process ends.
 */
static const char *const *environment_wipe(const struct policy_names *passed)
{
	size_t count = 0, left = 0;
	char **copy;

	while (environ != NULL && environ[count] != NULL)
		count++;
	copy = memory_array(count + 1, sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		if (is_kept(environ[i], passed))
			copy[left++] = memory_copy(environ[i]);
	for (size_t i = 0; i < count; i++)
		explicit_bzero(environ[i], strlen(environ[i]));
	environ = copy;
	return (const char *const *)copy;
}

/* Makes an open session, the servers' cell or the shape of a cell from a filled setup. */

void setup_hide_memory(void)
{
	/*
	 * The leak checker of sanitizer builds reads our memory in the same way, so these
	 * builds stay readable.
	 */
#if defined(__SANITIZE_ADDRESS__)
	return;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
	return;
#endif
#endif
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

const struct tool *const *setup_tools(const struct setup *setup)
{
	const struct tool *const *tools = setup->tools;

	if (setup->servers.remotes != NULL)
		tools = remotes_tools(setup->servers.remotes);
	if (setup->extension != NULL)
		tools = extension_tools(setup->extension, tools);
	return setup->orchestra != NULL ? orchestra_tools(setup->orchestra, tools) : tools;
}

void setup_fill_options(const struct setup *setup, const char *files[SETUP_PROTECTED_MAX],
			struct session_options *options)
{
	const char *const *more = setup->protected_files;
	size_t count = 0;

	if (setup->config != NULL)
		files[count++] = setup->config;
	if (setup->policy_file != NULL && setup->policy_is_read)
		files[count++] = setup->policy_file;
	for (; more != NULL && *more != NULL && count + 1 < SETUP_PROTECTED_MAX; more++)
		files[count++] = *more;
	files[count] = NULL;
	options->workspace = setup->workspace;
	options->workspace_name = setup->workspace_name;
	options->protected_files = files;
	options->resolver = setup->resolver;
	options->credentials = setup->credentials;
	options->credential_count = setup->credential_count;
	options->tools = setup_tools(setup);
	options->shown = setup->shown;
	if (options->shown == NULL && setup->plugins.loaded != NULL)
		options->shown = setup->plugins.loaded->shown;
	if (setup->extension != NULL)
		options->shown = extension_shown(setup->extension);
	options->home = setup->home;
	options->at = setup->at;
	options->undo_folder = setup->undo_folder;
	options->marks_key = setup->marks_key;
	options->undo_space = setup->undo_space;
	options->undoes = setup->undoes;
	options->review = setup->review;
	options->below = setup->below.count > 0 ? &setup->below : NULL;
	options->publishes = setup->publishes;
	options->asks = setup->asks;
	options->ssh = setup->ssh != NULL ? &setup->ssh->shape : NULL;
}

bool setup_serve(struct setup *setup, struct err *err)
{
	struct session_options options = {.minimum_level = setup_least_level(setup)};
	const char *files[SETUP_PROTECTED_MAX];

	if (setup->servers.settings == NULL)
		return true;
	plugin_cell_end(&setup->plugins.cell);
	setup_fill_options(setup, files, &options);
	/*
	 * Wait for the servers when the policy names tools: named tools must exist.
	 * Others may come later.
	 */
	if (setup->policy->tools.given && !setup->policy->every_tool)
		setup->servers.wait_ms = 0;
	if (!front_servers_start(&setup->servers, &options, setup->tools, err))
		return false;
	setup->tools = remotes_tools(setup->servers.remotes);
	/* Nobody will call the tools, and some may be missing. */
	if (setup->servers.interrupt != NULL &&
	    interrupt_signal(setup->servers.interrupt) != 0)
		return true;
	return session_check_tools(setup->policy, setup->tools, err);
}

/*
 * Put the base that the policy of SETUP names into OPTIONS. Servers and plugins that are only
 * described have cells of this machine.
 */
static bool take_base(struct setup *setup, struct session_options *options, struct err *err)
{
	if (!based_find(setup, err))
		return false;
	if (setup->based != NULL) {
		/* A devcontainer may have named it. */
		options->at = setup->at;
		options->base = &setup->based->shape;
		if (setup->fresh_workspace)
			options->start_folder = setup->based->base.workdir;
	}
	return true;
}

bool setup_shape(struct setup *setup, struct cell_spec *spec, struct err *err)
{
	const char *files[SETUP_PROTECTED_MAX];
	struct session_options options = {.direct = true,
					  .minimum_level = setup_least_level(setup)};

	setup_fill_options(setup, files, &options);
	return take_base(setup, &options, err) &&
	       session_shape(&options, setup->policy, spec, err);
}

/* Say that the cell is below L3, even where a weaker level is allowed. */
static void say_strength(struct sandbox_strength strength)
{
	if (strength.level < SANDBOX_SEALED)
		(void)fprintf(stderr,
			      "glovebox: this cell is of level L%d (%s), not L3; what is "
			      "missing: glovebox doctor\n",
			      (int)strength.level,
			      strength.level == SANDBOX_RULES ? "Landlock and seccomp"
			      : strength.unfiltered
				      ? "no wall over files, and no filter of system calls"
				      : "seccomp, no wall over files");
}

/* Say where the published ports are whose places nobody named. */
static void say_published(const struct publish *publish)
{
	char place[NETWORK_TEXT_MAX];

	for (size_t i = 0; i < publish->count; i++) {
		const struct published *row = &publish->rows[i];

		if (row->chosen)
			(void)fprintf(stderr, "glovebox: port %u of the cell is at %s\n",
				      row->port,
				      network_print(&row->address, row->host_port, place));
	}
}

/* Print each line of TOLD, of what the ceiling has taken from the policy. */
static void say_taken(struct str told)
{
	struct str line;

	while (str_next_line(&told, &line))
		(void)fprintf(stderr, "glovebox: %.*s\n", (int)line.size, line.data);
}

static bool open_session(struct setup *setup, struct session_options *options,
			 struct session **session, struct err *err)
{
	const char *files[SETUP_PROTECTED_MAX];
	struct buf told;
	bool opened;

	if (setup->review != NULL && setup->servers.session != NULL)
		return err_set(err, EINVAL,
			       REVIEW_KEY
			       ": the MCP servers of the configuration (mcpServers) have "
			       "a cell of their own, and would write past the layer: "
			       "give a --config without them");
	plugin_cell_end(&setup->plugins.cell);
	setup_fill_options(setup, files, options);
	if (!based_settle(setup, options, err) || !take_base(setup, options, err) ||
	    !recording_join(setup, NULL, &options->sink, err))
		return false;
	if (setup->servers.loop != NULL) {
		options->loop = setup->servers.loop;
		/*
		 * We hold descriptors of the servers' cell, so the new cell must not be a
		 * copy of this process.
		 */
		options->direct = false;
	}
	options->take_policy = setup->policy;
	setup->policy = NULL;
	buf_init(&told, CONFIG_TEXT_MAX);
	options->told = &told;
	opened = session_open(options, session, err);
	options->protected_files = NULL;
	options->told = NULL;
	say_taken(buf_str(&told));
	buf_fini(&told);
	if (!opened)
		return false;
	/*
	 * Hide the memory only now: a cell that is cloned from this process needs its
	 * /proc files.
	 */
	setup_hide_memory();
	return true;
}

bool setup_session_err(struct setup *setup, struct session_options *options,
		       struct session **session, struct err *err)
{
	options->minimum_level = setup_least_level(setup);
	if (!open_session(setup, options, session, err))
		return false;
	layered_tell(setup);
	say_strength(session_strength(*session));
	say_published(session_publish(*session));
	return true;
}

/* The person waits for a look of undo: tell them how far it is. */
static void wait_show(void *context, const struct session_wait *wait)
{
	struct verb_progress *progress = context;

	if (wait == NULL)
		verb_progress_end(progress);
	else if (wait->all > 0 && wait->done <= wait->all)
		verb_progress_show(progress,
				   "saving what undo needs: %" PRId64 " of %" PRId64
				   " files (Ctrl+C: without)",
				   wait->done, wait->all);
	else if (wait->done > 0)
		verb_progress_show(progress,
				   "saving what undo needs: %" PRId64
				   " files (Ctrl+C: without)",
				   wait->done);
	else
		verb_progress_show(progress, "saving what undo needs (Ctrl+C: without)");
}

int setup_session(struct setup *setup, struct session_options *options,
		  struct session **session)
{
	struct err err = {0};

	if (isatty(STDERR_FILENO) == 1) {
		options->waits = wait_show;
		options->waits_context = &setup->waiting;
	}
	options->minimum_level = setup_least_level(setup);
	const bool based = based_settle(setup, options, &err);

	if (based && setup_session_err(setup, options, session, &err))
		return CODE_DONE;
	const struct policy_words words = {setup->policy_file, setup->said, setup->wrapped};
	/* Where there is another root than this machine's, there is no cell, whatever the reason. */
	return policy_words_complain(err.code == CEILING_REFUSED ? CODE_DENIED
				     : !based                    ? CODE_NO_CELL
				     : err.code == ECHILD        ? CODE_NO_CELL
				     : err.code == EADDRINUSE    ? CODE_USAGE
				     : err.code == ENOTSUP       ? CODE_USAGE
				     : setup->based != NULL      ? CODE_NO_CELL
								 : CODE_FAILED,
				     &words, err.text);
}

/* Open a session by OPTIONS for one call, whose signals go to setup.interrupt. */
static int session_of_one_call(struct setup *setup, struct session_options *options,
			       struct session **session)
{
	struct err err = {0};
	int code;

	if (!interrupt_open(&setup->interrupt, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	options->sink = setup->sink;
	options->cancel_fd = interrupt_fd(setup->interrupt);
	code = setup_session(setup, options, session);
	if (code != CODE_DONE || interrupt_start(setup->interrupt, &err))
		return code;
	session_close(*session);
	*session = NULL;
	return verb_complain(CODE_FAILED, "%s", err.text);
}

/* May this process start the person's browser, which needs their whole environment? */
static bool starts_browsers(const struct setup *setup)
{
	return setup->asks && setup->opens != NULL && setup->opens[0] != NULL &&
	       isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

int setup_session_once(struct setup *setup, struct session **session)
{
	const enum session_counting counting =
		setup->exact ? COUNTING_ONE : COUNTING_COMMANDS;
	/*
	 * Nothing is made ahead: there is one call, and a control group, which holds only
	 * what begins after it was made, would come too late for it (cell/groups.h).
	 */
	struct session_options with_keys = {.rests = true, .counting = counting};

	/*
	 * Keys come into this process, or stay in its environment, so nothing of it may be
	 * copied into a cell.
	 */
	if (setup->credential_count > 0 || starts_browsers(setup) ||
	    recorded_is_wanted(&setup->recorded))
		return session_of_one_call(setup, &with_keys, session);
	struct session_options options = {
		.direct = true,
		.counting = counting,
		.caller_environment = environment_wipe(&setup->policy->environment),
	};

	return session_of_one_call(setup, &options, session);
}

int setup_session_kept(struct setup *setup, struct session **session)
{
	struct session_options options = {.ready_workers = 1};

	return session_of_one_call(setup, &options, session);
}

bool setup_open_session(struct setup *setup, struct session_options *options,
			struct session **session, struct err *err)
{
	options->minimum_level = SESSION_ANY_LEVEL;
	return open_session(setup, options, session, err);
}

int setup_least_level(const struct setup *setup)
{
	return setup->minimum_level > 0 ? (int)setup->minimum_level : SESSION_ANY_LEVEL;
}

/*
 * Put AGENT's own list KEY before ENTRY's list KEY. When AGENT has no such list, it
 * counts as [UNTOLD].
 */
static void add_to_list(struct value *entry, const char *key, const char *untold,
			const char *agent, struct config *config,
			const struct value *shipped)
{
	const struct value *more = value_member(entry, key);
	enum config_layer layer;

	if (more == NULL)
		return;
	const struct value *had = config_find(config, shipped, agent, key, NULL, &layer);
	struct value *all = had != NULL ? value_copy(had) : value_new_array();

	if (had == NULL && untold != NULL)
		value_append(all, value_new_text(untold));
	for (size_t i = 0; i < value_count(more); i++)
		value_append(all, value_copy(value_item(more, i)));
	value_set(entry, key, all);
}

/* Let the keys of FLAGS override those that CONFIG and SHIPPED have for AGENT. */
static bool add_flags(const char *agent, struct config *config, const struct value *shipped,
		      const struct setup_flags *flags, struct err *err)
{
	auto_value struct value *entry = NULL;

	if (flags->entry == NULL)
		return true;
	entry = value_copy(flags->entry);
	add_to_list(entry, "read", ".", agent, config, shipped);
	add_to_list(entry, "env", NULL, agent, config, shipped);
	return config_override(config, agent, entry, "the options", err);
}

static void add_origin(struct setup *setup, const struct config *config,
		       const struct value *shipped, const struct setup_flags *flags,
		       const char *key, const char *inner)
{
	enum config_layer layer;
	char name[CONFIG_NAME_MAX];
	const char *who = NULL;

	(void)config_find(config, shipped, setup->agent, key, inner, &layer);
	if (layer == LAYER_PERSON)
		who = "option";
	else if (layer == LAYER_CONFIG)
		who = flags->policy != NULL        ? "profile"
		      : flags->policy_file != NULL ? "--policy"
						   : "configuration";
	else if (layer == LAYER_USER)
		who = setup->bounds != NULL ? "the workspace's role" : "role of yours";
	else if (layer == LAYER_ROLE)
		who = "shipped role";
	if (who == NULL)
		return;
	(void)snprintf(name, sizeof(name), "%s%s%s", key, inner != NULL ? "." : "",
		       inner != NULL ? inner : "");
	value_set_text(setup->origins, name, who);
}

/* KEY is in no struct: keep its value, that of the agent or that of the top level. */
static void keep_value(struct setup *setup, const struct config *config,
		       const struct value *shipped, const struct row *key)
{
	enum config_layer layer;
	const struct value *found =
		config_find(config, shipped, setup->agent, key->name, NULL, &layer);

	if (found == NULL)
		found = config_value(config, key->name);
	if (found != NULL)
		value_set(setup->kept, key->name, value_copy(found));
}

static void find_origins(struct setup *setup, const struct config *config,
			 const struct value *shipped, const struct setup_flags *flags)
{
	setup->origins = value_new_object();
	setup->kept = value_new_object();
	for (const struct row *key = keys_agent; key->name != NULL; key++) {
		if (key->kind != ROW_OBJECT)
			add_origin(setup, config, shipped, flags, key->name, NULL);
		if (key->home == KEY_KEPT)
			keep_value(setup, config, shipped, key);
		for (const struct row *row = key->kind == ROW_OBJECT ? key->rows : NULL;
		     row != NULL && row->name != NULL; row++)
			add_origin(setup, config, shipped, flags, key->name, row->name);
	}
}

/* Load the plugins. This is the last use of CONFIG. */
static bool load_plugins(struct setup *setup, struct config *config,
			 const struct value *shipped, const struct setup_flags *flags,
			 struct err *err)
{
	const struct front_plugins_wish configured = {0};
	const struct front_plugins_wish *wish =
		flags->plugins != NULL ? flags->plugins : &configured;
	struct front_plugins *plugins = &setup->plugins;

	if (wish->named == NULL && value_count(config_value(config, "plugins")) == 0)
		return true;
	plugins->cell.workspace = setup->workspace;
	plugins->cell.tools = setup->tools;
	plugins->cell.minimum_level = setup_least_level(setup);
	plugins->asked = plugins->cell;
	plugins->config_path = setup->config;
	plugins->agent = setup->agent;
	plugins->writable = &setup->policy->write;
	if (!plugin_cell_policy(config, shipped, setup->agent, setup->workspace,
				&plugins->cell.take_policy, err) ||
	    !plugin_cell_policy(config, shipped, setup->agent, setup->workspace,
				&plugins->asked.take_policy, err) ||
	    !front_plugins_load(plugins, config, wish, flags->quiet_plugins, err))
		return false;
	setup->tools = (const struct tool *const *)plugins->loaded->tools;
	return true;
}

/*
 * Read the MCP servers. Their policy is that of the agent, but with any command (only the
 * cell limits it) and without tools: the agent's list may name tools that are only known
 * when the servers run.
 */
static bool read_servers(struct setup *setup, struct config *config,
			 const struct value *shipped, const struct setup_flags *flags,
			 struct err *err)
{
	struct front_servers *servers = &setup->servers;
	auto_value struct value *entry = value_new_object();
	auto_value struct value *more =
		flags->servers != NULL ? value_copy(flags->servers) : value_new_object();

	if (flags->knows_servers)
		servers->lacking = value_new_object();
	if ((flags->serves || flags->knows_servers) && !flags->shipped_only &&
	    flags->policy_file == NULL && !trusting_servers(setup, more, err))
		return false;
	if (!front_servers_read(servers, config, setup->config, setup->workspace, more, err))
		return false;
	servers->asks = flags->asks;
	if (flags->answers && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		servers->asks |=
			REMOTE_ASKS_FORMS | REMOTE_ASKS_ADDRESSES | REMOTE_ASKS_MODEL;
	servers->interrupt = flags->interrupt;
	if (servers->settings == NULL)
		return true;
	value_set_text(entry, "commands", "box");
	value_set(entry, "tools", value_new_array());
	return config_override(config, setup->agent, entry, "mcpServers", err) &&
	       config_policy(config, shipped, setup->agent, setup->workspace,
			     &servers->take_policy, err);
}

/*
 * Add AGENT's rights, as CONFIG and SHIPPED have them, to the list of rights that bound
 * this setup.
 */
static bool note_entry(struct setup *setup, const struct config *config,
		       const struct value *shipped, const char *agent, struct err *err)
{
	struct value *entry = NULL, *row;

	if (!config_entry(config, shipped, agent, &entry, err))
		return false;
	if (setup->entries == NULL)
		setup->entries = value_new_array();
	row = value_new_object();
	value_set_text(row, "agent", agent);
	value_set(row, "entry", value_copy(entry));
	value_free(entry);
	value_append(setup->entries, row);
	return true;
}

/* Find the bound of every role of a workspace: the rights of the user's default agent. */
static bool find_bounds(struct setup *setup, struct config *config,
			const struct setup_flags *flags, struct err *err)
{
	auto_value struct value *shipped = NULL;

	return agents_files_read(POLICY_NAME_DEFAULT, false, config, &shipped, err) &&
	       add_flags(POLICY_NAME_DEFAULT, config, shipped, flags, err) &&
	       note_entry(setup, config, shipped, POLICY_NAME_DEFAULT, err) &&
	       config_policy(config, shipped, NULL, setup->workspace, &setup->bounds, err) &&
	       session_check_tools(setup->bounds, setup->tools, err);
}

/*
 * No other layer has an agent of this name: take the role of the workspace if it exists
 * and was let in.
 */
static bool take_workspace_role(struct setup *setup, struct config *config,
				const struct setup_flags *flags, struct err *err)
{
	auto_value struct value *entry = NULL;

	if (!find_bounds(setup, config, flags, err) ||
	    !agents_workspace_load(setup->bounds, setup->agent, setup_least_level(setup),
				   &entry, err))
		return false;
	if (entry != NULL)
		config_set_role(config, setup->agent, entry);
	return true;
}

/*
 * Narrow the policy to the bounds. shape_limits first turns limits that depend on the
 * machine into numbers, so that the two can be compared.
 */
static bool narrow_policy(struct setup *setup, struct err *err)
{
	auto_close int folder = open(setup->workspace, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct policy *both;

	if (!session_check_tools(setup->policy, setup->tools, err))
		return false;
	shape_limits(&setup->policy->limits, folder);
	shape_limits(&setup->bounds->limits, folder);
	both = policy_intersect(setup->policy, setup->bounds);
	policy_free(setup->policy);
	setup->policy = both;
	return true;
}

static bool make_policy(struct setup *setup, struct config *config,
			const struct value *shipped, const struct setup_flags *flags,
			struct err *err)
{
	return add_flags(setup->agent, config, shipped, flags, err) &&
	       note_entry(setup, config, shipped, setup->agent, err) &&
	       config_policy(config, shipped, setup->agent, setup->workspace,
			     &setup->policy, err) &&
	       config_role(config, shipped, setup->agent, &setup->role, err) &&
	       (setup->bounds == NULL || narrow_policy(setup, err));
}

static void note_agents(struct setup *setup, const struct config *config)
{
	auto_free const char **names = config_agents(config);
	enum config_layer layer;

	setup->agents = value_new_object();
	for (size_t i = 0; names[i] != NULL; i++) {
		const struct value *model =
			config_find(config, NULL, names[i], "model", NULL, &layer);

		value_set(setup->agents, names[i],
			  model != NULL ? value_copy(model) : value_new_null());
	}
}

static void take_wall(struct setup *setup, const struct config *config,
		      const struct value *shipped)
{
	enum config_layer layer;

	if (config_find(config, shipped, setup->agent, "limits", "wall_s", &layer) != NULL)
		setup->wall_s = setup->policy->limits.wall_s;
}

/* Do A and B set the same variable of a program? */
static bool credentials_collide(const struct credential *a, const struct credential *b)
{
	for (size_t i = 0; i < a->variables.count; i++)
		for (size_t j = 0; j < b->variables.count; j++)
			if (strcmp(a->variables.items[i], b->variables.items[j]) == 0)
				return true;
	for (size_t i = 0; i < a->base_count; i++)
		for (size_t j = 0; j < b->base_count; j++)
			if (strcmp(a->bases[i].variable, b->bases[j].variable) == 0)
				return true;
	return false;
}

bool setup_credential_is_there(const struct credential *credential, struct buf *shown,
			       struct err *err)
{
	const struct source_terms terms = {
		.home = getenv("HOME"),
		.environment = (const char *const *)(uintptr_t)environ,
	};
	const char *key = ceiling_of_credential(session_ceiling(), credential->name);
	char what[CREDENTIAL_NAME_MAX + 16];

	for (size_t i = 0; key == NULL && i < credential->host_count; i++)
		key = ceiling_of_host(session_ceiling(), &credential->hosts[i]);
	(void)snprintf(what, sizeof(what), "credential %s", credential->name);
	return key != NULL ? ceiling_refuse(what, key, err)
			   : source_look(credential, &terms, shown, err);
}

/*
 * Add the credential NAME. One whose key is not there is left out, unless it MUST be there;
 * so is one whose variables an earlier one sets: a login beside a key.
 */
static bool add_credential(struct setup *setup, const struct config *config,
			   const char *name, bool must, struct err *err)
{
	struct credential found = {0};
	struct err why = {0};
	struct buf shown;
	bool wanted = true, fine;

	for (size_t i = 0; i < setup->credential_count; i++) {
		if (strcmp(setup->credentials[i].name, name) == 0)
			return true;
	}
	buf_init(&shown, CREDENTIAL_SHOWN_MAX);
	fine = credential_find(config_value(config, "credentials"), name, &found, err);
	if (!fine)
		err->code = CONFIG_WRONG;
	if (fine && !setup_credential_is_there(&found, &shown, &why)) {
		wanted = false;
		if (why.code == CEILING_REFUSED)
			fine = !must || err_set(err, why.code, "--%s", why.text);
		else
			fine = (why.code == ENOENT && !must) ||
			       err_set(err, SETUP_NO_KEY,
				       "no key for %s: %s. Set it there, or name its place: "
				       "credentials.%s.from in the configuration",
				       name, why.text, name);
	}
	buf_fini(&shown);
	for (size_t i = 0; wanted && !must && i < setup->credential_count; i++)
		wanted = !credentials_collide(&setup->credentials[i], &found);
	if (!fine || !wanted) {
		credential_fini(&found);
		return fine;
	}
	setup->credentials = memory_grow(setup->credentials, setup->credential_count + 1,
					 sizeof(setup->credentials[0]));
	setup->credentials[setup->credential_count++] = found;
	return true;
}

/* Find the credentials of the flags and the policy. */
static bool find_credentials(struct setup *setup, const struct config *config,
			     const struct setup_flags *flags, struct err *err)
{
	const struct policy_names *names = &setup->policy->credentials;
	const char *const *said = flags->credentials;

	for (; said != NULL && *said != NULL; said++) {
		if (!add_credential(setup, config, *said, true, err))
			return false;
	}
	for (size_t i = 0; !flags->no_credentials && i < names->count; i++) {
		if (!add_credential(setup, config, names->items[i], false, err))
			return false;
	}
	return true;
}

/*
 * Add what the person has answered `always` to. A policy from a file, a wrapped agent and a
 * role of the workspace, which is bound by the default's rights, have no such rules.
 */
static bool take_rules(struct setup *setup, const struct setup_flags *flags, struct err *err)
{
	setup->keeps_rules = flags->policy_file == NULL && !flags->shipped_only &&
			     flags->wrapped == NULL && setup->bounds == NULL;
	if (!setup->keeps_rules ||
	    config_file_rules_apply(setup->policy, setup->role_name, setup->workspace, err))
		return true;
	err->code = CONFIG_WRONG;
	return false;
}

/* The tool for the search that the configuration names joins our own. */
static void take_search(struct setup *setup, const struct config *config)
{
	const struct value *settings = config_value(config, "search");
	size_t count = 0;

	if (settings == NULL || setup->search != NULL)
		return;
	while (setup->own_tools[count] != NULL)
		count++;
	setup->own_tools =
		memory_grow(setup->own_tools, count + 2, sizeof(*setup->own_tools));
	setup->searches_by_model =
		str_is(value_str(value_member(settings, "provider")), "model");
	setup->search =
		setup->searches_by_model ? model_search_new() : web_search_new(settings);
	setup->own_tools[count] = setup->search;
	setup->own_tools[count + 1] = NULL;
	setup->tools = setup->own_tools;
}

/* A role of the workspace does not work more freely than the user's default agent. */
static bool bound_mode(struct setup *setup, const struct config *config, struct err *err)
{
	struct config_role bounds;

	if (!config_role(config, NULL, POLICY_NAME_DEFAULT, &bounds, err))
		return false;
	if (bounds.mode > setup->role.mode)
		setup->role.mode = bounds.mode;
	config_role_fini(&bounds);
	return true;
}

/*
 * Hold the policy, whose tools are known, and those of delegates to the entry of WITHIN (or NULL),
 * if there is one.
 */
static bool hold_within(struct setup *setup, const struct config *config,
			const char *within, struct err *err)
{
	const struct value *row;
	char *base;
	bool held;

	if (within == NULL || !config_says(config, within))
		return true;
	if (!note_entry(setup, config, NULL, within, err))
		return false;
	row = value_item(setup->entries, value_count(setup->entries) - 1);
	/* Their keys were found already, and would be used in spite of the bound. */
	for (size_t i = 0; i < setup->policy->credentials.count; i++) {
		const char *name = setup->policy->credentials.items[i];

		if (!value_has_text(value_member(value_member(row, "entry"), "credentials"),
				    name))
			return err_set(err, CEILING_REFUSED,
				       "credentials: %s: the agent %s of the configuration, "
				       "which bounds this cell, does not have it",
				       name, within);
	}
	/* A base is no right: what a cell may do is the same on each. */
	base = setup->policy->cell_base;
	setup->policy->cell_base = NULL;
	held = session_check_tools(setup->policy, setup->tools, err) &&
	       hold_to(setup, row, true, &setup->policy, err);
	free(setup->policy->cell_base);
	setup->policy->cell_base = base;
	return held;
}

/* Does CONFIG name secrets of a service, or pass some to MCP servers? */
static bool has_secrets(const struct setup *setup, const struct config *config)
{
	static const char *const passed[] = {"env", "headers", "oauth"};
	const struct value *servers = config_value(config, "mcpServers");

	for (void *at = value_first(servers); at != NULL; at = value_next(servers, at)) {
		for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
			if (value_member(value_at(at), passed[i]) != NULL)
				return true;
		}
	}
	return setup->recorded.key_file != NULL ||
	       value_member(config_value(config, "service"), "tokens") != NULL;
}

/*
 * A command that reads the key of the audit, or its lines, could forge or follow them. Of a file
 * of --config the cell sees nothing either, if it has secrets or says where they are.
 */
static bool hide_service(const struct setup *setup, const struct config *config,
			 struct err *err)
{
	const struct value *service = config_value(config, "service");

	return (!has_secrets(setup, config) || session_hide(setup->config, err)) &&
	       session_hide(setup->recorded.folder, err) &&
	       session_hide(setup->recorded.key_file, err) &&
	       session_hide(value_text(value_member(service, "tokens")), err);
}

/* Find the agent's role, from all layers, and make its policy. CONFIG is complete. */
static bool choose_agent(struct setup *setup, struct config *config,
			 const struct setup_flags *flags, struct err *err)
{
	auto_value struct value *shipped = NULL;

	if (!setup->level_is_asked)
		setup->minimum_level = config_minimum_level(config);
	setup->resolver = memory_copy(config_resolver(config));
	setup->undo_space = config_undo_space(config);
	take_search(setup, config);
	if (config_value(config, "models") != NULL)
		setup->models = value_copy(config_value(config, "models"));
	setup->hooks = value_ref(config_value(config, "hooks"));
	recorded_read(config_value(config, "service"), &setup->recorded);
	if (!hide_service(setup, config, err))
		return false;
	setup->notes = value_is_true(config_value(config, "memory")) ? NOTES_WRITTEN
								     : NOTES_NONE;
	if (!flags->shipped_only)
		agents_files_know_names(config, setup->workspace);
	if (flags->policy_file == NULL &&
	    (!agents_files_read(setup->agent, flags->shipped_only, config, &shipped, err) ||
	     (!agents_files_know(config, shipped, setup->agent) &&
	      !take_workspace_role(setup, config, flags, err))))
		return false;
	if (!make_policy(setup, config, shipped, flags, err) ||
	    !find_credentials(setup, config, flags, err) ||
	    !agents_files_check_delegates(config, shipped, setup->agent, setup->workspace,
					  err))
		return false;
	setup->role_name = memory_copy(config_role_name(config, setup->agent));
	if (setup->bounds != NULL && !bound_mode(setup, config, err))
		return false;
	if (!take_rules(setup, flags, err))
		return false;
	take_wall(setup, config, shipped);
	note_agents(setup, config);
	if (flags->explain)
		find_origins(setup, config, shipped, flags);
	/* A role of the workspace has only the built-in tools. */
	if (setup->bounds == NULL && (!language_read(setup, config, shipped, err) ||
				      !read_servers(setup, config, shipped, flags, err) ||
				      !load_plugins(setup, config, shipped, flags, err)))
		return false;
	/*
	 * The tools of servers are only known when the servers run: session_open checks
	 * then.
	 */
	return (setup->servers.settings != NULL ||
		session_check_tools(setup->policy, setup->tools, err)) &&
	       hold_within(setup, config, flags->within, err);
}

static void take_tools(struct setup *setup)
{
	setup->own_tools = setup_tools_new();
	setup->tools = setup->own_tools;
}

static const char *workspace_remedy(const char *folder, int code)
{
	if (code == ENOENT && strcmp(folder, ".") == 0)
		return "; it has been removed: go to another folder, or name one with -C";
	if (code == ENOENT)
		return "; name your project's folder with -C";
	if (code == ENAMETOOLONG)
		return "; the whole path has to be shorter than 4,096 bytes";
	return "";
}

static bool set_workspace(struct setup *setup, const char *folder, struct err *err)
{
	setup->workspace_name = memory_copy(folder);
	setup->workspace = realpath(folder, NULL);
	/* realpath does not limit the text that it allocates. */
	if (setup->workspace != NULL && strlen(setup->workspace) >= PATH_MAX) {
		free(setup->workspace);
		setup->workspace = NULL;
		errno = ENAMETOOLONG;
	}
	if (setup->workspace == NULL) {
		int code = errno;
		return err_set(err, code, "workspace %s: %s%s", folder, strerror(code),
			       workspace_remedy(folder, code));
	}
	return true;
}

static char *config_place(const char *given)
{
	struct buf place;
	char *path = NULL;

	buf_init(&place, PATH_MAX);
	if (given != NULL || config_file_beside("config.json", &place))
		path = memory_copy(given != NULL ? given : place.data);
	buf_fini(&place);
	return path;
}

/* Does the verb have the option WORD ("--ask")? */
static bool has_option(const struct options *options, const char *word)
{
	bool apart;

	return options_find(options->rows, word, &apart) != NULL;
}

/* Take --minimum-level, for verbs that have it, before that of the configuration. */
static void take_level(struct setup *setup, const struct options *options)
{
	if (!has_option(options, "--minimum-level") ||
	    !options_given(options, "minimum-level"))
		return;
	setup->minimum_level = (unsigned)options_count(options, "minimum-level", 0);
	setup->level_is_asked = true;
}

/* Take the policy file of FLAGS in place of an agent's policy. */
static bool take_policy_file(struct setup *setup, struct config *config,
			     const struct setup_flags *flags, struct err *err)
{
	auto_value struct value *entry = NULL;

	if (flags->policy_file == NULL)
		return true;
	if (flags->policy == NULL &&
	    !config_file_load_policy(flags->policy_file, &entry, err))
		return false;
	config_set_agent(config, setup->agent,
			 flags->policy != NULL ? flags->policy : entry);
	return true;
}

/*
 * The path of NAME in the user's state, beside the journal; NULL: there is no home. Call it
 * before the environment is wiped.
 */
static char *state_place(const char *name)
{
	struct buf path;
	char *place = NULL;

	buf_init(&path, PATH_MAX);
	if (database_state_path(name, &path, NULL))
		place = memory_copy(path.data);
	buf_fini(&path);
	return place;
}

/* The store of images or of snapshots that FIND finds; NULL: there is no home. As state_place. */
static char *store_place(bool (*find)(const char *set, const char *home, struct buf *path),
			 const char *variable)
{
	struct buf path;
	char *place = NULL;

	buf_init(&path, PATH_MAX);
	if (find(config_file_variable(variable), config_file_variable("HOME"), &path))
		place = memory_copy(path.data);
	buf_fini(&path);
	return place;
}

bool setup_init(struct setup *setup, const struct options *options,
		const struct setup_flags *given, struct err *err)
{
	static const struct setup_flags none;
	const struct setup_flags *flags = given != NULL ? given : &none;
	auto_config struct config *config = NULL;
	const char *agent =
		flags->agent != NULL ? flags->agent : options_text(options, "agent");
	const char *folder = flags->workspace != NULL ? flags->workspace
						      : options_text(options, "workspace");

	memset(setup, 0, sizeof(*setup));
	take_tools(setup);
	if (flags->policy_file != NULL)
		agent = POLICY_FILE_AGENT;
	setup->agent = memory_copy(agent != NULL ? agent : POLICY_NAME_DEFAULT);
	setup->config = config_place(options_text(options, "config"));
	setup->config_given = options_text(options, "config") != NULL;
	setup->policy_file = memory_copy(flags->policy_file);
	setup->said = flags->entry;
	setup->policy_is_read = flags->policy == NULL;
	setup->home = flags->home;
	setup->shown = flags->shown;
	setup->wrapped = flags->wrapped;
	setup->opens = flags->opens;
	recording_lend(setup, options->verb, flags->recording);
	setup->protected_files = flags->protected_files;
	setup->undo_folder = state_place("undo");
	setup->marks_key = state_place("marks.key");
	setup->images = store_place(image_store_path, "XDG_CACHE_HOME");
	setup->snapshots = store_place(snapshot_place, "XDG_DATA_HOME");
	take_level(setup, options);
	/* A home of the cell's own is at its place only in a view. */
	if (flags->home != NULL) {
		setup->minimum_level = SANDBOX_SEALED;
		setup->level_is_asked = true;
	}
	if (!set_workspace(setup, folder != NULL ? folder : ".", err) ||
	    !config_file_load(options_text(options, "config"), &config, err) ||
	    !take_policy_file(setup, config, flags, err) ||
	    !choose_agent(setup, config, flags, err))
		return false;
	return true;
}

void setup_keep_state(struct setup *setup, const char *state)
{
	static const char variable[] = "XDG_STATE_HOME=";
	size_t count = 0, at = 0;
	struct buf path;

	buf_init(&path, PATH_MAX);
	(void)buf_addf(&path, "%s%s", variable, state);
	setup->state = memory_copy(path.data);
	while (environ[count] != NULL)
		count++;
	setup->environment = memory_array(count + 2, sizeof(*setup->environment));
	for (size_t i = 0; i < count; i++) {
		if (strncmp(environ[i], variable, sizeof(variable) - 1) != 0)
			setup->environment[at++] = environ[i];
	}
	setup->environment[at] = setup->state;
	if (buf_adds(&path, "/glovebox/undo")) {
		free(setup->undo_folder);
		setup->undo_folder = memory_copy(path.data + sizeof(variable) - 1);
	}
	buf_fini(&path);
}

/* Add HOST to the bounds of delegates, so that they may reach it as well. */
static void note_host(struct setup *setup, const char *host)
{
	for (size_t i = 0; i < value_count(setup->entries); i++) {
		struct value *entry = value_member(value_item(setup->entries, i), "entry");

		if (value_member(entry, "network") == NULL)
			value_set(entry, "network", value_new_array());
		value_append(value_member(entry, "network"), value_new_text(host));
	}
}

void setup_set_base(struct setup *setup, const char *word)
{
	free(setup->policy->cell_base);
	setup->policy->cell_base = memory_copy(word);
	for (size_t i = 0; i < value_count(setup->entries); i++)
		value_set_text(value_member(value_item(setup->entries, i), "entry"),
			       "cell_base", word);
}

void setup_set_at(struct setup *setup, const char *path)
{
	free(setup->at);
	setup->at = path != NULL ? memory_copy(path) : NULL;
}

/* May OPTION say SAID on this machine? KEY of the ceiling forbids it; NULL: nothing does. */
static bool check_said(const char *option, const char *said, const char *key, struct err *err)
{
	char what[NETWORK_REMEDY_MAX];

	if (key == NULL)
		return true;
	(void)snprintf(what, sizeof(what), "%s %s", option, said);
	return ceiling_refuse(what, key, err);
}

/* An ENTRY that cannot be read is refused elsewhere. */
static bool check_host(const char *option, const char *said,
		       const struct network_entry *entry, struct err *err)
{
	return check_said(option, said,
			  entry->port != 0 ? ceiling_of_host(session_ceiling(), entry) : NULL,
			  err);
}

/* Each folder that OPTION names, which may be written when WRITES. */
static bool check_folders(const struct setup *setup, const struct options *options,
			  const char *name, bool writes, struct err *err)
{
	const char *const *folders = options_texts(options, name);
	char option[NAME_MAX], real[PATH_MAX];
	struct buf path;
	bool fine = true;

	(void)snprintf(option, sizeof(option), "--%s", name);
	for (; fine && *folders != NULL; folders++) {
		buf_init(&path, PATH_MAX);
		if (path_normal(setup->workspace, *folders, &path) &&
		    realpath(path.data, real) != NULL)
			fine = check_said(option, *folders,
					  ceiling_of_path(session_ceiling(), real, writes),
					  err);
		buf_fini(&path);
	}
	return fine;
}

/*
 * Add HOST to the agent's hosts, and to those of its servers, because OPTION has the value
 * SAID.
 */
static bool add_host(struct setup *setup, const char *option, const char *said,
		     const char *host, struct err *err)
{
	struct network_entry entry = {0};
	const char *harm = NULL;

	if (network_parse_entry(str_of(host), &entry, NULL))
		harm = network_hands_over(&entry);
	if (harm != NULL)
		return err_set(err, EPERM,
			       "%s %s: what reaches this port %s; only the configuration opens it: "
			       "list \"%s\" in agents.%s.network",
			       option, said, harm, host, setup->policy->name);
	if (!check_host(option, said, &entry, err) ||
	    !policy_add_network(setup->policy, host, option, err) ||
	    (setup->servers.take_policy != NULL &&
	     !policy_add_network(setup->servers.take_policy, host, option, err)))
		return false;
	note_host(setup, host);
	return true;
}

/* Add the hosts of --allow-host. */
static bool add_hosts(struct setup *setup, const struct options *options, struct err *err)
{
	const char *const *hosts = options_texts(options, "allow-host");

	for (; *hosts != NULL; hosts++) {
		if (!add_host(setup, "--allow-host", *hosts, *hosts, err))
			return false;
	}
	return true;
}

/* Add the ports of this machine that --host-loopback names. */
static bool add_loopback(struct setup *setup, const struct options *options, struct err *err)
{
	const char *const *ports = options_texts(options, "host-loopback");
	char host[NETWORK_TEXT_MAX];
	uint16_t port;

	for (; *ports != NULL; ports++) {
		if (!network_parse_port(str_of(*ports), &port))
			return err_set(err, EINVAL,
				       "--host-loopback %.40s: a port is a number from 1 to 65535 "
				       "without zeros in front",
				       *ports);
		(void)snprintf(host, sizeof(host), "tcp://localhost:%u", port);
		if (!add_host(setup, "--host-loopback", *ports, host, err))
			return false;
	}
	return true;
}

/* Add the ports of the cell that --publish names. */
static bool add_published(struct setup *setup, const struct options *options, struct err *err)
{
	const char *const *ports = options_texts(options, "publish");

	for (; *ports != NULL; ports++) {
		struct network_publish entry = {0};

		if (network_parse_publish(str_of(*ports), &entry, NULL) &&
		    !check_said("--publish", *ports,
				ceiling_of_port(session_ceiling(), entry.port), err))
			return false;
		if (!policy_add_publish(setup->policy, *ports, err))
			return false;
	}
	return true;
}

/* Let the cell sign in to the hosts of --ssh, as far as the person agrees. */
static bool add_ssh(struct setup *setup, const struct options *options, struct err *err)
{
	const char *const *hosts = options_texts(options, "ssh");
	char name[NETWORK_TEXT_MAX], entry[NETWORK_TEXT_MAX + sizeof("tcp://")];

	if (*hosts == NULL)
		return true;
	if (!check_said("--ssh", *hosts, ceiling_of_asking(session_ceiling()), err))
		return false;
	setup->ssh = memory_alloc(sizeof(*setup->ssh));
	if (!ssh_access_init(setup->ssh, hosts, err))
		return false;
	for (size_t i = 0; i < setup->ssh->count; i++) {
		const struct ssh_known *host = &setup->ssh->hosts[i];

		(void)snprintf(entry, sizeof(entry), "tcp://%s",
			       network_print(&host->host, host->port, name));
		if (!add_host(setup, "--ssh", hosts[i], entry, err))
			return false;
	}
	return true;
}

/* Add the rights that --ask names to the policy's own `ask`. */
static bool add_asks(struct setup *setup, const struct options *options, struct err *err)
{
	const char *const *asks = options_texts(options, "ask");

	for (; *asks != NULL; asks++) {
		if (!check_said("--ask", *asks, ceiling_of_asking(session_ceiling()), err) ||
		    !policy_add_ask(setup->policy, *asks, "--ask", err))
			return false;
		if (setup->asked == NULL)
			setup->asked = value_new_array();
		value_append(setup->asked, value_new_text(*asks));
	}
	return true;
}

/* Set the LIMITS that OPTIONS name. */
static bool set_limits(const struct options *options, struct policy_limits *limits,
		       struct err *err)
{
	limits->iterations = options_count(options, "max-iterations", limits->iterations);
	limits->tokens = options_count(options, "budget-tokens", limits->tokens);
	limits->money = options_amount(options, "budget-money", limits->money);
	limits->run_s = options_seconds(options, "budget-seconds", limits->run_s);
	return limits->run_s > 0 ||
	       err_set(err, EINVAL, "--budget-seconds: 0 seconds are no time to work in");
}

int setup_code(const struct err *err)
{
	return err->code == CEILING_REFUSED || err->code == SETUP_NO_KEY ? CODE_DENIED
	       : err->code == CONFIG_WRONG                               ? CODE_USAGE
									 : CODE_FAILED;
}

bool setup_set_mode(struct setup *setup, enum policy_mode mode, struct err *err)
{
	setup->mode = mode;
	policy_set_mode(setup->policy, mode);
	if (setup->servers.take_policy != NULL)
		policy_set_mode(setup->servers.take_policy, mode);
	/* The tools of servers are only known when the servers run. */
	return setup->servers.settings != NULL ||
	       session_check_tools(setup->policy, setup->tools, err);
}

/* Work in the mode of FLAGS, else that of --mode, else that of the agent. */
static bool take_mode(struct setup *setup, const struct options *options,
		      const struct setup_flags *flags, struct err *err)
{
	const char *said = options_text(options, "mode");
	enum policy_mode mode = (enum policy_mode)setup->role.mode;

	if (flags != NULL && flags->mode != NULL)
		mode = *flags->mode;
	else if (said != NULL && !policy_mode_parse(said, &mode))
		return err_set(err, EINVAL, "--mode %.64s: the modes are: %s", said,
			       POLICY_MODES);
	return setup_set_mode(setup, mode, err);
}

void setup_set_thinking(struct setup *setup, const struct model_level *level)
{
	if (setup->thinking == NULL)
		setup->role_thinking = setup->role.thinking_budget;
	setup->thinking = level;
	setup->role.thinking_budget =
		level->budget > 0 ? level->budget : setup->role_thinking;
}

/* Take --thinking in place of the budget of the role. */
static bool take_thinking(struct setup *setup, const struct options *options, struct err *err)
{
	const char *said = options_text(options, "thinking");
	const struct model_level *level = said != NULL ? model_level_find(said) : NULL;

	if (said != NULL && level == NULL)
		return err_set(err, EINVAL,
			       "--thinking %.64s: the levels are default, low, medium and high",
			       said);
	if (level != NULL)
		setup_set_thinking(setup, level);
	return true;
}

int setup_open(struct setup *setup, const struct options *options,
	       const struct setup_flags *flags)
{
	struct err err = {0};

	if (!setup_init(setup, options, flags, &err)) {
		const struct policy_words words = {setup->policy_file, setup->said,
						   setup->wrapped};

		return policy_words_complain(setup_code(&err), &words, err.text);
	}
	setup->prepares = true;
	if (has_option(options, "--base") && options_given(options, "base"))
		setup_set_base(setup, options_text(options, "base"));
	if (flags != NULL && flags->needs_no_base) {
		free(setup->policy->cell_base);
		setup->policy->cell_base = NULL;
	}
	if (has_option(options, "--at") && options_given(options, "at"))
		setup_set_at(setup, options_text(options, "at"));
	if ((has_option(options, "--write") &&
	     !check_folders(setup, options, "write", true, &err)) ||
	    (has_option(options, "--read") &&
	     !check_folders(setup, options, "read", false, &err)) ||
	    (has_option(options, "--allow-host") && !add_hosts(setup, options, &err)) ||
	    (has_option(options, "--host-loopback") && !add_loopback(setup, options, &err)) ||
	    (has_option(options, "--publish") && !add_published(setup, options, &err)) ||
	    (has_option(options, "--ssh") && !add_ssh(setup, options, &err)) ||
	    (has_option(options, "--ask") && !add_asks(setup, options, &err)) ||
	    (has_option(options, "--budget-seconds") &&
	     !set_limits(options, &setup->policy->limits, &err)) ||
	    (has_option(options, "--mode") && !take_mode(setup, options, flags, &err)) ||
	    (has_option(options, "--thinking") && !take_thinking(setup, options, &err)))
		return verb_complain(err.code == CEILING_REFUSED ? CODE_DENIED : CODE_USAGE,
				     "%s", err.text);
	if (has_option(options, "--model") && setup->role.model == NULL)
		setup->role.model = logins_model();
	if (flags != NULL && flags->hurries)
		setup->servers.wait_ms = HURRY_MS;
	if (flags != NULL && flags->serves && !setup_serve(setup, &err))
		return verb_complain(CODE_FAILED, "%s", err.text);
	return CODE_DONE;
}

bool setup_init_shipped(struct setup *setup, const char *folder, struct err *err)
{
	auto_config struct config *config = config_new();

	memset(setup, 0, sizeof(*setup));
	take_tools(setup);
	setup->agent = memory_copy(POLICY_NAME_DEFAULT);
	return set_workspace(setup, folder, err) &&
	       choose_agent(setup, config, &(struct setup_flags){.shipped_only = true}, err);
}

void setup_fini(struct setup *setup)
{
	interrupt_close(setup->interrupt);
	if (setup->ssh != NULL)
		ssh_access_fini(setup->ssh);
	free(setup->ssh);
	front_servers_fini(&setup->servers);
	front_plugins_fini(&setup->plugins);
	extension_close(setup->extension);
	below_close(&setup->below);
	based_close(setup->based);
	free(setup->images);
	free(setup->snapshots);
	value_free(setup->asked);
	policy_free(setup->policy);
	policy_free(setup->bounds);
	value_free(setup->origins);
	value_free(setup->kept);
	value_free(setup->entries);
	free(setup->own_tools);
	if (setup->searches_by_model)
		model_search_free(setup->search);
	else
		web_search_free(setup->search);
	value_free(setup->models);
	value_free(setup->hooks);
	recording_forget(setup);
	language_close(setup->language);
	value_free(setup->agents);
	config_role_fini(&setup->role);
	free(setup->workspace);
	free(setup->workspace_name);
	free(setup->at);
	free(setup->config);
	free(setup->policy_file);
	free(setup->environment);
	free(setup->state);
	free(setup->undo_folder);
	free(setup->marks_key);
	free(setup->resolver);
	for (size_t i = 0; i < setup->credential_count; i++)
		credential_fini(&setup->credentials[i]);
	free(setup->credentials);
	free(setup->agent);
	free(setup->role_name);
	memset(setup, 0, sizeof(*setup));
}

void setup_each_model(const struct setup *setup,
		      void (*name)(void *context, const char *name), void *context)
{
	const struct value *agents = setup->agents, *models = setup->models;

	for (void *at = value_first(models); at != NULL; at = value_next(models, at))
		name(context, value_key(at));
	for (void *at = value_first(agents); at != NULL; at = value_next(agents, at)) {
		const char *model = value_text(value_at(at));

		if (model != NULL && value_member(models, model) == NULL)
			name(context, model);
	}
}

const struct tool **setup_tools_new(void)
{
	const struct tool *const *const lists[] = {builtin_tools, orchestra_rows,
						   extension_rows};
	const struct tool **tools;
	size_t count = 0;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (const struct tool *const *at = lists[i]; *at != NULL; at++)
			count++;
	}
	tools = memory_array(count + 1, sizeof(const struct tool *));
	count = 0;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (const struct tool *const *at = lists[i]; *at != NULL; at++)
			tools[count++] = *at;
	}
	return tools;
}
