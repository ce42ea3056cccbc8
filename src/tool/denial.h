/*
 * denial: what a wall or a rule refused during a call, for people and programs as data
 * (`denials` of the result's details: level, kind, target, rule, remedy) and for the model
 * as one line of the text. Code that refuses reports it here, once.
 */
#pragma once
#include "base/value.h"
#include "tool/tool.h"

#include <stdbool.h>

enum denial_kind { DENIAL_FS = 1, DENIAL_NET, DENIAL_PROC, DENIAL_LIMIT, DENIAL_POLICY };

struct denial {
	enum denial_kind kind;
	const char *target; /* a path, host:port, system call, or a limit's value */
	const char *rule;   /* the key or wall that decided: "limits.memory", "network" */
	const char *remedy; /* how to allow it, a clause; NULL when nothing can */
	bool guessed;       /* read off a program's messages, not told by the wall */
};

/* The remedy for a protected name of autoexec.h, which git's files do not have. */
#define AUTOEXEC_REMEDY \
	"a person who lets commands write it names it in `write` (exec --write . --write NAME)"

/* The key of the list among a result's details. */
#define DENIALS_KEY "denials"

/* More of them in one result are only counted (`denials_left_out`). */
enum { DENIALS_MAX = 16 };

/*
 * Add DENIAL to RESULT, details and text. One that is there already (kind, target and rule)
 * is not added again.
 */
void denial_add(struct tool_result *result, const struct denial *denial);
/* The same without the line, for a text that says it already. */
void denial_note(struct tool_result *result, const struct denial *denial);

/* A key of `limits` was reached. */
struct denial_limit {
	const char *agent;  /* NULL: nobody's by name */
	const char *key;    /* "memory" */
	const char *target; /* what was reached: "5 GiB of memory" */
	const char *advice; /* a clause, before the key that allows more */
	const char *now;    /* the key's value, for people */
	bool is_floor;      /* to be lowered, not raised, for more room */
	bool guessed;
};
void denial_add_limit(struct tool_result *result, const struct denial_limit *limit);

/* Is DENIAL (an item of denial_list) of KIND? */
bool denial_is(const struct value *denial, enum denial_kind kind);

/* The list of RESULT, or NULL: objects as above. For who prints them. */
const struct value *denial_list(const struct tool_result *result);

/* The runtime's: the level in force, which a worker is not believed to tell. */
void denial_set_level(struct tool_result *result, int level);

/* DENIAL (an item of denial_list) as the line that stands in the text, without brackets. */
void denial_print(const struct value *denial, struct buf *out);
