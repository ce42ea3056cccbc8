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
	/* a path, host:port, a system call, or the value of a limit */
	const char *target;
	const char *rule; /* the key or wall that decided: "limits.memory", "network" */
	/* a clause that says how to allow it; NULL when nothing can */
	const char *remedy;
	bool guessed; /* found in a program's messages, not reported by the wall */
};

/*
 * The remedy for a protected name of autoexec.h. Protected files of git have no remedy.
 * A front that has another verb for it says that one (policy_words).
 */
#define AUTOEXEC_OPTIONS "exec --write . --write NAME"
#define AUTOEXEC_REMEDY                                                                                \
	"a person who lets commands write it names it in `write`, once it is there (" AUTOEXEC_OPTIONS \
	")"

/* The key of the list in a result's details. */
#define DENIALS_KEY "denials"

/* Further denials of one result are only counted (`denials_left_out`). */
enum { DENIALS_MAX = 16 };

/*
 * Add DENIAL to the details and the text of RESULT. A denial with the same kind, target
 * and rule is not added again.
 */
void denial_add(struct tool_result *result, const struct denial *denial);
/* Add DENIAL to the details only, when the text already says it. */
void denial_note(struct tool_result *result, const struct denial *denial);

/* A limit (key of `limits`) that was reached. */
struct denial_limit {
	const char *agent;  /* NULL: the agent has no name */
	const char *key;    /* "memory" */
	const char *target; /* the measured value: "5 GiB of memory" */
	const char *advice; /* a clause that stands before the key that allows more */
	const char *now;    /* the value of the key, for people */
	bool is_floor;      /* the key must be lowered, not raised, for more room */
	bool guessed;
};
void denial_add_limit(struct tool_result *result, const struct denial_limit *limit);
/*
 * The key of the limit that ended or hindered the call, as its denials say ("memory"),
 * borrowed from RESULT; "wall_s" when its time was over; NULL: it succeeded, or met none.
 */
const char *denial_limit(const struct tool_result *result);

/* Is DENIAL (an item of denial_list) of KIND? */
bool denial_is(const struct value *denial, enum denial_kind kind);

/* The list of RESULT (objects as above), to print it; or NULL. */
const struct value *denial_list(const struct tool_result *result);

/*
 * Does RESULT have a denial of a host? The proxy's denials are more reliable than the
 * messages of programs.
 */
bool denial_has_network(const struct tool_result *result);

/*
 * Set the level in force. The session does this, because it does not trust a worker's
 * value.
 */
void denial_set_level(struct tool_result *result, int level);

/* Print DENIAL (an item of denial_list) as the line in the text, without brackets. */
void denial_print(const struct value *denial, struct buf *out);

/*
 * Claims: paths and hosts that a program could not reach according to its messages, and
 * files that a file tool could not write. The worker gathers them, because it sees the
 * messages and the view. The session judges them, because it has the policy, and makes
 * denials of those that a rule explains. A path outside of the view gets the same
 * answer whether it exists or not, because nobody looks.
 */

/* The key of the claims in a result's details. */
#define CLAIMS_KEY "claims"

/* The first claims of a result; later ones mostly repeat them. */
enum { CLAIMS_MAX = 8 };

/*
 * Gather claims from MESSAGES, the output of a program in FOLDER (absolute). The exit
 * code does not matter, because `|| true` or a pipe may change it. For each path the
 * view is asked whether it can be read, to tell a refused write from a refused read.
 */
void denial_claims_gather(struct str messages, const char *folder,
			  struct tool_result *result);

/* Gather only programs that a shell could not execute because the view hides them. */
void denial_claims_gather_hidden(struct str messages, struct tool_result *result);

/* Gather only hosts that were not found or reached; "" when the message names no host. */
void denial_claims_gather_hosts(struct str messages, struct tool_result *result);

/*
 * Add a denial to RESULT for each protected name (autoexec.h) that could not be written
 * or moved according to a line of MESSAGES. The view protects it, and no message of a
 * program says why.
 */
void denial_claims_protected(struct str messages, struct tool_result *result);

/* A file tool could not write PATH (absolute, real). */
void denial_claims_add_unwritable(const char *path, struct tool_result *result);

/* Does RESULT claim that a host was not found or reached? */
bool denial_claims_name_host(const struct tool_result *result);

/* How reliable messages about hosts are, and which remedy exists. */
enum claims_hosts {
	/* not reliable: the cell itself records refusals, and has none */
	CLAIMS_HOSTS_WRONG = 0,
	CLAIMS_HOSTS_LISTABLE, /* the policy may list the hosts */
	CLAIMS_HOSTS_CLOSED,   /* below L3 there is no network with any policy */
};

/*
 * Judge the claims of RESULT by POLICY, those of hosts by HOSTS, and remove the claims.
 * When a rule explains why a file tool failed, the call becomes denied, as if it had
 * named the target of its link. A worker that was taken over may send anything, so
 * malformed claims are dropped.
 */
void denial_claims_judge(const struct policy *policy, enum claims_hosts hosts,
			 struct tool_result *result);

/*
 * The system's folders by name: one table for all questions about the shape of a cell.
 * It says which folders a view shows, and which may be written, shown as a whole,
 * hidden, or be a workspace. Paths are absolute and real. KINDS is one or several of
 * enum folder_kind; a folder of any of them matches.
 */

enum folder_kind {
	/* programs and settings: every view shows them, read-only */
	FOLDER_SYSTEM = 1 << 0,
	FOLDER_FIXED = 1 << 1, /* ... and is never written as a whole */
	/* every cell has its own: the host's folder is not shown as a whole */
	FOLDER_OWN = 1 << 2,
	FOLDER_KERNEL = 1 << 3,  /* has no real files, and policies do not apply to it */
	FOLDER_RUNNING = 1 << 4, /* sockets of the host's programs */
	FOLDER_START = 1 << 5,   /* files that start the machine or its programs */
	FOLDER_NEEDED = 1 << 6,  /* no program runs in a cell without it */
	FOLDER_CROWD = 1 << 7,   /* shared by everybody: not a workspace as a whole */
};

/* The next folder of KINDS from *AT on (0 at first); NULL after the last one. */
const char *denial_system_folder_next(size_t *at, unsigned kinds);

/* Is PATH a folder of KINDS? */
bool denial_system_folder_is(const char *path, unsigned kinds);

/*
 * The folder of KINDS that is PATH or contains it, or NULL. Not for FOLDER_OWN and
 * FOLDER_CROWD, because these include "/".
 */
const char *denial_system_folder_around(const char *path, unsigned kinds);

/* A folder of KINDS that is PATH or lies in it, or NULL. */
const char *denial_system_folder_within(const char *path, unsigned kinds);
