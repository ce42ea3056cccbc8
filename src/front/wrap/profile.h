/*
 * profile: profiles of agents that `glovebox wrap` seals, as data. A profile says which
 * program an agent is, which of the person's files it needs, which hosts it asks, and in
 * which variables its key travels. A profile is a JSON object with comments; its keys are
 * the table in profile.c, which docs/wrap.md repeats.
 *
 * A profile is one file, wrap/NAME.json. It is looked for in the person's configuration
 * ($XDG_CONFIG_HOME/glovebox/wrap/), then in /etc/glovebox/wrap/, then among those that
 * are built into the program (wrap/ at the root of the source). A workspace is never
 * looked at. A file that others may write is refused.
 *
 * `extends` names another profile, which this one changes: lists are appended, objects
 * merged, null takes a key away, everything else replaces.
 *
 * Paths begin with "~/" (the person's home) or "${ROOT}" (the agent's folder, `root`).
 * "${SLUG}" stands for the path of the workspace with "-" for all but letters and digits, as
 * agents name their sessions, "${DOOR}" for the URL of the broker's door, and "${TMPDIR}" for
 * the folder of temporary files that is in each cell and outside. No path has "..".
 *
 * A new agent is one file in wrap/ and one row of tests/wrap/run.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/value.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	WRAP_TEXT_MAX = 256 << 10, /* a profile is written by hand */
	WRAP_EXTENDS_MAX = 4,
	WRAP_NAME_MAX = 32,
};

/* A file of the person's that the home gets a copy of at the first start. */
struct wrap_seed {
	const char *path;
	struct policy_names keys; /* of its JSON object; not given: the whole file */
};

/* A file that the cell shows read-only, whatever the person's own says. */
struct wrap_file {
	const char *path;
	char *text;
};

/* The value of "${TMPDIR}". */
#define WRAP_TEMPORARY "/tmp"

/* How an agent that stays outside uses the cell. */
enum wrap_hands {
	HANDS_NONE,
	HANDS_SERVER, /* by its exec server, which is Codex's way; unless it is run inside */
	HANDS_SHELL, /* by the shell of its commands, when that is wanted */
};

/*
 * The text whose hash names the home of a profile in a workspace, of a workspace and the
 * profile's name. No other workspace has such a path: a real path has no "//".
 */
#define WRAP_HOME_OF "%s//wrap %s"
/* The folder in the state with that text for each home, in a file of the home's name. */
#define WRAP_HOME_NOTES "wrap/homes"

/* The profiles that are built in, for completion. */
#define WRAP_SHIPPED "aider any claude codex crush gemini goose opencode pi qwen"

struct wrap_profile {
	char *name;
	struct value *root; /* all of it, merged and checked; owns the texts below */
	const char *description, *program, *tested;
	const char *root_variable, *root_folder; /* NULL: the agent has no such folder */
	enum wrap_hands hands;
	/*
	 * of HANDS_SHELL: variables and programs that lead to the shell, variables of the
	 * agent's folder for temporary files, folders in it that a command
	 * needs, and files that come back
	 */
	struct policy_names shell, shell_path, temporary, folders, returns;
	struct policy_names show, view, share, protect, hosts, keys, credentials;
	/*
	 * The files of its login, and for each the credential whose phantoms a copy of it
	 * gets; "": there are no copies of it.
	 */
	struct policy_names login, login_credentials;
	struct policy_names args, autos, prompts, opens;
	struct policy_names environment; /* NAME=value */
	struct wrap_seed *seeds;
	size_t seed_count;
	struct wrap_file *files;
	size_t file_count;
};

/*
 * Append the text of the profile NAME to TEXT, and the words for its file to SOURCE.
 * False with ENOENT: there is none.
 */
typedef bool wrap_find(void *context, const char *name, struct buf *text,
		       struct buf *source, struct err *err);

/*
 * Read the profile NAME with those that it extends, which FIND brings. ERR names the file
 * and the key. Call wrap_profile_fini in either case.
 */
bool wrap_profile_read(const char *name, wrap_find *find, void *context,
		       struct wrap_profile *profile, struct err *err);
void wrap_profile_fini(struct wrap_profile *profile);
/*
 * Add to PROFILE what its `doors` say of CREDENTIAL, which is used: how the agent gets to
 * know the address of the broker.
 */
void wrap_profile_use(struct wrap_profile *profile, const char *credential);

/* May a profile be called NAME: 1 to WRAP_NAME_MAX letters, digits, '-' and '_'? */
bool wrap_profile_name_is_valid(const char *name);

/*
 * Append all that PROFILE would show, share, set and reach, as text with a line for each
 * item. HEX becomes the hash of the text, which a person accepts.
 */
bool wrap_profile_needs(const struct wrap_profile *profile, struct buf *text,
			char hex[HASH_HEX + 1]);

/*
 * The keys of a policy that PROFILE names (hosts, limits); the caller adds what may be
 * written, and the credentials that are used, and frees the object.
 */
struct value *wrap_profile_policy(const struct wrap_profile *profile);

/*
 * Fill PATHS, which is all zero, with the names in WORKSPACE that only PROFILE protects; all
 * others are in policy/autoexec.h. The list ends with NULL; the caller frees it.
 */
void wrap_profile_protected(const struct wrap_profile *profile, const char *workspace,
			    struct policy_names *paths);

/* TEXT, a JSON object, becomes the part that SEED names. False: it is no such object. */
bool wrap_seed_pick(const struct wrap_seed *seed, struct buf *text);

/* The values of a path's placeholders. */
struct wrap_places {
	const char *home; /* absolute and normal */
	const char *root; /* absolute and normal; NULL: the profile has none */
	const char *workspace;
};

/* Append TEXT, from a path or a variable, with its placeholders replaced. */
bool wrap_places_expand(const struct wrap_places *places, const char *text, struct buf *out);
