/*
 * hooks: the hooks of a person and of a project, in the form of Claude Code's settings:
 *
 *	{"PreToolUse": [{"matcher": "Bash", "hooks": [
 *		{"type": "command", "command": "./guard.sh", "timeout": 60}]}]}
 *
 * The matcher is empty or "*" for everything; of letters, digits, "_" and "|" it is a list of
 * names; else it is a regular expression that must be found in the name. Two members are ours:
 * "where": "host" has the person's own hook run outside of the cell, and "required": true
 * refuses a call about which the hook did not answer.
 *
 * A hook that is not run is kept as a note with its reason: unknown moments, other types of hooks.
 * The texts are not trusted: each level has a ceiling, and an error names its place.
 */
#pragma once

#include "agent/hooks.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>

struct regex;

/* More than a person can know of; and more in one file is a mistake. */
enum { HOOKS_MAX = 256, HOOKS_TEXT_MAX = 1 << 20 };

enum hook_place { HOOK_IN_CELL, HOOK_ON_HOST };

struct hook {
	enum hook_kind kind;
	const char *matcher;   /* as written; "" for everything */
	struct regex *pattern; /* NULL: the matcher is everything, or a list of names */
	const char *command;
	double timeout_s; /* 0: that of its moment */
	enum hook_place place;
	bool required;
	bool own;           /* it stands in the person's own configuration */
	const char *source; /* the name of the file in which it stands */
};

/*
 * Something that is not run. MOMENT is empty where the whole file is meant. IS_HOOK: a hook of a
 * moment that is known here, whose author expects it to run.
 */
struct hook_note {
	const char *source, *moment, *why;
	bool is_hook;
};

struct hooks {
	struct hook *items;
	size_t count;
	struct hook_note *notes;
	size_t note_count;
	struct arena arena; /* has all texts */
};

struct hooks *hooks_new(void);
void hooks_free(struct hooks *hooks); /* NULL is fine */

/*
 * Add the hooks in MAP, an object with the moments, which stands in SOURCE. OWN: it is the
 * person's own configuration. ERR names the place; nothing of MAP was added then.
 */
bool hooks_add(struct hooks *hooks, const struct value *map, const char *source, bool own,
	       struct err *err);
/* The same for TEXT, a file whose member "hooks" is such a map; without it nothing is added. */
bool hooks_parse(struct hooks *hooks, struct str text, const char *source, bool own,
		 struct err *err);

/* Note that the file SOURCE does not count, for the reason WHY. */
void hooks_leave_out(struct hooks *hooks, const char *source, const char *why);

/* Is there a hook for KIND? */
bool hooks_has(const struct hooks *hooks, enum hook_kind kind);
/* Does the matcher of HOOK fit one of NAMES (NULL-ended; none: a moment without a name)? */
bool hook_fits(const struct hook *hook, const char *const *names);
/* Seconds that HOOK may take. */
double hook_timeout_s(const struct hook *hook);
