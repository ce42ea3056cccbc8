/*
 * setup_session: makes an open session, the servers' cell or the shape of a cell from a
 * filled setup.
 */
#include "front/setup.h"

#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "agent/tools/orchestra.h"
#include "front/environment.h"
#include "front/interrupt.h"
#include "front/policy_words.h"
#include "front/verb.h"
#include "sandbox/probe.h"

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

/*
 * The first NULL ends the list, so a file that may be missing is not before one that
 * exists.
 */
enum { PROTECTED_FILES = 3 };

const struct tool *const *setup_tools(const struct setup *setup)
{
	const struct tool *const *tools = setup->tools;

	if (setup->servers.remotes != NULL)
		tools = front_servers_tools(&setup->servers);
	return setup->orchestra != NULL ? orchestra_tools(setup->orchestra, tools) : tools;
}

static void fill_options(const struct setup *setup, const char *files[PROTECTED_FILES],
			 struct session_options *options)
{
	files[0] = setup->config != NULL ? setup->config : setup->policy_file;
	files[1] = setup->policy_file;
	files[2] = NULL;
	options->workspace = setup->workspace;
	options->workspace_name = setup->workspace_name;
	options->protected_files = files;
	options->resolver = setup->resolver;
	options->tools = setup_tools(setup);
	options->shown =
		setup->plugins.loaded != NULL ? setup->plugins.loaded->shown : NULL;
	options->undo_folder = setup->undo_folder;
	options->undo_space = setup->undo_space;
	options->undoes = setup->undoes;
}

bool setup_serve(struct setup *setup, struct err *err)
{
	struct session_options options = {.minimum_level = setup_least_level(setup)};
	const char *files[PROTECTED_FILES];

	if (setup->servers.settings == NULL)
		return true;
	front_plugins_rest(&setup->plugins);
	fill_options(setup, files, &options);
	/*
	 * Wait for the servers when the policy names tools: named tools must exist.
	 * Others may come later.
	 */
	if (setup->policy->tools.given && !setup->policy->every_tool)
		setup->servers.wait_ms = 0;
	if (!front_servers_start(&setup->servers, &options, setup->tools, err))
		return false;
	setup->tools = remotes_tools(setup->servers.remotes);
	return session_check_tools(setup->policy, setup->tools, err);
}

bool setup_shape(const struct setup *setup, struct cell_spec *spec, struct err *err)
{
	const char *files[PROTECTED_FILES];
	struct session_options options = {.direct = true,
					  .minimum_level = setup_least_level(setup)};

	fill_options(setup, files, &options);
	return session_shape(&options, setup->policy, spec, err);
}

/* Say that the cell is below L3, even where a weaker level is allowed. */
static void say_level(int level)
{
	const struct level_row *row = probe_level_row((enum sandbox_level)level);

	if (level < SANDBOX_SEALED)
		(void)fprintf(stderr,
			      "glovebox: this cell is of level %s (%s), not L3; what is "
			      "missing: glovebox doctor\n",
			      row->name, row->walls);
}

static bool open_session(struct setup *setup, struct session_options *options,
			 struct session **session, struct err *err)
{
	const char *files[PROTECTED_FILES];
	bool opened;

	front_plugins_rest(&setup->plugins);
	fill_options(setup, files, options);
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
	opened = session_open(options, session, err);
	options->protected_files = NULL;
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
	say_level(session_level(*session));
	return true;
}

int setup_session(struct setup *setup, struct session_options *options,
		  struct session **session)
{
	struct err err = {0};

	if (setup_session_err(setup, options, session, &err))
		return CODE_DONE;
	const struct policy_words words = {setup->policy_file, setup->said};
	return policy_words_complain(err.code == ECHILD ? CODE_NO_CELL : CODE_FAILED,
				     &words, err.text);
}

/* Open a session by OPTIONS for one call, whose signals go to INTERRUPT. */
static int session_of_one_call(struct setup *setup, struct session_options *options,
			       struct interrupt *interrupt, struct session **session)
{
	struct err err = {0};
	int code;

	options->ready_workers = 1;
	options->sink = setup->sink;
	options->cancel_fd = interrupt_fd(interrupt);
	code = setup_session(setup, options, session);

	if (code != CODE_DONE || interrupt_start(interrupt, &err))
		return code;
	session_close(*session);
	*session = NULL;
	return verb_complain(CODE_FAILED, "%s", err.text);
}

int setup_session_once(struct setup *setup, struct interrupt *interrupt,
		       struct session **session)
{
	struct session_options options = {
		.direct = true,
		.caller_environment = environment_wipe(&setup->policy->environment),
	};

	return session_of_one_call(setup, &options, interrupt, session);
}

int setup_session_kept(struct setup *setup, struct interrupt *interrupt,
		       struct session **session)
{
	struct session_options options = {0};

	return session_of_one_call(setup, &options, interrupt, session);
}

bool setup_open_session(struct setup *setup, struct session_options *options,
			struct session **session, struct err *err)
{
	options->minimum_level = SESSION_ANY_LEVEL;
	return open_session(setup, options, session, err);
}
