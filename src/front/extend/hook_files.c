/* hook_files: reads the hooks of a run. */

#include "front/extend/hook_files.h"

#include "base/err.h"
#include "base/memory.h"
#include "base/path.h"
#include "extend/hook_run.h"
#include "extend/hooks.h"
#include "front/setup.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdlib.h>

struct hook_files {
	struct hooks *hooks;
	struct hook_options options;
	struct agent_hooks asks, behind;
	bool asks_person; /* the policy asks a person about something */
};

/* In their words: nobody is asked about anything, or somebody is about some of it. */
static const char *mode_of(void *context)
{
	const struct hook_files *files = context;

	return files->asks_person ? "default" : "acceptEdits";
}

bool hook_files_open(const struct setup *setup, int cancel_fd,
		     const struct agent_hooks *behind, struct hook_files **opened,
		     struct err *err)
{
	struct hook_files *files = memory_alloc(sizeof(*files));

	*opened = files;
	files->hooks = hooks_new();
	files->asks_person = setup->policy->asks.count > 0;
	files->options = (struct hook_options){
		.hooks = files->hooks,
		.workspace = setup->workspace,
		.mode = mode_of,
		.context = files,
		.cancel_fd = cancel_fd,
	};
	files->asks = (struct agent_hooks){.ask = hook_run_ask, .context = &files->options};
	if (behind != NULL) {
		files->behind = *behind;
		files->asks.next = &files->behind;
	}
	return hooks_add(files->hooks, setup->hooks,
			 setup->config != NULL ? path_base_name(setup->config)
					       : "config.json",
			 true, err);
}

void hook_files_close(struct hook_files *files)
{
	if (files == NULL)
		return;
	hooks_free(files->hooks);
	free(files);
}

const struct hooks *hook_files_hooks(const struct hook_files *files)
{
	return files->hooks;
}

const struct agent_hooks *hook_files_asks(const struct hook_files *files)
{
	return &files->asks;
}

const struct hook_options *hook_files_options(const struct hook_files *files)
{
	return &files->options;
}
