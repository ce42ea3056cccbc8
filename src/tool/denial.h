/*
 * denial: what a wall or a rule refused during a call, for people and programs as data
 * (`denials` of the result's details: level, kind, target, rule, remedy) and for the model
 * as one line of the text. Code that refuses reports it here, once.
 *
 * The code that ended or refused something reports a denial. When only a program
 * complained, the worker guesses what was refused, and the front judges this claim,
 * because it has the policy.
 */
#pragma once

#include "base/str.h"
#include "base/value.h"
#include "policy/policy.h"
#include "tool/tool.h"

#include <stdbool.h>
#include <stddef.h>

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

/*
 * What a program says it could not reach, read off its messages, and what a file tool
 * could not write. The worker, which sees the messages and the view, gathers them; the
 * session, which has the policy, judges them and makes denials of those that a rule
 * explains. A path outside of everything shown gets the same answer whether it exists or
 * not: nobody looks.
 */

/* Where they stand in a result's details. */
#define CLAIMS_KEY "claims"

/* Of one result: the first that are found; the rest mostly repeat them. */
enum { CLAIMS_MAX = 8 };

/*
 * Gather from MESSAGES, what a program printed in FOLDER (absolute). The exit code takes no part:
 * `|| true` and a pipe change that. For paths the view is asked whether they can be read, to tell
 * writing from reading.
 */
void denial_claims_gather(struct str messages, const char *folder,
			  struct tool_result *result);

/* Only what they say of hosts that were not found or reached; "" where they name none. */
void denial_claims_gather_hosts(struct str messages, struct tool_result *result);

/*
 * Add a denial to RESULT for each protected name (autoexec.h) of which a line of MESSAGES says that it
 * could not be written or moved: the view holds it, and no message says why.
 */
void denial_claims_protected(struct str messages, struct tool_result *result);

/* A file tool could not write PATH (absolute, real). */
void denial_claims_add_unwritable(const char *path, struct tool_result *result);

/* Does RESULT claim that a host was not found or reached? */
bool denial_claims_name_host(const struct tool_result *result);

/* How far to trust a text about hosts, and what would help. */
enum claims_hosts {
	CLAIMS_HOSTS_WRONG = 0, /* the cell itself keeps what was refused, and has nothing */
	CLAIMS_HOSTS_LISTABLE, /* the policy may list them */
	CLAIMS_HOSTS_CLOSED, /* below L3 there is no network, whatever the policy says */
};

/*
 * Judge what RESULT claims by POLICY, and of hosts by HOSTS, and take the claims away. A file tool
 * that failed for a rule is denied, as it would have been by the path that its link leads to. A
 * worker that was taken over may claim anything: whatever is no claim is dropped.
 */
void denial_claims_judge(const struct policy *policy, enum claims_hosts hosts,
			 struct tool_result *result);

/*
 * The system's folders by name, one table for every question that the shape of a cell
 * asks of them: what a view shows, what may be written, shown as a whole, hidden, or be
 * a workspace. Paths are absolute and real; KINDS is one of enum folder_kind or several,
 * of which one has to hold.
 */

enum folder_kind {
	FOLDER_SYSTEM = 1 << 0, /* programs and settings: every view shows them, read-only */
	FOLDER_FIXED = 1 << 1, /* ... and is never written as a whole */
	FOLDER_OWN = 1 << 2, /* every cell has its own: the host's is not shown as a whole */
	FOLDER_KERNEL = 1 << 3, /* holds no files, and no policy gives or takes what is there */
	FOLDER_RUNNING = 1 << 4, /* sockets of the host's programs */
	FOLDER_START = 1 << 5,   /* what the machine starts */
	FOLDER_NEEDED = 1 << 6,  /* nothing runs in a cell without it */
	FOLDER_CROWD = 1 << 7,   /* everybody's: no workspace as a whole */
};

/* The next folder of KINDS from *AT on (0 at first), NULL after the last. */
const char *denial_system_folder_next(size_t *at, unsigned kinds);

/* Is PATH such a folder? */
bool denial_system_folder_is(const char *path, unsigned kinds);

/* The folder that PATH is or lies in, or NULL. Not of FOLDER_OWN and FOLDER_CROWD, as "/" is one. */
const char *denial_system_folder_around(const char *path, unsigned kinds);

/* A folder that PATH is or holds, or NULL. */
const char *denial_system_folder_within(const char *path, unsigned kinds);
