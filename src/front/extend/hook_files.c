/* hook_files: reads the hooks of a run. */

#include "front/extend/hook_files.h"

#include "base/err.h"
#include "base/memory.h"
#include "base/path.h"
#include "base/str.h"
#include "extend/brought.h"
#include "extend/hook_run.h"
#include "extend/hooks.h"
#include "extend/trust.h"
#include "front/setup.h"
#include "front/verb.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdio.h>
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

/* The files of the workspace. */

static bool is_any_let_in(const struct trust *trust)
{
	for (size_t i = 0; i < trust->count; i++) {
		if (trust->entries[i].kind == BROUGHT_HOOK &&
		    trust->entries[i].hash[0] != '\0')
			return true;
	}
	return false;
}

/* Add the hooks of ITEM, or the reason why they do not count. */
static void take_file(struct hooks *hooks, const struct trust *trust,
		      const struct brought *item)
{
	const enum trust_state state = trust_of(trust, item);
	char why[ERR_TEXT_MAX];
	struct err err = {0};

	if (item->problem != NULL) {
		hooks_leave_out(hooks, item->file, item->problem);
	} else if (state != TRUST_GIVEN) {
		(void)snprintf(why, sizeof(why), "%s; glovebox trust add hook/%.200s",
			       trust_state_name(state), item->name);
		hooks_leave_out(hooks, item->file, why);
	} else if (!hooks_parse(hooks, str_of(item->text), item->file, false, &err)) {
		(void)verb_complain(CODE_DONE, "the hooks of %s are left out: %s",
				    item->file, err.text);
		hooks_leave_out(hooks, item->file, err.text);
	}
}

static bool read_workspace(struct hooks *hooks, const struct setup *setup, bool lists,
			   struct err *err)
{
	const struct policy *bounds = setup->bounds != NULL ? setup->bounds : setup->policy;
	struct brought_list list = {0};
	struct trust trust = {0};
	bool fine;

	if (!brought_is_any(setup->workspace))
		return true;
	fine = trust_read(setup->workspace, &trust, err);
	if (fine && (lists || is_any_let_in(&trust)))
		fine = brought_read(bounds, BROUGHT_HOOK, NULL, setup_least_level(setup),
				    &list, err);
	for (size_t i = 0; fine && i < list.count; i++)
		take_file(hooks, &trust, &list.items[i]);
	brought_fini(&list);
	trust_fini(&trust);
	return fine || err_while(err, "the hooks of this workspace");
}

bool hook_files_open(const struct setup *setup, int cancel_fd,
		     const struct agent_hooks *behind, bool lists,
		     struct hook_files **opened, struct err *err)
{
	struct hook_files *files = memory_alloc(sizeof(*files));

	*opened = files;
	files->hooks = hooks_new();
	files->asks_person = setup->policy->asks.count > 0;
	files->options = (struct hook_options){
		.hooks = files->hooks,
		.workspace = setup->workspace,
		.at = setup->at,
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
			 true, err) &&
	       read_workspace(files->hooks, setup, lists, err);
}

void hook_files_tell_left_out(const struct hook_files *files)
{
	enum { TOLD_MAX = 4 };
	const struct hooks *hooks = files->hooks;
	size_t count = 0;

	for (size_t i = 0; i < hooks->note_count; i++) {
		const struct hook_note *note = &hooks->notes[i];

		if (note->is_hook && ++count <= TOLD_MAX)
			(void)verb_complain(CODE_DONE, "%s, %s: %s", note->source,
					    note->moment, note->why);
	}
	if (count > TOLD_MAX)
		(void)verb_complain(CODE_DONE,
				    "%zu more hooks are not run: glovebox hooks list says why",
				    count - TOLD_MAX);
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
