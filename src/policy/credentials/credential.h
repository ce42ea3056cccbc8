/*
 * credential: keys of services that a cell may use and never sees, as data. A credential
 * says where its value comes from, to which hosts it goes, and in which place of a
 * request it stands. The cell gets a phantom in its place (broker/phantom.h); the broker
 * puts the value into requests (broker/request.h), and the front fetches the value
 * (broker/source.h). This module opens nothing and knows no value.
 *
 * The keys are the table credential_rows, which docs/policy.md repeats. `credentials` of
 * the configuration holds the person's; credentials/NAME.json at the root of the source
 * holds the shipped ones. An entry of the configuration beats the shipped one of its name
 * key by key. A workspace has no part in it: the configuration is never read from one,
 * and `credentials` of a policy lists names only.
 *
 * A new service is one file in credentials/. A new key is a row here, its line in
 * docs/policy.md, and a row of tests/unit/policy/credential_test.c.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/str.h"
#include "base/text/rows.h"
#include "base/value.h"
#include "policy/credentials/forge.h"
#include "policy/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* A name is a part of a URL: 1 to 32 lower-case letters, digits, '-' and '_'. */
	CREDENTIAL_NAME_MAX = 32,
	CREDENTIAL_TEXT_MAX = 4096, /* of one text: a path, a pointer, a pattern */
	CREDENTIAL_SOURCES_MAX = 8, /* the person reads them in one sentence */
	CREDENTIAL_HOSTS_MAX = 16,
	CREDENTIAL_PLACES_MAX = 4,
	CREDENTIAL_LIST_MAX = 64, /* patterns, variables: written by hand */
	CREDENTIAL_COMMAND_MAX = 32,
	CREDENTIAL_SHAPE_MAX = 128,       /* bytes of a shape; a key is no longer */
	CREDENTIAL_REPOSITORIES_MAX = 64, /* a workspace has a handful of remotes */
	CREDENTIAL_TOKENS_MAX = 4,        /* of a login: access, renewal, identity */
};

/* Seconds unless given: a password manager is not asked each time. */
#define CREDENTIAL_KEEP_S 900.0

/* The origin of a value. */
enum credential_from {
	FROM_ENV = 1, /* env:NAME: the variable `text` of the caller */
	/*
	 * file:PATH, file:PATH#/json/pointer, file:PATH#[SECTION]NAME, file:PATH#=NAME: `text`,
	 * and `more`, which begins with the letter behind the #, or NULL
	 */
	FROM_FILE,
	FROM_COMMAND, /* {"command": […]}: `argv`, whose output is one line */
	FROM_KEYRING, /* keyring:SERVICE/USER: `text` and `more` */
};

struct credential_source {
	enum credential_from from;
	/* "env:NAME", "file:PATH", "command: NAME": what a person may read */
	const char *shown;
	const char *text, *more;
	const char *const *argv; /* NULL-ended */
	double keep_s;           /* of a command: how long its output is used again */
};

/* The place of a request where the key stands. */
enum credential_at {
	AT_HEADER = 1, /* "header: NAME": the whole value of the field `name` */
	AT_BEARER,     /* "bearer": Authorization: Bearer KEY */
	AT_BASIC,      /* "basic:USER": Authorization: Basic, base64 of USER:KEY */
	AT_QUERY,      /* "query: NAME": NAME=KEY in the query */
};

struct credential_place {
	enum credential_at at;
	const char *name; /* of the header or query part; the user; "" for AT_BEARER */
};

/* A request that `allow` lets through, or a path of `foreign`. */
struct credential_rule {
	const char *method; /* "*": every method; NULL in `foreign` */
	const char *path; /* begins with '/'; a "*" is any text without '/', a last "**" any */
};

/* The form of the service's error objects, in which the broker refuses (request.h). */
enum credential_errors {
	ERRORS_MESSAGE, /* {"message": …}: GitHub, GitLab */
	ERRORS_ANTHROPIC,
	ERRORS_OPENAI,
	ERRORS_GOOGLE,
	ERRORS_TEXT, /* the sentence alone: git shows it; not for `errors` */
};

struct credential_rules {
	struct credential_rule *items;
	size_t count;
	bool given;       /* also when empty */
	bool fetch, push; /* with `repositories`: the words of git are among them */
};

struct credential_texts {
	const char **items;
	size_t count;
};

/* `variable` gets the address of the plain door, with `path` behind it. */
struct credential_base {
	const char *variable;
	const char *path; /* begins with '/' */
};

/* How an expired token is renewed (broker/refresh.h). Pointers are of the source's file. */
struct credential_refresh {
	const char *url;  /* NULL: there is no `refresh`; else https, of one of `hosts` */
	const char *path; /* of `url` */
	struct network_host host;
	uint16_t port;
	struct credential_texts send;     /* members of the request that hold a token */
	struct credential_texts answers;  /* members of the answer, and … */
	struct credential_texts pointers; /* … the place of each */
	const char *expires; /* place of the time when the token expires; or NULL */
	const char *scope; /* place of what the token is for, a text or a list; or NULL */
	struct credential_texts keep; /* places that a cell gets as they are */
};

/* Lists are in the order of the configuration. All parts belong to `arena` and `root`. */
struct credential {
	char name[CREDENTIAL_NAME_MAX + 1];
	struct arena arena;
	struct value *root; /* the whole entry, merged and checked */
	struct credential_source *sources;
	size_t source_count;
	/* None is a suffix or has tcp://. The plain door leads to the first one. */
	struct network_entry *hosts;
	size_t host_count;
	struct credential_place places[CREDENTIAL_PLACES_MAX];
	size_t place_count;
	struct credential_texts variables; /* these get the phantom */
	struct credential_base *bases;
	size_t base_count;
	const char *shape;              /* has one "*", or is "jwt" */
	struct credential_texts claims; /* of "jwt": what the phantom keeps beside `exp` */
	/* When `allow` was given, a request must fit one of its rules. */
	struct credential_rules allow, foreign;
	struct credential_rules keyless; /* requests that need no key */
	/*
	 * The key goes with requests for the repositories of the workspace's remotes only,
	 * which stand in this form in paths; FORGE_NONE: with every request.
	 */
	enum forge forge;
	bool anonymous, websocket, scrub;
	enum credential_errors errors;
	const char *ca_file; /* more roots for these hosts, a PEM file; or NULL */
	struct credential_refresh refresh;
};

/* The keys of an entry, for policy/config.c. All are optional there (credential_read). */
extern const struct row credential_rows[];
/* For `check` of `credentials` at the top level: names, and what an entry must have. */
bool credential_check_all(const struct row *row, const struct value *value,
			  struct rows_problem *problem);

/* credentials/NAME.json, in the order of their names; ends with {NULL}. */
extern const struct embedded_file credential_files[];

/*
 * Fill CREDENTIAL with the credential NAME: the shipped one under its entry in ENTRIES,
 * which are `credentials` of the configuration (config_value) or NULL. ERR names the
 * nearest name when there is none, and else the key. Call credential_fini in either case.
 */
bool credential_find(const struct value *entries, const char *name,
		     struct credential *credential, struct err *err);

/*
 * Fill CREDENTIAL from ENTRY, a whole one as `root` of a credential is. So a process of
 * ours tells another one of a credential: it prints `root`, and the other reads it.
 */
bool credential_read(const char *name, const struct value *entry,
		     struct credential *credential, struct err *err);
void credential_fini(struct credential *credential);

/* All names, shipped and in ENTRIES (or NULL), NULL-ended. They live as long as both. */
const char **credential_names(const struct value *entries, struct arena *arena);

/*
 * The repositories for which the key of CREDENTIAL holds, as forge.h names them: those of
 * ADDRESSES, which are the remotes of the workspace (NULL-ended), at its hosts. NULL-ended,
 * and NULL when CREDENTIAL has no `repositories`. The texts belong to ARENA.
 */
const char **credential_repositories(const struct credential *credential,
				     const char *const *addresses, struct arena *arena);

/* Append the URL of the plain door on PORT that BASE's variable gets. */
bool credential_base_url(const struct credential *credential,
			 const struct credential_base *base, uint16_t port,
			 struct buf *out);

/*
 * Does PATTERN of a rule match PATH, which is decoded? A "*" is any text without '/', also
 * none; a last segment "**" is any number of segments, also none.
 */
bool credential_path_matches(const char *pattern, struct str path);
