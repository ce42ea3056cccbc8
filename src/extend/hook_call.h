/*
 * hook_call: a call in the words that hooks know, those of Claude Code, and back again. One
 * table has the tools and their arguments. A tool that the table does not have keeps its own
 * name and arguments.
 *
 * Most calls are one in both worlds. An edit_file with several edits is a MultiEdit, which also
 * fits hooks of Edit; a patch is one Edit, and a batch_read one Read, for each file.
 */
#pragma once

#include "base/memory.h"
#include "base/value.h"
#include "tool/tool.h"

#include <stddef.h>

enum { HOOK_CALL_NAMES = 5 };

struct hook_call {
	/* its name, then others that a matcher may use, ours last; NULL-ended; borrowed */
	const char *names[HOOK_CALL_NAMES];
	struct value *input; /* their arguments; owned */
};

struct hook_calls {
	struct hook_call *items;
	size_t count;
	struct arena arena; /* has the names that were made */
};

/* Paths in ARGUMENTS become absolute, from WORKSPACE. Call hook_calls_fini later. */
void hook_calls_of(const struct tool *tool, const struct value *arguments,
		   const char *workspace, struct hook_calls *calls);
void hook_calls_fini(struct hook_calls *calls);

/* Their name of the tool NAME, or NAME. */
const char *hook_call_name(const char *name);

/*
 * Our arguments for TOOL from INPUT, which a hook has made; the caller frees them. They are not
 * trusted: the session validates them. NULL: a call of TOOL is several of theirs, and none of
 * them can be changed.
 */
struct value *hook_call_back(const struct tool *tool, const struct value *input);
